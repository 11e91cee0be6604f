"""Numbers as texts write them, in several languages: `numbers_in` and others read them, each a `WrittenNumber`."""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

_ROW = re.compile(r"(?<![\w.])\d{1,15}(?:\.\d{1,15})?(?:,-?\d{1,15}(?:\.\d{1,15})?){1,30}(?!\w)")
_SCALES = {
    **dict.fromkeys(("thousand", "thousands", "tsd", "tausend", "mil"), 1e3),
    **dict.fromkeys(("million", "millions", "mio", "mln", "millionen", "millones", "milioni"), 1e6),
    **dict.fromkeys(("bn", "billion", "billions", "mrd", "milliarde", "milliarden"), 1e9),
    **dict.fromkeys(("milliard", "milliards", "miliardo", "miliardi"), 1e9),
    **{"тыс": 1e3, "млн": 1e6, "млрд": 1e9},
    **{"lakh": 1e5, "lakhs": 1e5, "crore": 1e7, "crores": 1e7},
}
_LETTERS = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9}
"""Units of one letter; `m` and `b` are metres and bytes as well."""
_LARGE_UNITS = {
    **dict.fromkeys("千천", 1e3),
    **dict.fromkeys("万萬만", 1e4),
    **dict.fromkeys("億亿억", 1e8),
    **dict.fromkeys("兆조", 1e12),
}
_LARGE_UNIT = f"[{''.join(_LARGE_UNITS)}]"
_PART = rf"(?P<part>\d{{1,15}}(?:,\d{{3}}){{0,5}}(?:\.\d{{1,15}})?)(?P<units>{_LARGE_UNIT}{{1,3}})"
_LARGE_PART = re.compile(_PART)
_LARGE = re.compile(rf"(?<![\w.])(?:{re.sub('[?]P<[a-z]+>', '?:', _PART)}){{1,4}}(?:\d{{1,4}}(?![\d.,]))?")
"""A number such as `1億2000万` or `3.5万`."""
_EAST_ASIAN = re.compile(
    rf"(?!{_LARGE_UNIT})[\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]"
)
"""Letters of words that stand next to numbers without a blank."""
_FULL_WIDTH = str.maketrans("０１２３４５６７８９％", "0123456789%")
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻−", "0123456789--")
UNITS = "|".join(["per[ ]?cent", "prozent", "procent", "pour[ ]cent", "por[ ]ciento", "per[ ]cento", *_SCALES])
_INDIAN = r"[1-9]\d?(?:,\d\d){1,6},\d{3}(?!,?\d)"
"""With groups of two digits above the last three, such as `12,34,567`."""
_NUMBER = re.compile(
    rf"(?<![\w.])(?P<body>(?<!\d,){_INDIAN}(?:\.\d{{1,20}})?(?!\d)|"
    r"\d{1,3}(?:[,'’_\u2009\u00a0\u202f]\d{3}){1,8}(?:\.\d{1,20})?(?!\d)|\d{1,30}(?:\.\d{1,30}|,\d{1,30}(?!\.?\d))?(?:e[-+]?\d{1,3}(?!\d))?)"
    r"(?:[ \u00a0\u202f]?[×*·][ \u00a0\u202f]?10"
    r"(?:\^\{?(?P<power>[-−]?\d{1,2}(?!\d))\}?|(?P<raised>[⁻]?[⁰¹²³⁴-⁹]{1,2})))?"
    rf"(?P<unit>[ \u00a0\u202f]?(?:%|(?:{UNITS})\b|(?-i:[kM])\b)|(?-i:[KB])\b)?",
    re.IGNORECASE,
)
_WORDS = {"zero": 0} | {
    word: number
    for first, words in (
        (2, "two three four five six seven eight nine ten eleven twelve"),
        (2, "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf"),
    )
    for number, word in enumerate(words.split(), first)
}
"""Not those that are other words, too: `which one`, `eins davon`."""
_WORD = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b", re.IGNORECASE)
_COMMA = re.compile(r"\d,|,\d")
_FRACTION = re.compile(r"0,\d{3}")
_DOTTED = re.compile(r"(?<![\w.,])[1-9]\d{0,2}(?:[.\u00a0\u202f ]\d{3}){1,6}(?:,\d{1,20})?(?!\w|[.,]\d)")
"""A number whose thousands are separated by dots or spaces, with a comma before its decimals; or a decimal fraction."""


@dataclass(frozen=True)
class WrittenNumber:
    """A number as a text writes it: its value without sign, and half of what its last digit counts."""

    text: str
    start: int
    value: float
    half: float = 0.0
    is_percent: bool = False
    scale: float = 1.0
    """By which a unit such as `million` has multiplied the value."""
    where: tuple[str, str] = ("", "")
    """What wrote it, and the text."""

    @property
    def end(self) -> int:
        """Where it ends, in characters."""
        return self.start + len(self.text)


