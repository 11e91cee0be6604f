"""Where the numbers of an answer come from: output of code, the request, simple arithmetic, or nowhere.

`number_sources` is for people who read an answer: a rounding, and arithmetic of numbers that stand together, are
sources. `unfounded_numbers` is asked before an answer goes out for which no code has run, and is strict: a number was
shown as it stands, or the answer states the arithmetic by which it follows from such numbers.
"""

from __future__ import annotations

import bisect
import itertools
import math
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tw_autogen.conversation import AttachmentType, Post, Round
from tw_autogen.written_numbers import (
    UNITS,
    ParsedNumbersCache,
    WrittenNumber,
    dotted_numbers,
    normalize_east_asian,
    number_words_in,
    numbers_in,
)

Kind = Literal["printed", "rounded", "computed", "given", "possible", "not found"]

_MAX_ANSWER_CHARS = 20_000
_MAX_SOURCE_CHARS = 500_000
_MAX_OPERANDS = 8
"""Numbers on a line that arithmetic is tried with, in pairs."""
_MAX_COMPUTED = 100
"""Where more numbers than these are not found as they stand, no arithmetic of pairs is tried."""
_MAX_STATED, _MAX_SHARES, _MAX_UNFOUNDED = 200, 8, 5
_EXCERPT_CHARS = 100
_MAX_ALIKE = 50
"""Of more numbers that are equal the first ones are compared."""
_COMMAS = ",;"
_WORD, _WORD_OR_COMMA = re.compile(r"[^\W_]+"), re.compile(r"[^\W_]+|[,;]")
_USER = "User"
_OUTPUTS = (AttachmentType.execution_result, AttachmentType.code_error)

