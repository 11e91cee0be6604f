"""Which files of a folder a request is about: by names, by what they hold, and by the years that they cover."""

import unicodedata

import pytest

from tw_autogen.session.file_ranking import FileTerms, rank_files, years_of

FOLDER = [
    FileTerms("reports_by_age.csv", heads="Age # of Reports", values="19 and under 20 - 29"),
    FileTerms("reports_by_state.csv", heads="State # of Reports", values="Alabama Alaska Arizona"),
    FileTerms("reports_by_type.csv", heads="Year Fraud Identity Theft Other # of Reports", years=((2001, 2024),)),
    FileTerms("reports_2019.csv", heads="Type # of Reports", years=((2019, 2019),)),
    FileTerms("weather/rain-2001.csv", 9, "rain", heads="site millimetres", years=((2001, 2009),)),
    FileTerms("weather/rain-2010.csv", 9, "rain", heads="site millimetres", years=((2010, 2018),)),
    FileTerms("birthrates.csv", heads="country births"),
    FileTerms("x1.xlsx", heads="Budget Staff", values="salary bonus"),
    FileTerms("d.csv", heads="Detections per Station", values="owl wren"),
]


@pytest.mark.parametrize(
    ("request_text", "first"),
    {
        "a word of the name": ("which age has the most reports?", "reports_by_age.csv"),
        "a value": ("how many reports came from Arizona?", "reports_by_state.csv"),
        "a column": ("what part of all reports is theft of an identity?", "reports_by_type.csv"),
        "a year that rows cover": ("how did reports grow from 2003 to 2005?", "reports_by_type.csv"),
        "a year in the name": ("how many reports in 2019?", "reports_2019.csv"),
        "a span of years": ("how much rain fell between 2011 and 2014?", "weather/rain-2010.csv"),
        "a short span of years": ("mean rain of 2003–05", "weather/rain-2001.csv"),
        "a sheet": ("what is the budget?", "x1.xlsx"),
        "a word in a longer one": ("the greatest rate of births", "birthrates.csv"),
        "years that it does not name": ("in which years were reports fewest?", "reports_by_type.csv"),
        "another form of a word": ("what does each detector detect?", "d.csv"),
    }.values(),
)
def test_the_file_that_a_request_is_about_comes_first(request_text, first):
    ranked = [FOLDER[at].name for at, _ in rank_files(request_text, FOLDER)]

    assert ranked[0] == first


@pytest.mark.parametrize("name", ["sales", "umsätze", "выручка", unicodedata.normalize("NFD", "umsätze")])
def test_a_name_counts_more_than_a_column_in_any_language(name):
    files = [FileTerms("report.csv", heads=unicodedata.normalize("NFC", name)), FileTerms(f"north/{name}Nord.csv")]

    ranked = rank_files(unicodedata.normalize("NFC", name), files)

    assert ranked[0][0] == 1


def test_what_all_files_have_does_not_count_and_what_has_nothing_to_do_with_it_is_left_out():
    files = [FileTerms(f"report_{name}.csv", heads=f"year {name}") for name in ("alpha", "beta", "gamma", "delta")]

    ranked = rank_files("the report of the year about gamma", files)

    assert ranked[0][0] == 2
    assert ranked[0][1] > 5 * ranked[1][1]
    assert rank_files("nothing of it", files) == []
    assert rank_files("anything", []) == []


@pytest.mark.parametrize(
    ("text", "years"),
    [
        ("between 2003 and 2006", [2003, 2004, 2005, 2006]),
        ("2019-2021, and 1999", [1999, 2019, 2020, 2021]),
        ("from 1998 to 2000", [1998, 1999, 2000]),
        ("2019–21", [2019, 2020, 2021]),
        ("in 2024.", [2024]),
        ("2024 and 2001", [2001, 2024]),
        ("2001-05-17", [2001, 2002, 2003, 2004, 2005][:1]),
        ("id 20031, 120 03, 2,003, 9 2500", []),
    ],
)
def test_years_of_a_request_are_all_those_of_its_spans(text, years):
    assert years_of(text) == years


def test_a_thousand_files_are_ranked_at_once(cpu_seconds):
    files = [FileTerms(f"a{at}.csv", heads=f"b{at} " * 300, values="c d e " * 250) for at in range(1000)]
    began = cpu_seconds()

    rank_files("which of b17 is it, in 2003? " * 20, files)

    assert cpu_seconds() - began < 10
