"""One kernel for all tests of a module that leave it alive; they must not rely on what others left in it."""

import pytest

from tw_autogen.kernel import LocalKernel


@pytest.fixture(scope="module")
def kernel():
    with LocalKernel() as kernel:
        yield kernel


@pytest.fixture
def run(kernel):
    """Run a cell that must end well, and give what came of it."""

    def run(code, seconds=30.0):
        execution = kernel.execute(code, seconds=seconds)
        assert execution.ok, execution.error
        return execution

    return run
