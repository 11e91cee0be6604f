"""Columns of text: as one long text, as words with their numbers where they come again and again, or as Arrow has them.

What is read may come from a kernel, so it may be anything: counts and numbers are checked before they are used.
"""

from __future__ import annotations

import importlib.util
from json import dumps, loads  # held here: code may overwrite them in the module
from struct import error as StructError  # noqa: N812 - a class
from struct import unpack_from
from typing import TYPE_CHECKING, Any

from .arrays import Arrays, Deferred
from .json_memory import parsed_bytes

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
else:
    np, pd = Deferred("numpy"), Deferred("pandas")

_BREAK = "\0"
_SAMPLE = 4096
_WORD_CHARS = 64
"""How long words that are sent once may be on average: a small file must not claim to hold endless text."""

_PER_TEXT = 64
"""The bytes that Python takes for a short text and for what points to it."""

_NONE, _NAN, _NA, _OTHER = 1, 2, 3, 4
"""What a missing text is; 0: it is there."""


def pack_text(values: Any, target: dict[str, Any]) -> tuple[dict[str, Any], list[Any]] | None:
    """Pack texts; None if what is missing somewhere is neither None nor NaN nor NA.

    Args:
        values: Texts, as objects.
        target: `dtype` and `storage` of what the column is made of again.
    """
    numbers, words = _numbered(values)
    absent = _absences(values, pd.isna(values) if numbers is None else numbers < 0)
    if absent is None:
        return None
    schema = {**target, "count": len(values), "missing": bool(absent.any())}
    marks = [absent] if schema["missing"] else []
    if numbers is not None:
        of, blob = _pack_plain(words)
        return {**schema, "kind": "words", "of": {**of, "count": len(words)}}, [*marks, numbers.astype("<i4"), blob]
    of, blob = _pack_plain(np.where(absent != 0, "", values) if marks else values)
    return {**schema, **of}, [*marks, blob]


def _numbered(values: Any) -> tuple[Any, Any]:
    """Return the number of each text's word, -1 where it is missing, and the words; nothing where few come again."""
    if len(pd.unique(values[:_SAMPLE])) * 4 < min(len(values), _SAMPLE):
        numbers, words = pd.factorize(values)
        if 0 < len(words) * 2 < len(values) and _word_chars(words, numbers) <= _WORD_CHARS * len(values):
            return numbers, words
    return None, None


def _pack_plain(values: Any) -> tuple[dict[str, Any], Any]:
    text = _BREAK.join(values.tolist())
    broken = text.count(_BREAK) >= max(len(values), 1)
    if broken:  # a text holds what separates them
        text = dumps(values.tolist(), ensure_ascii=False)
    blob = np.frombuffer(text.encode("utf-8", "surrogatepass"), "u1")
    return {"kind": "text", "broken": broken, "bytes": len(blob)}, blob


def _absences(values: Any, missing: Any) -> Any:
    """Return for each object which missing value it is; None if that can't be told."""
    absent = np.zeros(len(values), "u1")
    absent[missing] = [_absence(one) for one in values[missing].tolist()]
    return None if (absent == _OTHER).any() else absent


def unpack_text(schema: dict[str, Any], arrays: Arrays) -> Any:
    """Return the texts that `pack_text` got.

    Raises:
        ValueError: it is nothing that `pack_text` makes.
    """
    count = schema["count"]
    absent = arrays.take("|u1", count) if schema["missing"] else None
    if schema["kind"] == "words":
        numbers = arrays.take("<i4", count)
        words = _unpack_words(schema["of"], arrays)
        if not len(words) or ((numbers < -1) | (numbers >= len(words))).any():
            raise ValueError("a table's text has words that are not there")
        if _word_chars(words, numbers) > _WORD_CHARS * count:
            raise ValueError("a table's text is longer than its file may tell")
        arrays.claim(8 * count + (_word_chars(words, numbers) if schema["dtype"] != "object" else 0))
        if schema["dtype"] != "object":
            return pd.array(words, dtype=_text_dtype(schema)).take(numbers, allow_fill=True)
        values = words[numbers]
    else:
        values = _unpack_words(schema, arrays)
    if absent is not None:
        for mark, value in ((_NONE, None), (_NAN, np.nan), (_NA, pd.NA)):
            values[absent == mark] = value
    return values if schema["dtype"] == "object" else pd.array(values, dtype=_text_dtype(schema))


def _unpack_words(schema: dict[str, Any], arrays: Arrays) -> Any:
    if schema["kind"] != "text":
        raise ValueError("words that cross are texts")
    if type(schema["count"]) is not int or schema["count"] < 0:
        raise ValueError(f"a table's text is not of {schema['count']!r} pieces")
    arrays.claim(schema["count"] * _PER_TEXT)
    text = arrays.text(schema["bytes"])
    if schema["broken"]:
        arrays.claim(parsed_bytes(text))
    elif text.count(_BREAK) + 1 != max(schema["count"], 1):
        raise ValueError(f"a table's text is not of {schema['count']!r} pieces")
    held = loads(text) if schema["broken"] else text.split(_BREAK) if schema["count"] else []
    if type(held) is not list or len(held) != schema["count"] or (schema["broken"] and set(map(type, held)) != {str}):
        raise ValueError(f"a table's text is not of {schema['count']!r} pieces")
    return np.array(held, dtype=object)


