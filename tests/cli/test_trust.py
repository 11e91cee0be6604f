"""Trust of the current folder at the command line: what is said, what is asked, and what does not happen."""

import json
import os
import pty
import re
import select
import subprocess
import sys
import threading

import pytest
from click.testing import CliRunner

from tw_autogen.cli import main, session_opening
from tw_autogen.cli.options import Options
from tw_autogen.cli.terminal import console
from tw_autogen.cli.trust_prompt import ask_for_trust
from tw_autogen.session import read_settings
from tw_autogen.settings_trust import Trust
from tw_autogen.testing import codes, plans, replay_server
from tw_autogen.trust_store import TrustStore

SECONDS = 100.0
ESCAPES = re.compile(rb"\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)|\[[0-9;?]*[A-Za-z])")


@pytest.fixture
def here(tmp_path):
    """A folder whose settings, servers, role and plugin would each leave a file; give (folder, where they leave it)."""
    folder, ran = tmp_path / "here", tmp_path / "ran"
    for one in (folder / "roles" / "crier", folder / "plugins", ran):
        one.mkdir(parents=True)

    def leave(name):
        return f"open({str(ran / name)!r}, 'w')\n"

    role = "from tw_autogen import Role\n\n\nclass Crier(Role):\n    def reply(self, memory, **kwargs): ...\n"
    (folder / "roles" / "crier" / "role.yaml").write_text("alias: Crier\nintro: Cries.\nmodule: crier\n")
    (folder / "roles" / "crier" / "crier.py").write_text(leave("role") + role)
    (folder / "plugins" / "mine.py").write_text(
        "from tw_autogen.plugin import plugin\n" + leave("plugin")
        + "\n\n@plugin(runs_in='host')\ndef mine() -> int:\n    'Do it.'\n    return 1\n"
    )  # fmt: skip
    python = folder / "python"
    python.write_text(f"#!{sys.executable}\n{leave('python')}")
    python.chmod(0o755)
    server = {"command": sys.executable, "args": ["-c", leave("mcp")]}
    wants = {
        "session": {"roles": ["planner", "code_interpreter", "crier"], "max_posts": 9},
        "plugin": {"mcp_servers": {"m": server}},
        "kernel": {"sandbox": "off", "python": str(python), "read": ["/"]},
        "model": {"base_url": "http://127.0.0.1:9/v1"},
        "planner": {"instructions": "Be brief."},
    }
    (folder / "tw_autogen.yaml").write_text(json.dumps(wants))
    return folder, ran


WANTED = ("session.roles", "plugin.mcp_servers", "kernel.sandbox", "kernel.python", "kernel.read", "model.base_url")


@pytest.fixture
def run(environ, here, monkeypatch, tmp_path):
    monkeypatch.chdir(here[0])
    settings = {key: environ.get(key) for key in {*environ, *os.environ}}  # None takes a variable away
    settings["HOME"] = str(tmp_path / "home")
    (tmp_path / "home").mkdir()

    def run(*args):
        ran = CliRunner().invoke(main, list(args), env=settings)
        assert ran.exception is None or isinstance(ran.exception, SystemExit), ran.exception
        return ran

    run.environ = {key: value for key, value in settings.items() if value is not None}
    return run


def check_line(text):
    (line,) = [one for one in text.splitlines() if "(not trusted): left out" in one]
    for key in (*WANTED, "roles (roles/crier)", "plugins (plugins/mine.py)"):
        assert key in line, key
    assert "session.max_posts" not in line
    return line


def test_a_question_in_a_folder_that_is_not_trusted_runs_nothing_of_it_and_says_so_in_a_line(run, here):
    with replay_server([plans("look"), codes("6 * 7"), plans("It is 42.", to="User")]) as server:
        ran = run("--base-url", server.base_url, "-p", "What is 6*7?")

    assert (ran.exit_code, ran.stdout) == (0, "It is 42.\n"), ran.stderr
    assert check_line(ran.stderr).endswith("; trust this folder with --trust")
    assert "becomes part of prompts: planner.instructions\n" in ran.stderr
    assert "Be brief." in server.requests[0]["messages"][0]["content"]
    assert list(here[1].iterdir()) == []


