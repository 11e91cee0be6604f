"""`TablesOfPage`: the tables of an HTML page with captions, header rows and cells over several rows and columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser

_MOST_COLUMNS = 500
_WIDEST = 100


@dataclass(frozen=True)
class _Cell:
    text: str
    heads: bool
    columns: int
    rows: int


@dataclass
class PageTable:
    """A table of a page, as it is parsed.

    Args:
        cells: By row.
        in_head: Numbers of the rows in the table's head.
        caption: Its caption.
        navigation: It holds links between pages.
    """

    cells: list[list[_Cell]] = field(default_factory=list)
    in_head: set[int] = field(default_factory=set)
    caption: str = ""
    navigation: bool = False

    @property
    def header_rows(self) -> int:
        """Return how many of the first rows are its header: those in its head, else those of header cells only.

        Source: what `pandas.read_html` takes for the header.
        """
        if self.in_head:
            return len([at for at in self.in_head if self.cells[at]])
        count = 0
        while count < len(self.cells) and self.cells[count] and all(one.heads for one in self.cells[count]):
            count += 1
        return count if count < len(self.cells) else 0

    @property
    def row_headers(self) -> bool:
        """Return whether most rows below the header begin with a header cell."""
        below = [row for row in self.cells[self.header_rows :] if row]
        return sum(row[0].heads and len(row) > 1 for row in below) * 2 > len(below)

    def rows(self) -> list[list[str]]:
        """Return the texts by row; a cell over several rows or columns stands in each of them."""
        found: list[list[str]] = []
        above: dict[int, tuple[str, int]] = {}
        for cells in self.cells:
            row: list[str] = []
            for one in cells:
                _take_above(row, above)
                for _ in range(one.columns if len(row) < _MOST_COLUMNS else 0):
                    if one.rows > 1:
                        above[len(row)] = (one.text, one.rows)
                    row.append(one.text)
            _take_above(row, above)
            above = {at: (text, left - 1) for at, (text, left) in above.items() if left > 1}
            found.append(row)
        return found

    def table(self) -> list[list[str]]:
        """Return the rows with one header row: names of several are joined by ` / `, without those over all columns."""
        rows, count = [row for row in self.rows() if any(row)], self.header_rows
        if count < 2 or count >= len(rows):
            return rows
        width = max(map(len, rows[:count]))
        header = [row for row in rows[:count] if len(set(row)) > 1]
        levels = [[row[at] for row in header if at < len(row)] for at in range(width)]
        return [[" / ".join(dict.fromkeys(filter(None, names))) for names in levels], *rows[count:]]


def _take_above(row: list[str], above: dict[int, tuple[str, int]]) -> None:
    """Append the cells of rows above that reach down to here."""
    while len(row) in above and len(row) < _MOST_COLUMNS:
        row.append(above[len(row)][0])


class TablesOfPage(HTMLParser):
    """The tables of an HTML page, read from the page's own text.

    Args:
        most_rows: How many rows of each table are kept.
    """

    def __init__(self, most_rows: int = 2000) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self.tables: list[PageTable] = []
        self._most_rows = most_rows
        self._open: list[PageTable] = []
        self._cell: list[str] | None = None
        self._form = (False, 1, 1)
        self._in = ""
        self._in_head = False
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a table, a row or a cell.

        Args:
            tag: Its name.
            attrs: `colspan` and `rowspan` of cells.
        """
        if tag in ("table", "tr", "td", "th"):
            self._end_cell()  # which may have no end of its own
        if tag == "table":
            self._open.append(PageTable(navigation=any(_is_navigation(value) for _, value in attrs)))
            self.tables.append(self._open[-1])
        elif tag == "tr" and self._open and len(self._open[-1].cells) < self._most_rows:
            table = self._open[-1]
            if self._in_head:
                table.in_head.add(len(table.cells))
            table.cells.append([])
        elif tag in ("td", "th") and self._open and self._open[-1].cells:
            self._cell, spans = [], dict(attrs)
            self._form = (tag == "th", _span(spans.get("colspan")), _span(spans.get("rowspan")))
        elif tag in ("script", "style", "sup"):
            self._hidden += 1
        elif tag == "br" and self._cell is not None:
            self._cell.append(" ")
        self._in_head = (self._in_head or tag == "thead") and tag not in ("table", "tbody", "tfoot")
        if tag in ("title", "caption", "body", "table", "tr", "td", "th"):
            self._in = tag

    def handle_endtag(self, tag: str) -> None:
        """End a table or a cell."""
        if tag in ("td", "th", "tr", "table"):
            self._end_cell()
        if tag == "table" and self._open:
            self._open.pop()
        elif tag in ("script", "style", "sup"):
            self._hidden = max(0, self._hidden - 1)
        self._in_head = self._in_head and tag not in ("thead", "table")
        if tag == self._in:
            self._in = ""

    def _end_cell(self) -> None:
        if self._cell is not None and self._open and self._open[-1].cells:
            heads, columns, rows = self._form
            self._open[-1].cells[-1].append(_Cell(" ".join("".join(self._cell).split()), heads, columns, rows))
        self._cell = None

    def handle_data(self, data: str) -> None:
        """Take text."""
        if self._hidden:
            return
        if self._in == "title":
            self.title += data.strip()
        elif self._in == "caption" and self._open:
            self._open[-1].caption = " ".join(f"{self._open[-1].caption} {data}".split())[:300]
        elif self._cell is not None:
            self._cell.append(data)


def _is_navigation(value: str | None) -> bool:
    return value is not None and ("navbox" in value or value == "navigation")


def _span(text: str | None) -> int:
    """Return over how many rows or columns a cell goes, within bounds."""
    return min(_WIDEST, max(1, int(text))) if text and text.isdecimal() and len(text) < 6 else 1


def remarks(table: PageTable, columns: Sequence[str]) -> list[str]:
    """Return what `pandas.read_html` makes of a table's header that its names don't show.

    Args:
        table: As it was parsed.
        columns: Their names, as they are described.
    """
    said = []
    if table.header_rows > 1:
        said.append(f"{table.header_rows} header rows: pd.read_html makes columns of {table.header_rows} levels")
    elif not table.header_rows:
        said.append("no header cells: header=0 takes its first row for the header")
    if table.row_headers:
        said.append(f"{columns[0]!r} heads its rows: index_col=0 makes it the index")
    return said
