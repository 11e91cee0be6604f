"""Where the parts are put together: which model, which kernel, and what is left behind when a part can't be made."""

import pytest

from tw_autogen import open_session
from tw_autogen.errors import ConfigError, NoModelError, SettingsError
from tw_autogen.kernel import Execution
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
