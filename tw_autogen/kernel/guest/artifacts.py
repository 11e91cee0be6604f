"""Writes an artifact's file: its name made safe, its value turned into bytes, a line that says what is in it."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from .variable_summary import summary

_SUFFIXES = {
    "chart": ".png", "image": ".png", "df": ".csv", "txt": ".txt", "svg": ".svg", "html": ".html", "json": ".json",
}  # fmt: skip
_PREVIEW_CHARS = 100
_NAME_CHARS, _NAME_BYTES = 100, 200
"""Of a file's name: file systems take 255 bytes, and a number may be added."""
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\.|$)")


class TooMany(ValueError):
    """An execution has made as many files as it may."""


class TooLarge(ValueError):
    """A file would be larger than it may be."""

    @staticmethod
    def words(max_bytes: int) -> str:
        """Return what the limit is."""
        return f"more than {max_bytes >> 20} MB (kernel.max_artifact_mb)"


class BoundedFile:
    """A file that takes so many bytes and no more.

    Args:
        file: Takes them.
        max_bytes: How many.
    """

    def __init__(self, file: Any, max_bytes: int) -> None:
        self._file = file
        self._max_bytes = self._left = max_bytes

    def write(self, data: Any) -> int:
        """Write bytes or text.

        Raises:
            TooLarge: they would be too many.
        """
        size = data.nbytes if isinstance(data, memoryview) else len(data)
        self._left -= size
        if self._left < 0:
            raise TooLarge(TooLarge.words(self._max_bytes))
        self._file.write(data)
        return int(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def safe_name(file_name: str, kind: str) -> str:
    """Return a plain file name: no folders, no control or shell characters, not hidden, not too long for a file system.

    Args:
        file_name: As the plugin or the code wrote it, such as `../a b.csv`.
        kind: An `ArtifactType`; it gives the suffix to a name that has none.

    Example:
        >>> safe_name("../../etc/my chart?.png", "chart")
        'my_chart_.png'
        >>> safe_name("", "df")
        'df.csv'
    """
    last = re.split(r"[\\/]", str(file_name))[-1]
    stem, suffix = os.path.splitext(re.sub(r"[^\w.\-]+", "_", last).lstrip("._"))
    if not any(map(str.isalpha, suffix)):  # a dot and digits, as in `sales v1.2`
        stem, suffix = f"{stem}{suffix}".rstrip("."), ""
    if _RESERVED.match(stem):  # devices on Windows, whatever their suffix
        stem = f"{stem.split('.')[0]}_"
    suffix = suffix[:20]
    short = stem[: _NAME_CHARS - len(suffix)].encode()[: _NAME_BYTES - len(suffix.encode())].decode(errors="ignore")
    return f"{short or kind}{suffix or _SUFFIXES.get(kind, '')}"


class ArtifactFolder(Protocol):
    """Where a context's files go; names are those of files in it, without folders."""

    @property
    def path(self) -> Path:
        """The folder, absolute."""
        ...

    def exists(self, name: str) -> bool:
        """Return whether anything has this name, even a dangling link."""
        ...

    def create_new(self, name: str) -> BinaryIO:
        """Create a file where nothing exists, for writing."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        ...

    def size(self, name: str) -> int | None:
        """Return the size of a file in bytes; None if it is missing, or no regular file."""
        ...

    def promise(self, name: str) -> Path:
        """Return the path at which a plugin may write a file itself."""
        ...

    def collect_promised(self, name: str, max_bytes: int) -> None:
        """Bring a file that a plugin has written itself to its place, if it is written and no larger.

        Args:
            name: The file's name, as the plugin got it promised.
            max_bytes: The largest size of one artifact, in bytes.
        """
        ...


class OwnFolder:
    """The folder of the process that code runs in: used by path, because code can do all that this process can.

    Args:
        path: The folder.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path).resolve()

    def exists(self, name: str) -> bool:
        """Return whether anything has this name, even a dangling link."""
        return os.path.lexists(self.path / name)

    def create_new(self, name: str) -> BinaryIO:
        """Create a file where nothing exists, for writing."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        return os.fdopen(os.open(self.path / name, flags, 0o644), "wb")

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        (self.path / name).unlink(missing_ok=True)

    def size(self, name: str) -> int | None:
        """Return the size of a file in bytes; None if it is missing, or no regular file."""
        path = self.path / name
        return path.stat().st_size if path.is_file() and not path.is_symlink() else None

    def promise(self, name: str) -> Path:
        """Return the path at which a plugin may write a file itself: its place."""
        return self.path / name

    def collect_promised(self, name: str, max_bytes: int) -> None:
        """Do nothing: the file was written to its place.

        Args:
            name: Not used.
            max_bytes: Not used: code could write a larger file here without a plugin.
        """


_MAX_IN_TURN = 100


class FileNames:
    """Names for the files of a folder, each used once: `chart.png`, `chart-2.png`, …; never a random one.

    Args:
        exists: Called with a name: is there anything of that name?
    """

    def __init__(self, exists: Callable[[str], bool]) -> None:
        self._exists = exists
        self._next: dict[str, int] = {}
        self._promised: set[str] = set()
        self._lock = threading.Lock()  # calls of one plugin may run side by side

    def free(self, file_name: str, kind: str) -> str:
        """Return a name that nothing in the folder has and that was not given before.

        Args:
            file_name: The name that is wanted.
            kind: The artifact's type, which says the suffix.
        """
        name = wanted = safe_name(file_name, kind)
        stem, suffix = os.path.splitext(wanted)
        with self._lock:
            number = first = self._next.get(wanted, 1)
            while name in self._promised or self._exists(name):
                number += 1 if number < first + _MAX_IN_TURN else number  # code may have taken a million names
                name = f"{stem}-{number}{suffix}"
            self._next[wanted] = number
            self._promised.add(name)
        return name


def write_value(folder: ArtifactFolder, name: str, kind: str, value: Any, *, max_bytes: int) -> None:
    """Write a new file; what stood there before, even a link, is never written to.

    Args:
        folder: Where it goes.
        name: A name that nothing there has yet.
        kind: An `ArtifactType`.
        value: text or bytes for all kinds; also a figure or a picture for `chart` and `image`, a DataFrame for `df`
            (the index is left out, as TaskWeaver does), any JSON value for `json` (NaN and infinities become null), a
            `Path` to copy for `file`.
        max_bytes: A longer file is removed again.

    Raises:
        TypeError: the value is of no type that this kind takes.
        TooLarge: it would be longer than that.
    """
    write = _writer(kind, value, os.path.splitext(name)[1].lstrip(".").lower())
    file = folder.create_new(name)
    try:
        with file:
            write(cast(BinaryIO, BoundedFile(file, max_bytes)))
    except BaseException:
        with contextlib.suppress(OSError):
            folder.remove(name)
        raise


def write_csv(frame: Any, file: BinaryIO, *, index: bool) -> None:
    """Write a DataFrame as CSV, piece by piece, so that one that is too large ends early.

    Args:
        frame: A DataFrame.
        file: Open for writing.
        index: Whether the index is written too.
    """
    frame.to_csv(_Text(file), index=index)


class _Text:
    """Takes text for a file of bytes; half a surrogate pair in it becomes a `?`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        self._file.write(text.encode("utf-8", "replace"))
        return len(text)


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON that every program reads: NaN and infinities, for which JSON has no numbers, are null.

    Args:
        value: Arrays become lists, numbers of numpy numbers; what JSON has no form for becomes a string, a key too.
        indent: As `json.dumps` has it.

    Example:
        >>> json_text({"mean": float("nan"), "rows": 3, (1, 2): 4})
        '{"mean": null, "rows": 3, "(1, 2)": 4}'
    """
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent, default=_json_default, allow_nan=False)
    except (TypeError, ValueError):
        finite = json.loads(json.dumps(_with_plain_keys(value), default=_json_default), parse_constant=lambda _: None)
        return json.dumps(finite, ensure_ascii=False, indent=indent)


def _json_default(value: Any) -> Any:
    """Return numbers and texts of numpy and pandas as Python's, and as text what else JSON has no form for."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    listed = value.tolist() if kind in tuple("biufOSU") else value
    return str(value) if isinstance(listed, type(value)) else listed


