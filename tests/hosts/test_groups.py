"""The host's other ways to bring agents together: patterns, handoffs, nested chats, chat queues."""

import pytest

from tw_autogen.errors import HostError
from tw_autogen.model import Completion, Usage
from tw_autogen.testing import codes, plans

autogen = pytest.importorskip("autogen", reason="the host is an extra; `make test` installs it")
conversable = pytest.importorskip("tw_autogen.hosts.conversable")
CodeInterpreterAgent, PlannerAgent = conversable.CodeInterpreterAgent, conversable.PlannerAgent
SharedSession, TaskWeaverAgent = conversable.SharedSession, conversable.TaskWeaverAgent

try:
    from autogen.agentchat import initiate_group_chat
    from autogen.agentchat.group import (
        AgentTarget,
        ContextExpression,
        ContextVariables,
        ExpressionContextCondition,
        OnContextCondition,
        RevertToUserTarget,
        TerminateTarget,
    )
    from autogen.agentchat.group.llm_condition import StringLLMCondition
    from autogen.agentchat.group.on_condition import OnCondition
    from autogen.agentchat.group.patterns import AutoPattern, DefaultPattern, RoundRobinPattern
except ImportError:
    initiate_group_chat = None

needs_patterns = pytest.mark.skipif(initiate_group_chat is None, reason="this host has no patterns")


def test_it_sits_in_a_group_and_hears_what_was_said_since(served, agent, group, tmp_path):
    with TaskWeaverAgent(llm_config=served(plans("Noted.", to="User")), workspace=tmp_path) as worker:
        said, manager = group([agent(), agent("expert", "Mind the outliers."), worker], "look at the data", rounds=3)

        assert [name for name, _ in said] == ["user", "expert", "TaskWeaver"]
        assert said[-1][1] == "Noted."
        heard = worker.session(manager).rounds[0].user_query
        assert heard == "user: look at the data\n\nexpert: Mind the outliers."


def test_the_hosts_own_selection_is_told_what_it_can_do(served, agent, tmp_path):  # C36
    chooser = served("TaskWeaver")
    with TaskWeaverAgent(llm_config=served(plans("Done.", to="User")), workspace=tmp_path) as worker:
        chat = autogen.GroupChat(agents=[agent(), worker, agent("other")], messages=[], max_round=2)
        manager = autogen.GroupChatManager(chat, llm_config=chooser)
        chat.agents[0].initiate_chat(manager, message="do it", silent=True)

        assert chat.messages[-1]["content"] == "Done."
        assert worker.description in str(served.servers[0].requests[0]["messages"])


def test_a_function_of_the_users_may_choose(served, agent, group, tmp_path):  # C36
    with TaskWeaverAgent(llm_config=served(plans("Done.", to="User")), workspace=tmp_path) as worker:
        said, _ = group([agent(), worker], "do it", rounds=2, method=lambda last, chat: worker)

        assert said[-1] == ("TaskWeaver", "Done.")


def test_a_silent_group_shows_nothing_and_a_loud_one_all(served, agent, tmp_path, shown):  # C28
    config = served(*2 * [plans("compute"), codes("6 * 7"), plans("42.", to="User")])
    with TaskWeaverAgent(llm_config=config, workspace=tmp_path) as worker:
        seen = []
        for silent in (True, False):
            person = agent()
            chat = autogen.GroupChat(
                agents=[person, worker], messages=[], max_round=2, speaker_selection_method="round_robin"
            )
            manager = autogen.GroupChatManager(chat, llm_config=False, silent=silent)
            person.initiate_chat(manager, message="what is 6*7?", silent=silent)
            seen.append("Planner (to CodeInterpreter)" in shown.text)

    assert seen == [False, True]


def test_it_answers_in_a_nested_chat(served, agent, tmp_path):  # C36
    with TaskWeaverAgent(llm_config=served(plans("It is 42.", to="User")), workspace=tmp_path) as worker:
        lead, person = agent("lead"), agent()
        lead.register_nested_chats(
            [{"recipient": worker, "message": "what is 6*7?", "max_turns": 1, "summary_method": "last_msg"}],
            trigger=person,
        )
        result = person.initiate_chat(lead, message="ask your analyst", max_turns=1, silent=True)

        assert result.summary == "It is 42."


