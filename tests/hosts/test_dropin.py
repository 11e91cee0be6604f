"""What the host's chats do to an agent: services, failures, people in its place, names, groups, loops."""

import asyncio
import contextlib
import functools
import gc
import inspect
import itertools
import json
import logging
import pickle
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from tw_autogen import Post, Role
from tw_autogen.errors import CallCycleError, ConfigError
from tw_autogen.events import SessionClosed
from tw_autogen.hosts.open_conversations import idle_seconds
from tw_autogen.session import read_settings
from tw_autogen.testing import ScriptedModel, codes, plans

autogen = pytest.importorskip("autogen", reason="the host is an extra; `make test` installs it")
conversable = pytest.importorskip("tw_autogen.hosts.conversable")
TaskWeaverAgent, agent_role = conversable.TaskWeaverAgent, conversable.agent_role
CodeInterpreterAgent, PlannerAgent = conversable.CodeInterpreterAgent, conversable.PlannerAgent
SharedSession, route_by_post = conversable.SharedSession, conversable.route_by_post
ONE = {"max_turns": 1, "silent": True}
KEPT = {**ONE, "clear_history": False}


def said(words):
    return plans(words, to="User")


def heard(agent, partner):
    return [one.user_query for one in agent.session(partner).rounds]


@pytest.fixture
def weaver(tmp_path):
    """Make a TaskWeaver with a scripted model."""
    made = []

    def make(*steps, name="tw", **more):
        model = more.pop("model", None) or ScriptedModel(list(steps))
        made.append(TaskWeaverAgent(name, model=model, llm_config=False, workspace=tmp_path, **more))
        return made[-1]

    yield make
    for one in made:
        one.close()


class Safe(Role):
    """Stands for a kernel: one for each session, and keeps who was there."""

    name, intro = "Safe", "Keeps."

    def __init__(self, who, seen):
        self._who, self._seen, self._visitors = who, seen, []

    def reply(self, memory, **kwargs):
        self._visitors.append(self._who[0])
        self._seen.append((list(self._visitors), len(memory.rounds)))
        return Post(self.name, memory.last_post.send_from, "Loaded.")

    def close(self):
        pass


# Services: nobody gets another one's kernel.


@pytest.mark.parametrize("kind", ["agent", "member"])
@pytest.mark.parametrize("order", sorted(set(itertools.permutations("aabb"))), ids="".join)
@pytest.mark.parametrize("handed", ["as objects", "as JSON"])
def test_two_clients_who_say_the_same_never_meet_in_a_session(tmp_path, kind, order, handed):
    who, seen, chats = [""], [], {"a": [], "b": []}
    if kind == "agent":
        worker = TaskWeaverAgent(
            model=ScriptedModel([]), llm_config=False, roles=[lambda: Safe(who, seen)], workspace=tmp_path
        )
    else:
        shared = SharedSession(workspace=tmp_path)
        worker = conversable.RoleAgent(lambda: Safe(who, seen), "Safe", llm_config=False, session=shared)
    for who[0] in order:
        chat = chats[who[0]]
        chat.append({"role": "user", "content": "load my salary"})
        answer = worker.generate_reply(messages=chat if handed == "as objects" else json.loads(json.dumps(chat)))
        chat.append({"role": "assistant", "content": answer})
    worker.close()

    assert [set(visitors) == {client} for client, (visitors, _) in zip(order, seen, strict=True)] == [True] * 4
    again = [len(visitors) for visitors, _ in seen].count(2)
    assert again == (2 if handed == "as objects" else 0)  # words alone find nothing
    assert sorted(rounds for _, rounds in seen) == [1, 1, 2, 2]  # but what was said is known


def test_a_conversation_goes_on_once_from_each_answer_and_by_a_hosts_id_as_long_as_it_likes(tmp_path):
    who, seen = ["ann"], []
    with TaskWeaverAgent(
        model=ScriptedModel([]), llm_config=False, roles=[lambda: Safe(who, seen)], workspace=tmp_path
    ) as worker:
        first = [{"role": "user", "content": "load"}]
        answer = pickle.loads(pickle.dumps(worker.generate_reply(messages=first)))  # as hosts' hooks copy messages
        more = [*first, {"role": "assistant", "content": answer}, *first]
        for messages in (more, more):
            worker.generate_reply(messages=messages)
        assert [len(visitors) for visitors, _ in seen] == [1, 2, 1]

        seen.clear()
        for key in ("x", "y", "x", "x"):
            worker.generate_oai_reply(first, None, conversation=("a2a", "", key))
        assert [len(visitors) for visitors, _ in seen] == [1, 1, 2, 3]


