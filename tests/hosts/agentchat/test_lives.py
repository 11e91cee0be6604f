"""How long an agent of agentchat remembers: through runs, silence, closing, states, teams and loops."""

import asyncio
import copy
import gc
import json
import threading

import pytest

from tw_autogen.errors import ConfigError, HostError
from tw_autogen.events import SessionClosed
from tw_autogen.testing import ScriptedModel, codes, plans, replay_server

pytest.importorskip("autogen_agentchat", reason="the host is an extra: tw-autogen[agentchat]")
from autogen_agentchat.conditions import HandoffTermination, MaxMessageTermination
from autogen_agentchat.messages import HandoffMessage
from autogen_agentchat.teams import RoundRobinGroupChat, Swarm
from autogen_core import CancellationToken
from autogen_ext.models.openai import OpenAIChatCompletionClient

from tw_autogen.hosts.agentchat import TaskWeaverAgent

TWO = (plans("Kept.", to="User"), plans("Seven.", to="User"))


@pytest.fixture
def scripted(tmp_path):
    """Make an agent with a scripted model, and give both."""

    def make(*replies, **more):
        model = ScriptedModel(list(replies))
        return TaskWeaverAgent(model=model, workspace=tmp_path, **more), model

    return make


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "sales.csv"
    path.write_text("units\n7\n")
    return path


def knows(model):
    """Say whether the second request was asked with the first one known, and the kernel told to be a fresh one."""
    told = str(model.calls[1])
    return ("keep seven" in told, "variables of earlier requests are gone" in told)


async def idle(agent):
    while agent.session:
        await asyncio.sleep(0.01)


def test_after_a_long_silence_a_new_session_knows_what_was_said_and_has_the_files(scripted, table, finish):
    agent, model = scripted(*TWO, settings={"session.idle_seconds": 0.2}, files=[table])

    async def main():
        await agent.run(task="keep seven")
        await idle(agent)
        kept = await agent.save_state()
        await agent.run(task="what?")
        there = (agent.session.folder / "sales.csv").exists()
        await agent.close()
        return len(kept["rounds"]), there

    assert finish(main()) == (1, True)
    assert knows(model) == (True, True)


@pytest.mark.parametrize("handed", [False, True])
def test_a_file_is_looked_for_in_the_folder_where_it_was_named_although_the_session_opens_later(
    tmp_path, monkeypatch, finish, handed
):
    """Plays what code of another process's kernel, which may write above the current folder, does before the chat."""
    here, other = tmp_path / "above" / "docs", tmp_path / "other"
    for folder in (here, other / "docs"):
        folder.mkdir(parents=True)
        (folder / "sales.csv").write_text("a,b")
    monkeypatch.chdir(here)
    model = ScriptedModel([plans("Done.", to="User")])
    agent = TaskWeaverAgent(model=model, workspace="../s", files=() if handed else "sales.csv")
    if handed:
        agent.hand_over("sales.csv")
    here.parent.rename(tmp_path / "moved")
    here.parent.symlink_to(other)

    async def main():
        with pytest.raises(ConfigError, match="which was moved"):
            await agent.run(task="show")
        await agent.close()

    finish(main())
    assert not list(tmp_path.rglob("s/*/files/sales.csv"))


def test_closing_gives_back_the_kernel_and_keeps_what_was_said(scripted, finish):
    agent, model = scripted(*TWO)

    async def main():
        await agent.run(task="keep seven")
        await agent.close()
        await agent.close()
        kept = len((await agent.save_state())["rounds"])
        await agent.run(task="what?")
        await agent.close()
        return kept

    assert finish(main()) == 1
    assert knows(model) == (True, True)


def test_a_reset_forgets_what_was_said_and_gives_the_files_again(scripted, table, finish):
    agent, model = scripted(*TWO, files=[table])

    async def main():
        await agent.run(task="keep seven")
        await agent.on_reset(CancellationToken())
        await agent.run(task="what?")
        there = (agent.session.folder / "sales.csv").exists()
        await agent.close()
        return there

    assert finish(main())
    assert knows(model) == (False, False)


def test_files_handed_over_go_along_with_one_message(scripted, table, finish):
    agent, model = scripted(*TWO)

    async def main():
        agent.hand_over([table])
        await agent.run(task="keep seven")
        await agent.run(task="what?")
        await agent.close()

    finish(main())

    assert "sales.csv" in model.calls[0][-1]["content"]
    assert "sales.csv" not in model.calls[1][-1]["content"]


def test_a_file_that_is_missing_is_missed_with_every_message(scripted, tmp_path, finish):
    agent, _ = scripted(files=[tmp_path / "none.csv"])

    async def main():
        for _ in range(2):
            with pytest.raises(ConfigError, match=r"none\.csv: there is no such file"):
                await agent.run(task="go")
        await agent.close()

    finish(main())


def test_a_state_saved_in_the_middle_of_a_round_holds_what_had_ended(scripted, tmp_path, finish):
    states = []
    agent, _ = scripted(
        plans("Kept.", to="User"),
        lambda messages: states.append(asyncio.run(agent.save_state())) or plans("Seven.", to="User"),
    )
    other, model = scripted(plans("Yes.", to="User"))

    async def main():
        await agent.run(task="keep seven")
        await agent.run(task="what?")
        await agent.close()
        await other.load_state(states[0])
        result = await other.run(task="do you know?")
        await other.close()
        return result.messages[-1].content

    assert finish(main()) == "Yes."
    assert [one["user_query"] for one in states[0]["rounds"]] == ["keep seven"]
    assert "keep seven" in str(model.calls[0])


