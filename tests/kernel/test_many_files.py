"""A process with many kernels has many files open: that is no hindrance, and at its limit it is told what to do."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there the limit is another one")

_SCRIPT = """
import resource
from tw_autogen.errors import KernelStartError
from tw_autogen.kernel import KernelSettings, LocalKernel
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
settings = KernelSettings(preload=())
kernels, told = [], ""
while not told:
    try:
        kernels.append(LocalKernel(settings=settings))
        kernels[-1].execute("1", seconds=60)
    except KernelStartError as error:
        told = str(error)
for one in kernels:
    one.close()
with LocalKernel(settings=settings) as kernel:
    print(len(kernels), kernel.execute("40 + 2", seconds=60).result, told)
"""


def test_a_process_that_may_open_no_more_files_says_so_and_goes_on_when_sessions_are_closed():
    done = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, timeout=90)

    assert done.returncode == 0, done.stderr
    many, result, told = done.stdout.split(maxsplit=2)
    assert int(many) > 3
    assert result == "42"
    assert "files open, of the 100 that it may" in told
    assert "ulimit -n" in told
