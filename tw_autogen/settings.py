"""Settings from keywords, environment, project file, user file and defaults; each value remembers where it came from.

Each section is a frozen dataclass `…Settings`; a key is `section.field`, such as `session.max_posts`. Highest first:

1. keywords given in code or on the command line,
2. the environment: `TW_AUTOGEN_SESSION_MAX_POSTS`, and the well-known names that a field declares in its metadata
   (`OPENAI_API_KEY`), and `OAI_CONFIG_LIST`,
3. the project's file: `tw_autogen.yaml`, else TaskWeaver's `taskweaver_config.json`,
4. the user's file: `~/.config/tw-autogen/config.yaml`,
5. the default in the dataclass.

A relative path in a project's file, in a field that declares itself one, is relative to that file's folder; so it is
in the user's file, but for `_OF_CURRENT_FOLDER`. A field with the metadata `path` of `real` is a grant: of a project's
file it is where the path's links lead when it is read, so that this is what is shown, hashed and used.

What a project's file may set depends on how far its folder is trusted (`Trust`): a field's metadata `folder` says what
counts unasked, and a field without it needs the user's trust. What does not count is in `Settings.left_out`. The file
that a relative `OAI_CONFIG_LIST` names lies in the current folder, and is treated as a file of that folder.

A field with the metadata `server` goes to a server: it is withheld from one that a folder's file names, unless it
stands in the same file (`Settings.withheld`). One with the metadata `measures` counts from a folder that is only named
where the user has not set the limits which it measures.

A role's settings, `role.<role>.<key>`, come from the same places; they are declared by the role, and checked when it is
loaded. There, too, a field's metadata says what it is: `path`, `server`, the name of the field that it goes to, and
`folder`: `trusted` for what a folder's file sets only if it is trusted; else it counts where the caller wrote its path.
"""

from __future__ import annotations

import difflib
import functools
import os
import reprlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from tw_autogen.autogen_config_list import read_config_list
from tw_autogen.errors import ConfigError, SettingsError
from tw_autogen.lazy_module import LazyModule
from tw_autogen.named_folders import is_over_link, step_out_of
from tw_autogen.setting_values import (
    NO_TEXT,
    Setting,
    climbed_path,
    expanded_path,
    fit_setting,
    naming_folder,
    place_of_setting,
    real_path_of,
    setting_of_keyword,
    shown_key,
    texts_of,
    unknown_setting,
)
from tw_autogen.settings_trust import (
    PROGRAM_OF_ROLE,
    Trust,
    examples_inside,
    leads_out,
    lies_inside,
    may_set,
    whole_path,
)
from tw_autogen.taskweaver_config import TASKWEAVER_FILE, ConfigTranslation, meaning_of
from tw_autogen.trusted_files import TrustedFiles, decode_settings, settings_content

if TYPE_CHECKING:
    import yaml

    from tw_autogen import bounded_yaml
else:
    yaml = LazyModule("yaml")  # a start without settings files reads none
    bounded_yaml = LazyModule("tw_autogen.bounded_yaml")

T = TypeVar("T")

PROJECT_FILE = "tw_autogen.yaml"
_PREFIX = "TW_AUTOGEN_"
_hints = functools.cache(get_type_hints)
ROLE_SECTION = "role"
"""The section whose keys are declared by roles: `role.echo.decorator`."""
VARIABLE_SUFFIX = "_env"
"""What a role's key ends with that names a variable of the user's environment: a folder that is named can't say it."""

_ALSO_PATHS = ("kernel.python", "plugin.folder", "session.roles")
_OF_CURRENT_FOLDER = ("session.workspace", "session.role_folder", "session.user_folder")
"""Paths that the user's file may mean for whatever folder is the current one."""
_MAX_PROMPT_CHARS = 4000
"""Of a text for prompts in a folder that nobody trusts."""


@dataclass(frozen=True)
class FolderSetting:
    """A setting of a folder's file that does not count, because the folder is not trusted.

    Args:
        key: Dotted.
        setting: Its value, and where it stands.
    """

    key: str
    setting: Setting


