"""A session that goes on where an earlier one ended: its rounds by `remember`, its variables by the kernel."""

import contextlib
import itertools
import json
import stat
import sys
import threading
import tracemalloc
from unittest.mock import patch

import pytest

from tw_autogen.conversation import RoundState
from tw_autogen.errors import ConfigError, JournalError, RoundError
from tw_autogen.events import CellOutput, DefinitionsChanged, SessionClosed
from tw_autogen.hosts.partner_conversation import GivenFiles, Line, PartnerConversation
from tw_autogen.kernel import LocalKernel
from tw_autogen.session import event_journal, fork_session, open_session, read_journal, read_settings, rounds_of
from tw_autogen.session.event_journal import Journal, is_marked_open
from tw_autogen.testing import ScriptedModel, codes, plans


def test_a_later_session_has_the_rounds_and_the_variables_of_an_earlier_one(tmp_path):
    folder = tmp_path / "code"

    def ask(plan, code, past=()):
        with ScriptedModel([plans(plan), plans("Done.", to="User")]) as planner, ScriptedModel([codes(code)]) as coder:
            models = {"Planner": planner, "CodeInterpreter": coder}
            kernel = lambda _: LocalKernel(folder, resume=True)  # noqa: E731 - as a user writes it
            with open_session(models, kernel=kernel, folder=tmp_path, plugins=["anomaly_detection"]) as session:
                for one in past:
                    session.remember(one)
                session.ask("go on")
                return session.rounds, coder.calls[-1]

    rounds, _ = ask("count to 41", "total = 41")
    rounds, call = ask("add one", "total + 1", past=rounds)

    assert "total: int, 41" in str(call)
    assert len(rounds) == 2
    assert "42" in rounds[-1].posts[-2].message


CHANGED = (
    b'{"event": "DefinitionsChanged", "round_id": "r", "role": "a", "changes": [%b{}], "in_force": [], "stale": []}\n'
)


def test_a_journal_whose_few_bytes_stand_for_gigabytes_is_not_read(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(CHANGED % b"" + CHANGED % (b"{}," * 9_000_000) + CHANGED % b"")

    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="line 2: it and those before it would take more than 1 GB"):
            list(read_journal(path))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert most < 150 << 20


