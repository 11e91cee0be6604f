"""What holds conversations can be read by its owner alone, whatever the umask."""

import os
import stat
import sys
import tempfile

import pytest

from tw_autogen import open_session, private_files
from tw_autogen.errors import ConfigError
from tw_autogen.events import SessionClosed
from tw_autogen.kernel import LocalKernel
from tw_autogen.model.embedding_cache import VectorCache
from tw_autogen.model.recording import RecordingModel
from tw_autogen.private_files import cache_folder, make_private_folder
from tw_autogen.session.event_journal import Journal
from tw_autogen.testing import FakeKernel, ScriptedModel, plans

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")
PASSABLE = 0o711 if hasattr(os, "geteuid") and os.geteuid() == 0 else 0o700


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("umask")
def test_a_session_its_folders_and_its_journal(tmp_path):
    kernel = lambda folder: FakeKernel(lambda code: "", folder=folder)  # noqa: E731
    with open_session(ScriptedModel([]), kernel=kernel, folder=tmp_path / "deep" / "sessions") as session:
        root = session.journal.parent

        assert {mode(one) for one in (tmp_path / "deep", root.parent, root)} == {PASSABLE}
        assert (mode(session.folder), mode(session.journal)) == (0o700, 0o600)


@pytest.mark.usefixtures("umask")
def test_a_recording_is_made_for_its_owner_and_a_shared_one_stays_shared(tmp_path):
    for name in ("new.yaml", "shared.yaml"):
        path = tmp_path / name
        if name == "shared.yaml":
            path.touch()
            path.chmod(0o644)
        with ScriptedModel([plans("hello", to="User")]) as model:
            RecordingModel(model, path).complete([{"role": "user", "content": "hi"}])

    assert [mode(tmp_path / name) for name in ("new.yaml", "shared.yaml")] == [0o600, 0o644]


@pytest.mark.usefixtures("umask")
def test_a_cache_of_embeddings(tmp_path):
    VectorCache(tmp_path / "cache").put("m", {"text": b"1234"})

    assert mode(tmp_path / "cache") == 0o700
    assert {mode(path) for path in (tmp_path / "cache").iterdir()} == {0o600}


def test_a_journal_that_others_could_read_is_tightened_when_it_is_opened(tmp_path):
    path = tmp_path / "events.jsonl"
    path.touch()
    path.chmod(0o644)

    with Journal(path) as journal:
        journal.write(SessionClosed("s"))

    assert mode(path) == 0o600


def test_a_folder_that_exists_keeps_its_mode(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o755)

    make_private_folder(shared / "own")
    make_private_folder(shared)

    assert (mode(shared), mode(shared / "own")) == (0o755, 0o700)


def test_a_file_in_the_place_of_a_folder_is_an_error(tmp_path):
    (tmp_path / "x").touch()

    with pytest.raises(FileExistsError, match="x"):
        make_private_folder(tmp_path / "x")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no owners in the mode")
@pytest.mark.parametrize("odd", ["open to others", "a link", "in the current folder"])
def test_a_cache_folder_that_others_may_have_filled_is_passed_over(tmp_path, monkeypatch, odd):
    given, home, here = tmp_path / "given", tmp_path / "home", tmp_path / "here"
    for one in (given, home, here, given / "tw-autogen"):
        one.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(here)
    known = {"XDG_CACHE_HOME": str(given)}
    assert cache_folder(known) == given / "tw-autogen"
    if odd == "open to others":
        (given / "tw-autogen" / "matplotlib").chmod(0o777)
    elif odd == "a link":
        (given / "tw-autogen").rename(given / "other")
        (given / "tw-autogen").symlink_to("other")
    else:
        monkeypatch.chdir(tmp_path / "given")

    assert cache_folder(known) == home / ".cache" / "tw-autogen"
    monkeypatch.chdir(tmp_path)  # it holds the home folder
    assert (cache_folder(known) == given / "tw-autogen") == (odd == "in the current folder")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no owners in the mode")
@pytest.mark.parametrize("below", [".", "tmp"])
def test_a_temporary_folder_in_the_current_folder_holds_no_cache_that_came_with_it(tmp_path, monkeypatch, below):
    place = tmp_path / "here" / below
    own = place / f"tw-autogen-{os.getuid()}" / "matplotlib"
    own.mkdir(parents=True, mode=0o700)
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    monkeypatch.setenv("HOME", "/proc/none")
    monkeypatch.chdir(tmp_path / "here")

    folder = cache_folder({})

    assert folder != own.parent
    assert not list((folder / "matplotlib").iterdir())
    assert cache_folder({}) == folder
    private_files._new_cache.cache_clear()
    monkeypatch.chdir("/")
    assert cache_folder({}) == own.parent


IN_THE_WAY = {
    "a link": (lambda path, other: path.symlink_to(other), "link"),
    "a link to nothing": (lambda path, other: path.symlink_to(other.with_name("none")), "link"),
    "a hard link": (lambda path, other: os.link(other, path), "not a file of this user's alone"),
    "a FIFO": (lambda path, other: os.mkfifo(path), "FIFO|No such device"),
    "a folder": (lambda path, other: path.mkdir(), "directory"),
}


@pytest.mark.parametrize("kind", IN_THE_WAY)
def test_a_journal_is_written_to_nothing_that_took_its_place(tmp_path, kind):
    make, words = IN_THE_WAY[kind]
    other = tmp_path / "other"
    other.write_text("kept")
    other.chmod(0o644)
    make(tmp_path / "events.jsonl", other)

    with pytest.raises(OSError, match=words):
        Journal(tmp_path / "events.jsonl")

    assert (other.read_text(), mode(other), (tmp_path / "none").exists()) == ("kept", 0o644, False)


def by_link(root, other):
    root.symlink_to(other)


def by_folder(root, other):
    root.mkdir()
    (root / "files").symlink_to(other)


@pytest.mark.parametrize("kernel", ["none", "local"])
@pytest.mark.parametrize("exchange", [by_link, by_folder])
def test_a_session_works_in_no_folder_that_took_the_place_of_its_own_while_it_was_opened(tmp_path, exchange, kernel):
    other = tmp_path / "other"
    other.mkdir(mode=0o755)
    (other / "files").mkdir()

    def exchanged(folder):
        root = folder.parent
        root.rename(tmp_path / "moved")
        exchange(root, other)
        return FakeKernel(lambda code: "", folder=folder) if kernel == "none" else LocalKernel(folder)

    with pytest.raises((OSError, ConfigError), match="exchanged|another folder|link|not a directory"):
        open_session(ScriptedModel([]), kernel=exchanged, folder=tmp_path / "sessions")

    assert sorted(path.name for path in other.rglob("*")) == ["files"]
    assert mode(other) == 0o755
