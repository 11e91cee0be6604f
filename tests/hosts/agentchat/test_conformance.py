"""The adapter for agentchat passes what every host adapter must do."""

import asyncio

import pytest

from tw_autogen.testing import HOST_CHECKS

pytest.importorskip("autogen_agentchat", reason="the host is an extra: tw-autogen[agentchat]")
from autogen_agentchat.agents import AssistantAgent
from autogen_core import CancellationToken
from autogen_ext.models.replay import ReplayChatCompletionClient

from tw_autogen.hosts.agentchat import TaskWeaverAgent, agent_plugin, agent_role


class Driver:
    """Runs of one agent, on one loop."""

    def __init__(self, workspace, runner):
        self._workspace = workspace
        self._run = runner.run
        self._spent = 0

    def open(self, model, **more):
        return TaskWeaverAgent(model=model, workspace=self._workspace, **more)

    def ask(self, agent, text, *, fresh=False):
        if fresh:
            self._run(agent.on_reset(CancellationToken()))
        message = self._run(agent.run(task=text)).messages[-1]
        self._spent += message.models_usage.prompt_tokens
        return message.content

    def rounds(self, agent):
        return agent.session.rounds

    def spent(self, agent):
        return self._spent

    def speaker(self, name, words):
        return AssistantAgent(name, ReplayChatCompletionClient([words]), description="Speaks.")

    def as_plugin(self, speaker):
        return agent_plugin(speaker)

    def as_role(self, speaker):
        return agent_role(speaker)

    def close(self, agent):
        self._run(agent.close())


class Runner:
    """A loop for a whole test; Python 3.10 has no asyncio.Runner."""

    def __enter__(self):
        self._loop = asyncio.new_event_loop()
        return self

    def run(self, work):
        return self._loop.run_until_complete(asyncio.wait_for(work, 60))

    def __exit__(self, *how):
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


@pytest.mark.parametrize("name", HOST_CHECKS)
def test_it_holds_that(name, tmp_path):
    with Runner() as runner:
        HOST_CHECKS[name](Driver(tmp_path, runner))
