"""A setting is shown, hashed and used in one form, in whatever way it is spelt; trust is of one folder."""

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from tests.session.written_files import write
from tw_autogen import open_session
from tw_autogen.errors import ConfigError
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.named_folders import path_out_of
from tw_autogen.plugin.mcp import read_mcp_servers
from tw_autogen.session import read_project, read_settings, review_folder, trust_lines
from tw_autogen.session.referenced_files import server_files
from tw_autogen.session.settings_sources import SECTIONS
from tw_autogen.settings_trust import Trust
from tw_autogen.testing import FakeKernel, ScriptedModel, plans

SETTINGS = "tw_autogen.yaml"


SPELLINGS = {
    "a role as text": ("session: {roles: 'planner,./lib/crier'}", "lib/crier/crier.py", "session.roles"),
    "a role in a list": ("session: {roles: [planner, ./lib/crier]}", "lib/crier/crier.py", "session.roles"),
    "a role's key in keys": ("role: {web_explorer: {executable: ./chrome}}", "chrome", "role.web_explorer.executable"),
    "a role's dotted key": ("role.web_explorer.executable: ./chrome", "chrome", "role.web_explorer.executable"),
    "a list in a role's key": ("role.x: {tools: [{run: ./chrome}]}", "chrome", "role.x.tools"),
    "a package of an interpreter": (
        "kernel.python: ./env/bin/python",
        "env/lib/python3.11/site-packages/sitecustomize/__init__.py",
        "kernel.python",
    ),
    "what an interpreter has compiled": (
        "kernel.python: ./env/bin/python",
        "env/lib/python3.11/site-packages/__pycache__/sitecustomize.cpython-311.pyc",
        "kernel.python",
    ),
    "a settings file beside an interpreter": ("kernel.python: ./env/bin/python", "env/bin/pyvenv.cfg", "kernel.python"),
    "a server's hidden folder": (
        "plugin.mcp_servers: {m: {command: python, args: [-m, srv], env: {PYTHONPATH: '.tw/lib'}}}",
        ".tw/lib/srv.py",
        "plugin.mcp_servers",
    ),
    "a server's option": (
        "plugin.mcp_servers: {m: {command: uvx, args: ['--from=./pkg', srv]}}",
        "pkg/srv.py",
        "plugin.mcp_servers",
    ),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_setting_is_shown_and_hashed_in_whatever_way_it_is_spelt(here, spelling):
    text, program, key = SPELLINGS[spelling]
    write(here, **{SETTINGS: text, program: "0"})
    if "crier" in program:
        write(here, **{"lib/crier/role.yaml": "alias: Crier\nintro: Cries.\n"})
    review = review_folder()
    assert [want.name for want in review.wants] == [key]
    review.remember(review.sha256())
    assert read_settings().trust is Trust.full

    write(here, **{program: "1"})

    assert read_settings().trust is Trust.none


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("plugin.folder: plugins\nplugin: {folder: lib}", "'plugin.folder' stands twice, in two spellings; keep one"),
        ("role.x.a: 1\nrole: {x: {a: 2}}", "'role.x.a' stands twice, in two spellings; keep one"),
        ("plugin.folder: !!binary bGli", "no value of the kind !!binary is read"),
        ("kernel.python: !!set {a, b}", "no value of the kind !!set is read"),
        ("embedding.folder: '~nosuch/x'", r"embedding\.folder: "),
        ("plugin.folder: " + "x" * 5000, r"plugin\.folder: File name too long"),
        ('planner.instructions: "\\0"', "holds a NUL or half of a surrogate pair"),
        ('role.x.a: {b: ["\\uD800"]}', "holds a NUL or half of a surrogate pair"),
    ],
)
def test_what_would_be_shown_otherwise_than_it_is_used_is_an_error_that_names_the_file(here, text, problem):
    write(here, **{SETTINGS: text})

    with pytest.raises(ConfigError, match=rf"tw_autogen\.yaml.*{problem}"):
        read_settings()


