"""Which files an error is about: named by it, by its text or by the failed line; missing, refused, read or written."""

from __future__ import annotations

import ast
import errno
import itertools
import os
import re
import traceback
from collections.abc import Iterator
from types import FrameType, TracebackType

from .output_capture import clip
from .traceback_text import own_words

MAX_PATH_CHARS = 1000
"""Longer paths are not looked at."""
_MAX_FILES = 4
_MAX_FRAMES = 50
_OPEN = "_modified_open"
_MAX_LINE_CHARS = 2000
_TEXT_CHARS = 100_000
"""How much of an exception's text is searched."""
_QUOTED = re.compile(r"""['"`](/[^'"`\n]+)['"`]""")
_UNQUOTED = (
    re.compile(r"\(os error \d{1,5}\): ([^\n]+)"),  # of polars, and what else is written in Rust
    re.compile(r"No files found that match the pattern \"([^\"\n]+)\""),  # of duckdb
    re.compile(r"\AParent directory (/[^\n]+) does not exist"),  # of torch
    re.compile(r"\A([^\n:]+): (?:No such file or directory|Permission denied)"),  # of GDAL
    re.compile(r"\A(/[^\n]+)\Z"),  # of pyarrow
)
_NO_PLACE = re.compile(
    r"No such file|non-existent directory|[Uu]nable to open|[Cc]annot open|[Cc]an't open|No files found that match"
    r"|expanded paths were empty|Parent directory"
)
_NO_FOLDER = re.compile(r"non-existent directory|Parent directory")
_NOT_ALLOWED = re.compile(r"Permission denied|Read-only file system|Operation not permitted")
_CUT = re.compile(r"\(os error \d{1,5}\): \.\.\.([^\n(]+) \(")
"""The end of a long path, as polars shows it."""
_UNNAMED = "unable to open database file"
"""What SQLite says, without the file's name."""
_VIRTUAL = "/vsi"
"""How GDAL's names of archives and addresses begin."""
_MODE = re.compile(r"""(?:,\s?|mode\s?=\s?)['"]([rwaxbt+]{1,3})['"]""")
_FORMATS = "csv|excel|parquet|feather|json|pickle|hdf|html|stata|xml|latex|markdown|orc|sql|netcdf|zarr|file"
_READS = re.compile(r"_*(?:im)?(?:read|load|scan|parse|listdir|iterdir|glob|walk)")
_WRITES = re.compile(rf"_*(?:im)?(?:to_(?:{_FORMATS})|write|save|dump|export|mkdir|makedirs|touch)")
_CALL_THAT_READS = re.compile(r"read|load|scan|listdir")
_CALL_THAT_WRITES = re.compile(
    rf"\.(?:to_(?:{_FORMATS})|write|save|dump|mkdir|touch|unlink|rmdir)|makedirs\("
    r"|os\.(?:remove|rename|replace|chmod|truncate)\("
)


def error_text(error: BaseException) -> str:
    """Return the text of an exception as far as it is searched; empty if it can't be made."""
    return clip(own_words(error), _TEXT_CHARS)


