import os
import pty
import select
import sys
from io import StringIO

import pytest
from rich.console import Console

from tw_autogen.approval import Decision, Proposal
from tw_autogen.cli.approval_prompt import ApprovalPrompt
from tw_autogen.cli.event_printer import EventPrinter


@pytest.mark.parametrize(
    ("wanted", "question"),
    [
        (
            Proposal("packages", "humanize>=4\nx"),
            "Code wants to install humanize>=4, x for this session. Allow it? [y/N]",
        ),
        (Proposal("command", "ls\x1b[31m -l"), "A role wants to run this command. Allow it?"),
        (
            Proposal("tool", "server: crm"),
            "server: crm\nCode wants to call this tool of an MCP server. Allow it? [y/N/a for all calls of this",
        ),
    ],
)
def test_what_is_wanted_is_asked_for_in_its_own_words_and_a_stopped_round_means_no(wanted, question):
    console = Console(file=StringIO(), width=200)
    asker = ApprovalPrompt(console, EventPrinter(console))
    asker.stop()

    assert asker.approve(wanted) == Decision(False)
    assert question in console.file.getvalue()
    assert "\x1b" not in console.file.getvalue()


class Page(StringIO):
    """Types an answer as soon as the question stands there."""

    def __init__(self, leader, answer):
        super().__init__()
        self._leader, self._answer = leader, answer

    def write(self, text):
        if "Let this code run?" in text:
            os.write(self._leader, self._answer)
        return super().write(text)


def asked_of(monkeypatch, readable, page):
    """Ask about a cell while something waits to be read already."""
    with open(readable, encoding="utf-8", closefd=False) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert select.select([stdin], [], [], 10)[0]
        console = Console(file=page, width=200)
        return ApprovalPrompt(console, EventPrinter(console)).approve(Proposal("cell", "1 + 1"))


def test_what_was_typed_before_the_question_does_not_answer_it(monkeypatch):
    leader, follower = pty.openpty()
    os.write(leader, b"y\ny\n")

    said = asked_of(monkeypatch, follower, Page(leader, b"use the median\n"))

    os.close(leader)
    os.close(follower)
    assert said == Decision(False, reason="use the median")


def test_what_comes_through_a_pipe_before_the_question_answers_it(monkeypatch):
    readable, writable = os.pipe()
    os.write(writable, b"y\n")

    said = asked_of(monkeypatch, readable, Page(writable, b"n\n"))

    os.close(readable)
    os.close(writable)
    assert said == Decision(True)


def test_what_was_emptied_in_the_editor_is_refused(monkeypatch):
    console = Console(file=StringIO(), width=200)
    asker = ApprovalPrompt(console, EventPrinter(console))
    monkeypatch.setattr(asker, "_read_line", lambda stopped: "e\n")
    monkeypatch.setattr("tw_autogen.cli.approval_prompt.click.edit", lambda *args, **kwargs: "\n")

    assert asker.approve(Proposal("cell", "1 + 1")) == Decision(False)
