import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from tw_autogen.cli import main
from tw_autogen.model import Completion, Usage
from tw_autogen.testing import ScriptedModel, codes, plans, replay_server


class Ran(NamedTuple):
    returncode: int
    stdout: str
    stderr: str
    requests: list


@pytest.fixture
def ask(environ, tmp_path, monkeypatch):
    """Run it in this process: quick."""
    monkeypatch.chdir(tmp_path)
    settings = {key: environ.get(key) for key in {*environ, *os.environ}}  # None takes a variable away

    def run(replies, *args, data=b""):
        with replay_server(replies) as server:
            made = CliRunner().invoke(main, ["--base-url", server.base_url, *args], input=data, env=settings)
        assert made.exception is None or isinstance(made.exception, SystemExit), made.exception
        return Ran(made.exit_code, made.stdout, made.stderr, server.requests)

    return run


@pytest.fixture
def ask_outside(command, environ, tmp_path):
    """Run it in a process of its own: real streams and signals."""

    def run(replies, *args, stdin=subprocess.DEVNULL, more=(), cwd=tmp_path):
        with replay_server(replies) as server:
            ran = subprocess.run(
                [*command, "--base-url", server.base_url, *args],
                stdin=stdin,
                capture_output=True,
                timeout=60,
                cwd=cwd,
                env={**environ, **dict(more)},
                check=False,
            )
        return Ran(ran.returncode, ran.stdout.decode(), ran.stderr.decode(), server.requests)

    return run


def answers(text="It is 42.", **fields):
    return plans(text, to="User", **fields)


LATE = (
    "IPython",
    "docstring_parser",
    "importlib.metadata",
    "jupyter_client",
    "prompt_toolkit",
    "pydantic",
    "yaml",
    "zmq",
)
ASKING = f"""
import sys
from tw_autogen.cli import main
try:
    main(sys.argv[1:])
finally:
    print([name for name in {LATE} if name in sys.modules])
"""


def test_a_question_that_needs_no_code_imports_nothing_of_what_code_settings_files_or_a_chat_need(environ, tmp_path):
    with replay_server([answers("Hello to you.")]) as server:
        command = [sys.executable, "-c", ASKING, "--base-url", server.base_url, "-p", "say hello"]
        ran = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, cwd=tmp_path, env=environ
        )

    assert ran.stdout == "Hello to you.\n[]\n", ran.stderr


def test_the_answer_stands_alone_on_standard_output_in_utf_8_and_all_else_on_standard_error(ask_outside, tmp_path):
    (tmp_path / "sales.csv").write_text("day,revenue\n1,20\n2,22\n")
    code = "import pandas as pd\ndf = pd.read_csv('sales.csv')\nprint('rows:', len(df))\ndf.to_csv('copy.csv')"
    code += "\nint(df.revenue.sum())"
    usage = Usage(3000, 1000, 50, calls=1)
    replies = [Completion(plans("add them up"), usage=usage), codes(code), answers("Together 42 €, 日本.")]

    locale = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}  # ASCII, as far as Python is told

    ran = ask_outside(replies, "-p", "how much is it together?", "sales.csv", more=locale)

    assert (ran.returncode, ran.stdout) == (0, "Together 42 €, 日本.\n"), ran.stderr
    for line in ("  ▸ 1. add them up\n", "  │ print('rows:', len(df))\n", "  rows: 2\n", "  → 42\n", "/copy.csv\n"):
        assert line in ran.stderr
    assert "3 model calls · 3.0k in (1.0k cached)" in ran.stderr
    assert "\x1b" not in ran.stderr
    assert "sales.csv" in ran.requests[0]["messages"][-1]["content"]


def test_json_is_one_object_with_all_that_happened(ask):
    replies = [plans("compute"), codes("print('hi')\nopen('a.txt', 'w').write('x')\n6 * 7"), answers()]

    ran = ask(replies, "-p", "what is 6*7?", "--output-format", "json", "--quiet")
    said = json.loads(ran.stdout)

    assert (ran.returncode, ran.stderr) == (0, "")
    assert (said["schema_version"], said["status"], said["answer"], said["error"]) == (1, "done", "It is 42.", None)
    assert said["session_id"].startswith("session-")
    assert [artifact["name"] for artifact in said["artifacts"]] == ["a.txt"]
    (cell,) = said["code_cells"]
    assert (cell["cell"], cell["ok"], cell["stdout"], cell["result"]) == (1, True, "hi\n", "42")
    assert said["usage"]["calls"] == 3
    assert said["cost_usd"] is None
    assert said["duration_s"] > 0


