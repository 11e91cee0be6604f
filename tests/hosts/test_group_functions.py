"""Functions that are written for the host's groups: context variables that it injects, and results that hand over."""

import asyncio
import functools
import importlib
from typing import Annotated

import pandas as pd
import pytest

from tw_autogen.errors import ConfigError
from tw_autogen.testing import codes, plans

autogen = pytest.importorskip("autogen", reason="the host is an extra; `make test` installs it")
conversable = pytest.importorskip("tw_autogen.hosts.conversable")
CodeInterpreterAgent, PlannerAgent = conversable.CodeInterpreterAgent, conversable.PlannerAgent
SharedSession, TaskWeaverAgent = conversable.SharedSession, conversable.TaskWeaverAgent
CallVariables = importlib.import_module("tw_autogen.hosts.conversable.json_variables").CallVariables
group = pytest.importorskip("autogen.agentchat.group", reason="this host has no groups with context variables")
patterns = pytest.importorskip("autogen.agentchat.group.patterns")
tools = pytest.importorskip("autogen.tools")
ChatContext = tools.ChatContext
AgentTarget, ContextVariables, ReplyResult = group.AgentTarget, group.ContextVariables, group.ReplyResult


def submit_draft(title: str, words: int, context_variables: ContextVariables) -> ReplyResult:
    """Submit a draft for review."""
    context_variables["draft"] = {"title": title, "words": words}
    context_variables["stage"] = "review"
    return ReplyResult(message="Submitted.", context_variables=context_variables)


async def look_up(context_variables: ContextVariables, key: str) -> "ReplyResult":
    """Look a word of the group up."""
    await asyncio.sleep(0)
    return ReplyResult(message=str(context_variables.get(key)), target=AgentTarget(asked_next[0]))


group_chat = autogen.agentchat.initiate_group_chat
asked_next = []
CODE = "print(submit_draft(title='Tides', words=3)); print(look_up('owner'))"


def talk(worker, agents, user, variables):
    pattern = patterns.DefaultPattern(
        initial_agent=worker, agents=agents, user_agent=user, context_variables=ContextVariables(data=variables)
    )
    result, seen, last = group_chat(pattern=pattern, messages="Write.", max_rounds=4)
    return [(one["name"], one["content"]) for one in result.chat_history], seen


def note(key: str, value, context_variables: ContextVariables) -> str:
    """Note a value."""
    context_variables[key] = value
    context_variables["log"].append(value)
    return type(value).__name__


def set_count(count) -> ReplyResult:
    """Set the count."""
    return ReplyResult(message=type(count).__name__, context_variables=ContextVariables(data={"count": count}))


async def look(table) -> ReplyResult:
    """Look at a cell."""
    await asyncio.sleep(0)
    return ReplyResult(message="looked", context_variables=ContextVariables(data={"cell": table["status"].iloc[0]}))


VALUES = """\
import datetime, decimal, pathlib
import numpy as np, pandas as pd
chosen = pd.Series(['a text'], name='x')
values = {'path': pathlib.PurePosixPath('/a'), 'day': datetime.date(2026, 1, 2), 'number': 2, 'text': 'a${b}',
    'none': None, 'table': pd.DataFrame({'a': [1, 2], 'b': [decimal.Decimal('1.5'), chosen]}, dtype=object),
    'series': chosen,
    'array': np.array([[1, 2]]), 'nested': {'k': [(chosen,)]}}
print([note(name, one) for name, one in values.items()])
print(set_count(chosen), look(pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([('status', ' ')]))))
"""
SERIES = ["a text"]


