"""Tables that cross come back as they went, and what a kernel says of a table is checked before it is used."""

import datetime
import json
import math
import os
import threading
import tracemalloc
from pathlib import PurePath, PurePosixPath
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

from tw_autogen.errors import KernelError
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.kernel.guest import table_codec
from tw_autogen.kernel.guest.arrow_columns import ArrowReader, check_message
from tw_autogen.kernel.guest.bounds import MemoryBudget
from tw_autogen.kernel.guest.codec import Codec
from tw_autogen.kernel.guest.exchange_folder import FOLDER, InsideExchange
from tw_autogen.kernel.guest.object_snapshot import copies_on_write

try:
    import pyarrow as pa
except ImportError:
    pa = None
needs_arrow = pytest.mark.skipif(pa is None, reason="needs the extra `data`")

NUMBERS = ("?", "i1", "u1", "i4", "i8", "u8", "f2", "f4", "f8", ">f8", ">i4")


def objects(*values):
    return pd.Series(values, dtype=object)


def times():
    days = pd.to_datetime(["2024-01-01", None, "2024-07-01"])
    return {
        "day": days,
        "zoned": days.tz_localize("Europe/Brussels"),
        "offset": days.tz_localize("UTC+02:00"),
        "second": np.array([1, "NaT", 2], "M8[s]"),
        "span": np.array([1, "NaT", -2], "m8[us]"),
    }


def missing_labels():
    """Give indexes in two levels with a missing label, by the kind of the others."""
    labels = {
        "large whole numbers": pd.Index([2**53 + 1, 2**53 + 3]),
        "unsigned numbers": pd.Index([2**64 - 1, 1], dtype="u8"),
        "small numbers": pd.Index([1, 2], dtype="i1"),
        "truth values": pd.Index([False, True]),
        "nullable numbers": pd.Index([2**53 + 1, 2**53 + 3], dtype="Int64"),
        "floats": pd.Index([0.5, 1.5], dtype="f4"),
        "times": pd.DatetimeIndex(["2024-01-01", "2024-07-01"], tz="Europe/Brussels"),
        "periods": pd.period_range("2024-01", periods=2, freq="M"),
        "intervals": pd.interval_range(0, 2),
        "texts": pd.Index(["x", "y"]),
        "categories": pd.CategoricalIndex(["y", "x"], categories=["y", "x"], ordered=True),
        "objects": pd.Index([1, "1"], dtype=object),
        "no kind, as all are": pd.Index([], dtype="i8"),
    }
    return {
        what: pd.MultiIndex([["a", "b"], label], [[0, 1, 1], [0, 1, -1] if len(label) else [-1] * 3], names=["k", "id"])
        for what, label in labels.items()
    }


