"""smolagents' interpreter, which walks the syntax tree in the host's own process."""

from session import Session
from smolagents.local_python_executor import LocalPythonExecutor


class Smolagents(Session):
    """A `LocalPythonExecutor`."""

    def start(self) -> None:
        self.executor = LocalPythonExecutor(["pandas", "pandas.*", "numpy", "numpy.*", "matplotlib", "matplotlib.*"])
        self.executor.send_tools({})

    def run(self, code: str) -> str:
        return str(self.executor(code).output)

    def close(self) -> None:
        self.executor = None