@pytest.mark.parametrize(
    ("stop", "code", "status"),
    [
        ("Completed", 0, "done"),
        ("TaskFailure", 1, "failed"),
        ("SecurityRisks", 1, "failed"),
        ("Clarification", 3, "needs_person"),
        ("AdditionalInformation", 3, "needs_person"),
    ],
)
def test_the_planners_word_for_why_it_stopped_becomes_the_exit_code(ask, stop, code, status):
    ran = ask([answers("Which column?", stop=stop)], "-p", "q", "--quiet", "--output-format", "json")

    assert ran.returncode == code
    assert json.loads(ran.stdout)["status"] == status


def test_too_many_posts_end_with_4(ask):
    ran = ask([plans("step"), "I can't."] * 3, "-p", "q", "--max-posts", "3")

    assert (ran.returncode, ran.stdout) == (4, "")
    assert "posts and no answer for the user" in ran.stderr
    assert ran.stderr.count("posts and no answer for the user") == 1


def test_a_limit_on_calls_ends_with_4_too(ask):
    ran = ask([plans("step"), "I can't."], "-p", "q", "--set", "session.max_calls=1", "--output-format", "json")

    assert ran.returncode == 4
    assert (json.loads(ran.stdout)["status"], json.loads(ran.stdout)["error"]["type"]) == ("limit", "RoundTooCostly")
    assert "1 model call and no answer for the user; `session.max_calls` is 1. Raise it" in ran.stderr


def test_a_time_limit_of_ones_own_ends_with_124(ask):
    ran = ask([plans("wait"), codes("while True: pass")], "-p", "q", "--timeout", "1.5", "--output-format", "json")

    assert ran.returncode == 124, ran.stderr
    assert json.loads(ran.stdout)["status"] == "timeout"
    assert json.loads(ran.stdout)["error"]["type"] == "RoundTimedOut"


def test_a_model_that_can_not_be_asked_is_a_failed_task_without_a_traceback(ask):
    ran = ask([], "-p", "q")

    assert (ran.returncode, ran.stdout) == (1, "")
    assert "Traceback" not in ran.stderr
    assert "the recording and the run have parted" in ran.stderr


@pytest.mark.parametrize(("answer", "named"), [("It is 3.141.592,65.", "3.141.592,65"), ("It is 3.110.668.", "")])
def test_numbers_of_an_answer_that_nobody_printed_are_named(ask, answer, named):
    replies = [plans("add"), codes("print(3110668.0)"), answers(answer)]
    ran = ask(replies, "-p", "sum?", "--output-format", "json")

    warnings = json.loads(ran.stdout)["warnings"]
    assert (ran.returncode, [named in warning for warning in warnings]) == (0, [True] if named else []), warnings
    assert ("! not found in what code printed" in ran.stderr) is bool(named)


def test_a_long_answer_that_code_has_printed_is_not_called_made_up(ask):
    code = "for i in range(1000): print('row', i, 'value', i * 1.5)"
    ran = ask([plans("print all rows", then="User"), codes(code)], "-p", "all rows?", "--output-format", "json")

    assert json.loads(ran.stdout)["warnings"] == []
    assert "row 999 value 1498.5" in json.loads(ran.stdout)["answer"]


@pytest.mark.parametrize("quiet", [False, True])
def test_what_code_has_made_before_a_model_failed_can_be_gone_on_with(ask, quiet):
    ran = ask([plans("load"), codes("df = 1")], "-p", "q", *(["--quiet"] if quiet else []))

    assert (ran.returncode, ran.stdout) == (1, "")
    assert ("what code made so far is kept; resume it: tw-autogen --resume session-" in ran.stderr) is not quiet
    assert "round-" not in ran.stderr
    assert "the recording and the run have parted" in ran.stderr


