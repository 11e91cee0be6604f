"""Variables come back: in a new host behind one that was killed, and in a living one whose kernel has died."""

import contextlib
import json
import os
import pickle
import shutil
import signal
import stat
import struct
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from tw_autogen.errors import ConfigError
from tw_autogen.kernel import KernelSettings, Loadable, LocalKernel
from tw_autogen.kernel.cell_journal import CellJournal
from tw_autogen.kernel.guest.checkpoint import FOLDER
from tw_autogen.kernel.guest.codec import Codec
from tw_autogen.kernel.guest.json_size import MAX_BYTES, estimate_parsed_bytes
from tw_autogen.kernel.guest.output_capture import ClippedBuffer
from tw_autogen.kernel.launcher.landlock import version
from tw_autogen.kernel.pending_request import RawResult
from tw_autogen.kernel.recovery import resume
from tw_autogen.trust_store import user_key

ALWAYS = KernelSettings(checkpoint_seconds=0.001)
ONCE = KernelSettings(checkpoint_seconds=1000.0)
PLUGIN = "from tw_autogen.plugin import register_plugin\n\n@register_plugin\ndef double(x):\n    return 2 * x\n"
HOST = """
import sys, time
from tw_autogen.kernel import KernelSettings, Loadable, LocalKernel
kernel = LocalKernel(sys.argv[1], settings=KernelSettings(checkpoint_seconds={every}), resume=True)
def run(code):
    execution = kernel.execute(code, seconds=60)
    assert execution.ok, execution.error
{body}
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture
def killed_host(tmp_path):
    """Run a host in a process of its own, and kill it with SIGKILL when it has done its work; give its folder."""

    def killed_host(body, *, every=0.0, copies=0):
        source = HOST.format(every=every, body=textwrap.dedent(body))
        folder = tmp_path / "session"
        with subprocess.Popen([sys.executable, "-c", source, str(folder)], stdout=subprocess.PIPE, text=True) as host:
            try:
                assert host.stdout.readline() == "ready\n"
                await_copy(folder, copies)
            finally:
                host.send_signal(signal.SIGKILL)
        return folder

    return killed_host


def await_copy(folder, position):
    """Wait until a checkpoint covers that many lines of the journal."""
    deadline = time.monotonic() + 120  # none is written at all
    while position and header(folder).get("position", 0) < position:
        assert time.monotonic() < deadline, "no checkpoint was written"
        time.sleep(0.02)


def header(folder):
    try:
        data = (folder / ".checkpoint" / "variables").read_bytes()
    except FileNotFoundError:
        return {}
    size = struct.unpack(">Q", data[-8:])[0]
    return json.loads(data[-8 - size : -8])


def said(execution):
    return "\n".join(f"{log.level}: {log.message}" for log in execution.logs if log.tag == "resume")


RICH = """
run('''
import collections, dataclasses, enum
import numpy as np
import pandas as pd
from math import sqrt

K = 5

@dataclasses.dataclass
class Point:
    x: int
    def moved(self):
        return K + self.x

class Special(Point):
    pass

class Colour(enum.Enum):
    RED = 1

Pair = collections.namedtuple("Pair", "a b")
point, pair, colour = Special(1), Pair(1, [2]), Colour.RED
frame = pd.DataFrame({"a": [1, 2], "s": ["x", None]}, index=["p", "q"])
array = np.arange(3)
shared = [1]
alias = shared

def add(n, by=[K]):
    return by[0] + n + round(np.sqrt(4))

def counter():
    count = 0
    def step():
        nonlocal count
        count += 1
        return count
    return step

step = counter()
functions = [add]
''')
run("import time; step(); time.sleep(1)")
"""
SEEN = (
    "(point.moved(), isinstance(point, Point), Special(3) == Special(3), pair, colour is Colour.RED, frame.to_dict(), "
    "array.tolist(), alias is shared, add(1), step(), functions[0](1), sqrt(9), pd.Series([1]).sum())"
)
NONE = "nan" if int(pd.__version__.partition(".")[0]) >= 3 else "None"  # in a column of text
VALUE = (
    "(6,\n True,\n True,\n Pair(a=1, b=[2]),\n True,\n {'a': {'p': 1, 'q': 2}, 's': {'p': 'x', 'q': "
    + NONE
    + "}},\n [0, 1, 2],"
    "\n True,\n 8,\n 2,\n 8,\n 3.0,\n np.int64(1))"
)


@pytest.mark.parametrize(
    ("every", "copies", "source"),
    [
        (0.0, 0, "from 2 cells run again:"),
        (0.001, 2, "from a checkpoint (cells 1 to 2):"),
        (1000.0, 1, "from a checkpoint (cells 1 to 1) and 1 cell run again:"),
    ],
    ids=["cells", "copy", "both"],
)
def test_variables_of_a_killed_host_come_back_in_another(killed_host, every, copies, source):
    folder = killed_host(RICH, every=every, copies=copies)

    with LocalKernel(folder, resume=True) as kernel:
        assert "point" in [variable.name for variable in kernel.variables()]
        execution = kernel.execute(SEEN, seconds=30)

        assert execution.result == VALUE, execution.error
        assert source in said(execution)
        assert "warning" not in said(execution)
        assert "resume" not in [log.tag for log in kernel.execute("1", seconds=30).logs]


def test_it_comes_back_a_second_and_a_third_time(killed_host):
    folder = killed_host("run('a = 1'); run('b = a + 1')")
    for more in ("c = b + 1", "d = c + 1"):
        with LocalKernel(folder, resume=True) as kernel:
            assert kernel.execute(more, seconds=30).ok

    with LocalKernel(folder, resume=True) as kernel:
        assert kernel.execute("(a, b, c, d)", seconds=30).result == "(1, 2, 3, 4)"


def test_a_last_line_that_was_cut_off_is_named_and_the_next_ones_are_read(killed_host):
    folder = killed_host("run('a = 1'); run('b = 2')")
    path = folder / ".checkpoint" / "cells.jsonl"
    path.write_bytes(path.read_bytes()[:-20])

    with LocalKernel(folder, resume=True) as kernel:
        execution = kernel.execute("c = a + 2", seconds=30)
        assert execution.ok
        assert "line 2 of the journal: it can't be read" in said(execution)
    with LocalKernel(folder, resume=True) as kernel:
        execution = kernel.execute("(a, c, 'b' in globals())", seconds=30)
        assert execution.result == "(1, 3, False)"


def test_what_did_not_come_back_is_named(killed_host):
    folder = killed_host(
        "run('kept = 1; lines = (n for n in range(3)); import time; time.sleep(1)')", every=1, copies=1
    )

    with LocalKernel(folder, resume=True) as kernel:
        execution = kernel.execute("kept", seconds=30)

    assert execution.result == "1"
    assert "warning: lines is not in the checkpoint: TypeError: cannot pickle 'generator' object" in said(execution)
    assert "warning: lines did not come back" in said(execution)


def test_a_cell_that_called_the_host_is_not_run_again(killed_host):
    folder = killed_host("""
        calls = []
        kernel.serve("send", lambda text: calls.append(text))
        run("before = 1")
        run("send('a letter'); sent = True")
        run("after = 2")
        """)
    letters = []

    with LocalKernel(folder, resume=True) as kernel:
        kernel.serve("send", letters.append)
        execution = kernel.execute("(before, after, 'sent' in globals())", seconds=30)

    assert execution.result == "(1, 2, False)"
    assert letters == []
    assert "line 2 of the journal: this cell called functions of the host" in said(execution)
    assert "sent did not come back" in said(execution)


def test_behind_a_cell_that_called_the_host_a_copy_is_written_at_once(killed_host):
    folder = killed_host(
        """
        kernel.serve("send", lambda text: None)
        run("before = 1")
        run("send('a letter'); sent = True")
        """,
        every=1000.0,
        copies=2,
    )

    with LocalKernel(folder, resume=True) as kernel:
        assert kernel.execute("(before, sent)", seconds=30).result == "(1, True)"


def test_a_cell_that_fails_when_it_is_run_again_is_named_and_the_others_run(killed_host):
    folder = killed_host("""
        run("import os\\nopen('once', 'x').close()\\nmade = 1")
        run("other = 2")
        """)

    with LocalKernel(folder, resume=True) as kernel:
        execution = kernel.execute("(other, 'made' in globals())", seconds=30)

    assert execution.result == "(2, False)"
    assert "line 1 of the journal: this cell failed when it was run again" in said(execution)
    assert "FileExistsError" in said(execution)


def test_plugins_and_put_values_are_there_for_cells_that_are_run_again(killed_host):
    folder = killed_host(f"""
        kernel.load(Loadable("double", {PLUGIN!r}))
        kernel.put("given", [1, (2,)])
        run("twice = double(given[0])")
        """)

    with LocalKernel(folder, resume=True) as kernel:
        kernel.load(Loadable("double", PLUGIN))
        assert kernel.execute("(given, twice)", seconds=30).result == "([1, (2,)], 2)"
        assert kernel.get("given") == [1, (2,)]


def test_without_resume_a_folder_begins_afresh(killed_host):
    folder = killed_host("run('a = 1')")
    with LocalKernel(folder, settings=ALWAYS) as kernel:
        assert kernel.execute("'a' in globals()", seconds=30).result == "False"
    with LocalKernel(folder, resume=True) as kernel:
        assert kernel.execute("'a' in globals()", seconds=30).result == "False"


def test_a_restart_forgets(tmp_path):
    with LocalKernel(tmp_path, settings=ALWAYS) as kernel:
        kernel.execute("a = 1", seconds=30)
        kernel.restart()
        assert kernel.execute("'a' in globals()", seconds=30).result == "False"


def landlock():
    with contextlib.suppress(OSError):
        return version() > 0
    return False


BEHIND_LANDLOCK = pytest.param(
    KernelSettings(checkpoint_seconds=0.001, sandbox="landlock"),
    marks=pytest.mark.skipif(not landlock(), reason="this system has no Landlock"),
)


@pytest.mark.parametrize("settings", [ALWAYS, ONCE, BEHIND_LANDLOCK], ids=["copy", "cells", "landlock"])
def test_a_kernel_that_dies_in_a_living_host_gets_its_variables_back(tmp_path, settings):
    with LocalKernel(tmp_path, settings=settings) as kernel:
        kernel.execute("a = [1]; import time; time.sleep(1)", seconds=30)
        await_copy(tmp_path, 1)
        kernel.execute("a.append(2)", seconds=30)
        died = kernel.execute("a.append(3)\nimport os\nos._exit(3)", seconds=30)
        assert died.state_lost
        assert "the last checkpoint and the journal of cells bring back" in died.error

        execution = kernel.execute("a", seconds=30)

        assert execution.result == "[1, 2]"
        assert "info: variables came back from a checkpoint (cells 1 to " in said(execution)


def test_what_came_back_is_listed_before_the_first_cell(tmp_path):
    with LocalKernel(tmp_path, settings=ALWAYS, resume=True) as kernel:
        kernel.execute("a = 1", seconds=30)
        kernel.execute("import os\nos._exit(3)", seconds=30)
        assert [variable.name for variable in kernel.variables()] == ["a"]
    with LocalKernel(tmp_path, resume=True) as kernel:
        kernel.load(Loadable("double", PLUGIN))
        assert [variable.name for variable in kernel.variables()] == ["a"]


@pytest.mark.parametrize("first", ["", "a = 1"], ids=["alone", "after another cell"])
@pytest.mark.parametrize("cell", ["b = [2]\n1 / 0", "b = [2]\nwhile True: pass"], ids=["failed", "stopped"])
def test_what_a_cell_has_left_that_did_not_end_well_comes_back(tmp_path, first, cell):
    with LocalKernel(tmp_path, settings=ONCE) as kernel:
        if first:
            kernel.execute(first, seconds=30)
        kernel.execute(cell, seconds=1)
        assert "b" in [variable.name for variable in kernel.variables()]
    with LocalKernel(tmp_path, resume=True) as kernel:
        execution = kernel.execute("b", seconds=30)

        assert execution.result == "[2]"
        assert "warning" not in said(execution)


def test_a_cell_that_did_not_end_well_is_not_run_again_and_what_it_left_is_named(tmp_path):
    with LocalKernel(tmp_path, settings=ONCE) as kernel:
        kernel.execute("a = 1", seconds=30)
        kernel.execute("b = [2]\n1 / 0", seconds=30)
        kernel.execute("import os\nos._exit(3)", seconds=30)
        execution = kernel.execute("a", seconds=30)

    assert execution.result == "1"
    assert "warning: b did not come back" in said(execution)


def test_without_checkpoints_a_dead_kernel_loses_its_variables(tmp_path):
    with LocalKernel(tmp_path) as kernel:
        kernel.execute("a = 1", seconds=30)
        assert "All variables are lost; the next cell gets a fresh kernel with plugins loaded." in (
            kernel.execute("import os\nos._exit(3)", seconds=30).error
        )
        assert kernel.execute("'a' in globals()", seconds=30).result == "False"
        assert not (tmp_path / ".checkpoint").exists()


SLOW = """
import time
class Slow:
    def __getstate__(self):
        time.sleep({seconds})
        return {{}}
