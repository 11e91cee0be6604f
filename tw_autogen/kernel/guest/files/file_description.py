"""What a file holds, in lines for a prompt: its layout as the text shows it; `describe` is what code calls."""

from __future__ import annotations

import contextlib
import json
import lzma
import os
import sqlite3
import time
import zipfile
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

from .column_profile import NULLS, Column, profile_columns
from .csv_dialect import (
    COMPRESSED,
    SAMPLE_BYTES,
    TextStart,
    find_separator,
    members_of,
    opened,
    read_start,
    table_separator,
    tables_among,
)
from .database_files import open_database, quoted_name, whole_ranges
from .document_files import pdf_lines, word_lines
from .file_kinds import PICTURES, WORKBOOKS, content_kind, kind_of, other_kind, start_kind, why_in_git_lfs
from .file_size import size_words
from .fitted_lines import ALL_OF_IT
from .json_outline import outline, record_columns, record_lines
from .page_tables import is_undeclared_utf8, page_table, read_title_and_tables
from .plural import pluralize
from .schema_table import describe_schema_table, rows_of, stored_ranges, value_text
from .statistics_files import read_statistics
from .table_extent import is_hash_header, lines_above_header
from .text_encoding import encoding_words, find_encoding
from .text_outline import text_lines
from .text_table import MAX_CELLS, RAW_CHARS, block_lines, blocks_of_text, csv_table, cut_line
from .workbook_sheets import read_sheets
from .xml_records import read_records

MAX_CHARS = 20_000
"""How long the description of one file may be."""
_WHOLE_JSON_BYTES = 60_000_000
_MAX_BROKEN = 5
_SHEET_ROWS = 20_000
_MAX_TABLES = 30
_LETTER_LINES = 20_000
_TEXT_BYTES = 2_000_000
_PAGE_BYTES = 10_000_000
_CALLS = {
    "text": "pd.read_csv",
    "parquet": "pd.read_parquet",
    **dict.fromkeys(("arrow", "feather"), "pd.read_feather"),
    **dict.fromkeys(WORKBOOKS, "pd.read_excel"),
}
"""What reads a file of a kind that its name does not say."""
_MODULES = {suffix[1:]: opener.__module__ for suffix, opener in COMPRESSED.items()}
_TABLE_SECONDS, _RANGES_SECONDS = 1.0, 2.0
_SMALL_CHARS = 1000
"""A table, page or JSON up to here is shown whole, where that is shorter than what is said of it."""
_MAX_NAMED = 40
_NO_EXTRA = 'pip install "tw-autogen[data]"'


@dataclass
class Description:
    """What is said of a file.

    Args:
        headline: Its kind and size in a line.
        lines: The rest.
        tables: The columns by the name of the file, or of the sheet or table in it.
        whole: All of a small file, and what its text doesn't show; empty: it is not small.
        problem: Why it can't be read as its kind; empty if it can.
    """

    headline: str
    lines: list[str] = field(default_factory=list)
    tables: list[tuple[str, list[Column]]] = field(default_factory=list)
    whole: list[str] = field(default_factory=list)
    problem: str = ""


def describe_file(path: str, name: str, *, terms: Collection[str] = ()) -> Description:
    """Describe a file by what it holds.

    Args:
        path: Where it lies.
        name: What code calls it; stands in the calls that read it.
        terms: Names of columns of other files, for texts.

    Returns:
        What is said of it. One that can't be read as its kind has a `problem`.
    """
    kind = kind_of(path)
    try:
        if why := why_in_git_lfs(path):
            return Description(why, problem=why)
        if found := other_kind(path, kind):
            return _described_as(found, path, name, terms)
        return _KINDS.get(kind, _describe_other)(path, name, terms)
    except ImportError as error:
        why = f"not readable as {kind} here: {_one_line(error)}; {_NO_EXTRA}"
    except MemoryError:
        why = "too large to be looked through"
    except Exception as error:  # noqa: BLE001 - readers of a dozen formats raise what they like of a broken file
        why = f"not readable as {kind or 'text'}: {_one_line(error)}"
    return Description(why, problem=why)