# What is new.


@pytest.mark.parametrize("failure", [RuntimeError("network gone"), KeyboardInterrupt()], ids=["failed", "stopped"])
def test_a_failed_request_is_not_asked_again_in_front_of_the_next_one(weaver, agent, failure):
    worker, person = weaver(failure, said("Today.")), agent()
    with pytest.raises(type(failure)):
        person.initiate_chat(worker, message="PAY the invoice", **ONE)
    person.initiate_chat(worker, message="What day is it?", **KEPT)

    assert heard(worker, person) == ["PAY the invoice", "What day is it?"]


def test_a_cancelled_request_is_not_asked_again_and_the_same_words_are_a_new_request(weaver, agent):
    asked, gate = threading.Event(), threading.Event()

    def wait(messages):
        asked.set()
        gate.wait(30)
        return said("Late.")

    worker, person = weaver(wait, said("Paid."), said("Today.")), agent()

    async def main():
        chat = asyncio.create_task(person.a_initiate_chat(worker, message="PAY", **ONE))
        await asyncio.to_thread(asked.wait, 30)
        chat.cancel()
        with pytest.raises(asyncio.CancelledError):
            await chat
        gate.set()
        await person.a_initiate_chat(worker, message="PAY", **KEPT)
        await person.a_initiate_chat(worker, message="What day is it?", **KEPT)

    asyncio.run(asyncio.wait_for(main(), 90))

    assert heard(worker, person) == ["PAY", "PAY", "What day is it?"]


def test_a_reply_that_failed_can_be_asked_for_again(weaver, agent):
    worker, person = weaver(RuntimeError("network gone"), said("Paid.")), agent()
    with pytest.raises(RuntimeError, match="network gone"):
        person.initiate_chat(worker, message="PAY", **ONE)

    assert worker.generate_reply(sender=person) == "Paid."


def test_a_person_in_the_agents_place_and_its_own_first_words_are_known(weaver, agent):
    model = ScriptedModel([said("one"), said("three")])
    worker, person = weaver(model=model, human_input_mode="ALWAYS"), agent()
    typed = iter(["", "The budget is five hundred.", ""])
    worker.get_human_input = lambda *args, **how: next(typed)
    for words in ("first", "the budget?", "third"):
        person.initiate_chat(worker, message=words, **KEPT)
    assert heard(worker, person) == ["first", "the budget?", "third"]
    assert "The budget is five hundred." in str(model.calls[1])

    model = ScriptedModel([said("Seen.")])
    weaver(model=model).initiate_chat(agent(says="sales.csv"), message="Which file?", max_turns=2, silent=True)
    assert "Which file?" in str(model.calls[0])


@pytest.mark.parametrize("how", ["register_reply", "send"])
def test_what_was_said_in_its_name_otherwise_is_known(weaver, agent, how):
    model = ScriptedModel([said("one"), said("three")])
    worker, person = weaver(model=model), agent()
    person.initiate_chat(worker, message="first", **ONE)
    if how == "send":
        person.send("the budget?", worker, request_reply=False, silent=True)
        worker.send("The budget is five hundred.", person, request_reply=False, silent=True)
    else:
        known = lambda recipient, messages, sender, config: ("budget" in messages[-1]["content"], "Five hundred.")  # noqa: E731
        worker.register_reply([autogen.Agent, None], known)
        person.initiate_chat(worker, message="the budget?", **KEPT)
    person.initiate_chat(worker, message="third", **KEPT)

    assert heard(worker, person) == ["first", "the budget?", "third"]
    assert "ive hundred." in str(model.calls[1])


def oldest_second(count):
    """Keep the newest messages as the host's `MessageHistoryLimiter` does, which puts the oldest of them second."""

    def keep(messages):
        kept = messages[-count:]
        return [kept[1], kept[0], *kept[2:]] if len(messages) > count else messages

    return keep


def without_ends(messages):
    return [*({**message, "content": message["content"][:10]} for message in messages[:-1]), messages[-1]]


