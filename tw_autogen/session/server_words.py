"""What the MCP servers of a folder would do, in words: whole command lines, and those without what may be secret."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from tw_autogen.errors import ConfigError
from tw_autogen.plugin.mcp import McpServer, read_mcp_servers
from tw_autogen.secret_masking import is_secret_name, mask_named
from tw_autogen.text_escaping import visible_line

UNREADABLE = "can't be read: "
_PLAIN_WORD = re.compile(r"[\w@%+=:,./${}?&#~-]+", re.ASCII)
_VARIABLE = re.compile(r"\$\{(env:)?\w+\}", re.ASCII)
_OPTION = re.compile(r"(?P<name>-{1,2}[A-Za-z][\w.-]*)(?P<value>=.*)?", re.ASCII | re.DOTALL)
_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<value>.*)", re.ASCII | re.DOTALL)
_HEADER = re.compile(r"(?P<name>[A-Za-z][\w-]*): ?(?P<value>\S.*)", re.ASCII | re.DOTALL)
_URL = re.compile(r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{0,20}://\S+")
_KEY = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9_+/=-]{20,}", re.ASCII)
"""What is no name of a program or package, and long enough for a key."""
_SECRET_PART = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
"""In names of options and variables whose values are shown to nobody: rather too many than too few."""
_OF_ENVIRONMENT = ("-e", "--env", "--env-var")
_OF_HEADERS = ("-H", "--header", "--headers")
_HIDDEN = "…"


def server_lines(value: Any) -> Iterator[tuple[str, str]]:
    """Word what MCP servers would do; variables stay as they are written.

    Args:
        value: Of the setting `plugin.mcp_servers`.

    Yields:
        For each server the whole command line, for a person who is asked; and the same without values of variables and
        headers, of users and queries in addresses, and of what looks secret by its form or name.
    """
    try:
        servers = read_mcp_servers(value, fill=False)
    except ConfigError as error:
        yield f"{UNREADABLE}{visible_line(str(error))}", UNREADABLE.removesuffix(": ")
        return
    for server in servers:
        yield _server_line(server), _server_line(_mask_server(server))


def _server_line(server: McpServer) -> str:
    words = []
    if server.command:
        given = "".join(f" {_quote_value(name)}={_quote_value(text)}" for name, text in server.env.items())
        where = f" in {_quote_value(server.cwd)}" if server.cwd else ""
        line = " ".join(map(_quote_word, [server.command, *server.args]))
        words.append(f"would start:{given} {line}{where}")
    if server.url:
        headers = "".join(f", with {_quote_value(f'{name}: {text}')}" for name, text in server.headers.items())
        words.append(f"would connect to: {_quote_value(server.url)}{headers}")
    return visible_line(f"{_quote_value(server.name)}: {', '.join(words)}")


def _mask_server(server: McpServer) -> McpServer:
    """Return a server without what may be secret."""
    return McpServer(
        server.name,
        command=_mask_word(server.command),
        args=tuple(_masked_words(server.args)),
        env=_values_hidden(server.env),
        cwd=server.cwd,
        url=_without_secrets(server.url),
        headers=_values_hidden(server.headers),
    )


def _values_hidden(values: Mapping[str, str]) -> dict[str, str]:
    return {name: _hide_value(text) for name, text in values.items()}


def _hide_value(text: str) -> str:
    """Return a sign in place of a value; the name of a variable is none."""
    return text if _VARIABLE.fullmatch(text) or not text else _HIDDEN


def _masked_words(words: tuple[str, ...]) -> Iterator[str]:
    """Yield the words of a command line; those that are, or may be, values of secrets with a sign in their place."""
    before = ""
    for word in words:
        option = _OPTION.fullmatch(word)
        if before in _OF_ENVIRONMENT:
            name, sign, text = word.partition("=")
            yield f"{name}{sign}{_hide_value(text)}"
        elif before in _OF_HEADERS:
            name, sign, text = word.partition(":")
            yield f"{name}{sign} {_HIDDEN}" if sign else _HIDDEN
        elif before and _is_secret_option(before) and not option:
            yield _hide_value(word)
        elif option and option["value"]:
            yield f"{option['name']}={_masked_value(option['name'], option['value'][1:])}"
        else:
            yield _mask_word(word)
        before = word if option and not option["value"] else ""


def _masked_value(option: str, text: str) -> str:
    if option in _OF_ENVIRONMENT:
        name, sign, value = text.partition("=")
        return f"{name}{sign}{_hide_value(value)}"
    return _hide_value(text) if option in _OF_HEADERS or _is_secret_option(option) else _mask_word(text)


def _is_secret_option(option: str) -> bool:
    name = option.lstrip("-")
    return is_secret_name(name) or _SECRET_PART.search(name) is not None


def _mask_word(word: str) -> str:
    """Return a word without what looks secret in it by its name or form."""
    if _VARIABLE.fullmatch(word):
        return word
    given = _ASSIGNMENT.fullmatch(word) or _HEADER.fullmatch(word)
    if given and _is_secret_option(given["name"]) or given and given["name"].lower() == "authorization":
        return f"{word[: given.start('value')]}{_hide_value(given['value'])}"
    if _KEY.fullmatch(word):
        return _HIDDEN
    return mask_named(_URL.sub(lambda match: _without_secrets(match[0]), word))


def _without_secrets(url: str) -> str:
    """Return an address without user, password and query."""
    try:
        place = urlsplit(url)
    except ValueError:
        return _HIDDEN
    if not place.netloc:
        return url if "${" in url and "?" not in url and "@" not in url else url.partition("?")[0].rpartition("@")[2]
    server = f"{_HIDDEN}@{place.netloc.rpartition('@')[2]}" if "@" in place.netloc else place.netloc
    query = _HIDDEN if place.query else ""
    return urlunsplit((place.scheme, server, place.path, query, _HIDDEN if place.fragment else ""))


def _quote_value(text: str) -> str:
    """Return a text as a word of a command line; a variable stays as it is written."""
    return text if _PLAIN_WORD.fullmatch(text) or text == _HIDDEN else _quote_word(text)


def _quote_word(text: str) -> str:
    r"""Return a text as a word of a command line.

    One with signs that can't be seen stands in `$'…'`, as a shell has it: `\n` is a line break only there.
    """
    if visible_line(text) == text:
        return text if text == _HIDDEN else shlex.quote(text)
    return "$'" + visible_line(text.replace("\\", "\\\\").replace("'", "\\'")) + "'"
