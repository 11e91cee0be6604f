"""The adapter for `autogen`'s ConversableAgent, in all the lineages that have one."""

from tw_autogen.hosts.conversable.agent import TaskWeaverAgent
from tw_autogen.hosts.conversable.model import HostModel

__all__ = ["HostModel", "TaskWeaverAgent"]
