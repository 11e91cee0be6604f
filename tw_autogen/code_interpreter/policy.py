"""`Policy`: what code may do, as data, by name or from YAML; `RuleSet`: a policy compiled to the visitor's checks."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

from tw_autogen.code_interpreter import rules as table
from tw_autogen.code_interpreter.rules import Finding
from tw_autogen.code_interpreter.syntax import ModulePath, format_attributes, formula_callees
from tw_autogen.errors import ConfigError, PolicyError, nearest, unknown_key
from tw_autogen.named_folders import checked_path
from tw_autogen.trust_store import over_no_link
from tw_autogen.yaml_files import read_mapping

PLUGIN: Final = "<plugin>"
"""The root of paths that lead into plugins."""

_BUILTIN_FUNCTIONS = frozenset(
    name
    for name, value in vars(builtins).items()
    if callable(value) and name[0] != "_" and not (isinstance(value, type) and issubclass(value, BaseException))
)
_TARGETS = frozenset({"path_or_buf", "path_or_buffer", "buf", None})
_LOADS = re.compile(r"(?:PATH|LIBRARY|LIBRARIES|TOKEN|KEY)$")
_DUNDER = re.compile(r"(?<!\w)__[A-Za-z0-9]\w*__(?!\w)")
_PLACE = re.compile(r"[a-z][a-z0-9+.-]+://\S*|(?:~|\.\.?|[a-z]:)[/\\]\S*|(?:/[^\s/<>]+){2,}/?", re.IGNORECASE)
_FILE_NAME = re.compile(r"[\w/-]+\.[A-Za-z]\w{1,9}")
_LONGEST_PLACE = 2000
_MAX_NAMED = 40
_IN_BRACKETS = re.compile(r" \([^()]*\)")


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
            `os.system`: a name in a module, or a submodule with all in it; `.unlink`: a method, called on anything but
            a module. `*` stands for any characters: `os.exec*`, `.read_*`.
        magics: The IPython magics that may be used, without `%`.
        shell: Allow `!command` and shell magics; installing packages stays refused.
        dynamic: Allow what only shows when it runs: dunder attributes, private parts of modules, methods and names
            taken by computed text or handed around, modules inside other objects.
        only_plugins: Allow nothing but calls of plugins, literals and variables, whatever else is said here.
        besides: A policy that a cell must keep as well; None: no other.
        install: What `%pip install` comes to, as the kernel's setting of that name says: `never`, `ask` or `allow`.

    Example:
        >>> Policy(modules=frozenset({"math"})).summary().splitlines()[1]
        '- Import only: math.'
    """

    modules: frozenset[str] | None = None
    blocked_modules: frozenset[str] = frozenset().union(*(rule.modules for rule in table.RULES))
    parts: frozenset[str] = table.PARTS
    functions: frozenset[str] | None = None
    blocked_functions: frozenset[str] = frozenset().union(*(rule.functions for rule in table.RULES))
    magics: frozenset[str] = table.MAGICS
    shell: bool = False
    dynamic: bool = True
    only_plugins: bool = False
    besides: Policy | None = None
    install: Literal["never", "ask", "allow"] = "never"

    def of_modules(self, names: Iterable[str]) -> Policy:
        """Return the same policy with only these modules, of those that it allows.

        A name in a module that it did not list (`pandas.read_pickle`) may be a function that it refuses: it holds, too.

        Example:
            >>> sorted(Policy(modules=frozenset({"math", "os.path"})).of_modules(["os", "re"]).modules)
            ['os.path']
        """
        wanted = frozenset(names)
        own = self.modules or frozenset()
        both = {one for one in wanted if _is_within(one, own)} | {one for one in own if _is_within(one, wanted)}
        left = wanted if self.modules is None else frozenset(both)
        return replace(self, modules=left, besides=self if any("." in one for one in left - own) else self.besides)

    @property
    def files(self) -> bool:
        """Whether code may open files at all."""
        return not table.FILES.functions <= self.blocked_functions

    def refused(self) -> str:
        """Return in one line what code may not do, for those who don't write it.

        Example:
            >>> Policy(blocked_modules=frozenset(), blocked_functions=frozenset({"eval"})).refused()
            'use eval'
        """
        lines = [line.removeprefix("- Don't ") for line in self.summary().splitlines() if line.startswith("- Don't ")]
        return "; ".join(_IN_BRACKETS.sub("", line).rstrip(".") for line in lines)

    def limits(self) -> tuple[str, ...]:
        """Return what alone code may import and call, each in words; nothing if neither is limited.

        Example:
            >>> Policy(modules=frozenset({"math"}), functions=frozenset()).limits()
            ('import only: math', 'call only plugins')
        """
        limits = []
        if self.modules is not None:
            limits.append(f"import only: {listed(self.modules)}" if self.modules else "import nothing")
        if self.functions is not None:
            limits.append(", ".join(["call only plugins", *sorted(self.functions)]))
        return tuple(limits)

    def summary(self) -> str:
        """Return in a few lines what code may not do, for a prompt; the same text for the same policy."""
        lines = ["Code is checked before it runs, and refused with the reason if it breaks these rules:"]
        if self.only_plugins:
            return "\n".join([*lines, "- Write nothing but calls of plugins, literals and variables."])
        lines += [f"- {limit[0].upper()}{limit[1:]}." for limit in self.limits()]
        blocked = self.blocked_modules | self.blocked_functions
        rules = [rule for rule in (*table.RULES, *table.STRICT_RULES) if rule.modules | rule.functions <= blocked]
        lines += [f"- Don't {rule.reason(packages=self.install != 'never')}." for rule in rules]
        more = blocked.difference(*(rule.modules | rule.functions for rule in rules))
        if more:
            lines.append(f"- Don't use {listed(more)}.")
        if not self.dynamic:
            lines.append("- Don't use dunder or private names, computed attributes, or methods without calling them.")
        if not self.magics:
            lines.append("- Don't use magics.")
        return "\n".join(lines)


