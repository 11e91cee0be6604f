"""`Execution`: what came of a cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Artifact:
    """A file that a cell or a plugin made for the user.

    Args:
        name: What it is called in words.
        kind: `chart`, `image`, `df`, `file`, `txt`, `svg`, `html` or `json`.
        path: Absolute; inside the kernel's folder.
        preview: A line or a few that say what is in it.
    """

    name: str
    kind: str
    path: Path
    preview: str = ""

    def to_dict(self) -> dict[str, str]:
        """Return plain values, the path as text."""
        return {"name": self.name, "kind": self.kind, "path": str(self.path), "preview": self.preview}

    @classmethod
    def from_dict(cls, plain: Mapping[str, str]) -> Artifact:
        """Read what `to_dict` gave."""
        return cls(plain["name"], plain["kind"], Path(plain["path"]), plain.get("preview", ""))

    def markdown(self) -> str:
        """Return one line of a Markdown list: name, place, and the first line of the preview."""
        preview = next(iter(self.preview.strip().splitlines()), "")
        return f"- [{self.path.name}]({self.path.as_uri()})" + (f": {preview}" if preview else "")


@dataclass(frozen=True)
class Variable:
    """A variable that exists in the kernel.

    Args:
        name: As the code spells it.
        type: Name of its class, such as `DataFrame`.
        summary: Shape, columns with dtypes, length or value, cut to one short line.
    """

    name: str
    type: str
    summary: str = ""

    def __str__(self) -> str:
        """Return `df: DataFrame, 720 x 2, columns ts: object, val: float64`."""
        return f"{self.name}: {self.type}" + (f", {self.summary}" if self.summary else "")


@dataclass(frozen=True)
class Log:
    """A line that a plugin logged."""

    level: str
    tag: str
    message: str


@dataclass(frozen=True)
class Execution:
    """What came of a cell; always a value, whatever the code did.

    Args:
        ok: The cell ran to its end.
        result: `repr` text of the last expression, or None where there is none.
        stdout: All that was printed, in order (cut in the middle, with a mark, beyond the kernel's limit).
        stderr: The same of standard error.
        logs: What plugins logged.
        artifacts: Files made by this cell, in order.
        variables: The user's variables that exist after it, by name; plugins and modules are left out.
        error: The traceback as the model should read it (frames of the cell's own code and the exception's own line,
            no paths of this machine), or the reason why the cell was stopped; empty if `ok`. It says so where the cell
            was undone (`KernelSettings.rollback_on_error`).
        state_lost: The kernel was ended, and all variables with it; the next cell gets a fresh one with plugins loaded,
            and with what `KernelSettings.checkpoint_seconds` brings back, if that is set: `error` says so.
        seconds: Wall-clock time of the cell, without the time spent in host calls.
    """

    ok: bool
    result: str | None = None
    stdout: str = ""
    stderr: str = ""
    logs: tuple[Log, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    variables: tuple[Variable, ...] = ()
    error: str = ""
    state_lost: bool = False
    seconds: float = 0.0
