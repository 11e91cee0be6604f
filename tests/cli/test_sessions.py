"""Sessions of a workspace have an age: they are listed, and old ones are removed, open ones and all else never."""

import errno
import json
import os
import subprocess
import threading
import time

import pytest
from click.testing import CliRunner

from tw_autogen import bounded_json
from tw_autogen.cli import main
from tw_autogen.errors import ConfigError
from tw_autogen.safe_folder import SafeFolder
from tw_autogen.session import SessionSettings, export_session, past_sessions, prune_sessions, session_folder
from tw_autogen.session.earlier_session import mark_own_session
from tw_autogen.session.event_journal import Journal
from tw_autogen.session.workspace import _real_folder, ignore_in_git, remove_session
from tw_autogen.testing import codes, plans, replay_server

DAY = 86_400


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path / ".tw" / "sessions"


@pytest.fixture
def session(workspace):
    """Give what makes a session's folder: its name, age in days, and question."""

    def make(name, *, days, question="How many rows?"):
        folder = workspace / name
        (folder / "files").mkdir(parents=True)
        (folder / "files" / "a.bin").write_bytes(bytes(200_000))
        event = {"event": "RoundOpened", "round_id": "r", "user_query": question, "files": []}
        journal = folder / "events.jsonl"
        journal.write_text('{"event": "SessionOpened"}\n' + json.dumps(event) + "\n", encoding="utf-8")
        then = time.time() - days * DAY
        os.utime(journal, (then, then))
        return folder

    return make


def run(*args):
    return CliRunner().invoke(main, ["sessions", *args])


def test_sessions_are_listed_with_age_size_and_first_question(session, workspace):
    session("session-aa11", days=40, question="plot\x1b[31m it")
    session("session-bb22", days=2)

    ran = run("list")

    lines = ran.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["session-bb22", "session-aa11"]
    assert lines[1].endswith("   40 days     200 kB  plot it")


def test_long_journals_of_others_are_not_read_for_their_questions(session, workspace, monkeypatch):
    journal = session("session-aa11", days=1, question="How many beavers?") / "events.jsonl"
    long = json.dumps({"event": "SessionOpened", "more": "x" * 900_000})
    journal.write_text(f"{long}\n{journal.read_text(encoding='utf-8')}", encoding="utf-8")
    parsed, loads = [], bounded_json.loads

    def count(text, **how):
        parsed.append(len(text))
        return loads(text, **how)

    monkeypatch.setattr(bounded_json, "loads", count)

    (found,) = past_sessions(workspace)
    assert found.question == "How many beavers?"
    assert sum(parsed) < 1000


def test_no_name_of_a_folder_writes_signs_to_the_terminal(session, workspace, tmp_path, monkeypatch):
    (tmp_path / "odd\x1b[31m").mkdir()
    monkeypatch.chdir(tmp_path / "odd\x1b[31m")
    made = session("session-aa11", days=40)
    made.parent.parent.rename(".tw")

    said = [run("list"), run("prune", "--days", "99"), run("rm", "session-aa11"), run("list")]

    assert [one.exit_code for one in said] == [0] * 4
    assert all("odd\\x1b" in one.output for one in said[1:])
    assert not any("\x1b" in one.output for one in said)


def test_an_export_replaces_a_file_only_by_force(session, workspace, tmp_path):
    journal = session("session-aa11", days=1) / "events.jsonl"
    journal.write_text(journal.read_text(encoding="utf-8").partition("\n")[2], encoding="utf-8")
    mine = tmp_path / "mine.md"
    mine.write_text("mine", encoding="utf-8")

    refused = run("export", "aa11", "mine.md")
    kept = mine.read_text(encoding="utf-8")
    forced = run("export", "aa11", "mine.md", "--force")

    assert (refused.exit_code, kept) == (2, "mine")
    assert "mine.md is there already; choose another name, or add --force" in refused.stderr
    assert (forced.exit_code, forced.stdout) == (0, "mine.md\n")
    assert "How many rows?" in mine.read_text(encoding="utf-8")


