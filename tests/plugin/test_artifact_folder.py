"""A plugin in the host makes its files in the folder that the kernel has, whatever code has put in its path's place."""

import os
import subprocess
import sys

import pytest

from tw_autogen.kernel import Artifact, Log
from tw_autogen.kernel.guest.artifacts import FileNames
from tw_autogen.plugin import HostPlugin
from tw_autogen.plugin.spec import read_spec
from tw_autogen.safe_folder import HeldFolder, SafeFolder

ADDS = "return ctx.add_artifact('n', name, 'txt', 'mine')"
PROMISES = """\
path = ctx.create_artifact_path('n', name, 'txt')[1]
    pathlib.Path(path).write_text('mine')
    return path"""
PYTHON = """\
import pathlib

from tw_autogen.plugin import Plugin, register_plugin

def call(ctx, name):
    {}

@register_plugin
class F(Plugin):
    def __call__(self, name):
        return call(self.ctx, name)
"""


@pytest.fixture
def host(tmp_path):
    """Return a maker of plugins whose files go to `w/a/files`; made in order, closed at the end."""
    (tmp_path / "w/a/files").mkdir(parents=True)
    (tmp_path / "victim/files").mkdir(parents=True)
    (tmp_path / "f.yaml").write_text("name: f\ndescription: d\nparameters: [{name: name}]\nruns_in: host\n")
    kept, made = HeldFolder(tmp_path / "w/a/files"), []

    def make(body, **more):
        (tmp_path / "f.py").write_text(PYTHON.format(body))
        made.append(HostPlugin(read_spec(tmp_path / "f.yaml"), folder=tmp_path / "w/a/files", **more))
        return made[-1]

    yield make
    kept.close()
    for one in made:
        one.close()


