"""What code has put in the place of a folder that is looked at for a kernel is not granted to that kernel."""

import json
import os
import subprocess
import sys
from shutil import rmtree

import pytest

from tw_autogen.errors import KernelError, SandboxError
from tw_autogen.kernel import KernelSettings, Loadable, LocalKernel
from tw_autogen.kernel.environment_variables import clean_environment
from tw_autogen.kernel.kernel_folders import KernelFolders
from tw_autogen.kernel.kernel_start import start
from tw_autogen.kernel.launcher import landlock, sandbox_probe
from tw_autogen.kernel.launcher_client import SandboxUnavailable, launch_one
from tw_autogen.kernel.sandbox_levels import available_level

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="levels of Linux")
LEVELS = ("namespaces", "landlock", "bubblewrap")
REFUSED = (
    "exchanged while the kernel was started|can't be shown to code|Landlock can't keep a part of a folder read-only"
)


@pytest.fixture
def world(tmp_path):
    """Return a folder with a grant `w`, a kernel's folder `own`, and folders of the host's with the same names."""
    for place in ("w/a", "w/other", "home"):
        (tmp_path / place / "bin").mkdir(parents=True)
        (tmp_path / place / ".ssh").mkdir()
        (tmp_path / place / ".ssh/id_canary").write_text(place)
        (tmp_path / place / "bin/tool").write_text("original")
        if place != "home":
            (tmp_path / place / "bin/Makefile").write_text("all:")
    (tmp_path / "own").mkdir()
    for path in (tmp_path, *tmp_path.rglob("*/")):
        path.chmod(0o777)
    tmp_path.parent.chmod(0o755)
    return tmp_path


class Exchanging:
    """Starts kernels as a fork server does, after a change of the folders that were looked at.

    Args:
        level: The sandbox level of its kernels.
        change: Called before each start.
    """

    def __init__(self, level, change):
        self.level = level
        self._change = change

    def fork(self, request, log, sockets):
        self._change()
        environment = clean_environment(os.environ)
        return launch_one(sys.executable, environment, level=self.level, request=request, log=log, sockets=sockets)


def replace_by(name, put):
    """Return a change that moves an entry of the grant away and puts something in its place."""

    def change(world):
        place = world / "w" / name
        place.rename(world / "moved")
        put(world, place)

    return change


CHANGES = {
    "a folder on the way, a link out of the grant": replace_by("a", lambda world, one: one.symlink_to("../home")),
    "a folder on the way, an absolute link": replace_by("a", lambda world, one: one.symlink_to(world / "home")),
    "a folder on the way, a link within the grant": replace_by("a", lambda world, one: one.symlink_to("other")),
    "a folder on the way, another folder": replace_by("a", lambda world, one: (world / "w/other").rename(one)),
    "a folder on the way, nothing": replace_by("a", lambda world, one: None),
    "a lower folder, a link": replace_by("a/bin", lambda world, one: one.symlink_to("../../home/bin")),
    "a settings folder, a link": replace_by("a/.ssh", lambda world, one: one.symlink_to("../../home/.ssh")),
    "a settings folder, another folder": replace_by("a/.ssh", lambda world, one: one.mkdir()),
    "a settings file, a link": replace_by("a/bin/Makefile", lambda world, one: one.symlink_to("../../../home/new")),
    "a settings file, nothing": replace_by("a/bin/Makefile", lambda world, one: None),
}

CASES = {
    f"{level}: {name}": (level, change)
    for name, change in CHANGES.items()
    for level in LEVELS
    if level != "landlock" or name.endswith("out of the grant")  # there no settings file may be in a grant
}


def state(folder):
    return {path.relative_to(folder): path.lstat().st_ino for path in folder.rglob("*")}


def stands(level):
    try:
        return available_level(KernelSettings(sandbox=level)) == level
    except SandboxError:
        return False


