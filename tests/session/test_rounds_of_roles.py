"""What roles of a session are told and may do, round by round; scripted models, fake kernels."""

import datetime
import html
import json
import re
import threading
from pathlib import Path

import pytest

from tw_autogen import open_session
from tw_autogen.code_interpreter import CodeInterpreter, CodeInterpreterSettings
from tw_autogen.conversation import Attachment, AttachmentType, Post, Round, RoundState
from tw_autogen.errors import RoundInterrupted, RoundTooCostly, Unreadable
from tw_autogen.events import RoundClosed
from tw_autogen.hosts.conversable.messages import render_reply
from tw_autogen.hosts.partner_conversation import CONTINUE, GivenFiles, Line, PartnerConversation
from tw_autogen.kernel import Artifact, Execution
from tw_autogen.model import Completion, Usage
from tw_autogen.planner import Planner
from tw_autogen.recall import Recall
from tw_autogen.recall.conversation_files import Conversation
from tw_autogen.recall.examples import Example
from tw_autogen.role import Role
from tw_autogen.session import (
    Answer,
    Session,
    SessionSettings,
    export_session,
    fence_printed_output,
    read_journal,
    read_settings,
    rounds_of,
)
from tw_autogen.testing import FakeKernel, ScriptedModel, codes, plans


@pytest.fixture
def team(tmp_path):
    """Open sessions over scripts with other workers beside the CodeInterpreter; every step must be used."""
    opened = []

    def open_team(planned, written=(), *others, results=(), recall=None, settings=None, **limits):
        models = ScriptedModel(planned), ScriptedModel(written)
        folder = tmp_path / f"cells{len(opened)}"
        folder.mkdir()
        kernel = FakeKernel(results or ["42"] * len(written), folder=folder)
        worker = CodeInterpreter(models[1], kernel, settings=settings, recall=recall)
        roles = [worker, *others]
        planner = [Planner(models[0], roles)] if planned else []
        session = Session([*planner, *roles], settings=SessionSettings(**limits))
        opened.append((session, models))
        return session, *models

    yield open_team
    for session, models in opened:
        session.close()
        for model in models:
            model.__exit__(None, None, None)


def printed(text):
    return Execution(ok=True, result="", stdout=text)


NAMES = "\n".join(f"name {number:04d}" for number in range(1000))


@pytest.mark.parametrize("text", [NAMES, json.dumps({"names": NAMES.split("\n") * 3})], ids=["lines", "JSON"])
def test_what_goes_on_to_the_user_goes_whole(team, text):
    session, *_ = team([plans("print all", then="User")], [codes("print(names)")], results=[printed(text)])

    assert session.ask("List them all, as JSON if you like.").text == text


TABLE = "        Symbol  Price\n0         MSFT   1.50\n1  <b>AAPL</b>  20.00"


@pytest.mark.parametrize("planned", [True, False], ids=["Planner", "CodeInterpreter alone"])
def test_a_printed_table_keeps_its_columns_wherever_it_is_shown(team, tmp_path, planned):
    session, planner, _ = team(
        [plans("print it", then="User"), plans("Two.", to="User")] if planned else [],
        [codes("print(df)"), *([] if planned else [codes("2")])],
        results=[printed(f"\n{TABLE}\n"), "2"],
    )

    answer = session.ask("Show the table.")

    words = "" if planned else "This code does it.\n\n"
    block = f"{words}```\n{TABLE}\n```"
    assert answer.text == words + TABLE
    assert fence_printed_output(answer.text, answer.round.posts) == block
    assert f"<pre><code>{html.escape(TABLE)}\n</code></pre>" in answer._repr_mimebundle_()["text/html"]
    exported = export_session(session.journal.parent, tmp_path / "x.md").read_text(encoding="utf-8")
    assert f"## Answer\n\n{block}\n" in exported
    session.ask("How many rows?")
    if planned:  # the prompt has the answer as it always had
        assert json.loads(planner.calls[-1][-2]["content"])["message"] == TABLE.lstrip()


SERIES = "month\n2024-01    1200\n2024-02     950"


