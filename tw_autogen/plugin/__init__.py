"""Plugins: functions that generated code calls; their specs, how a model sees them, and which fit a request."""

from typing import TYPE_CHECKING

from tw_autogen.deprecated import old_names
from tw_autogen.kernel.guest import Plugin, PluginContext, plugin, register_plugin, test_plugin
from tw_autogen.lazy_module import lazy_face
from tw_autogen.named_folders import named_file
from tw_autogen.safe_folder import private_folder
from tw_autogen.sqlite_reader import read_sqlite

if TYPE_CHECKING:
    from tw_autogen.plugin.callable_plugins import Parameters, Returns, as_model, callable_plugin
    from tw_autogen.plugin.check import Flaw, check_files
    from tw_autogen.plugin.folder import is_name, plugin_files, read_folder
    from tw_autogen.plugin.host_plugin import HostPlugin
    from tw_autogen.plugin.listing import Listed, files_of_plugins, listed_plugins, project_plugins
    from tw_autogen.plugin.parameter_schema import check_arguments, is_table, json_schema
    from tw_autogen.plugin.plugin_finder import PluginWanted, find_plugins
    from tw_autogen.plugin.plugin_tests import PluginTests
    from tw_autogen.plugin.plugin_writer import write_plugin
    from tw_autogen.plugin.settings import McpApproval, PluginSettings
    from tw_autogen.plugin.spec import Parameter, PluginSpec

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
    "is_name",
    "is_table",
    "json_schema",
    "listed_plugins",
    "named_file",
    "plugin",
    "plugin_files",
    "private_folder",
    "project_plugins",
    "read_folder",
    "read_sqlite",
    "register_plugin",
    "test_plugin",
    "write_plugin",
]

if not TYPE_CHECKING:  # a type checker names an unknown attribute
    __getattr__ = lazy_face(
        __name__,
        {
            "callable_plugins": ("Parameters", "Returns", "as_model", "callable_plugin"),
            "check": ("Flaw", "check_files"),
            "folder": ("is_name", "plugin_files", "read_folder"),
            "host_plugin": ("HostPlugin",),
            "listing": ("Listed", "files_of_plugins", "listed_plugins", "project_plugins"),
            "parameter_schema": ("check_arguments", "is_table", "json_schema"),
            "plugin_finder": ("PluginWanted", "find_plugins"),
            "plugin_tests": ("PluginTests",),
            "plugin_writer": ("write_plugin",),
            "settings": ("McpApproval", "PluginSettings"),
            "spec": ("Parameter", "PluginSpec"),
        },
        old_names(
            __name__,
            {
                "tw_autogen.code_interpreter": ("names_used",),
                "tw_autogen.code_interpreter.plugin_selection": ("Enabled", "texts_of"),
                "tw_autogen.code_interpreter.task_type": ("task_type", "TASK_TYPES"),
                "tw_autogen.code_interpreter.unseen_plugin_calls": ("looked_up", "LOOKUP", "unclear_calls"),
                "tw_autogen.kernel.guest": ("run_plugin_tests",),
                "tw_autogen.plugin.decorated_functions": ("read_functions",),
                "tw_autogen.plugin.entry_points": ("installed_plugins", "read_entry"),
                "tw_autogen.plugin.folder": ("inner_folder",),
                "tw_autogen.plugin.import_check": ("check_imports", "Missing", "missing_imports"),
                "tw_autogen.plugin.plugin_finder": ("check_source", "renamed_parameters"),
                "tw_autogen.plugin.spec": ("NO_DEFAULT",),
            },
            renamed={
                "choose": "tw_autogen.code_interpreter.plugin_selection.select_plugins",
                "Chosen": "tw_autogen.code_interpreter.plugin_selection.SelectedPlugins",
                "rank": "tw_autogen.code_interpreter.plugin_selection.rank_plugins",
                "renamings": "tw_autogen.plugin.plugin_finder.renamed_parameters",
                "selects": "tw_autogen.code_interpreter.plugin_selection.needs_selection",
                "Trial": "PluginTests",
            },
        ),
    )
