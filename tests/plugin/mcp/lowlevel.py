"""An MCP server for tests, written with the SDK's lower level: odd schemas, many tools; misbehaves when told so."""

import sys

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

ODD = {
    "nothing": {"type": "object"},
    "any-of": {"type": "object", "properties": {"x": {"anyOf": [{"type": "integer"}, {"type": "string"}]}}},
    "tree": {
        "type": "object",
        "properties": {"node": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {"type": "object", "properties": {"kids": {"items": {"$ref": "#/$defs/node"}}}}},
        "required": ["node"],
    },
}


async def list_tools(context, params):
    """Give 200 tools in pages of 50, the odd ones first."""
    names = [*ODD, *(f"tool {number}" for number in range(200 - len(ODD)))]
    begin = int(params.cursor or 0) if params else 0
    tools = [types.Tool(name=name, input_schema=ODD.get(name, {"type": "object"})) for name in names[begin:][:50]]
    return types.ListToolsResult(tools=tools, next_cursor=str(begin + 50) if begin < 150 else None)


async def call_tool(context, params):
    """Say what was called."""
    words = f"{params.name} {params.arguments}"
    return types.CallToolResult(content=[types.TextContent(type="text", text=words)])


async def main():
    """Serve."""
    server = Server("odd", on_list_tools=list_tools, on_call_tool=call_tool)
    if "garbage" in sys.argv:
        sys.stdout.write("Listening for requests…\n{not json}\n\n")
        sys.stdout.flush()
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    if "fail" in sys.argv:
        sys.exit("this server needs a key; set KEY")
    anyio.run(main)
