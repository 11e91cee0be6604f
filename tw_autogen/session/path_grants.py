"""What code of a session may read and write outside of its working folder."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tw_autogen.events import Event, HooksMade
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.safe_folder import protected_below

_MAX_HOOKS = 500
"""In one folder; no kernel starts where there are more."""


@dataclass
class Grants:
    """What code of a session may read and write outside of its working folder.

    Args:
        settings: `read` and `write` are the folders and files.
        kernel: Where the session's code runs; None: not a local kernel of this session's own.
    """

    settings: KernelSettings = field(default_factory=KernelSettings)
    kernel: LocalKernel | None = None
    _known: set[str] = field(default_factory=set)

    def may_write(self, folder: str) -> bool:
        """Return whether code may write in all of a folder."""
        real = os.path.realpath(os.path.expanduser(folder))
        return any(Path(real).is_relative_to(one) for one in self._writable_folders)

    def describe(self, user_folder: str, own: Path) -> str:
        """Return in words what code may do in the folder that the user works in.

        Args:
            user_folder: That folder.
            own: The session's own folder, in which code works.
        """
        may = "read and write it" if self.may_write(user_folder) else "read it, but not write there"
        real = Path(user_folder).expanduser().resolve()
        note = (
            f"The User's own folder is {real}. Code can {may}. Names of files in a request that are not in "
            "the working folder are relative to it; code opens them by the whole path."
        )
        if own == real or not own.is_relative_to(real):
            return note
        first = own.relative_to(real).parts[0]
        return f"{note} {first} there holds sessions like this one, no data of theirs: leave it out."

    def show(self, path: Path) -> bool:
        """Allow code to read a file at its place; return False if the kernel has run code: no more can be granted.

        Args:
            path: Absolute, links resolved.
        """
        return self.kernel is not None and self.kernel.show(path)

    def show_if_granted(self, path: Path) -> bool:
        """Do as `show`, but only for a file in a folder that is granted: whoever may exchange it gains nothing.

        Args:
            path: Absolute, links resolved.
        """
        granted = [os.path.realpath(os.path.expanduser(one)) for one in (*self.settings.read, *self.settings.write)]
        return any(path.is_relative_to(one) and str(path) != one for one in granted) and self.show(path)

    def take_new_hooks(self) -> list[str]:
        """Return settings files and hooks that exist since the last call in folders that code may write to.

        The first call returns all that are there. A folder that can't be looked through, or holds more than 500 of
        them, comes itself, each time.
        """
        if not self._writable_folders:
            return []
        own = str(self.kernel.folder) if self.kernel else ""
        found: set[str] = set()
        unknown: list[str] = []
        for folder in self._writable_folders:
            try:
                below = protected_below(folder, unlisted=unknown)
                paths = (path for path, _ in below if not own or not path.startswith(f"{own}/"))
                there = list(itertools.islice(paths, _MAX_HOOKS + 1))
                if len(there) > _MAX_HOOKS:
                    raise OverflowError
                found.update(there)
            except (OverflowError, PermissionError):  # code has done that since it was granted
                unknown.append(folder)
        found |= {path for path in self._known if any(path.startswith(f"{one}/") for one in unknown)}
        new, self._known = found - self._known, found
        return sorted({*new, *unknown})

    def emit_new_hooks(self, round_id: str, emit: Callable[[Event], None]) -> None:
        """Emit an event that names what `take_new_hooks` returns, if that is anything.

        Args:
            round_id: The newest round's.
            emit: Called with the event.
        """
        if hooks := self.take_new_hooks():
            emit(HooksMade(round_id, hooks))

    @property
    def _writable_folders(self) -> list[str]:
        return [os.path.realpath(os.path.expanduser(one)) for one in self.settings.write]
