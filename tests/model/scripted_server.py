"""A small HTTP server that does as it is told, request by request: what a real one does on a bad day."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    """What goes over the wire: a status with a JSON body, or `raw` bytes in the body's place."""

    status: int = 200
    body: Any = None
    raw: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    kind: str = "application/json"
    declared: int | None = None
    """Promise so many bytes, whatever comes: more than there are is a connection that breaks off."""


SOON = {"retry-after-ms": "1"}


def said(text: str | None, **usage: Any) -> Reply:
    message = {"role": "assistant", "content": text}
    return Reply(
        body={
            "id": "c1",
            "object": "chat.completion",
            "created": 0,
            "model": "tiny-1",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            **({"usage": usage} if usage else {}),
        }
    )


def refused(status: int, message: str, **more: Any) -> Reply:
    return Reply(status, {"error": {"message": message, **more}}, headers=SOON)


def streamed(*deltas: dict[str, Any], end: str | None = "stop", usage: dict[str, Any] | None = None) -> Reply:
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 0, "model": "tiny-1"}
    chunks = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    if end:
        chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": end}]})
    if usage:
        chunks.append({**head, "choices": [], "usage": usage})
    lines = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + ("data: [DONE]\n\n" if end else "")
    return Reply(raw=lines.encode(), kind="text/event-stream")


def has_models(*names: str) -> Reply:
    return Reply(body={"object": "list", "data": [{"id": name, "object": "model", "created": 0} for name in names]})


class Broken(Exception):
    """Hang up without a word."""


Answer = Reply | type[Broken] | Callable[[dict[str, Any]], Reply]


class ScriptedServer(ThreadingHTTPServer):
    daemon_threads = False

    def __init__(self, answers: list[Answer], models: Reply) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = answers
        self.models = models
        self.paths: list[str] = []
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.hold = threading.Event()
        self.base_url = f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: ScriptedServer
    timeout = 5

    def log_message(self, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._send(self.server.models)

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = self.server.answers[min(len(self.server.requests), len(self.server.answers) - 1)]
        self.server.requests.append(request)
        self.server.paths.append(self.path)
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        if answer is Broken:
            return
        self._send(answer if isinstance(answer, Reply) else answer(request))

    def _send(self, reply: Reply) -> None:
        content = reply.raw if reply.raw is not None else json.dumps(reply.body).encode()
        try:
            self.send_response(reply.status)
            for name, value in {"Content-Type": reply.kind, **reply.headers}.items():
                self.send_header(name, value)
            if reply.declared is not None or reply.raw is None:
                self.send_header("Content-Length", str(reply.declared or len(content)))
            self.end_headers()
            self.wfile.write(content)
        except ConnectionError:
            self.close_connection = True


@contextmanager
def scripted_server(*answers: Answer, models: Reply | None = None) -> Iterator[ScriptedServer]:
    """Serve the answers in order, the last one for ever; `server.hold` frees those that wait for it."""
    server = ScriptedServer(list(answers), models or Reply(404, {"detail": "Not Found"}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.hold.set()
        server.shutdown()
        thread.join()
        server.server_close()
