"""`Place`: what a kernel may see of its session, and what follows from it: its folders, its environment."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tw_autogen.kernel.environment import cache_folder, kernel_environment
from tw_autogen.kernel.launcher.namespaces import HOME
from tw_autogen.kernel.launcher.readable import LISTED
from tw_autogen.kernel.launcher.wall import LANDLOCK, OFF
from tw_autogen.kernel.seatbelt import SEATBELT
from tw_autogen.kernel.settings import KernelSettings


@dataclass(frozen=True)
class Place:
    """What a kernel may see of its session.

    Args:
        folder: Where its code runs.
        read: Files and folders that it may read besides.
        environment: Variables that it has besides.
    """

    folder: Path
    read: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def environment_of(place: Place | None, settings: KernelSettings, level: str, own: Path) -> dict[str, str]:
    """Give a kernel's variables.

    Args:
        place: Its session's; None: they come later.
        settings: What passes.
        level: Its wall: most have a home of their own behind it.
        own: The folder of the kernel's process.
    """
    beside = level in (LANDLOCK, SEATBELT)  # it sees the same folders as the host
    home = None if level == OFF else str(own / "home") if beside else HOME
    found = kernel_environment(os.environ, allowed=settings.environment, own=own, home=home)
    if beside:
        found["TMPDIR"] = str(own / "tmp")
    return {**found, **(place.environment if place else {})}


def assignment_of(place: Place, settings: KernelSettings) -> dict[str, Any]:
    """Give the folders that a kernel may read and write, with links followed."""

    def real(paths: tuple[str, ...]) -> list[str]:
        found = [(os.path.expanduser(one), LISTED if one.endswith(LISTED) else "") for one in paths]
        return [f"{os.path.realpath(one)}{mark}" for one, mark in found if os.path.exists(one)]

    return {
        "folder": str(place.folder),
        "read": real((*settings.read, *place.read)),
        "write": [str(place.folder), *real(settings.write)],
    }


def furnish(own: Path) -> None:
    """Make the folders that code behind a wall has instead of the user's, with matplotlib's list of fonts.

    Args:
        own: The folder of a kernel's process; new, because links that code left there would be followed.

    Raises:
        FileExistsError: it is not new.
    """
    for name in ("home", "tmp", "matplotlib"):
        (own / name).mkdir()
    for fonts in (cache_folder(os.environ) / "matplotlib").glob("fontlist-*.json"):
        with contextlib.suppress(OSError):
            shutil.copyfile(fonts, own / "matplotlib" / fonts.name, follow_symlinks=False)
