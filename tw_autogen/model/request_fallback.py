"""`RequestFallback`: optional parts of a request, each dropped for good once a server has refused it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tw_autogen.model.http_client import ServerRefusal

_LADDER = ("json_schema", "json_object", "text")
_ABOUT_FORMAT = re.compile(r"response.?format|json|schema|structured|guided|grammar", re.I)
_ABOUT_GRAMMAR = re.compile(r"grammar|json.?schema|response.?format|required for format", re.I)
"""In the failures (500) of llama.cpp and Ollama, which can't make every grammar."""
_BAD_GENERATION = re.compile(r"json_validate_failed|failed to (generate|validate) json", re.I)
_ABOUT_STREAM_OPTIONS = re.compile(r"stream.?options|include.?usage", re.I)
_ABOUT_STREAM = re.compile(r"\bstream(ed|ing)?\b", re.I)
_ABOUT_TOOLS = re.compile(r"tool|function.?call", re.I)


@dataclass(frozen=True)
class RequestFallback:
    """The optional parts of a request that a server is not known to refuse.

    A part that was refused is left out for good once the request without it was taken: words such as "JSON" also stand
    in refusals of something else.

    Args:
        format: The rung of the ladder: `json_schema`, `json_object` or `text`.
        streams: Whether the answer may be streamed.
        asks_usage: Whether a stream may be asked for its usage numbers.
        offers_tools: Whether tools may be offered.
        lasts: Whether what is left out was refused for good, and not for one bad generation.
    """

    format: str
    streams: bool = True
    asks_usage: bool = True
    offers_tools: bool = True
    lasts: bool = True

    @classmethod
    def beginning(cls, response_format: str) -> RequestFallback:
        """Return all parts.

        Args:
            response_format: The first to try: `auto`, `json_schema`, `json_object` or `text`.
        """
        return cls("json_schema" if response_format == "auto" else response_format)

    @property
    def sends_format(self) -> bool:
        """Whether a request with a schema has a `response_format`."""
        return self.format != "text"

    def merged(self, taken: RequestFallback) -> RequestFallback:
        """Return the parts that are left after a request was taken; calls may be concurrent.

        Args:
            taken: The parts of that request.
        """
        if not taken.lasts:
            return self
        rung = max(self.format, taken.format, key=_LADDER.index)
        usage, tools = self.asks_usage and taken.asks_usage, self.offers_tools and taken.offers_tools
        return RequestFallback(rung, self.streams and taken.streams, usage, tools)

    def of(self, body: Mapping[str, Any], schema: Mapping[str, Any] | None, *, streams: bool) -> dict[str, Any]:
        """Return a request with the parts that were not refused.

        Args:
            body: The request; its `tools` are removed if the server has refused them.
            schema: Of the answer; None: any.
            streams: Whether the answer is to be streamed.
        """
        request = {**body, **_response_format(self.format, schema)}
        if not self.offers_tools:
            request.pop("tools", None)
        if streams and self.streams:
            request["stream"] = True
            if self.asks_usage:
                request["stream_options"] = {"include_usage": True}
        return request

    def without_refused(
        self, message: str, refused: ServerRefusal, request: Mapping[str, Any]
    ) -> RequestFallback | None:
        """Return the parts without the one that was refused; None if none was.

        Args:
            message: The server's.
            refused: Its refusal.
            request: As `of` returned it.
        """
        status, message_text = refused.status_code, f"{message} {refused.param}"
        any_part = status in (400, 422)
        if any_part and "stream_options" in request and _ABOUT_STREAM_OPTIONS.search(message):
            return replace(self, asks_usage=False)
        if any_part and "stream" in request and _ABOUT_STREAM.search(message_text):
            return replace(self, streams=False)
        if status in (400, 422, 404) and "tools" in request and _ABOUT_TOOLS.search(message_text):  # 404: OpenRouter
            return replace(self, offers_tools=False)
        about_format = _ABOUT_FORMAT if any_part else _ABOUT_GRAMMAR if status in (500, 501) else None
        if "response_format" in request and about_format and about_format.search(message_text):
            lasts = self.lasts and not _BAD_GENERATION.search(f"{refused.code} {message}")
            return replace(self, format=_LADDER[_LADDER.index(self.format) + 1], lasts=lasts)
        return None


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
