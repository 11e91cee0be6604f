"""Echo: the smallest role there is, and a pattern for your own."""

from typing import Any

from tw_autogen import Memory, Post, Role


class Echo(Role):
    """Repeats each message, between two decorators.

    Args:
        settings: Text put before and after the echoed message.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self._decorator = str(settings.get("decorator", ""))

    def reply(self, memory: Memory, **kwargs: Any) -> Post:
        """Send the newest message back to whoever sent it."""
        asked = memory.last_post
        return Post(self.name, asked.send_from, f"{self._decorator}{asked.message}{self._decorator}")