@pytest.mark.parametrize("turns", [1, 2, 3, None])
def test_an_empty_message_after_its_answer_leaves_that_the_outcome_of_a_chat(served, agent, tmp_path, turns):
    with TaskWeaverAgent(llm_config=served(plans("It is 42.", to="User")), workspace=tmp_path) as worker:
        lead, person = agent("lead"), agent()
        chat = {"recipient": worker, "message": "what is 6*7?", "summary_method": "last_msg"}
        lead.register_nested_chats([{**chat, **({} if turns is None else {"max_turns": turns})}], trigger=person)
        result = person.initiate_chat(lead, message="ask your analyst", max_turns=1, silent=True)

        assert result.summary == "It is 42."
        assert worker.last_message()["content"] == "It is 42."
        assert len(served.requests) == 1


def test_the_last_message_is_the_hosts_where_nothing_was_said(served, agent, tmp_path):
    with TaskWeaverAgent(llm_config=served(), workspace=tmp_path) as worker:
        person = agent()
        assert worker.last_message() is None
        with pytest.raises(KeyError, match="user"):
            worker.last_message(person)
        person.initiate_chat(worker, message="", max_turns=1, silent=True)

        assert worker.last_message(person)["content"] == ""


def test_a_queue_of_chats_carries_its_answer_over(served, agent, tmp_path):  # C36
    config = served(plans("It is 42.", to="User"), plans("Twice is 84.", to="User"))
    with TaskWeaverAgent(llm_config=config, workspace=tmp_path) as worker:
        how = {"recipient": worker, "max_turns": 1, "silent": True, "clear_history": False}
        with pytest.warns(UserWarning, match="Repetitive recipients"):
            results = agent().initiate_chats(
                [{**how, "message": "what is 6*7?"}, {**how, "message": "and twice that?"}]
            )

        assert [result.summary for result in results] == ["It is 42.", "Twice is 84."]
        assert "It is 42." in served.requests[1]["messages"][-1]["content"]


@needs_patterns
@pytest.mark.parametrize("name", ["RoundRobinPattern", "DefaultPattern", "AutoPattern"])
def test_it_takes_part_in_a_pattern(served, agent, tmp_path, name):  # C36 C24
    config = served(plans("compute"), codes("6 * 7"), plans("It is 42.", to="User"))
    with TaskWeaverAgent(llm_config=config, workspace=tmp_path) as worker:
        person = agent()
        kinds = {"RoundRobinPattern": RoundRobinPattern, "DefaultPattern": DefaultPattern, "AutoPattern": AutoPattern}
        more = {"group_manager_args": {"llm_config": served("TaskWeaver")}} if name == "AutoPattern" else {}
        worker.handoffs.set_after_work(TerminateTarget())
        pattern = kinds[name](initial_agent=worker, agents=[worker], user_agent=person, **more)
        result, _, _ = initiate_group_chat(pattern=pattern, messages="what is 6*7?", max_rounds=3)

        assert "It is 42." in [one["content"] for one in result.chat_history]


@needs_patterns
def test_what_members_spend_is_in_a_patterns_cost_once(served, agent, tmp_path):  # C24
    if not hasattr(autogen.ConversableAgent, "run_iter"):
        pytest.skip("this host sums up the manager's calls only")
    with SharedSession(workspace=tmp_path) as shared:
        usage = Usage(1000, 0, 100, 1)
        planned = [Completion(text, usage=usage, model="m") for text in (plans("go"), plans("1", to="User"))]
        planner = PlannerAgent(llm_config=served(*planned), session=shared)
        coder = CodeInterpreterAgent(llm_config=served(Completion(codes("1"), usage=usage, model="m")), session=shared)
        coder.handoffs.set_after_work(AgentTarget(planner))
        planner.handoffs.set_after_work(AgentTarget(coder))
        pattern = DefaultPattern(initial_agent=planner, agents=[planner, coder], user_agent=agent())
        result, _, _ = initiate_group_chat(pattern=pattern, messages="count", max_rounds=4)

    assert result.cost["usage_excluding_cached_inference"]["m"]["prompt_tokens"] == 3000


