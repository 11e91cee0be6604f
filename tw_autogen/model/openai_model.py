"""`OpenAIModel`: any OpenAI-compatible server as a `ChatModel`."""

from __future__ import annotations

import ipaddress
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tw_autogen.errors import ConfigError, ModelError
from tw_autogen.lazy_module import LazyModule, import_soon
from tw_autogen.model.abandonable import OnText, run_abandonable
from tw_autogen.model.chat_model import Completion
from tw_autogen.model.error_messages import describe_failure, is_length_refusal, server_words, shown_url
from tw_autogen.model.http_client import (
    DONE,
    ConnectionFailed,
    HttpClient,
    NonStreamedResponse,
    ServerRefusal,
    UnsendableRequest,
    pause_after,
)
from tw_autogen.model.model_request import BaseChatModel, ModelRequest, report_delay
from tw_autogen.model.openai_response import AnswerError, StreamAccumulator, raise_reported, read_answer
from tw_autogen.model.request_fallback import RequestFallback
from tw_autogen.model.settings import OPENAI_NAME, OPENAI_URL, ModelSettings

if TYPE_CHECKING:
    import httpx
else:
    httpx = LazyModule("httpx")

_COMPLETIONS = "/chat/completions"
_PROBE_SECONDS = 5.0
_MAX_UNENDED = 2
"""After so many streams in a row that had no end, answers are asked for whole."""