def tables():
    """Give tables by what is special about them."""
    three = {"n": [1, 2, 3]}
    multi = pd.MultiIndex.from_tuples([("x", 1), ("x", 2), ("y", 1)], names=["kind", None])
    return {
        "numbers": pd.DataFrame({kind: np.array([0, 1, 2]).astype(kind) for kind in NUMBERS}),
        "floats": pd.DataFrame({"f": [math.nan, math.inf, -0.0]}),
        "nothing missing is the same": pd.DataFrame({"o": objects("a", None, math.nan, pd.NA, "")}),
        "all is missing": pd.DataFrame({"o": objects(None, None), "n": objects(math.nan, None)}),
        "breaks in texts": pd.DataFrame({"o": objects("a\0b", "", "\r\n", '"\\N,', "é€😀", "\ud83d")}),
        "words again and again": pd.DataFrame({"o": objects(*["a", "b\0", None, math.nan] * 3000)}),
        "long words again and again": pd.DataFrame({"o": objects(*["a" * 999, "b"] * 3000)}),
        "objects": pd.DataFrame({"o": objects(1, "1", 2**70, True, 2.5, None, (1, 2), [1], {"a": {}}, pd.NaT, pd.NA)}),
        "lists": pd.DataFrame({"o": objects([1, 2], [3, 4])}),
        "times as objects": pd.DataFrame({"o": objects(datetime.date(2024, 1, 1), pd.Timestamp(0, tz="UTC"))}),
        "strings": pd.DataFrame({"a": ["x", None, "z"], "b": pd.array(["x", None, ""], dtype="string")}),
        "strings again and again": pd.DataFrame({"b": pd.array(["x", None, ""] * 3000, dtype="string[python]")}),
        "nullable": pd.DataFrame(
            {one: pd.array([1, None, 0], dtype=one) for one in ("Int8", "UInt64", "Float32", "boolean")}
        ),
        "times": pd.DataFrame(times()),
        "categories": pd.DataFrame(
            {
                "text": pd.Categorical(["x", None, "y"], ["y", "x", "unused"], ordered=True),
                "number": pd.Categorical([2, 1, 2]),
                "time": pd.Categorical(times()["zoned"]),
                "mixed": pd.Categorical(["x", None, 3], categories=pd.Index(["x", 3], dtype=object)),
            }
        ),
        "periods": pd.DataFrame(
            {"m": pd.period_range("2024-01", periods=2, freq="M"), "d": pd.array(["2024", None], "period[D]")}
        ),
        "intervals": pd.DataFrame(
            {"i": pd.cut(pd.Series([1, 2, 9]), 3), "j": pd.arrays.IntervalArray.from_breaks(range(4))}
        ),
        "sparse": pd.DataFrame({"s": pd.arrays.SparseArray([math.nan, 1.5]), "t": pd.arrays.SparseArray([0, 1])}),
        "the same name twice": pd.DataFrame([[1, "a"], [2, "b"]], columns=["x", "x"]),
        "names of all kinds": pd.DataFrame([[1, 2, 3]], columns=pd.Index(["a", 1, ("b", 2)], tupleize_cols=False)),
        "names in levels": pd.DataFrame([[1, 2.5]], columns=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])),
        "times for names": pd.DataFrame([[1, 2, 3]], columns=times()["zoned"]),
        "an index in levels": pd.DataFrame(three, index=multi),
        **{f"a label of {what} is missing": pd.DataFrame(three, index=one) for what, one in missing_labels().items()},
        "labels in two levels, one is missing": pd.DataFrame(
            [[1, 2]], columns=pd.MultiIndex([["a"], [2**53 + 1]], [[0, 0], [0, -1]])
        ),
        "an index of times": pd.DataFrame(three, index=pd.date_range("2024-03-30", periods=3, tz="Europe/Brussels")),
        "an index of periods": pd.DataFrame(three, index=pd.period_range("2024-01", periods=3, freq="M", name="month")),
        "periods for names": pd.DataFrame([[1, 2]], columns=pd.period_range("2024-01-01", periods=2, freq="D")),
        "an index of objects": pd.DataFrame(three, index=pd.Index(["a", "b", None], dtype=object, name="key")),
        "an index of steps": pd.DataFrame(three, index=pd.RangeIndex(10, 40, 10, name="step")),
        "nothing at all": pd.DataFrame(),
        "no columns": pd.DataFrame(index=[1, 2]),
        "no rows": pd.DataFrame(
            {"i": pd.Series(dtype="i4"), "o": objects(), "c": pd.Categorical([]), **{"t": times()["day"][:0]}}
        ),
        "an index in levels without rows": pd.DataFrame({"n": []}, index=pd.MultiIndex.from_arrays([[], []])),
        "many columns": pd.DataFrame(np.arange(200.0).reshape(2, 100)),
    }


def told(values):
    """Give what tells apart what compares as equal or is never equal: None, NaN and NA, 1 and True."""
    return [value if isinstance(value, str) else (type(value).__name__, str(value)) for value in values]


@pytest.mark.parametrize("what", tables())
def test_a_table_comes_back_as_it_went(kernel, what):
    table = tables()[what]
    kernel.put("table", table)

    check_same(kernel.get("table"), table)


