"""`HttpClient`: requests to an OpenAI-compatible server: tries, refusals, answers that come in pieces."""

from __future__ import annotations

import email.utils
import json
import math
import os
import random
import re
import threading
import time
from codecs import BOM_UTF8
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from tw_autogen import bounded_json
from tw_autogen.deadline import TracedSockets, finish_within, parts_within
from tw_autogen.errors import ConfigError
from tw_autogen.lazy_module import LazyModule
from tw_autogen.model.model_request import report_delay

if TYPE_CHECKING:
    import httpx
else:
    httpx = LazyModule("httpx", also=("certifi", "encodings.idna", "httpcore", "importlib.readers"))  # takes 0.2 s

_CONNECT_SECONDS = 10.0
_TRIED_AGAIN = (408, 409, 429)
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 8.0
_LONGEST_EVENT_BYTES = 16 << 20
_LONGEST_ANSWER_BYTES = 64 << 20
LONGEST_WAIT_SECONDS = 120.0
"""A server that wants to be left alone for longer is not asked again."""
_HEADER_VARIABLES = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
_HEADER_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_OUT_OF_QUOTA = re.compile(
    r"insufficient_quota|insufficient_balance|billing_(hard_limit|not_active)|exceeded your current quota"
)
_LOADING = re.compile(r"\b(loading|warming up|starting up)\b", re.I)
_LOADING_FAILED = re.compile(r"\b(error|fail\w{0,4}|cannot|unable)\b", re.I)
_PAUSE = re.compile(
    r"\b(?:retry|try again) in (?=\d)(?:(?P<h>\d{1,4})h)?(?:(?P<m>\d{1,5})m(?!s))?"
    r"(?:(?P<s>\d{1,6}(?:\.\d{1,9})?)(?P<ms> ?m)? ?s)?",
    re.I,
)
"""The pause that Google, OpenAI and Groq want, in the words of their refusals: `34.07s`, `6ms`, `2m59.56s`."""

DONE = object()
"""What comes last of a stream that is whole."""
_TOO_LARGE = re.compile(r"request too large", re.I)


class ServerRefusal(Exception):
    """The server answered with an error status.

    Args:
        status_code: The status.
        body: The `error` of its JSON, else that JSON, else its text.
        tries: How often the request was sent.
        asked_for: After how many seconds the server wants to be asked again; None: it doesn't say, or at once.
    """

    def __init__(self, status_code: int, body: object, tries: int, asked_for: float | None = None) -> None:
        super().__init__(f"Error code: {status_code}")
        self.status_code = status_code
        self.body = body
        self.tries = tries
        self.asked_for = asked_for
        fields = body if isinstance(body, dict) else {}
        self.code = str(fields.get("code") or "")
        self.param = str(fields.get("param") or "")


class UnsendableRequest(Exception):
    """A request can't be written as JSON: it holds half a character, or a number that is none."""


@dataclass(frozen=True)
class NonStreamedResponse:
    """JSON that came in place of a stream.

    Args:
        data: What it says.
    """

    data: Any


class ConnectionFailed(Exception):
    """No connection, or none that lasted until an answer began, in any of the tries."""


def is_out_of_quota(message: str) -> bool:
    """Return True if a refusal means that further calls fail until the account has credit.

    One that names a pause, as Google's for requests per minute does in the same words, means that pause.

    Example:
        >>> is_out_of_quota('{"error": {"code": "insufficient_quota"}}'), is_out_of_quota("slow down, please")
        (True, False)
    """
    return _OUT_OF_QUOTA.search(message) is not None and _pause_in(message) is None


def is_request_too_large(message: str) -> bool:
    """Return True if a refusal, even one for the rate of tokens (429), is meant for ever: for this one request's size.

    Example:
        >>> is_request_too_large("Request too large for gpt-4o on tokens per min"), is_request_too_large("Slow down")
        (True, False)
    """
    return _TOO_LARGE.search(message) is not None


