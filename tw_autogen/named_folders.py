"""Folders and files that a user names, resolved over no link that code, or whoever made a folder, may have made."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from tw_autogen.errors import ConfigError, url_problem
from tw_autogen.private_files import lies_in
from tw_autogen.safe_folder import KERNEL_FOLDERS, innermost_held_folder, walk_links
from tw_autogen.secret_masking import is_secret_file
from tw_autogen.session_layout import is_working_folder

Distrusted = Path | Sequence[Path] | None
UNTRUSTED_FOLDERS: set[str] = set()
"""Current folders of this process in which paths were named while nobody had trusted them, without links."""
TRUSTED_FOLDERS: set[str] = set()
"""Current folders that were trusted, or named as the project, when the newest session was opened there."""
_OF_SYSTEM = ("/proc", "/sys", "/dev")
"""Where files tell what a program holds (`/proc/self/environ`), or are none."""
_MAX_LINKS = 40
_STORES = (os.path.join(".git", "annex"), os.path.join(".dvc", "cache"))
"""Where tools for large files keep what their links lead to."""


def current_folder() -> Path:
    """Return the current folder.

    Raises:
        ConfigError: it was removed.
    """
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise ConfigError("the current folder is gone: it was removed; go to another one") from error


def distrusted_now() -> tuple[Path, ...]:
    """Return the folders that nobody has trusted: those known as such, and the current one, whenever it became that."""
    return tuple(map(Path, sorted(UNTRUSTED_FOLDERS | ({os.getcwd()} - TRUSTED_FOLDERS))))


def checked_path(wanted: Path | str, what: str) -> Path:
    """Return a path that a caller has written, with `~` replaced; it need not exist.

    An empty text, as of a variable that is not set, is not the current folder, a URL is no folder `https:` there, and
    `~name` is none of that name.

    Args:
        wanted: As it was written.
        what: The argument, option or setting, for the error.

    Raises:
        ConfigError: it is no path.
    """
    text = os.fspath(wanted)
    if not text.strip():
        raise ConfigError(f"{what}: an empty path; write . for the current folder")
    if problem := url_problem(text):
        raise ConfigError(f"{what}: {text} is {problem}")
    path = os.path.expanduser(text)
    if path.startswith("~"):
        raise ConfigError(f"{what}: {text}: there is no such user; write ./{text} for what lies here")
    return Path(path)


def named_folder(path: Path | str, *, writable: Iterable[str] = (), distrusted: Distrusted = None) -> Path:
    """Return a folder that the user names as an absolute path without links; it need not exist.

    Each link is read once, and what it says is both checked and followed: exchanging it meanwhile leads nowhere else.
    In a held folder, where links are never followed, the path stays as it is.

    Args:
        path: Absolute, or relative to the current folder.
        writable: Folders that code can write to besides those that `is_code_folder` knows.
        distrusted: Folders that somebody else may have made, by their paths without links, besides those of
            `UNTRUSTED_FOLDERS`; an empty tuple: links out of none of these matter.

    Raises:
        ConfigError: a link leads out of a folder that code can write to, or out of `distrusted`, or a path below that
            or one of `UNTRUSTED_FOLDERS` leads elsewhere since the folder was moved; names the link, where it leads,
            and what to do; or a link to what is hidden or named like a secret (`private_reason`).
    """
    if innermost_held_folder(path):
        return Path(os.path.abspath(path))
    return _resolve_checked(path, "folder", writable, distrusted)


def granted_path(path: Path | str, *, writable: Iterable[str] = (), distrusted: Distrusted = None) -> Path:
    """Return what is to be granted to code, as `named_folder`; links are followed in a held folder, too.

    There they lead where the user means, or code may have made them, and then they are an error.

    Args:
        path: As of `named_folder`, as the others.
        writable: Likewise.
        distrusted: Likewise.

    Raises:
        ConfigError: as of `named_folder`.
    """
    return _resolve_checked(path, "folder", writable, distrusted)


def named_file(path: Path | str, *, distrusted: Distrusted = None) -> tuple[Path, Path | None]:
    """Return a file that the user names as an absolute path without links, and the folder of code's that holds it.

    Args:
        path: Absolute, or relative to the current folder.
        distrusted: As in `named_folder`.

    Returns:
        The path, and the outermost of the folders that code could write to (`is_code_folder`) in which it lies: there
        it has to be read with `SafeFolder`. None: it lies in none.

    Raises:
        ConfigError: as of `named_folder`.
    """
    real = _resolve_checked(path, "file", (), distrusted)
    return real, next(filter(is_code_folder, reversed(real.parents)), None)


def is_code_folder(folder: Path) -> bool:
    """Return whether code of this process, or of any session, could write to a folder; what lies below is not asked.

    Args:
        folder: Absolute, without links.
    """
    return folder in KERNEL_FOLDERS or is_working_folder(folder)


def _resolve_checked(path: Path | str, what: str, writable: Iterable[str], distrusted: Distrusted) -> Path:
    target, links, brought = _follow_links(path)
    if link := _link_out(target, links, _writable_folders(writable, links)):
        raise ConfigError(
            f"{path} leads over the link {link} to {target}, and code could make that link; name the {what} that you "
            "mean, or remove the link"
        )
    named = () if distrusted is None else (distrusted,) if isinstance(distrusted, Path) else tuple(distrusted)
    strangers = {*named, *(() if distrusted == () else map(Path, tuple(UNTRUSTED_FOLDERS)))}
    full = Path(os.path.abspath(path))
    for parent in (full, *full.parents):
        if parent in KERNEL_FOLDERS or str(parent) in UNTRUSTED_FOLDERS or parent in strangers:
            real = os.path.realpath(parent)
            if real != str(parent) and os.name == "posix":
                raise ConfigError(
                    f"{path}: {parent} was moved, and leads to {real} now; start again where the {what} lies"
                )
    for folder in sorted(strangers):
        if _link_out(target, links, [os.path.realpath(folder)]):
            raise ConfigError(f"{path}: {leads_out_reason(folder, target, what)}")
    if distrusted != () and (problem := private_reason(path, target, links, brought, what)):
        raise ConfigError(f"{path}: {problem}")
    return Path(target)


def private_reason(path: Path | str, target: str, links: Sequence[str], brought: Iterable[str], what: str) -> str:
    """Return in words why a file or folder is not what its path says: it is a link to `~/.ssh`, say; empty if it is.

    Whoever has made the link, as in an archive that was unpacked, knows where such files lie; the user has not seen it.

    Args:
        path: As it is named.
        target: Where it leads, with `links` and `brought` as `walk_links` returns them.
        links: Those on the way.
        brought: What of the target a link says.
        what: `file` or `folder`.
    """
    if not links or innermost_held_folder(path):
        return ""
    system = any(lies_in(target, folder) for folder in _OF_SYSTEM) and not lies_in(target, "/dev/shm")
    if system and not any(lies_in(os.path.abspath(path), folder) for folder in _OF_SYSTEM):
        return f"a link to {target}, which is of the system; name that {what} itself if you mean it"
    home = os.path.realpath(os.path.expanduser("~"))
    new = [os.path.basename(name) for name in brought if not lies_in(home, name)]
    stored = any(f"{os.sep}{store}{os.sep}" in target for store in _STORES)
    hidden = not stored and any(name.startswith(".") and not name.startswith("..") for name in new)
    if hidden or any(is_secret_file(name) for name in new if name != os.path.basename(path)):
        return f"a link to {target}, which is hidden or named like a secret; name that {what} itself if you mean it"
    return ""


def refuse_private(path: Path | str) -> None:
    """Refuse a folder that is not what its path says.

    Args:
        path: As it is named; its last component need not exist.

    Raises:
        ConfigError: as `private_reason` says.
    """
    if problem := private_reason(path, *_follow_links(path), "folder"):
        raise ConfigError(f"{path}: {problem}")


def code_writable_symlink(path: Path | str) -> str:
    """Return the link in a folder that code can write to over which a path leads out of that folder; empty if none.

    Args:
        path: Absolute, or relative to the current folder.
    """
    full = Path(os.path.abspath(path))
    for parent in (full, *full.parents):
        if parent in KERNEL_FOLDERS and os.path.realpath(parent) != str(
            parent
        ):  # it had no link when the kernel was made
            return str(parent)
    target, links, _ = _follow_links(path)
    return _link_out(target, links, _writable_folders((), links))


def leads_out_reason(distrusted: Path, target: Path | str, what: str) -> str:
    """Return in words why a link out of a folder that is not trusted is not followed, and what to do.

    Args:
        distrusted: The folder.
        target: Where the link leads.
        what: `file` or `folder`.
    """
    return (
        f"a link out of {distrusted}, which is not trusted, to {target}; name that {what} itself if you mean it, or "
        "trust the folder (--trust, trust=True)"
    )


def _writable_folders(besides: Iterable[str], links: Sequence[str]) -> set[str]:
    named = {os.path.realpath(os.path.expanduser(beside)) for beside in besides}
    return named | {str(parent) for link in links for parent in Path(link).parents if is_code_folder(parent)}


def _link_out(target: str, links: Sequence[str], folders: Iterable[str]) -> str:
    """Return the first link that lies in one of the folders, while the target lies outside of that folder."""
    if not links:
        return ""
    left = [folder for folder in folders if not lies_in(target, folder)]
    return next((link for link in links if any(lies_in(os.path.dirname(link), folder) for folder in left)), "")


def _follow_links(path: Path | str) -> tuple[str, list[str], set[str]]:
    """Return where a path leads.

    Raises:
        ConfigError: there are more links than a system follows, as in a circle.
    """
    try:
        return walk_links(path)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise ConfigError(f"{path}: {error.strerror}") from None


def executable_search_path() -> str:
    """Return this process's PATH without parts that mean the current folder, or one in it; never empty."""
    parts = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(filter(os.path.isabs, parts)) or os.defpath


