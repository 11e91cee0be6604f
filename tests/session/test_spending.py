"""Limits of calls, tokens and money hold however many threads ask at once. Scripted model, no kernel."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tw_autogen.code_interpreter import CodeInterpreter
from tw_autogen.conversation import Post
from tw_autogen.errors import ModelError, RoundTooCostly
from tw_autogen.model import Completion, Usage
from tw_autogen.role import Role, report_model_call
from tw_autogen.session import Session, SessionSettings
from tw_autogen.testing import FakeKernel, ScriptedModel

ASKED = [{"role": "user", "content": "x" * 400}]  # about 100 tokens
COST = Usage(100, 0, 20, 1, dollars=0.012)


class Gate:
    """A model that answers nobody until it is opened; `asked` grows with each request."""

    def __init__(self, cost=COST, error=None):
        self.cost = cost
        self.error = error
        self.asked = threading.Semaphore(0)
        self.calls = 0
        self.opened = threading.Event()

    def complete(self, messages, **options):
        self.calls += 1
        self.asked.release()
        assert self.opened.wait(20)
        if self.error:
            raise self.error
        return Completion("yes", usage=self.cost)


class Crowd(Role):
    """Asks a first time alone, and then on many threads at once; says how often it was refused, and why."""

    name = "Crowd"
    intro = "Asks."

    def __init__(self, model, *, threads=8, allowed=8, first=None, after=None):
        self.model, self.threads, self.allowed = model, threads, allowed
        self.first, self.after = first, after

    def reply(self, memory, *, turn):
        if self.first:
            turn.ask(self.first, ASKED, caller=self.name)
        refused, rest = [], threading.Semaphore(0)

        def ask(number):
            try:
                turn.ask(self.model, ASKED, caller=self.name)
            except RoundTooCostly as error:
                refused.append(str(error))
                rest.release()
            except ModelError:
                pass

        with ThreadPoolExecutor(self.threads) as pool:
            done = [pool.submit(ask, number) for number in range(self.threads)]
            for _ in range(self.allowed):
                assert self.model.asked.acquire(timeout=20)
            for _ in range(self.threads - self.allowed):
                assert rest.acquire(timeout=20), "a call went beside the others although the limit was reached"
            self.model.opened.set()
            for one in done:
                one.result(20)
        if self.after:
            turn.ask(self.after, ASKED, caller=self.name)
        return Post(self.name, "User", "\n".join([str(len(refused)), *refused[:1]]))


def crowded(tmp_path, role, **limits):
    with Session([role], folder=tmp_path, settings=SessionSettings(**limits)) as session:
        return session.ask("go")


def test_calls_side_by_side_are_never_more_than_the_round_may_make(tmp_path):
    gate = Gate()

    answer = crowded(tmp_path, Crowd(gate, allowed=3), max_calls=3)

    assert (gate.calls, answer.usage.calls) == (3, 3)
    assert answer.text.startswith("5\n")
    assert "0 model calls, 3 more under way, and no answer for the user; `session.max_calls` is 3" in answer.text


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        (
            {"max_tokens": 500},
            "120 tokens, about 600 with 4 calls side by side, and no answer for the user; `session.max_t",
        ),
        (
            {"max_dollars": 0.05},
            "0.0120 dollars, about 0.0600 with 4 calls side by side, and no answer for the user; `session.max_d",
        ),
    ],
)
def test_calls_side_by_side_go_only_if_all_are_expected_to_fit(tmp_path, limits, told):
    gate = Gate()
    with ScriptedModel([Completion("yes", usage=COST)]) as first:
        answer = crowded(tmp_path, Crowd(gate, allowed=3, first=first), **limits)

    assert gate.calls == 3
    assert told in answer.text
    assert answer.usage.prompt_tokens + answer.usage.completion_tokens == 480


def test_a_call_that_fails_gives_back_what_was_reserved_for_it(tmp_path):
    failing = Gate(error=ModelError("gone"))
    with ScriptedModel(["yes"]) as after:
        answer = crowded(tmp_path, Crowd(failing, threads=2, allowed=2, after=after), max_calls=2)

    assert (answer.text, answer.usage.calls) == ("0", 1)


class Twins(Crowd):
    """Has two interpreters write code at the same time."""

    def reply(self, memory, *, turn):
        pair = [CodeInterpreter(self.model, FakeKernel(folder=turn.folder), name=name) for name in ("One", "Two")]
        refused = threading.Event()

        def work(interpreter):
            try:
                interpreter.reply(memory, turn=turn)
            except RoundTooCostly:
                refused.set()
            except ModelError:
                pass

        with ThreadPoolExecutor(2) as pool:
            done = [pool.submit(work, one) for one in pair]
            assert refused.wait(20), "both asked although one call was left"
            self.model.opened.set()
            for one in done:
                one.result(20)
        return Post(self.name, "User", "one of them")


def test_interpreters_side_by_side_share_the_rounds_calls(tmp_path):
    gate = Gate(error=ModelError("gone"))

    assert crowded(tmp_path, Twins(gate), max_calls=1).text == "one of them"
    assert gate.calls == 1


class Thrice(Crowd):
    def reply(self, memory, *, turn):
        for _ in range(3):
            turn.ask(self.model, ASKED, caller=self.name)


def test_a_call_alone_goes_as_long_as_something_is_left_and_no_longer(tmp_path):
    with (
        ScriptedModel([Completion("yes", usage=COST)] * 2) as model,
        pytest.raises(RoundTooCostly, match="240 tokens and no answer"),
    ):
        crowded(tmp_path, Thrice(model), max_tokens=121)


def test_tokens_that_a_server_does_not_report_are_estimated_from_the_prompt(tmp_path):
    with (
        ScriptedModel(["yes"] * 2) as model,
        pytest.raises(RoundTooCostly, match="200 tokens and no answer") as caught,
    ):
        crowded(tmp_path, Thrice(model), max_tokens=150)

    assert caught.value.round.spent["tokens"] == 200


class Nested:
    """A model that, before it answers, has other calls made on its thread: one reserved, others only reported."""

    def __init__(self, inner, reports=2):
        self.inner, self.reports, self.turn, self.seen = inner, reports, None, []

    def complete(self, messages, **options):
        self.turn.ask(self.inner, ASKED, caller="Inner")
        for _ in range(self.reports):
            report_model_call(self.turn, "Other", Completion("", usage=COST), 0.1)
        with ThreadPoolExecutor(1) as pool:  # beside this one
            asking = pool.submit(self.turn.ask, ScriptedModel(["yes"]), ASKED, caller="Beside")
            self.seen.append(asking.exception(20))
        return Completion("yes", usage=COST)


class Asks(Role):
    name = "Asks"
    intro = "Asks."

    def __init__(self, model, after=None):
        self.model, self.after = model, after

    def reply(self, memory, *, turn):
        self.model.turn = turn
        turn.ask(self.model, ASKED, caller=self.name)
        if self.after:
            turn.ask(self.after, ASKED, caller=self.name)
        return Post(self.name, "User", "done")


@pytest.mark.parametrize(("most", "refused"), [(4, True), (5, False)])
def test_calls_that_are_made_inside_of_another_do_not_free_what_is_reserved_for_it(tmp_path, most, refused):
    outer = Nested(ScriptedModel(["inner"]))

    answer = crowded(tmp_path, Asks(outer), max_calls=most)

    assert [isinstance(one, RoundTooCostly) for one in outer.seen] == [refused]  # 3 are paid for, the outer one is not
    assert answer.usage.calls == most


def test_what_was_reserved_is_free_again_once_it_is_paid_for(tmp_path):
    answer = crowded(tmp_path, Asks(Nested(ScriptedModel(["inner"]), reports=0), ScriptedModel(["after"])), max_calls=4)

    assert (answer.usage.calls, answer.text) == (4, "done")
