"""`DocumentIndex`: a folder of texts, cut into passages that know where they stand, and found by a question."""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import os
import re
import reprlib
import shlex
import stat
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, ClassVar

from tw_autogen import bounded_json
from tw_autogen.errors import ConfigError
from tw_autogen.model import Ranker
from tw_autogen.named_folders import named_folder
from tw_autogen.owner_marks import owner_hash
from tw_autogen.safe_folder import SafeFolder, open_or_make_folder
from tw_autogen.trust_store import over_no_link, read_regular

INDEX_FILE = "tw-index.json"
_FORMAT = 1
_TOO_MUCH = "with it the index would exceed 200 MB, where each passage counts 300 bytes on top; index fewer at once"
_HEADING = re.compile(r"#{1,6}\s+(\S.*)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_MAX_BYTES = 20_000_000
_MAX_TOGETHER, _PASSAGE_BYTES, _FILE_BYTES = 200_000_000, 300, 200
"""What the documents of one index take in its file together, and what a passage and a document count on top."""
_MAX_INDEX_BYTES, _MAX_HELD_BYTES = 500_000_000, 1 << 30


@dataclass(frozen=True)
class Passage:
    """Some lines of a document.

    Args:
        file: The document's path from the indexed folder, with `/`.
        first: Its first line, counted from 1.
        last: Its last line.
        text: The lines, as they stand there.
        heading: The heading that they stand under; empty if there is none.
    """

    file: str
    first: int
    last: int
    text: str
    heading: str = ""

    @property
    def where(self) -> str:
        """Return where it stands: `guide.md, lines 3-9`."""
        return f"{self.file}, lines {self.first}-{self.last}"


@dataclass(frozen=True)
class DocumentIndex:
    r"""A folder of texts, cut into passages.

    Args:
        folder: The folder that was indexed; absolute.
        files: A hash of each document, by its path from the folder.
        passages: In the order of files and lines.
        skipped: Documents that were left out, and why.
        is_compared: Documents are compared with the folder; not those of an index from elsewhere that names another
            folder than its own.

    Example:
        >>> import tempfile
        >>> from tw_autogen.model import LexicalRanker
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     written = Path(folder, "tea.md").write_text("# Green tea\nSteep it at 70 degrees.\n")
        ...     index = DocumentIndex.build(folder)
        >>> [one.where for one in index.search("How hot for green tea?", LexicalRanker())]
        ['tea.md, lines 1-2']
    """

    folder: Path
    files: Mapping[str, str]
    passages: tuple[Passage, ...]
    skipped: tuple[str, ...] = ()
    is_compared: bool = True
    GLOBS: ClassVar[tuple[str, ...]] = ("*.md", "*.txt", "*.rst")

    @classmethod
    def build(
        cls, folder: Path | str, *, globs: Sequence[str] = GLOBS, passage_chars: int = 1000, hidden: bool = False
    ) -> DocumentIndex:
        """Read a folder of texts, with the folders in it, but those of sessions; links are not followed.

        Documents of more than 20 MB, and those with which the index would exceed 200 MB, are skipped; each
        passage counts 300 bytes on top.

        Args:
            folder: Where they lie; as for `tw-autogen index`, links below the current folder are not followed.
            globs: Which files count, by name.
            passage_chars: How long a passage may be, at least 1; a paragraph is parted only if it is longer by itself,
                and a line between words.
            hidden: Files and folders whose names begin with a dot count too.

        Raises:
            ConfigError: there is no such folder, it is reached over a link, there is no such file in it, or
                `passage_chars` is less than 1.
        """
        if passage_chars < 1:
            raise ConfigError(f"passage_chars: expected at least 1, got {passage_chars}")
        named = Path(os.path.expanduser(folder))
        if not named.is_dir():
            raise ConfigError(f"{folder}: there is no such folder")
        files: dict[str, str] = {}
        passages: list[Passage] = []
        skipped: list[str] = []
        left = _MAX_TOGETHER
        with _open_folder(named) as opened:  # code may be able to write there, and to exchange folders for links
            reader = _TextReader(opened)
            every = opened.walk(enter=lambda name: hidden or name[0] != ".", but_sessions=True)
            found = [one.name for one in every if not one.is_folder]
            for name in sorted(found, key=lambda name: name.split("/")):
                last = name.rpartition("/")[2]
                if (
                    (last[0] == "." and not hidden)
                    or last == INDEX_FILE
                    or not any(fnmatch(last, glob) for glob in globs)
                ):
                    continue
                text = reader.read(name, max_bytes=left)
                if isinstance(text, Exception):
                    skipped.append(f"{name}: {text}")
                    continue
                cut, size = _cut_within(left, name, text, passage_chars)
                if size > left:
                    skipped.append(f"{name}: {_TOO_MUCH}")
                    continue
                left -= size
                files[name] = _hash(text)
                passages += cut
        if not passages:
            because = f" ({'; '.join(skipped)})" if skipped else ""
            raise ConfigError(f"{folder}: no text in files named {', '.join(globs)}{because}")
        return cls(opened.path, files, tuple(passages), tuple(skipped))

    @classmethod
    def read(cls, path: Path | str) -> DocumentIndex:
        """Read an index file, or the one in a folder, where it may be no link: nobody has named that.

        One that names a folder other than its own, and that this user has not written, leads to no file there.

        Raises:
            ConfigError: there is none, or it is none; says how one is made.
        """
        if not str(path):
            raise ConfigError("no document index is named; make one with `tw-autogen index DIR`, and name DIR")
        path = Path(os.path.expanduser(path))
        file = path / INDEX_FILE if path.is_dir() else path
        try:
            own = named_folder(file.parent)  # before it is read: code may exchange folders meanwhile
            with over_no_link():
                content = read_regular(own / file.name, limit_bytes=_MAX_INDEX_BYTES)
            if file != path and file.is_symlink():
                raise ConfigError(f"{file} is a link to {file.resolve()}; if you know it, name that file itself")
            plain = bounded_json.loads(content, max_bytes=_MAX_HELD_BYTES)
            if plain["format"] != _FORMAT:
                raise ValueError(f"format {plain['format']}, and this version reads {_FORMAT}")
            passages = tuple(map(_read_passage, plain["passages"]))
            said, files = str(plain["folder"]), dict(plain["files"])
            folder = Path(os.path.normpath(own / said))
            folder = own if folder == own else folder.resolve()
            known = folder == own or _is_vouched(str(plain.get("made_here", "")), said, files)
            return cls(folder, files, passages, is_compared=known)
        except FileNotFoundError:
            at = path if path.is_dir() else path.parent
            raise ConfigError(
                f"{file}: there is no index; make one with: tw-autogen index {shlex.quote(str(at))}"
            ) from None
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            raise ConfigError(
                f"{file}: no index of documents ({type(error).__name__}: {error}); make it anew with: "
                "tw-autogen index DIR"
            ) from error

    def write(self, path: Path | str | None = None) -> Path:
        """Write the index as JSON, a passage a line.

        Args:
            path: The file; None: `tw-index.json` in the indexed folder.

        Returns:
            The file.

        Raises:
            ConfigError: its folder is reached over a link, or can't be made.
        """
        file = Path(os.path.expanduser(path)) if path else self.folder / INDEX_FILE
        folder = "." if os.path.abspath(file.parent) == str(self.folder) else str(self.folder)
        head: dict[str, Any] = {"format": _FORMAT, "folder": folder, "files": dict(self.files)}
        if folder != ".":
            head["made_here"] = _owner_seal(folder, self.files)
        lines = ",\n".join(map(_passage_json, self.passages))
        start = json.dumps(head, ensure_ascii=False, indent=1).removesuffix("\n}")
        with _open_folder(file.parent) as opened:
            opened.write_file(file.name, f'{start},\n "passages": [\n{lines}\n]}}\n'.encode())
        return file

    def prepare(self, ranker: Ranker) -> None:
        """Prepare the ranker as far as it can be; embeddings are made and kept.

        Raises:
            ModelError: a server could not be asked.
        """
        ranker.prepare(self._passage_texts())

    def search(self, question: str, ranker: Ranker, *, top_k: int = 5, around_chars: int = 0) -> list[Passage]:
        """Find the passages that fit a question.

        Args:
            question: In words.
            ranker: What finds them.
            top_k: At most so many.
            around_chars: Each is grown by its neighbours up to so many characters; those that meet become one.

        Returns:
            Best first; empty if nothing fits.

        Raises:
            ModelError: a server could not be asked.
        """
        ranked = [index for index, _ in ranker.rank(question, self._passage_texts())[:top_k]]
        spans: list[tuple[int, int]] = []
        for position in ranked:
            if not any(first <= position <= last for first, last in spans):
                spans.append(self._span_around(position, around_chars, spans))
        return [self._join_passages(first, last) for first, last in spans]

    def changed(self) -> list[str]:
        """Name the documents that have changed or gone since the index was made; none of one that is not compared."""
        if not self.is_compared:
            return []
        changed, left = list[str](), _MAX_TOGETHER  # of what was indexed, no more was read
        try:
            with SafeFolder(self.folder) as opened:
                reader = _TextReader(opened)
                for name, known in self.files.items():
                    text = reader.read(name, max_bytes=left)
                    if isinstance(text, Exception) or _hash(text) != known:
                        changed.append(name)
                    left -= 0 if isinstance(text, Exception) else len(text)
        except OSError:
            return list(self.files)
        return changed

    def gone(self) -> list[str]:
        """Name the documents that are no longer there; none of one that is not compared."""
        if not self.is_compared:
            return []
        try:
            with SafeFolder(self.folder) as opened:
                return [name for name in self.files if not opened.has_file(name)]
        except OSError:
            return list(self.files)

    def _passage_texts(self) -> tuple[str, ...]:
        return tuple(f"{Path(passage.file).stem} {passage.heading}\n{passage.text}" for passage in self.passages)

    def _span_around(self, at: int, around_chars: int, taken: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """Return a passage with its neighbours of the same document: the one behind first, then the one before."""
        first = last = at
        chars = len(self.passages[at].text)
        grew = True
        while grew:
            grew = False
            for one in (last + 1, first - 1):
                if not 0 <= one < len(self.passages) or any(a <= one <= b for a, b in taken):
                    continue
                more = self.passages[one]
                apart = more.first - self.passages[last].last if one > last else self.passages[first].first - more.last
                longer = chars + max(0, apart) + len(more.text)
                if more.file == self.passages[at].file and longer <= around_chars:
                    first, last, chars, grew = min(first, one), max(last, one), longer, True
        return first, last

    def _join_passages(self, first: int, last: int) -> Passage:
        parts = self.passages[first : last + 1]
        text = parts[0].text
        for before, after in zip(parts, parts[1:], strict=False):
            text += "\n" * (after.first - before.last) + after.text  # parts of one line have its number
        return Passage(parts[0].file, parts[0].first, parts[-1].last, text, parts[0].heading)


def _open_folder(folder: Path) -> SafeFolder:
    """Open a folder, made if it is missing, that is reached over no link below the current one.

    Raises:
        ConfigError: names the link, or says why it can't be opened.
    """
    try:
        return open_or_make_folder(folder)
    except PermissionError as error:
        raise ConfigError(f"{folder}: {error.strerror or error}; name the folder itself") from error
    except OSError as error:
        raise ConfigError(f"{folder}: {error.strerror or error}") from error


class _TextReader:
    """Reads the texts of a folder. What is no text is read too, to find that out, but only so much of it.

    Args:
        opened: The folder.
    """

    def __init__(self, opened: SafeFolder) -> None:
        self._opened = opened
        self._left = _MAX_TOGETHER

    def read(self, name: str, *, max_bytes: int) -> str | Exception:
        """Return a text, or why it can't be read.

        Args:
            name: Of the file.
            max_bytes: How large it may be, where that is less than any document may be.
        """
        try:
            info = self._opened.info(name)
            if stat.S_ISLNK(info.st_mode):
                return ValueError("a link; links are not followed")
            if min(max_bytes, self._left) < info.st_size <= _MAX_BYTES:
                return ValueError(_TOO_MUCH)
            content = self._opened.read_file(name, limit_bytes=_MAX_BYTES)
            return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig").read()
        except UnicodeDecodeError:
            self._left -= len(content)
            return ValueError("not UTF-8; save it as UTF-8")
        except OSError as error:
            return ValueError(error.strerror or str(error))
        except ValueError as error:
            return error


def _read_passage(plain: Mapping[str, Any]) -> Passage:
    """Read a passage of an index file.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    first, last = plain["lines"]
    passage = Passage(plain["file"], first, last, plain["text"], plain.get("heading", ""))
    if not all(isinstance(one, int) for one in (first, last)):
        raise ValueError(f"lines {reprlib.repr(plain['lines'])}")
    if not all(isinstance(one, str) for one in (passage.file, passage.text, passage.heading)):
        raise ValueError(f"a passage of lines {first} to {last} without texts")
    return passage


def _owner_seal(folder: str, files: Mapping[str, str]) -> str:
    return owner_hash("index", json.dumps([folder, sorted(files.items())]))


def _is_vouched(mark: str, folder: str, files: Mapping[str, str]) -> bool:
    expected = _owner_seal(folder, files)
    return bool(expected) and hmac.compare_digest(mark.encode(), expected.encode())


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _cut_within(max_bytes: int, file: str, text: str, passage_chars: int) -> tuple[list[Passage], int]:
    """Cut a document into passages, until they take more than so many bytes; return them, and what they take."""
    passages, size = list[Passage](), _FILE_BYTES + 4 * len(file)
    for one in _cut_passages(file, text, passage_chars):
        size += _PASSAGE_BYTES + len(_passage_json(one).encode("utf-8", "surrogatepass"))
        if size > max_bytes:
            break
        passages.append(one)
    return passages, size


def _passage_json(passage: Passage) -> str:
    plain = {"file": passage.file, "lines": [passage.first, passage.last], "text": passage.text}
    return json.dumps({**plain, "heading": passage.heading} if passage.heading else plain, ensure_ascii=False)


def _cut_passages(file: str, text: str, passage_chars: int) -> Iterator[Passage]:
    """Gather paragraphs into passages; a heading begins a new one, unless nothing but headings stands before it."""
    heading, gathered = "", list[tuple[int, str]]()

    def done() -> Iterator[Passage]:
        while gathered and not gathered[-1][1].strip():
            gathered.pop()
        if gathered:
            yield Passage(file, gathered[0][0], gathered[-1][0], "\n".join(line for _, line in gathered), heading)
        gathered.clear()

    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    headings = dict(_headings(lines))
    for paragraph in _paragraphs(lines, headings, passage_chars):
        found = headings.get(paragraph[0][0])
        chars = sum(len(line) + 1 for _, line in (*gathered, *paragraph))
        bare = all(index in headings or not line.strip() for index, line in gathered)
        if gathered and (chars > passage_chars or (found and not bare)):
            yield from done()
        heading = found or heading
        gathered += paragraph
    yield from done()


def _headings(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield numbers and words of the headings; comments in a block of code are none."""
    fence = ""
    for number, line in enumerate(lines, 1):
        if fence:
            closes = line.strip().startswith(fence) and not line.strip().strip(fence[0])
            fence = "" if closes else fence
        elif match := _FENCE.match(line):
            fence = match[1]
        elif match := _HEADING.match(line):
            title = match[1].rstrip()
            plain = title.rstrip("#")  # a closing sequence stands apart, unlike that of "C#"
            yield number, plain.rstrip() if plain[-1:].isspace() else title


def _paragraphs(lines: Sequence[str], headings: Container[int], max_chars: int) -> Iterator[list[tuple[int, str]]]:
    """Yield paragraphs as numbered lines, with the blank ones behind them; a heading begins one, a long one is cut."""
    block: list[tuple[int, str]] = []
    chars = 0
    for number, whole in enumerate(lines, 1):
        for line in _pieces(whole, max_chars):
            begins = bool(line.strip()) and bool(block) and not block[-1][1].strip()
            if block and (begins or number in headings or chars + len(line) > max_chars):
                yield block
                block, chars = [], 0
            if line.strip() or block:
                block.append((number, line))
                chars += len(line) + 1
    if block:
        yield block


def _pieces(line: str, max_chars: int) -> Iterator[str]:
    """Cut a line behind a blank; within a word only if that is longer by itself."""
    begin = 0
    while len(line) - begin > max_chars:
        end = line.rfind(" ", begin, begin + max_chars) + 1 or begin + max_chars
        yield line[begin:end]
        begin = end
    yield line[begin:]
