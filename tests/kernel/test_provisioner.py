"""Our kernels, started by jupyter_client itself, as any front end of Jupyter starts them."""

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import sys
import tempfile
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from jupyter_client import AsyncKernelManager, KernelManager
from jupyter_client.provisioning import KernelProvisionerFactory

from tests.kernel.test_limits import gone
from tests.kernel.test_problem_deaths import until
from tw_autogen.errors import KernelStartError, SandboxError
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.kernel.pool import default_pool
from tw_autogen.kernel.sandbox_levels import available_level

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the provisioner works on Linux")
SECONDS = 60
ROOT = Path(__file__).parents[2]


@pytest.fixture
def spec(monkeypatch, tmp_path):
    """Give what writes a kernelspec; its name is `sandboxed`."""
    (line,) = re.findall(r'^tw-autogen = "(.*Provisioner)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    known = KernelProvisionerFactory.instance().provisioners
    monkeypatch.setitem(known, "tw-autogen", EntryPoint("tw-autogen", line, KernelProvisionerFactory.GROUP_NAME))
    for name in ("JUPYTER_PATH", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    place = tmp_path / "JUPYTER_PATH" / "kernels" / "sandboxed"
    place.mkdir(parents=True)

    def write(*, env=None, **settings):
        (text,) = re.findall(r"```json\n(\{\n.*?\n\})\n```", (ROOT / "docs" / "kernels.md").read_text(), re.DOTALL)
        found = json.loads(text)
        found["metadata"]["kernel_provisioner"]["config"] = {"settings": settings}
        found["env"] = env or {}
        (place / "kernel.json").write_text(json.dumps(found))

    write()
    return write


@pytest.fixture
def folder(tmp_path):
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
        yield Path(folder)


class Asked:
    """What a client heard of one request."""

    def __init__(self, client, code):
        self.said = ""
        reply = client.execute_interactive(code, timeout=SECONDS, output_hook=self._hear, allow_stdin=False)
        self.status = reply["content"]["status"]

    def _hear(self, message):
        content = message["content"]
        self.said += content.get("text", "") or content.get("data", {}).get("text/plain", "")

    def hear_to(self, client, text):
        while text not in self.said:
            self._hear(client.get_iopub_msg(timeout=SECONDS))


def test_a_kernel_manager_starts_interrupts_restarts_and_ends_it(spec, folder):
    manager = KernelManager(kernel_name="sandboxed")
    manager.start_kernel(cwd=str(folder))
    client = manager.client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=SECONDS)
        assert Asked(client, "import os\nkept = 3\nprint(os.getcwd())").said == f"{folder}\n"
        Asked(client, "open('made.txt', 'w').write('by code')")
        assert (folder / "made.txt").read_text() == "by code"
        hidden = folder.with_name("hidden.txt")
        hidden.write_text("not for code")
        assert Asked(client, f"import os\nprint(os.path.exists({str(hidden)!r}))").said == "False\n"
        assert client.hb_channel.is_beating()
        first = manager.provisioner.pid

        # ipykernel aborts what comes close behind an error unless told otherwise
        message = client.execute("import time\nprint('on', flush=True)\ntime.sleep(600)", stop_on_error=False)
        while client.get_iopub_msg(timeout=SECONDS)["msg_type"] != "stream":
            pass
        manager.interrupt_kernel()
        while (reply := client.get_shell_msg(timeout=SECONDS))["parent_header"]["msg_id"] != message:
            pass
        assert reply["content"]["ename"] == "KeyboardInterrupt"
        assert Asked(client, "kept").said == "3"

        manager.restart_kernel()
        client.wait_for_ready(timeout=SECONDS)
        second = manager.provisioner.pid
        assert gone(first)
        assert Asked(client, "print('kept' in globals())").said == "False\n"
        runtime = manager.provisioner._connection.runtime
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=False)
    assert gone(second)
    assert not runtime.exists()
    assert not manager.has_kernel