def _described_as(found: str, path: str, name: str, terms: Collection[str]) -> Description:
    """Return the description of a file that is of another kind than its name says, with a call that reads it."""
    kind = kind_of(path)
    table = kind in ("csv", "tsv")
    if found in _MODULES and not table:
        described = Description(f"compressed, {_MODULES[found]}.open decompresses it")
    elif found == "text" or found in _MODULES:
        described = _with_call(_describe_csv(path, name, terms), name)
    elif found == "json":
        try:
            described = _describe_json(path, name, terms)
        except ValueError:  # its first value looks like it
            return _describe_csv(path, name, terms)
    else:
        described = _KINDS[found](path, name, terms)
        if found in _CALLS:
            _with_call(described, name, function=_CALLS[found])
    if table and found in ("zip", *_MODULES):
        with_option = f"pd.read_csv({name!r}, compression={'gzip' if found == 'gz' else found!r}"
        for lines in (described.lines, described.whole):
            lines[:] = [line.replace(f"pd.read_csv({name!r}", with_option) for line in lines]
    described.headline = f"no {kind}, whatever its name says: {described.headline}"
    return described


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def _describe_csv(path: str, name: str, terms: Collection[str]) -> Description:
    large = os.path.getsize(path) > SAMPLE_BYTES
    start = read_start(path, max_bytes=SAMPLE_BYTES // 4 if large else SAMPLE_BYTES)
    if not start.lines:
        raise ValueError("it is empty")
    tabs = ".tsv" in path.lower()
    plain = _plain_lines(start)
    above = lines_above_header(plain, tabs=tabs)
    some = [line for line in plain[above:] if line.strip()][:200]
    separator = find_separator(some, tabs=tabs)
    if not any(separator in line for line in some):  # blanks may part its values
        separator = table_separator(plain[above:]) or separator
    return _describe_rows(start, name, above, separator)


def _describe_rows(start: TextStart, name: str, above: int, separator: str) -> Description:
    blocks, separator = blocks_of_text(start, separator)
    if blocks:
        headline, lines, columns = block_lines(
            blocks,
            name,
            separator,
            lambda found: replace(found, encoding=start.encoding, broken=start.broken > 0).call(name),
        )
        remarks = [f"to be read with {line.strip()}" for line in lines if line.startswith("  pd.read_")]
    else:
        table = csv_table(start, name, above, separator)
        headline, lines, columns = table.describe()
        remarks = table.remarks
    words = (
        "table with blanks"
        if separator == " "
        else "CSV" + {",": "", "\t": " with tabs"}.get(separator, f" with {separator!r}")
    )
    headline = f"{words}{_encoding_words(start)}: {headline}"
    return Description(headline, lines, [(name, columns)], _small_text_lines(start, remarks))


def _encoding_words(start: TextStart) -> str:
    nuls = f", with {pluralize(start.nuls, 'NUL')}, shown as �" if start.nuls else ""
    return encoding_words(start.encoding, "".join(start.lines[:_LETTER_LINES]), broken=start.broken) + nuls


def _small_text_lines(start: TextStart, remarks: Sequence[str] = ()) -> list[str]:
    """Return all lines of a small text with remarks below; empty if it is not small."""
    if not start.whole or sum(map(len, start.lines)) > _SMALL_CHARS:
        return []
    return [ALL_OF_IT, *(f"| {line}" for line in "".join(start.lines).splitlines()), *remarks]


def _describe_json(path: str, name: str, terms: Collection[str]) -> Description:
    with opened(path) as file:
        content = file.read(_WHOLE_JSON_BYTES + 1)
    if len(content) > _WHOLE_JSON_BYTES:
        start = content[:RAW_CHARS].decode("utf-8", "replace")
        return Description("JSON, too large to be looked through; it begins:", [f"| {cut_line(start)}"])
    encoding = find_encoding(content)
    try:
        value = json.loads(content.decode(encoding).removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        if error.msg.startswith("Unterminated") or error.pos >= len(error.doc.rstrip()) > 0:
            raise ValueError(f"it is cut off: {error}") from error
        if not error.doc[: error.pos].strip() and (described := _describe_data(path, name, terms)).tables:
            described.headline = f"no JSON, whatever its name says: {described.headline}"
            return _with_call(described, name)
        if error.msg != "Extra data" or error.lineno == 1 or "\n" in error.doc[: error.pos].strip():
            raise
        described = _describe_json_lines(path, name, terms)
        described.headline += f", to be read with pd.read_json({name!r}, lines=True)"
        return described
    headline, lines, columns = outline(value)
    headline += f", {encoding}" if not encoding.startswith("utf-8") else ""
    first = value[0] if isinstance(value, list) and value else value
    if lines:
        lines.append(f"first: {cut_line(json.dumps(first, ensure_ascii=False, default=str))}")
    whole = _small_text_lines(read_start(path)) if len(content) <= 4 * _SMALL_CHARS else []
    return Description(headline, lines, [(name, columns)] if columns else [], whole)


def _describe_json_lines(path: str, name: str, terms: Collection[str]) -> Description:
    start = read_start(path)
    lines = [(number, line) for number, line in enumerate(start.lines, 1) if line.strip()]
    if not lines:
        return Description("JSON lines: none")
    looked = lines[:_SHEET_ROWS]
    values, broken = _parsed_lines(looked)
    if not values:
        raise ValueError(f"line {looked[0][0]} is no JSON")
    more = len(lines) > len(looked) or not start.whole
    count = len(lines) + start.more_lines if start.more_lines is not None else None
    count_text = (f"about {count}" if more else str(len(values))) if count is not None else f"more than {len(lines)}"
    sample = f", judged by the first {len(looked)}" if more else ""
    torn = []
    if broken:
        shown = ", ".join(str(number) for number, _ in broken[:_MAX_BROKEN])
        shown = f"{shown}, …; {len(broken)} lines" if len(broken) > _MAX_BROKEN else shown
        torn = [f"no JSON, and read_json fails there: line {shown}, such as | {cut_line(broken[0][1])}"]
    records = [value for value in values if isinstance(value, dict)]
    if len(records) < len(values):
        kinds = ", ".join(sorted({type(value).__name__ for value in values}))
        return Description(f"JSON lines, {count_text}{sample}, of {kinds}", [*torn, f"| {cut_line(looked[0][1])}"])
    said_lines = [*torn, *record_lines(records), f"first: {cut_line(looked[0][1])}"]
    headline = f"JSON lines: {count_text} objects{sample}"
    return Description(headline, said_lines, [(name, record_columns(records))], _small_text_lines(start))


def _parsed_lines(lines: Sequence[tuple[int, str]]) -> tuple[list[Any], list[tuple[int, str]]]:
    """Return the values of lines of JSON, and the lines that are none, which a log that was cut off may hold."""
    values, broken = [], []
    for number, line in lines:
        try:
            values.append(json.loads(line))
        except (ValueError, RecursionError):
            broken.append((number, line))
    return values, broken


def _describe_workbook(path: str, name: str, terms: Collection[str]) -> Description:
    titles, sheets = read_sheets(path, content_kind(path), max_sheets=_MAX_TABLES, max_rows=_SHEET_ROWS)
    result = Description(f"workbook with {pluralize(len(titles), 'sheet')}")
    if len(titles) > 1:
        result.headline += (
            "; pd.read_excel without sheet_name reads the first one alone, with sheet_name=None all of them"
        )
    for sheet in sheets:
        headline, lines, columns = sheet.describe(name, several=len(titles) > 1)
        result.lines += [f"sheet {sheet.title!r}: {headline}", *(f"  {line}" for line in lines)]
        if columns:
            result.tables.append((f"{name}: {sheet.title}", columns))
    result.lines += _not_looked_at("sheet", titles[len(sheets) :])
    if hidden := [sheet.title for sheet in sheets if sheet.hidden]:
        result.lines.append(f"hidden sheets: {', '.join(map(repr, hidden))}")
    return result


def _not_looked_at(kind: str, names: Sequence[str]) -> list[str]:
    shown = ", ".join(map(repr, names[:_MAX_NAMED])) + (", …" if len(names) > _MAX_NAMED else "")
    return [f"{pluralize(len(names), f'more {kind}')}, not looked at: {shown}"] if names else []


def _describe_columnar(path: str, name: str, terms: Collection[str]) -> Description:
    if is_parquet := content_kind(path) == "parquet":
        from pyarrow import parquet  # optional: the extra `data` brings it

        file = parquet.ParquetFile(path)
        schema, count = file.schema_arrow, file.metadata.num_rows
        first: Any = next(file.iter_batches(_max_rows(schema.names), use_threads=False), None)
    else:
        from pyarrow import feather

        table = feather.read_table(path, use_threads=False, memory_map=True)
        schema, count = table.schema, table.num_rows
        first = table.slice(0, _max_rows(schema.names))
    columns = [column.to_pylist() for column in first.columns] if first is not None else []
    index = _index_names(schema)
    kept = [position for position, column in enumerate(schema.names) if str(column) not in index]
    names, kinds = ([str(listed[position]) for position in kept] for listed in (schema.names, schema.types))
    rows = rows_of(columns, kept)
    ranges = stored_ranges(file.metadata) if is_parquet and len(rows) < count else None
    described = describe_schema_table(name, names, rows, kinds, str(count), ranges=ranges)
    if index:
        rows = rows_of(columns, [schema.names.index(column) for column in index])
        shown = profile_columns(index, [[*map(value_text, row)] for row in rows], missing=NULLS)
        described[1].extend(f"the index that pandas makes, no column: {column.line}" for column in shown)
    other = "Feather" if kind_of(path) == "feather" else "Arrow, to be read with pd.read_feather"
    kind = "Parquet" if is_parquet else other
    return Description(f"{kind}: {described[0]}", *described[1:])


def _max_rows(columns: Collection[str]) -> int:
    """Return how many rows of so many columns are looked at."""
    return max(100, min(_SHEET_ROWS, MAX_CELLS // max(1, len(columns))))


def _describe_statistics(path: str, name: str, terms: Collection[str]) -> Description:
    table = read_statistics(path, name, max_cells=MAX_CELLS)
    count = f"{'more than ' * table.more}{len(table.rows)}"
    headline, lines, tables = describe_schema_table(
        name, list(table.kinds), table.rows, list(table.kinds.values()), count
    )
    return Description(f"{table.program}: {headline}", lines + table.notes, tables)


def _index_names(schema: Any) -> list[str]:
    """Return the names of columns of an Arrow schema that pandas takes for the index."""
    stored = (schema.pandas_metadata or {}).get("index_columns", [])
    there = set(map(str, schema.names))
    return [name for name in stored if isinstance(name, str) and name in there]  # a range is no column


def _describe_sqlite(path: str, name: str, terms: Collection[str]) -> Description:
    with contextlib.closing(open_database(path)) as database:
        listed = _tables_of(database)
        ends = time.monotonic() + _RANGES_SECONDS
        result = Description(f"SQLite with {pluralize(len(listed), 'table')}, views included")
        for table, kind in listed[:_MAX_TABLES]:
            try:
                headline, lines, columns = _describe_table(database, table, ends)
            except sqlite3.Error as error:
                result.lines.append(f"{kind} {table!r}: not read: {_one_line(error)}")
                result.problem = result.problem or f"{kind} {table!r} can't be read: {_one_line(error)}"
                continue
            result.lines += [f"{kind} {table!r}: {headline}", *(f"  {line}" for line in lines)]
            result.tables.append((f"{name}: {table}", columns))
        result.lines += _not_looked_at("table", [name for name, _ in listed[_MAX_TABLES:]])
        return result


def _tables_of(database: sqlite3.Connection) -> list[tuple[str, str]]:
    """Return names and kinds of the tables and views, without those in which a full-text index keeps its own."""
    listed = database.execute(
        "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT GLOB 'sqlite_*' "
        "ORDER BY name"
    ).fetchall()
    shadows = {row[1] for row in database.execute("PRAGMA table_list") if row[2] == "shadow"}  # none before 3.37
    return [(str(name), str(kind)) for name, kind in listed if name not in shadows]


def _describe_table(database: sqlite3.Connection, table: str, ends: float) -> tuple[str, list[str], list[Column]]:
    quoted = quoted_name(table)
    kinds = {str(row[1]): str(row[2]) or "any" for row in database.execute(f"PRAGMA table_xinfo({quoted})")}
    keys = [str(row[1]) for row in database.execute(f"PRAGMA table_info({quoted})") if row[5]]
    most = _max_rows(kinds)
    try:
        names, rows, whole = _first_rows(database, f"SELECT * FROM {quoted} LIMIT {most}")
    except sqlite3.OperationalError as error:
        raise sqlite3.OperationalError(f"{error}; columns: {', '.join(map(repr, kinds))}") from error
    count, counted = str(len(rows)), list[list[Any]]()
    if not whole or len(rows) == most:
        _, counted, _ = _first_rows(database, f"SELECT count(*) FROM {quoted}", several=False)
        count = str(counted[0][0]) if counted else f"more than {count}"
    types = [kinds.get(name, "") for name in names]
    ranges = whole_ranges(database, quoted, names, ends) if counted and count != str(len(rows)) else None
    headline, lines, tables = describe_schema_table(table, names, rows, types, count, ranges=ranges)
    if keys:
        lines.append(f"primary key: {', '.join(map(repr, keys))}")
    for row in database.execute(f"PRAGMA foreign_key_list({quoted})"):
        lines.append(f"{row[3]!r} refers to {row[2]!r}.{row[4] or 'its key'}")
    return headline, lines, tables[0][1]


def _first_rows(
    database: sqlite3.Connection, query: str, *, several: bool = True
) -> tuple[list[str], list[list[Any]], bool]:
    """Return the names of the columns, the rows that come within the limit of time, and whether these are all.

    Args:
        database: It may hold views that take any time.
        query: What is asked for.
        several: It is an error if not even one row comes.

    Raises:
        sqlite3.Error: it can't be read.
    """
    ends = time.monotonic() + _TABLE_SECONDS
    database.set_progress_handler(lambda: int(time.monotonic() > ends), 10_000)
    rows: list[list[Any]] = []
    names: list[str] = []
    try:
        cursor = database.execute(query)
        names = [str(column[0]) for column in cursor.description]
        rows.extend(map(list, cursor))
    except sqlite3.OperationalError as error:
        if str(error) != "interrupted" or (several and not rows):
            raise
        return names, rows, False
    return names, rows, True


def _describe_text(path: str, name: str, terms: Collection[str]) -> Description:
    start = read_start(path, max_bytes=_TEXT_BYTES, counted_bytes=0)
    headline, lines = text_lines("".join(start.lines).replace("\r\n", "\n"), terms=terms, cut=not start.whole)
    return Description(f"{headline}{_encoding_words(start)}", [f"| {line}" for line in lines])


def _describe_xml(path: str, name: str, terms: Collection[str]) -> Description:
    with open(path, "rb") as file:
        content = file.read(_PAGE_BYTES + 1)
    records, why = None, "" if len(content) <= _PAGE_BYTES else "XML, too large to be looked through: "
    try:
        records = None if why else read_records(content)
    except SyntaxError as error:  # of which ElementTree's is one
        why = f"no well-formed XML, {error}: "
    if records is None:
        described = _describe_text(path, name, terms)
        described.headline = f"{why}{described.headline}"
        return described
    most = max(100, MAX_CELLS // len(records.names))
    count = len(records.rows)
    headline, lines, tables = describe_schema_table(
        name, records.names, records.rows[:most], [""] * len(records.names), str(count)
    )
    lines += [*records.notes, f"to be read with {records.call(name)}"]
    return Description(f"XML <{records.root}>, its elements {records.path!r}: {headline}", lines, tables)


def _plain_lines(start: TextStart) -> list[str]:
    return [line.rstrip("\r\n").lstrip("\ufeff") for line in start.lines[:1000]]


def _describe_data(path: str, name: str, terms: Collection[str]) -> Description:
    """Describe a text that may be a table, whatever its name says."""
    start = read_start(path)
    plain = _plain_lines(start)
    above = next((index for index, line in enumerate(plain) if line.strip() and not line.startswith("#")), 0)
    if separator := table_separator(plain[above:]):
        above -= bool(above) and is_hash_header(plain[above - 1], plain[above:], separator)
        return _describe_rows(start, name, above, separator)
    return _describe_text(path, name, terms)


def _describe_page(path: str, name: str, terms: Collection[str]) -> Description:
    with open(path, "rb") as file:
        content = file.read(_PAGE_BYTES + 1)
    encoding = "utf-8" if is_undeclared_utf8(content) else None
    title, tables = read_title_and_tables(content[:_PAGE_BYTES], encoding=encoding)
    said_title = f", title {title[:100]!r}" if title else ""
    part = " in its first 10 MB" if len(content) > _PAGE_BYTES else ""
    result = Description(f"HTML{said_title}, {pluralize(len(tables), 'table')}{part}")
    told = [
        (index, table)
        for index, table in enumerate(tables)
        if not table.layout and len(table.rows) > 1 and len(table.rows[0]) > 1
    ]
    for position, one in sorted(sorted(told, key=lambda pair: -len(pair[1].rows))[:3], key=lambda pair: pair[0]):
        table = page_table(one, name, position, encoding)
        headline, lines, columns = table.describe()
        caption = f", caption {one.caption[:100]!r}" if one.caption else ""
        result.lines += [f"table {position}{caption}: {headline}", *(f"  {line}" for line in lines)]
        result.tables.append((f"{name}: table {position}", columns))
    if len(content) <= _SMALL_CHARS:
        result.whole = _small_text_lines(
            read_start(path), [line.strip() for line in result.lines if "to be read with" in line]
        )
    return result


def _describe_archive(path: str, name: str, terms: Collection[str]) -> Description:
    with zipfile.ZipFile(path) as archive:
        entries = members_of(archive)
        alone = len(archive.namelist()) == 1  # as pandas counts
    described = _archive_listing("ZIP", [(entry.filename, entry.file_size) for entry in entries])
    if any(entry.flag_bits & 1 for entry in entries):
        described.headline += ", encrypted"
        return described
    tables = tables_among(entry.filename for entry in entries)
    if len(tables) != 1:
        if entries:
            described.lines.append(
                f"a file of it is opened with zipfile.ZipFile({name!r}).open({entries[0].filename!r})"
            )
        return described
    table = _with_call(_describe_csv(path, name, terms), name)
    if len(entries) == 1:
        table.headline = f"ZIP archive of {tables[0]!r}: {table.headline}"
    else:
        table.headline = f"{described.headline}, one is a table of text, {tables[0]!r}: {table.headline}"
        table.lines += [f"in the archive: {line}" for line in described.lines]
        table.whole = []
    if not alone:
        opens = f"pd.read_csv(zipfile.ZipFile({name!r}).open({tables[0]!r})"
        for lines in (table.lines, table.whole):
            lines[:] = [line.replace(f"pd.read_csv({name!r}", opens) for line in lines]
    return table


def _describe_tar(path: str, name: str, terms: Collection[str]) -> Description:
    import tarfile  # not needed before such a file is described

    with tarfile.open(path) as archive:
        members = [(member.name, member.size) for member in archive if member.isfile()]
    described = _archive_listing("TAR", members)
    described.lines.append(f"to be read with tarfile.open({name!r})")
    return described


def _archive_listing(kind: str, files: Sequence[tuple[str, int]]) -> Description:
    lines = [f"{name!r}: {size_words(size)}" for name, size in files[:_MAX_NAMED]]
    more = [f"… {len(files) - _MAX_NAMED} more"] if len(files) > _MAX_NAMED else []
    return Description(f"{kind} archive of {pluralize(len(files), 'file')}", lines + more)


def _with_call(described: Description, name: str, *, function: str = "pd.read_csv") -> Description:
    """Return the description of a file that is compressed, or has another kind's name, with a call in any case."""
    if not any(line.strip().startswith(("pd.read_", "to be read with ")) for line in described.lines):
        described.lines.append(call := f"to be read with {function}({name!r})")
        described.whole += [call] if described.whole else []
    return described


def _describe_spss(path: str, name: str, terms: Collection[str]) -> Description:
    there = "is installed" if find_spec("pyreadstat") else "is not installed"
    return Description(f"SPSS file, not looked through: pd.read_spss reads it with pyreadstat, which {there}")


def _describe_other(path: str, name: str, terms: Collection[str]) -> Description:
    if module := _MODULES.get(os.path.splitext(path)[1].lower()[1:]):
        return _describe_compressed(path, name, terms, module)
    kind = content_kind(path)
    if kind in _MODULES:
        return Description(f"compressed, {_MODULES[kind]}.open decompresses it")
    if kind in _KINDS and (kind != "xls" or not kind_of(path)):  # other files of Office begin the same
        return _KINDS[kind](path, name, terms)
    with open(path, "rb") as file:
        return Description("binary") if b"\0" in file.read(1024) else _describe_data(path, name, terms)


def _describe_compressed(path: str, name: str, terms: Collection[str], module: str) -> Description:
    with contextlib.suppress(OSError, EOFError, lzma.LZMAError, zlib.error):  # torn
        try:
            described = _describe_data(path, name, terms)
        except ValueError:  # no text
            with opened(path) as file:
                kind = start_kind(file.read(1024))
            return Description(f"{kind}, compressed: {module}.open decompresses it" if kind else "binary")
        if described.tables:
            return _with_call(described, name)
        described.lines.append(f"to be read with {module}.open({name!r}, 'rt')")
        return described
    return Description("binary")


_KINDS: Mapping[str, Callable[[str, str, Collection[str]], Description]] = {
    "csv": _describe_csv,
    "tsv": _describe_csv,
    "jsonl": _describe_json_lines,
    "ndjson": _describe_json_lines,
    "parquet": _describe_columnar,
    "feather": _describe_columnar,
    "arrow": _describe_columnar,
    **dict.fromkeys(WORKBOOKS, _describe_workbook),
    "dta": _describe_statistics,
    "sas7bdat": _describe_statistics,
    "xpt": _describe_statistics,
    "sav": _describe_spss,
    "json": _describe_json,
    "geojson": _describe_json,
    "db": _describe_sqlite,
    "sqlite": _describe_sqlite,
    "sqlite3": _describe_sqlite,
    "txt": _describe_data,
    "md": _describe_text,
    "rst": _describe_text,
    "log": _describe_text,
    "html": _describe_page,
    "htm": _describe_page,
    "xml": _describe_xml,
    "zip": _describe_archive,
    "tar": _describe_tar,
    "pdf": lambda path, name, terms: Description(*pdf_lines(path, name)),
    "docx": lambda path, name, terms: Description(*word_lines(path, name, terms)),
    **dict.fromkeys(PICTURES, lambda path, name, terms: Description(f"{content_kind(path)} picture")),
}
