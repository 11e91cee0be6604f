"""The plan as data: on posts, as an event, in the journal and after a resume. Scripted models, no kernel."""

import json

import pytest

from tw_autogen.conversation import Attachment, AttachmentType, Plan, Post, Round, Status, Step
from tw_autogen.conversation.plan import Depends
from tw_autogen.events import PlanChanged, PostClosed, event_from_dict
from tw_autogen.planner import Planner
from tw_autogen.role import Role
from tw_autogen.session import Session, read_journal, rounds_of
from tw_autogen.session.event_journal import Journal
from tw_autogen.session.notebook_export import notebook
from tw_autogen.testing import ScriptedModel, plans

TEXT = "1. load\n2. report <interactively depends on 1>"


class Coder(Role):
    name = "Coder"
    intro = "Runs code."

    def __init__(self, *outcomes):
        self._outcomes = list(outcomes)

    def reply(self, memory, **kwargs):
        status = Attachment(AttachmentType.execution_status, self._outcomes.pop(0))
        return Post(self.name, "Planner", "done", (status,))


@pytest.fixture
def asked(tmp_path):
    """Ask one request, and return the session's events and the posts of the Planner."""

    def ask(replies, outcomes, *past):
        coder = Coder(*outcomes)
        with (
            ScriptedModel(replies) as model,
            Session([Planner(model, [coder]), coder], folder=tmp_path / "files") as session,
        ):
            events = []
            for one in past:
                session.remember(one)
            session.subscribe(events.append)
            session.ask("how many rows?")
            return events, [post for post in session.rounds[-1].posts if post.send_from == "Planner"], model

    return ask


def standing(plan):
    return [(step.status.value, step.role) for step in plan.steps]


def test_each_post_of_the_planner_carries_the_plan_with_statuses_and_roles(asked):
    first = plans("load it", to="Coder", plan=TEXT, step="1")
    last = plans("12 rows", to="User", step="2. report")

    events, posts, _ = asked([first, last], ["SUCCESS"])

    assert [standing(post.plan) for post in posts] == [
        [("current", "Coder"), ("pending", "")],
        [("done", "Coder"), ("done", "")],
    ]
    assert posts[0].plan.steps[1] == Step(2, "report", ((1, Depends.interactive),), Status.pending)
    assert posts[0].content(AttachmentType.plan) == TEXT
    changes = [(at, event) for at, event in enumerate(events) if isinstance(event, PlanChanged)]
    assert [(one.role, one.plan) for _, one in changes] == [("Planner", post.plan) for post in posts]
    assert [events[at + 1].post for at, _ in changes] == posts


def test_a_plan_that_stays_as_it_is_changes_nothing(asked):
    again = plans("load more", to="Coder", plan=TEXT, step="1")

    events, posts, _ = asked([again, again, plans("12 rows", to="User")], ["SUCCESS", "SUCCESS"])

    assert [standing(event.plan)[0][0] for event in events if isinstance(event, PlanChanged)] == ["current", "done"]
    assert posts[0].plan == posts[1].plan


@pytest.mark.parametrize("again", ["", TEXT])
@pytest.mark.parametrize("status", ["NONE", "FAILURE"])
def test_a_step_for_which_no_code_ran_well_stays_open_until_it_has(asked, status, again):
    first = plans("load it", to="Coder", plan=TEXT, step="1")
    replies = [
        first,
        plans("report", to="Coder", plan=again, step="2"),
        plans("load", to="Coder", plan=again, step="1"),
    ]

    _, posts, _ = asked([*replies, plans("12 rows", to="User")], [status, status, "SUCCESS"])

    assert [[state for state, _ in standing(post.plan)] for post in posts] == [
        ["current", "pending"],
        ["pending", "current"],
        ["current", "pending"],
        ["done", "pending"],
    ]


class Reporter(Coder):
    def reply(self, memory, **kwargs):
        done = Attachment(AttachmentType.execution_status, "SUCCESS")
        return Post(self.name, "Planner", "done", (done, Attachment(AttachmentType.execution_result, "12 rows")))


@pytest.mark.parametrize(
    ("plan", "step", "calls"),
    [
        ("1. load\n2. fit", "1", 2),
        ("1. load\n2. fit\n3. report", "1", 2),
        ("1. load\n2. fit\n3. report", "2", 1),
        ("1. load\n2. fit", "2", 1),
        ("1. laden\n2. dem Nutzer berichten", "1", 1),
        ("1. 读取\n2. 向用户报告", "1", 1),
        ("1. load\n2. report", "", 1),
        ("1. load\n2. fit", "", 2),
    ],
)
def test_an_answer_is_forwarded_after_the_last_step_only(tmp_path, plan, step, calls):
    coder = Reporter()
    first = plans("load", to="Coder", plan=plan, step=step, then="User")
    steps = [first, plans("That was not all.", to="User")][:calls]
    with ScriptedModel(steps) as model, Session([Planner(model, [coder]), coder], folder=tmp_path) as session:
        answer = session.ask("how many rows?")

    assert answer.text == ("12 rows" if calls == 1 else "That was not all.")


