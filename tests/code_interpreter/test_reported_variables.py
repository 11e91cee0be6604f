"""What a model is told of variables: what is new to it, and no more."""

import pytest

from tw_autogen.code_interpreter.reported_variables import ReportedVariables
from tw_autogen.kernel import Variable
from tw_autogen.kernel.guest.variable_summary import describe


def test_only_what_is_new_changed_or_gone_is_told():
    known = ReportedVariables(1000)

    assert known.news([Variable("a", "int", "1"), Variable("b", "int", "2")]) == "a: int, 1\nb: int, 2"
    assert known.news([Variable("a", "int", "1"), Variable("b", "int", "2")]) == ""
    assert known.news([Variable("a", "int", "7"), Variable("c", "str")]) == "a: int, 7\nc: str\nGone: b"


def test_what_was_forgotten_is_told_again():
    known = ReportedVariables(1000)
    known.news([Variable("a", "int", "1")])

    known.forget()

    assert known.news([Variable("a", "int", "1")]) == "a: int, 1"


def test_a_thousand_variables_stay_within_the_limit():
    many = [Variable(f"v{number}", "int", str(number)) for number in range(1000)]

    told = ReportedVariables(200).news(many)

    assert len(told) <= 230
    assert "v999: int, 999\n" in told
    assert told.endswith("older ones")


def test_what_was_left_out_is_told_with_the_next_ones_until_all_are_told():
    many = [Variable(f"v{number}", "int", str(number)) for number in range(60)]
    known = ReportedVariables(200)

    told = [known.news(many) for _ in range(6)]

    lines = [line for one in told for line in one.splitlines() if not line.startswith("…")]
    assert sorted(lines) == sorted(str(one) for one in many)
    assert "v59: int, 59" in told[0]
    assert known.news(many) == ""


def test_a_variable_longer_than_the_limit_keeps_no_other_back():
    known = ReportedVariables(50)
    two = [Variable("short", "int", "1"), Variable("long", "str", "x" * 300)]

    assert len(known.news(two)) < 80
    assert known.news(two) == "short: int, 1"
    assert known.news([]) == "Gone: short, long"


def test_what_could_not_be_told_is_not_taken_for_new_by_the_next_cell():
    many = [Variable(f"tab_{number}", "DataFrame", "1 x 2") for number in range(80)]
    known = ReportedVariables(200)
    known.news(many)

    assert known.fresh([*many, Variable("newest", "int", "1")]) == ["newest"]


def test_a_variable_that_the_kernel_only_names_is_neither_gone_nor_changed():
    known = ReportedVariables(1000)
    known.news([Variable("df", "DataFrame", "1 x 1, columns a: int64"), Variable("key", "int", "5")])
    now = [Variable("df", "DataFrame"), Variable("key", "str")]

    assert known.fresh(now) == ["key"]
    assert known.news(now) == "key: str"
    assert known.news([Variable("df", "DataFrame", "1 x 1, columns a: int64"), Variable("key", "str")]) == ""


def test_of_hundreds_of_variables_none_that_exists_is_told_as_gone():
    known, namespace = ReportedVariables(100_000), {"df": [1], "key": 5}

    def told():
        return known.news([Variable(*one) for one in describe(namespace, hidden=())])

    assert "df" in told()
    namespace.update({f"v{number}": number for number in range(250)})
    assert "Gone" not in told()
    del namespace["key"]
    assert "Gone: key" in told()


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (["for i in range(3): pass\nx = i"], "x"),
        (["for i, x in enumerate([]): pass", "i = 3"], "i"),
        (["with open('a') as i: x = 1"], "x"),
        (["for x in (): pass\nx = 3"], "ix"),
        (["i = 1\nx = next(i for i in [1])\nfor x in (): pass"], "ix"),
        (["for i in (): pass\nx = [i for i in ()]"], "x"),
        (["broken ("], "ix"),
    ],
)
def test_loop_variables_and_files_are_not_told_until_they_are_assigned(cells, told):
    known = ReportedVariables(1000)
    for cell in cells:
        known.note_code(cell)
    there = [Variable("i", "int", "1"), Variable("x", "int", "1"), Variable("file", "TextIOWrapper")]

    fresh = "".join(known.fresh(there))

    assert fresh == told
    assert known.news(there) == "\n".join(f"{name}: int, 1" for name in told)


def test_small_containers_are_told_with_their_content():
    values = {"a": [1, "x"], "b": {"limit": [2, 5]}, "c": [object()], "d": list(range(99)), "e": ("é",), "f": {}}

    told = {name: summary for name, _, summary in describe(values, hidden=())}

    assert told == {
        "a": "2 items: [1, 'x']",
        "b": "1 key: {'limit': [2, 5]}",
        "c": "1 item",
        "d": "99 items",
        "e": "1 item: ('é',)",
        "f": "0 keys",
    }