@needs_patterns
def test_the_same_agent_serves_a_pattern_again_with_a_fresh_session(served, agent, tmp_path):  # C38
    config = served(plans("One.", to="User"), plans("Two.", to="User"))
    with TaskWeaverAgent(llm_config=config, workspace=tmp_path) as worker:
        said, person = [], agent()
        for _ in range(2):
            worker.handoffs.set_after_work(TerminateTarget())
            pattern = DefaultPattern(initial_agent=worker, agents=[worker], user_agent=person)
            result, _, _ = initiate_group_chat(pattern=pattern, messages="count", max_rounds=2)
            said.append(result.chat_history[1]["content"])

        assert said == ["One.", "Two."]
        assert worker.open_session_count == 2


@needs_patterns
def test_members_hand_over_by_context_variables(served, agent, tmp_path):  # C36
    with SharedSession(workspace=tmp_path) as shared:
        planner = PlannerAgent(llm_config=served(plans("compute"), plans("It is 42.", to="User")), session=shared)
        coder = CodeInterpreterAgent(llm_config=served(codes("6 * 7")), session=shared)
        if not hasattr(planner.handoffs, "add_after_work"):
            pytest.skip("this host has no conditions behind an agent's work")
        to_coder = ExpressionContextCondition(ContextExpression("${tw_next} == 'CodeInterpreter'"))
        planner.handoffs.add_after_work(OnContextCondition(target=AgentTarget(coder), condition=to_coder))
        planner.handoffs.add_after_work(OnContextCondition(target=TerminateTarget(), condition=None))
        coder.handoffs.set_after_work(AgentTarget(planner))
        variables = ContextVariables(data={"mine": 1})
        pattern = DefaultPattern(
            initial_agent=planner, agents=[planner, coder], user_agent=agent(), context_variables=variables
        )
        result, seen, _ = initiate_group_chat(pattern=pattern, messages="what is 6*7?", max_rounds=6)

        assert [one["name"] for one in result.chat_history][1:] == ["Planner", "CodeInterpreter", "Planner"]
        assert seen["mine"] == 1
        assert "compute" in seen["tw_board"]["Planner"]


@needs_patterns
def test_handoffs_that_need_the_agents_own_model_are_refused_in_words(served, agent, tmp_path):  # C40
    with TaskWeaverAgent(llm_config=served(), workspace=tmp_path) as worker:
        worker.handoffs.add_llm_condition(
            OnCondition(target=RevertToUserTarget(), condition=StringLLMCondition(prompt="when bored"))
        )
        with pytest.raises(HostError, match="OnCondition") as caught:
            worker.generate_reply(messages=[{"role": "user", "content": "hi"}], sender=agent())

        remedy = caught.value.command
        exec(remedy, {"agent": worker, "AgentTarget": AgentTarget, "other": agent("other")})


@needs_patterns
def test_conditions_that_come_before_the_first_answer_read_what_the_group_sets(served, agent, tmp_path):
    writer = agent("writer", "It is written.")
    with SharedSession(workspace=tmp_path) as shared:
        planner = PlannerAgent(llm_config=served(plans("42", to="User")), session=shared)
        to_writer = ExpressionContextCondition(ContextExpression("${tw_next} == 'writer'"))
        planner.handoffs.add_context_condition(OnContextCondition(target=AgentTarget(writer), condition=to_writer))
        pattern = DefaultPattern(
            initial_agent=planner,
            agents=[planner, writer],
            user_agent=agent(),
            context_variables=ContextVariables(data={"tw_next": ""}),
        )
        _, seen, _ = initiate_group_chat(pattern=pattern, messages="what is 6*7?", max_rounds=3)

    assert seen["tw_next"] not in ("", "writer")


def test_guardrails_of_the_host_see_its_answers(served, agent, tmp_path):  # C39
    guardrails = pytest.importorskip("autogen.agentchat.group.guardrails", reason="this host has no guardrails")
    with TaskWeaverAgent(llm_config=served(plans("The secret is 7.", to="User")), workspace=tmp_path) as worker:
        guard = guardrails.RegexGuardrail(
            name="secrets", condition="secret", target=TerminateTarget(), activation_message="Not that."
        )
        worker.register_output_guardrail(guard)
        pattern = RoundRobinPattern(initial_agent=worker, agents=[worker], user_agent=agent())
        result, _, _ = initiate_group_chat(pattern=pattern, messages="tell me", max_rounds=3)

        assert "The secret is 7" not in str(result.chat_history)
        assert "Not that." in str(result.chat_history)
