"""`planner.verify`: checks of an answer run before it goes out. Scripted models; one real kernel."""

from textwrap import indent

import pytest

from tw_autogen.errors import ModelError
from tw_autogen.events import AnswerChecked, AnswerCheckSkipped, CellRan, CodeChecked, ModelDelayed
from tw_autogen.kernel import Execution, LocalKernel
from tw_autogen.session import Program, open_session, read_journal
from tw_autogen.session.notebook_export import notebook
from tw_autogen.testing import FakeKernel, ScriptedModel, codes, plans

JOIN = "both = a.merge(b, on='id')\nprint(both.x.sum())"
CHECK = "# rows are kept\nassert len(both) == len(a), f'{len(a)} rows became {len(both)}'"
PROPOSED = f"Rows first.\n```python\n{CHECK}\n```"
WRONG = "Traceback\nAssertionError: 10 rows became 12"
FAILED = Execution(ok=False, error=f"{WRONG}\nThe cell was undone: variables are as they were before it.")


def printed(text):
    return Execution(ok=True, stdout=f"{text}\n")


@pytest.fixture
def ask(tmp_path):
    """Ask one question of a session over two scripts and a script of cells; give answer, journal and models."""

    def ask(planner, coder, cells, *, verify="auto", request="Join a and b, what is the sum of x?", **settings):
        kernel = FakeKernel(cells, folder=tmp_path / "code")
        with ScriptedModel(planner) as plan, ScriptedModel(coder) as code, kernel:
            models = {"Planner": plan, "CodeInterpreter": code}
            keys = {"planner.verify": verify, **settings}
            with open_session(models, kernel=kernel, folder=tmp_path, settings=keys) as session:
                answer = session.ask(request)
            return answer, list(read_journal(session.journal)), plan, code

    return ask


def outcomes(journal):
    return [
        ([check["passed"] for check in event.checks], event.sent_back, event.calls)
        for event in journal
        if isinstance(event, AnswerChecked)
    ]


def test_an_answer_that_passes_goes_out_as_it_is_after_one_more_call(ask):
    answer, journal, planner, _ = ask(
        [plans("join", then="User"), PROPOSED], [codes(JOIN)], [printed("The sum is 42."), printed("")]
    )

    assert answer.text == "The sum is 42."
    assert len(answer.round.posts) == 4
    assert outcomes(journal) == [([True], False, 1)]
    checks = answer.round.posts[-1].attachment("checks")
    assert checks.content == "passed: rows are kept"
    material = planner.calls[1][1]["content"]
    assert planner.calls[1][0]["content"].startswith("You check an answer about data")
    for part in ("Join a and b", JOIN, "# The answer\nThe sum is 42."):
        assert part in material


def test_a_check_in_a_thought_is_a_draft(ask):
    draft = "<think>Perhaps\n```python\nassert False, 'a wrong draft'\n```\nNONE of it.</think>\n"
    answer, journal, *_ = ask(
        [plans("join", then="User"), draft + PROPOSED], [codes(JOIN)], [printed("42"), printed("")]
    )

    assert answer.text == "42"
    assert outcomes(journal) == [([True], False, 1)]


@pytest.mark.parametrize("then", ["User", None])
def test_what_fails_goes_back_to_the_worker_once(ask, then):
    worded = [] if then else [plans("The sum is 99.", to="User")]
    corrected = [] if then else [plans("The sum is 42.", to="User")]
    answer, journal, _, coder = ask(
        [plans("join", then=then), *worded, PROPOSED, *corrected],
        [codes(JOIN), codes("print(42)")],
        [printed("99"), FAILED, printed("42")],
    )

    assert answer.text == ("42" if then else "The sum is 42.")
    assert outcomes(journal) == [([False], True, 1)]
    assert "invalid_response" not in str(answer.round.posts[-1].to_dict())
    told = coder.calls[1][-1]["content"]
    assert "Checks of this result have failed" in told
    assert "10 rows became 12" in told
    assert indent(CHECK, "    ") in told
    assert "```" not in told


