"""A kernel with all that a host puts into one, and the cell by which it shows that it still works."""

import contextlib
import os
import sys
import time

from tw_autogen.kernel import KernelSettings, Loadable, LocalKernel

PLUGIN = "from tw_autogen.plugin import register_plugin\n\n@register_plugin\ndef double(x):\n    return 2 * x\n"
MARGIN = 4.0
"""Seconds that a machine with nothing else to do may add to a bound."""

linux = sys.platform.startswith("linux")


def margin():
    """Return how many seconds a busy machine may add to a bound: more, the more processes wait for its processors."""
    waiting = os.getloadavg()[0] / (os.cpu_count() or 1) if hasattr(os, "getloadavg") else 1.0
    return MARGIN * max(1.0, waiting)


@contextlib.contextmanager
def filled(folder=None, **settings):
    """Give a kernel with a plugin, a served function, a put variable and one of its own."""
    with LocalKernel(folder, settings=KernelSettings(**{"grace_seconds": 1.0, **settings})) as kernel:
        kernel.load(Loadable("double", PLUGIN))
        kernel.put("given", 7)
        kernel.serve("ask", lambda: "answered")
        keep(kernel)
        yield kernel


def keep(kernel):
    """Make the variable whose survival is looked at."""
    execution = kernel.execute("kept = 5", seconds=30)
    assert execution.ok, execution.error


def run(kernel, code, *, seconds, within=None):
    """Run a cell that must end in time, whatever it does; so many processes to a core, so much longer it may take."""
    began = time.monotonic()
    execution = kernel.execute(code, seconds=seconds)
    assert time.monotonic() - began < (seconds + 1.0 if within is None else within) + margin()
    assert execution.ok == (not execution.error)
    return execution


def works(kernel, *, kept=True):
    """Check that the next cell runs, with what was promised."""
    after = kernel.execute("print('shown')\n(globals().get('kept'), given, double(4), ask())", seconds=30)
    assert after.error == ""
    assert after.result == f"({5 if kept else None}, 7, 8, 'answered')"
    assert after.stdout == "shown\n"
    if not kept:
        keep(kernel)
