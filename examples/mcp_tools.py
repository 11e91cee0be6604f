"""Tools of an MCP server as plugins: code asks a warehouse, row by row. The server stands in this file too.

Needs `pip install ".[mcp]"` in the checkout and a model: `OPENAI_API_KEY`, or `OPENAI_BASE_URL` of a local server.
"""

import sys

import pandas as pd
from mcp.server.mcpserver import MCPServer
from pydantic import BaseModel

from tw_autogen import open_session
from tw_autogen.events import Event, HostCalled

PARTS = {"kettle": (12, 39.0), "toaster": (3, 55.5), "mixer": (0, 89.0)}
SERVERS = {"mcpServers": {"warehouse": {"command": sys.executable, "args": [__file__, "serve"]}}}

warehouse = MCPServer("warehouse", log_level="WARNING")


class Stock(BaseModel):
    """What is there of a product."""

    units: int
    price: float


@warehouse.tool(name="look-up")
def look_up(product: str) -> Stock:
    """Tell how many units of a product are in stock, and the price of one in euros."""
    units, price = PARTS[product]
    return Stock(units=units, price=price)


def show(event: Event) -> None:
    """Print each call of a tool."""
    if isinstance(event, HostCalled):
        print("called", event.function, event.error)


def main() -> None:
    orders = pd.DataFrame({"product": ["kettle", "toaster", "mixer"], "ordered": [10, 5, 1]})
    with open_session(mcp_servers=SERVERS, handlers=[show]) as session:
        answer = session.ask("Which orders can't be met from stock, and what is short?", variables={"orders": orders})
        print("The answer:", answer.text)


if __name__ == "__main__":
    warehouse.run("stdio") if "serve" in sys.argv else main()
