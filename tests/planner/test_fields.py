"""The Planner's reply: what is understood, and what the model is told when it isn't."""

import json

import pytest

from tw_autogen.model import Unreadable
from tw_autogen.planner import Stop, read_reply, reply_schema

WORKERS = ["CodeInterpreter", "Echo"]
GOOD = {
    "reasoning": "r",
    "init_plan": "1. add",
    "plan": "1. add",
    "current_plan_step": "1. add",
    "send_to": "CodeInterpreter",
    "message": "add",
    "stop": "InProcess",
}


def read(has_plan=False, **changes):
    return read_reply(json.dumps({**GOOD, **changes}), WORKERS, has_plan=has_plan)


def test_a_whole_reply_is_understood():
    reply = read(then="User")

    assert (reply.send_to, reply.message, reply.stop, reply.then) == ("CodeInterpreter", "add", Stop.InProcess, "User")
    assert str(reply.plan) == "1. add"


def test_a_name_is_understood_in_any_case():
    assert read(send_to="codeinterpreter").send_to == "CodeInterpreter"


def test_a_list_of_steps_is_understood():
    assert len(read(plan=["1. add", "2. report"]).plan.steps) == 2


def test_absent_plan_fields_mean_unchanged_once_there_is_a_plan():
    reply = read(has_plan=True, init_plan=None, plan=None, current_plan_step=None)

    assert reply.plan is None
    assert reply.init_plan is None


def test_a_missing_stop_follows_from_the_receiver():
    assert read(stop=None, send_to="User").stop is Stop.Completed
    assert read(stop=None).stop is Stop.InProcess


def test_an_answer_without_a_worker_needs_no_plan():
    assert read(send_to="User", stop="Completed", init_plan=None, plan=None).plan is None


def test_then_is_forgotten_in_a_message_to_the_user():
    assert read(send_to="User", stop="Completed", then="User").then == ""


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"send_to": "Cook"}, "`send_to` is 'Cook', and nobody here is called that: write one of CodeInterpreter"),
        ({"send_to": None}, "`send_to` is missing: write one of CodeInterpreter, Echo, User"),
        ({"message": " "}, "`message` is missing or empty"),
        ({"init_plan": None, "plan": None}, "`init_plan` and `plan` are missing: this request has no plan yet"),
        ({"plan": "1. a <sequentially depends on 4>"}, "`plan`: step 1 depends on step 4"),
        ({"send_to": "User", "stop": "InProcess"}, "`stop` is 'InProcess' in a message to the User: write one of Comp"),
        ({"send_to": "User", "stop": "Bored"}, "`stop` is 'Bored' in a message to the User"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_what_would_be_right(changes, problem):
    with pytest.raises(Unreadable, match=problem):
        read(**changes)


def test_all_that_is_wrong_is_said_at_once():
    with pytest.raises(Unreadable, match=r"`send_to` is missing.*; `message` is missing"):
        read(send_to=None, message=None)


def test_the_schema_names_the_workers_and_the_words_for_stopping():
    fields = reply_schema(WORKERS)["properties"]

    assert fields["send_to"]["enum"] == ["CodeInterpreter", "Echo", "User"]
    assert fields["stop"]["enum"] == [stop.value for stop in Stop]
