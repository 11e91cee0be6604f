"""What is wrong with plugins, found without running them: in their YAML, their Python, what they import and hold."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tw_autogen.errors import ConfigError, PluginLoadError
from tw_autogen.plugin.decorated_functions import SUFFIX
from tw_autogen.plugin.folder import YAMLS, read_file
from tw_autogen.plugin.import_check import missing_imports, network_imports
from tw_autogen.plugin.plugin_finder import check_source, renamed_parameters
from tw_autogen.plugin.source import decorated_in, parse_source, tests_in
from tw_autogen.plugin.spec import PluginSpec
from tw_autogen.secret_masking import is_secret


@dataclass(frozen=True)
class Flaw:
    """One thing that is wrong with a plugin, for its author.

    Args:
        path: The file.
        what: The problem.
        remedy: What to do about it.
        level: `warning` is for what works all the same.
        line: In that file, where it is known.
        unfit: The plugin can't be loaded.
    """

    path: Path
    what: str
    remedy: str
    level: Literal["error", "warning"] = "error"
    line: int | None = None
    unfit: bool = False

    def of(self, spec: PluginSpec) -> Flaw:
        """Return it as a plugin's flaw: what is wrong with one that is not enabled disturbs nobody."""
        if spec.enabled:
            return self
        return replace(self, what=f"{self.what}; {spec.name} is not enabled", level="warning")


def check_files(files: Iterable[Path]) -> tuple[tuple[PluginSpec, ...], tuple[Flaw, ...]]:
    """Check the plugins of YAML and Python files, those that are not enabled too; nothing is run.

    Returns:
        The plugins that can be loaded, and what is wrong, file by file.
    """
    specs: list[PluginSpec] = []
    names: dict[str, Path] = {}
    flaws: list[Flaw] = []
    claimed: set[tuple[str, Path]] = set()
    for path in files:
        try:
            found = read_file(path)
        except ConfigError as error:
            flaws.append(_flaw_of_error(error, path))
            continue
        for spec in found:
            source = spec.source().resolve()
            if path.suffix in YAMLS:
                claimed.add((spec.name, source))
            elif (spec.name, source) in claimed:
                continue
            try:
                checked = check_source(spec)
            except ConfigError as error:
                flaws.append(_flaw_of_error(error, path).of(spec))
                continue
            missing = list(_missing_import_flaws(checked))
            flaws += [
                Flaw(path, line, "call it the same in both", "warning") for line in renamed_parameters(spec, checked)
            ]
            flaws += [flaw.of(spec) for flaw in (*missing, *_spec_flaws(checked))]
            if any(flaw.unfit for flaw in missing):
                continue
            if spec.enabled and spec.name in names:
                what = f"{spec.name} is the name of {names[spec.name]} too"
                flaws.append(Flaw(path, what, "rename one of the two"))
                continue
            specs.append(checked)
            if spec.enabled:
                names[spec.name] = path
        if path.suffix == SUFFIX:
            flaws += _unnamed_tests(path)
    return tuple(specs), tuple(flaws)


def _flaw_of_error(error: ConfigError, path: Path) -> Flaw:
    where, line, what = (getattr(error, name, None) for name in ("path", "line", "problem"))
    remedy = "fix the Python, or the YAML beside it" if isinstance(error, PluginLoadError) else "fix the YAML"
    return Flaw(where or path, what or str(error), remedy, line=line, unfit=True)


def _missing_import_flaws(spec: PluginSpec) -> Iterator[Flaw]:
    source = spec.source()
    for one in missing_imports(source):
        remedy = f"pip install what brings {one.name}, for the Python in which the plugin runs"
        what = f"{spec.name} imports {one.name}, which is not installed"
        if one.name.startswith("taskweaver."):
            what = f"{spec.name} imports {one.name}, which has no counterpart here"
            remedy = "copy what it uses of it into a module beside the plugin"
        if one.at_once:
            yield Flaw(source, what, remedy, line=one.line, unfit=True)
        else:
            yield Flaw(source, f"{what}; calls will fail", remedy, "warning", one.line)


