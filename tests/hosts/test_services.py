"""Services around agents: remote calls, traces, logs, test doubles; and what must be installed."""

import asyncio
import importlib
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from tw_autogen.errors import HostError, ModelError
from tw_autogen.testing import codes, plans

autogen = pytest.importorskip("autogen", reason="the host is an extra; `make test` installs it")
TaskWeaverAgent = pytest.importorskip("tw_autogen.hosts.conversable").TaskWeaverAgent
install = pytest.importorskip("tw_autogen.hosts.conversable.autogen_import")
ROOT = Path(__file__).parents[2]


def test_the_hosts_remote_service_gets_one_answer_and_the_kernel_remembers(served, tmp_path):  # C41 C11 C29
    remote = pytest.importorskip("autogen.agentchat.remote", reason="this host has no remote service")
    config = served(
        plans("keep"), codes("kept = 7"), plans("Kept.", to="User"),
        plans("look"), codes("kept"), plans("It is 7.", to="User"),
    )  # fmt: skip

    async def ask(service, messages):
        request = remote.RequestMessage(messages=messages)
        return [answer async for answer in service(request)]

    with TaskWeaverAgent(llm_config=config, workspace=tmp_path) as worker:
        service = remote.AgentService(worker)
        first = [{"role": "user", "content": "keep seven"}]
        answers = asyncio.run(ask(service, first))
        assert [one.message["content"] for one in answers if one.message] == ["Kept."]
        assert not [one.streaming_text for one in answers if one.streaming_text]

        more = [*first, answers[-1].message, {"role": "user", "content": "what is it?"}]
        answers = asyncio.run(ask(service, more))

        assert answers[-1].message["content"] == "It is 7."
        assert "Result:\n7" in served.requests[-1]["messages"][-1]["content"]
        assert worker.open_session_count == 1


def test_the_hosts_test_agent_answers_in_the_models_place(served, agent, tmp_path):  # C41 C23
    testing = pytest.importorskip("autogen.testing", reason="this host has no TestAgent")
    with TaskWeaverAgent(llm_config=served(), workspace=tmp_path) as worker:
        with testing.TestAgent(worker, [plans("compute"), codes("6 * 7"), plans("It is 42.", to="User")]):
            result = agent().initiate_chat(worker, message="what is 6*7?", max_turns=1, silent=True)

        assert result.summary == "It is 42."
        assert served.requests == []


GIF = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
"""Of one pixel."""


@pytest.mark.parametrize(("own", "said"), [({}, {"seconds": 0.05}), ({"seconds": 0.05}, {})])
def test_a_client_that_never_answers_is_not_waited_for_without_an_end(own, said):
    model = pytest.importorskip("tw_autogen.hosts.conversable.model")
    gate = threading.Event()
    client = SimpleNamespace(create=lambda **request: gate.wait(60))
    agent = SimpleNamespace(name="worker", client=client, client_cache=None)

    with pytest.raises(ModelError, match=r"the client of worker: no answer within 0\.05 s"):
        model.HostModel(agent, **own).complete([{"role": "user", "content": "hello"}], **said)

    gate.set()


@pytest.mark.parametrize("content", [[None], []])
def test_an_answer_without_words_is_an_empty_one_and_no_safeguard_is_blamed(content):
    model = pytest.importorskip("tw_autogen.hosts.conversable.model")
    answer = SimpleNamespace(usage=None, cost=0, model="m")
    client = SimpleNamespace(create=lambda **_: answer, extract_text_or_completion_object=lambda _: content)
    agent = SimpleNamespace(name="worker", client=client, client_cache=None)

    assert model.HostModel(agent).complete([{"role": "user", "content": "hello"}]).words == ""


@pytest.mark.parametrize(
    ("url", "seen", "kind"),
    [
        ("https://a.example/b.gif", "", "google"),
        ("data:image/png;base64,iVBORw0K", "data:image/png;base64,iVBORw0K", "bedrock"),
        ("data:image/png;base64,iVBORw0K", "data:image/png;base64,iVBORw0K", ""),
        ("https://a.example/b.gif", "https://a.example/b.gif", ""),
        (f"data:image/gif;base64,{GIF}", "data:image/png;base64,iVBOR", ""),
        ("data:image/gif;base64,R0lGODlh", "", ""),
        (f"data:image/gif;base64,{GIF}/../../secret.png", "", ""),
        ("secret.png", "", ""),
        ("file:///secret.png", "", ""),
    ],
)
def test_a_client_gets_no_image_that_it_may_take_for_a_path(url, seen, kind):
    model = pytest.importorskip("tw_autogen.hosts.conversable.model")
    pytest.importorskip("PIL")
    asked = []
    answer = SimpleNamespace(usage=None, cost=0, model="m")
    client = SimpleNamespace(
        _config_list=[{"api_type": kind}] if kind else [{}],
        create=lambda **request: asked.extend(request["messages"]) or answer,
        extract_text_or_completion_object=lambda _: ["a word"],
    )
    agent = SimpleNamespace(name="worker", client=client, client_cache=None)
    parts = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": url}}]

    model.HostModel(agent).complete([{"role": "user", "content": parts}])

    text, image = asked[0]["content"]
    assert text == parts[0]
    assert image["image_url"]["url"].startswith(seen) if seen else "can't be shown" in image["text"]


