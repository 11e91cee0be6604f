"""`TrustedFiles`: a trusted folder's files as they were hashed; what is loaded from the folder must still be equal.

A folder is trusted by a hash, but its code is read later: when a session opens, or a role imports what lies beside it.
Meanwhile another program, or code in a sandbox that may write to the folder, can change a file. So whatever reads one
compares the bytes with what was hashed, and uses these: modules are compiled from them, `__pycache__` is not used.

`TrustedFiles.read` is the one place where this is decided. A file goes by its name as it is written, so that a link
which leads elsewhere than it did is a change. A file without a hash was not there: it is refused in the folders of
code, and wherever a setting of the folder names it (`compared_with(..., only=True)`).
"""

from __future__ import annotations

import errno
import functools
import hashlib
import importlib.machinery as machinery
import linecache
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib.abc import Loader
from importlib.util import decode_source
from pathlib import Path
from types import CodeType, ModuleType
from zipimport import zipimporter

from tw_autogen.closing import Closing, value_set
from tw_autogen.errors import ConfigError
from tw_autogen.named_folders import code_writable_symlink, private_reason, step_out_of
from tw_autogen.private_files import lies_in
from tw_autogen.python_source import python_lines
from tw_autogen.safe_folder import walk_links
from tw_autogen.setting_values import climbed_path
from tw_autogen.settings_trust import Trust
from tw_autogen.trust_store import (
    MAX_BYTES,
    MAX_SETTINGS_BYTES,
    PROGRAM_SUFFIXES,
    hash_regular,
    lie_together,
    read_regular,
)

_BINARY_SUFFIXES = (".so", ".pyd", ".dll", ".dylib", ".zip")
"""Of files that may be larger than code that people write."""
_MAX_HASHED_BYTES = 1 << 30
"""Of all files of a folder together."""
_UNREADABLE = "unreadable"


