import io
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from tw_autogen.cli.event_printer import EventPrinter
from tw_autogen.cli.output_lines import OutputLines, head_and_tail
from tw_autogen.cli.round_summary import RoundSummary
from tw_autogen.cli.terminal import clean, link, markdown
from tw_autogen.cli.terminal import console as console_of
from tw_autogen.conversation import Attachment, AttachmentType, Plan, Post
from tw_autogen.errors import ModelError, RoundError
from tw_autogen.events import (
    AnswerChecked,
    ArtifactSaved,
    CellOutput,
    CellRan,
    CellStarted,
    CodeChecked,
    CompactionFailed,
    Event,
    FileUnreadable,
    HooksMade,
    HostCalled,
    ModelCalled,
    ModelDelayed,
    PlanChanged,
    PluginsSelected,
    PostClosed,
    PostGrew,
    PostOpened,
    RoundClosed,
    RoundOpened,
    SessionClosed,
    SessionOpened,
)
from tw_autogen.planner import Planner
from tw_autogen.session import Session

PLAN = Plan.parse("1. load sales.csv\n2. report <interactively depends on 1>")


def console(*, encoding="utf-8", width=80):
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    return Console(file=file, width=width, color_system=None, highlight=False)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("environ", "color", "width"),
    [
        ({"TERM": "dumb"}, True, 80),
        ({"TERM": "dumb", "COLUMNS": "100"}, True, 100),
        ({"TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "90"}, True, 90),
        ({"TERM": "xterm", "COLUMNS": "90"}, False, 90),
    ],
)
def test_plain_terminals_get_no_styles_and_a_width(monkeypatch, tmp_path, environ, color, width):
    for name in ("TERM", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    target = console_of(Terminal(), color=color)

    target.print(Text("dim", style="dim"), Text("bold red", style="bold red"), link(tmp_path / "chart.png"))
    target.print(markdown("# Head\n**bold** and `code`"))
    target.print("x" * 300)

    assert "bold red" in target.file.getvalue()
    assert "\x1b" not in target.file.getvalue()
    assert max(map(len, target.file.getvalue().splitlines())) == width


def shown(events, **options):
    target = options.pop("console", None) or console()
    show = EventPrinter(target, **options)
    for event in events:
        show(event)
    show.stop()
    target.file.flush()
    return target.file.buffer.getvalue().decode(target.file.encoding)


def planner(message, to="CodeInterpreter", **attachments):
    said = tuple(Attachment(AttachmentType(name), text) for name, text in attachments.items())
    return PostClosed("r", "p", Post("Planner", to, message, said))


def changed(plan):
    return PlanChanged("r", "Planner", plan)


def called(who, prompt=1000, cached=0, completion=200):
    return ModelCalled(who, "m", prompt, cached, completion, "stop", 1.0)


def ran(cell, **fields):
    plain = {"result": None, "stdout": "", "stderr": "", "error": "", "artifacts": [], "variables": []}
    return CellRan(cell=cell, ok=not fields.get("error"), state_lost=False, seconds=1.84, **{**plain, **fields})


def written(code="print(df.shape)\ndf.sum()", thought="I load the file."):
    return [
        PostOpened("r", "p2", "CodeInterpreter"),
        PostGrew("p2", "thought", thought[:7]),
        PostGrew("p2", "thought", thought[7:]),
        PostGrew("p2", "code", code),
        called("CodeInterpreter"),
        CodeChecked(code, []),
        CellStarted(1, code),
    ]


def whole_round(artifact: Path) -> list[Event]:
    reported = Post("CodeInterpreter", "Planner", "ran", (Attachment(AttachmentType.reply_content, "code"),))
    return [
        SessionOpened("session-1", str(artifact.parent), ["Planner", "CodeInterpreter"], [], "local kernel, pid 7"),
        RoundOpened("r", "what is in sales.csv?", ["sales.csv"]),
        PostClosed("r", "", Post("User", "Planner", "what is in sales.csv?\n\nprofile")),
        PostOpened("r", "p1", "Planner"),
        PostGrew("p1", "message", "Load it"),
        called("Planner", cached=800),
        changed(PLAN.at("1")),
        planner("Load it.", stop="InProcess"),
        *written(),
        CellOutput(1, "stdout", "(12"),
        CellOutput(1, "stdout", ", 3)\nwarm"),
        CellOutput(1, "stderr", "careful\n"),
        HostCalled("sql_pull_data", True, "", 0.12),
        ArtifactSaved("chart", "chart", str(artifact), ""),
        ran(1, result="a  12\nb  30", stdout="(12, 3)\nwarm", stderr="careful\n"),
        PostClosed("r", "p2", reported),
        PostOpened("r", "p3", "Planner"),
        called("Planner"),
        changed(PLAN.completed()),
        planner("There are 12 rows.", "User", stop="Completed"),
        RoundClosed("r", "finished", "Completed", "There are 12 rows.", "", 9.0, {}),
    ]


def test_checks_of_an_answer_are_a_line_with_their_cost():
    checks = [{"code": "assert x", "passed": passed, "why": ""} for passed in (True, True, False)]

    text = shown([AnswerChecked("r", checks, True, 1, 1234)])

    assert "checks: 2 passed, 1 failed, sent back (1 model call, 1234 tokens)" in text


def test_a_round_reads_from_top_to_bottom_without_saying_anything_twice(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    text = shown(whole_round(tmp_path / "chart.png"), question=True)

    assert text == (
        "code runs in: local kernel, pid 7\n"
        "\n"
        "> what is in sales.csv?\n"
        "Planner\n"
        "  ▸ 1. load sales.csv\n"
        "  ○ 2. report\n"
        "  → CodeInterpreter: Load it.\n"
        "CodeInterpreter\n"
        "  I load the file.\n"
        "  │ print(df.shape)\n"
        "  │ df.sum()\n"
        "  (12, 3)\n"
        "  careful\n"
        "  · sql_pull_data on the host, 0.1 s\n"
        "  file chart.png\n"
        "  warm\n"
        "  → a  12\n"
        "    b  30\n"
        "  ✓ cell 1 · 1.8 s\n"
        "Planner\n"
        "  ✓ 1. load sales.csv\n"
        "  ✓ 2. report\n"
        "\n"
        "There are 12 rows.\n"
        "\n"
        "3 model calls · 3.0k in (0.8k cached) / 0.6k out · model 3.0 s · kernel 1.8 s · 1 artifact\n"
    )


def test_the_answer_is_left_to_whoever_prints_it(tmp_path):
    text = shown(whole_round(tmp_path / "chart.png"), answer=False)

    assert "There are 12 rows." not in text
    assert "3 model calls" in text


def test_a_console_that_knows_ascii_only_gets_signs_that_it_can_show(tmp_path):
    text = shown(whole_round(tmp_path / "chart.png"), console=console(encoding="ascii"))

    assert "  > 1. load sales.csv\n  - 2. report\n" in text
    assert "  | df.sum()" in text


def test_only_steps_that_have_moved_are_ticked_until_the_plan_is_reworded():
    plan, other = Plan.parse("1. a\n2. b\n3. c"), Plan.parse("1. a\n2. another")
    text = shown(
        [
            RoundOpened("r", "q", []),
            changed(plan.at("1")),
            planner("go"),
            changed(plan.at("2")),
            planner("on"),
            planner("same"),
            changed(other.at("2")),
            planner("anew"),
        ]
    )

    assert text.splitlines() == [
        "Planner",
        "  ▸ 1. a",
        "  ○ 2. b",
        "  ○ 3. c",
        "  → CodeInterpreter: go",
        "  ✓ 1. a",
        "  ▸ 2. b",
        "  → CodeInterpreter: on",
        "  → CodeInterpreter: same",
        "  ✓ 1. a",
        "  ▸ 2. another",
        "  → CodeInterpreter: anew",
    ]


def test_of_a_reply_that_was_asked_for_again_only_the_last_thought_is_shown():
    text = shown(
        [
            PostOpened("r", "p", "CodeInterpreter"),
            PostGrew("p", "thought", "an unreadable reply"),
            called("CodeInterpreter"),
            PostGrew("p", "thought", "a readable one"),
            called("CodeInterpreter"),
            CodeChecked("1", []),
        ]
    )

    assert "an unreadable reply" not in text
    assert "  a readable one\n  │ 1\n" in text


def test_refused_code_and_failed_cells_say_why():
    error = "Traceback (most recent call last):\n  cell 1, line 1\nZeroDivisionError: division by zero"
    text = shown(
        [
            PostOpened("r", "p", "CodeInterpreter"),
            CodeChecked("import os", ["line 1: import of 'os' is not allowed"]),
            CodeChecked("1/0", []),
            CellStarted(1, "1/0"),
            ran(1, error=error),
        ]
    )

    assert "  │ import os\n  ✗ not run: line 1: import of 'os' is not allowed\n  │ 1/0\n" in text
    assert "  ZeroDivisionError: division by zero\n  ✗ cell 1 failed · 1.8 s\n" in text


def test_long_output_is_counted_and_not_poured_out():
    lines = "".join(f"line {number}\n" for number in range(1000))
    text = shown([CellStarted(1, ""), CellOutput(1, "stdout", lines), ran(1, stdout=lines)])

    assert "  line 29\n  (960 lines are not shown)\n  line 990\n" in text
    assert "  line 999\n  ✓ cell 1" in text


def test_how_to_see_all_of_a_cut_output_is_said_once():
    lines = "".join(f"line {number}\n" for number in range(1000))
    text = shown([CellStarted(7, ""), CellOutput(7, "stdout", lines), ran(7, stdout=lines)], hint="/output {}")

    assert text.count("  all of it: /output 7\n") == 1


def test_the_rows_of_a_wide_table_are_cut_at_the_edge_and_prose_is_wrapped():
    row = "0  " + "  ".join(f"{number:>6}" for number in range(30))
    prose = "word " * 40
    text = shown([CellStarted(1, ""), CellOutput(1, "stdout", f"{row}\n{prose}\n")], console=console(width=60))

    first, *rest = text.splitlines()
    assert first.startswith("  0       0       1")
    assert first.endswith("…")
    assert " ".join(rest).split() == ["word"] * 40


@pytest.mark.parametrize("width", [20, 40, 80])
@pytest.mark.parametrize(
    "code",
    [
        'rows = {"a":  1,   "b":  2}   ; total = sum(rows.values()); print(total)   ' + " " * 60 + "; run(total)",
        "def add(a):\n    return a + 1  # " + "one more than before, " * 8,
        "1  2   3   " + "x" * 300,
    ],
)
def test_code_is_shown_to_its_last_character(code, width):
    text = shown([CodeChecked(code, [])], console=console(width=width))

    assert "…" not in text
    assert "".join(code.split()) in "".join(text.replace("│", "").split())


def test_output_of_a_kernel_that_can_not_tell_while_it_runs_is_shown_at_the_end():
    text = shown([CellStarted(1, ""), ran(1, stdout="late\n", stderr="and wrong\n")])

    assert text.startswith("  late\n  and wrong\n")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("\x1b[2J\x1b[Hgone?\x07", "gone?"),
        ("\x1b]0;a new title\x07safe", "safe"),
        ("10%\r50%\r100%", "100%"),
        ("日本語 🎉 é", "日本語 🎉 é"),
    ],
)
def test_what_code_prints_can_not_steer_the_terminal(written, read):
    assert shown([CellStarted(1, ""), CellOutput(1, "stdout", f"{written}\n")]) == f"  {read}\n"


def test_a_failed_round_ends_with_its_reason_and_its_cost():
    text = shown([RoundOpened("r", "q", []), RoundClosed("r", "failed", "", "", "too long", 1.0, {})])

    assert text == "✗ too long\n0 model calls\n"


def test_tokens_that_no_server_reported_are_not_called_zero():
    text = shown([called("Planner", 0, 0, 0), RoundClosed("r", "failed", "", "", "no", 1.0, {})])

    assert "1 model call · tokens not reported" in text


def test_another_role_is_heard_too():
    post = Post("Echo", "Planner", "\n".join(f"word {number}" for number in range(12)))
    text = shown([RoundOpened("r", "q", []), PostOpened("r", "p", "Echo"), PostClosed("r", "p", post)])

    assert text.startswith("Echo\n  → Planner: word 0\n  word 1\n")
    assert text.endswith("  word 7\n  (4 lines are not shown)\n")


def test_a_terminal_gets_links_colours_and_a_foot_that_moves(tmp_path):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    show = EventPrinter(Console(file=terminal, width=80, force_terminal=True, color_system="standard"))
    for event in whole_round(tmp_path / "chart.png"):
        show(event)
    seen = terminal.getvalue()

    assert (tmp_path / "chart.png").as_uri() in seen
    assert "step 1 of 2 · CodeInterpreter is thinking" in seen
    assert "\x1b[32m✓ cell 1 · 1.8 s" in seen


def test_a_call_that_was_stopped_counts_as_one_without_an_answer(tmp_path):
    class Stopped:
        def complete(self, messages, **more):
            raise ModelError("the call was cancelled")

    tally = RoundSummary()
    with (
        Session([Planner(Stopped())], folder=tmp_path / "session", handlers=[tally]) as session,
        pytest.raises(RoundError, match="cancelled"),
    ):
        session.ask("hello")

    assert tally.line() == "1 model call, 1 without an answer"


def test_a_terminal_shows_a_printed_table_in_columns():
    table = "        Symbol  Price\n0         MSFT   1.50\n1         AAPL  20.00"
    kinds = {AttachmentType.execution_status: "SUCCESS", AttachmentType.execution_result: table}
    worked = Post("CodeInterpreter", "Planner", "It ran.", tuple(Attachment(*item) for item in kinds.items()))
    file = io.StringIO()
    show = EventPrinter(Console(file=file, width=60, force_terminal=True, color_system=None))
    show(RoundOpened("r", "q", []))
    for post in (worked, Post("Planner", "User", table)):
        show(PostClosed("r", post.id, post))
    show(RoundClosed("r", "finished", "Completed", table, "", 1.0, {}))

    lines = [line.rstrip() for line in file.getvalue().splitlines()]
    first = next(at for at, line in enumerate(lines) if line.endswith("Symbol  Price"))
    assert [line.removeprefix(" ") for line in lines[first : first + 3]] == table.splitlines()


def test_the_foot_shows_the_text_that_grows_and_no_single_words_of_the_reply():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    show = EventPrinter(Console(file=terminal, width=80, force_terminal=True))
    for event in (
        RoundOpened("r", "q", []),
        PostOpened("r", "p", "Planner"),
        PostGrew("p", "message", "Load the file"),
        PostGrew("p", "stop", "InProcess"),
        called("Planner"),
        planner("Load the file."),
    ):
        show(event)

    assert "Load the file" in terminal.getvalue()
    assert "InProcess" not in terminal.getvalue()


def test_the_choice_of_plugins_is_shown_in_taskweavers_words():
    text = shown([PluginsSelected("CodeInterpreter", "features", ["a", "b"], ["z", "a", "b"], 40, False)])

    assert "  Selected plugins: ['a', 'b']\n  Selected plugin pool: ['z', 'a', 'b']\n" in text


def test_why_a_round_failed_is_told_without_its_number():
    text = shown([RoundClosed("round-1", "failed", "", "", "round-1: 4 posts and no answer for the user", 1.0)])

    assert text.startswith("✗ 4 posts and no answer for the user\n")


def test_why_a_model_is_waited_for_is_told():
    text = shown([ModelDelayed("Planner", "the server is too busy (429); try 2 of 4 in 8 s")])

    assert text == "Planner\n  · the server is too busy (429); try 2 of 4 in 8 s\n"


def test_a_file_that_could_not_be_read_is_named():
    text = shown([FileUnreadable("r", "b.json: not readable as json: Expecting value")])

    assert text == "! b.json: not readable as json: Expecting value\n"


def test_a_summary_that_did_not_come_is_told():
    text = shown([CompactionFailed("Planner", 30_000, "no server", 3)])

    assert text == "  ✗ no summary of Planner's history (30000 tokens), it stays as it is: no server\n"


def test_new_hooks_where_code_can_write_are_named():
    text = shown([HooksMade("r", ["/project/.envrc"])])

    assert text.endswith(
        "! new in a folder that code can write to; look at it before a program reads it: /project/.envrc\n"
    )


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        ("rows: **3**\ncolumns: 2\n\n- one\n- two", ["rows: 3", "columns: 2", "", "• one", "• two"]),
        ("`x` is <NA> in 3 of List<int>", ["x is <NA> in 3 of List<int>"]),
        ("<div>It is 42.</div>", ["<div>It is 42.</div>"]),
        ("~~12~~ [13](http://x.org/a)", ["12 13 (http://x.org/a)"]),
    ],
)
def test_a_terminal_keeps_line_breaks_html_and_addresses_of_an_answer_and_renders_the_rest_as_markdown(answer, lines):
    file = io.StringIO()
    terminal = Console(file=file, width=40, color_system=None, force_terminal=True, highlight=False)

    terminal.print(markdown(answer))

    assert [line.strip() for line in file.getvalue().splitlines()] == lines


