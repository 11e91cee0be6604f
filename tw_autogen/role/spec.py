"""`RoleSpec`: a role as it is found, by path, entry point or class; checked before anything is asked of it."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import inspect
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

from tw_autogen.conversation.plain import read_mapping
from tw_autogen.errors import ConfigError, RoleSpecError, SettingsError, nearest
from tw_autogen.model import ChatModel
from tw_autogen.role.role import Role
from tw_autogen.settings import Setting, fit_setting

ROLE_FILE = "role.yaml"
ENTRY_POINTS = "tw_autogen.roles"
_KEYS = ("alias", "intro", "module", "settings")
_LOADING = threading.RLock()

Given = Callable[[Iterable[str]], Mapping[str, Setting]]
"""Gives what a user has set for a role, when it is told which keys the role declares."""


@dataclass(frozen=True)
class RoleSpec:
    """A role as it is found: what the Planner is told of it, and the class that makes one.

    Args:
        alias: Its name in the talk.
        intro: What it can do; for the Planner.
        path: The file that is named when something is wrong: the YAML, or the class's Python.
        name: What its settings are called by: `role.<name>.<key>`; the folder's, the entry point's or the class's name.
        module: Stem of the Python file beside the YAML that holds the class; the folder's name if the YAML doesn't say.
        settings: As the YAML gives them. A constructor that takes `settings` is handed them: in a dataclass, if it is
            annotated with one, else in a dictionary.
        kind: The class, where no YAML names its file.
    """

    alias: str
    intro: str
    path: Path
    name: str
    module: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    kind: Callable[..., Any] | None = None

    def make(
        self,
        model: Callable[[], ChatModel],
        *,
        given: Given | None = None,
        more: Mapping[str, Callable[[], Any]] | None = None,
    ) -> Role:
        """Load the class and make one role.

        Args:
            model: Gives the role's model; called only if the constructor takes `model`.
            given: Gives the settings that replace the YAML's, when it is told which keys the role declares.
            more: Gives whatever else a constructor may take, by the argument's name; called only if it does.

        Raises:
            RoleSpecError: the Python doesn't load, or holds no class, or more than one, that has `reply`; a setting is
                unknown, missing or of the wrong type; the constructor raised something.
            SettingsError: as above, for a setting out of `given`; says where it stands.
        """
        kind = self.kind or self._load()
        takes = inspect.signature(kind).parameters
        settings = self._settings(kind, given or (lambda known: {}), wanted="settings" in takes)
        offered: dict[str, Callable[[], Any]] = {**(more or {}), "model": model, "settings": lambda: settings}
        for key, value in takes.items():
            needed = value.default is value.empty and value.kind not in (value.VAR_POSITIONAL, value.VAR_KEYWORD)
            if needed and key not in offered:
                known = ", ".join(sorted(offered))
                problem = f"its constructor needs {key!r}, and only these are handed out: {known}"
                raise RoleSpecError(problem, path=self._source)
        arguments = {key: give() for key, give in offered.items() if key in takes}
        try:
            role: Role = kind(**arguments)
            role.name, role.intro = self.alias, self.intro
        except ConfigError:
            raise
        except ValueError as error:  # a role's way to say that a setting makes no sense
            raise RoleSpecError(str(error), path=self.path) from error
        except Exception as error:
            line = _line_in(error, self._source)
            raise RoleSpecError(f"{type(error).__name__}: {error}", path=self._source, line=line) from error
        return role

    @property
    def _source(self) -> Path:
        return self.path if self.kind is not None else self.path.with_name(f"{self.module}.py")

    def _load(self) -> Callable[..., Any]:
        module = _load(self._source)
        own = [kind for kind in vars(module).values() if inspect.isclass(kind) and kind.__module__ == module.__name__]
        found: list[Callable[..., Any]] = [kind for kind in own if _replies(kind)]
        if len(found) != 1:
            named = ", ".join(sorted(kind.__name__ for kind in found)) or "none"
            raise RoleSpecError(
                f"expected one class with `reply(self, memory, **kwargs)`, found {named}", path=self._source
            )
        return found[0]

    def _settings(self, kind: Callable[..., Any], give: Given, *, wanted: bool) -> Any:
        """Give the settings for the constructor, each of its declared type."""
        hint = _hint(kind) if wanted else None
        declared: dict[str, Any]
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            hints = get_type_hints(hint)
            declared = {one.name: hints[one.name] for one in dataclasses.fields(hint)}
        else:
            hint, plain = None, self.settings if wanted else {}
            declared = {key: Any if value is None else type(value) for key, value in plain.items()}
        given = give(declared)
        self._refuse_unknown(declared, given)
        values: dict[str, Any] = {}
        for key, value in self.settings.items():
            try:
                values[key] = fit_setting(self._key(key), Setting(value, str(self.path)), declared[key])
            except SettingsError as error:
                raise RoleSpecError(str(error).removeprefix(f"{self.path}: "), path=self.path) from error
        values.update({key: fit_setting(self._key(key), setting, declared[key]) for key, setting in given.items()})
        if hint is None:
            return values
        for one in dataclasses.fields(hint):
            if one.name not in values and one.default is dataclasses.MISSING is one.default_factory:
                problem = f"the setting {self._key(one.name)!r} is missing; it has no default"
                raise RoleSpecError(problem, path=self.path)
        return hint(**values)

    def _key(self, key: str) -> str:
        return f"role.{self.name}.{key}"

    def _refuse_unknown(self, declared: Mapping[str, Any], given: Mapping[str, Setting]) -> None:
        for key in self.settings:
            if key not in declared:
                known = nearest(str(key), declared) or "; its class takes none"
                raise RoleSpecError(f"unknown setting {key!r}{known}", path=self.path)
        for key, setting in given.items():
            if key not in declared:
                known = nearest(key, declared) or "; its class takes none"
                raise SettingsError(
                    f"{setting.origin}: unknown setting {self._key(key)!r}{known}",
                    key=self._key(key),
                    origin=setting.origin,
                )


def read_role(folder: Path) -> RoleSpec:
    """Read a role's folder.

    Raises:
        RoleSpecError: names the file and what is wrong in it.
    """
    path = folder / ROLE_FILE
    plain = read_mapping(path, RoleSpecError, missing="there is no such file; a role's folder holds one")
    for key in plain:
        if key not in _KEYS:
            raise RoleSpecError(f"unknown key {key!r}{nearest(str(key), _KEYS)}", path=path)
    for key in ("alias", "intro"):
        if not isinstance(plain.get(key), str) or not plain[key].strip():
            raise RoleSpecError(f"`{key}` is missing or no text", path=path)
    if not plain["alias"].isidentifier():
        raise RoleSpecError(f"`alias` must be a plain name without spaces, not {plain['alias']!r}", path=path)
    name = folder.resolve().name
    module, settings = plain.get("module", name), plain.get("settings") or {}
    if not isinstance(settings, Mapping):
        raise RoleSpecError("`settings` must be keys and values", path=path)
    return RoleSpec(plain["alias"], plain["intro"].strip(), path, name, str(module), settings)


def find_role(wanted: str | Path | type, *, shipped: Path) -> RoleSpec:
    """Find a role: a shipped one, or one that an installed package brings, by name; a folder by its path; or a class.

    Args:
        wanted: A name, the path of a folder, or a class with `name`, `intro` and `reply`.
        shipped: Where the ready-made roles lie.

    Raises:
        RoleSpecError: there is none of that name, or it is wrong; names the file.
    """
    if isinstance(wanted, type):
        return _of_class(wanted, wanted.__name__)
    folder = Path(wanted).expanduser()
    if isinstance(wanted, Path) or folder.is_dir():
        return read_role(folder)
    names = sorted(one.parent.name for one in shipped.glob(f"*/{ROLE_FILE}"))
    if wanted in names:
        return read_role(shipped / wanted)
    brought = {one.name: one for one in metadata.entry_points(group=ENTRY_POINTS)}
    if wanted in brought:
        return _of_entry_point(brought[wanted])
    hint = f"; here a role of your own is a folder with a {ROLE_FILE}, and the class" if folder.suffix == ".py" else ""
    raise RoleSpecError(f"no shipped role and no folder{hint or nearest(wanted, [*names, *brought])}", path=wanted)


def _of_entry_point(entry: metadata.EntryPoint) -> RoleSpec:
    """Read what an entry point names: a class, or a package whose folder holds a `role.yaml`."""
    where = f"entry point {entry.name} = {entry.value}"
    try:
        found = entry.load()
    except Exception as error:
        raise RoleSpecError(f"{type(error).__name__}: {error}", path=where) from error
    if isinstance(found, ModuleType) and found.__file__:
        return dataclasses.replace(read_role(Path(found.__file__).parent), name=entry.name)
    if not inspect.isclass(found):
        raise RoleSpecError("names neither a class nor a package with a role.yaml", path=where)
    return _of_class(found, entry.name)


def _of_class(kind: type, name: str) -> RoleSpec:
    try:
        path = Path(inspect.getfile(kind))
    except (OSError, TypeError):  # made in a notebook or by exec
        path = Path(f"class {kind.__name__}")
    if not _replies(kind):
        raise RoleSpecError(f"class {kind.__name__} has no `reply(self, memory, **kwargs)`", path=path)
    for key in ("name", "intro"):
        value = getattr(kind, key, None)
        if not isinstance(value, str) or not value.strip():
            raise RoleSpecError(f"class {kind.__name__} needs `{key}`, a text, beside `reply`", path=path)
    alias = str(kind.name)  # type: ignore[attr-defined]  # looked at above
    if not alias.isidentifier():
        raise RoleSpecError(f"`name` must be a plain name without spaces, not {alias!r}", path=path)
    return RoleSpec(alias, str(kind.intro), path, name, kind=kind)  # type: ignore[attr-defined]


def _replies(kind: type) -> bool:
    reply = getattr(kind, "reply", None)
    return callable(reply) and reply is not Role.reply


def _hint(kind: Callable[..., Any]) -> Any:
    """Give what the constructor says of `settings`; None if nothing that can be known."""
    try:
        return get_type_hints(kind.__init__).get("settings")
    except NameError:  # a name that stands under TYPE_CHECKING only
        return None


def _load(source: Path) -> ModuleType:
    """Run a role's Python anew, as a package of its folder: `from .pages import …` finds what lies beside it."""
    name = f"tw_autogen_role_{source.stem}_{hashlib.sha256(str(source.resolve()).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, source, submodule_search_locations=[str(source.parent)])
    if spec is None or spec.loader is None or not source.exists():
        raise RoleSpecError("there is no such file", path=source)
    with _LOADING:
        for loaded in [one for one in sys.modules if one == name or one.startswith(f"{name}.")]:
            del sys.modules[loaded]
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except Exception as error:  # somebody's own code: whatever it raises is told with the file
            del sys.modules[name]
            line = getattr(error, "lineno", None) or _line_in(error, source)
            raise RoleSpecError(f"{type(error).__name__}: {error}", path=source, line=line) from error
    return module


def _line_in(error: BaseException, source: Path) -> int | None:
    """Give the last line of this file that the error passed through."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename) == source:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
