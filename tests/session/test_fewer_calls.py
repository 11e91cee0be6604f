"""A task that looks before it computes, and code that the Planner sends: fewer calls, the same posts and checks."""

import json

import pytest

from tw_autogen.approval import Decision
from tw_autogen.code_interpreter import CodeInterpreter, CodeInterpreterSettings, Policy
from tw_autogen.kernel import Execution, Variable
from tw_autogen.planner import Planner
from tw_autogen.session import Session
from tw_autogen.testing import FakeKernel, ScriptedModel, codes, plans

PATH = ["User", "Planner", "CodeInterpreter", "Planner"]


@pytest.fixture
def team(tmp_path):
    """Open sessions over scripts and a fake kernel; every step of a script must be used."""
    models, sessions = [], []

    def open_team(plan_steps, code_steps, results, *, policy=None, approve=None, **settings):
        planner, coder = ScriptedModel(plan_steps), ScriptedModel(code_steps)
        models.extend((planner, coder))
        kernel = FakeKernel(
            [Execution(True, stdout=result) if isinstance(result, str) else result for result in results]
        )
        interpreter = CodeInterpreter(
            coder, kernel, policy=policy, settings=CodeInterpreterSettings(**settings), approve=approve
        )
        sessions.append(Session([Planner(planner, [interpreter]), interpreter], folder=tmp_path))
        return sessions[-1], planner, coder, kernel

    yield open_team
    for session in sessions:
        session.close()
    for model in models:
        model.__exit__(None, None, None)


def test_a_look_is_followed_by_the_workers_own_next_cell_without_the_planner(team):
    session, planner, coder, kernel = team(
        [plans("sum a", then="User")],
        [codes("# look\nprint(open('a.csv').readline())"), codes("print(6)")],
        ["unit: kg\n", "The sum is 6 kg.\n"],
    )

    answer = session.ask("the sum of a?")

    assert answer.text == "The sum is 6 kg."
    assert [post.send_from for post in answer.round.posts] == PATH
    assert (len(planner.calls), len(coder.calls), len(kernel.cells)) == (1, 2, 2)
    assert "unit: kg" in coder.calls[1][-1]["content"]
    assert "That was a look. Go on" in coder.calls[1][-1]["content"]
    assert "Seen before:\nunit: kg" in answer.round.posts[2].message


@pytest.mark.parametrize("last", [codes("print('west 88.7 %')"), "The west has 88.7 %."])
def test_numbers_of_a_long_look_have_a_source_though_the_planner_sees_its_ends_only(team, last):
    rows = [f"row {number:_}\n" for number in range(1000, 1500)]
    rows[250] = "west 88.660475\n"
    session, *_ = team(
        [plans("shares"), plans("The west has 88.7 %.", to="User")],
        [codes("# look\nprint(1)"), last],
        ["".join(rows), "done\n"],
    )

    answer = session.ask("which share?")

    assert "88.66" not in answer.round.posts[2].message
    assert [(source.kind, source.where) for source in answer.sources] == [
        ("rounded", "code that looked: west 88.660475")
    ]


@pytest.mark.parametrize(("first", "told"), [("# look\nprint(x)", True), ("print(x)", False)])
def test_of_a_look_that_fails_it_is_told_that_the_next_one_is_marked_again(team, first, told):
    session, _, coder, _ = team(
        [plans("sum a", then="User")],
        [codes(first), codes("print(6)")],
        [Execution(False, error="NameError: x"), "6\n"],
    )

    assert session.ask("the sum of a?").text == "6"
    assert ("begins with `# look` again" in coder.calls[1][-1]["content"]) == told


def test_looks_are_bounded_by_the_tasks_tries_and_the_last_one_counts_as_the_result(team):
    look = codes("# look\nprint(1)")
    session, _, coder, _ = team(
        [plans("look"), plans("I give up.", to="User")], [look, look, look], ["one\n", "two\n", "three\n"], max_tries=2
    )

    post = session.ask("go").round.posts[2]

    assert "That was the last look of this task" in coder.calls[2][-1]["content"]
    assert "Printed:\nthree" in post.message
    assert "Seen before:\none\nSeen before:\ntwo" in post.message


