"""What the tests of agentchat's adapter have in common."""

import asyncio

import pytest

INFO = {"vision": True, "function_calling": True, "json_output": True, "family": "unknown", "structured_output": False}


@pytest.fixture
def info():
    """Give what a client says of its model, changed where a test wants it."""
    return lambda **more: {**INFO, **more}


@pytest.fixture
def finish():
    """Run a coroutine to its end on a loop of its own."""
    return lambda work: asyncio.run(asyncio.wait_for(work, 60))


@pytest.fixture
def worker(tmp_path):
    """Make an agent whose roles ask a client that replays."""
    replay = pytest.importorskip("autogen_ext.models.replay", reason="the host is an extra: tw-autogen[agentchat]")
    agentchat = pytest.importorskip("tw_autogen.hosts.agentchat")

    def make(*replies, name="TaskWeaver", **more):
        client = replay.ReplayChatCompletionClient(list(replies), model_info=INFO)
        return agentchat.TaskWeaverAgent(name, client, workspace=tmp_path, **more)

    return make
