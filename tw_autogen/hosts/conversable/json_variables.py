"""What functions that code calls leave in a group's context variables: JSON values.

The host's conditions (`ContextExpression`) evaluate the text of any other value, and code chooses that of a table.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
from collections.abc import Iterator, MutableMapping
from typing import Any

_PLAIN = (str, int, float, bool, type(None))
_MANY = (list, tuple, set, frozenset)
_MOST_DEPTH = 30


@contextlib.contextmanager
def json_variables(variables: MutableMapping[str, Any]) -> Iterator[None]:
    """Make JSON values of all that comes into context variables meanwhile; what was there before stays as it is.

    Tables become lists of records, arrays lists, models dictionaries, and any other object its text. A blank comes into
    `${` of a new text: a condition that names its variable twice would replace what stands there again.

    Args:
        variables: The host's, or a dictionary.
    """
    known = list(_objects(dict(variables.items()), 0))  # held, so that no new object gets the identity of one of these
    before = {id(one) for one in known}
    texts = {one for _, one in variables.items() if isinstance(one, str)}
    try:
        yield
    finally:
        for name, value in list(variables.items()):
            plain = _in_json(value, before, 0)
            if isinstance(plain, str) and plain not in texts:
                plain = plain.replace("${", "$ {")
            if plain is not value:
                variables[name] = plain


def _objects(value: Any, depth: int) -> Iterator[Any]:
    """Yield all that is neither plain nor a container, in a value and in the containers in it."""
    if isinstance(value, _PLAIN) or depth > _MOST_DEPTH:
        return
    if type(value) is dict:
        value = [*value, *value.values()]
    if type(value) in _MANY:
        for one in value:
            yield from _objects(one, depth + 1)
    else:
        yield value


def _in_json(value: Any, known: set[int], depth: int) -> Any:
    if isinstance(value, _PLAIN) or id(value) in known:
        return value
    if depth > _MOST_DEPTH:
        return str(value)
    if type(value) in _MANY:
        items = [_in_json(one, known, depth + 1) for one in value]
        same = all(one is before for one, before in zip(items, value, strict=True))
        return value if same else type(value)(items)
    if type(value) is dict:
        pairs = {_in_json(key, known, depth + 1): _in_json(one, known, depth + 1) for key, one in value.items()}
        same = all(key in value and value[key] is one for key, one in pairs.items())
        return value if same and len(pairs) == len(value) else pairs
    plain = _plain(value)
    return str(value) if plain is value else _in_json(plain, known, depth + 1)


def _plain(value: Any) -> Any:
    """Return an object of a known kind in the form of lists and dictionaries; any other as it is."""
    if hasattr(value, "columns") and callable(getattr(value, "to_dict", None)):
        return [dict(zip(value.columns.tolist(), row, strict=True)) for row in value.itertuples(index=False, name=None)]
    if hasattr(value, "shape") and callable(getattr(value, "tolist", None)):
        return value.tolist()
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
    if callable(getattr(type(value), "model_dump", None)):
        return dict(value)
    return value
