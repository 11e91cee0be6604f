"""ManualReader: reads instructions from files and pins them on the board."""

import contextlib
import itertools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from errno import EFBIG
from pathlib import Path, PurePosixPath
from typing import Any
from unicodedata import normalize

from tw_autogen import Memory, Post, Role, SafeFolder, Turn

_LINES = re.compile(r"\blines?\s+(\d+)(?:\s*(?:-|–|to|until)\s*(\d+))?", re.IGNORECASE)
_OF_ANOTHER = re.compile(r"\s+(?:of|in)\s+\S{1,300}\.\w")
_LETTER = r"[^\W\u2e80-\uffff]"
"""A letter or digit of a script that has blanks between words: in Chinese, Japanese and Korean text names have none."""
_HEADING = re.compile(r"(#{1,6})\s+(\S.*)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_MAX_DIGITS = 18
_RULES = "=-~^*+#\"'`.:"
_WORD = re.compile(r"[^\s\"'`<>()\[\]{},;]+")
_WORD_ENDS = ".?!:"
_TEXTS = (".md", ".txt", ".rst", ".pdf", ".doc", ".docx", ".odt", ".html", ".htm")
_MAX_ASKED = 50_000
_MAX_NAMED = 1000
_LONGEST_WORD = 4096
"""What of a message is looked at: so many characters, and names of so many files, none of them longer."""
_MAX_FILES = 500
_MAX_ENTRIES = 20_000
_LONGEST_NAME = 1000
_MAX_BYTES = 20_000_000
"""What is read for one reply, and how many bytes a line counts on top."""
_LINE_BYTES = 50
_HEADING_CHARS = 100
"""How much of a heading is looked for in a message; each length that headings have takes one pass over the message."""
_SHOWN = 40
_PINNED_TIMES = 3


@dataclass(frozen=True)
class ManualReaderSettings:
    """What may be read.

    Args:
        folder: Where the manuals lie, with the folders in it; relative to the settings file that names it, else to
            where the program runs. Empty: the files of the session, which came with requests or were made by code.
        suffixes: Which files count as manuals.
        limit_chars: How much is read at once; of a longer file the headings are shown, and a part can be asked for.
    """

    folder: str = field(default="", metadata={"path": True})
    suffixes: tuple[str, ...] = (".md", ".txt", ".rst")
    limit_chars: int = 12_000


@dataclass(frozen=True)
class _Heading:
    """A heading: its line, counted from 1, its level (1 is the highest), and its words."""

    line: int
    level: int
    words: str


@dataclass(frozen=True)
class _Part:
    """Some lines of a manual; counted from 1, the last one included."""

    first: int
    last: int


class ManualReader(Role):
    """Reads instructions from files, and pins them on the board, so that no worker depends on a retelling.

    Args:
        settings: See `ManualReaderSettings`.

    Raises:
        ValueError: there is no such folder.

    Source: TaskWeaver's article on roles, whose example it is.
    """

    def __init__(self, settings: ManualReaderSettings) -> None:
        self._settings = settings
        self._folder = Path(os.path.abspath(Path(settings.folder).expanduser())) if settings.folder else None
        if self._folder is not None:
            try:
                SafeFolder.without_links(self._folder).close()
            except OSError as error:
                raise ValueError(f"folder: {self._folder} is no folder ({error.strerror})") from error

    def offer(self, request: str) -> str:
        """Name the manuals; those of the session are described to the Planner anyway."""
        names: dict[str, str] = {}
        if self._folder:
            with contextlib.suppress(PermissionError):  # the reply says so
                names = self._manuals(self._folder)
        return f"{self.name} can read: {_listed([*names])}" if names else ""

    def reply(self, memory: Memory, **kwargs: Any) -> Post:
        """Read what the newest post names."""
        asked, turn = memory.last_post, kwargs.get("turn")
        folder = self._folder or (turn.folder if turn is not None else None)
        try:
            names = self._manuals(folder) if folder else {}
        except PermissionError as error:
            return Post(self.name, asked.send_from, f"Nothing was read: {folder} can't be opened ({error.strerror}).")
        manuals, request = [*names], normalize("NFC", asked.message[:_MAX_ASKED])
        request, missing = _told_apart(request, manuals, folder, self._settings.suffixes)
        wanted = _named(request, manuals)
        if not wanted and not missing and len(manuals) == 1:
            wanted = manuals
        answer = self._read_all({name: names[name] for name in wanted}, folder, request, turn) if folder else []
        if missing:
            is_are = "is" if len(manuals) == 1 else "are"
            there = f"there {is_are}: {_listed(manuals)}" if manuals else "there is no manual here"
            start = "There" if answer else "Nothing was read: there"
            answer.append(f"{start} is no {', no '.join(missing)}; {there}")
        elif not answer:
            there = f"There are: {_listed(manuals)}" if manuals else "There is none here."
            answer.append(f"Nothing was read: name the file. {there}")
        if len(asked.message) > _MAX_ASKED:
            answer.append(f"Only the first {_MAX_ASKED:,} characters of the message were looked at for names.")
        return Post(self.name, asked.send_from, "\n\n".join(answer))

    def _manuals(self, folder: Path) -> dict[str, str]:
        """Return the manuals' names, composed as they are typed (macOS keeps `U` and its dots apart), and as they are.

        Nothing hidden, no links, and nothing of sessions that are kept below the folder.
        """
        names: dict[str, str] = {}
        with SafeFolder.without_links(folder) as opened:  # a link on the way to it has come since it was named
            every = opened.walk(enter=lambda name: not name.startswith("."), but_sessions=True)
            for entry in itertools.islice(every, _MAX_ENTRIES):
                if len(entry.name) > _LONGEST_NAME:
                    continue
                path = PurePosixPath(entry.name)
                if entry.is_file and path.suffix.lower() in self._settings.suffixes and not path.name.startswith("."):
                    names[normalize("NFC", entry.name)] = entry.name
                    if len(names) == _MAX_FILES:
                        break
        return {name: names[name] for name in sorted(names, key=lambda name: PurePosixPath(name).parts)}

    def _read_all(self, names: dict[str, str], folder: Path, request: str, turn: Turn | None) -> list[str]:
        """Read files until they are too large together, or the round is over."""
        texts, left = [], _MAX_BYTES
        for name, real in names.items():
            if turn is not None and (turn.cancelled.is_set() or not turn.seconds_left(1.0)):
                texts.append(f"{name} and what comes after it were not read: the time is over.")
                break
            try:
                with SafeFolder.without_links(folder) as opened:
                    text = opened.read_file(real, limit_bytes=left).decode("utf-8-sig")
                text = text.replace("\r\n", "\n").replace("\r", "\n")
            except UnicodeDecodeError:
                texts.append(f"{name} can't be read: not UTF-8; save it as UTF-8")
            except OSError as error:
                texts.append(f"{name} can't be read: {_too_large() if error.errno == EFBIG else error.strerror}")
            else:
                size = len(text) + _LINE_BYTES * text.count("\n")
                if size > left:
                    texts.append(f"{name} can't be read: {_too_large()}")
                    continue
                left -= size
                texts.append(self._read(name, text, request, turn))
        return texts

    def _read(self, name: str, text: str, request: str, turn: Turn | None) -> str:
        lines = text.removesuffix("\n").split("\n")
        headings = list(_headings(lines))
        for known in (name, PurePosixPath(name).name):  # what it is called asks for no part of it
            request = _as_word(known).sub("", request) if _is_in(known, request) else request
        parts = _wanted_parts(request, headings, len(lines))
        if not parts:
            return f"{name} has {len(lines)} lines; there are no such lines in it."
        shown = "\n\n".join("\n".join(lines[part.first - 1 : part.last]).strip("\n") for part in parts)
        whole = " (all of it)" if parts == [_Part(1, len(lines))] else f" of {len(lines)}"
        if len(shown) > self._settings.limit_chars:
            return _contents(name, headings, parts, shown, self._settings.limit_chars)
        where = f"{name}, lines {' and '.join(f'{part.first}-{part.last}' for part in parts)}{whole}"
        pinned = self._pin(where, shown, turn)
        return f"Read {where}{pinned}. It says:\n\n{shown}"

    def _pin(self, where: str, text: str, turn: Turn | None) -> str:
        """Pin a text up beside what was read before in this round."""
        if turn is None:
            return ""
        bulletin = f"Read from {where}, word for word:\n{text}"
        before = turn.round.read_board(self.name) or ""
        if bulletin in before:
            return ", which is pinned on the board already"
        both = f"{before}\n\n{bulletin}" if before else bulletin
        room = _PINNED_TIMES * self._settings.limit_chars
        turn.round.write_board(self.name, both if len(both) <= room else bulletin)
        instead = "" if len(both) <= room else " in place of what was pinned before"
        return f", and pinned it on the board{instead}, where all workers read it"


def _named(request: str, names: list[str]) -> list[str]:
    """Give the files that a request names: by path, file name or name without suffix."""
    for part in (lambda name: name, lambda name: Path(name).name, lambda name: Path(name).stem):
        found = [name for name in names if _is_in(part(name), request) and _as_word(part(name)).search(request)]
        if found:
            return found
    return []


def _is_in(name: str, request: str) -> bool:
    """Return whether a name may be in a request; it spares compiling a pattern for each name."""
    return name.casefold() in request.casefold()


def _as_word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!{_LETTER})(?<![./-]){re.escape(name)}(?!{_LETTER}|-)", re.IGNORECASE)


