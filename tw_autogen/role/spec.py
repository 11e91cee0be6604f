"""`RoleSpec`: a role as it is found, by path, entry point or class; checked before anything is asked of it."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_type_hints

from tw_autogen.errors import ConfigError, RoleSpecError, SettingsError, nearest
from tw_autogen.model import ChatModel
from tw_autogen.named_folders import named_folder
from tw_autogen.private_files import lies_in
from tw_autogen.role.role import Role
from tw_autogen.role.role_source import as_role, line_in, load_source
from tw_autogen.setting_values import Setting, fit_setting
from tw_autogen.settings import ROLE_SECTION
from tw_autogen.settings_trust import PROGRAM_OF_ROLE

_log = logging.getLogger(__name__)

_TRUST_IT = "trust that folder (--trust, trust=True)"

Given = Callable[[Iterable[str]], Mapping[str, Setting]]
"""Returns what a user has set for a role; called with the keys that the role declares."""


@dataclass(frozen=True)
class RoleSpec:
    """A role as it is found: what the Planner is told of it, and the class that makes one.

    Args:
        alias: Its name in the conversation.
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
        distrusted: Path | None = None,
    ) -> Role:
        """Load the class and make one role.

        Args:
            model: Gives the role's model; called only if the constructor takes `model`.
            given: Gives the settings that replace the YAML's, when it is told which keys the role declares.
            more: Gives whatever else a constructor may take, by the argument's name; called only if it does.
            distrusted: The current folder, if somebody else may have made it: a setting that is a path leads over none
                of its links out of it.

        Raises:
            RoleSpecError: the Python doesn't load, or holds no class, or more than one, that has `reply`; a setting is
                unknown, missing or of the wrong type; the constructor raised something.
            SettingsError: as above, for a setting out of `given`; says where it stands.
            ConfigError: a setting leads out of a folder that is not trusted.
        """
        kind = self.kind or self._load_class()
        takes = inspect.signature(kind).parameters
        settings = self._make_settings(kind, given or (lambda known: {}), distrusted, wanted="settings" in takes)
        offered: dict[str, Callable[[], Any]] = {**(more or {}), "model": model, "settings": lambda: settings}
        for key, value in takes.items():
            needed = value.default is value.empty and value.kind not in (value.VAR_POSITIONAL, value.VAR_KEYWORD)
            if needed and key not in offered:
                known = ", ".join(sorted(offered))
                problem = f"its constructor needs {key!r}, and only these are handed out: {known}"
                raise RoleSpecError(problem, path=self._source_file)
        arguments = {key: give() for key, give in offered.items() if key in takes}
        try:
            made = kind(**arguments)
            made.name, made.intro = self.alias, self.intro
            return as_role(made)
        except ConfigError:
            raise
        except ValueError as error:  # a role's way to say that a setting makes no sense
            raise RoleSpecError(str(error), path=self.path) from error
        except (Exception, SystemExit) as error:
            line = line_in(error, self._source_file)
            raise RoleSpecError(f"{type(error).__name__}: {error}", path=self._source_file, line=line) from error

    @property
    def _source_file(self) -> Path:
        return self.path if self.kind is not None else self.path.with_name(f"{self.module}.py")

    def _load_class(self) -> Callable[..., Any]:
        module = load_source(self._source_file)
        kinds = dict.fromkeys(filter(inspect.isclass, vars(module).values()))  # once each: a class may have two names
        found = [kind for kind in kinds if kind.__module__ == module.__name__ and replies(kind)]
        if len(found) != 1:
            named = ", ".join(sorted(kind.__name__ for kind in found)) or "none"
            raise RoleSpecError(
                f"expected one class with `reply(self, memory, **kwargs)`, found {named}", path=self._source_file
            )
        return found[0]

    def required_trust(self, key: str) -> str:
        """Return how far a folder must be trusted for a setting that its file says: `named` or `trusted`.

        Args:
            key: The setting's, without the role's name; one that the role doesn't know is `named`.

        Raises:
            RoleSpecError: the Python doesn't load.
        """
        return str(self._metadata(key).get("folder", "named"))

    def is_path(self, key: str) -> bool:
        """Return whether a setting is a path.

        Args:
            key: The setting's, without the role's name; one that the role doesn't know is none.

        Raises:
            RoleSpecError: the Python doesn't load.
        """
        return bool(self._metadata(key).get("path"))

    def _metadata(self, key: str) -> Mapping[str, Any]:
        hint = hints_of(self.kind or self._load_class()).get("settings")
        found = dataclasses.fields(hint) if dataclasses.is_dataclass(hint) else ()
        return next((one.metadata for one in found if one.name == key), {})

    def _make_settings(self, kind: Callable[..., Any], give: Given, distrusted: Path | None, *, wanted: bool) -> Any:
        """Return the settings for the constructor, each of its declared type."""
        hint = hints_of(kind).get("settings") if wanted else None
        declared: dict[str, Any]
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            hints = get_type_hints(hint)
            declared = {one.name: hints[one.name] for one in dataclasses.fields(hint)}
        else:
            hint, plain = None, self.settings if wanted else {}
            declared = {key: Any if value is None else type(value) for key, value in plain.items()}
        given = dict(give(declared))
        self._refuse_unknown(declared, given)
        fields = dataclasses.fields(hint) if hint is not None else ()
        paths = {one.name for one in fields if one.metadata.get("path")}
        for one in fields:
            if one.name in given and one.metadata.get("folder") == "trusted" and not given[one.name].trusted:
                reason = f"left out, since the folder is not trusted; {_TRUST_IT}"
                _log.warning(f"%s of %s: {reason}", self._setting_key(one.name), given.pop(one.name).origin)
            if one.name in given and one.name in paths and not _is_program_word(one.name, given[one.name].value):
                given[one.name] = self._resolve_path_setting(
                    one.name, _resolve_beside_file(given[one.name]), distrusted
                )
            if one.name in given and "server" in one.metadata:
                self._withhold(given, one.name, one.metadata["server"])
        values: dict[str, Any] = {}
        for key, value in self.settings.items():
            own = Setting(value, str(self.path))
            try:
                own = self._resolve_path_setting(key, own, None) if key in paths else own
                values[key] = fit_setting(self._setting_key(key), own, declared[key])
            except SettingsError as error:
                raise RoleSpecError(str(error).removeprefix(f"{self.path}: "), path=self.path) from error
        for key, setting in given.items():
            if key in declared:
                values[key] = fit_setting(self._setting_key(key), setting, declared[key])
        for one in fields:
            if one.name not in values and one.default is dataclasses.MISSING is one.default_factory:
                what = one.metadata.get("missing", "it has no default")
                problem = f"the setting {self._setting_key(one.name)!r} is missing; {what}"
                raise RoleSpecError(problem, path=self.path)
        return values if hint is None else hint(**values)

    def _resolve_path_setting(self, key: str, setting: Setting, distrusted: Path | None) -> Setting:
        """Return a setting that is a path; one in a folder that somebody else may have made leads over no link.

        Raises:
            ConfigError: it leads out of that folder, or out of the one whose file names it and that is not trusted.
        """
        if not isinstance(setting.value, str) or not setting.value:
            return setting
        path = Path(setting.value).expanduser()
        try:
            real = named_folder(path, distrusted=distrusted)
            of_folder = setting.file.parent.resolve() if setting.file and not setting.trusted else None
            held = [one for one in real.iterdir() if one.is_symlink()] if of_folder and real.is_dir() else []
            if of_folder and not all(lies_in(os.path.realpath(one), str(of_folder)) for one in (real, *held)):
                raise ConfigError(f"{path} lies outside of {of_folder}; name it yourself, or {_TRUST_IT}")
        except (ConfigError, OSError) as error:
            raise ConfigError(f"{self._setting_key(key)} ({setting.origin}): {error}") from error
        here = distrusted is not None and Path(os.path.abspath(path)).is_relative_to(distrusted)
        if here or of_folder is not None or real.is_dir():  # a program keeps its name: it may go by that
            return dataclasses.replace(setting, value=str(real))
        return dataclasses.replace(setting, value=os.path.expanduser(setting.value))

    def _withhold(self, given: dict[str, Setting], key: str, server: str) -> None:
        """Leave out what goes to a server, unless both stand in the same file, or the user has said both.

        Args:
            given: What is set; written to.
            key: What goes there.
            server: The key that names the server.
        """
        value, at = given[key], given.get(server)
        if at is not None and at.file != value.file:
            del given[key]
            message = "%s of %s is not sent to the server that %s names; name both in one place"
            _log.warning(message, self._setting_key(key), value.origin, at.origin)

    def _setting_key(self, key: str) -> str:
        return f"{ROLE_SECTION}.{self.name}.{key}"

    def _refuse_unknown(self, declared: Mapping[str, Any], given: Mapping[str, Setting]) -> None:
        for key in self.settings:
            if key not in declared:
                known = nearest(str(key), declared) or "; its class takes none"
                raise RoleSpecError(f"unknown setting {key!r}{known}", path=self.path)
        refuse_unknown(self.name, declared, given)


