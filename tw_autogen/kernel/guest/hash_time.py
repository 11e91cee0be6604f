"""Sets, dicts and pandas' indexes of foreign values, built in about linear time whatever their hashes are.

Integers, and what is made of them, may be chosen to have one hash value; each is then compared with all before it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator, Sequence
from time import thread_time
from typing import Any, TypeVar

_MAX_DIGITS = 4000
_Item = TypeVar("_Item")
_SECONDS = 0.25
_SECONDS_PER_ITEM = 2e-6
"""Ten times what an item takes whose hash is its own."""


_FEW = 1000
"""So many values of one hash are compared with one another quickly."""


def check_hash_values(value: Any) -> None:
    """Look whether sets and dicts may be made of values that came as JSON, by whoever does so without a guard.

    Args:
        value: Lists and dicts; texts of digits count as numbers, which they may be made.

    Raises:
        ValueError: very many have one hash value.
    """
    guard, left = HashFloodGuard(), [value]
    while left:
        one = left.pop()
        inner = list(one.values()) if isinstance(one, dict) else list(one) if isinstance(one, list | tuple) else []
        left += [each for each in inner if isinstance(each, list | tuple | dict)]
        for keys in (list(one) if isinstance(one, dict) else [], inner):
            if len(keys) > _FEW:
                guard.build_set(list(map(_as_key, keys)))


def _as_key(value: Any) -> Hashable:
    if isinstance(value, str):
        return int(value) if len(value) < _MAX_DIGITS and value.isdecimal() else value
    if isinstance(value, list | tuple):
        return tuple(map(_as_key, value))
    return value if isinstance(value, Hashable) else None


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
        return set(self._yield_while_in_time(items))

    def build_dict(self, pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
        """Return a dict of pairs with hashable keys.

        Raises:
            ValueError: it takes too long.
        """
        return dict(self._yield_while_in_time(pairs))

    def number(self, items: list[Hashable]) -> tuple[list[int], list[int]]:
        """Return each value's number among the different ones, and the place of the first value of each number.

        Raises:
            ValueError: it takes too long.
        """
        numbers: dict[Hashable, int] = {}
        codes: list[int] = []
        firsts: list[int] = []
        for one in self._yield_while_in_time(items):
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
        self._charge_time(began, items)

    def _yield_while_in_time(self, items: Sequence[_Item]) -> Iterator[_Item]:
        """Yield values, each as soon as the one before was hashed in time."""
        began, look = thread_time(), self._check_time
        for number, item in enumerate(items, 1):
            yield item
            look(began, number)
        self._charge_time(began, len(items))

    def _check_time(self, began: float, items: int) -> None:
        spent = self._spent + thread_time() - began
        if spent > _SECONDS + _SECONDS_PER_ITEM * (self._items + items):
            raise ValueError(
                f"sets, dicts or labels with many keys of one hash value don't cross: {self._items + items} keys took "
                f"{spent:.1f} s; pass a list"
            )

    def _charge_time(self, began: float, items: int) -> None:
        self._check_time(began, items)
        self._items += items
        self._spent += thread_time() - began
