"""Tools of MCP servers as plugins: which servers, what each tool looks like to a model, and the processes behind."""

from typing import TYPE_CHECKING

from tw_autogen.lazy_module import lazy_face

if TYPE_CHECKING:
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

if not TYPE_CHECKING:  # a type checker names an unknown attribute
    __getattr__ = lazy_face(
        __name__,
        {
            "config": ("McpServer", "McpWanted", "read_mcp_servers"),
            "connection": ("sdk",),
            "servers": ("McpServers",),
        },
    )
