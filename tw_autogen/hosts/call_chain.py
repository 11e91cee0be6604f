"""The chain of agents that call one another: who is at work for whom, also in threads that their work starts."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any

from tw_autogen.closing import value_set
from tw_autogen.errors import CallCycleError

_MAX_DEPTH = 5


@dataclass(eq=False)
class Link:
    """One agent at work.

    Args:
        name: The agent's name.
        agent: The agent; None once its work has ended: threads that it has left running are no part of it.
        refused: The cycle that was refused in its work, which its tools may have swallowed.
    """

    name: str
    agent: Any
    refused: CallCycleError | None = None


_CHAIN: ContextVar[tuple[Link, ...]] = ContextVar("chain", default=())
_INSTALLING = threading.Lock()


def chain() -> tuple[Link, ...]:
    """Return the agents at work in this context, outermost first."""
    return tuple(one for one in _CHAIN.get() if one.agent is not None)


def continued(links: tuple[Link, ...]) -> AbstractContextManager[None]:
    """Continue a chain in a context that doesn't know it, such as that of another thread."""
    return value_set(_CHAIN, links)


@contextmanager
def calling(name: str, agent: Any) -> Iterator[Link]:
    """Enter an agent's work; threads that are started in it, and what it submits to thread pools, belong to it.

    Args:
        name: The agent's, for messages.
        agent: Compared by identity.

    Yields:
        The agent's link; `refused` is set once a call in its work was refused.

    Raises:
        CallCycleError: the agent is at work already, or five are, each called by the one before.
    """
    _patch_threads()
    links = chain()
    shown = " → ".join([*(one.name for one in links), name])
    if any(one.agent is agent for one in links):
        raise _note_refusal(CallCycleError(f"{shown}: an agent can't be called from its own work", name=name))
    if len(links) >= _MAX_DEPTH:
        raise _note_refusal(CallCycleError(f"{shown}: {_MAX_DEPTH} agents deep is as far as calls go", name=name))
    link = Link(name, agent)
    try:
        with continued((*links, link)):
            yield link
    finally:
        link.agent = None


@contextmanager
def asking(name: str, agent: Any, *, enters: bool) -> Iterator[Link]:
    """Enter the work of an agent that is asked a question.

    Args:
        name: The agent's name.
        agent: The agent.
        enters: Whether it enters the chain by itself, as agents of ours do.

    Yields:
        The agent's link, as `calling` does.

    Raises:
        CallCycleError: as in `calling`, or a call in its work was refused, whatever its host has made of that.
    """
    if enters:
        yield Link(name, agent)
        return
    with calling(name, agent) as link:
        try:
            yield link
        except Exception:  # what a host makes of a refused call, which is raised below
            if link.refused is None:
                raise
    if link.refused is not None:
        raise _note_refusal(link.refused)


def _note_refusal(error: CallCycleError) -> CallCycleError:
    """Note a refused cycle with the agent in whose work it was refused, and return it."""
    for one in chain()[-1:]:
        one.refused = error
    return error


def _patch_threads() -> None:
    """Make threads and thread pools inherit the chain, once in this process.

    Before Python 3.14 a thread starts with an empty context, and the worker of a pool never has the submitter's, so
    that a cycle over them could not be told from another chat. Outside of an agent's work nothing is changed.

    Source: instrumentation of threads by OpenTelemetry and Sentry, which hand on their contexts in the same places.
    """
    with _INSTALLING:
        start, submit = threading.Thread.start, concurrent.futures.ThreadPoolExecutor.submit
        if getattr(start, "hands_on_chain", False):
            return

        @wraps(start)
        def start_with_chain(self: threading.Thread) -> None:
            links, run = chain(), self.run

            def run_in_chain() -> None:
                vars(self).pop("run", None)  # the thread is not to hold itself
                with continued(links):
                    run()

            if links:
                self.run = run_in_chain  # type: ignore[method-assign]  # what this function is for; so below
            start(self)

        @wraps(submit)  # type: ignore[arg-type]  # typed for classes that have it
        def submit_with_chain(pool: Any, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
            if not (links := chain()):
                return submit(pool, function, *args, **kwargs)

            def call(*args: Any, **kwargs: Any) -> Any:
                with continued(links):
                    return function(*args, **kwargs)

            with continued(()):  # a worker that is started for it serves others too
                return submit(pool, call, *args, **kwargs)

        start_with_chain.hands_on_chain = True  # type: ignore[attr-defined]  # functions take attributes
        threading.Thread.start = start_with_chain  # type: ignore[method-assign]  # what this function is for
        concurrent.futures.ThreadPoolExecutor.submit = submit_with_chain  # type: ignore[method-assign]  # as above
