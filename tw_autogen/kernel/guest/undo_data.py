"""What the objects of numpy and pandas hold; both are told by their module, so that neither is imported."""

from __future__ import annotations

import sys
from typing import Any

from .contents import NOTHING, Contents, Undo, changeable

_OF_DATA = {
    "numpy": ("generic", "dtype"),
    "pandas": ("Timestamp", "Timedelta", "Period", "Interval", "Index", "NaTType", "NAType", "BaseOffset"),
    "pyarrow": ("_Weakrefable",),
}  # fmt: skip


def of_data(value: Any) -> Contents | None:
    """Return what an object of numpy or pandas holds; None if it is of neither."""
    for kind in type(value).__mro__:
        root, name = (kind.__module__ or "").partition(".")[0], kind.__name__
        if name in _OF_DATA.get(root, ()):
            return NOTHING
        if root == "numpy" and name == "ndarray":
            return _array(value)
        if root == "numpy" and name in ("Generator", "RandomState"):
            return _numpy_random(value)
        if root == "pandas" and name in ("DataFrame", "Series"):
            return _table(value)
    return None


def _array(value: Any) -> Contents:
    inner = [] if value.base is None else [value.base]
    if value.dtype == object:
        inner += changeable(value.ravel().tolist())
    if not value.flags.writeable:
        return Contents(inner)

    def copy() -> Undo:
        saved = value.copy(order="K")

        def undo() -> None:
            if value.shape != saved.shape:
                raise ValueError("its shape was changed in place")
            value[...] = saved

        return undo

    return Contents(inner, copy, value.nbytes)


def _numpy_random(value: Any) -> Contents:
    source = getattr(value, "bit_generator", None) or value._bit_generator

    def copy() -> Undo:
        state = source.state
        return lambda: setattr(source, "state", state)

    return Contents(copy=copy, size=5000)


def _table(value: Any) -> Contents:
    """Share a table's columns until one is written to, where pandas copies on write; copy them elsewhere."""
    pandas: Any = sys.modules["pandas"]
    lazy = int(pandas.__version__.partition(".")[0]) >= 3 or pandas.options.mode.copy_on_write is True
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
