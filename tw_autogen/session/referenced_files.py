"""Which files a folder's settings name: those that are hashed with its trust, and compared before they are used."""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import itertools
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

from tw_autogen.errors import ConfigError
from tw_autogen.plugin.mcp import McpServer, read_mcp_servers
from tw_autogen.safe_folder import walk_links
from tw_autogen.setting_values import Setting, climbed_path, texts_of
from tw_autogen.settings import FolderSetting
from tw_autogen.settings_trust import PROGRAM_OF_ROLE
from tw_autogen.trust_store import (
    ALL_SUFFIXES,
    CODE_SUFFIXES,
    MAX_SETTINGS_BYTES,
    PROGRAM_SUFFIXES,
    BytecodeCaches,
    code_files,
    read_regular,
)
from tw_autogen.unlisted_folders import listed_names

_BETWEEN_PATHS = re.compile(r"\$\w{1,60}/|[\s=:,;'\"&|()<>@`\[\]{}]+")
_SIGNS = "=:,;'\""
_PYTHON = re.compile(r"(python|pypy)[\d.]*(\.exe)?")
_OF_PROCESS = re.compile(r"/proc/(?:self|thread-self|\d+)(?:/task/\d+)?/(?:cwd|root)(?:/|\Z)")
_WITHOUT_ENVIRONMENT = re.compile(r"-[bBdhiOPqsSuvx]{0,9}[EI][A-Za-z]*")
"""Words by which Python passes over the variables that it gets."""
_OF_NODE = frozenset(("node", "npm", "npx", "pnpm", "yarn", "bun", "bunx", "deno"))
_MAX_ENTRIES = 10_000
"""Of a folder of code that are looked at for links."""
_MAX_SHORT_OPTIONS = 4
"""Letters of short options that stand in one word before a value: `-um` of `-umserver`."""


def _enter_all(path: str) -> bool:
    return True


def _is_no_python_library(path: str) -> bool:
    """Return whether a folder is none that holds the packages of a virtual environment of Python.

    The rest of an environment is looked into: whoever may write `pyvenv.cfg` says that a folder is one.
    """
    above, name = os.path.split(path)
    home, library = os.path.split(above)
    packages = library in ("lib", "lib64") and name.startswith("python") or (library, name) == ("Lib", "site-packages")
    return not (packages and os.path.lexists(os.path.join(home, "pyvenv.cfg")))


def _is_no_node_folder(path: str) -> bool:
    return os.path.basename(path) != "node_modules"


def links_below(places: Iterable[Path]) -> Iterator[Path]:
    """Yield the links in folders of code, however deep, in order; so many at most of all as are looked at."""
    entries = itertools.chain.from_iterable(map(_entries_below, places))
    return (Path(entry) for entry in itertools.islice(entries, _MAX_ENTRIES) if entry.is_symlink())


def _entries_below(place: Path) -> Iterator[os.DirEntry[str]]:
    """Yield what lies in a folder, however deep, each folder's in order; no link is followed."""
    left = [os.fspath(place)]
    while left:
        entries: list[os.DirEntry[str]] = []
        with contextlib.suppress(OSError), os.scandir(left.pop()) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        yield from entries
        left += [
            entry.path for entry in reversed(entries) if not entry.is_symlink() and entry.is_dir(follow_symlinks=False)
        ]


