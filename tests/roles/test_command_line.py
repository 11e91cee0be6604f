import threading

import pytest

from tw_autogen import open_session
from tw_autogen.kernel import AttachedKernel, Execution, LocalKernel
from tw_autogen.testing import FakeKernel, ScriptedModel, check_role, plans


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    with LocalKernel(tmp_path_factory.mktemp("commands")) as kernel:
        yield kernel


@pytest.fixture
def approved():
    return []


@pytest.fixture
def role(stage, kernel, approved):
    def approve(wanted):
        approved.append(wanted.text)
        return "rm" not in wanted.text

    return stage.make("command_line", ScriptedModel([]), {"kernel": kernel, "approve": approve}, seconds=20.0)


def test_a_command_runs_in_the_sessions_folder_once_it_is_approved(stage, role, kernel, approved):
    (kernel.folder / "names.txt").write_text("b\na\n")

    said = stage.ask(role, "Sort the names:\n$ sort names.txt").message

    assert said == "$ sort names.txt\na\nb\n(exit code 0)"
    assert approved == ["sort names.txt"]


@pytest.mark.parametrize(("approval", "runs"), [("always", False), ("findings", False), ("never", True)])
def test_in_a_kernel_that_a_session_is_attached_to_no_setting_lifts_approval(stage, monkeypatch, approval, runs):
    monkeypatch.setattr(AttachedKernel, "execute", lambda *args, **named: Execution(True, "0", "ran", ""))
    theirs = object.__new__(AttachedKernel)
    theirs.approval = approval
    role = stage.make("command_line", ScriptedModel([]), {"kernel": theirs, "approve": None}, approval="always")

    said = stage.ask(role, "$ ls").message

    assert ("ran" in said, "nobody is here" in said) == (runs, not runs)


@pytest.mark.parametrize(
    ("asked", "command"),
    [
        ("Save it:\n```python\nprint(1)\n```\nWhen done, list:\n```sh\necho a\n```\n", "echo a"),
        ("```console\n$ echo a\na\n$ echo b\nb\n```", "echo a\necho b"),
        ("Run it:\n$ echo a \\\n    b\nThen stop.", "echo a \\\n    b"),
        ("```console\n$ echo a \\\n> b\na b\n```", "echo a \\\nb"),
        ("A table:\n```\nid  name\n```\nSort by name.", "echo of the model"),
    ],
)
def test_only_a_block_of_shell_is_a_command(stage, asked, command):
    proposed = []
    with ScriptedModel(["```\necho of the model\n```"] * (command == "echo of the model")) as model:
        more = {"kernel": FakeKernel(), "approve": lambda wanted: bool(proposed.append(wanted.text))}
        stage.ask(stage.make("command_line", model, more), asked)

    assert proposed == [command]


def test_exit_code_and_errors_are_shown(stage, role):
    said = stage.ask(role, "```sh\necho {x} $HOME_OF_NOBODY '$x'; ls nowhere; exit 3\n```").message

    assert "\n{x} $x\n" in said
    assert "nowhere" in said
    assert said.endswith("(exit code 3)")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (f"echo {'x' * 200_000}", "(not run: OSError: [Errno 7] Argument list too long: '/bin/sh', no output)"),
        ("kill -9 $PPID", "(stopped after 0 s. The kernel died while this cell ran: killed by SIGKILL "),
    ],
)
def test_why_a_command_did_not_run_or_end_is_said(stage, tmp_path, command, said):
    with LocalKernel(tmp_path / "own") as own:
        role = stage.make("command_line", ScriptedModel([]), {"kernel": own, "approve": lambda wanted: True})

        assert said in stage.ask(role, f"$ {command}").message


def test_a_task_in_words_is_turned_into_a_command_by_the_model(stage, kernel, approved):
    with ScriptedModel(["```sh\nprintf 'one\\ntwo\\n' | wc -l\n```"]) as model:
        role = stage.make("command_line", model, {"kernel": kernel, "approve": lambda wanted: True})
        said = stage.ask(role, "How many lines are one and two?").message

    assert said.splitlines()[-2:] == ["2", "(exit code 0)"]
    assert model.calls[0][-1]["content"] == "How many lines are one and two?"


def test_a_task_that_no_command_fits_is_answered_in_words(stage):
    with ScriptedModel(["That would delete the user's files."]) as model:
        role = stage.make("command_line", model, {"kernel": FakeKernel(), "approve": None})
        assert stage.ask(role, "Delete all").message == "Nothing was run: That would delete the user's files."


