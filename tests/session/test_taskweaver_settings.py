"""Keys of `taskweaver_config.json`: what they mean here, and which are named as ignored."""

import json
import re
from pathlib import Path

import pytest

from tw_autogen import open_session
from tw_autogen.code_interpreter import CodeInterpreterSettings, Policy, find_policy, verify
from tw_autogen.errors import SettingsError
from tw_autogen.kernel import Execution, KernelSettings
from tw_autogen.model import EmbeddingSettings
from tw_autogen.planner import PlannerSettings
from tw_autogen.plugin.settings import PluginSettings
from tw_autogen.recall import RecallSettings
from tw_autogen.session import SessionSettings, read_settings
from tw_autogen.session.project import read_project
from tw_autogen.session.role_configs import RoleConfig, policy_of
from tw_autogen.taskweaver_config import TASKWEAVER_KEYS, TASKWEAVER_VERIFIED
from tw_autogen.testing import FakeKernel, ScriptedModel, codes


@pytest.fixture
def read(tmp_path):
    """Give what reads settings where TaskWeaver's file holds these keys."""

    def _read(keys, *, trust=False, **keywords):
        (tmp_path / "taskweaver_config.json").write_text(json.dumps(keys), encoding="utf-8")
        return read_settings(keywords, project=tmp_path, environ={}, trust=trust)

    return _read


def policy(settings):
    return policy_of(RoleConfig("code_interpreter"), settings)


def test_code_that_is_to_be_verified_may_import_what_taskweaver_allows_and_call_no_blocked_function(read):
    found = policy(read({"code_interpreter.code_verification_on": True}))

    assert [one.line for one in verify("import pandas as pd\nimport requests\nopen('x')\nimport torch", found)] == [
        2,
        3,
        4,
    ]
    assert not verify("import sklearn.linear_model as lm\nimport numpy as np\nnp.array([1]).sum()", found)


def test_its_own_lists_replace_taskweavers_and_an_empty_one_allows_no_import(read):
    on = {"code_interpreter": {"code_verification_on": True}}
    own = {"code_interpreter": {**on["code_interpreter"], "allowed_modules": ["torch"], "blocked_functions": ["print"]}}
    assert [one.line for one in verify("import torch\nimport pandas\nprint(1)\nopen('x')", policy(read(own)))] == [2, 3]

    none = {"code_interpreter": {**on["code_interpreter"], "allowed_modules": []}}
    assert [one.line for one in verify("x = 1\nimport math", policy(read(none)))] == [2]


def test_lists_without_the_check_are_ignored_as_there_and_named(read):
    found = read({"code_interpreter.allowed_modules": ["torch"], "code_interpreter.code_verification_on": False})

    assert policy(found) == Policy()
    assert found.ignored == ("code_interpreter.allowed_modules", "code_interpreter.code_verification_on")


def test_lists_narrow_the_policy_and_never_widen_it(read):
    found = policy(
        read(
            {"code_interpreter.code_verification_on": True, "code_interpreter.allowed_modules": ["pandas", "socket"]},
            **{"code_interpreter.policy": "strict"},
        )
    )

    assert found.modules == {"pandas"}
    assert found.dynamic is False


@pytest.mark.parametrize("base", ["strict", {"base": "default", "dynamic": False}])
@pytest.mark.parametrize("more", [{}, {"code_interpreter.plugin_only": True}])
def test_names_in_a_module_that_a_list_allows_are_refused_as_before(read, tmp_path, base, more):
    if isinstance(base, dict):
        (tmp_path / "own.yaml").write_text(json.dumps(base), encoding="utf-8")
        base = str(tmp_path / "own.yaml")
    names = ["pandas", "pandas.read_pickle", "pandas.io.common", "numpy", "numpy.load", "numpy.fromfile"]
    cells = ["import pandas\npandas.read_pickle('a')", "import numpy as np\nnp.load('a')", "np.fromfile('a')"]
    cells += ["import pandas.io.common", "import pandas", "import math"]

    def refused(lists):
        lists = {"code_interpreter.code_verification_on": True, **lists, **more}
        found = policy_of(RoleConfig("code_interpreter"), read(lists, **{"code_interpreter.policy": base}))
        return [bool(verify(cell, found)) for cell in cells]

    without, with_list = refused({}), refused({"code_interpreter.allowed_modules": names})
    assert all(after or not before for before, after in zip(without, with_list, strict=True))
    assert with_list[-1]