def test_a_session_that_is_named_twice_is_removed_once(session, workspace):
    session("session-aa11", days=1)

    ran = run("rm", "aa11", "session-aa11")

    assert (ran.exit_code, ran.stdout.count("removed")) == (0, 1), ran.output


def test_lists_are_written_whatever_the_encoding_of_the_locale(command, environ, session, workspace, tmp_path):
    session("session-aa11", days=1, question="\u58f2\u4e0a")
    environ = {**environ, "PYTHONIOENCODING": "iso-8859-1"}

    ran = subprocess.run([*command, "sessions", "list"], env=environ, cwd=tmp_path, capture_output=True, check=True)

    assert "\u58f2\u4e0a" in ran.stdout.decode()


def test_old_sessions_are_removed_and_nothing_else(session, workspace, tmp_path):
    old, young = session("session-aa11", days=40), session("session-bb22", days=2)
    kept = [session("notes-of-mine", days=99), session("session-cc33", days=99), young]
    (kept[1] / "events.jsonl").unlink()
    elsewhere = tmp_path / "elsewhere"
    session("session-dd44", days=99).rename(elsewhere)
    (workspace / "session-dd44").symlink_to(elsewhere)
    linked = session("session-ee55", days=99)
    (linked / "events.jsonl").rename(tmp_path / "journal")
    (linked / "events.jsonl").symlink_to(tmp_path / "journal")

    tried = run("prune", "--dry-run")
    assert (tried.stdout.split()[0], old.exists()) == ("session-aa11", True)
    assert run("prune", "--days", "50").stderr == f"nothing older than 50 days in {workspace}\n"
    ran = run("prune")

    assert (ran.exit_code, ran.stdout) == (0, f"removed {old}\n")
    assert not old.exists()
    assert all(folder.exists() for folder in (*kept, elsewhere / "files" / "a.bin", linked))


def linked_folder(workspace, victim):
    workspace.parent.symlink_to(victim / ".tw")
    return []


def linked_workspace(workspace, victim):
    workspace.parent.mkdir()
    workspace.symlink_to(victim / ".tw" / "sessions")
    return []


def linked_session(workspace, victim):
    workspace.mkdir(parents=True)
    (workspace / "session-aa11").symlink_to(victim / ".tw" / "sessions" / "session-aa11")
    return []


def named_by_a_project(workspace, victim):
    (workspace.parent.parent / "p").mkdir()
    (workspace.parent.parent / "p" / "tw_autogen.yaml").write_text(
        f"session: {{workspace: '{victim / '.tw' / 'sessions'}'}}\n", encoding="utf-8"
    )
    return ["-C", "p"]


def linked_in_a_project(workspace, victim):
    options = named_by_a_project(workspace, victim)
    (workspace.parent.parent / "p" / ".tw").symlink_to(victim / ".tw")
    (workspace.parent.parent / "p" / "tw_autogen.yaml").write_text(
        "session: {workspace: .tw/sessions}\n", encoding="utf-8"
    )
    return options


ELSEWHERE = {
    ".tw is a link": linked_folder,
    ".tw/sessions is a link": linked_workspace,
    "a session is a link": linked_session,
    "a folder's settings name it": named_by_a_project,
    "a link in a folder with settings": linked_in_a_project,
}


