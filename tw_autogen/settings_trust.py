"""Which settings of a folder count, by how far the folder is trusted: a rule a field, and `may_set`."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any

from tw_autogen.errors import SettingsError
from tw_autogen.named_folders import step_out_of
from tw_autogen.setting_values import Setting

PROGRAM_OF_ROLE = ".executable"
"""What the keys of roles end with that name a program."""
_ALWAYS_PATHS = ("plugin.mcp_servers", "embedding.folder")
_RUN_FROM = (*_ALWAYS_PATHS, "kernel.python", "session.roles", "code_interpreter.policy")
MAX_EXAMPLES, MAX_EXAMPLE_BYTES = 25, 256_000
"""Of the examples in a folder that is not trusted: how many count (each is named), and how large they are together."""

_NAME = re.compile(r"[\w.*]{1,64}")
_MAX_ENTRIES = 20_000
"""Of a folder that a setting names, and those in it, which are looked at for links."""
_MAX_NAMES_CHARS = 2000
"""Of the modules and functions that a folder which is not trusted allows or refuses."""


class Trust(IntEnum):
    """How far a folder's settings count."""

    none = 0
    """It is the current folder, which nobody named."""
    named = 1
    """The caller wrote its path: its roles, plugins and what describes them count."""
    full = 2
    """The user trusts it: all counts."""


@dataclass(frozen=True)
class FolderTrust:
    """What a caller said of the folder in which the program stood then: of no other one, wherever it stands later."""

    path: str
    """Empty: it is not trusted."""
    identity: tuple[int, int] = (0, 0)
    """Its device and number."""

    @classmethod
    def of(cls, *, trust: bool) -> FolderTrust:
        """Note the current folder.

        Args:
            trust: Whether it is trusted.
        """
        return cls(os.getcwd(), _current_folder_identity()) if trust else cls("")

    def holds(self) -> bool:
        """Return whether the current folder is trusted, and the same one still."""
        try:
            return bool(self.path) and (os.getcwd(), _current_folder_identity()) == (self.path, self.identity)
        except OSError:  # it was removed
            return False


def _current_folder_identity() -> tuple[int, int]:
    about = os.stat(os.curdir)
    return about.st_dev, about.st_ino


COUNT = {"folder": "count"}
"""Metadata of a setting that any folder may set, but not above what the user's own file says, else the default."""
LIMIT = {"folder": "limit"}
"""A limit that any folder may lower; 0 is no limit."""
LOWER = {"folder": "lower"}
"""A number above 0 that any folder may lower; None is one that the rule does not know, and no folder changes it."""
NARROWER = {"folder": "narrower"}
"""A list of what is allowed, which any folder may shorten; None is all."""
LONGER = {"folder": "longer"}
"""A list of what is refused, which any folder may lengthen."""
OFF = {"folder": "off"}
"""A flag that any folder may clear."""
ON = {"folder": "on"}
"""A flag that any folder may set."""
PROMPT = {"folder": "prompt"}
"""Text for prompts, or a folder of it: any folder may set it where the user's file doesn't, and it is shown by name."""
NAMED = {"folder": "named"}
"""A setting that counts from a folder whose path the caller wrote; a setting without any of these needs trust."""


def may_set(rule: str, value: Any, base: Any, *, own: bool, trust: Trust) -> bool:
    """Return whether a folder's value counts.

    Args:
        rule: The field's metadata `folder`; empty: nothing but a trusted folder may set it.
        value: The folder's value, of the field's type.
        base: The value that holds without it: the user's file's, else the default.
        own: The user's file sets `base`.
        trust: How far the folder is trusted.
    """
    if trust is Trust.full or (trust is Trust.named and rule in ("named", "count")):
        return True
    if rule == "count":
        return bool(0 <= value <= base)
    if rule == "limit":
        return bool(value > 0 and (base <= 0 or value <= base))
    if rule == "lower":
        return value is not None and base is not None and bool(0 < value <= base)
    if rule == "narrower":
        return value is not None and (base is None or set(value) <= set(base)) and _are_names(value, base or ())
    if rule == "longer":
        return set(value) >= set(base) and _are_names(value, base)
    if rule in ("on", "off"):
        return bool(value) is (rule == "on") or value == base
    return rule == "prompt" and not own