def _resolve_beside_file(setting: Setting) -> Setting:
    """Return a setting that is a path as seen from the file in which it stands; one that stands in none, as it is."""
    if setting.base is None or not isinstance(setting.value, str) or not setting.value:
        return setting
    return dataclasses.replace(setting, value=str(setting.base / Path(setting.value).expanduser()))


def refuse_unknown(name: str, declared: Iterable[str], given: Mapping[str, Setting]) -> None:
    """Refuse what is set for a role that doesn't know it; what may be passed over is named in the log.

    Args:
        name: The role's.
        declared: The keys that it knows.
        given: What is set.

    Raises:
        SettingsError: says where it stands, and which key was probably meant.
    """
    for key, setting in given.items():
        if key in declared:
            continue
        if setting.passed_over:
            _log.warning("%s: without meaning here", setting.origin)
            continue
        known = nearest(key, declared) or "; its class takes none"
        raise SettingsError(
            f"{setting.origin}: unknown setting '{ROLE_SECTION}.{name}.{key}'{known}",
            key=f"{ROLE_SECTION}.{name}.{key}",
            origin=setting.origin,
        )


def replies(kind: type) -> bool:
    """Return whether a class has a `reply` of its own."""
    reply = getattr(kind, "reply", None)
    return callable(reply) and reply is not Role.reply


