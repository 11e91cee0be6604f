"""How much memory a JSON text takes once it is read, estimated before it is."""

from __future__ import annotations

MOST_BYTES = 256 << 20
"""What the values of one message or host call may take."""

_PER_CONTAINER, _PER_VALUE, _PER_QUOTE = 64, 32, 28


def estimate_parsed_bytes(text: str | bytes) -> int:
    """Return about how many bytes Python takes for the values of a JSON text; it may be somewhat more than it is.

    Args:
        text: JSON, or what claims to be.

    Example:
        >>> estimate_parsed_bytes("[1, 2, 3]")
        137
    """
    if isinstance(text, str):
        containers, values, quotes = text.count("{") + text.count("["), text.count(","), text.count('"')
    else:
        containers, values, quotes = text.count(b"{") + text.count(b"["), text.count(b","), text.count(b'"')
    return len(text) + _PER_CONTAINER * containers + _PER_VALUE * values + _PER_QUOTE * quotes


def check_call_size(request: str) -> None:
    """Check that a host call is small enough to be read.

    Args:
        request: JSON.

    Raises:
        ValueError: it is too large.
    """
    needed = estimate_parsed_bytes(request)
    if needed > MOST_BYTES:
        raise ValueError(
            f"the arguments would take about {needed >> 20} MB of the host's memory, of {MOST_BYTES >> 20}; "
            "pass a DataFrame, or write a file and pass its name"
        )
