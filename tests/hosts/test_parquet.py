"""A Parquet file takes bounded memory, whatever its description says of it."""

import io
import json
import sys
import tracemalloc

import pandas as pd
import pytest

pa = pytest.importorskip("pyarrow", reason="needs the extra `data`")
from pyarrow import parquet  # noqa: E402

from tw_autogen.hosts.conversable.parquet import read_parquet  # noqa: E402

MEGA = 1 << 20


@pytest.fixture
def pool():
    """What counts the memory of Arrow in this test."""
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    yield pool
    pa.set_memory_pool(before)


def written(table, **options):
    sink = io.BytesIO()
    parquet.write_table(table, sink, store_schema=False, write_statistics=False, compression="zstd", **options)
    return sink.getvalue()


def parts(content):
    """Return the pages and the description of a file."""
    end = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    return content[:end], content[end:-8]


def number(value, size=0):
    """Return a number as the description has it, in so many bytes at least."""
    value, out = value << 1, []
    while value > 127 or len(out) + 1 < size:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def lie(content, said, instead):
    """Say another number in the description."""
    pages, description = parts(content)
    assert number(said) in description
    description = description.replace(number(said), number(instead, len(number(said))))
    return pages + description + len(description).to_bytes(4, "little") + b"PAR1"


def group_of(content):
    return parquet.ParquetFile(io.BytesIO(content)).metadata.row_group(0)


def one_text_in_each_row():
    texts = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), 20_000), ["x" * 300_000])
    return written(pa.table({"t": texts}))


def a_small_sum():
    content = one_text_in_each_row()
    return lie(content, group_of(content).total_byte_size, 1)


def a_small_count():
    content = written(pa.table(dict.fromkeys("nm", pa.nulls(31_234_567, pa.int8()))), use_dictionary=False)
    group = group_of(content)
    pages, description = parts(content)
    rows = number(group.num_rows)
    first = description.index(rows, description.index(rows) + 1)  # that of the column; the first one is the table's
    description = description[:first] + number(1, len(rows)) + description[first + len(rows) :]
    return pages + description + len(description).to_bytes(4, "little") + b"PAR1"


def one_page_for_many_columns():
    content = written(pa.table({f"c{one}": [f"{one}" * 100_000] for one in range(10, 40)}), use_dictionary=False)
    group = group_of(content)
    return lie(content, group.column(0).total_compressed_size, len(content) - 8)


def a_long_description():
    pages, description = parts(written(pa.table({"n": [1]})))
    description += bytes(3 * MEGA)
    return pages + description + len(description).to_bytes(4, "little") + b"PAR1"


def many_short_texts():
    texts = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), 20_000_000), [""])
    return written(pa.table({"t": texts}))


def no_column():
    """A file of its description alone: one group of rows, and no column."""
    rows = b"\x16" + number(1 << 50)
    schema, group = b"\x48\x04root\x15\x00\x00", b"\x19\x0c\x16\x00" + rows + b"\x00"
    description = b"\x15\x04\x19\x1c" + schema + rows + b"\x19\x1c" + group + b"\x00"
    return b"PAR1" + description + len(description).to_bytes(4, "little") + b"PAR1"


FILES = {
    "a text in each row": (one_text_in_each_row, "takes more than 1024 MB"),
    "a text in each row and a small sum": (a_small_sum, "takes more than 1024 MB"),
    "many values and another count": (a_small_count, "has more than 50000000 values"),
    "one page for many columns": (one_page_for_many_columns, "do not lie in its file side by side"),
    "a long description": (a_long_description, "description takes 3.* bytes"),
    "many rows and no column": (no_column, "says that it has more than 50000000 rows"),
    "many short texts": (many_short_texts, "takes more than 1024 MB"),
}


@pytest.mark.parametrize(("make", "said"), FILES.values(), ids=FILES)
def test_a_file_that_stands_for_much_is_refused_within_its_bounds(pool, make, said):
    content = make()
    before = pool.max_memory()

    with pytest.raises((ValueError, OSError), match=said):
        read_parquet(io.BytesIO(content))
    assert pool.max_memory() < max(before, 2 << 30)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_list_of_many_values_is_refused_before_it_is_read(pool, version, monkeypatch):
    monkeypatch.setattr("tw_autogen.hosts.conversable.parquet._MAX_VALUES", 1_000_000)
    values = pa.repeat(pa.scalar(0, pa.int8()), 8_000_000)
    content = written(pa.table({"n": pa.ListArray.from_arrays([0, len(values)], values)}), data_page_version=version)
    before = pool.max_memory()

    with pytest.raises(ValueError, match="has more than 1000000 values"):
        read_parquet(io.BytesIO(content))
    assert pool.max_memory() < before + MEGA


@pytest.mark.parametrize(
    "options",
    [{}, {"data_page_version": "2.0"}, {"use_dictionary": False}, {"compression": "snappy"}, {"row_group_size": 100}],
    ids=str,
)
def test_an_ordinary_file_is_read(options):
    frame = pd.DataFrame(
        {
            "n": range(1000),
            "x": [0.5] * 1000,
            "t": [f"text {one % 7}" for one in range(1000)],
            "d": pd.date_range("2024", periods=1000),
            "l": [[1, 2]] * 1000,
            "b": [True, None] * 500,
        }
    )
    sink = io.BytesIO()
    parquet.write_table(pa.Table.from_pandas(frame), sink, **options)
    read = read_parquet(sink)

    assert read.drop(columns="l").equals(frame.drop(columns="l"))
    assert list(map(list, read.l)) == [[1, 2]] * 1000


