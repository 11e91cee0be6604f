"""An HTML file about runs: one table, and below it each run's whole conversation with code, output and pictures."""

from __future__ import annotations

import base64
import importlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tw_autogen.conversation import AttachmentType
from tw_autogen.errors import ConfigError
from tw_autogen.events import (
    ArtifactSaved,
    CellRan,
    CellStarted,
    CodeChecked,
    HistoryCompacted,
    LessonsRecalled,
    ModelCalled,
    PostClosed,
)
from tw_autogen.picture_files import PictureReader, is_picture
from tw_autogen.safe_folder import open_or_make_folder
from tw_autogen.scenario.evidence import RoundEvidence
from tw_autogen.scenario.repeated_runs import Runs
from tw_autogen.scenario.scenario_run import Outcome
from tw_autogen.scenario.spy_model import Call
from tw_autogen.svg_sanitizer import UnsafeSvgError
from tw_autogen.text_escaping import visible

_TEMPLATE = Path(__file__).with_name("report.html.j2")


def check_report() -> None:
    """Find out before anything runs whether a report can be written.

    Raises:
        ConfigError: jinja2 isn't installed; says how it is.
    """
    try:
        importlib.import_module("jinja2")
    except ImportError:
        raise ConfigError('an HTML report needs jinja2:\n  pip install "tw-autogen[report]"') from None


def write_report(all_runs: Sequence[Runs], path: Path | str, *, title: str) -> Path:
    """Write one HTML file that needs no other: up to 20 MB of pictures are in it.

    Args:
        all_runs: What was run; the sessions' folders must still be there, for the pictures.
        path: The file; a file or link that is there is replaced. Its folder is opened as `open_or_make_folder` does.
        title: What stands at the top, such as the model's name.

    Raises:
        ConfigError: jinja2 isn't installed.
        OSError: it can't be written, or a link that code may have made is in the way.
    """
    check_report()
    jinja2 = importlib.import_module("jinja2")
    made = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    made.filters["visible"] = visible
    template = made.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    path = Path(path)
    pictures = PictureReader()
    text = template.render(title=title, all_runs=[_template_values(run, pictures) for run in all_runs]) + "\n"
    with open_or_make_folder(path.parent) as folder:
        folder.write_file(path.name, text.encode("utf-8", "replace"))
    return path


def _template_values(runs: Runs, pictures: PictureReader) -> dict[str, Any]:
    judged = [*runs.judged, *[None] * (len(runs.outcomes) - len(runs.judged))]
    return {
        "runs": runs,
        "name": runs.scenario.name,
        "calls": runs.mean(lambda usage: usage.calls),
        "prompt": runs.mean(lambda usage: usage.prompt_tokens),
        "cached": runs.mean(lambda usage: usage.cached_tokens),
        "completion": runs.mean(lambda usage: usage.completion_tokens),
        "holding": sum(one.holds is True for one in runs.judged),
        "outcomes": [
            {
                "outcome": outcome,
                "judged": said,
                "rounds": [
                    {"name": str(seen), "entries": list(_round_entries(seen, pictures)), "error": seen.round.error}
                    for seen in outcome.evidence.rounds
                ],
                "calls": _calls_as_dicts(outcome),
            }
            for outcome, said in zip(runs.outcomes, judged, strict=True)
        ],
    }


def _round_entries(seen: RoundEvidence, pictures: PictureReader) -> Iterator[dict[str, Any]]:
    """Yield what happened in a round, as the template shows it."""
    code: dict[int, str] = {}
    for event in seen.events:
        if isinstance(event, PostClosed):
            post = event.post
            yield {"kind": "post", "post": post, "plan": post.content(AttachmentType.plan)}
        elif isinstance(event, CodeChecked) and event.findings:
            yield {"kind": "refused", "code": event.code, "findings": event.findings}
        elif isinstance(event, CellStarted):
            code[event.cell] = event.code
        elif isinstance(event, CellRan):
            yield {"kind": "cell", "cell": event, "code": code.get(event.cell, "")}
        elif isinstance(event, ArtifactSaved):
            picture = _picture_data_url(Path(event.path), pictures)
            yield {"kind": "file", "name": event.name, "preview": event.preview, "picture": picture}
        elif isinstance(event, HistoryCompacted):
            yield {"kind": "summary", "event": event}
        elif isinstance(event, LessonsRecalled):
            yield {"kind": "lessons", "event": event}
        elif isinstance(event, ModelCalled):
            yield {"kind": "model", "call": event}
        elif words := event.warning or event.line:
            yield {"kind": "line", "words": words}


def _picture_data_url(path: Path, pictures: PictureReader) -> str:
    """Return a picture as a data URL; empty if the file is none, too large with those before, or gone."""
    if not is_picture(path):
        return ""
    try:
        mime, content = pictures.read(path)
    except (OSError, UnsafeSvgError):
        return ""
    return f"data:{mime};base64,{base64.b64encode(content).decode('ascii')}"


def _calls_as_dicts(outcome: Outcome) -> list[dict[str, Any]]:
    return [
        {
            "role": call.role,
            "messages": [_message_as_dict(message) for message in call.messages],
            "said": _reply_text(call),
        }
        for call in outcome.calls
    ]


def _reply_text(call: Call) -> str:
    if call.completion is None:
        return "(no reply)"
    asked = [f"{one.name}({one.arguments})" for one in call.completion.tool_calls]
    return "\n".join(filter(None, (call.completion.text, *asked)))


def _message_as_dict(message: Mapping[str, Any]) -> dict[str, str]:
    content = message.get("content") or ""
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=1)
    return {"role": str(message.get("role", "")), "text": text}