@dataclass(frozen=True)
class _Line:
    """A client of httpx for one request at a time, with the sockets of the connections that it keeps."""

    http: httpx.Client
    sockets: TracedSockets = field(default_factory=TracedSockets)


class HttpClient:
    """A client of one server; threads may share it.

    A proxy of the environment is used, except for a server on this machine. A redirect is not followed: it is an error
    that names where it leads, since the request's headers and words are for this server.

    Args:
        url: The server's address; paths are put behind its own.
        key: Sent as a bearer token; empty: a word that servers without keys ignore.
        trust_env: Whether proxies and certificates that the environment names are used.
        environment_headers: Send the headers that OPENAI_CUSTOM_HEADERS, OPENAI_ORG_ID and OPENAI_PROJECT_ID say.
    """

    def __init__(self, url: str, key: str, *, trust_env: bool, environment_headers: bool) -> None:
        self._url = httpx.URL(url)
        headers = {"Authorization": f"Bearer {key or 'no-key-needed'}", "User-Agent": "tw-autogen"}
        headers["Accept-Encoding"] = "identity"  # what is packed may be any size
        self._headers = {**headers, **(_environment_headers() if environment_headers else {})}
        self._trust_env = trust_env
        self._idle, self._closed = [self._new_line()], False

    def close(self) -> None:
        """Close its connections, once nothing is read from them."""
        self._closed = True
        while self._idle:
            self._idle.pop().http.close()

    def get(self, path: str, *, seconds: float) -> Any:
        """Return the JSON of an answer after one try.

        Args:
            path: Such as `/models`.
            seconds: How long the server may be silent, and how long its answer may come.

        Raises:
            ServerRefusal: an error status.
            ConnectionFailed: no connection.
            ValueError: the answer is said to be JSON and is none, or is longer than 64 MB.
            httpx.HTTPError: the connection broke in the middle of the answer.
        """
        with self._request_with_retries("GET", path, None, seconds=seconds, max_tries=1) as answer:
            return answer.json()

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        seconds: float,
        max_tries: int,
        abandoned: threading.Event | None = None,
    ) -> Any:
        """Return the JSON of an answer, or its text if it is no JSON; raises as `get` does.

        Args:
            path: Such as `/chat/completions`.
            body: Sent as JSON.
            seconds: How long the server may be silent.
            max_tries: How often the request is sent while the server is busy (429), failing (5xx) or out of reach; one
                that loads its model is waited for as long as it may be silent.
            abandoned: Once set, the request is not sent again.
        """
        with self._request_with_retries(
            "POST", path, body, seconds=seconds, max_tries=max_tries, abandoned=abandoned
        ) as answer:
            return answer.json()

    def stream(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        seconds: float,
        max_tries: int,
        abandoned: threading.Event | None = None,
    ) -> Generator[Any, None, None]:
        """Yield the JSON of each event of an answer, and `DONE` where it ends as a stream should.

        Of a server that passes over `stream` what comes is one `NonStreamedResponse`.

        Args:
            path: As of `post`, and so the rest.
            body: What is sent as JSON.
            seconds: How long to wait for the answer, or its next part.
            max_tries: How often to ask.
            abandoned: Set when nobody waits any more.

        Raises:
            ValueError: an event is no JSON, or longer than 16 MB, or the whole longer than 64 MB.
            httpx.HTTPError: the connection broke in the middle of the answer.
            ServerRefusal, ConnectionFailed: as `get`.
        """
        with (
            self._request_with_retries(
                "POST", path, body, seconds=seconds, max_tries=max_tries, abandoned=abandoned
            ) as answer,
            closing(answer.pieces(each=True)) as pieces,
        ):
            first = b""
            while not first.strip() and (piece := next(pieces, None)) is not None:  # blanks keep a connection open
                first = piece
            first = first.removeprefix(BOM_UTF8)
            pieces_of_all = chain([first], pieces)
            if first.lstrip().startswith(b"{"):
                yield NonStreamedResponse(bounded_json.loads(_join_bounded(pieces_of_all)))
                return
            for event in event_data(pieces_of_all):
                if event.startswith(b"[DONE]"):
                    yield DONE
                    return
                yield bounded_json.loads(event)

    @contextmanager
    def _request_with_retries(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        *,
        seconds: float,
        max_tries: int,
        abandoned: threading.Event | None = None,
    ) -> Iterator[_Answer]:
        """Send a request until it is answered; the answer is to be read while this is entered.

        The SDK of OpenAI waits and tries as this does; httpx itself tries again only where no connection was made.
        """
        url = self._url.copy_with(path=self._url.path.rstrip("/") + path)
        stopped, tries, waits = abandoned or threading.Event(), 0, 0
        began = time.monotonic()
        while True:
            tries += 1
            if stopped.is_set():
                raise ConnectionFailed("nobody waits for this call any more")
            pause = pause_after(tries + waits)
            with self._borrow_line() as line:
                try:
                    request = line.http.build_request(
                        method,
                        url,
                        json=body,
                        timeout=httpx.Timeout(seconds, connect=_CONNECT_SECONDS),
                        extensions={"trace": line.sockets},
                    )
                except (ValueError, TypeError) as error:
                    raise UnsendableRequest(str(error)) from error
                try:
                    response = _send_request(line, request, seconds + _CONNECT_SECONDS)
                except (httpx.HTTPError, TimeoutError) as error:
                    if tries >= max_tries:
                        raise ConnectionFailed(str(error) or type(error).__name__) from error
                    stopped.wait(pause)
                    continue
                answer = _Answer(response, line.sockets, seconds, abandoned)
                try:
                    if response.is_success:
                        yield answer
                        return
                    refusal = answer.refusal(tries)
                finally:
                    response.close()
            longer = max(pause, refusal.asked_for or 0.0)
            if _is_loading(refusal) and max_tries > 1 and time.monotonic() - began + longer < seconds:
                report_delay(f"the server still loads its model ({refusal.status_code})")
                tries, waits = tries - 1, waits + 1
                stopped.wait(longer)
                continue
            if not _may_try_again(refusal, response.headers) or tries >= max_tries:
                raise refusal
            _report_retry(refusal.status_code, tries + 1, max_tries, refusal.asked_for)
            stopped.wait(refusal.asked_for or pause)

    @contextmanager
    def _borrow_line(self) -> Iterator[_Line]:
        """Lend a line to one request: with a pool that requests share, nobody knows which connection one waits for."""
        try:
            line = self._idle.pop()
        except IndexError:
            line = self._new_line()
        try:
            yield line
        finally:
            if not line.sockets.ended:  # else a thread may still be about to see that
                self._idle.append(line)
            if self._closed:
                self.close()

    def _new_line(self) -> _Line:
        return _Line(httpx.Client(trust_env=self._trust_env, headers=self._headers))


