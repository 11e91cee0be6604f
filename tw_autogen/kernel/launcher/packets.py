"""What the host tells a kernel's process: a packet each, compressed: thousands of paths exceed what a socket takes."""

from __future__ import annotations

import binascii
import json
import zlib
from collections.abc import Mapping
from typing import Any


def pack(message: Mapping[str, Any]) -> bytes:
    """Return a message as one line of ASCII, without the line's end.

    Args:
        message: What JSON can hold.
    """
    return binascii.b2a_base64(zlib.compress(json.dumps(message).encode(), 1), newline=False)


def unpack(packet: bytes) -> dict[str, Any]:
    """Return the message that `pack` was given."""
    message: dict[str, Any] = json.loads(zlib.decompress(binascii.a2b_base64(packet)))
    return message