class Settings:
    """All settings of one session, checked as a whole when it is made.

    Args:
        sections: Each section's name and its frozen dataclass of settings.
        keywords: Dotted keys and values; the strongest source. A value may be a `Setting`, which says its origin.
        environ: Environment variables; none by default, so that a library call depends on its arguments only.
        project: Folder in which a project file is looked for; None looks for none.
        user_file: The user's own file; passed over if it doesn't exist.
        trust: How far `project`, and the current folder, are trusted.
        texts: What files held that were read before, None of those that were missing, so that they are taken as they
            were then. Written to.
        looks_outside: Paths in the file of a folder that is not trusted in full are followed also where they lead out
            of it; False: such a path stays as it is, and what lies there is not looked at.
        located: Values of folders' files, by file, key and text, that were located before: links in them are followed
            once, so that what was shown and compared is what is used. Written to.
        files: The files of `project` as they were when they were compared with what the user trusts; None: they were
            not, or are not trusted.
        rule_of_role: Returns what a role's setting says with its metadata `folder`; called with the role's name and the
            key, and only for what the file of a named folder sets.
        is_role_path: Returns whether a role's setting is a path; called likewise. None: the role is a folder's own.

    Attributes:
        project: As given.
        trust: As given.
        texts: As given: what the files held that were read.
        files: As given; what is loaded from the folder must be equal.
        left_out: What of the folder's files does not count.
        prompt_settings: Settings of an untrusted folder's file that count and are text for prompts.
        examples: The files in the folders that such settings name.
        shortened: Lines about texts of an untrusted folder's file that are too long for prompts.
        withheld: Lines about keys that are not sent, because the server comes from elsewhere than the key.
        ignored: TaskWeaver's keys that mean nothing here.

    Raises:
        SettingsError: an unknown key (with its neighbour), or a value of the wrong type; says where it stands.
        ConfigError: a file that is not YAML or JSON.
    """

    DEFAULT = "the default"
    """Where a value comes from that nobody has set."""

    def __init__(
        self,
        sections: Mapping[str, type],
        keywords: Mapping[str, Any] | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        project: Path | None = None,
        user_file: Path | None = None,
        trust: Trust = Trust.none,
        texts: dict[Path, bytes | None] | None = None,
        located: dict[tuple[Path, str, str], Any] | None = None,
        looks_outside: bool = True,
        files: TrustedFiles | None = None,
        rule_of_role: Callable[[str, str], str] = lambda role, key: "named",
        is_role_path: Callable[[str, str], bool | None] = lambda role, key: False,
    ) -> None:
        self._rule_of_role, self._is_role_path = rule_of_role, is_role_path
        self.project, self.trust, self.files = project, trust, files
        self.texts: dict[Path, bytes | None] = {} if texts is None else texts
        self._looks_outside = looks_outside
        self._known_values: dict[tuple[Path, str, str], Any] = {} if located is None else located
        self.left_out: tuple[FolderSetting, ...] = ()
        self.prompt_settings: tuple[FolderSetting, ...] = ()
        self.examples: tuple[Path, ...] = ()
        self.shortened: tuple[str, ...] = ()
        self.withheld: tuple[str, ...] = ()
        self._sections = dict(sections)
        self._fields = {f"{key}.{field.name}": field for key, cls in sections.items() for field in fields(cls)}
        self._hints = {f"{key}.{name}": hint for key, cls in sections.items() for name, hint in _hints(cls).items()}
        self._paths = {
            key: str(spec.type).startswith("tuple") for key, spec in self._fields.items() if spec.metadata.get("path")
        }
        self._grants = [key for key, field in self._fields.items() if field.metadata.get("path") == "real"]
        self.ignored: tuple[str, ...] = ()
        self._found: dict[str, Setting] = {}
        self._roles: dict[str, dict[str, Setting]] = {}
        self._environ = environ or {}
        self._named_in = naming_folder()
        own = dict(self._user_file(user_file) if user_file else ())
        folder = list(dict(self._project_settings(project) if project else ()).items())
        said = [
            *self._environment_settings(),
            *((key, setting_of_keyword(key, value)) for key, value in (keywords or {}).items()),
        ]
        said = [(key, self._resolve_user_paths(key, setting)) for key, setting in said]
        self.overridden = frozenset(key for key, _ in said)
        """Settings that hold whatever files say: the environment or the caller has them."""
        self._by_user = self.overridden | own.keys()
        sources = [*own.items(), *folder, *said]
        paired = {source.file for key, source in (*folder, *said) if key == "model.api_key" and source.value}
        senders: dict[str, list[Setting]] = {}
        for key, setting in sources:  # weakest first: a later one replaces an earlier one
            of_role = key.startswith(f"{ROLE_SECTION}.")
            if not of_role and key not in self._fields:
                raise unknown_setting(key, setting.origin, self._fields)
            if setting.file and not self._may_count(key, setting, own.get(key), paired):
                self.left_out += (FolderSetting(key, setting),)
            elif of_role:
                trusted = setting.file is None or self._trust_of(setting) is Trust.full
                self._take_role(key, replace(setting, trusted=trusted))
            else:
                self._found[key] = setting = self._cap_prompt_text(key, setting)
                senders.setdefault(key, []).append(setting)
        self._withhold(senders)
        for section, kind in self._sections.items():
            self.read(section, kind)

    def _may_count(self, key: str, setting: Setting, own: Setting | None, paired: Collection[Path | None]) -> bool:
        """Return whether a setting of a folder's file counts; those that are text for prompts are noted.

        Args:
            key: Dotted.
            setting: It stands in a folder's file.
            own: What the user's file says.
            paired: Files that name a key of their own for the model's server.

        Raises:
            SettingsError: the value is of the wrong type.
        """
        trust = self._trust_of(setting)
        if key.startswith(f"{ROLE_SECTION}."):
            return trust is Trust.full or trust is Trust.named and self._rule_of(key) == "named"
        rule = str(self._fields[key].metadata.get("folder", ""))
        if trust is Trust.named and self._by_user.intersection(self._fields[key].metadata.get("measures", ())):
            return False
        if trust is Trust.named and (key in self._paths or key in ("session.roles", "plugin.folder")):
            paths = [text for text in texts_of(setting.value) if key != "session.roles" or os.sep in text]
            if any(leads_out(self.project or Path(), path) for path in paths):
                return False
        if rule == "paired" and setting.file in paired:
            rule = "named"
        if trust is Trust.full:
            return True
        if rule in ("", "named", "paired"):
            return trust is Trust.named and rule == "named"
        spec, hint = self._fields[key], self._hints[key]
        base = fit_setting(key, own, hint) if own else _default(spec)
        value = fit_setting(key, setting, hint)
        if not may_set(rule, value, base, own=own is not None, trust=trust):
            return False
        if rule in ("prompt", "narrower", "longer"):
            if key in self._paths and trust is Trust.none:
                held = examples_inside(value, self.project, self.examples)
                if held is None:
                    return False
                self.examples += held
            self.prompt_settings += (FolderSetting(key, setting),)
        return True

    def _trust_of(self, setting: Setting) -> Trust:
        """Return how far the folder is trusted in whose file a setting stands."""
        folder, project = setting.file and setting.file.parent.resolve(), self.project and self.project.resolve()
        below = project == Path.cwd() and lies_inside(folder, project)  # the current folder may lie in a named one
        return self.trust if below or (folder is not None and folder == project) else Trust.none

    def _rule_of(self, key: str) -> str:
        """Return what counts of a role's setting, by its dotted key."""
        _, role, *rest = key.split(".", 2)
        return "trusted" if key.endswith(VARIABLE_SUFFIX) or not rest else self._rule_of_role(role, rest[0])

    def beyond_named(self, keys: Iterable[str]) -> list[str]:
        """Return those of some keys, set here, that a folder can't set which the user has only named."""
        keys = list(keys)
        roles = {key.split(".", 2)[1] for key in keys if key.startswith(f"{ROLE_SECTION}.")}
        dotted = [f"{ROLE_SECTION}.{role}.{key}" for role in sorted(roles) for key in self._roles.get(role, ())]
        beyond = [key for key in dotted if self._rule_of(key) != "named"]
        for key in (name for name in keys if name in self._fields):
            spec, value = self._fields[key], fit_setting(key, self._found[key], self._hints[key])
            if not may_set(spec.metadata.get("folder", ""), value, _default(spec), own=False, trust=Trust.named):
                beyond.append(key)
        return beyond

    def _cap_prompt_text(self, key: str, setting: Setting) -> Setting:
        """Return a setting, text for prompts that nobody trusts not longer than `_MAX_PROMPT_CHARS`."""
        if not any(prompt.setting is setting for prompt in self.prompt_settings) or key in self._paths:
            return setting
        text = str(setting.value)
        if len(text) <= _MAX_PROMPT_CHARS:
            return setting
        message = f"{key} of {setting.origin} has {len(text)} characters; only the first {_MAX_PROMPT_CHARS} count, "
        self.shortened += (f"{message}until the folder is trusted",)
        return replace(setting, value=text[:_MAX_PROMPT_CHARS])

    def _withhold(self, senders: Mapping[str, Sequence[Setting]]) -> None:
        """Keep what goes to a server from one that a folder's file names, unless both stand in the same file.

        Args:
            senders: Each key's settings that count, weakest first.
        """
        for key, field in self._fields.items():
            servers = [self._found[server] for server in field.metadata.get("server", ()) if server in self._found]
            server = next((setting for setting in servers if setting.value or setting.file is not None), None)
            given, forced = self._found.get(key), "withheld" in field.metadata
            if server is None and given is not None and given.file in self._servers_left_out(field):
                del self._found[key]
                self.withheld += (f"{key} of {given.origin} is sent nowhere: the server beside it does not count",)
            if server is None or server.file is None:
                continue
            if given is not None and given.file == server.file and not forced:
                continue
            same = not forced and [s for s in senders.get(key, ()) if s.file == server.file and s.value]
            if same:
                self._found[key] = same[-1]
            elif forced:
                self._found[key] = Setting(field.metadata["withheld"], server.origin, file=server.file)
            else:
                self._found.pop(key, None)
            if given is not None and given.value:
                where = f"the server that {server.origin} names"
                self.withheld += (f"{key} of {given.origin} is not sent to {where}; name key and server in one place",)

    def _servers_left_out(self, spec: Field[Any]) -> set[Path]:
        """Return the folders' files of which the server doesn't count that a setting would be sent to."""
        servers = [left.setting for left in self.left_out if left.key in spec.metadata.get("server", ())]
        return {setting.file for setting in servers if setting.file is not None and setting.value}

    def read(self, section: str, kind: type[T]) -> T:
        """Fill one section's dataclass.

        Args:
            section: The key's first part, such as `session`.
            kind: The frozen dataclass with the fields and their defaults.

        Raises:
            SettingsError: a value is of the wrong type; says which, what was expected, and where it stands.
        """
        values = {}
        hints = _hints(kind)  # type: ignore[arg-type]  # a class is hashable
        for field in fields(kind):  # type: ignore[arg-type]  # `sections` holds dataclasses only
            setting = self._found.get(f"{section}.{field.name}")
            if setting is not None:
                values[field.name] = fit_setting(f"{section}.{field.name}", setting, hints[field.name])
        return kind(**values)

    @property
    def configured_roles(self) -> tuple[str, ...]:
        """The names of the roles for which something is set that a role must know."""
        return tuple(name for name, own in self._roles.items() if not all(s.passed_over for s in own.values()))

    @property
    def folder_role_settings(self) -> Iterator[FolderSetting]:
        """Settings of roles that count and stand in the file of a folder that the user has named or trusts."""
        for name, own in self._roles.items():
            for key, setting in own.items():
                if setting.file is not None:
                    yield FolderSetting(f"{ROLE_SECTION}.{name}.{key}", setting)

    def of_role(self, name: str, known: Iterable[str]) -> Mapping[str, Setting]:
        """Return what is set for one role, unchecked.

        Args:
            name: The role's, as in `role.<name>.<key>`.
            known: The keys that the role declares; looked for in the environment too
                (`TW_AUTOGEN_ROLE_ECHO_DECORATOR`), between the files and the keywords; what is almost one of these
                there is given as it stands, to be refused.
        """
        found, known = dict(self._roles.get(name, {})), list(known)
        for key in known:
            variable = _variable_name(f"{ROLE_SECTION}.{name}.{key}")
            if self._environ.get(variable) and not found.get(key, Setting(None, "")).given:
                setting = Setting(self._environ[variable], variable, base=self._named_in)
                found[key] = whole_path(f"{ROLE_SECTION}.{name}.{key}", setting)
        return {**found, **self._misspelt_variables(name, known)}

    def _misspelt_variables(self, name: str, known: list[str]) -> dict[str, Setting]:
        """Return variables of the environment that are almost one of a role's; others may be those of another role."""
        prefix = _variable_name(f"{ROLE_SECTION}.{name}.")
        right = [_variable_name(f"{ROLE_SECTION}.{name}.{key}") for key in known]
        return {
            name.removeprefix(prefix).lower(): Setting(value, name)
            for name, value in self._environ.items()
            if value and name.startswith(prefix) and name not in right
            if difflib.get_close_matches(name, right, n=1, cutoff=0.9)
        }

    def _take_role(self, key: str, setting: Setting) -> None:
        """Take `role.echo.decorator`, or `role.echo` with all its keys."""
        _, name, *rest = key.split(".", 2)
        if rest:
            self._roles.setdefault(name, {})[rest[0]] = setting
        elif isinstance(setting.value, Mapping):
            for inner, value in setting.value.items():
                self._roles.setdefault(name, {})[str(inner)] = replace(setting, value=value)
        else:
            words = f"{setting.origin}: {shown_key(key)} needs a key after it"
            raise SettingsError(words, key=key, origin=setting.origin)

    def origin(self, key: str) -> str:
        """Return where a value comes from; `the default` if nobody set it."""
        setting = self._found.get(key)
        return setting.origin if setting else self.DEFAULT

    def folder_of(self, key: str) -> Path | None:
        """Return the folder whose file sets a value; None if the user has set it, or nobody."""
        setting = self._found.get(key)
        return setting.file.parent if setting and setting.file else None

    def base_of(self, key: str) -> Path | None:
        """Return the folder in which relative paths of a value begin; None: the current one, or nobody has set it."""
        setting = self._found.get(key)
        return setting.base if setting else None

    def _environment_settings(self) -> Iterator[tuple[str, Setting]]:
        self._refuse_unknown_variables()
        yield from read_config_list(self._environ.get("OAI_CONFIG_LIST", ""), self._fields, self._content)
        for section, cls in self._sections.items():
            for field in fields(cls):
                for name in reversed((_variable_name(f"{section}.{field.name}"), *field.metadata.get("env", ()))):
                    if self._environ.get(name):
                        yield (key := f"{section}.{field.name}"), whole_path(key, Setting(self._environ[name], name))

    def _refuse_unknown_variables(self) -> None:
        """Refuse variables with our prefix that set nothing; those of roles are known to these only."""
        known, of_roles = set(map(_variable_name, self._fields)), _variable_name(f"{ROLE_SECTION}.")
        for name in self._environ:
            if name.startswith(_PREFIX) and not name.startswith(of_roles) and name not in known:
                raise unknown_setting(name, "the environment", self._fields, _variable_name)

    def _project_settings(self, folder: Path) -> Iterator[tuple[str, Setting]]:
        own, taskweaver = folder / PROJECT_FILE, folder / TASKWEAVER_FILE
        if self._content(own) is not None:
            for key, setting in self._file_settings(own):
                yield key, self._of_folder(key, setting, own)
        elif self._content(taskweaver) is not None:
            yield from self._taskweaver_settings(self._meaning_of(taskweaver, folder), taskweaver)

    def _meaning_of(self, file: Path, folder: Path) -> ConfigTranslation:
        def is_folder(place: Path) -> bool:
            return (not self._looks_outside and step_out_of(folder, place) != "") or os.path.isdir(place)

        return meaning_of(dict(_dotted_items(self._read_mapping(file))), folder, is_folder=is_folder)

    def _taskweaver_settings(self, config: ConfigTranslation, file: Path) -> Iterator[tuple[str, Setting]]:
        """Yield what TaskWeaver's keys mean here."""
        self.ignored = config.ignored
        for entry in config.meant:
            of_role = entry.key.startswith(f"{ROLE_SECTION}.")
            if entry.key in self._fields or of_role:
                setting = Setting(entry.value, f"{file} ({entry.said_by})", passed_over=of_role)
                yield entry.key, self._of_folder(entry.key, setting, file)

    def _of_folder(self, key: str, setting: Setting, file: Path) -> Setting:
        """Return a setting of a folder's file in the one form that is shown, hashed and used: its field's type.

        Raises:
            SettingsError: the value is of the wrong type.
        """
        written = file, key, repr(setting.value)
        if written not in self._known_values:
            self._known_values[written] = self._follow_links(key, replace(setting, file=file), file)
        value = self._known_values[written]
        return replace(setting, value=value, file=file, base=file.parent, written=setting.value)

    def _follow_links(self, key: str, setting: Setting, file: Path) -> Any:
        """Return the value of a setting of a folder's file, its links followed where its field wants that."""
        value = self._fit_and_expand(key, setting, file.parent)
        try:
            climbs = key == "plugin.folder" and os.pardir in str(value)
            if climbs or key in ("plugin.folder", "code_interpreter.policy") and str(value).startswith("~"):
                value = expanded_path(value, file.parent)
            is_path = key in self._paths or key in _ALSO_PATHS
            seen = self._looks_outside or not is_path
            if not seen and any(step_out_of(file.parent, path) for path in texts_of(value) if path):
                return value
            value = climbed_path(value) if is_path else self._role_path(key, value, file.parent)
            if key in self._grants:
                value = real_path_of(value)
            if key in ("session.role_folder", "session.workspace", "plugin.folder"):
                if not value:
                    raise OSError("it names no folder; leave it out")
                with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                    Path(value).lstat()  # one that is too long, which no system takes
        except (OSError, RuntimeError) as error:  # RuntimeError: `~name` of no user
            message = f"{place_of_setting(setting.origin, key)}: {getattr(error, 'strerror', '') or error}"
            raise SettingsError(message, key=key, origin=setting.origin) from error
        return value

    def _role_path(self, key: str, value: Any, folder: Path) -> Any:
        """Return where the links of a role's path lead, if that is what a setting is; others, and programs, as is."""
        section, role, name = (*key.split(".", 2), "", "")[:3]
        is_text = section == ROLE_SECTION and isinstance(value, str) and value != ""
        unread = self.trust is Trust.none and not self._looks_outside  # it counts for nothing, so no role is loaded
        plain = unread or not is_text or key.endswith(PROGRAM_OF_ROLE)
        if plain or not ((known := self._is_role_path(role, name)) or known is None and is_over_link(folder, value)):
            return value
        path = expanded_path(value, folder)
        return value if not self._looks_outside and step_out_of(folder, path) else real_path_of(path)

    def _resolve_user_paths(self, key: str, setting: Setting) -> Setting:
        """Return what the user has said with `~` replaced, and relative paths as `relative_to_folder` says."""
        if setting.base is not None or setting.file is not None:
            return setting
        setting = replace(setting, base=self._named_in)
        base = None if key in _OF_CURRENT_FOLDER else self._named_in
        if key not in self._hints or base is None and "~" not in str(setting.value):
            return setting
        value = self._fit_and_expand(key, setting, base)
        is_file = base and key == "code_interpreter.policy" and value.endswith((".yaml", ".yml"))
        return replace(setting, value=expanded_path(value, base) if is_file else value)

    def _fit_and_expand(self, key: str, setting: Setting, folder: Path | None) -> Any:
        """Return a value in its field's type: a path, or several, as seen from a folder; None: as it is, but for `~`.

        Raises:
            SettingsError: the value is of the wrong type, or begins with `~name` of no user.
        """
        value = fit_setting(key, setting, self._hints[key]) if key in self._hints else setting.value
        try:
            return self._expand_paths(key, value, folder)
        except RuntimeError as error:
            words = f"{place_of_setting(setting.origin, key)}: {error}"
            raise SettingsError(words, key=key, origin=setting.origin) from error

    def _expand_paths(self, key: str, value: Any, folder: Path | None) -> Any:
        if key == "session.roles" and isinstance(value, list | tuple):
            return [expanded_path(path, folder) if "/" in str(path) or os.sep in str(path) else path for path in value]
        if key == "kernel.python" and isinstance(value, str) and any(sign in value for sign in "/\\~"):
            return expanded_path(value, folder)  # a word is a program that is found on PATH
        if key not in self._paths or key == "plugin.mcp_servers" and str(value).lstrip().startswith("{"):
            return value
        if isinstance(value, str) and self._paths.get(key):
            value = [part.strip() for part in value.split(",") if part.strip()]
        if isinstance(value, list | tuple):
            return [expanded_path(path, folder) for path in value]
        return expanded_path(value, folder)

    def _user_file(self, path: Path) -> Iterator[tuple[str, Setting]]:
        for key, setting in self._file_settings(path):
            here = key in _OF_CURRENT_FOLDER
            beside = None if here else self._fit_and_expand(key, setting, path.parent)
            yield key, setting if here else replace(setting, value=beside, base=path.parent)

    def _file_settings(self, path: Path) -> Iterator[tuple[str, Setting]]:
        if self._content(path) is None:
            return
        found: set[str] = set()
        for key, value in _by_key(self._read_mapping(path)):
            if key in found:
                raise SettingsError(
                    f"{path}: {shown_key(key)} stands twice, in two spellings; keep one", key=key, origin=str(path)
                )
            found.add(key)
            yield key, Setting(value, str(path))

    def _content(self, path: Path) -> bytes | None:
        """Return what a file held when it was first looked for; None: it was not there."""
        if path not in self.texts:
            self.texts[path] = settings_content(path, self.project, self.trust)
        return self.texts[path]

    def _read_mapping(self, path: Path) -> Mapping[str, Any]:
        """Read a YAML or JSON file that must hold keys and values (an empty one holds none)."""
        try:
            plain = bounded_yaml.load(decode_settings(path, self._content(path) or b""), unique=True)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            words, line = bounded_yaml.problem_of(error)  # none of its lines: the file may hold keys
            where = f"{path}:{line}" if line else str(path)
            raise ConfigError(f"{where}: neither YAML nor JSON: {words}") from None
        plain = {} if plain is None else plain
        if not isinstance(plain, Mapping):
            raise ConfigError(f"{path}: expected keys and values, found {type(plain).__name__}")
        values = _dotted_items(plain)
        if odd := next((key for key, value in values if any(map(NO_TEXT.search, texts_of([key, value])))), None):
            raise ConfigError(f"{path}: {reprlib.repr(odd)} holds a NUL or half of a surrogate pair")
        return plain


