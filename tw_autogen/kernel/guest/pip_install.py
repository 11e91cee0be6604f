"""`pip install` in a cell is a request to the host: nothing is installed from inside, however it is written."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

INSTALL = "pip install"
"""The name under which the host is asked; no Python name, so that nothing in a cell is called so."""

_PYTHON = re.compile(r"(?:.*/)?(?:python|pypy)[\d.]*$")
_PIP = re.compile(r"(?:.*/)?pip[\d.]*$")
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_IDLE = {"-q", "-qq", "--quiet", "-U", "--upgrade", "--user", "--no-cache-dir", "--no-input", "-y", "--yes"}
_IDLE |= {"--disable-pip-version-check", "--break-system-packages", "--root-user-action=ignore"}
_OPERATORS = set("();<>|&")
_MORE_COMMANDS = re.compile(r"[`\n]|\$\(")
_SAY = "import sys; print(sys.argv[1])"


class InstallRefused(RuntimeError):
    """The host installs nothing of what was asked for; the text says why."""


class _System:
    """Stands for `os.system`: as that function of C it does not become a method, and it is pickled by its name.

    Args:
        call: What it does.
    """

    __module__ = "os"

    def __init__(self, call: Callable[[Any], Any]) -> None:
        self._call = call

    def __call__(self, command: Any) -> Any:
        """Run a command, or ask for packages."""
        return self._call(command)

    def __reduce__(self) -> str:
        """Return the name in its module."""
        return "system"


class PipInstallHook:
    """Turns every way to say `pip install` into one request.

    Args:
        ask: Calls the host with a list of requirements; gives `ok` and `text`.
        folder: Where the host puts packages; empty where it never installs any.
    """

    def __init__(self, ask: Callable[[list[str]], Mapping[str, Any]], folder: str) -> None:
        self._ask = ask
        self._folder = folder

    def hook(self, shell: Any, run_command: Callable[[Any, str], None]) -> None:
        """Stand before IPython's `%pip` and `!`, `subprocess` and `os.system`.

        Args:
            shell: IPython's.
            run_command: Runs a `!command` whose variables are filled in.
        """
        if self._folder and self._folder not in sys.path:
            sys.path.append(self._folder)  # at the end: what is installed for all stays what it is
        from IPython.utils._process_common import getoutput  # deferred: the host imports this module too
        from IPython.utils.text import LSString, SList

        run = os.system
        shell.register_magic_function(self._pip_magic, "line", "pip")

        def shell_system(command: str) -> Any:
            expanded = shell.var_expand(command, depth=1)
            return self._install_or_run(expanded, lambda: run_command(shell, expanded))

        def shell_getoutput(command: str, split: bool = True, depth: int = 0) -> Any:
            expanded = shell.var_expand(command, depth=depth + 1)
            text = self._install_or_run(expanded, lambda: getoutput(expanded), output=True)
            return SList(text.splitlines()) if split else LSString(text)

        shell.system, shell.getoutput = shell_system, shell_getoutput
        os.system = _System(lambda command: self._install_or_run(command, lambda: run(command), done=0))
        self._stand_before(subprocess.Popen)

    def request(self, arguments: Sequence[str]) -> str:
        """Ask the host for packages; give what it says.

        Args:
            arguments: What stands behind `pip install`.

        Raises:
            InstallRefused: it does not install them.
        """
        wanted = [word for word in arguments if word not in _IDLE]
        answer = self._ask(wanted)
        if not answer["ok"]:
            raise InstallRefused(answer["text"])
        importlib.invalidate_caches()
        return "\n".join([str(answer["text"]), *self._shadowed_package_lines(wanted)])

    def _shadowed_package_lines(self, wanted: Sequence[str]) -> list[str]:
        """Return a line for each package of which the environment has another version, which `import` finds first."""
        from importlib import metadata  # deferred: it would be a part of each kernel's start

        found = []
        for name in (_NAME.match(word.strip()) for word in wanted):
            with contextlib.suppress(metadata.PackageNotFoundError):
                package = metadata.distribution(name[0] if name else "")
                if str(package.locate_file("")) != self._folder:
                    there = f"{package.name} {package.version}"
                    found.append(
                        f"{there} of the environment stays what is imported: what is installed comes after it."
                    )
        return found

    def _pip_magic(self, line: str) -> None:
        """Ask the host to install packages: `%pip install name`."""
        arguments = _split_words(line)
        if arguments[:1] != ["install"]:
            raise InstallRefused(f"%pip {line}: only `%pip install name` is possible here")
        print(self.request(arguments[1:]))  # noqa: T201 - the cell's own stream

    def _install_or_run(self, command: Any, run: Callable[[], Any], *, output: bool = False, done: Any = None) -> Any:
        arguments = install_words(command)
        if arguments is None:
            return run()
        answer = self.request(arguments)
        if output:
            return answer
        print(answer)  # noqa: T201 - the cell's own stream
        return done

    def _stand_before(self, popen: Any) -> None:
        begin = popen.__init__

        def start(process: Any, args: Any, *rest: Any, **kwargs: Any) -> None:
            arguments = install_words(args)
            if arguments is not None:
                answer = self.request(arguments)
                args, kwargs["shell"] = [sys.executable, "-I", "-S", "-c", _SAY, answer], False
            begin(process, args, *rest, **kwargs)

        popen.__init__ = start


def install_words(command: Any) -> list[str] | None:
    """Return what stands behind `pip install` in a command, as text or as a list; None if it is another command.

    Raises:
        InstallRefused: other commands stand in the text, too.
    """
    alone = True
    if isinstance(command, str | bytes | os.PathLike):
        text = os.fsdecode(command).strip()
        arguments, alone = _first_command(_split_words(text, operators=True))
        alone = alone and not _MORE_COMMANDS.search(text)
    else:
        try:
            arguments = [os.fsdecode(one) for one in command]
        except TypeError:  # no command at all: whoever runs it says so
            return None
    if len(arguments) > 2 and _PYTHON.match(arguments[0]) and arguments[1] == "-m":
        arguments = arguments[2:]
    if arguments[:2] == ["uv", "pip"]:
        arguments = arguments[1:]
    if arguments[1:2] != ["install"] or not _PIP.match(arguments[0]):
        return None
    if not alone:
        raise InstallRefused("`pip install` has to be a command of its own: write `%pip install name` on its own line")
    return arguments[2:]


def _first_command(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """Return the words of the first command, without where its output goes, and whether no other one has an effect."""
    found: list[str] = []
    left = iter(arguments)
    for word in left:
        if not (word and set(word) <= _OPERATORS):
            found.append(word)
        elif word.strip("&") in (">", ">>", ">|", "<"):
            next(left, "")
            if found and found[-1].isdecimal():  # 2>/dev/null
                found.pop()
        else:
            rest = list(left)
            return found, word == "|" and not any(set(one) & set(";&(") for one in rest if set(one) <= _OPERATORS)
    return found, True


def _split_words(text: str, *, operators: bool = False) -> list[str]:
    """Return the words of a command; none if a quote is not closed."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=operators)
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:
        return []