@pytest.mark.parametrize("cut", [0, 3, 8, 40])
def test_a_file_that_is_cut_is_an_error(cut):
    content = written(pa.table({"n": [1]}))[:cut]

    with pytest.raises(ValueError, match=r"[Pp]arquet|description"):
        read_parquet(io.BytesIO(content))


def opened_below(folder):
    """Note what is opened below a folder from here on."""
    seen = []
    sys.addaudithook(
        lambda event, args: seen.append(args[0]) if event == "open" and str(folder) in str(args[0]) else None
    )
    return seen


@pytest.mark.parametrize(
    "where", ["what pandas is told of a column", "of the columns' names", "the type", "in a list", "of an interval"]
)
def test_no_file_is_opened_that_the_table_names_as_a_time_zone(where, tmp_path):
    (tmp_path / "zone").write_bytes(b"TZif")
    zone = f"dateutil/{tmp_path}/zone"
    table = pa.Table.from_pandas(pd.DataFrame({"t": pd.to_datetime(["2024-01-01"], utc=True), "n": [1]}))
    said = json.loads(table.schema.metadata[b"pandas"])
    if where.startswith("what pandas"):
        said["columns"][0] |= {"numpy_type": f"datetime64[ns, {zone}]", "metadata": {"timezone": zone}}
    elif where.startswith("of the"):
        said["column_indexes"][0] |= {"pandas_type": "datetimetz", "numpy_type": f"datetime64[ns, {zone}]"}
        said["column_indexes"][0]["metadata"] = {"timezone": zone}
    else:
        stamps = pa.Array.from_buffers(pa.timestamp("ns", tz=zone), 1, pa.array([1], "int64").buffers())
        stamps = pa.ListArray.from_arrays(pa.array([0, 1], "int32"), stamps) if "list" in where else stamps
        if "interval" in where:  # a type that pandas makes known when it first writes such a file
            pd.DataFrame({"i": pd.interval_range(0, 1)}).to_parquet(io.BytesIO())
            kind = pa.array(pd.arrays.IntervalArray.from_breaks(pd.to_datetime(["2024", "2025"], utc=True))).type
            stored = pa.StructArray.from_arrays([stamps, stamps], ["left", "right"])
            stamps = pa.ExtensionArray.from_storage(type(kind)(stamps.type, "right"), stored)
        table = table.set_column(0, "t", stamps)
    table = table.replace_schema_metadata({b"pandas": json.dumps(said).encode()})
    sink = io.BytesIO()
    parquet.write_table(table, sink)
    seen = opened_below(tmp_path)

    if where in ("the type", "in a list", "of an interval"):
        with pytest.raises(ValueError, match="a time zone that is no name of the IANA database"):
            read_parquet(sink)
    else:
        assert list(read_parquet(sink).columns) == ["t", "n"]

    assert seen == []


def test_index_and_numbers_that_may_be_missing_come_back_as_they_were_written():
    frame = pd.DataFrame({"n": pd.array([1 << 60, None], "Int64"), "b": pd.array([True, None], "boolean")})
    by_year = frame.set_axis([2023, 2024], axis="columns").iloc[1:]
    many = frame.set_axis(pd.MultiIndex.from_tuples([("a", "n"), ("a", "b")]), axis="columns")
    for written_frame in (frame, by_year, many, frame.set_axis(["x", "y"]), frame.set_index(["n", "b"])):
        sink = io.BytesIO()
        written_frame.to_parquet(sink)

        pd.testing.assert_frame_equal(read_parquet(sink), pd.read_parquet(sink))


@pytest.mark.parametrize("where", ["the type of labels", "labels of two levels"])
def test_what_the_file_tells_pandas_of_its_labels_takes_neither_memory_nor_time(where, cpu_seconds):
    table = pa.Table.from_pandas(pd.DataFrame({f"c{at}": [at] for at in range(20)}))
    said = json.loads(table.schema.metadata[b"pandas"])
    if where == "the type of labels":
        said["column_indexes"][0] |= {"numpy_type": "S30000000"}
    else:
        alike = "{" + ",".join(str(number * (2**61 - 1)) for number in range(20_000)) + "}"
        said["column_indexes"] *= 2
        said["columns"] = [said["columns"][0] | {"name": alike}]
        table = pa.table([pa.array([1])] * 20, names=["c0"] * 20)
    sink = io.BytesIO()
    parquet.write_table(table.replace_schema_metadata({b"pandas": json.dumps(said).encode()}), sink)
    began = cpu_seconds()
    tracemalloc.start()

    assert read_parquet(sink).shape == (1, 20)

    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 100_000_000
    assert cpu_seconds() - began < 5


@pytest.mark.parametrize("said", ["no JSON", "[]", '{"index_columns": 5}', '{"columns": [5]}', '{"columns": [{}]}'])
def test_what_the_file_tells_pandas_may_be_anything(said):
    sink = io.BytesIO()
    parquet.write_table(pa.table({"n": [1]}).replace_schema_metadata({b"pandas": said.encode()}), sink)

    assert read_parquet(sink).equals(pd.DataFrame({"n": [1]}))


@pytest.mark.parametrize(("rows", "levels"), [(100, 2), (20_000, 1)])
def test_labels_of_several_levels_come_back_of_few_rows(rows, levels):
    frame = pd.DataFrame({"a": range(rows), "b": range(rows), "n": range(rows)}).set_index(["a", "b"])
    sink = io.BytesIO()
    frame.to_parquet(sink)

    read = read_parquet(sink)

    assert read.index.nlevels == levels
    assert read.n.tolist() == list(range(rows))
