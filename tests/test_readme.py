"""Each block of code in the READMEs and in docs/ is run, or listed here with the place where it is, or the reason."""

import itertools
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import metadata
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from packaging.requirements import Requirement

from tw_autogen.approval import Decision, Proposal
from tw_autogen.cli import main
from tw_autogen.cli.exit_codes import Exit
from tw_autogen.code_interpreter.policy import POLICIES, read_policy
from tw_autogen.plugin.mcp import read_mcp_servers
from tw_autogen.testing import codes, plans, replay_server

ROOT = Path(__file__).parent.parent
FILES = ["README.md", "SECURITY.md", "scenarios/README.md", "plugins/README.md", "roles/README.md"]
FILES += sorted(
    path.relative_to(ROOT).as_posix() for one in ("roles/*/README.md", "docs/*.md") for path in ROOT.glob(one)
)
TO_USER = plans("Done.", to="User")
MEAN = [
    plans("compute the mean", then="User"),
    codes("import pandas as pd\nprint('The mean is', pd.read_csv('sales.csv').units.mean())"),
]
PICTURE = [
    plans("draw it", then="User"),
    codes("import matplotlib.pyplot as plt\nloads.plot(x='hour', y='load')\nplt.savefig('load.png')\nprint('hour 21')"),
]

RUN_PYTHON = {
    # words that only this block has: (replies, code after it, needed package)
    "with TaskWeaverAgent(": (MEAN, "", "autogen"),
    "with SharedSession(": (
        [],
        "assert [one.name for one in group.agents][1:3] == [planner.name, coder.name]",
        "autogen",
    ),
    '"Which months are odd?"': ([TO_USER], "assert answer.text == 'Done.'", ""),
    'session["loads"] =': (PICTURE, "assert [one.path.name for one in session.artifacts] == ['load.png']", ""),
    "for source in answer.sources": (MEAN, "", ""),
    "import approve_in_notebook": ([], "session.close()", ""),
    "Load sales.csv as `sales`.": ([TO_USER, TO_USER], "assert answer.text == 'Done.'", ""),
    "def approve(proposal)": ([], "", ""),
    "gateway_url=": ([], "", "websocket"),
    "def look(proposal)": ([], "assert callable(work_in)", ""),
    "def show(event: Event)": (MEAN, "", ""),
    "read_journal": ([], "", ""),
    "import write_notebook": ([], "import os; assert os.path.getsize('session.ipynb')", ""),
    '"path/to/your_role"': ([], "with session: assert len(session.roles) == 3", ""),
    "manual_reader": ([TO_USER], "", ""),
    '"fill_missing", "encode_target"': ([TO_USER], "", "sklearn"),
}
RUN_AFTER = {
    "with SharedSession(": "with TaskWeaverAgent(",
    "read_journal": "def show(event: Event)",
    "import write_notebook": "def show(event: Event)",
}
ELSEWHERE = {
    # words of a block: the test file that reads it from there, or why none does
    "_TW_AUTOGEN_COMPLETE": "lines of each shell's own; the command line's tests ask for their scripts",
    "# my_plugins.py": "tests/plugin/test_newcomer.py",
    "class Crier(Role)": "tests/test_role.py",
    "@register_plugin": "tests/plugins/test_readme.py",
    "@test_plugin": "tests/plugins/test_readme.py",
    "name: shout": "tests/plugins/test_readme.py",
    'usual = session["usual"]': "an excerpt that awaits; tests/notebook/test_notebook_kernel.py does so in a notebook",
    '"kernel_provisioner"': "tests/kernel/test_provisioner.py",
    "# tw_autogen.yaml": "tests/session/test_assembly.py",
    "# ours.yaml": "the last tests here",
    '"mcpServers"': "the last tests here",
    "alias: Reader": "an excerpt; tests/test_role.py reads such a file",
    "[project.entry-points": "an excerpt; tests/test_role.py installs a package with such an entry point",
}