@pytest.mark.parametrize(
    "grown",
    [
        "I add.\nx = 1\nprint(x)\nThis prints 1.",
        'I add.\n<tool_call>{"name": "python", "arguments": {"code": "x = 1\\nprint(x)"}}</tool_call>',
        "I add.\n<code>\nx = 1\nprint(x)\n</code>",
    ],
)
def test_code_without_a_fence_is_printed_once(grown):
    printed = shown(
        [PostOpened("r", "p", "CodeInterpreter"), PostGrew("p", "thought", grown), CodeChecked("x = 1\nprint(x)", [])]
    )

    assert printed.count("print(x)") == 1
    assert "I add." in printed
    assert "<" not in printed


def test_what_may_be_wrong_with_an_answer_is_printed():
    printed = shown([planner("@r[nan]", to="User", stop="Completed", invalid_response="@r[nan] is no value")])

    assert "! the answer may be wrong: @r[nan] is no value" in printed


def test_what_a_cell_prints_for_the_user_is_not_shown_whole_twice_and_a_long_answer_not_whole():
    lines = [f"row {number}" for number in range(20)]
    beginning = "row 0\n… the whole answer, 200 characters, is in answer.txt"

    text = shown([
        RoundOpened("r", "all rows?", []),
        planner("Print all rows.", then="User"),
        CellStarted(1, "print(rows)"),
        CellOutput(1, "stdout", "\n".join(lines)),
        ran(1, stdout="\n".join(lines)),
        planner(beginning, "User", stop="Completed", answer="\n".join(lines)),
        RoundClosed("r", "finished", "Completed", "\n".join(lines), "", 9.0, {}),
    ], hint="/output {}")  # fmt: skip

    printed, _, answer = text.partition("cell 1 ·")
    assert [line in printed for line in lines] == [True] * 4 + [False] * 15 + [True]
    assert "(15 lines are not shown)\n  row 19\n  all of it: /output 1" in printed
    assert beginning in answer
    assert "row 1\n" not in answer


