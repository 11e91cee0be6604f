"""Pages on loopback: a server that does as a table says, and remembers who asked for what."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Page:
    content: str | bytes = ""
    status: int = 200
    kind: str = "text/html; charset=utf-8"
    headers: dict[str, str] = field(default_factory=dict)
    hold: threading.Event | None = None


class Site(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, pages: dict[str, Page | Callable[[str], Page]], host: str) -> None:
        super().__init__((host, 0), _Handler)
        self.pages = pages
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.url = f"http://{host}:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Site
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        found = self.server.pages.get(self.path.partition("?")[0], Page("not here", 404))
        page = found if isinstance(found, Page) else found(self.path)
        content = page.content.encode() if isinstance(page.content, str) else page.content
        if page.hold is not None:
            page.hold.wait(60)
        try:
            self.send_response(page.status)
            for name, value in {"Content-Type": page.kind, **page.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
        except ConnectionError:
            self.close_connection = True

    def do_POST(self) -> None:
        self.do_GET()


@contextmanager
def site(pages: dict[str, Page | Callable[[str], Page]], host: str = "127.0.0.1") -> Iterator[Site]:
    server = Site(pages, host)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        for page in server.pages.values():
            if isinstance(page, Page) and page.hold is not None:
                page.hold.set()
        server.shutdown()
        thread.join()
        server.server_close()
