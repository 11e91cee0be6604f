"""What an interpreter that a trusted folder names runs at its start ends the folder's trust when it changes."""

import os
import sys

import pytest

from tests.session.written_files import write
from tw_autogen.session import read_settings, review_folder
from tw_autogen.settings_trust import Trust

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="an environment lies otherwise there")


def program(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(0o755)


def trusted():
    review = review_folder()
    assert review.remember(review.sha256()) == ""
    return read_settings().trust is Trust.full


AT_START = {
    "what starts": "bin/python3",
    "settings": "pyvenv.cfg",
    "a module": "lib/python3.11/site-packages/sitecustomize.py",
    "lines of Python": "lib/python3.11/site-packages/evil.pth",
    "lines of Python where Debian's packages are": "local/lib/python3.11/dist-packages/evil.pth",
}


@pytest.mark.parametrize("changed", AT_START)
def test_an_interpreter_that_is_a_word_and_that_path_finds_in_the_folder(here, monkeypatch, changed):
    monkeypatch.setenv("PATH", f"{here / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}")
    write(here, **{"tw_autogen.yaml": "kernel: {python: python3}", ".venv/pyvenv.cfg": "home = /usr/bin\n"})
    program(here / ".venv" / "bin" / "python3")
    (here / ".venv" / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    (want,) = review_folder().wants
    assert want.does.startswith(f"python3 (found by PATH: {here / '.venv' / 'bin' / 'python3'}): the interpreter")
    assert trusted()

    write(here / ".venv", **{AT_START[changed]: "1"})

    assert read_settings().trust is Trust.none


def test_an_interpreter_that_comes_into_the_folder_where_path_looks_first(here, monkeypatch):
    monkeypatch.setenv("PATH", f"{here / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}")
    write(here, **{"tw_autogen.yaml": "kernel: {python: python3}"})
    (want,) = review_folder().wants
    assert (
        want.does == "python3: the interpreter that runs the code; its packages run outside the sandbox too, uncompared"
    )
    assert trusted()

    program(here / ".venv" / "bin" / "python3")

    assert read_settings().trust is Trust.none


LIBRARY = {
    "a module that each start imports": "lib/python3.11/sitecustomize.py",
    "a package": "lib/python3.11/sitecustomize/__init__.py",
    "the library": "lib/python3.11/os.py",
    "a package of it": "lib/python3.11/encodings/utf_8.py",
    "what Python has compiled": "lib/python3.11/encodings/__pycache__/utf_8.cpython-311.pyc",
    "a package that replaces a module": "lib/python3.11/os/__init__.py",
    "an archive, which comes first": "lib/python311.zip",
    "Python itself": "lib/libpython3.11.so.1.0",
    "where the library lies": "bin/pybuilddir.txt",
}


@pytest.mark.parametrize("changed", LIBRARY)
@pytest.mark.parametrize("way", ["itself", "linked", "copied"])
def test_a_whole_python_in_the_folder(here, changed, way):
    env, venv = here / "env", here / ".venv"
    write(env, **{"lib/python3.11/encodings/ascii.py": "0", "lib/python3.11/site-packages/x/x.py": "0"})
    program(env / "bin" / "python")
    if way == "linked":
        (venv / "bin").mkdir(parents=True)
        (venv / "bin" / "python").symlink_to(env / "bin" / "python")
    elif way == "copied":
        program(venv / "bin" / "python")
    if way != "itself":
        write(venv, **{"pyvenv.cfg": f"include-system-site-packages = false\nhome = {env / 'bin'}\n"})
    write(here, **{"tw_autogen.yaml": f"kernel: {{python: {'env' if way == 'itself' else '.venv'}/bin/python}}"})
    assert trusted()

    write(env, **{"lib/python3.11/site-packages/x/x.py": "1"})
    assert read_settings().trust is Trust.full
    write(env, **{LIBRARY[changed]: "1"})

    assert read_settings().trust is Trust.none


@pytest.mark.parametrize("name", ["lib/python311.zip", "lib/libpython3.11.so.1.0"])
def test_a_large_file_of_a_python_in_the_folder(here, name):
    write(here, **{"tw_autogen.yaml": "kernel: {python: env/bin/python}", f"env/{name}": "0" * (5 << 20)})
    program(here / "env" / "bin" / "python")
    assert trusted()

    write(here, **{f"env/{name}": "1" * (5 << 20)})

    assert read_settings().trust is Trust.none


def refusal():
    """Return why a folder is not trusted by whoever says yes; and look that it is not."""
    review = review_folder()
    said = review.remember(review.sha256())
    assert read_settings().trust is Trust.none
    return said


PLUGIN = "from tw_autogen.plugin import plugin\n\n\n@plugin\ndef a() -> int:\n    'Do.'\n    return 1\n"
ROLE = "alias: X\nmodule: x.X\nintro: Do.\n"
AMONG_CODE = {
    "a folder in that of plugins": ({"plugins/plugins/a.py": PLUGIN}, "plugins/python.py"),
    "a folder of plugins that holds another": ({"plugins/a.py": PLUGIN, "settings": "plugin.folder"}, "python.py"),
    "very many plugins": ({f"plugins/p{number}.py": "" for number in range(2001)}, "plugins/python.py"),
    "another folder of roles": ({"roles/x/role.yaml": ROLE}, "ext_role/x/role.yaml"),
}


@pytest.mark.parametrize("case", AMONG_CODE)
def test_a_program_that_lies_where_code_that_is_not_shown_does_is_not_trusted(here, case):
    files, place = AMONG_CODE[case]
    more = {"plugin": {"folder": "."}} if files.pop("settings", "") else {}
    write(here, {**files, "tw_autogen.yaml": {"kernel": {"python": place}, **more}})
    program(here / place)

    assert f"it is not trusted: {here}" in (said := refusal())
    assert "a setting names it, or a file beside it, and it lies where plugins or roles do and is none" in said


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
@pytest.mark.parametrize(
    "how", ["a path", "a link", "of the thread", "a server", "a server's link", "a server's option"]
)
def test_a_path_that_is_another_file_for_each_process_is_not_trusted(here, how):
    for folder in (here, here / "sub"):
        program(folder / "run.py")
    (here / "way").symlink_to("/proc/self/cwd")
    place = {
        "a path": "/proc/self/cwd/run.py",
        "of the thread": "/proc/thread-self/cwd/run.py",
        "a server": "/proc/self/cwd/run.py",
        "a server's option": "--file=/proc/self/cwd/missing.py",
    }.get(how, str(here / "way" / "run.py"))
    server = {"command": sys.executable, "args": [place], "cwd": "sub"}
    settings = {"plugin": {"mcp_servers": {"a": server}}} if "server" in how else {"kernel": {"python": place}}
    write(here, {"tw_autogen.yaml": settings})

    assert "a path over /proc may be another file for each process; name the file itself" in refusal()
