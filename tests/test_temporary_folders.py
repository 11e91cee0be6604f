"""Temporary folders of processes that end in any way."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from tw_autogen.safe_folder import remove_folder, temporary_folder, temporary_folders

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks on Windows")

_RUN_CODE = """
import os, sys
from tw_autogen.kernel import LocalKernel
kernel = LocalKernel()
print(kernel.execute("import os; os.getpid()", seconds=60).result, flush=True)
if sys.argv[1] == "exit":
    os._exit(3)
if sys.argv[1] == "wait":
    sys.stdin.read()
    print(kernel.execute("6 * 7", seconds=60).result)
kernel.close()
"""
_MAKE_ONE = """
import os
from tw_autogen.safe_folder import temporary_folder
print(temporary_folder("tw-x-"), flush=True)
os._exit(0)
"""


@pytest.fixture
def place():
    """Return a folder for temporary files whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="t") as made:
        yield Path(made)


@pytest.fixture
def begin(place):
    """Start a process whose temporary files lie there; it is waited for, with its input closed."""
    with ExitStack() as stack:
        yield lambda code, *arguments: stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-c", code, *arguments],
                env={**os.environ, "TMPDIR": str(place)},
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        )


def test_what_ended_processes_have_left_is_removed_by_the_next_one(place, begin):
    processes = [begin(_RUN_CODE, how) for how in ("exit", "wait", "wait", "wait")]
    for process in processes:
        assert process.stdout.readline().strip().isdigit()
    exits, terminated, killed, alive = processes
    terminated.send_signal(signal.SIGTERM)
    killed.kill()
    assert [one.wait(60) for one in (exits, terminated, killed)] == [3, -signal.SIGTERM, -signal.SIGKILL]

    for _ in range(5):  # a kernel that is being ended writes to its folder for a moment
        assert begin(_RUN_CODE, "close").wait(120) == 0
        records = [path.name for path in place.iterdir() if path.name.startswith("tw-made-")]
        if len(records) == 1:
            break
    works, _ = alive.communicate("")
    for _ in range(5):
        assert begin(_RUN_CODE, "close").wait(120) == 0
        if not list(place.iterdir()):
            break

    assert (len(records), works.strip()) == (1, "42"), "the living process keeps what it has made"
    assert list(place.iterdir()) == []


def test_a_folder_that_something_was_written_to_while_it_was_removed_is_removed_by_a_later_process(
    place, begin, monkeypatch
):
    ended = begin(_MAKE_ONE)
    made = Path(ended.stdout.readline().strip())
    assert ended.wait(60) == 0
    monkeypatch.setattr(temporary_folders, "remove_folder", lambda path: None)
    remove_folder(temporary_folder(place=place))
    assert made.exists()
    monkeypatch.undo()

    assert begin(_MAKE_ONE).wait(60) == 0

    assert not made.exists()


@pytest.mark.parametrize("other", ["folder", "link", "file"])
def test_what_has_taken_the_name_of_a_folder_is_left_alone(place, begin, other):
    left = Path(begin(_MAKE_ONE).communicate()[0].strip())
    (place / "kept").mkdir()
    (place / "kept" / "file").touch()
    left.rename(place / "moved")
    {"folder": left.mkdir, "link": lambda: left.symlink_to(place / "kept"), "file": left.touch}[other]()

    assert begin(_MAKE_ONE).wait(60) == 0

    assert left.exists()
    assert (place / "kept" / "file").exists()
    assert len([path for path in place.iterdir() if path.name.startswith("tw-made-")]) == 1


def test_a_temporary_folder_is_this_users_alone():
    made = temporary_folder("tw-test-")
    try:
        assert (made.stat().st_mode & 0o777, made.parent) == (0o700, Path(tempfile.gettempdir()).resolve())
    finally:
        remove_folder(made)


@pytest.mark.parametrize("name", ["PLACE/tw-other/inner", "../tw-other", "mine", "tw-other", 7, None])
def test_a_record_that_names_anything_but_a_folder_beside_it_removes_nothing(place, begin, name):
    for folder in ("tw-other/inner", "mine"):
        (place / folder).mkdir(parents=True)
    inner = (place / ("tw-other" if name == "tw-other" else "tw-other/inner")).stat()
    named = name.replace("PLACE", str(place)) if isinstance(name, str) else name
    (place / "tw-made-forged").write_text(json.dumps([named, inner.st_dev, inner.st_ino]) + "\n")
    (place / "tw-made-forged").chmod(0o600)

    assert begin(_MAKE_ONE).wait(60) == 0

    assert (place / "tw-other" / "inner").exists()
    assert (place / "mine").exists()
