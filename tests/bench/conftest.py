"""Tiny made-up data in the formats of the benchmarks."""

import json

import pytest

SHIPS = "name,draught,length\nAlba,4.5,30\nBora,5.0,34\nCirce,,28\nDione,4.75,31\n"
QUESTIONS = [
    {
        "id": 3,
        "question": "What is the mean draught?",
        "concepts": ["Summary Statistics"],
        "constraints": "Leave out ships without one.",
        "format": '@mean_draught[value] where "value" has two decimals.',
        "file_name": "harbour.csv",
        "level": "easy",
    },
    {
        "id": 7,
        "question": "How do draught and length go together?",
        "concepts": ["Correlation Analysis", "Summary Statistics"],
        "constraints": "Pearson; linear from 0.5 on.",
        "format": "@r[value] @kind[kind]",
        "file_name": "harbour.csv",
        "level": "medium",
    },
    {
        "id": 12,
        "question": "How many ships are there?",
        "concepts": ["Summary Statistics"],
        "constraints": "Count rows.",
        "format": "@ships[count]",
        "file_name": "harbour.csv",
        "level": "easy",
    },
]
LABELS = [
    {"id": 3, "common_answers": [["mean_draught", "4.75"]]},
    {"id": 7, "common_answers": [["r", "0.99"], ["kind", "linear"]]},
    {"id": 12, "common_answers": [["ships", "4"]]},
]


def lines(items):
    return "".join(json.dumps(item) + "\n" for item in items)


@pytest.fixture
def dabench(tmp_path):
    folder = tmp_path / "dabench"
    (folder / "da-dev-tables").mkdir(parents=True)
    (folder / "da-dev-questions.jsonl").write_text(lines(QUESTIONS), encoding="utf-8")
    (folder / "da-dev-labels.jsonl").write_text(lines(LABELS), encoding="utf-8")
    (folder / "da-dev-tables" / "harbour.csv").write_text(SHIPS, encoding="utf-8")
    return folder


@pytest.fixture
def mathematics(tmp_path):
    folder = tmp_path / "MATH"
    for part, subject, number, level, problem, solution in (
        ("test", "algebra", 1, "Level 5", "Half of a pie is how much of it?", r"So $\boxed{\frac{1}{2}}$."),
        ("test", "number_theory", 2, "Level 1", "What is 7 mod 4?", r"$\boxed{3}$"),
        ("train", "algebra", 9, "Level 1", "What is 1+1?", r"$\boxed{2}$"),
    ):
        path = folder / part / subject / f"{number}.json"
        path.parent.mkdir(parents=True)
        plain = {"problem": problem, "level": level, "type": subject.replace("_", " ").title(), "solution": solution}
        path.write_text(json.dumps(plain), encoding="utf-8")
    return folder
