"""Servers of the host around an agent: kernels are found by the ids of their protocols."""

import asyncio
import contextlib
import importlib
import json
import os
import sys
import threading
import uuid
from importlib.metadata import version

import pytest

from tw_autogen import Post, Role, open_session
from tw_autogen.errors import ConfigError, RoundError
from tw_autogen.testing import ScriptedModel, plans

pytest.importorskip("autogen", reason="the host is an extra; `make test` installs it")
conversable = pytest.importorskip("tw_autogen.hosts.conversable")
with_context = pytest.importorskip("tw_autogen.hosts.conversable.group_functions").with_context


class Counts(Role):
    """Stands for a kernel: one for each session, and counts what it is asked."""

    name, intro, count = "Counts", "Counts.", 0

    def reply(self, memory, **kwargs):
        self.count += 1
        return Post(self.name, memory.last_post.send_from, f"number {self.count}")

    def close(self):
        pass


async def say(stream, thread, text, *before, **brings):
    """Say something in a thread of an AG-UI stream, after other messages; return the events."""
    core = importlib.import_module("ag_ui.core")
    asked = core.RunAgentInput(
        thread_id=thread, run_id=uuid.uuid4().hex, tools=[], forwarded_props={},
        **{"state": {}, "context": [], **brings},
        messages=[*before, core.UserMessage(id=uuid.uuid4().hex, role="user", content=text)],
    )  # fmt: skip
    return "".join([event async for event in stream.dispatch(asked)])


class Waits(Counts):
    """Waits until it is stopped."""

    def __init__(self):
        self.begun, self.stopped = threading.Event(), threading.Event()

    def reply(self, memory, *, turn):
        self.begun.set()
        if turn.cancelled.wait(30):
            self.stopped.set()
        return super().reply(memory)


class Recalls(Counts):
    """Answers with the words of all requests that it knows."""

    def reply(self, memory, **kwargs):
        words = "; ".join(one.user_query for one in memory.rounds)
        return Post(self.name, memory.last_post.send_from, f"[{words}] {memory.last_post.message}")


@pytest.fixture
def worker(tmp_path):
    with conversable.TaskWeaverAgent(
        model=ScriptedModel([]), llm_config=False, roles=[lambda: Counts()], workspace=tmp_path
    ) as worker:
        yield worker


@pytest.mark.parametrize("serve", ["a2a_server", "ag_ui_stream"])
@pytest.mark.parametrize("key", ["session.user_folder", "kernel.read", "kernel.write", "a Python environment"])
def test_an_agent_whose_code_could_read_other_clients_sessions_is_not_served(tmp_path, serve, key):
    settings = {key: str(tmp_path) if key == "session.user_folder" else [str(tmp_path)]}
    workspace = tmp_path / "site-packages" / "svc" / "sessions" if " " in key else tmp_path / "sessions"
    agent = conversable.TaskWeaverAgent(
        model=ScriptedModel([]), llm_config=False, workspace=workspace, settings={} if " " in key else settings
    )

    with pytest.raises(ConfigError, match=rf"{key} .* holds the workspace .*sessions, so code of one client could"):
        getattr(conversable, serve)(agent)


@pytest.mark.parametrize(
    ("workspace", "holder"),
    [
        ("env/share/svc", r"a Python environment \(.*/env\)"),
        ("env/include/svc", r"a Python environment \(.*/env\)"),
        ("env/.tw/sessions", r"a Python environment \(.*/env\)"),
        ("conda/svc", r"a Python environment \(.*/conda\)"),
        (f"{sys.base_prefix}/share/svc", "(the system|a Python environment)"),
        ("/usr/local/svc", r"the system \(/usr\)"),
    ],
)
def test_an_agent_is_not_served_with_a_workspace_that_lies_where_all_code_may_read(tmp_path, workspace, holder):
    (tmp_path / "conda" / "conda-meta").mkdir(parents=True)
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    agent = conversable.TaskWeaverAgent(model=ScriptedModel([]), llm_config=False, workspace=tmp_path / workspace)

    with pytest.raises(ConfigError, match=rf"{holder}.* holds the workspace .*so code of one client could"):
        agent.check_clients_apart()


