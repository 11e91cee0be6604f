"""Plugins that are functions with `@plugin` in a Python file: their specs, read without running the file."""

from __future__ import annotations

import ast
import errno
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from tw_autogen.errors import PluginLoadError, nearest
from tw_autogen.plugin.docstring import read_doc
from tw_autogen.plugin.signature import parameters_of, result_of, signature_in
from tw_autogen.plugin.source import Function, decorated_in, parse_source, read_source
from tw_autogen.plugin.spec import PluginSpec, limit_problem
from tw_autogen.trusted_files import read_content, trusted_files_for

SUFFIX = ".py"
_OPTIONS: dict[str, tuple[type, ...]] = {
    "runs_in": (str,),
    "examples": (str,),
    "required": (bool,),
    "plugin_only": (bool,),
    "calls": (int,),
    "seconds": (int, float),
}


def read_functions(path: Path | str) -> tuple[PluginSpec, ...]:
    """Return a spec for each function of a file with `@plugin`, in the file's order.

    Raises:
        PluginLoadError: the file is missing, no Python, or has no such function; one has no docstring, parameters that
            code can't name, or options that are no plain values. Names file and line.

    Example:
        for spec in read_functions("my_plugins.py"):
            print(spec.stub())
    """
    path = Path(path)
    text = read_source(path)
    found = decorated_in(parse_source(path, text=text), path)
    if not found:
        raise PluginLoadError(
            "no function here has the decorator @plugin (`from tw_autogen.plugin import plugin`); "
            "a class or function with @register_plugin is named by the YAML beside it",
            path=path,
        )
    specs = [_read_spec(function, decorator, path) for function, decorator in found]
    for index, (function, _) in enumerate(found):
        if function.name in [one.name for one in specs[:index]]:
            raise PluginLoadError(f"there are two functions {function.name!r}", path=path, line=function.lineno)
    return tuple(replace(spec, text=text, files=trusted_files_for(path)) for spec in specs)


_DECORATOR = re.compile(rb"^[^\n@]*@[^\n]*\bplugin\b|\bplugin[\s\\]+as\b|@[\s\\(]*[\n\\]", re.MULTILINE)


def holds_functions(path: Path) -> bool:
    """Return whether a file has functions with `@plugin`, or was meant to; one that can't is not parsed."""
    try:
        text = read_content(path)
    except OSError as error:
        return error.errno in (errno.EFBIG, errno.EPERM)  # told when it is read; EPERM: not as it was hashed
    if b"@" not in text or not _DECORATOR.search(text):
        return False
    try:
        return bool(decorated_in(parse_source(path, text=text.decode("utf-8-sig", "replace")), path))
    except PluginLoadError:  # told when it is read
        return b"@plugin" in text


def _read_spec(function: Function, decorator: ast.expr, path: Path) -> PluginSpec:
    options = _decorator_options(decorator, path)
    doc = read_doc(ast.get_docstring(function))
    line = function.lineno
    if not doc.description:
        raise PluginLoadError(f"{function.name}: say in a docstring what it does", path=path, line=line)
    if options.get("runs_in", "kernel") not in ("kernel", "host"):
        raise PluginLoadError(
            f"{function.name}: runs_in: expected 'kernel' or 'host', found {options['runs_in']!r}", path=path, line=line
        )
    if isinstance(function, ast.AsyncFunctionDef) and options.get("runs_in") != "host":
        raise PluginLoadError(
            f'{function.name}: an async function runs in the host: @plugin(runs_in="host")', path=path, line=line
        )
    if problem := limit_problem(options.get("calls"), options.get("seconds")):
        raise PluginLoadError(f"{function.name}: {problem}; leave it out for no limit", path=path, line=line)
    options["examples"] = options.get("examples") or doc.examples
    signature = signature_in(function)
    try:
        parameters = parameters_of(signature, doc)
    except ValueError as error:
        raise PluginLoadError(f"{function.name}: {error}; write its parameters out", path=path, line=line) from None
    return PluginSpec(
        name=function.name,
        description=doc.description,
        parameters=parameters,
        returns=result_of(signature, doc),
        code=path.stem,
        path=path,
        **options,
    )


def _decorator_options(decorator: ast.expr, path: Path) -> dict[str, Any]:
    if not isinstance(decorator, ast.Call):
        return {}
    if decorator.args:
        raise PluginLoadError(
            '@plugin takes its options by name, such as @plugin(runs_in="host")', path=path, line=decorator.lineno
        )
    options = {}
    for keyword in decorator.keywords:
        if keyword.arg not in _OPTIONS:
            message = f"unknown option {keyword.arg!r}{nearest(str(keyword.arg), _OPTIONS)}"
            raise PluginLoadError(f"@plugin: {message}", path=path, line=decorator.lineno)
        try:
            value = ast.literal_eval(keyword.value)
        except (TypeError, ValueError):
            raise PluginLoadError(
                f"@plugin: write {keyword.arg} out as a value: the file is read without being run",
                path=path,
                line=keyword.value.lineno,
            ) from None
        if value is None:
            continue
        known = _OPTIONS[keyword.arg]
        if not isinstance(value, known) or (bool not in known and isinstance(value, bool)):
            names = " or ".join(kind.__name__ for kind in known)
            raise PluginLoadError(
                f"@plugin: {keyword.arg}: expected {names}, got {value!r}", path=path, line=keyword.value.lineno
            )
        options[keyword.arg] = value
    return options
