"""Kernels behind bubblewrap: what is particular to them; what every sandbox must hold off is tried by the probes."""

import os
import shutil
import subprocess
import sys

import pytest

from tw_autogen.errors import SandboxError
from tw_autogen.kernel import KernelSettings, LocalKernel, sandbox_levels
from tw_autogen.kernel.sandbox_levels import available_level

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")
SETTINGS = KernelSettings(sandbox="bubblewrap")
SECONDS = 60


@pytest.fixture
def forgotten(monkeypatch):
    """Which levels have failed or stood is remembered in a process; here it is forgotten, before and behind."""
    monkeypatch.setattr(sandbox_levels, "_failed", {})
    monkeypatch.setattr(sandbox_levels, "_working", set())


@pytest.fixture
def kernel(forgotten, tmp_path):
    if shutil.which("bwrap") is None:
        pytest.skip("no program bwrap")
    with LocalKernel(tmp_path, settings=SETTINGS) as kernel:
        try:
            kernel.execute("1", seconds=SECONDS)
        except SandboxError as error:
            pytest.skip(f"not on this system: {error}")
        yield kernel


def test_its_process_is_nobody_special_and_sees_its_own_processes_only(kernel):
    seen = kernel.execute(
        "import os\nos.getuid() == 0, sorted(filter(str.isdigit, os.listdir('/proc')))", seconds=SECONDS
    )

    assert seen.result == "(False, ['1', '2'])"
    assert "bubblewrap" in kernel.where
    assert os.path.exists(f"/proc/{kernel.pid}")


def test_what_the_settings_grant_is_there_and_nothing_beside_it(forgotten, kernel, tmp_path_factory):
    place = tmp_path_factory.mktemp("beside")
    for name in ("read", "write", "hidden"):
        (place / name).mkdir(mode=0o777)
        (place / name).chmod(0o777)
        (place / name / "file").write_text(name)
    granted = KernelSettings(sandbox="bubblewrap", read=(str(place / "read"),), write=(str(place / "write"),))
    code = f"""
import os
said = [open({str(place)!r} + "/read/file").read(), sorted(os.listdir({str(place)!r}))]
open({str(place)!r} + "/write/more", "w").close()
for name in ("/read/more", "/hidden/file"):
    try:
        open({str(place)!r} + name, "w")
    except OSError as error:
        said.append(type(error).__name__)
said"""
    with LocalKernel(tmp_path_factory.mktemp("session"), settings=granted) as other:
        ran = other.execute(code, seconds=SECONDS)

    assert ran.result == "['read', ['read', 'write'], 'OSError', 'FileNotFoundError']", ran.error
    assert (place / "write" / "more").exists()
    assert (place / "hidden" / "file").read_text() == "hidden"


def test_it_stands_around_the_interpreter_of_an_environment_elsewhere(forgotten, tmp_path):
    if (
        shutil.which("bwrap") is None
        or subprocess.run(["bwrap", "--ro-bind", "/", "/", "true"], check=False).returncode
    ):
        pytest.skip("bubblewrap can't be set up here")
    base, python = os.path.realpath(sys.executable), tmp_path / "venv" / "bin" / "python"
    subprocess.run([base, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True, timeout=60)

    assert available_level(KernelSettings(sandbox="bubblewrap", python=str(python))) == "bubblewrap"


REFUSES = """#!/bin/sh
echo "something else" >&2
echo "bwrap: No permissions to create a new namespace" >&2
exit 1
"""


def test_a_bubblewrap_that_can_not_stand_is_told_with_its_own_words(forgotten, monkeypatch, tmp_path):
    program = tmp_path / "bwrap"
    program.write_text(REFUSES)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    with (
        LocalKernel(tmp_path / "session", settings=SETTINGS) as kernel,
        pytest.raises(
            SandboxError, match=r"\(bubblewrap: bwrap: No permissions to create a new namespace\), so no code"
        ),
    ):
        kernel.execute("1", seconds=SECONDS)


def test_without_the_program_no_code_is_run(forgotten, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))

    with (
        LocalKernel(tmp_path / "session", settings=SETTINGS) as kernel,
        pytest.raises(SandboxError, match="no program bwrap.*the package bubblewrap"),
    ):
        kernel.execute("1", seconds=SECONDS)