class Paused(SessionClosed):
    """An event that nothing which shows events knows; no direct subclass of `Event`, where the pages find theirs."""

    line = "paused by a\x1b[31m person"
    warning = "the kernel waits"


def test_an_event_that_the_printer_does_not_know_is_shown_by_its_line_and_its_warning():
    tally = RoundSummary()
    tally(Paused("s"))

    assert shown([Paused("s"), SessionClosed("s")]) == "! the kernel waits\n  · paused by a person\n"
    assert tally.warnings == ["the kernel waits"]


def test_a_line_that_grows_by_single_characters_takes_linear_time(cpu_seconds):
    lines = OutputLines(30, 10)
    began = cpu_seconds()
    for _ in range(200_000):
        lines.feed("stdout", "a")
        lines.unfinished("stdout")

    assert cpu_seconds() - began < 10
    assert lines.unfinished("stdout") == "a" * 4000
    assert lines.feed("stdout", "b\nc\rd") == ["a" * 200_000 + "b"]
    assert lines.unfinished("stdout") == "d"
    assert lines.rest() == [("stdout", "d")]


@pytest.mark.parametrize(("count", "hidden"), [(4, 0), (5, 0), (6, 2)])
def test_a_single_line_is_never_hidden_behind_a_line_that_says_so(count, hidden):
    text = "".join(f"{number}\n" for number in range(count))
    lines = OutputLines(head=2, tail=2)
    whole = text.splitlines()
    cut = [*whole[:2], f"({hidden} lines are not shown)", *whole[-2:]] if hidden else whole

    assert [*lines.feed("stdout", text), *(line for _, line in lines.rest())] == cut
    assert head_and_tail(text, 2, 2).splitlines() == cut
    assert lines.hidden_line_count == hidden


