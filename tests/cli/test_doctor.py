import json
import os
import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner

from tw_autogen.cli import main
from tw_autogen.cli.doctor_checks import check_model
from tw_autogen.cli.options import Options
from tw_autogen.kernel import KernelSettings
from tw_autogen.kernel.sandbox_levels import describe_sandbox
from tw_autogen.testing import plans, replay_server

FITS = plans("count the rows of sales.csv")


@pytest.fixture
def bare(environ, tmp_path, monkeypatch):
    """Take away what whoever runs the tests has configured."""
    monkeypatch.chdir(tmp_path)
    for name in set(os.environ) - set(environ):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def doctor(environ, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = {key: environ.get(key) for key in {*environ, *os.environ}}  # None takes a variable away
    return lambda *args: CliRunner().invoke(main, ["doctor", *args], env=settings)


def checks(result):
    return {check["name"]: check for check in json.loads(result.stdout)["checks"]}


def test_without_a_model_all_else_is_checked_and_the_model_is_only_a_warning(doctor):
    result = doctor("--json")
    found = checks(result)

    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["ok"] is True
    assert found["kernel"]["state"] == "ok"
    assert "1 + 1 in" in found["kernel"]["found"]
    assert found["model"]["state"] == "warn"
    assert "export OPENAI_API_KEY" in found["model"]["remedy"]
    assert found["python"]["found"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}.")
    for name in ("httpx", "ipykernel", "jupyter_client", "pandas"):
        assert found[name]["state"] == "ok"


def model(**options):
    return {check.name: check for check in check_model(Options(**options))}


@pytest.mark.usefixtures("bare")
def test_a_model_that_keeps_the_format_is_ok_and_its_origin_is_named():
    with replay_server([FITS, FITS, plans("Paris.", to="User")]) as server:
        found = model(base_url=server.base_url)

    assert [check.state for check in found.values()] == ["ok"] * 3
    assert found["model"].found.startswith(f"recording at {server.base_url} (base_url from --base-url")
    assert "name from the default" in found["model"].found
    assert found["model list"].found == "recording"
    assert found["model format"].found == "kept the Planner's format 3 of 3 times"
    assert len(server.requests) == 3


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    ("replies", "state", "words"),
    [([FITS, "I would count them.", FITS], "warn", "2 of 3"), (["Sure!"] * 3, "fail", "0 of 3")],
)
def test_a_model_that_does_not_keep_the_format_is_told_apart(replies, state, words):
    with replay_server(replies) as server:
        found = model(base_url=server.base_url)["model format"]

    assert found.state == state
    assert words in found.found
    assert "first problem: " in found.remedy


@pytest.mark.usefixtures("bare")
def test_a_model_that_the_server_does_not_have_is_a_warning_that_names_those_it_has():
    with replay_server([FITS] * 3) as server:
        found = model(base_url=server.base_url, model="typo")["model list"]

    assert (found.state, found.found, found.remedy) == ("warn", "recording", "typo is not among them: --model NAME")


@pytest.mark.usefixtures("bare")
def test_a_server_that_does_not_answer_fails_with_a_remedy():
    with replay_server([]) as server:
        address = server.base_url

    (found,) = model(base_url=address).values()

    assert (found.state, found.remedy) == ("fail", "start the server, or correct --base-url")


@pytest.mark.usefixtures("bare")
def test_a_setting_that_does_not_exist_is_named():
    (found,) = model(sets=("model.nam=x",)).values()

    assert found.state == "fail"
    assert "did you mean 'model.name'?" in found.found


def test_a_kernel_that_does_not_start_fails_with_the_command_that_mends_it(doctor):
    result = doctor("--set", "kernel.python=/nosuch/python")

    assert result.exit_code == 1
    assert "✗ fail kernel" in result.stdout
    assert "pip install --upgrade ipykernel" in result.stdout


def test_what_a_taskweaver_project_brings_and_what_of_it_has_no_effect_is_named(doctor, tmp_path):
    (tmp_path / "plugins").mkdir()
    for name, python in {"twice": "", "calls": "from taskweaver.plugin.utils import make_api_call\n"}.items():
        python += f"from taskweaver.plugin import register_plugin\n@register_plugin\ndef {name}(): ...\n"
        (tmp_path / "plugins" / f"{name}.py").write_text(python)
        (tmp_path / "plugins" / f"{name}.yaml").write_text(f"name: {name}\ndescription: Do it.\n")
    (tmp_path / "taskweaver_config.json").write_text('{"tracing.enabled": true, "llm.api_type": "azure"}')

    def found(*args):
        said = json.loads(doctor("--json", *args).stdout)["checks"]
        return [(check["state"], check["found"]) for check in said if check["name"] == "project"]

    config = tmp_path / "taskweaver_config.json"
    plugins, left_out, *keys = found("-C", ".")
    assert plugins == ("ok", f"plugins of {tmp_path}: twice")
    assert "calls imports taskweaver.plugin.utils, which has no counterpart here" in left_out[1]
    assert keys == found()
    assert keys[0] == ("warn", f"{config}: without meaning here: llm.api_type, tracing.enabled")
    assert keys[1][1].startswith(f"{config}: llm.api_type: any OpenAI-compatible server is named by `model.base_url`")