@pytest.mark.parametrize(
    ("request_text", "output", "shown"),
    [
        ("Sum it.", f"{SERIES}\nName: units, dtype: int64", SERIES),
        ("Sum it.", f"Sums:\n{SERIES}\nName: units, dtype: int64\nDone.", f"Sums:\n{SERIES}\nDone."),
        ("Answer as @n[count] and @m[mean].", "@n: 3\n@m: 4.5", "@n[3]\n@m[4.5]"),
    ],
    ids=["Series", "Series between words", "form"],
)
def test_printed_lines_that_were_changed_for_the_answer_stay_lines(team, tmp_path, request_text, output, shown):
    session, *_ = team([plans("print it", then="User")], [codes("print(s)")], results=[printed(output)])

    answer = session.ask(request_text)

    assert answer.text == shown
    assert f"<pre><code>{shown}\n</code></pre>" in answer._repr_mimebundle_()["text/html"]
    exported = export_session(session.journal.parent, tmp_path / "x.md").read_text(encoding="utf-8")
    assert f"## Answer\n\n```\n{shown}\n```\n" in exported


@pytest.mark.parametrize("output", ["one line", "| a  | b |\n|---|---|\n| 1  | 2 |", "**Sum**: 3\n\n- a\n- b"])
def test_one_line_and_printed_markdown_are_no_block(team, output):
    session, *_ = team([plans("print it", then="User")], [codes("print(df)")], results=[printed(output)])

    answer = session.ask("Show it.")

    assert fence_printed_output(answer.text, answer.round.posts) == output


BLOCK = "```sh\nid\n```"
ACTS = f"{BLOCK}\n<img http://x.invalid/?s>\n![p](http://x.invalid/a.png)\x1b[2J"
FENCED_NAME = Artifact("x", "file", Path("/x\n```sh\nid\n```\n[.txt"), "```sh")


@pytest.mark.parametrize(
    ("planned", "results", "kept"),
    [
        ([plans("print it", then="User")], [printed(ACTS)], ""),
        ([], [printed(ACTS)], ""),
        ([], [Execution(ok=False, error=f"ValueError: {ACTS}")] * 2, ""),
        ([plans("save it"), plans(BLOCK, to="User")], [Execution(ok=True, artifacts=(FENCED_NAME,))], BLOCK),
    ],
    ids=["forwarded", "alone", "error", "file's name"],
)
def test_what_code_has_printed_or_named_does_nothing_in_a_hosts_chat(team, planned, results, kept):
    session, *_ = team(planned, [codes("print(text)")] * len(results), results=results)

    answer = session.ask("Do it.")

    for words in (answer.markdown(), render_reply(answer)):
        assert words.startswith(kept)
        assert not re.search(r"```|<img|!\[|\x1b", words.removeprefix(kept))
        assert kept.count("```") or "`` `sh\nid\n`` `" in words


@pytest.mark.parametrize(
    ("request_", "output", "alone"),
    [
        ("Answer only JSON.", '{"region": "west", "units": 303}', True),
        ("Answer only JSON.", '[{"a": 1},\n {"a": 2}]\n', True),
        ("Give me the table as JSON, please.", "[1, 2]", True),
        ("Sum it.", '{"units": 303}', True),
        ("Answer as @mean[number].", "@mean[34.5]", True),
        ("The answer must be only a number.", "42", True),
        ("Answer with a comma-separated list of numbers only.", "1, 2, 3", True),
        ("Answer as @mean[number].", "It is 34.5.", False),
        ("Answer only JSON.", "It is 303.", False),
        ("Draw it and sum it.", "303", False),
        ("Draw it and sum it.", "units: {303}", False),
        ("Draw it.", "", False),
    ],
)
def test_beside_an_answer_in_a_strict_form_a_chat_gets_no_list_of_files(request_, output, alone):
    made = Artifact("chart", "image", Path("/x/chart.png"), "547 x 413 pixels")
    here = Round(request_, posts=[Post("User", "Planner", request_), Post("Planner", "User", output)])
    answer = Answer(output, (made,), "Completed", Usage(), here)

    for words in (answer.markdown(), render_reply(answer, request_)):
        assert (words == output.rstrip()) is alone
        assert ("chart.png" in words) is not alone
    assert "chart.png" in answer.files_markdown()


