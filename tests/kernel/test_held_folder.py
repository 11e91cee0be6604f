"""The host works in the folder that a kernel really has, whatever its path means while the kernel lives."""

import gc
import io
import os
import sys
import threading

import pandas as pd
import pytest

from tw_autogen.errors import ConfigError, KernelError, KernelStartError, SandboxError
from tw_autogen.kernel import Artifact, KernelSettings, LocalKernel
from tw_autogen.kernel.guest.checkpoint import FOLDER as CHECKPOINTS
from tw_autogen.kernel.guest.exchange_folder import FOLDER as EXCHANGE
from tw_autogen.kernel.kernel_folders import KernelFolders
from tw_autogen.kernel.launcher.known_paths import FolderRefusedError, open_known
from tw_autogen.kernel.pool import default_pool
from tw_autogen.kernel.sandbox_levels import available_level
from tw_autogen.safe_folder import HeldFolder, SafeFolder, read_unlinked
from tw_autogen.safe_folder.held_folder import innermost_held_folder
from tw_autogen.session.answer_files import save_files
from tw_autogen.session.request_inputs import place_inputs

SECONDS = 60.0
LINUX_LEVELS = ("namespaces", "landlock", "bubblewrap")


@pytest.fixture
def world(tmp_path):
    """Return a folder with a kernel's folder `w/a/files` and one of the host's, `victim`, with the same names in it."""
    (tmp_path / "w/a/files").mkdir(parents=True)
    for name in (EXCHANGE, CHECKPOINTS, "sub"):
        (tmp_path / "victim/files" / name).mkdir(parents=True)
        (tmp_path / "victim/files" / name / "canary").write_text("alive")
    (tmp_path / "victim/files/made.csv").write_text("of the host")
    for path in (tmp_path, *tmp_path.rglob("*/")):
        path.chmod(0o777)
    tmp_path.parent.chmod(0o755)
    return tmp_path


def by_link(world):
    (world / "w/a").rename(world / "w/old")
    (world / "w/a").symlink_to(world / "victim")
    return world / "victim"


def by_folder(world):
    (world / "w/a").rename(world / "w/old")
    (world / "victim").rename(world / "w/a")
    return world / "w/a"


SWAPS = {"a link": by_link, "another folder": by_folder}


