"""Medians, spread and ratios as text, and tables of them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    """Give median, 10th and 90th percentile.

    >>> spread([5, 1, 2, 3, 4])
    (3, 1.4, 4.6)
    >>> spread([7])
    (7, 7, 7)
    """
    ordered = sorted(values)
    if len(ordered) == 1:
        return (ordered[0],) * 3
    tenths = statistics.quantiles(ordered, n=10, method="inclusive")
    return statistics.median(ordered), tenths[0], tenths[-1]


def shown(values: Sequence[float], *, base: Sequence[float] = (), scale: float = 1.0) -> str:
    """Write median, spread and the ratio to the median of what it is compared with.

    >>> shown([0.002, 0.003, 0.004], base=[0.001], scale=1000)
    '3.00 [2.20-3.80] 3.0x'
    >>> shown([])
    '-'
    """
    if not values:
        return "-"
    middle, low, high = (number(one * scale) for one in spread(values))
    ratio = statistics.median(values) / statistics.median(base) if base else 0
    return f"{middle} [{low}-{high}]" + (f" {number(ratio, 2)}x" if base else "")


def ratio_shown(values: Mapping[int, float], base: Mapping[int, float], *, aim: float | None = None) -> str:
    """Write the median of each round's ratio, the lowest and the highest, and what it is to be.

    >>> ratio_shown({1: 2.0, 2: 6.0}, {1: 4.0, 2: 6.0, 3: 1.0}, aim=0.5)
    '0.75 [0.50-1.0], aim 0.50'
    >>> ratio_shown({}, {1: 4.0})
    '-'
    """
    ratios = [value / base[key] for key, value in values.items() if base.get(key)]
    if not ratios:
        return "-"
    middle, low, high = (number(one, 2) for one in (statistics.median(ratios), min(ratios), max(ratios)))
    return f"{middle} [{low}-{high}]" + (f", aim {number(aim, 2)}" if aim else "")


def number(value: float, digits: int = 3) -> str:
    """Write a number with so many digits that count, and all that stand before the point.

    >>> number(1234.5), number(0.01234), number(12.34)
    ('1234', '0.0123', '12.3')
    """
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:.0f}"
    return f"{value:#.{digits}g}".rstrip(".")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write rows under a head.

    >>> print(table(["what", "ms"], [["a cell", "1.5"]]))
    what   | ms
    -------|----
    a cell | 1.5
    """
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = [" | ".join(one.ljust(width) for one, width in zip(row, widths, strict=True)) for row in [head, *rows]]
    lines.insert(1, "-|-".join("-" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)
