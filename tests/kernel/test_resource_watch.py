"""What a kernel takes up on disk is added up below its folders only, whatever its code exchanges meanwhile."""

import os
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
