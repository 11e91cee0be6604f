"""MCP servers start where they were looked at: a folder's in that folder, the user's own without modules of others."""

import json
import os
import sys

import pytest

from tw_autogen import open_session
from tw_autogen.errors import ConfigError
from tw_autogen.session import read_settings, review_folder
from tw_autogen.settings_trust import Trust
from tw_autogen.testing import ScriptedModel

pytest.importorskip("mcp", reason="needs the extra `mcp`")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs are shell scripts")

SETTINGS = "tw_autogen.yaml"
PYTHON = sys.executable


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
        path.chmod(0o755)


def python(ran, words):
    return f"#!{PYTHON}\nopen({str(ran)!r}, 'a').write({words!r})\n"


def shell(ran, words):
    return f"#!/bin/sh\necho {words} >> '{ran}'\n"


def makefile(ran, words):
    return f"serve:\n\t@echo {words} >> '{ran}'\n"


def trust(project=None):
    review = review_folder(project=project)
    assert review.remember(review.sha256()) == ""
    assert read_settings(project=project).trust is Trust.full


def start(tmp_path, **more):
    """Open a session whose servers are no MCP servers: they are started, and end."""
    with pytest.raises(ConfigError, match="MCP server"):
        open_session(ScriptedModel([]), folder=tmp_path / "sessions", **more)


PROGRAMS = {
    "a script": ({"command": PYTHON, "args": ["server.py"]}, "server.py", python),
    "a module": ({"command": PYTHON, "args": ["-m", "served"]}, "served.py", python),
    "make": ({"command": "make", "args": ["serve"]}, "Makefile", makefile),
    "a path": ({"command": "./bin/tool"}, "bin/tool", shell),
    "a folder of its own": ({"command": PYTHON, "args": ["server.py"], "cwd": "in"}, "in/server.py", python),
    "a path in a folder of its own": ({"command": "./tool", "cwd": "in"}, "in/tool", shell),
    "a folder on its PATH": ({"command": "tool", "env": {"PATH": f"bin{os.pathsep}/bin"}}, "bin/tool", shell),
}


@pytest.mark.parametrize("how", ["remembered", "said"])
@pytest.mark.parametrize("case", PROGRAMS)
def test_a_server_of_a_project_starts_in_the_project_and_not_in_the_current_folder(here, tmp_path, case, how):
    server, name, program = PROGRAMS[case]
    project, ran = tmp_path / "project", tmp_path / "ran"
    write(project, {SETTINGS: {"plugin.mcp_servers": "mcp.json"}, "mcp.json": {"m": server}})
    write(project, {name: program(ran, "good")})
    write(here, {name: program(ran, "evil")})
    if how == "remembered":
        trust(project)

    start(tmp_path, project=project, trust=how == "said")

    assert set(ran.read_text().split()) == {"good"}


@pytest.mark.parametrize(
    "case",
    [*PROGRAMS, "below a folder called ~", "an option's value", "installed Python", "on PATH", "uv run"],
)
def test_a_program_that_changes_after_the_folder_was_trusted_is_not_started(here, tmp_path, monkeypatch, case):
    found = f"{here / 'node_modules' / '.bin'}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv(
        "PATH", found if case == "on PATH" else f"{tmp_path / 'programs'}{os.pathsep}{os.environ['PATH']}"
    )
    more = {
        "on PATH": ({"command": "notes"}, "node_modules/.bin/notes", shell),
        "uv run": ({"command": "uv", "args": ["run", "notes"]}, ".venv/bin/notes", shell),
        "below a folder called ~": ({"command": PYTHON, "args": ["~/run"]}, "~/run", python),
        "an option's value": ({"command": "sh", "args": ["-c", "./in/tool;true"]}, "in/tool", shell),
        "installed Python": (
            {"command": "uvx", "args": ["python", "-umserved"], "env": {"PATH": str(tmp_path / "programs")}},
            "served.py",
            python,
        ),
    }
    server, name, program = {**PROGRAMS, **more}[case]
    write(tmp_path / "programs", {"uvx": f'#!/bin/sh\nshift\nexec "{PYTHON}" "$@"\n'})
    write(tmp_path / "programs", {"uv": '#!/bin/sh\nexec ".venv/bin/$2"\n'})
    write(here, {SETTINGS: {"plugin.mcp_servers": {"m": server}}, name: program(tmp_path / "ran", "good")})
    trust()
    settings = read_settings()
    start(tmp_path, settings=settings)
    assert "good" in (tmp_path / "ran").read_text()

    write(here, {name: program(tmp_path / "ran", "evil")})

    with pytest.raises(ConfigError, match="changed since its folder was trusted"):
        open_session(ScriptedModel([]), folder=tmp_path / "sessions", settings=settings)
    assert read_settings().trust is Trust.none
    assert "evil" not in (tmp_path / "ran").read_text()


