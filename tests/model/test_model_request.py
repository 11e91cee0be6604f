"""One request object inside, `ChatModel.complete` outside; also with a client of somebody else's style."""

import threading

import pytest

from tw_autogen.errors import ModelError
from tw_autogen.model import (
    BaseChatModel,
    ChatModel,
    Completion,
    ModelRequest,
    Recording,
    RecordingModel,
    ReplayModel,
    Usage,
    asked_as,
    call_model,
    complete,
)
from tw_autogen.planner import Planner
from tw_autogen.session import Session
from tw_autogen.testing import ScriptedModel, plans

MESSAGES = [{"role": "user", "content": "what is 6*7?"}]


class vendorSDKClient:  # noqa: N801 - written elsewhere, by other rules
    """Knows nothing of this package but the signature of `ChatModel.complete`."""

    def __init__(self, *texts):
        self.pending, self.log = list(texts), []

    def complete(self, messages, *, schema=None, tools=None, on_text=None, seconds=None, cancelled=None):
        self.log.append(
            {
                **{"messages": list(messages), "schema": schema, "tools": tools},
                **{"on_text": on_text, "seconds": seconds, "cancelled": cancelled},
            }
        )
        txt = self.pending.pop(0)
        if on_text is not None:
            on_text(txt)
        return Completion(txt, usage=Usage(11, 0, 2, 1), model="vendor-1")


def test_a_foreign_client_gets_each_field_by_its_keyword_and_nothing_else():
    client, pieces, cancelled = vendorSDKClient("42"), [], threading.Event()
    wishes = {"schema": {"type": "object"}, "tools": [{"type": "function"}], "on_text": pieces.append}
    ours = {"role": "Planner", "on_call": lambda *_: None, "on_delay": pieces.append}

    assert isinstance(client, ChatModel)
    answer = complete(client, ModelRequest(MESSAGES, **wishes, seconds=7.0, cancelled=cancelled, **ours))

    assert (answer.text, pieces) == ("42", ["42"])
    assert client.log == [{"messages": MESSAGES, **wishes, "seconds": 7.0, "cancelled": cancelled}]


@pytest.mark.parametrize("wrap", [lambda model, path: model, lambda model, path: asked_as("Planner", model)])
def test_a_foreign_client_answers_for_a_whole_session(wrap, tmp_path):
    client = vendorSDKClient("no JSON", plans("It is 42.", to="User"))
    recorded = RecordingModel(client, tmp_path / "replies.yaml")

    with Session([Planner(wrap(recorded, tmp_path))], folder=tmp_path / "files") as session:
        answer = session.ask("what is 6*7?")

    assert (answer.text, answer.usage.calls, answer.usage.prompt_tokens) == ("It is 42.", 2, 22)
    assert client.log[1]["messages"][:2] == client.log[0]["messages"]
    assert [one["schema"]["type"] for one in client.log] == ["object", "object"]
    replay = ReplayModel(tmp_path / "replies.yaml")
    with Session([Planner(wrap(replay, tmp_path))], folder=tmp_path / "again") as session:
        assert session.ask("what is 6*7?").text == "It is 42."
    assert (replay.stale, replay.unused) == ([], ())


def test_the_role_reaches_a_recording_through_models_in_between(tmp_path):
    path = tmp_path / "replies.yaml"
    inner = RecordingModel(vendorSDKClient("42"), path)

    asked_as("Planner", RecordingModel(inner, tmp_path / "outer.yaml")).complete(MESSAGES)

    assert [reply.role for reply in Recording.read(path).replies] == ["Planner"]


def test_a_subclass_with_a_complete_of_its_own_is_asked_by_it():
    class Loud(ScriptedModel):
        def complete(self, messages, **options):
            said = super().complete(messages, **options)
            return Completion(said.text.upper(), usage=said.usage)

    with Loud(["it is so"]) as model:
        assert asked_as("Planner", model).complete(MESSAGES).text == "IT IS SO"


def test_a_request_without_an_answer_names_the_class():
    class Half(BaseChatModel):
        pass

    with pytest.raises(NotImplementedError, match=r"Half\.answer"):
        Half().complete(MESSAGES)


def test_a_call_is_reserved_made_and_reported_in_this_order():
    class Booking:
        def __init__(self, messages):
            events.append(("reserved", messages))

        def __enter__(self):
            return lambda: events.append("answered")

        def __exit__(self, *_):
            events.append("released")

    events = []
    request = ModelRequest(
        MESSAGES, reserve=Booking, on_call=lambda reply, took: events.append((reply.text, took >= 0))
    )

    call_model(vendorSDKClient("42"), request)

    assert events == [("reserved", MESSAGES), "answered", ("42", True), "released"]


def test_what_a_reservation_refuses_is_not_asked():
    def refuse(messages):
        raise ModelError("no money is left")

    client = vendorSDKClient()
    with pytest.raises(ModelError, match="no money is left"):
        call_model(client, ModelRequest(MESSAGES, reserve=refuse))

    assert client.log == []