RUN_COMMANDS = {
    # the command as it stands: (what is asked of the model, words in what it prints)
    'tw-autogen "Plot units by month, save the chart as units.png, and name odd months" examples/sales.csv': (
        [TO_USER],
        "Done.",
    ),
    'tw-autogen "What is the mean of units?" examples/sales.csv': ([TO_USER], "Done."),
    'tw-autogen "Plot units by month and save it as units.png" examples/sales.csv': ([TO_USER], "Done."),
    'tw-autogen "Plot revenue by month and flag odd days" sales.csv': ([TO_USER], "Done."),
    'tw-autogen -p "Which of the tables in data/ overlap?"': ([TO_USER], "Done."),
    "tw-autogen sessions list": ([], "no sessions"),
    "tw-autogen sessions prune --dry-run": ([], ""),
    "tw-autogen plugins list": ([], "anomaly_detection"),
    "tw-autogen plugins check my_plugins.py": ([], "1 plugin to be used, 0 tests passed, 0 errors"),
    "tw-autogen plugins new --from my_package:forecast": ([], "forecast.yaml"),
    "tw-autogen index docs": ([], "tw-index.json"),
    "tw-autogen --roles document_retriever --set role.document_retriever.index=docs "
    '-p "How long may a refund take? Name the source."': ([TO_USER], "Done."),
    'tw-autogen --roles image_reader --set role.image_reader.model=gpt-4o -p "What does the board in wall.jpg say?" '
    "wall.jpg": ([TO_USER], "Done."),
}
ONLY_PARSED = {
    # how a command begins: why nothing but its options is checked here
    "tw-autogen demo": "tests/cli/test_demo.py runs it",
    "tw-autogen -c": "tests/cli/test_later_sessions.py",
    "tw-autogen rerun": "tests/cli/test_later_sessions.py",
    "tw-autogen sessions": "tests/cli/test_later_sessions.py and test_sessions.py",
    "tw-autogen doctor": "tests/cli/test_doctor.py runs it",
    "tw-autogen scenario": "tests/scenario and tests/cli/test_scenario.py run it; a live model needs a key",
    "tw-autogen --mcp-config": "uvx needs a network; tests/session/test_mcp_tools.py starts servers",
    "tw-autogen --roles web_explorer": "needs a network and a browser; tests/roles/test_web_explorer.py",
    "tw-autogen --roles web_search": "needs a search engine; tests/roles/test_web_search.py",
}
CHAT = "tw-autogen"  # it waits for a terminal; tests/cli/test_chat.py
NOT_OURS = ("export", "mkdir", "cat", "sudo", "python3", ".")  # no commands of ours


def blocks(kind):
    """Return (file, text) of each fenced block of one kind; the kind may be a pattern, such as `[a-z]+` for all."""
    return [
        (name, re.sub(r"(?m)^ {3}", "", text) if indent else text)
        for name in FILES
        for indent, text in re.findall(
            rf"^( *)```{kind}\n(.*?)^ *```", (ROOT / name).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
        )
    ]


def commands():
    """Return each command of the blocks, without what is a comment; those joined by `&&` are several."""
    texts = [re.sub(r"<<'END'\n.*?\nEND\n", "\n", text, flags=re.DOTALL) for _, text in blocks("bash")]
    lines = [line.split("  #")[0].strip() for text in texts for line in text.splitlines()]
    return [part.strip() for line in lines if line and not line.startswith("#") for part in line.split("&&")]


def block_with(words, kind="python"):
    """Return the block that has these words; several files may show the same one."""
    (found,) = {text for _, text in blocks(kind) if words in text}
    return found


@pytest.mark.parametrize("kind", ["python", "(?!bash|python)[a-z]+"])
def test_each_block_of_code_is_run_here_or_elsewhere(kind):
    known = {**(RUN_PYTHON if kind == "python" else {}), **ELSEWHERE}
    assert blocks(kind)
    for name, text in blocks(kind):
        assert [words for words in known if words in text], f"{name}: neither run nor listed:\n{text}"


@pytest.mark.parametrize("words", [words for words, place in ELSEWHERE.items() if place.endswith(".py")])
def test_a_block_that_is_run_elsewhere_is_read_there_from_its_file(words):
    read = (ROOT / ELSEWHERE[words]).read_text(encoding="utf-8")
    assert [name for name, text in blocks("[a-z]+") if words in text and Path(name).name in read]


