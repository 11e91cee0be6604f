import base64
import json
import re
from pathlib import Path

import nbformat
import pytest
from markdown_it import MarkdownIt

from tw_autogen.conversation import Attachment, AttachmentType, Plan, Post
from tw_autogen.events import (
    CellOutput,
    CellRan,
    CellStarted,
    CodeChecked,
    PostClosed,
    RoundClosed,
    RoundOpened,
    SessionOpened,
)
from tw_autogen.safe_folder import KERNEL_FOLDERS
from tw_autogen.scenario.html_report import write_report
from tw_autogen.session import export_session
from tw_autogen.session.event_journal import Journal
from tw_autogen.session.export import _notebook_markdown
from tw_autogen.session.markdown_text import markdown_cells, without_html
from tw_autogen.session.notebook_export import notebook, write_notebook
from tw_autogen.session.notebook_progress import last_lines
from tw_autogen.text_escaping import NO_FORMULAS

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

SOURCE = "<ul><li>12: printed (output 1: 12)</li></ul>"
RESULT = AttachmentType.execution_result


def ran(cell, **fields):
    plain = {"result": None, "stdout": "", "stderr": "", "error": "", "artifacts": [], "variables": []}
    return CellRan(cell=cell, ok=not fields.get("error"), state_lost=False, seconds=0.1, **{**plain, **fields})


def artifact(path, preview=""):
    return {"name": path.stem, "kind": "chart", "path": str(path), "preview": preview}


def plan(text):
    return PostClosed("r", "p", Post("Planner", "CodeInterpreter", "go", plan=Plan.parse(text)))


@pytest.fixture
def events(tmp_path):
    (tmp_path / "chart.png").write_bytes(PNG)
    (tmp_path / "chart.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>", encoding="utf-8")
    files = [artifact(tmp_path / name, "12 rows") for name in ("chart.png", "chart.svg", "table.csv", "gone.png")]
    return [
        SessionOpened("session-1", str(tmp_path), ["Planner", "CodeInterpreter"], ["sql_pull_data"], "local kernel"),
        RoundOpened("r", "how many rows?", ["sales.csv"]),
        plan("1. load\n2. report <interactively depends on 1>"),
        CodeChecked("import os", ["line 1: import of 'os' is not allowed"]),
        CodeChecked("1/0", []),
        CellStarted(1, "1/0"),
        CellOutput(1, "stdout", "half "),
        ran(1, stdout="half way\n", error="Traceback (most recent call last):\nZeroDivisionError: division by zero"),
        CellStarted(2, "len(df)"),
        ran(2, result="12", stderr="careful\n", artifacts=files),
        PostClosed("r", "p", Post("CodeInterpreter", "Planner", "12", (Attachment(RESULT, "12"),))),
        plan("1. load\n2. report <interactively depends on 1>"),
        RoundClosed("r", "finished", "Completed", "12 rows.", "", 1.0, {}),
    ]


def outputs(cell):
    return [(output.output_type, output.get("name", "")) for output in cell.outputs]


def test_a_session_becomes_a_valid_notebook_with_words_and_code_in_their_order(events):
    made = notebook(events)

    nbformat.validate(made)
    assert [(cell.cell_type, cell.source) for cell in made.cells] == [
        ("markdown", "# session-1\n\nThe code ran in: local kernel, with sql_pull_data."),
        ("markdown", "## Request\n\nhow many rows?\n\nFiles: `sales.csv`"),
        ("markdown", "**Plan**\n\n1. load\n2. report &lt;interactively depends on 1>"),
        (
            "markdown",
            "**Not run, because it breaks rules:**\n\n```python\nimport os\n```\n\n"
            "- line 1: import of 'os' is not allowed",
        ),
        ("code", "1/0"),
        ("code", "len(df)"),
        ("markdown", "## Answer\n\n12 rows."),
        ("markdown", f"<details><summary>Sources of 1 number</summary>{SOURCE}</details>"),
    ]
    assert [cell.execution_count for cell in made.cells if cell.cell_type == "code"] == [1, 2]


