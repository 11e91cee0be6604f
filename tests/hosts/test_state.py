"""Which session answers whom, and when it ends."""

import copy
import threading

import pytest

from tw_autogen.conversation import RoundState
from tw_autogen.errors import ConfigError, HostError
from tw_autogen.testing import ScriptedModel, codes, plans

autogen = pytest.importorskip("autogen", reason="the host is an extra; `make test` installs it")
conversable = pytest.importorskip("tw_autogen.hosts.conversable")
TaskWeaverAgent = conversable.TaskWeaverAgent
QUIET = {"silent": True, "max_turns": 1}
KEEP = (plans("keep"), codes("kept = 7"), plans("Kept.", to="User"))
LOOK = (plans("look"), codes("'kept' in globals()"), plans("Looked.", to="User"))


def looked(session):
    """Say what the code saw that looked for the variable."""
    return session.rounds[-1].posts[2].message.rpartition("Result:\n")[2]


def test_two_partners_have_kernels_of_their_own(served, agent, tmp_path):  # C13
    with TaskWeaverAgent(llm_config=served(*KEEP, *LOOK), workspace=tmp_path) as worker:
        ann, bob = agent("ann"), agent("bob")
        ann.initiate_chat(worker, message="keep seven", **QUIET)
        bob.initiate_chat(worker, message="is it there?", **QUIET)

        assert looked(worker.session(bob)) == "False"
        assert worker.open_session_count == 2


@pytest.mark.parametrize("clear", ["chat", "partner", "all", "reset"])
def test_clearing_the_history_ends_the_session(served, agent, tmp_path, clear):  # C14
    config = served(plans("Hello.", to="User"), plans("Hello again.", to="User"))
    with TaskWeaverAgent(llm_config=config, workspace=tmp_path) as worker:
        person = agent()
        person.initiate_chat(worker, message="hello", **QUIET)
        first = worker.session(person)
        if clear == "chat":
            person.initiate_chat(worker, message="hello", **QUIET)
        elif clear == "partner":
            worker.clear_history(person)
        elif clear == "all":
            worker.clear_history()
        else:
            worker.reset()

        assert first.closed
        assert worker.session(person) is not first


def test_keeping_some_messages_keeps_the_session(served, agent, tmp_path):  # C14
    with TaskWeaverAgent(llm_config=served(plans("Hello.", to="User")), workspace=tmp_path) as worker:
        person = agent()
        person.initiate_chat(worker, message="hello", **QUIET)
        first = worker.session(person)
        worker.clear_history(person, nr_messages_to_preserve=1)

        assert worker.session(person) is first
        assert not first.closed


def test_a_chat_that_was_given_is_known_and_the_kernel_said_to_be_fresh(served, agent, tmp_path):  # C16
    person = agent()
    before = {
        person: [
            {"role": "user", "name": "user", "content": "keep seven"},
            {"role": "assistant", "name": "TaskWeaver", "content": "Kept."},
        ]
    }
    with TaskWeaverAgent(
        llm_config=served(plans("Seven.", to="User")), workspace=tmp_path, chat_messages=before
    ) as worker:
        person.initiate_chat(worker, message="what did I say?", clear_history=False, **QUIET)

        told = [message["content"] for message in served.requests[0]["messages"][1:]]
        assert told[0] == "From: User\nkeep seven"
        assert '"message": "Kept."' in told[1]
        assert told[2].startswith("From: User\nwhat did I say?\n\n(This chat is resumed")
        assert [one.state for one in worker.session(person).rounds] == [RoundState.finished] * 2


def test_a_group_chat_that_is_resumed_is_known(served, agent, tmp_path):  # C16
    with TaskWeaverAgent(llm_config=served(plans("Seven.", to="User")), workspace=tmp_path) as worker:
        person = agent()
        chat = autogen.GroupChat(
            agents=[person, worker], messages=[], max_round=3, speaker_selection_method="round_robin"
        )
        manager = autogen.GroupChatManager(chat, llm_config=False)
        said = [
            {"role": "user", "name": "user", "content": "keep seven"},
            {"role": "user", "name": "TaskWeaver", "content": "Kept."},
            {"role": "user", "name": "user", "content": "what did I say?"},
        ]
        last, message = manager.resume(messages=said)
        last.initiate_chat(manager, message=message, clear_history=False, silent=True)

        assert worker.session(manager).rounds[0].user_query == "keep seven"
        assert "Seven." in [one["content"] for one in chat.messages]


