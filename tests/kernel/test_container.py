"""A kernel in a container, as far as that can be tried without one: the engine here is a stand-in, the kernel is real.

`container_engine.py` reads the command line as docker would and runs the command as a child process; no test says
anything about the sandboxes of a real container, but that they are asked for.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pandas as pd
import pytest

from tw_autogen.errors import KernelStartError
from tw_autogen.kernel import ContainerKernel, Kernel, KernelSettings, Loadable

pytestmark = pytest.mark.skipif(os.name != "posix", reason="containers are reached by Unix sockets")

SECONDS = 30
QUICK = KernelSettings(grace_seconds=1.0)
PLUGIN = "from tw_autogen.plugin import register_plugin\n\n@register_plugin\ndef double(x):\n    return 2 * x\n"
ENGINE = """#!{python}
import os, runpy
os.environ["TW_TEST_ENGINE"] = {state!r}
runpy.run_path({script!r}, run_name="__main__")
"""


def make_engine(folder, name="docker"):
    (folder / "state").mkdir()
    script = Path(__file__).with_name("container_engine.py")
    engine = folder / name
    engine.write_text(ENGINE.format(python=sys.executable, state=str(folder / "state"), script=str(script)))
    engine.chmod(0o755)
    return engine


def containers(engine):
    """Give the containers that run, by name: pid and the words of `run`."""
    found = (engine.parent / "state").glob("tw-????????????????")
    return {one.name: json.loads(one.read_text()) for one in found}


@pytest.fixture(scope="module")
def engine():
    with tempfile.TemporaryDirectory() as folder:
        yield make_engine(Path(folder))


@pytest.fixture(scope="module")
def kernel(engine, tmp_path_factory):
    folder = tmp_path_factory.mktemp("host")
    with ContainerKernel(folder, image="tw-kernel", engine=str(engine), settings=QUICK) as kernel:
        kernel.load(Loadable("double", PLUGIN))
        kernel.put("given", 7)
        kernel.serve("ask", lambda: "answered")
        yield kernel


def test_it_is_a_kernel_and_says_where_it_runs(kernel):
    assert isinstance(kernel, Kernel)
    kernel.execute("x = 20", seconds=SECONDS)

    assert kernel.execute("x + double(given) + len(ask())", seconds=SECONDS).result == "42"
    assert kernel.where.startswith("container of tw-kernel by docker, Python 3.")
    assert kernel.where.endswith("network none")


def test_tables_and_files_cross_through_the_mounted_folder(kernel):
    kernel.put("table", pd.DataFrame({"n": [1, 2]}))
    ran = kernel.execute("from IPython.display import HTML, display\ndisplay(HTML('<b>hi</b>'))", seconds=SECONDS)

    pd.testing.assert_frame_equal(kernel.get("table"), pd.DataFrame({"n": [1, 2]}))
    assert [artifact.path.parent for artifact in ran.artifacts] == [kernel.folder]


def test_the_engine_is_asked_for_every_sandbox(kernel, engine):
    kernel.execute("1", seconds=SECONDS)
    ((name, found),) = containers(engine).items()
    words = found["words"][: found["words"].index("tw-kernel")]
    mounted = {word.split(",")[1].removeprefix("source=") for word in words if word.startswith("--mount=")}

    assert {
        f"--name={name}", "--network=none", "--memory=2g", "--memory-swap=2g", "--pids-limit=256", "--cap-drop=ALL",
        "--security-opt=no-new-privileges", "--read-only", "--pull=never", "--rm", "--interactive",
        "--tmpfs=/tmp:rw,nosuid,nodev,size=512m", f"--user={os.getuid()}:{os.getgid()}", f"--workdir={kernel.folder}",
    } <= set(words)  # fmt: skip
    assert str(kernel.folder) in mounted
    assert len(mounted) == 2  # the other one is the folder of its sockets
    assert not any("docker.sock" in word for word in words)


def test_secrets_reach_neither_the_container_nor_the_command_line(engine, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-code")
    monkeypatch.setenv("PLUGIN_sql_key", "for-a-plugin")
    with ContainerKernel(tmp_path, image="tw-kernel", engine=str(engine)) as kernel:
        before = set(containers(engine))
        ran = kernel.execute("import os\nsorted(os.environ), os.environ['PLUGIN_sql_key'], os.getcwd()", seconds=30)
        (name,) = set(containers(engine)) - before
        words = " ".join(containers(engine)[name]["words"])

    assert "OPENAI_API_KEY" not in ran.result
    assert "'for-a-plugin'" in ran.result
    assert str(tmp_path) in ran.result
    assert "for-a-plugin" not in words
    assert "--env=HTTPS_PROXY= " in words  # podman hands it on by itself, docker what its own settings say


def test_a_cell_beyond_its_time_is_interrupted_and_the_variables_are_kept(kernel):
    kernel.execute("kept = 5", seconds=SECONDS)
    ran = kernel.execute("while True: pass", seconds=0.5)

    assert ran.error.startswith("Stopped after 0.5 s")
    assert kernel.execute("kept", seconds=SECONDS).result == "5"


def test_interrupt_from_another_thread_stops_the_cell(kernel):
    def stop(stream, text):
        threading.Thread(target=kernel.interrupt).start()

    ran = kernel.execute("kept = 9\nprint('on', flush=True)\nwhile True: pass", seconds=SECONDS, on_output=stop)

    assert "interrupt" in ran.error
    assert kernel.execute("kept", seconds=SECONDS).result == "9"


LOST = {
    "ignores interrupts": ("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass", "killed"),
    "exits": ("import os\nos._exit(3)", "exit code 3"),
    "is killed": ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "killed by SIGKILL"),
}


@pytest.mark.parametrize(("code", "words"), LOST.values(), ids=LOST.keys())
def test_a_lost_kernel_is_told_and_the_next_cell_gets_a_fresh_container(kernel, engine, code, words):
    kernel.execute("kept = 5", seconds=SECONDS)
    before = containers(engine)
    ran = kernel.execute(code, seconds=1.0)

    assert ran.state_lost
    assert words in ran.error
    after = kernel.execute("('kept' in globals(), given, double(4), ask())", seconds=SECONDS)
    assert after.result == "(False, 7, 8, 'answered')"
    assert len(containers(engine)) == len(before)
    assert set(containers(engine)) != set(before)


def test_close_and_restart_leave_no_container(engine, tmp_path):
    before = set(containers(engine))
    kernel = ContainerKernel(tmp_path, image="tw-kernel", engine=str(engine))
    kernel.execute("kept = 5", seconds=SECONDS)
    first = set(containers(engine)) - before
    kernel.restart()
    second = set(containers(engine)) - before

    assert kernel.execute("'kept' in globals()", seconds=SECONDS).result == "False"
    assert len(first) == len(second) == 1
    assert first != second
    kernel.close()
    kernel.close()
    assert set(containers(engine)) == before


OWNER = """
import sys
from tw_autogen.kernel import ContainerKernel
kernel = ContainerKernel({folder!r}, image="tw-kernel", engine={engine!r})
print(kernel.execute("import os\\nprint(os.getpid())", seconds=30).stdout, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_no_container_outlives_an_owner_that_is_killed(engine, tmp_path, monkeypatch, request):
    short = tempfile.TemporaryDirectory()  # what a killed owner leaves lies there; the path of a socket must be short
    request.addfinalizer(short.cleanup)
    monkeypatch.setenv("TMPDIR", short.name)
    code = OWNER.format(folder=str(tmp_path), engine=str(engine))
    owner = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with owner:
        pid = int(owner.stdout.readline())
        assert Path(f"/proc/{pid}").exists()
        os.kill(owner.pid, signal.SIGKILL)
    deadline = time.monotonic() + SECONDS
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline
        threading.Event().wait(0.05)


@pytest.mark.skipif(getattr(os, "getuid", int)() == 0, reason="podman keeps numbers of other users than root only")
def test_podman_keeps_the_users_number(tmp_path):
    folder = tmp_path / "engine"
    folder.mkdir()
    podman = make_engine(folder, "podman")
    kernel = ContainerKernel(tmp_path / "host", image="tw-kernel", engine=str(podman))

    with pytest.raises(KernelStartError, match="--userns=keep-id"):  # docker, whose words the stand-in knows, has none
        kernel.execute("1", seconds=SECONDS)


def test_what_keeps_a_container_from_starting_is_told_with_a_remedy(engine, tmp_path):
    no_engine = ContainerKernel(tmp_path, image="tw-kernel", engine="no-such-engine")
    with pytest.raises(KernelStartError, match="'no-such-engine': there is no such command; install docker or podman"):
        no_engine.execute("1", seconds=SECONDS)

    no_image = ContainerKernel(tmp_path, image="no-such-image", engine=str(engine))
    with pytest.raises(KernelStartError, match=r"exit code 125(.|\n)*No such image: no-such-image(.|\n)*pull"):
        no_image.execute("1", seconds=SECONDS)

    no_python = ContainerKernel(tmp_path, image="tw-kernel", engine=str(engine), python="no-such-python")
    with pytest.raises(KernelStartError, match="the image has no such Python"):
        no_python.execute("1", seconds=SECONDS)

    (tmp_path / "a,b").mkdir()
    comma = ContainerKernel(tmp_path / "a,b", image="tw-kernel", engine=str(engine))
    with pytest.raises(KernelStartError, match="a folder with a comma"):
        comma.execute("1", seconds=SECONDS)


def test_no_code_runs_where_the_engine_mounts_another_folder_than_was_checked(tmp_path):
    engine, folder, other = make_engine(tmp_path), tmp_path / "work", tmp_path / "other"
    for one in (folder, other):
        one.mkdir()
    exchange = f"os.rename({str(folder)!r}, {str(tmp_path / 'moved')!r}); os.symlink({str(other)!r}, {str(folder)!r})\n"
    engine.write_text(
        engine.read_text().replace("import os, runpy\n", f"import os, runpy, sys\nif 'run' in sys.argv: {exchange}")
    )

    with (
        ContainerKernel(folder, image="tw-kernel", engine=str(engine), settings=QUICK) as kernel,
        pytest.raises(KernelStartError, match="another folder is mounted than was checked"),
    ):
        kernel.execute("open('planted', 'w')", seconds=SECONDS)

    assert list(other.iterdir()) == list((tmp_path / "moved").iterdir()) == []
