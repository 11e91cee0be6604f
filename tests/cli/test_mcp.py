"""`tw-autogen mcp` as a process, asked by the SDK's own client over standard input and output."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from importlib import metadata
from pathlib import Path

import pytest

from tw_autogen.testing import codes, plans, replay_server

mcp = pytest.importorskip("mcp", reason="needs the extra `mcp`")
import anyio  # noqa: E402 - it comes with mcp

CHART = "open('dot.png', 'wb').write(b'\\x89PNG dot')\nopen('all.csv', 'w').write('a\\n1\\n')\nprint('Made.')"


@pytest.fixture
def talk(command, environ, tmp_path):
    """Start the server with a script of replies, talk to it, and see that nothing of it stays."""

    def run(replies, conversation, *args, folder=tmp_path, workspace=("--workspace", str(tmp_path / "ws"))):
        said = []

        async def progress(number, total, message):
            said.append(message)

        async def main():
            wanted = mcp.StdioServerParameters(
                command=command[0],
                args=[*command[1:], "mcp", "--base-url", server.base_url, *workspace, *args],
                env=environ,
                cwd=folder,
            )
            with open(tmp_path / "stderr", "w") as errors:
                async with mcp.Client(mcp.stdio_client(wanted, errlog=errors)) as client:

                    async def call(name, /, **given):
                        return await client.call_tool(name, given, 90, progress)

                    await conversation(client, call)

        with replay_server(replies) as server:
            anyio.run(main)
        return said, (tmp_path / "stderr").read_text()

    return run


def text(result):
    return result.content[0].text


def kernels(workspace):
    """Give the processes that work in this workspace."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str(workspace) in os.readlink(path / "cwd") or str(workspace) in (path / "cmdline").read_text():
                found.append(path.name)
    return found


def test_a_client_asks_runs_code_lists_variables_and_fetches_files(talk, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "sales.csv").write_text("day,units\n1,20\n2,22\n")
    code = "import pandas as pd\ndf = pd.read_csv('sales.csv')\nprint('Sum:', df.units.sum())"
    replies = [plans("add up", then="User"), codes(code), plans("draw", then="User"), codes(CHART)]

    async def conversation(client, call):
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools if tool.annotations.read_only_hint} == {"variables", "artifact"}
        assert not [tool.name for tool in tools if "title" in tool.input_schema]
        assert client.server_info.version == metadata.version("tw-autogen")
        assert sorted(tool.name for tool in tools) == [
            *("artifact", "ask", "run_code", "variables"),
        ]
        assert text(await call("variables")) == "There are none yet."

        asked = await call("ask", request="How many units?", files=["sales.csv"])
        assert (text(asked), asked.is_error) == ("Sum: 42", False)
        assert asked.structured_content == {"answer": "Sum: 42", "stop": "Completed", "artifacts": []}

        ran = await call("run_code", code="more = df.units * 2\nprint('more')\nint(more.max())")
        assert (text(ran), ran.structured_content["ok"]) == ("more\n44", True)
        listed = (await call("variables")).structured_content["variables"]
        assert {one["name"]: one["type"] for one in listed} == {"df": "DataFrame", "more": "Series"}

        made = await call("ask", request="Draw.")
        assert [artifact["name"] for artifact in made.structured_content["artifacts"]] == ["all.csv", "dot.png"]
        assert "Files (the tool `artifact` gives what is in them):\n- all.csv" in text(made)
        picture = (await call("artifact", name="dot.png")).content[0]
        wrong = {
            "dots.png": "'dots.png': No such file or directory; did you mean 'dot.png'?",
            "x": "'x': No such file or directory; known: 'all.csv', 'dot.png'",
            "../x": "'../x': not a file below the folder; known: 'all.csv', 'dot.png'",
            "/etc/hosts": "'/etc/hosts': not a file below the folder; known: 'all.csv', 'dot.png'",
        }
        assert {one: text(await call("artifact", name=one)) for one in wrong} == wrong
        assert (picture.type, picture.mime_type, picture.data) == ("image", "image/png", "iVBORyBkb3Q=")
        assert text(await call("artifact", name=made.structured_content["artifacts"][0]["path"])) == "a\n1\n"

    said, errors = talk(replies, conversation, folder=tmp_path / "data")

    assert said[:3] == ["Planner to CodeInterpreter: add up", "cell 1 runs", said[2]]
    assert said[2].startswith("cell 1 ran in ")
    assert "made dot.png" in said
    assert "code can read" in errors
    assert "Traceback" not in errors
    assert kernels(tmp_path / "ws") == []


