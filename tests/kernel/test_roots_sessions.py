"""As root, sessions that lie in a kernel's folder stay root's, wherever they lie there and whatever code renames."""

import os
import subprocess
import sys

import pytest

from tw_autogen.errors import KernelStartError, SandboxError
from tw_autogen.kernel import KernelSettings, LocalKernel, sandbox_levels
from tw_autogen.kernel.folder_ownership import USER_NUMBERS, USERS, UserNumbers
from tw_autogen.safe_folder import SafeFolder, remove_folder

SECONDS = 60
WORKS = """
import os
os.makedirs("own/dir", exist_ok=True)
open({inner!r} + "made.csv", "w").write("1")
os.chmod({inner!r} + "made.csv", 0o600)
os.link({inner!r} + "made.csv", {inner!r} + "linked.csv")
os.remove({inner!r} + "old.csv")
"""
TRIES = """
import os, contextlib
for new in ({inner!r} + "x", "x"):
    with contextlib.suppress(OSError):
        os.rename({inner!r} + ".tw", new)
found = []
for one in (".tw", "x", {inner!r} + ".tw"):
    for mode in {modes}:
        with contextlib.suppress(OSError):
            open(one + "/sessions/s/events.jsonl", mode)
            found.append(one)
found
"""


@pytest.fixture(params=["namespaces", "bubblewrap", "landlock"])
def level(request):
    return request.param


@pytest.fixture
def folder(tmp_path):
    """Give a folder that any user can reach."""
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    (tmp_path / "k").mkdir()
    return tmp_path / "k"


