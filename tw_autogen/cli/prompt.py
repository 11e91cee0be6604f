"""`Prompt`: reads a line at a terminal, with lines typed before on the arrow keys."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession


class Prompt:
    """Reads lines; at a terminal they can be edited, and those of earlier chats are there again.

    They are kept in `$XDG_STATE_HOME/tw-autogen/history` (`~/.local/state/…`), readable by the user alone. A home
    that can't be written to is no reason to fail.

    Args:
        sign: Stands in front of what is typed.
        commands: Completed on the tabulator key.
    """

    def __init__(self, sign: str, commands: Sequence[str] = ()) -> None:
        self._sign = sign
        self._session = _editing(commands) if sys.stdin.isatty() and sys.stdout.isatty() else None

    def read(self) -> str:
        """Read one line.

        Raises:
            EOFError: there is no more.
            KeyboardInterrupt: Ctrl-C on an empty line, or its signal at whatever moment it comes; Ctrl-C clears a line
                that has something in it.
        """
        return input(self._sign) if self._session is None else self._session.prompt(self._sign)


def _editing(commands: Sequence[str]) -> PromptSession[str]:
    # here, because they cost a quarter of a second that only a chat at a terminal needs
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.history import FileHistory
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.key_binding.key_processor import KeyPressEvent

    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    path = Path(state, "tw-autogen", "history")
    more: dict[str, Any] = {}
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        with path.open("a", encoding="utf-8"):  # can it be written to?
            more["history"] = FileHistory(str(path))
    keys = KeyBindings()

    @keys.add("c-c")
    def clear_or_leave(event: KeyPressEvent) -> None:
        """Clear what is typed; on an empty line raise KeyboardInterrupt."""
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt, style="class:aborting")

    completer = WordCompleter(list(commands), sentence=True)
    return PromptSession(completer=completer, complete_while_typing=False, key_bindings=keys, **more)
