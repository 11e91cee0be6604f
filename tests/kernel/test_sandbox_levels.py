"""Which sandbox a kernel gets is known before a kernel is started, and is the one that it then has."""

import contextlib
import errno
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.kernel.test_host_children import environment_of_its_own
from tests.kernel.test_problem_deaths import until
from tw_autogen.errors import ConfigError, KernelStartError, SandboxError
from tw_autogen.kernel import KernelSettings, LocalKernel, sandbox_levels
from tw_autogen.kernel.kernel_process import LocalProcess
from tw_autogen.kernel.launcher.first import sitecustomize
from tw_autogen.kernel.pool import KernelPool
from tw_autogen.kernel.python_process import isolated
from tw_autogen.kernel.sandbox_levels import available_level, describe_sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no sandbox yet")


@pytest.mark.parametrize("sandbox", ["auto", "namespaces", "landlock", "bubblewrap"])
def test_what_is_said_before_the_start_is_what_stands_then(sandbox):
    settings = KernelSettings(sandbox=sandbox)
    with LocalKernel(settings=settings) as kernel:
        before = kernel.where
        try:
            kernel.execute("1", seconds=60)
        except SandboxError as error:
            assert str(error) in before  # noqa: PT017 - both ways of a system are right, if they agree
            return

        assert "starts with the first cell" in before
        assert describe_sandbox(available_level(settings), settings) in before
        assert before.partition("sandbox: ")[2] == kernel.where.partition("sandbox: ")[2]


@pytest.mark.parametrize("sandbox", ["namespaces", "landlock", "bubblewrap"])
def test_what_programs_of_the_system_need_of_etc_and_of_groups_of_processes_is_readable(sandbox):
    known = ("/etc/R", "/etc/java-17-openjdk", "/etc/matplotlibrc", "/etc/ImageMagick-6", "/etc/ssl/certs")
    wanted = [one for one in known if os.path.exists(one)] + ["/sys/fs/cgroup"] * (sandbox == "landlock")
    code = f"import os\n[one for one in {wanted} if not (os.listdir(one) if os.path.isdir(one) else open(one).read(1))]"
    with LocalKernel(settings=KernelSettings(sandbox=sandbox)) as kernel:
        try:
            ran = kernel.execute(code, seconds=60)
        except SandboxError as error:
            pytest.skip(str(error))
        assert ran.ok, ran.error
        assert kernel.execute("open('/etc/shadow')", seconds=60).error


@pytest.mark.parametrize("umask", [0o022, 0o077])
@pytest.mark.parametrize("sandbox", ["namespaces", "bubblewrap"])
def test_the_user_that_code_runs_as_has_an_account(sandbox, umask):
    code = "import getpass, os, pwd\nos.environ.pop('USER', 0), os.environ.pop('LOGNAME', 0)\n"
    code += "getpass.getuser(), pwd.getpwuid(os.getuid()).pw_dir == os.path.expanduser('~'), os.umask(0)"
    before = os.umask(umask)
    try:
        with LocalKernel(settings=KernelSettings(sandbox=sandbox, fork=False, warm=0)) as kernel:
            ran = kernel.execute(code, seconds=60)
    except SandboxError as error:
        pytest.skip(str(error))
    finally:
        os.umask(before)
    assert ran.result == f"('user', True, {umask})", ran.error


def test_processes_that_code_starts_import_what_the_user_has_installed(tmp_path, monkeypatch):
    tag = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site_packages = tmp_path / "base" / "lib" / tag / "site-packages"
    site_packages.mkdir(parents=True)
    (site_packages / "tw_own.py").write_text("name = 'installed by the user'")
    monkeypatch.setenv("PYTHONUSERBASE", str(tmp_path / "base"))
    python = os.path.realpath(sys.executable)  # an environment has no such folder
    code = f"import subprocess\nsubprocess.run([{python!r}, '-c', 'import tw_own; print(tw_own.name)'], text=True, "
    code += "capture_output=True).stdout"
    settings = KernelSettings(read=(str(site_packages),), warm=0)

    with LocalKernel(settings=settings) as kernel:
        assert kernel.execute(code, seconds=60).result == repr("installed by the user\n")
    monkeypatch.setenv("PYTHONNOUSERSITE", "1")
    with LocalKernel(settings=settings, pool=KernelPool()) as kernel:
        assert kernel.execute(code, seconds=60).result == "''"