async def use_several(folders):
    managers = [AsyncKernelManager(kernel_name="sandboxed") for _ in folders]
    await asyncio.gather(*(one.start_kernel(cwd=str(folder)) for one, folder in zip(managers, folders, strict=True)))
    pids, results = [], []
    for number, manager in enumerate(managers):
        client = manager.client()
        client.start_channels()
        await client.wait_for_ready(timeout=SECONDS)
        reply = await client.execute(
            f"kept = {number}", user_expressions={"a": "kept + 1"}, reply=True, timeout=SECONDS
        )
        results.append(reply["content"]["user_expressions"]["a"]["data"]["text/plain"])
        pids.append(manager.provisioner.pid)
        client.stop_channels()
    for manager in managers:
        await manager.shutdown_kernel(now=True)
    return pids, results


def test_several_run_beside_each_other_and_are_killed(spec, tmp_path):
    folders = [tmp_path / name for name in "abc"]
    for one in folders:
        one.mkdir()

    pids, results = asyncio.run(use_several(folders))

    assert results == ["1", "2", "3"]
    assert len(set(pids)) == 3
    assert all(gone(pid) for pid in pids)


@contextlib.contextmanager
def client_of_a_kernel(folder):
    """Start a kernel in a folder; give what speaks with it."""
    manager = KernelManager(kernel_name="sandboxed")
    manager.start_kernel(cwd=str(folder))
    client = manager.client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=SECONDS)
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_the_kernelspecs_own_environment_is_there_and_the_hosts_is_not(spec, folder, monkeypatch):
    monkeypatch.setenv("TW_SECRET", "of the host")
    monkeypatch.setenv("TW_PART", "part")
    spec(env={"OMP_NUM_THREADS": "1", "TW_WHOLE": "${TW_PART} of it"})
    with client_of_a_kernel(folder) as client:
        names = ("OMP_NUM_THREADS", "TW_WHOLE", "TW_PART", "TW_SECRET")
        assert Asked(client, f"import os\n[os.environ.get(name) for name in {names}]").said == (
            "['1', 'part of it', None, None]"
        )


@pytest.mark.parametrize("fork", [True, False])
def test_a_notebooks_shell_begins_in_its_folder_and_runs_what_it_is_to_run_first(spec, folder, fork):
    (folder / "first.py").write_text("first = 1\n")
    assert not fork or default_pool().wait(KernelSettings())
    spec(env={"PYTHONSTARTUP": str(folder / "first.py")}, fork=fork)
    with client_of_a_kernel(folder) as client:
        code = "import os\nprint(first, get_ipython().starting_dir, *map(str, _dh), os.environ['PAGER'])"
        assert Asked(client, code).said == f"1 {folder} {folder} cat\n"


@pytest.mark.parametrize("sandbox", ["namespaces", "landlock", "bubblewrap"])
def test_commands_of_a_notebook_are_run_and_heard(spec, folder, sandbox):
    spec(sandbox=sandbox)
    with client_of_a_kernel(folder) as client:
        code = "word = 'hi'\n!echo $word; echo there >&2; exit 3\nprint(_exit_code)"
        assert Asked(client, code).said.split() == ["hi", "there", "3"]
        assert Asked(client, "said = !echo kept\nsaid").said == "['kept']"
        assert Asked(client, "!sleep 600 &").status == "error"
        # ipykernel's own thread reads the descriptor: it gets a second, or the result may be heard first
        assert Asked(client, "import os\nos.system('echo raw; sleep 1')").said.split() == ["raw", "0"]