def test_what_goes_into_a_groups_variables_is_json(served, tmp_path):
    config = served(plans("note"), codes(VALUES), plans("Noted.", to="User"))
    own = pd.DataFrame({"own": [1]})
    functions = [note, set_count, look]
    with TaskWeaverAgent("writer", llm_config=config, workspace=tmp_path, plugins=functions) as worker:
        worker.context_variables.update({"mine": own, "log": [own], "kept": "${kept}"})
        worker.generate_reply([{"role": "user", "content": "Note."}])
        found = worker.context_variables.to_dict()

    assert "['str', 'date', 'int', 'str', 'NoneType', 'DataFrame', 'Series', 'ndarray', 'dict']" in str(
        served.requests[-1]["messages"][-1]["content"]
    )
    assert found.pop("mine") is own
    assert found.pop("kept") == "${kept}"
    assert found["log"][0] is own
    assert found.pop("log")[6:] == [found[name] for name in ("table", "series", "array", "nested")]
    assert {name: one for name, one in found.items() if not name.startswith("tw_")} == {
        "path": "/a",
        "day": "2026-01-02",
        "number": 2,
        "text": "a$ {b}",
        "none": None,
        "table": [{"a": 1, "b": "1.5"}, {"a": 2, "b": SERIES}],
        "series": SERIES,
        "array": [[1, 2]],
        "nested": {"k": [(SERIES,)]},
        "count": SERIES,
        "cell": [1],
    }


MARKER = "+str(__import__('pathlib').Path('/nowhere/canary').write_text('x')))}#"
HOSTILE = {
    "a text": "'+evil+' ${topic}",
    "a set": {MARKER, "${topic}"},
    "a set of tuples": {(MARKER, "${topic}")},
    "a frozen set": frozenset({(MARKER, frozenset({"${topic}"}))}),
    "a tuple": (MARKER, "${topic}"),
    "bytes": b"+evil ${topic}",
    "infinity": float("-inf"),
    "no number": {float("nan")},
}


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_a_condition_that_names_a_variable_twice_evaluates_nothing_of_codes_text(value):
    shared = ContextVariables(data={"topic": "", "kept": "${topic}", "seen": {"${topic}"}})
    call, later = CallVariables(shared), CallVariables(shared)
    call.variables["topic"] = value
    call.variables["seen"].add(MARKER)
    meanwhile = dict(shared.to_dict())
    call.give_back()
    later.give_back()

    assert meanwhile == {"topic": "", "kept": "${topic}", "seen": {"${topic}"}}
    assert shared["kept"] == "${topic}"
    assert "${" not in str(shared["topic"]) + str(shared["seen"])
    condition = group.ContextExpression("${topic} == 'sales' or ${topic} == 'stock' or ${seen} == 'stock'")
    assert condition.evaluate(shared) is False


def test_calls_at_a_time_change_what_they_change_and_no_more():
    shared = ContextVariables(data={"a": 1, "b": 2, "c": 3, "seen": {1}})
    first, second = CallVariables(shared), CallVariables(shared)
    first.variables["a"] = 10
    del first.variables["c"]
    second.variables["b"] = 20
    second.variables["text"] = "${x}"
    third = CallVariables(shared)
    second.give_back()
    first.give_back()
    third.variables["text"] = "${x}"
    third.give_back()

    assert shared.to_dict() == {"a": 10, "b": 20, "seen": {1}, "text": "$ {x}"}


def chosen_folder() -> str:
    return "the user's"


async def read_note(
    name: str,
    context_variables: ContextVariables,
    folder: Annotated[str, tools.Depends(chosen_folder)],
    more: str = tools.Depends(chosen_folder),
) -> str:
    """Read a note by its plain name."""
    await asyncio.sleep(0)
    return f"{name} of {folder} and {more}, {len(context_variables)}"


READS = """\
print(read_note('a'))
for given in ({'folder': 'mine'}, {'more': 'mine'}, {'context_variables': {}}):
    try: print(read_note('a', **given))
    except Exception as error: print('refused:', error)
try: print(read_note('a', 'mine'))
except Exception as error: print('refused:', error)
"""


@pytest.mark.parametrize("how", ["functions", "plugins", "registered"])
def test_what_the_host_injects_is_given_by_no_code(served, tmp_path, how):
    config = served(plans("read"), codes(READS), plans("Read.", to="User"))
    given = {} if how == "registered" else {how: [read_note]}
    with TaskWeaverAgent("reader", llm_config=config, workspace=tmp_path, **given) as worker:
        if how == "registered":
            worker.register_for_llm(description="Read a note.")(read_note)
        worker.generate_reply([{"role": "user", "content": "Read."}])

    prompt, told = str(served.requests[1]["messages"]), str(served.requests[-1]["messages"][-1]["content"])
    assert "def read_note(name: str)" in prompt
    assert "a of the user's and the user's, " in told
    assert told.count("refused:") == 4
    assert "mine and" not in told


