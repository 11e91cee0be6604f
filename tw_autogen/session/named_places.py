"""Which files a folder's settings name: those that are hashed with its trust, and compared before they are used."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tw_autogen.errors import ConfigError
from tw_autogen.plugin.mcp import McpServer, read_mcp_servers
from tw_autogen.settings import LeftOut, texts_of
from tw_autogen.trust_store import CODE_SUFFIXES, MODEL_SUFFIXES, PROGRAM_SUFFIXES, code_files

_BETWEEN_PATHS = re.compile(r"[\s=:,;'\"&|()<>]+")
_PYTHON = re.compile(r"(python|pypy)[\d.]*(\.exe)?")
_WITHOUT_ENVIRONMENT = re.compile(r"-[bBdhiOPqsSuvx]{0,9}[EI][A-Za-z]*")
"""Words by which Python passes over the variables that it gets."""
_MOST_SHORT_OPTIONS = 4
"""Letters of short options that stand in one word before a value: `-um` of `-umserver`."""


class NamedPlaces:
    """Files, and folders whose code counts; each folder is walked once."""

    def __init__(self) -> None:
        self._files: set[Path] = set()
        self._folders: dict[tuple[tuple[str, ...], bool], set[Path]] = {}

    def files(self) -> Iterator[Path]:
        """Return all files.

        Raises:
            ConfigError: they are too many.
        """
        yield from self._files
        for (suffixes, caches), folders in self._folders.items():
            yield from code_files(folders, suffixes=suffixes, caches=caches)

    def add_code(
        self, folders: Iterable[Path], *, suffixes: tuple[str, ...] = CODE_SUFFIXES, caches: bool = False
    ) -> None:
        """Add the code below folders.

        Args:
            folders: Where to look, at any depth.
            suffixes: What the names of the files end with; by default those of code and of what describes it.
            caches: Python's own caches too.
        """
        self._folders.setdefault((suffixes, caches), set()).update(folders)

    def add_setting(self, one: LeftOut, folder: Path) -> None:
        """Add the files that a setting names: a file of servers, programs in the folder, a policy, a role's file.

        Args:
            one: The setting.
            folder: Whose file names it.
        """
        value = one.setting.value
        words = [] if one.key == "plugin.mcp_servers" and isinstance(value, Mapping) else list(texts_of(value))
        for text in words:  # also one that is missing, so that it counts as such
            self._files.update(_meant(text, folder))
        suffixes = (*CODE_SUFFIXES, *MODEL_SUFFIXES) if one.key == "embedding.folder" else CODE_SUFFIXES
        self._add_words(words, folder, folder, inner=one.key == "embedding.folder", suffixes=suffixes)
        if one.key == "kernel.python":
            for text in words:
                with contextlib.suppress(OSError, ValueError, RuntimeError):
                    self._add_interpreter(text, folder)
        if one.key == "plugin.mcp_servers":
            for fill in (True, False):  # what a variable's default names runs as long as the variable is not set
                with contextlib.suppress(ConfigError):
                    for server in read_mcp_servers(value, fill=fill):
                        self.add_server(server.started_in(folder), folder)

    def add_server(self, server: McpServer, folder: Path) -> None:
        """Add the files that a server's command names, and all programs of the project, if it starts there.

        Args:
            server: `cwd` is absolute.
            folder: The project's.
        """
        if server.transport != "stdio":
            return
        start = Path(server.cwd)
        here = [part for part in os.get_exec_path() if os.path.isabs(part) and lies_in(Path(part), folder)]
        found = [os.path.join(part, word) for part in here for word in (server.command, *server.args)]
        named = [part for text in server.env.values() for part in text.split(os.pathsep)]
        parts = {part for word in (server.command, *server.args, *named, *found) for part in _parts(word)}
        caches = not _keeps_caches_elsewhere(server, parts)
        for suffixes in (CODE_SUFFIXES, PROGRAM_SUFFIXES):
            self._add_words(parts, start, folder, inner=True, suffixes=suffixes, caches=caches)
        if not _runs_installed(server) and start.is_dir() and lies_in(start, folder):
            self.add_code([folder, start], suffixes=PROGRAM_SUFFIXES, caches=caches)

    def _add_words(
        self,
        words: Iterable[str],
        base: Path,
        folder: Path,
        *,
        inner: bool,
        suffixes: tuple[str, ...] = CODE_SUFFIXES,
        caches: bool = False,
    ) -> None:
        """Add the files that words name.

        Args:
            words: Paths, among other words.
            base: What relative ones are relative to.
            folder: The project's.
            inner: Of a folder in the project that is named, or in which a named file lies, add the code too.
            suffixes: What code ends with.
            caches: Of such a folder Python's own caches too.
        """
        for path in {path for text in words for path in _meant(text, base)}:
            with contextlib.suppress(OSError, ValueError, RuntimeError):
                if path.is_file():
                    self._files.add(path)
                    path = path.parent
                if inner and path.is_dir() and lies_in(path, folder):
                    self.add_code([path], suffixes=suffixes, caches=caches)

    def _add_interpreter(self, python: str, folder: Path) -> None:
        """Add what an interpreter of a virtual environment runs at its start, whatever it is told to do."""
        for path in _meant(python, folder):
            home = path.parent.parent
            self._files.update((home / "pyvenv.cfg", path.parent / "pyvenv.cfg"))
            for place in ("lib*/python*/*-packages", "Lib/site-packages"):
                for pattern in ("*.pth", "sitecustomize*", "usercustomize*", "__pycache__/*customize.*"):
                    for found in home.glob(f"{place}/{pattern}"):
                        if found.is_dir():
                            self.add_code([found], caches=True)
                        else:
                            self._files.add(found)


def server_files(servers: Iterable[McpServer], folder: Path) -> Iterator[Path]:
    """Return the files that the commands of MCP servers name, and all programs of the project.

    `make serve`, `npm start` and `uv --directory server run notes` name no file, and run what lies somewhere in it.
    Where the command is known to look at no program there (`uvx`, `docker run`), and names no file, none of them
    counts; so it is where the server starts outside of the project.

    Args:
        servers: Their commands are looked at as they are written, where they start.
        folder: The project's.

    Raises:
        ConfigError: they are too many.
    """
    places = NamedPlaces()
    for server in servers:
        places.add_server(server.started_in(folder), folder)
    return places.files()


def _runs_installed(server: McpServer) -> bool:
    """Return whether a command is known to run installed programs only, wherever it starts."""
    if "PATH" in server.env:  # any program may go by the name
        return False
    return server.command in ("uvx", "pipx") or (
        server.command in ("docker", "podman") and server.args[:1] == ("run",)  # `compose` reads files of the folder
    )


def _keeps_caches_elsewhere(server: McpServer, parts: Iterable[str]) -> bool:
    """Return whether a command is known to start Python with our variables, and so with caches where they say."""
    if {"PYTHONPYCACHEPREFIX", "PATH"} & set(server.env):
        return False
    if any(_WITHOUT_ENVIRONMENT.fullmatch(part) or "pycache_prefix" in part for part in parts):
        return False
    command, *args = (server.command, *server.args)
    if command == "uv" and "run" in args[:-1]:
        command = args[args.index("run") + 1]
    return command.endswith(".py") and command != server.command or bool(_PYTHON.fullmatch(os.path.basename(command)))


def _parts(word: str) -> Iterator[str]:
    """Return a word, and what of it may name a file: `./src` of `-v./src:/app`, `server` of `-umserver`."""
    yield word
    for part in filter(None, _BETWEEN_PATHS.split(word)):
        yield part
        if part.startswith("-") and not part.startswith("--"):
            yield from filter(None, (part[at:] for at in range(2, 2 + _MOST_SHORT_OPTIONS)))


def _meant(text: str, base: Path) -> Iterator[Path]:
    """Return the path that a text names, seen from a folder, and the one that a program may take it for."""
    yield base / text
    if text.startswith("~"):
        with contextlib.suppress(RuntimeError):  # no such user's home
            yield base / Path(text).expanduser()


def lies_in(path: Path, folder: Path) -> bool:
    """Return whether a path lies in a folder by its name, or with its links followed.

    Args:
        path: It need not exist.
        folder: Absolute, without links.
    """
    return Path(os.path.abspath(path)).is_relative_to(folder) or path.resolve().is_relative_to(folder)
