"""An answer as HTML for a notebook: words, pictures, and folded what led to them; nothing in it runs or loads."""

from __future__ import annotations

import base64
import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from tw_autogen.conversation import AttachmentType, Plan, Post, Round, Status
from tw_autogen.kernel import Artifact
from tw_autogen.lazy_module import LazyModule
from tw_autogen.number_sources import NumberSource
from tw_autogen.picture_files import PictureReader, is_picture
from tw_autogen.plural import pluralize
from tw_autogen.render_limits import MAX_MARKDOWN_CHARS, is_quickly_rendered
from tw_autogen.session.markdown_text import fence_printed_output, ready_parser
from tw_autogen.svg_sanitizer import UnsafeSvgError
from tw_autogen.text_escaping import NO_FORMULAS, visible
from tw_autogen.text_truncation import first_of, without_middle

if TYPE_CHECKING:
    import markdown_it
else:
    markdown_it = LazyModule("markdown_it")  # takes 50 ms, and only notebooks and pages need it

_MAX_CHARS, _FILES_CHARS = 50_000, 20_000
"""Of a cell or an output; what is longer is cut, with a note."""
_MAX_SOURCES, _MAX_MISSING = 500, 10
_MARKS = {Status.done: "✓", Status.current: "▸", Status.pending: "○"}
_PRE = (
    "white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere;margin:0.3em 0 0.6em 0;padding:0.4em 0.8em;"
    "border-left:3px solid rgba(128,128,128,0.4)"
)
_DIM = "opacity:0.7;font-size:90%"


def markdown_html(text: str, pictures: Mapping[str, str]) -> str:
    r"""Return Markdown as HTML, in which no HTML of its own, script, or address that is loaded is left.

    Args:
        text: Written by a model; the time it takes is linear, and what exceeds 20 000 characters is cut. Tables with
            more cells than these could fill are shown as they stand, with all the rest.
        pictures: HTML of pictures by path: shown where the text has an image of that name. Of other images only the
            description is shown.

    Example:
        >>> markdown_html("**3** <b>x</b> ![chart](http://x/a.png)", {})
        '<p><strong>3</strong> &lt;b&gt;x&lt;/b&gt; chart</p>\n'
    """
    if not is_quickly_rendered(text[:MAX_MARKDOWN_CHARS]):
        return output_html(text)
    return str(_renderer().render(without_middle(text, MAX_MARKDOWN_CHARS, tail_percent=0), {"pictures": pictures}))


def plan_html(plan: Plan) -> str:
    """Return the steps of a plan, each with the mark of its status."""
    steps = "".join(f"<div>{_MARKS[step.status]} {_escape(f'{step.id}. {step.text}')}</div>" for step in plan.steps)
    return f'<div style="margin:0.3em 0 0.6em 0">{steps}</div>'


def output_html(text: str) -> str:
    """Return text as it stands, hidden characters as escapes; what exceeds 50 000 characters is cut."""
    return f'<pre style="{_PRE}">{_escape(without_middle(text, _MAX_CHARS, tail_percent=0))}</pre>'


def note_html(text: str) -> str:
    """Return a line about what is shown."""
    return f'<div style="{_DIM}">{_escape(text)}</div>'


def folded_html(head: str, body: str, *, is_open: bool = False) -> str:
    """Return a part that opens with a click.

    Args:
        head: The line that is always shown, as text.
        body: HTML.
        is_open: Whether it is open to begin with.
    """
    return f"<details{' open' if is_open else ''}><summary>{_escape(head)}</summary>{body}</details>"


def sources_html(sources: Sequence[NumberSource]) -> str:
    """Return folded where the numbers of an answer come from; the line that is always shown names those without one.

    Args:
        sources: As `number_sources` returns them; empty: nothing is shown.
    """
    if not sources:
        return ""
    head = f"Sources of {pluralize(len(sources), 'number')}"
    for kind, title in ("not found", "not found in any output"), ("possible", "only possibly computed"):
        if numbers := [source.number for source in sources if source.kind == kind]:
            shown = ", ".join(numbers[:_MAX_MISSING]) + (", …" if len(numbers) > _MAX_MISSING else "")
            head += f"; {title}: {shown}"
    items = "".join(f"<li>{_escape(str(source))}</li>" for source in sources[:_MAX_SOURCES])
    return folded_html(head, f"<ul>{items}</ul>")


