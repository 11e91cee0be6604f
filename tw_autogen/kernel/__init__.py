"""Kernels: Python processes that remember, in which generated code runs."""

from typing import TYPE_CHECKING

from tw_autogen.deprecated import old_names
from tw_autogen.lazy_module import lazy_face

if TYPE_CHECKING:
    from tw_autogen.kernel.attached_kernel import AttachedKernel
    from tw_autogen.kernel.container_kernel import ContainerKernel
    from tw_autogen.kernel.first_server import begin_fork_server
    from tw_autogen.kernel.gateway_kernel import GatewayKernel
    from tw_autogen.kernel.guest.files.describe import Describer
    from tw_autogen.kernel.guest.files.file_size import size_words
    from tw_autogen.kernel.kernel import Artifact, Execution, FileDescriber, Kernel, Loadable, Log, Variable
    from tw_autogen.kernel.local_kernel import LocalKernel
    from tw_autogen.kernel.settings import KernelSettings

__all__ = [
    "Artifact",
    "AttachedKernel",
    "ContainerKernel",
    "Describer",
    "Execution",
    "FileDescriber",
    "GatewayKernel",
    "Kernel",
    "KernelSettings",
    "Loadable",
    "LocalKernel",
    "Log",
    "Variable",
    "begin_fork_server",
    "size_words",
]

if not TYPE_CHECKING:  # a type checker names an unknown attribute
    __getattr__ = lazy_face(
        __name__,
        {
            "attached_kernel": ("AttachedKernel",),
            "container_kernel": ("ContainerKernel",),
            "first_server": ("begin_fork_server",),
            "gateway_kernel": ("GatewayKernel",),
            "guest.files.describe": ("Describer",),
            "guest.files.file_size": ("size_words",),
            "kernel": ("Artifact", "Execution", "FileDescriber", "Kernel", "Loadable", "Log", "Variable"),
            "local_kernel": ("LocalKernel",),
            "settings": ("KernelSettings",),
        },
        old_names(
            __name__,
            {
                "tw_autogen.kernel.guest.plugin": ("Plugin", "register_plugin"),
                "tw_autogen.kernel.guest.plugin_context": ("PluginContext",),
                "tw_autogen.kernel.kernel": ("OnOutput",),
                "tw_autogen.plugin": ("test_plugin",),
            },
        ),
    )
