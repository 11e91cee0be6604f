"""Kernels from a fork server: kept ready, forked, or cold when anything about it fails; nothing outlives its owner."""

import os
import signal
import subprocess
import sys
import threading
import time
from ast import literal_eval
from collections.abc import MutableMapping
from dataclasses import replace
from pathlib import Path

import IPython
import pytest

from tests.kernel.test_problem_deaths import until
from tw_autogen.kernel import KernelSettings, LocalKernel, first_server
from tw_autogen.kernel.environment_variables import clean_environment
from tw_autogen.kernel.first_server import begin_fork_server
from tw_autogen.kernel.kernel_folders import KernelFolders
from tw_autogen.kernel.kernel_start import start
from tw_autogen.kernel.pool import KernelPool, begin_warm_pool, kernel_key
from tw_autogen.kernel.sandbox_levels import sandbox_plan
from tw_autogen.kernel.zmtp import wait_for_messages

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux only")
LIGHT = KernelSettings(preload=("decimal",))


@pytest.fixture(scope="module")
def pool():
    with KernelPool() as pool:
        yield pool


def below(pid):
    """Give the processes that a process has started, with what they have started."""
    found = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (thread / "children").read_text().split()):
            found += [child, *below(child)]
    return found


def gone(pids, seconds=10.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        left = [pid for pid in pids if Path(f"/proc/{pid}").exists() and state(pid) != "Z"]
        if not left:
            return True
        time.sleep(0.05)
    return False


def state(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"


def server_of(pool):
    return next(iter(pool._pools.values())).server


def test_a_kernel_that_was_kept_ready_is_taken_first_then_one_is_forked(pool, tmp_path):
    assert pool.wait(LIGHT)
    with LocalKernel(tmp_path / "a", settings=LIGHT, pool=pool) as first:
        assert first.execute("import decimal\n1 + 1", seconds=30).result == "2"
        assert first.folder.samefile(tmp_path / "a")
        started = pool.take(LIGHT, KernelFolders(tmp_path))
    ways = {started.way}
    started.discard()

    assert pool.wait(LIGHT)
    started = pool.take(LIGHT, KernelFolders(tmp_path))
    ways.add(started.way)
    started.discard()
    assert ways <= {"warm", "forked"}
    assert started.way == "warm"


def test_a_kernel_kept_ready_is_at_rest_with_its_bridge_made(pool, tmp_path):
    assert pool.wait(LIGHT)
    started = pool.take(LIGHT, KernelFolders(tmp_path))
    try:
        assert started.way == "warm"
        made = "hasattr(__import__('sys').modules['tw_guest'], 'bridge_of_this_kernel')"
        request = started.connection.request("", expressions={"a": made}, silent=True)
        assert wait_for_messages([started.connection.shell], 10)
        first = started.connection.receive("shell")
    finally:
        started.discard()

    assert first["parent_header"]["msg_id"] == request
    assert first["content"]["user_expressions"]["a"]["data"]["text/plain"] == "True"


def test_a_kernel_kept_ready_has_the_limits_of_its_session_and_nothing_of_its_rehearsal(pool, tmp_path):
    assert pool.wait(LIGHT)
    with LocalKernel(tmp_path, settings=replace(LIGHT, output_chars=3000, result_chars=50), pool=pool) as kernel:
        first = kernel.execute("import os\nprint('x' * 4000)\nos.path.realpath('.')", seconds=30)
        assert kernel._live._handle.listens

        assert first.stdout.startswith("x" * 2000)
        assert first.stdout.count("\n[... 1001 characters left out ...]\n") == 1
        assert first.variables == ()
        assert "cell 2, line 1" in kernel.execute("1 / 0", seconds=30).error
        assert len(kernel.execute("'y' * 500", seconds=30).result) < 120
        artifact = kernel.execute("from IPython.display import HTML, display\ndisplay(HTML('<b>b</b>'))", seconds=30)
        assert [one.path.parent for one in artifact.artifacts] == [tmp_path.resolve()]


def test_a_kernel_kept_ready_enters_its_folder_also_where_its_permissions_were_taken_away(pool, tmp_path):
    assert pool.wait(LIGHT)
    shut = tmp_path / "shut"
    shut.mkdir()
    with LocalKernel(shut, settings=LIGHT, pool=pool) as kernel:
        shut.chmod(0o600)

        assert kernel.execute("import os\nos.getcwd()", seconds=30).result == repr(str(shut))


def test_what_it_imports_is_there_and_what_is_not_installed_is_left_out(tmp_path):
    settings = KernelSettings(preload=("decimal", "there_is_no_such_package"), warm=0)
    with KernelPool() as pool:
        assert pool.wait(settings)
        with LocalKernel(tmp_path, settings=settings, pool=pool) as kernel:
            assert kernel.execute("import sys\n'decimal' in sys.modules", seconds=30).result == "True"


def test_a_server_forks_kernels_before_it_has_imported_the_modules(tmp_path):
    settings = KernelSettings(preload=("decimal", "graphlib"), warm=0)
    warm = begin_warm_pool(settings)
    try:
        assert warm.await_server(60)
        early = (warm.usable, warm.loaded)
        assert warm.await_server(60, loaded=True)
        assert (early, warm.loaded) == ((True, False), True)
    finally:
        warm.close()


def test_a_kernel_waits_for_a_server_that_is_starting_in_place_of_a_process_of_its_own(tmp_path):
    settings = replace(LIGHT, warm=0)
    with KernelPool() as pool:
        pool.prepare(settings)
        assert until(lambda: pool._pools)
        started = pool.take(settings, KernelFolders(tmp_path))
        started.discard()

    assert started.way == "forked"


def test_a_supervisor_that_waited_and_was_killed_is_no_loss(tmp_path):
    settings = replace(LIGHT, warm=0)
    with KernelPool() as pool:
        assert pool.wait(settings)
        server = server_of(pool)._process.pid
        ways = []
        for _ in range(3):
            assert until(lambda: len(below(server)) == 1)
            waiting = below(server)
            os.kill(waiting[0], signal.SIGKILL)
            assert gone(waiting)
            started = pool.take(settings, KernelFolders(tmp_path))
            ways.append(started.way)
            started.discard()

        assert ways == ["forked"] * 3
        assert until(lambda: len(below(server)) == 1)
        waiting = below(server)
    assert gone([*waiting, server])


def test_forked_kernels_have_a_shell_each_with_a_profile_of_its_own(pool, tmp_path):
    code = """import os
shell = get_ipython()
place = shell.profile_dir.location
history = os.path.dirname(shell.history_manager.hist_file)
there = os.path.isdir(place), shell.logger.home_dir == shell.home_dir == os.path.expanduser("~")
[place, history, shell.ipython_dir, *there, shell.kernel.shell is shell, shell.parent is shell.kernel]"""
    found = []
    for name in ("a", "b"):
        with LocalKernel(tmp_path / name, settings=replace(LIGHT, warm=0), pool=pool) as kernel:
            found.append(literal_eval(kernel.execute(code, seconds=30).result))
            assert kernel.execute("%who", seconds=30).stdout.split() == ["history", "os", "place", "shell", "there"]
            assert kernel.execute("import gc\nheld = [[]]\nlen(gc.get_referrers(held))", seconds=30).result == "1"
            assert kernel.execute("%reset -f aggressive\n1 + 1", seconds=30).result == "2"

    for place, history, folder, *true in found:
        assert place == history == str(Path(folder) / "profile_default")
        assert true == [True, True, True, True]
    assert found[0][0] != found[1][0]


@pytest.mark.skipif(IPython.version_info[0] > 8, reason="since IPython 9 a shell makes no store before it is asked for")
@pytest.mark.parametrize("fork", [True, False])
def test_what_ipython_8_stores_with_pickleshare_lies_in_the_kernels_own_profile(tmp_path, monkeypatch, fork):
    (tmp_path / "site-packages").mkdir()
    stores = "import os\nclass PickleShareDB(dict):\n    def __init__(self, root):\n        os.makedirs(root)\n"
    (tmp_path / "site-packages" / "pickleshare.py").write_text(f"{stores}        self.root = str(root)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site-packages"))
    settings = KernelSettings(preload=(), warm=0, fork=fork, read=(tmp_path / "site-packages",))
    with KernelPool() as pool:
        assert not fork or pool.wait(settings)
        with LocalKernel(tmp_path / "a", settings=settings, pool=pool) as kernel:
            code = "shell = get_ipython()\n[shell.db.root, shell.profile_dir.location]"
            root, profile = literal_eval(kernel.execute(code, seconds=30).result)

    assert root == f"{profile}/db"
    assert not Path("/db").exists()


def test_forked_kernels_have_random_numbers_of_their_own(pool, tmp_path):
    code = "import random\nrandom.random()"
    assert pool.wait(LIGHT)
    drawn = set()
    for name in ("a", "b", "c"):
        with LocalKernel(tmp_path / name, settings=LIGHT, pool=pool) as kernel:
            drawn.add(kernel.execute(code, seconds=30).result)

    assert len(drawn) == 3


def test_a_kernel_kept_ready_sees_the_environment_of_now(pool, tmp_path, monkeypatch):
    assert pool.wait(LIGHT)
    monkeypatch.setenv("PLUGIN_weather_KEY", "set later")
    with LocalKernel(tmp_path, settings=LIGHT, pool=pool) as kernel:
        seen = kernel.execute("import os\nos.environ['PLUGIN_weather_KEY']", seconds=30)

    assert seen.result == "'set later'"


def test_sessions_go_on_without_the_server_and_the_next_one_starts_all_the_same(tmp_path):
    with KernelPool() as pool:
        assert pool.wait(LIGHT)
        with LocalKernel(tmp_path / "a", settings=LIGHT, pool=pool) as kernel:
            kernel.execute("kept = 5", seconds=30)
            server = server_of(pool)._process
            os.kill(server.pid, signal.SIGKILL)
            server.wait(10)

            assert kernel.execute("kept", seconds=30).result == "5"
            with LocalKernel(tmp_path / "b", settings=LIGHT, pool=pool) as other:
                assert other.execute("1 + 1", seconds=30).result == "2"
            assert pool.wait(LIGHT)
            assert server_of(pool)._process.pid != server.pid


def test_a_server_is_made_anew_when_packages_have_changed(tmp_path, monkeypatch):
    packages = tmp_path / "more-packages"
    packages.mkdir()
    monkeypatch.chdir(packages.parent)
    monkeypatch.setenv("PYTHONPATH", f"{packages.name}{os.pathsep}")  # relative to this process's folder
    with KernelPool() as pool:
        assert pool.wait(LIGHT)
        before = server_of(pool)
        (packages / "brand_new.py").write_text("here = True\n")
        os.utime(packages, (1, 1))

        with LocalKernel(tmp_path / "a", settings=LIGHT, pool=pool) as kernel:
            assert kernel.execute("import brand_new\nbrand_new.here", seconds=30).result == "True"
            assert pool.wait(LIGHT)
        assert server_of(pool) is not before


def test_a_server_that_nobody_needs_ends_by_itself():
    with KernelPool() as pool:
        settings = KernelSettings(preload=(), warm_seconds=0.5)
        assert pool.wait(settings)
        started = server_of(pool)._process.pid

        assert gone([started, *below(started)])
        assert not pool._pools


def test_the_first_kernel_comes_from_the_server_that_was_begun_for_it_and_has_pandas(tmp_path):
    settings = KernelSettings(preload=("pandas", "graphlib"), warm=0)
    begin_fork_server(settings)
    (begun,) = first_server._first.values()
    with KernelPool() as pool, LocalKernel(tmp_path, settings=settings, pool=pool) as kernel:
        loaded = kernel.execute("import sys\n'pandas' in sys.modules", seconds=60).result

        assert server_of(pool) is begun.server
    assert loaded == "True"
    assert begun.server._process.poll() is not None


def test_a_server_that_was_begun_with_other_settings_is_ended():
    begin_fork_server(KernelSettings(preload=("decimal", "numpy"), warm=0))
    (begun,) = first_server._first.values()
    with KernelPool() as pool:
        pool.prepare(replace(LIGHT, warm=0))

        assert begun.server._process.poll() is not None
        assert not begun.folder.exists()
        assert not first_server._first


def test_a_fork_of_the_process_neither_takes_nor_ends_the_first_server():
    settings = KernelSettings(preload=("decimal",), warm=0)
    begin_fork_server(settings)
    (begun,) = first_server._first.values()
    child = os.fork()
    if not child:
        taken = first_server.take_first_server(first_server.server_key(settings))
        os._exit(0 if taken is None and begun.folder.exists() else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert begun.folder.exists()
    assert begun.server._process.poll() is None
    assert first_server.take_first_server(first_server.server_key(settings)) is begun
    begun.close()


def test_a_server_that_is_made_while_the_pool_closes_is_ended(monkeypatch):
    made, begins = [], threading.Event()

    def begin_late(settings):
        made.append(begin_warm_pool(settings))
        begins.set()
        while not pool.closed:
            threading.Event().wait(0.01)
        return made[0]

    monkeypatch.setattr("tw_autogen.kernel.pool.begin_warm_pool", begin_late)
    with KernelPool() as pool:
        pool.prepare(LIGHT)
        assert begins.wait(30)

    assert made[0].server._process.poll() is not None
    assert not made[0].folder.exists()


def test_a_server_that_does_not_start_is_no_loss(tmp_path):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\ncase "$*" in *" many "*) exit 1;; esac\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    settings = KernelSettings(python=str(python), read=(str(tmp_path),))
    with KernelPool() as pool:
        assert not pool.wait(settings, seconds=2.0)
        started = pool.take(settings, KernelFolders(tmp_path))
        try:
            assert started.way == "cold"
        finally:
            started.discard()


def test_a_server_that_never_says_that_it_is_ready_is_waited_for_once(tmp_path, monkeypatch):
    monkeypatch.setattr("tw_autogen.kernel.pool._BEGUN_SECONDS", 2.0)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\ncase "$*" in *" many "*) exec sleep 60;; esac\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    settings = KernelSettings(python=str(python), read=(str(tmp_path),))
    with KernelPool() as pool:
        pool.prepare(settings)
        assert until(lambda: pool._pools)
        alone = seconds_of(lambda: start(settings, KernelFolders(tmp_path)).discard())
        beside = seconds_of(lambda: pool.take(settings, KernelFolders(tmp_path)).discard())

    assert 1.9 < beside < 2.0 + alone + 1.5


