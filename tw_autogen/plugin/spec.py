"""`PluginSpec`: what a plugin is called, takes, gives and where it runs, read from its YAML."""

from __future__ import annotations

import inspect
import json
import keyword
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from tw_autogen.errors import PluginSpecError, nearest, unknown_key
from tw_autogen.kernel import Loadable
from tw_autogen.kernel.guest import PluginContext
from tw_autogen.plugin.stub import as_function, plugin_line, signature
from tw_autogen.trusted_files import TrustedFiles, read_text
from tw_autogen.variable_names import RESERVED, name_problem
from tw_autogen.yaml_files import read_yaml

NO_DEFAULT: Any = inspect.Parameter.empty

_WORDS = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    list: "a list",
    dict: "keys and values",
}
_PLUGIN_KEYS: Mapping[str, type] = {
    "name": str,
    "description": str,
    "parameters": list,
    "returns": list,
    "enabled": bool,
    "required": bool,
    "plugin_only": bool,
    "code": str,
    "examples": str,
    "configurations": dict,
    "runs_in": str,
    "calls": int,
    "seconds": float,
    "tags": list,
}
_PARAMETER_KEYS: Mapping[str, type] = {
    "name": str,
    "type": str,
    "required": bool,
    "description": str,
    "default": object,
    "by": str,
}
_BY = ("position", "keyword")


@dataclass(frozen=True)
class Parameter:
    """One argument that a plugin takes, or one value that it gives.

    Args:
        name: A Python identifier for an argument; any word for a value that is given.
        type: As Python spells it, such as `list[str]` or `DataFrame`; TaskWeaver's `string`, `integer` are known too.
        required: A call must give it.
        description: For the model.
        default: The value when a call leaves it out; `NO_DEFAULT` where that is not known or there is none.
        by: How a call may give it: `position` only (Python's `/`), `keyword` only (its `*`), or empty: either way.
    """

    name: str
    type: str = "Any"
    required: bool = False
    description: str = ""
    default: Any = NO_DEFAULT
    by: Literal["", "position", "keyword"] = ""


@dataclass(frozen=True)
class PluginSpec:
    """What a plugin is called, takes, gives and where it runs.

    Args:
        name: The function's name, for the model and in the kernel.
        description: What it does, for the Planner, the CodeInterpreter and for choosing among many.
        parameters: In the order of the Python's own.
        returns: More than one is a tuple.
        enabled: One that is not is skipped when its folder is loaded.
        required: Always shown to the model, also where only a few of many plugins are.
        plugin_only: May be called by a model that may do nothing but call plugins.
        code: File name without `.py` of the implementation, beside the YAML; several YAMLs may share one.
        examples: Python lines that show calls.
        configurations: Handed to the plugin as `config`; JSON values only.
        runs_in: `kernel`, beside the generated code, or `host`, for what needs secrets, the network or a database.
        path: The YAML file, absolute; None for one that was made in Python.
        connect: For one that was made in Python: given the session's context, it gives the function to call; such a
            plugin runs in the host, whatever `runs_in` says.
        calls: How often code may call it in one round; None: as often as all host calls together.
        seconds: How long one call may take, if it runs in the host; None: as long as the round.
        tags: More words by which it is found; those of `TASK_TYPES` say which type of work it serves.
        optional: One that fails while it is loaded is left out and named in the log; a project's own are such.
        text: Its Python as it was checked; None: it was not read yet.
        files: What modules beside it are compared with when they are imported; None: nothing.
    """

    name: str
    description: str
    parameters: tuple[Parameter, ...] = ()
    returns: tuple[Parameter, ...] = ()
    enabled: bool = True
    required: bool = False
    plugin_only: bool = False
    code: str = ""
    examples: str = ""
    configurations: Mapping[str, Any] = field(default_factory=dict)
    runs_in: Literal["kernel", "host"] = "kernel"
    path: Path | None = None
    connect: Callable[[PluginContext], Callable[..., Any]] | None = field(default=None, compare=False, repr=False)
    calls: int | None = None
    seconds: float | None = None
    tags: tuple[str, ...] = ()
    optional: bool = field(default=False, compare=False)
    text: str | None = field(default=None, compare=False, repr=False)
    files: TrustedFiles | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.connect is not None:
            object.__setattr__(self, "runs_in", "host")
        if self.path is not None:  # what is beside it lies there, whatever is the current folder later
            object.__setattr__(self, "path", self.path.absolute())

    def stub(self) -> str:
        """Return the plugin as a model sees it: a Python function with types, defaults and short descriptions."""
        return self._stub

    @cached_property
    def _stub(self) -> str:
        return as_function(self)  # once: with each task every stub is measured against the budget

    def line(self, *, whole: bool = False) -> str:
        """Return one line: the name, what a call must give, and the description's first sentence.

        Args:
            whole: With all parameters and what comes back, for whoever writes calls.
        """
        return plugin_line(self, whole=whole)

    def signature(self) -> inspect.Signature:
        """Return how a call may give the parameters, as the stub shows it."""
        return signature(self.parameters)

    @property
    def declared_in_python(self) -> bool:
        """Whether a Python file declares it, and no YAML."""
        return self.path is not None and self.path.suffix == ".py"

    def source(self) -> Path:
        """Return the path of the implementation.

        Raises:
            ValueError: the spec was not read from a file.
        """
        if self.path is None:
            raise ValueError(f"plugin {self.name!r} was not read from a file, so no Python stands beside it")
        return self.path.parent / f"{self.code or self.name}.py"

    def loadable(self) -> Loadable:
        """Return what a kernel needs to load it."""
        path = self.source()
        return Loadable(self.name, read_text(path) if self.text is None else self.text, self.configurations, path)


