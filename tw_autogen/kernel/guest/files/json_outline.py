"""What nested values are: for each field its types, how often it is null or absent, lengths of lists, values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Sized
from typing import Any

from .column_profile import Column, count_words, short_number, show
from .plural import pluralize

_DEEPEST = 5
_MAX_FIELDS = 60
_MANY_KEYS = 30
"""An object with more keys, all with values of one type, is taken for a dictionary by key."""
_MAX_VALUES = 100_000


def outline(value: Any) -> tuple[str, list[str], list[Column]]:
    """Describe a value as JSON has it.

    Args:
        value: What `json.loads` returns.

    Returns:
        A headline, lines, and the scalar fields of the records as columns, if it is a list of objects.
    """
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        some = value[:_MAX_VALUES]
        return (
            f"JSON: list of {pluralize(len(value), 'object')}{_sample_note(value)}",
            record_lines(some),
            record_columns(value),
        )
    if isinstance(value, list):
        return f"JSON: {_list_words([value])}", [], []
    if isinstance(value, dict):
        if _is_dictionary(value):
            first = next(iter(value))
            lines = _outline_lines("each value", list(value.values())[:_MAX_VALUES], 0)
            return f"JSON: object of {len(value)} keys, such as {show(first)}{_sample_note(value)}", lines, []
        return f"JSON: object of {pluralize(len(value), 'key')}", record_lines([value]), []
    return f"JSON: {_type_name(value)} {show(str(value))}", [], []


def record_lines(records: Sequence[Mapping[str, Any]], depth: int = 0) -> list[str]:
    """Return lines for the fields of objects.

    Args:
        records: At least one.
        depth: How deep they lie.
    """
    names = list(dict.fromkeys(name for record in records for name in record))
    lines = []
    for name in names[:_MAX_FIELDS]:
        values = [record[name] for record in records if name in record]
        absent = len(records) - len(values)
        lines += _outline_lines(repr(name), values, depth, absent=absent)
    if len(names) > _MAX_FIELDS:
        lines.append(f"{'  ' * depth}… {len(names) - _MAX_FIELDS} more fields")
    return lines


def record_columns(records: Sequence[Mapping[str, Any]]) -> list[Column]:
    """Return the fields of objects as columns, items of lists as their values, to find what joins files."""
    names = list(dict.fromkeys(name for record in records[:1000] for name in record))[:_MAX_FIELDS]
    columns = []
    for name in names:
        counts: Counter[str] = Counter()
        numbers = True
        for record in records:
            value = record.get(name)
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, (str, int, float)) and not isinstance(item, bool):
                    counts[str(item)] += 1
                    numbers = numbers and not isinstance(item, str)
        columns.append(Column(str(name), counts, kind="", plain=numbers))
    return columns


def _outline_lines(label: str, values: Sequence[Any], depth: int, *, absent: int = 0) -> list[str]:
    indent = "  " * depth
    named = _type_names(values)
    kinds = Counter(named)
    words, inner = [], []
    types = [kind for kind in kinds if kind != "null"]
    parts = []
    for kind in types:
        some = [value for value, its in zip(values, named, strict=True) if its == kind]
        count = f" ({kinds[kind]})" if len(types) > 1 else ""
        if kind == "list":
            parts.append(_list_words(some) + count)
            items = [item for inner in some for item in inner][:_MAX_VALUES]
            if objects := [item for item in items if isinstance(item, dict)]:
                inner += record_lines(objects, depth + 1) if depth < _DEEPEST else []
        elif kind == "object":
            parts.append(_object_words(some) + count)
            if depth < _DEEPEST:
                inner += _object_lines(some, depth + 1)
        else:
            parts.append(", ".join([f"{kind}{count}", *_scalar_words(kind, some)]))
    words.append("; ".join(parts) if parts else "always null" if values else "nothing")
    if kinds["null"] and parts:
        words.append(f"{kinds['null']} null")
    if absent:
        words.append(f"absent in {absent}")
    return [f"{indent}{label}: {', '.join(words)}", *inner]


def _object_lines(objects: Sequence[Mapping[str, Any]], depth: int) -> list[str]:
    if any(_is_dictionary(item) for item in objects):
        values = [value for item in objects for value in item.values()]
        return _outline_lines(f"each value{_sample_note(values)}", values[:_MAX_VALUES], depth)
    return record_lines(objects, depth)


def _object_words(objects: Sequence[Mapping[str, Any]]) -> str:
    lengths = [len(item) for item in objects]
    empty = lengths.count(0)
    summary = f"object of {_length_range(lengths)} key{'s' * (set(lengths) != {1})}" + (
        f", {empty} empty" if empty else ""
    )
    if any(_is_dictionary(item) for item in objects):
        summary += f", such as {show(next(iter(objects[0])))}" if objects[0] else ""
    return summary


def _list_words(lists: Sequence[Sequence[Any]]) -> str:
    everything = [item for inner in lists for item in inner]
    items = everything[:_MAX_VALUES]
    kinds = Counter(_type_names(items))
    lengths = [len(inner) for inner in lists]
    empty = lengths.count(0)
    count = f"{_length_range(lengths)} item{'s' * (set(lengths) != {1})}"
    summary = f"list of {' or '.join(kinds) or 'nothing'}, {count}{_sample_note(everything)}"
    if empty and len(lists) > 1:
        summary += f", {empty} empty ([], not null)"
    if len(kinds) == 1:
        kind = next(iter(kinds))
        if kind not in ("list", "object", "null"):
            summary += "".join(f", {word}" for word in _scalar_words(kind, items))
        elif kind == "list":
            summary += f", each {_list_words(items)}"
    return summary


def _sample_note(values: Sized) -> str:
    """Return that only the first of many values are looked at, behind a comma; empty: all are."""
    return f", judged by the first {_MAX_VALUES}" if len(values) > _MAX_VALUES else ""


def _scalar_words(kind: str, values: Sequence[Any]) -> list[str]:
    if kind == "bool":  # as JSON writes them
        return _boolean_words(Counter("true" if value else "false" for value in values))
    if (
        kind == "float"
        and any(value != value for value in values)
        and (there := [value for value in values if value == value])
    ):
        return [*_scalar_words(kind, there), f"{len(values) - len(there)} NaN"]
    numbers = kind in ("int", "float") and all(value == value for value in values)
    counts = Counter({str(number): n for number, n in Counter(values).items()} if numbers else map(str, values))
    if kind in ("int", "float") and len(counts) > 1:
        parts = [f"{short_number(str(min(values)))} … {short_number(str(max(values)))}"]
        few = len(counts) <= 6 and kind == "int"
        all_different = len(counts) == len(values)
        rest = f"values {', '.join(sorted(counts, key=float))}" if few else f"{len(counts)} distinct"
        return [*parts, "all different" if all_different and not few else rest]
    if kind in ("int", "float"):
        return [f"always {values[0]}" if len(values) > 1 else str(values[0])]
    if len(values) == 1:
        return [show(str(values[0]))]
    return count_words(counts)


def _boolean_words(counts: Counter[str]) -> list[str]:
    if sum(counts.values()) == 1:
        return list(counts)
    if len(counts) == 1:
        return [f"always {next(iter(counts))}"]
    return [", ".join(f"{text} ({count})" for text, count in counts.most_common())]


def _is_dictionary(value: Mapping[str, Any]) -> bool:
    return len(value) > _MANY_KEYS and len({_type_name(inner) for inner in value.values()} - {"null"}) <= 1


def _length_range(lengths: Sequence[int]) -> str:
    return str(lengths[0]) if min(lengths) == max(lengths) else f"{min(lengths)}–{max(lengths)}"


def _type_names(values: Sequence[Any]) -> list[str]:
    """Return the type of each value; integers among decimals are decimals, too."""
    types = [_type_name(value) for value in values]
    return ["float" if kind == "int" else kind for kind in types] if "float" in types else types


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, dict):
        return "object"
    if isinstance(value, (list, tuple)):
        return "list"
    return type(value).__name__
