import os
import shlex
import shutil
import subprocess
import sys
from importlib import _bootstrap_external

import click
import pytest
from click.testing import CliRunner

from tw_autogen.cli import main, search_path
from tw_autogen.cli.search_path import leave_out_current_folder
from tw_autogen.cli.user_path import UserPath
from tw_autogen.model.settings import OPENAI_NAME


@pytest.fixture
def run(tmp_path, monkeypatch, environ):
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    blank = {"OPENAI_API_KEY": None, "OPENAI_BASE_URL": None, "OPENAI_MODEL": None, "OAI_CONFIG_LIST": None}
    return lambda *args, stdin="": runner.invoke(main, args, input=stdin, env={**blank, "HOME": str(tmp_path)})


def test_help_names_the_options_and_the_commands(run):
    result = run("--help")

    assert result.exit_code == 0
    assert "tw-autogen [OPTIONS] [QUESTION] [FILES]..." in result.output.replace("main", "tw-autogen")
    for word in ("--prompt", "--base-url", "--timeout", "chat", "demo", "doctor"):
        assert word in result.output


def test_help_says_what_a_question_does_and_where_defaults_come_from(run):
    shown = " ".join(run("--help").output.split())

    assert "With a question in quotes, or after -p, the program prints the answer" in shown
    assert f"OPENAI_MODEL or your settings; else {OPENAI_NAME} on OpenAI, elsewhere the server's only model" in shown
    assert "OPENAI_BASE_URL or your settings, else OpenAI" in shown
    assert "With -p: " not in shown


def test_a_run_without_a_model_has_no_options_of_models(run):
    shown = run("rerun", "--help").output

    assert [name for name in ("--model", "--api-key", "--base-url", "--roles", "--max-posts") if name in shown] == []
    assert "--timeout" in shown


@pytest.mark.parametrize("parts", ["{0}:", ":{0}", "{0}::/nowhere", ".:{0}", "./:{0}", "lib/..:{0}", "src:{0}"])
def test_no_module_comes_from_the_current_folder_whatever_the_path_says(environ, tmp_path, parts):
    program = shutil.which("tw-autogen", path=os.path.dirname(sys.executable))
    (tmp_path / "src").mkdir()
    for name in ("click", "yaml", "numpy", "src/click", "src/numpy"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w')\nraise SystemExit('a stranger')\n", encoding="utf-8")
    (tmp_path / "lib").mkdir()
    environ["PYTHONPATH"] = parts.format(tmp_path / "lib")

    ran = subprocess.run([program, "--version"], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60)

    assert (ran.returncode, (tmp_path / "ran").exists()) == (0, False), ran.stderr
    assert "of which a part means the current folder" in ran.stderr


@pytest.mark.parametrize(("below", "stays"), [("", True), (".venv/lib/python3.11/site-packages", False)])
def test_an_environment_in_the_current_folder_is_no_reason_to_import_from_there(tmp_path, monkeypatch, below, stays):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'lib'}:")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    leave_out_current_folder(str(tmp_path / below / "tw_autogen" / "cli" / "__init__.py"))

    assert (str(tmp_path) in sys.path) is stays
    assert os.environ["PYTHONPATH"] == os.pathsep.join([*([str(tmp_path)] if stays else []), str(tmp_path / "lib")])


@pytest.mark.parametrize(
    ("said", "kept"), [(":/bin", "/bin"), ("/bin:.", "/bin"), ("bin:/bin::../x", "/bin"), (".", None)]
)
def test_no_program_comes_from_the_current_folder_whatever_the_path_says(monkeypatch, said, kept):
    monkeypatch.setenv("PATH", said)
    monkeypatch.delenv("PYTHONPATH", raising=False)

    leave_out_current_folder(search_path.__file__)

    assert os.environ.get("PATH") == kept


