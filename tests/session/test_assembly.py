"""Where the parts are put together: which model, which kernel, and what is left behind when a part can't be made."""

import os
import re
from pathlib import Path

import pytest

from tw_autogen import open_session
from tw_autogen.errors import ConfigError, NoModelError, RoundTooCostly, SettingsError
from tw_autogen.kernel import Execution
from tw_autogen.model import Completion, ModelSettings, OpenAIModel, Usage
from tw_autogen.model.settings import Price
from tw_autogen.session import read_settings
from tw_autogen.testing import FakeKernel, ScriptedModel, codes, plans, replay_server


def fake(folder):
    return FakeKernel(lambda code: Execution(ok=True, result="1"), folder=folder)


def test_each_role_may_have_a_model_of_its_own(tmp_path):
    with (
        ScriptedModel([plans("one"), plans("two", to="User")]) as planner,
        ScriptedModel([codes("1")]) as other,
        open_session({"Planner": planner, "": other}, kernel=fake, folder=tmp_path) as session,
    ):
        assert session.ask("go").text == "two"


def test_settings_name_server_and_model_for_each_role(tmp_path):
    with replay_server([plans("one"), codes("1"), plans("two", to="User")]) as server:
        settings = {
            "model.base_url": server.base_url,
            "model.name": "large",
            "code_interpreter.model": "small",
        }
        with open_session(folder=tmp_path, kernel=fake, settings=settings) as session:
            session.ask("go")

    assert [request["model"] for request in server.requests] == ["large", "small", "large"]


def test_without_a_model_nothing_is_made(tmp_path):
    settings = read_settings({}, environ={"HOME": str(tmp_path)}, project=tmp_path)

    with pytest.raises(NoModelError, match="no model configured"):
        open_session(folder=tmp_path / "sessions", settings=settings)
    assert not (tmp_path / "sessions").exists()


def test_a_wrong_setting_is_told_before_a_missing_model(tmp_path):
    with pytest.raises(SettingsError, match="unknown setting 'session.max_post'; did you mean 'session.max_posts'"):
        open_session(folder=tmp_path, settings={"session.max_post": 3})


def test_a_user_folder_that_is_not_there_is_told_by_its_setting(tmp_path):
    with pytest.raises(ConfigError, match=rf"session\.user_folder: there is no folder {tmp_path}/gone$"):
        open_session(ScriptedModel([]), folder=tmp_path, settings={"session.user_folder": str(tmp_path / "gone")})


def test_an_unknown_plugin_is_told_with_its_neighbour(tmp_path):
    with pytest.raises(ConfigError, match="sql_pull_dat.*did you mean 'sql_pull_data'"):
        open_session(ScriptedModel([]), plugins=["sql_pull_dat"], folder=tmp_path)


def test_a_kernel_that_was_given_stays_open(tmp_path):
    kernel = FakeKernel(folder=tmp_path)
    with (
        ScriptedModel([plans("hi", to="User")]) as model,
        open_session(model, kernel=kernel, folder=tmp_path) as session,
    ):
        session.ask("hello")
        assert session.folder == kernel.folder

    assert not kernel.closed


PAGE = Path(__file__).parents[2] / "docs" / "settings.md"
PRICED = {"model.prices": {"small": {"prompt": 1, "completion": 2}}}
LOCAL = {"model.base_url": "http://127.0.0.1:9/v1", "session.max_dollars": 0.5}


@pytest.mark.parametrize("role", ["planner", "code_interpreter"])
def test_money_is_not_limited_for_a_model_whose_price_nobody_knows(tmp_path, role):
    settings = {**LOCAL, **PRICED, "model.name": "small-2026-03-17", f"{role}.model": "large"}

    with pytest.raises(ConfigError, match=r"max_dollars is 0\.5, but what 'large' costs .* model\.prices: \{large"):
        open_session(folder=tmp_path / "sessions", settings=settings)
    assert not (tmp_path / "sessions").exists()


