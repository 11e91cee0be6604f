"""InfiAgent-DABench: its files, and its grader."""

import pytest

from tests.benchmarks.answers import read_dabench
from tests.benchmarks.answers.dabench import grade
from tw_autogen.errors import ScenarioError


def test_the_three_parts_become_tasks(dabench):
    first, second, third = read_dabench(dabench)

    assert [one.id for one in (first, second, third)] == ["3", "7", "12"]
    assert [path.name for path in first.files] == ["harbour.csv"]
    assert first.groups == {"level": ("easy",), "concept": ("Summary Statistics",)}
    assert second.groups["concept"] == ("Correlation Analysis", "Summary Statistics")
    for part in ("mean draught", "harbour.csv", "Leave out ships without one", "@mean_draught[value]"):
        assert part in first.request
    assert not any("4.75" in one.request for one in (first, second, third))


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("@mean[4.75] @kind[linear]", [True, True]),
        ("The mean is @mean[4.750000001], and so @kind[linear]!", [True, True]),
        ("@mean[4.7501]\n@kind[Linear]", [False, False]),  # letters are not evened out, as published
        ("@mean[1] then @mean[4.75]", [True, False]),  # the last one counts
        ("@mean[ 4.75 ] @kind[ linear ]", [True, False]),  # spaces are part of a text, not of a number
        ("@mean[nan] @kind[]", [False, False]),
        ("mean: 4.75, kind: linear", [False, False]),
        ("", [False, False]),
    ],
)
def test_values_are_equal_as_texts_or_as_numbers_within_a_millionth(answer, right):
    assert list(grade({"mean": "4.75", "kind": "linear"}, answer).values()) == right


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        (
            "da-dev-questions.jsonl",
            '"id": 7',
            '"id": 8',
            r"questions\.jsonl:2: question 8: da-dev-labels\.jsonl has no",
        ),
        ("da-dev-questions.jsonl", "harbour.csv", "harbor.csv", r"no table 'harbor\.csv'; did you mean 'harbour\.csv'"),
        ("da-dev-questions.jsonl", '"level"', '"levels"', r"questions\.jsonl:1: missing key 'level'"),
        ("da-dev-labels.jsonl", '[["mean_draught", "4.75"]]', '["4.75"]', r"labels\.jsonl:1: common_answers: expected"),
        ("da-dev-labels.jsonl", "{", "", r"labels\.jsonl:1: not JSON"),
    ],
)
def test_a_wrong_part_is_an_error_that_names_file_and_line(dabench, file, old, new, words):
    path = dabench / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")

    with pytest.raises(ScenarioError, match=words):
        read_dabench(dabench)


def test_a_missing_part_is_an_error_that_names_it(tmp_path):
    with pytest.raises(ScenarioError, match=r"da-dev-labels\.jsonl: there is no such file"):
        read_dabench(tmp_path)
