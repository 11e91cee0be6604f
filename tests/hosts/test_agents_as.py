"""Other agents as plugins and as roles, and meshes of them."""

import os
import threading
import time
from pathlib import Path

import pytest
from pydantic import BaseModel

from tw_autogen.errors import ConfigError
from tw_autogen.events import HostCalled, RoundClosed
from tw_autogen.hosts import agent_files
from tw_autogen.model import Completion, Usage
from tw_autogen.testing import ScriptedModel, codes, plans, replay_server

autogen = pytest.importorskip("autogen", reason="the host is an extra; `make test` installs it")
conversable = pytest.importorskip("tw_autogen.hosts.conversable")
TaskWeaverAgent = conversable.TaskWeaverAgent
agent_plugin, agent_role = conversable.agent_plugin, conversable.agent_role
QUIET = {"silent": True, "max_turns": 1}
_TRY = "try:\n    print({})\nexcept Exception as error:\n    print(error)"


class Verdict(BaseModel):
    """What a lawyer says."""

    legal: bool
    why: str


@pytest.fixture
def run(agent, tmp_path):
    """Have a TaskWeaver with these plugins run one piece of code; give what it reported, and the events."""
    workers = []

    def run(code, plugins, **more):
        events = []
        model = ScriptedModel([plans("do it"), codes(code), plans("Done.", to="User")])
        worker = TaskWeaverAgent(
            model=model, llm_config=False, plugins=plugins, workspace=tmp_path, handlers=[events.append], **more
        )
        workers.append(worker)
        person = agent()
        person.initiate_chat(worker, message="do it", **QUIET)
        return worker.session(person).rounds[0].posts[2].message, events

    yield run
    for worker in workers:
        worker.close()


def test_code_asks_an_agent(agent, served, run):
    lawyer = agent("lawyer", description="Knows the law.", llm_config=served("It is legal."))
    report, events = run("print(legal_expert('is it legal?'))", [agent_plugin(lawyer, name="legal_expert")])

    assert "Printed:\nIt is legal." in report
    assert served.requests[0]["messages"][-1]["content"] == "is it legal?"
    assert [(event.function, event.ok) for event in events if isinstance(event, HostCalled)] == [("legal_expert", True)]


def test_what_an_asked_agent_spends_counts_towards_the_limits_of_who_asks(agent, served, tmp_path):
    lawyer = agent("lawyer", description="Knows the law.", llm_config=served("It is legal."))
    model = ScriptedModel([plans("do it"), codes("print(lawyer('is it legal?'))")])
    limits = {"session.max_session_calls": 3}
    plugins = [agent_plugin(lawyer)]
    with TaskWeaverAgent(model=model, llm_config=False, plugins=plugins, workspace=tmp_path, settings=limits) as worker:
        person = agent()
        person.initiate_chat(worker, message="do it", **QUIET)
        said = worker.session(person).rounds[0].error

    assert "3 model calls in this session and no answer for the user; `session.max_session_calls` is 3" in said
    assert "It is legal." in said


class Slow:
    """Answers when as many have asked as it waits for, and says what that was in tokens."""

    def __init__(self, many):
        self._all = threading.Barrier(many)

    def complete(self, messages, **more):
        self._all.wait(20)
        return Completion("It is legal.", usage=Usage(1000, 0, 100, 1))


def test_what_an_agent_spends_that_is_asked_several_times_at_once_is_counted_once(agent, run):
    with replay_server(Slow(4)) as server:
        entry = {"model": "recorded", "api_key": "none", "base_url": server.base_url, "price": [1, 2]}
        lawyer = agent("lawyer", description="Knows the law.", llm_config={"config_list": [entry], "cache_seed": None})
        _, events = run(
            "print([one.result() for one in [lawyer.submit('?') for _ in range(4)]])", [agent_plugin(lawyer)]
        )

    spent = next(event.spent for event in events if isinstance(event, RoundClosed))
    assert spent["dollars"] == pytest.approx(4 * (1 + 2 * 0.1))
    assert spent["calls"] == 3 + 4


def test_an_agent_runs_its_own_tools_for_the_answer(agent, run):
    lawyer = agent("lawyer", description="Knows the law.")
    lawyer.register_function({"look_up": lambda article: f"article {article} allows it"})
    call = {"id": "1", "type": "function", "function": {"name": "look_up", "arguments": '{"article": 5}'}}

    def think(recipient, messages=None, sender=None, config=None):
        last = messages[-1]
        if last.get("role") == "tool":
            return True, f"Legal, because {last['content']}."
        return True, {"content": None, "tool_calls": [call]}

    lawyer.register_reply([autogen.Agent, None], think)
    report, _ = run("print(lawyer('is it legal?'))", [agent_plugin(lawyer)])

    assert "Legal, because article 5 allows it." in report


