"""What the data of a request looks like, in a few lines, so that no step is needed only to look at it."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd

from tw_autogen import bounded_json
from tw_autogen.kernel import installed_path
from tw_autogen.session.csv_dialect import COMPRESSED, find_dialect, opened, read_table

_HEAD_ROWS = 3
_WHOLE_BYTES = 50_000_000
_SAMPLE_ROWS = 10_000
_MOST_COLUMNS = 40
_TEXT_CHARS = 400
_WHOLE_COMPRESSED_BYTES = 5_000_000
_UNPACKED_BYTES = 200_000_000

_SMALL_CSV_BYTES = 5_000_000
_SMALL_CSV_CELLS, _SMALL_CSV_COLUMNS = 5_000_000, 1000  # time grows with the square of the columns
_SMALL_JSON_BYTES = 20_000
"""Up to here this process reads a file itself."""
_APART_MEMORY_BYTES = 2 << 30
APART_SECONDS = 30.0
_APART_CHARS = 200_000
_APART = """
import sys
sys.path[:] = sys.argv[3:]
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("tw_autogen", sys.argv[1] + "/__init__.py", submodule_search_locations=[sys.argv[1]])
sys.modules["tw_autogen"] = module_from_spec(spec)
spec.loader.exec_module(sys.modules["tw_autogen"])
from tw_autogen.session.data_profile import describe_apart
describe_apart(sys.argv[2])
"""
"""The folder above this package is not put on the path: other modules may lie there."""
_SQLITE = b"SQLite format 3\0"


def profile_file(path: Path, *, seconds: float = APART_SECONDS) -> str:
    """Describe a file: size, and what its kind allows (columns, dtypes, missing values, head; tables; first lines).

    What may take more memory or time than its size shows (workbooks, columnar, compressed and large files, databases)
    is read in a process of its own, with a time limit, and on Linux with 2 GB of memory.

    Args:
        path: A file that exists. A table over 50 MB is judged by its first 10 000 rows, and that is said.
        seconds: The time limit.

    Returns:
        Some lines; the first begins with the file's name. A file that can't be read as its kind is described by
        its size and the reason.
    """
    return _profile(path, seconds, path.name)[0]


def _profile(path: Path, seconds: float, shown: str) -> tuple[str, str]:
    """Return a file's description, and why it can't be read as its kind; empty if it can."""
    describe, kind = _kind(path)
    text, problem = _described(path, describe, kind) if _is_small(path, describe) else _described_apart(path, seconds)
    if shown != path.name:
        text = text.replace(f"({path.name!r},", f"({shown!r},")
    return f"{shown}: {_size(path)}, {text}", f"{Path(shown).name}: {problem}" if problem else ""


def _kind(path: Path) -> tuple[Callable[[Path], str], str]:
    """Return what describes a file, and its suffix, that of a compressed one without the compression's."""
    suffix = path.suffix.lower()
    kind = Path(path.stem).suffix.lower() if suffix in COMPRESSED else suffix
    describe = _KINDS.get(kind, _describe_other)
    if suffix in COMPRESSED and describe not in (_describe_csv, _describe_json_lines):
        describe = _describe_other
    return describe, kind


def _described(path: Path, describe: Callable[[Path], str], kind: str) -> tuple[str, str]:
    """Return what is said of a file, and the same again if that is why it can't be read as its kind."""
    try:
        return describe(path), ""
    except ImportError as error:
        why = f'not readable as {kind.lstrip(".")} here: {_one_line(error)}; pip install "tw-autogen[data]"'
    except MemoryError:
        why = "too large to be looked through"
    except Exception as error:  # noqa: BLE001 - readers of a dozen formats raise what they like of a broken file
        why = f"not readable as {kind.lstrip('.') or 'text'}: {_one_line(error)}"
    return why, why


def _described_apart(path: Path, seconds: float) -> tuple[str, str]:
    """Return what another process says of a file, as `_described`; it may end over it."""
    importable = installed_path(besides=[str(Path(pd.__file__).parents[1])])
    command = [sys.executable, "-I", "-S", "-c", _APART, str(Path(__file__).parents[1]), os.path.abspath(path)]
    try:
        done = subprocess.run([*command, *importable], stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds)
        text, problem = json.loads(done.stdout)
        return text, problem
    except subprocess.TimeoutExpired:
        why = f"not looked through: that took more than {seconds:g} s"
    except ValueError:
        why = "not looked through: reading it took too much, or broke its reader"
    return why, why


