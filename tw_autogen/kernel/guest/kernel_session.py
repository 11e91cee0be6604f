"""`KernelSession`: what a kernel holds for its session, and what the host may ask about it."""

from __future__ import annotations

import builtins
import importlib.util
import os
import platform
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .checkpoint import Checkpoint
from .codec import Codec
from .exchange_folder import InsideExchange
from .files.describe import Describer
from .host_calls import HostCalls
from .plugin import load_plugin
from .plugin_context import PluginContext
from .remote_files import FILES, HostFiles, RemoteFolder, RemoteTableStore
from .rollback import Rollback
from .source_imports import import_from_sources
from .variable_summary import describe

MODEL_CALL = "call_llm_api"
"""Under this name the host serves the session's model, where it lets plugins in the kernel ask it."""


class KernelSession:
    """Folder, plugins, served functions and variables of one session.

    Args:
        shell: IPython's shell.
        ask: Carries a request to the host; gives its answer.
        options: See `Bridge`.
    """

    def __init__(self, shell: Any, ask: Callable[[str], str], options: Mapping[str, Any]) -> None:
        self._shell = shell
        self.folder = Path.cwd()
        remote = options.get("remote")
        files = HostFiles(lambda **fields: self.calls.ask("files", op=FILES, **fields))
        self.remote = RemoteFolder(files, remote["max_bytes"]) if remote else None
        arrow = bool(options["arrow"]) and importlib.util.find_spec("pyarrow") is not None
        token = options["exchange"]
        self.codec = Codec(
            RemoteTableStore(files, token) if remote else InsideExchange(self.folder, token), arrow=arrow
        )
        self.calls = HostCalls(ask, self.codec, self.remote)
        self._variables: dict[str, Any] = {}
        self.ctx = PluginContext(
            self.folder,
            session_id=options["session_id"],
            session_variables=self._variables,
            call_llm=self._ask_model,
            max_artifacts=options["max_artifacts"],
            max_artifact_bytes=options["max_artifact_bytes"],
        )
        self._functions: dict[str, Callable[..., Any]] = {}
        self.plugin_files: dict[str, str] = {}
        self._rollback = Rollback(shell.user_ns, **options["rollback"]) if options.get("rollback") else None
        self._trial: tuple[str, Rollback] | None = None
        self._undoing: Rollback | None = None
        self.trying = False
        """Whether the running cell is undone however it ends."""
        limits = options.get("checkpoint")
        self._describer = Describer(self.folder)
        self._describer.install()
        later = shell.kernel.io_loop.call_later
        self.checkpoint = Checkpoint(self.folder, shell.user_ns, later=later, **limits) if limits else None

    def answer(self, asked: Mapping[str, Any]) -> Any:
        """Do what the host asks; give what it wants to know.

        Args:
            asked: `op` (hello, load, serve, put, get, take, give, try, rollback, checkpoint, finish_checkpoint,
                checkpointed, read_checkpoint, describe, list) and what it needs.
        """
        return getattr(self, f"_do_{asked['op']}")(asked)

    def variables(self) -> list[tuple[str, str, str]]:
        """Describe the user's own variables."""
        return describe(self._shell.user_ns, hidden=(self._functions, self._shell.user_ns_hidden))

    def hidden(self) -> dict[str, Any]:
        """Return the names that are not the user's while they still hold the same object."""
        return {**self._shell.user_ns_hidden, **self._functions}

    def begin_cell(self, code: str) -> None:
        """Copy what the cell may change, where it may have to be undone.

        Args:
            code: The cell.
        """
        trial, self._trial = self._trial, None
        self.trying = trial is not None and trial[0] == code
        self._undoing = trial[1] if trial is not None and self.trying else self._rollback
        if self._undoing:
            self._undoing.begin(code, hidden=self.hidden())

    def end_cell(self, *, failed: bool) -> list[tuple[str, str]] | None:
        """Undo the cell if it failed, or was to be undone anyway; see `Rollback.end`."""
        return self._undoing.end(failed=failed or self.trying) if self._undoing else None

    def repair(self) -> None:
        """Restore what code may have deleted or overwritten."""
        self._shell.user_ns.update(self._functions)
        self._shell.user_ns.update(__builtins__=builtins, __name__="__main__")  # without them no line runs as it should

    def _ask_model(self, messages: Any, **kwargs: Any) -> Any:
        if MODEL_CALL not in self._functions:
            raise RuntimeError(
                "call_llm_api: this kernel has no model; let the plugin run in the host (`runs_in: host`) "
                "of a session that has one"
            )
        return self.calls.call(MODEL_CALL, (list(messages),), kwargs)

    # What the host asks.

    def _do_hello(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        return {"python": platform.python_version(), "pid": os.getpid(), "arrow": self.codec.arrow}

    def _do_load(self, asked: Mapping[str, Any]) -> None:
        name, path = asked["name"], asked["path"]
        file = path or f"<plugin {name}>"
        several = self.plugin_files.get(file, name) != name  # an error in such a file is named for the file
        self.plugin_files[file] = Path(file).stem if several else name
        beside = path.replace("\\", "/").rpartition("/")[0] if path else ""
        if beside:
            import_from_sources(beside)
        self._functions[name] = load_plugin(name, asked["source"], ctx=self.ctx, settings=asked["settings"], path=path)
        self.repair()

    def _do_serve(self, asked: Mapping[str, Any]) -> None:
        self._functions[asked["name"]] = self.calls.function(asked["name"], asked["doc"])
        self.repair()

    def _do_put(self, asked: Mapping[str, Any]) -> None:
        value = self.codec.unpack(asked["value"])
        self._shell.user_ns[asked["name"]] = value
        if asked["session"]:
            self._variables[asked["name"]] = value

    def _do_get(self, asked: Mapping[str, Any]) -> Any:
        name = asked["name"]
        if name not in self._shell.user_ns:
            raise KeyError(name)
        return self.codec.pack(self._shell.user_ns[name])

    def _do_describe(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        files, seconds = [(path, name) for path, name in asked["files"]], asked["seconds"]
        described, joins = self._describer.describe_all(files, seconds=seconds, all_seconds=asked["all_seconds"])
        return {"files": described, "joins": joins}

    def _do_list(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        return self._describer.list_folder(
            asked["folder"], layouts=asked["layouts"], max_lines=asked["max_lines"], seconds=asked["seconds"]
        )

    def _do_take(self, asked: Mapping[str, Any]) -> list[str]:
        return self.remote.take(asked["files"]) if self.remote else []

    def _do_give(self, asked: Mapping[str, Any]) -> list[str]:
        return self.remote.send_to_host(asked["files"]) if self.remote else []

    def _do_try(self, asked: Mapping[str, Any]) -> None:
        """Undo the cell with this code when it ends, if it comes next."""
        self._trial = asked["code"], Rollback(self._shell.user_ns, **asked["limits"])

    def _do_rollback(self, asked: Mapping[str, Any]) -> list[tuple[str, str]] | None:
        """Undo the last cell, which the host had stopped, if that was not done yet."""
        undone = self._undoing.undo() if self._undoing else None
        self.repair()
        return undone

    def _do_checkpoint(self, asked: Mapping[str, Any]) -> None:
        if self.checkpoint:
            self.checkpoint.want(asked["position"], self.hidden(), urgent=asked["urgent"])

    def _do_finish_checkpoint(self, asked: Mapping[str, Any]) -> bool:
        return self.checkpoint is not None and self.checkpoint.finish(
            asked["position"], self.hidden(), asked["seconds"]
        )

    def _do_checkpointed(self, asked: Mapping[str, Any]) -> dict[str, Any] | None:
        return self.checkpoint.header() if self.checkpoint else None

    def _do_read_checkpoint(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        found = self.checkpoint.read(trust=asked["trust"]) if self.checkpoint else {}
        self.repair()
        return found