@pytest.mark.parametrize(
    "text",
    [
        "kernel:\n  sandbox: auto\n  sandbox: 'off'\n",
        "kernel: {memory_mb: 100, memory_mb: 200}\n",
        "session: &a {max_posts: 3}\nsession: {max_posts: 4}\nkernel: {}\n",
        "planner.instructions: a\nplanner.instructions: b\n",
        '{"kernel": {"memory_mb": 1, "memory_mb": 2}}',
    ],
)
def test_a_key_that_stands_twice_is_an_error_that_names_it(here, text):
    write(here, **{SETTINGS: text})

    with pytest.raises(ConfigError, match="stands twice"):
        read_settings()


def test_a_key_of_another_mapping_may_stand_once_more(here):
    write(here, **{SETTINGS: "session: &a {max_posts: 3}\nplanner: {}\nrole: {echo: {a: 1}, other: {<<: *a, a: 2}}\n"})

    assert read_settings().read("session", SECTIONS["session"]).max_posts == 3


def test_an_example_folder_with_very_many_files_is_not_looked_through(here, cpu_seconds):
    write(here, **{SETTINGS: {}, "examples/planner_examples/a.yaml": ""})
    for number in range(10_001):
        (here / "examples" / "planner_examples" / f"{number}.yaml").touch()
    started = cpu_seconds()

    project = read_project(here, read_settings(), named=False)
    lines = trust_lines(read_settings(), "--trust")

    assert project.examples == ()
    assert "more than 10000 files, of which none is used as an example" in "\n".join(project.left_out)
    assert not lines
    assert cpu_seconds() - started < 5


def test_a_plugin_outside_the_sandbox_is_named_where_the_session_finds_it(here):
    text = (
        "from tw_autogen.plugin import plugin\n\n@plugin(runs_in='host')\ndef evil() -> int:\n    'Do.'\n    return 1\n"
    )
    write(here, **{SETTINGS: "session: {max_posts: 3}", "plugins/plugins/evil.py": text})
    (here / "plugins" / "plugins" / "plugins").mkdir()

    assert any(want.does.startswith("evil: Python in plugins/plugins/evil.py, runs") for want in review_folder().wants)


def test_nobody_is_asked_about_servers_that_cannot_be_read(here):
    write(here, **{SETTINGS: {"plugin.mcp_servers": "mcp.json"}, "mcp.json": '{"m": {"command": 5}}'})

    assert "names as MCP servers can't be read" in review_folder().cannot_ask_reason()


def test_servers_of_one_command_are_shown_each_by_its_name(here):
    write(here, **{SETTINGS: {"plugin.mcp_servers": {name: {"command": "make"} for name in ("a", "b c")}}})

    assert [want.does for want in review_folder().wants] == ["a: would start: make", "'b c': would start: make"]


def test_a_folder_is_looked_through_once_however_often_it_is_named(here):
    write(here, **{f"in/{number}.py": "" for number in range(3)})
    servers = {str(one): {"command": "make", "args": [".", "./in", str(here)] * 50, "cwd": "."} for one in range(5)}
    write(here, **{SETTINGS: {"plugin.mcp_servers": servers}})

    found = list(server_files(read_mcp_servers(servers), here))

    assert sorted(path.name for path in found) == ["0.py", "0.py", "1.py", "1.py", "2.py", "2.py", SETTINGS, SETTINGS]


@pytest.mark.parametrize(
    ("args", "name"),
    [
        (["-c", "exec sh ./node_modules/@acme/notes/run"], "node_modules/@acme/notes/run"),
        (["-c", "exec sh srv/k=v/run; true"], "srv/k=v/run"),
        (["-c", "sh my\\ dir/run && x"], "my dir/run"),
        (["-c", 'sh srv"/"run'], "srv/run"),
        (["-c", "sh 'a, [b]/run'|x"], "a, [b]/run"),
        (["--config=conf/env=prod/app"], "conf/env=prod/app"),
        (["-c", "x --config=conf/env=prod/app y"], "conf/env=prod/app"),
    ],
)
def test_a_file_that_a_command_names_is_hashed_whatever_signs_stand_in_its_path(here, args, name):
    write(here, **{name: "no program by its name"})
    servers = {"m": {"command": "sh", "args": args}}

    assert here / name in set(server_files(read_mcp_servers(servers), here))


