"""Our kernels, started by jupyter_client itself, as any front end of Jupyter starts them."""

import asyncio
import contextlib
import json
import re
import sys
import tempfile
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from jupyter_client import AsyncKernelManager, KernelManager
from jupyter_client.provisioning import KernelProvisionerFactory

from tests.kernel.test_limits import gone
from tw_autogen.errors import KernelStartError
from tw_autogen.kernel import KernelSettings
from tw_autogen.kernel.pool import default_pool

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the provisioner works on Linux")
SECONDS = 60
ROOT = Path(__file__).parents[2]


@pytest.fixture
def spec(monkeypatch, tmp_path):
    """Give what writes a kernelspec; its name is `walled`."""
    (line,) = re.findall(r'^tw-autogen = "(.*Provisioner)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    known = KernelProvisionerFactory.instance().provisioners
    monkeypatch.setitem(known, "tw-autogen", EntryPoint("tw-autogen", line, KernelProvisionerFactory.GROUP_NAME))
    for name in ("JUPYTER_PATH", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    place = tmp_path / "JUPYTER_PATH" / "kernels" / "walled"
    place.mkdir(parents=True)

    def write(*, env=None, **settings):
        (text,) = re.findall(r"```json\n(\{\n.*?\n\})\n```", (ROOT / "README.md").read_text(), re.DOTALL)
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


def test_a_kernel_manager_starts_interrupts_restarts_and_ends_it(spec, folder):
    manager = KernelManager(kernel_name="walled")
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
    managers = [AsyncKernelManager(kernel_name="walled") for _ in folders]
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
    manager = KernelManager(kernel_name="walled")
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


def test_a_kernel_that_dies_is_seen_with_its_exit_code(spec, folder):
    manager = KernelManager(kernel_name="walled")
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


def test_a_setting_that_is_none_is_told(spec, folder):
    spec(memory_gb=1)
    with pytest.raises(
        KernelStartError, match="the kernelspec sets memory_gb; there are: python, environment, sandbox"
    ):
        KernelManager(kernel_name="walled").start_kernel(cwd=str(folder))


@pytest.mark.parametrize("folder", [Path.home(), Path.home() / ".ssh", Path("/etc")])
def test_no_kernel_works_in_the_home_folder_among_keys_or_in_a_systems_folder(spec, folder):
    with pytest.raises(KernelStartError, match=f"{folder}: no kernel works here, because it is .*give it one of its"):
        KernelManager(kernel_name="walled").start_kernel(cwd=str(folder))
