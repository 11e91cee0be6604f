"""One MCP server, held open by a task of an event loop: started, asked, seen when it ends, and closed."""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import math
import os
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Future
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tw_autogen.bounded_json import replace_half_pairs
from tw_autogen.errors import ConfigError, McpCallLostError, McpServerError
from tw_autogen.lazy_module import LazyModule
from tw_autogen.plugin.mcp.bounded_messages import ENCODING, LIMIT_WORDS, bounded_client
from tw_autogen.plugin.mcp.config import McpServer
from tw_autogen.private_files import open_private
from tw_autogen.safe_folder import SafeFolder
from tw_autogen.text_truncation import shortened

if TYPE_CHECKING:
    import anyio
else:
    anyio = LazyModule("anyio", also=("anyio._backends._asyncio",))

INSTALL = 'pip install "tw-autogen[mcp]"'
_LAST_BYTES = 2000
_START_LINES = 5
_LONGEST_ERROR = 1000
_HEAD = 200
_MAX_PAGES = 100
_MAX_TOOLS, _MAX_LISTED_CHARS = 1000, 2_000_000
_MAX_UNSENT = 4
_HTTP_SECONDS = 30.0
_STOP_SECONDS = 8.0
_CLOSED, _SESSION_GONE = -32000, -32600  # what the SDK's HTTP transport says of a server that is gone
_NOT_READ, _NO_SUCCESS = -32700, (-32603, "Server returned an error response")  # … and of an answer that it can't use

logging.getLogger("mcp").addHandler(logging.NullHandler())  # a line that is no message is no traceback for our user


def sdk(name: str = "mcp") -> ModuleType:
    """Load a module of the official SDK; deferred, because that takes a second or two.

    Raises:
        ConfigError: it is not installed, or too old.
    """
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(f"MCP servers need the package mcp, 2.3 or later: {INSTALL} ({error})") from error
    if name == "mcp" and not hasattr(module, "Client"):
        raise ConfigError(f"the package mcp here is too old; 2.3 or later is needed: {INSTALL}")
    return module