def test_a_configuration_error_is_an_object_too_where_json_is_wanted(ask):
    ran = ask([], "-p", "q", "--output-format", "json", "--set", "session.nosuch=1")

    assert ran.returncode == 2
    said = json.loads(ran.stdout)
    assert (said["status"], said["session_id"], said["error"]["type"]) == ("usage", None, "SettingsError")
    assert "unknown setting 'session.nosuch'" in ran.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is a program for Linux")
def test_a_sandbox_that_can_not_stand_is_told_before_a_model_is_asked(ask_outside, environ, tmp_path):
    program = tmp_path / "bin" / "bwrap"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n")
    program.chmod(0o755)
    failing = {"PATH": f"{program.parent}:{environ['PATH']}"}

    args = ("-p", "q", "--output-format", "json", "--set", "kernel.sandbox=bubblewrap")
    ran = ask_outside([answers()], *args, more=failing)

    why = (
        "no sandbox can be set up here (bubblewrap: bwrap: No permissions to create a new namespace), so no code is run"
    )
    assert (ran.returncode, ran.requests) == (2, []), ran.stderr
    said = json.loads(ran.stdout)
    assert (said["status"], said["error"]["type"], said["usage"]["calls"]) == ("usage", "SandboxError", 0)
    assert said["error"]["message"].startswith(why)
    assert f"tw-autogen: {why}" in ran.stderr


@pytest.mark.parametrize(
    "question",
    [
        "a" * 300,
        "word " * 2000,
        "ä/" * 200,
        "/" * 5000,
        "what is\nthis?",
        "nul \0 in it",
        "..",
        "~",
        "-" * 300,
        "名" * 300,
    ],
    ids=["300", "10000", "slashes", "root", "lines", "nul", "parent", "home", "dashes", "wide"],
)
def test_any_text_can_be_a_question(ask, question):
    ran = ask([answers()], "-p", question)

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "It is 42.\n"


@pytest.mark.parametrize(
    "question", ["how many rows?", "Umsatz?", "每个月的销售额是多少？", "一番売れた月は", "เดือนไหนขายดีที่สุด"]
)
def test_an_argument_that_reads_as_a_question_and_is_no_file_is_the_question(ask, tmp_path, question):
    (tmp_path / "my sales.csv").write_text("a\n1\n", encoding="utf-8")

    ran = ask([answers("Some.")], question, "my sales.csv")

    assert ran.stdout == "Some.\n"
    assert question in str(ran.requests)
    assert "my sales.csv" in str(ran.requests)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"day,revenue\n1,20\n2,22\n", "stdin.csv"),
        (b"day\trevenue\n1\t20\n", "stdin.tsv"),
        (b"Some words, and then more.\nAnd a line.\n", "stdin.txt"),
        (b'{"a": 1, "b": 2}\r\n\n{"a": 3, "b": 4}\n', "stdin.jsonl"),
        (b'\xef\xbb\xbf[{"a": 1, "b": 2},\n {"a": 3, "b": 4}]\n', "stdin.json"),
        (b"[a],b\n1,2\n", "stdin.csv"),
        (b"[1, 2]\n[3, 4]\n", "stdin.jsonl"),
        (b"a,\0b\n1,2\n", "stdin.txt"),
    ],
)
def test_what_is_piped_in_beside_a_question_is_data(ask, data, name):
    ran = ask([answers("Some.")], "-p", "how many rows?", data=data)

    assert (ran.returncode, ran.stdout) == (0, "Some.\n"), ran.stderr
    assert name in ran.requests[0]["messages"][-1]["content"]


@pytest.mark.parametrize("args", [[], ["-p", "-"], ["-"]])
def test_what_is_piped_in_without_a_question_is_the_question(ask, args):
    ran = ask([answers()], *args, data=b"what is 6*7?\n")

    assert (ran.returncode, ran.stdout) == (0, "It is 42.\n"), ran.stderr
    assert "what is 6*7?" in ran.requests[0]["messages"][-1]["content"]


