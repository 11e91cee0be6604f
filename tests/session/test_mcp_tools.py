"""MCP servers of a session: their tools are what code calls, and they end with it, however it ends."""

import json
import os
import sys
import threading
from pathlib import Path

import pytest

from tw_autogen import callable_plugin, open_session
from tw_autogen.approval import Decision
from tw_autogen.errors import ConfigError
from tw_autogen.events import ApprovalAsked, ApprovalDecided
from tw_autogen.session import read_settings, review_folder
from tw_autogen.testing import ScriptedModel, codes, plans
from tw_autogen.trust_store import TrustStore

pytest.importorskip("mcp", reason="needs the extra `mcp`")

PROGRAMS = Path(__file__).parents[1] / "plugin" / "mcp"


@pytest.fixture
def program():
    """Name the server's program: one that starts quickly; the other one is written with the SDK, and has more."""
    return "notes.py"


@pytest.fixture
def servers(program, tmp_path):
    """Give the JSON of a server that writes its process id to a file, and the file; no thread may stay."""
    before = {one.name for one in threading.enumerate()}
    path = tmp_path / "pid"
    started = {"command": sys.executable, "args": [str(PROGRAMS / program), str(path)]}
    yield {"mcpServers": {"weather": started}}, path
    assert not [one for one in threading.enumerate() if "portal" in one.name and one.name not in before]


def has_ended(pid_file):
    try:
        os.kill(int(pid_file.read_text()), 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("program", ["server.py"])
def test_code_calls_tools_and_gets_values_files_and_errors(servers, tmp_path):
    code = """
report_of_rome = report("Rome", days=2)
try:
    refuse("no rain")
except Exception as error:
    print(type(error).__name__, error)
try:
    die("out of memory")
except Exception as error:
    print(error)
print(report_of_rome["celsius"] + 1, len(long(150_000)), words(picture()), count())
"""
    replies = [plans("look it up", then="User"), codes(code)]
    with (
        ScriptedModel(replies) as model,
        open_session(model, mcp_servers=servers[0], folder=tmp_path / "sessions") as session,
    ):
        answer = session.ask("How warm is it in Rome?")
        prompt = model.calls[1][0]["content"]
        assert "def report(city: str, unit: Literal['C', 'F'] = 'C', days: int | None = None) -> dict:" in prompt
        assert "- report(city: str): Tell the weather of a city." in model.calls[0][0]["content"]
        assert not has_ended(servers[1])

    assert "HostCallError refuse: ToolError: Error executing tool refuse: no rain" in answer.text
    assert "ended while 'die' ran. Its last words: out of memory" in answer.text
    assert "22.5 150000 You said [image/png saved as picture.png] 1" in answer.text
    assert sorted(artifact.path.name for artifact in answer.artifacts) == ["long.txt", "picture.png"]
    assert has_ended(servers[1])
    assert (session.journal.parent / "mcp" / "1-weather.log").read_text().endswith("out of memory\n")


def test_a_model_that_may_only_call_plugins_gets_the_tools_too(servers, tmp_path):
    events = []
    roles = ["planner", "code_interpreter_plugin_only"]
    with (
        ScriptedModel([]) as model,
        open_session(model, roles=roles, mcp_servers=servers[0], folder=tmp_path, handlers=[events.append]),
    ):
        assert "report" in events[0].plugins


@pytest.mark.parametrize("form", ["file", "text", "yaml", "environment"])
def test_settings_name_the_servers(form, servers, tmp_path):
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps(servers[0]), encoding="utf-8")
    environ = {"HOME": str(tmp_path)}
    if form == "environment":
        environ["TW_AUTOGEN_PLUGIN_MCP_SERVERS"] = str(path)
    elif form == "yaml":
        (tmp_path / "tw_autogen.yaml").write_text(json.dumps({"plugin": {"mcp_servers": servers[0]["mcpServers"]}}))
    given = {"file": {"plugin.mcp_servers": str(path)}, "text": {"plugin.mcp_servers": path.read_text()}}
    settings = read_settings(given.get(form, {}), environ=environ, project=tmp_path, trust=form == "yaml")

    with (
        ScriptedModel([]) as model,
        open_session(model, settings=settings, folder=tmp_path / "sessions") as session,
    ):
        assert "report" in session.roles[1].plugin_names
    assert has_ended(servers[1])


