"""A project's folder, in TaskWeaver's form and in ours: what a session gets from it, and what is left out and named."""

import json
import logging

import pytest

from tw_autogen import open_session
from tw_autogen.errors import ConfigError, PluginLoadError, PluginSpecError, RoleSpecError
from tw_autogen.session import read_project, read_settings
from tw_autogen.testing import ScriptedModel, codes, plans

TW = "from taskweaver.plugin import Plugin, register_plugin, test_plugin\n\n\n"
SHELVES = """
name: count_shelves
enabled: true
required: false
plugin_only: true
description: >-
  Count the shelves of a room.
  Rooms without a plan have none.
examples: |-
  n, words = count_shelves("cellar")

parameters:
  - name: room
    type: str
    required: true
    description: >-
      The room's name,
      as it stands on the plan.
  - name: least
    type: int
    required: false
    description: (Optional) shelves that are counted at least

returns:
  - name: n
    type: int
    description: How many.
  - name: words
    type: pandas.DataFrame
    description: >-
      The plan.

configurations:
  per_room: 4
  plan_path:
"""
SHELVES_PY = f"""import pandas as pd

{TW}@register_plugin
class CountShelves(Plugin):
    def __call__(self, room: str, least: int = 0):
        self.ctx.add_artifact(name="plan", file_name="plan.csv", type="df", val=pd.DataFrame({{"room": [room]}}))
        return max(least, self.config["per_room"]), self.config.get("plan_path")


@test_plugin(name="test CountShelves", description="test")
def test_call(api_call):
    assert api_call("cellar")[0] == 4
"""
GUARDED_PY = f"""{TW}try:
    import a_package_that_nobody_has
except ImportError:
    raise ImportError("Please install it.")


@register_plugin
class Guarded(Plugin):
    model = None

    def __call__(self, path):
        return a_package_that_nobody_has.read(path)
"""
LATE_PY = f"""{TW}@register_plugin
class Late(Plugin):
    def __call__(self, text: str):
        import a_package_that_nobody_has

        return a_package_that_nobody_has.draw(text)
"""
RENAMED_PY = f"""from typing import List

{TW}@register_plugin
class Sorts(Plugin):
    def __call__(self, inputs: List[str], labels: List[str]) -> List[str]:
        return [labels[0] for _ in inputs]
"""
POSTS = """
enabled: {enabled}
rounds:
  - user_query: count the shelves
    state: created
    post_list:
      - message: count the shelves
        send_from: User
        send_to: Planner
        attachment_list:
      - message: There are 4.
        send_from: Planner
        send_to: User
        attachment_list:
          - type: plan_reasoning
            content: |-
              They were counted.
          - type: stop
            content: Completed
"""


def yaml(name, parameters, enabled="true", more=""):
    listed = "".join(
        f"\n  - name: {parameter}\n    type: list\n    required: true\n    description: d" for parameter in parameters
    )
    return f"name: {name}\nenabled: {enabled}\nrequired: false\ndescription: Do.\nparameters:{listed}\n{more}"


@pytest.fixture
def folder(tmp_path):
    """A project as TaskWeaver's users have it; the words are ours."""
    files = {
        "plugins/count_shelves.yaml": SHELVES,
        "plugins/count_shelves.py": SHELVES_PY,
        "plugins/count_more.yaml": SHELVES.replace("count_shelves", "count_more").replace("per_room: 4", "per_room: 9")
        + "code: count_shelves\n",
        "plugins/guarded.yaml": yaml("guarded", ["path"]),
        "plugins/guarded.py": GUARDED_PY,
        "plugins/late.yaml": yaml("late", ["text"]),
        "plugins/late.py": LATE_PY,
        "plugins/sorts.yaml": yaml("sorts", ["input_list", "labels"]),
        "plugins/sorts.py": RENAMED_PY,
        "plugins/asleep.yaml": yaml("asleep", [], enabled="false"),
        "plugins/asleep.py": f"{TW}@register_plugin\ndef asleep():\n    return 1\n",
        "plugins/broken.yaml": "name: broken\n",
        "plugins/README.md": "# Plugins\n",
        "examples/planner_examples/one.yaml": POSTS.format(enabled="True"),
        "examples/planner_examples/two.yaml": POSTS.format(enabled="False"),
        "examples/code_generator_examples/three.yaml": POSTS.format(enabled="True").replace("state: created", ""),
        "codeinterpreter_examples/four.yaml": POSTS.format(enabled="True"),
        "taskweaver_config.json": json.dumps(
            {
                "llm.api_type": "openai",
                "llm.api_base": "http://127.0.0.1:9/v1",
                "llm.api_key": "",
                "llm.model": "theirs",
                "llm.response_format": None,
                "workspace.workspace_path": "${AppBaseDir}/workspace",
                "planner.load_plugin": True,
                "logging": {"log_folder": "logs"},
            }
        ),
    }
    for name, text in files.items():
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "project"


