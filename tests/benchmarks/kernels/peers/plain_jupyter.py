"""ipykernel through jupyter_client's blocking client, as its documentation shows it."""

from jupyter_client import KernelManager
from session import Session


class PlainJupyter(Session):
    """A `KernelManager` and its blocking client."""

    def start(self) -> None:
        self.manager = KernelManager()
        self.manager.start_kernel()
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def run(self, code: str) -> str:
        said: list[str] = []

        def take(message):
            content = message["content"]
            said.append(content.get("text") or content.get("data", {}).get("text/plain", ""))

        reply = self.client.execute_interactive(code, timeout=60, output_hook=take)
        assert reply["content"]["status"] == "ok", reply["content"]
        return "".join(said)

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
