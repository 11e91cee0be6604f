"""Settings of roles: paths mean what they mean in the file that names them, keys go where they were named for."""

import http.server
import sys
import threading

import pytest

from tests.session.written_files import write
from tw_autogen import open_session
from tw_autogen.errors import ConfigError
from tw_autogen.role import find_role
from tw_autogen.session import read_settings, review_folder, trust_lines
from tw_autogen.settings_trust import Trust
from tw_autogen.testing import ScriptedModel, plans

SETTINGS = "tw_autogen.yaml"


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
    own = {"role.web_explorer.executable": "./chrome", "role.web_explorer.no_sandbox": True}  # for root
    write(project, {SETTINGS: own, "chrome": "1"})
    settings = read_settings(project=project, trust=True)
    assert settings.trust is Trust.full
    spec = find_role("web_explorer")
    role = spec.make(lambda: ScriptedModel([]), given=lambda keys: settings.of_role("web_explorer", keys))

    assert role._settings.executable == str(project / "chrome")


@pytest.mark.parametrize("name", ["TW_AUTOGEN_ROLE_WEB_EXPLORER_EXECUTABLE", "file", ""])
def test_a_program_that_is_named_by_a_word_is_none_of_the_current_folder(here, name):
    pytest.importorskip("playwright", reason="needs the extra `web`")
    write(here, **{"chrome": "1"})
    key = "role.web_explorer.executable"
    write(here, **({SETTINGS: {key: "chrome"}} if name == "file" else {}))
    said = {"role.web_explorer.no_sandbox": True, **({} if name else {key: "chrome"})}
    environ = {name: "chrome"} if name.isupper() else {}
    settings = read_settings(said, environ=environ, trust=name == "file")
    spec = find_role("web_explorer")
    role = spec.make(
        lambda: ScriptedModel([]), given=lambda keys: settings.of_role("web_explorer", keys), distrusted=here
    )

    assert role._settings.executable == "chrome"


TRUSTED = {
    "command_line": {"approval": "always"},
    "image_reader": {"urls": True},
    "web_explorer": {"executable": "./chrome", "no_sandbox": True, "private": True},
    "web_search": {"url": "https://x.example/search", "key_env": "OPENAI_API_KEY"},
}


@pytest.mark.parametrize("role", TRUSTED)
@pytest.mark.parametrize("dotted", [False, True])
def test_what_lifts_approval_starts_a_program_or_widens_reach_needs_trust_of_a_folder_that_is_named(
    here, tmp_path, role, dotted
):
    project, wanted = tmp_path / "project", TRUSTED[role]
    write(project, {SETTINGS: {f"role.{role}": wanted} if dotted else {"role": {role: wanted}}})
    withheld = [f"role.{role}.{key}" for key in wanted if key != "url"]

    settings = read_settings(project=project)

    (line,) = trust_lines(settings, "--trust")
    assert all(key in line for key in withheld)
    assert sorted(want.name for want in review_folder(project=project).wants) == sorted(withheld)
    assert set(settings.of_role(role, [])) == set(wanted) & {"url"}
    assert set(read_settings(project=project, trust=True).of_role(role, [])) == set(wanted)
    assert read_settings({f"role.{role}.{key}": value for key, value in wanted.items()}).left_out == ()


def test_a_command_that_a_named_folder_lets_run_unasked_is_refused_with_nobody_there(here, tmp_path):
    project = tmp_path / "project"
    write(project, {SETTINGS: {"session.roles": ["command_line"], "role.command_line.approval": "always"}})
    with open_session(ScriptedModel([]), project=project, folder=tmp_path / "sessions") as session:
        assert "nobody is here" in session.ask("$ echo hi > ran").text
    with open_session(ScriptedModel([]), project=project, trust=True, folder=tmp_path / "sessions") as session:
        assert "nobody is here" not in session.ask("$ echo hi > ran").text


def test_a_role_that_settings_name_by_a_path_is_not_loaded_to_read_them(here, tmp_path):
    write(tmp_path, {"evil/evil.py": f"open({str(tmp_path / 'ran')!r}, 'w')", "evil/role.yaml": "name: evil"})
    write(here, {SETTINGS: {"role": {str(tmp_path / "evil"): {"x": 1}}}})

    settings = read_settings(project=here)

    assert f"role.{tmp_path / 'evil'}.x" in "".join(trust_lines(settings, "--trust"))
    assert not (tmp_path / "ran").exists()


