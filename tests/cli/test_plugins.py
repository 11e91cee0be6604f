"""`tw-autogen plugins`, and the plugins that `-C` brings along."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tw_autogen.cli import main
from tw_autogen.testing import codes, plans, replay_server

TW = "from taskweaver.plugin import register_plugin, test_plugin\n\n\n"
TWICE = f"{TW}@register_plugin\ndef twice(x: int) -> int:\n    return 2 * x\n\n\n"
TEST = "@test_plugin(name='two', description='d')\ndef check(call):\n    assert call(1) == {}\n"
SPEC = "name: {}\ndescription: Do it.\nparameters: [{{name: x, type: int, required: true}}]\n"


@pytest.fixture
def run(environ, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = {key: environ.get(key) for key in {*environ, *os.environ}}  # None takes a variable away

    def run(*args):
        ran = CliRunner().invoke(main, list(args), env=settings)
        assert ran.exception is None or isinstance(ran.exception, SystemExit), ran.exception
        return ran

    return run


@pytest.fixture
def project(tmp_path):
    """A project with one right plugin and one that is not enabled."""
    folder = tmp_path / "project" / "plugins"
    folder.mkdir(parents=True)
    (folder / "twice.yaml").write_text(SPEC.format("twice"))
    (folder / "twice.py").write_text(TWICE + TEST.format(2))
    (folder / "asleep.yaml").write_text(SPEC.format("asleep") + "enabled: false\ncode: twice\n")
    return folder


@pytest.mark.usefixtures("project")
def test_list_names_shipped_project_and_given_ones_with_where_they_run(run, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from tw_autogen.plugin import plugin\n@plugin(runs_in='host')\ndef ask(who: str = 'me') -> str:\n    'Ask.'\n"
    )

    plain = json.loads(run("plugins", "list", "--json", "-C", "project", "mine.py").stdout)
    found = {plugin["name"]: plugin for plugin in plain["plugins"]}

    assert plain["schema_version"] == 1
    said = [(name, one["origin"], one["runs_in"], one["enabled"]) for name, one in found.items()]
    assert ("anomaly_detection", "shipped", "kernel", True) in said
    assert ("sql_pull_data", "shipped", "host", True) in said
    assert [one for one in said if one[1] != "shipped"] == [
        ("asleep", "project", "kernel", False),
        ("twice", "project", "kernel", True),
        ("ask", "path", "host", True),
    ]
    assert found["ask"]["parameters"] == [
        {"name": "who", "type": "str", "required": False, "description": "", "by": "", "default": "me"}
    ]
    text = run("plugins", "list", "-C", "project").stdout
    assert "asleep  project, kernel, not enabled" in text
    assert "- twice(x: int): Do it." in text


_OPENED = """
import sys
opened = []
sys.addaudithook(lambda event, about: opened.append(about[0]) if event == "open" else None)
from tw_autogen.cli import main
try:
    main(sys.argv[1:])
finally:
    print(sum(str(one).endswith("twice.yaml") for one in opened), file=sys.stderr)
