"""What code may be let read: which folders are too much, and which are closed to the user that runs it."""

from __future__ import annotations

import itertools
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from tw_autogen.errors import ConfigError
from tw_autogen.kernel.kernel_folders import Kept, protected_in, runtime_paths
from tw_autogen.kernel.launcher.known_paths import exposed_sessions_reason, is_below
from tw_autogen.kernel.launcher.readable_files import font_folders
from tw_autogen.kernel.launcher.sandbox import LANDLOCK, OFF
from tw_autogen.kernel.mounted_names import mounted_names
from tw_autogen.kernel.pinned_paths import PinnedPaths, resolved_grant
from tw_autogen.kernel.sandbox_levels import available_level, system_paths
from tw_autogen.kernel.settings import KernelSettings
from tw_autogen.named_folders import named_folder
from tw_autogen.private_files import cache_folder
from tw_autogen.safe_folder import is_protected
from tw_autogen.trust_store import config_folder, state_folder

if sys.platform != "win32":
    import pwd

_MAX_SETTINGS_FILES = 100
_SYSTEM = (
    *("/bin", "/boot", "/dev", "/dev/shm", "/etc", "/home", "/lib", "/lib64", "/media", "/mnt", "/opt", "/proc"),
    *("/root", "/run", "/sbin", "/srv", "/sys", "/tmp", "/usr", "/var", "/var/lib", "/var/log", "/var/spool"),
    "/var/tmp",
)
_KEYS = (
    ".aws", ".azure", ".config", ".docker", ".gnupg", ".kube", ".local/share/keyrings", ".mozilla", ".password-store",
    ".ssh", ".thunderbird", "Library",
)  # fmt: skip
_HOLD_KEYS = (".cache", ".local", ".local/share", ".local/state")
_TEMPORARY = (
    "a folder for temporary files, in which programs keep keys and trust what they have written, lies in it or is it; "
    "name what you mean in it, choose a folder without one, or set TMPDIR to another place"
)
_OWN = "where this program keeps your settings and what you trust"
_ENVIRONMENTS = ("site-packages", "dist-packages", "venv", ".venv")
"""Folders that are a Python environment by their names alone."""
_ENVIRONMENT_MARKS = ("pyvenv.cfg", "conda-meta")
_CLOSED_BELOW = ("/dev", "/etc", "/proc", "/run/secrets", "/sys", "/private/etc")
"""Where what lies below is as much as the folder itself."""


def too_broad_reason(folder: Path, names: Sequence[str] | None = None) -> str:
    """Return the reason why code may not read a whole folder without being told so; empty if it may.

    Args:
        folder: Absolute, links resolved.
        names: Its `mounted_names`; None: not looked up yet.
    """
    if why := _reason_of_name(str(folder)):
        return why
    names = mounted_names(str(folder)) if names is None else names
    return next((f"also {name}, {why}" for name in names if (why := _reason_of_name(name))), "")


def _reason_of_name(asked: str) -> str:
    """Return the reason of `too_broad_reason` as far as one name of a folder tells it; empty if there is none.

    Args:
        asked: As text: a kernel starts in milliseconds, and pure paths are slow to take apart.
    """
    for home in map(str, _home_folders()):
        if asked == home:
            return "your home folder"
        if is_below(home, asked):
            return "above your home folder"
        kept = asked[len(home.rstrip(os.sep)) + 1 :].replace(os.sep, "/") if is_below(asked, home) else ""
        if kept in _HOLD_KEYS or any(kept == key or kept.startswith(key + "/") for key in _KEYS):
            return "where programs keep keys and settings of yours"
    if os.path.dirname(asked) in ("/home", "/Users"):
        return "another user's home folder"
    system = asked in _SYSTEM or any(is_below(asked, folder) for folder in _CLOSED_BELOW)
    if system:
        return "one of the system's folders"
    if is_below(temporary := os.path.realpath(tempfile.gettempdir()), asked):
        where = "" if temporary == asked else "above "
        return f"{where}{temporary}, where programs keep temporary files, and kernels their keys"
    if own := _own_folder_at(asked):
        where = "" if asked == own else "above " if is_below(own, asked) else "in "
        return f"{where}{own}, {_OWN}"
    return ""


def _own_places() -> list[str]:
    """Return where this program keeps the user's settings, and which folders the user trusts; links resolved."""
    config = config_folder()
    folders = [os.path.realpath(path) for path in (config, state_folder()) if path is not None]
    linked = [entry.path for entry in _entries(config) if entry.is_symlink()]  # as tools for dotfiles make it
    return [*folders, *map(os.path.realpath, linked)]


