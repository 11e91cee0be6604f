"""`StatisticsTable`: the first rows of a file of Stata or SAS, as pandas reads it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

_CHUNK_ROWS = 1000
_MAX_LABELS = 40


@dataclass
class StatisticsTable:
    """A table with the types and labels of its columns.

    Args:
        program: Whose file it is.
        call: What reads all of it, for code.
        kinds: The types of the columns, by name.
        rows: The first ones, None for a missing value.
        labels: What the file says of columns.
        more: More rows may follow.
    """

    program: str
    call: str
    kinds: dict[str, str] = field(default_factory=dict)
    rows: list[list[Any]] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    more: bool = False

    @property
    def notes(self) -> list[str]:
        """Return what the file says of its columns, and the call that reads it."""
        shown = [f"{key!r} {label!r}" for key, label in self.labels.items() if label][:_MAX_LABELS]
        said = [f"labels of its columns: {', '.join(shown)}"] if shown else []
        return [*said, f"to be read with {self.call}"]


def read_statistics(path: str, name: str, *, max_cells: int) -> StatisticsTable:
    """Read the first rows of a file of Stata (`.dta`) or SAS (`.sas7bdat`, `.xpt`).

    Args:
        path: Of the file.
        name: What code calls it.
        max_cells: From so many cells on no more rows are read.

    Raises:
        ImportError: pandas is not installed.
        ValueError: it is no such file.
    """
    import pandas  # a kernel's own Python need not have it

    if os.path.splitext(path)[1].lower() == ".dta":
        table = StatisticsTable("Stata", f"pd.read_stata({name!r})")
        reader: Any = pandas.read_stata(path, chunksize=_CHUNK_ROWS)
    else:
        table = StatisticsTable("SAS", f"pd.read_sas({name!r}, encoding='infer')")
        reader = pandas.read_sas(path, chunksize=_CHUNK_ROWS, encoding="infer")  # texts are bytes without it
    with reader:
        table.labels = reader.variable_labels() if table.program == "Stata" else {}
        for frame in reader:
            table.kinds = {str(key): str(kind) for key, kind in frame.dtypes.items()}
            table.rows += frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
            table.more = len(table.rows) * len(table.kinds) >= max_cells
            if table.more:
                break
    return table