@pytest.mark.parametrize("trust", [True, False])
def test_trust_of_another_folder_is_none_of_the_current_one(here, tmp_path, trust):
    mine = tmp_path / "mine"
    write(mine, **{SETTINGS: {"planner.instructions": "hi"}})
    (tmp_path / "secret.txt").write_text("secret")
    (here / "notes.txt").symlink_to(tmp_path / "secret.txt")
    (here / ".tw").mkdir()
    (here / ".tw" / "sessions").symlink_to(mine)

    with pytest.raises(ConfigError, match=r"\.tw/sessions is a link to .*/mine; say"):
        open_session(ScriptedModel([]), project=mine, trust=trust)
    with (
        open_session(ScriptedModel([]), project=mine, trust=trust, folder=tmp_path / "own") as session,
        pytest.raises(ConfigError, match=r"notes\.txt: a link out of .* which is not trusted"),
    ):
        session.ask("what is in it?", files=["notes.txt"])


@pytest.mark.skipif(sys.version_info < (3, 11), reason="older ones take modules from the current folder first")
@pytest.mark.parametrize("trust", [False, True])
def test_a_server_of_the_users_own_takes_no_module_from_a_folder_that_is_not_trusted(here, tmp_path, trust):
    write(tmp_path / "own", **{"served.py": ""})
    write(here, **{"served.py": f"open({str(tmp_path / 'ran')!r}, 'w')"})
    server = {"command": sys.executable, "args": ["-m", "served"], "env": {"PYTHONPATH": str(tmp_path / "own")}}

    with pytest.raises(ConfigError, match="MCP server 'm'"):
        open_session(ScriptedModel([]), mcp_servers={"m": server}, trust=trust, folder=tmp_path / "sessions")

    assert (tmp_path / "ran").exists() is trust


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
@pytest.mark.parametrize("key", ["kernel.read", "kernel.write", "session.user_folder"])
def test_what_is_granted_is_shown_with_where_its_link_leads_and_a_change_of_that_ends_the_trust(here, tmp_path, key):
    (tmp_path / "private").mkdir()
    (here / "data").mkdir()
    write(here, **{SETTINGS: {key: "data"}})
    review = review_folder()
    assert "link" not in review.wants[0].does
    review.remember(review.sha256())
    assert read_settings().trust is Trust.full

    (here / "data").rmdir()
    (here / "data").symlink_to(tmp_path / "private")

    assert read_settings().trust is Trust.none
    assert str(tmp_path / "private") in review_folder().wants[0].does


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
@pytest.mark.parametrize("key", ["role.manual_reader.folder", "code_interpreter.policy", "session.user_folder"])
@pytest.mark.parametrize("exists", [True, False], ids=["there", "not there yet"])
def test_where_a_path_leads_that_goes_up_from_a_link_is_shown_and_a_change_of_the_link_ends_the_trust(
    here, tmp_path, key, exists
):
    (here / "manuals").mkdir()
    for one in ("private", "other"):
        (tmp_path / one / "x").mkdir(parents=True)
        if exists:
            (tmp_path / one / "manuals").mkdir()
    (here / "docs").symlink_to(tmp_path / "private" / "x")
    write(here, **{SETTINGS: {key: "docs/../manuals"}})
    review = review_folder()
    assert str(tmp_path / "private" / "manuals") in review.wants[0].does
    review.remember(review.sha256())
    assert review_folder().files_if_trusted()

    (here / "docs").unlink()
    (here / "docs").symlink_to(tmp_path / "other" / "x")

    assert review_folder().files_if_trusted() is None


