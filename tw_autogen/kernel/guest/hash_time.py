"""Sets, dicts and pandas' indexes of foreign values, built in about linear time whatever their hashes are.

Integers, and what is made of them, may be chosen to have one hash value; each is then compared with all before it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator, Sequence
from time import thread_time
from typing import Any, TypeVar

_Item = TypeVar("_Item")
_SECONDS = 0.25
_SECONDS_PER_ITEM = 2e-6
"""Ten times what an item takes whose hash is its own."""


class HashFloodGuard:
    """Bounds the processor time of this thread that the hash tables of one message take together."""

    def __init__(self) -> None:
        self._items = 0
        self._spent = 0.0

    def build_set(self, items: list[Any]) -> set[Any]:
        """Return a set of hashable values.

        Raises:
            ValueError: it takes too long.
        """
        return set(self._watched(items))

    def build_dict(self, pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
        """Return a dict of pairs with hashable keys.

        Raises:
            ValueError: it takes too long.
        """
        return dict(self._watched(pairs))

    def number(self, items: list[Hashable]) -> tuple[list[int], list[int]]:
        """Return each value's number among the different ones, and the place of the first value of each number.

        Raises:
            ValueError: it takes too long.
        """
        numbers: dict[Hashable, int] = {}
        codes: list[int] = []
        firsts: list[int] = []
        for one in self._watched(items):
            code = numbers.setdefault(one, len(firsts))
            if code == len(firsts):
                firsts.append(len(codes))
            codes.append(code)
        return codes, firsts

    @contextlib.contextmanager
    def counted(self, items: int) -> Iterator[None]:
        """Count the time in which something else hashes so many values.

        Raises:
            ValueError: it took too long.
        """
        began = thread_time()
        yield
        self._count(began, items)

    def _watched(self, items: Sequence[_Item]) -> Iterator[_Item]:
        """Yield values, each as soon as the one before was hashed in time."""
        began, look = thread_time(), self._look
        for number, one in enumerate(items, 1):
            yield one
            look(began, number)
        self._count(began, len(items))

    def _look(self, began: float, items: int) -> None:
        spent = self._spent + thread_time() - began
        if spent > _SECONDS + _SECONDS_PER_ITEM * (self._items + items):
            raise ValueError(
                f"sets, dicts or labels with many keys of one hash value don't cross: {self._items + items} keys took "
                f"{spent:.1f} s; pass a list"
            )

    def _count(self, began: float, items: int) -> None:
        self._look(began, items)
        self._items += items
        self._spent += thread_time() - began