def test_values_of_all_lines_of_a_journal_count_together(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_bytes((CHANGED % (b"{}," * 200_000)) * 45)
    events = read_journal(path)
    read = [next(events) for _ in range(27)]
    assert len(read[0].changes) == 200_001

    with pytest.raises(ValueError, match="line 28: it and those before it would take more than 1 GB"):
        next(events)


def test_brackets_that_code_prints_leave_a_journal_readable(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_bytes((CHANGED % b"").replace(b'"role": "a"', b'"role": "\\"' + b"[{," * 7_000_000 + b'"') * 3)

    assert [len(one.role) for one in read_journal(path)] == [21_000_001] * 3


@contextlib.contextmanager
def full_disk(path, *, left):
    """Let no file of this process become longer than one is, and a few bytes: a disk that is full for a moment."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + left, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.skipif(sys.platform == "win32", reason="it has no limit on the length of files")
@pytest.mark.parametrize("left", [0, 10, 20_000])
def test_a_line_that_a_full_disk_cuts_off_does_no_harm_to_the_journal(tmp_path, left):
    said = [plans(one, to="User") for one in ("1", "x" * 30_000, "3") if left > 1000 or len(one) == 1]
    with open_session(ScriptedModel(said), folder=tmp_path, kernel=None) as session:
        session.ask("one")
        with full_disk(session.journal, left=left), pytest.raises((JournalError, RoundError), match=r"events\.jsonl"):
            session.ask("two")
        assert session.ask("three").text == "3"

    with open_session(ScriptedModel([]), folder=tmp_path, kernel=None, resume=session.id) as later:
        assert [one.user_query for one in later.rounds][:: len(later.rounds) - 1] == ["one", "three"]
        assert later.rounds[-1].posts[-1].message == "3"


TEXT = CellOutput(1, "stdout", "x" * (2 << 20))
VALUES = DefinitionsChanged("r", "a", [{}] * 200_000, [], [])
FULL = {"by the bytes of its file": (TEXT, 113), "by the memory that its events take": (VALUES, 25)}
"""So many of them leave no room for a round; a few more would not be read again."""


def fill(journal, event, count):
    line = json.dumps(event.to_dict()).encode() + b"\n"
    with journal.open("ab") as file:
        for _ in range(count):
            file.write(line)


@pytest.mark.parametrize(("event", "count"), FULL.values(), ids=FULL)
def test_a_journal_takes_no_more_than_is_read_again(tmp_path, event, count):
    def opened(*replies, resume=None):
        return open_session(ScriptedModel(replies), folder=tmp_path, kernel=None, resume=resume, trust=bool(resume))

    with opened(plans("1", to="User")) as session:
        session.ask("one")
        assert not session.full
    fill(session.journal, event, count)
    with opened(resume=session.id) as again:
        with pytest.raises(
            JournalError, match=r"events\.jsonl: can't be written: it has nearly as much as is read again"
        ):
            again.ask("two")
        assert again.full
        assert len(again.rounds) == 1
        with pytest.raises(JournalError, match=r"fork_session\(…, words=False\), begins one with these files"):
            list(map(again.emit, [event] * 30))

    with opened(resume=session.id) as later:
        assert [one.user_query for one in later.rounds] == ["one"]
    fresh = fork_session(session.journal.parent, words=False, trust=True)
    with opened(plans("2", to="User"), resume=fresh.name) as other:
        assert other.ask("two").text == "2"


def test_a_round_that_fills_the_journal_fails_and_what_was_said_is_read_again(tmp_path):
    def fail(messages):
        for _ in range(30):
            session.emit(TEXT)
        raise AssertionError("the journal takes more than is read again")

    with (
        patch.object(event_journal, "LARGEST_BYTES", 40 << 20),
        open_session(ScriptedModel([fail]), folder=tmp_path, kernel=None) as session,
        pytest.raises(RoundError, match="it has nearly as much as is read again"),
    ):
        session.ask("one")

    (past,) = rounds_of(read_journal(session.journal))
    assert (past.user_query, past.state) == ("one", RoundState.failed)


def test_a_conversation_whose_session_is_full_goes_on_in_another_one_that_knows_what_was_said(tmp_path):
    model = ScriptedModel([plans("Hello, Ann.", to="User"), plans("You are Ann.", to="User")])
    talk = PartnerConversation(
        lambda: open_session(model, folder=tmp_path, kernel=None), GivenFiles((), read_settings())
    )
    with patch.object(event_journal, "LARGEST_BYTES", 40 << 20):
        assert talk.ask([Line("I am Ann.")], stopped=threading.Event()).text == "Hello, Ann."
        first = talk.session
        for _ in range(5):
            first.emit(TEXT)
        assert talk.ask([Line("Who am I?")], stopped=threading.Event()).text == "You are Ann."

    assert first.closed
    assert [one.user_query[:9] for one in talk.rounds] == ["I am Ann.", "Who am I?"]
    assert "Hello, Ann." in str(model.calls[-1])
    talk.close()


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such locks")
@pytest.mark.parametrize("again", [False, True])
def test_a_session_that_opens_while_another_process_looks_at_it_is_marked_as_open(tmp_path, again):
    fcntl = pytest.importorskip("fcntl")
    path = tmp_path / "events.jsonl"
    path.touch(mode=0o600)
    with path.open("rb") as looking:
        fcntl.flock(looking, fcntl.LOCK_EX)
        timer = threading.Timer(0.05, fcntl.flock, (looking, fcntl.LOCK_UN))
        timer.start()
        with Journal(path, goes_on=again), path.open("rb") as other:
            assert is_marked_open(other.fileno())
        timer.join()


def test_a_new_session_in_the_folder_of_one_that_died_within_a_line_writes_behind_whole_lines(tmp_path):
    path = tmp_path / "events.jsonl"
    with Journal(path) as journal:
        journal.write(SessionClosed("first"))
        path.write_bytes(path.read_bytes() + b'{"seq": 1, "ev')
        with Journal(path) as beside:  # another one may be writing
            assert path.read_bytes().endswith(b'"ev')
            assert beside.path == path
        with path.open("rb") as other:
            assert is_marked_open(other.fileno())
    with Journal(path) as journal:
        journal.write(SessionClosed("second"))

    assert [one.session_id for one in read_journal(path)] == ["first", "second"]


def open_past(folder, planner, coder, **more):
    models = {"Planner": planner, "CodeInterpreter": coder}
    return open_session(models, folder=folder, **more)


def first_day(folder, *, code="total = 41"):
    with (
        ScriptedModel([plans("count"), plans("Done.", to="User")]) as planner,
        ScriptedModel([codes(code)]) as coder,
        open_past(folder, planner, coder) as session,
    ):
        session.ask("count to 41")
        return session


def test_a_session_is_gone_on_with_in_its_folder_with_rounds_variables_and_journal(tmp_path):
    first = first_day(tmp_path)
    assert stat.S_IMODE((first.folder / ".checkpoint" / "variables").stat().st_mode) == 0o600
    assert stat.S_IMODE((first.folder / ".checkpoint" / "cells.jsonl").stat().st_mode) == 0o600

    with (
        ScriptedModel([plans("add one"), plans("It is 42.", to="User")]) as planner,
        ScriptedModel([codes("total + 1")]) as coder,
        open_past(tmp_path, planner, coder, resume=first.id) as session,
    ):
        back = [variable.name for variable in session.code_variables()]
        session.ask("add one")

        assert (session.id, session.folder, back) == (first.id, first.folder, ["total"])
        assert session.earlier.variables == ("total",)
        assert [one.user_query for one in session.rounds] == ["count to 41", "add one"]
        assert "count to 41" in str(planner.calls[0])
        assert "42" in session.rounds[-1].posts[-2].message
    assert [one.state.value for one in rounds_of(read_journal(session.journal))] == ["finished", "finished"]


def test_a_request_that_was_cut_off_is_gone_on_with_from_its_last_post(tmp_path):
    first = first_day(tmp_path)
    lines = first.journal.read_bytes().splitlines(keepends=True)
    posts = [number for number, line in enumerate(lines) if b'"PostClosed"' in line]
    first.journal.write_bytes(b"".join(lines[: posts[2] + 1]) + lines[posts[2] + 1][:20])

    with (
        ScriptedModel([plans("Done after all.", to="User")]) as planner,
        ScriptedModel([]) as coder,
        open_past(tmp_path, planner, coder, resume=first.folder) as session,
    ):
        assert session.cut_off.user_query == "count to 41"
        assert "count to 41" in session.cut_off.read_board("Planner")
        assert session["total"] == 41
        assert session.go_on().text == "Done after all."
        with pytest.raises(ConfigError, match="no request was cut off"):
            session.go_on()
    (past,) = rounds_of(read_journal(session.journal))
    assert (past.state.value, past.spent["calls"]) == ("finished", 3)


def test_files_of_a_request_that_was_cut_off_are_files_of_the_session(tmp_path):
    first = first_day(tmp_path, code="open('a.csv', 'w').close()")
    lines = first.journal.read_bytes().splitlines(keepends=True)
    first.journal.write_bytes(b"".join(itertools.takewhile(lambda line: b'"CellRan"' not in line, lines)))

    with open_past(tmp_path, ScriptedModel([]), ScriptedModel([]), resume=first.id) as session:
        assert [artifact.name for artifact in session.artifacts] == ["a.csv"]


def test_a_new_request_closes_the_one_that_was_cut_off(tmp_path):
    first = first_day(tmp_path)
    lines = first.journal.read_bytes().splitlines(keepends=True)
    first.journal.write_bytes(b"".join(itertools.takewhile(lambda line: b'"RoundClosed"' not in line, lines)))

    with (
        ScriptedModel([plans("Yes.", to="User")]) as planner,
        ScriptedModel([]) as coder,
        open_past(tmp_path, planner, coder, resume=first.id) as session,
    ):
        with pytest.raises(ConfigError, match="there is no such file"):
            session.ask("are you there?", files="mistyped.csv")
        assert session.cut_off is session.rounds[-1]
        assert session.ask("are you there?").text == "Yes."
        assert [(one.state.value, one.error) for one in session.rounds] == [
            ("failed", "it was cut off"),
            ("finished", ""),
        ]
        assert session.rounds[0].spent["calls"] == 3


@pytest.mark.parametrize("agrees", [True, False], ids=["again", "not again"])
def test_cells_that_no_checkpoint_covers_are_run_again_where_a_person_agrees(tmp_path, agrees):
    first = first_day(tmp_path)
    (first.folder / ".checkpoint" / "variables").unlink()
    asked = []

    def approve(proposal):
        asked.append((proposal.kind, proposal.text))
        return agrees

    with (
        ScriptedModel([]) as planner,
        ScriptedModel([]) as coder,
        open_past(tmp_path, planner, coder, resume=first.id, approve=approve) as session,
    ):
        assert [variable.name for variable in session.code_variables()] == ["total"] * agrees
    assert asked == [("rerun", "total = 41")]


def damaged(first):
    lines = first.journal.read_bytes().splitlines(keepends=True)
    first.journal.write_bytes(b"".join([*lines[:2], b"{cut\n", *lines[2:]]))
    return first.id


def moved(first):
    there = first.folder.parents[1] / "session-0123"
    first.folder.parent.rename(there)
    return there


def empty(first):
    first.journal.unlink()
    return first.folder.parent


NOT_GONE_ON_WITH = {
    "unknown": (lambda first: "session-ffff", r"you have no session session-ffff in .*; the newest: session-"),
    "damaged": (damaged, r"events\.jsonl: the journal is damaged: line 3: .*Nothing was changed"),
    "moved": (moved, r"this user did not make this session in this folder"),
    "its journal": (
        lambda first: first.journal,
        r"events\.jsonl is a file; name the folder of the session: .*/session-\w+",
    ),
    "no journal": (empty, r"there is no session"),
}


@pytest.mark.parametrize("case", NOT_GONE_ON_WITH)
def test_what_can_not_be_gone_on_with_is_an_error_and_stays_as_it_is(tmp_path, case):
    change, words = NOT_GONE_ON_WITH[case]
    first = first_day(tmp_path)
    wanted = change(first)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    with ScriptedModel([]) as model, pytest.raises(ConfigError, match=words):
        open_session(model, folder=tmp_path, resume=wanted)

    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_session_that_is_open_is_not_gone_on_with(tmp_path):
    with (
        ScriptedModel([]) as model,
        open_session(model, folder=tmp_path) as session,
        pytest.raises(ConfigError, match=r"session-\w+ is open in another process"),
    ):
        open_session(model, folder=tmp_path, resume=session.id)


def test_where_a_setting_says_so_nothing_of_the_variables_is_kept(tmp_path):
    with (
        ScriptedModel([plans("count"), plans("Done.", to="User")]) as planner,
        ScriptedModel([codes("total = 41")]) as coder,
        open_past(tmp_path, planner, coder, settings={"kernel.checkpoint_seconds": 0}) as session,
    ):
        session.ask("count")
    assert not (session.folder / ".checkpoint").exists()