def test_what_code_writes_to_an_agent_moves_no_terminal(agent, served, run, capsys):
    lawyer = agent("lawyer", description="Knows the law.", llm_config=served("It is legal.", "So it is."))
    ask = r"lawyer('\x1b[2Jis it\u202e\x9b31m\n\tlegal?')"
    run(f"{ask}; {ask}", [agent_plugin(lawyer, remember=True)])

    assert [message["content"] for message in served.requests[1]["messages"] if message["role"] == "user"] == [
        "\\x1b[2Jis it\\u202e\\x9b31m\n\tlegal?"
    ] * 2
    assert not set("\x1b[2J\u202e\x9b") & {"\u202e", "\x9b"} & set(capsys.readouterr().out)


def test_each_call_is_a_conversation_of_its_own_unless_it_is_to_remember(agent, served, run):
    replies = ["One.", "Two.", "Three.", "Four."]
    lawyer = agent("lawyer", description="Knows the law.", llm_config=served(*replies))
    plugins = [agent_plugin(lawyer, name="fresh"), agent_plugin(lawyer, name="friend", remember=True)]
    run("fresh('a'); fresh('b'); friend('c'); print(friend('d'))", plugins)
    lengths = [len(request["messages"]) for request in served.requests]

    assert lengths == [2, 2, 2, 4]


def test_an_agent_forgets_those_who_asked(agent, served, run):
    lawyer = agent("lawyer", description="Knows the law.", llm_config=served("One."))
    run("lawyer('a')", [agent_plugin(lawyer)])

    assert not lawyer.chat_messages


def test_code_gets_a_checked_dictionary_and_the_agent_is_asked_again_if_it_does_not_fit(agent, served, run):
    replies = ("Yes, it is!", '{"legal": "perhaps"}', '```json\n{"legal": true, "why": "article 5"}\n```')
    lawyer = agent("lawyer", description="Knows the law.", llm_config=served(*replies))
    report, _ = run("print(lawyer('is it?')['why'])", [agent_plugin(lawyer, returns=Verdict)])

    assert "Printed:\narticle 5" in report
    assert '"legal"' in served.requests[0]["messages"][-1]["content"]
    assert "legal: Input should be a valid boolean" in served.requests[2]["messages"][-1]["content"]


def test_an_answer_that_never_fits_is_an_exception_in_the_cell(agent, served, run):
    lawyer = agent("lawyer", description="Knows the law.", llm_config=served("No.", "No.", "No."))
    report, _ = run(_TRY.format("lawyer('is it?')"), [agent_plugin(lawyer, returns=Verdict)])

    assert "lawyer gave no usable answer in 3 tries" in report


def test_tables_and_long_texts_travel_as_files(agent, served, run):
    lawyer = agent("lawyer", description="Knows the law.", llm_config=served("Seen."))
    takes = {"question": "str", "table": "DataFrame", "contract": "str"}
    run(
        "import pandas as pd\nt = pd.DataFrame({'a': range(100)})\nlawyer('is it legal?', t, 'word ' * 2000)",
        [agent_plugin(lawyer, parameters=takes)],
    )
    asked = served.requests[0]["messages"][-1]["content"]
    table = Path(asked.partition("a table in ")[2].partition(",")[0])
    contract = Path(asked.partition("a text in ")[2].partition(",")[0])

    assert "question: is it legal?" in asked
    assert "100 rows; columns: a (int64)" in asked
    assert table.read_text().splitlines()[:2] == ["a", "0"]
    assert contract.read_text() == "word " * 2000
    assert len(asked) < 2500


def test_files_of_an_agent_come_back_and_files_from_elsewhere_do_not(agent, tmp_path, run):
    secret = tmp_path / "secret.txt"
    secret.write_text("not for code")
    inner_model = ScriptedModel(
        [plans("draw"), codes("open('map.txt', 'w').write('here')"), plans(f"[s]({secret.as_uri()})", to="User")]
    )
    with TaskWeaverAgent("mapper", model=inner_model, llm_config=False, workspace=tmp_path) as mapper:
        report, _ = run("print(mapper('draw a map'))\nprint(open('map.txt').read())", [agent_plugin(mapper)])

    assert "here" in report
    assert "Files: map.txt" in report
    assert secret.as_uri() in report  # as words only
    assert not list(tmp_path.glob("session-*/files/secret.txt"))


