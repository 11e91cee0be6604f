"""What holds conversations can be read by its owner alone, whatever the umask."""

import os
import stat
import sys

import pytest

from tw_autogen import open_session
from tw_autogen.events import SessionClosed
from tw_autogen.model.recording import RecordingModel
from tw_autogen.model.vectors import VectorCache
from tw_autogen.private import make_private_folder, open_private
from tw_autogen.session.journal import Journal
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
    cache = VectorCache(tmp_path / "cache")
    cache.put("m", {"text": b"1234"})
    cache.close()

    assert mode(tmp_path / "cache") == 0o700
    assert {mode(one) for one in (tmp_path / "cache").iterdir()} == {0o600}


@pytest.mark.usefixtures("umask")
def test_a_broken_cache_is_made_anew_for_its_owner(tmp_path):
    (tmp_path / "embeddings.sqlite").write_bytes(b"no database" * 1000)
    cache = VectorCache(tmp_path)
    cache.put("m", {"text": b"1234"})
    cache.close()

    assert mode(tmp_path / "embeddings.sqlite") == 0o600


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


def test_what_is_no_plain_file_is_not_changed():
    before = os.stat(os.devnull).st_mode

    open_private(os.devnull).close()

    assert os.stat(os.devnull).st_mode == before
