"""Which MCP servers are wanted, as other programs write it, and what is said where that is wrong."""

import json
import sys

import pytest

from tw_autogen.errors import ConfigError
from tw_autogen.plugin.mcp import McpServers, read_mcp_servers

STDIO = {"command": "uvx", "args": ["mcp-server-time"], "env": {"TZ": "UTC"}}


@pytest.mark.parametrize(
    "plain",
    [
        {"mcpServers": {"time": STDIO}},  # Claude, Cursor, Windsurf
        {"servers": {"time": {"type": "stdio", **STDIO}}, "inputs": []},  # VS Code's mcp.json
        {"mcp": {"servers": {"time": STDIO}}, "editor.fontSize": 12},  # VS Code's settings.json
        {"time": STDIO},
        {"mcpServers": {"time": {**STDIO, "autoApprove": ["now"], "disabledTools": [], "transportType": "stdio"}}},
    ],
)
def test_the_json_of_other_programs_is_read_from_a_file_a_text_or_a_mapping(plain, tmp_path):
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps(plain), encoding="utf-8")

    for wanted in (path, str(path), json.dumps(plain), plain):
        (server,) = read_mcp_servers(wanted)
        assert (server.name, server.transport, server.command) == ("time", "stdio", "uvx")
        assert (server.args, server.env) == (("mcp-server-time",), {"TZ": "UTC"})


@pytest.mark.parametrize(
    ("plain", "transport"),
    [
        ({"url": "http://127.0.0.1:8000/mcp"}, "http"),
        ({"url": "http://127.0.0.1:8000/sse"}, "sse"),
        ({"url": "http://127.0.0.1:8000/sse", "type": "streamable-http"}, "http"),
        ({"url": "http://127.0.0.1:8000/x", "transport": "sse"}, "sse"),
    ],
)
def test_a_url_is_streamable_http_unless_it_says_otherwise(plain, transport):
    (server,) = read_mcp_servers({"one": plain})

    assert server.transport == transport


def test_environment_variables_stand_in_for_secrets_which_are_never_shown():
    plain = {
        "api": {"url": "https://x.test/mcp", "headers": {"Authorization": "Bearer ${KEY}", "A": "${env:NOT:-none}"}}
    }

    (server,) = read_mcp_servers(plain, environ={"KEY": "s3cret"})

    assert server.headers == {"Authorization": "Bearer s3cret", "A": "none"}
    assert "s3cret" not in repr(server) + server.words()


def test_a_server_that_is_disabled_is_left_out_and_one_called_servers_is_a_server():
    off = {"a": {**STDIO, "disabled": True}, "b": {**STDIO, "enabled": False}}
    assert read_mcp_servers({"mcpServers": off}) == ()
    assert read_mcp_servers({"servers": STDIO})[0].name == "servers"


@pytest.mark.parametrize(
    ("plain", "words"),
    [
        ({"a": {"comand": "x"}}, "MCP server 'a': unknown key 'comand'; did you mean 'command'"),
        ({"a": {"args": []}}, "MCP server 'a': stdio needs 'command'; give 'command', or 'url'"),
        ({"a": {"type": "http", "command": "x"}}, "http needs 'url'"),
        (
            {"a": {"type": "carrier-pigeon", "command": "x"}},
            "type: 'carrier-pigeon' is not known; known: 'http', 'sse', 'stdio'",
        ),
        ({"a": {"command": "x", "args": "y"}}, "args: expected a list of texts, found 'y'"),
        ({"a": {"command": "x", "env": {"PORT": 80}}}, "env: expected texts by name"),
        ({"a": {"command": ["x"]}}, "command: expected a text, found"),
        ({"a": {"url": "ftp://x"}}, "does not begin with http"),
        ({"a": {"url": "http://x:99999/mcp"}}, "MCP server 'a': url: 'http://x:99999/mcp': Port out of range"),
        ({"a": {"url": "http://[x/mcp"}}, "MCP server 'a': url: .*Invalid IPv6 URL"),
        ({"a": {"command": "${NOPE}"}}, "command: the environment variable NOPE is not set"),
        ({"a": {"command": "x", "args": ["${input:key}"]}}, r"args: \$\{input:key\} is not known here"),
        ({"a": "npx"}, "expected keys and values, found str"),
        ({"mcpServers": ["a"]}, "mcpServers: expected servers by name, found list"),
    ],
)
def test_what_is_wrong_is_said_with_place_and_server(plain, words):
    with pytest.raises(ConfigError, match=words):
        read_mcp_servers(plain, origin="tw_autogen.yaml", environ={})


@pytest.mark.parametrize("port", ["${PORT}", "80"])
def test_a_servers_address_is_described_without_secrets_before_its_variables_are_known_too(port):
    url = f"https://user:pass@[::1]:{port}/mcp?key=s3cret"

    assert read_mcp_servers({"a": {"url": url}}, fill=False)[0].words() == f"https://[::1]:{port}/mcp"


def test_a_file_that_is_missing_or_no_json_is_named_with_the_line(tmp_path):
    broken = tmp_path / "mcp.json"
    broken.write_text('{"mcpServers": {\n  "a": }\n', encoding="utf-8")

    with pytest.raises(ConfigError, match=r"mcp\.json:2: not JSON"):
        read_mcp_servers(broken)
    with pytest.raises(ConfigError, match=r"none\.json: cannot be read"):
        read_mcp_servers(tmp_path / "none.json")


def test_without_the_sdk_the_command_that_installs_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp", None)  # as if it were not installed

    with pytest.raises(ConfigError, match=r'need the package mcp, 2.3 or later: pip install "tw-autogen\[mcp\]"'):
        McpServers(read_mcp_servers({"time": STDIO}), folder=tmp_path)
