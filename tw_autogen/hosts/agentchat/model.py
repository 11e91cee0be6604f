"""`ClientModel`: the host's asynchronous model client as a `ChatModel`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autogen_core import CancellationToken, Image
from autogen_core.models import AssistantMessage, ChatCompletionClient, LLMMessage, SystemMessage, UserMessage

from tw_autogen.hosts.agentchat.loops import wait_for
from tw_autogen.model import Completion, Message, ToolCall, Usage, run_abandonable


class ClientModel:
    """Asks a `ChatCompletionClient`, on the loop of the reply that is being made.

    Args:
        client: Any client of the host's; it stays the caller's, who closes it.

    Replies are asked for whole: in a stream the host's clients don't report what was spent.
    """

    def __init__(self, client: ChatCompletionClient) -> None:
        self._client = client

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

        A schema is passed on as the wish for a JSON object, where the client's `model_info` says that it can do that.

        Raises:
            ModelError: out of time, or cancelled.
        """
        asked = [_message(one) for one in messages]
        token = CancellationToken()
        more: dict[str, Any] = {"tools": [dict(one["function"]) for one in tools]} if tools else {}
        if schema is not None and self._client.model_info.get("json_output"):
            more["json_output"] = True

        def work(give: Callable[[str], None], abandoned: threading.Event) -> Completion:
            result = wait_for(self._client.create(asked, cancellation_token=token, **more), cancelled=abandoned)
            return _completion(result)

        return run_abandonable(
            work,
            where="the model client",
            seconds=float("inf") if seconds is None else seconds,
            on_text=on_text,
            cancelled=cancelled,
        )


def _message(message: Message) -> LLMMessage:
    content = message["content"]
    if message["role"] == "system":
        return SystemMessage(content=str(content))
    if message["role"] == "assistant":
        return AssistantMessage(content=str(content), source="assistant")
    if isinstance(content, str):
        return UserMessage(content=content, source="user")
    parts = [
        Image.from_uri(part["image_url"]["url"]) if part["type"] == "image_url" else str(part["text"])
        for part in content
    ]
    return UserMessage(content=parts, source="user")


def _completion(result: Any) -> Completion:
    usage = Usage(result.usage.prompt_tokens, 0, result.usage.completion_tokens, 1)
    if isinstance(result.content, str):
        return Completion(result.content, usage=usage, finish_reason=result.finish_reason)
    calls = tuple(ToolCall(one.id, one.name, one.arguments) for one in result.content)
    return Completion("", calls, usage, result.finish_reason)
