"""The adapter for `autogen`'s ConversableAgent, in all the lineages that have one."""

from typing import TYPE_CHECKING

from tw_autogen.deprecated import old_names
from tw_autogen.lazy_module import lazy_face

if TYPE_CHECKING:
    from tw_autogen.hosts.conversable.agent import TaskWeaverAgent
    from tw_autogen.hosts.conversable.agent_asker import agent_plugin, agent_role
    from tw_autogen.hosts.conversable.code_executor import KernelCodeExecutor
    from tw_autogen.hosts.conversable.group_members import CodeInterpreterAgent, PlannerAgent, RoleAgent, route_by_post
    from tw_autogen.hosts.conversable.plugin_tools import register_plugins
    from tw_autogen.hosts.conversable.protocol_servers import a2a_server, ag_ui_stream
    from tw_autogen.hosts.conversable.shared_session import SharedSession

__all__ = [
    "CodeInterpreterAgent",
    "KernelCodeExecutor",
    "PlannerAgent",
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

if not TYPE_CHECKING:  # a type checker names an unknown attribute
    __getattr__ = lazy_face(
        __name__,
        {
            "agent": ("TaskWeaverAgent",),
            "agent_asker": ("agent_plugin", "agent_role"),
            "code_executor": ("KernelCodeExecutor",),
            "group_members": ("CodeInterpreterAgent", "PlannerAgent", "RoleAgent", "route_by_post"),
            "plugin_tools": ("register_plugins",),
            "protocol_servers": ("a2a_server", "ag_ui_stream"),
            "shared_session": ("SharedSession",),
        },
        old_names(
            __name__,
            {
                "tw_autogen.hosts.conversable.model": ("HostModel",),
                "tw_autogen.hosts.conversable.plugin_tools": ("PluginTools",),
            },
        ),
    )