@pytest.mark.parametrize("what", tables())
def test_a_table_comes_back_as_it_went_where_one_side_has_no_pyarrow(codec, what):
    table = tables()[what]

    check_same(codec.unpack(codec.pack(table)), table)


def check_same(back, table):
    pd.testing.assert_frame_equal(back, table, check_index_type="exact", check_column_type="exact")
    assert back.dtypes.tolist() == table.dtypes.tolist()
    for place, dtype in enumerate(table.dtypes):
        if str(dtype) == "object":
            assert told(back.iloc[:, place]) == told(table.iloc[:, place])


@pytest.mark.parametrize(("frequency", "keeps"), [("s", True), ("cbh", False)])
def test_a_frequency_that_pandas_would_check_row_by_row_is_left_out_of_a_long_index(codec, frequency, keeps):
    table = pd.DataFrame({"a": 1}, index=pd.date_range("2024", periods=60_000, freq="s"))
    with patch.object(table_codec, "_frequency", lambda index: frequency):  # as code in a kernel can write it
        packed = codec.pack(table)

    back = codec.unpack(packed)

    assert back.index.freqstr == (frequency if keeps else None)


@pytest.mark.parametrize(
    "frequency",
    [pd.DateOffset(months=3), pd.offsets.CustomBusinessDay(holidays=["2024-01-02"])],
    ids=["offset", "days"],
)
def test_a_frequency_that_no_name_says_is_left_out_and_the_times_cross(codec, frequency):
    table = pd.DataFrame({"a": range(4)}, index=pd.date_range("2024-01-01", periods=4, freq=frequency))

    back = codec.unpack(codec.pack(table))

    pd.testing.assert_frame_equal(back, table, check_freq=False)
    assert back.index.freq is None


def test_a_frequency_is_not_set_on_an_index_that_takes_none(codec):
    with patch.object(table_codec, "_frequency", lambda index: "D"):  # as code in a kernel can write it
        packed = codec.pack(pd.DataFrame({"a": [1]}, index=pd.period_range("2024", periods=1)))

    assert codec.unpack(packed).index.tolist() == [pd.Period("2024-01-01")]


def test_a_table_that_is_put_takes_memory_once_and_comes_back_as_it_was(tmp_path):
    table = pd.DataFrame(np.ones((1_000_000, 4)))
    size = int(table.memory_usage(index=False).sum())
    with LocalKernel(tmp_path) as kernel:
        kernel.put("warm", table[:1])
        tracemalloc.start()
        try:
            kernel.put("table", table)
            more = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
        table.iloc[0, 0] = 7.0
        kernel.restart()

        assert kernel.execute("float(table.iloc[0, 0])", seconds=30).result == "1.0"
    assert more < size / 4 or not copies_on_write()


def test_a_table_that_cannot_be_written_is_an_error_that_names_the_folder_and_leaves_no_file(tmp_path):
    resource = pytest.importorskip("resource")  # a limit of a file's size stands for a full disk
    table, said = pd.DataFrame({"a": range(100_000)}), r"\.tw-exchange: .* can't be written .*; free some space there"
    most, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with LocalKernel(tmp_path) as kernel:
        kernel.put("table", table)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
        try:
            with pytest.raises(KernelError, match=said) as put:
                kernel.put("more", table)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
        code = "import resource as r\nr.setrlimit(r.RLIMIT_FSIZE, (10_000, r.getrlimit(r.RLIMIT_FSIZE)[1]))"
        assert kernel.execute(code, seconds=30).ok
        with pytest.raises(KernelError, match=said):
            kernel.get("table")

        assert put.value.folder == tmp_path
        assert os.listdir(tmp_path / FOLDER) == []


