"""Functions that are written for the host's groups: they take its context variables and may return who speaks next."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Awaitable
from contextvars import ContextVar
from typing import Any

from tw_autogen.errors import ConfigError
from tw_autogen.hosts.call_chain import chain
from tw_autogen.hosts.conversable.json_variables import CallVariables

try:
    from autogen.agentchat.group import ReplyResult
    from autogen.agentchat.group.targets.transition_target import TransitionTarget
    from autogen.fast_depends.dependencies.model import Depends
    from autogen.tools.dependency_injection import BaseContext, inject_params
except ImportError:  # a lineage without groups of this kind
    ReplyResult = TransitionTarget = None

_CONTEXT = "context_variables"  # by this name the host knows the parameter
_NOBODY = f"{_CONTEXT} are those of an agent that answers a message, and none does now"

VARIABLES: ContextVar[Any] = ContextVar("variables", default=None)
"""The context variables of the client of a service whose request is being answered; None: those of the agent."""

TARGETS: ContextVar[list[Any] | None] = ContextVar("targets", default=None)
"""Who is to speak after the reply that is being made, as functions have returned it; the last one counts."""


def with_context(wanted: Any) -> Any:
    """Return what is wanted as a plugin; a function as the host's groups call it.

    Args:
        wanted: One thing of `plugins=`. What is no Python function comes back as it is; with a host that has no such
            groups, everything does.

    Returns:
        A function without the parameter `context_variables`, for which the agent at work passes its own. Of a
        `ReplyResult` the caller gets the message; its variables are the agent's, and its target speaks next in a group.
        What comes into the variables is made JSON, see `CallVariables`. Parameters with the host's `Depends` are
        injected by the host, and no call can give them.

    Raises:
        ConfigError: a parameter is a context that only the host's own executor gives.

    Source:
        `GroupToolExecutor` of AG2: `_modify_context_variables_param` and `_generate_group_tool_reply`.
    """
    function = wanted.func if isinstance(wanted, functools.partial) else wanted
    if ReplyResult is None or not inspect.isroutine(function):
        return wanted
    try:
        signature = inspect.signature(wanted)
    except (TypeError, ValueError):  # a builtin; whoever makes a plugin of it says so
        return wanted
    wanted, signature = _with_injected(wanted, function, signature)
    names = list(signature.parameters)
    place = names.index(_CONTEXT) if _CONTEXT in names else None

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if _CONTEXT in kwargs:
            raise TypeError(f"{_CONTEXT} are given by the agent")
        own = _call_variables(needed=place is not None)
        if place is not None and own is not None:
            if len(args) > place:
                args = (*args[:place], own.variables, *args[place:])
            else:
                kwargs[_CONTEXT] = own.variables
        later = False
        try:
            result = wanted(*args, **kwargs)
            later = inspect.isawaitable(result)
            return _await_result(result, own) if later else _unwrap_result(result, own)
        finally:
            if own is not None and not later:
                own.give_back()

    parameters = [parameter for parameter in signature.parameters.values() if parameter.name != _CONTEXT]
    returns = str if _is_reply_result(signature.return_annotation) else signature.return_annotation
    call.__signature__ = signature.replace(  # type: ignore[attr-defined]  # functions take attributes
        parameters=parameters, return_annotation=returns
    )
    return call


def hand_on(group: Any, targets: list[Any]) -> None:
    """Choose the last target as the next speaker of a group, as the host does after a tool that returned it.

    Args:
        group: The host's group chat; None: there is none, and targets mean nothing.
        targets: Those that functions have returned during the reply.
    """
    executor = next((one for one in getattr(group, "agents", ()) if hasattr(one, "set_next_target")), None)
    if executor is not None and targets:
        executor.set_next_target(targets[-1])


def _with_injected(wanted: Any, function: Any, signature: inspect.Signature) -> tuple[Any, inspect.Signature]:
    """Return a function that the host gives what it injects, and its signature without these parameters.

    Raises:
        ConfigError: as of `with_context`.
    """
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception:  # noqa: BLE001 - names that are not there, in the words of whoever looks them up
        hints = {}
    injected, called = set(), getattr(function, "__name__", "a function")
    for name, parameter in signature.parameters.items():
        metadata = getattr(hints.get(name, parameter.annotation), "__metadata__", ())
        if isinstance(parameter.default, Depends) or any(isinstance(part, Depends) for part in metadata):
            injected.add(name)
        elif isinstance(kind := hints.get(name), type) and issubclass(kind, BaseContext):
            raise ConfigError(
                f"{called}: {name}: a {kind.__name__} is given by the host's own executor only; leave it out"
            )
    if not injected:
        return wanted, signature
    try:
        inner = inject_params(wanted)
    except Exception as error:  # such as of a partial function; without it, code would be asked for them
        raise ConfigError(f"{called}: its `Depends` can't be injected ({error}); give the function itself") from error

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if given := injected & kwargs.keys():
            raise TypeError(f"{', '.join(sorted(given))}: injected, so no call gives it")
        return inner(*args, **kwargs)

    parameters = [parameter for name, parameter in signature.parameters.items() if name not in injected]
    return call, signature.replace(parameters=parameters)


def _call_variables(*, needed: bool) -> CallVariables | None:
    """Return the context variables that a function takes and changes now.

    Args:
        needed: It takes them; else None is returned where no agent is at work, as where `session.run_code` runs code.

    Raises:
        LookupError: they are needed, and there are none.
    """
    own, links = VARIABLES.get(), chain()
    if own is None and not links:
        if needed:
            raise LookupError(_NOBODY)
        return None
    return CallVariables(links[-1].agent.context_variables if own is None else own)


def _is_reply_result(annotation: Any) -> bool:
    return annotation is ReplyResult or isinstance(annotation, str) and annotation.split(".")[-1] == "ReplyResult"


async def _await_result(result: Awaitable[Any], own: CallVariables | None) -> Any:
    try:
        return _unwrap_result(await result, own)
    finally:
        if own is not None:
            own.give_back()


def _unwrap_result(result: Any, own: CallVariables | None) -> Any:
    """Return what code gets of a function's result, and note the rest where the host would."""
    target = None
    if isinstance(result, ReplyResult):
        if result.context_variables is not None:
            if own is None:
                raise LookupError(_NOBODY)
            own.variables.update(result.context_variables.to_dict())
        target, result = result.target, result.message
    elif isinstance(result, TransitionTarget):
        target, result = result, str(result)
    if target is not None and (targets := TARGETS.get()) is not None:
        targets.append(target)
    return result
