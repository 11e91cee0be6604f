"""What the HTTP services share: the largest body of a request, a health route, and the endpoint of AG-UI runs.

Needs the extra `service`.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError
from sse_starlette import EventSourceResponse
from starlette.datastructures import Headers
from starlette.endpoints import HTTPEndpoint
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from tw_autogen.text_truncation import shortened

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES = 8 << 20
_MAX_READ_BYTES = 4 * MAX_BODY_BYTES
"""So much of a body that is too large is read and dropped: clients that are cut off while they send see no answer."""
HEALTH_PATH = "/healthz"
_TOO_LARGE = (
    f"The body has over {MAX_BODY_BYTES >> 20} MB ({MAX_BODY_BYTES:,} bytes), the most that this service takes."
)
_MAX_ID_CHARS = 1000
_MAX_ERRORS, _ERROR_CHARS = 3, 300


class HttpFront:
    """Stands before a whole HTTP service, its authentication too: refuses large bodies, and says that it is up.

    Args:
        app: The service, any ASGI application.

    A body of more than `MAX_BODY_BYTES`, with `Content-Length` or without, is answered with 413 and a sentence. No more
    than that is kept, and no more than four times that is read, after which the connection is closed.
    `GET /healthz` is answered `ok`.

    Source:
        As Starlette's `RequestBodyLimitMiddleware` (1.10 and later), which leaves it to a service that catches
        exceptions, as that of A2A does, to answer a chunked body with 200.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection; other protocols than HTTP are the service's."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["method"] in ("GET", "HEAD") and _path(scope) == HEALTH_PATH:
            await PlainTextResponse("ok")(scope, receive, send)
        else:
            await self._limited(scope, receive, send)

    async def _limited(self, scope: Scope, receive: Receive, send: Send) -> None:
        length = Headers(scope=scope).get("content-length", "")
        too_large = length.isdecimal() and int(length) > MAX_BODY_BYTES
        read = 0

        async def counted() -> Message:
            nonlocal read, too_large
            message = await receive()
            read += len(message.get("body", b""))
            if read > MAX_BODY_BYTES:
                too_large = True
                raise HTTPException(413, _TOO_LARGE)
            return message

        async def answer(message: Message) -> None:
            if not too_large:
                await send(message)

        if not too_large:
            try:
                await self._app(scope, counted, answer)
            except HTTPException:
                if not too_large:
                    raise
        if too_large:
            more = True
            while more and read < _MAX_READ_BYTES:
                message = await receive()
                read += len(message.get("body", b""))
                more = message.get("more_body", False)
            response = PlainTextResponse(_TOO_LARGE, status_code=413, headers={"Connection": "close"})
            await response(scope, receive, send)


def _path(scope: Scope) -> str:
    """Return the path below the place where the service is mounted."""
    return str(scope["path"]).removeprefix(scope.get("root_path", ""))


def ag_ui_endpoint(stream: Any, input_type: type[BaseModel], *, heartbeat_seconds: float = 15.0) -> HttpFront:
    """Return an ASGI application that answers a POST with the events of a run; also on any path below its own.

    Args:
        stream: An AG-UI stream with `dispatch`.
        input_type: The protocol's `RunAgentInput`.
        heartbeat_seconds: A comment is sent so often, so that no proxy takes a long cell for a dead connection.

    What is no JSON is answered with 400, and JSON that is no run with 422; both with what is wrong, and where.
    """

    class Endpoint(HTTPEndpoint):  # type: ignore[misc]  # untyped where the extra is not installed
        async def post(self, request: Request) -> Response:
            try:
                asked = input_type.model_validate_json(await request.body())
            except ValidationError as error:
                return PlainTextResponse(_words_of(error), status_code=400 if _is_no_json(error) else 422)
            if wrong := _unusable(asked):
                return PlainTextResponse(f"RunAgentInput: {wrong}", status_code=422)
            return EventSourceResponse(
                _encoded(stream.dispatch(asked, accept=request.headers.get("accept"))),
                headers={"Cache-Control": "no-cache"},
                ping=heartbeat_seconds,
                sep="\n",  # as in the events
            )

    return HttpFront(Endpoint)


async def _encoded(events: AsyncGenerator[str, None]) -> AsyncGenerator[bytes, None]:
    async with contextlib.aclosing(events):
        async for event in events:
            yield event.encode()


def _is_no_json(error: ValidationError) -> bool:
    return error.error_count() == 1 and error.errors(include_input=False)[0]["type"] == "json_invalid"


def _words_of(error: ValidationError) -> str:
    """Return the first of what is wrong, each with its place; no part of the input that was long."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    words = [shortened(f"{'.'.join(map(str, one['loc']))}: {one['msg']}", _ERROR_CHARS) for one in found[:_MAX_ERRORS]]
    more = [f"{len(found) - _MAX_ERRORS:,} more"] if len(found) > _MAX_ERRORS else []
    return f"RunAgentInput: {'; '.join([one.removeprefix(': ') for one in words] + more)}"


def _unusable(asked: Any) -> str:
    """Return what is wrong with a run that the protocol allows, but nobody can make; empty if nothing is."""
    if not 1 <= len(asked.thread_id) <= _MAX_ID_CHARS:
        return f"threadId: expected 1 to {_MAX_ID_CHARS} characters, got {len(asked.thread_id):,}"
    for index, message in enumerate(asked.messages):
        parts = message.content if isinstance(getattr(message, "content", None), list) else []
        kinds = [part.type for part in parts if part.type != "text"]
        if kinds:
            return f"messages.{index}.content: only text is taken, not {kinds[0]}"
    return ""
