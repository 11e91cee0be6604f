"""Trust that starts programs ends when code may write where they lie, whatever it writes there."""

import json
import subprocess
import sys

import pytest

from tw_autogen import open_session
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.session import read_settings, review_folder
from tw_autogen.settings_trust import Trust
from tw_autogen.testing import ScriptedModel
from tw_autogen.trust_store import state_folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no code runs there in a sandbox")

SERVER = "plugin: {mcp_servers: {m: {command: python3, args: [src/server.py]}}}"
PYTHON = "kernel: {python: .venv/bin/python}"
BROWSER = "role.web_explorer: {executable: chrome/chrome-wrapper}"
ROLE = "session: {roles: [planner, code_interpreter, crier]}"


@pytest.fixture
def trust(here):
    """Write a folder's settings, and trust them."""

    def trust(settings):
        for name, text in {
            "tw_autogen.yaml": settings,
            "src/server.py": "1",
            ".venv/bin/python": "#!/bin/sh",
            "chrome/chrome-wrapper": "#!/bin/sh",
            "roles/crier/role.yaml": "alias: Crier\nintro: Cries.\nmodule: crier\n",
            "roles/crier/crier.py": "1",
        }.items():
            (here / name).parent.mkdir(parents=True, exist_ok=True)
            (here / name).write_text(text, encoding="utf-8")
        review = review_folder()
        problem = review.remember(review.sha256())
        assert read_settings().trust is Trust.full
        return problem

    return trust


