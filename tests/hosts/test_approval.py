"""Whether packages may be installed is asked by the host's own human input."""

import pytest

from tw_autogen.testing import codes, plans

autogen = pytest.importorskip("autogen", reason="the host is an extra; `make test` installs it")
conversable = pytest.importorskip("tw_autogen.hosts.conversable")
approval_by = pytest.importorskip("tw_autogen.hosts.conversable.approval").approval_by
KernelCodeExecutor, TaskWeaverAgent = conversable.KernelCodeExecutor, conversable.TaskWeaverAgent

REPLIES = (plans("install"), codes("%pip install tw-nothing"), codes("1"), plans("tried.", to="User"))
ASK = {"kernel.install": "ask"}


class Watched(TaskWeaverAgent):
    """Has a person who is asked once, and says what it was made to say."""

    def get_human_input(self, prompt, **more):
        self.asked.append(prompt)
        return self.says


@pytest.mark.parametrize(
    ("says", "words"),
    [("no", "the User does not allow installing tw-nothing"), ("y", "pip could not install tw-nothing")],
)
def test_the_agent_s_person_is_asked_and_decides(served, agent, tmp_path, monkeypatch, says, words):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    config = served(*REPLIES)
    with Watched("tw", llm_config=config, human_input_mode="TERMINATE", settings=ASK, workspace=tmp_path) as tw:
        tw.asked, tw.says = [], says
        agent().initiate_chat(tw, message="install it", max_turns=1, silent=True)

    assert tw.asked == ["tw: code wants to install tw-nothing. Allow it? (y/N) "]
    assert words in served.requests[2]["messages"][-1]["content"]


def test_an_agent_without_a_person_installs_nothing(served, agent, tmp_path):
    config = served(*REPLIES)
    with TaskWeaverAgent("tw", llm_config=config, settings=ASK, workspace=tmp_path) as tw:
        agent().initiate_chat(tw, message="install it", max_turns=1, silent=True)

    assert "nobody is here to be asked" in served.requests[2]["messages"][-1]["content"]


def test_a_command_of_a_role_is_asked_for_in_words_of_its_own():
    class Person:
        name, human_input_mode = "tw", "TERMINATE"
        asked: list[str] = []

        def get_human_input(self, prompt):
            self.asked.append(prompt)
            return "yes"

    person = Person()

    assert approval_by([person])(["$ ls -l"]) is True
    assert person.asked == ["tw: a role wants to run ls -l. Allow it? (y/N) "]


def test_an_executor_asks_whom_it_was_given(tmp_path):
    asked = []
    block = autogen.coding.CodeBlock(code="%pip install tw-nothing", language="python")

    with KernelCodeExecutor(folder=tmp_path, settings=ASK, approve=lambda names: asked.extend(names)) as executor:
        result = executor.execute_code_blocks([block])

    assert asked == ["tw-nothing"]
    assert "the User does not allow installing tw-nothing" in result.output