def test_refused_and_failed_code_is_kept_and_tagged(events):
    refused, failed = notebook(events).cells[3:5]

    assert refused.metadata.tags == ["refused"]
    assert refused.cell_type == "markdown"
    assert failed.metadata.tags == ["failed", "raises-exception"]
    assert outputs(failed) == [("stream", "stdout"), ("error", "")]
    assert failed.outputs[0].text == "half way\n"
    assert (failed.outputs[1].ename, failed.outputs[1].evalue) == ("ZeroDivisionError", "division by zero")


TRACED = "Traceback (most recent call last):\n  cell 1, line 1\n    f()\n"


@pytest.mark.parametrize(
    ("error", "name", "value"),
    [
        (f"{TRACED}ValueError: first\nHint: second", "ValueError", "first"),
        (f"{TRACED}pydantic.ValidationError: 1 error for M\na\n  Input", "pydantic.ValidationError", "1 error for M"),
        (f"KeyError: 'a'\n\nThe error above led to this one:\n\n{TRACED}ValueError", "ValueError", ""),
        ("  cell 1, line 1\n    x = (\nSyntaxError: incomplete input", "SyntaxError", "incomplete input"),
    ],
)
def test_an_error_is_called_by_its_kind_whatever_its_message_says(error, name, value):
    (cell,) = notebook([CellStarted(1, "f()"), ran(1, error=error)]).cells

    assert (cell.outputs[0].ename, cell.outputs[0].evalue) == (name, value)


def test_the_plugins_that_code_calls_are_loaded_by_a_cell_at_the_beginning(tmp_path):
    opened = SessionOpened("s", str(tmp_path), ["Planner"], ["sql_pull_data", "mine", "unused"], "local kernel")
    code = "df, said = sql_pull_data('SELECT 1')\nmine(df)"

    head, first, *_ = notebook([opened, CellStarted(1, code), ran(1)]).cells

    assert "The code calls plugins, which the first cell loads" in head.source
    assert first.metadata.tags == ["plugins"]
    assert first.source.splitlines()[1:] == [
        "# That needs this package: pip install tw-autogen, with the extra data for plugins that it brings",
        "from tw_autogen.testing import load_plugin",
        "",
        'sql_pull_data = load_plugin("sql_pull_data", ".")',
        '# mine = load_plugin("PATH/mine.yaml", ".")',
    ]


def test_a_cell_that_ended_by_an_exit_does_not_stop_the_rest():
    made = notebook([CellStarted(1, "import sys\nsys.exit(0)"), ran(1), CellStarted(2, "1"), ran(2)])

    assert [cell.metadata.get("tags") for cell in made.cells] == [["raises-exception"], None]


def test_code_with_fences_in_it_that_was_refused_stays_one_block():
    (cell,) = notebook([CodeChecked("text = '''\n```\nrm\n'''", ["line 1: no"])]).cells

    assert "````python\ntext" in cell.source


def test_words_about_code_that_was_refused_open_no_block_for_what_follows():
    events = [CodeChecked("x", ["line 1\n\n```\nopen"]), CodeChecked("```\n<img src=x>\n```", ["line 1: no"])]
    tokens = MarkdownIt("commonmark").parse(_notebook_markdown(notebook(events)))

    assert not [token for token in tokens if "<img" in token.content and token.type != "fence"]


DRAWN = {
    "in a list": "- a\n\n  ```mermaid\n  x\n  ```",
    "in a quotation": "> ~~~ mermaid\n> x",
    "a task": "- [x] ````mermaid\n  x",
    "in an attribute": '1. ```python" style="background:url(//a)"\n   x',
    "a language and more": '- ~~~ python x" style="background:url(//a)"\n  x',
    "a footnote": "[^1]: ```mermaid\n    x",
    "behind words": "words ~~~mermaid",
}


@pytest.mark.parametrize("case", DRAWN)
def test_no_block_in_a_list_or_quotation_names_what_programs_draw_or_take_for_attributes(case):
    (cell,) = markdown_cells(DRAWN[case])

    assert not re.search(r"(?:```|~~~).*(?:mermaid|style)", cell)


