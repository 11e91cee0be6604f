import re
import subprocess

import pytest

from tw_autogen.recall import read_examples
from tw_autogen.session import open_session
from tw_autogen.testing import ScriptedModel, plans


@pytest.fixture
def session_folder(tmp_path):
    with (
        ScriptedModel([plans("Hello to you.", to="User")]) as model,
        open_session(model, roles=["planner"], folder=tmp_path / ".tw" / "sessions") as session,
    ):
        session.ask("hello")
    return session.folder.parent


@pytest.fixture
def example(command, environ, tmp_path):
    def run(*args):
        done = subprocess.run(
            [*command, "example", *args], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60
        )
        return done.returncode, done.stdout.strip(), done.stderr

    return run


def test_an_example_is_made_from_a_sessions_folder_or_name_and_loads(example, session_folder, tmp_path):
    assert example("from", str(session_folder), "--out", "kept/hello.yaml") == (0, "kept/hello.yaml", "")
    assert example("from", session_folder.name)[:2] == (0, f"{session_folder.name}-planner.yaml")
    for name in (session_folder.name.removeprefix("session-")[:4], str(session_folder / "files")):
        (tmp_path / "kept" / "hello.yaml").unlink()
        assert example("from", name, "--out", "kept/hello.yaml")[0] == 0

    (read,) = read_examples(tmp_path / "kept")
    assert [post.message for post in read.conversation.rounds[0].posts] == ["hello", "Hello to you."]


def test_what_is_no_session_and_who_said_nothing_is_told(example, session_folder):
    code, _, said = example("from", "session-none")
    assert code == 2
    assert f"you have no session session-none in {session_folder.parent}; the newest: {session_folder.name}" in said

    code, _, said = example("from", str(session_folder / "typo"))
    assert code == 2
    assert "typo: there is no session (no events.jsonl)" in said

    code, _, said = example("from", session_folder.name, "--role", "CodeInterpreter")
    assert code == 2
    assert "no finished round in which CodeInterpreter said something" in said


@pytest.mark.parametrize("kind", ["session", "journal", "workspace"])
def test_no_example_is_made_over_a_link_that_the_folder_brought(example, session_folder, tmp_path, kind):
    private = session_folder.rename(tmp_path.parent / f"{tmp_path.name}-{session_folder.name}")
    if kind == "workspace":
        private = private.rename(private.with_name("elsewhere"))
        (private.parent / "workspace").mkdir()
        private = private.rename(private.parent / "workspace" / session_folder.name)
        session_folder.parent.rmdir()
        session_folder.parent.symlink_to(private.parent)
    elif kind == "session":
        session_folder.symlink_to(private)
    else:
        session_folder.mkdir()
        (session_folder / "events.jsonl").symlink_to(private / "events.jsonl")

    for wanted, words in (
        (session_folder.name, "you have no session|is a link to .*; say where"),
        (f".tw/sessions/{session_folder.name}", "not opened: not a directory|no session|a link"),
    ):
        code, out, said = example("from", wanted)
        assert (code, out) == (2, "")
        assert re.search(words, said), said
    assert not list(tmp_path.glob("*.yaml"))