class McpConnection:
    """One process of a server: it is started once, and when it has ended it stays ended.

    Args:
        server: Which.
        log: The file to which its standard error goes.

    It is made, and its coroutines run, in one loop; `gone` and `describe` may be asked from any thread.
    """

    def __init__(self, server: McpServer, log: Path) -> None:
        self.gone = False
        self.tools: tuple[Mapping[str, Any], ...] = ()
        self._server = server
        self._log = log
        self._client: Any = None
        self._scope = anyio.CancelScope()
        self._over = anyio.Event()
        self._garbage = 0
        self._calls: set[anyio.CancelScope] = set()
        self._begun_at = log.stat().st_size if log.exists() else 0

    async def live(self, ready: Future[None], *, seconds: float) -> None:
        """Start the server, list its tools, and hold it until it ends or `stop` is called.

        Args:
            ready: Gets a result when tools are there, or the reason why they are not.
            seconds: How long that may take.
        """
        try:
            with self._scope:
                self._scope.deadline = anyio.current_time() + seconds
                async with sdk().Client(self._transport(), client_info=_client_info()) as client:
                    # A server's schema may take any time to match: a pattern such as `^(a+)+$`, choices that refer to
                    # one another. Code gets the value as it came, as it does from a tool without a schema.
                    client.session.validate_tool_result = _taken_as_it_is
                    self.tools = await _all_tools(client)
                    self._scope.deadline = math.inf
                    self._client = client
                    ready.set_result(None)
                    await self._over.wait()
            if self._scope.cancelled_caught and not ready.done():
                late = f"did not answer within {seconds:g} s of its start (plugin.mcp_start_seconds)"
                ready.set_exception(McpServerError(self._not_started(late)))
        except Exception as error:  # noqa: BLE001 - whatever the server or the SDK raises; a waiting thread is told
            if not ready.done():
                why = (
                    "ended while it started" if self._over.is_set() else f"could not be started ({_first_cause(error)})"
                )
                ready.set_exception(McpServerError(self._not_started(why)))
        finally:
            self.gone, self._client = True, None
            if not ready.done():
                ready.set_exception(McpServerError(self._not_started("was stopped while it started")))

    async def call(self, tool: str, arguments: Mapping[str, Any], *, seconds: float) -> Mapping[str, Any]:
        """Call a tool.

        Args:
            tool: Its name, as the server has it.
            arguments: By name; JSON values. Half a surrogate pair, which no server could be sent, becomes a `?`.
            seconds: How long the answer may take.

        Returns:
            The `CallToolResult`, as it travels.

        Raises:
            TimeoutError: no answer came; the server was told that nobody waits any more.
            McpServerError: the server is gone, and nothing was sent.
            McpCallLostError: the server ended meanwhile, or sent an answer that is no message of the protocol.
            MCPError: the SDK's, with the server's own words: it has not done what was asked.
        """
        if self.gone or self._client is None:
            raise McpServerError(self.describe("is not there any more"))
        result: Any = None
        unread = anyio.CancelScope()
        self._calls.add(unread)
        try:
            with anyio.fail_after(seconds), unread:
                result = await self._client.call_tool(tool, replace_half_pairs(dict(arguments)))
        except TimeoutError:
            raise TimeoutError(
                f"MCP server {self._server.name!r} did not answer {tool!r} within {seconds:g} s "
                "(plugin.mcp_call_seconds); ask for less, or split the work"
            ) from None
        except Exception as error:
            if self._is_server_gone(error):
                self.ended()
                raise McpCallLostError(self.describe(f"ended while {tool!r} ran")) from error
            if isinstance(error, sdk().MCPError) and not _is_unread(error):
                raise
            raise McpCallLostError(self._unreadable_message(tool, f" ({_first_cause(error)})")) from error
        finally:
            self._calls.discard(unread)
        if result is None:
            raise McpCallLostError(self._unreadable_message(tool))
        plain: Mapping[str, Any] = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        return plain

    def _unreadable_message(self, tool: str, why: str = "") -> str:
        return (
            f"MCP server {self._server.name!r} answered while {tool!r} ran, but not as the protocol says, "
            f"or with more than {LIMIT_WORDS}{why}; the fault is the server's"
        )

    async def stop(self) -> None:
        """End it: its input is closed, and if that doesn't help within seconds it is killed with its children."""
        self._over.set()
        if self._client is None:
            self._scope.cancel()
        else:
            self._scope.deadline = anyio.current_time() + _STOP_SECONDS

    def describe(self, what: str, *, lines: int = 1) -> str:
        """Return what happened, from any thread.

        Args:
            what: In words.
            lines: How many of the last lines that the server wrote to its standard error in this life stand behind it.
        """
        last = self._last_lines(lines)
        wrote = f" Lines on its standard output that are no messages: {self._garbage}."
        garbage = wrote if self._garbage and self._server.transport == "stdio" else ""
        last_output = f" Its last words: {last}" if last else ""
        return f"MCP server {self._server.name!r} {what}.{garbage}{last_output}"

    def _not_started(self, what: str) -> str:
        server = self._server
        return f"{server.origin}: {self.describe(what, lines=_START_LINES)}\n  It is reached by {server.words()}."

    def _last_lines(self, most: int) -> str:
        try:
            with SafeFolder(self._log.parent) as folder, folder.open_file(self._log.name) as file:
                file.seek(max(self._begun_at, os.fstat(file.fileno()).st_size - _LAST_BYTES))
                text = file.read().decode("utf-8", "replace").strip()
        except OSError:
            return ""
        lines = text.splitlines()[-most:]
        return ("\n" if len(lines) > 1 else "") + "\n".join(lines)

    def _is_server_gone(self, error: Exception) -> bool:
        """Return whether the server is gone, or has only said that something is wrong."""
        if self._over.is_set() or self._server.transport == "stdio":
            return self._over.is_set()
        return getattr(error, "code", _CLOSED) in (_CLOSED, _SESSION_GONE)

    @contextlib.asynccontextmanager
    async def _transport(self) -> AsyncIterator[tuple[Any, Any]]:
        """Open the way to the server, and see when it ends."""
        async with contextlib.AsyncExitStack() as stack:
            read, write = await stack.enter_async_context(self._open_streams(stack))
            answers = _AnswerStream(write)
            yield _WatchedStream(read, self, answers), answers

    def _open_streams(self, stack: contextlib.AsyncExitStack) -> Any:
        server = self._server
        if server.transport == "sse":
            return sdk("mcp.client.sse").sse_client(
                server.url, headers=dict(server.headers), httpx_client_factory=_sse_http_client
            )
        if server.transport == "http":
            return _streamable_http(server)
        log = stack.enter_context(open_private(self._log))
        wanted = sdk().StdioServerParameters(
            command=server.command,
            args=list(server.args),
            env=dict(server.env),
            cwd=server.cwd or None,
            encoding=ENCODING,
            encoding_error_handler="replace",
        )
        return sdk().stdio_client(wanted, errlog=log)

    def saw(self, item: Any) -> None:
        """Note what came that is no message; if it was meant to be one, nothing else will answer the open calls."""
        if isinstance(item, Exception):
            self._garbage += 1
            if _is_answer(item):
                for call in self._calls:
                    call.cancel()

    def ended(self) -> None:
        """Note that nothing more can come."""
        self.gone = True
        self._over.set()