def _send_request(line: _Line, request: httpx.Request, seconds: float) -> httpx.Response:
    return finish_within(seconds, lambda: line.http.send(request, stream=True), line.sockets.end)


@dataclass(frozen=True)
class _Answer:
    """An answer of which the head has come.

    Args:
        response: The head; it reads the rest.
        sockets: What it reads from.
        seconds: How long the rest, or each part of a stream, may take.
        abandoned: Set when nobody waits any more.
    """

    response: httpx.Response
    sockets: TracedSockets
    seconds: float
    abandoned: threading.Event | None

    def json(self) -> Any:
        """Return its JSON, whatever it is said to be; the text of what is none, such as a web page.

        Raises:
            ValueError: it is said to be JSON and is none, or is longer than 64 MB.
            ConnectionFailed: it took too long.
        """
        kind = self.response.headers.get("content-type", "").partition(";")[0].strip().lower()
        whole = self._read_all()
        try:
            return bounded_json.loads(whole)
        except ValueError:
            if kind.endswith("json"):
                raise
            return _decode_text(whole)

    def refusal(self, tries: int) -> ServerRefusal:
        """Return what an error status and the rest say, as far as that comes.

        Args:
            tries: How often the request was sent.
        """
        response = self.response
        body: Any = None
        if response.has_redirect_location:
            other = response.headers["location"].partition("?")[0]
            body = f"the server is at {other!r} now, it says: set that address"
            return ServerRefusal(response.status_code, body, tries)
        with suppress(httpx.HTTPError, ConnectionFailed, ValueError):  # the status is what there is
            whole = self._read_all()
            try:
                body = bounded_json.loads(whole)
            except ValueError:
                body = _decode_text(whole).strip()
        body = body[0] if isinstance(body, list) and len(body) == 1 else body  # Google's
        body = body.get("error") or body if isinstance(body, dict) else body
        pause = _wanted_pause(response.headers) or _pause_in(json.dumps(body))
        return ServerRefusal(response.status_code, body, tries, pause)

    def pieces(self, *, each: bool = False) -> Generator[bytes, None, None]:
        """Yield it as it comes.

        Args:
            each: The time is that of each piece.

        Raises:
            ValueError: it is packed.
            ConnectionFailed: it took too long, or nobody waits for it.
            httpx.ReadTimeout: the next piece took too long.
        """
        if (packed := self.response.headers.get("content-encoding", "identity").lower()) != "identity":
            raise ValueError(f"its answer is packed ({packed}), which was not asked for")
        raw = self.response.iter_raw()
        limited = parts_within(self.seconds, raw, self.sockets.end, each=each, abandoned=self.abandoned)
        try:
            with closing(limited):
                yield from limited
        except TimeoutError as error:
            if each and not (self.abandoned and self.abandoned.is_set()):
                raise httpx.ReadTimeout("no whole part of its answer came in time") from error
            raise ConnectionFailed(str(error)) from error

    def _read_all(self) -> bytes:
        with closing(self.pieces()) as pieces:
            return _join_bounded(pieces)


