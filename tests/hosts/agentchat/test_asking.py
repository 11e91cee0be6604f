"""agentchat's agents and teams as plugins and roles, and ours among them."""

import json

import pytest

from tw_autogen import open_session
from tw_autogen.errors import ConfigError
from tw_autogen.events import RoundClosed
from tw_autogen.testing import ScriptedModel, codes, plans

pytest.importorskip("autogen_agentchat", reason="the host is an extra: tw-autogen[agentchat]")
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import HandoffTermination, MaxMessageTermination, TextMentionTermination
from autogen_agentchat.messages import CodeExecutionEvent, CodeGenerationEvent
from autogen_agentchat.teams import RoundRobinGroupChat, Swarm
from autogen_core import FunctionCall
from autogen_core.models import CreateResult, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient
from pydantic import BaseModel

from tw_autogen.hosts.agentchat import TaskWeaverAgent, agent_plugin, agent_role


class Price(BaseModel):
    """What something costs."""

    euros: float


@pytest.fixture
def scripted(tmp_path):
    def make(*replies, name="TaskWeaver", **more):
        model = ScriptedModel(list(replies))
        return TaskWeaverAgent(name, model=model, workspace=tmp_path, **more), model

    return make


def speaker(name, *words):
    client = ReplayChatCompletionClient(list(words))
    return AssistantAgent(name, client, description="Speaks."), client


def ran(session):
    """Give what the code of the first round printed."""
    return session.rounds[0].posts[2].message


def test_each_call_is_a_fresh_conversation_unless_it_is_to_be_remembered(tmp_path):
    fresh, forgets = speaker("fresh", "a", "b")
    kept, remembers = speaker("kept", "c", "d")
    model = ScriptedModel(
        [plans("ask"), codes("print(fresh('1'), fresh('2'), kept('3'), kept('4'))"), plans("Done.", to="User")]
    )
    plugins = [agent_plugin(fresh), agent_plugin(kept, remember=True)]
    with open_session(model, plugins=plugins, folder=tmp_path) as session:
        session.ask("ask them")

        assert "Printed:\na b c d" in ran(session)
    assert "1" not in str([message.content for message in forgets.create_calls[1]["messages"][1:]])
    assert "3" in str([message.content for message in remembers.create_calls[1]["messages"][1:]])


@pytest.mark.parametrize("ours", [False, True])
def test_what_an_asked_team_spends_counts_towards_the_limits_of_who_asks(tmp_path, info, finish, ours):
    client = ReplayChatCompletionClient(["Hm.", "It is legal."], model_info=info())
    member = TaskWeaverAgent("inner", model=ScriptedModel([plans("Hm.", to="User")]), workspace=tmp_path)
    first = member if ours else AssistantAgent("first", client)
    ends = MaxMessageTermination(3)
    team = RoundRobinGroupChat(
        [first, AssistantAgent("last", client)], name="law", description="d", termination_condition=ends
    )
    model = ScriptedModel([plans("do it"), codes("print(law('is it legal?'))"), plans("Done.", to="User")])
    events = []
    worker = TaskWeaverAgent(
        "outer", model=model, plugins=[agent_plugin(team)], workspace=tmp_path, handlers=[events.append]
    )

    async def ask():
        try:
            await worker.run(task="do it")
        finally:
            await worker.close()
            await member.close()

    finish(ask())

    assert next(event.spent["calls"] for event in events if isinstance(event, RoundClosed)) == 3 + 2


def test_calls_side_by_side_reach_an_agent_one_by_one(tmp_path):
    agent, _ = speaker("expert", *"abcdef")
    code = "tickets = [expert.submit(str(n)) for n in range(6)]\nprint(''.join(sorted(t.result() for t in tickets)))"
    model = ScriptedModel([plans("ask"), codes(code), plans("Done.", to="User")])
    with open_session(model, plugins=[agent_plugin(agent)], folder=tmp_path) as session:
        session.ask("ask six times")

        assert "Printed:\nabcdef" in ran(session)


def test_an_answer_that_must_fit_a_model_is_asked_for_again_in_the_same_conversation(tmp_path):
    agent, client = speaker("prices", "nine fifty", '{"euros": 9.5}')
    model = ScriptedModel([plans("ask"), codes("print(prices('a kettle')['euros'] * 2)"), plans("Done.", to="User")])
    plugin = agent_plugin(agent, returns=Price, remember=True)
    with open_session(model, plugins=[plugin], folder=tmp_path) as session:
        session.ask("price?")

        assert "Printed:\n19.0" in ran(session)
    assert "That can't be used" in str(client.create_calls[1]["messages"][-1].content)


def test_a_team_that_says_nothing_does_not_answer_with_the_question(tmp_path):
    agent, _ = speaker("judge")
    silent = RoundRobinGroupChat(
        [agent], termination_condition=MaxMessageTermination(1), name="panel", description="Decides."
    )
    model = ScriptedModel([plans("ask"), codes("print(repr(panel('why?')))"), plans("Done.", to="User")])
    with open_session(model, plugins=[agent_plugin(silent)], folder=tmp_path) as session:
        session.ask("ask")

        assert "Printed:\n''" in ran(session)


