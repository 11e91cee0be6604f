"""How many honest cells a policy refuses: the examples in the docstrings of installed packages, a docstring a cell.

    python tests/code_interpreter/false_alarms.py pandas numpy sklearn scipy
    python tests/code_interpreter/false_alarms.py --policy strict --show 20 pandas
    python tests/code_interpreter/false_alarms.py --policy strict --without-files pandas numpy scipy sklearn statsmodels

Nothing is imported or run; the packages must be installed beside this one.
"""

from __future__ import annotations

import argparse
import ast
import doctest
import importlib.util
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tw_autogen.code_interpreter import find_policy, verify

FILES = re.compile(
    r"""\b(?: open | read_(?!only)\w+ | to_(?:csv|excel|parquet|feather|hdf|stata|sql|pickle|clipboard|orc|iceberg|xml)
    | save\w* | load(?:txt|mat|_npz|_files|_svmlight\w*)? | genfromtxt | fromfile | tofile | fromregex | memmap
    | \w*DataSource | HDFStore | Excel(?:File|Writer) | Stata\w+ | fetch_\w+ | get_rdataset | webdoc | download_all
    | clear_cache | get_data_home | clear_data_home | tempfile | pathlib | sqlite3 | sqlalchemy | pickle | gzip
    | zipfile | loadmat | savemat | netcdf_file | wavfile | mmread | mmwrite | mminfo | FortranFile | hb_\w+ | readsav
    | arff | os\.(?:path|remove|mkdir|getcwd) )\b""",
    re.VERBOSE,
)
"""Names of what reads, writes or fetches files: a cell with one is none that must pass a policy without files."""


def cells_of(package: str) -> Iterator[tuple[str, str]]:
    """Yield file and cell of each docstring with examples."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{package}: not installed, or no package")
    root = Path(spec.submodule_search_locations[0])
    parser = doctest.DocTestParser()
    for path in sorted(root.rglob("*.py")):
        if "tests" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and ">>> " in node.value:
                try:
                    examples = parser.get_examples(node.value)
                except ValueError:  # no doctest: a prompt inside of other text
                    continue
                cell = "".join(example.source for example in examples)
                if cell.strip():
                    yield f"{path.relative_to(root.parent)}:{node.lineno}", cell


def main() -> None:
    """Print the rate of each package, and the reasons."""
    parser = argparse.ArgumentParser(description="How many honest cells does a policy refuse?")
    parser.add_argument("packages", nargs="+")
    parser.add_argument("--policy", default="default")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print N refused cells of each package")
    parser.add_argument("--without-files", action="store_true", help="skip cells that read, write or fetch files")
    given = parser.parse_args()
    policy = find_policy(given.policy)
    all_refused, all_cells = 0, 0
    for package in given.packages:
        total, refused, slowest = 0, 0, 0.0
        reasons: Counter[str] = Counter()
        for where, cell in cells_of(package):
            if given.without_files and FILES.search(cell):
                continue
            started = time.perf_counter()
            found = verify(cell, policy)
            slowest = max(slowest, time.perf_counter() - started)
            if [one.kind for one in found] == ["syntax"]:  # no Python, so no honest cell
                continue
            total += 1
            refused += bool(found)
            reasons.update({one.message for one in found})
            if found and refused <= given.show:
                print(f"  {where}: {found[0]}\n    {cell.splitlines()[found[0].line - 1]}")
        print(f"{package}: {refused} of {total} cells refused ({refused / total:.2%}); slowest {slowest * 1000:.1f} ms")
        all_refused, all_cells = all_refused + refused, all_cells + total
        for message, times in reasons.most_common(15):
            print(f"  {times:4} {message[:110]}")
    print(f"together: {all_refused} of {all_cells} cells refused ({all_refused / all_cells:.2%})")


if __name__ == "__main__":
    main()
