"""Names that programs outside the sandbox run, import or obey when they find them in a folder."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator

from tw_autogen.safe_folder.directory_calls import At, identity, open_folder
from tw_autogen.safe_folder.directory_tree import Descent
from tw_autogen.unlisted_folders import check_unlisted

_NAMES = frozenset({
    # settings of this package and of what it reads
    "tw_autogen.yaml", "tw_autogen.yml", "taskweaver_config.json", "oai_config_list", "oai_config_list.json", ".tw",
    # version control, editors, shells, agents
    ".git", ".gitattributes", ".gitmodules", ".gitignore", ".hg", ".hgrc", ".svn", ".githooks", ".husky", ".github",
    ".gitlab-ci.yml", ".pre-commit-config.yaml", ".vscode", ".idea", ".devcontainer", ".editorconfig", ".envrc", ".env",
    ".venv", "venv", ".mcp.json", ".claude", ".cursor", ".codex", ".gemini", "claude.md", "agents.md", "gemini.md",
    ".bashrc", ".bash_profile", ".profile", ".zshrc", ".zshenv", ".inputrc", ".vimrc", ".exrc", ".ssh", ".npmrc",
    # Python
    "conftest.py", "sitecustomize.py", "usercustomize.py", "setup.py", "setup.cfg", "pyproject.toml", "pyvenv.cfg",
    "tox.ini", "noxfile.py", "pytest.ini", ".pytest.ini", "requirements.txt", "constraints.txt", "manage.py",
    "matplotlibrc", "uv.toml",
    # builds
    "makefile", "gnumakefile", "justfile", "taskfile.yml", "rakefile", "gemfile", "dockerfile", "compose.yaml",
    "compose.yml", "docker-compose.yml", "docker-compose.yaml", "package.json", "composer.json", "cmakelists.txt",
    "build.gradle", "pom.xml", "build.rs", "cargo.toml", ".cargo", ".yarnrc.yml", "mise.toml",
})  # fmt: skip
_SUFFIXES = (".pth", ".code-workspace", ".desktop")
_MOST_ENTRIES = 200_000
_LONGEST_PATH = 4095
"""How long a path can be that the system takes as a whole; what lies deeper no program finds by its path."""


def is_protected(name: str) -> bool:
    """Return whether a file or folder of this name is run, imported or obeyed by programs outside the sandbox.

    Args:
        name: The last component of a path; upper and lower case count as the same.

    Example:
        >>> is_protected("conftest.py"), is_protected("CONFTEST.PY"), is_protected("report.csv")
        (True, True, False)
    """
    low = name.casefold()
    return low in _NAMES or low.endswith(_SUFFIXES)


def protected_below(
    folder: str, *, known: tuple[int, int] | None = None
) -> Iterator[tuple[str, dict[str, tuple[int, int]]]]:
    """Yield the protected files and folders below a folder, in no order; what is in such a folder is left out.

    Each comes as its path, and device and number by path: of the folder, of those on the way, and its own.

    Folders are opened one below the other, without following links, so what is yielded was in this folder then.

    Args:
        folder: Absolute, no link itself; links below are returned, not followed. One that is missing, or a file, holds
            nothing; so does one of another user that this one may not pass.
        known: Device and number that the folder must have; None: any.

    Raises:
        OverflowError: there are more than 200 000 files and folders.
        PermissionError: EPERM, the folder is not the one that is known; EACCES, it, or one below, can't be listed.
    """
    left = _MOST_ENTRIES
    try:
        at = open_folder(None, folder, listed=True)
    except OSError as error:
        if known is not None and _numbers(folder) != known:
            raise another_folder(folder) from None
        check_unlisted(error, folder)
        return

    def closed(above: At, name: str, error: OSError) -> None:
        try:
            check_unlisted(error, name, at=above)
        except PermissionError as found:
            found.filename = os.path.join(here, name)
            raise

    with Descent(at, closed=closed) as way:
        if known is not None and identity(at) != known:
            raise another_folder(folder)
        chain: list[tuple[str, tuple[int, int]]] = []
        more = True
        while more:
            prefix = way.prefix
            del chain[prefix.count("/") :]
            here = os.path.join(folder, prefix.replace("/", os.sep))
            chain.append((here.rstrip(os.sep) if prefix else folder, identity(way.at)))
            inner = []
            with os.scandir(way.at) as entries:
                for one in entries:
                    left -= 1
                    if left < 0:
                        raise OverflowError(f"{folder}: more than {_MOST_ENTRIES} files and folders")
                    if is_protected(one.name):
                        with contextlib.suppress(FileNotFoundError):  # gone meanwhile
                            about = one.stat(follow_symlinks=False)
                            path = os.path.join(here, one.name)
                            yield path, {**dict(chain), path: (about.st_dev, about.st_ino)}
                    elif one.is_dir(follow_symlinks=False) and len(here) + len(one.name) < _LONGEST_PATH:
                        inner.append(one.name)
            more = way.next(inner)


def _numbers(path: str) -> tuple[int, int] | None:
    try:
        about = os.lstat(path)
    except OSError:
        return None
    return about.st_dev, about.st_ino


def another_folder(folder: str) -> PermissionError:
    """Return the error of a folder that is not the one that was checked.

    Args:
        folder: Its path.
    """
    return PermissionError(errno.EPERM, "another folder than the one that was checked", folder)
