"""What all tests need."""

import signal


def pytest_configure():
    """Let Ctrl-C come through, here and in what tests start: a job in the background may begin with SIGINT ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