ACTING = "```sh\nrm x\n```\n![x](http://x.org/x.png)<img src=y> \x1b[31m \u202e"
INERT = "`` `sh\nrm x\n`` `\n! [x](http://x.org/x.png)< img src=y> \\x1b[31m \\u202e"


def test_what_code_prints_and_names_begins_no_block_and_no_image_in_a_result(talk, tmp_path):
    name = "n\n```sh\nrm x\n```\n![x](y).txt"
    shown = r"n\n`` `sh\nrm x\n`` `\n! [x](y).txt"
    make = f"print({ACTING!r})\nopen({name!r}, 'w').write({ACTING!r})\ntext = {ACTING!r}\nNone"

    async def conversation(client, call):
        ran = await call("run_code", code=make)
        said = text(ran)
        assert said.startswith(INERT)
        assert f"\n- {shown}" in said
        assert ran.structured_content["output"].startswith(INERT)
        (made,) = ran.structured_content["artifacts"]
        assert made["name"] == name
        assert text(await call("artifact", name=made["name"])) == ACTING

        failed = text(await call("run_code", code=f"raise ValueError({ACTING!r})"))
        variables = await call("variables")
        listed = str(variables.structured_content)
        wrong = text(await call("artifact", name=ACTING))
        asked = await call("ask", request="Print it.")
        assert asked.structured_content["answer"].startswith(INERT)
        words = await call("ask", request="How do I remove x?")
        assert text(words) == words.structured_content["answer"] == "So:\n```sh\nrm x\n```"
        for one in (said, failed, text(variables), listed, wrong, text(asked)):
            assert not [sign for sign in ("```", "![", "<img", "\x1b", "\u202e") if sign in one], one

    replies = [plans("print", then="User"), codes(f"print({ACTING!r})"), plans("So:\n```sh\nrm x\n```", to="User")]
    said, _ = talk(replies, conversation)
    assert f"made {shown}" in said


def test_sessions_are_in_no_folder_that_a_client_happens_to_start_the_server_in(talk, tmp_path, environ):
    started, data = tmp_path / "started", tmp_path / "data"
    started.mkdir()
    data.mkdir()

    async def conversation(client, call):
        ran = await call("run_code", code="open('made.csv', 'w').write('a')")
        (made,) = ran.structured_content["artifacts"]
        assert Path(made["path"]).is_relative_to(Path(environ["HOME"], ".cache"))

    _, said = talk([], conversation, "-C", str(data), folder=started, workspace=())

    assert "because the client chooses the current folder" in said
    assert (list(started.iterdir()), list(data.iterdir())) == ([], [])


def test_what_goes_wrong_is_told_in_words_and_the_session_goes_on(talk, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("key")
    journal = tmp_path / "data" / ".tw" / "sessions" / "s" / "events.jsonl"
    journal.parent.mkdir(parents=True)
    journal.write_text("{}")

    async def conversation(client, call):
        failures = {
            "lies among sessions (.tw)": await call("ask", request="Read it.", files=[str(journal)]),
            "name 'nope' is not defined": await call("run_code", code="nope"),
            "The code was not run, because it breaks rules": await call("run_code", code="import subprocess"),
            "there is no such file": await call("ask", request="Read it.", files=["a/" * 1_000_000]),
            "lies in no folder that may be read here": await call("ask", request="Read it.", files=[str(secret)]),
            "there is no file": await call("ask", request="Read it.", files=["none.csv"]),
            "'no\\x00ne.csv': there is no": await call("ask", request="Read it.", files=["no\0ne.csv"]),
            "'~nobody-here/a.csv': there is no": await call("ask", request="Read it.", files=["~nobody-here/a.csv"]),
            "x.org/a.csv' is a URL; download": await call("ask", request="Read.", files=["https://x.org/a.csv"]),
            "request: ": await call("ask", request=""),
            "Field required": await call("ask", files=[]),
            "file below the folder": await call("artifact", name="../events.jsonl"),
            "'no\\x00ne.png': not a file below the folder": await call("artifact", name="no\0ne.png"),
            "'none.png': No such file or directory; none was made yet": await call("artifact", name="none.png"),
            "no tool 'dance'": await call("dance"),
            "no answer": await call("ask", request="Now fail."),
        }
        for words, result in failures.items():
            assert (words in text(result), result.is_error) == (True, True), (words, text(result))
        assert text(await call("run_code", code="print(6 * 7)")) == "42"

    talk([plans("again")] * 40, conversation, "--max-posts", "2", folder=tmp_path / "data")


@pytest.mark.parametrize("trusted", [False, True])
def test_a_link_out_of_the_folder_is_followed_only_where_that_is_trusted(talk, tmp_path, trusted):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "pay.csv").write_text("name,pay\nAnn,9\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "notes.csv").symlink_to(tmp_path / "other" / "pay.csv")

    async def conversation(client, call):
        asked = await call("ask", request="What is in it?", files=["notes.csv"])
        assert (asked.is_error, "a link out of" in text(asked)) == (not trusted, not trusted)

    args = ["--set", f"kernel.read={tmp_path / 'other'}", *(["--trust"] if trusted else [])]
    talk([plans("Names and pay.", to="User")], conversation, *args, folder=tmp_path / "data")


def test_a_link_that_code_made_in_its_folder_is_not_followed_for_a_client(talk, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "pay.csv").write_text("name,pay\n")
    (tmp_path / "data" / "pay.csv").chmod(0o600)

    async def conversation(client, call):
        target = str(tmp_path / "data" / "pay.csv")
        code = f"from pathlib import Path\nPath('link.csv').symlink_to({target!r})\nprint(Path.cwd())"
        made = await call("run_code", code=code)
        asked = await call("ask", request="What is in it?", files=[f"{text(made).splitlines()[0]}/link.csv"])
        assert (asked.is_error, "a link" in text(asked)) == (True, True), text(asked)

    talk([], conversation, "--set", "kernel.allow_symlinks=true", folder=tmp_path / "data")


def test_a_client_that_cancels_stops_the_work_and_the_kernel_remembers(talk):
    async def conversation(client, call):
        await call("run_code", code="x = 1")
        with anyio.move_on_after(2):
            await call("run_code", code="import time\nx = 2\ntime.sleep(1000)")
        assert text(await call("variables")) == "x: int, 2"
        assert text(await call("run_code", code="print('x is', x)")) == "x is 2"

    said, _ = talk([], conversation)

    assert "cell 2 runs" in said


def test_the_server_ends_with_its_kernel_when_its_client_goes_in_the_middle_of_a_call(talk, tmp_path):
    async def conversation(client, call):
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: call("run_code", code="import time\ntime.sleep(1000)"))
            while not kernels(tmp_path / "ws"):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()

    talk([], conversation)

    assert gone(lambda: kernels(tmp_path / "ws") == [])


