"""Sessions that one returns to, through the real command line: resumed, exported, copied, run again."""

import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc

import pytest
from click.testing import CliRunner

from tests.cli.test_chat import chat  # noqa: F401 - a fixture
from tw_autogen.cli import main
from tw_autogen.safe_folder import SafeFolder, remove_folder
from tw_autogen.session import open_session, read_journal, read_settings, rounds_of
from tw_autogen.testing import ScriptedModel, codes, plans, replay_server

SECONDS = 120.0
CSV = "region,units\nN,5\nS,7\nW,1\n"


@pytest.fixture
def run(command, environ, tmp_path):
    """Run the command line with a model's replies; give the finished process."""

    def run(*args, replies=()):
        with replay_server(list(replies)) as server:
            model = ["--base-url", server.base_url] if replies else []
            return subprocess.run(
                [*command, *args[:1], *model, *args[1:]] if not replies else [*command, *model, *args],
                cwd=tmp_path, env=environ, text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=SECONDS,
                check=False,
            )  # fmt: skip

    return run


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Give the ID of a session in which one question about a file was asked."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sales.csv").write_text(CSV, encoding="utf-8")
    code = "import pandas as pd\ndf = pd.read_csv('sales.csv')\ndf.units.sum()"
    steps = [plans("add"), codes(code), plans("It is 13.", to="User")]
    with ScriptedModel(steps) as model, open_session(model, folder=".tw/sessions") as session:
        session.ask("sum of units in sales.csv", "sales.csv")
        return session.id


def test_a_session_is_gone_on_with(run, asked):
    replies = [plans("mean"), codes("round(df.units.mean(), 2)"), plans("4.33.", to="User")]

    ran = run("-c", "and the mean?", "--output-format", "json", replies=replies)

    answer = json.loads(ran.stdout)
    assert (ran.returncode, answer["session_id"], answer["warnings"]) == (0, asked, [])
    assert answer["code_cells"][0]["result"] == "np.float64(4.33)"
    assert f"resuming {asked}: 1 question\n" in ran.stderr
    assert "variables: df\n" in ran.stderr
    shown = run("sessions", "show", asked)
    assert shown.stdout == "> sum of units in sales.csv\nIt is 13.\n\n> and the mean?\n4.33.\n\n"


@pytest.mark.parametrize("users", ["left alone", "changed"])
@pytest.mark.parametrize("out", [[], ["--out", "here"]])
def test_a_file_that_was_copied_to_the_user_is_copied_again_when_a_later_session_changes_it(run, tmp_path, users, out):
    def drawn(colour):
        return [plans("draw", then="User"), codes(f"print(open('chart.svg', 'w').write('<svg>{colour}</svg>'))")]

    place = tmp_path / "here" if out else tmp_path
    assert run("-p", "save it as chart.svg", *out, replies=drawn("blue")).returncode == 0
    (first,) = place.glob("*.svg")
    assert first.read_text() == "<svg>blue</svg>"
    if users == "changed":
        first.write_text("mine")

    ran = run("-c", "-p", "make it red", *out, replies=drawn("red"))

    held = {path.name: path.read_text() for path in place.glob("*.svg")}
    assert "saved" in ran.stderr
    kept = {"chart.svg": "mine", "chart (2).svg": "<svg>red</svg>"}
    assert held == (kept if users == "changed" else {"chart.svg": "<svg>red</svg>"})


def test_what_did_not_come_back_is_said_by_name_and_cells_are_run_again_where_asked_for(run, asked, tmp_path):
    copy = tmp_path / ".tw" / "sessions" / asked / "files" / ".checkpoint" / "variables"
    copy.unlink()
    replies = [plans("Well.", to="User")]
    again = run("-c", "--rerun", "is it there?", replies=replies)
    assert "variables: df\n" in again.stderr
    copy.unlink()

    ran = run("-c", "is it there?", "--output-format", "json", replies=replies)

    again = f"tw-autogen --resume {asked} --rerun"
    words = f"variables that did not come back: df; {again} runs the cells again that made them"
    assert json.loads(ran.stdout)["warnings"] == [words]
    assert words in ran.stderr


