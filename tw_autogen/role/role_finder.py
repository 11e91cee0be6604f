"""Where roles are found: shipped, installed, in a folder, or as a class."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import re
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from tw_autogen.errors import RoleSpecError, nearest, path_suggestion
from tw_autogen.lazy_module import LazyModule
from tw_autogen.named_folders import checked_path
from tw_autogen.role.spec import RoleSpec, check_entry, replies
from tw_autogen.role.taskweaver.spec import SUFFIX, find_role_yaml, read_role_yaml
from tw_autogen.shipped_folders import shipped_folder
from tw_autogen.yaml_files import read_mapping

if TYPE_CHECKING:
    from importlib import metadata
else:
    metadata = LazyModule("importlib.metadata")

ROLE_FILE = "role.yaml"
ENTRY_POINTS = "tw_autogen.roles"
_KEYS = ("alias", "intro", "module", "settings")


def read_role(folder: Path) -> RoleSpec:
    """Read a role's folder: a `role.yaml`, or TaskWeaver's `<name>.role.yaml`.

    Raises:
        RoleSpecError: names the file and what is wrong in it.
    """
    path = folder / ROLE_FILE
    if not path.exists() and (theirs := find_role_yaml(folder)):
        return read_role_yaml(theirs)
    plain = read_mapping(path, RoleSpecError, keys=_KEYS, missing="there is no such file; a role's folder holds one")
    check_entry(plain, ("alias", "intro"), path)
    name = folder.resolve().name
    module, settings = plain.get("module") or name, plain.get("settings") or {}
    if not isinstance(settings, Mapping):
        raise RoleSpecError("`settings` must be keys and values", path=path)
    if any(sign in str(module) for sign in ("/", "\\", ":", "\0", "..")):
        raise RoleSpecError(f"`module` must be the name of a file beside this one, not {module!r}", path=path)
    return RoleSpec(plain["alias"], plain["intro"].strip(), path, name, str(module), settings)


def is_role_file(path: Path) -> bool:
    """Return whether a file of this name declares a role, in the package's own form or in TaskWeaver's."""
    return path.name == ROLE_FILE or path.name.endswith(SUFFIX)


def find_role(
    wanted: str | Path | type, *, own: Mapping[str, Path] | None = None, built_in: Collection[str] = ()
) -> RoleSpec:
    """Find a role: a shipped one, or one that an installed package brings, by name; a folder by its path; or a class.

    Args:
        wanted: A name, the path of a folder, or a class with `name`, `intro` and `reply`. A single word is always a
            name: what lies in the current folder by chance takes no role's place; `./word` is the folder.
        own: The folders of a project's own roles by their names; they come first.
        built_in: Names that the caller knows without looking here; a misspelt one of them is named in the error.

    Raises:
        RoleSpecError: there is none of that name (with its neighbour), or it is wrong; names the file.
    """
    if isinstance(wanted, type):
        return _of_class(wanted, wanted.__name__)
    own = own or {}
    if isinstance(wanted, str) and (name := _own_name(wanted, own)):
        return read_role(own[name])
    folder = Path(wanted) if isinstance(wanted, str) and _is_word(wanted) else checked_path(wanted, "roles")
    if isinstance(wanted, Path) or not _is_word(wanted) and folder.is_dir():
        return read_role(folder)
    shipped = shipped_folder("roles")
    names = sorted(path.parent.name for path in shipped.glob(f"*/{ROLE_FILE}"))
    if name := _match_name(wanted, names):  # its alias, as in the conversation, is understood too
        return read_role(shipped / name)
    brought = _installed_roles(tuple((path, _time_of(path)) for path in sys.path))
    if wanted in brought:
        return _of_entry_point(brought[wanted])
    if folder.is_dir():
        raise RoleSpecError(f"no shipped role; write ./{wanted} for the folder that lies here", path=wanted)
    hint = "" if _is_word(wanted) else path_suggestion(wanted)
    hint = hint or nearest(wanted, [*own, *names, *brought, *built_in])
    if folder.suffix in (".py", ".yaml"):
        hint = f"; here a role of your own is a folder with a {ROLE_FILE}, and the class"
    raise RoleSpecError(f"no shipped role and no folder{hint}", path=wanted)


@functools.lru_cache(maxsize=1)
def _installed_roles(path: tuple[tuple[str, int], ...]) -> Mapping[str, metadata.EntryPoint]:
    """Return the entry points of roles by name: read anew once a folder of `sys.path` has changed."""
    return {point.name: point for point in metadata.entry_points(group=ENTRY_POINTS)}


def _time_of(path: str) -> int:
    try:
        return os.stat(path or os.curdir).st_mtime_ns
    except OSError:
        return 0


def _is_word(wanted: str) -> bool:
    return "/" not in wanted and os.sep not in wanted


def _own_name(wanted: str, own: Mapping[str, Path]) -> str:
    """Return the name of the project's role that is meant by its name, or by its alias; empty for another."""
    by_alias = (name for name, folder in own.items() if _alias(folder).lower() == wanted.lower())
    return _match_name(wanted, own) or next(by_alias, "")


def _alias(folder: Path) -> str:
    try:
        return read_role(folder).alias
    except RoleSpecError:  # another one than is wanted may be wrong
        return ""


def _match_name(wanted: str, known: Collection[str]) -> str:
    """Return the known name that is meant, also where `WebSearch` stands for `web_search`; empty: none."""
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", wanted).lower()
    return next((name for name in (wanted, snake) if name in known), "")


def _of_entry_point(entry: metadata.EntryPoint) -> RoleSpec:
    """Read what an entry point names: a class, or a package whose folder holds a `role.yaml`."""
    where = f"entry point {entry.name} = {entry.value}"
    try:
        found = entry.load()
    except (Exception, SystemExit) as error:  # foreign code: whatever its import raises
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
    if not replies(kind):
        raise RoleSpecError(f"class {kind.__name__} has no `reply(self, memory, **kwargs)`", path=path)
    for key in ("name", "intro"):
        value = getattr(kind, key, None)
        if not isinstance(value, str) or not value.strip():
            raise RoleSpecError(f"class {kind.__name__} needs `{key}`, a text, beside `reply`", path=path)
    alias = str(kind.name)  # type: ignore[attr-defined]  # looked at above
    if not alias.isidentifier():
        raise RoleSpecError(f"`name` must be a plain name without spaces, not {alias!r}", path=path)
    return RoleSpec(alias, str(kind.intro), path, name, kind=kind)  # type: ignore[attr-defined]  # as above