OWN = """
from dataclasses import dataclass, field

from tw_autogen import Role


@dataclass(frozen=True)
class OpenerSettings:
    door: str = field(default="shut", metadata={"folder": "trusted"})
    words: str = ""


class Opener(Role):
    def __init__(self, settings: OpenerSettings):
        self._settings = settings

    def reply(self, memory, **kwargs):
        return self.post(memory, f"{self._settings.door}{self._settings.words}", "User")
"""


@pytest.mark.parametrize("trust", [False, True])
def test_a_role_of_the_users_own_says_what_a_named_folder_may_not_set(here, tmp_path, caplog, trust):
    project = tmp_path / "project"
    write(tmp_path, {"opener/opener.py": OWN, "opener/role.yaml": "alias: Opener\nintro: Opens.\n"})
    write(project, {SETTINGS: {"role.opener": {"door": "open", "words": "!"}}})

    spec = find_role(tmp_path / "opener")
    settings = read_settings(project=project, trust=trust)
    role = spec.make(lambda: ScriptedModel([]), given=lambda keys: settings.of_role("opener", keys))

    assert (role._settings.door, role._settings.words) == ("open" if trust else "shut", "!")
    assert ("role.opener.door of" in caplog.text) is not trust


def reading(tmp_path, **more):
    """Return what the model would be told of a manual."""
    with open_session(ScriptedModel([]), roles=["manual_reader"], folder=tmp_path / "sessions", **more) as session:
        session.open_round("read how.md")
        said = session.step(session.next_role())
        return f"{said.message}{session.rounds[-1].board}"


@pytest.fixture
def linked(here, tmp_path):
    """Make a folder of manuals, a link `manuals` to it in the current folder, and manuals that lie here."""
    write(tmp_path, {"private/how.md": "# Private\n", "here/own/how.md": "# Own\n"})
    (here / "manuals").symlink_to(tmp_path / "private")
    return here


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
@pytest.mark.parametrize("where", ["a keyword", "the environment", "the user's file"])
@pytest.mark.parametrize("whole", [False, True])
def test_a_roles_folder_is_reached_over_no_link_out_of_a_folder_that_is_not_trusted(
    linked, tmp_path, monkeypatch, where, whole
):
    name = "role.manual_reader.folder"
    path = str(linked / "manuals") if whole or where == "the user's file" else "manuals"
    more = {"settings": {name: path}} if where == "a keyword" else {}
    if where == "the environment":
        monkeypatch.setenv("TW_AUTOGEN_ROLE_MANUAL_READER_FOLDER", path)
    if where == "the user's file":
        write(tmp_path / "home" / ".config" / "tw-autogen", {"config.yaml": {name: path}})

    words = rf"{name}.*manuals: a link out of {linked}, which is not trusted, to {tmp_path / 'private'}"
    with pytest.raises(ConfigError, match=words):
        reading(tmp_path, **more)
    with pytest.raises(ConfigError, match=r"role\.document_retriever\.index.*a link out of"):
        open_session(
            ScriptedModel([]),
            roles=["document_retriever"],
            folder=tmp_path / "sessions",
            settings={"role.document_retriever.index": str(linked / "manuals")},
        )
    if more:
        assert "Own" in reading(tmp_path, settings={name: "own"})
        assert "Private" in reading(tmp_path, settings={name: "../private"})


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
@pytest.mark.parametrize("named", ["manuals", "../private", "{private}"])
def test_a_named_folders_file_leads_a_role_to_nothing_outside_until_it_is_trusted(linked, tmp_path, named):
    text = named.format(private=tmp_path / "private")
    write(linked, {SETTINGS: {"role.manual_reader.folder": text}})

    with pytest.raises(ConfigError, match=r"role\.manual_reader\.folder .*lies outside of .*or trust that folder"):
        reading(tmp_path, project=tmp_path / "here")
    assert "Private" in reading(tmp_path, project=tmp_path / "here", trust=True)

    write(linked, {SETTINGS: {"role.manual_reader.folder": "own"}})
    assert "Own" in reading(tmp_path, project=tmp_path / "here")
    (linked / "own" / "again").symlink_to("again")
    assert "Own" in reading(tmp_path, project=tmp_path / "here")
    (linked / "own" / "tw-index.json").symlink_to(tmp_path / "private")
    with pytest.raises(ConfigError, match=r"role\.manual_reader\.folder .*lies outside of"):
        reading(tmp_path, project=tmp_path / "here")
