"""Our own kernel."""

from session import Session

from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.kernel.pool import default_pool


class TwKernel(Session):
    """A `LocalKernel` that was kept ready; each way to start one is a row of its own."""

    settings = KernelSettings()

    @classmethod
    def prepare(cls) -> None:
        """Have a kernel ready, as in a session whose model has thought meanwhile."""
        if cls.settings.fork:
            default_pool().wait(cls.settings)

    def start(self) -> None:
        self.kernel = LocalKernel(settings=self.settings)

    def run(self, code: str) -> str:
        execution = self.kernel.execute(code, seconds=60)
        assert execution.ok, execution.error
        return execution.result or execution.stdout

    def close(self) -> None:
        self.kernel.close()


class TwForked(TwKernel):
    """One that is forked when it is asked for."""

    settings = KernelSettings(warm=0)


class TwCold(TwKernel):
    """One that is started for itself."""

    settings = KernelSettings(fork=False, warm=0)