def read_spec(path: Path | str) -> PluginSpec:
    """Read a plugin's YAML, checked as a whole; the Python beside it is not looked at (`find_plugins` does that).

    Args:
        path: In TaskWeaver's form, plus the keys `runs_in` and, of a parameter, `default` and `by`.

    Raises:
        PluginSpecError: naming the file and what is wrong in it.

    Source: TaskWeaver's `PluginEntry.from_yaml_content`. Differs: checks what it reads; `parameters` and `returns`
    may be left out.
    """
    path = Path(path)
    plain = _read_keys(read_yaml(path, PluginSpecError), _PLUGIN_KEYS, "name", "description", path=path)
    _check_name(plain["name"], "name", path)
    if plain["name"] in RESERVED:
        raise PluginSpecError(f"name: {name_problem(plain['name'])}", path=path)
    if plain.get("runs_in", "kernel") not in ("kernel", "host"):
        raise PluginSpecError(f"runs_in: expected 'kernel' or 'host', found {plain['runs_in']!r}", path=path)
    for key in ("parameters", "returns"):
        plain[key] = tuple(_read_parameter(one, f"{key}[{i}]", path) for i, one in enumerate(plain.get(key, ()), 1))
    _check_parameters(plain["parameters"], path)
    if problem := limit_problem(plain.get("calls"), plain.get("seconds")):
        raise PluginSpecError(f"{problem}; leave it out for no limit", path=path)
    try:
        json.dumps({} if plain.get("runs_in") == "host" else plain.get("configurations"))
    except TypeError as error:
        raise PluginSpecError(f"configurations: {error}, so no kernel gets it; put it in quotes", path=path) from error
    plain["tags"] = tuple(plain.get("tags", ()))
    for tag in plain["tags"]:
        if not isinstance(tag, str):
            raise PluginSpecError(f"tags: expected words, found {tag!r} ({type(tag).__name__})", path=path)
    plain.setdefault("code", plain["name"])
    if any(sign in plain["code"] for sign in ("/", "\\", ":", "\0", "..")):
        raise PluginSpecError(f"code: expected the name of a file beside this one, found {plain['code']!r}", path=path)
    return PluginSpec(**plain, path=path)


def limit_problem(calls: float | None, seconds: float | None) -> str:
    """Return which limit of a plugin would allow nothing, in words; empty if none would.

    Args:
        calls: As of `PluginSpec`.
        seconds: As of `PluginSpec`.
    """
    limits = {"calls": calls, "seconds": seconds}
    wrong = (
        f"{key}={limit} would allow nothing" for key, limit in limits.items() if limit is not None and not limit > 0
    )
    return next(wrong, "")


def _read_keys(plain: Any, known: Mapping[str, type], *needed: str, path: Path, at: str = "") -> dict[str, Any]:
    """Check one level of keys; a key without a value counts as left out (but `default:` means None)."""
    where = f"{at}: " if at else ""
    if not isinstance(plain, Mapping):
        raise PluginSpecError(f"{where}expected keys and values, found {type(plain).__name__}", path=path)
    if problem := unknown_key(plain, known):
        raise PluginSpecError(f"{where}{problem}", path=path)
    given = {key: value for key, value in plain.items() if value is not None or known[key] is object}
    for key in needed:
        if key not in given:
            raise PluginSpecError(f"{where}missing key {key!r}", path=path)
    for key, value in given.items():
        kinds = (int, float) if known[key] is float else known[key]
        if not isinstance(value, kinds) or (isinstance(value, bool) and known[key] in (int, float)):
            message = f"expected {_WORDS[known[key]]}, found {value!r} ({type(value).__name__})"
            raise PluginSpecError(f"{where}{key}: {message}", path=path)
    return given


def _read_parameter(plain: Any, at: str, path: Path) -> Parameter:
    given = _read_keys(plain, _PARAMETER_KEYS, "name", path=path, at=at)
    if given.get("type", "").strip().lower() == "object":  # as JSON schemas have it; in Python it is anything
        given["type"] = "dict"
    return Parameter(**given)


def _check_parameters(parameters: tuple[Parameter, ...], path: Path) -> None:
    seen: set[str] = set()
    for number, parameter in enumerate(parameters, 1):
        _check_name(parameter.name, f"parameters[{number}].name", path)
        if parameter.name in seen:
            raise PluginSpecError(f"parameters[{number}]: {parameter.name!r} stands there twice", path=path)
        if parameter.required and parameter.default is not NO_DEFAULT:
            raise PluginSpecError(
                f"parameters[{number}]: {parameter.name!r} is required and has a default; leave one of the two out",
                path=path,
            )
        if parameter.by and parameter.by not in _BY:
            found = f"found {parameter.by!r}{nearest(parameter.by, _BY)}"
            raise PluginSpecError(f"parameters[{number}].by: expected {' or '.join(_BY)}, {found}", path=path)
        seen.add(parameter.name)


def _check_name(name: str, at: str, path: Path) -> None:
    if not name.isidentifier() or keyword.iskeyword(name):
        raise PluginSpecError(
            f"{at}: {name!r} cannot be a name in Python; use letters, digits and underscores, and no keyword", path=path
        )
