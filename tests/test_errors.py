"""The tree of errors: complete, drawn as it is, and the neighbours of misspelt names."""

import ast
import copy
import importlib
import pickle
import re
from pathlib import Path

import pytest

import tw_autogen
from tw_autogen import errors, open_session
from tw_autogen.conversation import Post, Round
from tw_autogen.errors import (
    ConfigError,
    PluginLoadError,
    PluginSpecError,
    RoleError,
    RoleSpecError,
    SettingsError,
    TwAutogenError,
)
from tw_autogen.events import event_from_dict
from tw_autogen.model import read_object
from tw_autogen.scenario import read_scenario
from tw_autogen.testing import FakeKernel, ScriptedModel

PACKAGE = Path(tw_autogen.__file__).parent
STDLIB_ONLY = ("kernel/guest/", "kernel/launcher/")
"""What runs in other processes, where the package is not installed."""
CAUGHT_WHERE_RAISED = {
    "AnswerError",
    "ConnectionFailed",
    "LockTimeout",
    "ServerRefusal",
    "UnsendableRequest",
    "_NotAnswered",
    "_NotPlain",
    "_ProtocolError",
}


def exception_classes():
    """Yield every class of the package whose bases are exceptions, as it is after import."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).with_suffix("").as_posix()
        if "_shipped" in name or name.startswith(STDLIB_ONLY):
            continue
        classes = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)]
        suspects = [node.name for node in classes if any(_names_an_exception(base) for base in node.bases)]
        if suspects:
            module = importlib.import_module(f"tw_autogen.{name.replace('/', '.')}".removesuffix(".__init__"))
            yield from (kind for suspect in suspects if issubclass(kind := getattr(module, suspect), BaseException))


def _names_an_exception(base):
    name = ast.unparse(base).rpartition(".")[2]
    return hasattr(errors, name) or name.endswith(("Error", "Exception", "Warning", "Failed", "Unreadable"))


def test_every_exception_of_the_package_derives_from_its_base_error():
    others = [kind for kind in exception_classes() if not issubclass(kind, TwAutogenError)]

    assert {kind.__name__ for kind in others} == CAUGHT_WHERE_RAISED


def test_the_drawing_shows_each_error_below_the_one_it_derives_from():
    drawn, above = {}, {}
    for line in errors.__doc__.splitlines():
        if found := re.match(r"^(    (?:│   |    )*(?:[├└]── )?)([A-Z]\w+)\b", line):
            depth = len(found[1]) // 4
            above[depth] = found[2]
            drawn[found[2]] = above.get(depth - 1)
    kinds = {kind for kind in exception_classes() if issubclass(kind, TwAutogenError)}

    assert drawn == {kind.__name__: kind.__bases__[0].__name__ for kind in kinds} | {"TwAutogenError": None}


def open_here(tmp_path, **keywords):
    return open_session(ScriptedModel([]), kernel=FakeKernel(), folder=tmp_path / "sessions", **keywords)


def test_a_message_moves_no_terminal_whatever_it_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taskweaver_config.json").write_text(r'{"planner.example_base_path": "pe\u001b[2J\u202e"}', "utf-8")

    with pytest.raises(ConfigError, match=r"pe\\x1b\[2J\\u202e: there is no such folder of examples"):
        open_here(tmp_path)


@pytest.mark.parametrize(
    ("kind", "problem", "keywords"),
    [
        (RoleSpecError, r"planer: no shipped role and no folder; did you mean 'planner'\?", {"roles": ["planer"]}),
        (RoleSpecError, r"did you mean 'code_interpreter'\?", {"roles": ["planner", "code_interpeter"]}),
        (RoleSpecError, r"did you mean 'CodeInterpreter'\?", {"roles": ["planner", "CodeInterpretor"]}),
        (RoleSpecError, r"\./my_rol: .*; did you mean 'my_role'\?", {"roles": ["planner", "./my_rol"]}),
        (PluginLoadError, r"my_plugin\.py: .*; did you mean 'my_plugins\.py'\?", {"plugins": ["my_plugin.py"]}),
        (PluginSpecError, r"sale\.yaml: .*; did you mean 'sales\.yaml'\?", {"plugins": ["sale.yaml"]}),
        (ConfigError, r"did you mean 'anomaly_detection'\?", {"plugins": ["anomaly_detecton"]}),
        (ConfigError, r"no folder .*projct; did you mean 'project'\?", {"project": "./projct"}),
        (SettingsError, r"did you mean 'session\.max_posts'\?", {"settings": {"session.max_post": 3}}),
        (SettingsError, r"got 'landloc'; did you mean 'landlock'\?", {"settings": {"kernel.sandbox": "landloc"}}),
        (ConfigError, r"did you mean 'strict'\?", {"settings": {"code_interpreter.policy": "stict"}}),
    ],
)  # fmt: skip
def test_a_misspelt_name_is_told_with_its_neighbour(tmp_path, monkeypatch, kind, problem, keywords):
    monkeypatch.chdir(tmp_path)
    for name in ("project", "my_role"):
        (tmp_path / name).mkdir()
    for name in ("my_plugins.py", "sales.yaml", "loads.csv"):
        (tmp_path / name).write_text("")

    with pytest.raises(kind, match=problem):
        open_here(tmp_path, **keywords)


def test_a_misspelt_file_event_and_scenario_are_told_with_their_neighbours(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loads.csv").write_text("a\n1\n")
    (tmp_path / "calc").mkdir()
    with (
        open_here(tmp_path) as session,
        pytest.raises(ConfigError, match=r"load\.csv: there is no such file; did you mean 'loads\.csv'\?"),
    ):
        session.ask("?", files=["load.csv"])
    with pytest.raises(ValueError, match=r"no event is called 'CellRun'; did you mean 'CellRan'\?"):
        event_from_dict({"event": "CellRun"})
    with pytest.raises(ConfigError, match=r"calk: there is no such file; did you mean 'calc'\?"):
        read_scenario(tmp_path / "calk")


class Reader:
    """A role that cannot read what came."""

    name, intro = "Reader", "Reads."

    def reply(self, memory, **kwargs):
        return Post(self.name, "User", str(read_object("no object")))


def test_what_a_role_cannot_read_is_still_an_error_of_that_role(tmp_path):
    with (
        open_here(tmp_path, roles=[Reader]) as session,
        pytest.raises(RoleError, match=r"the role Reader failed: No"),
    ):
        session.ask("?")


_ASKED, _ORDER = Post("User", "Planner", "Go."), Post("Planner", "CodeInterpreter", "Do the step.")


@pytest.mark.parametrize(
    ("posts", "last"),
    [
        ([], ""),
        ([_ASKED], ""),
        ([_ASKED, _ORDER], ""),  # an order is nothing that was found
        (
            [_ASKED, _ORDER, Post("CodeInterpreter", "Planner", "Printed: 42")],
            "\n\nCodeInterpreter said last: Printed: 42",
        ),
        (
            [_ASKED, _ORDER, Post("CodeInterpreter", "Planner", "42"), Post("Planner", "Reader", "review")],
            "\n\nCodeInterpreter said last: 42",
        ),
        ([_ASKED, _ORDER, Post("Reader", "Planner", "x" * 3000)], f"\n\nReader said last: {'x' * 1000}"),
        ([Post("User", "CodeInterpreter", "Go."), Post("CodeInterpreter", "User", "42")], ""),
    ],
)
@pytest.mark.parametrize("kind", [errors.RoundError, errors.RoundTooLong, RoleError])
def test_a_failed_request_says_in_a_chat_what_a_worker_said_last_and_no_place_of_the_host(posts, last, kind):
    here = Round("Go.", posts=posts)
    more = {"role": "Reader", "where": "/srv/app/readér\x1b.py:9"} if kind is RoleError else {}
    error = kind(f"{here.id}: it failed (12)", round=here, **more)

    assert error.in_words() == f"I could not answer this request: it failed (12){last}"
    assert kind is not RoleError or "/srv/app/readér\\x1b.py:9" in str(error)


@pytest.mark.parametrize(
    "error",
    [
        SettingsError("a.yaml: unknown key 'a'", key="a", origin="a.yaml"),
        PluginSpecError("no name", path="a.yaml", line=3),
        errors.HostError("AutoGen is missing; run", command="pip install ag2"),
        errors.ModelUnreadable("no JSON", reply="Hm.", problems=("no JSON",)),
        RoleError("it failed", round=Round("What is it?"), role="Reader"),
        errors.McpServerError("gone"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize(
    "handed_on", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy], ids=["pool", "copy"]
)
def test_an_error_that_a_pool_of_processes_hands_on_is_the_same(error, handed_on):
    got = handed_on(error)

    assert (type(got), str(got), repr(vars(got))) == (type(error), str(error), repr(vars(error)))
