"""`replay_server`: recorded replies behind an OpenAI-compatible server, for agents that bring their client."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tw_autogen.errors import ModelError
from tw_autogen.model import ChatModel, Completion, Recording, ReplayModel

_PIECE_CHARS = 24
_IDLE_SECONDS = 5.0


class ReplayServer:
    """A running server.

    Args:
        model: Who answers.
        port: Where it listens; 0 takes a free one.
    """

    def __init__(self, model: ChatModel, *, port: int = 0) -> None:
        self.model = model
        self.requests: list[dict[str, Any]] = []
        """The body of each request for a completion, in order."""
        self._http = _Http(self, port)

    @property
    def base_url(self) -> str:
        """What a client takes as `base_url`, such as `http://127.0.0.1:40123/v1`."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    @property
    def name(self) -> str:
        """The one model that it says it has."""
        held = self.model.recording.model if isinstance(self.model, ReplayModel) else ""
        return held or "recording"


@contextmanager
def replay_server(
    replies: Recording | Path | str | Sequence[str | Completion] | ChatModel, *, port: int = 0
) -> Iterator[ReplayServer]:
    """Serve `/v1/chat/completions` (whole and streamed, with tool calls and usage) and `/v1/models` on loopback.

    When a recording and the run have parted the client gets status 409 with the reason, of what else a model raises
    status 500; and is told not to try again.

    Args:
        replies: A recording, its file, a list of replies that answer whatever is asked, or any model.
        port: Where to listen; 0 takes a free one.

    Yields:
        The server, with its `base_url`; no key is needed. All its threads have ended when this is left.

    Raises:
        ScenarioError: the file is wrong.

    Example:
        >>> with replay_server(["It is 42."]) as server:
        ...     config = {"model": "any", "base_url": server.base_url, "api_key": "none"}  # for an agent's llm_config
        >>> config["base_url"].endswith("/v1")
        True
    """
    server = ReplayServer(_as_model(replies), port=port)
    thread = threading.Thread(target=server._http.serve_forever, kwargs={"poll_interval": 0.02}, name="replay server")
    thread.start()
    try:
        yield server
    finally:
        server._http.shutdown()
        thread.join()
        server._http.server_close()


def _as_model(replies: Recording | Path | str | Sequence[str | Completion] | ChatModel) -> ChatModel:
    if isinstance(replies, (Recording, Path, str)):
        return ReplayModel(replies)
    return replies if isinstance(replies, ChatModel) else ReplayModel(Recording.of(replies))


class _Http(ThreadingHTTPServer):
    daemon_threads = False  # each is waited for on closing

    def __init__(self, owner: ReplayServer, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.owner = owner


class _Handler(BaseHTTPRequestHandler):
    """Speaks HTTP/1.0: one request a connection, so that no thread waits for a client's next one."""

    server: _Http
    timeout = _IDLE_SECONDS

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the overridden method's own word
        """Log nothing to stderr."""

    def do_GET(self) -> None:
        """Answer `/models`."""
        if not self.path.endswith("/models"):
            self._refuse(404, f"there is no {self.path}; this server has /v1/chat/completions and /v1/models")
            return
        model = {"id": self.server.owner.name, "object": "model", "created": 0, "owned_by": "recording"}
        self._send(200, {"object": "list", "data": [model]})

    def do_POST(self) -> None:
        """Answer `/chat/completions`."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self.path.endswith("/chat/completions"):
            self._refuse(404, f"there is no {self.path}; this server has /v1/chat/completions and /v1/models")
            return
        try:
            request = json.loads(body)
            messages = list(request["messages"])
        except (ValueError, KeyError, TypeError) as error:
            self._refuse(400, f"the body is no request for a chat completion: {error!r}")
            return
        owner = self.server.owner
        owner.requests.append(request)
        try:
            completion = owner.model.complete(messages, tools=request.get("tools"))
        except Exception as error:  # noqa: BLE001 - foreign code: any model, or a step of a script
            parted = isinstance(error, ModelError | AssertionError)  # a script that is asked too often asserts
            self._refuse(409 if parted else 500, str(error) if parted else f"{type(error).__name__}: {error}")
            return
        if request.get("stream"):
            wants_usage = bool((request.get("stream_options") or {}).get("include_usage"))
            self._stream(completion, number=len(owner.requests), wants_usage=wants_usage)
        else:
            self._send(200, _completion_body(completion, number=len(owner.requests)))

    def _refuse(self, status: int, message: str) -> None:
        self._send(status, {"error": {"message": message, "type": "replay", "code": None}})

    def _send(self, status: int, body: Mapping[str, Any]) -> None:
        content = json.dumps(body, ensure_ascii=False).encode()
        self._send_headers(status, "application/json", length=len(content))
        self._write(content)

    def _stream(self, completion: Completion, *, number: int, wants_usage: bool) -> None:
        self._send_headers(200, "text/event-stream")
        for chunk in _chunks(completion, number=number, wants_usage=wants_usage):
            self._write(f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode())
        self._write(b"data: [DONE]\n\n")

    def _send_headers(self, status: int, kind: str, *, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("x-should-retry", "false")  # the answer would be the same, or the next one
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def _write(self, content: bytes) -> None:
        try:
            self.wfile.write(content)
        except ConnectionError:
            self.close_connection = True  # the client has gone away


def _response_head(completion: Completion, number: int, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": 0, "model": completion.model or "recording"}


def _usage(completion: Completion) -> dict[str, Any]:
    usage = completion.usage
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


def _tool_calls(completion: Completion) -> list[dict[str, Any]]:
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in completion.tool_calls
    ]


def _completion_body(completion: Completion, *, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": completion.text}
    if completion.tool_calls:
        message |= {"content": completion.text or None, "tool_calls": _tool_calls(completion)}
    choice = {"index": 0, "message": message, "finish_reason": completion.finish_reason}
    return {**_response_head(completion, number, "chat.completion"), "choices": [choice], "usage": _usage(completion)}


def _chunks(completion: Completion, *, number: int, wants_usage: bool) -> Iterator[dict[str, Any]]:
    head = _response_head(completion, number, "chat.completion.chunk")
    text = completion.text
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": text[index : index + _PIECE_CHARS]} for index in range(0, len(text), _PIECE_CHARS)]
    deltas += [{"tool_calls": [{"index": index, **call}]} for index, call in enumerate(_tool_calls(completion))]
    for delta in deltas:
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": completion.finish_reason}]}
    if wants_usage:
        yield {**head, "choices": [], "usage": _usage(completion)}