@pytest.mark.parametrize("path", ["manuals/../manuals", "./missing/../manuals"])
def test_a_path_over_no_link_is_shown_as_it_is(here, path):
    (here / "manuals").mkdir()
    write(here, **{SETTINGS: {"role.manual_reader.folder": path}})

    assert "a link to" not in review_folder().wants[0].does


@pytest.fixture(params=["kernel.read", "kernel.write", "session.user_folder"])
def granted(request, here, tmp_path):
    """Exchange what a trusted folder grants for a link after the trust was looked at; give the settings."""
    for name in ("shown", "private"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o777)
        (tmp_path / name / "x.txt").write_text(name)

    def granted(prepare):
        prepare(here / "data")
        write(here, **{SETTINGS: {request.param: "data"}})
        review = review_folder()
        review.remember(review.sha256())
        settings = read_settings()
        assert settings.trust is Trust.full
        with suppress(FileNotFoundError):
            (here / "data").rename(here / "before")
        (here / "data").symlink_to(tmp_path / "private")  # whoever writes there meanwhile
        return settings

    return granted


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_a_link_that_is_exchanged_after_the_trust_was_looked_at_grants_what_was_shown(granted, tmp_path):
    settings = granted(lambda data: data.symlink_to(tmp_path / "shown"))
    model = ScriptedModel([])

    with open_session(model, roles="code_interpreter", settings=settings, folder=tmp_path / "sessions") as session:
        shown, private = (
            session.grants.kernel.execute(f"open({str(tmp_path / one / 'x.txt')!r}).read()", seconds=30)
            for one in ("shown", "private")
        )

    assert (shown.result, private.ok) == ("'shown'", False)


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
@pytest.mark.parametrize("prepare", [lambda data: data.mkdir(), lambda data: None], ids=["a folder", "nothing"])
def test_a_link_in_the_place_of_what_was_shown_is_refused(granted, tmp_path, prepare):
    settings = granted(prepare)

    with pytest.raises(ConfigError, match=r"data leads over a link to .*private since"):
        open_session(ScriptedModel([]), roles="code_interpreter", settings=settings, folder=tmp_path / "sessions")


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_a_grant_that_appears_as_a_link_after_the_kernel_was_made_is_refused(tmp_path):
    (tmp_path / "private").mkdir()
    granted = str(tmp_path / "data")
    with LocalKernel(settings=KernelSettings(read=(granted,))) as kernel:
        (tmp_path / "data").symlink_to(tmp_path / "private")

        with pytest.raises(ConfigError, match="leads over a link to .*private since the settings"):
            kernel.execute("1", seconds=30)


def test_a_settings_file_is_not_larger_than_people_write(here):
    write(here, **{SETTINGS: f"planner.instructions: {'x' * 100_000}"})

    with pytest.raises(ConfigError, match=r"tw_autogen\.yaml: cannot be read \(it has more than 100 kB"):
        read_settings()


def test_trust_of_a_project_is_none_of_a_strangers_session_in_the_current_folder(here, tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "stranger").mkdir()
    with monkeypatch.context() as stranger:
        stranger.setenv("HOME", str(tmp_path / "stranger"))
        with open_session(ScriptedModel([plans("Hi.", to="User")]), kernel=FakeKernel()) as session:
            session.ask("hello")
    resumed = {"resume": session.id, "kernel": FakeKernel(), "trust": True}

    with pytest.raises(ConfigError, match="this user did not make this session in this folder"):
        open_session(ScriptedModel([]), project=tmp_path / "mine", **resumed)
    with open_session(ScriptedModel([]), **resumed) as session:
        assert session.rounds


HOST_PLUGIN = (
    "from tw_autogen.plugin import plugin\n\n@plugin(runs_in='host')\ndef tool() -> int:\n    '''Go.'''\n    return 1\n"
)


