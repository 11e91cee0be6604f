"""`Contents`: what one object holds, and how it is copied and put back; what can't change is told from the rest."""

from __future__ import annotations

import datetime
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

Undo = Callable[[], None]
PLAIN = frozenset({int, float, complex, str, bytes, bool, type(None), datetime.datetime, datetime.date})


@dataclass(frozen=True)
class Contents:
    """What an object holds.

    Args:
        inner: The objects in it that may change too.
        copy: Copies what it holds, and gives what puts it back; None: nothing in it can change.
        size: Roughly how many bytes that copies.
        hashes: It is put back behind all that does not hash, because `__hash__` may look at those.
        code: Function bodies that run when it is used; they may reach variables by name.
    """

    inner: Iterable[Any] = ()
    copy: Callable[[], Undo] | None = None
    size: int = 0
    hashes: bool = False
    code: Iterable[types.CodeType] = ()


NOTHING = Contents()


def changeable(values: Iterable[Any]) -> list[Any]:
    """Leave out what can't change; quick also for a million numbers."""
    values = values if type(values) is list else list(values)
    return [] if set(map(type, values)) <= PLAIN else [one for one in values if type(one) not in PLAIN]


def is_a(value: Any, kind: type | tuple[type, ...]) -> bool:
    """Return a value's kind without asking the value, as `isinstance` does: its class may raise."""
    return issubclass(type(value), kind)