def test_a_block_in_a_list_keeps_a_language_of_ours_and_words_their_signs():
    assert markdown_cells("- a\n\n  ```python\n  x\n  ```") == ["- a\n\n  ```python\n  x\n  ```"]
    assert markdown_cells("Write ```x``` to me@example.org") == ["Write ```x``` to me@example.org"]


def test_programs_that_show_notebooks_look_for_no_formula_in_them(events, tmp_path):
    path = write_notebook([*events, CodeChecked("x", ["line 1: $x$"])], tmp_path / "x.ipynb")

    cells = [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "markdown"]
    assert cells
    assert all(cell.source.startswith(f"<div {NO_FORMULAS}>\n\n") for cell in cells)
    assert all(cell.source.endswith("\n\n</div>") for cell in cells)


@pytest.mark.parametrize("text", ["@@0@@", "@\\@0@\\@", "![@@**0**@@](a.csv)"])
def test_nothing_becomes_a_place_for_formulas(text):
    page = MarkdownIt("commonmark").render(markdown_cells(text)[0])

    assert "@@" not in re.sub(r"<[^>]*>", "", page)
    assert "@@" not in page


def test_pictures_are_embedded_and_other_files_are_named(events):
    cell = notebook(events).cells[5]

    assert outputs(cell) == [("stream", "stderr"), *[("display_data", "")] * 4, ("execute_result", "")]
    png, svg, table, gone = (output.data for output in cell.outputs[1:5])
    assert base64.b64decode(png["image/png"]) == PNG
    assert svg["image/svg+xml"].startswith("<svg")
    assert table == {"text/plain": "table.csv: 12 rows"}
    assert gone == {"text/plain": "gone.png: 12 rows"}
    assert cell.outputs[5].data == {"text/plain": "12"}


def test_a_journal_that_anybody_may_have_written_shows_no_pictures_of_other_folders(tmp_path):
    private = tmp_path / "private.png"
    private.write_bytes(PNG)
    (tmp_path / "planted").mkdir()
    for path in (private, tmp_path / "planted/../private.png"):
        made = [{"name": "x", "kind": "image", "path": str(path), "preview": ""}]
        ran = CellRan(1, True, None, "", "", "", made, [], False, 0.1)
        opened = json.dumps({"seq": 0, "at": "", **CellStarted(1, "draw()").to_dict()})
        lines = f"{opened}\n{json.dumps({'seq': 1, 'at': '', **ran.to_dict()})}\n"
        (tmp_path / "planted/events.jsonl").write_text(lines, encoding="utf-8")

        (cell,) = notebook(tmp_path / "planted/events.jsonl").cells

        assert [output.data for output in cell.outputs] == [{"text/plain": "private.png"}]


def test_a_drawing_with_a_script_is_named_with_the_reason(events, tmp_path):
    drawing = "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'><script>alert(2)</script></svg>"
    (tmp_path / "chart.svg").write_text(drawing, encoding="utf-8")

    made = notebook(events)

    assert made.cells[5].outputs[2].data == {
        "text/plain": "chart.svg: 12 rows (not shown: it holds the event handler onload)"
    }
    assert "alert" not in nbformat.writes(made)


def test_a_notebook_does_not_say_of_a_kernel_that_it_has_yet_to_start():
    where = "local kernel, sandbox: landlock, starts with the first cell, no network"

    made = notebook([SessionOpened("s", "/s", ["Planner"], [], where), CellStarted(1, "2"), ran(1)])

    assert made.cells[0].source == "# s\n\nThe code ran in: local kernel, sandbox: landlock, no network."


def test_the_journal_gives_the_same_notebook_as_the_events_each_time(events, tmp_path):
    with Journal(tmp_path / "events.jsonl") as journal:
        for event in events:
            journal.write(event)

    first = write_notebook(tmp_path / "events.jsonl", tmp_path / "a.ipynb").read_bytes()

    assert write_notebook(events, tmp_path / "a.ipynb").read_bytes() == first
    nbformat.validate(nbformat.read(tmp_path / "a.ipynb", as_version=4))


