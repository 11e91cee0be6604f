"""Pulls rows from a database: by a read-only SELECT, or by a question that the session's model turns into one."""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from tw_autogen.plugin import Plugin, register_plugin

SUFFIXES = (".db", ".sqlite", ".sqlite3")
_SELECT = re.compile(r"(select|with)\b", re.IGNORECASE)
_NO_SELECT = re.compile(
    r"(insert\s+(or\s+\w+\s+)?into|replace\s+into|update\s+\S+\s+set|delete\s+from|merge\s+into|attach\s+database|"
    r"(drop|create|alter)\s+((temp|temporary|unique|virtual|or\s+replace)\s+)*"
    r"(table|view|index|trigger|database|schema|function|role|user)|truncate\s+table|detach|pragma|vacuum|reindex)\b",
    re.IGNORECASE,
)
_NOT_CODE = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|--[^\n]*|/\*.*?\*/", re.DOTALL)
_WRITES = re.compile(
    r"\b(insert|update|delete|merge|drop|create|alter|truncate|grant|revoke|into|call|exec|execute|copy|attach|pragma)\b",
    re.IGNORECASE,
)
_FENCE = re.compile(r"```[ \t]*\w*\s*\n(.*?)(?:```|\Z)", re.DOTALL)
_THINKING = re.compile(r"<think>.*?</think>", re.DOTALL)
_SELECT_LINE = re.compile(r"^[ \t]*(select|with)\b.*", re.IGNORECASE | re.DOTALL | re.MULTILINE)
_CANNOT = re.compile(r"\s*CANNOT\b[:\s]*(.*)", re.DOTALL)
_SCHEMA_CHARS = 8000
_CONNECT_VIRTUAL_TABLES = (  # an engine that may only read cannot do so by itself: it declares a table
    "SELECT count(*) FROM sqlite_master AS m, pragma_table_info(m.name) WHERE m.sql LIKE 'create virtual %'"
)

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
    def run(self, sql: str, *, max_rows: int, seconds: float) -> Rows: ...


class SqliteDatabase:
    """An SQLite file, opened read-only, in which the engine itself refuses whatever is not reading."""

    dialect = "SQLite"

    def __init__(self, path: Path) -> None:
        self.path = path

    def tables(self) -> dict[str, list[str]]:
        sql = (
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name"
        )
        found: dict[str, list[str]] = {}
        with self._open() as connection:
            for (table,) in connection.execute(sql).fetchall():
                with contextlib.suppress(sqlite3.OperationalError):  # a view over a table that is gone
                    columns = connection.execute("SELECT name || ' ' || type FROM pragma_table_info(?)", (table,))
                    found[table] = [column.strip() for (column,) in columns]
        return found

    def run(self, sql: str, *, max_rows: int, seconds: float) -> Rows:
        deadline = time.monotonic() + seconds
        with self._open() as connection:
            with contextlib.suppress(sqlite3.OperationalError):  # of a module that is not there
                connection.execute(_CONNECT_VIRTUAL_TABLES).fetchall()
            connection.set_authorizer(_reading_only)
            connection.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
            try:
                cursor = connection.execute(sql)
                if cursor.description is None:
                    raise Refused("this statement gives no rows")
                values = cursor.fetchmany(max_rows + 1)
            except (sqlite3.Error, sqlite3.Warning) as error:  # a second statement is a Warning up to Python 3.11
                raise self._told(error, seconds) from error
            return Rows([one[0] for one in cursor.description], values[:max_rows], len(values) > max_rows)

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with contextlib.closing(sqlite3.connect(f"{self.path.as_uri()}?mode=ro", uri=True)) as connection:
                connection.execute("SELECT 1 FROM sqlite_master LIMIT 1")
                yield connection
        except sqlite3.DatabaseError as error:
            raise QueryFailed(f"{self.path.name}: {error}") from error

    def _told(self, error: Exception, seconds: float) -> ValueError:
        words = str(error)
        if "authoriz" in words or "prohibited" in words or "one statement at a time" in words:
            return Refused(words)
        if words == "interrupted":
            return QueryFailed(f"stopped after {seconds:g} seconds; ask for less, or raise `seconds`")
        return QueryFailed(words)


def _reading_only(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    """Allow what reading needs, for SQLite's authorizer; a function's name comes second."""
    if action == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_DENY if second == "load_extension" else sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_PRAGMA and first == "data_version":  # the engine's own, when it reads a full-text table
        return sqlite3.SQLITE_OK
    reading = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE)
    return sqlite3.SQLITE_OK if action in reading else sqlite3.SQLITE_DENY


