"""What code may leave on its folder decides not who may use the files that others make there afterwards."""

import os
import stat
import sys

import pytest

from tw_autogen.errors import SandboxError
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.kernel.sandbox_levels import available_level

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no sandbox yet")
SECONDS = 60.0
PREPARED = """
import os, shutil, struct
anybody = 0xFFFFFFFF
entries = b"".join(struct.pack("<HHI", tag, 7, anybody) for tag in (1, 4, 0x20))
listed = struct.pack("<I", 2) + entries
fd = os.open(".", os.O_RDONLY)
os.mkdir("inner")
"""
WAYS = {
    "by path": "os.setxattr('.', 'system.posix_acl_default', listed)",
    "by descriptor": "os.setxattr(fd, 'system.posix_acl_default', listed)",
    "not over a link": "os.setxattr('.', 'system.posix_acl_default', listed, follow_symlinks=False)",
    "of a folder below": "os.setxattr('inner', 'system.posix_acl_default', listed)",
    "who may use the folder": "os.setxattr('.', 'system.posix_acl_access', listed)",
    "a note": "os.setxattr('.', 'user.note', b'x')",
}


@pytest.fixture(scope="module", params=["namespaces", "bubblewrap", "landlock"])
def left(request, tmp_path_factory):
    """Run each way in one kernel, which is closed then; return its folder and what each way has answered."""
    folder = tmp_path_factory.mktemp("left")
    folder.chmod(0o700)
    settings = KernelSettings(sandbox=request.param)
    try:
        available_level(settings)
    except SandboxError as error:
        pytest.skip(str(error))
    with LocalKernel(folder, settings=settings) as kernel:
        assert kernel.execute(PREPARED, seconds=SECONDS).ok
        return folder, request.param, {way: kernel.execute(code, seconds=SECONDS) for way, code in WAYS.items()}


@pytest.mark.parametrize("way", WAYS)
def test_code_sets_no_access_control_list(left, way):
    folder, level, ran = left

    assert ran[way].ok if level == "landlock" else "[Errno 95] Operation not supported" in ran[way].error
    assert [os.listxattr(one) for one in (folder, folder / "inner")] == [[], []]


def test_what_is_made_there_later_has_the_mode_that_its_maker_asks_for(left):
    folder, _, _ = left
    before = os.umask(0o077)
    try:
        for place in (folder, folder / "inner"):
            (place / "made").mkdir()
            (place / "made.txt").touch()
    finally:
        os.umask(before)

    made = [folder / "made", folder / "inner/made", folder / "made.txt", folder / "inner/made.txt"]
    assert [stat.S_IMODE(one.stat().st_mode) for one in made] == [0o700, 0o700, 0o600, 0o600]


def test_programs_that_copy_attributes_for_good_measure_go_on(tmp_path):
    with LocalKernel(tmp_path / "work") as kernel:
        ran = kernel.execute(
            "import os, shutil, subprocess, tarfile\n"
            "os.makedirs('a/b')\nopen('a/b/c', 'w').write('x')\n"
            "shutil.copytree('a', 'copied')\nsubprocess.run(['cp', '-a', 'a', 'program'], check=True)\n"
            "subprocess.run(['tar', 'cf', 'a.tar', 'a'], check=True)\nos.mkdir('out')\n"
            "subprocess.run(['tar', 'xpf', 'a.tar', '-C', 'out'], check=True)\n"
            "[open(f'{one}/b/c').read() for one in ('copied', 'program', 'out/a')]",
            seconds=SECONDS,
        )

    assert ran.result == "['x', 'x', 'x']", ran.error


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="root alone hands folders over")
@pytest.mark.parametrize("there", [False, True], ids=["of code's making", "there before"])
def test_a_folder_for_sessions_becomes_roots_again_if_code_has_made_it(tmp_path, there):
    if there:
        (tmp_path / ".tw" / "sessions").mkdir(parents=True)
    make = "import os\nos.umask(0)\nos.makedirs('.tw/sessions/x', mode=0o777)"
    with LocalKernel(tmp_path) as kernel:
        assert kernel.execute(make, seconds=SECONDS).ok is not there

    for one in (".tw", ".tw/sessions"):
        about = (tmp_path / one).stat()
        assert (about.st_uid, about.st_mode & 0o022) == (0, 0)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="root alone hands folders over")
def test_a_kernel_above_gets_nothing_of_a_living_kernel_or_of_sessions_below(tmp_path):
    inner = tmp_path / "sub"
    inner.mkdir(mode=0o700)
    journal = inner / ".tw" / "sessions" / "session-1" / "events.jsonl"
    journal.parent.mkdir(parents=True)
    journal.write_text("of root")
    with LocalKernel(inner) as below:
        assert below.execute("open('own', 'w').write('work')", seconds=SECONDS).ok
        owner = (inner / "own").stat().st_uid
        with LocalKernel(tmp_path) as above:
            assert above.execute("x = 1", seconds=SECONDS).ok
            assert (inner / "own").stat().st_uid == owner
            assert journal.stat().st_uid == 0
        assert below.execute("open('own').read()", seconds=SECONDS).ok