def test_a_table_whose_file_code_has_removed_is_an_error_of_the_kernel_and_not_of_its_type(tmp_path):
    code = (
        "import contextlib, os, threading\ndef clear():\n    while True:\n        with contextlib.suppress(OSError):\n"
        f"            for name in os.listdir({FOLDER!r}):\n                os.unlink(f'{FOLDER}/{{name}}')\n"
        "threading.Thread(target=clear, daemon=True).start()"
    )
    with LocalKernel(tmp_path) as kernel:
        kernel.put("first", pd.DataFrame({"a": [1]}))
        assert kernel.execute(code, seconds=30).ok

        table = pd.DataFrame({"a": range(1000)})

        with pytest.raises(KernelError, match="No such file"):
            any(kernel.put("table", table) for _ in range(200))


def test_a_table_that_came_can_be_changed(kernel):
    kernel.put("table", pd.DataFrame({"a": [1, 2], "b": ["x", "y"], "c": [True, False]}))

    changed = kernel.execute("table.loc[0, 'a'] = 5\ntable['d'] = table.a + 1\nlist(table.d)", seconds=30)
    assert changed.result == "[6, 3]"
    back = kernel.get("table")
    back.loc[0, "c"] = False
    assert not back.c.any()


def test_what_was_noted_on_a_table_crosses_with_it(kernel):
    table = pd.DataFrame({"a": [1]})
    table.attrs["unit"] = "kW"
    kernel.put("table", table)

    assert kernel.get("table").attrs == {"unit": "kW"}


def test_a_table_holds_no_path_but_its_text(codec):
    path = PurePosixPath("/secret")
    table = pd.DataFrame(
        {"cell": objects(path, [path], {"k": (path,)}).to_numpy(), path: 1}, index=pd.Index([path, 1, 2], name=path)
    )
    table.attrs["note"] = {"of": path}

    back, (beside, inner), series = codec.unpack(codec.pack([table, (path, [table]), objects(path).rename(path)]))

    assert isinstance(beside, PurePath)
    for one in (back, inner[0]):
        assert "Path(" not in repr([one.to_dict("split"), one.index.names, one.attrs])
        assert one.cell.tolist() == ["/secret", ["/secret"], {"k": ("/secret",)}]
    assert (series.name, series.tolist()) == ("/secret", ["/secret"])


def test_a_column_that_does_not_cross_is_named(kernel):
    with pytest.raises(TypeError, match="column 'z' has dtype complex128, which doesn't cross"):
        kernel.put("table", pd.DataFrame({"z": [1j]}))


LOST = {
    "complex numbers": lambda: [1j],
    "long floats": lambda: np.array([1.5], "longdouble"),
    "an object": lambda: [object()],
    "a category of them": lambda: pd.Categorical([1j]),
}


@pytest.mark.parametrize("arrow", [False, pytest.param(True, marks=needs_arrow)])
@pytest.mark.parametrize("make", LOST.values(), ids=LOST)
def test_what_is_lost_is_an_error(folder, make, arrow):
    with pytest.raises(TypeError, match="doesn't cross"):
        Codec(InsideExchange(folder), arrow=arrow).pack(pd.DataFrame({"z": make()}))


@needs_arrow
@pytest.mark.parametrize("values", [[1, None], ["x", None], [[1], []], [{"a": 1}, None], [datetime.date(2024, 1, 1)]])
def test_arrows_own_columns_cross_where_both_sides_have_pyarrow(folder, codec, values):
    table = pd.DataFrame({"a": pd.array(values, pd.ArrowDtype(pa.array(values).type))})
    arrow = Codec(InsideExchange(folder), arrow=True)

    check_same(arrow.unpack(arrow.pack(table)), table)
    with pytest.raises(TypeError, match="column 'a' has dtype .* which doesn't cross"):
        codec.pack(table)


@pytest.mark.parametrize("name", [None, "load", 1, ("a", "b")], ids=repr)
def test_a_series_comes_back_with_its_name(codec, name):
    series = pd.Series([1.5, None], name=name)

    pd.testing.assert_series_equal(codec.unpack(codec.pack(series)), series)


