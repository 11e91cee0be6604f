"""Functions that run on the host: code in the kernel calls them over the kernel's own stdin channel."""

from __future__ import annotations

import itertools
import json
import keyword
import os
import threading
from collections.abc import Callable
from typing import Any

from .codec import Codec

MARK = "\0tw-call\0"
"""A prompt that begins with this is a call; no person's prompt does."""


class HostCallError(RuntimeError):
    """A function on the host failed; its text holds the type of the host's exception and its message."""


class HostCalls:
    """Makes the functions in the user's namespace that stand for served ones.

    Args:
        kernel: ipykernel's kernel; its `raw_input` carries the calls, and asks no person any more.
        codec: Packs arguments and unpacks results.
    """

    def __init__(self, kernel: Any, codec: Codec) -> None:
        self._ask: Callable[[str], str] = kernel.raw_input
        self._codec = codec
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._process = os.getpid()
        kernel.raw_input = _nobody_there
        kernel.getpass = _nobody_there

    def function(self, name: str, doc: str) -> Callable[..., Any]:
        """Give a function that calls the host's function of that name.

        Raises:
            ValueError: the name is no Python name.
        """
        if not name.isidentifier() or keyword.iskeyword(name):
            raise ValueError(f"{name!r} is not a Python name")

        def call(*args: Any, **kwargs: Any) -> Any:
            return self.call(name, args, kwargs)

        call.__name__ = call.__qualname__ = name
        call.__doc__ = doc
        return call

    def call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the host; threads wait for each other.

        Raises:
            TypeError: an argument is of a type that doesn't cross.
            HostCallError: the function failed, or there is none of that name.
        """
        if os.getpid() != self._process:
            raise HostCallError(f"{name}: a forked process can't call the host; call it from the cell itself")
        number = next(self._numbers)
        packed = {"args": self._codec.pack(list(args)), "kwargs": self._codec.pack(kwargs)}
        request = json.dumps({"id": number, "name": name, **packed})
        with self._lock:
            answer = json.loads(self._ask(MARK + request))
        if answer.get("id") != number:  # an answer to a call that was interrupted came late
            raise HostCallError(f"{name}: the answer was lost; call it again")
        if "error" in answer:
            raise HostCallError(f"{name}: {answer['error']}")
        return self._codec.unpack(answer["value"])


def _nobody_there(prompt: str = "", *args: Any, **kwargs: Any) -> str:
    """Answer `input()` and `getpass()`."""
    raise EOFError(
        "input() can't be used here: nobody sits at this kernel; take the value from the request or ask the user"
    )