def test_a_pipe_that_nobody_writes_to_is_left_alone_with_a_note(environ, tmp_path):
    code = (
        "from pathlib import Path; from tw_autogen.cli.piped_input import read_data; "
        "print(read_data(Path(), wait=False))"
    )
    reader, writer = os.pipe()
    with os.fdopen(reader), os.fdopen(writer, "w"):
        ran = subprocess.run(
            [sys.executable, "-c", code], stdin=reader, capture_output=True, text=True, timeout=60, env=environ,
            cwd=tmp_path, check=True,
        )  # fmt: skip

    assert ran.stdout == "None\n"
    assert "standard input is silent and left alone" in ran.stderr


@pytest.mark.parametrize("options", [[], ["--quiet"], ["--output-format", "json"]])
def test_ctrl_c_ends_with_130_and_says_so(ask, options):
    def press(messages):
        os.kill(os.getpid(), signal.SIGINT)
        return plans("loop")

    ran = ask(ScriptedModel([press, codes("while True: pass")]), "-p", "q", "--timeout", "30", *options)

    assert ran.returncode == 130
    assert (json.loads(ran.stdout)["status"] if "json" in options else ran.stdout) in ("interrupted", "")
    assert "stopped" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_terminating_signals_end_like_ctrl_c_with_the_json_and_nothing_left_behind(command, environ, tmp_path, number):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    with replay_server([plans("loop"), codes("print('begun', flush=True)\nwhile True: pass")]) as server:
        process = subprocess.Popen(
            [*command, "--base-url", server.base_url, "-p", "loop", "--output-format", "json"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, text=True,
            env={**environ, "TMPDIR": str(temporary)},
        )  # fmt: skip
        for line in process.stderr:
            if line.strip() == "begun":  # the output, not the line of the code
                break
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=60)

    assert process.returncode == 143, stderr
    told = json.loads(stdout)
    assert (told["status"], told["error"]["type"]) == ("terminated", "RoundInterrupted")
    assert f"it was ended by a signal ({number.name})" in told["error"]["message"]
    assert f"it was ended by a signal ({number.name})" in stderr
    assert "by the user" not in stderr
    assert told["code_cells"][0]["stdout"] == "begun\n"
    assert 'File "' not in stderr  # a traceback of this program; that of the cell names none
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(("options", "until"), [([], "begun"), (["--quiet"], "begun"), ([], "SessionOpened")])
def test_lines_of_json_whose_reader_leaves_end_the_round_and_its_kernel(command, environ, tmp_path, options, until):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    script = [plans("loop"), codes("import time\nwhile True: print('begun', flush=True); time.sleep(0.1)")]
    with replay_server(script) as server:
        process = subprocess.Popen(
            [*command, "--base-url", server.base_url, "-p", "loop", "--output-format", "stream-json", *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, text=True,
            env={**environ, "TMPDIR": str(temporary)},
        )  # fmt: skip
        for line in process.stdout:
            if json.loads(line)["event"] == "SessionOpened" == until or json.loads(line).get("text") == "begun\n":
                break
        with process:
            process.stdout.close()
            said = process.stderr.read()

    assert (process.returncode, "a handler failed" in said, list(temporary.iterdir())) == (1, False, []), said
    assert said == "" if options else "standard output is read by no program any more" in said


@pytest.mark.parametrize(
    ("closed", "code", "stdout", "said"),
    [
        ("<&-", 0, "It is 42.\n", "1 model call"),
        ("2>&-", 0, "It is 42.\n", ""),
        (">&-", 2, "", "standard output is closed, so there is nowhere to write an answer to"),
        ("<&- >&- 2>&-", 2, "", ""),
        ("> /dev/full", 1, "", "tw-autogen: No space left on device; the disk is full"),
        ("--output-format stream-json > /dev/full", 1, "", "standard output can't be written to: No space left"),
    ],
)
def test_closed_and_full_standard_streams_are_no_traceback(command, environ, tmp_path, closed, code, stdout, said):
    with replay_server([answers()]) as server:
        line = shlex.join([*command, "--base-url", server.base_url, "-p", "what is 6*7?"])
        ran = subprocess.run(
            ["sh", "-c", f"{line} {closed}"], capture_output=True, text=True, timeout=60, cwd=tmp_path, env=environ,
            check=False,
        )  # fmt: skip

    assert (ran.returncode, ran.stdout) == (code, stdout), ran.stderr
    assert said in ran.stderr
    assert ran.stderr.count("tw-autogen: ") < 2
    assert "Traceback" not in ran.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="/sys is a file system that nobody can make folders in")
