"""`KernelFolders`: what a kernel may see of its session, and what follows from it: its folders, its environment."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tw_autogen.errors import KernelStartError
from tw_autogen.kernel.environment_variables import SEARCHED, kernel_environment
from tw_autogen.kernel.launcher.known_paths import SESSIONS, is_below
from tw_autogen.kernel.launcher.namespaces import HOME
from tw_autogen.kernel.launcher.readable_files import LISTED
from tw_autogen.kernel.launcher.sandbox import LANDLOCK, OFF
from tw_autogen.kernel.sandbox_levels import available_level
from tw_autogen.kernel.seatbelt import SEATBELT
from tw_autogen.kernel.settings import KernelSettings
from tw_autogen.private_files import cache_folder
from tw_autogen.safe_folder import protected_below, used_elsewhere, walk_links
from tw_autogen.trust_store import config_folder, state_folder

_MAX_KEPT = 500
_VENV_MARK = "pyvenv.cfg"
"""Python reads it before anything else; without one an interpreter can be given one."""

Kept = Mapping[str, Mapping[str, tuple[int, int]]]
"""By path of a settings file or hook: device and number by path of the file, its folder and those on the way."""


@dataclass(frozen=True)
class KernelFolders:
    """What a kernel may see of its session.

    Args:
        folder: Where its code runs.
        read: Files and folders that it may read besides.
        environment: Variables that it has besides.
        known: Device and number by path, of those that were checked; a sandbox shows these or nothing.
        kept: What `check_granted` has found in folders that code may write to, by folder; others are looked at later.
    """

    folder: Path
    read: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    kept: Mapping[str, Kept] = field(default_factory=dict)


def environment_of(place: KernelFolders | None, settings: KernelSettings, level: str, own: Path) -> dict[str, str]:
    """Return a kernel's variables.

    Args:
        place: Its session's; None: they come later.
        settings: What passes.
        level: Its sandbox's; in most code has a home of its own.
        own: The folder of the kernel's process.
    """
    beside = level in (LANDLOCK, SEATBELT)  # it sees the same folders as the host
    home = None if level == OFF else str(own / "home") if beside else HOME
    found = kernel_environment(os.environ, allowed=settings.environment, own=own, home=home)
    if beside:
        found["TMPDIR"] = str(own / "tmp")
    return {**found, **(place.environment if place else {})}


def assignment_of(place: KernelFolders, settings: KernelSettings) -> dict[str, Any]:
    """Return the folders that a kernel may read and write, and what stays read-only in these, `kept`.

    Links are followed, but for paths of `place.known`, which had none. `known` holds device and number of what was
    checked, of what is kept, and of the folders on the way to that.

    Args:
        place: The session's folders.
        settings: What is granted besides.

    Raises:
        KernelStartError: a folder that code may write to was exchanged since it was checked, or can't be looked
            through.
    """

    def real(paths: tuple[str, ...]) -> list[str]:
        real_paths = [
            (os.path.expanduser(path.removesuffix(LISTED)), LISTED if path.endswith(LISTED) else "") for path in paths
        ]
        return [
            f"{path if path in place.known else os.path.realpath(path)}{mark}"
            for path, mark in real_paths
            if path in place.known or os.path.exists(path)
        ]

    write = real(settings.write)
    kept: dict[str, Mapping[str, tuple[int, int]]] = {}
    for folder in write if settings.sandbox != OFF else ():
        looked = place.kept.get(folder)
        try:
            kept |= (
                protected_in(folder, place.folder, known=place.known, others=len(kept)) if looked is None else looked
            )
        except (OverflowError, PermissionError) as error:
            reason = str(error) if isinstance(error, OverflowError) else f"{error.filename}: {error.strerror}"
            text = f"{reason}; settings files and hooks can't be kept read-only there, so no code is run"
            raise KernelStartError(text, folder=place.folder) from error
    if settings.sandbox != OFF:
        if available_level(settings) != LANDLOCK:  # which can keep no part of a folder read-only
            kept |= _sessions_in(place.folder)
        real_by_name = {path: os.path.realpath(path) for path in runtime_paths()}
        of_python = _of_interpreter(settings.python, (str(place.folder), *write))
        used = _used_outside((str(place.folder), *write), {*real_by_name.values(), *of_python})
        elsewhere = _named_elsewhere_in(place, [*write, *kept], tuple(used), _MAX_KEPT - len(kept))
        kept |= {**used, **elsewhere}
        linked = [name for name, path in real_by_name.items() if name != path]
        linked += [settings.python] if os.sep in settings.python else []
        _refuse_links((str(place.folder), *write), linked, kept)
    known = {path: found for folders in kept.values() for path, found in folders.items()}
    return {
        "folder": str(place.folder),
        "read": real((*settings.read, *place.read)),
        "write": [str(place.folder), *write],
        "kept": sorted(kept),
        "known": {path: list(found) for path, found in {**known, **place.known}.items()},
    }


def _sessions_in(folder: Path) -> Kept:
    """Return what holds the command line's sessions in a folder where a kernel works: the host believes their journals.

    Args:
        folder: Of the kernel, which need not be a session's.
    """
    path = folder / SESSIONS
    try:
        above, found = os.lstat(folder), os.lstat(path)
    except OSError:
        return {}
    if not stat.S_ISDIR(found.st_mode):
        return {}
    return {str(path): {str(folder): (above.st_dev, above.st_ino), str(path): (found.st_dev, found.st_ino)}}


def _used_outside(folders: Sequence[str], used: Iterable[str]) -> Kept:
    """Return what lies in folders that code may write to and is used outside: the interpreter, packages, programs.

    Args:
        folders: Without links.
        used: Paths without links.
    """
    found: dict[str, Mapping[str, tuple[int, int]]] = {}
    for path in used:
        for folder in folders:
            if path != folder and is_below(path, folder):
                way = [place for place in (path, *map(str, Path(path).parents)) if is_below(place, folder)]
                infos = [(place, os.lstat(place)) for place in way if os.path.lexists(place)]
                found[path] = {place: (about.st_dev, about.st_ino) for place, about in infos}
    return found


def _of_interpreter(python: str, folders: Sequence[str]) -> list[str]:
    """Return what must stay as it is of the interpreter that starts kernels, and starts before there is a sandbox.

    Args:
        python: Its path, or a name that is searched for: then it lies in folders that are kept anyway.
        folders: What code may write to, without links.

    Raises:
        KernelStartError: code may write to its folder, and could add what the next start would read first.
    """
    if os.sep not in python:
        return []
    prefix = os.path.realpath(Path(os.path.abspath(python)).parent.parent)
    mark = os.path.join(prefix, _VENV_MARK)
    if prefix in folders and not os.path.exists(mark):
        text = (
            f"kernel.python: code may write to the folder of {python} and change what the next kernel starts as, so no "
            f"code is run; name an interpreter elsewhere, or a virtual environment below {prefix}"
        )
        raise KernelStartError(text, folder=Path(prefix))
    return [os.path.realpath(python), mark if prefix in folders else prefix]


def runtime_paths() -> dict[str, None]:
    """Return what this program uses by its path.

    These are Python, packages, programs, and the folders of the user's settings, trust, caches and temporary files.
    """
    packages = [path for path in sys.path if path.endswith("-packages")]
    searched = [part for name in SEARCHED for part in os.environ.get(name, "").split(os.pathsep) if os.path.isdir(part)]
    drawing = os.environ.get("MPLCONFIGDIR")  # matplotlib reads it where it is imported for all kernels
    own = (config_folder(), state_folder(), cache_folder(os.environ), tempfile.gettempdir(), drawing)
    return dict.fromkeys((sys.prefix, sys.base_prefix, *packages, *searched, *map(str, filter(None, own))))


def _refuse_links(folders: Sequence[str], used: Iterable[str], kept: Iterable[str]) -> None:
    """Refuse a start if what this program uses by its path is reached over a link that code could lead elsewhere.

    Args:
        folders: What code may write to, without links.
        used: The paths.
        kept: What stays read-only there.

    Raises:
        KernelStartError: names the link, and where it leads.
    """
    for used_path in used:
        for link in walk_links(used_path).links:
            folder = next((folder for folder in folders if is_below(link, folder)), "")
            if folder and not any(is_below(link, path) for path in kept):
                text = (
                    f"{link}: {used_path}, which this program uses, is reached over this link, and code could lead it "
                    f"elsewhere, so no code is run; name {os.path.realpath(link)} instead, or let code work in another "
                    "folder"
                )
                raise KernelStartError(text, folder=Path(folder))


def _named_elsewhere_in(place: KernelFolders, apart: Sequence[str], used: Sequence[str], most: int) -> Kept:
    """Return the files of a kernel's folder that others use, as `used_elsewhere` does, but those in `used`.

    Raises:
        KernelStartError: there are too many to be kept read-only, or the folder was exchanged.
    """
    folder = str(place.folder)
    try:
        known = place.known.get(folder)
        return used_elsewhere(folder, known=known, apart=frozenset(apart), protected=used, most=most)
    except (OverflowError, PermissionError) as error:
        _check_exchanged(error, place.folder)
        reason = str(error) if isinstance(error, OverflowError) else f"{error.filename}: {error.strerror}"
        text = f"{reason}; such files can't be kept read-only there, so no code is run: let it work in another folder"
        raise KernelStartError(text, folder=place.folder) from error


def protected_in(
    folder: str,
    own: Path | None = None,
    *,
    known: Mapping[str, tuple[int, int]] = MappingProxyType({}),
    others: int = 0,
    closed: list[str] | None = None,
) -> Kept:
    """Return what stays read-only in a folder that code may write to: settings files, hooks, files with other names.

    Those that have a hard link outside of the folder are the same files elsewhere (`used_elsewhere`).

    Args:
        folder: Absolute, links resolved.
        own: The kernel's folder, which is the code's own; what lies there is left out.
        known: What was checked of this folder and others.
        others: How many such files other folders hold.
        closed: Takes the paths of all else that is closed to others; None: they are not looked for.

    Raises:
        KernelStartError: it is not the folder that was checked.
        PermissionError: it, or a folder below, can't be listed.
        OverflowError: there are more files, or more such files, than can be kept read-only.
    """
    found: dict[str, Mapping[str, tuple[int, int]]] = {}
    try:
        for path, identities in protected_below(folder, known=known.get(folder), closed=closed):
            if own is None or not Path(path).is_relative_to(own):
                found[path] = identities
            if others + len(found) > _MAX_KEPT:
                raise OverflowError(f"{folder}: more than {_MAX_KEPT} settings files and hooks")
        apart = frozenset([str(own)] if own else [])
        left = _MAX_KEPT - others - len(found)
        found |= used_elsewhere(folder, known=known.get(folder), apart=apart, protected=tuple(found), most=left)
    except PermissionError as error:
        _check_exchanged(error, own or Path(folder))
        raise
    return found


def _check_exchanged(error: OSError | OverflowError, folder: Path) -> None:
    """Raise a KernelStartError if an error says that a folder is not the one that was checked."""
    if isinstance(error, PermissionError) and error.errno != errno.EACCES:
        text = f"{error.filename}: exchanged while the kernel was started, so no code is run there"
        raise KernelStartError(text, folder=folder) from error


def make_stand_in_folders(own: Path) -> None:
    """Make the folders that code in a sandbox has instead of the user's, with matplotlib's list of fonts.

    Args:
        own: The folder of a kernel's process; new, because links that code left there would be followed.

    Raises:
        FileExistsError: it is not new.
    """
    for name in ("home", "tmp", "matplotlib"):
        (own / name).mkdir()
    for fonts in (cache_folder(os.environ) / "matplotlib").glob("fontlist-*.json"):
        with contextlib.suppress(OSError):
            shutil.copyfile(fonts, own / "matplotlib" / fonts.name, follow_symlinks=False)