@pytest.mark.parametrize("sandbox", ["namespaces", "landlock", "bubblewrap"])
def test_fonts_of_the_user_can_be_read_and_nothing_beside_them(sandbox, tmp_path, monkeypatch):
    home = tmp_path / "home"
    for name in (".fonts/a.ttf", ".local/share/fonts/b/b.otf", ".local/share/keyrings/login.keyring"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("text")
    for path in (tmp_path, *tmp_path.rglob("*")):
        path.chmod(0o755)  # the one that code runs as may be another
    (home / "Library").mkdir()
    (home / "Library" / "Fonts").symlink_to(home / ".local")
    monkeypatch.setenv("HOME", str(home))
    with LocalKernel(settings=KernelSettings(sandbox=sandbox, warm=0), pool=KernelPool()) as kernel:
        try:
            fonts = f"[open({str(home)!r} + one).read() for one in ('/.fonts/a.ttf', '/.local/share/fonts/b/b.otf')]"
            assert kernel.execute(fonts, seconds=60).result == "['text', 'text']"
        except SandboxError as error:
            pytest.skip(str(error))
        for name in (".local/share/keyrings/login.keyring", "Library/Fonts/share/keyrings/login.keyring"):
            assert kernel.execute(f"open({str(home / name)!r})", seconds=60).error


def test_without_one_it_says_so():
    with LocalKernel(settings=KernelSettings(sandbox="off")) as kernel:
        assert kernel.where.endswith("no sandbox (kernel.sandbox='off'): code may do what this user may do")


def test_a_process_that_the_user_starts_is_said_to_have_no_sandbox_of_ours():
    with LocalKernel(start=LocalProcess) as kernel:
        before = kernel.where
        assert kernel.execute("1", seconds=60).ok

        assert "sandbox='off'" not in before + kernel.where
        for said in (before, kernel.where):
            assert said.endswith("no sandbox of ours: the process was started by the `start` that was given")


PASSING = ["unshare: Cannot allocate memory", "[Errno 11] Resource temporarily unavailable"]


@pytest.mark.parametrize("why", PASSING)
def test_a_sandbox_that_fails_for_the_moment_is_tried_again_and_no_weaker_one_is_taken(monkeypatch, why):
    monkeypatch.setattr(sandbox_levels, "_failed", {})
    levels = sandbox_levels.level_attempts(KernelSettings())
    strongest = next(levels)
    sandbox_levels.record_failure(strongest, why)

    assert next(sandbox_levels.level_attempts(KernelSettings())) == strongest
    said = rf"{strongest}: this sandbox can't be set up at the moment \({re.escape(why)}"
    for _ in range(3):
        assert next(levels) == strongest
        sandbox_levels.record_failure(strongest, why)
    with pytest.raises(SandboxError, match=said):
        next(levels)


def test_where_a_sandbox_has_stood_no_weaker_one_is_taken_whatever_fails_later(monkeypatch):
    monkeypatch.setattr(sandbox_levels, "_failed", {})
    monkeypatch.setattr(sandbox_levels, "_working", set())
    strongest = next(sandbox_levels.level_attempts(KernelSettings()))
    sandbox_levels.record_success(strongest, KernelSettings())

    assert not sandbox_levels.record_failure(strongest, "unshare: No space left on device")
    assert next(sandbox_levels.level_attempts(KernelSettings())) == strongest


def test_a_sandbox_that_the_system_forbids_gives_way_to_the_next_one(monkeypatch):
    monkeypatch.setattr(sandbox_levels, "_failed", {})
    monkeypatch.setattr(sandbox_levels, "_working", set())
    levels = sandbox_levels.level_attempts(KernelSettings())
    strongest = next(levels)
    sandbox_levels.record_failure(strongest, "unshare: Operation not permitted")

    assert next(levels) != strongest
    assert next(sandbox_levels.level_attempts(KernelSettings())) != strongest


def test_it_is_tried_once():
    available_level(KernelSettings())
    took = []

    for _ in range(10):  # other load may delay some of them
        started = time.monotonic()
        available_level(KernelSettings())
        took.append(time.monotonic() - started)

    assert min(took) < 0.01


_NOBODY = """
from tw_autogen.session import open_session
from tw_autogen.testing import ScriptedModel

with ScriptedModel([]) as model:
    open_session(model, settings={"kernel.sandbox": "bubblewrap"})
"""


def test_where_none_can_stand_a_session_says_so_before_any_model_is_asked(tmp_path):
    environment = {**os.environ, "PATH": str(tmp_path), "TW_AUTOGEN_SESSION_WORKSPACE": str(tmp_path)}

    done = subprocess.run([sys.executable, "-c", _NOBODY], env=environment, capture_output=True, text=True, timeout=60)

    last = done.stderr.strip().splitlines()[-1]
    assert "SandboxError: no sandbox can be set up here (bubblewrap: no program bwrap), so no code is run." in last
    assert "What would allow one: the package bubblewrap" in last
    assert not list(tmp_path.glob("session-*/events.jsonl"))


FAILING = {
    "refused": (
        "echo 'bwrap: No permissions to create a new namespace' >&2; exit 1",
        "bwrap: No permissions to create",
    ),
    "setting up fails": ('echo "bwrap: Can\'t mount proc on /newroot/proc" >&2; exit 1', "bwrap: Can't mount proc"),
    "silent": ("exit 1", "bwrap started no process"),
    "in other words": (
        "echo 'wrapper: not allowed here' >&2; exit 3",
        "bwrap started no process: wrapper: not allowed",
    ),
    "starts nothing": ("exit 0", "bwrap started no process"),
}
"""Programs in bubblewrap's place, and the reason that is told."""


@pytest.fixture(params=FAILING.values(), ids=FAILING)
def failing(request, tmp_path):
    """Environment variables with which the program fails that is found as bwrap, and the reason."""
    script, why = request.param
    program = tmp_path / "bin" / "bwrap"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "TW_AUTOGEN_SESSION_WORKSPACE": str(tmp_path / "tw")}, why


