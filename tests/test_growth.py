"""Nothing that a model, kernel, gateway or server sends takes a parser more than about linear time, or makes it raise.

Each parser reads each text at two sizes, the longer four times the shorter: the time may grow by eight at most, and by
anything while it stays below a tenth of a second. The processor's time is measured, which other load hardly changes.
"""

import contextlib
import io
import json
import random
import time
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tw_autogen import bounded_json
from tw_autogen.cli.terminal import clean, console, markdown
from tw_autogen.code_interpreter import verify
from tw_autogen.code_interpreter.policy import POLICIES
from tw_autogen.conversation import Plan, RequestedFormat, unfenced_json
from tw_autogen.errors import ConversationFormatError, Unreadable
from tw_autogen.hosts.agent_files import linked_files
from tw_autogen.kernel.connection import _parse_message as kernel_message
from tw_autogen.kernel.gateway_client import _parse_message as gateway_message
from tw_autogen.kernel.pending_request import _bridge_report
from tw_autogen.model import CodeStream, FieldStream, read_code, read_object
from tw_autogen.planner.planner_reply import read_reply
from tw_autogen.plugin.annotation import short_type, type_and_words
from tw_autogen.plugin.docstring import read_doc
from tw_autogen.plugin.mcp.python_names import identifier
from tw_autogen.plugin.parameter_schema import json_schema
from tw_autogen.plugin.spec import Parameter, PluginSpec
from tw_autogen.recall import read_conversation
from tw_autogen.secret_masking import redactor
from tw_autogen.session.answer_html import markdown_html
from tw_autogen.session.markdown_text import markdown_cells

SHORT, LONG = 2_000, 8_000
FREE_SECONDS = 0.1
UNITS = [
    *"()[]{}\"'\\`~<>@.,;:#=-+*!%?&|1a_ \n\t\r\0\ud800\u2028\x0cé\u202e",
    *('{"', '{"a":', '{"a":1}', '{"a', '{"a": "', "{'a': ", "{a: ", '{“a”:', '\\"', '"+"', "[{", '["a",', "}{", '"#'),
    *("```", "```python\n", "~~~\n", "<think>", "<think>\n", "</think>", "</think>\n", "[a](/", "](/b", "](file://["),
    *("1,", "1. a\n", "- a\n", "1. a <sequentially depends on ", "<interactively depends on 1>", "a.", ".a", "__a"),
    *("!ls\n", "%x\n", "?\n", ">>> ", "... ", "%time ", " \n", "x = ", "f(", "'''", "x;", "lambda:", "df.query('"),
    *("answer as ", "report in ", "save to a.csv ", "as json ", "not ", "with two ", "round the ", "@a["),
    *("a: a\n", "- - ", "? ", "&a ", "*a ", "Args:\n    a: b\n", ": ", ":param a: ", "\x1b]", "\x1b["),
    *("://a:", "sk-", "Bearer "),
    *('{"code": "', '"code": "a", ', '{"code": "a" "b"}\n', '", "a": ', '{"code": `x`', '```python\n{"a": 1}\n'),
]  # fmt: skip
HEADS = ["", '{"code": "x', '{"a": "', '{"reply_content": ', '{"response": "{', "<think>\n", "1. "]


