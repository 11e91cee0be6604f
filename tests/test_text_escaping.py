"""What a person approves shows every sign that it holds, whatever the sign does to a terminal or a reader."""

import sys
import unicodedata
from io import StringIO

import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from tw_autogen.approval import Proposal
from tw_autogen.cli.approval_prompt import ApprovalPrompt
from tw_autogen.cli.event_printer import EventPrinter
from tw_autogen.text_escaping import inert_output, markdown_line, visible

HIDDEN = {
    "a bidirectional override": ("\u202e", "\\u202e"),
    "a bidirectional isolate": ("\u2066", "\\u2066"),
    "the Arabic letter mark": ("\u061c", "\\u061c"),
    "a zero-width space": ("\u200b", "\\u200b"),
    "a zero-width joiner": ("\u200d", "\\u200d"),
    "a word joiner": ("\u2060", "\\u2060"),
    "a byte order mark": ("\ufeff", "\\ufeff"),
    "a soft hyphen": ("\xad", "\\xad"),
    "a tag character": ("\U000e0041", "\\U000e0041"),
    "a variation selector": ("\ufe0f", "\\ufe0f"),
    "a supplementary variation selector": ("\U000e0100", "\\U000e0100"),
    "a combining grapheme joiner": ("\u034f", "\\u034f"),
    "a Hangul filler": ("\u3164", "\\u3164"),
    "a null notehead": ("\U0001d159", "\\U0001d159"),
    "a Khitan filler": ("\U00016fe4", "\\U00016fe4"),
    "a hieroglyph's blank": ("\U00013441", "\\U00013441"),
    "an object replacement": ("\ufffc", "\\ufffc"),
    "a Mongolian variation selector": ("\u180f", "\\u180f"),
    "a shorthand format control": ("\U0001bca0", "\\U0001bca0"),
    "an ignorable code point": ("\ufff0", "\\ufff0"),
    "an empty Braille pattern": ("\u2800", "\\u2800"),
    "a line separator": ("\u2028", "\\u2028"),
    "a paragraph separator": ("\u2029", "\\u2029"),
    "a next line": ("\x85", "\\x85"),
    "a form feed": ("\x0c", "\\x0c"),
    "a file separator": ("\x1c", "\\x1c"),
    "a carriage return": ("\r", "\\x0d"),
    "a backspace": ("\b", "\\x08"),
    "a null": ("\0", "\\x00"),
    "a delete": ("\x7f", "\\x7f"),
    "a no-break space": ("\xa0", "\\xa0"),
    "a thin space": ("\u2009", "\\u2009"),
    "a private character": ("\ue000", "\\ue000"),
    "an unassigned code point": ("\U000e0fff", "\\U000e0fff"),
    "a lone surrogate": ("\ud800", "\\ud800"),
    "a terminal's colour": ("\x1b[8m", "\\x1b[8m"),
    "a terminal's title": ("\x1b]0;x\x07", "\\x1b]0;x\\x07"),
    "a terminal's escape of one byte": ("\x9b2J", "\\x9b2J"),
}


@pytest.mark.parametrize(("sign", "shown"), HIDDEN.values(), ids=HIDDEN)
def test_a_sign_that_hides_is_shown_as_an_escape(sign, shown):
    assert visible(f"a{sign}b") == f"a{shown}b"


@pytest.mark.parametrize(
    "text", ["x = 1\n\ty\n", "naïve ẞ Ωμέγα", "日本\u3000語", "שלום", "مرحبا", "e\u0301", "🙂", "≥ ∑ √"]
)
def test_what_can_be_seen_stays(text):
    assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "inert"),
    [
        ("~~~sh\nid\n~~~", "~~ ~sh\nid\n~~ ~"),
        ("<video src=x><IMAGE src=x><iframe>", "< video src=x>< IMAGE src=x>< iframe>"),
        ("half a pair: \ud800", "half a pair: \\ud800"),
        ("a < imposed ~~ b", "a < imposed ~~ b"),
    ],
)
def test_output_that_another_agent_or_a_page_would_act_on_is_inert(text, inert):
    assert inert_output(text) == inert


def test_no_character_of_a_hidden_kind_gets_through():
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    hidden = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}

    assert {one for one in visible(every) if unicodedata.category(one) in hidden} == {"\n", "\t"}


def test_what_its_name_calls_blank_or_a_filler_gets_through_nowhere():
    names = {chr(code): unicodedata.name(chr(code), "") for code in range(sys.maxunicode + 1)}
    blank = {one for one, name in names.items() if name.endswith((" FILLER", " BLANK", "JOINER"))}
    inked = {one for one in blank if names[one].endswith((" GAP FILLER", " LINE FILLER", " SUBJOINER"))}

    assert len(blank - inked) > 8
    assert not [one for one in blank - inked if visible(one) == one]


def test_lines_of_another_system_are_lines():
    assert visible("a\r\nb") == "a\nb"


@pytest.mark.parametrize(("sign", "shown"), HIDDEN.values(), ids=HIDDEN)
@pytest.mark.parametrize("kind", ["cell", "plan", "command", "packages"])
def test_an_approval_at_the_terminal_shows_it_in_text_findings_and_question(kind, sign, shown):
    console = Console(file=StringIO(), width=200)
    asker = ApprovalPrompt(console, EventPrinter(console))
    asker.stop()

    asker.approve(Proposal(kind, f"x{sign}y", (f"line 1: {sign}",)))

    written = console.file.getvalue()
    assert f"x{shown}y" in written
    assert f"! line 1: {shown}" in written
    assert sign not in written


def test_a_line_separator_begins_no_line_of_the_code_that_is_shown():
    assert Proposal("cell", "x = 1  # \u2028 hidden()").shown == "x = 1  # \\u2028 hidden()"


@pytest.mark.parametrize("name", ["__init__.py", "_draft_.txt", "a_1_b.csv", "größe_1.csv", "*a*[b]`c`.txt", "_", "__"])
def test_a_name_is_shown_by_markdown_as_it_is(name):
    (paragraph,) = [one for one in MarkdownIt().parse(markdown_line(name)) if one.type == "inline"]

    assert [(child.type, child.content) for child in paragraph.children] == [("text", name)]