@pytest.mark.parametrize("lead", ELSEWHERE.values(), ids=ELSEWHERE)
def test_sessions_of_another_folder_are_not_removed_through_this_one(lead, session, workspace, tmp_path, environ):
    victim = tmp_path.parent / f"{tmp_path.name}-victim"
    session("session-aa11", days=99)
    victim.mkdir()
    workspace.parent.rename(victim / ".tw")
    options = lead(workspace, victim)

    ran = run("prune", "--days", "1", *options)
    settings = {key: environ.get(key) for key in {*environ, *os.environ}}
    with replay_server([plans("One.", to="User")]) as server:
        asked = CliRunner().invoke(main, ["--base-url", server.base_url, "-p", "q", *options], env=settings)

    assert (victim / ".tw" / "sessions" / "session-aa11" / "files" / "a.bin").exists()
    assert "removed" not in ran.stdout + asked.stderr
    if lead in (named_by_a_project, linked_in_a_project):
        assert "left out session.workspace" in ran.stderr
    elif lead is not linked_session:
        assert ran.exit_code in (1, 2)
        assert "link" in ran.stderr


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="changes an owner")
@pytest.mark.parametrize("of_another", [".", "events.jsonl"])
def test_a_session_that_another_user_made_is_not_removed(of_another, session, workspace):
    folder = session("session-aa11", days=99)
    os.chown(folder / of_another, 1000, 1000)

    assert run("prune").stdout == ""
    assert folder.exists()


def test_an_open_session_stays_however_old(session, workspace):
    folder = session("session-aa11", days=40)
    with Journal(folder / "events.jsonl"):
        assert [one.is_open for one in past_sessions(workspace)] == [True]
        assert prune_sessions(workspace, 0.0) == ([], [])

    assert [one.id for one in prune_sessions(workspace, 30.0)[0]] == ["session-aa11"]


