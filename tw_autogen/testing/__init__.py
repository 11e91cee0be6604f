"""Doubles for tests: a scripted model, a kernel without a process, a server of recorded replies, plugin contexts."""

from tw_autogen.testing.kernel import FakeKernel
from tw_autogen.testing.plugins import load_plugin, plugin_context
from tw_autogen.testing.replay_server import ReplayServer, replay_server
from tw_autogen.testing.scripted import ScriptedModel, codes, plans

__all__ = [
    "FakeKernel",
    "ReplayServer",
    "ScriptedModel",
    "codes",
    "load_plugin",
    "plans",
    "plugin_context",
    "replay_server",
]
