"""One message has one budget of memory for all that lies in it, and each field of it has the type that it should."""

import gc
import itertools
import json
import threading
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from tw_autogen.kernel import LocalKernel
from tw_autogen.kernel.exchange_folder import HostExchange
from tw_autogen.kernel.guest.codec import Codec
from tw_autogen.kernel.host_calls import HostCalls, HostFunctions

MEGA = 1 << 20
TAKEN = itertools.count()
MAX = 32 * MEGA
SECONDS = 30


@pytest.fixture
def codec(tmp_path):
    return Codec(HostExchange(tmp_path), max_bytes=MAX)


@pytest.fixture
def gate():
    """What host functions wait for; open at the end, so that none is left behind."""
    gate = threading.Event()
    yield gate
    gate.set()


def forged(folder, header, *, numbers=0, stream=b""):
    """Describe a table by a header of one's own; its numbers are zeros that take nothing on the disk."""
    folder = folder / ".tw-exchange"
    folder.mkdir(exist_ok=True)
    name = f"{next(TAKEN)}.table"  # one that is read is removed meanwhile
    text = json.dumps(header).encode()
    with open(folder / name, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + numbers.to_bytes(8, "little") + text)
        file.truncate(file.tell() + numbers)
        file.seek(0, 2)
        file.write(stream)
    return {"$": "DataFrame", "file": name}


def steps(count):
    return {"kind": "range", "range": [0, count, 1], "names": [None]}


def of(*columns, rows, **others):
    """Describe a table's columns."""
    plain = {"rows": rows, "columns": columns, "index": steps(rows), "labels": steps(len(columns)), "name": None}
    return {**plain, "attrs": {}, **others}


def zeros(count, dtype="<i8"):
    return {"dtype": dtype, "start": 0, "count": count}


def a_table(folder, megabytes):
    """Describe a table that takes so much, twice while it is read."""
    rows = megabytes * MEGA // 8
    return forged(folder, of({"kind": "number", "values": zeros(rows)}, rows=rows), numbers=8 * rows)


TEN = 10
IN_ONE_MESSAGE = {
    "a list": lambda one: [one() for _ in range(TEN)],
    "a tuple": lambda one: {"$": "tuple", "items": [one() for _ in range(TEN)]},
    "values of a dict": lambda one: {str(number): one() for number in range(TEN)},
    "pairs": lambda one: {"$": "dict", "items": [[number, one()] for number in range(TEN)]},
}


@pytest.mark.parametrize("put", IN_ONE_MESSAGE.values(), ids=IN_ONE_MESSAGE)
def test_all_tables_of_a_message_share_one_budget(codec, tmp_path, put):
    with pytest.raises(ValueError, match="more than 32 MB of memory"):
        codec.unpack(put(lambda: a_table(tmp_path, 5)))


IN_A_TABLE = {
    "cells": lambda many: of({"kind": "object", "values": many}, rows=TEN),
    "attrs": lambda many: of(rows=0, attrs={"many": many}),
    "the name": lambda many: of({"kind": "number", "values": zeros(0)}, rows=0, name=[many]),
    "names of the index": lambda many: of(rows=0, index={**steps(0), "names": [many]}),
    "a fill value": lambda many: of({"kind": "sparse", "values": zeros(0), "fill": many}, rows=0),
}


@pytest.mark.parametrize("put", IN_A_TABLE.values(), ids=IN_A_TABLE)
def test_tables_in_a_table_take_of_its_budget(codec, tmp_path, put):
    with pytest.raises(ValueError, match="more than 32 MB of memory"):
        codec.unpack(forged(tmp_path, put([a_table(tmp_path, 5) for _ in range(TEN)])))


