"""Sets, dicts and pandas' indexes of foreign values, built in about linear time whatever their hashes are.

Integers, and what is made of them, may be chosen to have one hash value; each is then compared with all before it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator
from time import thread_time
from typing import Any

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
        made: set[Any] = set()
        began = thread_time()
        for number, one in enumerate(items, 1):
            made.add(one)
            self._look(began, number)
        self._count(began, len(items))
        return made

    def build_dict(self, pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
        """Return a dict of pairs with hashable keys.

        Raises:
            ValueError: it takes too long.
        """
        made: dict[Any, Any] = {}
        began = thread_time()
        for number, (key, value) in enumerate(pairs, 1):
            made[key] = value
            self._look(began, number)
        self._count(began, len(pairs))
        return made

    def number(self, items: list[Hashable]) -> tuple[list[int], list[int]]:
        """Return each value's number among the different ones, and the place of the first value of each number.

        Raises:
            ValueError: it takes too long.
        """
        numbers: dict[Hashable, int] = {}
        codes: list[int] = []
        firsts: list[int] = []
        began = thread_time()
        for place, one in enumerate(items):
            code = numbers.setdefault(one, len(firsts))
            if code == len(firsts):
                firsts.append(place)
            codes.append(code)
            self._look(began, place + 1)
        self._count(began, len(items))
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
