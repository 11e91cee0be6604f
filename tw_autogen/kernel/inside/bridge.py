"""The kernel's end of the bridge: hooks around each cell, one report behind it, answers to the host's own requests.

Reports and answers travel in the payload of `execute_reply`: the one place that reaches the host in the same round
trip whether the cell succeeded or failed (`user_expressions` are not evaluated behind an error).
"""

from __future__ import annotations

import builtins
import importlib.util
import linecache
import os
import platform
import sys
import types
import warnings
from collections.abc import Callable, Mapping
from json import dumps, loads  # held here: code may overwrite them in the module
from pathlib import Path
from typing import Any

from .calls import HostCalls
from .checkpoint import Checkpoint
from .codec import Codec
from .context import PluginContext
from .describe import describe
from .descriptors import Descriptors
from .display import AfterImport, Display, tune_pandas
from .exchange import InsideExchange
from .guard import Guard, always_reply, pack_anything, say_less
from .hints import Hints
from .output import LimitedStream
from .packages import INSTALL, Packages
from .plugin import PluginProblem, install_names, load_plugin
from .remote import FILES, PIECE, HostFiles, RemoteExchange, RemoteFolder, RunOnce, settle_down
from .shell import cancel_on_interrupt, forget_outputs, pipe_commands, watch_reset
from .snapshot import Rollback
from .trace import Cells, short_warning, trace

SOURCE = "tw_autogen"
MODEL_CALL = "call_llm_api"
"""Under this name the host serves the session's model, where it lets plugins in the kernel ask it."""