@pytest.mark.parametrize(
    "setting", [{"code_interpreter.plugin_only": True}, {"code_interpreter.policy": "plugins-only"}]
)
def test_a_policy_that_is_given_in_code_beats_the_one_of_the_settings(read, setting):
    given = Policy(shell=True)

    assert policy_of(RoleConfig("code_interpreter"), read({}, **setting)) not in (given, Policy())
    assert policy_of(RoleConfig("code_interpreter", policy=given), read({}, **setting)) == given
    assert policy_of(
        RoleConfig("code_interpreter_plugin_only", policy=given), read({})
    ).only_plugins  # so the role is called

    lists = read({}, **setting, **{"code_interpreter.allowed_modules": ["pandas"]})
    assert policy_of(RoleConfig("code_interpreter", policy=given), lists) == given.of_modules(["pandas"])


@pytest.mark.parametrize("role", ["code_interpreter", "code_interpreter_plugin_only"])
def test_plugins_only_of_a_folder_that_nobody_trusts_leaves_the_users_policy_in_force(tmp_path, monkeypatch, role):
    monkeypatch.chdir(tmp_path)
    named = role.endswith("_only")
    says = {"session.roles": ["planner", role]} if named else {"code_interpreter": {"plugin_only": True}}
    (tmp_path / "tw_autogen.yaml").write_text(json.dumps(says), encoding="utf-8")
    cells = ["f(path='/etc/x')", "f(1)", "1 + 1"]

    def refused(*, policy=None, **how):
        read = read_settings({"code_interpreter.policy": "strict"}, environ={}, **how)
        found = policy_of(RoleConfig(role, policy=policy and find_policy(policy)), read)
        return [bool(verify(cell, found, plugins=["f"])) for cell in cells]

    assert refused(project=tmp_path) == [True, False, True]
    assert refused(project=tmp_path, policy="strict") == [True, False, named]
    assert refused(project=tmp_path, trust=True) == [False, False, True]
    assert named or refused() == [True, False, True]


def test_a_cell_that_breaks_them_is_sent_back_in_a_session(read, tmp_path):
    settings = read({"code_interpreter.code_verification_on": True, "session.roles": ["code_interpreter"]})
    with (
        ScriptedModel([codes("import requests"), codes("print(1)")]) as model,
        open_session(
            model, settings=settings, kernel=FakeKernel([Execution(ok=True)]), folder=tmp_path / "s"
        ) as session,
    ):
        session.ask("fetch it")

    assert "requests" in str(model.calls[1][-1])


def test_the_settings_are_ours_too(read):
    settings = read({}, **{"code_interpreter.allowed_modules": "pandas, numpy"})

    assert settings.read("code_interpreter", CodeInterpreterSettings).allowed_modules == ("pandas", "numpy")


def test_roles_are_called_as_taskweaver_calls_them(read):
    theirs = ["planner", "code_interpreter_cli_only", "recepta", "image_reader", "web_search", "echo"]
    assert read({"session.roles": theirs}).read("session", SessionSettings).roles == (
        *("planner", "command_line", "recepta", "image_reader", "web_search", "echo"),
    )
    only = read({"session.roles": ["planner", "code_interpreter_plugin_only"]})
    assert only.read("code_interpreter", CodeInterpreterSettings).plugin_only


def test_keys_of_roles_reach_the_roles_by_our_words_and_the_others_are_named(read):
    found = read(
        {
            "session.roles": ["planner", "document_retriever", "web_search", "echo"],
            "document_retriever.index_folder": "${AppBaseDir}/kb",
            "document_retriever.size": 3,
            "web_search.result_count": 2,
            "echo.decorator": "*",
            "echo.use_example": True,
            "recepta.decorator": "-",
            "role.base_path": "${ModuleBaseDir}/ext_role",
            "execution_service.kernel_mode": "local",
        }
    )

    retriever = found.of_role("document_retriever", ["index", "size"])
    assert retriever["index"].value.endswith("/kb")
    assert retriever["size"].value == 3
    assert found.of_role("web_search", ["results"])["results"].value == 2
    assert found.of_role("echo", ["decorator"])["decorator"].value == "*"
    assert found.ignored == (*("echo.use_example", "recepta.decorator", "role.base_path"),)


def test_a_shipped_role_takes_its_keys_and_those_it_lacks_are_named_in_the_log(read, tmp_path, caplog):
    settings = read({"session.roles": ["echo"], "echo.decorator": "*", "echo.colour": "red"})
    with open_session(ScriptedModel([]), settings=settings, folder=tmp_path / "s") as session:
        session.open_round("hello")
        assert session.step(session.next_role()).message == "*hello*"

    assert [message for message in caplog.messages if "(echo.colour): without meaning here" in message]


