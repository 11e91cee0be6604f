"""Columns as an Arrow stream: written from arrays, and read where the stream may come from a kernel.

Reading is bounded: a compressed stream is refused, and values that take no bytes in it are counted first.
One thread does it, because a kernel may have few threads left.
"""

from __future__ import annotations

from struct import error as StructError  # noqa: N812 - a class
from struct import unpack_from
from typing import Any, BinaryIO

from .bounds import MemoryBudget, shown
from .time_zone_names import check_zone

_BYTES_PER_VALUE = 64
"""What Python takes for a short text or a small list."""

_BYTES_PER_OFFSET = 8
_BYTES_PER_HEADER_BYTE = 8
"""What Arrow takes for its description of a message, whose arrays may be empty."""

_VERSION = 4
"""V5 of Arrow's metadata; in V4 a message's own metadata may say that it is compressed."""
_DICTIONARY, _BATCH = 2, 3
_REPEATED = ("run_end_encoded", "string_view", "binary_view", "list_view", "large_list_view")
"""Types of Arrow whose few bytes may stand for many values, or for one many times."""


class ArrowWriter:
    """Collects the arrays of a table and writes them as one stream.

    Args:
        rows: The length of each array.
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._arrays: list[Any] = []

    def add(self, values: Any) -> int | None:
        """Return the array's number in the stream; None if it is of another length, or Arrow has nothing like it."""
        import pyarrow as pa  # deferred: an extra that both sides were found to have

        if len(values) != self._rows:
            return None
        try:
            array = pa.array(values)
        except (pa.ArrowException, UnicodeEncodeError):  # such as bytes in the other order, half of a surrogate pair
            return None
        self._arrays.append(array)
        return len(self._arrays) - 1

    def write(self, file: BinaryIO) -> None:
        """Write the stream; nothing if there are no arrays."""
        import pyarrow as pa  # deferred: an extra that both sides were found to have

        if self._arrays:
            names = [str(number) for number in range(len(self._arrays))]
            table = pa.table(self._arrays, names=names).unify_dictionaries()  # each crosses once
            options = pa.ipc.IpcWriteOptions(use_threads=False)
            with pa.ipc.new_stream(file, table.schema, options=options) as writer:
                writer.write_table(table)


