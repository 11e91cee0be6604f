"""Functions that run on the host: code in the kernel calls them over the kernel's own stdin channel."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from json import dumps, loads  # held here: code may overwrite them in the module
from typing import Any

from .codec import Codec
from .json_size import check_call_size
from .remote_files import RemoteFolder

MARK = "\0tw-call\0"
"""A prompt that begins with this is a call; no person's prompt does."""


class HostCallError(RuntimeError):
    """A function on the host failed: `name: TypeOfTheHostsError: message`.

    Of the host calls' own: `TimeoutError`, no answer in time; `HostCallBudgetError`, too many calls for one request;
    `CallCycleError`, an agent called from its own work; `InterruptedError`, the cell was stopped or is over;
    `LookupError`, no such function or ticket.
    """


class HostCalls:
    """Makes the functions in the user's namespace that stand for served ones.

    Args:
        ask: Carries a request to the host; gives its answer, see `claim_input_channel`.
        codec: Packs arguments and unpacks results.
        folder: The kernel's, where the host sees another one.
    """

    def __init__(self, ask: Callable[[str], str], codec: Codec, folder: RemoteFolder | None = None) -> None:
        self._ask = ask
        self._codec = codec
        self._folder = folder
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._process = os.getpid()

    def function(self, name: str, doc: str) -> Callable[..., Any]:
        """Return a function that calls the host's function of that name.

        Args:
            name: The function's name.
            doc: Its docstring.
        """

        def call(*args: Any, **kwargs: Any) -> Any:
            return self.call(name, args, kwargs)

        def submit(*args: Any, **kwargs: Any) -> Ticket:
            return Ticket(self, name, self.call(name, args, kwargs, op="submit"))

        call.__name__ = call.__qualname__ = name
        call.__doc__ = doc
        call.submit = submit  # type: ignore[attr-defined]  # functions take attributes
        return call

    def call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], *, op: str = "call") -> Any:
        """Call the host; threads wait for each other.

        Args:
            name: The function's name.
            args: Positional arguments.
            kwargs: Keyword arguments.
            op: What the host does: `call` or `submit`.

        Raises:
            TypeError: an argument is of a type that doesn't cross.
            HostCallError: the function failed, or there is none of that name.
        """
        packed = {"args": self._codec.pack(list(args)), "kwargs": self._codec.pack(kwargs)}
        if self._folder is not None:
            self._folder.give_new()
        value = self.ask(name, op=op, **packed)
        if self._folder is not None and op == "call":
            self._folder.take_new()
        return value

    def result(self, name: str, ticket: Any) -> Any:
        """Wait for a submitted call, and give what comes back.

        Args:
            name: The function's name.
            ticket: What submitting it returned.

        Raises:
            HostCallError: it failed.
        """
        value = self.ask(name, op="result", ticket=ticket)
        if self._folder is not None:
            self._folder.take_new()
        return value

    def ask(self, name: str, **fields: Any) -> Any:
        """Send one request about a function, and give what comes back.

        Raises:
            HostCallError: it failed.
        """
        if os.getpid() != self._process:
            raise HostCallError(f"{name}: a forked process can't call the host; call it from the cell itself")
        number = next(self._numbers)
        beside = threading.current_thread() is not threading.main_thread()  # it may still wait when the cell is over
        request = dumps({"id": number, "name": name, "beside": beside, **fields})
        try:
            check_call_size(request)
        except ValueError as error:
            raise HostCallError(f"{name}: {error}") from None
        with self._lock:
            answer = loads(self._ask(MARK + request))
        if answer.get("id") != number:  # an answer to a call that was interrupted came late
            raise HostCallError(f"{name}: the answer was lost; call it again")
        if "error" in answer:
            raise HostCallError(f"{name}: {answer['error']}")
        if "file" in answer:  # too long for one message
            answer = loads(self._codec.find(answer["file"]))
        return self._codec.unpack(answer["value"])


class Ticket:
    """A call that runs on the host while the cell goes on; it ends with the cell.

    Args:
        calls: Asks the host.
        name: The function.
        number: The host's number of the call.
    """

    def __init__(self, calls: HostCalls, name: str, number: int) -> None:
        self._calls = calls
        self._name = name
        self._number = number
        self._value: tuple[Any] | None = None

    def result(self) -> Any:
        """Wait for the call's end, and give its result; a second time the same.

        Raises:
            HostCallError: the function failed, or the cell that submitted the call is over.
        """
        if self._value is None:
            self._value = (self._calls.result(self._name, self._number),)
        return self._value[0]

    def done(self) -> bool:
        """Return whether the result is there, without waiting."""
        return self._value is not None or bool(self._calls.ask(self._name, op="done", ticket=self._number))

    def __repr__(self) -> str:
        return f"<{self._name}: call {self._number} on the host>"


def claim_input_channel(kernel: Any) -> Callable[[str], str]:
    """Return what carries text to the host and its answer back, of ipykernel's kernel; it asks no person any more."""
    ask: Callable[[str], str] = kernel.raw_input
    kernel.raw_input = kernel.getpass = _refuse_input
    return ask


def _refuse_input(prompt: str = "", *args: Any, **kwargs: Any) -> str:
    """Answer `input()` and `getpass()`."""
    raise EOFError(
        "input() can't be used here: nobody sits at this kernel; take the value from the request or ask the user"
    )
