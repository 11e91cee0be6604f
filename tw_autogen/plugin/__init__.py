"""Plugins: functions that generated code calls; their specs, how a model sees them, and which fit a request."""

from tw_autogen.kernel.inside import Plugin, PluginContext, register_plugin, test_plugin
from tw_autogen.plugin.callables import callable_plugin
from tw_autogen.plugin.choose import Chosen, Enabled, choose, names_used, rank, selects, texts_of
from tw_autogen.plugin.host_run import HostPlugin
from tw_autogen.plugin.load import Wanted, check_source, find_plugins
from tw_autogen.plugin.spec import NO_DEFAULT, Parameter, PluginSpec, read_spec
from tw_autogen.plugin.task_type import TASK_TYPES, task_type
from tw_autogen.plugin.unclear import LOOKUP, looked_up, unclear_calls

__all__ = [
    "LOOKUP",
    "NO_DEFAULT",
    "TASK_TYPES",
    "Chosen",
    "Enabled",
    "HostPlugin",
    "Parameter",
    "Plugin",
    "PluginContext",
    "PluginSpec",
    "Wanted",
    "callable_plugin",
    "check_source",
    "choose",
    "find_plugins",
    "looked_up",
    "names_used",
    "rank",
    "read_spec",
    "register_plugin",
    "selects",
    "task_type",
    "test_plugin",
    "texts_of",
    "unclear_calls",
]