def test_a_cell_that_was_cut_off_stays_so_where_the_session_goes_on():
    opened = SessionOpened("s", "/s", ["Planner"], [], "here")
    cut_off = [CellStarted(1, "loop()"), CellOutput(1, "stdout", "half\n")]
    went_on = [CellStarted(1, "2"), CellRan(1, True, "2", "", "", "", [], [], False, 0.1)]

    made = notebook([opened, RoundOpened("r", "q", []), *cut_off, opened, *went_on])

    first = next(cell for cell in made.cells if cell.metadata.get("tags") == ["unfinished"])
    (second,) = [cell for cell in made.cells if cell.cell_type == "code"]
    assert first.source == "**Not run to its end:**\n\n```python\nloop()\n```\n\n```\nhalf\n```"
    assert (second.metadata.get("tags"), second.outputs[0].data["text/plain"]) == (None, "2")


def test_a_session_that_was_cut_off_keeps_what_its_last_cell_wrote():
    made = notebook([RoundOpened("r", "q", []), CellStarted(1, "loop()"), CellOutput(1, "stdout", "row 1\n")])

    assert made.cells[-1].metadata.tags == ["unfinished"]
    assert "row 1" in made.cells[-1].source


@pytest.mark.parametrize(
    ("texts", "shown"),
    [
        ([f"line {number}\n" for number in range(9)], ["line 4", "line 5", "line 6", "line 7", "line 8", ""]),
        (["a", "b\n", "c"], ["ab", "c"]),
        (["start\n", "\r0 %", "\r10 %", "\r20 %"], ["start", "20 %"]),
        (["10 %\r", "20 %\r"], ["20 %\r"]),
        (["windows\r\n", "end"], ["windows\r", "end"]),
        (["x" * 400], ["x" * 300]),
    ],
)
def test_of_what_a_running_cell_prints_the_last_lines_are_shown(texts, shown):
    output = []
    for text in texts:
        output = last_lines(output, text)

    assert output == shown


@pytest.mark.parametrize(
    ("error", "state_lost"),
    [
        ("Stopped on request, by an interrupt; variables are kept.\nTraceback …\nKeyboardInterrupt", False),
        ("Stopped after 5 seconds, by an interrupt.", False),
        ("Stopped on request: the code did not react to an interrupt, so the kernel was killed.", True),
        ("The kernel died while this cell ran: out of memory.", True),
    ],
)
def test_a_cell_that_was_stopped_is_not_run_by_run_all(error, state_lost):
    stopped = CellRan(1, False, None, "row 1\n", "", error, [], [], state_lost, 5.0)

    made = notebook([CellStarted(1, "loop()"), stopped, CellStarted(2, "3"), ran(2)])

    first, second = made.cells
    assert (first.cell_type, first.metadata.tags, second.cell_type) == ("markdown", ["stopped"], "code")
    assert [one in first.source for one in ("loop()", "row 1", error.partition("\n")[0])] == [True] * 3


def test_half_a_surrogate_pair_is_a_question_mark_in_a_notebook(tmp_path):
    events = [
        RoundOpened("round-1", "draw \udcff", []),
        RoundClosed("round-1", "finished", "", "Drawn \ud800.", "", 1.0),
    ]

    text = write_notebook(events, tmp_path / "a.ipynb").read_text(encoding="utf-8")

    assert "draw ?" in text
    assert "Drawn ?." in text


def test_a_round_without_an_answer_says_why():
    made = notebook([RoundOpened("r", "q", []), RoundClosed("r", "failed", "", "", "10 posts", 1.0, {})])

    assert made.cells[-1].source == "## No answer\n\nThe round failed: 10 posts"


def folder_link(here, victim):
    (here / "out").symlink_to(victim)
    return here / "out" / "a.ipynb"


def file_link(here, victim):
    (here / "out").mkdir()
    (here / "out" / "a.ipynb").symlink_to(victim / "a.ipynb")
    return here / "out" / "a.ipynb"


@pytest.mark.parametrize("where", ["the current folder", "a kernel's folder"])
@pytest.mark.parametrize(("lay", "written"), [(folder_link, False), (file_link, True)])
@pytest.mark.parametrize("write", [write_notebook, lambda events, path: write_report([], path, title="t")],
                         ids=["notebook", "report"])  # fmt: skip
