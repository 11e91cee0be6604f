"""`Browser`: one page of a real Chromium, on a thread of its own, behind a gate."""

import asyncio
import atexit
import os
import shutil
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError, Future, wait
from concurrent.futures import TimeoutError as Late
from contextlib import suppress
from typing import Any, TypeVar

try:
    from playwright.async_api import Error, async_playwright
    from playwright.async_api import TimeoutError as PageTimeout
except ImportError as missing:
    raise ImportError("playwright is missing; install it with: pip install 'tw-autogen[web]'") from missing

from .gate import Gate
from .view import LOOK, MARK, View, line_of

Result = TypeVar("Result")

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--proxy-bypass-list=<-loopback>",  # also what is on this machine goes through the gate
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-sync",
    "--no-pings",
    "--no-first-run",
)
_MAX_HOPS = 5
_START_SECONDS = 30.0
_END_SECONDS = 10.0
_MOMENT_SECONDS = 0.05
_MOMENT = "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 100)))"
_SAME_WINDOW = "(one) => (one.closest('a, form') || one).removeAttribute('target')"


class Browser:
    """One page of Chromium; every method may be called from any thread.

    A page whose own code keeps it from answering is given up: it is closed, and an empty one takes its place. Once
    `broken`, because the browser has ended or doesn't answer, another one is needed.

    Args:
        executable: Its path; empty: Debian's or another one on the PATH, else the one that Playwright has installed.
        no_sandbox: Chromium's own sandbox is left out, as it must be where root runs it.
        gate: Its only way out; closed with it.
        seconds: How long the page has for each step, and as long once more for what the step sets off.

    Raises:
        RuntimeError: it doesn't start; says why.
    """

    def __init__(self, *, executable: str, no_sandbox: bool, gate: Gate, seconds: float) -> None:
        self._seconds = seconds
        self._gate = gate
        self.broken = False
        word = "" if os.path.dirname(executable) else executable
        found = filter(None, map(shutil.which, (word,) if word else _NAMES))
        # a relative one lies in the current folder, which is anybody's
        on_path = next(filter(os.path.isabs, found), "")
        if word and not on_path:
            raise FileNotFoundError(f"role.web_explorer.executable: there is no {word} on the PATH; name its path")
        path = on_path if word or not executable else executable
        self._playwright: Any = None
        self._browser: Any = None
        self._page: Any = None
        self._lock = threading.Lock()  # for one step at a time
        self._closing = threading.Lock()
        self._closed = False
        self._now: Future[Any] | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tw-browser", daemon=True)
        self._thread.start()
        atexit.register(self.close)
        start = asyncio.run_coroutine_threadsafe(self._start(path, no_sandbox), self._loop)
        try:
            start.result(2 * max(seconds, _START_SECONDS))
        except BaseException as error:
            wait([start], _END_SECONDS)  # what was interrupted is ended once it is there
            self.close()
            if isinstance(error, Error | Late):
                raise RuntimeError(f"Chromium does not start: {_first(error)}") from error
            raise

    async def _start(self, path: str, no_sandbox: bool) -> None:
        self._playwright = await async_playwright().start()
        environ = {key: os.environ[key] for key in ("PATH", "HOME", "LANG", "TZ", "TMPDIR") if key in os.environ}
        self._browser = await self._playwright.chromium.launch(
            executable_path=path or None,
            chromium_sandbox=not no_sandbox,
            proxy={"server": self._gate.address},
            args=list(_FLAGS),
            env=environ,
            timeout=max(self._seconds, _START_SECONDS) * 1000,
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
        )
        await self._begin()

    async def _begin(self) -> None:
        """Make the page, in a context of its own."""
        context = await self._browser.new_context(
            accept_downloads=False, service_workers="block", permissions=[], extra_http_headers={"DNT": "1"}
        )
        context.set_default_timeout(self._seconds * 1000)
        self._page = await context.new_page()
        self._page.on("dialog", lambda dialog: dialog.dismiss())
        context.on("page", self._one_page_only)

    async def _one_page_only(self, page: Any) -> None:
        """Close what opens beside the one page."""
        self._gate.refuse("a window that opened beside this page was closed")
        await page.close()

    def open(self, url: str) -> str:
        """Open an address; give what went wrong, empty if nothing did."""
        if not url.lower().startswith(("http://", "https://")):
            return f"only http:// and https:// addresses are opened, not {url[:80]}"
        return self._do(lambda: self._page.goto(url, wait_until="domcontentloaded"))

    def click(self, number: int) -> str:
        """Click what has this number."""

        async def click() -> None:
            await self._at(number).evaluate(_SAME_WINDOW)
            await self._at(number).click()

        return self._do(click)

    def fill(self, number: int, text: str, *, enter: bool) -> str:
        """Write into a field, and press Enter if that is wanted."""

        async def write() -> None:
            await self._at(number).fill(text)
            if enter:
                await self._at(number).press("Enter")

        return self._do(write)

    def select(self, number: int, option: str) -> str:
        """Choose an option by its words."""
        return self._do(lambda: self._at(number).select_option(label=option))

    def back(self) -> str:
        """Go back to the page before."""
        return self._do(lambda: self._page.go_back(wait_until="domcontentloaded"))

    def view(self) -> View:
        """Say what the page shows now."""
        try:
            return self._on(self._look)
        except Exception as error:  # noqa: BLE001 - also what Playwright raises without a type of its own
            why = self._give_up() if isinstance(error, Late | PageTimeout) else self._failed(error)
        return View(self._page.url, "", f"(the page can't be read: {why})", (), tuple(self._gate.refused))

    def close(self) -> None:
        """End the browser with all its processes, and a step that is being taken; a second time nothing happens."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        atexit.unregister(self.close)
        if (now := self._now) is not None:
            now.cancel()
        with self._lock:
            for end in (self._browser and self._browser.close, self._playwright and self._playwright.stop):
                if end:
                    with suppress(Exception):  # it has ended already, or never will; the next one ends what is left
                        asyncio.run_coroutine_threadsafe(_whole(end), self._loop).result(_END_SECONDS)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_END_SECONDS)
            if not self._thread.is_alive():
                self._loop.close()
            self._gate.close()

    def _at(self, number: int) -> Any:
        return self._page.locator(f'[{MARK}="{number}"]').first

    def _do(self, step: Callable[[], Awaitable[object]]) -> str:
        async def whole() -> None:
            self._gate.begin()
            await step()
            await self._settle()

        try:
            self._on(whole)
        except Late:
            return self._give_up()
        except Exception as error:  # noqa: BLE001 - also what Playwright raises without a type of its own
            return self._failed(error)
        return ""

    def _give_up(self) -> str:
        """Close a page that doesn't answer, and take an empty one."""

        async def anew() -> None:
            await self._page.context.close()
            await self._begin()

        try:
            self._on(anew)
        except Exception:  # noqa: BLE001 - it is ended as a whole then
            self.broken = True
        return "the page did not answer in time, and was closed"

    def _failed(self, error: Exception) -> str:
        gone = "has been closed" in str(error)  # a driver that was killed too does not tell that it is disconnected
        self.broken = self.broken or gone or not isinstance(error, Error) or not self._browser.is_connected()
        return _first(error)

    async def _settle(self) -> None:
        """Wait until what a step has set off has come: a moment later no other page is on its way."""
        for _ in range(_MAX_HOPS):
            try:
                await self._page.wait_for_load_state("domcontentloaded")
                await self._page.evaluate(_MOMENT)
            except Error as error:
                if "context was destroyed" not in str(error):  # as it is when another page comes
                    raise
            else:
                return

    async def _look(self) -> View:
        await self._settle()
        url, title = self._page.url, await self._page.title()
        things = await self._page.evaluate(LOOK, MARK)
        text = await self._page.evaluate("() => document.body ? document.body.innerText : ''")
        said = tuple(line_of(number, *thing) for number, thing in enumerate(things, 1))
        return View(url, title, text, said, tuple(self._gate.refused))

    def _on(self, step: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Do something on the browser's thread.

        Raises:
            Late: it took too long.
            RuntimeError: the browser is closed.
        """
        with self._lock:
            if self._closed:
                raise RuntimeError("the browser is closed")
            now = self._now = asyncio.run_coroutine_threadsafe(step(), self._loop)
            try:
                return now.result(2 * self._seconds)
            except CancelledError:
                raise RuntimeError("the browser was closed") from None
            finally:
                now.cancel()
                self._now = None


async def _whole(end: Callable[[], Awaitable[object]]) -> None:
    await end()
    await asyncio.sleep(_MOMENT_SECONDS)  # the loop hears of processes that have ended


def _first(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