def _with_plain_keys(value: Any) -> Any:
    if isinstance(value, dict):
        plain = (str, int, float, type(None))
        return {key if isinstance(key, plain) else str(key): _with_plain_keys(one) for key, one in value.items()}
    return [_with_plain_keys(one) for one in value] if isinstance(value, (list, tuple)) else value


def preview(kind: str, value: Any) -> str:
    """Describe in a line what an artifact holds; empty where its name says enough.

    Args:
        kind: The artifact's type.
        value: What it holds.
    """
    if kind == "df":
        return ", ".join(filter(None, ("DataFrame", summary(value)))) if hasattr(value, "columns") else ""
    if kind in ("txt", "file", "json") and isinstance(value, str):
        return value[:_PREVIEW_CHARS] + ("…" if len(value) > _PREVIEW_CHARS else "")
    return ""


def _writer(kind: str, value: Any, form: str) -> Callable[[BinaryIO], object]:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return lambda file: file.write(value)
    if isinstance(value, str) and kind != "df":
        return lambda file: file.write(value.encode("utf-8", "replace"))
    if kind in ("chart", "image", "svg"):
        if callable(getattr(value, "savefig", None)):
            return lambda file: value.savefig(file, format=form or "png", bbox_inches="tight")
        if callable(getattr(value, "save", None)):  # a Pillow picture
            return lambda file: value.save(file, format={"jpg": "jpeg"}.get(form, form or "png"))
    if kind == "df" and callable(getattr(value, "to_csv", None)):
        return lambda file: write_csv(value, file, index=False)
    if kind == "json":
        text = json_text(value, indent=1)
        return lambda file: file.write(text.encode("utf-8", "replace"))
    if kind == "file" and isinstance(value, os.PathLike):
        return lambda file: _copy(value, file)
    raise TypeError(f"an artifact of kind {kind!r} can't be made from a {type(value).__name__}")


def _copy(source: os.PathLike[str], file: BinaryIO) -> None:
    with open(source, "rb", opener=lambda path, flags: os.open(path, flags | getattr(os, "O_NONBLOCK", 0))) as original:
        if not stat.S_ISREG(os.fstat(original.fileno()).st_mode):  # to open a FIFO, or to read a device, has no end
            raise OSError(errno.EINVAL, "no plain file", os.fspath(source))
        shutil.copyfileobj(original, file)
