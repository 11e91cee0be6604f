"""MCP servers as processes: asked over stdio and HTTP, late, dying, garbling, and gone when they are closed."""

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tw_autogen.errors import ConfigError
from tw_autogen.kernel.guest import PluginContext
from tw_autogen.plugin.mcp import McpServers, read_mcp_servers

pytest.importorskip("mcp", reason="needs the extra `mcp`")

HERE = Path(__file__).parent
HANGS = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(1000)"
NORMAL, LOW = str(HERE / "server.py"), str(HERE / "lowlevel.py")


def command(*args, **more):
    return {"command": sys.executable, "args": list(args), **more}


@pytest.fixture
def opened(tmp_path):
    """Open servers, and give their tools as functions; nothing of them may be left in the end."""
    before = set(threading.enumerate())
    made = []

    def begin(plain, *, taken=(), **times):
        servers = McpServers(read_mcp_servers(plain), folder=tmp_path / "logs", **{"start_seconds": 60, **times})
        made.append(servers)
        context = PluginContext(tmp_path)
        functions = {spec.name: spec.connect(context) for spec in servers.specs(taken)}
        return servers, functions, context

    yield begin
    for one in made:
        one.close()
        one.close()
    left = set(threading.enumerate()) - before
    for one in left:  # the loop's own thread that waits for a child ends a moment after the child
        one.join(10)
    assert not [one for one in left if one.is_alive()]


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    if not Path("/proc/self/stat").exists():
        return True
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
        return False


def test_tools_are_called_with_typed_arguments_and_give_typed_results(opened, tmp_path):
    _, tools, context = opened({"weather": command(NORMAL)})

    assert tools["report"]("Rome", days=3) == {"city": "Rome", "celsius": 21.5, "hours": [1, 2, 3]}
    assert [tools["count"](), tools["count"]()] == [1, 2]
    assert tools["total"](rows=[{"x": 1.5}, {"x": 2}]) == 3.5
    assert tools["words"]("hello") == "You said hello"
    assert tools["get_wind"]("Oslo") == "windy in Oslo"
    assert tools["weather_open"]() == "opened"
    assert tools["picture"]() == "[image/png saved as picture.png]"
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(Exception, match="no rain here"):
        tools["refuse"]("no rain here")
    with pytest.raises(Exception, match="unit"):
        tools["report"]("Rome", unit="K")


def test_half_a_surrogate_pair_in_an_argument_does_not_end_the_server(opened):
    _, tools, _ = opened({"weather": command(NORMAL)})

    assert tools["words"]("a\ud800\udcffb") == "You said a??b"
    assert [tools["count"](), tools["count"]()] == [1, 2]


def test_a_server_sees_the_environment_that_it_was_given_and_no_secret_of_ours(opened, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "ours")

    _, tools, _ = opened({"weather": command(NORMAL, env={"TOKEN": "theirs"})})

    assert tools["secret"]() == "theirs None"


def test_a_server_that_must_not_be_started_again_stays_dead(opened):
    def refuse():
        raise ConfigError("its trust has ended")

    _, tools, _ = opened({"weather": command(NORMAL)}, check=refuse)
    with pytest.raises(ConnectionError, match="ended while 'die' ran"):
        tools["die"]("out of memory")

    with pytest.raises(ConnectionError, match="It is not started again: its trust has ended"):
        tools["count"]()


def test_a_server_that_dies_in_a_call_is_told_with_its_last_words_and_started_again_once(opened):
    _, tools, context = opened({"weather": command(NORMAL)})
    tools["count"]()

    with pytest.raises(
        ConnectionError, match=r"(?s)'weather' ended while 'die' ran.*out of memory.*started again with"
    ):
        tools["die"]("out of memory")
    assert tools["count"]() == 1
    assert "started again; what it remembered is lost" in context.take()[1][0][2]

    for words in ("first", "second"):
        with pytest.raises(ConnectionError, match=words):
            tools["die"](words)
    with pytest.raises(ConnectionError, match="is not started again in this session"):
        tools["count"]()


def test_a_call_that_takes_too_long_ends_and_the_server_goes_on(opened):
    _, tools, _ = opened({"weather": command(NORMAL)}, call_seconds=2)

    with pytest.raises(TimeoutError, match=r"did not answer 'hang' within 2 s \(plugin.mcp_call_seconds\)"):
        tools["hang"]()
    assert tools["words"]("still here") == "You said still here"


