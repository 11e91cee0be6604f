"""Whether packages may be installed is asked of whoever the agent was given for it."""

import pytest

from tw_autogen.errors import ConfigError
from tw_autogen.events import CellRan
from tw_autogen.testing import codes, plans

REPLIES = (plans("install"), codes("%pip install tw-nothing"), codes("1"), plans("tried.", to="User"))
ASK = {"kernel.install": "ask"}


@pytest.mark.parametrize(
    ("allowed", "words"),
    [(False, "the User does not allow installing tw-nothing"), (True, "pip could not install tw-nothing")],
)
def test_whoever_was_given_is_asked_and_decides(worker, finish, monkeypatch, allowed, words):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    asked = []

    def approve(proposal):
        asked.append((proposal.kind, proposal.text))
        return allowed

    events = []
    agent = worker(*REPLIES, settings=ASK, approve=approve, handlers=[events.append])
    finish(agent.run(task="install it"))

    assert asked == [("packages", "tw-nothing")]
    assert words in str([event for event in events if isinstance(event, CellRan)])
    finish(agent.close())


def test_without_anybody_nothing_is_installed(worker, finish):
    events = []
    agent = worker(*REPLIES, settings=ASK, handlers=[events.append])
    finish(agent.run(task="install it"))

    assert "nobody is here to be asked" in str([event for event in events if isinstance(event, CellRan)])
    finish(agent.close())


def test_a_function_that_decides_is_not_written_down(worker):
    with pytest.raises(ConfigError, match="can't be written down as a component, because of: approve"):
        worker(*REPLIES, approve=lambda names: False).dump_component()


def test_what_can_not_be_asked_is_told_when_the_agent_is_made(worker):
    with pytest.raises(ConfigError, match="approve: expected a function that takes a proposal, found bool"):
        worker(approve=True)
