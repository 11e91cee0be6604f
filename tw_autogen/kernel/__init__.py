"""Kernels: Python processes that remember, in which generated code runs."""

from tw_autogen.kernel.container import ContainerKernel
from tw_autogen.kernel.gateway import GatewayKernel
from tw_autogen.kernel.guest import Plugin, PluginContext, register_plugin, test_plugin
from tw_autogen.kernel.kernel import Artifact, Execution, Kernel, Loadable, Log, OnOutput, Variable
from tw_autogen.kernel.local import LocalKernel
from tw_autogen.kernel.settings import KernelSettings

__all__ = [
    "Artifact",
    "ContainerKernel",
    "Execution",
    "GatewayKernel",
    "Kernel",
    "KernelSettings",
    "Loadable",
    "LocalKernel",
    "Log",
    "OnOutput",
    "Plugin",
    "PluginContext",
    "Variable",
    "register_plugin",
    "test_plugin",
]
