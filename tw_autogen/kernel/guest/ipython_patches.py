"""What of IPython's shell works otherwise here: `!commands`, `%%capture`, interrupts of `await`, what it would keep."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import importlib
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from .tamper_guard import Interrupts

_CELL = re.compile(r"<cell \d+>$")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_PIECE = 1 << 16
_END_SECONDS = 0.1


def forget_outputs(shell: Any) -> None:
    """Keep IPython from holding all that was ever printed or shown, and from formatting each exception twice."""
    shell._tee = lambda channel: contextlib.nullcontext()
    shell._format_exception_for_storage = lambda error, *args, **kwargs: {}
    shell.displayhook.log_output = lambda bundle: None
    warnings.filterwarnings("ignore", "To exit: use 'exit'")
    drop_history_names(shell)


def drop_history_names(shell: Any) -> None:
    """Remove the names of what was run and shown, which is not kept: an empty `_` would be taken for the last value."""
    for name in ("_", "__", "___", "_i", "_ii", "_iii", "In", "Out"):
        if shell.user_ns.get(name) in ("", [""], {}):
            del shell.user_ns[name]


def print_pages(shell: Any) -> None:
    """Print what IPython shows in a pager, such as the help of `name?`."""

    def show(shell: Any, data: Any, *_: Any, **__: Any) -> None:
        text = data.get("text/plain", "") if isinstance(data, dict) else data
        print(_COLOURS.sub("", str(text)))  # noqa: T201 - the cell's own stream

    shell.set_hook("show_in_pager", show, 0)


def nest_captures(shell: Any, nested: Callable[[], contextlib.AbstractContextManager[None]]) -> None:
    """Make `%%capture` run its lines as a part of its cell.

    Args:
        shell: IPython's, which runs them as a cell in the cell.
        nested: Entered meanwhile.
    """

    def capture(line: str, cell: str) -> None:
        magics = importlib.import_module("IPython.core.magics.execution")  # deferred: IPython 9 does so
        first = "" if cell.startswith("%") else "#\n"  # in the place of the magic's line: lines keep their numbers
        with nested():
            magics.ExecutionMagics(shell).capture(line, first + cell)

    shell.register_magic_function(capture, "cell", "capture")


def cache_cells(caching: Any) -> None:
    """Make numba cache functions of cells as it does those of notebooks, whose cells have files of other names.

    Args:
        caching: The module `numba.core.caching`.
    """
    locator = getattr(caching, "IPythonCacheLocator", None) or getattr(caching, "_IPythonCacheLocator", None)
    if locator is not None:
        find = locator.from_function.__func__

        def from_function(kind: Any, function: Any, file: str) -> Any:
            return find(kind, function, f"<ipython-{file}" if _CELL.match(file) else file)

        locator.from_function = classmethod(from_function)


def ask_once(shell: Any) -> None:
    """Remember what a cell becomes in Python and whether it awaits: ipykernel asks for both, and then the shell again.

    The answers may depend on variables, so they are remembered until code runs, and no longer.
    """
    run = shell.kernel.do_execute
    found: dict[tuple[str, str], Any] = {}
    before_code = False

    def remember(name: str) -> None:
        ask = getattr(shell, name)

        def answer(code: str, *args: Any, **kwargs: Any) -> Any:
            if (name, code) in found:
                return found.pop((name, code))
            made = ask(code, *args, **kwargs)
            if before_code:
                found[name, code] = made
            return made

        setattr(shell, name, answer)

    async def do_execute(*args: Any, **kwargs: Any) -> Any:
        nonlocal before_code
        before_code = True
        found.clear()
        return await run(*args, **kwargs)

    def reset_transform_state() -> None:
        nonlocal before_code
        before_code = False
        found.clear()

    remember("transform_cell")
    remember("should_run_async")
    shell.kernel.do_execute = do_execute
    shell.events.register("pre_execute", reset_transform_state)
    shell.events.register("post_execute", reset_transform_state)  # a cell without code has no `pre_execute`


def watch_reset(shell: Any, then: Callable[[], None]) -> None:
    """Call a function behind each `%reset`, which empties the user's namespace.

    Args:
        shell: IPython's.
        then: Called without arguments.
    """
    reset = shell.reset

    def watched(*args: Any, **kwargs: Any) -> None:
        reset(*args, **kwargs)
        then()

    shell.reset = watched


def pipe_commands(shell: Any) -> None:
    """Make `!command` write into a pipe; IPython's own way wants a terminal, which the sandbox has not."""
    # Names are looked up in the frame of the caller.
    shell.system = lambda command: run_command(shell, shell.var_expand(command, depth=1))


def run_command(shell: Any, command: str) -> None:
    """Run a `!command` whose variables are filled in, and leave its exit code where IPython does.

    Args:
        shell: IPython's.
        command: What the system's shell gets.

    Raises:
        OSError: it is to go on in the background.
    """
    if command.rstrip().endswith("&"):
        raise OSError("a command that goes on in the background is started with subprocess.Popen, not with `!`")
    code = _run_and_print(command)
    shell.user_ns["_exit_code"] = code
    if code and getattr(shell, "system_raise_on_error", False):
        raise subprocess.CalledProcessError(code, command)


def _run_and_print(command: str) -> int:
    """Run a command, print what it writes as it comes, and give its exit code."""
    text = codecs.getincrementaldecoder("utf-8")("replace")
    with subprocess.Popen(
        command, shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0
    ) as process:
        assert process.stdout is not None  # noqa: S101 - for the types
        try:
            while piece := process.stdout.read(_PIECE):
                sys.stdout.write(text.decode(piece))
            return process.wait()
        except BaseException:  # an interrupt reaches the command too: it has a moment to end by itself
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_END_SECONDS)
            process.kill()
            raise


def cancel_on_interrupt(kernel: Any, interrupts: Interrupts) -> None:
    """Make each interrupt reach a cell that awaits.

    ipykernel's own way asks the event loop to cancel the cell without waking the loop, once, and does nothing about
    code that computes between two awaits.

    Args:
        kernel: ipykernel's.
        interrupts: Knows of one that came before the cell.
    """

    @contextlib.contextmanager
    def watch(cell: asyncio.Future[Any]) -> Iterator[None]:
        loop = asyncio.get_running_loop()

        def interrupted(number: int, frame: FrameType | None) -> None:
            stop = _by_raising(frame)
            if stop is not None:
                raise stop
            loop.call_soon_threadsafe(cell.cancel)

        before = signal.signal(signal.SIGINT, interrupted)
        try:
            if interrupts.noted:
                cell.cancel()
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    kernel._cancel_on_sigint = watch


def _by_raising(frame: FrameType | None) -> BaseException | None:
    """Return what stops code that computes right now; None if all await.

    In a task that a cell has made, KeyboardInterrupt would end the kernel's event loop.
    """
    in_cell = False
    while frame is not None:
        in_cell = in_cell or bool(_CELL.match(frame.f_code.co_filename))
        if in_cell and frame.f_code.co_name == "run_code":
            return KeyboardInterrupt()
        frame = frame.f_back
    return asyncio.CancelledError() if in_cell else None