def _entries(folder: Path | None) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder or os.devnull) as entries:
            return list(itertools.islice(entries, _MAX_SETTINGS_FILES))
    except OSError:
        return []


def _own_folder_at(asked: str) -> str:
    """Return the one of these places in which a folder lies, or that lies in it; empty if there is none."""
    return next((place for place in _own_places() if is_below(asked, place) or is_below(place, asked)), "")


def _trusted_place_reason(folder: Path, names: Sequence[str]) -> str:
    """Return the reason why code may not have a folder; empty if it may.

    What lies there decides what the user trusts, and has the key of the marks and seals that say what the user made.

    Args:
        folder: Absolute, links resolved.
        names: Its `mounted_names`.
    """
    own = next(filter(None, map(_own_folder_at, (str(folder), *names))), "")
    return f"{own} lies in it or is it, {_OWN}; choose another folder" if own else ""


def _used_elsewhere_reason(names: Sequence[str]) -> str:
    """Return the reason why code may not write to a folder that has another name, over a mount; empty if it may.

    What this program runs, imports and keeps there stays read-only by the name that it uses alone.

    Args:
        names: Its `mounted_names`.
    """
    used = ((os.path.realpath(path), name) for path in (runtime_paths() if names else ()) for name in names)
    found = next(
        (f"it is also {name}, and this program uses {real} there" for real, name in used if is_below(real, name)), ""
    )
    return f"{found}; name it so" if found else ""


def _used_reason(folder: Path, names: Sequence[str]) -> str:
    """Return the reason why code may not write where this program keeps caches, or uses it by another name."""
    cache = os.path.realpath(cache_folder(os.environ))
    return f"this program keeps caches in {cache}" if is_below(cache, str(folder)) else _used_elsewhere_reason(names)


def _holds_temporary_files(folder: Path, names: Sequence[str]) -> bool:
    temporary = [os.path.realpath(path) for path in (tempfile.gettempdir(), "/tmp", "/var/tmp")]
    return any(is_below(place, name) for place in temporary for name in (str(folder), *names))


def checked_kernel_folder(folder: Path, settings: KernelSettings) -> Path:
    """Refuse to let code work in a folder that holds more than its own: it may read and write all of it.

    Args:
        folder: Where a kernel is to work, with all in it its own; as root, it changes owner until the kernel is closed.
            As the user names it: its links are looked at.
        settings: Without a sandbox nothing is refused, because code may do what this user may do anyway.

    Returns:
        The folder, absolute and without links.

    Raises:
        ConfigError: names the folder, why, and what to do: it holds too much, or is reached over a link that code
            could have made.
    """
    if settings.sandbox == OFF:
        return folder.resolve()
    folder = named_folder(folder, writable=settings.write, distrusted=())
    names = mounted_names(str(folder))
    if why := too_broad_reason(folder, names):
        raise ConfigError(
            f"{folder}: no kernel works here, because it is {why}, and code may read and write all of its kernel's "
            "folder; give it one of its own, and name files and folders to be read in kernel.read"
        )
    if _holds_temporary_files(folder, names):
        raise ConfigError(f"{folder}: no kernel works here: {_TEMPORARY}")
    if why := _trusted_place_reason(folder, names) or _used_elsewhere_reason(names):
        raise ConfigError(f"{folder}: no kernel works here: {why}")
    return folder


def closed_reason(path: Path, settings: KernelSettings, wanted: str = "rx") -> str:
    """Return the reason why the user that a kernel becomes can't use a path, and what to do; empty if it can.

    A kernel becomes another user only where the host is root, and its sandbox keeps root's rights from it.

    Args:
        path: What code was to use.
        settings: `sandbox` says which levels may be used.
        wanted: The rights, of `rwx`; `x`, to pass, counts for folders alone.

    Raises:
        SandboxError: no sandbox can be set up here.
    """
    if settings.sandbox == OFF or not sys.platform.startswith("linux") or os.geteuid() != 0:
        return ""
    try:
        info = os.stat(path)
        listed = "system.posix_acl_access" in os.listxattr(path)  # who may read stands in a list of its own
    except OSError:
        return ""
    word = wanted if stat.S_ISDIR(info.st_mode) else wanted.replace("x", "")
    needed = sum({"r": stat.S_IROTH, "w": stat.S_IWOTH, "x": stat.S_IXOTH}[char] for char in word)
    if listed or info.st_mode & needed == needed or available_level(settings) == LANDLOCK:
        return ""
    mode = f"{stat.S_IMODE(info.st_mode):04o}"
    return f"closed to others (mode {mode}), and root's code runs as another user: chmod o+{word} {path}"


