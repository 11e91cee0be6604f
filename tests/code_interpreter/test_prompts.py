"""What the CodeInterpreter's prompt says of the board: each thing once."""

import pytest

from tw_autogen.code_interpreter import CodeInterpreter
from tw_autogen.code_interpreter.prompts import board_news, without_repeated_task
from tw_autogen.conversation import Plan
from tw_autogen.errors import PromptTooLong
from tw_autogen.kernel import Execution
from tw_autogen.planner import Planner
from tw_autogen.session import Session
from tw_autogen.testing import FakeKernel, ScriptedModel, codes, plans

FOLDER = f"The User's own folder is /home/anna. {'Code can read it. ' * 20}".strip()
FILES = f"Files in the working folder:\n- a.csv: {'a column; ' * 30}".strip()


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ("", "request", "# Board\nrequest"),
        (f"request\n\n{FILES}\n\nplan 1", f"request\n\n{FILES}\n\nplan 2", "# Board, begins as before; then\nplan 2"),
        (
            f"request 1\n\n{FILES}\n\n{FOLDER}",
            f"request 2\n\n{FOLDER}",
            f"# Board\nrequest 2\n\n({FOLDER[:60].rstrip()}… as before)",
        ),
        ("request 1\n\nToday.", "request 2\n\nToday.", "# Board\nrequest 2\n\nToday."),
    ],
    ids=["first", "same beginning", "same paragraph", "short paragraph"],
)
def test_what_stood_on_the_last_board_is_not_told_again(before, now, told):
    assert board_news(before, now) == told


@pytest.mark.parametrize(
    ("plan", "tasks", "kept"),
    [
        ("1. sum  a", ["sum  a\nand print it"], False),
        ("1. sum a…", ["sum all"], False),
        ("1. sum a", ["sum a", "now b"], False),
        ("1. sum a", ["now b"], True),
        ("1. sum a\n2. report", ["sum a"], True),
    ],
)
def test_a_plan_that_is_the_task_is_not_told_beside_it(plan, tasks, kept):
    plan = Plan.parse(plan)
    board = f"The User's request:\nsums\n\nThe plan:\n{plan}\n\nToday."

    assert without_repeated_task(board, plan, tasks) == (board if kept else "The User's request:\nsums\n\nToday.")


def test_files_and_one_step_are_told_once_in_a_session_of_several_tasks(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n" + "1,2\n" * 40, encoding="utf-8")
    coder = ScriptedModel([codes("print(1)"), codes("print(2)"), codes("print(3)")])
    planner = ScriptedModel(
        [
            plans("print the mean of x"),
            plans("print the mean of y"),
            plans("1 and 2", to="User"),
            plans("print the sum", plan="1. sum\n2. report"),
            plans("3", to="User"),
        ]
    )
    ran = [Execution(True, stdout=one) for one in "123"]
    interpreter = CodeInterpreter(coder, lambda folder: FakeKernel(ran, folder=folder))
    with coder, planner, Session([Planner(planner, [interpreter]), interpreter], folder=tmp_path / "s") as session:
        session.ask("the means?", files=[tmp_path / "a.csv"])
        session.ask("and the sum?")

    told = [one["content"] for one in coder.calls[-1] if one["role"] == "user"]
    assert "\n".join(told).count("- a.csv: ") == 1
    assert "\n".join(told).count("print the mean of y") == 1
    assert told[1].count("\n\n") == 1
    assert "The plan:\n1. sum\n2. report" in told[2]


@pytest.mark.parametrize(
    "requests",
    [
        [f"The {number} total.\n\n{FILES}" for number in ("first", "second", "third")],
        [f"Totals.\n\nIn euros.\n\n{FILES}\n\nThe {number} one." for number in ("first", "second", "third")],
    ],
    ids=["same paragraph", "same beginning"],
)
def test_what_a_board_only_named_is_told_in_full_where_a_task_is_shortened(tmp_path, requests):
    asked = []

    def reply(messages):
        if messages[0]["content"].startswith("You keep the memory"):
            return "There were totals."
        asked.append("\n\n".join(str(message["content"]) for message in messages[1:]))
        if len(asked) == 3:
            raise PromptTooLong("too long")
        return codes("print(total)")

    planner = ScriptedModel([step for _ in requests for step in (plans("Compute it"), plans("It is 6.", to="User"))])
    coder = ScriptedModel([reply] * 5)
    interpreter = CodeInterpreter(coder, FakeKernel([Execution(True, stdout="6\n" + "x" * 9000)] * 3))
    with coder, planner, Session([Planner(planner, [interpreter]), interpreter], folder=tmp_path) as session:
        for request in requests:
            session.ask(request)

    parts = requests[-1].split("\n\n")
    assert "There were totals." in asked[-1]
    assert [asked[-1].count(part) for part in parts] == [1] * len(parts)
