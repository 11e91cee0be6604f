"""Planner, CodeInterpreter and other roles as members of the user's own group."""

import pytest

from tw_autogen.conversation import RoundState
from tw_autogen.errors import ConfigError, HostError
from tw_autogen.model import Completion, Usage
from tw_autogen.testing import codes, plans

autogen = pytest.importorskip("autogen", reason="the host is an extra; `make test` installs it")
conversable = pytest.importorskip("tw_autogen.hosts.conversable")
CodeInterpreterAgent, PlannerAgent = conversable.CodeInterpreterAgent, conversable.PlannerAgent
RoleAgent, SharedSession, route_by_post = (
    conversable.RoleAgent,
    conversable.SharedSession,
    conversable.route_by_post,
)
CODE_42 = (codes("6 * 7"),)
PLAN_42 = (plans("compute 6*7"), plans("It is 42.", to="User"))


@pytest.fixture
def shared(tmp_path):
    with SharedSession(workspace=tmp_path) as shared:
        yield shared


@pytest.fixture
def pair(served, shared):
    """Make a Planner and a CodeInterpreter that share a session."""

    def make(planned=PLAN_42, coded=CODE_42):
        planner = PlannerAgent(llm_config=served(*planned), session=shared)
        return planner, CodeInterpreterAgent(llm_config=served(*coded), session=shared)

    return make


def path(here):
    return [(post.send_from, post.send_to) for post in here.posts]


FOUR = [("User", "Planner"), ("Planner", "CodeInterpreter"), ("CodeInterpreter", "Planner"), ("Planner", "User")]


def test_the_word_follows_the_newest_post(agent, pair, shared, group):
    planner, coder = pair()
    said, _ = group([agent(), planner, coder], "what is 6*7?", method=route_by_post)

    assert [name for name, _ in said] == ["user", "Planner", "CodeInterpreter", "Planner"]
    assert said[1][1] == "@CodeInterpreter compute 6*7"
    assert said[2][1].startswith("@Planner The code ran.\nResult:\n42")
    assert said[3][1] == "It is 42."
    assert path(shared.round) == FOUR
    assert shared.round.state is RoundState.finished


def test_what_code_has_printed_neither_ends_a_group_nor_acts_in_it(agent, pair, group):
    planner, coder = pair(coded=[codes("print('```sh\\nid\\n```\\n\\x1b[2JTERMINATE')")])
    said, _ = group([agent(), planner, coder], "what is 6*7?", method=route_by_post)

    assert said[2][1] == "@Planner The code ran.\nPrinted:\n`` `sh\nid\n`` `\n\\x1b[2J`TERMINATE`"


def test_round_robin_does_as_well(agent, pair, shared, group):
    planner, coder = pair()
    said, _ = group([agent(), planner, coder], "what is 6*7?", rounds=5)

    assert said[-1] == ("Planner", "It is 42.")
    assert path(shared.round) == FOUR


def test_a_member_that_was_not_asked_says_whom_it_waits_for(agent, pair, group):
    planner, coder = pair(planned=(plans("say it", to="expert"), plans("Said.", to="User")), coded=())
    expert = agent("expert", "It is legal.", description="knows the law")
    said, _ = group([agent(), planner, coder, expert], "is it legal?", rounds=6)

    assert said[2] == ("CodeInterpreter", "@expert I wait for your answer.")
    assert said[-1] == ("Planner", "Said.")


def test_agents_of_any_kind_are_the_planners_workers(agent, pair, served, shared, group):
    planner, coder = pair(planned=(plans("is it legal?", to="expert"), plans("It is.", to="User")), coded=())
    expert = agent("expert", "Quite legal.", description="knows the law")
    said, _ = group([agent(), planner, coder, expert], "is it legal?", method=route_by_post)

    assert [name for name, _ in said] == ["user", "Planner", "expert", "Planner"]
    assert "## expert\nknows the law" in served.requests[0]["messages"][0]["content"]
    assert "From: expert\nQuite legal." in served.requests[1]["messages"][-1]["content"]
    assert path(shared.round) == [
        ("User", "Planner"),
        ("Planner", "expert"),
        ("expert", "Planner"),
        ("Planner", "User"),
    ]


def test_what_others_say_unasked_becomes_a_post_too(agent, pair, shared, group):
    planner, coder = pair(planned=(plans("Noted.", to="User"),), coded=())
    expert = agent("expert", "Mind the outliers.")
    group([agent(), expert, planner, coder], "look at the data", rounds=3)

    assert [(post.send_from, post.message) for post in shared.round.posts[:2]] == [
        ("User", "look at the data"),
        ("expert", "Mind the outliers."),
    ]


