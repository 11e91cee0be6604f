"""Lists of files: what a folder holds, with files of one pattern or layout as one line."""

from __future__ import annotations

import contextlib
import fnmatch
import itertools
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .file_size import size_words
from .plural import pluralize
from .search_terms import SearchTerms, read_search_terms, years_in

MAX_ENTRIES = 20_000
"""How many files are listed; beyond, their number is not known."""
_DIGITS = re.compile(r"\d+")
_MAX_LOOKED = 500
_LOOK_SHARE, _BUSY_SHARE = 0.25, 0.6
"""What part of the time for a list may be spent on looking into files, by the processor's clock and by the wall's."""
_MAX_FAMILIES = 1000
_MAX_SPANS, _ABOUT_CHARS, _DATED_CHARS = 50, 2000, 30
_TABLES = (".csv", ".tsv")
_DESCRIBED = frozenset({
    ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".geojson", ".parquet", ".pq", ".parq", ".feather", ".arrow",
    ".ipc", ".xlsx", ".xlsm", ".xls", ".xlsb", ".ods", ".dta", ".sas7bdat", ".xpt", ".db", ".sqlite", ".sqlite3",
    ".ldjson", ".sav", ".xml", ".tar", ".tgz", ".txt", ".md", ".rst", ".html", ".htm", ".zip", ".pdf", ".docx",
})  # fmt: skip
_FOLDED = 3
"""So many files of one pattern are one line."""


@dataclass(frozen=True)
class FileEntry:
    """A file of a folder.

    Args:
        name: Relative to the folder, with `/` between its parts.
        size: In bytes.
    """

    name: str
    size: int


@dataclass(frozen=True)
class Family:
    """Files of one folder that belong together: their names differ in digits only, or they have one layout.

    Args:
        entries: In the order of their names.
        terms: What is known of their content.
    """

    entries: tuple[FileEntry, ...]
    terms: tuple[SearchTerms, ...] = ()

    @property
    def first(self) -> FileEntry:
        """The file that stands for all."""
        return self.entries[0]

    @property
    def label(self) -> str:
        """Return the plain name, or first and last one with their number, and sizes."""
        sizes = [entry.size for entry in self.entries]
        names = [entry.name.rpartition("/")[2] for entry in self.entries]
        covered = f", {self.covered}" if self.covered else ""
        if len(names) == 1:
            return f"{names[0]!r} {_size(sizes[0])}{covered}"
        span = _size(sizes[0]) if len(set(map(_size, sizes))) == 1 else f"{_size(min(sizes))}–{_size(max(sizes))}"
        return f"{names[0]!r} … {names[-1]!r} ({len(names)} files, {span} each{covered})"

    @property
    def covered(self) -> str:
        """Return the days or years that the rows of the files are of, or the years in names that have gaps."""
        spans = [(term.first, term.last) for term in self.terms if term.first]
        if spans and len(spans) == len(self.entries) and len({len(number) for span in spans for number in span}) == 1:
            dated = f"{self.terms[0].dated[:_DATED_CHARS]!r} " if len({term.dated for term in self.terms}) == 1 else ""
            first, last = min(spans)[0], max(last for _, last in spans)
            return f"{dated if self.terms[0].dated else ''}{first}{f' … {last}' if last != first else ''}"
        years = sorted({year for entry in self.entries for year in years_in(entry.name.rpartition("/")[2])})
        if len(self.entries) == 1 or len(years) < 2 or years[-1] - years[0] + 1 == len(years):
            return ""
        return ", ".join(_year_ranges(years))

    @property
    def about(self) -> dict[str, Any]:
        """Return what a ranker goes by: `names`, `heads`, `values`, and `years` that are covered."""
        names = [re.sub(r"\d+", " ", os.path.splitext(entry.name.rpartition("/")[2])[0]) for entry in self.entries[1:]]
        spans = {(int(term.first[:4]), int(term.last[:4])) for term in self.terms if term.first}
        years = {year for entry in self.entries for year in years_in(entry.name)}
        return {
            "names": _distinct_words(names),
            "heads": _distinct_words([term.heads for term in self.terms]),
            "values": _distinct_words([term.values for term in self.terms]),
            "years": sorted([*spans, *((year, year) for year in years)])[:_MAX_SPANS],
        }


