"""The settings of plugins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tw_autogen.trust import LOWER, NAMED


@dataclass(frozen=True)
class PluginSettings:
    """The settings of plugins.

    Args:
        folder: Of a project's own plugins, relative to the project; all that are enabled there are taken.
        mcp_servers: MCP servers whose tools are plugins: the path of a JSON file with `mcpServers` (relative to the
            project's file in which it is set, else to the current folder), its text, or the servers by name, each with
            `command`, `args`, `env`, or `url`, `headers`; empty: none.
        mcp_start_seconds: How long an MCP server may take to start.
        mcp_call_seconds: How long one call of an MCP tool may take.
    """

    folder: str = field(default="plugins", metadata=NAMED)
    mcp_servers: str | Mapping[str, Any] = field(default="", metadata={"path": True})
    mcp_start_seconds: float = field(default=30.0, metadata=LOWER)
    mcp_call_seconds: float = field(default=120.0, metadata=LOWER)
