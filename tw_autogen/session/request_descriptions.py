"""What a prompt says of the files and variables of a request, and of the folder that the user works in."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tw_autogen import kernel as kernel_face  # `Describer` is imported once a description is cut
from tw_autogen.errors import TwAutogenError
from tw_autogen.kernel import FileDescriber, size_words
from tw_autogen.model import LexicalRanker
from tw_autogen.safe_folder import SafeFolder
from tw_autogen.secret_masking import mask_named
from tw_autogen.session.file_ranking import FileTerms, rank_files
from tw_autogen.session.kernel_answers import JOINS_CHARS, lines_of, list_of, read_description, read_listing
from tw_autogen.session.settings import SessionSettings
from tw_autogen.session.variable_descriptions import profile_value
from tw_autogen.text_truncation import shortened

_SECONDS = 20.0
"""How long the description of one file of a request may take."""
_FOLDER_SECONDS, _FILE_SECONDS = 2.0, 1.5
"""How long the user's folder may take to be listed and described, and one file of it."""
_FOLDED = 3
"""From so many files of one layout on one is described for all, where all do not fit."""
_TREE_LINES = 40
_TREE_SHARE = 0.4
_MAX_CANDIDATES = 30
_TEXT_CHARS = 400
_FIRST, _MIN_SHARE, _CUT_CHARS = 2, 0.6, 800
"""Of so many most relevant files of a folder the whole description is shown, cut to this share of the room if it is
long and there is room of so many characters; of others one line."""
_RELATED, _MIN_RELATED = 0.3, 6
"""What part of the best file's score, or which place, others have for which room is left."""
_BRIEF_SHARE, _BRIEF_CHARS, _BRIEF_COLUMN_CHARS, _BRIEF_TABLE_CHARS = 0.5, 300, 60, 120
"""What part of the room is for descriptions in a line, where not all whole ones fit; how long columns and call, one
column and one table may be in it."""
_JOIN_CHARS = 300
"""What is kept for lines about columns that join files."""
_HEAD = "What files there hold, by the path that code opens them by (print(describe(path)) shows it of any other):"
_FITS = 0.5
"""What part of the best file's score another one has that fits a later request; and more than those told before."""
_MORE = "print(describe({!r})) shows more"
_AFTER_HEAD = re.compile(r"(?<=['\"]): ")
_ROWS_OF_ONE = re.compile(r"(to be read with [^\n]{0,400}?), nrows=\d{1,9}([^\n]{0,400})")
_ROWS_OF_EACH = r"\1\2; each has its own number of rows, above the first empty line; what stands below it is no row"
_EMPTY_ROWS = re.compile(r"\d+ empty rows?")
_TABLE = re.compile(r"(?:table|view|sheet) (?:\d|['\"])")


