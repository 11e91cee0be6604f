"""Pulls rows from a database: by a read-only SELECT, or by a question that the session's model turns into one."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from tw_autogen import SafeFolder
from tw_autogen.plugin import (
    Plugin,
    named_file,
    private_folder,
    read_sqlite,
    register_plugin,
)

SUFFIXES = (".db", ".sqlite", ".sqlite3")
_SELECT = re.compile(r"(select|with)\b", re.IGNORECASE)
_NO_SELECT = re.compile(
    r"(insert\s+(or\s+\w+\s+)?into|replace\s+into|update\s+\S+\s+set|delete\s+from|merge\s+into|attach\s+database|"
    r"(drop|create|alter)\s+((temp|temporary|unique|virtual|or\s+replace)\s+){0,4}"
    r"(table|view|index|trigger|database|schema|function|role|user)|truncate\s+table|detach|pragma|vacuum|reindex)\b",
    re.IGNORECASE,
)
_NOT_CODE = re.compile(
    r"""'[^']*(')?|"[^"]*(")?|`[^`]*(`)?|--[^\n]*()|/\*.*?(?:(\*/)|\Z)""",
    re.DOTALL,
)
"""Text, quoted names and comments; the last group is missing from what is never closed and goes to the end.

A doubled quote in a text is the end of one and the beginning of another: a loop over both would take memory for each.
"""
_WRITES = re.compile(
    r"\b(insert|update|delete|merge|drop|create|alter|truncate|grant|revoke|deny|into|outfile|dumpfile|call|exec|execute|"
    r"copy|attach|pragma|begin|commit|rollback|declare|function|procedure|backup|shutdown|reconfigure|dbcc|openrowset|"
    r"opendatasource|openquery)\b",
    re.IGNORECASE,
)
_WITHOUT_ESCAPES = frozenset({"postgresql", "duckdb", "mssql", "oracle"})
"""Databases in whose texts a backslash is a character as any other."""
_WITH_BACKTICKS = frozenset({"mysql", "mariadb", "bigquery", "databricks", "hive", "clickhouse"})
"""Databases in which a name can stand in backticks."""
_COMMENT = r"--(?=\s|\Z)[^\r\n]*|/\*(?![!+M])[^*/]*\*/"
_UNEQUAL = re.compile(r"['\"`$\\]|--|/\*|\*/")
"""What begins a text, a name or a comment in one database and not in another one, outside of ordinary quotes."""
_COMMENT_SIGNS = re.compile("#|//")
"""They begin a comment in some databases; not in those without escapes, where they are operators, or part of a name."""
_FENCE = re.compile(r"```[^\n`]*\n(.*?)(?:```|\Z)", re.DOTALL)
_THINKING = re.compile(r"<think>.*?(?:(</think>)|\Z)", re.DOTALL)
_SELECT_LINE = re.compile(r"^[ \t]*(select|with)\b.*", re.IGNORECASE | re.DOTALL | re.MULTILINE)
_CANNOT = re.compile(r"\s*CANNOT\b[:\s]*(.*)", re.DOTALL)
_SCHEMA_CHARS = 8000
_PORTION = 100
_LESS = "ask for less, or raise `max_mb`"
_MAX_COLUMNS = 100_000
_SCHEMA_BYTES = 16 << 20
_SCHEMA_SECONDS = 30.0
_COLUMNS = """SELECT table_name, column_name, data_type FROM information_schema.columns
ORDER BY table_schema, table_name, ordinal_position"""
_MEMORY_BYTES = 512 << 20
"""What reading a file may take besides its result."""

_PROMPT = """You turn a question into one SQL SELECT statement for {dialect}, which is run read-only.
Answer with the SQL alone, in one ```sql block. Use only the tables and columns below, spelled as they are there.
If they cannot answer the question, answer: CANNOT: and why.

{schema}"""


@dataclass(frozen=True)
class Rows:
    """What a query gave; `cut` says that there were more than `max_rows`."""

    columns: list[str]
    values: list[tuple[Any, ...]]
    cut: bool


class Refused(ValueError):
    """The statement does more than read."""


class QueryFailed(ValueError):
    """The database could not run the statement; the message is the database's own, without any secret."""


class Database(Protocol):
    dialect: str

    def tables(self) -> dict[str, list[str]]: ...
    def run(self, sql: str, *, max_rows: int, max_bytes: int, seconds: float) -> Rows: ...


