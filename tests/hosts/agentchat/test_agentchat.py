"""agentchat's runs, streams, teams, states and components; models are recorded replies, everything else is real."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from tw_autogen.errors import CallCycleError, ConfigError
from tw_autogen.testing import ScriptedModel, codes, plans, replay_server

agentchat = pytest.importorskip("autogen_agentchat", reason="the host is an extra: tw-autogen[agentchat]")
from autogen_agentchat.agents import AssistantAgent  # noqa: E402
from autogen_agentchat.base import Response, TaskResult  # noqa: E402
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination  # noqa: E402
from autogen_agentchat.messages import (  # noqa: E402
    CodeExecutionEvent,
    CodeGenerationEvent,
    HandoffMessage,
    MultiModalMessage,
    TextMessage,
    ThoughtEvent,
)
from autogen_agentchat.teams import RoundRobinGroupChat, SelectorGroupChat  # noqa: E402
from autogen_agentchat.tools import AgentTool  # noqa: E402
from autogen_core import CancellationToken, Image  # noqa: E402
from autogen_core.models import UserMessage  # noqa: E402
from autogen_ext.models.openai import OpenAIChatCompletionClient  # noqa: E402
from autogen_ext.models.replay import ReplayChatCompletionClient  # noqa: E402

from tw_autogen.hosts.agentchat import TaskWeaverAgent, agent_plugin, agent_role  # noqa: E402

SIX_TIMES_SEVEN = (plans("compute 6*7"), codes("6 * 7"), plans("It is 42.", to="User"))
INFO = {"vision": True, "function_calling": True, "json_output": True, "family": "unknown", "structured_output": False}


def run(work):
    return asyncio.run(asyncio.wait_for(work, 90))


async def closing(agent, work):
    try:
        return await work
    finally:
        await agent.close()


def test_a_run_gives_the_answer_and_what_it_cost(worker):  # C50
    agent = worker(*SIX_TIMES_SEVEN)
    result = run(closing(agent, agent.run(task="what is 6*7?")))
    answer = result.messages[-1]

    assert answer.content == "It is 42."
    assert answer.source == "TaskWeaver"
    assert answer.models_usage.prompt_tokens > 0
    assert answer.metadata["stop"] == "Completed"
    assert len(answer.metadata["posts"].split()) == 4


def test_plan_code_and_outcome_are_streamed_as_the_hosts_own_events_while_work_goes_on(tmp_path):  # C50
    gate = threading.Event()

    def last(messages):
        gate.wait(60)
        return plans("It is 42.", to="User")

    agent = TaskWeaverAgent(model=ScriptedModel([*SIX_TIMES_SEVEN[:2], last]), workspace=tmp_path)

    async def main():
        seen = []
        async for message in agent.run_stream(task="what is 6*7?"):
            seen.append(message)
            if isinstance(message, CodeExecutionEvent):
                gate.set()  # the outcome is here although the answer is not
        await agent.close()
        return seen

    seen = run(main())

    assert [type(one) for one in seen] == [
        TextMessage, ThoughtEvent, CodeGenerationEvent, CodeExecutionEvent, ThoughtEvent, TextMessage, TaskResult,
    ]  # fmt: skip
    assert seen[2].code_blocks[0].code == "6 * 7"
    assert (seen[3].result.exit_code, seen[3].result.output) == (0, "42")
    assert seen[1].content.startswith("Planner to CodeInterpreter: ")


def test_the_loop_stays_free_and_the_incoming_list_may_be_emptied(tmp_path):  # C50
    asked, gate = threading.Event(), threading.Event()

    def reply(messages):
        asked.set()
        gate.wait(60)
        return plans(messages[-1]["content"], to="User")

    agent = TaskWeaverAgent(model=ScriptedModel([reply]), workspace=tmp_path)

    async def main():
        messages = [TextMessage(content="hello", source="user")]
        work = asyncio.create_task(agent.on_messages(messages, CancellationToken()))
        await asyncio.to_thread(asked.wait, 60)
        messages.clear()
        gate.set()
        response = await work
        await agent.close()
        return response

    assert "hello" in run(main()).chat_message.content


def test_a_state_is_json_and_brings_back_what_was_said(worker, tmp_path):  # C50
    first, model = worker(plans("Kept.", to="User")), ScriptedModel([plans("Seven.", to="User")])
    second = TaskWeaverAgent(model=model, workspace=tmp_path)

    async def main():
        await first.run(task="keep seven")
        state = json.loads(json.dumps(await first.save_state()))
        await first.close()
        await second.load_state(state)
        await second.run(task="what did I say?")
        await second.close()

    run(main())
    told = [one["content"] for one in model.calls[0][1:]]

    assert told[0] == "From: User\nkeep seven"
    assert "Kept." in told[1]
    assert "variables of earlier requests are gone" in told[2]


def test_what_is_no_state_is_refused(worker):
    with pytest.raises(ConfigError, match="expected a state of type 'TaskWeaverAgentState'"):
        run(worker().load_state({"type": "Other"}))


def test_cancelling_stops_the_cell_and_the_next_run_finds_the_variables(tmp_path):  # C50
    model = ScriptedModel(
        [
            plans("loop"),
            codes("kept = 7\nprint('begun', flush=True)\nwhile True: pass"),
            plans("look"),
            codes("kept"),
            plans("7", to="User"),
        ]
    )
    began = threading.Event()
    agent = TaskWeaverAgent(
        model=model, workspace=tmp_path, handlers=[lambda e: began.set() if type(e).__name__ == "CellOutput" else None]
    )

    async def main():
        token = CancellationToken()
        work = asyncio.create_task(agent.run(task="loop", cancellation_token=token))
        await asyncio.to_thread(began.wait, 60)
        token.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        await agent.run(task="look")
        message = agent.session.rounds[-1].posts[2].message
        await agent.close()
        return message

    assert "Result:\n7" in run(main())


def test_a_round_that_fails_is_told_and_an_error_of_the_client_is_raised(worker):
    agent = worker(plans("a"), codes("1"), settings={"session.max_posts": 2})
    said = run(closing(agent, agent.run(task="go"))).messages[-1].content
    assert said.startswith("I could not answer this request: ")

    agent = worker()
    with pytest.raises(ValueError, match="No more mock responses"):
        run(closing(agent, agent.run(task="go")))


def test_words_of_all_kinds_of_messages_are_read(tmp_path):
    model = ScriptedModel([plans("Seen.", to="User")])
    agent = TaskWeaverAgent(model=model, workspace=tmp_path)
    dot = Image.from_uri(
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
    )
    messages = [
        TextMessage(content="look", source="ann"),
        MultiModalMessage(content=["at this", dot], source="bob"),
        HandoffMessage(
            content="yours", target="TaskWeaver", source="cid", context=[UserMessage(content="the context", source="x")]
        ),
    ]
    run(closing(agent, agent.on_messages(messages, CancellationToken())))
    text, image = model.calls[0][-1]["content"]

    assert all(words in text["text"] for words in ("ann: look", "bob: at this", "cid: yours", "the context"))
    assert image["image_url"]["url"].startswith("data:image/png;base64,")


def test_files_come_with_the_first_request(worker, tmp_path):
    (tmp_path / "sales.csv").write_text("day,revenue\n1,20\n")
    agent = worker(plans("I see it.", to="User"), files=[tmp_path / "sales.csv"])

    async def main():
        await agent.run(task="see it?")
        there = (agent.session.folder / "sales.csv").exists()
        await agent.close()
        return there

    assert run(main())


def test_it_sits_in_a_round_robin_team(worker):
    agent = worker(plans("It is 42. TERMINATE", to="User"))
    other = AssistantAgent("checker", ReplayChatCompletionClient(["Please compute.", "Thanks."]))
    team = RoundRobinGroupChat([other, agent], termination_condition=TextMentionTermination("TERMINATE"))
    result = run(closing(agent, team.run(task="what is 6*7?")))

    assert [message.source for message in result.messages] == ["user", "checker", "TaskWeaver"]


def test_a_selector_reads_what_it_can_do(worker):
    agent = worker(plans("Done.", to="User"))
    chooser = ReplayChatCompletionClient(["TaskWeaver"])
    other = AssistantAgent("other", ReplayChatCompletionClient(["hm"]), description="Does nothing.")
    team = SelectorGroupChat([agent, other], chooser, termination_condition=MaxMessageTermination(2))
    result = run(closing(agent, team.run(task="do data work")))

    assert result.messages[-1].content == "Done."
    assert agent.description in str(chooser.create_calls[0]["messages"])


def test_a_team_with_it_sits_in_a_team(worker):
    agent = worker(plans("It is 42.", to="User"))
    inner = RoundRobinGroupChat([agent], termination_condition=MaxMessageTermination(2), name="inner")
    outer = RoundRobinGroupChat([inner], termination_condition=MaxMessageTermination(2))
    result = run(closing(agent, outer.run(task="what is 6*7?")))

    assert "It is 42." in result.messages[-1].to_text()


def test_it_is_a_tool_of_another_agent(worker):
    from autogen_core import FunctionCall
    from autogen_core.models import CreateResult, RequestUsage

    agent = worker(plans("It is 42.", to="User"))
    call = CreateResult(
        content=[FunctionCall(id="1", name="TaskWeaver", arguments='{"task": "what is 6*7?"}')],
        usage=RequestUsage(prompt_tokens=1, completion_tokens=1),
        finish_reason="function_calls",
        cached=False,
    )
    lead = AssistantAgent(
        "lead",
        ReplayChatCompletionClient([call], model_info=INFO),
        tools=[AgentTool(agent, return_value_as_last_message=True)],
    )
    result = run(closing(agent, lead.run(task="ask your analyst")))

    assert "It is 42." in result.messages[-1].to_text()


def test_it_goes_into_a_component_and_back(tmp_path):  # C50
    client = OpenAIChatCompletionClient(model="m", api_key="none", base_url="http://127.0.0.1:9/v1", model_info=INFO)
    agent = TaskWeaverAgent(
        "analyst",
        client,
        plugins=["anomaly_detection"],
        roles=["planner", "code_interpreter"],
        workspace=tmp_path,
        settings={"session.max_posts": 9},
    )
    component = agent.dump_component()
    again = TaskWeaverAgent.load_component(json.loads(component.model_dump_json()))

    assert component.provider == "tw_autogen.hosts.agentchat.TaskWeaverAgent"
    assert isinstance(again, TaskWeaverAgent)
    assert again.session is None
    for one in ("name", "description", "plugins", "roles", "files", "workspace", "settings"):
        assert again.dump_component().config[one] == component.config[one]


def test_a_file_is_written_down_by_its_name_not_by_what_a_link_of_that_name_leads_to(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "key.csv").write_text("SECRET", encoding="utf-8")
    (tmp_path / "here/sales.csv").symlink_to("../key.csv")
    monkeypatch.chdir(tmp_path / "here")
    client = OpenAIChatCompletionClient(model="m", api_key="none", base_url="http://127.0.0.1:9/v1", model_info=INFO)
    component = TaskWeaverAgent("analyst", client, files=["sales.csv"]).dump_component()

    assert component.config["files"] == [str(tmp_path / "here/sales.csv")]
    assert TaskWeaverAgent.load_component(component).dump_component().config["files"] == component.config["files"]


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"handlers": [print]}, "handlers"),
        ({"kernel": lambda folder: None}, "kernel"),
        ({"roles": [lambda: None]}, "roles"),
    ],
)
def test_what_can_not_be_written_down_is_named(worker, more, named):
    with pytest.raises(ConfigError, match=f"can't be written down as a component, because of: {named}"):
        worker(**more).dump_component()


def test_without_a_model_it_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="give model_client="):
        TaskWeaverAgent(workspace=tmp_path)


def test_a_client_over_http_is_asked_on_the_runs_loop(tmp_path):
    with replay_server(list(SIX_TIMES_SEVEN)) as server:
        client = OpenAIChatCompletionClient(
            model="recording", api_key="none", base_url=server.base_url, model_info=INFO
        )
        agent = TaskWeaverAgent("analyst", client, workspace=tmp_path)

        async def main():
            result = await agent.run(task="what is 6*7?")
            await agent.close()
            await client.close()
            return result.messages[-1].content

        assert run(main()) == "It is 42."
        assert server.requests[0]["response_format"] == {"type": "json_object"}


# Its agents and teams as plugins and as roles.


def test_code_asks_an_agent_and_a_team(tmp_path):
    lawyer = AssistantAgent(
        "lawyer", ReplayChatCompletionClient(["It is legal.", "Quite."]), description="Knows the law."
    )
    panel = RoundRobinGroupChat(
        [AssistantAgent("judge", ReplayChatCompletionClient(["So be it."]))],
        termination_condition=MaxMessageTermination(2), name="panel", description="Decides.",
    )  # fmt: skip
    model = ScriptedModel(
        [plans("ask"), codes("print(lawyer('is it?'), lawyer('really?'), panel('so?'))"), plans("Done.", to="User")]
    )
    agent = TaskWeaverAgent(model=model, workspace=tmp_path, plugins=[agent_plugin(lawyer), agent_plugin(panel)])

    async def main():
        await agent.run(task="ask them")
        message = agent.session.rounds[0].posts[2].message
        await agent.close()
        return message

    assert "Printed:\nIt is legal. Quite. So be it." in run(main())


class Later:
    """Stands for an agent that does not exist yet: one that calls itself can't be made otherwise."""

    name, description = "me", "Calls itself."

    def __init__(self):
        self.agent = None

    async def run(self, **how):
        return await self.agent.run(**how)

    async def reset(self):
        return None


