"""Roles in TaskWeaver's own form: a `<name>.role.yaml`, and a class written against `taskweaver.role`."""

import json
import logging
import os
import subprocess
import sys
import types

import pytest

from tw_autogen import AttachmentType, open_session
from tw_autogen.conversation import Memory, Post, Round
from tw_autogen.errors import ConfigError, RoleSpecError, SettingsError
from tw_autogen.events import PostGrew
from tw_autogen.role import find_role
from tw_autogen.role.role_finder import read_role
from tw_autogen.session import read_project, read_settings
from tw_autogen.testing import ScriptedModel, plans

YAML = """\
alias: Weather
module: my_roles.weather.weather.Weather
intro: Tells what the weather will be like.
"""
PYTHON = """\
from injector import inject

from taskweaver.logging import TelemetryLogger
from taskweaver.memory import Memory, Post
from taskweaver.memory.attachment import AttachmentType
from taskweaver.module.event_emitter import SessionEventEmitter
from taskweaver.module.tracing import Tracing, tracing_decorator
from taskweaver.role import Role
from taskweaver.role.role import RoleConfig, RoleEntry

from my_roles.weather.sky import COLOUR


class WeatherConfig(RoleConfig):
    def _configure(self):
        self.unit = self._get_str("unit", "C")
        self.days = self._get_int("days", 1)
        self.towns = self._get_list("towns", [])
        self.data = self._get_path("data", "${AppBaseDir}/data.csv")


class Weather(Role):
    @inject
    def __init__(
        self,
        config: WeatherConfig,
        logger: TelemetryLogger,
        tracing: Tracing,
        event_emitter: SessionEventEmitter,
        role_entry: RoleEntry,
    ):
        super().__init__(config, logger, tracing, event_emitter, role_entry)
        self.closed = False

    @tracing_decorator
    def reply(self, memory: Memory, **kwargs) -> Post:
        rounds = memory.get_role_rounds(role=self.alias, include_failure_rounds=False)
        asked = rounds[-1].post_list[-1]
        proxy = self.event_emitter.create_post_proxy(self.alias)
        proxy.update_status("looking out")
        proxy.update_send_to(asked.send_from)
        proxy.update_attachment(message="asked " + str(len(rounds)), type=AttachmentType.thought)
        proxy.update_message("It will be ", is_end=False)
        proxy.update_message(f"{COLOUR}, {self.config.days} {self.config.unit} {'/'.join(self.config.towns)}")
        self.tracing.set_span_attribute("days", self.config.days)
        self.logger.info("answered " + asked.message)
        return proxy.end()
"""
MINIMAL = """\
from taskweaver.role import Role


class Weather(Role):
    def reply(self, memory, {takes}):
        {body}
"""


@pytest.fixture
def folder(tmp_path):
    """A TaskWeaver project with one role of its own."""
    role = tmp_path / "project" / "my_roles" / "weather"
    role.mkdir(parents=True)
    (role / "weather.role.yaml").write_text(YAML, encoding="utf-8")
    (role / "weather.py").write_text(PYTHON, encoding="utf-8")
    (role / "sky.py").write_text('COLOUR = "blue"\n', encoding="utf-8")
    config = {
        "role.base_path": "${AppBaseDir}/my_roles",
        "session.roles": ["planner", "weather"],
        "weather.days": 3,
        "weather.towns": ["Ulm", "Bonn"],
        "weather.use_example": False,
    }
    (tmp_path / "project" / "taskweaver_config.json").write_text(json.dumps(config), encoding="utf-8")
    return tmp_path / "project"


def make(folder, **keywords):
    return read_role(folder / "my_roles" / "weather").make(lambda: ScriptedModel(["the model's words"]), **keywords)


def test_a_project_with_a_role_of_its_own_form_works_unchanged(folder, tmp_path):
    events = []
    with (
        ScriptedModel([plans("and tomorrow?", to="Weather"), plans("Blue.", to="User")]) as model,
        open_session(model, project=folder, folder=tmp_path / "sessions", handlers=[events.append]) as session,
    ):
        answer = session.ask("What will it be like?")

    post = answer.round.posts[2]
    assert (post.send_from, post.send_to) == ("Weather", "Planner")
    assert post.message == "It will be blue, 3 C Ulm/Bonn"
    assert post.content(AttachmentType.thought) == "asked 1"
    assert "## Weather\nTells what the weather will be like." in model.calls[0][0]["content"]
    grown = [
        (event.part, event.text)
        for event in events
        if isinstance(event, PostGrew) and event.part in ("status", "thought")
    ]
    assert ("status", "looking out") in grown


