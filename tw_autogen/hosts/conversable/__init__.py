"""The adapter for `autogen`'s ConversableAgent, in all the lineages that have one."""

from tw_autogen.hosts.conversable.agent import TaskWeaverAgent
from tw_autogen.hosts.conversable.as_plugin import agent_plugin
from tw_autogen.hosts.conversable.as_role import agent_role
from tw_autogen.hosts.conversable.executor import KernelCodeExecutor
from tw_autogen.hosts.conversable.members import CodeInterpreterAgent, PlannerAgent, RoleAgent, route_by_post
from tw_autogen.hosts.conversable.model import HostModel
from tw_autogen.hosts.conversable.services import a2a_server, ag_ui_stream
from tw_autogen.hosts.conversable.shared import SharedSession
from tw_autogen.hosts.conversable.tools import PluginTools, register_plugins

__all__ = [
    "CodeInterpreterAgent",
    "HostModel",
    "KernelCodeExecutor",
    "PlannerAgent",
    "PluginTools",
    "RoleAgent",
    "SharedSession",
    "TaskWeaverAgent",
    "a2a_server",
    "ag_ui_stream",
    "agent_plugin",
    "agent_role",
    "register_plugins",
    "route_by_post",
]
