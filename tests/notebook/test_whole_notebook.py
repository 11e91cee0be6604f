"""A whole notebook with the magic, run by nbclient as nbconvert and papermill run one."""

import re

import nbformat
import pytest

from tw_autogen.testing import codes, plans, replay_server

nbclient = pytest.importorskip("nbclient", reason="runs notebooks: pip install nbclient")

CELLS = [
    "%load_ext tw_autogen\nimport pandas as pd\nloads = pd.DataFrame({'x': [1, 2, 3]})",
    "%%tw --var loads\nWhat is the sum of x?",
    "%tw And twice that?",
    "print(tw_session['total'])",
    "%tw --to-cell",
    "%tw --close",
]
REPLIES = [
    plans("sum x", plan="1. sum"),
    codes("total = int(loads.x.sum())\nprint(total)"),
    plans("The sum is **6**.", to="User"),
    plans("double it", plan="1. double"),
    codes("print(2 * total)"),
    plans("Twice that is 12.", to="User"),
]


def run(cells, replies, folder, monkeypatch, **how):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    with replay_server(replies) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "any")
        how = {"timeout": 120, "resources": {"metadata": {"path": str(folder)}}, **how}
        nbclient.NotebookClient(notebook, **how).execute()
    return notebook


def test_a_notebook_with_the_magic_runs_from_its_first_cell_to_its_last(tmp_path, monkeypatch):
    notebook = run(CELLS, REPLIES, tmp_path, monkeypatch)

    shown = [
        [output["data"]["text/html"] for output in cell.outputs if output["output_type"] == "execute_result"]
        for cell in notebook.cells
    ]
    assert "<strong>6</strong>" in shown[1][0]
    assert "Twice that is 12." in shown[2][0]
    assert "Code: 1 cell" in shown[2][0]
    assert notebook.cells[3].outputs[0]["text"] == "6\n"
    nbformat.validate(notebook)
    assert not [output for cell in notebook.cells for output in cell.outputs if output["output_type"] == "error"]


def test_approval_where_nobody_can_be_asked_ends_the_notebook_with_an_error(tmp_path, monkeypatch):
    cells = [
        "from tw_autogen import open_session\nfrom tw_autogen.notebook import approve_in_notebook",
        "session = open_session(approve=approve_in_notebook, settings={'code_interpreter.approval': 'always'})",
        "session.ask('What is 6 * 7?')",
    ]
    with pytest.raises(
        nbclient.exceptions.CellExecutionError, match=r"code_interpreter\.approval.*nobody can be asked"
    ):
        run(cells, [plans("compute"), codes("6 * 7")], tmp_path, monkeypatch)


FAILING = """
def mine():
    return session.ask("What is 6 * 7?")
mine()"""


LIBRARIES = r"site-packages|tw_autogen[/\\]|zmq"


def plain(error):
    return re.sub(r"\x1b\[[0-9;]*m", "", str(error))


@pytest.mark.parametrize("mode", ["Context", "Plain"])
def test_an_error_shows_the_users_own_frames_and_none_of_libraries(tmp_path, monkeypatch, mode):
    cells = [
        "from tw_autogen import open_session\nsession = open_session()",
        f"%xmode {mode}",
        FAILING,
    ]
    with pytest.raises(nbclient.exceptions.CellExecutionError) as raised:
        run(cells, [], tmp_path, monkeypatch)

    shown = plain(raised.value)
    assert "return session.ask" in shown
    assert "mine()" in shown
    assert "the recording and the run have parted" in shown
    assert not re.search(LIBRARIES, shown)


def test_a_closed_session_leaves_its_error_alone_below_the_cell(tmp_path, monkeypatch):
    cells = [
        "from tw_autogen import open_session\nsession = open_session()\nsession.close()",
        "try:\n    session.ask('What is 6 * 7?')\nexcept Exception as error:\n    print(type(error).__name__)",
    ]
    notebook = run(cells, [], tmp_path, monkeypatch)

    assert [output.get("text") for output in notebook.cells[1].outputs] == ["SessionClosedError\n"]


@pytest.mark.parametrize("asks", ["session['nope']", "session.ask('x', files='no.csv')"])
def test_other_errors_of_a_session_show_no_libraries_either_and_claim_no_answer(tmp_path, monkeypatch, asks):
    cells = ["from tw_autogen import open_session\nsession = open_session()", f"def mine(): {asks}\nmine()"]
    with pytest.raises(nbclient.exceptions.CellExecutionError) as raised:
        run(cells, [], tmp_path, monkeypatch)

    shown = plain(raised.value)
    assert "in mine()" in shown
    assert not re.search(LIBRARIES, shown)
    assert "Answered" not in shown


def test_verbose_mode_shows_all_frames(tmp_path, monkeypatch):
    cells = ["from tw_autogen import open_session\nsession = open_session()", "%xmode Verbose", "session['nope']"]
    with pytest.raises(nbclient.exceptions.CellExecutionError) as raised:
        run(cells, [], tmp_path, monkeypatch)

    assert "notebook_access.py" in plain(raised.value)


def test_an_interrupt_shows_the_cell_that_was_interrupted(tmp_path, monkeypatch):
    asked = "%%tw\nSleep a while"
    replies = [plans("sleep"), codes("import time\ntime.sleep(100)")]
    notebook = run(
        ["%load_ext tw_autogen", asked], replies, tmp_path, monkeypatch, timeout=12, interrupt_on_timeout=True,
        allow_errors=True,
    )  # fmt: skip

    shown, error = notebook.cells[1].outputs
    assert shown["data"]["text/plain"] == "No answer: it was stopped by the user"
    traceback = plain("\n".join(error["traceback"]))
    assert "run_cell_magic" in traceback
    assert not re.search(LIBRARIES, traceback)
