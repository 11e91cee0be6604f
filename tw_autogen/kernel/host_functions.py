"""The host's side of host calls: functions by name, called with what the kernel sent as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tw_autogen.kernel.guest.codec import Codec


class HostFunctions:
    """The functions that code in a kernel may call; no others can be reached."""

    def __init__(self) -> None:
        self._functions: dict[str, Callable[..., Any]] = {}
        self._seconds: dict[str, float] = {}
        self._unnamed: set[str] = set()

    def add(self, name: str, function: Callable[..., Any], seconds: float | None = None) -> None:
        """Serve a function under a name, each call for so long at most; a second one of that name takes its place."""
        self._functions[name] = function
        self._seconds[name] = float("inf") if seconds is None else seconds

    def add_unnamed(self, name: str, function: Callable[..., Any]) -> None:
        """Serve a function to our end of the bridge only; code in the kernel has no name for it."""
        self.add(name, function)
        self._unnamed.add(name)

    def docs(self) -> dict[str, str]:
        """Return each name, and the docstring that code in the kernel sees."""
        named = {name: one for name, one in self._functions.items() if name not in self._unnamed}
        return {name: getattr(function, "__doc__", None) or "" for name, function in named.items()}

    def seconds(self, name: str) -> float:
        """Return how long a call of this function may take."""
        return self._seconds.get(name, float("inf"))

    def answer(self, request: str, codec: Codec) -> str:
        """Call what a request names; give the answer, or what went wrong, as JSON.

        Args:
            request: JSON of `id`, `name`, `args`, `kwargs`.
            codec: Unpacks the arguments and packs the result.
        """
        number, name = None, ""
        try:
            asked = json.loads(request)
            number, name = asked["id"], str(asked["name"])
            if name not in self._functions:
                raise LookupError(f"the host serves no function {name!r}")
            args, kwargs = codec.unpack(asked["args"]), codec.unpack(asked["kwargs"])
            value = codec.pack(self._functions[name](*args, **kwargs))
            return json.dumps({"id": number, "value": value})
        except BaseException as error:  # noqa: BLE001 - foreign code, and a request that may be anything: the cell is told
            return failure(number, error)


def failure(number: Any, error: BaseException) -> str:
    """Return the answer to a request that failed."""
    return json.dumps({"id": number, "error": f"{type(error).__name__}: {error}"})
