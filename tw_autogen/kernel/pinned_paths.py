"""`PinnedPaths`: the folder of a kernel and what it is granted, which stay what they were at first."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tw_autogen.errors import ConfigError, KernelStartError
from tw_autogen.kernel.launcher.readable_files import LISTED
from tw_autogen.kernel.launcher.sandbox import OFF
from tw_autogen.kernel.mounted_names import mounts_in
from tw_autogen.kernel.settings import KernelSettings
from tw_autogen.named_folders import granted_path
from tw_autogen.safe_folder import HeldFolder, SafeFolder, remove_folder

_FILE = (0, 0)
"""Stands for any regular file: editors put a new one in its place."""


class PinnedPaths:
    """Paths of a kernel, resolved once; what code that may write above them puts in their place later is refused.

    The kernel's folder stays open until `close`, so that the host works in the one that the kernel has.

    Args:
        folder: Where the kernel works, with links resolved.
        settings: `read` and `write` say what is granted besides.

    Raises:
        ConfigError: another kernel works in the folder that was at this path before.
    """

    def __init__(self, folder: Path, settings: KernelSettings) -> None:
        self.folder = folder
        self._settings = settings
        self._first: dict[str, str] = {}
        self._real: dict[str, str] = {}
        self._known: dict[str, tuple[int, int]] = {}
        self._optional: set[str] = set()
        self._left_out: set[str] = set()
        self._refused: dict[str, str] = {}
        self._mounts: dict[tuple[str, str], str] | None = None
        self._kept: HeldFolder | None = None
        _make_missing(str(folder))
        self._hold_kernel_folder()
        self.add((str(folder), *settings.read, *settings.write))
        kept = self._kept.identity if self._kept is not None else None
        if kept is not None and self._known.get(str(folder)) != kept:
            self.close()
            raise ConfigError(f"{folder}: it was exchanged while a kernel was made for it, so none works there")

    def add(self, paths: Iterable[str], *, optional: bool = False) -> None:
        """Take down what is at paths now; one that is known, or leads to nothing, is passed over.

        Args:
            paths: As the settings have them.
            optional: A folder of these that is removed, or made anew, is left out from then on.

        Raises:
            ConfigError: where there was nothing, there is a link now.
        """
        for given in paths:
            if given not in self._real:
                path = self._resolve_grant(given)
                if self._first.setdefault(given, path) != path:
                    raise ConfigError(
                        f"{given} leads over a link to {path} since the settings that grant it were read, so code is "
                        "not granted it; look at who writes there, and start again"
                    )
                try:
                    identity = _identity(path)
                except OSError as error:
                    raise ConfigError(f"{given}: {error.strerror or error}") from error
                if identity is not None:
                    self._real[given] = f"{path}{LISTED}" if given.endswith(LISTED) else path
                    if optional and path not in self._known:
                        self._optional.add(path)
                    self._known.setdefault(path, identity)

    def _resolve_grant(self, given: str) -> str:
        """Return where a path leads, each link read once; note why it can't be granted."""
        try:
            return str(resolved_grant(given, self._settings))
        except (ConfigError, OSError, RuntimeError) as error:
            self._refused.setdefault(given, str(error))
            return os.path.realpath(os.path.expanduser(given))

    def real(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return paths as they were resolved first; those that have led to nothing so far are left out."""
        named = tuple(paths)
        self.add(named)
        found = [self._real[one] for one in named if one in self._real]
        return tuple(one for one in found if one.removesuffix(LISTED) not in self._left_out)

    def checked(self, given: str) -> Path:
        """Return where a path led first.

        Args:
            given: The path, as the settings have it.

        Raises:
            ConfigError: over a link that code could have made, or there is nothing.
        """
        self.add((given,))
        if given in self._refused:
            raise ConfigError(self._refused[given])
        if given not in self._real:
            raise ConfigError(f"{given} does not exist any more")
        return Path(self._real[given])

    def granted(self) -> KernelSettings:
        """Return the settings with the paths of `read` and `write` as they were resolved first."""
        return replace(self._settings, read=self.real(self._settings.read), write=self.real(self._settings.write))

    def file_identities(self) -> dict[str, tuple[int, int]]:
        """Return device and number by path: of folders as they were first, of files as they are now."""
        found = {}
        for path, known in self._known.items():
            with contextlib.suppress(OSError):
                found[path] = _device_and_inode(_stat_without_links(path)) if known == _FILE else known
        return found

    def close(self) -> None:
        """Close the kernel's folder."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def check(self) -> None:
        """Check that every path leads to what it led to first, over no link; what has been removed may be missing.

        Nothing is mounted where code may write that was not there at the first start: a running kernel's code doesn't
        see it, and decides by its end when the next one starts.

        Raises:
            KernelStartError: names the first that does not, or what was mounted since.
        """
        self._check_mounts()
        self._left_out.clear()
        for path, known in self._known.items():
            try:
                identity = _identity(path)
                same = identity in (known, None)
                if path in self._optional and _FILE not in (known, identity) and identity != known:
                    self._left_out.add(path)
                    continue
            except OSError:
                same = False
            if not same:
                raise KernelStartError(
                    f"{path} is another folder than at the first start, so no kernel starts there: code may be allowed "
                    "to write above it; close this kernel and open a new one if that is what you want",
                    folder=self.folder,
                )

    def _check_mounts(self) -> None:
        if self._settings.sandbox == OFF:  # code sees all of them anyway
            return
        written = [self._real[one] for one in self._settings.write if one in self._real]
        found = mounts_in((str(self.folder), *written))
        if self._mounts is None:
            self._mounts = found
        new = next((place for mounted, place in found.items() if mounted not in self._mounts), "")
        if new:
            raise KernelStartError(
                f"{new}: something was mounted there since the first start, so no kernel starts again in "
                f"{self.folder}: code would get it; unmount it, or close this kernel and open a new one if that is "
                "what you want",
                folder=self.folder,
            )

    def make(self) -> None:
        """Check all, and make the kernel's folder again if somebody has removed it. Errors as of `check`."""
        self.check()
        path = str(self.folder)
        if _make_missing(path):
            identity = _identity(path)
            if identity is not None:
                self._known[path] = identity
        self._hold_kernel_folder()

    def _hold_kernel_folder(self) -> None:
        """Open the kernel's folder, once it is there, in place of one that has been removed."""
        if self._kept is not None and not self._kept.removed:
            return
        self.close()
        try:
            self._kept = HeldFolder(self.folder)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise ConfigError(f"{self.folder}: {error.strerror}") from error


def resolved_grant(path: str, settings: KernelSettings) -> Path:
    """Return where a path of `kernel.read` or `kernel.write` leads, absolute and without links.

    Args:
        path: As the settings have it; `~` is replaced.
        settings: `sandbox` and `write` say whether, and where, code could have made a link.

    Raises:
        ConfigError: over a link that code could have made, where there is a sandbox.
    """
    if settings.sandbox == OFF:
        return Path(path).expanduser().resolve()
    return granted_path(Path(path).expanduser(), writable=settings.write, distrusted=())


def remove_same(folder: Path, known: tuple[int, int] | None, owner: int) -> None:
    """Remove a folder with all in it, if it is still the one that was taken down and no link leads there.

    Args:
        folder: Absolute, without links.
        known: Device and number that it must have; None: nothing is removed.
        owner: The process that made it; a fork of it removes nothing.
    """
    if os.getpid() != owner:
        return
    try:
        same = folder_identity(folder) == known is not None
    except OSError:
        return
    if same:
        remove_folder(folder)


def folder_identity(folder: Path) -> tuple[int, int] | None:
    """Return what tells a folder from others, for `remove_same`; None if it is missing.

    Raises:
        OSError: a link is in the way.
    """
    return _identity(str(folder))


def _make_missing(path: str) -> bool:
    """Make a folder, and those above it, if nothing is there; return whether that was so. Errors as of `_identity`."""
    if _identity(path) is not None:
        return False
    with SafeFolder(_anchor(path)) as root:
        root.make_folder(_path_below_anchor(path), parents=True)
    return True


def _identity(path: str) -> tuple[int, int] | None:
    """Return device and number of a folder, the same for every file, None if nothing is there.

    Raises:
        OSError: a link is in the way, or the system refuses.
    """
    try:
        info = _stat_without_links(path)
    except FileNotFoundError:
        return None
    return _device_and_inode(info) if stat.S_ISDIR(info.st_mode) else _FILE


def _stat_without_links(path: str) -> os.stat_result:
    """Return what the system says of a path that leads over no link.

    Raises:
        OSError: a link is in the way, nothing is there, or the system refuses.
    """
    try:
        with SafeFolder(_anchor(path)) as root:
            info = root.info(_path_below_anchor(path))
    except PermissionError:  # without O_PATH, a folder that may be passed and not listed can't be opened
        if os.path.realpath(path) != path:
            raise
        info = os.lstat(path)
    if stat.S_ISLNK(info.st_mode):
        raise PermissionError(f"{path}: a link")
    return info


def _device_and_inode(info: os.stat_result) -> tuple[int, int]:
    return info.st_dev, info.st_ino


def _path_below_anchor(path: str) -> str:
    return path[len(_anchor(path)) :].replace(os.sep, "/")


def _anchor(path: str) -> str:
    return os.path.splitdrive(path)[0] + os.sep