@dataclass(frozen=True)
class TrustedFiles:
    """The files of a trusted folder as they were hashed.

    Args:
        sha256: Over the names and contents of all files, and over where links lead by which they are found.
        digests: SHA-256 of each file by its absolute path as it is written, links in it not followed; a word, which no
            content equals, for files that were missing, too large or unreadable.
        real: The same by paths with links resolved, for files outside of `folders` that are read under another name.
        folders: Absolute; each file of code in these was hashed, so that one without a digest is new. Folders in them
            whose names begin with a dot are left out.
        imported: Those of `folders` that are compared when a module is imported: not the project's own, which may hold
            an environment of Python.
        trust: The hash under which the trust of the folder is remembered; empty: it is not.
    """

    sha256: str
    digests: Mapping[str, str] = field(repr=False)
    real: Mapping[str, str] = field(default_factory=dict, repr=False)
    folders: tuple[str, ...] = ()
    imported: tuple[str, ...] = ()
    trust: str = ""

    @classmethod
    def hashed(
        cls,
        folder: Path,
        files: Iterable[Path],
        *,
        folders: Iterable[Path] = (),
        contents: Mapping[Path, bytes | None] | None = None,
    ) -> TrustedFiles:
        """Hash files as they are now.

        Args:
            folder: The hash is over names relative to it.
            files: In any order; one that is missing, unreadable or no regular file counts as such.
            folders: Those of which `files` has each file of code.
            contents: What was read of files before, None of those that were missing; it is hashed in place of what
                they hold now.

        Raises:
            ConfigError: the files have more than 1 GB together.
        """
        known = {os.path.abspath(path): content for path, content in (contents or {}).items()}
        whole, left = hashlib.sha256(), _MAX_HASHED_BYTES
        digests, resolved = dict[str, str](), dict[str, str]()
        real_folder = functools.lru_cache(maxsize=None)(os.path.realpath)
        for path in sorted(set(files)):
            place = os.path.abspath(climbed_path(str(path)))  # `..` goes up from where a link before it leads
            real = os.path.join(real_folder(os.path.dirname(place)), path.name)
            real = os.path.realpath(real) if os.path.islink(real) else real
            digest, size = _digest(path, left) if place not in known else (_UNREADABLE, 0)
            if (content := known.get(place)) is not None:
                digest = hashlib.sha256(content).hexdigest()
            left -= size
            digests[place] = digest
            resolved[real] = digest if resolved.get(real, digest) == digest else _UNREADABLE  # it changes meanwhile
            name = os.path.relpath(place, folder)
            straight = os.path.normpath(os.path.join(real_folder(folder), name)) == real
            whole.update(os.fsencode(name if straight else f"{name}\0{real}") + b"\0" + digest.encode() + b"\n")
        walked = {os.path.abspath(path): os.path.realpath(path) for path in folders}
        for one, real in walked.items():  # by the folder's other name too, links below it not followed
            below = {real + place[len(one) :]: digest for place, digest in digests.items() if lies_in(place, one)}
            digests |= {place: digest for place, digest in below.items() if place not in digests}
        places = {*walked, *walked.values()}
        imported = places - {os.path.abspath(folder), os.path.realpath(folder)}
        return cls(whole.hexdigest(), digests, resolved, tuple(sorted(places)), tuple(sorted(imported)))

    def places(self) -> list[str]:
        """Return the paths of all files that were there and could be read, also those that links lead to."""
        return [place for known in (self.digests, self.real) for place, was in known.items() if was != _UNREADABLE]

    def holds(self, path: Path | str) -> bool:
        """Return whether a file was hashed."""
        return os.path.abspath(path) in self.digests or os.path.realpath(path) in self.real

    def covers(self, path: Path | str) -> bool:
        """Return whether a file was hashed, or would have been if it had been there."""
        return self.holds(path) or any(map(self._is_new_in, (os.path.abspath(path), os.path.realpath(path))))

    def read(self, path: Path | str, *, limit_bytes: int = MAX_BYTES, only: bool = False) -> bytes:
        """Return what a file holds; of one of the folder only what was hashed.

        Args:
            path: The file.
            limit_bytes: How large it may be.
            only: A file that was not hashed is refused wherever it lies.

        Raises:
            PermissionError: it changed since, or is new; the message says which.
            OSError: as `read_regular`.
        """
        content = read_regular(Path(path), limit_bytes=limit_bytes)
        self._check(path, lambda: hashlib.sha256(content).hexdigest(), only=only)
        return content

    def compare(self, path: Path | str) -> None:
        """Raise if a file that the folder's settings name is not as it was hashed.

        Args:
            path: The file; of any size. One that could not be read then, and can't now, is as it was.

        Raises:
            PermissionError: it changed since, or is new; the message says which.
            ConfigError: it has more than 1 GB.
        """
        self._check(path, lambda: _digest(Path(path), _MAX_HASHED_BYTES)[0], only=True)

    def _check(self, path: Path | str, sha256: Callable[[], str], *, only: bool) -> None:
        place, real = os.path.abspath(path), os.path.realpath(path)
        digest = self.digests.get(place)
        if digest is None:
            place = self._as_walked(place)
            digest = self.digests.get(place, "" if self._is_new_in(place) else self.real.get(real))
        if digest is None and (only or self._is_new_in(place) or self._is_new_in(real)):
            digest = ""
        if digest is not None and digest != sha256():
            what = "changed since" if digest else "is new since"
            problem = f"it {what} its folder was trusted, so it is not loaded; look at it, and trust the folder again"
            raise PermissionError(errno.EPERM, problem, os.fspath(path))

    def _as_walked(self, place: str) -> str:
        """Return a path below one of the folders of which each file of code was hashed as seen from that one."""
        for parent in reversed(Path(place).parents):
            real = os.path.realpath(parent)
            if real in self.folders:
                return os.path.join(real, os.path.relpath(place, parent))
        return place

    def _is_new_in(self, path: str) -> bool:
        """Return whether a path lies in one of the folders of which each file of code was hashed."""
        below = (os.path.dirname(path)[len(folder) :] for folder in self.folders if lies_in(path, folder))
        return any(f"{os.sep}." not in place for place in below)


