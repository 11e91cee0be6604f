"""One policy made ready for judging: is this import, path, name, method or attribute allowed, and if not, what then."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

from tw_autogen.code_interpreter.bans import (
    BANS,
    DISPLAY_HOOKS,
    ESCAPES,
    LIBRARY_VARIABLES,
    MODULES_INSIDE,
    PICKLING_HOOKS,
    PLAIN_DUNDERS,
    STRICT_BANS,
    WORDS,
)
from tw_autogen.code_interpreter.expressions import EVALUATORS
from tw_autogen.code_interpreter.literals import attributes_read, is_place
from tw_autogen.code_interpreter.names import PLUGIN, Path
from tw_autogen.code_interpreter.policy import Policy, listed


@dataclass(frozen=True)
class Finding:
    """One thing in a cell that breaks a policy.

    Args:
        line: In the code as written, counted from 1.
        kind: `syntax`, `module`, `function`, `attribute`, `file`, `plugin`, `magic`, `shell` or `install`.
        message: What is wrong.
        remedy: What to do instead; a sentence or two.
    """

    line: int
    kind: str
    message: str
    remedy: str

    def __str__(self) -> str:
        """Give `line 1 (module): import of 'os' is not allowed; allowed: math`."""
        return f"line {self.line} ({self.kind}): {self.message}"


@dataclass(frozen=True)
class Fault:
    """A finding that doesn't know its line yet."""

    kind: str
    message: str
    remedy: str

    def at(self, line: int) -> Finding:
        """Give the finding."""
        return Finding(line, self.kind, self.message, self.remedy)


EVALUATED = Fault(
    "function",
    "'.eval' and '.query' of a text that is not written out in the call are not allowed",
    "Write the expression in the call, with `@name` for values, such as `df.query('a > @limit')`, or plain Python; "
    "`query` of a search tree passes with its `k=`.",
)
"""Of a text that is computed, or of one of these methods that is handed around."""

_BUILTIN_FUNCTIONS = frozenset(
    name for name, value in vars(builtins).items() if callable(value) and not name.startswith("_")
) - {name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException)}
_OTHER_REMEDY = "Solve the task without it."
_COLUMN_WORDS = frozenset({"open", "load", "save", "dump", "connect", "glob", "walk", "touch", "system", "fork", "mro"})
_TEXT_WRITERS = frozenset({"to_csv", "to_json", "to_string", "to_html", "to_latex", "to_markdown", "to_xml"})
_TARGETS = frozenset({"path_or_buf", "path_or_buffer", "buf", None})
_LOADS = re.compile(r"(?:PATH|LIBRARY|LIBRARIES|TOKEN|KEY)$")
_DUNDER = re.compile(r"(?<!\w)__[A-Za-z0-9]\w*__(?!\w)")


