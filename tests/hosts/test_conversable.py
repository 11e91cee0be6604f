"""`TaskWeaverAgent` in the host's own chats; models are replies of a server on loopback, everything else is real."""

import asyncio
import contextlib
import copy
import gc
import inspect
import weakref

import pytest

from tw_autogen.conversation import Attachment, AttachmentType, Memory, Post, Round
from tw_autogen.errors import ConfigError, HostError
from tw_autogen.kernel import Artifact
from tw_autogen.model import Completion, Usage
from tw_autogen.role import Turn
from tw_autogen.session import Answer
from tw_autogen.testing import FakeKernel, ScriptedModel, codes, plans

autogen = pytest.importorskip("autogen", reason="the host is an extra; `make test` installs it")
conversable = pytest.importorskip("tw_autogen.hosts.conversable")
messages = pytest.importorskip("tw_autogen.hosts.conversable.messages")
render_reply, without_end = messages.render_reply, messages.without_end
TaskWeaverAgent, SharedSession = conversable.TaskWeaverAgent, conversable.SharedSession
CodeInterpreterAgent, PlannerAgent = conversable.CodeInterpreterAgent, conversable.PlannerAgent
InMemoryCache = pytest.importorskip("autogen.cache.in_memory_cache").InMemoryCache
QUIET = {"silent": True}
SIX_TIMES_SEVEN = (plans("compute 6*7"), codes("6 * 7"), plans("It is 42.", to="User"))


def test_an_autogen_user_asks_and_gets_the_answer(served, agent, tmp_path):
    with TaskWeaverAgent("TaskWeaver", llm_config=served(*SIX_TIMES_SEVEN), workspace=tmp_path) as worker:
        person = agent()
        result = person.initiate_chat(worker, message="what is 6*7?", max_turns=1, **QUIET)

        assert result.summary == "It is 42."
        assert len(worker.session(person).rounds[0].posts) == 4


# Identity.


def test_it_is_the_installed_hosts_agent_with_its_arguments_in_their_order(tmp_path):  # C1 C2 C4
    own = list(inspect.signature(autogen.ConversableAgent.__init__).parameters)[2:4]
    worker = TaskWeaverAgent("worker", "Answer in verse.", None, workspace=tmp_path, llm_config=False)

    assert own == ["system_message", "is_termination_msg"]
    assert isinstance(worker, autogen.ConversableAgent)
    assert worker.system_message == "Answer in verse."
    assert TaskWeaverAgent("worker", None, None, 3, "ALWAYS", workspace=tmp_path).human_input_mode == "ALWAYS"
    assert {worker: 1}[worker] == 1
    assert worker != TaskWeaverAgent("worker", workspace=tmp_path, llm_config=False)


def test_an_argument_that_the_host_does_not_know_is_named(tmp_path):  # C2
    with pytest.raises(HostError, match=r"TaskWeaverAgent: [\w-]+ [\d.]+ knows no argument 'no_such_argument'"):
        TaskWeaverAgent("worker", no_such_argument=1, workspace=tmp_path)


def test_a_misspelt_argument_is_told_its_neighbour_and_what_is_wrong_is_told_before_the_first_message(tmp_path):
    for words, problem in (
        ({"rolls": []}, r"TaskWeaverAgent: there is no argument 'rolls'; did you mean 'roles'\?"),
        ({"system_mesage": "x"}, r"there is no argument 'system_mesage'; did you mean 'system_message'\?"),
        ({"model": "m1"}, r"model: 'm1' \(str\) is no model"),
        ({"policy": "strickt"}, "did you mean 'strict'"),
    ):
        with pytest.raises(ConfigError, match=problem):
            TaskWeaverAgent("worker", llm_config=False, workspace=tmp_path, **words)


def test_a_single_file_plugin_and_role_need_no_list(agent, tmp_path):
    (tmp_path / "sales.csv").write_text("a\n1\n", encoding="utf-8")
    inner = ScriptedModel([codes("kept = 1")])
    how = {"roles": "code_interpreter", "files": str(tmp_path / "sales.csv"), "plugins": "time_parts"}
    with TaskWeaverAgent("worker", model=inner, llm_config=False, workspace=tmp_path / "w", **how) as worker:
        agent("user").initiate_chat(worker, message="look", max_turns=1, silent=True)
    assert len(list((tmp_path / "w").glob("*/**/sales.csv"))) == 1
    assert "time_parts" in str(inner.calls[0])