@pytest.fixture
def folder(tmp_path):
    return tmp_path.resolve()


@pytest.fixture
def codec(folder):
    return Codec(InsideExchange(folder), max_bytes=32 << 20)


def header(codec, table):
    """Pack a table; give its file, and the header in it."""
    path = codec.exchange._folder / codec.pack(table)["file"]
    return path, json.JSONDecoder().raw_decode(path.read_bytes()[16:].decode("latin-1"))[0]


def rewritten(path, told):
    """Give a table's file another header."""
    text = json.dumps(told).encode()
    old = path.read_bytes()
    length = int.from_bytes(old[:8], "little")
    path.write_bytes(len(text).to_bytes(8, "little") + old[8:16] + text + old[16 + length :])
    return {"$": "DataFrame", "file": path.name}


def lie(codec, table, **changes):
    """Pack a table, and say something else about its first column."""
    path, told = header(codec, table)
    for key, value in changes.items():
        *above, last = key.split("__")
        place = told["columns"][0]
        for one in above:
            place = place[one]
        place[last] = value
    return rewritten(path, told)


ONE = pd.DataFrame({"n": [1, 2]})
TEXT = pd.DataFrame({"t": pd.Series(["a", "b"], dtype="string")})
TIME = pd.DataFrame({"t": pd.to_datetime(["2024-01-01"])})


@pytest.mark.parametrize(
    ("table", "changes", "said"),
    [
        (ONE, {"values__count": 1}, "not of 2 rows"),
        (ONE, {"values__count": 3}, "buffer"),
        (ONE, {"values__count": 1 << 62}, "would take more than"),
        (ONE, {"values__count": -1}, "numbers are not numbers"),
        (ONE, {"values__count": 1.5}, "'count'.*expected int, got float"),
        (ONE, {"values__start": 8}, "buffer"),
        (ONE, {"values__start": -8}, "offset"),
        (ONE, {"values__dtype": "|O"}, "numbers are not numbers"),
        (ONE, {"values__dtype": "V8"}, "numbers are not numbers"),
        (ONE, {"values__dtype": "<c8"}, "numbers are not numbers"),
        (ONE, {"values__dtype": ["<i8"]}, "'dtype'.*expected str, got list"),
        (ONE, {"kind": "pickle"}, "of kind 'pickle'"),
        (ONE, {"kind": "arrow"}, "of kind 'arrow'"),
        (TEXT, {"values": ["a"]}, "not of 2 rows"),
        (TEXT, {"values": ["a", 1]}, "texts are not texts"),
        (TEXT, {"values": "ab"}, "'values'.*expected list or dict, got str"),
        (TIME, {"dtype": "M8[ns, evil]"}, "no dtype of a column that crosses"),
        (TIME, {"dtype": "O"}, "no dtype of a column that crosses"),
        (pd.DataFrame({"p": pd.period_range("2024", periods=1)}), {"frequency": "D; evil"}, "no dtype of a column"),
        (pd.DataFrame({"c": pd.Categorical(["a", "b"])}), {"of__values": ["a"]}, "codes need to be"),
    ],
    ids=lambda one: str(one)[:60] if isinstance(one, dict) else "",
)
def test_a_lie_about_a_column_is_found_out(codec, table, changes, said):
    with pytest.raises(ValueError, match=said):
        codec.unpack(lie(codec, table, **changes))


