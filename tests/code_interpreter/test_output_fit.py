"""Output that is longer than its limit: each print is cut for itself, by whole lines."""

import re

import pytest

from tw_autogen.code_interpreter.report_texts import empty_arrays, execution_report, fit
from tw_autogen.kernel import Execution, Variable

TABLE = "".join(f"{n:>12} {n * n:>24}\n" for n in range(200))


def joined(*prints):
    ends = [sum(map(len, prints[: at + 1])) for at in range(len(prints))]
    return "".join(prints), ends


def test_text_that_fits_stays_as_it_is():
    assert fit(TABLE, len(TABLE)) == TABLE


def test_a_table_loses_its_padding_before_any_row():
    assert fit(TABLE, 3500).splitlines()[199] == "  199  39601"


def test_a_table_with_empty_cells_keeps_its_columns_apart():
    table = "name        city      country\n" + "".join(
        f"{f'p{n:05}':<12}{'' if n % 2 else 'Berlin':<10}DE\n" for n in range(500)
    )

    shown = fit(table, 8000)

    assert "p00001                DE\n" in shown
    assert len(shown) < 8200


def test_a_table_with_an_index_loses_its_padding_too():
    table = f"{'':>8}{'a':>12}{'b':>12}\n" + "".join(f"{n:<8}{n:>12}{n:>12}\n" for n in range(100))

    assert fit(table, 2000).splitlines()[:2] == ["  a  b", "0  0  0"]


def test_short_prints_between_long_ones_stay_whole():
    text, ends = joined("first 1\n", TABLE, "rows 200\n", "columns 2\n", TABLE, "last 3\n")

    shown = fit(text, 1000, ends).splitlines()

    assert [line for line in shown if line[0] not in " …"] == ["first 1", "rows 200", "columns 2", "last 3"]
    assert [line.partition(" (")[0] for line in shown if line.startswith("…")] == [
        "… 153 of 200 lines",
        "… 153 of 200 lines",
    ]


def test_without_the_ends_of_prints_there_is_one_hole():
    shown = fit("word\n" * 100, 100).splitlines()

    assert shown == ["word"] * 14 + ["… 80 of 100 lines (400 characters) left out …"] + ["word"] * 6


@pytest.mark.parametrize(
    ("text", "ends"),
    [("x" * 500, []), ("x" * 500, [-3, 0, 7, 600]), ("\n" * 500, [1, 2]), ("a b\n" + "x" * 500 + "\nend\n", [4, 505])],
)
def test_any_text_ends_up_near_its_limit(text, ends):
    assert len(fit(text, 60, ends)) < 60 + 3 * 60


def test_a_report_of_cut_output_names_the_variable_that_has_it_all():
    execution = Execution(True, stdout=TABLE, kept_as="last_output")

    assert "whole output is in the variable `last_output`" in execution_report(execution, [], 1000)
    assert "last_output" not in execution_report(execution, [], 10_000)


@pytest.mark.parametrize("where", ["stdout", "result"])
def test_where_output_is_lost_no_report_calls_it_whole(where):
    text = f"{TABLE}[... 123456 characters left out ...]\n{TABLE}"
    execution = Execution(True, **{where: text}, kept_as="last_output")

    report = execution_report(execution, [], 1000)

    assert "123456 characters of " in report
    assert "whole output" not in report
    assert "what is not lost is in the variable `last_output`" in report
    assert re.search(r"… \d+ lines \(\d+ characters\) left out, and 123456 characters were not kept …", report)


def test_a_new_array_of_missing_values_is_named():
    variables = (
        Variable("z", "ndarray", "shape (3,), float64 (all nan)"),
        Variable("s", "Series", "3 values, float64 (all missing), name x"),
        Variable("old", "Series", "3 values, float64 (all missing)"),
        Variable("t", "str", "'(all nan)'"),
    )

    assert empty_arrays(Execution(True, variables=variables), ["z", "s", "t"]) == [
        "z holds nothing but nan",
        "s holds nothing but nan",
    ]