def test_text_that_comes_into_a_settings_file_between_two_reads_of_it_is_shown(run, here, monkeypatch):
    found = session_opening.fallback_workspace

    def change(settings, **more):
        (here[0] / "tw_autogen.yaml").write_text("planner: {instructions: Be brief and blunt.}")
        return found(settings, **more)

    (here[0] / "tw_autogen.yaml").write_text("session: {max_posts: 9}")
    monkeypatch.setattr(session_opening, "fallback_workspace", change)
    with replay_server([plans("It is 42.", to="User")]) as server:
        ran = run("--base-url", server.base_url, "-p", "What is 6*7?")

    assert "brief and blunt" in server.requests[0]["messages"][0]["content"]
    assert "becomes part of prompts: planner.instructions\n" in ran.stderr


def test_with_quiet_the_texts_that_count_are_named_all_the_same(run, here):
    with replay_server([plans("It is 42.", to="User")]) as server:
        ran = run("--base-url", server.base_url, "--quiet", "-p", "What is 6*7?")

    check_line(ran.stderr)
    assert "becomes part of prompts: planner.instructions\n" in ran.stderr
    assert len(ran.stderr.splitlines()) == 2


def test_texts_are_named_only_where_a_session_takes_them(run, here):
    (here[0] / "a.md").write_text("beavers")

    ran = run("index", ".")

    check_line(ran.stderr)
    assert "becomes part of prompts" not in ran.stderr


def test_the_json_of_a_script_names_what_of_the_folder_counts(run, here):
    with replay_server([plans("It is 42.", to="User")]) as server:
        ran = run("--base-url", server.base_url, "--output-format", "json", "-p", "What is 6*7?")

    left_out, counts = json.loads(ran.stdout)["warnings"]
    check_line(left_out)
    assert counts.endswith("becomes part of prompts: planner.instructions")


def test_a_record_that_lies_in_the_folder_counts_only_as_far_as_the_users_home_does(here, tmp_path, monkeypatch):
    def trusted(home, state):
        monkeypatch.setenv("HOME", str(here[0] / home))
        monkeypatch.setenv("XDG_STATE_HOME", str(here[0] / state))
        return TrustStore.of_user().record(here[0])

    assert trusted("../home", "../state")
    assert trusted("home", "home/.state")
    assert trusted("../home", "state") is None
    assert trusted("home", "state") is None


def test_plugins_behind_a_link_out_of_the_folder_are_not_listed(run, here, tmp_path):
    (here[0] / "plugins").rename(tmp_path / "private")
    (here[0] / "plugins").symlink_to(tmp_path / "private")

    assert "mine" not in run("plugins", "list").stdout
    assert "mine" in run("plugins", "list", "../private").stdout


def test_doctor_runs_nothing_of_it(run, here):
    ran = run("doctor")

    assert ran.exit_code == 0, ran.output
    check_line(ran.stdout)
    assert "trust this folder with --trust" in ran.stdout
    assert "✓ ok   kernel" in ran.stdout
    assert list(here[1].iterdir()) == []


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("plugins", "list"), 0),
        (("plugins", "check"), 2),
        (("plugins", "check", "--host"), 2),
        (("plugins", "check", "mine", "--host"), 2),
        (("index", ".", "--glob", "*.yaml"), 0),
        (("example", "from", "none"), 2),
        (("scenario", "run", "--live", "anomaly_detection"), 2),
    ],
)
def test_no_other_command_runs_anything_of_it(run, here, args, code):
    assert run(*args).exit_code == code
    assert list(here[1].iterdir()) == []


@pytest.mark.parametrize("command", ["run", "show"])
def test_a_word_for_a_scenario_is_a_name_and_no_folder_that_lies_here(run, here, command):
    (here[0] / "iris").mkdir()
    (here[0] / "iris" / "scenario.yaml").write_text("about: a\nask: [b]\nroles: [planner, ./roles/crier]\n")

    ran = run("scenario", command, "iris")

    assert ran.exit_code == 2
    assert "write ./iris for the folder that lies here" in ran.stderr
    assert list(here[1].iterdir()) == []