@pytest.mark.parametrize("first", ["", "How can I help?"])
@pytest.mark.parametrize("hook", [lambda messages: messages[-2:], oldest_second(3), oldest_second(4), without_ends])
def test_a_hook_that_shortens_the_chat_loses_and_doubles_nothing(weaver, agent, hook, first):
    worker, person = weaver(*[said(f"answer {i}") for i in range(4)]), agent()
    worker.register_hook("process_all_messages_before_reply", hook)
    if first:
        worker.send(first, person, request_reply=False, silent=True)
    for i in range(4):
        person.initiate_chat(worker, message=f"question {i}: what?", **KEPT)

    told = ["(Nothing was asked; you spoke first.)"] if first else []
    assert heard(worker, person) == [*told, *(f"question {i}: what?" for i in range(4))]


def test_a_long_chat_whose_messages_were_reworded_is_compared_in_a_moment(weaver, agent, cpu_seconds):
    worker, person = weaver(*[said("ok")] * 6), agent()
    chat = [{"role": role, "content": f"{role} {at}"} for at in range(600) for role in ("user", "assistant")]
    worker.generate_oai_reply([*chat, {"role": "user", "content": "what?"}], person)
    reworded = [{**one, "content": f"{one['content']} (edited)"} for one in chat]
    began = cpu_seconds()
    worker.generate_oai_reply([*reworded, {"role": "user", "content": "and now?"}], person)

    assert cpu_seconds() - began < 4  # it took 20
    asked = heard(worker, person)[-2:]
    assert [one.partition("\n")[0] for one in asked] == ["what?", "and now?"]


# Groups and names.


def test_a_call_of_a_tool_goes_to_who_can_run_it_and_its_result_back(agent, tmp_path):
    with SharedSession(workspace=tmp_path) as shared:
        model = ScriptedModel([plans("look it up", to="lawyer"), lambda messages: said(messages[-1]["content"])])
        planner = PlannerAgent(model=model, llm_config=False, session=shared)
        lawyer, person = agent("lawyer", description="knows law"), agent()
        lawyer.register_function({"lookup": lambda q: "paragraph 7"})
        call = {"id": "1", "type": "function", "function": {"name": "lookup", "arguments": '{"q": "x"}'}}

        def think(recipient, messages=None, sender=None, config=None):
            last = messages[-1]
            return True, (f"says {last['content']}" if last.get("role") == "tool" else {"tool_calls": [call]})

        lawyer.register_reply([autogen.Agent, None], think, position=len(lawyer._reply_func_list))
        group = autogen.GroupChat([person, planner, lawyer], [], max_round=8, speaker_selection_method=route_by_post)
        person.initiate_chat(autogen.GroupChatManager(group, llm_config=False), message="legal?", silent=True)

    assert [message["name"] for message in group.messages] == [
        "user",
        "Planner",
        "lawyer",
        "lawyer",
        "lawyer",
        "Planner",
    ]
    assert group.messages[-1]["content"].endswith("says paragraph 7")
    assert "None" not in str(model.calls)


@pytest.mark.parametrize("nothing", [None, "None"])  # a group makes a string of it
def test_a_message_without_words_puts_no_none_into_prompts(weaver, agent, nothing):
    model = ScriptedModel([said("Seen.")])
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [
        {"role": "user", "name": "user", "content": "look"},
        {"role": "assistant", "name": "other", "content": nothing, "tool_calls": [call]},
        {"role": "tool", "name": "other", "content": "seven", "tool_responses": [{"role": "tool", "content": "seven"}]},
    ]

    weaver(model=model).generate_reply(messages=messages, sender=agent())

    asked = model.calls[0][-1]["content"]
    assert "seven" in asked
    assert "None" not in asked


def test_a_group_that_chooses_it_twice_goes_on(weaver, agent):
    worker, person, helper = weaver(said("one"), said("two")), agent(), agent("helper", "here")
    turns = iter([worker, worker, helper])
    group = autogen.GroupChat(
        [person, worker, helper], [], max_round=4, speaker_selection_method=lambda last, chat: next(turns)
    )
    manager = autogen.GroupChatManager(group, llm_config=False)
    person.initiate_chat(manager, message="x", silent=True)

    assert [message["content"] for message in group.messages] == ["x", "one", "two", "here"]
    assert heard(worker, manager) == ["x", "Go on."]


