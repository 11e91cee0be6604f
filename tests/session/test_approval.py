"""A person before each cell and each plan: approves, changes, or refuses with a reason that the model gets."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tw_autogen.approval import Decision, Proposal, decide, read_decision
from tw_autogen.errors import ApprovalNeeded, ConfigError, RoundError, RoundInterrupted, SettingsError
from tw_autogen.events import ApprovalAsked, ApprovalDecided, event_from_dict
from tw_autogen.session import open_session
from tw_autogen.testing import FakeKernel, ScriptedModel, codes, plans

CELLS = {"code_interpreter.approval": "always"}
FINDINGS = {"code_interpreter.approval": "findings"}
PLANS = {"planner.approval": "always"}


class Talk:
    """One request, with a kernel that takes down what ran and a person who says what the script says."""

    def __init__(self, tmp_path, planner, coder, settings, *says, nobody=False):
        self.ran, self.asked, self.events = [], [], []
        self._says = list(says)
        self.planner, self.coder = ScriptedModel(planner), ScriptedModel(coder)
        with (
            self.planner,
            self.coder,
            open_session(
                {"Planner": self.planner, "CodeInterpreter": self.coder},
                kernel=lambda folder: FakeKernel(self._run, folder=folder),
                folder=tmp_path,
                settings=settings,
                approve=None if nobody else self._approve,
                handlers=[self.events.append],
            ) as session,
        ):
            self.session = session
            self.answer = session.ask("double 21")
        assert not self._says, "the person was asked more rarely than the script says"

    def _run(self, code):
        self.ran.append(code)
        return "42"

    def _approve(self, proposal):
        self.asked.append(proposal)
        return self._says.pop(0)


DONE = [plans("double 21"), plans("42.", to="User")]


def test_an_approved_cell_runs_and_question_and_answer_are_events(tmp_path):
    talk = Talk(tmp_path, DONE, [codes("21 * 2")], CELLS, True)

    assert talk.ran == ["21 * 2"]
    assert talk.asked == [Proposal("cell", "21 * 2")]
    kept = [event for event in talk.events if isinstance(event, ApprovalAsked | ApprovalDecided)]
    assert [(one.kind, one.text) for one in kept] == [("cell", "21 * 2"), ("cell", "")]
    assert [event_from_dict(one.to_dict()) for one in kept] == kept


def test_a_changed_cell_runs_as_it_was_changed_and_the_model_is_told(tmp_path):
    script = [plans("double 21"), plans("and again"), plans("42.", to="User")]
    talk = Talk(tmp_path, script, [codes("21 * 3"), codes("1")], CELLS, Decision(True, "21 * 2"), True)

    assert talk.ran == ["21 * 2", "1"]
    assert "The User changed the code before it ran:)\n```python\n21 * 2\n```" in talk.coder.calls[1][-1]["content"]
    assert talk.session.rounds[-1].posts[2].attachments[2].content == "21 * 2"


def test_a_refused_cell_does_not_run_and_the_model_gets_the_reason(tmp_path):
    no = Decision(False, reason="use the median")
    talk = Talk(tmp_path, DONE, [codes("df.mean()"), codes("df.median()")], CELLS, no, True)

    assert talk.ran == ["df.median()"]
    assert (
        "The code was not run:\n- line 1 (approval): the User did not let it run: use the median"
        in (talk.coder.calls[1][-1]["content"])
    )


def test_refusing_without_end_ends(tmp_path):
    talk = Talk(tmp_path, DONE, [codes(f"{i}") for i in range(4)], CELLS, *[False] * 4)

    assert not talk.ran
    assert "and gave no reason" in talk.session.rounds[-1].posts[2].message


def test_always_sends_findings_to_the_model_and_asks_about_what_passes(tmp_path):
    talk = Talk(tmp_path, DONE, [codes("eval('1')"), codes("1")], CELLS, True)

    assert [one.text for one in talk.asked] == ["1"]
    assert talk.ran == ["1"]


def test_on_findings_a_person_may_let_a_cell_run_in_spite_of_them_and_clean_ones_just_run(tmp_path):
    script = [plans("a"), plans("b"), plans("c", to="User")]
    talk = Talk(tmp_path, script, [codes("eval('1')"), codes("1")], FINDINGS, True)

    assert talk.ran == ["eval('1')", "1"]
    assert talk.asked == [Proposal("cell", "eval('1')", ("line 1 (function): 'eval' is not allowed",))]


def test_what_a_person_wrote_is_checked_too_and_shown_with_what_is_wrong(tmp_path):
    talk = Talk(tmp_path, DONE, [codes("1")], CELLS, Decision(True, "eval('2')"), Decision(True, "2"))

    assert [one.findings for one in talk.asked] == [(), ("line 1 (function): 'eval' is not allowed",)]
    assert talk.ran == ["2"]


def test_no_python_goes_to_the_model_and_to_nobody_else(tmp_path):
    talk = Talk(tmp_path, DONE, [codes("x = ("), codes("1")], FINDINGS)

    assert talk.asked == []
    assert talk.ran == ["1"]


@pytest.mark.parametrize(("settings", "code"), [(CELLS, "1"), (FINDINGS, "eval('1')")])
def test_without_a_person_the_round_ends_before_the_cell(tmp_path, settings, code):
    with pytest.raises(ApprovalNeeded, match="code waits for a person's approval .* nobody can be asked"):
        Talk(tmp_path, [plans("a")], [codes(code)], settings, nobody=True)


def test_without_a_person_clean_cells_run_where_only_findings_are_asked_about(tmp_path):
    assert Talk(tmp_path, DONE, [codes("1")], FINDINGS, nobody=True).ran == ["1"]


STEPS = "1. load a.csv\n2. report the mean"
FIRST = plans("load a.csv", plan=STEPS)


def test_an_approved_plan_goes_on_and_the_same_plan_is_not_asked_about_again(tmp_path):
    script = [FIRST, plans("report it", plan=STEPS), plans("done", to="User")]
    talk = Talk(tmp_path, script, [codes("1"), codes("2")], PLANS, True)

    assert talk.asked == [Proposal("plan", STEPS)]


def test_a_new_plan_in_the_same_round_is_asked_about(tmp_path):
    grown = plans("clean it", plan=f"{STEPS}\n3. clean")
    talk = Talk(tmp_path, [FIRST, grown, plans("done", to="User")], [codes("1"), codes("2")], PLANS, True, True)

    assert [one.text for one in talk.asked] == [STEPS, f"{STEPS}\n3. clean"]


def test_a_plan_that_came_with_a_question_is_asked_about_before_its_first_step(tmp_path):
    question = plans("Which file?", to="User", plan=STEPS, stop="Clarification")
    script = [question, plans("load a.csv", plan="", step="1"), plans("done", to="User")]
    asked = []

    def approve(proposal):
        asked.append(proposal)
        return True

    with (
        ScriptedModel(script) as planner,
        ScriptedModel([codes("1")]) as coder,
        open_session(
            {"Planner": planner, "CodeInterpreter": coder},
            kernel=lambda folder: FakeKernel(["1"], folder=folder),
            folder=tmp_path,
            settings=PLANS,
            approve=approve,
        ) as session,
    ):
        session.ask("the mean?")
        assert asked == []
        session.ask("of a.csv")

    assert asked == [Proposal("plan", STEPS)]


def test_a_changed_plan_holds_and_the_planner_goes_on_from_there(tmp_path):
    changed = "1. load a.csv\n2. report the median"
    again = plans("load it", plan=changed, step="1. load a.csv")
    script = [FIRST, again, plans("done", to="User")]
    talk = Talk(tmp_path, script, [codes("1")], PLANS, Decision(True, changed))

    assert f"The User has changed the plan, which is now:\n{changed}\n" in talk.planner.calls[1][-1]["content"]
    assert "2. report the median" in talk.session.rounds[-1].read_board("Planner")
    assert [post.message for post in talk.session.rounds[-1].posts][1] == "load it"


def test_a_change_that_is_no_plan_is_asked_about_again(tmp_path):
    knot = "1. a <sequentially depends on 7>"
    talk = Talk(tmp_path, [FIRST, plans("done", to="User")], [codes("1")], PLANS, Decision(True, knot), True)

    assert "step 1 depends on step 7" in talk.asked[1].findings[0]


def test_a_refused_plan_is_made_anew_with_the_reason(tmp_path):
    second = plans("load b.csv", plan="1. load b.csv")
    script = [FIRST, second, plans("done", to="User")]
    talk = Talk(tmp_path, script, [codes("1")], PLANS, Decision(False, reason="take b.csv"), True)

    assert "does not agree with the plan: take b.csv" in talk.planner.calls[1][-1]["content"]
    assert talk.session.rounds[-1].posts[1].message == "load b.csv"


def test_refusing_every_plan_ends_with_the_reason_for_the_user(tmp_path):
    talk = Talk(tmp_path, [FIRST] * 4, [], PLANS, *[Decision(False, reason="no")] * 4)

    assert (talk.answer.text, talk.answer.stop) == ("The plan was not approved: no", "TaskFailure")


def test_a_plan_without_a_person_ends_the_round_and_shows_it(tmp_path):
    with pytest.raises(ApprovalNeeded, match=r"(?s)planner\.approval.*1\. load a\.csv") as caught:
        Talk(tmp_path, [FIRST], [], PLANS, nobody=True)

    assert caught.value.round.posts


def test_an_answer_to_the_user_needs_no_approval(tmp_path):
    assert Talk(tmp_path, [plans("42.", to="User")], [], PLANS).answer.text == "42."


def test_another_word_than_those_three_is_an_error(tmp_path):
    with pytest.raises(SettingsError, match=r"code_interpreter\.approval: input should be 'always', 'never' or 'find"):
        open_session(ScriptedModel([]), folder=tmp_path, settings={"code_interpreter.approval": "sometimes"})


@pytest.mark.parametrize(
    ("kind", "said", "expected"),
    [
        ("cell", " Y ", Decision(True)),
        ("cell", "", Decision(False)),
        ("cell", "no", Decision(False)),
        ("cell", "take b.csv", Decision(False, reason="take b.csv")),
        ("cell", "```python\nx = 2\nx\n```", Decision(True, "x = 2\nx")),
        ("cell", "no, not\n```\ndel x\n```", Decision(False, reason="no, not\n```\ndel x\n```")),
        ("cell", '```\ns = """\n```sql\n```\n"""\n```', Decision(True, 's = """\n```sql\n```\n"""')),
        ("cell", "```python\n\n```", Decision(False)),
        ("cell", '````\ns = "```"\n````', Decision(True, 's = "```"')),
        ("cell", "```python\r\nx = 2\r\nx\r\n```", Decision(True, "x = 2\nx")),
        ("plan", "1. load\n2. report", Decision(True, "1. load\n2. report")),
        ("plan", "```\n1. load\n```", Decision(True, "1. load")),
        ("plan", "2 steps are too many", Decision(False, reason="2 steps are too many")),
        ("packages", "yes", Decision(True)),
        ("packages", "why?", Decision(False)),
        ("packages", "a", Decision(False)),
        ("cell", "a", Decision(False, reason="a")),
        ("tool", "y", Decision(True)),
        ("tool", "", Decision(False)),
        ("tool", "A", Decision(True, always=True)),
        ("tool", "always", Decision(True, always=True)),
        ("tool", "```\n{}\n```", Decision(False, reason="```\n{}\n```")),
        ("tool", "ask me later", Decision(False, reason="ask me later")),
    ],
)
def test_what_a_person_types_is_read(kind, said, expected):
    assert read_decision(said, Proposal(kind, "x")) == expected


def test_what_was_given_back_unchanged_is_no_change():
    assert decide(lambda asked: Decision(True, asked.text + "\n"), Proposal("cell", "1")) == Decision(True)


@pytest.mark.parametrize("said", ["no", "yes", None, 1, Decision("no")])
def test_what_is_neither_a_bool_nor_a_decision_decides_nothing_and_nothing_runs(tmp_path, said):
    ran, events = [], []
    with (
        ScriptedModel([plans("double 21")]) as planner,
        ScriptedModel([codes("21 * 2")]) as coder,
        open_session(
            {"Planner": planner, "CodeInterpreter": coder},
            kernel=lambda folder: FakeKernel(ran.append, folder=folder),
            folder=tmp_path,
            settings=CELLS,
            approve=lambda proposal: said,
            handlers=[events.append],
        ) as session,
        pytest.raises(RoundError, match="approve returned .*bool|approve returned .* return True, False") as caught,
    ):
        session.ask("double 21")

    assert isinstance(caught.value.__cause__, ConfigError)
    assert ran == []
    assert [event.approved for event in events if isinstance(event, ApprovalDecided)] == [False]


def test_what_approve_raises_ends_the_round_with_its_name_and_line_and_nothing_runs(tmp_path):
    ran, events = [], []

    def approve(proposal):
        raise LookupError("no such desk")

    with (
        ScriptedModel([plans("double 21")]) as planner,
        ScriptedModel([codes("21 * 2")]) as coder,
        open_session(
            {"Planner": planner, "CodeInterpreter": coder},
            kernel=lambda folder: FakeKernel(ran.append, folder=folder),
            folder=tmp_path,
            settings=CELLS,
            approve=approve,
            handlers=[events.append],
        ) as session,
        pytest.raises(
            RoundError, match=r"approve failed: LookupError: no such desk \(.*test_approval\.py:\d+\)"
        ) as caught,
    ):
        session.ask("double 21")

    assert isinstance(caught.value.__cause__.__cause__, LookupError)
    assert ran == []
    assert [event.approved for event in events if isinstance(event, ApprovalDecided)] == [False]


@pytest.mark.parametrize(("approve", "found"), [(True, "bool"), ("yes", "str")])
def test_what_can_not_be_asked_is_told_at_opening(tmp_path, approve, found):
    with pytest.raises(ConfigError, match=f"^approve: expected a function that takes a proposal, found {found}$"):
        open_session(ScriptedModel([]), folder=tmp_path, approve=approve)

    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_ends_the_question_of_a_session_that_works_on_another_thread(tmp_path):
    asked, ended = threading.Event(), threading.Event()

    def approve(proposal):
        asked.set()
        try:
            while True:
                time.sleep(0.01)
        finally:
            ended.set()

    script = [plans("double 21"), codes("21 * 2"), plans("42.", to="User")]
    with open_session(ScriptedModel(script), folder=tmp_path, settings=CELLS, approve=approve) as session:
        with ThreadPoolExecutor() as pool:
            answer = pool.submit(session.ask, "double 21")
            assert asked.wait(30)
            session.interrupt()
            with pytest.raises(RoundInterrupted, match=r"stopped by interrupt\(\)"):
                answer.result(20)

        assert ended.wait(5)
        assert session.ask("and?").text == "42."
    given = [line for line in session.journal.read_text(encoding="utf-8").splitlines() if '"ApprovalDecided"' in line]
    assert len(given) == 1
    assert "the question was given up" in given[0]


@pytest.mark.parametrize("kind", ["packages", "cell", "plan", "command", "tool", "write", "rerun"])
def test_a_hint_names_the_answers_that_are_read_so(kind):
    proposal = Proposal(kind, "x")

    assert ("/a" in proposal.hint) is read_decision("a", proposal).always
    assert ("why not" in proposal.hint) is (read_decision("use y", proposal).reason == "use y")
