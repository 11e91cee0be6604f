"""Policies by name (`default`, `strict`, `plugins-only`, `no-shell`), and policies of one's own from YAML."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tw_autogen.code_interpreter.bans import KERNEL, PROCESSES, STRICT_FUNCTIONS, STRICT_MODULES, WAITING
from tw_autogen.code_interpreter.policy import Policy
from tw_autogen.conversation.plain import read_mapping
from tw_autogen.errors import ConfigError, PolicyError, nearest

_SHELL_BANS = (PROCESSES, WAITING, KERNEL)

POLICIES: Mapping[str, Policy] = {
    "default": Policy(),
    "strict": Policy(
        modules=STRICT_MODULES,
        blocked_functions=Policy().blocked_functions | STRICT_FUNCTIONS,
        magics=frozenset(),
        dynamic=False,
    ),
    "plugins-only": Policy(modules=frozenset(), magics=frozenset(), dynamic=False, only_plugins=True),
    "no-shell": Policy(
        blocked_modules=frozenset().union(*(ban.modules for ban in _SHELL_BANS)),
        blocked_functions=frozenset().union(*(ban.functions for ban in _SHELL_BANS)),
        parts=frozenset({"multiprocessing.cpu_count"}),
    ),
}
"""What each name means.

`default`: data work in the session's folder, and nothing that leaves it; `open` and `pathlib` are allowed, because the
sandbox confines them. `strict`: imports from a list, no files, nothing that only shows when it runs. `plugins-only`:
calls of plugins, literals and variables. `no-shell`: no processes, no shell, nobody at the keyboard; all else is
left to the sandbox.
"""

_SETS = ("modules", "blocked_modules", "parts", "functions", "blocked_functions", "magics")
_FLAGS = ("shell", "dynamic", "only_plugins")
_KEYS = ("base", *_SETS, *_FLAGS)


def find_policy(wanted: str | Path, *, folder: Path | None = None) -> Policy:
    """Give the policy of a name, or read one from a YAML file.

    Args:
        wanted: A name in `POLICIES`, or a path that ends in `.yaml` or `.yml`.
        folder: Where a relative path begins; None: the current folder.

    Raises:
        ConfigError: there is no such policy.
        PolicyError: its YAML is wrong.

    Example:
        >>> find_policy("strict").dynamic
        False
    """
    name = str(wanted).strip()
    if name.endswith((".yaml", ".yml")):
        return read_policy((folder or Path()) / name)
    known = name.replace("_", "-")
    if known not in POLICIES:
        raise ConfigError(
            f"code_interpreter.policy: no policy is called {name!r}{nearest(name, POLICIES)} (a policy of your own "
            "is a path that ends in .yaml)"
        )
    return POLICIES[known]


def read_policy(path: Path | str) -> Policy:
    """Read a policy from YAML.

    The keys are those of `Policy`, but for `install`, which is the kernel's setting, and `base`, the name of the policy
    that all else is taken from. A list replaces the base's; `{add: […], remove: […]}` changes it; `all` for `modules`
    and `functions` lifts the limit.

    Raises:
        PolicyError: naming file, key, and the neighbour that it was mistaken for.
    """
    path = Path(path)
    plain = read_mapping(path, PolicyError)
    for key in plain:
        if key not in _KEYS:
            raise PolicyError(f"unknown key {key!r}{nearest(str(key), _KEYS)}", path=path)
    base = str(plain.get("base", "default"))
    if base not in POLICIES:
        raise PolicyError(f"base: no policy is called {base!r}{nearest(base, POLICIES)}", path=path)
    policy = POLICIES[base]
    changes: dict[str, Any] = {}
    for key, value in plain.items():
        if key in _SETS:
            changes[key] = _names(key, value, getattr(policy, key), path)
        elif key in _FLAGS:
            if not isinstance(value, bool):
                raise PolicyError(f"{key}: expected true or false, found {value!r}", path=path)
            changes[key] = value
    return dataclasses.replace(policy, **changes)


def _names(key: str, value: Any, before: frozenset[str] | None, path: Path) -> frozenset[str] | None:
    """Give one set of names, as a list says it or as the base's with changes."""
    if value == "all" and key in ("modules", "functions"):
        return None
    if isinstance(value, Mapping):
        for word in value:
            if word not in ("add", "remove"):
                raise PolicyError(f"{key}: unknown key {word!r}{nearest(str(word), ('add', 'remove'))}", path=path)
        if before is None:
            raise PolicyError(f"{key}: the base has no list that could be changed; write the whole list", path=path)
        added = _list(f"{key}.add", value.get("add", []), path)
        removed = _list(f"{key}.remove", value.get("remove", []), path)
        unknown = sorted(removed - before)
        if unknown:
            raise PolicyError(f"{key}.remove: {unknown[0]!r} is not in the base's list", path=path)
        return (before | added) - removed
    return _list(key, value, path)


def _list(key: str, value: Any, path: Path) -> frozenset[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) and one.strip() for one in value):
        raise PolicyError(f"{key}: expected a list of names, found {value!r}", path=path)
    return frozenset(one.strip() for one in value)