class Bridge:
    """Everything of ours that lives in a kernel.

    Args:
        shell: IPython's shell.
        options: `session_id`, `output_chars`, `result_chars`, `max_artifacts`, `max_artifact_bytes`, `arrow`;
            `rollback` (limits, see `Rollback`), where failed cells are undone; `checkpoint` (limits, see `Checkpoint`),
            where variables are to come back; `folder` and `environment`, where this process was made before its session
            was known; `wall`, what stands around it, see `Hints`; `packages`: `pip install` asks the host, who puts
            them there; empty: it never does; `remote`, where the host's folder is not seen from here: `environment`,
            `most_bytes`, and names of folders, see `settle_down`.
    """

    def __init__(self, shell: Any, options: Mapping[str, Any]) -> None:
        self._shell = shell
        if "folder" in options:
            os.chdir(options["folder"])
            os.environ.clear()
            os.environ.update(options["environment"])
        remote = options.get("remote")
        if remote:
            settle_down(remote["environment"], folder_name=remote["folder_name"], leftover=remote["leftover"])
            shell.history_manager.enabled = False  # a database on a disk, written behind each cell
            handlers = shell.kernel.shell_handlers
            handlers["execute_request"] = RunOnce(handlers["execute_request"])
        self._folder = Path.cwd()
        self._files = HostFiles(lambda **fields: self._calls.ask("files", op=FILES, **fields))
        self._remote = RemoteFolder(self._files, remote["most_bytes"]) if remote else None
        arrow = importlib.util.find_spec("pyarrow") is not None
        exchange = RemoteExchange(self._files) if remote else InsideExchange(self._folder)
        self._codec = Codec(exchange, arrow=arrow and bool(options["arrow"]))
        self._calls = HostCalls(shell.kernel, self._codec, self._remote)
        self._variables: dict[str, Any] = {}
        self._ctx = PluginContext(
            self._folder,
            session_id=options["session_id"],
            session_variables=self._variables,
            call_llm=self._ask_model,
            max_artifacts=options["max_artifacts"],
            max_artifact_bytes=options["max_artifact_bytes"],
        )
        self._functions: dict[str, Callable[..., Any]] = {}
        self._plugin_files: dict[str, str] = {}
        self._cells = Cells(self._forget)
        self._hints = Hints(str(self._folder), options.get("wall") or {})
        self._errors: list[str] = []
        self._was_reset = False
        self._display = Display(shell, self._ctx, options["result_chars"])
        self._streams = [LimitedStream(stream, options["output_chars"]) for stream in (sys.stdout, sys.stderr)]
        self._descriptors = Descriptors({1: sys.stdout, 2: sys.stderr})
        self._guard = Guard(self._folder)
        self._rollback = Rollback(shell.user_ns, **options["rollback"]) if options.get("rollback") else None
        limits = options.get("checkpoint")
        later = shell.kernel.io_loop.call_later
        self._checkpoint = Checkpoint(self._folder, shell.user_ns, later=later, **limits) if limits else None
        self._tune()
        if "packages" in options:
            Packages(lambda wanted: self._calls.call(INSTALL, (wanted,), {}), options["packages"]).hook(shell)

    def answer(self, request: str) -> None:
        """Do what the host asks and put the answer into the payload.

        Args:
            request: JSON of `op` (load, serve, put, get, hello, take, give) and what it needs.
        """
        asked = loads(request)
        try:
            with self._streams[0].muted(), self._streams[1].muted():
                answer = {"ok": getattr(self, f"_do_{asked['op']}")(asked)}
        except PluginProblem as error:
            answer = {"problem": error.problem, "line": error.line}
        except Exception as error:  # noqa: BLE001 - plugins and values are foreign code; the host is told
            answer = {"error": str(error), "type": type(error).__name__}
        answer["variables"] = self._user_variables()
        if self._remote and len(text := dumps(answer)) > PIECE:
            answer = {"file": self._codec.leave(text)}
        self._payload(dumps(answer))

    # What the host asks.

    def _do_hello(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        return {"python": platform.python_version(), "pid": os.getpid(), "arrow": self._codec.arrow}

    def _do_load(self, asked: Mapping[str, Any]) -> None:
        name, path = asked["name"], asked["path"]
        file = path or f"<plugin {name}>"
        several = self._plugin_files.get(file, name) != name  # an error in such a file is named for the file
        self._plugin_files[file] = Path(file).stem if several else name
        self._functions[name] = load_plugin(name, asked["source"], ctx=self._ctx, settings=asked["settings"], path=path)
        self._restore()

    def _do_serve(self, asked: Mapping[str, Any]) -> None:
        self._functions[asked["name"]] = self._calls.function(asked["name"], asked["doc"])
        self._restore()

    def _do_put(self, asked: Mapping[str, Any]) -> None:
        value = self._codec.unpack(asked["value"])
        self._shell.user_ns[asked["name"]] = value
        if asked["session"]:
            self._variables[asked["name"]] = value

    def _do_get(self, asked: Mapping[str, Any]) -> Any:
        name = asked["name"]
        if name not in self._shell.user_ns:
            raise KeyError(name)
        return self._codec.pack(self._shell.user_ns[name])

    def _do_take(self, asked: Mapping[str, Any]) -> list[str]:
        return self._remote.take(asked["files"]) if self._remote else []

    def _do_give(self, asked: Mapping[str, Any]) -> list[str]:
        return self._remote.give(asked["files"]) if self._remote else []

    def _do_rollback(self, asked: Mapping[str, Any]) -> list[tuple[str, str]] | None:
        """Undo the last cell, which the host had stopped, if that was not done yet."""
        undone = self._rollback.undo() if self._rollback else None
        self._restore()
        return undone

    def _do_checkpoint(self, asked: Mapping[str, Any]) -> None:
        if self._checkpoint:
            self._checkpoint.want(asked["position"], self._hidden(), urgent=asked["urgent"])

    def _do_checkpointed(self, asked: Mapping[str, Any]) -> dict[str, Any] | None:
        return self._checkpoint.header() if self._checkpoint else None

    def _do_read_checkpoint(self, asked: Mapping[str, Any]) -> list[tuple[str, str]]:
        left = self._checkpoint.read() if self._checkpoint else []
        self._restore()
        return left

    def answer_file(self, name: str) -> None:
        """Do what the host asks in a text that is longer than a message may be: it lies in the exchange."""
        self.answer(self._codec.find(name))

    # Around each cell.

    def _before(self, info: Any = None) -> None:
        self._guard.restore()
        self._descriptors.restore()
        for stream in self._streams:
            stream.begin()
        self._ctx.begin(self._shell.execution_count)
        self._display.begin((info.raw_cell if info else "") or "")
        self._errors.clear()
        self._was_reset = False
        self._restore()
        if self._checkpoint:
            self._checkpoint.begin_cell()
        if self._rollback:
            self._rollback.begin(info.raw_cell, hidden=self._hidden())

    def _name_cell(self, raw_code: str | None, code: str, number: int) -> str:
        """Name a cell for tracebacks, and remember its text under that name: IPython asks for it before it compiles."""
        self._cells.add(number, code if raw_code is None else raw_code)
        return f"<cell {number}>"

    def _forget(self, number: int) -> None:
        """Drop what IPython keeps of a cell for tracebacks."""
        name = f"<cell {number}>"
        self._shell.compile._filename_map.pop(name, None)
        linecache.cache.pop(name, None)

    def _after(self, result: Any = None) -> None:
        self._guard.restore()
        failed = result is None or not result.success
        self._guard.end_fork(failed)
        if not failed and self._errors:  # a chart that could not be drawn behind the cell
            print(self._errors[-1], file=sys.stderr)  # noqa: T201 - the cell's own stream
        error = (self._errors[-1] if self._errors else "") if failed else ""
        if self._checkpoint and not failed and result.info.raw_cell:
            self._checkpoint.note(result.info.raw_cell, self._shell.transform_cell)
        self._display.end()
        self._descriptors.drain()
        for stream in self._streams:
            stream.end()
        kept, logs = self._ctx.take()
        undone = self._rollback.end(failed=failed) if self._rollback else None
        self._restore()
        self._send(
            {
                "error": error,
                "result": self._display.result,
                "artifacts": [[one.name, one.kind, self._relative(one.path), one.preview] for one in kept],
                "logs": logs,
                "variables": self._user_variables(),
                **({} if undone is None else {"rollback": undone}),
                "reset": self._was_reset,
                **({"files": self._remote.changed()} if self._remote else {}),
            }
        )
        self._display.result = None

    def _relative(self, path: Path) -> str:
        return os.path.relpath(path, self._folder)

    def _show_error(self, exc_tuple: Any = None, *args: Any, **kwargs: Any) -> None:
        """Take the place of IPython's `showtraceback`, whose text is slow to make and long to read."""
        error = exc_tuple[1] if exc_tuple else sys.exc_info()[1]
        if error is not None:
            text = trace(error, self._cells, self._plugin_files, self._hints)
            self._errors.append(text)
            self._shell._last_traceback = [text]

    def _restore(self) -> None:
        """Put back what code may have deleted or overwritten."""
        self._shell.user_ns.update(self._functions)
        self._shell.user_ns.update(__builtins__=builtins, __name__="__main__")  # without them no line runs as it should

    def _reset(self) -> None:
        self._was_reset = True
        self._restore()

    def _user_variables(self) -> list[tuple[str, str, str]]:
        return describe(self._shell.user_ns, hidden=(self._functions, self._shell.user_ns_hidden))

    def _hidden(self) -> dict[str, Any]:
        return {**self._shell.user_ns_hidden, **self._functions}

    def _send(self, content: Mapping[str, Any]) -> None:
        """Send what a cell left; half a surrogate pair in it, which nobody can write to a file, becomes a `?`."""
        self._payload(dumps(content, ensure_ascii=False).encode("utf-8", "replace").decode())

    def _payload(self, report: str) -> None:
        self._shell.payload_manager.write_payload({"source": SOURCE, "report": report})

    def _ask_model(self, messages: Any, **kwargs: Any) -> Any:
        if MODEL_CALL not in self._functions:
            raise RuntimeError(
                "call_llm_api: this kernel has no model; let the plugin run in the host (`runs_in: host`) "
                "of a session that has one"
            )
        return self._calls.call(MODEL_CALL, (list(messages),), kwargs)

    def _tune(self) -> None:
        shell = self._shell
        shell.events.register("pre_run_cell", self._before)
        shell.events.register("post_run_cell", self._after)
        shell.showtraceback = shell.showsyntaxerror = shell.showindentationerror = self._show_error
        shell.compile.get_code_name = self._name_cell
        shell.ask_exit = _refuse_exit
        forget_outputs(shell)
        watch_reset(shell, self._reset)
        pipe_commands(shell)
        cancel_on_interrupt(shell.kernel)
        always_reply(shell.kernel)
        pack_anything(shell.kernel.session)
        say_less(shell.kernel, alone=self._remote is None)
        warnings.formatwarning = short_warning
        AfterImport("pandas", tune_pandas).install()
        install_names()


def _refuse_exit() -> None:
    raise SystemExit("exit() and quit() are not needed: a cell ends behind its last line")


def start(options: str) -> None:
    """Make the kernel's one bridge and hook it in; a second time nothing happens.

    Args:
        options: JSON, see `Bridge`.
    """
    package = sys.modules[__package__ or "tw_inside"]
    if not hasattr(package, "bridge_of_this_kernel"):
        from IPython import get_ipython  # deferred: the host imports this module too, to check it, without a shell

        package.bridge_of_this_kernel = Bridge(get_ipython(), loads(options))  # type: ignore[attr-defined]


def rehearse(text: str) -> None:
    """Do once, in a kernel that waits for a session, what takes long the first time.

    Args:
        text: Python that does nothing.
    """
    from IPython import get_ipython  # deferred, as in `start`

    shell: Any = get_ipython()
    importlib.util.find_spec("pyarrow")
    shell.run_cell(text, store_history=False, silent=True)
    shell.compile._filename_map.clear()  # no cell of the session's
    shell.display_formatter.format(1)
    describe(shell.user_ns, hidden=(shell.user_ns_hidden,))
    platform.python_version()


def answer(request: str) -> None:
    """Answer through the kernel's bridge."""
    _bridge().answer(request)


def answer_file(name: str) -> None:
    """Answer through the kernel's bridge what lies in a file."""
    _bridge().answer_file(name)


def _bridge() -> Bridge:
    bridge: Bridge = vars(_package())["bridge_of_this_kernel"]
    return bridge


def _package() -> types.ModuleType:
    return sys.modules[__package__ or "tw_inside"]