def test_a_folder_that_can_not_be_written_to_is_named_or_another_one_is_taken(ask_outside, environ, tmp_path):
    refused = ask_outside([answers()], "-p", "what is 6*7?", "--workspace", "/sys/kernel/tw")
    taken = ask_outside([answers()], "-p", "what is 6*7?", cwd="/sys/kernel")

    assert refused.returncode == 1
    assert "tw-autogen: /sys/kernel/tw: " in refused.stderr
    assert "--workspace DIR" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert refused.requests == []
    assert (taken.returncode, taken.stdout) == (0, "It is 42.\n"), taken.stderr
    place = rf"{re.escape(str(tmp_path))}/\.cache/tw-autogen/sessions/[0-9a-f]{{16}}"
    assert re.search(rf"sessions are kept in {place}, because /sys/kernel/\.tw", taken.stderr)


def test_roles_of_a_project_that_run_outside_the_sandbox_are_named(ask, tmp_path):
    here = tmp_path.resolve() / "project"
    (here / "roles" / "crier").mkdir(parents=True)
    (here / "roles" / "crier" / "role.yaml").write_text("alias: Crier\nintro: Cries.\n")
    (here / "roles" / "crier" / "crier.py").write_text(
        "import sys\n\nfrom tw_autogen import Role\n\nprint('LOADED', file=sys.stderr)\n\n\n"
        "class Crier(Role):\n    def reply(self, memory, **kwargs): ...\n"
    )
    (here / "taskweaver_config.json").write_text('{"session.roles": ["planner", "code_interpreter", "crier"]}')

    ran = ask([plans("hi", to="User")], "-p", "hello", "-C", str(here))

    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.startswith(f"roles of {here} run here, outside the sandbox: crier\nLOADED\n")


def test_code_reads_the_current_folder_and_is_told_where_it_is(ask, tmp_path):
    here = tmp_path.resolve() / "project"
    (here / "data").mkdir(parents=True)
    (here / "data" / "sales.csv").write_text("units\n40\n2\n")
    (here / "data" / "prices.csv").write_text("price\n5\n")
    (here / ".env").write_text("A_KEY=canary")
    code = f"import pandas as pd\nint(pd.read_csv({str(here / 'data' / 'sales.csv')!r}).units.sum())"
    spoil = f"open({str(here / 'data' / 'new.csv')!r}, 'w')"
    replies = [plans("add"), codes(code), plans("write"), codes(spoil), codes("1"), answers()]

    ran = ask(replies, "-p", "add up data/sales.csv, and name the price", "-C", str(here))

    assert ran.returncode == 0, ran.stderr
    assert f"code can read {here}\n" in ran.stderr
    assert "  → 42\n" in ran.stderr
    told = f"The User's own folder is {here}. Code can read it"
    first = ran.requests[0]["messages"][-1]["content"]
    assert told in first
    assert "| price\n    | 5" in first
    assert first.count("| units\n") == 1
    assert ".env" not in first
    assert told in ran.requests[1]["messages"][-1]["content"]
    assert "Code can't write there itself." in ran.requests[4]["messages"][-1]["content"]
    assert not (here / "data" / "new.csv").exists()


def test_a_home_folder_is_not_read_and_that_is_said(ask_outside, tmp_path):
    (tmp_path / "secret.txt").write_text("a secret")
    code = f"open({str(tmp_path / 'secret.txt')!r}).read()"

    ran = ask_outside(
        [plans("read"), codes(code), codes("1"), answers()], "-p", "read it", more={"HOME": str(tmp_path)}
    )

    assert f"code can't read {tmp_path.resolve()}, because it is your home folder; name the files" in ran.stderr
    assert "own folder is" not in ran.requests[0]["messages"][-1]["content"]
    assert "FileNotFoundError" in ran.requests[2]["messages"][-1]["content"]