def _join_bounded(pieces: Iterable[bytes]) -> bytes:
    kept, bytes_left = [], _LONGEST_ANSWER_BYTES
    for piece in pieces:
        kept.append(piece)
        bytes_left -= len(piece)
        if bytes_left < 0:
            raise _too_long(_LONGEST_ANSWER_BYTES)
    return b"".join(kept)


def event_data(pieces: Iterable[bytes]) -> Iterator[bytes]:
    r"""Yield the data of each event of a `text/event-stream`.

    Args:
        pieces: The stream, cut anywhere.

    Raises:
        ValueError: an event is longer than 16 MB.

    Example:
        >>> list(event_data([b"data: 1\n", b"\ndata: 2\r\n\r\n: comment\n\ndata:3"]))
        [b'1', b'2', b'3']
    """
    data: list[bytes] = []
    bytes_left = _LONGEST_EVENT_BYTES
    for line in _lines(pieces):
        if line.startswith(b"data:"):
            if len(data) == 1 and _is_json(data[0]):  # some servers leave out the empty line behind an event
                yield data.pop()
                bytes_left = _LONGEST_EVENT_BYTES
            data.append(line[len(b"data:") :].strip())
            bytes_left -= len(line)
            if bytes_left < 0:
                raise _too_long(_LONGEST_EVENT_BYTES)
        elif not line.strip() and data:
            yield b"\n".join(data)
            data, bytes_left = [], _LONGEST_EVENT_BYTES
    if data:
        yield b"\n".join(data)