def _told_apart(
    request: str, names: list[str], folder: Path | None, suffixes: tuple[str, ...]
) -> tuple[str, list[str]]:
    """Tell the files that are there from those that aren't.

    Returns:
        The request, in which each file that is there goes by its name and no other stands; and the others.
    """
    rest = request
    for name in sorted({*names, *(Path(name).name for name in names)}, key=len, reverse=True):
        rest = _as_word(name).sub(" ", rest) if _is_in(name, rest) else rest
    known, found = set(names), dict[str, str]()
    for word in (part[0].rstrip(_WORD_ENDS) for part in _WORD.finditer(rest)):
        if word not in found and _is_file(word, suffixes):
            path = Path(os.path.normpath(folder / word)) if folder else None
            name = path.relative_to(folder).as_posix() if path and folder and path.is_relative_to(folder) else ""
            found[word] = name if name in known else ""
            if len(found) == _MAX_NAMED:
                break

    def by_name(part: re.Match[str]) -> str:
        word = part[0].rstrip(_WORD_ENDS)
        return (found[word] or " ") + part[0][len(word) :] if word in found else part[0]

    return _WORD.sub(by_name, request), [word for word, name in found.items() if not name]


def _is_file(word: str, suffixes: tuple[str, ...]) -> bool:
    """Say whether a word is a text's name, or a path; a table's name may stand in any request."""
    if len(word) > _LONGEST_WORD or "\0" in word:
        return False
    path = word.startswith(("/", "./", "../", "~/")) and any(map(str.isalnum, word))
    return "*" not in word and (path or Path(word).suffix.lower() in (*_TEXTS, *suffixes))


