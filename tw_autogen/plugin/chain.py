"""The chain of agents that call one another: who is at work for whom, in this context."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from tw_autogen.errors import CallCycleError

MAX_DEPTH = 5


@dataclass(frozen=True)
class Link:
    """One agent at work."""

    name: str
    agent: Any


_CHAIN: ContextVar[tuple[Link, ...]] = ContextVar("chain", default=())


def chain() -> tuple[Link, ...]:
    """Give who is at work in this context, outermost first."""
    return _CHAIN.get()


@contextmanager
def continued(links: tuple[Link, ...]) -> Iterator[None]:
    """Continue a chain in a context that doesn't know it, such as that of another thread."""
    token = _CHAIN.set(links)
    try:
        yield
    finally:
        _CHAIN.reset(token)


@contextmanager
def calling(name: str, agent: Any, *, max_depth: int = MAX_DEPTH) -> Iterator[None]:
    """While this is entered, the agent is at work.

    Raises:
        CallCycleError: it is at work already, or so many are that one more is too deep.
    """
    links = _CHAIN.get()
    shown = " → ".join([*(one.name for one in links), name])
    if any(one.agent is agent for one in links):
        raise CallCycleError(f"{shown}: an agent can't be called from its own work", name=name)
    if len(links) >= max_depth:
        raise CallCycleError(f"{shown}: {max_depth} agents deep is as far as calls go", name=name)
    token = _CHAIN.set((*links, Link(name, agent)))
    try:
        yield
    finally:
        _CHAIN.reset(token)
