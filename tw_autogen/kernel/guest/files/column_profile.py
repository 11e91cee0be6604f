"""What the values of columns are, as their text shows it: kind, range, missing and odd entries, distinct values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

NO_VALUE = "\0"
"""Stands for a missing value of a file that tells these from texts, such as a NULL."""
NULLS = frozenset([NO_VALUE])
MISSING = frozenset(
    ["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"]
    + ["NULL", "NaN", "None", "n/a", "nan", "null"]
)
"""What `pandas.read_csv` takes for missing."""
_PLAIN = re.compile(
    r"[+-]?(?:\d{1,60}(?:\.\d{0,60})?|\.\d{1,60})(?:[eE][+-]?\d{1,5})?|[+-]?inf(?:inity)?", re.IGNORECASE | re.ASCII
)
_EPOCH = datetime(1970, 1, 1)
_FIRST_SECOND, _LAST_SECOND = 10**8, 4 * 10**9
"""Those of 1973 and 2096: numbers between may be times."""
_TIME_NAME = re.compile(
    r"(?:^|[^a-z])(?:t|ts|dt|date|time|unix|created|updated|modified|zeit)(?:$|[^a-z])"
    r"|timestamp|datum|epoch|time$|(?-i:Time(?![a-z]))",
    re.IGNORECASE,
)
"""Names of columns whose numbers may be times."""
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_CODE = re.compile(r"0\d+", re.ASCII)
_GROUPED = re.compile(r"[+-]?\d{1,3}([,. '])(?:\d{3}|(?:\d\d\1){1,6}\d{3}(?!\d))", re.ASCII)
_FORMS = (
    (
        "with ',' between thousands",
        re.compile(r"[+-]?[1-9](?:\d{0,2}(?:,\d{3}){1,12}|\d?(?:,\d\d){1,6},\d{3})(?:\.\d{0,30})?", re.ASCII),
    ),
    ("with '%'", re.compile(r"[+-]?\d[\d,]{0,30}(?:\.\d{0,30})? ?%", re.ASCII)),
    ("with a currency", re.compile(r"[+-]?\(?[$€£¥] ?-?\d[\d,.]{0,30}[kKmMbB]?\)?|[+-]?\d[\d.,\s]{0,30}[€£$]")),
    ("with '−' for minus", re.compile(r"−[$€£¥]?\d[\d.,]{0,30}%?", re.ASCII)),
    ("with '<' or '>'", re.compile(r"[<>≤≥]=? ?[+-]?\d[\d.,]{0,30}", re.ASCII)),
    ("with a decimal comma", re.compile(r"[+-]?(?:\d{1,3}(?:\.\d{3}){1,12}|\d{1,30}),\d{1,30}", re.ASCII)),
    ("with a decimal point", re.compile(r"[+-]?\d{1,30}\.\d{1,30}", re.ASCII)),
    (
        "with blanks or ' between thousands",
        re.compile(r"[+-]?[1-9]\d{0,2}(?:[ '’\xa0\u2009\u202f]\d{3}){1,12}(?:[.,]\d{0,30})?-?", re.ASCII),
    ),
    ("with '-' behind", re.compile(r"\d[\d.,]{0,30}-", re.ASCII)),
    ("in parentheses", re.compile(r"\(\d[\d,.]{0,30}\)", re.ASCII)),
    ("ordinals", re.compile(r"\d{1,30}(?:st|nd|rd|th)", re.IGNORECASE | re.ASCII)),
    ("with a unit", re.compile(r"[+-]?\d[\d,.]{0,30} ?(?!/)(?:[A-Za-zµ°/]{1,5}|[A-Za-zµ°/]{0,4}[mnst][23])", re.ASCII)),
    (
        "with other digits than 0–9, no numbers for pandas",
        re.compile(r"(?=.{0,30}[^\x00-\x7f])[+-]?\d[\d.,٫٬．，]{0,30}"),
    ),
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<month>(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t|tember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?)"
)
"""A month in English, as pandas reads it; the names of other languages are words."""
_TIME_BEHIND = r"(?:[, ]{1,2}\d\d?:\d\d(?::\d\d)?(?: ?[AP]M)?)?"
_DAY_MONTH_YEAR = re.compile(
    rf"(?P<day>\d\d?)[-/ ]?{_MONTH}[-/ ,]{{0,2}}(?P<year>\d{{4}}|\d\d){_TIME_BEHIND}", re.IGNORECASE | re.ASCII
)
_MONTH_DAY_YEAR = re.compile(rf"{_MONTH} (?P<day>\d\d?),? (?P<year>\d{{4}}){_TIME_BEHIND}", re.IGNORECASE | re.ASCII)
_MONTH_YEAR = re.compile(rf"{_MONTH}[- ](?P<year>\d{{4}})", re.IGNORECASE | re.ASCII)
_LATEST_SHORT_YEAR = 68
"""Years of two digits up to here are those of this century, as `strptime` and pandas read them."""
_DATES = (
    (
        "YYYY-MM-DD",
        re.compile(
            r"\d{4}-(?:0?[1-9]|1[0-2])-(?:[12]\d|3[01]|0?[1-9])([ T]\d\d?:\d\d(:\d\d(\.\d+)?)?)? ?(Z|[+-]\d\d:?\d\d)?",
            re.ASCII,
        ),
    ),
    ("YYYY/MM/DD", re.compile(r"\d{4}/(?:0?[1-9]|1[0-2])/(?:[12]\d|3[01]|0?[1-9])( \d\d?:\d\d(:\d\d)?)?", re.ASCII)),
    ("YYYY-MM", re.compile(r"\d{4}-(?:0[1-9]|1[0-2])", re.ASCII)),
    ("D-Mon-Y", _DAY_MONTH_YEAR),
    ("Mon D, Y", _MONTH_DAY_YEAR),
    ("Mon-Y", _MONTH_YEAR),
    (
        "/",
        re.compile(r"(\d\d?)/(\d\d?)/(\d{4}|\d\d)( \d\d?:\d\d(:\d\d(\.\d+)?)?( ?[AP]M)?)?", re.IGNORECASE | re.ASCII),
    ),
    (".", re.compile(r"(\d\d?)\.(\d\d?)\.(\d{4}|\d\d)( \d\d?:\d\d(:\d\d(\.\d+)?)?)?", re.ASCII)),
    ("-", re.compile(r"(\d\d?)-(\d\d?)-(\d{4})( \d\d?:\d\d(:\d\d(\.\d+)?)?( ?[AP]M)?)?", re.IGNORECASE | re.ASCII)),
)
_FIGURES = ("/", ".", "-")
"""Forms of dates in figures that end with the year."""
_MOMENT = re.compile(r"(\d{4})[-/](\d\d?)(?:[-/](\d\d?))?(?:[ T](\d\d?):(\d\d)(?::(\d\d(?:\.\d+)?))?)?")
_ORDERED = re.compile(r"\d{4}[-/]\d\d(?:[-/]\d\d)?(?!\d)", re.ASCII)
"""The beginning of dates of which texts have the same order."""
_CLOCK = re.compile(r"(\d\d?):(\d\d)(?::(\d\d(?:\.\d{1,9})?))?(?: ?([AaPp])[Mm])?$", re.ASCII)
_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)$")
_BOOLEANS = frozenset(["True", "TRUE", "true", "False", "FALSE", "false"])
"""What `pandas.read_csv` takes for booleans; `yes` and `no` stay text."""
_FEW_VALUES, _FEW_CHARS = 12, 160
_LONGEST_VALUE, _LONG_TEXT = 60, 200
_MAX_ODD, _MAX_MARKS = 4, 2
"""Numbers of many values stay numbers beside so many different marks, however often these occur."""
_FIRST_LOOK = 2000
"""Of so many different values a form must fit most before all are looked at."""
_FEW_NUMBERS, _MAX_UNITS = 6, 5
_NUMBER_SHARE, _DATE_SHARE = 0.6, 0.9
_NUMBER_PART = re.compile(r"[\d.,\s()+-]+")


@dataclass
class Column:
    """What is known of a column.

    Args:
        name: As it stands in the header.
        counts: How often each text occurs, missing ones included.
        kind: Of its values, in a word or two.
        words: The rest, for a line of the description.
        low: The least number, if it has numbers.
        high: The greatest.
        dates: The first and the last day, month or year, in the form of ISO 8601, if it has dates of one form.
        missing: What stands for a missing value.
        sampled: There are more values than those that were looked at.
        odd: How many of number-like values are no numbers.
        forms: How many have other signs than a plain number, by what is said of them.
    """

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    kind: str = ""
    words: list[str] = field(default_factory=list)
    low: float | None = None
    high: float | None = None
    plain: bool = False
    dates: tuple[str, str] | None = None
    missing: frozenset[str] = MISSING
    sampled: bool = False
    odd: Counter[str] = field(default_factory=Counter)
    forms: Counter[str] = field(default_factory=Counter)

    @property
    def line(self) -> str:
        """Return the column's line of a description."""
        return f"{self.name!r}: {', '.join([self.kind, *self.words])}"

    @property
    def values(self) -> set[str]:
        """Return the texts that are not missing, blanks cut off."""
        return {text.strip() for text in self.counts if text.strip() not in self.missing}


