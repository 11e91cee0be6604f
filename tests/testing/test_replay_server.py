"""Recorded replies behind a real server: for our own client, for the OpenAI SDK, and for AutoGen's agents."""

import json
import socket
import threading
import urllib.error
import urllib.request

import openai
import pytest

from tw_autogen.errors import ModelError, ScenarioError
from tw_autogen.model import (
    Completion,
    ModelSettings,
    OpenAIModel,
    Recording,
    RecordingModel,
    ReplayModel,
    ToolCall,
    Usage,
    resolve_model,
)
from tw_autogen.testing import ScriptedModel, replay_server

ASKED = [{"role": "user", "content": "what is 6*7?"}]
CALLS = Completion(
    "", (ToolCall("c1", "look", "{}"), ToolCall("c2", "go", '{"to": 1}')), Usage(9, 8, 7, 1), "tool_calls", "m"
)


def client_of(server):
    return resolve_model(ModelSettings(base_url=server.base_url, seconds=20.0))


def test_replies_come_whole_and_streamed_with_usage_and_tool_calls():
    text = Completion("It is 42, as everybody knows.", usage=Usage(100, 64, 9, 1), model="m")
    with replay_server([text, text, CALLS, CALLS]) as server:
        model, pieces = client_of(server), []
        assert model.complete(ASKED) == text
        assert model.complete(ASKED, on_text=pieces.append) == text
        assert model.complete(ASKED) == CALLS
        assert model.complete(ASKED, on_text=pieces.append) == CALLS

    assert len(pieces) > 1
    assert "".join(pieces) == text.text
    assert [request["messages"] for request in server.requests] == [ASKED] * 4


def test_a_recording_is_matched_by_its_prompts(tmp_path):
    path = tmp_path / "replies.yaml"
    recorder = RecordingModel(ScriptedModel([Completion("one", model="tiny-1"), "two"]), path)
    for content in ("a", "b"):
        recorder.complete([{"role": "user", "content": content}])
    with replay_server(path) as server:
        model = client_of(server)
        assert model.name == "tiny-1"
        assert model.complete([{"role": "user", "content": "b"}]).text == "two"
        assert model.complete([{"role": "user", "content": "a"}]).text == "one"
        assert server.model.stale == []


def test_what_a_model_raises_is_told_to_the_client_at_once():
    with replay_server(ScriptedModel([lambda messages: messages[7]["content"], "never"])) as server:
        with pytest.raises(ModelError, match=r"the server failed \(500\) once: IndexError: list index out of range"):
            client_of(server).complete(ASKED)

        assert server.model.left == 1


def test_a_run_that_has_parted_is_told_to_the_client_at_once():
    with replay_server(["only one"]) as server:
        model = client_of(server)
        model.complete(ASKED)
        with pytest.raises(
            ModelError, match=r"\(409\): .*have parted at call 2: the recording holds 1 reply"
        ) as failed:
            model.complete(ASKED)
        with (
            openai.OpenAI(base_url=server.base_url, api_key="none") as sdk,
            pytest.raises(openai.ConflictError, match="have parted at call 3"),
        ):
            sdk.chat.completions.create(model="x", messages=ASKED, stream=True)

    assert failed.value.tries == 1
    assert len(server.requests) == 3


def test_any_model_can_be_served_and_a_script_that_is_over_is_told():
    with ScriptedModel(["hi"]) as script, replay_server(script) as server:
        model = client_of(server)
        assert model.complete(ASKED, tools=[{"type": "function", "function": {"name": "f"}}]).text == "hi"
        with pytest.raises(ModelError, match="the scripted model was to be asked once"):
            model.complete(ASKED)
    assert script.tools[0][0]["function"]["name"] == "f"


def test_an_autogen_agent_talks_to_it():
    autogen = pytest.importorskip("autogen", reason="the host is an extra; `make test` installs it")
    with replay_server(["It is 42. TERMINATE"]) as server:
        config = {"model": "any", "base_url": server.base_url, "api_key": "none", "price": [0, 0]}
        agent = autogen.ConversableAgent(
            "agent", llm_config={"config_list": [config], "cache_seed": None}, human_input_mode="NEVER"
        )
        reply = agent.generate_reply([{"role": "user", "content": "what is 6*7?"}])

    assert (reply if isinstance(reply, str) else reply["content"]) == "It is 42. TERMINATE"
    assert server.requests[0]["messages"][-1]["content"] == "what is 6*7?"


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/nowhere", b"{}", 404, "/v1/chat/completions and /v1/models"),
        ("/chat/completions", b"no json", 400, "no request for a chat completion"),
        ("/chat/completions", b"{}", 400, "'messages'"),
        ("/nowhere", None, 404, "there is no /v1/nowhere"),
    ],
)
def test_what_it_does_not_serve_is_refused_in_words(path, body, status, words):
    with (
        replay_server(["x"]) as server,
        pytest.raises(urllib.error.HTTPError, match=str(status)) as refused,
        urllib.request.urlopen(f"{server.base_url}{path}", data=body, timeout=10),
    ):
        pytest.fail("it was served")
    with refused.value:
        assert words in json.loads(refused.value.read())["error"]["message"]


def test_all_threads_have_ended_and_the_port_is_free_afterwards():
    before = set(threading.enumerate())
    with replay_server(["x"]) as server:
        OpenAIModel(ModelSettings(base_url=server.base_url, name="m")).complete(ASKED)
        port = int(server.base_url.rsplit(":", 1)[1].split("/")[0])
    assert {
        one for one in threading.enumerate() if "process_request" in one.name or one.name == "replay server"
    } <= before
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
    with replay_server(["x"], port=port) as again:
        assert again.base_url == f"http://127.0.0.1:{port}/v1"


def test_a_missing_recording_is_an_error_before_anything_listens(tmp_path):
    with pytest.raises(ScenarioError, match="there is no such recording"), replay_server(tmp_path / "none.yaml"):
        pytest.fail("it was served")


def test_a_replay_model_may_be_watched_while_it_is_served():
    replay = ReplayModel(Recording.of(["one", "two"]))
    with replay_server(replay) as server:
        client_of(server).complete(ASKED)
        assert len(replay.unused) == 1