def test_what_cannot_be_injected_is_an_error_and_never_asked_of_code(served, tmp_path):
    partial = functools.partial(read_note, more="mine")

    with pytest.raises(ConfigError, match="read_note: its `Depends` can't be injected .*; give the function itself"):
        TaskWeaverAgent("reader", llm_config=served(), workspace=tmp_path, plugins=[partial])


def test_a_function_that_wants_a_context_of_the_hosts_executor_is_refused(served, tmp_path):
    def look_back(word: str, chat: ChatContext) -> str:
        """Look for a word."""
        return word

    with pytest.raises(ConfigError, match="look_back: chat: a ChatContext is given by the host's own executor only"):
        TaskWeaverAgent("reader", llm_config=served(), workspace=tmp_path, plugins=[look_back])


@pytest.mark.parametrize("how", ["functions", "plugins", "registered"])
def test_code_calls_a_groups_function_and_the_group_has_its_variables_and_its_target(served, agent, tmp_path, how):
    config = served(plans("draft"), codes(CODE), plans("The draft is in.", to="User"))
    given = {} if how == "registered" else {how: [submit_draft, look_up]}
    with TaskWeaverAgent("writer", llm_config=config, workspace=tmp_path, **given) as worker:
        if how == "registered":
            for one in (submit_draft, look_up):
                worker.register_for_llm(description=one.__doc__)(one)
        critic = agent("critic", "Too short.")
        asked_next[:] = [critic]
        said, seen = talk(worker, [worker, critic], agent(), {"owner": "Ann"})

    assert said[1:] == [("writer", "The draft is in."), ("critic", "Too short.")]
    assert seen["draft"] == {"title": "Tides", "words": 3}
    assert seen["stage"] == "review"
    asked = str(served.requests[-1]["messages"])
    assert "Submitted." in asked
    assert "Ann" in asked
    prompt = str(served.requests[1]["messages"])
    assert "def submit_draft(title: str, words: int)" in prompt
    assert "context_variables" not in prompt


def test_each_group_has_variables_of_its_own_while_sessions_are_open(served, agent, tmp_path):
    replies = [plans("draft"), codes("print(submit_draft('A', 1))"), plans("done", to="User")]
    with TaskWeaverAgent(
        "writer", llm_config=served(*replies, *replies), functions=submit_draft, workspace=tmp_path
    ) as worker:
        drafts = [talk(worker, [worker], agent(), {"group": number})[1].to_dict() for number in (1, 2)]

    assert [(draft["group"], draft["draft"]["title"]) for draft in drafts] == [(1, "A"), (2, "A")]


def test_a_coder_of_a_shared_session_takes_them_too_and_in_a_chat_of_two_its_own_variables_count(
    served, agent, tmp_path
):
    with SharedSession(workspace=tmp_path) as shared:
        worker = CodeInterpreterAgent(llm_config=served(codes(CODE)), functions=[submit_draft, look_up], session=shared)
        asked_next[:] = [worker]
        worker.context_variables["owner"] = "Bo"
        said = agent().initiate_chat(worker, message="draft", max_turns=1, silent=True).chat_history[-1]["content"]

    assert "Bo" in said
    assert worker.context_variables["stage"] == "review"


def test_code_that_runs_while_no_agent_answers_is_told_that_there_are_no_variables(served, agent, tmp_path):
    with TaskWeaverAgent("writer", llm_config=served(), workspace=tmp_path, functions=[submit_draft]) as worker:
        said = worker.session(agent()).run_code("submit_draft(title='Tides', words=3)").text

    assert "context_variables are those of an agent that answers a message, and none does now" in said


def test_functions_that_no_role_can_call_are_refused_in_words(served, tmp_path):
    def mute(x: int) -> int:
        return x

    with pytest.raises(ConfigError, match="tw: mute has no docstring that says what it does"):
        TaskWeaverAgent("tw", llm_config=served(), functions=[mute], workspace=tmp_path)
    with pytest.raises(ConfigError, match="tw: functions= takes functions, got str"):
        TaskWeaverAgent("tw", llm_config=served(), functions=["mute"], workspace=tmp_path)
    with pytest.raises(ConfigError, match="Planner: this agent runs no code that could call a tool"):
        PlannerAgent(llm_config=served(), functions=[submit_draft], session=SharedSession(workspace=tmp_path))