slow = Slow()
"""


def test_nobody_waits_for_a_copy_that_is_being_written_and_an_interrupt_does_not_end_it(tmp_path):
    with LocalKernel(tmp_path, settings=ALWAYS) as kernel:
        kernel.execute("small = 1", seconds=30)
        kernel.execute(SLOW.format(seconds=4), seconds=30)
        started = time.monotonic()
        kernel.execute("2", seconds=30)
        assert not kernel.execute("while True: pass", seconds=0.2).ok
        assert time.monotonic() - started < 3.5
        await_copy(tmp_path, 2)


def test_a_copy_that_takes_too_long_is_given_up_and_the_one_before_stays(tmp_path):
    settings = KernelSettings(checkpoint_seconds=0.001, load_seconds=2.0)
    with LocalKernel(tmp_path, settings=settings) as kernel:
        kernel.execute("small = 1; import time; time.sleep(1)", seconds=30)
        await_copy(tmp_path, 1)
        kernel.execute(SLOW.format(seconds=60), seconds=30)
        time.sleep(1.5)
        left = kernel.execute(
            "import os\nprint(os.listdir('.checkpoint'), os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT))", seconds=30
        )
        assert "si_status=14" in left.stdout, left.error
        assert header(tmp_path)["position"] == 1
        kernel.execute("import os\nos._exit(3)", seconds=30)
        assert kernel.execute("(small, type(slow).__name__)", seconds=60).result == "(1, 'Slow')"


def test_what_is_too_large_is_left_out_and_named(tmp_path):
    settings = KernelSettings(checkpoint_seconds=0.001, checkpoint_mb=8)
    with LocalKernel(tmp_path, settings=settings) as kernel:
        kernel.execute(
            "import numpy as np, time\nlarge, small = np.zeros(2_000_000), np.ones(10)\ntime.sleep(1)", seconds=30
        )
        await_copy(tmp_path, 1)
        kernel.execute("import os\nos._exit(3)", seconds=30)
        execution = kernel.execute("small.sum()", seconds=30)

    assert execution.result == "np.float64(10.0)"
    assert "large is not in the checkpoint: it takes more than 8 MB" in said(execution)


def test_classes_that_can_not_be_made_again_are_named_and_spoil_nothing_else(tmp_path):
    with LocalKernel(tmp_path, settings=ALWAYS) as kernel:
        kernel.execute("%%time\nclass Timed:\n    n = 1\nt = Timed()", seconds=30)
        kernel.execute("exec('class Hidden: pass')\nh, kept = Hidden(), [1]\nimport time\ntime.sleep(1)", seconds=30)
        await_copy(tmp_path, 2)
        kernel.execute("import os\nos._exit(3)", seconds=30)
        execution = kernel.execute("(t.n, kept, 'h' in globals())", seconds=30)

    assert execution.result == "(1, [1], False)"
    assert "h is not in the checkpoint: PicklingError: no statement at the top of a cell made the class Hidden" in (
        said(execution)
    )
    assert "h did not come back" in said(execution)


BACK = {
    "dataclass": (
        "from dataclasses import dataclass, field\n"
        "@dataclass\nclass P:\n    x: list = field(default_factory=list)\np = P([3])",
        "(p, isinstance(p, P))",
        "(P(x=[3]), True)",
    ),
    "named tuple": ("from typing import NamedTuple\nclass P(NamedTuple):\n    x: int\np = P(1)", "p", "P(x=1)"),
    "annotation": (
        "from typing import List, Optional\n"
        "class P:\n    def fit(self, n: Optional[List[int]] = None):\n        return 7\np = P()",
        "p.fit()",
        "7",
    ),
    "class body": (
        "LIMITS = {'a': 1}\nclass A:\n    most = LIMITS['a']\nclass B(A):\n    all = LIMITS\nb, same = B(), LIMITS",
        "(b.most, b.all, isinstance(b, B), same is LIMITS)",
        "(1, {'a': 1}, True, True)",
    ),
    "cache": (
        "import functools\n@functools.lru_cache\ndef f(n):\n    return n + 1\nheld = [f]",
        "(f(1), held[0] is f)",
        "(2, True)",
    ),
    "type variable": ("from typing import TypeVar\nT = TypeVar('T')\nheld = {'t': T}", "held['t'] is T", "True"),
    "a name that is a number": ("globals()[2020] = 1.5\nn = 1", "n", "1"),
    "lambda": ("f = lambda n: n + 1\nheld = [f]", "(f(1), held[0](1))", "(2, 2)"),
}


@pytest.mark.parametrize(("cell", "seen", "value"), BACK.values(), ids=BACK)
def test_what_a_cell_made_comes_back_from_a_copy_with_all_other_variables(tmp_path, cell, seen, value):
    with LocalKernel(tmp_path, settings=ONCE) as kernel:
        kernel.serve("load", lambda: [1, 2])  # a cell that called the host is never run again
        kernel.execute(f"table = load()\n{cell}", seconds=30)
    with LocalKernel(tmp_path, resume=True) as kernel:
        execution = kernel.execute(f"(table, {seen})", seconds=30)

    assert execution.result == f"([1, 2], {value})", execution.error
    assert "warning" not in said(execution)


def test_what_cells_have_set_that_is_no_variable_is_named(tmp_path):
    with LocalKernel(tmp_path, settings=ONCE) as kernel:
        kernel.serve("load", lambda: [1, 2])
        kernel.execute("import os, random\ntable = load()\nos.makedirs('sub')\nos.chdir('sub')", seconds=30)
        kernel.execute("random.seed(5); random.seed(6); load()", seconds=30)
    with LocalKernel(tmp_path, resume=True) as kernel:
        execution = kernel.execute("table", seconds=30)

    assert execution.result == "[1, 2]"
    assert "warning: what cells set by os.chdir, random.seed did not come back: it is no variable" in said(execution)


GOES = """
import os, sys, time
os.mkdir("lib")
with open("lib/own.py", "w") as file:
    file.write("def double(n): return 2 * n")
