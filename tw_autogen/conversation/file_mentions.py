"""Names of files that stand in a text: data, pictures and documents."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from tw_autogen.safe_folder import is_protected

_SUFFIXES = frozenset({
    ".arrow", ".avro", ".csv", ".db", ".feather", ".geojson", ".json", ".jsonl", ".ndjson", ".npy", ".npz", ".ods",
    ".orc", ".parquet", ".sqlite", ".sqlite3", ".tsv", ".xlsx", ".zip",
    ".bmp", ".gif", ".jpeg", ".jpg", ".pdf", ".png", ".svg", ".tif", ".tiff", ".webp",
    ".docx", ".html", ".md", ".odt", ".pptx", ".rst", ".tex", ".txt",
})  # fmt: skip
_MOST_CHARS = 200
_PACKED = (".bz2", ".gz", ".xz", ".zst")
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""Letters that stand beside a name without a blank: Thai, Lao, Burmese, Khmer, kana, Han, and Hangul's particles."""
_LETTER = rf"[^\W{_UNSPACED}]"
_BEFORE = rf"(?<!{_LETTER})(?<![.\\/-])"
_AFTER = rf"(?!{_LETTER}|[\\/]|-(?![^\W\d_]{{3}})|\.\w)"
"""What stands at the ends of a name, as lookarounds: `a.csv-Datei` and `读取a.csv的` name `a.csv`."""
_QUOTED = re.compile(
    rf"""(?<!{_LETTER})(?<!\.)(["'`])(?P<name>[^"'`\n]{{1,200}}\.\w{{1,10}})\1"""
    r"""|[„“”«»‚‘「『《](?P<set>[^"`\n„“”«»‚‘’「」『』《》]{1,200}\.\w{1,10})[“”«»‘’」』》]"""
)
_RUN = re.compile(r"""[^\s"'`<>|*?:;,()\[\]{}=，。？！：；、（）„“”«»‚‘’「」『』《》【】،؟]+""")
_SUFFIX = re.compile(rf"\.{_LETTER}{{2,10}}{_AFTER}")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")


def is_document(name: str) -> bool:
    """Return whether a plain name has a suffix of data, pictures or documents, and is no dotfile or protected name."""
    return split_suffix(name.lower())[1] in _SUFFIXES and not name.startswith(".") and not is_protected(name)


def split_suffix(name: str) -> tuple[str, str, str]:
    """Split a name into its stem, its suffix, and the suffix of a packed file.

    Example:
        >>> split_suffix("a.csv.gz"), split_suffix("b.png")
        (('a', '.csv', '.gz'), ('b', '.png', ''))
    """
    stem, suffix = os.path.splitext(name)
    if suffix.lower() not in _PACKED:
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
    spans = [(found.start(found.lastgroup or 0), found["name"] or found["set"]) for found in _QUOTED.finditer(text)]
    quoted = {place for at, name in spans for place in range(at, at + len(name))}
    for run in _RUN.finditer(text):
        if run.start() in quoted or run[0].startswith("//") or text.endswith("://", 0, run.start()):
            continue
        blank = not text[: run.start()][-1:].strip()
        for at, name in _names_of(run[0]):
            if found := _begun(
                name.lstrip("@").removeprefix("./"), exists, blank=blank and run.start() > 0 and at == 0
            ):
                spans.append((run.start() + at, found))
    names = dict.fromkeys(name for _, name in sorted(spans))
    return [name for name in names if is_document(re.split(r"[/\\]", name)[-1])]


def _names_of(run: str) -> list[tuple[int, str]]:
    """Return what may be names in a text without blanks, each with its place: up to the last suffix before a word."""
    found, start = list[tuple[int, str]](), 0
    ends = [suffix.end() for suffix in _SUFFIX.finditer(run, 1)]
    for at, end in enumerate(ends):
        if at + 1 == len(ends) or _IS_UNSPACED.match(run, end):
            found.append((start, run[start:end]))
            start = end
    return found


def _begun(name: str, exists: Callable[[str], bool], *, blank: bool) -> str:
    """Return the part of a text that is a file's name; empty if nobody can say where it begins.

    Args:
        name: Ends with a suffix; words of a script without blanks may stand before it.
        exists: As for `file_names`.
        blank: Whether a blank stands before it.
    """
    breaks = [at.end() for at in _IS_UNSPACED.finditer(name[-_MOST_CHARS:])]
    if not breaks:
        return name
    name = name[-_MOST_CHARS:]
    for at in (0, *breaks):
        if exists(name[at:]):
            return name[at:]
    if blank or not _IS_UNSPACED.match(name):
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
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        before, after = text[at - 1 : at], text[end : end + 1]
        hyphen = after == "-" and not text[end + 1 : end + 4].isalpha()
        if not (_is_word(before) or before in ("-", ".")) and not (_is_word(after) or hyphen):
            return True
        at = text.find(name, at + 1)
    return False


def folders_named(name: str, text: str) -> list[str]:
    """Return the folders with which a text names a file, each with a slash; an empty one for a plain name, then first.

    Args:
        name: The file's plain name, with a suffix of data, pictures or documents; any other is never named.
        text: The user's words; case does not count.

    Example:
        >>> folders_named("a.png", "as out/a.png, and a.png"), folders_named("a.png", "see bara.png or /tmp/a.png")
        (['', 'out/'], [])
    """
    if not is_document(name):
        return []
    plain = re.search(rf"{_BEFORE}(?:\./)?{re.escape(name)}{_AFTER}", text, re.IGNORECASE)
    below = rf"(?<![\w./\\:@~-])(?:\./)?((?:[\w-][\w.-]*/)+){re.escape(name)}{_AFTER}"
    return [""] * bool(plain) + [found[1] for found in re.finditer(below, text, re.IGNORECASE)]


def _is_word(character: str) -> bool:
    return (character.isalnum() and not _IS_UNSPACED.match(character)) or character == "_"
