"""Puts a kernel that was kept ready behind a Seatbelt profile, on macOS, before it runs any code. Not tried."""

from __future__ import annotations

import ctypes
import os

_LIBRARY = "/usr/lib/libsandbox.dylib"


def enclose(text: str) -> str:
    """Apply a profile to this process and all that it starts, for ever; return `up`, or why it can't be applied.

    Args:
        text: The profile.
    """
    try:
        library = ctypes.CDLL(_LIBRARY)
        problem = ctypes.c_char_p()
        if library.sandbox_init(os.fsencode(text), ctypes.c_uint64(0), ctypes.byref(problem)) == 0:
            return "up"
        return (problem.value or b"sandbox_init failed").decode(errors="replace")
    except (OSError, AttributeError) as error:
        return f"no sandbox_init: {error}"