@pytest.mark.parametrize("length", [1 << 62, 99], ids=str)
def test_a_header_that_is_longer_than_its_file_is_not_read(codec, length):
    path, _ = header(codec, ONE)
    path.write_bytes(length.to_bytes(8, "little") + bytes(8) + b"{}")

    with pytest.raises(ValueError, match=f"not of {length} bytes"):
        codec.unpack({"$": "DataFrame", "file": path.name})


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        ({"start": 0}, "not coded by places in a level of 2"),
        ({"start": 1}, "not coded by places in a level of 2"),
        ({"dtype": "|u1"}, "not coded by places in a level of 2"),
        ({"dtype": "|b1"}, "not coded by places in a level of 2"),
        ({"count": 2}, "not of as many rows"),
        (None, "no column of codes for each"),
        (1, "no column of codes for each"),
    ],
    ids=str,
)
def test_labels_are_not_taken_from_beyond_their_level(codec, codes, said):
    numbers = np.array([2, -2, 0], "i1")  # the file begins with these; codes follow
    index = pd.MultiIndex([["a", "b"], [5, 6]], [[0, 1, 1], [0, 1, -1]])
    path, told = header(codec, pd.DataFrame({"n": numbers}, index=index))
    told["index"]["codes"] = {
        "dict": lambda: [{**told["index"]["codes"][0], **codes}, *told["index"]["codes"][1:]],
        "NoneType": lambda: told["index"]["codes"][1:],
        "int": lambda: [codes, codes],
    }[type(codes).__name__]()

    with pytest.raises(ValueError, match=said):
        codec.unpack(rewritten(path, told))


def stream(array, *, compression=None):
    """Write an array as a stream, and give what reads it with 8 MB."""
    sink = pa.BufferOutputStream()
    schema = pa.schema([("0", array.type)])
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_batch(pa.record_batch([array], schema=schema))
    return sink.getvalue().to_pybytes(), MemoryBudget(8 << 20)


def nested_nulls(count):
    return pa.ListArray.from_arrays(pa.array([0, count], "int32"), pa.nulls(count))


BOMBS = {
    "compressed with zstd": (lambda: stream(pa.array([0] * 500_000), compression="zstd"), "uncompressed"),
    "compressed with lz4": (lambda: stream(pa.array(["x"] * 9), compression="lz4"), "uncompressed"),
    "a compressed dictionary": (
        lambda: stream(pa.array(["x"] * 9).dictionary_encode(), compression="lz4"),
        "uncompressed",
    ),
    "values without bytes": (lambda: stream(pa.nulls(10_000_000)), "more than 8 MB"),
    "lists of values without bytes": (lambda: stream(nested_nulls(1_000_000)), "more than 8 MB"),
    "runs": (
        lambda: stream(pa.RunEndEncodedArray.from_arrays(pa.array([1 << 30], "int32"), pa.array([1]))),
        "run_end_encoded.* doesn't cross",
    ),
    "views of one text": (lambda: stream(pa.array(["x" * 99] * 9, pa.string_view())), "string_view doesn't"),
}


@needs_arrow
@pytest.mark.parametrize(("make", "said"), BOMBS.values(), ids=BOMBS)
def test_a_small_arrow_column_does_not_become_endless(make, said):
    with pytest.raises(ValueError, match=said):
        ArrowReader(*make())


def zoned(zone, wrapped):
    """Return times of a zone that no pyarrow would write, in whatever holds them."""
    kind = pa.timestamp("ns", tz=zone)
    stamps = pa.Array.from_buffers(kind, 2, pa.array([1, 2], "int64").buffers())
    return {
        "as it is": lambda: stamps,
        "none of them": lambda: pa.array([], kind),
        "a list": lambda: pa.ListArray.from_arrays(pa.array([0, 2], "int32"), stamps),
        "a record": lambda: pa.StructArray.from_arrays([stamps], ["t"]),
        "a map": lambda: pa.MapArray.from_arrays(pa.array([0, 2], "int32"), pa.array(["a", "b"]), stamps),
        "a dictionary": lambda: pa.DictionaryArray.from_arrays(pa.array([0, 1], "int8"), stamps),
    }[wrapped]()


@needs_arrow
@pytest.mark.parametrize("wrapped", ["as it is", "none of them", "a list", "a record", "a map", "a dictionary"])
def test_a_zone_by_whose_name_a_file_would_be_read_does_not_cross(wrapped, tmp_path):
    with pytest.raises(ValueError, match=r"no time zone that crosses: 'dateutil//"):
        ArrowReader(*stream(zoned(f"dateutil/{tmp_path}", wrapped)))
    for good in ("Europe/Oslo", "UTC", "+02:00"):
        assert ArrowReader(*stream(zoned(good, wrapped))).column(0).type == zoned(good, wrapped).type


