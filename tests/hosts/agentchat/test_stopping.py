"""Cancelling, pausing, breaking off: what is stopped, and what goes on."""

import asyncio
import threading
import time

import pytest

from tw_autogen import open_session
from tw_autogen.errors import RoundInterrupted
from tw_autogen.events import CellOutput, RoundClosed, SessionClosed, SessionOpened
from tw_autogen.model import Completion
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


async def cancelled(agent, how, begun):
    """Ask, and cancel it in one of the ways in which a host does once the event is set."""
    token, asked = CancellationToken(), [TextMessage(content="go", source="user")]
    if how == "stream":

        async def read():
            async for _ in agent.run_stream(task="go", cancellation_token=token):
                pass

        work = asyncio.create_task(read())
    else:
        work = asyncio.create_task(agent.on_messages(asked, token))
    await seen(begun)
    work.cancel() if how == "task" else token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(work, 5)


async def none_left(*names):
    """Fail unless the threads of these names end."""
    for _ in range(100):
        left = [one.name for one in threading.enumerate() if one.name in names]
        if not left:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(left)


WAITS = {
    "cell": ({"code_interpreter.approval": "always"}, [plans("count"), codes("kept = 7")], []),
    "plan": ({"planner.approval": "always"}, [plans("count")], []),
    "packages": ({"kernel.install": "ask"}, [plans("count"), codes("kept = 7"), plans("install")]
        + [codes("%pip install tw-nothing")], [plans("look"), codes("kept")]),
}  # fmt: skip


@pytest.mark.parametrize("how", ["task", "token", "stream"])
@pytest.mark.parametrize("kind", WAITS)
def test_what_waits_for_a_person_ends_and_the_session_answers_the_next_request(scripted, finish, kind, how):
    settings, before, then = WAITS[kind]
    begun, answered = threading.Event(), []

    def approve(proposal):
        begun.set()
        while not answered:
            time.sleep(0.01)
        return True

    agent, model = scripted(*before, *then, plans("Hello.", to="User"), settings=settings, approve=approve)

    async def main():
        await cancelled(agent, how, begun)
        await none_left("approval", "TaskWeaver at work")
        answered.append(True)
        session = agent.session
        result = await asyncio.wait_for(agent.run(task="hello"), 20)
        assert agent.session is session
        await agent.close()
        return session.rounds[0].error, result.messages[-1].content

    assert finish(main()) == ("it was stopped by the user", "Hello.")
    if kind == "packages":
        assert "Result:\n7" in model.calls[-1][-1]["content"]


@pytest.mark.parametrize("how", ["task", "token", "stream"])
def test_a_model_that_heeds_no_cancelling_is_left_alone(tmp_path, finish, how):
    begun, gate = threading.Event(), threading.Event()

    class Slow:
        def complete(self, messages, **how):
            if not begun.is_set():
                begun.set()
                gate.wait(30)
            return Completion(plans("Hello.", to="User"))

    agent = TaskWeaverAgent(model=Slow(), workspace=tmp_path)

    async def main():
        try:
            await cancelled(agent, how, begun)
            await none_left("TaskWeaver at work")
            result = await asyncio.wait_for(agent.run(task="hello"), 20)
        finally:
            gate.set()
        await none_left("model call")
        error = agent.session.rounds[0].error
        await agent.close()
        return error, result.messages[-1].content

    assert finish(main()) == ("it was stopped by the user", "Hello.")


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
