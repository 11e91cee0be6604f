"""What a trusted folder's settings mean is looked up once: what was shown and hashed is what is used."""

import sys

import pytest

from tests.session.written_files import write
from tw_autogen import open_session
from tw_autogen.session import Review, read_project, read_settings, review_folder
from tw_autogen.session.settings_sources import SECTIONS
from tw_autogen.settings_trust import Trust
from tw_autogen.testing import ScriptedModel, plans
from tw_autogen.trusted_files import TrustedFiles

SETTINGS = "tw_autogen.yaml"
PLUGIN = (
    "from tw_autogen.plugin import plugin\n\n\n@plugin(runs_in='host')\ndef hp() -> int:\n    'Do it.'\n    return 1\n"
)
REGISTERED = "from tw_autogen.plugin import register_plugin\n\n\n@register_plugin\ndef hp():\n    return 1\n"
ROLE = {
    "role.yaml": "alias: Crier\nintro: Cries.\nmodule: crier\n",
    "crier.py": "from tw_autogen import Role\n\n\nclass Crier(Role):\n    def reply(self, memory, **kwargs): ...\n",
}

TWICE = {
    "plugin.folder": "lnk/../pl",
    "session.role_folder": "lnk/../rl",
    "session.user_folder": "lnk",
    "session.workspace": "lnk/../ws",
    "kernel.read": ["lnk"],
    "kernel.write": ["lnk"],
    "kernel.python": "lnk/../bin/python",
    "recall.experience": "lnk/../notes",
    "recall.planner_examples": "lnk/../notes",
    "code_interpreter.policy": "lnk/../policy.yaml",
    "plugin.mcp_servers": "lnk/../mcp.json",
}


@pytest.fixture
def swapped(here, monkeypatch):
    """Return what swaps the links, as code of a sandbox may, once files have been compared with what is trusted."""
    for name in ("good", "evil"):
        files = {f"{name}/pl/hp.py": PLUGIN, f"{name}/policy.yaml": "base: default\n", f"{name}/mcp.json": "{}"}
        write(here, **files, **{f"{name}/rl/crier/{file}": text for file, text in ROLE.items()})
        for folder in ("x", "notes", "ws", "bin"):
            (here / name / folder).mkdir()
    (here / "lnk").symlink_to("good/x")
    (here / "alt").symlink_to("evil/x")

    def swap():
        for old, new in (("lnk", "t~"), ("alt", "lnk"), ("t~", "alt")):
            (here / old).rename(here / new)

    compare = Review.files_if_trusted

    def compared(review):
        files = compare(review)
        swap()
        return files

    return lambda: monkeypatch.setattr(Review, "files_if_trusted", compared)


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("key", TWICE)
def test_a_link_that_changes_after_the_folder_was_compared_leads_no_setting_elsewhere(here, swapped, key, named):
    write(here, **{SETTINGS: {key: TWICE[key], "kernel.sandbox": "off"}})
    project = here if named else None
    review = review_folder(project=project)
    assert review.remember(review.sha256()) == ""
    section, name = key.split(".")
    shown = getattr(read_settings(project=project).read(section, SECTIONS[section]), name)
    swapped()

    found = read_settings(project=project)

    assert found.trust is Trust.full
    assert getattr(found.read(section, SECTIONS[section]), name) == shown
    assert "evil" not in str(shown)


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
@pytest.mark.parametrize("setting", ["role.manual_reader.folder", "role.document_retriever.index"])
def test_a_link_that_changes_after_the_folder_was_compared_leads_no_role_elsewhere(here, swapped, setting):
    write(here, **{SETTINGS: {setting: "lnk/../notes", "kernel.sandbox": "off"}})
    review = review_folder()
    assert review.remember(review.sha256()) == ""
    role, name = setting.split(".")[1:]
    swapped()

    found = read_settings()

    assert found.trust is Trust.full
    assert [want.does for want in review.wants if want.name == setting] == [str(here / "good/notes")]
    assert found.of_role(role, {name: str})[name].value == str(here / "good/notes")


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize(
    ("setting", "files"),
    [
        ({"plugin.folder": "other"}, {"other/hp.py": PLUGIN}),
        ({}, {"plugins/hp.yaml": "name: hp\ndescription: d\nenabled: true\n", "plugins/hp.py": REGISTERED}),
        ({"session.role_folder": "other"}, {f"other/crier/{name}": text for name, text in ROLE.items()}),
        ({}, {f"roles/crier/{name}": text for name, text in ROLE.items()}),
    ],
    ids=["plugins elsewhere", "plugins", "roles elsewhere", "roles"],
)
def test_plugins_and_roles_that_were_not_hashed_are_not_loaded_from_a_folder_that_is_trusted_by_a_hash(
    here, setting, files, named
):
    write(here, **{SETTINGS: {"kernel.sandbox": "off", **setting}}, **files)
    project = here if named else None
    review = review_folder(project=project)
    assert review.remember(review.sha256()) == ""
    settings = read_settings(project=project)
    assert settings.trust is Trust.full
    brought = read_project(here, settings, named=named)
    assert [*(plugin.name for plugin in brought.plugins), *brought.roles] in (["hp"], ["crier"]), brought.left_out

    settings.files = TrustedFiles.hashed(here, [here / SETTINGS])  # as if a setting led elsewhere than was hashed

    brought = read_project(here, settings, named=named)
    assert (brought.plugins, dict(brought.roles)) == ((), {})
    assert "trust " in " ".join(brought.left_out)


def test_plugins_and_roles_of_a_folder_that_is_named_are_loaded_as_before(here):
    write(here, **{"plugins/hp.py": PLUGIN}, **{f"roles/crier/{name}": text for name, text in ROLE.items()})

    brought = read_project(here, read_settings(project=here))

    assert ([plugin.name for plugin in brought.plugins], [*brought.roles], brought.left_out) == (["hp"], ["crier"], ())


@pytest.mark.skipif(sys.platform == "win32", reason="makes links")
def test_a_link_to_lessons_that_changes_while_a_session_is_open_leads_nowhere_else(here, tmp_path):
    for folder, text in ((here / "first", "good"), (tmp_path / "other", "CANARY")):
        folder.mkdir()
        (folder / "exp_a.yaml").write_text(f"exp_id: a\nexperience_text: {text} lesson\nrequest: sum\n")
    (here / "lessons").symlink_to("first")
    (here / "tw_autogen.yaml").write_text("recall: {experience: lessons, experience_min_score: -1.0}\n")
    model = ScriptedModel([plans("Done.", to="User")] * 2)

    with open_session(model=model, trust=True) as session:
        session.ask("sum")
        (here / "lessons").unlink()
        (here / "lessons").symlink_to(tmp_path / "other")
        (here / "first" / "exp_b.yaml").write_text("exp_id: b\nexperience_text: more\nrequest: sum\n")
        session.ask("sum again")

    asked = [str(call) for call in model.calls]
    assert "good lesson" in asked[0]
    assert not [one for one in asked if "CANARY" in one]