def test_its_settings_come_from_taskweavers_keys_and_ours_and_paths_are_filled_in(folder, tmp_path):
    given = read_settings({"role.weather.unit": "K"}, project=folder, environ={})
    role = make(folder, given=lambda known: given.of_role("weather", known))

    config = role.theirs.config
    assert (config.unit, config.days, config.towns) == ("K", 3, ["Ulm", "Bonn"])
    assert config.data == str(folder / "data.csv")
    assert given.ignored == ("weather.use_example",)


def test_a_key_that_the_role_does_not_know_is_named_in_the_log_or_is_an_error_where_it_is_ours(folder, caplog):
    config = {"session.roles": ["planner", "weather"], "weather.dais": 3}
    (folder / "taskweaver_config.json").write_text(json.dumps(config), encoding="utf-8")
    given = read_settings(project=folder, environ={})
    with caplog.at_level(logging.WARNING):
        make(folder, given=lambda known: given.of_role("weather", known))
    assert [message for message in caplog.messages if "(weather.dais): without meaning here" in message]

    given = read_settings({"role.weather.dais": 4}, project=folder, environ={})
    with pytest.raises(SettingsError, match=r"unknown setting 'role\.weather\.dais'; did you mean 'days'"):
        make(folder, given=lambda known: given.of_role("weather", known))


def test_a_role_may_ask_the_model_pin_a_plan_and_read_the_board(folder, tmp_path):
    (folder / "my_roles" / "weather" / "weather.py").write_text(
        """\
from taskweaver.llm import LLMApi
from taskweaver.llm.util import format_chat_message
from taskweaver.memory.shared_memory_entry import SharedMemoryEntry
from taskweaver.role import Role, RoleConfig


class Weather(Role):
    def __init__(self, config: RoleConfig, logger, tracing, event_emitter, role_entry, llm_api: LLMApi):
        super().__init__(config, logger, tracing, event_emitter, role_entry)
        self.llm_api = llm_api

    def reply(self, memory, **kwargs):
        proxy = self.event_emitter.create_post_proxy(self.alias)
        pinned = [one.content for one in memory.get_shared_memory_entries("plan")]
        entry = SharedMemoryEntry.create(type="plan", scope="round", content="umbrella")
        proxy.update_attachment("pinned", "shared_memory_entry", extra=entry)
        asked = memory.conversation.rounds[-1].post_list[-1]
        words = self.llm_api.chat_completion([format_chat_message("user", asked.message)])["content"]
        proxy.update_message(f"{words}, {len(pinned)} pinned")
        return proxy.end()
"""
    )
    with (
        ScriptedModel([plans("rain?", to="Weather"), "Rain", plans("Rain.", to="User")]) as model,
        open_session(model, project=folder, folder=tmp_path / "sessions") as session,
    ):
        answer = session.ask("Will it rain?")

    assert answer.round.posts[2].message == "Rain, 1 pinned"
    assert answer.round.posts[2].send_to == "Planner"  # nobody said to whom: to who asked
    assert answer.round.read_board("Weather") == "umbrella"
    assert answer.usage.calls == 3