@pytest.mark.parametrize("serve", ["a2a_server", "ag_ui_stream"])
@pytest.mark.parametrize("where", [None, "sessions"])
def test_a_member_whose_code_could_read_other_clients_sessions_is_not_served(tmp_path, monkeypatch, serve, where):
    monkeypatch.chdir(tmp_path)
    shared = conversable.SharedSession(settings={"session.user_folder": "."}, workspace=where, trust=True)
    member = conversable.CodeInterpreterAgent(model=ScriptedModel([]), llm_config=False, session=shared)

    with pytest.raises(ConfigError, match=r"session.user_folder .* holds the workspace .*so code of one client could"):
        getattr(conversable, serve)(member)


def test_requests_of_one_a2a_context_share_a_session_and_others_do_not(worker):
    pytest.importorskip("autogen.a2a", reason="needs autogen[a2a]", exc_type=ImportError)
    client = pytest.importorskip("starlette.testclient", reason="needs autogen[a2a]").TestClient
    server = client(conversable.a2a_server(worker, url="http://localhost:8000").build())

    def ask(context):
        message = {
            "role": "user", "kind": "message", "messageId": uuid.uuid4().hex, "contextId": context,
            "parts": [{"kind": "text", "text": "count"}],
        }  # fmt: skip
        request = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}}
        return server.post("/", json=request).json()["result"]["artifacts"][0]["parts"][0]["text"]

    assert [ask(one) for one in ("ann", "bob", "ann", "ann")] == ["number 1", "number 1", "number 2", "number 3"]


def test_what_a_function_keeps_for_one_client_is_not_shown_to_another(tmp_path):
    pytest.importorskip("autogen.ag_ui", reason="needs autogen[ag-ui]", exc_type=ImportError)
    pytest.importorskip("ag_ui.core", reason="needs autogen[ag-ui]")

    @with_context
    def note(text: str, context_variables: dict) -> str:
        kept = context_variables["kept"]  # holds what can't be copied
        before = " and ".join(kept["notes"]) or "nothing"
        kept["notes"].append(text)
        return before

    class Keeps(Role):
        name, intro = "Keeps", "Keeps notes."

        def reply(self, memory, **kwargs):
            asked = memory.last_post
            return Post(self.name, asked.send_from, f"before: {note(asked.message)}")

        def close(self):
            pass

    with conversable.TaskWeaverAgent(
        model=ScriptedModel([]), llm_config=False, roles=[lambda: Keeps()], workspace=tmp_path
    ) as agent:
        agent.context_variables["kept"] = {"notes": [], "locks": [threading.Lock()]}
        stream = conversable.ag_ui_stream(agent)
        said = [
            asyncio.run(say(stream, *one))
            for one in (("ann", "SECRET"), ("bob", "other"), ("ann", "more"), ("bob", "last"))
        ]
        kept = agent.context_variables.to_dict()

    assert ["before: nothing" in said[0], "before: nothing" in said[1], "before: other" in said[3]] == [True] * 3
    assert "SECRET" not in said[1] + said[3]
    assert "before: SECRET" in said[2]
    assert kept["kept"]["notes"] == []


def test_the_board_of_one_client_is_not_shown_to_another(tmp_path):
    pytest.importorskip("autogen.ag_ui", reason="needs autogen[ag-ui]", exc_type=ImportError)
    pytest.importorskip("ag_ui.core", reason="needs autogen[ag-ui]")
    model = ScriptedModel([plans(f"Done {number}.", to="User", plan=f"1. step {number}") for number in range(3)])
    with conversable.SharedSession(workspace=tmp_path) as shared:
        planner = conversable.PlannerAgent(model=model, llm_config=False, session=shared)
        conversable.CodeInterpreterAgent(model=model, llm_config=False, session=shared)
        stream = conversable.ag_ui_stream(planner)

        said = [asyncio.run(say(stream, *one)) for one in (("ann", "ANNS"), ("bob", "BOBS"), ("bob", "again"))]

    assert ["ANNS" in one or "step 0" in one for one in said[1:]] == [False, False]
    assert "step 1" in said[2]