def test_where_bubblewrap_can_not_stand_a_session_says_so_before_any_model_is_asked(failing):
    environment, why = failing

    done = subprocess.run([sys.executable, "-c", _NOBODY], env=environment, capture_output=True, text=True, timeout=60)

    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"tw_autogen.errors.SandboxError: no sandbox can be set up here (bubblewrap: {why}"), (
        done.stderr
    )
    assert done.stdout == ""


def test_a_deep_folder_for_temporary_files_hinders_no_kernel_behind_a_sandbox(tmp_path, monkeypatch):
    deep = tmp_path / ("d" * 80)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))

    with LocalKernel(tmp_path / "session") as kernel:
        assert kernel.execute("6 * 7", seconds=60).result == "42"
        assert not list(deep.rglob("connection.json"))


@pytest.mark.parametrize("granted", ["folder", "write", "write below a link"])
@pytest.mark.parametrize("place", [".", "tmp"])
def test_code_may_not_write_where_the_host_keeps_temporary_files(tmp_path, monkeypatch, granted, place):
    (tmp_path / "project" / "tmp").mkdir(parents=True)
    (tmp_path / "project").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path / "project")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "project" / place))
    folder = tmp_path / ("project" if granted == "folder" else "session")
    write = {"folder": (), "write": (str(tmp_path / "project"),)}.get(granted, (str(tmp_path / "link"),))
    problem = "no kernel works here" if granted == "folder" else "can't be granted"

    with pytest.raises(ConfigError, match=rf"{problem}(.|\n)*(temporary files|system's folders)"):  # noqa: SIM117
        with LocalKernel(folder, settings=KernelSettings(write=write, warm=0)) as kernel:
            kernel.execute("6 * 7", seconds=60)


@pytest.mark.parametrize("fork", [True, False])
def test_what_code_wrote_into_a_folder_of_pythonpath_is_not_run_outside_a_sandbox(tmp_path, monkeypatch, fork):
    folder, notes = tmp_path / "project", tmp_path / "notes"
    notes.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(folder))
    settings = KernelSettings(warm=0, fork=fork)
    write = f"""
for name in ("sitecustomize", "pandas", "ipykernel", "mine"):
    with open(f"{{name}}.py", "w") as file:
        file.write(f"try: open('{notes}/{{name}}', 'w')\\nexcept OSError: pass\\nwhere = __file__")
"""
    with KernelPool() as pool, LocalKernel(folder, settings=settings, pool=pool) as kernel:
        assert kernel.execute(write, seconds=60).ok
    with KernelPool() as pool:
        assert not fork or pool.wait(settings)
        with LocalKernel(tmp_path / "session", settings=settings, pool=pool) as kernel:
            assert kernel.execute("import mine\nmine.where", seconds=60).result == repr(str(folder / "mine.py"))
    assert os.listdir(notes) == []


@pytest.mark.parametrize("installed", [False, True])
def test_an_interpreter_that_makes_kernels_starts_without_a_word(tmp_path, installed):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    if installed:
        (folder / "sitecustomize.py").write_text("print('installed')")
    environment = isolated({"PATH": os.environ["PATH"]}, path=str(folder))

    ran = subprocess.run([sys.executable, "-c", "print('ran')"], env=environment, capture_output=True, text=True)

    assert ran.stderr == ""
    assert ran.stdout == ("installed\nran\n" if installed else "ran\n")


_CHANGES = """
import contextlib, os
for change in (
    lambda: open("env/site-packages/pandas.py", "w").close(),
    lambda: os.remove("env/site-packages/installed.py"),
    lambda: os.rename("env/site-packages", "moved"),
    lambda: os.rename("env", "moved"),
    lambda: os.symlink("/", "env/new"),
):
    with contextlib.suppress(OSError):
        change()
"""


