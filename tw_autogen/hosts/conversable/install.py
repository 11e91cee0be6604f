"""Imports the package `autogen`, or says in one sentence why that can't be, and which command mends it."""

from __future__ import annotations

import importlib
from importlib.metadata import packages_distributions
from types import ModuleType

from tw_autogen.errors import HostError

INSTALL = 'pip install "tw-autogen[autogen]"'


def import_autogen() -> ModuleType:
    """Import the one `autogen` that is installed.

    Raises:
        HostError: there is none, two distributions own the folder, or what is there has no `ConversableAgent`.
    """
    owners = sorted(set(packages_distributions().get("autogen", ())))
    if len(owners) > 1:
        raise HostError(
            f"the distributions {', '.join(owners)} have overwritten one another's files in the package `autogen`; "
            "remove all of them and install one",
            command=f"pip uninstall -y {' '.join(owners)} && {INSTALL}",
        )
    try:
        autogen = importlib.import_module("autogen")
    except ModuleNotFoundError as error:
        if error.name != "autogen":
            raise
        raise HostError(
            "TaskWeaverAgent needs AutoGen, and no package `autogen` is installed", command=INSTALL
        ) from None
    if not hasattr(autogen, "ConversableAgent"):
        named = f"{owners[0]} " if owners else ""
        raise HostError(f"the installed package `autogen` {named}has no ConversableAgent", command=INSTALL)
    return autogen