def _variable_name(key: str) -> str:
    """Return the name in the environment of a dotted key: `TW_AUTOGEN_SESSION_MAX_POSTS`."""
    return _PREFIX + key.replace(".", "_").upper()


def _dotted_items(plain: Mapping[str, Any], prefix: str = "", *, depth: int = 9) -> Iterator[tuple[str, Any]]:
    """Spell nested keys with dots: `{"session": {"max_posts": 9}}` and `{"session.max_posts": 9}` are the same."""
    for key, value in plain.items():
        if isinstance(value, Mapping) and depth > 0 and "." not in str(key):
            yield from _dotted_items(value, f"{prefix}{key}.", depth=depth - 1)
        elif value is not None or "." in f"{prefix}{key}":  # else a section without lines
            yield f"{prefix}{key}", value


def _by_key(plain: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Return what a settings file holds by dotted keys: `section.field`, and `role.<role>.<key>`."""
    for key, value in _dotted_items(plain, depth=1):
        of_role = key.startswith(f"{ROLE_SECTION}.") and key.count(".") == 1 and isinstance(value, Mapping | None)
        yield from ((f"{key}.{inner}", own) for inner, own in (value or {}).items()) if of_role else [(key, value)]


def _default(spec: Field[Any]) -> Any:
    return spec.default if spec.default_factory is MISSING else spec.default_factory()