@dataclass(frozen=True)
class Told:
    """What requests were told of files.

    Args:
        files: Descriptions of files that requests brought, by the name that code opens them by; empty: the file was
            only named or counted.
        folder: Descriptions of files of the user's folder by their names there, as far as they were shown.
        tree: The list of that folder's files.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    folder: Mapping[str, str] = field(default_factory=dict)
    tree: str = ""


class RequestDescriptions:
    """Says what files hold, once for each content; the kernel reads them, no model is asked.

    Args:
        settings: `profile_chars`, `profile_folder` and `user_folder`.
        folder: The session's.
        kernel: Returns what describes files, if there is a kernel that can.
        on_problem: Called with a line for each file that can't be read as what its name says.
        before: What earlier requests were told, in a process before: it is not told again.
    """

    def __init__(
        self,
        settings: SessionSettings,
        folder: Path,
        kernel: Callable[[], FileDescriber | None],
        on_problem: Callable[[str], None],
        before: str = "",
    ) -> None:
        self._settings = settings
        self._folder = folder
        self._kernel = kernel
        self._on_problem = on_problem
        self._before = self._files_before = before
        self.told = Told()
        self._ranker = LexicalRanker()

    def forget_files(self) -> None:
        """Describe files anew when a request brings them again: the model's prompt has lost what was said of them."""
        self.told, self._files_before = replace(self.told, files=dict.fromkeys(self.told.files, "")), ""

    def of_request(
        self, text: str, files: Sequence[Path], variables: Mapping[str, Any], held: Sequence[str] = ()
    ) -> str:
        """Describe what a request brings.

        Args:
            text: The request, which says what is relevant.
            files: As code reads them: in the session's folder, or at their own place.
            variables: By name.
            held: Lines about variables that the user has made in the kernel, oldest first; where they take more than
                `profile_chars`, the newest are kept.

        Returns:
            Lines to put after the user's words; what they say of files takes `profile_chars` characters. Where it would
            take more, files of one layout are described by one of them, and what still does not fit is counted. Empty
            if the request brings nothing.
        """
        names = [path.name if path.parent == self._folder else str(path) for path in files]
        described, joins = self._describe_files([(name, name) for name in names], each=_SECONDS)
        for description in described:
            if description["problem"]:
                self._on_problem(f"{_printable_name(Path(description['name']).name)}: {description['problem']}")
        texts = {one["name"]: _description_text(one) for one in described}
        whole, stands_for = dict(texts), dict[str, str]()
        for name, description in whole.items():
            if self.told.files.get(name) == description or _list_item(description) in self._files_before:
                texts[name] = f"{description.splitlines()[0][:_TEXT_CHARS]} (described in an earlier request)"
        earlier = [name for name in self.told.files if name not in texts]
        if sum(map(len, texts.values())) > self._settings.profile_chars:
            texts, joins, stands_for = _fold_layouts(described, texts, joins)
        ranked = [index for index, _ in self._ranker.rank(text, list(texts.values()))]
        limit = self._settings.profile_chars
        kept = _first_lines(texts, ranked, limit)
        if left := len(texts) - len(kept):
            limit -= sum(_line_chars(name, "") for index, name in enumerate(texts) if index in kept)
            texts = {name: text for index, (name, text) in enumerate(texts.items()) if index in kept}
            ranked = [kept.index(index) for index in ranked if index in kept]
        briefs = {
            one["name"]: _columns_and_call(one, 1 + list(stands_for.values()).count(one["name"])) for one in described
        }
        shown = _fit_descriptions(texts, briefs, ranked, limit)
        full = {
            name for (name, text), said in zip(texts.items(), shown, strict=True) if "\n" in said or "\n" not in text
        }
        now = {name: text if stands_for.get(name, name) in full else "" for name, text in whole.items()}
        self.told = replace(self.told, files={**self.told.files, **now})
        parts = []
        outside = [text for name, text in zip(texts, shown, strict=True) if os.path.isabs(name)]
        for title, found in (
            ("Files in the working folder:", [text for text in shown if text not in outside]),
            ("Large files at their own place, to be opened by the whole path, read-only:", outside),
            ("Columns that join them:", joins if described else []),
            ("Variables in the kernel:", [profile_value(name, value) for name, value in variables.items()]),
            ("Variables that the User has in this kernel:", _newest_lines(held, self._settings.profile_chars)),
        ):  # fmt: skip
            if found:
                parts.append(title)
                parts += map(_list_item, found)
        if left:
            parts.append(f"{left} more files came with the request: print(describe(path)) shows one of them.")
        if earlier and texts:
            parts.append(f"Files of earlier requests: {', '.join(map(repr, earlier[-10:]))}.")
        return "\n".join(parts)

    def of_folder(self, text: str, folder: str, used_chars: int) -> str:
        """Describe the folder that the user works in, as the setting `profile_folder` says.

        Args:
            text: The request: what has to do with it comes first.
            folder: Its path.
            used_chars: How much of `profile_chars` is used up.

        Returns:
            Lines; empty if nothing is to be said, or nothing that an earlier request has not said.
        """
        mode, kernel = self._settings.profile_folder, self._kernel()
        if mode == "off" or not folder or kernel is None:
            return ""
        limit = max(1000, self._settings.profile_chars - used_chars)
        path = os.path.realpath(os.path.expanduser(folder))
        if not _holds_files(path):  # no kernel has to start to say so
            return ""
        content = mode == "content"
        began = time.monotonic()
        try:
            listing = kernel.list_files(path, layouts=content, max_lines=_TREE_LINES, seconds=_FOLDER_SECONDS)
            lines, files, problem = read_listing(listing)
        except (TwAutogenError, ValueError):  # it says so again, when code is to run there; or code made that up
            return ""
        if problem or len(lines) < 2:
            return f"Its files could not be listed: {problem}." if problem and lines else ""
        tree = "\n".join(lines)
        parts = []
        told = self.told.tree
        known = set(told.splitlines())
        new = [line for line in lines[1:] if line not in known]
        if f"\n{lines[0]}\n" in self._before and not told:  # so many files of such sizes: the same
            told = tree
        if tree != told:
            some = known and len(new) * 2 < len(lines)
            head = f"Its files, below {_printable_name(f'{path}/')}:"
            said = "\n".join(["Changed there:", lines[0], *new] if some else [head, tree])
            parts.append(_cut_at_line(said, int(limit * _TREE_SHARE) if content else limit))
        self.told = replace(self.told, tree=tree)
        seconds = max(_FILE_SECONDS, _FOLDER_SECONDS - (time.monotonic() - began))
        left = limit - sum(map(len, parts))
        if content and (said := self._describe_relevant(text, path, files, left, seconds=seconds)):
            parts.append(said)
        return "\n".join(parts)

    def _describe_relevant(
        self, text: str, folder: str, files: Sequence[FileTerms], limit: int, *, seconds: float
    ) -> str:
        """Describe the files of a folder that have to do with a request, and that no earlier one has described."""
        count = {file.name: file.count for file in files}
        scored = rank_files(text, files)
        told = self.told.folder or {name: "" for name in count if self._was_described(os.path.join(folder, name))}
        first = [files[index].name for index, _ in scored]
        if told:  # an earlier request was told what fits it: only what fits this one better
            best_told = max((score for index, score in scored if files[index].name in told), default=0.0)
            first = [files[index].name for index, score in scored if score > max(_FITS * scored[0][1], best_told)]
            wanted = [name for name in first[:_MAX_CANDIDATES] if name not in told]
        else:
            wanted = [*first, *(name for name in count if name not in first)][:_MAX_CANDIDATES]
        pairs = [(os.path.join(folder, name), name) for name in wanted]
        described, joins = self._describe_files(pairs, each=_FILE_SECONDS, together=seconds, listed=True)
        brought = {_without_name(name, description) for name, description in (*told.items(), *self.told.files.items())}
        texts = {
            description["name"]: _description_text(description)
            for description in described
            if not description.get("late")
        }
        texts = {
            name: text
            for name, text in texts.items()
            if _without_name(name, text) not in brought
            and f"\n{_list_item(os.path.basename(name) + _without_name(name, text))}" not in self._before
        }
        if not texts:
            return ""
        left = limit - len(_HEAD) - (_JOIN_CHARS if joins else 0)
        bodies = {name: _of_folder(os.path.join(folder, name), name, texts[name], count[name]) for name in texts}
        briefs = {
            description["name"]: _one_line_description(description, folder, count[description["name"]])
            for description in described
            if description["name"] in texts
        }
        near = [files[index].name for index, score in scored if score > _RELATED * scored[0][1]]
        related = {*near, *list(texts)[:_MIN_RELATED]}
        kept = _fitted_bodies(bodies, briefs, related, left)
        now = {name: texts[name] for name, body in kept.items() if body != briefs[name]}
        self.told = replace(self.told, folder={**told, **now})
        if not kept:
            return ""
        concerned = {line: sum(f"{name!r}[" in line for name in kept) for line in joins}
        about = sorted((line for line in joins if concerned[line]), key=lambda line: -concerned[line])[:5]
        return _cut_at_line("\n".join([_HEAD, *kept.values(), *about]), limit)

    def _was_described(self, path: str) -> bool:
        """Return whether a file of the user's folder was described in a process before, in more than one line."""
        position = self._before.find(f"- {path!r}: ")
        return position >= 0 and self._before.startswith("\n  ", self._before.find("\n", position))

    def _describe_files(
        self, files: Sequence[tuple[str, str]], *, each: float, together: float | None = None, listed: bool = False
    ) -> tuple[list[dict[str, Any]], list[str]]:
        """Return what the kernel says of files; without one, their sizes.

        Args:
            files: The path and the name of each.
            each: Seconds for one.
            together: Seconds for all.
            listed: A kernel has named them, whose code may name any: this process doesn't look for them.
        """
        if not files:
            return [], []
        kernel, why = self._kernel(), "not looked through: no kernel is there"
        if kernel is not None:
            try:
                found = kernel.describe_files(files, seconds=each, all_seconds=together)
                descriptions = zip(list_of(found, "files"), files, strict=True)
                return [read_description(file, name) for file, (_, name) in descriptions], lines_of(
                    found, "joins", JOINS_CHARS
                )
            except ValueError:
                why = "not looked through: the kernel's answer can't be read"
            except TwAutogenError as error:
                why = f"not looked through: {' '.join(str(error).split())[:_TEXT_CHARS]}"
        if listed:
            return [], []
        return [read_description({"size": self._size_in_words(name), "headline": why}, name) for _, name in files], []

    def _size_in_words(self, name: str) -> str:
        try:
            if not os.path.isabs(name):
                with SafeFolder(self._folder) as opened:
                    return size_words(opened.info(name).st_size)
            about = os.lstat(name)  # code may have put a link there
            return size_words(about.st_size) if stat.S_ISREG(about.st_mode) else "size not known"
        except (OSError, ValueError):
            return "size not known"