class UrlDatabase:
    """Any database that SQLAlchemy reaches: one statement, SELECT only, in a transaction that is rolled back."""

    _FIRST = {
        "sqlite": ["PRAGMA query_only = ON"],
        "postgresql": ["SET TRANSACTION READ ONLY", "SET LOCAL statement_timeout = {milliseconds}"],
        "mysql": ["SET TRANSACTION READ ONLY"],
        "mariadb": ["SET TRANSACTION READ ONLY"],
    }

    def __init__(self, url: str) -> None:
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
            self._engine = sqlalchemy.create_engine(parsed, poolclass=sqlalchemy.pool.NullPool)
        except (ImportError, sqlalchemy.exc.NoSuchModuleError) as error:
            raise QueryFailed(f"the database URL cannot be used: {error}") from None
        except (self._errors, ValueError):  # their words may hold the URL, and that a password
            form = "driver://user:password@host/database"
            raise QueryFailed(f"the database URL cannot be used: it is not of the form {form}") from None
        self.dialect = self._engine.dialect.name

    def tables(self) -> dict[str, list[str]]:
        with self._asking():
            found = self._inspect(self._engine)
            tables: dict[str, list[str]] = {}
            for name in [*found.get_table_names(), *found.get_view_names()]:
                with contextlib.suppress(self._errors):  # a view over a table that is gone
                    tables[name] = [f"{column['name']} {column['type']}" for column in found.get_columns(name)]
            return tables

    def run(self, sql: str, *, max_rows: int, seconds: float) -> Rows:
        check_one_select(sql)
        with self._asking(), self._connect() as connection, connection.begin() as transaction:
            for first in self._FIRST.get(self.dialect, ()):
                connection.exec_driver_sql(first.format(milliseconds=int(seconds * 1000)))
            result = connection.exec_driver_sql(sql)
            columns, values = list(result.keys()), [tuple(row) for row in result.fetchmany(max_rows + 1)]
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


def check_begin(sql: str) -> None:
    """Refuse what is no query from its first word on.

    Raises:
        Refused: it does not begin with SELECT or WITH.
    """
    if not _SELECT.match(_code(sql)):
        raise Refused("it does not begin with SELECT or WITH")


def check_one_select(sql: str) -> None:
    """Refuse what is more than one SELECT, for databases that don't tell reading from writing before they run.

    Raises:
        Refused: says which word or sign is too much.
    """
    code = _code(sql).rstrip(";").rstrip()
    if ";" in code:
        raise Refused("it is more than one statement")
    if writing := _WRITES.search(code):
        raise Refused(f"it says {writing[0].upper()}")


def _code(sql: str) -> str:
    """Leave out text, quoted names and comments, in which any word may stand."""
    return _NOT_CODE.sub(" ", sql).strip().lstrip("( \t\n")


@register_plugin
class SqlPullData(Plugin):
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
        try:
            check_begin(sql)
            rows = database.run(sql, max_rows=max_rows, seconds=float(self.config.get("seconds") or 30))
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
            return SqliteDatabase(self._only_file())
        path = named.removeprefix("sqlite:///")
        if "://" in path:
            return UrlDatabase(named)
        places = [folder / path for folder in (Path(self.ctx.folder), Path(__file__).resolve().parent)]
        for place in places:
            if place.is_file():
                return SqliteDatabase(place.resolve())
        raise FileNotFoundError(f"no database {path!r}; looked in {' and '.join(str(one.parent) for one in places)}")

    def _only_file(self) -> Path:
        folder = Path(self.ctx.folder)
        files = sorted(one for one in folder.iterdir() if one.suffix in SUFFIXES)
        if len(files) == 1:
            return files[0].resolve()
        found = (
            f"several databases are here ({', '.join(one.name for one in files)})" if files else "no database is set"
        )
        raise ValueError(
            f"{found}; name one: `database` under `configurations` in sql_pull_data.yaml, or the session variable "
            "`database` (a path of an SQLite file, or a database URL)"
        )


def read_sql(reply: str) -> str:
    """Take the SELECT out of a model's reply, with or without a fence and words around it.

    Raises:
        QueryFailed: the model says that the tables cannot answer the question.
    """
    text = _THINKING.sub("", reply)
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
    result: list[str] = []
    for name in names:
        count = 1
        while (one := name if count == 1 else f"{name}_{count}") in result:
            count += 1
        result.append(one)
    return result