def test_a_file_of_the_users_is_written_through_no_link_that_code_may_have_laid(
    write, lay, written, where, tmp_path, monkeypatch, request
):
    here, victim = tmp_path / "here", tmp_path / "victim"
    here.mkdir()
    victim.mkdir()
    (victim / "a.ipynb").write_text("canary", encoding="utf-8")
    path = lay(here, victim)
    if where == "the current folder":
        monkeypatch.chdir(here)
    else:
        KERNEL_FOLDERS.add(here)
        request.addfinalizer(lambda: KERNEL_FOLDERS.discard(here))
    if written:
        write([], path)
        assert path.read_text(encoding="utf-8") not in ("", "canary")
    else:
        with pytest.raises(PermissionError, match="out is a link, which code may have made"):
            write([], path)
    assert (victim / "a.ipynb").read_text(encoding="utf-8") == "canary"


HOSTILE = "<script>alert(1)</script> <img src='http://x/y' onerror=1>"


@pytest.fixture
def hostile_session(tmp_path):
    """The folder of a session in which everything holds HTML that would run, and fences that would end a block."""
    folder = tmp_path / "session-1"
    folder.mkdir()
    (folder / "a.png").write_bytes(PNG)
    artifacts = [{"name": "a", "kind": "chart", "path": str(folder / "a.png"), "preview": ""},
                 {"name": "b", "kind": "file", "path": f"{folder}/<img src=x>.txt", "preview": HOSTILE}]  # fmt: skip
    code = f"x = '''\n```\n{HOSTILE}\n'''\n# \r{HOSTILE}"
    with Journal(folder / "events.jsonl") as journal:
        journal.write(SessionOpened("session-1", "f", [], [], "here"))
        journal.write(RoundOpened("r", f"q\u2028 {HOSTILE}", []))
        journal.write(CellStarted(1, code))
        journal.write(CellRan(1, True, HOSTILE, f"```\n{HOSTILE}\r{HOSTILE}", HOSTILE, "", artifacts, [], False, 0.1))
        journal.write(
            RoundClosed("r", "finished", "Completed", f"**It** is [x](javascript:alert(1)).\r{HOSTILE}", "", 1)
        )
    return folder


@pytest.mark.parametrize("ending", ["md", "html"])
def test_a_session_is_written_for_reading_with_pictures_and_nothing_that_runs(hostile_session, tmp_path, ending):
    path = export_session(hostile_session, tmp_path / f"x.{ending}")

    text = path.read_text(encoding="utf-8")
    assert "data:image/png;base64,iVBORw" in text
    page = text if ending == "html" else MarkdownIt("commonmark").render(text)
    assert "<h2>" in page
    assert "<strong>It</strong>" in page
    assert not [one for one in ("<script", "<img src='http") if one in page]
    assert ending == "md" or "javascript:" not in page.replace("(javascript:alert(1))", "")


def test_no_cell_of_words_in_a_notebook_holds_html_of_a_request_or_an_answer(hostile_session):
    words = [cell.source for cell in notebook(hostile_session / "events.jsonl").cells if cell.cell_type == "markdown"]

    assert not [word for word in words if "<script" in word or "<img" in word]


def test_a_notebook_embeds_pictures_up_to_20_mb_and_nothing_that_is_none(tmp_path):
    contents = {"a.png": PNG, "b.png": bytes(5_000_000), **{f"c{n}.png": PNG + bytes(4_000_000) for n in range(5)}}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    artifacts = [{"name": one, "kind": "file", "path": str(tmp_path / one), "preview": ""} for one in contents]
    ran = CellRan(1, True, None, "", "", "", artifacts, [], False, 0.1)

    cells = notebook([SessionOpened("s", "f", [], [], "here"), CellStarted(1, "1"), ran], below=tmp_path).cells

    shown = [output.data["text/plain"] for output in cells[-1].outputs if "image/png" in output.data]
    assert shown == ["a.png", "c0.png", "c1.png", "c2.png", "c3.png"]
    left_out = [output.data["text/plain"] for output in cells[-1].outputs if output.data["text/plain"] not in shown]
    assert left_out == [
        "b.png (not shown: no PNG)",
        "c4.png (not shown: the pictures are too large together)",
    ]


