"""What a session says inside, as the host's own messages between agents that are nothing but names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tw_autogen.conversation import AttachmentType, Post
from tw_autogen.events import Event, PostClosed
from tw_autogen.hosts.conversable.autogen_import import import_autogen
from tw_autogen.session import USER
from tw_autogen.text_escaping import escape_controls

ConversableAgent: Any = import_autogen().ConversableAgent


class InnerMessages:
    """A handler that shows each post between roles; those from and to the user are shown by the host itself.

    Args:
        silent: Says whether to show them now.

    The speakers have no model and no logic, and are made once for a session: the host prints what they say, sends it as
    its own events, and logs calls of its client under their names.
    """

    def __init__(self, silent: Callable[[], bool]) -> None:
        self._silent = silent
        self._speakers: dict[str, Any] = {}

    def __call__(self, event: Event) -> None:
        """Take an event of the session's."""
        if isinstance(event, PostClosed) and USER not in (event.post.send_from, event.post.send_to):
            self.show(event.post)

    def show(self, post: Post) -> None:
        """Show one post."""
        if not self._silent():
            receiver = self.speaker(post.send_to)
            self.speaker(post.send_from).send(_post_text(post), receiver, request_reply=False, silent=False)

    def speaker(self, name: str) -> Any:
        """Return the agent that stands for a role."""
        if name not in self._speakers:
            self._speakers[name] = ConversableAgent(
                name, llm_config=False, human_input_mode="NEVER", description=f"speaks for {name}"
            )
        return self._speakers[name]


def _post_text(post: Post) -> str:
    """Return a post as a person reads it, without control characters: plan or code first, where it brings one."""
    plan, code = post.content(AttachmentType.plan), post.content(AttachmentType.reply_content)
    parts = [
        plan,
        f"{post.content(AttachmentType.thought)}\n```python\n{code}\n```".strip() if code else "",
        post.message,
    ]
    return escape_controls("\n\n".join(part for part in parts if part))
