"""Reading of a Parquet file whose description of itself may be wrong, within bounds.

Sizes are those that the reading itself goes by: lengths of chunks in the footer, and the headers of pages, each of
which is decompressed to the size that its header says. Sums and counts in the footer are not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from tw_autogen.setting_values import texts_of

_MAX_VALUES = 50_000_000
_MAX_BYTES = 1 << 30
_BATCH_BYTES = 256 << 20
_BATCH_ROWS = 65_536
_OBJECT_BYTES = 64
"""What Python takes for a text beside its characters."""

_MAX_FOOTER_BYTES = 2 << 20
"""Each 3 bytes of a footer may become a kilobyte."""

_MAX_PAGES = 100_000
_DEEPEST = 8
_TAIL_BYTES = 8
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS = (4, 5, 6)
_TYPE, _LONGEST_LABEL, _MAX_LABELS = re.compile(r"[A-Za-z]{1,20}\d{0,2}(\[[\w ,:/+-]{0,60}\])?"), 1000, 10_000
_ZONE_FILE = "dateutil"
"""Begins a zone that pandas takes for the path of a file."""
_UNCOMPRESSED, _COMPRESSED = (2,), (3,)
_VALUES = ((5, 1), (8, 1))
"""Fields of a page's header, by their numbers; how many values there are says that of a page of data, V1 or V2."""


