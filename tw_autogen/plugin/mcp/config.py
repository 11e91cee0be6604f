"""`McpServer`: how one MCP server is reached, read from the `mcpServers` JSON that other programs write too."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from tw_autogen.errors import ConfigError, did_you_mean, nearest
from tw_autogen.named_folders import checked_path
from tw_autogen.setting_values import NO_TEXT, texts_of
from tw_autogen.trusted_files import decode_settings, read_settings_bytes

McpWanted = Path | str | Mapping[str, Any]
"""A file, its JSON text, or what stands in it: `{"mcpServers": {name: {…}}}`, or the servers alone."""

Transport = Literal["stdio", "http", "sse"]

_TRANSPORTS = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamablehttp": "http",
    "streamable_http": "http",
    "sse": "sse",
}
_TEXTS = ("command", "cwd", "url", "type", "transport")
_MAPPINGS = ("env", "headers")
_KEYS = (*_TEXTS, *_MAPPINGS, "args", "disabled")
_WRAPPERS = ("mcpServers", "servers")
_VARIABLE = re.compile(r"\$\{(?:env:)?(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\}")
_REFERENCE = re.compile(r"\$\{[^}]*(?P<end>\})?")
_ALIKE = 0.85


@dataclass(frozen=True)
class McpServer:
    """How one MCP server is reached.

    Args:
        name: What it is called here.
        transport: `stdio`: a process of ours, spoken to by its standard streams; `http`: streamable HTTP; `sse`: the
            older way over HTTP.
        command: The program (stdio).
        args: Its arguments.
        env: Its environment, beside PATH, HOME and the like; nothing else of this process's own is passed on.
        cwd: The folder it starts in, which `started_in` makes absolute; empty: the current one.
        url: Where it is (http, sse).
        headers: Go with each request (http, sse).
        origin: Where this stands, for messages.
        from_folder: A project's file names it, and not the caller or the user's own settings.
    """

    name: str
    transport: Transport = "stdio"
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    origin: str = "mcp_servers"
    from_folder: bool = False

    def started_in(self, folder: Path) -> McpServer:
        """Return this server with the folder it starts in, and a program that is named by a path, absolute.

        So the place where its files are looked at is the one where it starts, whatever the current folder is then.

        Args:
            folder: What a relative `cwd` is relative to; a relative program is relative to `cwd`, as for a shell there.
        """
        start = Path(os.path.abspath(folder), self.cwd)
        by_path = any(sign and sign in self.command for sign in (os.sep, os.altsep))
        return replace(self, cwd=str(start), command=str(start / self.command) if by_path else self.command)

    def words(self) -> str:
        """Describe in a few words how it is reached, without secrets."""
        if self.transport == "stdio":
            return f"`{self.command}`"
        place = urlsplit(self.url)
        return f"{place.scheme}://{place.netloc.rpartition('@')[2]}{place.path}"


def read_mcp_servers(
    wanted: McpWanted,
    *,
    origin: str = "mcp_servers",
    environ: Mapping[str, str] | None = None,
    from_folder: bool = False,
    fill: bool = True,
) -> tuple[McpServer, ...]:
    """Read which MCP servers are wanted; none is started.

    Args:
        wanted: A file's path, its JSON text, or what stands in it, as Claude, Cursor or VS Code write it. In texts
            `${NAME}`, `${NAME:-default}` and `${env:NAME}` stand for environment variables; a `command` or `cwd` that
            begins with `~/` lies in the home folder (`args` and `env` go to the program as they are). Keys of other
            programs are passed over, unless they look like a misspelt one; a server with `"disabled": true` or
            `"enabled": false` is left out.
        origin: Where a mapping or a text came from, for messages.
        environ: Where variables are looked up; None: this process's environment.
        from_folder: A project's file names them.
        fill: Put variables in; False: leave texts as they are written, for people to read.

    Raises:
        ConfigError: says where, which server, and what is wrong.

    Example:
        >>> server, = read_mcp_servers({"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}})
        >>> server.name, server.transport, server.args
        ('time', 'stdio', ('mcp-server-time',))
    """
    environ = (os.environ if environ is None else environ) if fill else None
    plain, origin = _load_servers(wanted, origin)
    inner = [plain[key] for key in _WRAPPERS if key in plain and _is_wrapper(plain[key])]
    if not inner and "mcp" in plain and isinstance(plain["mcp"], Mapping) and "servers" in plain["mcp"]:
        inner = [plain["mcp"]["servers"]]  # VS Code's settings.json
    servers = inner[0] if inner else plain
    if not isinstance(servers, Mapping):
        raise ConfigError(f"{origin}: mcpServers: expected servers by name, found {type(servers).__name__}")
    found = (
        _read_server(str(name), server, origin, environ) for name, server in servers.items() if not _is_off(server)
    )
    return tuple(replace(one, from_folder=from_folder) for one in found)


def _is_wrapper(value: Any) -> bool:
    """Return whether it is `{"servers": {name: {…}}}`, not a server that is itself called `servers`."""
    return not (isinstance(value, Mapping) and any(isinstance(value.get(key), str) for key in ("command", "url")))


def _is_off(plain: Any) -> bool:
    return isinstance(plain, Mapping) and (plain.get("disabled") is True or plain.get("enabled") is False)


def _load_servers(wanted: McpWanted, origin: str) -> tuple[Mapping[str, Any], str]:
    if isinstance(wanted, Mapping):
        return wanted, origin
    text = str(wanted)
    if not text.lstrip().startswith("{"):
        path = checked_path(wanted, origin)
        origin = str(path)
        try:
            text = decode_settings(path, read_settings_bytes(path))
        except ConfigError as error:
            raise ConfigError(f"{error}; expected a JSON file with `mcpServers`") from error
    try:
        plain = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{origin}:{error.lineno}: not JSON: {error.msg} (column {error.colno})") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, or nested too deep
        raise ConfigError(f"{origin}: not JSON: {error}") from error
    if not isinstance(plain, Mapping):
        raise ConfigError(f"{origin}: expected servers by name, found {type(plain).__name__}")
    return plain, origin


def _read_server(name: str, plain: Any, origin: str, environ: Mapping[str, str] | None) -> McpServer:
    where = f"{origin}: MCP server {name!r}"
    if not isinstance(plain, Mapping):
        raise ConfigError(f"{where}: expected keys and values, found {type(plain).__name__}")
    for key in plain:
        if key not in _KEYS and (meant := did_you_mean(str(key), _KEYS, cutoff=_ALIKE)):
            raise ConfigError(f"{where}: unknown key {key!r}{meant}")
    for key in _KEYS:
        if any(map(NO_TEXT.search, texts_of([name, plain.get(key)]))):
            raise ConfigError(f"{where}: {key}: a NUL or half of a surrogate pair, which no program takes; remove it")
    given = {
        key: _fill_variables(plain[key], f"{where}: {key}", environ) for key in _KEYS if plain.get(key) is not None
    }
    _check_types(given, where)
    filled = environ is not None or "${" not in given.get("url", "")
    try:
        place = urlsplit(given.get("url", ""))
        _ = place.port if filled else None
    except ValueError as error:  # of the port, or of an address of IPv6
        raise ConfigError(f"{where}: url: {given['url']!r}: {error}") from error
    kind = str(given.get("type") or given.get("transport") or _transport_kind(given))
    kind = _transport_kind(given) if environ is None and "${" in kind else kind
    transport = _TRANSPORTS.get(kind.lower())
    if transport is None:
        raise ConfigError(f"{where}: type: {kind!r} is not known{nearest(kind.lower(), get_args(Transport))}")
    needed, other = ("command", "url") if transport == "stdio" else ("url", "command")
    if not given.get(needed):
        raise ConfigError(f"{where}: {transport} needs {needed!r}; give {needed!r}, or {other!r} for the other way")
    if transport != "stdio" and filled and place.scheme not in ("http", "https"):
        raise ConfigError(f"{where}: url: {given['url']!r} does not begin with http:// or https://")
    return McpServer(
        name,
        transport,  # type: ignore[arg-type]  # the table's values are its words
        _from_home(given.get("command", "")),
        tuple(given.get("args", ())),
        given.get("env", {}),
        _from_home(given.get("cwd", "")),
        given.get("url", ""),
        given.get("headers", {}),
        origin,
    )


def _from_home(path: str) -> str:
    """Return a path with the home folder in place of `~`: the one place where that is done for a server."""
    return os.path.expanduser(path) if path == "~" or path.startswith(("~/", f"~{os.sep}")) else path


def _transport_kind(given: Mapping[str, Any]) -> str:
    if "url" not in given:
        return "stdio"
    return "sse" if urlsplit(str(given["url"])).path.rstrip("/").endswith("/sse") else "http"


def _check_types(given: Mapping[str, Any], where: str) -> None:
    for key, value in given.items():
        if key in _TEXTS and not isinstance(value, str):
            raise ConfigError(f"{where}: {key}: expected a text, found {value!r}")
        if key == "args" and not (isinstance(value, list) and all(isinstance(one, str) for one in value)):
            raise ConfigError(f"{where}: args: expected a list of texts, found {value!r}")
        if key in _MAPPINGS and not (
            isinstance(value, Mapping) and all(isinstance(one, str) for one in value.values())
        ):
            raise ConfigError(f"{where}: {key}: expected texts by name (a number is written as a text too)")


def _fill_variables(value: Any, where: str, environ: Mapping[str, str] | None) -> Any:
    """Replace `${NAME}` by environment variables, in texts, lists and mappings; what is not set is left as it is."""
    if isinstance(value, (list, tuple)):
        return [_fill_variables(one, where, environ) for one in value]
    if isinstance(value, Mapping):
        return {str(key): _fill_variables(one, where, environ) for key, one in value.items()}
    if not isinstance(value, str):
        return value

    def found(reference: re.Match[str]) -> str:
        if not reference["end"]:  # never closed: words like any others
            return reference[0]
        match = _VARIABLE.fullmatch(reference[0])
        if match is None:
            raise ConfigError(f"{where}: {reference[0]} is not known here; write ${{NAME}} for an environment variable")
        name, default = match["name"], match["default"]
        if environ is None:
            return match[0]
        if name not in environ and default is None:
            raise ConfigError(f"{where}: the environment variable {name} is not set, and ${{{name}:-…}} gives none")
        return environ.get(name) or default or ""

    return _REFERENCE.sub(found, value)
