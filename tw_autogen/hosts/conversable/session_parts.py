"""What `TaskWeaverAgent` makes its sessions of; imported with the first agent, since it takes 0.3 s."""

from tw_autogen.approval import checked_approve
from tw_autogen.code_interpreter import CodeInterpreter
from tw_autogen.hosts.conversable.human_approval import approval_by
from tw_autogen.hosts.conversable.inner_messages import InnerTalk
from tw_autogen.hosts.conversable.model import HostModel
from tw_autogen.hosts.open_conversations import Conversations, idle_seconds
from tw_autogen.hosts.partner_conversation import Conversation
from tw_autogen.planner import Planner
from tw_autogen.plugin.mcp import read_mcp_servers
from tw_autogen.session import (
    AGENT_DESCRIPTION,
    SessionSettings,
    check_plugins,
    check_roles,
    checked_models,
    checked_policy,
    open_session,
    read_settings,
    several,
)

__all__ = [
    "AGENT_DESCRIPTION",
    "CodeInterpreter",
    "Conversation",
    "Conversations",
    "HostModel",
    "InnerTalk",
    "Planner",
    "SessionSettings",
    "approval_by",
    "check_plugins",
    "check_roles",
    "checked_approve",
    "checked_models",
    "checked_policy",
    "idle_seconds",
    "open_session",
    "read_mcp_servers",
    "read_settings",
    "several",
]
