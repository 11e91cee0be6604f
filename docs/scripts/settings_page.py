"""Write `docs/settings-reference.md`: every setting with its type, default and meaning, from the settings' classes.

`python docs/scripts/settings_page.py` writes the page; a test compares the committed one with `page()`.
"""

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import docstring_parser
import yaml

from tw_autogen.session.settings_sources import SECTIONS
from tw_autogen.shipped_folders import shipped_folder

PAGE = Path(__file__).parent.parent / "settings-reference.md"
_HEAD = """# All settings

Written by `docs/scripts/settings_page.py` from the settings' classes; change their docstrings, not this page.

A setting `kernel.read` is `settings={"kernel.read": …}` in Python, `--set kernel.read=…` on the command line,
`TW_AUTOGEN_KERNEL_READ=…` in the environment, and `kernel: {read: …}` in `tw_autogen.yaml`: [Settings](settings.md).
The last column says whether the file of a folder that you have not [trusted](trust.md) may set it:

| word | an untrusted folder's setting counts |
|---|---|
| no | never |
| path | if you wrote the folder's path (`-C DIR`, `project=`) |
| path, key | the same, if its file also has `model.api_key` |
| lower | if it is lower than yours (0, where that means no limit, is the highest) |
| your value | up to what your own file says, or the default |
| narrower | if it allows less or refuses more than yours |
| shown | where your own file doesn't set it; it is shown by name |
"""
_ROLES = """## role

Settings of the ready-made roles, `role.<name>.<setting>`; what each role does: [roles](../roles/README.md).
"""
_TRUST = {
    "": "no",
    "trusted": "no",
    "named": "path",
    "paired": "path, key",
    "lower": "lower",
    "limit": "lower",
    "count": "your value",
    "narrower": "narrower",
    "longer": "narrower",
    "on": "narrower",
    "off": "narrower",
    "prompt": "shown",
}


def page() -> str:
    """Return the whole page as Markdown."""
    parts = [_HEAD]
    for section, kind in SECTIONS.items():
        (declared,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
        parts.append(_section(section, declared, kind))
    parts.append(_ROLES)
    for folder in sorted(shipped_folder("roles").iterdir()):
        parts += [_section(f"role.{folder.name}", one, level="###") for one in _of_role(folder)]
    return "\n".join(parts)


def _of_role(folder: Path) -> Iterator[ast.ClassDef]:
    """Yield the settings' class of a role's folder, if it has one; plain ones of its `role.yaml` become a class."""
    source = folder / f"{folder.name}.py"
    if not source.exists():
        return
    tree = ast.parse(source.read_text(encoding="utf-8"))
    found = [one for one in tree.body if isinstance(one, ast.ClassDef) and one.name.endswith("Settings")]
    plain = yaml.safe_load((folder / "role.yaml").read_text(encoding="utf-8")).get("settings", {})
    if plain and not found:
        (role,) = [one for one in tree.body if isinstance(one, ast.ClassDef)]
        doc = docstring_parser.parse(ast.get_docstring(role) or "")
        (said,) = [param.description for param in doc.params if param.arg_name == "settings"]
        ((key, value),) = plain.items()
        meant = f"{doc.short_description}\n\nArgs:\n    {key}: {said}"
        text = f"class Plain:\n    {meant!r}\n    {key}: {type(value).__name__} = {value!r}\n"
        found = [one for one in ast.parse(text).body if isinstance(one, ast.ClassDef)]
    yield from found


def _section(prefix: str, kind: ast.ClassDef, loaded: type | None = None, *, level: str = "##") -> str:
    """Return one class's settings as a heading, its docstring's first lines, and a table.

    Args:
        prefix: What its keys begin with.
        kind: The class as it is written.
        loaded: The class itself, which knows each field's metadata; None: that of a role, read as it is written.
        level: Of the heading.
    """
    metadata: Mapping[str, Mapping[str, Any]] = (
        {field.name: field.metadata for field in dataclasses.fields(loaded)} if loaded else {}
    )
    hints = get_type_hints(loaded) if loaded else {}
    doc = docstring_parser.parse(ast.get_docstring(kind) or "", style=docstring_parser.DocstringStyle.GOOGLE)
    meaning = {param.arg_name: " ".join((param.description or "").split()) for param in doc.params}
    lines = [f"{level} {prefix}", ""]
    if doc.short_description:
        lines += [" ".join(f"{doc.short_description} {doc.long_description or ''}".split()), ""]
    lines += ["| setting | type, default | meaning | untrusted folder |", "|---|---|---|---|"]
    for one in kind.body:
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            name = one.target.id
            rules = metadata[name] if loaded else _metadata(one.value)
            environment = " and ".join(f"`{variable}`" for variable in rules.get("env", ()))
            words = meaning.get(name, "") + (f" Also read from {environment}." if environment else "")
            shape = f"`{_type(one.annotation, hints.get(name))}`, {_default(one.value)}"
            cells = [f"`{prefix}.{name}`", shape, words, _TRUST[rules.get("folder", "")]]
            lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join([*lines, ""])


def _metadata(value: ast.expr | None) -> Mapping[str, Any]:
    """Return the metadata of a role's field as it is written; what says nothing of folders counts by path."""
    given = {keyword.arg: keyword.value for keyword in value.keywords} if isinstance(value, ast.Call) else {}
    said = ast.literal_eval(given["metadata"]) if "metadata" in given else {}
    return {"folder": "named", **said}


def _type(written: ast.expr, hint: Any) -> str:
    """Return a field's type as it is written; of a choice that has a name, the words."""
    if isinstance(written, ast.Name) and get_origin(hint) is Literal:
        return f"Literal[{', '.join(map(repr, get_args(hint)))}]"
    return ast.unparse(written).replace(" | ", " or ")  # a pipe would end the cell


def _default(value: ast.expr | None) -> str:
    """Return a field's default as it is written in the source; `required` without one."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "field":
        given = {keyword.arg: keyword.value for keyword in value.keywords}
        if "default_factory" in given:
            return "empty"
        value = given.get("default")
    if value is None:
        return "required"
    text = ast.unparse(value)
    return "empty" if text in ("''", "()") else f"`{text}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
