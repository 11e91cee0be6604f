"""What one object holds: how it is copied before a cell and put back into the same object behind it.

Contents are put back in place, so that whoever else holds the object (another name, a closure, a list) sees them too.
Nothing here runs an object's own methods; those of its built-in base, or of pandas and numpy, do the work.
"""

from __future__ import annotations

import array
import collections
import copyreg
import datetime
import decimal
import enum
import fractions
import functools
import pathlib
import random
import re
import sys
import types
import uuid
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Undo = Callable[[], None]
PLAIN = frozenset({int, float, complex, str, bytes, bool, type(None), datetime.datetime, datetime.date})


@dataclass(frozen=True)
class Contents:
    """What an object holds.

    Args:
        inner: The objects in it that may change too.
        copy: Copies what it holds, and gives what puts it back; None: nothing in it can change.
        size: Roughly how many bytes that copies.
        hashes: It is put back behind all that does not hash, because `__hash__` may look at those.
        code: Function bodies that run when it is used; they may reach variables by name.
    """

    inner: Iterable[Any] = ()
    copy: Callable[[], Undo] | None = None
    size: int = 0
    hashes: bool = False
    code: Iterable[types.CodeType] = ()


NOTHING = Contents()


def changeable(values: Iterable[Any]) -> list[Any]:
    """Leave out what can't change; quick also for a million numbers."""
    values = values if type(values) is list else list(values)
    return [] if set(map(type, values)) <= PLAIN else [value for value in values if type(value) not in PLAIN]


def is_a(value: Any, kind: type | tuple[type, ...]) -> bool:
    """Return a value's kind without asking the value, as `isinstance` does: its class may raise.

    Args:
        value: Any object.
        kind: A class, or several.
    """
    return issubclass(type(value), kind)


def is_users(name: Any) -> bool:
    """Return whether a key of the namespace names a variable of the user's: `globals()[1] = 2` makes one that can't."""
    return is_a(name, str) and not str.startswith(name, "_")


_OF_DATA = {
    "numpy": ("generic", "dtype"),
    "pandas": ("Timestamp", "Timedelta", "Period", "Interval", "NaTType", "NAType", "BaseOffset"),
    "pyarrow": ("_Weakrefable",),
}  # fmt: skip


def of_data(value: Any) -> Contents | None:
    """Return what an object of numpy or pandas holds; None if it is of neither."""
    for kind in type(value).__mro__:
        root, name = (kind.__module__ or "").partition(".")[0], kind.__name__
        if name in _OF_DATA.get(root, ()):
            return NOTHING
        if root == "numpy" and name == "ndarray":
            return _array_contents(value)
        if root == "numpy" and name in ("Generator", "RandomState"):
            return _numpy_random(value)
        if root == "pandas" and name in ("DataFrame", "Series"):
            return _table_contents(value)
        if root == "pandas" and name == "Index":
            return _index_contents(value)
        if root == "pandas" and name == "NDArrayBacked":  # categories, dates, durations
            return _with_attributes(value, Contents((value._ndarray,)))
    return None


def _array_contents(value: Any) -> Contents:
    inner = [] if value.base is None else [value.base]
    if value.dtype == object:
        inner += changeable(value.ravel().tolist())
    if not value.flags.writeable:
        return Contents(inner)

    def copy() -> Undo:
        saved = value.copy(order="K")

        def undo() -> None:
            if value.size != saved.size:
                raise ValueError("its size was changed in place")
            if value.shape != saved.shape:
                value.shape = saved.shape
            value[...] = saved

        return undo

    return Contents(inner, copy, value.nbytes)


def _numpy_random(value: Any) -> Contents:
    source = getattr(value, "bit_generator", None) or value._bit_generator

    def copy() -> Undo:
        state = source.state
        return lambda: setattr(source, "state", state)

    return Contents(copy=copy, size=5000)


def copies_on_write() -> bool:
    """Return whether tables of the pandas that is imported share columns until one is written to."""
    pandas: Any = sys.modules["pandas"]
    return int(pandas.__version__.partition(".")[0]) >= 3 or pandas.options.mode.copy_on_write is True