def profile_columns(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    decimal: str = ".",
    thousands: str = "",
    kinds: Mapping[int, str] | None = None,
    missing: frozenset[str] = MISSING,
) -> list[Column]:
    """Return what the values of each column are.

    Args:
        names: The header, length m.
        rows: Texts; a row may be shorter or longer than the header.
        decimal: Sign in front of decimals.
        thousands: Sign between groups of three digits; empty: none.
        kinds: Of columns whose type the file itself says, by their numbers.
        missing: What stands for a missing value.
    """
    columns = []
    for index, name in enumerate(names):
        counts = Counter([row[index] if index < len(row) else "" for row in rows])
        column = Column(name, counts, missing=missing)
        _judge_column(column, decimal, thousands)
        if kinds and index in kinds and column.kind == "empty":
            column.words.append(f"of type {kinds[index]}")
        elif kinds and index in kinds:
            column.kind = kinds[index]
        columns.append(column)
    return columns


def _judge_column(column: Column, decimal: str, thousands: str) -> None:
    counts = column.counts
    total = sum(counts.values())
    gone = {text: n for text, n in counts.items() if text in column.missing}  # one of blanks is text for pandas
    there = Counter({text: n for text, n in counts.items() if text not in gone})
    if not there:
        column.kind = "empty" if total else "no rows"
        return
    stripped = {text: text.strip() for text in there}
    numbers = {
        text: number for text in there if (number := plain_number(stripped[text], decimal, thousands)) is not None
    }
    codes = [text for text in there if _CODE.fullmatch(stripped[text])]
    if len(numbers) == len(there) and not codes:
        _judge_numbers(column, numbers, there, thousands)
    elif codes and len(numbers) == len(there):
        column.kind = "text of digits with leading zeros"
        column.words += [f"e.g. {show(codes[0])}", *count_words(there)]
    elif not _judge_number_like(column, numbers, there, stripped) and not _judge_dates(column, there, stripped):
        _judge_text(column, there)
    if gone:
        column.words.append(_describe_missing(gone))
    padded = [text for text in there if text != stripped[text]]
    if padded and not column.plain:  # numbers are read all the same
        column.words.append(f"{sum(there[text] for text in padded)} with blanks around, such as {padded[0][:40]!r}")


