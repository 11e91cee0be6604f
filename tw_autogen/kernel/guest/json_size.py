"""How much memory a JSON text takes once it is read, estimated before it is."""

from __future__ import annotations

MAX_BYTES = 256 << 20
"""What the values of one message or host call may take."""

LARGEST_PART = 64 << 20
"""The bytes of one part of a message; the host cuts the line on which a kernel sends a longer one."""

MAX_TEXT_BYTES = 60 << 20
"""The bytes that one text in a message may take on its way."""

_SURE_CHARS = 8 << 20

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


def fits_message(text: str) -> bool:
    """Return whether a text can stand in a message: there its quotes, backslashes and line ends are escaped.

    Args:
        text: Any.

    Example:
        >>> fits_message("a" * 1000)
        True
    """
    if len(text) <= _SURE_CHARS:  # of 4 bytes each at most, or of 6 where it is a control character
        return True
    escaped = sum(map(text.count, '"\\\n\r\t'))
    return len(text.encode("utf-8", "replace")) + escaped <= MAX_TEXT_BYTES


def check_call_size(request: str) -> None:
    """Check that a host call is small enough to be read.

    Args:
        request: JSON.

    Raises:
        ValueError: it is too large.
    """
    needed = estimate_parsed_bytes(request)
    if needed > MAX_BYTES:
        raise ValueError(
            f"the arguments would take about {needed >> 20} MB of the host's memory, of {MAX_BYTES >> 20}; "
            "pass a DataFrame, or write a file and pass its name"
        )
    if not fits_message(request):
        raise ValueError(
            f"the arguments are a text of {len(request) >> 20} MB, of {MAX_TEXT_BYTES >> 20} at most; "
            "pass a DataFrame, or write a file and pass its name"
        )