def session_in(folder):
    session = folder / ".tw" / "sessions" / "s"
    session.mkdir(parents=True)
    (session / "events.jsonl").write_text("CANARY")
    (session / "events.jsonl").chmod(0o600)
    (folder / "old.csv").write_text("0")
    return session / "events.jsonl"


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root's kernels are other users")
@pytest.mark.parametrize("inner", ["", "sub/", "sub/deep/"])
def test_code_renames_and_gets_no_sessions_of_roots_and_works_beside_them(folder, level, inner):
    journal = session_in(folder / inner)
    top = (folder / inner).stat()
    with LocalKernel(folder, settings=KernelSettings(sandbox=level, warm=0)) as kernel:
        try:
            worked = kernel.execute(WORKS.format(inner=inner), seconds=SECONDS)
        except SandboxError as error:
            pytest.skip(str(error))
        except KernelStartError as error:  # at landlock, where root's code may read all, it works beside no sessions
            (pytest.skip if level == "landlock" else pytest.fail)(str(error))
        with SafeFolder(folder) as opened:
            read = [opened.read_file(f"{inner}{name}", limit_bytes=9) for name in ("made.csv", "linked.csv")]
            for name in (".tw", ".tw/sessions/s"):
                with pytest.raises(PermissionError, match="root's, in a folder where code works"):
                    opened.open_folder(f"{inner}{name}")
            with pytest.raises(PermissionError, match="root's, in a folder where code works"):
                opened.open_file(f"{inner}.tw/sessions/s/events.jsonl")
        with SafeFolder(journal.parent) as opened:  # by the host's own path
            assert opened.read_file("events.jsonl", limit_bytes=9) == b"CANARY"
        modes = ("a",) if level == "landlock" else ("r", "a")  # there code may be able to read what is closed
        first = kernel.execute(TRIES.format(inner=inner, modes=modes), seconds=SECONDS)
        kernel.restart()
        second = kernel.execute(TRIES.format(inner=inner, modes=modes), seconds=SECONDS)
        made = {artifact.name for artifact in (*worked.artifacts, *first.artifacts)}

    assert worked.ok, worked.error
    assert (first.result, second.result) == ("[]", "[]")
    assert journal.read_text() == "CANARY"
    assert not {one for one in made if one.endswith("events.jsonl")}
    assert read == [b"1", b"1"]
    after = (folder / inner).stat()
    assert (after.st_uid, after.st_gid, after.st_mode) == (top.st_uid, top.st_gid, top.st_mode)
    assert (journal.stat().st_uid, journal.stat().st_mode & 0o777) == (0, 0o600)


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root's kernels are other users")
@pytest.mark.parametrize("name", [".tw-exchange", ".checkpoint", ".checkpoint.old"])
@pytest.mark.parametrize("deep", [False, True])
def test_the_host_removes_no_sessions_and_nothing_of_others_for_code_that_moves_their_folder(folder, name, deep):
    journal = session_in(folder / "sub")
    (folder / "sub" / ".another.txt").write_text("CANARY of another")
    (folder / "sub" / ".another.txt").chmod(0o600)
    os.chown(folder / "sub" / ".another.txt", 42999, 42999)
    for place in (folder / "sub" / ".another.txt", journal.parents[2], *journal.parents[:2]):
        os.utime(place, (0, 0))
    move = f"os.rename('sub', {name!r})"
    if deep:
        move = f"os.makedirs({name!r}, exist_ok=True)\nos.rename('sub', {name!r} + '/sub')"
    settings = KernelSettings(sandbox="namespaces", warm=0)
    with LocalKernel(folder, settings=settings, resume=True) as kernel:
        kernel.execute("1", seconds=SECONDS)
        said = kernel.execute(
            f"import os, shutil\nshutil.rmtree({name!r}, ignore_errors=True)\n{move}\nos.listdir('.')", seconds=SECONDS
        )
        kernel.put("y", [1])
        kernel.execute("x = 1", seconds=SECONDS)
        kernel.restart()
        kernel.execute("x = 1", seconds=SECONDS)

    assert said.ok, said.error
    assert [path.read_text() for path in folder.rglob("events.jsonl")] == ["CANARY"]
    assert [path.read_text() for path in folder.rglob(".another.txt")] == ["CANARY of another"]


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root's kernels are other users")
def test_the_host_removes_no_closed_folder_that_code_moves_to_where_its_temporary_files_are(folder, level):
    """Where code sees the host's folders it could rename a folder that all may write to, with a closed one in it."""
    closed = folder / "open" / "closed"
    closed.mkdir(parents=True)
    (closed / "canary.txt").write_text("CANARY")
    (closed.parent / "file.txt").write_text("1")
    for place, mode in ((closed.parent, 0o777), (closed, 0o700), (closed / "canary.txt", 0o600)):
        os.chown(place, 42999, 42999)
        place.chmod(mode)
    with LocalKernel(folder, settings=KernelSettings(sandbox=level, warm=0)) as kernel:
        try:
            moved = kernel.execute(
                "import os, tempfile\ntry: os.rename('open', os.path.join(tempfile.gettempdir(), 'x'))\n"
                "except OSError as error: print(error.errno)",
                seconds=SECONDS,
            )
        except SandboxError as error:
            pytest.skip(str(error))

    assert moved.stdout.strip() == "18", moved.stdout  # EXDEV: `shutil.move` copies
    assert (closed / "canary.txt").read_text() == "CANARY"


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="another user's own files are its to remove")
def test_folders_that_lie_in_the_exchange_for_long_are_not_roots_to_remove(folder):
    journal = session_in(folder / ".tw-exchange" / "moved")
    for place in folder.rglob("*"):
        os.utime(place, (0, 0))
    with LocalKernel(folder, settings=KernelSettings(sandbox="off", warm=0)) as kernel:
        kernel.execute("1", seconds=SECONDS)

    assert journal.read_text() == "CANARY"


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root's kernels are other users")
def test_what_the_host_clears_away_as_root_is_only_what_code_could_remove(tmp_path):
    place = tmp_path / "tw-a" / "tmp"
    (place / "open" / "closed").mkdir(parents=True)
    (place / "open" / "closed" / "canary.txt").write_text("CANARY")
    (place / "made.txt").write_text("1")
    for path, user, mode in (
        (place, USERS[0], 0o700),
        (place / "made.txt", USERS[0], 0o600),
        (place / "open", 42999, 0o777),
        (place / "open" / "closed", 42999, 0o700),
    ):
        os.chown(path, user, user)
        path.chmod(mode)

    remove_folder(tmp_path / "tw-a")

    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["canary.txt"]


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root's kernels are other users")
def test_a_journal_that_is_begun_anew_removes_no_folder_that_code_has_put_in_its_place(folder):
    session_in(folder / "sub")
    with LocalKernel(folder, settings=KernelSettings(sandbox="namespaces", warm=0)) as kernel:
        moved = kernel.execute(
            "import os\nos.makedirs('.checkpoint')\nos.rename('sub', '.checkpoint/cells.jsonl')", seconds=SECONDS
        )
    settings = KernelSettings(sandbox="namespaces", warm=0, checkpoint_seconds=30)
    with LocalKernel(folder, settings=settings) as kernel:
        kernel.execute("1", seconds=SECONDS)

    assert moved.ok, moved.error
    assert [path.read_text() for path in folder.rglob("events.jsonl")] == ["CANARY"]


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root's kernels are other users")
def test_a_number_of_a_living_kernel_is_given_to_no_other_one_of_any_process(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    few = USERS[:3]
    numbers = UserNumbers()
    hold = "import sys\nfrom tw_autogen.kernel.folder_ownership import USERS, UserNumbers\nnumbers = UserNumbers()\n"
    hold += "print(numbers.take(USERS[:3]), flush=True)\nsys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        theirs = int(other.stdout.readline())
        ours = {numbers.take(few), numbers.take(few)}
        with pytest.raises(SandboxError, match="none of their numbers is free"):
            numbers.take(few)
        held = [numbers.is_held(one) for one in few]
        other.communicate()

    assert ours == set(few) - {theirs}
    assert held == [True, True, True]
    assert not numbers.is_held(theirs)
    assert numbers.take(few) == theirs
    first = min(ours)
    numbers.share(first)
    numbers.free(first)
    assert numbers.is_held(first)
    numbers.free(first)
    assert not numbers.is_held(first)


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root's kernels are other users")
def test_the_trial_of_a_sandbox_holds_no_number_longer():
    held = dict(USER_NUMBERS._held)

    sandbox_levels._try_sandbox("namespaces", KernelSettings())

    assert USER_NUMBERS._held == held


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root's kernels are other users")
def test_a_kernel_that_ends_gives_its_number_back_and_the_next_one_has_another(folder):
    settings, seen = KernelSettings(sandbox="namespaces", warm=0), []
    with LocalKernel(folder, settings=settings) as kernel:
        for _ in range(4):
            seen.append(int(kernel.execute("import os\nos.getuid()", seconds=SECONDS).result))
            assert USER_NUMBERS.is_held(seen[-1])
            kernel.restart()

    assert len(set(seen)) > 1
    assert not any(map(USER_NUMBERS.is_held, seen))