def test_a_member_that_nobody_has_asked_does_not_end_the_group(agent, group, tmp_path):
    with SharedSession(workspace=tmp_path) as shared:
        planner = PlannerAgent(model=ScriptedModel([said("Hello.")]), llm_config=False, session=shared)
        coder = CodeInterpreterAgent(model=ScriptedModel([]), llm_config=False, session=shared)
        talk, _ = group([agent(), planner, coder, agent("helper", "here")], "hello", rounds=4)

    assert [name for name, _ in talk] == ["user", "Planner", "CodeInterpreter", "helper"]


def test_two_agents_of_one_name_talk(weaver, agent):
    asks, answers = weaver(name="TaskWeaver"), weaver(said("hi"), name="TaskWeaver")
    assert [one["content"] for one in asks.initiate_chat(answers, message="hello", **ONE).chat_history] == [
        "hello",
        "hi",
    ]

    planner = PlannerAgent(model=ScriptedModel([said("planned")]), llm_config=False)
    worker = weaver(
        plans("go", to="team"), lambda messages: said(messages[-1]["content"]),
        roles=["planner", agent_role(planner, name="team")],
    )  # fmt: skip
    assert "planned" in agent().initiate_chat(worker, message="x", **ONE).summary
    planner.close()


def test_two_chats_of_members_have_sessions_of_their_own(agent, tmp_path):
    who, seen = ["ann"], []
    with SharedSession(workspace=tmp_path) as shared:
        member = conversable.RoleAgent(lambda: Safe(who, seen), "Safe", llm_config=False, session=shared)
        people = [agent("ann"), agent("bob")]
        for at in (0, 1, 0, 1):
            who[0] = people[at].name
            people[at].initiate_chat(member, message="load", **KEPT)

    assert [visitors for visitors, _ in seen] == [["ann"], ["bob"], ["ann"] * 2, ["bob"] * 2]


# Loops and threads.


class Named(Role):
    """Answers with its name, and notes which requests it knows."""

    intro = "Answers."

    def __init__(self, name, asked):
        self.name, self._asked = name, asked

    def reply(self, memory, **kwargs):
        self._asked.append([one.user_query for one in memory.rounds])
        return Post(self.name, memory.last_post.send_from, f"{self.name} has answered.")

    def close(self):
        pass


class Held(Role):
    """Answers once it is let."""

    name, intro = "Held", "Waits."

    def __init__(self, begun, gate):
        self._begun, self._gate = begun, gate

    def reply(self, memory, **kwargs):
        self._begun.release()
        self._gate.wait(60)
        return Post(self.name, memory.last_post.send_from, "Here.")

    def close(self):
        pass


@pytest.mark.parametrize("kind", ["agent", "member"])
def test_chats_at_once_leave_the_loop_and_its_executor_free(agent, tmp_path, kind):
    begun, gate, count = threading.Semaphore(0), threading.Event(), 36
    if kind == "agent":
        how = {"model": ScriptedModel([]), "roles": [lambda: Held(begun, gate)], "workspace": tmp_path}
        worker = TaskWeaverAgent("held", llm_config=False, settings={"session.most_open": 99}, **how)
    else:
        shared = SharedSession(workspace=tmp_path, settings={"session.most_open": 99})
        worker = conversable.RoleAgent(lambda: Held(begun, gate), "Held", llm_config=False, session=shared)

    async def main():
        chats = [asyncio.create_task(agent(f"u{i}").a_initiate_chat(worker, message="x", **ONE)) for i in range(count)]
        while begun._value < count:  # all of them wait
            await asyncio.sleep(0.01)
        await asyncio.to_thread(int)
        gate.set()
        return {one.summary for one in await asyncio.gather(*chats)}

    assert asyncio.run(asyncio.wait_for(main(), 120)) == {"Here."}
    worker.close()


class Person(TaskWeaverAgent):
    """Its person is asked by the host's asynchronous input."""

    async def a_get_human_input(self, prompt, **how):
        self.asked.append(prompt)
        return "no, never"