@pytest.mark.parametrize(
    "rounds", [None, ["round-1"], [{"id": "round-1"}], [{"user_query": "x", "state": "?", "post_list": []}]]
)
def test_a_state_that_can_not_be_read_changes_nothing(scripted, rounds, finish):
    agent, _ = scripted(*TWO)

    async def main():
        await agent.run(task="keep seven")
        session = agent.session
        with pytest.raises(ConfigError, match="TaskWeaver: the state's rounds can't be read"):
            await agent.load_state({"type": "TaskWeaverAgentState", "rounds": rounds})
        same = agent.session is session
        await agent.close()
        return same

    assert finish(main())


def test_a_teams_state_brings_back_what_was_said_in_another_team(scripted, finish):
    first, _ = scripted(plans("Kept.", to="User"))
    second, model = scripted(plans("Seven.", to="User"))

    async def main():
        ends = MaxMessageTermination(2)
        team = RoundRobinGroupChat([first], termination_condition=ends)
        await team.run(task="keep seven")
        state = json.loads(json.dumps(await team.save_state()))
        await first.close()
        again = RoundRobinGroupChat([second], termination_condition=ends)
        await again.load_state(state)
        result = await again.run(task="what?")
        await second.close()
        return result.messages[-1].content

    assert finish(main()) == "Seven."
    assert "keep seven" in str(model.calls[0])


def test_runs_side_by_side_wait_for_each_other_in_one_loop_and_in_the_next(scripted, finish):
    agent, model = scripted(*[lambda messages: plans(messages[-1]["content"].splitlines()[1], to="User")] * 4)

    async def main():
        results = await asyncio.gather(agent.run(task="one"), agent.run(task="two"))
        return [result.messages[-1].content for result in results]

    assert [finish(main()), finish(main())] == [["one", "two"]] * 2
    assert len(agent.session.rounds) == len(model.calls) == 4
    finish(agent.close())


def test_an_agent_that_nobody_holds_ends_its_session(scripted, finish):
    closed = threading.Event()
    agent, _ = scripted(
        plans("go"), codes("1"), plans("Done.", to="User"),
        handlers=[lambda event: closed.set() if isinstance(event, SessionClosed) else None],
    )  # fmt: skip
    finish(agent.run(task="go"))
    assert not closed.is_set()

    del agent
    gc.collect()

    assert closed.wait(30)  # the thread that worked may let go of it a moment later


@pytest.mark.parametrize(("hand_on", "target"), [(None, "alice"), ("carol", "carol")])
def test_in_a_swarm_an_answer_hands_the_word_on(scripted, hand_on, target, finish):
    agent, model = scripted(plans("It is 42.", to="User"), hand_on=hand_on)
    team = Swarm([agent], termination_condition=HandoffTermination(target=target))
    asked = HandoffMessage(source="alice", target=agent.name, content="what is 6*7?")

    async def main():
        result = await team.run(task=asked)
        await agent.close()
        return result.messages[-1]

    said = finish(main())

    assert isinstance(said, HandoffMessage)
    assert (said.source, said.target, said.content) == (agent.name, target, "It is 42.")
    assert "what is 6*7?" in str(model.calls[0])


def test_a_component_may_name_its_policy(tmp_path, info):
    client = OpenAIChatCompletionClient(
        model="recording", api_key="none", base_url="http://localhost", model_info=info()
    )
    made = TaskWeaverAgent("analyst", client, workspace=tmp_path, policy="strict")

    assert made.dump_component().config["policy"] == "strict"
    assert TaskWeaverAgent.load_component(made.dump_component())._wanted.policy == "strict"


def test_what_comes_back_from_a_component_works(tmp_path, info, finish):
    with replay_server([plans("Hello.", to="User")]) as server:
        client = OpenAIChatCompletionClient(
            model="recording", api_key="none", base_url=server.base_url, model_info=info(json_output=False)
        )
        made = TaskWeaverAgent("analyst", client, workspace=tmp_path, model_client_stream=True)
        agent = TaskWeaverAgent.load_component(json.loads(made.dump_component().model_dump_json()))

        async def main():
            result = await agent.run(task="hi")
            await agent.close()
            return result.messages[-1]

        said = finish(main())

    assert (said.source, said.content) == ("analyst", "Hello.")
    assert server.requests[0]["stream"] is True
    assert "response_format" not in server.requests[0]  # the client says that it can't


def test_a_deep_copy_has_a_session_of_its_own_and_knows_what_was_said(scripted, finish):
    agent, _ = scripted(*TWO)

    async def main():
        await agent.run(task="first")
        made = copy.deepcopy(agent)
        await made.run(task="second")
        assert made.session is not agent.session
        assert [one.user_query for one in agent.session.rounds] == ["first"]
        assert made.session.rounds[0].user_query == "first"
        await made.close()
        assert agent.session is not None
        await agent.close()
        with pytest.raises(HostError, match="a shallow copy would work in the same session; make a deep one"):
            copy.copy(agent)

    finish(main())
