"""Servers of the host around our agents, with sessions found by the ids of their protocols."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import functools
import importlib
import json
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from typing import TYPE_CHECKING, Any

import tw_autogen
from tw_autogen.closing import Closing
from tw_autogen.errors import ConfigError, HostError
from tw_autogen.hosts.conversable.group_functions import VARIABLES
from tw_autogen.hosts.conversable.running_reply import FAILURES, QUESTIONS
from tw_autogen.hosts.partner_conversation import BROUGHT
from tw_autogen.lazy_module import LazyModule

if TYPE_CHECKING:
    from tw_autogen.hosts.conversable import http_service
else:
    http_service = LazyModule("tw_autogen.hosts.conversable.http_service")

_INSTALL = 'pip install "tw-autogen[service]"'
_MAX_CLIENTS = 1000
"""So many clients' context variables are kept, of those that asked last."""
_MAX_DEPTH = 30
_CLEAN_SECONDS = 600.0
"""How often old sessions are looked for at most."""


class _NotAnswered(Exception):
    """A request has no answer; its words are for the client."""

    def __repr__(self) -> str:  # what the host shows of an error
        return str(self)


class _RequestFailed(_NotAnswered):
    """A request has failed."""


class _InputRequired(_NotAnswered):
    """The session asks its user back."""


class _Served(Closing):
    """An agent as one request of a service sees it: the same, with the conversation's key in each call.

    Args:
        agent: It.
        key: The conversation's.
        variables: The context variables of its client, in place of the agent's.
        slots: One is held while a request is under way; others wait.
        brought: What the client sends along with the words of its request, for the prompt.
        questions_apart: An answer that asks the user back is raised, for a protocol that has a state of its own for it.
    """

    def __init__(
        self,
        agent: Any,
        key: Hashable,
        variables: Any,
        slots: asyncio.Semaphore,
        *,
        brought: str = "",
        questions_apart: bool = False,
    ) -> None:
        self._agent = agent
        self._key = key
        self._slots, self._brought, self._questions_apart = slots, brought, questions_apart
        self.context_variables = variables
        self._reply: asyncio.Future[Any] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._agent, name)

    async def a_generate_oai_reply(self, *args: Any, **kwargs: Any) -> Any:
        self._reply = asyncio.ensure_future(self._answer_in_turn(*args, **kwargs))
        return await self._reply

    async def _answer_in_turn(self, *args: Any, **kwargs: Any) -> Any:
        """Answer when it is this request's turn; in a task of its own, whose context ends with it."""
        failures, questions = list[str](), list[str]()
        VARIABLES.set(self.context_variables)
        BROUGHT.set(self._brought)
        FAILURES.set(failures)
        QUESTIONS.set(questions)
        async with self._slots:
            answered = await self._agent.a_generate_oai_reply(*args, conversation=self._key, **kwargs)
        if failures:
            raise _RequestFailed(failures[-1])
        if self._questions_apart and answered[1] in questions:  # agents that it has asked may have questions too
            raise _InputRequired(answered[1])
        return answered

    def close(self) -> None:
        """Stop the reply if it is still being made: the host leaves it running when its client has gone."""
        if self._reply is not None:
            self._reply.cancel()


def _copy_for_client(value: Any, depth: int = 0) -> Any:
    """Return a copy for one client; an object that can't be copied, such as a connection, is shared by all."""
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001 - any class may refuse in its own way
        if depth > _MAX_DEPTH or type(value) not in (dict, list, tuple, set, frozenset):
            return value
    if type(value) is dict:
        return {key: _copy_for_client(one, depth + 1) for key, one in value.items()}
    return type(value)(_copy_for_client(one, depth + 1) for one in value)


def _by_client(agent: Any) -> Callable[..., _Served]:
    """Return what makes of a key the agent as its client sees it, at first with the variables that it has now.

    At most as many requests are under way as sessions may be open (`session.most_open`).
    """
    slots = asyncio.Semaphore(agent.most_open)
    agent.remove_old_sessions()
    cleaned = time.monotonic()
    own = getattr(agent, "context_variables", None)
    first = {} if own is None else {name: _copy_for_client(value) for name, value in own.to_dict().items()}

    @functools.lru_cache(maxsize=_MAX_CLIENTS)
    def variables(key: Hashable) -> Any:
        return own if own is None else type(own)(data={name: _copy_for_client(value) for name, value in first.items()})

    def served(key: Hashable, **how: Any) -> _Served:
        nonlocal cleaned
        if time.monotonic() > cleaned + _CLEAN_SECONDS:
            cleaned = time.monotonic()
            threading.Thread(target=agent.remove_old_sessions, name="old sessions", daemon=True).start()
        return _Served(agent, key, variables(key), slots, **how)

    return served