class ReferencedFiles:
    """Files, and folders whose code counts; each folder is walked once."""

    def __init__(self) -> None:
        self._files: set[Path] = set()
        self._folders: dict[tuple[tuple[str, ...], BytecodeCaches, Callable[[str], bool]], set[Path]] = {}

    def files(self) -> Iterator[Path]:
        """Return all files.

        Raises:
            ConfigError: they are too many.
        """
        yield from self._files
        for (suffixes, caches, enter), folders in self._folders.items():
            yield from code_files(folders, suffixes=suffixes, caches=caches, enter=enter)

    def add_code(
        self,
        folders: Iterable[Path],
        *,
        suffixes: tuple[str, ...] = CODE_SUFFIXES,
        caches: BytecodeCaches = BytecodeCaches.none,
        enter: Callable[[str], bool] = _enter_all,
    ) -> None:
        """Add the code below folders.

        Args:
            folders: Where to look, at any depth.
            suffixes: What the names of the files end with; by default those of code and of what describes it.
            caches: Which of Python's own caches too.
            enter: As in `code_files`.
        """
        self._folders.setdefault((suffixes, caches, enter), set()).update(folders)

    def add_setting(self, named: FolderSetting, folder: Path) -> None:
        """Add the files that a setting names: a file of servers, programs in the folder, a policy, a role's file.

        Args:
            named: The setting.
            folder: Whose file names it.
        """
        value = named.setting.value
        words = [] if named.key == "plugin.mcp_servers" and isinstance(value, Mapping) else list(texts_of(value))
        for text in words:  # also one that is missing, so that it counts as such
            self._files.update(_meant_paths(text, folder))
        model, program = named.key == "embedding.folder", named.key.endswith(PROGRAM_OF_ROLE)
        suffixes = ALL_SUFFIXES if model else PROGRAM_SUFFIXES if program else CODE_SUFFIXES
        self._add_words(words, folder, folder, inner=model or program, suffixes=suffixes)
        if named.key == "kernel.python":
            for text in words:
                for place in _places_of_program(text, folder):
                    self._files.add(place)  # also where it is missing: what comes there is what starts
                    with contextlib.suppress(OSError, ValueError, RuntimeError):
                        self._add_interpreter(place, folder)
        if named.key == "plugin.mcp_servers":
            for fill in (True, False):  # what a variable's default names runs as long as the variable is not set
                servers: tuple[McpServer, ...] = ()
                with contextlib.suppress(ConfigError):
                    servers = tuple(read_mcp_servers(value, fill=fill))
                for server in servers:
                    self.add_server_files(server.started_in(folder), folder)

    def add_server_files(self, server: McpServer, folder: Path) -> None:
        """Add the files that a server's command names, and all programs of the project, if it starts there.

        Args:
            server: `cwd` is absolute.
            folder: The project's.
        """
        if server.transport != "stdio":
            return
        start = Path(climbed_path(server.cwd))  # as the system goes up over links
        here = _path_in(folder)
        paths = [os.path.join(part, word) for part in here for word in (server.command, *server.args)]
        named = [part for text in server.env.values() for part in text.split(os.pathsep)]
        parts = {part for word in (server.command, *server.args, *named, *paths) for part in _parts_of_word(word)}
        caches, enter = _caches_read(server, parts), _places_of(server)
        for suffixes in (CODE_SUFFIXES, PROGRAM_SUFFIXES):
            self._add_words(parts, start, folder, inner=True, suffixes=suffixes, caches=caches, enter=enter)
        try:
            starts_here = start.is_dir() and lies_in(start, folder)
        except OSError as error:
            message = f"cwd: {error.strerror}; name a folder that is there, or leave it out"
            raise ConfigError(f"{server.origin}: MCP server {server.name!r}: {message}") from error
        if not _runs_installed(server) and starts_here:
            self.add_code([folder, start], suffixes=PROGRAM_SUFFIXES, caches=caches, enter=enter)

    def _add_words(
        self,
        words: Iterable[str],
        base: Path,
        folder: Path,
        *,
        inner: bool,
        suffixes: tuple[str, ...] = CODE_SUFFIXES,
        caches: BytecodeCaches = BytecodeCaches.none,
        enter: Callable[[str], bool] = _enter_all,
    ) -> None:
        """Add the files that words name.

        Args:
            words: Paths, among other words.
            base: What relative ones are relative to.
            folder: The project's.
            inner: Of a folder in the project that is named, or in which a named file lies, add the code too.
            suffixes: What code ends with.
            caches: Which of Python's own caches of such a folder too.
            enter: Which folders in it.
        """
        for path in {path for text in words for path in _meant_paths(text, base)}:
            with contextlib.suppress(OSError, ValueError, RuntimeError):
                if path.is_file():
                    self._files.add(path)
                    path = path.parent
                elif lies_in(path.parent, folder) and not path.exists():  # Node adds a suffix, Java takes `lib/*`
                    self._files.update(path.parent.glob(f"{glob.escape(path.name)}.*"))
                    path = path.parent if path.parent not in (base, folder) else path
                if inner and path.is_dir() and lies_in(path, folder):
                    self.add_code([path], suffixes=suffixes, caches=caches, enter=enter)

    def _add_interpreter(self, python: Path, folder: Path) -> None:
        """Add what an interpreter runs at its start, whatever it is told to do, also that of the one it was made with.

        Of a whole Python in the folder this is its library; of a virtual environment, what it puts before that.
        """
        program, home = python.parent, python.parent.parent
        settings = (home / "pyvenv.cfg", program / "pyvenv.cfg")
        self._files.update((*settings, *_paths_matching(program, "*._pth")))
        made = {python.resolve().parent, *(base for setting in settings for base in _made_with(setting))}
        self._add_library(home, whole=lies_in(home, folder) and not any(setting.is_file() for setting in settings))
        for base in made:
            if base.resolve() != program.resolve() and lies_in(base.parent, folder):
                self._add_library(base.parent, whole=True)

    def _add_library(self, home: Path, *, whole: bool) -> None:
        """Add what of the library of an interpreter runs at each start, or all of it but installed packages."""
        start = ("*.pth", "sitecustomize*", "usercustomize*", "__pycache__/*customize.*")
        # Debian's Python has a second place for packages.
        named = ("lib*/python*", "lib*/pypy*", "local/lib*/python*")
        places = (*(f"{library}/*-packages" for library in named), "Lib/site-packages")
        patterns = [f"{place}/{name}" for place in places for name in start]
        patterns += ["lib*/python*.zip", *(f"lib*/python*/{name}" for name in start[1:])]
        for path in [path for pattern in patterns for path in _paths_matching(home, pattern)]:
            self._add_found(path)
        if not whole:
            return
        self._files.update(
            path for pattern in ("lib*/libpython*", "bin/pybuilddir.txt") for path in _paths_matching(home, pattern)
        )
        found = sorted(_paths_matching(home, "lib*/python*"), reverse=True)
        libraries = {path.resolve(): path for path in found if path.is_dir()}
        for path in [library / name for library in libraries.values() for name in _names_in(library)]:
            if not path.name.endswith("-packages"):
                self._add_found(path)

    def _add_found(self, path: Path) -> None:
        """Add a file, or all code of a folder, with what Python has compiled of it."""
        if path.is_dir():
            self.add_code([path], caches=BytecodeCaches.every)
        else:
            self._files.add(path)