@needs_arrow
def test_a_column_without_any_piece_says_no_such_zone_either(tmp_path):
    sink = pa.BufferOutputStream()
    pa.ipc.new_stream(sink, pa.schema([("0", pa.timestamp("ns", tz=f"dateutil/{tmp_path}"))])).close()

    with pytest.raises(ValueError, match="no time zone that crosses"):
        ArrowReader(sink.getvalue().to_pybytes(), MemoryBudget(8 << 20))


@needs_arrow
@pytest.mark.parametrize(
    ("version", "metadata"), [("V4", None), ("V5", {"ARROW:experimental_compression": "zstd"}), ("V4", {"a": "b"})]
)
def test_an_arrow_stream_that_may_be_compressed_in_the_older_way_is_refused(version, metadata):
    sink, batch = pa.BufferOutputStream(), pa.record_batch([pa.array([0] * 9)], names=["0"])
    options = pa.ipc.IpcWriteOptions(metadata_version=getattr(pa.ipc.MetadataVersion, version))
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch, custom_metadata=metadata)

    with pytest.raises(ValueError, match="version V5 without metadata of its own"):
        ArrowReader(sink.getvalue().to_pybytes(), MemoryBudget(8 << 20))


@needs_arrow
@pytest.mark.parametrize(
    "values",
    [[1, None, 3], ["a", None], [[1, 2], [], None], [{"a": 1}, None], [datetime.date(2024, 1, 1)], [b"x"]],
    ids=str,
)
def test_arrow_columns_that_are_plain_come_through(values):
    assert ArrowReader(*stream(pa.array(values))).column(0).to_pylist() == values


@needs_arrow
def test_a_column_that_a_header_names_again_counts_again():
    read = ArrowReader(stream(pa.array(["x" * 3_000_000]))[0], MemoryBudget(8 << 20))

    for _ in range(3):
        read.column(0)
    with pytest.raises(ValueError, match="memory"):
        read.column(0)


@needs_arrow
@pytest.mark.parametrize("deltas", [False, True])
def test_a_dictionary_crosses_once(deltas):
    def column(texts):
        return pa.DictionaryArray.from_arrays(pa.array([0], "int8"), pa.array(texts))

    sink, first = pa.BufferOutputStream(), pa.record_batch([column(["a"])], names=["0"])
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=deltas)
    with pa.ipc.new_stream(sink, first.schema, options=options) as writer:
        for texts in (["a"], ["a", "b"]):
            writer.write_batch(pa.record_batch([column(texts)], names=["0"]))

    with pytest.raises(ValueError, match="each dictionary of a table's columns crosses once"):
        ArrowReader(sink.getvalue().to_pybytes(), MemoryBudget(8 << 20))


@pytest.mark.parametrize("metadata", [b"", b"\x04\0\0\0", b"\xff" * 64, bytes(200)], ids=repr)
def test_a_header_of_arrow_that_is_none_is_an_error_or_has_no_compression(metadata):
    try:
        check_message(metadata, set())
    except ValueError as error:
        assert "no header of an Arrow message" in str(error)  # noqa: PT017 - either will do


def test_a_truth_value_is_one_or_nothing(codec):
    path, _ = header(codec, pd.DataFrame({"b": [True, False, True]}))
    path.write_bytes(path.read_bytes()[:-3] + b"\x02\x00\xff")

    assert codec.unpack({"$": "DataFrame", "file": path.name}).b.to_numpy().view("u1").tolist() == [1, 0, 1]


