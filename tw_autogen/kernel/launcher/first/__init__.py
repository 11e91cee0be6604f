"""A folder that stands first in the path of interpreters that make kernels."""
