"""Reads rows of an SQLite file in a process of its own, with bounds on time, memory and what it may write.

The process runs this file by its path, so that it needs the standard library only; nothing else is on its path for
imports (`-I -S`).
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

_UNSAFE_FUNCTIONS = ("load_extension", "fts3_tokenizer", "icu_load_collation")
"""They load code, or take the address of it."""
_PORTION_ROWS = 100
_PORTION_BYTES = 1 << 20
_NAMES_CHARS = 1_000_000
_LONGEST_SECONDS = 1e6
_LIST_TABLES = (
    "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT GLOB 'sqlite_*' ORDER BY name"
)
_CONNECT_VIRTUAL_TABLES = (  # an engine that may only read cannot do so by itself: it declares a table
    "SELECT count(*) FROM sqlite_master AS m, pragma_table_info(m.name) WHERE m.sql LIKE 'create virtual %'"
)


class SqliteRows:
    """Rows that the process sends, read as they arrive.

    Args:
        lines: Its output.
    """

    def __init__(self, lines: IO[bytes]) -> None:
        self._lines = lines
        self._ended = False
        self.columns: list[str] = self._receive("columns")

    def fetch_batch(self, count: int) -> list[tuple[Any, ...]]:
        """Return the next rows, about 1 MB or 100 of them; none at the end.

        Args:
            count: How many are wanted; more may come.

        Raises:
            sqlite3.Error: the engine's own error.
            MemoryError: the process has ended: reading took too much memory, or broke the engine.
        """
        return [] if self._ended or count < 1 else [tuple(map(_decode_value, row)) for row in self._receive("rows")]

    def _receive(self, what: str) -> Any:
        line = self._lines.readline()
        if not line.endswith(b"\n"):
            raise MemoryError
        message = json.loads(line)
        if "error" in message:
            raise sqlite3.DatabaseError(message["error"])
        self._ended = not message[what]
        return message[what]


@contextmanager
def read_sqlite(
    path: Path,
    sql: str | None,
    *,
    name: str,
    max_rows: int,
    max_value_bytes: int,
    memory_bytes: int,
    seconds: float,
    private: bool = False,
) -> Iterator[SqliteRows]:
    """Run one SELECT on an SQLite file, in a process of its own that ends with the block.

    Args:
        path: The file, over no link, as `named_file` returns it; not changed.
        sql: The statement; None: list the tables and views instead, one row (table, column with type) for each column.
        name: What errors call a file that can't be opened.
        max_rows: How many rows at most.
        max_value_bytes: How large a row may be, and a text or bytes, also one that is only computed with (from Python
            3.11 on).
        memory_bytes: What the process may take (Linux); the engine may take half of it, on all systems.
        seconds: How long the process may run.
        private: The file is a copy that nothing else uses. Its write-ahead log is read without a file of shared memory,
            and the process can write to no file (but on Windows).

    Returns:
        The rows; `columns` is empty if the statement gives no rows.

    Raises:
        TimeoutError: it took longer.
        MemoryError: it took more memory, or broke the engine.
        sqlite3.Error: the engine's own error, as of what is not reading.
    """
    request = {
        "path": str(path.resolve()) if private else os.path.abspath(path), "sql": sql, "name": name,
        "max_rows": max_rows, "max_value_bytes": max_value_bytes,
        "memory_bytes": memory_bytes, "seconds": min(seconds, _LONGEST_SECONDS), "private": private,
    }  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", __file__],
        cwd=os.sep,  # what LD_LIBRARY_PATH names as the current folder must be none that code may write
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    asked, lines = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
    late = threading.Event()

    def stop() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(min(seconds, _LONGEST_SECONDS), stop)
    timer.daemon = True
    timer.start()
    try:
        with suppress(BrokenPipeError), asked:
            asked.write(json.dumps(request).encode())
        yield SqliteRows(lines)
    except MemoryError:
        if late.is_set():
            raise TimeoutError from None
        raise
    finally:
        timer.cancel()
        process.kill()
        lines.close()
        process.wait()


def _decode_value(one: Any) -> Any:
    """Return a value as SQLite has it: bytes come as a list with their Base64."""
    return base64.b64decode(one[0]) if isinstance(one, list) else one


def main() -> None:
    """Answer the request of standard input: lines of JSON with the columns, then portions of rows, the last empty."""
    request = json.load(sys.stdin)
    _bound_resources(request)
    try:
        for message in _answer(request):
            _send(message)
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:  # a second statement is a Warning up to Python 3.11
        _send({"error": str(error)})


def _send(message: dict[str, Any]) -> None:
    text = json.dumps(message, ensure_ascii=False, default=lambda one: [base64.b64encode(one).decode()])
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace") + b"\n")
    sys.stdout.buffer.flush()


def _bound_resources(request: dict[str, Any]) -> None:
    """Bound what this process may take; its time too, so that it does not outlive a host that was killed."""
    if sys.platform == "win32":
        return
    import resource  # there is none on Windows

    limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_CPU: int(request["seconds"]) + 5}
    if request["private"]:
        limits[resource.RLIMIT_FSIZE] = 0
    if sys.platform.startswith("linux"):
        limits[resource.RLIMIT_DATA] = request["memory_bytes"]
    for kind, value in limits.items():
        _, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


def _decode_text(stored: bytes) -> str:
    """Return a text; one that is not UTF-8, as programs of old wrote it, is taken for Windows-1252."""
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return stored.decode("cp1252", "replace")


def _answer(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    private = request["private"]
    uri = f"{Path(request['path']).as_uri()}?mode={'rw' if private else 'ro'}"  # to read a log, the engine has to lock
    with closing(_open_database(uri, request)) as connection:
        connection.text_factory = _decode_text
        rows: Iterator[Any]
        if request["sql"] is None:
            columns, rows = ["table", "column"], _columns(connection)
        else:
            with suppress(sqlite3.OperationalError):  # of a module that is not there
                connection.execute(_CONNECT_VIRTUAL_TABLES).fetchall()
            connection.set_authorizer(_reading_only)
            if sys.version_info >= (3, 11):
                largest = min(request["max_value_bytes"], connection.getlimit(sqlite3.SQLITE_LIMIT_LENGTH))
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, largest)
            cursor = connection.execute(request["sql"])
            _check_opened(request)
            columns, rows = [one[0] for one in cursor.description or ()], cursor
        if sum(map(len, columns)) > _NAMES_CHARS:
            raise sqlite3.DataError(f"the columns' names are longer than {_NAMES_CHARS:,} characters; shorten them: AS")
        yield {"columns": columns}
        yield from _portions(itertools.islice(rows, request["max_rows"]), request["max_value_bytes"])


def _open_database(uri: str, request: dict[str, Any]) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(uri, uri=True)
        connection.execute(f"PRAGMA hard_heap_limit = {request['memory_bytes'] // 2}")  # before the schema is read
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA trusted_schema = OFF")  # views and triggers of the file call harmless functions only
        if request["private"]:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1")
        _check_opened(request)
    except sqlite3.DatabaseError as error:
        raise sqlite3.DatabaseError(f"{request['name']}: {error}") from error
    return connection


def _check_opened(request: dict[str, Any]) -> None:
    """Raise unless all files that are open now are the database and what belongs to it, by their real paths (Linux).

    The engine opens them by path, and code of a kernel may have put links in their places since the path was checked.

    Raises:
        sqlite3.OperationalError: another one is open.
    """
    if not sys.platform.startswith("linux"):
        return
    known = {f"{request['path']}{end}".casefold() for end in ("", "-wal", "-shm", "-journal")}
    numbers: list[str] = []
    with suppress(OSError):  # no /proc here
        numbers = os.listdir("/proc/self/fd")
    for number in numbers:
        with suppress(OSError):  # the folder that was listed
            path = os.readlink(f"/proc/self/fd/{number}")
            regular = stat.S_ISREG(os.stat(f"/proc/self/fd/{number}").st_mode)
            if regular and path.removesuffix(" (deleted)").casefold() not in known:
                raise sqlite3.OperationalError(f"{request['name']} was exchanged while it was opened; try again")


def _columns(connection: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """Return each table's name with each of its columns; without columns where the engine can't say."""
    for (table,) in connection.execute(_LIST_TABLES).fetchall():
        with suppress(sqlite3.OperationalError):  # a view over a table that is gone
            for name, kind in connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,)).fetchall():
                yield table, f"{name} {kind}".strip()


def _portions(rows: Iterator[tuple[Any, ...]], max_row_bytes: int) -> Iterator[dict[str, Any]]:
    portion: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        portion.append(row)
        own = sum(len(one) for one in row if isinstance(one, str | bytes))
        if own > max_row_bytes:  # one that is sent has several times its size in whoever reads it
            raise sqlite3.DataError("a row is too big")
        size += own
        if len(portion) == _PORTION_ROWS or size > _PORTION_BYTES:
            yield {"rows": portion}
            portion, size = [], 0
    if portion:
        yield {"rows": portion}
    yield {"rows": []}


def _reading_only(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    """Allow what reading needs, for SQLite's authorizer."""
    if action == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_DENY if (second or "").casefold() in _UNSAFE_FUNCTIONS else sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_PRAGMA and first == "data_version":  # the engine's own, when it reads a full-text table
        return sqlite3.SQLITE_OK
    reading = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE)
    return sqlite3.SQLITE_OK if action in reading else sqlite3.SQLITE_DENY


if __name__ == "__main__":
    main()
