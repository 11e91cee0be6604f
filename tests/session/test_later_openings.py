"""What was found while a folder was trusted, or from one folder, is not used when that no longer holds."""

import functools
import json
import sys

import pytest

from tw_autogen import open_session
from tw_autogen.errors import TwAutogenError
from tw_autogen.session import checked_opening, read_settings, review_folder
from tw_autogen.settings_trust import Trust
from tw_autogen.testing import FakeKernel, ScriptedModel

SETTINGS = "tw_autogen.yaml"
ROLE = "alias: Crier\nintro: Cries.\nmodule: crier\n"
CLASS = "from tw_autogen import Role\n\nclass Crier(Role):\n    def reply(self, memory, **kwargs): ...\n"


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")


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
    return made.session


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
