"""Our own kernel."""

from collections.abc import Callable

from session import Session

from tw_autogen.kernel import LocalKernel


class TwKernel(Session):
    """A `LocalKernel`; each way to start one is a row of its own.

    Args:
        make: Gives the kernel.
    """

    make: Callable[[], LocalKernel] = LocalKernel

    def start(self) -> None:
        self.kernel = self.make()

    def run(self, code: str) -> str:
        execution = self.kernel.execute(code, seconds=60)
        assert execution.ok, execution.error
        return execution.result or execution.stdout

    def close(self) -> None:
        self.kernel.close()