def test_a_service_without_partner_is_known_by_its_transcript(served, tmp_path):  # C11 C13
    with TaskWeaverAgent(llm_config=served(*KEEP, *LOOK, *LOOK), workspace=tmp_path) as worker:
        first = [{"role": "user", "content": "keep seven"}]
        said = worker.generate_reply(messages=first, sender=None)
        more = [*first, {"role": "assistant", "content": said}, {"role": "user", "content": "is it there?"}]
        worker.generate_reply(messages=more, sender=None)
        there = served.requests[-1]["messages"][-1]["content"]
        worker.generate_reply(messages=[{"role": "user", "content": "is it there?"}], sender=None)
        elsewhere = served.requests[-1]["messages"][-1]["content"]

        assert "Result:\nTrue" in there
        assert "Result:\nFalse" in elsewhere
        assert worker.open_session_count == 2


def test_no_more_sessions_than_the_setting_says_stay_open(served, agent, tmp_path):  # C17
    config = served(*(plans(f"Hello {i}.", to="User") for i in range(4)))
    with TaskWeaverAgent(llm_config=config, workspace=tmp_path, settings={"session.most_open": 2}) as worker:
        people = [agent(name) for name in ("ann", "bob", "cid")]
        for person in people:
            person.initiate_chat(worker, message=f"I am {person.name}", **QUIET)
        assert worker.open_session_count == 2

        people[0].initiate_chat(worker, message="who am I?", clear_history=False, **QUIET)

        assert worker.session(people[0]).rounds[0].user_query == "I am ann"


def test_closing_ends_all_sessions_and_it_may_be_asked_again(served, agent, tmp_path):  # C17
    config = served(plans("Hello.", to="User"), plans("Hello again.", to="User"))
    worker = TaskWeaverAgent(llm_config=config, workspace=tmp_path)
    person = agent()
    person.initiate_chat(worker, message="hello", **QUIET)
    first = worker.session(person)
    worker.close()
    worker.close()

    assert first.closed
    with worker:
        assert person.initiate_chat(worker, message="hello", **QUIET).summary == "Hello again."