def test_a_client_that_nobody_knows_is_not_told_the_context_ids_of_others(worker):
    pytest.importorskip("autogen.a2a", reason="needs autogen[a2a]", exc_type=ImportError)
    pytest.importorskip("a2a.server.routes", reason="a2a-sdk lists tasks from 1.0 on", exc_type=ImportError)
    client = pytest.importorskip("starlette.testclient", reason="needs autogen[a2a]").TestClient
    server = client(conversable.a2a_server(worker, url="http://localhost:8000").build())
    message = {"role": "ROLE_USER", "messageId": "1", "contextId": "ann", "parts": [{"text": "count"}]}

    def call(method, **params):
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return server.post("/", json=request, headers={"A2A-Version": "1.0"}).json()

    assert "number 1" in str(call("SendMessage", message=message))
    everything, own, other = (call("ListTasks", **one) for one in ({}, {"contextId": "ann"}, {"contextId": "bob"}))

    assert "name the context whose tasks you want" in everything["error"]["message"]
    assert [task["contextId"] for task in own["result"]["tasks"]] == ["ann"]
    assert other["result"]["tasks"] == []


def test_runs_of_one_ag_ui_thread_share_a_session_and_others_do_not(worker):
    pytest.importorskip("autogen.ag_ui", reason="needs autogen[ag-ui]", exc_type=ImportError)
    pytest.importorskip("ag_ui.core", reason="needs autogen[ag-ui]")
    stream = conversable.ag_ui_stream(worker)

    said = [asyncio.run(say(stream, one, "count")) for one in ("ann", "bob", "ann")]

    assert ["number 1" in said[0], "number 1" in said[1], "number 2" in said[2]] == [True] * 3


def test_a_client_that_comes_back_after_many_others_is_known_and_its_model_told_that_variables_are_gone(tmp_path):
    pytest.importorskip("autogen.ag_ui", reason="needs autogen[ag-ui]", exc_type=ImportError)
    pytest.importorskip("ag_ui.core", reason="needs autogen[ag-ui]")
    with conversable.TaskWeaverAgent(
        model=ScriptedModel([]),
        llm_config=False,
        roles=[lambda: Recalls()],
        workspace=tmp_path,
        settings={"session.most_open": 2},
    ) as agent:
        stream = conversable.ag_ui_stream(agent)

        said = [asyncio.run(say(stream, one, f"I am {one}.")) for one in ("ann", "bob", "cid", "dan", "ann")]

        assert agent.open_session_count == 2
        assert "[I am dan.]" in said[3]
        assert "[I am ann.; I am ann." in said[4]
        assert "variables of earlier requests are gone" in said[4]


async def cancel_run(agent, role):
    """Ask over AG-UI, and go away before the answer."""
    pytest.importorskip("autogen.ag_ui", reason="needs autogen[ag-ui]", exc_type=ImportError)
    pytest.importorskip("ag_ui.core", reason="needs autogen[ag-ui]")
    asking = asyncio.ensure_future(say(conversable.ag_ui_stream(agent), "ann", "wait"))
    await asyncio.to_thread(role.begun.wait, 30)
    asking.cancel()
    await asyncio.wait([asking])