def test_closing_ends_a_call_that_runs_and_the_process(opened, tmp_path):
    pid_file = tmp_path / "pid"
    servers, tools, _ = opened({"weather": command(NORMAL, str(pid_file))})
    pid, failures = int(pid_file.read_text()), []

    def hang():
        try:
            tools["hang"]()
        except ConnectionError as error:
            failures.append(str(error))

    hanging = threading.Thread(target=hang)
    hanging.start()
    assert tools["words"]("beside it") == "You said beside it"
    assert is_running(pid)
    servers.close()
    hanging.join(20)

    assert "ended while 'hang' ran" in failures[0]
    assert not is_running(pid)
    with pytest.raises(ConnectionError, match="was ended with its session"):
        tools["count"]()


def test_two_hundred_tools_with_odd_schemas_of_a_server_in_the_other_style(opened):
    servers, tools, _ = opened({"odd": command(LOW)})

    assert len(tools) == 200
    for spec in servers.specs():
        compile(spec.stub(), "stub", "exec")
    stubs = {spec.name: spec.stub() for spec in servers.specs()}
    assert "def tree(node: dict) -> str:" in stubs["tree"]
    assert "def any_of(x: int | str = ...) -> str:" in stubs["any_of"]
    assert tools["tool_7"]() == "tool 7 {}"
    assert tools["any_of"](x=3) == "any-of {'x': 3}"


def test_garbage_on_standard_output_is_passed_over_and_never_shown_to_our_user(opened, capfd):
    _, tools, _ = opened({"odd": command(LOW, "garbage")})

    assert tools["nothing"]() == "nothing {}"
    assert capfd.readouterr() == ("", "")


def test_a_malformed_answer_is_an_error_at_once_and_the_server_goes_on(opened):
    _, tools, _ = opened({"odd": command(str(HERE / "malformed.py"))}, call_seconds=600)
    began = time.monotonic()

    for name in ("wrong", "deep"):
        with pytest.raises(ConnectionError, match=f"'odd' answered while '{name}' ran, but not as the protocol says"):
            tools[name]()
    assert time.monotonic() - began < 60
    assert tools["fine"]() == "fine"


def test_no_tool_takes_the_name_of_what_every_kernel_has(opened):
    _, tools, _ = opened({"odd": command(str(HERE / "malformed.py"))})

    assert sorted(tools) == ["deep", "fine", "odd___import__", "odd_call_llm_api", "odd_print", "wrong"]


@pytest.mark.parametrize(
    ("plain", "words"),
    [
        (command(LOW, "fail"), r"(?s)MCP server 'bad' .*this server needs a key; set KEY"),
        ({"command": "/no/such/program"}, r"(?s)'bad' could not be started \(FileNotFoundError.*/no/such/program"),
        (command("-c", "print('hello')"), "MCP server 'bad' "),
        ({"url": "http://127.0.0.1:9/mcp"}, r"(?s)MCP server 'bad' could not be started.*http://127.0.0.1:9/mcp"),
    ],
)
def test_a_server_that_does_not_start_is_a_wrong_setting_and_the_others_are_ended(plain, words, opened, tmp_path):
    pid_file = tmp_path / "pid"

    with pytest.raises(ConfigError, match=words):
        opened({"good": command(NORMAL, str(pid_file)), "bad": plain})

    assert not pid_file.exists() or not is_running(int(pid_file.read_text()))


def test_a_server_that_hangs_at_its_start_is_given_up_and_killed(opened, tmp_path):
    began, pid_file = time.monotonic(), tmp_path / "pid"

    with pytest.raises(ConfigError, match=r"did not answer within 2 s of its start \(plugin.mcp_start_seconds\)"):
        opened({"slow": command("-c", HANGS, str(pid_file))}, start_seconds=2)

    assert time.monotonic() - began < 20
    assert not is_running(int(pid_file.read_text()))


@pytest.fixture
def http_server(request):
    """Run the test server over HTTP on a free port of this machine; give its port and a way to end it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = (
        f"import sys; sys.path.insert(0, {str(HERE)!r}); import server; "
        f"server.server.run({request.param!r}, host='127.0.0.1', port={port})"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if "running on" in line:
            break
    yield port, process
    process.kill()
    process.communicate()


@pytest.mark.parametrize(
    ("http_server", "path"), [("streamable-http", "mcp"), ("sse", "sse")], indirect=["http_server"]
)
def test_a_server_is_reached_over_http_and_told_when_it_is_gone(http_server, path, opened):
    port, process = http_server

    _, tools, _ = opened({"weather": {"url": f"http://127.0.0.1:{port}/{path}"}}, start_seconds=20)

    assert tools["report"]("Rome")["celsius"] == 21.5
    process.kill()
    process.wait()
    with pytest.raises(ConnectionError, match="MCP server 'weather'") as caught:
        tools["count"]()
    assert "standard output" not in str(caught.value)
    with pytest.raises(ConnectionError, match="not started again in this session"):
        tools["report"]("Paris")