def _table_contents(value: Any) -> Contents:
    """Share a table's columns until one is written to, where pandas copies on write; copy them elsewhere."""
    lazy = copies_on_write()
    series = value.ndim == 1
    held: list[Any] = []
    for place in range(1 if series else value.shape[1]):
        column = value if series else value.iloc[:, place]
        if column.dtype == object:
            held += changeable(column.to_numpy().tolist())
    size = 0 if lazy else int(value.memory_usage(index=False) if series else value.memory_usage(index=False).sum())

    def copy() -> Undo:
        saved = value.copy(deep=not lazy)

        def undo() -> None:
            value.__setstate__(saved.__getstate__())
            if getattr(value, "_item_cache", None):
                value._item_cache.clear()  # pandas before 3

        return undo

    return Contents(held, copy, size)


def _index_contents(value: Any) -> Contents:
    names = list(value.names)
    return Contents(copy=lambda: lambda: setattr(value, "names", names), size=100)


MAIN = "__main__"
"""Where classes and functions live that cells define."""

_ATOMS = (
    int, float, complex, str, bytes, bool, type(None), type(...), type(NotImplemented), range, slice, enum.Enum,
    datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo, decimal.Decimal, fractions.Fraction, uuid.UUID,
    pathlib.PurePath, re.Pattern, re.Match, weakref.ref, types.ModuleType, types.CodeType, types.BuiltinFunctionType,
    types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType,
    types.GenericAlias, memoryview,
)  # fmt: skip
_NOT_OURS = frozenset({"IPython", "ipykernel", "traitlets", "zmq", "tornado", "jupyter_client", "tw_guest"})
"""Their objects run the kernel itself; putting them back to an earlier moment would break it."""

_CODE = (types.FunctionType, classmethod, staticmethod, property)

_UNSET = object()
_POINTER = tuple.__itemsize__


def is_fixed(value: Any) -> bool:
    """Return whether nothing of an object can change; False where that takes time to tell."""
    kind = type(value)
    atom = kind in PLAIN or issubclass(kind, _ATOMS)
    return atom or (issubclass(kind, (types.FunctionType, type)) and contents(value) is NOTHING)


def contents(value: Any) -> Contents | None:
    """Return what an object holds; None if nobody here knows how to copy its kind."""
    kind = type(value)
    if kind in _QUICK:
        return _QUICK[kind](value)
    if kind in PLAIN or issubclass(kind, _ATOMS):
        return NOTHING
    for base, give in _KINDS:
        if issubclass(kind, base):
            return give(value)
    return of_data(value) or _instance_contents(value)


def _list_contents(value: list[Any]) -> Contents:
    plain = list.__getitem__(value, slice(None))

    def copy() -> Undo:
        return lambda: list.__setitem__(value, slice(None), plain)

    return _with_attributes(value, Contents(changeable(plain), copy, 8 * len(plain)))


def _dict_contents(value: dict[Any, Any]) -> Contents:
    kind: Any = collections.OrderedDict if is_a(value, collections.OrderedDict) else dict
    items = list(kind.items(value))

    def copy() -> Undo:
        def undo() -> None:
            kind.clear(value)
            for key, one in items:
                kind.__setitem__(value, key, one)

        return undo

    held = changeable(list(kind.values(value))) + changeable(list(kind.keys(value)))
    return _with_attributes(value, Contents(held, copy, 100 * len(items), hashes=True))


def _set_contents(value: set[Any]) -> Contents:
    plain = list(set.__iter__(value))

    def copy() -> Undo:
        def undo() -> None:
            set.clear(value)
            set.update(value, plain)

        return undo

    return _with_attributes(value, Contents(changeable(plain), copy, 60 * len(plain), hashes=True))


def _deque_contents(value: collections.deque[Any]) -> Contents:
    plain = list(collections.deque.__iter__(value))

    def copy() -> Undo:
        def undo() -> None:
            collections.deque.clear(value)
            collections.deque.extend(value, plain)

        return undo

    return _with_attributes(value, Contents(changeable(plain), copy, 8 * len(plain)))


def _buffer_contents(value: Any) -> Contents:
    kind: Any = bytearray if is_a(value, bytearray) else array.array

    def copy() -> Undo:
        plain = kind.__getitem__(value, slice(None))
        return lambda: kind.__setitem__(value, slice(None), plain)

    return Contents(copy=copy, size=sys.getsizeof(value))


def _cell_contents(value: types.CellType) -> Contents:
    try:
        held = value.cell_contents
    except ValueError:  # empty
        return NOTHING

    def copy() -> Undo:
        return lambda: setattr(value, "cell_contents", held)

    return Contents((held,), copy)


