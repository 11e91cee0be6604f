"""What the host does in a folder that code can write to, against all that code can put there."""

import base64
import contextlib
import ctypes
import errno
import inspect
import io
import os
import shlex
import socket
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from pathlib import Path

import pytest

from tw_autogen.code_interpreter.cell_runner import snapshot
from tw_autogen.errors import ConfigError
from tw_autogen.events import CellRan, CellStarted
from tw_autogen.hosts.agent_files import bring_linked, named_files
from tw_autogen.kernel import Artifact, KernelSettings, LocalKernel
from tw_autogen.kernel.cell_journal import CellJournal
from tw_autogen.kernel.exchange_folder import HostExchange
from tw_autogen.kernel.file_transfer import FileTransfer
from tw_autogen.kernel.folder_ownership import USERS, FolderOwnership, hand_over
from tw_autogen.kernel.guest.checkpoint import FOLDER as JOURNAL_FOLDER
from tw_autogen.kernel.guest.exchange_folder import FOLDER
from tw_autogen.recall.documents import DocumentIndex
from tw_autogen.safe_folder import (
    KERNEL_USERS,
    SafeFolder,
    directory_calls,
    open_or_make_folder,
    read_unlinked,
    remove_folder,
)
from tw_autogen.scenario.check_files import file as check_file
from tw_autogen.scenario.html_report import PictureReader, _picture_data_url
from tw_autogen.session.notebook_export import notebook
from tw_autogen.session.request_inputs import place_inputs
from tw_autogen.session_layout import JOURNAL
from tw_autogen.shipped_folders import shipped_folder
from tw_autogen.testing import load_plugin

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither FIFOs nor dir_fd")
root_only = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root changes owners")
SECRET = b"SECRET of the host\n"
DEEP = 3000


@pytest.fixture
def outside(tmp_path):
    """A folder of the host's with a secret file, a picture and a database."""
    folder = tmp_path / "outside"
    folder.mkdir()
    for name in ("secret.txt", "secret.png", "secret.csv"):
        (folder / name).write_bytes(SECRET)
        (folder / name).chmod(0o600)
    with closing(sqlite3.connect(folder / "secret.db")) as connection, connection:
        connection.execute("CREATE TABLE t AS SELECT 'SECRET' AS v")
    return folder


@pytest.fixture
def inside(tmp_path):
    """A session's folder, beside its journal."""
    folder = tmp_path / "session" / "files"
    folder.mkdir(parents=True)
    (folder.parent / JOURNAL).write_text('{"seq": 0, "at": "", "event": "SessionOpened"}\n')
    return folder


def test_a_closed_folder_is_an_error_and_not_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "of").mkdir()
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "kept").write_text("canary")
    monkeypatch.chdir(tmp_path / "here")
    folder = SafeFolder(tmp_path / "of")
    folder.close()
    folder.close()

    for ask in (
        lambda: folder.read_file("kept", limit_bytes=99),
        lambda: folder.remove("kept"),
        folder.clear,
    ):
        with pytest.raises(OSError, match=r"."):
            ask()
    assert (tmp_path / "here" / "kept").read_text() == "canary"


def link(path, target):
    path.symlink_to(target)


def dangling_link(path, target):
    path.symlink_to(target.parent / "nowhere")


def fifo(path, target):
    os.mkfifo(path)