def test_approval_in_an_asynchronous_chat_is_asked_by_the_hosts_asynchronous_input(agent, tmp_path):
    model = ScriptedModel([plans("go"), said("Not done.")])
    rules = {"planner.approval": "always"}
    with Person(
        "tw", model=model, llm_config=False, human_input_mode="TERMINATE", settings=rules, workspace=tmp_path
    ) as tw:
        tw.asked = []
        asyncio.run(asyncio.wait_for(agent().a_initiate_chat(tw, message="x", **ONE), 60))

    assert len(tw.asked) == 1
    assert "no, never" in str(model.calls[1])


@pytest.mark.skipif(not hasattr(autogen.ConversableAgent, "a_run"), reason="this host has no a_run()")
def test_approval_in_a_run_is_an_event_that_is_answered(agent, tmp_path):
    model = ScriptedModel([plans("go"), said("Not done.")])
    how = {"human_input_mode": "TERMINATE", "settings": {"planner.approval": "always"}, "workspace": tmp_path}

    async def main(tw):
        response, asked = await agent().a_run(tw, message="x", max_turns=1), 0
        async for event in response.events:
            if event.type == "input_request":
                asked += 1
                await event.content.respond("no, never")
        return asked

    with TaskWeaverAgent("tw", model=model, llm_config=False, **how) as tw:
        assert asyncio.run(asyncio.wait_for(main(tw), 60)) == 1
    assert "no, never" in str(model.calls[1])


def test_an_agent_that_nobody_holds_ends_its_sessions(weaver, agent, tmp_path):
    closed = threading.Event()

    def go():
        worker = TaskWeaverAgent(
            model=ScriptedModel([said("hi")]), llm_config=False, workspace=tmp_path,
            handlers=[lambda event: closed.set() if isinstance(event, SessionClosed) else None],
        )  # fmt: skip
        agent().initiate_chat(worker, message="x", **ONE)
        return weakref.ref(worker)

    gone = go()
    gc.collect()

    assert gone() is None
    assert closed.wait(30)


# Agents that are asked.


def asked_by_a_role(weaver, agent, other, **how):
    """Have a Planner write to an agent, and give what it was told."""
    worker = weaver(
        plans("go", to="other"), lambda messages: said(messages[-1]["content"]),
        roles=["planner", agent_role(other, name="other", **how)],
    )  # fmt: skip
    return worker, agent().initiate_chat(worker, message="x", **ONE).summary


def looping(agent, tool):
    """Make an agent that calls its tool again and again."""
    other = agent("other", description="loops")
    other.register_function({"again": tool})
    call = {"id": "1", "type": "function", "function": {"name": "again", "arguments": "{}"}}
    other.register_reply([autogen.Agent, None], lambda *args, **how: (True, {"content": None, "tool_calls": [call]}))
    return other


def test_an_agent_that_runs_out_of_turns_has_given_no_answer(weaver, agent):
    _, told = asked_by_a_role(weaver, agent, looping(agent, lambda: "again"), max_turns=3)

    assert "(other gave no answer in 3 turns (max_turns))" in told

    _, told = asked_by_a_role(weaver, agent, agent("other"))
    assert "(other gave no answer)" in told


def on_a_thread(via, other):
    """Ask on a thread of its own; the tool hears nothing of a failure."""
    ended = []

    def chat():
        with contextlib.suppress(CallCycleError):
            ended.append(via.initiate_chat(other, message="go", **ONE).summary)

    thread = threading.Thread(target=chat)
    thread.start()
    thread.join()
    return "".join(ended)


def in_a_pool(via, other):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(via.initiate_chat, other, message="go", **ONE).result().summary


def by_run(via, other):
    if not hasattr(via, "run"):
        pytest.skip("this lineage has no run()")
    response = via.run(other, message="go", max_turns=1, silent=True)
    response.process()
    return response.summary


async def a_chat(via, other):
    return (await via.a_initiate_chat(other, message="go", **ONE)).summary


async def in_the_loops_pool(via, other):
    return (await asyncio.get_running_loop().run_in_executor(None, in_a_pool, via, other)).summary


async def by_a_run(via, other):
    if not hasattr(via, "a_run"):
        pytest.skip("this lineage has no a_run()")
    response = await via.a_run(other, message="go", max_turns=1, silent=True)
    await response.process()
    return await response.summary


def on_a_loop(via, other):
    return asyncio.run(a_chat(via, other))


