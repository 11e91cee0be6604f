"""A whole notebook with the magic, run by nbclient as nbconvert and papermill run one."""

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


def run(cells, replies, folder, monkeypatch):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in cells])
    with replay_server(replies) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "any")
        nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


def test_a_notebook_with_the_magic_runs_from_its_first_cell_to_its_last(tmp_path, monkeypatch):
    notebook = run(CELLS, REPLIES, tmp_path, monkeypatch)

    shown = [
        [one["data"]["text/html"] for one in cell.outputs if one["output_type"] == "execute_result"]
        for cell in notebook.cells
    ]
    assert "<strong>6</strong>" in shown[1][0]
    assert "Twice that is 12." in shown[2][0]
    assert "Code: 1 cell" in shown[2][0]
    assert notebook.cells[3].outputs[0]["text"] == "6\n"
    nbformat.validate(notebook)
    assert not [one for cell in notebook.cells for one in cell.outputs if one["output_type"] == "error"]


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