def shut_off_reason(folder: Path, granted: Path, settings: KernelSettings) -> str:
    """Return the reason why a kernel could not reach its folder if it were granted one above; empty if it could.

    In a sandbox, folders above a kernel's own are passable whatever their mode, but a granted one is as it is.

    Args:
        folder: Where it is to work.
        granted: What it was to read.
        settings: `sandbox` says which levels may be used.

    Raises:
        SandboxError: no sandbox can be set up here.
    """
    folder, granted = folder.resolve(), granted.resolve()
    between = [parent for parent in folder.parents if parent.is_relative_to(granted)]
    return next((f"{path} is {why}" for path in reversed(between) if (why := closed_reason(path, settings, "x"))), "")


def readable_by_all_reason(folder: Path, settings: KernelSettings, more: Mapping[str, str]) -> str:
    """Return in words the grant, Python environment or folder of the system that holds a folder; empty if none does.

    Code of every kernel with these settings may read there, now or once the folder holds something.

    Args:
        folder: Absolute, links resolved; it need not exist. It is looked for under all its names.
        settings: `read`, `write`, and the interpreter.
        more: Other paths that are granted, by the setting that names each; an empty one counts for nothing.
    """
    names = [str(folder), *mounted_names(str(folder))]
    around = dict.fromkeys(str(parent) for name in names for parent in (Path(name), *Path(name).parents))
    found = [
        *(("a Python environment", path) for path in around if _is_environment(path)),
        *(("the system", path) for path in system_paths(settings)),
        *(("a Python environment", path) for path in _interpreter_folders(settings.python)),
        *(item for item in more.items() if item[1]),
        *(("kernel.read", path) for path in settings.read),
        *(("kernel.write", path) for path in settings.write),
    ]
    holds = (f"{what} ({path})" for what, path in found if os.path.realpath(os.path.expanduser(path)) in around)
    return next(holds, "")


def _is_environment(folder: str) -> bool:
    marked = any(os.path.lexists(os.path.join(folder, mark)) for mark in _ENVIRONMENT_MARKS)
    return marked or os.path.basename(folder) in _ENVIRONMENTS


def _interpreter_folders(python: str) -> list[str]:
    """Return the folders of an interpreter, and of the one that runs this process; none that holds a home folder."""
    program = os.path.abspath(shutil.which(python) or python)
    own = [os.path.dirname(os.path.dirname(path)) for path in (program, os.path.realpath(program))]
    found = [*(path for path in own if any(Path(path).glob("lib*/python3*"))), sys.prefix, sys.base_prefix]
    homes = [str(folder) for folder in _home_folders()]
    return [path for path in map(os.path.realpath, found) if not any(is_below(home, path) for home in homes)]


def exposed_reason(folder: Path, granted: Path, settings: KernelSettings) -> str:
    """Return the reason why root's code at `landlock` would read sessions in a granted folder; empty if it would not.

    The launcher decides, with all that the interpreter has; this is known before.

    Args:
        folder: Where its kernel is to work.
        granted: What it was to read.
        settings: `sandbox` says which levels may be used, `read` and `write` what else is granted.

    Raises:
        SandboxError: no sandbox can be set up here.
    """
    if settings.sandbox == OFF or not sys.platform.startswith("linux") or os.geteuid() != 0:
        return ""
    if available_level(settings) != LANDLOCK:
        return ""
    folder, granted = folder.resolve(), granted.resolve()
    home = os.path.expanduser("~")
    of_python = (sys.prefix, sys.base_prefix, *sys.path, os.path.realpath(settings.python), *font_folders(home))
    reached = (str(granted), str(folder), tempfile.gettempdir(), *settings.read, *settings.write, *of_python)
    return exposed_sessions_reason(str(granted), str(folder), [os.path.abspath(path) for path in reached])