@pytest.mark.parametrize(
    "chat",
    [on_a_thread, in_a_pool, by_run, a_chat, in_the_loops_pool, by_a_run, on_a_loop],
    ids=lambda chat: chat.__name__,
)
def test_a_ring_over_a_tool_is_refused_at_once(weaver, agent, chat):
    if chat is on_a_loop and not hasattr(agent("old"), "run"):
        pytest.skip("this lineage leaves an event loop of its own open in a thread")
    calls, ring = [], []

    def ask():
        calls.append(1)
        return chat(agent("via"), ring[0])

    async def ask_async():
        calls.append(1)
        return await chat(agent("via"), ring[0])

    other = looping(agent, ask_async if inspect.iscoroutinefunction(chat) else ask)
    ring.append(weaver(*[plans("go", to="other")] * 9, roles=["planner", agent_role(other, name="other")]))
    told = agent().initiate_chat(ring[0], message="x", **ONE).summary

    assert "tw → other → tw: an agent can't be called from its own work" in told
    assert (len(calls), ring[0].open_session_count) == (1, 1)


def test_threads_that_outlive_an_agents_work_and_pools_of_others_are_no_ring(weaver, agent):
    released, asked_later, other = threading.Event(), [], []
    pool = ThreadPoolExecutor(1)

    def later():
        released.wait(30)
        asked_later.append(in_a_pool(agent("later"), other[0]))

    thread = threading.Thread(target=later)

    def tool():
        thread.start()
        return pool.submit(len, "pool").result()

    def model(messages):
        """Run a tool, as a role does; the second request comes from the pool while the first one is at work."""
        if "first" not in messages[-1]["content"]:
            return said("second")
        tool()
        return said(pool.submit(agent("another").initiate_chat, quick, message="x", **ONE).result().summary)

    quick = weaver(said("quick"))
    other.append(weaver(model=ScriptedModel([model, lambda messages: said("again")])))

    assert agent().initiate_chat(other[0], message="first", **ONE).summary == "quick"
    released.set()
    thread.join(30)
    pool.shutdown()
    assert asked_later == ["again"]


# Arguments.


@pytest.mark.parametrize(
    "extra",
    [
        {"tools": [{"type": "function", "function": {"name": "f"}}]},
        {"response_format": {"type": "json_object"}},
    ],
    ids=lambda extra: next(iter(extra)),
)
def test_settings_that_can_not_reach_the_roles_are_refused_when_the_agent_is_made(served, tmp_path, extra):
    config = served()
    with pytest.raises(ConfigError, match=f"tw: llm_config has {next(iter(extra))}, which can't reach the roles"):
        TaskWeaverAgent("tw", llm_config={**config, **extra}, workspace=tmp_path)
    with pytest.raises(ConfigError, match="tw, role_llm_config of Planner: llm_config has"):
        TaskWeaverAgent("tw", llm_config=config, role_llm_config={"Planner": {**config, **extra}}, workspace=tmp_path)


def secret() -> str:
    """Give the secret."""
    return "xyzzy"


@pytest.mark.parametrize("kind", [TaskWeaverAgent, CodeInterpreterAgent])
def test_code_calls_a_function_that_is_registered_for_the_agents_model(served, agent, tmp_path, kind):
    replies = [plans("go")] * (kind is TaskWeaverAgent)
    code = codes("print(secret(), tell(who='Ann'))")
    config = served(*replies, code, *([plans("done", to="User")] * (kind is TaskWeaverAgent)))
    shared = {"workspace": tmp_path} if kind is TaskWeaverAgent else {"session": SharedSession(workspace=tmp_path)}
    worker = kind("tw", llm_config=config, **shared)
    person = agent()

    @person.register_for_execution()
    @worker.register_for_llm(name="tell", description="Tell a name.")
    def anything(who: str) -> str:
        return f"it is {who}"

    worker.register_for_llm(description="Give the secret.")(secret)
    person.initiate_chat(worker, message="x", **ONE)
    said_of_code = str(served.requests[-1]["messages"]) + str(person.chat_messages[worker])
    with pytest.raises(ConfigError, match="tw: has open sessions; register tools before the first message"):
        worker.register_for_llm(name="late", description="Give the secret.")(secret)
    worker.close()

    assert "xyzzy it is Ann" in said_of_code