def test_a_tool_gives_way_to_a_plugin_of_that_name(servers, tmp_path):
    def report() -> str:
        """Tell nothing."""
        return "mine"

    code = "print(report(), weather_report('Rome')['city'], weather_open())"
    with (
        ScriptedModel([plans("try", then="User"), codes(code)]) as model,
        open_session(
            model, plugins=[callable_plugin(report)], mcp_servers=servers[0], folder=tmp_path / "sessions"
        ) as session,
    ):
        assert session.ask("go").text == "mine Rome opened"


def test_servers_end_when_a_later_part_of_the_session_cannot_be_made(servers, tmp_path):
    def broken():
        raise ConfigError("no such role")

    with pytest.raises(ConfigError, match="no such role"):
        open_session(
            ScriptedModel([]), roles=["code_interpreter", broken], mcp_servers=servers[0], folder=tmp_path / "sessions"
        )

    assert has_ended(servers[1])


def test_a_wrong_setting_is_told_with_its_place_before_anything_starts(tmp_path):
    settings = {"plugin.mcp_servers": {"weather": {"comand": "x"}}}

    with pytest.raises(ConfigError, match=r"the keyword 'plugin.mcp_servers': MCP server 'weather': unknown key 'coma"):
        open_session(ScriptedModel([]), settings=settings, folder=tmp_path)


def noting(path, *, last):
    """Give code that writes a note and then does something else."""
    return f"note({str(path)!r}, 'paid')\n{last}"


def test_a_second_try_of_the_model_does_not_repeat_a_call_that_writes(servers, tmp_path):
    path = tmp_path / "notes"
    replies = [
        plans("pay", then="User"),
        codes(noting(path, last="1 / 0")),
        codes(noting(path, last="print('done')")),
        plans("pay again", then="User"),
        codes(noting(path, last="print('done')")),
    ]
    with (
        ScriptedModel(replies) as model,
        open_session(model, mcp_servers=servers[0], folder=tmp_path / "sessions") as session,
    ):
        assert session.ask("Pay.").text == "done"
        assert path.read_text() == "paid\n"
        assert session.ask("Pay once more.").text == "done"
        assert path.read_text() == "paid\npaid\n"


def test_a_call_that_lost_its_server_is_sent_once_for_a_request(servers, tmp_path):
    path = tmp_path / "notes"
    code = f"note_and_die({str(path)!r}, 'paid')"
    with (
        ScriptedModel(
            [plans("pay"), codes(code), codes(code), "It is not known.", plans("Unknown.", to="User")]
        ) as model,
        open_session(model, mcp_servers=servers[0], folder=tmp_path / "sessions") as session,
    ):
        session.ask("Pay.")

        assert path.read_text() == "paid\n"
        assert (
            "this very call was sent before for this request, and its answer never came"
            in model.calls[3][-1]["content"]
        )


def project(tmp_path, servers, *, own=None, trust=True, **more):
    """Lay out a project's file that names the servers; give the settings that are read from it.

    Args:
        own: What the user says.
        trust: For this call; else it was asked for, and is remembered.
    """
    plugin = {"mcp_servers": servers[0]["mcpServers"], **more}
    (tmp_path / "tw_autogen.yaml").write_text(json.dumps({"plugin": plugin}), encoding="utf-8")
    if not trust:
        review = review_folder(own, project=tmp_path, environ={"HOME": str(tmp_path)})
        assert any("would start" in want.does for want in review.wants)
        assert review.remember(review.sha256()) == ""
    return read_settings(own, environ={"HOME": str(tmp_path)}, project=tmp_path, trust=trust)


