"""Outlines of texts: headings with sizes, and the paragraphs that rule how other files are read."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from .plural import pluralize

_WHOLE_CHARS = 1500
"""A text up to here is quoted whole."""
_QUOTED_CHARS = 2600
_MAX_HEADINGS = 25
_LONGEST_PARAGRAPH = 700
_HEADING = re.compile(r"(#{1,6}) {1,9}(\S.*)|(\d{1,3}(?:\.\d{1,3}){0,5}\.?) {1,9}([A-Z][^.]{2,80})")
_UNDERLINE = re.compile(r"(?:={3,}|-{3,})\s{0,9}")
_ITEM = re.compile(r"\s*([-*+•|]|\d+[.)]) ?")
_EMPTY = re.compile(
    r"\b(null|nan|none|empty|blank|missing|not applicable|n/a|applies to all|all possible values|default)\b", re.I
)
_FORMULA = re.compile(
    r"[\w)\]] =(?![=>]) ?[\w(].{0,150}[-+*/×÷]|[\w)\]]= ?[\w(][\w(). ]{0,80}(?:[+*×÷]| [-/] )"
    r"|\b(?i:calculated as|computed as|defined as)\b"
)
_FORMULA_WORDS = re.compile(r"\b(?:formula|is the (?:ratio|sum|number))\b", re.I)
_OF_DATA = re.compile(
    r"`| = |(?:\b[A-Z][A-Z/]{1,9}|\d|[\"'”’]) (?:means?|denotes?|indicates?|stands? for) "
    r"|(?i:\b(?:columns?|fields?|cells?|rows?|records?|variables?|attributes?"
    r"|(?:empty|missing|null|default|blank) values?)\b)"
)
"""Beside words that prose has as well."""
_FEW_TERM_CHARS = 3
_CODE = re.compile(r"`([^`\n]{1,80})`")
_NAMED = re.compile(
    r"\s*(?:[-*+•|]|\d{1,3}[.)])?\s{0,9}[*_`\"']{0,3}([^\s:|*`\"'](?:[^:|*`\"'\n]{0,60}[^\s:|*`\"'])?)[*_`\"']{0,3}"
    r"\s{0,9}(?::|\||–|—|- )"
)
"""The name that an item of a list, or a definition, begins with."""


def text_lines(text: str, *, terms: Collection[str] = (), cut: bool = False) -> tuple[str, list[str]]:
    """Describe a text.

    Args:
        text: Any length.
        terms: Names of columns of other files; paragraphs that speak of them are quoted.
        cut: There is more of it.

    Returns:
        A headline and lines: the whole text if it is short, else an outline and paragraphs.
    """
    lines = text.splitlines()
    count = f"text of {pluralize(len(lines), 'line')}"
    if len(text) <= _WHOLE_CHARS and not cut:
        return count, lines
    head = f"{count}, {len(text)} characters" if not cut else f"text, the first {len(text)} characters of it"
    found = headings(lines)
    notes = []
    if quoted := _telling_paragraphs(lines, terms, {index for index, _, _, _ in found}):
        notes.append("what it says of columns, of empty values and of formulas:")
        notes += [f"line {index + 1}: {paragraph}" for index, paragraph in quoted]
    notes += _heading_lines(found) if found else ["it begins:", *_first_lines(lines)]
    return head, notes


def _heading_lines(found: Sequence[tuple[int, int, str, int]]) -> list[str]:
    """Return a line for each heading, down to the level at which they are few; sizes with all that stands below."""
    deepest = next((most for most in (3, 2, 1) if sum(level <= most for _, level, _, _ in found) <= _MAX_HEADINGS), 1)
    merged: list[list[Any]] = []
    for index, level, title, size in found:
        if level <= deepest or not merged:
            merged.append([index, level, title, size])
        else:
            merged[-1][3] += size
    outline = ["sections, with characters:"]
    shown = merged[:_MAX_HEADINGS]
    outline += [
        f"{'  ' * (level - 1)}line {line_index + 1}: {title} ({size})" for line_index, level, title, size in shown
    ]
    return outline if len(merged) <= _MAX_HEADINGS else [*outline, f"… {len(merged) - _MAX_HEADINGS} more sections"]


def headings(lines: Sequence[str]) -> list[tuple[int, int, str, int]]:
    """Return line number from 0, level from 1, title and size in characters of each section."""
    found: list[tuple[int, int, str]] = []
    fenced = False
    for index, line in enumerate(lines):
        fenced ^= line.lstrip().startswith("```")
        if fenced:
            continue
        if match := _HEADING.fullmatch(line.rstrip()):
            level = len(match[1]) if match[1] else match[3].strip(".").count(".") + 1
            found.append((index, level, (match[2] or line).strip()))
        elif (
            index
            and lines[index - 1].strip()
            and _UNDERLINE.fullmatch(line)
            and not _is_listed(lines[index - 1], found, index)
        ):
            found.append((index - 1, 1 if line[0] == "=" else 2, lines[index - 1].strip()))
    if any(lines[index].startswith("#") for index, _, _ in found):  # numbers begin the items of lists then
        found = [one for one in found if lines[one[0]].startswith("#")]
    if not found:
        return []
    ends = [index for index, _, _ in found[1:]] + [len(lines)]
    return [
        (index, level, title[:120], sum(len(line) + 1 for line in lines[index:end]))
        for (index, level, title), end in zip(found, ends, strict=True)
    ]


def _is_listed(line: str, found: Sequence[tuple[int, int, str]], index: int) -> bool:
    """Return whether a line above a rule is an item of a list, or is a heading already."""
    return bool(_ITEM.match(line)) or bool(found) and found[-1][0] == index - 1


def _first_lines(lines: Sequence[str]) -> list[str]:
    said, size = [], 0
    for line in lines:
        size += len(line) + 1
        if size > _WHOLE_CHARS // 2:
            said.append(line[: max(0, _WHOLE_CHARS // 2 - size + len(line))] + "…")
            break
        said.append(line)
    return said


def _telling_paragraphs(lines: Sequence[str], terms: Collection[str], titles: set[int]) -> list[tuple[int, str]]:
    """Return the paragraphs that speak of columns, empty values or formulas, in their order, within a limit.

    Args:
        lines: The text's.
        terms: Names of columns; those that are plain words of one's language count only as code, as what an item of a
            list is about, or beside something else.
        titles: Numbers of lines that are headings.
    """
    plain_terms = {term.lower() for term in terms if len(term) >= _FEW_TERM_CHARS}
    plain = {term.lower() for term in terms if term.isalpha() and (term.islower() or term.istitle())}
    pattern = re.compile(
        r"(?<!\w)(" + "|".join(map(re.escape, sorted(plain_terms, key=len, reverse=True))) + r")(?!\w)"
    )
    scored = []
    for index, paragraph in _paragraphs(lines):
        if index in titles:
            continue
        paragraph = paragraph[:_LONGEST_PARAGRAPH]
        mentioned = set(pattern.findall(paragraph.lower())) if plain_terms else set()
        named = {one.lower() for one in _CODE.findall(paragraph)}
        if match := _NAMED.match(paragraph):
            named.add(match[1].lower())
        telling = (mentioned - plain) | (named & plain_terms)
        of_data = bool(mentioned or _OF_DATA.search(paragraph))
        formula = _FORMULA.search(paragraph) or (of_data and _FORMULA_WORDS.search(paragraph))
        rules = 2 * bool(of_data and _EMPTY.search(paragraph)) + 2 * bool(formula)
        score = rules + min(3, len(telling)) + bool(rules and mentioned)
        if plain_terms and not mentioned:
            score -= 1
        if score > 1 or telling:
            scored.append((score, index, paragraph))
    left, kept = _QUOTED_CHARS, []
    for _, index, paragraph in sorted(scored, key=lambda one: (-one[0], one[1])):
        if len(paragraph) <= left:
            left -= len(paragraph)
            kept.append((index, paragraph))
    return sorted(kept)


def _paragraphs(lines: Sequence[str]) -> list[tuple[int, str]]:
    """Return first line, from 0, and text of each paragraph; an item of a list is one of its own."""
    found: list[tuple[int, list[str]]] = []
    fresh = True
    for index, line in enumerate(lines):
        if not line.strip():
            fresh = True
            continue
        if fresh or _ITEM.match(line) or not found:
            found.append((index, [line.strip()]))
        else:
            found[-1][1].append(line.strip())
        fresh = False
    return [(index, " ".join(parts)) for index, parts in found]