def test_six_chats_at_once_stay_apart(agent, tmp_path):  # C18
    def reply(messages):
        told = [message["content"] for message in messages]
        number = next(word for word in str(told).split() if word.startswith("number-"))[:8]
        if "You are the CodeInterpreter" in told[0]:
            return codes(f"mine = '{number}'\nprint(mine)")
        if "From: CodeInterpreter" in str(told[-1]):
            return plans(f"I kept {number}.", to="User")
        return plans(f"keep {number} please")

    with TaskWeaverAgent(model=ScriptedModel([reply] * 18), llm_config=False, workspace=tmp_path) as worker:
        people = [agent(f"person{i}") for i in range(6)]
        results, together = {}, threading.Barrier(6, timeout=60)

        def chat(at):
            together.wait()
            results[at] = people[at].initiate_chat(worker, message=f"keep number-{at} please", **QUIET).summary

        threads = [threading.Thread(target=chat, args=(at,)) for at in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(90)

        assert results == {at: f"I kept number-{at}." for at in range(6)}
        for at, person in enumerate(people):
            (here,) = worker.session(person).rounds
            assert len(here.posts) == 4
            assert f"Printed:\nnumber-{at}" in here.posts[2].message
            assert f"number-{at}" in here.board["Planner"]
            assert worker.session(person).usage.calls == 3


def test_files_come_with_a_sessions_first_message(served, agent, tmp_path):
    (tmp_path / "sales.csv").write_text("day,revenue\n1,20\n2,22\n")
    config = served(plans("I see it.", to="User"), plans("Still.", to="User"))
    with TaskWeaverAgent(llm_config=config, workspace=tmp_path, files=[tmp_path / "sales.csv"]) as worker:
        person = agent()
        person.initiate_chat(worker, message="see it?", **QUIET)
        person.initiate_chat(worker, message="and now?", clear_history=False, **QUIET)

        assert (worker.session(person).folder / "sales.csv").exists()
        assert [str(request["messages"]).count("sales.csv: ") for request in served.requests] == [1, 1]


def test_files_may_be_handed_over_with_any_message(served, agent, tmp_path):
    (tmp_path / "more.csv").write_text("day,revenue\n1,20\n")
    config = served(*[plans("Fine.", to="User")] * 5)
    with TaskWeaverAgent(llm_config=config, workspace=tmp_path) as worker:
        person = agent()
        with pytest.raises(ConfigError, match=r"none\.csv: there is no such file"):
            worker.hand_over(person, [tmp_path / "more.csv", tmp_path / "none.csv"])
        with pytest.raises(ConfigError, match="a folder, not a file"):
            worker.hand_over(person, tmp_path)
        person.initiate_chat(worker, message="see it?", **QUIET)
        worker.hand_over(person, [tmp_path / "more.csv"])
        person.initiate_chat(worker, message="and now?", clear_history=False, **QUIET)
        worker.session(person).close()  # as one that is idle
        person.initiate_chat(worker, message="still?", clear_history=False, **QUIET)
        person.initiate_chat(worker, message="all is forgotten", **QUIET)
        worker.hand_over(person, [tmp_path / "more.csv"])
        person.initiate_chat(worker, message="the host forgets first", **QUIET)

        told = ["more.csv: " in request["messages"][-1]["content"] for request in served.requests]
        assert told == [False, True, True, False, True]


@pytest.mark.parametrize("client", ["client", "model"])
def test_a_deep_copy_has_sessions_of_its_own_and_knows_what_was_said(served, agent, tmp_path, client):
    replies = [*KEEP, *LOOK, *LOOK]
    how = (
        {"llm_config": served(*replies)}
        if client == "client"
        else {"llm_config": False, "model": ScriptedModel(replies)}
    )
    person = agent()
    with TaskWeaverAgent(workspace=tmp_path, **how) as worker:
        person.initiate_chat(worker, message="keep seven", **QUIET)
        spent = worker.get_actual_usage()
        with copy.deepcopy(worker) as made:
            person.initiate_chat(made, message="is it there?", clear_history=False, **QUIET)
            assert made.session(person) is not worker.session(person)
            assert made.session(person).folder != worker.session(person).folder
            assert made.session(person).rounds[0].user_query == "keep seven"
            assert looked(made.session(person)) == "False"
            assert worker.get_actual_usage() == spent
        person.initiate_chat(worker, message="is it there?", clear_history=False, **QUIET)
        assert looked(worker.session(person)) == "True"


def test_copies_of_members_share_a_session_of_their_own(agent, tmp_path):
    model = ScriptedModel([codes("x = 1"), codes("print('x' in dir())")])
    with conversable.SharedSession(workspace=tmp_path) as shared:
        planner = conversable.PlannerAgent(llm_config=False, model=ScriptedModel([]), session=shared)
        coder = conversable.CodeInterpreterAgent(llm_config=False, model=model, session=shared)
        agent().initiate_chat(coder, message="keep", **QUIET)
        made = copy.deepcopy([planner, coder])
        with made[0].shared as other:
            said = agent().initiate_chat(made[1], message="is it there?", **QUIET).summary
            assert other is made[1].shared is not shared
            assert (len(shared.chats), len(other.chats)) == (1, 1)
    assert "False" in said


def test_relative_paths_of_a_shared_session_mean_the_same_in_its_copies(agent, tmp_path, monkeypatch):
    for name, policy in (("mine", "base: strict\nmodules: {remove: [json]}\n"), ("other", "base: 'off'\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "own.yaml").write_text(policy, encoding="utf-8")
    monkeypatch.chdir(tmp_path / "mine")
    model = ScriptedModel([codes("import json")] * 3)
    shared = conversable.SharedSession(workspace=tmp_path, settings={"code_interpreter.policy": "own.yaml"})
    coder = conversable.CodeInterpreterAgent(llm_config=False, model=model, session=shared)
    monkeypatch.chdir(tmp_path / "other")

    made = copy.deepcopy(coder)
    with shared, made.shared:
        said = agent().initiate_chat(made, message="whose?", **QUIET).summary

    assert "import of 'json' is not allowed" in said


def test_what_can_not_be_copied_is_told_in_words(tmp_path):
    worker = TaskWeaverAgent(llm_config=False, workspace=tmp_path)
    with pytest.raises(HostError, match="TaskWeaver: a shallow copy would work in the same sessions; make a deep one"):
        copy.copy(worker)
    worker.lock = threading.Lock()
    with pytest.raises(ConfigError, match="TaskWeaver: can't be copied, because of lock: cannot pickle"):
        copy.deepcopy(worker)