@pytest.mark.parametrize(("value", "kept"), [(":/lib", "/lib"), ("/lib", "/lib"), ("lib", None), ("", None)])
def test_no_library_of_later_processes_comes_from_the_current_folder(monkeypatch, capsys, value, kept):
    monkeypatch.setenv("LD_LIBRARY_PATH", value)
    monkeypatch.delenv("PYTHONPATH", raising=False)

    leave_out_current_folder(search_path.__file__)

    assert os.environ.get("LD_LIBRARY_PATH") == kept
    named = f"LD_LIBRARY_PATH is {value!r}, of which a part means the current folder"
    assert (named in capsys.readouterr().err) is (kept != value and value != "")


def test_no_compiled_file_of_the_current_folder_is_taken_for_a_programs_own(environ, tmp_path):
    program = shutil.which("tw-autogen", path=os.path.dirname(sys.executable))
    source = click.__file__
    about = os.stat(source)
    cache = tmp_path / "pyc" / os.path.relpath(source, "/").replace(".py", f".{sys.implementation.cache_tag}.pyc")
    cache.parent.mkdir(parents=True)
    code = compile("open('ran', 'w')\nraise SystemExit('a stranger')\n", source, "exec")
    cache.write_bytes(_bootstrap_external._code_to_timestamp_pyc(code, int(about.st_mtime), about.st_size))
    environ["PYTHONPYCACHEPREFIX"] = "pyc"

    ran = subprocess.run([program, "--version"], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60)

    assert (ran.returncode, (tmp_path / "ran").exists()) == (0, False), ran.stderr


def test_no_package_of_the_current_folder_is_taken_for_an_installed_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONUSERBASE", "own")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    packages = tmp_path / "own" / "lib" / "python3.11" / "site-packages"
    monkeypatch.setattr(sys, "path", [*sys.path, str(packages)])

    leave_out_current_folder(search_path.__file__)

    assert (str(packages) in sys.path, "PYTHONUSERBASE" in os.environ) == (False, False)


@pytest.mark.parametrize("args", [["-p", "hi"], ["-C", "/", "-p", "hi"], ["demo"], ["sessions", "list"], ["doctor"]])
def test_a_current_folder_that_was_removed_is_said_in_one_line(command, environ, tmp_path, args):
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"cd {shlex.quote(str(gone))} && rmdir {shlex.quote(str(gone))} && exec {shlex.join([*command, *args])}"

    ran = subprocess.run(["sh", "-c", script], env=environ, capture_output=True, text=True, timeout=60)

    said = "tw-autogen: the current folder is gone (No such file or directory); change to one that is there: cd DIR\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", said)


@pytest.mark.parametrize("name", ["--mcp-config=m.csv", "--trust", "--set=kernel.sandbox=off", "-C."])
@pytest.mark.parametrize("words", [["hi", "*"], ["-p", "hi", "*"], ["*"], ["chat", "*"]])
def test_the_name_of_a_file_is_no_option(run, tmp_path, monkeypatch, name, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).touch()
    (tmp_path / "m.csv").write_text("{}", encoding="utf-8")
    listed = sorted(os.listdir())

    ran = run(*(one for word in words for one in (listed if word == "*" else [word])))

    assert (ran.exit_code, f"write ./{name} for the file" in ran.output) == (2, True), ran.output