def _year_ranges(years: Sequence[int]) -> list[str]:
    """Return years in ascending order as `2001–2003`, `2010`."""
    runs: list[list[int]] = []
    for year in years:
        if runs and year == runs[-1][-1] + 1:
            runs[-1].append(year)
        else:
            runs.append([year])
    return [str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs]


def _distinct_words(texts: Sequence[str]) -> str:
    """Return the different words of texts, up to a limit."""
    return " ".join(dict.fromkeys(" ".join(texts).split()))[:_ABOUT_CHARS]


def _size(size: int) -> str:
    return size_words(size, brief=True)


def families(entries: Iterable[FileEntry], terms: Mapping[str, SearchTerms] | None = None) -> list[Family]:
    """Return files as families, in the order of their first names.

    Args:
        entries: The files.
        terms: What is known of files, by name; files of one folder and layout belong together too.
    """
    known_terms = terms or {}
    groups: dict[tuple[str, str], list[FileEntry]] = {}
    for entry in sorted(entries, key=lambda entry: _natural_sort_key(entry.name)):
        folder, _, plain = entry.name.rpartition("/")
        known = known_terms[entry.name].layout if entry.name in known_terms else ""
        suffix = os.path.splitext(plain)[1].lower()
        key = (folder, f"layout {suffix} {known}" if known else f"name {_DIGITS.sub('#', plain)}")
        groups.setdefault(key, []).append(entry)
    families_found = []
    for some in groups.values():
        for kin in [some] if len(some) >= _FOLDED else [[entry] for entry in some]:
            families_found.append(
                Family(tuple(kin), tuple(known_terms[entry.name] for entry in kin if entry.name in known_terms))
            )
    return sorted(
        families_found, key=lambda family: (family.first.name.count("/"), _natural_sort_key(family.first.name))
    )


def _natural_sort_key(name: str) -> list[tuple[int, int | str]]:
    """Return a key by which `a2` comes before `a10`."""
    return [
        (0, int(part)) if part.isdecimal() and len(part) < 50 else (1, part)
        for part in re.split(r"(\d+)", name)
        if part
    ]


def listing_lines(kin: Sequence[Family], left_out: int, *, max_lines: int, more: bool = False) -> list[str]:
    """Return a folder's files as lines, folder by folder.

    Args:
        kin: The families.
        left_out: How many hidden, ignored and secret-like ones are not in it.
        max_lines: How many lines at most; what doesn't fit is counted.
        more: There are more files than were listed.
    """
    files = [entry for family in kin for entry in family.entries]
    total = sum(file.size for file in files)
    head = f"{f'{len(files)} or more files' if more else pluralize(len(files), 'file')}, {_size(total)}"
    lines = [head + (f"; {left_out} hidden, ignored or secret-like left out" if left_out else "")]
    shown: dict[str, list[Family]] = {}
    for one in kin:
        shown.setdefault(one.first.name.rpartition("/")[0], []).append(one)
    share = _max_each([len(some) for some in shown.values()], max_lines - 1 - len(shown))
    for index, (folder, some) in enumerate(shown.items()):
        if len(lines) >= max_lines and index < len(shown) - 1:
            rest = list(shown.values())[index:]
            count = sum(len(family.entries) for group in rest for family in group)
            lines.append(f"… {count} more files in {len(rest)} folders")
            break
        indent = ""
        if folder:
            lines.append(f"{folder}/" if folder.isprintable() else repr(f"{folder}/"))
            indent = "  "
        kept = some if len(some) <= share else some[: share - 1]
        lines += [f"{indent}{family.label}" for family in kept]
        if len(kept) < len(some):
            count = sum(len(family.entries) for family in some[len(kept) :])
            lines.append(f"{indent}… {count} more files here")
    return lines


def _max_each(counts: Sequence[int], room: int) -> int:
    """Return how many of each group fit, where small groups leave their room to large ones."""
    most = 2
    while most < max(counts, default=0) and sum(min(count, most + 1) for count in counts) <= room:
        most += 1
    return most