def begin(world, level, change):
    settings = KernelSettings(sandbox=level, write=(str(world / "w"),), warm=0)
    return start(settings, KernelFolders(world / "own"), server=Exchanging(level, change))


@pytest.mark.parametrize(("level", "change"), CASES.values(), ids=CASES)
def test_no_code_runs_where_the_way_to_a_settings_file_was_exchanged(world, level, change):
    if not stands(level):
        pytest.skip(f"no {level} here")
    after = {}

    def exchange():
        change(world)
        after.update(state(world))

    with pytest.raises(KernelError, match=REFUSED) as error:
        begin(world, level, exchange).discard()
    assert not isinstance(error.value, SandboxUnavailable), "the level itself stands"
    assert state(world) == after


@pytest.mark.parametrize("level", [one for one in LEVELS if one != "landlock"])
def test_settings_files_that_nobody_exchanges_are_shown_read_only(world, level):
    if not stands(level):
        pytest.skip(f"no {level} here")
    for path in world.rglob("w/**/*"):
        path.chmod(0o777)
    begin(world, level, lambda: None).discard()
    names = (".ssh/id_canary", ".ssh/new", "bin/Makefile", "bin/tool", "bin/new")
    settings = KernelSettings(sandbox=level, write=(str(world / "w"),), warm=0, fork=False)

    with LocalKernel(world / "own", settings=settings) as kernel:
        ran = kernel.execute(WRITES.format([str(world / "w/a" / name) for name in names]), seconds=60)

    assert ran.result == "['EROFS', 'EROFS', 'EROFS', '', '']", ran.error


WRITES = """
import errno
def problem(path):
    try:
        return open(path, "a").close() or ""
    except OSError as error:
        return errno.errorcode[error.errno]
[problem(path) for path in {}]
"""
OPENS = """
def opens(path):
    try:
        return bool(open(path).close() is None)
    except OSError:
        return False
[opens(one) for one in {}]
"""
PLUGIN = "from tw_autogen.plugin import register_plugin\n\n@register_plugin\ndef double(x):\n    return 2 * x\n"
RESTRICT = """
import sys
from importlib import import_module
landlock, known_paths = (import_module(f"tw_launcher.{one}") for one in ("landlock", "known_paths"))
import json
paths, known = json.loads(sys.argv[2])
try:
    landlock.restrict(**{"read": [], "write": [], **paths}, network=False, known=known)
except known_paths.FolderRefusedError as error:
    print(error)
"""
"""Run behind `sandbox_probe.STUB` without its last two lines."""
EXCHANGED = {
    "a link in its place": lambda world: (world / "w/a").symlink_to("../home"),
    "another folder": lambda world: (world / "home").rename(world / "w/a"),
    "nothing": lambda world: None,
}


@pytest.mark.parametrize("kind", ["read", "listed", "write"])
@pytest.mark.parametrize("change", EXCHANGED.values(), ids=EXCHANGED)
def test_landlock_grants_nothing_in_the_place_of_a_folder_that_was_checked(world, kind, change):
    if not stands("landlock"):
        pytest.skip("no landlock here")
    place = world / "w/a"
    about = place.stat()
    place.rename(world / "moved")
    change(world)
    paths = {"read" if kind == "listed" else kind: [f"{place}/." if kind == "listed" else str(place)]}
    stub = sandbox_probe.STUB.rsplit("from tw_launcher.sandbox_probe", 1)[0]
    launcher = os.path.dirname(landlock.__file__)
    asked = json.dumps([paths, {str(place): [about.st_dev, about.st_ino]}])
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", stub + RESTRICT, launcher, asked], capture_output=True, text=True, timeout=60
    )
    assert ran.stdout == f"{place}: exchanged while the kernel was started, so no code is run there\n", ran.stderr