def test_the_next_rounds_board_is_empty(agent, pair, shared, group):
    planner, coder = pair(planned=(*PLAN_42, plans("Hello.", to="User")))
    person = agent()
    group([person, planner, coder], "what is 6*7?", method=route_by_post)
    boards = [shared.board]
    group([person, planner, coder], "hello", method=route_by_post, clear_history=False)
    boards.append(shared.board)

    assert "compute 6*7" in boards[0]["Planner"]
    assert "compute 6*7" not in str(boards[1])
    assert len(shared.session.rounds) == 2


def test_a_question_back_closes_the_round_too(agent, pair, shared, group):
    asks_back = plans("Which column?", to="User", stop="Clarification")
    planner, coder = pair(planned=(asks_back,), coded=())
    group([agent(), planner, coder], "the mean?", method=route_by_post)

    assert shared.round.state is RoundState.finished


def test_a_chat_that_ends_in_the_middle_closes_the_round_as_failed(agent, pair, shared, group):
    planner, coder = pair(planned=(plans("compute 6*7"), plans("Hello.", to="User")))
    person = agent()
    group([person, planner, coder], "what is 6*7?", rounds=2, method=route_by_post)
    cut_off = shared.round
    assert cut_off.state is RoundState.created
    group([person, planner, coder], "hello", method=route_by_post, clear_history=False)

    assert (cut_off.state, cut_off.error) == (RoundState.failed, "the chat ended before an answer")
    assert shared.round is not cut_off


def test_clearing_the_history_ends_round_and_session(agent, pair, shared, group):
    planner, coder = pair(planned=(plans("compute 6*7"), plans("Hello.", to="User")))
    person = agent()
    group([person, planner, coder], "what is 6*7?", rounds=2, method=route_by_post)
    first = shared.session
    group([person, planner, coder], "hello", method=route_by_post)

    assert first.closed
    assert first.rounds[0].state is RoundState.failed
    assert [one.user_query for one in shared.session.rounds] == ["hello"]


def test_the_hosts_own_selection_reads_whom_a_member_addresses(served, agent, pair, shared):
    planner, coder = pair()
    chooser = served("Planner", "CodeInterpreter", "Planner")
    chat = autogen.GroupChat(agents=[agent(), planner, coder], messages=[], max_round=4)
    manager = autogen.GroupChatManager(chat, llm_config=chooser)
    chat.agents[0].initiate_chat(manager, message="what is 6*7?", silent=True)

    assert chat.messages[-1]["content"] == "It is 42."
    assert path(shared.round) == FOUR
    offered = str(served.servers[-1].requests[0]["messages"])
    assert planner.description in offered
    assert coder.description in offered


def test_transitions_that_the_host_allows_are_kept(agent, pair, shared):
    planner, coder = pair()
    person = agent()
    chat = autogen.GroupChat(
        agents=[person, planner, coder],
        messages=[],
        max_round=4,
        speaker_selection_method="round_robin",
        allowed_or_disallowed_speaker_transitions={person: [planner], planner: [coder], coder: [planner]},
        speaker_transitions_type="allowed",
    )
    person.initiate_chat(autogen.GroupChatManager(chat, llm_config=False), message="what is 6*7?", silent=True)

    assert path(shared.round) == FOUR


def test_board_and_next_speaker_stand_in_context_variables_where_the_host_has_them(agent, pair, shared, group):
    planner, coder = pair()
    if not hasattr(planner, "context_variables"):
        pytest.skip("this host has no context variables")
    group([agent(), planner, coder], "what is 6*7?", rounds=2, method=route_by_post)

    assert coder.context_variables["tw_next"] == "CodeInterpreter"
    assert coder.context_variables["tw_board"] == shared.board


def test_without_a_planner_members_still_share_a_board(agent, served, shared, group, tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "role.yaml").write_text("alias: Notes\nintro: Pins up what it is told.\n")
    (notes / "notes.py").write_text(
        "from tw_autogen import Post, Role\n\n\nclass Notes(Role):\n"
        "    def reply(self, memory, **kwargs):\n"
        "        kwargs['turn'].round.write_board(self.name, 'the key is 7')\n"
        "        return Post(self.name, memory.last_post.send_from, 'Pinned up.')\n\n"
        "    def close(self):\n        pass\n"
    )
    keeper = RoleAgent(notes, session=shared)
    coder = CodeInterpreterAgent(llm_config=served(codes("7 * 6")), session=shared)
    said, _ = group([agent(), keeper, coder], "multiply the key by 6", rounds=3)

    assert said[1] == ("Notes", "Pinned up.")
    assert "42" in said[2][1]
    assert "the key is 7" in served.requests[0]["messages"][-1]["content"]
    assert path(shared.round) == [
        ("User", "Notes"),
        ("Notes", "User"),
        ("User", "CodeInterpreter"),
        ("CodeInterpreter", "User"),
    ]


