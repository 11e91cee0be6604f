"""`TaskWeaverAgent` in autogen's own chats; models are replies of a server on loopback, everything else is real."""

import asyncio

import pytest

from tw_autogen.conversation import RoundState
from tw_autogen.model import Completion, Usage
from tw_autogen.testing import codes, plans, replay_server

autogen = pytest.importorskip("autogen", reason="the host is an extra; `make test` installs it")
TaskWeaverAgent = pytest.importorskip("tw_autogen.hosts.conversable").TaskWeaverAgent
QUIET = {"silent": True}


@pytest.fixture
def served():
    """Serve replies on loopback, and give the llm_config that points there."""
    servers = []

    def serve(*replies, **more):
        server = replay_server(list(replies))
        servers.append(server)
        entry = {"model": "recorded", "api_key": "none", "base_url": server.__enter__().base_url, "price": [1, 2]}
        return {"config_list": [entry], "cache_seed": None, **more}

    yield serve
    for server in servers:
        server.__exit__(None, None, None)


def user(**more):
    return autogen.ConversableAgent("user", llm_config=False, human_input_mode="NEVER", **more)


def test_an_autogen_user_asks_and_gets_the_answer(served, tmp_path):
    config = served(plans("compute 6*7"), codes("6 * 7"), plans("It is 42.", to="User"))
    with TaskWeaverAgent("TaskWeaver", llm_config=config, workspace=tmp_path) as agent:
        person = user()
        result = person.initiate_chat(agent, message="what is 6*7?", max_turns=1, **QUIET)

        assert result.summary == "It is 42."
        assert len(agent.session(person).rounds[0].posts) == 4


def test_what_the_calls_cost_is_in_the_chats_result(served, tmp_path):
    said = [plans("compute 6*7"), codes("6 * 7"), plans("It is 42.", to="User")]
    config = served(*(Completion(text, usage=Usage(1000, 0, 100, 1), model="recorded") for text in said))
    with TaskWeaverAgent("TaskWeaver", llm_config=config, workspace=tmp_path) as agent:
        person = user()
        result = person.initiate_chat(agent, message="what is 6*7?", max_turns=1, **QUIET)
        spent = agent.session(person).usage

    counted = result.cost["usage_excluding_cached_inference"]
    assert spent == Usage(3000, 0, 300, 3)
    assert counted["recorded"]["prompt_tokens"] == 3000
    assert counted["recorded"]["completion_tokens"] == 300
    assert counted["total_cost"] == pytest.approx(3 * 1 + 0.3 * 2)


def test_the_kernel_remembers_through_the_conversation_and_files_are_named(served, tmp_path):
    config = served(
        plans("keep"), codes("kept = 7"), plans("Kept.", to="User"),
        plans("save"), codes("open('seven.txt', 'w').write(str(kept))"), plans("Saved.", to="User"),
    )  # fmt: skip
    with TaskWeaverAgent("TaskWeaver", llm_config=config, workspace=tmp_path) as agent:
        person = user()
        person.initiate_chat(agent, message="keep seven", max_turns=1, **QUIET)
        result = person.initiate_chat(agent, message="save it", max_turns=1, clear_history=False, **QUIET)

        assert "Saved." in result.summary
        assert "[seven.txt](file://" in result.summary


def test_clearing_the_history_ends_the_session(served, tmp_path):
    config = served(plans("Hello.", to="User"), plans("Hello again.", to="User"))
    with TaskWeaverAgent("TaskWeaver", llm_config=config, workspace=tmp_path) as agent:
        person = user()
        person.initiate_chat(agent, message="hello", max_turns=1, **QUIET)
        first = agent.session(person)
        person.initiate_chat(agent, message="hello", max_turns=1, **QUIET)

        assert first.closed
        assert agent.session(person) is not first


def test_the_agent_sits_in_a_group_chat_and_hears_what_was_said_since(served, tmp_path):
    config = served(plans("Noted.", to="User"))
    with TaskWeaverAgent("TaskWeaver", llm_config=config, workspace=tmp_path) as agent:
        expert = autogen.ConversableAgent(
            "expert", llm_config=False, human_input_mode="NEVER", default_auto_reply="Mind the outliers."
        )
        person = user()
        group = autogen.GroupChat(
            agents=[person, expert, agent], messages=[], max_round=3, speaker_selection_method="round_robin"
        )
        manager = autogen.GroupChatManager(group, llm_config=False)
        person.initiate_chat(manager, message="look at the data", **QUIET)

        assert [message["name"] for message in group.messages] == ["user", "expert", "TaskWeaver"]
        assert group.messages[-1]["content"] == "Noted."
        heard = agent.session(manager).rounds[0].user_query
        assert heard == "user: look at the data\n\nexpert: Mind the outliers."


def test_termination_and_human_input_still_come_first(served, tmp_path):
    config = served(plans("Hello.", to="User"))
    with TaskWeaverAgent("TaskWeaver", llm_config=config, workspace=tmp_path, max_consecutive_auto_reply=1) as agent:
        result = user(default_auto_reply="more").initiate_chat(agent, message="hello", **QUIET)

    assert [message["content"] for message in result.chat_history] == ["hello", "Hello.", "more"]


def test_the_users_own_tools_and_format_do_not_reach_the_roles_calls(served, tmp_path):
    config = served(plans("Hello.", to="User"), response_format={"type": "json_object"}, temperature=0.9)
    with TaskWeaverAgent("TaskWeaver", llm_config=config, workspace=tmp_path) as agent:
        agent.register_for_llm(name="cook", description="Cook.")(cook)
        result = user().initiate_chat(agent, message="hello", max_turns=1, **QUIET)

    assert result.summary == "Hello."


def cook(dish: str) -> str:
    return dish


def test_a_round_that_fails_is_told_in_words(served, tmp_path):
    config = served(*["no JSON at all"] * 4)
    with TaskWeaverAgent("TaskWeaver", llm_config=config, workspace=tmp_path) as agent:
        person = user()
        result = person.initiate_chat(agent, message="hello", max_turns=1, **QUIET)

        assert result.summary.startswith("I could not answer this request: ")
        assert agent.session(person).rounds[0].state is RoundState.failed


def test_without_a_model_the_host_goes_on_to_its_default_reply(tmp_path):
    with TaskWeaverAgent("TaskWeaver", llm_config=False, workspace=tmp_path, default_auto_reply="No model.") as agent:
        assert user().initiate_chat(agent, message="hello", max_turns=1, **QUIET).summary == "No model."


def test_an_async_chat_gets_the_same_answer(served, tmp_path):
    config = served(plans("compute 6*7"), codes("6 * 7"), plans("It is 42.", to="User"))
    with TaskWeaverAgent("TaskWeaver", llm_config=config, workspace=tmp_path) as agent:
        chat = user().a_initiate_chat(agent, message="what is 6*7?", max_turns=1, **QUIET)

        assert asyncio.run(chat).summary == "It is 42."


def test_two_partners_have_kernels_of_their_own(served, tmp_path):
    config = served(
        plans("keep"), codes("kept = 7"), plans("Kept.", to="User"),
        plans("look"), codes("'kept' in globals()"), plans("Looked.", to="User"),
    )  # fmt: skip
    with TaskWeaverAgent("TaskWeaver", llm_config=config, workspace=tmp_path) as agent:
        ann, bob = user(), user()
        ann.initiate_chat(agent, message="keep seven", max_turns=1, **QUIET)
        bob.initiate_chat(agent, message="is it there?", max_turns=1, **QUIET)

        assert "Result:\nFalse" in agent.session(bob).rounds[0].posts[2].message