@pytest.mark.parametrize("asked_as", ["plugin", "role"])
def test_of_a_code_executors_folder_only_what_was_made_for_the_question_comes_back(
    agent, tmp_path, monkeypatch, run, asked_as
):
    work, hour_ns = tmp_path / "work", 3_600_000_000_000
    monkeypatch.setattr(agent_files, "_CLOCKS_NS", -hour_ns)  # what is here now counts as an hour old
    (work / "sub").mkdir(parents=True)
    for name in ("credentials.json", "sub/private.csv", "changed.csv"):
        (work / name).write_text(f"CANARY {name}")
    executor = autogen.coding.LocalCommandLineCodeExecutor(work_dir=str(work))
    helper = agent("helper", description="Runs code.", code_execution_config={"executor": executor})

    def reply(recipient, messages=None, sender=None, config=None):
        (work / "new.csv").write_text("new")
        for name in ("new.csv", "changed.csv"):
            os.utime(work / name, ns=(time.time_ns() + 2 * hour_ns,) * 2)
        return True, "[a](credentials.json) [b](sub/private.csv) [c](changed.csv) [d](new.csv)"

    helper.register_reply([autogen.Agent, None], reply)
    if asked_as == "plugin":
        run("print(helper('Repeat the links.'))", [agent_plugin(helper)])
    else:
        model = ScriptedModel([plans("Repeat the links.", to="helper"), plans("Done.", to="User")])
        with TaskWeaverAgent(
            model=model, llm_config=False, roles=["planner", agent_role(helper)], workspace=tmp_path
        ) as worker:
            agent().initiate_chat(worker, message="do it", **QUIET)

    brought = {path.name for path in tmp_path.glob("session-*/files/*") if not path.name.startswith(".")}
    assert brought == {"changed.csv", "new.csv"}


def test_a_table_is_handed_over_to_another_taskweaver(tmp_path, run):
    inner_model = ScriptedModel(
        [
            plans("sum"),
            codes("import pandas as pd, glob\npd.read_csv(glob.glob('*.csv')[0]).a.sum().item()"),
            plans("6", to="User"),
        ]
    )
    with TaskWeaverAgent("summer", model=inner_model, llm_config=False, workspace=tmp_path) as summer:
        run(
            "import pandas as pd\nsummer(pd.DataFrame({'a': [1, 2, 3]}))",
            [agent_plugin(summer, parameters={"table": "DataFrame"})],
        )

    assert "Result:\n6" in inner_model.calls[2][-1]["content"]


def test_calls_side_by_side_meet_in_the_agent(agent, run):
    together = threading.Barrier(3, timeout=60)
    lawyer = agent("lawyer", description="Knows the law.")

    def think(recipient, messages=None, sender=None, config=None):
        together.wait()
        return True, f"{messages[-1]['content']} is legal"

    lawyer.register_reply([autogen.Agent, None], think)
    report, _ = run("print([t.result() for t in [lawyer.submit(x) for x in 'abc']])", [agent_plugin(lawyer)])

    assert "['a is legal', 'b is legal', 'c is legal']" in report


def test_more_calls_than_allowed_are_refused_in_the_cell(agent, run):
    lawyer = agent("lawyer", "Legal.", description="Knows the law.")
    report, _ = run(_TRY.format("[lawyer(x) for x in 'abc']"), [agent_plugin(lawyer, calls=2)])

    assert "HostCallBudgetError: lawyer may be called 2 times for one request" in report


def test_an_agent_that_fails_is_an_exception_in_the_cell(agent, run):
    lawyer = agent("lawyer", description="Knows the law.")

    def fail(recipient, messages=None, sender=None, config=None):
        raise ValueError("the law is out of order")

    lawyer.register_reply([autogen.Agent, None], fail)
    report, _ = run(_TRY.format("lawyer('?')"), [agent_plugin(lawyer)])

    assert "ValueError: the law is out of order" in report


def test_an_agent_without_description_is_refused(agent):
    with pytest.raises(ConfigError, match="say with description="):
        agent_plugin(agent("lawyer", description=""))
    with pytest.raises(ConfigError, match="say with intro="):
        agent_role(agent("lawyer", description=""))


# Roles.


def test_the_planner_writes_to_an_agent_as_to_a_worker(agent, served, tmp_path):
    lawyer = agent("lawyer", description="Knows the law.", llm_config=served("It is legal.", "Still."))
    model = ScriptedModel(
        [
            plans("is it?", to="lawyer"),
            plans("It is.", to="User"),
            plans("still?", to="lawyer"),
            plans("Yes.", to="User"),
        ]
    )
    with TaskWeaverAgent(
        model=model, llm_config=False, roles=["planner", agent_role(lawyer)], workspace=tmp_path
    ) as worker:
        person = agent()
        person.initiate_chat(worker, message="is it legal?", **QUIET)
        result = person.initiate_chat(worker, message="still?", clear_history=False, **QUIET)
        rounds = worker.session(person).rounds

    assert result.summary == "Yes."
    assert [len(one.posts) for one in rounds] == [4, 4]
    assert "## lawyer\nKnows the law." in model.calls[0][0]["content"]
    assert "The User's request:\nis it legal?" in served.requests[0]["messages"][-1]["content"]
    assert len(served.requests[1]["messages"]) == 4  # it remembers within the session


