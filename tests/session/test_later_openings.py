"""What was found while a folder was trusted, or from one folder, is not used when that no longer holds."""

import contextlib
import functools
import sqlite3
import sys

import pytest

from tests.session.written_files import write
from tw_autogen import open_session
from tw_autogen.errors import ConfigError, RoundError, TwAutogenError
from tw_autogen.kernel import LocalKernel
from tw_autogen.named_folders import UNTRUSTED_FOLDERS
from tw_autogen.session import checked_opening, read_settings, review_folder
from tw_autogen.settings_trust import Trust
from tw_autogen.testing import FakeKernel, ScriptedModel

SETTINGS = "tw_autogen.yaml"
ROLE = "alias: Crier\nintro: Cries.\nmodule: crier\n"
CLASS = "from tw_autogen import Role\n\nclass Crier(Role):\n    def reply(self, memory, **kwargs): ...\n"


def role(folder, words):
    return {
        "role.yaml": ROLE,
        "crier.py": f"with open({str(folder / 'ran')!r}, 'a') as file:\n    file.write('{words} ')\n{CLASS}",
    }


def trust(project=None):
    review = review_folder(project=project)
    assert review.remember(review.sha256()) == ""
    assert read_settings(project=project).trust is Trust.full


@pytest.fixture(autouse=True)
def own_modules(monkeypatch):
    monkeypatch.setattr(sys, "path", sys.path[:])


def opening(tmp_path, **more):
    make = functools.partial(
        open_session, model=ScriptedModel([]), kernel=FakeKernel(), folder=tmp_path / "sessions", **more
    )
    return checked_opening(make, read_settings(project=more.get("project")))


def agent(tmp_path, **more):
    conversable = pytest.importorskip("tw_autogen.hosts.conversable", reason="needs AutoGen")
    made = conversable.TaskWeaverAgent(
        model=ScriptedModel([]), kernel=FakeKernel(), llm_config=False, workspace=tmp_path / "sessions", **more
    )
    return lambda: made.session(made)


def shared(tmp_path, **more):
    conversable = pytest.importorskip("tw_autogen.hosts.conversable", reason="needs AutoGen")
    session = conversable.SharedSession(workspace=tmp_path / "sessions", **more)
    conversable.CodeInterpreterAgent(
        model=ScriptedModel([]), kernel=lambda folder: FakeKernel(), llm_config=False, session=session
    )
    return session.opened


@pytest.mark.parametrize("make", [opening, agent])
@pytest.mark.parametrize("named", [False, True])
def test_a_role_that_changes_after_an_agent_was_made_does_not_run_with_its_next_session(here, tmp_path, make, named):
    write(here, {SETTINGS: {"session.roles": ["planner", "crier"], "kernel.sandbox": "off"}})
    write(here / "roles" / "crier", role(tmp_path, "good"))
    trust()
    if named:
        trust(here)
    opened = make(tmp_path, **({"project": here} if named else {}))
    opened().close()
    assert (tmp_path / "ran").read_text() == "good "
    write(here / "roles" / "crier", role(tmp_path, "changed"))
    assert read_settings().trust is Trust.none

    with opened() as session:
        assert ("Crier" in [one.name for one in session.roles]) is named  # a path that the caller wrote is trust for it

    assert ("changed" in (tmp_path / "ran").read_text()) is named


@pytest.mark.parametrize("make", [opening, agent, shared])
def test_trust_is_that_of_the_folder_in_which_it_was_said(here, tmp_path, monkeypatch, make):
    other = tmp_path / "other"
    for folder in (here, other):
        write(folder, {SETTINGS: {"session.max_posts": 40}})  # more than the default
    opened = make(tmp_path, trust=True)

    found = []
    for folder in (here, other, here):
        monkeypatch.chdir(folder)
        with opened() as session:
            found.append(session._settings.max_posts)

    assert found == [40, 30, 40]


@pytest.mark.parametrize("make", [opening, agent])
@pytest.mark.parametrize("what", ["roles", "project", "mcp_servers"])
def test_relative_paths_of_an_agent_mean_what_they_meant_when_it_was_made(here, tmp_path, monkeypatch, make, what):
    mine = tmp_path / "mine"
    servers = {words: {"m": {"command": "touch", "args": [str(tmp_path / words)]}} for words in ("good", "evil")}
    for folder, words in ((mine, "good"), (here, "evil")):
        write(folder / "in" / "roles" / "crier", role(tmp_path, words))
        write(folder / "in", {SETTINGS: {"session.roles": ["planner", "crier"]}, "mcp.json": servers[words]})
    given = {
        "roles": {"roles": ["planner", "in/roles/crier"]},
        "project": {"project": "in"},
        "mcp_servers": {"mcp_servers": "in/mcp.json"},
    }
    if what == "mcp_servers":
        pytest.importorskip("mcp", reason="needs the extra `mcp`")
    monkeypatch.chdir(mine)
    opened = make(tmp_path, **given[what])
    monkeypatch.chdir(here)

    if what == "mcp_servers":
        with pytest.raises(TwAutogenError, match="MCP server 'm'"):
            opened()
        assert (tmp_path / "good").exists()
        assert not (tmp_path / "evil").exists()
    else:
        opened().close()
        assert set((tmp_path / "ran").read_text().split()) == {"good"}