def read(folder, **keywords):
    return read_project(folder, read_settings(keywords, project=folder, environ={"HOME": str(folder)}))


def test_plugins_that_can_be_loaded_are_found_and_the_others_named_with_the_reason(folder):
    project = read(folder)

    assert [spec.name for spec in project.plugins] == ["count_more", "count_shelves", "late", "sorts"]
    assert [one.removeprefix(f"{folder}/") for one in project.left_out] == [
        "plugins/broken.yaml: missing key 'description'",
        "plugins/guarded.py:5: guarded needs the package a_package_that_nobody_has",
        "examples/code_generator_examples/three.yaml: missing key 'state'",
    ]
    assert project.found == f"plugins of {folder}: count_more, count_shelves, late, sorts"


def test_what_the_python_calls_otherwise_is_shown_by_the_pythons_name_and_said(folder):
    project = read(folder)

    assert "def sorts(inputs: list, labels: list)" in project.plugins[-1].stub()
    assert f"{folder}/plugins/sorts.yaml: the parameter input_list is called inputs in the Python" in str(project.notes)


def test_examples_that_are_enabled_are_found_in_the_folders_of_now_and_then(folder):
    names = [str(path.relative_to(folder)) for path in read(folder).examples]

    assert names == ["examples/planner_examples/one.yaml", "codeinterpreter_examples/four.yaml"]


def test_keys_without_meaning_are_named_once_and_the_others_hold(folder):
    settings = read_settings(project=folder, environ={"HOME": str(folder)})

    assert (
        read(folder)
        .notes[-1]
        .endswith("taskweaver_config.json: without meaning here: logging.log_folder, planner.load_plugin")
    )
    assert settings.origin("model.api_key") == "the default"  # "" is none
    assert settings.origin("model.response_format").endswith("(llm.response_format)")
    assert settings.origin("session.workspace").endswith("(workspace.workspace_path)")


def test_a_session_calls_a_projects_plugins_with_configurations_context_and_shared_python(folder, tmp_path, caplog):
    replies = [
        plans("count"),
        codes('[count_shelves("cellar"), count_more("cellar", 12)[0], sorts(inputs=["a"], labels=["b"])]'),
        plans("Done.", to="User"),
    ]
    with (
        caplog.at_level(logging.WARNING),
        ScriptedModel(replies) as model,
        open_session(model, project=folder, folder=tmp_path / "sessions") as session,
    ):
        answer = session.ask("How many?")

    assert "[(4, None), 12, ['b']]" in str(model.calls[2][-1])
    assert sum(artifact.path.name.endswith(".csv") for artifact in answer.artifacts) == 2
    assert len([message for message in caplog.messages if "without meaning here" in message]) == 1


def test_a_plugin_that_is_not_enabled_can_be_named(folder, tmp_path):
    with (
        ScriptedModel([]) as model,
        open_session(
            model, project=folder, plugins=["asleep"], folder=tmp_path / "sessions", roles=["code_interpreter"]
        ) as session,
    ):
        names = session.journal.read_text(encoding="utf-8")

    assert "asleep" in names


