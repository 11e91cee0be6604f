"""Where a table begins and ends in a text: lines above its header, the header, units, notes below its rows."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Collection, Sequence

from .csv_dialect import BLANKS, MIN_LINES, NUMBER, NUMBER_SHARE, SAMPLE_LINES, SEPARATORS, find_separator, parse_rows

_TITLE_LINES = 10
_HEAD_LINES = 30
_DIFFERENT = 0.75
"""Of names that stand alone so many are different; fewer of those that are pairs with heads of groups."""
_LONGEST_UNIT = 25
_UNITS = (
    "[kcmµnMGT]?(?:m|g|s|l|L|W|V|A|J|N|Pa|Hz|mol|bit|B|Wh|cal|bar|t|eV)|[km]?[Kk]|[°º]?[CF]|h|d|a|hr|hrs|min|sec|deg[CF]?"
    "|rad|hPa|ha|psi|dB|lx|px|pp[mb]|pH|in|ft|yd|mi|lbs?|oz|gal|mph|kn|rpm|hours?|minutes?|seconds?|days?|months?|years?"
    "|Tage?|Stunden?|Minuten?|Sekunden?|Jahre?|EUR|USD|GBP|CHF|JPY|CNY|TEUR|Euro|Mio|Mrd|Tsd|count|number|percent|Prozent"
    "|Anzahl|Stück|Stk|n|-|–|[%‰°€$£]"
)
_UNIT = re.compile(
    rf"[\[(].{{0,20}}[\])]|(?:1|{_UNITS})(?:\^?[-−]?[123²³])?\.?(?:[ */·](?:{_UNITS})(?:\^?[-−]?[123²³])?\.?){{0,3}}"
)
"""A unit, in brackets whatever it is."""
_SEPARATOR_LINE = re.compile(r"sep=.", re.IGNORECASE)
_DIGIT, _DIGITS = re.compile(r"\d"), re.compile(r"\d+")
_YEAR = re.compile(r"(?:1[89]|20)\d\d")
_NOTE = re.compile(r"(?=.{0,300}\s)[*†‡©¹²³(\[].|[^:]{0,40}\w:(?:\s|$)", re.DOTALL)
_ABOUT_ROWS, _SENTENCE_WORDS = 5, 6
_THOUSANDS = re.compile(r"\d{3}(?:\.\d{1,9})?")
_NOTE_SHARE, _NOTE_BLANKS = 10, 5
"""A value of ten may look like a note; a longer sentence of six words or more is one."""


def has_names(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row of a table holds names; True where that is not certain.

    It holds none if it has a number in each column of numbers, and these are no names such as years: one has decimals,
    stands there twice or is all that its column holds, or what stands beside them, other than a year above other
    numbers, occurs again in its column, with whatever digits; but not if they only grow. Of growing decimals, the text
    beside them has to be of another form than those below, or most rows below must not grow. What has no name above
    the names of rows is a header, too.

    Args:
        rows: All of the table, or the first ones.
    """
    first, columns, numbers = _first_row(rows)
    found = [first[index] for index in numbers if first[index]]
    if not found or not all(map(NUMBER.fullmatch, found)) or _is_ascending(found) or _stands_above_row_names(rows):
        return True
    texts = [
        index
        for index in range(len(first))
        if index not in numbers and first[index] and not _names_year(first[index], columns[index])
    ]
    again = any(
        _DIGITS.sub("0", first[index]) in {_DIGITS.sub("0", cell) for cell in columns[index]} for index in texts
    )
    if not again and texts and _is_growing(found):
        rest = rows[1 : SAMPLE_LINES + 1]
        growing = sum(_is_growing([row[index].strip() for index in numbers if index < len(row)]) for row in rest)
        if any(_differs_by_digits(first[index], columns[index]) for index in texts) or (
            len(found) > 3 and 2 * growing < len(rest)
        ):
            return True
    elif not _is_counted(found) and any(set(columns[index]) == {first[index]} for index in numbers):
        return False
    enough = any(_are_numbers(columns[index]) for index in numbers)
    return not (again or (enough and (len(set(found)) < len(found) or any("." in name for name in found))))


