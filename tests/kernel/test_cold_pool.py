"""Kernels that are kept ready where nothing forks: the switch `fork` off, as it is on macOS and Windows."""

import subprocess
import sys

import pytest

from tests.kernel.test_pool import below, gone
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.kernel.kernel_folders import KernelFolders
from tw_autogen.kernel.kernel_process import wait_readable
from tw_autogen.kernel.launcher.sandbox import NAMESPACES
from tw_autogen.kernel.pool import KernelPool
from tw_autogen.kernel.sandbox_levels import available_level

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere `test_elsewhere` is the test of it")
COLD = KernelSettings(fork=False, preload=("wave", "there_is_no_such_package"), warm=2)


@pytest.fixture(scope="module", autouse=True)
def _late_sandbox():
    if available_level(COLD) != NAMESPACES:
        pytest.skip("the sandbox of this system must know a session's folders at once")


def ready_in(pool):
    return [started for warm in pool._pools.values() for _, started in warm.ready]


def test_cold_kernels_are_kept_ready_handed_out_and_made_anew(tmp_path):
    with KernelPool() as pool:
        assert pool.wait(COLD)
        kept = ready_in(pool)
        assert len(kept) == 2
        first = pool.take(COLD, KernelFolders(tmp_path))
        try:
            assert first.way == "warm"
            assert first in kept
            assert pool.wait(COLD)
            assert len(ready_in(pool)) == 2
        finally:
            first.discard()


def test_a_cold_kernel_kept_ready_has_imported_what_is_named_and_belongs_to_its_session(tmp_path):
    with KernelPool() as pool:
        assert pool.wait(COLD)
        with LocalKernel(tmp_path / "a", settings=COLD, pool=pool) as kernel:
            first = kernel.execute("import os, sys\nprint('wave' in sys.modules)\nos.getcwd()", seconds=30)
            assert kernel._live._handle.listens
            (tmp_path / "secret").write_text("planted")
            other = kernel.execute(f"open({str(tmp_path / 'secret')!r}).read()", seconds=30)

        assert first.stdout == "True\n"
        assert first.result == repr(str((tmp_path / "a").resolve()))
        assert first.variables == ()
        assert "cell 2" in other.error
        assert "planted" not in other.error


def test_cold_kernels_nobody_needs_end_after_their_time(tmp_path):
    settings = KernelSettings(fork=False, preload=(), warm=1, warm_seconds=1.0)
    with KernelPool() as pool:
        assert pool.wait(settings)
        (started,) = ready_in(pool)
        assert wait_readable(started.process.death, 20)

        assert not started.process.alive()
        assert not pool._pools


def test_none_is_kept_ready_where_none_is_wanted(tmp_path):
    settings = KernelSettings(fork=False, warm=0)
    with KernelPool() as pool:
        pool.prepare(settings)
        assert not pool._pools
        started = pool.take(settings, KernelFolders(tmp_path))
        started.discard()
        assert started.way == "cold"


_OWNER = """
import sys, time
from tw_autogen.kernel import KernelSettings
from tw_autogen.kernel.pool import KernelPool

pool = KernelPool()
assert pool.wait(KernelSettings(fork=False, preload=(), warm=2))
print("ready", flush=True)
time.sleep(100)
"""


def test_cold_kernels_kept_ready_end_with_their_owner_kill_9_included():
    owner = subprocess.Popen([sys.executable, "-c", _OWNER], stdout=subprocess.PIPE, text=True)
    try:
        assert owner.stdout.readline() == "ready\n"
        children = below(owner.pid)
        assert len(children) >= 2
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()

    assert gone(children)
