"""AutoGen classic's executor with an embedded IPython kernel."""

import tempfile

from autogen.coding import CodeBlock
from autogen.coding.jupyter import EmbeddedIPythonCodeExecutor
from session import Session


class AutogenClassic(Session):
    """An `EmbeddedIPythonCodeExecutor`."""

    def start(self) -> None:
        self.executor = EmbeddedIPythonCodeExecutor(timeout=60, output_dir=tempfile.gettempdir())

    def run(self, code: str) -> str:
        result = self.executor.execute_code_blocks([CodeBlock(code=code, language="python")])
        assert result.exit_code == 0, result.output
        return result.output

    def close(self) -> None:
        self.executor._kernel_client.stop_channels()  # it has no method that ends its kernel
        self.executor._kernel_manager.shutdown_kernel(now=True)
