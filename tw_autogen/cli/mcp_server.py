"""The agent as an MCP server: four tools over one session, for one client.

What code has printed or named stands in results as of `inert_output`; what is in a file is given as it is.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import functools
import math
import mimetypes
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field, ValidationError

import tw_autogen
from tw_autogen.cli.signals import StopSignals, Terminated
from tw_autogen.conversation import AttachmentType
from tw_autogen.errors import RoundError, TwAutogenError, nearest, url_problem
from tw_autogen.events import ArtifactSaved, CellRan, CellStarted, CodeChecked, Event, PostClosed, RoundOpened
from tw_autogen.plugin.mcp import sdk
from tw_autogen.safe_folder import SafeFolder
from tw_autogen.session import AGENT_DESCRIPTION, USER, Answer, Session
from tw_autogen.text_escaping import inert_output, visible_line
from tw_autogen.text_truncation import first_of, shortened

T = TypeVar("T")

_TEXT_CHARS, _FILES_CHARS = 200_000, 10_000
_BYTES = 20 << 20
_LINE_CHARS = 200
_MAX_PATH_CHARS = 4096
_KILL_SECONDS = 10.0
"""After so long a call that was cancelled, and goes on, loses the process of its cell."""


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Ask(_Arguments):
    request: str = Field(min_length=1, description="what is wanted, in whole sentences")
    files: list[str] = Field(default_factory=list, description="paths of files that the request is about")


class _RunCode(_Arguments):
    code: str = Field(min_length=1, description="Python; variables of earlier code and requests exist")


class _Nothing(_Arguments):
    """No arguments."""


class _Artifact(_Arguments):
    name: str = Field(min_length=1, description="a file that an answer names, such as chart.png")


_TOOLS: Mapping[str, tuple[type[_Arguments], str]] = {
    "ask": (_Ask, f"{AGENT_DESCRIPTION} Gives the answer, and names the files that were made."),
    "run_code": (_RunCode, "Run Python in the same kernel, checked by the same rules, without asking a model."),
    "variables": (_Nothing, "List the variables that exist in the kernel."),
    "artifact": (_Artifact, "Give what is in a file that was made: text, a picture, or bytes."),
}
_READ_ONLY = ("variables", "artifact")


class AgentServer:
    """Serves one session to one client, one call at a time.

    Args:
        session: Stays the caller's.
        readable: Folders from which files may go along with a request; the first is the one to which names are
            relative.

    Raises:
        ConfigError: the SDK is missing.
    """

    def __init__(self, session: Session, readable: Sequence[Path]) -> None:
        self._session = session
        self._readable = readable
        self._types = sdk("mcp_types")
        self._turn: anyio.Lock

    def serve(self) -> None:
        """Serve over standard input and output until the client goes; nothing else gets to standard output.

        Raises:
            KeyboardInterrupt: a signal has ended it, as if the client had gone; `Terminated` for SIGTERM and SIGHUP.
        """
        with _input_that_ends() as end, StopSignals(end) as signals:
            try:
                anyio.run(self._serve)
            except BaseException as error:
                if not _is_broken_pipe(error):  # else the client has gone, and takes no results any more
                    raise
        if signals.pressed:
            raise Terminated(signals.terminated) if signals.terminated else KeyboardInterrupt

    async def _serve(self) -> None:
        self._turn = anyio.Lock()
        server = sdk("mcp.server.lowlevel").Server(
            "tw-autogen",
            version=tw_autogen.__version__,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            instructions=AGENT_DESCRIPTION,
        )
        async with sdk("mcp.server.stdio").stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    async def _list_tools(self, context: Any, params: Any) -> Any:
        tools = [
            self._types.Tool(
                name=name,
                description=about,
                input_schema={key: value for key, value in arguments.model_json_schema().items() if key != "title"},
                annotations=self._types.ToolAnnotations(read_only_hint=name in _READ_ONLY),
            )
            for name, (arguments, about) in _TOOLS.items()
        ]
        return self._types.ListToolsResult(tools=tools)

    async def _call_tool(self, context: Any, params: Any) -> Any:
        """Call a tool; what goes wrong is told to the client's model, in words."""
        if params.name not in _TOOLS:
            return self._error_result(f"there is no tool {params.name!r}{nearest(params.name, _TOOLS)}")
        try:
            given: Any = _TOOLS[params.name][0].model_validate(params.arguments or {})
            async with self._turn:
                if params.name == "ask":
                    return await self._ask(given, context)
                if params.name == "run_code":
                    return await self._run_code(given, context)
                return self._list_variables() if params.name == "variables" else self._read_artifact(given)
        except ValidationError as error:
            wrong = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
            return self._error_result(f"{params.name}: {wrong}")
        except RoundError as error:
            return self._error_result(error.in_words())
        except (TwAutogenError, OSError) as error:
            return self._error_result(str(error))

    async def _ask(self, given: _Ask, context: Any) -> Any:
        paths = [self._requested_file(name) for name in given.files]
        answer = await self._run_with_progress(functools.partial(self._session.ask, given.request, paths), context)
        return self._answer_result(answer, "answer", {"stop": answer.stop})

    async def _run_code(self, given: _RunCode, context: Any) -> Any:
        answer = await self._run_with_progress(functools.partial(self._session.run_code, given.code), context)
        ok = answer.round.posts[-1].content(AttachmentType.execution_status) == "SUCCESS"
        return self._answer_result(answer, "output", {"ok": ok}, is_error=not ok)

    def _list_variables(self) -> Any:
        found = self._session.code_variables()
        text = inert_output("\n".join(map(str, found))) or "There are none yet."
        plain = [
            {"name": one.name, "type": inert_output(one.type), "summary": inert_output(one.summary)} for one in found
        ]
        return self._text_result(text, structured={"variables": plain})

    def _read_artifact(self, given: _Artifact) -> Any:
        folder = self._session.folder
        name = given.name
        if Path(name).is_absolute() and Path(name).is_relative_to(folder):
            name = str(Path(name).relative_to(folder))
        try:
            with SafeFolder(folder) as opened, opened.open_file(name) as file:
                content = file.read(_BYTES + 1)
        except OSError as error:
            made = [str(artifact.path.relative_to(folder)) for artifact in self._session.artifacts]
            known = nearest(name, made) if made else "; none was made yet"
            return self._error_result(
                shortened(_inert_name(f"{name!r}: {error.strerror or error}{known}"), _FILES_CHARS)
            )
        if len(content) > _BYTES:
            return self._error_result(f"{name} has more than {_BYTES >> 20} MB; it lies at {folder / name}")
        mime = mimetypes.guess_type(name)[0] or "application/octet-stream"
        data = base64.b64encode(content).decode("ascii")
        if mime.startswith("image/") and mime != "image/svg+xml":
            block = self._types.ImageContent(type="image", data=data, mime_type=mime)
        else:
            block = self._text_or_bytes(folder / name, content, mime, data)
        return self._types.CallToolResult(content=[block])

    def _text_or_bytes(self, path: Path, content: bytes, mime: str, data: str) -> Any:
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            blob = self._types.BlobResourceContents(uri=path.as_uri(), mime_type=mime, blob=data)
            return self._types.EmbeddedResource(type="resource", resource=blob)
        if len(text) > _TEXT_CHARS:
            text = (
                f"{text[:_TEXT_CHARS]}\n… {len(text) - _TEXT_CHARS} characters left out; all of it: {_inert_name(path)}"
            )
        return self._types.TextContent(type="text", text=text)

    async def _run_with_progress(self, work: Callable[[], T], context: Any) -> T:
        """Run work of the session on a thread, with its events as progress.

        If the client cancels, the work is stopped, and its end is awaited: the next call sees what it has left.
        """
        loop = asyncio.get_running_loop()
        send, receive = anyio.create_memory_object_stream[str](math.inf)
        cancelled, ended = threading.Event(), anyio.CancelScope(shield=True)
        came: list[T] = []
        failure: Exception | None = None

        def tell(text: str) -> None:
            with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):  # nobody waits for it
                send.send_nowait(text)

        def take(event: Event) -> None:
            if isinstance(event, RoundOpened) and cancelled.is_set():
                self._session.interrupt()  # the session forgets an interrupt that comes before its round
            if text := inert_output(_progress_line(event)):
                loop.call_soon_threadsafe(tell, text)

        async def pass_on() -> None:
            async with receive:
                number = 0
                async for text in receive:
                    number += 1
                    await context.session.report_progress(number, None, text)

        async def stop_if_cancelled() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                if not ended.cancel_called:
                    cancelled.set()
                    self._session.interrupt()
                    with ended:
                        await anyio.sleep(_KILL_SECONDS)
                        self._session.interrupt(kill=True)

        self._session.subscribe(take)
        try:
            async with anyio.create_task_group() as group, anyio.create_task_group() as watch, send:
                group.start_soon(pass_on)
                watch.start_soon(stop_if_cancelled)
                try:
                    came.append(await anyio.to_thread.run_sync(work))
                except Exception as error:  # noqa: BLE001 - raised again below: a group would wrap it
                    failure = error
                finally:
                    ended.cancel()
                    watch.cancel_scope.cancel()
        finally:
            self._session.unsubscribe(take)
        if failure is not None:
            raise failure
        return came[0]

    def _requested_file(self, name: str) -> Path:
        """Return a file that a request may bring, with the links on its way, which the session follows or refuses.

        Raises:
            FileNotFoundError: there is none, or it lies where code may not read.
        """
        if len(name) > _MAX_PATH_CHARS:  # no system would open it, and it takes quadratic time to resolve
            raise FileNotFoundError(f"a file's name of {len(name)} characters: there is no such file")
        if problem := url_problem(name):
            raise FileNotFoundError(f"{name!r} is {problem}")
        folders = ", ".join(map(str, self._readable)) or "none"
        try:
            named = Path(self._readable[0] if self._readable else ".", Path(name).expanduser()).absolute()
            path = named.resolve()
        except (RuntimeError, ValueError):  # no such user's home, a loop of links, or a NUL in it
            raise FileNotFoundError(f"{name!r}: there is no such file") from None
        own = path.is_relative_to(self._session.folder)
        if not own and ".tw" in path.parts:
            raise FileNotFoundError(f"{name!r} lies among sessions (.tw), which no request may bring")
        if not own and not any(path.is_relative_to(folder) for folder in self._readable):
            raise FileNotFoundError(
                f"{name!r} lies in no folder that may be read here ({folders}); start the server with -C FOLDER, or "
                "with --set kernel.read=FOLDER"
            )
        if not path.is_file():
            raise FileNotFoundError(f"{name!r}: there is no file {path}")
        return named

    def _answer_result(self, answer: Answer, key: str, structured: Mapping[str, Any], *, is_error: bool = False) -> Any:
        """Return a result; its structured content has the words under this key, and names of files as they are."""
        folder, words = self._session.folder, answer.round.last_words if answer.text else ""
        made = [
            {
                "name": str(
                    artifact.path.relative_to(folder) if artifact.path.is_relative_to(folder) else artifact.path
                ),
                "kind": artifact.kind,
                "path": str(artifact.path),
                "preview": inert_output(artifact.preview),
            }
            for artifact in answer.artifacts
        ]
        lines = [
            f"- {_inert_name(one['name'])}{': ' if one['preview'] else ''}{_first_line(one['preview'])}" for one in made
        ]
        listed = first_of(lines, _FILES_CHARS)
        files = "\n".join(["Files (the tool `artifact` gives what is in them):", *listed]) if lines else ""
        text = "\n\n".join(part for part in (words, files) if part) or "(no output)"
        structured = {key: words, **structured, "artifacts": made[: len(listed)]}
        return self._text_result(text, structured=structured, is_error=is_error)

    def _text_result(self, text: str, *, structured: Mapping[str, Any] | None = None, is_error: bool = False) -> Any:
        block = self._types.TextContent(type="text", text=text)
        return self._types.CallToolResult(content=[block], structured_content=structured, is_error=is_error)

    def _error_result(self, message: str) -> Any:
        return self._text_result(inert_output(message), is_error=True)