def state(folder):
    return {
        path.relative_to(folder).as_posix(): (
            path.stat().st_uid,
            path.stat().st_mode,
            path.is_file() and path.read_bytes(),
        )
        for path in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize("swap", SWAPS.values(), ids=SWAPS)
def test_nothing_of_a_live_kernel_goes_to_what_took_the_place_of_its_folder(world, swap):
    settings = KernelSettings(write=(str(world / "w"),), warm=0)
    kernel = LocalKernel(world / "w/a/files", settings=settings, resume=True)
    with kernel:
        uid = int(kernel.execute("import os, pandas as pd\nopen('made.csv', 'w').write('x')\nos.getuid()",
                                 seconds=SECONDS).result)  # fmt: skip
        if os.geteuid() == 0:
            for path in (world / "victim/files").rglob("*"):
                os.chown(path, uid, uid)
        before = state(world / "victim")
        victim = swap(world)

        with pytest.raises(KernelError, match="No such file|denied"):  # the kernel looks for it by its path
            kernel.put("table", pd.DataFrame({"a": range(3)}))
        ran = kernel.execute("pd.DataFrame({'a': range(3)}).to_csv('made.csv')\nx = 3\nx", seconds=SECONDS)
        (world / "given.csv").write_text("of the host")
        (copied,) = place_inputs([world / "given.csv"], kernel.folder, print)
        saved = save_files([Artifact("made", "file", kernel.folder / "made.csv", "")], world / "out")

        assert (ran.ok, kernel.get("x")) == (True, 3)
        assert (world / "w/old/files/given.csv").read_text() == "of the host"
        assert copied == kernel.folder / "given.csv"
        assert [one.path and one.path.read_text()[:2] for one in saved] == [",a"]
        assert (world / "w/old/files" / CHECKPOINTS / "cells.jsonl").exists()
    assert state(victim) == before
    assert {path.stat().st_uid for path in (world / "w/old").rglob("*")} == {os.geteuid()}


@pytest.mark.parametrize("swap", SWAPS.values(), ids=SWAPS)
def test_a_path_of_a_held_folder_means_that_folder_until_it_is_closed(world, swap):
    folder = world / "w/a/files"
    (folder / "sub").mkdir()
    kept = HeldFolder(folder)
    victim = swap(world)
    before = state(victim)
    for place, name in ((folder, "sub/x"), (folder / "sub", "y")):
        with SafeFolder(place) as opened:
            opened.copy_in(io.BytesIO(b"ours"), name)
    assert read_unlinked(folder / "sub/y", limit_bytes=10) == b"ours"
    assert state(victim) == before
    assert sorted(os.listdir(world / "w/old/files/sub")) == ["x", "y"]
    kept.close()
    with SafeFolder(folder) as opened:
        assert opened.has_file("made.csv")


def test_a_second_folder_of_the_same_path_is_refused_while_the_first_is_there(world):
    folder = world / "w/a/files"
    kept, again = HeldFolder(folder), HeldFolder(folder)
    again.close()
    by_folder(world)
    with pytest.raises(PermissionError, match="another folder than the one that is in use here"):
        HeldFolder(folder)
    with pytest.raises(ConfigError, match="another folder than the one that is in use here"):
        LocalKernel(folder, settings=KernelSettings(warm=0))
    (world / "w/old/files").rmdir()
    HeldFolder(folder).close()  # the first one has been removed
    kept.close()


def link_on_the_way(world):
    (world / "link").symlink_to(world / "victim")
    return world / "link/files"


def link_in_its_place(world):
    (world / "files").symlink_to(world / "victim/files")
    return world / "files"


CHANGED = {
    "another folder": lambda world: by_folder(world) / "files",
    "a link on the way": link_on_the_way,
    "a link in its place": link_in_its_place,
}


@pytest.mark.parametrize("changed", CHANGED.values(), ids=CHANGED)
def test_a_path_that_was_exchanged_after_it_was_checked_is_not_opened(world, changed):
    was = os.stat(world / "w/a/files")
    path = str(changed(world))
    with pytest.raises(FolderRefusedError, match=f"{path}: exchanged while the kernel was started"):
        open_known(path, {path: (was.st_dev, was.st_ino)})


@pytest.mark.skipif(sys.platform != "linux", reason="levels of Linux")
@pytest.mark.parametrize("level", LINUX_LEVELS)
@pytest.mark.parametrize(("granted", "changed"), [("folder", link_on_the_way), ("write", CHANGED["another folder"])])
def test_no_code_runs_where_a_path_was_exchanged_after_it_was_checked(world, level, granted, changed):
    if level in _missing():
        pytest.skip(f"no {level} here")
    (world / "own").mkdir(mode=0o777)
    was = os.stat(world / "w/a/files")
    path = changed(world)
    before = state(world)
    granting = {granted: (str(path),)} if granted != "folder" else {}
    settings = KernelSettings(sandbox=level, warm=0, fork=False, **granting)
    known = {str(path): (was.st_dev, was.st_ino)}
    place = KernelFolders(path if granted == "folder" else world / "own", known=known)
    with pytest.raises(KernelStartError, match="exchanged while the kernel was started|not a directory"):
        default_pool().take(settings, place)
    assert state(world) == before


def _missing():
    """Return the levels that don't stand on this machine."""
    found = []
    for level in LINUX_LEVELS:
        try:
            available_level(KernelSettings(sandbox=level))
        except SandboxError:
            found.append(level)
    return found


def test_held_folders_that_are_collected_while_a_folder_is_opened_block_nobody(tmp_path):
    folders = [tmp_path / str(number) for number in range(5)]
    for folder in folders:
        folder.mkdir()

    def work():
        for number in range(2000):
            cycle = [HeldFolder(folders[number % 5])]
            cycle.append(cycle)
            del cycle
            with SafeFolder(folders[number % 3]) as opened:
                opened.info(".")

    before = gc.get_threshold()
    gc.set_threshold(7)  # collections in the middle of everything
    try:
        threads = [threading.Thread(target=work, daemon=True) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
    finally:
        gc.set_threshold(*before)
    assert not any(thread.is_alive() for thread in threads)
    gc.collect()
    with SafeFolder(tmp_path):
        assert all(innermost_held_folder(folder) == "" for folder in folders)


def test_a_path_in_a_held_folder_keeps_its_name_when_a_link_comes_above(tmp_path):
    inner = tmp_path / "above" / "inner"
    (inner / "deep").mkdir(parents=True)
    (inner / "deep" / "a.txt").write_text("ok")
    (tmp_path / "secret" / "inner" / "deep").mkdir(parents=True)
    with HeldFolder(inner), SafeFolder(inner) as folder:
        (tmp_path / "above").rename(tmp_path / "moved")
        (tmp_path / "above").symlink_to(tmp_path / "secret")

        assert folder.name_of(inner / "deep" / "a.txt") == "deep/a.txt"
        assert folder.name_of(inner) == ""
        assert folder.name_of(tmp_path / "secret" / "inner" / "deep") == ""


def test_what_is_saved_in_a_held_folder_goes_there_when_a_link_comes_above(tmp_path):
    inner, secret = tmp_path / "above" / "inner", tmp_path / "secret"
    inner.mkdir(parents=True)
    (secret / "inner").mkdir(parents=True)
    (inner / "made.csv").write_text("x")
    with LocalKernel(inner, settings=KernelSettings(sandbox="off")):
        (tmp_path / "above").rename(tmp_path / "moved")
        (tmp_path / "above").symlink_to(secret)

        save_files([Artifact("made", "file", inner / "made.csv", "")], inner / "final")

    assert (tmp_path / "moved" / "inner" / "final" / "made.csv").read_text() == "x"
    assert list((secret / "inner").iterdir()) == []
