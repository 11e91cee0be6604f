"""`read_title_and_tables`: the tables of an HTML page with the cells and names that `pandas.read_html` returns."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .csv_dialect import as_lines
from .number_separators import code_columns, find_number_separators
from .table_extent import has_names
from .text_encoding import can_be_utf8
from .text_table import TextTable, cut_line, drop_blank_rows
from .total_rows import total_notes

_MAX_CELLS = 1_000_000
_BLANKS = re.compile(r"[\r\n]+|\s{2,}")
_NUMBER = {
    (".", ","): re.compile(r"[+-]?(?:\d[\d,]*)?(?:\.\d*)?(?:[Ee]-?\d+)?", re.ASCII),
    (",", "."): re.compile(r"[+-]?(?:\d[\d.]*)?(?:,\d*)?(?:[Ee]-?\d+)?", re.ASCII),
    (",", ""): re.compile(r"[+-]?\d*(?:,\d*)?(?:\d?[Ee]-?\d+)?", re.ASCII),
}
_HIDDEN = "display:none"


@dataclass
class PageTable:
    """A table of a page.

    Args:
        header: Texts of the header's rows, all of one length; empty: it has no header.
        rows: Texts below it, footer included, of the same length.
        caption: Its caption.
        layout: It holds links between pages, or its rows are of different lengths.
        row_headers: Most rows begin with a header cell.
    """

    header: list[list[str]] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    caption: str = ""
    layout: bool = False
    row_headers: bool = False

    @property
    def names(self) -> list[str]:
        """Return the columns' names; those of several header rows as tuples, those of none as numbers."""
        if not self.header:
            return [str(index) for index in range(len(self.rows[0]))]
        if len(self.header) == 1:
            return [name or f"Unnamed: {index}" for index, name in enumerate(self.header[0])]
        return [str(names[0]) if len(names) == 1 else str(names) for names in self._column_tuples()]

    @property
    def title(self) -> str:
        """The text of the first of several header rows, if it stands above all columns."""
        return self.header[0][0] if len(self.header) > 1 and len({*self.header[0]}) == 1 else ""

    def _column_tuples(self) -> list[tuple[str, ...]]:
        """Return the columns' names by level, as pandas has them, without a level that is the title."""
        levels = [
            [name or f"Unnamed: {index}_level_{level}" for index, name in enumerate(names)]
            for level, names in enumerate(self.header)
        ]
        known: Counter[tuple[str, ...]] = Counter()
        found = []
        for names in zip(*levels, strict=True):
            unique = (*names[:-1], f"{names[-1]}.{known[names]}") if known[names] else names
            found.append(unique[bool(self.title) :])
            known[names] += 1
        return found


def read_title_and_tables(content: bytes, *, encoding: str | None = None) -> tuple[str, list[PageTable]]:
    """Return a page's title, and its tables in the order of `pandas.read_html`.

    Args:
        content: The page, or its beginning.
        encoding: None: as the page declares it.

    Raises:
        ValueError: a cell goes over a number of rows or columns that is none, as `read_html` raises for the page; or
            the tables have more cells than can be looked through.
        ImportError: lxml is not installed, which `read_html` needs as well.

    Source:
        `pandas.io.html._LxmlFrameParser`. Differs: the cells of all tables are bounded.
    """
    from lxml import html  # type: ignore[import-untyped]  # optional: the extra `data` brings it

    if not content.strip():
        return "", []
    page = html.document_fromstring(content, parser=html.HTMLParser(recover=True, encoding=encoding))
    for element in page.iter("br"):
        element.tail = "\n" + (element.tail or "")
    title = " ".join(page.findtext(".//title", "").split())
    shown = [table for table in page.iter("table") if any(re.search(".+", text) for text in table.itertext())]
    shown = [table for table in shown if not _is_hidden(table)]
    for table in shown:
        for element in [*table.iter("style"), *filter(_is_hidden, table.iterdescendants())]:
            if element.getparent() is not None:
                element.drop_tree()
    tables, left = [], _MAX_CELLS
    for element in shown:
        table, count = _read_table(element, left)
        left -= count
        if table.header or table.rows:
            tables.append(table)
    return title, tables