@needs_arrow
def test_a_stream_says_no_other_type_than_its_column(folder):
    codec = Codec(InsideExchange(folder), arrow=True)
    packed = codec.pack(pd.DataFrame({"a": [1.5, None]}))
    path = folder / FOLDER / packed["file"]
    head = path.read_bytes().split(b"\xff\xff\xff\xff")[0]
    for array, said in ((pa.array(["a", "b"]), "numbers are not numbers: string"), (pa.array([1, None]), "int64")):
        path.write_bytes(head + stream(array)[0])
        with pytest.raises(ValueError, match=said):
            Codec(InsideExchange(folder), arrow=True).unpack(packed)
        path.parent.mkdir(exist_ok=True)


def test_two_kernels_in_one_folder_get_their_own_tables_and_the_end_of_one_leaves_the_other_its_tables(tmp_path):
    settings = KernelSettings(host_threads=1)
    make = "import pandas as pd\nt = pd.DataFrame({'a': [%d] * 5})"
    with LocalKernel(tmp_path, settings=settings) as first, LocalKernel(tmp_path, settings=settings) as second:
        second.serve("total", lambda table: int(table.a.sum()))
        second.execute(make % 2, seconds=30)

        def beside(table):
            ran = second.execute(
                "calls = [total.submit(t) for _ in range(3)]\n[one.result() for one in calls]", seconds=30
            )
            second.close()
            return ran.result

        first.serve("beside", beside)
        first.serve("total", lambda table: int(table.a.sum()))
        first.execute(make % 1, seconds=30)
        ran = first.execute("calls = [beside.submit(t), *(total.submit(t) for _ in range(3))]\n"
                            "[one.result() for one in calls]", seconds=30)  # fmt: skip

    assert (ran.error, ran.result) == ("", "['[10, 10, 10]', 5, 5, 5]")
    assert os.listdir(tmp_path) == []


def test_a_call_that_returns_a_table_after_its_kernel_was_closed_leaves_no_file(tmp_path):
    over = threading.Event()
    with LocalKernel(tmp_path) as kernel:
        kernel.serve("late", lambda: over.wait(30) and pd.DataFrame({"a": range(3)}), seconds=0.2)
        assert not kernel.execute("late()", seconds=30).ok
        threads = [one for one in threading.enumerate() if one.name.startswith("host call")]
    over.set()
    for thread in threads:
        thread.join(30)

    assert threads
    assert os.listdir(tmp_path) == []


def test_tables_that_a_killed_host_has_left_go_with_a_later_kernel(tmp_path):
    old = tmp_path / FOLDER / "kernel-x-2-1.table"
    old.parent.mkdir()
    old.write_bytes(b"x")
    os.utime(old, (0, 0))
    with LocalKernel(tmp_path) as kernel:
        assert kernel.execute("1", seconds=30).ok

    assert os.listdir(tmp_path) == []


def test_tables_of_calls_that_failed_or_were_given_up_do_not_pile_up(tmp_path):
    over = threading.Event()
    half = [pd.DataFrame({"a": [1]}), object()]
    with LocalKernel(tmp_path) as kernel:
        kernel.serve("count", lambda table: len(table))
        kernel.serve("half", lambda: half)
        kernel.serve("late", lambda table: over.wait(30) and table, seconds=0.2)
        kernel.execute(
            "import pandas as pd\ntable = pd.DataFrame({'a': [1, 2]})\nhalf_way = [table, object()]", seconds=30
        )
        for code in ("count(table, more=1)", "count(table, object())", "half()", "late(table)"):
            assert not kernel.execute(code, seconds=30).ok
        with pytest.raises(TypeError, match="doesn't cross"):
            kernel.put("half", half)
        with pytest.raises(TypeError, match="doesn't cross"):
            kernel.get("half_way")
        threads = [one for one in threading.enumerate() if one.name.startswith("host call")]
        over.set()
        for thread in threads:
            thread.join(30)
        assert [kernel.execute("count(table)", seconds=30).result for _ in range(2)] == ["2", "2"]

        assert os.listdir(tmp_path / FOLDER) == []