def say_whole_range(column: Column, low: object, high: object) -> None:
    """Add the least and the greatest value in all rows to a column of numbers, or of dates that begin with the year.

    Args:
        column: As its first rows show it.
        low: The least; of dates a text or a date.
        high: The greatest.
    """
    texts = str(low), str(high)
    if column.plain:
        numbers = [None if isinstance(value, str) else plain_number(str(value), ".", "") for value in (low, high)]
        if None in numbers or numbers == [column.low, column.high]:
            return  # texts have another order
    elif not (column.dates and all(map(_ORDERED.match, {*column.values, *texts}))):
        return
    column.words.append(f"in all rows {_range_text(*texts)}")


def plain_number(text: str, decimal: str, thousands: str) -> float | None:
    """Return the number that a text is; None: it is none.

    Args:
        text: A cell's.
        decimal: The sign in front of decimals.
        thousands: The sign between thousands; empty: there is none.
    """
    if thousands and thousands in text and (match := _GROUPED.match(text)) and match[1] == thousands:
        text = text.replace(thousands, "")
    if decimal != ".":
        if "." in text:
            return None
        text = text.replace(decimal, ".")
    return float(text) if _PLAIN.fullmatch(text) and len(text) < 400 else None


def _judge_numbers(column: Column, numbers: Mapping[str, float], there: Counter[str], thousands: str) -> None:
    plain = [text.strip().replace(thousands, "") for text in numbers]
    integers = all(map(_INTEGER.fullmatch, plain))
    grouped = sum(there[text] for text in numbers if thousands in text) if thousands else 0
    column.kind, column.plain = "int" if integers else "float", True
    column.low, column.high = min(numbers.values()), max(numbers.values())
    total, distinct = sum(there.values()), len(set(map(int, plain)) if integers else set(numbers.values()))
    exact = dict(zip(numbers, map(int, plain), strict=True)) if integers else numbers  # floats hold 53 bits
    low, high = min(numbers, key=exact.__getitem__), max(numbers, key=exact.__getitem__)
    if distinct == 1:
        column.words.append(f"always {low.strip()}")
    elif integers and distinct == len(there) <= _FEW_NUMBERS and distinct < total:
        ordered = sorted(there, key=exact.__getitem__)
        column.words.append(", ".join(f"{text.strip()} ({there[text]})" for text in ordered))
    else:
        column.words.append(_range_text(low, high))
        column.words.append("all different" if distinct == total else f"{distinct} distinct")
    if grouped:
        column.words.append(f"{grouped} with {thousands!r} between thousands")
    if integers and (unit := _epoch_unit(column)):
        first, last = (str(_EPOCH + timedelta(**{unit: value}))[:19] for value in (exact[low], exact[high]))
        column.words.append(f"which may be {unit} since 1970: {first} … {last} UTC")


