"""A session as a Jupyter notebook: requests, plans and answers in words, and every cell that ran with what it gave."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from functools import singledispatchmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tw_autogen.conversation import Round
from tw_autogen.events import (
    CellOutput,
    CellRan,
    CellStarted,
    CodeChecked,
    Event,
    PostClosed,
    RoundClosed,
    RoundOpened,
    SessionOpened,
)
from tw_autogen.lazy_module import LazyModule
from tw_autogen.named_folders import refuse_private
from tw_autogen.number_sources import number_sources
from tw_autogen.picture_files import PictureReader, is_picture
from tw_autogen.safe_folder import open_or_make_folder
from tw_autogen.session.answer_html import sources_html
from tw_autogen.session.event_journal import read_journal
from tw_autogen.session.markdown_text import code_span, fence_printed_output, fenced, markdown_cells
from tw_autogen.shipped_folders import shipped_folder
from tw_autogen.svg_sanitizer import UnsafeSvgError
from tw_autogen.text_escaping import NO_FORMULAS
from tw_autogen.written_numbers import ParsedNumbersCache

if TYPE_CHECKING:
    import nbformat
else:
    nbformat = LazyModule("nbformat")  # takes as long as half of this package

_EXCEPTION = re.compile(r"([A-Za-z_][\w.]*)(?:: (.*))?$")
EXIT = re.compile(r"\bsys\.exit\b|\bSystemExit\b")
"""What the code of a cell has that may end before its last line without an error."""
_NOT_STARTED = "starts with the first cell"
"""What a session that opens says of its kernel."""
_STOPPED = "Stopped "
"""How the error of a cell begins that the user or a limit has stopped."""
_MAX_LOOKED_UP = 200
"""Answers of which the numbers are looked up in all that was printed before."""
_NEEDS_PLUGINS = (
    "The code calls plugins, which the first cell loads; that needs this package: `pip install tw-autogen`, with the "
    "extra `data` for those that it brings."
)
_NEEDS_PACKAGE = "# That needs this package: pip install tw-autogen, with the extra data for plugins that it brings"


def notebook(events: Iterable[Event] | Path | str, *, below: Path | None = None) -> nbformat.NotebookNode:
    """Return a session as a valid notebook of format 4.5; the same events give the same notebook.

    Args:
        events: What happened, oldest first, or the path of a session's `events.jsonl`. A session that still goes on,
            or was cut off, is fine.
        below: The folder in which pictures are looked for, because anybody may have written the events; None: that of
            a path, else anywhere.

    Returns:
        Markdown cells for each request, its plan, its answer and where the answer's numbers come from; code cells in
        the order in which they ran. Code that failed is kept and tagged `failed`. Words, which "run all" leaves out,
        are code that broke a rule and was not run (`refused`), that was stopped or ended its kernel (`stopped`), or
        that never came to an end (`unfinished`), and a check of an answer (`check`).
        Pictures that cells made are embedded if they still exist, an SVG written anew by `safe_svg`; other files, and
        an SVG that could run or load something, are named.
    """
    if below is None and isinstance(events, Path | str):
        below = Path(events).parent
    made = _Notebook(below and Path(os.path.abspath(below)))
    for event in read_journal(events) if isinstance(events, Path | str) else events:
        made.take(event)
    return made.whole()


def write_notebook(events: Iterable[Event] | Path | str, path: Path | str, *, below: Path | None = None) -> Path:
    """Write a session as a notebook.

    Args:
        events: As for `notebook`.
        path: The `.ipynb` file; a file or link that is there is replaced. `open_or_make_folder` opens its folder.
        below: As for `notebook`.

    Returns:
        The file's path.

    Raises:
        OSError: it can't be written, or a link that code may have made is in the way.
        ConfigError: a link on the way leads to a hidden folder.
    """
    path = Path(path)
    refuse_private(path.parent)
    made = notebook(events, below=below)
    for cell in made.cells:
        if cell.cell_type == "markdown":
            cell.source = f"<div {NO_FORMULAS}>\n\n{cell.source}\n\n</div>"
    with open_or_make_folder(path.parent) as folder:
        folder.write_file(path.name, (nbformat.writes(made) + "\n").encode("utf-8", "replace"))
    return path


class _Notebook:
    """Cells in the making.

    Args:
        below: The folder in which pictures are looked for; None: anywhere.
    """

    def __init__(self, below: Path | None) -> None:
        self._below = below
        self._pictures = PictureReader()
        self._cells: list[nbformat.NotebookNode] = []
        self._running: dict[int, nbformat.NotebookNode] = {}
        self._written: dict[int, list[nbformat.NotebookNode]] = {}
        self._plan = ""
        self._rounds: list[Round] = []
        self._plugins: dict[str, str] = {}
        self._looked_up = 0
        self._parsed = ParsedNumbersCache()
        self._place_of_plugins = 0

    def whole(self) -> nbformat.NotebookNode:
        self._end_running()
        code = "\n".join(cell.source for cell in self._cells if cell.cell_type == "code")
        names = set(re.findall(r"\w+", code))
        called = {name: file for name, file in self._plugins.items() if name in names}
        if called:
            self._cells[0].source += f"\n\n{_NEEDS_PLUGINS}"
            self._add_cell(
                nbformat.v4.new_code_cell(loading_code(called), metadata={"tags": ["plugins"]}),
                at=self._place_of_plugins,
            )
        language = {"name": "python", "mimetype": "text/x-python", "file_extension": ".py"}
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        metadata = {"kernelspec": kernel, "language_info": language}
        whole = nbformat.v4.new_notebook(cells=self._cells, metadata=metadata)
        nbformat.validate(whole)
        return whole

    def _end_running(self) -> None:
        """Mark cells that never came to an end."""
        for cell, node in self._running.items():
            self._in_words(node, "unfinished", "".join(one.text for one in self._written[cell]))
        self._running.clear()

    def _in_words(self, node: nbformat.NotebookNode, tag: str, output: str) -> None:
        """Replace a cell that never came to an end with words: "run all" would run it without one, too."""
        words = [
            f"**Not run to its end:**\n\n{fenced(node.source, 'python')}",
            *([fenced(output.rstrip("\n"))] if output else []),
        ]
        position = next(index for index, cell in enumerate(self._cells) if cell is node)
        self._cells[position] = nbformat.v4.new_markdown_cell("\n\n".join(words), metadata={"tags": [tag]}, id=node.id)

    @singledispatchmethod
    def take(self, event: Event) -> None:
        """Ignore what has no place in a notebook."""

    @take.register(SessionOpened)
    def _session_opened(self, event: SessionOpened) -> None:
        if self._cells:  # it was resumed, by a process that counts its cells from 1 again
            self._end_running()
            self._plugins.update(files_of_plugins(event))
            return
        plugins = f", with {', '.join(event.plugins)}" if event.plugins else ""
        where = ", ".join(part for part in event.kernel.split(", ") if part != _NOT_STARTED)
        self._add_markdown("# ", f"{event.session_id}\n\nThe code ran in: {where}{plugins}.")
        self._plugins = files_of_plugins(event)
        self._place_of_plugins = len(self._cells)

    @take.register(RoundOpened)
    def _round_opened(self, event: RoundOpened) -> None:
        files = f"\n\nFiles: {', '.join(map(code_span, event.files))}" if event.files else ""
        self._plan = ""
        self._rounds.append(Round(event.user_query, event.round_id))
        self._add_markdown("## Request\n\n", event.user_query + files)

    @take.register(PostClosed)
    def _post_closed(self, event: PostClosed) -> None:
        if self._rounds:
            self._rounds[-1].posts.append(event.post)
        plan = str(event.post.plan or "")
        if plan and plan != self._plan:
            self._plan = plan
            self._add_markdown("**Plan**\n\n", plan)

    @take.register(CodeChecked)
    def _code_checked(self, event: CodeChecked) -> None:
        if event.findings:  # no code cell: "run all" in another kernel would run what was refused here
            words = f"**Not run, because it breaks rules:**\n\n{fenced(event.code, 'python')}"
            first, *more = markdown_cells("".join(f"- {finding}\n" for finding in event.findings))
            for text in (f"{words}\n\n{first}", *more):
                self._add_cell(nbformat.v4.new_markdown_cell(text, metadata={"tags": ["refused"]}))

    @take.register(CellStarted)
    def _cell_started(self, event: CellStarted) -> None:
        if event.check:  # no code cell: "run all" would keep what it changes
            text = f"**Check of the answer, undone after it ran:**\n\n{fenced(event.code, 'python')}"
            self._add_cell(nbformat.v4.new_markdown_cell(text, metadata={"tags": ["check"]}))
            return
        self._running[event.cell] = nbformat.v4.new_code_cell(event.code, execution_count=max(event.cell, 0))
        self._written[event.cell] = []
        self._add_cell(self._running[event.cell])

    @take.register(CellOutput)
    def _cell_output(self, event: CellOutput) -> None:
        if event.cell in self._written:  # kept only for a cell that never comes to an end: `CellRan` has it whole
            self._written[event.cell].append(nbformat.v4.new_output("stream", name=event.stream, text=event.text))

    @take.register(CellRan)
    def _cell_ran(self, event: CellRan) -> None:
        cell = self._running.pop(event.cell, None)
        if cell is None:
            return
        del self._written[event.cell]
        if event.state_lost or event.error.startswith(_STOPPED):
            self._in_words(cell, "stopped", "\n".join(filter(None, [event.stdout, event.stderr, event.error])))
            return
        cell.outputs = self._output_nodes(event)
        if not event.ok:
            cell.metadata.tags = ["failed", "raises-exception"]  # with the second one "run all" goes on after it
        elif EXIT.search(cell.source):
            cell.metadata.tags = ["raises-exception"]  # elsewhere an exit without an error is an error

    @take.register(RoundClosed)
    def _round_closed(self, event: RoundClosed) -> None:
        if event.answer:
            answer = fence_printed_output(event.answer, self._rounds[-1].posts if self._rounds else ())
            self._add_markdown("## Answer\n\n", answer)
            self._looked_up += 1
            looked_up = self._rounds and self._looked_up <= _MAX_LOOKED_UP
            if sources := sources_html(
                number_sources(event.answer, self._rounds, parsed=self._parsed) if looked_up else ()
            ):
                inert = sources.replace("![", "!&#91;")
                self._add_cell(nbformat.v4.new_markdown_cell(inert, metadata={"tags": ["sources"]}))
        if event.error:
            self._add_markdown("## No answer\n\nThe round failed: ", event.error)

    def _add_markdown(self, heading: str, markdown: str) -> None:
        """Add cells of words that others have written, the first one below a heading."""
        first, *more = markdown_cells(markdown) or [""]
        gap = "\n\n" if first.startswith("`") and not heading.endswith("\n\n") else ""
        for text in (f"{heading}{gap}{first}", *more):
            self._add_cell(nbformat.v4.new_markdown_cell(text))

    def _add_cell(self, cell: nbformat.NotebookNode, *, at: int | None = None) -> None:
        """Add a cell under an id that depends on its place and words only, so that notebooks can be compared."""
        place = f"{len(self._cells)}\n{cell.cell_type}\n{cell.source}"
        cell.id = hashlib.sha256(place.encode("utf-8", "replace")).hexdigest()[:12]
        self._cells.insert(len(self._cells) if at is None else at, cell)

    def _output_nodes(self, event: CellRan) -> list[nbformat.NotebookNode]:
        streams = {"stdout": event.stdout, "stderr": event.stderr}
        outputs = [nbformat.v4.new_output("stream", name=name, text=text) for name, text in streams.items() if text]
        outputs += [
            nbformat.v4.new_output("display_data", data=self._artifact_data(artifact)) for artifact in event.artifacts
        ]
        if event.result is not None:
            outputs.append(
                nbformat.v4.new_output(
                    "execute_result", data={"text/plain": event.result}, execution_count=max(event.cell, 0)
                )
            )
        if not event.ok:
            lines = event.error.splitlines()
            last = max((index for index, line in enumerate(lines) if line.startswith("Traceback (")), default=0)
            error = next((match for line in lines[last:] if (match := _EXCEPTION.match(line))), None)
            name, value = (error[1], error[2] or "") if error else ("Stopped", event.error.strip())
            outputs.append(nbformat.v4.new_output("error", ename=name, evalue=value, traceback=lines))
        return outputs

    def _artifact_data(self, artifact: Mapping[str, Any]) -> dict[str, str]:
        """Return an artifact as data by MIME type: its picture if it is one and still there, and always its name."""
        path = Path(artifact["path"])
        name = path.name + (f": {artifact['preview']}" if artifact.get("preview") else "")
        if not is_picture(path) or (self._below and not Path(os.path.abspath(path)).is_relative_to(self._below)):
            return {"text/plain": name}
        try:
            mime, data = self._pictures.read_mime_data(path)
        except FileNotFoundError:
            return {"text/plain": name}
        except (OSError, UnsafeSvgError) as error:
            return {"text/plain": f"{name} (not shown: {getattr(error, 'strerror', None) or error})"}
        return {"text/plain": name, mime: data}


def files_of_plugins(event: SessionOpened) -> dict[str, str]:
    """Return the file of each plugin by name; empty: it was read from none, or the journal does not say it."""
    return {name: event.plugin_files.get(name, "") for name in event.plugins}


def loading_code(plugins: Mapping[str, str]) -> str:
    """Return code that makes plugins functions of a notebook.

    Args:
        plugins: The YAML or Python file of each, by name; empty: not known. The line of one that is neither shipped nor
            has a file is a comment, to be completed.
    """
    shipped = shipped_folder("plugins")
    lines = []
    for name, file in plugins.items():
        if (shipped / f"{name}.yaml").is_file() and (not file or Path(file).parent == shipped):
            lines.append(f'{name} = load_plugin("{name}", ".")')
        elif file.endswith(".py"):
            spec = f"next(spec for spec in read_functions({file!r}) if spec.name == {name!r})"
            lines.append(f'{name} = load_plugin({spec}, ".")')
        else:
            lines.append(
                f'{name} = load_plugin({file!r}, ".")' if file else f'# {name} = load_plugin("PATH/{name}.yaml", ".")'
            )
    head = "# The plugins that the code below calls, as functions of this notebook: they run here, in no sandbox."
    imports = ["from tw_autogen.plugin import read_functions"] * any("read_functions(" in line for line in lines)
    return "\n".join([head, _NEEDS_PACKAGE, *imports, "from tw_autogen.testing import load_plugin", "", *lines])
