import csv
import os
import re
import subprocess
import time
from importlib.util import find_spec

import nbformat
from click.testing import CliRunner
from jupyter_client.manager import start_new_kernel

from tw_autogen.cli import main


def test_a_folder_that_cannot_be_made_is_an_error_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("no folder")

    ran = CliRunner().invoke(main, ["demo", "--folder", "file/demo"])

    said = "tw-autogen: file/demo: a file is in the way; say where files go with --folder\n"
    assert (ran.exit_code, ran.stdout, ran.stderr) == (2, "", said)


def test_the_demo_shows_plan_code_output_and_answer_and_leaves_its_files_in_place_of_earlier_ones(
    command, environ, tmp_path
):
    folder = tmp_path / "tw-demo"
    folder.mkdir()
    for name in ("chart.png", "chart.svg", "anomalies.csv", "session.ipynb"):
        (folder / name).write_text("of an earlier demo")

    ran = subprocess.run(
        [*command, "demo"], env=environ, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        encoding="utf-8", timeout=90, check=False,
    )  # fmt: skip
    shown = ran.stdout

    assert ran.returncode == 0, f"{shown}\n{ran.stderr}"
    chart = "chart.png" if find_spec("matplotlib") else "chart.svg"
    assert sorted(os.listdir(folder)) == ["anomalies.csv", chart, "plant.db", "session.ipynb"]
    for part in ("\nPlanner\n  ▸ 1. ", "\nCodeInterpreter\n", "  │ ", "sql_pull_data on the host", "✓ cell 1 ·"):
        assert part in shown
    assert "\x1b" not in shown
    last, hint = shown.splitlines()[-2:]
    assert re.fullmatch(
        rf"4 files in \./tw-demo \({chart}, anomalies\.csv, plant\.db, session\.ipynb\), "
        r"\d+\.\d s, recorded replies: no tokens spent",
        last,
    )
    assert "OPENAI_API_KEY=" in hint
    assert "--base-url http://localhost:11434/v1" in hint
    with open(folder / "anomalies.csv", newline="", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 11
    made = nbformat.read(folder / "session.ipynb", as_version=4)
    nbformat.validate(made)
    pictures = [mime for cell in made.cells for output in cell.get("outputs", ()) for mime in output.get("data", ())]
    assert {"image/png", "image/svg+xml"} & set(pictures)
    rows = (folder / "anomalies.csv").read_bytes()
    (folder / "anomalies.csv").unlink()
    assert run_all(made, folder) == []
    assert (folder / "anomalies.csv").read_bytes() == rows


def test_what_code_of_another_process_puts_in_the_way_is_not_followed(command, environ, tmp_path):
    private, folder = tmp_path / "private", tmp_path / "here" / "tw-demo"
    for one in (private, folder.parent):
        one.mkdir()
    for name in ("chart.svg", "anomalies.csv", "plant.db", "session.ipynb"):
        (private / name).write_text("precious")
    with subprocess.Popen(
        [*command, "demo"], env=environ, cwd=folder.parent, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True,
    ) as demo:  # fmt: skip
        while not folder.is_dir() and demo.poll() is None:
            time.sleep(0.01)
        folder.rename(tmp_path / "gone")
        folder.symlink_to(private)
        said = demo.communicate(timeout=90)[1]

    assert demo.returncode == 2
    assert f"tw-demo: {folder} is a link, which code may have made; name the folder that it leads to" in said
    assert [path.read_text() for path in private.iterdir()] == ["precious"] * 4


def run_all(made, folder):
    """Run a notebook's code in a plain kernel, as "run all" does; return what failed that was not marked as failing."""
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(folder))
    failed = []
    try:
        for cell in made.cells:
            if cell.cell_type == "code":
                reply = client.execute_interactive(cell.source, timeout=60, output_hook=lambda message: None)["content"]
                if reply["status"] != "ok" and "raises-exception" not in cell.metadata.get("tags", ()):
                    failed.append((cell.source, reply))
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return failed
