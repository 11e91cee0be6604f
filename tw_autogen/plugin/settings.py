"""The settings of plugins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tw_autogen.settings_trust import LOWER, NAMED

McpApproval = Literal["writes", "always", "never"]
"""Which calls of MCP tools a person is asked about: of those not marked read-only, all, or none."""


@dataclass(frozen=True)
class PluginSettings:
    """The settings of plugins.

    Args:
        folder: Of a project's own plugins, relative to the project; all that are enabled there are taken.
        load: Take the project's plugins; False: only those that are named.
        mcp_servers: MCP servers whose tools are plugins: the path of a JSON file with `mcpServers` (relative to the
            project's file in which it is set, else to the current folder), its text, or the servers by name, each with
            `command`, `args`, `env`, or `url`, `headers`; empty: none.
        mcp_start_seconds: How long an MCP server may take to start.
        mcp_call_seconds: How long one call of an MCP tool may take, without the time that a person takes to allow it.
        mcp_approval: Which calls of MCP tools a person is asked about: `writes`, of those that their server doesn't
            mark as read-only; `always`, all; `never`, none (a project's file can't say that, and of servers that
            it names it holds only if the user was asked about the folder and trusts it as it is). Where nobody can be
            asked, `always` refuses all calls, and `writes` those of tools that are not marked as read-only, of servers
            that a project's file names; servers that the caller or the user names are called.
    """

    folder: str = field(default="plugins", metadata=NAMED)
    load: bool = field(default=True, metadata=NAMED)
    mcp_servers: str | Mapping[str, Any] = field(default="", metadata={"path": True})
    mcp_start_seconds: float = field(default=30.0, metadata=LOWER)
    mcp_call_seconds: float = field(default=120.0, metadata=LOWER)
    mcp_approval: McpApproval = "writes"