def seconds_of(work):
    began = time.monotonic()
    work()
    return time.monotonic() - began


def test_no_kernel_is_kept_ready_where_none_is_wanted(tmp_path):
    settings = KernelSettings(preload=(), warm=0)
    with KernelPool() as pool:
        assert pool.wait(settings)
        started = pool.take(settings, KernelFolders(tmp_path))
        try:
            assert started.way == "forked"
            assert not next(iter(pool._pools.values())).ready
        finally:
            started.discard()


OWNER = """
import sys
from tw_autogen.kernel import KernelSettings, LocalKernel, first_server
from tw_autogen.kernel.pool import default_pool
settings = KernelSettings(preload=())
default_pool().wait(settings)
kernel = LocalKernel(settings=settings)
kernel.execute("import subprocess\\nsubprocess.Popen(['sleep', '100'], start_new_session=True)", seconds=30)
default_pool().wait(settings)
print("ready", flush=True)
{then}
"""


@pytest.mark.parametrize("then", ["sys.stdin.read()", ""], ids=["killed", "forgets"])
def test_no_process_outlives_its_owner(then):
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER.format(then="sys.stdin.read()")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with owner:
        assert owner.stdout.readline() == "ready\n"
        started = below(owner.pid)
        assert len(started) >= 3  # server and supervisors; what they started lies below them
        if then:
            os.kill(owner.pid, signal.SIGKILL)
        else:
            owner.stdin.close()
    assert gone(started)


