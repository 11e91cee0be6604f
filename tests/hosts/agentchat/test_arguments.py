"""What the agent's arguments may be, and what a wrong one is told before the first message."""

import asyncio

import pytest

from tw_autogen.errors import ConfigError
from tw_autogen.testing import ScriptedModel, codes, plans


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