def listed(names: Iterable[str]) -> str:
    """Return names in order, separated by commas, at most 40 of them; `none` for none."""
    known = sorted(names)
    more = [f"and {len(known) - _MAX_NAMED} more"] if len(known) > _MAX_NAMED else []
    return ", ".join([*known[:_MAX_NAMED], *more]) or "none"


POLICIES: Mapping[str, Policy] = {
    "default": Policy(),
    "strict": Policy(
        modules=table.STRICT_MODULES,
        blocked_functions=Policy().blocked_functions | table.STRICT_FUNCTIONS,
        magics=frozenset(),
        dynamic=False,
    ),
    "plugins-only": Policy(modules=frozenset(), magics=frozenset(), dynamic=False, only_plugins=True),
    "no-shell": Policy(
        blocked_modules=table.PROCESSES.modules | table.WAITING.modules | table.KERNEL.modules,
        blocked_functions=table.PROCESSES.functions | table.WAITING.functions | table.KERNEL.functions,
        parts=frozenset({"multiprocessing.cpu_count"}),
    ),
}
"""What each name means.

`default`: data work in the session's folder, and nothing that leaves it; `open` and `pathlib` are allowed, because the
sandbox confines them. `strict`: imports from a list, no files, nothing that only shows when it runs. `plugins-only`:
calls of plugins, literals and variables. `no-shell`: no processes, no shell, nobody at the keyboard; all else is
left to the sandbox.
"""

_SETS = ("modules", "blocked_modules", "parts", "functions", "blocked_functions", "magics")
_FLAGS = ("shell", "dynamic", "only_plugins")
_KEYS = ("base", *_SETS, *_FLAGS)