def _paths_matching(folder: Path, pattern: str) -> Iterator[Path]:
    """Return what `Path.glob` would, but for a pattern without `**`.

    Raises:
        ConfigError: a folder on the way can't be listed, so that what it holds is not known.
    """
    first, _, rest = pattern.partition("/")
    for name in fnmatch.filter(_names_in(folder), first):
        yield from _paths_matching(folder / name, rest) if rest else (folder / name,)


def _names_in(folder: Path) -> list[str]:
    try:
        return listed_names(folder)
    except PermissionError as error:
        raise ConfigError(f"{error.filename}: {error.strerror}") from error


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
    places = ReferencedFiles()
    for server in servers:
        places.add_server_files(server.started_in(folder), folder)
    return places.files()


def files_of_setting(key: str, value: str, folder: Path) -> list[Path]:
    """Return the files that a setting of a folder's file names, as they are hashed when the folder is trusted.

    Args:
        key: Dotted.
        value: A path, or a program's name.
        folder: Absolute, without links.
    """
    places = ReferencedFiles()
    places.add_setting(FolderSetting(key, Setting(value, key)), folder)
    return sorted(places.files())


def which_below(text: str, folder: Path) -> str:
    """Return where PATH leads for a word, if that lies in a folder; else nothing.

    Args:
        text: What a setting calls the program; a path is none.
        folder: Absolute, without links.
    """
    found = "" if os.path.dirname(text) else shutil.which(text)
    return os.path.abspath(found) if found and lies_in(Path(found), folder) else ""


def _places_of_program(text: str, folder: Path) -> Iterator[Path]:
    """Return the paths that a text names, and for a word those in a folder at which PATH looks for it."""
    yield from _meant_paths(text, folder)
    if not os.path.dirname(text):
        yield from (Path(part, text) for part in _path_in(folder))
        if found := which_below(text, folder):
            yield Path(found)


def _path_in(folder: Path) -> list[str]:
    """Return the folders of PATH that lie in a folder."""
    return [part for part in os.get_exec_path() if os.path.isabs(part) and lies_in(Path(part), folder)]


def _made_with(settings: Path) -> Iterator[Path]:
    """Return the folder of the interpreter that a virtual environment was made with, as its `pyvenv.cfg` names it."""
    with contextlib.suppress(OSError):
        for line in read_regular(settings, limit_bytes=MAX_SETTINGS_BYTES).decode(errors="replace").splitlines():
            key, _, value = line.partition("=")
            if key.strip().lower() == "home":
                yield Path(value.strip())