def hints_of(kind: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a constructor's parameters; if one cannot be resolved, that of `settings` at most."""
    made: Any = kind.__init__
    only = SimpleNamespace(__annotations__={"settings": getattr(made, "__annotations__", {}).get("settings")})
    for annotated in (made, only):
        with contextlib.suppress(NameError):  # a name that stands under TYPE_CHECKING only
            return get_type_hints(annotated, getattr(made, "__globals__", None))
    return {}


def check_entry(plain: Mapping[str, Any], texts: Iterable[str], path: Path) -> None:
    """Check the content of a role's YAML.

    Args:
        plain: As it was read.
        texts: Keys that must hold text, `alias` among them.
        path: The YAML, for messages.

    Raises:
        RoleSpecError: a text is missing, or `alias` is no identifier.
    """
    for key in texts:
        if not isinstance(plain.get(key), str) or not plain[key].strip():
            raise RoleSpecError(f"`{key}` is missing or no text", path=path)
    if not plain["alias"].isidentifier():
        raise RoleSpecError(f"`alias` must be a plain name without spaces, not {plain['alias']!r}", path=path)


def _is_program_word(key: str, value: Any) -> bool:
    """Return whether a setting names a program by a word, which is looked for on the PATH, and is no path."""
    return f".{key}" == PROGRAM_OF_ROLE and isinstance(value, str) and not any(sign in value for sign in "/\\~")