_IN_USE: ContextVar[tuple[TrustedFiles | None, bool]] = ContextVar("trusted_files", default=(None, False))
_GUARDED: dict[str, list[TrustedFiles]] = {}
"""Folders whose modules are compared when they are imported; with what, by the open sessions, the newest last."""
_NAMED: set[str] = set()
"""Folders that were named, of which no compiled file is used."""
_HOLDERS: Counter[int] = Counter()
"""How many sessions compare with the same files."""


_KEPT: ContextVar[dict[Path, bytes | None] | None] = ContextVar("kept_contents", default=None)


def reading_once(kept: dict[Path, bytes | None]) -> AbstractContextManager[None]:
    """Read each file once by `read_content` in this block, so that what is shown and what is hashed are the same bytes.

    Args:
        kept: What files held when they were first read, by absolute path, None of those that could not be read; written
            to.
    """
    return value_set(_KEPT, kept)


def compared_with(files: TrustedFiles | None, *, only: bool = False) -> AbstractContextManager[None]:
    """Compare all files that are read in this block by `read_content`.

    Args:
        files: The files as they were hashed; None: nothing is compared.
        only: Files that were not hashed are refused: a setting of the folder names them.
    """
    return value_set(_IN_USE, (files, only))


def active_trusted_files() -> TrustedFiles | None:
    """Return what files are compared with here; None: nothing."""
    return _IN_USE.get()[0]


def trusted_files_for(path: Path) -> TrustedFiles | None:
    """Return what a file of code is compared with here, and all that it imports from its folder; None: nothing."""
    files = active_trusted_files()
    return files if files is not None and files.covers(path) else None


def read_content(path: Path, *, limit_bytes: int = MAX_BYTES) -> bytes:
    """Return what a file holds, if that is what was hashed where its folder is trusted by a hash.

    Args:
        path: The file.
        limit_bytes: How large it may be.

    Raises:
        OSError: as `TrustedFiles.read`.
    """
    files, only = _IN_USE.get()
    if files is not None:
        return files.read(path, limit_bytes=limit_bytes, only=only)
    kept, place = _KEPT.get(), Path(os.path.abspath(path))
    if kept is None:
        return read_regular(path, limit_bytes=limit_bytes)
    if place not in kept:
        kept[place] = None
        kept[place] = read_regular(path, limit_bytes=limit_bytes)
    content = kept[place]
    if content is None or len(content) > limit_bytes:
        raise OSError("it could not be read when it was first looked at")
    return content


def read_text(path: Path) -> str:
    r"""Return the text of a file, line ends as `\n`, without a byte order mark.

    Raises:
        OSError: as `read_content`.
        UnicodeDecodeError: it is not UTF-8.
    """
    return read_content(path).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def settings_content(path: Path, folder: Path | None, trust: Trust) -> bytes | None:
    """Return what a settings file holds; None: it is not there.

    A link of a folder that is not trusted in full is followed to no file that is hidden or named like a secret, one of
    a folder that nobody has named to none outside of it, where nothing is then looked at.

    Args:
        path: The file: of the folder, or another one. A relative one elsewhere is the current folder's, unnamed.
        folder: Whose settings are read; None: of none.
        trust: How far it is trusted.

    Raises:
        ConfigError: it is such a link; or as `read_settings_bytes`.
    """
    if not path.is_absolute() and not (folder and _comes_with(path, folder)):
        folder, trust = Path(), Trust.none  # whatever lies in the current folder
    if folder is not None and trust is not Trust.full and _comes_with(path, folder):
        problem = ""
        if trust is Trust.none and (out := step_out_of(folder, path.absolute())):
            problem = f"a link out of its folder, which is not trusted, to {out}"
        elif path.is_symlink() and path.exists():
            plain = Path(os.path.realpath(path.parent), path.name)  # the folder itself may be named over any link
            problem = private_reason(plain, *walk_links(plain), "file").partition(";")[0]
        if problem:
            put = "put the file itself there, or trust the folder (--trust, trust=True)"
            raise ConfigError(f"{path}: {problem}; {put}")
    return read_settings_bytes(path) if path.exists() else None


