r"""MATH: its files, and its grader."""

import json

import pytest

from tests.benchmarks.answers import read_math
from tests.benchmarks.answers.mathematics import boxed, equivalent
from tw_autogen.errors import ScenarioError


def test_problems_in_folders_become_tasks_and_the_training_half_stays_out(mathematics):
    tasks = read_math(mathematics)

    assert [task.id for task in tasks] == ["algebra/1", "number_theory/2"]
    assert tasks[0].groups == {"level": ("5",), "subject": ("Algebra",)}
    assert tasks[0].request.startswith("Half of a pie")
    assert "boxed{...}" in tasks[0].request
    assert "frac" not in tasks[0].request
    assert tasks[0].grade(r"It is \boxed{1/2}.") == {"answer": True}
    assert tasks[0].grade("It is 1/2.") == {"answer": False}


def test_problems_in_lines_become_tasks(tmp_path):
    lines = [
        {
            "problem": "2+2?",
            "answer": "4",
            "solution": "no box",
            "subject": "Algebra",
            "level": 1,
            "unique_id": "a/1.json",
        },
        {"problem": "3+3?", "solution": r"\boxed 6$", "subject": "Algebra", "level": 2},
    ]
    (tmp_path / "test.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    first, second = read_math(tmp_path)

    assert (first.id, second.id) == ("a/1.json", "test/2")
    assert first.grade(r"\boxed{4}") == second.grade(r"\boxed{6}") == {"answer": True}


@pytest.mark.parametrize(
    ("text", "held"),
    [
        (r"\boxed{1} and \boxed{\frac{2}{3}}", r"\frac{2}{3}"),
        (r"\fbox{7}", "7"),
        (r"\boxed 5$", "5"),
        (r"\boxed{1", None),
        ("5", None),
    ],
)
def test_what_stands_in_the_last_box_counts(text, held):
    assert boxed(text) == held


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (r"\frac12", r"\frac{1}{2}", True),
        (r"\dfrac{1}{2}", "1/2", True),
        ("0.5", r"\tfrac12", True),
        (".5", "0.5", True),
        (r"\sqrt3", r"\sqrt{3}", True),
        ("x = 5", "5", True),
        ("area=5", "5", False),
        (r"5\text{ cm}", "5", True),
        (r"50\%", "50", True),
        (r"\left(1,2\right)", "(1, 2)", True),
        (r"90^\circ", "90", True),
        ("2/4", "1/2", False),  # written otherwise, as published
        ("0.25", r"\frac{1}{4}", False),
        (r"\sqrt", r"\sqrt", True),  # what the rules can't read is compared as it is
        (r"\sqrt", "\\sqrt ", False),
    ],
)
def test_answers_are_alike_by_the_published_rules(one, other, alike):
    assert equivalent(one, other) is alike


def test_a_wrong_problem_is_an_error_that_names_it(mathematics, tmp_path):
    path = mathematics / "test" / "algebra" / "1.json"
    path.write_text(path.read_text(encoding="utf-8").replace("boxed", "box"), encoding="utf-8")

    with pytest.raises(ScenarioError, match=r"1\.json: solution: expected a box"):
        read_math(mathematics)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ScenarioError, match="expected problems"):
        read_math(tmp_path / "empty")