def test_where_no_cells_were_kept_nothing_is_advised_that_runs_none(run):
    off = ("--set", "kernel.checkpoint_seconds=0")
    run("-p", "keep five", *off, replies=[plans("keep", then="User"), codes("five = 5\nprint(five)")])

    ran = run("-c", "-p", "is it there?", *off, replies=[plans("Well.", to="User")])

    lost = (
        "variables that did not come back: five; no cells were kept that could be run again (kernel.checkpoint_seconds)"
    )
    assert lost in ran.stderr
    assert "--rerun" not in ran.stderr


def test_a_chat_that_was_killed_in_a_request_is_gone_on_with(chat, command, environ, asked, tmp_path):  # noqa: F811
    replies = [
        plans("wait"),
        codes("half = df.units.sum() / 2\nprint('begun', flush=True)\nimport time\ntime.sleep(600)"),
        codes("half = df.units.sum() / 2\nhalf"),
        plans("Half is 6.5.", to="User"),
    ]
    with replay_server(replies) as server:
        killed = subprocess.Popen(
            [*command, "--base-url", server.base_url, "-c", "half of it?", "--output-format", "stream-json"],
            cwd=tmp_path, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
            text=True,
        )  # fmt: skip
        with killed:
            for line in killed.stdout:
                if json.loads(line)["event"] == "CellOutput":
                    killed.send_signal(signal.SIGKILL)
                    break
        screen, process = chat(server, "-c")
        screen.wait_for("variables: df")
        screen.wait_for("its last request was cut off: half of it?")
        screen.wait_for("Go on with it? [y/N]")
        screen.type("y\n")
        screen.wait_for("→ np.float64(6.5)")
        screen.wait_for("Half is 6.5.")
        screen.wait_for(">")
        screen.type("\x04")
        screen.wait_for(f"Go on with it: tw-autogen --resume {asked}")

        assert process.wait(SECONDS) == 0


def test_a_request_that_was_cut_off_is_asked_about_once(chat, asked, tmp_path):  # noqa: F811
    journal = tmp_path / ".tw" / "sessions" / asked / "events.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(
        b"".join(line for line in lines if b'"RoundClosed"' not in line and b"SessionClosed" not in line)
    )
    with replay_server([plans("Nothing.", to="User")]) as server:
        screen, process = chat(server, "-c")
        screen.wait_for("Go on with it? [y/N]")
        screen.type("n\n")
        screen.wait_for("\n>")
        for command in ("/fork", f"/resume {asked}"):
            screen.type(f"{command}\n")
            screen.wait_for("resuming session-")
            screen.wait_for("\n>")
        screen.type("\x04")
        screen.wait_for("Go on with it: tw-autogen --resume")

        assert process.wait(SECONDS) == 0
    assert screen.text.count("was cut off:") == 1
    assert [one.error for one in rounds_of(read_journal(journal))] == ["it was cut off, and the user did not resume it"]


def test_the_chats_commands_copy_write_and_leave_sessions(chat, asked, tmp_path):  # noqa: F811
    with replay_server([plans("Nothing.", to="User")]) as server:
        screen, process = chat(server, "-c")
        screen.wait_for("\n>")
        screen.type("/fork\n")
        screen.wait_for("resuming session-")
        screen.wait_for("variables: df")
        screen.wait_for("\n>")
        screen.type("/clear\n")
        screen.wait_for("variables: df")
        screen.wait_for("the conversation is forgotten; variables and files stay")
        screen.wait_for("\n>")
        screen.type("/info\n")
        screen.wait_for("variables  df: DataFrame")
        screen.wait_for("\n>")
        screen.type(f"/resume {asked}\n")
        screen.wait_for(f"resuming {asked}: 1 question")
        screen.wait_for("\n>")
        screen.type("/resume nonsense\n")
        screen.wait_for("you have no session nonsense")
        screen.wait_for("\n>")
        screen.type("/export x.py\n")
        screen.wait_for("written: ")
        screen.wait_for("\n>")
        screen.type("/model other\n")
        screen.wait_for(f"resuming {asked}")
        screen.wait_for("\n>")
        screen.type("/model\n")
        screen.wait_for("model: other")
        screen.wait_for("\n>")
        screen.type("/cost\n")
        screen.wait_for("tokens     none yet")
        screen.wait_for("tokens, until this session was opened again")
        screen.wait_for("\n>")
        screen.type("\x04")

        assert process.wait(SECONDS) == 0
    assert ": 0 questions" not in screen.text
    assert "df = pd.read_csv(SALES_CSV)" in (tmp_path / "x.py").read_text(encoding="utf-8")


