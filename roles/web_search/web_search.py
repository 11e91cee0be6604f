"""WebSearch: asks a search engine's JSON endpoint, and gives titles, addresses and excerpts."""

import html
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit

import httpx

from tw_autogen import Attachment, AttachmentType, Memory, Post, Role, Turn

_TAG = re.compile(r"<[^<>]*>")
_MAX_QUERIES = 4
_EXCERPT_CHARS = 400
_QUERY_CHARS = 400
_OVER = "not searched for; the round is over."


@dataclass(frozen=True)
class WebSearchSettings:
    """Which engine is asked.

    Args:
        url: The endpoint: `http://localhost:8888/search` of a SearXNG whose `search.formats` has `json`, or
            `https://api.search.brave.com/res/v1/web/search`, or one that speaks like either.
        kind: How it is spoken to.
        key_env: Name of the environment variable that holds the key; sent to this endpoint alone, and only
            if both are set in one place; shown nowhere.
        results: How many are shown of each search.
        seconds: How long one search may take.
        max_mb: How large an answer may be, in megabytes.
    """

    url: str
    kind: Literal["searxng", "brave"] = "searxng"
    key_env: str = field(default="", metadata={"server": "url", "folder": "trusted"})
    results: int = 5
    seconds: float = 15.0
    max_mb: float = 4.0


@dataclass(frozen=True)
class _Found:
    title: str
    url: str
    excerpt: str


class WebSearch(Role):
    """Asks a search engine, without cookies and without following redirects.

    Args:
        settings: See `WebSearchSettings`.

    Raises:
        ValueError: the address is none, or the key is not in the environment.

    Source: TaskWeaver's web_search. Differs: an endpoint of the user's own; pages are not downloaded here.
    """

    def __init__(self, settings: WebSearchSettings) -> None:
        self._settings, self._brave = settings, settings.kind == "brave"
        address = urlsplit(settings.url)
        if address.scheme not in ("http", "https") or not address.hostname or address.port == 0:
            raise ValueError(f"url: {settings.url!r} is no http:// or https:// address")
        self._host = address.hostname
        key = os.environ.get(settings.key_env, "").strip()
        if settings.key_env and not key:
            raise ValueError(f"key_env: there is no {settings.key_env} in the environment")
        if not (key.isascii() and key.isprintable()):
            raise ValueError(f"key_env: {settings.key_env} holds a character that no key has; copy it again")
        headers = {"Accept": "application/json", "User-Agent": "tw-autogen", "DNT": "1"}
        if key and self._brave:
            headers["X-Subscription-Token"] = key
        elif key:
            headers["Authorization"] = f"Bearer {key}"
        self._headers = headers

    def reply(self, memory: Memory, **kwargs: Any) -> Post:
        """Search for each line of the newest post."""
        asked, turn = memory.last_post, kwargs.get("turn")
        lines = [" ".join(line.split()) for line in re.split(r"[\n|]", asked.message)]
        queries = [line[:_QUERY_CHARS] for line in lines if re.search(r"\w", line)]
        if not queries:
            return Post(self.name, asked.send_from, "Nothing was searched for: send search terms.")
        parts, sources = [], []
        for query in queries[:_MAX_QUERIES]:
            seconds = self._settings.seconds if turn is None else turn.seconds_left(self._settings.seconds)
            over = seconds <= 0 or (turn is not None and turn.cancelled.is_set())
            found, problem = ([], _OVER) if over else self._search(query, seconds, turn)
            if problem:
                parts.append(f"{query}: {problem}")
                continue
            results = f"{len(found)} result{'s' * (len(found) != 1)} from {self._host}" if found else "nothing found"
            shown = [f"{query}: {results}"]
            for one in found:
                sources.append({"number": len(sources) + 1, "title": one.title, "url": one.url})
                shown.append(f"[{len(sources)}] {one.title}\n{one.url}\n{one.excerpt}".rstrip())
            parts.append("\n\n".join(shown))
        if left_out := queries[_MAX_QUERIES:]:
            parts.append(f"Not searched for, {_MAX_QUERIES} searches at a time: {'; '.join(left_out)[:_QUERY_CHARS]}")
        attached = (Attachment(AttachmentType.text, "sources", extra=sources),) if sources else ()
        return Post(self.name, asked.send_from, "\n\n".join(parts), attached)

    def _search(self, query: str, seconds: float, turn: Turn | None) -> tuple[list[_Found], str]:
        """Give what was found, or what went wrong in words without address or key."""
        parameters = (
            {"q": query, "count": str(self._settings.results)} if self._brave else {"q": query, "format": "json"}
        )
        most = int(self._settings.max_mb * 1e6)
        params = {**dict(parse_qsl(urlsplit(self._settings.url).query)), **parameters}
        content, deadline = b"", time.monotonic() + seconds
        try:
            with (
                httpx.Client(headers=self._headers, timeout=seconds, follow_redirects=False) as client,
                client.stream("GET", self._settings.url, params=params) as answer,
            ):
                if answer.status_code != httpx.codes.OK:
                    refused = not self._brave and answer.status_code == httpx.codes.FORBIDDEN
                    hint = " (does its search.formats have json?)" if refused else ""
                    return [], f"{self._host} answered {answer.status_code} {answer.reason_phrase}{hint}"
                for piece in answer.iter_bytes():
                    content += piece
                    if time.monotonic() > deadline:
                        return [], f"{self._host} did not answer within {seconds:.3g} s"
                    if turn is not None and turn.cancelled.is_set():
                        return [], _OVER
                    if len(content) > most:
                        return [], f"{self._host} answered with more than {self._settings.max_mb:g} MB"
            plain = httpx.Response(200, content=content).json()
            return list(self._read(plain))[: self._settings.results], ""
        except httpx.TimeoutException:
            return [], f"{self._host} did not answer within {seconds:.3g} s"
        except httpx.HTTPError as error:
            return [], f"{self._host} can't be reached ({type(error).__name__})"
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
            return [], f"{self._host} answered with something else than {self._settings.kind}'s JSON"

    def _read(self, plain: Any) -> Iterator[_Found]:
        if self._brave and plain.get("type") == "search" and not plain.get("web"):
            return  # it has found nothing
        for one in plain["web"]["results"] if self._brave else plain["results"]:
            url = str(one.get("url") or "")
            if url.lower().startswith(("http://", "https://")):
                text = one.get("description" if self._brave else "content") or ""
                yield _Found(_plain(one.get("title") or url), url, _plain(text)[:_EXCERPT_CHARS])


def _plain(text: Any) -> str:
    """Give the words of a text with tags, in one line."""
    return " ".join(html.unescape(_TAG.sub("", str(text))).split())