def test_an_agent_can_not_be_called_from_its_own_work(tmp_path):
    later = Later()
    code = "try:\n    print(me('again'))\nexcept Exception as error:\n    print(error)"
    model = ScriptedModel([plans("ask"), codes(code), plans("Done.", to="User")])
    later.agent = TaskWeaverAgent("me", model=model, workspace=tmp_path, plugins=[agent_plugin(later)])
    run(closing(later.agent, later.agent.run(task="go")))

    assert "me → me → me: an agent can't be called from its own work" in model.calls[2][-1]["content"]


class InAPool(Later):
    """Calls it in a pool, on a loop of its own, and hides what goes wrong."""

    name = "tool"

    async def run(self, **how):
        def work():
            with contextlib.suppress(CallCycleError):
                asyncio.run(self.agent.run(task="again"))

        await asyncio.get_running_loop().run_in_executor(None, work)
        return TaskResult(messages=[TextMessage(content="all is well", source="tool")])


def test_a_ring_over_a_thread_pool_is_refused_and_does_not_wait_for_itself(tmp_path):
    later = InAPool()
    model = ScriptedModel([plans("ask", to="tool")])
    later.agent = TaskWeaverAgent("me", model=model, workspace=tmp_path, roles=["planner", agent_role(later)])
    result = run(closing(later.agent, later.agent.run(task="go")))

    assert "me → tool → me: an agent can't be called from its own work" in result.messages[-1].content


