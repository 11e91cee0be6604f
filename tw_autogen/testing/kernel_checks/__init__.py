"""`check_kernel`: what every kernel must do, wherever it runs; for kernels of one's own too."""

from tw_autogen.testing.kernel_checks.bench import KernelCheck, KernelFactory
from tw_autogen.testing.kernel_checks.suite import KERNEL_CHECKS, KERNEL_CLAIMS, check_kernel

__all__ = ["KERNEL_CHECKS", "KERNEL_CLAIMS", "KernelCheck", "KernelFactory", "check_kernel"]
