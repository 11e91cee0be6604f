"""Tables that cross come back as they went, and what a kernel says of a table is checked before it is used."""

import datetime
import io
import json
import math

import numpy as np
import pandas as pd
import pytest

from tw_autogen.kernel.folder import HostExchange
from tw_autogen.kernel.guest.arrays import Arrays
from tw_autogen.kernel.guest.codec import Codec
from tw_autogen.kernel.guest.texts import is_compressed, unpack_arrow

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
        "sparse": pd.DataFrame({"s": pd.arrays.SparseArray([math.nan, 1.5]), "t": pd.arrays.SparseArray([0, 1])}),
        "the same name twice": pd.DataFrame([[1, "a"], [2, "b"]], columns=["x", "x"]),
        "names of all kinds": pd.DataFrame([[1, 2, 3]], columns=pd.Index(["a", 1, ("b", 2)], tupleize_cols=False)),
        "names in levels": pd.DataFrame([[1, 2.5]], columns=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])),
        "times for names": pd.DataFrame([[1, 2, 3]], columns=times()["zoned"]),
        "an index in levels": pd.DataFrame(three, index=multi),
        "an index of times": pd.DataFrame(three, index=pd.date_range("2024-03-30", periods=3, tz="Europe/Brussels")),
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
    return [one if isinstance(one, str) else (type(one).__name__, str(one)) for one in values]


@pytest.mark.parametrize("what", tables())
def test_a_table_comes_back_as_it_went(kernel, what):
    table = tables()[what]
    kernel.put("table", table)
    back = kernel.get("table")

    pd.testing.assert_frame_equal(back, table, check_index_type="exact", check_column_type="exact")
    assert back.dtypes.tolist() == table.dtypes.tolist()
    for place, dtype in enumerate(table.dtypes):
        if str(dtype) == "object":
            assert told(back.iloc[:, place]) == told(table.iloc[:, place])


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


def test_a_column_that_does_not_cross_is_named(kernel):
    with pytest.raises(TypeError, match="column 'z' has dtype complex128, which doesn't cross"):
        kernel.put("table", pd.DataFrame({"z": [1j]}))


@pytest.fixture
def codec(tmp_path):
    return Codec(HostExchange(tmp_path))


