"""A project's folder, in our form or TaskWeaver's: plugins, roles and examples, found before a session opens."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatch
from itertools import chain, islice
from pathlib import Path

from tw_autogen.errors import ConfigError, ConversationFormatError, path_suggestion
from tw_autogen.kernel import KernelSettings
from tw_autogen.named_folders import checked_path, step_out_of
from tw_autogen.plugin import PluginSettings, PluginSpec, project_plugins
from tw_autogen.private_files import lies_in
from tw_autogen.recall import read_conversation
from tw_autogen.role import find_role, is_role_file
from tw_autogen.session.role_configs import BUILT_IN, RoleWanted, known
from tw_autogen.session.settings import SessionSettings
from tw_autogen.settings import PROJECT_FILE, Settings
from tw_autogen.settings_trust import MAX_EXAMPLE_BYTES, MAX_EXAMPLES, Trust
from tw_autogen.taskweaver_config import TASKWEAVER_FILE, remedies
from tw_autogen.trusted_files import compared_with

EXAMPLES = (
    "examples/planner_examples",
    "examples/code_generator_examples",
    "planner_examples",
    "codeinterpreter_examples",
)
"""Where TaskWeaver keeps, or kept, its examples."""
_MAX_LISTED = 10_000
_MAX_LOOKED_AT = 150
"""Of the names in an example folder; sorting and resolving more takes minutes."""
ROLE_FOLDERS = ("roles", "ext_role")
"""Where a project's own roles are looked for."""


_OUT = "{}: it leads to {}, outside of {}; trust the folder to have what lies there"


