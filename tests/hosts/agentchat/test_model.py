"""The host's model clients as a `ChatModel`: what is passed on, what comes back, and when it ends."""

import asyncio
import base64
import os
import subprocess
import sys
import threading

import pytest

from tw_autogen.errors import ModelError
from tw_autogen.events import PostGrew
from tw_autogen.model import Completion, ToolCall, Usage
from tw_autogen.testing import codes, plans, replay_server

pytest.importorskip("autogen_agentchat", reason="the host is an extra: tw-autogen[agentchat]")
from autogen_agentchat.messages import MultiModalMessage
from autogen_core import Image
from autogen_ext.models.openai import OpenAIChatCompletionClient
from autogen_ext.models.replay import ReplayChatCompletionClient

from tw_autogen.hosts.agentchat import ClientModel, TaskWeaverAgent

DOT = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhf"
    "DwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
ASKED = [{"role": "user", "content": "hi"}]
SPENT = {100: plans("compute"), 50: codes("6 * 7"), 25: plans("It is 42.", to="User")}


@pytest.fixture
def serve(info):
    """Give a function that makes a client of a server of recorded replies."""

    def make(server, **more):
        return OpenAIChatCompletionClient(
            model="recording", api_key="none", base_url=server.base_url, model_info=info(**more)
        )

    return make


class Unanswering(ReplayChatCompletionClient):
    """Never answers; says when it was asked, and when that was cancelled."""

    def __init__(self):
        super().__init__([])
        self.asked, self.cancelled = threading.Event(), threading.Event()

    async def create(self, messages, **more):
        work = asyncio.ensure_future(asyncio.Event().wait())
        more["cancellation_token"].link_future(work)
        self.asked.set()
        try:
            await work
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


@pytest.mark.parametrize("stream", [False, True])
def test_what_a_round_has_cost_is_the_sum_of_its_calls_streamed_or_whole(stream, serve, tmp_path, finish):
    grew = []
    replies = [Completion(text, usage=Usage(tokens, 0, 2, 1)) for tokens, text in SPENT.items()]
    with replay_server(replies) as server:
        agent = TaskWeaverAgent(
            "analyst", serve(server), model_client_stream=stream, workspace=tmp_path,
            handlers=[lambda event: grew.append(event.text) if isinstance(event, PostGrew) else None],
        )  # fmt: skip

        async def main():
            result = await agent.run(task="what is 6*7?")
            await agent.close()
            return result.messages[-1]

        said = finish(main())

    assert said.content == "It is 42."
    assert (said.models_usage.prompt_tokens, said.models_usage.completion_tokens) == (175, 6)
    assert [bool(request.get("stream")) for request in server.requests] == [stream] * 3
    assert "It is 42." in "".join(grew)


def test_a_stream_is_given_piece_by_piece_before_it_is_whole():
    pieces = []
    model = ClientModel(ReplayChatCompletionClient(["one two three"]), stream=True)
    completion = model.complete(ASKED, on_text=pieces.append)

    assert len(pieces) == 3
    assert "".join(pieces) == completion.text == "one two three"


def test_a_model_that_sees_nothing_gets_the_words_beside_an_image(serve, tmp_path, finish):
    with replay_server([plans("Seen.", to="User")]) as server:
        agent = TaskWeaverAgent("analyst", serve(server, vision=False), workspace=tmp_path)
        message = MultiModalMessage(content=["look at this", Image.from_uri(DOT)], source="user")

        async def main():
            result = await agent.run(task=message)
            await agent.close()
            return result.messages[-1].content

        assert finish(main()) == "Seen."
    asked = server.requests[0]["messages"][-1]["content"]
    assert "look at this" in asked
    assert "(an image, which this model can't be shown)" in asked


