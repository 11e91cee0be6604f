"""Bounds for what comes from the other side: its memory, its time, and the types of its fields."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from .hash_time import HashFloodGuard

UNBOUNDED = 1 << 62
_SHOWN_CHARS = 80


class MemoryBudget:
    """Counts memory before it is taken, and what is free again; from any thread.

    Args:
        max_bytes: How much may be held at once.
        what: What takes it, in an error.
        within: A budget that counts the same memory together with that of others.
    """

    def __init__(self, max_bytes: int, what: str = "a table", within: MemoryBudget | None = None) -> None:
        self._most = max_bytes
        self._what = what
        self._within = within
        self._held = 0
        self._lock = threading.Lock()

    def claim(self, count: int) -> None:
        """Count so many bytes.

        Raises:
            ValueError: together it is too much; then they are not counted.
        """
        with self._lock:
            if self._held + count > self._most:
                raise ValueError(
                    f"{self._what} that would take more than {self._most >> 20} MB of memory doesn't cross"
                )
            if self._within is not None:
                self._within.claim(count)
            self._held += count

    def free(self, count: int) -> None:
        """Count so many bytes no longer."""
        with self._lock:
            self._held -= count
            if self._within is not None:
                self._within.free(count)

    def free_all(self) -> None:
        """Count nothing any more."""
        self.free(self._held)

    @contextlib.contextmanager
    def held(self, count: int) -> Iterator[None]:
        """Count so many bytes for a while.

        Raises:
            ValueError: together it is too much.
        """
        self.claim(count)
        try:
            yield
        finally:
            self.free(count)


class Bounds:
    """What reading one message may take, with all values and tables that lie in one another in it.

    Args:
        max_bytes: Of memory, beside the message's own.
        within: Counts the memory of other messages, too.
    """

    def __init__(self, max_bytes: int = UNBOUNDED, within: MemoryBudget | None = None) -> None:
        self.memory = MemoryBudget(max_bytes, within=within)
        self.time = HashFloodGuard()
        self.paths = True
        """Whether a path arrives as one, or as its text."""

    @contextlib.contextmanager
    def without_paths(self) -> Iterator[None]:
        """Make texts of paths meanwhile: who uses a table looks for none in its cells, labels and attributes."""
        before, self.paths = self.paths, False
        try:
            yield
        finally:
            self.paths = before


def check_fields(plain: Mapping[str, Any], fields: Mapping[str, tuple[type, ...]], what: str) -> None:
    """Check the types of fields that the other side sent; a missing one is None.

    Args:
        plain: What was sent.
        fields: By name the types that a field may have; exactly these, so that a truth value is no number.
        what: What has these fields, in an error.

    Raises:
        ValueError: a field is of another type.
    """
    for name, kinds in fields.items():
        found = type(plain.get(name))
        if found not in kinds:
            expected = " or ".join(kind.__name__ for kind in kinds)
            raise ValueError(f"{what} has no {name!r} that crosses: expected {expected}, got {found.__name__}")


def shown(value: Any) -> str:
    """Return a foreign value for an error: the beginning of a text, of other values what they are."""
    return repr(value[:_SHOWN_CHARS]) if isinstance(value, str) else f"a value of type {type(value).__name__}"