def test_a_kernel_that_dies_is_seen_with_its_exit_code(spec, folder):
    manager = KernelManager(kernel_name="sandboxed")
    manager.start_kernel(cwd=str(folder))
    client = manager.client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=SECONDS)
        client.execute("import os\nos._exit(3)")
        assert asyncio.run(manager.provisioner.wait()) == 3
        assert not manager.is_alive()
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_a_killed_kernel_that_is_restarted_stays(spec, folder):
    manager = KernelManager(kernel_name="sandboxed")
    manager.start_kernel(cwd=str(folder))
    client = manager.client()
    try:
        client.start_channels()
        for _ in range(4):
            client.wait_for_ready(timeout=SECONDS)
            os.kill(manager.provisioner.pid, signal.SIGKILL)
            assert until(lambda: not manager.is_alive())
            manager.restart_kernel()
        client.wait_for_ready(timeout=SECONDS)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"memory_gb": 1}, "the kernelspec sets memory_gb; did you mean 'memory_mb'"),
        ({"memory_mb": "2g"}, "kernel.memory_mb: input should be a valid integer.*got '2g'"),
        ({"memory_mb": -1}, "kernel.memory_mb: -1 is less than 0"),
        ({"open_files": 10}, "kernel.open_files: 10 is less than a kernel needs itself; allow 64"),
        ({"processes": 3}, "kernel.processes: 3 is less than a kernel needs itself; allow 8"),
        ({"memory_mb": 20}, "kernel.memory_mb: 20 is less than a kernel needs itself; allow 64"),
        ({"sandbox": "landlok"}, "kernel.sandbox: input should be 'auto'.*got 'landlok'"),
    ],
)
def test_a_setting_that_is_none_is_told(spec, folder, settings, said):
    spec(**settings)
    with pytest.raises(KernelStartError, match=said):
        KernelManager(kernel_name="sandboxed").start_kernel(cwd=str(folder))


def test_values_written_as_text_grant_what_they_say(tmp_path):
    settings = KernelSettings(allow_network="false", allow_symlinks="no", read=str(tmp_path), write=[tmp_path])
    assert (settings.allow_network, settings.allow_symlinks) == (False, False)
    assert settings.read == settings.write == (str(tmp_path),)


@pytest.mark.parametrize("folder", [Path.home(), Path.home() / ".ssh", Path("/etc")])
def test_no_kernel_works_in_the_home_folder_among_keys_or_in_a_systems_folder(spec, folder):
    with pytest.raises(KernelStartError, match=f"{folder}: no kernel works here, because it is .*give it one of its"):
        KernelManager(kernel_name="sandboxed").start_kernel(cwd=str(folder))


@pytest.mark.parametrize("written", ["granted", "another kernel's"])
def test_no_kernel_works_behind_a_link_that_code_could_have_made(spec, folder, tmp_path, written):
    (tmp_path / "private").mkdir()
    (folder / "part").symlink_to(tmp_path / "private")
    if written == "granted":
        spec(write=[str(folder)])
    else:
        LocalKernel(folder).close()

    with pytest.raises(KernelStartError, match=f"over the link {folder}/part to {tmp_path}/private, and code could"):
        KernelManager(kernel_name="sandboxed").start_kernel(cwd=str(folder / "part"))


_PLANT = """
import glob, os, shutil
own = os.path.dirname(os.environ["IPYTHONDIR"])
def replace(path, target):
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            os.rename(path, path + ".old")
        elif os.path.lexists(path):
            os.remove(path)
        os.symlink(target, path)
    except OSError:
        pass
for folder in (own, os.path.dirname(own)):
    {way}
"""
WAYS = {
    "list of fonts": "[replace(one, {file!r}) for one in glob.glob(folder + '/matplotlib/*')]",
    "folder of matplotlib": "replace(folder + '/matplotlib', {directory!r})",
    "home folder": "replace(folder + '/home', {directory!r})",
    "temporary files": "replace(folder + '/tmp', {directory!r})",
    "log": "replace(folder + '/log', {file!r})",
    "log of no file yet": "replace(folder + '/log', {missing!r})",
    "connection file": "replace(folder + '/connection.json', {file!r})",
    "sockets": "[replace(one, {listening!r}) for one in glob.glob(folder + '/k-*')]",
    "root of the next kernel": "replace(folder + '/root', {directory!r})",
    "next folder": "[replace(f'{{folder}}/{{number}}', {directory!r}) for number in range(2, 40)]",
    "IPython's folder": "replace(folder + '/ipython', {directory!r})",
    "start-up file": (
        "place = os.environ['IPYTHONDIR'] + '/profile_default/startup'; os.makedirs(place, exist_ok=True); "
        "open(place + '/00.py', 'w').write('planted = 1')"
    ),
}
"""What code leaves behind for the next start, run for each folder that might be the host's."""


