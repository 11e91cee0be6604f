"""Doubles for tests (model, kernel, server of recorded replies, plugin context); suites for hosts and roles."""

from tw_autogen.testing.fake_kernel import FakeKernel
from tw_autogen.testing.host_checks import HOST_CHECKS, HostDriver, check_host
from tw_autogen.testing.plugin_doubles import load_plugin, plugin_context
from tw_autogen.testing.replay_server import ReplayServer, replay_server
from tw_autogen.testing.role_checks import ROLE_CHECKS, check_role
from tw_autogen.testing.scripted_model import ScriptedModel, codes, plans

__all__ = [
    "HOST_CHECKS",
    "ROLE_CHECKS",
    "FakeKernel",
    "HostDriver",
    "ReplayServer",
    "ScriptedModel",
    "check_host",
    "check_role",
    "codes",
    "load_plugin",
    "plans",
    "plugin_context",
    "replay_server",
]