def test_a_new_file_may_be_called_as_an_old_one_and_a_path(asked, tmp_path):
    for name, units in (("new.csv", 100), ("sales.csv=new.csv", 7)):
        (tmp_path / name).write_text(f"region,units\nA,{units}\n", encoding="utf-8")

    ran = CliRunner().invoke(main, ["rerun", asked, "--file", "sales.csv=new.csv"])

    assert "np.int64(7)" in ran.stdout, ran.output


def test_the_chat_compacts_on_demand(chat):  # noqa: F811
    replies = [
        plans("A long tale of columns. " * 100, to="User"),
        plans("Second.", to="User"),
        "In short: columns.",
        plans("Third.", to="User"),
    ]
    with replay_server(replies) as server:
        screen, process = chat(server)
        for question, answer in (("first?", "A long tale"), ("second?", "Second.")):
            screen.wait_for("\n>")
            screen.type(f"{question}\n")
            screen.wait_for(answer)
        screen.wait_for("\n>")
        screen.type("/compact\n")
        screen.wait_for("Planner: about ")
        screen.wait_for(" % less)")
        screen.wait_for("\n>")
        screen.type("third?\n")
        screen.wait_for("Third.")
        screen.wait_for("\n>")
        screen.type("\x04")

        assert process.wait(SECONDS) == 0


def test_a_session_is_exported_rerun_copied_and_removed(asked, tmp_path, environ, run):
    def tw(*args):
        return CliRunner().invoke(main, args)

    (tmp_path / "new.csv").write_text("region,units\nA,100\n", encoding="utf-8")
    for ending, words in {"ipynb": '"nbformat"', "py": "argparse", "md": "## Request", "html": "<h2"}.items():
        if ending == "ipynb":
            ran = run("sessions", "export", asked, f"a.{ending}")
            assert (ran.returncode, ran.stdout) == (0, f"a.{ending}\n"), ran.stderr
        else:  # in this process, which takes a twentieth of the time
            assert tw("sessions", "export", asked, f"a.{ending}").output == f"a.{ending}\n"
        text = (tmp_path / f"a.{ending}").read_text(encoding="utf-8")
        assert words in text
        assert "<script" not in text
    program = subprocess.run(
        [sys.executable, "a.py", "new.csv"], cwd=tmp_path, env=environ, text=True, capture_output=True, check=False
    )
    again, other = tw("rerun", asked), tw("rerun", asked, "--file", "new.csv")
    (tmp_path / "bad.csv").write_text("region,price\nA,100\n", encoding="utf-8")
    failed, shown = tw("rerun", asked, "--file", "bad.csv"), tw("sessions", "show", asked)
    ambiguous = tw("sessions", "show", "session")
    fork = tw("sessions", "fork", asked)
    removed = tw("sessions", "rm", asked, fork.stdout.strip())

    assert program.stdout == "np.int64(100)\n", program.stderr
    assert (again.exit_code, again.stdout) == (0, "cell 1: same\n"), again.stderr
    assert other.stdout == "cell 1: differs\n  - np.int64(13)\n  + np.int64(100)\n", other.stderr
    assert "1 cell ran: 1 with the same result" in again.stderr
    assert "cell 1, line " in failed.stdout
    assert "cell 3" not in failed.stdout
    assert "0 of 1 cell ran" in failed.stderr
    assert "1 cell, 0 of them failed" in shown.stderr
    assert "'session': all 4 sessions begin so: session-" in ambiguous.stderr
    assert removed.stdout.count("removed ") == 2
    assert not (tmp_path / ".tw" / "sessions" / asked).exists()