@pytest.fixture
def crier(folder):
    """The project with a role of its own, whose alias is not its folder's name, beside one that is broken."""
    role = folder / "roles" / "town_crier"
    role.mkdir(parents=True)
    (role / "role.yaml").write_text("alias: Crier\nintro: Cries.\nmodule: crier\n")
    (role / "crier.py").write_text(
        "from tw_autogen import Post, Role\n\n\nclass Crier(Role):\n"
        "    def reply(self, memory, **kwargs):\n"
        "        return Post(self.name, memory.last_post.send_from, 'HEAR')\n"
    )
    (folder / "roles" / "broken").mkdir()
    (folder / "roles" / "broken" / "role.yaml").write_text("alias: 7 up\n")
    (folder / "taskweaver_config.json").write_text('{"session.roles": ["planner", "town_crier"]}')
    return role


@pytest.mark.parametrize("name", ["town_crier", "TownCrier", "Town_Crier", "Crier", "crier"])
def test_a_projects_own_role_is_found_by_its_name_and_its_alias_however_they_are_spelt(folder, crier, tmp_path, name):
    with open_session(ScriptedModel([]), project=folder, roles=[name], folder=tmp_path / "s") as session:
        session.open_round("?")
        assert session.step(session.next_role()).message == "HEAR"


@pytest.mark.parametrize(("name", "meant"), [("twn_crier", "town_crier"), ("manual_raeder", "manual_reader")])
def test_a_misspelt_role_gets_its_neighbour_also_from_the_projects_own(folder, crier, tmp_path, name, meant):
    with pytest.raises(RoleSpecError, match=f"{name}: no shipped role and no folder; did you mean '{meant}'"):
        open_session(ScriptedModel([]), project=folder, roles=["planner", name], folder=tmp_path / "s")


def test_in_a_projects_folder_the_roles_that_its_settings_name_are_its_own(folder, crier, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    with (
        ScriptedModel([plans("cry", to="Crier"), plans("done", to="User")]) as model,
        open_session(model, folder=tmp_path / "s", trust=True) as session,
    ):
        assert [post.message for post in session.ask("Cry.").round.posts][2] == "HEAR"

    with pytest.raises(RoleSpecError, match="town_crier: no shipped role"):  # named in code: no project was given
        open_session(ScriptedModel([]), roles=["town_crier"], folder=tmp_path / "s", trust=True)


def test_a_role_of_the_settings_that_is_not_there_is_told_with_the_file_that_names_it(folder, tmp_path, monkeypatch):
    (folder / "taskweaver_config.json").write_text('{"session.roles": ["planner", "weather"]}')
    monkeypatch.chdir(folder)
    with pytest.raises(
        RoleSpecError, match=r"weather: no shipped role .*`session\.roles` in .*taskweaver_config\.json"
    ):
        open_session(ScriptedModel([]), folder=tmp_path / "s", trust=True)


def test_what_of_a_project_runs_in_this_process_is_said(folder, crier):
    (folder / "plugins" / "mine.py").write_text(
        "from tw_autogen.plugin import plugin\n\n\n@plugin(runs_in='host')\ndef ask_db(x: int) -> int:\n"
        "    'Ask.'\n    return x\n"
    )
    project = read(folder)

    assert project.unsandboxed_notices(["planner", "Crier", "echo"]) == (
        f"roles of {folder} run here, outside the sandbox: town_crier",
        f"plugins of {folder} run here, outside the sandbox: ask_db",
    )
    assert project.unsandboxed_notices([folder / "custom" / "crier"])[0].endswith("outside the sandbox: crier")
    (folder / "plugins" / "mine.py").unlink()
    assert read(folder).unsandboxed_notices(["planner", "code_interpreter", "echo"]) == ()


def test_its_plugins_may_lie_elsewhere(folder):
    (folder / "plugins").rename(folder / "tools")

    assert read(folder).plugins == ()
    assert len(read(folder, **{"plugin.folder": "tools"}).plugins) == 4


def test_a_folder_without_anything_is_a_project_too(tmp_path):
    (tmp_path / "plugins").mkdir()

    assert read(tmp_path).plugins == ()
    assert read(tmp_path).remarks == ()


def test_a_project_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match=r"project: there is no folder .*none"):
        read_project(tmp_path / "none", read_settings(environ={}, project=tmp_path))


