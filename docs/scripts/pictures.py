"""Make the README's pictures from a real run of `tw-autogen demo`: its output as SVG, and its chart."""

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

PICTURES = Path(__file__).parent.parent / "pictures"
COLUMNS = 118
CODE, OUTPUT = 5, 4
"""How many lines of the long cell, and at the end of what it printed, are shown."""


def main() -> None:
    """Run the demo once and write `run.svg` and `chart.png`."""
    with tempfile.TemporaryDirectory() as folder:
        terminal = {"FORCE_COLOR": "1", "TTY_INTERACTIVE": "0", "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
        done = subprocess.run(
            [sys.executable, "-m", "tw_autogen.cli", "demo"],
            cwd=folder,
            env={**os.environ, **terminal},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
        shutil.copy(Path(folder) / "tw-demo" / "chart.png", PICTURES / "chart.png")
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    for line in shorten(Text.from_ansi(done.stdout).split("\n")):
        console.print(line)
    svg = console.export_svg(title="tw-autogen demo", unique_id="tw-autogen-demo")
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)  # the font would be loaded from another site
    (PICTURES / "run.svg").write_text(svg, encoding="utf-8")


def shorten(lines: list[Text]) -> list[Text]:
    """Return the second request's lines; a cut is shown as `…`, and continued lines keep their indentation.

    Args:
        lines: The whole output of the demo.
    """
    starts = [at for at, line in enumerate(lines) if line.plain.startswith("> ")]
    end = next(at for at, line in enumerate(lines) if line.plain.lstrip().startswith("tw-demo"))
    kept: list[Text] = []
    code = [at for at in range(starts[1], end) if lines[at].plain.startswith("  │")]
    printed = next(at for at in range(code[-1], end) if lines[at].plain.startswith("  ✓ cell"))
    for at in range(starts[1], end):
        if code[CODE] <= at <= code[-1] or code[-1] + 2 < at < printed - OUTPUT:
            if at in (code[CODE], code[-1] + 3):
                kept.append(Text("  │ …" if at == code[CODE] else "  …", style="dim"))
            continue
        kept += indent(lines[at])
    return kept


def indent(line: Text) -> list[Text]:
    """Wrap one line as the demo's own screen does: the rest stands below the first word."""
    margin = len(line.plain) - len(line.plain.lstrip())
    pieces = line[margin:].wrap(Console(width=COLUMNS), COLUMNS - margin)
    return [Text(" " * margin) + piece for piece in pieces] or [line]


if __name__ == "__main__":
    main()