class Rules:
    """The questions that a policy answers; each answer is a fault, or None for allowed."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        blocked = policy.blocked_functions
        self._prefixes = tuple(name[:-1] for name in blocked if name.endswith("*") and not name.startswith("."))
        self._paths = {name for name in blocked if "." in name[1:] and not name.startswith(".")}
        self._names = {name for name in blocked if "." not in name}
        self._methods = {name[1:] for name in blocked if name.startswith(".") and not name.endswith("*")}
        self._method_prefixes = tuple(name[1:-1] for name in blocked if name.startswith(".") and name.endswith("*"))
        self._open_parts = policy.parts
        self._partial = {part.partition(".")[0] for part in policy.parts}
        # `pandas.io.common.os` is os wherever it hangs; `scipy.signal` is not signal
        self._unmistakable = (policy.blocked_modules | self._partial) - WORDS

    def path(self, path: Path, *, importing: bool = False, assumed: bool = False) -> Fault | None:
        """Judge a name in a module.

        Args:
            path: Written out from the module's root.
            importing: It is imported, not used.
            assumed: The cell doesn't say that it is a module; it may be a variable.
        """
        if path[0] == PLUGIN:
            return _plugin_part(path)
        dotted = ".".join(path)
        doing = "import" if importing else "use"
        guessed = assumed and (self.policy.dynamic or path[0] not in MODULES_INSIDE)
        fault = self._through(path, doing) or (None if guessed else self._unlisted(path, dotted, doing))
        if fault:
            return fault
        for prefix in _prefixes(path):
            if prefix in self.policy.blocked_modules and prefix not in self._partial:
                return Fault("module", f"{doing} of {prefix!r} is not allowed", _remedy(prefix, prefix))
            if prefix in self._paths or prefix.startswith(self._prefixes):
                return Fault("function", f"{prefix!r} is not allowed", _remedy(prefix, path[0]))
        return self._part(path, dotted, importing) or self._inside(path, doing)

    def _through(self, path: Path, doing: str) -> Fault | None:
        """Judge a path that leads through one module into another: `pandas.io.common.os.system`."""
        inner = next((i for i in range(1, len(path)) if self.hidden(path[i])), 0)
        if not inner or ".".join(path[: inner + 1]) in self._open_parts:
            return None
        module, where = path[inner].lstrip("_"), ".".join(path[:inner])
        reached = self.path((module, *path[inner + 1 :]))
        remedy = reached.remedy if reached else f"Write `import {module}`, and use it by its own name."
        return Fault("module", f"{doing} of {module!r} through {where!r} is not allowed", remedy)

    def _inside(self, path: Path, doing: str) -> Fault | None:
        """Judge each name behind a module's own, where nothing may be left to running."""
        if self.policy.dynamic:
            return None
        for at, name in enumerate(path[1:], 1):
            where = ".".join(path[:at])
            if name.startswith("_") and name not in PLAIN_DUNDERS:
                return Fault("attribute", f"{doing} of {name!r} in {where!r} is not allowed", "Use public names only.")
            fault = self.method(name) or self.inside(name)
            if fault and ".".join(path[: at + 1]) not in (self.policy.modules or ()):
                return fault
        return None

    def inside(self, name: str) -> Fault | None:
        """Judge an attribute that is probably a module, whatever it hangs on."""
        if self.policy.dynamic or name not in MODULES_INSIDE:
            return None
        return Fault("module", f"use of the module {name!r} inside something else is not allowed", _OTHER_REMEDY)

    def reached(self, name: str) -> Fault | None:
        """Judge an attribute that is taken by its name from an object that isn't known."""
        if self.hidden(name):
            return self.path((name.lstrip("_"), "?"))
        return self.inside(name) or (self.method(name) if not self.policy.dynamic else None)

    def place(self, text: str, *, opens: bool) -> Fault | None:
        """Judge a text that a call gets: where no file may be used, it may name neither a path nor an address.

        Args:
            text: Given as it stands.
            opens: The call or its keyword sounds like files, so that a plain file name is one too.
        """
        if self.policy.dynamic or not is_place(text, names=opens):
            return None
        short = text if len(text) <= 60 else f"{text[:57]}..."
        return Fault("file", f"{short!r}: files and addresses are not allowed", "Work on the variables that are there.")

    def defined(self, name: str) -> Fault | None:
        """Judge a name that the cell gives to something of its own, such as a class's hook."""
        honest = self.policy.dynamic and name in PICKLING_HOOKS  # what it returns is judged where it stands
        if (name in ESCAPES and not honest) or (not self.policy.dynamic and name in DISPLAY_HOOKS):
            return Fault("attribute", f"{name!r} may not be defined", "Print what is to be seen.")
        return None

    def handed(self, name: str) -> Fault | None:
        """Judge a method that is taken without being called."""
        return None if self.policy.dynamic or name in _COLUMN_WORDS else self.method(name)

    def evaluator(self, names: Iterable[str]) -> Fault | None:
        """Judge attributes that are taken without being called: `eval` and `query` would run any text later."""
        return None if self.policy.dynamic or EVALUATORS.isdisjoint(names) else EVALUATED

    def settable(self, variable: str) -> bool:
        """Return whether code may set this environment variable, one that a numerical library reads."""
        return self.policy.dynamic and bool(
            any(fnmatchcase(variable, known) for known in LIBRARY_VARIABLES) and not _LOADS.search(variable)
        )

    def in_expression(self, name: str) -> Fault | None:
        """Judge an attribute in a text that pandas runs, where there is no honest dunder."""
        if "eval" not in self._names or not _DUNDER.fullmatch(name) or self.attribute(name):
            return None
        return Fault("attribute", f"{name!r} in an expression is not allowed", "Use columns, operators and methods.")

    def _unlisted(self, path: Path, dotted: str, doing: str) -> Fault | None:
        """Judge a path under an allow-list of modules."""
        modules = self.policy.modules
        if modules is None or path[0] == "__future__" or _within(dotted, modules):
            return None
        if doing == "import" and any(known.startswith(dotted + ".") for known in modules):
            return None
        known_root = any(known.partition(".")[0] == path[0] for known in modules)
        what = dotted if known_root else path[0]
        message = f"{doing} of {what!r} is not allowed; allowed: {listed(modules)}"
        return Fault("module", message, "Use only the modules that are allowed, or plain Python.")

    def hidden(self, name: str) -> bool:
        """Tell whether a name inside something else is a blocked or partly open module, and nothing else."""
        return name.lstrip("_") in self._unmistakable

    def _part(self, path: Path, dotted: str, importing: bool) -> Fault | None:
        """Judge a name in a module of which only parts may be used."""
        if path[0] not in self._partial or _within(dotted, self._open_parts):
            return None
        parts = [part for part in self._open_parts if part.startswith(dotted + ".")]
        if parts and importing:
            return None
        if parts:  # the bare module handed around: what is taken from it then can't be seen
            remedy = f"Write what you need out in full where you use it, such as {min(parts)!r}."
            return Fault("module", f"{dotted!r} may not be passed around, renamed or looked into", remedy)
        return Fault("function", f"{dotted!r} is not allowed", _remedy(dotted, path[0]))

    def renamed(self, path: Path) -> Fault | None:
        """Judge the import of a module under another name, which a later cell couldn't tell from a variable."""
        dotted = ".".join(path)
        if path[0] in self._partial and not _within(dotted, self._open_parts):
            return Fault(
                "module", f"{dotted!r} may not get another name", f"Import {dotted!r} without `as`, and use it in full."
            )
        return None

    def star(self, path: Path) -> Fault | None:
        """Judge `from path import *`."""
        fault = self.path(path, importing=True)
        if fault is None and not self.policy.dynamic:
            message = f"import of everything in {'.'.join(path)!r} is not allowed"
            return Fault("module", message, "Import the names that you need, one by one.")
        if fault is None and path[0] in self._partial and not _within(".".join(path), self._open_parts):
            message = f"import of everything in {'.'.join(path)!r} is not allowed"
            return Fault("module", message, "Import the names that you need, one by one.")
        return fault

    def name(self, name: str) -> Fault | None:
        """Judge a built-in name."""
        if name in self._names:
            return Fault("function", f"{name!r} is not allowed", _remedy(name, name))
        return self.call(name) if name in _BUILTIN_FUNCTIONS else self.attribute(name)

    def method(self, name: str) -> Fault | None:
        """Judge a method called on an object of unknown type."""
        if name in self._methods or (self._method_prefixes and name.startswith(self._method_prefixes)):
            return Fault("function", f"'.{name}' is not allowed", _remedy("." + name, name))
        return None

    def call_of(self, name: str, node: ast.Call) -> Fault | None:
        """Judge a method by its call: `df.to_csv()` without a target writes nothing, and gives the text."""
        writes = node.args or any(keyword.arg in _TARGETS for keyword in node.keywords)
        return None if name in _TEXT_WRITERS and not writes else self.method(name)

    def attribute(self, name: str) -> Fault | None:
        """Judge an attribute of any object."""
        if name in ESCAPES or (not self.policy.dynamic and _DUNDER.fullmatch(name) and name not in PLAIN_DUNDERS):
            remedy = "Leave Python's internals alone; `type(x).__name__`, `vars(x)` and `dir(x)` are allowed."
            return Fault("attribute", f"{name!r} is not allowed", remedy)
        return None

    def text(self, text: str) -> Fault | None:
        """Judge a literal: dunder names, formulas; where nothing may be left to running, code and methods' names."""
        read = list(attributes_read(text))
        for name in [*_DUNDER.findall(text), *read]:
            if fault := self.attribute(name):
                return fault
        for name in read:
            if fault := self.reached(name):
                return fault
        if text.isidentifier():
            return self.handed(text)
        return self._code(text) if "(" in text and ("~" in text or not self.policy.dynamic) else None

    def _code(self, text: str) -> Fault | None:
        """Judge a literal that reads as an expression with calls in it, such as the right side of a formula."""
        try:
            tree = ast.parse(text.rpartition("~")[2].strip().lstrip("=").replace("@", ""), mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            func = node.func
            fault = None
            if isinstance(func, ast.Name) and func.id in self._names:
                fault = self.name(func.id)
            elif isinstance(func, ast.Attribute):
                fault = self.method(func.attr)
            if fault:
                return fault
        return None

    def call(self, name: str) -> Fault | None:
        """Judge a call under an allow-list of functions."""
        functions = self.policy.functions
        if functions is None or name in functions:
            return None
        message = f"call of {name!r} is not allowed; allowed: {listed(functions)}"
        return Fault("function", message, "Call only what is allowed, or plugins.")

    @property
    def calls_are_listed(self) -> bool:
        """Whether only listed functions may be called."""
        return self.policy.functions is not None


@lru_cache(maxsize=32)
def rules_of(policy: Policy) -> Rules:
    """Give a policy's rules, made once for each policy."""
    return Rules(policy)


def _prefixes(path: Path) -> Iterator[str]:
    dotted = path[0]
    yield dotted
    for name in path[1:]:
        dotted = f"{dotted}.{name}"
        yield dotted


def _within(dotted: str, known: frozenset[str]) -> bool:
    """Whether a path, or something that it lies in, is among the known ones."""
    while dotted not in known:
        dotted, dot, _ = dotted.rpartition(".")
        if not dot:
            return False
    return True


def _plugin_part(path: Path) -> Fault | None:
    if len(path) <= 2 or path[2] in {"__name__", "__doc__"} or path[2:] == ("submit",):
        return None
    return Fault("plugin", f"{'.'.join(path[1:])!r} is not allowed", f"Only call the plugin: `{path[1]}(...)`.")


def _remedy(name: str, module: str) -> str:
    for ban in (*BANS, *STRICT_BANS):
        if any(name == known or (known.endswith("*") and name.startswith(known[:-1])) for known in ban.functions):
            return ban.remedy
    return next((ban.remedy for ban in BANS if module.partition(".")[0] in ban.modules), _OTHER_REMEDY)