def answer_html(
    here: Round, text: str, artifacts: Sequence[Artifact], sources: Sequence[NumberSource], note: str
) -> str:
    """Return an answer with its pictures, files, plan and code.

    Args:
        here: The round it comes from.
        text: Its words, Markdown; printed output at their end is shown as a block.
        artifacts: Its files; pictures are shown, up to 20 MB together, others are named.
        sources: Of its numbers.
        note: A last line, such as what it has cost.
    """
    pictures, files = _artifacts_html(artifacts)
    words = (
        markdown_html(fence_printed_output(text, here.posts), pictures)
        if text.strip()
        else note_html("(The answer is empty.)")
    )
    parts = [words, *(picture for picture in pictures.values() if picture not in words)]
    listed = first_of(files, _FILES_CHARS)
    listed[len(files) :] = [f"<li>{one}</li>" for one in listed[len(files) :]]
    parts += [f'<ul style="margin:0.3em 0">{"".join(listed)}</ul>'] if files else []
    plan = next((post.plan for post in reversed(here.posts) if post.plan is not None), None)
    if plan is not None:
        done = sum(step.status is Status.done for step in plan.steps)
        head = f"Plan: {done} of {len(plan.steps)} steps done"
        parts.append(folded_html(head, plan_html(plan), is_open=done < len(plan.steps)))
    parts += [_code_html(here), sources_html(sources)]
    parts += [note_html(note)] if note else []
    return f"<div {NO_FORMULAS}>{''.join(parts)}</div>"


def code_cells(here: Round) -> list[Post]:
    """Return the posts of a round whose code ran to its end, in their order."""
    return [post for post in here.posts if post.content(AttachmentType.execution_status) == "SUCCESS"]


def _code_html(here: Round) -> str:
    posts = [post for post in here.posts if post.attachment(AttachmentType.reply_content) is not None]
    if not posts:
        return ""
    body = ""
    for post in posts:
        code = without_middle(post.content(AttachmentType.reply_content), _MAX_CHARS, tail_percent=0)
        body += f'<pre style="{_PRE}"><code>{_escape(code)}</code></pre>'
        status = post.content(AttachmentType.execution_status)
        result = post.content(AttachmentType.execution_result) or post.content(AttachmentType.code_error)
        head = {"SUCCESS": "Output", "FAILURE": "It failed"}.get(status, "Not run")
        body += note_html(head) + output_html(result) if result.strip() else ""
    return folded_html(f"Code: {pluralize(len(posts), 'cell')}", body)


def _artifacts_html(artifacts: Iterable[Artifact]) -> tuple[dict[str, str], list[str]]:
    """Return pictures as HTML by path, and the other files as items of a list."""
    pictures: dict[str, str] = {}
    files, reader = [], PictureReader()
    for artifact in artifacts:
        problem = ""
        if is_picture(artifact.path):
            try:
                mime, content = reader.read(artifact.path)
            except (OSError, UnsafeSvgError) as error:
                problem = f"not shown: {getattr(error, 'strerror', None) or error}"
            else:
                pictures[artifact.path.as_posix()] = _picture_html(artifact.path, mime, content)
                continue
        files.append(_file_item_html(artifact, problem))
    return pictures, files


def _picture_html(path: Path, mime: str, content: bytes) -> str:
    source = f"data:{mime};base64,{base64.b64encode(content).decode('ascii')}"
    name = _escape(path.name)
    return f'<div><img src="{source}" alt="{name}" title="{name}" style="max-width:100%;background:white"></div>'


def _file_item_html(artifact: Artifact, problem: str) -> str:
    preview = problem or next(iter(artifact.preview.strip().splitlines()), "")
    preview_text = f": {_escape(preview)}" if preview else ""
    return f'<li><code title="{_escape(str(artifact.path))}">{_escape(artifact.path.name)}</code>{preview_text}</li>'


def _escape(text: str) -> str:
    return html.escape(visible(text))


@cache
def _renderer() -> markdown_it.MarkdownIt:
    """Return a Markdown renderer whose links and images lead to nothing by themselves."""
    renderer = markdown_it.MarkdownIt("js-default", {"html": False})
    renderer.add_render_rule("image", _render_image)
    renderer.add_render_rule("link_open", _render_link_open)
    return ready_parser(renderer)


def _render_image(self: Any, tokens: Sequence[Any], index: int, options: Any, env: Mapping[str, Any]) -> str:
    """Render an image of Markdown: a picture of the answer, else its description; no address is ever loaded."""
    source = unquote(str(tokens[index].attrs.get("src", ""))).removeprefix("./")
    pictures = env["pictures"]
    near = [path for path in pictures if path.rpartition("/")[2] == source.rpartition("/")[2]]
    near.sort(key=lambda path: not f"/{path}".endswith(f"/{source}"))  # of two of one name that of the named folder
    return str(pictures[near[0]] if near else html.escape(tokens[index].content))


def _render_link_open(self: Any, tokens: Sequence[Any], index: int, options: Any, env: Mapping[str, Any]) -> str:
    """Render the beginning of a link so that what it leads to learns nothing of this page."""
    tokens[index].attrSet("rel", "noopener noreferrer nofollow")
    tokens[index].attrSet("target", "_blank")
    render: Callable[..., str] = self.renderToken
    return render(tokens, index, options, env)
