"""Sets, dicts and labels that a kernel sends are built in about linear time, whatever hashes code has chosen."""

import json
import time

import numpy as np
import pandas as pd
import pytest

from tw_autogen.kernel import KernelSettings
from tw_autogen.kernel.exchange_folder import HostExchange
from tw_autogen.kernel.guest.codec import Codec
from tw_autogen.kernel.host_calls import HostFunctions
from tw_autogen.kernel.package_installer import Installer

MODULUS = (1 << 61) - 1
"""Of Python's hash of numbers: all multiples have the hash 0."""
COUNT = 20_000
COLLIDING = [number * MODULUS for number in range(1, COUNT)]
TOO_LONG = "keys of one hash value don't cross"
CROSSES = {
    "integers": set(range(300_000)),
    "texts": {f"a{number}": None for number in range(200_000)},
    "integer keys": {number * 7: str(number) for number in range(200_000)},
    "tuples": {(number, "a") for number in range(100_000)},
}


@pytest.fixture
def codec(tmp_path):
    return Codec(HostExchange(tmp_path))


def packed(values, kind="set"):
    return {"$": kind, "items": values}


def decimals():
    return [{"$": "Decimal", "text": str(one)} for one in COLLIDING]


def nested():
    """Make sets of a few hundred values each, none of which takes long, but together they do."""
    few = COLLIDING[:700]
    return [packed([*few, number * MODULUS], "frozenset") for number in range(1000, 1100)]


FORGED = {
    "a set": packed(COLLIDING),
    "a frozenset": packed(COLLIDING, "frozenset"),
    "a dict": packed([[one, None] for one in COLLIDING], "dict"),
    "in a list": [{"a": packed(COLLIDING)}],
    "decimals": packed(decimals()),
    "tuples": packed([packed([one], "tuple") for one in COLLIDING]),
    "many small sets": [packed(COLLIDING[:1500]) for _ in range(300)],
    "sets of sets": packed(nested()),
}


@pytest.mark.parametrize("value", FORGED.values(), ids=FORGED)
def test_keys_whose_hashes_are_one_are_refused(codec, value):
    began = time.thread_time()
    with pytest.raises(ValueError, match=TOO_LONG):
        codec.unpack(value)

    assert time.thread_time() - began < 5


@pytest.mark.parametrize("value", CROSSES.values(), ids=CROSSES)
def test_large_sets_and_dicts_cross(codec, value):
    assert codec.unpack(codec.pack(value)) == value


def table(codec, frame, change):
    """Pack a table and change what its header says."""
    sent = codec.pack(frame)
    with codec.exchange.open(sent["file"]) as file:
        content = file.read()
    length, more = (int.from_bytes(content[start : start + 8], "little") for start in (0, 8))
    header = json.loads(content[16 : 16 + length])
    change(header)
    text = json.dumps(header).encode()
    name, file = codec.exchange.create(".table")
    with file:
        file.write(len(text).to_bytes(8, "little") + more.to_bytes(8, "little") + text + content[16 + length :])
    return {"$": "DataFrame", "file": name}


def unsorted(count):
    return np.roll(np.arange(count), 1)


def of_objects(values):
    return {"kind": "object", "values": values}


TABLES = {
    "a cell": (["a"], lambda header: header["columns"].__setitem__(0, of_objects([packed(COLLIDING)]))),
    "cells": (
        ["a"] * 300,
        lambda header: header["columns"].__setitem__(0, of_objects([packed(COLLIDING[:1500])] * 300)),
    ),
    "a name": (["a"], lambda header: header["index"].update(names=[packed(COLLIDING, "frozenset")])),
    "a note": (["a"], lambda header: header.update(attrs=packed([[one, 1] for one in COLLIDING], "dict"))),
    "labels of two levels": (
        ["a"] * (COUNT - 1),
        lambda header: header.update(
            index={
                "kind": "multi",
                "levels": [of_objects(COLLIDING)] * 2,
                "codes": [{"dtype": "<i8", "start": 0, "count": 0}] * 2,
                "names": [None, None],
            }
        ),
    ),
}


@pytest.mark.parametrize(("values", "change"), TABLES.values(), ids=TABLES)
def test_a_table_whose_keys_hashes_are_one_is_refused(codec, values, change):
    sent = table(codec, pd.DataFrame({"o": pd.Series(values, dtype=object)}), change)

    with pytest.raises(ValueError, match=TOO_LONG):
        codec.unpack(sent)


@pytest.mark.parametrize(
    "categories",
    [pd.Index(COLLIDING[::-1], dtype=object), pd.Index(unsorted(COUNT)), pd.Index(unsorted(COUNT) / 3)],
    ids=["integers of Python", "integers", "floats"],
)
def test_many_categories_whose_hashes_may_be_chosen_are_refused(codec, categories):
    column = pd.Categorical.from_codes([0], categories[:2].append(categories[2:]))

    with pytest.raises(ValueError, match="beyond 10000 they are texts, or sorted numbers or times"):
        codec.unpack(codec.pack(pd.DataFrame({"c": column})))


DAYS = pd.DatetimeIndex(pd.date_range("1900-01-01", periods=COUNT).to_numpy())


