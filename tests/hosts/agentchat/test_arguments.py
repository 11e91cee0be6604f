"""What the agent's arguments may be, and what a wrong one is told before the first message."""

import asyncio
import functools

import pytest
from pydantic import BaseModel, Field

from tw_autogen.errors import ConfigError
from tw_autogen.testing import ScriptedModel, codes, plans

pytest.importorskip("autogen_agentchat", reason="the host is an extra: tw-autogen[agentchat]")
from autogen_core import CancellationToken
from autogen_core.tools import BaseTool, FunctionTool


def test_a_single_file_plugin_and_role_need_no_list(worker, tmp_path):
    (tmp_path / "sales.csv").write_text("a\n1\n", encoding="utf-8")
    how = {"roles": "code_interpreter", "plugins": "time_parts", "files": str(tmp_path / "sales.csv")}
    agent = worker(codes("import os"), codes("6 * 7"), policy="strict", **how)

    async def ask():
        said = await agent.run(task="look")
        copied = (agent.session.folder / "sales.csv").is_file()
        await agent.close()
        return said.messages[-1].content, copied

    answer, copied = asyncio.run(ask())
    assert "42" in answer
    assert copied


class _Place(BaseModel):
    """Where to look."""

    city: str = Field(description="a city's name")
    days: int = 1


class _Weather(BaseTool[_Place, str]):
    def __init__(self):
        super().__init__(_Place, str, "weather", "Tell the weather.")

    async def run(self, args, cancellation_token):
        return f"{args.city} for {args.days}: dry"


def _add(a: int, b: int = 2) -> int:
    return a + b


async def _later(names: list[str], cancellation_token: CancellationToken) -> str:
    return f"{'+'.join(names)} {cancellation_token.is_cancelled()}"


@pytest.mark.parametrize(
    ("tool", "call", "said"),
    [
        (FunctionTool(_add, description="Add.", name="add"), "add(40)", "42"),
        (FunctionTool(_add, description="Add.", name="add"), "add(b=1, a=2)", "3"),
        (FunctionTool(_add, description="Add."), "_add(40)", "42"),
        (FunctionTool(functools.partial(_add, b=5), description="Add.", name="add"), "add(a=1)", "6"),
        (FunctionTool(_later, description="Join."), "_later(['x', 'y'])", "x+y False"),
        (_Weather(), "weather('Oslo')", "Oslo for 1: dry"),
        (_Weather(), "weather(city='Oslo', days=3)", "Oslo for 3: dry"),
        (FunctionTool(_add, description="Add.", name="add"), "add('a')", "a: expected int, got str: 'a'"),
        (FunctionTool(_add, description="Add.", name="add"), "add(1, 2, 3)", "too many positional arguments"),
        (FunctionTool(_add, description="Add.", name="add"), "add(1, c=3)", "unexpected keyword argument 'c'"),
    ],
)
def test_a_tool_of_the_host_is_a_plugin(worker, tool, call, said):
    code = f"try:\n    print({call})\nexcept Exception as error:\n    print(str(error).replace('\\n', ': '))"
    agent = worker(codes(code), plugins=[tool], roles="code_interpreter")

    async def ask():
        answered = await agent.run(task="go")
        await agent.close()
        return answered.messages[-1].content

    assert said in asyncio.run(ask())


def test_a_tool_whose_name_code_can_not_write_is_refused_with_its_name(worker):
    with pytest.raises(ConfigError, match="'two words' can't be a function's name"):
        worker(plugins=[FunctionTool(_add, description="Add.", name="two words")])


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [({"model": "m1"}, r"model: 'm1' \(str\) is no model"), ({"policy": "strickt"}, "did you mean 'strict'")],
)
def test_what_is_no_model_or_no_policy_is_told_at_once(worker, wrong, problem):
    with pytest.raises(ConfigError, match=problem):
        worker(**wrong)


@pytest.mark.parametrize(
    ("settings", "rules"), [({}, "Answer in Dutch."), ({"planner.instructions": "In Danish."}, "In Danish.")]
)
def test_a_system_message_is_house_rules_as_in_the_other_lineage(worker, finish, settings, rules):
    model = ScriptedModel([plans("Goed.", to="User")])
    agent = worker(model=model, system_message="Answer in Dutch.", settings=settings)

    async def ask():
        await agent.run(task="How is it?")
        await agent.close()

    finish(ask())
    assert rules in str(model.calls[0])
    assert ("Dutch" in str(model.calls[0])) == (rules == "Answer in Dutch.")


def test_a_system_message_is_written_down_with_the_agent(worker):
    agent = worker(system_message="Answer in Dutch.")
    again = type(agent).load_component(agent.dump_component())

    assert again.dump_component().config["system_message"] == "Answer in Dutch."
