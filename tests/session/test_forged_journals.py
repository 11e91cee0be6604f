"""Code writes no journal of a session: the host copies, reads and runs again what stands in it."""

import sys

import pytest

from tw_autogen import open_session
from tw_autogen.errors import ConfigError, SandboxError
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.kernel.sandbox_levels import available_level
from tw_autogen.testing import ScriptedModel

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no sandbox yet")


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for one in (tmp_path, folder):
        one.chmod(0o777)  # root's code runs as another user
    return folder


@pytest.mark.parametrize("workspace", [".", "runs", "a/b"])
def test_a_grant_for_writing_that_covers_the_sessions_own_folder_is_refused(data, workspace):
    with pytest.raises(ConfigError, match=r"kernel\.write: .* this session is kept in it"):
        open_session(ScriptedModel([]), settings={"kernel.write": str(data)}, folder=data / workspace)


def test_a_workspace_that_stays_read_only_or_lies_elsewhere_is_fine(data, tmp_path):
    for folder in (data / ".tw" / "sessions", tmp_path / "sessions"):
        open_session(ScriptedModel([]), settings={"kernel.write": str(data)}, folder=folder).close()


@pytest.mark.parametrize("sandbox", ["namespaces", "bubblewrap"])
def test_code_of_a_kernel_in_a_folder_with_sessions_writes_none_of_them(data, sandbox):
    try:
        available_level(KernelSettings(sandbox=sandbox))
    except SandboxError as error:
        pytest.skip(str(error))
    journal = data / ".tw" / "sessions" / "session-x" / "events.jsonl"
    journal.parent.mkdir(parents=True)
    journal.write_text("{}\n")
    code = """
import os
def attempt(do, *args):
    try:
        do(*args)
        print("done", do.__name__)
    except OSError as error:
        print("refused", do.__name__)
attempt(open, ".tw/sessions/session-x/events.jsonl", "a")
attempt(open, ".tw/new", "w")
attempt(os.rename, ".tw", "old")
attempt(os.remove, ".tw/sessions/session-x/events.jsonl")
attempt(open, "own.txt", "w")
"""

    with LocalKernel(data, settings=KernelSettings(sandbox=sandbox)) as kernel:
        said = kernel.execute(code, seconds=60)

    assert said.stdout.split("\n")[:5] == [
        "refused open",
        "refused open",
        "refused rename",
        "refused remove",
        "done open",
    ]
    assert journal.read_text() == "{}\n"