async def cancel_task(agent, role):
    """Ask over A2A, and cancel the task."""
    pytest.importorskip("autogen.a2a", reason="needs autogen[a2a]", exc_type=ImportError)
    pytest.importorskip("a2a.server.routes", reason="a2a-sdk lists tasks from 1.0 on", exc_type=ImportError)
    httpx = pytest.importorskip("httpx")
    server = conversable.a2a_server(agent, url="http://localhost:8000").build()
    message = {"role": "ROLE_USER", "messageId": "1", "contextId": "ann", "parts": [{"text": "wait"}]}

    async def call(method, **params):
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return (await client.post("/", json=request, headers={"A2A-Version": "1.0"})).json()["result"]

    async with httpx.AsyncClient(transport=httpx.ASGITransport(server), base_url="http://localhost") as client:
        asking = asyncio.ensure_future(call("SendMessage", message=message))
        await asyncio.to_thread(role.begun.wait, 30)
        while not (tasks := (await call("ListTasks", contextId="ann"))["tasks"]):
            await asyncio.sleep(0.05)
        assert (await call("CancelTask", id=tasks[0]["id"]))["status"]["state"] == "TASK_STATE_CANCELED"
        await asking


async def cancel_request(agent, role):
    """Ask over AG-UI and HTTP, and close the connection before the answer."""
    httpx = pytest.importorskip("httpx")
    with listening(ag_ui_app(agent)) as url:
        async with httpx.AsyncClient() as client, client.stream("POST", url, json=RUN):
            await asyncio.to_thread(role.begun.wait, 30)
        await asyncio.to_thread(role.stopped.wait, 15)


@pytest.mark.parametrize("cancel", [cancel_run, cancel_task, cancel_request])
def test_work_that_a_services_client_waits_for_no_more_is_stopped(tmp_path, cancel):
    role = Waits()

    async def cancelled(agent):
        await cancel(agent, role)
        return await asyncio.to_thread(role.stopped.wait, 15)

    with conversable.TaskWeaverAgent(
        model=ScriptedModel([]), llm_config=False, roles=[lambda: role], workspace=tmp_path
    ) as agent:
        assert asyncio.run(cancelled(agent))


def test_what_other_agents_of_an_ag_ui_client_have_shown_is_no_request(tmp_path):
    pytest.importorskip("autogen.ag_ui", reason="needs autogen[ag-ui]", exc_type=ImportError)
    core = pytest.importorskip("ag_ui.core", reason="needs autogen[ag-ui]")
    if not hasattr(core, "ReasoningMessage"):
        pytest.skip("this version has no such messages")
    shown = [
        core.ActivityMessage(id="1", activity_type="map", content={"city": "Rome"}),
        core.ReasoningMessage(id="2", content="I think."),
    ]
    with conversable.TaskWeaverAgent(
        model=ScriptedModel([]), llm_config=False, roles=[lambda: Recalls()], workspace=tmp_path
    ) as agent:
        said = asyncio.run(say(conversable.ag_ui_stream(agent), "ann", "look", *shown))

    assert "[look] look" in said


@pytest.mark.parametrize("days", [0, 1])
@pytest.mark.parametrize("serve", ["a2a_server", "ag_ui_stream"])
def test_a_service_removes_sessions_that_are_older_than_the_settings_say(tmp_path, serve, days):
    pytest.importorskip("autogen.a2a", reason="needs autogen[a2a]", exc_type=ImportError)
    pytest.importorskip("ag_ui.core", reason="needs autogen[ag-ui]")
    workspace = tmp_path / "sessions"
    with open_session(ScriptedModel([plans("Fine.", to="User")]), roles="planner", folder=workspace) as past:
        past.ask("hello")
    for path in [past.folder.parent, *past.folder.parent.iterdir()]:
        os.utime(path, (1, 1))

    with serving(workspace, Counts, **{"session.keep_days": days}) as agent:
        getattr(conversable, serve)(agent)

    assert past.folder.parent.exists() == (days == 0)


class Fails(Counts):
    """Can't answer."""

    def reply(self, memory, **kwargs):
        raise RoundError("no model answers", round=memory.rounds[-1])


def serving(tmp_path, role, **settings):
    """Return an agent whose sessions have one role."""
    return conversable.TaskWeaverAgent(
        model=ScriptedModel([]), llm_config=False, roles=[role], workspace=tmp_path, settings=settings
    )