def test_a_round_is_one_trace_with_its_calls(served, agent, tmp_path):  # C41 C33
    telemetry = pytest.importorskip("autogen.opentelemetry", reason="this host, or the SDK, has no telemetry")
    sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="opentelemetry-sdk is not installed")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    exporter, provider = memory.InMemorySpanExporter(), sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(exporter))
    config = served(plans("compute"), codes("6 * 7"), plans("It is 42.", to="User"))
    with TaskWeaverAgent(llm_config=config, workspace=tmp_path) as worker:
        telemetry.instrument_llm_wrapper(tracer_provider=provider)
        telemetry.instrument_agent(worker, tracer_provider=provider)
        agent().initiate_chat(worker, message="what is 6*7?", max_turns=1, silent=True)

    spans = exporter.get_finished_spans()
    assert len([span for span in spans if span.name.startswith("chat")]) == 3
    assert len({span.context.trace_id for span in spans}) == 1


def test_safeguards_of_the_host_see_inner_calls_and_may_block_them(served, agent, tmp_path):  # C26
    with TaskWeaverAgent(llm_config=served(plans("Hello.", to="User")), workspace=tmp_path) as worker:
        if "safeguard_llm_inputs" not in worker.hook_lists:
            pytest.skip("this host has no safeguards")
        seen = []
        worker.register_hook("safeguard_llm_inputs", lambda messages: seen.append(messages) or messages)
        agent().initiate_chat(worker, message="hello", max_turns=1, silent=True)
        worker.register_hook("safeguard_llm_inputs", lambda messages: None)
        said = agent().initiate_chat(worker, message="hello", max_turns=1, silent=True).summary

        assert "You are the Planner" in seen[0][0]["content"]
        assert "a safeguard of TaskWeaver blocked a call of its model" in said


def test_importing_the_package_brings_in_no_host():  # C43
    code = "import sys, tw_autogen; print([name for name in sys.modules if name.partition('.')[0] == 'autogen'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout == "[]\n"


READS = """
import sys
records = []
def note(event, arguments):
    if event == "open" and str(arguments[0]).endswith(("RECORD", "METADATA", "top_level.txt")):
        records.append(arguments[0])
import autogen
sys.addaudithook(note)
from tw_autogen import TaskWeaverAgent
print(len(records))
"""


def test_the_import_of_the_agent_reads_the_records_of_no_more_distributions_than_bring_an_autogen():
    done = subprocess.run([sys.executable, "-c", READS], capture_output=True, text=True, timeout=120, check=True)

    assert int(done.stdout) <= 8  # the names and the files of four, looked at for the import and for the version


@pytest.mark.parametrize("other", ["ag2", "pyautogen"])
def test_a_second_distribution_with_the_package_is_found(tmp_path, other):
    for name in ("autogen-agentchat", other):
        there = tmp_path / f"{name.replace('-', '_')}-0.2.dist-info"
        there.mkdir()
        (there / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.2\n", encoding="utf-8")
        (there / "RECORD").write_text("autogen/__init__.py,,\nautogen/agentchat/agent.py,,\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", "from tw_autogen import TaskWeaverAgent"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert re.search(rf"HostError: the distributions .*{other}.* have overwritten one another's files", done.stderr)


def test_two_distributions_in_one_folder_are_one_clear_error():  # C42
    error = install.mixed_error(["ag2", "autogen"])

    assert isinstance(error, HostError)
    assert "ag2, autogen have overwritten one another's files" in str(error)
    assert error.command == 'pip uninstall -y ag2 autogen && pip install "tw-autogen[autogen]"'


@pytest.mark.parametrize(
    ("pyautogen", "message"),
    [("", "no package `autogen` is installed"), ("0.10.0", "pyautogen 0.10.0 brings no package `autogen`")],
)
def test_a_missing_host_is_one_clear_error(pyautogen, message):
    error = install.missing_error(pyautogen)

    assert message in str(error)
    assert error.command == 'pip install "tw-autogen[autogen]"'


@pytest.mark.parametrize("name", ["a2a_server", "ag_ui_stream"])
def test_a_service_without_its_packages_is_an_error_that_names_the_extra(served, tmp_path, monkeypatch, name):
    for module in ("autogen.a2a", "autogen.ag_ui"):
        monkeypatch.setitem(sys.modules, module, None)
    serve = getattr(importlib.import_module("tw_autogen.hosts.conversable"), name)

    with TaskWeaverAgent(llm_config=served(), workspace=tmp_path) as worker, pytest.raises(HostError) as error:
        serve(worker)

    assert error.value.command == 'pip install "tw-autogen[service]"'
