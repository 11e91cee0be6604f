"""`tw-autogen scenario`, as a user types it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from tw_autogen.cli import main
from tw_autogen.testing import ScriptedModel, plans, replay_server

SCENARIO = """\
source: our own
about: a greeting
ask: [greet me]
limits: {posts: 6, seconds: 60}
expect: [{answer: hello}]
judge: It is friendly.
"""


@pytest.fixture
def tw(environ, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = {key: environ.get(key) for key in {*environ, *os.environ}}

    def run(*args):
        made = CliRunner().invoke(main, ["scenario", *args], env=settings)
        assert made.exception is None or isinstance(made.exception, SystemExit), made.exception
        return made

    return run


@pytest.fixture
def greeting(tmp_path):
    (tmp_path / "greeting").mkdir()
    (tmp_path / "greeting" / "scenario.yaml").write_text(SCENARIO, encoding="utf-8")
    return tmp_path / "greeting"


def greets(words):
    return plans(words, to="User")


def record(tw, *replies):
    with replay_server([greets(reply) for reply in replies]) as server:
        return tw("record", "./greeting", "--base-url", server.base_url)


def test_what_was_recorded_replays_and_a_changed_prompt_fails_only_if_strict(tw, greeting):
    assert record(tw, "hello!").exit_code == 0
    recorded = yaml.safe_load((greeting / "replies.yaml").read_text(encoding="utf-8"))
    assert recorded["model"] == "recording"
    assert len(recorded["replies"][0]["prompt"]) == 64

    assert tw("run", "./greeting", "--strict").exit_code == 0
    (greeting / "scenario.yaml").write_text(SCENARIO.replace("greet me", "greet us"), encoding="utf-8")
    lenient, strict = tw("run", "./greeting"), tw("run", "./greeting", "--strict")

    assert (lenient.exit_code, strict.exit_code) == (0, 1)
    assert "greeting (1 stale)" in lenient.stdout
    assert "greeting: stale: call 1, Planner: " in strict.stdout


def test_what_a_scenario_is_called_and_says_of_itself_sends_no_escapes_to_the_terminal(tw, tmp_path):
    name, shown = "\x1b]0;PWN\x07\x1b[2J", r"\x1b]0;PWN\x07\x1b[2J"
    folder = tmp_path / "all" / name
    folder.mkdir(parents=True)
    about = r'about: "\e]0;PWN\a\e[2Jmore"'
    ask = 'when_asked: [{matches: "\\eM", say: x}]\nlessons: "\\e[2J"'
    text = f"{SCENARIO.replace('about: a greeting', about)}{ask}\n"
    (folder / "scenario.yaml").write_text(text, encoding="utf-8")
    made = [tw("show", "./all"), tw("run", "./all"), tw("run", f"./all/{name}"), tw("table", "./all")]
    (folder / "scenario.yaml").write_text(SCENARIO, encoding="utf-8")
    with replay_server([greets("hello!")]) as server:
        made.append(tw("record", "./all", "--base-url", server.base_url))
    made += [tw("run", "./all"), tw("show", "--prompts", "./all"), tw("table", "./all")]

    assert [one.exit_code for one in made[-4:]] == [0, 0, 0, 0]
    assert not [one.output for one in made if "\x1b" in one.output or "\x07" in one.output]
    assert f"{shown}more" in made[0].stdout
    assert f"{shown}: recording" in made[4].stderr
    assert f"the replies are in {tmp_path}/all/{shown}/replies.yaml" in made[4].stderr


def test_a_recording_that_does_not_hold_is_kept_apart_and_the_earlier_one_stays(tw, greeting):
    record(tw, "hello!")
    before = (greeting / "replies.yaml").read_bytes()

    failed = record(tw, "good bye")

    assert failed.exit_code == 1
    assert "expected an answer that matches 'hello'" in failed.stdout
    assert (greeting / "replies.yaml").read_bytes() == before
    assert "good bye" in (greeting / "replies.failed.yaml").read_text(encoding="utf-8")


def test_live_runs_are_counted_and_the_judge_is_reported_apart(tw, greeting, tmp_path):
    pytest.importorskip("jinja2", reason="the extra `report`")
    kind, curt = '{"reason": "warm", "holds": true}', '{"reason": "curt", "holds": false}'
    with replay_server([greets("hello!"), kind, greets("good bye"), kind, greets("hello"), curt]) as server:
        args = ("run", "./greeting", "--live", "--times", "3", "--base-url", server.base_url)
        ran = tw(*args, "--json", "--html", "report.html")
    said = json.loads(ran.stdout)
    (one,) = said["scenarios"]

    assert ran.exit_code == 1
    assert (said["mode"], one["passed"], [each["ok"] for each in one["runs"]]) == ("live", 2, [True, False, True])
    assert [each["usage"]["calls"] for each in one["runs"]] == [1, 1, 1]
    assert [each["holds"] for each in one["judge"]] == [True, True, False]
    assert "2 of 3" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_table_says_how_many_runs_were_as_expected(tw, greeting):
    with replay_server([greets("hello!"), greets("good bye")]) as server:
        ran = tw("run", "./greeting", "--live", "--times", "2", "--no-judge", "--base-url", server.base_url)

    assert "greeting" in ran.stdout
    assert "1 of 2" in ran.stdout
    assert "greeting, run 2: answer: round 1: expected" in ran.stdout


def test_a_scenario_and_one_that_it_teaches_are_recorded_one_after_the_other(tw, greeting, tmp_path):
    teaching = f"{SCENARIO}learn: lessons\n"
    (greeting / "scenario.yaml").write_text(teaching, encoding="utf-8")
    (tmp_path / "taught").mkdir()
    taught = f"{SCENARIO}lessons: ../greeting/lessons\n"
    (tmp_path / "taught" / "scenario.yaml").write_text(taught, encoding="utf-8")
    alone = tw("record", "./taught", "--base-url", "http://127.0.0.1:9", "--model", "any")
    assert "can't be recorded: it needs the lessons in ../greeting/lessons" in alone.stderr

    lesson = '{"lesson": "Those who greet are greeted."}'
    with replay_server([greets("hello!"), lesson, greets("hello again!")]) as server:
        both = tw("record", "./greeting", "./taught", "--base-url", server.base_url)

    assert both.exit_code == 0
    assert "Those who greet are greeted." in (greeting / "lessons" / "exp_greeting.yaml").read_text(encoding="utf-8")
    assert tw("run", "./taught", "./greeting", "--strict").exit_code == 0


@pytest.mark.parametrize(("stopping", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_what_was_run_before_a_stop_is_told_all_the_same(greeting, environ, tmp_path, stopping, code):
    pytest.importorskip("jinja2", reason="the extra `report`")
    running = []

    def stop(messages):
        running[0].send_signal(stopping)
        return greets("never heard")

    with ScriptedModel([greets("hello!"), stop]) as model, replay_server(model) as server:
        args = ["run", "./greeting", "--live", "--times", "3", "--no-judge", "--base-url", server.base_url]
        running.append(
            subprocess.Popen(
                [sys.executable, "-m", "tw_autogen.cli", "scenario", *args, "--html", "report.html", "--json"],
                cwd=tmp_path,
                env=environ,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
            )  # fmt: skip
        )
        out, err = running[0].communicate(timeout=60)

    assert running[0].returncode == code
    assert "greeting: run 1 of 3: as expected, 1 call, " in err
    assert "stopped; what was run until then:" in err
    said = json.loads(out)
    assert (said["ok"], said["scenarios"][0]["passed"], len(said["scenarios"][0]["runs"])) == (False, 1, 1)
    assert "1 of 1" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_what_was_run_before_one_that_can_not_run_is_told_all_the_same(tw, greeting, tmp_path):
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "scenario.yaml").write_text(f"{SCENARIO}plugins: [./p.py]\n", encoding="utf-8")
    (tmp_path / "odd" / "p.py").write_text("x = 1\n", encoding="utf-8")
    with replay_server([greets("hello!")]) as server:
        ran = tw("run", "./greeting", "./odd", "--live", "--no-judge", "--base-url", server.base_url)

    assert (ran.exit_code, "1 of 1" in ran.stdout) == (2, True), ran.stderr
    assert "tw-autogen: " in ran.stderr.splitlines()[-1]


def test_one_that_is_not_recorded_is_left_out_of_all_and_fails_by_name(tw, greeting):
    assert "not recorded yet" in tw("show", "./greeting").stdout

    named = tw("run", "./greeting")
    all_of_a_folder = tw("run", ".")

    assert named.exit_code == 2
    assert "nothing has been recorded for this scenario" in named.stderr
    assert f"tw-autogen scenario record {greeting.resolve()}" in named.stderr
    assert tw("show", "greeting/scenario.yaml").stdout == tw("show", "./greeting").stdout
    assert all_of_a_folder.exit_code == 0
    assert "not recorded yet" in all_of_a_folder.stdout


def test_the_prompts_are_shown_also_before_anything_is_recorded(tw, greeting):
    shown = tw("show", "./greeting", "--prompts").stdout

    assert "== greeting, call 1, Planner: 2 messages" in shown
    assert "You are the Planner" in shown
    assert "greet me" in shown


def test_the_table_of_costs_is_printed_written_and_checked(tw, greeting, tmp_path):
    record(tw, "hello!")
    readme = tmp_path / "README.md"
    marks = ("<!-- calls and tokens: written by `tw-autogen scenario table --write`, not by hand -->",
             "<!-- end of calls and tokens -->")  # fmt: skip
    readme.write_text("\n".join(marks) + "\n", encoding="utf-8")

    assert "| `greeting` | a greeting | 1 | - | - | - |" in tw("table", "./greeting").stdout
    assert tw("table", "./greeting", "--check", "README.md").exit_code == 1
    assert tw("table", "./greeting", "--write", "README.md").exit_code == 0
    assert tw("table", "./greeting", "--check", "README.md").exit_code == 0


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pipes in folders")
@pytest.mark.parametrize("how", ["--check", "--write"])
@pytest.mark.parametrize("kind", ["link", "pipe", "missing"])
def test_a_table_is_compared_with_and_put_into_plain_files_only(tw, greeting, tmp_path, how, kind):
    record(tw, "hello!")
    other = tmp_path / "other.md"
    other.write_text("private\n", encoding="utf-8")
    if kind == "link":
        (tmp_path / "README.md").symlink_to(other)
    elif kind == "pipe":
        os.mkfifo(tmp_path / "README.md")

    ran = tw("table", "./greeting", how, "README.md")

    assert ran.exit_code == 2
    assert ("it can't be read: No such file" if kind == "missing" else "no plain file") in ran.stderr
    assert other.read_text(encoding="utf-8") == "private\n"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("run", "statful"), "did you mean 'stateful'?"),
        (("record",), "name the scenarios that are to be recorded"),
        (("run", "--live", "--strict"), "leave it out with --live"),
        (("run", "./greeting", "--live"), "no model configured"),
        (("show", "--json"), "--json goes with --prompts"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(tw, greeting, args, words):
    ran = tw(*args)

    assert ran.exit_code == 2
    assert words in ran.stderr


@pytest.mark.parametrize("args", [("run",), ("record",), ("show", "--prompts")])
@pytest.mark.parametrize(
    "wants",
    [
        'settings: {kernel.sandbox: "off"}',
        "settings: {model.base_url: http://x/v1}",
        "environment: {PATH: ./bin}",
        "settings: {role.web_search.key_env: OPENAI_API_KEY}",
        "settings: {role.web_search: {key_env: OPENAI_API_KEY}}",
        "settings: {role.command_line.approval: always}",
        "settings: {role.web_explorer.private: true}",
        "settings: {role.manual_reader.folder: /srv/private}",
        "settings: {role.manual_reader: {folder: ../private}}",
        "settings: {role.manual_reader.folder: .private}",
        "settings: {recall.planner_examples: .private}",
    ],
)
def test_a_scenario_that_is_not_trusted_sets_nothing_that_a_folder_can_not_set(tw, greeting, args, wants):
    with (greeting / "scenario.yaml").open("a", encoding="utf-8") as file:
        file.write(f"{wants}\n")
    Path(".private").mkdir()

    ran = tw(*args, "./greeting")

    assert ran.exit_code == 2
    assert "set only where you trust the scenario; look at it, and say --trust" in ran.stderr
    assert tw("show", "./greeting").exit_code == 0
    assert tw("show", "--prompts", "--trust", "./greeting").exit_code == 0


def test_a_link_in_a_scenario_without_lessons_is_not_called_lessons(tw, greeting):
    (greeting / "beside.md").symlink_to("/elsewhere/beside.md")

    ran = tw("run", "./greeting")

    assert "set only where you trust the scenario" not in ran.stderr
    assert "replies.yaml" in ran.stderr  # nothing is recorded


@pytest.mark.parametrize("piece", ["plugins: [../outside/twice.yaml]", "roles: [planner, ../outside/crier]"])
def test_roles_and_plugins_of_a_scenario_that_is_not_trusted_lie_in_it(tw, greeting, tmp_path, piece):
    outside = tmp_path / "outside"
    (outside / "crier").mkdir(parents=True)
    (outside / "twice.yaml").write_text("name: twice\ndescription: d\nparameters: []\n", encoding="utf-8")
    with (greeting / "scenario.yaml").open("a", encoding="utf-8") as file:
        file.write(f"{piece}\n")

    ran = tw("run", "./greeting")

    assert ran.exit_code == 2
    assert f"{outside.name}/" in ran.stderr
    assert "set only where you trust the scenario" in ran.stderr


@pytest.mark.parametrize(
    ("wants", "key"),
    [
        ("lessons: ../../private", "lessons"),
        ("lessons: taught", "lessons"),
        ("settings: {recall.planner_examples: ./taught}", "recall.planner_examples"),
    ],
)
def test_lessons_and_examples_of_a_scenario_that_is_not_trusted_lie_beside_it(tw, greeting, tmp_path, wants, key):
    (greeting / "taught").mkdir()
    (greeting / "taught" / "exp_mine.yaml").symlink_to(tmp_path.parent / "exp_private.yaml")
    with (greeting / "scenario.yaml").open("a", encoding="utf-8") as file:
        file.write(f"{wants}\n")

    ran = tw("run", "./greeting")

    assert (ran.exit_code, f"{key}: set only where you trust the scenario" in ran.stderr) == (2, True), ran.stderr


@pytest.mark.parametrize("database", ["/srv/x.db", "sub/../../srv/x.db", "~/x.db", "sqlite:///x.db", "./link.db"])
def test_a_scenario_that_is_not_trusted_names_no_database_elsewhere(tw, greeting, tmp_path, database):
    (greeting / "sub").mkdir()
    (greeting / "link.db").symlink_to(tmp_path / "private.db")
    with (greeting / "scenario.yaml").open("a", encoding="utf-8") as file:
        file.write(f'variables: {{database: "{database}"}}\n')

    ran = tw("run", "./greeting")

    assert (ran.exit_code, "variables.database: set only where you trust" in ran.stderr) == (2, True), ran.stderr


def test_trust_of_a_scenario_is_none_of_the_folder_in_which_it_is_run(tw, greeting, tmp_path):
    with replay_server([plans("hello!", to="User")]) as strangers:
        (tmp_path / "tw_autogen.yaml").write_text(
            f"model: {{base_url: {strangers.base_url}, name: m, api_key: x}}\n", encoding="utf-8"
        )

        ran = tw("run", "./greeting", "--live", "--trust")

    assert (ran.exit_code, "no model configured" in ran.stderr) == (2, True), ran.stderr
    assert "left out model.base_url" in ran.stderr


def test_replies_are_written_over_no_link(tw, greeting, tmp_path):
    (greeting / "replies.under_way.yaml").symlink_to(tmp_path / "elsewhere")

    ran = record(tw, "hello!")

    assert (ran.exit_code, "a link; replies are written to no file elsewhere" in ran.stderr) == (2, True)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
@pytest.mark.parametrize("name", ["scenario.yaml", "replies.yaml"])
@pytest.mark.parametrize("command", ["run", "show"])
def test_no_file_of_a_scenario_is_read_over_a_link_out_of_a_folder_that_is_not_trusted(
    tw, greeting, tmp_path, monkeypatch, name, command
):
    (tmp_path / "here").mkdir()
    assert record(tw, "hello!").exit_code == 0
    folder = greeting.rename(tmp_path / "here" / "greeting")
    (folder / name).rename(tmp_path / name)
    (folder / name).symlink_to(tmp_path / name)
    monkeypatch.chdir(tmp_path / "here")

    ran = tw(command, "./greeting")

    if (command, name) != ("show", "replies.yaml"):
        assert ran.exit_code in (1, 2)
        assert "link" in ran.stdout + ran.stderr
