"""Reads what a kernel sends over its sockets: checks who signed it, and takes from it what a waiting host asks for.

It follows the Jupyter messaging protocol, version 5. `jupyter_client.Session` reads the same, and turns each text that
may be a time into one, which takes longer than everything else about a small cell.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from tw_autogen import bounded_json
from tw_autogen.kernel.guest.json_memory import MOST_BYTES, parsed_bytes

_DELIMITER = b"<IDS|MSG>"
_MOST_DIGESTS = 1 << 16
_UNREAD = frozenset({"execute_input"})
"""What a host that sent the cell itself has no use for."""


class Reader:
    """Reads messages that were signed with one key.

    Args:
        key: Known to the kernel's process and to this one.
    """

    def __init__(self, key: bytes) -> None:
        self._signer = hmac.HMAC(key, digestmod=hashlib.sha256)
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def read(self, parts: Sequence[bytes]) -> dict[str, Any] | None:
        """Return a message's `header`, `parent_header`, `content` and `msg_type`.

        Args:
            parts: As they came: whom it was for, a delimiter, signature, header, parent, metadata, content, buffers.

        Returns:
            None for what nobody waits for: of another signer, seen before, of another form, or of no use. A content
            that would take too much memory is left out: empty, so that whoever waits for the message goes on.
        """
        try:
            at = parts.index(_DELIMITER) + 1
            signature, header, parent, metadata, content = parts[at : at + 5]
        except ValueError:
            return None
        signer = self._signer.copy()
        for part in (header, parent, metadata, content):
            signer.update(part)
        digest = signer.hexdigest().encode()
        if not hmac.compare_digest(digest, signature) or digest in self._seen:
            return None
        self._seen[digest] = None
        if len(self._seen) > _MOST_DIGESTS:
            self._seen.popitem(last=False)
        return _message(header, parent, content)


def _message(header: bytes, parent: bytes, content: bytes) -> dict[str, Any] | None:
    read = _object(header)
    if read is None or not isinstance(read.get("msg_type"), str) or read["msg_type"] in _UNREAD:
        return None
    parent_header = _object(parent)
    body = _object(content) if parsed_bytes(content) <= MOST_BYTES else {}
    if parent_header is None or body is None:
        return None
    return {"header": read, "msg_type": read["msg_type"], "parent_header": parent_header, "content": body}


def _object(part: bytes) -> dict[str, Any] | None:
    if parsed_bytes(part) > MOST_BYTES:
        return None
    try:
        read = bounded_json.loads(part.decode("utf-8", "replace"))
    except ValueError:
        return None
    return read if isinstance(read, dict) else None