def test_a_team_is_a_role_and_remembers_through_a_session(tmp_path):
    agent, client = speaker("judge", "So be it.", "As before.", "Who are you?")
    panel = RoundRobinGroupChat([agent], termination_condition=MaxMessageTermination(2), name="panel", description="d")
    model = ScriptedModel(
        [
            plans("first?", to="panel"),
            plans("Yes.", to="User"),
            plans("second?", to="panel"),
            plans("Still.", to="User"),
        ]
    )
    role = agent_role(panel, name="panel", intro="Decides what is just.")
    with open_session(model, roles=["planner", role], folder=tmp_path) as session:
        assert [session.ask("a").text, session.ask("b").text] == ["Yes.", "Still."]
    assert "Decides what is just." in model.calls[0][0]["content"]
    assert "first?" in str(client.create_calls[1]["messages"])
    later = ScriptedModel([plans("third?", to="panel"), plans("New.", to="User")])
    with open_session(later, roles=["planner", role], folder=tmp_path) as session:
        assert session.ask("c").text == "New."
    assert "first?" not in str(client.create_calls[2]["messages"])


class _Away(RoundRobinGroupChat):
    async def run(self, **given):
        raise ConnectionError("server away")


def test_an_agent_that_fails_as_a_role_is_a_post_for_the_planner(tmp_path):
    panel = _Away([speaker("judge")[0]], name="panel", description="d")
    model = ScriptedModel([plans("first?", to="panel"), plans("Nobody knows.", to="User")])
    with open_session(model, roles=["planner", agent_role(panel)], folder=tmp_path) as session:
        assert session.ask("a").text == "Nobody knows."
    assert "From: panel\nthe role panel failed: ConnectionError: server away" in model.calls[1][-1]["content"]


def test_a_table_goes_to_an_agent_with_a_session_and_its_files_come_back(scripted, finish):
    inner, told = scripted(
        plans("double"),
        codes("import pandas as pd\n(pd.read_csv('doubler_request.csv') * 2).to_csv('doubled.csv', index=False)"),
        plans("Doubled.", to="User"),
        name="doubler",
    )
    code = (
        "import pandas as pd, re\nsaid = doubler(pd.DataFrame({'units': [21]}))\n"
        "print(pd.read_csv('doubled.csv').units[0])"
    )
    outer, _ = scripted(plans("ask"), codes(code), plans("Done.", to="User"), plugins=[agent_plugin(inner)])

    async def main():
        await outer.run(task="double it")
        session = outer.session
        printed, folders = ran(session), (session.folder, inner.session.folder)
        await outer.close()
        await inner.close()
        return printed, folders

    printed, (ours, theirs) = finish(main())

    assert "Printed:\n42" in printed
    assert ours != theirs
    assert "doubler_request.csv" in told.calls[0][-1]["content"]


@pytest.mark.parametrize("remember", [False, True])
def test_a_team_with_the_caller_in_it_is_neither_reset_nor_run_and_the_chain_says_why(scripted, remember, finish):
    members = []

    class Late(RoundRobinGroupChat):
        """Gets its member after the member was made, which has this team as a plugin."""

        def __init__(self):
            pass

        name, description = "panel", "Decides."

        async def reset(self):
            await self.late().reset()

        async def run(self, **how):
            return await self.late().run(**how)

        def late(self):
            return RoundRobinGroupChat(members, termination_condition=MaxMessageTermination(2), name="panel")

    code = "try:\n    print(panel('again'))\nexcept Exception as error:\n    print(error)"
    agent, model = scripted(
        plans("ask"),
        codes(code),
        plans("Done.", to="User"),
        name="me",
        plugins=[agent_plugin(Late(), remember=remember, seconds=20)],
    )
    members.append(agent)

    async def main():
        await agent.run(task="go")
        await agent.close()

    finish(main())

    assert "me → panel → me: an agent can't be called from its own work" in model.calls[2][-1]["content"]


def test_without_words_on_what_it_can_do_it_is_neither_plugin_nor_role():
    mute = RoundRobinGroupChat([speaker("judge")[0]], name="panel", description=" ")
    with pytest.raises(ConfigError, match="agent_plugin 'panel': say with description="):
        agent_plugin(mute)
    with pytest.raises(ConfigError, match="agent_role 'panel': say with intro="):
        agent_role(mute)


def test_code_that_is_refused_is_shown_with_the_reason_as_its_outcome(scripted, finish):
    agent, _ = scripted(plans("go"), codes("import subprocess"), codes("6 * 7"), plans("It is 42.", to="User"))

    async def main():
        result = await agent.run(task="go")
        await agent.close()
        return [
            message for message in result.messages if isinstance(message, (CodeGenerationEvent, CodeExecutionEvent))
        ]

    shown = finish(main())

    assert [(type(one).__name__, one.retry_attempt) for one in shown] == [
        ("CodeGenerationEvent", 0), ("CodeExecutionEvent", 0), ("CodeGenerationEvent", 1), ("CodeExecutionEvent", 1),
    ]  # fmt: skip
    assert [shown[1].result.exit_code, shown[3].result.exit_code] == [1, 0]
    assert shown[1].result.output.startswith("The code was not run:\nline 1 (")


def test_work_is_handed_to_it_in_a_swarm(scripted, info, finish):
    agent, model = scripted(plans("It is 42. TERMINATE", to="User"), name="analyst")
    handoff = CreateResult(
        content=[FunctionCall(id="1", name="transfer_to_analyst", arguments="{}")],
        usage=RequestUsage(prompt_tokens=1, completion_tokens=1), finish_reason="function_calls", cached=False,
    )  # fmt: skip
    lead = AssistantAgent("lead", ReplayChatCompletionClient([handoff], model_info=info()), handoffs=["analyst"])
    ends = TextMentionTermination("TERMINATE") | HandoffTermination("user")
    team = Swarm([lead, agent], termination_condition=ends)

    async def main():
        result = await team.run(task="what is 6*7?")
        await agent.close()
        return json.loads(result.messages[-1].model_dump_json())

    said = finish(main())

    assert (said["source"], said["content"]) == ("analyst", "It is 42. TERMINATE")
    assert "lead: Transferred to analyst" in model.calls[0][-1]["content"]