@pytest.mark.parametrize("ending", ["md", "html"])
def test_an_export_obeys_no_template_or_configuration_of_the_current_folder(
    hostile_session, tmp_path, ending, monkeypatch
):
    here = tmp_path / "here"
    for name in ("basic", "markdown", "base", "classic", "lab", "."):
        (here / name).mkdir(parents=True, exist_ok=True)
        for template in ("index.html.j2", "index.md.j2", "base.html.j2"):
            (here / name / template).write_text("PLANTED", encoding="utf-8")
        (here / name / "conf.json").write_text('{"mimetypes": {"text/html": true, "text/markdown": true}}')
    monkeypatch.chdir(here)

    path = export_session(hostile_session, Path(f"x.{ending}"))

    assert "PLANTED" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a < b and 1<2", "a < b and 1<2"),
        ("```\n<b>\n```\n<b>", "```\n&lt;b>\n```\n&lt;b>"),
        ("`<b>` only", "`&lt;b>` only"),
        ("a<br>b, <https://x.org>", "a&lt;br>b, &lt;https://x.org>"),
        ("> a <b\n> title='x'> c", "> a &lt;b\n> title='x'> c"),
        ("<!-- x -->", "&lt;!-- x -->"),
        ("", ""),
        ("![a](http://x/y) `![`", "!&#91;a](http://x/y) `!&#91;`"),
        ("![a][r]\n\n[r]: //x/y", "!&#91;a][r]\n\n[r]&#58; //x/y"),
        ("[![a](x)](y)", "[!&#91;a](x)](y)"),
        ("![a](data:image/png;base64,AAAA)", "![a](data:image/png;base64,AAAA)"),
        ("![a](data:image/svg+xml;base64,AAAA)", "!&#91;a]&#40;data:image/svg+xml;base64,AAAA)"),
        ("![c](data: x", "!&#91;c]&#40;data: x"),
        (
            "[a](javascript:x) [b](b.csv) [c](<x:y>)",
            "[a]&#40;javascript:x) [b](b.csv) [c]&#40;<x:y>)".replace("<x", "&lt;x"),
        ),
        (
            "[a](\ndata:text/html,x) [d](https://x/y) [e](file:///a)",
            "[a]&#40;\ndata:text/html,x) [d](https://x/y) [e](file:///a)",
        ),
        ("[a]: javascript:x\n[b]: https://x", "[a]&#58; javascript:x\n[b]: https://x"),
        ("http://x/doc\\<img src=//x>", "http://x/doc\\&lt;img src=//x>"),
        ("|a|b|\n|-|-|\n| ` | <b> ` |", "|a|b|\n|-|-|\n| ` | &lt;b> ` |"),
        ("$a < b$ and $$x^2$$", "$a < b$ and $$x^2$$"),
    ],
)
def test_html_and_addresses_of_images_in_words_are_shown_as_text(text, shown):
    assert without_html(text) == shown


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("a\n\n```python\n<b>\n```\n<b>", ["a", "```python\n<b>\n```", "&lt;b>"]),
        ("```mermaid\n<b>\n```", ["```\n<b>\n```"]),
        ("# R\n\n<div>\n```\n\n```\n<b>", ["# R\n\n&lt;div>", "```\n\n```", "&lt;b>"]),
        (" ```sql\n a<b\n   c<d\n```\n\n\ta <b\n\t\tc <d", ["```sql\na<b\n  c<d\n```", "```\na <b\n\tc <d\n```"]),
        ("$$\n~~~ {.x}\n$$ <b>\n~~~", ["$$", "```\n$$ <b>\n```"]),
        ("so:\n~~~\n1", ["so:", "```\n1\n```"]),
        ("so:\n````\n```", ["so:", "````\n```\n````"]),
        ("    1\n\nb", ["```\n1\n```", "b"]),
        ("- a\n  ~~~\n  <b>", ["- a\n  ~~~\n  &lt;b>"]),
        ("<b\ra>", ["&lt;b\na>"]),
        ("x" * 20_001 + "<b>", ["```\n" + "x" * 20_001 + "<b>\n```"]),
        ("\n\n", []),
    ],
)
def test_blocks_of_code_begin_a_cell_of_their_own(text, cells):
    assert markdown_cells(text) == cells