def test_nothing_is_made_where_a_link_of_the_folder_leads(run, here, tmp_path):
    (tmp_path / "outside").mkdir()
    (here[0] / ".tw").symlink_to("../outside")

    ran = run("-p", "hi", "--base-url", "http://127.0.0.1:9/v1")

    assert ran.exit_code == 2
    assert ".tw is a link to ../outside" in ran.stderr
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize(
    "command", [["list"], ["prune", "--days", "1"], ["show", "session-aa11"], ["rerun", "session-aa11"]]
)
def test_nothing_is_looked_at_where_a_link_of_the_folder_leads(run, here, tmp_path, command):
    (tmp_path / "outside" / "sessions" / "session-aa11").mkdir(parents=True)
    (here[0] / ".tw").symlink_to("../outside")

    ran = run(*(command if command[0] == "rerun" else ["sessions", *command]))

    assert ran.exit_code == 2
    assert ".tw is a link to ../outside" in ran.stderr
    assert "aa11" not in ran.stdout + ran.stderr


def test_trust_is_said_by_a_flag_and_not_remembered(run, here):
    pytest.importorskip("mcp", reason="needs the extra `mcp`")
    ran = run("-p", "hello", "--trust", "--model", "m")

    assert "mcp" in [path.name for path in here[1].iterdir()], ran.stderr
    assert "not trusted" not in ran.stderr
    for path in here[1].iterdir():
        path.unlink()
    assert "(not trusted)" in run("-p", "hello", "--base-url", "http://127.0.0.1:9/v1").stderr
    assert list(here[1].iterdir()) == []


