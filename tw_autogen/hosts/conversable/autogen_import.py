"""Imports the package `autogen`, or says in one sentence why that can't be, and which command fixes it."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, version
from types import ModuleType

from tw_autogen.errors import HostError

INSTALL = 'pip install "tw-autogen[autogen]"'
_OWNERS = ("ag2", "autogen", "autogen-agentchat", "pyautogen")
"""The distributions that bring a package `autogen`, or did; `packages_distributions` would read all that are there."""


@cache
def import_autogen() -> ModuleType:
    """Import the one `autogen` that is installed.

    Raises:
        HostError: there is none, two distributions own the folder, or what is there has no `ConversableAgent`.
    """
    owners = _installed_owners()
    if len(owners) > 1:
        raise mixed_error(owners)
    try:
        autogen = importlib.import_module("autogen")
    except ModuleNotFoundError as error:
        if error.name != "autogen":
            raise
        raise missing_error(_version("pyautogen")) from None
    if not hasattr(autogen, "ConversableAgent"):
        named = f"{owners[0]} " if owners else ""
        raise HostError(f"the installed package `autogen` {named}has no ConversableAgent", command=INSTALL)
    return autogen


def mixed_error(owners: Sequence[str]) -> HostError:
    """Return the error that several distributions own `autogen`, each having overwritten the other's files."""
    return HostError(
        f"the distributions {', '.join(owners)} have overwritten one another's files in the package `autogen`; "
        "remove all of them and install one",
        command=f"pip uninstall -y {' '.join(owners)} && {INSTALL}",
    )


def missing_error(pyautogen: str) -> HostError:
    """Return the error that there is no package `autogen`.

    Args:
        pyautogen: Version of the distribution of that name, which since 0.10 doesn't bring the package; empty if it
            isn't there.
    """
    if pyautogen:
        return HostError(
            f"pyautogen {pyautogen} brings no package `autogen`: since 0.10 it stands for autogen-agentchat. "
            "Install AutoGen's classic line beside it, or use tw_autogen.hosts.agentchat",
            command=INSTALL,
        )
    return HostError("TaskWeaverAgent needs AutoGen, and no package `autogen` is installed", command=INSTALL)


def installed() -> str:
    """Return the installed host's name and version, such as `autogen 0.14.1`."""
    owners = _installed_owners()
    return f"{owners[0]} {_version(owners[0])}" if owners else f"autogen {import_autogen().__version__}"


def _installed_owners() -> list[str]:
    return [name for name in _OWNERS if _provides_autogen(name)]


def _provides_autogen(name: str) -> bool:
    try:
        files = distribution(name).files or ()
    except PackageNotFoundError:
        return False
    return any(file.as_posix() == "autogen/__init__.py" for file in files)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