def test_a_role_may_stream_the_model_and_look_at_the_attachments_of_its_post(folder, tmp_path):
    (folder / "my_roles" / "weather" / "weather.py").write_text(
        """\
from taskweaver.llm import LLMApi
from taskweaver.memory.attachment import AttachmentType
from taskweaver.module.prompt_util import PromptUtil
from taskweaver.role import Role, RoleConfig


class Weather(Role):
    def __init__(self, config: RoleConfig, logger, tracing, event_emitter, role_entry, llm_api: LLMApi):
        super().__init__(config, logger, tracing, event_emitter, role_entry)
        self.llm_api = llm_api

    def reply(self, memory, **kwargs):
        proxy = self.event_emitter.create_post_proxy(self.alias)
        for words in ("first", "second"):
            proxy.update_attachment(words, AttachmentType.thought)
        kept = proxy.post.get_attachment(AttachmentType.thought)
        proxy.post.del_attachment([AttachmentType.thought])
        left = proxy.post.get_attachment(AttachmentType.thought)
        marked = PromptUtil.wrap_text_with_delimiter("now", PromptUtil.DELIMITER_TEMPORAL)
        asked = [{"role": "user", "content": self.format_experience() + "rain?"}]
        words = "".join(one["content"] for one in self.llm_api.chat_completion_stream(asked))
        proxy.update_message(f"{words} {kept} {left} {marked != 'now'}")
        return proxy.end()
"""
    )
    with (
        ScriptedModel([plans("rain?", to="Weather"), "Rain", plans("Rain.", to="User")]) as model,
        open_session(model, project=folder, folder=tmp_path / "sessions") as session,
    ):
        answer = session.ask("Will it rain?")

    assert answer.round.posts[2].message == "Rain ['first', 'second'] [] True"
    assert model.calls[1] == [{"role": "user", "content": "rain?"}]


@pytest.mark.parametrize(
    ("takes", "body"),
    [
        ("post_proxy, prompt_log_path, **kwargs", "post_proxy.update_message(prompt_log_path); "
         "return post_proxy.end()"),
        ("prompt_log_path=None", "p = self.event_emitter.create_post_proxy(self.alias); p.update_message("
         "prompt_log_path); return p.end()"),
        ("event_emitter, **kwargs", "p = event_emitter.create_post_proxy(self.alias); p.update_message("
         "kwargs['prompt_log_path']); return p.end()"),
    ],
)  # fmt: skip
def test_reply_gets_what_its_signature_names(folder, tmp_path, takes, body):
    (folder / "my_roles" / "weather" / "weather.py").write_text(MINIMAL.format(takes=takes, body=body))
    with open_session(ScriptedModel([]), roles=["weather"], project=folder, folder=tmp_path / "s") as session:
        session.open_round("?")
        assert session.step(session.next_role()).message.endswith("Weather_prompt_log.json")


