"""How a process ended, in words."""

from __future__ import annotations

import signal


def describe_exit(code: int) -> str:
    """Return how a process ended.

    Args:
        code: As `subprocess` gives it: below zero, the number of the signal that killed it.

    Example:
        >>> describe_exit(3), describe_exit(-11)
        ('exit code 3', 'killed by SIGSEGV')
    """
    if code >= 0:
        return f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"killed by {name}" + (" (often: out of memory)" if name == "SIGKILL" else "")
