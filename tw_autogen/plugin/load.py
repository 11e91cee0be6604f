"""Finds the plugins that are wanted, and checks each one's Python against its YAML before anything runs."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from tw_autogen.errors import ConfigError, PluginLoadError, PluginSpecError, nearest
from tw_autogen.plugin.spec import NO_DEFAULT, Parameter, PluginSpec, read_spec

Wanted = str | Path | PluginSpec
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_SUFFIXES = (".yaml", ".yml")


def find_plugins(wanted: Iterable[Wanted] | Wanted, *, shipped: Path | None) -> tuple[PluginSpec, ...]:
    """Give the specs that are wanted, in that order, each with its Python found and checked; none is run.

    Args:
        wanted: Names of shipped plugins; paths of YAML files; folders of YAML files, or of a TaskWeaver project (its
            `plugins` folder is taken); specs. A plugin that is not enabled is skipped in a folder, but loaded when it
            is named itself. The same file twice counts once.
        shipped: Folder of the shipped plugins; None if there are none.

    Returns:
        The specs; defaults that only the Python knows are filled in, and a parameter to which the Python gives none is
        required, whatever the YAML says.

    Raises:
        PluginSpecError: a YAML is wrong or missing, or two plugins have the same name.
        PluginLoadError: a plugin's Python is missing, is no Python, or does not fit its YAML; names file and line.
        ConfigError: no shipped plugin has that name.
    """
    if isinstance(wanted, (str, Path, PluginSpec)):
        wanted = [wanted]
    found: dict[str, PluginSpec] = {}
    for one in wanted:
        for spec in _specs(one, shipped):
            twin = found.get(spec.name)
            if twin is None:
                found[spec.name] = check_source(spec)
            elif twin.connect and twin.connect is spec.connect:
                continue
            elif twin.path is None or spec.path is None or twin.path.resolve() != spec.path.resolve():
                raise PluginSpecError(
                    f"there is a plugin {spec.name!r} already, from {twin.path or 'Python'}; rename one of the two",
                    path=spec.path or spec.name,
                )
    return tuple(found.values())


def check_source(spec: PluginSpec) -> PluginSpec:
    """Check the Python of a plugin without running it, and complete the spec with the defaults that stand there.

    A plugin that was made from a function stands in no file, and stays as it is.

    Raises:
        PluginLoadError: naming file and line.
    """
    if spec.connect is not None:
        return spec
    path = spec.source()
    tree = _parse(path, spec)
    registered = _registered(tree, path)
    signature = _signature(registered, tree, path)
    if signature is None:  # inherited from elsewhere: only running it would tell
        return spec
    _check_signature(spec, signature, isinstance(registered, ast.ClassDef), path)
    return replace(spec, parameters=tuple(_completed(one, signature.args) for one in spec.parameters))


def _specs(one: Wanted, shipped: Path | None) -> Iterator[PluginSpec]:
    if isinstance(one, PluginSpec):
        yield one
        return
    names = {path.stem: path for path in sorted(shipped.glob("*.yaml"))} if shipped else {}
    if isinstance(one, str) and one in names:
        yield read_spec(names[one])
        return
    path = Path(one).expanduser()
    if path.is_dir():
        yield from (spec for spec in map(read_spec, _yamls(path)) if spec.enabled)
    elif path.is_file() or isinstance(one, Path) or path.suffix in _SUFFIXES or len(path.parts) > 1:
        yield read_spec(path)
    else:
        raise ConfigError(
            f"no shipped plugin is called {one!r}{nearest(str(one), names)}\n"
            "One of your own is named by the path of its YAML file or of its folder."
        )


def _yamls(folder: Path) -> list[Path]:
    plugins = folder / "plugins"
    inner = plugins if plugins.is_dir() else folder
    yamls = sorted(path for path in inner.iterdir() if path.suffix in _SUFFIXES)
    if not yamls and inner is folder:
        raise PluginSpecError("no plugins here: expected *.yaml files, or a folder `plugins` with them", path=folder)
    return yamls


def _parse(path: Path, spec: PluginSpec) -> ast.Module:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        compile(tree, str(path), "exec", dont_inherit=True)  # finds what parsing doesn't, such as a stray `return`
    except OSError as error:
        raise PluginLoadError(
            f"cannot be read ({error.strerror}); {spec.path} expects the plugin's Python there", path=path
        ) from error
    except SyntaxError as error:
        raise PluginLoadError(f"not valid Python: {error.msg}", path=path, line=error.lineno) from error
    except ValueError as error:  # bytes that are not UTF-8, or NUL among them
        raise PluginLoadError(f"not UTF-8 text: {error}", path=path) from error
    return tree


def _registered(tree: ast.Module, path: Path) -> ast.ClassDef | _Function:
    imported = [alias for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names]
    words = {"register_plugin"} | {one.asname or one.name for one in imported if one.name == "register_plugin"}
    found = [
        node
        for node in tree.body
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and any(_last_word(decorator) in words for decorator in node.decorator_list)
    ]
    if not found:
        raise PluginLoadError("no class or function here has the decorator @register_plugin", path=path)
    if len(found) > 1:
        names = ", ".join(node.name for node in found)
        raise PluginLoadError(
            f"@register_plugin stands {len(found)} times ({names}); a file holds one plugin",
            path=path,
            line=found[1].lineno,
        )
    return found[0]


def _last_word(decorator: ast.expr) -> str:
    """Give `register_plugin` for `@register_plugin`, `@plugin.register_plugin` and `@register_plugin()`."""
    if isinstance(decorator, ast.Call):
        decorator = decorator.func
    return decorator.attr if isinstance(decorator, ast.Attribute) else getattr(decorator, "id", "")


def _signature(node: ast.ClassDef | _Function, tree: ast.Module, path: Path) -> _Function | None:
    """Find what is called: the function, or the class's `__call__`, also in a parent class in the same file."""
    if not isinstance(node, ast.ClassDef):
        return node
    classes = {one.name: one for one in tree.body if isinstance(one, ast.ClassDef)}
    for one in node.body:
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) and one.name == "__call__":
            return one
    parents = [_last_word(base) for base in node.bases]
    for name in parents:
        if name in classes and classes[name] is not node:
            return _signature(classes[name], tree, path)
    if all(name in ("Plugin", "object") for name in parents):
        raise PluginLoadError(f"class {node.name} has no `__call__`", path=path, line=node.lineno)
    return None


