"""What a user grants by a name in a folder that nobody trusts leads over no link out of it."""

import contextlib
import sys
from contextlib import ExitStack

import pytest

from tw_autogen import open_session
from tw_autogen.errors import ConfigError, RoundError
from tw_autogen.recall import DocumentIndex
from tw_autogen.safe_folder import KERNEL_FOLDERS
from tw_autogen.session import open_kernel, read_settings, role_configs
from tw_autogen.testing import FakeKernel, ScriptedModel, plans

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")


@pytest.fixture
def linked(here, tmp_path):
    (tmp_path / "private" / "in").mkdir(parents=True)
    (tmp_path / "private" / "m.json").write_text('{"m": {"command": "touch", "args": ["ran"]}}')
    (here / "data").symlink_to(tmp_path / "private")
    (here / "m.json").symlink_to(tmp_path / "private" / "m.json")
    (here / "mine").mkdir()
    for folder in (tmp_path, here, here / "mine", tmp_path / "private"):
        folder.chmod(0o777)  # root's code runs as another user
    (here / "way").symlink_to("mine")
    return here


@pytest.mark.parametrize("key", ["kernel.read", "kernel.write", "session.user_folder"])
@pytest.mark.parametrize("name", ["data", "./data/in", "{here}/data"])
def test_a_grant_over_a_link_out_of_a_folder_that_is_not_trusted_is_an_error(linked, tmp_path, key, name):
    settings = {key: name.format(here=linked)}

    with pytest.raises(ConfigError, match=rf"{key}: .*data.*: a link out of .* which is not trusted"):
        open_session(ScriptedModel([]), settings=settings, folder=tmp_path / "sessions")


@pytest.mark.parametrize("key", ["kernel.read", "kernel.write", "session.user_folder"])
def test_a_grant_in_the_folder_or_by_its_own_name_or_of_a_trusted_folder_stands(linked, tmp_path, key):
    for name, trust in (("mine", False), ("way", False), (str(tmp_path / "private"), False), ("data", True)):
        settings = read_settings({key: name}, trust=trust)
        open_session(ScriptedModel([]), settings=settings, folder=tmp_path / "sessions").close()


@pytest.mark.parametrize("how", ["a keyword", "a setting"])
def test_a_file_of_servers_over_such_a_link_is_an_error_and_starts_nothing(linked, tmp_path, how):
    given = {"mcp_servers": "m.json"} if how == "a keyword" else {"settings": {"plugin.mcp_servers": "m.json"}}

    with pytest.raises(ConfigError, match=r"m\.json: a link out of .* which is not trusted"):
        open_session(ScriptedModel([]), kernel=FakeKernel(), folder=tmp_path / "sessions", **given)

    assert not (linked / "ran").exists()


RECALLED = {
    "recall.experience": "exp_1.yaml",
    "recall.planner_examples": "one.yaml",
    "recall.code_examples": "one.yaml",
    "code_interpreter.policy": "ours.yaml",
}


@pytest.mark.parametrize("key", RECALLED)
@pytest.mark.parametrize("way", ["the folder", "a file in it"])
def test_lessons_examples_and_a_policy_are_read_over_no_such_link(linked, tmp_path, key, way):
    texts = {
        "exp_1.yaml": "experience_text: private\n",
        "one.yaml": "enabled: false\nrounds: [{posts: []}]\n",
        "ours.yaml": "base: strict\n",
    }
    for name, text in texts.items():
        (tmp_path / "private" / "in" / name).write_text(text, encoding="utf-8")
        (linked / "mine" / name).symlink_to(tmp_path / "private" / "in" / name)
    folder = "data/in" if way == "the folder" else "mine"
    value = f"{folder}/ours.yaml" if key == "code_interpreter.policy" else folder

    def opened(trust):
        settings = {key: value}
        return open_session(
            ScriptedModel([]), kernel=FakeKernel(), folder=tmp_path / "s", settings=settings, trust=trust
        )

    with pytest.raises(ConfigError, match=r"a link out of .* which is not trusted"):
        opened(trust=False)
    with contextlib.suppress(ConfigError):  # the example is none
        opened(trust=True).close()


@pytest.mark.parametrize("written", [False, True])
def test_an_index_of_documents_is_read_over_no_link_of_a_strangers_or_of_codes(linked, tmp_path, written):
    for folder in ("docs", "docs_of_mine"):
        place = (linked if folder == "docs" else tmp_path / "private") / folder
        place.mkdir()
        (place / "s.md").write_text("CANARY\n", encoding="utf-8")
    index = DocumentIndex.build(tmp_path / "private" / "docs_of_mine").write()
    (linked / "docs" / index.name).symlink_to(index)
    settings = {"role.document_retriever.index": "docs"}
    if written:  # trusted, but code of this process may have moved the link there
        KERNEL_FOLDERS.add(linked)
    try:
        with pytest.raises(ConfigError, match=r"a link out of .* which is not trusted|code could make that link"):
            open_session(
                ScriptedModel([]),
                roles=["planner", "document_retriever"],
                settings=settings,
                folder=tmp_path / "s",
                trust=written,
            )
    finally:
        KERNEL_FOLDERS.discard(linked)


