"""The adapter for ConversableAgent passes what every host adapter must do."""

import pytest

from tw_autogen.testing import HOST_CHECKS, check_host

autogen = pytest.importorskip("autogen", reason="the host is an extra; `make test` installs it")
conversable = pytest.importorskip("tw_autogen.hosts.conversable")


class Driver:
    """Two-agent chats, with one user."""

    def __init__(self, workspace):
        self._workspace = workspace
        self._user = autogen.ConversableAgent("user", llm_config=False, human_input_mode="NEVER")

    def open(self, model, **more):
        return conversable.TaskWeaverAgent(model=model, llm_config=False, workspace=self._workspace, **more)

    def ask(self, agent, text, *, fresh=False):
        chat = self._user.initiate_chat(agent, message=text, max_turns=1, silent=True, clear_history=fresh)
        return chat.chat_history[-1]["content"]

    def rounds(self, agent):
        return agent.session(self._user).rounds

    def spent(self, agent):
        return agent.session(self._user).usage.prompt_tokens

    def speaker(self, name, words):
        return autogen.ConversableAgent(
            name, llm_config=False, human_input_mode="NEVER", default_auto_reply=words, description="Speaks."
        )

    def as_plugin(self, speaker):
        return conversable.agent_plugin(speaker)

    def as_role(self, speaker):
        return conversable.agent_role(speaker)

    def close(self, agent):
        agent.close()


@pytest.mark.parametrize("name", HOST_CHECKS)
def test_it_holds_that(name, tmp_path):  # C15 C37
    HOST_CHECKS[name](Driver(tmp_path))


def test_an_adapter_that_does_not_is_found_out(tmp_path):
    class Talkative(Driver):
        def ask(self, agent, text, *, fresh=False):
            return super().ask(agent, text, fresh=fresh) + "!"

    with pytest.raises(AssertionError, match="one_request_is_four_posts: expected 'It is 42.', found 'It is 42.!'"):
        check_host(Talkative(tmp_path))