def test_its_description_is_short_and_its_default_name_an_identifier(tmp_path):  # C3
    worker = TaskWeaverAgent(llm_config=False, workspace=tmp_path)

    assert worker.name.isidentifier()
    assert 20 < len(worker.description) < 300


def test_a_system_message_is_its_description_as_with_any_agent_unless_it_is_given_one(tmp_path):  # C3
    how = {"llm_config": False, "workspace": tmp_path}

    assert TaskWeaverAgent(system_message="Knows sales.", **how).description == "Knows sales."
    assert TaskWeaverAgent("a", "Knows sales.", **how).description == "Knows sales."
    assert TaskWeaverAgent(system_message="Be kind.", description="Counts.", **how).description == "Counts."


# The reply chain.


def test_model_replies_come_from_here_at_the_hosts_own_place(tmp_path):  # C5
    worker = TaskWeaverAgent(llm_config=False, workspace=tmp_path)
    plain = autogen.ConversableAgent("plain", llm_config=False)
    names = [[one["reply_func"].__name__ for one in each._reply_func_list] for each in (worker, plain)]
    ours = [one["reply_func"] for one in worker._reply_func_list]

    assert names[0] == names[1]
    assert TaskWeaverAgent.generate_oai_reply in ours
    assert TaskWeaverAgent.a_generate_oai_reply in ours


def test_termination_limits_and_human_input_come_first(served, agent, tmp_path):  # C6
    config = served(plans("Hello.", to="User"))
    with TaskWeaverAgent("TaskWeaver", llm_config=config, workspace=tmp_path, max_consecutive_auto_reply=1) as worker:
        person = agent(says="more")
        person.initiate_chat(worker, message="hello", **QUIET)

        assert [one["content"] for one in worker.chat_messages[person]] == ["hello", "Hello.", "more"]


def test_a_termination_message_is_not_answered(served, agent, tmp_path):  # C6
    ends = {"is_termination_msg": lambda message: "bye" in message["content"]}
    with TaskWeaverAgent("TaskWeaver", llm_config=served(), workspace=tmp_path, **ends) as worker:
        person = agent()
        person.initiate_chat(worker, message="bye", max_turns=1, **QUIET)

        assert len(worker.chat_messages[person]) == 1


def test_tool_calls_are_still_executed_by_it(served, agent, tmp_path):  # C6
    with TaskWeaverAgent("TaskWeaver", llm_config=served(), workspace=tmp_path) as worker:
        worker.register_function({"double": lambda x: str(2 * x)})
        call = {"id": "1", "type": "function", "function": {"name": "double", "arguments": '{"x": 21}'}}
        reply = worker.generate_reply(
            messages=[{"role": "assistant", "content": None, "tool_calls": [call]}], sender=agent()
        )

        assert reply["tool_responses"][0]["content"] == "42"


def test_it_takes_whatever_the_host_hands_to_a_reply(served, agent, tmp_path):  # C7 C9 C10
    with TaskWeaverAgent(llm_config=served(plans("Hello.", to="User")), workspace=tmp_path) as worker:
        final, reply = worker.generate_oai_reply([{"role": "user", "content": "hi"}], agent(), tools=[], more=1)

        assert (final, reply) == (True, "Hello.")


def test_without_messages_it_looks_into_its_chat_with_the_sender(served, agent, tmp_path):  # C10
    with TaskWeaverAgent(llm_config=served(plans("Hello.", to="User")), workspace=tmp_path) as worker:
        person = agent()
        person.send("hi", worker, request_reply=False, silent=True)

        assert worker.generate_oai_reply(sender=person) == (True, "Hello.")


def test_where_nothing_was_said_the_chat_ends(served, agent, tmp_path):  # C9
    with TaskWeaverAgent(llm_config=served(), workspace=tmp_path) as worker:
        assert worker.generate_oai_reply([{"role": "user", "content": "  "}], agent()) == (True, None)


