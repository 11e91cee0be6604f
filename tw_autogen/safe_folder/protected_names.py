"""Names that programs outside the sandbox run, import or obey when they find them in a folder."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import stat
from collections.abc import Collection, Iterator

from tw_autogen.safe_folder.directory_calls import KERNEL_USERS, PATH_MAX, At, identity, open_folder
from tw_autogen.safe_folder.directory_tree import Descent
from tw_autogen.unlisted_folders import check_unlisted

_NAMES = frozenset({
    # settings of this package and of what it reads
    "tw_autogen.yaml", "tw_autogen.yml", "taskweaver_config.json", "oai_config_list", "oai_config_list.json", ".tw",
    # version control, editors, shells, agents
    ".git", ".gitattributes", ".gitmodules", ".gitignore", ".hg", ".hgrc", ".svn", ".githooks", ".husky", ".github",
    ".gitlab-ci.yml", ".pre-commit-config.yaml", ".vscode", ".idea", ".devcontainer", ".editorconfig", ".envrc",
    ".env", ".env.local", ".venv", "venv", ".mcp.json", "mcp.json", ".claude", ".cursor", ".codex", ".gemini",
    "claude.md", "claude.local.md", "agents.md", "gemini.md", ".bashrc", ".bash_profile", ".bash_login",
    ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".gdbinit", ".inputrc", ".vimrc", ".exrc",
    ".ssh", ".npmrc",
    # Python
    "conftest.py", "sitecustomize.py", "usercustomize.py", "setup.py", "setup.cfg", "pyproject.toml", "pyvenv.cfg",
    "tox.ini", "noxfile.py", "tasks.py", "dodo.py", ".pdbrc", "pylintrc", ".pylintrc", "mypy.ini", ".flake8",
    "pytest.ini", ".pytest.ini", "requirements.txt", "constraints.txt", "manage.py", "matplotlibrc", "uv.toml",
    "pipfile", "pip.conf", "fabfile.py", "snakefile",
    # builds
    "makefile", "gnumakefile", "justfile", ".justfile", "taskfile.yml", "taskfile.yaml", "containerfile",
    "rakefile", "gemfile", "dockerfile", "compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml",
    "compose.override.yaml", "compose.override.yml", "docker-compose.override.yml", "docker-compose.override.yaml",
    ".circleci", ".rprofile", "lefthook.yml", "package.json", "composer.json", "cmakelists.txt", "build.gradle",
    "build.gradle.kts", "settings.gradle", "flake.nix", "shell.nix", "bunfig.toml", "pom.xml", "build.rs", "build.xml",
    "cargo.toml", ".cargo", ".yarnrc.yml", ".yarnrc", ".pnp.cjs", "mise.toml", ".mise.toml", ".mise.local.toml",
    "procfile", "vagrantfile", "jenkinsfile", "sconstruct", "wscript", "meson.build", "gulpfile.js", "gruntfile.js",
    "directory.build.props", "directory.build.targets", "directory.build.rsp", "directory.packages.props",
    "nuget.config", "settings.gradle.kts", "gradle.properties", "taskfile.dist.yml", "taskfile.dist.yaml",
    "pnpm-workspace.yaml", "package.yaml", ".tool-versions", "go.mod", "go.work",
    "vite.config.js", "vite.config.ts", "vite.config.mjs", "webpack.config.js", "rollup.config.js", "deno.json",
    "babel.config.js", "jest.config.js", "eslint.config.js", "eslint.config.mjs",
    # Jupyter and IPython, which look for them in the current folder
    *(f"{app}_config.{kind}" for kind in ("py", "json", "d") for app in (
        "jupyter", "jupyter_server", "jupyter_lab", "jupyter_notebook", "jupyter_nbconvert", "ipython",
        "ipython_kernel",
    )),
})  # fmt: skip
_SUFFIXES = (".pth", ".code-workspace", ".desktop", ".csproj", ".fsproj", ".vbproj", ".vcxproj", ".sln")
_OF_ENVIRONMENTS = frozenset({"pyvenv.cfg", "conda-meta"})
_OF_REPOSITORIES = frozenset({"HEAD", "objects", "refs"})
_PACKAGES = frozenset({"bin", "lib", "lib64", "scripts", "include", "share", "etc", *_OF_ENVIRONMENTS})
_MAX_ENTRIES = 200_000


def is_protected(name: str) -> bool:
    """Return whether a file or folder of this name is run, imported or obeyed by programs outside the sandbox.

    Args:
        name: The last component of a path; upper and lower case count as the same.

    Example:
        >>> is_protected("conftest.py"), is_protected("CONFTEST.PY"), is_protected("report.csv")
        (True, True, False)
    """
    low = name.casefold()
    return low in _NAMES or low.endswith(_SUFFIXES) or low.rstrip(".0123456789").endswith(".so")


def is_environment(names: Collection[str]) -> bool:
    """Return whether a folder is a Python environment, whose programs and packages are used outside the sandbox.

    Args:
        names: Of all that lies in it.
    """
    return not _OF_ENVIRONMENTS.isdisjoint(names)


def is_environment_entry(name: str) -> bool:
    """Return whether an entry of such a folder is the environment's: others are of a project that it was made in.

    Args:
        name: The entry's; upper and lower case count as the same.
    """
    return name.casefold() in _PACKAGES


def protected_below(
    folder: str,
    *,
    known: tuple[int, int] | None = None,
    unlisted: list[str] | None = None,
    closed: list[str] | None = None,
) -> Iterator[tuple[str, dict[str, tuple[int, int]]]]:
    """Yield the protected files and folders below a folder, in no order; what is in such a folder is left out.

    Python environments and git's repositories are protected whole, whatever they are called; of a folder that is a
    repository itself, the entries that make it one.

    Each comes as its path, and device and number by path: of the folder, of those on the way, and its own.

    Folders are opened one below the other, without following links, so what is yielded was in this folder then.

    Args:
        folder: Absolute, no link itself; links below are returned, not followed. One that is missing, or a file, holds
            nothing; so does one of another user that this one may not pass.
        known: Device and number that the folder must have; None: any.
        unlisted: Takes the paths of folders below that can't be listed; None: one is an error.
        closed: Takes the paths of what is not protected and closed to all but its owner, who is no kernel's user.

    Raises:
        OverflowError: there are more than 200 000 files and folders.
        PermissionError: EPERM, the folder is not the one that is known; EACCES, it, or one below, can't be listed.
    """
    left = _MAX_ENTRIES
    try:
        at = open_folder(None, folder, listed=True)
    except OSError as error:
        if known is not None and _device_and_inode(folder) != known:
            raise folder_replaced_error(folder) from None
        check_unlisted(error, folder)
        return

    def refused(above: At, name: str, error: OSError) -> None:
        try:
            check_unlisted(error, name, at=above)
        except PermissionError as found:
            found.filename = os.path.join(here, name)
            if unlisted is None:
                raise
            unlisted.append(found.filename)

    with Descent(at, closed=refused) as way:
        if known is not None and identity(at) != known:
            raise folder_replaced_error(folder)
        chain: list[tuple[str, tuple[int, int]]] = []
        more = True
        while more:
            prefix = way.prefix
            del chain[prefix.count("/") :]
            here = os.path.join(folder, prefix.replace("/", os.sep))
            chain.append((here.rstrip(os.sep) if prefix else folder, identity(way.at)))
            inner = []
            entries = _list_entries(way.at, left, folder)
            left -= len(entries)
            names = [entry.name for entry in entries]
            environment = is_environment(names)
            repository = _OF_REPOSITORIES.issubset(names)
            if prefix and (environment or repository):
                yield chain[-1][0], dict(chain)
                entries = []
            for entry in entries:
                if _is_protected_in(entry, environment=environment) or repository and entry.name in _OF_REPOSITORIES:
                    with contextlib.suppress(FileNotFoundError):  # gone meanwhile
                        about = entry.stat(follow_symlinks=False)
                        path = os.path.join(here, entry.name)
                        yield path, {**dict(chain), path: (about.st_dev, about.st_ino)}
                else:
                    _note_closed(entry, here, closed)
                    if _should_descend(entry, here):
                        inner.append(entry.name)
            more = way.advance(inner)


def _list_entries(at: At, most: int, folder: str) -> list[os.DirEntry[str]]:
    with os.scandir(at) as found:
        entries = list(itertools.islice(found, most + 1))
    if len(entries) > most:
        raise OverflowError(f"{folder}: more than {_MAX_ENTRIES} files and folders")
    return entries


def _should_descend(entry: os.DirEntry[str], here: str) -> bool:
    """Return whether an entry that is not protected is a folder whose path is not too long to be opened."""
    return entry.is_dir(follow_symlinks=False) and len(here) + 1 + len(entry.name) < PATH_MAX


def _note_closed(entry: os.DirEntry[str], here: str, closed: list[str] | None) -> None:
    if closed is not None and _is_closed(entry):
        closed.append(os.path.join(here, entry.name))


def _is_closed(entry: os.DirEntry[str]) -> bool:
    try:
        about = entry.stat(follow_symlinks=False)
    except FileNotFoundError:  # gone meanwhile
        return False
    needed = stat.S_IXOTH if stat.S_ISDIR(about.st_mode) else stat.S_IROTH
    return not about.st_mode & needed and not stat.S_ISLNK(about.st_mode) and about.st_uid not in KERNEL_USERS


def _is_protected_in(entry: os.DirEntry[str], *, environment: bool) -> bool:
    return is_protected(entry.name) or environment and is_environment_entry(entry.name) and not entry.is_symlink()


def _device_and_inode(path: str) -> tuple[int, int] | None:
    try:
        about = os.lstat(path)
    except OSError:
        return None
    return about.st_dev, about.st_ino


def folder_replaced_error(folder: str) -> PermissionError:
    """Return the error of a folder that is not the one that was checked.

    Args:
        folder: Its path.
    """
    return PermissionError(errno.EPERM, "another folder than the one that was checked", folder)
