"""`total_notes`: which rows of a table are totals of the others; their labels in several languages, checked by sums."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence

from .column_profile import plain_number, show
from .csv_dialect import as_lines

_WORDS = (
    "total totals subtotal sum all overall together gesamt gesamtsumme insgesamt summe "
    "zusammen ensemble somme suma totales todos todas toplam totale totali complesso "
    "totaal totalt totalsumma summa yhteensä celkem spolu razem ogółem łącznie összesen "
    "ukupno skupaj kokku kopā viso jumlah tổng итого всего разом усього "
    "общо укупно σύνολο المجموع الإجمالي 합계 총계 전체 계 合计 合計 "
    "总计 總計 总数 總數 小计 小計 计 計 全体 全国 รวม "
    "कुल योग "
    "gesamtergebnis eindtotaal hovedtotal totalsum součet végösszeg итог 総計 총합계 "
    "totais totaux endsumme gesamttotal sub-total subtotals zwischensumme zwischentotal teilsumme sous-total "
    "sous-totaux subtotaal subtotale subtotales subtotais delsumma delsum mezisoučet medzisúčet podsuma részösszeg "
    "подытог підсумок välisumma vahesumma međuzbroj 소계 "
)
"""What totals are called, as the whole label, or its first or last word."""
_LABELS = frozenset(_WORDS.split())
_LONGEST = 40
_MIN_ROWS = 2
_MAX_LABELS = 3
_SHARE, _EXACT = 0.001, 1e-12
"""Less than such a share of a sum is lost by rounding its numbers; of all numbers of a column by adding them."""


def total_notes(
    names: Sequence[str], rows: Sequence[Sequence[str]], *, decimal: str = ".", thousands: str = ","
) -> list[str]:
    """Return a note for each text column that marks rows whose numbers are the sums of other rows.

    A row is marked by a label such as `Total`; in a table without labels, by the only empty first cell if it is the
    last one. Rows of totals and of totals of these totals are recognized together, also if their labels stand in
    several columns. Rows are said to be totals if their labels say that and no more, and all of their numbers that are
    no keys, such as a year, are sums; else it is said that they may be totals. So may a last row that alone says it is
    one and is no sum: rows whose labels are not known here may be totals, too.

    Args:
        names: The header, length m.
        rows: All of the table.
        decimal: Sign in front of decimals.
        thousands: Sign between groups of three digits.
    """
    labelled: dict[int, list[int]] = {}
    for index in range(len(names)):
        labels = {label for label in {_cell(row, index) for row in rows} if _is_label(label)}
        if labels:
            labelled[index] = [number for number, row in enumerate(rows) if _cell(row, index) in labels]
    unnamed = [number for number, row in enumerate(rows) if row[:1] == [""]]
    if not labelled and unnamed == [len(rows) - 1]:
        labelled[0] = unnamed
    together = sorted({number for marked in labelled.values() for number in marked})
    if len(labelled) > 1 and (said := _totals_note(names, rows, list(labelled), together, decimal, thousands)):
        return [said]
    notes = (_totals_note(names, rows, [index], marked, decimal, thousands) for index, marked in labelled.items())
    return [note for note in notes if note]


def _totals_note(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    places: Sequence[int],
    marked: Sequence[int],
    decimal: str,
    thousands: str,
) -> str:
    """Return a note on marked rows that are totals, or may be; empty: in no column all of their numbers are sums.

    A last row with a label may be one even then. A row without a label holds nothing but sums.

    Args:
        names: The header.
        rows: All of the table.
        places: Columns of the labels.
        marked: Numbers of the rows, in order.
        decimal: Sign in front of decimals.
        thousands: Sign between groups of three digits.
    """
    if len(rows) - len(marked) < _MIN_ROWS:
        return ""
    others, apart = [index for index in range(len(names)) if index not in places], set(marked)
    known = {index: {_cell(row, index) for number, row in enumerate(rows) if number not in apart} for index in others}
    keys = [index for index in others if all(_cell(rows[number], index) in known[index] for number in marked)]
    keyed = [tuple(_cell(row, index) for index in keys) for row in rows]
    found: dict[str, list[str]] = {"sum": [], "nearly": [], "no sum": [], "unknown": []}
    for column in others:
        numbers = [_cell_number(row, column, decimal, thousands) for row in rows]
        found["unknown" if column in keys else _judge_sums(numbers, marked, keyed)].append(names[column])
    labels = sorted({label for number in marked for index in places if _is_label(label := _cell(rows[number], index))})
    if not labels and len(found["sum"]) < sum(map(bool, rows[marked[0]])):
        return ""
    where = " and ".join(repr(names[index]) for index in places)
    last = (
        list(marked) == [len(rows) - 1] and found["no sum"] and all(_bare_label(label) in _LABELS for label in labels)
    )
    return _marked_rows_note(rows, where, labels, marked, found) if found["sum"] or found["nearly"] or last else ""


def _bare_label(label: str) -> str:
    return label.strip(" :.*-–=").casefold()


def _is_label(text: str) -> bool:
    low = _bare_label(text)
    if not low or len(low) > _LONGEST:
        return False
    return low in _LABELS or low.partition(" ")[0] in _LABELS or low.rpartition(" ")[2] in _LABELS


def _cell(row: Sequence[str], index: int) -> str:
    return row[index] if index < len(row) else ""


def _cell_number(row: Sequence[str], index: int, decimal: str, thousands: str) -> float | None:
    return plain_number(_cell(row, index).strip(" $€£¥"), decimal, thousands)


def _judge_sums(numbers: Sequence[float | None], marked: Sequence[int], keys: Sequence[tuple[str, ...]]) -> str:
    """Return whether each marked number of a column is the `sum` of others, or `nearly`; `no sum`, or `unknown`.

    The only one is the sum of all others. One of several may also be the sum of those between it and the marked one
    above it, or below it, or of those that have its keys.

    Args:
        numbers: Of the column, length n; None: no number.
        marked: The numbers of the rows, in order.
        keys: Other labels of each row, length n.
    """
    totals = {index: one for index in marked if (one := numbers[index]) is not None}
    others = [0.0 if index in totals else number or 0.0 for index, number in enumerate(numbers)]
    if len(totals) < len(marked) or not any(others):
        return "unknown"
    upto = [0.0, *itertools.accumulate(others)]
    keyed: dict[tuple[str, ...], float] = defaultdict(float)
    for key, one in zip(keys, others, strict=True):
        keyed[key] += one
    lost, nearly = _EXACT * sum(map(abs, others)), False
    for before, (at, total), after in zip([-1, *marked], totals.items(), [*marked[1:], len(numbers)], strict=False):
        beside = (upto[at] - upto[before + 1], upto[after] - upto[at + 1], keyed[keys[at]]) if len(marked) > 1 else ()
        sums = (upto[-1], *beside)
        if not any(abs(total - row_sum) <= lost for row_sum in sums):
            nearly = True
            if not any(abs(total - row_sum) < _SHARE * abs(row_sum) for row_sum in sums):
                return "no sum"
    if sum(map(bool, others)) < _MIN_ROWS or not any(totals.values()):
        return "unknown"
    return "nearly" if nearly else "sum"


def _marked_rows_note(
    rows: Sequence[Sequence[str]],
    where: str,
    labels: Sequence[str],
    marked: Sequence[int],
    found: Mapping[str, Sequence[str]],
) -> str:
    """Return a note on marked rows.

    Args:
        rows: All of the table.
        where: The columns of the labels.
        labels: The labels.
        marked: Numbers of the rows.
        found: The names of columns by what their marked numbers are, see `_judge_sums`.
    """
    exact, near, off = found["sum"][:1], found["nearly"][:1], found["no sum"][:1]
    sure = labels and all(_bare_label(label) in _LABELS for label in labels) and not near and not off
    rest = "other rows" if len(marked) > 1 else "the others"
    parts = [f"{total!r} is the sum of {rest}" for total in exact]
    parts += [f"{total!r} nearly" if exact else f"{total!r} is nearly the sum of {rest}" for total in near]
    sums = ", ".join([*parts, *(f"{total!r} is not" + f" the sum of {rest}" * (not parts) for total in off)])
    if len(marked) > 1:
        shown = ", ".join(map(show, labels[:_MAX_LABELS])) + (", …" if len(labels) > _MAX_LABELS else "")
        return f"{len(marked)} rows with {shown} in {where} {'are' if sure else 'may be'} totals: {sums}"
    place = {0: "first row", len(rows) - 1: "last row"}.get(marked[0], f"row {marked[0]}")
    verdict = f"is a total, {exact[0]!r} the sum of the others" if sure else f"may be a total ({sums})"
    return f"the {place} {verdict}: {as_lines([rows[marked[0]]])[0][:200]}"