def test_words_after_a_look_are_no_words_alone(team):
    session, planner, *_ = team(
        [plans("mean of b"), plans("There is no b.", to="User")],
        [codes("# look\nprint(1)"), "There is no column b."],
        ["columns: a, c\n"],
    )

    session.ask("mean of b?")

    told = planner.calls[1][-1]["content"]
    assert "There is no column b.\nSeen before:\ncolumns: a, c" in told
    assert "no code ran" not in told


@pytest.mark.parametrize(
    "code", ["# Look at the data\nprint(1)", "print(1)  # look", "x = 1\n# look\nprint(1)", "# looking\nprint(1)"]
)
def test_other_comments_are_no_looks(team, code):
    session, *_ = team([plans("go", then="User")], [codes(code)], ["done\n"])

    assert session.ask("go").text == "done"


def test_code_that_comes_with_the_task_saves_the_workers_call_and_keeps_the_posts(team):
    session, planner, coder, kernel = team([plans("6*7", code="print(6 * 7)", then="User")], [], ["42\n"])

    answer = session.ask("what is 6*7?")

    assert answer.text == "42"
    assert [post.send_from for post in answer.round.posts] == PATH
    assert kernel.cells == ["print(6 * 7)"]
    assert (answer.usage.calls, len(coder.calls)) == (1, 0)


def test_sent_code_that_fails_is_mended_by_the_worker_which_knows_the_code(team):
    session, _, coder, kernel = team(
        [plans("divide", code="1 / 0", then="User")],
        [codes("print(1)")],
        [Execution(False, error="ZeroDivisionError: division by zero"), "1\n"],
    )

    assert session.ask("go").text == "1"
    assert coder.calls[0][-2]["content"].endswith("```python\n1 / 0\n```")
    assert "ZeroDivisionError" in coder.calls[0][-1]["content"]
    assert kernel.cells == ["1 / 0", "print(1)"]


def test_sent_code_that_looks_is_finished_by_the_worker(team):
    session, planner, coder, _ = team(
        [plans("sum", code="# look\nprint(open('a').read())", then="User")], [codes("print(3)")], ["1 2\n", "3\n"]
    )

    assert session.ask("go").text == "3"
    assert (len(planner.calls), len(coder.calls)) == (1, 1)


def test_sent_code_is_checked_against_the_policy(team):
    session, _, coder, kernel = team(
        [plans("go", code="import os\nos.getcwd()", then="User")],
        [codes("print(2)")],
        ["2\n"],
        policy=Policy(modules=frozenset({"math"})),
    )

    assert session.ask("go").text == "2"
    assert "import of 'os' is not allowed" in coder.calls[0][-1]["content"]
    assert kernel.cells == ["print(2)"]


def test_a_person_is_asked_about_sent_code(team):
    asked = []

    def approve(proposal):
        asked.append(proposal.text)
        return Decision(False, reason="not today")

    session, _, coder, kernel = team(
        [plans("go", code="print(1)"), plans("You refused.", to="User")],
        ["It was refused."],
        [],
        approve=approve,
        approval="always",
    )

    session.ask("go")

    assert asked == ["print(1)"]
    assert kernel.cells == []
    assert "not today" in coder.calls[0][-1]["content"]


def test_a_worker_that_only_calls_plugins_takes_no_code(team):
    session, planner, coder, kernel = team(
        [plans("go", code="print(1)"), plans("No.", to="User")], ["I can't."], [], policy=Policy(only_plugins=True)
    )

    session.ask("go")

    assert "\n# Code\n" not in planner.calls[0][0]["content"]
    assert kernel.cells == []