@pytest.mark.parametrize("level", LEVELS)
def test_a_link_that_code_has_put_in_the_path_for_imports_grants_nothing(world, level, monkeypatch):
    if not stands(level):
        pytest.skip(f"no {level} here")
    (world / "home/site-packages").mkdir()
    secrets = [world / "home" / one for one in (".ssh/id_canary", "site-packages/other.py", "bin/tool")]
    secrets[1].write_text("secret")
    (world / "w/file").symlink_to(secrets[0])
    (world / "w/installed").symlink_to(secrets[1].parent)
    for one in ("package/__init__.py", "package/.hidden"):
        (world / "w/src" / one).parent.mkdir(parents=True, exist_ok=True)
        (world / "w/src" / one).write_text("")
    (world / "w/src/package/sub").symlink_to(secrets[2].parent)
    granted = world / "w/src/package/__init__.py"
    rmtree(world / "w/a")
    rmtree(world / "w/other")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(str(world / "w" / one) for one in ("file", "installed", "src")))
    settings = KernelSettings(sandbox=level, write=(str(world / "w"),), warm=0, fork=False)
    with LocalKernel(world / "own", settings=settings) as kernel:
        ran = kernel.execute(OPENS.format([str(secret) for secret in (*secrets, granted)]), seconds=60)
    assert ran.result == "[False, False, False, True]", ran.error


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("moved", ["plugins", "plugins/package/sub"])
def test_a_link_that_code_has_put_beside_a_plugin_grants_nothing(world, level, moved):
    if not stands(level):
        pytest.skip(f"no {level} here")
    rmtree(world / "w/a")
    rmtree(world / "w/other")
    for one in ("double.py", ".hidden", "package/.hidden", "package/sub/.hidden", "package/sub/tool", "tool"):
        (world / "w/plugins" / one).parent.mkdir(parents=True, exist_ok=True)
        (world / "w/plugins" / one).write_text("")
    settings = KernelSettings(sandbox=level, write=(str(world / "w"),), warm=0, fork=False)
    plugin = Loadable("double", PLUGIN, path=world / "w/plugins/double.py")
    with LocalKernel(world / "own", settings=settings) as kernel:
        kernel.load(plugin)
    (world / "w" / moved).rename(world / "moved")
    (world / "w" / moved).symlink_to(world / "home/bin")
    with LocalKernel(world / "own", settings=settings) as kernel:
        kernel.load(plugin)
        ran = kernel.execute(OPENS.format([str(world / "home/bin/tool")]), seconds=60)
    assert ran.result == "[False]", ran.error


LOOKS = []
"""What the host lists: the real paths of folders, while a test looks."""


def _note(event, args):
    if event == "os.scandir" and LOOKS:
        place = args[0]
        LOOKS.append(os.readlink(f"/proc/self/fd/{place}") if isinstance(place, int) else str(place))


def test_a_start_looks_for_settings_files_once(world):
    settings = KernelSettings(write=(str(world / "w"),))
    with LocalKernel(world / "own", settings=settings) as kernel:
        sys.addaudithook(_note)  # can't be removed; does nothing once the list is empty
        LOOKS.append("")
        try:
            ran = kernel.execute(f"open('{world}/w/a/bin/Makefile', 'w')", seconds=60)
            looks = LOOKS.count(str(world / "w"))
        finally:
            LOOKS.clear()

    assert "stays read-only, as settings files, hooks and" in ran.error
    assert looks == 2  # for settings files and hooks, and for files with a hard link elsewhere


def test_settings_files_stay_read_only_in_the_folder_that_a_link_led_to_first(world):
    link = world / "link"
    link.symlink_to(world / "w/a")
    with LocalKernel(world / "own", settings=KernelSettings(write=(str(link),))) as kernel:
        link.unlink()
        link.symlink_to(world / "home")
        cells = [f"open('{world}/{name}', 'w').close()" for name in ("w/a/bin/Makefile", "w/a/bin/other")]
        refused, granted = (kernel.execute(cell, seconds=60) for cell in cells)

    assert "stays read-only, as settings files, hooks and" in refused.error
    assert granted.ok
