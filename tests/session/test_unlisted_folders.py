"""A folder that can't be listed never counts as empty: Python, Node and hooks of `.git` are found in it by name."""

import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from tw_autogen.errors import ConfigError
from tw_autogen.kernel import KernelSettings
from tw_autogen.safe_folder import protected_below
from tw_autogen.session import read_settings, review_folder
from tw_autogen.session.path_grants import Grants
from tw_autogen.settings_trust import Trust
from tw_autogen.trust_store import code_files

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes of folders mean nothing there")
NOBODY = 65534


@contextlib.contextmanager
def ordinary_user():
    """Be an ordinary user in this block: root lists each folder."""
    if os.geteuid() != 0:
        yield
        return
    os.setresgid(NOBODY, NOBODY, 0)
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)


@pytest.fixture
def here(monkeypatch):
    """Make the current folder, which such a user owns, in a place that is open to all; HOME lies beside it."""
    base = Path(tempfile.mkdtemp(dir="/tmp"))
    base.chmod(0o755)
    for name in ("here", "home"):
        (base / name).mkdir()
        if os.geteuid() == 0:
            os.chown(base / name, NOBODY, NOBODY)
    for name in [one for one in os.environ if one.startswith(("OPENAI_", "OAI_", "TW_AUTOGEN_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(base / "home"))
    monkeypatch.chdir(base / "here")
    write(base / "here", "tw_autogen.yaml", text=SERVER % ("python3", "server.py"))
    review_folder().sha256()  # all modules of it are there when the user is another one, who may not read them
    (base / "here" / "tw_autogen.yaml").unlink()
    yield base / "here"
    for place in (base / "here", *(path for path in (base / "here").rglob("*") if path.is_dir())):
        place.chmod(0o755)
    shutil.rmtree(base)


def write(folder, *names, text="1"):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)


SERVER = "plugin: {mcp_servers: {m: {command: %s, args: [%s]}}}"
UNLISTED = {
    "a package beside a server, before the standard library": (SERVER % ("python3", "server.py"), "json"),
    "packages beside a server of Node": (SERVER % ("node", "src/index.js"), "src/node_modules"),
    "a package that an interpreter imports": (
        "kernel: {python: .venv/bin/python}",
        ".venv/lib/python3.11/site-packages/sitecustomize",
    ),
    "packages of an interpreter": ("kernel: {python: .venv/bin/python}", ".venv/lib/python3.11"),
}


@pytest.mark.parametrize("case", UNLISTED)
def test_a_folder_that_can_not_be_listed_ends_trust(here, case):
    settings, place = UNLISTED[case]
    with ordinary_user():
        write(here, "tw_autogen.yaml", text=settings)
        write(here, "server.py", "src/index.js", ".venv/bin/python", ".venv/pyvenv.cfg", ".venv/lib/python3.11/a.py")
        review = review_folder()
        assert review.remember(review.sha256()) == ""
        assert read_settings().trust is Trust.full

        (here / place).mkdir(parents=True, exist_ok=True)
        (here / place).chmod(0o311)

        assert read_settings().trust is Trust.none
        review = review_folder()
        assert review.sha256() == ""
        assert review.no_hash_reason().startswith(f"{here / place}: it can't be listed")


def test_a_folder_that_is_called_an_environment_of_python_hides_nothing_from_node(here):
    with ordinary_user():
        write(here, "tw_autogen.yaml", text=SERVER % ("node", "src/index.js"))
        write(here, "src/index.js", "node_modules/left/index.js")
        review = review_folder()
        assert review.remember(review.sha256()) == ""
        assert read_settings().trust is Trust.full

        write(here, "src/node_modules/pyvenv.cfg", "src/node_modules/left/index.js")

        assert read_settings().trust is Trust.none


def test_a_program_that_can_not_be_read_ends_trust(here, monkeypatch):
    monkeypatch.setenv("PATH", f"{here / 'bin'}{os.pathsep}{os.environ['PATH']}")
    with ordinary_user():
        write(here, "tw_autogen.yaml", text="kernel: {python: python3}")
        review = review_folder()
        assert review.remember(review.sha256()) == ""
        assert read_settings().trust is Trust.full

        write(here, "bin/python3")
        (here / "bin" / "python3").chmod(0o111)

        assert read_settings().trust is Trust.none


@pytest.mark.parametrize("mode", [0o000, 0o311])
@pytest.mark.parametrize("place", [".", "sub", "sub/deep"])
def test_a_folder_that_can_not_be_listed_is_not_granted_and_is_named_as_new(here, place, mode):
    with ordinary_user():
        write(here, "sub/deep/.git/hooks/pre-commit")
        grants = Grants(KernelSettings(write=(str(here),)))
        grants.take_new_hooks()

        (here / place).chmod(mode)

        with pytest.raises(PermissionError, match="can't be listed") as error:
            list(protected_below(str(here)))
        assert Path(error.value.filename) == here / place
        assert [Path(hook) for hook in grants.take_new_hooks()] == [here / place]
        (here / place).chmod(0o755)
        assert grants.take_new_hooks() == []


def test_new_hooks_are_named_beside_a_folder_that_can_not_be_listed_which_is_named_each_time(here):
    with ordinary_user():
        write(here, "sub/conftest.py")
        grants = Grants(KernelSettings(write=(str(here),)))
        grants.take_new_hooks()
        (here / "tmp").mkdir(mode=0)

        assert grants.take_new_hooks() == [str(here / "tmp")]
        write(here, "sub/Makefile")
        assert grants.take_new_hooks() == [str(here / "sub/Makefile"), str(here / "tmp")]
        assert grants.take_new_hooks() == [str(here / "tmp")]


def test_a_closed_folder_of_another_user_holds_nothing_for_this_one(here):
    if os.geteuid() != 0:
        pytest.skip("only root makes a folder of another user")
    (here / "data").mkdir(mode=0o700)
    write(here, "server.py", "data/a.py", "data/Makefile")

    with ordinary_user():
        assert list(code_files([here])) == [here / "server.py"]
        assert list(protected_below(str(here))) == []

    (here / "data").chmod(0o711)
    with ordinary_user(), pytest.raises(ConfigError, match="data: it can't be listed"):
        list(code_files([here]))