def _stands_above_row_names(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row alone has no first value, or lacks one, above values all of which are different.

    So R and pandas write the names of rows below those of columns.
    """
    first, rest = rows[0], [row for row in rows[1 : SAMPLE_LINES + 1] if any(cell.strip() for cell in row)]
    names = {row[0].strip() for row in rest if row} - {""}
    lacks = all(len(row) == len(first) + 1 and row[-1].strip() for row in rest) or not first[0].strip()
    return len(first) > 1 and lacks and len(rest) == len(names) >= MIN_LINES


def may_lack_names(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a first row that `has_names` may still be data: its numbers above numbers are no usual names.

    Usual ones are years, numbers from 0 on, and three numbers or more that grow.

    Args:
        rows: All of the table, or the first ones.
    """
    first, _, numbers = _first_row(rows)
    found = [first[index] for index in numbers if first[index]]
    usual = all(map(_YEAR.fullmatch, found)) or _is_counted(found) or (len(found) > 2 and _is_growing(found))
    return all(map(NUMBER.fullmatch, found)) and not usual


def lines_about_table(rows: Sequence[Sequence[str]], separator: str, *, whole: bool) -> int:
    """Return how many of the first rows certainly say something of the file and are neither names nor data.

    That are the numbers of its rows and columns, with or without a last one, in a first row; prose or a number of few
    values above rows all of which have as many as one another, three or more; and a sentence above names.

    Args:
        rows: The first ones of a text, or all.
        separator: Between values.
        whole: They are all.
    """
    filled = [index for index, row in enumerate(rows) if len(row) > 1 or (row and row[0].strip())]
    if len(filled) <= _ABOUT_ROWS:
        return 0
    first, width = [cell.strip() for cell in rows[0]], len(rows[filled[-1]])
    counts = len(first) < width or not all(map(NUMBER.fullmatch, first))
    if whole and counts and first[:1] == [str(len(filled) - 1)] and first[1:2] in ([str(width)], [str(width - 1)]):
        return 1
    if may_be_sentence(rows, separator) and _are_names(rows[1]) and _has_numbers_below(rows[1:]):
        return 1
    above = next((at for at in filled[: _TITLE_LINES + 1] if len(rows[at]) == width), 0)
    about, below = rows[:above], [rows[at] for at in filled if at >= above]
    prose = all(len(row) < width - 1 for row in about) and any(
        NUMBER.fullmatch(first[0].strip()) or " " in row[0].strip() for row in about[:1]
    )
    if not (prose and width > 2 and len(below) > _ABOUT_ROWS and all(len(row) == width for row in below)):
        return 0
    texts = separator == "," and (
        any(cell[:1] == " " for row in below for cell in row[1:])
        or all(_THOUSANDS.fullmatch(cell.strip()) for row in below for cell in row[1:])
    )
    return 0 if texts or not any(_are_numbers([row[at].strip() for row in below]) for at in range(width)) else above


def _has_numbers_below(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row stands above rows of its length with a column of numbers."""
    _, _, numbers = _first_row(rows)
    return bool(numbers) and all(len(row) == len(rows[0]) for row in rows[1 : SAMPLE_LINES + 1] if row)


def may_be_sentence(rows: Sequence[Sequence[str]], separator: str) -> bool:
    """Return whether the commas of the first row may be those of a sentence: a blank follows each, and none below.

    Args:
        rows: The first one, and some below it.
        separator: What parts their cells.
    """
    first = rows[0]
    spaced = separator == "," and len(first) > 1 and all(cell[:1] == " " and cell.strip() for cell in first[1:])
    words = len(" ".join(first).split())
    return (
        spaced
        and words >= _SENTENCE_WORDS
        and words > 2 * len(first)
        and not any(cell[:1] == " " for row in rows[1:] for cell in row[1:])
    )


def _first_row(rows: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]], list[int]]:
    """Return the first row, the filled cells below each of its values, and which columns have numbers below it."""
    first, rest = [cell.strip() for cell in rows[0]], rows[1 : SAMPLE_LINES + 1]
    columns = [
        [row[index].strip() for row in rest if index < len(row) and row[index].strip()] for index in range(len(first))
    ]
    numbers = [index for index, cells in enumerate(columns) if _are_numbers(cells)]
    few = [index for index, cells in enumerate(columns) if len(cells) > 1 and all(map(NUMBER.fullmatch, cells))]
    return first, columns, numbers or few


def is_units_row(rows: Sequence[Sequence[str]], *, missing: Collection[str] = (), words: bool = False) -> bool:
    """Return whether the first row below the names is certainly none, but units or a second line of names.

    It has a unit, which does not come again, for most columns of numbers, two at least, and a number or a word that is
    no unit for none.

    Args:
        rows: Below the names.
        missing: What stands for a missing value.
        words: Any word counts as a unit, since the line above has gaps.
    """
    first, rest = [cell.strip() for cell in rows[0]], rows[1 : SAMPLE_LINES + 1]
    if len(rest) < MIN_LINES or any(len(row) != len(first) for row in rest) or any(map(NUMBER.fullmatch, first)):
        return False
    numbers, units = 0, 0
    for index, cell in enumerate(first):
        below = [row[index].strip() for row in rest if row[index].strip() not in missing]
        if cell and (cell in below or len(cell) > _LONGEST_UNIT):
            return False
        if below and sum(bool(NUMBER.fullmatch(cell)) for cell in below) > NUMBER_SHARE * len(below):
            numbers += 1
            if cell in missing:
                continue
            if not words and not _UNIT.fullmatch(cell):
                return False
            units += any(char.isalpha() or char in "%°€$£" for char in cell)
    texts = sum(bool(cell) for cell in first)
    return numbers > 1 and units > 1 and 2 * units > numbers and 2 * units >= texts


def _are_numbers(cells: Sequence[str]) -> bool:
    """Return whether nearly all of some filled cells are numbers, and there are enough to tell."""
    return len(cells) >= MIN_LINES and sum(bool(NUMBER.fullmatch(cell)) for cell in cells) > NUMBER_SHARE * len(cells)


def _names_year(name: str, cells: Sequence[str]) -> bool:
    """Return whether a year stands above numbers most of which are none."""
    numbers = [cell for cell in cells if NUMBER.fullmatch(cell)]
    return bool(_YEAR.fullmatch(name)) and 2 * sum(map(bool, map(_YEAR.fullmatch, numbers))) < len(numbers)


def _is_ascending(numbers: Sequence[str]) -> bool:
    """Return whether four numbers or more grow from one to the next, as years or classes of size do."""
    return len(numbers) > 3 and all(
        len(number) <= len(other) and number < other for number, other in itertools.pairwise(numbers)
    )


def _is_counted(names: Sequence[str]) -> bool:
    """Return whether names are the numbers from 0 on, as those that pandas makes."""
    return list(names) == [str(index) for index in range(len(names))]


def _is_growing(numbers: Sequence[str]) -> bool:
    """Return whether plain numbers, two at least, grow from one to the next."""
    try:
        return len(numbers) > 1 and all(number < other for number, other in itertools.pairwise(map(float, numbers)))
    except ValueError:
        return False


def _differs_by_digits(name: str, values: Sequence[str]) -> bool:
    """Return whether each value has a digit, as in `G12`, and a name has none."""
    return bool(values) and not _DIGIT.search(name) and all(map(_DIGIT.search, values))


def lines_above_header(lines: Sequence[str], *, tabs: bool = False) -> int:
    """Return how many of the first lines are comments (`#`), `sep=;`, separators alone, or a title and heads of groups.

    0 where that is not certain.

    Args:
        lines: The file's first lines, without line ends.
        tabs: Whether a tab parts the columns.
    """
    comments = 1 if len(lines) > 1 and _SEPARATOR_LINE.fullmatch(lines[0]) else 0
    filled = next((index for index, line in enumerate(lines) if line.strip(BLANKS) or not line), 0)
    if not any(NUMBER.fullmatch(part) for line in lines[filled : filled + 1] for part in re.split(f"[{BLANKS}]", line)):
        comments = max(comments, filled)  # else it is data without names
    first = comments
    while comments < len(lines) and lines[comments].startswith("#"):
        comments += 1
    if comments == len(lines):  # there is nothing else: then it is data
        comments = first
    below = [line for line in lines[comments : comments + SAMPLE_LINES] if line.strip()]
    if comments > first and is_hash_header(lines[comments - 1], below, find_separator(below, tabs=tabs)):
        return comments - 1
    some = lines[comments : comments + SAMPLE_LINES]
    return comments + (_title_lines(some, tabs) or _lines_above_names(some, tabs))


def is_hash_header(line: str, lines: Sequence[str], separator: str) -> bool:
    """Return whether a line that begins with `#` holds the names of the columns of the lines below it.

    It has as many values, all of them words or years; and no other names stand below: there is a number, or there is
    none in the whole table, `#` is part of the first name, and the columns are three or more.

    Args:
        line: The line.
        lines: Below it.
        separator: Between values.
    """
    try:
        (names,), rows = parse_rows([line], separator), parse_rows([line for line in lines if line.strip()], separator)
    except ValueError:
        return False
    names = [name.strip() for name in names]
    alike = [len(row) == len(names) for row in rows]
    if len(names) < 2 or not all(names) or not _are_names(names):
        return False
    if alike[:1] != [True] or sum(alike) <= NUMBER_SHARE * len(rows):
        return False
    numbers = [any(NUMBER.fullmatch(cell.strip()) for cell in row) for row in rows]
    return numbers[0] or (not any(numbers) and len(names) > 2 and not line[1:2].isspace())


def _are_names(cells: Sequence[str]) -> bool:
    """Return whether cells can be a header: words, and behind the first one years."""
    return not any(NUMBER.fullmatch(cell) and not (index and _YEAR.fullmatch(cell)) for index, cell in enumerate(cells))


def _title_lines(lines: Sequence[str], tabs: bool) -> int:
    """Return how many lines before the header are a title.

    The header below a title has words only, and years behind its first name, and stands above rows of its own length
    with numbers, to which an empty last name does not count; below a title of one value, three different words above
    rows of their length will do. Below lines with gaps it has no gap. The separator is that of most lines, since commas
    are common in titles.
    """
    gaps, separator = False, find_separator(lines[min(_TITLE_LINES, len(lines) // 2) :], tabs=tabs, titled=True)
    for count in range(1, min(_TITLE_LINES + 1, len(lines))):
        rest = [line for line in lines[count:] if line.strip()]
        try:
            header, *rows = csv.reader(rest or [""], delimiter=separator)
            above = [[cell.strip() for cell in row] or [""] for row in csv.reader(lines[:count], delimiter=separator)]
        except (csv.Error, ValueError):  # no row at all, or a value that is too long
            return 0
        if not above or not above[0][0]:
            return 0
        if len(header) < 2 or not lines[count].strip() or not any(cell.strip() for cell in header[1:]):
            continue  # one more line of the title
        split = max(sum(1 for cell in row if cell) for row in above) > 1
        last = max(index for index, cell in enumerate(header) if cell.strip()) + 1
        alike = [row for row in rows if len(row) in (last, len(header))]
        named = [cell.strip() for cell in header if cell.strip()]
        words = len(named) > 0.7 * len(header) and _are_names(named)
        numbers = any(NUMBER.fullmatch(cell.strip()) for row in alike for cell in row)
        numbers = numbers or (not split and _is_text_table(header, rows))
        table = words and numbers and len(alike) > 0.5 * len(rows)
        table = table and not (split and len(alike) <= 0.9 * sum(len(row) > 1 for row in rows))
        if table and (_has_gaps(above, header, rows) if gaps else _is_title(lines[:count], above, len(header), split)):
            return count
        gaps = gaps or (not split and len(named) < len(header))
        if not split and not gaps and 2 * len(alike) > len(rows):
            return 0
    return 0


def _lines_above_names(lines: Sequence[str], tabs: bool) -> int:
    """Return how many lines stand above names that have a word or year above nearly each column of numbers.

    The lines above hold heads of groups, each above the first of its columns, or say something of the table. Names of
    which many occur twice in the second line are pairs with those of the first.
    """
    end = min(_HEAD_LINES, len(lines) // 2)
    if any(line.count('"') % 2 for line in lines[:end]):
        return 0
    try:
        rows = list(csv.reader(lines, delimiter=find_separator(lines[end:], tabs=tabs, titled=True)))
    except csv.Error:
        return 0
    below = [
        [cell.strip() for cell in cells if cell.strip()] for cells in itertools.zip_longest(*rows[end:], fillvalue="")
    ]
    # Numbers of rows have no name.
    columns = [index for index, cells in enumerate(below) if index and _are_numbers(cells)]
    heads, figures = list[int](), 0
    for at, row in enumerate(rows[:end] if len(columns) > 1 else []):
        cells = [row[column].strip() for column in columns if column < len(row) and row[column].strip()]
        years = not heads and all(map(_YEAR.fullmatch, cells))  # which are names
        numbers = 0 if years else sum(bool(NUMBER.fullmatch(cell)) for cell in cells)
        if 2 * numbers >= len(columns):
            break
        figures += numbers
        if len(cells) - numbers >= NUMBER_SHARE * len(columns):
            heads.append(at)
    else:
        return 0
    first = next((index for index in reversed(heads) if index - 1 not in heads), 0)
    named = [cell.strip() for cell in rows[first] if cell.strip()]
    if heads and heads[0] < first and not figures:  # names stand above; those with figures have a table of their own
        return 0
    return first if first > 1 or len(set(named)) >= _DIFFERENT * len(named) else 0


def heads_above(lines: Sequence[str], header: Sequence[str], separator: str) -> int:
    """Return how many lines right above a header in which names occur twice hold heads of groups of these.

    Args:
        lines: Above the header.
        header: Its names.
        separator: Between values.
    """
    names = list(filter(None, header))
    rows = parse_rows(lines, separator) if lines and len(set(names)) < len(names) else []
    count = 0
    for row in reversed(rows):
        cells = [cell.strip() for cell in row]
        if len(cells) != len(header) or sum(map(bool, cells)) < 2 or not _are_names(cells):
            break
        count += 1
    return count


def _is_text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether three different words or more stand above rows nearly all of which have as many values."""
    full = [row for row in rows if len(row) == len(header) and 2 * sum(map(bool, map(str.strip, row))) > len(header)]
    words = all(header) and not any(name[0].isspace() for name in header)  # in prose blanks follow the commas
    return words and len(set(header)) == len(header) > 2 and len(full) > NUMBER_SHARE * max(1, len(rows))


def _has_gaps(above: Sequence[Sequence[str]], header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether lines that begin with a title have gaps, and the header and rows below them have none."""
    full = [header, *rows[:MIN_LINES]]
    single = sum(map(bool, above[0])) == 1
    return single and not any(map(all, above)) and all(cell.strip() for row in full for cell in row)


def _is_title(lines: Sequence[str], rows: Sequence[Sequence[str]], width: int, split: bool) -> bool:
    """Return whether lines can be a title, in which separators may stand for themselves.

    Lines of several values have fewer than the header, or more in each line and numbers among them.

    Args:
        lines: The lines.
        rows: Their values; empty ones at the end do not count.
        width: How many values the header below them has.
        split: One of the lines has several values.
    """
    blank, words = not all(map(any, rows)), " " in lines[0].strip()
    if not split:
        foreign = len(rows[0]) == 1 and '"' not in lines[0] and any(separator in lines[0] for separator in SEPARATORS)
        return words or blank or not (foreign or all(row[0] for row in rows))
    widths = [max((index + 1 for index, cell in enumerate(row) if cell), default=0) for row in rows]
    if max(widths) < width:
        return words or blank
    wider = all(filled > width and not _are_names(row) for filled, row in zip(widths, rows, strict=True))
    return wider or (words and blank and max(widths) == width)


def rows_of_table(rows: Sequence[Sequence[str]]) -> int:
    """Return how many rows below the header belong to the table; notes, sources and other tables may follow them.

    Args:
        rows: The header first; empty ones included, which are counted up to the last row of the table.
    """
    filled = [index for index, row in enumerate(rows) if any(map(str.strip, row))]
    if not filled:
        return 0
    width = sum(1 for cell in rows[0] if cell.strip())
    end = filled[-1] + 1
    if width >= 2:
        number_columns = _number_columns(rows[1:21])
        for above, below in itertools.pairwise(filled):
            if below == above + 1:
                continue
            looked = rows[1 : min(above + 1, 21)]
            keys = {_DIGITS.sub("0", row[0].strip()) for row in looked if row and _DIGIT.search(row[0])}
            if _DIGITS.sub("0", rows[below][0].strip()) in keys:
                continue
            if _is_other(rows[below], width, number_columns):
                end = above + 1 if _ends_table(rows, above + 1, width, number_columns) else end
                break
    last = end
    while end > 2 and width >= 3 and not any(map(str.strip, rows[end - 1][1:])):
        end -= 1
    if width >= 3:  # rows in which only the first column is filled may be of the table
        first_values = [row[0].strip() for row in rows[1:end] if row]
        end = next(
            (index for index in range(end, last) if rows[index] and is_note(rows[index][0].strip(), first_values)), last
        )
    while end > 1 and not any(map(str.strip, rows[end - 1])):
        end -= 1
    return _without_words(rows[:end], width) - 1


def _without_words(rows: Sequence[Sequence[str]], width: int) -> int:
    """Return how many rows there are without words that go on from line to line below a table, each in any column.

    They are two rows or more without a number or a key, half empty at least, with a word below a column of numbers.

    Args:
        rows: The header first.
        width: How many names it has.
    """
    end = len(rows)
    while end > MIN_LINES and _is_keyless(rows[end - 1], width):
        end -= 1
    keyed = all(row and row[0].strip() for row in rows[1:end])
    columns = [
        [cell.strip() for cell in cells if cell.strip()] for cells in itertools.zip_longest(*rows[1:end], fillvalue="")
    ]
    values = [
        index for row in rows[end:] for index, cell in enumerate(row) if cell.strip() and _are_numbers(columns[index])
    ]
    return end if keyed and values and len(rows) > end + 1 else len(rows)


def _is_keyless(row: Sequence[str], width: int) -> bool:
    """Return whether a row is half empty at least and holds no number, nor a value behind one in its first column."""
    filled = [index for index, cell in enumerate(row) if cell.strip()]
    return 2 * len(filled) <= width and (not filled or filled[-1] == 0 or filled[0] > 0) and not _number_columns([row])


def is_note(text: str, values: Sequence[str]) -> bool:
    """Return whether a text is a note, such as `Source: …` or a sentence, and not one more value of its column.

    Args:
        text: What stands below the column.
        values: Of the column.
    """
    if _NOTE.match(text):
        return _NOTE_SHARE * sum(bool(_NOTE.match(value)) for value in values) < max(1, len(values))
    sentence = text.endswith((".", "。")) and text.count(" ") >= _NOTE_BLANKS
    return sentence and len(text) > max(map(len, values), default=0)


def _ends_table(rows: Sequence[Sequence[str]], index: int, width: int, number_columns: set[int]) -> bool:
    """Return whether what follows a row is none of the table: notes, or another table.

    More rows of several values than the table has are of it, and so are rows half of which look like those above.
    """
    below = [row for row in rows[index:] if sum(map(bool, map(str.strip, row))) > 1]
    return len(below) < index and 2 * sum(not _is_other(row, width, number_columns) for row in below) < max(
        1, len(below)
    )


def _is_other(row: Sequence[str], width: int, number_columns: set[int]) -> bool:
    """Return whether a row below an empty one is none of the table: a note, or the header of another table."""
    numbers = {index for index, cell in enumerate(row) if NUMBER.fullmatch(cell.strip())}
    filled = {index for index, cell in enumerate(row) if cell.strip()}
    if len(filled) * 2 <= width:
        fits = len(filled) > 1 and bool(numbers) and numbers == filled & number_columns
        return 0 not in numbers & number_columns and not fits
    return bool(number_columns) and not numbers & number_columns


def _number_columns(rows: Sequence[Sequence[str]]) -> set[int]:
    return {index for row in rows for index, cell in enumerate(row) if NUMBER.fullmatch(cell.strip())}