def test_a_forwarded_answer_completes_the_plan(tmp_path):
    coder = Reporter()
    with (
        ScriptedModel([plans("load", to="Coder", then="User")]) as model,
        Session([Planner(model, [coder]), coder], folder=tmp_path) as session,
    ):
        posts = session.ask("how many rows?").round.posts

    assert standing(posts[-1].plan) == [("done", "Coder")]


def test_plans_come_back_from_the_journal(asked, tmp_path):
    events, _, _ = asked([plans("load it", to="Coder", plan=TEXT), plans("12 rows", to="User")], ["SUCCESS"])

    with Journal(tmp_path / "events.jsonl") as journal:
        for event in events:
            journal.write(event)

    told = [one for one in events if isinstance(one, PlanChanged | PostClosed)]
    assert [one for one in read_journal(tmp_path / "events.jsonl") if isinstance(one, PlanChanged | PostClosed)] == told


OLD_POST = {
    "id": "post-1",
    "send_from": "Planner",
    "send_to": "User",
    "message": "Which file?",
    "attachment_list": [
        {"id": "a", "type": "plan", "content": TEXT},
        {"id": "b", "type": "current_plan_step", "content": "2. report"},
        {"id": "c", "type": "stop", "content": "Clarification"},
    ],
}
OLD_JOURNAL = [
    {"event": "RoundOpened", "round_id": "round-1", "user_query": "report it", "files": []},
    {"event": "PostClosed", "round_id": "round-1", "post_id": "", "post": OLD_POST},
    {
        **{"event": "RoundClosed", "round_id": "round-1", "state": "finished", "stop": "Clarification"},
        **{"answer": "Which file?", "error": "", "seconds": 1.0},
    },
]


def test_a_journal_that_holds_plans_as_text_only_is_resumed_with_its_plan(asked, tmp_path):
    journal = tmp_path / "old.jsonl"
    journal.write_text("".join(json.dumps(one) + "\n" for one in OLD_JOURNAL), encoding="utf-8")

    reply = plans("report", to="Coder", plan="", init_plan="", step="2")
    _, posts, _ = asked([reply, plans("12 rows", to="User")], ["SUCCESS"], *rounds_of(read_journal(journal)))

    assert standing(posts[0].plan) == [("done", ""), ("current", "Coder")]
    assert "**Plan**\n\n1. load\n2. report" in "\n".join(cell.source for cell in notebook(journal).cells)


@pytest.mark.parametrize("text", ["1. a <sequentially depends on 9>", "1. a\n1. b <sequentially depends on 1>"])
def test_words_of_another_planner_that_are_no_plan_of_this_form_state_none(text):
    plain = {**OLD_POST, "attachment_list": [{"type": "plan", "content": text}]}

    event = event_from_dict({"event": "PostClosed", "round_id": "r", "post_id": "", "post": plain})

    assert event.post.plan is None


def test_a_stored_example_keeps_its_words_and_gets_no_plan_of_its_own():
    plain = {"id": "round-1", "user_query": "q", "state": "finished", "post_list": [OLD_POST]}

    assert Round.from_dict(plain).to_dict() == plain


@pytest.mark.parametrize(
    ("plain", "error", "problem"),
    [
        ({"steps": [{"id": 1}]}, KeyError, "text"),
        ({"steps": [{"id": 1, "text": "a", "status": "half"}]}, ValueError, "'half' is not a valid Status"),
        ({"steps": [{"id": 1, "text": "a", "depends": [[1, "hardly"]]}]}, ValueError, "'hardly' is not a valid"),
        ({}, KeyError, "steps"),
        ({"steps": None}, ValueError, "steps: not of the form"),
        ({"steps": {"id": 1, "text": "a"}}, ValueError, "steps: not of the form"),
        ({"steps": "12"}, ValueError, "steps: not of the form"),
        ({"steps": [5]}, ValueError, "steps: not of the form"),
        ({"steps": [[1, "a"]]}, ValueError, "steps: not of the form"),
        ({"steps": [{"id": True, "text": "a"}]}, ValueError, "a step's number: expected int"),
        ({"steps": [{"id": None, "text": "a"}]}, ValueError, "a step's number: expected int"),
        ({"steps": [{"id": 1, "text": "a", "depends": None}]}, ValueError, "depends: not of the form"),
        ({"steps": [{"id": 1, "text": "a", "depends": [5]}]}, ValueError, "depends: not of the form"),
        ({"steps": [{"id": 1, "text": "a", "depends": [[1]]}]}, ValueError, "a step's number: expected int"),
        ({"steps": [{"id": 1, "text": "a", "depends": [[False, "sequential"]]}]}, ValueError, "a step's number"),
        ({"steps": [{"id": 1, "text": "a", "status": []}]}, ValueError, "is not a valid Status"),
        ({"steps": [{"id": 1, "text": 5}]}, ValueError, "text: expected text, got int"),
    ],
)
def test_a_plan_in_another_form_is_refused(plain, error, problem):
    with pytest.raises(error, match=problem):
        Plan.from_dict(plain)


def test_a_plan_that_a_role_has_made_of_its_own_is_read_as_it_was_stored():
    circle = Plan((Step(1, "a", ((2, Depends.sequential),)), Step(2, "b", ((1, Depends.interactive),)), Step(2, "c")))

    assert Plan.from_dict(circle.to_dict()) == circle