@pytest.mark.parametrize("planned", [True, False], ids=["Planner", "CodeInterpreter alone"])
def test_a_longer_answer_is_whole_with_a_file_and_chats_get_its_beginning(team, planned):
    session, *_ = team(
        [plans("print all", then="User")] if planned else [],
        [codes("print(names)")],
        results=[printed(NAMES)],
        settings=CodeInterpreterSettings(answer_chars=5000),
    )

    answer = session.ask("List all names.")

    assert answer.text == (NAMES if planned else f"This code does it.\n\n{NAMES}")
    assert [artifact.path.read_text(encoding="utf-8") for artifact in answer.artifacts] == [NAMES]
    for words in (answer.message, answer.markdown(), render_reply(answer), answer.round.posts[-1].message):
        assert "name 0001\n" in words
        assert f"… the whole answer, {len(NAMES)} characters, is in answer.txt" in words
        assert len(words) < 5000


def test_of_a_long_answer_the_prompt_of_the_next_request_has_the_beginning(team):
    text = json.dumps({"names": NAMES.split("\n")})
    session, planner, _ = team(
        [plans("print all", then="User"), plans("Those were names.", to="User")],
        [codes("print(names)")],
        results=[printed(text)],
    )

    assert session.ask("List all names as JSON.").text == text
    session.ask("What was that?")

    told = str(planner.calls[-1])
    assert "name 0001" in told
    assert f"{len(text)} characters went to the User; this is the beginning" in told
    assert "name 0500" not in told


def test_output_that_the_kernel_has_cut_is_not_the_answer_unseen(team):
    cut = f"{NAMES}\n[... 54321 characters left out ...]\n{NAMES}"
    session, planner, _ = team(
        [plans("print all", then="User"), plans("They are in names.txt.", to="User")],
        [codes("print(names)")],
        results=[printed(cut)],
    )

    assert session.ask("List all names.").text == "They are in names.txt."
    assert "54321 characters of what was printed are lost; what is long has to be written to a file" in str(
        planner.calls[1]
    )


@pytest.mark.parametrize(
    ("printed_", "told"),
    [
        (["A\n", "B\n"], "Printed:\nB\nPrinted by earlier tries before they failed:\nA"),
        (["A\n", "", "B\n"], "Printed:\nB\nPrinted by earlier tries before they failed:\nA"),
        (["A\n", "A\nB\n"], "Printed:\nA\nB"),
        (["A\n", "A\n", "B\n"], "Printed:\nB\nPrinted by earlier tries before they failed:\nA"),
        (
            ["A\n", "B\n", None],
            "Printed:\nB\nError:\nImportError: lxml\nPrinted by earlier tries before they failed:\nA",
        ),
    ],
    ids=["once", "an empty one between", "printed again", "failed alike", "given up"],
)
def test_what_a_failed_try_has_printed_reaches_the_planner(team, printed_, told):
    def failed(text):
        return Execution(ok=False, stdout=text, error="ImportError: lxml")

    ends = [failed(text) for text in printed_ if text is not None]
    results = ends if printed_[-1] is None else [*ends[:-1], printed(printed_[-1])]
    session, planner, _ = team(
        [plans("look"), plans("Seen.", to="User")],
        [codes(f"step({number})") for number in range(len(results))],
        results=results,
        settings=CodeInterpreterSettings(max_tries=len(results) - 1),
    )

    session.ask("What is there?")

    said = planner.calls[1][-1]["content"]
    assert said.partition("\n")[2].endswith(told) if printed_[-1] is None else said.endswith(f"The code ran.\n{told}")


@pytest.mark.parametrize(
    ("request_", "output", "text"),
    [
        ("answer with JSON only", '{"a": 1}', '{"a": 1}'),
        ("answer as @a[number]", "@a[1]", "@a[1]"),
        ("how many?", "1", "This code does it.\n\n1"),
    ],
)
def test_without_a_planner_output_in_the_form_asked_for_is_the_whole_answer(team, request_, output, text):
    session, _, coder = team([], [codes("print(a)")], results=[printed(output)])

    assert session.ask(request_).text == text
    assert "Today is " in coder.calls[0][-1]["content"]


def test_the_head_of_a_table_stays_over_its_columns(team):
    table = "   a    b\n0  1  2.0"
    session, planner, _ = team(
        [plans("print it"), plans("Done.", to="User")], [codes("print(df)")], results=[printed(f"\n{table}\n")]
    )
    session.ask("Show it.")

    assert f"Printed:\n{table}" in planner.calls[1][-1]["content"]


class Sneaky(Role):
    name = "Sneaky"
    intro = "Writes to whom it likes."

    def __init__(self, to):
        self.to = to

    def reply(self, memory, **kwargs):
        return Post(self.name, self.to, "I answer by myself.")


