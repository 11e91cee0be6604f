"""The layers of the package, by its imports: down only, not within a layer, none inside a function."""

import ast
import re
import sys
from pathlib import Path

import pytest

from tests.metrics import face_names, past_faces

PACKAGE = Path(__file__).parent.parent / "tw_autogen"
LAYERS = [
    {"closing", "deprecated", "lazy_module", "notebook_traceback", "plural", "session_layout", "unlisted_folders"}
    | {"file_suffixes"},
    {"deadline", "render_limits", "text_escaping", "text_truncation"},
    {"errors", "safe_folder", "shipped_folders", "secret_masking", "taskweaver_config", "python_source"}
    | {"bounded_json", "bounded_yaml", "variable_names", "sqlite_reader", "written_numbers"},
    {"private_files", "svg_sanitizer", "setting_values"},
    {"picture_files", "named_folders"},
    {"settings_trust", "trust_store"},
    {"trusted_files", "owner_marks", "code_writable_folders"},
    {"yaml_files", "autogen_config_list"},
    {"conversation", "settings"},
    {"events", "number_sources"},
    {"approval"},
    {"model", "kernel"},
    {"plugin"},
    {"role", "recall"},
    {"planner", "code_interpreter"},
    {"session"},
    {"scenario", "testing"},
    {"hosts", "notebook"},
    {"cli"},
]
MAX_NAMES = 282
"""The names on all faces together; less is better."""
FRAMEWORKS = {"autogen", "autogen_agentchat", "autogen_core", "autogen_ext", "ag2", "agent_framework"}
LEVEL = {package: level for level, packages in enumerate(LAYERS) for package in packages}
BELOW = [PACKAGE / "kernel" / "guest", PACKAGE / "kernel" / "guest" / "files", PACKAGE / "kernel" / "launcher"]
MODULES = sorted(
    path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py" and "_shipped" not in path.parts
)


def package_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(tree: ast.Module) -> list[tuple[str, int, bool]]:
    """Give (dotted name, line, inside a function) of every import that runs."""
    inside = {
        node for function in ast.walk(tree) if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }  # fmt: skip
    types_only = {
        node for block in ast.walk(tree) if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for node in ast.walk(block)
    }  # fmt: skip
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and node not in types_only:
            relative = "." * getattr(node, "level", 0)
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [str(node.module)]
            found += [(f"{relative}{name}", node.lineno, node in inside) for name in names]
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_downwards_only(path):
    package = package_of(path)
    assert package in LEVEL, f"{package} has no layer: give it one"
    for name, line, inside in imports(ast.parse(path.read_text(encoding="utf-8"))):
        where = f"{path.relative_to(PACKAGE)}:{line}: import of {name}"
        if name.startswith("."):  # what runs inside a kernel lives there under another name, and stays by itself
            assert path.parent in BELOW, f"{where}: write absolute imports"
            assert not name.startswith(".."), f"{where}: out of the folder that is sent to the kernel"
            assert not inside, f"{where}: inside a function"
            continue
        root, *rest = name.split(".")
        assert package == "hosts" or root not in FRAMEWORKS, f"{where}: only hosts/ knows a framework"
        if root == "tw_autogen" and rest:
            assert not inside, f"{where}: inside a function"
            assert rest[0] != "testing" or package in ("testing", "scenario"), f"{where}: doubles are for tests"
            assert rest[0] == package or LEVEL[rest[0]] < LEVEL[package], f"{where}: not below {package}"


def test_another_package_is_reached_through_its_face_only():
    assert past_faces() == []


def test_a_name_that_is_imported_late_is_not_that_of_a_module_which_would_take_its_place():
    for path in PACKAGE.rglob("__init__.py"):
        text = path.read_text(encoding="utf-8")
        if "= lazy_face(" in text:
            modules = {one.stem for one in path.parent.iterdir()}
            late = {alias.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.If)
                    for one in node.body if isinstance(one, ast.ImportFrom) for alias in one.names}  # fmt: skip
            assert late
            assert not late & modules


def test_faces_do_not_grow():
    assert face_names() <= MAX_NAMES, "let one function do what its callers do by hand, or move it where it is used"


def test_the_modules_that_the_architecture_names_are_there():
    root = PACKAGE.parent
    named = re.findall(r"`([\w./]+\.py)`", (root / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    paths = [path for place in ("tw_autogen", "tests", "docs/scripts") for path in (root / place).rglob("*.py")]
    there = [f"/{path.relative_to(root).as_posix()}" for path in paths]

    assert len(named) > 100
    assert [one for one in named if not any(path.endswith(f"/{one}") for path in there)] == []


def test_every_module_is_short_enough_to_read_at_a_sitting():
    long = {str(path): lines for path in MODULES if (lines := path.read_text(encoding="utf-8").count("\n")) > 600}
    assert not long


def test_what_runs_inside_a_kernel_needs_nothing_but_the_standard_library():
    for path in (path for folder in BELOW for path in folder.glob("*.py")):
        for name, line, inside in imports(ast.parse(path.read_text(encoding="utf-8"))):
            known = name.startswith(".") or name.split(".")[0] in sys.stdlib_module_names
            assert known or inside, f"{path.name}:{line}: {name} is not in the standard library"
