"""An MCP server for tests, written with the SDK's decorators; run as a process of its own."""

import os
import sys
import time
from pathlib import Path
from typing import Literal

from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel

server = MCPServer("weather")
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc0000003010100c9fe92ef"
    "0000000049454e44ae426082"
)
calls = 0


class Report(BaseModel):
    city: str
    celsius: float
    hours: list[int]


@server.tool()
def report(city: str, unit: Literal["C", "F"] = "C", days: int | None = None) -> Report:
    """Tell the weather of a city."""
    return Report(city=city, celsius=21.5, hours=[1, 2, 3])


@server.tool()
def count() -> int:
    """Count the calls since the server's start."""
    global calls
    calls += 1
    return calls


@server.tool(structured_output=False)
def words(text: str) -> str:
    """Give words back."""
    return f"You said {text}"


@server.tool()
def total(rows: list[dict[str, float]]) -> float:
    """Add up the column x of a table."""
    return sum(row["x"] for row in rows)


@server.tool()
def picture() -> Image:
    """Draw."""
    return Image(data=PIXEL, format="png")


@server.tool(structured_output=False)
def long(chars: int) -> str:
    """Give a long text."""
    return "x" * chars


@server.tool()
def refuse(reason: str) -> str:
    """Fail."""
    raise ToolError(reason)


@server.tool()
def die(words: str) -> str:
    """End the server."""
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()
    os._exit(3)


@server.tool()
def hang() -> str:
    """Answer never."""
    time.sleep(1000)
    return "late"


@server.tool()
def secret() -> str | None:
    """Read two environment variables."""
    return f"{os.environ.get('TOKEN')} {os.environ.get('OPENAI_API_KEY')}"


@server.tool(name="open")
def open_it() -> str:
    """Have a name that Python has too."""
    return "opened"


@server.tool(name="get-wind")
def get_wind(city: str) -> str:
    """Have a name that Python doesn't take."""
    return f"windy in {city}"


@server.tool(structured_output=False)
def note(path: str, words: str) -> str:
    """Write a line behind those of a file."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(f"{words}\n")
    return f"noted {words}"


@server.tool()
def note_and_die(path: str, words: str) -> str:
    """Write a line behind those of a file, and end the server before it can answer."""
    note(path, words)
    os._exit(3)


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def note_once(path: str, words: str) -> str:
    """Write a line, and say that this may be repeated."""
    return note(path, words)


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def noted(path: str) -> str:
    """Read a file; each call leaves a mark beside it, for tests."""
    note(f"{path}.read", "read")
    return Path(path).read_text(encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(str(os.getpid()), encoding="utf-8")
    server.run("stdio")
