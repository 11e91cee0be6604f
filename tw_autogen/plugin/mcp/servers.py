"""`McpServers`: the MCP servers of one session, on one thread with a loop of its own."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tw_autogen.approval import Approve
from tw_autogen.closing import Closing
from tw_autogen.errors import ConfigError, McpServerError
from tw_autogen.lazy_module import LazyModule
from tw_autogen.plugin.mcp.call_gate import ASK_SECONDS, Gate
from tw_autogen.plugin.mcp.config import McpServer
from tw_autogen.plugin.mcp.connection import McpConnection, sdk
from tw_autogen.plugin.mcp.python_names import identifier, tool_names
from tw_autogen.plugin.mcp.tool import Call, Tell, tool_spec
from tw_autogen.plugin.settings import McpApproval
from tw_autogen.plugin.spec import PluginSpec
from tw_autogen.private_files import make_private_folder

if TYPE_CHECKING:
    from anyio import from_thread
else:
    from_thread = LazyModule("anyio.from_thread")

_GRACE_SECONDS = 15.0
_MARGIN_SECONDS = 5.0


class McpServers(Closing):
    """The MCP servers of one session: started side by side, asked from any thread, ended together.

    Args:
        servers: Which; names are used once.
        folder: Where each server's standard error is kept, as `<name>.log`; not a folder that code can read.
        start_seconds: How long a server may take until its tools are listed.
        call_seconds: How long one call of a tool may take.
        approval: See `PluginSettings.mcp_approval`.
        approve: Asked where `approval` says so; None: nobody can be asked.
        still_trusted: Whether an `approval` of `never` still counts; asked before each call that it is about.
        check: Raises a ConfigError if a server that is gone must not be started again; None: each may.

    Raises:
        ConfigError: the SDK is missing, or a server does not start; the others are ended again.

    A server that dies is started again with the next call, and the code is told so; if it dies twice without an
    answer in between, it stays dead, and calls say so.

    Example:
        with McpServers(read_mcp_servers("mcp.json"), folder=logs) as servers:
            session = open_session(plugins=servers.specs())
    """

    def __init__(
        self,
        servers: Sequence[McpServer],
        *,
        folder: Path,
        start_seconds: float = 30.0,
        call_seconds: float = 120.0,
        approval: McpApproval = "writes",
        approve: Approve | None = None,
        still_trusted: Callable[[], bool] = lambda: True,
        check: Callable[[], None] | None = None,
    ) -> None:
        sdk()
        self._approval: McpApproval = approval
        self._approve = approve
        self._still_trusted = still_trusted
        self._asking = threading.Lock()
        make_private_folder(folder)
        self._closing = contextlib.ExitStack()
        portal = self._closing.enter_context(from_thread.start_blocking_portal())
        self._kept = [
            _RestartingServer(
                server,
                folder / f"{number}-{identifier(server.name, 'server')}.log",
                portal,
                start_seconds,
                call_seconds,
                check,
            )
            for number, server in enumerate(servers, 1)
        ]
        self._closing.callback(self._end)
        try:
            for kept, ready in [(kept, kept.start()) for kept in self._kept]:
                kept.wait(ready)
        except McpServerError as error:
            self.close()
            raise ConfigError(str(error)) from error
        except BaseException:
            self.close()
            raise

    def specs(self, taken: Collection[str] = ()) -> tuple[PluginSpec, ...]:
        """Return each tool as a plugin, server by server.

        Args:
            taken: Names of other plugins. A tool that is called like one of them, like another server's tool or like a
                function of Python's own gets its server's name in front; its description says so.
        """
        tools = {(kept.server.name, str(tool["name"])): (kept, tool) for kept in self._kept for tool in kept.tools}
        names = tool_names(tools, taken)
        wait = ASK_SECONDS if self._approve is not None else 0.0
        return tuple(
            tool_spec(
                tool,
                server=server,
                name=names[server, own],
                call=kept.caller(own),
                seconds=kept.max_seconds + wait,
                gate=Gate(
                    kept.server,
                    tool,
                    approval=self._approval,
                    approve=self._approve,
                    asking=self._asking,
                    still_trusted=self._still_trusted,
                ),
            )
            for (server, own), (kept, tool) in tools.items()
        )

    def close(self) -> None:
        """End all servers, and the thread; a second time nothing happens."""
        self._closing.close()

    def _end(self) -> None:
        ending = [kept.stop() for kept in self._kept]
        for one in ending:
            with contextlib.suppress(Exception):  # each is ended even if another one's end fails
                one.result(_GRACE_SECONDS)


class _RestartingServer:
    """One MCP server process, restarted at most once in a row."""

    def __init__(
        self,
        server: McpServer,
        log: Path,
        portal: from_thread.BlockingPortal,
        start_seconds: float,
        call_seconds: float,
        check: Callable[[], None] | None,
    ) -> None:
        self.server = server
        self._check = check
        self.tools: tuple[Mapping[str, Any], ...] = ()
        self.max_seconds = start_seconds + call_seconds + _MARGIN_SECONDS
        self._log = log
        self._portal = portal
        self._start_seconds = start_seconds
        self._call_seconds = call_seconds
        self._connection: McpConnection
        self._running: Future[None]
        self._lock = threading.Lock()
        self._failures = 0  # since the last answer
        self._counted: McpConnection | None = None
        self._closed = False

    def start(self) -> Future[None]:
        """Start the process; the future is done when its tools are listed."""
        ready: Future[None] = Future()
        connection = self._connection = self._portal.call(McpConnection, self.server, self._log)
        self._running = self._portal.start_task_soon(lambda: connection.live(ready, seconds=self._start_seconds))
        if self._closed:  # meanwhile, by another thread
            self._portal.call(connection.stop)
        return ready

    def wait(self, ready: Future[None]) -> None:
        """Wait until tools are listed.

        Raises:
            McpServerError: it did not start.
        """
        ready.result()
        self.tools = self._connection.tools

    def stop(self) -> Future[None]:
        """Begin to stop the process; the future is done when it has ended."""
        self._closed = True
        self._portal.call(self._connection.stop)
        return self._running

    def caller(self, tool: str) -> Call:
        """Return the function that calls one tool, from any thread."""

        def call(arguments: Mapping[str, Any], tell: Tell) -> Mapping[str, Any]:
            connection = self._live_connection(tell)
            try:
                answer: Mapping[str, Any] = self._portal.call(
                    lambda: connection.call(tool, arguments, seconds=self._call_seconds)
                )
            except McpServerError as error:
                if not connection.gone:  # it has answered, with what can't be read
                    raise
                with self._lock:
                    next_time = self._count_failure(connection)
                raise type(error)(f"{error}\n{next_time}") from error
            except sdk().MCPError:  # an answer too
                self._failures = 0
                raise
            self._failures = 0
            return answer

        return call

    def _live_connection(self, tell: Tell) -> McpConnection:
        """Return a connection that holds; a server that is gone is started again.

        Raises:
            McpServerError: it can't be, or has died too often.
        """
        with self._lock:
            if self._closed:
                raise McpServerError(f"MCP server {self.server.name!r} was ended with its session")
            gone = self._connection
            if not gone.gone:
                return gone
            next_time = self._count_failure(gone)
            if self._failures > 1:
                raise McpServerError(f"{gone.describe('is gone')}\n{next_time}")
            if self._check is not None:
                try:
                    self._check()
                except ConfigError as error:
                    raise McpServerError(f"{gone.describe('is gone')}\nIt is not started again: {error}") from error
            tell(f"MCP server {self.server.name!r} was gone and has been started again; what it remembered is lost")
            try:
                self.wait(self.start())
            except McpServerError as error:
                raise McpServerError(f"{error}\n{self._count_failure(self._connection)}") from error
            return self._connection

    def _count_failure(self, connection: McpConnection) -> str:
        """Count the end of a connection, once, and say what a later call can expect."""
        if self._counted is not connection:
            self._counted = connection
            self._failures += 1
        if self._closed:
            return "Its session is closed."
        if self._failures > 1:
            return "It has ended twice without an answer in between, and is not started again in this session."
        return "What it did is not known. It is started again with the next call; what it remembered is lost."