def a2a(agent):
    """Return what sends a message to an agent over A2A, and returns what comes back."""
    pytest.importorskip("autogen.a2a", reason="needs autogen[a2a]", exc_type=ImportError)
    client = pytest.importorskip("starlette.testclient", reason="needs autogen[a2a]").TestClient
    server = client(conversable.a2a_server(agent, url="http://localhost:8000").build())

    def send(*parts, **more):
        message = {"role": "ROLE_USER", "messageId": uuid.uuid4().hex, "contextId": "ann", "parts": parts, **more}
        request = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
        return server.post("/", json=request, headers={"A2A-Version": "1.0"}).json()

    return send


@pytest.mark.parametrize(
    ("parts", "code", "words"),
    [
        ([{"text": "look"}, {"raw": "YQ==", "filename": "a.csv"}], -32005, "only text and data"),
        ([{"text": "look"}, {"url": "https://a.example/a.csv"}], -32005, "only text and data"),
        ([{"text": "z" * 1_000_001}], -32602, "the request has 1,000,001 characters"),
        ([{"text": "  "}], -32602, "no words"),
    ],
)
def test_what_an_a2a_message_brings_and_nobody_reads_is_the_clients_error(tmp_path, parts, code, words):
    with serving(tmp_path, Recalls) as agent:
        error = a2a(agent)(*parts)["error"]

    assert (error["code"], words in error["message"]) == (code, True)


@pytest.mark.parametrize("data", [{"rows": [{"a": 1}]}, {"content": "x", "rows": "ROW-77"}, [1.5, "é"], "ROW"])
def test_data_of_an_a2a_message_is_in_the_request(tmp_path, data):
    with serving(tmp_path, Recalls) as agent:
        said = a2a(agent)({"text": "look at"}, {"data": data})["result"]["task"]["artifacts"][0]["parts"][0]["text"]

    assert json.loads(said.partition("] look at\n\n")[2]) == data


def test_a_request_that_failed_is_a_failed_task_over_a2a(tmp_path):
    with serving(tmp_path, Fails) as agent:
        status = a2a(agent)({"text": "look"})["result"]["task"]["status"]

    assert status["state"] == "TASK_STATE_FAILED"
    assert "no model answers" in status["message"]["parts"][0]["text"]


@pytest.mark.parametrize("stop", ["Clarification", "AdditionalInformation"])
@pytest.mark.parametrize("of_group", [False, True])
def test_a_task_whose_session_asks_its_user_waits_for_input_and_goes_on_with_it(tmp_path, stop, of_group):
    model = ScriptedModel([plans("Which year?", to="User", stop=stop), plans("303 units.", to="User")])
    with contextlib.ExitStack() as stack:
        if of_group:
            shared = stack.enter_context(conversable.SharedSession(workspace=tmp_path))
            agent = conversable.PlannerAgent(model=model, llm_config=False, session=shared)
        else:
            made = conversable.TaskWeaverAgent(model=model, llm_config=False, roles="planner", workspace=tmp_path)
            agent = stack.enter_context(made)
        send = a2a(agent)
        asked = send({"text": "How many units?"})["result"]["task"]
        answered = send({"text": "2026"}, taskId=asked["id"])["result"]["task"]

    assert asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert asked["status"]["message"]["parts"] == [{"text": "Which year?"}]
    assert (answered["id"], answered["status"]["state"]) == (asked["id"], "TASK_STATE_COMPLETED")
    assert answered["artifacts"][0]["parts"][0]["text"] == "303 units."
    assert "How many units?" in str(model.calls[1])


