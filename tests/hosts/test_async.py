"""Asynchronous chats, runs and threads: nothing blocks the loop, events come in order and in time."""

import asyncio
import contextvars
import threading
import time

import pytest

from tw_autogen import Post, Role
from tw_autogen.model import Completion, Usage
from tw_autogen.testing import ScriptedModel, codes, plans

autogen = pytest.importorskip("autogen", reason="the host is an extra; `make test` installs it")
conversable = pytest.importorskip("tw_autogen.hosts.conversable")
TaskWeaverAgent, PlannerAgent = conversable.TaskWeaverAgent, conversable.PlannerAgent
CodeInterpreterAgent, SharedSession = conversable.CodeInterpreterAgent, conversable.SharedSession
QUIET = {"silent": True, "max_turns": 1}
WHO = contextvars.ContextVar("who", default="nobody")


class Waits(ScriptedModel):
    """Answers once the test lets it; `asked` is set as soon as it is asked."""

    def __init__(self, steps):
        super().__init__(steps)
        self.asked, self.gate = threading.Event(), threading.Event()

    def complete(self, messages, **how):
        self.asked.set()
        cancelled = how.get("cancelled")
        while not self.gate.wait(0.01) and not (cancelled and cancelled.is_set()):
            pass
        return super().complete(messages, **how)


def test_the_loop_stays_free_while_the_model_thinks(agent, tmp_path):  # C32
    model = Waits([plans("Hello.", to="User")])

    async def main():
        with TaskWeaverAgent(model=model, llm_config=False, workspace=tmp_path) as worker:
            chat = asyncio.create_task(agent().a_initiate_chat(worker, message="hello", **QUIET))
            await asyncio.to_thread(model.asked.wait, 60)
            ticks = 0
            for _ in range(20):
                await asyncio.sleep(0)
                ticks += 1
            assert not chat.done()
            model.gate.set()
            return ticks, (await asyncio.wait_for(chat, 60)).summary

    assert asyncio.run(main()) == (20, "Hello.")


def test_the_tasks_context_reaches_the_model(agent, tmp_path):  # C33
    seen = []

    def reply(messages):
        seen.append(WHO.get())
        return plans("Hello.", to="User")

    async def main():
        WHO.set("me")
        with TaskWeaverAgent(model=ScriptedModel([reply]), llm_config=False, workspace=tmp_path) as worker:
            await agent().a_initiate_chat(worker, message="hello", **QUIET)

    asyncio.run(main())

    assert seen == ["me"]


def test_cancelling_the_task_stops_the_round_and_the_session_is_good_for_more(agent, tmp_path):  # C35
    model = Waits([plans("Hello.", to="User")])

    async def main():
        with TaskWeaverAgent(model=model, llm_config=False, workspace=tmp_path) as worker:
            person = agent()
            chat = asyncio.create_task(person.a_initiate_chat(worker, message="hello", **QUIET))
            await asyncio.to_thread(model.asked.wait, 60)
            chat.cancel()
            with pytest.raises(asyncio.CancelledError):
                await chat
            session = worker.session(person)
            model.gate.set()
            result = await person.a_initiate_chat(worker, message="again", clear_history=False, **QUIET)
            return session, worker.session(person), result.summary

    stopped, session, said = asyncio.run(asyncio.wait_for(main(), 90))

    assert stopped is session
    assert session.rounds[0].error == "it was stopped by the user"
    assert said == "Hello."


def test_a_cell_is_stopped_when_the_task_is_cancelled(agent, tmp_path):  # C35
    began = threading.Event()
    model = ScriptedModel(
        [
            plans("loop"),
            codes("kept = 7\nprint('begun', flush=True)\nwhile True: pass"),
            plans("look"),
            codes("kept"),
            plans("7", to="User"),
        ]
    )

    def watch(event):
        if type(event).__name__ == "CellOutput":
            began.set()

    async def main():
        with TaskWeaverAgent(model=model, llm_config=False, workspace=tmp_path, handlers=[watch]) as worker:
            person = agent()
            chat = asyncio.create_task(person.a_initiate_chat(worker, message="loop", **QUIET))
            await asyncio.to_thread(began.wait, 60)
            chat.cancel()
            with pytest.raises(asyncio.CancelledError):
                await chat
            await person.a_initiate_chat(worker, message="look", clear_history=False, **QUIET)
            return worker.session(person).rounds[1].posts[2].message

    assert "Result:\n7" in asyncio.run(asyncio.wait_for(main(), 90))


