"""Names of files that stand in a text: data, pictures and documents."""

from __future__ import annotations

import functools
import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator

from tw_autogen.file_suffixes import DATA, DOCUMENTS, MACROS, PACKED, PICTURES
from tw_autogen.safe_folder import is_protected

_SUFFIXES = DATA | DOCUMENTS | PICTURES
_MAX_CHARS = 200
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""Letters that stand beside a name without a blank: Thai, Lao, Burmese, Khmer, kana, Han, and Hangul's particles."""
_MARK = "\x01"
"""What stands for one of them while names are looked for: no letter, and no blank."""
_BEFORE = r"(?<![\w.\\/-])"
_AFTER = r"(?!\w|[\\/]|-(?![^\W\d_]{3})|\.\w)"
"""What stands at the ends of a name, as lookarounds: `a.csv-Datei` and `读取a.csv的` name `a.csv`."""
_WORD_START = re.compile(r"(?<![\w.-])(?=.)", re.DOTALL)
_QUOTED = re.compile(
    r"""(?<![\w.])(?:"(?P<double>[^"\n]{1,200}\.\w{1,10})"|`(?P<code>[^`\n]{1,200}\.\w{1,10})`"""
    r"""|'(?P<single>[^"'`\n]{1,200}\.\w{1,10})')"""
    r"""|[„“”«»‚‘「『《](?P<set>[^"`\n„“”«»‚‘’「」『』《》]{1,200}\.\w{1,10})[“”«»‘’」』》]"""
)
_RUN = re.compile(r"""[^\s"'`<>|*?:;,()\[\]{}=，。？！：；、（）„“”«»‚‘’「」『』《》【】،؟]+""")
_SUFFIX = re.compile(rf"\.\w{{2,10}}{_AFTER}")


@functools.cache
def _unspaced_pattern() -> re.Pattern[str]:
    return re.compile(f"[{_UNSPACED}]")  # takes 2 ms, which most texts need not


def _mark_unspaced(text: str) -> str:
    """Return a text of the same length, in which a mark stands for each letter that needs no blank beside a name."""
    return text if text.isascii() else _unspaced_pattern().sub(_MARK, text)


def is_data_or_document(name: str) -> bool:
    """Return whether a file may be copied to where the user's programs find it: data, a picture or a document.

    Args:
        name: Plain. A dotfile, a protected name and a workbook of a kind that may hold macros are none.
    """
    return _is_named_file(name) and not name.lower().endswith(MACROS)


def _is_named_file(name: str) -> bool:
    return split_suffix(name.lower())[1] in _SUFFIXES and not name.startswith(".") and not is_protected(name)


def split_suffix(name: str) -> tuple[str, str, str]:
    """Split a name into its stem, its suffix, and the suffix of a packed file.

    Example:
        >>> split_suffix("a.csv.gz"), split_suffix("b.png")
        (('a', '.csv', '.gz'), ('b', '.png', ''))
    """
    stem, suffix = os.path.splitext(name)
    if suffix.lower() not in PACKED:
        return stem, suffix, ""
    return (*os.path.splitext(stem), suffix)


def file_names(text: str, exists: Callable[[str], bool] = lambda name: False) -> list[str]:
    r"""Return the names of data, pictures and documents that a text holds, in order, each once; paths as they stand.

    A name with blanks is found in quotes. Addresses with a scheme are left out. In a script without blanks, where a
    name may begin at any character, it is the longest one that exists; else it begins with Latin letters or a blank.

    Args:
        text: Of any length.
        exists: Whether there is a file of a name.

    Example:
        >>> file_names("Join a.csv with 'my data/b c.xlsx', see https://x.org/d.csv and save it as out.csv.")
        ['a.csv', 'my data/b c.xlsx', 'out.csv']
        >>> file_names("请问销售.csv和klein.csv里有几行？", {"销售.csv"}.__contains__)
        ['销售.csv', 'klein.csv']
    """
    marked = _mark_unspaced(text)
    spans = [
        (match.start(group), text[slice(*match.span(group))])
        for match in _QUOTED.finditer(marked)
        for group in [match.lastgroup or 0]
    ]
    quoted = {place for position, name in spans for place in range(position, position + len(name))}
    for run in _RUN.finditer(marked):
        if run.start() in quoted or run[0].startswith("//") or text.endswith("://", 0, run.start()):
            continue
        blank = text[max(0, run.start() - 1) : run.start()].isspace()
        for first, end in _ends_of_names(run[0]):
            name = text[run.start() + first : run.start() + end].lstrip("@").removeprefix("./")
            if found := _file_name_part(name, exists, blank=blank and first == 0):
                spans.append((run.start() + first, found))
    names = dict.fromkeys(name for _, name in sorted(spans))
    return [name for name in names if _is_named_file(re.split(r"[/\\]", name)[-1])]