def words(count=6000):
    return pd.DataFrame({"o": objects(*["ab", "c"] * (count // 2))})


def lie(table, codec, **changes):
    """Pack a table, and say something else about its first column."""
    plain = codec.pack(table)
    for path, value in changes.items():
        *above, last = path.split("__")
        place = plain["columns"][0]
        for one in above:
            place = place[one]
        place[last] = value
    return json.loads(json.dumps(plain))


@pytest.mark.parametrize(
    ("table", "changes", "said"),
    [
        (pd.DataFrame({"n": [1, 2]}), {"count": 3}, "holds no 3 values"),
        (pd.DataFrame({"n": [1, 2]}), {"count": 1 << 62}, "holds no"),
        (pd.DataFrame({"n": [1, 2]}), {"count": -1}, "holds no -1 values"),
        (pd.DataFrame({"n": [1, 2]}), {"count": 1.5}, "holds no 1.5 values"),
        (pd.DataFrame({"n": [1, 2]}), {"count": 1}, "not of 2 rows"),
        (pd.DataFrame({"n": [1, 2]}), {"dtype": "O"}, "not a dtype of numbers: 'O'"),
        (pd.DataFrame({"n": [1, 2]}), {"dtype": "V8"}, "not a dtype of numbers: 'V8'"),
        (pd.DataFrame({"n": [1, 2]}), {"dtype": ["<i8"]}, "not a dtype of numbers"),
        (pd.DataFrame({"n": [1, 2]}), {"kind": "pickle"}, "of kind 'pickle'"),
        (pd.DataFrame({"n": [1, 2]}), {"kind": "arrow", "bytes": 16}, "of kind 'arrow'"),
        (pd.DataFrame({"o": objects("a", "b")}), {"count": 1}, "not of 1 pieces"),
        (pd.DataFrame({"o": objects("a", "b")}), {"bytes": 99}, "holds no 99 values"),
        (pd.DataFrame({"o": objects("1", "2\0")}), {"count": 3}, "not of 3 pieces"),
        (words(), {"of__bytes": 1, "of__count": 1}, "words that are not there"),
        (words(), {"of__kind": "words"}, "words that cross are texts"),
        (pd.DataFrame({"t": pd.to_datetime(["2024-01-01"])}), {"unit": "ns, evil"}, "no times that cross"),
        (pd.DataFrame({"c": pd.Categorical(["a", "b"])}), {"of__bytes": 1, "of__count": 1}, "codes need to be"),
    ],
    ids=lambda one: str(one) if isinstance(one, dict) else "",
)
def test_a_lie_about_a_column_is_found_out(codec, table, changes, said):
    with pytest.raises(ValueError, match=said):
        codec.unpack(lie(table, codec, **changes))


def test_a_small_file_does_not_become_endless_text(codec, tmp_path):
    packed = lie(words(), codec)
    numbers = np.zeros(6000, "<i4").tobytes()
    text = b"x" * 100_000
    (tmp_path / ".tw-exchange" / packed["file"]).write_bytes(numbers + text)
    packed["columns"][0]["of"] |= {"count": 1, "bytes": len(text)}

    with pytest.raises(ValueError, match="longer than its file may tell"):
        codec.unpack(packed)


def arrow_column(array, *, compression=None):
    sink = pa.BufferOutputStream()
    schema = pa.schema([("0", array.type)])
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_batch(pa.record_batch([array], schema=schema))
    blob = sink.getvalue().to_pybytes()
    return {"kind": "arrow", "bytes": len(blob)}, Arrays(io.BytesIO(blob), 8 << 20)


def nested_nulls(count):
    return pa.ListArray.from_arrays(pa.array([0, count], "int32"), pa.nulls(count))


BOMBS = {
    "compressed with zstd": (lambda: arrow_column(pa.array([0] * 500_000), compression="zstd"), "uncompressed"),
    "compressed with lz4": (lambda: arrow_column(pa.array(["x"] * 9), compression="lz4"), "uncompressed"),
    "a compressed dictionary": (
        lambda: arrow_column(pa.array(["x"] * 9).dictionary_encode(), compression="lz4"),
        "uncompressed",
    ),
    "values without bytes": (lambda: arrow_column(pa.nulls(10_000_000)), "more than 8 MB"),
    "lists of values without bytes": (lambda: arrow_column(nested_nulls(1_000_000)), "more than 8 MB"),
    "runs": (
        lambda: arrow_column(pa.RunEndEncodedArray.from_arrays(pa.array([1 << 30], "int32"), pa.array([1]))),
        "run_end_encoded.* doesn't cross",
    ),
    "views of one text": (lambda: arrow_column(pa.array(["x" * 99] * 9, pa.string_view())), "string_view doesn't"),
}


@needs_arrow
@pytest.mark.parametrize(("make", "said"), BOMBS.values(), ids=BOMBS)
def test_a_small_arrow_column_does_not_become_endless(make, said):
    with pytest.raises(ValueError, match=said):
        unpack_arrow(*make())


@needs_arrow
@pytest.mark.parametrize(
    "values",
    [[1, None, 3], ["a", None], [[1, 2], [], None], [{"a": 1}, None], [datetime.date(2024, 1, 1)], [b"x"]],
    ids=str,
)
def test_arrow_columns_that_are_plain_come_through(values):
    assert len(unpack_arrow(*arrow_column(pa.array(values)))) == len(values)


@pytest.mark.parametrize("metadata", [b"", b"\x04\0\0\0", b"\xff" * 64, bytes(200)], ids=repr)
def test_a_header_of_arrow_that_is_none_is_an_error_or_has_no_compression(metadata):
    try:
        assert not is_compressed(metadata)
    except ValueError as error:
        assert "no header of an Arrow message" in str(error)  # noqa: PT017 - either will do


def test_a_truth_value_is_one_or_nothing(codec, tmp_path):
    packed = lie(pd.DataFrame({"b": [True, False, True]}), codec)
    (tmp_path / ".tw-exchange" / packed["file"]).write_bytes(b"\x02\x00\xff")

    assert codec.unpack(packed).b.to_numpy().view("u1").tolist() == [1, 0, 1]