def test_lessons_that_code_leads_elsewhere_in_a_session_are_not_read(linked, tmp_path):
    (tmp_path / "private" / "in" / "exp_2.yaml").write_text("experience_text: CANARY\n", encoding="utf-8")
    (linked / "mine" / "exp_1.yaml").write_text("experience_text: mine\n", encoding="utf-8")
    settings = read_settings({"recall.experience": "mine", "recall.experience_min_score": -1.0}, trust=True)
    model = ScriptedModel([plans("one", to="User"), plans("two", to="User")])
    with open_session(model, kernel=FakeKernel(), folder=tmp_path / "s", settings=settings) as session:
        session.ask("mine")
        KERNEL_FOLDERS.add(linked / "mine")
        try:
            (linked / "mine" / "exp_2.yaml").symlink_to(tmp_path / "private" / "in" / "exp_2.yaml")
            with pytest.raises(RoundError, match="code could make that link"):
                session.ask("and now?")
        finally:
            KERNEL_FOLDERS.discard(linked / "mine")
    assert "CANARY" not in str(model.calls)


def test_a_settings_file_that_is_a_link_counts_with_each_session(linked, tmp_path):
    (tmp_path / "private" / "tw.yaml").write_text("session: {max_posts: 12}\n", encoding="utf-8")
    (linked / "tw_autogen.yaml").symlink_to(tmp_path / "private" / "tw.yaml")

    for number in range(2):
        model = ScriptedModel([plans("one", to="User")])
        with open_session(model, kernel=FakeKernel(), folder=tmp_path / f"s{number}", trust=True) as session:
            assert session._settings.max_posts == 12


@pytest.mark.parametrize("way", ["data", "mine"])
def test_a_lesson_is_written_where_no_strangers_link_leads(linked, tmp_path, way):
    (tmp_path / "private" / "exp_1.yaml").write_text("experience_text: private\n", encoding="utf-8")
    (linked / "mine" / "exp_1.yaml").symlink_to(tmp_path / "private" / "exp_1.yaml")
    model = ScriptedModel([plans("one", to="User")])
    with open_session(model, kernel=FakeKernel(), folder=tmp_path / "s", settings={}) as session:
        session.ask("sums")
        with pytest.raises(ConfigError, match="a link out of .* which is not trusted"):
            session.save_experience(way)


def test_lessons_stay_those_of_the_folder_in_which_they_were_named(linked, tmp_path, monkeypatch):
    for folder, words in ((linked / "lessons", "MINE"), (tmp_path / "other" / "lessons", "STRANGERS")):
        folder.mkdir(parents=True)
        (folder / "exp_1.yaml").write_text(f"experience_text: sums are {words}\n", encoding="utf-8")
    settings = {"recall.experience": "lessons", "recall.experience_min_score": -1.0}
    model = ScriptedModel([plans("one", to="User"), plans("two", to="User")])
    with open_session(model, kernel=FakeKernel(), folder=tmp_path / "s", settings=settings) as session:
        session.ask("sums, first")
        monkeypatch.chdir(tmp_path / "other")
        session.ask("sums, second")

    assert ("MINE" in str(model.calls[-1]), "STRANGERS" in str(model.calls)) == (True, False)


@pytest.mark.parametrize("trust", [False, True])
def test_a_file_is_given_over_no_link_of_the_folder_that_the_program_has_gone_to(linked, tmp_path, monkeypatch, trust):
    (tmp_path / "private" / "secret.csv").write_text("CANARY\n", encoding="utf-8")
    other = tmp_path / "other"
    other.mkdir()
    (other / "data.csv").symlink_to(tmp_path / "private" / "secret.csv")
    with open_session(
        ScriptedModel([]), kernel=FakeKernel(), folder=tmp_path / "s", settings={}, trust=trust
    ) as session:
        monkeypatch.chdir(other)
        with pytest.raises(ConfigError, match="a link out of .* which is not trusted"):
            session.ask("sum", files=["data.csv"])


@pytest.mark.parametrize("key", ["kernel.read", "kernel.write", "session.user_folder"])
def test_what_is_granted_is_what_was_checked(linked, tmp_path, monkeypatch, key):
    checked = role_configs.granted_path

    def exchanging(path, **options):
        real = checked(path, **options)
        (linked / "mine").rename(tmp_path / "gone")
        (linked / "mine").symlink_to(tmp_path / "private")
        return real

    monkeypatch.setattr(role_configs, "granted_path", exchanging)
    with pytest.raises(ConfigError, match="a link to .*private came in place of what is granted while"):
        open_session(ScriptedModel([]), settings={key: "way"}, folder=tmp_path / "sessions")


def test_a_folder_that_becomes_a_link_after_it_was_looked_at_is_no_kernels(linked, tmp_path, monkeypatch):
    pick = role_configs.Kernels.pick

    def exchanging(kernels, role_config):
        (linked / "mine").rename(tmp_path / "gone")
        (linked / "mine").symlink_to(tmp_path / "private")
        return pick(kernels, role_config)

    monkeypatch.setattr(role_configs.Kernels, "pick", exchanging)
    with ExitStack() as undo, pytest.raises(PermissionError, match="here/mine: a link"):
        open_kernel(read_settings(), "mine", undo, name="kernel")
