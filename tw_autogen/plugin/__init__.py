"""Plugins: functions that generated code calls; their specs, how a model sees them, and which fit a request."""

from typing import TYPE_CHECKING

from tw_autogen.deprecated import old_names
from tw_autogen.kernel.guest import Plugin, PluginContext, register_plugin, run_plugin_tests, test_plugin
from tw_autogen.kernel.guest.plugin import plugin
from tw_autogen.plugin.callables import callable_plugin
from tw_autogen.plugin.check import Flaw, check_files
from tw_autogen.plugin.choose import Chosen, Enabled, choose, names_used, rank, selects, texts_of
from tw_autogen.plugin.folder import plugin_files, read_folder
from tw_autogen.plugin.functions import read_functions
from tw_autogen.plugin.host_run import HostPlugin
from tw_autogen.plugin.imports import Missing, check_imports, missing_imports
from tw_autogen.plugin.installed import installed_plugins, read_entry
from tw_autogen.plugin.load import PluginWanted, check_source, find_plugins, renamed_parameters
from tw_autogen.plugin.plugin_tests import PluginTests
from tw_autogen.plugin.spec import NO_DEFAULT, Parameter, PluginSpec, read_spec
from tw_autogen.plugin.task_type import TASK_TYPES, task_type
from tw_autogen.plugin.unclear import LOOKUP, looked_up, unclear_calls
from tw_autogen.plugin.write import write_plugin

__all__ = [
    "Chosen",
    "Enabled",
    "Flaw",
    "HostPlugin",
    "LOOKUP",
    "Missing",
    "NO_DEFAULT",
    "Parameter",
    "Plugin",
    "PluginContext",
    "PluginSpec",
    "PluginWanted",
    "TASK_TYPES",
    "PluginTests",
    "callable_plugin",
    "check_files",
    "check_imports",
    "check_source",
    "choose",
    "find_plugins",
    "installed_plugins",
    "looked_up",
    "missing_imports",
    "names_used",
    "plugin",
    "plugin_files",
    "rank",
    "read_entry",
    "read_folder",
    "read_functions",
    "read_spec",
    "register_plugin",
    "renamed_parameters",
    "run_plugin_tests",
    "selects",
    "task_type",
    "test_plugin",
    "texts_of",
    "unclear_calls",
    "write_plugin",
]

if not TYPE_CHECKING:  # a type checker names an unknown attribute
    __getattr__ = old_names(__name__, {"Trial": "PluginTests", "renamings": "renamed_parameters"})
