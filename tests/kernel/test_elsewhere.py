"""macOS and Windows, shown as far as Linux can: what is imported, said and written; how they behave was not tried.

Our modules run in a process that has lost what only Linux, or only POSIX, has (`tests.kernel.elsewhere`). Stand-ins
take the places of `sandbox-exec` and macOS' sandbox library; they take down what they are asked for, and confine
nothing.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kernel.test_pool import gone
from tw_autogen.errors import KernelStartError
from tw_autogen.kernel.seatbelt import command, interpreter_folders, profile

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what only Linux has is taken away here")

_PROGRAM = """\
#!/bin/sh
# A stand-in for macOS' sandbox-exec: takes down the profile, checks that it has one, becomes the command. No sandbox.
[ "$1" = -p ] || exit 64
notes=$(dirname "$0")
if [ -e "$notes/refuses" ]; then echo "sandbox-exec: profile refused" >&2; exit 65; fi
printf '%s' "$2" > "$notes/profile-$$"
shift 2
exec "$@"
"""
_LIBRARY = """\
import ctypes, os
class Library:
    def sandbox_init(self, text, flags, problem):
        open({notes!r} + "/enclosed", "wb").write(text)
        return 0
original = ctypes.CDLL
ctypes.CDLL = lambda name, *more, **options: (
    Library() if name == "/usr/lib/libsandbox.dylib" else original(name, *more, **options)
)
"""
_IMPORTS = """
import tw_autogen.cli, tw_autogen.kernel, tw_autogen.kernel.pool, tw_autogen.session, tw_autogen.testing
print("imported")
"""
_RUN = """
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.kernel.pool import KernelPool

settings = KernelSettings(environment=("TW_*",), preload=("wave", "no_such_package"), warm={warm})
with KernelPool() as pool:
    if {warm}:
        assert pool.wait(settings)
    with LocalKernel({folder!r}, settings=settings, pool=pool) as kernel:
        try:
            done = kernel.execute("import os, sys\\nprint(os.getcwd(), 'wave' in sys.modules)\\n6 * 7", seconds=60)
        except Exception as error:
            print(type(error).__name__, error)
        else:
            print(done.stdout, done.result, done.error or None, kernel._live._handle.listens)
        print(kernel.where)
"""
_OWNER = """
import os
from tw_autogen.kernel import KernelSettings, LocalKernel

