"""Plugins: functions that generated code calls; their specs, how a model sees them, and which fit a request."""

from typing import TYPE_CHECKING

from tw_autogen.deprecated import old_names
from tw_autogen.kernel.guest import Plugin, PluginContext, plugin, register_plugin, test_plugin
from tw_autogen.plugin.callables import Parameters, Returns, as_model, callable_plugin
from tw_autogen.plugin.check import Flaw, check_files
from tw_autogen.plugin.folder import inner_folder, is_name, plugin_files, read_folder
from tw_autogen.plugin.host_run import HostPlugin
from tw_autogen.plugin.listing import Listed, files_of_plugins, listed_plugins, project_plugins
from tw_autogen.plugin.load import PluginWanted, find_plugins
from tw_autogen.plugin.plugin_tests import PluginTests
from tw_autogen.plugin.schema import check_arguments, is_table, json_schema
from tw_autogen.plugin.settings import McpApproval, PluginSettings
from tw_autogen.plugin.spec import Parameter, PluginSpec, read_spec
from tw_autogen.plugin.write import write_plugin
from tw_autogen.safe_folder import private_folder
from tw_autogen.sqlite_reader import read_sqlite

__all__ = [
    "Flaw",
    "HostPlugin",
    "Listed",
    "McpApproval",
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
    "files_of_plugins",
    "find_plugins",
    "inner_folder",
    "is_name",
    "is_table",
    "json_schema",
    "listed_plugins",
    "plugin",
    "plugin_files",
    "private_folder",
    "project_plugins",
    "read_folder",
    "read_spec",
    "read_sqlite",
    "register_plugin",
    "test_plugin",
    "write_plugin",
]

if not TYPE_CHECKING:  # a type checker names an unknown attribute
    __getattr__ = old_names(
        __name__,
        {
            "check_imports": "tw_autogen.plugin.imports.check_imports",
            "check_source": "tw_autogen.plugin.load.check_source",
            "choose": "tw_autogen.code_interpreter.choose.choose",
            "Chosen": "tw_autogen.code_interpreter.choose.Chosen",
            "Enabled": "tw_autogen.code_interpreter.choose.Enabled",
            "installed_plugins": "tw_autogen.plugin.installed.installed_plugins",
            "looked_up": "tw_autogen.code_interpreter.unclear.looked_up",
            "LOOKUP": "tw_autogen.code_interpreter.unclear.LOOKUP",
            "Missing": "tw_autogen.plugin.imports.Missing",
            "missing_imports": "tw_autogen.plugin.imports.missing_imports",
            "names_used": "tw_autogen.code_interpreter.names_used",
            "NO_DEFAULT": "tw_autogen.plugin.spec.NO_DEFAULT",
            "rank": "tw_autogen.code_interpreter.choose.rank",
            "read_entry": "tw_autogen.plugin.installed.read_entry",
            "read_functions": "tw_autogen.plugin.functions.read_functions",
            "renamed_parameters": "tw_autogen.plugin.load.renamed_parameters",
            "renamings": "tw_autogen.plugin.load.renamed_parameters",
            "run_plugin_tests": "tw_autogen.kernel.guest.run_plugin_tests",
            "selects": "tw_autogen.code_interpreter.choose.selects",
            "task_type": "tw_autogen.code_interpreter.task_type.task_type",
            "TASK_TYPES": "tw_autogen.code_interpreter.task_type.TASK_TYPES",
            "texts_of": "tw_autogen.code_interpreter.choose.texts_of",
            "Trial": "PluginTests",
            "unclear_calls": "tw_autogen.code_interpreter.unclear.unclear_calls",
        },
    )