def test_where_nobody_sits_at_a_terminal_nothing_is_installed(ask):
    replies = [plans("install"), codes("%pip install tw-nothing"), codes("1"), answers()]

    ran = ask(replies, "-p", "install it", "--set", "kernel.install=ask")

    assert ran.returncode == 0, ran.stderr
    assert "kernel.install is 'ask', and nobody is here to be asked" in ran.requests[2]["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("setting", "replies"),
    [("planner.approval", [plans("add")]), ("code_interpreter.approval", [plans("add"), codes("1 + 1")])],
)
def test_an_approval_that_nobody_can_give_ends_with_the_exit_for_a_person(ask, setting, replies):
    ran = ask(replies, "-p", "add 1 and 1", "--output-format", "json", "--set", f"{setting}=always")

    assert ran.returncode == 3
    assert json.loads(ran.stdout)["status"] == "needs_person"
    assert json.loads(ran.stdout)["error"]["type"] == "ApprovalNeeded"
    assert setting in ran.stderr


def test_a_role_that_raises_is_told_in_a_line_and_the_planner_goes_on(ask, tmp_path, caplog):
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "role.yaml").write_text("alias: Broken\nintro: Breaks.\n", encoding="utf-8")
    (folder / "broken.py").write_text(
        "from tw_autogen import Role\n\n\nclass Broken(Role):\n    def reply(self, memory, **kwargs):\n"
        "        raise KeyError('oops')\n",
        encoding="utf-8",
    )

    replies = [plans("break", to="Broken"), plans("It is broken.", to="User")]
    ran = ask(replies, "-p", "hello", "--roles", "./broken")

    assert (ran.returncode, ran.stdout) == (0, "It is broken.\n")
    told = " ".join(ran.stderr.split())
    assert told.count("the role Broken failed: KeyError: 'oops'") == 1
    (said,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert said.getMessage().endswith("broken.py:6)")
    assert said.exc_info is None
    assert "Traceback" not in ran.stderr


def test_files_that_the_question_names_land_in_the_current_folder_and_json_says_where(ask, tmp_path):
    (tmp_path / "sales.csv").write_text("day,revenue\n1,20\n")
    (tmp_path / "odd.csv").write_text("mine")
    code = "for name in ('odd.csv', 'chart.png', 'scratch.csv', 'conftest.py'):\n    open(name, 'w').write('x')"
    replies = [plans("do it"), codes(code), answers("Saved.")]

    ran = ask(
        replies, "-p", "read sales.csv, save odd.csv and chart.png, write conftest.py", "sales.csv", "--quiet",
        "--output-format", "json",
    )  # fmt: skip

    said = json.loads(ran.stdout)
    found = {artifact["name"]: artifact["saved_as"] for artifact in said["artifacts"]}
    obeyed = "not saved: conftest.py: programs run or obey files of this name, so it is not copied"
    assert said["warnings"] == [obeyed]
    assert found == {
        "odd.csv": str(tmp_path / "odd (2).csv"), "chart.png": str(tmp_path / "chart.png"), "scratch.csv": None,
        "conftest.py": None,
    }  # fmt: skip
    other, unsaved = ran.stderr.splitlines()
    assert other == "saved odd (2).csv: there is another odd.csv"  # the answer names the other one
    assert unsaved.startswith(f"✗ {obeyed}; it is ")
    names = {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")}
    assert names == {"sales.csv", "odd.csv", "odd (2).csv", "chart.png"}
    assert (tmp_path / "odd.csv").read_text() == "mine"
    assert f"copied to {tmp_path} with the answer" in ran.requests[0]["messages"][-1]["content"]


def test_the_model_is_told_which_folder_of_the_users_is_our_own(ask, tmp_path, monkeypatch):
    (tmp_path / "work").mkdir(mode=0o755)  # tmp_path is the home folder, which code can't see
    monkeypatch.chdir(tmp_path / "work")

    ran = ask([answers()], "-p", "what is here?")

    assert ".tw there holds sessions like this one" in ran.requests[0]["messages"][-1]["content"]
    assert "starts with the first cell" in ran.stderr
    assert "not started" not in ran.stderr


def test_out_takes_all_files_of_an_answer(ask, tmp_path):
    replies = [plans("do it"), codes("open('a.csv', 'w').write('x')\nopen('b.py', 'w').write('x')"), answers()]

    ran = ask(replies, "-p", "save as a.csv", "--out", "results")

    assert ran.returncode == 0, ran.stderr
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == ["a.csv", "b.py"]
    assert not (tmp_path / "a.csv").exists()
    assert "saved results/a.csv\n" in ran.stderr


def test_code_that_may_not_write_where_the_user_is_learns_how_files_get_there(ask, tmp_path, monkeypatch):
    place = tmp_path / "work"  # tmp_path is the home folder, which code can't see
    place.mkdir(mode=0o755)
    monkeypatch.chdir(place)
    code = f"open({str(place / 'odd.csv')!r}, 'w').write('x')"
    again = codes("open('odd.csv', 'w').write('y')")

    ran = ask([plans("do it"), codes(code), again, answers()], "-p", "save odd.csv here")

    told = ran.requests[2]["messages"][-1]["content"]
    assert "kernel.write" not in told
    assert "Code can't write there itself. Files that a request names to be saved are" in told
    assert (place / "odd.csv").read_text() == "y"


@pytest.mark.parametrize("options", [["--quiet"], ["--quiet", "--output-format", "json"]])
def test_new_hooks_where_code_can_write_are_named_with_quiet_and_in_the_json(ask, tmp_path, options):
    place = tmp_path / "granted"
    place.mkdir()
    place.chmod(0o777)  # as root code runs as another user
    code = f"open({str(place / '.envrc')!r}, 'w').write('x')"

    ran = ask([plans("go"), codes(code), answers("Done.")], "-p", "go", "--set", f"kernel.write={place}", *options)

    problem = f"new in a folder that code can write to; look at it before a program reads it: {place / '.envrc'}"
    assert f"! {problem}\n" in ran.stderr
    assert "json" not in options or json.loads(ran.stdout)["warnings"] == [problem]


def test_quiet_names_new_hooks_also_where_there_is_no_answer(ask, tmp_path):
    place = tmp_path / "granted"
    place.mkdir()
    place.chmod(0o777)
    code = f"open({str(place / '.envrc')!r}, 'w').write('x')"
    limited = ["--set", f"kernel.write={place}", "--set", "session.max_posts=3", "--quiet"]

    ran = ask([plans("go"), codes(code), plans("go on")], "-p", "go", *limited)

    assert ran.returncode != 0
    assert ran.stderr.count(f"reads it: {place / '.envrc'}\n") == 1


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (["-p", "how many rows?", "nosuch.csv"], "'nosuch.csv' does not exist"),
        (["-p", " "], "there is no question"),
        (["-p", "how many?", "--nosuch"], "No such option"),
        (["-p", "how many?", "-"], "'-' is standard input, and nothing came through it"),
    ],
)
def test_a_wrong_call_has_its_json_too_and_names_no_command_that_was_not_typed(ask, args, problem):
    ran = ask([], "--output-format", "json", *args)

    said = json.loads(ran.stdout)
    assert (ran.returncode, said["status"], said["error"]["type"]) == (2, "usage", "UsageError")
    assert problem in said["error"]["message"]
    assert problem in ran.stderr
    assert "chat" not in ran.stderr.partition("Error:")[0]