def test_sessions_that_begin_at_once_know_the_gitignore_as_their_own(tmp_path, caplog):
    begin = threading.Barrier(4)

    def ignore():
        for number in range(400):
            begin.wait()
            ignore_in_git(tmp_path / str(number) / ".tw" / "sessions", distrusted=True)

    threads = [threading.Thread(target=ignore) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {(tmp_path / str(number) / ".tw" / ".gitignore").read_text() for number in range(400)} == {"*\n"}
    assert caplog.text == ""


def test_programs_that_remove_old_sessions_at_once_do_so_without_a_complaint(session, workspace):
    for number in range(60):
        session(f"session-{number:04x}", days=99)
    begin, found = threading.Barrier(3), []

    def prune():
        begin.wait()
        found.append(prune_sessions(workspace, 30.0))

    threads = [threading.Thread(target=prune) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [problems for _, problems in found] == [[], [], []]
    assert sum(len(gone) for gone, _ in found) == 60


def test_a_question_makes_the_workspace_ignored_by_git_and_removes_old_sessions(session, workspace, environ):
    old, young = session("session-aa11", days=31), session("session-bb22", days=29)
    with CliRunner().isolation(env={key: environ.get(key) for key in {*environ, *os.environ}}):
        mark_own_session(old)
    recordings = session("session-20240501", days=99)  # of another program
    settings = {key: environ.get(key) for key in {*environ, *os.environ}}

    def ask(*args):
        with replay_server([plans("do"), codes("1"), plans("One.", to="User")]) as server:
            return CliRunner().invoke(main, ["--base-url", server.base_url, "-p", "q", *args], env=settings)

    for days in ("0", "-1"):
        for_ever = ask("--set", f"session.keep_days={days}")
        assert (for_ever.exit_code, old.exists()) == (0, True), for_ever.stderr
    ran = ask()

    assert "removed 1 session older than 30 days (session.keep_days)\n" in ran.stderr
    assert (old.exists(), young.exists(), len(list(workspace.iterdir()))) == (False, True, 5)
    assert (recordings / "files" / "a.bin").exists()
    assert (workspace.parent / ".gitignore").read_text(encoding="utf-8") == "*\n"


@pytest.mark.parametrize("days_of_strange", [-3000, 20])
def test_saved_variables_have_an_age_and_a_size_and_sessions_outlive_them(session, workspace, days_of_strange):
    folders = [session(f"session-aa{days}", days=days) for days in (1, 2, 3, 9)]
    strange = session("session-ff0", days=days_of_strange)
    copies = [folder / "files" / ".checkpoint" / "variables" for folder in (*folders, strange)]
    for copy in copies:
        copy.parent.mkdir()
        copy.write_bytes(bytes(700_000))
    strange_copy = copies.pop()
    for folder in folders:
        mark_own_session(folder)

    prune_sessions(workspace, settings=SessionSettings(keep_days=30.0, variables_days=7.0, variables_mb=0))
    assert [copy.exists() for copy in copies] == [True, True, True, False]
    prune_sessions(workspace, settings=SessionSettings(keep_days=0.0, variables_days=7.0, variables_mb=1))

    assert [copy.exists() for copy in copies] == [True, False, False, False]
    assert all(folder.exists() for folder in folders)
    assert strange_copy.exists()  # whose it is says nothing of how much room there is for this user's


JOURNALS = {
    "nested": ('{"a":' + "[" * 30_000, ""),
    "half a pair": ('{"event": "RoundOpened", "user_query": "\\ud800 a"}', "? a"),
    "reordered": ('{"event": "RoundOpened", "user_query": "a\u202eb\\u001b[2J"}', r"a\u202eb"),
    "no text": ('{"event": "RoundOpened", "user_query": {"a": 1}}', "{'a': 1}"),
    "digits": ("9" * 5000, ""),
}


@pytest.mark.parametrize("case", JOURNALS)
def test_a_journal_that_anybody_wrote_is_listed_in_one_line(workspace, case):
    text, question = JOURNALS[case]
    folder = workspace / "session-00000000abcd"
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_text(text + "\n", encoding="utf-8")

    ran = CliRunner().invoke(main, ["sessions", "list"])

    assert ran.exit_code == 0, ran.exception
    (line,) = ran.stdout.splitlines()
    assert line.startswith("session-00000000abcd")
    assert line.endswith(f"B  {question}".rstrip())


@pytest.mark.parametrize("what", ["session", "sessions", "above"])
@pytest.mark.parametrize("name", ["session-1", "path"])
def test_a_session_that_was_named_is_that_one_whatever_code_puts_in_its_place(
    session, workspace, tmp_path, monkeypatch, what, name
):
    """Plays what code of another process's kernel, which may write above the sessions, does meanwhile."""
    mine = session("session-1", days=1)
    other = tmp_path / "private" / "sessions" / "session-1"
    other.mkdir(parents=True)
    (other / "events.jsonl").write_bytes((mine / "events.jsonl").read_bytes().replace(b"rows", b"SECRETS"))
    (tmp_path / "elsewhere").mkdir()
    for here in (tmp_path, tmp_path / "elsewhere"):  # below the current folder, and outside of it
        monkeypatch.chdir(here)
        found = session_folder(name if name != "path" else mine, workspace)
        gone, instead = {
            "session": (mine, other),
            "sessions": (workspace, other.parent),
            "above": (workspace.parent, other.parent.parent),
        }[what]
        gone.rename(gone.with_name("moved"))
        gone.symlink_to(instead)

        with pytest.raises(ConfigError, match="link|not a directory"):
            export_session(found, tmp_path / "out.md")
        with pytest.raises(ConfigError, match="not removed"):
            remove_session(found)
        gone.unlink()
        gone.with_name("moved").rename(gone)

    assert (other / "events.jsonl").exists()
    with SafeFolder(workspace) as opened:
        mine.rename(mine.with_name("moved"))
        mine.symlink_to(other)
        with pytest.raises(OSError, match="link|not a directory"):
            _real_folder(opened, "session-1")


def test_sessions_that_may_not_be_listed_are_a_problem_and_no_error(tmp_path, monkeypatch):
    workspace = tmp_path / "sessions"
    workspace.mkdir()

    def refuse(folder, **options):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(SafeFolder, "walk", refuse)

    assert prune_sessions(workspace, 1.0) == ([], [f"{workspace}: Permission denied"])
