"""Files that travel between a session's folder and an agent: named in words, linked in answers."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from tw_autogen.bounded_json import ValueBudget
from tw_autogen.conversation import names_in_text
from tw_autogen.errors import ConfigError
from tw_autogen.kernel import Artifact
from tw_autogen.named_folders import distrusted_now, named_folder
from tw_autogen.safe_folder import SafeFolder
from tw_autogen.text_escaping import visible_line
from tw_autogen.text_truncation import without_middle

_HEAD_ROWS, _SHOWN_CHARS = 5, 2000
_MAX_ENTRIES, _MAX_CHARS = 100_000, 50_000
_MAX_BYTES = 1 << 30
_PIECE_BYTES = 1 << 20
_CLOCKS_NS = 2_000_000_000
"""How far the times of files may lag behind the clock: some file systems count in steps of two seconds."""
_MAX_CSV_CHARS, _MAX_VALUES = 256 << 20, 5_000_000
_MAX_LINK_CHARS = 4096
"""A longer link is no path that a system would open; to resolve one takes quadratic time."""
_PLACE = r"[^()\s<>]+(?:\([^()\s<>]*\)[^()\s<>]*){0,3}"  # brackets in pairs, as in `data(1).csv`
_LINK = re.compile(rf"""\]\((?:<([^<>\n]+)>|({_PLACE}))(?:[ \t]{{1,9}}(?:"[^"\n]*"|'[^'\n]*'))?\)""")
_ADDRESS = re.compile(r"[a-z][a-z\d+.-]+:", re.IGNORECASE)


def linked_files(text: str, folders: Sequence[Path]) -> Iterator[tuple[str, Path, str]]:
    """Yield what an answer links to in Markdown, each as (the link as it stands there, its folder, its name there).

    Whether there is such a file is not asked; a relative link may lie in each folder. Dotfiles are left out.

    Args:
        text: An agent's words; they may come from anywhere, so they open no other place.
        folders: Where files may lie; one that is reached over a link that code may have made, or over one out of a
            folder that nobody has trusted, holds none.
    """
    places: dict[str, Path] = {}
    for folder in folders:
        with contextlib.suppress(ConfigError):
            real = named_folder(folder, distrusted=distrusted_now())
            places |= {os.path.abspath(folder): real, str(real): real}
    for match in _LINK.finditer(text):
        link = match[1] or match[2]
        is_file = link.startswith("file://")
        if len(link) > _MAX_LINK_CHARS or (_ADDRESS.match(link) and not is_file):
            continue
        try:
            named = url2pathname(unquote(urlsplit(link).path)) if is_file else unquote(link)
        except ValueError:  # no address
            continue
        for place, folder in places.items():
            path = os.path.abspath(os.path.join(place, named))
            if path.startswith(os.path.join(place, "")):
                name = os.path.relpath(path, place)
                if f"{os.sep}." not in f"{os.sep}{name}":
                    yield link, folder, name
                if os.path.isabs(named):
                    break


def named_files(folder: Path, text: str) -> list[Path]:
    """Return the plain files of a folder whose names stand in a text.

    Args:
        folder: Only files directly in it.
        text: In whose first 50 000 characters the names are looked for.
    """
    try:
        with SafeFolder(folder) as opened:
            entries = itertools.islice(opened.walk(enter=lambda name: False), _MAX_ENTRIES)
            names = [entry.name for entry in entries if entry.is_file]
    except FileNotFoundError:
        return []
    named = names_in_text(names, text[:_MAX_CHARS])
    return [folder / one for one in names if one in named]


def table_words(table: Any) -> str:
    """Describe a DataFrame in a few lines: rows, columns with types, head; of many columns and long texts the ends."""
    columns = without_middle(", ".join(f"{column} ({kind})" for column, kind in table.dtypes.items()), _SHOWN_CHARS)
    names = [str(name) for name in table.index.names if name is not None]
    labels = f"index: {', '.join(names)}; " if names else ""
    head = without_middle(table_csv(table.head(_HEAD_ROWS)).strip(), _SHOWN_CHARS)
    return f"{len(table)} rows; {labels}columns: {columns}; its head:\n{head}"


def table_csv(table: Any) -> str:
    """Return a DataFrame as CSV, with its index where that is more than the numbers of the rows.

    Raises:
        ValueError: it has more than 256 million characters; a category takes little memory, whatever its rows write.
    """
    index, text = table.index, _LimitedText()
    text.refuse_more(
        sum(map(_longest_text_length, [index, *(table.iloc[:, index] for index in range(table.shape[1]))]))
    )
    table.to_csv(text, index=index.dtype.kind not in "iu" or index.name is not None)
    return text.getvalue()


def _longest_text_length(values: Any) -> int:
    """Return the length of the longest text in a column or index: a row is made whole before it is written."""
    if values.dtype.kind != "O":
        return 0
    categories = getattr(values.dtype, "categories", None)
    texts = values if categories is None else categories
    return max((len(text) for text in texts if isinstance(text, str | bytes)), default=0)


class _LimitedText(io.StringIO):
    def refuse_more(self, chars: int) -> None:
        if self.tell() + chars > _MAX_CSV_CHARS:
            raise ValueError(f"the table takes more than {_MAX_CSV_CHARS >> 20} MB as CSV; hand over a part")

    def write(self, text: str) -> int:
        self.refuse_more(len(text))
        return super().write(text)


def value_words(value: Any) -> str:
    """Return a text as it is, and any other value as JSON; what JSON has no form for, keys too, becomes text.

    Raises:
        TypeError: its arrays hold more than 5 million values, or its texts more than 256 million characters.
    """
    if isinstance(value, str):
        return value
    return json.dumps(_to_jsonable(value, ValueBudget(values=_MAX_VALUES, chars=_MAX_CSV_CHARS)), ensure_ascii=False)


def _to_jsonable(value: Any, budget: ValueBudget) -> Any:
    if isinstance(value, str):
        return budget.take_text(value)
    if isinstance(value, Mapping):
        known = (int, float, type(None))
        return {
            key if isinstance(key, known) else budget.take_text(str(key)): _to_jsonable(one, budget)
            for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [_to_jsonable(one, budget) for one in value]
    if getattr(getattr(value, "dtype", None), "kind", "none") in "biufOSU":  # all items of an array, not its ends
        budget.take_table(value)
        listed = value.tolist()
        return str(value) if isinstance(listed, type(value)) else _to_jsonable(listed, budget)  # as a longdouble
    return value if isinstance(value, int | float | None) else budget.take_text(str(value))


def save_text(folder: Path, name: str, text: str) -> Path:
    """Save what is too much for a message, and return its path.

    Args:
        folder: The session's.
        name: The file's; if it is taken, a number is added.
        text: All of it.
    """
    path, file = Artifact.open_new_file(folder, name, "file")
    with file:
        file.write(text.encode("utf-8", "replace"))
    return path


def bring_linked(
    answer: str, folders: Sequence[Path], folder: Path, *, made_since_ns: int = 0
) -> tuple[str, list[Path]]:
    """Copy the files that an answer links to into a session's folder, under their own names if these are free.

    Args:
        answer: An agent's words.
        folders: Where its files may lie.
        folder: The session's.
        made_since_ns: When the question was put, by `time.time_ns`, if the folders hold files of others too: what has
            not changed since then was not made for it, and is left out. 0: all files there are the conversation's own.

    Returns:
        The answer with links to the copies, and the copies. A file that exceeds what an answer may bring (1 GB, counted
        by length, since holes in a file take room in its copy) keeps its link, and a line at the end says so.

    Raises:
        OSError: the copy can't be written.
    """
    copies: dict[Path, Path] = {}
    links: dict[str, str] = {}
    left = _MAX_BYTES
    too_large: dict[Path, str] = {}
    for link, place, name in linked_files(answer, folders):
        path = place / name
        if link in links:
            continue
        if path not in copies and path not in too_large:
            try:
                with SafeFolder(place) as here:
                    given = here.open_file(PurePath(name).as_posix())
            except (OSError, ValueError):  # no such file, a link, or no name of a file
                continue
            with given as opened:
                about = os.fstat(opened.fileno())
                size = about.st_size
                if max(about.st_mtime_ns, about.st_ctime_ns) < made_since_ns - _CLOCKS_NS:
                    continue
                if size > left:
                    shown = visible_line(path.name)
                    too_large[path] = f"({shown} is not copied: the files of an answer may have {_MAX_BYTES >> 20} MB)"
                    continue
                copies[path], target = Artifact.open_new_file(folder, path.name, "file")
                left -= size
                with target:
                    while data := opened.read(min(size, _PIECE_BYTES)):  # not what code writes meanwhile
                        size -= target.write(data)
        if path in copies:
            links[link] = copies[path].as_uri()
    answer = _LINK.sub(lambda match: f"]({made})" if (made := links.get(match[1] or match[2])) else match[0], answer)
    return "\n".join([answer, *too_large.values()]), list(copies.values())