_EAST_ASIAN_LABELS = re.compile(
    r"(?<!\d)(?:19|20)\d\d年(?:\d{1,2}月(?:\d{1,2}[日号])?)?|(?<![\d.])\d{1,2}月(?:\d{1,2}[日号])?"
    r"|(?:第|上位|最初の|最後の|前|后)\d{1,4}(?![\d.,])|(?<![\d.])\d{1,4}[番位]"
)
"""Dates and ordinals."""
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?|jänner|jän|januar|februar|märz|mär|mai|juni|juli|okt(?:ober)?|dez(?:ember)?"
    r"|janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre|décembre|janv|févr|avr|juil|déc"
    r"|gennaio|febbraio|marzo|aprile|maggio|giugno|luglio|agosto|settembre|ottobre|dicembre"
    r"|enero|febrero|abril|mayo|junio|julio|septiembre|setiembre|octubre|noviembre|diciembre"
    r"|janeiro|fevereiro|março|maio|junho|julho|setembro|outubro|novembro|dezembro"
    r"|januari|februari|maart|mrt|mei|augustus)(?!\w)"
)
"""Months in English, German, French, Italian, Spanish, Portuguese and Dutch."""
_MARKS = rf"""
    https?://\S{{1,100}}
    | ^[ \t>*_\#|-]{{0,20}}\d{{1,3}}[.)][*_]{{0,3}}(?=[ \t])             # numbers of a list
    | (?<!\w)[\w-]{{0,60}}\.(?=[A-Za-z])[A-Za-z]\w{{1,7}}\b             # names of files
    | (?<![\w.])(?!(?:{UNITS}|k|M|ci?ento?)\b)(?=[A-Za-z_])\w{{1,100}}              # words
"""
_ADVICE = r"""
    (?<![\w.,/])(?:\d{1,3}-fold\b|\d{1,2}/\d{1,2}(?=[ -](?:train|test|split|validation)\b))
    | (?<!\w)\(\d{1,2}\)(?=\ )                                          # numbers of a list in a sentence
    | \b(?:steps?|columns?|top)\ \d{1,3}(?![\w.]\d)
"""
_LABELS = rf"""
    (?<![\w.])\d{{4}}-\d\d(?:-\d\d)?(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{{1,9}})?)?)?(?![\w])  # dates
    | (?<![\w.])\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}(?![\w.])
    | (?<![\w.])\d{{1,2}}:\d\d(?::\d\d)?(?!\w)
    | \b{_MONTH}\.?\ \d{{1,2}}(?:st|nd|rd|th)?(?![\w.,]?\d)
    | (?<![\w.,])\d{{1,2}}(?:er)?(?:\.?\ (?:de\ )?|[/-]){_MONTH}
    | (?<![\w.,])(?:19|20)\d\d(?![\w%]|[.,]\d|\ %)                       # years
    | (?<![\w.])\d{{1,9}}(?:st|nd|rd|th)\b                               # ordinals
    | (?<![\w.,])\d{{1,3}}(?:er|ère|e|ème)\b(?!-?\d) | (?<![\w.,])\d{{1,3}}\.\ (?:Platz|Rang|Stelle|Quartal)\b
    | \bp\ ?[<>≤≥]\ ?0?[.,](?:05|01|001)(?!\d) | (?<![\w.,])9[059]\ ?%\ (?:confidence|ci\b|konfidenz)  # conventions
    | (?<![\w.,])(?:1|5|10)\ ?%\ (?:significance\ )?level\b | \bNo\.\ ?\d{{1,6}}(?![\w.]\d)
    | \#\d{{1,9}}
    | \b(?:steps?|cells?|lines?|figures?|pages?|sections?|versions?|python|rounds?|top|first|last)\ \d{{1,9}}(?![\w.]\d)
    | (?<![\w.])(?!\d{{1,3}}(?:\.\d{{3}}){{2,6}}(?![\w.]))v?\d{{1,9}}(?:\.\d{{1,9}}){{2,8}}(?![\w])  # versions
"""
_NO_NUMBER = re.compile(f"{_ADVICE} | {_MARKS}", re.VERBOSE | re.IGNORECASE | re.MULTILINE)
"""What only looks like a number, or is part of a word."""
_NO_QUANTITY = re.compile(rf"{_LABELS} | {_ADVICE} | (?:{_MARKS})(?:-\w{{1,50}}){{0,5}}", _NO_NUMBER.flags)
"""What stands for no quantity, and needs no source."""
_ITEM = re.compile(r"^[ \t]{0,20}(?:[-*•]|\d{1,3}[.)])[ \t]", re.MULTILINE)
_LISTED = re.compile(r"\ [\w ]{1,40}(?::|\ are)\ ([^.:;\n]{1,300})")
_BETWEEN_ITEMS = re.compile(r",\ (?:and|und|or)\ |,\ |\ (?:and|und|or)\ ")
_SPACED = re.compile(r"(?<![\w.] )(?<![\w.])[1-9]\d{0,2}(?: \d{3}){1,6}(?!\w|,\d)")
"""A number whose thousands are separated by spaces, or several numbers."""
_STATED = re.compile(r" ?%? {0,3}([-+*/×÷−–]|of|from) {0,3}|[^+\n]{0,60}(\+)[^+\n]{0,60}")
"""What stands between two numbers that an answer computes with."""
_PRODUCTS, _QUOTIENTS = ("*", "×"), ("/", "÷", "of")
_ROWS_OR_MISSING = re.compile(r"(?<![\w.,])(\d{1,12}|\d{1,3}(?:,\d{3}){1,3}) (rows|missing)\b")
_ABOUT = re.compile(
    r"(?:about|around|roughly|nearly|almost|over|some|approximately|than|~|≈|約|约|およそ|ほぼ|약)\s?[$€£¥]?$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class NumberSource:
    """Where one number of an answer comes from.

    Args:
        number: As the answer writes it, such as `25.4 %`.
        start: Where it begins in the answer's text, in characters.
        kind: `printed` by code as it stands, `rounded` from what code printed, `computed` as the answer itself states
            it or as the number of items that it lists, `given` by the request, its data or the code; `possible`, if
            some two numbers nearby have it as their difference, sum, product, ratio or percentage, which may be chance,
            or if the number without its unit was printed; or `not found`.
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
        text_by_kind = {
            "rounded": "rounded from ",
            "computed": "computed: ",
            "given": "given as ",
            "possible": "could be ",
        }.get(self.kind, "")
        label = f"{text_by_kind}{self.found}" if self.kind != "printed" and self.found else self.kind
        return f"{self.number}: {label}" + (f" ({self.where})" if self.where else "")


def number_sources(
    text: str, rounds: Sequence[Round], *, parsed: ParsedNumbersCache | None = None
) -> tuple[NumberSource, ...]:
    """Look up the numbers of an answer in what code has printed; no model is asked, and the time it takes is linear.

    Dates, years, ordinals, numbers of lists, versions, and names with digits need no source. A sign is not compared. Of
    an answer the first 20 000 characters are looked at, of what was printed 500 000, newest texts first.

    Args:
        text: The answer's.
        rounds: All rounds of the session until the answer, oldest first; the last one is the answer's own.
        parsed: Of the answer before; changed. None: all is parsed anew.

    Returns:
        A source for each number, in the order of the text.

    Example:
        >>> for one in number_sources("The mean of 3 and 4 is 9.", [Round("Mean of 3 and 4?")]):
        ...     print(one)
        3: given as 3 (the request: Mean of 3 and 4?)
        4: given as 4 (the request: Mean of 3 and 4?)
        9: not found
    """
    text = text[:_MAX_ANSWER_CHARS]
    parsed = parsed or ParsedNumbersCache()
    printed = _Index(_texts(rounds, printed=True), parsed)
    given = _Index(_texts(rounds, printed=False), parsed, words=True)
    parsed.forget_unused()
    items = len(_ITEM.findall(text))

    def look(number: WrittenNumber) -> NumberSource | None:
        return (
            printed.find(number, text, "printed")
            or given.find(number, text, "given")
            or _item_count_source(number, items)
        )

    numbers = [
        *_answer_numbers(
            _mask_matches(_NO_QUANTITY, normalize_east_asian(_mask_matches(_EAST_ASIAN_LABELS, text))), look
        )
    ]
    sources = {number.start: source for number in numbers if (source := look(number))}
    _add_stated(text, numbers, sources, given.shares())
    _add_pairs(text, numbers, sources, rounds)
    return tuple(
        sources.get(number.start) or NumberSource(number.text, number.start, "not found") for number in numbers
    )


def unfounded_numbers(answer: str, shown: Sequence[str]) -> list[str]:
    """Return the first few numbers of an answer that are in nothing that the model was shown.

    Args:
        answer: Numbers that are part of a word, or mark the items of a list, do not count; nor does the result of an
            arithmetic of shown numbers that it states, the share or the rest of a file's rows where values are missing,
            or the count of what it lists in the same sentence.
        shown: The messages that the model was shown, oldest first: numbers, rows of a table (`1,412` may be one number
            or two), and words. Of the newest ones 500 000 characters are looked at.

    Example:
        >>> unfounded_numbers("1. The mean is 4.27, of 1,200 rows in a2.csv", ["1200 rows"])
        ['4.27']
        >>> unfounded_numbers("39 of 312, so 12.5 %", ["312 rows, 39 missing"])
        []
    """
    answer = answer[:_MAX_ANSWER_CHARS]
    told = _mask_matches(_NO_NUMBER, normalize_east_asian(answer))
    if next(numbers_in(told), None) is None:
        return []
    index = _Index((("", text) for text in reversed(shown)), ParsedNumbersCache(), words=True)
    numbers = [*_answer_numbers(told, index.exact)]
    sources = {
        number.start: NumberSource(number.text, number.start, "given") for number in numbers if index.exact(number)
    }
    _add_stated(answer, numbers, sources, index.shares())
    missing = (number for number in numbers if number.start not in sources and not _counts_what_follows(number, answer))
    return [*dict.fromkeys(number.text for number in missing)][:_MAX_UNFOUNDED]


def _add_stated(
    text: str, numbers: Sequence[WrittenNumber], sources: dict[int, NumberSource], shares: Sequence[WrittenNumber]
) -> None:
    """Add what an answer computes from found numbers in so many words, such as `412 + 388` or `39 of 312`.

    Args:
        text: The answer's.
        numbers: Its numbers, in order.
        sources: Sources by where a number begins; what is added may be computed with, too.
        shares: Fractions and percentages that need not be stated; for numbers with decimals.
    """
    between = ((x, _STATED.fullmatch(text, x.end, y.start), y) for x, y in itertools.pairwise(numbers))
    steps = [(x, stated[1] or stated[2], y) for x, stated, y in between if stated][:_MAX_STATED]
    results = _stated_results(steps, sources)
    for one in [number for number in numbers if number.start not in sources][:_MAX_STATED]:
        known = itertools.chain(results, shares if "." in one.text else ())
        near = next((result for result in known if _rounds_to(one, result.value)), None)
        if near is not None:
            sources[one.start] = NumberSource(one.text, one.start, "computed", near.text)
            results = _stated_results(steps, sources)


def _stated_results(
    steps: Iterable[tuple[WrittenNumber, str, WrittenNumber]], sources: Container[int]
) -> list[WrittenNumber]:
    """Return the results of stated arithmetic.

    Args:
        steps: Neighbouring numbers with the operator between them; a sum or difference goes on with the next one.
        sources: Where the numbers begin that may be computed with.
    """
    results: list[WrittenNumber] = []
    total: WrittenNumber | None = None
    for x, operator, y in steps:
        first = total if total and total.start == x.start else x if x.start in sources else None
        total = None
        if first and y.start in sources:
            new = _arithmetic_results(first, operator, y)
            results += new
            total = None if operator in (*_PRODUCTS, *_QUOTIENTS) else replace(new[0], start=y.start)
    return results


def _arithmetic_results(x: WrittenNumber, operator: str, y: WrittenNumber) -> list[WrittenNumber]:
    """Return what two numbers with an operator between them amount to; of a quotient the percentage, too."""
    if operator in _QUOTIENTS:
        share = WrittenNumber(f"{x.text} / {y.text}", 0, x.value / y.value if y.value else math.nan)
        return [share, WrittenNumber(f"100 * {share.text}", 0, 100 * share.value, is_percent=True)]
    if operator in _PRODUCTS:
        return [WrittenNumber(f"{x.text} * {y.text}", 0, x.value * y.value)]
    if operator == "+":
        return [WrittenNumber(f"{x.text} + {y.text}", 0, x.value + y.value)]
    difference = WrittenNumber(f"{x.text} - {y.text}", 0, x.value - y.value)
    return [difference, replace(difference, value=abs(difference.value))]


def _add_pairs(
    text: str, numbers: Sequence[WrittenNumber], sources: dict[int, NumberSource], rounds: Sequence[Round]
) -> None:
    """Add what may follow from two numbers that stand near, are in the request, or were told before.

    Args:
        text: The answer's.
        numbers: Its numbers, in order.
        sources: Sources by where a number begins.
        rounds: The session's until the answer.
    """
    asked, told = _request_numbers(rounds[-1].user_query), _last_told(rounds[:-1])
    products = [_arithmetic_results(x, "*", y)[0] for x, y in itertools.combinations(asked, 2)]
    told_and_asked = [*itertools.product(told, [*asked, *products])]
    operands: dict[int, list[WrittenNumber]] = {}
    missing: list[tuple[int, WrittenNumber]] = []
    for number in numbers:
        line = text.count("\n", 0, number.start)
        if number.start in sources:
            operands.setdefault(line, []).append(number)
        else:
            missing.append((line, number))
    computed: dict[float, NumberSource] = {}
    for line, unfounded in missing if len(missing) <= _MAX_COMPUTED else ():
        near = [*operands.get(line, ())[:_MAX_OPERANDS], *operands.get(line - 1, ())[:_MAX_OPERANDS], *asked]
        source = _computed_source(unfounded, itertools.chain(itertools.permutations(near, 2), told_and_asked))
        if source is not None:
            sources[unfounded.start] = computed[unfounded.value] = source
    for _, unfounded in missing:  # what is said twice is computed once
        if unfounded.start not in sources and unfounded.value in computed:
            sources[unfounded.start] = replace(computed[unfounded.value], number=unfounded.text, start=unfounded.start)


def _request_numbers(query: str) -> list[WrittenNumber]:
    """Return numbers of a request, small ones in words too."""
    query = normalize_east_asian(query[:_MAX_ANSWER_CHARS])
    numbers = sorted(itertools.chain(numbers_in(query), number_words_in(query)), key=lambda number: number.start)
    return numbers[:_MAX_OPERANDS]


def _last_told(rounds: Sequence[Round]) -> list[WrittenNumber]:
    """Return numbers of the last of a few earlier answers that has some."""
    for here in reversed(rounds[-_MAX_OPERANDS:]):
        told = here.posts[-1].message if here.posts and here.posts[-1].send_to == _USER else ""
        if numbers := [
            *itertools.islice(
                numbers_in(_mask_matches(_NO_QUANTITY, normalize_east_asian(told[:_MAX_ANSWER_CHARS]))), _MAX_OPERANDS
            )
        ]:
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
                elif _USER not in (post.send_from, post.send_to) and post.plan is None and not _runs_code(post):
                    yield post.send_from, post.message
                for look in reversed(_look_outputs(post)):
                    yield "code that looked", look
            else:
                yield "code", post.content(AttachmentType.reply_content)
                if post.send_from == _USER:
                    yield "the request's data", post.message
                elif post.send_to == _USER and here is not rounds[-1]:
                    yield "an earlier answer", post.message
        if not printed:
            yield "the request", here.user_query


def _runs_code(post: Post) -> bool:
    """Return whether a role sent it that runs code, so that numbers in its words are the model's."""
    return post.attachment(AttachmentType.execution_status) is not None


def _look_outputs(post: Post) -> list[str]:
    """Return what cells of a task printed that were run before the one whose output the post has."""
    status = post.attachment(AttachmentType.execution_status)
    looks = status.extra.get("looks") if status and status.extra else None
    return [text for text in looks if isinstance(text, str)] if isinstance(looks, list) else []


class _Index:
    """Numbers of texts by value.

    Args:
        texts: (What wrote it, text).
        parsed: Has the numbers of texts that were looked at before.
        words: Whether number words count, too.
    """

    def __init__(self, texts: Iterable[tuple[str, str]], parsed: ParsedNumbersCache, *, words: bool = False) -> None:
        room, found = _MAX_SOURCE_CHARS, []
        self._texts: list[str] = []
        for where, text in texts:
            if room <= 0:
                break
            kept, room = text[:room], room - len(text)
            found += parsed.of(kept, where, words=words)
            self._texts.append(kept)
        missing = self._missing_counts() if words else ()
        found += [WrittenNumber(f"{rows} - {gone}", 0, float(rows - gone)) for gone, rows in missing]
        self._sorted = sorted(found, key=lambda source: source.value)
        self._values = [source.value for source in self._sorted]
        self._lines: dict[tuple[str, int, int], frozenset[str]] = {}

    def exact(self, wanted: WrittenNumber) -> WrittenNumber | None:
        """Return a number that is equal; `4.2 million` may be 4.2 in a column of millions, but no 4 is 4 million."""
        return self._number_near(wanted.value, 0.0) or self._without_unit(wanted)

    def _without_unit(self, wanted: WrittenNumber) -> WrittenNumber | None:
        plain = wanted.value / wanted.scale
        return self._number_near(plain, 0.0) if wanted.scale > 1 and not plain.is_integer() else None

    def find(self, wanted: WrittenNumber, text: str, kind: Kind) -> NumberSource | None:
        """Return the source of a number: what is equal to it, else what it is rounded from.

        Where several are, it is the one whose line has the words that stand near the number in the answer.

        Args:
            wanted: The number.
            text: Of the answer.
            kind: What a source of this index is.
        """
        around = _words_around(wanted, text)
        if (near := self._number_near(wanted.value, 0.0, around)) is not None:
            return NumberSource(wanted.text, wanted.start, kind, near.text, _describe_place(near))
        for factor in (1.0, 100.0) if wanted.is_percent else (1.0,):
            near = self._number_near(wanted.value / factor, _tolerance(wanted, text) / factor, around)
            if near is not None:
                rounded: Kind = "given" if kind == "given" else "rounded"
                return NumberSource(wanted.text, wanted.start, rounded, near.text, _describe_place(near))
        if (near := self._without_unit(wanted)) is not None:
            return NumberSource(wanted.text, wanted.start, "possible", near.text, _describe_place(near))
        return None

    def shares(self) -> list[WrittenNumber]:
        """Return the shares of rows that are missing, that are not, and differences of the first; in per cent, too."""
        gone = {f"{count} / {whole}": count / whole for count, whole in self._missing_counts()}
        shares = gone | {f"1 - {words}": 1 - share for words, share in gone.items()}
        pairs = itertools.permutations(gone.items(), 2)
        shares |= {f"{x} - {y}": first - other for (x, first), (y, other) in pairs if first > other}
        return [
            *(WrittenNumber(words, 0, share) for words, share in shares.items()),
            *(WrittenNumber(f"100 * ({words})", 0, 100 * share) for words, share in shares.items()),
        ]

    def _missing_counts(self) -> list[tuple[int, int]]:
        """Return the first few counts of missing values, each with its file's number of rows."""
        rows: list[int] = []
        found: dict[tuple[int, int], None] = {}
        for match in _ROWS_OR_MISSING.finditer("\n".join(self._texts)):
            count = int(match[1].replace(",", ""))
            if match[2] == "rows":
                rows = [*rows[-_MAX_SHARES:], count]
            elif whole := next((whole for whole in reversed(rows) if whole >= count), 0):
                found[count, whole] = None
        return list(found)[:_MAX_SHARES]

    def _number_near(
        self, value: float, half: float, around: Mapping[str, float] | None = None
    ) -> WrittenNumber | None:
        """Return a number that is near a value: of the first ones the one whose line says most of what is around."""
        half = max(half * (1 + 1e-9), 1e-9 * abs(value))
        first = bisect.bisect_left(self._values, value - half)
        end = bisect.bisect_right(self._values, value + half, first, min(len(self._values), first + _MAX_ALIKE))
        if first == end:
            return None
        if not around or end - first == 1:
            return self._sorted[first]
        equal = self._sorted[first:end]
        return max(equal, key=lambda source: sum(around.get(word, 0.0) for word in self._words_of(source)))

    def _words_of(self, number: WrittenNumber) -> frozenset[str]:
        """Return the words of the line in which a number stands."""
        where, text = number.where
        begin, end = _line_around(text, number.start)
        key = (where, id(text), begin)
        if key not in self._lines:
            self._lines[key] = frozenset(map(str.lower, _WORD.findall(text, begin, end)))
        return self._lines[key]


def _line_around(text: str, position: int) -> tuple[int, int]:
    """Return where a line begins and ends, or so much of it as is near a place."""
    begin = max(text.rfind("\n", max(0, position - _EXCERPT_CHARS), position) + 1, position - _EXCERPT_CHARS // 2, 0)
    end = text.find("\n", position, position + _EXCERPT_CHARS)
    return begin, end if end >= 0 else position + _EXCERPT_CHARS // 2


def _words_around(number: WrittenNumber, text: str) -> dict[str, float]:
    """Return the words near a number in its line, each with a weight: less with each word and comma in between."""
    weights: dict[str, float] = {}
    begin, end = _line_around(text, number.start)
    before = _WORD_OR_COMMA.findall(text, begin, number.start)[::-1]
    for words, weight in ((before, 1.0), (_WORD_OR_COMMA.findall(text, number.end, end), 0.5)):
        distance, apart = 0, 1.0
        for word in words:
            if word in _COMMAS:
                apart *= 0.1
            else:
                distance += 1
                weights[word.lower()] = max(weights.get(word.lower(), 0.0), weight * apart / distance)
    return weights


def _rounds_to(number: WrittenNumber, value: float) -> bool:
    return abs(value - number.value) <= number.half * (1 + 1e-9)


def _answer_numbers(text: str, look: Callable[[WrittenNumber], object]) -> Iterator[WrittenNumber]:
    """Yield the numbers of an answer; those apart by a space or a dot are one where it has a source, or must be one.

    Args:
        text: The answer's.
        look: Returns the source of a number, if it has one.
    """
    spaced = {}
    for match in _SPACED.finditer(text):
        for number in numbers_in(match[0].replace(" ", ",")):
            whole = replace(number, text=match[0], start=match.start())
            if look(whole):
                spaced[match.start()] = match.end(), whole
    for whole, sure in dotted_numbers(text):
        if whole.start not in spaced and (sure or look(whole)):
            spaced[whole.start] = whole.end, whole
    end = 0
    for number in numbers_in(text):
        if number.start in spaced and not (number.end >= spaced[number.start][0] and look(number)):
            end, number = spaced[number.start]
        elif number.start < end:
            continue
        yield number


def _tolerance(wanted: WrittenNumber, text: str) -> float:
    """Return by how much the source may differ; after "about" a number's zeros at the end count as rounded."""
    digits = re.sub(r"\D", "", wanted.text)
    zeros = len(digits) - len(digits.rstrip("0"))
    if zeros and "." not in wanted.text and _ABOUT.search(text[max(0, wanted.start - 20) : wanted.start]):
        return wanted.half * 10.0**zeros
    return wanted.half


def _item_count_source(number: WrittenNumber, items: int) -> NumberSource | None:
    """Return a source for the count of the items that the answer itself lists."""
    if items and number.value == items and number.text.isdigit():
        return NumberSource(number.text, number.start, "computed", f"{items} listed items")
    return None


def _counts_what_follows(number: WrittenNumber, text: str) -> bool:
    """Return whether a number counts the items that follow it: `3 columns: region, month and revenue`."""
    listed = _LISTED.match(text, number.end)
    return bool(listed and number.text == str(len(_BETWEEN_ITEMS.split(listed[1].strip(" ,")))))


def _computed_source(
    number: WrittenNumber, pairs: Iterable[tuple[WrittenNumber, WrittenNumber]]
) -> NumberSource | None:
    """Return a possible source for what is the sum, difference, product, ratio or percentage of two numbers.

    A number without decimals has to be equal to it: rounded, most whole percentages come from some pair by chance.

    Args:
        number: The number.
        pairs: What it may be computed from.
    """
    exact = number.half >= number.scale / 2  # has no decimals

    def near(value: float) -> bool:
        return math.isclose(value, number.value, rel_tol=1e-9) if exact else _rounds_to(number, value)

    for x, y in pairs:
        if x.value == y.value or not y.value:
            continue
        operators = "-+*/" if x.value > y.value else "+*/"
        results = [result for operator in operators for result in _arithmetic_results(x, operator, y)]
        change, signed = 100 * abs(x.value - y.value) / y.value, f"({x.text} - {y.text}) / {y.text}"
        results.append(WrittenNumber(f"100 * {signed}", 0, change, is_percent=True))
        for result in results:
            if near(result.value) and result.is_percent <= number.is_percent:
                return NumberSource(number.text, number.start, "possible", result.text)
    return None


def _mask_matches(marks: re.Pattern[str], text: str) -> str:
    return marks.sub(lambda match: re.sub(r"\S", "_", match[0]), text)


def _describe_place(number: WrittenNumber) -> str:
    """Return what wrote a number, and the line around it."""
    where, text = number.where
    begin, end = _line_around(text, number.start)
    return f"{where}: {' '.join(text[begin:end].split())}"
