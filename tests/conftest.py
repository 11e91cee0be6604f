"""What all tests need."""

import atexit
import os
import shutil
import signal
import tempfile


def pytest_configure():
    """Let Ctrl-C come through, here and in what tests start: a job in the background may begin with SIGINT ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    state = tempfile.mkdtemp(prefix="tw-tests-state-")  # tests trust no folder for whoever runs them, and leave no key
    atexit.register(shutil.rmtree, state, ignore_errors=True)
    os.environ["XDG_STATE_HOME"] = state