def test_what_a_person_refuses_does_not_run(stage, role, kernel):
    (kernel.folder / "kept.txt").write_text("kept")

    said = stage.ask(role, "$ rm kept.txt").message

    assert said.startswith("Not run: `rm kept.txt`\nThe person who was asked has refused it.")
    assert (kernel.folder / "kept.txt").exists()


def test_where_nobody_can_be_asked_nothing_runs(stage):
    role = stage.make("command_line", ScriptedModel([]), {"kernel": FakeKernel(), "approve": None})

    assert "nobody is here (role.command_line.approval)" in stage.ask(role, "$ ls").message


def test_without_asking_only_where_that_was_set(stage):
    with FakeKernel([Execution(ok=True, result="0", stdout="here\n")]) as kernel:
        role = stage.make("command_line", ScriptedModel([]), {"kernel": kernel, "approve": None}, approval="always")
        assert stage.ask(role, "$ ls").message == "$ ls\nhere\n(exit code 0)"


def test_a_command_that_takes_too_long_is_stopped_and_the_variables_stay(stage, kernel):
    kernel.execute("kept = 7", seconds=30)
    role = stage.make("command_line", ScriptedModel([]), {"kernel": kernel, "approve": lambda one: True}, seconds=1.0)

    said = stage.ask(role, "$ echo begun; sleep 600").message

    assert "begun" in said
    assert said.endswith("(stopped after 1 s)")
    assert kernel.execute("kept", seconds=30).result == "7"
    assert {variable.name for variable in kernel.variables()} == {"kept"}


def test_long_output_is_shown_by_its_beginning_and_its_end(stage, kernel):
    role = stage.make(
        "command_line", ScriptedModel([]), {"kernel": kernel, "approve": lambda one: True}, limit_chars=100
    )

    said = stage.ask(role, "$ seq 1 2000").message

    assert said.startswith("$ seq 1 2000\n1\n2\n")
    assert "characters left out" in said
    assert said.endswith("1999\n2000\n(exit code 0)")


def test_where_no_output_is_wanted_none_is_shown(stage, kernel):
    more = {"kernel": kernel, "approve": lambda one: True}
    role = stage.make("command_line", ScriptedModel([]), more, limit_chars=0)

    assert stage.ask(role, "$ seq 1 5").message == "$ seq 1 5\n\n… 9 characters left out …\n\n(exit code 0)"


def test_a_command_sees_neither_the_hosts_files_nor_its_secrets(stage, role, kernel, tmp_path, monkeypatch):
    if "no sandbox" in kernel.where:
        pytest.skip(f"no sandbox can be set up here: {kernel.where}")
    (tmp_path / "secret.txt").write_text("AB12")

    said = stage.ask(role, f"$ cat {tmp_path}/secret.txt; env").message

    assert "AB12" not in said
    assert "OPENAI_API_KEY" not in said


def test_in_a_session_the_sessions_own_approval_is_asked(tmp_path):
    asked = []
    with (
        ScriptedModel([plans("$ cat a.txt", to="CommandLine"), plans("Done.", to="User")]) as model,
        open_session(
            model,
            roles=["planner", "command_line"],
            folder=tmp_path / "s",
            approve=lambda wanted: asked.append(wanted.text) or True,
        ) as session,
    ):
        (tmp_path / "a.txt").write_text("hello")
        answer = session.ask("show a.txt", files=[tmp_path / "a.txt"])

    assert answer.round.posts[2].message == "$ cat a.txt\nhello\n(exit code 0)"
    assert asked == ["cat a.txt"]


def test_a_round_that_is_over_runs_nothing(stage):
    over = threading.Event()
    over.set()
    role = stage.make("command_line", ScriptedModel([]), {"kernel": FakeKernel(), "approve": lambda one: True})

    assert stage.ask(role, "$ ls", cancelled=over).message == "Not run: `ls`\nThe round is over."


def test_it_does_what_every_role_must(stage):
    class Wording:
        def complete(self, messages, **how):
            return ScriptedModel(["```sh\nls\n```"]).complete(messages)

    def make():
        kernel = FakeKernel(lambda code: Execution(ok=True, result="0", stdout="here"))
        return stage.make("command_line", Wording(), {"kernel": kernel, "approve": lambda one: True})

    assert check_role(make, ask="List the files")