FORMULAS = [("$", "$"), ("$$", "$$"), (r"\\(", r"\\)"), (r"\\[", r"\\]"), (r"\begin{a}", r"\end{a}"), ("$", "\n$")]
AROUND = [
    "{a}`{b} {tag} `",
    "{a}\n```\n{b}\n{tag}\n```",
    "`{a}` {b}`{tag}`",
    "```\n{a}\n```\n{b}\n```\n{tag}\n```",
    "~~~\n{a}\n{b}~~~\n{tag}\n~~~",
    "    {a}\n\n{b} `{tag}`",
    "{a} http://x/y\\{tag} {b}",
    "[1]: http://x{tag}{tag} {a}{b}",
    "~~`~~{tag}`{a}{b}",
    "{a}{b}\n: `\n: {tag}`",
    "```mermaid\n{tag}\n{a}{b}\n```",
    "# R\n\n<div>\n```\n\n```\n{tag}{a}{b}",
]


@pytest.mark.parametrize(
    "tag",
    ["<script>alert(1)</script>", "![p](http://127.0.0.1/x.png)", "[p](javascript:alert(1))", "[p](data:text/html,1)"],
)
@pytest.mark.parametrize("form", AROUND)
def test_a_formula_opens_no_code_for_the_programs_that_show_notebooks(form, tag):
    filters = pytest.importorskip("nbconvert.filters.markdown_mistune")
    for begin, end in FORMULAS:
        text = form.format(a=begin, b=end, tag=tag)

        cells = [cell.source for cell in notebook([RoundClosed("r", "answered", text, "", "", 1.0, {})]).cells]

        pages = [*map(filters.markdown2html_mistune, cells), MarkdownIt("commonmark").render("\n\n".join(cells))]

        for page in pages:  # the last one as of an `.md`
            assert not re.search(r"<(script|img)|href=.(javascript|data):", page), text


def test_a_request_and_the_names_of_its_files_make_no_formula_together():
    filters = pytest.importorskip("nbconvert.filters.markdown_mistune")
    opened = RoundOpened("r", "what costs 5 $?", ["`$ <img src=x>.csv"])

    (cell,) = notebook([opened]).cells

    assert "<img" not in filters.markdown2html_mistune(cell.source)


TAG = "<img src=x onerror=alert(1)>"


@pytest.mark.parametrize("ending", ["md", "ipynb"])
def test_nothing_in_an_exported_session_is_active_whoever_has_written_it(tmp_path, ending):
    said = f"{TAG} ![chart](http://127.0.0.1:9/x.png?d=SECRET)"
    steps = Post("Planner", "CodeInterpreter", "go", plan=Plan.parse(f"1. load {said}"))
    with Journal(tmp_path / "events.jsonl") as journal:
        for event in (
            SessionOpened(f"s{said}", "f", ["Planner"], [f"p{said}"], f"k{said}"),
            RoundOpened("r", f"hi {said}", [f"a`{said}`.csv", "`", "", "a\n\n" + said]),
            PostClosed("r", "p", steps),
            CodeChecked("x", [f"line 1 (shell): shell command '{said}' is not allowed\n  Use {said}"]),
            RoundClosed("r", "failed", "", f"a {said}", f"e {said}", 1.0, {}),
        ):
            journal.write(event)
    path = export_session(tmp_path, tmp_path / f"a.{ending}")

    text = path.read_text(encoding="utf-8")
    cells = [text] if ending == "md" else [cell["source"] for cell in json.loads(text)["cells"]]
    page = "".join(MarkdownIt("commonmark").render("".join(cell)) for cell in cells)
    assert page.count("SECRET") >= 10
    assert "<img" not in page
