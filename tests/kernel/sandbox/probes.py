"""The probes as data: what each would mean if it got through, its cell, and how it is judged."""

import contextlib
import inspect
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from tests.kernel.sandbox import (
    inside,
    probes_amounts,
    probes_files,
    probes_network,
    probes_processes,
    probes_session,
    probes_system,
)
from tests.kernel.sandbox.world import SECRET
from tw_autogen.errors import KernelError


def follow(kernel, execution, world):
    """Do as the host does behind a cell: take its artifacts, hand over a table; give what came of it."""
    found = [artifact.name for artifact in execution.artifacts if SECRET.encode() in artifact.path.read_bytes()]
    with contextlib.suppress(OSError, KernelError):  # that the host can't is no harm
        kernel.put("table", pd.DataFrame({"a": range(10)}))
    return [f"the host read {name} for it" for name in found]


def weigh(kernel, execution, world):
    """Look how much the host's memory grew while it listened."""
    grown = world.grown() >> 20
    return [f"the host's memory grew by {grown} MB"] if grown > 150 else []


def outlive(kernel, execution, world):
    """End the session; give which of its processes still write into its folder."""
    folder = kernel.folder
    end = time.monotonic() + 3
    while time.monotonic() < end and len(list(folder.glob("beat-*"))) < 4:
        time.sleep(0.05)
    kernel.close()
    before = {path: path.stat().st_size for path in folder.glob("beat-*")}
    time.sleep(0.5)
    return [f"{one.name} goes on" for one, size in before.items() if one.stat().st_size > size]


@dataclass(frozen=True)
class Probe:
    """One thing that code must not be able to do, tried in several ways.

    Args:
        cell: A class whose public functions are the ways.
        sure: Without a sandbox it gets through on any Linux, so a test that it does can't fail for the machine's sake.
        root: Without a sandbox it needs a host that runs as root.
        ends: The sandbox may hold by ending the kernel, so that the cell never speaks; then its error must say this:
            the limit that the probe attacks, and no other reason.
        after: What the host does behind the cell; gives in words what got through.
    """

    cell: type
    sure: bool = True
    root: bool = False
    ends: str = ""
    seconds: float = 60.0
    after: object = None

    @property
    def name(self):
        """Give the name in words of the class: `HomeFile` is `home-file`."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", self.cell.__name__).lower()

    @property
    def meaning(self):
        """Say what it would be if it got through."""
        return inspect.getdoc(self.cell).splitlines()[0]

    def text(self, facts):
        """Give the cell, for a world of these facts."""
        module = sys.modules[self.cell.__module__].__file__
        return _CELL.format(
            inside=Path(inside.__file__).read_text(encoding="utf-8"),
            module=Path(module).read_text(encoding="utf-8"),
            name=self.cell.__name__,
            facts=facts,
        )


_CELL = """
import sys, types
for name in ("tests", "tests.kernel", "tests.kernel.sandbox", "tests.kernel.sandbox.inside"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = []
exec({inside!r}, vars(sys.modules[name]))
probe = {{"__name__": "probe"}}
exec({module!r}, probe)
sys.modules[name].report(probe[{name!r}], {facts!r})
"""


PROBES = (
    Probe(probes_files.HomeFile),
    Probe(probes_files.SystemSecrets, sure=False, root=True),
    Probe(probes_files.HomeListing),
    Probe(probes_files.WriteOutside),
    Probe(probes_files.ChangeAttributes),
    Probe(probes_files.WriteSystem),
    Probe(probes_files.OtherSession),
    Probe(probes_files.SharedFolders),
    Probe(probes_files.SharedMemory),
    Probe(probes_processes.Environment),
    Probe(probes_processes.Memory, sure=False),
    Probe(probes_processes.FdCapture),
    Probe(probes_processes.Seen),
    Probe(probes_processes.Signals),
    Probe(probes_processes.ChangeProcess),
    Probe(probes_processes.Privileges, sure=False),
    Probe(probes_network.TcpToHost),
    Probe(probes_network.UdpToHost),
    Probe(probes_network.UnixToHost),
    Probe(probes_network.UnixDatagramToHost),
    Probe(probes_network.AbstractToHost),
    Probe(probes_network.NetworkSeen),
    Probe(probes_network.Listens),
    Probe(probes_network.RareSockets, sure=False),
    Probe(probes_network.Terminal, sure=False),
    Probe(probes_system.Namespaces, sure=False),
    Probe(probes_system.Mounts, sure=False),
    Probe(probes_system.Chroot, sure=False, root=True),
    Probe(probes_system.RareCalls, sure=False),
    Probe(probes_system.SystemSettings, sure=False, root=True),
    Probe(probes_system.CoreDump, sure=False),
    Probe(probes_amounts.ManyProcesses, sure=False),
    Probe(probes_amounts.MuchMemory, sure=False, ends="(kernel.memory_mb)"),
    Probe(probes_amounts.LargeFile, sure=False),
    Probe(probes_amounts.ManyFiles, sure=False, ends="(kernel.disk_mb)"),
    Probe(probes_amounts.Watches, sure=False),
    Probe(probes_session.OtherChannel),
    Probe(probes_session.HostReads, after=follow),
    Probe(probes_session.HostWrites, sure=False, after=follow),
    Probe(probes_session.HostMemory, sure=False, ends="the kernel's answer was lost", seconds=30.0, after=weigh),
    Probe(probes_session.Outlives, sure=False, after=outlive),
)
