"""Calls of MCP tools: a person is asked about those that write, and none is repeated by a second try of itself."""

import sys
import threading
from pathlib import Path

import pytest

from tw_autogen.approval import Decision
from tw_autogen.errors import ToolCallRefusedError
from tw_autogen.kernel.guest import PluginContext
from tw_autogen.plugin.mcp import McpServers, read_mcp_servers
from tw_autogen.plugin.mcp.call_gate import Gate
from tw_autogen.plugin.mcp.config import McpServer

pytest.importorskip("mcp", reason="needs the extra `mcp`")

SERVER = {"weather": {"command": sys.executable, "args": [str(Path(__file__).parent / "notes.py")]}}
READ, TWICE = {"readOnlyHint": True}, {"idempotentHint": True}
UNASKED, ASKED, REFUSED = "called unasked", "called when allowed", "refused"


def gate(approval="writes", approve=None, marks=None, *, from_folder=False):
    server = McpServer("crm", command="crm-server", origin="tw_autogen.yaml", from_folder=from_folder)
    tool = {"name": "write-row", "annotations": marks}
    return Gate(server, tool, approval=approval, approve=approve, asking=threading.Lock())


@pytest.mark.parametrize(
    ("approval", "marks", "from_folder", "with_person", "alone"),
    [
        ("writes", None, False, ASKED, UNASKED),
        ("writes", {}, True, ASKED, REFUSED),
        ("writes", TWICE, True, ASKED, REFUSED),
        ("writes", {"readOnlyHint": False}, True, ASKED, REFUSED),
        ("writes", {"readOnlyHint": "yes"}, True, ASKED, REFUSED),
        ("writes", ["readOnlyHint"], True, ASKED, REFUSED),
        ("writes", READ, False, UNASKED, UNASKED),
        ("writes", READ, True, UNASKED, UNASKED),
        ("always", READ, False, ASKED, REFUSED),
        ("always", None, False, ASKED, REFUSED),
        ("never", None, False, UNASKED, UNASKED),
        ("never", READ, False, UNASKED, UNASKED),
    ],
)
def test_who_is_asked_depends_on_the_setting_the_marks_and_the_server_s_origin(
    approval, marks, from_folder, with_person, alone
):
    asked = []
    gate(approval, lambda proposal: asked.append(proposal) or True, marks, from_folder=from_folder).allow("w", {})
    assert with_person == (ASKED if asked else UNASKED)

    if with_person == ASKED:
        with pytest.raises(ToolCallRefusedError, match="w: the User does not allow this call: not today"):
            gate(approval, lambda proposal: Decision(False, reason="not today"), marks).allow("w", {})
    if alone == REFUSED:
        with pytest.raises(ToolCallRefusedError, match="w.* and nobody can be asked"):
            gate(approval, None, marks, from_folder=from_folder).allow("w", {})
    else:
        gate(approval, None, marks, from_folder=from_folder).allow("w", {})


def test_a_person_sees_server_tool_and_arguments_and_long_ones_are_cut():
    asked = []
    tool = gate(approve=lambda proposal: asked.append(proposal) or True)

    tool.allow("write_row", {"rows": [1, "ä\u202e"], "to": "crm"})
    tool.allow("write_row", {"text": "x" * 50_000})

    assert asked[0].kind == "tool"
    assert asked[0].shown == (
        "server: crm (`crm-server`)\ntool: write-row\n"
        'arguments: {\n "rows": [\n  1,\n  "ä\\u202e"\n ],\n "to": "crm"\n}'
    )
    assert len(asked[1].text) < 4200
    assert "46015 characters are not shown" in asked[1].text


def test_one_answer_can_allow_all_later_calls_of_a_tool():
    asked = []
    tool = gate(approve=lambda proposal: asked.append(proposal) or Decision(True, always=True))

    tool.allow("w", {"n": 1})
    tool.allow("w", {"n": 2})
    tool.allow("w", {"n": 1}, lost=True)

    assert [one.findings != () for one in asked] == [False, True]


