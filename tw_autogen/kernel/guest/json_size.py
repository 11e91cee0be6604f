"""How much memory a JSON text takes once it is read, estimated before it is."""

from __future__ import annotations

MOST_BYTES = 256 << 20
"""What the values of one message or host call may take."""

_MOST_SENT = 60 << 20
"""What the text of a host call may take; a message of more than 64 MB does not reach the host."""
_PER_CONTAINER, _PER_VALUE, _PER_QUOTE = 64, 32, 28
_WIDEST = 4


def estimate_parsed_bytes(text: str | bytes) -> int:
    """Return about how many bytes Python takes for the values of a JSON text; it may be more than it is.

    Args:
        text: JSON, or what claims to be. Of bytes the text that they become is counted too, with 4 bytes for each of
            them if one is not ASCII: a single wide character makes all others of a text as wide.

    Example:
        >>> estimate_parsed_bytes("[1, 2, 3]")
        137
    """
    if isinstance(text, str):
        containers, values, quotes = text.count("{") + text.count("["), text.count(","), text.count('"')
    else:
        containers, values, quotes = text.count(b"{") + text.count(b"["), text.count(b","), text.count(b'"')
    width = 1 if text.isascii() else _WIDEST
    held = width * len(text) * (2 if isinstance(text, bytes) else 1)
    return held + _PER_CONTAINER * containers + _PER_VALUE * values + _PER_QUOTE * quotes


def check_call_size(request: str) -> None:
    """Check that a host call is small enough to be read.

    Args:
        request: JSON.

    Raises:
        ValueError: it is too large.
    """
    needed = estimate_parsed_bytes(request)
    sent = len(request) + request.count('"') + request.count("\\")  # it is a text within a message of JSON
    if needed > MOST_BYTES or sent > _MOST_SENT:
        taken, of, most = (
            (needed, "the host's memory", MOST_BYTES) if needed > MOST_BYTES else (sent, "one message", _MOST_SENT)
        )
        raise ValueError(
            f"the arguments would take about {taken >> 20} MB of {of}, of {most >> 20}; "
            "pass a DataFrame, or write a file and pass its name"
        )