def read_parquet(file: BinaryIO) -> Any:
    """Return a table as a DataFrame, whatever few bytes stand for.

    Args:
        file: Open for reading; anybody may have written it.

    Raises:
        ValueError: it is no Parquet file, has too many values, or takes too much memory.
    """
    import pyarrow as pa  # optional: the extra `data` brings it
    from pyarrow import parquet

    size = file.seek(0, 2)
    file.seek(max(0, size - _TAIL_BYTES))
    footer = int.from_bytes(file.read(4), "little")
    if footer > _MAX_FOOTER_BYTES:
        raise ValueError(f"the table's description takes {footer} bytes, of {_MAX_FOOTER_BYTES}")
    opened = parquet.ParquetFile(file)
    rows = max(1, min(_BATCH_ROWS, _BATCH_BYTES // _widest_row(file, size, opened.metadata)))
    return _to_dataframe(pa.Table.from_batches(_read_batches(opened, rows), opened.schema_arrow))


def _widest_row(file: BinaryIO, size: int, metadata: Any) -> int:
    """Return how many bytes a row may take at most.

    Raises:
        ValueError: the table has too many values, or its pages take too much memory.
    """
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    if max(metadata.num_rows, sum(group.num_rows for group in groups)) > _MAX_VALUES:
        raise ValueError(f"the table says that it has more than {_MAX_VALUES} rows, which a tool takes at most")
    widest, pages, values = 1, _MAX_PAGES, _MAX_VALUES
    for group in groups:
        chunks = [group.column(index) for index in range(group.num_columns)]
        starts = [_chunk_start(chunk) for chunk in chunks]
        if sum(chunk.total_compressed_size for chunk in chunks) > size or min(starts, default=0) < 0:
            raise ValueError("the table's columns do not lie in its file side by side")
        held = width = 0
        for chunk, start in zip(chunks, starts, strict=True):
            found = list(_read_page_headers(file, start, chunk.total_compressed_size, pages))
            pages -= len(found)
            values -= sum(number for _, number in found)  # a row may have a list of any length
            largest = max((page for page, _ in found), default=0)
            held += largest
            width += largest if "BYTE_ARRAY" in chunk.physical_type else 16  # one text may stand in each row
        if values < 0:
            raise ValueError(f"the table has more than {_MAX_VALUES} values, which a tool takes at most")
        if held > _MAX_BYTES:
            raise ValueError(f"the table's pages take more than {_MAX_BYTES >> 20} MB of memory")
        widest = max(widest, width)
    return widest


def _read_batches(opened: Any, rows: int) -> list[Any]:
    """Read a file in batches of rows.

    Raises:
        ValueError: they have too many values, or take too much memory.
    """
    batches, left, values = [], _MAX_BYTES, _MAX_VALUES
    for batch in opened.iter_batches(rows):
        counts = [_count_values(column) for column in batch.columns]
        values -= sum(counts)
        objects = (count for count, column in zip(counts, batch.columns, strict=True) if not _is_plain(column.type))
        left -= batch.nbytes + _OBJECT_BYTES * sum(objects)
        if values < 0:
            raise ValueError(f"the table has more than {_MAX_VALUES} values, which a tool takes at most")
        if left < 0:
            raise ValueError(f"the table takes more than {_MAX_BYTES >> 20} MB of memory")
        batches.append(batch)
    return batches


def _to_dataframe(table: Any) -> Any:
    """Return an Arrow table as a DataFrame; what the file says of it for pandas counts if it is of an ordinary kind.

    Raises:
        ValueError: it has a time zone that pandas would read from a file of any path.
    """
    for kind in (inner for type_ in table.schema.types for inner in _nested_types(type_)):
        if _ZONE_FILE in str(kind):
            raise ValueError(f"the table has a time zone that is no name of the IANA database: {str(kind)[:200]}")
    try:
        if _is_ordinary(table.schema.pandas_metadata or {}, table.num_rows):
            return table.to_pandas()
    except Exception:  # noqa: BLE001 - anybody may have written it, and pyarrow raises what it likes then
        pass
    return table.replace_schema_metadata(None).to_pandas()


def _is_ordinary(metadata: Any, rows: int) -> bool:
    """Return whether what a file says for pandas names no file, and no type or label of any size.

    Labels become such a type, and where they have several levels each is parsed as Python, as often as it is named.
    Labels of many rows on several levels are counted by pandas, whose hashes can be chosen to be one.
    """
    levels = sum(isinstance(column, str) for column in metadata.get("index_columns", ()))
    types = [
        key[name]
        for place in ("columns", "column_indexes")
        for key in metadata.get(place, ())
        for name in ("numpy_type", "pandas_type")
    ]
    return (
        all(map(_TYPE.fullmatch, types))
        and (levels < 2 or rows <= _MAX_LABELS)
        and not any(len(text) > _LONGEST_LABEL or _ZONE_FILE in text.lower() for text in texts_of(metadata))
    )


def _nested_types(kind: Any) -> Iterator[Any]:
    """Yield a type of Arrow's and those in it; the text of an extension doesn't show what it is stored as."""
    import pyarrow as pa  # optional: the extra `data` brings it

    yield kind
    names = ("storage_type", "value_type", "key_type", "item_type")
    inner = [getattr(kind, name) for name in names if hasattr(kind, name)]
    if pa.types.is_struct(kind) or pa.types.is_union(kind):
        inner += [kind.field(index).type for index in range(kind.num_fields)]
    for inner_kind in inner:
        yield from _nested_types(inner_kind)


def _chunk_start(chunk: Any) -> int:
    """Return where a column chunk begins."""
    first, dictionary = int(chunk.data_page_offset), chunk.dictionary_page_offset
    return int(dictionary) if dictionary and 0 < dictionary < first else first


def _is_plain(kind: Any) -> bool:
    """Return whether pandas has values of a type of Arrow's in an array of numpy, none of them as an object."""
    import pyarrow as pa  # optional: the extra `data` brings it

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_timestamp(kind))


def _count_values(array: Any) -> int:
    """Return how many values an Arrow array has, with those in lists and records."""
    import pyarrow as pa  # optional: the extra `data` brings it

    kind = array.type
    if pa.types.is_struct(kind):
        return len(array) + sum(_count_values(array.field(index)) for index in range(kind.num_fields))
    if pa.types.is_map(kind):
        return len(array) + _count_values(array.keys) + _count_values(array.items)
    if pa.types.is_nested(kind):
        return len(array) + _count_values(array.values)
    return len(array)


def _read_page_headers(file: BinaryIO, start: int, length: int, most: int) -> Iterator[tuple[int, int]]:
    """Return the size of each page of a column chunk once it is decompressed, and how many values it has.

    Args:
        file: Open for reading.
        start: Where the chunk begins.
        length: Its bytes.
        most: How many pages it may have.

    Raises:
        ValueError: it is no chunk of pages, or has more.

    Source: `PageHeader` of Apache Parquet's `parquet.thrift`, in Thrift's compact protocol.
    """
    position = start
    while position < start + length:
        most -= 1
        file.seek(position)
        header = _read_struct(file)
        page, compressed = header.get(_UNCOMPRESSED, -1), header.get(_COMPRESSED, -1)
        values = [header[value] for value in _VALUES if value in header]
        if most < 0 or min(page, compressed, *values) < 0:
            raise ValueError(f"a column of the table has no pages that can be read, or more than {_MAX_PAGES}")
        yield page, sum(values)
        position = file.tell() + compressed


def _read_struct(file: BinaryIO, depth: int = 0) -> dict[tuple[int, ...], int]:
    """Read a struct; return its fields that are integers, and those of the structs in it, by their numbers."""
    found: dict[tuple[int, ...], int] = {}
    field = 0
    while kind := _read_byte(file):
        field = field + (kind >> 4) if kind >> 4 else _read_zigzag(file)
        found |= {(field, *inner): value for inner, value in _read_value(file, kind & 15, depth).items()}
    return found


def _read_value(file: BinaryIO, kind: int, depth: int) -> dict[tuple[int, ...], int]:
    """Read a value; return an integer under the empty key, and the integers of a struct by their numbers."""
    if depth > _DEEPEST:
        raise ValueError("a page's header is nested too deeply")
    if kind in _INTEGERS:
        return {(): _read_zigzag(file)}
    if kind in (_BYTE, _DOUBLE):
        file.seek(1 if kind == _BYTE else 8, 1)
    elif kind == _BINARY:
        file.seek(_read_varint(file), 1)
    elif kind in (_LIST, _SET):
        head = _read_byte(file)
        count = head >> 4 if head >> 4 < 15 else _read_varint(file)
        if count > _MAX_PAGES:
            raise ValueError("a page's header is too long")
        for _ in range(count):
            _read_value(file, _BYTE if head & 15 in (_TRUE, _FALSE) else head & 15, depth + 1)
    elif kind == _STRUCT:
        return _read_struct(file, depth + 1)
    elif kind not in (_TRUE, _FALSE):
        raise ValueError("a page's header is none")
    return {}


def _read_byte(file: BinaryIO) -> int:
    read = file.read(1)
    if not read:
        raise ValueError("a page's header is cut")
    return read[0]


def _read_varint(file: BinaryIO) -> int:
    value = 0
    for shift in range(0, 70, 7):
        read = _read_byte(file)
        value |= (read & 127) << shift
        if read < 128:
            return value
    raise ValueError("a page's header holds no number")


def _read_zigzag(file: BinaryIO) -> int:
    value = _read_varint(file)
    return value >> 1 ^ -(value & 1)
