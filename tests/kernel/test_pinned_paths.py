"""A kernel's folder and grants stay those of the first start, whatever code that may write above them does."""

import pytest

from tw_autogen.errors import ConfigError, KernelStartError
from tw_autogen.kernel import KernelSettings, Loadable, LocalKernel
from tw_autogen.kernel.pinned_paths import PinnedPaths

SECONDS = 60.0
PLUGIN = "from tw_autogen.plugin import register_plugin\n\n@register_plugin\ndef double(x):\n    return 2 * x\n"

SWAP = """
import os
os.rename({moved!r}, {moved!r} + "-old")
os.symlink({target!r}, {moved!r})
os._exit(0)
"""

SWAPPED = {
    "own folder's parent": ("w/a/files", (), ("w",), "w/a", "w/a/files"),
    "read grant": ("own", ("w/data",), ("w",), "w/data", "w/data"),
    "read grant's parent": ("own", ("w/x/data",), ("w",), "w/x", "w/x/data"),
    "write grant": ("own", (), ("w", "w/out"), "w/out", "w/out"),
    "write grant's parent": ("own", (), ("w", "w/x/out"), "w/x", "w/x/out"),
}


@pytest.fixture
def world(tmp_path):
    """Return a folder that code of root's kernel, which is another user, may reach."""
    for one in ("w/a/files", "w/data", "w/x/data", "w/x/out", "w/out", "own"):
        (tmp_path / one).mkdir(parents=True)
    for one in ("victim/files", "victim/data", "victim/out"):
        (tmp_path / one).mkdir(parents=True)
        (tmp_path / one / "canary").write_text("alive")
    for path in (tmp_path, *tmp_path.rglob("*/")):
        path.chmod(0o777)
    tmp_path.parent.chmod(0o755)
    return tmp_path


def state(folder):
    return [(path.relative_to(folder), path.stat().st_uid, path.stat().st_mode) for path in sorted(folder.rglob("*"))]


@pytest.mark.parametrize(("own", "read", "write", "moved", "named"), SWAPPED.values(), ids=SWAPPED)
def test_no_kernel_starts_where_code_has_put_a_link_in_the_place_of_its_paths(world, own, read, write, moved, named):
    settings = KernelSettings(
        read=tuple(str(world / one) for one in read),
        write=tuple(str(world / one) for one in write),
        warm=0,
        allow_symlinks=True,
    )
    before = state(world / "victim")
    with LocalKernel(world / own, settings=settings) as kernel:
        swap = SWAP.format(moved=str(world / moved), target=str(world / "victim"))
        if moved == named:  # a mount in this kernel's own root; another kernel's code can rename it
            kernel.execute("import os; os._exit(0)", seconds=SECONDS)
            (world / moved).rename(world / f"{moved}-old")
            (world / moved).symlink_to(world / "victim")
        else:
            assert "exit code 0" in kernel.execute(swap, seconds=SECONDS).error
        assert (world / moved).is_symlink()
        for _ in range(2):
            with pytest.raises(KernelStartError, match="another folder than at the first start") as error:
                kernel.execute("1", seconds=SECONDS)
            assert str(world / named) in str(error.value)
    assert state(world / "victim") == before


def test_what_lies_beside_a_plugin_is_granted_as_it_was_when_the_plugin_was_loaded(world):
    plugin = world / "w/data/double.py"
    plugin.write_text(PLUGIN)
    with LocalKernel(world / "own", settings=KernelSettings(write=(str(world / "w"),), warm=0)) as kernel:
        kernel.load(Loadable("double", PLUGIN, path=plugin))
        kernel.execute("import os; os._exit(0)", seconds=SECONDS)
        (world / "w/data").rename(world / "w/old")
        (world / "w/data").symlink_to(world / "victim")
        with pytest.raises(KernelStartError, match="another folder than at the first start"):
            kernel.execute("1", seconds=SECONDS)


@pytest.mark.parametrize("anew", [False, True], ids=["removed", "made anew"])
def test_a_folder_beside_a_plugin_that_is_replaced_is_left_out(tmp_path, anew):
    out = tmp_path / "project/out"
    for one in (tmp_path / "project/.git", out):
        one.mkdir(parents=True)
    pinned = PinnedPaths(tmp_path / "own", KernelSettings())
    pinned.add([str(out), str(out.parent)], optional=True)
    out.rename(tmp_path / "project/kept")
    if anew:
        out.mkdir()
    pinned.make()

    assert pinned.real([str(out), str(out.parent)]) == (str(out.parent),)
    pinned.close()