def test_a_question_to_the_user_is_an_answer_for_the_hosts_own_client(tmp_path):
    host = pytest.importorskip("autogen.a2a", reason="needs autogen[a2a]", exc_type=ImportError)
    httpx = pytest.importorskip("httpx")
    partner = importlib.import_module("autogen").ConversableAgent("ann", llm_config=False, human_input_mode="NEVER")
    model = ScriptedModel([plans("Which year?", to="User", stop="Clarification")])
    clients = []

    def client():
        clients.append(httpx.AsyncClient(timeout=60))
        return clients[-1]

    async def ask(url):
        remote = host.A2aRemoteAgent(url=url, name="remote", client=client)
        chat = await partner.a_initiate_chat(remote, message="How many units?", max_turns=1, silent=True)
        for opened in clients:  # the host leaves the one that has read the card
            await opened.aclose()
        return chat.summary

    with conversable.TaskWeaverAgent(model=model, llm_config=False, roles="planner", workspace=tmp_path) as agent:
        urls = []
        server = conversable.a2a_server(agent, card_modifier=lambda card: card.model_copy(update={"url": urls[0]}))
        with listening(server.build()) as url:
            urls.append(url)
            summary = asyncio.run(ask(url))

    assert summary == "Which year?"


def test_a_question_to_the_user_is_an_answer_over_ag_ui(tmp_path):
    pytest.importorskip("autogen.ag_ui", reason="needs autogen[ag-ui]", exc_type=ImportError)
    model = ScriptedModel([plans("Which year?", to="User", stop="Clarification")])
    with conversable.TaskWeaverAgent(model=model, llm_config=False, roles="planner", workspace=tmp_path) as agent:
        said = asyncio.run(say(conversable.ag_ui_stream(agent), "ann", "How many units?"))

    assert ["Which year?" in said, "RUN_FINISHED" in said, "RUN_ERROR" in said] == [True, True, False]


@pytest.mark.parametrize("own", [False, True])
def test_the_card_says_what_a_service_takes_unless_the_user_says_it(tmp_path, own):
    host = pytest.importorskip("autogen.a2a", reason="needs autogen[a2a]", exc_type=ImportError)
    client = pytest.importorskip("starlette.testclient", reason="needs autogen[a2a]").TestClient
    given = (
        {"agent_card": host.CardSettings(name="sales", version="7", default_input_modes=["text/csv"])} if own else {}
    )
    with serving(tmp_path, Counts) as agent:
        server = conversable.a2a_server(agent, url="http://localhost:8000", **given)
        card = client(server.build()).get("/.well-known/agent-card.json").json()

    taken = ["text/csv"] if own else ["text/plain", "application/json"]
    assert (card["defaultInputModes"], card["defaultOutputModes"]) == (taken, ["text/plain"])
    assert (card["name"], card["version"]) == (("sales", "7") if own else ("TaskWeaver", version("tw-autogen")))
    (skill,) = card["skills"]
    assert (skill["id"], "Does data work" in skill["description"]) == ("ask", True)
    assert card.get("supportsAuthenticatedExtendedCard", False) is False


@pytest.mark.parametrize(
    ("role", "text", "words"), [(Fails, "look", "no model answers"), (Recalls, "z" * 1_000_001, "1,000,001 characters")]
)
def test_a_run_that_failed_ends_with_an_error_over_ag_ui(tmp_path, role, text, words):
    pytest.importorskip("autogen.ag_ui", reason="needs autogen[ag-ui]", exc_type=ImportError)
    with serving(tmp_path, role) as agent:
        said = asyncio.run(say(conversable.ag_ui_stream(agent), "ann", text))

    assert ["RUN_ERROR" in said, "RUN_FINISHED" in said, words in said] == [True, False, True]


def test_context_and_state_of_an_ag_ui_client_are_in_the_request_and_not_in_what_was_said(tmp_path):
    core = pytest.importorskip("ag_ui.core", reason="needs autogen[ag-ui]")
    with serving(tmp_path, Recalls) as agent:
        stream = conversable.ag_ui_stream(agent)
        brings = {"context": [core.Context(description="region", value="EMEA-42")], "state": {"sel": "ROW-77"}}
        said = asyncio.run(say(stream, "ann", "look", **brings))
        later = asyncio.run(say(stream, "ann", "again"))

    assert "region: EMEA-42" in said
    assert "ROW-77" in said
    assert later.count("EMEA-42") == 1  # in the first round, as it was asked