async def none_left(*names):
    """Fail unless the threads of these names end."""
    for _ in range(100):
        left = [one.name for one in threading.enumerate() if one.name in names]
        if not left:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(left)


class Asked:
    """A person who is asked, and answers only once the test lets them; in each of the host's ways."""

    def __init__(self):
        self.begun, self.answered = threading.Event(), threading.Event()

    def approve(self, proposal):
        self.begun.set()
        while not self.answered.is_set():
            time.sleep(0.01)
        return True

    def get_human_input(self, prompt, **more):
        return "y" if self.approve(prompt) else ""

    async def a_get_human_input(self, prompt, **more):
        self.begun.set()
        while not self.answered.is_set():
            await asyncio.sleep(0.01)
        return "y"


@pytest.mark.parametrize("asks", ["approve", "get_human_input", "a_get_human_input"])
@pytest.mark.parametrize("call", ["a_initiate_chat", "a_generate_reply"])
def test_what_waits_for_a_person_ends_when_the_task_is_cancelled(agent, tmp_path, asks, call):  # C35
    person = Asked()
    script = [plans("keep"), codes("kept = 7"), plans("again"), codes("6 * 7"), plans("It is 42.", to="User")]
    how = {"approve": person.approve} if asks == "approve" else {"human_input_mode": "TERMINATE"}
    kind = type("Kind", (TaskWeaverAgent,), {} if asks == "approve" else {asks: staticmethod(getattr(person, asks))})
    model, rules = ScriptedModel(script), {"code_interpreter.approval": "always"}

    async def main():
        with kind(model=model, llm_config=False, workspace=tmp_path, settings=rules, **how) as worker:
            partner = agent()

            def ask(words, **more):
                if call == "a_generate_reply":
                    return worker.a_generate_reply([{"role": "user", "content": word} for word in words], partner)
                return partner.a_initiate_chat(worker, message=words[-1], **more, **QUIET)

            work = asyncio.create_task(ask(["keep"]))
            await asyncio.to_thread(person.begun.wait, 60)
            work.cancel()
            try:
                with pytest.raises(asyncio.CancelledError):
                    await asyncio.wait_for(work, 5)
                await none_left("approval", f"{worker.name} at work")
                error = worker.session(partner).rounds[0].error
            finally:
                person.answered.set()
            await asyncio.wait_for(ask(["keep", "again"], clear_history=False), 20)
            return error, worker.session(partner).rounds[-1].posts[-1].message

    assert asyncio.run(asyncio.wait_for(main(), 90)) == ("it was stopped by the user", "It is 42.")


def test_ctrl_c_in_a_chat_ends_the_round_and_goes_on_up(agent, tmp_path):  # C35
    def press(messages):
        raise KeyboardInterrupt

    with TaskWeaverAgent(model=ScriptedModel([press]), llm_config=False, workspace=tmp_path) as worker:
        person = agent()
        with pytest.raises(KeyboardInterrupt):
            person.initiate_chat(worker, message="hello", **QUIET)

        assert worker.session(person).rounds[0].error == "it was stopped by the user"


def test_an_asynchronous_group_of_members_works(agent, served, tmp_path):
    with SharedSession(workspace=tmp_path) as shared:
        planner = PlannerAgent(llm_config=served(plans("compute"), plans("It is 42.", to="User")), session=shared)
        coder = CodeInterpreterAgent(llm_config=served(codes("6 * 7")), session=shared)
        person = agent()
        chat = autogen.GroupChat(
            agents=[person, planner, coder], messages=[], max_round=5, speaker_selection_method="round_robin"
        )
        manager = autogen.GroupChatManager(chat, llm_config=False)
        asyncio.run(person.a_initiate_chat(manager, message="what is 6*7?", silent=True))

        assert chat.messages[-1]["content"] == "It is 42."
        assert len(shared.round.posts) == 4


