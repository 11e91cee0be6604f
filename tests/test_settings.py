"""Settings: which source wins, where a value came from, and what a wrong one says."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import pytest

import tw_autogen.model
from tw_autogen import autogen_config_list
from tw_autogen.code_interpreter import CodeInterpreterSettings
from tw_autogen.errors import ConfigError, SettingsError
from tw_autogen.kernel import KernelSettings
from tw_autogen.model.settings import Price
from tw_autogen.plugin import PluginSettings
from tw_autogen.session import read_settings
from tw_autogen.session.settings_sources import SECTIONS as SECTION_TYPES
from tw_autogen.setting_values import Setting, fit_setting
from tw_autogen.settings import Settings
from tw_autogen.settings_trust import Trust


@dataclass(frozen=True)
class ModelSettings:
    api_key: str | None = field(default=None, metadata={"env": ("OPENAI_API_KEY",)})
    base_url: str | None = field(default=None, metadata={"env": ("OPENAI_BASE_URL", "OPENAI_API_BASE")})
    name: str = "default-model"


@dataclass(frozen=True)
class SessionSettings:
    max_posts: int = 10
    roles: tuple[str, ...] = ()
    sandbox: bool = True
    folder: str = field(default="", metadata={"path": True})
    read: tuple[str, ...] = field(default=(), metadata={"path": True})


SECTIONS = {"model": ModelSettings, "session": SessionSettings}


def test_without_any_source_the_defaults_hold():
    settings = Settings(SECTIONS)

    assert settings.read("session", SessionSettings) == SessionSettings()
    assert settings.origin("session.max_posts") == "the default"


def test_keyword_beats_environment_beats_project_file_beats_user_file(tmp_path):
    user = tmp_path / "config.yaml"
    user.write_text("session:\n  max_posts: 1\n  sandbox: false\nmodel.name: mine\n", encoding="utf-8")
    (tmp_path / "tw_autogen.yaml").write_text("session: {max_posts: 2}\nmodel: {name: project}\n", encoding="utf-8")
    environ = {"TW_AUTOGEN_SESSION_MAX_POSTS": "3", "OPENAI_API_KEY": "sk-1"}
    given = {"session.max_posts": 4}
    settings = Settings(SECTIONS, given, environ=environ, project=tmp_path, user_file=user, trust=Trust.full)

    assert settings.read("session", SessionSettings) == SessionSettings(max_posts=4, sandbox=False)
    assert settings.read("model", ModelSettings) == ModelSettings(api_key="sk-1", name="project")
    assert settings.origin("session.max_posts") == "the keyword 'session.max_posts'"
    assert settings.origin("session.sandbox") == str(user)
    assert settings.origin("model.name") == str(tmp_path / "tw_autogen.yaml")
    assert settings.origin("model.api_key") == "OPENAI_API_KEY"


def test_a_name_of_ours_beats_a_well_known_one_and_the_newer_name_the_old():
    environ = {"OPENAI_BASE_URL": "http://new", "OPENAI_API_BASE": "http://old"}

    assert Settings(SECTIONS, environ=environ).read("model", ModelSettings).base_url == "http://new"
    environ["TW_AUTOGEN_MODEL_BASE_URL"] = "http://ours"
    assert Settings(SECTIONS, environ=environ).read("model", ModelSettings).base_url == "http://ours"


def test_a_section_without_lines_sets_nothing(tmp_path):
    (tmp_path / "tw_autogen.yaml").write_text("session:\n  # max_posts: 9\n", encoding="utf-8")

    assert Settings(SECTIONS, project=tmp_path, environ={}).read("session", SessionSettings) == SessionSettings()


@pytest.mark.parametrize("text", ["role:\n  echo:\n    # decorator: x\n", "role.echo:\n"])
@pytest.mark.parametrize("trust", Trust)
def test_a_section_of_a_role_without_lines_sets_nothing(tmp_path, text, trust):
    (tmp_path / "tw_autogen.yaml").write_text(text, encoding="utf-8")

    settings = Settings(SECTIONS, project=tmp_path, trust=trust)

    assert (settings.configured_roles, settings.left_out) == ((), ())


def test_a_list_may_be_written_with_commas_in_the_environment():
    settings = Settings(SECTIONS, environ={"TW_AUTOGEN_SESSION_ROLES": "planner, echo"})

    assert settings.read("session", SessionSettings).roles == ("planner", "echo")


@pytest.mark.parametrize(
    "text", ['["planner", "echo"]', "['planner', 'echo']", "[planner, echo]", " [planner,\n'echo'] ", "planner,echo,"]
)
def test_a_list_may_be_written_as_in_yaml_json_and_python(text):
    by_environment = Settings(SECTIONS, environ={"TW_AUTOGEN_SESSION_ROLES": text})
    by_keyword = Settings(SECTIONS, {"session.roles": text})

    for settings in (by_environment, by_keyword):
        assert settings.read("session", SessionSettings).roles == ("planner", "echo")


@pytest.mark.parametrize("text", ['["planner"', "['planner']]", "[a: b", "('planner',)", '"planner", "echo"', "{a: b}"])
def test_a_list_that_cannot_be_read_is_an_error_and_no_name(text):
    with pytest.raises(SettingsError, match=r"the keyword 'session\.roles': session\.roles: no list: .*; write a,b or"):
        Settings(SECTIONS, {"session.roles": text})


def test_a_path_that_begins_with_a_tilde_lies_in_the_users_home_whoever_says_it(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    said = Settings(SECTIONS, {"session.folder": "~/a"}, environ={"TW_AUTOGEN_SESSION_READ": "~/b,c,./~"})

    assert said.read("session", SessionSettings).folder == f"{tmp_path}/a"
    assert said.read("session", SessionSettings).read == (f"{tmp_path}/b", "c", "./~")
    with pytest.raises(SettingsError, match=r"the keyword 'session.folder': session.folder: Could not determine home"):
        Settings(SECTIONS, {"session.folder": "~no-such-user/a"})


def test_a_list_inside_a_list_is_an_error():
    with pytest.raises(SettingsError, match=r"session\.roles: input should be a valid string"):
        Settings(SECTIONS, {"session.roles": "[[planner]]"})


def test_a_misspelt_key_names_the_place_and_its_neighbour(tmp_path):
    (tmp_path / "tw_autogen.yaml").write_text("session: {max_post: 2}\n", encoding="utf-8")

    with pytest.raises(
        SettingsError, match=r"tw_autogen\.yaml: unknown setting 'session\.max_post'; did you mean 'session"
    ):
        Settings(SECTIONS, project=tmp_path)


def test_a_misspelt_variable_with_our_prefix_names_its_neighbour_and_others_are_left_alone():
    others = {"TW_AUTOGENIC": "1", "SESSION_MAX_POST": "3", "TW_AUTOGEN_ROLE_ECHO_DECORATOR": "*"}
    Settings(SECTIONS, environ=others)

    with pytest.raises(
        SettingsError,
        match="the environment: unknown setting 'TW_AUTOGEN_SESSION_MAX_POST'; did you mean '.*_MAX_POSTS'",
    ):
        Settings(SECTIONS, environ={**others, "TW_AUTOGEN_SESSION_MAX_POST": "3"})


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("foo.bar", "; sections: model, session; all settings: docs/settings-reference.md$"),
        ("", "; sections: model, session; "),
        ("zzz", "; sections: model, session; "),
        ("session.quick_brown_fox_jumps", "; known: 'session.[^']*'(, 'session.[^']*')*$"),
        ("model.quick_brown_fox_jumps", "; known: 'model.api_key', 'model.base_url', 'model.name'$"),
        ("session.max_post", "; did you mean 'session.max_posts'"),
    ],
)
def test_an_unknown_setting_names_those_of_its_section_or_the_sections(key, expected):
    with pytest.raises(SettingsError, match=f"unknown setting .*{expected}"):
        Settings(SECTIONS, {key: "1"})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("X" * 60, "; sections: model, session; all settings: docs/settings-reference.md$"),
        (f"SESSION_{'X' * 60}", "; known: 'TW_AUTOGEN_SESSION_[^']*'(, 'TW_AUTOGEN_SESSION_[^']*')*$"),
    ],
)
def test_an_unknown_variable_names_those_of_its_section_or_the_sections(name, expected):
    with pytest.raises(SettingsError, match=f"unknown setting 'TW_AUTOGEN_{name}'{expected}"):
        Settings(SECTIONS, environ={f"TW_AUTOGEN_{name}": "1"})


def test_a_value_of_the_wrong_type_names_the_place_and_what_was_expected():
    environ = {"TW_AUTOGEN_SESSION_MAX_POSTS": "many"}

    with pytest.raises(
        SettingsError, match=r"TW_AUTOGEN_SESSION_MAX_POSTS: session\.max_posts: .*integer.* got 'many'"
    ):
        Settings(SECTIONS, environ=environ)


def test_yes_where_a_number_is_expected_is_an_error():
    with pytest.raises(SettingsError, match=r"session\.max_posts: .*integer, got True"):
        Settings(SECTIONS, {"session.max_posts": True})


def test_a_secret_of_the_wrong_type_is_not_printed():
    with pytest.raises(SettingsError, match="got the value given") as caught:
        Settings(SECTIONS, {"model.api_key": ["sk-secret"]})
    assert "sk-secret" not in str(caught.value)


def test_taskweavers_project_file_is_read_and_what_it_cannot_mean_here_is_named(tmp_path):
    file = {
        "llm.api_base": "http://llm",
        "llm": {"model": "theirs"},
        "session.max_internal_chat_round_num": 7,
        "planner.load_plugin": False,
    }
    (tmp_path / "taskweaver_config.json").write_text(json.dumps(file), encoding="utf-8")
    settings = Settings(SECTIONS, project=tmp_path, trust=Trust.full)

    assert settings.read("model", ModelSettings) == ModelSettings(base_url="http://llm", name="theirs")
    assert settings.read("session", SessionSettings).max_posts == 7
    assert settings.ignored == ("planner.load_plugin",)


@pytest.mark.parametrize("as_file", [False, True])
def test_autogens_config_list_is_read_as_text_and_as_file(tmp_path, as_file):
    text = json.dumps([{"model": "m1", "api_key": "k1", "base_url": "http://one"}, {"model": "m2"}])
    if as_file:
        (tmp_path / "OAI_CONFIG_LIST").write_text(text, encoding="utf-8")
        text = str(tmp_path / "OAI_CONFIG_LIST")

    found = Settings(SECTIONS, environ={"OAI_CONFIG_LIST": text}).read("model", ModelSettings)

    assert found == ModelSettings(api_key="k1", base_url="http://one", name="m1")


@pytest.mark.parametrize(
    "entry",
    [
        {"api_type": "anthropic"},
        {"api_type": "qwen", "base_url": ""},
        {"azure_endpoint": "https://x"},
        {"api_type": "azure"},
        {"api_type": "azure", "base_url": "https://x", "api_version": "2024-02-01"},
    ],
)
def test_a_key_of_a_config_list_goes_to_no_server_that_its_entry_does_not_mean(caplog, entry):
    autogen_config_list._warn_once.cache_clear()
    entries = [{"model": "m1", "api_key": "k1", **entry}]

    def read():
        found = Settings(SECTIONS, environ={"OAI_CONFIG_LIST": json.dumps(entries)})
        return found.read("model", ModelSettings)

    assert read() == ModelSettings()
    assert "no entry names a server that is known here, so no key is taken from it" in caplog.text
    entries.append({"model": "m2", "api_key": "k2", "api_type": "openai"})
    assert read() == ModelSettings(api_key="k2", name="m2")
    entries[0] = {"model": "m1", "api_key": "k1", "api_type": "azure", "base_url": "http://one"}
    assert read() == ModelSettings(api_key="k1", base_url="http://one", name="m1")


def test_the_server_of_a_config_list_in_a_folder_that_is_named_goes_with_its_key(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.json").write_text(json.dumps([{"model": "m", "api_key": "k", "base_url": "http://one"}]))
    for trust in (Trust.named, Trust.full):
        found = read_settings(project=".", environ={"OAI_CONFIG_LIST": "list.json"}, trust=trust is Trust.full)
        model = found.read("model", tw_autogen.model.ModelSettings)
        assert (model.api_key, model.base_url) == ("k", "http://one")


def test_a_key_of_a_folder_whose_server_does_not_count_is_sent_nowhere(tmp_path):
    (tmp_path / "tw_autogen.yaml").write_text('model: {api_key: "", base_url: "http://one"}\n', encoding="utf-8")
    (tmp_path / "taskweaver_config.json").write_text('{"llm.api_key": "k", "llm.api_type": "qwen"}', encoding="utf-8")
    found = read_settings(project=tmp_path, environ={})
    assert found.read("model", tw_autogen.model.ModelSettings).api_key is None


@pytest.mark.parametrize("base", [{}, {"llm.api_base": "http://qwen"}])
def test_a_key_of_a_taskweaver_project_goes_to_no_server_that_its_type_does_not_mean(tmp_path, base):
    config = {"llm.api_type": "qwen", "llm.model": "qwen-max", "llm.api_key": "k", **base}
    (tmp_path / "taskweaver_config.json").write_text(json.dumps(config), encoding="utf-8")

    found = read_settings(project=tmp_path, environ={}, trust=True)

    model = found.read("model", tw_autogen.model.ModelSettings)
    assert (model.api_key, model.base_url) == (("k", "http://qwen") if base else (None, None))
    assert found.ignored == (("llm.api_type",) if base else ("llm.api_key", "llm.api_type"))


def test_a_config_list_that_is_neither_json_nor_a_file_is_an_error():
    with pytest.raises(ConfigError, match=r"OAI_CONFIG_LIST: '/nowhere/list' is neither JSON nor a file that exists"):
        Settings(SECTIONS, environ={"OAI_CONFIG_LIST": "/nowhere/list"})
    with pytest.raises(ConfigError, match="OAI_CONFIG_LIST: not JSON"):
        Settings(SECTIONS, environ={"OAI_CONFIG_LIST": "[" * 100_000})


LISTED = '[{"model": "m", "api_key": "sk-key-of-mine", "base_url": "http://x"}]'


@pytest.mark.parametrize("text", [f"'{LISTED}'", f' "{LISTED}"\n', LISTED])
def test_quotes_around_a_config_list_are_left_out(text):
    found = read_settings(environ={"OAI_CONFIG_LIST": text}).read("model", tw_autogen.model.ModelSettings)

    assert (found.name, found.api_key) == ("m", "sk-key-of-mine")


@pytest.mark.parametrize("text", [f"'{LISTED}", LISTED[:-1], f"x{LISTED}", LISTED[1:], "sk-key-" + "of1mine2" * 5])
def test_a_wrong_config_list_shows_no_key(text):
    with pytest.raises(ConfigError, match="OAI_CONFIG_LIST") as caught:
        Settings(SECTIONS, environ={"OAI_CONFIG_LIST": text})

    assert "sk-key" not in str(caught.value)


def test_a_project_file_that_is_no_yaml_is_an_error_that_names_it(tmp_path):
    (tmp_path / "tw_autogen.yaml").write_text("session: [", encoding="utf-8")

    with pytest.raises(ConfigError, match=r"tw_autogen\.yaml:1: neither YAML nor JSON"):
        Settings(SECTIONS, project=tmp_path)


@pytest.mark.parametrize(
    ("value", "hint", "fitted"),
    [
        (["a", "b"], tuple[str, ...], ("a", "b")),
        (("a",), tuple[str, ...], ("a",)),
        ("names", Literal["content", "names"], "names"),
        (2, Literal[1, 2], 2),
        (2, float | None, 2.0),
        ("2", int, 2),
    ],
)
def test_a_value_comes_in_the_type_of_its_field(value, hint, fitted):
    found = fit_setting("session.x", Setting(value, "here"), hint)

    assert (found, type(found)) == (fitted, type(fitted))


@pytest.mark.parametrize(
    ("value", "hint"), [(["a", 1], tuple[str, ...]), ("other", Literal["content"]), ("1", Literal[1])]
)
def test_a_value_that_is_almost_of_a_type_is_an_error(value, hint):
    with pytest.raises(SettingsError, match="session.x.*: input should be"):
        fit_setting("session.x", Setting(value, "here"), hint)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (float("nan"), float),
        ("nan", float),
        (" NaN", float | None),
        (float("nan"), float | None),
        ("{small: {prompt: .nan, completion: 1}}", Mapping[str, Price]),
        ({"small": Price(1.0, 1.0, float("nan"))}, Mapping[str, Price]),
        ({"temperatures": [0.5, float("nan")]}, Mapping[str, object]),
    ],
)
def test_nan_which_would_limit_nothing_is_an_error(value, hint):
    with pytest.raises(SettingsError, match="here: session.x: expected a number, got nan"):
        fit_setting("session.x", Setting(value, "here"), hint)


@pytest.mark.parametrize(("value", "hint"), [("inf", float), ("nan", str), ("nan", tuple[str, ...])])
def test_no_limit_and_a_name_are_not_nan(value, hint):
    assert fit_setting("session.x", Setting(value, "here"), hint) in (float("inf"), "nan", ("nan",))


@pytest.mark.parametrize("text", ["{since: 2024-02-30}", "{since: ", "{a: b: c}"])
def test_a_mapping_that_cannot_be_read_is_an_error_that_names_it(text):
    with pytest.raises(SettingsError, match=r"TW_X: model\.extra: input should be a valid (?:mapping|dictionary), got"):
        fit_setting("model.extra", Setting(text, "TW_X"), Mapping[str, object])


@pytest.mark.parametrize(("value", "hint"), [(5, tuple[int, ...]), ("abc", Mapping[str, str]), (1, dict[str, int])])
def test_a_plain_value_is_checked_against_the_whole_type_not_a_part_of_it(value, hint):
    with pytest.raises(SettingsError, match="session.x: input should be"):
        fit_setting("session.x", Setting(value, "here"), hint)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("KERNEL_PYTHON", "./python"),
        ("KERNEL_PYTHON", "bin/python"),
        ("PLUGIN_MCP_SERVERS", "mcp.json"),
        ("SESSION_ROLES", "planner, roles/evil"),
        ("CODE_INTERPRETER_POLICY", "policy.yaml"),
        ("CODE_INTERPRETER_POLICY", "~nobody-is-called-so/policy.yaml"),
        ("EMBEDDING_FOLDER", "models"),
    ],
)
def test_the_environment_takes_nothing_that_runs_from_the_current_folder(variable, value):
    name = f"TW_AUTOGEN_{variable}"
    with pytest.raises(
        SettingsError, match=f"^{name}: .* means whatever lies in the current folder; write a whole path"
    ):
        read_settings(environ={name: value})


def test_a_folder_with_a_comma_in_its_name_is_one_folder(tmp_path):
    for name in ("p", "p,b", "c"):
        (tmp_path / name).mkdir()
    given = {"p,b": (f"{tmp_path}/p,b",), "p,c": (f"{tmp_path}/p", "c")}

    for name, wanted in given.items():
        read = read_settings({"kernel.read": f"{tmp_path}/{name}"}, environ={})
        assert [one.removeprefix(f"{os.getcwd()}/") for one in read.read("kernel", KernelSettings).read] == list(wanted)


@pytest.mark.parametrize("key", ["kernel.python", "plugin.mcp_servers", "code_interpreter.policy"])
def test_blanks_around_a_whole_path_of_the_environment_make_no_relative_one(key):
    name = f"TW_AUTOGEN_{key.replace('.', '_').upper()}"
    place = f"{os.sep}opt{os.sep}a.yaml"

    section, _, field = key.partition(".")
    kind = {"kernel": KernelSettings, "plugin": PluginSettings, "code_interpreter": CodeInterpreterSettings}[section]

    assert getattr(read_settings(environ={name: f" {place}\n"}).read(section, kind), field) == place


def test_the_environment_takes_no_program_of_a_role_from_the_current_folder():
    name = "TW_AUTOGEN_ROLE_WEB_EXPLORER_EXECUTABLE"
    settings = Settings(SECTIONS, environ={name: "bin/chrome"})

    with pytest.raises(SettingsError, match=f"^{name}: 'bin/chrome' means whatever lies in the current folder"):
        settings.of_role("web_explorer", ["executable"])


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        ("kernel.python", "python3", "python3"),
        ("kernel.python", "/usr/bin/python3", "/usr/bin/python3"),
        ("plugin.mcp_servers", '{"a": {"command": "/bin/true"}}', '{"a": {"command": "/bin/true"}}'),
        ("session.roles", "planner,echo", ("planner", "echo")),
        ("code_interpreter.policy", "strict", "strict"),
        ("session.workspace", "sessions", "sessions"),
    ],
)
def test_the_environment_sets_words_and_whole_paths(key, value, found):
    section, _, name = key.partition(".")
    settings = read_settings(environ={f"TW_AUTOGEN_{key.replace('.', '_').upper()}": value})

    assert getattr(settings.read(section, SECTION_TYPES[section]), name) == found