def step_out_of(folder: Path | str, path: Path | str) -> str:
    """Return where a path leaves a folder, by its own words or by those of a link in the folder; empty: it stays there.

    Only what lies in the folder is looked at: nothing outside of it is opened, listed or asked for.

    Args:
        folder: Absolute, or relative to the current folder; links on the way to it are followed.
        path: Absolute, or relative to the folder; it need not exist.
    """
    named, real = os.path.abspath(folder), os.path.realpath(folder)
    place, left, links = real, _steps_below((named, real), os.fspath(path)), 0
    if left is None:
        return os.fspath(path)
    while left:
        name = left.pop(0)
        if name in ("", os.curdir):
            continue
        step = os.path.dirname(place) if name == os.pardir else os.path.join(place, name)
        target = _target_of(step) if name != os.pardir else ""
        below = _steps_below((named, real), target) if os.path.isabs(target) else target.split(os.sep)
        if below is None or not lies_in(step, real):
            return target or step
        links += bool(target)
        if links > _MAX_LINKS:  # a circle, or more than a system follows
            return step
        if target:
            left, step = [*below, *left], real if os.path.isabs(target) else place
        place = step
    return ""


def is_over_link(folder: Path | str, path: Path | str) -> bool:
    """Return whether a path leads over a link that lies in a folder.

    Args:
        folder: Absolute, or relative to the current folder.
        path: Absolute, or relative to the folder; it need not exist.
    """
    real = os.path.realpath(folder)
    try:
        return any(lies_in(link, real) for link in walk_links(Path(real, path)).links)
    except (OSError, ValueError):  # a circle; a NUL
        return False


