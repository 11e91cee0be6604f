"""The kernel's end of the bridge in a kernel that the user has open: no hook of IPython is replaced.

Answers travel in the payload of `execute_reply`, as those of `bridge`; output, results and errors of cells are read by
the host from the messages that any ipykernel sends. Several hosts may be attached at once, each with a session here.
All that this module imports works on Python 3.9.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
import types
from collections.abc import Mapping
from json import dumps, loads  # held here: code may overwrite them in the module
from typing import Any

from .codec import Codec
from .host_calls import HostCallError, HostCalls
from .remote_files import FILES, PIECE, HostFiles, RemoteTableStore
from .report_marks import SOURCE
from .traceback_text import kind_of, own_words
from .variable_summary import describe

_MISSING = object()
_ATTRIBUTE = "attached_sessions"


class AttachedSession:
    """Variables and served functions of one session in the user's kernel.

    Args:
        shell: IPython's shell.
        sessions: Those of all hosts by the ids of their clients; this one is among them from `start` to `leave`.
        owner: Identifies the host's kernel object, which gets another client when it attaches again.
        host: The number of the host's process, if it is one of this machine; 0: not known.
        exchange: The token of the host's exchange, see `InsideExchange`.
        arrow: The host reads Arrow.
    """

    def __init__(
        self, shell: Any, sessions: dict[str, AttachedSession], *, owner: str, host: int, exchange: str, arrow: bool
    ) -> None:
        self._shell = shell
        self._sessions = sessions
        self.owner = owner
        self._host = host
        files = HostFiles(lambda **fields: self._calls.ask("files", op=FILES, **fields))
        arrow = arrow and importlib.util.find_spec("pyarrow") is not None
        self.codec = Codec(RemoteTableStore(files, exchange), arrow=arrow)
        self._calls = HostCalls(self._ask_host, self.codec)
        self._functions: dict[str, Any] = {}
        self._hidden_by: dict[str, Any] = {}

    def answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a request of the host, with the user's variables.

        Args:
            asked: `op` (hello, serve, put, get, restore, leave) and its arguments.
        """
        try:
            answer = {"ok": getattr(self, f"_do_{asked['op']}")(asked)}
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - values are foreign code; the host is told
            answer = {"error": own_words(error), "type": kind_of(error)}
        hidden = (self._functions, self._shell.user_ns_hidden)
        answer["variables"] = describe(self._shell.user_ns, hidden=hidden)
        text = dumps(answer)
        if len(text) > PIECE and asked["op"] != "hello":  # a cell's report has no input channel to wait for
            return {"file": self.codec.leave(text)}
        return answer

    def has_lost_its_host(self) -> bool:
        """Return whether the host's process has ended, without a word to this one."""
        if not self._host or os.name != "posix":
            return False
        try:
            os.kill(self._host, 0)
        except ProcessLookupError:
            return True
        except OSError:
            pass
        return False

    def _ask_host(self, request: str) -> str:
        """Carry a request to the host whose cell or request runs; in a cell of the user's it would reach the user.

        The host is not always this session's: where two serve one name, the later function stands there for both.
        """
        if client_of_request(self._shell.kernel) not in self._sessions:
            raise HostCallError("this function works in cells of the agent only; the running cell is the user's")
        return str(self._shell.kernel.raw_input(request))

    def _do_hello(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        self._do_restore(asked)
        arrow = self.codec.arrow
        return {"python": platform.python_version(), "pid": os.getpid(), "arrow": arrow, "folder": os.getcwd()}

    def _do_serve(self, asked: Mapping[str, Any]) -> None:
        name, names = asked["name"], self._shell.user_ns
        self._hidden_by.setdefault(name, names.get(name, _MISSING))
        names[name] = self._functions[name] = self._calls.function(name, asked["doc"])

    def _do_put(self, asked: Mapping[str, Any]) -> None:
        self._shell.user_ns[asked["name"]] = self.codec.unpack(asked["value"])

    def _do_get(self, asked: Mapping[str, Any]) -> Any:
        if asked["name"] not in self._shell.user_ns:
            raise KeyError(asked["name"])
        return self.codec.pack(self._shell.user_ns[asked["name"]])

    def _do_restore(self, asked: Mapping[str, Any]) -> None:
        """Restore served functions whose names are gone, as after `%reset`; a name with another value stays so."""
        for name, function in self._functions.items():
            if name not in self._shell.user_ns:
                self._hidden_by[name] = _MISSING
                self._shell.user_ns[name] = function

    def _do_leave(self, asked: Mapping[str, Any]) -> None:
        """Restore the names that served functions had taken; variables stay."""
        names = self._shell.user_ns
        for name, function in self._functions.items():
            hidden = self._hidden_by[name]
            if names.get(name) is function:
                del names[name]
                if hidden is not _MISSING:
                    names[name] = hidden
            for other in self._sessions.values():
                if other._hidden_by.get(name) is function:
                    other._hidden_by[name] = hidden
        self._functions.clear()


def client_of_request(kernel: Any) -> str:
    """Return the id of the client that sent the running request.

    Args:
        kernel: ipykernel's.
    """
    parent = kernel.get_parent("shell") if hasattr(kernel, "get_parent") else kernel._parent_header
    return str(parent.get("header", {}).get("session", ""))


def start(options: str) -> None:
    """Begin the session of the client that asks.

    What an earlier one of the same owner has served is removed, and what one has whose host has crashed.

    Args:
        options: JSON, of which `arrow`, `owner`, `host` and `exchange` count.
    """
    from IPython import get_ipython  # deferred: the host imports this module too, to check it, without a shell

    read, shell = loads(options), get_ipython()
    sessions: dict[str, AttachedSession] = vars(_package()).setdefault(_ATTRIBUTE, {})
    for client, earlier in list(sessions.items()):
        if earlier.owner == read["owner"] or earlier.has_lost_its_host():
            earlier.answer({"op": "leave"})
            del sessions[client]
    client = client_of_request(shell.kernel)
    names = ("owner", "host", "exchange", "arrow")
    sessions[client] = AttachedSession(shell, sessions, **{name: read[name] for name in names})


def answer(request: str) -> None:
    """Answer a request and put the answer into the payload; the bundle is removed when the last session leaves.

    Args:
        request: JSON, see `AttachedSession.answer`.
    """
    from IPython import get_ipython  # deferred, as above

    shell, package = get_ipython(), _package()
    sessions: dict[str, AttachedSession] = getattr(package, _ATTRIBUTE)
    client = client_of_request(shell.kernel)
    asked = loads(request)
    report = dumps(sessions[client].answer(asked))
    shell.payload_manager.write_payload({"source": SOURCE, "report": report})
    if asked["op"] == "leave":
        del sessions[client]
        if not sessions:
            remove_bundle(package.__name__)


def answer_file(name: str) -> None:
    """Answer a request that is longer than a message may be, and lies in a file of the exchange."""
    from IPython import get_ipython  # deferred, as above

    sessions: dict[str, AttachedSession] = getattr(_package(), _ATTRIBUTE)
    answer(sessions[client_of_request(get_ipython().kernel)].codec.find(name))


def _package() -> types.ModuleType:
    return sys.modules[__package__ or "tw_guest"]


def remove_bundle(package: str) -> None:
    """Remove our modules and their finder from this process.

    Args:
        package: The bundle's name.
    """
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "Bundled"]
    for name in [module for module in sys.modules if module == package or module.startswith(f"{package}.")]:
        del sys.modules[name]
