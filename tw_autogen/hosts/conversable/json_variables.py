"""What functions that code calls leave in a group's context variables: JSON values.

The host's conditions (`ContextExpression`) evaluate the text of any other value, and code chooses that of a table.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
from collections.abc import Container, Iterator
from typing import Any

try:
    from autogen.agentchat.group import ContextExpression, ContextVariables
except ImportError:  # a lineage without groups of this kind
    ContextExpression = ContextVariables = None

_PLAIN = (str, int, float, bool, type(None))
_MANY = (list, tuple, set, frozenset)
_MAX_DEPTH = 30


class CallVariables:
    """The context variables of one call: a copy, of which what is new becomes JSON before the host has it.

    So no other call, and no condition, meets what the function has put there while it runs, or after it was given up.

    Args:
        shared: The host's, or a dictionary.
    """

    def __init__(self, shared: Any) -> None:
        self._shared = shared
        self._before = dict(shared.items())
        known = list(_objects_in(self._before, 0))  # held, so that no new object gets the identity of one of these
        self._known = {id(value): value for value in known}
        self._texts = {value for value in self._before.values() if isinstance(value, str)}
        own = {name: set(value) if type(value) is set else value for name, value in self._before.items()}
        self.variables: Any = own if isinstance(shared, dict) else shared.model_copy(update={"data": own})

    def give_back(self) -> None:
        """Make JSON values of what is new, and the host's; what was there before stays as it is.

        Tables become lists of records, arrays lists, models dictionaries, and any other object its text. A blank comes
        into `${` of a new text, also in a set: a condition that names its variable twice would replace what stands
        there again. Infinities and NaN become None. Where the host puts texts unescaped between quotes, their quotes
        and backslashes become others.
        """
        after = dict(self.variables.items())
        for name, value in after.items():
            plain = _in_json(value, self._known, 0)
            before = self._before.get(name, self)
            if plain is before or type(plain) is set is type(before) and plain == before:
                continue
            self._shared[name] = (
                plain if isinstance(plain, str) and plain in self._texts else _neutralize_placeholders(plain)
            )
        for name in self._before.keys() - after.keys():
            if name in self._shared:
                del self._shared[name]


def _neutralize_placeholders(value: Any) -> Any:
    """Return a text, or what the host shows by its text, without the beginning of a variable's name; None for `nan`."""
    if isinstance(value, float) and not math.isfinite(value):
        return None  # the host would take its text for a name
    if isinstance(value, str):
        value = value.replace("${", "$ {")
        return value if _escapes_texts() else value.replace("'", "\u2019").replace("\\", "\u2216")
    return type(value)(map(_neutralize_placeholders, value)) if type(value) in (set, frozenset, tuple) else value


@functools.cache
def _escapes_texts() -> bool:
    """Return whether the host's conditions escape texts before they evaluate them; those of pyautogen 0.9.0 don't."""
    if ContextExpression is None:
        return True
    try:
        return ContextExpression("${a} == 'x'").evaluate(ContextVariables(data={"a": "'"})) is False
    except Exception:  # noqa: BLE001 - whatever it makes of a quote that ends its text
        return False


def _objects_in(value: Any, depth: int) -> Iterator[Any]:
    """Yield all that is neither plain nor a container, in a value and in the containers in it."""
    if isinstance(value, _PLAIN) or depth > _MAX_DEPTH:
        return
    if type(value) is dict:
        value = [*value, *value.values()]
    if type(value) in _MANY:
        for item in value:
            yield from _objects_in(item, depth + 1)
    else:
        yield value


def _in_json(value: Any, known: Container[int], depth: int) -> Any:
    if isinstance(value, _PLAIN) or id(value) in known:
        return value
    if depth > _MAX_DEPTH:
        return str(value)
    if type(value) in _MANY:
        items = [_in_json(item, known, depth + 1) for item in value]
        same = all(item is before for item, before in zip(items, value, strict=True))
        return value if same else type(value)(items)
    if type(value) is dict:
        pairs = {_in_json(key, known, depth + 1): _in_json(item, known, depth + 1) for key, item in value.items()}
        same = all(key in value and value[key] is pair for key, pair in pairs.items())
        return value if same and len(pairs) == len(value) else pairs
    plain = _to_plain_containers(value)
    return str(value) if plain is value else _in_json(plain, known, depth + 1)


def _to_plain_containers(value: Any) -> Any:
    """Return an object of a known kind in the form of lists and dictionaries; any other as it is."""
    if hasattr(value, "columns") and callable(getattr(value, "to_dict", None)):
        return [dict(zip(value.columns.tolist(), row, strict=True)) for row in value.itertuples(index=False, name=None)]
    if hasattr(value, "shape") and callable(getattr(value, "tolist", None)):
        return value.tolist()
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if callable(getattr(type(value), "model_dump", None)):
        return dict(value)
    return value