def test_a_wrong_call_without_json_leaves_standard_output_empty(ask):
    ran = ask([], "-p", "how many rows?", "nosuch.csv")

    assert (ran.returncode, ran.stdout) == (2, "")
    assert "Usage: main [OPTIONS]" in ran.stderr


def test_a_file_that_is_named_only_is_described_and_one_that_nobody_makes_is_named(ask, tmp_path):
    (tmp_path / "my").mkdir()
    (tmp_path / "my" / "sales.csv").write_text("day,revenue\n1,20\n", encoding="utf-8")

    ran = ask(
        [answers("Saved to fare.csv.")],
        *["-C", str(tmp_path / "my"), "-p", "sum up sales.csv and @sale.csv and save it as fare.csv"],
        *["--output-format", "json"],
    )

    said = json.loads(ran.stdout)
    warning = "fare.csv: the request names it, but there is no such file, and none was made"
    other = f"{warning.replace('fare', 'sale')}; did you mean 'sales.csv'?"
    assert (said["answer"], said["warnings"]) == ("Saved to fare.csv.", [other, warning])
    assert f"! {warning}" in ran.stderr
    assert "- sales.csv: 17 bytes" in ran.requests[0]["messages"][-1]["content"]
    assert "Not in the User's folder" in ran.requests[0]["messages"][-1]["content"]