@pytest.mark.parametrize(
    "server", [{"command": "~/x/tool"}, {"command": "./tool", "cwd": "~/x"}, {"command": "${TOOL:-~/x/tool}"}]
)
def test_a_tilde_is_the_home_folder_where_a_server_is_looked_at_and_where_it_starts(here, tmp_path, server):
    ran = tmp_path / "ran"
    write(here, {SETTINGS: {"plugin.mcp_servers": {"m": server}}, "~/x/tool": shell(ran, "evil")})
    write(tmp_path / "home", {"x/tool": shell(ran, "good")})
    trust()
    start(tmp_path)
    assert set(ran.read_text().split()) == {"good"}

    write(tmp_path / "home", {"x/tool": shell(ran, "changed")})

    assert read_settings().trust is Trust.none


def test_a_program_of_the_folder_that_is_called_like_one_that_is_installed_is_looked_at_with_all_that_it_may_run(here):
    write(here, {SETTINGS: {"plugin.mcp_servers": {"m": {"command": "./uvx"}}}, "uvx": "", "deep/er/it.rb": "1"})
    trust()

    write(here, {"deep/er/it.rb": "2"})

    assert read_settings().trust is Trust.none


@pytest.mark.parametrize(
    ("args", "name"),
    [(["compose", "run", "x"], "compose.yaml"), (["run", "-v./lib:/app", "x"], "lib/x.py")],
)
def test_what_docker_is_told_to_take_from_the_folder_ends_trust_when_it_changes(here, args, name):
    write(here, {SETTINGS: {"plugin.mcp_servers": {"m": {"command": "docker", "args": args}}}, name: "1"})
    trust()

    write(here, {name: "2"})

    assert read_settings().trust is Trust.none


OWN = {
    "-m": (PYTHON, ["-m", "served"]),
    "-um": (PYTHON, ["-um", "served"]),
    "-mserved": (PYTHON, ["-mserved"]),
    "-c": (PYTHON, ["-c", "import served"]),
    "-uc": (PYTHON, ["-uc", "import served"]),
    "env": ("env", [PYTHON, "-m", "served"]),
    "a shell": ("sh", ["-c", f"exec '{PYTHON}' -m served"]),
    "a script in a variable": ("env", ["SCRIPT=/opt/x/run.py", PYTHON, "-m", "served"]),
    "a script as an argument": ("env", [PYTHON, "-m", "served", "x.py"]),
}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="older ones take modules from the current folder first")
@pytest.mark.parametrize("cwd", ["", "."])
@pytest.mark.parametrize("case", OWN)
def test_a_server_of_the_users_own_takes_no_module_of_the_folder_however_python_is_called(here, tmp_path, case, cwd):
    command, args = OWN[case]
    write(tmp_path / "own", {"served.py": python(tmp_path / "ran", "good")})
    write(here, {"served.py": python(tmp_path / "ran", "evil")})
    server = {"command": command, "args": args, "env": {"PYTHONPATH": str(tmp_path / "own")}, "cwd": cwd}

    start(tmp_path, mcp_servers={"m": server})

    assert set((tmp_path / "ran").read_text().split()) == {"good"}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="older ones take modules from the current folder first")
@pytest.mark.parametrize("trust", [False, True])
def test_trust_of_a_project_elsewhere_is_none_of_the_current_folder(here, tmp_path, trust):
    write(tmp_path / "own", {"served.py": python(tmp_path / "ran", "good")})
    write(here, {"served.py": python(tmp_path / "ran", "evil")})
    write(tmp_path / "mine", {SETTINGS: {"session.max_posts": 40}})
    server = {"command": PYTHON, "args": ["-m", "served"], "env": {"PYTHONPATH": str(tmp_path / "own")}}

    start(tmp_path, mcp_servers={"m": server}, project=tmp_path / "mine", trust=trust)

    assert set((tmp_path / "ran").read_text().split()) == {"good"}


@pytest.mark.parametrize("part", ["", ".", ":"])
def test_a_word_is_no_program_of_the_folder_where_path_has_nothing_else(here, tmp_path, monkeypatch, part):
    write(here, {"served": shell(tmp_path / "ran", "evil")})
    monkeypatch.setenv("PATH", part)

    start(tmp_path, mcp_servers={"m": {"command": "served"}})

    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("part", ["", ".", "bin"])
def test_a_word_is_no_program_of_the_folder_whatever_path_says(here, tmp_path, monkeypatch, part):
    for folder, words in ((here, "evil"), (here / "bin", "evil"), (tmp_path / "own", "good")):
        write(folder, {"served": shell(tmp_path / "ran", words)})
    monkeypatch.setenv("PATH", os.pathsep.join((part, str(tmp_path / "own"), "/usr/bin", "/bin")))

    start(tmp_path, mcp_servers={"m": {"command": "served"}})

    assert set((tmp_path / "ran").read_text().split()) == {"good"}


@pytest.mark.parametrize("args", [["server.py"], ["-u", "server.py"]])
def test_a_script_of_the_users_own_finds_what_lies_beside_it(here, tmp_path, args):
    write(tmp_path / "own", {"beside.py": python(tmp_path / "ran", "good"), "server.py": "import beside\n"})
    args = [*args[:-1], str(tmp_path / "own" / args[-1])]

    start(tmp_path, mcp_servers={"m": {"command": PYTHON, "args": args}})

    assert (tmp_path / "ran").read_text() == "good"
