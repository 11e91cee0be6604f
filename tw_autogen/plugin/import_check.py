"""What a plugin's Python imports, and which of that is not there; read without being run."""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tw_autogen.errors import PluginLoadError
from tw_autogen.plugin.source import parse_source, statements_in
from tw_autogen.plugin.spec import PluginSpec

_OURS = ("tw_autogen", "taskweaver", "taskweaver.plugin")
_THEIRS = "taskweaver."
_NETWORK = (
    *("urllib.request", "http.client", "xmlrpc.client", "socket", "ssl", "ftplib", "smtplib", "imaplib", "poplib"),
    *("requests", "urllib3", "httpx", "aiohttp", "websockets", "websocket", "paramiko", "boto3", "botocore", "openai"),
    *("anthropic", "psycopg", "psycopg2", "pymysql", "mysql", "pymongo", "redis", "pyodbc", "oracledb", "yfinance"),
)


@dataclass(frozen=True)
class Missing:
    """An import that would fail.

    Args:
        name: The top-level module; of TaskWeaver's, the whole name.
        line: Where it stands.
        at_once: The plugin can't be loaded without it; otherwise it is needed only when the plugin is called.
    """

    name: str
    line: int
    at_once: bool


def missing_imports(path: Path, *, text: str | None = None) -> tuple[Missing, ...]:
    """Return the modules that a file imports and this Python doesn't have, each once.

    Of TaskWeaver there is `taskweaver.plugin`, none of its submodules, whether it is installed or not.

    What a `try` falls back from (its `except` doesn't raise) is not missing; nor is what lies beside the file. What
    stands in an `if` or a `with` need not be imported when the plugin is loaded, so it is not `at_once`. Of a file that
    changes `sys.path` nothing can be said without running it.

    Args:
        path: The file.
        text: What it holds; None: it is read.

    Raises:
        PluginLoadError: the file is missing, or no Python.
    """
    found: dict[str, Missing] = {}
    tree = parse_source(path, text=text)
    imports = list(_imports(tree.body, at_once=True))
    if any(name == "sys" for name, _, _ in imports) and any(map(_is_sys_path, ast.walk(tree))):
        return ()
    for module, line, at_once in imports:
        name = module if module.startswith(_THEIRS) else module.partition(".")[0]
        if name in _OURS or (not module.startswith(_THEIRS) and _is_there(name)):
            continue
        if not (path.with_name(f"{name}.py").exists() or path.with_name(name).is_dir()):
            known = found.get(name)
            if known is None or (at_once and not known.at_once):
                found[name] = Missing(name, line, at_once)
    return tuple(found.values())


def missing_of_taskweaver(spec: PluginSpec) -> tuple[str, ...]:
    """Return a line for each module of TaskWeaver that a plugin imports when it is called, and that is not there."""
    if spec.connect is not None or not spec.path:
        return ()
    missing = missing_imports(spec.source(), text=spec.text)
    return tuple(
        f"{spec.name} imports {one.name}, which has no counterpart here; calls will fail"
        for one in missing
        if one.name.startswith(_THEIRS) and not one.at_once
    )


def network_imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the modules that a file imports and that are for the network or databases, with their lines."""
    for module, line, _ in _imports(tree.body, at_once=True):
        if any(f"{module}.".startswith(f"{one}.") for one in _NETWORK):
            yield module, line


def _is_there(name: str) -> bool:
    if sys.modules.get(name) is not None or name in sys.stdlib_module_names:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):  # a name that no module can have
        return False


def check_imports(spec: PluginSpec, python: str) -> None:
    """Refuse a plugin that can't be loaded because packages are missing.

    Args:
        spec: Checked already.
        python: The interpreter of kernels; nothing is known of another one than this.

    Raises:
        PluginLoadError: names the packages, the file and the line of the first.
    """
    if spec.connect is not None or not spec.path:
        return
    another = os.path.abspath(python) != os.path.abspath(sys.executable)  # environments share what their links lead to
    if spec.runs_in == "kernel" and another:
        return
    needed = [one for one in missing_imports(spec.source(), text=spec.text) if one.at_once]
    if needed:
        names = ", ".join(one.name for one in needed)
        message = f"{spec.name} needs the package{'s' * (len(needed) > 1)} {names}"
        if all(module.name.startswith(_THEIRS) for module in needed):
            message = f"{spec.name} imports {names}, which has no counterpart here"
        raise PluginLoadError(message, path=spec.source(), line=needed[0].line)


def _imports(body: list[ast.stmt], *, at_once: bool) -> Iterator[tuple[str, int, bool]]:
    for node in body:
        if isinstance(node, ast.Import):
            yield from ((name.name, node.lineno, at_once) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module, node.lineno, at_once
            if node.module in ("urllib", "http", "xmlrpc"):
                yield from ((f"{node.module}.{name.name}", node.lineno, at_once) for name in node.names)
        elif isinstance(node, ast.Try):
            caught = not any(isinstance(one, ast.Raise) for handler in node.handlers for one in ast.walk(handler))
            parts = [] if node.handlers and caught else node.body
            yield from _imports([*parts, *node.orelse, *node.finalbody], at_once=at_once)
        elif isinstance(node, ast.If) and any(map(_never_holds, ast.walk(node.test))):
            yield from _imports(node.orelse, at_once=at_once)
        elif isinstance(node, ast.If):  # of a version or a platform, for instance
            yield from _imports([*node.body, *node.orelse], at_once=False)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.With):  # a `with` may suppress errors
            yield from _imports(node.body, at_once=False)
        else:
            yield from _imports(list(statements_in(node)), at_once=at_once)


def _never_holds(node: ast.AST) -> bool:
    """Return whether a condition has a part that is false where a plugin is loaded."""
    of_types = "TYPE_CHECKING" in (getattr(node, "id", ""), getattr(node, "attr", ""))
    return of_types or getattr(node, "value", None) == "__main__"


def _is_sys_path(node: ast.AST) -> bool:
    if not isinstance(node, ast.Attribute) or node.attr != "path":
        return False
    return isinstance(node.value, ast.Name) and node.value.id == "sys"