def begin(folder, write=()):
    """Make a kernel in a process of its own that lives until its input ends."""
    code = (
        "import sys; from tw_autogen.kernel import KernelSettings, LocalKernel; "
        f"kernel = LocalKernel({folder!r}, settings=KernelSettings(write={tuple(map(str, write))!r})); "
        "print('made', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "made\n"
    return process


def end(process):
    process.communicate(timeout=30)


OVER = {
    "the kernel's folder": (SERVER, ".", ()),
    "the server's folder": (SERVER, "src", ()),
    "a folder in the server's": (SERVER, "src/made", ()),
    "what a kernel may write": (SERVER, None, ("src",)),
    "an interpreter's library": (PYTHON, None, (".venv/lib",)),
    "a role's program": (BROWSER, "chrome", ()),
}


@pytest.mark.parametrize("case", OVER)
def test_a_kernel_whose_code_may_write_there_ends_trust_that_starts_programs(here, trust, case):
    settings, folder, write = OVER[case]
    (here / "src" / "made").mkdir(parents=True)
    (here / ".venv" / "lib").mkdir(parents=True)
    (here / "chrome").mkdir()
    assert trust(settings) == ""

    end(begin(folder and str(here / folder), [here / one for one in write]))

    assert read_settings().trust is Trust.none
    assert review_folder().problem().startswith(f"{here} is not trusted any more: code of a kernel could write to ")


@pytest.mark.parametrize("name", ["writers", "writers/1-ab.folders"])
def test_where_notes_of_another_process_cannot_be_read_a_yes_holds_until_the_program_ends(here, trust, name):
    notes = state_folder() / name
    notes.parent.mkdir(parents=True)
    notes.symlink_to(notes.name)  # as unreadable as what is left of `sudo`, for root too

    problem = trust(SERVER)

    assert problem.startswith(f"it holds until this program ends: {notes}: cannot be read (")
    code = "from tw_autogen.session import read_settings; print(read_settings().trust.name)"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert other.stdout == "none\n"


def test_an_unreadable_note_of_another_process_keeps_no_kernel_from_ending_trust(here, trust):
    assert trust(SERVER) == ""
    (state_folder() / "writers").mkdir()
    (state_folder() / "writers" / "1-ab.folders").symlink_to("1-ab.folders")

    process = begin(str(here))
    problem = trust(SERVER)
    (state_folder() / "writers" / "1-ab.folders").unlink()

    assert problem.endswith("1-ab.folders: cannot be read (Too many levels of symbolic links)")
    assert "code of a kernel that is at work can write to" in trust(SERVER)
    end(process)


def test_trust_of_a_project_below_a_folder_called_tw_ends_too(here, monkeypatch):
    project = here / ".tw" / "tool"
    project.mkdir(parents=True)
    monkeypatch.chdir(project)
    (project / "src").mkdir()
    (project / "src" / "server.py").write_text("1", encoding="utf-8")
    (project / "tw_autogen.yaml").write_text(SERVER, encoding="utf-8")
    review = review_folder()
    assert review.remember(review.sha256()) == ""

    end(begin(str(project)))

    assert read_settings().trust is Trust.none


BESIDE = {
    "another folder of the project": (SERVER, "out", ()),
    "a session's": (SERVER, ".tw/sessions/session-1/files", ()),
    "a temporary one": (SERVER, None, ()),
    "another one that it may write": (SERVER, None, ("out",)),
    "roles, which are compared when they are loaded": (ROLE, ".", ()),
}


@pytest.mark.parametrize("case", BESIDE)
def test_other_folders_of_kernels_end_no_trust(here, trust, case):
    settings, folder, write = BESIDE[case]
    (here / "out").mkdir()
    assert trust(settings) == ""

    end(begin(folder and str(here / folder), [here / one for one in write]))

    assert read_settings().trust is Trust.full


def test_as_long_as_a_process_lives_that_had_such_a_kernel_trust_is_not_remembered(here, trust):
    process = begin(".")

    said = trust(SERVER)

    why = f"code of a kernel that is at work can write to {here}, where programs lie that this starts"
    assert said == f"it holds until this program ends: {why}"
    command = "from tw_autogen.session import read_settings; print(read_settings().trust.name)"
    assert subprocess.check_output([sys.executable, "-P", "-c", command], text=True) == "none\n"

    end(process)

    assert trust(SERVER) == ""
    assert subprocess.check_output([sys.executable, "-P", "-c", command], text=True) == "full\n"


def test_a_session_of_the_trusted_folder_keeps_its_trust_but_not_with_a_grant_over_its_programs(here, trust):
    trust(SERVER)
    with open_session(ScriptedModel([]), mcp_servers={}):
        pass
    assert read_settings().trust is Trust.full

    LocalKernel(settings=KernelSettings(write=(str(here),))).close()

    assert read_settings().trust is Trust.none


def test_nothing_stays_of_processes_that_have_ended(here, tmp_path):
    writers = tmp_path / "home" / ".local" / "state" / "tw-autogen" / "writers"
    killed = begin(".")
    killed.kill()
    killed.communicate()
    assert len(list(writers.iterdir())) == 1

    process = begin("out")

    assert len(list(writers.iterdir())) == 1
    end(process)
    assert list(writers.iterdir()) == []


def test_without_a_home_what_this_process_holds_ends_too(here, trust, monkeypatch):
    monkeypatch.setenv("HOME", "/")
    trust(SERVER)

    LocalKernel(settings=KernelSettings(write=(str(here),))).close()

    assert read_settings().trust is Trust.none


def test_where_folders_can_not_be_noted_trust_ends_all_the_same_and_a_warning_says_so(here, tmp_path, trust, caplog):
    trust(SERVER)
    (tmp_path / "home" / ".local" / "state" / "tw-autogen" / "writers").write_text("in the way")

    LocalKernel(".").close()

    assert read_settings().trust is Trust.none
    assert "trust of programs may go on where code of a kernel may write" in caplog.text


def test_a_record_of_an_earlier_version_trusts_nothing_and_says_so(here, trust):
    trust(SERVER)
    record = review_folder().record()
    plain = json.loads(record.read_text(encoding="utf-8"))
    del plain["programs"]
    record.write_text(json.dumps(plain), encoding="utf-8")

    assert read_settings().trust is Trust.none
    assert "was trusted with an earlier version" in review_folder().problem()