def read_settings_bytes(path: Path) -> bytes:
    """Return what a settings file holds: a regular file of at most 100 kB, never a pipe or a device.

    Args:
        path: The file.

    Raises:
        ConfigError: the file is too large, not regular, or unreadable; not what was hashed; or reached over a link that
            code of this process could have made.
    """
    if link := code_writable_symlink(path):
        raise ConfigError(f"{path} leads over the link {link}, and code could make that link; remove it")
    try:
        return read_content(path, limit_bytes=MAX_SETTINGS_BYTES)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror or error})") from error


def _comes_with(path: Path, folder: Path) -> bool:
    """Return whether a file is a folder's own, or one below it that a relative path names."""
    return folder.absolute() in path.absolute().parents and (not path.is_absolute() or path.parent == folder.absolute())


def decode_settings(path: Path, content: bytes) -> str:
    """Return the text of a settings file.

    Args:
        path: For the error.
        content: The file's bytes.

    Raises:
        ConfigError: it is not UTF-8.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text: {error.reason}") from error


def guard_imports(folder: Path, files: TrustedFiles | None) -> None:
    """Compare modules of a folder, and of those below, whenever they are imported; the last call for a folder counts.

    Args:
        folder: Of a role, or of plugins.
        files: What is compared, also in the other folders of `files.imported`: as long as an `ImportGuards` of these
            files is open, and after that until the folder's code is loaded again otherwise. None: nothing is compared,
            and what no session holds ends; modules are compiled from their sources, since whoever names a folder has
            read these, and not what may lie compiled beside them.
    """
    names = {os.path.abspath(folder), os.path.realpath(folder)}
    if files is None:
        _forget_unheld(names)
        compile_sources_of(folder)
        return
    names.update(files.imported)
    if all(_reference_files(name) is files for name in names):
        return
    for name in names:
        held = [known for known in _GUARDED.get(name, ()) if known is not files and id(known) in _HOLDERS]
        _GUARDED[name] = [*held, files]
    _forget_finders(names)


def compile_sources_of(folder: Path) -> None:
    """Compile modules of a folder, and of those below, from their sources from now on; what is compared stays so.

    Args:
        folder: Of a function that is a plugin, for instance.
    """
    names = {os.path.abspath(folder), os.path.realpath(folder)}
    if not _NAMED.issuperset(names):
        _NAMED.update(names)
        _forget_finders(names)


def source_loader(name: str, source: Path) -> SourceLoader:
    """Return what loads a module from its source, compared if that lies in a folder whose modules are.

    Args:
        name: The module's.
        source: Its file.
    """
    return SourceLoader(name, str(source), _files_for({os.path.abspath(source), os.path.realpath(source)}))


def loads_code_of(folder: Path) -> bool:
    """Return whether this process has loaded roles or plugins of a folder, so that modules of it may be imported.

    Args:
        folder: Any.
    """
    return not {os.path.abspath(folder), os.path.realpath(folder)}.isdisjoint({*_NAMED, *_GUARDED})


class ImportGuards(Closing):
    """Keeps imports compared for as long as a session is open that has loaded code of a trusted folder.

    Args:
        files: What is compared; None: nothing is.
    """

    def __init__(self, files: TrustedFiles | None) -> None:
        self._files = files
        if files is not None:
            _HOLDERS[id(files)] += 1

    def close(self) -> None:
        """Compare modules with what other open sessions do; if there is none, late imports are still compared."""
        files, self._files = self._files, None
        if files is None:
            return
        _HOLDERS[id(files)] -= 1
        if _HOLDERS[id(files)] <= 0:
            del _HOLDERS[id(files)]
            names = {folder for folder, known in list(_GUARDED.items()) if any(own is files for own in known)}
            if names:
                _forget_finders(names)


def _reference_files(folder: str) -> TrustedFiles | None:
    """Return what modules of a folder are compared with: the newest that a session holds, else the newest."""
    known = _GUARDED.get(folder, [])
    held = [files for files in known if id(files) in _HOLDERS] or known
    return held[-1] if held else None


def _files_for(names: Collection[str]) -> TrustedFiles | None:
    """Return what a file or folder of these names is compared with: as the innermost folder around it is."""
    guarded = [folder for folder in tuple(_GUARDED) if any(lies_in(name, folder) for name in names)]
    return _reference_files(max(guarded, key=len, default=""))


def _forget_unheld(names: Collection[str]) -> None:
    """End all comparison with what no open session holds, if it is about folders, those below, or those around them."""
    near = [folder for folder in tuple(_GUARDED) if any(lie_together(folder, name) for name in names)]
    over = {id(files) for folder in near for files in _GUARDED.get(folder, ()) if id(files) not in _HOLDERS}
    ended = [folder for folder, known in tuple(_GUARDED.items()) if over.intersection(map(id, known))] if over else []
    for folder in ended:
        left = [files for files in _GUARDED.pop(folder, ()) if id(files) not in over]
        if left:
            _GUARDED[folder] = left
    if ended:
        _forget_finders(ended)


def _forget_finders(names: Collection[str]) -> None:
    if _finder_of not in sys.path_hooks:
        sys.path_hooks.insert(0, _finder_of)
    for known in list(sys.path_importer_cache):
        if any(lies_in(path, name) for path in (os.path.abspath(known), os.path.realpath(known)) for name in names):
            sys.path_importer_cache.pop(known, None)


def compared_loader(loader: Loader, files: TrustedFiles) -> Loader:
    """Return a loader that loads the same module if its file is as it was hashed.

    Args:
        loader: Python's own for the module.
        files: Knows the hashes.
    """
    compared = _LOADERS.get(type(loader))
    return compared(loader.name, loader.path, files) if compared else loader  # type: ignore[attr-defined]  # loaders of files have both


def _finder_of(entry: str) -> machinery.FileFinder | _ArchiveFinder:
    """Return what finds modules of a guarded folder, or refuses an archive's there; a hook of `sys.path_hooks`."""
    kinds = (machinery.EXTENSION_SUFFIXES, machinery.SOURCE_SUFFIXES, machinery.BYTECODE_SUFFIXES)
    names = os.path.abspath(entry), os.path.realpath(entry)  # a link in a guarded folder may lead out of it
    files = _files_for(names)
    if files is None:
        below = [(name, folder) for name in names for folder in tuple(_NAMED) if lies_in(name, folder)]
        if not os.path.isdir(entry) or not any(not _is_installed(path, folder) for path, folder in below):
            raise ImportError("no folder of which modules are compared", path=entry)
        extensions, sources, compiled = kinds
        usual = (machinery.ExtensionFileLoader, extensions), (SourceLoader, sources)
        return machinery.FileFinder(entry, *usual, (machinery.SourcelessFileLoader, compiled))
    if not os.path.isdir(entry):
        return _ArchiveFinder(zipimporter(entry))
    loaders = (_ExtensionLoader, SourceLoader, _CompiledLoader)
    details = [(functools.partial(loader, files=files), kind) for loader, kind in zip(loaders, kinds, strict=True)]
    return machinery.FileFinder(entry, *details)  # type: ignore[arg-type]  # it calls what makes a loader


