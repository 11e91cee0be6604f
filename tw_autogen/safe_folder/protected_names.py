"""Names that programs outside the sandbox run, import or obey when they find them in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator

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


def protected_below(folder: str, *, most_entries: int = 200_000) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the protected files and folders below a folder, in no order; what is in such a folder is left out.

    Args:
        folder: Absolute; links are returned, not followed.
        most_entries: How many files and folders are looked at.

    Raises:
        OverflowError: there are more than `most_entries`.
    """
    left, folders = most_entries, [folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for one in entries:
                    left -= 1
                    if left < 0:
                        raise OverflowError(f"{folder}: more than {most_entries} files and folders")
                    if is_protected(one.name):
                        yield one.path, one.stat(follow_symlinks=False)
                    elif one.is_dir(follow_symlinks=False):
                        folders.append(one.path)
        except OSError:  # gone meanwhile, or closed to this user
            continue
