"""Says in a line what a displayed file holds: size of a picture, title of a page, keys, traces, shape of a table."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from typing import Any

_CHARS = 100
_READ = 20_000
_PNG = b"\x89PNG\r\n\x1a\n"


def line_about(mime: str, body: bytes) -> str:
    """Return the line; empty where nothing can be said.

    Example:
        >>> line_about("text/html", b"<html><title>Sales &amp; more</title><p>...")
        'Sales & more'
        >>> line_about("application/json", b'{"a": 1, "b": [2]}')
        'a, b'
    """
    if mime in ("image/png", "image/gif", "image/jpeg"):
        size = _picture_size(body)
        return f"{size[0]} x {size[1]} pixels" if size else ""
    if mime in ("text/html", "image/svg+xml"):
        return _title(body[:_READ].decode("utf-8", "replace"))
    if mime.endswith("json"):
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            return ""
        return _short(_figure(value) if "plotly" in mime else _keys(value))
    return ""


def _picture_size(body: bytes) -> tuple[int, int] | None:
    if body.startswith(_PNG) and len(body) >= 24:
        return int.from_bytes(body[16:20], "big"), int.from_bytes(body[20:24], "big")
    if body.startswith(b"GIF8") and len(body) >= 10:
        return int.from_bytes(body[6:8], "little"), int.from_bytes(body[8:10], "little")
    place = 2
    while body.startswith(b"\xff\xd8") and place + 9 <= len(body) and body[place] == 0xFF:
        marker = body[place + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):  # the frame's own header
            height, width = body[place + 5 : place + 7], body[place + 7 : place + 9]
            return int.from_bytes(width, "big"), int.from_bytes(height, "big")
        place += 2 + int.from_bytes(body[place + 2 : place + 4], "big")
    return None


def _title(text: str) -> str:
    found = re.search(r"(?i)<title[^<>]*>([^<]*)</title>", text)
    plain = found[1] if found else re.sub(r"(?is)<(script|style)\b.*?(</\1>|$)|<[^<>]*>", " ", text)
    return _short(html.unescape(plain))


def _keys(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(map(str, value))
    return f"{len(value)} items" if isinstance(value, list) else str(value)


def _figure(value: Any) -> str:
    """Return what a Plotly figure shows: its title, and the kinds of its traces."""
    if not isinstance(value, Mapping):
        return ""
    traces = value.get("data")
    kinds = [str(one.get("type", "scatter")) for one in traces or () if isinstance(one, Mapping)]
    layout = value.get("layout")
    title = layout.get("title") if isinstance(layout, Mapping) else None
    words = title.get("text") if isinstance(title, Mapping) else title
    return f"{f'{words}: ' if words else ''}{', '.join(dict.fromkeys(kinds)) or 'no traces'}"


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain[:_CHARS] + ("…" if len(plain) > _CHARS else "")