def test_money_is_limited_for_models_with_a_price_and_those_that_say_themselves_what_they_cost(tmp_path):
    usage = Usage(prompt_tokens=300_000, completion_tokens=100_000, calls=1, dollars=0.5)
    costly = Completion(plans("one"), usage=usage)
    settings = {**LOCAL, **PRICED}
    with replay_server([costly]) as server, ScriptedModel([costly]) as scripted:
        priced = settings | {"model.base_url": server.base_url, "model.name": "small-2026-03-17"}
        for model, given in ((None, priced), (scripted, settings | {"model.name": "large"})):
            with (
                open_session(model, kernel=fake, folder=tmp_path, settings=given) as session,
                pytest.raises(RoundTooCostly, match=r"0\.5000 dollars .*`session\.max_dollars` is 0\.5"),
            ):
                session.ask("go")


def test_a_model_of_ours_that_was_handed_over_needs_a_price_too(tmp_path):
    model = OpenAIModel(ModelSettings(base_url="http://127.0.0.1:9/v1", name="large"))

    with pytest.raises(ConfigError, match="what 'large' costs is not known"):
        open_session(model, kernel=FakeKernel(folder=tmp_path), folder=tmp_path, settings={"session.max_dollars": 1})


def test_the_prices_that_are_shown_are_read_as_they_stand(tmp_path):
    (text,) = re.findall(r"```yaml\n(# tw_autogen.yaml\nmodel:.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "tw_autogen.yaml").write_text(text, encoding="utf-8")

    found = read_settings(project=tmp_path, environ={}).read("model", ModelSettings)

    assert found.price("gpt-5.4-mini") == Price(0.4, 1.6, 0.1)


@pytest.mark.parametrize("trust", [False, True])
@pytest.mark.parametrize("limited_by", ["settings", "file", "environment", "the folder"])
def test_what_a_users_limit_of_money_counts_with_is_not_said_by_a_folder_that_is_only_named(
    tmp_path, limited_by, trust
):
    limit, free = "session:\n  max_dollars: 2\n", "model:\n  prices: {large: {prompt: 0, completion: 0}}\n"
    said, own = tmp_path / "said", tmp_path / "tw-autogen"
    said.mkdir()
    own.mkdir()
    (said / "tw_autogen.yaml").write_text(free + limit * (limited_by == "the folder"), encoding="utf-8")
    (own / "config.yaml").write_text(limit * (limited_by == "file"), encoding="utf-8")
    read = read_settings(
        {"session.max_dollars": 2} if limited_by == "settings" else {},
        environ={
            "XDG_CONFIG_HOME": str(tmp_path),
            **({"TW_AUTOGEN_SESSION_MAX_DOLLARS": "2"} if limited_by == "environment" else {}),
        },
        project=said,
        trust=trust,
    )

    counts = trust or limited_by == "the folder"
    assert (read.read("model", ModelSettings).price("large") == Price(0, 0)) is counts
    assert [one.key for one in read.left_out] == ([] if counts else ["model.prices"])


@pytest.mark.parametrize(
    "wanted", ["local-7b", {"": "local-7b"}, {"Planner": "local-7b", "CodeInterpreter": "local-7b"}]
)
def test_a_model_is_given_by_its_name_on_the_server_of_the_settings(wanted, tmp_path):
    with (
        replay_server([plans("hello", to="User")]) as server,
        open_session(
            wanted,
            settings={"model.base_url": server.base_url},
            kernel=lambda folder: FakeKernel(lambda code: "", folder=folder),
            folder=tmp_path,
        ) as session,
    ):
        assert session.ask("hi").text == "hello"

    assert [request["model"] for request in server.requests] == ["local-7b"]


@pytest.mark.parametrize("wanted", ["", 3, {"Planner": None}])
def test_what_is_no_model_is_told_with_what_one_is(wanted, tmp_path):
    with pytest.raises(ConfigError, match="is no model; a model is an object with .complete."):
        open_session(wanted, folder=tmp_path)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="only POSIX has users of files")
@pytest.mark.parametrize("folder", [None, "/usr/sessions"])
def test_a_folder_in_which_nothing_can_be_made_is_an_error_that_names_a_way(folder, monkeypatch):
    monkeypatch.chdir("/usr")
    monkeypatch.setenv("HOME", "/nonexistent")
    model, root = ScriptedModel([]), os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        with pytest.raises(ConfigError, match=r"/usr/.*session-\w+: can't be made: .*: folder= or session\.workspace"):
            open_session(model, folder=folder)
    finally:
        if root:
            os.seteuid(0)