def describe_apart(name: str) -> None:
    """Print what is said of a file, and why it can't be read as its kind, as JSON; for a process of its own.

    Args:
        name: The file's path.
    """
    if sys.platform.startswith("linux"):
        import resource  # there is none on Windows

        resource.setrlimit(resource.RLIMIT_DATA, (_APART_MEMORY_BYTES, _APART_MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    describe, kind = _kind(Path(name))
    text, problem = _described(Path(name), describe, kind)
    sys.stdout.write(json.dumps([text[:_APART_CHARS], problem[:_APART_CHARS]]))


def _is_small(path: Path, describe: Callable[[Path], str]) -> bool:
    """Return whether a file can't take much more memory and time than its size shows."""
    size = path.stat().st_size
    if path.suffix.lower() in COMPRESSED and describe is not _describe_other:
        return False
    if describe is _describe_csv:
        if size > _SMALL_CSV_BYTES:
            return False
        rows, columns = _most_cells(path)
        return columns <= _SMALL_CSV_COLUMNS and rows * columns <= _SMALL_CSV_CELLS
    if describe in (_describe_json, _describe_json_lines):
        return size <= _SMALL_JSON_BYTES
    if describe is _describe_other:
        with contextlib.suppress(OSError), path.open("rb") as file:
            return file.read(len(_SQLITE)) != _SQLITE
    return describe in (_describe_text, _describe_other)


def _most_cells(path: Path) -> tuple[int, int]:
    """Return how many rows and columns a table can have at most, with whatever separator."""
    lines = path.read_bytes().replace(b"\r", b"\n").split(b"\n")
    return len(lines), max(1 + max(map(line.count, (b",", b";", b"\t", b"|"))) for line in lines)


def profile_value(name: str, value: Any) -> str:
    """Describe a variable that came with a request.

    Args:
        name: The variable's name.
        value: A table, an array, or anything that has a JSON form.
    """
    if isinstance(value, pd.DataFrame):
        return f"{name}: DataFrame, {_describe_frame(value)}"
    if isinstance(value, pd.Series):
        return f"{name}: Series, {_describe_frame(value.to_frame())}"
    text = repr(value)
    return f"{name}: {type(value).__name__}, {text if len(text) <= _TEXT_CHARS else text[:_TEXT_CHARS] + '…'}"


def profile_request(
    files: list[Path],
    variables: Mapping[str, Any],
    limit_chars: int,
    *,
    names: Sequence[str] | None = None,
    on_problem: Callable[[str], None] = lambda problem: None,
    seconds: float = APART_SECONDS,
) -> str:
    """Describe all that a request brings, within a limit; what doesn't fit is named by its first line only.

    Args:
        files: Those that it brings.
        variables: By name.
        limit_chars: How long the description may be.
        names: What code opens each by: a name in the working folder, or an absolute path; None: their own names.
        on_problem: Called with one line for each file that can't be read as what its name says.
        seconds: Time limit for each file that is read in a process of its own.

    Returns:
        Lines to put after the user's words; empty if the request brings nothing.
    """
    parts = []
    names = [path.name for path in files] if names is None else names
    profiles = [_profile(path, seconds, name) for path, name in zip(files, names, strict=True)]
    for _, problem in profiles:
        if problem:
            on_problem(problem)
    outside = [text for name, (text, _) in zip(names, profiles, strict=True) if os.path.isabs(name)]
    for title, found in (
        ("Files in the working folder:", [text for text, _ in profiles if text not in outside]),
        ("Large files at their own place, to be opened by the whole path, read-only:", outside),
        ("Variables in the kernel:", [profile_value(name, value) for name, value in variables.items()]),
    ):
        if found:
            parts.append(title)
            for text in found:
                fits = sum(map(len, parts)) + len(text) <= limit_chars
                parts.append("- " + (text if fits else _cut_lines(text.splitlines()[0])).replace("\n", "\n  "))
    return "\n".join(parts)


def _describe_csv(path: Path) -> str:
    compressed = path.suffix.lower() in COMPRESSED
    sample = path.stat().st_size > (_WHOLE_COMPRESSED_BYTES if compressed else _WHOLE_BYTES)
    dialect = find_dialect(path)
    frame = read_table(path, dialect, rows=_SAMPLE_ROWS if sample else None)
    found = ("its first rows: " if sample else "") + _describe_frame(frame)
    if len(frame.columns) and all(map(_is_number, frame.columns)):
        found += "\nevery name in its first line is a number; if that line is data, read it with header=None"
    call = dialect.call(path.name)
    return f"{found}\nto be read with {call}" if call else found


def _is_number(name: object) -> bool:
    try:
        float(str(name))
    except ValueError:
        return False
    return True


def _describe_json_lines(path: Path) -> str:
    with opened(path) as file:
        lines = [line for line in itertools.islice(file, _SAMPLE_ROWS + 1) if line.strip()]
    objects = [bounded_json.loads(line) for line in lines[:_SAMPLE_ROWS]]
    if not all(isinstance(one, dict) for one in objects):
        return f"JSON lines, beginning with a {type(objects[0]).__name__}" if objects else "no lines"
    first = "its first rows: " if len(lines) > _SAMPLE_ROWS else ""
    return f"JSON lines, {first}{_describe_frame(pd.DataFrame(objects))}"


def _describe_arrow(path: Path) -> str:
    """Describe a Parquet or Feather file by its schema and its first rows; the rest is not read."""
    if path.suffix.lower() == ".parquet":
        from pyarrow import parquet  # optional: the extra `data` brings it

        table = parquet.ParquetFile(path)
        batch = next(table.iter_batches(_SAMPLE_ROWS), None)
        rows = table.metadata.num_rows
        frame = batch.to_pandas() if batch is not None else table.schema_arrow.empty_table().to_pandas()
    else:
        frame = pd.read_feather(path)
        rows = len(frame)
    return f"{rows} rows, the first ones: {_describe_frame(frame)}" if rows > len(frame) else _describe_frame(frame)


def _describe_excel(path: Path) -> str:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if sum(one.file_size for one in archive.infolist()) > _UNPACKED_BYTES:
                return "a workbook, too large to be looked through"
    sheets = pd.read_excel(path, sheet_name=None, nrows=_SAMPLE_ROWS)
    return "\n".join(f"sheet {name!r}: {_describe_frame(frame)}" for name, frame in sheets.items())


def _describe_json(path: Path) -> str:
    if path.stat().st_size > _WHOLE_BYTES:
        return "JSON"
    plain = bounded_json.loads(path.read_text(encoding="utf-8"))
    if isinstance(plain, list) and plain and all(isinstance(one, dict) for one in plain):
        return f"a JSON list of objects: {_describe_frame(pd.DataFrame(plain))}"
    if isinstance(plain, dict):
        return _cut_lines(f"a JSON object with the keys {', '.join(map(repr, list(plain)[:_MOST_COLUMNS]))}")
    return f"a JSON {type(plain).__name__}" + (f" of {len(plain)}" if isinstance(plain, list) else "")


def _describe_sqlite(path: Path) -> str:
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
        rows = database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name")
        tables = [name for (name,) in rows]
        return "SQLite, " + "\n".join(_describe_table(database, name) for name in tables[:_MOST_COLUMNS])


def _describe_table(database: sqlite3.Connection, name: str) -> str:
    quoted = '"' + name.replace('"', '""') + '"'
    ((count,),) = database.execute(f"SELECT count(*) FROM {quoted}")
    columns = ", ".join(f"{row[1]} {row[2]}".strip() for row in database.execute(f"PRAGMA table_info({quoted})"))
    return f"table {name}: {count} rows, columns {columns}"


def _describe_text(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        start = file.read(_TEXT_CHARS + 1)
    if len(start) <= _TEXT_CHARS:
        count = len(start.splitlines())
        return f"text of {count} line{'' if count == 1 else 's'}"
    return f"text, beginning:\n{start[:_TEXT_CHARS]}…"


def _describe_other(path: Path) -> str:
    with path.open("rb") as file:
        start = file.read(1024)
    if start.startswith(_SQLITE):
        return _describe_sqlite(path)
    return "binary" if b"\0" in start else _describe_text(path)


def _describe_frame(frame: pd.DataFrame) -> str:
    """Return shape, columns with dtypes and missing counts, and the first rows as CSV."""
    missing = frame.isna().sum()
    columns = [
        f"{name} ({dtype}{f', {count} missing' if count else ''})"
        for name, dtype, count in zip(frame.columns, frame.dtypes, missing, strict=True)
    ]
    more = f", … {len(columns) - _MOST_COLUMNS} more" if len(columns) > _MOST_COLUMNS else ""
    head = frame.iloc[:_HEAD_ROWS, :_MOST_COLUMNS].to_csv(index=False).strip()
    shape = f"{len(frame)} rows x {len(columns)} columns"
    return f"{shape}: {', '.join(columns[:_MOST_COLUMNS])}{more}\nfirst rows:\n{_cut_lines(head)}"


def _cut_lines(text: str) -> str:
    return "\n".join(line if len(line) <= _TEXT_CHARS else f"{line[:_TEXT_CHARS]}…" for line in text.splitlines())


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _size(path: Path) -> str:
    size = path.stat().st_size
    if size < 1000:
        return f"{size} bytes"
    return f"{size / 1000:.1f} kB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"


_KINDS: Mapping[str, Callable[[Path], str]] = {
    ".csv": _describe_csv,
    ".tsv": _describe_csv,
    ".jsonl": _describe_json_lines,
    ".ndjson": _describe_json_lines,
    ".parquet": _describe_arrow,
    ".feather": _describe_arrow,
    ".xlsx": _describe_excel,
    ".xls": _describe_excel,
    ".json": _describe_json,
    ".db": _describe_sqlite,
    ".sqlite": _describe_sqlite,
    ".sqlite3": _describe_sqlite,
    ".txt": _describe_text,
    ".md": _describe_text,
    ".log": _describe_text,
}