@pytest.mark.parametrize("words", [["-p", "hi"], ["rerun", "x", "--file"]])
def test_a_file_that_is_called_as_two_dashes_ends_no_options(run, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    for name in ("--", "--trust", "-C"):
        (tmp_path / name).touch()

    ran = run(*words, *sorted(os.listdir()))

    assert (ran.exit_code, "write ./-- for the file" in ran.output) == (2, True), ran.output


def test_behind_two_dashes_names_are_names(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "--trust").touch()

    ran = run("--version", "--", "--trust")

    assert ran.exit_code == 0, ran.output


def test_a_path_that_the_shell_has_left_alone_lies_in_the_home_and_never_in_a_folder_of_that_name(run, tmp_path):
    (tmp_path / "~").mkdir()
    (tmp_path / "~" / "mcp.json").write_text("{}", encoding="utf-8")

    for name, words in (
        ("mcp.json", "~/mcp.json: there is a folder of this name here; write ./~/mcp.json, or the whole path"),
        ("other.json", f"'{tmp_path}/other.json' does not exist"),
    ):
        ran = run("-p", "hi", f"--mcp-config=~/{name}")

        assert (ran.exit_code, words in ran.output) == (2, True), ran.output


def test_an_address_is_no_folder_of_that_name(run, tmp_path):
    (tmp_path / "https:" / "example.com").mkdir(parents=True)
    (tmp_path / "https:" / "example.com" / "mcp.json").write_text("{}", encoding="utf-8")

    ran = run("-p", "hi", "--mcp-config", "https://example.com/mcp.json")

    assert ran.exit_code == 2
    assert "https://example.com/mcp.json is a URL; download it, and name the file" in ran.output


def test_no_option_takes_a_path_in_another_way():
    def paths(command):
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                yield from paths(command.get_command(context, name))
        yield from (param for param in command.params if isinstance(param.type, click.Path))

    found = list(paths(main))
    assert len(found) > 10
    assert [one.name for one in found if not isinstance(one.type, UserPath)] == []


def test_nothing_is_said_where_the_path_has_no_empty_part(command, environ, tmp_path):
    ran = subprocess.run([*command, "--version"], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60)

    assert (ran.returncode, ran.stderr) == (0, "")


def options_without_help(group):
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from options_without_help(found)
        options = (param for param in found.params if isinstance(param, click.Option))
        yield from (f"{name} {option.opts[-1]}" for option in options if not option.help)


def test_every_option_of_every_subcommand_has_a_help():
    assert list(options_without_help(main)) == []


def test_help_loads_nothing_that_takes_time(command, environ, tmp_path):
    code = (
        "import sys; from tw_autogen.cli import main; main(['--help'], standalone_mode=False); "
        "slow = {'pandas', 'httpx', 'rich', 'pydantic', 'importlib.metadata', 'tw_autogen.kernel'}; "
        "print(slow & set(sys.modules))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, env=environ, cwd=tmp_path, check=True
    )

    assert ran.stdout.splitlines()[-1] == "set()"


def test_the_command_line_of_a_question_loads_nothing_that_only_some_questions_need(environ, tmp_path):
    late = {"httpx", "openai", "pandas", "numpy", "nbformat", "jsonschema", "jupyter_client.session", "json_repair"}
    late |= {"rich.markdown", "markdown_it", "packaging.requirements", "prompt_toolkit", "jinja2"}
    late |= {"pydantic", "anyio", "rich.syntax", "tw_autogen.cli.chat", "tw_autogen.role.taskweaver.api"}
    late |= {
        f"tw_autogen.{name}"
        for name in ("session.export", "kernel.gateway_kernel", "kernel.guest.bridge", "kernel.guest.files")
    }
    code = f"import sys, tw_autogen.cli.ask; print(sorted({late} & set(sys.modules)))"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=environ, cwd=tmp_path, check=True
    )

    assert ran.stdout == "[]\n"


