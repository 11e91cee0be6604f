"""Whether packages may be installed is asked by the host's own human input."""

import pytest

from tw_autogen.approval import Decision, Proposal
from tw_autogen.testing import codes, plans

autogen = pytest.importorskip("autogen", reason="the host is an extra; `make test` installs it")
conversable = pytest.importorskip("tw_autogen.hosts.conversable")
approval_by = pytest.importorskip("tw_autogen.hosts.conversable.human_approval").approval_by
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

    assert tw.asked == ["tw: code wants to install tw-nothing for this session. Allow it? (y/N) "]
    assert words in served.requests[2]["messages"][-1]["content"]


def test_an_agent_without_a_person_installs_nothing(served, agent, tmp_path):
    config = served(*REPLIES)
    with TaskWeaverAgent("tw", llm_config=config, settings=ASK, workspace=tmp_path) as tw:
        agent().initiate_chat(tw, message="install it", max_turns=1, silent=True)

    assert "nobody is here to be asked" in served.requests[2]["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ("y", "Result:\n41"),
        ("```python\n42\n```", "Result:\n42"),
        ("take 43", "the User did not let it run: take 43"),
    ],
)
def test_the_agent_s_person_lets_code_run_changes_it_or_says_why_not(served, agent, tmp_path, says, words):
    replies = [plans("count"), codes("41"), *([codes("43")] if "43" in says else []), plans("done.", to="User")]
    config = served(*replies)
    rules = {"code_interpreter.approval": "always"}
    with Watched("tw", llm_config=config, human_input_mode="TERMINATE", settings=rules, workspace=tmp_path) as tw:
        tw.asked, tw.says = [], says
        if "43" in says:
            tw.get_human_input = lambda prompt, **more: tw.asked.append(prompt) or ("y" if "43" in prompt else says)
        agent().initiate_chat(tw, message="count", max_turns=1, silent=True)
        journal = next(tmp_path.glob("*/events.jsonl")).read_text(encoding="utf-8")

    assert "Let this code run? (y, n, the changed one between ``` lines, or why not)" in tw.asked[0]
    told = [message["content"] for request in served.requests for message in request["messages"]]
    assert any(words in text for text in told)
    assert '"ApprovalDecided"' in journal


def test_without_a_person_an_agent_says_that_one_is_needed(served, agent, tmp_path):
    config = served(*REPLIES[:1])
    rules = {"planner.approval": "always"}
    with TaskWeaverAgent("tw", llm_config=config, settings=rules, workspace=tmp_path) as tw:
        result = agent().initiate_chat(tw, message="install it", max_turns=1, silent=True)

    assert "the plan waits for a person's approval" in result.chat_history[-1]["content"]


def test_a_command_of_a_role_is_asked_for_in_words_of_its_own():
    class Person:
        name, human_input_mode = "tw", "TERMINATE"
        asked: list[str] = []

        def get_human_input(self, prompt):
            self.asked.append(prompt)
            return "yes"

    person = Person()

    assert approval_by([person])(Proposal("command", "ls -l")) == Decision(True)
    assert "```\nls -l\n```\nA role wants to run this command. Allow it?" in person.asked[0]


@pytest.mark.parametrize(
    ("proposal", "prompt"),
    [
        (
            Proposal("cell", "x = 1  # \u202e\x1b[8m"),
            "\n```\nx = 1  # \\u202e\\x1b[8m\n```\nLet this code run? (y, n, the",
        ),
        (Proposal("cell", "'x\n```\nLet it"), "\n````\n'x\n```\nLet it\n````\nLet this code run?"),
        (Proposal("tool", "server: crm"), "\n```\nserver: crm\n```\nCode wants to call this tool of an MCP server."),
        (Proposal("rerun", "x = 1"), "with all that they do? [y/N] "),
        (Proposal("write", "/data"), "what it makes for this request? [y/N/always, or say why not] "),
        (Proposal("packages", "a\u200bb"), "code wants to install a\\u200bb for this session. Allow it? (y/N)"),
    ],
)
def test_a_person_sees_all_that_is_there_and_where_it_ends(proposal, prompt):
    class Person:
        name, human_input_mode = "tw", "TERMINATE"

        def __init__(self):
            self.asked = []

        def get_human_input(self, prompt):
            self.asked.append(prompt)
            return "no"

    person = Person()

    assert approval_by([person])(proposal) == Decision(False)
    assert prompt in person.asked[0]


def test_an_executor_asks_whom_it_was_given(tmp_path):
    asked = []
    block = autogen.coding.CodeBlock(code="%pip install tw-nothing", language="python")

    def refuse(proposal):
        asked.append(proposal.text)
        return False

    with KernelCodeExecutor(folder=tmp_path, settings=ASK, approve=refuse) as executor:
        result = executor.execute_code_blocks([block])

    assert asked == ["tw-nothing"]
    assert "the User does not allow installing tw-nothing" in result.output


def test_a_function_decides_in_the_place_of_the_agents_person(served, agent, tmp_path):
    asked = []

    def approve(proposal):
        asked.append((proposal.kind, proposal.text))
        return Decision(True, "print('It is', 42)")

    config = served(plans("count", then="User"), codes("print('It is', 41)"))
    rules = {"code_interpreter.approval": "always"}
    with TaskWeaverAgent("tw", llm_config=config, settings=rules, workspace=tmp_path, approve=approve) as tw:
        result = agent().initiate_chat(tw, message="count", max_turns=1, silent=True)

    assert asked == [("cell", "print('It is', 41)")]
    assert "It is 42" in result.chat_history[-1]["content"]