def stream(kind):
    """Return what feeds a text to a stream in 50 pieces."""

    def feed(text):
        grows, step = kind(), max(1, len(text) // 50)
        for at in range(0, len(text), step):
            grows.feed(text[at : at + step])

    return feed


def as_yaml(text, tmp_path):
    path = tmp_path / "talk.yaml"
    path.write_bytes(text.encode("utf-8", "replace"))
    read_conversation(path)


def asked(text):
    """Read the request and judge it as an answer."""
    RequestedFormat.read(text).problems(text)
    RequestedFormat(named=(("a", "b"),), json=True, request=text).problems(text)
    unfenced_json(text)


NOTHING: tuple[type[Exception], ...] = ()
PARSERS = {
    "object": (read_object, (Unreadable,)),
    "code": (read_code, (Unreadable,)),
    "planner's reply": (lambda text: read_reply(text, ["CodeInterpreter"], has_plan=False), (Unreadable,)),
    "fields that grow": (stream(FieldStream), NOTHING),
    "code that grows": (stream(CodeStream), NOTHING),
    "plan": (Plan.parse, (ValueError,)),
    "step": (Plan.parse("1. a\n2. b").at, NOTHING),
    "form of an answer": (asked, NOTHING),
    "cell": (lambda text: verify(text, POLICIES["default"]), NOTHING),
    "strict cell": (lambda text: verify(text, POLICIES["strict"]), NOTHING),
    "links": (lambda text: list(linked_files(text, [Path("/tmp")])), NOTHING),
    "kernel's message": (
        lambda text: kernel_message(b'{"msg_type": "a"}', b"{}", text.encode("utf-8", "replace")),
        NOTHING,
    ),
    "kernel's report": (lambda text: _bridge_report({"payload": [{"source": "tw_autogen", "report": text}]}), NOTHING),
    "gateway's message": (lambda text: gateway_message(text.encode("utf-8", "replace")), NOTHING),
    "JSON": (bounded_json.loads, (ValueError,)),
    "docstring": (read_doc, NOTHING),
    "annotation": (lambda text: (short_type(text), type_and_words(text)), NOTHING),
    "schema": (lambda text: json_schema(PluginSpec("f", "Do.", (Parameter("a", text, required=True),))), NOTHING),
    "name": (identifier, NOTHING),
    "secrets": (redactor({"A_KEY": "abcdefghij"}), NOTHING),
    "terminal": (clean, NOTHING),
}


LETTERS = [
    f"{blanks}{letter}\n" for blanks in (" ", "  ") for letter in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
]


def table(*, columns, rows, before="", end="\n"):
    """Return a table in Markdown whose rows are left empty."""
    lines = ["a|" * columns, "-|" * columns, *["|"] * rows]
    return "".join(f"{before}{line}{end}" for line in lines) + end


RENDERERS = {
    "notebook": lambda text: markdown_html(text, {}),
    "export": markdown_cells,
    "terminal": lambda text: console(io.StringIO()).print(markdown(text)),
}


def seconds(parse, text, expected):
    """Return the time that a text takes; an exception other than the expected one is the test's."""
    began = time.process_time()
    with contextlib.suppress(*expected):
        parse(text)
    return time.process_time() - began


def check_growth(parse, expected, make):
    """Fail if the time grows faster than it should, three times."""
    seconds(parse, make(100), expected)
    found = []
    for _ in range(3):
        long = seconds(parse, make(LONG), expected)
        if long < FREE_SECONDS:
            return
        short = seconds(parse, make(SHORT), expected)
        if long <= 11 * short:  # four times the length: 4 if it is linear, 16 if it is quadratic
            return
        longer = seconds(parse, make(4 * LONG), expected)  # the short text may have been refused at its first line
        if longer <= 11 * long:
            return
        found.append((short, long, longer))
    pytest.fail(f"{make(30)!r:.200}…: from {SHORT} to {LONG} to {4 * LONG} characters the time grew {found}")


@pytest.mark.parametrize("name", PARSERS)
def test_time_grows_with_the_length_and_nothing_unexpected_is_raised(name):
    parse, expected = PARSERS[name]

    for unit in UNITS:
        check_growth(parse, expected, lambda size, unit=unit: (unit * size)[:size])
    for head in HEADS[1:]:
        for unit in ('"', "[", "{", '{"', '\\"', "'", "\n", " ", "<"):
            for tail in ("", '"}'):
                check_growth(parse, expected, lambda size, h=head, u=unit, t=tail: h + (u * size)[:size] + t)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("object", "{'a':1}" * 60_000),
        ("planner's reply", "{'a':1}\n" * 60_000),
        ("code", "<code>x" + " " * 300_000 + "x"),
        ("code", "```py\n'''\n```\n'''\n```\n" * 2250),
        ("links", f"[a](/{'a/' * 400_000})"),
        ("links", f"[a](/{'a/' * 2_000}) " * 200),
        ("links", f"[a](file:///{'../' * 300_000})"),
        ("cell", "\n" + "".join(random.Random(3).choices(LETTERS, k=40_000))),
    ],
    ids=[
        *("objects", "lines", "blanks in a tag", "fences in texts", "a long link", "many links", "a long address"),
        "indented lines",
    ],
)
def test_what_takes_no_time_as_a_short_text_takes_none_as_one_of_hundreds_of_kilobytes(name, text):
    parse, expected = PARSERS[name]

    assert seconds(parse, text, expected) < 2