def test_the_interpreters_path_is_made_whole(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert KernelSettings(python=".venv/bin/python").python == str(tmp_path / ".venv/bin/python")
    assert KernelSettings(python="python3").python == "python3"


def test_a_grant_that_cannot_be_looked_at_is_an_error_that_names_it():
    with pytest.raises(ConfigError, match=r"kernel\.read: .*home"):
        LocalKernel.check_settings(KernelSettings(read=("~nosuchuser/data",)))


def test_another_folder_is_refused_too_and_a_removed_one_is_made_again(tmp_path):
    folder, other = tmp_path / "a" / "files", tmp_path / "b"
    with LocalKernel(folder, settings=KernelSettings(warm=0)) as kernel:
        (other / "files").mkdir(parents=True)
        folder.rmdir()
        assert kernel.execute("1", seconds=SECONDS).ok
        kernel.execute("import os; os._exit(0)", seconds=SECONDS)
        folder.parent.rename(tmp_path / "c")
        other.rename(folder.parent)
        with pytest.raises(KernelStartError, match="another folder"):
            kernel.execute("1", seconds=SECONDS)


def test_a_granted_link_leads_where_it_led_first(tmp_path):
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "first")
    with LocalKernel(settings=KernelSettings(read=(str(tmp_path / "link"),), warm=0)) as kernel:
        (tmp_path / "link").unlink()
        (tmp_path / "link").symlink_to(tmp_path / "second")
        granted = kernel._pinned.granted().read
    assert granted == (str(tmp_path / "first"),)


def test_a_link_that_leads_elsewhere_between_two_starts_shows_what_it_showed_first(tmp_path):
    for one in ("first", "second"):
        (tmp_path / one).mkdir()
        (tmp_path / one / "here.txt").write_text(one)
    (tmp_path / "link").symlink_to(tmp_path / "first")
    settings = KernelSettings(read=(str(tmp_path / "link"),), warm=0, sandbox="namespaces")
    read = f"open({str(tmp_path / 'first' / 'here.txt')!r}).read()"
    with LocalKernel(settings=settings) as kernel:
        assert kernel.execute(read, seconds=SECONDS).result == "'first'"
        (tmp_path / "link").unlink()
        (tmp_path / "link").symlink_to(tmp_path / "second")
        kernel.restart()
        assert kernel.execute(read, seconds=SECONDS).result == "'first'"


def test_a_granted_file_may_be_replaced_by_another_file(tmp_path):
    (tmp_path / "data.csv").write_text("1")
    with LocalKernel(settings=KernelSettings(read=(str(tmp_path / "data.csv"),), warm=0)) as kernel:
        (tmp_path / "new").write_text("2")
        (tmp_path / "new").replace(tmp_path / "data.csv")
        kernel._pinned.check()
        (tmp_path / "data.csv").unlink()
        (tmp_path / "data.csv").symlink_to("/etc/passwd")
        with pytest.raises(KernelStartError, match="data.csv"):
            kernel._pinned.check()


def test_a_temporary_folder_that_was_exchanged_is_not_removed_in_another_place(tmp_path, monkeypatch):
    (tmp_path / "t").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "t"))
    kernel = LocalKernel(settings=KernelSettings(warm=0))
    canary = tmp_path / "victim" / kernel.folder.name / "canary"
    canary.parent.mkdir(parents=True)
    canary.write_text("alive")
    (tmp_path / "t").rename(tmp_path / "old")
    (tmp_path / "t").symlink_to(tmp_path / "victim")
    kernel.close()
    assert canary.read_text() == "alive"


@pytest.mark.parametrize("key", ["read", "write"])
def test_what_a_link_of_code_showed_when_a_kernel_was_made_is_not_granted_once_the_link_is_away(world, key):
    LocalKernel(world / "other", settings=KernelSettings(write=(str(world / "w"),))).close()
    data = world / "w" / "data"
    data.rename(world / "w" / "old")
    data.symlink_to(world / "victim" / "data")

    with LocalKernel(world / "own", settings=KernelSettings(**{key: (str(data),)})) as kernel:
        data.unlink()
        (world / "w" / "old").rename(data)
        with pytest.raises(ConfigError, match=rf"kernel\.{key}: .*data leads over the link .*w/data to .*victim/data"):
            kernel.execute("1", seconds=SECONDS)

    assert (world / "victim" / "data" / "canary").read_text() == "alive"
