"""Print the structure of the package as numbers: `make metrics`.

Counted are, in `tw_autogen/`: lines of code (no blank line, docstring, comment or import), modules, imports past a
package's `__init__`, names on package faces, docstrings that begin with a word of `DIALECT`, documented parameters, and
the files whose functions run for one message after the first one (in the host, and in the kernel).
"""

from __future__ import annotations

import ast
import re
import sys
import tempfile
import threading
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType

from tw_autogen import open_session
from tw_autogen.kernel import LocalKernel
from tw_autogen.testing import ScriptedModel, codes, plans

PACKAGE = Path(__file__).parent.parent / "tw_autogen"
VERIFICATION = {
    "bans", "rules", "names", "name_judge", "judge", "expressions", "magics", "transform", "policies", "policy",
    "verify", "only_plugins", "literals", "visitor", "policy_checker", "syntax",
}  # fmt: skip
DIALECT = {"Give", "Say", "Tell", "Let", "Have", "Put"}
_TRACE = """
import sys
ran = set()
def note(frame, event, _):
    if event == "call" and (name := frame.f_code.co_filename):
        ran.add(name)
sys.setprofile(note)
"""
Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules() -> list[Path]:
    """Return every module of the package."""
    return sorted(path for path in PACKAGE.rglob("*.py") if "_shipped" not in path.parts)


def code_lines(path: Path) -> int:
    """Return the number of a module's lines that hold code other than imports and docstrings."""
    lines = set()
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
                lines.update(range(token.start[0], token.end[0] + 1) if token.string.strip() else ())
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom) or _is_docstring(node):
            assert isinstance(node, ast.stmt)
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def faces() -> dict[str, list[str]]:
    """Return the names that other packages may import, by package: each `__init__` below the first that has `__all__`.

    A package in a package is a face of its own if it has names: the two hosts, which are never imported together,
    `plugin.mcp`, which needs another distribution, and `kernel.guest`, which is what runs elsewhere.
    """
    return {
        ".".join(path.parent.relative_to(PACKAGE).parts): names
        for path in sorted(PACKAGE.rglob("__init__.py"))
        if path.parent != PACKAGE and "_shipped" not in path.parts and (names := _all_of(path))
    }


def past_faces() -> list[str]:
    """Return what is imported from another package and is no name on a face, as `file:line: what; what to do`."""
    found, face = [], faces()
    packages = {path.parent.relative_to(PACKAGE).parts[0] for path in PACKAGE.glob("*/__init__.py")}
    for path in modules():
        own = path.relative_to(PACKAGE).parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            if isinstance(node, ast.Import):
                imported = [(name, "") for name in names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported = [(str(node.module), name) for name in names]
            else:
                continue
            for module, name in imported:
                root, *parts = module.split(".")
                if root != "tw_autogen" or not parts or parts[0] not in packages or parts[0] == own:
                    continue
                package = ".".join(parts)
                if name not in face.get(package, ()):
                    remedy = _instead(name, parts[0], face)
                    found.append(
                        f"{path.relative_to(PACKAGE)}:{node.lineno}: {name or 'the module'} of {module}; {remedy}"
                    )
    return found


def _instead(name: str, package: str, face: Mapping[str, Sequence[str]]) -> str:
    """Return what to import in the place of a name that is on no face.

    Args:
        name: What is imported.
        package: Of which; the first part of its name below `tw_autogen`.
        face: The names on faces by package.
    """
    homes = [one for one in face if name in face[one] and one.split(".")[0] == package]
    if homes:
        return f"from tw_autogen.{homes[0]} import {name}"
    return f"tw_autogen.{package} has on its face: {', '.join(face.get(package, ()))}"


def face_names() -> int:
    """Return how many names all faces hold; names that stand on two are counted twice."""
    return sum(map(len, faces().values()))


def _all_of(path: Path) -> list[str]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "__all__" for target in node.targets):
            return list(ast.literal_eval(node.value))
    return []


