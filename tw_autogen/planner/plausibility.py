"""`implausible`: what in a printed answer can hardly be right, so that it is looked at before the user gets it."""

from __future__ import annotations

import itertools
import re

from tw_autogen.written_numbers import values_in

_SHARE = re.compile(
    r"\b(?:shares?|proportions?|percentages?|fractions?|accuracy|(?:conversion|hit|success|error) rate|Anteil\w*"
    r"|Trefferquote)\b[^.\n%]{0,60}?(?<![\d.,-])(\d[\d.,]*)\s?(?:%|percent\b|Prozent\b)",
    re.I,
)
_CHANGES = re.compile(
    r"\b(?:increas|growth|grew|ris|rose|change|more than|relative to|percentage error"
    r"|of (?:GDP|BIP|target|plan|budget|income)\b|reached|Wachstum|Anstieg|Zunahme)",
    re.I,
)
"""What may be above 100 %."""
_R2 = re.compile(r"(?<!\w)(?:R²|R\^?2|R[- ]squared|r2_score)(?!\w)[^\d\n-]{0,40}-\s?(?:0\.0*[1-9]|[1-9])", re.I)
_ROWS = r"(?:rows?|records?|observations?|data points?)\b"
_CORRELATION = re.compile(
    rf"\b(?:correlation|Korrelation)\b[^\d\n]{{0,30}}?((?<![\d.,])[1-9]\d*[.,]\d*[1-9])(?![\d%]|\s{_ROWS})", re.I
)
_MISSING = r"(?:nan|NaN|NaT|<NA>|-?inf)"
_NAN = re.compile(
    rf"(?:(?:\A|[:=(\[€$£])|\b(?:is|are|was|were|of|at|to|and|ist|sind|und|est|sont|es|son))[ \t]*{_MISSING}"
    r"(?!\w)(?!\s*(?:values?|rows?|entries))"
)
"""Where a value is said; tables may hold missing ones."""
_FIELD = re.compile(rf"{_MISSING}|[-+(]?\d[\d.,e+-]*\)?%?")
_NOTHING = re.compile(r"\s*(?:Empty DataFrame\b.*|Series\(\[\].*\)|None|\[\]|\{\})\s*", re.S)
_NO_ROWS = re.compile(
    rf"\b(?:of|over|from) (?:0|no|zero) {_ROWS}"
    rf"|(?<![\w.,])(?:0|no|zero) {_ROWS} (?:match|remain|(?:(?:is|are|was|were) )?(?:selected|found|left))",
    re.I,
)
_MAX_COLUMNS = 50
_MANY = 3
"""Rows of a column that may not all be 0.0; counts may, such as those of missing values."""
_COUNTS = re.compile(
    r"\b(?:how many|number of|count|any|which|list|check|duplicates?|missing|wie viele|gibt es)\b", re.I
)


def implausible(answer: str, request: str) -> list[str]:
    """Return what in an answer can hardly be right, in words for a model; empty if nothing is.

    Args:
        answer: As code has printed it.
        request: The user's words: what they ask about themselves is no surprise.

    Example:
        >>> implausible("The share is 140 %.", "what share?")
        ['a share above 100 % (140)']
    """
    problems = []
    shares = [match for match in _SHARE.finditer(answer) if not _CHANGES.search(match[0])]
    above = next((share[1] for share in shares if any(value > 100 for value in values_in(share[1]))), "")
    if above:
        problems.append(f"a share above 100 % ({above})")
    if _R2.search(answer):
        problems.append("R² below 0: the model is worse than the mean; is the target or the scale of columns wrong?")
    if beyond := _CORRELATION.search(answer):
        problems.append(f"a correlation above 1 ({beyond[1]})")
    columns = _columns(answer)
    empty = any(all(re.fullmatch(_MISSING, one) for one in column) for column in columns)
    if (empty or _NAN.search(answer)) and not re.search(r"\bnan\b|\bmissing\b|\binf", request, re.I):
        problems.append("nan in place of a value")
    if any(len(column) >= _MANY and all(re.fullmatch(r"-?0[.,]0+", one) for one in column) for column in columns):
        problems.append("nothing but 0 in a column: were its values lost, such as by errors='coerce'?")
    if (_NO_ROWS.search(answer) or _NOTHING.fullmatch(answer)) and not _COUNTS.search(request):
        problems.append("no rows were found: is the filter right?")
    return problems


def _columns(answer: str) -> list[list[str]]:
    """Return the columns of numbers that lines end with, from the right; a label alone with its value is one, too."""
    rows = []
    for line in answer.splitlines():
        cells = line.split()
        last = itertools.islice(reversed(cells), _MAX_COLUMNS)
        numbers = list(itertools.takewhile(_FIELD.fullmatch, last))
        if len(numbers) < len(cells):  # without its label, or its index
            rows.append(numbers)
        elif len(numbers) > 1:
            rows.append(numbers[:-1])
    return [[row[index] for row in rows if len(row) > index] for index in range(max(map(len, rows), default=0))]
