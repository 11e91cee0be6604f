"""What a person sees in JupyterLab, in a real Chromium: progress, an answer, approval, code in the next cell."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time

import nbformat
import pytest

from tw_autogen.testing import ScriptedModel, codes, plans, replay_server

pytest.importorskip("jupyterlab", reason="the extra `test-web` is not installed")
playwright = pytest.importorskip("playwright.sync_api", reason="the extra `test-web` is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH")]
SECONDS = 60

PLANTED = "<script>window.planted=true</script><img src=x onerror='window.planted=true'>"
SALES = f"month,units,note\nJan,412,ok\nFeb,388,ok\nMar,455,{PLANTED}\nApr,120,strike\nMay,430,ok\n"
PLAN = "1. print the mean of units\n2. draw units by month"
MEAN = "import pandas as pd\nsales = pd.read_csv('sales.csv')\nprint(sales.to_string(), sales.units.mean())"
DRAW = "ax = sales.plot.bar(x='month', y='units')\nax.figure.savefig('units.png')"
WORDS = f"**April** is odd: 120 units, the mean is 361. Note: {PLANTED} ![x](http://tracker.invalid/a.png)"
APPROVED = """%load_ext tw_autogen
from tw_autogen import open_session
from tw_autogen.notebook import approve_in_notebook
tw_session = open_session(approve=approve_in_notebook, settings={'code_interpreter.approval': 'always'})"""


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        one = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"] * (os.geteuid() == 0))
        yield one
        one.close()


@pytest.fixture(scope="module")
def jupyterlab(tmp_path_factory):
    """Run JupyterLab on loopback with no settings of the user's; its address, and the folder that it serves."""
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("served")
    names = ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR")
    names += ("JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR")
    environment = {**os.environ, "HOME": str(home), **{name: str(home / name) for name in names}}
    options = ["--no-browser", "--allow-root", "--ServerApp.port=0", "--ServerApp.token=t"]
    command = [sys.executable, "-m", "jupyterlab", *options]
    with (home / "log").open("w") as log:
        server = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + SECONDS
            while not (found := list(home.glob("JUPYTER_RUNTIME_DIR/jpserver-*.json"))):
                assert server.poll() is None, (home / "log").read_text()
                assert time.monotonic() < deadline, (home / "log").read_text()
                threading.Event().wait(0.05)
            yield json.loads(found[0].read_text())["url"], folder
        finally:
            server.terminate()
            server.wait(SECONDS)


class Notebook:
    """A notebook that is open in the browser."""

    def __init__(self, page):
        self.page = page
        self.asked = []
        page.on("request", lambda request: self.asked.append(request.url))

    def cell(self, number):
        return self.page.locator(".jp-CodeCell").nth(number)

    def run(self, number):
        self.cell(number).locator(".cm-content").click()
        self.page.keyboard.press("Control+Enter")

    def input_line(self, number):
        return self.cell(number).locator(".jp-Stdin-input")

    def outputs(self, number, text=None):
        """Return the outputs of a cell; with a text, wait for the one that has it."""
        outputs = self.cell(number).locator(".jp-OutputArea-output")
        if text is not None:
            outputs = outputs.filter(has_text=text)
            outputs.first.wait_for()
        return outputs


@pytest.fixture
def open_notebook(browser, jupyterlab):
    """Open cells as a notebook, in a folder with `sales.csv`, with a model that takes these steps."""
    url, served = jupyterlab
    with contextlib.ExitStack() as stack:

        def run(name, cells, steps):
            (served / name).mkdir()
            (served / name / "sales.csv").write_text(SALES)
            made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
            model = stack.enter_context(replay_server(ScriptedModel(steps)))
            made.cells[0].source = f"%env OPENAI_BASE_URL={model.base_url}\n%env OPENAI_API_KEY=any\n" + cells[0]
            made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
            nbformat.write(made, served / name / "sales.ipynb")
            page = stack.enter_context(contextlib.closing(browser.new_page(viewport={"width": 1000, "height": 1300})))
            page.set_default_timeout(SECONDS * 1000)
            opened = Notebook(page)
            page.goto(f"{url}doc/tree/{name}/sales.ipynb?token=t")
            page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
            return opened

        yield run


def test_progress_is_shown_in_place_and_then_the_answer_with_its_chart_plan_code_and_sources(open_notebook):
    seen = [threading.Event() for _ in range(2)]

    def held(event, reply):
        def answer(messages):
            assert event.wait(SECONDS)
            return reply

        return answer

    notebook = open_notebook(
        "progress",
        ["%load_ext tw_autogen", "%%tw --file sales.csv\nWhich month is odd? Draw it."],
        [
            plans("Print the mean", plan=PLAN),
            held(seen[0], codes(MEAN)),
            plans("Draw it", plan=PLAN, step="2. draw units by month"),
            held(seen[1], codes(DRAW)),
            plans(WORDS, to="User"),
        ],
    )
    notebook.run(0)
    notebook.run(1)
    notebook.outputs(1, "▸ 1. print the mean of units")
    assert notebook.outputs(1).count() == 1
    seen[0].set()
    assert "✓ 1. print the mean of units" in notebook.outputs(1, "▸ 2. draw units by month").inner_text()
    assert notebook.outputs(1).count() == 1
    seen[1].set()
    answer = notebook.outputs(1, "April is odd")

    assert notebook.outputs(1).count() == 2
    assert notebook.outputs(1).first.inner_text().startswith("Answered after")
    assert answer.locator("img").evaluate_all("all => all.map(one => one.naturalWidth > 100)") == [True]
    folded = ["Plan: 2 of 2 steps done", "Code: 2 cells", "Sources of 2 numbers"]
    assert answer.locator("summary").all_inner_texts() == folded
    inner = [answer.get_by_text(text) for text in ("✓ 2. draw units", "savefig('units.png')", "361: printed")]
    assert not any(one.is_visible() for one in inner)
    for summary in folded:
        answer.get_by_text(summary).click()
    assert all(one.is_visible() for one in inner)
    assert answer.get_by_text(PLANTED).count() == 2  # in the answer's words, and in the output of its code
    assert notebook.page.evaluate("window.planted") is None
    assert not [url for url in notebook.asked if "tracker" in url]


def test_code_is_approved_below_the_cell_unless_it_is_interrupted_and_goes_to_the_next_cell(open_notebook):
    low = [plans("print it"), codes("print(sorted({'Apr': 120, 'Mar': 455}))"), plans("April is low.", to="User")]
    notebook = open_notebook(
        "approval",
        [APPROVED, "await tw_session.aask('Which?')", "%tw Which is low?", "%tw --to-cell"],
        [*low[:2], *low],
    )
    notebook.run(0)
    notebook.run(1)
    notebook.input_line(1).wait_for()
    notebook.page.get_by_title("Interrupt the kernel").click()
    notebook.outputs(1, "CancelledError")
    assert "Not decided: Let this code run?" in notebook.cell(1).inner_text()

    notebook.run(2)
    assert "sorted({'Apr': 120, 'Mar': 455})" in notebook.outputs(2, "Let this code run?").first.inner_text()
    notebook.input_line(2).fill("y")
    notebook.input_line(2).press("Enter")
    notebook.outputs(2, "April is low.")
    assert "Approved: Let this code run?" in notebook.cell(2).inner_text()

    notebook.run(3)
    notebook.cell(4).get_by_text("sorted(").wait_for()
    assert "in no sandbox" in notebook.cell(4).inner_text()
