"""The levels of the sandbox, a kernel at each, beside another session's kernel; and what a probe comes to there."""

import contextlib
import ctypes
import hashlib
import json
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.kernel.sandbox.world import SECRET, World
from tw_autogen.kernel import KernelSettings, LocalKernel

LEVELS = ("off", "auto", "namespaces", "landlock", "bubblewrap")

NOT_CLAIMED = {
    "landlock": {
        "home-listing": {
            "measured",
            "measured_by_statx",
            "gone_to",
            "opened_as_a_path",
            "asked_for",
        },  # `stat` is not forbidden
        "network-seen": {"host_name"},
        "listens": {"abstract"},  # the other side would have to be the host's own
        "privileges": {"powers"},  # as root, with an interpreter in a folder that is closed to others
    }
}
"""What a level's docstring says that it doesn't hold off."""

_SIBLING = """
import ctypes, json, os, signal, tempfile
from pathlib import Path
kept = ctypes.create_string_buffer(open("other-session.txt", "rb").read())
signal.signal(signal.SIGUSR2, lambda *_: Path("signalled").touch())
names = ["MPLCONFIGDIR", "IPYTHONDIR", "XDG_CACHE_HOME"]
paths = {name: os.environ[name] for name in names if os.path.isdir(os.environ.get(name, ""))}
print(json.dumps({"address": ctypes.addressof(kept), "paths": paths}))
"""


def settings(level, **others):
    """Give a kernel's settings at a level; one file of full size does not fill the disk, so each limit shows itself.

    Links can be made, so that what they lead to is tried as well.
    """
    return KernelSettings(sandbox=level, file_mb=512, disk_mb=1024, allow_symlinks=True, **others)


@dataclass
class Outcome:
    """What a probe came to: the ways that got through, as the cell and as the host saw it."""

    how: list
    seen: list
    tried: int
    errors: dict
    error: str
    seconds: float

    @property
    def breach(self):
        """Tell whether anything got through."""
        return bool(self.how or self.seen)

    def __str__(self):
        return "; ".join([*self.how, *self.seen]) or "nothing got through"


class Level:
    """A kernel at a level of the sandbox, started when first needed, and another session's beside it.

    Args:
        name: Of the level.
        others: Further settings of the kernels.
    """

    def __init__(self, name, **others):
        self.name = name
        self._settings = settings(name, **others)
        self._stack = contextlib.ExitStack()
        self.place = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="tw-sessions-")))
        self._made = 0

    def __enter__(self):
        if self.name == "off" and os.geteuid() == 0:
            raise PermissionError("without a sandbox nothing is tried as root: probes delete, kill and fill")
        os.environ["OPENAI_API_KEY"] = SECRET  # as in a user's shell, whose kernels are started now
        try:
            self._other = self._stack.enter_context(self.kernel())
            Path(self._other.folder, "other-session.txt").write_text(SECRET)
            execution = self._other.execute(_SIBLING, seconds=30)
            assert execution.ok, execution.error
            said = json.loads(execution.stdout)
            if self.name != "off":
                self._look_for_a_sandbox()
            self.sibling = {**said, **self._channel(), "folder": str(self._other.folder)}
            self.sibling["file"] = str(self._other.folder / "other-session.txt")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        """End both kernels."""
        os.environ.pop("OPENAI_API_KEY", None)
        self._stack.close()

    def kernel(self):
        """Make a kernel of this level, in a folder of its own beside the others'."""
        self._made += 1
        return LocalKernel(self.place / f"session-{self._made}", settings=self._settings)

    def attempt(self, probe):
        """Run a probe's cell; give what it came to."""
        began = time.monotonic()
        with World(self.sibling) as world, self.kernel() as kernel:
            execution = kernel.execute(probe.text(world.facts()), seconds=probe.seconds)
            extra = probe.after(kernel, execution, world) if probe.after else []
            seen = [*world.seen(), *extra]
            if (signalled := Path(self.sibling["folder"], "signalled")).exists():
                signalled.unlink()
                seen.append("the other session was signalled")
        shutil.rmtree(kernel.folder, ignore_errors=True)  # a kernel that was ended leaves a full disk behind
        verdict = _verdict(execution.stdout)
        return Outcome(
            verdict["how"], seen, verdict["tried"], verdict["errors"], execution.error, time.monotonic() - began
        )

    def through(self, probe, outcome):
        """Give what got through, but for what this level says that it doesn't hold off."""
        known = NOT_CLAIMED.get(self.name, {}).get(probe.name, set())
        return [*outcome.seen, *sorted(set(outcome.how) - known)]

    def _look_for_a_sandbox(self):
        """Fail if there is none: a planted file can be read. Harmless, before anything that is not."""
        with tempfile.NamedTemporaryFile("w", prefix="tw-sandbox-") as file:
            file.write(SECRET)
            file.flush()
            execution = self._other.execute(f"print(open({file.name!r}).read())", seconds=30)
        assert SECRET not in execution.stdout, f"{self.name} is no sandbox at all"
        assert not execution.ok, "the planted file is not there, so nothing is shown"

    def _channel(self):
        """Tell where the other kernel's sockets and key are; a probe may know all but the key."""
        live = self._other._live
        connection = live._connection
        info = json.loads(connection.file.read_text())
        channels = [info[one] for one in ("shell_port", "iopub_port", "stdin_port", "control_port")]
        by_file = info["transport"] == "ipc"
        self._secret_key = ctypes.create_string_buffer(info["key"].encode())
        return {
            "pid": live.process.pid,
            "connection": str(connection.file),
            "sockets": [f"{info['ip']}-{channel}" for channel in channels] if by_file else [],
            "ports": [] if by_file else channels,
            "key_address": ctypes.addressof(self._secret_key),
            "key_digest": hashlib.sha256(info["key"].encode()).hexdigest(),
        }


def ended_by_sandbox(probe, outcome):
    """Tell whether the limit that a probe attacks ended its kernel, or the cell, so that it never spoke."""
    return bool(probe.ends) and probe.ends in outcome.error


def _verdict(stdout):
    """Read a cell's last line; a cell that was ended before it could speak has none."""
    for line in reversed(stdout.splitlines()):
        with contextlib.suppress(ValueError):
            said = json.loads(line)
            if isinstance(said, dict) and "breach" in said:
                return said
    return {"breach": False, "how": [], "tried": 0, "errors": {}}
