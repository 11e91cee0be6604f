"""Run a role's Python; find the line of it that an error came from; take an object for a role."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from tw_autogen.errors import RoleSpecError
from tw_autogen.role.role import Role
from tw_autogen.trusted_files import SourceLoader, guard_imports, trusted_files_for

_LOADING = threading.RLock()


def load_source(source: Path, *, builtins: Mapping[str, Any] | None = None) -> ModuleType:
    """Run a role's Python again, as a package of its folder: `from .pages import …` finds what lies beside it.

    Where the folder is trusted by a hash, this file and what it imports from its folder, now and later, must be as they
    were hashed.

    Args:
        source: The file.
        builtins: What its code sees as builtins, an `__import__` of its own for instance; None: the usual ones.

    Raises:
        RoleSpecError: there is no such file, or it raised; names file and line.
    """
    name, files = module_name(source), trusted_files_for(source)
    loader = SourceLoader(name, str(source), files)
    spec = importlib.util.spec_from_file_location(
        name, source, loader=loader, submodule_search_locations=[str(source.parent)]
    )
    if spec is None or not source.exists():
        raise RoleSpecError("there is no such file", path=source)
    guard_imports(source.parent, files)
    with _LOADING:
        for loaded in [one for one in list(sys.modules) if one == name or one.startswith(f"{name}.")]:
            del sys.modules[loaded]
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        if builtins is not None:
            vars(module)["__builtins__"] = builtins
        try:
            loader.exec_module(module)
        except (Exception, SystemExit) as error:  # foreign code: whatever it raises
            del sys.modules[name]
            line = getattr(error, "lineno", None) or line_in(error, source)
            raise RoleSpecError(f"{type(error).__name__}: {error}", path=source, line=line) from error
    return module


def module_name(source: Path) -> str:
    """Return the name of the module that a role's Python is loaded as."""
    return f"tw_autogen_role_{source.stem}_{hashlib.sha256(str(source.resolve()).encode()).hexdigest()[:8]}"


def line_in(error: BaseException, source: Path) -> int | None:
    """Return the last line of this file that the error passed through.

    Args:
        error: With its traceback.
        source: A Python file.
    """
    frames = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in frames if Path(frame.f_code.co_filename) == source]
    return lines[-1] if lines else None


def as_role(made: Any) -> Role:
    """Take an object for a role: with a name, an intro and a `reply` it need not inherit from `Role`.

    What has no `close` is given one that does nothing.

    Raises:
        RoleSpecError: something is missing, or `reply` can't be called as a session does; names its class.
    """
    missing = [key for key in ("name", "intro", "reply") if not hasattr(made, key)]
    if missing:
        needed = ", ".join(f"`{key}`" for key in missing)
        raise RoleSpecError(f"is no role: it has no {needed}", path=f"{type(made).__name__} {made!r}")
    if problem := _reply_problem(made.reply):
        message = f"{problem}; write `def reply(self, memory, **kwargs)`"
        raise RoleSpecError(message, path=f"{type(made).__name__} {made!r}")
    if not hasattr(made, "close"):
        made.close = lambda: None
    role: Role = made
    return role


def _reply_problem(reply: Any) -> str:
    """Return why a session can't call it as `reply(memory, turn=…)`; empty if it can, or if that can't be read."""
    if inspect.iscoroutinefunction(inspect.unwrap(reply)):
        return "its `reply` is asynchronous, and a session doesn't await it"
    try:
        inspect.signature(reply).bind(None, turn=None)
    except TypeError as error:
        return f"its `reply` can't be called with `turn=`: {error}"
    except ValueError:  # no function of Python
        pass
    return ""