def listing(folder: str, *, layouts: bool, max_lines: int, seconds: float = 60.0) -> dict[str, Any]:
    """List a folder.

    Args:
        folder: Its path.
        layouts: Read the beginnings of files, to find those of one layout, and what they hold.
        max_lines: How many lines at most.
        seconds: How long it may take.

    Returns:
        `lines`, and `files`: of each family that can be described its first name, the number of its files, and what it
        is found by. A name that is no UTF-8 could not be sent, and stands in the lines only.
    """
    began, worked = time.monotonic(), time.process_time()
    entries, left_out, more = list_files(folder)
    listed, terms = families(entries), dict[str, SearchTerms]()
    if layouts:
        looked = [entry for entry in entries if entry.name.lower().endswith(_TABLES)]
        looked = looked if len(looked) <= _MAX_LOOKED else []
        others = [family.first for family in listed if is_described(family.first.name) and family.first not in looked]
        for one in [*looked, *others[: _MAX_LOOKED - len(looked)]]:
            if time.process_time() - worked > _LOOK_SHARE * seconds or time.monotonic() - began > _BUSY_SHARE * seconds:
                break
            terms[one.name] = read_search_terms(os.path.join(folder, one.name))
        listed = families(entries, terms)
    told = [family for family in listed if is_described(family.first.name) and _is_unicode(family.first.name)]
    return {
        "lines": listing_lines(listed, left_out, max_lines=max_lines, more=more),
        "files": [[family.first.name, len(family.entries), family.about] for family in told[:_MAX_FAMILIES]],
    }


def is_described(name: str) -> bool:
    """Return whether a file's suffix is one of data or of documents."""
    return os.path.splitext(name.lower().removesuffix(".gz").removesuffix(".bz2").removesuffix(".xz"))[1] in _DESCRIBED


def _is_unicode(name: str) -> bool:
    return name.encode("utf-8", "ignore").decode("utf-8") == name


def list_files(folder: str) -> tuple[list[FileEntry], int, bool]:
    """Return the files below a folder that are neither hidden nor ignored nor secret-like.

    Args:
        folder: Its path; links in it are not followed.

    Returns:
        The files; how many files and folders are left out; whether there are more than are listed.
    """
    entries_found: list[FileEntry] = []
    left_out, ignored = 0, Ignored()
    waiting = [""]
    while waiting:
        prefix = waiting.pop(0)
        try:
            with os.scandir(os.path.join(folder, prefix)) as scanned:
                entries = sorted(itertools.islice(scanned, MAX_ENTRIES), key=lambda entry: entry.name)
        except OSError:
            left_out += 1
            continue
        if any(entry.name == ".gitignore" and entry.is_file(follow_symlinks=False) for entry in entries):
            name = os.path.join(folder, prefix, ".gitignore")
            with contextlib.suppress(OSError), open(name, encoding="utf-8", errors="replace") as file:  # closed to code
                ignored.add(prefix, file.read(100_000))
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_private(entry.name) or entry.is_symlink() or ignored(f"{prefix}{entry.name}", is_folder=is_folder):
                left_out += 1
            elif is_folder:
                waiting.append(f"{prefix}{entry.name}/")
            elif entry.is_file(follow_symlinks=False):
                with contextlib.suppress(FileNotFoundError):  # gone meanwhile
                    entries_found.append(FileEntry(f"{prefix}{entry.name}", entry.stat(follow_symlinks=False).st_size))
        if len(entries_found) >= MAX_ENTRIES:
            return entries_found[:MAX_ENTRIES], left_out, True
    return entries_found, left_out, False