def last_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the innermost frames of an error's traceback, without the one of IPython's own `open`."""
    return [frame for frame in traceback.extract_tb(_innermost_traceback(error)) if frame.name != _OPEN]


def failed_line(error: BaseException) -> str:
    """Return the line of source that raised an error; empty if it is not known."""
    frames = last_frames(error)
    return frames[-1].line or "" if frames else ""


def is_missing(error: BaseException) -> bool:
    """Return whether an error says that there is no such file."""
    number = getattr(error, "errno", None)
    if number is not None or is_refused(error):
        return bool(number == errno.ENOENT)
    return isinstance(error, FileNotFoundError) or bool(_NO_PLACE.search(error_text(error)))


def is_refused(error: BaseException) -> bool:
    """Return whether an error says that a file may not be used so."""
    number = getattr(error, "errno", None)
    if number is None:
        return bool(_NOT_ALLOWED.search(error_text(error)))
    return number in (errno.EACCES, errno.EROFS, errno.EPERM)


def is_about_folder(error: BaseException) -> bool:
    """Return whether what an error names is the folder for a file, and not the file."""
    return getattr(error, "errno", None) is None and bool(_NO_FOLDER.search(error_text(error)))


def named_files(error: BaseException) -> list[str]:
    """Return the files that an error is about, as code has named them; at most four."""
    named = [getattr(error, name, None) for name in ("filename2", "filename")]  # where to comes first
    found = [os.fsdecode(name) for name in named if isinstance(name, str | bytes | os.PathLike)]
    if not found:
        text = error_text(error)
        found = [match[1] for match in _QUOTED.finditer(text)]
        found = found or [hit[1] for pattern in _UNQUOTED if (hit := pattern.search(text))]
        cut = _CUT.search(text)
        if cut or _UNNAMED in text:
            found = [name for name in _of_line(error) if name.endswith(cut[1] if cut else "")]
    fit = (
        fromkey
        for fromkey in dict.fromkeys(found)
        if len(fromkey) <= MAX_PATH_CHARS and not fromkey.startswith(_VIRTUAL)
    )
    return [name for name in fit if "\0" not in name][:_MAX_FILES]


def writes(error: BaseException) -> bool:
    """Return whether what failed was to write, as far as the functions and the line that failed show.

    The innermost one that shows it decides; what shows nothing counts as reading.
    """
    if getattr(error, "errno", None) == errno.EROFS:
        return True
    frames = last_frames(error)
    line = frames[-1].line or "" if frames else ""
    opened = line.count("open(") + line.count("File(")
    modes = _MODE.findall(line) if opened else []
    if modes or (opened and _is_cell(frames[-1].filename)):
        return len(modes) >= opened and all(set(mode) & set("wax+") for mode in modes)
    if frames and _is_cell(frames[-1].filename):
        return bool(_CALL_THAT_WRITES.search(line)) and not _CALL_THAT_READS.search(line)
    library = itertools.takewhile(lambda frame: not _is_cell(frame.filename), reversed(frames))
    said = (
        _WRITES.match(frame.name) is not None
        for frame in library
        if (_READS.match(frame.name) or _WRITES.match(frame.name))
    )
    return next(said, False)


def _innermost_traceback(error: BaseException) -> TracebackType | None:
    """Return the innermost part of a traceback: there may be millions of frames above it."""
    end = ahead = error.__traceback__
    for _ in range(_MAX_FRAMES):
        ahead = ahead.tb_next if ahead else None
    while end and ahead:
        end, ahead = end.tb_next, ahead.tb_next
    return end


def _is_cell(file_name: str) -> bool:
    return file_name.startswith("<cell ")


def _of_line(error: BaseException) -> Iterator[str]:
    """Yield the paths in the line of a cell that failed: its texts, and those that its variables hold."""
    frames = zip(
        traceback.walk_tb(_innermost_traceback(error)), traceback.extract_tb(_innermost_traceback(error)), strict=True
    )
    cells = [(frame, found.line or "") for (frame, _), found in frames if _is_cell(found.filename)]
    if not cells or len(cells[-1][1]) > _MAX_LINE_CHARS:
        return
    frame, line = cells[-1]
    try:
        tree = ast.parse(line + " pass" * line.endswith(":"))
    except (SyntaxError, ValueError, MemoryError, RecursionError):  # a line of several
        return
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    for given in itertools.chain.from_iterable((*call.args, *(word.value for word in call.keywords)) for call in calls):
        value = _value_in_frame(given, frame)
        text = os.fspath(value) if isinstance(value, str | os.PathLike) else ""
        if isinstance(text, str) and "/" in text and "\n" not in text:
            yield text.removeprefix("sqlite:///").removeprefix("file:").partition("?")[0]


def _value_in_frame(node: ast.expr, frame: FrameType) -> object:
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    return node.value if isinstance(node, ast.Constant) else None
