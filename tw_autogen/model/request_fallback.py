"""`RequestFallback`: optional parts of a request, each dropped for good once the server refuses it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_LADDER = ("json_schema", "json_object", "text")
_ABOUT_FORMAT = re.compile(r"response.?format|json|schema|structured|guided|grammar", re.I)
_ABOUT_STREAM_OPTIONS = re.compile(r"stream.?options|include.?usage", re.I)
_ABOUT_STREAM = re.compile(r"\bstream(ed|ing)?\b", re.I)
_ABOUT_TOOLS = re.compile(r"tool|function.?call", re.I)


class RequestFallback:
    """The optional parts of a request: `response_format`, `tools`, `stream`, usage numbers while streaming.

    A part that was refused is not sent again. Calls may be concurrent.

    Args:
        response_format: The first to try: `auto`, `json_schema`, `json_object` or `text`.
    """

    def __init__(self, response_format: str) -> None:
        self._format = "json_schema" if response_format == "auto" else response_format
        self._streams = True
        self._asks_usage = True
        self._offers_tools = True

    @property
    def sends_format(self) -> bool:
        """Whether a request with a schema has a `response_format`."""
        return self._format != "text"

    def of(self, body: Mapping[str, Any], schema: Mapping[str, Any] | None, *, streams: bool) -> dict[str, Any]:
        """Return a request with the parts that were not refused.

        Args:
            body: The request; its `tools` are removed if the server has refused them.
            schema: Of the answer; None: any.
            streams: Whether the answer is to be streamed.
        """
        request = {**body, **_response_format(self._format, schema)}
        if not self._offers_tools:
            request.pop("tools", None)
        if streams and self._streams:
            request["stream"] = True
            if self._asks_usage:
                request["stream_options"] = {"include_usage": True}
        return request

    def give_in(self, words: str, param: str, request: Mapping[str, Any]) -> bool:
        """Drop the part that was refused, for good; return False if none was.

        Args:
            words: The server's.
            param: The part of the request that it names; empty if it names none.
            request: As `of` returned it.
        """
        if "stream_options" in request and _ABOUT_STREAM_OPTIONS.search(words):
            self._asks_usage = False
            return True
        if "stream" in request and _ABOUT_STREAM.search(f"{words} {param}"):
            self._streams = False
            return True
        if "tools" in request and _ABOUT_TOOLS.search(f"{words} {param}"):
            self._offers_tools = False
            return True
        if "response_format" in request and _ABOUT_FORMAT.search(f"{words} {param}"):
            if self._format == request["response_format"]["type"]:  # a call at its side may have stepped down already
                self._format = _LADDER[_LADDER.index(self._format) + 1]
            return True
        return False


def _response_format(rung: str, schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the `response_format` of one rung of the ladder; empty for plain text."""
    if schema is None or rung == "text":
        return {}
    if rung == "json_object":
        return {"response_format": {"type": "json_object"}}
    name = re.sub(r"[^A-Za-z0-9_-]", "_", str(schema.get("title") or "reply"))[:64]
    wanted = {"name": name, "schema": dict(schema), "strict": _is_strict(schema)}
    return {"response_format": {"type": "json_schema", "json_schema": wanted}}


def _is_strict(schema: Any) -> bool:
    """Return True if OpenAI takes the schema as strict: each object closed, each of its fields required."""
    if isinstance(schema, Mapping):
        fields = schema.get("properties")
        if isinstance(fields, Mapping) and (
            schema.get("additionalProperties") is not False or set(fields) != set(schema.get("required", ()))
        ):
            return False
        return all(map(_is_strict, schema.values()))
    return all(map(_is_strict, schema)) if isinstance(schema, list) else True