def unix_socket(path, target):
    here = os.open(path.parent, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{here}/{path.name}" if sys.platform == "linux" else str(path))
    finally:
        os.close(here)


def folder_instead(path, target):
    path.mkdir()


def foreign_hard_link(path, target):
    if os.geteuid() != 0:
        pytest.skip("only root has files of two users")
    os.chown(path.parent, USERS[0], USERS[0])
    os.link(target, path)


def link_as_parent(path, target):
    path.parent.rmdir()
    path.parent.symlink_to(target.parent)
    target.rename(target.with_name(path.name))


THINGS = [link, dangling_link, fifo, unix_socket, folder_instead, foreign_hard_link, link_as_parent]


def read_notebook(folder, name):
    artifact = {"path": str(folder / name), "name": "a"}
    ran = CellRan(1, True, None, "", "", "", [artifact], [], False, 0.1)
    found = notebook([CellStarted(1, "1"), ran]).cells[0].outputs[0].data
    return base64.b64decode(found.get("image/png", ""))


def read_sql(folder, name):
    spec = shipped_folder("plugins") / "sql_pull_data.yaml"
    with load_plugin(spec, folder, configurations={"database": name}) as pull:
        return pull("SELECT v FROM t")[0].to_csv().encode()


def read_link_of_agent(folder, name):
    return b"".join(copy.read_bytes() for copy in bring_linked(f"[x]({folder / name})", [folder], folder.parent)[1])


def read_given_of_another_session(folder, name):
    other = folder.parent / "other"
    other.mkdir()
    return place_inputs([folder / name], other, print)[0].read_bytes()


def read_transferred(folder, name):
    asked = {"what": "read", "file": name, "place": 0, "size": 100}
    return base64.b64decode(FileTransfer(folder, 1000).answer(asked))


def read_safely(folder, name):
    with SafeFolder(folder) as opened:
        return opened.read_file(name, limit_bytes=1 << 20)


def copy_out_safely(folder, name):
    with SafeFolder(folder) as opened:
        opened.copy_out(name, folder.parent / "copy")
    return (folder.parent / "copy").read_bytes()


def read_unlinked_path(folder, name):
    return read_unlinked(folder / name, limit_bytes=1 << 20)


READS = {
    "SafeFolder.read_file": (read_safely, "secret.txt"),
    "SafeFolder.copy_out": (copy_out_safely, "secret.txt"),
    "read_unlinked": (read_unlinked_path, "secret.txt"),
    "notebook": (read_notebook, "secret.png"),
    "report": (lambda folder, name: _picture_data_url(folder / name, PictureReader()).encode(), "secret.png"),
    "agent's link": (read_link_of_agent, "secret.txt"),
    "given file of another session": (read_given_of_another_session, "secret.csv"),
    "gateway transfer": (read_transferred, "secret.txt"),
    "sql_pull_data": (read_sql, "secret.db"),
    "scenario check": (
        lambda folder, name: "".join(check_file(folder, (name,), contains=("no such text",))).encode(), "secret.txt"
    ),
}  # fmt: skip


@pytest.mark.parametrize("thing", THINGS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("way", READS)
def test_no_way_of_reading_leads_to_a_file_of_the_hosts_or_blocks(way, thing, inside, outside):
    read, name = READS[way]
    (inside / "sub").mkdir()
    thing(inside / "sub" / "it", outside / name)
    renamed = (inside / "sub" / "it").with_suffix(Path(name).suffix)
    with contextlib.suppress(NotADirectoryError):
        os.rename(inside / "sub" / "it", renamed)

    try:
        found = read(inside, f"sub/it{Path(name).suffix}")
    except (OSError, ValueError, ConfigError, FileNotFoundError) as error:
        found = str(error).encode()

    assert b"SECRET" not in found
    assert base64.b64encode(SECRET)[:12] not in found


def write_exchange(folder):
    name, file = HostExchange(folder).create(".bin")
    with file:
        file.write(b"written")


def write_journal(folder):
    journal = CellJournal(folder)
    journal.open()
    journal.append({"cell": "written"})
    journal.set_aside()
    journal.clear()


def write_transferred(folder):
    data = base64.b64encode(b"written").decode()
    asked = {"what": "write", "file": "sub/it.txt", "place": 0, "data": data, "last": True}
    FileTransfer(folder, 1000).answer(asked)


def write_given(folder):
    source = folder.parent / "it.txt"
    source.write_bytes(b"written")
    place_inputs([source], folder, print)


def write_agents(folder):
    path, file = Artifact.open_new_file(folder, "sub/it.txt", "file")
    with file:
        file.write(b"written")


def write_safely(folder):
    with SafeFolder(folder) as opened:
        opened.copy_in(io.BytesIO(b"written"), "it.txt", mode=0o444)
        with opened.append_file("sub/it.txt") as file:
            file.write(b"written")


INSTEAD = [link, dangling_link, fifo, unix_socket, folder_instead]
WRITES = [write_exchange, write_journal, write_transferred, write_given, write_agents, write_safely]


@pytest.mark.parametrize(
    "thing", [link, dangling_link, fifo, unix_socket, folder_instead], ids=lambda one: one.__name__
)
@pytest.mark.parametrize("write", WRITES, ids=lambda one: one.__name__)
def test_no_way_of_writing_changes_a_file_of_the_hosts_or_blocks(write, thing, inside, outside):
    for name in (".tw-exchange", ".tw-resume", "sub", "it.txt"):
        thing(inside / name, outside if name != "it.txt" else outside / "secret.txt")

    with contextlib.suppress(OSError, ConfigError):
        write(inside)

    assert sorted(path.name for path in outside.iterdir()) == ["secret.csv", "secret.db", "secret.png", "secret.txt"]
    assert (outside / "secret.txt").read_bytes() == SECRET
    assert (outside / "secret.txt").stat().st_mode & 0o777 == 0o600


@pytest.fixture
def flipping(inside, outside):
    """A file and a link to a secret that exchange their names all the time, and a folder and a link to one."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "renameat2"):
        pytest.skip("no renameat2")
    (inside / "it.txt").write_bytes(b"harmless")
    (inside / "other").symlink_to(outside / "secret.txt")
    (inside / "sub").mkdir()
    (inside / "sub" / "secret.txt").write_bytes(b"harmless")
    (inside / "link").symlink_to(outside)
    pairs = [(b"it.txt", b"other"), (b"sub", b"link")]
    over = threading.Event()
    here = os.open(inside, os.O_RDONLY)

    def flip():
        while not over.is_set():
            for one, other in pairs:
                library.renameat2(here, one, here, other, 2)

    thread = threading.Thread(target=flip)
    thread.start()
    yield inside
    over.set()
    thread.join()
    os.close(here)


RACED = {
    "read": lambda folder: read_safely(folder, "it.txt"),
    "read below": lambda folder: read_safely(folder, "sub/secret.txt"),
    "copy out": lambda folder: copy_out_safely(folder, "it.txt"),
    "unlinked": lambda folder: read_unlinked_path(folder, "sub/secret.txt"),
    "agent's link": lambda folder: read_link_of_agent(folder, "it.txt"),
    "transfer": lambda folder: read_transferred(folder, "sub/secret.txt"),
    "index": lambda folder: b"".join(sorted({passage.text.encode() for passage in indexed(folder).passages})),
}


def indexed(folder):
    return DocumentIndex.build(folder, globs=["*.txt"])


@pytest.mark.parametrize("way", RACED)
def test_names_that_are_exchanged_all_the_time_lead_to_no_secret(way, flipping):
    for _ in range(150):
        with contextlib.suppress(OSError, ConfigError):
            assert RACED[way](flipping) in (b"harmless", b"")


def test_a_walk_never_leaves_a_folder_that_is_exchanged_all_the_time(flipping):
    for _ in range(100):
        with SafeFolder(flipping) as folder:
            for one in folder.walk():
                assert one.name.rpartition("/")[2] in ("it.txt", "other", "sub", "link", "secret.txt")
                assert not one.is_file or one.info.st_size == len(b"harmless")
        assert set(snapshot(flipping).values()) is not None


def test_what_is_exchanged_while_it_is_removed_is_the_only_thing_that_goes(flipping, outside):
    for _ in range(20):
        with contextlib.suppress(OSError), SafeFolder(flipping) as folder:
            folder.remove_tree("sub")

    assert (outside / "secret.txt").read_bytes() == SECRET


class Exchanging(io.BytesIO):
    """A source that exchanges the copy for a link while it is read."""

    def __init__(self, folder, target):
        super().__init__(b"x" * 100_000)
        self._folder, self._target = folder, target

    def read(self, *size):
        for path in self._folder.glob(".*.part"):
            path.rename(path.with_name("kept"))
            path.symlink_to(self._target)
        return super().read(*size)


def test_a_copy_that_code_exchanges_for_a_link_changes_no_mode_and_is_an_error(inside, outside):
    with SafeFolder(inside) as folder, pytest.raises(PermissionError, match="exchanged by code while it was copied"):
        folder.copy_in(Exchanging(inside, outside / "secret.txt"), "it.txt", mode=0o444)

    assert (outside / "secret.txt").stat().st_mode & 0o777 == 0o600


@pytest.fixture
def deep(inside):
    """A folder with so many levels that its deepest path is longer than the system allows."""
    here = os.open(inside, os.O_RDONLY)
    for _ in range(DEEP):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("file.txt", os.O_CREAT, dir_fd=here))
    os.close(here)
    yield inside
    remove_folder(inside)


def test_a_deep_folder_is_walked_with_few_descriptors_and_removed(deep):
    with SafeFolder(deep) as folder:
        names = []
        most = 0
        for one in folder.walk():
            names.append(one.name)
            if len(names) % 500 == 0 and os.path.isdir("/proc/self/fd"):
                most = max(most, len(os.listdir("/proc/self/fd")))
        before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
        assert len(names) == DEEP + 1
        assert names[-1] == "d/" * DEEP + "file.txt"
        assert most <= before + 40
    assert len(snapshot(deep)) == 1

    remove_folder(deep)

    assert not deep.exists()


def test_a_walk_does_not_go_on_below_names_of_endless_length(inside):
    name = "d" * 250
    here = os.open(inside, os.O_RDONLY)
    for _ in range(100):
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)

    with SafeFolder(inside) as folder:
        found = [one.name for one in folder.walk()]

    assert len(found) == 64
    assert len(found[-1]) > 16_000
    remove_folder(inside)
    assert not inside.exists()


def test_a_look_at_the_files_of_a_cell_ends_after_so_many_entries(inside):
    for number in range(20_100):
        (inside / f"b{number}").symlink_to("x")
    (inside / "z.txt").touch()

    assert snapshot(inside) == {}


@pytest.mark.parametrize("what", ["read", "write"])
def test_a_name_that_is_longer_than_paths_is_refused_at_once(inside, what):
    asked = {"what": what, "file": "a/" * 20_000 + "x", "place": 0, "size": 1, "data": "MQ==", "last": True}

    with pytest.raises(PermissionError, match="a name of 40001 characters"):
        FileTransfer(inside, 1000).answer(asked)


def test_the_hosts_files_of_an_exchange_have_names_that_code_can_not_know(inside):
    exchange = HostExchange(inside)
    names = set()
    for _ in range(20):
        name, file = exchange.create(".arrow")
        file.close()
        names.add(name)
        (inside / FOLDER / f"host-{os.getpid()}-{len(names) + 1}.arrow").mkdir()

    assert len(names) == 20
    assert all((inside / FOLDER / f"host-{os.getpid()}-{number}.arrow").is_dir() for number in range(2, 22))


@root_only
def test_a_deep_folder_is_handed_over_and_given_back(deep):
    tenants = FolderOwnership()
    tenants.acquire(deep, USERS[1])
    with SafeFolder(deep) as folder:
        assert {one.info.st_uid for one in folder.walk()} == {USERS[1]}
    tenants.release(deep, USERS[1])
    with SafeFolder(deep) as folder:
        assert {one.info.st_uid for one in folder.walk()} == {0}


@root_only
@pytest.mark.parametrize(("owner", "mode", "opens"), [(1000, 0o600, False), (1000, 0o644, True), (0, 0o600, True)])
def test_a_file_closed_to_the_user_of_its_folder_is_opened_only_if_it_is_roots(inside, owner, mode, opens):
    os.chown(inside, USERS[2], USERS[2])
    (inside / "a.txt").write_text("x")
    (inside / "a.txt").chmod(mode)
    os.chown(inside / "a.txt", owner, owner)

    with SafeFolder(inside) as folder, nullcontext() if opens else pytest.raises(PermissionError, match="closed file"):
        assert folder.read_file("a.txt", limit_bytes=9) == b"x"


@root_only
@pytest.mark.parametrize("mode", [0o755, 0o777])
def test_a_hand_over_gives_nothing_away_that_lies_elsewhere_or_is_another_users(mode, inside, outside):
    (inside / "sub").mkdir(mode=mode)
    (inside / "sub").chmod(mode)
    made = inside / "sub"
    (made / "own").touch()
    (made / "users").touch()
    os.chown(made / "users", 1000, 1000)
    (made / "link").symlink_to(outside / "secret.txt")
    os.link(outside / "secret.png", made / "hard")

    hand_over(inside, USERS[2])

    owners = {path.name: path.lstat().st_uid for path in made.iterdir()}
    assert owners == {"own": USERS[2], "users": 1000, "link": USERS[2], "hard": 0}
    assert made.stat().st_uid == inside.stat().st_uid == USERS[2]
    assert {path.stat().st_uid for path in outside.iterdir()} == {0}


_OF_ROOT = {
    "private": (0o600, 0o777, 0o600),
    "script": (0o755, 0o666, 0o755),
    "runs as root": (0o4755, 0o777, 0o755),
    "folder/": (0o700, 0o777, 0o700),
    "groups folder/": (0o2770, 0o777, 0o2770),
    "": (0o711, 0o2777, 0o711),
}
_OF_CODE = {"new": (0o666, 0o644), "groups": (0o2775, 0o755), "closed": (0o600, 0o600), "open/": (0o3777, 0o755)}


@root_only
def test_what_is_given_back_has_the_mode_that_it_had_and_what_code_made_is_written_by_root_alone(inside):
    def make(name, mode):
        path = inside / name
        path.mkdir(exist_ok=True) if name[-1:] in ("", "/") else path.touch()
        path.chmod(mode)

    for name, (mode, _, _) in _OF_ROOT.items():
        make(name, mode)
    ownership = FolderOwnership()
    ownership.acquire(inside, USERS[1])
    for name, (mode, _) in _OF_CODE.items():
        make(name, mode)
        os.chown(inside / name, USERS[1], USERS[1])
        (inside / name).chmod(mode)
    (inside / "link").symlink_to("/dev/null")
    os.chown(inside / "link", USERS[1], USERS[1], follow_symlinks=False)
    for name, (_, mode, _) in _OF_ROOT.items():
        (inside / name).chmod(mode)

    ownership.release(inside, USERS[1])

    wanted = {name: mode for name, (*_, mode) in {**_OF_ROOT, **_OF_CODE}.items()}
    assert {name: stat.S_IMODE((inside / name).stat().st_mode) for name in wanted} == wanted
    assert {one.lstat().st_uid for one in (inside, *inside.iterdir())} == {0}


@root_only
def test_sessions_of_the_command_line_in_a_kernels_own_folder_stay_theirs(inside):
    (inside / ".tw" / "sessions" / "session-x" / "files").mkdir(parents=True)
    (inside / ".tw" / "sessions" / "session-x" / "events.jsonl").write_text("{}")
    os.chown(inside / ".tw" / "sessions" / "session-x" / "files", USERS[5], USERS[5])
    (inside / "own").touch()

    ownership = FolderOwnership()
    ownership.acquire(inside, USERS[2])

    owners = {path.name: path.lstat().st_uid for path in inside.rglob("*")}
    kept = {".tw": 0, "sessions": 0, "session-x": 0, "files": USERS[5], "events.jsonl": 0}
    assert owners == {**kept, "own": USERS[2]}
    ownership.release(inside, USERS[2])
    assert {path.name: path.lstat().st_uid for path in inside.rglob("*")} == {**kept, "own": 0}


@pytest.mark.parametrize(("other", "waits"), [("other", False), ("large", True), ("large/sub", True), (".", True)])
def test_who_changes_owners_in_a_folder_holds_up_nobody_elsewhere(tmp_path, monkeypatch, other, waits):
    ownership, large = FolderOwnership(), tmp_path / "large"
    begun, end, second = threading.Event(), threading.Event(), threading.Event()

    def slow(folder, uid, is_held):
        if folder == large and not begun.is_set():
            begun.set()
            assert end.wait(30)
        return {}

    def acquire():
        ownership.acquire(tmp_path / other, 2)
        second.set()

    monkeypatch.setattr("tw_autogen.kernel.folder_ownership.hand_over", slow)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(ownership.acquire, large, 1)
        assert begun.wait(30)
        then = pool.submit(acquire)
        waited = not second.wait(0.3 if waits else 30)
        end.set()
        first.result(30)
        then.result(30)

    assert waited is waits
    assert ownership.user(tmp_path / other) == 2


@root_only
def test_a_folder_that_is_exchanged_for_a_link_is_not_handed_over(flipping, outside):
    for uid in USERS[:60]:
        hand_over(flipping, uid)

    assert {path.stat().st_uid for path in (*outside.iterdir(), outside)} == {0}


_AS_USER = """
import os, sys
from tw_autogen.safe_folder import remove_folder
os.setgid(1000); os.setuid(1000)
path = sys.argv[1]
os.makedirs(f"{path}/a/b")
open(f"{path}/a/b/c", "w").close()
os.chmod(f"{path}/a/b", 0)
os.chmod(f"{path}/a", 0o300)
os.chmod(path, 0)
remove_folder(path)
print(os.path.exists(path))
"""


@root_only
def test_folders_whose_mode_forbids_it_are_removed_by_their_owner():
    with tempfile.TemporaryDirectory() as own:  # a folder above, shared with other tests, keeps its mode
        os.chmod(own, 0o777)
        done = subprocess.run(
            [sys.executable, "-c", _AS_USER, f"{own}/own"], capture_output=True, text=True, cwd="/", timeout=60
        )

    assert done.stdout == "False\n", done.stderr


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/../../x", "/etc/passwd", "a\0b", "\ud800"])
def test_a_name_that_leads_out_is_refused(inside, name):
    with SafeFolder(inside) as folder, pytest.raises(FileNotFoundError, match="not a file below the folder"):
        folder.open_file(name)


def test_a_file_over_the_limit_is_an_error(inside):
    (inside / "it").write_bytes(b"12345")
    with SafeFolder(inside) as folder:
        assert folder.read_file("it", limit_bytes=5) == b"12345"
        with pytest.raises(OSError, match="larger than 4 bytes") as caught:
            folder.read_file("it", limit_bytes=4)
        assert caught.value.errno == errno.EFBIG
        with pytest.raises(OSError, match="larger than 4 bytes"):
            folder.copy_out("it", inside.parent / "copy", limit_bytes=4)


@pytest.mark.parametrize("read", [SafeFolder.read_file, read_unlinked])
def test_whoever_reads_a_whole_file_says_how_much_it_may_be(read):
    assert inspect.signature(read).parameters["limit_bytes"].default is inspect.Parameter.empty


def test_a_copy_keeps_holes_and_replaces_a_link_instead_of_following_it(inside, outside):
    with (inside / "it").open("wb") as file:
        file.write(b"begin")
        file.seek(50 << 20)
        file.write(b"end" + bytes(100))
    target = inside.parent / "copy"
    target.symlink_to(outside / "secret.txt")

    with SafeFolder(inside) as folder:
        folder.copy_out("it", target)

    assert (outside / "secret.txt").read_bytes() == SECRET
    assert not target.is_symlink()
    assert target.read_bytes() == (inside / "it").read_bytes()
    if sys.platform == "linux":
        assert target.stat().st_blocks * 512 < 1 << 20


def test_a_link_to_a_folder_is_no_safe_folder_and_is_not_emptied(inside, outside):
    (inside / "link").symlink_to(outside)

    with pytest.raises(PermissionError, match="a link|not a directory"):
        SafeFolder(inside / "link")
    remove_folder(inside / "link")
    assert (outside / "secret.txt").read_bytes() == SECRET


def test_a_given_file_that_has_become_a_link_is_refused_by_name(inside, outside):
    (inside / "out.csv").symlink_to(outside / "secret.csv")

    with pytest.raises(ConfigError, match=r"out\.csv: can't be read: a link"):
        place_inputs([inside / "out.csv"], inside, print)


def test_a_given_file_of_a_folder_that_code_may_also_write_is_no_link(tmp_path, inside, outside):
    granted = tmp_path / "granted"
    granted.mkdir()
    link(granted / "out.csv", outside / "secret.csv")
    with (
        LocalKernel(tmp_path / "work", settings=KernelSettings(write=(str(granted),), warm=0)),
        pytest.raises(ConfigError, match=r"out\.csv: (can't be read: a link|it leads elsewhere)"),
    ):
        place_inputs([granted / "out.csv"], inside, print)


def test_a_users_own_link_to_data_is_still_taken(inside, outside):
    (outside / "latest.csv").symlink_to(outside / "secret.csv")

    (copied,) = place_inputs([outside / "latest.csv"], inside, print)

    assert copied.read_bytes() == SECRET
    assert not copied.is_symlink()
    assert copied.stat().st_mode & 0o777 == 0o444


def test_a_link_above_the_folder_does_not_hide_that_a_file_lies_in_it(inside, tmp_path):
    (tmp_path / "way").symlink_to(inside)
    (inside / "it.csv").touch()

    with SafeFolder(inside) as folder:
        assert folder.name_of(tmp_path / "way" / "it.csv") == "it.csv"
        assert folder.name_of(tmp_path / "it.csv") == ""


def test_words_about_files_see_no_link(inside, outside):
    (inside / "secret.txt").symlink_to(outside / "secret.txt")
    (inside / "plain.txt").touch()

    assert named_files(inside, "secret.txt and plain.txt") == [inside / "plain.txt"]


def test_pieces_of_a_transferred_file_come_in_order_and_within_the_limit(inside):
    transfer = FileTransfer(inside, 10)
    piece = {"what": "write", "file": "it", "data": base64.b64encode(b"12345678").decode(), "last": False}
    transfer.answer({**piece, "place": 0})

    with pytest.raises(PermissionError, match="a piece for byte 1, expected byte 8"):
        transfer.answer({**piece, "place": 1})
    with pytest.raises(PermissionError, match="more than 10 bytes"):
        transfer.answer({**piece, "place": 8})
    assert list((inside / ".tw-exchange").iterdir()) == []


def test_a_name_that_is_taken_gets_a_number(inside):
    first, file = Artifact.open_new_file(inside, "it.txt", "file")
    file.close()
    second, file = Artifact.open_new_file(inside, "it.txt", "file")
    file.close()

    assert (first.name, second.name) == ("it.txt", "it-2.txt")


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        (b"[" * 100_000, 1),
        (b'{"put": "a", "value": ' + b"[" * 300 + b"]" * 300 + b"}\n", 1),
        (b"[" + b"{}," * (8 << 20) + b"{}]\n", 1),
        (b"\n" * (1 << 20), 100_000),
        (b'{"code": "1"}\n' * 200_000, 100_000),
    ],
    ids=["nested", "nested less", "large once read", "empty lines", "many cells"],
)
def test_a_journal_of_cells_that_code_has_written_is_read_within_bounds(inside, written, lines):
    (inside / JOURNAL_FOLDER).mkdir()
    (inside / JOURNAL_FOLDER / "cells.jsonl").write_bytes(written)

    entries = CellJournal(inside, trust=True).open()

    assert len(entries) == lines
    assert all(entry in ({}, {"code": "1"}) for entry in entries)


def test_many_links_to_the_same_files_take_linear_time(tmp_path, cpu_seconds):
    folder, own = tmp_path / "agent", tmp_path / "session"
    for one in (folder, own):
        one.mkdir()
    for name in ("a.csv", "ab.csv"):
        (folder / name).write_text(name)
    began = cpu_seconds()

    answer, copies = bring_linked(f"[x]({folder / 'a.csv'}) [y]({folder / 'ab.csv'}) " * 5000, [folder], own)

    assert [copy.read_text() for copy in copies] == ["a.csv", "ab.csv"]
    assert answer.count(f"]({copies[0].as_uri()})") == answer.count(f"]({copies[1].as_uri()})") == 5000
    assert cpu_seconds() - began < 8


def read_held(folder, name):
    with open_or_make_folder(folder) as opened:
        return opened.read_file(name, limit_bytes=10)


def read_without_links(folder, name):
    with SafeFolder.without_links(folder) as opened:
        return opened.read_file(name, limit_bytes=10)


def read_from_above(folder, name):
    with SafeFolder(folder.parent) as above:
        return above.read_file(f"{folder.name}/{name}", limit_bytes=10)


@root_only
@pytest.mark.parametrize("read", [read_held, read_without_links, read_from_above, read_unlinked_path])
def test_closed_files_in_a_folder_that_code_may_write_stay_closed_on_every_way_into_it(tmp_path, monkeypatch, read):
    shared = tmp_path / "shared"
    shared.mkdir()
    users = {"theirs": 1000, "other_kernels": min(KERNEL_USERS), "own": 0, "open": 1000}
    for name, user in users.items():
        (shared / name).write_bytes(b"v")
        os.chown(shared / name, user, user)
        (shared / name).chmod(0o644 if name == "open" else 0o600)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tw_autogen.safe_folder.open_without_links.KERNEL_FOLDERS", set())
    monkeypatch.setattr("tw_autogen.safe_folder.held_folder.KERNEL_FOLDERS", {shared})

    for name in ("theirs", "other_kernels"):
        with pytest.raises(PermissionError, match="closed file"):
            read(shared, name)
    assert read(shared, "open") == read(shared, "own") == b"v"


def run_mounted(mounted, *words):
    """Run a command where something is mounted that nobody else sees; skip where that can't be."""
    command = ["unshare", "--mount", "sh", "-c", f"{mounted} || exit 77; exec {shlex.join(words)}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("nothing can be mounted here")
    return done


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root mounts")
@pytest.mark.parametrize("place", ["", "sub"])
def test_what_is_mounted_in_a_folder_is_not_emptied(tmp_path, place):
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "photo.jpg").write_text("x")
    (tmp_path / "mine" / "old" / place / "usb").mkdir(parents=True)
    (tmp_path / "mine" / "old" / "scratch").write_text("x")
    mounted = f"mount --bind {tmp_path}/disk {tmp_path}/mine/old/{place}/usb"
    remove = (
        "import sys; from tw_autogen.safe_folder import SafeFolder\n"
        "with SafeFolder(sys.argv[1]) as folder: folder.remove_tree('old')"
    )
    words = [sys.executable, "-c", remove, str(tmp_path / "mine")]
    done = run_mounted(mounted, *words)

    assert (tmp_path / "disk" / "photo.jpg").exists(), done.stderr
    assert not (tmp_path / "mine" / "old" / "scratch").exists()


MOUNTED_MEANWHILE = """
import subprocess, sys
from tw_autogen.safe_folder import SafeFolder, directory_calls
disk, mine, call, name = sys.argv[1:]
plain = getattr(directory_calls, call)
calls = [] if call == "unlock" else [0]

def and_mount(*args, **kwargs):
    result = plain(*args, **kwargs)
    calls.append(0)
    if len(calls) == 2:
        subprocess.run(["mount", "--bind", disk, f"{mine}/old/{name}"], check=True)
    return result

setattr(directory_calls, call, and_mount)
with SafeFolder(mine) as folder:
    try:
        folder.remove_tree("old") if call == "unlock" else folder.make_folder("old/new", mode=0o777, owner=12345)
    except OSError as error:
        print(error)
"""


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root mounts")
@pytest.mark.parametrize(("call", "name"), [("unlock", "sub"), ("make_folder", "new")])
def test_what_is_mounted_between_the_look_at_a_folder_and_its_use_is_left_alone(tmp_path, call, name):
    (tmp_path / "disk").mkdir(mode=0o700)
    (tmp_path / "disk" / "photo.jpg").write_text("x")
    (tmp_path / "mine" / "old" / "sub").mkdir(parents=True)
    words = [sys.executable, "-c", MOUNTED_MEANWHILE, str(tmp_path / "disk"), str(tmp_path / "mine"), call, name]
    done = run_mounted("true", *words)

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "disk" / "photo.jpg").exists()
    about = (tmp_path / "disk").stat()
    assert (about.st_uid, about.st_mode & 0o777) == (0, 0o700)
    assert done.stdout


CHANGED = """
import sys
from pathlib import Path
from tw_autogen.kernel.exchange_folder import HostExchange
from tw_autogen.safe_folder import KERNEL_FOLDERS, SafeFolder
mine = Path(sys.argv[1])
if sys.argv[2] == "code's":
    KERNEL_FOLDERS.add(mine)
with SafeFolder(mine) as folder:
    for change in (
        lambda: folder.create_file("usb/new").close(), lambda: folder.make_folder("usb/sub"),
        lambda: folder.append_file("note.txt").close(), lambda: folder.move("own.txt", "usb/own.txt"),
        lambda: folder.move("usb/photo.jpg", "photo.jpg"), lambda: folder.remove("usb/photo.jpg"),
        lambda: folder.remove_tree("usb/old"), lambda: folder.copy_in(open(sys.executable, "rb"), "usb/in"),
    ):
        try:
            change()
        except OSError as error:
            print("refused:", error)
print(sorted(path.name for path in (mine / "usb").iterdir()))
"""


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root mounts")
@pytest.mark.parametrize("whose", ["code's", "the user's"])
def test_the_host_changes_nothing_that_is_mounted_in_a_folder_of_codes(tmp_path, whose):
    write_tree = ("disk/photo.jpg", "disk/old/file", "mine/usb/x", "mine/note.txt", "mine/own.txt", "token.txt")
    for name in write_tree:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("CANARY")
    mine = tmp_path / "mine"
    mounted = f"mount --bind {tmp_path}/disk {mine}/usb && mount --bind {tmp_path}/token.txt {mine}/note.txt"
    done = run_mounted(mounted, sys.executable, "-c", CHANGED, str(mine), whose)

    assert done.returncode == 0, done.stderr
    if whose == "code's":
        assert done.stdout.count("something is mounted there") == 8
        assert "['old', 'photo.jpg']" in done.stdout
    else:
        assert "['in', 'new', 'sub']" in done.stdout
    assert (tmp_path / "token.txt").read_text() == "CANARY"


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root mounts")
def test_a_table_is_not_taken_from_what_is_mounted_over_the_exchange_folder(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "secret.csv").write_text("x")
    (tmp_path / "mine" / FOLDER).mkdir(parents=True)
    (tmp_path / "mine" / FOLDER / "own.csv").write_text("own")
    take = (
        "import sys; from pathlib import Path; from tw_autogen.kernel.exchange_folder import HostExchange\n"
        "exchange = HostExchange(Path(sys.argv[1]))\n"
        "try: print(exchange.open('secret.csv').read())\n"
        "except OSError as error: print(error)\n"
        "exchange.remove('secret.csv')\n"
        "exchange.remove('../secret.csv')\n"
    )
    words = [sys.executable, "-c", take, str(tmp_path / "mine")]
    mounted = f"mount --bind {tmp_path}/disk {tmp_path}/mine/{FOLDER}"
    done = run_mounted(mounted, *words)

    assert "something is mounted there" in done.stdout, done.stderr
    assert (tmp_path / "disk" / "secret.csv").exists()
    exchange = HostExchange(tmp_path / "mine")
    with exchange.open("own.csv") as file:
        assert file.read() == b"own"
    exchange.remove("own.csv")
    assert not (tmp_path / "mine" / FOLDER / "own.csv").exists()


def test_a_folder_that_is_moved_on_to_names_still_to_come_is_walked_once(tmp_path):
    for number in range(10):
        (tmp_path / f"d{number}").mkdir()
    (tmp_path / "d0" / "x").write_text("")
    seen = []
    with SafeFolder(tmp_path) as folder:
        for entry in folder.walk():
            seen.append(entry.name)
            here, _, name = entry.name.partition("/")
            if name and here != "d9":
                (tmp_path / here).rename(tmp_path / f"d{int(here[1:]) + 1}")

    assert seen == [*(f"d{number}" for number in range(10)), "d0/x"]


def test_a_walk_that_is_led_down_and_down_ends(tmp_path, monkeypatch):
    monkeypatch.setattr("tw_autogen.safe_folder.directory_tree._DEEPEST", 50)
    (tmp_path / "a" / "/".join("b" * 60)).mkdir(parents=True)
    with SafeFolder(tmp_path) as folder:
        assert len(list(folder.walk())) == 51
        with pytest.raises(OSError, match="not empty"):
            folder.remove_tree("a")


def test_thousands_of_earlier_kernels_folders_cost_no_time_to_speak_of(tmp_path, monkeypatch, cpu_seconds):
    earlier = {tmp_path / f"session-{number}" / "files" for number in range(2000)}
    for one in earlier:
        one.mkdir(parents=True)
    monkeypatch.setattr("tw_autogen.safe_folder.open_without_links.KERNEL_FOLDERS", earlier)
    took = []

    for _ in range(3):  # threads of earlier tests work too
        begun = cpu_seconds()
        for _ in range(5):
            open_or_make_folder(tmp_path / "out").close()
        took.append(cpu_seconds() - begun)

    assert min(took) < 0.2


def test_a_tree_whose_removal_takes_too_long_is_an_error(tmp_path):
    (tmp_path / "tree" / "inner").mkdir(parents=True)
    with SafeFolder(tmp_path) as folder:
        with pytest.raises(TimeoutError, match="something goes on writing there"):
            folder.remove_tree("tree", seconds=-1)
        folder.remove_tree("tree")
        assert not folder.has_entry("tree")


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
@pytest.mark.parametrize("name", ["alias", "alias/b", "alias/b/inner", "above/w/b", "above/w"])
def test_a_folder_of_codes_is_opened_over_no_link_of_codes_by_its_other_names_either(tmp_path, monkeypatch, name):
    code, outside = tmp_path / "w", tmp_path / "outside"
    (outside / "inner").mkdir(parents=True)
    code.mkdir()
    (code / "b").symlink_to(outside)
    (tmp_path / "alias").symlink_to(code)
    (tmp_path / "above").symlink_to(tmp_path)
    monkeypatch.setattr("tw_autogen.safe_folder.held_folder.KERNEL_FOLDERS", {code})
    monkeypatch.setattr("tw_autogen.safe_folder.safe_folder.KERNEL_FOLDERS", {code})

    if "/b" in name:
        with pytest.raises(OSError, match="link"):
            SafeFolder(tmp_path / name)
    else:
        with SafeFolder(tmp_path / name) as folder:
            assert [one.name for one in folder.walk()] == ["b"]


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such permissions")
@pytest.mark.parametrize(("mode", "after"), [(0o2555, 0o2755), (0o077, 0o755), (0o444, 0o744), (0o755, 0o755)])
def test_a_folder_that_is_unlocked_keeps_its_other_permissions_but_lets_nobody_else_write(tmp_path, mode, after):
    (tmp_path / "locked").mkdir()
    (tmp_path / "locked").chmod(mode)
    with SafeFolder(tmp_path) as folder, folder.open_folder("locked") as locked:
        locked.unlock()

    assert stat.S_IMODE((tmp_path / "locked").stat().st_mode) == after


@root_only
def test_a_file_whose_number_was_a_folders_gets_no_mode_of_it(inside):
    (inside / "was").mkdir()
    (inside / "was").chmod(0o777)
    about = (inside / "was").stat()
    ownership = FolderOwnership()
    ownership.acquire(inside, USERS[1])
    (inside / "was").rmdir()
    for _ in range(100):  # until the file system gives the number again
        (inside / "now").write_text("code's")
        if (inside / "now").stat().st_ino == about.st_ino:
            break
        (inside / "now").unlink()
    else:
        pytest.skip("this file system gives no number again at once")
    os.chown(inside / "now", USERS[1], USERS[1])

    ownership.release(inside, USERS[1])

    assert stat.S_IMODE((inside / "now").stat().st_mode) & 0o022 == 0


@root_only
def test_a_folder_that_takes_the_place_of_a_new_one_is_given_to_nobody(inside, monkeypatch):
    (inside / "theirs" / "sub").mkdir(parents=True)
    make = directory_calls.make_folder

    def exchanged(at, name):
        make(at, name)
        os.rename(inside / "new", inside / "other")
        os.rename(inside / "theirs", inside / "new")

    monkeypatch.setattr(directory_calls, "make_folder", exchanged)
    with SafeFolder(inside) as folder, pytest.raises(PermissionError, match="another one than was made"):
        folder.make_folder("new", owner=USERS[1], mode=0o777)

    about = (inside / "new").stat()
    assert (about.st_uid, stat.S_IMODE(about.st_mode) & 0o022) == (0, 0)


@root_only
def test_nothing_is_taken_from_a_folder_that_code_has_put_in_the_place_of_the_exchange(inside):
    exchange = HostExchange(inside, uid=USERS[1])
    name, file = exchange.create(".bin")
    file.close()
    exchange.open(name).close()
    (inside / FOLDER).rename(inside / "moved")
    (inside / FOLDER).mkdir()
    (inside / FOLDER / "notes.txt").write_text("CANARY")

    with pytest.raises(FileNotFoundError, match="code has put a folder of another user's in its place"):
        exchange.open("notes.txt")
    exchange.remove("notes.txt")

    assert (inside / FOLDER / "notes.txt").read_text() == "CANARY"