def _holds_files(folder: str) -> bool:
    """Return whether a folder has an entry that is not hidden."""
    try:
        return any(not name.startswith(".") for name in os.listdir(folder))
    except OSError:
        return False


def _description_text(described: Mapping[str, Any]) -> str:
    first = f"{_printable_name(described['name'])}: {described['size']}, {described['headline']}"
    return mask_named("\n".join([first, *(f"  {line}" for line in described["whole"] or described["lines"])]))


def _newest_lines(lines: Sequence[str], limit: int) -> list[str]:
    """Return the last lines that fit a limit, in characters, below one that counts the others."""
    kept = 0
    while kept < len(lines) and (limit := limit - len(lines[-1 - kept]) - len("- \n")) >= 0:
        kept += 1
    left_out = len(lines) - kept
    return [*([f"{left_out} older ones"] if left_out else []), *lines[left_out:]]


def _list_item(text: str) -> str:
    """Return a description as an item of a list."""
    return "- " + text.replace("\n", "\n  ")


def _without_name(name: str, text: str) -> str:
    """Return a description without the file's name: copies of a file have the same one."""
    return text.removeprefix(_printable_name(name)).replace(repr(name), "path")


def _printable_name(name: str) -> str:
    """Return a name, as a literal of Python if it has line ends, bytes that are no UTF-8, and the like."""
    return name if name.isprintable() else repr(name)