def _runs_installed(server: McpServer) -> bool:
    """Return whether a command is known to run installed programs only, wherever it starts."""
    if "PATH" in server.env:  # any program may go by the name
        return False
    return server.command in ("uvx", "pipx") or (
        server.command in ("docker", "podman") and server.args[:1] == ("run",)  # `compose` reads files of the folder
    )


def _caches_read(server: McpServer, parts: Iterable[str]) -> BytecodeCaches:
    """Return which of Python's caches a server may read.

    `PYTHONPYCACHEPREFIX` says otherwise: none, where the command is known to start Python with our variables, and every
    one where it is known to take them away. Another program may start a Python that passes over them, as a first line
    of a script says.
    """
    dropped = any(_WITHOUT_ENVIRONMENT.fullmatch(part) or "pycache_prefix" in part.lower() for part in parts)
    if dropped or "PYTHONPYCACHEPREFIX" in server.env or program_name(server.command) == "env":
        return BytecodeCaches.every
    command, *args = (server.command, *server.args)
    if command == "uv" and "run" in args[:-1]:
        command = args[args.index("run") + 1]
    is_script = command.endswith(".py") and command != server.command
    known = "PATH" not in server.env and (is_script or _PYTHON.fullmatch(program_name(command)))
    return BytecodeCaches.none if known else BytecodeCaches.own


def _places_of(server: McpServer) -> Callable[[str], bool]:
    """Return which folders a server's program may look into: those of another language's packages it does not."""
    if "PATH" in server.env:  # any program may go by the name
        return _enter_all
    if program_name(server.command) in _OF_NODE:
        return _is_no_python_library
    return _is_no_node_folder if _PYTHON.fullmatch(program_name(server.command)) else _enter_all


def program_name(command: str) -> str:
    """Return what a command's program is called, without its folder and Windows' suffixes."""
    return os.path.basename(command).lower().removesuffix(".exe").removesuffix(".cmd")


def _parts_of_word(word: str) -> Iterator[str]:
    """Return a word, and what of it may name a file: `./src` of `-v./src:/app`, `server` of `-umserver`."""
    for sign in _SIGNS:  # a name may hold all others, and blanks
        yield from (part for part in word.split(sign) if sign in word and part)
    for text in (word, unquote(word), *_shell_words(word)):
        yield text
        yield from filter(None, (text.partition(sign)[2] for sign in _SIGNS))
    for part in filter(None, _BETWEEN_PATHS.split(word)):
        yield part
        if part.startswith("-") and not part.startswith("--"):
            yield from filter(None, (part[index:] for index in range(2, 2 + _MAX_SHORT_OPTIONS)))


def _shell_words(text: str) -> list[str]:
    """Return the words of a command as a shell takes it apart; where a quotation doesn't end, what blanks part."""
    words = shlex.shlex(text, posix=True, punctuation_chars=True)
    words.whitespace_split, words.commenters = True, ""
    try:
        return list(words)
    except ValueError:
        return text.split()


def _meant_paths(text: str, base: Path) -> list[Path]:
    """Return the path that a text names, seen from a folder, and the one that a program may take it for.

    Raises:
        ConfigError: it leads over the current folder of whichever process opens it: what is looked at here is not what
            is started.
    """
    paths = [base / text]
    if text.startswith("~"):
        with contextlib.suppress(RuntimeError):  # no such user's home
            paths.append(base / Path(text).expanduser())
    for path in paths:
        if _is_of_process(path):
            raise ConfigError(f"{text}: a path over /proc may be another file for each process; name the file itself")
    return [Path(climbed_path(str(path))) for path in paths]  # as the system goes up over links


def _is_of_process(path: Path) -> bool:
    """Return whether a path is, or leads over a link to, one like `/proc/self/cwd/x`."""
    links: list[str] = []
    with contextlib.suppress(OSError, ValueError):  # nobody opens it
        links = list(walk_links(path).links)
    return any(_OF_PROCESS.match(os.path.normpath(link)) for link in (os.path.abspath(path), *links))


def lies_in(path: Path, folder: Path) -> bool:
    """Return whether a path lies in a folder by its name, or with its links followed.

    Args:
        path: It need not exist.
        folder: Absolute, without links.
    """
    return Path(os.path.abspath(path)).is_relative_to(folder) or path.resolve().is_relative_to(folder)
