"""What crosses between host and kernel: variables, frames, calls back into the host."""

import datetime
import threading
from decimal import Decimal
from enum import Enum
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

from tw_autogen.errors import KernelBusyError, KernelError
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.kernel.guest.codec import Codec


def frame():
    return pd.DataFrame(
        {
            "whole": [1, 2, 3],
            "real": [1.5, None, -0.25],
            "yes": [True, False, True],
            "text": ["a,b", 'say "hi"\n', None],
            "day": pd.to_datetime(["2024-01-01", None, "2024-03-01"]),
            "zoned": pd.to_datetime(["2024-01-01", "2024-02-01", "2024-03-01"]).tz_localize("Europe/Brussels"),
            "kind": pd.Categorical(["x", "y", "x"], ["y", "x"]),
        },
        index=pd.Index([10, 20, 30], name="key"),
    )


@pytest.mark.parametrize(
    "value", [None, True, 3, 2.5, "text", [1, [2]], {"a": {"b": None}}, (1, "x"), float("inf")], ids=repr
)
def test_plain_values_come_back_as_they_went(kernel, value):
    kernel.put("value", value)

    assert kernel.get("value") == value


ARRAYS = {
    "whole numbers": np.arange(6, dtype="int32").reshape(2, 3),
    "real numbers": np.array([1.5, np.nan]),
    "none": np.zeros((0, 4), dtype="float32"),
    "big-endian": np.arange(3, dtype=">i2"),
    "complex": np.array([1 + 2j]),
    "texts": np.array(["a", "bcd"]),
    "truth": np.array([[True], [False]]),
    "times": np.array(["2024-01-01", "NaT"], dtype="datetime64[ns]"),
    "columns first": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "a part": np.arange(10)[::3],
}
OTHERS = [
    b"\x00\xff",
    bytearray(b"ab"),
    {(2, "x")},
    frozenset({"a"}),
    Decimal("1.10"),
    Decimal("1E-4300"),
    Decimal("-Infinity"),
    Path("a/b.csv"),
    datetime.timedelta(days=-1, microseconds=5),
    {"path": Path("x"), "in": [{Decimal(1)}]},
]


@pytest.mark.parametrize("value", OTHERS, ids=repr)
def test_values_beyond_json_come_back_as_they_went(kernel, value):
    kernel.put("value", value)

    back = kernel.get("value")
    assert (back, type(back)) == (value, type(value))


ZONE = ZoneInfo("Europe/Brussels")
ZONED = {
    "winter": datetime.datetime(2024, 1, 1, 12, tzinfo=ZONE),
    "the first of two": datetime.datetime(2024, 10, 27, 2, 30, tzinfo=ZONE),
    "the second of two": datetime.datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZONE),
    "in the gap": datetime.datetime(2024, 3, 31, 2, 30, tzinfo=ZONE),
    "a time of the day": datetime.time(12, 30, tzinfo=ZONE),
    "an offset": datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
}


@pytest.mark.parametrize("value", ZONED.values(), ids=ZONED)
def test_a_time_in_a_zone_stays_in_it(kernel, value):
    kernel.put("value", [value])

    (back,) = kernel.get("value")
    assert repr(back) == repr(value)
    assert kernel.execute("value[0].tzinfo, value[0].fold", seconds=30).result == repr((value.tzinfo, value.fold))


class Colour(str, Enum):
    RED = "red"


SCALARS = {
    "a time": (np.datetime64("2024-06-01T00:00:00.000000001", "ns"), np.datetime64("2024-06-01T00:00:00.000000001")),
    "a span": (np.timedelta64(90, "s"), np.timedelta64(90, "s")),
    "a long span": (np.timedelta64(2**60, "ns"), np.timedelta64(2**60, "ns")),
    "a day": (np.datetime64("2024-06-01"), datetime.date(2024, 6, 1)),
    "a second": (np.datetime64("2024-06-01T12:00:00"), datetime.datetime(2024, 6, 1, 12)),
    "a number": (np.float32(1.5), 1.5),
    "a member of an enum": (Colour.RED, "red"),
}


@pytest.mark.parametrize(("value", "expected"), SCALARS.values(), ids=SCALARS)
def test_a_value_of_a_richer_type_comes_back_as_what_says_the_same(kernel, value, expected):
    kernel.put("value", [value])

    back = kernel.get("value")[0]
    assert (back, type(back)) == (expected, type(expected))