def _ends_of_names(run: str) -> list[tuple[int, int]]:
    """Return where what may be names begin and end in a marked text without blanks: at suffixes before a word."""
    found, start = list[tuple[int, int]](), 0
    ends = [suffix.end() for suffix in _SUFFIX.finditer(run, 1)]
    for index, end in enumerate(ends):
        if index + 1 == len(ends) or run.startswith(_MARK, end):
            found.append((start, end))
            start = end
    return found


def _file_name_part(name: str, exists: Callable[[str], bool], *, blank: bool) -> str:
    """Return the part of a text that is a file's name; empty if nobody can say where it begins.

    Args:
        name: Ends with a suffix; words of a script without blanks may stand before it.
        exists: As for `file_names`.
        blank: Whether a blank stands before it.
    """
    marked = _mark_unspaced(name[-_MAX_CHARS:])
    breaks = [number for number, before in enumerate(marked, 1) if before == _MARK]
    if not breaks:
        return name
    name = name[-_MAX_CHARS:]
    for position in (0, *breaks):
        if exists(name[position:]):
            return name[position:]
    if blank or marked[0] != _MARK:
        return name
    latin = name[breaks[-1] :]
    return latin if latin[0].isalpha() else ""


def is_mentioned(name: str, text: str) -> bool:
    """Return whether a file's plain name stands in a text as a word of its own.

    Args:
        name: Any name, not empty.
        text: Any length; the time is that of a plain search.

    Example:
        >>> is_mentioned("a.csv", "look at data/a.csv, please"), is_mentioned("a.csv", "look at data.csv")
        (True, False)
    """
    return name in text and bool(names_in_text([name], text))


def names_in_text(names: Iterable[str], text: str) -> set[str]:
    """Return which of many plain names stand in a text, each as a word of its own.

    Args:
        names: Any names, none of them empty.
        text: The time is that of one look at it for each length that names have, however many there are.

    Example:
        >>> names_in_text(["a.csv", "b.csv", "data.csv"], "look at data/a.csv, and data.csvs")
        {'a.csv'}
    """
    known, marked = set(names), _mark_unspaced(text)
    sizes = set(map(len, known))
    return {
        name
        for start in _WORD_START.finditer(marked)
        for size in sizes
        if (name := text[start.start() : start.start() + size]) in known
        and not _goes_on(marked, text, start.start() + size)
    }


def _goes_on(marked: str, text: str, end: int) -> bool:
    """Return whether what may be a name is only the beginning of a word."""
    after = marked[end : end + 1]
    return after.isalnum() or after == "_" or (after == "-" and not text[end + 1 : end + 4].isalpha())


def folders_named(name: str, text: str) -> list[str]:
    """Return the folders with which a text names a file, each with a slash; an empty one for a plain name, then first.

    Args:
        name: The file's plain name, with a suffix of data, pictures or documents; any other is never named.
        text: The user's words; case does not count.

    Example:
        >>> folders_named("a.png", "as out/a.png, and a.png"), folders_named("a.png", "see bara.png or /tmp/a.png")
        (['', 'out/'], [])
    """
    if not is_data_or_document(name):
        return []
    marked, ends = _mark_unspaced(text), f"{re.escape(_mark_unspaced(name))}{_AFTER}"
    plain = rf"{_BEFORE}(?:\./)?()"
    below = rf"(?<![\w./\\:@~-])(?:\./)?((?:[\w{_MARK}-][\w.{_MARK}-]{{0,254}}/)+)"
    return [
        text[slice(*match.span(1))]
        for pattern, most in ((plain, 1), (below, None))
        for match in itertools.islice(_of_name(name, text, re.finditer(pattern + ends, marked, re.IGNORECASE)), most)
    ]


def _of_name(name: str, text: str, matches: Iterable[re.Match[str]]) -> Iterator[re.Match[str]]:
    """Yield those of matches in a marked text that end with a name in the text."""
    return (match for match in matches if text[match.end() - len(name) : match.end()].casefold() == name.casefold())
