"""A plugin's Python as text: read without being run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from tw_autogen.errors import PluginLoadError, path_suggestion
from tw_autogen.python_source import check_compiles, parse
from tw_autogen.trusted_files import read_text

Function = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEEPEST = 300
_SHORT_CHARS, _SHORT_LEVELS = 60, 150  # `-` is one level; no character is more than two and a half
_PACKAGES = ("tw_autogen.plugin", "taskweaver.plugin")


def read_source(path: Path, wanted_by: str = "") -> str:
    """Return the text of a Python file.

    Args:
        path: The file.
        wanted_by: Who expects it there, in words, for where it is missing.

    Raises:
        PluginLoadError: it is missing, not UTF-8, or changed since its folder was trusted.
    """
    try:
        return read_text(path)
    except OSError as error:
        expects = f"; {wanted_by} expects the plugin's Python there" if wanted_by else ""
        near = path_suggestion(path) if isinstance(error, FileNotFoundError) else ""
        raise PluginLoadError(f"cannot be read ({error.strerror or error}){expects}{near}", path=path) from error
    except UnicodeDecodeError as error:
        raise PluginLoadError(f"not UTF-8 text: {error}", path=path) from error


def parse_source(path: Path, *, text: str | None = None) -> ast.Module:
    """Parse a Python file.

    Args:
        path: The file.
        text: What it holds; None: it is read.

    Raises:
        PluginLoadError: it is missing, or no Python; names file and line.
    """
    text = read_source(path) if text is None else text
    try:
        tree = _parse_cached(text, str(path))
    except SyntaxError as error:
        raise PluginLoadError(f"not valid Python: {error.msg}", path=path, line=error.lineno) from error
    except (RecursionError, MemoryError) as error:
        raise PluginLoadError(f"nested more than {_DEEPEST} deep; write it in more statements", path=path) from error
    except ValueError as error:  # a NUL in it
        raise PluginLoadError(f"not valid Python: {error}", path=path) from error
    return tree


@lru_cache(maxsize=2)  # a plugin's file is asked for by several checks, one after the other
def _parse_cached(text: str, path: str) -> ast.Module:
    tree = parse(text, path)
    level, nodes = 0, list[ast.AST]([tree])
    while nodes := [inner for node in nodes for inner in ast.iter_child_nodes(node)]:
        level += 1
        if level + _SHORT_LEVELS <= _DEEPEST:
            nodes = [node for node in nodes if not _is_short(node)]
        if level > _DEEPEST:  # those who walk through it call themselves
            raise RecursionError
    check_compiles(tree, path)
    return tree


def _is_short(node: Any) -> bool:
    """Return whether a node has too few characters to be nested `_SHORT_LEVELS` deep."""
    start = getattr(node, "lineno", None)
    if start is None:
        return not node._fields  # such as `Load`
    return bool(start == node.end_lineno and node.end_col_offset - node.col_offset <= _SHORT_CHARS)


def statements_in(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements directly in the blocks of a node, in order; expressions are not walked through.

    Args:
        node: A module, a statement, or a part of one that has a block, such as an `except`.
    """
    for block in ("body", "handlers", "orelse", "finalbody", "cases"):
        for one in getattr(node, block, None) or ():
            if isinstance(one, ast.stmt):
                yield one
            else:  # an `except` or a `case`
                yield from one.body


def last_word(node: ast.expr) -> str:
    """Return `register_plugin` for `@register_plugin`, `@plugin.register_plugin` and `@register_plugin()`."""
    node = _decorator_target(node)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def registered_in(tree: ast.Module) -> list[ast.ClassDef | Function]:
    """Return the classes and functions with `@register_plugin`."""
    return [node for node in _with_decorator("register_plugin", tree) if isinstance(node, (ast.ClassDef, *_FUNCTIONS))]


@lru_cache(maxsize=2)  # whether there are some is asked before which
def decorated_in(tree: ast.Module, path: Path) -> tuple[tuple[Function, ast.expr], ...]:
    """Return the functions with `@plugin`, each with that decorator.

    Args:
        tree: The file, parsed.
        path: Its path, for messages.

    Raises:
        PluginLoadError: a class has it, or it is not the decorator but the module of that name.
    """
    found: list[tuple[Function, ast.expr]] = []
    for node in tree.body:
        for decorator in getattr(node, "decorator_list", ()):
            if not _is_plugin(decorator, tree):
                continue
            if not isinstance(node, _FUNCTIONS):
                raise PluginLoadError(
                    "@plugin stands on functions; a class takes @register_plugin, and a YAML beside its file",
                    path=path,
                    line=decorator.lineno,
                )
            if _is_module(decorator, tree):
                raise PluginLoadError(
                    "`plugin` is a module here, no decorator; write `from tw_autogen.plugin import plugin`",
                    path=path,
                    line=decorator.lineno,
                )
            found.append((node, decorator))
    return tuple(found)


def tests_in(tree: ast.Module) -> list[Function]:
    """Return the functions with `@test_plugin`."""
    return [node for node in _with_decorator("test_plugin", tree) if isinstance(node, _FUNCTIONS)]


def _with_decorator(name: str, tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the classes and functions with a decorator, also where it was imported by another name."""
    names = {name, *(here for _, original, here in _from_imports(tree) if original == name)}
    for node in tree.body:
        if any(last_word(one) in names for one in getattr(node, "decorator_list", ())):
            yield node


@lru_cache(maxsize=4)  # asked for each decorator of the file that is being read
def _from_imports(tree: ast.Module) -> tuple[tuple[str, str, str], ...]:
    """Return module, name and the name here of all that `from … import …` brings."""
    found: list[tuple[str, str, str]] = []
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ImportFrom):
            found += [(node.module or "", name.name, name.asname or name.name) for name in node.names]
        waiting += statements_in(node)
    return tuple(found)


def _is_plugin(decorator: ast.expr, tree: ast.Module) -> bool:
    """Return whether a decorator is ours, or was meant to be: others have a `plugin` too."""
    target = _decorator_target(decorator)
    if isinstance(target, ast.Attribute):
        return _dotted_name(target) in {f"{package}.plugin" for package in (*_PACKAGES, "plugin")}
    here = getattr(target, "id", None)
    return any(
        name == here and original == "plugin" and module in (*_PACKAGES, "tw_autogen")
        for module, original, name in _from_imports(tree)
    )


def _is_module(decorator: ast.expr, tree: ast.Module) -> bool:
    target = _decorator_target(decorator)
    return ("tw_autogen", "plugin", getattr(target, "id", "")) in _from_imports(tree)


def _dotted_name(name: ast.expr) -> str:
    """Return a name with its dots, however many; what is before the first one may be no name."""
    parts: list[str] = []
    while isinstance(name, ast.Attribute):
        parts.append(name.attr)
        name = name.value
    return ".".join([getattr(name, "id", ""), *reversed(parts)])


def _decorator_target(decorator: ast.expr) -> ast.expr:
    """Return what a decorator names, without its arguments."""
    return decorator.func if isinstance(decorator, ast.Call) else decorator