def _headings(lines: list[str]) -> Iterator[_Heading]:
    """Give the headings, in Markdown's or reStructuredText's way; in a block of code there are none."""
    rules: list[str] = []
    fence, underline = "", -1
    for index, line in enumerate(lines):
        if fence:
            closes = line.strip().startswith(fence) and not line.strip().strip(fence[0])
            fence = "" if closes else fence
        elif index != underline and (match := _FENCE.match(line)):
            fence = match[1]
        elif match := _HEADING.match(line):
            yield _Heading(index + 1, len(match[1]), match[2].rstrip().rstrip("#").rstrip() or match[2])
        elif line.strip() and not _is_rule(line) and index + 1 < len(lines):
            below = lines[index + 1].rstrip()
            if _is_rule(below) and len(below) >= len(line.strip()) and below != "```":
                underline = index + 1
                rules += [below[0]] if below[0] not in rules else []
                yield _Heading(index + 1, rules.index(below[0]) + 1, line.strip())


def _is_rule(line: str) -> bool:
    """Return whether a line underlines the one above it: one sign three times or more."""
    rule = line.rstrip()
    return len(rule) > 2 and rule[0] in _RULES and rule.count(rule[0]) == len(rule)


def _too_large() -> str:
    return f"larger than the {_MAX_BYTES // 1_000_000} MB that one reply reads; split it, or name fewer files"


def _wanted_parts(request: str, headings: list[_Heading], count: int) -> list[_Part]:
    """Give the lines that a request asks for, by number or by headings; all if it names none; none if not there."""
    asked = (match for match in _LINES.finditer(request) if not _OF_ANOTHER.match(request, match.end()))
    if found := next(asked, None):
        first, last = int(found[1][:_MAX_DIGITS]), int((found[2] or found[1])[:_MAX_DIGITS])
        return [_Part(max(1, first), min(last, count))] if 0 < first <= min(last, count) else []
    keys = [heading.words.casefold()[:_HEADING_CHARS] if len(heading.words) > 2 else "" for heading in headings]
    named = _named_in(request.casefold(), set(keys) - {""})
    parts = list[_Part]()
    for index, own in enumerate(headings):
        if keys[index] not in named:
            continue
        below = (
            later.line - 1
            for later in map(headings.__getitem__, range(index + 1, len(headings)))
            if later.level <= own.level
        )
        if parts and own.line <= parts[-1].last:
            parts.pop()  # what is named with a part of it: the manual's title, for instance
        parts.append(_Part(own.line, next(below, count)))
    apart = list[_Part]()
    for part in parts:
        first = apart.pop().first if apart and part.first == apart[-1].last + 1 else part.first
        apart.append(_Part(first, part.last))
    return apart or [_Part(1, count)]


def _named_in(text: str, keys: set[str]) -> set[str]:
    """Return the headings that stand in a request as whole words; one within another, longer one doesn't count."""
    inside = {match.start() for match in re.finditer(rf"(?<={_LETTER}){_LETTER}", text)}
    named = set[str]()
    for size in sorted(set(map(len, keys)), reverse=True):
        for index in range(len(text) - size + 1):
            part, cut = text[index : index + size], size < _HEADING_CHARS and index + size in inside
            if part in keys and index not in inside and not cut:
                named.add(part)
                text = f"{text[:index]}{' ' * size}{text[index + size :]}"
    return named


def _contents(name: str, headings: list[_Heading], parts: list[_Part], shown: str, limit: int) -> str:
    lines, chars, first = sum(part.last - part.first + 1 for part in parts), len(shown), parts[0].first
    message = f"{name} is too long to be read at once ({lines} lines, {chars} characters wanted, at most {limit})."
    if lines == 1:
        return f"{message} Let code read that line, or raise role.manual_reader.limit_chars."
    if not headings:
        last = first + max(1, lines * limit // (chars + 1)) - 1
        return f"{message} Ask for some of its lines: '{name}, lines {first}-{last}'."
    listed = "\n".join(f"line {heading.line}: {heading.words}" for heading in headings)
    return f"{message} Ask for a part by its heading, or by lines:\n{listed[: 2 * limit]}"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