@dataclass(frozen=True)
class Project:
    """What a project's folder brings.

    Args:
        folder: The project's.
        plugins: Those that are enabled and can be loaded here.
        left_out: Plugins and examples that can't, each in words that name the file and what is wrong.
        examples: Files in TaskWeaver's form that are enabled and were read: those of the Planner, then the others.
        plugin_folder: Where its plugins lie, so that they can be named, those that are not enabled too.
        roles: The folders of its own roles, by the names under which they take part; read when one is named.
        notes: What is ignored or was understood otherwise than it stands there.
    """

    folder: Path
    plugins: tuple[PluginSpec, ...] = ()
    left_out: tuple[str, ...] = ()
    examples: tuple[Path, ...] = ()
    plugin_folder: Path | None = None
    notes: tuple[str, ...] = ()
    roles: Mapping[str, Path] = field(default_factory=dict)

    @staticmethod
    def place_of_plugins(folder: Path | str, settings: Settings) -> Path | None:
        """Return where the plugins of a project that the user has named lie; nothing of them is read.

        Args:
            folder: Of the project.
            settings: Read for that project.

        Returns:
            Their folder; None if there is none, or if it is a link out of a project that is not trusted.
        """
        place, out = _plugin_place(project_folder(folder).resolve(), settings, by_name=settings.trust is not Trust.full)
        return place if not out and os.path.isdir(place) else None

    @property
    def found(self) -> str:
        """Describe in a line which plugins a session has from here; empty if none."""
        names = ", ".join(spec.name for spec in self.plugins)
        return f"plugins of {self.folder}: {names}" if names else ""

    def resolve_role_folder(self, wanted: RoleWanted) -> RoleWanted:
        """Return the folder of one of the project's roles for its name or alias, and anything else as it is.

        Raises:
            RoleSpecError: nobody has such a name, here or elsewhere; says its neighbour.
        """
        if not isinstance(wanted, str) or known(wanted) and wanted not in self.roles:
            return wanted
        folder = find_role(wanted, own=self.roles, built_in=BUILT_IN).path.parent
        return folder if folder in self.roles.values() else wanted

    def unsandboxed_notices(self, roles: Sequence[RoleWanted]) -> tuple[str, ...]:
        """Describe in lines what of the project runs in this process, with all that it may do; nothing if nothing does.

        Args:
            roles: Those that take part.
        """
        taking_part = list(map(self.resolve_role_folder, roles))
        own = [name for name, folder in self.roles.items() if folder in taking_part]
        by_path = [Path(path) for path in taking_part if isinstance(path, str | Path) and os.sep in str(path)]
        own += [
            path.name
            for path in by_path
            if path not in self.roles.values() and path.resolve().is_relative_to(self.folder)
        ]
        plugins = [spec.name for spec in self.plugins if spec.runs_in == "host"]
        kinds = {"roles": own, "plugins": plugins}
        return tuple(
            f"{kind} of {self.folder} run here, outside the sandbox: {', '.join(names)}"
            for kind, names in kinds.items()
            if names
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return what was left out, ignored, or understood otherwise, in lines."""
        return (*(f"left out: {path}" for path in self.left_out), *self.notes)


def project_folder(folder: Path | str) -> Path:
    """Return the absolute path of a project's folder, so that it means the same when the current folder is another one.

    Args:
        folder: As the caller wrote it.

    Raises:
        ConfigError: it is no path.
    """
    return checked_path(folder, "project").absolute()


def is_project(folder: Path) -> bool:
    """Return whether a folder holds a project file."""
    return any(path.exists() for path in settings_files(folder))


def settings_files(folder: Path) -> tuple[Path, ...]:
    """Return the paths of a folder's settings files, whether they exist or not; the first that exists is read."""
    return folder / PROJECT_FILE, folder / TASKWEAVER_FILE


def read_project(folder: Path | str, settings: Settings, *, named: bool = True) -> Project:
    """Read what a project's folder brings; nothing of it is run.

    A plugin that can't be loaded here (its YAML or Python is wrong, a package is missing) is left out and named, so
    that the others can be used; one whose Python fails only while it runs is left out when the session opens.

    Args:
        folder: Of the project.
        settings: Read for that project.
        named: The caller has written the folder's path. Otherwise a folder that is not trusted brings its examples
            alone, and none that is a link out of the folder.

    Raises:
        ConfigError: there is no such folder.
    """
    folder = project_folder(folder).resolve()
    if not folder.is_dir():
        hint = f": that is a file; name {folder.parent}" if folder.is_file() else path_suggestion(folder)
        raise ConfigError(f"project: there is no folder {folder}{hint}")
    with compared_with(settings.files, only=True):
        return _read_project(folder, settings, named=named)


def _plugin_place(folder: Path, settings: Settings, *, by_name: bool) -> tuple[Path, str]:
    """Return where a project's plugins lie, and where that leads if it is out of a folder that is only named."""
    place = folder / settings.read("plugin", PluginSettings).folder
    return place, _leads_out(folder, place) if by_name else ""


def _read_project(folder: Path, settings: Settings, *, named: bool) -> Project:
    brings_code = named or settings.trust is Trust.full
    python = settings.read("kernel", KernelSettings).python
    by_name = named and settings.trust is not Trust.full
    place, out = _plugin_place(folder, settings, by_name=by_name)
    load = brings_code and settings.read("plugin", PluginSettings).load and not out
    plugins, left_out, notes = project_plugins(place, python) if load else ([], [], [])
    left_out += [_OUT.format(place, out, folder)] if out else []
    examples: list[Path] = []
    found = example_files(folder) if brings_code else own_examples(folder)
    if settings.trust is not Trust.full:
        found = [path for path in found if Path(os.path.realpath(path)).is_relative_to(folder.resolve())]
    for path in found:
        try:
            conversation = read_conversation(path)
            if conversation.enabled and not conversation.rounds:
                left_out.append(f"{path}: it has no rounds, so it is no example")
            elif conversation.enabled:
                examples.append(path)
        except ConversationFormatError as error:
            left_out.append(str(error))
    for example in EXAMPLES:
        if (brings_code or not step_out_of(folder, example)) and len(_names_in(folder / example)) > _MAX_LISTED:
            left_out.append(f"{folder / example}: more than {_MAX_LISTED} files, of which none is used as an example")
    if not brings_code and (more := len(example_files(folder, inside=True)) - len(own_examples(folder))):
        limit = f"at most {MAX_EXAMPLES}, of {MAX_EXAMPLE_BYTES // 1000} kB together, count until it is trusted"
        left_out.append(f"{folder}: {more} examples: {limit}")
    roles = role_folders(folder, settings.read("session", SessionSettings).role_folder) if brings_code else {}
    for name, of_role in list(roles.items()) if by_name else ():
        if leads := _leads_out(folder, of_role):
            left_out.append(_OUT.format(roles.pop(name), leads, folder))
    roles, strange = _hashed_roles(roles, settings)
    left_out += strange
    if settings.ignored:
        notes.append(f"{folder / TASKWEAVER_FILE}: without meaning here: {', '.join(settings.ignored)}")
        notes += [f"{folder / TASKWEAVER_FILE}: {line}" for line in remedies(settings.ignored)]
    return Project(
        folder,
        tuple(plugins),
        tuple(left_out),
        tuple(examples),
        place if brings_code and not out and os.path.isdir(place) else None,
        tuple(notes),
        roles,
    )


def _leads_out(folder: Path, place: Path) -> str:
    """Return where a place whose path is below a folder leads out of it over a link; empty: nowhere."""
    return step_out_of(folder, place) if lies_in(os.path.abspath(place), os.path.abspath(folder)) else ""


def project_here(settings: Settings) -> Project | None:
    """Return the current folder as a project with its roles alone; None if it is none, or not trusted.

    Raises:
        ConfigError: as `role_folders`.
    """
    folder = Path.cwd()
    place = settings.read("session", SessionSettings).role_folder
    trusted = settings.trust is Trust.full and settings.project and settings.project.resolve() == folder
    if not trusted or not is_project(folder):
        return None
    roles, left_out = _hashed_roles(role_folders(folder, place), settings)
    return Project(folder, roles=roles, left_out=left_out)


def _hashed_roles(roles: Mapping[str, Path], settings: Settings) -> tuple[dict[str, Path], tuple[str, ...]]:
    """Return those of a project's roles that lie where code was hashed if it is trusted by a hash, and words on others.

    Args:
        roles: Their folders by their names.
        settings: Read for the project.
    """
    files = settings.files
    strange = [path for path in roles.values() if files is not None and not files.covers(path / "role.yaml")]
    problem = "it was not there when the project was trusted, so it is not loaded; look at it, and trust it again"
    kept = {name: path for name, path in roles.items() if path not in strange}
    return kept, tuple(f"{path}: {problem}" for path in strange)


def role_folders(folder: Path, place: str = "") -> dict[str, Path]:
    """Return the folders of a project's own roles by their names.

    Args:
        folder: Of the project.
        place: As the setting `session.role_folder`.

    Raises:
        ConfigError: the setting names a folder that isn't there.
    """
    if place and not os.path.isdir(folder / place):
        raise ConfigError(f"session.role_folder: there is no folder {folder / place}")
    places = role_places(folder, place)
    return _role_folders(
        [[place / name for name in sorted(_names_in(place))] for place in places if os.path.isdir(place)]
    )


def role_places(folder: Path, place: str = "") -> list[Path]:
    """Return the folders that hold those of a project's own roles; they need not exist.

    Args:
        folder: Of the project.
        place: As the setting `session.role_folder`.
    """
    return [folder / place] if place else [folder / name for name in ROLE_FOLDERS]


def roles_inside(folder: Path, place: str = "") -> tuple[dict[str, Path], list[Path]]:
    """Return as `role_folders` those roles of a project that lie in it, and links out of it where others would be.

    Nothing outside of the project is looked at.

    Args:
        folder: Of the project.
        place: As the setting `session.role_folder`.
    """
    inside: list[list[Path]] = []
    outside: list[Path] = []
    for one in role_places(folder, place):
        if step_out_of(folder, one):
            outside += [one] if not place and os.path.lexists(one) else []
            continue
        found = [one / name for name in sorted(_names_in(one) if os.path.isdir(one) else ())]
        out = {role for role in found if step_out_of(folder, role)}
        outside += sorted(out)
        inside.append([role for role in found if role not in out])
    return _role_folders(inside), outside


def _role_folders(found: Iterable[Iterable[Path]]) -> dict[str, Path]:
    """Return those folders that hold a role, by their names; the first place counts.

    Args:
        found: What lies in each of the places for roles. A folder to which many links lead is looked through once.
    """
    roles: dict[str, Path] = {}
    known: dict[tuple[int, int], bool] = {}
    for folder in chain.from_iterable(found):
        with suppress(OSError, ValueError):
            info = os.stat(folder)
            key = (info.st_dev, info.st_ino)
            if key not in known:
                known[key] = stat.S_ISDIR(info.st_mode) and _holds_role(folder)
            if known[key] and not _is_hidden(folder):
                roles.setdefault(folder.name, folder)
    return roles


def _holds_role(folder: Path) -> bool:
    with suppress(OSError), os.scandir(folder) as found:
        return any(is_role_file(Path(one.name)) for one in found)
    return False


def is_role_in(path: Path, places: Collection[Path]) -> bool:
    """Return whether a file would declare a role in one of these places.

    Args:
        path: Absolute.
        places: As of `role_places`.
    """
    return is_role_file(path) and path.parent.parent in places and not _is_hidden(path.parent)


def _is_hidden(folder: Path) -> bool:
    """Return whether a folder is none of a role by its name: such folders are not looked through for trust."""
    return folder.name.startswith(".")


def example_files(folder: Path, *, inside: bool = False) -> list[Path]:
    """Return the files in a project's example folders.

    Args:
        folder: Of the project.
        inside: Leave out a folder that is a link out of the project; what lies there is not looked at.
    """
    places = [example for example in EXAMPLES if not inside or not step_out_of(folder, example)]
    return [path for place in places for path in _example_files(folder / place)]


def _example_files(place: Path) -> list[Path]:
    """Return the YAML files of an example folder by name; none if more lies there than is looked through."""
    names = _names_in(place)
    return [place / name for name in sorted(names) if fnmatch(name, "*.y*ml")] if len(names) <= _MAX_LISTED else []


def _names_in(place: Path) -> list[str]:
    """Return the names in a folder, at most one more than are looked through; none if it can't be listed."""
    with suppress(OSError), os.scandir(place) as entries:
        return [entry.name for entry in islice(entries, _MAX_LISTED + 1)]
    return []


def own_examples(folder: Path) -> list[Path]:
    """Return the files in a project's example folders that lie in it, their links followed; not too many."""
    paths: list[Path] = []
    left = MAX_EXAMPLE_BYTES
    for path in example_files(folder, inside=True)[:_MAX_LOOKED_AT]:  # a link may take milliseconds to follow
        inside = not step_out_of(folder, path)
        size = path.stat().st_size if inside and path.exists() else 0
        if inside and len(paths) < MAX_EXAMPLES and size <= left:
            paths.append(path)
            left -= size
    return paths