@pytest.mark.parametrize("level", ["namespaces", "bubblewrap"])
def test_packages_that_lie_in_the_folder_of_code_are_not_written_by_it(tmp_path, monkeypatch, level):
    settings, packages = KernelSettings(sandbox=level, warm=0, allow_symlinks=True), tmp_path / "env" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "installed.py").write_text("value = 7\n")
    monkeypatch.setenv("PYTHONPATH", str(packages))
    with KernelPool() as pool, LocalKernel(tmp_path, settings=settings, pool=pool) as kernel:
        try:
            assert kernel.execute(_CHANGES, seconds=60).ok
        except SandboxError as error:
            pytest.skip(str(error))
        assert kernel.execute("import installed\ninstalled.value", seconds=60).result == "7"
    assert sorted(path.name for path in packages.glob("*.py")) == ["installed.py"]
    assert (tmp_path / "env" / "new").is_symlink()


def orphans(entry):
    """Return the processes without a parent whose path for imports names a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == 1 and os.fsencode(entry) in (path / "environ").read_bytes():
                found.append(path.name)
    return found


def test_landlock_refuses_a_folder_of_code_that_holds_the_interpreters_packages(tmp_path, monkeypatch):
    settings, packages = KernelSettings(sandbox="landlock", warm=0), tmp_path / "env" / "site-packages"
    packages.mkdir(parents=True)
    monkeypatch.setenv("PYTHONPATH", str(packages))
    try:
        available_level(settings)
    except SandboxError as error:
        pytest.skip(str(error))
    with KernelPool() as pool:
        for folder, granted in ((tmp_path, ()), (tmp_path / "work", (str(tmp_path / "env"),))):
            settings = KernelSettings(sandbox="landlock", warm=0, write=granted)
            with LocalKernel(folder, settings=settings, pool=pool) as kernel:
                said = (
                    f"{granted[0] if granted else folder}: code may write here, and {packages}, .* Landlock can't keep"
                )
                with pytest.raises(KernelStartError, match=said):
                    kernel.execute("1", seconds=60)
        assert until(lambda: not orphans(packages))
        with LocalKernel(tmp_path / "work", settings=KernelSettings(sandbox="landlock", warm=0), pool=pool) as kernel:
            assert kernel.execute("1", seconds=60).ok


def test_where_no_folder_is_short_enough_for_sockets_that_is_said(tmp_path, monkeypatch):
    deep = tmp_path / ("d" * 80)
    deep.mkdir()
    make = tempfile.mkdtemp

    def only_deep(suffix=None, prefix=None, dir=None):  # noqa: A002 - the word of the library
        if dir in ("/tmp", "/var/tmp"):
            raise PermissionError(13, "read-only")
        return make(suffix, prefix, dir)

    monkeypatch.setattr("tempfile.tempdir", str(deep))
    monkeypatch.setattr("tempfile.mkdtemp", only_deep)
    with (
        KernelPool() as pool,
        LocalKernel(tmp_path / "session", pool=pool) as kernel,
        pytest.raises(KernelStartError, match=rf"^{deep}: its path is too long for a kernel's sockets.*set TMPDIR"),
    ):
        kernel.execute("6 * 7", seconds=60)
    # the pool of this process may be trying there too
    assert until(lambda: not list(deep.rglob("connection.json")))


@pytest.mark.parametrize(
    ("entry", "held"),
    [
        ("/usr/lib/python3/dist-packages", True),
        ("/home/me/.venv/lib/python3.12/site-packages", True),
        (f"{sys.base_prefix}/lib/python3", True),
        ("/home/me/data-packages", False),
        ("/home/me/site-packages/mine", False),
    ],
)
def test_only_folders_that_installers_write_count_as_installed(entry, held):
    assert sitecustomize.installed(entry) is held


def test_an_interpreter_that_lacks_ipykernel_and_a_full_disk_are_told_with_what_to_do(tmp_path, monkeypatch):
    bare = environment_of_its_own(tmp_path / "bare")
    with (
        LocalKernel(tmp_path / "session", settings=KernelSettings(python=str(bare), fork=False, warm=0)) as kernel,
        pytest.raises(KernelStartError, match=f"No module named .*\nTry: {bare} -m pip install ipykernel$"),
    ):
        kernel.execute("1", seconds=60)

    def full(suffix=None, prefix=None, dir=None):  # noqa: A002 - the word of the library
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with LocalKernel(tmp_path / "session", settings=KernelSettings(fork=False, warm=0)) as kernel:
        available_level(KernelSettings())
        monkeypatch.setattr("tempfile.mkdtemp", full)
        with pytest.raises(KernelStartError, match=f"No space left on device in {tempfile.gettempdir()}, where a ker"):
            kernel.execute("1", seconds=60)
