"""`Watched`: one session at work, each of whose cells is looked at: its own output only, its own state, in time."""

import ast
import os
import random
import re
import signal
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field

from tw_autogen.kernel import KernelSettings, Loadable, LocalKernel

SETTINGS = KernelSettings(memory_mb=600, disk_mb=500)
"""The sandbox and times are the default's; memory is less, so that its limit is met sooner."""

PLUGIN = "from tw_autogen.plugin import register_plugin\n\n@register_plugin\ndef double(x):\n    return 2 * x\n"
_TOKEN = re.compile(r"(?:cell|thread)-\d+-\d+-[0-9a-f]{8};")


class Unexpected(Exception):
    """A cell came to something else than it should have."""


@dataclass
class Kind:
    """What cells of one kind came to.

    Args:
        seconds: How long each call took.
        beyond: By how much each took longer than its time limit.
        violations: What was wrong, in words.
    """

    seconds: list = field(default_factory=list)
    beyond: list = field(default_factory=list)
    violations: list = field(default_factory=list)


class Tally:
    """What all sessions came to; threads write into it."""

    def __init__(self):
        self.kinds = defaultdict(Kind)
        self.cells = self.opened = self.deaths = 0
        self._lock = threading.Lock()

    def cell(self, kind, seconds, beyond):
        with self._lock:
            self.cells += 1
            self.kinds[kind].seconds.append(seconds)
            self.kinds[kind].beyond.append(beyond)

    def violation(self, kind, text):
        with self._lock:
            self.kinds[kind].violations.append(text)

    def count(self, what):
        with self._lock:
            setattr(self, what, getattr(self, what) + 1)


class Watched:
    """A session at work.

    Args:
        number: Its own; what it prints bears it.
        seed: Of its faults.
        tally: Told what its cells came to.
        margin: Seconds that a busy machine may add to a bound.
    """

    def __init__(self, number, *, seed, tally, margin):
        self.number, self.tally, self._margin = number, tally, margin
        self.random = random.Random(f"{seed}-{number}")
        self.name = f"session-{number}"
        self.kind = "opening"
        self._made = 0
        self._lock = threading.Lock()
        self.kernel = None

    def open(self):
        """Begin with a fresh kernel, with all that a host puts into one."""
        self.kernel = LocalKernel(settings=SETTINGS)
        self.tally.count("opened")
        self.kernel.load(Loadable("double", PLUGIN))
        self.kernel.put("given", self.name)
        self.kernel.serve("ask", self._answer)
        self.keep()

    def close(self):
        """End it; its process and its folder must be gone."""
        kernel, self.kernel = self.kernel, None
        if kernel is None:
            return
        pid, folder = kernel.pid, kernel.folder
        kernel.close()
        self.expect(pid is None or not os.path.exists(f"/proc/{pid}"), f"the process {pid} is there behind close")
        self.expect(not folder.exists(), f"the folder {folder} is there behind close")

    def keep(self):
        """Make the variable that is this session's own."""
        self.expect(self.run(f"mine = given + {self._mark()!r}").ok, "a variable could not be made")

    def run(self, code, *, seconds=60.0, on_output=None, says=True, bare=False, words=()):
        """Run a cell that first prints its token; what comes back must be its own, and in time.

        Args:
            says: It comes to its first line, so the token must be in what was printed.
            bare: It prints none.
            words: Further tokens that belong to this cell.
        """
        token, heard = self.token("cell"), []

        def hear(stream, text):
            heard.append(text)
            if on_output:
                on_output(stream, text)

        began = time.monotonic()
        text = code if bare else f"print({token!r}, flush=True)\n{code}"
        execution = self.kernel.execute(text, seconds=seconds, on_output=hear)
        took = time.monotonic() - began
        self.tally.cell(self.kind, took, took - seconds)
        if execution.state_lost:
            self.tally.count("deaths")
        bound = seconds + SETTINGS.grace_seconds + self._margin
        self.expect(took < bound, f"ended after {took:.1f} s, its bound was {bound:.1f} s", execution)
        self.expect(execution.ok == (not execution.error), "`ok` and `error` disagree", execution)
        shown = [execution.stdout, execution.stderr, execution.result or "", execution.error, "".join(heard)]
        shown += [log.message for log in execution.logs] + [artifact.preview for artifact in execution.artifacts]
        for found in _TOKEN.findall("\n".join(shown)):
            own = found in (token, *words) or found.startswith(f"thread-{self.number}-")
            self.expect(own, f"MIXED OUTPUT: {found} among the output of {token}", execution)
        if says and not bare:
            self.expect(token in execution.stdout, f"its token {token} is not in stdout", execution)
        return execution

    def works(self, *, kept=True):
        """Check that the next cell runs with plugin, function and variables, its own one if that was promised."""
        word = self.token("cell")
        execution = self.run(f"(globals().get('mine'), given, double(21), ask({word!r}))", words=[word])
        mine = self.name + self._mark() if kept else None
        wanted = (mine, self.name, 42, self._answer(word))
        found = ast.literal_eval(execution.result or "None")
        self.expect(found == wanted, f"the next cell gave {found}, not {wanted}", execution)
        if not kept:
            self.keep()

    def token(self, what):
        """Give a word that nobody else prints."""
        with self._lock:
            self._made += 1
            return f"{what}-{self.number}-{self._made}-{self.random.getrandbits(32):08x};"

    def expect(self, so, otherwise, execution=None):
        """Raise if something is not so.

        Raises:
            Unexpected: with what came of the cell.
        """
        if not so:
            raise Unexpected(otherwise + (f": {_short(execution)}" if execution else ""))

    def later(self, seconds, do):
        """Have something done in a moment, by another thread; give that thread."""
        thread = threading.Timer(seconds, do)
        thread.start()
        return thread

    def kill(self):
        """Kill the kernel's process from outside, as the system does when memory is short."""
        if pid := self.kernel.pid:
            handle = os.pidfd_open(pid)
            try:
                if self.kernel.pid == pid:  # so the handle is that of no other process
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
            except ProcessLookupError:
                pass
            finally:
                os.close(handle)

    def _answer(self, word):
        if word == "fail":
            raise ValueError(f"{self.name} fails")
        return f"{self.name} heard {word}"

    def _mark(self):
        return f"#{self.number * 7919}"


def _short(execution):
    text = repr(execution)
    return text if len(text) < 1600 else f"{text[:800]} ... {text[-800:]}"