def test_cells_that_run_again_find_files_that_they_list_and_their_files_go_where_out_says(
    tmp_path, environ, monkeypatch
):
    monkeypatch.setenv("HOME", environ["HOME"])
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(parent.stat().st_mode | 0o055)
    for folder, values in {"old": "12", "new": "345"}.items():
        (here / folder).mkdir()
        for value in values:
            (here / folder / f"{value}.csv").write_text(f"a\n{value}\n", encoding="utf-8")
    total = "import glob\ntotal = sum(int(open(one).read()[2:]) for one in glob.glob({!r}))\ntotal"
    code = [codes(total.format("*.csv")), codes(total.format(f"{here}/old/*.csv"))]
    code.append(codes("print(open('total.txt', 'w').write(str(total)))"))
    steps = [step for one in code for step in (plans("do", then="User"), one)]
    settings = read_settings({"session.user_folder": str(here)})
    with ScriptedModel(steps) as model, open_session(model, folder=".tw/sessions", settings=settings) as session:
        session.ask("add them up", ["old/1.csv", "old/2.csv"])
        session.ask("and all in the folder old")
        session.ask("write that down")

    again = CliRunner().invoke(main, ["rerun", session.id])
    listed = CliRunner().invoke(main, ["sessions", "list"]).output
    other = CliRunner().invoke(main, ["rerun", session.id, "--param", "old=new", "--out", "results"])

    assert again.stdout == "cell 1: same\ncell 2: same\ncell 3: same\n", again.output
    assert f"  code: # rerun of {session.id}: " in listed
    assert "```" not in listed
    assert "cell 2: differs\n  - 3\n  + 12\n" in other.stdout
    assert (here / "results" / "total.txt").read_text() == "12"
    assert f"saved {here}/results/total.txt" in other.stderr


def test_plugins_and_values_that_are_missing_when_cells_run_again_are_named(asked, tmp_path):
    (tmp_path / "mine.py").write_text(
        'from tw_autogen.plugin import plugin\n\n@plugin\ndef six() -> int:\n    """Return six."""\n    return 6\n',
        encoding="utf-8",
    )
    code = codes("print(six() * len(user))")
    with (
        ScriptedModel([plans("do", then="User"), code]) as model,
        open_session(model, plugins=[tmp_path / "mine.py"], folder=".tw/sessions") as session,
    ):
        session.ask("how many?", variables={"user": "me"})

    ran = CliRunner().invoke(main, ["rerun", session.id])
    there = CliRunner().invoke(main, ["rerun", session.id, "--plugins", "mine.py"])

    assert "plugins that are not here: six; -C DIR names their project, --plugins a file" in ran.stderr
    assert "cells use variables that were given, or that no cell makes: user" in ran.stderr
    assert "not here" not in there.stderr


def test_what_code_alone_has_named_is_not_brought_when_its_cells_run_again(asked, tmp_path, environ):
    secret = tmp_path.parent / f"{tmp_path.name}-secret.json"
    secret.write_text("canary", encoding="utf-8")
    code = f"try:\n    print(open({str(secret)!r}).read())\nexcept OSError:\n    print('refused')"
    with ScriptedModel([]) as model, open_session(model, roles="code_interpreter", folder=".tw/sessions") as session:
        session.run_code(code)

    ran = CliRunner().invoke(main, ["rerun", session.id])

    assert (ran.exit_code, ran.stdout) == (0, "cell 1: same\n"), ran.stderr
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"canary" in path.read_bytes()]


def test_cells_that_run_again_have_what_failed_cells_had_changed_and_what_is_left_out_is_said(asked):
    cells = ["rows = [1, 2]", "rows[0] = 5\nrows[9]", "for n in 0, 9:\n    rows[n] += 1", "%time print(rows)"]
    with ScriptedModel([]) as model, open_session(model, roles="code_interpreter", folder=".tw/sessions") as session:
        for code in cells:
            session.run_code(code)

    ran = CliRunner().invoke(main, ["rerun", session.id])

    assert (ran.exit_code, ran.stdout.count(": same")) == (0, 2), ran.output
    assert "left out: cell 3, which failed: it may have changed rows\n" in ran.stderr
    assert "  - [6, 2]\n  " in ran.stdout
    assert "  + [5, 2]\n" in ran.stdout


