"""What runs inside a kernel: standard library only, bundled and sent as text, so that ipykernel is all a kernel needs.

It is also the only definition of what a plugin's author writes against: `Plugin`, `PluginContext`, `plugin`,
`register_plugin`, `test_plugin`. The modules import one another relatively, because in the kernel the package is called
`tw_guest`.
"""

from .context import Kept, PluginContext
from .plugin import (
    Plugin,
    PluginProblem,
    load_plugin,
    plugin_options,
    register_plugin,
    run_plugin_tests,
    test_plugin,
)

__all__ = [
    "Kept",
    "Plugin",
    "PluginContext",
    "PluginProblem",
    "load_plugin",
    "plugin_options",
    "register_plugin",
    "run_plugin_tests",
    "test_plugin",
]