def test_no_more_requests_of_services_are_under_way_than_sessions_may_be_open(tmp_path):
    pytest.importorskip("ag_ui.core", reason="needs autogen[ag-ui]")
    at_work, most, guard = 0, 0, threading.Lock()

    class Works(Counts):
        def reply(self, memory, **kwargs):
            nonlocal at_work, most
            with guard:
                at_work += 1
                most = max(most, at_work)
            threading.Event().wait(0.2)
            with guard:
                at_work -= 1
            return super().reply(memory, **kwargs)

    async def ask_all(stream):
        return await asyncio.gather(*(say(stream, f"client {number}", "count") for number in range(5)))

    with serving(tmp_path, Works, **{"session.most_open": 2}) as agent:
        said = asyncio.run(ask_all(conversable.ag_ui_stream(agent)))
        threads = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]

        assert (agent.open_session_count, len(threads)) == (2, 2)

    assert most == 2
    assert ["number 1" in one for one in said] == [True] * 5


RUN = {
    "threadId": "ann", "runId": "1", "messages": [{"id": "1", "role": "user", "content": "look"}],
    "tools": [], "context": [], "state": {}, "forwardedProps": {},
}  # fmt: skip
PICTURE = {"type": "data", "value": "AAAA", "mimeType": "image/png"}


def ag_ui_app(agent):
    pytest.importorskip("autogen.ag_ui", reason="needs autogen[ag-ui]", exc_type=ImportError)
    pytest.importorskip("sse_starlette", reason="needs a2a-sdk[http-server]")
    return conversable.ag_ui_stream(agent).build_asgi()


def a2a_app(agent):
    pytest.importorskip("autogen.a2a", reason="needs autogen[a2a]", exc_type=ImportError)
    return conversable.a2a_server(agent, url="http://localhost:8000").build()


@contextlib.contextmanager
def listening(app):
    """Serve an application on a port of this machine; yield its URL."""
    uvicorn = pytest.importorskip("uvicorn", reason="needs the extra `service`")
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            thread.join(0.02)
        (socket,) = server.servers[0].sockets
        yield f"http://127.0.0.1:{socket.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("app", [ag_ui_app, a2a_app])
def test_a_body_over_the_limit_is_refused_with_a_sentence_and_not_read_to_its_end(tmp_path, app, declared):
    httpx = pytest.importorskip("httpx")
    sent = 0

    def body():
        nonlocal sent
        for _ in range(200):
            sent += 1
            yield b"x" * (1 << 20)

    headers = {"Content-Length": str(200 << 20)} if declared else {}
    with serving(tmp_path, Counts) as agent, listening(app(agent)) as url:
        refused = httpx.post(url, content=body(), headers=headers)
        near = httpx.post(url, content=b"x" * (9 << 20))
        fine = httpx.post(url, content=b"x" * (7 << 20))

    assert (refused.status_code, near.status_code, fine.status_code) == (413, 413, fine.status_code)
    assert refused.text == near.text == "The body has over 8 MB (8,388,608 bytes), the most that this service takes."
    assert "Invalid JSON" in fine.text or "-32700" in fine.text
    assert sent < 100


@pytest.mark.parametrize("app", [ag_ui_app, a2a_app])
def test_a_service_says_that_it_is_up_and_nothing_else(tmp_path, app):
    httpx = pytest.importorskip("httpx")
    with serving(tmp_path, Counts) as agent, listening(app(agent)) as url:
        up = httpx.get(f"{url}/healthz")

        assert (up.status_code, up.text) == (200, "ok")
        assert (httpx.head(f"{url}/healthz").status_code, httpx.get(f"{url}/other").is_error) == (200, True)