def _epoch_unit(column: Column) -> str:
    """Return what the numbers of a column may count since 1970, by its name and their size; empty: nothing."""
    if not _TIME_NAME.search(column.name):
        return ""
    factors = {"seconds": 1, "milliseconds": 1000}
    spans = {unit: [_FIRST_SECOND * factor, _LAST_SECOND * factor] for unit, factor in factors.items()}
    low, high = column.low or 0, column.high or 0
    return next((unit for unit, (first, last) in spans.items() if first <= low and high <= last), "")


def _judge_number_like(
    column: Column, numbers: Mapping[str, float], there: Counter[str], stripped: Mapping[str, str]
) -> bool:
    """Judge a column of which most values are numbers, or numbers with signs that no parser takes."""
    forms: dict[str, list[str]] = {}
    odd = []
    for text in there:
        if text in numbers:
            continue
        form = next((name for name, pattern in _FORMS if pattern.fullmatch(stripped[text])), "")
        if form:
            forms.setdefault(form, []).append(text)
        else:
            odd.append(text)
    if commas := forms.get("with a decimal comma"):  # then one comma before three digits stands before decimals, too
        grouped = forms.pop("with ',' between thousands", [])
        commas += [text for text in grouped if text.count(",") == 1 and "." not in text]
        if left := [text for text in grouped if text not in commas]:
            forms["with ',' between thousands"] = left
    units = forms.get("with a unit", ())
    if set(forms) == {"with a unit"} and len(units) > len(numbers) and len({_letters(unit) for unit in units}) > 4:
        return False  # codes such as `8232816EAC`, no quantities
    total = sum(there.values())
    like = total - sum(there[text] for text in odd)
    marked = len(there) > _FEW_VALUES and len(odd) <= _MAX_MARKS
    if (like < _NUMBER_SHARE * total and not marked) or (len(odd) > 50 and not forms):
        return False
    plain = sum(there[text] for text in numbers)
    column.kind = "number-like text"
    if plain:
        column.words.append(f"{plain} plain numbers")
        column.low, column.high = min(numbers.values()), max(numbers.values())
        low, high = min(numbers, key=numbers.__getitem__), max(numbers, key=numbers.__getitem__)
        column.words[-1] += f" ({_range_text(low, high)})"
    for form, texts in forms.items():
        examples = ", ".join(show(example) for example in _example_texts(form, texts))
        column.forms[form] = sum(there[text] for text in texts)
        column.words.append(f"{column.forms[form]} {form} ({examples})")
    if odd:
        column.odd = Counter({text: there[text] for text in odd})
        column.words.append(odd_words(column.odd))
    return True