@pytest.fixture
def folder(tmp_path):
    """A folder with what the blocks name."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "examples" / "sales.csv", tmp_path)
    for name in ("orders.csv", "train.csv", "test.csv"):
        (tmp_path / name).write_text("sold,price\n1,2.5\n0,\n", encoding="utf-8")
    (tmp_path / "cleaning.md").write_text("# Cleaning\nDrop empty rows.\n", encoding="utf-8")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "refunds.md").write_text("# Refunds\nA refund may take 14 days.\n", encoding="utf-8")
    (tmp_path / "wall.jpg").write_bytes(b"\xff\xd8\xff\xe0" + bytes(100))
    (tmp_path / "my_plugins.py").write_text(block_with("# my_plugins.py"), encoding="utf-8")
    (tmp_path / "my_package.py").write_text(
        'def forecast(days: int) -> float:\n    """Forecast the sales.\n\n    Args:\n        days: How many.\n    """\n'
        "    return 1.0 * days\n",
        encoding="utf-8",
    )
    role = tmp_path / "path" / "to" / "your_role"
    shutil.copytree(ROOT / "roles" / "echo", role)
    (role / "echo.py").rename(role / "your_role.py")
    return tmp_path


@pytest.mark.parametrize("words", [words for words in RUN_PYTHON if words not in RUN_AFTER])
def test_a_block_of_python_runs_as_it_stands(words, folder):
    replies, code, needed = RUN_PYTHON[words]
    if needed and find_spec(needed) is None:
        pytest.skip(f"needs {needed}")
    parts = [block_with(words), code]
    for later in (one for one, before in RUN_AFTER.items() if before == words):
        parts += [block_with(later), RUN_PYTHON[later][1]]
    with replay_server(replies) as server:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("OPENAI_", "TW_AUTOGEN_"))}
        model = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none", "OPENAI_MODEL": "recorded"}
        done = subprocess.run(
            [sys.executable, "-c", "\n".join(parts)],
            cwd=folder,
            env={**kept, **model},
            capture_output=True,
            encoding="utf-8",
            timeout=240,
            check=False,
        )
        asked = len(server.requests)
    assert done.returncode == 0, done.stderr
    assert asked == len(replies)
    assert "The mean is" in done.stdout or replies is not MEAN


def test_the_approver_that_is_shown_decides_as_it_says(capsys):
    space = {"open_session": lambda **keywords: space.update(keywords)}
    exec(
        compile(
            block_with("def approve(proposal)").replace("from tw_autogen import open_session\n", ""),
            "policies.md",
            "exec",
        ),
        space,
    )

    assert space["settings"] == {"code_interpreter.approval": "always"}
    assert space["approve"](Proposal("cell", "print(1)")) is True
    assert space["approve"](Proposal("cell", "df.drop(columns='a')")) == Decision(False, reason="keep all rows")
    assert "print(1)" in capsys.readouterr().out


@pytest.mark.parametrize("command", sorted(set(commands())))
def test_each_command_is_one(command):
    """Look a command up without running it: its target, extra, file or options."""
    first, *rest = shlex.split(command)
    if first in NOT_OURS:
        return
    if first == "make":
        assert re.search(rf"(?m)^{rest[0]}:", (ROOT / "Makefile").read_text(encoding="utf-8"))
    elif first == "pip":
        wanted = Requirement(re.sub(r"^\.", "tw-autogen", rest[-1]))
        assert wanted.name == "tw-autogen"
        assert wanted.extras <= set(metadata("tw-autogen").get_all("Provides-Extra"))
    elif first == "python":
        assert rest[:2] == ["-m", "pytest"]
        assert all((ROOT / one).exists() for one in rest[2:])
    elif first == "tw-autogen":
        known = [one for one in (*RUN_COMMANDS, *ONLY_PARSED) if command.startswith(one)]
        assert known or command == CHAT, f"neither run nor listed: {command}"
        assert parses(rest)
    else:
        pytest.fail(f"neither known nor listed: {command}")


def parses(args):
    """Return whether the options of a command are those that it has; what it takes is not looked for."""
    group, names = main, args
    context = click.Context(main, info_name="tw-autogen")
    if not names or group.get_command(context, names[0]) is None:
        names = ["chat", *names]
    while isinstance(group, click.Group):
        group = group.get_command(context, names[0])
        assert group is not None, names
        context, names = click.Context(group, context, names[0]), names[1:]
    options, left, _ = group.make_parser(context).parse_args(list(names))
    return options is not None and not [one for one in left if one.startswith("-")]


@pytest.mark.parametrize("command", RUN_COMMANDS)
def test_a_command_runs_as_it_stands(command, folder, monkeypatch):
    assert command in commands()
    replies, words = RUN_COMMANDS[command]
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("HOME", str(folder.parent))
    if "document_retriever" in command:
        assert CliRunner().invoke(main, ["index", "docs"]).exit_code == 0
    with replay_server(replies) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_MODEL", "recorded")
        done = CliRunner().invoke(main, shlex.split(command)[1:])

    assert done.exit_code == 0, done.output
    assert words in done.output
    assert len(server.requests) == len(replies)


def test_the_scenario_that_the_readme_writes_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = [text for _, text in blocks("bash") if "mkdir -p ferry" in text]
    subprocess.run(["sh", "-c", block], check=True, timeout=30)

    done = CliRunner().invoke(main, ["scenario", "show", "./ferry"])

    assert done.exit_code == 0, done.output
    assert "How many passengers did the Gull carry" in done.output


def test_the_policy_that_is_shown_is_read(tmp_path):
    (tmp_path / "ours.yaml").write_text(block_with("# ours.yaml", "yaml"), encoding="utf-8")

    policy = read_policy(tmp_path / "ours.yaml")

    assert "polars" in policy.modules
    assert "pandas.concat" in policy.blocked_functions


def test_the_mcp_servers_that_are_shown_are_read():
    first, second = (
        read_mcp_servers(text, environ={"CRM_TOKEN": "x"}) for _, text in blocks("json") if "mcpServers" in text
    )

    assert [one.name for one in (*first, *second)] == ["time", "crm", "analyst"]
    assert parses(["mcp", "-C", "/home/me/data"])


@pytest.mark.parametrize("of", ["settings", "events"])
def test_the_page_of_all_settings_or_events_is_what_their_classes_say(of):
    script = ROOT / "docs" / "scripts" / f"{of}_page.py"

    page = runpy.run_path(str(script))["page"]()

    assert (ROOT / "docs" / f"{of}-reference.md").read_text(encoding="utf-8") == page, f"run python {script}"


def test_the_pages_pictures_are_small_and_load_nothing():
    for picture in (ROOT / "docs" / "pictures").iterdir():
        assert picture.stat().st_size < 150_000
        if picture.suffix == ".svg":
            assert not re.search(r"(?:href|url\()\s*=?\s*[\"']?https?:", picture.read_text(encoding="utf-8"))


def names_of_what_there_is():
    """Yield a page, and a name that must stand in it as code."""
    for extra in metadata("tw-autogen").get_all("Provides-Extra"):
        yield "installation.md", extra
    for one in map(Requirement, metadata("tw-autogen").get_all("Requires-Dist")):
        if one.marker is None:
            yield "installation.md", one.name
    for policy in POLICIES:
        yield "policies.md", policy
    for code in Exit:
        yield "command-line.md", str(code.value)


def test_the_pages_name_all_that_there_is():
    missing = [
        (page, name)
        for page, name in names_of_what_there_is()
        if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", (ROOT / "docs" / page).read_text(encoding="utf-8"))
    ]

    assert missing == []


def test_each_column_of_a_table_has_a_heading():
    tables = [
        (name, line)
        for name in FILES
        for line, below in itertools.pairwise((ROOT / name).read_text(encoding="utf-8").splitlines())
        if re.fullmatch(r"\|(-+\|)+", below)
    ]

    assert tables
    assert [(name, line) for name, line in tables if re.search(r"\| *\|", line)] == []
