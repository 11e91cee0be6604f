"""What a kernel can't do without and code may overwrite, put back around each cell; and how a cell is interrupted."""

from __future__ import annotations

import asyncio
import builtins
import inspect
import json
import os
import signal
import stat
import sys
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any

from .output_capture import clip
from .report_marks import SOURCE

_NAME_CHARS, _ERROR_CHARS, _MAX_LINES = 200, 8000, 20
_CHANGING = {"_", "input", "display", "get_ipython", "exit", "quit", "__IPYTHON__"}
"""Builtins that IPython itself puts in and takes out."""


class Guard:
    """Remembers the kernel's own streams, builtins and folder.

    What code overwrites in its own namespace or in a module stays overwritten, as Python has it.

    Args:
        folder: Where cells run.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process = os.getpid()
        self._path = str(folder)
        self._sys = sys.__dict__
        self._streams = {name: self._sys[name] for name in ("stdin", "stdout", "stderr")}
        self._builtins = builtins.__dict__
        self._kept = {name: value for name, value in self._builtins.items() if name not in _CHANGING}

    def repair(self) -> None:
        """Restore all of it."""
        self._builtins.update(self._kept)  # first: a missing `isinstance` would end any other line
        self._sys.update(self._streams)
        try:
            there = stat.S_ISDIR(os.lstat(self._path).st_mode)
        except OSError:
            there = False
        if not there:
            if self._folder.is_symlink():  # the code laid a link in its place
                self._folder.unlink()
            self._folder.mkdir(parents=True, exist_ok=True)
        try:
            os.getcwd()
        except OSError:  # the code removed the folder that it was in
            os.chdir(self._folder)

    def end_fork(self, failed: bool) -> None:
        """End a process that was forked in the cell and came to the cell's end: it would be a second kernel."""
        if os.getpid() != self._process:
            for name in ("stdout", "stderr"):
                self._streams[name].flush()
            os._exit(int(failed))


