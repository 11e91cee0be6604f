"""A journal whose fields are of wrong types is damaged, which is told; nothing that reads it ends with a traceback."""

import dataclasses
import json

import pytest
from click.testing import CliRunner

from tw_autogen import open_session
from tw_autogen.bounded_json import check_of
from tw_autogen.cli import main
from tw_autogen.errors import ConfigError
from tw_autogen.events import Event, RoundOpened, SessionClosed, SessionOpened, event_from_dict
from tw_autogen.planner import Planner
from tw_autogen.session import Session, export_session, read_events, read_journal
from tw_autogen.testing import ScriptedModel, plans

FILE = {"name": "a.csv", "kind": "file", "path": "/a.csv", "preview": ""}


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    """Give the journal of a session with an answer, a file and a cell that failed, as dictionaries."""
    place = tmp_path_factory.mktemp("sessions")
    with open_session(ScriptedModel([plans("Done.", to="User")]), folder=place) as session:
        session.ask("what is it?")
        session.run_code("open('o.txt', 'w').write('1')")
        session.run_code("1 / 0")
    return [json.loads(line) for line in session.journal.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("ending", ["ipynb", "md", "html", "py"])
@pytest.mark.parametrize(
    ("event", "field", "value", "said"),
    [
        ("RoundOpened", "files", -1, "files: expected list[str], got -1"),
        ("RoundOpened", "files", ["a", 5], "files: expected list[str], got ['a', 5]"),
        ("SessionOpened", "plugins", None, "plugins: expected list[str], got None"),
        ("CellStarted", "cell", [], "cell: expected int, got []"),
        ("CellRan", "cell", True, "cell: expected int, got True"),
        ("CellRan", "artifacts", [FILE, 5], "artifacts: expected list[dict[str, str]], got [{"),
        ("CellRan", "artifacts", [{"path": "x"}], "artifacts: each needs name, path"),
        ("RoundClosed", "spent", {"calls": "2"}, "spent: expected dict[str, float], got {'calls': '2'}"),
        ("RoundClosed", "state", "ended", "state: 'ended' is none of created, failed, finished"),
    ],
)
def test_a_field_of_a_wrong_type_is_told_as_damage(tmp_path, monkeypatch, lines, event, field, value, said, ending):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "w" / "session-abc123"
    folder.mkdir(parents=True)
    number = next(at for at, line in enumerate(lines) if line["event"] == event and field in line)
    changed = [*lines[:number], {**lines[number], field: value}, *lines[number + 1 :]]
    (folder / "events.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in changed), encoding="utf-8")

    ran = CliRunner().invoke(
        main, ["sessions", "export", "--workspace", "w", "abc123", f"out.{ending}"], catch_exceptions=False
    )

    assert ran.exit_code
    assert f"events.jsonl: the journal is damaged: line {number + 1}: {said}" in ran.output
    assert not (tmp_path / f"out.{ending}").exists()
    with pytest.raises(ConfigError, match="the journal is damaged"):
        read_events(folder)


def test_a_cell_without_a_number_of_its_own_is_exported(tmp_path, lines):
    folder = tmp_path / "session-abc123"
    folder.mkdir()
    changed = [{**line, "cell": -1} if "cell" in line else line for line in lines]
    (folder / "events.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in changed), encoding="utf-8")
    assert export_session(folder, tmp_path / "out.ipynb").exists()


@pytest.mark.parametrize(
    ("kind", "extra"),
    [
        ("artifact_paths", [{"path": 5, "name": "a", "kind": "file"}]),
        ("artifact_paths", [{"path": "a"}]),
        ("definitions", {"do": "set"}),
        ("execution_status", ["warnings"]),
    ],
)
def test_what_travels_with_a_post_has_the_form_that_its_type_has(kind, extra):
    post = {"send_from": "CodeInterpreter", "send_to": "Planner", "message": "done"}
    posted = {"event": "PostClosed", "round_id": "r", "post_id": "", "post": post}
    with pytest.raises(ValueError, match=rf"extra of {kind}: "):
        event_from_dict(
            {**posted, "post": {**post, "attachment_list": [{"type": kind, "content": "", "extra": extra}]}}
        )


@dataclasses.dataclass(frozen=True)
class CacheHit(Event):
    """An event of a user's own."""

    key: str


def test_events_of_a_users_own_go_to_handlers_and_leave_the_journal_readable(tmp_path):
    lookalike = dataclasses.make_dataclass(
        "SessionClosed", [("session_id", str), ("why", str)], bases=(Event,), frozen=True, namespace={"__module__": "x"}
    )
    mine, heard = (CacheHit("a"), lookalike("s", "done"), type("Ours", (RoundOpened,), {})("r", "q", [])), []
    with Session([Planner(ScriptedModel([]), [])], folder=tmp_path, handlers=[heard.append]) as session:
        for one in mine:
            session.emit(one)

    assert [one for one in heard if one in mine] == list(mine)
    assert [type(one) for one in read_journal(session.journal)] == [SessionOpened, SessionClosed]
    assert type(event_from_dict({"event": "SessionClosed", "session_id": "s"})) is SessionClosed
    with pytest.raises(ValueError, match="no event is called 'CacheHit'"):
        event_from_dict(mine[0].to_dict())


def test_every_event_has_types_that_can_be_checked(lines):
    for kind in (subclass for subclass in Event.__subclasses__() if subclass.__module__ == Event.__module__):
        with pytest.raises(TypeError):  # all of its fields are missing
            event_from_dict({"event": kind.__name__})
    for line in lines:
        event_from_dict(line)


def test_a_check_tells_types_apart():
    assert check_of(dict[str, float | None])({"a": 1, "b": None})
    assert not check_of(dict[str, float | None])({"a": True})
    assert not any(map(check_of(int), (1.0, 10**400)))
    assert not any(map(check_of(float), (float("inf"), float("nan"), 10**400)))
    assert not check_of(list[str])("text")
    with pytest.raises(KeyError):
        check_of(set)
