"""An MCP server for tests of when tools are called: it starts in no time, since it needs no SDK.

Its tools are those of `server.py` that leave traces in files.
"""

import json
import os
import sys
import time
from pathlib import Path


def report(city):
    return {"city": city, "celsius": 21.5}


def open_it():
    return "opened"


def hang():
    time.sleep(1000)


def refuse(reason):
    raise ValueError(reason)


def note(path, words):
    with open(path, "a", encoding="utf-8") as file:
        file.write(f"{words}\n")
    return f"noted {words}"


def note_and_die(path, words):
    note(path, words)
    os._exit(3)


def noted(path):
    note(f"{path}.read", "read")
    return Path(path).read_text(encoding="utf-8")


TOOLS = {
    "report": (report, {}),
    "open": (open_it, {}),
    "hang": (hang, {}),
    "refuse": (refuse, {}),
    "note": (note, {}),
    "note_and_die": (note_and_die, {}),
    "note_once": (note, {"idempotentHint": True}),
    "noted": (noted, {"readOnlyHint": True}),
}


def listed(name):
    function, marks = TOOLS[name]
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    schema = {"type": "object", "properties": {one: {"type": "string"} for one in names}, "required": list(names)}
    return {"name": name, "inputSchema": schema, "annotations": marks}


def called(name, given):
    try:
        result = TOOLS[name][0](**given)
    except ValueError as error:
        return {"content": [{"type": "text", "text": str(error)}], "isError": True}
    if isinstance(result, str):
        return {"content": [{"type": "text", "text": result}]}
    return {"content": [{"type": "text", "text": json.dumps(result)}], "structuredContent": result}


def main():
    """Serve until the input ends."""
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(str(os.getpid()), encoding="utf-8")
    for line in sys.stdin:
        asked = json.loads(line)
        number, method, given = asked.get("id"), asked.get("method"), asked.get("params", {})
        result = {}
        if method == "initialize":
            about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "notes", "version": "1"}}
            result = {"protocolVersion": given["protocolVersion"], **about}
        elif method == "tools/list":
            result = {"tools": list(map(listed, TOOLS))}
        elif method == "tools/call":
            result = called(given["name"], given["arguments"])
        if number is not None:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