def _target_of(path: str) -> str:
    """Return what a link says; empty: it is none, or nothing is there."""
    try:
        return os.readlink(path)
    except (OSError, ValueError):  # ValueError: a NUL, or half of a surrogate pair
        return ""


def _steps_below(folders: Iterable[str], path: str) -> list[str] | None:
    """Return the parts of a path below one of the folders, `..` as it stands; None: it doesn't begin with one."""
    if not os.path.isabs(path):
        return None if os.path.splitdrive(path)[0] else path.split(os.sep)
    for folder in folders:
        if lies_in(path, folder):
            return path[len(folder) :].split(os.sep)
    return None


def path_out_of(folder: Path, value: object) -> str:
    """Return where a value leads if it is a path out of a folder, links followed; empty if it is none.

    Args:
        folder: The folder that relative paths begin in.
        value: A setting's; a path is a text with a separator, one that begins with `~`, or the name of what lies there,
            as an address may be, too.
    """
    if not isinstance(value, str) or not value or "\0" in value:
        return ""
    path = os.path.join(folder, os.path.expanduser(value))
    plain = "://" in value or os.sep not in value and not value.startswith("~")
    if plain and not os.path.lexists(path):  # an address, or a word
        return ""
    try:
        real = os.path.realpath(path)
    except OSError:  # a link on the way may not be read, as those of /proc: nobody knows where it leads
        return path
    return "" if Path(real).is_relative_to(folder.resolve()) else real
