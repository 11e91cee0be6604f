"""What servers send is bounded before the SDK reads it: lines of standard output, and bodies over HTTP."""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator, Mapping
from types import ModuleType
from typing import Any

from tw_autogen import bounded_json

LARGEST_BYTES = 64 << 20
"""Of one message."""
LIMIT_WORDS = f"{LARGEST_BYTES >> 20} MB, or {bounded_json.MAX_BYTES >> 20} MB as values"
ENCODING = "tw_autogen_mcp_lines"
"""UTF-8 of which a line that is too large comes as a short one that is no JSON: the SDK's stdio transport takes an
encoding, and no limit; it gathers a line in time that is quadratic in its length."""
_TOO_LARGE = '{"jsonrpc": too large'


class _WholeLines(codecs.IncrementalDecoder):
    """Bytes to text, a whole line at a time."""

    def __init__(self, errors: str = "strict") -> None:
        super().__init__(errors)
        self._pieces: list[bytes] = []
        self._size = self._needed = 0

    def decode(self, input: Any, final: bool = False) -> str:  # noqa: A002 - the name is the base class's
        *ends, rest = bytes(input).split(b"\n")
        lines = []
        for end in ends:
            self._add(end)
            lines.append(self._take_line())
        self._add(rest)
        return "".join(lines)

    def reset(self) -> None:
        self._pieces, self._size, self._needed = [], 0, 0

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        self._needed += bounded_json.estimate_bytes(piece)
        if _too_large(self._size, self._needed):
            self._pieces.clear()
        else:
            self._pieces.append(piece)

    def _take_line(self) -> str:
        too_large = _too_large(self._size, self._needed)
        line = _TOO_LARGE if too_large else b"".join(self._pieces).decode("utf-8", self.errors)
        self.reset()
        return f"{line}\n"


def _too_large(size: int, needed: int) -> bool:
    return size > LARGEST_BYTES or needed > bounded_json.MAX_BYTES


def _find_codec(name: str) -> codecs.CodecInfo | None:
    if name != ENCODING:
        return None
    plain = codecs.lookup("utf-8")
    return codecs.CodecInfo(plain.encode, plain.decode, incrementaldecoder=_WholeLines, name=ENCODING)


codecs.register(_find_codec)


def bounded_client(httpx2: ModuleType, headers: Mapping[str, str] | None, **more: Any) -> Any:
    """Return a client whose answers are bounded; a stream of events may be endless: the SDK bounds each event to 1 MB.

    Args:
        httpx2: The package; it comes with the SDK.
        headers: Go with each request. What is packed is not asked for, and is an error: it may be any size.
        more: Go to `httpx2.AsyncClient`.
    """

    class BoundedStream(httpx2.AsyncByteStream):  # type: ignore[misc, name-defined]  # the package is imported late
        def __init__(self, response: Any) -> None:
            self._inner = response.stream
            self._packed = response.headers.get("content-encoding", "identity").strip().lower()
            self._endless = response.headers.get("content-type", "").lower().startswith("text/event-stream")

        async def __aiter__(self) -> AsyncIterator[bytes]:
            if self._packed != "identity":
                raise httpx2.StreamError(f"the answer is packed ({self._packed}), which was not asked for")
            size = needed = 0
            async for piece in self._inner:
                size += len(piece)
                needed += bounded_json.estimate_bytes(piece)
                if not self._endless and _too_large(size, needed):
                    raise httpx2.StreamError(f"the answer is larger than {LIMIT_WORDS}")
                yield piece

        async def aclose(self) -> None:
            await self._inner.aclose()

    async def bound(response: Any) -> None:
        response.stream = BoundedStream(response)

    headers = {"Accept-Encoding": "identity", **(headers or {})}
    return httpx2.AsyncClient(headers=headers, event_hooks={"response": [bound]}, **more)
