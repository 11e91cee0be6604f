"""The kernel's end of the bridge: hooks around each cell, a report after it, answers to the host's own requests.

Reports and answers travel in the payload of `execute_reply`: the one place that reaches the host in the same round
trip whether the cell succeeded or failed (`user_expressions` are not evaluated behind an error).
"""

from __future__ import annotations

import contextlib
import importlib
import linecache
import os
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from json import dumps, loads  # held here: code may overwrite them in the module
from typing import Any

from .crash_output import CrashOutput, flush_before_exit
from .display import AfterImport, Display, tune_altair, tune_bokeh, tune_pandas, tune_plotly, tune_pyplot
from .host_calls import claim_input_channel
from .ipython_patches import (
    ask_once,
    cache_cells,
    cancel_on_interrupt,
    drop_history_names,
    forget_outputs,
    nest_captures,
    pipe_commands,
    print_pages,
    run_command,
    watch_reset,
)
from .json_size import fits_message
from .kernel_session import KernelSession
from .missing_names import also_missing, missing_column
from .output_capture import FdCapture, LimitedStream, clip
from .pip_install import INSTALL, PipInstallHook
from .plugin import PluginProblem, install_names
from .remote_files import PIECE, RunOnce, set_up_remote_session
from .report_marks import QUIET, SOURCE
from .sandbox_hints import Hints
from .tamper_guard import Guard, Interrupts, pack_tolerantly, reply_always, suppress_messages, suppress_status
from .traceback_text import Cells, kind_of, own_words, short_warning, trace

_LAST_OUTPUT = "last_output"
_LONG_OUTPUT_CHARS = 4000
"""What a cell printed, with its result, is kept as the variable `last_output` if it is longer than this."""

_TUNED = {
    "pandas": tune_pandas,
    "matplotlib.pyplot": tune_pyplot,
    "altair": tune_altair,
    "plotly.io._renderers": tune_plotly,
    "bokeh.io": tune_bokeh,
    "numba.core.caching": cache_cells,
}
_ERROR_CHARS = 100_000
_TOO_MUCH = "what this cell logged, and what it left, is too much to be told"


