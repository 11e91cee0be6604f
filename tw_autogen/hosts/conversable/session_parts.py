"""What `TaskWeaverAgent` makes its sessions of; imported with the first agent, since it takes 0.3 s."""

from tw_autogen.code_interpreter import CodeInterpreter
from tw_autogen.hosts.conversable.client_isolation import check_clients_apart, remove_old_sessions
from tw_autogen.hosts.conversable.human_approval import approval_by
from tw_autogen.hosts.conversable.inner_messages import InnerMessages
from tw_autogen.hosts.conversable.model import HostModel
from tw_autogen.hosts.open_conversations import Conversations, idle_seconds
from tw_autogen.hosts.partner_conversation import GivenFiles, PartnerConversation
from tw_autogen.planner import Planner
from tw_autogen.session import (
    AGENT_DESCRIPTION,
    SessionSettings,
    checked_opening,
    open_session,
    read_settings,
    several,
)

__all__ = [
    "AGENT_DESCRIPTION",
    "CodeInterpreter",
    "PartnerConversation",
    "Conversations",
    "GivenFiles",
    "HostModel",
    "InnerMessages",
    "Planner",
    "SessionSettings",
    "approval_by",
    "check_clients_apart",
    "checked_opening",
    "idle_seconds",
    "open_session",
    "read_settings",
    "remove_old_sessions",
    "several",
]
