"""JSON schemas in Python's words: `{"type": "array", "items": {"type": "integer"}}` is `list[int]`."""

from __future__ import annotations

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
_MOST_CHOICES = 24
_DEPTH = 5
_NOTES = ("format", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "maxLength", "maxItems")


class Schema:
    """A JSON schema with the definitions that it refers to.

    Args:
        plain: As a server sent it, so it may be anything.
        root: The document in which `$ref` points; None: `plain` itself.
    """

    def __init__(self, plain: Any, root: Any = None) -> None:
        self.root = plain if root is None else root
        self.plain = self._resolved(plain)

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
            if isinstance(plain.get(key), list) and plain[key]:
                return _union([self._at(one).type(depth - 1) for one in plain[key]])
        kind = plain.get("type")
        if isinstance(kind, list) and kind:
            return _union([Schema({**plain, "type": one}, self.root).type(depth) for one in kind])
        if kind == "array" or (kind is None and "items" in plain):
            inner = self._at(plain.get("items")).type(depth - 1)
            return "list" if inner == "Any" else f"list[{inner}]"
        if kind == "object" or (kind is None and "properties" in plain):
            more = plain.get("additionalProperties")
            inner = self._at(more).type(depth - 1) if isinstance(more, Mapping) and not self.fields() else "Any"
            return "dict" if inner == "Any" else f"dict[str, {inner}]"
        return _NAMES.get(kind, "Any") if isinstance(kind, str) else "Any"

    def fields(self) -> dict[str, Schema]:
        """Return the properties of an object by name."""
        found = self.plain.get("properties")
        return {str(name): self._at(one) for name, one in found.items()} if isinstance(found, Mapping) else {}

    def required(self) -> frozenset[str]:
        """Return the names of the properties that must be there."""
        found = self.plain.get("required")
        return frozenset(map(str, found)) if isinstance(found, list) else frozenset()

    def shape(self, depth: int = 3) -> str:
        """Spell the keys of an object, or of the objects in a list: `{'x': int, 'note'?: str}`; empty if none known."""
        if depth <= 0:
            return ""
        for one in (*self._alternatives(), self):
            if fields := one.fields():
                needed = one.required()
                inner = (
                    f"{name!r}{'' if name in needed else '?'}: {each.shape(depth - 1) or each.type()}"
                    for name, each in fields.items()
                )
                return "{" + ", ".join(inner) + "}"
            if "items" in one.plain and (inner_shape := one._at(one.plain["items"]).shape(depth)):
                return f"[{inner_shape}, …]"
        return ""

    def about(self) -> str:
        """Return what is known of a value beside its type: description, keys, limits."""
        text = self.plain.get("description") or ""
        text = text if isinstance(text, str) else ""
        limits = ", ".join(f"{key} {self.plain[key]}" for key in _NOTES if key in self.plain)
        parts = [text.strip(), self.shape(), f"({limits})" if limits else ""]
        return " ".join(part for part in parts if part)

    def _alternatives(self) -> list[Schema]:
        return [self._at(one) for key in ("anyOf", "oneOf") for one in _or_empty(self.plain.get(key), list)]

    def _at(self, plain: Any) -> Schema:
        return Schema(plain, self.root)

    def _resolved(self, plain: Any) -> Mapping[str, Any]:
        """Follow `$ref` inside the document, and take `allOf` together; what leads nowhere says nothing."""
        for _ in range(_DEPTH):
            if not isinstance(plain, Mapping):
                return {}
            if isinstance(plain.get("$ref"), str):
                rest = {key: value for key, value in plain.items() if key != "$ref"}
                target = self._pointed(plain["$ref"])
                plain = {**target, **rest} if isinstance(target, Mapping) else rest
            elif isinstance(plain.get("allOf"), list):
                plain = self._merged(plain)
            else:
                return plain
        return {}

    def _merged(self, plain: Mapping[str, Any]) -> Mapping[str, Any]:
        merged: dict[str, Any] = {}
        own = {key: value for key, value in plain.items() if key != "allOf"}
        for one in [*(part for part in plain["allOf"] if isinstance(part, Mapping)), own]:
            one = self._pointed(one["$ref"]) if isinstance(one.get("$ref"), str) else one
            if isinstance(one, Mapping):
                both = (merged, one)
                fields = {key: each for part in both for key, each in _or_empty(part.get("properties"), dict).items()}
                needed = [name for part in both for name in _or_empty(part.get("required"), list)]
                merged = {**merged, **one, "properties": fields, "required": needed}
        return {key: value for key, value in merged.items() if value or key not in ("properties", "required")}

    def _pointed(self, reference: str) -> Any:
        if not reference.startswith("#"):
            return None
        here = self.root
        for part in reference[1:].split("/")[1:]:
            here = here.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(here, Mapping) else None
        return here


def _or_empty(value: Any, kind: type[_Kind]) -> _Kind:
    """Return a value if it is of that kind, else an empty one: what a server sends may be anything."""
    return value if isinstance(value, kind) else kind()


def _literal(choices: list[Any]) -> str:
    if any(not isinstance(one, str | int | bool | None) for one in choices):
        return "Any"
    if len(choices) > _MOST_CHOICES:
        return _union(sorted({type(one).__name__.replace("NoneType", "None") for one in choices}))
    return f"Literal[{', '.join(map(repr, choices))}]"


def _union(kinds: list[str]) -> str:
    """Join types, each once; one that can be anything swallows the others."""
    once = list(dict.fromkeys(kinds))
    if "Any" in once:
        return "Any"
    return " | ".join(sorted(once, key=lambda one: one == "None"))
