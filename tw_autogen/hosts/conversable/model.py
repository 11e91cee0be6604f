"""The host's own client as a `ChatModel`, so that its cache, cost, fallbacks and custom clients keep working."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping
from typing import Any

from tw_autogen.errors import ModelError
from tw_autogen.hosts.conversable.autogen_import import import_autogen
from tw_autogen.hosts.conversable.llm_config import config_of_roles
from tw_autogen.model import (
    BaseChatModel,
    Completion,
    ModelRequest,
    ModelSettings,
    ToolCall,
    Usage,
    run_abandonable,
)
from tw_autogen.picture_files import UNSEEN, is_embedded_image, safe_image_url

_FETCHING = ("google", "bedrock")
"""Types of clients that fetch addresses of images here: `autogen.oai.gemini`, `autogen.oai.bedrock`."""
_CHARGING = threading.Lock()
"""Held while what a call cost is added to an agent's sums: several chats of one agent may end a call at once."""


class HostModel(BaseChatModel):
    """Asks through the client that a ConversableAgent has at the moment of the call.

    Args:
        agent: The agent whose `llm_config`, client and cache are used, and to which calls are charged.
        speaker: Gives the agent under whose name the host logs a call; None: `agent`.
        llm_config: Used instead of the agent's own, as for a role with a model of its own; charged to the agent too.
        seconds: How long a call may take where the caller does not say.

    Where the client is the host's own `OpenAIWrapper`, calls go through one derived from it without the settings that
    shape the user's own conversation (`tools`, `response_format`, `stream`, …; `temperature` and its like stay), and
    what they cost is added to the agent's. A client that a test has put in its place is asked itself.
    """

    def __init__(
        self,
        agent: Any,
        *,
        speaker: Callable[[], Any] | None = None,
        llm_config: Any = None,
        seconds: float = ModelSettings.seconds,
    ) -> None:
        self._seconds = seconds
        self._agent = agent
        self._speaker = speaker or (lambda: agent)
        self._llm_config = llm_config
        self._derived: tuple[Any, Any] | None = None

    def answer(self, request: ModelRequest) -> Completion:
        """Answer a request; errors of the host's client go through as they are.

        `schema` is left out, because the host's lineages disagree on how it is passed; the reader is tolerant.

        Args:
            request: What to ask, in which form, and until when.

        Raises:
            ModelError: out of time, cancelled, or a safeguard of the agent's blocked the call.
        """
        copies = [dict(message) for message in request.messages]
        return run_abandonable(
            lambda give, abandoned: self._ask(copies, list(request.tools or ())),
            where=f"the client of {self._agent.name}",
            seconds=request.limit(self._seconds),
            on_text=request.on_text,
            cancelled=request.cancelled,
        )

    def _ask(self, messages: list[dict[str, Any]], tools: list[Mapping[str, Any]]) -> Completion:
        guarded = self._apply_safeguard("_process_llm_input", messages)
        client = self._current_client()
        fetches = any(one.get("api_type") in _FETCHING for one in getattr(client, "_config_list", ()))
        guarded = [_with_seen_images(one, addresses=not fetches) for one in guarded]
        more: dict[str, Any] = {"tools": tools} if tools else {}
        response = client.create(messages=guarded, cache=self._agent.client_cache, agent=self._speaker(), **more)
        self._move_usage_to_agent(client)  # also when nobody waits any more: it was spent
        found = next(iter(client.extract_text_or_completion_object(response)), None)
        text = self._apply_safeguard(
            "_process_llm_output", found or ""
        )  # no words are no message that a safeguard took away
        content = text if isinstance(text, str) else str(_field(text, "content") or "")
        choice = next(iter(_field(response, "choices") or ()), None)
        end = str(_field(choice, "finish_reason") or "stop")
        return Completion(content, _tool_calls(text), _usage(response), end, str(_field(response, "model") or ""))

    def _apply_safeguard(self, hook: str, value: Any) -> Any:
        """Apply the agent's safeguards, where the host has them, to what goes out or comes in."""
        guard = getattr(self._agent, hook, None)
        seen = value if guard is None else guard(value)
        if seen is None:
            raise ModelError(f"a safeguard of {self._agent.name} blocked a call of its model")
        return seen

    def _current_client(self) -> Any:
        """Return the client to ask: derived anew whenever the host has replaced the agent's."""
        client, wrapper = self._agent.client, import_autogen().OpenAIWrapper
        if type(client) is not wrapper:
            return client
        if self._derived is None or self._derived[0] is not client:
            self._derived = (client, wrapper(**config_of_roles(self._llm_config or self._agent.llm_config)))
        derived = self._derived[1]
        if not self._llm_config:  # clients of the user's own making are registered with the agent's wrapper only
            for index, config in enumerate(client._config_list):
                if "model_client_cls" in config:
                    derived._clients[index] = client._clients[index]
        return derived

    def _move_usage_to_agent(self, client: Any) -> None:
        """Move what a derived client has spent to the agent's own."""
        mine = self._agent.client
        if client is mine:
            return
        with _CHARGING:
            for kind in ("total_usage_summary", "actual_usage_summary"):
                setattr(
                    mine, kind, _add_summaries(getattr(mine, kind, None) or {}, getattr(client, kind) or {}) or None
                )
            client.clear_usage_summary()


def _with_seen_images(message: Mapping[str, Any], *, addresses: bool) -> dict[str, Any]:
    """Return a message whose images are no paths to any client: the host's for Gemini opens what it can't read.

    Args:
        message: Any.
        addresses: Images may be addresses; for a client that would fetch them itself, from this machine, they may not.
    """
    content = message.get("content")
    if not isinstance(content, list):
        return dict(message)
    return {**message, "content": [_seen_image(part, addresses) for part in content]}


def _seen_image(part: Any, addresses: bool) -> Any:
    if not isinstance(part, Mapping) or part.get("type") != "image_url":
        return part
    url = safe_image_url(str(_field(part["image_url"], "url") or ""))
    shown = is_embedded_image(url) or (url and addresses)
    return {**part, "image_url": {**part["image_url"], "url": url}} if shown else {"type": "text", "text": UNSEEN}


def _add_summaries(mine: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Add up two usage summaries of the host: a total cost, and by model cost and tokens."""
    total: dict[str, Any] = copy.deepcopy(dict(mine))
    for key, value in more.items():
        if isinstance(value, Mapping):
            entry = total.setdefault(key, {})
            for name, number in value.items():
                entry[name] = entry.get(name, 0) + number
        else:
            total[key] = total.get(key, 0) + value
    return total


def _field(thing: Any, name: str) -> Any:
    """Read a field of what a lineage gives as an object, and another one as a dictionary."""
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def _tool_calls(message: Any) -> tuple[ToolCall, ...]:
    calls = None if isinstance(message, str) else _field(message, "tool_calls")
    return tuple(
        ToolCall(str(_field(call, "id") or ""), str(_field(what, "name")), str(_field(what, "arguments") or "{}"))
        for call in calls or ()
        for what in [_field(call, "function")]
    )


def _usage(response: Any) -> Usage:
    usage = _field(response, "usage")
    details = _field(usage, "prompt_tokens_details")
    return Usage(
        _field(usage, "prompt_tokens") or 0,
        _field(details, "cached_tokens") or 0,
        _field(usage, "completion_tokens") or 0,
        1,
        _field(response, "cost") or None,  # the host's 0 means that it knows no price
    )
