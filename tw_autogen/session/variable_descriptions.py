"""What a prompt says of a variable that comes with a request; what is secret by its name or form is masked."""

from __future__ import annotations

from typing import Any

from tw_autogen.secret_masking import is_secret_name, mask_named, mask_value
from tw_autogen.text_truncation import shortened

_TEXT_CHARS = 400
_MASKED_CHARS = 5 * _TEXT_CHARS
"""How much of a value is searched for secrets: one that `_TEXT_CHARS` would cut has to be known by its end."""
_HEAD_ROWS = 3
_MAX_COLUMNS = 40


def profile_value(name: str, value: Any) -> str:
    """Describe a variable that came with a request.

    Args:
        name: The variable's name.
        value: A table, an array, or anything that has a JSON form.
    """
    kind = type(value).__name__
    if kind == "DataFrame":
        return f"{name}: DataFrame, {_describe_frame(value)}"
    if kind == "Series":
        return f"{name}: Series, {_describe_frame(value.to_frame())}"
    text = repr(mask_value(name, _beginning(value, [_MASKED_CHARS])))
    return f"{name}: {kind}, {shortened(text, _TEXT_CHARS)}"


def _beginning(value: Any, room: list[int]) -> Any:
    """Return as much of a value as its text needs to have some number of characters; all of it if it is shorter.

    Args:
        value: The value.
        room: How many characters may follow; no more is taken off than the text of what is returned has.
    """
    room[0] -= 1
    kind = type(value)
    if kind in (str, bytes, bytearray):
        begun = value[: max(0, room[0] + 1)]
        room[0] -= len(begun)
        return begun
    if kind in (list, tuple, set, frozenset):
        return kind(_beginning(one, room) for one in value if room[0] > 0)
    if kind is dict:
        return {_beginning(key, room): _beginning(one, room) for key, one in value.items() if room[0] > 0}
    return value


def _describe_frame(frame: Any) -> str:
    """Return shape, index, columns with dtypes and missing counts, and the first rows as CSV, of a table of pandas."""
    columns = [
        f"{name!r} ({dtype}{f', {count} missing' if count else ''})"
        for name, dtype, count in zip(frame.columns, frame.dtypes, frame.isna().sum(), strict=True)
    ]
    more = f", … {len(columns) - _MAX_COLUMNS} more" if len(columns) > _MAX_COLUMNS else ""
    index = frame.index
    named = [f"{name!r}" for name in index.names if name is not None]
    has_index = bool(named) or index.dtype.kind not in "iu"  # else the numbers of rows
    first = frame.iloc[:_HEAD_ROWS, :_MAX_COLUMNS].copy()
    for place, name in enumerate(first.columns):
        if is_secret_name(str(name)):
            first.isetitem(place, [mask_value(str(name), cell) for cell in first.iloc[:, place]])
    head = mask_named(first.to_csv(index=has_index).strip())
    rows = "\n".join(shortened(line, _TEXT_CHARS) for line in head.splitlines())
    shape = f"{len(frame)} rows x {len(columns)} columns"
    if has_index:
        shape += f", index {', '.join(named[:_MAX_COLUMNS])}".rstrip() + f" ({index.dtype})"
    return f"{shape}: {', '.join(columns[:_MAX_COLUMNS])}{more}\nfirst rows:\n{rows}"