@pytest.mark.parametrize("key", ["plugin.folder", "session.role_folder", "session.workspace"])
def test_an_empty_folder_of_code_is_an_error(here, key):
    write(here, **{"tw_autogen.yaml": f"{key}: ''"})

    with pytest.raises(ConfigError, match=rf"{key}: it names no folder; leave it out"):
        read_settings()


def test_the_plugins_that_are_shown_are_those_that_would_be_used(here, monkeypatch):
    write(here, **{"tw_autogen.yaml": "plugin.folder: decoy", "decoy/x.txt": "", "tools/tool.py": HOST_PLUGIN})
    monkeypatch.setenv("TW_AUTOGEN_PLUGIN_FOLDER", "tools")

    wants = [want.does for want in review_folder().wants if want.name == "plugins"]

    assert any("tools/tool.py" in one for one in wants)


def test_a_yes_to_what_was_shown_lets_a_server_of_the_users_own_take_no_module_from_the_folder(here, tmp_path):
    write(tmp_path / "own", **{"served.py": ""})
    write(here, **{"served.py": f"open({str(tmp_path / 'ran')!r}, 'w')", "tw_autogen.yaml": "kernel.sandbox: 'off'"})
    server = {"command": sys.executable, "args": ["-m", "served"], "env": {"PYTHONPATH": str(tmp_path / "own")}}
    review = review_folder()
    assert review.remember(review.sha256()) == ""
    assert read_settings().trust is Trust.full

    for project in (None, here):
        with pytest.raises(ConfigError, match="MCP server 'm'"):
            open_session(ScriptedModel([]), mcp_servers={"m": server}, project=project, folder=tmp_path / "sessions")

    assert not (tmp_path / "ran").exists()


LOOKING = {
    "npx": (("npx", "-y", "@modelcontextprotocol/server-time"), True),
    "npx with an absolute path": (("npx", "-y", "server-filesystem", "/data"), True),
    "npx with a relative path": (("npx", "-y", "server-filesystem", "."), False),
    "uv": (("uv", "run", "--with", "mcp[cli]", "mcp", "run", "/own/server.py"), True),
    "uv with a script here": (("uv", "run", "server.py"), False),
    "uv with a word that has a slash": (("uv", "run", "/own/server.py", "--timezone", "Europe/Berlin"), True),
    "a repository": (("npx", "-y", "owner/repository"), True),
    "npx with a folder here": (("npx", "-y", "server-filesystem", "./data"), False),
    "another program in front": (("env", "uv", "run", "/own/server.py"), True),
    "pipx": (("pipx", "run", "mcp-server-time"), True),
    "poetry": (("poetry", "run", "server"), True),
    "installed programs": (("uvx", "mcp-server-time"), False),
    "node": (("node", "/own/server.js"), False),
    "node with a package before": (("node", "-r", "dotenv/config", "/own/server.js"), True),
    "node with a module before": (("node", "--import=tsx", "/own/server.js"), True),
    "node with a file of here before": (("node", "-r", "./hook.js", "/own/server.js"), False),
    "npx with words that end as scripts do": (("npx", "-y", "srv", "--ext", ".js", "--include", "a.ts"), True),
    "R, which reads a profile": (("Rscript", "/own/server.R"), True),
    "a tool of .NET": (("dotnet", "tool", "exec", "server"), True),
}


@pytest.mark.skipif(sys.platform == "win32", reason="programs are shell scripts")
@pytest.mark.parametrize("case", LOOKING)
def test_a_command_that_looks_for_programs_starts_elsewhere_where_the_folder_is_not_trusted(
    here, tmp_path, monkeypatch, case
):
    (command, *args), elsewhere = LOOKING[case]
    program = tmp_path / "bin" / command
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\npwd > '{tmp_path}/ran'\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")

    servers = {"m": {"command": command, "args": args}}
    for trust in (False, True):
        with pytest.raises(ConfigError, match="MCP server 'm'"):
            open_session(ScriptedModel([]), mcp_servers=servers, trust=trust, folder=tmp_path / "sessions")

        apart = elsewhere and not trust
        started = (tmp_path / "ran").read_text(encoding="utf-8").strip()
        assert (started == str(here)) is not apart, started
        assert not apart or "/tw-autogen/mcp/" in started
        assert not apart or not os.path.exists(started)