@pytest.mark.parametrize("name", RENDERERS)
@pytest.mark.parametrize(
    "text",
    [
        table(columns=180, rows=360) * 13,
        table(columns=180, rows=360, before="> ") * 7,
        table(columns=180, rows=360, end="\r") * 13,
        "a **b** `c`\n" * 20_000,
    ],
    ids=["tables", "in quotations", "carriage returns", "long"],
)
def test_an_answer_with_many_cells_or_words_is_shown_at_once(name, text):
    assert seconds(RENDERERS[name], text, NOTHING) < 2


@pytest.mark.parametrize(("name", "parses"), [("notebook", 1), ("export", 4)])
def test_many_short_texts_are_rendered_by_one_parser(name, parses):
    def each(render):
        return min(seconds(lambda text: [render(text) for _ in range(300)], "a", NOTHING) for _ in range(3))

    assert each(RENDERERS[name]) < 3 * parses * each(MarkdownIt().render)


@pytest.mark.parametrize("unit", ["a", " ", "a b ", "`", "é", "<think>"])
@pytest.mark.parametrize("stream_of", [CodeStream, FieldStream])
def test_a_line_that_comes_in_many_pieces_and_does_not_end_takes_linear_time(stream_of, unit):
    def feed(text):
        grows = stream_of()
        for _ in text:
            grows.feed(unit)

    check_growth(feed, NOTHING, lambda size: range(12 * size))


def test_of_a_long_line_nothing_is_lost_once_it_ends():
    grows, said = CodeStream(), f"{'word ' * 10_000}end\n```python\n{'x' * 50_000}\n```\nmore\n"
    grown = [one for at in range(0, len(said), 7) for one in grows.feed(said[at : at + 7])]

    assert "".join(text for name, text in grown if name == "thought") == f"{'word ' * 10_000}end\nmore\n"
    assert "".join(text for name, text in grown if name == "reply_content").rstrip("\n") == "x" * 50_000


def test_a_well_formed_object_counts_behind_some_that_are_not_and_a_whole_reply_of_those_is_its_first():
    assert read_object("{'a': 1} " * 90 + '{"a": 1, "b": 2}') == {"a": 1, "b": 2}
    assert read_object("{'a': 1} " * 900) == {"a": 1}


@pytest.mark.parametrize("name", ["object", "planner's reply"])
@pytest.mark.parametrize(
    "reply",
    [
        '{"a": ' * 150 + "1" + "}" * 150,
        '{"a": ' + "[" * 400 + "]" * 400 + "}",
        '{"response": ' * 300 + "1" + "}" * 300,
        "{'reply_content': '" * 1000,
    ],
    ids=["objects", "lists", "wrappers", "contents"],
)
def test_a_reply_that_nobody_could_write_down_again_is_unreadable(name, reply):
    parse, _ = PARSERS[name]

    with pytest.raises(Unreadable, match="JSON object"):
        parse(reply)


def test_half_a_surrogate_pair_becomes_a_question_mark_and_a_whole_pair_stays():
    assert bounded_json.loads(r'{"a": "\ud800", "b": "\ud83d\ude00"}') == {"a": "?", "b": "\U0001f600"}
    assert bounded_json.loads(rb'["\uDFFF"]') == ["?"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("rounds: " + "[" * 3000, "more than 40 brackets are open"),
        ("rounds: " + "9" * 5000, "not YAML"),
        ("rounds: 2024-99-99", "not YAML"),
        ("rounds: &a [*a]", "an alias stands for what holds it"),
        (
            "plugins: [&a0 [1,1,1,1,1,1,1,1,1]"
            + "".join(f", &a{n + 1} [{','.join([f'*a{n}'] * 9)}]" for n in range(9))
            + "]",
            "it stands for too many values",
        ),
    ],
    ids=["deep", "digits", "date", "circle", "laughs"],
)
def test_a_conversations_yaml_stands_for_no_more_than_it_can_hold(tmp_path, text, problem):
    with pytest.raises(ConversationFormatError, match=problem):
        as_yaml(text, tmp_path)


@pytest.mark.parametrize(
    "reply",
    [
        *({"payload": one} for one in (5, {"a": 1}, "xyz", [1, None, {}], [{"source": "tw_autogen", "report": 5}])),
        {"payload": [{"source": "tw_autogen", "report": "[" * 100_000}]},
        {"payload": [{"source": "tw_autogen", "report": json.dumps({"a": "x"})[:-1]}]},
        {"payload": [{"source": "tw_autogen"}]},
        {},
    ],
)
def test_a_forged_reply_holds_no_report(reply):
    assert _bridge_report(reply) == {}