def _letters(text: str) -> str:
    return "".join(char for char in text if char.isalpha())


def _example_texts(form: str, texts: Sequence[str]) -> list[str]:
    """Return the least and the greatest of number-like texts, by their digits; of several units one text each."""

    def size(text: str) -> float:
        digits = re.sub(r"[^\d.,]", "", text)
        whole, comma, rest = digits.rpartition(",")
        if comma and len(rest) != 3 and "." not in rest:  # a decimal one
            digits = f"{whole.replace('.', '')}.{rest}"
        try:
            return float(digits.replace(",", ""))
        except ValueError:
            return 0.0

    units: dict[str, str] = {}
    for value in texts:
        units.setdefault(_NUMBER_PART.sub("", value), value)
    if 1 < len(units) <= _MAX_UNITS and form in ("with a unit", "with a currency"):
        return list(units.values())
    return list(dict.fromkeys([min(texts, key=size), max(texts, key=size)]))


def _judge_dates(column: Column, there: Counter[str], stripped: Mapping[str, str]) -> bool:
    some, forms = list(there)[:_FIRST_LOOK], 0
    for form, pattern in _DATES:
        fitting: dict[str, re.Match[str]] = {}
        for texts in (some, there):  # most columns are told apart by the first values
            fitting = {
                text: match for text in texts if (match := pattern.fullmatch(stripped[text])) and _is_day(form, match)
            }
            if sum(there[text] for text in fitting) < _DATE_SHARE * sum(there[text] for text in texts):
                forms += bool(fitting)
                break
        else:
            if form == "YYYY-MM" and all(map(_is_season, fitting)):
                return False
            _say_dates(column, form, fitting, there)
            return True
    return forms > 1 and _judge_mixed_dates(column, there, stripped)


def _is_day(form: str, match: re.Match[str]) -> bool:
    """Return whether two of the numbers of a date in figures can be a month and a day; those of `18.00.00` can't."""
    if form not in _FIGURES:
        return True
    first, second = int(match[1]), int(match[2])
    year_first = len(match[3]) == 2 and 0 < second <= 12  # which may be any number
    return year_first or (0 < min(first, second) <= 12 and max(first, second) <= 31)


def _is_season(text: str) -> bool:
    """Return whether a text like `2001-02` may mean two years, of which the second follows the first."""
    return (int(text.strip()[:4]) + 1) % 100 == int(text.strip()[-2:])


def _judge_mixed_dates(column: Column, there: Counter[str], stripped: Mapping[str, str]) -> bool:
    """Judge a column of dates in several forms; each is described by itself."""
    groups: dict[str, dict[str, re.Match[str]]] = {}
    for text in there:
        for form, pattern in _DATES:
            if (match := pattern.fullmatch(stripped[text])) and _is_day(form, match):
                groups.setdefault(form, {})[text] = match
                break
    fitting = {text for group in groups.values() for text in group}
    if sum(there[text] for text in fitting) < _DATE_SHARE * sum(there.values()):
        return False
    for form, group in groups.items():
        part = Column("")
        _say_dates(part, form, group, Counter({text: there[text] for text in group}))
        example = show(next(iter(group)))
        column.words.append(f"{sum(there[text] for text in group)} {part.kind.removeprefix('date text ')} ({example})")
    column.kind = "date text in mixed forms"
    _say_odd(column, fitting, there)
    return True


def _say_odd(column: Column, fitting: Collection[str], there: Counter[str]) -> None:
    if odd := Counter({text: n for text, n in there.items() if text not in fitting}):
        column.words.append(odd_words(odd))
    column.words.append(f"{len(there)} distinct")