class ArrowReader:
    """Reads the arrays of a stream.

    Args:
        stream: Written by `ArrowWriter`, or by anybody.
        budget: Counts the memory beyond the stream's own.

    Raises:
        ValueError: it is no such stream, or it is compressed, or holds more than the budget.
    """

    def __init__(self, stream: bytes, budget: MemoryBudget) -> None:
        import pyarrow as pa  # deferred: an extra that both sides were found to have

        messages, dictionaries = pa.ipc.MessageReader.open_stream(pa.py_buffer(stream)), set[int]()
        try:
            while True:
                metadata = messages.read_next_message().metadata.to_pybytes()
                budget.claim(_BYTES_PER_HEADER_BYTE * len(metadata))
                check_message(metadata, dictionaries)
        except StopIteration:
            pass
        options = pa.ipc.IpcReadOptions(use_threads=False)
        self._table = pa.ipc.open_stream(pa.py_buffer(stream), options=options).read_all()
        self._budget = budget
        self._named = set[int]()
        self._table.validate(full=True)  # or lies about where texts lie would be followed
        for column in self._table.columns:
            for chunk in column.chunks or [pa.nulls(0, column.type)]:
                _claim_memory(chunk, budget, _BYTES_PER_OFFSET)

    def column(self, index: Any) -> Any:
        """Return a column as Arrow has it; one that a header names again counts as another one.

        Raises:
            ValueError: there is none of that number, or it is too much.
        """
        if type(index) is not int or not 0 <= index < self._table.num_columns:
            raise ValueError(f"a table's stream has no column of this number: {shown(index)}")
        column = self._table.column(index)
        if index in self._named:
            self._budget.claim(column.nbytes)
        self._named.add(index)
        return column

    def numbers(self, index: Any) -> Any:
        """Return a column of numbers or truth values as an array of numpy that can be changed."""
        import pyarrow as pa  # deferred: an extra that both sides were found to have

        column = self.column(index)
        kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
        if column.null_count or not any(kind(column.type) for kind in kinds):
            raise ValueError(f"a column's numbers are not numbers: {column.type}")
        self._budget.claim(len(column) * max(1, column.type.bit_width // 8))  # each time that a header names it
        values = column.to_numpy()
        return values if values.flags.writeable else values.copy()

    def texts(self, index: Any) -> Any:
        """Return a column of texts."""
        import pyarrow as pa  # deferred: an extra that both sides were found to have

        column = self.column(index)
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            raise ValueError(f"a column's texts are not texts: {column.type}")
        self._budget.claim(2 * _BYTES_PER_OFFSET * len(column))  # each time that a header names it
        return column

    def objects(self, index: Any) -> Any:
        """Return a column of texts as an array of Python objects."""
        column = self.texts(index)
        self._budget.claim(_BYTES_PER_VALUE * len(column) + sum(map(_text_bytes, column.chunks)))
        return column.to_numpy()


def _text_bytes(chunk: Any) -> int:
    """Return how much memory the characters of texts take at most once they are Python's.

    Python keeps all characters of a text as wide as its widest; the first byte of a character in UTF-8 shows its width.
    """
    import numpy as np  # deferred: not every kernel has it

    content = chunk.buffers()[2]
    if content is None or not content.size:
        return 0
    widest = int(np.frombuffer(content, "u1").max())
    return int(content.size) * (4 if widest >= 0xF0 else 2 if widest >= 0xC4 else 1)


def _claim_memory(array: Any, budget: MemoryBudget, each: int) -> None:
    """Count the memory of what is made of an Arrow array and of those in it; a value may take no byte in the stream.

    Args:
        array: Validated.
        budget: Counts.
        each: Bytes for one value.

    Raises:
        ValueError: it is too much, or values of such a type may stand in the stream once and be made many times; or it
            has times of a zone that does not cross.
    """
    import pyarrow as pa  # deferred: an extra that both sides were found to have

    kind = array.type
    array = array.storage if isinstance(kind, pa.BaseExtensionType) else array
    kind = array.type
    if str(kind).partition("<")[0] in _REPEATED or pa.types.is_union(kind):
        raise ValueError(f"a column of {kind} doesn't cross")
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        check_zone(kind.tz)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        budget.claim(each * len(array))
    inner = [array.dictionary] if pa.types.is_dictionary(kind) else []
    if pa.types.is_struct(kind):
        inner = [array.field(number) for number in range(kind.num_fields)]
    elif pa.types.is_map(kind):
        inner = [array.keys, array.items]
    elif pa.types.is_nested(kind):
        inner = [array.values]
    for one in inner:
        _claim_memory(one, budget, _BYTES_PER_VALUE)


def check_message(metadata: bytes, dictionaries: set[int]) -> None:
    """Refuse an Arrow message that may stand for more than its bytes, by its header alone.

    Args:
        metadata: Of a message of Arrow's stream format: a flatbuffer, in which a table begins with how far before it
            its list of fields lies, and that list holds where each field lies in the table, 0 for a missing one.
        dictionaries: Those that came before in the stream, by their numbers; that of this message is added.

    Raises:
        ValueError: it is no such header, or of an older version; its buffers are compressed; or its dictionary came
            before: each time a new one is made of both.

    Source: Apache Arrow's `Message.fbs`: `Message.version` is field 0, its header field 2, that one's kind field 1 (2:
    dictionary, 3: batch), its own metadata field 4, where V4 may say that it is compressed; `DictionaryBatch.id` is
    field 0, its data field 1; `RecordBatch.compression` is field 3.
    """

    def unpack_int(form: str, offset: int) -> int:
        return int(unpack_from(form, metadata, offset)[0])

    def field(table: int, place: int) -> int:
        fields = table - unpack_int("<i", table)
        if 4 + 2 * place >= unpack_int("<H", fields):
            return 0
        found = unpack_int("<H", fields + 4 + 2 * place)
        return table + found if found else 0

    def inner(table: int, place: int) -> int:
        offset = field(table, place)
        return offset + unpack_int("<I", offset) if offset else 0

    try:
        message = unpack_int("<I", 0)
        version, at = field(message, 0), field(message, 1)
        if not version or unpack_int("<h", version) != _VERSION or field(message, 4):
            raise ValueError("no header of an Arrow message of version V5 without metadata of its own")
        kind = unpack_int("<B", at) if at else 0
        batch = inner(message, 2)
        if kind == _DICTIONARY and batch:
            at = field(batch, 0)
            own = unpack_int("<q", at) if at else 0
            if own in dictionaries:
                raise ValueError("each dictionary of a table's columns crosses once")
            dictionaries.add(own)
            batch = inner(batch, 1)
        compressed = kind in (_DICTIONARY, _BATCH) and bool(batch) and field(batch, 3) != 0
    except StructError as error:
        raise ValueError(f"no header of an Arrow message: {error}") from None
    if compressed:
        raise ValueError("a table's columns cross uncompressed")