class Canaries:
    """Files, folders and a socket that code can't reach, and the host must not touch for it."""

    def __init__(self, folder):
        self.file, self.directory, self.missing = folder / "file", folder / "directory", folder / "missing"
        self.file.write_text("original")
        self.file.chmod(0o600)
        self.directory.mkdir(mode=0o700)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(folder / "s"))
        self._socket.listen()
        self._socket.setblocking(False)
        self.paths = {name: str(getattr(self, name)) for name in ("file", "directory", "missing")}
        self.paths["listening"] = str(folder / "s")
        self._before = self._state()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._socket.close()

    def _state(self):
        found = [os.stat(one) for one in (self.file, self.directory)]
        attributes = [(one.st_mode, one.st_uid, one.st_gid) for one in found]
        return attributes, self.file.read_text()[:20], os.listdir(self.directory), self.missing.exists()

    def touched(self):
        """Name what has changed since this was last asked."""
        before, self._before = self._before, self._state()
        said = [f"{before} became {self._before}"] if before != self._before else []
        with contextlib.suppress(BlockingIOError):
            self._socket.accept()[0].close()
            said.append("the host connected to another socket")
        return said


def needs(level):
    """Skip where a sandbox can't be set up."""
    try:
        available_level(KernelSettings(sandbox=level))
    except SandboxError as error:
        if os.environ.get("TW_SANDBOXES") == "all":
            raise
        pytest.skip(str(error))


def test_a_folder_that_another_notebook_has_exchanged_is_not_granted_at_a_restart(spec, folder):
    nested, other = folder / "nested", folder / "other"
    nested.mkdir()
    other.mkdir()
    manager = KernelManager(kernel_name="sandboxed")
    manager.start_kernel(cwd=str(nested))
    try:
        nested.rename(folder / "moved")
        nested.symlink_to(other)
        with pytest.raises(KernelStartError, match="is another folder than at the first start"):
            manager.restart_kernel(now=True)
    finally:
        manager.shutdown_kernel(now=True)


def after_restart(manager, client, code):
    """Run code and restart its kernel; give what went wrong with that."""
    if Asked(client, code).status != "ok":
        return ["what an earlier way left is still there"]
    manager.restart_kernel(now=True)
    try:
        client.wait_for_ready(timeout=SECONDS)
    except RuntimeError as error:
        return [str(error)]
    return ["it was run"] if Asked(client, "print('planted' in globals())").said != "False\n" else []


@pytest.mark.parametrize("level", ["namespaces", "landlock", "bubblewrap"])
def test_nothing_that_code_leaves_behind_is_followed_when_its_kernel_is_restarted(spec, folder, level):
    needs(level)
    spec(sandbox=level)
    ways, broken = list(WAYS), {}
    with tempfile.TemporaryDirectory(prefix="tw-canaries-") as place, Canaries(Path(place)) as canaries:
        while ways:
            with client_of_a_kernel(folder) as client:
                found = []
                while ways and not found:  # a kernel that something went wrong with is given up
                    name = ways.pop(0)
                    code = _PLANT.format(way=WAYS[name].format(**canaries.paths))
                    found = [*after_restart(client.parent, client, code), *canaries.touched()]
                    broken |= {name: found} if found else {}
    assert not broken


OPEN_LOGS = """
import os
found = []
for number in map(int, os.listdir('/proc/self/fd')):
    try: path = os.readlink(f'/proc/self/fd/{number}')
    except OSError: continue
    if path.endswith('/log'): found.append(number)
print(found)
print('heard')
ended = os.system('echo and this')
"""


@pytest.mark.parametrize("sandbox", ["namespaces", "landlock"])
def test_code_of_a_notebook_has_no_log_of_the_hosts_open(spec, folder, sandbox):
    try:
        available_level(KernelSettings(sandbox=sandbox))
    except SandboxError as error:
        pytest.skip(str(error))
    spec(sandbox=sandbox)
    manager = KernelManager(kernel_name="sandboxed")
    manager.start_kernel(cwd=str(folder))
    client = manager.client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=SECONDS)
        asked = Asked(client, OPEN_LOGS)
        asked.hear_to(client, "and this")  # what a child prints may come after the reply: a thread reads its pipe
        assert asked.said.replace("\r", "") == "[]\nheard\nand this\n"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
