"""Settings of roles: paths mean what they mean in the file that names them, keys go where they were named for."""

import http.server
import json
import sys
import threading

import pytest

from tw_autogen import open_session
from tw_autogen.role import find_role
from tw_autogen.session import read_settings, review_folder, trust_lines
from tw_autogen.settings_trust import Trust
from tw_autogen.shipped_folders import shipped_folder
from tw_autogen.testing import ScriptedModel, plans

SETTINGS = "tw_autogen.yaml"


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")


@pytest.fixture
def engine():
    """Start a search engine that notes the keys it gets."""
    keys = []

    class Engine(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            keys.append(self.headers.get("Authorization"))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"results": []}')

        def log_message(self, *args): ...

    with http.server.HTTPServer(("127.0.0.1", 0), Engine) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/search", keys
        server.shutdown()
        thread.join()


def search(tmp_path, **more):
    replies = [plans("find it", then="User", to="WebSearch"), plans("found", to="User")]
    with (
        ScriptedModel(replies) as model,
        open_session(model, roles=["planner", "web_search"], folder=tmp_path / "sessions", **more) as session,
    ):
        session.ask("find tea")


KEYS = {
    "a project that is named": ({"url": "{url}", "key_env": "OPENAI_API_KEY"}, {}, None),
    "the user's key": ({"url": "{url}"}, {"key_env": "OPENAI_API_KEY"}, None),
    "the project's choice of a key": ({"key_env": "OPENAI_API_KEY"}, {"url": "{url}"}, None),
    "the user's both": ({}, {"url": "{url}", "key_env": "OPENAI_API_KEY"}, "Bearer sk-x"),
}


@pytest.mark.parametrize("trust", [False, True])
@pytest.mark.parametrize("case", KEYS)
def test_a_key_of_the_environment_goes_to_no_server_that_only_a_folders_file_names(
    here, tmp_path, monkeypatch, engine, case, trust
):
    url, keys = engine
    project, own, expected = KEYS[case]
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    write(
        tmp_path / "project", {SETTINGS: {"role": {"web_search": {k: v.format(url=url) for k, v in project.items()}}}}
    )
    settings = {f"role.web_search.{key}": value.format(url=url) for key, value in own.items()}
    if trust and case == "a project that is named":
        expected = "Bearer sk-x"  # a person was asked about this very variable and server

    search(tmp_path, settings=settings, project=tmp_path / "project", trust=trust)

    assert keys == [expected]


def test_a_variable_that_a_named_folder_chooses_is_said_and_asked_about(here, tmp_path):
    write(tmp_path / "project", {SETTINGS: {"role.web_search.key_env": "OPENAI_API_KEY"}})

    assert "left out role.web_search.key_env" in "\n".join(
        trust_lines(read_settings(project=tmp_path / "project"), "--trust")
    )
    (want,) = review_folder(project=tmp_path / "project").wants
    assert want.does == "OPENAI_API_KEY: a variable of your environment, which goes to that role's server"


@pytest.mark.parametrize("where", ["a project", "the user's file"])
def test_a_path_of_a_roles_setting_begins_at_the_file_that_names_it(here, tmp_path, where):
    folder = tmp_path / "project" if where == "a project" else tmp_path / "home" / ".config" / "tw-autogen"
    name = SETTINGS if where == "a project" else "config.yaml"
    write(folder, {name: {"role": {"manual_reader": {"folder": "manuals"}}}, "manuals/how.md": "# Good\n"})
    write(here, {"manuals/how.md": "# Evil\n"})
    given = {"project": tmp_path / "project"} if where == "a project" else {}

    with open_session(ScriptedModel([]), roles=["manual_reader"], folder=tmp_path / "sessions", **given) as session:
        session.open_round("read how.md")
        said = session.step(session.next_role())
        board = session.rounds[-1].board

    assert "Good" in f"{said.message}{board}"
    assert "Evil" not in f"{said.message}{board}"


@pytest.mark.skipif(sys.platform == "win32", reason="the browser is a shell script")
def test_the_browser_that_a_project_names_is_the_one_that_was_looked_at(here, tmp_path):
    pytest.importorskip("playwright", reason="needs the extra `web`")
    project = tmp_path / "project"
    write(project, {SETTINGS: {"role.web_explorer.executable": "./chrome"}, "chrome": "1"})
    settings = read_settings(project=project)
    assert settings.trust is Trust.named
    spec = find_role("web_explorer", shipped=shipped_folder("roles"))
    role = spec.make(lambda: ScriptedModel([]), given=lambda keys: settings.of_role("web_explorer", keys))

    assert role._settings.executable == str(project / "chrome")