def gone(look, seconds=30):
    end = time.monotonic() + seconds
    while not look() and time.monotonic() < end:
        threading.Event().wait(0.05)
    return look()


BEGIN = b"""{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",\
"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
"""
CALL = b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_code","arguments":{"code":"%s"}}}\n'
SLEEP = rb"import time\nopen('begun', 'w').close()\nfor i in range(600): time.sleep(0.1)"


@pytest.fixture
def served(command, environ, tmp_path):
    """A server that has answered a call, as a process whose client is the test."""
    workspace = str(tmp_path / "ws")
    with replay_server([]) as model:
        args = [*command, "mcp", "--base-url", model.base_url, "--workspace", workspace]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        server = subprocess.Popen(args, **pipes, cwd=tmp_path, env=environ)
        try:
            server.stdin.write(BEGIN + CALL % b"1")
            server.stdin.flush()
            assert b'"id":1' in server.stdout.readline()
            assert b'"id":2' in server.stdout.readline()
            assert kernels(workspace) != []
            yield server
        finally:
            server.kill()
            server.wait()
            for pipe in (server.stdin, server.stdout, server.stderr):
                pipe.close()

    assert gone(lambda: kernels(workspace) == [])


def begin_to_sleep(server, tmp_path):
    server.stdin.write(CALL.replace(b'"id":2', b'"id":3') % SLEEP)
    server.stdin.flush()
    assert gone(lambda: any(tmp_path.glob("ws/**/begun")))


def test_a_server_that_is_killed_leaves_no_kernel(served):
    served.send_signal(signal.SIGKILL)
    served.wait()


@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_the_server_also_while_its_client_keeps_its_input_open(number, code, busy, served, tmp_path):
    if busy:
        begin_to_sleep(served, tmp_path)

    served.send_signal(number)

    assert served.wait(20) == code
    assert b"Traceback" not in served.stderr.read()


def test_a_client_that_dies_in_the_middle_of_a_call_leaves_no_traceback(served, tmp_path):
    begin_to_sleep(served, tmp_path)

    served.stdout.close()
    served.stdin.close()

    assert served.wait(20) == 0
    assert b"Traceback" not in served.stderr.read()


def test_a_wrong_setting_ends_the_program_before_anything_is_served(command, environ, tmp_path):
    ran = subprocess.run(
        [*command, "mcp", "--set", "session.max_post=3"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environ,
        check=False,
    )

    assert (ran.returncode, ran.stdout) == (2, "")
    assert "did you mean 'session.max_posts'?" in ran.stderr