@pytest.mark.parametrize("make", [agent, shared])
@pytest.mark.parametrize("key", ["plugin.mcp_servers", "code_interpreter.policy"])
def test_relative_paths_in_an_agents_settings_begin_where_it_was_made(here, tmp_path, monkeypatch, make, key):
    mine = tmp_path / "mine"
    for folder, words in ((mine, "good"), (here, "evil")):
        servers = {"mcpServers": {"m": {"command": "touch", "args": [str(tmp_path / words)]}}}
        write(folder, {"mcp.json": servers, "ours.yaml": f"modules: [{words}]\n"})
    monkeypatch.chdir(mine)
    if key == "plugin.mcp_servers":
        pytest.importorskip("mcp", reason="needs the extra `mcp`")
        opened = make(tmp_path, settings={key: "mcp.json"})
        monkeypatch.chdir(here)
        with pytest.raises(TwAutogenError, match="MCP server 'm'"):
            opened()
        assert ((tmp_path / "good").exists(), (tmp_path / "evil").exists()) == (True, False)
    else:
        opened = make(tmp_path, settings={key: "ours.yaml"})
        monkeypatch.chdir(here)
        with opened() as session:
            (role,) = [one for one in session.roles if one.name == "CodeInterpreter"]
            assert role._policy.modules == frozenset({"good"})


def test_a_role_that_an_agent_plays_is_that_of_the_folder_where_it_was_made(here, tmp_path, monkeypatch):
    conversable = pytest.importorskip("tw_autogen.hosts.conversable", reason="needs AutoGen")
    for folder, words in ((tmp_path / "mine", "good"), (here, "evil")):
        write(folder / "crier", role(tmp_path, words))
    monkeypatch.chdir(tmp_path / "mine")
    made = conversable.RoleAgent("./crier", llm_config=False)
    monkeypatch.chdir(here)

    made.shared.opened().close()

    assert (tmp_path / "ran").read_text() == "good "


@pytest.mark.parametrize("runs_in", ["host", "kernel"])
def test_what_lies_beside_an_agents_plugin_is_that_of_the_folder_where_it_was_made(
    here, tmp_path, monkeypatch, runs_in
):
    conversable = pytest.importorskip("tw_autogen.hosts.conversable", reason="needs AutoGen")
    for folder, words in ((tmp_path / "mine", "good"), (here, "evil")):
        head = (
            f"from tw_autogen.plugin import plugin\nfrom beside_{runs_in} import WORD\n\n@plugin(runs_in={runs_in!r})\n"
        )
        body = 'def say() -> str:\n    "Say a word."\n    return WORD\n'
        write(folder / "tools", {"say.py": head + body, f"beside_{runs_in}.py": f"WORD = {words!r}\n"})
    monkeypatch.chdir(tmp_path / "mine")
    made = conversable.TaskWeaverAgent(
        model=ScriptedModel([]),
        roles="code_interpreter",
        plugins="./tools",
        llm_config=False,
        workspace=tmp_path / "sessions",
    )
    monkeypatch.chdir(here)

    with made.session(conversable.TaskWeaverAgent("user", llm_config=False)) as session:
        assert session.run_code("print(say())").message.strip() == "good"

    assert not [one for one in sys.path if one.endswith("/tools")]


def test_a_database_in_a_folder_to_which_the_program_went_later_is_read_over_no_link(here, tmp_path, monkeypatch):
    with contextlib.closing(sqlite3.connect(tmp_path / "private.db")) as connection, connection:
        connection.execute("CREATE TABLE t AS SELECT 13 AS n")
    (here / "shop.db").symlink_to(tmp_path / "private.db")
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    kernel = FakeKernel(lambda code: str(kernel.served["sql_pull_data"]("SELECT n FROM t")), folder=tmp_path / "w")
    with open_session(
        ScriptedModel([]), roles="code_interpreter", plugins="sql_pull_data", kernel=kernel, trust=True
    ) as session:
        session.variables["database"] = str(here / "shop.db")
        assert "1 rows" in session.run_code("pull").message  # nobody said that the folder is the current one
        monkeypatch.chdir(here)

        with pytest.raises(RoundError, match=f"a link out of {here}, which is not trusted"):
            session.run_code("pull")


