"""What all tests need."""

import atexit
import gc
import os
import shutil
import signal
import tempfile
import time

import pytest


def pytest_configure():
    """Let Ctrl-C come through, here and in what tests start: a job in the background may begin with SIGINT ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    state = tempfile.mkdtemp(prefix="tw-tests-state-")  # tests trust no folder for whoever runs them, and leave no key
    atexit.register(shutil.rmtree, state, ignore_errors=True)
    os.environ["XDG_STATE_HOME"] = state
    os.environ.pop("PYTHONUNBUFFERED", None)  # few users set it, and with it streams fail elsewhere


@pytest.fixture
def cpu_seconds():
    """Return the processor's clock of this test, in which nothing that earlier tests left is collected."""
    gc.collect()
    gc.disable()
    yield time.process_time
    gc.enable()
