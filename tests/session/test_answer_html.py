"""What a notebook shows of answers, files and sessions: nothing of the model's or the data's runs or loads."""

import base64
import re
from html.parser import HTMLParser

import pytest

from tw_autogen.conversation import Attachment, AttachmentType, Plan, Post, Round, RoundState
from tw_autogen.kernel import Artifact
from tw_autogen.model import Usage
from tw_autogen.session import Answer
from tw_autogen.session.answer_html import answer_html, markdown_html

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SVG = "<svg xmlns='http://www.w3.org/2000/svg'><path d='M0 0'/></svg>"
HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "![x](http://tracker.invalid/a.png)",
    "![x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](javascript:alert(1))",
    "[x](data:text/html,<script>)",
    "[x]: javascript:alert(1)\n\n[x]",
    "`<script>`",
    "```html\n<script>alert(1)</script>\n```",
    "<svg onload=alert(1)>",
    "| <b>a |\n|---|\n| <script> |",
    '![a" onerror="alert(1)](chart.png)',
    '[a](https://x.invalid "\\" onmouseover=\\"alert(1)")',
    "<javascript:alert(1)>",
    "&lt;script&gt;",
]
KNOWN = {"p", "a", "code", "pre", "table", "thead", "tbody", "tr", "th", "td", "em", "strong", "div", "details"}
KNOWN |= {"summary", "ul", "ol", "li", "br", "hr", "h1", "h2"}


class Tags(HTMLParser):
    """The tags of a page with their attributes, as a browser reads them."""

    def __init__(self):
        super().__init__()
        self.tags = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


def posts(text, code="", result="", *, plan=None, artifacts=(), status="SUCCESS"):
    kind = AttachmentType
    ran = [
        Attachment(kind.reply_content, code),
        Attachment(kind.execution_status, status),
        Attachment(kind.execution_result, result),
        Attachment(kind.artifact_paths, "", [artifact.to_dict() for artifact in artifacts]),
    ]
    worked = [Post("CodeInterpreter", "Planner", "done", tuple(ran))] if code else []
    return [Post("User", "Planner", "?"), *worked, Post("Planner", "User", text, plan=plan)]


def answer(text, *args, **more):
    return Answer.of(Round("?", "r", posts(text, *args, **more), RoundState.finished), Usage(calls=2))


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("place", ["answer", "code", "result", "plan"])
def test_nothing_that_a_model_or_data_says_runs_or_loads(text, place):
    parts = {"answer": "words", "code": "1", "result": "1"} | ({place: text} if place != "plan" else {})
    plan = Plan.parse(f"1. {' '.join(text.split())}") if place == "plan" else None
    page = answer(parts["answer"], parts["code"], parts["result"], plan=plan)._repr_mimebundle_()["text/html"]

    found = Tags()
    found.feed(page)
    for name, attributes in found.tags:
        assert name in KNOWN
        assert set(attributes) <= {"style", "open", "href", "rel", "target", "title", "class", "start"}
        assert attributes.get("href", "https://").startswith(("https://", "http://"))


def test_a_picture_stands_where_the_words_have_it_whatever_its_name():
    pictures = {"/s/a/plot.png": "<i>a</i>", "/s/b/plot.png": "<i>b</i>", "/s/größe 1.png": "<i>g</i>"}

    page = markdown_html(
        "![x](b/plot.png) ![y](plot.png) ![Größe](größe%201.png) ![z](<größe 1.png>) ![n](no.png)", pictures
    )

    assert page == "<p><i>b</i> <i>a</i> <i>g</i> <i>g</i> n</p>\n"


def test_two_pictures_of_one_name_are_both_shown(tmp_path):
    made = []
    for folder in "ab":
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "plot.png"
        path.write_bytes(PNG)
        made.append(Artifact("plot.png", "image", path))

    assert answer_html(Round("q"), "two charts", made, (), "").count("<img") == 2


def test_pictures_are_shown_once_and_other_files_are_named(tmp_path):
    made = {"chart.png": PNG, "drawn.svg": SVG.encode(), "bad.svg": b"<svg><script/></svg>", "t.csv": b"a\n1\n"}
    files = []
    for name, content in made.items():
        (tmp_path / name).write_bytes(content)
        files.append(Artifact(name, "chart", tmp_path / name, "1 row"))
    (tmp_path / "link.png").symlink_to("/etc/hostname")
    files.append(Artifact("link", "chart", tmp_path / "link.png"))
    page = answer("See ![it](files/chart.png).", "x", artifacts=files)._repr_mimebundle_()["text/html"]

    assert page.count("data:image/png;base64,") == 1
    assert page.index("data:image/png") < page.index("data:image/svg+xml;base64,")
    assert len(re.findall(r"<li><code [^>]*>(bad\.svg|t\.csv|link\.png)</code>: (not shown|1 row)", page)) == 3


def test_drawings_are_written_anew_up_to_5_mb_together_and_the_others_are_named(tmp_path):
    drawing = SVG.replace("<path", f"<!--{'x' * 1_999_000}--><path").encode()
    made = []
    for number in range(5):
        (tmp_path / f"d{number}.svg").write_bytes(drawing)
        made.append(Artifact(f"d{number}", "chart", tmp_path / f"d{number}.svg"))

    page = answer_html(Round("q"), "five drawings", made, (), "")

    assert page.count("<img") == 2
    assert page.count("not shown: the pictures are too large together") == 3


def test_as_text_an_answer_is_its_words_and_files(tmp_path):
    found = answer("**6**\x1b[31m", "x", artifacts=[Artifact("t", "df", tmp_path / "t.csv")])

    assert found._repr_mimebundle_()["text/plain"] == f"**6**\\x1b[31m\n{tmp_path / 't.csv'}"
    assert repr(found) == "<Answer '**6**\\x1b[31m', 1 artifact, 2 model calls>"
    assert found.code == ("x",)
    assert len(repr(answer("long " * 1000))) < 200


def test_an_artifact_is_shown_as_its_picture(tmp_path):
    (tmp_path / "chart.png").write_bytes(PNG)
    (tmp_path / "bad.svg").write_text("<svg><script/></svg>")

    shown = Artifact("c", "chart", tmp_path / "chart.png", "a line")._repr_mimebundle_()
    refused = Artifact("b", "svg", tmp_path / "bad.svg")._repr_mimebundle_()

    assert base64.b64decode(shown["image/png"]) == PNG
    assert shown["text/plain"] == f"{tmp_path / 'chart.png'}\na line"
    assert set(refused) == {"text/plain"}
    assert "not shown" in refused["text/plain"]


def test_a_plan_has_ticks_and_is_open_while_steps_are_left():
    plan = Plan.parse("1. load\n2. sum\n3. draw").at("2")
    page = answer("half", plan=plan)._repr_mimebundle_()["text/html"]

    assert "<details open><summary>Plan: 1 of 3 steps done</summary>" in page
    assert re.findall(r"<div>(.) \d\.", page) == ["✓", "▸", "○"]


def test_hostile_markdown_takes_bounded_time(cpu_seconds):
    began = cpu_seconds()
    page = markdown_html("[" * 200_000, {})

    assert "characters left out" in page
    assert cpu_seconds() - began < 10
