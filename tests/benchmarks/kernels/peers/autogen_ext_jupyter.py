"""autogen-ext's executor for Jupyter kernels."""

import asyncio

from autogen_core import CancellationToken
from autogen_core.code_executor import CodeBlock
from autogen_ext.code_executors.jupyter import JupyterCodeExecutor
from session import Session


class AutogenExt(Session):
    """A `JupyterCodeExecutor`, on an event loop of its own, since it is async."""

    def start(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.executor = JupyterCodeExecutor(timeout=60)
        self.loop.run_until_complete(self.executor.start())

    def run(self, code: str) -> str:
        blocks = [CodeBlock(code=code, language="python")]
        result = self.loop.run_until_complete(self.executor.execute_code_blocks(blocks, CancellationToken()))
        assert result.exit_code == 0, result.output
        return result.output

    def close(self) -> None:
        self.loop.run_until_complete(self.executor.stop())
        self.loop.close()
