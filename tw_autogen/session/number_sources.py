"""Where the numbers of an answer come from: output of code, the request, simple arithmetic, or nowhere."""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tw_autogen.conversation import AttachmentType, Round

Kind = Literal["printed", "rounded", "computed", "given", "not found"]

_MOST_ANSWER_CHARS = 20_000
_MOST_SOURCE_CHARS = 500_000
_MOST_OPERANDS = 8
"""Numbers on a line that arithmetic is tried with, in pairs."""
_MOST_COMPUTED = 100
"""Where more numbers than these are not found as they stand, no arithmetic is tried."""
_EXCERPT_CHARS = 100
_USER = "User"
_OUTPUTS = (AttachmentType.execution_result, AttachmentType.code_error)

_ROW = re.compile(r"(?<![\w.,])\d{1,15}(?:,\d{1,15}){1,30}(?![\w.,])")
_UNITS = "percent|k|thousand|m|million|bn|billion"
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"
_KNOWN = re.compile(
    rf"""
    https?://\S{{1,100}}
    | (?<![\w.])\d{{4}}-\d\d(?:-\d\d)?(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{{1,9}})?)?)?(?![\w])  # dates
    | (?<![\w.])\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}(?![\w.])
    | (?<![\w.])\d{{1,2}}:\d\d(?::\d\d)?(?!\w)
    | \b{_MONTH}\.?\ \d{{1,2}}(?:st|nd|rd|th)?(?![\w.,]?\d)
    | (?<![\w.,])\d{{1,2}}\.?\ {_MONTH}\b
    | (?<![\w.,])(?:19|20)\d\d(?![\w%]|[.,]\d|\ %)                       # years
    | (?<![\w.])\d{{1,9}}(?:st|nd|rd|th)\b                               # ordinals
    | ^[ \t>*_\#|-]{{0,20}}\d{{1,3}}[.)][*_]{{0,3}}(?=[ \t])             # numbers of a list
    | \#\d{{1,9}}
    | \b(?:steps?|cells?|lines?|figures?|pages?|sections?|versions?|python|rounds?|top|first|last)\ \d{{1,9}}(?![\w.]\d)
    | (?<![\w.])v?\d{{1,9}}(?:\.\d{{1,9}}){{2,8}}(?![\w])                # versions
    | (?<!\w)[\w-]{{0,60}}\.(?=[A-Za-z])[A-Za-z]\w{{1,7}}\b             # names of files
    | (?<![\w.])(?!(?:{_UNITS})\b)(?=[A-Za-z_])\w{{1,100}}(?:-\w{{1,50}}){{0,5}}  # words
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
"""What stands for no quantity, and needs no source."""
_NUMBER = re.compile(
    r"(?<![\w.])(?P<body>\d{1,3}(?:[,'\u00a0\u202f]\d{3}){1,8}(?:\.\d{1,20})?(?!\d)|\d{1,30}(?:[.,]\d{1,30})?(?:e[-+]?\d{1,2}(?!\d))?)"
    r"(?P<unit>[ \u00a0\u202f]?(?:%|percent\b|k\b|thousand\b|m\b|million\b|bn\b|billion\b))?",
    re.IGNORECASE,
)
_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_WORD = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b", re.IGNORECASE)
_ITEM = re.compile(r"^[ \t]{0,20}(?:[-*•]|\d{1,3}[.)])[ \t]", re.MULTILINE)
_SPACED = re.compile(r"(?<![\w.] )(?<![\w.])\d{1,3}(?: \d{3}){1,6}(?![\w])")
"""A number whose thousands are separated by spaces, or several numbers."""
_SCALES = {"k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6, "bn": 1e9, "billion": 1e9}
_ABOUT = re.compile(r"(?:about|around|roughly|nearly|almost|over|some|approximately|than|~|≈)\s?[$€£]?$", re.IGNORECASE)


@dataclass(frozen=True)
class NumberSource:
    """Where one number of an answer comes from.

    Args:
        number: As the answer writes it, such as `25.4 %`.
        start: Where it begins in the answer's text, in characters.
        kind: `printed` by code as it stands, `rounded` from what code printed, `computed` from other numbers on the
            same line of the answer (difference, sum, ratio, percentage), `given` by the request, its data or the code,
            or `not found`.
        found: The number it comes from, as it is written there, or the arithmetic; empty if not found.
        where: What wrote it, with the line around it; empty if not found or computed.
    """

    number: str
    start: int
    kind: Kind
    found: str = ""
    where: str = ""

    def __str__(self) -> str:
        """Return `25.4: rounded from 25.4219 (output 1: The mean is 25.4219)`."""
        words = {"rounded": "rounded from ", "computed": "computed: ", "given": "given as "}.get(self.kind, "")
        said = f"{words}{self.found}" if self.kind != "printed" and self.found else self.kind
        return f"{self.number}: {said}" + (f" ({self.where})" if self.where else "")


@dataclass(frozen=True)
class _Written:
    """A number as a text writes it: its value without sign, and half of what its last digit counts."""

    text: str
    start: int
    value: float
    half: float
    is_percent: bool
    where: tuple[str, str] = ("", "")
    """What wrote it, and the text."""


def number_sources(text: str, rounds: Sequence[Round]) -> tuple[NumberSource, ...]:
    """Look up the numbers of an answer in what code has printed; no model is asked, and the time it takes is linear.

    Dates, years, ordinals, numbers of lists, versions, names with digits, and counts up to ten of listed things need no
    source. A sign is not compared. Of an answer the first 20 000 characters are looked at, of what was printed the
    newest 500 000.

    Args:
        text: The answer's.
        rounds: All rounds of the session until the answer, oldest first; the last one is the answer's own.

    Returns:
        A source for each number, in the order of the text.

    Example:
        >>> for one in number_sources("The mean of 3 and 4 is 9.", [Round("Mean of 3 and 4?")]):
        ...     print(one)
        3: given as 3 (the request: Mean of 3 and 4?)
        4: given as 4 (the request: Mean of 3 and 4?)
        9: not found
    """
    text = text[:_MOST_ANSWER_CHARS]
    printed, given = _Index(_texts(rounds, printed=True)), _Index(_texts(rounds, printed=False))
    lines = [found.end() for found in re.finditer("\n", text)]
    items = len(_ITEM.findall(text))
    asked, told = _requested(rounds[-1].user_query), _last_told(rounds[:-1])
    told_and_asked = [*itertools.product(told, [*asked, *_products(asked)])]
    found: dict[int, NumberSource] = {}
    operands: dict[int, list[_Written]] = {}
    missing: list[tuple[int, _Written]] = []

    def look(one: _Written) -> NumberSource | None:
        return printed.find(one, text, "printed") or given.find(one, text, "given") or _counted(one, items)

    for one in _grouped(_without_known(text), look):
        line, source = bisect.bisect_right(lines, one.start), look(one)
        if source is None:
            missing.append((line, one))
        else:
            found[one.start] = source
            operands.setdefault(line, []).append(one)
    computed: dict[float, NumberSource] = {}
    for line, one in missing:
        near = [*operands.get(line, ())[:_MOST_OPERANDS], *operands.get(line - 1, ())[:_MOST_OPERANDS], *asked]
        pairs = itertools.chain(itertools.permutations(near, 2), told_and_asked)
        source = _computed(one, pairs) if len(missing) <= _MOST_COMPUTED else None
        source = source or _stated_sum(one, text, operands.get(line, ()))
        if source is not None:
            found[one.start] = computed[one.value] = source
    for _, one in missing:  # what is said twice is computed once
        if one.start not in found:
            same = computed.get(one.value)
            kind: Kind = "computed" if same else "not found"
            found[one.start] = NumberSource(one.text, one.start, kind, same.found if same else "")
    return tuple(found[start] for start in sorted(found))


def _stated_sum(wanted: _Written, text: str, operands: Sequence[_Written]) -> NumberSource | None:
    """Return the sum of three or more numbers of a line as a source, if the line states it with plus signs.

    Args:
        wanted: The number.
        text: The answer's.
        operands: Numbers of the line whose sources are known.
    """
    added = [one for one in operands[:_MOST_OPERANDS] if one.start != wanted.start]
    if len(added) < 3 or abs(sum(one.value for one in added) - wanted.value) > wanted.half:
        return None
    between = text[added[0].start : added[-1].start]
    words = " + ".join(one.text for one in added)
    return NumberSource(wanted.text, wanted.start, "computed", words) if between.count("+") == len(added) - 1 else None


def _requested(query: str) -> list[_Written]:
    """Return numbers of a request, small ones in words too."""
    text = _WORD.sub(lambda found: str(_WORDS.index(found[0].lower())), query[:_MOST_ANSWER_CHARS])
    return [*itertools.islice(_numbers(text), _MOST_OPERANDS)]


def _products(numbers: Sequence[_Written]) -> list[_Written]:
    pairs = itertools.combinations(numbers, 2)
    return [_Written(f"{x.text} * {y.text}", 0, x.value * y.value, x.half, False) for x, y in pairs]


def _last_told(rounds: Sequence[Round]) -> list[_Written]:
    """Return numbers of the last of a few earlier answers that has some."""
    for here in reversed(rounds[-_MOST_OPERANDS:]):
        told = here.posts[-1].message if here.posts and here.posts[-1].send_to == _USER else ""
        if numbers := [*itertools.islice(_numbers(_without_known(told[:_MOST_ANSWER_CHARS])), _MOST_OPERANDS)]:
            return numbers
    return []


def _texts(rounds: Sequence[Round], *, printed: bool) -> Iterator[tuple[str, str]]:
    """Yield (what wrote it, text) of what code has printed, or of what else is known; newest first."""
    outputs = sum(1 for here in rounds for post in here.posts if post.content(AttachmentType.execution_result))
    for here in reversed(rounds):
        for post in reversed(here.posts):
            if printed:
                for kind in _OUTPUTS:
                    if result := post.content(kind):
                        yield f"output {outputs}", result
                if post.content(AttachmentType.execution_result):
                    yield f"output {outputs}", post.message
                    outputs -= 1
                elif post.send_from != _USER and post.send_to != _USER and post.plan is None:
                    yield post.send_from, post.message  # of a role that runs no code
            else:
                yield "code", post.content(AttachmentType.reply_content)
                if post.send_from == _USER:
                    yield "the request's data", post.message
                elif post.send_to == _USER and here is not rounds[-1]:
                    yield "an earlier answer", post.message
        if not printed:
            yield "the request", here.user_query


class _Index:
    """Numbers of texts by value.

    Args:
        texts: (What wrote it, text).
    """

    def __init__(self, texts: Iterable[tuple[str, str]]) -> None:
        room, found = _MOST_SOURCE_CHARS, []
        for where, text in texts:
            if room <= 0:
                break
            kept, room = text[:room], room - len(text)
            found += [replace(one, where=(where, kept)) for one in itertools.chain(_numbers(kept), _cells(kept))]
        self._sorted = sorted(found, key=lambda one: one.value)
        self._values = [one.value for one in self._sorted]

    def find(self, wanted: _Written, text: str, kind: Kind) -> NumberSource | None:
        """Return the source of a number: what is equal to it, else what it is rounded from.

        Args:
            wanted: The number.
            text: Of the answer, for the word in front of it.
            kind: What a source of this index is.
        """
        for factor in (1.0, 100.0) if wanted.is_percent else (1.0,):
            value = wanted.value / factor
            near = self._near(value, 1e-9 * max(1.0, abs(value)))
            if near is not None:
                same = kind if factor == 1.0 or kind == "given" else "rounded"
                return NumberSource(wanted.text, wanted.start, same, near.text, _place(near))
            near = self._near(value, _half(wanted, text) / factor * (1 + 1e-9))
            if near is not None:
                rounded: Kind = "given" if kind == "given" else "rounded"
                return NumberSource(wanted.text, wanted.start, rounded, near.text, _place(near))
        return None

    def _near(self, value: float, half: float) -> _Written | None:
        at = bisect.bisect_left(self._values, value - half)
        return self._sorted[at] if at < len(self._values) and self._values[at] <= value + half else None


def _cells(text: str) -> Iterator[_Written]:
    """Yield whole numbers that stand on both sides of a comma: `1,412` is one number, or two values of a row."""
    for found in _ROW.finditer(text):
        at = found.start()
        for part in found[0].split(","):
            yield _Written(part, at, float(part), 0.5, False)
            at += len(part) + 1


def _numbers(text: str) -> Iterator[_Written]:
    """Yield the numbers of a text; a comma separates thousands, decimals, or, next to another comma, two numbers."""
    for found in _NUMBER.finditer(text):
        body, unit = found["body"].lower(), (found["unit"] or "").strip().lower()
        is_percent, scale = unit in ("%", "percent"), _SCALES.get(unit, 1.0)
        plain = re.sub(r"[,'\u00a0\u202f](?=\d{3}(?!\d))", "", body)
        listed = "," in plain and "," in (
            text[max(0, found.start() - 1) : found.start()] + text[found.end() : found.end() + 1]
        )
        start = found.start()
        for part in plain.split(",") if listed else (plain.replace(",", "."),):
            mantissa, _, exponent = part.partition("e")
            half = 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2])) * scale
            yield _Written(part if listed else found[0].strip(), start, float(part) * scale, half, is_percent)
            start += len(part) + 1


def _grouped(text: str, look: Callable[[_Written], object]) -> Iterator[_Written]:
    """Yield the numbers of an answer; those apart by a space are one where it has a source.

    Args:
        text: The answer's.
        look: Returns the source of a number, if it has one.
    """
    spaced = {}
    for found in _SPACED.finditer(text):
        for one in _numbers(found[0].replace(" ", ",")):
            whole = replace(one, text=found[0], start=found.start())
            if look(whole):
                spaced[found.start()] = found.end(), whole
    end = 0
    for one in _numbers(text):
        if one.start in spaced:
            end, one = spaced[one.start]
        elif one.start < end:
            continue
        yield one


def _half(wanted: _Written, text: str) -> float:
    """Return by how much the source may differ; after "about" a number's zeros at the end count as rounded."""
    digits = re.sub(r"\D", "", wanted.text)
    zeros = len(digits) - len(digits.rstrip("0"))
    if zeros and "." not in wanted.text and _ABOUT.search(text[max(0, wanted.start - 20) : wanted.start]):
        return wanted.half * 10.0**zeros
    return wanted.half


def _counted(one: _Written, items: int) -> NumberSource | None:
    """Return a source for the count of the items that the answer itself lists."""
    if one.value == items and one.text.isdigit():
        return NumberSource(one.text, one.start, "computed", f"{items} listed items")
    return None


def _computed(one: _Written, pairs: Iterable[tuple[_Written, _Written]]) -> NumberSource | None:
    """Return a source for what is the sum, difference, product, ratio or percentage of two numbers.

    Args:
        one: The number.
        pairs: What it may be computed from.
    """
    for x, y in pairs:
        if x.value == y.value or not y.value:
            continue
        results = {"{} - {}": x.value - y.value, "{} + {}": x.value + y.value, "{} * {}": x.value * y.value}
        results["{} / {}"] = x.value / y.value
        if one.is_percent:
            results |= {"100 * {} / {}": 100 * x.value / y.value}
            results |= {"100 * ({0} - {1}) / {1}": 100 * abs(x.value - y.value) / y.value}
        for words, value in results.items():
            if abs(value - one.value) <= one.half * (1 + 1e-9):
                return NumberSource(one.text, one.start, "computed", words.format(x.text, y.text))
    return None


def _without_known(text: str) -> str:
    return _KNOWN.sub(lambda found: re.sub(r"\S", "_", found[0]), text)


def _place(one: _Written) -> str:
    """Return what wrote a number, and the line around it."""
    where, text = one.where
    at = one.start
    begin = max(text.rfind("\n", max(0, at - _EXCERPT_CHARS), at) + 1, at - _EXCERPT_CHARS // 2, 0)
    end = text.find("\n", at, at + _EXCERPT_CHARS)
    return f"{where}: {' '.join(text[begin : end if end >= 0 else at + _EXCERPT_CHARS // 2].split())}"
