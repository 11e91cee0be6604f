"""Servers of the host around our agents, with sessions found by the ids of their protocols."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import functools
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from typing import Any

from tw_autogen.closing import Closing
from tw_autogen.errors import HostError
from tw_autogen.hosts.conversable.group_functions import VARIABLES

_INSTALL = 'pip install "tw-autogen[service]"'
_MAX_CLIENTS = 1000
"""So many clients' context variables are kept, of those that asked last."""
_MAX_DEPTH = 30


class _Served(Closing):
    """An agent as one request of a service sees it: the same, with the conversation's key in each call.

    Args:
        agent: It.
        key: The conversation's.
        variables: The context variables of its client, in place of the agent's.
    """

    def __init__(self, agent: Any, key: Hashable, variables: Any) -> None:
        self._agent = agent
        self._key = key
        self.context_variables = variables
        self._reply: asyncio.Future[Any] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._agent, name)

    async def a_generate_oai_reply(self, *args: Any, **kwargs: Any) -> Any:
        token = VARIABLES.set(self.context_variables)
        try:
            self._reply = asyncio.ensure_future(
                self._agent.a_generate_oai_reply(*args, conversation=self._key, **kwargs)
            )
            return await self._reply
        finally:
            VARIABLES.reset(token)

    def close(self) -> None:
        """Stop the reply if it is still being made: the host leaves it running when its client has gone."""
        if self._reply is not None:
            self._reply.cancel()


def _copied(value: Any, depth: int = 0) -> Any:
    """Return a copy for one client; an object that can't be copied, such as a connection, is shared by all."""
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001 - any class may refuse in its own way
        if depth > _MAX_DEPTH or type(value) not in (dict, list, tuple, set, frozenset):
            return value
    if type(value) is dict:
        return {key: _copied(one, depth + 1) for key, one in value.items()}
    return type(value)(_copied(one, depth + 1) for one in value)


def _by_client(agent: Any) -> Callable[[Hashable], _Served]:
    """Return what makes of a key the agent as its client sees it, at first with the variables that it has now."""
    own = getattr(agent, "context_variables", None)
    first = {} if own is None else {name: _copied(value) for name, value in own.to_dict().items()}

    @functools.lru_cache(maxsize=_MAX_CLIENTS)
    def variables(key: Hashable) -> Any:
        return own if own is None else type(own)(data={name: _copied(value) for name, value in first.items()})

    return lambda key: _Served(agent, key, variables(key))


def _import(name: str) -> Any:
    """Import what the extra `service` brings, or what is made of it.

    Raises:
        HostError: it is not there.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        first = str(error).partition("\n")[0]
        raise HostError(f"a service needs packages that are missing ({first})", command=_INSTALL) from None


def a2a_server(agent: Any, **how: Any) -> Any:
    """Return the host's `A2aAgentServer` for an agent of ours; requests of one context id share a kernel.

    Args:
        agent: A `TaskWeaverAgent` or a member.
        **how: As for `A2aAgentServer`.

    Raises:
        ConfigError: code of one client could read another's session.
        HostError: packages are missing.

    The key is the context id together with the name of the user that the server has authenticated. The host's own
    server works too, but hands no id over: there each request has a fresh kernel and knows what was said. Clients that
    are not authenticated get no list of tasks but of a context that they name: context ids are keys to kernels.
    """
    agent.check_clients_apart()
    served = _by_client(agent)
    host, executor = _import("autogen.a2a"), _import("autogen.a2a.agent_executor")
    _import("sse_starlette")  # or the host asks for it where the server is built, by a name of its own

    class Executor(executor.AutogenAgentExecutor):  # type: ignore[misc, name-defined]  # the host is untyped here
        async def execute(self, context: Any, event_queue: Any) -> None:
            call = context.call_context
            key = ("a2a", call.user.user_name if call is not None else "", context.context_id)
            with served(key) as agent:
                await executor.AutogenAgentExecutor(agent).execute(context, event_queue)

    class Server(host.A2aAgentServer):  # type: ignore[misc, name-defined]  # as above
        @property
        def executor(self) -> Any:
            return Executor(self.agent)

        def build_request_handler(self, **how: Any) -> Any:
            handler = super().build_request_handler(**how)
            if hasattr(handler, "on_list_tasks"):  # from a2a-sdk 1.0 on
                handler.on_list_tasks = _own_tasks(handler.on_list_tasks)
            return handler

    return Server(agent, **how)


def _own_tasks(list_tasks: Callable[[Any, Any], Awaitable[Any]]) -> Callable[[Any, Any], Awaitable[Any]]:
    """Return a call that lists tasks; to clients that are not authenticated only those of a context that they name."""
    errors = importlib.import_module("a2a.utils.errors")

    async def listed(params: Any, context: Any) -> Any:
        if not params.context_id and not context.user.is_authenticated:
            raise errors.InvalidParamsError("name the context whose tasks you want: clients are not told apart here")
        return await list_tasks(params, context)

    return listed


def ag_ui_stream(agent: Any, **how: Any) -> Any:
    """Return the host's `AGUIStream` for an agent of ours; runs of one thread id share a kernel.

    Args:
        agent: A `TaskWeaverAgent` or a member.
        **how: As for `AGUIStream`.

    Raises:
        ConfigError: code of one client could read another's session.
        HostError: packages are missing.

    Whoever serves it decides who may use a thread id, as with anything that is kept by one.
    """
    agent.check_clients_apart()
    served = _by_client(agent)
    host = _import("autogen.ag_ui")

    class Stream(host.AGUIStream):  # type: ignore[misc, name-defined]  # as above
        async def dispatch(self, incoming: Any, **more: Any) -> AsyncIterator[str]:
            with served(("ag_ui", incoming.thread_id)) as agent:
                async with contextlib.aclosing(host.AGUIStream(agent, **how).dispatch(incoming, **more)) as events:
                    async for event in events:
                        yield event

    return Stream(agent, **how)
