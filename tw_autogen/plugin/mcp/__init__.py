"""Tools of MCP servers as plugins: which servers, what each tool looks like to a model, and the processes behind."""

from tw_autogen.plugin.mcp.config import McpServer, McpWanted, read_mcp_servers
from tw_autogen.plugin.mcp.connection import sdk
from tw_autogen.plugin.mcp.servers import McpServers

__all__ = [
    "McpServer",
    "McpServers",
    "McpWanted",
    "read_mcp_servers",
    "sdk",
]
