"""Files that a person names as arguments or in a chat: looked up here, then in the folder of `-C`."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tw_autogen.errors import near_files, url_problem
from tw_autogen.text_truncation import shortened

_SHOWN_CHARS = 80
_MAX_NEAR = 3
_BEGINS = r"""(?<![^\s("'\[“‘«「『（])@"""
_AT_NAME = re.compile(_BEGINS + r'(?:"(?P<quoted>[^"]+)"|(?P<plain>\S+))')
_BEGUN_NAME = re.compile(r'(?<!\S)@(?:"(?P<quoted>[^"]*)|(?P<plain>\S*))\Z')
_ENDS = ",;:.?!)\"']”’»」』）、。，；：？！…"
"""What stands before and after a name in a sentence."""
_ESCAPED_BLANK, _ONE_CHAR = "\\ ", "\0"
"""A blank as shells have it in a name, and what stands for it while names are looked for."""
_LIKE_A_FILE = re.compile(r"[\w ./~-]+\.[A-Za-z]\w{0,7}")


@dataclass(frozen=True)
class NamedFile:
    """What a name stands for.

    Args:
        path: The file; None: there is none.
        problem: Why there is none, in a clause with the name in front; empty if there is one.
        near: Paths of files that may have been meant, nearest first.
        remedy: What to do about the problem; empty: nothing but another name.
    """

    path: Path | None
    problem: str = ""
    near: tuple[str, ...] = ()
    remedy: str = ""

    @property
    def problem_sentence(self) -> str:
        """The problem, the near names and the remedy; empty if there is a file."""
        meant = f"did you mean {' or '.join(map(repr, self.near))}?" if self.near else ""
        return "; ".join(part for part in (self.problem, meant, self.remedy) if part)


def find_file(name: str, project: Path | None = None) -> NamedFile:
    """Look a file up: in the current folder, then in that of `-C`.

    Args:
        name: As the person wrote it; a `~` stands for the home folder.
        project: The folder of `-C`; None: none was given.

    Example:
        >>> find_file("/nosuch/sales.csv").problem_sentence
        "'/nosuch/sales.csv' does not exist"
    """
    places = _possible_paths(name, project)
    for path in places:
        if is_path(path, Path.is_file):
            return NamedFile(path)
    shown = repr(shortened(name, _SHOWN_CHARS))
    if problem := url_problem(name):
        return NamedFile(None, f"{shown} is {problem}")
    for path in places:
        if is_path(path, Path.is_dir):
            quoted = shlex.quote(str(path))
            remedy = (
                f"--set kernel.read={quoted} lets code read a whole folder (-C {quoted} uses its plugins and roles "
                "too); as files name those that the question is about"
            )
            return NamedFile(None, f"{shown} is a folder", remedy=remedy)
        if is_path(path, Path.exists):
            return NamedFile(None, f"{shown} is not a file")
    where = f" in {Path.cwd()} or {project}" if len(places) > 1 else ""
    return NamedFile(None, f"{shown} does not exist{where}", _similar_files(places))


def named_files(text: str, project: Path | None = None) -> tuple[list[Path], list[NamedFile]]:
    r"""Return the files that a text names as `@path`, `@"a path"` or `@a\ path`, and the missing among them.

    Args:
        text: The words.
        project: As for `find_file`.

    Returns:
        The files, and what is none but stands in quotes, looks like a file's name (with a suffix), or is a URL. All
        else stays words.

    Example:
        >>> found, missing = named_files("mail @nobody about @/nosuch.csv, as @mean[3.14]")
        >>> found, [one.problem_sentence for one in missing]
        ([], ["'/nosuch.csv' does not exist"])
    """
    found: list[Path] = []
    missing: list[NamedFile] = []
    matches = _AT_NAME.finditer(text.replace(_ESCAPED_BLANK, _ONE_CHAR))
    names = (
        (_mentioned_name(match) if match["quoted"] else _mentioned_name(match).rstrip(_ENDS), match["quoted"])
        for match in matches
    )
    for name, quoted in dict.fromkeys(names):
        named = find_file(name, project)
        if named.path is not None and named.path not in found:
            found.append(named.path)
        elif named.path is None and (quoted or _LIKE_A_FILE.fullmatch(name) or url_problem(name)):
            missing.append(named)
    return found, missing


def begun_name(text: str) -> tuple[str, int] | None:
    r"""Return the path after the `@` that a text ends with, and how long it is as it was typed; None: there is none.

    Args:
        text: What is typed before the cursor.

    Example:
        >>> begun_name('both of @a.csv and @"my da'), begun_name(r"@my\ da"), begun_name('@"my data.csv" and')
        (('my da', 6), ('my da', 6), None)
    """
    match = _BEGUN_NAME.search(text.replace(_ESCAPED_BLANK, _ONE_CHAR))
    return None if match is None else (_mentioned_name(match), len(match[0].replace(_ONE_CHAR, _ESCAPED_BLANK)) - 1)


def quoted_name(path: str, *, closed: bool) -> str:
    r"""Return what stands after `@` for a path: in quotes if there is a blank in it.

    Args:
        path: As the system has it.
        closed: Whether the path is whole; False: what begins with a quote goes on.

    Example:
        >>> quoted_name("my data.csv", closed=True), quoted_name("my data/", closed=False)
        ('"my data.csv"', '"my data/')
    """
    if '"' in path or " " not in path:
        return path.replace(" ", _ESCAPED_BLANK)
    return f'"{path}"' if closed else f'"{path}'


def names_only(typed: str, path: str) -> bool:
    r"""Return whether words after an `@` name one path, and no other file beside it.

    Args:
        typed: As `quoted_name` gives them.
        path: As the system has it.

    Example:
        >>> names_only('"my data.csv"', "my data.csv"), names_only('"a"(@/other.csv', '"a"(@/other.csv')
        (True, False)
    """
    found = [
        _mentioned_name(match) if match["quoted"] else _mentioned_name(match).rstrip(_ENDS)
        for match in _AT_NAME.finditer(f"@{typed}".replace(_ESCAPED_BLANK, _ONE_CHAR))
    ]
    return found == [path]


def _mentioned_name(match: re.Match[str]) -> str:
    if match["plain"] is not None:
        return str(match["plain"]).replace(_ONE_CHAR, " ")
    return str(match["quoted"]).replace(_ONE_CHAR, _ESCAPED_BLANK)


def _possible_paths(name: str, project: Path | None) -> list[Path]:
    """Return where a name may lie; one place if the name is absolute or the folder is the current one."""
    try:
        # as it stands where that is there: `*/*.csv` gives what a folder `~` holds
        here = Path(name) if os.path.lexists(name) else Path(name).expanduser()
        same = project is None or here.is_absolute() or project.resolve() == Path.cwd()
    except (OSError, RuntimeError, ValueError):  # no such user's home
        return [Path(name)]
    return [here] if same or project is None else [here, project / here]


def is_path(path: Path, what: Callable[[Path], bool]) -> bool:
    """Return whether a path is a file, a folder or anything; False for any text that no path can be.

    Args:
        path: Of any text.
        what: Such as `Path.is_file`.
    """
    try:
        return what(path)
    except (OSError, ValueError):  # too long for a name, or a NUL in it
        return False


def _similar_files(places: Sequence[Path]) -> tuple[str, ...]:
    """Return paths of files with nearly the same names in the folders of these paths."""
    near = [near_files(path.parent, path.name, _is_file, cutoff=0.8) for path in places]
    return tuple(str(path.with_name(one)) for path, some in zip(places, near, strict=True) for one in some)[:_MAX_NEAR]


def _is_file(entry: os.DirEntry[str]) -> bool:
    return entry.is_file()