def test_an_agents_settings_of_old_end_no_distrust(here, tmp_path):
    conversable = pytest.importorskip("tw_autogen.hosts.conversable", reason="needs AutoGen")
    write(here, {SETTINGS: {"kernel.read": ["."]}, "x.csv": "a\n1\n"})
    trust()
    made = conversable.TaskWeaverAgent(
        model=ScriptedModel([]), kernel=FakeKernel(), llm_config=False, workspace=tmp_path / "sessions"
    )
    write(here, {SETTINGS: {"kernel.read": [".."]}})
    made.session(made).close()
    assert str(here) in UNTRUSTED_FOLDERS

    made.hand_over(conversable.TaskWeaverAgent("user", llm_config=False), ["x.csv"])

    assert str(here) in UNTRUSTED_FOLDERS


def test_an_interpreter_is_compared_also_where_settings_were_read_long_before(here, tmp_path):
    (here / "bin").mkdir()
    (here / "bin" / "python").write_text("#!/bin/sh\n")
    (here / "bin" / "python").chmod(0o755)
    write(here, {SETTINGS: {"kernel.python": "bin/python"}})
    trust()
    settings = read_settings()
    (here / "bin" / "python").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")

    with pytest.raises(TwAutogenError, match=r"bin/python: it changed since its folder was trusted"):
        open_session(ScriptedModel([]), settings=settings, folder=tmp_path / "s")

    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("setting", ["plugin.mcp_servers", "kernel.python"])
def test_settings_of_old_start_no_program_once_code_may_write_there(here, tmp_path, setting):
    (here / "bin").mkdir()
    (here / "bin" / "python").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (here / "bin" / "python").chmod(0o755)
    write(here, {"mcp.json": {"mcpServers": {"m": {"command": "bin/python"}}}})
    write(here, {SETTINGS: {setting: "bin/python" if setting == "kernel.python" else "mcp.json"}})
    trust()
    settings = read_settings()
    LocalKernel(here).close()

    with pytest.raises(TwAutogenError, match="the trust of .* has ended"):
        open_session(ScriptedModel([]), settings=settings, folder=tmp_path / "s")

    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("make", [agent, shared])
def test_links_of_a_strangers_folder_stay_such_when_the_program_has_gone_elsewhere(here, tmp_path, monkeypatch, make):
    write(tmp_path / "private", {"mcp.json": {"mcpServers": {"m": {"command": "true"}}}})
    (tmp_path / "mine").mkdir()
    (here / "mcp.json").symlink_to(tmp_path / "private" / "mcp.json")
    opened = make(tmp_path, settings={"plugin.mcp_servers": "mcp.json"})
    monkeypatch.chdir(tmp_path / "mine")

    with pytest.raises(TwAutogenError, match=f"a link out of {here}, which is not trusted"):
        opened()


def test_no_role_is_taken_from_a_relative_path_in_the_environment(here, tmp_path, monkeypatch):
    for folder, words in ((tmp_path / "mine", "good"), (here, "evil")):
        write(folder / "crier", role(tmp_path, words))
    monkeypatch.setenv("TW_AUTOGEN_SESSION_ROLES", "planner,./crier")
    monkeypatch.chdir(tmp_path / "mine")
    with pytest.raises(ConfigError, match="'./crier' means whatever lies in the current folder; write a whole path"):
        agent(tmp_path)

    assert not (tmp_path / "ran").exists()


def test_a_project_below_home_is_read_from_there_and_not_from_a_folder_that_is_called_like_the_sign(here, tmp_path):
    write(here, {f"~/p/{SETTINGS}": {"session.max_posts": 3, "session.roles": ["planner", "crier"]}})
    write(here / "~" / "p" / "roles" / "crier", role(tmp_path, "evil"))
    write(tmp_path / "home", {f"p/{SETTINGS}": {"session.max_posts": 5}})

    settings = read_settings(project="~/p")

    assert settings.origin("session.max_posts") == str(tmp_path / "home" / "p" / SETTINGS)
    open_session(ScriptedModel([]), project="~/p", kernel=FakeKernel(), folder=tmp_path / "s").close()
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("how", ["said", "remembered"])
def test_trust_of_a_project_says_nothing_about_the_folder_that_is_the_current_one_later(
    here, tmp_path, monkeypatch, how
):
    mine = tmp_path / "mine"
    write(mine, {SETTINGS: {"session.roles": ["planner", "crier"], "kernel.sandbox": "off"}})
    write(mine / "roles" / "crier", role(tmp_path, "good"))
    write(here, {SETTINGS: {}})
    write(here / "roles" / "crier", role(tmp_path, "evil"))
    monkeypatch.chdir(mine)
    if how == "remembered":
        trust(".")
    settings = read_settings(project=".", trust=how == "said")
    monkeypatch.chdir(here)
    assert settings.trust is Trust.full

    with pytest.raises(TwAutogenError, match="no shipped role"):
        open_session(ScriptedModel([]), kernel=FakeKernel(), settings=settings, folder=tmp_path / "s")

    assert not (tmp_path / "ran").exists()
