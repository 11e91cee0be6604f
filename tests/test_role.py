"""Roles of one's own: found by name and by path, and what a broken one says."""

from pathlib import Path

import pytest

from tw_autogen import open_session
from tw_autogen.errors import RoleSpecError
from tw_autogen.role import find_role, read_role
from tw_autogen.shipped import shipped_folder
from tw_autogen.testing import FakeKernel, ScriptedModel, plans

YAML = "alias: Reader\nintro: Reads manuals.\n"
PYTHON = """\
from tw_autogen import Memory, Post, Role

class Reader(Role):
    def __init__(self, model, settings):
        self.page = settings.get("page", 1)
        self.model = model

    def reply(self, memory: Memory, **kwargs) -> Post:
        kwargs["turn"].round.write_board(self.name, f"page {self.page}")
        return Post(self.name, memory.last_post.send_from, f"read page {self.page}")
"""


@pytest.fixture
def folder(tmp_path):
    role = tmp_path / "reader"
    role.mkdir()
    (role / "role.yaml").write_text(YAML + "settings: {page: 7}\n", encoding="utf-8")
    (role / "reader.py").write_text(PYTHON, encoding="utf-8")
    return role


def test_a_role_in_a_folder_of_ones_own_works_for_the_planner_and_pins_to_the_board(folder, tmp_path):
    with (
        ScriptedModel([plans("read", to="Reader"), plans("It is read.", to="User")]) as model,
        open_session(model, roles=["planner", folder], folder=tmp_path / "sessions") as session,
    ):
        answer = session.ask("read the manual")

    assert answer.text == "It is read."
    assert answer.round.posts[2].message == "read page 7"
    assert answer.round.read_board("Reader") == "page 7"
    assert "## Reader\nReads manuals." in model.calls[0][0]["content"]


def test_the_shipped_role_says_back_what_it_is_told(tmp_path):
    with (
        ScriptedModel([plans("hello there", to="Echo"), plans("It said so.", to="User")]) as model,
        open_session(model, roles=["planner", "echo"], folder=tmp_path) as session,
    ):
        assert session.ask("say hello").round.posts[2].message == "hello there"


def test_a_role_may_be_a_function_that_makes_one(folder, tmp_path):
    spec = read_role(folder)
    with (
        ScriptedModel([plans("read", to="Reader"), plans("Done.", to="User")]) as model,
        open_session(model, roles=["planner", lambda: spec.make(lambda: model)], folder=tmp_path) as session,
    ):
        assert session.ask("read").text == "Done."


@pytest.mark.parametrize(
    ("yaml", "python", "problem"),
    [
        (YAML.replace("intro", "intr"), PYTHON, r"role\.yaml: unknown key 'intr'; did you mean 'intro'\?"),
        ("alias: Reader\n", PYTHON, r"role\.yaml: `intro` is missing"),
        (YAML.replace("Reader", "a b"), PYTHON, r"role\.yaml: `alias` must be a plain name"),
        ("alias: [", PYTHON, r"role\.yaml: not YAML"),
        (YAML, "import nothing_of_that_name\n", r"reader\.py:1: ModuleNotFoundError"),
        (YAML, "x = 1\n1 / 0\n", r"reader\.py:2: ZeroDivisionError"),
        (YAML, "class Reader:\n    pass\n", r"reader\.py: expected one class with `reply\(self, memory.*, found none"),
        (YAML + "module: other\n", PYTHON, r"other\.py: there is no such file"),
    ],
)
def test_a_broken_role_is_an_error_with_the_path(folder, yaml, python, problem):
    (folder / "role.yaml").write_text(yaml, encoding="utf-8")
    (folder / "reader.py").write_text(python, encoding="utf-8")

    with pytest.raises(RoleSpecError, match=problem):
        read_role(folder).make(FakeKernel)


def test_an_unknown_role_names_its_neighbour():
    with pytest.raises(RoleSpecError, match=r"ecko: no shipped role and no folder; did you mean 'echo'\?"):
        find_role("ecko", shipped=shipped_folder("roles"))


def test_shipped_roles_and_plugins_import_only_what_their_authors_may():
    for path in [*shipped_folder("roles").glob("*/*.py"), *shipped_folder("plugins").glob("*.py")]:
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            if line.startswith(("from tw_autogen", "import tw_autogen")):
                assert line.startswith(("from tw_autogen import", "from tw_autogen.plugin import")), f"{path}: {line}"