def _spec_flaws(spec: PluginSpec) -> Iterator[Flaw]:
    path = spec.path or spec.source()
    if spec.runs_in == "kernel":
        for key, value in _flat_settings(spec.configurations):
            if is_secret(key.rpartition(".")[2], value):
                yield Flaw(
                    path,
                    f"configurations: {key} holds a secret, and {spec.name} runs in the kernel, where generated code "
                    "can read it",
                    "add `runs_in: host` to the YAML, and keep the secret in an environment variable",
                )
        tree = parse_source(spec.source())
        yield from _out_of_reach(spec, tree)
        for name, line in _secret_names(tree):
            yield Flaw(
                spec.source(),
                f"{name} holds a secret, and {spec.name} runs in the kernel, where generated code can read it",
                "let it run in the host, and keep the secret in an environment variable",
                line=line,
            )
    for parameter in spec.parameters:
        if parameter.type == "Any":
            where = "annotate it" if path.suffix == SUFFIX else "add `type:` to it"
            yield Flaw(path, f"{spec.name}: a model is not told the type of {parameter.name}", where, "warning")


def _out_of_reach(spec: PluginSpec, tree: ast.Module) -> Iterator[Flaw]:
    """Find what a plugin in the kernel may use and can't reach: the network, and files by the place of its own."""
    for module, line in itertools.islice(network_imports(tree), 1):
        what = f"{spec.name} imports {module} and runs in the kernel, whose code reaches no network"
        remedy = "if it uses the network, let it run in the host (`runs_in: host`), or set `kernel.allow_network`"
        yield Flaw(spec.source(), what, remedy, "warning", line)
    if line := _line_above_folder(tree):
        what = f"{spec.name} may read files outside of its folder, and runs in the kernel, whose code may not"
        remedy = "put them beside the plugin, name their folder in `kernel.read`, or let it run in the host"
        yield Flaw(spec.source(), what, remedy, "warning", line)


def _line_above_folder(tree: ast.Module) -> int:
    """Return the line in which a file goes up from the folder of its own place (`__file__`); 0 if it does not."""
    nodes = list(ast.walk(tree))
    if not any(isinstance(node, ast.Name) and node.id == "__file__" for node in nodes):
        return 0
    return min((node.lineno for node in nodes if isinstance(node, ast.expr) and _goes_up(node)), default=0)


def _goes_up(node: ast.expr) -> bool:
    """Return whether an expression is the parent of a folder: `x.parent.parent`, `dirname(dirname(x))`, `"../x"`."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and ".." in re.split(r"[/\\]", node.value)
    if isinstance(node, ast.Attribute):
        inner = getattr(node.value, "attr", "")
        return node.attr in ("parents", "pardir") or (node.attr == "parent" and inner == "parent")
    outer = _called_name(node)
    return outer == "dirname" and isinstance(node, ast.Call) and any(_called_name(one) == outer for one in node.args)


def _called_name(node: ast.expr) -> str:
    function = node.func if isinstance(node, ast.Call) else None
    return str(getattr(function, "attr", None) or getattr(function, "id", ""))


def _secret_names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the names that a file gives secrets to, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name) and is_secret(target.id, node.value.value):
                    yield target.id, target.lineno


def _flat_settings(plain: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in plain.items():
        if isinstance(value, Mapping):
            yield from _flat_settings(value, f"{prefix}{key}.")
        elif isinstance(value, list):
            yield from ((f"{prefix}{key}", one) for one in value)
        else:
            yield f"{prefix}{key}", value


def _unnamed_tests(path: Path) -> Iterator[Flaw]:
    """Find the tests in a file of several functions that are for none of them."""
    tree = parse_source(path)
    names = {function.name for function, _ in decorated_in(tree, path)}
    for test in tests_in(tree) if len(names) > 1 else ():
        taken = (*test.args.posonlyargs, *test.args.args, *test.args.kwonlyargs)
        if not names & {one.arg for one in taken}:
            yield Flaw(
                path,
                f"{test.name} is a test of none of this file's plugins, so it is never run",
                f"name its parameter for the plugin that it tests: {', '.join(sorted(names))}",
                line=test.lineno,
            )
