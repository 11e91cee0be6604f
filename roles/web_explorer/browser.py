"""`Browser`: one page of a real Chromium, on a thread of its own, behind a gate."""

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

try:
    from playwright.sync_api import Error, sync_playwright
except ImportError as missing:
    raise ImportError("playwright is missing; install it with: pip install 'tw-autogen[web]'") from missing

from .gate import Gate

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
_MARK = "data-tw-number"
_MOST_HOPS = 5
_MOMENT = "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 100)))"
_SAME_WINDOW = "(one) => (one.closest('a, form') || one).removeAttribute('target')"
_LOOK = """
(mark) => {
  document.querySelectorAll(`[${mark}]`).forEach((one) => one.removeAttribute(mark));
  const wanted = 'a[href], button, input:not([type=hidden]), select, textarea, [role=button], [role=link], summary';
  const found = [];
  for (const one of document.querySelectorAll(wanted)) {
    const box = one.getBoundingClientRect();
    const style = getComputedStyle(one);
    if (!box.width || !box.height || style.visibility === 'hidden' || one.disabled) continue;
    one.setAttribute(mark, String(found.length + 1));
    const link = one.tagName === 'A', field = one.tagName === 'INPUT', choice = one.tagName === 'SELECT';
    const kind = link ? 'link' : field ? (one.type || 'text') : one.tagName.toLowerCase();
    const label = (one.labels && one.labels.length) ? one.labels[0].innerText : '';
    const own = choice ? '' : one.innerText;
    const words = own || one.getAttribute('aria-label') || label || one.placeholder || one.name || one.title || '';
    const options = choice ? [...one.options].map((o) => o.text).slice(0, 20).join(' | ') : '';
    const value = ['checkbox', 'radio'].includes(one.type) ? (one.checked ? 'checked' : '') :
      (field && one.type !== 'password') || one.tagName === 'TEXTAREA' ? one.value :
      choice ? (one.selectedOptions[0] || {text: ''}).text : '';
    found.push([kind, words.trim().replace(/\\s+/g, ' ').slice(0, 100), link ? one.href : '', value, options]);
    if (found.length >= 150) break;
  }
  return found;
}
"""


@dataclass(frozen=True)
class View:
    """What a page shows.

    Args:
        url: Its address.
        title: Its title.
        text: What can be read on it.
        things: What can be clicked or filled in, numbered from 1, a line each.
        trouble: What was not let through.
    """

    url: str
    title: str
    text: str
    things: tuple[str, ...]
    trouble: tuple[str, ...] = ()