def test_nothing_else_of_the_package_and_no_other_host_is_needed():
    code = (
        "import sys, tw_autogen.hosts.agentchat; "
        "print([n for n in sys.modules if n.partition('.')[0] == 'autogen' or n == 'tw_autogen.hosts.conversable'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout == "[]\n"


def test_the_response_is_the_last_of_the_stream(worker):
    agent = worker(plans("Hello.", to="User"))

    async def main():
        messages = [TextMessage(content="hi", source="user")]
        seen = [one async for one in agent.on_messages_stream(messages, CancellationToken())]
        await agent.close()
        return seen

    assert isinstance(run(main())[-1], Response)


def test_the_example_runs_as_it_stands_and_is_short():
    example = Path(__file__).parents[3] / "examples" / "agentchat_team.py"
    replies = [
        plans("sum by region", then="User"),
        codes("import pandas as pd\nprint('Most:', pd.read_csv('sales.csv').groupby('region').units.sum().idxmax())"),
        "The west did best!",
    ]
    with replay_server(replies) as server, tempfile.TemporaryDirectory() as folder:
        where = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none", "OPENAI_MODEL": "recording"}
        done = subprocess.run(
            [sys.executable, str(example)],
            cwd=folder, env={**os.environ, **where}, capture_output=True, text=True, timeout=90, check=False,
        )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert "CodeGenerationEvent (analyst)" in done.stdout
    assert "The west did best!" in done.stdout
    assert example.read_text().count("\n") <= 60


def test_a_project_brings_settings_plugins_and_who_takes_part(worker, tmp_path):
    project = tmp_path / "project"
    (project / "plugins").mkdir(parents=True)
    config = {"session.roles": ["code_interpreter"], "session.max_internal_chat_round_num": 9}
    (project / "taskweaver_config.json").write_text(json.dumps(config), encoding="utf-8")
    code = "from tw_autogen.plugin import plugin\n@plugin\ndef thrice(x: int) -> int:\n    'Do it.'\n    return x * 3\n"
    (project / "plugins" / "mine.py").write_text(code, encoding="utf-8")
    agent = worker(codes("print('It is', thrice(14))"), project=project)

    result = run(closing(agent, agent.run(task="three times 14?")))

    assert "It is 42" in result.messages[-1].content
    written = agent.dump_component().config
    assert (written["project"], "roles" in written) == (str(project), False)
    assert TaskWeaverAgent.load_component(agent.dump_component()).dump_component().config == written


def test_relative_paths_in_settings_mean_the_same_where_the_agent_is_loaded_again(worker, tmp_path, monkeypatch):
    for name in ("mine", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "mine" / "own.yaml").write_text("base: strict\nmodules: {remove: [json]}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path / "mine")
    settings = {"code_interpreter.policy": "own.yaml", "session.roles": ["code_interpreter"]}
    written = worker(*[codes("import json")] * 3, settings=settings).dump_component()
    monkeypatch.chdir(tmp_path / "other")

    agent = TaskWeaverAgent.load_component(written)
    result = run(closing(agent, agent.run(task="whose?")))

    assert "import of 'json' is not allowed" in result.messages[-1].content
    assert agent.dump_component().config == written.config
    written.config["made_in"] = str(tmp_path / "gone")
    (tmp_path / "other" / "own.yaml").write_text("base: 'off'\n", encoding="utf-8")
    agent = TaskWeaverAgent.load_component(written)
    with pytest.raises(ConfigError, match=r"gone.own\.yaml"):
        run(closing(agent, agent.run(task="whose?")))


def test_a_role_that_the_folders_settings_name_and_nobody_has_is_told_at_once(worker, tmp_path, monkeypatch):
    (tmp_path / "taskweaver_config.json").write_text('{"session.roles": ["planner", "weather"]}', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"weather: no shipped role .*`session\.roles` in .*taskweaver_config"):
        worker(trust=True)


def test_a_project_that_is_not_there_and_servers_that_can_not_be_are_told_at_once(worker, tmp_path):
    with pytest.raises(ConfigError, match=r"project: there is no folder .*none"):
        worker(project=tmp_path / "none")
    with pytest.raises(ConfigError, match="mcp_servers"):
        worker(mcp_servers={"mcpServers": {"weather": {}}})


def test_tools_of_mcp_servers_are_plugins(worker, tmp_path):
    pytest.importorskip("mcp", reason="needs the extra `mcp`")
    server = Path(__file__).parents[2] / "plugin" / "mcp" / "server.py"
    servers = {"mcpServers": {"weather": {"command": sys.executable, "args": [str(server), str(tmp_path / "pid")]}}}
    (tmp_path / "mcp.json").write_text(json.dumps(servers), encoding="utf-8")
    code = codes("print(report(city='Bonn')['celsius'])")
    agent = worker(code, roles=["code_interpreter"], mcp_servers=tmp_path / "mcp.json")

    result = run(closing(agent, agent.run(task="how warm is it in Bonn?")))

    assert "21.5" in result.messages[-1].content
    assert agent.dump_component().config["mcp_servers"] == str(tmp_path / "mcp.json")
    with pytest.raises(ConfigError, match="because of: mcp_servers, which is no file"):
        worker(mcp_servers=servers).dump_component()