def _say_dates(column: Column, form: str, fitting: Mapping[str, re.Match[str]], there: Counter[str]) -> None:
    fits = list(fitting.values())
    if "Mon" in form:
        dated = sorted(fits, key=lambda fit: (_year_month_day(fit), _time_of_day(fit.string)))
        timed = " with time" if any(":" in fit.string for fit in fits) else ""
        if not any(fit.string[fit.end("day") :].startswith(",") for fit in fits if "day" in fit.groupdict()):
            form = form.replace(",", "")
        column.kind = f"date text {form}{_digits_of({len(fit['year']) for fit in fits})}{timed}"
        column.words = [f"{dated[0].string} … {dated[-1].string}"]
        column.dates = _iso_date(dated[0]), _iso_date(dated[-1])
    elif form in _FIGURES:
        _say_figures(column, form, fits)
    else:
        moments = {fit.string: _moment_sort_key(fit.string) for fit in fits}
        first_text, last_text = min(moments, key=moments.__getitem__), max(moments, key=moments.__getitem__)
        timed = " with time" if any(":" in moment for moment in moments) else ""
        column.kind, column.words = f"date text {form}{timed}", [f"{first_text} … {last_text}"]
        column.dates = _padded_iso_date(first_text), _padded_iso_date(last_text)
    if len(there) - len(fitting) > _MAX_ODD:  # those that are not shown may be earlier or later dates
        column.words, column.dates = [f"e.g. {show(fits[0].string)}"], None
    _say_odd(column, fitting, there)


def _say_figures(column: Column, form: str, dates: Sequence[re.Match[str]]) -> None:
    """Describe dates in figures by their order, and where it is certain by the first and the last one."""
    first, second = ([int(date[group]) for date in dates] for group in (1, 2))
    lengths = {len(date[3]) for date in dates}
    year, month = f"Y{_digits_of(lengths)}", 0
    month_first, day_first = f"MM{form}DD{form}{year}", f"DD{form}MM{form}{year}"
    if max(first) > 12 and max(second) > 12:
        order = f"{day_first} and {month_first} mixed"
    elif max(first) > 12:
        order, month = f"{day_first} (day first)", 2
        years = {int(date[3]) for date in dates}
        if lengths == {2} and max(years) <= 31 and len(years) >= len(set(first)):  # days differ more than years do
            order, month = f"YY{form}MM{form}DD or {day_first}, which is not certain", 0
    elif max(second) > 12:
        order, month = f"{month_first} (month first)", 1
    else:
        order = f"{day_first} or {month_first}, day or month first is not certain"
    column.kind, column.words = f"date text {order}", [f"e.g. {show(dates[0].string)}"]
    if month:
        ordered = sorted(
            dates,
            key=lambda date: (_full_year(date[3]), int(date[month]), int(date[3 - month]), _time_of_day(date.string)),
        )
        column.words = [f"{ordered[0].string} … {ordered[-1].string}"]
    if lengths == {4}:
        column.dates = min(date[3] for date in dates), max(date[3] for date in dates)


def _moment_sort_key(text: str) -> tuple[float, ...]:
    """Return what a date that begins with the year, and its time, is ordered by: minutes, and seconds.

    Months have 31 days here, so that no text of this form is refused.
    """
    moment, offset = _MOMENT.match(text), _OFFSET.search(text)
    year, month, day, hour, minute = (int(group or 0) for group in moment.groups()[:5]) if moment else (0,) * 5
    minutes = ((year * 12 + month) * 31 + day) * 1440 + hour * 60 + minute
    if offset:
        minutes -= (1 if offset[1] == "+" else -1) * (int(offset[2]) * 60 + int(offset[3]))
    return minutes, float(moment[6] or 0) if moment else 0.0


def _padded_iso_date(text: str) -> str:
    """Return the day or month of a date that begins with the year, in the form of ISO 8601."""
    return "-".join(f"{int(part):02}" for part in re.split("[-/]", re.split("[ TZ+]", text)[0])[:3])


def _year_month_day(date: re.Match[str]) -> tuple[int, int, int]:
    """Return year, month and day of a date with the name of a month; without a day, of the month's first."""
    found = date.groupdict()
    return _full_year(found["year"]), 1 + _MONTHS.index(found["month"][:3].lower()), int(found.get("day") or 1)