def test_tables_of_other_libraries_are_told_with_their_shape_and_whose_they_are():
    arrow, sparse = pytest.importorskip("pyarrow"), pytest.importorskip("scipy.sparse")
    polars = type("DataFrame", (), {"__module__": "polars.dataframe.frame"})
    frame, lazy = polars(), type("LazyFrame", (), {"__module__": "polars.lazyframe.frame"})()
    frame.shape, frame.columns, frame.dtypes = (2, 40), [f"c{at}" for at in range(40)], ["Int64"] * 40
    cube = type("Dataset", (), {"__module__": "xarray.core.dataset"})()
    cube.sizes, cube.data_vars = {"x": 2, "y": 3}, {"rain": None, "wind": None}
    values = {"a": arrow.table({"n": [1], "s": ["x"]}), "b": sparse.eye(3), "c": frame, "d": lazy, "e": cube}

    told = {name: (kind, summary) for name, kind, summary in describe(values, hidden=())}

    assert told["a"] == ("pyarrow.Table", "1 x 2, columns n: int64, s: string")
    assert told["b"][1] == "shape (3, 3), float64, 3 stored values"
    assert told["c"][0] == "polars.DataFrame"
    assert told["c"][1].startswith("2 x 40, columns c0: Int64, c1: Int64")
    assert told["c"][1].endswith("c29: Int64, … 10 more")
    assert told["d"] == ("polars.LazyFrame", "")
    assert told["e"] == ("xarray.Dataset", "sizes x: 2, y: 3, variables rain, wind")


ROW = Variable("row", "DataFrame", "3 x 2")


@pytest.mark.parametrize("code", ["def f(rows):\n    for row in rows:\n        print(row)", "for row in []:\n    pass"])
def test_a_variable_that_a_loop_also_names_is_not_told_as_gone(code):
    known = ReportedVariables(1000)
    known.news([ROW])

    known.note_code(code)

    assert known.news([ROW]) == ""


def test_a_variable_that_was_told_is_told_with_the_value_that_a_loop_has_left():
    known = ReportedVariables(1000)
    known.news([ROW])

    known.note_code("for row in rows:\n    pass")

    assert known.news([Variable("row", "tuple", "(1, 2)")]) == "row: tuple, (1, 2)"


@pytest.mark.parametrize("left", [[], [Variable("df", "int", "9")]])
def test_a_variable_that_is_put_after_a_loop_has_named_it_is_told(left):
    known = ReportedVariables(1000)
    known.note_code("for df in tables:\n    pass")

    assert known.news(left) == ""
    assert known.news(left) == ""
    assert known.news([Variable("df", "DataFrame", "3 x 2")]) == "df: DataFrame, 3 x 2"


def test_a_cell_with_a_magic_assigns_too():
    known = ReportedVariables(1000)
    known.note_code("for df in tables:\n    pass")
    known.news([Variable("df", "int", "1")])

    known.note_code("%matplotlib inline\ndf = 1")

    assert known.news([Variable("df", "int", "1")]) == "df: int, 1"


OWN = """
import numpy, pandas, datetime

class Lazy:
    def __get__(self, instance, owner=None):
        print("RAN")
        return "text"

class Loud(type):
    def __getattribute__(cls, name):
        print("RAN")
        return type.__getattribute__(cls, name)

def speaks(*_):
    print("RAN")
    return "text"

class Label:
    __str__ = __repr__ = __format__ = speaks
    __bool__ = lambda self: bool(speaks())

class Documented: __doc__ = Lazy()
class OfModule: __module__ = Lazy()
class Metered(metaclass=Loud): pass
class Frame(pandas.DataFrame): columns = property(speaks)
class Series(pandas.Series): dtype = property(speaks)
class Array(numpy.ndarray): shape = property(speaks)
class Number(numpy.float64): __str__ = speaks
class Day(datetime.date): __str__ = speaks
class Text(str): __getitem__ = __len__ = __str__ = speaks
class Items(list): __len__ = __iter__ = __repr__ = speaks
def documented(a): pass
documented.__doc__ = Label()
metered, items, text, day = Metered(), Items([Number(1.5)]), Text("abc"), Day(2024, 1, 2)
number, array, frame, series = Number(2.5), numpy.zeros(2).view(Array), Frame({"a": [1]}), Series([1], name="s")
labelled = pandas.DataFrame([[1, 2]])
labelled.columns = pandas.Index([Label(), ("a", Label())], dtype=object, tupleize_cols=False)
named = pandas.Series([1])
named._name = Label()
"""


def test_no_code_of_classes_that_cells_define_runs_while_variables_are_told(capsys):
    namespace = {"__name__": "__main__"}
    exec(OWN, namespace)
    capsys.readouterr()

    told = {name: summary for name, _, summary in describe(namespace, hidden=())}

    assert capsys.readouterr().out == ""
    assert told["text"] == "'abc'"
    assert told["items"] == "1 item"
    assert told["labelled"] == "1 x 2, columns Label: int64, tuple: int64"
    assert told["named"] == "1 values, int64, name Label"
    assert {name for name in namespace if told.get(name) == ""} >= {"metered", "day", "number", "array", "frame"}
    assert told["Documented"] == told["Metered"] == ""
    assert told["documented"] == "(a)"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ([set()], "1 item: [set()]"),
        ({"a": set()}, "1 key: {'a': set()}"),
        ([frozenset()], "1 item: [frozenset()]"),
        ([frozenset({1})], "1 item: [frozenset({1})]"),
        ({1}, "1 item: {1}"),
        (set(), "0 items"),
        ([{}], "1 item: [{}]"),
        ([[], ()], "2 items: [[], ()]"),
        (["a x b", *["y" * 50] * 19], f"20 items: ['a x b', '{'y' * 50}', '{'y' * 50}', '{'y' * 50}', '{'y' * 16}…"),
    ],
)
def test_a_small_container_is_told_as_python_writes_it(value, told):
    assert [summary for *_, summary in describe({"value": value}, hidden=())] == [told]


def test_a_table_has_more_room_than_a_value():
    pandas = pytest.importorskip("pandas")
    wide = pandas.DataFrame({f"a column of a long name, {number}": [1] for number in range(30)})

    ((_, _, told),) = describe({"wide": wide}, hidden=())

    assert told.endswith("29: int64")