def test_a_tool_that_no_role_could_call_is_refused_and_one_that_is_removed_is_gone(served, tmp_path):
    tw = TaskWeaverAgent("tw", llm_config=served(), workspace=tmp_path)
    schema = {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}
    with pytest.raises(ConfigError, match="tw: its roles can't call a tool of which only the schema is given"):
        tw.update_tool_signature({"type": "function", "function": schema}, is_remove=False)
    with pytest.raises(ConfigError, match="tw: its roles can't call a tool of which only the schema is given"):
        tw.update_function_signature(schema, is_remove=False)
    with pytest.raises(ConfigError, match="Planner: this agent runs no code that could call a tool"):
        PlannerAgent(llm_config=served()).register_for_llm(description="d")(secret)

    tw.register_for_llm(description="Give the secret.")(secret)
    with tw.session(tw):  # open, as where the host takes a tool away at the end of its `run`
        tw.update_tool_signature("secret", is_remove=True)
        assert list(tw._plugins_of()) == []
        with pytest.raises(ConfigError, match="tw: has open sessions"):
            tw.register_for_llm(description="Give the secret.")(secret)


def test_the_hosts_name_for_model_replies_means_ours(weaver, agent):
    base = autogen.ConversableAgent
    worker = weaver(default_auto_reply="Nothing.")
    messages = [{"role": "user", "content": "hi"}]
    assert worker.generate_reply(messages=messages, sender=agent(), exclude=[base.generate_oai_reply]) == "Nothing."

    worker.replace_reply_func(base.generate_oai_reply, lambda *args, **how: (True, "Replaced."))
    assert worker.generate_reply(messages=messages, sender=agent()) == "Replaced."


def test_without_a_model_it_says_what_a_plain_agent_says_and_the_log_says_why(agent, tmp_path, caplog):
    with (
        TaskWeaverAgent("worker", llm_config=False, workspace=tmp_path) as worker,
        caplog.at_level(logging.WARNING, logger="tw_autogen"),
    ):
        reply = worker.generate_reply(messages=[{"role": "user", "content": "hi"}], sender=agent())

    assert reply == agent("plain").generate_reply(messages=[{"role": "user", "content": "hi"}], sender=agent())
    assert "worker: there is no model to ask; give llm_config=, or model=" in caplog.text


@pytest.mark.parametrize(
    ("settings", "endless", "seconds"), [({}, True, 3600), ({}, False, 0), ({"session.idle_seconds": 9}, True, 9)]
)
def test_conversations_that_nobody_ends_have_an_age_by_default(settings, endless, seconds):
    assert idle_seconds(read_settings(settings), endless=endless) == seconds


def test_a_group_of_members_that_falls_silent_gives_its_kernel_back_and_knows_what_was_said(agent, group, tmp_path):
    closed, asked = threading.Event(), []
    shared = SharedSession(
        workspace=tmp_path,
        settings={"session.idle_seconds": 0.2},
        handlers=[lambda event: closed.set() if isinstance(event, SessionClosed) else None],
    )
    person = agent()
    members = [
        conversable.RoleAgent(functools.partial(Named, name, asked), name, llm_config=False, session=shared)
        for name in ("Ann", "Bob")
    ]
    _, manager = group([person, *members], "first", rounds=3)  # without a Planner the round stays open
    assert closed.wait(60)
    assert len(shared.chats) == 0

    person.initiate_chat(manager, message="second", silent=True, clear_history=False)

    known, request = asked[-1]
    assert (known, request.split("\n")[0]) == ("first", "second")
    assert "variables of earlier requests are gone" in request
    shared.close()


def test_chats_that_were_at_work_together_are_not_all_kept(agent, tmp_path):
    begun, gate = threading.Semaphore(0), threading.Event()
    worker = TaskWeaverAgent(
        "held", llm_config=False, model=ScriptedModel([]), roles=[lambda: Held(begun, gate)], workspace=tmp_path,
        settings={"session.most_open": 2},
    )  # fmt: skip
    with worker, ThreadPoolExecutor(4) as pool:
        people = [agent(f"u{i}") for i in range(4)]
        chats = [pool.submit(person.initiate_chat, worker, message="x", **ONE) for person in people]
        for _ in chats:
            begun.acquire(timeout=60)
        assert worker.open_session_count == 4  # what works is not closed
        gate.set()
        assert [chat.result(60).summary for chat in chats] == ["Here."] * 4
        assert worker.open_session_count == 2
