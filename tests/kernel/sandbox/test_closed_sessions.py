"""At landlock, code of root's that keeps the right to pass closed folders is granted no folder with sessions."""

import os
import sys

import pytest

from tw_autogen.errors import KernelStartError, SandboxError
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.kernel.launcher.known_paths import exposed_sessions_reason
from tw_autogen.kernel.sandbox_levels import available_level

SECONDS = 60.0
LANDLOCK = KernelSettings(sandbox="landlock", warm=0)
needs_root = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root's code becomes another user"
)
SESSION = ".tw/sessions/session-0a/files"
WHY = r"where sessions are kept \(\.tw\), all of which root's code could read: .* is closed to others, .*; chmod o\+x"


@pytest.fixture
def tree(tmp_path):
    """Make a project with a session in it, and a folder beside it, below a folder that is closed to others."""
    closed = tmp_path / "closed"
    for one in (f"project/{SESSION}", "project/data", "beside", f"above/a/{SESSION}"):
        (closed / one).mkdir(parents=True)
    (closed / "project/data/a.csv").write_text("a\n1\n")
    (closed / "project" / SESSION / "secret.txt").write_text("CANARY")
    (closed / "project/.tw/sessions/session-0a/events.jsonl").write_text("CANARY")
    (closed / "project/.tw/sessions/session-0a/events.jsonl").chmod(0o600)
    closed.chmod(0o700)
    return closed


REASONS = {
    "sessions in it": ("project", "beside", "beside", True),
    "its own session in it": ("above/a", f"above/a/{SESSION}", "beside", True),
    "its own session deeper": ("above", f"above/a/{SESSION}", "beside", True),
    "its own session deeper, of another folder": ("above", "beside", "beside", False),
    "no sessions": ("project/data", "beside", "beside", False),
    "a file": ("project/data/a.csv", "beside", "beside", False),
    "nothing closed": ("project", "beside", "", False),
}


@pytest.mark.skipif(sys.platform == "win32", reason="there are no modes")
@pytest.mark.parametrize(("granted", "own", "reached", "refused"), REASONS.values(), ids=REASONS)
def test_a_folder_with_sessions_is_refused_if_the_way_to_anything_leads_over_a_closed_folder(
    tree, granted, own, reached, refused
):
    places = [os.path.normpath(tree / one) for one in (granted, own)]
    reason = exposed_sessions_reason(*places, ["/", "/usr", *([str(tree / reached)] if reached else [])])

    assert bool(reason) is refused
    assert not refused or f"{tree} is closed to others" in reason


def start(kernel, code):
    try:
        return kernel.execute(code, seconds=SECONDS)
    except SandboxError as error:
        pytest.skip(str(error))


GRANTED = {
    "read, sessions of others": ("project", "beside"),
    "read, its own session": ("project", f"project/{SESSION}"),
    "where it works": (None, "project"),
}


@needs_root
@pytest.mark.parametrize(("granted", "own"), GRANTED.values(), ids=GRANTED)
def test_no_kernel_starts_that_could_read_sessions(tree, granted, own):
    read = (str(tree / granted),) if granted else ()
    settings = KernelSettings(sandbox="landlock", warm=0, read=read)

    place = tree / (granted or own)
    with (
        LocalKernel(tree / own, settings=settings) as kernel,
        pytest.raises(KernelStartError, match=f"{place} can't be granted, because it is {WHY}"),
    ):
        start(kernel, "1")


@needs_root
def test_what_holds_no_session_is_granted_as_before(tree):
    settings = KernelSettings(sandbox="landlock", warm=0, read=(str(tree / "project/data"),))
    with LocalKernel(tree / "beside", settings=settings) as kernel:
        ran = start(kernel, f"open({str(tree / 'project/data/a.csv')!r}).read()")

    assert ran.result == "'a\\n1\\n'", ran.error


@needs_root
@pytest.mark.parametrize(("folder", "exposed"), [("project", True), ("project/data", False)])
def test_the_current_folder_is_not_granted_of_itself(tree, folder, exposed):
    try:
        available_level(LANDLOCK)
    except SandboxError as error:
        pytest.skip(str(error))
    session = tree / "beside/session" if not exposed else tree / folder / ".tw/sessions/session"

    reason = LocalKernel.unreadable_reason(tree / folder, LANDLOCK, folder=session)

    assert reason.startswith("where sessions are kept") is exposed
    assert bool(reason) is exposed
