"""Plugins: functions that generated code calls; their specs, how a model sees them, and which fit a request."""

from typing import TYPE_CHECKING

from tw_autogen.deprecated import old_names
from tw_autogen.kernel.guest import Plugin, PluginContext, plugin, register_plugin, test_plugin
from tw_autogen.plugin.callables import Parameters, Returns, as_model, callable_plugin
from tw_autogen.plugin.check import Flaw, check_files
from tw_autogen.plugin.folder import inner_folder, is_name, plugin_files, read_file, read_folder
from tw_autogen.plugin.host_run import HostPlugin
from tw_autogen.plugin.imports import check_imports
from tw_autogen.plugin.installed import installed_plugins, read_entry
from tw_autogen.plugin.load import PluginWanted, check_source, find_plugins, renamed_parameters
from tw_autogen.plugin.plugin_tests import PluginTests
from tw_autogen.plugin.schema import check_arguments, is_table, json_schema
from tw_autogen.plugin.settings import McpApproval, PluginSettings
from tw_autogen.plugin.spec import NO_DEFAULT, Parameter, PluginSpec, read_spec
from tw_autogen.plugin.write import write_plugin

__all__ = [
    "Flaw",
    "HostPlugin",
    "McpApproval",
    "NO_DEFAULT",
    "Parameter",
    "Parameters",
    "Plugin",
    "PluginContext",
    "PluginSettings",
    "PluginSpec",
    "PluginTests",
    "PluginWanted",
    "Returns",
    "as_model",
    "callable_plugin",
    "check_arguments",
    "check_files",
    "check_imports",
    "check_source",
    "find_plugins",
    "inner_folder",
    "installed_plugins",
    "is_name",
    "is_table",
    "json_schema",
    "plugin",
    "plugin_files",
    "read_entry",
    "read_file",
    "read_folder",
    "read_spec",
    "register_plugin",
    "renamed_parameters",
    "test_plugin",
    "write_plugin",
]

if not TYPE_CHECKING:  # a type checker names an unknown attribute
    __getattr__ = old_names(
        __name__,
        {
            "choose": "tw_autogen.code_interpreter.choose.choose",
            "Chosen": "tw_autogen.code_interpreter.choose.Chosen",
            "Enabled": "tw_autogen.code_interpreter.choose.Enabled",
            "looked_up": "tw_autogen.code_interpreter.unclear.looked_up",
            "LOOKUP": "tw_autogen.code_interpreter.unclear.LOOKUP",
            "Missing": "tw_autogen.plugin.imports.Missing",
            "missing_imports": "tw_autogen.plugin.imports.missing_imports",
            "names_used": "tw_autogen.code_interpreter.names_used",
            "rank": "tw_autogen.code_interpreter.choose.rank",
            "read_functions": "tw_autogen.plugin.functions.read_functions",
            "renamings": "renamed_parameters",
            "run_plugin_tests": "tw_autogen.kernel.guest.run_plugin_tests",
            "selects": "tw_autogen.code_interpreter.choose.selects",
            "task_type": "tw_autogen.code_interpreter.task_type.task_type",
            "TASK_TYPES": "tw_autogen.code_interpreter.task_type.TASK_TYPES",
            "texts_of": "tw_autogen.code_interpreter.choose.texts_of",
            "Trial": "PluginTests",
            "unclear_calls": "tw_autogen.code_interpreter.unclear.unclear_calls",
        },
    )
