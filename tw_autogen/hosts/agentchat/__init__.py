"""The adapter for autogen-agentchat: an agent for its teams, and its agents and teams as plugins and roles."""

from tw_autogen.hosts.agentchat.install_check import check_installed

check_installed()  # before the imports below fail with less to say

from tw_autogen.hosts.agentchat.agent import TaskWeaverAgent  # noqa: E402 - see above
from tw_autogen.hosts.agentchat.agent_asker import agent_plugin, agent_role  # noqa: E402 - see above
from tw_autogen.hosts.agentchat.model import ClientModel  # noqa: E402 - see above

__all__ = ["ClientModel", "TaskWeaverAgent", "agent_plugin", "agent_role"]