UNFIT = {
    "too long": ("2**20_000", "an int of more than 14000 bits doesn't cross between kernel and host; pass its text"),
    "in itself": ("value = []; value.append(value)", "a value that contains itself, or is nested too deeply"),
    "deep": ("value = []\nfor _ in range(95): value = [value]", "nested too deeply, doesn't cross"),
    "deep in tuples": ("value = ()\nfor _ in range(46): value = (value,)", "nested too deeply, doesn't cross"),
    "deep in keys": ("value = ()\nfor _ in range(31): value = {1: value}", "nested too deeply, doesn't cross"),
    "very deep": ("value = []\nfor _ in range(3000): value = [value]", "nested too deeply, doesn't cross"),
}


@pytest.mark.parametrize(("code", "why"), UNFIT.values(), ids=UNFIT)
def test_what_no_message_takes_does_not_cross_in_any_direction_and_the_error_says_why(kernel, code, why):
    kernel.serve("take", lambda value: value)
    assert kernel.execute(code if "value" in code else f"value = {code}", seconds=30).ok

    with pytest.raises(TypeError, match=why):
        kernel.get("value")
    assert why in kernel.execute("take(value)", seconds=30).error
    names = {}
    exec(code if "value" in code else f"value = {code}", names)
    with pytest.raises(TypeError, match=why):
        kernel.put("value", names["value"])


@pytest.mark.parametrize("make", [lambda value: [value], lambda value: (value,), lambda value: {1: value}])
def test_what_is_nested_as_deeply_as_it_may_be_crosses_in_any_direction(kernel, make):
    kernel.serve("take", lambda value: value)
    value = datetime.date(2024, 1, 1)
    for _ in range({list: 89, tuple: 44, dict: 29}[type(make(0))]):
        value = make(value)
    kernel.put("value", value)

    assert kernel.execute("take(value) == value", seconds=30).result == "True"
    assert kernel.get("value") == value


def test_a_number_that_is_longer_than_pythons_comes_back_as_it_went(kernel):
    kernel.put("value", np.longdouble(1) / 3)

    assert kernel.get("value") == np.longdouble(1) / 3


def test_a_missing_time_of_numpy_stays_missing(kernel):
    kernel.put("value", np.datetime64("NaT", "ns"))

    assert np.isnat(kernel.get("value"))


def test_masked_values_do_not_cross_as_numbers(kernel):
    kernel.execute("import numpy as np\nlevels = np.ma.masked_equal([21.5, -9999.0], -9999.0)", seconds=30)

    for code in ("value = levels", "value = levels[1]"):
        assert kernel.execute(code, seconds=30).ok
        with pytest.raises(TypeError, match=r"masked values doesn't cross between kernel and host; pass \.filled"):
            kernel.get("value")
    kernel.execute("value = levels[:1]", seconds=30)
    np.testing.assert_array_equal(kernel.get("value"), [21.5])


@pytest.mark.parametrize("value", ARRAYS.values(), ids=ARRAYS)
def test_an_array_comes_back_with_shape_and_type_and_can_be_changed(kernel, value):
    kernel.put("value", value)

    back = kernel.get("value")
    assert (back.dtype, back.shape) == (value.dtype, value.shape)
    np.testing.assert_array_equal(back, value)
    assert kernel.execute("value[:1] = value[:1]", seconds=30).ok


@pytest.mark.parametrize(
    "value", [np.array([object()]), np.zeros(2, dtype="i4,f8"), np.array([{}])], ids=["object", "fields", "dict"]
)
def test_an_array_of_objects_does_not_cross(kernel, value):
    with pytest.raises(
        TypeError, match=r"an array of dtype .* doesn't cross between kernel and host; pass .tolist\(\)"
    ):
        kernel.put("value", value)


ZEROS = "A" * 32


@pytest.mark.parametrize(
    ("kind", "plain", "words"),
    [
        ("ndarray", {"dtype": "|O", "shape": [3], "base64": ZEROS}, "dtype"),
        ("ndarray", {"dtype": "i4,O", "shape": [3], "base64": ZEROS}, "dtype"),
        ("ndarray", {"dtype": "<i3", "shape": [3], "base64": ZEROS}, "dtype"),
        ("ndarray", {"dtype": "<i4", "shape": [10**12], "base64": ZEROS}, "reshape"),
        ("ndarray", {"dtype": "<i4", "shape": [-1], "base64": ZEROS}, "shape"),
        ("ndarray", {"dtype": "<i4", "shape": "6", "base64": ZEROS}, "shape"),
        ("ndarray", {"dtype": "<U0", "shape": [10**12], "base64": ""}, "dtype|size|reshape"),
        ("ndarray", {"dtype": "<i4", "shape": [6]}, "base64"),
        ("ndarray", {}, "dtype"),
        ("bytes", {"base64": 3}, "base64"),
        ("bytes", {"base64": "A"}, "base64|padding|characters"),
        ("datetime", {"iso": "2024-01-01T00:00:00", "zone": "../etc/passwd"}, "no time zone that crosses"),
        ("datetime", {"iso": "2024-01-01T00:00:00", "zone": 3}, "no time zone that crosses"),
        ("Decimal", {"text": "x"}, "no decimal"),
        ("Decimal", {}, "'text'.*expected str, got NoneType"),
        ("shelf", {}, "marked 'shelf'"),
    ],
)
def test_a_forged_value_is_refused(kind, plain, words):
    with pytest.raises(ValueError, match=words):
        Codec(None).unpack({"$": kind, **plain})