def _is_json(data: bytes) -> bool:
    try:
        bounded_json.loads(data)
    except ValueError:
        return False
    return True


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a stream; not as `str.splitlines` does, since JSON may hold U+2028 as it is."""
    begun: list[bytes] = []  # joined once for each line: a long one may come in any number of pieces
    bytes_left = _LONGEST_EVENT_BYTES
    for piece in pieces:
        first, *others = piece.split(b"\n")
        begun.append(first)
        bytes_left -= len(first)
        if bytes_left < 0:
            raise _too_long(_LONGEST_EVENT_BYTES)
        if others:
            yield b"".join(begun)
            yield from others[:-1]
            begun, bytes_left = [others[-1]], _LONGEST_EVENT_BYTES - len(others[-1])
    yield b"".join(begun)


def _too_long(max_bytes: int) -> ValueError:
    return ValueError(f"it is longer than {max_bytes >> 20} MB")


def _environment_headers() -> dict[str, str]:
    for name in ("OPENAI_CUSTOM_HEADERS", *_HEADER_VARIABLES.values()):
        if not os.environ.get(name, "").isascii():
            raise ConfigError(f"{name}: it holds a character that no header has")
    found = {header: value for header, name in _HEADER_VARIABLES.items() if (value := os.environ.get(name, "").strip())}
    for line in os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines():
        name, colon, value = line.partition(":")
        if colon and not _HEADER_NAME.fullmatch(name.strip()):
            raise ConfigError(f"OPENAI_CUSTOM_HEADERS: it holds {name.strip()!r}, which is no name of a header")
        if colon:
            found[name.strip()] = value.strip()
    return found


def _decode_text(body: bytes) -> str:
    return body.decode("utf-8", "replace")


def _may_try_again(refusal: ServerRefusal, headers: Mapping[str, str]) -> bool:
    """Return True if the same request may be answered later."""
    if refusal.asked_for is not None and refusal.asked_for > LONGEST_WAIT_SECONDS:
        return False
    body = json.dumps(refusal.body)
    if refusal.status_code == 429 and (is_out_of_quota(body) or is_request_too_large(body)):
        return False
    told = headers.get("x-should-retry")
    if told in ("true", "false"):
        return told == "true"
    return may_pass(refusal.status_code)


def may_pass(status: int) -> bool:
    """Return True if an error status may be gone with the next try of the same request."""
    return status in _TRIED_AGAIN or status >= 500


def pause_after(tries: int) -> float:
    """Return how many seconds to wait after a number of tries, if the server doesn't say."""
    pause = _FIRST_PAUSE_SECONDS * float(2 ** min(tries - 1, 10))
    return min(pause, _LONGEST_PAUSE_SECONDS) * (1 - 0.25 * random.random())


def _is_loading(refusal: ServerRefusal) -> bool:
    """Return True if a server is up and not ready yet: llama.cpp, Hugging Face."""
    body = json.dumps(refusal.body)
    return refusal.status_code == 503 and bool(_LOADING.search(body)) and not _LOADING_FAILED.search(body)


def _wanted_pause(headers: Mapping[str, str]) -> float | None:
    """Return after how many seconds the server wants to be asked again; None: it doesn't say, or at once."""
    seconds = math.nan
    try:
        seconds = float(headers.get("retry-after-ms", "")) / 1000
    except ValueError:
        header = headers.get("retry-after", "")
        try:
            seconds = float(header)
        except ValueError:
            with suppress(ValueError, OverflowError, TypeError):  # no date, or one beyond all calendars
                seconds = email.utils.parsedate_to_datetime(header).timestamp() - time.time()
    return seconds if math.isfinite(seconds) and seconds > 0 else None


def _pause_in(message: str) -> float | None:
    """Return after how many seconds a server wants to be asked again, in its words; None: they don't say."""
    if (match := _PAUSE.search(message)) is None:
        return None
    seconds = float(match["s"] or 0) / (1000 if match["ms"] else 1)
    return int(match["h"] or 0) * 3600 + int(match["m"] or 0) * 60 + seconds or None


def _report_retry(status: int, attempt: int, max_tries: int, asked_for: float | None) -> None:
    why = "is too busy" if status == 429 else "failed" if status >= 500 else "did not take the call"
    when = f" in {asked_for:.3g} s" if asked_for else ""
    report_delay(f"the server {why} ({status}); try {attempt} of {max_tries}{when}")
