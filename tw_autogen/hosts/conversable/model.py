"""The host's own client as a `ChatModel`, so that its cache, cost, fallbacks and custom clients keep working."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tw_autogen.hosts.conversable.install import import_autogen
from tw_autogen.model import Completion, Message, Usage, run_abandonable

_THE_USERS = frozenset(
    {
        "tools", "functions", "function_call", "tool_choice", "parallel_tool_calls", "response_format",
        "stream", "stream_options", "temperature", "top_p", "stop", "n",
    }
)  # fmt: skip
"""Settings of an agent's own talk, which the host would force into every call of its client."""


class HostModel:
    """Asks through the client that a ConversableAgent has at the moment of the call.

    Args:
        agent: The agent whose `llm_config`, client and cache are used, and to which calls are charged.

    Where the client is the host's own `OpenAIWrapper`, calls go through one derived from it without the settings that
    shape the user's own talk (`tools`, `response_format`, `stream`, …), and what they cost is added to the agent's.
    """

    def __init__(self, agent: Any) -> None:
        self._agent = agent
        self._derived: tuple[Any, Any] | None = None

    def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        on_text: Callable[[str], None] | None = None,
        seconds: float | None = None,
        cancelled: threading.Event | None = None,
    ) -> Completion:
        """Answer the messages; errors of the host's client go through as they are.

        `schema` is left out, because the host's lineages disagree on how it is passed; the reader is tolerant.
        """
        copies = [dict(one) for one in messages]
        return run_abandonable(
            lambda give, abandoned: self._ask(copies, list(tools or ())),
            where=f"the client of {self._agent.name}",
            seconds=float("inf") if seconds is None else seconds,
            on_text=on_text,
            cancelled=cancelled,
        )

    def _ask(self, messages: list[dict[str, Any]], tools: list[Mapping[str, Any]]) -> Completion:
        client = self._client()
        more: dict[str, Any] = {"tools": tools} if tools else {}
        response = client.create(messages=messages, cache=self._agent.client_cache, agent=self._agent, **more)
        self._charge(client)  # also when nobody waits any more: it was spent
        text = client.extract_text_or_completion_object(response)[0]
        words = text if isinstance(text, str) else str(getattr(text, "content", None) or "")
        return Completion(words, usage=_usage(response), model=str(getattr(response, "model", "") or ""))

    def _client(self) -> Any:
        """Give the client to ask: derived anew whenever the host has replaced the agent's."""
        client = self._agent.client
        wrapper = import_autogen().OpenAIWrapper
        if type(client) is not wrapper or not _is_plain(client):
            return client
        if self._derived is None or self._derived[0] is not client:
            self._derived = (client, wrapper(**_without_the_users(self._agent.llm_config)))
        return self._derived[1]

    def _charge(self, client: Any) -> None:
        """Move what a derived client has spent to the agent's own."""
        if client is self._agent.client:
            return
        for kind in ("total_usage_summary", "actual_usage_summary"):
            setattr(self._agent.client, kind, _sum(getattr(self._agent.client, kind), getattr(client, kind)))
        client.clear_usage_summary()


def _is_plain(client: Any) -> bool:
    """Say that no custom client of the user's was registered, which a derived wrapper would lack."""
    return all("model_client_cls" not in config for config in client._config_list)


def _without_the_users(llm_config: Any) -> dict[str, Any]:
    plain = dict(llm_config.model_dump() if hasattr(llm_config, "model_dump") else llm_config)
    kept = {key: value for key, value in plain.items() if key not in _THE_USERS and value is not None}
    listed = [dict(one.model_dump() if hasattr(one, "model_dump") else one) for one in plain.get("config_list") or ()]
    if listed:
        kept["config_list"] = [
            {k: v for k, v in one.items() if k not in _THE_USERS and v is not None} for one in listed
        ]
    kept.setdefault("cache_seed", None)  # the oldest lineage takes a missing one for "cache on disk"
    return kept


def _sum(mine: Mapping[str, Any] | None, more: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Add up two usage summaries of the host: a total cost, and by model cost and tokens."""
    if not more:
        return dict(mine) if mine else None
    total: dict[str, Any] = {
        key: dict(value) if isinstance(value, dict) else value for key, value in (mine or {}).items()
    }
    for key, value in more.items():
        if isinstance(value, Mapping):
            entry = total.setdefault(key, {})
            for name, number in value.items():
                entry[name] = entry.get(name, 0) + number
        else:
            total[key] = total.get(key, 0) + value
    return total


def _usage(response: Any) -> Usage:
    usage = getattr(response, "usage", None)
    details = getattr(usage, "prompt_tokens_details", None)
    return Usage(
        getattr(usage, "prompt_tokens", 0) or 0,
        getattr(details, "cached_tokens", 0) or 0,
        getattr(usage, "completion_tokens", 0) or 0,
        1,
    )