def is_undeclared_utf8(content: bytes) -> bool:
    """Return whether a page is UTF-8 without saying so; lxml takes it for Latin-1."""
    declared = content.startswith(b"\xef\xbb\xbf") or b"charset" in content[:4096].lower()
    return not content.isascii() and not declared and can_be_utf8(content)


def _is_hidden(element: Any) -> bool:
    return _HIDDEN in (element.get("style") or "").replace(" ", "")


def _read_table(element: Any, max_cells: int) -> tuple[PageTable, int]:
    """Return a table, and how many cells it has."""
    head = [row for part in element.iter("thead") for row in _head_rows(part)]
    body = [*element.xpath(".//tbody//tr"), *element.xpath("./tr")]
    foot = element.xpath(".//tfoot//tr")
    if not head:
        head = [*itertools.takewhile(lambda row: all(cell.tag == "th" for cell in _cells(row)), body)]
        body = body[len(head) :]
    grid = _Grid(max_cells)
    header = grid.rows(head)
    rows = grid.rows(body, flush=not foot) + grid.rows(foot, flush=True)
    width = max(map(len, [*header, *rows]), default=0)
    grid.claim(width * (len(header) + len(rows)) - grid.count)  # short rows are as long as the widest one
    known = [len(row) == width for row in rows]
    if width == 1:  # pandas leaves out such rows
        header, rows = [row for row in header if any(row)], [row for row in rows if any(row)]
    header, rows = ([row + [""] * (width - len(row)) for row in some] for some in (header, rows))
    if len(header) > 1:
        header = [row for row in header if any(row)]
    heads = [cells[0].tag == "th" and len(cells) > 1 for row in body if (cells := _cells(row))]
    caption = element.find("caption")
    for note in [] if caption is None else [*caption.iter("sup")]:
        note.drop_tree()
    table = PageTable(
        header,
        rows,
        _element_text(caption)[:300] if caption is not None else "",
        any("navbox" in value or value == "navigation" for value in element.values()) or sum(known) * 2 <= len(known),
        sum(heads) * 2 > len(heads),
    )
    return (table if width else PageTable()), grid.count


def _head_rows(part: Any) -> list[Any]:
    return [*part.xpath("./tr"), *([part] if _cells(part) else [])]


def _cells(row: Any) -> list[Any]:
    return [cell for cell in row if cell.tag in ("td", "th")]


def _element_text(element: Any) -> str:
    return _BLANKS.sub(" ", str(element.text_content()).strip())


class _Grid:
    """The rows of a table; a cell over several rows or columns stands in each of them.

    Args:
        max_cells: With more of them a `ValueError` is raised.
    """

    def __init__(self, max_cells: int) -> None:
        self.count = 0
        self._most = max_cells
        self._above: list[tuple[int, str, int]] = []

    def rows(self, elements: list[Any], *, flush: bool = False) -> list[list[str]]:
        """Return the texts of rows.

        Args:
            elements: The rows.
            flush: Append rows that only cells of rows above reach.
        """
        found = [self._expand_row(_cells(element)) for element in elements]
        while flush and self._above:
            found.append(self._expand_row([]))
        return found

    def _expand_row(self, cells: list[Any]) -> list[str]:
        row: list[str] = []
        above, below = self._above, []
        for cell in cells:
            while above and above[0][0] <= len(row):
                below += self._append_span(above.pop(0), row)
            text, height = _element_text(cell), int(cell.get("rowspan") or 1)
            self.claim(width := int(cell.get("colspan") or 1))
            below += [(len(row) + index, text, height - 1) for index in range(width) if height > 1]
            row += [text] * width
        for span in above:
            below += self._append_span(span, row)
        self._above = below
        return row

    def _append_span(self, span: tuple[int, str, int], row: list[str]) -> list[tuple[int, str, int]]:
        """Append a cell of a row above; return what of it reaches further down."""
        at, text, left = span
        self.claim(1)
        row.append(text)
        return [(at, text, left - 1)] if left > 1 else []

    def claim(self, count: int) -> None:
        """Count cells.

        Args:
            count: How many; fewer than none: none.

        Raises:
            ValueError: there are too many.
        """
        self.count += max(0, count)
        if self.count > self._most:
            raise ValueError(f"its tables have more than {self._most} cells")