def test_an_agent_that_fails_is_a_post_for_the_planner(agent, tmp_path):
    lawyer = agent("lawyer", description="Knows the law.")

    def fail(recipient, messages=None, sender=None, config=None):
        raise ConnectionError("server away")

    lawyer.register_reply([autogen.Agent, None], fail)
    model = ScriptedModel([plans("is it?", to="lawyer"), plans("Nobody knows.", to="User")])
    roles = ["planner", agent_role(lawyer)]
    with TaskWeaverAgent(model=model, llm_config=False, roles=roles, workspace=tmp_path) as worker:
        result = agent().initiate_chat(worker, message="is it legal?", **QUIET)

    assert result.summary == "Nobody knows."
    assert "From: lawyer\nthe role lawyer failed: ConnectionError: server away" in model.calls[1][-1]["content"]


def test_every_session_has_a_conversation_of_its_own_with_the_agent(agent, served, tmp_path):
    lawyer = agent("lawyer", description="Knows the law.", llm_config=served("One.", "Two."))
    model = ScriptedModel(2 * [plans("is it?", to="lawyer"), plans("It is.", to="User")])
    with TaskWeaverAgent(
        model=model, llm_config=False, roles=["planner", agent_role(lawyer)], workspace=tmp_path
    ) as worker:
        for name in ("ann", "bob"):
            agent(name).initiate_chat(worker, message="is it legal?", **QUIET)

    assert [len(request["messages"]) for request in served.requests] == [2, 2]


# Meshes.


def weaver(name, tmp_path, steps, plugins=()):
    return TaskWeaverAgent(
        name, model=ScriptedModel(steps), llm_config=False, plugins=plugins, workspace=tmp_path, description=name
    )


def test_three_weavers_in_a_row_each_with_a_kernel_of_its_own(agent, tmp_path):
    inner = weaver("inner", tmp_path, [plans("go"), codes("x = 3\nx"), plans("three", to="User")])
    middle = weaver(
        "middle", tmp_path, [plans("go"), codes("x = 2\nprint(inner('go'), x)"), plans("two", to="User")],
        [agent_plugin(inner)],
    )  # fmt: skip
    outer = weaver(
        "outer", tmp_path, [plans("go"), codes("x = 1\nprint(middle('go'), x)"), plans("one", to="User")],
        [agent_plugin(middle)],
    )  # fmt: skip
    with inner, middle, outer:
        person = agent()
        assert person.initiate_chat(outer, message="go", **QUIET).summary == "one"
        assert "Printed:\ntwo 1" in outer.session(person).rounds[0].posts[2].message


def test_a_ring_is_refused_with_the_chain(agent, tmp_path):
    ring = {}

    def call_next(name, following):
        catch = _TRY.format(f"{following}('go')")
        return weaver(
            name, tmp_path, [plans("go"), codes(catch), lambda messages: plans(messages[-1]["content"], to="User")],
            [agent_plugin(_Later(ring, following), name=following, description="next")],
        )  # fmt: skip

    for name, following in (("ann", "bob"), ("bob", "cid"), ("cid", "ann")):
        ring[name] = call_next(name, following)
    try:
        said = agent().initiate_chat(ring["ann"], message="go", **QUIET).summary
    finally:
        for one in ring.values():
            one.close()

    assert "ann → bob → cid → ann: an agent can't be called from its own work" in said


def test_one_agent_serves_two_at_once(agent, tmp_path):
    expert = TaskWeaverAgent(
        "expert", llm_config=False, workspace=tmp_path, description="expert",
        model=ScriptedModel([lambda told: plans(f"seen {told[-1]['content'].splitlines()[1][-1]}", to="User")] * 2),
    )  # fmt: skip
    both = [
        weaver(
            f"w{i}",
            tmp_path,
            [plans("go"), codes(f"print(expert('q{i}'))"), plans("ok", to="User")],
            [agent_plugin(expert)],
        )
        for i in range(2)
    ]
    people = [agent("ann"), agent("bob")]
    with expert, both[0], both[1]:
        threads = [
            threading.Thread(target=person.initiate_chat, args=(one,), kwargs={"message": "go", **QUIET})
            for person, one in zip(people, both, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(90)
        seen = [one.session(person).rounds[0].posts[2].message for person, one in zip(people, both, strict=True)]

    assert ["seen 0" in seen[0], "seen 1" in seen[1]] == [True, True]


class _Later:
    """Stands for an agent that does not exist yet: a ring can't be made otherwise."""

    def __init__(self, ring, name):
        self._ring, self._name = ring, name

    @property
    def __class__(self):
        return type(self._ring[self._name]) if self._name in self._ring else _Later

    def __getattr__(self, attribute):
        return getattr(self._ring[self._name], attribute)
