"""What `get_ipython().…(…)` would do, whether written so or made by IPython from `%magic` and `!command`."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from tw_autogen.code_interpreter.bans import MAGICS, SHELL_MAGICS
from tw_autogen.code_interpreter.policy import listed
from tw_autogen.code_interpreter.rules import Fault, Rules
from tw_autogen.kernel.guest.packages import install_words

_INSTALL = re.compile(
    r"^\s*(?:sudo\s+)?(?:\S*python[\d.]*\s+-m\s+)?(?:uv\s+)?(?:pip[\d.]*|conda|mamba|micromamba|poetry|uv|apt|apt-get|brew)"
    r"\b.*\b(?:install|add|uninstall|remove|update|upgrade)\b"
)
_MORE_COMMANDS = re.compile(r"[;&|`\n<>]|\$\(")
_PACKAGERS = frozenset({"pip", "conda", "mamba", "micromamba", "uv"})
_CODE_MAGICS = frozenset({"time", "timeit"})
_BODY_MAGICS = _CODE_MAGICS | {"capture"}
_OPTIONS = re.compile(r"^(?:\s*(?:-[nrp]\s*\d+|-[tcqov]+|--no-raise-error)(?=\s|$))*\s*")
_CONFIG = re.compile(r"\s*InlineBackend\.\w+(?:\s*=\s*(?P<value>.*))?$", re.DOTALL)

_INSTALL_FAULT = Fault(
    "install",
    "packages can't be installed here",
    "Leave the line out and use what is installed; if a library is missing, solve the task another way.",
)
_OTHER_INSTALL_FAULT = Fault("install", "this can't be installed here", "Write `%pip install name`, with names only.")
_WRITABLE = MAGICS | SHELL_MAGICS | _PACKAGERS | {"cd", "run", "load", "env", "writefile"}
_SHELL_REMEDY = "Use Python instead: `os.listdir`, `pathlib`, `open`, `shutil.copy`."


@dataclass(frozen=True)
class Effect:
    """What a call of the shell's methods does.

    Args:
        faults: What is wrong with it.
        codes: Cells that it would run in turn, each with the number of lines between its own first line and the call's.
    """

    faults: tuple[Fault, ...] = ()
    codes: tuple[tuple[str, int], ...] = ()


def effect_of(node: ast.Call, rules: Rules) -> Effect | None:
    """Say what `get_ipython().method("…", "…")` does.

    Returns:
        The effect, or None if it can't be told.
    """
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    values = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    if node.keywords or len(values) != len(node.args):
        return None
    if method in {"system", "getoutput"} and len(values) == 1:
        return Effect(_command(values[0], rules))
    if method == "run_line_magic" and len(values) == 2:
        return _line_magic(values[0], values[1], rules)
    if method == "run_cell_magic" and len(values) == 3:
        return _cell_magic(values[0], values[1], values[2], rules)
    return Effect() if method == "show_usage" else None


def unmarked(code: str) -> str:
    """Return the magic that a cell without valid syntax begins with, though without its `%`; empty if it is none.

    Example:
        >>> unmarked("pip install pandas"), unmarked("x = (1,")
        ('pip', '')
    """
    name = code.lstrip()[:20].split(maxsplit=1)[:1]
    return name[0] if name and name[0] in _WRITABLE else ""


def _command(command: str, rules: Rules) -> tuple[Fault, ...]:
    if rules.policy.install != "never" and install_words(command) is not None:
        return _expanded("pip", command)
    if _INSTALL.search(command) and not _MORE_COMMANDS.search(command.partition("#")[0]):
        return (_INSTALL_FAULT if rules.policy.install == "never" else _OTHER_INSTALL_FAULT,)
    if rules.policy.shell and not _INSTALL.search(command):
        return ()
    return (Fault("shell", f"shell command {_short(command)!r} is not allowed", _SHELL_REMEDY),)


def _line_magic(name: str, line: str, rules: Rules) -> Effect:
    fault = _magic(name, line, rules, sign="%")
    if fault:
        return Effect((fault,))
    if name in _CODE_MAGICS:
        return Effect(codes=((_OPTIONS.sub("", line, count=1), 0),))
    if name == "config":
        return _config(line)
    return Effect(_expanded(name, line))


def _cell_magic(name: str, line: str, body: str, rules: Rules) -> Effect:
    fault = _magic(name, line, rules, sign="%%")
    if fault:
        return Effect((fault,))
    if name not in _BODY_MAGICS:
        return Effect((_not_allowed(name, rules, sign="%%"),))
    first = _OPTIONS.sub("", line, count=1) if name in _CODE_MAGICS else ""  # %%timeit takes its setup there
    return Effect(() if name in _CODE_MAGICS else _expanded(name, line), ((first, 0), (body, 1)))


def _magic(name: str, line: str, rules: Rules, *, sign: str) -> Fault | None:
    if name == "pip" and rules.policy.install != "never" and line.split()[:1] == ["install"]:
        return None
    if name in _PACKAGERS:
        return (_command(f"{name} {line}", rules) or (None,))[0]
    if name in SHELL_MAGICS:
        if rules.policy.shell:
            return None
        return Fault("shell", f"shell magic {sign + name!r} is not allowed", _SHELL_REMEDY)
    return None if name in rules.policy.magics else _not_allowed(name, rules, sign=sign)


def _not_allowed(name: str, rules: Rules, *, sign: str) -> Fault:
    allowed = listed("%" + magic for magic in rules.policy.magics)
    return Fault("magic", f"magic {sign + name!r} is not allowed; allowed: {allowed}", "Write plain Python instead.")


def _config(line: str) -> Effect:
    """Judge `%config`, which runs what stands behind `=`."""
    found = _CONFIG.match(line)
    if not found:
        return Effect((Fault("magic", "'%config' may only set InlineBackend", "Leave the line out."),))
    return Effect(codes=((found["value"] or "", 0),))


def _expanded(name: str, line: str) -> tuple[Fault, ...]:
    """Judge the `{…}` and `$…` in a magic's arguments: IPython evaluates them."""
    if "{" not in line and "$" not in line:
        return ()
    return (Fault("magic", f"arguments of '%{name}' may hold no braces and no '$'", "Write the value itself."),)


def _short(command: str) -> str:
    first = command.strip().partition("\n")[0]
    return first if len(first) <= 60 else first[:57] + "..."