@pytest.fixture
def doctor_with(command, environ, tmp_path):
    """Run it where distributions of these names and versions own a module."""

    def run(module, *distributions):
        for name in distributions:
            distribution, _, version = name.rpartition("-")
            folder = tmp_path / "site" / f"{distribution.replace('-', '_')}-{version}.dist-info"
            folder.mkdir(parents=True)
            (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
            (folder / "top_level.txt").write_text(f"{module}\n")
        path = os.pathsep.join([str(tmp_path / "site"), environ["PYTHONPATH"]])
        return subprocess.run(
            [*command, "doctor", "--no-color"],
            env={**environ, "PYTHONPATH": path}, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8",
            timeout=60, check=False,
        )  # fmt: skip

    return run


def test_two_distributions_that_own_autogen_are_found(doctor_with):
    ran = doctor_with("autogen", "ag2-0.14.0", "autogen-0.14.1")

    assert ran.returncode == 1, ran.stderr
    assert "✗ fail autogen          owned by ag2 and autogen, which overwrite each other's files" in ran.stdout
    assert 'pip uninstall -y ag2 autogen && pip install "tw-autogen[autogen]"' in ran.stdout


def test_agentchat_is_a_host_that_is_installed(doctor_with):
    ran = doctor_with("autogen_agentchat", "autogen-agentchat-9.9.9")

    assert "✓ ok   autogen          autogen-agentchat 9.9.9" in ran.stdout, ran.stderr
    assert "only TaskWeaverAgent needs it" not in ran.stdout


def test_it_says_which_sandbox_stands(doctor):
    found = checks(doctor("--json"))["sandbox"]

    assert found["state"] == "ok"
    assert found["found"].endswith("no network")


def test_without_a_sandbox_it_warns(doctor):
    found = checks(doctor("--json", "--set", "kernel.sandbox=off"))["sandbox"]

    assert found["state"] == "warn"
    assert "code may do what this user may do" in found["found"]


@pytest.mark.skipif(sys.platform != "linux", reason="there is no sandbox yet")
def test_where_no_sandbox_can_stand_it_fails_and_says_what_would_raise_one(environ, tmp_path):
    settings = {**environ, "PATH": str(tmp_path)}
    command = [sys.executable, "-m", "tw_autogen.cli", "doctor", "--json", "--set", "kernel.sandbox=bubblewrap"]

    done = subprocess.run(command, env=settings, cwd=tmp_path, capture_output=True, text=True, timeout=100)

    assert done.returncode == 1, done.stderr
    found = checks(done)
    assert found["sandbox"]["state"] == "fail"
    assert (
        found["sandbox"]["found"] == "no sandbox can be set up here (bubblewrap: no program bwrap), so no code is run."
    )
    assert found["sandbox"]["remedy"].startswith("the package bubblewrap, whose program bwrap may make namesp")
    assert "kernel" not in found


_NO_MORE_NAMESPACES = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
"""Forbids further user namespaces in the user namespace that it runs in, and nowhere else."""


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("bwrap") is None, reason="bubblewrap is not here")
def test_where_no_user_namespace_can_be_made_bubblewrap_fails_with_its_own_words(environ, tmp_path):
    enter = ["unshare", "--user", "--map-root-user", "--mount-proc", "--pid", "--fork"]
    enter += ["sh", "-c", _NO_MORE_NAMESPACES, "sh"]
    if subprocess.run([*enter, "true"], capture_output=True, timeout=60, check=False).returncode:
        pytest.skip("no user namespace can be made here to try it in")
    command = [*enter, sys.executable, "-m", "tw_autogen.cli", "doctor", "--json", "--set", "kernel.sandbox=bubblewrap"]

    done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)

    assert done.returncode == 1, done.stderr
    found = checks(done)
    assert found["sandbox"]["state"] == "fail"
    assert "no sandbox can be set up here (bubblewrap: bwrap: " in found["sandbox"]["found"]
    assert "kernel" not in found


@pytest.mark.parametrize(
    ("allowed", "words"), [(True, "network allowed, with the host's own loopback"), (False, "no network")]
)
def test_the_sandbox_s_line_says_what_an_open_network_reaches(allowed, words):
    assert f"; {words}" in describe_sandbox("namespaces", KernelSettings(allow_network=allowed))