@pytest.mark.parametrize(
    "categories",
    [pd.Index(unsorted(5000)), pd.Index(np.arange(COUNT) / 3), DAYS, DAYS.tz_localize("UTC"), DAYS.to_period()]
    + [pd.Index([f"a{one}" for one in unsorted(COUNT)], dtype=dtype) for dtype in (object, "string", None)],
    ids=["few", "floats", "days", "zoned", "periods", "objects", "strings", "texts"],
)
def test_many_categories_cross(codec, categories):
    frame = pd.DataFrame({"c": pd.Categorical.from_codes([1, 0, -1], categories)})

    pd.testing.assert_frame_equal(codec.unpack(codec.pack(frame)), frame)


def levels():
    """Make one level of each kind: values in no order, several times, some missing."""
    days = pd.to_datetime(["2024-07-01", None, "2024-01-01", "2024-07-01"])
    return {
        "integers": [3, 1, 2, 3],
        "floats": [3.5, float("nan"), -0.0, 0.0],
        "truth values": [True, False, True, True],
        "texts": ["b", None, "a", "b"],
        "days": days,
        "zoned": days.tz_localize("Europe/Brussels"),
        "spans": days - pd.Timestamp("2024-01-01"),
        "periods": days.to_period("D"),
        "intervals": pd.IntervalIndex.from_tuples([(2, 3), (0, 1), (1, 2), (2, 3)]),
        "categories": pd.CategoricalIndex(["b", None, "a", "b"], categories=["b", "c", "a"], ordered=True),
        "nullable": pd.array([3, None, 1, 3], dtype="Int64"),
        "mixed": pd.Index([(1, 2), "a", 1, "a"], dtype=object, tupleize_cols=False),
        "nothing": pd.Index([None] * 4, dtype=object),
    }


@pytest.mark.parametrize("level", levels().values(), ids=levels())
def test_labels_of_two_levels_are_as_pandas_makes_them(codec, level):
    index = pd.MultiIndex.from_arrays([pd.Index(level, tupleize_cols=False), [1, 2, 3, 4]], names=["a", "b"])
    came = codec.unpack(codec.pack(pd.DataFrame({"n": range(4)}, index=index))).index

    pd.testing.assert_index_equal(came, index, exact=True)
    for mine, theirs in zip(came.levels, index.levels, strict=True):
        pd.testing.assert_index_equal(mine, theirs, exact=True)
    assert [list(code) for code in came.codes] == [list(code) for code in index.codes]


def test_the_time_grows_with_the_number_of_labels_not_with_its_square(codec):
    def seconds(count):
        sent = codec.pack(
            pd.DataFrame({"n": range(count)}, index=pd.MultiIndex.from_arrays([np.arange(count) % 97] * 2))
        )
        began = time.thread_time()
        codec.unpack(sent)
        return time.thread_time() - began

    assert seconds(400_000) < 0.2 + 40 * seconds(40_000)


def taking(codec, function):
    """Serve a function; return what asks for it."""
    served = HostFunctions()
    served.add("take", function)

    def ask(args, kwargs):
        return json.loads(served.answer({"id": 1, "name": "take", "args": args, "kwargs": kwargs}, codec))

    return ask


@pytest.mark.parametrize(
    ("args", "kwargs", "said"),
    [
        ([packed(COLLIDING), packed(COLLIDING)], {}, "too many positional arguments"),
        ([], {"other": packed(COLLIDING)}, "missing a required argument: 'one'"),
        ([packed(COLLIDING)], {}, TOO_LONG),
    ],
    ids=["too many", "another name", "keys of one hash value"],
)
def test_a_call_that_does_not_fit_is_refused_before_its_arguments_are_unpacked(codec, args, kwargs, said):
    called = []

    def take(one):
        called.append(one)

    assert said in taking(codec, take)(args, kwargs)["error"]
    assert not called


@pytest.mark.parametrize(
    "form",
    [
        list,
        lambda numbers: {"ids": [list(map(str, numbers))]},
        lambda numbers: [[one, 0] for one in numbers],
        lambda numbers: dict.fromkeys(map(str, numbers), 0),
    ],
    ids=["numbers", "nested texts", "pairs", "keys"],
)
def test_values_of_which_a_function_may_make_sets_are_refused_if_their_hashes_are_one(codec, form):
    take = taking(codec, lambda one: len(one))

    assert take([form(range(COUNT))], {})["value"] == len(form(range(COUNT)))
    assert TOO_LONG in take([form(COLLIDING)], {})["error"]


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "value"),
    [
        (lambda **named: sorted(named), [], {"$": "dict", "items": [["$", 1], ["a", 2]]}, ["$", "a"]),
        (lambda *args, last=1: [*args, last], [1, 2], {"last": 3}, [1, 2, 3]),
        (dict, [], {"a": 1}, {"a": 1}),
    ],
    ids=["a name that is the mark", "a function of any number", "without a signature"],
)
def test_a_call_that_fits_is_made(codec, function, args, kwargs, value):
    assert taking(codec, function)(args, kwargs)["value"] == value


@pytest.mark.parametrize("install", ["never", "ask", "allow"])
def test_a_call_for_packages_has_an_end(tmp_path, install):
    assert 0 < Installer(KernelSettings(install=install), tmp_path / "files").max_seconds < 2 * 3600