@contextlib.contextmanager
def _input_that_ends() -> Iterator[Callable[[], None]]:
    """Read standard input through a pipe; yield what ends it for its reader, also while the client keeps it open."""
    client = os.dup(sys.stdin.fileno())
    read, write = os.pipe()
    os.dup2(read, sys.stdin.fileno())
    os.close(read)
    guard, ended = threading.Lock(), threading.Event()

    def end() -> None:
        with guard:
            if not ended.is_set():
                ended.set()
                os.close(write)

    def pass_on() -> None:
        with contextlib.suppress(OSError):
            while part := os.read(client, 1 << 16):
                while part:
                    with guard:
                        if ended.is_set():
                            return
                        part = part[os.write(write, part) :]
        end()

    threading.Thread(target=pass_on, name="input", daemon=True).start()
    try:
        yield end
    finally:
        end()


def _is_broken_pipe(error: BaseException) -> bool:
    """Return whether an error, or each of a group, is that nobody reads the output."""
    parts = getattr(error, "exceptions", ())
    return all(map(_is_broken_pipe, parts)) if parts else isinstance(error, BrokenPipeError)


def _progress_line(event: Event) -> str:
    """Describe in a line what has just happened; empty for what a client need not know."""
    if isinstance(event, PostClosed) and event.post.send_from != USER:
        return f"{event.post.send_from} to {event.post.send_to}: {_first_line(event.post.message)}"
    if isinstance(event, CodeChecked) and event.findings:
        return f"code was refused: {_first_line(event.findings[0])}"
    if isinstance(event, CellStarted):
        return f"cell {event.cell} runs"
    if isinstance(event, CellRan):
        return f"cell {event.cell} {'ran' if event.ok else 'failed'} in {event.seconds:.1f} s"
    return f"made {_inert_name(event.name)}" if isinstance(event, ArtifactSaved) else ""


def _inert_name(path: object) -> str:
    """Return the name of a file on one line, which begins no block of code and no image."""
    return inert_output(visible_line(str(path)))


def _first_line(text: str) -> str:
    return shortened(next(iter(text.strip().splitlines()), ""), _LINE_CHARS)