def _of_folder(path: str, name: str, text: str, count: int) -> str:
    """Return a description for a list of those of the user's folder, with the path that code opens the file by.

    Args:
        path: The whole one.
        name: Below the folder; the text begins with it.
        text: The description.
        count: How many files have this layout.
    """
    text = repr(path) + text.removeprefix(_printable_name(name)).replace(repr(name), repr(path))
    return _list_item(_of_layout(text, count))


def _of_layout(text: str, count: int, names: str = "") -> str:
    """Return the description of one of `count` files of a layout as that of all; `names` says which they are."""
    first, _, rest = text.partition("\n")
    if count > 1:
        rest = _ROWS_OF_ONE.sub(_ROWS_OF_EACH, rest)
        first += f"; {count} files of this layout{names}{', of this one:' if rest else ''}"
    return f"{first}\n{rest}".rstrip("\n")


def _fold_layouts(
    described: Sequence[Mapping[str, Any]], texts: Mapping[str, str], joins: Sequence[str]
) -> tuple[dict[str, str], list[str], dict[str, str]]:
    """Return descriptions in which one file stands for all of its layout, joins, and which stands for each left out.

    Args:
        described: What the kernel says of each file.
        texts: The descriptions by name, in the same order.
        joins: Lines about columns.
    """
    groups: dict[tuple[Any, ...], list[str]] = {}
    for description in described:
        groups.setdefault(_layout(description), []).append(description["name"])
    found, dropped = dict(texts), dict[str, str]()
    for (columns, *_), names in groups.items():
        if columns and len(names) >= _FOLDED:
            label = f" ({names[0]!r}, {names[1]!r} … {names[-1]!r})"
            found[names[0]] = _of_layout(found[names[0]], len(names), label)
            dropped.update(dict.fromkeys(names[1:], names[0]))
    for name in dropped:
        del found[name]
    return found, [line for line in joins if not any(f"{name!r}[" in line for name in dropped)], dropped


