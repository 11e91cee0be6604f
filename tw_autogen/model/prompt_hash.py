"""Hashes of prompts, by which recorded replies are found: equal for prompts that differ only from run to run."""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from collections.abc import Sequence

from tw_autogen.model.chat_model import Message
from tw_autogen.text_truncation import shortened

_HEAD_CHARS = 160
_SHORT_CHARS = 12
_ID = re.compile(r"\b(session|round|post)-[0-9a-f]{12}\b")


def prompt_hash(messages: Sequence[Message], *, hide: Sequence[str] = (), today: datetime.date | None = None) -> str:
    """Return the sha256 of the messages as canonical JSON.

    The order of keys and the kind of mapping don't count, nor do ids of sessions, rounds and posts, nor today's date.

    Args:
        messages: What a model is asked.
        hide: Paths that differ from run to run, such as that of the folder in which sessions make theirs.
        today: The date that is taken for today's; None: that of the clock.

    Example:
        >>> asked = {"role": "user", "content": "It is 2026-11-21. Read /tmp/a/session-0123456789ab/files/x.csv"}
        >>> again = {"content": "It is 2027-01-02. Read /home/b/session-ba9876543210/files/x.csv", "role": "user"}
        >>> (
        ...     prompt_hash([asked], hide=["/tmp/a"], today=datetime.date(2026, 11, 21))
        ...     == prompt_hash([again], hide=["/home/b"], today=datetime.date(2027, 1, 2))
        ... )
        True
    """
    canonical = json.dumps(
        [dict(message) for message in messages], sort_keys=True, ensure_ascii=False, separators=(",", ":")
    )
    escaped = [json.dumps(one, ensure_ascii=False)[1:-1] for one in hide]
    return hashlib.sha256(_normalize(canonical, escaped, today).encode()).hexdigest()


def system_hash(messages: Sequence[Message], *, hide: Sequence[str] = ()) -> str:
    """Return a short hash of the system message; empty if the messages don't begin with one.

    Args:
        messages: Oldest first.
        hide: As in `prompt_hash`.
    """
    first = messages[:1]
    return prompt_hash(first, hide=hide)[:_SHORT_CHARS] if first and first[0].get("role") == "system" else ""


def last_message_head(messages: Sequence[Message], *, hide: Sequence[str] = ()) -> str:
    """Return role and beginning of the last message on one line, images as `[image]`.

    Args:
        messages: Oldest first.
        hide: As in `prompt_hash`.
    """
    if not messages:
        return "(no message)"
    content = messages[-1].get("content") or ""
    if not isinstance(content, str):
        content = " ".join(str(part.get("text", f"[{part.get('type', 'part')}]")) for part in content)
    line = _normalize(" ".join(content.split()).replace("[image_url]", "[image]"), hide, None)
    return f"{messages[-1].get('role', '?')}: {shortened(line, _HEAD_CHARS)}"


def _normalize(text: str, hide: Sequence[str], today: datetime.date | None) -> str:
    """Replace what differs from run to run by fixed words."""
    for path in sorted(filter(None, hide), key=len, reverse=True):
        text = text.replace(path, "<folder>")
    text = _ID.sub(r"\1-<id>", text)
    return text.replace((today or datetime.date.today()).isoformat(), "<today>")