def find_policy(wanted: str | Path, *, folder: Path | None = None) -> Policy:
    """Return the policy of a name, or read one from a YAML file.

    Args:
        wanted: A name in `POLICIES`, or a path that ends in `.yaml` or `.yml`; `~` is the home.
        folder: Where a relative path begins; None: the current folder.

    Raises:
        ConfigError: there is no such policy.
        PolicyError: its YAML is wrong, or is reached over a link as `over_no_link` says.

    Example:
        >>> find_policy("strict").dynamic
        False
    """
    name = str(wanted).strip()
    if name.endswith((".yaml", ".yml")):
        with over_no_link():
            return read_policy((folder or Path()) / checked_path(name, "code_interpreter.policy"))
    known = name.replace("_", "-")
    if known not in POLICIES:
        raise ConfigError(
            f"code_interpreter.policy: no policy is called {name!r}{nearest(name, POLICIES)} (a policy of your own "
            "is a path that ends in .yaml)"
        )
    return POLICIES[known]


def read_policy(path: Path | str) -> Policy:
    """Read a policy from YAML.

    The keys are those of `Policy`, but for `install`, which is the kernel's setting, and `base`, the name of the policy
    that all else is taken from. A list replaces the base's; `{add: […], remove: […]}` changes it; `all` for `modules`
    and `functions` lifts the limit.

    Raises:
        PolicyError: naming file, key, and the neighbour that it was mistaken for.
    """
    path = Path(path)
    plain = read_mapping(path, PolicyError, keys=_KEYS)
    base = str(plain.get("base", "default"))
    if base not in POLICIES:
        raise PolicyError(f"base: no policy is called {base!r}{nearest(base, POLICIES)}", path=path)
    policy = POLICIES[base]
    changes: dict[str, Any] = {}
    for key, value in plain.items():
        if key in _SETS:
            changes[key] = _parse_names(key, value, getattr(policy, key), path)
        elif key in _FLAGS:
            if not isinstance(value, bool):
                raise PolicyError(f"{key}: expected true or false, found {value!r}", path=path)
            changes[key] = value
    return replace(policy, **changes)


def _parse_names(key: str, value: Any, before: frozenset[str] | None, path: Path) -> frozenset[str] | None:
    """Return one set of names, as a list says it or as the base's with changes."""
    if value == "all" and key in ("modules", "functions"):
        return None
    if isinstance(value, Mapping):
        if problem := unknown_key(value, ("add", "remove")):
            raise PolicyError(f"{key}: {problem}", path=path)
        if before is None:
            raise PolicyError(f"{key}: the base has no list that could be changed; write the whole list", path=path)
        added = _parse_name_list(f"{key}.add", value.get("add", []), path)
        removed = _parse_name_list(f"{key}.remove", value.get("remove", []), path)
        unknown = sorted(removed - before)
        if unknown:
            raise PolicyError(f"{key}.remove: {unknown[0]!r} is not in the base's list", path=path)
        return (before | added) - removed
    return _parse_name_list(key, value, path)


def _parse_name_list(key: str, value: Any, path: Path) -> frozenset[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) and one.strip() for one in value):
        raise PolicyError(f"{key}: expected a list of names, found {value!r}", path=path)
    return frozenset(one.strip() for one in value)


def _finding(kind: str, message: str, remedy: str = table.OTHER_REMEDY) -> Finding:
    return Finding(0, kind, message, remedy)


