"""`Policy`: what code may do, as data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Literal

from tw_autogen.code_interpreter.bans import BANS, FILES, MAGICS, PARTS, STRICT_BANS, Ban

_IN_BRACKETS = re.compile(r" \([^()]*\)")


def _all_of(get: Callable[[Ban], frozenset[str]]) -> frozenset[str]:
    return reduce(frozenset.union, map(get, BANS))


@dataclass(frozen=True)
class Policy:
    """What code may do; `Policy()` is the default: data work in the session's folder, and nothing that leaves it.

    Args:
        modules: The only modules that may be imported, as `pandas` (with all that is in it) or `os.path`; None: all
            that are not blocked.
        blocked_modules: Modules that may not be imported, nor be reached through others.
        parts: Of a module that is named here, only these parts may be used, though it is blocked: `os.path` and
            `os.listdir` leave nothing else of `os`. A module that isn't named here is whole, or blocked.
        functions: The only functions that may be called, beside plugins and those that the cell itself defines;
            None: all that are not blocked.
        blocked_functions: What may not be used. `eval`: a built-in, wherever the name is used, called or not;
            `os.system`: a name in a module, or a submodule with all in it; `os.exec*`: those that begin so;
            `.unlink`: a method, called on anything but a module.
        magics: The IPython magics that may be used, without `%`.
        shell: Allow `!command` and shell magics; installing packages stays refused.
        dynamic: Allow what only shows when it runs: dunder attributes, private parts of modules, methods and names
            taken by computed text or handed around, modules inside other objects.
        only_plugins: Allow nothing but calls of plugins, literals and variables, whatever else is said here.
        install: What `%pip install` comes to, as the kernel's setting of that name says: `never`, `ask` or `allow`.

    Example:
        >>> Policy(modules=frozenset({"math"})).summary().splitlines()[1]
        '- Import only: math.'
    """

    modules: frozenset[str] | None = None
    blocked_modules: frozenset[str] = _all_of(lambda ban: ban.modules)
    parts: frozenset[str] = PARTS
    functions: frozenset[str] | None = None
    blocked_functions: frozenset[str] = _all_of(lambda ban: ban.functions)
    magics: frozenset[str] = MAGICS
    shell: bool = False
    dynamic: bool = True
    only_plugins: bool = False
    install: Literal["never", "ask", "allow"] = "never"

    def of_modules(self, names: Iterable[str]) -> Policy:
        """Give the same policy with only these modules, of those that it allows.

        Example:
            >>> sorted(Policy(modules=frozenset({"math", "os.path"})).of_modules(["os", "re"]).modules)
            ['os.path']
        """
        wanted = frozenset(names)
        if self.modules is None:
            return replace(self, modules=wanted)
        own = self.modules
        both = {one for one in wanted if _is_in(one, own)} | {one for one in own if _is_in(one, wanted)}
        return replace(self, modules=frozenset(both))

    @property
    def files(self) -> bool:
        """Whether code may open files at all."""
        return not FILES.functions <= self.blocked_functions

    def refused(self) -> str:
        """Say in one line what code may not do, for somebody who doesn't write it.

        Example:
            >>> Policy(blocked_modules=frozenset(), blocked_functions=frozenset({"eval"})).refused()
            'use eval'
        """
        lines = [line.removeprefix("- Don't ") for line in self.summary().splitlines() if line.startswith("- Don't ")]
        return "; ".join(_IN_BRACKETS.sub("", line).rstrip(".") for line in lines)

    def summary(self) -> str:
        """Say in a few lines what code may not do, for a prompt; the same text for the same policy."""
        lines = ["Code is checked before it runs, and refused with the reason if it breaks these rules:"]
        if self.only_plugins:
            return "\n".join([*lines, "- Write nothing but calls of plugins, literals and variables."])
        if self.modules is not None:
            lines.append(f"- Import {'only: ' + listed(self.modules) if self.modules else 'nothing'}.")
        if self.functions is not None:
            lines.append(f"- Call only plugins{''.join(', ' + name for name in sorted(self.functions))}.")
        every = (*BANS, *STRICT_BANS)
        bans = [ban for ban in every if ban.modules <= self.blocked_modules and ban.functions <= self.blocked_functions]
        lines += [f"- Don't {ban.what if self.install == 'never' else ban.what_but_pip}." for ban in bans]
        more = self.blocked_modules.union(self.blocked_functions).difference(
            *(ban.modules | ban.functions for ban in bans)
        )
        if more:
            lines.append(f"- Don't use {listed(more)}.")
        if not self.dynamic:
            lines.append("- Don't use dunder or private names, computed attributes, or methods without calling them.")
        if not self.magics:
            lines.append("- Don't use magics.")
        return "\n".join(lines)


def _is_in(module: str, allowed: Iterable[str]) -> bool:
    return any(module == one or module.startswith(f"{one}.") for one in allowed)


def listed(names: Iterable[str], *, limit: int = 40) -> str:
    """Give names in order, separated by commas, at most `limit` of them."""
    known = sorted(names)
    more = [f"and {len(known) - limit} more"] if len(known) > limit else []
    return ", ".join([*known[:limit], *more]) or "none"