def _check_signature(spec: PluginSpec, function: _Function, is_method: bool, path: Path) -> None:
    arguments = function.args
    positional = [one.arg for one in (*arguments.posonlyargs, *arguments.args)][int(is_method) :]
    taken = positional + [one.arg for one in arguments.kwonlyargs]
    listed = [one.name for one in spec.parameters]
    problem = ""
    if not (arguments.vararg or arguments.kwarg):
        unknown = [name for name in listed if name not in taken]
        problem = f"has no parameter {unknown[0]!r}" if unknown else ""
    defaults = _defaults(arguments)
    needed = [name for name in taken if name not in listed and defaults[name] is None]
    if not problem and needed:
        problem = f"needs {needed[0]!r}"
    in_yaml = [name for name in listed if name in positional]
    if not problem and in_yaml != [name for name in positional if name in in_yaml]:
        problem = "has its parameters in another order"
    if problem:
        raise PluginLoadError(
            f"`{function.name}({', '.join(taken)})` {problem}; {_file(spec)} lists: {', '.join(listed) or 'none'}",
            path=path,
            line=function.lineno,
        )


def _defaults(arguments: ast.arguments) -> dict[str, ast.expr | None]:
    """Give each parameter's default as it stands there, None for a parameter without."""
    positional = [*arguments.posonlyargs, *arguments.args]
    missing: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    names = [one.arg for one in (*positional, *arguments.kwonlyargs)]
    return dict(zip(names, [*missing, *arguments.defaults, *arguments.kw_defaults], strict=True))


def _completed(parameter: Parameter, arguments: ast.arguments) -> Parameter:
    defaults = _defaults(arguments)
    if parameter.name not in defaults or parameter.required:
        return parameter
    default = defaults[parameter.name]
    if default is None:
        return replace(parameter, required=True, default=NO_DEFAULT)
    try:
        return replace(parameter, default=ast.literal_eval(default))
    except ValueError:  # a name or a call: its value shows only when it runs
        return parameter


def _file(spec: PluginSpec) -> str:
    return spec.path.name if spec.path else "its spec"
