"""Whether a value can cross from the host to a kernel, found out before anything runs."""

from __future__ import annotations

import io
from typing import Any, BinaryIO

from tw_autogen.kernel.guest.codec import Codec

_SAMPLE_ROWS = 1000


class _Nowhere:
    """An exchange that keeps nothing."""

    def create(self, suffix: str) -> tuple[str, BinaryIO]:
        """Open a file in memory."""
        return "nowhere", io.BytesIO()

    def open(self, name: str) -> BinaryIO:
        """Open nothing: what was written is not kept."""
        raise FileNotFoundError(name)

    def remove(self, name: str) -> None:
        """Remove nothing."""


def untransferable_reason(value: Any) -> str:
    """Return in words why a value doesn't cross; empty if it does. Of a table the first 1000 rows are looked at.

    Example:
        >>> untransferable_reason({"a": [1, 2]}), untransferable_reason({"f": len})
        ('', "a value of type builtin_function_or_method doesn't cross between kernel and host")
    """
    try:
        Codec(_Nowhere()).pack(value.iloc[:_SAMPLE_ROWS] if hasattr(value, "iloc") else value)
    except (TypeError, ValueError, OverflowError) as error:
        return str(error)
    except RecursionError:
        return "a value that contains itself, or is nested too deeply, doesn't cross"
    return ""