@pytest.mark.parametrize(
    ("yaml", "python", "problem"),
    [
        ("alias: Weather\nintro: Tells.\n", PYTHON, r"weather\.role\.yaml: `module` is missing"),
        (YAML.replace("weather.Weather", "weather.Wether"), PYTHON, r"no class 'Wether' .* Weather"),
        (YAML.replace("my_roles.weather.weather.Weather", "Weather"), PYTHON, r"`module` must be the dotted path"),
        (YAML.replace("Weather\n", "The weather\n", 1), PYTHON, r"`alias` must be a plain name"),
        (
            YAML,
            "from taskweaver.code_interpreter import CodeInterpreter\n",
            r"weather\.py:1: .*has no counterpart here \(there are taskweaver\.role, .*; write the class against",
        ),
        (YAML, "from taskweaver.memory import Oracle\n", r"weather\.py:1: .*Oracle.*has no counterpart here"),
        (YAML, "import a_package_that_nobody_has\n", r"weather\.py:1: ModuleNotFoundError"),
        (
            YAML,
            PYTHON.replace("role_entry: RoleEntry,", "role_entry: RoleEntry, plugin_registry: dict,"),
            r"weather\.py: its constructor needs 'plugin_registry' \(dict\), which has no counterpart here",
        ),
        (YAML, PYTHON.replace('"unit", "C"', '"unit"'), r"the setting 'role\.weather\.unit' is missing"),
        (YAML, PYTHON.replace("self.closed = False", "1 / 0"), r"weather\.py:\d+: ZeroDivisionError"),
        (YAML, PYTHON.replace("def reply", "def answer"), r"class Weather has no `reply"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_an_error_that_names_the_file_and_what_to_do(folder, yaml, python, problem):
    role = folder / "my_roles" / "weather"
    (role / "weather.role.yaml").write_text(yaml, encoding="utf-8")
    (role / "weather.py").write_text(python, encoding="utf-8")

    with pytest.raises(RoleSpecError, match=problem):
        make(folder)


def test_an_answer_that_is_no_post_and_an_entry_of_another_kind_say_what_to_do_instead(folder, tmp_path, caplog):
    python = folder / "my_roles" / "weather" / "weather.py"
    python.write_text(MINIMAL.format(takes="**kwargs", body='return "blue"'))
    with open_session(ScriptedModel([]), roles=["weather"], project=folder, folder=tmp_path / "s") as session:
        session.open_round("?")
        with pytest.raises(RoleSpecError, match=r"weather\.py: reply\(\) gave str, not a Post"):
            session.step(session.next_role())

    post, board = step_of(python, SHARES.format(type="example_sub_path", scope="round"), folder, tmp_path)
    assert (post.message, board) == ("Blue.", {})
    assert "'example_sub_path', which has no meaning here" in caplog.text
    assert "recall.planner_examples" in caplog.text


SHARES = """\
from taskweaver.memory import SharedMemoryEntry
        proxy = self.event_emitter.create_post_proxy(self.alias)
        entry = SharedMemoryEntry.create(type="{type}", scope="{scope}", content="x")
        proxy.update_attachment("sm", "shared_memory_entry", extra=entry)
        proxy.update_message("Blue.")
        return proxy.end()"""


def step_of(python, body, folder, tmp_path):
    """Return the post of a role whose reply has this body, and the round's board."""
    python.write_text(MINIMAL.format(takes="**kwargs", body=body), encoding="utf-8")
    with open_session(ScriptedModel([]), roles=["weather"], project=folder, folder=tmp_path / "s") as session:
        session.open_round("?")
        return session.step(session.next_role()), session.rounds[-1].board


@pytest.mark.parametrize(
    ("body", "board", "warning"),
    [
        (SHARES.format(type="experience_sub_path", scope="conversation"), {}, "no meaning here"),
        (SHARES.format(type="plan", scope="conversation"), {"Weather": "x"}, "gone with the round"),
        (SHARES.format(type="plan", scope="round"), {"Weather": "x"}, ""),
        (
            "self.role_load_experience(query='q', memory=memory)\n        examples = self.role_load_example("
            "role_set={self.alias, 'Planner'}, memory=memory)\n        assert not examples + self.experiences\n        "
            "proxy = self.event_emitter.create_post_proxy(self.alias)\n        proxy.update_message('Blue.')\n"
            "        return proxy.end()",
            {},
            "Weather loads no experience",
        ),
    ],
)
def test_what_has_no_counterpart_within_a_reply_is_a_warning_and_the_answer_stays(
    folder, tmp_path, caplog, body, board, warning
):
    post, written = step_of(folder / "my_roles" / "weather" / "weather.py", body, folder, tmp_path)

    assert (post.message, written) == ("Blue.", board)
    assert warning in caplog.text
    assert bool(warning) == any(one.name.startswith("tw_autogen.role.taskweaver.") for one in caplog.records)


@pytest.mark.parametrize(
    ("more", "message", "attached"),
    [
        ("proxy.update_attachment('more', id=found.id)", "Looking", ["some, more"]),
        ("proxy.error('no station')", "no station", []),
    ],
)
def test_a_post_grows_and_ends_in_an_error_as_in_taskweaver(folder, tmp_path, more, message, attached):
    body = (
        "proxy = self.event_emitter.create_post_proxy(self.alias)\n"
        "        proxy.update_message('Looking', is_end=False)\n"
        f"        found = proxy.update_attachment('some, ', 'text')\n        {more}\n        return proxy.end()"
    )
    (folder / "my_roles" / "weather" / "weather.py").write_text(MINIMAL.format(takes="**kwargs", body=body))
    with open_session(ScriptedModel([]), roles=["weather"], project=folder, folder=tmp_path / "s") as session:
        session.open_round("?")
        post = session.step(session.next_role())

    assert (post.message, [attachment.content for attachment in post.attachments]) == (message, attached)


def test_a_picture_that_a_role_attaches_reaches_the_planner_and_the_sessions_folder_is_known(folder, tmp_path):
    (folder / "my_roles" / "weather" / "weather.py").write_text(
        """\
import os

from taskweaver.memory.attachment import AttachmentType
from taskweaver.role import Role, RoleConfig
from taskweaver.session import SessionMetadata


class Weather(Role):
    def __init__(self, config: RoleConfig, logger, tracing, event_emitter, role_entry, where: SessionMetadata):
        super().__init__(config, logger, tracing, event_emitter, role_entry)
        self.where = where

    def reply(self, memory, **kwargs):
        proxy = self.event_emitter.create_post_proxy(self.alias)
        for url in ("data:image/png;base64,QUJD", None):
            proxy.update_attachment("a picture", AttachmentType.image_url, extra={"image_url": url})
        proxy.update_message(f"{os.path.isdir(self.where.execution_cwd)} {self.where.session_id == memory.session_id}")
        return proxy.end()
"""
    )
    with (
        ScriptedModel([plans("look", to="Weather"), plans("Blue.", to="User")]) as model,
        open_session(model, project=folder, folder=tmp_path / "sessions") as session,
    ):
        answer = session.ask("What does it look like?")

    assert answer.round.posts[2].message == "True True"
    assert [attachment.content for attachment in answer.round.posts[2].attachments] == ["data:image/png;base64,QUJD"]
    assert "data:image/png;base64,QUJD" in str(model.calls[1][-1])


def test_keys_that_taskweaver_does_not_read_are_named_in_the_log(folder, caplog):
    (folder / "my_roles" / "weather" / "weather.role.yaml").write_text(YAML + "plugins_path: x\n", encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        make(folder)
    assert [
        message
        for message in caplog.messages
        if message.endswith("weather.role.yaml: without meaning here: plugins_path")
    ]


def test_a_yaml_whose_name_is_not_its_folders_is_an_error(folder):
    role = folder / "my_roles" / "weather"
    (role / "weather.role.yaml").rename(role / "sun.role.yaml")
    with pytest.raises(RoleSpecError, match=r"sun\.role\.yaml: its name must be that of its folder: weather\.role"):
        read_role(role)


def test_a_folder_of_roles_that_is_not_there_is_an_error_and_without_a_setting_two_are_looked_at(folder, tmp_path):
    with pytest.raises(ConfigError, match=r"session\.role_folder: there is no folder .*nowhere"):
        read_project(folder, read_settings({"session.role_folder": "nowhere"}, project=folder, environ={}))

    (folder / "taskweaver_config.json").write_text("{}")
    (folder / "my_roles").rename(folder / "ext_role")
    assert dict(read_project(folder, read_settings(project=folder, environ={})).roles) == {
        "weather": folder / "ext_role" / "weather"
    }


def test_what_was_imported_as_taskweaver_before_is_there_again_afterwards(folder, monkeypatch):
    real = types.ModuleType("taskweaver")
    real.__file__, real.__path__ = "/somewhere/taskweaver/__init__.py", []
    role = types.ModuleType("taskweaver.role")
    for name in [module for module in sys.modules if module.partition(".")[0] == "taskweaver"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "taskweaver", real)
    monkeypatch.setitem(sys.modules, "taskweaver.role", role)

    assert make(folder).name == "Weather"
    assert sys.modules["taskweaver"] is real
    assert sys.modules["taskweaver.role"] is role
    assert "taskweaver.memory" not in sys.modules
    assert "injector" not in sys.modules


def test_a_taskweaver_that_is_installed_but_not_imported_is_not_what_a_role_gets(folder, tmp_path):
    (tmp_path / "installed" / "taskweaver").mkdir(parents=True)
    (tmp_path / "installed" / "taskweaver" / "__init__.py").write_text("raise RuntimeError('imported')\n")
    program = (
        "from pathlib import Path; from tw_autogen.role import read_role\n"
        "role = read_role(Path('my_roles/weather')).make(lambda: None)\n"
        "import sys; print(role.name, 'taskweaver' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "installed")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.split() == ["Weather", "False"], done.stderr


@pytest.mark.parametrize(
    ("place", "module", "load", "reply"),
    [
        ("roles", "roles.weather.weather", "from roles.weather.words import WHO", ""),
        ("roles", "roles.weather.weather", "import roles.weather.words as words; WHO = words.WHO", ""),
        ("roles", "roles.weather.weather", "WHO = ''", "from roles.weather.words import WHO"),
        ("roles", "roles.weather.weather", "WHO = ''", "from roles.weather.later import WHO"),
        ("roles", "roles.weather.weather", "import roles; WHO = ''", "import roles.weather.later as l; WHO = l.WHO"),
        ("roles", "roles.weather.weather", "from at_the_top import WHO", ""),
        ("roles", "roles.weather.weather", "WHO = ''", "from at_the_top import WHO"),
        ("ext_role", "taskweaver.ext_role.weather.weather", "from taskweaver.ext_role.common.words import WHO", ""),
        ("ext_role", "taskweaver.ext_role.weather.weather", "WHO = ''",
         "from taskweaver.ext_role.common.words import WHO"),
        ("ext_role", "taskweaver.ext_role.weather.weather", "WHO = ''",
         "import taskweaver.ext_role.common.words; WHO = taskweaver.ext_role.common.words.WHO"),
    ],
)  # fmt: skip
def test_roles_of_two_projects_import_what_is_their_own_under_the_same_names(tmp_path, place, module, load, reply):
    before, path, finders = set(sys.modules), list(sys.path), list(sys.meta_path)
    loaded = []
    for project in ("one", "two"):
        role, common = tmp_path / project / place / "weather", tmp_path / project / place / "common"
        for folder in (role, common):
            folder.mkdir(parents=True)
            (folder / "words.py").write_text(f"WHO = {project!r}\n")
        (role / "later.py").write_text("def who():\n    from .words import WHO\n    return WHO\nWHO = who()\n")
        (tmp_path / project / "at_the_top.py").write_text(f"WHO = {project!r}\n")
        (role / "weather.role.yaml").write_text(f"alias: Weather\nmodule: {module}.Weather\nintro: Tells.\n")
        body = f"{reply or 'pass'}; p = self.event_emitter.create_post_proxy(self.alias); "
        body += "p.update_message(WHO); return p.end()"
        (role / "weather.py").write_text(f"{load}\n{MINIMAL.format(takes='**kwargs', body=body)}")
        loaded.append(read_role(role).make(lambda: ScriptedModel([])))

    asked = Round("?")
    asked.posts.append(Post("Planner", "Weather", "who?"))
    for _ in range(2):
        answers = [role.reply(Memory.of("Weather", [asked], "s")).message for role in loaded]
        assert answers == ["one", "two"]
    assert [key for key in sys.modules.keys() - before if key.split(".")[0] in ("roles", "at_the_top")] == []
    assert [one for one in sys.modules if one.startswith("taskweaver.ext_role.")] == []
    assert (sys.path, sys.meta_path) == (path, finders)


def test_a_programs_own_package_of_the_same_name_stays_what_it_is_also_where_a_role_fails(folder, monkeypatch):
    own = types.ModuleType("my_roles")
    monkeypatch.setitem(sys.modules, "my_roles", own)
    assert make(folder).name == "Weather"
    assert sys.modules["my_roles"] is own

    (folder / "my_roles" / "weather" / "sky.py").write_text("1 / 0\n")
    with pytest.raises(RoleSpecError, match=r"weather\.py:\d+: ZeroDivisionError"):
        make(folder)
    assert sys.modules["my_roles"] is own


def test_plugins_of_taskweavers_form_still_load_in_the_same_process(folder):
    make(folder)
    from taskweaver.plugin import Plugin

    from tw_autogen.plugin import Plugin as Ours

    assert Plugin is Ours


def test_a_shipped_role_is_found_by_its_alias_too():
    assert find_role("DocumentRetriever").name == "document_retriever"


def test_entries_of_a_type_that_nobody_can_share_are_none(folder, tmp_path):
    python = folder / "my_roles" / "weather" / "weather.py"
    python.write_text(
        """\
from taskweaver.memory.shared_memory_entry import SharedMemoryEntry
from taskweaver.role import Role


class Weather(Role):
    def reply(self, memory, **kwargs):
        found = [len(memory.get_shared_memory_entries(kind)) for kind in ("plan", "example_sub_path")]
        proxy = self.event_emitter.create_post_proxy(self.alias)
        entry = SharedMemoryEntry.create(type="plan", scope="round", content="umbrella")
        proxy.update_attachment("pinned", "shared_memory_entry", extra=entry)
        proxy.update_message(f"{found}")
        return proxy.end()
"""
    )
    with (
        ScriptedModel([plans("rain?", to="Weather"), plans("sun?", to="Weather"), plans("Rain.", to="User")]) as model,
        open_session(model, project=folder, folder=tmp_path / "sessions") as session,
    ):
        posts = session.ask("Will it rain?").round.posts

    assert posts[4].message == "[2, 0]"  # the Planner's and its own