def test_tables_that_fit_together_cross(codec, tmp_path):
    tables = codec.unpack([a_table(tmp_path, 2) for _ in range(5)])

    assert [len(table) for table in tables] == [2 * MEGA // 8] * 5


COUNT = 10 * MEGA
"""So many values of one byte."""

BYTES = zeros(COUNT, "|u1")
WIDENED = {
    "times of one byte": {"kind": "time", "dtype": "M8[ns]", "zone": None, "values": zeros(COUNT, "|i1")},
    "periods of one byte": {"kind": "period", "frequency": "D", "values": zeros(COUNT, "|i1")},
    "a sparse column": {"kind": "sparse", "fill": 1, "values": BYTES},
    "missing values of 8 bytes": {"kind": "nullable", "values": BYTES, "missing": zeros(COUNT // 8)},
    "codes of many categories": {
        "kind": "category",
        "ordered": False,
        "of": {"kind": "text", "dtype": "string", "storage": "python", "values": [f"{one}" for one in range(33_000)]},
        "values": BYTES,
    },
}


def peak(call):
    """Return what a call raises, and the most memory that Python's and numpy's objects took during it."""
    gc.collect()
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r".") as raised:
            call()
        return str(raised.value), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("column", WIDENED.values(), ids=WIDENED)
def test_a_column_whose_values_become_wider_is_refused_first(codec, tmp_path, column):
    said, most = peak(lambda: codec.unpack(forged(tmp_path, of(column, rows=COUNT), numbers=COUNT)))

    assert "MB of memory" in said or "8 bytes" in said or "missing" in said
    assert most < MAX + 4 * MEGA


@pytest.mark.parametrize("kind", ["flat", "multi"])
def test_an_index_is_refused_by_the_memory_that_it_would_take(codec, tmp_path, kind):
    level = {"kind": "number", "values": zeros(2 * MEGA, "|u1")}
    codes = [zeros(2 * MEGA, "|i1")] * 12
    index = {"kind": kind, "levels": [level] * 12, "codes": codes, "names": [None] * 12, "frequency": None}
    said, most = peak(lambda: codec.unpack(forged(tmp_path, of(rows=2 * MEGA, index=index), numbers=2 * MEGA)))

    assert "more than 32 MB of memory" in said
    assert most < MAX + 4 * MEGA


def test_columns_without_values_count(codec, tmp_path):
    columns = [{"kind": "number", "values": zeros(0)}] * 16_000

    with pytest.raises(ValueError, match="more than 32 MB of memory"):
        codec.unpack(forged(tmp_path, of(*columns, rows=0)))


def in_arrow(array):
    pa = pytest.importorskip("pyarrow")
    sink = pa.BufferOutputStream()
    schema = pa.schema([("0", array.type)])
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch([array], schema=schema))
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ({"kind": "number"}, np.zeros(MEGA // 4)),
        ({"kind": "texts"}, ["x" * 99] * 5000),
        ({"kind": "text", "dtype": "string", "storage": "python"}, ["x" * 99] * 5000),
        ({"kind": "text", "dtype": "string", "storage": "pyarrow"}, ["x"] * 50_000),
    ],
    ids=str,
)
def test_an_arrow_column_that_is_named_many_times_counts_each_time(tmp_path, column, values):
    pa = pytest.importorskip("pyarrow")
    codec = Codec(HostExchange(tmp_path), arrow=True, max_bytes=MAX)
    columns = [{**column, "values": {"arrow": 0}}] * 60
    header = of(*columns, rows=len(values))

    with pytest.raises(ValueError, match="more than 32 MB of memory"):
        codec.unpack(forged(tmp_path, header, stream=in_arrow(pa.array(values))))


def test_one_wide_character_makes_a_text_of_arrow_wide(tmp_path):
    pa = pytest.importorskip("pyarrow")
    codec = Codec(HostExchange(tmp_path), arrow=True, max_bytes=MAX)
    for wide, fits in (("", True), ("\N{GRINNING FACE}", False)):
        told = forged(
            tmp_path,
            of({"kind": "texts", "values": {"arrow": 0}}, rows=1),
            stream=in_arrow(pa.array(["x" * (8 * MEGA) + wide])),
        )
        if fits:
            assert len(codec.unpack(told).iloc[0, 0]) == 8 * MEGA
        else:
            with pytest.raises(ValueError, match="more than 32 MB of memory"):
                codec.unpack(told)


LONG = "一" * 100_000
VALUES = {
    "a tuple of a text": {"$": "tuple", "items": LONG},
    "a tuple of a dict": {"$": "tuple", "items": {"a": 1}},
    "a tuple of nothing": {"$": "tuple"},
    "a set of a text": {"$": "set", "items": LONG},
    "a frozenset of a text": {"$": "frozenset", "items": LONG},
    "pairs of a text": {"$": "dict", "items": "ab" * 1000},
    "a pair that is a text": {"$": "dict", "items": ["ab"] * 1000},
    "a pair of three": {"$": "dict", "items": [[1, 2, 3]]},
    "a mark that is a list": {"$": [LONG]},
    "a mark that is a number": {"$": 7},
    "a date of a number": {"$": "date", "iso": 5},
    "a long date": {"$": "date", "iso": LONG},
    "a timestamp of a number": {"$": "Timestamp", "iso": 5, "zone": None},
    "a timestamp in a zone of a list": {"$": "Timestamp", "iso": "2020-01-01T00:00:00+00:00", "zone": ["UTC"]},
    "a span of a list": {"$": "Timedelta", "iso": ["P1D"]},
    "a long span": {"$": "timedelta", "days": 10**12, "seconds": 0, "microseconds": 0},
    "a span of texts": {"$": "timedelta", "days": "1", "seconds": 0, "microseconds": 0},
    "bytes of a list": {"$": "bytes", "base64": ["AA=="]},
    "a decimal of a list": {"$": "Decimal", "text": [LONG]},
    "a decimal of very many zeros": {"$": "Decimal", "text": "1e150000000"},
    "a decimal of very many digits": {"$": "Decimal", "text": "1" * 10_000},
    "an array of very many rows without a value": {
        "$": "ndarray",
        "dtype": "|u1",
        "shape": [12_000_000, 0],
        "base64": "",
    },
    "a path of a dict": {"$": "Path", "text": {"a": LONG}},
    "a path of many parts": {"$": "Path", "text": "a/" * 100_000},
    "a table in a list": {"$": "DataFrame", "file": ["a.table"]},
    "an array of many dimensions": {"$": "ndarray", "dtype": "|u1", "shape": [1] * 100, "base64": "AA=="},
    "an array whose shape is true": {"$": "ndarray", "dtype": "|u1", "shape": [True], "base64": "AA=="},
}


@pytest.mark.parametrize("plain", VALUES.values(), ids=VALUES)
def test_a_value_with_a_field_of_a_wrong_type_is_refused_in_few_words(codec, plain):
    with pytest.raises(ValueError, match=r"cross|marked") as raised:
        codec.unpack(plain)

    assert len(str(raised.value)) < 300


NUMBERS = {"kind": "number", "values": zeros(1)}
HEADERS = {
    "no dict": [],
    "rows of a text": of(rows="1"),
    "rows that are true": of(NUMBERS, rows=1) | {"rows": True},
    "columns of a text": of(rows=0) | {"columns": "ab"},
    "a column that is a text": of("ab", rows=1),
    "a kind that is a list": of({"kind": ["number"]}, rows=1),
    "a category whose order is a text": of(
        {"kind": "category", "ordered": "no", "of": NUMBERS, "values": zeros(1)}, rows=1
    ),
    "categories of a list": of({"kind": "category", "ordered": False, "of": [], "values": zeros(1)}, rows=1),
    "an interval of a text": of({"kind": "interval", "left": "a", "right": "b", "closed": "left"}, rows=1),
    "a frequency of a list": of({"kind": "period", "frequency": ["D"], "values": zeros(1)}, rows=1),
    "numbers of a list": of({"kind": "number", "values": [1]}, rows=1),
    "texts in a storage of a list": of({"kind": "text", "dtype": "str", "storage": [], "values": ["a"]}, rows=1),
    "objects of a dict": of({"kind": "object", "values": {"a": 1}}, rows=1),
    "an index that is a list": of(rows=0, index=[]),
    "levels of a text": of(rows=0, index={"kind": "flat", "levels": "ab", "names": [None], "frequency": None}),
    "no levels": of(rows=0, index={"kind": "flat", "levels": [], "names": [], "frequency": None}),
    "steps of texts": of(rows=0, index={"kind": "range", "range": ["0", "1", "1"], "names": [None]}),
    "huge steps": of(rows=0, index={"kind": "range", "range": [0, 1 << 80, 1], "names": [None]}),
    "names of a text": of(rows=0, index={**steps(0), "names": "ab"}),
    "attrs of a list": of(rows=0, attrs=[]),
    "a name of a text": of(rows=0, name="ab"),
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_a_table_with_a_field_of_a_wrong_type_is_refused(codec, tmp_path, header):
    with pytest.raises(ValueError, match=r"cross|header|index|times|rows"):
        codec.unpack(forged(tmp_path, header, numbers=8))


def request(number, name="hold", op="call", args=()):
    return json.dumps({"id": number, "op": op, "name": name, "args": list(args), "kwargs": {}})


REQUESTS = {
    "a list": [],
    "no number": {"op": "call", "name": "hold", "args": [], "kwargs": {}},
    "a number that is a text": {"id": LONG, "op": "call", "name": "hold", "args": [], "kwargs": {}},
    "a name that is a list": {"id": 1, "op": "call", "name": [LONG], "args": [], "kwargs": {}},
    "arguments that are a text": {"id": 1, "op": "call", "name": "hold", "args": LONG, "kwargs": {}},
    "named arguments that are a list": {"id": 1, "op": "call", "name": "hold", "args": [], "kwargs": []},
    "another operation": {"id": 1, "op": "eval", "name": "hold", "args": [], "kwargs": {}},
    "an operation that is a list": {"id": 1, "op": ["call"], "name": "hold", "args": [], "kwargs": {}},
    "a ticket that is a list": {"id": 1, "op": "result", "ticket": []},
}


@pytest.mark.parametrize("asked", REQUESTS.values(), ids=REQUESTS)
def test_a_request_with_a_field_of_a_wrong_type_is_refused_in_few_words(codec, asked):
    served = HostFunctions()
    served.add("hold", lambda: None)
    answer = HostCalls(served, codec, lambda: None).ask(json.dumps(asked))

    assert "ValueError: a request to" in answer
    assert len(answer) < 300


def test_an_error_that_repeats_a_long_name_is_cut(codec):
    served = HostFunctions()
    served.add("hold", lambda: None)
    calls = HostCalls(served, codec, lambda: None)

    for name in ("x" * MEGA, "hold"):
        asked = {"id": 1, "name": name, "args": [], "kwargs": {"x" * MEGA: 1}}
        assert len(ended(calls, calls.ask(json.dumps(asked)))) < 30_000


def ended(calls, answer):
    """Return a call's answer, which may need a while."""
    pause = threading.Event()
    for _ in range(SECONDS * 100):
        if answer is not None:
            return answer
        pause.wait(0.01)
        answer = calls.take()
    raise AssertionError("no answer came")


def test_calls_that_nobody_waits_for_any_more_are_alive_and_bounded(codec, gate):
    began = threading.Semaphore(0)

    def hold():
        began.release()
        gate.wait(SECONDS)

    served = HostFunctions()
    served.add("hold", hold)
    answers = []
    for _ in range(10):  # cells, each of which is given up
        calls = HostCalls(served, codec, lambda: None, threads=2)
        for number in range(4):
            answers.append(calls.ask(request(number)))
            assert answers[-1] or began.acquire(timeout=SECONDS)
        calls.abandon()

    refused = [one for one in answers if one is not None]
    assert len(answers) - len(refused) == 6  # twice as many as one cell can run: two aside, and its own
    assert all("earlier calls are still at work in the host" in one for one in refused)

    gate.set()
    calls = HostCalls(served, codec, lambda: None, threads=2)
    for _ in range(SECONDS * 100):
        answer = ended(calls, calls.ask(request(1)))
        if "error" not in answer:
            break
    assert json.loads(answer) == {"id": 1, "value": None}


def test_a_submitted_call_that_could_wait_for_ever_is_refused(codec, gate):
    began = threading.Semaphore(0)
    served = HostFunctions()
    served.add("hold", lambda: began.release() or gate.wait(SECONDS))
    for number in range(4):
        calls = HostCalls(served, codec, lambda: None, threads=1)
        calls.ask(request(number))
        assert began.acquire(timeout=SECONDS)
        calls.abandon()
    calls = HostCalls(served, codec, lambda: None, threads=1)

    calls.ask(request(1, op="submit"))
    assert "earlier calls are still at work" in calls.ask(json.dumps({"id": 2, "op": "result", "ticket": 1}))


def test_a_number_is_given_to_one_submitted_call_only(codec, gate):
    served = HostFunctions()
    served.add("hold", lambda: gate.wait(SECONDS))
    calls = HostCalls(served, codec, lambda: None)

    assert calls.ask(request(1, op="submit")) == '{"id": 1, "value": 1}'
    assert "too many calls were submitted" in calls.ask(request(1, op="submit"))


@pytest.mark.parametrize("op", ["call", "submit"])
def test_requests_of_calls_that_are_not_done_are_bounded_together(codec, gate, op):
    served = HostFunctions()
    served.add("hold", lambda *lists: gate.wait(SECONDS))
    answers = []
    for number in range(6):
        calls = HostCalls(served, codec, lambda: None)
        answers.append(calls.ask(request(number, op=op, args=[[]] * 650_000)))

    assert ["error" in (answer or "") for answer in answers] == [False] * 4 + [True] * 2
    assert "too many calls are not done: with this one their arguments would take more than 256 MB" in answers[-1]


def test_calls_side_by_side_share_the_memory_of_their_tables(codec, tmp_path, gate):
    served = HostFunctions(MAX)
    served.add("hold", lambda table: gate.wait(SECONDS))
    calls = HostCalls(served, codec, lambda: None)
    for number in range(6):
        calls.ask(request(number, op="submit", args=[a_table(tmp_path, 8)]))
    assert calls.begun
    results = []
    pause = threading.Event()
    for _ in range(SECONDS * 100):
        done = [calls.ask(json.dumps({"id": 9, "op": "done", "ticket": number})) for number in range(6)]
        if sum('"value": true' in one for one in done) == 5:
            break
        pause.wait(0.01)
    gate.set()
    results = [ended(calls, calls.ask(json.dumps({"id": 9, "op": "result", "ticket": one}))) for one in range(6)]

    assert sum("error" not in result for result in results) == 1
    assert sum("what host calls at work hold" in result for result in results) == 5
    later = HostCalls(served, codec, lambda: None)
    assert "error" not in ended(later, later.ask(request(1, args=[a_table(tmp_path, 8)])))


RAW = """
import json, sys
ask = vars(sys.modules["tw_guest"])["bridge_of_this_kernel"]._ask
table = {"$": "DataFrame", "file": "kept.table"}
print(ask("\\0tw-call\\0" + json.dumps({"id": 1, "name": "pip install", "args": [[table]], "kwargs": {}})))
"""


def test_where_nothing_can_be_installed_no_argument_is_unpacked():
    with LocalKernel() as kernel:
        kernel.execute("1", seconds=SECONDS)
        told = kernel.folder / ".tw-exchange" / "kept.table"
        told.parent.mkdir(exist_ok=True)
        told.write_bytes(b"no table")
        ran = kernel.execute(RAW, seconds=SECONDS)

        assert "nothing can be installed here" in ran.stdout, ran.error
        assert told.exists()  # reading it would have removed it


def test_what_was_bounded_still_crosses(codec):
    frame = pd.DataFrame(
        {
            "n": [1, 2, 3],
            "c": pd.Categorical(["a", "b", "a"]),
            "s": pd.arrays.SparseArray([0.0, 0.0, 1.5], fill_value=0.0),
            "p": pd.period_range("2024", periods=3, freq="D"),
            "t": pd.date_range("2024", periods=3, tz="UTC"),
            "i": pd.interval_range(0, 3),
            "m": pd.array([1, None, 3], dtype="Int8"),
        },
        index=pd.MultiIndex.from_product([["x"], [1, 2, 3]], names=["a", "b"]),
    )
    frame.attrs["note"] = (1, {2}, {(3, 4): 5})

    pd.testing.assert_frame_equal(codec.unpack(codec.pack(frame)), frame)