class Bridge:
    """Everything of ours that lives in a kernel; of no use before `begin_session`.

    Args:
        shell: IPython's shell.
    """

    session: KernelSession

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._ask = claim_input_channel(shell.kernel)
        self._errors: list[str] = []
        self._was_reset = False
        self._nested = False
        self._inner: Any = None
        self._number = 0
        self._quiet = False
        self._display = Display(shell)
        self._crash_output = [CrashOutput(name, self._request_id) for name in ("stdout", "stderr")]
        streams = zip((sys.stdout, sys.stderr), self._crash_output, strict=True)
        self._streams = [LimitedStream(*pair) for pair in streams]
        self._descriptors = FdCapture({1: sys.stdout, 2: sys.stderr})
        for number in self._descriptors.numbers:
            os.register_at_fork(after_in_child=partial(self._streams[number - 1].redirect_to, number))
        self._configure_shell()

    def begin_session(self, options: Mapping[str, Any]) -> None:
        """Begin a session; what an earlier call of this has begun is forgotten.

        Args:
            options: `session_id`, `output_chars`, `result_chars`, `max_artifacts`, `max_artifact_bytes`, `arrow`;
                `exchange`: the token of `InsideExchange`; `rollback` (limits, see `Rollback`), where failed cells are
                undone; `checkpoint` (options, see `Checkpoint`), where variables are to come back; `folder` and
                `environment`, where this process was made before its session was known; `sandbox`, see `Hints`;
                `packages`: `pip install` asks the host, who puts them there; empty: it never does; `remote`, where the
                host's folder is not seen from here: `environment`, `max_bytes`, and names of folders, see
                `set_up_remote_session`.
        """
        shell = self._shell
        if "folder" in options:
            os.chdir(options["folder"])
            os.environ.clear()
            os.environ.update(options["environment"])
        remote = options.get("remote")
        if remote:
            set_up_remote_session(remote["environment"], folder_name=remote["folder_name"], leftover=remote["leftover"])
            shell.history_manager.enabled = False  # a database on a disk, written behind each cell
            handlers = shell.kernel.shell_handlers
            handlers["execute_request"] = RunOnce(handlers["execute_request"])
        else:
            suppress_status(shell.kernel, self._was_quiet)
        self.session = KernelSession(shell, self._ask, options)
        self._cells = Cells(self._forget_cell)
        self._hints = Hints(str(self.session.folder), options.get("sandbox") or {})
        self._guard = Guard(self.session.folder)
        self._display.begin_session(self.session.ctx, options["result_chars"])
        for stream in self._streams:
            stream.begin_session(options["output_chars"])
        for output in self._crash_output:
            output.begin_session(
                None if remote or not options["session_id"] else self.session.folder, options["exchange"]
            )
        if "packages" in options:
            packages = PipInstallHook(
                lambda wanted: self.session.calls.call(INSTALL, (wanted,), {}), options["packages"]
            )
            packages.hook(shell, run_command)

    def answer(self, request: str) -> None:
        """Do what the host asks and put the answer into the payload.

        Args:
            request: JSON, see `KernelSession.answer`.
        """
        try:
            with self._streams[0].muted(), self._streams[1].muted():
                answer = {"ok": self.session.answer(loads(request))}
        except PluginProblem as error:
            answer = {"problem": error.problem, "line": error.line}
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - plugins and values are foreign code; the host is told
            answer = {"error": clip(own_words(error), _ERROR_CHARS), "type": kind_of(error)}
        answer["variables"] = self.session.variables()
        answer[QUIET] = self._quiet = not self.session.remote
        if self.session.remote and len(text := dumps(answer)) > PIECE:
            answer = {"file": self.session.codec.leave(text)}
        text = dumps(answer)
        if not fits_message(text):
            large = f"the answer is a text of {len(text) >> 20} MB, which is more than one message may be"
            text = dumps({"error": large, QUIET: self._quiet})
        self._write_payload(text)

    def answer_file(self, name: str) -> None:
        """Do what the host asks in a text that is longer than a message may be: it lies in the exchange."""
        self.answer(self.session.codec.find(name))

    # Around each cell.

    @contextlib.contextmanager
    def _nest_cell(self) -> Iterator[None]:
        """Make a cell that runs meanwhile a part of the one that is running, which fails if it does."""
        self._nested, self._inner = True, None
        try:
            yield
        finally:
            self._nested = False
        if self._inner is not None:
            self._inner.raise_error()

    def _before_cell(self, info: Any = None) -> None:
        if self._nested:
            return
        self._guard.repair()
        self._descriptors.repair()
        for stream in self._streams:
            stream.begin_cell()
        self.session.ctx.begin(self._shell.execution_count)
        self._display.begin((info.raw_cell if info else "") or "")
        self._errors.clear()
        self._was_reset = False
        self.session.repair()
        if self.session.checkpoint:
            self.session.checkpoint.begin_cell()
        self.session.begin_cell(info.raw_cell if info else "")

    def _name_cell(self, raw_code: str | None, code: str, number: int) -> str:
        """Name a cell for tracebacks, and remember its text under that name: IPython asks for it before it compiles."""
        if not self._nested:
            self._number = number
            self._cells.add(number, code if raw_code is None else raw_code)
        return f"<cell {self._number}>"

    def _forget_cell(self, number: int) -> None:
        """Drop what IPython keeps of a cell for tracebacks."""
        name = f"<cell {number}>"
        self._shell.compile._filename_map.pop(name, None)
        linecache.cache.pop(name, None)

    def _after_cell(self, result: Any = None) -> None:
        if self._nested:
            self._inner = result
            return
        self._guard.repair()
        if result is not None and _exits_well(result.error_in_exec):
            result.error_in_exec = None  # the reply is made from it
            self._errors.clear()
        failed = result is None or not result.success
        self._guard.end_fork(failed)
        if not failed and self._errors:  # a chart that could not be drawn behind the cell
            print(self._errors[-1], file=sys.stderr)  # noqa: T201 - the cell's own stream
        error = (self._errors[-1] if self._errors else "") if failed else ""
        if self.session.checkpoint and not failed and result.info.raw_cell and not self.session.trying:
            self.session.checkpoint.note_classes(result.info.raw_cell, self._transform_of(result.info))
        self._display.end()
        self._descriptors.drain()
        undone = self.session.end_cell(failed=failed)  # before anything is kept of the cell
        kept_as = "" if self.session.trying else self._keep_long_output()
        for stream in self._streams:
            stream.end_cell()
        self._quiet = not (self.session.remote or any(stream.spoke for stream in self._streams))
        kept, logs = self.session.ctx.take()
        self.session.repair()
        self._send(
            {
                "error": error,
                "result": self._display.result,
                "print_ends": self._streams[0].print_ends,
                "kept_as": kept_as,
                "artifacts": [[one.name, one.kind, one.path.name, one.preview] for one in kept],
                "logs": logs,
                "variables": self.session.variables(),
                **({} if undone is None else {"rollback": undone}),
                "reset": self._was_reset,
                QUIET: self._quiet,
                **({"files": self.session.remote.changed()} if self.session.remote else {}),
            }
        )
        self._display.result = None

    def _keep_long_output(self) -> str:
        """Keep long output as `last_output`, unless code has a variable of its own under that name.

        Returns:
            The variable's name; empty if nothing was kept.
        """
        text = "\n".join(filter(None, (self._streams[0].text(), self._display.result)))
        names, hidden = self._shell.user_ns, self._shell.user_ns_hidden
        if len(text) <= _LONG_OUTPUT_CHARS or names.get(_LAST_OUTPUT) is not hidden.get(_LAST_OUTPUT):
            return ""
        names[_LAST_OUTPUT] = hidden[_LAST_OUTPUT] = text
        return _LAST_OUTPUT

    def _transform_of(self, info: Any) -> Callable[[str], str]:
        """Return what makes Python of a cell; of the one that has just run, the shell knows it."""
        known = {info.raw_cell: getattr(info, "transformed_cell", None)}  # not before IPython 9
        return lambda code: known.get(code) or self._shell.transform_cell(code)

    def _was_quiet(self) -> bool:
        quiet, self._quiet = self._quiet, False
        return quiet

    def _say_rest(self) -> None:
        """Hand all that was written to what sends it."""
        self._descriptors.drain()
        for stream in self._streams:
            stream.end_cell()
            stream.flush()

    def _request_id(self) -> str:
        return str(self._shell.kernel.get_parent("shell")["header"]["msg_id"])

    def _show_error(self, exc_tuple: Any = None, *args: Any, **kwargs: Any) -> None:
        """Take the place of IPython's `showtraceback`, whose text is slow to make and long to read."""
        error = exc_tuple[1] if exc_tuple else sys.exc_info()[1]
        if error is not None:
            more = also_missing(self._running_code, error, self._shell.user_ns) or missing_column(error)
            text = trace(error, self._cells, self.session.plugin_files, (more, self._hints.hint_for(error)))
            self._errors.append(text)
            self._shell._last_traceback = [text]

    def _running_code(self) -> str:
        return str(self._shell.transform_cell(self._cells.text(self._number)))

    def _on_reset(self) -> None:
        self._was_reset = True
        drop_history_names(self._shell)
        self.session.repair()

    def _send(self, content: Mapping[str, Any]) -> None:
        """Send what a cell left; half a surrogate pair in it, which nobody can write to a file, becomes a `?`."""
        text = dumps(content, ensure_ascii=False)
        if not fits_message(text):
            kept = {name: content[name] for name in ("error", "result", "print_ends", "reset", QUIET)}
            text = dumps({**kept, "logs": [["warning", "output", _TOO_MUCH]]}, ensure_ascii=False)
        self._write_payload(text.encode("utf-8", "replace").decode())

    def _write_payload(self, report: str) -> None:
        self._shell.payload_manager.write_payload({"source": SOURCE, "report": report})

    def _configure_shell(self) -> None:
        shell = self._shell
        shell.events.register("pre_run_cell", self._before_cell)
        shell.events.register("post_run_cell", self._after_cell)
        shell.showtraceback = shell.showsyntaxerror = shell.showindentationerror = self._show_error
        shell.compile.get_code_name = self._name_cell
        shell.ask_exit = sys.exit  # `exit()` and `quit()` end the running cell, not the kernel
        shell.automagic = False  # `sx ('rm' 'x')` is Python, as the check before it took it to be
        forget_outputs(shell)
        watch_reset(shell, self._on_reset)
        pipe_commands(shell)
        print_pages(shell)
        nest_captures(shell, self._nest_cell)
        ask_once(shell)
        cancel_on_interrupt(shell.kernel, Interrupts(shell.kernel))
        reply_always(shell.kernel)
        pack_tolerantly(shell.kernel.session)
        suppress_messages(shell.kernel)
        flush_before_exit(shell.kernel.iopub_thread, self._say_rest)
        warnings.formatwarning = short_warning
        for name, tune in _TUNED.items():
            AfterImport(name, tune).install()
        install_names()