kernel = LocalKernel(settings=KernelSettings(environment=("TW_*",), warm=0))
print(kernel.execute("import os\\nprint(os.getpid(), os.environ['JPY_PARENT_PID'])", seconds=60).stdout, flush=True)
os.kill(os.getpid(), 9)
"""


def run(system, code, path, **variables):
    """Run code on a system; `path` holds programs of its own."""
    environment = {**os.environ, "PATH": f"{path}:/usr/bin:/bin", "TW_NOTES": str(path), **variables}
    return subprocess.run(
        [sys.executable, "-m", "tests.kernel.elsewhere", system, code],
        env=environment, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120,
    )  # fmt: skip


@pytest.fixture
def mac(tmp_path):
    """Give a folder with a stand-in for sandbox-exec."""
    program = tmp_path / "bin" / "sandbox-exec"
    program.parent.mkdir()
    program.write_text(_PROGRAM)
    program.chmod(0o755)
    return program.parent


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_nothing_that_only_linux_has_is_needed_for_importing(system, tmp_path):
    done = run(system, _IMPORTS, tmp_path)

    assert done.stdout == "imported\n", done.stderr


def test_on_windows_no_code_runs_until_somebody_says_so(tmp_path):
    done = run("win32", _RUN.format(warm=0, folder=str(tmp_path / "s")), tmp_path)

    said = (
        "no sandbox can be set up here (none of ours on win32), so no code is run. What would allow one: Linux, for "
        "one in WSL or in a container (`ContainerKernel`). To run code with all that this user may do, set "
        "kernel.sandbox to 'off'"
    )
    first, where = done.stdout.splitlines()
    assert first == f"SandboxError {said}"
    assert where.endswith(f"starts with the first cell, {said}")


def test_on_macos_without_its_program_no_code_runs(tmp_path):
    done = run("darwin", _RUN.format(warm=0, folder=str(tmp_path / "s")), tmp_path)

    said = "SandboxError no sandbox can be set up here (seatbelt: no program sandbox-exec), so no code is run."
    assert done.stdout.startswith(f"{said} What would allow one: macOS with its program sandbox-exec."), done.stderr


def test_on_macos_a_profile_that_is_refused_is_no_sandbox_and_no_code_runs(mac, tmp_path):
    (mac / "refuses").touch()

    done = run("darwin", _RUN.format(warm=0, folder=str(tmp_path / "s")), mac)

    assert done.stdout.startswith(
        "SandboxError no sandbox can be set up here (seatbelt: sandbox-exec: profile refused), so no code is run."
    ), done.stderr


def test_on_macos_a_cold_kernel_starts_behind_its_profile_and_says_that_it_was_not_tried(mac, tmp_path):
    folder = tmp_path / "session"
    done = run("darwin", _RUN.format(warm=0, folder=str(folder)), mac)

    cell, where = [line for line in done.stdout.splitlines() if line.strip()][-2:]
    assert done.stdout.startswith(f"{folder.resolve()} False\n"), done.stdout + done.stderr
    assert cell.split() == ["42", "None", "False"]
    assert where.endswith("sandbox: seatbelt, no limits; this level was never tried by its authors; no network")
    profiles = [path.read_text() for path in mac.glob("profile-*")]
    assert any(f'(subpath "{folder.resolve()}")' in one for one in profiles)


def test_on_macos_a_kernel_kept_ready_puts_itself_behind_the_profile_before_it_runs_code(mac, tmp_path):
    folder = tmp_path / "session"
    (mac / "sitecustomize.py").write_text(_LIBRARY.format(notes=str(mac)))
    path = os.pathsep.join([str(mac), os.environ.get("PYTHONPATH", "")])

    done = run("darwin", _RUN.format(warm=1, folder=str(folder)), mac, PYTHONPATH=path)

    assert done.stdout.startswith(f"{folder.resolve()} True\n"), done.stdout + done.stderr
    assert "42 None True" in done.stdout
    assert f'(subpath "{folder.resolve()}")' in (mac / "enclosed").read_text()


def test_on_macos_a_kernel_kept_ready_that_cannot_enclose_itself_is_not_used(mac, tmp_path):
    folder = tmp_path / "session"
    done = run("darwin", _RUN.format(warm=1, folder=str(folder)), mac)

    assert done.stdout.startswith(f"{folder.resolve()} False\n"), done.stdout + done.stderr
    assert "42 None False" in done.stdout
    assert any(str(folder.resolve()) in path.read_text() for path in mac.glob("profile-*"))


def test_on_macos_a_kernel_is_told_its_owner_and_ends_with_it(mac):
    done = run("darwin", _OWNER, mac)

    kernel, owner = map(int, done.stdout.split())
    assert done.returncode == -9
    assert owner != kernel
    assert gone([kernel])


# The profile.


def text(tmp_path, *, network=False, links=False, by_file=True, read=(), write=()):
    assignment = {"read": [*map(str, read)], "write": [*map(str, write)]}
    own, sockets = tmp_path / "k" / "1", tmp_path / "k"
    allowed = {"network": network, "links": links, "by_file": by_file}
    return profile(assignment, own=own, sockets=sockets, python=["/opt/python"], **allowed)


def balanced(profile):
    """Tell whether all brackets outside of strings are closed."""
    depth, inside, escaped = 0, False, False
    for char in profile:
        if inside:
            inside, escaped = escaped or char != '"', char == "\\" and not escaped
        elif char == '"':
            inside = True
        else:
            depth += {"(": 1, ")": -1}.get(char, 0)
        if depth < 0:
            return False
    return depth == 0 and not inside


def rule(profile, operation):
    """Give what follows a name in its rule."""
    return next(part for part in profile.split("(allow ") if part.startswith(f"{operation}\n"))


def test_a_profile_denies_what_it_does_not_name(tmp_path):
    found = text(tmp_path, read=[tmp_path / "data"], write=[tmp_path / "session"])

    assert found.splitlines()[:2] == ["(version 1)", "(deny default)"]
    assert balanced(found)
    assert "(allow default)" not in found
    assert f'(subpath "{tmp_path / "session"}")' in rule(found, "file-write*")
    assert f'(subpath "{tmp_path / "data"}")' in rule(found, "file-read*")
    assert f'(subpath "{tmp_path / "data"}")' not in rule(found, "file-write*")
    assert f'(subpath "{Path.home()}")' not in found
    assert '(subpath "/")' not in found


def test_links_are_refused_after_all_that_allows_writing_unless_they_are_allowed(tmp_path):
    found, no_links = text(tmp_path, write=[tmp_path / "session"]), "(deny file-write-create (vnode-type SYMLINK))"

    assert found.index(no_links) > found.index("(allow file-write*")
    assert no_links not in text(tmp_path, links=True)


def test_a_path_with_brackets_and_quotation_marks_stays_one_string(tmp_path):
    odd = tmp_path / 'a") (allow default) ("\\'
    found = text(tmp_path, write=[odd])

    assert balanced(found)
    assert str(odd).replace("\\", "\\\\").replace('"', '\\"') in found


def test_a_link_is_named_by_what_it_leads_to(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    assert f'"{tmp_path / "real"}"' in text(tmp_path, write=[tmp_path / "link"])
    assert f'"{tmp_path / "link"}"' not in text(tmp_path, write=[tmp_path / "link"])


def test_without_a_network_only_the_kernels_own_sockets_are_named(tmp_path):
    found = text(tmp_path)

    assert "(allow network*)" not in found
    lines = [line for line in found.splitlines() if "(allow network" in line]
    own, sockets = (f'unix-socket (subpath "{one}")' for one in (tmp_path / "k" / "1", tmp_path / "k"))
    named = [("network-bind", own), ("network-inbound", sockets), ("network-outbound", own)]
    assert [name in line and what in line for line, (name, what) in zip(lines, named, strict=True)] == [True] * 3
    assert f'(subpath "{tmp_path / "k"}")' not in rule(found, "file-write*")
    assert '(local ip "localhost:*")' in text(tmp_path, by_file=False)
    assert "(allow network*)" in text(tmp_path, network=True)


def test_the_program_stands_before_the_command_with_the_profile_as_one_word(mac, monkeypatch):
    monkeypatch.setenv("PATH", str(mac))

    assert command("(version 1)") == (str(mac / "sandbox-exec"), "-p", "(version 1)")


def test_the_home_folder_is_never_among_the_interpreters():
    folders = interpreter_folders(sys.executable)

    home = os.path.realpath(os.path.expanduser("~"))
    assert "/" not in folders
    assert not [folder for folder in folders if home == folder or home.startswith(f"{folder}/")]


def test_the_hosts_own_folders_are_not_among_the_interpreters(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    interpreter_folders.cache_clear()

    assert str(tmp_path) not in interpreter_folders(os.path.basename(sys.executable))


def test_an_interpreter_that_is_not_there_is_named():
    with pytest.raises(KernelStartError, match="no-such-python can't be asked"):
        interpreter_folders("no-such-python")