"""


@pytest.mark.parametrize("command", ["list", "check"])
def test_the_plugins_of_a_named_project_are_read_once(project, environ, command):
    words = ["plugins", command, "-C", str(project.parent)]

    done = subprocess.run([sys.executable, "-c", _OPENED, *words], env=environ, capture_output=True, text=True)

    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, "1")


def test_list_shows_what_cannot_be_used_and_why(run, project):
    (project / "broken.yaml").write_text("name: broken\n")

    (project / "needs.yaml").write_text("name: needs\ndescription: Needs much.\n")
    (project / "needs.py").write_text(f"import no_such, nor_this\n{TW}@register_plugin\ndef needs(): ...\n")
    (project / "again.yaml").write_text(SPEC.format("twice") + "code: twice\n")

    said = run("plugins", "list", "-C", "project").stdout

    assert "broken.yaml: missing key 'description'" in said
    assert "needs.py:1: needs needs the packages no_such, nor_this" in said
    assert re.search(r"plugins/again\.yaml is called twice too; rename one of the two", said)


def test_the_list_the_check_and_a_run_take_a_parameter_for_the_same(run, project):
    (project / "twice.yaml").write_text(SPEC.format("twice").replace("name: x", "name: number"))
    words = "the parameter number is called x in the Python, and so to the model"

    assert "- twice(x: int): Do it." in run("plugins", "list", "-C", "project").stdout
    checked = run("plugins", "check", "-C", "project")
    assert checked.exit_code == 0
    assert re.search(rf"! .*plugins/twice\.yaml: {words}\n  call it the same in both", checked.stdout)
    with replay_server([plans("Twice two.", then="User"), codes("twice(x=2)")]) as server:
        ran = run("-C", "project", "-p", "Twice two?", "--base-url", server.base_url, "--model", "recorded")
    assert words in ran.stderr


def test_a_project_whose_plugins_are_all_asleep_says_so(run, project):
    (project / "twice.yaml").unlink()
    with replay_server([plans("No.", to="User")]) as server:
        ran = run("-C", "project", "-p", "?", "--base-url", server.base_url, "--model", "recorded")
    assert "plugins: no plugin is enabled; one is brought by its name: asleep" in ran.stderr


def test_a_command_behind_an_option_says_that_commands_come_first(run):
    ran = run("-C", ".", "plugins", "list")

    assert ran.exit_code == 2
    assert "'plugins' is a command, and commands come first: tw-autogen plugins …" in ran.stderr


@pytest.mark.usefixtures("project")
def test_a_right_project_passes_and_its_tests_run_in_a_kernel(run):
    ran = run("plugins", "check", "-C", "project")

    assert ran.exit_code == 0, ran.output
    assert "1 plugin to be used, 2 tests passed, 0 errors, 0 warnings" in ran.stdout


def test_each_flaw_is_named_with_file_what_and_what_to_do(run, project):
    (project / "twice.py").write_text(TWICE + TEST.format(3))
    (project / "held.yaml").write_text(
        "name: held\ndescription: Hold.\ncode: held\nconfigurations: {api_key: a1b2c3d4e5}\n"
    )
    (project / "held.py").write_text(f"import no_such\n{TW}@register_plugin\ndef held(): ...\n")
    (project.parent / "examples" / "planner_examples").mkdir(parents=True)
    (project.parent / "examples" / "planner_examples" / "one.yaml").write_text("enabled: True\n")
    (project.parent / "taskweaver_config.json").write_text('{"tracing.enabled": true}')

    ran = run("plugins", "check", "-C", "project", "--json")
    plain = json.loads(ran.stdout)

    assert ran.exit_code == 1
    assert (plain["ok"], plain["tests"]) == (False, {"passed": 0, "failed": 2})
    assert [
        (finding["level"], finding["path"].rpartition("project/")[2], finding["what"][:44])
        for finding in plain["findings"]
    ] == [
        ("error", "plugins/held.py", "held imports no_such, which is not installed"),
        ("error", "plugins/held.yaml", "configurations: api_key holds a secret, and "),
        ("warning", "plugins/twice.py", "asleep: two failed in the kernel: AssertionE"),
        ("error", "plugins/twice.py", "twice: two failed in the kernel: AssertionEr"),
        ("error", "examples/planner_examples/one.yaml", "missing key 'rounds'"),
        ("warning", "taskweaver_config.json", "these keys mean nothing here: tracing.enable"),
    ]
    assert all(finding["remedy"] for finding in plain["findings"])
    assert "a1b2c3d4e5" not in ran.stdout
    text = run("plugins", "check", "-C", "project").stdout
    assert re.search(r"plugins/held\.py:1: held imports no_such.*\n  pip install what brings no_such", text)
    assert "1 plugin to be used, 0 tests passed, 4 errors, 2 warnings" in text


def test_host_run_plugins_are_loaded_only_when_asked_for(run, project, tmp_path):
    for name in ("twice", "asleep"):
        text = (project / f"{name}.yaml").read_text()
        (project / f"{name}.yaml").write_text(f"{text}runs_in: host\n")
    trace = f"open({str(tmp_path / 'was_run')!r}, 'w').close()\n"
    (project / "twice.py").write_text(trace + TWICE + TEST.format(2))

    ran = run("plugins", "check", str(project))

    assert "not loaded, because they run in the host: asleep, twice; --host does it" in ran.stdout
    assert json.loads(run("plugins", "check", str(project), "--json").stdout)["not_loaded"] == ["asleep", "twice"]
    assert not (tmp_path / "was_run").exists()
    assert "2 tests passed" in run("plugins", "check", str(project), "--host").stdout
    assert (tmp_path / "was_run").exists()


def test_check_without_plugins_says_so(run):
    ran = run("plugins", "check")

    assert ran.exit_code == 2
    assert "no plugins here" in ran.stderr


def test_new_writes_a_plugin_that_passes_its_check_and_never_overwrites(run, tmp_path):
    origin = "tools.py:price"
    (tmp_path / "tools.py").write_text("def price(name: str) -> float:\n    'Look up a price.'\n    return 1.5\n")
    sys.modules.pop("tools", None)

    made = run("plugins", "new", "--from", origin)
    sys.modules.pop("tools", None)

    assert made.exit_code == 0, made.output
    assert "wrote plugins/price.yaml\nwrote plugins/price.py\ndef price(name: str) -> float:" in made.stdout
    assert run("plugins", "check", "./plugins", "--host").exit_code == 0
    again = run("plugins", "new", "--from", origin)
    assert again.exit_code == 2
    assert "price.yaml: is there already, and is not overwritten" in again.stderr


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        ("nothing", "write module:function, or file.py:function"),
        ("none.py:f", "there is no file none.py"),
        ("no_such_module:f", "no module 'no_such_module' is installed; write path/to/file.py:f for a file"),
        ("json:no_such", "AttributeError"),
        ("leaves.py:f", "SystemExit: 0"),
    ],
)
def test_new_says_what_it_cannot_import(run, tmp_path, origin, words):
    (tmp_path / "leaves.py").write_text("raise SystemExit(0)\n")

    ran = run("plugins", "new", "--from", origin)

    assert ran.exit_code == 2
    assert words in ran.stderr


@pytest.mark.parametrize("named", [True, False])
def test_the_plugins_of_a_project_are_found(run, project, monkeypatch, caplog, named):
    (project.parent / "taskweaver_config.json").write_text('{"planner.load_plugin": true}')
    (project / "broken.yaml").write_text("name: broken\n")
    (project / "bad.py").write_text(
        "from tw_autogen.plugin import plugin\n1 / 0\n\n@plugin\ndef bad() -> int:\n    'Fail.'\n    return 1\n"
    )
    if not named:
        monkeypatch.chdir(project.parent)
    with replay_server([plans("double it"), codes("twice(21)"), plans("42.", to="User")]) as server:
        more = ["-C", "project"] if named else ["--trust"]
        ran = run(*more, "--base-url", server.base_url, "--workspace", "s", "-p", "What is twice 21?")

    assert ran.stdout == "42.\n"
    assert "42" in server.requests[2]["messages"][-1]["content"]
    said = ran.stderr.splitlines()
    assert [line for line in said if line.startswith("plugins of ")] == [f"plugins of {project.parent}: twice"]
    assert len([line for line in said if "without meaning here: planner.load_plugin" in line]) == 1
    assert len([line for line in said if line.startswith("left out: ") and "broken.yaml: missing key" in line]) == 1
    assert any(
        "left out: the plugin bad: " in line and "bad.py:2: ZeroDivisionError" in line for line in caplog.messages
    )


@pytest.mark.usefixtures("project")
def test_a_folder_that_is_no_project_and_was_not_named_brings_no_plugins(run, tmp_path):
    (tmp_path / "project").rename(tmp_path / "other")
    (tmp_path / "other" / "plugins").rename(tmp_path / "plugins")
    with replay_server([plans("42.", to="User")]) as server:
        ran = run("--base-url", server.base_url, "--workspace", "s", "-p", "What is twice 21?")

    assert ran.stdout == "42.\n"
    assert "plugins of" not in ran.stderr


def test_a_folder_that_is_no_project_says_how_its_plugins_are_used(run, project, monkeypatch):
    monkeypatch.chdir(project.parent)

    ran = run("plugins", "list")

    assert "twice  folder, kernel" in ran.stdout
    assert "a run takes those of plugins only if told to: --plugins ./plugins, or -C ." in ran.stdout
    (project.parent / "tw_autogen.yaml").write_text("session: {max_posts: 9}\n")
    ran = run("plugins", "list")
    assert "twice  folder, kernel" in ran.stdout
    assert "This folder is not trusted, so a run takes those of plugins only if told to: --plugins" in ran.stdout
    for option in ("--trust", "-C."):  # as the run that takes them
        ran = run("plugins", "list", option)
        assert ("twice  project, kernel" in ran.stdout, "only if told to" in ran.stdout, ran.stderr) == (
            True,
            False,
            "",
        )


def test_check_takes_the_names_that_list_gives(run, project, monkeypatch):
    monkeypatch.chdir(project.parent)

    ran = run("plugins", "check", "twice", "anomaly_detection", "--json", "-C", ".")

    assert ran.exit_code == 0, ran.stdout
    assert json.loads(ran.stdout)["plugins"] == ["twice", "anomaly_detection"]
    wrong = run("plugins", "check", "twise", "-C", ".")
    assert wrong.exit_code == 2
    assert "twise: no such file or folder, and no plugin is called that; did you mean 'twice'?" in wrong.stderr


def test_check_runs_no_plugins_of_a_named_folder_that_lie_elsewhere(run, project, tmp_path):
    (project / "twice.py").write_text("open('ran', 'w')\n" + TWICE)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "plugins").symlink_to(project)

    ran = run("plugins", "check", "-C", "other", "--host")

    assert (ran.exit_code, "the plugins of this folder lie elsewhere" in ran.stderr) == (2, True)
    assert not (tmp_path / "ran").exists()


@pytest.mark.usefixtures("project")
def test_check_takes_a_word_for_a_name_and_never_for_a_folder_that_lies_here(run, tmp_path):
    (tmp_path / "project" / "plugins" / "twice.py").write_text("open('ran', 'w')\n" + TWICE)

    wrong = run("plugins", "check", "project", "--host")

    assert wrong.exit_code == 2
    assert "project: no plugin is called that; write ./project for what lies here" in wrong.stderr
    assert not (tmp_path / "ran").exists()
    assert "1 plugin to be used" in run("plugins", "check", "./project").output


def test_what_was_written_says_how_it_is_used(run, tmp_path):
    (tmp_path / "mine.py").write_text("def forecast(days: int) -> int:\n    'Look ahead.'\n    return days\n")

    ran = run("plugins", "new", "--from", "mine.py:forecast")

    assert "It is used with: tw-autogen --plugins plugins/forecast.yaml" in ran.stdout


def test_new_loads_the_file_that_is_named_and_what_it_imports_itself(run, tmp_path):
    (tmp_path / "mine4.py").write_text(
        "import mine4_rates\n\n\ndef ahead(days: int) -> int:\n    'Look ahead.'\n    return days\n"
    )
    (tmp_path / "mine4_rates.py").write_text("RATE = 3\n")
    for name in ("mine4", "statistics"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")

    ran = run("plugins", "new", "--from", "mine4.py:ahead")

    assert ran.exit_code == 0, ran.output
    assert not (tmp_path / "ran").exists()


def test_new_takes_a_file_of_the_home_and_none_of_a_folder_that_is_called_so(run, environ, tmp_path):
    home, planted = Path(environ["HOME"]), tmp_path / "~"
    for folder, words in ((home, "Of the home."), (planted, "Planted.")):
        folder.mkdir(exist_ok=True)
        (folder / "mine5.py").write_text(f"def far(days: int) -> int:\n    {words!r}\n    return days\n")

    ran = run("plugins", "new", "--from=~/mine5.py:far")

    assert ran.exit_code == 0, ran.output
    assert "Of the home." in (tmp_path / "plugins" / "far.yaml").read_text()


def test_new_writes_through_no_link(run, tmp_path):
    (tmp_path / "tools2.py").write_text("def price(name: str) -> float:\n    'Look up a price.'\n    return 1.5\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "plugins").symlink_to(tmp_path / "elsewhere")

    ran = run("plugins", "new", "--from", "tools2.py:price")

    assert ran.exit_code == 2
    assert f"{tmp_path / 'plugins'} is a link, which code may have made; name the folder that it leads to" in ran.stderr
    assert not list((tmp_path / "elsewhere").iterdir())


def test_new_writes_over_no_link_to_a_file_that_is_not_there(run, tmp_path):
    (tmp_path / "tools3.py").write_text("def cost(name: str) -> float:\n    'Look up a cost.'\n    return 1.5\n")
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "cost.yaml").symlink_to(tmp_path / "elsewhere")

    ran = run("plugins", "new", "--from", "tools3.py:cost")

    assert (ran.exit_code, "cost.yaml: is there already" in ran.stderr) == (2, True)
    assert not (tmp_path / "elsewhere").exists()


NESTED = "nested more than 300 deep; write it in more statements"
STRANGE = {
    "the main module": ("import __main__\n" + TWICE, ""),
    "signs": (f"x = {'-' * 5000}1\n" + TWICE, NESTED),
    "attributes": (f"x = {'a.' * 3000}b\n" + TWICE, NESTED),
    "branches": ("if a: pass\n" + "elif b: pass\n" * 2000 + TWICE, NESTED),
    "parentheses": (f"x = {'(' * 300}1{')' * 300}\n" + TWICE, "not valid Python: too many nested parentheses"),
    "a null": ("x = '\0'\n" + TWICE, "not valid Python: source code string cannot contain null bytes"),
    "an escape": ("import \u202eabc\n" + TWICE, r"invalid non-printable character U+202E"),
}


@pytest.mark.parametrize("case", STRANGE)
def test_python_that_anybody_wrote_is_listed_with_what_is_wrong(run, tmp_path, case):
    text, problem = STRANGE[case]
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "twice.yaml").write_text(SPEC.format("twice"))
    (tmp_path / "plugins" / "twice.py").write_text(text)

    ran = run("plugins", "list")

    assert ran.exit_code == 0
    assert problem in ran.stdout
    assert ("twice(" in ran.stdout) is not bool(problem)


def test_an_error_that_quotes_a_file_moves_nothing_on_the_terminal(run, tmp_path):
    (tmp_path / "tw_autogen.yaml").write_text('{"planner.\\u202einst\\u001b[2J": 1}')

    ran = run("plugins", "list")

    assert ran.exit_code == 2
    assert "unknown setting (no word)" in ran.stderr
    assert ran.stderr.replace("\n", "").isprintable()
