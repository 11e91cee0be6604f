"""Cancelling, pausing, breaking off: what is stopped, and what goes on."""

import asyncio
import threading

import pytest

from tw_autogen import open_session
from tw_autogen.errors import RoundInterrupted
from tw_autogen.events import CellOutput, RoundClosed, SessionClosed, SessionOpened
from tw_autogen.testing import ScriptedModel, codes, plans

pytest.importorskip("autogen_agentchat", reason="the host is an extra: tw-autogen[agentchat]")
from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.messages import CodeGenerationEvent, TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken

from tw_autogen.hosts.agentchat import TaskWeaverAgent, agent_plugin, agent_role

LOOPING = (plans("loop"), codes("print('begun', flush=True)\nwhile True: pass"))


class Waiting(BaseChatAgent):
    """Answers its first message never, and later ones at once; says when it was begun and stopped."""

    produced_message_types = (TextMessage,)

    def __init__(self):
        super().__init__("waiter", "Waits.")
        self.begun, self.stopped = threading.Event(), threading.Event()

    async def on_messages(self, messages, cancellation_token):
        if not self.begun.is_set():
            self.begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.stopped.set()
        return Response(chat_message=TextMessage(content="Here.", source=self.name))

    async def on_reset(self, cancellation_token):
        pass


@pytest.fixture
def scripted(tmp_path):
    def make(*replies, **more):
        model = ScriptedModel(list(replies))
        return TaskWeaverAgent(model=model, workspace=tmp_path, **more), model

    return make


def setting(event, kind):
    """Give a handler that sets an event when something of this kind happens."""
    return lambda happened: event.set() if isinstance(happened, kind) else None


async def seen(event):
    assert await asyncio.to_thread(event.wait, 30)


def test_a_token_that_was_cancelled_beforehand_asks_nothing(scripted, finish):
    agent, model = scripted()

    async def main():
        token = CancellationToken()
        token.cancel()
        with pytest.raises(asyncio.CancelledError):
            await agent.run(task="go", cancellation_token=token)

    finish(main())

    assert agent.session is None
    assert not model.calls


def test_a_request_cancelled_while_its_session_opens_is_never_asked(scripted, finish):
    opening, cancelled, closed = threading.Event(), threading.Event(), threading.Event()

    def hold(event):
        if isinstance(event, SessionOpened):
            opening.set()
            cancelled.wait(30)

    agent, model = scripted(handlers=[hold, setting(closed, SessionClosed)])

    async def main():
        token = CancellationToken()
        work = asyncio.create_task(agent.run(task="go", cancellation_token=token))
        await seen(opening)
        token.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        cancelled.set()
        await seen(closed)

    finish(main())

    assert agent.session is None
    assert not model.calls


def test_cancelling_one_that_waits_leaves_the_one_at_work(scripted, finish):
    asked, gate = threading.Event(), threading.Event()

    def reply(messages):
        asked.set()
        gate.wait(30)
        return plans("Done.", to="User")

    agent, model = scripted(reply)

    async def main():
        first = asyncio.create_task(agent.run(task="one"))
        await seen(asked)
        token = CancellationToken()
        second = asyncio.create_task(agent.run(task="two", cancellation_token=token))
        await asyncio.sleep(0)
        token.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        gate.set()
        result = await first
        await agent.close()
        return result.messages[-1].content

    assert finish(main()) == "Done."
    assert len(model.calls) == 1


def test_leaving_the_stream_stops_the_work(scripted, finish):
    closed = threading.Event()
    agent, _ = scripted(*LOOPING, handlers=[setting(closed, RoundClosed)])

    async def main():
        stream = agent.on_messages_stream([TextMessage(content="go", source="user")], CancellationToken())
        async for event in stream:
            if isinstance(event, CodeGenerationEvent):
                break
        await stream.aclose()
        await seen(closed)
        state = agent.session.rounds[-1].state.value
        await agent.close()
        return state

    assert finish(main()) == "failed"


def test_a_cancelled_team_ends_and_runs_again(scripted, finish):
    printed = threading.Event()
    agent, _ = scripted(*LOOPING, plans("Hello.", to="User"), handlers=[setting(printed, CellOutput)])
    team = RoundRobinGroupChat([agent], termination_condition=MaxMessageTermination(2))

    async def main():
        token = CancellationToken()
        work = asyncio.create_task(team.run(task="loop", cancellation_token=token))
        await seen(printed)
        token.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        await team.reset()
        result = await team.run(task="hello")
        await agent.close()
        return result.messages[-1].content

    assert finish(main()) == "Hello."


def test_pausing_and_resuming_a_team_does_no_harm(scripted, finish):
    agent, _ = scripted(plans("compute"), codes("6 * 7"), plans("It is 42.", to="User"))
    team = RoundRobinGroupChat([agent], termination_condition=MaxMessageTermination(2))

    async def main():
        said = []
        async for one in team.run_stream(task="what is 6*7?"):
            if isinstance(one, CodeGenerationEvent):
                await team.pause()
                await team.resume()
            said += [one.content] if isinstance(one, TextMessage) else []
        await agent.close()
        return said

    assert finish(main()) == ["what is 6*7?", "It is 42."]


def test_interrupting_a_session_stops_the_agent_in_a_role_which_answers_again(tmp_path):
    waiter = Waiting()
    model = ScriptedModel([plans("wait", to="waiter"), plans("again", to="waiter"), plans("Done.", to="User")])
    with open_session(model, roles=["planner", agent_role(waiter)], folder=tmp_path) as session:
        stopper = threading.Thread(target=lambda: waiter.begun.wait(30) and session.interrupt())
        stopper.start()
        with pytest.raises(RoundInterrupted, match="stopped by interrupt"):
            session.ask("go")
        stopper.join()
        assert waiter.stopped.wait(30)

        assert session.ask("again").text == "Done."
    assert "From: waiter\nHere." in model.calls[2][-1]["content"]


def test_agents_that_wait_for_agents_need_none_of_the_loops_own_threads(scripted, finish):
    inner = scripted(plans("In.", to="User"))[0]
    middle, _ = scripted(
        plans("ask"), codes("print(inner('q'))"), plans("Mid.", to="User"),
        plugins=[agent_plugin(inner, name="inner", seconds=20)],
    )  # fmt: skip
    outer, model = scripted(
        plans("ask"), codes("print(middle('q'))"), plans("Out.", to="User"),
        plugins=[agent_plugin(middle, name="middle", seconds=20)],
    )  # fmt: skip
    gate = threading.Event()

    async def main():
        loop = asyncio.get_running_loop()
        taken = [loop.run_in_executor(None, gate.wait, 50) for _ in range(40)]  # as other work of the host's may
        try:
            result = await outer.run(task="go")
        finally:
            gate.set()
            await asyncio.gather(*taken)
            for agent in (outer, middle, inner):
                await agent.close()
        return result.messages[-1].content

    assert finish(main()) == "Out."
    assert "Printed:\nMid." in model.calls[2][-1]["content"]
