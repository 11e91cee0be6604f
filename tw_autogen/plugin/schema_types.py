"""JSON schemas in Python's words: `{"type": "array", "items": {"type": "integer"}}` is `list[int]`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

_Kind = TypeVar("_Kind", dict[str, Any], list[Any])
_NAMES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "array": "list",
    "object": "dict",
}
_MAX_CHOICES = 24
_DEPTH = 5
_LONGEST_LITERAL = 300
_SURE_WORK = 2000
_SIZED = (str, list, dict)
_SCALARS = (str, int, float)
_NOTES = ("format", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "maxLength", "maxItems")


class Schema:
    """A JSON schema with the definitions that it refers to.

    Args:
        plain: As a server sent it, so it may be anything.
        whole: The schema in which it stands, where `$ref` points; None: it is the whole itself.

    All parts of a schema share one budget of work, which grows with its length: choices that refer to one another can
    make a tree of any size from a few words. What is beyond it is `Any`.
    """

    def __init__(self, plain: Any, whole: Schema | None = None) -> None:
        self._whole = whole or self
        if whole is None:
            self._root = plain
            self._work = _SURE_WORK + 10 * len(json.dumps(plain))
        self.plain: Mapping[str, Any] = self._resolve(plain)

    def type(self, depth: int = _DEPTH) -> str:
        """Spell the type as Python does; `Any` where the schema doesn't say, or goes too deep.

        Example:
            >>> Schema({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}).type()
            'list[str] | None'
        """
        plain = self.plain
        if depth <= 0:
            return "Any"
        choices = [plain["const"]] if "const" in plain else plain.get("enum")
        if isinstance(choices, list) and choices:
            return _literal(choices)
        for key in ("anyOf", "oneOf"):
            if parts := _or_empty(plain.get(key), list):
                few = len(parts) <= _MAX_CHOICES
                return _union([self._subschema(part).type(depth - 1) for part in parts]) if few else "Any"
        kind = plain.get("type")
        if isinstance(kind, list) and kind:
            few = len(kind) <= len(_NAMES)
            return (
                _union([self._subschema({**plain, "type": kind_name}).type(depth) for kind_name in kind])
                if few
                else "Any"
            )
        if kind == "array" or (kind is None and "items" in plain):
            inner = self._subschema(plain.get("items")).type(depth - 1)
            return "list" if inner == "Any" else f"list[{inner}]"
        if kind == "object" or (kind is None and "properties" in plain):
            more = plain.get("additionalProperties")
            inner = self._subschema(more).type(depth - 1) if isinstance(more, Mapping) and not self.fields() else "Any"
            return "dict" if inner == "Any" else f"dict[str, {inner}]"
        return _NAMES.get(kind, "Any") if isinstance(kind, str) else "Any"

    def fields(self) -> dict[str, Schema]:
        """Return the properties of an object by name."""
        found = self.plain.get("properties")
        return (
            {str(name): self._subschema(field) for name, field in found.items()} if isinstance(found, Mapping) else {}
        )

    def properties_of_any_variant(self) -> dict[str, Schema]:
        """Return the properties by name, also those that only one of several choices has."""
        found = self.fields()
        for alternative in self._alternatives():
            for name, field in alternative.fields().items():
                found.setdefault(name, field)
        return found

    @property
    def takes_more(self) -> bool:
        """Whether an object says that it takes other properties than those that it names."""
        return self.plain.get("additionalProperties") not in (None, False)

    def required(self) -> frozenset[str]:
        """Return the names of the properties that must be there."""
        found = self.plain.get("required")
        return frozenset(map(str, found)) if isinstance(found, list) else frozenset()

    def shape(self, depth: int = 3) -> str:
        """Spell the keys of an object, or of the objects in a list: `{'x': int, 'note'?: str}`; empty if none known."""
        if depth <= 0:
            return ""
        for alternative in (*self._alternatives(), self):
            if fields := alternative.fields():
                needed = alternative.required()
                inner = (
                    f"{name!r}{'' if name in needed else '?'}: {each.shape(depth - 1) or each.type()}"
                    for name, each in fields.items()
                )
                return "{" + ", ".join(inner) + "}"
            if "items" in alternative.plain and (
                inner_shape := alternative._subschema(alternative.plain["items"]).shape(depth)
            ):
                return f"[{inner_shape}, …]"
        return ""

    def about(self) -> str:
        """Return what is known of a value beside its type: description, keys, limits."""
        text = self.plain.get("description") or ""
        text = text if isinstance(text, str) else ""
        limits = ", ".join(f"{key} {self.plain[key]}" for key in _NOTES if isinstance(self.plain.get(key), _SCALARS))
        parts = [text.strip(), self.shape(), f"({limits})" if limits else ""]
        return " ".join(part for part in parts if part)

    def _alternatives(self) -> list[Schema]:
        parts = (_or_empty(self.plain.get(key), list) for key in ("anyOf", "oneOf"))
        return [self._subschema(part) for some in parts for part in some[:_MAX_CHOICES]]

    def _subschema(self, plain: Any) -> Schema:
        return Schema(plain, self._whole)

    def _resolve(self, plain: Any) -> Mapping[str, Any]:
        """Follow `$ref` inside the document, and take `allOf` together; what leads nowhere says nothing."""
        for _ in range(_DEPTH):
            if not isinstance(plain, Mapping) or not self._spend_work(plain):
                return {}
            if isinstance(plain.get("$ref"), str):
                rest = {key: value for key, value in plain.items() if key != "$ref"}
                target = self._follow_pointer(plain["$ref"])
                plain = {**target, **rest} if isinstance(target, Mapping) else rest
            elif isinstance(plain.get("allOf"), list):
                plain = self._merge_all_of(plain)
            else:
                return plain
        return {}

    def _merge_all_of(self, plain: Mapping[str, Any]) -> Mapping[str, Any]:
        merged: dict[str, Any] = {}
        fields: dict[str, Any] = {}
        needed: list[Any] = []
        own = {key: value for key, value in plain.items() if key != "allOf"}
        for schema in [*(part for part in plain["allOf"] if isinstance(part, Mapping)), own]:
            schema = self._follow_pointer(schema["$ref"]) if isinstance(schema.get("$ref"), str) else schema
            if isinstance(schema, Mapping) and self._spend_work(schema):
                fields.update(_or_empty(schema.get("properties"), dict))
                needed += _or_empty(schema.get("required"), list)
                merged.update(schema)
        merged.update(properties=fields, required=needed)
        return {key: value for key, value in merged.items() if value or key not in ("properties", "required")}

    def _spend_work(self, plain: Mapping[str, Any]) -> bool:
        """Return whether there is work left for one more look at a schema, and count it."""
        whole = self._whole
        if whole._work > 0:
            whole._work -= 1 + len(plain) + sum(len(value) for value in plain.values() if isinstance(value, _SIZED))
        return whole._work > 0

    def _follow_pointer(self, reference: str) -> Any:
        if not reference.startswith("#"):
            return None
        here = self._whole._root
        for part in reference[1:].split("/")[1:]:
            here = here.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(here, Mapping) else None
        return here


def _or_empty(value: Any, kind: type[_Kind]) -> _Kind:
    """Return a value if it is of that kind, else an empty one: what a server sends may be anything."""
    return value if isinstance(value, kind) else kind()


def _literal(choices: list[Any]) -> str:
    if any(not isinstance(choice, str | int | bool | None) for choice in choices):
        return "Any"
    if (
        len(choices) > _MAX_CHOICES
        or sum(len(choice) for choice in choices if isinstance(choice, str)) > _LONGEST_LITERAL
    ):
        return _union(sorted({type(choice).__name__.replace("NoneType", "None") for choice in choices}))
    return f"Literal[{', '.join(map(repr, choices))}]"


def _union(kinds: list[str]) -> str:
    """Join types, each once; one that can be anything swallows the others."""
    once = list(dict.fromkeys(kinds))
    if "Any" in once:
        return "Any"
    return " | ".join(sorted(once, key=lambda name: name == "None"))
