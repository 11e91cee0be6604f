"""The host's messages as lines of a conversation, and our events as the host's."""

from __future__ import annotations

from collections.abc import Sequence

from autogen_agentchat.messages import (
    BaseAgentEvent,
    BaseChatMessage,
    CodeExecutionEvent,
    CodeGenerationEvent,
    HandoffMessage,
    MultiModalMessage,
    ThoughtEvent,
)
from autogen_core import Image
from autogen_core.code_executor import CodeBlock, CodeResult

from tw_autogen.conversation import AttachmentType
from tw_autogen.events import CellRan, CodeChecked, Event, PostClosed
from tw_autogen.hosts.partner_conversation import Line
from tw_autogen.session import USER
from tw_autogen.text_escaping import escape_controls


def lines_of(messages: Sequence[BaseChatMessage]) -> list[Line]:
    """Return messages as lines of a conversation; images are `data:` URLs."""
    return [Line(_message_text(message), name=message.source, images=_image_urls(message)) for message in messages]


class Translator:
    """Translates our events into built-in ones of the host, without control characters; its teams refuse any others.

    Args:
        source: The agent's name, under which they are shown.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._tries = 0

    def __call__(self, event: Event) -> list[BaseAgentEvent]:
        """Return the host's events for one of ours, in order; none for what it has no word for."""
        if isinstance(event, CodeChecked):
            return self._code_events(event)
        if isinstance(event, CellRan):
            output = "\n".join(part for part in (event.stdout, event.result or "", event.stderr, event.error) if part)
            return [self._execution_event(event.ok, output)]
        if isinstance(event, PostClosed) and USER not in (event.post.send_from, event.post.send_to):
            self._tries = 0
            post = event.post
            plan = post.content(AttachmentType.plan)
            text = f"{plan}\n\n{post.message}" if plan else post.message
            return [
                ThoughtEvent(
                    source=self._source, content=escape_controls(f"{post.send_from} to {post.send_to}: {text}")
                )
            ]
        return []

    def _code_events(self, event: CodeChecked) -> list[BaseAgentEvent]:
        """Show code; what was refused never runs, so its outcome is the findings."""
        self._tries += 1
        shown: list[BaseAgentEvent] = [
            CodeGenerationEvent(
                source=self._source,
                retry_attempt=self._tries - 1,
                content=escape_controls(f"```python\n{event.code}\n```"),
                code_blocks=[CodeBlock(code=event.code, language="python")],
            )
        ]
        if event.findings:
            shown.append(self._execution_event(False, "\n".join(["The code was not run:", *event.findings])))
        return shown

    def _execution_event(self, ok: bool, output: str) -> CodeExecutionEvent:
        result = CodeResult(exit_code=0 if ok else 1, output=escape_controls(output))
        return CodeExecutionEvent(source=self._source, retry_attempt=max(0, self._tries - 1), result=result)


def _image_urls(message: BaseChatMessage) -> tuple[str, ...]:
    parts = message.content if isinstance(message, MultiModalMessage) else ()
    return tuple(part.data_uri for part in parts if isinstance(part, Image))


def _message_text(message: BaseChatMessage) -> str:
    text = str(message.to_model_text())
    if isinstance(message, HandoffMessage) and message.context:
        context = "\n".join(str(one.content) for one in message.context)
        return f"{text}\n\n{context}"
    return text