def test_two_calls_side_by_side_ask_one_after_the_other():
    running, most = [], []

    def approve(proposal):
        running.append(1)
        most.append(len(running))
        running.pop()
        return True

    tool = gate(approve=approve)
    threads = [threading.Thread(target=tool.allow, args=("w", {"n": n})) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert most == [1] * 20


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Give the tools of one server, as a session would get them, for each way of being asked."""
    folder, made = tmp_path_factory.mktemp("mcp"), []

    def begin(**more):
        servers = McpServers(read_mcp_servers(SERVER), folder=folder / "logs", start_seconds=60, **more)
        made.append(servers)
        context = PluginContext(folder)
        return {spec.name: spec.connect(context) for spec in servers.specs()}, context

    yield begin
    for one in made:
        one.close()


@pytest.fixture(scope="module")
def alone(opened):
    return opened()


def lines(path):
    return path.read_text(encoding="utf-8").split() if path.exists() else []


def begin_cell(tools, *, second_try):
    for tool in tools.values():
        tool.begin_cell(second_try=second_try)


def test_a_second_try_gets_the_answers_of_calls_that_were_made_and_makes_the_others(alone, tmp_path):
    tools, context = alone
    path = tmp_path / "notes"
    begin_cell(tools, second_try=False)
    for words in ("a", "b", "a"):
        tools["note"](str(path), words)
    context.take()

    begin_cell(tools, second_try=True)
    said = [tools["note"](str(path), words) for words in ("a", "a", "b", "a", "c")]

    assert lines(path) == ["a", "b", "a", "a", "c"]
    assert said == ["noted a", "noted a", "noted b", "noted a", "noted c"]
    assert [words for _, _, words in context.take()[1]] == [
        "the cell that failed has made this very call; it was not sent a second time, and gives what it gave then"
    ] * 3

    begin_cell(tools, second_try=True)
    for words in ("a", "b", "a", "a", "c"):
        tools["note"](str(path), words)
    assert len(lines(path)) == 5

    begin_cell(tools, second_try=False)
    tools["note"](str(path), "a")
    assert len(lines(path)) == 6


@pytest.mark.parametrize(("name", "times"), [("note", 1), ("note_once", 2)])
def test_a_tool_that_says_so_is_repeated(name, times, alone, tmp_path):
    tools, _ = alone
    path = tmp_path / "notes"
    begin_cell(tools, second_try=False)
    tools[name](str(path), "a")
    begin_cell(tools, second_try=True)
    tools[name](str(path), "a")

    assert lines(path) == ["a"] * times


def test_what_only_reads_is_read_again(alone, tmp_path):
    tools, _ = alone
    path = tmp_path / "notes"
    path.write_text("old", encoding="utf-8")
    begin_cell(tools, second_try=False)
    tools["noted"](str(path))
    path.write_text("new", encoding="utf-8")
    begin_cell(tools, second_try=True)

    assert tools["noted"](str(path)) == "new"


def test_a_call_that_its_server_refused_is_made_again(alone):
    tools, _ = alone
    for second_try in (False, True):
        begin_cell(tools, second_try=second_try)
        with pytest.raises(Exception, match="ToolError|no rain"):
            tools["refuse"]("no rain")


def test_a_call_whose_connection_broke_is_made_once_and_a_second_try_is_told_why(alone, tmp_path):
    tools, _ = alone
    path = tmp_path / "notes"
    begin_cell(tools, second_try=False)
    with pytest.raises(ConnectionError, match="ended while 'note_and_die' ran"):
        tools["note_and_die"](str(path), "a")
    for same_cell in (True, False, False):
        if not same_cell:
            begin_cell(tools, second_try=True)
        with pytest.raises(ToolCallRefusedError, match="note_and_die: this very call was sent before.*never came"):
            tools["note_and_die"](str(path), "a")

    assert lines(path) == ["a"]
    assert tools["note"](str(path), "b") == "noted b"


def test_a_call_that_took_too_long_is_not_made_again(opened):
    tools, _ = opened(call_seconds=1)
    begin_cell(tools, second_try=False)
    with pytest.raises(TimeoutError, match="did not answer 'hang'"):
        tools["hang"]()
    begin_cell(tools, second_try=True)

    with pytest.raises(ToolCallRefusedError, match="its answer never came"):
        tools["hang"]()


def test_a_person_may_have_it_made_again(opened, tmp_path):
    asked, path = [], tmp_path / "notes"
    tools, _ = opened(approve=lambda proposal: asked.append(proposal) or True)
    for second_try in (False, True):
        begin_cell(tools, second_try=second_try)
        with pytest.raises(ConnectionError, match="ended while 'note_and_die' ran"):
            tools["note_and_die"](str(path), "a")

    assert lines(path) == ["a", "a"]
    assert [len(one.findings) for one in asked] == [0, 1]
    assert (
        "its answer never came, or was too large to be kept; it may take effect a second time" in asked[1].findings[0]
    )
