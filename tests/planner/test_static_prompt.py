"""The static text of the Planner's prompt: what it says of code, and of the form of a reply, and to whom."""

import pytest

from tw_autogen.code_interpreter import CodeInterpreter, Policy
from tw_autogen.model import ModelSettings, OpenAIModel, Recording, RecordingModel, ReplayModel, asked_as
from tw_autogen.planner import Planner
from tw_autogen.role import Role
from tw_autogen.scenario.spy_model import SpyModel
from tw_autogen.session import Session
from tw_autogen.testing import FakeKernel, ScriptedModel, plans

OF_CODE = [
    "`then`",
    "- then:",
    "# Code\n",
    "- code:",
    "```",
    "A worker that runs code",
    "Code that is only to be shown",
]
BESIDE = "after it the code, if there is any, in a ```python block"


class Echo(Role):
    """Repeats what it is told."""

    name, intro = "Echo", "Repeats a message."

    def reply(self, memory, **kwargs):
        asked = memory.last_post
        return type(asked)(self.name, asked.send_from, asked.message)

    def close(self):
        """Nothing is owned."""


def interpreter(model=None, **options):
    return CodeInterpreter(model or ScriptedModel([]), FakeKernel(), **options)


def server(response_format):
    """Return a model on a server that is never asked."""
    return OpenAIModel(ModelSettings(base_url="http://127.0.0.1:9/v1", name="tiny", response_format=response_format))


@pytest.mark.parametrize(
    "workers",
    [[], [Echo()], [interpreter(policy=Policy(only_plugins=True))]],
    ids=["none", "role", "plugins only"],
)
def test_nothing_is_said_of_code_where_no_worker_takes_any(workers):
    prompt = Planner(ScriptedModel([]), workers).prompt

    assert [one for one in OF_CODE if one in prompt] == []
    assert "[[" not in prompt
    assert "The last step reports to the User. What can't be known" in prompt
    assert "One JSON object and nothing else; null" in prompt


def test_all_of_it_is_said_where_a_worker_takes_code():
    prompt = Planner(ScriptedModel([]), [Echo(), interpreter()]).prompt

    assert [one for one in OF_CODE if one not in prompt] == []
    assert "[[" not in prompt
    assert '"1. CodeInterpreter loads a.csv' in prompt


def test_the_example_of_a_plan_names_a_worker_that_is_there():
    assert '"1. Echo loads a.csv' in Planner(ScriptedModel([]), [Echo()]).prompt


@pytest.mark.parametrize(
    ("response_format", "told"), [("auto", False), ("json_schema", False), ("json_object", False), ("text", True)]
)
def test_code_beside_the_object_is_offered_only_where_a_reply_can_hold_any(response_format, told):
    prompt = Planner(server(response_format), [interpreter()]).prompt

    assert (BESIDE in prompt, "or where the block holds it" in prompt) == (told, told)
    assert ("One JSON object and nothing else" in prompt) != told


def test_models_around_a_model_say_what_that_one_says(tmp_path):
    for inner, only in ((server("auto"), True), (server("text"), False), (ScriptedModel([]), False)):
        around = asked_as("Planner", SpyModel(RecordingModel(inner, tmp_path / "replies.yaml")))
        assert around.objects_only is only


def test_a_replay_has_the_prompts_of_its_recording(tmp_path):
    class ObjectsOnly(ScriptedModel):
        objects_only = True

    path = tmp_path / "replies.yaml"
    recorder = RecordingModel(ObjectsOnly([plans("It is 42.", to="User")]), path)
    with Session([Planner(recorder, [interpreter()])], folder=tmp_path / "a") as session:
        session.ask("what is 6*7?")
    replay = ReplayModel(path, strict=True)
    with Session([Planner(replay, [interpreter()])], folder=tmp_path / "b") as session:
        assert session.ask("what is 6*7?").text == "It is 42."

    assert path.read_text(encoding="utf-8").splitlines()[3] == "objects_only: true"
    Recording.read(path).write(path)
    assert Recording.read(path).objects_only


def test_a_team_without_code_has_no_field_then_in_schema_example_and_history(tmp_path):
    model = ScriptedModel(
        [plans("repeat: hello", to="Echo"), '{"send_to": "Nobody", "message": "x"}', plans("hello", to="User")]
    )
    with model, Session([Planner(model, [Echo()]), Echo()], folder=tmp_path) as session:
        session.ask("repeat hello")

    assert all("then" not in schema["properties"] for schema in model.schemas)
    assert "nobody here is called that" in model.calls[2][-1]["content"]
    assert '"then"' not in model.calls[2][-1]["content"]