_PRIVATE = re.compile(
    r"\..*|id_(?:rsa|dsa|ecdsa|ed25519).*|__pycache__|node_modules|venv|wallet\.dat|kubeconfig.*|oai_config_list.*"
    r"|(?:.{0,250}[-_.])?(?:credentials?|secrets?|passwords?|passwd|private[-_]?keys?)(?:[-_.].{0,250})?"
    r"|(?:.{0,250}[-_.])?(?:tokens?|api[-_]?keys?)(?:\.[^.]{0,50}){0,3}|service[-_]account.{0,250}\.json"
    r"|(?:.{0,250}[-_.])?mcp(?:[-_]?servers?|[-_]config)?\.jsonc?|claude_desktop_config\.json|taskweaver_config\.json"
    r"|tw_autogen\.ya?ml",
    re.IGNORECASE | re.DOTALL,
)
_TABLES_AND_TEXTS = (
    *(".arrow", ".avro", ".csv", ".dta", ".feather", ".geojson", ".ipc", ".jsonl", ".ldjson", ".ndjson", ".npy"),
    *(".npz", ".ods", ".orc", ".parq", ".parquet", ".pq", ".sas7bdat", ".sav", ".tsv", ".xls", ".xlsb", ".xlsm"),
    *(".xlsx", ".xpt", ".docx", ".htm", ".html", ".md", ".odt", ".pdf", ".pptx", ".rst", ".tex", ".bmp", ".gif"),
    *(".jpeg", ".jpg", ".png", ".svg", ".tif", ".tiff", ".webp"),
)
_SECRET_TABLE = re.compile(
    r"(?:^|_)(?:passwords?|passwd|credentials?|secrets?|(?:private|secret|access|root|api)_?keys?)"
    r"(?:_?\d{1,4}|_backup|_old|_new|_copy|_export|_prod|_dev)?$",
    re.IGNORECASE,
)
_NEW_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PRIVATE_ENDS = (".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".gpg", ".ovpn", "~")


def is_private(name: str) -> bool:
    """Return whether a plain name is hidden, or that of secrets or of what programs keep for themselves.

    Example:
        >>> is_private(".env"), is_private("db_credentials.json"), is_private("server.pem"), is_private("api_token.txt")
        (True, True, True, True)
        >>> is_private("sales.csv"), is_private("tokens.csv"), is_private("passwords.csv")
        (False, False, True)

    Source: of tables and texts `tw_autogen.secret_masking.is_secret_file`, which a test compares.
    """
    low = name.lower().removesuffix(".gz")
    if low.endswith(_TABLES_AND_TEXTS) and not name.startswith("."):
        words = _NEW_WORD.sub("_", name[: low.rindex(".")])
        return _SECRET_TABLE.search(re.sub(r"[\W_]+", "_", words).strip("_")) is not None
    return _PRIVATE.fullmatch(name) is not None or name.lower().endswith(_PRIVATE_ENDS)


_ESCAPED = re.compile(r"\\(.)")


class Ignored:
    """What `.gitignore` files leave out: called with a path, returns whether it is ignored.

    Source: gitignore(5). Differs: the user's own and the repository's `info/exclude` are not read.
    """

    def __init__(self) -> None:
        self._rules: list[tuple[str, Callable[[str], bool], bool, bool]] = []

    def add(self, folder: str, text: str) -> None:
        """Take the rules of a file.

        Args:
            folder: Where it lies, relative, with a `/` at its end; empty: at the top.
            text: What stands in it.
        """
        for line in text.splitlines()[:2000]:
            rule = line.rstrip()
            if not rule or rule.startswith("#") or len(rule) > 500:
                continue
            again = rule.startswith("!")
            rule = rule.removeprefix("!").removeprefix("\\")
            folders_only = rule.endswith("/")
            self._rules.append((folder, _rule_matcher(rule.rstrip("/")), again, folders_only))

    def __call__(self, name: str, *, is_folder: bool = False) -> bool:
        """Return whether a path is ignored; the last rule that fits decides.

        Args:
            name: Relative to the top.
            is_folder: It is a folder.
        """
        for folder, fits, again, folders_only in reversed(self._rules):
            below = name.removeprefix(folder) if name.startswith(folder) else None
            if below and (is_folder or not folders_only) and fits(below):
                return not again
        return False


def _rule_matcher(rule: str) -> Callable[[str], bool]:
    parts = [_ESCAPED.sub(_unescape, part).replace("[^", "[!") for part in rule.lstrip("/").split("/")]
    if "/" not in rule:
        pattern = re.compile(fnmatch.translate(parts[0]))
        return lambda name: pattern.match(name.rpartition("/")[2]) is not None
    parts += ["*"] * (parts[-1] == "**")  # all that is in a folder, and not the folder
    patterns = [None if part == "**" else re.compile(fnmatch.translate(part)) for part in parts]
    return lambda name: _matches_path(patterns, name.split("/"))


def _unescape(sign: re.Match[str]) -> str:
    return f"[{sign[1]}]" if sign[1] in "*?[" else sign[1]


def _matches_path(patterns: Sequence[re.Pattern[str] | None], names: Sequence[str]) -> bool:
    """Return whether the parts of a path match, each its pattern; None stands for any number of folders."""
    reached = {0}
    for pattern in patterns:
        if pattern is None:
            reached = set(range(min(reached, default=len(names)), len(names)))
        else:
            reached = {index + 1 for index in reached if index < len(names) and pattern.match(names[index])}
    return len(names) in reached
