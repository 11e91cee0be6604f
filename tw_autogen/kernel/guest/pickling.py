"""Variables as bytes and back, in the kernel only: pickle, with functions of cells by code and modules by name."""

from __future__ import annotations

import importlib
import io
import marshal
import pickle
import sys
import types
from collections.abc import Callable, Container, Iterable, Mapping, MutableMapping
from typing import Any, BinaryIO

MAIN = "__main__"
_PLAIN = {types.ModuleType, types.BuiltinFunctionType, int, float, complex, str, bytes, bool, type(None)}


class TooLarge(Exception):
    """More bytes than were allowed."""


class _Bounded(io.RawIOBase):
    """Takes bytes up to a limit, and hands them on; looks at each piece whether this may go on."""

    def __init__(self, most_bytes: int, look: Callable[[], None], file: BinaryIO | None = None) -> None:
        self.left = most_bytes
        self._look = look
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._look()
        size = memoryview(data).nbytes
        self.left -= size
        if self.left < 0:
            raise TooLarge
        if self._file is not None:
            self._file.write(data)
        return size


class _Pickler(pickle.Pickler):
    def __init__(self, file: Any, known: frozenset[int], classes: Container[str]) -> None:
        super().__init__(file, protocol=5)
        self._known = known
        self._classes = classes

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, types.ModuleType):
            return importlib.import_module, (value.__name__,)
        if isinstance(value, types.FunctionType) and value.__module__ == MAIN and id(value) not in self._known:
            cells = value.__closure__ or ()
            state = {
                "cells": [_content(cell) for cell in cells],
                "defaults": value.__defaults__,
                "kwdefaults": value.__kwdefaults__,
                "dict": dict(value.__dict__),
                "annotations": dict(value.__annotations__),
                "doc": value.__doc__,
            }
            start = (marshal.dumps(value.__code__), value.__name__, value.__qualname__, len(cells))
            return _empty_function, start, state, None, None, _fill_function
        if isinstance(value, type) and value.__module__ == MAIN and value.__qualname__ not in self._classes:
            raise pickle.PicklingError(f"no statement at the top of a cell made the class {value.__qualname__}")
        return NotImplemented


def write(
    values: Mapping[str, Any],
    file: BinaryIO,
    *,
    most_bytes: int,
    look: Callable[[], None],
    known: frozenset[int] = frozenset(),
    classes: Container[str] = (),
) -> dict[str, str]:
    """Write variables as one pickle, so that what two of them share stays shared.

    Args:
        values: By name.
        file: Takes the bytes.
        most_bytes: If they are more, the largest are left out.
        look: Called again and again; what it raises, if it is no `Exception`, ends the writing.
        known: Functions, by id, that will be there under their own name when this is read.
        classes: Names of classes of cells that will be there when this is read.

    Returns:
        What was left out, and why.
    """
    place = file.tell()
    try:
        _Pickler(_Bounded(most_bytes, look, file), known, classes).dump(dict(values))
    except Exception:  # noqa: BLE001 - pickling runs the objects' own code; below it is told whose
        file.seek(place)
        file.truncate()
    else:
        return {}
    mega = (most_bytes + (1 << 20) - 1) >> 20
    sizes: dict[str, int] = {}
    left: dict[str, str] = {}
    for name, value in values.items():
        sink = _Bounded(most_bytes, look)
        try:
            _Pickler(sink, known, classes).dump(value)
            sizes[name] = most_bytes - sink.left
        except TooLarge:
            left[name] = f"it takes more than {mega} MB"
        except Exception as error:  # noqa: BLE001 - as above
            left[name] = f"{type(error).__name__}: {str(error)[:200]}"
    kept: list[str] = []
    for name in sorted(sizes, key=lambda one: sizes[one]):
        if sum(sizes[one] for one in kept) + sizes[name] > most_bytes - 4096:
            left[name] = f"together they take more than {mega} MB"
        else:
            kept.append(name)
    _Pickler(file, known, classes).dump({name: values[name] for name in values if name in kept})
    return left


def read(file: BinaryIO) -> dict[str, Any]:
    """Read what `write` wrote; runs whatever stands there, with all that code in this kernel may do."""
    found = pickle.load(file)
    return dict(found)


def define(sources: Iterable[tuple[str, str]], namespace: MutableMapping[str, Any]) -> dict[str, str]:
    """Run class statements; give those that failed, and why."""
    failed = {}
    for name, source in sources:
        try:
            exec(compile(source, f"<{name}>", "exec", dont_inherit=True), namespace)  # type: ignore[arg-type]
        except Exception as error:  # noqa: BLE001 - the user's own statement
            failed[name] = f"{type(error).__name__}: {error}"
    return failed


def comes_first(value: Any) -> bool:
    """Return whether class statements may need a value that needs no class: modules, functions, library classes."""
    if isinstance(value, types.FunctionType):
        holds = value.__closure__ or value.__defaults__ or value.__kwdefaults__ or value.__dict__
        return not holds and not value.__annotations__
    if isinstance(value, type):
        return value.__module__ != MAIN
    return type(value) in _PLAIN


def _content(cell: types.CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # empty
        return ()


def _empty_function(code: bytes, name: str, qualname: str, cells: int) -> types.FunctionType:
    closure = tuple(types.CellType() for _ in range(cells))
    made = types.FunctionType(marshal.loads(code), vars(sys.modules[MAIN]), name, None, closure)
    made.__qualname__ = qualname
    made.__module__ = MAIN
    return made


def _fill_function(made: types.FunctionType, state: dict[str, Any]) -> None:
    for cell, content in zip(made.__closure__ or (), state["cells"], strict=True):
        if content:
            cell.cell_contents = content[0]
    made.__defaults__, made.__kwdefaults__ = state["defaults"], state["kwdefaults"]
    made.__dict__.update(state["dict"])
    made.__annotations__, made.__doc__ = state["annotations"], state["doc"]