EARLY = """
import sys
from tw_autogen.cli.early_kernel import start_fork_server_early
from tw_autogen.kernel.first_server import _first
slow = {"httpx", "pandas", "rich", "zmq", "prompt_toolkit", "tw_autogen.plugin", "tw_autogen.session"}
start_fork_server_early(sys.argv[1:])
print(slow & set(sys.modules), len(_first))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux only")
@pytest.mark.parametrize(
    ("args", "variables", "begun"),
    [
        (["-p", "how much?"], {}, 1),
        (["--help"], {}, 0),
        (["--set", "kernel.sandbox=off"], {}, 0),
        (["--set=kernel.python=/usr/bin/python3"], {}, 0),
        ([], {"TW_AUTOGEN_KERNEL_FORK": "false"}, 0),
        (["--attach", "kernel-1.json", "-p", "how much?"], {}, 0),
        (["--attach=http://127.0.0.1:8888#c0ffee"], {}, 0),
        (["-p", "--attach how much?", "-p", "is --set kernel.fork=false?"], {}, 1),
        (["--no-such-option"], {}, 0),
        (["-p", "how much?", "--timeout", "soon"], {}, 0),
    ],
)
def test_what_forks_kernels_is_begun_before_the_rest_of_the_command_line_is_imported(environ, args, variables, begun):
    ran = subprocess.run(
        [sys.executable, "-c", EARLY, *args],
        capture_output=True,
        text=True,
        timeout=60,
        env={**environ, **variables},
        check=True,
    )

    assert ran.stdout.split() == ["set()", str(begun)]


COMPLETING = """
from click.shell_completion import BashComplete
from tw_autogen.cli import main
from tw_autogen.cli.user_path import UserPath
from tw_autogen.model.settings import OPENAI_NAME
from tw_autogen.kernel.first_server import _first
found = BashComplete(main, {}, "tw-autogen", "_TW_AUTOGEN_COMPLETE").get_completions(["--quiet"], "--out")
print(*(one.value for one in found), len(_first))
"""


def test_completion_in_a_shell_starts_no_kernel(environ):
    ran = subprocess.run(
        [sys.executable, "-c", COMPLETING], capture_output=True, text=True, timeout=60, env=environ, check=True
    )

    assert ran.stdout.split() == ["--output-format", "--out", "0"]


def test_without_a_model_three_remedies_are_named(run):
    result = run("-p", "what is 6*7?")

    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("tw-autogen: no model configured.\n  - OpenAI:      export OPENAI_API_KEY=sk-...\n")
    for remedy in ("--base-url http://localhost:11434/v1", "tw-autogen demo", "OAI_CONFIG_LIST"):
        assert remedy in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["https://x.org/a.csv"], "'https://x.org/a.csv' is a URL; download it, and name the file; FILES are"),
        (["nosuch.csv"], "'nosuch.csv' does not exist; FILES are data"),
        (["hi"], "'hi' does not exist; FILES are data for the question, which -p gives if it is one word; commands"),
        (["销售额.csv"], "'销售额.csv' does not exist; FILES are data for the question, which -p gives"),
        (["how many rows?", "which month is best?"], "'which month is best?' is a second question"),
        (["-p", "q", "how many rows?"], "'how many rows?' is a second question"),
        (["x" * 5000], "does not exist; FILES are data"),
        (["nul\0byte"], "does not exist; FILES are data"),
        (["plugin", "list"], "'plugin' does not exist; did you mean the command 'plugins'? FILES are data"),
        (["--output-format", "yaml", "-p", "q"], "'yaml' is not one of"),
        (["scenario", "run", "--live", "--seconds", "inf"], "inf is not in the range"),
        (["-p", "q", "--max-posts", "1"], "1 is not in the range"),
        (["-p", "q", "--set", "session.max_posts"], "has no '='"),
        (
            ["-p", "q", "--set", "session.max_post=3"],
            "--set session.max_post: unknown setting 'session.max_post'; did you mean 'session.max_posts'?",
        ),
        (["-p", "q", "--set", "foo.bar=1"], "--set foo.bar: unknown setting 'foo.bar'; sections: code_interpreter, "),
        (["-p", "q", "--set", "=5"], "unknown setting (no word); sections: code_interpreter, "),
        (["-p", "q", "--set", "session.max_posts=many"], "--set session.max_posts: input should"),
        (
            ["-p", "q", "--set", "role.echo.colour=red", "--roles", "echo", "--base-url=http://[::1]:9", "--model=m"],
            "--set role.echo.colour: unknown setting 'role.echo.colour'",
        ),
        (
            ["-p", "q", "--roles", "document_retriever", "--base-url", "http://[::1]:9", "--model", "m"],
            "'role.document_retriever.index' is missing; make an index with `tw-autogen index DIR`",
        ),
        (["-p", "q", "--set", "kernel.sandbox=lanlock", "--base-url", "http://[::1]:9", "--model", "m"], "landlock"),
        (["-p", "q", "--set", "model.prices={m: {prompt: dear}}"], "model.prices: input should"),
        (["-p", "q", "--base-url", "localhost:1", "--api-key", "k", "--model", "m"], "has no http:// or https://"),
        (["-p", "q", "--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--plugins", "nosuch"], "nosuch"),
        (["-C", "nosuch", "-p", "q"], "does not exist"),
        ([], "there is no question"),
        (["-p", ""], "there is no question"),
        (["-p", " \n", "-C", "."], "there is no question"),
        (["-p", "q", "--set", "session.roles=['planner'"], "--set session.roles: no list: ['planner'"),
        (["-p", "q", "--set", "session.max_dollars=1", "--base-url=http://[::1]:9", "--model=m"], "model.prices: {m"),
    ],
)  # fmt: skip
def test_what_a_user_got_wrong_is_said_in_one_block_and_ends_with_2(run, args, words):
    result = run(*args)

    assert result.exit_code == 2, result.output
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("wrong", ["sale.csv", "my date.csv"])
def test_a_file_that_does_not_exist_is_named_with_its_neighbour_even_if_there_is_a_blank_in_it(run, tmp_path, wrong):
    for name in ("sales.csv", "my data.csv"):
        (tmp_path / name).write_text("a\n1\n", encoding="utf-8")

    result = run(wrong)

    assert result.exit_code == 2
    assert f"{wrong!r} does not exist; did you mean '{'sales.csv' if wrong == 'sale.csv' else 'my data.csv'}'?" in (
        result.stderr
    )


@pytest.fixture
def apart(tmp_path, monkeypatch):
    """A current folder, and beside it a folder `legal` for `-C` with a file, whose path is returned."""
    (tmp_path / "legal" / "more").mkdir(parents=True)
    (tmp_path / "legal" / "fees.json").write_text("[]", encoding="utf-8")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "legal"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["fes.json"], "'fes.json' does not exist in {here} or {legal}; did you mean '{legal}/fees.json'? FILES are"),
        (["nosuch.csv"], "'nosuch.csv' does not exist in {here} or {legal}; FILES are data"),
        (["/nosuch.csv"], "'/nosuch.csv' does not exist; FILES are data"),
        (
            ["more"],
            "'more' is a folder; --set kernel.read={legal}/more lets code read a whole folder (-C {legal}/more uses "
            "its plugins and roles too); as files name those",
        ),
        (["../legal"], "'../legal' is a folder; --set kernel.read=../legal lets code read a whole folder"),
    ],
)
def test_what_is_no_file_here_or_in_the_folder_of_c_is_said_with_both_and_a_remedy(run, apart, args, words):
    result = run("-C", str(apart), *args)

    assert result.exit_code == 2
    assert words.format(here=apart.parent / "here", legal=apart) in result.stderr


@pytest.mark.parametrize("words", ["project", "What is the mean of units?"])
def test_a_question_that_is_the_name_of_a_project_here_opens_no_project(run, tmp_path, words):
    ran = tmp_path / "ran"
    plugins = tmp_path / words / "plugins"
    plugins.mkdir(parents=True)
    (tmp_path / words / "taskweaver_config.json").write_text("{}")
    (plugins / "evil.yaml").write_text("name: evil\ndescription: d\nruns_in: host\n")
    (plugins / "evil.py").write_text(
        f"open({str(ran)!r}, 'w')\nfrom tw_autogen.plugin import register_plugin\n@register_plugin\ndef evil(): ...\n"
    )

    result = run("-p", words)

    assert result.exit_code == 2
    assert f"-p is the question; a project folder is named by -C: -C {shlex.quote(words)}" in result.stderr
    assert not ran.exists()


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        (["sessions", "export"], "sessions export [OPTIONS] ID [FILE]"),
        (["sessions", "nosuch"], "sessions [OPTIONS] COMMAND"),
        (["rerun"], "rerun [OPTIONS] SESSION"),
        (["chat", "--nosuch"], "chat [OPTIONS] [QUESTION] [FILES]..."),
        (["--nosuch"], "[OPTIONS] [QUESTION] [FILES]... | COMMAND"),
    ],
)
def test_a_wrong_call_shows_the_usage_of_the_command_that_was_typed(run, args, shown):
    assert f"Usage: main {shown}" in run(*args).stderr


def test_the_version_is_shown(run):
    assert run("--version").output.startswith("tw-autogen ")
