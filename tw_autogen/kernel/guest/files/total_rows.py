"""`total_notes`: which rows of a table are totals of the others; their labels in several languages, checked by sums."""

from __future__ import annotations

from collections.abc import Sequence

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
)
"""What totals are called, as the whole label, or its first or last word."""
_LABELS = frozenset(_WORDS.split())
_LONGEST = 40
_LEAST_ROWS = 2
_MOST_LABELS = 3
_SHARE = 0.001
"""So much of a sum may be lost by rounding."""


def total_notes(
    names: Sequence[str], rows: Sequence[Sequence[str]], *, decimal: str = ".", thousands: str = ","
) -> list[str]:
    """Return a note for each text column that marks rows whose numbers are the sums of the other rows.

    A row is marked by a label such as `Total`, or by the only empty first cell if it is the last one. Rows of
    totals and of totals of these totals are recognized together, also if their labels stand in several columns.

    Args:
        names: The header, length m.
        rows: All of the table.
        decimal: Sign in front of decimals.
        thousands: Sign between groups of three digits.
    """
    notes: list[str] = []
    unnamed = [number for number, row in enumerate(rows) if row[:1] == [""]]
    unsummed: dict[int, list[int]] = {}
    for at in range(len(names)):
        labels = {one for one in {row[at] for row in rows if at < len(row)} if _is_label(one)}
        marked = [number for number, row in enumerate(rows) if at < len(row) and row[at] in labels]
        if at == 0 and not marked and unnamed == [len(rows) - 1]:
            marked = unnamed
        if marked and (said := _totals(names, rows, [at], labels, marked, decimal, thousands)):
            notes.append(said)
        elif labels:
            unsummed[at] = marked
    if not notes and len(unsummed) > 1:
        labels = {rows[number][at] for at, marked in unsummed.items() for number in marked}
        together = sorted({number for marked in unsummed.values() for number in marked})
        said = _totals(names, rows, list(unsummed), labels, together, decimal, thousands)
        notes += [said] if said else []
    return notes


def _totals(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    places: Sequence[int],
    labels: set[str],
    marked: Sequence[int],
    decimal: str,
    thousands: str,
) -> str:
    """Return a note on marked rows that are totals; empty: a number of them is no sum, in whichever column.

    Args:
        names: The header.
        rows: All of the table.
        places: Columns of the labels.
        labels: The words that mark rows.
        marked: Numbers of the rows.
        decimal: Sign in front of decimals.
        thousands: Sign between groups of three digits.
    """
    if len(rows) - len(marked) < _LEAST_ROWS:
        return ""
    columns = (other for other in range(len(names)) if other not in places)
    summed = next((one for one in columns if _adds_up(rows, one, set(marked), decimal, thousands)), None)
    where = " and ".join(repr(names[at]) for at in places)
    return "" if summed is None else _note(where, sorted(labels), marked, names[summed], rows)


def _is_label(text: str) -> bool:
    low = text.strip(" :.*-–=").casefold()
    if not low or len(low) > _LONGEST:
        return False
    return low in _LABELS or low.partition(" ")[0] in _LABELS or low.rpartition(" ")[2] in _LABELS


def _number(row: Sequence[str], at: int, decimal: str, thousands: str) -> float | None:
    return plain_number(row[at].strip(" $€£¥"), decimal, thousands) if at < len(row) else None


def _adds_up(rows: Sequence[Sequence[str]], column: int, marked: set[int], decimal: str, thousands: str) -> bool:
    """Return whether the marked numbers are sums of the others; or such sums, and the sums of these."""
    read = [_number(rows[at], column, decimal, thousands) for at in sorted(marked)]
    totals = [one for one in read if one is not None]
    if len(totals) < len(marked):
        return False
    rest = (_number(row, column, decimal, thousands) for at, row in enumerate(rows) if at not in marked)
    others = [one for one in rest if one is not None]
    if sum(map(bool, others)) < _LEAST_ROWS:
        return False
    whole = all(one == int(one) for one in [*totals, *others] if abs(one) < 1e15)
    rounding = min(len(others) / 2, _SHARE * abs(sum(others))) if whole else _SHARE * abs(sum(others))
    levels = (1, 2) if len(totals) > 2 else (1,)
    return any(abs(sum(totals) - level * sum(others)) <= rounding for level in levels) and sum(others) != 0


def _note(where: str, labels: Sequence[str], marked: Sequence[int], summed: str, rows: Sequence[Sequence[str]]) -> str:
    if len(marked) > 1:
        shown = ", ".join(map(show, labels[:_MOST_LABELS])) + (", …" if len(labels) > _MOST_LABELS else "")
        return f"{len(marked)} rows with {shown} in {where} are totals: {summed!r} is the sum of other rows"
    place = {0: "first row", len(rows) - 1: "last row"}.get(marked[0], f"row {marked[0]}")
    return f"the {place} is a total, {summed!r} the sum of the others: {as_lines([rows[marked[0]]])[0][:200]}"