def _function_contents(value: types.FunctionType) -> Contents:
    if value.__module__ != MAIN:
        return NOTHING
    held = [*(value.__closure__ or ()), value.__defaults__, value.__kwdefaults__]
    inner = Contents(held, code=(value.__code__,))
    return _with_attributes(value, inner)


def _class_contents(value: type) -> Contents:
    if value.__module__ != MAIN:
        return NOTHING
    held = {name: one for name, one in vars(value).items() if name not in ("__dict__", "__weakref__")}

    def copy() -> Undo:
        def undo() -> None:
            now = vars(value)
            for name in [one for one in now if one not in held and one not in ("__dict__", "__weakref__")]:
                type.__delattr__(value, name)
            for name, one in held.items():
                if now.get(name) is not one:
                    type.__setattr__(value, name, one)

        return undo

    inner = [one for name, one in held.items() if is_a(one, _CODE) or not name.startswith(("__", "_abc_"))]
    return Contents((*value.__bases__, *inner), copy, 100 * len(held))


def _instance_contents(value: Any) -> Contents | None:
    kind = type(value)
    root = (kind.__module__ or "").partition(".")[0]
    if root in _NOT_OURS or (root in sys.stdlib_module_names and root not in (MAIN, "types", "argparse")):
        return None
    hidden = _hides_memory(kind) and not issubclass(kind, BaseException)
    return None if hidden else _with_attributes(value, NOTHING)


def _hides_memory(kind: type) -> bool:
    """Return whether objects of a class take more memory than their attributes do: C code keeps something in them."""
    attributes = len(copyreg._slotnames(kind))  # type: ignore[attr-defined] # as pickle finds them
    attributes += (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)
    return kind.__basicsize__ > object.__basicsize__ + attributes * _POINTER


def _with_attributes(value: Any, rest: Contents) -> Contents:
    """Add an instance's own attributes to what its built-in base holds."""
    kind = type(value)
    if kind in _QUICK or (kind.__module__ == "builtins" and not is_a(value, types.FunctionType)):
        return rest
    own = _own_attributes(value)
    slots = _slot_values(value)
    names = dict(own or {})

    def copy() -> Undo:
        first = rest.copy() if rest.copy else None

        def undo() -> None:
            if own is not None:
                dict.clear(own)
                dict.update(own, names)
            for name, slot in slots.items():
                if slot is not _UNSET:
                    object.__setattr__(value, name, slot)
                elif hasattr(value, name):
                    object.__delattr__(value, name)
            if first:
                first()

        return undo

    held = (*rest.inner, *changeable((*names.values(), *(slot for slot in slots.values() if slot is not _UNSET))), kind)
    takes = own is not None or slots or rest.copy
    return Contents(held, copy if takes else None, rest.size + 100 * len(names), hashes=rest.hashes, code=rest.code)


def _own_attributes(value: Any) -> dict[str, Any] | None:
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return own if is_a(own, dict) else None


def _slot_values(value: Any) -> Mapping[str, Any]:
    found = {}
    for name in copyreg._slotnames(type(value)):  # type: ignore[attr-defined] # as pickle finds them
        try:
            found[name] = object.__getattribute__(value, name)
        except AttributeError:
            found[name] = _UNSET
    return found


def _random_contents(value: random.Random) -> Contents:
    def copy() -> Undo:
        state = value.getstate()
        return lambda: value.setstate(state)

    return Contents(copy=copy, size=20_000)


_KINDS: list[tuple[Any, Callable[[Any], Contents]]] = [
    (list, _list_contents),
    (dict, _dict_contents),
    (set, _set_contents),
    (collections.deque, _deque_contents),
    ((bytearray, array.array), _buffer_contents),
    (types.CellType, _cell_contents),
    (types.FunctionType, _function_contents),
    (type, _class_contents),
    (types.MethodType, lambda value: Contents((value.__self__, value.__func__))),
    ((tuple, frozenset), lambda value: _with_attributes(value, Contents(changeable(value)))),
    (random.Random, _random_contents),
    (functools.partial, lambda value: Contents((value.func, value.args, value.keywords))),
    (property, lambda value: Contents((value.fget, value.fset, value.fdel))),
    ((classmethod, staticmethod), lambda value: Contents((value.__func__,))),
    (types.MappingProxyType, lambda value: Contents(changeable(value.values()))),
]
_QUICK: dict[type, Callable[[Any], Contents]] = {kind: give for kind, give in _KINDS if kind in (list, dict, set)}