def test_no_descriptor_and_no_folder_is_left_behind(pool, tmp_path):
    left = []
    for number in range(6):
        with LocalKernel(tmp_path / str(number), settings=LIGHT, pool=pool) as kernel:
            kernel.execute("1", seconds=30)
            runtime = kernel._live._connection.runtime
        assert pool.wait(LIGHT)
        assert not runtime.exists()
        left.append(len(os.listdir("/proc/self/fd")))

    assert max(left[1:]) <= left[0]


FORKED = """
import os
from tw_autogen.errors import KernelStartError
from tw_autogen.kernel import KernelSettings, LocalKernel, first_server
from tw_autogen.kernel.pool import default_pool
settings = KernelSettings(preload=(), checkpoint_seconds=0.01)
default_pool().wait(settings)
with LocalKernel(settings=settings) as kernel:
    kernel.execute("kept = 1", seconds=30)
    child = os.fork()
    if child == 0:
        with LocalKernel(settings=settings) as other:
            print(other.execute("'kept' in globals()", seconds=30).result, flush=True)
        try:
            kernel.execute("kept = 2", seconds=30)
        except KernelStartError as error:
            print(*str(error).split()[:6], kernel.pid, flush=True)
        kernel.close()
        os._exit(0)
    os.waitpid(child, 0)
    print(kernel.execute("kept", seconds=30).result, flush=True)
"""


