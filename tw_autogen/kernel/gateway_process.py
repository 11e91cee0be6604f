"""A kernel's process behind a Jupyter gateway: started, interrupted and ended by REST, its death told over the wire."""

from __future__ import annotations

import contextlib
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tw_autogen import bounded_json
from tw_autogen.errors import KernelStartError
from tw_autogen.kernel.poller import WakeupSocket

_MOST_BYTES = 4 << 20
"""How long an answer may be."""

_PATIENCE_SECONDS = 5.0
"""How long a gateway may take to answer what it can do at once."""

_END_SECONDS = 20.0
"""How long it may take to end a kernel: it asks, waits, and kills."""

INSTALL = "pip install 'tw-autogen[gateway]'"


@dataclass(frozen=True)
class Gateway:
    """A server that speaks Jupyter's REST and websocket protocols.

    Args:
        url: Such as `http://127.0.0.1:8888`, or `https://hub.example/user/ada`.
        token: Sent as `Authorization: token …`; empty: none.
        tls: For `https`, where the system's certificates don't do.
        folder: The host's; errors carry it.
    """

    url: str
    token: str = field(repr=False)
    tls: ssl.SSLContext | None
    folder: Path

    def start(self, kernel_name: str, environment: Mapping[str, str], seconds: float) -> str:
        """Start a kernel; give its id.

        Raises:
            KernelStartError: nobody answers, the token is refused, there is no such kernelspec, or it does not start.
        """
        known = self._specs(seconds)
        if known is not None and kernel_name not in known:
            raise self._error(
                f"knows no kernelspec {kernel_name!r}; it has: {', '.join(sorted(known)) or 'none'}. "
                "Pass one of these as kernel_name, or install it there with `python -m ipykernel install`"
            )
        body = {"name": kernel_name, **({"env": dict(environment)} if environment else {})}
        answer = self._checked("POST", "api/kernels", seconds, body)
        kernel = answer.get("id") if isinstance(answer, dict) else None
        if not isinstance(kernel, str):
            raise self._error("answers, but not as a Jupyter server does; check gateway_url")
        return kernel

    def call(self, method: str, path: str, *, seconds: float, body: Any = None) -> tuple[int, Any]:
        """Send one request; give the status and what the answer's JSON holds, None if it is none.

        Raises:
            OSError: nobody answered in time, or the answer is too long.
        """
        try:
            import httpx  # deferred: half a second, for those who use a gateway
        except ImportError as error:
            raise KernelStartError(f"a gateway needs httpx: {INSTALL}", folder=self.folder) from error

        verify = self.url.startswith("https:") if self.tls is None else self.tls  # certificates take time to read
        try:
            with httpx.Client(timeout=httpx.Timeout(seconds, connect=_PATIENCE_SECONDS), verify=verify) as client:
                headers = {**self.headers(), "Accept-Encoding": "identity"}
                deadline = time.monotonic() + seconds + _PATIENCE_SECONDS
                data = bytearray()
                with client.stream(method, f"{self.url}/{path}", headers=headers, json=body) as answer:
                    for piece in answer.iter_raw():
                        data += piece
                        if len(data) > _MOST_BYTES or time.monotonic() > deadline:
                            raise OSError(f"its answer does not end, after {len(data)} bytes")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise OSError(str(error) or type(error).__name__) from error
        try:
            return answer.status_code, bounded_json.loads(bytes(data))
        except ValueError:
            return answer.status_code, None

    def headers(self) -> dict[str, str]:
        """Return what lets a request in."""
        return {"Authorization": f"token {self.token}"} if self.token else {}

    def channels(self, kernel: str, session: str) -> str:
        """Return the address of a kernel's websocket."""
        return f"ws{self.url[4:]}/api/kernels/{quote(kernel)}/channels?session_id={session}"

    def _specs(self, seconds: float) -> list[str] | None:
        """Return the names of the kernelspecs; None if this gateway doesn't say."""
        answer = self._checked("GET", "api/kernelspecs", min(seconds, _END_SECONDS), may_refuse=True)
        specs = answer.get("kernelspecs") if isinstance(answer, dict) else None
        return [str(one) for one in specs] if isinstance(specs, dict) else None

    def _checked(self, method: str, path: str, seconds: float, body: Any = None, *, may_refuse: bool = False) -> Any:
        if not self.url.startswith(("http://", "https://")):
            raise self._error("is no address of a gateway; it begins with http:// or https://")
        try:
            status, answer = self.call(method, path, seconds=seconds, body=body)
        except OSError as error:
            raise self._error(
                f"does not answer ({error}). Start it (`jupyter kernelgateway`), or check gateway_url"
            ) from error
        said = _said(answer)
        unknown = not said or "forbidden" in said.lower() or "_xsrf" in said  # as a Jupyter Server says it
        if status == 401 or (status == 403 and unknown and not may_refuse):
            given = "the token" if self.token else "requests without a token"
            raise self._error(f"refuses {given} (HTTP {status}). Pass the one that it was started with as token")
        if status >= 400 and not (may_refuse and status in (403, 404, 405)):
            raise self._error(
                f"starts no kernel: HTTP {status}{f', {said}' if said else ''}. Look into the gateway's log"
            )
        return answer

    def _error(self, what: str) -> KernelStartError:
        return KernelStartError(f"gateway {self.url} {what}", folder=self.folder)