@pytest.mark.skipif(sys.platform == "win32", reason="programs are shell scripts")
@pytest.mark.parametrize("runtime", [True, False])
def test_a_command_that_looks_for_programs_starts_below_no_home_that_is_the_current_folder(
    tmp_path, monkeypatch, runtime
):
    home = tmp_path / "home"
    write(tmp_path, **{"bin/uv": f"#!/bin/sh\npwd > '{tmp_path}/ran'\n"})
    (tmp_path / "bin/uv").chmod(0o755)
    for one in (home, tmp_path / "run"):
        one.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run") if runtime else "")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(home)

    with pytest.raises(ConfigError, match="MCP server 'm'"):
        open_session(
            ScriptedModel([]), mcp_servers={"m": {"command": "uv", "args": ["run", "server"]}}, folder=tmp_path / "w"
        )

    started = Path((tmp_path / "ran").read_text(encoding="utf-8").strip())
    assert not started.is_relative_to(home)
    assert started.parent == (tmp_path / "run" if runtime else Path(tempfile.gettempdir()).resolve())


def test_plugins_of_the_home_are_none_of_a_folder_that_is_called_so(here, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write(tmp_path / "home" / "plugs", **{"mine.py": HOST_PLUGIN})
    write(here, **{"tw_autogen.yaml": "plugin.folder: ~/plugs", "~/plugs/planted.py": HOST_PLUGIN})

    shown = [want.does for want in review_folder().wants if want.name == "plugins"]

    assert any("mine.py" in one for one in shown)
    assert not any("planted.py" in one for one in shown)


@pytest.mark.parametrize("way", ["a path", "a link"])
def test_a_path_of_a_role_that_leads_out_of_a_named_folder_is_shown(here, tmp_path, way):
    (tmp_path / "private").mkdir()
    value = str(tmp_path / "private") if way == "a path" else "manuals"
    (here / "tw_autogen.yaml").write_text(f"role.manual_reader.folder: {value}\nkernel.sandbox: 'off'\n")
    if way == "a link":
        (here / "manuals").mkdir()
        before = review_folder(project=here)
        assert before.remember(before.sha256()) == ""
        (here / "manuals").rmdir()
        (here / "manuals").symlink_to(tmp_path / "private")

    review = review_folder(project=here)

    shown = {want.name: want.does for want in review.wants}
    assert shown["role.manual_reader.folder"].endswith(f" -> {tmp_path / 'private'}, outside of the folder")
    assert review.files_if_trusted() is None


@pytest.mark.parametrize("value", ["d:/m", "d://m"])
def test_a_path_that_looks_like_an_address_is_shown_as_any_other(here, tmp_path, value):
    (tmp_path / "private").mkdir()
    (here / "d:").mkdir()
    (here / "d:" / "m").symlink_to(tmp_path / "private")
    (here / SETTINGS).write_text(f"role.manual_reader.folder: '{value}'\nkernel.sandbox: 'off'\n")

    review = review_folder(project=here)

    assert str(tmp_path / "private") in {want.name: want.does for want in review.wants}["role.manual_reader.folder"]


def test_an_address_is_no_path(here):
    (here / "https:").mkdir()

    assert path_out_of(here, "https://example.org/a") == path_out_of(here, "https://") == ""


def test_where_sessions_would_be_kept_outside_is_shown(here, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (here / ".tw").symlink_to(tmp_path / "elsewhere")

    (want,) = [one for one in review_folder().wants if one.name == ".tw"]
    assert want.does.endswith(f" -> {tmp_path / 'elsewhere/sessions'}, outside of the folder")


@pytest.mark.parametrize(
    "key", ["recall.planner_examples", "recall.experience", "session.workspace", "kernel.read", "plugin.folder"]
)
def test_what_goes_up_from_a_link_or_begins_with_a_brace_is_the_path_that_was_looked_at(here, tmp_path, key):
    """As the system takes it; a path by its text alone would be another one, beside the folder."""
    stranger = tmp_path / "dl" / "stranger"
    for folder in (stranger / "deep" / "a" / "b", stranger / "notes", tmp_path / "notes", here / "notes"):
        folder.mkdir(parents=True)
    (stranger / "L").symlink_to("deep/a/b")

    for value in ("L/../../../notes", "{}/../notes")[: 1 if key in ("kernel.read", "plugin.folder") else 2]:
        write(stranger, **{SETTINGS: f"{key}: '{value}'"})
        section, name = key.split(".")
        found = getattr(read_settings(project=stranger, trust=True).read(section, SECTIONS[section]), name)
        assert found == ((str(stranger / "notes"),) if key == "kernel.read" else str(stranger / "notes"))


def test_no_index_is_read_where_none_is_named(here):
    with pytest.raises(ConfigError, match="no document index is named"):
        open_session(ScriptedModel([]), roles=["document_retriever"], settings={"role.document_retriever.index": ""})


@pytest.mark.parametrize("key", ["kernel.read", "kernel.write"])
@pytest.mark.parametrize("way", ["src/../data", "src/../../here/data"])
def test_a_link_behind_a_step_up_is_looked_at_as_any_other(here, tmp_path, key, way):
    (here / "src").mkdir()
    (tmp_path / "private").mkdir()
    (here / "data").symlink_to(tmp_path / "private")
    keywords = {key: [str(here / way)]}

    with pytest.raises(ConfigError, match="a link out of .*, which is not trusted, to .*private"):
        open_session(ScriptedModel([]), settings=keywords)
    with pytest.raises(ConfigError, match="a link out of .*, which is not trusted, to .*private"):
        open_session(ScriptedModel([]), settings=read_settings(keywords))


@pytest.mark.skipif(sys.platform == "win32", reason="programs are shell scripts")
def test_an_empty_folder_below_what_others_may_write_is_a_project_of_its_own(here, tmp_path, monkeypatch):
    write(tmp_path, **{"bin/npx": f"#!/bin/sh\n(cat package.json; echo $UV_NO_PROJECT) > '{tmp_path}/ran'\n"})
    (tmp_path / "bin/npx").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path / "nowhere" / "x"))
    (tmp_path / "nowhere").write_text("no folder")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)

    with pytest.raises(ConfigError, match="MCP server 'm'"):
        open_session(
            ScriptedModel([]), mcp_servers={"m": {"command": "npx", "args": ["x"]}}, folder=tmp_path / "sessions"
        )

    assert (tmp_path / "ran").read_text() == "{}1\n"


@pytest.mark.skipif(sys.platform == "win32", reason="makes links")
def test_a_roles_folder_elsewhere_is_shown_in_taskweavers_file_too_and_a_link_out_ends_the_trust(here, tmp_path):
    (tmp_path / "private").mkdir()
    config = {"llm.api_base": "http://127.0.0.1:1", "session.roles": ["planner", "manual_reader"]}
    write(here, **{"taskweaver_config.json": {**config, "manual_reader.folder": str(tmp_path / "private")}})

    shown = {want.name: want.does for want in review_folder(project=here).wants}
    assert str(tmp_path / "private") in shown["role.manual_reader.folder"]

    write(here, **{"taskweaver_config.json": {**config, "manual_reader.folder": "manuals"}, "manuals/a.md": ""})
    review = review_folder(project=here)
    assert review.remember(review.sha256()) == ""
    assert review_folder(project=here).files_if_trusted()
    (here / "manuals").rename(here / "old")
    (here / "manuals").symlink_to(tmp_path / "private")
    assert not review_folder(project=here).files_if_trusted()
