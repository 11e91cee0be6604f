"""A path that was a kernel's folder means that folder or nothing, also after the kernel closed: never a link's target.

Code of another kernel, or another program, that may write above such a folder can put a link of the user's there.
"""

import pytest

from tw_autogen import SafeFolder
from tw_autogen.code_interpreter.cell_runner import snapshot
from tw_autogen.errors import ConfigError
from tw_autogen.kernel import Artifact, KernelSettings, Loadable, LocalKernel
from tw_autogen.kernel.exchange_folder import HostExchange
from tw_autogen.named_folders import named_file, named_folder
from tw_autogen.plugin.artifact_folder import SessionArtifacts
from tw_autogen.safe_folder import open_or_make_folder
from tw_autogen.session import read_settings
from tw_autogen.session.request_inputs import place_inputs

ARTIFACTS = {}
PLUGIN = "from tw_autogen.plugin import register_plugin\n\n\n@register_plugin\ndef pp():\n    return 1\n"


@pytest.fixture(params=["closed", "open"])
def moved(request, tmp_path, monkeypatch):
    """Give a kernel's folder in whose place there is a link by now, and the link's target."""
    folder, private = tmp_path / "project" / "team" / "work", tmp_path / "private"
    (private / "work").mkdir(parents=True)
    (private / "work" / "pay.csv").write_text("secret")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")  # else nothing below the current folder is reached over a link anyway
    kernel = LocalKernel(folder)
    (folder / "own.csv").write_text("own")
    artifacts = SessionArtifacts(folder)  # a plugin's, from the time when it was loaded
    monkeypatch.setitem(ARTIFACTS, folder, artifacts)
    if request.param == "closed":
        kernel.close()
    (tmp_path / "project" / "team").rename(tmp_path / "project" / "away")
    (tmp_path / "project" / "team").symlink_to(private)
    yield folder, private / "work", request.param == "open"
    kernel.close()


def write_artifact(folder):
    ARTIFACTS[folder].create_new("new.csv").close()


def make_exchange(folder):
    HostExchange(folder).create(".table")[1].close()


def make_file(folder):
    Artifact.open_new_file(folder, "new.csv", "file")[1].close()


def hold(folder):
    with open_or_make_folder(folder) as opened:
        opened.create_file("new.csv").close()


def hold_inner(folder):
    open_or_make_folder(folder / "a" / "b").close()


WRITES = [write_artifact, make_exchange, make_file, hold, hold_inner]


@pytest.mark.parametrize("write", WRITES)
def test_nothing_is_written_where_a_link_leads(moved, write):
    folder, private, is_open = moved

    if is_open:  # the path means the folder that is held open
        write(folder)
    else:
        with pytest.raises(PermissionError, match="in the way at 'team'|team is a link"):
            write(folder)

    assert [path.name for path in private.iterdir()] == ["pay.csv"]


def test_nothing_is_listed_where_a_link_leads(moved):
    folder, _, is_open = moved

    assert list(snapshot(folder)) == ([folder / "own.csv"] if is_open else [])


def test_nothing_is_read_or_named_where_a_link_leads(moved):
    folder, _, is_open = moved

    with pytest.raises(ConfigError, match="was moved, and leads to"):
        named_file(folder / "pay.csv")
    if is_open:
        assert named_folder(folder) == folder
    else:
        with pytest.raises(ConfigError, match="was moved, and leads to"):
            named_folder(folder)
        with pytest.raises(OSError, match="in the way"):
            SafeFolder(folder)


@pytest.mark.parametrize("key", ["read", "write"])
def test_it_is_granted_to_no_other_kernel(moved, tmp_path, key):
    folder, _, _ = moved

    with pytest.raises(ConfigError, match="was moved, and leads to"):
        LocalKernel(tmp_path / "other", settings=KernelSettings(**{key: (str(folder),)})).execute("1", seconds=20)


def test_a_folder_that_was_removed_and_made_again_can_be_used(tmp_path):
    LocalKernel(tmp_path / "work").close()
    (tmp_path / "work").rmdir()
    (tmp_path / "work").mkdir()

    make_file(tmp_path / "work")
    hold(tmp_path / "work" / "more")

    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == ["more", "new.csv"]


def test_a_link_of_the_users_that_leads_over_one_of_codes_is_not_followed(tmp_path, monkeypatch):
    project, private = tmp_path / "project", tmp_path / "private"
    (project / "team").mkdir(parents=True)
    (private / "out").mkdir(parents=True)
    (private / "pay.csv").write_text("secret")
    (tmp_path / "short").symlink_to(project / "team")
    (tmp_path / "own").mkdir()
    monkeypatch.chdir(tmp_path / "own")
    LocalKernel(tmp_path / "work", settings=KernelSettings(write=(str(project),))).close()
    hold(tmp_path / "short" / "first")  # as long as it leads where the user means
    (project / "team").rename(project / "away")
    (project / "team").symlink_to(private)

    with pytest.raises(PermissionError, match="project/team is a link, which code may have made"):
        hold(tmp_path / "short" / "out")
    with pytest.raises(ConfigError, match="it leads elsewhere than where code works"):
        place_inputs([tmp_path / "short" / "pay.csv"], tmp_path / "own", print)

    assert list((private / "out").iterdir()) == []
    assert (project / "away" / "first" / "new.csv").exists()


def test_a_given_file_is_read_over_no_link_of_strangers_to_which_one_of_the_users_leads(tmp_path):
    (tmp_path / "dl").mkdir()
    (tmp_path / "own").mkdir()
    (tmp_path / "pay.csv").write_text("secret")
    (tmp_path / "dl" / "pay.csv").symlink_to(tmp_path / "pay.csv")
    (tmp_path / "short.csv").symlink_to(tmp_path / "dl" / "pay.csv")

    why = f"a link out of {tmp_path}/dl, which is not trusted, to {tmp_path}/pay.csv"
    with SafeFolder(tmp_path / "dl") as strangers, pytest.raises(ConfigError, match=why):
        place_inputs([tmp_path / "short.csv"], tmp_path / "own", print, distrusted=[strangers])

    assert list((tmp_path / "own").iterdir()) == []


def test_settings_are_read_over_no_link_that_code_left_in_its_folder(tmp_path):
    (tmp_path / "s.yaml").write_text("planner.instructions: secret\n")
    LocalKernel(tmp_path / "work").close()
    (tmp_path / "work" / "tw_autogen.yaml").symlink_to(tmp_path / "s.yaml")

    with pytest.raises(ConfigError, match=r"work/tw_autogen\.yaml, and code could make that link"):
        read_settings(project=tmp_path / "work")


def test_what_lies_beside_a_plugin_is_not_granted_where_code_of_another_kernel_has_put_a_link(tmp_path):
    for name in ("private", "plug"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pp.py").write_text(PLUGIN)
    (tmp_path / "private" / "secret.csv").write_text("secret")
    LocalKernel(tmp_path / "other", settings=KernelSettings(write=(str(tmp_path / "plug"),))).close()
    (tmp_path / "plug" / "pp.py").unlink()
    (tmp_path / "plug" / "pp.py").symlink_to(tmp_path / "private" / "pp.py")

    with LocalKernel(tmp_path / "work") as kernel:
        kernel.load(Loadable("pp", PLUGIN, {}, tmp_path / "plug" / "pp.py"))
        ran = kernel.execute(f"open({str(tmp_path / 'private' / 'secret.csv')!r}).read()", seconds=30)

    assert not ran.ok