@pytest.mark.parametrize("how", ["--set", "environment", "-C"])
def test_a_user_folder_over_a_strangers_link_is_none_when_cells_run_again(asked, tmp_path, monkeypatch, how):
    (tmp_path / "data").symlink_to(tmp_path.parent)
    with ScriptedModel([]) as model, open_session(model, roles="code_interpreter", folder=".tw/sessions") as session:
        session.run_code("1")
    if how == "environment":
        monkeypatch.setenv("TW_AUTOGEN_SESSION_USER_FOLDER", "data")

    said = {"--set": ["--set", "session.user_folder=data"], "-C": ["-C", "data"]}.get(how, [])
    ran = CliRunner().invoke(main, ["rerun", session.id, *said])

    assert (ran.exit_code, "data: a link out of" in ran.output) == (2, True), ran.output


def link_to_another(folder, asked):
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "events.jsonl").touch()
    (folder / ".tw" / "sessions" / "session-aaaaaaaaaaaa").symlink_to(folder / "elsewhere")
    return ".tw/sessions/session-aaaaaaaaaaaa", "no link is followed"


def journal_above(folder, asked):
    (folder / ".tw" / "sessions" / "events.jsonl").touch()
    return ".tw/sessions/session-aaaaaaaaaaaa", "there is no session"


def no_session(folder, asked):
    (folder / "events.jsonl").touch()
    return "./", "its name is none of a session"


@pytest.mark.parametrize("plant", [link_to_another, journal_above, no_session])
def test_a_path_removes_the_session_that_it_names_or_nothing(asked, tmp_path, plant):
    named, words = plant(tmp_path, asked)
    before = sorted(tmp_path.rglob("*"))

    ran = CliRunner().invoke(main, ["sessions", "rm", named])

    assert (ran.exit_code, words in ran.stderr) == (2, True), ran.stderr
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("rest", ["", "/files"])
def test_a_session_can_be_named_by_its_path_or_that_of_its_files(asked, tmp_path, rest):
    ran = CliRunner().invoke(main, ["sessions", "rm", f".tw/sessions/{asked}{rest}"])

    assert ran.exit_code == 0, ran.stderr
    assert os.listdir(tmp_path / ".tw" / "sessions") == []


def test_files_that_are_long_and_empty_are_not_copied_with_a_session(asked, tmp_path):
    for number in range(5):
        with open(tmp_path / ".tw" / "sessions" / asked / "files" / f"{number}.bin", "wb") as file:
            file.truncate(1 << 30)

    ran = CliRunner().invoke(main, ["sessions", "fork", asked])

    assert (ran.exit_code, "at most 4096 are copied (kernel.disk_mb)" in ran.stderr) == (2, True), ran.stderr
    assert os.listdir(tmp_path / ".tw" / "sessions") == [asked]


def test_folders_in_folders_are_copied_with_a_session_up_to_a_hundred(asked, tmp_path):
    files = tmp_path / ".tw" / "sessions" / asked / "files"
    (files / "/".join("d" * 99)).mkdir(parents=True)
    (files / "/".join("d" * 99) / "a.txt").write_text("deep", encoding="utf-8")
    copied = CliRunner().invoke(main, ["sessions", "fork", asked])
    (files / "/".join("e" * 102)).mkdir(parents=True)
    refused = CliRunner().invoke(main, ["sessions", "fork", asked])

    assert (copied.exit_code, refused.exit_code) == (0, 2), copied.stderr
    copy = tmp_path / ".tw" / "sessions" / copied.stdout.strip() / "files"
    assert (copy / "/".join("d" * 99) / "a.txt").read_text(encoding="utf-8") == "deep"
    assert "nested more than 100 deep" in refused.stderr


