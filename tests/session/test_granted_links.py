"""What a user grants by a name in a folder that nobody trusts leads over no link out of it."""

import contextlib
import sys
from contextlib import ExitStack

import pytest

from tw_autogen import open_session
from tw_autogen.errors import ConfigError
from tw_autogen.session import open_kernel, read_settings, role_seats
from tw_autogen.testing import FakeKernel, ScriptedModel

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")


@pytest.fixture
def linked(here, tmp_path):
    (tmp_path / "private" / "in").mkdir(parents=True)
    (tmp_path / "private" / "m.json").write_text('{"m": {"command": "touch", "args": ["ran"]}}')
    (here / "data").symlink_to(tmp_path / "private")
    (here / "m.json").symlink_to(tmp_path / "private" / "m.json")
    (here / "mine").mkdir()
    for folder in (tmp_path, here, here / "mine", tmp_path / "private"):
        folder.chmod(0o777)  # root's code runs as another user
    (here / "way").symlink_to("mine")
    return here


@pytest.mark.parametrize("key", ["kernel.read", "kernel.write", "session.user_folder"])
@pytest.mark.parametrize("name", ["data", "./data/in", "{here}/data"])
def test_a_grant_over_a_link_out_of_a_folder_that_is_not_trusted_is_an_error(linked, tmp_path, key, name):
    settings = {key: name.format(here=linked)}

    with pytest.raises(ConfigError, match=rf"{key}: .*data.*: a link out of .* which is not trusted"):
        open_session(ScriptedModel([]), settings=settings, folder=tmp_path / "sessions")


@pytest.mark.parametrize("key", ["kernel.read", "kernel.write", "session.user_folder"])
def test_a_grant_in_the_folder_or_by_its_own_name_or_of_a_trusted_folder_stands(linked, tmp_path, key):
    for name, trust in (("mine", False), ("way", False), (str(tmp_path / "private"), False), ("data", True)):
        settings = read_settings({key: name}, trust=trust)
        open_session(ScriptedModel([]), settings=settings, folder=tmp_path / "sessions").close()


@pytest.mark.parametrize("how", ["a keyword", "a setting"])
def test_a_file_of_servers_over_such_a_link_is_an_error_and_starts_nothing(linked, tmp_path, how):
    given = {"mcp_servers": "m.json"} if how == "a keyword" else {"settings": {"plugin.mcp_servers": "m.json"}}

    with pytest.raises(ConfigError, match=r"m\.json: a link out of .* which is not trusted"):
        open_session(ScriptedModel([]), kernel=FakeKernel(), folder=tmp_path / "sessions", **given)

    assert not (linked / "ran").exists()


RECALLED = {
    "recall.experience": "exp_1.yaml",
    "recall.planner_examples": "one.yaml",
    "recall.code_examples": "one.yaml",
    "code_interpreter.policy": "ours.yaml",
}


@pytest.mark.parametrize("key", RECALLED)
@pytest.mark.parametrize("way", ["the folder", "a file in it"])
def test_lessons_examples_and_a_policy_are_read_over_no_such_link(linked, tmp_path, key, way):
    texts = {
        "exp_1.yaml": "experience_text: private\n",
        "one.yaml": "enabled: false\nrounds: [{posts: []}]\n",
        "ours.yaml": "base: strict\n",
    }
    for name, text in texts.items():
        (tmp_path / "private" / "in" / name).write_text(text, encoding="utf-8")
        (linked / "mine" / name).symlink_to(tmp_path / "private" / "in" / name)
    folder = "data/in" if way == "the folder" else "mine"
    value = f"{folder}/ours.yaml" if key == "code_interpreter.policy" else folder

    def opened(trust):
        settings = {key: value}
        return open_session(
            ScriptedModel([]), kernel=FakeKernel(), folder=tmp_path / "s", settings=settings, trust=trust
        )

    with pytest.raises(ConfigError, match=r"a link out of .* which is not trusted"):
        opened(trust=False)
    with contextlib.suppress(ConfigError):  # the example is none
        opened(trust=True).close()


@pytest.mark.parametrize("key", ["kernel.read", "kernel.write", "session.user_folder"])
def test_what_is_granted_is_what_was_checked(linked, tmp_path, monkeypatch, key):
    checked = role_seats.named_folder

    def exchanging(path, **options):
        real = checked(path, **options)
        (linked / "mine").rename(tmp_path / "gone")
        (linked / "mine").symlink_to(tmp_path / "private")
        return real

    monkeypatch.setattr(role_seats, "named_folder", exchanging)
    with pytest.raises(ConfigError, match="a link to .*private came in place of what is granted while"):
        open_session(ScriptedModel([]), settings={key: "way"}, folder=tmp_path / "sessions")


def test_a_folder_that_becomes_a_link_after_it_was_looked_at_is_no_kernels(linked, tmp_path, monkeypatch):
    pick = role_seats.Kernels.pick

    def exchanging(kernels, seat):
        (linked / "mine").rename(tmp_path / "gone")
        (linked / "mine").symlink_to(tmp_path / "private")
        return pick(kernels, seat)

    monkeypatch.setattr(role_seats.Kernels, "pick", exchanging)
    with ExitStack() as undo, pytest.raises(ConfigError, match="mine: a link to .*private came there while"):
        open_kernel(read_settings(), "mine", undo, name="kernel")
