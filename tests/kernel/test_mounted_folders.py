"""What a user mounts into the folder of a running kernel keeps its files, wherever code moves the place."""

import json
import os
import subprocess
import sys

import pytest

ALONE = ["unshare", "--user", "--map-root-user", "--mount"]
PROGRAM = """
import contextlib, json, subprocess, sys
from pathlib import Path
from tw_autogen.kernel.cell_journal import CellJournal
from tw_autogen.kernel.exchange_folder import HostExchange

folder, mounted, place = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
exchange, journal = HostExchange(folder), CellJournal(folder)
exchange.create(".table")[1].close()
journal.open()
subprocess.run(["mount", "--bind", mounted, folder / place], check=True)
made = True
try:
    exchange.create(".table")[1].close()
except OSError:
    made = False
exchange.sweep()
exchange.close()
journal.append({"code": "x = 1"})
CellJournal(folder).open()
print(json.dumps(made))
"""


def cannot_mount():
    try:
        return subprocess.run([*ALONE, "true"], capture_output=True, timeout=20, check=False).returncode != 0
    except OSError:
        return True


needs_mounts = pytest.mark.skipif(
    sys.platform != "linux" or cannot_mount(), reason="needs a namespace of its own in which to mount"
)


@needs_mounts
@pytest.mark.parametrize("place", [".tw-exchange", ".checkpoint"])
def test_nothing_is_written_or_removed_or_unlocked_where_something_is_mounted(place, tmp_path):
    folder, mounted = tmp_path / "work", tmp_path / "mine"
    folder.mkdir()
    mounted.mkdir()
    (folder / place).mkdir()
    names = ["variables", "cells.jsonl", "old.txt"] if place == ".tw-exchange" else ["variables", "old.txt"]
    for name in names:
        (mounted / name).write_text("mine")
        os.utime(mounted / name, (1.6e9, 1.6e9))
    mounted.chmod(0o755)

    ran = subprocess.run(
        [*ALONE, sys.executable, "-c", PROGRAM, folder, mounted, place], capture_output=True, text=True, check=False
    )

    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) is (place == ".checkpoint")
    assert {path.name: path.read_text() for path in mounted.iterdir()} == dict.fromkeys(names, "mine")
    assert mounted.stat().st_mode & 0o777 == 0o755


LINKED = """
import os, subprocess, sys
from pathlib import Path
from tw_autogen import open_session
from tw_autogen.code_writable_folders import writable_by_code
from tw_autogen.errors import ConfigError
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.named_folders import named_file
from tw_autogen.testing import ScriptedModel

folder, alias, private = map(Path, sys.argv[1:])
subprocess.run(["mount", "--bind", folder, alias], check=True)
kernel = LocalKernel(folder, settings=KernelSettings(allow_symlinks=True))
os.symlink(private, folder / "d")
for place in (folder, alias):
    for refused in (lambda: LocalKernel(place / "d"), lambda: named_file(place / "d" / "pay.csv")):
        try:
            print(refused())
        except (ConfigError, PermissionError):
            print("refused")
kernel.close()
kernel = LocalKernel(alias)
print("noted" if writable_by_code([str(folder / "server.py")]) else "not noted")
kernel.close()
try:
    open_session(ScriptedModel([]), folder=folder, settings={"kernel.write": [str(alias)]})
except ConfigError as error:
    print("refused" if "this session is kept in it" in str(error) else error)
"""


@needs_mounts
def test_a_link_in_a_kernels_folder_is_refused_by_every_name_of_that_folder(tmp_path):
    places = [tmp_path / name for name in ("work", "alias", "private")]
    for place in (*places, tmp_path / "home"):
        place.mkdir()
    (places[2] / "pay.csv").write_text("secret")

    ran = subprocess.run(
        [*ALONE, sys.executable, "-c", LINKED, *places],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env={**os.environ, "HOME": str(tmp_path / "home"), "XDG_STATE_HOME": str(tmp_path / "state")},
    )

    assert ran.stdout.split() == [*["refused"] * 4, "noted", "refused"], ran.stderr


RESTARTED = """
import os, subprocess, sys
from tw_autogen.errors import KernelStartError
from tw_autogen.kernel import KernelSettings, LocalKernel

folder, shared, disk, sandbox, *places = sys.argv[1:]
seen = f"import os; sorted(os.listdir({folder!r} + '/mnt') + os.listdir({shared!r} + '/mnt'))"
with LocalKernel(folder, settings=KernelSettings(write=(shared,), sandbox=sandbox, warm=0)) as kernel:
    def mount(when):
        for place in (one.removeprefix(when) for one in places if one.startswith(when)):
            command = ["umount", place[1:]] if place[0] == "-" else ["mount", "--bind", disk, place]
            subprocess.run(command, check=True)
    mount("first:")
    print(kernel.execute(seen, seconds=60).result)
    mount("then:")
    kernel.execute("import os; os._exit(0)", seconds=60)
    try:
        print(kernel.execute(seen, seconds=60).result)
    except KernelStartError as error:
        print(str(error).partition(":")[0])
"""
SEEN, HIDDEN = "['mine.txt']", "[]"
MOUNTED = {
    "in the folder": (["then:work/mnt"], "auto", (HIDDEN, "work/mnt")),
    "in a grant": (["then:shared/mnt"], "auto", (HIDDEN, "shared/mnt")),
    "deeper": (["then:work/mnt/deep"], "auto", ("['deep']", "work/mnt/deep")),
    "where code writes nothing": (["then:elsewhere"], "auto", (HIDDEN, HIDDEN)),
    "before the first cell": (["first:work/mnt"], "auto", (SEEN, SEEN)),
    "taken away again": (["then:work/mnt", "then:-work/mnt"], "auto", (HIDDEN, HIDDEN)),
    "taken away and back": (["first:work/mnt", "then:-work/mnt", "then:work/mnt"], "auto", (SEEN, SEEN)),
    "without a sandbox": (["then:work/mnt"], "off", (HIDDEN, SEEN)),
}


@needs_mounts
@pytest.mark.parametrize(("places", "sandbox", "wanted"), MOUNTED.values(), ids=MOUNTED)
def test_no_kernel_starts_again_where_something_was_mounted_since_the_first_start(places, sandbox, wanted, tmp_path):
    for one in ("work/mnt", "shared/mnt", "disk", "elsewhere", "home"):
        (tmp_path / one).mkdir(parents=True)
    if "then:work/mnt/deep" in places:
        (tmp_path / "work/mnt/deep").mkdir()
    (tmp_path / "disk/mine.txt").write_text("mine")
    for one in (tmp_path, *tmp_path.rglob("*/")):
        one.chmod(0o777)

    def at(place):
        when, _, path = place.rpartition(":")
        return f"{when}:{'-' * path.startswith('-')}{tmp_path / path.lstrip('-')}"

    ran = subprocess.run(
        [*ALONE, sys.executable, "-c", RESTARTED, *(tmp_path / one for one in ("work", "shared", "disk"))]
        + [sandbox, *map(at, places)],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env={**os.environ, "HOME": str(tmp_path / "home"), "XDG_STATE_HOME": str(tmp_path / "state")},
    )

    assert ran.stdout.splitlines() == [one if one[0] == "[" else str(tmp_path / one) for one in wanted], ran.stderr