def test_names_of_files_in_deep_folders_take_little_memory_while_a_session_is_copied(asked, tmp_path):
    number, levels = 1000, 60
    here = os.open(tmp_path / ".tw" / "sessions" / asked / "files", os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d" * 250, dir_fd=here)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    for one in range(number):
        os.close(os.open(str(one), os.O_CREAT, dir_fd=here))
    os.close(here)

    tracemalloc.start()
    try:
        copied = CliRunner().invoke(main, ["sessions", "fork", asked])
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    with SafeFolder(tmp_path / ".tw" / "sessions" / copied.stdout.strip() / "files") as copy:
        assert sum(entry.is_file and len(entry.name) > levels * 250 for entry in copy.walk()) == number
    assert peak_bytes < number * levels * 250 / 2
    remove_folder(tmp_path / ".tw")


def unknown(folder, asked):
    return "ffff"


def foreign(folder, asked):
    (folder / ".tw" / "sessions" / asked / "made_here").write_text("0" * 64, encoding="utf-8")
    return asked


def broken(folder, asked):
    journal = folder / ".tw" / "sessions" / asked / "events.jsonl"
    journal.write_bytes(b"{\n" + journal.read_bytes())
    return asked


WRONG = {
    "unknown": (unknown, "you have no session"),
    "foreign": (foreign, "this user did not make this session in this folder"),
    "broken": (broken, "the journal is damaged: line 1"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_can_not_be_gone_on_with_is_one_clear_error(asked, tmp_path, case):
    change, words = WRONG[case]
    name = change(tmp_path, asked)
    model = ["--base-url", "http://127.0.0.1:1/v1", "--model", "m"]
    asking = [*model, "-p", "q", "--resume", name, "--output-format", "json"]

    for args in (asking, ["sessions", "fork", name], ["rerun", name]):
        ran = CliRunner().invoke(main, args)

        assert (ran.exit_code, words in ran.stderr) == (2, True), ran.stderr
        if args is asking:
            assert words in json.loads(ran.stdout)["error"]["message"]
    assert os.listdir(tmp_path / ".tw" / "sessions") == [asked]


def test_trust_of_a_project_is_none_of_a_strangers_session_here(asked, tmp_path):
    name = foreign(tmp_path, asked)
    mine = tmp_path.parent / f"{tmp_path.name}-mine"
    mine.mkdir()

    ran = CliRunner().invoke(main, ["rerun", "-C", str(mine), "--trust", name])
    here = CliRunner().invoke(main, ["rerun", "--trust", name, "--file", "sales.csv"])

    assert (ran.exit_code, WRONG["foreign"][1] in ran.stderr) == (2, True), ran.stderr
    assert here.exit_code == 0, here.output


@pytest.mark.parametrize("form", ["json", "stream-json"])
def test_a_wrong_call_is_one_object_in_either_form(run, form):
    ran = run("--output-format", form, "--nope")

    said = json.loads(ran.stdout)
    assert (ran.returncode, said["error"]["type"]) == (2, "UsageError")
    assert len(ran.stdout.splitlines()) == 1 or form == "json"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(command, environ, shell):
    of_shell = {"COMP_WORDS": "tw-autogen sessions ex", "COMP_CWORD": "2"}
    if shell == "fish":
        of_shell = {"COMP_WORDS": "tw-autogen sessions ex", "COMP_CWORD": "ex"}
    ran = subprocess.run(
        command, env={**environ, "_TW_AUTOGEN_COMPLETE": f"{shell}_complete", **of_shell}, text=True,
        capture_output=True, check=False,
    )  # fmt: skip

    assert "export" in ran.stdout, ran.stderr


def test_an_output_of_thousands_of_lines_that_are_alike_is_compared_at_once(asked, run):
    code = "import random\nfor at in range(3000): print('value', random.random() if at else 'first')\nprint('last')"
    with ScriptedModel([]) as model, open_session(model, roles="code_interpreter", folder=".tw/sessions") as session:
        session.run_code(code)

    began = time.monotonic()
    ran = CliRunner().invoke(main, ["rerun", session.id])

    assert time.monotonic() - began < 30
    lines = ran.stdout.splitlines()
    assert (lines[0], lines[1][:10], len(lines)) == ("cell 1: differs", "  - value ", 42)
    assert lines[-1] == "  … 5958 more lines"


@pytest.mark.parametrize("args", [["show"], ["export"]])
def test_a_journal_that_would_take_gigabytes_is_an_error_before_it_is_read(asked, tmp_path, args):
    folder = tmp_path / ".tw" / "sessions" / "session-abc123"
    folder.mkdir()
    opened = '{"event":"RoundOpened","round_id":"r","user_query":"hi","files":[]}\n'
    values = "[]," * 10_000_000
    (folder / "events.jsonl").write_text(f'{opened}{{"event":"CellRan","variables":[{values}[]]}}\n{opened}')

    tracemalloc.start()
    ran = CliRunner().invoke(main, ["sessions", *args, "abc123", *(["o.ipynb"] if args == ["export"] else [])])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert ran.exit_code != 0
    assert "line 2: it and those before it would take more than 1 GB of memory" in ran.stderr
    assert peak < 200 << 20
