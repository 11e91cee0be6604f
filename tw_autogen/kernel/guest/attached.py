"""The kernel's end of the bridge in a kernel that the user has open: no hook of IPython is replaced.

Answers travel in the payload of `execute_reply`, as those of `bridge`; output, results and errors of cells are read by
the host from the messages that any ipykernel sends.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
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
_ATTRIBUTE = "attached_session"


class AttachedSession:
    """Variables and served functions of one session in the user's kernel.

    Args:
        shell: IPython's shell.
        arrow: The host reads Arrow.
    """

    def __init__(self, shell: Any, *, arrow: bool) -> None:
        self._shell = shell
        self._client = self._client_of_request()
        files = HostFiles(lambda **fields: self._calls.ask("files", op=FILES, **fields))
        arrow = arrow and importlib.util.find_spec("pyarrow") is not None
        self.codec = Codec(RemoteTableStore(files), arrow=arrow)
        self._calls = HostCalls(self._ask, self.codec)
        self._functions: dict[str, Any] = {}
        self._hidden_by: dict[str, Any] = {}

    def answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a request of the host, with the user's variables.

        Args:
            asked: `op` (hello, serve, put, get, leave) and its arguments.
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

    def _ask(self, request: str) -> str:
        """Carry a request to the host; only from a cell or request of the host's own: the user's go to the user."""
        if self._client_of_request() != self._client:
            raise HostCallError("this function works in cells of the agent only; the running cell is the user's")
        return str(self._shell.kernel.raw_input(request))

    def _client_of_request(self) -> str:
        kernel = self._shell.kernel
        parent = kernel.get_parent("shell") if hasattr(kernel, "get_parent") else kernel._parent_header
        return str(parent.get("header", {}).get("session", ""))

    def _do_hello(self, asked: Mapping[str, Any]) -> dict[str, Any]:
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

    def _do_leave(self, asked: Mapping[str, Any]) -> None:
        """Restore the names that served functions had taken; variables stay."""
        names = self._shell.user_ns
        for name, function in self._functions.items():
            if names.get(name) is function:
                del names[name]
                if self._hidden_by[name] is not _MISSING:
                    names[name] = self._hidden_by[name]
        self._functions.clear()


def start(options: str) -> None:
    """Begin a session; what an earlier one has served is removed.

    Args:
        options: JSON, of which `arrow` counts.
    """
    from IPython import get_ipython  # deferred: the host imports this module too, to check it, without a shell

    package = sys.modules[__package__ or "tw_guest"]
    earlier = getattr(package, _ATTRIBUTE, None)
    if earlier is not None:
        earlier.answer({"op": "leave"})
    setattr(package, _ATTRIBUTE, AttachedSession(get_ipython(), arrow=bool(loads(options)["arrow"])))


def answer(request: str) -> None:
    """Answer a request and put the answer into the payload; after `leave` the bundle is removed from the process.

    Args:
        request: JSON, see `AttachedSession.answer`.
    """
    package = sys.modules[__package__ or "tw_guest"]
    session: AttachedSession = getattr(package, _ATTRIBUTE)
    asked = loads(request)
    report = dumps(session.answer(asked))
    session._shell.payload_manager.write_payload({"source": SOURCE, "report": report})
    if asked["op"] == "leave":
        remove_bundle(package.__name__)


def answer_file(name: str) -> None:
    """Answer a request that is longer than a message may be, and lies in a file of the exchange."""
    answer(getattr(sys.modules[__package__ or "tw_guest"], _ATTRIBUTE).codec.find(name))


def remove_bundle(package: str) -> None:
    """Remove our modules and their finder from this process.

    Args:
        package: The bundle's name.
    """
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "Bundled"]
    for name in [one for one in sys.modules if one == package or one.startswith(f"{package}.")]:
        del sys.modules[name]