def _full_year(text: str) -> int:
    """Return a year that may have two digits."""
    year = int(text)
    return year if len(text) > 2 else year + (2000 if year <= _LATEST_SHORT_YEAR else 1900)


def _time_of_day(text: str) -> tuple[int, int, float]:
    """Return the hour, minute and second at the end of a date, zeros where it has none."""
    match = _CLOCK.search(text)
    if not match:
        return 0, 0, 0.0
    hour = int(match[1]) if not match[4] else int(match[1]) % 12 + 12 * (match[4] in "pP")
    return hour, int(match[2]), float(match[3] or 0)


def _iso_date(date: re.Match[str]) -> str:
    """Return a date with the name of a month in the form of ISO 8601."""
    year, month, day = _year_month_day(date)
    return f"{year}-{month:02}" + (f"-{day:02}" if "day" in date.groupdict() else "")


def _digits_of(lengths: Collection[int]) -> str:
    """Return what follows a `Y` for years of so many digits."""
    return {frozenset([2]): "Y", frozenset([4]): "YYY"}.get(frozenset(lengths), "Y or YYYY")


def _judge_text(column: Column, there: Counter[str]) -> None:
    short = {text.strip() for text in there if len(text) <= _LONG_TEXT}
    column.kind = "bool" if there.keys() <= _BOOLEANS else "text"
    column.words += count_words(there)
    if len({text.lower() for text in short}) < len(short):
        column.words.append("some differ in upper and lower case only")
    longest = max(map(len, there))
    if longest > _LONG_TEXT:
        column.words.append(f"up to {longest} characters")


def count_words(there: Counter[str]) -> list[str]:
    """Return how many different texts there are, and all of them if they are few and short."""
    if len(there) == 1:
        return [f"always {show(next(iter(there)))}"]
    if len(there) <= _FEW_VALUES and sum(map(len, there)) <= _FEW_CHARS:
        most = there.most_common()
        if most[0][1] == 1:
            return [f"all different: {', '.join(show(text) for text, _ in most)}"]
        return [f"{len(most)} values: " + ", ".join(f"{show(text)} ({n})" for text, n in most)]
    some = ", ".join(show(text) for text in list(there)[:2])
    if len(there) == sum(there.values()):
        return [f"all different, e.g. {some}"]
    return [f"{len(there)} distinct, e.g. {some}"]


def is_missing(text: str) -> bool:
    """Return whether `pandas.read_csv` takes a text for a missing value; blanks around it do not count."""
    return text.strip() in MISSING


def odd_words(counts: Counter[str]) -> str:
    """Return the most common texts with their counts, and how many others there are."""
    more = f" and {len(counts) - _MAX_ODD} more" if len(counts) > _MAX_ODD else ""
    return f"odd: {', '.join(f'{show(text)} ({count})' for text, count in counts.most_common(_MAX_ODD))}{more}"


def _describe_missing(gone: Mapping[str, int]) -> str:
    named = {text.strip(): n for text, n in gone.items() if text.strip(f" {NO_VALUE}")}
    shown = f" ({', '.join(f'{text!r} {n}' for text, n in named.items())})" if named else ""
    return f"{sum(gone.values())} missing{shown}"


def show(text: str) -> str:
    """Return a text in quotes, cut where it is long."""
    return repr(text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…")


def _range_text(low: str, high: str) -> str:
    """Return two numbers with so many digits that they differ, if they do."""
    texts = next(
        (
            one
            for digits in (6, 9, 12, 15)
            if len(set(one := [short_number(low, digits), short_number(high, digits)])) > 1
        ),
        [low.strip(), high.strip()],
    )
    return " … ".join(texts)


def short_number(text: str, digits: int = 6) -> str:
    """Return a number as it stands, or with a few digits if it has many.

    Args:
        text: The number.
        digits: How many are enough.
    """
    text = text.strip()
    if len(text) <= 10 or _INTEGER.fullmatch(text) or not _PLAIN.fullmatch(text):
        return text
    return f"{float(text):.{digits}g}"