def test_the_health_route_needs_no_token(tmp_path):
    client = pytest.importorskip("starlette.testclient", reason="needs autogen[a2a]").TestClient
    responses = importlib.import_module("starlette.responses")

    class Refuses:
        def __init__(self, app):
            pass

        async def __call__(self, scope, receive, send):
            await responses.PlainTextResponse("no token", status_code=401)(scope, receive, send)

    with serving(tmp_path, Counts) as agent:
        server = conversable.a2a_server(agent, url="http://localhost:8000")
        server.add_middleware(Refuses)
        ask = client(server.build()).get

        assert (ask("/healthz").status_code, ask("/.well-known/agent-card.json").status_code) == (200, 401)


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"{nope", 400, "Invalid JSON: key must be a string at line 1 column 2"),
        (b"", 400, "Invalid JSON: EOF"),
        (b"\xff", 400, "Invalid JSON"),
        (b"[" * 100_000, 400, "Invalid JSON: recursion limit"),
        (b"[]", 422, "RunAgentInput: Input should be an object"),
        (b"{}", 422, "threadId: Field required; runId: Field required; messages: Field required; 3 more"),
        ({"threadId": 5}, 422, "threadId: Input should be a valid string"),
        ({"threadId": ""}, 422, "threadId: expected 1 to 1000 characters, got 0"),
        ({"threadId": "x" * 1001}, 422, "threadId: expected 1 to 1000 characters, got 1,001"),
        ({"messages": "look"}, 422, "messages: Input should be a valid"),
        ({"messages": [{"id": "1", "role": "king"}]}, 422, "messages.0: Input tag 'king' found using 'role'"),
        ({"tools": [{"name": 1}]}, 422, "tools.0.name: Input should be a valid string"),
        (
            {"messages": [{"id": "1", "role": "user", "content": [{"type": "image", "source": PICTURE}]}]},
            422,
            "messages.0.content: only text is taken, not image",
        ),
        ({"state": [1, "ROW-77"]}, 200, "ROW-77"),
        ({"state": "ROW-77"}, 200, "ROW-77"),
    ],
)
def test_what_is_no_run_of_ag_ui_is_refused_with_what_is_wrong_and_where(tmp_path, body, status, words):
    client = pytest.importorskip("starlette.testclient", reason="needs autogen[a2a]").TestClient
    with serving(tmp_path, Recalls) as agent:
        content = body if isinstance(body, bytes) else json.dumps({**RUN, **body}).encode()
        answer = client(ag_ui_app(agent)).post("/", content=content)

    assert (answer.status_code, words in answer.text, len(answer.text) < 2000) == (status, True, True), answer.text


def test_a_stream_of_ag_ui_is_one_for_proxies_and_says_that_it_is_alive_while_nothing_happens(tmp_path):
    client = pytest.importorskip("starlette.testclient", reason="needs autogen[a2a]").TestClient
    core = pytest.importorskip("ag_ui.core", reason="needs autogen[ag-ui]")
    pytest.importorskip("sse_starlette", reason="needs a2a-sdk[http-server]")
    service = importlib.import_module("tw_autogen.hosts.conversable.http_service")

    class Slow(Counts):
        def reply(self, memory, **kwargs):
            threading.Event().wait(1)
            return super().reply(memory, **kwargs)

    with serving(tmp_path, Slow) as agent:
        stream = conversable.ag_ui_stream(agent)
        app = service.ag_ui_endpoint(stream, core.RunAgentInput, heartbeat_seconds=0.1)
        answer = client(app).post("/", json=RUN)

    assert answer.headers["content-type"].startswith("text/event-stream")
    assert (answer.headers["cache-control"], answer.headers["x-accel-buffering"]) == ("no-cache", "no")
    begun, *heartbeats, _, finished = answer.text.rstrip("\n").split("\n\n")
    assert len(heartbeats) >= 3
    assert {one[:6] for one in heartbeats} == {": ping"}
    assert ("RUN_STARTED" in begun, "RUN_FINISHED" in finished) == (True, True)