def test_a_check_that_failed_is_named_beside_an_answer_that_stays_as_it_was(ask):
    answer, journal, *_ = ask(
        [plans("join", then="User"), PROPOSED],
        [codes(JOIN), codes("print(99)")],
        [printed("99"), FAILED, printed("99")],
    )

    assert answer.text == "99"
    problem = answer.round.posts[-1].content("invalid_response")
    assert problem == "a check of the answer failed: rows are kept: 10 rows became 12"
    assert outcomes(journal) == [([False], True, 1)]


def test_a_check_that_breaks_or_is_refused_decides_nothing(ask):
    reply = f"{PROPOSED}\n```python\nimport subprocess\nassert subprocess.run(['ls'])\n```"
    error = Execution(ok=False, error="Traceback\nKeyError: 'c'")
    answer, journal, *_ = ask([plans("join", then="User"), reply], [codes(JOIN)], [printed("42"), error])

    assert answer.text == "42"
    assert outcomes(journal) == [([None, None], False, 1)]
    assert any(one.findings and "subprocess" in one.code for one in journal if isinstance(one, CodeChecked))


@pytest.mark.parametrize("reply", ["NONE", ModelError("busy"), "no block here"])
def test_without_checks_the_answer_goes_out(ask, reply):
    planner = [plans("join", then="User"), *[reply] * (2 if reply == "no block here" else 1)]
    answer, journal, *_ = ask(planner, [codes(JOIN)], [printed("42")])

    assert answer.text == "42"
    assert outcomes(journal) == []
    skipped = [event.warning for event in journal if isinstance(event, AnswerCheckSkipped)]
    assert ["goes out unchecked: " in words for words in skipped] == [True] * (reply != "NONE")
    assert not any(isinstance(event, ModelDelayed) for event in journal)


@pytest.mark.parametrize(
    ("verify", "code", "request_", "wanted"),
    [
        ("off", JOIN, "join them", False),
        ("auto", JOIN, "join them", True),
        ("auto", "print(', '.join(names))", "list them", False),
        ("auto", "print(df.x.mean())", "the mean?", False),
        ("auto", "print(df.x.mean())", "the mean? Double-check it.", True),
        ("auto", "a = pd.read_csv('a.csv')\nb = pd.read_csv('b.csv')", "compare", True),
        ("auto", "model = LinearRegression().fit(X, y)", "fit it", True),
        ("always", "print(df.x.mean())", "the mean?", True),
    ],
)
def test_the_setting_and_the_code_say_what_is_checked(ask, verify, code, request_, wanted):
    more = ["NONE"] if wanted else []

    ask([plans("do it", then="User"), *more], [codes(code)], [printed("1")], verify=verify, request=request_)


def test_an_answer_without_code_or_with_a_question_is_not_checked(ask):
    ask([plans("It is 42.", to="User")], [], [], verify="always")
    ask([plans("look"), plans("Which one?", to="User", stop="Clarification")], [codes("1")], ["1"], verify="always")


def test_a_check_changes_no_variable_and_is_not_run_again_in_a_later_kernel(tmp_path):
    check = "# x\nvalues.append(9)\nframe['x'] = 0\nnew = 1\nassert frame.x.sum() == 0 and len(values) == 4"
    begin = "import pandas as pd\nframe = pd.DataFrame({'x': [1, 2]})\nvalues = [1, 2, 3]\nprint('done')"
    look = "print(values, frame.x.sum(), 'new' in globals())"
    planner = [plans("begin", then="User"), f"```python\n{check}\n```", plans("look", then="User"), "NONE"]
    with (
        LocalKernel(tmp_path / "kernel") as kernel,
        ScriptedModel(planner) as plan,
        ScriptedModel([codes(begin), codes(look)]) as code,
        open_session(
            {"Planner": plan, "CodeInterpreter": code},
            kernel=kernel,
            folder=tmp_path,
            settings={"planner.verify": "always"},
        ) as session,
    ):
        first = session.ask("begin")
        assert first.round.posts[-1].attachment("checks").extra["checks"][0]["passed"] is True
        assert session.ask("look").text == "[1, 2, 3] 3 False"
    journal = list(read_journal(session.journal))
    assert [one.undone for one in journal if isinstance(one, CellRan)] == [False, True, False]
    assert check not in Program.of(journal).source()
    assert ("markdown", ["check"]) in [(cell.cell_type, cell.metadata.get("tags")) for cell in notebook(journal).cells]