class _Stream:
    """One of the SDK's streams, of which a subclass does something else."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def __aenter__(self) -> _Stream:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._inner.__aexit__(*error)


class _WatchedStream(_Stream):
    """A stream of messages that tells when it ends; the SDK has no other word for a server that is gone.

    Args:
        inner: The SDK's stream.
        connection: Whose it is.
        answers: While too many wait there, nothing more is read: the SDK has a task for each request of the server's.
    """

    def __init__(self, inner: Any, connection: McpConnection, answers: _AnswerStream) -> None:
        super().__init__(inner)
        self._connection = connection
        self._answers = answers

    def __aiter__(self) -> _WatchedStream:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def receive(self) -> Any:
        await self._answers.wait_for_room()
        try:
            item = await self._inner.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._connection.ended()
            raise
        self._connection.saw(item)
        return item


class _AnswerStream(_Stream):
    """A stream to the server that counts the answers which wait for the server to read them."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self._unsent = 0
        self._sent = anyio.Event()

    async def send(self, item: Any) -> None:
        is_answer = not hasattr(item.message, "method")  # while requests of ours wait, what it sends has to be read
        self._unsent += is_answer
        try:
            await self._inner.send(item)
        finally:
            self._unsent -= is_answer
            self._sent.set()

    async def wait_for_room(self) -> None:
        while self._unsent >= _MAX_UNSENT:
            self._sent = anyio.Event()
            await self._sent.wait()


@contextlib.asynccontextmanager
async def _streamable_http(server: McpServer) -> AsyncIterator[tuple[Any, Any]]:
    """Open the way to a server over HTTP; how long an answer may take is the call's business."""
    httpx = sdk("httpx2")
    times = httpx.Timeout(_HTTP_SECONDS, read=None)
    async with bounded_client(httpx, server.headers, timeout=times) as client:
        transport = sdk("mcp.client.streamable_http").streamable_http_client(server.url, http_client=client)
        async with transport as streams:
            yield streams[0], streams[1]


def _sse_http_client(headers: Any = None, timeout: Any = None, auth: Any = None) -> Any:
    return bounded_client(sdk("httpx2"), headers, timeout=timeout, auth=auth)


async def _taken_as_it_is(name: str, result: Any) -> None:
    """Check nothing, in place of the SDK's method of this name."""


def _client_info() -> Any:
    try:
        version = metadata.version("tw-autogen")
    except metadata.PackageNotFoundError:
        version = "0"
    return sdk("mcp_types").Implementation(name="tw-autogen", version=version)


async def _all_tools(client: Any) -> tuple[Mapping[str, Any], ...]:
    """List a server's tools, page by page.

    Raises:
        McpServerError: there are too many, or too much is said of them for any prompt.
    """
    tools: list[Mapping[str, Any]] = []
    cursor = None
    chars = 0
    for _ in range(_MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            tools.append(tool.model_dump(by_alias=True, mode="json", exclude_none=True))
            chars += len(json.dumps(tools[-1]))
            if len(tools) > _MAX_TOOLS or chars > _MAX_LISTED_CHARS:
                raise McpServerError(
                    f"it lists more than {_MAX_TOOLS} tools, or describes them in more than {_MAX_LISTED_CHARS} "
                    "characters"
                )
        cursor = page.next_cursor
        if not cursor:
            break
    return tuple(tools)


def _is_answer(error: Exception) -> bool:
    """Return whether what the SDK could not read is a message of the protocol by its look, and no stray print."""
    errors = getattr(error, "errors", None)  # pydantic's
    for one in errors(include_url=False, include_context=False) if callable(errors) else ():
        given = one.get("input")
        if isinstance(given, Mapping) and "jsonrpc" in given:
            return True
        if isinstance(given, str | bytes) and one.get("type") == "json_invalid":
            head = given[:_HEAD] if isinstance(given, str) else given[:_HEAD].decode("utf-8", "replace")
            return head.lstrip().startswith("{") and '"jsonrpc"' in head
    return False


def _is_unread(error: Any) -> bool:
    """Return whether an error is the HTTP transport's own, for an answer that can't be read, and not the server's."""
    return error.code == _NOT_READ or (error.code, error.message) == _NO_SUCCESS


def _first_cause(error: BaseException) -> str:
    """Return what went wrong first: task groups wrap one error in another."""
    inner = getattr(error, "exceptions", None)
    if inner:
        return _first_cause(inner[0])
    message = shortened(str(error), _LONGEST_ERROR)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