def test_a_role_that_is_misspelt_in_our_own_file_is_still_an_error(tmp_path):
    with pytest.raises(SettingsError, match="no role here is called 'ecko'"):
        open_session(ScriptedModel([]), roles=["echo"], settings={"role.ecko.decorator": "x"}, folder=tmp_path / "s")


def test_relative_paths_are_those_of_the_projects_file(read, tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    keys = {
        "planner.example_base_path": "mine",
        "code_generator.example_base_path": "../ours",
        "workspace.workspace_path": "work",
        "role.base_path": "/elsewhere/roles",
        "plugin.base_path": "",
        "session.roles": ["document_retriever"],
        "document_retriever.index_folder": "kb",
    }
    assert {one.key for one in read(keys).left_out} == {"recall.code_examples", "session.role_folder"}
    found = read(keys, trust=True)

    recall, session = found.read("recall", RecallSettings), found.read("session", SessionSettings)
    assert recall.planner_examples == str(tmp_path / "mine")
    assert recall.code_examples == str(tmp_path.parent / "ours")
    assert recall.experience == ""
    assert (session.workspace, session.role_folder) == (str(tmp_path / "work"), "/elsewhere/roles")
    index = found.of_role("document_retriever", ["index"])["index"]
    assert index.base / index.value == tmp_path / "kb"


def test_relative_paths_of_our_own_file_are_that_files_too_and_keywords_are_as_they_stand(tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    (tmp_path / "tw_autogen.yaml").write_text(
        "recall: {experience: lessons}\nkernel: {read: [data, /srv], write: 'a, b'}\nplugin: {mcp_servers: mcp.json}\n"
        "session: {roles: [planner, ./mine]}\n"
    )
    found = read_settings({"recall.code_examples": "mine"}, project=tmp_path, environ={}, trust=True)

    recall, kernel = found.read("recall", RecallSettings), found.read("kernel", KernelSettings)
    assert (recall.experience, recall.code_examples) == (str(tmp_path / "lessons"), "mine")
    assert (kernel.read, kernel.write) == ((str(tmp_path / "data"), "/srv"), (str(tmp_path / "a"), str(tmp_path / "b")))
    assert found.read("plugin", PluginSettings).mcp_servers == str(tmp_path / "mcp.json")
    assert found.read("session", SessionSettings).workspace == ".tw/sessions"
    assert found.read("session", SessionSettings).roles == ("planner", str(tmp_path / "mine"))


def test_folders_of_examples_are_read_where_taskweavers_key_says(read, tmp_path):
    found = read({"planner.example_base_path": "${AppBaseDir}/mine"})

    assert found.origin("recall.planner_examples").endswith("(planner.example_base_path)")


@pytest.mark.parametrize("elsewhere", [{"llm.api_base": "http://127.0.0.1:9/v1"}, {"llm.api_type": "google_genai"}])
def test_keys_with_a_counterpart_are_taken(read, tmp_path, elsewhere):
    (tmp_path / "lessons").mkdir()
    found = read(
        {
            "planner.use_example": False,
            "planner.use_experience": True,
            "planner.experience_dir": "${AppBaseDir}/lessons",
            "planner.prompt_compression": False,
            "planner.llm_alias": "strong",
            "code_generator.llm_alias": "elsewhere",
            "ext_llms.llm_configs": {
                "strong": {"llm.model": "big-model", "llm.api_type": "openai"},
                "elsewhere": {"llm.model": "x", **elsewhere},
            },
            "llm.embedding_api_type": "openai",
            "llm.embedding_model": "text-embedding-3-small",
        }
    )

    recall = found.read("recall", RecallSettings)
    assert (recall.use_planner_examples, recall.use_code_examples) == (False, True)
    assert (recall.experience, recall.compress_tokens) == (str(tmp_path / "lessons"), 0)
    assert found.read("planner", PlannerSettings).model == "big-model"
    assert found.read("code_interpreter", CodeInterpreterSettings).model == ""
    assert found.read("embedding", EmbeddingSettings).name == "text-embedding-3-small"
    assert found.ignored == ("code_generator.llm_alias",)


PLUGIN = """\
from tw_autogen.plugin import register_plugin

@register_plugin
def theirs():
    return 1
"""


@pytest.mark.parametrize(("load", "brought"), [(True, ("theirs",)), (False, ())])
def test_a_project_that_loads_no_plugins_brings_none_but_those_that_are_named(read, tmp_path, load, brought):
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "theirs.yaml").write_text("name: theirs\ndescription: One.\n", encoding="utf-8")
    (tmp_path / "plugins" / "theirs.py").write_text(PLUGIN, encoding="utf-8")
    settings = read({"code_generator.load_plugin": load})

    def names(number, **keywords):
        with open_session(
            ScriptedModel([]),
            project=tmp_path,
            settings=settings,
            kernel=FakeKernel(folder=tmp_path),
            folder=tmp_path / str(number),
            **keywords,
        ) as session:
            return session.roles[-1].plugin_names

    assert settings.ignored == ()
    assert names(1) == brought
    assert names(2, plugins=["theirs"]) == ("theirs",)


@pytest.mark.parametrize(
    ("key", "value", "remedy"),
    [
        ("code_interpreter.code_prefix", "import pandas as pd", r"`session\.run_code\(…\)` before the first request"),
        ("execution_service.kernel_mode", "container", r"code runs in a sandbox here .*`ContainerKernel`"),
        ("execution_service.custom_image", "python:3.12", r"`ContainerKernel`, with that image"),
        ("execution_service.env_dir", "env", r"`kernel\.python` names the interpreter"),
        ("llm.api_type", "ollama", r"`model\.base_url`"),
        ("planner.prompt_file_path", "p.yaml", r"`planner\.instructions`"),
        ("round_compressor.rounds_to_compress", 2, r"`recall\.compress_tokens`"),
        ("web_search.api_provider", "google", r"`role\.web_search\.url`"),
        ("session.experience_dir", "e", r"`recall\.experience`"),
        ("code_generator.llm_alias", "x", r"`code_interpreter\.model`"),
        ("llm.openai.stop_token", ["x"], r"`model\.extra` adds it to each request.*\(`stop`\)"),
        ("experience.retrieve_threshold", 0.2, r"`recall\.experience_min_score`"),
        ("tracing.enabled", True, r"event"),
    ],
)
def test_a_key_without_a_counterpart_is_named_with_what_to_do_instead(read, tmp_path, key, value, remedy):
    settings = read({key: value})

    project = read_project(tmp_path, settings)

    assert settings.ignored == (key,)
    (first, second) = project.notes
    assert first.endswith(f"without meaning here: {key}")
    assert re.search(rf"taskweaver_config\.json: {re.escape(key)}: .*{remedy}", second)


@pytest.mark.parametrize(
    ("key", "value"),
    [("execution_service.kernel_mode", "local"), ("code_interpreter.code_prefix", ""), ("llm.api_type", "openai")],
)
def test_values_that_hold_here_in_any_case_are_not_named(read, key, value):
    assert read({key: value}).ignored == ()


@pytest.mark.parametrize(
    "said",
    [
        {"ext_llms.llm_configs": {"a": {}}, "planner.llm_alias": ["x"]},
        {"planner.experience_dir": ["x"], "planner.use_experience": True},
        {"planner.experience_dir": 5, "planner.use_experience": True},
        {"planner.experience_dir": "x" * 5000, "planner.use_experience": True},
    ],
)
def test_values_that_no_setting_or_folder_can_be_mean_nothing_together(read, said):
    assert RecallSettings(experience=read(said).read("recall", RecallSettings).experience) == RecallSettings()


def test_names_of_a_librarys_embeddings_are_not_a_servers(read):
    found = read({"llm.embedding_api_type": "sentence_transformers", "llm.embedding_model": "all-mpnet-base-v2"})

    assert found.read("embedding", EmbeddingSettings).name == ""
    assert found.ignored == ("llm.embedding_api_type", "llm.embedding_model")


def test_the_page_on_taskweaver_says_of_each_key_what_becomes_of_it(read):
    text = (Path(__file__).parents[2] / "docs" / "taskweaver.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:3] for line in text.partition("## Settings")[2].splitlines() if line.startswith("|")]
    known = {key: here.strip() for keys, here in rows for key in re.findall(r"`([a-z_.]+)`", keys)}
    idle = {key: "x" for key, here in known.items() if here.startswith("no effect")}

    assert {*TASKWEAVER_KEYS, *TASKWEAVER_VERIFIED} <= set(known)
    assert [key for key, ours in TASKWEAVER_KEYS.items() if f"`{ours}`" not in known[key]] == []
    assert read(idle).ignored == tuple(sorted(idle))
    assert len(idle) > 15