def _exits_well(error: BaseException | None) -> bool:
    """Return whether a cell has ended by `sys.exit()` or `sys.exit(0)`, as a script ends that has run well."""
    return type(error) is SystemExit and (error.code is None or (type(error.code) is int and error.code == 0))


_REHEARSAL = {
    "session_id": "",
    "output_chars": 1000,
    "result_chars": 1000,
    "max_artifacts": 0,
    "max_artifact_bytes": 0,
    "arrow": True,
    "exchange": "",
}


def start(options: str) -> None:
    """Make the kernel's one bridge, unless it was rehearsed, and begin the session; a second time nothing happens.

    Args:
        options: JSON, see `Bridge.begin_session`.
    """
    package = _package()
    if not hasattr(package, "session_of_this_kernel"):
        _get_or_make_bridge().begin_session(loads(options))
        package.session_of_this_kernel = True  # type: ignore[attr-defined] # modules take attributes


def warm_up(modules: str) -> None:
    """Make the bridge in a kernel that waits for a session, which is then there sooner.

    Cells that run before `start` leave nothing behind but the variables that they make.

    Args:
        modules: Names of modules to import, with commas between; what is not installed, or is broken, is left out.
    """
    _get_or_make_bridge().begin_session(_REHEARSAL)
    for name in filter(None, modules.split(",")):
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def answer(request: str) -> None:
    """Answer through the kernel's bridge."""
    _current_bridge().answer(request)


