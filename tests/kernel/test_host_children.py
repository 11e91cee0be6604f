"""Python processes that the host starts outside a sandbox import nothing from a folder that code may write."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas
import pytest

import tw_autogen

PLANTED = [
    "IPython", "csv", "ipykernel", "json", "keyring", "numpy", "openpyxl", "pandas", "pip", "pyarrow", "resource",
    "sitecustomize", "socket", "sqlite3", "subprocess", "traitlets", "usercustomize", "zipfile", "zmq",
]  # fmt: skip
MODULE = """
import os
with open("/proc/self/status") as _file:
    _filtered = any(line.split() == ["Seccomp:", "2"] for line in _file)
try:
    with open(os.path.join({marks!r}, f"{{__name__}}-{{os.getpid()}}"), "w") as _file:
        _file.write(str(_filtered))
except OSError:
    pass
raise ImportError("planted")
"""
HOST = """
import json, os, sys
import jupyter_client.connect, jupyter_client.launcher, jupyter_client.session  # late imports of its own: another test
from pathlib import Path
from tw_autogen.errors import SandboxError
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.kernel.package_installer import Installer
from tw_autogen.kernel.pool import KernelPool
from tw_autogen.kernel.sandbox_levels import available_level
from tw_autogen.kernel.seatbelt import interpreter_folders
from tw_autogen.sqlite_reader import read_sqlite

written, marks, files, planted, module = map(json.loads, sys.argv[1:])
for name in planted:
    Path(written, f"{name}.py").write_text(module.format(marks=marks))

def rows():
    with read_sqlite(Path(files, "a.db"), "select 7", name="a", max_rows=9, max_value_bytes=99,
                     memory_bytes=1 << 28, seconds=60) as found:
        return str(found.fetch_batch(1))

def install():
    settings = KernelSettings(install="allow")
    return Installer(settings, Path(files, "session"))(["tw-nothing-there"])["text"]

def cell(level, fork):
    settings = KernelSettings(sandbox=level, write=(marks,), preload=(), warm=0, fork=fork)
    with KernelPool() as pool:
        if fork:
            pool.prepare(settings)
            pool.wait(settings, 60)
        with LocalKernel(Path(files, f"session-{level}-{fork}"), settings=settings, pool=pool) as kernel:
            return kernel.execute("6 * 7", seconds=60).result

children = {
    "sqlite": rows,
    "pip": install,
    "interpreter": lambda: str(sys.prefix in str(interpreter_folders(sys.executable))),
}
for level in ("namespaces", "landlock", "bubblewrap"):  # of the last none is forked
    children[f"{level}, trial"] = lambda level=level: available_level(KernelSettings(sandbox=level))
    children[f"{level}, alone"] = lambda level=level: cell(level, False)
    if level != "bubblewrap":
        children[f"{level}, forked"] = lambda level=level: cell(level, True)
found = {}
for name, child in children.items():
    before = set(os.listdir(marks))
    try:
        said = child()
    except SandboxError:
        said = "skipped"
    except Exception as error:
        said = repr(error)
    bad = []
    for mark in sorted(set(os.listdir(marks)) - before):
        if not mark.endswith(f"-{os.getpid()}") and Path(marks, mark).read_text() != "True":
            bad.append(mark.partition("-")[0])
    found[name] = [said[:200], bad]
print(json.dumps(found))
"""
SAID = {
    "sqlite": "[(7,)]",
    "pip": "pip could not install tw-nothing-there:",
    "interpreter": "True",
    "trial": "",
    "alone": "42",
    "forked": "42",
}


def environment_of_its_own(folder, *entries):
    """Make an environment of this interpreter whose `.pth` file names entries of the path; return its program."""
    packages = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "project.pth").write_text("".join(f"{entry}\n" for entry in entries), encoding="utf-8")
    base = Path(sys._base_executable).resolve()
    (folder / "pyvenv.cfg").write_text(f"home = {base.parent}\n", encoding="utf-8")
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(base)
    return folder / "bin" / "python"


@pytest.mark.skipif(sys.platform != "linux", reason="looks at seccomp in /proc")
@pytest.mark.timeout(240)
def test_no_process_of_the_hosts_imports_what_code_has_planted(tmp_path):
    written, marks, files = (tmp_path / name for name in ("written", "marks", "files"))
    for one in (written, marks, files):
        one.mkdir()
        one.chmod(0o777)
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(parent.stat().st_mode | 0o755)
    (files / "a.db").touch()
    packages, root = Path(pandas.__file__).parents[1], Path(tw_autogen.__file__).parents[1]
    python = environment_of_its_own(tmp_path / "env", packages, root, written)
    script = written / "run.py"
    script.write_text(HOST, encoding="utf-8")
    arguments = [json.dumps(one) for one in (str(written), str(marks), str(files), PLANTED, MODULE)]
    environment = {**os.environ, "PYTHONPATH": str(written), "PIP_NO_INDEX": "1"}

    done = subprocess.run(
        [python, script, *arguments], env=environment, capture_output=True, text=True, timeout=200, check=False
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert {name: bad for name, (_, bad) in found.items() if bad} == {}
    said = {name: words for name, (words, _) in found.items() if words != "skipped"}
    assert {name: words for name, words in said.items() if SAID[name.split(", ")[-1]] not in words} == {}


LIBRARIES = """
import sqlite3, sys, os
from pathlib import Path
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.sqlite_reader import read_sqlite
maps = Path("/proc/self/maps").read_text()
for path in {line.split()[-1] for line in maps.splitlines() if ".so" in line}:
    Path(os.path.basename(path)).write_text("planted")
connection = sqlite3.connect(sys.argv[1])
connection.execute("create table t (x)")
connection.close()
with read_sqlite(Path(sys.argv[1]), "select 7", name="a", max_rows=9, max_value_bytes=99,
                 memory_bytes=1 << 28, seconds=60) as found:
    print(found.fetch_batch(1))
with LocalKernel(sys.argv[2], settings=KernelSettings(fork=False, warm=0)) as kernel:
    print(kernel.execute("6 * 7", seconds=60).result)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="an empty part of LD_LIBRARY_PATH is Linux's")
def test_no_process_of_the_hosts_loads_libraries_from_the_current_folder(tmp_path):
    (tmp_path / "written").mkdir()
    environment = {**os.environ, "LD_LIBRARY_PATH": ":/usr/lib/none"}
    words = [sys.executable, "-c", LIBRARIES, str(tmp_path / "a.db"), str(tmp_path / "session")]

    done = subprocess.run(
        words, env=environment, cwd=tmp_path / "written", capture_output=True, text=True, timeout=200, check=False
    )

    assert done.stdout.split() == ["[(7,)]", "42"], done.stderr