def test_a_frame_comes_back_with_types_index_and_missing_values(kernel):
    kernel.put("frame", frame())

    assert kernel.execute("(len(frame), frame.index.name)", seconds=30).result == "(3, 'key')"
    pd.testing.assert_frame_equal(kernel.get("frame"), frame())


def test_a_series_comes_back(kernel):
    kernel.execute("import pandas as pd\nseries = pd.Series([1.5, None], name='load')", seconds=30)

    pd.testing.assert_series_equal(kernel.get("series"), pd.Series([1.5, None], name="load"))


def test_a_variable_that_is_not_there_or_does_not_cross_is_an_error(kernel):
    kernel.execute("thing = object()", seconds=30)

    with pytest.raises(KeyError, match="nothing_here"):
        kernel.get("nothing_here")
    with pytest.raises(TypeError, match="object"):
        kernel.get("thing")


def test_code_calls_the_host_and_frames_cross_in_both_directions(kernel):
    def grow(table, by, *, note=""):
        return table.assign(n=table.n + by), note.upper()

    kernel.serve("grow", grow)
    code = "import pandas as pd\ngrown, note = grow(pd.DataFrame({'n': [1, 2]}), 10, note='ok')\n(list(grown.n), note)"

    assert kernel.execute(code, seconds=30).result == "([11, 12], 'OK')"


def test_the_hosts_exception_becomes_one_in_the_cell(kernel):
    def refuse():
        raise PermissionError("not on Sundays")

    kernel.serve("refuse", refuse)
    caught = kernel.execute("try:\n    refuse()\nexcept Exception as error:\n    print(error)", seconds=30)

    assert "PermissionError: not on Sundays" in caught.stdout
    assert "not on Sundays" in kernel.execute("refuse()", seconds=30).error


def test_only_what_is_served_can_be_called(kernel):
    assert "NameError" in kernel.execute("never_served()", seconds=30).error


def test_a_call_back_into_the_same_kernel_is_refused_at_once(kernel):
    heard = []

    def again():
        try:
            kernel.execute("1", seconds=30)
        except KernelBusyError as error:
            heard.append(str(error))
        return len(heard)

    kernel.serve("again", again)

    assert kernel.execute("again()", seconds=30).result == "1"
    assert "busy" in heard[0] or "running" in heard[0]


def test_time_spent_in_the_host_does_not_count_against_the_cell(kernel):
    kernel.serve("slow", lambda: threading.Event().wait(2.2))
    execution = kernel.execute("slow()", seconds=2.0)

    assert execution.ok
    assert execution.seconds < 2.0


def test_calls_from_threads_are_answered_one_by_one(kernel):
    kernel.serve("square", lambda x: x * x)
    code = "from concurrent.futures import ThreadPoolExecutor\nlist(ThreadPoolExecutor(4).map(square, range(8)))"

    assert kernel.execute(code, seconds=30).result == "[0, 1, 4, 9, 16, 25, 36, 49]"


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        ("{'ok': {'$': 'DataFrame'}}", KernelError, "answer when asked for 'x' can't be read"),
        ("{'ok': {'$': 'DataFrame', 'file': '../x'}}", KernelError, "not a file of the exchange"),
        ("{'ok': {'$': 'set', 'items': [[1]]}}", KernelError, "answer when asked for 'x' can't be read"),
        ("{'ok': {'$': 'Timestamp', 'iso': 3}}", KernelError, "answer when asked for 'x' can't be read"),
        ("{'error': 'why'}", TypeError, "why"),
    ],
)
def test_an_answer_that_code_has_forged_is_an_error_that_says_so(answer, error, words):
    with LocalKernel(settings=KernelSettings(warm=0)) as kernel:
        assert kernel.execute(_FORGED % answer, seconds=30)

        with pytest.raises(error, match=words):
            kernel.get("x")


_FORGED = """
import json
session = get_ipython().kernel.session
send = session.send
def forged(stream, kind, content=None, *rest, **more):
    if kind == "execute_reply":
        content = {"status": "ok", "payload": [{"source": "tw_autogen", "report": json.dumps(%s)}]}
    return send(stream, kind, content, *rest, **more)
session.send = forged
"""