def _import(name: str) -> Any:
    """Import what the extra `service` brings.

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

    The card names one skill, and text and JSON as input, unless `agent_card` says otherwise. A task whose answer asks
    the user back waits for input.
    """
    agent.check_clients_apart()
    served = _by_client(agent)
    host, executor = _import("autogen.a2a"), _import("autogen.a2a.agent_executor")
    errors = _import("a2a.utils.errors")
    _import("sse_starlette")

    class Executor(executor.AutogenAgentExecutor):  # type: ignore[misc, name-defined]  # the host is untyped here
        async def execute(self, context: Any, event_queue: Any) -> None:
            call = context.call_context
            key = ("a2a", call.user.user_name if call is not None else "", context.context_id)
            _make_text_of(context.message, errors)
            with served(key, questions_apart=not _is_of_agents_chat(context.message)) as agent:
                try:
                    await executor.AutogenAgentExecutor(agent).execute(context, event_queue)
                except errors.InternalError as error:
                    cause = error.__cause__
                    if isinstance(cause, ConfigError):
                        raise errors.InvalidParamsError(str(cause)) from None
                    if not isinstance(cause, _NotAnswered):
                        raise
                    updater = executor.TaskUpdater(event_queue, context.task_id, context.context_id)
                    end = updater.requires_input if isinstance(cause, _InputRequired) else updater.failed
                    part = type(context.message.parts[0])(text=str(cause))
                    await end(updater.new_agent_message([part]))

    class Server(host.A2aAgentServer):  # type: ignore[misc, name-defined]  # as above
        @property
        def executor(self) -> Any:
            return Executor(self.agent)

        def build_request_handler(self, **how: Any) -> Any:
            handler = super().build_request_handler(**how)
            if hasattr(handler, "on_list_tasks"):  # from a2a-sdk 1.0 on
                handler.on_list_tasks = _own_tasks(handler.on_list_tasks)
            return handler

        def build_starlette_app(self, **how: Any) -> Any:
            app = super().build_starlette_app(**how)
            app.add_middleware(http_service.HttpFront)
            return app

        build = build_starlette_app

    cards = {name: _true_card(agent, how.get(name)) for name in ("agent_card", "extended_agent_card")}
    if how.get("extended_agent_card") is None:
        del cards["extended_agent_card"]
    return Server(agent, **{**how, **cards})


def _true_card(agent: Any, given: Any) -> Any:
    """Return the card of an agent, with what it takes and does where the user's card says nothing of it."""
    types = _import("autogen.a2a.server")
    skill = types.AgentSkill(id="ask", name=agent.name, description=agent.description, tags=["data analysis", "python"])
    true = {
        "version": tw_autogen.__version__,
        "default_input_modes": ["text/plain", "application/json"],
        "default_output_modes": ["text/plain"],
        "skills": [skill],
    }
    card = types.CardSettings() if given is None else given
    said = card.model_fields_set
    return card.model_copy(update={name: value for name, value in true.items() if name not in said})


def _make_text_of(message: Any, errors: Any) -> None:
    """Make text of the data in a message, as JSON; the host would make a message without words of them.

    Raises:
        ContentTypeNotSupportedError: a part is a file.
    """
    as_json = importlib.import_module("google.protobuf.json_format")
    for part in message.parts:
        kind = part.WhichOneof("content")
        if kind == "data":
            part.text = json.dumps(as_json.MessageToDict(part.data), ensure_ascii=False)
        elif kind != "text":
            raise errors.ContentTypeNotSupportedError("only text and data are taken, no files")
    if not any(part.text.strip() for part in message.parts):
        raise errors.InvalidParamsError("the message has no words")


def _is_of_agents_chat(message: Any) -> bool:
    """Return whether the host's own client has sent a message: it names each part's role.

    For input it asks a person at its terminal, and doesn't show the question; agents of its chat may know the answer.
    """
    return any("role" in part.metadata for part in message.parts)


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

    Whoever serves it decides who may use a thread id, as with anything that is kept by one. `build_asgi()` returns an
    ASGI application: for a server as it is, or to be mounted.
    """
    agent.check_clients_apart()
    served = _by_client(agent)
    host = _import("autogen.ag_ui")

    class Stream(host.AGUIStream):  # type: ignore[misc, name-defined]  # as above
        def build_asgi(self) -> Any:
            _import("sse_starlette")
            return http_service.ag_ui_endpoint(self, host.RunAgentInput)

        async def dispatch(self, incoming: Any, **more: Any) -> AsyncGenerator[str, None]:
            brought = _brought(incoming)
            if not isinstance(incoming.state, dict):  # which the host would take for one
                incoming = incoming.model_copy(update={"state": {}})
            with served(("ag_ui", incoming.thread_id), brought=brought) as agent:
                async with contextlib.aclosing(host.AGUIStream(agent, **how).dispatch(incoming, **more)) as events:
                    try:
                        async for event in events:
                            yield event
                    except Exception as error:
                        if not _is_for_client(error):  # else RUN_ERROR has said it
                            raise

    return Stream(agent, **how)


def _brought(incoming: Any) -> str:
    """Return what an AG-UI client sends along with its messages, as text for the prompt; empty if that is nothing."""
    context = "\n".join(f"{one.description}: {one.value}" for one in incoming.context)
    state = json.dumps(incoming.state, ensure_ascii=False, default=str) if incoming.state else ""
    parts = {"Context of the application": context, "State of the application, as JSON": state}
    return "\n\n".join(f"({name}:\n{text})" for name, text in parts.items() if text)


def _is_for_client(error: BaseException) -> bool:
    """Return whether an error, or each of a group, is told to the client alone."""
    parts = getattr(error, "exceptions", ())
    return all(map(_is_for_client, parts)) if parts else isinstance(error, (_RequestFailed, ConfigError))