def test_a_path_that_code_passes_is_a_text_unless_the_plugin_asks_for_paths(host, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    plugin = host('ctx.add_artifact("note", "note.txt", "file", name)\n    return repr(name)')

    assert plugin(secret) == repr(str(secret))
    assert (tmp_path / "w/a/files/note.txt").read_text() == str(secret)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs")
def test_what_is_no_plain_file_makes_no_artifact(host, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    plugin = host('import pathlib; ctx.add_artifact("note", "note.txt", "file", pathlib.Path(name))')

    for one in (tmp_path / "fifo", "/dev/zero"):
        with pytest.raises(OSError, match="no plain file"):
            plugin(str(one))


def exchange(folder, how):
    (folder / "w/a").rename(folder / "w/old")
    if how == "a link":
        (folder / "w/a").symlink_to(folder / "victim")
    elif how == "a link below":
        (folder / "w/a").mkdir()
        (folder / "w/a/files").symlink_to(folder / "victim/files")
    else:
        (folder / "victim").rename(folder / "w/a")
        (folder / "victim").symlink_to(folder / "w/a")


@pytest.mark.skipif(os.name == "nt", reason="no folder is kept open there")
@pytest.mark.parametrize("how", ["a link", "a link below", "another folder"])
@pytest.mark.parametrize("body", [ADDS, PROMISES], ids=["written by the context", "written by the plugin"])
@pytest.mark.parametrize("early", [True, False], ids=["loaded before", "loaded after"])
def test_a_file_goes_to_the_kernels_own_folder(host, tmp_path, how, body, early):
    artifacts = []
    plugin = host(body, on_artifact=artifacts.append) if early else None
    exchange(tmp_path, how)
    plugin = plugin or host(body, on_artifact=artifacts.append)
    (tmp_path / "victim/files/two.txt").write_text("of the host")
    plugin("one.txt")
    plugin("two.txt")

    assert sorted(path.name for path in (tmp_path / "w/old/files").iterdir()) == ["one.txt", "two.txt"]
    assert (tmp_path / "w/old/files/two.txt").read_text() == "mine"
    assert os.listdir(tmp_path / "victim/files") == ["two.txt"]
    assert (tmp_path / "victim/files/two.txt").read_text() == "of the host"
    assert [artifact.path for artifact in artifacts] == [
        tmp_path / "w/a/files" / name for name in ("one.txt", "two.txt")
    ]


@pytest.mark.parametrize("body", [ADDS, PROMISES], ids=["written by the context", "written by the plugin"])
def test_a_link_in_a_files_place_is_not_followed(host, tmp_path, body):
    (tmp_path / "w/a/files/it.txt").symlink_to(tmp_path / "victim/new")
    host(body)("it.txt")

    assert not os.listdir(tmp_path / "victim/files")
    assert (tmp_path / "w/a/files/it-2.txt").read_text() == "mine"


@pytest.mark.parametrize("kind", ["link", "fifo", "folder", "missing", "large"])
def test_what_a_plugin_leaves_at_its_path_is_a_file_of_bounded_size_or_nothing(host, tmp_path, kind):
    made = {
        "link": "os.symlink(__file__, path)",
        "fifo": "os.mkfifo(path)",
        "folder": "os.mkdir(path)",
        "missing": "pass",
        "large": "pathlib.Path(path).touch()\n    os.truncate(path, 101 << 20)",
    }[kind]
    artifacts, logs = [], []
    body = f"import os\n    path = ctx.create_artifact_path('n', name, 'txt')[1]\n    {made}"
    host(body, on_artifact=artifacts.append, on_log=logs.append)("it.txt")

    said = "left out: more than 100 MB" if kind == "large" else "was never written"
    assert (artifacts, len(logs), logs[0].level) == ([], 1, "warning")
    assert isinstance(logs[0], Log)
    assert said in logs[0].message
    assert not os.listdir(tmp_path / "w/a/files")


def test_the_path_of_a_file_that_a_plugin_writes_is_private_and_removed_with_the_plugin(host, tmp_path):
    plugin = host(PROMISES)
    path = plugin("it.txt")

    assert not os.path.lexists(path)
    assert os.stat(os.path.dirname(path)).st_mode & 0o077 == 0 or os.name == "nt"
    plugin.close()
    assert not os.path.lexists(os.path.dirname(path))


_FORK = """
import os, sys
from pathlib import Path
from tw_autogen.plugin.artifact_folder import SessionArtifacts
made = SessionArtifacts(Path(sys.argv[1])).promise
path = made("it.txt")
if os.fork() == 0:
    sys.exit()
os.wait()
print(path.parent.is_dir())
"""


@pytest.mark.skipif(os.name == "nt", reason="there are no forks")
def test_a_fork_that_ends_leaves_the_folder_of_the_program_alone(tmp_path):
    ran = subprocess.run([sys.executable, "-c", _FORK, tmp_path], capture_output=True, text=True, timeout=60)

    assert ran.stdout == "True\n", ran.stderr


def test_a_name_is_found_soon_where_code_has_taken_very_many():
    asked = []

    def taken(name):
        asked.append(name)
        return name == "it.txt" or int(name.removeprefix("it-").removesuffix(".txt")) < 10**6

    names = FileNames(taken)
    found = [names.free("it.txt", "file") for _ in range(3)]

    assert len(set(found)) == 3
    assert all(int(name[3:-4]) >= 10**6 for name in found)
    assert len(asked) < 400


def test_a_new_file_of_the_sessions_is_numbered_by_what_lies_in_the_kernels_own_folder(host, tmp_path):
    exchange(tmp_path, "a link")
    (tmp_path / "w/old/files/it.txt").write_text("there")
    (tmp_path / "victim/files/it-2.txt").write_text("of the host")
    path, file = Artifact.open_new_file(tmp_path / "w/a/files", "it.txt", "file")
    file.close()

    assert path.name == "it-2.txt"
    with SafeFolder(tmp_path / "w/a/files") as folder:
        assert folder.has_file("it-2.txt")