def check_granted(
    settings: KernelSettings, folder: Path | None = None, *, pinned: PinnedPaths | None = None
) -> dict[str, Kept]:
    """Refuse to grant what is not there, or what code could not read or write all the same, before any runs.

    Each link on the way to a path is read once, when it is pinned; everything is asked of where it led then.

    Args:
        settings: `read` and `write` say what is granted.
        folder: Where the kernel is to work; None: not known yet.
        pinned: What is going to be granted; None: nothing yet.

    Returns:
        By folder that may be written, its settings files and hooks, which stay read-only, as of `protected_in`.

    Raises:
        KernelStartError: a folder was exchanged since it was checked.
        ConfigError: names the setting, the path, and what to do.
        SandboxError: no sandbox can be set up here.
    """
    kept: dict[str, Kept] = {}
    known = pinned.file_identities() if pinned is not None else {}
    for key, paths in (("read", settings.read), ("write", settings.write)):
        for path in paths:
            try:
                if not Path(path).expanduser().exists():
                    raise ConfigError(f"{path} does not exist; make it, correct the path, or leave it out")
                real = pinned.checked(path) if pinned is not None else resolved_grant(path, settings)
            except (ConfigError, OSError, RuntimeError) as error:  # closed to this user, a circle of links, `~unknown`
                raise ConfigError(f"kernel.{key}: {error}") from error
            if settings.sandbox == OFF:
                continue
            names = mounted_names(str(real))
            used = _used_reason(real, names) if key == "write" else ""
            if why := _trusted_place_reason(real, names) or used:
                raise ConfigError(f"kernel.{key}: {path} can't be granted: {why}")
            if why := closed_reason(real, settings, "rwx" if key == "write" else "rx"):
                instead = "; the command line saves files that a request names in the current folder without it"
                raise ConfigError(f"kernel.{key}: {path} is {why}, or leave it out{instead * (key == 'write')}")
            if _holds_temporary_files(real, names):
                raise ConfigError(f"kernel.{key}: {path} can't be granted: {_TEMPORARY}")
            if key == "write":
                others = sum(map(len, kept.values()))
                why, kept[str(real)] = _protection_problem(real, settings, folder, known, others)
                if why:
                    raise ConfigError(f"kernel.write: {path} can't be granted: {why}")
            if folder and (why := shut_off_reason(folder, real, settings)):
                raise ConfigError(f"kernel.{key}: {path} holds {folder}, where code runs, and {why}, or leave it out")
    return kept


def _protection_problem(
    real: Path, settings: KernelSettings, own: Path | None, known: Mapping[str, tuple[int, int]], others: int
) -> tuple[str, Kept]:
    """Return the reason why settings files and hooks in a folder can't stay read-only, empty if they can; and these.

    Args:
        real: The folder, without links.
        settings: `sandbox` says which levels may be used.
        own: The kernel's folder.
        known: As of `protected_in`.
        others: As of `protected_in`.

    Raises:
        SandboxError: no sandbox can be set up here.
    """
    if is_protected(real.name) or ".git" in real.parts:
        return "settings files and hooks stay read-only", {}
    try:
        closed: list[str] | None = [] if sys.platform != "win32" and os.geteuid() == 0 else None
        found = protected_in(str(real), own, known=known, others=others, closed=closed)
    except OverflowError as error:
        return f"{error}, too many to keep settings files and hooks read-only there; grant a smaller folder", {}
    except PermissionError as error:
        return f"{error.filename}: {error.strerror}", {}
    shut = next((path for path in closed or () if own is None or not Path(path).is_relative_to(own)), "")
    if shut:
        return (
            f"{shut} is closed to others, and code, which root runs as another user, could rename it to what root's "
            "programs take for their own; open or move it, or grant a folder without such"
        ), {}
    if str(real / "HEAD") in found:
        return "it is a git repository, whose settings and hooks stay read-only", {}
    linked = next((path for path in found if os.path.islink(path)), "")
    if linked:
        return f"{linked} is a link, which can't be kept read-only; grant a folder without it", {}
    if found and available_level(settings) == LANDLOCK:
        why = f"can't keep {next(iter(found))} read-only there"
        files = "settings files, hooks, Python environments and files with another name elsewhere"
        return f"the sandbox's level landlock {why}, as {files} have to be; grant a folder without such", {}
    return "", found


def _home_folders() -> tuple[Path, ...]:
    """Return the user's home folders: the one that the environment says, and that of the user's account."""
    homes = [Path(os.path.expanduser("~")).resolve()]
    if hasattr(os, "geteuid"):
        homes += _account_homes(os.geteuid())
        homes += [Path("/root")] * (os.geteuid() == 0)
    return tuple(fromkey for fromkey in dict.fromkeys(homes) if fromkey != Path("/"))


@lru_cache(maxsize=4)  # a directory server may be asked, and each start comes here
def _account_homes(user: int) -> tuple[Path, ...]:
    try:
        return (Path(pwd.getpwuid(user).pw_dir).resolve(),)
    except KeyError:  # a user without an entry
        return ()
