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

    (read,) = read_examples(tmp_path / "kept")
    assert [post.message for post in read.conversation.rounds[0].posts] == ["hello", "Hello to you."]


def test_what_is_no_session_and_who_said_nothing_is_told(example, session_folder):
    code, _, said = example("from", "session-1")
    assert code == 2
    assert f"session-1: neither a session's folder nor the name of one; in .tw/sessions: {session_folder.name}" in said

    code, _, said = example("from", str(session_folder / "typo"))
    assert code == 2
    assert "typo: neither a session's folder nor the name of one" in said

    code, _, said = example("from", session_folder.name, "--role", "CodeInterpreter")
    assert code == 2
    assert "no finished round in which CodeInterpreter said something" in said