needs_run = pytest.mark.skipif(
    not hasattr(getattr(autogen, "ConversableAgent", None), "run"), reason="this host has no run()"
)


@needs_run
def test_run_gives_the_inner_talk_as_events_and_the_cost(agent, served, tmp_path):  # C24 C27

    said = [plans("compute"), codes("6 * 7"), plans("It is 42.", to="User")]
    config = served(*(Completion(text, usage=Usage(1000, 0, 100, 1), model="recorded") for text in said))
    with TaskWeaverAgent(llm_config=config, workspace=tmp_path) as worker:
        response = agent().run(worker, message="what is 6*7?", max_turns=1)
        spoke = [(event.content.sender, event.content.recipient) for event in response.events if event.type == "text"]

        assert ("Planner", "CodeInterpreter") in spoke
        assert ("CodeInterpreter", "Planner") in spoke
        assert response.summary == "It is 42."
        assert "3000" in str(response.cost)


@needs_run
def test_under_a_run_events_come_while_it_goes_on(agent, tmp_path):  # C34
    gate = threading.Event()

    def last(messages):
        gate.wait(60)
        return plans("It is 42.", to="User")

    model = ScriptedModel([plans("compute"), codes("6 * 7"), last])

    async def main():
        with TaskWeaverAgent(model=model, llm_config=False, workspace=tmp_path) as worker:
            response = await agent().a_run(worker, message="what is 6*7?", max_turns=1)
            spoke = []
            async for event in response.events:
                if event.type == "text":
                    spoke.append((event.content.sender, event.content.recipient))
                if spoke and spoke[-1] == ("CodeInterpreter", "Planner"):
                    assert not gate.is_set()  # the inner talk is here although the answer is not
                    gate.set()
            return spoke, await response.summary

    spoke, summary = asyncio.run(asyncio.wait_for(main(), 90))

    inner = [pair for pair in spoke if "Planner" in pair]
    assert inner == [("Planner", "CodeInterpreter"), ("CodeInterpreter", "Planner")]
    assert summary == "It is 42."


@pytest.mark.skipif(
    not hasattr(getattr(autogen, "ConversableAgent", None), "run_iter"), reason="this host has no run_iter()"
)
def test_run_iter_steps_through_the_inner_talk(agent, served, tmp_path):
    config = served(plans("compute"), codes("6 * 7"), plans("It is 42.", to="User"))
    with TaskWeaverAgent(llm_config=config, workspace=tmp_path) as worker:
        events = agent().run_iter(worker, message="what is 6*7?", max_turns=1)
        spoke = [event.content.sender for event in events if event.type == "text"]

    assert spoke == ["user", "Planner", "CodeInterpreter", "TaskWeaver"]


@needs_run
def test_an_agent_runs_by_itself(served, tmp_path):
    with TaskWeaverAgent(llm_config=served(plans("Hello.", to="User")), workspace=tmp_path) as worker:
        response = worker.run(message="hello", max_turns=1)
        response.process()

        assert response.summary == "Hello."


class Deaf(Role):
    """Neither answers nor lets itself be stopped until the test ends, as a cell in foreign code."""

    name, intro = "Deaf", "Waits."

    def __init__(self, begun, gate):
        self._begun, self._gate = begun, gate

    def reply(self, memory, **kwargs):
        self._begun.set()
        self._gate.wait(60)
        return Post(self.name, memory.last_post.send_from, "Here.")

    def interrupt(self):
        self._gate.wait(60)

    def close(self):
        pass


def test_cancelling_what_can_not_be_stopped_does_not_block_the_loop(agent, tmp_path):  # C35
    begun, gate = threading.Event(), threading.Event()

    async def main():
        chat = asyncio.create_task(agent().a_initiate_chat(worker, message="x", **QUIET))
        await asyncio.to_thread(begun.wait, 60)
        chat.cancel()
        with pytest.raises(asyncio.CancelledError):
            await chat
        return gate.is_set()

    roles = [lambda: Deaf(begun, gate)]
    with TaskWeaverAgent(model=ScriptedModel([]), llm_config=False, workspace=tmp_path, roles=roles) as worker:
        try:
            assert asyncio.run(asyncio.wait_for(main(), 50)) is False
        finally:
            gate.set()
