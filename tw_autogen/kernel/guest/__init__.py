"""What runs inside a kernel: standard library only, bundled and sent as text, so that ipykernel is all a kernel needs.

It is also the only definition of what a plugin's author writes against: `Plugin`, `PluginContext`, `plugin`,
`register_plugin`, `test_plugin`. The modules import one another relatively, because in the kernel the package is called
`tw_guest`. The host's side takes only the names below.
"""

from .artifacts import TooLarge
from .codec import untransferable_reason
from .pip_install import install_words
from .plugin import (
    Plugin,
    PluginProblem,
    install_names,
    load_plugin,
    plugin,
    plugin_options,
    register_plugin,
    run_plugin_tests,
    test_plugin,
)
from .plugin_context import ExecutionOutputs, PluginContext

__all__ = [
    "ExecutionOutputs",
    "Plugin",
    "PluginContext",
    "PluginProblem",
    "TooLarge",
    "install_names",
    "install_words",
    "load_plugin",
    "plugin",
    "plugin_options",
    "register_plugin",
    "run_plugin_tests",
    "test_plugin",
    "untransferable_reason",
]