class RuleSet:
    """The questions that a policy answers, each with a finding for line 0, or with None for what is allowed."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._strict = not policy.dynamic
        blocked = policy.blocked_functions
        self._exact = {name for name in blocked if "*" not in name}
        self._patterns = table.name_matcher(name for name in blocked if "*" in name)
        self._harmless = table.name_matcher(table.HARMLESS if self._strict else ())
        self._partial = {part.partition(".")[0] for part in policy.parts}
        # `pandas.io.common.os` is os wherever it hangs; `scipy.signal` is not signal
        self._unmistakable = (policy.blocked_modules | self._partial) - table.WORDS

    def _is_blocked_name(self, name: str) -> bool:
        """Return whether `eval`, `os.system` or `.unlink` is blocked."""
        return name in self._exact or bool(self._patterns(name) and not self._harmless(name))

    def path(self, path: ModulePath, *, importing: bool = False, guessed: bool = False) -> Finding | None:
        """Check a name in a module.

        Args:
            path: Written out from the module's root.
            importing: It is imported, not used.
            guessed: The cell doesn't say that it is a module; it may be a variable.
        """
        if path[0] == PLUGIN:
            return _plugin_part(path)
        dotted = ".".join(path)
        doing = "import" if importing else "use"
        listed_anyway = guessed and (not self._strict or path[0] not in table.MODULES_INSIDE)
        finding = self._check_reached_module(path, doing) or (
            None if listed_anyway else self._check_allowed_modules(path, dotted, doing)
        )
        if finding:
            return finding
        prefix, harmless, blocked = "", False, None
        for name in path:
            prefix = f"{prefix}.{name}" if prefix else name
            if prefix in self.policy.blocked_modules and prefix not in self._partial:
                return _finding("module", f"{doing} of {prefix!r} is not allowed", table.remedy(prefix, prefix))
            harmless = harmless or self._harmless(prefix)
            if blocked is None and self._is_blocked_name(prefix):
                blocked = _finding("function", f"{prefix!r} is not allowed", table.remedy(prefix, path[0]))
        if (
            blocked
            and not harmless
            and not (importing and self._strict and self._is_prefix_of_any(dotted, table.HARMLESS))
        ):
            return blocked
        return self._check_allowed_parts(path, dotted, importing) or self._check_inner_names(path, doing)

    @staticmethod
    def _is_prefix_of_any(dotted: str, names: Iterable[str]) -> bool:
        return any(name.startswith(f"{dotted}.") for name in names)

    def _check_reached_module(self, path: ModulePath, doing: str) -> Finding | None:
        """Check a path that leads through one module into another: `pandas.io.common.os.system`."""
        inner = next((i for i in range(1, len(path)) if self.is_blocked_module(path[i])), 0)
        if not inner or ".".join(path[: inner + 1]) in self.policy.parts:
            return None
        module, where = path[inner].lstrip("_"), ".".join(path[:inner])
        reached = self.path((module, *path[inner + 1 :]))
        remedy = reached.remedy if reached else f"Write `import {module}`, and use it by its own name."
        return _finding("module", f"{doing} of {module!r} through {where!r} is not allowed", remedy)

    def _check_allowed_modules(self, path: ModulePath, dotted: str, doing: str) -> Finding | None:
        """Check a path under an allow-list of modules."""
        modules = self.policy.modules
        if modules is None or path[0] == "__future__" or _is_within(dotted, modules):
            return None
        if doing == "import" and self._is_prefix_of_any(dotted, modules):
            return None
        what = dotted if self._is_prefix_of_any(path[0], modules) or path[0] in modules else path[0]
        message = f"{doing} of {what!r} is not allowed; allowed: {listed(modules)}"
        return _finding("module", message, "Use only the modules that are allowed, or plain Python.")

    def _check_allowed_parts(self, path: ModulePath, dotted: str, importing: bool) -> Finding | None:
        """Check a name in a module of which only parts may be used."""
        if path[0] not in self._partial or _is_within(dotted, self.policy.parts):
            return None
        parts = [part for part in self.policy.parts if part.startswith(dotted + ".")]
        if parts and importing:
            return None
        if parts:  # the bare module handed around: what is taken from it then can't be seen
            remedy = f"Write what you need out in full where you use it, such as {min(parts)!r}."
            return _finding("module", f"{dotted!r} may not be passed around, renamed or looked into", remedy)
        return _finding("function", f"{dotted!r} is not allowed", table.remedy(dotted, path[0]))

    def _check_inner_names(self, path: ModulePath, doing: str) -> Finding | None:
        """Check each name after the module's own, where nothing may be left to running."""
        where = path[0]
        for name in path[1:] if self._strict else ():
            inner = f"{where}.{name}"
            if name.startswith("_") and name not in table.PLAIN_DUNDERS:
                return _finding(
                    "attribute", f"{doing} of {name!r} in {where!r} is not allowed", "Use public names only."
                )
            finding = self.method(name) or self.check_nested_module(name)
            if finding and inner not in (self.policy.modules or ()) and not self._harmless(inner):
                return finding
            where = inner
        return None

    def is_blocked_module(self, name: str) -> bool:
        """Return whether a name inside something else is a blocked or partly open module, and nothing else."""
        return name.lstrip("_") in self._unmistakable

    def check_nested_module(self, name: str) -> Finding | None:
        """Check an attribute that is probably a module, whatever it hangs on."""
        if not self._strict or name not in table.MODULES_INSIDE:
            return None
        return _finding("module", f"use of the module {name!r} inside something else is not allowed")

    def check_dynamic_attribute(self, name: str) -> Finding | None:
        """Check an attribute that is taken by its name from an unknown object."""
        if self.is_blocked_module(name):
            return self.path((name.lstrip("_"), "?"))
        return self.check_nested_module(name) or (self.method(name) if self._strict else None)

    def check_import_alias(self, path: ModulePath, name: str) -> Finding | None:
        """Check the name that a module is imported under: a later cell knows its own and the usual short one.

        Args:
            path: The module.
            name: The name after `as`.
        """
        dotted = ".".join(path)
        known = name == path[-1] or table.USUAL_NAMES.get(name) == dotted
        if known or path[0] not in self._partial or _is_within(dotted, self.policy.parts):
            return None
        remedy = f"Import {dotted!r} without `as`, and use it in full."
        return _finding("module", f"{dotted!r} may not get another name", remedy)

    def star(self, path: ModulePath) -> Finding | None:
        """Check `from path import *`."""
        dotted = ".".join(path)
        finding = self.path(path, importing=True)
        is_part = path[0] in self._partial and not _is_within(dotted, self.policy.parts)
        if finding or not (self._strict or is_part):
            return finding
        message = f"import of everything in {dotted!r} is not allowed"
        return _finding("module", message, "Import the names that you need, one by one.")

    def name(self, name: str) -> Finding | None:
        """Check a built-in name."""
        if self._is_blocked_name(name):
            return _finding("function", f"{name!r} is not allowed", table.remedy(name, name))
        return self.unlisted_function(name) if name in _BUILTIN_FUNCTIONS else self.attribute(name)

    def method(self, name: str, *, called: bool = True) -> Finding | None:
        """Check a method of an object of unknown type; one that is not called matters to `strict` alone.

        Args:
            name: The attribute's name.
            called: Whether it is called, not only named.
        """
        if (not called and (not self._strict or name in table.COLUMN_WORDS)) or not self._is_blocked_name(f".{name}"):
            return None
        return _finding("function", f"'.{name}' is not allowed", table.remedy("." + name, name))

    def call(self, name: str, node: ast.Call) -> Finding | None:
        """Check a method by its call: `df.to_csv()` without a target writes nothing, and returns the text.

        Args:
            name: The method's name.
            node: The call, with its arguments.
        """
        writes = node.args or any(keyword.arg in _TARGETS for keyword in node.keywords)
        return None if name in table.TEXT_WRITERS and not writes else self.method(name)

    def unlisted_function(self, name: str) -> Finding | None:
        """Check a call under an allow-list of functions."""
        functions = self.policy.functions
        if functions is None or name in functions:
            return None
        message = f"call of {name!r} is not allowed; allowed: {listed(functions)}"
        return _finding("function", message, "Call only what is allowed, or plugins.")

    def attribute(self, name: str) -> Finding | None:
        """Check an attribute of any object."""
        if name in table.ESCAPES or (self._strict and _DUNDER.fullmatch(name) and name not in table.PLAIN_DUNDERS):
            remedy = "Leave Python's internals alone; `type(x).__name__`, `vars(x)` and `dir(x)` are allowed."
            return _finding("attribute", f"{name!r} is not allowed", remedy)
        return None

    def check_dunder_in_expression(self, name: str) -> Finding | None:
        """Check a dunder attribute in a text that pandas runs, where there is no honest one."""
        if "eval" not in self._exact:
            return None
        return _finding("attribute", f"{name!r} in an expression is not allowed", "Use columns, operators and methods.")

    def check_definition(self, name: str) -> Finding | None:
        """Check a name that the cell gives to something of its own, such as a class's hook."""
        honest = not self._strict and name in table.PICKLING_HOOKS  # what it returns is checked where it stands
        if (name in table.ESCAPES and not honest) or (self._strict and name in table.DISPLAY_HOOKS):
            return _finding("attribute", f"{name!r} may not be defined", "Print what is to be seen.")
        return None

    def may_set_env(self, variable: str) -> bool:
        """Return whether code may set this environment variable, one that a numerical library reads."""
        known = any(fnmatchcase(variable, pattern) for pattern in table.LIBRARY_VARIABLES)
        return not self._strict and known and not _LOADS.search(variable)

    def check_literal(self, text: str) -> Finding | None:
        """Check a literal: dunder names, attributes that a format reads, calls in formulas (`strict`: any)."""
        read = format_attributes(text)
        checks = [self.attribute(name) for name in [*_DUNDER.findall(text), *read]]
        checks += [self.check_dynamic_attribute(name) for name in read]
        if "(" in text and ("~" in text or self._strict):
            checks += map(self._check_formula_callee, formula_callees(text))
        return next(filter(None, checks), None)

    def _check_formula_callee(self, func: ast.expr) -> Finding | None:
        if isinstance(func, ast.Attribute):
            return self.method(func.attr)
        return self.name(func.id) if isinstance(func, ast.Name) and self._is_blocked_name(func.id) else None

    def place(self, text: str, *, names: bool = False) -> Finding | None:
        """Check a text that a call gets: where no file may be used, it names no path, address, or (`names`) file.

        Args:
            text: A literal argument.
            names: Whether a bare file name counts as well.
        """
        text = text.strip()
        is_place = len(text) <= _LONGEST_PLACE and (_PLACE.fullmatch(text) or (names and _FILE_NAME.fullmatch(text)))
        if not self._strict or not is_place:
            return None
        short = text if len(text) <= 60 else f"{text[:57]}..."
        return _finding(
            "file", f"{short!r}: files and addresses are not allowed", "Work on the variables that are there."
        )

    def option(self, function: str, name: str, text: str | None) -> Finding | None:
        """Check an option of a call, or an attribute that is set, by its name; `text` is its value if that is known.

        Args:
            function: What is called; empty for an attribute that is set.
            name: The option's name.
            text: Its value; None: not known before the code runs.
        """
        option = f"{function}.{name}"
        if not self._strict or not _OPTIONS(option) or (text is not None and text == table.HARMLESS_OPTIONS.get(name)):
            return None
        return _finding(
            "file", f"option {name!r} is not allowed", "Leave the option out; files and programs can't be used."
        )

    def setting(self, name: str) -> Finding | None:
        """Check the name of a setting of matplotlib or pandas."""
        if _SETTINGS.match(name):
            return None
        return _finding("function", f"setting {name!r} is not allowed", "Leave the setting as it is.")


_OPTIONS = table.name_matcher(table.OPTIONS)
_SETTINGS = re.compile(table.SETTINGS)


@lru_cache(maxsize=32)
def rules_of(policy: Policy) -> RuleSet:
    """Return a policy's rule set, made once for each policy."""
    return RuleSet(policy)


def _is_within(dotted: str, known: frozenset[str]) -> bool:
    """Return whether a path, or something that it lies in, is among the known ones."""
    while dotted not in known:
        dotted, dot, _ = dotted.rpartition(".")
        if not dot:
            return False
    return True


def _plugin_part(path: ModulePath) -> Finding | None:
    if len(path) <= 2 or path[2] in {"__name__", "__doc__"} or path[2:] == ("submit",):
        return None
    return _finding("plugin", f"{'.'.join(path[1:])!r} is not allowed", f"Only call the plugin: `{path[1]}(...)`.")