def test_a_code_interpreter_alone_answers_whoever_asks(agent, served, tmp_path):
    with SharedSession(workspace=tmp_path) as shared:
        coder = CodeInterpreterAgent(llm_config=served(codes("6 * 7", thought="I multiply.")), session=shared)
        result = agent().initiate_chat(coder, message="what is 6*7?", max_turns=1, silent=True)

        assert result.summary == "I multiply.\n\n42"
        assert shared.round.state is RoundState.finished


def test_workers_that_do_not_sit_in_the_chat_are_asked_behind_the_scenes(agent, pair, shared, shown):
    planner, _ = pair()
    result = agent().initiate_chat(planner, message="what is 6*7?", max_turns=1)

    assert result.summary == "It is 42."
    assert path(shared.round) == FOUR
    assert "Planner (to CodeInterpreter)" in shown.text


def test_files_and_kernel_are_shared_through_the_rounds(agent, served, tmp_path, group):
    (tmp_path / "sales.csv").write_text("day,revenue\n1,20\n2,22\n")
    with SharedSession(workspace=tmp_path, files=[tmp_path / "sales.csv"]) as shared:
        planned = (plans("load"), plans("Loaded.", to="User"), plans("sum"), plans("42.", to="User"))
        coded = (codes("import pandas as pd\ndf = pd.read_csv('sales.csv')"), codes("df.revenue.sum()"))
        planner = PlannerAgent(llm_config=served(*planned), session=shared)
        coder = CodeInterpreterAgent(llm_config=served(*coded), session=shared)
        person = agent()
        group([person, planner, coder], "load it", method=route_by_post)
        said, _ = group([person, planner, coder], "the sum?", method=route_by_post, clear_history=False)

    assert "42" in said[2][1]
    assert "sales.csv" in served.requests[0]["messages"][-1]["content"]


def test_what_members_spend_is_counted_with_their_own_clients(agent, served, shared, group):
    usage = Usage(1000, 0, 100, 1)
    planned = [Completion(text, usage=usage, model="planner") for text in PLAN_42]
    planner = PlannerAgent(llm_config=served(*planned), session=shared)
    coder = CodeInterpreterAgent(
        llm_config=served(Completion(codes("6 * 7"), usage=usage, model="coder")), session=shared
    )
    group([agent(), planner, coder], "what is 6*7?", method=route_by_post)

    assert planner.client.total_usage_summary["planner"]["prompt_tokens"] == 2000
    assert coder.client.total_usage_summary["coder"]["prompt_tokens"] == 1000
    paid = planner.client.total_usage_summary["total_cost"] + coder.client.total_usage_summary["total_cost"]
    assert shared.session.usage == Usage(3000, 0, 300, 3, dollars=pytest.approx(paid))


def test_a_failed_round_is_told_and_the_next_one_works(agent, served, tmp_path, group):
    with SharedSession(workspace=tmp_path, settings={"session.max_posts": 2}) as shared:
        planner = PlannerAgent(llm_config=served(plans("a"), plans("Hello.", to="User")), session=shared)
        coder = CodeInterpreterAgent(llm_config=served(codes("1")), session=shared)
        person = agent()
        said, _ = group([person, planner, coder], "go", rounds=3, method=route_by_post)
        more, _ = group([person, planner, coder], "hello", method=route_by_post, clear_history=False)

    assert said[-1][1].startswith("I could not answer this request")
    assert more[-1] == ("Planner", "Hello.")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda one: PlannerAgent("Planner2", llm_config=False, session=one), "Planner plans here already"),
        (lambda one: CodeInterpreterAgent("Planner", llm_config=False, session=one), "a member of that name already"),
        (lambda one: RoleAgent(lambda: None, session=one), "needs a name"),
        (lambda one: RoleAgent("nosuch", session=one), "no shipped role"),
    ],
)
def test_members_that_do_not_fit_are_refused(shared, make, message):
    PlannerAgent(llm_config=False, session=shared)
    with pytest.raises(ConfigError, match=message):
        make(shared)


def test_a_member_that_comes_too_late_is_refused(agent, pair, shared, group):
    planner, coder = pair(planned=(plans("Hello.", to="User"),), coded=())
    group([agent(), planner, coder], "hello", method=route_by_post)
    with pytest.raises(ConfigError, match="make all members before the first message"):
        RoleAgent("echo", session=shared)


def test_routing_without_a_member_is_refused(agent):
    chat = autogen.GroupChat(agents=[agent("a"), agent("b")], messages=[])
    with pytest.raises(HostError, match="none of these agents shares a session"):
        route_by_post(chat.agents[0], chat)