@pytest.mark.parametrize("to", ["User", "CodeInterpreter"])
def test_a_role_that_writes_past_the_planner_is_an_error_that_names_it(team, to):
    session, *_ = team([plans("hi", to="Sneaky"), plans("Sneaky failed.", to="User")], [], Sneaky(to))

    failed = session.ask("hello").round.posts[2]
    assert failed.message.startswith(f"the role Sneaky failed: reply() gave a Post to '{to}', past 'Planner'")
    assert failed.send_to == "Planner"


class Away(Role):
    name, intro = "Away", "Reviews."

    def __init__(self, raises):
        self.raises = raises

    def reply(self, memory, **kwargs):
        raise self.raises


@pytest.mark.parametrize(
    ("raises", "told"),
    [
        (ConnectionError("server away"), "ConnectionError: server away"),
        (KeyError("oops"), "KeyError: 'oops'"),
        (ValueError(""), "ValueError: "),
        (RuntimeError("first\nsecond"), "RuntimeError: first\nsecond"),
        (NotImplementedError("x" * 5000), f"NotImplementedError: {'x' * 1900}"),
        (Unreadable("no JSON"), "Unreadable: no JSON"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_worker_that_raises_tells_the_planner_which_goes_on_with_what_there_is(team, caplog, raises, told):
    plan = plans("compute", plan="1. compute\n2. have it reviewed")
    session, planner, _ = team(
        [plan, plans("review", to="Away"), plans("42; the review failed.", to="User")], [codes("42")], Away(raises)
    )

    answer = session.ask("Compute it and have it reviewed.")

    failed = answer.round.posts[4]
    assert (answer.text, answer.round.state) == ("42; the review failed.", RoundState.finished)
    assert (failed.send_from, failed.send_to) == ("Away", "Planner")
    assert failed.message.startswith(f"the role Away failed: {told}")
    assert len(failed.message) < 2100
    assert __file__ not in json.dumps(planner.calls)
    assert f"{__file__}:" in caplog.text  # whoever runs it learns the line


def test_a_worker_that_raises_after_the_round_was_stopped_is_not_the_reason(team):
    class Stopped(Role):
        name, intro = "Stopped", "Stops."

        def reply(self, memory, **kwargs):
            session.interrupt()
            raise ConnectionError("gone")

    session, *_ = team([plans("go", to="Stopped")], [], Stopped())
    with pytest.raises(RoundInterrupted, match="stopped"):
        session.ask("Go.")


def test_without_a_planner_roles_may_write_to_one_another(tmp_path):
    with Session([Sneaky("User")], folder=tmp_path) as session:
        assert session.ask("hello").text == "I answer by myself."


def test_files_of_a_request_in_which_no_code_ran_are_described_to_the_next_code(team, tmp_path):
    data = tmp_path / "sales.csv"
    data.write_text("region,units\nnorth,3\n", encoding="utf-8")
    session, _, coder = team(
        [
            plans("It has two columns.", to="User"),
            *[plans("count its rows"), plans("One.", to="User")] * 2,
        ],
        [codes("1"), codes("1")],
    )
    session.ask("Which columns has this?", files=[data])
    session.ask("How many rows?")
    session.ask("And again?")

    first, second = (call[-1]["content"] for call in coder.calls)
    assert "Earlier requests brought:\n\nFiles in the working folder:\n- sales.csv" in first
    assert "region" in first
    assert "region" not in second


@pytest.mark.parametrize("posts", [[Post("User", "Planner", "old words")], []])
def test_a_round_that_was_cut_off_is_remembered_as_failed(team, posts):
    session, planner, _ = team([plans("Hello.", to="User")])
    session.remember(Round("old words", posts=posts))

    assert session.ask("go on").text == "Hello."
    assert session.rounds[0].state is RoundState.failed
    assert "it was cut off" in str(planner.calls[0]) or not posts


def test_taskweavers_examples_name_the_role_and_shown_code_is_no_code_to_run(team, tmp_path):
    def written(kind, content):
        said = (("thought", "{ROLE_NAME} shows it."), ("reply_type", kind), ("reply_content", content))
        return Post("CodeInterpreter", "Planner", "shown", tuple(Attachment(AttachmentType(k), v) for k, v in said))

    posts = [Post("Planner", "CodeInterpreter", "show sample code"), written("text", "So:\n```python\nx = 1\n```")]
    posts += [Post("Planner", "CodeInterpreter", "run it"), written("python", "x = 1")]
    example = Example(tmp_path / "a.yaml", Conversation((Round("show", posts=posts, state=RoundState.finished),)))
    session, _, coder = team(
        [plans("compute", then="User")], [codes("42")], results=["42"], recall=Recall(examples=(example,))
    )

    session.ask("compute")

    replies = [one["content"] for one in coder.calls[0] if one["role"] == "assistant"]
    assert replies == ["So:\n```text\nx = 1\n```", "CodeInterpreter shows it.\n```python\nx = 1\n```"]


class Offering(Role):
    name = "Shop"
    intro = "Sells."

    def __init__(self, *offers):
        self.offers = list(offers)

    def offer(self, request):
        return self.offers.pop(0)

    def reply(self, memory, **kwargs):
        return Post(self.name, memory.last_post.send_from, "sold")


def test_offers_are_not_repeated(team):
    hello = plans("Hello.", to="User")
    offers = "It has:\n- tea\n- salt", "It has:\n- tea\n- salt", "It has:\n- tea\n- oil"
    session, planner, _ = team([hello] * 3, [], Offering(*offers))
    for words in ("one", "two", "three"):
        session.ask(words)

    told = [call[-1]["content"] for call in planner.calls]
    assert offers[0] in told[0]
    assert "It has" not in told[1]
    assert "It has:\n- oil\n(1 more that fit stand further up.)" in told[2]


SPENT = Usage(100, 0, 10, 1, dollars=0.03)


@pytest.mark.parametrize(
    ("limits", "reached"),
    [
        ({"max_session_calls": 3}, "3 model calls in this session and no answer for the user; "),
        ({"max_session_tokens": 300}, "330 tokens in this session and no answer for the user; "),
        ({"max_session_dollars": 0.08}, r"0\.0900 dollars in this session and no answer for the user; "),
    ],
)
def test_a_session_has_limits_of_its_own(team, limits, reached):
    key, most = next(iter(limits.items()))
    hello = Completion(plans("Hello.", to="User"), usage=SPENT)
    session, *_ = team([hello, hello, Completion(plans("compute"), usage=SPENT)], [], **limits)
    session.ask("one")
    session.ask("two")

    with pytest.raises(RoundTooCostly, match=rf"{reached}`session\.{key}` is {most}\. Raise it"):
        session.ask("three")
    with pytest.raises(RoundTooCostly, match=reached):
        session.ask("four")


@pytest.mark.parametrize(
    ("limits", "reached"),
    [
        ({"max_session_calls": 3}, "3 model calls in this session"),
        ({"max_session_tokens": 300}, "330 tokens in this session"),
        ({"max_session_dollars": 0.08}, r"0\.0900 dollars in this session"),
    ],
)
@pytest.mark.parametrize(
    "past",
    [
        lambda session: session.rounds,
        lambda session: [Round.from_dict(json.loads(json.dumps(one.to_dict()))) for one in session.rounds],
        lambda session: rounds_of(read_journal(session.journal)),
        lambda session: rounds_of(one for one in read_journal(session.journal) if not isinstance(one, RoundClosed)),
    ],
    ids=["rounds", "saved rounds", "journal", "journal that was cut off"],
)
def test_the_limits_of_a_session_hold_for_the_session_that_continues_it(team, past, limits, reached):
    hello = Completion(plans("Hello.", to="User"), usage=SPENT)
    first, *_ = team([hello, hello], [])
    first.ask("one")
    first.ask("two")
    second, *_ = team([hello], [], **limits)
    for one in past(first):
        second.remember(one)

    assert (second.usage.calls, second.ask("three").text) == (0, "Hello.")
    with pytest.raises(RoundTooCostly, match=reached):
        second.ask("four")


def test_the_limits_of_a_session_hold_where_a_conversation_opens_another_one(team):
    replies = iter([plans("Hello.", to="User"), plans("compute")])
    talk = PartnerConversation(
        lambda: team([Completion(next(replies), usage=SPENT)], [], max_session_calls=2)[0],
        GivenFiles((), read_settings()),
    )
    assert talk.ask([Line("one")], stopped=threading.Event()).text == "Hello."
    talk.close()

    assert "2 model calls in this session" in talk.ask([Line("two")], stopped=threading.Event()).text


@pytest.mark.parametrize("scope", ["max_", "max_session_"])
@pytest.mark.parametrize(("key", "most"), [("calls", 2), ("tokens", 220), ("dollars", 0.06)])
def test_a_limit_leaves_what_was_done(team, scope, key, most):
    steps = [Completion(plans("compute"), usage=SPENT), Completion(plans("Hello.", to="User"), usage=SPENT)]
    steps = steps[: 1 if scope == "max_session_" else 2]
    session, planner, _ = team(
        steps, [Completion(codes("6 * 7"), usage=SPENT)], results=["42", "43"], **{scope + key: most}
    )

    with pytest.raises(RoundTooCostly, match=f"`session.{scope}{key}` is {most}.*Found until then: 42") as caught:
        session.ask("what is 6*7?")

    assert [post.send_from for post in caught.value.round.posts] == ["User", "Planner", "CodeInterpreter"]
    assert session.rounds == [caught.value.round]
    assert (session.rounds[0].state, session.usage.calls) == (RoundState.failed, 2)
    assert [post.message for post in rounds_of(read_journal(session.journal))[0].posts] == [
        post.message for post in session.rounds[0].posts
    ]
    assert session.run_code("6 * 7 + 1").text == "43"  # asks no model
    if scope == "max_":  # the next round has as much again
        assert session.ask("hello").text == "Hello."
        assert "what is 6*7?" in str(planner.calls[-1])
    else:
        with pytest.raises(RoundTooCostly, match=f"`session.{scope}{key}` is {most}"):
            session.ask("hello")


class Asking(Role):
    """Asks another session."""

    name = "Agency"
    intro = "Asks others."

    def __init__(self, session):
        self.session = session

    def reply(self, memory, **kwargs):
        return Post(self.name, memory.last_post.send_from, self.session.ask(memory.last_post.message).text)


@pytest.mark.parametrize("limits", [{"max_session_calls": 3}, {"max_calls": 3}, {"max_tokens": 300}])
def test_what_an_asked_session_spends_counts_where_it_was_asked(team, limits):
    inner, *_ = team([Completion(plans("It is 42.", to="User"), usage=SPENT)] * 2)
    outer, *_ = team([Completion(plans("ask them", to="Agency"), usage=SPENT)] * 2, [], Asking(inner), **limits)

    with pytest.raises(RoundTooCostly, match=f"`session.{next(iter(limits))}` is 3"):
        outer.ask("what is 6*7?")
    assert inner.usage.calls == 1
    assert inner.ask("by myself").text == "It is 42."


def test_the_limit_of_who_asks_stops_the_asked_session(team):
    inner, *_ = team([Completion(plans("compute"), usage=SPENT)], [])
    outer, *_ = team([Completion(plans("ask them", to="Agency"), usage=SPENT)], [], Asking(inner), max_session_calls=2)

    with pytest.raises(RoundTooCostly, match="`session.max_session_calls` is 2"):
        outer.ask("what is 6*7?")


RAISES = """\
import os
if not os.path.exists('t.csv'):
    raise FileNotFoundError(f't.csv is not in {os.getcwd()}; there is a.csv')
"""
RAISED = (
    "Traceback (most recent call last):\n  cell 1, line 3\n    raise FileNotFoundError(…)\n"
    "FileNotFoundError: t.csv is not in /home; there is a.csv"
)


def test_an_error_that_code_raises_for_the_user_is_reported_without_another_try(team):
    session, planner, coder = team(
        [plans("count the rows of t.csv", then="User"), plans("There is no t.csv, only a.csv.", to="User")],
        [codes(RAISES)],
        results=[Execution(ok=False, error=RAISED)],
    )

    assert session.ask("How many rows has t.csv?").text == "There is no t.csv, only a.csv."

    told = planner.calls[1][-1]["content"]
    assert "The code raised this error itself, to say why there is no answer; it was not tried again." in told
    assert "FileNotFoundError: t.csv is not in /home; there is a.csv" in told


@pytest.mark.parametrize(
    ("then", "code", "error"),
    [
        (None, RAISES, RAISED),
        ("User", RAISES.replace("raise File", "assert File"), RAISED),
        ("User", "def f():\n\n    raise FileNotFoundError('t.csv')\nf()", RAISED.replace("line 3", "line 3, in f")),
        (
            "User",
            "try:\n    x\nexcept NameError:\n    raise ValueError('no x')",
            "  cell 1, line 4\n    …\nValueError: no x",
        ),
        ("User", "raise KeyError(f'no column {d[7]}')", "  cell 1, line 1\n    …\nKeyError: 7"),
        ("User", "raise ValueError", "  cell 1, line 1\n    …\nValueError"),
    ],
    ids=["not forwarded", "no raise", "in a function", "in a try", "its message failed", "no message"],
)
def test_other_errors_are_tried_again(team, then, code, error):
    session, planner, coder = team(
        [plans("count", then=then), *([plans("Seven.", to="User")] if then is None else [])],
        [codes(code), codes("7")],
        results=[Execution(ok=False, error=error), "7"],
    )

    assert session.ask("How many?").text == ("Seven." if then is None else "7")
    assert len(coder.calls) == 2


def test_a_second_error_of_its_own_is_tried_again(team):
    failed = Execution(ok=False, error="  cell 1, line 1\n    x\nNameError: name 'x' is not defined")
    session, planner, coder = team(
        [plans("count", then="User")],
        [codes("x"), codes(RAISES), codes("7")],
        results=[failed, Execution(ok=False, error=RAISED), "7"],
    )

    assert session.ask("How many?").text == "7"


def test_data_of_a_role_whose_keys_are_dates_is_kept_in_the_journal(tmp_path):
    class Reader(Role):
        name, intro = "Reader", "Reads prices."

        def reply(self, memory, **kwargs):
            prices = {datetime.date(2024, 1, 31): [{("MSFT", "close"): 1.5}]}
            return Post(self.name, "Planner", "Read.", (Attachment(AttachmentType.text, "prices", extra=prices),))

    with (
        ScriptedModel([plans("read", to="Reader"), plans("They are read.", to="User")]) as model,
        open_session(model, roles=["planner", Reader], folder=tmp_path) as session,
    ):
        assert session.ask("Read the prices.").text == "They are read."

    posts = rounds_of(read_journal(session.journal))[0].posts
    assert posts[2].attachments[0].extra == {"2024-01-31": [{"('MSFT', 'close')": 1.5}]}


@pytest.mark.parametrize(
    ("turns", "requests"),
    [
        ([["ann: Count."], ["critic: Wrong."]], ["Count.", "critic: Wrong."]),
        ([["ann: Count."], ["ann: Again."]], ["Count.", "Again."]),
        ([["ann: Count."], ["critic: Wrong."], ["ann: Is it?"]], ["Count.", "critic: Wrong.", "Is it?"]),
        ([["ann: Count."], ["critic: Wrong.", "critic: See?"]], ["Count.", "critic: Wrong.\n\ncritic: See?"]),
        ([["ann: Count.", "critic: All."], ["ann: Well?"]], ["ann: Count.\n\ncritic: All.", "Well?"]),
        ([["critic: Count."], ["ann: Well?"]], ["Count.", "ann: Well?"]),
        ([[": Count."], [": Well?"]], ["Count.", "Well?"]),
        ([[], ["ann: Count."]], [CONTINUE, "Count."]),
    ],
)
def test_of_a_chat_of_several_the_first_to_speak_is_the_user_and_others_stand_by_name(tmp_path, turns, requests):
    model = ScriptedModel([plans("Noted.", to="User")] * len(turns))
    talk = PartnerConversation(
        lambda: open_session(model, folder=tmp_path, kernel=None), GivenFiles((), read_settings())
    )
    for turn in turns:
        lines = [Line(text, name=name) for name, _, text in (line.partition(": ") for line in turn)]
        talk.ask(lines, stopped=threading.Event())
    talk.close()

    assert [one.user_query for one in talk.rounds] == requests


def test_others_stand_by_name_too_in_what_is_read_from_a_chat(tmp_path):
    model = ScriptedModel([plans("Noted.", to="User")])
    talk = PartnerConversation(
        lambda: open_session(model, folder=tmp_path, kernel=None), GivenFiles((), read_settings())
    )
    own = Line("Noted.", own=True)
    chat = [Line("Count.", name="ann"), own, Line("Wrong.", name="critic"), own, Line("Is it?", name="ann")]
    talk.answer(chat, goes_on=False, rules="", stopped=threading.Event())
    talk.close()

    assert [one.user_query.partition("\n")[0] for one in talk.rounds] == ["Count.", "critic: Wrong.", "Is it?"]