@pytest.mark.parametrize("vision", [False, True])
@pytest.mark.parametrize("data", [b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n{} loop\n", b"no picture", b""])
def test_no_program_is_started_for_what_calls_itself_a_picture(serve, tmp_path, monkeypatch, vision, data):
    (tmp_path / "gs").write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n", encoding="utf-8")
    (tmp_path / "gs").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    asked = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]

    with replay_server([Completion("done")]) as server:
        ClientModel(serve(server, vision=vision)).complete(asked)
        said = str(server.requests)

    assert "can't be shown" in said
    assert not (tmp_path / "ran").exists()


def test_images_that_the_host_has_no_form_for_are_told_in_words(serve):
    content = [{"type": "text", "text": "look"}] + [
        {"type": "image_url", "image_url": {"url": url}} for url in (DOT, "https://example.org/a.png")
    ]
    with replay_server(["Seen."]) as server:
        assert ClientModel(serve(server)).complete([{"role": "user", "content": content}]).text == "Seen."
    parts = server.requests[0]["messages"][-1]["content"]
    assert [part["type"] for part in parts] == ["text", "image_url", "text"]


def test_calls_of_tools_go_out_and_come_back_as_they_are(serve):
    call = ToolCall("call-1", "look_up", '{"word": "kernel"}')
    function = {"name": "look_up", "description": "Looks up.", "parameters": {"type": "object", "properties": {}}}
    history = [
        {"role": "system", "content": "Look up."},
        {"role": "user", "content": "what is it?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call-0", "type": "function", "function": {"name": "look_up", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "call-0", "content": "a seed"},
    ]
    with replay_server([Completion("", (call,), Usage(5, 0, 2, 1), "tool_calls")]) as server:
        completion = ClientModel(serve(server)).complete(history, tools=[{"type": "function", "function": function}])

    assert completion == Completion("", (call,), Usage(5, 0, 2, 1), "tool_calls")
    sent = server.requests[0]
    assert [message["role"] for message in sent["messages"]] == ["system", "user", "assistant", "tool"]
    assert sent["messages"][2]["tool_calls"][0]["id"] == sent["messages"][3]["tool_call_id"] == "call-0"
    assert sent["tools"][0]["function"]["name"] == "look_up"


@pytest.mark.parametrize(("own", "said"), [({}, {"seconds": 0.2}), ({"seconds": 0.2}, {})])
def test_a_call_that_takes_too_long_is_given_up_and_cancelled_at_the_client(own, said):
    client = Unanswering()
    with pytest.raises(ModelError, match=r"the model client: no answer within 0\.2 s"):
        ClientModel(client, **own).complete(ASKED, **said)

    assert client.cancelled.wait(30)


def test_a_call_that_is_cancelled_is_cancelled_at_the_client():
    client, cancelled = Unanswering(), threading.Event()
    canceller = threading.Thread(target=lambda: client.asked.wait(30) and cancelled.set())
    canceller.start()
    with pytest.raises(ModelError, match="the model client: the call was cancelled"):
        ClientModel(client).complete(ASKED, cancelled=cancelled)
    canceller.join()

    assert client.cancelled.wait(30)


def test_outside_of_a_loop_it_asks_on_one_of_its_own_which_ends_quietly():
    code = """
import asyncio, threading
from autogen_ext.models.replay import ReplayChatCompletionClient
from tw_autogen.errors import ModelError
from tw_autogen.hosts.agentchat import ClientModel

class Where(ReplayChatCompletionClient):
    async def create(self, messages, **more):
        print(threading.current_thread().name)
        if not self.chat_completions:
            await asyncio.shield(asyncio.get_running_loop().create_task(asyncio.sleep(60)))
        return await super().create(messages, **more)

asked = [{"role": "user", "content": "hi"}]
model = ClientModel(Where(["one", "two"]))
print(model.complete(asked).text, model.complete(asked).text)
try:
    ClientModel(Where([])).complete(asked, seconds=0.1)
except ModelError as error:
    print(error)
print(sum(thread.name == "agentchat loop" for thread in threading.enumerate()))
"""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore::DeprecationWarning", "-c", code],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    name = "agentchat loop\n"
    assert done.stdout == f"{name}{name}one two\n{name}the model client: no answer within 0.1 s\n1\n"
    assert done.stderr == ""