class SqliteDatabase:
    """An SQLite file, read in a process of its own, in which the engine itself refuses whatever is not reading.

    Where code can change the file, a copy in a folder of the host's own is read, and removed after each query: SQLite
    opens a file by its path, so it would follow a link that code puts there. With the database comes its write-ahead
    log, without which rows that were committed lately would be missing. A rollback journal does not come: it can name
    further files, which SQLite would open and remove.

    Args:
        name: The file's, for errors.
        find: Returns, before each query, the file, and the folder in which code can change it; None: it can't.
        turn: Held while a query runs, so that those of one session take bounded memory together, copies as well.
        limit_bytes: A longer database or log is not copied; an error.
    """

    dialect = "SQLite"

    def __init__(
        self, name: str, find: Callable[[], tuple[Path, Path | None]], turn: threading.Lock, limit_bytes: int
    ) -> None:
        self._name, self._find, self._turn, self._limit_bytes = name, find, turn, limit_bytes

    def tables(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        with self._reading(None, max_rows=_MAX_COLUMNS, max_bytes=_SCHEMA_BYTES, seconds=_SCHEMA_SECONDS) as rows:
            for table, column in _fetched(rows.fetch_batch, _MAX_COLUMNS, _SCHEMA_BYTES):
                found.setdefault(table, []).append(column)
        return found

    def run(self, sql: str, *, max_rows: int, max_bytes: int, seconds: float) -> Rows:
        with self._reading(sql, max_rows=max_rows + 1, max_bytes=max_bytes, seconds=seconds) as rows:
            if not rows.columns:
                raise Refused("this statement gives no rows")
            values = _fetched(rows.fetch_batch, max_rows + 1, max_bytes)
        return Rows(rows.columns, values[:max_rows], len(values) > max_rows)

    @contextlib.contextmanager
    def _reading(self, sql: str | None, *, max_rows: int, max_bytes: int, seconds: float) -> Iterator[Any]:
        if not self._turn.acquire(timeout=min(seconds, threading.TIMEOUT_MAX)):
            raise QueryFailed("another query of this session is still running")
        try:
            with self._file() as (path, private), read_sqlite(
                path, sql, name=self._name, max_rows=max_rows, max_value_bytes=max_bytes,
                memory_bytes=_MEMORY_BYTES + 4 * max_bytes, seconds=seconds, private=private,
            ) as rows:  # fmt: skip
                yield rows
        except sqlite3.Error as error:
            raise _told(str(error)) from error
        except TimeoutError as error:
            raise QueryFailed(f"stopped after {seconds:g} seconds; ask for less, or raise `seconds`") from error
        except MemoryError as error:
            raise QueryFailed("reading it takes too much memory; ask for less") from error
        finally:
            self._turn.release()

    @contextlib.contextmanager
    def _file(self) -> Iterator[tuple[Path, bool]]:
        """Return where the file is while it is read, and whether it is a copy that nothing else uses."""
        path, of_code = self._find()
        if of_code is None:
            yield path, False
            return
        with private_folder("tw-sql-") as own:
            yield self._copy(of_code, path.relative_to(of_code).as_posix(), own / "copy.db"), True

    def _copy(self, of_code: Path, name: str, path: Path) -> Path:
        try:
            with SafeFolder(of_code) as folder:
                folder.copy_out(name, path, limit_bytes=self._limit_bytes)
                with contextlib.suppress(FileNotFoundError):
                    log = path.with_name(f"{path.name}-wal")
                    folder.copy_out(f"{name}-wal", log, limit_bytes=self._limit_bytes)
        except OSError as error:
            raise QueryFailed(f"{self._name}: {error.strerror}") from error
        return path


def _told(message: str) -> ValueError:
    """Return an error for the engine's words."""
    if "authoriz" in message or "prohibited" in message or "one statement at a time" in message:
        return Refused(message)
    if "too big" in message:
        return QueryFailed(f"a row is larger than a whole result may be; {_LESS}")
    return QueryFailed(message)


class UrlDatabase:
    """Any database that SQLAlchemy reaches: one statement, SELECT only, in a transaction that is rolled back.

    Args:
        url: Names the driver, the database and whoever asks it; none of SQLite.
        find: As `SqliteDatabase` has it, for a path that a URL of DuckDB names: its engine runs in this process, so it
            gets no file that code can change.

    Raises:
        ImportError: SQLAlchemy is missing.
        QueryFailed: the URL can't be used.
    """

    _FIRST = {
        "postgresql": [
            "SET TRANSACTION READ ONLY",
            "SET LOCAL standard_conforming_strings = on",  # else a backslash could end a text later than is checked
            "SET LOCAL statement_timeout = {milliseconds}",
        ],
        "mysql": ["SET TRANSACTION READ ONLY"],
        "mariadb": ["SET TRANSACTION READ ONLY"],
    }
    _ARGUMENTS = {
        "duckdb": {
            "read_only": True,
            "config": {
                "enable_external_access": "false",
                "python_enable_replacements": "false",  # tables by the names of this process's variables
                "lock_configuration": "true",
            },
        }
    }

    def __init__(self, url: str, find: Callable[[Path], tuple[Path, Path | None]]) -> None:
        try:
            import sqlalchemy  # here, because it is an extra that a file does not need
        except ImportError:
            raise ImportError(
                "a database URL needs SQLAlchemy; install it with: pip install 'tw-autogen[sql]'"
            ) from None
        self._errors = sqlalchemy.exc.SQLAlchemyError
        self._inspect = sqlalchemy.inspect
        try:
            parsed = sqlalchemy.engine.make_url(url)
            self._password = str(parsed.password or "")
            kind = parsed.get_backend_name()
            if kind == "sqlite":
                raise ValueError("SQLite takes the path of a file")
            if kind == "duckdb":
                parsed = parsed.set(database=str(_apart(Path(parsed.database or ""), find)))
            own = {"connect_args": self._ARGUMENTS[kind]} if kind in self._ARGUMENTS else {}
            self._engine = sqlalchemy.create_engine(parsed, poolclass=sqlalchemy.pool.NullPool, **own)
        except (ImportError, sqlalchemy.exc.NoSuchModuleError) as error:
            raise QueryFailed(f"the database URL cannot be used: {error}") from None
        except QueryFailed:
            raise
        except (self._errors, ValueError):  # their words may hold the URL, and that a password
            form = "driver://user:password@host/database"
            raise QueryFailed(f"the database URL cannot be used: it is not of the form {form}") from None
        self.dialect = self._engine.dialect.name

    def tables(self) -> dict[str, list[str]]:
        tables: dict[str, list[str]] = {}
        with self._asking():
            if self.dialect == "duckdb":  # its inspector asks for what the engine does not have
                for table, column, kind in self.run(
                    _COLUMNS, max_rows=_MAX_COLUMNS, max_bytes=_SCHEMA_BYTES, seconds=_SCHEMA_SECONDS
                ).values:
                    tables.setdefault(table, []).append(f"{column} {kind}")
                return tables
            found = self._inspect(self._engine)
            for name in [*found.get_table_names(), *found.get_view_names()]:
                with contextlib.suppress(self._errors):  # a view over a table that is gone
                    tables[name] = [f"{column['name']} {column['type']}" for column in found.get_columns(name)]
            return tables

    def run(self, sql: str, *, max_rows: int, max_bytes: int, seconds: float) -> Rows:
        sql = one_select(sql, dialect=self.dialect)
        with self._asking(), self._connect() as connection, connection.begin() as transaction:
            for first in self._FIRST.get(self.dialect, ()):
                connection.exec_driver_sql(first.format(milliseconds=int(seconds * 1000)))
            result = connection.exec_driver_sql(sql)
            columns, values = list(result.keys()), _fetched(result.fetchmany, max_rows + 1, max_bytes)
            result.close()
            transaction.rollback()
        return Rows(columns, values[:max_rows], len(values) > max_rows)

    def _connect(self) -> Any:
        return self._engine.connect().execution_options(no_parameters=True)  # a % in the SQL is a %

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            raise QueryFailed(self._without_password(getattr(error, "orig", None) or error)) from None

    def _without_password(self, error: object) -> str:
        return str(error).replace(self._password, "***") if self._password else str(error)


def _fetched(fetch: Callable[[int], Sequence[Sequence[Any]]], most: int, max_bytes: int) -> list[tuple[Any, ...]]:
    """Fetch rows in portions.

    Args:
        fetch: Returns so many more rows; none at the end.
        most: How many at most.
        max_bytes: How large all may be; every value counts as 24, and texts and bytes with what they take on top: a
            text up to four bytes for each character, if one of them is not ASCII.

    Raises:
        QueryFailed: they are larger.
    """
    rows: list[tuple[Any, ...]] = []
    left = max_bytes
    while len(rows) < most and (portion := fetch(min(_PORTION, most - len(rows)))):
        for row in portion:
            left -= sum(map(_size, row))
            rows.append(tuple(row))
        if left < 0:
            raise QueryFailed(f"the result is larger than {max_bytes >> 20} MB; {_LESS}")
    return rows


def _size(value: Any) -> int:
    return 24 + (sys.getsizeof(value) - sys.getsizeof(value[:0]) if isinstance(value, str | bytes) else 0)


def check_begin(sql: str) -> None:
    """Refuse what is no query from its first word on.

    Raises:
        Refused: it does not begin with SELECT or WITH.
    """
    if not _SELECT.match(_code(sql)):
        raise Refused("it does not begin with SELECT or WITH")


def one_select(sql: str, *, dialect: str) -> str:
    """Return one SELECT without its comments, for databases that don't tell reading from writing before they run.

    Quotes and comments that databases read differently are refused: what is text in one of them may be a further
    statement in another one.

    Args:
        sql: The statement.
        dialect: The database's kind, as SQLAlchemy names it.

    Raises:
        Refused: says which word or sign is too much.
    """
    no_escape = "" if dialect in _WITHOUT_ESCAPES else r"\\"
    quoted = rf"(?<![\w$&])[bnx]?'[^'{no_escape}]*'|\"[^\"{no_escape}]*\""
    if dialect in _WITH_BACKTICKS:
        quoted += r"|`[^`\\]*`"
    if dialect == "mssql":
        quoted += r"|\[[^\]['\"]*\]"
    pieces = re.compile(f"({quoted})|{_COMMENT}", re.IGNORECASE)
    code = pieces.sub(" ", sql).strip().rstrip(";").rstrip()
    unequal = _UNEQUAL.search(code) or (dialect not in _WITHOUT_ESCAPES and _COMMENT_SIGNS.search(code))
    if unequal := unequal or (dialect == "mssql" and re.search(r"\[", code)):
        only = "texts as '…' with no letter before it and no backslash in it, names as \"…\", and no comments"
        raise Refused(f"databases read {unequal[0]!r} in different ways; write {only}")
    if ";" in code:
        raise Refused("it is more than one statement")
    if writing := _WRITES.search(code):
        raise Refused(f"it says {writing[0].upper()}")
    return pieces.sub(lambda match: match[1] or " ", sql)


def _apart(path: Path, find: Callable[[Path], tuple[Path, Path | None]]) -> Path:
    """Return the path of a file that is read in this process.

    Raises:
        QueryFailed: code can change it.
    """
    real, folder = find(path)
    if folder is not None:
        raise QueryFailed(f"{path.name} lies where code can change it, so only code reads it: with `duckdb`")
    return real


def _code(sql: str) -> str:
    """Leave out text, quoted names and comments, in which any word may stand."""
    return _NOT_CODE.sub(lambda match: " " if match.lastindex else match[0], sql).strip().lstrip("( \t\n")


@register_plugin
class SqlPullData(Plugin):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._turn = threading.Lock()

    def __call__(self, query: str) -> tuple[pd.DataFrame, str]:
        database = self._database()
        if _looks_like_sql(query):
            try:
                return self._pull(database, query)
            except QueryFailed as error:
                if "syntax error" not in str(error):
                    raise QueryFailed(self._with_tables(database, error)) from None
                self.log("info", f"read as a question in words: {error}")  # such as: Select all that sold last week
        return self._answer(database, query)

    def _answer(self, database: Database, question: str) -> tuple[pd.DataFrame, str]:
        """Let the model write the SELECT; tell it once what was wrong with it."""
        schema = _schema(database.tables())
        messages = [
            {"role": "system", "content": _PROMPT.format(dialect=database.dialect, schema=schema)},
            {"role": "user", "content": question},
        ]
        problem = ""
        for _ in range(2):
            reply = self.ctx.call_llm_api(messages)
            sql = read_sql(reply)
            try:
                return self._pull(database, sql)
            except (Refused, QueryFailed) as error:
                problem = str(error)
                again = f"That failed: {problem}\nWrite one SELECT that works."
                messages += [{"role": "assistant", "content": reply}, {"role": "user", "content": again}]
        raise QueryFailed(f"no SELECT for {question!r}: {problem}\nThe last try was: {sql}\nTables:\n{schema}")

    def _pull(self, database: Database, sql: str) -> tuple[pd.DataFrame, str]:
        max_rows = int(self.config.get("max_rows") or 100_000)
        max_bytes = int(float(self.config.get("max_mb") or 256) * (1 << 20))
        try:
            check_begin(sql)
            seconds = float(self.config.get("seconds") or 30)
            rows = database.run(sql, max_rows=max_rows, max_bytes=max_bytes, seconds=seconds)
        except Refused as error:
            raise Refused(f"only reading is allowed, one SELECT (or WITH … SELECT) at a time: {error}") from None
        frame = pd.DataFrame(rows.values, columns=_distinct(rows.columns))
        columns = ", ".join(f"{name}: {dtype}" for name, dtype in frame.dtypes.items())
        cut = f" (cut: there are more, `max_rows` is {max_rows})" if rows.cut else ""
        return frame, f"SQL: {' '.join(sql.split())}\n{len(frame)} rows{cut}; columns {columns}"

    def _with_tables(self, database: Database, error: QueryFailed) -> str:
        if not re.search(r"no such|not exist|doesn't exist|unknown", str(error), re.IGNORECASE):
            return str(error)
        return f"{error}\nTables:\n{_schema(database.tables())}"

    def _database(self) -> Database:
        named = self.ctx.get_session_var("database", None) or os.path.expandvars(self.config.get("database") or "")
        if not named:
            return self._only_file()
        path = re.sub(r"\Asqlite(\+pysqlite)?:///", "", named)
        if "://" in path:
            return UrlDatabase(named, self._find)
        folder, beside = Path(self.ctx.folder), Path(__file__).resolve().parent
        place = beside / path
        with SafeFolder(folder) as opened:
            inner, other = opened.name_of(folder / path), opened.name_of(place)
            if inner and _is_there(opened, inner):
                return self._of_session(inner)
        if place.is_file() and not other:
            find = functools.partial(self._find, place)
            find()  # a link that is not followed is told before a model is asked
            return self._sqlite(place.name, find)
        places = (folder / path, place)
        raise FileNotFoundError(f"no database {path!r}; looked in {' and '.join(str(one.parent) for one in places)}")

    def _find(self, place: Path) -> tuple[Path, Path | None]:
        return named_file(place, distrusted=self.ctx.distrusted)

    def _of_session(self, name: str) -> SqliteDatabase:
        folder = Path(self.ctx.folder)
        return self._sqlite(name, lambda: (folder / name, folder))

    def _sqlite(self, name: str, find: Callable[[], tuple[Path, Path | None]]) -> SqliteDatabase:
        limit_bytes = int(float(self.config.get("max_database_mb") or 2000) * (1 << 20))
        return SqliteDatabase(name, find, self._turn, limit_bytes)

    def _only_file(self) -> SqliteDatabase:
        with SafeFolder(self.ctx.folder) as folder:
            names = [one.name for one in folder.walk(enter=lambda name: False) if Path(one.name).suffix in SUFFIXES]
        if len(names) == 1:
            return self._of_session(names[0])
        found = f"several databases are here ({', '.join(names)})" if names else "no database is set"
        raise ValueError(
            f"{found}; name one: `database` under `configurations` in sql_pull_data.yaml, or the session variable "
            "`database` (a path of an SQLite file, or a database URL)"
        )


def _is_there(folder: SafeFolder, name: str) -> bool:
    """Return whether a folder has an entry of this name; what is no file fails when it is read, and says why."""
    try:
        return folder.has_entry(name)
    except OSError:
        return True


def read_sql(reply: str) -> str:
    """Take the SELECT out of a model's reply, with or without a fence and words around it.

    Raises:
        QueryFailed: the model says that the tables cannot answer the question.
    """
    text = _THINKING.sub(lambda match: "" if match[1] else match[0], reply)
    fence = _FENCE.search(text)
    if fence is None and (cannot := _CANNOT.match(text)):
        raise QueryFailed(f"the tables cannot answer this: {cannot[1].strip() or 'no reason given'}")
    text = fence[1] if fence else text
    line = _SELECT_LINE.search(text)
    return (line[0] if line and not fence else text).strip()


def _looks_like_sql(query: str) -> bool:
    code = _code(query)
    return bool(_SELECT.match(code) or _NO_SELECT.match(code))  # the latter so that it is refused in so many words


def _schema(tables: dict[str, list[str]]) -> str:
    text = "\n".join(f"{name}({', '.join(columns)})" for name, columns in tables.items()) or "(no tables)"
    return text if len(text) <= _SCHEMA_CHARS else f"{text[:_SCHEMA_CHARS]}\n… ({len(tables)} tables in all)"


def _distinct(names: list[str]) -> list[str]:
    """Number a name that comes again, as in a join: `id`, `id_2`; a frame that crosses to the kernel has each once."""
    taken: set[str] = set()
    counts: dict[str, int] = {}
    result: list[str] = []
    for name in names:
        count = counts.get(name, 1)
        while (one := name if count == 1 else f"{name}_{count}") in taken:
            count += 1
        counts[name] = count
        taken.add(one)
        result.append(one)
    return result