@pytest.mark.parametrize("thought", ["\x1b[" + "9" * 5000 + "m", "\x1b]0;" * 3000, "\x1b" * 9000, "\r" * 9000 + "x"])
def test_code_counts_as_shown_only_when_it_was_printed_whatever_a_model_writes_beside_it(thought):
    target = console()
    show = EventPrinter(target)
    show(PostOpened("p", "CodeInterpreter", "Planner"))
    show(PostGrew("p", "thought", thought))
    show(CodeChecked("marker = 1", ()))

    assert show.shown_code == "marker = 1"
    target.file.seek(0)
    assert "marker = 1" in target.file.read()


def test_code_of_which_printing_failed_does_not_count_as_shown(monkeypatch):
    target = console()
    show = EventPrinter(target)
    show(CodeChecked("before = 1", ()))
    monkeypatch.setattr(target, "print", lambda *args, **kwargs: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        show(CodeChecked("marker = 1", ()))

    assert show.shown_code == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x07b\x1b[31mc", "abc"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x07", "link"),
        ("\x1b(Ba\x1b=b\x1bMc\x1b", "abc"),
        ("\x1b[" + "1;" * 9000 + "mred\x1b[0m", "red"),
        ("50%\r100%\nend\n", "100%\nend\n"),
        ("\x1b[12\x07x", "[12x"),
        ("a\tb\r\nc", "a    b\nc"),
        ("50%\r100%\r", "100%"),
        ("\x9b31mx\x85y", "31mxy"),
    ],
)
def test_text_moves_no_cursor(text, shown):
    assert clean(text) == shown