def test_a_fork_of_the_host_has_kernels_of_its_own():
    ran = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=60, check=True)

    assert ran.stdout.splitlines() == ["False", "the kernel is that of the None", "1"]


class Changing(MutableMapping):
    """An environment that loses a variable once its names have been listed, as os.environ may."""

    def __init__(self, **values):
        self.values_now = values

    def __iter__(self):
        names = list(self.values_now)
        self.values_now.pop("TWT_GONE", None)
        return iter(names)

    def __getitem__(self, name):
        return self.values_now[name]

    def __setitem__(self, name, value):
        self.values_now[name] = value

    def __delitem__(self, name):
        del self.values_now[name]

    def __len__(self):
        return len(self.values_now)


def test_an_environment_that_another_thread_changes_is_read_all_the_same():
    kept = clean_environment(Changing(TWT_GONE="1", TWT_KEPT="2"), allowed=("TWT_*",))

    assert {name: value for name, value in kept.items() if name.startswith("TWT")} == {"TWT_KEPT": "2"}


@pytest.mark.parametrize("name", list(KernelSettings().limits))
def test_a_limit_is_in_the_plan_of_a_sandbox_and_tells_kernels_kept_ready_apart(name, tmp_path):
    own, other = KernelSettings(), KernelSettings(**{name: 1000})
    plan, others = (sandbox_plan("off", one, 0, stage=tmp_path, own=tmp_path)["limits"] for one in (own, other))

    assert kernel_key(own) != kernel_key(other)
    assert [limit for limit in plan if plan[limit] != others[limit]] == [name.replace("_mb", "_bytes")]
