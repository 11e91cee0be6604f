"""A folder that is granted for reading: its files stay as they are, and programs that wait in it hear nothing."""

import os
import socket

import pytest

from tw_autogen.errors import SandboxError
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.kernel.sandbox_levels import available_level

SECONDS = 60.0
WAYS = {
    "mode": "os.fchmod(fd, 0o6777)",
    "mode of the folder": "os.fchmod(os.open(place, os.O_RDONLY), 0)",
    "times": "os.utime(fd, (1, 1))",
    "times with nanoseconds": "os.utime(fd)",
    "attribute": "os.setxattr(fd, 'user.tag', b'x')",
    "lease": "fcntl.fcntl(fd, 1024, fcntl.F_RDLCK)",
}


@pytest.fixture(scope="module", params=["namespaces", "bubblewrap", "landlock"])
def granted(request, tmp_path_factory):
    """Start a kernel that may read a folder, with an open file and a server's socket in it."""
    place = tmp_path_factory.mktemp("granted")
    place.chmod(0o755)
    (place / "file").write_text("text", encoding="utf-8")
    settings = KernelSettings(sandbox=request.param, read=(str(place),))
    try:
        available_level(settings)
    except SandboxError as error:  # it does not stand on this machine
        pytest.skip(str(error))
    with socket.socket(socket.AF_UNIX) as server, LocalKernel(settings=settings) as kernel:
        server.bind(str(place / "server"))
        (place / "server").chmod(0o777)
        server.listen()
        server.settimeout(0)
        code = f"import fcntl, os, socket\nplace = {str(place)!r}\nfd = os.open(place + '/file', os.O_RDONLY)"
        assert kernel.execute(code, seconds=SECONDS).ok
        yield kernel, place, server


def marks(path):
    about = path.stat()
    return about.st_mode, about.st_uid, about.st_mtime_ns, os.listxattr(path)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_known_of_a_file_that_code_has_opened_can_not_be_changed(granted, way):
    kernel, place, _ = granted
    before = marks(place / "file"), marks(place)

    ran = kernel.execute(WAYS[way], seconds=SECONDS)

    assert (marks(place / "file"), marks(place)) == before
    assert way != "lease" or not ran.ok
    with open(
        place / "file", encoding="utf-8", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)
    ) as file:
        assert file.read() == "text"  # nobody has to wait for a lease


def test_a_server_hears_nothing(granted):
    kernel, _, server = granted
    ran = kernel.execute("socket.socket(socket.AF_UNIX).connect(place + '/server')", seconds=SECONDS)

    assert "PermissionError" in ran.error
    with pytest.raises(BlockingIOError):
        server.accept()