def _are_names(values: Iterable[str], known: Iterable[str]) -> bool:
    """Return whether a list adds nothing to what is known but names with dots, few and short: models are told them."""
    added = set(values) - set(known)
    return all(map(_NAME.fullmatch, added)) and sum(map(len, added)) <= _MAX_NAMES_CHARS


def lies_inside(value: Any, folder: Path | None) -> bool:
    """Return whether a path lies in a folder, its links followed; nothing outside of the folder is looked at.

    Args:
        value: A path; empty: it lies nowhere.
        folder: None: nothing lies there.
    """
    return bool(value) and folder is not None and not step_out_of(folder, value)


def leads_out(folder: Path, path: str) -> bool:
    """Return whether a path, or what lies in it if it is a folder, is reached outside of a folder, links followed.

    Folders in it are looked at as well, where plugins and roles may lie, but none of those in them.

    Args:
        folder: The folder.
        path: Absolute, or relative to the folder.
    """
    if step_out_of(folder, path):
        return True
    held = _entries(folder / path)
    inner = [each for one in held if not one.is_symlink() and one.is_dir() for each in _entries(one)]
    many = len(held) + len(inner) > _MAX_ENTRIES  # of which not all are looked at
    return many or any(one.is_symlink() and step_out_of(folder, one) for one in (*held, *inner))


def _entries(folder: Path) -> list[Path]:
    with suppress(OSError):  # what is wrong with it is told when it is used
        return list(itertools.islice(folder.iterdir(), _MAX_ENTRIES + 1))
    return []


def examples_inside(value: Any, folder: Path | None, others: tuple[Path, ...]) -> tuple[Path, ...] | None:
    """Return what a folder of examples holds, if all of it lies in a folder that is not trusted, links followed.

    Args:
        value: The path of the examples.
        folder: That nobody trusts.
        others: Examples that it has besides.

    Returns:
        None if not all of it lies there, or if it is more than such a folder may have, with the others.
    """
    if not lies_inside(value, folder):
        return None
    held: tuple[Path, ...] = ()
    with suppress(OSError):  # what is wrong with it is told when it is read
        held = tuple(sorted(itertools.islice(Path(value).iterdir(), MAX_EXAMPLES + 1)))
    together = {*others, *held}
    inside = len(together) <= MAX_EXAMPLES and all(lies_inside(one, folder) for one in held)
    small = inside and sum(one.stat().st_size for one in together if one.exists()) <= MAX_EXAMPLE_BYTES
    return held if small else None


def whole_path(key: str, setting: Setting) -> Setting:
    """Return a setting of an environment variable, which holds in every folder.

    Args:
        key: Dotted.
        setting: As the variable says it.

    Raises:
        SettingsError: it would take a program, servers, a role or a policy from a place below the current folder.
    """
    if key not in _RUN_FROM and not key.endswith(PROGRAM_OF_ROLE):
        return setting
    setting = replace(setting, value=setting.value.strip())
    for one in map(str.strip, setting.value.split(",") if key == "session.roles" else [setting.value]):
        is_path = one.endswith((".yaml", ".yml")) if key == "code_interpreter.policy" else os.sep in one
        is_json = key == "plugin.mcp_servers" and one.startswith("{")
        if (is_path or key in _ALWAYS_PATHS) and not is_json and not os.path.isabs(os.path.expanduser(one)):
            message = f"{setting.origin}: {one!r} means whatever lies in the current folder; write a whole path"
            raise SettingsError(message, key=key, origin=setting.origin)
    return setting