@pytest.mark.parametrize(
    "reply",
    [
        '{object}\n```python\nprint("[1]")\n```',
        '```json\n{object}\n```\nThe code:\n```py\nprint("[1]")\n```\nThat is all.',
        '```python\nprint("[1]")\n```\n{object}',
    ],
)
def test_code_beside_the_object_is_found(team, reply):
    said = json.dumps({"send_to": "code_interpreter", "message": "go", "then": "User"})
    session, _, _, kernel = team([reply.replace("{object}", said)], [], ["[1]\n"])

    session.ask("go")

    assert kernel.cells == ['print("[1]")']


IMPLAUSIBLE = {
    "The share of women is 132.5 %.": "share",
    "R² of the test data: -2.1": "R²",
    "R2 = -0.3": "R²",
    "The mean is nan.": "nan",
    '{"mean": NaN}': "nan",
    "mean over 0 rows: 0.0": "no rows",
    "MAE nan": "nan",
    "R2 of the test inf": "nan",
    " Year  Headcount Q4\n 2022           NaN\n 2023           NaN": "nan",
    "city  a    b\nOslo  1  NaN\nRome  2  NaN": "nan",
    "Gesamt: € nan": "nan",
    "La moyenne est nan.": "nan",
    "Kunde\nMüller GmbH    0.0\nÖlmühle Köln   0.0\nCafé Größe     0.0\nName: Betrag, dtype: float64": "0 in a",
    "Empty DataFrame\nColumns: [a, b]\nIndex: []": "no rows",
    "Series([], dtype: float64)": "no rows",
    "[]": "no rows",
    "Trefferquote: 140 %": "share",
    "The conversion rate was 340.0 percent": "share",
    "Correlation r = 1.7": "correlation",
    "0 rows were selected, the mean is 0.0": "no rows",
}


@pytest.mark.parametrize(("said", "word"), IMPLAUSIBLE.items())
def test_an_implausible_result_is_looked_at_before_it_goes_out(team, said, word):
    session, planner, *_ = team(
        [plans("go", code="print(x)", then="User"), plans("Checked.", to="User")], [], [f"{said}\n"]
    )

    assert session.ask("compute it").text == "Checked."
    assert word in planner.calls[1][-1]["content"]


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ("what share?", "The share is 99.9 %, an increase of 240 % over the year before."),
        ("fit it", "R² = 0.93, and -2.1 is the smallest residual."),
        ("how many are nan?", "3 values are nan."),
        ("mean?", "The mean is 3, of 10 rows; 0 missing values."),
        ("Nancy?", "Nancy, with 120 % growth."),
        ("how many rows have x > 3?", "0 rows."),
        ("mean?", "The mean is 3. 0 rows were dropped, no rows had gaps."),
        ("show the head", "a    b\n0  1  NaN\n1  2  3.0"),
        ("who?", "It is Nan Zhang."),
        ("sales?", "Oslo  3\nRome  NaN"),
        ("table?", "       a    b\nOslo  1  0.0\nRome  2  NaN\nBern  3  0.0"),
        ("gaps by column?", "missing values\na    0\nb    0\nc    0"),
        ("which are above 3?", "None"),
        ("correlation?", "The correlation is 0.93 (p = 0.01), of 12.5 million pairs."),
        ("correlation?", "The correlation over 1,234 rows is 0.31."),
        ("how do they differ?", "a  0\nb  0"),
        ("inflation?", "The inflation rate was 120.5 percent."),
        ("MAPE?", "The mean absolute percentage error is 134.2 %."),
        ("debt?", "Debt as share of GDP is 140 %."),
        ("target?", "Percentage of target reached: 112 %."),
        ("Check for duplicates", "0 rows were found with duplicates."),
    ],
)
def test_plausible_results_go_out_at_once(team, request_, said):
    session, *_ = team([plans("go", code="print(x)", then="User")], [], [f"{said}\n"])

    assert session.ask(request_).text == said


