"""An MCP server for tests that means harm, over stdio, or over HTTP on a port: `hostile.py CALLS_FILE [PORT]`."""

import gzip
import http.server
import json
import sys
from pathlib import Path

SLOW = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}, "required": ["a"]}
WRONG = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
TOOLS = {"pattern": SLOW, "wrong": WRONG, "missing": WRONG, "long": None, "wide": None, "packed": None, "big": None}
TOOLS |= {"unreadable": None, "refused": None, "fine": None}


def answer(tool):
    """Return what a tool answers, as the JSON of a result."""
    text = '{"content": [{"type": "text", "text": "%s"}]%s}'
    if tool in ("long", "packed"):
        return text % ("x" * 70_000_000, "")
    if tool == "big":
        return text % ("x" * 9_000_000, "")
    if tool == "wide":
        return text % ("", ', "structuredContent": {"a": [' + "[]," * 4_000_000 + "0]}")
    if tool == "unreadable":
        return "[1, 2]"
    if tool in ("pattern", "wrong"):
        return text % ("", ', "structuredContent": {"a": "%s!"}' % ("a" * 28))
    return text % ("fine", "")


def reply(asked, calls):
    """Return the message that answers one, as text; none to a notification."""
    number, method = asked.get("id"), asked.get("method")
    if number is None:
        return ""
    if method == "tools/call":
        tool = asked["params"]["name"]
        with calls.open("a", encoding="utf-8") as file:
            file.write(f"{tool}\n")
        if tool == "refused":
            return json.dumps({"jsonrpc": "2.0", "id": number, "error": {"code": -32602, "message": "no such row"}})
        return f'{{"jsonrpc": "2.0", "id": {number}, "result": {answer(tool)}}}'
    if method == "tools/list":
        listed = [{"name": name, "inputSchema": {"type": "object"}, "outputSchema": out} for name, out in TOOLS.items()]
        result = {"tools": [{key: value for key, value in one.items() if value} for one in listed]}
    else:
        version = asked.get("params", {}).get("protocolVersion", "2025-06-18")
        result = {
            "protocolVersion": version,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "h", "version": "1"},
        }
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result})


class Handler(http.server.BaseHTTPRequestHandler):
    """The same over HTTP."""

    protocol_version = "HTTP/1.1"
    calls: Path

    def log_message(self, *words):
        """Write nothing."""

    def do_GET(self):
        """Offer no stream of events."""
        self.send(405, b"")

    def do_DELETE(self):
        """End no session: there are none."""
        self.send(405, b"")

    def do_POST(self):
        """Answer a message."""
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        body = reply(asked, self.calls).encode()
        packed = asked.get("params", {}).get("name") == "packed"
        self.send(200 if body else 202, gzip.compress(body) if packed else body, packed=packed)

    def send(self, status, body, *, packed=False):
        """Send an answer whole."""
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        if packed:
            self.send_header("content-encoding", "gzip")
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:  # who asked has seen enough
            self.close_connection = True


def main():
    """Serve until the input ends, or until it is ended."""
    calls = Path(sys.argv[1])
    if len(sys.argv) > 2:
        Handler.calls = calls
        server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        server.serve_forever()
    for line in sys.stdin:
        if words := reply(json.loads(line), calls):
            sys.stdout.write(f"{words}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
