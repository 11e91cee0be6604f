"""A kernel in a container of podman itself: what code there can do, and what the engine keeps from it.

An image that needs no registry, made once as root on Debian 12 (packages podman, runc, catatonit, debootstrap):

    debootstrap --variant=minbase --include=python3,python3-cffi-backend,python3-ipykernel bookworm root
    tar -C root -c . | podman import - tw/base:1
"""

import json
import os
import shutil
import subprocess
import sys

import pytest

from tw_autogen.errors import KernelStartError
from tw_autogen.kernel import ContainerKernel, KernelSettings, Loadable

IMAGE = "tw/base:1"
SECONDS = 60
CONFIGURED = """
[engine]
runtime = "runc"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
"""
"""For machines whose control groups crun doesn't know, and whose hard limits are below what podman asks for."""


def why_not():
    if sys.platform != "linux" or shutil.which("podman") is None:
        return "no podman here"
    found = subprocess.run(["podman", "image", "exists", IMAGE], capture_output=True, timeout=SECONDS)
    return "" if found.returncode == 0 else f"podman has no image {IMAGE}; see the recipe above"


pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(why_not()), reason=why_not() or "podman is here")]
PLUGIN = "from tw_autogen.plugin import register_plugin\n\n@register_plugin\ndef double(x):\n    return 2 * x\n"


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        configured = tmp_path_factory.mktemp("podman") / "containers.conf"
        configured.write_text(CONFIGURED)
        if shutil.which("runc"):
            patch.setenv("CONTAINERS_CONF", str(configured))
        patch.setenv("OPENAI_API_KEY", "sk-not-for-code")
        folder = tmp_path_factory.mktemp("host")
        settings = KernelSettings(grace_seconds=2.0)
        with ContainerKernel(folder, image=IMAGE, engine="podman", python="python3", settings=settings) as kernel:
            kernel.load(Loadable("double", PLUGIN))
            kernel.serve("ask", lambda: "answered")
            yield kernel


def names(folder):
    """Give the containers of a kernel's folder: others may run here."""
    listed = subprocess.run(
        ["podman", "ps", "--all", "--format", "json", "--filter", "label=tw-autogen"], capture_output=True, check=True
    )
    return {load["Names"][0] for load in json.loads(listed.stdout) if str(folder) in load["Mounts"]}


def test_cells_plugins_host_calls_values_and_files_work(kernel):
    kernel.put("given", {"n": (1, 2)})
    ran = kernel.execute("open('a.txt', 'w').write('hi')\n(double(4), ask(), given)", seconds=SECONDS)

    assert ran.result == "(8, 'answered', {'n': (1, 2)})", ran.error
    assert (kernel.folder / "a.txt").read_text() == "hi"
    assert kernel.where.startswith(f"container of {IMAGE} by podman, Python 3.")


REFUSED = {
    "symbolic links": ("import os\nos.symlink('/etc', 'link')", "Operation not permitted"),
    "writing to the image": ("open('/etc/x', 'w')", "Read-only file system"),
    "the network": ("import socket\nsocket.create_connection(('192.0.2.1', 80), 2)", "Network is unreachable"),
    "the host's files": (f"open({__file__!r})", "No such file"),
    "secrets": ("import os\nos.environ['OPENAI_API_KEY']", "KeyError"),
    "more rights": ("import os\nos.chown('a.txt', 5, 5)", "Operation not permitted"),
    "many processes": (
        "import subprocess\nall = [subprocess.Popen(['sleep', '9']) for _ in range(400)]",
        "Resource temporarily unavailable|can't start new thread|BlockingIOError",
    ),
}


@pytest.mark.parametrize(("code", "said"), REFUSED.values(), ids=REFUSED)
def test_the_engine_refuses(kernel, code, said):
    kernel.execute("open('a.txt', 'w').close()", seconds=SECONDS)
    ran = kernel.execute(code, seconds=SECONDS)

    assert not ran.ok
    assert any(part in ran.error for part in said.split("|")), ran.error
    kernel.execute("for one in globals().get('all', ()):\n    one.kill()", seconds=SECONDS)


_PROCESSES = """
import os
def filters(pid):
    return open(f"/proc/{pid}/status").read().partition("Seccomp_filters:")[2].split()[0]
own = filters("self")
[(pid, filters(pid)) for pid in sorted(filter(str.isdigit, os.listdir("/proc")), key=int) if filters(pid) != own]
"""


def test_each_process_of_the_container_has_the_filter_so_that_none_makes_links_for_another(kernel):
    assert kernel.execute(_PROCESSES, seconds=SECONDS).result == "[]"
    names = "'kernel', 'passed', 'before', 'status', 'lines', 'libc'"
    assert kernel.execute(f"[one for one in ({names}) if one in globals()]", seconds=SECONDS).result == "[]"


def test_an_orphan_is_waited_for(kernel):
    left = "import subprocess, time\nsubprocess.run(['sh', '-c', 'sleep 0.1 & echo $!'], capture_output=True).stdout\n"
    kernel.execute(f"{left}time.sleep(1)", seconds=SECONDS)
    states = "import glob\n[one for one in glob.glob('/proc/[0-9]*/stat') if open(one).read().split()[2] == 'Z']"

    assert kernel.execute(states, seconds=SECONDS).result == "[]"


def test_a_cell_beyond_its_time_is_interrupted_and_a_dead_kernel_gets_a_fresh_container(kernel):
    kernel.execute("kept = 5", seconds=SECONDS)
    assert kernel.execute("while True: pass", seconds=1).error.startswith("Stopped after 1 s")
    assert kernel.execute("kept", seconds=SECONDS).result == "5"
    before = names(kernel.folder)
    ran = kernel.execute("import os\nos._exit(3)", seconds=SECONDS)

    assert ran.state_lost
    assert "exit code 3" in ran.error
    assert kernel.execute("'kept' in globals(), double(1)", seconds=SECONDS).result == "(False, 2)"
    assert len(names(kernel.folder)) == len(before)
    assert names(kernel.folder) != before


def test_no_container_is_left_and_an_image_that_is_missing_is_told(kernel, tmp_path):
    with ContainerKernel(tmp_path, image=IMAGE, engine="podman", python="python3") as other:
        assert other.execute("import os\nos.getuid()", seconds=SECONDS).result == str(os.getuid())
        assert len(names(tmp_path)) == 1
    missing = ContainerKernel(tmp_path, image="tw/none:1", engine="podman")

    assert names(tmp_path) == set()
    with pytest.raises(KernelStartError, match=r"exit code 125(.|\n)*tw/none:1"):
        missing.execute("1", seconds=SECONDS)