class OpenAIModel(BaseChatModel):
    """A model on an OpenAI-compatible server.

    What a server refuses is requested in a simpler form from then on: a JSON schema (then a JSON object, then text), an
    answer in pieces, usage numbers with it, and tools, without which it answers in words.

    Args:
        settings: Which model, and how. Without a `name`, OpenAI's own server is asked for a small one.
        section: The section of these settings, for messages: `model` in `model.name`.

    Raises:
        ConfigError: the address is none, or the key holds a character that can't be sent.
        NoModelError: never here; `resolve_model` raises it, and finds the name that is missing.

    Example:
        >>> model = OpenAIModel(ModelSettings(base_url="http://localhost:11434/v1", name="qwen3"))
        >>> model.name, model.base_url
        ('qwen3', 'http://localhost:11434/v1')
    """

    def __init__(self, settings: ModelSettings, *, section: str = "model") -> None:
        self.settings = settings
        self._section = section
        self._key = (settings.api_key or "").strip()  # the line break of a file is no part of it, and would be an error
        self.name = settings.name or OPENAI_NAME
        self._url = (settings.base_url or OPENAI_URL).strip()
        try:
            parts = urlsplit(self._url)
            host = parts.hostname if parts.port != 0 else None
        except ValueError as error:
            raise ConfigError(f"{section}.base_url: it is no address: {error}") from error
        self.base_url = shown_url(self._url)
        if parts.scheme not in ("http", "https"):
            raise ConfigError(f"{section}.base_url: {self.base_url!r} has no http:// or https:// in front")
        if not host:
            raise ConfigError(f"{section}.base_url: {self.base_url!r} names no server")
        if not (self._key.isascii() and self._key.isprintable()):
            raise ConfigError(f"{section}.api_key: it holds a character that no key has; copy it again")
        self._fallback = RequestFallback.beginning(settings.response_format)
        self._unended_streams = 0
        import_soon("httpx")

    @cached_property
    def _client(self) -> HttpClient:
        """The client, made for the first call; a proxy never knows the way to loopback.

        Raises:
            ConfigError: what the environment says of headers or proxies can't be used.
        """
        try:
            client = HttpClient(
                self._url,
                self._key,
                trust_env=not is_loopback(self._url),
                environment_headers=self.settings.environment_headers,
            )
        except (ImportError, ValueError, httpx.InvalidURL) as error:  # a proxy's address, or what SOCKS needs
            raise ConfigError(f"{self.base_url}: {error}; or unset the proxy (ALL_PROXY)") from error
        weakref.finalize(self, client.close)
        return client

    @property
    def _expected_errors(self) -> tuple[type[Exception], ...]:
        """What is raised when a list that is asked for doesn't come."""
        return (ServerRefusal, ConnectionFailed, AnswerError, *self._broken_off_errors)

    @property
    def _broken_off_errors(self) -> tuple[type[Exception], ...]:
        """What is raised when an answer breaks off: by the connection, or by the JSON that ends too early."""
        return (ConnectionError, ValueError, httpx.HTTPError)

    def __str__(self) -> str:
        """Return name, address, and the price if it is known, in one line."""
        price = self.settings.price(self.name)
        cost = f", ${price.prompt:g} in / ${price.completion:g} out for a million tokens" if price else ""
        return f"{self.name} at {self.base_url}{cost}"

    @property
    def objects_only(self) -> bool:
        """Whether a response format is sent with a schema: one that is set, or that the server has not refused yet."""
        return self._fallback.sends_format

    def answer(self, request: ModelRequest) -> Completion:
        """Answer a request; see `ChatModel.complete`.

        `on_text` is called in the caller's thread. If the connection breaks in the middle of an answer, the next try
        is not streamed, so that no text is given twice; the completion is whole all the same.

        Raises:
            ModelError: naming the server, what was wrong, and what to do.
            ConfigError: what the environment says of headers or proxies can't be used.
        """
        body: dict[str, Any] = {"model": self.name, "messages": [dict(message) for message in request.messages]}
        if self.settings.temperature is not None:
            body["temperature"] = self.settings.temperature
        if request.tools:
            body["tools"] = [dict(tool) for tool in request.tools]
        limit = request.limit(self.settings.seconds)
        streams = request.on_text is not None

        def work(tell: OnText, abandoned: threading.Event) -> Completion:
            return self._ask(body, request.schema, tell if streams else None, limit, abandoned)

        return run_abandonable(
            work,
            where=f"{self.base_url}: {self.name}",
            seconds=limit,
            on_text=request.on_text,
            cancelled=request.cancelled,
            remedy="; raise `model.seconds`, or ask a faster model" if limit == self.settings.seconds else "",
        )

    def models(self) -> tuple[str, ...]:
        """Ask the server for the names of its models, in its own order; one try of a few seconds.

        Raises:
            ModelError: it doesn't answer, or has no such list.
        """
        try:
            raise_reported(answer := self._client.get("/models", seconds=_PROBE_SECONDS))
            names = _list_of(answer, "id")
            if names is None:
                raise ValueError("it answers, with something else")
            return tuple(str(name) for name in names)
        except self._expected_errors as error:
            if isinstance(error, ServerRefusal) and error.status_code in (401, 403):
                raise self._failure(error) from None
            raise ModelError(
                f"{self.base_url}/models: no list of models: {server_words(error, self._key)}. "
                f"Is the server running, and is `{self._section}.base_url` (OPENAI_BASE_URL) right?"
            ) from None

    def vectors(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """Ask for the embedding of each text (`/embeddings`), in one request, or in smaller ones if that is refused.

        Raises:
            ModelError: naming the server, what was wrong, and what to do.
        """
        body = {"model": self.name, "input": list(texts), "encoding_format": "float", **self.settings.extra}
        try:
            answer = self._client.post(
                "/embeddings", body, seconds=self.settings.seconds, max_tries=self.settings.max_tries
            )
            raise_reported(answer)
        except UnsendableRequest as unsent:
            raise ModelError(f"{self.base_url}: the request can't be written as JSON: {unsent}") from None
        except self._expected_errors as failed:
            refused = isinstance(failed, ServerRefusal) and failed.status_code in (400, 413, 422)
            if refused and (half := len(texts) // 2):  # servers take 10 to 2048 at once
                return self.vectors(texts[:half]) + self.vectors(texts[half:])
            raise self._failure(failed) from None
        found, order = _list_of(answer, "embedding") or [], _list_of(answer, "index")
        if order and all(isinstance(index, int) for index in order) and len(set(order)) == len(order):
            found = [vector for _, vector in sorted(zip(order, found, strict=True), key=lambda one: one[0])]
        if len(found) != len(texts):
            raise ModelError(
                f"{self.base_url}: what came back are not {len(texts)} embeddings. A `{self._section}.base_url` "
                "usually ends in /v1"
            )
        return found

    def _ask(
        self,
        body: Mapping[str, Any],
        schema: Mapping[str, Any] | None,
        tell: OnText | None,
        seconds: float,
        abandoned: threading.Event,
    ) -> Completion:
        """Ask until there is an answer: with fewer wishes where one is refused, again where a stream breaks off."""
        breaks, parts = 0, self._fallback
        while True:
            request = parts.of(body, schema, streams=tell is not None)
            try:
                if (answer := self._request_answer(request, tell, seconds, abandoned)) is not None:
                    self._fallback = self._fallback.merged(parts)
                    return self._with_cost(answer)
                error: Exception = ConnectionError("it ended without a finish_reason")
                if self._unended_streams >= _MAX_UNENDED:  # it ends none so, and each is paid for twice
                    parts = replace(parts, streams=False)
            except self._broken_off_errors as broken:
                error = broken
            except ServerRefusal as refused:
                parts = self._drop_refused_part(parts, refused, request)
                continue
            except UnsendableRequest as unsent:
                raise ModelError(f"{self.base_url}: the request can't be written as JSON: {unsent}") from None
            except (ConnectionFailed, AnswerError) as failed:
                if isinstance(failed, ConnectionFailed) or not failed.passes:
                    raise self._failure(failed) from None
                error = failed
            breaks += 1
            if breaks >= self.settings.max_tries or abandoned.is_set():
                raise self._failure(error)
            if isinstance(error, AnswerError):
                message = f"the server answered with an error: {server_words(error, self._key)}"
                report_delay(f"{message}; try {breaks + 1} of {self.settings.max_tries}")
                abandoned.wait(pause_after(breaks))
            tell = None

    def _drop_refused_part(
        self, parts: RequestFallback, refused: ServerRefusal, request: Mapping[str, Any]
    ) -> RequestFallback:
        """Return the parts of a request without the one that was refused.

        Raises:
            ModelError: none was.
        """
        message = server_words(refused, self._key)
        fewer = None if is_length_refusal(refused) else parts.without_refused(message, refused, request)
        if fewer is None:
            raise self._failure(refused) from None
        return fewer

    def _request_answer(
        self, request: Mapping[str, Any], tell: OnText | None, seconds: float, abandoned: threading.Event
    ) -> Completion | None:
        """Return the answer, streamed if it may be; None if the stream ended before its end."""
        if not (tell and "stream" in request):
            return self._complete_unstreamed(request, seconds, abandoned)
        answer = self._stream(request, tell, seconds, abandoned)
        self._unended_streams = self._unended_streams + 1 if answer is None else 0
        return answer

    def _with_cost(self, answer: Completion) -> Completion:
        """Return the answer with its cost, if the settings name its model's price."""
        price = self.settings.price(answer.model, self.name)
        return replace(answer, usage=replace(answer.usage, dollars=price.of(answer.usage))) if price else answer

    def _complete_unstreamed(
        self, request: Mapping[str, Any], seconds: float, abandoned: threading.Event
    ) -> Completion:
        data = self._client.post(
            _COMPLETIONS,
            {**request, **self.settings.extra},
            seconds=seconds,
            max_tries=self.settings.max_tries,
            abandoned=abandoned,
        )
        return self._read(data)

    def _read(self, data: Any) -> Completion:
        raise_reported(data)
        answer = read_answer(data)
        if answer is None:
            raise ModelError(
                f"{self.base_url}: what came back is no chat completion. A `model.base_url` usually ends in /v1"
            )
        return answer

    def _stream(
        self, request: Mapping[str, Any], tell: OnText, seconds: float, abandoned: threading.Event
    ) -> Completion | None:
        """Hand on text as it comes; None if the stream ended before its end."""
        growing = StreamAccumulator()
        chunks = self._client.stream(
            _COMPLETIONS,
            {**request, **self.settings.extra},
            seconds=seconds,
            max_tries=self.settings.max_tries,
            abandoned=abandoned,
        )
        try:
            with closing(chunks):
                for chunk in chunks:
                    if abandoned.is_set():
                        break
                    if isinstance(chunk, NonStreamedResponse):
                        return self._read(chunk.data)
                    if chunk is DONE:
                        growing.end()
                        break
                    raise_reported(chunk)
                    text = growing.add(chunk)
                    if text:
                        tell(text)
        except self._broken_off_errors:
            if not growing.finished:
                raise
        return growing.completion() if growing.finished else None

    def _failure(self, error: Exception) -> ModelError:
        return describe_failure(
            error,
            url=self.base_url,
            name=self.name,
            key=self._key,
            models=self.models,
            max_tries=self.settings.max_tries,
            section=self._section,
        )


def is_loopback(url: str) -> bool:
    """Return True if the server is on this machine: 127.0.0.0/8, `::1`, `localhost`.

    Example:
        >>> is_loopback("http://127.0.0.1:8080/v1"), is_loopback("https://api.openai.com/v1")
        (True, False)
    """
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _list_of(answer: Any, key: str) -> list[Any] | None:
    """Return a field of each object of a server's list, which may stand in `data`; None if there is no such list."""
    data = answer.get("data") if isinstance(answer, dict) else answer
    if not isinstance(data, list) or not all(isinstance(one, dict) and key in one for one in data):
        return None
    return [one[key] for one in data]