NEVER = {
    "nobody says anything": {},
    "the folder says never": {"mcp_approval": "never"},
    "the user says never": {"own": {"plugin.mcp_approval": "never"}},
    "the user trusts the folder as it is": {"trust": False},
    "the folder says never, and is trusted as it is": {"mcp_approval": "never", "trust": False},
}


@pytest.mark.parametrize("case", NEVER)
def test_with_nobody_to_ask_a_folder_s_servers_only_read(case, servers, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", f"{tmp_path}-state")
    more = NEVER[case]
    path = tmp_path / "notes"
    path.write_text("old", encoding="utf-8")
    code = f"""
print(noted({str(path)!r}))
try:
    note({str(path)!r}, "new")
except Exception as error:
    print(error)
"""
    with (
        ScriptedModel([plans("note it", then="User"), codes(code)]) as model,
        open_session(model, settings=project(tmp_path, servers, **more), folder=tmp_path / "sessions") as session,
    ):
        answer = session.ask("Note it.")

    assert answer.text.startswith("old\n")
    assert "note is not marked as read-only, and its server 'weather' is named by a project's file" in answer.text
    assert path.read_text() == "old"


def test_a_user_who_says_never_and_trusts_a_folder_that_showed_its_servers_lets_them_write(
    servers, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_STATE_HOME", f"{tmp_path}-state")
    settings = project(tmp_path, servers, own={"plugin.mcp_approval": "never"}, trust=False)
    path = tmp_path / "notes"
    with (
        ScriptedModel([plans("note it", then="User"), codes(noting(path, last="print('done')"))]) as model,
        open_session(model, settings=settings, folder=tmp_path / "sessions") as session,
    ):
        session.ask("Note it.")

    assert path.read_text() == "paid\n"


def test_a_user_s_never_ends_with_the_trust_of_the_folder_that_names_the_server(servers, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", f"{tmp_path}-state")
    settings = project(tmp_path, servers, own={"plugin.mcp_approval": "never"}, trust=False)
    path = tmp_path / "notes"
    replies = [
        plans("note it", then="User"),
        codes(noting(path, last="print('done')")),
        plans("note it again", then="User"),
        codes(f"try:\n    note({str(path)!r}, 'again')\nexcept Exception as error:\n    print(error)"),
    ]
    with (
        ScriptedModel(replies) as model,
        open_session(model, settings=settings, folder=tmp_path / "sessions") as session,
    ):
        session.ask("Note it.")
        TrustStore.of_user().end(str(tmp_path))  # as a kernel does, whose code may write where the program lies
        answer = session.ask("Note it again.")

    assert "its server 'weather' is named by a project's file" in answer.text
    assert path.read_text() == "paid\n"


def test_a_person_is_asked_with_events_and_one_that_says_no_is_told_to_the_code(servers, tmp_path):
    path, events = tmp_path / "notes", []
    code = f"""
for one in ("a", "b"):
    try:
        print(note({str(path)!r}, one), report("Rome")["celsius"])
    except Exception as error:
        print(error)
"""

    def approve(proposal):
        return Decision('"words": "a"' in proposal.text or "tool: report" in proposal.text, reason="enough")

    with (
        ScriptedModel([plans("note it", then="User"), codes(code)]) as model,
        open_session(
            model,
            settings=project(tmp_path, servers),
            folder=tmp_path / "sessions",
            approve=approve,
            handlers=[events.append],
        ) as session,
    ):
        answer = session.ask("Note it.")

    assert answer.text.startswith("noted a 21.5\n")
    assert "note: the User does not allow this call: enough" in answer.text
    assert path.read_text() == "a\n"
    asked = [event.kind for event in events if isinstance(event, ApprovalAsked)]
    given = [event.approved for event in events if isinstance(event, ApprovalDecided)]
    assert (asked, given) == (["tool"] * 3, [True, True, False])
