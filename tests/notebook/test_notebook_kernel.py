"""Answers, progress, variables, approvals and the magic in a real notebook kernel."""

import json
import re

import pytest
from jupyter_client.manager import start_new_kernel

from tw_autogen.testing import codes, plans

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)> ![x](http://tracker.invalid/a.png)"
IMPORTS = """
import pandas as pd
from tw_autogen import open_session
from tw_autogen.notebook import approve_in_notebook
from tw_autogen.testing import ScriptedModel
"""
OPEN = """
tw_session = session = open_session(
    ScriptedModel({replies!r}), folder="sessions", approve=approve_in_notebook,
    settings={{"code_interpreter.approval": "always"}},
)
session["df"] = pd.DataFrame({{"x": [1, 2, 3]}})
"""


class Notebook:
    """A kernel that is sent cells; the person at it types what `typed` holds, and interrupts the kernel for a None."""

    def __init__(self, manager, client):
        self._manager, self._client = manager, client
        self.typed = []
        self.questions = []

    def run(self, code, ends="ok"):
        """Run a cell that ends so, or with an error of this name, and return its messages as (type, content)."""
        messages, unexpected = [], []

        def answer(message):
            self.questions.append(message["content"]["prompt"])
            if not self.typed:
                unexpected.append(message["content"]["prompt"])
            typed = self.typed.pop(0) if self.typed else ""  # a question without an answer would block the kernel
            if typed is None:
                self._manager.interrupt_kernel()
            else:
                self._client.input(typed)

        reply = self._client.execute_interactive(
            code,
            allow_stdin=True,
            timeout=60,
            stdin_hook=answer,
            output_hook=lambda message: messages.append((message["msg_type"], message["content"])),
        )
        said = reply["content"]
        assert said.get("ename", said["status"]) == ends, "\n".join(said.get("traceback", []))
        assert unexpected == []
        self.payload = reply["content"].get("payload")
        return messages

    def open(self, *replies):
        """Open a session whose model gives these replies."""
        self.run(OPEN.format(replies=list(replies)))


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(tmp_path_factory.mktemp("notebook")))
    try:
        Notebook(manager, client).run(IMPORTS)
        yield manager, client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.fixture
def notebook(kernel):
    """The kernel is the module's; each test opens a session of its own, so that they run in any order and alone."""
    made = Notebook(*kernel)
    yield made
    made.run("session.close()")


def results(messages, kind="execute_result"):
    return [content["data"] for name, content in messages if name == kind]


def test_a_question_is_answered_in_a_notebook(notebook):
    notebook.open(
        plans("sum it", plan="1. load <b>\n2. sum"),
        codes("print(int(df.x.sum()), '<b>')"),
        plans("The sum is **6**.\n\n" + HOSTILE, to="User"),
    )
    notebook.typed = ["y"]
    messages = notebook.run("answer = session.ask('What is the sum?')\nanswer")

    shown = results(messages)[0]
    assert shown["text/plain"].startswith("The sum is **6**.")
    page = shown["text/html"]
    assert "<strong>6</strong>" in page
    assert "✓ 1. load &lt;b&gt;" in page
    assert "<summary>Code: 1 cell</summary>" in page
    assert "6 &lt;b&gt;" in page
    assert not re.search(r"<script|<img|<b>|http://tracker", page)
    progress = [content for name, content in messages if name in ("display_data", "update_display_data")]
    of_progress = [one for one in progress if one["transient"]["display_id"] == progress[0]["transient"]["display_id"]]
    assert "starting" in of_progress[0]["data"]["text/plain"]
    assert "Answered after" in of_progress[-1]["data"]["text/plain"]
    assert notebook.questions == ["Let this code run? [y/N, or say why not] "]
    assert any("Approved" in result["text/html"] for result in results(messages, "update_display_data"))


def test_variables_cross_by_name_and_missing_ones_are_key_errors(notebook):
    notebook.open(plans("double it"), codes("df['y'] = df.x * 2"), plans(f"Done. {'x' * 300}", to="User"))
    notebook.typed = ["y"]
    code = """
import json
answer = session.ask("Double it.")
found = session["df"]
try:
    session["nothing"]
except KeyError as error:
    missing = str(error)
print(json.dumps([list(found.columns), type(found).__name__, missing, len(repr(answer)) < 200]))
"""
    printed = [content["text"] for name, content in notebook.run(code) if name == "stream"]

    assert json.loads("".join(printed)) == [["x", "y"], "DataFrame", "'nothing'", True]


def test_an_awaited_question_asks_for_approval_too(notebook):
    notebook.open(plans("twice"), codes("print(2 * int(df.x.sum()))"), plans("12", to="User"))
    notebook.typed = ["y"]
    messages = notebook.run("(await session.aask('Twice?')).text")

    assert results(messages)[0]["text/plain"] == "'12'"
    assert len(notebook.questions) == 1


def test_the_magic_asks_the_session_and_puts_its_code_into_the_next_cell(notebook):
    notebook.open(plans("print"), codes("print(1)"), codes("print(2)"), plans("You said no.", to="User"))
    notebook.run("%load_ext tw_autogen")
    notebook.typed = ["2 would be better", "y"]
    messages = notebook.run("%%tw\nWhat's 1 now?")

    assert results(messages)[0]["text/plain"] == "You said no."
    assert any("Refused" in result["text/html"] for result in results(messages, "update_display_data"))
    notebook.run("%tw --to-cell")
    assert notebook.payload[0]["source"] == "set_next_input"
    assert notebook.payload[0]["text"].endswith("print(2)")


@pytest.mark.parametrize(
    ("question", "error"), [("session.ask('x')", "KeyboardInterrupt"), ("await session.aask('x')", "CancelledError")]
)
def test_an_interrupt_ends_a_question_that_waits_for_approval_and_the_next_one_is_asked(notebook, question, error):
    code = codes("print(1)")
    notebook.open(plans("print"), code, plans("print"), code, plans("It is 1.", to="User"))
    notebook.typed = [None]
    messages = notebook.run(question, ends=error)

    assert any("Not decided" in result["text/html"] for result in results(messages, "update_display_data"))
    notebook.typed = ["y"]
    assert results(notebook.run("session.ask('x').text"))[0]["text/plain"] == "'It is 1.'"
    assert len(notebook.questions) == 2