def functions() -> Iterator[tuple[Path, Function]]:
    """Yield every function of the package with its module."""
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, Function):
                yield path, node


def dialect() -> list[str]:
    """Return the docstrings that begin with a word of `DIALECT`, as `file:line`."""
    return [
        f"{path.relative_to(PACKAGE)}:{node.lineno}: {text.splitlines()[0]}"
        for path, node in functions()
        if (text := ast.get_docstring(node)) and text.split()[0].strip("`.,") in DIALECT
    ]


def undocumented() -> tuple[list[str], int]:
    """Return the public functions of two or more parameters that do not document each, and how many such there are.

    A subcommand documents its parameters in the help of its options, which `tests/cli/test_main.py` holds.
    """
    missing, count = [], 0
    for path, node in functions():
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        names = [argument.arg for argument in arguments if argument.arg not in ("self", "cls")]
        if node.name.startswith("_") or len(names) < 2 or not ast.get_docstring(node) or _is_subcommand(node):
            continue
        count += 1
        text = ast.get_docstring(node) or ""
        if "Args:" not in text or not all(re.search(rf"^ +{name}\b.*:", text, re.MULTILINE) for name in names):
            missing.append(f"{path.relative_to(PACKAGE)}:{node.lineno}: {node.name}")
    return missing, count


def _is_subcommand(node: Function) -> bool:
    return any(isinstance(one, ast.Call) and ast.unparse(one.func).endswith(".command") for one in node.decorator_list)


def files_of_one_message() -> tuple[int, int]:
    """Return how many files of the package run for one message after the first: in the host, and in the kernel."""
    seen: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            seen.add(frame.f_code.co_filename)

    script = [plans("one"), codes("x = 1"), plans("Done.", to="User")]
    script += [plans("two"), codes("x = 7 * 7; print(x)"), plans("49", to="User")]
    with (
        tempfile.TemporaryDirectory() as folder,
        ScriptedModel(script) as model,
        LocalKernel(folder) as kernel,
        open_session(model, folder=folder, kernel=kernel) as session,
    ):
        session.ask("one")
        kernel.execute(_TRACE, seconds=30)
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            session.ask("two")
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        inside = kernel.execute("sys.setprofile(None)\nprint(*ran, sep='\\n')", seconds=30)
    return len(seen), sum(name.startswith(str(PACKAGE)) for name in inside.stdout.splitlines())


def main() -> None:
    """Print the table, or with `--list NAME` what one row counts."""
    paths = modules()
    if sys.argv[1:2] == ["--list"]:
        lists = {"faces": past_faces(), "dialect": dialect(), "parameters": undocumented()[0]}
        sys.stdout.write("\n".join([*lists[sys.argv[2]], ""]))
        return
    text = {path: path.read_text(encoding="utf-8").count("\n") for path in paths}
    kernel = [path for path in paths if "kernel" in path.relative_to(PACKAGE).parts[:1]]
    rules = [path for path in paths if path.parent.name == "code_interpreter" and path.stem in VERIFICATION]
    missing, public = undocumented()
    host, guest = files_of_one_message()
    rows = {
        "lines of code": sum(map(code_lines, paths)),
        "lines": sum(text.values()),
        "modules": len(paths),
        "longest module": max(text.values()),
        "kernel: lines / modules": f"{sum(text[path] for path in kernel)} / {len(kernel)}",
        "verification: lines / modules": f"{sum(text[path] for path in rules)} / {len(rules)}",
        "files that one message runs through: host + kernel": f"{host} + {guest}",
        "imports past a package's face": len(past_faces()),
        "names on package faces": face_names(),
        "docstrings in dialect": len(dialect()),
        "public functions with >= 2 parameters that document them": f"{100 * (public - len(missing)) // public} %",
    }
    for name, value in rows.items():
        sys.stdout.write(f"{name:<60}{value:>16}\n")


if __name__ == "__main__":
    main()
