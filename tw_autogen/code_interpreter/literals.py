"""What a text or a name in a cell stands for: attributes that a format reads, a file, an address, the shell."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator

_LONGEST_PLACE = 2000
_OPENS = re.compile(
    r"read|load|sav|writ|dump|export|open|stor|file|path|fname|memory|cache|json|^to_|^from_|dir$", re.I
)
_FIELD = re.compile(r"\w*(?:\.\w+|\[[^\[\]{}]*\])+")
_ATTRIBUTE = re.compile(r"\.(\w+)")
_PLACE = re.compile(
    r"""
      [a-z][a-z0-9+.-]+://\S*                     # an address
    | (?:~|\.\.?|[a-z]:)[/\\]\S*                  # a path that says where it begins
    | (?:/[^\s/<>]+){2,}/?                        # a path from the root
    """,
    re.VERBOSE | re.IGNORECASE,
)
_FILE_NAME = re.compile(
    r"""
      [\w.\ /-]*[\w-]\.(?:
        csv|tsv|txt|md|log|json|jsonl|ya?ml|toml|ini|cfg|xml|html?|xlsx?|xlsm|ods|parquet|feather|arrow|orc|h5|hdf5|nc|
        npy|npz|mat|pkl|pickle|joblib|sqlite3?|db|dot|svg|png|jpe?g|gif|pdf|mp4|py|ipynb|sh|so|zip|gz|bz2|tar|mplstyle
      )
    """,
    re.VERBOSE | re.IGNORECASE,
)


def attributes_read(text: str) -> Iterator[str]:
    """Give the attributes that `text.format(…)` would read.

    Example:
        >>> list(attributes_read("{lib._os.environ} and {0:.2f}"))
        ['_os', 'environ']
    """
    if "{" not in text or "." not in text:
        return
    try:
        fields = [field for _, field, _, _ in string.Formatter().parse(text) if field]
    except ValueError:  # no format at all, such as JSON
        return
    for field in fields:
        if _FIELD.fullmatch(field):
            yield from _ATTRIBUTE.findall(re.sub(r"\[[^\]]*\]", "", field))


def is_place(text: str, *, names: bool = False) -> bool:
    """Say whether a text is a path or an address; with `names`, also whether it is a file's name.

    Example:
        >>> is_place("/etc/passwd"), is_place("km/h"), is_place("a.csv"), is_place("a.csv", names=True)
        (True, False, False, True)
    """
    text = text.strip()
    if len(text) > _LONGEST_PLACE:
        return False
    return bool(_PLACE.fullmatch(text) or (names and _FILE_NAME.fullmatch(text)))


def opens_files(name: str) -> bool:
    """Say whether a function's or a keyword's name sounds like files.

    Example:
        >>> [opens_files(name) for name in ("export_graphviz", "rptfile", "memory", "isin", "set_title")]
        [True, True, True, False, False]
    """
    return _OPENS.search(name) is not None


def is_shell_call(node: ast.Call) -> bool:
    """Say whether it is `get_ipython().…(…)`."""
    inner = node.func.value if isinstance(node.func, ast.Attribute) else None
    return isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id == "get_ipython"


def last_name(node: ast.expr) -> str:
    """Give the last name of `a.b.c`; empty for what is no name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def literal_text(node: ast.expr) -> str | None:
    """Give the text that a literal, or a sum of literals, stands for."""
    texts: list[str] = []
    todo = [node]
    while todo:
        one = todo.pop()
        if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Add):
            todo += [one.right, one.left]
        elif isinstance(one, ast.JoinedStr):
            todo += reversed(one.values)
        elif isinstance(one, ast.FormattedValue) and one.conversion == -1 and one.format_spec is None:
            todo.append(one.value)
        elif isinstance(one, ast.Constant) and isinstance(one.value, str):
            texts.append(one.value)
        else:
            return None
    return "".join(texts)