def reply_always(kernel: Any) -> None:
    """Make each cell have a reply, and one that is small enough to be taken.

    Where a cell was cancelled while it awaited, or its exception has no text, ipykernel sends none, and answers nothing
    from then on; or the process ends, where a class of the code raises SystemExit while the cell's end is reported.
    What it says of an exception is as long as the exception's text; and `%load` sends a whole file to nobody.
    """
    run = kernel.do_execute

    async def do_execute(*args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            return _clip_reply(await run(*args, **kwargs))
        except (asyncio.CancelledError, KeyboardInterrupt):  # of `await` at top level, or outside of all code
            return _error_reply(kernel, "KeyboardInterrupt", "")
        except BaseException as error:  # noqa: BLE001 - what code did to the shell or to its exception may be anything
            return _error_reply(kernel, type(error).__name__, "the cell's end could not be told")

    kernel.do_execute = do_execute


def _clip_reply(reply: dict[str, Any]) -> dict[str, Any]:
    """Cut what a reply holds of exceptions, and leave out payloads that nobody reads."""
    answers = reply.get("user_expressions") or {}
    for answer in (reply, *(answers.values() if isinstance(answers, dict) else ())):
        if isinstance(answer, dict) and answer.get("status") == "error":
            answer["ename"] = clip(str(answer.get("ename")), _NAME_CHARS)
            answer["evalue"] = clip(str(answer.get("evalue")), _ERROR_CHARS)
            answer["traceback"] = [
                clip(str(line), _ERROR_CHARS) for line in list(answer.get("traceback") or ())[-_MAX_LINES:]
            ]
    payload = reply.get("payload") or []
    reply["payload"] = [one for one in payload if isinstance(one, dict) and one.get("source") == SOURCE]
    return reply


def _error_reply(kernel: Any, name: str, text: str) -> dict[str, Any]:
    payloads = kernel.shell.payload_manager
    reply = {
        "status": "error",
        "ename": name,
        "evalue": text,
        "traceback": [],
        "execution_count": kernel.execution_count,
        "user_expressions": {},
        "payload": payloads.read_payload(),
    }
    payloads.clear_payload()
    return reply


def suppress_messages(kernel: Any) -> None:
    """Leave out what costs each cell time and nobody reads."""
    kernel._publish_execute_input = _do_nothing
    shell = kernel.shell
    # History would keep the text of each cell under a name of its own, `_i1`, and in lists, for as long as it lives.
    shell.history_manager.store_inputs = _do_nothing
    for run in (type(shell).run_cell, type(shell).run_cell_async):
        run.__signature__ = inspect.signature(run)  # ipykernel asks for it before each cell


def suppress_status(kernel: Any, quiet: Callable[[], bool]) -> None:
    """Don't tell when a cell begins, nor when one is over whose reply says that already.

    It is for a kernel whose owner is its only client; a gateway wants to know.

    Args:
        kernel: ipykernel's.
        quiet: Tells, once, whether the last report says that no output follows.
    """
    if hasattr(kernel, "tw_publish_status"):
        return
    kernel.tw_publish_status = publish = kernel._publish_status
    handlers = kernel.shell_handlers
    run = handlers["execute_request"]
    said = False

    async def execute_request(*args: Any, **kwargs: Any) -> None:
        nonlocal said
        said = False
        quiet()
        await run(*args, **kwargs)
        said = quiet()  # not behind an exception, which may have come before the reply was sent

    def publish_status(status: str, channel: str, *args: Any, **kwargs: Any) -> None:
        nonlocal said
        if channel == "shell" and said:
            said = False
        elif status != "busy":
            publish(status, channel, *args, **kwargs)

    handlers["execute_request"], kernel._publish_status = execute_request, publish_status


def _do_nothing(*args: Any, **kwargs: Any) -> None:
    """Take the place of what is left out."""


def pack_tolerantly(session: Any) -> None:
    """Make and read messages whatever code does to the module `json`, and whatever a text holds."""
    encode = json.JSONEncoder(ensure_ascii=False, default=_json_default).encode
    decode = json.JSONDecoder().decode
    session.pack = lambda value: encode(value).encode("utf-8", "replace")  # half a surrogate pair can't be sent
    session.unpack = lambda text: decode(text.decode("utf-8", "replace") if isinstance(text, bytes) else text)


def _json_default(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    return str(value)


class Interrupts:
    """Handles SIGINT while a kernel answers a request; between requests ipykernel has it ignored.

    One that comes before the code stops it as it begins. One that comes behind it passes silently: the cell is over. A
    second one raises there too, so that a chart that is drawn for ever behind a cell costs no variable.

    Args:
        kernel: ipykernel's.
    """

    def __init__(self, kernel: Any) -> None:
        self.noted = False
        """Whether one has come and stopped nothing yet."""
        self._held_off = self._hold_off  # one object, which `getsignal` gives back
        self._stand_around_requests(kernel)
        self._stand_around_code(kernel.shell)

    def _hold_off(self, number: int, frame: FrameType | None) -> None:
        if self.noted:
            raise KeyboardInterrupt
        self.noted = True

    def _stand_around_requests(self, kernel: Any) -> None:
        def begin() -> None:
            kernel.saved_sigint_handler = signal.signal(signal.SIGINT, self._held_off)
            self.noted = False

        kernel.pre_handler_hook = begin

    def _stand_around_code(self, shell: Any) -> None:
        run, evaluate = shell.run_ast_nodes, shell.user_expressions

        async def run_ast_nodes(*args: Any, **kwargs: Any) -> Any:
            held_off = self._holds_off()
            try:
                if held_off:
                    self._let_through()
                return await run(*args, **kwargs)
            finally:
                if held_off:
                    self._block_interrupts()

        def user_expressions(expressions: Any) -> Any:
            held_off = bool(expressions) and self._holds_off()
            try:
                if held_off:
                    self._let_through()
                return evaluate(expressions)
            finally:
                if held_off:
                    self._block_interrupts()

        shell.run_ast_nodes, shell.user_expressions = run_ast_nodes, user_expressions

    def _holds_off(self) -> bool:
        """Return whether they are ours to pass on: not in a subshell, nor in a cell that awaits or runs another."""
        ours = threading.current_thread() is threading.main_thread()
        return ours and signal.getsignal(signal.SIGINT) is self._held_off

    def _let_through(self) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if self.noted:
            raise KeyboardInterrupt

    def _block_interrupts(self) -> None:
        try:
            signal.signal(signal.SIGINT, self._held_off)
        finally:  # one that comes in this very moment leaves them through
            signal.signal(signal.SIGINT, self._held_off)
            self.noted = False