def answer_file(name: str) -> None:
    """Answer through the kernel's bridge what lies in a file."""
    _current_bridge().answer_file(name)


def _get_or_make_bridge() -> Bridge:
    package = _package()
    if not hasattr(package, "bridge_of_this_kernel"):
        from IPython import get_ipython  # deferred: the host imports this module too, to check it, without a shell

        package.bridge_of_this_kernel = Bridge(get_ipython())  # type: ignore[attr-defined] # as above
    return _current_bridge()


def _current_bridge() -> Bridge:
    bridge: Bridge = vars(_package())["bridge_of_this_kernel"]
    return bridge


def _package() -> types.ModuleType:
    return sys.modules[__package__ or "tw_guest"]


_LIBRARY = "/usr/lib/libsandbox.dylib"


def apply_seatbelt(text: str) -> str:
    """Apply a Seatbelt profile (macOS) to this process and all that it starts, for ever. Never tried on a Mac.

    Args:
        text: The profile.

    Returns:
        `up`, or why it can't be applied.
    """
    import ctypes  # deferred: on macOS alone, and it would be a part of each kernel's start

    try:
        library = ctypes.CDLL(_LIBRARY)
        problem = ctypes.c_char_p()
        if library.sandbox_init(os.fsencode(text), ctypes.c_uint64(0), ctypes.byref(problem)) == 0:
            return "up"
        return (problem.value or b"sandbox_init failed").decode(errors="replace")
    except (OSError, AttributeError) as error:
        return f"no sandbox_init: {error}"