def test_a_step_of_which_no_code_ran_is_not_ticked(ask):
    ran = ask([plans("compute it"), "I have computed it.", answers("Fine.")], "-p", "compute it")

    assert "✓ 1. compute it" not in ran.stderr
    assert "▸ 1. compute it" in ran.stderr


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_a_long_answer_is_whole_on_standard_output_and_in_json(ask, as_json):
    rows = [f"{number},{number * number}" for number in range(4000)]
    replies = [plans("print the table", then="User"), codes("for n in range(4000): print(f'{n},{n * n}')")]

    ran = ask(replies, "-p", "all as CSV", "--quiet", *(("--output-format", "json") if as_json else ()))

    assert ran.returncode == 0, ran.stderr
    answer = json.loads(ran.stdout)["answer"] if as_json else ran.stdout.removesuffix("\n")
    assert answer.split("\n") == rows


def test_files_are_looked_up_here_and_then_in_the_folder_of_c(ask, tmp_path, monkeypatch):
    for folder, words in (("data", "there"), ("here", "here")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "both.csv").write_text(f"lies_{words}\n1\n", encoding="utf-8")
    (tmp_path / "data" / "my fees.csv").write_text("fee7\n1\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path / "here")

    ran = ask([answers("Done.")], "-C", "../data", "what is in them?", "my fees.csv", "both.csv", "--quiet")

    assert (ran.returncode, ran.stdout) == (0, "Done.\n"), ran.stderr
    request = ran.requests[0]["messages"][-1]["content"]
    given, _, _ = request.partition("The User's own folder")
    assert ["fee7" in given, "lies_here" in given, "lies_there" in given] == [True, True, False]


def test_an_empty_answer_that_was_asked_for_is_done(ask):
    replies = [plans("list", then="User"), codes("print()"), answers("")]

    ran = ask(replies, "-p", "IDs, or an empty string if there are none", "--quiet", "--output-format", "json")

    said = json.loads(ran.stdout)
    assert (ran.returncode, said["status"], said["answer"]) == (0, "done", "")


def test_a_folder_that_is_called_as_the_home_is_hides_no_file_of_it(ask_outside, environ, tmp_path):
    home, here = Path(environ["HOME"]), tmp_path / "here" / "~"
    here.mkdir(parents=True)
    for folder, words in ((home, "of-the-home"), (here, "of-the-folder")):
        (folder / "a.csv").write_text(f"word\n{words}\n")
    (home / "b.csv").write_text("word\nbeside-it\n")

    ran = ask_outside([answers()], "-p", "What is in it?", "~/a.csv", "~/b.csv", cwd=here.parent)

    named = ask_outside([answers()], "-p", "What is in it?", "--mcp-config=~/a.csv", cwd=here.parent)

    assert named.returncode == 2
    assert "there is a folder of this name here; write ./~/a.csv, or the whole path" in " ".join(named.stderr.split())
    prompt = json.dumps(ran.requests)
    assert "of-the-folder" in prompt
    assert "beside-it" in prompt
    assert "of-the-home" not in prompt


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device here")
@pytest.mark.parametrize("args", ["--help", "--version", "plugins list", "doctor --help"])
def test_what_a_full_disk_does_not_take_of_a_page_ends_with_one_line(command, environ, tmp_path, args):
    line = f"{shlex.join(command)} {args} > /dev/full"
    ran = subprocess.run(["sh", "-c", line], capture_output=True, text=True, cwd=tmp_path, env=environ, check=False)

    assert ran.returncode == 1
    assert ran.stderr.count("\n") == ran.stderr.count("tw-autogen: No space left on device") == 1, ran.stderr