class GatewayProcess:
    """A kernel that a gateway started.

    Args:
        gateway: Where it runs.
        kernel: Its id there.
    """

    def __init__(self, gateway: Gateway, kernel: str) -> None:
        self._gateway = gateway
        self._path = f"api/kernels/{quote(kernel)}"
        self._lock = threading.Lock()
        self._bell = WakeupSocket()
        self._lost = ""
        self._ended = ""
        self.pid = 0  # another machine's: nothing here can be done with it
        self.death: int | None = self._bell.fileno()

    def alive(self) -> bool:
        """Return whether it runs, as far as its gateway has said."""
        return not (self._lost or self._ended)

    def lose(self, how: str) -> None:
        """Take down that it ended, or can't be reached any more; from any thread."""
        if self.alive():
            self._lost = how
            self._bell.ring()

    def forget(self) -> None:
        """Stop waiting for its death."""
        self._bell.close()

    def exists(self) -> bool:
        """Ask the gateway whether it still knows it.

        Raises:
            OSError: the gateway doesn't answer.
        """
        status, _ = self._gateway.call("GET", self._path, seconds=_PATIENCE_SECONDS)
        return status != 404

    def interrupt(self) -> None:
        """Ask the gateway to interrupt it, as Ctrl-C does."""
        with contextlib.suppress(OSError):  # the time limit, and then the end, come anyway
            self._gateway.call("POST", f"{self._path}/interrupt", seconds=_PATIENCE_SECONDS, body={})

    def end(self) -> str:
        """End it through the gateway; return how it ended."""
        with self._lock:
            if self._ended:
                return self._ended
            with contextlib.suppress(OSError):  # a gateway that is gone took its kernels with it
                self._delete()
            self._ended = self._lost or "killed"
            self._bell.ring()
            return self._ended

    def _delete(self) -> None:
        """Ask until it is gone: a gateway that is just restarting a kernel takes the first request for nothing."""
        deadline = time.monotonic() + _END_SECONDS
        pause = threading.Event()
        while time.monotonic() < deadline:
            self._gateway.call("DELETE", self._path, seconds=_END_SECONDS)
            if not self.exists():
                return
            pause.wait(0.1)


def _said(answer: Any) -> str:
    """Return what an error's JSON says in words."""
    if not isinstance(answer, dict):
        return ""
    return " ".join(str(answer.get(one) or "").strip() for one in ("reason", "message")).strip()[:500]