class ParsedNumbersCache:
    """The numbers of the texts that the newest look-up has read, for the next one of the same session."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, bool], list[WrittenNumber]] = {}
        self._used: dict[tuple[str, str, bool], list[WrittenNumber]] = {}

    def of(self, text: str, where: str, *, words: bool) -> list[WrittenNumber]:
        """Return the numbers of a text.

        Args:
            text: What was printed or said.
            where: What wrote it.
            words: Whether number words count, too.
        """
        key = (where, text, words)
        if key not in self._used:
            self._used[key] = self._known[key] if key in self._known else _all_numbers(text, where, words=words)
        return self._used[key]

    def forget_unused(self) -> None:
        """Keep what was asked for since the last call."""
        self._known, self._used = self._used, {}


def values_in(text: str) -> list[float]:
    """Return the values of the numbers of a text, without signs; a comma separates thousands or decimals."""
    return [one.value for one in numbers_in(normalize_east_asian(text))]


def _all_numbers(text: str, where: str, *, words: bool) -> list[WrittenNumber]:
    place, plain = (where, text), normalize_east_asian(text)
    found = [
        *numbers_in(plain, place),
        *_row_cell_numbers(plain, place),
        *(one for one, _ in dotted_numbers(plain, place)),
    ]
    return [*found, *(number_words_in(text, place) if words else ())]


def _row_cell_numbers(text: str, where: tuple[str, str]) -> Iterator[WrittenNumber]:
    """Yield numbers that stand on both sides of a comma: `1,412` is one number, or two values of a row."""
    for match in _ROW.finditer(text):
        position = match.start()
        for part in match[0].split(","):
            yield WrittenNumber(part, position, abs(float(part)), _half_of(part), where=where)
            position += len(part) + 1


def dotted_numbers(text: str, where: tuple[str, str] = ("", "")) -> Iterator[tuple[WrittenNumber, bool]]:
    """Yield numbers as `3.141.592,65` has them, and whether one can be nothing else: `67.275` can be a fraction.

    Args:
        text: As of `normalize_east_asian`.
        where: What wrote it, and the text; stands in each number.
    """
    for match in _DOTTED.finditer(text):
        whole, _, decimals = match[0].partition(",")
        plain = f"{re.sub(r'[^0-9]', '', whole)}{'.' * bool(decimals)}{decimals}"
        sure = " " not in whole and (bool(decimals) or whole.count(".") > 1)
        yield WrittenNumber(match[0], match.start(), float(plain), _half_of(plain), where=where), sure


def number_words_in(text: str, where: tuple[str, str] = ("", "")) -> Iterator[WrittenNumber]:
    """Yield the small numbers that a text has in English or German words.

    Args:
        text: As of `normalize_east_asian`.
        where: What wrote it, and the text; stands in each number.
    """
    for match in _WORD.finditer(text):
        value = _WORDS[match[0].casefold().replace("\u0307", "").replace("ı", "i")]  # Turkish capitals and keyboards
        yield WrittenNumber(str(value), match.start(), value, 0.5, where=where)


def normalize_east_asian(text: str) -> str:
    """Return a text of the same length whose numbers stand apart from Chinese, Japanese and Korean words."""
    return text if text.isascii() else _EAST_ASIAN.sub("\u3001", text.translate(_FULL_WIDTH))


def _number_with_units(match: re.Match[str], where: tuple[str, str]) -> WrittenNumber:
    """Return a number of parts with units, such as `1億2000万`, as one."""
    value, scale, last, end = 0.0, 1.0, "", 0
    for part in _LARGE_PART.finditer(match[0]):
        last, end = part["part"].replace(",", ""), part.end()
        scale = math.prod(_LARGE_UNITS[unit] for unit in part["units"])
        value += float(last) * scale
    if rest := match[0][end:]:
        value, last, scale = value + float(rest), rest, 1.0
    return WrittenNumber(match[0], match.start(), value, _half_of(last) * scale, scale=scale, where=where)


def numbers_in(text: str, where: tuple[str, str] = ("", "")) -> Iterator[WrittenNumber]:
    """Yield the numbers of a text, in order; those with units of ten thousands are one each.

    Args:
        text: As of `normalize_east_asian`.
        where: What wrote it, and the text; stands in each number.
    """
    large = [_number_with_units(match, where) for match in _LARGE.finditer(text)] if not text.isascii() else []
    others = _plain_numbers(_LARGE.sub(lambda match: "_" * len(match[0]), text) if large else text, where)
    yield from heapq.merge(large, others, key=lambda one: one.start)


def _plain_numbers(text: str, where: tuple[str, str]) -> Iterator[WrittenNumber]:
    """Yield the numbers of a text; a comma separates thousands, decimals, or, next to another such comma, numbers."""
    for match in _NUMBER.finditer(text):
        body, unit = match["body"].lower(), (match["unit"] or "").strip()
        power = 10.0 ** int((match["power"] or match["raised"] or "0").translate(_RAISED))
        is_percent = unit.lower().startswith(("%", "p"))
        scale = _LETTERS.get(unit) or _SCALES.get(unit.lower(), 1.0)
        if re.match(_INDIAN, body):
            body = body.replace(",", "")
        plain = body if _FRACTION.fullmatch(body) else re.sub(r"[,'’_\u2009\u00a0\u202f](?=\d{3}(?!\d))", "", body)
        start, end = match.span()
        listed = "," in plain and bool(
            _COMMA.match(text[max(0, start - 2) : start]) or _COMMA.match(text[end : end + 2])
        )
        for part in plain.split(",") if listed else (plain.replace(",", "."),):
            shown = part if listed else match[0].strip()
            value, half = float(part) * power * scale, _half_of(part) * power * scale
            yield WrittenNumber(shown, start, value, half, is_percent, scale, where)
            start += len(part) + 1


def _half_of(plain: str) -> float:
    """Return half of what the last digit counts of a number such as `12.5` or `3e-7`."""
    mantissa, _, exponent = plain.partition("e")
    return float(f"5e{int(exponent or 0) - len(mantissa.partition('.')[2]) - 1}")  # infinite if too large