def test_a_count_over_an_empty_array_is_looked_at_before_it_goes_out(team):
    empty = Execution(
        True, stdout="0 outliers\n", variables=(Variable("z", "ndarray", "shape (3,), float64 (all nan)"),)
    )
    session, planner, *_ = team(
        [plans("go", code="print(x)", then="User"), plans("It can't be said.", to="User")], [], [empty]
    )

    assert session.ask("outliers?").text == "It can't be said."
    assert "z holds nothing but nan" in planner.calls[1][-1]["content"]


def test_the_planner_is_told_of_no_variable_that_is_gone(team):
    looked = Execution(True, stdout="1\n", variables=(Variable("tmp", "int", "1"),))
    done = Execution(True, stdout="2\n", variables=(Variable("x", "int", "2"),))
    session, planner, *_ = team(
        [plans("add"), plans("2", to="User")], [codes("# look\ntmp = 1"), codes("del tmp\nx = 2")], [looked, done]
    )

    session.ask("add")

    assert planner.calls[1][-1]["content"].endswith("New or changed in the kernel: x: int, 2")


def test_a_variable_that_is_called_as_what_waits_for_somebody_may_be_used_by_the_next_cell(team):
    made = Execution(True, variables=(Variable("license", "DataFrame", "2 x 1"),))
    session, _, _, kernel = team(
        [plans("load", code="license = 1"), plans("show", code="license.head()"), plans("2", to="User")],
        [],
        [made, made],
    )

    session.ask("show")

    assert kernel.cells == ["license = 1", "license.head()"]


def test_the_planner_knows_the_variables_of_an_answer_that_was_forwarded_and_reads_it_once(team):
    made = Execution(True, stdout="The mean is 3.\n", variables=(Variable("rates", "list", "2 items: [2, 4]"),))
    session, planner, *_ = team(
        [plans("go", code="rates = [2, 4]\nprint(3)", then="User"), plans("It was 3.", to="User")], [], [made]
    )

    session.ask("mean?")
    session.ask("what was it?")

    told = "\n".join(one["content"] for one in planner.calls[1])
    assert told.count("The mean is 3.") == 1
    assert "New or changed in the kernel: rates: list, 2 items: [2, 4]" in told
    assert '"code": "rates = [2, 4]\\nprint(3)"' in told


@pytest.mark.parametrize(
    ("replies", "forwarded"),
    [
        ([plans("go", code="fit()", then="User")], True),
        ([plans("go", code="fit()"), plans("Rising.", to="User", reasoning="")], False),
    ],
    ids=["forwarded", "in words without a reason"],
)
def test_the_planner_that_goes_on_with_a_session_knows_which_report_went_to_the_user(team, replies, forwarded):
    before, *_ = team(replies, [], ["The slope is 0.731.\n"])
    before.ask("Are sales rising?")
    session, planner, *_ = team([plans("ok", to="User")], [], [])
    session.remember(before.rounds[0])

    session.ask("What was the slope?")

    told = "\n".join(one["content"] for one in planner.calls[0][1:] if one["role"] == "user")
    assert ("what it printed went to the User" in told) == forwarded
    assert ("The slope is 0.731." in told) != forwarded


def test_a_demanded_number_or_list_in_a_sentence_is_sent_back_once_and_goes_out_bare(team):
    session, planner, _, _ = team(
        [
            plans("sum", code="print(4)", then="User"),
            plans("5.1", to="User"),
            plans("ids", code="print(1)"),
            plans("The ids that apply are: 1, 3, 4", to="User"),
            plans("1, 3, 4", to="User"),
        ],
        [],
        ["The sum of the fees is 5.1 EUR.\n", "[1, 3, 4]\n"],
    )

    number = session.ask("What is the sum of the fees? Answer must be just a number.")
    listed = session.ask("Which ids apply? Answer with a comma-separated list.")

    assert (number.text, listed.text) == ("5.1", "1, 3, 4")
    assert "asks for a number and nothing else" in planner.calls[1][-1]["content"]
    assert "asks for a comma-separated list and nothing else" in planner.calls[4][-1]["content"]
