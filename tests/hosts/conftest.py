"""What the tests of the host's agents have in common: recorded replies on loopback, and a user who says one thing."""

from contextlib import ExitStack

import pytest

from tw_autogen.testing import replay_server

try:
    import autogen
except ImportError:
    autogen = None  # the tests themselves are skipped, each with its reason


def pytest_collection_modifyitems(items):
    """The lineage 0.2 opens event loops in threads that it never closes; their warnings come up in any later test."""
    if autogen is not None and not hasattr(autogen.ConversableAgent, "run"):
        for item in items:
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


class ReplyServers:
    """Serves replies, each call a server of its own; `requests` are those of all servers, in order of the servers."""

    def __init__(self, stack):
        self._stack = stack
        self.servers = []

    def __call__(self, *replies, **more):
        """Serve replies, and give the `llm_config` that points there."""
        self.servers.append(self._stack.enter_context(replay_server(list(replies))))
        entry = {"model": "recorded", "api_key": "none", "base_url": self.servers[-1].base_url, "price": [1, 2]}
        return {"config_list": [entry], "cache_seed": None, **more}

    @property
    def requests(self):
        return [request for server in self.servers for request in server.requests]


@pytest.fixture
def served():
    with ExitStack() as stack:
        yield ReplyServers(stack)


@pytest.fixture
def agent():
    """Make a plain agent of the host's; without a model it says one thing, or nothing."""

    def make(name="user", says="", **more):
        how = {"llm_config": False, "human_input_mode": "NEVER", "default_auto_reply": says, **more}
        return autogen.ConversableAgent(name, **how)

    return make


@pytest.fixture
def group(agent):
    """Put agents into a group, have the first one ask, and give what was said: (name, words) in order."""

    def chat(agents, message, *, rounds=8, method="round_robin", clear_history=True, **more):
        made = autogen.GroupChat(agents=agents, messages=[], max_round=rounds, speaker_selection_method=method, **more)
        manager = autogen.GroupChatManager(made, llm_config=False)
        agents[0].initiate_chat(manager, message=message, silent=True, clear_history=clear_history)
        return [(one["name"], one["content"]) for one in made.messages], manager

    return chat


class Shown:
    """Takes the place of the host's output; `text` is what a person would see."""

    def __init__(self):
        self.text = ""

    def print(self, *objects, sep=" ", end="\n", flush=False):
        self.text += sep.join(map(str, objects)) + end

    def send(self, event):
        event.print(self.print)

    def input(self, prompt="", *, password=False):
        raise AssertionError(f"nobody is to be asked: {prompt}")


@pytest.fixture
def shown():
    """Give what the host shows while a test runs."""
    shown = Shown()
    with autogen.io.IOStream.set_default(shown):
        yield shown
