"""Commands touch what lies below the current folder by descriptor: seen from within Python, whatever module calls.

`tests/test_host_files.py` reads the source of this package; here libraries that it calls count as well.
"""

import json
import subprocess
import sys

import pytest

from tw_autogen.testing import codes, plans, replay_server

NOTED = r"""
import sys

sys.path.remove("")  # as for the installed command
import atexit, json, os

seen, here = set(), os.getcwd()
FOLDER_FD = {  # where an event has its `dir_fd`: the path of such a call is a name below an open folder
    "os.chmod": 2, "os.chown": 3, "os.link": 2, "os.mkdir": 2, "os.remove": 1, "os.rename": 2, "os.rmdir": 1,
    "os.symlink": 2, "os.utime": 3,
}
open_file = os.open


def note(event, path):
    path = os.fsdecode(path) if isinstance(path, (str, bytes, os.PathLike)) else "/"  # a descriptor is no path
    if os.path.join(here, path).startswith(here):
        seen.add((event, os.path.relpath(path, here)))


def hook(event, args):
    if event == "open" and args[1] is not None:  # os.open tells no mode, and not whether there is a `dir_fd`
        note("read" if set(args[1]) <= set("rbt") else "write", args[0])
    elif event in FOLDER_FD and args[FOLDER_FD[event]] in (-1, None):
        note(event, args[0])
    elif event in ("os.listdir", "os.scandir", "os.truncate", "sqlite3.connect", "shutil.rmtree", "shutil.copyfile"):
        for path in args[: 2 if event == "shutil.copyfile" else 1]:
            note(event, path)


def noted_open(path, flags, mode=0o777, *, dir_fd=None):
    if dir_fd is None and not (flags & os.O_DIRECTORY and flags & os.O_NOFOLLOW):
        note("write" if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC) else "read", path)
    return open_file(path, flags, mode, dir_fd=dir_fd)


os.supports_dir_fd.add(noted_open)
os.open = noted_open
sys.addaudithook(hook)
results = open_file(sys.argv.pop(), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
atexit.register(lambda: os.write(results, json.dumps(sorted(seen)).encode()))
"""
CODE = (
    "import os, pandas as pd\n"
    "table = pd.read_csv('a.csv')\ntable.to_csv('out.csv')\nos.makedirs('sub', exist_ok=True)\n"
    "open('sub/n.txt', 'w').write('x')\nprint(table.x.sum())"
)
ASKED = [plans("sum", to="CodeInterpreter"), codes(CODE), plans("The sum is 4.", to="User")]
SESSION = "{session}"
COMMANDS = [
    (["-p", "sum the file", "a.csv"], ASKED),
    (["-p", "once more", "a.csv", "-c", "--out", "saved"], ASKED),
    (["sessions", "list"], []),
    (["sessions", "show", SESSION], []),
    (["sessions", "export", SESSION, "x.ipynb"], []),
    (["sessions", "export", SESSION, "x.md"], []),
    (["sessions", "export", SESSION, "x.html"], []),
    (["sessions", "export", SESSION, "x.py"], []),
    (["sessions", "fork", SESSION], []),
    (["rerun", SESSION], []),
    (["example", "from", SESSION], []),
    (["index", "docs", "--out", "docs.sqlite"], []),
    (["plugins", "new", "--from", "functions.py:add"], []),
    (["plugins", "check", "./plugins"], []),
    (["demo"], []),
    (["sessions", "rm", SESSION], []),
    (["sessions", "prune", "--days", "0"], []),
]
HERE = {("os.listdir", ".")}  # whether the folder holds anything; and Python's look for the module of a named file
NAMED = {("read", "functions.py"), ("read", "plugins/add.py"), ("read", "plugins/add.yaml")}
EXAMPLES = (
    "",
    "/codeinterpreter_examples",
    "/planner_examples",
    "/examples/code_generator_examples",
    "/examples/planner_examples",
)
READ_BY_PATH = {  # what a command names, and what lies beside it; all else has no entry
    "-p sum the file a.csv": HERE,
    "-p once more a.csv -c --out saved": HERE,
    "plugins new --from functions.py:add": {*HERE, *NAMED, ("read", "__pycache__/functions.cpython-311.pyc")},
    "plugins check ./plugins": {*NAMED, *(("os.scandir", f"plugins{example}") for example in EXAMPLES)},
}


@pytest.fixture(scope="module")
def noted(tmp_path_factory):
    """What each command did by path below its folder: {command: [(event, path), …]}."""
    folder, home = tmp_path_factory.mktemp("folder"), tmp_path_factory.mktemp("home")
    (folder / "a.csv").write_text("x,y\n1,2\n3,4\n")
    (folder / "functions.py").write_text(
        'def add(a: int, b: int) -> int:\n    """Add two numbers."""\n    return a + b\n'
    )
    (folder / "docs").mkdir()
    (folder / "docs" / "rules.md").write_text("Goods can be sent back for 30 days.\n")
    found = {}
    for words, replies in COMMANDS:
        kept = sorted((folder / ".tw" / "sessions").glob("session-*"), key=lambda path: path.stat().st_mtime)
        args = [kept[0].name if word == SESSION else word for word in words]
        found[" ".join(words)] = _noted(args, replies, folder, home)
    return found


def _noted(args, replies, folder, home, program="from tw_autogen.cli import main\nmain()"):
    results = home / "seen.json"
    with replay_server(replies) as server:
        environ = {
            "HOME": str(home),
            "PATH": "/usr/bin:/bin",
            "OPENAI_BASE_URL": server.base_url,
            "OPENAI_API_KEY": "k",
        }
        ran = subprocess.run(
            [sys.executable, "-B", "-c", NOTED + program, *args, str(results)],
            cwd=folder, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    assert ran.returncode == 0, f"{args}: {ran.stdout}\n{ran.stderr}"
    return [tuple(load) for load in json.loads(results.read_text())]


@pytest.mark.parametrize("command", [" ".join(words) for words, _ in COMMANDS])
def test_nothing_below_the_current_folder_is_touched_by_path(noted, command):
    assert set(noted[command]) <= READ_BY_PATH.get(command, set())


def test_what_is_touched_by_path_is_seen(tmp_path):
    folder, home = tmp_path / "folder", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    program = """
import pathlib, shutil
os.mkdir('made')
pathlib.Path('made/a.txt').write_text('a')
shutil.copyfile('made/a.txt', here + '/b.txt')
os.rename('b.txt', 'c.txt')
os.close(os.open('c.txt', os.O_RDONLY))
os.close(os.open('c.txt', os.O_RDONLY, dir_fd=os.open('.', os.O_DIRECTORY | os.O_NOFOLLOW)))
os.remove('c.txt')
"""

    seen = _noted([], [], folder, home, program)

    assert set(seen) == {
        ("os.mkdir", "made"),
        ("write", "made/a.txt"),
        ("shutil.copyfile", "made/a.txt"),
        ("read", "made/a.txt"),
        ("shutil.copyfile", "b.txt"),
        ("write", "b.txt"),
        ("os.rename", "b.txt"),
        ("read", "c.txt"),
        ("os.remove", "c.txt"),
    }
