"""`Review`: what a folder that is not trusted wants, in words, and whether the user trusts it as it is."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tw_autogen.code_writable_folders import writable_by_code
from tw_autogen.errors import ConfigError
from tw_autogen.named_folders import TRUSTED_FOLDERS, UNTRUSTED_FOLDERS, current_folder, path_out_of, step_out_of
from tw_autogen.plugin import PluginSettings, PluginSpec
from tw_autogen.recall import RecallSettings, example_paths
from tw_autogen.session.plugins_read import PLUGIN_SUFFIXES, PluginsRead
from tw_autogen.session.project import (
    EXAMPLES,
    example_files,
    is_project,
    is_role_in,
    own_examples,
    role_folders,
    role_places,
    roles_inside,
    settings_files,
)
from tw_autogen.session.referenced_files import ReferencedFiles, lies_in, links_below
from tw_autogen.session.server_words import UNREADABLE
from tw_autogen.session.settings import SessionSettings
from tw_autogen.session.trust_wants import PROGRAMS, Want, rank, wants_of
from tw_autogen.settings import Settings
from tw_autogen.settings_trust import PROGRAM_OF_ROLE, Trust
from tw_autogen.text_escaping import visible_line
from tw_autogen.trust_store import TrustStore
from tw_autogen.trusted_files import TrustedFiles, reading_once

_OF_CODE = frozenset(("plugin.folder", "session.role_folder", "session.roles"))
"""Settings that name folders of plugins and roles: what appears there after it was looked for is not trusted."""
_MAX_NAMES = 30
_MAX_NAME_CHARS = 100
_MAX_LISTED_CHARS = 1500
"""Of one name, and of all, in a line that lists them."""
_MAX_BRIEF_CHARS = (600, 200, 60)
"""Of the words about one thing, as many as leave room for the names of all."""
_MAX_PROMPTS = 60
_MAX_PROMPTS_CHARS = _MAX_PROMPTS * _MAX_NAME_CHARS
"""Of texts that become part of prompts, and of their names: none of those that count goes unnamed."""
_MAX_WANTS = 40
_MAX_EXAMPLES_NAMED = 30
_MAX_WANT_CHARS = 600
_MAX_CHARS = 3000
"""What a person who is asked would still read: things, the characters of one, and of all."""
_HERE = "runs with all that you may do, outside the sandbox"
_STARTED = (*PROGRAMS, "embedding.folder")
"""What starts programs, or code of which no module is compared when it is loaded."""
_MAX_PLACES = 1000


@dataclass(frozen=True)
class Review:
    """What a folder wants.

    Args:
        settings: Read for that folder, without the user's trust.
        store: Where trust is remembered; None: the user's.
        looks_outside: Look at what settings and links name outside of the folder; without it `wants` says what is
            written, and only `line` is of use.
    """

    settings: Settings
    store: TrustStore | None = None
    looks_outside: bool = True

    @property
    def folder(self) -> Path:
        """The folder, absolute, its links followed."""
        return (self.settings.project or Path()).resolve()

    @functools.cached_property
    def wants(self) -> tuple[Want, ...]:
        """All that the folder gets only if it is trusted, as it was at the first look; nothing if it is trusted.

        What starts programs or loads Python stands last, where it is read right above a question.
        """
        wants = (*self._settings_wanted, *self._code_wanted())
        return tuple(sorted(wants, key=lambda want: (want.starts, want.name in PROGRAMS)))

    @property
    def prompt_sources(self) -> tuple[str, ...]:
        """Names of the folder's texts that become part of prompts without trust."""
        return self.names_of_prompts(self.prompt_files)

    @property
    def prompt_files(self) -> Iterable[Path]:
        """The folder's examples that become part of prompts without trust."""
        own = self.settings.trust is Trust.none and is_project(self.folder)
        return dict.fromkeys([*self.settings.examples, *(own_examples(self.folder) if own else ())])

    def names_of_prompts(self, files: Iterable[Path]) -> tuple[str, ...]:
        """Return the names of the folder's settings that become part of prompts, and of files that do.

        Args:
            files: Examples; two that are shown alike stay two.
        """
        origin = self.settings.origin  # what the caller says holds instead
        prompts = self.settings.prompt_settings
        named = [prompt.key for prompt in prompts if origin(prompt.key) == prompt.setting.origin]
        return (*named, *(_shown_path(path, self.folder) for path in files))

    def line(self, how: str, *, brings_code: bool = True) -> str:
        """Return one line that names all that is left out; empty if nothing is; nothing outside of it is looked at.

        Args:
            how: How to trust the folder, such as `--trust`.
            brings_code: Name roles and plugins too; where they would not be used in any case, they are not left out.
        """
        inside = replace(self, looks_outside=False)
        wants = inside.wants if brings_code else inside._settings_wanted
        if not wants:
            return ""
        first = {want.name: want for want in reversed(sorted(wants, key=rank))}
        wants = tuple(sorted(wants, key=lambda want: (want is not first[want.name], rank(want))))  # the least is cut
        for max_chars in _MAX_BRIEF_CHARS:  # no long words about one thing hide the name of another
            named = [f"{w.name} ({_shorten_name(w.brief, max_chars)})" if w.brief else w.name for w in wants]
            if sum(map(len, named)) <= _MAX_LISTED_CHARS:
                break
        listed = _list_names(named, most=_MAX_PROMPTS, max_chars=_MAX_PROMPTS_CHARS, max_name_chars=_MAX_WANT_CHARS)
        care = "look at its files before you " if listed.endswith(" more") else ""
        trust = f"{care}trust this folder with {how}{self._settings_elsewhere()}"
        return f"{self.title()} (not trusted): left out {listed}; {trust}"

    def _settings_elsewhere(self) -> str:
        """Return in words what lets in the settings of a file that no trust in this folder says anything of."""
        files = {entry.setting.file for entry in self.settings.left_out if entry.setting.file is not None}
        out = sorted(str(file) for file in files if not file.resolve().is_relative_to(self.folder))
        return "".join(f"; what is in {visible_line(path)} counts where its whole path is given" for path in out)

    def cannot_ask_reason(self) -> str:
        """Return in words why nobody can be asked about this folder; empty if a person can read all that it wants."""
        if any(want.name == "plugin.mcp_servers" and want.does.startswith(UNREADABLE) for want in self.wants):
            return (
                f"what {self.title()} names as MCP servers can't be read, or lies elsewhere, so you are not asked; "
                "look at its files before you use --trust"
            )
        sizes = [len(want.name) + len(want.does) for want in self.wants]
        if len(sizes) <= _MAX_WANTS and sum(sizes) <= _MAX_CHARS and max(sizes, default=0) <= _MAX_WANT_CHARS:
            return ""
        return (
            f"{self.title()} wants more than can be shown ({len(sizes)} things, {sum(sizes)} characters, "
            f"{max(sizes)} of one), so you are not asked about it; read its files before you use --trust"
        )

    def title(self) -> str:
        """Return the folder's path as it is shown."""
        return _shorten_name(visible_line(str(self.folder)), _MAX_WANT_CHARS)

    def prompts_line(self) -> str:
        """Return the names of `prompts` as far as a person reads them, on one line."""
        return _list_names(self.prompt_sources, most=_MAX_PROMPTS, max_chars=_MAX_PROMPTS_CHARS)

    def files_if_trusted(self) -> TrustedFiles | None:
        """Return the folder's files if the user trusts it as it is now; None if not."""
        known, _ = self._store.read(self.folder)
        sha256, files, _ = self._hash_folder() if known else ("", None, "")
        return replace(files, trust=known) if files and known == sha256 else None

    def problem(self) -> str:
        """Return in words why what was remembered can't be used; empty if it can, or nothing was."""
        return visible_line(self._store.read(self.folder)[1])

    def remember(self, sha256: str) -> str:
        """Remember that the user trusts this folder as long as its hash is this one; return a problem, or nothing."""
        if not sha256:
            return f"it is not trusted: {self.no_hash_reason()}"
        programs = self._program_places()
        problem = self._store.remember(self.folder, sha256, programs)
        try:  # looked at afterwards: a kernel that comes now ends it by itself
            writable = writable_by_code(programs)
            why = f"code of a kernel that is at work can write to {writable}, where programs lie that this starts"
        except OSError as error:
            writable, why = programs[0], f"{error.filename}: cannot be read ({error.strerror})"
        if writable:
            self._store.end(writable)
            self._store.hold(self.folder, sha256, programs)
            problem = f"it holds until this program ends: {why}"
        return visible_line(problem)

    def _program_places(self) -> tuple[str, ...]:
        """Return where programs lie that the folder's trust starts: first names below it, and folders elsewhere."""
        starts = any(want.name in _STARTED or want.name.endswith(PROGRAM_OF_ROLE) for want in self.wants)
        _, files, _ = self._hash_folder() if starts else ("", None, "")
        base, found = f"{self.folder}{os.sep}", set[str]()
        for place in files.places() if files else ():
            found.add(base + place[len(base) :].split(os.sep)[0] if place.startswith(base) else os.path.dirname(place))
        return tuple(sorted(found)) if len(found) <= _MAX_PLACES else (str(self.folder),)

    def record(self) -> Path | None:
        """Return the file in which the user's trust is remembered; None if there is no place for it."""
        return self._store.record(self.folder)

    def sha256(self) -> str:
        """Return the hash of what the folder wants, of its owner, and of all files that its trust is about; or nothing.

        Its settings files, what they name, code and YAML of roles and plugins, what roles import there, and examples.
        """
        return self._hash_folder()[0]

    def no_hash_reason(self) -> str:
        """Return in words why there is no hash: the files are too many, or can't be looked through."""
        return self._hash_folder()[2]

    def _hash_folder(self) -> tuple[str, TrustedFiles | None, str]:
        wants = [(want.name, want.does) for want in self.wants]  # before the files: what it has read is what is hashed
        try:
            folders = list(self._code_folders())
            with reading_once(self._kept_contents):
                files = TrustedFiles.hashed(
                    self.folder,
                    self._files_to_hash(folders),
                    folders=[*folders, *(self.folder / example for example in EXAMPLES)],
                    contents={**self._kept_contents, **self._settings_contents},
                )
        except ConfigError as error:
            return "", None, visible_line(str(error))
        found = json.dumps([files.sha256, wants, os.stat(self.folder).st_uid])
        return hashlib.sha256(found.encode()).hexdigest(), files, ""

    @property
    def _settings_contents(self) -> dict[Path, bytes | None]:
        """What was read of the settings files, by the names under which they are hashed."""
        texts = dict(self.settings.texts)
        for path in settings_files(self.settings.project or Path()):
            if path in texts:
                texts[self.folder / path.name] = texts[path]
        return texts

    @property
    def _store(self) -> TrustStore:
        return self.store or TrustStore.of_user(named=self.settings.trust is Trust.named)

    @functools.cached_property
    def _settings_wanted(self) -> tuple[Want, ...]:
        wants: list[Want] = []
        with reading_once(self._kept_contents):
            for entry in self.settings.left_out:
                wants += wants_of(entry, self.folder, looks_outside=self.looks_outside)
        places = [(entry.key, entry.setting.value) for entry in self.settings.folder_role_settings]
        places += [(".tw", os.path.join(".tw", "sessions")), *self._unshown_places()]
        for key, value in places if self.settings.trust is not Trust.full else ():
            if out := self._place_outside(value):
                target = f"{visible_line(str(value))} -> {visible_line(out)}, outside of the folder"
                wants.append(Want(visible_line(key), target, visible_line(out)))
        return tuple(wants)

    def _place_outside(self, value: object) -> str:
        """Return where a value leads if it is a path out of the folder; empty if it is none."""
        if self.looks_outside or not isinstance(value, str) or not value:
            return path_out_of(self.folder, value) if self.looks_outside else ""
        return step_out_of(self.folder, os.path.expanduser(value))

    def _unshown_places(self) -> Iterator[tuple[str, str]]:
        """Yield where the examples, plugins and roles of a named folder lie, and links in those of one that isn't."""
        if self.settings.trust is Trust.none:  # what else it has of these is shown with the rest, if anything is
            named = (self._plugin_folder, *self._role_folders.values(), *self._named_roles()) * self._shows_code
            inside = [folder for folder in named if self.looks_outside or not step_out_of(self.folder, folder)]
            yield from (("links", os.path.relpath(link, self.folder)) for link in links_below(inside))
            return
        for path in example_files(self.folder, inside=not self.looks_outside):
            yield "examples", os.path.relpath(path, self.folder)
        yield "plugins", os.path.relpath(self._plugin_folder, self.folder)
        yield from (("roles", os.path.relpath(folder, self.folder)) for folder in self._role_folders.values())

    @functools.cached_property
    def _kept_contents(self) -> dict[Path, bytes | None]:
        """What was read of the folder's files for what is shown: these bytes are hashed, whatever lies there then."""
        return {}

    @functools.cached_property
    def _role_folders(self) -> dict[str, Path]:
        """The folders of the folder's roles, found once: those that are shown, and hashed."""
        if not self.looks_outside:
            return roles_inside(self.folder, self._folder_setting("session", "role_folder"))[0]
        with contextlib.suppress(ConfigError):  # the setting names a folder that isn't there
            return role_folders(self.folder, self._folder_setting("session", "role_folder"))
        return {}

    @property
    def _role_places(self) -> list[Path]:
        return role_places(self.folder, self._folder_setting("session", "role_folder"))

    @functools.cached_property
    def _folder_plugins(self) -> tuple[PluginsRead, tuple[PluginSpec, ...]]:
        """The folder's plugins, found once: those that are shown, and hashed."""
        place = self._plugin_folder
        read = PluginsRead(place, inside=None if self.looks_outside else self.folder)
        seen = self.looks_outside or not step_out_of(self.folder, place)
        with reading_once(self._kept_contents):
            return read, tuple(read.specs()) if seen and os.path.isdir(place) else ()

    @property
    def _plugin_folder(self) -> Path:
        return self.folder / self._folder_setting("plugin", "folder")

    @property
    def _shows_code(self) -> bool:
        """Whether the folder's roles and plugins are part of what is asked about: nobody has named it."""
        return self.settings.trust is Trust.none and is_project(self.folder)

    def _code_wanted(self) -> Iterator[Want]:
        """Yield the roles and plugins that a folder which nobody named does not bring."""
        if not self._shows_code:
            return
        if not self.looks_outside:
            yield from self._links_wanted()
        mine = set(own_examples(self.folder))
        more = [path for path in example_files(self.folder, inside=not self.looks_outside) if path not in mine]
        if more and not self.looks_outside:
            yield Want("examples", "")
        elif more:
            named = [_shown_path(path, self.folder) for path in more[:_MAX_EXAMPLES_NAMED]]
            listed = _list_names(named, max_chars=_MAX_WANT_CHARS // 2, max_name_chars=_MAX_WANT_CHARS // 2)
            yield Want("examples", f"{len(more)} more of its texts become part of prompts: {listed}")
        for name, folder in self._role_folders.items():
            place = _shown_path(folder, self.folder)
            yield Want("roles", f"{visible_line(name)}: Python in {place}, {_HERE}", place, starts=True)
        read, specs = self._folder_plugins
        if python := [_shown_path(path, self.folder) for path in sorted(read.files) if path.name.endswith(".py")]:
            where = "run in the sandbox, or outside it where they say `runs_in: host`"
            names = _list_names(python, max_chars=_MAX_WANT_CHARS // 2, max_name_chars=_MAX_WANT_CHARS // 2)
            yield Want("plugins", f"Python in {names}: {where}", names, starts=True)
        for spec in specs:
            if spec.runs_in == "host":
                name = visible_line(spec.name)
                place = _shown_path(spec.source(), self.folder, looks_outside=self.looks_outside)
                brief = f"{name} outside the sandbox"
                yield Want("plugins", f"{name}: Python in {place}, {_HERE}", brief, starts=True)
        if read.left_out:
            unread = [_shown_path(path, self.folder) for path in read.left_out]
            text = f"{_list_names(unread, max_chars=_MAX_WANT_CHARS // 2)}: too large to be read before you trust it"
            yield Want("plugins", f"{text}; plugins in it may run outside the sandbox", text, starts=True)
        if read.problem:
            text = f"{_shown_path(self._plugin_folder, self.folder)}: {visible_line(read.problem)}"
            yield Want("plugins", f"{text}; none of them is used", text, starts=True)

    def _links_wanted(self) -> Iterator[Want]:
        """Yield the links out of the folder in whose place plugins, roles or examples would be, as they are written."""
        places = [("examples", self.folder / example) for example in EXAMPLES]
        places += [
            ("roles", link) for link in roles_inside(self.folder, self._folder_setting("session", "role_folder"))[1]
        ]
        own = [self._plugin_folder] * all(entry.key != "plugin.folder" for entry in self.settings.left_out)
        places += [("plugins", link) for link in (*own, *self._folder_plugins[0].outside)]
        for name, place in places:
            if out := step_out_of(self.folder, place):
                yield Want(
                    name,
                    "",
                    f"{_visible_path_below(place, self.folder)} -> {visible_line(out)}",
                    starts=name != "examples",
                )

    def _as_found(self, files: Iterable[Path]) -> Iterator[Path]:
        """Return files without those that would be roles or plugins, and appeared after these were found.

        Args:
            files: Absolute, of the folder's code.
        """
        if not self._shows_code:
            yield from files
            return
        named, known = self._plugin_folder, set(map(os.path.abspath, self._folder_plugins[0].files))
        plugins = {os.path.abspath(path) for path in (named, named / "plugins")}
        places = [Path(os.path.abspath(path)) for path in self._role_places]
        roles = {os.path.abspath(role) for role in self._role_folders.values()}
        for path in files:
            place = str(path.parent)
            is_plugin = place in plugins and path.name.endswith(PLUGIN_SUFFIXES)
            if is_plugin and str(path) not in known or place not in roles and is_role_in(path, places):
                continue
            yield path

    def _folder_setting(self, section: str, name: str) -> str:
        """Return a folder that a setting names, also one that is left out."""
        values = [entry.setting.value for entry in self.settings.left_out if entry.key == f"{section}.{name}"]
        if values and f"{section}.{name}" not in self.settings.overridden:
            return str(values[-1])
        return str(
            getattr(self.settings.read(section, {"session": SessionSettings, "plugin": PluginSettings}[section]), name)
        )

    def _code_folders(self) -> Iterator[Path]:
        """Return the folders whose code may be loaded; they need not exist yet."""
        yield from self._role_places
        yield from self._role_folders.values()
        yield self._plugin_folder
        named = list(self._named_roles())
        yield from named
        if self._role_folders or any(lies_in(path, self.folder) for path in named):
            yield self.folder  # they may import from the top of the folder

    def _named_roles(self) -> Iterator[Path]:
        """Return the folders of roles that the folder's `session.roles` names by a path; they need not exist yet."""
        named = [entry.setting.value for entry in self.settings.left_out if entry.key == "session.roles"]
        if self.settings.folder_of("session.roles") is not None:
            named.append(self.settings.read("session", SessionSettings).roles)
        yield from (self.folder / text for value in named for text in value if "/" in text or os.sep in text)

    def _files_to_hash(self, code_folders: Sequence[Path]) -> Iterator[Path]:
        """Yield the files that are hashed.

        Raises:
            ConfigError: they are too many, or what a program loads would be a plugin or a role that is not shown.
        """
        folder, places, programs = self.folder, ReferencedFiles(), ReferencedFiles()
        places.add_code(code_folders)
        yield from self._example_files()
        yield from settings_files(folder)
        for entry in self.settings.left_out:
            if entry.setting.file is not None:
                yield self._as_hashed(entry.setting.file)
            (places if entry.key in _OF_CODE else programs).add_setting(entry, folder)
        yield from self._as_found(places.files())
        named = set(programs.files())
        for path in sorted(named.difference(self._as_found(named))):
            raise ConfigError(
                f"{path}: a setting names it, or a file beside it, and it lies where plugins or roles do and is none; "
                "move it elsewhere"
            )
        yield from named

    def _example_files(self) -> Iterator[Path]:
        """Return the files of the folders of examples and lessons, also of those that the folder's settings name."""
        yield from example_files(self.folder)
        for key in ("recall.planner_examples", "recall.code_examples", "recall.experience"):
            named = [str(entry.setting.value) for entry in self.settings.left_out if entry.key == key]
            if self.settings.folder_of(key) is not None:
                named.append(getattr(self.settings.read("recall", RecallSettings), key.partition(".")[2]))
            for name in filter(None, named):
                with contextlib.suppress(OSError):  # told when they are read
                    yield from example_paths(self.folder / name)

    def _as_hashed(self, path: Path) -> Path:
        named = settings_files(self.settings.project or Path())
        return self.folder / path.name if path in named else path


def trust_lines(
    settings: Settings,
    how: str,
    *,
    brings_code: bool = True,
    prompts: bool = True,
    examples: Sequence[Path] | None = None,
) -> tuple[str, ...]:
    """Return lines about what of a folder that is not trusted does not count, and what of it becomes part of prompts.

    Args:
        settings: Read for that folder.
        how: How to trust the folder, such as `--trust`.
        brings_code: The folder's roles, plugins and example folders would be used if it were trusted.
        prompts: A session is opened, so that its texts become part of prompts.
        examples: Those of its example folders that are used, as they were listed; None: they are listed now.
    """
    review = Review(settings)
    unused = own_examples(review.folder) if examples is not None or not brings_code else []
    hidden = {path for path in unused if path not in settings.examples}
    used = [path for path in examples or () if settings.trust is Trust.none]
    texts = review.names_of_prompts(dict.fromkeys([*(f for f in review.prompt_files if f not in hidden), *used]))
    listed = _list_names(texts, most=_MAX_PROMPTS, max_chars=_MAX_PROMPTS_CHARS)
    shown = f"text of {review.title()} (not trusted) that becomes part of prompts: {listed}"
    problem = review.problem() if settings.trust is not Trust.full else ""
    lines = (review.line(how, brings_code=brings_code), shown if texts and prompts else "", problem)
    more = (*(settings.shortened if prompts else ()), *settings.withheld)
    return tuple(line for line in (*lines, *map(visible_line, more)) if line)


def still_remembered(settings: Settings) -> bool:
    """Return whether the trust under which settings were read is remembered still: a kernel's start may have ended it.

    Args:
        settings: Read for a folder that is trusted by a hash.
    """
    folder = (settings.project or Path()).resolve()
    found = [TrustStore.of_user(named=named).read(folder)[0] for named in (False, True)]
    return settings.files.trust in found if settings.files else any(found)


def compare_trusted(settings: Settings, find: Callable[[], Iterable[Path]], what: str, folder: str) -> None:
    """Refuse files that are not as they were when their folder was trusted, or if that trust has ended.

    Args:
        settings: Read for the folder. Where nothing was hashed, nothing is compared.
        find: Returns the files; called only if there is something to compare them with.
        what: Names them, and who wants them, in front of what is wrong.
        folder: What the folder is called.

    Raises:
        ConfigError: names the file.
    """
    if settings.files is None:
        return
    if not still_remembered(settings):
        raise ConfigError(f"{what}: the trust of {folder} has ended; trust it again")
    for path in find():
        try:
            settings.files.compare(path)
        except OSError as error:
            raise ConfigError(f"{what}: {path}: {error.strerror or error}") from error


def distrusted_folder(settings: Settings, *, opening: bool = False) -> Path | None:
    """Return the current folder, if nobody has trusted it or named it as the project; else None.

    What is named from now on in such a folder is refused if that is moved: what stands in its place is another one.

    Args:
        settings: Say whether it is trusted.
        opening: They were read just now, for a session: where it is trusted, what was noted of it before ends.

    Raises:
        ConfigError: the current folder was removed.
    """
    here = current_folder()
    if settings.trust is not Trust.none and settings.project is not None and settings.project.resolve() == here:
        if opening:
            UNTRUSTED_FOLDERS.discard(str(here))
            TRUSTED_FOLDERS.add(str(here))
        return None
    UNTRUSTED_FOLDERS.add(str(here))
    TRUSTED_FOLDERS.discard(str(here))
    return here


def _list_names(
    names: Sequence[str],
    *,
    most: int = _MAX_NAMES,
    max_chars: int = _MAX_LISTED_CHARS,
    max_name_chars: int = _MAX_NAME_CHARS,
) -> str:
    """List names as far as a person reads them, and say how many more there are.

    Args:
        names: Each on one line.
        most: How many of them are shown.
        max_chars: How much of them is shown.
        max_name_chars: How much of one.
    """
    shown: list[str] = []
    for name in names[:most]:
        name = _shorten_name(name, max_name_chars)
        if sum(map(len, shown)) + len(name) > max_chars:
            break
        shown.append(name)
    more = len(names) - len(shown)
    return f"{', '.join(shown)}{f' and {more} more' if more else ''}"


def _shorten_name(name: str, max_chars: int) -> str:
    """Return head and tail of a name that is longer than a person reads, with how much is left out.

    Args:
        name: On one line.
        max_chars: How much of it is shown.
    """
    half = max_chars // 2
    return name if len(name) <= max_chars else f"{name[:half]}[{len(name) - 2 * half} characters]{name[-half:]}"


def _visible_path_below(path: Path, folder: Path) -> str:
    return visible_line(str(path.relative_to(folder) if path.is_relative_to(folder) else path))


def _shown_path(path: Path, folder: Path, *, looks_outside: bool = True) -> str:
    """Return a path as seen from a folder; one that leads over links, with where they lead."""
    if not path.is_relative_to(folder):
        return visible_line(str(path))
    out = path_out_of(folder, str(path)) if looks_outside else step_out_of(folder, path)
    if not out:
        real = os.path.relpath(os.path.realpath(path), os.path.realpath(folder))
        out = "" if real == str(path.relative_to(folder)) else real
    return visible_line(f"{path.relative_to(folder)}{f' -> {out}' if out else ''}")