def test_a_file_in_place_of_a_projects_folder_leads_to_that_folder(tmp_path):
    file = tmp_path / "tw_autogen.yaml"
    file.touch()

    with pytest.raises(ConfigError, match=rf"{file}: that is a file; name {tmp_path}$"):
        read_project(file, read_settings(environ={}, project=file))


def test_a_plugin_that_is_named_from_elsewhere_and_has_the_name_of_one_of_the_projects_is_an_error(folder, tmp_path):
    other = tmp_path / "late.yaml"
    other.write_text(yaml("late", []), encoding="utf-8")

    with pytest.raises(PluginSpecError, match=r"there is a plugin 'late' already, from .*project/plugins/late\.yaml"):
        open_session(ScriptedModel([]), project=folder, plugins=[other], folder=tmp_path / "s")


def test_a_projects_settings_say_who_takes_part(folder, tmp_path):
    (folder / "taskweaver_config.json").write_text('{"session.roles": ["planner", "code_interpreter", "echo"]}')
    replies = [plans("say hello", to="Echo"), plans("hello", to="User")]

    with ScriptedModel(replies) as model, open_session(model, project=folder, folder=tmp_path / "sessions") as session:
        answer = session.ask("Say hello.")

    assert [post.send_from for post in answer.round.posts] == ["User", "Planner", "Echo", "Planner"]


@pytest.fixture
def failing(tmp_path):
    """A project with a plugin that works and two that fail as soon as they are loaded."""
    (tmp_path / "plugins").mkdir()
    (tmp_path / "tw_autogen.yaml").write_text("")
    (tmp_path / "plugins" / "fine.yaml").write_text(yaml("fine", []))
    (tmp_path / "plugins" / "fine.py").write_text(f"{TW}@register_plugin\ndef fine():\n    return 5\n")
    (tmp_path / "plugins" / "top.yaml").write_text(yaml("top", []))
    (tmp_path / "plugins" / "top.py").write_text(f"{TW}1 / 0\n\n@register_plugin\ndef top():\n    return 1\n")
    (tmp_path / "plugins" / "key.yaml").write_text(yaml("key", [], more="runs_in: host\n"))
    (tmp_path / "plugins" / "key.py").write_text(
        f"{TW}@register_plugin\nclass Key(Plugin):\n    def __init__(self, *args):\n        {{}}['x']\n\n"
        "    def __call__(self):\n        return 1\n"
    )
    return tmp_path


def test_plugins_that_fail_while_they_are_loaded_are_left_out_and_named(failing, caplog):
    script = [plans("Call it", to="CodeInterpreter"), codes("fine()"), plans("It is 5.", to="User")]
    with (
        caplog.at_level(logging.WARNING),
        ScriptedModel(script) as model,
        open_session(model, project=failing, folder=failing / "sessions") as session,
    ):
        session.ask("Call fine.")

    prompts = "".join(message["content"] for call in model.calls for message in call)
    assert "fine" in prompts
    assert "def top" not in prompts
    assert "def key" not in prompts
    said = [record.getMessage() for record in caplog.records]
    assert sum("left out: the plugin top: " in line and "top.py:4: ZeroDivisionError" in line for line in said) == 1
    assert sum("left out: the plugin key: " in line and "KeyError" in line for line in said) == 1
    assert all(line.endswith("correct it, or say `enabled: false`") for line in said)


@pytest.mark.parametrize("name", ["top", "key"])
def test_a_plugin_of_a_project_that_the_user_names_must_load(failing, name):
    with ScriptedModel([]) as model, pytest.raises(PluginLoadError, match=rf"{name}\.py"):
        open_session(model, project=failing, plugins=name, folder=failing / "sessions")
