"""`RequestInput`: reads a request at a terminal, with earlier ones on the arrow keys, and files named as `@path`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tw_autogen.cli.file_arguments import begun_name, names_only, quoted_name
from tw_autogen.cli.terminal import is_dumb
from tw_autogen.private_files import make_private_folder, open_private
from tw_autogen.trust_store import state_folder

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession


_CONTINUED = "\\"
_CONTINUATION = "… "


class RequestInput:
    """Reads one request; at a terminal (not a dumb one) it can be edited, and those of earlier chats are there again.

    Enter sends it, unless the line ends with a backslash; Alt-Enter begins a new line, and pasted lines stay together.
    The tabulator key completes commands, and the names of files after `@`.

    They are kept in `history` of the user's state folder (`$XDG_STATE_HOME/tw-autogen`, `~/.local/state/…`), readable
    by the user alone. A home that can't be written to is no reason to fail.

    Args:
        sign: Stands in front of what is typed.
        commands: Completed on the tabulator key.
        project: The folder of `-C`, whose files are completed after `@` too; None: none was given.
    """

    def __init__(self, sign: str, commands: Sequence[str] = (), project: Path | None = None) -> None:
        self._sign = sign
        editable = sys.stdin.isatty() and sys.stdout.isatty() and not is_dumb()
        self._session = _make_prompt_session(commands, project) if editable else None

    def read(self) -> str:
        """Read one request.

        Raises:
            EOFError: there is no more.
            KeyboardInterrupt: Ctrl-C on an empty line, or its signal at whatever moment it comes; Ctrl-C clears a line
                that has something in it.
        """
        if self._session is not None:
            return self._session.prompt(self._sign)
        lines = [input(self._sign)]
        while lines[-1].endswith(_CONTINUED):
            lines[-1] = lines[-1].removesuffix(_CONTINUED)
            lines.append(input(_CONTINUATION))
        return "\n".join(lines)


def _make_prompt_session(commands: Sequence[str], project: Path | None) -> PromptSession[str]:
    # here, because they cost a quarter of a second that only a chat at a terminal needs
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter, WordCompleter
    from prompt_toolkit.document import Document
    from prompt_toolkit.history import FileHistory
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.key_binding.key_processor import KeyPressEvent

    state = state_folder()
    more: dict[str, Any] = {}
    if state is not None:
        with contextlib.suppress(OSError):
            make_private_folder(state)
            open_private(state / "history").close()  # and find out whether it can be written to
            more["history"] = FileHistory(str(state / "history"))
    keys = KeyBindings()

    @keys.add("c-c")
    def clear_or_leave(event: KeyPressEvent) -> None:
        """Clear what is typed; on an empty line raise KeyboardInterrupt."""
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt, style="class:aborting")

    @keys.add("enter")
    def send_or_go_on(event: KeyPressEvent) -> None:
        """Send what is typed; after a backslash begin another line."""
        buffer = event.current_buffer
        if buffer.document.text_before_cursor.endswith(_CONTINUED):
            buffer.delete_before_cursor()
            buffer.newline(copy_margin=False)
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def begin_line(event: KeyPressEvent) -> None:
        """Begin another line."""
        event.current_buffer.newline(copy_margin=False)

    class Words(Completer):
        """Completes commands at the beginning, and paths of files after `@`."""

        _commands = WordCompleter(list(commands), sentence=True)
        _paths = PathCompleter(
            expanduser=True,
            get_paths=lambda: [".", *([str(project)] if project else [])],
            file_filter=lambda path: Path(path).name != ".tw",  # this program's own sessions
        )

        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
            """Yield what the word before the cursor may become.

            Args:
                document: The line, and the cursor's place; completed are paths after `@`, and commands in a line that
                    begins with `/`.
                complete_event: What asked for completions; handed on.
            """
            begun = begun_name(document.text_before_cursor)
            if begun is not None:
                path, typed_chars = begun
                for found in self._paths.get_completions(Document(path, len(path)), complete_event):
                    folder = found.display_text.endswith("/")
                    name = path + found.text + "/" * folder
                    whole = quoted_name(name, closed=not folder)
                    if not names_only(quoted_name(name, closed=True), name):
                        continue  # the words would name another file, as somebody may have called one
                    yield Completion(whole, -typed_chars, display=found.display)
            elif document.text.startswith("/"):
                yield from self._commands.get_completions(document, complete_event)

    return PromptSession(
        completer=Words(),
        complete_while_typing=False,
        key_bindings=keys,
        multiline=True,
        prompt_continuation=_CONTINUATION,
        **more,
    )
