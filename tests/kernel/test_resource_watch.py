"""What a kernel takes up on disk is added up below its folders only, whatever its code exchanges meanwhile."""

import os
import subprocess
import sys

import pytest

from tw_autogen.kernel.launcher import resource_watch

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kernels are watched on Linux and macOS")


@pytest.mark.parametrize("with_link", [False, True])
def test_a_folder_that_is_exchanged_while_it_is_added_up_leads_nowhere_else(tmp_path, monkeypatch, with_link):
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    for folder in (here, elsewhere):
        (folder / "a" / "sub").mkdir(parents=True)
    (elsewhere / "a" / "sub" / "big").write_bytes(b"x" * 500_000)
    scandir, listed = os.scandir, []

    def exchanging(at):
        about = os.fstat(at)
        listed.append((about.st_dev, about.st_ino))
        entries = scandir(at)
        if os.path.samestat(about, os.stat(here / "a")) and not (here / "gone").exists():
            (here / "a").rename(here / "gone")
            if with_link:
                (here / "a").symlink_to(elsewhere / "a")
            else:
                (elsewhere / "a").rename(here / "a")
        return entries

    monkeypatch.setattr(os, "scandir", exchanging)
    total, whole = resource_watch.disk_size([str(here)])

    sub = os.stat((elsewhere if with_link else here) / "a" / "sub")
    assert (sub.st_dev, sub.st_ino) not in listed
    assert (total < 100_000, whole) == (True, False)
    monkeypatch.undo()
    (here / "b" / "c").mkdir(parents=True)
    (here / "b" / "c" / "file").write_bytes(b"x" * 100_000)
    assert resource_watch.disk_size([str(here / "b")])[0] > 100_000


def test_a_count_ends_where_it_is_enough_or_somebody_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(resource_watch, "_AT_ONCE", 5)
    for number in range(3):
        (tmp_path / "/".join(f"{number}" * 3)).mkdir(parents=True)
        (tmp_path / f"{number}" / "file").write_bytes(b"x" * 100_000)
    before = os.listdir("/dev/fd")

    def stop():
        raise KeyError

    total, seen = resource_watch.disk_size([str(tmp_path)])
    assert total > 300_000
    assert seen
    total, seen = resource_watch.disk_size([str(tmp_path)], enough=120_000)
    assert 120_000 < total < 250_000
    assert not seen
    with pytest.raises(KeyError):
        resource_watch.disk_size([str(tmp_path)], between=stop)
    assert os.listdir("/dev/fd") == before


LAYERS = """
cd "$1" && mkdir lower memory merged && mount -t tmpfs memory memory && mkdir memory/upper memory/work || exit 77
mount -t overlay o -o lowerdir=lower,upperdir=memory/upper,workdir=memory/work,xino=off merged || exit 77
mkdir -p merged/here/sub merged/here/usb && mount -t tmpfs usb merged/here/usb || exit 77
head -c 5000000 /dev/zero > merged/here/file && head -c 3000000 /dev/zero > merged/here/sub/file
head -c 9000000 /dev/zero > merged/here/usb/file
exec "$2" -c 'from tw_autogen.kernel.launcher.resource_watch import disk_size; print(disk_size(["merged/here"])[0])'
"""


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root mounts")
def test_files_on_a_layers_own_device_count_and_those_of_another_mount_do_not(tmp_path):
    words = ["unshare", "--mount", "sh", "-c", LAYERS, "sh", str(tmp_path), sys.executable]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("nothing can be mounted here")

    assert 8_000_000 <= int(done.stdout) < 9_000_000, done.stderr


def test_a_folder_that_was_opened_is_counted_wherever_it_is_moved(tmp_path):
    (tmp_path / "above" / "own").mkdir(parents=True)
    folders = resource_watch.held([str(tmp_path / "above" / "own"), str(tmp_path / "missing")])
    try:
        (tmp_path / "above").rename(tmp_path / "elsewhere")
        (tmp_path / "above" / "own").mkdir(parents=True)
        (tmp_path / "elsewhere" / "own" / "large").write_bytes(b"x" * 200_000)

        assert resource_watch.disk_size(folders)[0] > 100_000
        assert resource_watch.free_disk(folders)[0] > 0
    finally:
        os.close(folders[0])