def _layout(described: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what files of one layout have in common: columns, their kinds, how and where they are read."""
    name = described["name"]
    kinds = []
    for head, line in _column_lines(described):
        kind = line.removeprefix(f"{head}: ").partition(",")[0]
        kinds.append((head, "number" if kind in ("int", "float") else kind))
    calls = [_ROWS_OF_ONE.sub(r"\1\2", line.replace(repr(name), "path")) for line in _reading_calls(described)]
    return tuple(described["columns"]), tuple(kinds), tuple(calls), os.path.splitext(name)[1], os.path.dirname(name)


def _column_lines(described: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the lines of columns that stand alone in a description, with the name that each begins with."""
    heads = {repr(column) for column in described["columns"]}
    found = []
    for line in described["lines"]:
        head = next(
            (line[: match.start()] for match in _AFTER_HEAD.finditer(line) if line[: match.start()] in heads), None
        )
        if head is not None:
            found.append((head, line))
    return found


def _reading_calls(described: Mapping[str, Any]) -> list[str]:
    return [line for line in described["lines"] if line.startswith("to be read")]


def _one_line_description(described: Mapping[str, Any], folder: str, count: int) -> str:
    """Return a description in a line.

    Args:
        described: What the kernel says of the file.
        folder: The user's.
        count: How many files have its layout.
    """
    first = f"- {os.path.join(folder, described['name'])!r}: {described['size']}, {described['headline']}"
    return f"{first}{f'; {count} files of this layout' * (count > 1)}{_columns_and_call(described, count)}"


def _columns_and_call(described: Mapping[str, Any], count: int) -> str:
    """Return columns with the first that is said of each, or several tables, and the call that reads the file.

    Args:
        described: What the kernel says of the file.
        count: How many files have its layout.

    Returns:
        What follows the headline; empty if the file has no table.
    """
    name = described["name"]
    lines = [kernel_face.Describer.line_begun(line, _BRIEF_COLUMN_CHARS) for _, line in _column_lines(described)]
    names = [repr(column) for column in described["columns"]]
    columns = next((text for text in map("; ".join, (lines, names)) if text and len(text) <= _BRIEF_CHARS), "")
    columns = columns or shortened(", ".join(names), _BRIEF_CHARS)
    if tables := [shortened(line, _BRIEF_TABLE_CHARS) for line in described["lines"] if _TABLE.match(line)]:
        return mask_named(shortened(f": {'; '.join(tables)}; columns {columns}", 2 * _BRIEF_CHARS))
    calls = [_ROWS_OF_ONE.sub(_ROWS_OF_EACH, call) if count > 1 else call for call in _reading_calls(described)]
    calls = [call.replace(repr(name), "…", 1) for call in calls if len(call) <= _BRIEF_CHARS + len(name)][:1]
    empty = [f"{match[0]} not counted" for line in described["lines"] if (match := _EMPTY_ROWS.match(line))]
    return mask_named("".join([f": {columns}" * bool(columns), *(f"; {detail}" for detail in [*empty, *calls])]))


def _fitted_bodies(
    bodies: Mapping[str, str], briefs: Mapping[str, str], related: Collection[str], limit: int
) -> dict[str, str]:
    """Return descriptions that fit a limit together, by name: of the most relevant files whole, of others in a line.

    Args:
        bodies: The whole ones by name, the most relevant first.
        briefs: Those in a line.
        related: Names of the files for which room is left.
        limit: In characters.
    """
    if sum(len(body) + 1 for body in bodies.values()) <= limit:
        return dict(bodies)
    order = list(bodies)
    room = limit - min(int(limit * _BRIEF_SHARE), sum(len(briefs[name]) + 1 for name in order[1:] if name in related))
    kept: dict[str, str] = {}
    for index, (name, body) in enumerate(bodies.items()):
        if index < _FIRST and room >= _CUT_CHARS:  # a long one leaves room for the next ones
            rest = sum(len(bodies[name]) + 1 for name in order[index + 1 : _FIRST] if name in related)
            body = "\n".join(
                kernel_face.Describer.fitted_lines(body.split("\n"), max(room - rest, int(room * _MIN_SHARE)))
            )
        if index >= _FIRST or len(body) > room:
            body = min(body, briefs[name], key=len)
        if len(body) <= limit:
            kept[name] = body
            limit -= len(body) + 1
            room -= len(body) + 1
    return kept


def _first_lines(texts: Mapping[str, str], ranked: Sequence[int], limit: int) -> list[int]:
    """Return positions of the files whose first lines fit a limit together, the most relevant one in any case.

    Args:
        texts: Descriptions by name.
        ranked: Positions, the most relevant first; those that are missing come after them.
        limit: In characters.
    """
    named, known, found = list(texts.items()), set(ranked), list[int]()
    for position in [*ranked, *(index for index in range(len(named)) if index not in known)]:
        limit -= _line_chars(*named[position])
        if found and limit < 0:
            break
        found.append(position)
    return sorted(found)


def _line_chars(name: str, text: str) -> int:
    """Return how long the first line of a description is in a list, with the call that shows more."""
    return min(_TEXT_CHARS, len(text.partition("\n")[0])) + len(_MORE.format(name)) + len("- ; \n")


def _fit_descriptions(
    texts: Mapping[str, str], briefs: Mapping[str, str], ranked: Sequence[int], limit: int
) -> list[str]:
    """Return descriptions that fit a limit together: whole ones, the most relevant first, and of the others a line.

    If that of the most relevant file is too long, it is cut to what those of the others leave, or to half.

    Args:
        texts: Descriptions by what code opens each file by; of each the first line goes in any case.
        briefs: By the same names, what their lines say more, as far as there is room.
        ranked: Positions, the most relevant first; those that are missing come after them.
        limit: How long all may be, in characters.
    """
    order = [*ranked, *(index for index in range(len(texts)) if index not in ranked)]
    parts, names = [text.partition("\n")[::2] for text in texts.values()], list(texts)
    mores = [_MORE.format(name) for name in names]
    least = [min(len(rest), len(briefs[names[index]] + mores[index])) for index, (_, rest) in enumerate(parts)]
    left = limit - sum(min(_TEXT_CHARS, len(first)) for first, _ in parts)
    scarce = sum(len(rest) for _, rest in parts) > left
    found, short = dict[int, str](), list[int]()
    for place, at in enumerate(order):
        first, rest = shortened(parts[at][0], _TEXT_CHARS), parts[at][1]
        others = sum(least[name] for name in (*order[place + 1 :], *short)) if place and scarce else 0
        if len(rest) > left and not place:
            others = sum(len(part) for number, (_, part) in enumerate(parts) if number != at)
            lines = kernel_face.Describer.fitted_lines(rest.split("\n"), max(left // 2, left - others) - len(mores[at]))
            rest = "\n".join([*(lines if lines[-1].strip() != "…" else lines[:-1]), f"… {mores[at]}"])
        elif rest and len(rest) > left - min(others, int(limit * _BRIEF_SHARE)):
            short.append(at)
            rest = ""
        left -= len(rest)
        found[at] = "\n".join(filter(None, [first, rest]))
    left -= sum(len(mores[index]) for index in short)
    for at in short:
        brief = briefs[names[at]] if len(briefs[names[at]]) <= left else ""
        left -= len(brief)
        found[at] = f"{found[at].removesuffix(':')}{brief}; {mores[at]}"
    return [found[index] for index in range(len(texts))]


def _cut_at_line(text: str, limit: int) -> str:
    """Return a text cut behind a whole line."""
    if len(text) <= limit:
        return text
    head, _, _ = text[: max(0, limit)].rpartition("\n")
    return f"{head or text[: max(0, limit)]}\n…"
