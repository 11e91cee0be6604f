"""`check_kernel`: what every kernel must do, wherever it runs."""

from tests.support.kernel_checks.bench import KernelCheck, KernelFactory
from tests.support.kernel_checks.suite import KERNEL_CHECKS, KERNEL_CLAIMS, check_kernel

__all__ = ["KERNEL_CHECKS", "KERNEL_CLAIMS", "KernelCheck", "KernelFactory", "check_kernel"]
