"""`implausible`: what in a printed answer can hardly be right, so that somebody looks before the user gets it."""

from __future__ import annotations

import re

from tw_autogen.number_sources import values_in

_SHARE = re.compile(
    r"\b(?:shares?|proportions?|percentages?|fractions?|Anteil\w*)\b[^.\n%]{0,60}?(?<![\d.,-])(\d[\d.,]*)\s?%", re.I
)
_CHANGES = re.compile(r"\b(?:increas|growth|grew|ris|rose|change|more than|relative to|Wachstum|Anstieg|Zunahme)", re.I)
_R2 = re.compile(r"(?<!\w)(?:R²|R\^?2|R[- ]squared|r2_score)(?!\w)[^\d\n-]{0,40}-\s?(?:0\.0*[1-9]|[1-9])", re.I)
_NAN = re.compile(
    r"(?:(?:\A|[:=(\[])|\b(?:is|are|was|were|of|at|to|and|ist|sind|und))[ \t]*(?:nan|NaN|NaT|<NA>)"
    r"(?!\w)(?!\s*(?:values?|rows?|entries))"
)
"""Where a value is said; tables may hold missing ones."""
_ROWS = r"(?:rows?|records?|observations?|data points?)\b"
_NO_ROWS = re.compile(
    rf"\b(?:of|over|from) (?:0|no|zero) {_ROWS}"
    rf"|(?<![\w.,])(?:0|no|zero) {_ROWS} (?:match|remain|(?:(?:is|are|was|were) )?(?:selected|found|left))",
    re.I,
)
_COUNTS = re.compile(r"\b(?:how many|number of|count|any|which|list|wie viele|gibt es)\b", re.I)


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
    shares = [found for found in _SHARE.finditer(answer) if not _CHANGES.search(found[0])]
    above = next((one[1] for one in shares if any(value > 100 for value in values_in(one[1]))), "")
    if above:
        problems.append(f"a share above 100 % ({above})")
    if _R2.search(answer):
        problems.append("R² below 0: the model is worse than the mean; is the target or the scale of columns wrong?")
    if _NAN.search(answer) and not re.search(r"\bnan\b|\bmissing\b", request, re.I):
        problems.append("nan in place of a value")
    if _NO_ROWS.search(answer) and not _COUNTS.search(request):
        problems.append("no rows were found: is the filter right?")
    return problems
