"""TaskWeaver's Planner and CodeInterpreter as AutoGen agents, with plugins, a stateful kernel and a shared board.

Every public name is fetched from its package when it is first used, so that importing this one is quick and brings in
no host framework. `__version__` is that of the installed distribution, looked up in the same way.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tw_autogen.approval import Approve, Decision, Proposal, decide
    from tw_autogen.code_interpreter import CodeInterpreter, Policy
    from tw_autogen.conversation import Attachment, AttachmentType, Memory, Post, Round
    from tw_autogen.hosts.conversable import (
        CodeInterpreterAgent,
        KernelCodeExecutor,
        PlannerAgent,
        RoleAgent,
        SharedSession,
        TaskWeaverAgent,
        agent_plugin,
        agent_role,
        register_plugins,
        route_by_post,
    )
    from tw_autogen.kernel import Execution, Kernel, LocalKernel
    from tw_autogen.model import ChatModel, OpenAIModel, Ranker
    from tw_autogen.planner import Planner
    from tw_autogen.plugin import Plugin, PluginContext, PluginSpec, callable_plugin, register_plugin, test_plugin
    from tw_autogen.recall import DocumentIndex, Passage
    from tw_autogen.role import Role, Turn
    from tw_autogen.safe_folder import SafeFolder
    from tw_autogen.session import Answer, Session, open_session

    __version__: str

_PACKAGES = {
    "approval": ("Approve", "Decision", "Proposal", "decide"),
    "code_interpreter": ("CodeInterpreter", "Policy"),
    "conversation": ("Attachment", "AttachmentType", "Memory", "Post", "Round"),
    "hosts.conversable": (
        "CodeInterpreterAgent",
        "KernelCodeExecutor",
        "PlannerAgent",
        "RoleAgent",
        "SharedSession",
        "TaskWeaverAgent",
        "agent_plugin",
        "agent_role",
        "register_plugins",
        "route_by_post",
    ),
    "kernel": ("Execution", "Kernel", "LocalKernel"),
    "model": ("ChatModel", "OpenAIModel", "Ranker"),
    "notebook": ("load_ipython_extension", "unload_ipython_extension"),
    "planner": ("Planner",),
    "plugin": ("Plugin", "PluginContext", "PluginSpec", "callable_plugin", "register_plugin", "test_plugin"),
    "recall": ("DocumentIndex", "Passage"),
    "role": ("Role", "Turn"),
    "safe_folder": ("SafeFolder",),
    "session": ("Answer", "Session", "open_session"),
}
_HOME = {name: package for package, names in _PACKAGES.items() for name in names}

__all__ = [
    "Answer",
    "Approve",
    "Attachment",
    "AttachmentType",
    "ChatModel",
    "CodeInterpreter",
    "CodeInterpreterAgent",
    "Decision",
    "DocumentIndex",
    "Execution",
    "Kernel",
    "KernelCodeExecutor",
    "LocalKernel",
    "Memory",
    "OpenAIModel",
    "Passage",
    "Planner",
    "PlannerAgent",
    "Plugin",
    "PluginContext",
    "PluginSpec",
    "Policy",
    "Post",
    "Proposal",
    "Ranker",
    "Role",
    "RoleAgent",
    "Round",
    "SafeFolder",
    "Session",
    "SharedSession",
    "TaskWeaverAgent",
    "Turn",
    "agent_plugin",
    "agent_role",
    "callable_plugin",
    "decide",
    "open_session",
    "register_plugin",
    "register_plugins",
    "route_by_post",
    "test_plugin",
]


def __getattr__(name: str) -> Any:
    """Fetch a public name from its package, or the version, once."""
    if name == "__version__":
        value = _version()
    elif name in _HOME:
        value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def _version() -> str:
    metadata = importlib.import_module("importlib.metadata")  # takes some 30 ms
    try:
        return str(metadata.version("tw-autogen"))
    except metadata.PackageNotFoundError:
        return "0+unknown"  # a source folder that is not installed


def __dir__() -> list[str]:
    return sorted(__all__)