def _word_chars(words: Any, numbers: Any) -> int:
    """Count the characters of all words where they stand."""
    often = np.bincount(numbers + 1, minlength=len(words) + 1)[1:]
    return int((np.fromiter(map(len, words), "i8", len(words)) * often).sum())


def pack_arrow(column: pd.Series[Any], target: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    """Pack a column as Arrow has it.

    Raises:
        TypeError: Arrow has nothing like it.
    """
    import pyarrow as pa  # deferred: an extra that both sides were found to have

    try:
        table = pa.Table.from_pandas(column.to_frame("0"), preserve_index=False)
    except pa.ArrowException as error:
        raise TypeError(f"column {column.name!r} has dtype {column.dtype}, which doesn't cross: {error}") from error
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    blob = np.frombuffer(sink.getvalue(), "u1")
    return {**target, "kind": "arrow", "bytes": len(blob)}, [blob]


def unpack_arrow(schema: dict[str, Any], arrays: Arrays) -> Any:
    """Return the column that `pack_arrow` got.

    Raises:
        ValueError: it is nothing that `pack_arrow` makes.
    """
    import pyarrow as pa  # deferred: an extra that both sides were found to have

    blob = pa.py_buffer(arrays.take("|u1", schema["bytes"]))
    messages = pa.ipc.MessageReader.open_stream(blob)
    try:
        while True:
            if is_compressed(messages.read_next_message().metadata.to_pybytes()):
                raise ValueError("a table's columns cross uncompressed")
    except StopIteration:
        pass
    table = pa.ipc.open_stream(blob).read_all()
    table.validate(full=True)  # or lies about where texts lie would be followed
    if table.num_columns != 1:
        raise ValueError("a column that crosses is one")
    for chunk in table.column(0).chunks:
        _claim_arrow(chunk, arrays, 8)
    if "storage" in schema:
        texts: Any = _text_dtype(schema)
        return texts.__from_arrow__(table.column(0))
    return table.to_pandas().iloc[:, 0].array


def _claim_arrow(array: Any, arrays: Arrays, each: int) -> None:
    """Count the memory of what is made of an Arrow array and of those in it; a value may take no byte in the file.

    Args:
        array: Validated.
        arrays: Counts.
        each: Bytes for one value.

    Raises:
        ValueError: it is too much, or values of such a type may stand in the file once and be made many times.
    """
    import pyarrow as pa  # deferred: an extra that both sides were found to have

    kind = array.type
    array = array.storage if isinstance(kind, pa.BaseExtensionType) else array
    kind = array.type
    if str(kind).partition("<")[0] in _REPEATED or pa.types.is_union(kind):
        raise ValueError(f"a column of {kind} doesn't cross")
    arrays.claim(each * len(array))
    inner = [array.dictionary] if pa.types.is_dictionary(kind) else []
    if pa.types.is_struct(kind):
        inner = [array.field(place) for place in range(kind.num_fields)]
    elif pa.types.is_map(kind):
        inner = [array.keys, array.items]
    elif pa.types.is_nested(kind):
        inner = [array.values]
    for one in inner:
        _claim_arrow(one, arrays, _PER_TEXT)


_REPEATED = ("run_end_encoded", "string_view", "binary_view", "list_view", "large_list_view")
"""Types of Arrow whose few bytes may stand for many values, or for one many times."""


def is_compressed(metadata: bytes) -> bool:
    """Return whether the buffers of an Arrow message are compressed, by its header alone.

    Args:
        metadata: Of a message of Arrow's stream format: a flatbuffer, in which a table begins with how far before it
            its list of fields lies, and that list holds where each field lies in the table, 0 for a missing one.

    Raises:
        ValueError: it is no such header.

    Source: Apache Arrow's `Message.fbs`: `Message.header` is field 2, its kind field 1 (2: dictionary, 3: batch);
    `DictionaryBatch.data` is field 1; `RecordBatch.compression` is field 3.
    """

    def number(form: str, at: int) -> int:
        return int(unpack_from(form, metadata, at)[0])

    def field(table: int, place: int) -> int:
        fields = table - number("<i", table)
        if 4 + 2 * place >= number("<H", fields):
            return 0
        found = number("<H", fields + 4 + 2 * place)
        return table + found if found else 0

    def inner(table: int, place: int) -> int:
        at = field(table, place)
        return at + number("<I", at) if at else 0

    try:
        message = number("<I", 0)
        at = field(message, 1)
        kind = number("<B", at) if at else 0
        batch = inner(message, 2)
        if kind == _DICTIONARY and batch:
            batch = inner(batch, 1)
        return kind in (_DICTIONARY, _BATCH) and bool(batch) and field(batch, 3) != 0
    except StructError as error:
        raise ValueError(f"no header of an Arrow message: {error}") from None


_DICTIONARY, _BATCH = 2, 3


def _text_dtype(schema: dict[str, Any]) -> Any:
    """Return the dtype of texts nearest to the one on the other side, which may have pyarrow or another pandas."""
    arrow = schema["storage"] != "python" and importlib.util.find_spec("pyarrow") is not None
    storage = "pyarrow" if arrow else "python"
    if schema["dtype"] != "str":
        return pd.StringDtype(storage)
    try:
        return pd.StringDtype(storage, na_value=np.nan)
    except TypeError:  # pandas 2.2
        return "object"


def _absence(value: Any) -> int:
    if value is None:
        return _NONE
    return _NAN if isinstance(value, float) else _NA if value is pd.NA else _OTHER