def chat(command, environ, folder, home, answers, *, base_url):
    """Chat at a terminal; give all that it shows. `answers` are typed one after the other, each behind its words."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [*command, "--no-color", "--base-url", base_url],
        stdin=follower, stdout=follower, stderr=follower, cwd=folder, start_new_session=True,
        env={**environ, "HOME": str(home), "COLUMNS": "100", "PROMPT_TOOLKIT_NO_CPR": "1"},
    )  # fmt: skip
    os.close(follower)
    seen, raw, at = "", b"", 0
    try:
        for words, keys in answers:
            while words not in seen[at:]:
                assert select.select([leader], [], [], SECONDS)[0], f"no {words!r} in {seen}"
                raw += os.read(leader, 4096)
                seen = ESCAPES.sub(b"", raw).decode(errors="replace").replace("\r\n", "\n")
            at = seen.index(words, at) + len(words)
            os.write(leader, keys.encode())
        while select.select([leader], [], [], SECONDS)[0]:
            try:
                more = os.read(leader, 4096)
            except OSError:  # Linux says so when the last writer has gone
                more = b""
            if not more:
                break
            raw += more
        assert process.wait(SECONDS) is not None
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(leader)
    return ESCAPES.sub(b"", raw).decode(errors="replace").replace("\r\n", "\n")


@pytest.fixture
def simple(here):
    """Leave settings that are harmless if they are trusted."""
    (here[0] / "tw_autogen.yaml").write_text("kernel: {read: [/srv]}\nsession: {roles: [planner, crier]}\n")
    return here


@pytest.fixture
def ask(simple, environ, tmp_path, monkeypatch):
    """Ask in this process, at a terminal of its own, and type an answer; give whether it is trusted then, and what was
    shown."""
    monkeypatch.chdir(simple[0])
    for name in set(os.environ) - set(environ):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def ask(typed, *, before=b"", meanwhile=lambda: None):
        leader, follower = pty.openpty()
        os.write(leader, before)
        seen = b""

        def answer():
            nonlocal seen
            while not ESCAPES.sub(b"", seen).rstrip().endswith((b"[y/N]", b"-- the end --")):
                seen += os.read(leader, 4096)
            meanwhile()
            os.write(leader, typed)

        with open(follower, closefd=False) as stdin, open(follower, "w", closefd=False) as stdout:
            monkeypatch.setattr(sys, "stdin", stdin)
            person = threading.Thread(target=answer)
            person.start()
            ask_for_trust(Options(), console(stdout, color=False))
            stdout.write("-- the end --")
            stdout.flush()
            person.join(SECONDS)
        os.close(follower)
        os.close(leader)
        return read_settings().trust is Trust.full, ESCAPES.sub(b"", seen).decode().replace("\r\n", "\n")

    return ask


@pytest.mark.parametrize("typed", [b"\n", b"n\n", b"no\n", b"yes, but\n", b"\x04"])
def test_any_answer_but_yes_is_no_and_is_not_remembered(ask, simple, typed):
    trusted, shown = ask(typed, before=b"y\n")  # typed before the question stood there

    assert not trusted
    assert f"{simple[0]} has files that want more than a folder may have unasked:" in shown
    for line in (
        "  session.roles                ['planner', 'crier']\n",
        "  kernel.read                  ['/srv']: code may read it\n",
        "  roles                        crier: Python in roles/crier, runs with all that you may do, outside",
        "  plugins                      Python in plugins/mine.py: run in the sandbox, or outside it where",
    ):
        assert line in shown
    assert "[y/N]" in ask(b"\n")[1]


def test_what_starts_programs_stands_right_above_the_question(ask, simple):
    settings = simple[0] / "tw_autogen.yaml"
    settings.write_text("plugin: {mcp_servers: {x: {command: sh}}}\nkernel: {read: [/srv]}\nsession: {max_posts: 3}\n")
    (simple[0] / "planner_examples").mkdir()
    for number in range(200):
        (simple[0] / "planner_examples" / f"{number:03}{'.' * 200} It is safe.yaml").write_text("rounds: []")

    trusted, shown = ask(b"\n")

    assert not trusted
    above = shown[: shown.index("Trust this folder")].splitlines()
    assert above[-1] == "6 in all; the last 4 start programs, load Python or lift the sandbox."
    assert "would start: sh" in above[-2]
    assert len(shown) < 5000


def test_a_yes_is_remembered_until_a_file_that_matters_changes(ask, simple):
    assert ask(b"y\n")[0]
    assert "[y/N]" not in ask(b"")[1]

    with (simple[0] / "roles" / "crier" / "crier.py").open("a") as file:
        file.write("# changed\n")
    assert "[y/N]" in ask(b"n\n")[1]


def test_a_yes_that_can_not_be_written_down_holds_until_a_file_changes_too(ask, simple, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "file"))

    assert ask(b"y\n")[0]
    assert not list((tmp_path / "home").rglob("*.json"))

    with (simple[0] / "roles" / "crier" / "crier.py").open("a") as file:
        file.write("# changed\n")
    assert read_settings().trust is Trust.none


def test_what_changes_while_the_question_stands_there_is_not_trusted(ask, simple):
    change = (simple[0] / "plugins" / "mine.py").write_text

    assert not ask(b"y\n", meanwhile=lambda: change("1"))[0]
    assert read_settings().trust is Trust.none


def test_nobody_is_asked_about_more_than_can_be_compared_later(ask, simple):
    with (simple[0] / "roles" / "large.so").open("wb") as file:
        file.truncate((1 << 30) + 1)

    trusted, shown = ask(b"y\n")

    assert not trusted
    assert "can't be compared later, so you are not asked about it: " in shown
    assert "large.so: the files are too large to look through for trust; look at its files" in shown


def test_a_chat_asks_once_before_anything_and_a_new_session_in_it_does_not_ask_again(
    command, environ, simple, tmp_path
):
    asked = "let it have all of this? [y/N]"
    answers = [(asked, "n\n"), ("Not trusted", ""), ("\n>", "/reset\n"), ("a new session", ""), ("\n>", "\x04")]
    with replay_server([]) as server:
        seen = chat(command, environ, simple[0], tmp_path / "home", answers, base_url=server.base_url)

    assert seen.count(asked) == 1
    text = seen.replace("\n", "")
    assert "(not trusted): left out session.roles, roles (roles/crier), plugins (plugins/mine.py)" in text
    assert list(simple[1].iterdir()) == []


def test_a_demo_writes_through_no_link_that_lies_here(run, here, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "plant.db").write_text("mine")
    (here[0] / "tw-demo").symlink_to(tmp_path / "mine")

    ran = run("demo")

    assert ran.exit_code == 2, ran.output
    assert "tw-demo is a link, which code may have made; name the folder that it leads to" in ran.stderr
    assert (tmp_path / "mine" / "plant.db").read_text() == "mine"


def test_a_module_that_is_not_installed_is_not_taken_from_the_folder(run, here):
    (here[0] / "statsmodelz.py").write_text(f"open({str(here[1] / 'module')!r}, 'w')\ndef fit(): ...\n")

    ran = run("plugins", "new", "--from", "statsmodelz:fit")

    assert (ran.exit_code, "no module 'statsmodelz' is installed" in ran.stderr) == (2, True)
    assert list(here[1].iterdir()) == []


def test_a_plugin_made_of_an_installed_function_loads_nothing_of_the_folder(run, here, tmp_path):
    installed = tmp_path / "installed"
    installed.mkdir()
    (installed / "brought.py").write_text(
        "try:\n    import not_installed_anywhere\nexcept ImportError:\n    pass\n\n\n"
        "def double(number: int) -> int:\n    'Double a number.'\n    return 2 * number\n"
    )
    (here[0] / "not_installed_anywhere.py").write_text(f"open({str(here[1] / 'module')!r}, 'w')\n")
    sys.path.insert(0, str(installed))
    try:
        ran = run("plugins", "new", "--from", "brought:double", "--folder", str(tmp_path / "made"))
    finally:
        sys.path.remove(str(installed))
        sys.modules.pop("brought", None)

    assert ran.exit_code == 0, ran.output
    assert list(here[1].iterdir()) == []


@pytest.mark.parametrize("args", [["plugins", "list"], ["doctor"], ["-p", "hi"], ["sessions", "list"]])
def test_a_plugin_writes_no_signs_to_the_terminal_by_what_python_warns_of(run, here, args):
    (here[0] / "plugins" / "odd.py").write_text(
        "from tw_autogen.plugin import plugin\n\n\n@plugin\ndef odd(x: int = 1) -> bool:\n    'Tell.'\n"
        "    return x is 1 # \x1b]0;mine\x07\x1b[2J\n"
    )
    code = "import sys; from tw_autogen.cli import main; sys.argv[0] = 'tw-autogen'; main()"
    ran = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, timeout=SECONDS, env=run.environ)

    assert b"\x1b" not in ran.stdout + ran.stderr
    assert b"SyntaxWarning" not in ran.stderr


def test_what_a_library_warns_of_is_written_with_escapes(run):
    code = (
        "import logging, warnings\nfrom tw_autogen.cli.standard_streams import escape_what_libraries_say\n"
        "escape_what_libraries_say()\nwarnings.warn('a\\x1b[2Jb')\nlogging.getLogger('x').warning('c\\x1b[2J%s', 'd')\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=SECONDS, env=run.environ, text=True)

    first, second = ran.stderr.splitlines()
    assert first.endswith("UserWarning: a\\x1b[2Jb")
    assert second == "c\\x1b[2Jd"


@pytest.mark.parametrize("link", ["plugins", "far.py"])
def test_plugins_behind_a_link_are_not_looked_at_before_they_are_refused(run, tmp_path, monkeypatch, link):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "far.py").write_text(
        "from tw_autogen.plugin import plugin\n@plugin\ndef far():\n    'D.'\n"
    )
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / link).symlink_to("../outside" if link == "plugins" else "../outside/far.py")
    monkeypatch.chdir(tmp_path / "empty")

    ran = run("plugins", "check")

    assert ran.exit_code == 2
    assert ("no plugins here" if link == "far.py" else "it is not trusted") in ran.stderr
