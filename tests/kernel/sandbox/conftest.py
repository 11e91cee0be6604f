"""A kernel at each level of the sandbox that this system has, beside another session's, for what tries to get out."""

import os
import sys

import pytest

from tests.kernel.sandbox.levels import LEVELS, Level
from tw_autogen.errors import ConfigError, KernelError

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the probes speak to Linux")


def pytest_collection_modifyitems(items):
    for item in items:
        if "kernel/sandbox" in item.path.as_posix():
            item.add_marker(linux_only)
        if item.path.name in ("test_probes.py", "test_payloads.py"):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="module", params=LEVELS)
def level(request):
    """Give a level; one that this system does not have is left out, except the default, which must be had."""
    if "OPENAI_API_KEY" in os.environ:
        pytest.skip("a real key is set; a planted one must take its place")
    if request.param == "off" and os.geteuid() == 0:
        pytest.skip("without a sandbox nothing is tried as root: probes delete, kill and fill")
    place = Level(request.param)
    try:
        place.__enter__()
    except (ConfigError, KernelError) as error:
        if request.param in ("off", "auto") or os.environ.get("TW_SANDBOXES") == "all":
            raise
        pytest.skip(f"not on this system: {error}")
    yield place
    place.close()


@pytest.fixture(scope="module")
def sandbox(level):
    """Give a level that is a sandbox."""
    if level.name == "off":
        pytest.skip("no sandbox")
    return level
