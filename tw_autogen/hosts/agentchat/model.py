"""`ClientModel`: the host's asynchronous model client as a `ChatModel`."""

from __future__ import annotations

import base64
import inspect
import re
import threading
from collections.abc import Callable
from typing import Any

from autogen_core import CancellationToken, FunctionCall, Image
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    SystemMessage,
    UserMessage,
)

from tw_autogen.hosts.agentchat.event_loops import run_on_loop
from tw_autogen.model import (
    BaseChatModel,
    Completion,
    Message,
    ModelRequest,
    ModelSettings,
    ToolCall,
    Usage,
    run_abandonable,
)
from tw_autogen.picture_files import UNSEEN, open_picture

_PICTURE = re.compile(r"data:image/(?:png|jpe?g|gif|webp);base64")
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP")


class ClientModel(BaseChatModel):
    """Asks a `ChatCompletionClient`, on the loop of the reply that is being made.

    Args:
        client: Any client of the host's; it stays the caller's, who closes it.
        stream: Ask for replies piece by piece. Otherwise they are asked for whole, because not every client and
            server of the host's says in a stream what was spent.
        seconds: How long a call may take where the caller does not say.
    """

    def __init__(
        self, client: ChatCompletionClient, *, stream: bool = False, seconds: float = ModelSettings.seconds
    ) -> None:
        self._seconds = seconds
        self._client = client
        self._stream = stream

    @property
    def objects_only(self) -> bool:
        """Whether the client asks for a JSON object where there is a schema."""
        return bool(self._client.model_info.get("json_output"))

    def answer(self, request: ModelRequest) -> Completion:
        """Answer a request; errors of the host's client go through as they are.

        A schema is passed on as the wish for a JSON object, and images are, where the client's `model_info` says that
        it can do that.

        Args:
            request: What to ask, in which form, and until when.

        Raises:
            ModelError: out of time, or cancelled.
        """
        info = self._client.model_info
        asked = [_to_llm_message(message, sees=bool(info.get("vision"))) for message in request.messages]
        token = CancellationToken()
        more: dict[str, Any] = {"cancellation_token": token}
        if request.tools:
            more["tools"] = [dict(tool["function"]) for tool in request.tools]
        if request.schema is not None and info.get("json_output"):
            more["json_output"] = True

        def work(give: Callable[[str], None], abandoned: threading.Event) -> Completion:
            streamed = self._stream and request.on_text is not None
            asking = self._read_stream(asked, more, give) if streamed else self._client.create(asked, **more)
            return _to_completion(run_on_loop(asking, cancelled=abandoned, token=token))

        return run_abandonable(
            work,
            where="the model client",
            seconds=request.limit(self._seconds),
            on_text=request.on_text,
            cancelled=request.cancelled,
        )

    async def _read_stream(self, asked: list[LLMMessage], more: dict[str, Any], give: Callable[[str], None]) -> Any:
        if "include_usage" in inspect.signature(self._client.create_stream).parameters:  # OpenAI's, not everybody's
            more = {**more, "include_usage": True}
        result = None
        async for piece in self._client.create_stream(asked, **more):
            if isinstance(piece, str):
                give(piece)
            else:
                result = piece
        if result is None:
            raise ValueError("the client's stream ended without a result")
        return result


def _to_llm_message(message: Message, *, sees: bool) -> LLMMessage:
    role, content = message["role"], message.get("content") or ""
    if role == "system":
        return SystemMessage(content=str(content))
    if role == "assistant":
        calls = [
            FunctionCall(id=call["id"], name=call["function"]["name"], arguments=call["function"]["arguments"])
            for call in message.get("tool_calls") or ()
        ]
        return AssistantMessage(content=calls or str(content), source="assistant")
    if role == "tool":
        result = FunctionExecutionResult(
            content=str(content), name=str(message.get("name", "")), call_id=message["tool_call_id"], is_error=False
        )
        return FunctionExecutionResultMessage(content=[result])
    if isinstance(content, str):
        return UserMessage(content=content, source="user")
    if not sees:
        texts = [UNSEEN if part["type"] == "image_url" else str(part["text"]) for part in content]
        return UserMessage(content="\n".join(texts), source="user")
    parts = [
        _decode_image(part["image_url"]["url"]) if part["type"] == "image_url" else str(part["text"])
        for part in content
    ]
    return UserMessage(content=parts, source="user")


def _decode_image(url: str) -> Image | str:
    """Return an image as the host has it; it has only those that are written out in the URL.

    The content is read as one of the formats that models see, whatever it is: for others Pillow starts programs.
    """
    begin, _, data = url.partition(",")
    if not _PICTURE.fullmatch(begin):
        return UNSEEN
    try:
        with open_picture(base64.b64decode(data), _FORMATS) as picture:
            return Image.from_pil(picture)
    except Exception:  # noqa: BLE001 - Pillow raises errors of many kinds for a damaged or huge picture
        return UNSEEN


def _to_completion(result: Any) -> Completion:
    usage = Usage(result.usage.prompt_tokens, 0, result.usage.completion_tokens, 1)
    if isinstance(result.content, str):
        return Completion(result.content, usage=usage, finish_reason=result.finish_reason)
    calls = tuple(ToolCall(one.id, one.name, one.arguments) for one in result.content)
    return Completion("", calls, usage, "tool_calls")
