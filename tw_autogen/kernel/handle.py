"""`KernelHandle`: a kernel that was started, as the host holds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tw_autogen.kernel.file_transfer import FileTransfer
from tw_autogen.kernel.process import Process
from tw_autogen.kernel.wire import Wire


@dataclass(frozen=True)
class KernelHandle:
    """A kernel that was started, wherever it runs; it may not listen yet.

    Args:
        wire: The way to it.
        process: What ends with it.
        said: Gives what it wrote before its streams were led to the host.
        release: Called when it has ended.
        options: What its bridge is told, besides limits.
        files: Answers code there that asks for files of the host's folder; None where both see the same folder.
        uid: The user that it is, where the host is root; 0: the host's own.
        walls: Says in one line what stands around it; empty where that is said elsewhere.
        bundled: Our end of the bridge is there already.
        listens: It has answered before.
    """

    wire: Wire
    process: Process
    said: Callable[[], str] = str
    release: Callable[[], object] = str
    options: Mapping[str, Any] = field(default_factory=dict)
    files: FileTransfer | None = None
    uid: int = 0
    walls: str = ""
    bundled: bool = False
    listens: bool = False