def _is_installed(path: str, folder: str) -> bool:
    """Return whether a path lies with installed packages that this process imports from, themselves in a folder."""
    places = (os.path.abspath(path) for path in sys.path if path.endswith("-packages"))
    return any(lies_in(path, place) and lies_in(place, folder) for place in places)


def _digest(path: Path, left_bytes: int) -> tuple[str, int]:
    """Return the hash of a file and its size; one that can't be read counts as such.

    Of one of more than 4 MB that is called no program this is what the system says of it, which code can't set: its
    inode, size, and when it was last changed in any way.

    Args:
        path: The file.
        left_bytes: How much may still be hashed.

    Raises:
        ConfigError: it is larger than that, or can't be read and may be executed, or is this user's.
    """
    program = os.path.isfile(path) and os.access(path, os.X_OK)
    large = program or path.name.endswith((*_BINARY_SUFFIXES, *PROGRAM_SUFFIXES)) or ".so." in path.name
    try:
        return hash_regular(path, limit_bytes=left_bytes if large else min(MAX_BYTES, left_bytes))
    except (OSError, ValueError) as error:  # ValueError: a NUL in its name
        if getattr(error, "errno", 0) == errno.EFBIG:
            if not large and left_bytes >= MAX_BYTES:
                about = os.stat(path)
                return f"{about.st_dev} {about.st_ino} {about.st_size} {about.st_mtime_ns} {about.st_ctime_ns}", 0
            raise ConfigError(f"{path}: the files are too large to look through for trust") from error
        closed = getattr(error, "errno", 0) == errno.EACCES and os.lstat(path).st_uid == getattr(os, "geteuid", int)()
        if program or closed:  # its owner may open it again at any time
            raise ConfigError(f"{path}: it can't be read, so it can't be compared later") from error
        return _UNREADABLE, 0