class Browser:
    """One page of Chromium; every method may be called from any thread.

    Args:
        executable: Its path; empty: Debian's or another one on the PATH, else the one that Playwright has installed.
        no_sandbox: Chromium's own sandbox is left out, as it must be where root runs it.
        gate: Its only way out; closed with it.
        seconds: How long each step may take.

    Raises:
        RuntimeError: it doesn't start; says why.
    """

    def __init__(self, *, executable: str, no_sandbox: bool, gate: Gate, seconds: float) -> None:
        self._seconds = seconds
        self._gate = gate
        self._thread = ThreadPoolExecutor(1, "tw-browser")  # Playwright's objects live on the thread that made them
        path = executable or next((found for name in _NAMES if (found := shutil.which(name))), "")
        self._playwright: Any = None
        self._browser: Any = None
        try:
            self._on(lambda: self._start(path, no_sandbox))
        except BaseException as error:
            self.close()
            if isinstance(error, Error):
                raise RuntimeError(f"Chromium does not start: {_first(error)}") from error
            raise

    def _start(self, path: str, no_sandbox: bool) -> None:
        self._playwright = sync_playwright().start()
        environ = {key: os.environ[key] for key in ("PATH", "HOME", "LANG", "TZ", "TMPDIR") if key in os.environ}
        self._browser = self._playwright.chromium.launch(
            executable_path=path or None,
            chromium_sandbox=not no_sandbox,
            proxy={"server": self._gate.address},
            args=list(_FLAGS),
            env=environ,
            timeout=max(self._seconds, 30) * 1000,
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
        )
        context = self._browser.new_context(
            accept_downloads=False, service_workers="block", permissions=[], extra_http_headers={"DNT": "1"}
        )
        context.set_default_timeout(self._seconds * 1000)
        self._page = context.new_page()
        self._page.on("dialog", lambda dialog: dialog.dismiss())
        context.on("page", self._one_page_only)

    def _one_page_only(self, page: Any) -> None:
        """Close what opens beside the one page."""
        self._gate.refuse("a window that opened beside this page was closed")
        page.close()

    def open(self, url: str) -> str:
        """Open an address; give what went wrong, empty if nothing did."""
        if urlsplit(url).scheme not in ("http", "https"):
            return f"only http:// and https:// addresses are opened, not {url[:80]}"
        return self._do(lambda: self._page.goto(url, wait_until="domcontentloaded"))

    def click(self, number: int) -> str:
        """Click what has this number."""

        def click() -> None:
            self._at(number).evaluate(_SAME_WINDOW)
            self._at(number).click()

        return self._do(click)

    def fill(self, number: int, text: str, *, enter: bool) -> str:
        """Write into a field, and press Enter if that is wanted."""

        def write() -> None:
            self._at(number).fill(text)
            if enter:
                self._at(number).press("Enter")

        return self._do(write)

    def select(self, number: int, option: str) -> str:
        """Choose an option by its words."""
        return self._do(lambda: self._at(number).select_option(label=option))

    def back(self) -> str:
        """Go back to the page before."""
        return self._do(lambda: self._page.go_back(wait_until="domcontentloaded"))

    def view(self) -> View:
        """Say what the page shows now."""
        return self._on(self._look)

    def close(self) -> None:
        """End the browser with all its processes; a second time nothing happens."""
        if self._thread is None:
            return
        try:
            self._on(self._stop)
        finally:
            self._thread.shutdown()
            self._thread = None
            self._gate.close()

    def _stop(self) -> None:
        try:
            if self._browser is not None:
                self._browser.close()
        finally:
            if self._playwright is not None:
                self._playwright.stop()

    def _at(self, number: int) -> Any:
        return self._page.locator(f'[{_MARK}="{number}"]').first

    def _do(self, step: Callable[[], object]) -> str:
        def whole() -> str:
            self._gate.begin()
            try:
                step()
                self._settle()
            except Error as error:
                return _first(error)
            return ""

        return self._on(whole)

    def _settle(self) -> None:
        """Wait until what a step has set off has come: a moment later no other page is on its way."""
        for _ in range(_MOST_HOPS):
            try:
                self._page.wait_for_load_state("domcontentloaded")
                self._page.evaluate(_MOMENT)
            except Error as error:
                if "context was destroyed" not in str(error):  # as it is when another page comes
                    raise
            else:
                return

    def _look(self) -> View:
        try:
            self._settle()
            url, title = self._page.url, self._page.title()
            things = self._page.evaluate(_LOOK, _MARK)
            text = self._page.evaluate("() => document.body ? document.body.innerText : ''")
        except Error as error:
            return View(self._page.url, "", f"(the page can't be read: {_first(error)})", (), tuple(self._gate.refused))
        said = tuple(_line(at, *thing) for at, thing in enumerate(things, 1))
        return View(url, title, text, said, tuple(self._gate.refused))

    def _on(self, step: Callable[[], Result]) -> Result:
        return self._thread.submit(step).result()


def _line(number: int, kind: str, words: str, url: str, value: str, options: str) -> str:
    parts = [f"[{number}] {kind} {words!r}" if words else f"[{number}] {kind}"]
    parts += [f"= {value!r}"] if value else []
    parts += [f"-> {url}"] if url else []
    parts += [f"of: {options}"] if options else []
    return " ".join(parts)[:300]


def _first(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
