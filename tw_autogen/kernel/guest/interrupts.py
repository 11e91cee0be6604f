"""Interrupts reach a cell's code, and nothing else: behind it they would tear what makes and sends its reply."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


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
                    self._shut()

        def user_expressions(expressions: Any) -> Any:
            held_off = bool(expressions) and self._holds_off()
            try:
                if held_off:
                    self._let_through()
                return evaluate(expressions)
            finally:
                if held_off:
                    self._shut()

        shell.run_ast_nodes, shell.user_expressions = run_ast_nodes, user_expressions

    def _holds_off(self) -> bool:
        """Return whether they are ours to pass on: not in a subshell, nor in a cell that awaits or runs another."""
        ours = threading.current_thread() is threading.main_thread()
        return ours and signal.getsignal(signal.SIGINT) is self._held_off

    def _let_through(self) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if self.noted:
            raise KeyboardInterrupt

    def _shut(self) -> None:
        try:
            signal.signal(signal.SIGINT, self._held_off)
        finally:  # one that comes in this very moment leaves them through
            signal.signal(signal.SIGINT, self._held_off)
            self.noted = False