def test_without_a_model_the_hosts_default_reply_is_used(agent, tmp_path):  # C8
    with TaskWeaverAgent(llm_config=False, workspace=tmp_path, default_auto_reply="No model.") as worker:
        assert agent().initiate_chat(worker, message="hello", max_turns=1, **QUIET).summary == "No model."


def test_words_are_read_out_of_parts_and_images_are_shown_to_the_model(served, agent, tmp_path):  # C12
    parts = [
        {"type": "text", "text": "what is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]
    with TaskWeaverAgent(llm_config=served(plans("A dot.", to="User")), workspace=tmp_path) as worker:
        worker.generate_reply(messages=[{"role": "user", "content": parts}], sender=agent())

        content = served.requests[0]["messages"][-1]["content"]
        assert content[0]["text"].startswith("From: User\nwhat is this?\n\nToday is ")
        assert content[1]["image_url"]["url"] == "data:image/png;base64,AAAA"


def test_the_system_message_becomes_the_planners_house_rules(served, agent, tmp_path):
    with TaskWeaverAgent(
        system_message="Answer in German.", llm_config=served(plans("Hallo.", to="User")), workspace=tmp_path
    ) as worker:
        agent().initiate_chat(worker, message="hi", max_turns=1, **QUIET)

        assert served.requests[0]["messages"][0]["content"].endswith("# House rules\nAnswer in German.")


# Money.


def test_what_the_calls_cost_is_in_the_chats_result_once(served, agent, tmp_path):  # C19 C24
    config = served(*(Completion(text, usage=Usage(1000, 0, 100, 1), model="recorded") for text in SIX_TIMES_SEVEN))
    with TaskWeaverAgent("TaskWeaver", llm_config=config, workspace=tmp_path) as worker:
        person = agent()
        result = person.initiate_chat(worker, message="what is 6*7?", max_turns=1, **QUIET)
        spent = worker.session(person).usage

    counted = result.cost["usage_excluding_cached_inference"]
    assert spent == Usage(3000, 0, 300, 3, dollars=pytest.approx(counted["total_cost"]))
    assert counted["recorded"]["prompt_tokens"] == 3000
    assert counted["recorded"]["completion_tokens"] == 300
    assert counted["total_cost"] == pytest.approx(3 * 1 + 0.3 * 2)


def test_reset_forgets_what_was_spent(served, agent, tmp_path):  # C25
    config = served(Completion(plans("Hello.", to="User"), usage=Usage(1000, 0, 100, 1), model="recorded"))
    with TaskWeaverAgent(llm_config=config, workspace=tmp_path) as worker:
        agent().initiate_chat(worker, message="hello", max_turns=1, **QUIET)
        spent = worker.client.total_usage_summary
        worker.reset()

        assert spent["recorded"]["prompt_tokens"] == 1000
        assert not worker.client.total_usage_summary


def test_settings_of_its_model_reach_inner_calls_and_its_output_is_not_streamed(served, agent, tmp_path):  # C22
    config = served(*SIX_TIMES_SEVEN, temperature=0.9)
    with TaskWeaverAgent(llm_config=config, workspace=tmp_path) as worker:
        agent().initiate_chat(worker, message="what is 6*7?", max_turns=1, **QUIET)

    assert [request["temperature"] for request in served.requests] == [0.9] * 3
    assert not any(request.get("stream") for request in served.requests)


def test_a_role_may_have_a_model_of_its_own_and_its_calls_count_too(served, agent, tmp_path):
    planner, coder = plans("compute"), codes("6 * 7")
    config = served(
        *(Completion(text, usage=Usage(10, 0, 1, 1), model="a") for text in (planner, plans("42", to="User")))
    )
    own = served(Completion(coder, usage=Usage(100, 0, 1, 1), model="b"))
    with TaskWeaverAgent(llm_config=config, role_llm_config={"CodeInterpreter": own}, workspace=tmp_path) as worker:
        result = agent().initiate_chat(worker, message="what is 6*7?", max_turns=1, **QUIET)

    counted = result.cost["usage_including_cached_inference"]
    assert (counted["a"]["prompt_tokens"], counted["b"]["prompt_tokens"]) == (20, 100)


def test_a_model_for_a_role_without_one_for_the_agent_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="role_llm_config needs an llm_config too"):
        TaskWeaverAgent(llm_config=False, role_llm_config={"Planner": {}}, workspace=tmp_path)


def test_a_client_that_was_put_in_its_place_is_asked(served, agent, tmp_path):  # C23
    class Fake:
        total_usage_summary = actual_usage_summary = None

        def create(self, **params):
            self.asked = params
            return plans("From the fake.", to="User")

        def extract_text_or_completion_object(self, response):
            return [response]

    with TaskWeaverAgent(llm_config=served(), workspace=tmp_path) as worker:
        worker.client = Fake()
        result = agent().initiate_chat(worker, message="hello", max_turns=1, **QUIET)

        assert result.summary == "From the fake."
        assert worker.client.asked["agent"].name == "Planner"  # C21: the host logs calls under the role's name


def test_the_chats_cache_reaches_inner_calls(served, agent, tmp_path):  # C20
    cache = InMemoryCache("seed")
    with TaskWeaverAgent(llm_config=served(plans("Hello.", to="User")), workspace=tmp_path) as worker:
        for _ in range(2):
            said = agent().initiate_chat(worker, message="hello", max_turns=1, cache=cache, **QUIET).summary
            assert said == "Hello."

    assert len(served.requests) == 1


def test_no_cache_of_the_current_folder_is_opened(served, agent, tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    config = {**served(plans("Hello.", to="User"), plans("Hello again.", to="User")), "cache_seed": 42}
    with TaskWeaverAgent(llm_config=config, workspace=tmp_path / "workspace") as worker:
        for said in ("Hello.", "Hello again."):
            assert agent().initiate_chat(worker, message="hello", max_turns=1, **QUIET).summary == said

    assert not (tmp_path / ".cache").exists()
    assert "cache_seed, which counts for no role" in caplog.text


@pytest.mark.parametrize("seed", [{"cache_seed": 42}, {}])  # a missing one means one on disk to the oldest lineage
def test_a_summary_by_an_agents_own_client_opens_no_cache_either(served, agent, tmp_path, monkeypatch, seed):
    monkeypatch.chdir(tmp_path)
    config = served(plans("Hello.", to="User"), "A greeting.")
    config = {key: value for key, value in config.items() if key != "cache_seed"} | seed
    with TaskWeaverAgent(llm_config=config, workspace=tmp_path / "workspace") as worker:
        summary = {"summary_method": "reflection_with_llm", **QUIET}
        assert agent().initiate_chat(worker, message="hello", max_turns=1, **summary).summary == "A greeting."

    assert not (tmp_path / ".cache").exists()


# What is said.


def test_inner_talk_goes_by_the_hosts_own_messages(served, agent, tmp_path, shown):  # C27
    with TaskWeaverAgent(llm_config=served(*SIX_TIMES_SEVEN), workspace=tmp_path) as worker:
        agent().initiate_chat(worker, message="what is 6*7?", max_turns=1)

    assert "Planner (to CodeInterpreter)" in shown.text
    assert "CodeInterpreter (to Planner)" in shown.text
    assert "```python\n6 * 7\n```" in shown.text
    assert '{"' not in shown.text  # C29: never the model's JSON


@pytest.mark.skipif(not hasattr(autogen, "events"), reason="this host prints, and has no events")
def test_inner_talk_needs_nothing_but_a_stream_that_takes_events(served, agent, tmp_path):  # C30
    class OnlySends:
        def __init__(self):
            self.kinds = []

        def send(self, event):
            self.kinds.append(event.type)

    stream = OnlySends()
    with (
        autogen.io.IOStream.set_default(stream),
        TaskWeaverAgent(llm_config=served(*SIX_TIMES_SEVEN), workspace=tmp_path) as worker,
    ):
        agent().initiate_chat(worker, message="what is 6*7?", max_turns=1)

    assert stream.kinds.count("text") == 4


@pytest.mark.parametrize("how", ["chat", "agent"])
def test_in_a_silent_chat_nothing_is_shown(served, agent, tmp_path, shown, how):  # C28
    quiet = {"silent": True} if how == "agent" else {}
    with TaskWeaverAgent(llm_config=served(*SIX_TIMES_SEVEN), workspace=tmp_path, **quiet) as worker:
        agent().initiate_chat(worker, message="what is 6*7?", max_turns=1, silent=how == "chat")

    assert "Planner" not in shown.text


@pytest.mark.parametrize(
    ("request_words", "answer", "said"),
    [
        ("Count. Reply TERMINATE when you are done.", "It is 3.", "It is 3.\n\nTERMINATE"),
        ("Count. When done, say TERMINATE.", "It is 3. TERMINATE", "It is 3.\n\nTERMINATE"),
        ("Antworte mit TERMINATE, wenn du fertig bist.", "Es sind 3. TERMINATE", "Es sind 3.\n\nTERMINATE"),
        ("Compte. Termine par TERMINATE quand c'est fini.", "Il y en a 3.", "Il y en a 3.\n\nTERMINATE"),
        ("Responde TERMINATE cuando termines.", "Son 3.", "Son 3.\n\nTERMINATE"),
        ("完成后请回复TERMINATE", "有3个。TERMINATE", "有3个。\n\nTERMINATE"),
        ("完了したらTERMINATEと返信して", "3個です。", "3個です。\n\nTERMINATE"),
        ("Welche Zeilen haben den Status TERMINATE?", "Keine.", "Keine."),
        ("What is the last word?", "TERMINATE", "`TERMINATE`"),
        ("What is the last word?", "The last word is TERMINATE", "The last word is `TERMINATE`"),
        ("Count.", "It is 3.", "It is 3."),
        ("When do customers terminate their contracts?", "In March.", "In March."),
        ("Return the rows that are TERMINATED, when there are any.", "None.", "None."),
    ],
)
def test_the_end_is_told_only_if_asked_for(served, agent, tmp_path, request_words, answer, said):  # C31
    with TaskWeaverAgent(llm_config=served(plans(answer, to="User")), workspace=tmp_path) as worker:
        result = agent().initiate_chat(worker, message=request_words, max_turns=1, **QUIET)

    assert result.chat_history[-1]["content"] == said


def test_the_end_is_not_told_with_a_question_back(served, agent, tmp_path):  # C31
    asks_back = plans("Which column?", to="User", stop="Clarification")
    with TaskWeaverAgent(
        system_message="Reply TERMINATE when the task is done.", llm_config=served(asks_back), workspace=tmp_path
    ) as worker:
        assert agent().initiate_chat(worker, message="mean?", max_turns=1, **QUIET).summary == "Which column?"


def test_files_are_named_with_path_and_preview(served, agent, tmp_path):
    config = served(plans("save"), codes("open('seven.txt', 'w').write('7')"), plans("Saved.", to="User"))
    with TaskWeaverAgent(llm_config=config, workspace=tmp_path) as worker:
        person = agent()
        result = person.initiate_chat(worker, message="save it", max_turns=1, **QUIET)
        path = worker.session(person).folder / "seven.txt"

    assert result.summary == f"Saved.\n\n- [seven.txt]({path.as_uri()}): 1 bytes"


def test_a_reply_that_the_length_limit_has_cut_off_is_named_so_to_the_model(served, agent, tmp_path):
    cut = Completion(plans("It is 42.", to="User")[:-20], finish_reason="length")
    config = served(cut, plans("It is 42.", to="User"))
    with TaskWeaverAgent(llm_config=config, workspace=tmp_path) as worker:
        agent().initiate_chat(worker, message="what is 6*7?", max_turns=1, silent=True)

    assert "the reply was cut off at the length limit; answer shorter" in served.requests[1]["messages"][-1]["content"]


def test_an_error_of_the_hosts_client_goes_through_as_with_any_agent(agent, tmp_path):  # C37
    entry = {"model": "m", "api_key": "none", "base_url": "http://127.0.0.1:9/v1"}
    config = {"config_list": [entry], "cache_seed": None}
    with TaskWeaverAgent(llm_config=config, workspace=tmp_path) as worker:
        with pytest.raises(Exception, match="Connection error"):
            agent().initiate_chat(worker, message="hello", max_turns=1, **QUIET)
        with pytest.raises(Exception, match="Connection error"):  # and the session is still good for another try
            agent().initiate_chat(worker, message="hello", max_turns=1, clear_history=False, **QUIET)


def test_an_agent_that_is_forgotten_ends_its_sessions(agent, tmp_path):
    worker = TaskWeaverAgent(model=ScriptedModel([plans("Hello.", to="User")]), llm_config=False, workspace=tmp_path)
    person = agent()
    worker.generate_reply(messages=[{"role": "user", "content": "hi"}], sender=person)
    session, gone = weakref.ref(worker.session(person)), weakref.ref(worker)
    del worker
    gc.collect()

    assert gone() is None
    assert session() is None or session().closed


def test_an_async_chat_gets_the_same_answer(served, agent, tmp_path):
    with TaskWeaverAgent(llm_config=served(*SIX_TIMES_SEVEN), workspace=tmp_path) as worker:
        chat = agent().a_initiate_chat(worker, message="what is 6*7?", max_turns=1, **QUIET)

        assert asyncio.run(chat).summary == "It is 42."


def test_a_role_that_the_folders_settings_name_and_nobody_has_is_told_at_once(served, tmp_path, monkeypatch):
    (tmp_path / "taskweaver_config.json").write_text('{"session.roles": ["planner", "weather"]}', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"weather: no shipped role .*`session\.roles` in .*taskweaver_config"):
        TaskWeaverAgent("tw", llm_config=served(), trust=True)


def test_a_project_brings_settings_and_plugins(served, agent, tmp_path):
    project = tmp_path / "project"
    (project / "plugins").mkdir(parents=True)
    (project / "taskweaver_config.json").write_text('{"session.max_internal_chat_round_num": 9}', encoding="utf-8")
    code = "from tw_autogen.plugin import plugin\n@plugin\ndef thrice(x: int) -> int:\n    'Do it.'\n    return x * 3\n"
    (project / "plugins" / "mine.py").write_text(code, encoding="utf-8")
    config = served(plans("thrice", then="User"), codes("print('It is', thrice(14))"))

    with TaskWeaverAgent("tw", llm_config=config, project=project, workspace=tmp_path / "s") as tw:
        result = agent().initiate_chat(tw, message="three times 14?", max_turns=1, **QUIET)

    assert "It is 42" in result.chat_history[-1]["content"]


# The folder in which an agent is made.


def _asked(agent, host, kernel):
    """Return what asks an agent, of the kind that `host` names, for the first time; its file is named now."""
    model = ScriptedModel([plans("Done.", to="User")])
    how = {"llm_config": False, "workspace": "../s"}
    if host == "group":
        shared = SharedSession(files=["sales.csv"], workspace="../s")
        planner = PlannerAgent(model=model, session=shared, llm_config=False)
        CodeInterpreterAgent(model=ScriptedModel([]), kernel=kernel, session=shared, llm_config=False)
        return shared, lambda: agent().initiate_chat(planner, message="show", max_turns=1, **QUIET)
    person, given = agent(), {} if host == "handed over" else {"files": ["sales.csv"]}
    made = TaskWeaverAgent("worker", model=model, kernel=kernel, **given, **how)
    if host == "handed over":
        made.hand_over(person, "sales.csv")
    if host == "copy":
        made = copy.deepcopy(made)
    return made, lambda: person.initiate_chat(made, message="show", max_turns=1, clear_history=False, **QUIET)


@pytest.mark.parametrize("instead", ["link above", "link", "nothing changes"])
@pytest.mark.parametrize("host", ["agent", "copy", "handed over", "group"])
def test_a_file_is_looked_for_in_the_folder_where_it_was_named_although_the_session_opens_later(
    agent, tmp_path, monkeypatch, host, instead
):
    """Plays what code of another process's kernel, which may write above the current folder, does before the chat."""
    here, secret = tmp_path / "above" / "docs", tmp_path / "other"
    for folder, words in ((here, "ok"), (secret / "docs", "SECRET")):
        folder.mkdir(parents=True)
        (folder / "sales.csv").write_text(words)
    monkeypatch.chdir(here)
    made, ask = _asked(agent, host, lambda folder: FakeKernel(folder=folder))
    with made:
        if instead != "nothing changes":
            here.parent.rename(tmp_path / "moved")
        if instead == "link above":
            here.parent.symlink_to(secret)
        elif instead == "link":
            here.mkdir(parents=True)
            (here / "sales.csv").symlink_to(secret / "docs" / "sales.csv")
        if instead == "nothing changes":
            ask()
        else:
            with pytest.raises(ConfigError, match="which was moved"):
                ask()
        copies = [path.read_text() for path in tmp_path.rglob("s/*/files/sales.csv")]

    assert copies == (["ok"] if instead == "nothing changes" else [])


def test_a_folder_is_held_open_no_longer_than_the_agent_lives(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sales.csv").write_text("ok")
    made = TaskWeaverAgent("worker", llm_config=False, workspace="s", files="sales.csv")
    made.close()
    held = made._files.distrusted
    assert held.has_file("sales.csv")  # an agent that was closed can be asked again

    del made
    gc.collect()

    with pytest.raises((OSError, TypeError)):
        held.info(".")


@pytest.mark.parametrize(
    "wanted",
    [
        lambda here: {"settings": {"session.user_folder": str(here)}},
        lambda here: {"settings": {"kernel.write": [str(here / "mine")]}},
        lambda here: {"settings": {"kernel.read": [str(here / "mine")]}},
        lambda here: {"workspace": str(here / "mine")},
    ],
    ids=["user_folder", "write", "read", "workspace"],
)
def test_what_settings_name_in_a_folder_that_was_moved_since_the_agent_was_made_is_not_looked_for_in_its_place(
    agent, tmp_path, monkeypatch, wanted
):
    here, secret = tmp_path / "above" / "docs", tmp_path / "other"
    for folder in (here, secret / "docs"):
        (folder / "mine").mkdir(parents=True)
    monkeypatch.chdir(here)
    model = ScriptedModel([plans("Done.", to="User")])
    with TaskWeaverAgent("worker", model=model, llm_config=False, **{"workspace": "../s", **wanted(here)}) as made:
        here.parent.rename(tmp_path / "moved")
        here.parent.symlink_to(secret)

        with pytest.raises(ConfigError, match="was moved"):
            agent().initiate_chat(made, message="show", max_turns=1, **QUIET)

    assert list((secret / "docs" / "mine").iterdir()) == []


def test_the_description_of_a_file_ends_no_chat(tmp_path):
    here = Round("q", posts=[Post("Planner", "User", "Saved.", (Attachment(AttachmentType.stop, "Completed"),))])
    made = Artifact("note", "file", tmp_path / "note.txt", "TERMINATE")

    assert render_reply(Answer("Saved.", (made,), "Completed", Usage(), here)).endswith(": `TERMINATE`")


def test_a_failed_request_whose_last_output_says_so_ends_no_chat(served, agent, tmp_path):
    steps = [plans("a"), codes("print('the end: TERMINATE'[9:])"), plans("b"), codes("1 / 0  # TERMINATE")]
    with TaskWeaverAgent(llm_config=served(*steps), workspace=tmp_path, settings={"session.max_posts": 3}) as worker:
        said = agent().initiate_chat(worker, message="go", max_turns=1, **QUIET).chat_history[-1]["content"]

    assert said.startswith("I could not answer this request: ")
    assert said.endswith("TERMINATE`")


def test_an_agent_that_is_a_role_is_told_the_board_with_no_block_that_it_would_run(agent, tmp_path):
    here, heard = Round("go", posts=[Post("Planner", "runner", "look")]), []
    here.write_board("manual_reader", "```sh\nid\n```")
    runner = agent("runner", description="Runs the blocks that it reads.")
    runner.register_reply(
        [autogen.Agent, None], lambda _, messages, **more: (True, heard.append(messages[-1]["content"]) or "done")
    )

    with contextlib.closing(conversable.agent_role(runner)()) as role:
        role.reply(Memory.of("runner", [here]), turn=Turn(here, tmp_path))

    assert heard == ["look\n\n# What is known\n`` `sh\nid\n`` `"]


@pytest.mark.parametrize("text", ["the end: TERMINATE", "TERMINATE \n", "TERMINATE\u00a0"])
def test_output_that_says_so_ends_no_chat_whatever_blanks_follow(text):
    assert not without_end(text).rstrip().endswith("TERMINATE")