sys.path.append("lib")
import own
from own import double

time.of_this_kernel = 1
class Gone(dict):
    began = time.of_this_kernel
    def name(self):
        return "gone"
class Stays:
    def __init__(self, held):
        self.held = held
gone, name, held = [Gone(a=1)], Gone().name, Stays(double)
stays = Stays([1])
table = load()
"""


def test_what_can_not_come_back_from_a_copy_is_named_and_all_else_comes(tmp_path):
    with LocalKernel(tmp_path, settings=ONCE) as kernel:
        kernel.serve("load", lambda: [1, 2])
        made = kernel.execute(GOES, seconds=30)
        assert made.ok, made.error
    with LocalKernel(tmp_path, resume=True) as kernel:
        names = "('own', 'double', 'Gone', 'gone', 'name', 'held')"
        execution = kernel.execute(f"(table, stays.held, [one for one in {names} if one in globals()])", seconds=30)

    assert execution.result == "([1, 2], [1], [])", execution.error
    for line in (
        "own is not in the checkpoint: it holds own, which is not there",
        "held is not in the checkpoint: it holds double, which is not there",
        "gone is not in the checkpoint: it holds Gone, which is not there",
        "Gone is not in the checkpoint: AttributeError: module 'time' has no attribute 'of_this_kernel'",
        "name did not come back",
    ):
        assert line in said(execution)


class Evil:
    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


def test_a_tampered_copy_can_do_no_more_than_a_cell(tmp_path):
    folder, outside = tmp_path / "session", tmp_path / "outside"
    outside.mkdir()
    with LocalKernel(folder, settings=ALWAYS) as kernel:
        kernel.execute("a = 1; import time; time.sleep(1)", seconds=30)
        await_copy(folder, 1)
    last = json.dumps({**header(folder), "left": "?", "seconds": 0}).encode()
    evil = pickle.dumps({"x": Evil(f"touch {outside}/by-pickle; touch ran-inside")})
    (folder / ".checkpoint" / "variables").write_bytes(evil + pickle.dumps({}) + last + struct.pack(">Q", len(last)))

    with LocalKernel(folder, resume=True, trust=True) as kernel:
        execution = kernel.execute("x", seconds=30)

    assert (folder / "ran-inside").exists(), execution
    assert list(outside.iterdir()) == []


def forged_copy(folder):
    """Write a copy of variables as code of another kernel could, which may write to the folder."""
    last = json.dumps({"position": 9, "python": sys.version_info[:2], "seconds": 0, "left": [], "classes": []}).encode()
    evil = pickle.dumps({"x": Evil("touch forged")})
    (folder / FOLDER / "variables").write_bytes(evil + pickle.dumps({}) + last + struct.pack(">Q", len(last)))


def forged_seal(folder):
    """Change one byte of a copy of variables, before its seal."""
    path = folder / FOLDER / "variables"
    path.write_bytes(path.read_bytes().replace(b'"left": []', b'"left":[] '))


@pytest.mark.parametrize("forge", [forged_copy, forged_seal])
def test_a_copy_that_this_kernel_did_not_write_counts_as_missing_and_the_cells_are_run_again(tmp_path, forge):
    with LocalKernel(tmp_path, settings=ONCE) as kernel:
        kernel.execute("a = 1; import time; time.sleep(1)", seconds=30)
    forge(tmp_path)

    with LocalKernel(tmp_path, settings=ONCE, resume=True) as kernel:
        execution = kernel.execute("(a, 'x' in globals())", seconds=30)

    assert execution.result == "(1, False)"
    assert not (tmp_path / "forged").exists()
    assert said(execution).count("no kernel of this user has written it in this folder") == 1
    with LocalKernel(tmp_path, resume=True) as kernel:
        assert "from a checkpoint" in said(kernel.execute("a", seconds=30))


def another_line(path):
    path.write_bytes(path.read_bytes() + b'{"code": "open(\'forged\', \'w\')", "seconds": 0}\n')


def another_first_line(path):
    path.write_bytes(b'{"code": "open(\'forged\', \'w\')", "seconds": 0}\n' + path.read_bytes())


def a_changed_line(path):
    path.write_bytes(path.read_bytes().replace(b"'a': 1", b"'a': 2"))


def lines_of_another_folder(path):
    with LocalKernel(path.parent.parent.parent / "other", settings=ONCE) as kernel:
        kernel.execute("open('forged', 'w')", seconds=30)
    path.write_bytes((path.parent.parent.parent / "other" / FOLDER / path.name).read_bytes())


@pytest.mark.parametrize("forge", [another_line, another_first_line, a_changed_line, lines_of_another_folder])
def test_cells_that_somebody_else_has_written_count_as_missing_until_they_are_trusted(tmp_path, forge, caplog):
    folder = tmp_path / "session"
    with LocalKernel(folder, settings=ONCE) as kernel:
        kernel.execute("a = {'a': 1}", seconds=30)
    forge(folder / FOLDER / "cells.jsonl")

    with LocalKernel(folder, settings=ONCE, resume=True) as kernel:
        assert kernel.variables() == ()
    assert [record.message.partition(":")[0] for record in caplog.records] == [str(folder)]
    with LocalKernel(folder, settings=ONCE, resume=True, trust=True) as kernel:
        assert kernel.variables() or forge is lines_of_another_folder
    (folder / "forged").unlink(missing_ok=True)
    with LocalKernel(folder, settings=ONCE, resume=True) as kernel:
        execution = kernel.execute("b = 3; 'a' in globals()", seconds=30)
        assert execution.result == "False"
        assert said(execution).startswith(f"warning: {folder}: saved variables and cells do not come back")
        assert (folder / ".checkpoint.old" / "cells.jsonl").exists()
    assert not (folder / "forged").exists()
    with LocalKernel(folder, settings=ONCE, resume=True) as kernel:
        assert kernel.execute("b", seconds=30).result == "3"


@pytest.mark.parametrize("own", [True, False], ids=["own", "forged"])
def test_variables_come_back_in_a_copy_of_a_folder_that_is_adopted(tmp_path, own):
    first, copy = tmp_path / "first", tmp_path / "copy"
    with LocalKernel(first, settings=ONCE) as kernel:
        kernel.serve("send", lambda text: None)
        kernel.execute("send('a letter'); sent = 1", seconds=30)
    if not own:
        forged_copy(first)
    shutil.copytree(first, copy)
    LocalKernel.adopt(copy, first)

    with LocalKernel(copy, resume=True) as kernel:
        assert [variable.name for variable in kernel.variables()] == ["sent"] * own
    assert not (copy / "forged").exists()
    assert stat.S_IMODE((copy / FOLDER / "variables").stat().st_mode) == 0o600


def test_a_line_without_an_end_that_somebody_else_has_written_is_not_run(killed_host):
    folder = killed_host("run('a = 1')")
    with (folder / FOLDER / "cells.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"code": "open('forged', 'w')", "seconds": 0}))

    with LocalKernel(folder, resume=True) as kernel:
        assert kernel.execute("a", seconds=30).result == "1"
    assert not (folder / "forged").exists()


@pytest.mark.parametrize("code", ["shutil.rmtree('.checkpoint')", "open('.checkpoint/cells.jsonl', 'a').write('1')"])
def test_cells_behind_one_that_has_spoiled_the_journal_come_back(tmp_path, code):
    with LocalKernel(tmp_path, resume=True) as kernel:
        kernel.execute("a = 1", seconds=30)
        kernel.execute(f"import shutil; {code}", seconds=30)
        kernel.execute("b = 2", seconds=30)
    with LocalKernel(tmp_path, resume=True) as kernel:
        assert kernel.execute("b", seconds=30).result == "2"


def test_where_no_key_can_be_kept_variables_come_back_in_the_same_process(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert user_key() is None
    with LocalKernel(tmp_path, settings=ONCE) as kernel:
        kernel.execute("a = 1", seconds=30)
        kernel.execute("import os\nos._exit(3)", seconds=30)
        assert kernel.execute("a", seconds=30).result == "1"


def test_a_link_in_the_journals_place_leads_the_host_nowhere(tmp_path):
    folder, outside = tmp_path / "session", tmp_path / "secret"
    outside.write_text('{"code": "stolen = 1"}\n', encoding="utf-8")
    with LocalKernel(folder, settings=replace(ALWAYS, allow_symlinks=True)) as kernel:
        kernel.execute("a = 1", seconds=30)
        assert kernel.execute(
            "import os\nos.remove('.checkpoint/cells.jsonl')\n"
            f"os.symlink({str(outside)!r}, '.checkpoint/cells.jsonl')", seconds=30,
        ).ok  # fmt: skip
        assert kernel.execute("b = 2", seconds=30).ok
    with LocalKernel(folder, resume=True) as kernel:
        assert kernel.execute("'stolen' in globals()", seconds=30).result == "False"

    assert outside.read_text(encoding="utf-8") == '{"code": "stolen = 1"}\n'


def test_there_is_no_resuming_without_a_sandbox(tmp_path):
    with pytest.raises(ConfigError, match="no resuming without a sandbox"):
        LocalKernel(tmp_path, settings=KernelSettings(sandbox="off"), resume=True)


def test_all_lines_of_a_journal_together_take_bounded_memory(tmp_path):
    folder = tmp_path / FOLDER
    folder.mkdir()
    line = json.dumps({"cell": [{}] * 200_000}) + "\n"
    lines = 2 + MAX_BYTES // estimate_parsed_bytes(line)
    (folder / "cells.jsonl").write_text(line * lines + json.dumps({"cell": "1"}) + "\n")

    entries = CellJournal(tmp_path, trust=True).open()

    assert len(entries) == lines + 1
    assert entries[0]
    assert not entries[lines - 1]


FORGED = """
session = next(
    one for module in list(__import__("sys").modules.values())
    if (one := getattr(module, "__dict__", {}).get("bridge_of_this_kernel")) is not None
).session
"""


def test_a_line_that_would_not_be_read_is_not_written_and_the_next_ones_are(tmp_path):
    journal = CellJournal(tmp_path)
    journal.open()

    written = [
        journal.append({"put": name, "value": value})
        for name, value in {"first": 1, "long": "x" * (33 << 20), "many": [0] * 8_000_000, "last": 2}.items()
    ]

    assert written == [True, False, False, True]
    assert [entry["put"] for entry in CellJournal(tmp_path).open()] == ["first", "last"]


def test_a_variable_that_is_too_large_for_the_journal_comes_from_the_host_or_is_named_with_its_size(tmp_path):
    with LocalKernel(tmp_path, resume=True, settings=ONCE) as kernel:
        kernel.put("big", "a" * 34_000_000)
        kernel.execute("n = len(big)", seconds=60)
        kernel.execute("import os\nos._exit(3)", seconds=30)
        assert kernel.execute("(len(big), n)", seconds=60).result == "(34000000, 34000000)"
    (tmp_path / FOLDER / "variables").unlink(missing_ok=True)

    with LocalKernel(tmp_path, resume=True, settings=ONCE) as kernel:
        execution = kernel.execute("1", seconds=60)

    assert "'big', too large for the journal (34000002 bytes), was put in by the host" in said(execution)


@pytest.mark.parametrize("found", ["5", "[5, [], ['a']]", "{'a': 1}"])
def test_a_kernel_that_lies_about_what_came_back_breaks_nothing(tmp_path, found):
    with LocalKernel(tmp_path, settings=ONCE, resume=True) as kernel:
        assert kernel.execute(f"{FORGED}session.variables = lambda: {found}", seconds=60).ok
        kernel.execute("import os\nos._exit(3)", seconds=60)

        assert kernel.execute("1 + 1", seconds=60).result == "2"


class Kernel:
    """Stands for a kernel whose code has made its journal and what it says."""

    def __init__(self, variables):
        self._variables = variables

    def ask(self, op, **fields):
        return {"variables": self._variables} if op == "hello" else {}


def test_any_number_of_names_in_journal_and_kernel_takes_linear_time_and_is_told_in_bounded_words():
    names = [f"n{number}" for number in range(400_000)]
    began = time.monotonic()
    said = resume(Kernel([[f"v{number}", "int", "1"] for number in range(20_000)]), [{"variables": names}])

    assert time.monotonic() - began < 20
    assert len(said) == 501
    assert said[-1].message.endswith("more lines are left out")
    assert max(len(one.message) for one in resume(Kernel([]), [{"variables": ["x" * 1_000_000]}])) < 20_000


class TableKernel(Kernel):
    """Notes which tables are put and which cells run."""

    def __init__(self):
        super().__init__([])
        self.codec = Codec(None)
        self.did = []

    def ask(self, op, **fields):
        self.did += [fields["value"]] if op == "put" else []
        return super().ask(op, **fields)

    def start_cell(self, code, **options):
        self.did.append(code)
        return SimpleNamespace(wait=lambda: RawResult(ClippedBuffer(9), ClippedBuffer(9), reply={"status": "ok"}))


def cell(code):
    return {"code": code}


@pytest.mark.parametrize(
    ("entries", "values", "did"),
    [
        ([{"put": "t"}, cell("a")], {"t": 7}, [7, "a"]),
        ([{"put": "t"}, cell("a"), {"put": "t"}, cell("b")], {"t": 7}, [7, 7, "b"]),
        ([{"put": "t"}, cell("a"), {"put": "t", "value": 1}, cell("b")], {"t": 7}, [7, "a", 1, "b"]),
        ([{"put": "t"}, cell("a")], {}, ["a"]),
    ],
    ids=["once", "anew", "value", "later kernel"],
)
def test_cells_are_run_again_with_the_table_that_they_saw_or_not_at_all(entries, values, did):
    kernel = TableKernel()

    resume(kernel, entries, values=values)

    assert kernel.did == did


def test_what_the_host_has_put_comes_back_as_it_was_put_last(tmp_path):
    with LocalKernel(tmp_path, settings=ONCE) as kernel:
        rates = [1]
        kernel.put("rates", rates)
        kernel.restart()
        kernel.put("nested", [pd.DataFrame({"a": [1]})])
        kernel.put("t", pd.DataFrame({"a": [1]}))
        kernel.execute("x = 1", seconds=30)
        await_copy(tmp_path, 4)
        kernel.put("t", pd.DataFrame({"a": [2]}))
        rates.append(print)
        kernel.execute("import os\nos._exit(3)", seconds=30)
        execution = kernel.execute("(rates, len(nested), int(t.a.sum()))", seconds=30)

        assert execution.result == "([1], 1, 2)"
        assert "warning" not in said(execution)


def test_an_interrupt_while_variables_are_brought_back_loses_none(killed_host):
    folder = killed_host("run('a = 1')")
    answers = iter([KeyboardInterrupt, None])

    def rerun(codes):
        if answer := next(answers):
            raise answer
        return True

    with LocalKernel(folder, resume=True, rerun=rerun) as kernel:
        with pytest.raises(KeyboardInterrupt, match=r"^$"):
            kernel.execute("1", seconds=30)
        assert kernel.execute("a", seconds=30).result == "1"


def test_what_others_keep_in_a_folder_of_the_checkpoints_name_stays(tmp_path):
    (tmp_path / ".checkpoint").mkdir()
    (tmp_path / ".checkpoint" / "epoch10.pt").write_text("weeks of training")
    (tmp_path / ".checkpoint" / "cells.jsonl").write_text("{}\n")

    LocalKernel.forget(tmp_path)
    LocalKernel(tmp_path, settings=KernelSettings(checkpoint_seconds=30)).close()

    assert (tmp_path / ".checkpoint" / "epoch10.pt").read_text() == "weeks of training"
    assert not (tmp_path / ".checkpoint" / "cells.jsonl").exists()
