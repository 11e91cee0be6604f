"""What the agent's arguments may be, and what a wrong one is told before the first message."""

import asyncio

import pytest

from tw_autogen.errors import ConfigError
from tw_autogen.testing import codes


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
