import os
import subprocess

from tw_autogen import DocumentIndex


def run(command, environ, folder, *args):
    return subprocess.run(
        [*command, "index", *args], capture_output=True, text=True, timeout=60, env=environ, cwd=folder
    )


def test_an_index_is_made_and_the_way_to_use_it_is_said(command, environ, tmp_path):
    (tmp_path / "my docs").mkdir()
    (tmp_path / "my docs" / "tea.md").write_text("# Green tea\n\nSteep it at 70 degrees.\n")
    (tmp_path / "my docs" / "tea.py").write_text("tea = 1\n")

    ran = run(command, environ, tmp_path, "my docs")

    file = tmp_path / "my docs" / "tw-index.json"
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == [
        f"1 passage of 1 file is in {file}",
        f"Use it: tw-autogen --roles document_retriever --set role.document_retriever.index='{file}'",
    ]
    assert list(DocumentIndex.read(file).files) == ["tea.md"]


def test_other_files_another_place_and_what_is_left_out(command, environ, tmp_path):
    (tmp_path / "tea.py").write_text("tea = 1\n")
    (tmp_path / "odd.py").write_bytes(b"\xff")

    ran = run(command, environ, tmp_path, ".", "--glob", "*.py", "--out", "made/i.json")

    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.startswith("left out: odd.py: not UTF-8; save it as UTF-8")
    assert list(DocumentIndex.read(tmp_path / "made" / "i.json").files) == ["tea.py"]


def test_a_folder_that_isnt_there_is_a_wrong_setting(command, environ, tmp_path):
    ran = run(command, environ, tmp_path, "nowhere")

    assert (ran.returncode, ran.stderr) == (2, "tw-autogen: nowhere: there is no such folder\n")


def test_a_pipe_is_left_out_and_never_waited_for(command, environ, tmp_path):
    (tmp_path / "tea.md").write_text("# Green tea\n\nSteep it at 70 degrees.\n")
    os.mkfifo(tmp_path / "pipe.md")

    ran = run(command, environ, tmp_path, ".")

    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.startswith("left out: pipe.md: not a regular file but a FIFO")


def test_no_link_in_the_current_folder_is_followed(command, environ, tmp_path):
    here, other = tmp_path / "here", tmp_path / "other"
    here.mkdir()
    other.mkdir()
    (other / "a.md").write_text("private\n")
    (here / "docs").symlink_to(other)

    ran = run(command, environ, here, "docs")

    assert (ran.returncode, "docs is a link" in ran.stderr) == (2, True), ran.stderr
    assert os.listdir(other) == ["a.md"]


def test_a_name_can_not_send_escapes_to_the_terminal(command, environ, tmp_path):
    name = "\x1b]0;PWN\x07\x1b[2J"
    (tmp_path / name).mkdir()
    (tmp_path / name / f"{name}.md").write_bytes(b"\xff")
    (tmp_path / name / "tea.md").write_text("# Green tea\n\nSteep it at 70 degrees.\n")

    ran = run(command, environ, tmp_path, name)

    assert ran.returncode == 0, ran.stderr
    assert "\x1b" not in ran.stdout + ran.stderr
    assert r"left out: \x1b]0;PWN\x07\x1b[2J.md: not UTF-8" in ran.stderr
    assert r"\x1b]0;PWN\x07\x1b[2J/tw-index.json" in ran.stdout