def page_table(page: PageTable, name: str, number: int, encoding: str | None) -> TextTable:
    """Return the description of a table as `pandas.read_html` returns it.

    Args:
        page: The table; it has a row.
        name: What code calls the file.
        number: Its place in the list that `read_html` returns.
        encoding: Which the call has to name; None: none.
    """
    names, rows, notes = page.names, page.rows, []
    levels = len(page.header) - bool(page.title)
    first = not levels and len(rows) > 2 and has_names(rows) and len(set(filter(None, rows[0]))) == len(rows[0])
    if first:
        names, rows = rows[0], rows[1:]
        notes.append("no header cells: without header=0 its first row is data, and the columns are 0, 1, …")
    rows, empty = drop_blank_rows(rows)
    decimal, thousands = _find_number_signs(names, rows)
    rows = [[_normalize_number(cell, decimal, thousands) for cell in row] for row in rows]
    codes = () if levels > 1 else code_columns(names, rows, "")
    named = bool(levels or first)
    converters = ", ".join(f"{code!r}: str" if named else f"{code}: str" for code in codes)
    options = {
        "header": "0" if first else "",
        "encoding": repr(encoding) if encoding else "",
        "decimal": "" if decimal == "." else repr(decimal),
        "thousands": "" if decimal == "." else repr(thousands or None),
        "converters": f"{{{converters}}}" if codes else "",
    }
    said = "".join(f", {key}={value}" for key, value in options.items() if value)
    if page.title:
        notes.append(f"its first header row says {page.title[:100]!r} above all columns, droplevel leaves that out")
    if levels > 1:
        notes.append(f"{levels} header rows: the columns have {levels} levels, so their names are tuples")
    if page.row_headers and levels == 1 and not page.title:
        notes.append(f"{names[0]!r} heads its rows: index_col=0 makes it the index")
    return TextTable(
        names,
        rows,
        name,
        raw=[cut_line(line) for line in as_lines([*page.header[bool(page.title) :], *page.rows[: 3 if levels else 4]])],
        notes=notes + empty + total_notes(names, rows),
        call=f"pd.read_html({name!r}{said})[{number}]{'.droplevel(0, axis=1)' * bool(page.title)}",
        named=named,
        quoted=levels < 2,
    )


def _find_number_signs(names: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[str, str]:
    """Return the signs of decimals and of thousands; commas are decimal ones where they part no groups of three.

    Points that part days and months as well are not taken for signs of thousands.
    """
    separators = find_number_separators(rows, ",")
    if separators.decimal == ".":
        return ".", ","
    doubtful = code_columns(names, rows, separators.thousands) != code_columns(names, rows, "")
    return ",", "" if doubtful else separators.thousands


def _normalize_number(text: str, decimal: str, thousands: str) -> str:
    """Return a cell without signs of thousands and with a decimal point, whatever else its column holds.

    Source:
        `pandas.io.parsers.python_parser.PythonParser.num`.
    """
    if thousands and 2 * thousands in text:
        return text
    if thousands and thousands in text and _NUMBER[decimal, thousands].fullmatch(text):
        text = text.replace(thousands, "")
    if decimal != "." and decimal in text and _NUMBER[decimal, thousands].fullmatch(text):
        text = text.replace(decimal, ".")
    return text
