"""`Session`: what a peer does to be a row of the table, and `ROWS`, the rows there are."""

from __future__ import annotations

from dataclasses import dataclass

import psutil


class Session:
    """One session of a peer: made by the constructor, ready behind `start`, gone behind `close`."""

    @classmethod
    def prepare(cls) -> None:
        """Do what a host does while nobody waits for a session yet; not timed."""

    def start(self) -> None:
        """Start it; what a peer puts off until the first cell may be put off."""
        raise NotImplementedError

    def run(self, code: str) -> str:
        """Run a cell; give its last expression's text. A cell that failed raises."""
        raise NotImplementedError

    def close(self) -> None:
        """End it."""
        raise NotImplementedError

    @staticmethod
    def pids() -> set[int]:
        """Give the processes behind all sessions that live; a peer that starts them elsewhere says so itself."""
        return {child.pid for child in psutil.Process().children(recursive=True)}


@dataclass(frozen=True)
class Row:
    """Where a row's class is; it is imported by the row's own worker only.

    Args:
        module: Below `peers`.
        name: The class.
        note: What one must know to read its numbers.
    """

    module: str
    name: str
    note: str = ""


OURS = "tw_autogen LocalKernel"
FORKED = "tw_autogen forked"
COLD = "tw_autogen cold"
PLAIN = "jupyter_client + ipykernel"

ROWS = {
    OURS: Row("tw", "TwKernel", note="kept ready; what is asked for at once beyond that is forked"),
    FORKED: Row("tw", "TwForked"),
    COLD: Row("tw", "TwCold", note="without a fork server"),
    "autogen-ext JupyterCodeExecutor": Row("autogen_ext_jupyter", "AutogenExt"),
    "autogen classic embedded IPython": Row("autogen_classic", "AutogenClassic"),
    "smolagents LocalPythonExecutor": Row(
        "smolagents_local",
        "Smolagents",
        note="interprets in the host's own process: a host pays for imports once, and nothing ends a cell that hangs",
    ),
    PLAIN: Row("plain_jupyter", "PlainJupyter"),
}
