"""Pages on loopback in a real Chromium."""

import contextlib
import importlib
import ipaddress
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tw_autogen.errors import RoleSpecError
from tw_autogen.role import find_role
from tw_autogen.setting_values import Setting
from tw_autogen.testing import ScriptedModel, check_role

from . import web

pytest.importorskip("playwright", reason="the extra `web` is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH"),
    pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are counted by /proc"),
]
ROOT = os.geteuid() == 0

SHOP = """<title>Tea shop</title><h1>Teas</h1><p>Choose one.</p><a href="/black">Black tea</a>
<a href="/green" target="_blank">Green tea</a>
<form action="/find"><label>Search <input name="q"></label>
<select name="size"><option>small</option><option>large</option></select></form>"""


def step(do, **more):
    return json.dumps({"do": do, **more})


def descendants(pid):
    """Give the processes that were started from one, or from those."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            parents[int(path.parent.name)] = int(fields[1])
    found, new = set(), {pid}
    while new:
        new = {child for child, parent in parents.items() if parent in new} - found
        found |= new
    return found


@pytest.fixture
def explore(stage):
    """Make a role whose model takes these steps, ask it, and give what it says and what the model was shown."""
    made = []

    def ask(question, *steps, **settings):
        how = {"private": True, "no_sandbox": ROOT, "executable": CHROMIUM, "step_seconds": 15.0, **settings}
        with ScriptedModel(list(steps)) as model:
            role = stage.make("web_explorer", model, **how)
            made.append(role)
            post = stage.ask(role, question)
        return post, [call[-1]["content"] for call in model.calls]

    yield ask
    for role in made:
        role.close()


def test_a_question_is_answered_from_pages_and_names_them(explore):
    pages = {"/": web.Page(SHOP), "/black": web.Page("<title>Black</title>Steep it at 95 degrees.")}
    with web.site(pages) as site:
        post, shown = explore(
            "How hot for black tea?", step("open", url=site.url), step("click", number=1), step("answer", text="95 °C.")
        )

    assert post.message.startswith(f"95 °C.\n\nPages seen, in 2 steps:\n- {site.url}/\n- {site.url}/black")
    assert ("without Chromium's own sandbox" in post.message) == ROOT
    assert [attachment.content for attachment in post.attachments] == [f"{site.url}/", f"{site.url}/black"]
    assert f"[1] link 'Black tea' -> {site.url}/black" in shown[1]
    assert "Choose one." in shown[1]
    assert "Steep it at 95 degrees." in shown[2]
    assert site.headers[0]["dnt"] == "1"


@pytest.mark.slow
def test_fields_are_filled_options_chosen_and_a_new_window_opens_in_the_same_page(explore):
    pages = {"/": web.Page(SHOP), "/find": web.Page("found"), "/green": web.Page("<title>Green</title>70 degrees")}
    with web.site(pages) as site:
        _, shown = explore(
            "?",
            step("open", url=site.url),
            step("select", number=4, text="large"),
            step("fill", number=3, text="oolong", enter=True),
            step("back"),
            step("click", number=2),
            step("answer", text="done"),
        )
        asked = list(site.asked)

    assert "[3] text 'Search'" in shown[1]
    assert "of: small | large" in shown[1]
    assert "/find?q=oolong&size=large" in asked
    assert "70 degrees" in shown[5]


@pytest.mark.slow
def test_a_long_page_is_read_on(explore):
    with web.site({"/": web.Page("<p>" + "a " * 60 + "</p><p>the end</p>")}) as site:
        _, shown = explore("?", step("open", url=site.url), step("more"), step("answer", text="x"), page_chars=100)

    assert "characters more" in shown[1]
    assert "the end" not in shown[1]
    assert "the end" in shown[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    "url", ["file:///etc/hostname", "javascript:alert(1)", "data:text/html,x", "chrome://version", ""]
)
def test_only_web_addresses_are_opened(explore, url):
    post, shown = explore("?", step("open", url=url), step("answer", text="no"))

    assert "only http:// and https:// addresses are opened" in shown[1]
    assert "Pages seen, in 1 steps:\nnone" in post.message


@pytest.mark.slow
def test_addresses_of_this_machine_are_refused_unless_they_are_allowed(explore):
    with web.site({"/": web.Page("inner")}) as site:
        post, shown = explore("?", step("open", url=site.url), step("answer", text="no"), private=False)
        asked = list(site.asked)

    assert asked == []
    assert "(not let through: 127.0.0.1 is an address of a private network (role.web_explorer.private))" in shown[1]
    assert "inner" not in shown[1]


def lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def modules():
    """Give the modules of the browser and of its gate, from the package that the role was loaded as."""
    spec = find_role("web_explorer")
    package = type(
        spec.make(lambda: ScriptedModel([]), given=lambda known: {"no_sandbox": Setting(ROOT, "the test")})
    ).__module__
    return tuple(importlib.import_module(f"{package}.{name}") for name in ("browser", "gate"))


def open_browser(seconds):
    browser, gate = modules()
    way = gate.Gate(may=lambda address: True, max_bytes=1_000_000, seconds=seconds)
    return browser.Browser(executable=CHROMIUM, no_sandbox=ROOT, gate=way, seconds=seconds)


@pytest.mark.slow
def test_closing_ends_a_step_that_another_thread_takes_and_no_step_is_taken_afterwards():
    one, said = open_browser(15), []
    held = threading.Event()
    with web.site({"/": web.Page("late", hold=held)}) as site:
        opening = threading.Thread(target=lambda: said.append(one.open(site.url)))
        opening.start()
        while not site.asked:
            opening.join(0.02)
        closings = [threading.Thread(target=one.close) for _ in range(3)]
        for each in closings:
            each.start()
        for each in (opening, *closings):
            each.join(20)
        held.set()

    assert not any(each.is_alive() for each in (opening, *closings))
    assert said == ["the browser was closed"]
    assert one.open("http://127.0.0.1/") == "the browser is closed"


@pytest.mark.slow
def test_a_browser_that_has_died_is_replaced_for_the_next_question(stage):
    before = descendants(os.getpid())
    with web.site({"/": web.Page("Ripe in May.")}) as site:
        opened = step("open", url=site.url)
        with ScriptedModel([step("answer", text="a"), *[opened, step("answer", text="b")] * 2]) as model:
            role = stage.make("web_explorer", model, private=True, no_sandbox=ROOT, executable=CHROMIUM)
            stage.ask(role, "?")
            for pid in descendants(os.getpid()) - before:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            stage.ask(role, "?")
            stage.ask(role, "?")
            role.close()

    assert "Ripe in May." not in model.calls[2][-1]["content"]
    assert "Ripe in May." in model.calls[4][-1]["content"]


@pytest.mark.slow
def test_a_process_that_closes_nothing_ends_and_leaves_no_browser():
    code = (
        "from tests.roles.test_web_explorer import descendants, open_browser\n"
        "import os\nkept = open_browser(15)\nprint(*descendants(os.getpid()))"
    )
    top = Path(__file__).parents[2]
    ran = subprocess.run([sys.executable, "-c", code], cwd=top, capture_output=True, text=True, timeout=60, check=True)

    left = {int(pid) for pid in ran.stdout.split()}
    assert len(left) > 2
    deadline = time.monotonic() + 10
    while any(map(lives, left)) and time.monotonic() < deadline:
        threading.Event().wait(0.05)
    assert not any(map(lives, left))


@pytest.mark.slow
def test_neither_redirects_nor_parts_of_a_page_lead_to_an_address_that_is_refused():
    browser, gate = modules()
    outer_address = ipaddress.ip_address("127.0.0.2")
    with web.site({"/": web.Page("secret")}) as inner, web.site({}, host="127.0.0.2") as outer:
        outer.pages["/hop"] = web.Page(status=302, headers={"Location": f"{inner.url}/"})
        outer.pages["/parts"] = web.Page(
            f"<iframe src='{inner.url}/'></iframe><img src='{inner.url}/'><p id=p>waiting</p>"
            f"<script>fetch('{inner.url}/', {{mode: 'no-cors'}}).finally(() => {{p.innerText = 'asked'}})</script>"
        )
        way = gate.Gate(may=lambda address: address == outer_address, max_bytes=1_000_000, seconds=10)
        one = browser.Browser(executable=CHROMIUM, no_sandbox=ROOT, gate=way, seconds=15)
        try:
            one.open(f"{outer.url}/hop")
            hopped = one.view()
            one.open(f"{outer.url}/parts")
            parts = one.view()
        finally:
            one.close()

        assert inner.asked == []
        assert "/hop" in outer.asked
        assert "/parts" in outer.asked
    for view in (hopped, parts):
        assert "secret" not in view.text
        assert view.trouble == ("127.0.0.1 is an address of a private network (role.web_explorer.private)",)


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("2606:4700::1111", True),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("::1", False),
        ("fe80::1", False),
        ("fd00::1", False),
        ("::ffff:10.0.0.1", False),
        ("2002:0a00:0001::", False),
        ("64:ff9b::808:808", True),
        ("64:ff9b::a00:1", False),
        ("64:ff9b:1::1", False),
        ("::10.0.0.1", False),
        ("::ffff:0:10.0.0.1", False),
        ("fec0::1", False),
        ("192.88.99.1", False),
    ],
)
def test_which_addresses_are_public(address, public):
    spec = find_role("web_explorer")
    package = type(
        spec.make(lambda: ScriptedModel([]), given=lambda known: {"no_sandbox": Setting(ROOT, "the test")})
    ).__module__

    assert importlib.import_module(f"{package}.gate").is_public(ipaddress.ip_address(address)) is public


def test_each_address_of_a_host_is_tried(monkeypatch):
    _, gate = modules()
    with web.site({}) as site, contextlib.closing(gate.Gate(may=lambda one: True, max_bytes=10, seconds=5)) as way:
        port = site.server_address[1]
        refused = (gate.socket.AF_INET, gate.socket.SOCK_STREAM, 6, "", ("127.0.0.2", port))
        both = [refused, (*refused[:4], ("127.0.0.1", port))]
        monkeypatch.setattr(gate.socket, "getaddrinfo", lambda *args, **named: both)
        with way.connect("tea.example", port) as joined:
            assert joined.getpeername() == ("127.0.0.1", port)


@pytest.mark.slow
def test_a_page_that_is_too_large_is_cut_off_and_that_is_said(explore):
    with web.site({"/": web.Page("x" * 3_000_000)}) as site:
        _, shown = explore("?", step("open", url=site.url), step("answer", text="no"), max_mb=0.5)

    assert "(not let through: more than 0.5 MB came for one page; the rest was cut off)" in shown[1]


@pytest.mark.slow
def test_a_page_that_never_comes_is_given_up(explore):
    with web.site({"/": web.Page("late", hold=threading.Event())}) as site:
        _, shown = explore("?", step("open", url=site.url), step("answer", text="no"), step_seconds=1.5)

    assert "1. open http://127.0.0.1" in shown[1]
    assert "Timeout 1500ms exceeded" in shown[1] or "ERR_" in shown[1]


@pytest.mark.slow
@pytest.mark.parametrize("script", ["while (true) {}", "setTimeout(() => { while (true) {} }, 50)"])
def test_a_page_whose_script_never_ends_is_closed_and_the_next_one_is_read(explore, script):
    pages = {"/": web.Page(f"<p>hold</p><script>{script}</script>"), "/next": web.Page("Ripe in May.")}
    with web.site(pages) as site:
        began = time.monotonic()
        post, shown = explore(
            "?",
            step("open", url=site.url),
            step("open", url=f"{site.url}/next"),
            step("answer", text="In May."),
            step_seconds=2.0,
        )

    assert "the page did not answer in time, and was closed" in shown[1]
    assert "Ripe in May." in shown[2]
    assert post.message.startswith("In May.")
    assert time.monotonic() - began < 40


@pytest.mark.slow
def test_what_is_no_step_is_told_and_the_number_of_steps_holds(explore):
    post, shown = explore("?", "I think so", step("dance"), steps=2)

    assert "1. nothing: that was no step: reply with one of the JSON objects" in shown[1]
    assert post.message.startswith("No answer was found: 2 steps were taken (role.web_explorer.steps).")


@pytest.mark.slow
def test_all_processes_end_with_the_role_and_a_second_closing_does_nothing(stage):
    before = descendants(os.getpid())
    with (
        web.site({"/": web.Page(SHOP)}) as site,
        ScriptedModel([step("open", url=site.url), step("answer", text="x")]) as model,
    ):
        role = stage.make("web_explorer", model, private=True, no_sandbox=ROOT, executable=CHROMIUM)
        stage.ask(role, "?")
        during = descendants(os.getpid()) - before
        role.close()
        role.close()

    assert len(during) > 2
    assert descendants(os.getpid()) & during == set()


def test_a_browser_that_isnt_there_is_said_to_be(explore, tmp_path):
    post, _ = explore("?", executable=str(tmp_path / "chromium"))

    assert post.message.startswith("Nothing was opened. Chromium does not start: ")


@pytest.mark.skipif(not ROOT, reason="for root alone")
def test_root_must_say_that_the_sandbox_is_to_be_left_out(stage):
    with pytest.raises(
        RoleSpecError, match=r"root can't run Chromium with its sandbox: .*role\.web_explorer\.no_sandbox"
    ):
        stage.make("web_explorer", ScriptedModel([]))


def test_without_the_extra_the_command_that_installs_it_is_named(stage, monkeypatch):
    monkeypatch.setitem(sys.modules, "playwright.async_api", None)

    with pytest.raises(RoleSpecError, match=r"playwright is missing; install it with: pip install 'tw-autogen\[web\]'"):
        stage.make("web_explorer", ScriptedModel([]), no_sandbox=True)


@pytest.mark.slow
def test_it_does_what_every_role_must(stage):
    class Steering:
        def complete(self, messages, **how):
            return ScriptedModel([step("answer", text="It is 95.")]).complete(messages)

    how = {"private": True, "no_sandbox": ROOT, "executable": CHROMIUM}
    assert check_role(lambda: stage.make("web_explorer", Steering(), **how), ask="How hot?")
