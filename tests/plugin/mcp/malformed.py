"""An MCP server for tests that answers calls with what is no message of the protocol: a wrong result, or a deep one."""

import json
import sys

TOOLS = ["__import__", "call_llm_api", "print", "deep", "wrong", "fine"]


def send(number, result):
    """Write an answer."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}) + "\n")
    sys.stdout.flush()


def main():
    """Serve until the input ends."""
    for line in sys.stdin:
        asked = json.loads(line)
        number, method = asked.get("id"), asked.get("method")
        if method == "initialize":
            about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "malformed", "version": "1"}}
            send(number, {"protocolVersion": asked["params"]["protocolVersion"], **about})
        elif method == "tools/list":
            send(number, {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]})
        elif method == "tools/call" and asked["params"]["name"] == "wrong":
            send(number, [1, 2])
        elif method == "tools/call" and asked["params"]["name"] == "deep":
            deep = '{"a":' * 50_000 + "1" + "}" * 50_000
            sys.stdout.write(
                f'{{"jsonrpc":"2.0","id":{number},"result":{{"content":[],"structuredContent":{deep}}}}}\n'
            )
            sys.stdout.flush()
        elif method == "tools/call":
            send(number, {"content": [{"type": "text", "text": "fine"}]})
        elif number is not None:
            send(number, {})


if __name__ == "__main__":
    main()