class SourceLoader(machinery.SourceFileLoader):
    """Loads Python from its source, or from the bytes of it that were compared, never from a compiled file.

    Args:
        name: The module's.
        path: Its file.
        files: What it is compared with; None: nothing.
    """

    def __init__(self, name: str, path: str, files: TrustedFiles | None = None) -> None:
        super().__init__(name, path)
        self._files = files

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the module's code.

        Raises:
            ImportError: the file is not as it was hashed, or no plain file.
        """
        content = _module_content(self._files, fullname, self.path)
        if self._files is not None:
            with suppress(SyntaxError, UnicodeDecodeError):  # told when it is compiled
                lines = [f"{line}\n" for line in python_lines(decode_source(content))]
                linecache.cache[self.path] = (len(content), None, lines, self.path)  # for tracebacks: what runs
        return self.source_to_code(content, self.path)


class _ArchiveFinder:
    """Refuses modules of an archive: what Python reads of it later can't be compared."""

    def __init__(self, archive: zipimporter) -> None:
        self._archive = archive

    def find_spec(self, fullname: str, target: ModuleType | None = None) -> machinery.ModuleSpec | None:
        if self._archive.find_spec(fullname, target) is None:
            return None
        problem = "modules of an archive can't be compared with what was trusted; unpack it beside the code"
        raise ImportError(f"{self._archive.archive}: {problem}", name=fullname, path=self._archive.archive)

    def invalidate_caches(self) -> None:
        self._archive.invalidate_caches()


class _CompiledLoader(machinery.SourcelessFileLoader):
    def __init__(self, name: str, path: str, files: TrustedFiles) -> None:
        super().__init__(name, path)
        self._files = files

    def get_data(self, path: str) -> bytes:
        return _module_content(self._files, self.name, path)


class _ExtensionLoader(machinery.ExtensionFileLoader):
    def __init__(self, name: str, path: str, files: TrustedFiles) -> None:
        super().__init__(name, path)
        self._files = files

    def create_module(self, spec: machinery.ModuleSpec) -> ModuleType:
        """Load a copy that nobody else can change; the system takes a path only."""
        content = _module_content(self._files, spec.name, self.path)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
            copy = Path(place, os.path.basename(self.path))
            copy.write_bytes(content)
            return super().create_module(machinery.ModuleSpec(spec.name, self, origin=str(copy)))


_LOADERS: dict[type, Callable[[str, str, TrustedFiles], Loader]] = {
    machinery.SourceFileLoader: SourceLoader,
    machinery.SourcelessFileLoader: _CompiledLoader,
    machinery.ExtensionFileLoader: _ExtensionLoader,
}


def _module_content(files: TrustedFiles | None, name: str, path: str) -> bytes:
    """Return what a module's file holds; only what was hashed, unless it is compared with nothing."""
    try:
        if files is None:
            return read_regular(Path(path), limit_bytes=_MAX_HASHED_BYTES)
        most = _MAX_HASHED_BYTES if path.endswith(_BINARY_SUFFIXES) else MAX_BYTES
        return files.read(path, limit_bytes=most, only=True)
    except OSError as error:
        raise ImportError(f"{path}: cannot be read ({error.strerror or error})", name=name, path=path) from error
