import functools
import math
import os
import runpy
import sqlite3
import subprocess
import sys
import tempfile
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest
from autogen.coding import CodeBlock

from tw_autogen import open_session
from tw_autogen.errors import ConfigError, RoundError
from tw_autogen.hosts.conversable import KernelCodeExecutor
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.shipped_folders import shipped_folder
from tw_autogen.sqlite_reader import read_sqlite
from tw_autogen.testing import FakeKernel, ScriptedModel, load_plugin

SPEC = shipped_folder("plugins") / "sql_pull_data.yaml"
one_select = runpy.run_path(str(SPEC.with_suffix(".py")))["one_select"]
EMPTY = ", ".join(["''"] * 10)


def make_database(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE time_series (ts TEXT, val REAL)")
        rows = [(f"2024-01-{day:02d}", day * 1.5) for day in range(1, 31)]
        connection.executemany("INSERT INTO time_series VALUES (?, ?)", rows)
        connection.execute("CREATE TABLE shops (id INTEGER, name TEXT)")
        connection.execute("INSERT INTO shops VALUES (1, 'north; or south'), (2, '100 % wool')")
        connection.execute("CREATE VIEW broken AS SELECT * FROM gone")
    return path


@pytest.fixture
def database(tmp_path):
    return make_database(tmp_path / "sales.db")


@pytest.fixture
def pull(database, tmp_path):
    with load_plugin(SPEC, tmp_path) as plugin:
        yield plugin


def model(*replies):
    """Give a function that answers with these replies in order, and the messages that it got."""
    waiting, asked = list(replies), []

    def call_model(messages):
        asked.append([dict(message) for message in messages])
        return waiting.pop(0)

    return call_model, asked


def test_a_select_gives_a_frame_and_says_what_it_is(pull):
    df, description = pull("SELECT ts, val FROM time_series\n ORDER BY ts LIMIT 2;")

    assert df.to_dict("list") == {"ts": ["2024-01-01", "2024-01-02"], "val": [1.5, 3.0]}
    first, second = description.splitlines()
    assert first == "SQL: SELECT ts, val FROM time_series ORDER BY ts LIMIT 2;"
    assert second.startswith("2 rows; columns ts: ")
    assert second.endswith("val: float64")


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("WITH big AS (SELECT * FROM time_series WHERE val > 30) SELECT * FROM big", 10),
        ("-- every shop\nselect * from shops where name = 'north; or south'", 1),
        ("/* all */ SELECT 1 UNION SELECT 2", 2),
        ("SELECT replace(name, 'wool', 'x') AS update_into FROM shops", 2),
        ("SELECT * FROM shops WHERE id > 99", 0),
        ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT i FROM n", 5),
    ],
)
def test_every_form_of_reading_is_allowed(pull, query, rows):
    assert len(pull(query)[0]) == rows


def test_texts_of_old_programs_that_are_not_utf8_are_read(database, pull):
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("INSERT INTO shops VALUES (3, CAST(x'4dfc6e6368656e2080' AS TEXT)), (4, 'Łódź')")

    df, _ = pull("SELECT name FROM shops WHERE id > 2 ORDER BY id")

    assert list(df["name"]) == ["München €", "Łódź"]


def test_a_full_text_table_can_be_read(database, pull):
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE VIRTUAL TABLE notes USING fts5(body)")
        connection.execute("INSERT INTO notes VALUES ('a quiet day')")

    assert pull("SELECT body FROM notes WHERE notes MATCH 'quiet'")[0].body.tolist() == ["a quiet day"]


@pytest.mark.parametrize(
    "query",
    [
        "INSERT INTO shops VALUES (3, 'x')",
        "insert or replace into shops values (1, 'x')",
        "UPDATE shops SET name = 'x'",
        "DELETE FROM shops",
        "DROP TABLE shops",
        "DROP TABLE no_such_table",
        "CREATE TABLE t (a)",
        "create temp table t (a)",
        "ALTER TABLE shops RENAME TO t",
        "ATTACH DATABASE 'other.db' AS other",
        "PRAGMA user_version = 5",
        "PRAGMA writable_schema = ON",
        "VACUUM INTO 'copy.db'",
        "REINDEX",
        "SELECT load_extension('libc.so.6')",
        "SELECT FTS3_tokenizer('simple', x'4142434445464748')",
        "WITH x AS (SELECT fts3_tokenizer('simple') AS a) SELECT a FROM x",
        "WITH x AS (SELECT 1) INSERT INTO shops SELECT 3, 'x'",
        "WITH x AS (SELECT 1) DELETE FROM shops",
        "SELECT 1; DROP TABLE shops",
        "SELECT * FROM pragma_journal_mode('wal')",
        "-- SELECT\nDROP TABLE shops",
    ],
)
def test_whatever_is_not_reading_is_refused_and_changes_nothing(pull, database, tmp_path, query):
    before = database.read_bytes()

    with pytest.raises(ValueError, match=r"only reading is allowed, one SELECT \(or WITH … SELECT\) at a time: "):
        pull(query)

    assert database.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["sales.db"]


def test_too_many_rows_are_cut_and_it_says_so(database, tmp_path):
    with load_plugin(SPEC, tmp_path, configurations={"max_rows": 4}) as pull:
        df, description = pull("SELECT * FROM time_series")
        whole, quiet = pull("SELECT * FROM time_series LIMIT 4")

    assert len(df) == len(whole) == 4
    assert "4 rows (cut: there are more, `max_rows` is 4); columns" in description
    assert "cut" not in quiet


def test_a_query_that_takes_too_long_is_stopped(database, tmp_path):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

    with (
        load_plugin(SPEC, tmp_path, configurations={"seconds": 0.1}) as pull,
        pytest.raises(ValueError, match=r"stopped after 0\.1 seconds; ask for less, or raise `seconds`"),
    ):
        pull(endless)


def test_columns_of_the_same_name_are_numbered(pull):
    df, _ = pull("SELECT a.id, b.id, a.id AS id_2 FROM shops a JOIN shops b ON a.id = b.id")

    assert df.columns.tolist() == ["id", "id_2", "id_2_2"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT * FROM shop", r"no such table: shop\nTables:\n(.*\n)*shops\(id INTEGER, name TEXT\)"),
        ("SELECT nam FROM shops", r"no such column: nam\nTables:\n"),
    ],
)
def test_a_wrong_name_is_an_error_that_lists_the_tables(pull, query, message):
    with pytest.raises(ValueError, match=message):
        pull(query)


def test_a_question_in_words_becomes_a_select(database, tmp_path):
    call_model, asked = model("Here it is:\n```sql\nSELECT name FROM shops WHERE id = 2;\n```\nIt names shop 2.")

    with load_plugin(SPEC, tmp_path, call_model=call_model) as pull:
        df, description = pull("What is shop 2 called?")

    assert df.name.tolist() == ["100 % wool"]
    assert description.startswith("SQL: SELECT name FROM shops WHERE id = 2;\n1 rows")
    ((system, user),) = asked
    assert "time_series(ts TEXT, val REAL)" in system["content"]
    assert "for SQLite" in system["content"]
    assert user == {"role": "user", "content": "What is shop 2 called?"}


@pytest.mark.parametrize(
    "reply",
    [
        "SELECT count(*) AS n FROM shops",
        "<think>SELECT or not?</think>\nselect count(*) as n from shops;",
        "```\nSELECT count(*) AS n FROM shops\n```",
        "```sql\nSELECT count(*) AS n FROM shops",
        "This counts them:\n\nSELECT count(*) AS n\nFROM shops",
    ],
)
def test_the_models_reply_is_read_tolerantly(database, tmp_path, reply):
    call_model, _ = model(reply)

    with load_plugin(SPEC, tmp_path, call_model=call_model) as pull:
        assert pull("How many shops are there?")[0].n.tolist() == [2]


def test_a_request_that_only_begins_like_sql_is_a_question(database, tmp_path):
    call_model, asked = model("SELECT * FROM shops")

    with load_plugin(SPEC, tmp_path, call_model=call_model) as pull:
        assert len(pull("Select everything you know about the shops, with their names.")[0]) == 2

    assert len(asked) == 1


@pytest.mark.parametrize(
    ("first", "problem"),
    [
        ("SELECT * FROM shop", "no such table: shop"),
        ("DELETE FROM shops", "only reading is allowed"),
        ("I have no idea.", "only reading is allowed"),
        ("SELECT name shops WHERE", "incomplete input"),
    ],
)
def test_the_model_is_told_what_was_wrong_and_may_try_once_more(database, tmp_path, first, problem):
    call_model, asked = model(first, "SELECT * FROM shops")

    with load_plugin(SPEC, tmp_path, call_model=call_model) as pull:
        assert len(pull("Which shops are there?")[0]) == 2

    assert [message["role"] for message in asked[1]] == ["system", "user", "assistant", "user"]
    assert f"That failed: {problem}" in asked[1][-1]["content"]


def test_two_failed_tries_are_an_error_that_shows_the_last_sql(database, tmp_path):
    call_model, _ = model("DROP TABLE shops", "DROP TABLE time_series")
    before = database.read_bytes()

    with (
        load_plugin(SPEC, tmp_path, call_model=call_model) as pull,
        pytest.raises(
            ValueError, match=r"no SELECT for 'Tidy up\.': only reading is (.*\n)+.*last try was: DROP TABLE time"
        ),
    ):
        pull("Tidy up.")

    assert database.read_bytes() == before


def test_a_question_that_the_tables_cannot_answer_is_said_to_be_one(database, tmp_path):
    call_model, _ = model("CANNOT: there is no table of employees.")

    with (
        load_plugin(SPEC, tmp_path, call_model=call_model) as pull,
        pytest.raises(ValueError, match=r"the tables cannot answer this: there is no table of employees\."),
    ):
        pull("Who works here?")


def test_the_session_variable_wins_over_the_setting_and_the_folder(tmp_path, database, monkeypatch):
    other = tmp_path / "elsewhere"
    other.mkdir()
    make_database(other / "more.db")
    query = "SELECT count(*) AS n FROM time_series"
    monkeypatch.setenv("PLACE_OF_DATA", str(other))

    with load_plugin(SPEC, tmp_path, configurations={"database": "$PLACE_OF_DATA/more.db"}) as from_setting:
        assert from_setting(query)[0].n.tolist() == [30]
    with load_plugin(SPEC, tmp_path, configurations={"database": "none.db"}, database="sales.db") as from_variable:
        assert from_variable(query)[0].n.tolist() == [30]
    with load_plugin(SPEC, tmp_path, database=f"sqlite:///{database}") as from_url:
        assert from_url(query)[0].n.tolist() == [30]


def test_a_database_that_is_not_there_is_an_error_that_says_where_it_looked(tmp_path):
    with (
        load_plugin(SPEC, tmp_path, database="none.db") as pull,
        pytest.raises(FileNotFoundError, match=r"no database 'none\.db'; looked in .* and .*plugins"),
    ):
        pull("SELECT 1")


def test_no_database_is_an_error_that_says_how_to_name_one(tmp_path):
    with (
        load_plugin(SPEC, tmp_path) as pull,
        pytest.raises(ValueError, match=r"no database is set; name one: `database` under `configurations`"),
    ):
        pull("SELECT 1")


def test_several_databases_are_an_error_that_lists_them(tmp_path):
    for name in ("a.db", "b.sqlite"):
        make_database(tmp_path / name)

    with (
        load_plugin(SPEC, tmp_path) as pull,
        pytest.raises(ValueError, match=r"several databases are here \(a\.db, b\.sqlite\); name one: "),
    ):
        pull("SELECT 1")


def test_a_file_that_is_no_database_is_an_error_with_its_name(tmp_path):
    (tmp_path / "notes.db").write_text(
        "just words, no database at all, long enough to be read as one", encoding="utf-8"
    )

    with load_plugin(SPEC, tmp_path) as pull, pytest.raises(ValueError, match=r"notes\.db: file is not a database"):
        pull("SELECT 1")


@pytest.fixture
def duck(tmp_path):
    """Make a DuckDB file where no code can write, and hand over its path."""
    duckdb = pytest.importorskip("duckdb", reason="needs duckdb and duckdb-engine")
    pytest.importorskip("duckdb_engine", reason="needs duckdb and duckdb-engine")
    path = tmp_path / "own" / "sales.duckdb"
    path.parent.mkdir()
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE time_series AS SELECT i AS day, i * 1.5 AS val FROM range(1, 31) AS t(i)")
        connection.execute("CREATE TABLE shops (id INTEGER, name TEXT)")
        connection.execute("INSERT INTO shops VALUES (1, 'north; or south'), (2, '100 % wool')")
    return path


@pytest.fixture
def by_url(duck, tmp_path):
    (tmp_path / "session").mkdir()
    database = f"duckdb:///{duck}"
    with load_plugin(SPEC, tmp_path / "session", database=database, configurations={"max_rows": 25}) as plugin:
        yield plugin


def test_a_url_is_pulled_from_with_the_same_limits(by_url):
    df, description = by_url("SELECT * FROM shops WHERE name LIKE '100 %'")
    cut, cut_description = by_url("WITH t AS (SELECT val FROM time_series) SELECT * FROM t")

    assert df.name.tolist() == ["100 % wool"]
    assert description.splitlines()[1].startswith("1 rows; columns id: ")
    assert len(cut) == 25
    assert "(cut: there are more, `max_rows` is 25)" in cut_description


MORE_THAN_READING = {
    "INSERT INTO shops VALUES (3, 'x')": "it does not begin with SELECT or WITH",
    "DROP TABLE shops": "it does not begin with SELECT or WITH",
    "WITH x AS (SELECT 1) DELETE FROM shops": "it says DELETE",
    "WITH x AS (SELECT 1) UPDATE shops SET id = 5": "it says UPDATE",
    "SELECT * INTO copies FROM shops": "it says INTO",
    "SELECT ';'; DROP TABLE shops": "it is more than one statement",
    "SELECT $$'$$; INSERT INTO shops VALUES (666); COMMIT; SELECT $$'$$ AS x": "databases read .* in different ways",
    "SELECT $ä$'$ä$; INSERT INTO shops VALUES (666); COMMIT; SELECT $ä$'$ä$": "databases read .* in different ways",
    "SELECT 1 AS a$$'$$ '; DROP TABLE shops; SELECT '": "databases read .* in different ways",
    "SELECT e'\\'' ; DROP TABLE shops; --'": "databases read .* in different ways",
    "SELECT q'['] ' ; DROP TABLE shops; --'": "databases read .* in different ways",
    "SELECT 1 /*+ ' */; DROP TABLE shops --'": "databases read .* in different ways",
    "SELECT 1 /*!50000 ; DROP TABLE shops */": "databases read .* in different ways",
    "SELECT 1 /* /* */ ' */ ; DROP TABLE shops --'": "databases read .* in different ways",
    "SELECT 1 AS `'` ; DROP TABLE shops; --'": "databases read .* in different ways",
    "SELECT 1 --'\n; DROP TABLE shops --'": "databases read .* in different ways",
    "SELECT 1 -- '\r; DROP TABLE shops -- '": "it is more than one statement",
}


@pytest.mark.parametrize(("query", "why"), MORE_THAN_READING.items(), ids=MORE_THAN_READING)
def test_a_url_is_read_only_too(by_url, duck, query, why):
    before = duck.read_bytes()

    with pytest.raises(ValueError, match=f"only reading is allowed, .*: {why}"):
        by_url(query)

    assert duck.read_bytes() == before


ONE_SELECT = {
    "a comment": ("SELECT 1 -- it's all; drop\nFROM t /* don't */", "postgresql", "SELECT 1  \nFROM t  "),
    "a pattern": (r"SELECT 'a\d' ~ '\d+', a #> '{b}'", "postgresql", None),
    "doubled quotes": ("SELECT 'it''s;' AS \"a\"\"; drop\";", "mysql", None),
    "backticks": ("SELECT `into` FROM `a; b`", "mysql", None),
    "brackets": ("SELECT [drop; table], N'x' FROM [a--b]", "mssql", None),
    "a list": ("SELECT [1, 2][1], a // 2", "duckdb", None),
    "bytes": ("SELECT x'00ff', DATE '2024-01-01'", "oracle", None),
}


@pytest.mark.parametrize(("query", "dialect", "sent"), ONE_SELECT.values(), ids=ONE_SELECT)
def test_what_every_database_reads_alike_is_sent_without_comments(query, dialect, sent):
    assert one_select(query, dialect=dialect) == (query if sent is None else sent)


UNEQUAL = {
    "a backslash": (r"SELECT '\' ; DROP TABLE t; -- '", "mysql"),
    "a backslash in a name": (r'SELECT "\" ; DROP TABLE t; -- "', "mysql"),
    "MySQL's comment": ("SELECT 1 # '\n; DROP TABLE t; -- '", "mysql"),
    "no comment in MySQL": ("SELECT 1 --1 '\n; DROP TABLE t; -- '", "mysql"),
    "MariaDB's comment": ("SELECT 1 /*M! ; DROP TABLE t */", "mariadb"),
    "Snowflake's comment": ("SELECT 1 // '\n; DROP TABLE t; -- '", "snowflake"),
    "a quote in brackets": ("SELECT [a'b] ; DROP TABLE t; SELECT 'x'", "mssql"),
    "Oracle's quotes": ("SELECT nq'[a']' ; DROP TABLE t; -- ']'", "oracle"),
    "a charset": (r"SELECT _sjis'x' ; DROP TABLE t", "mysql"),
    "U&": ("SELECT U&'\\0027' ; DROP TABLE t", "postgresql"),
}


@pytest.mark.parametrize(("query", "dialect"), UNEQUAL.values(), ids=UNEQUAL)
def test_what_databases_read_in_different_ways_is_refused(query, dialect):
    with pytest.raises(ValueError, match="databases read .* in different ways; write texts as"):
        one_select(query, dialect=dialect)


def test_a_url_of_duckdb_reaches_no_file_but_its_own(by_url, duck, tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text("word\nCANARY\n")

    for query in (
        f"SELECT * FROM read_text('{secret}')",
        f"SELECT * FROM '{secret}'",
        f"SELECT * FROM glob('{tmp_path}/*')",
        "SELECT * FROM SPEC",
    ):
        with pytest.raises(ValueError, match="disabled by configuration|does not exist"):
            by_url(query)
    assert sorted(duck.parent.iterdir()) == [duck]


def test_a_url_of_duckdb_names_no_file_that_code_can_change(tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="needs duckdb and duckdb-engine")
    pytest.importorskip("duckdb_engine", reason="needs duckdb and duckdb-engine")
    duckdb.connect(str(tmp_path / "here.duckdb")).close()
    with (
        LocalKernel(tmp_path),
        load_plugin(SPEC, tmp_path, database=f"duckdb:///{tmp_path / 'here.duckdb'}") as pull,
        pytest.raises(ValueError, match=r"here\.duckdb lies where code can change it"),
    ):
        pull("SELECT 1")


@pytest.fixture
def postgres(tmp_path):
    """Start a PostgreSQL server of its own, and hand over the URL of a database in it."""
    pytest.importorskip("psycopg", reason="needs psycopg")
    pytest.importorskip("sqlalchemy", reason="the extra `sql` is not installed")
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not programs:
        pytest.skip("needs PostgreSQL")
    with tempfile.TemporaryDirectory(prefix="pg", dir="/tmp") as place:
        user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        if user:
            os.chown(place, 65534, 65534)

        def run(program, *words):
            command = [programs[-1] / program, "-D", f"{place}/data", *words]
            subprocess.run(command, check=True, capture_output=True, timeout=60, cwd=place, **user)

        run("initdb", "-A", "trust", "-U", "me", "--no-sync")
        run("pg_ctl", "-w", "-l", f"{place}/log", "-o", f"-k {place} -c listen_addresses=''", "start")
        try:
            yield f"postgresql+psycopg://me@/postgres?host={place}"
        finally:
            run("pg_ctl", "-w", "-m", "immediate", "stop")


def test_a_real_postgresql_is_only_read(postgres, tmp_path):
    psycopg = pytest.importorskip("psycopg", reason="needs psycopg")
    place = postgres.partition("host=")[2]
    with psycopg.connect(host=place, user="me", dbname="postgres", autocommit=True) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS n")
        with load_plugin(SPEC, tmp_path, database=postgres) as pull:
            assert pull(r"SELECT n, 'a1' ~ '\d' AS b FROM t -- it's; all")[0].to_dict("list") == {"n": [1], "b": [True]}
            for query in (
                *MORE_THAN_READING,
                "SELECT set_config('transaction_read_only', 'off', true), nextval('s')",
                "SELECT n FROM t FOR UPDATE",
            ):
                with pytest.raises(ValueError, match="only reading|read-only|read-write|does not exist"):
                    pull(query)
        assert connection.execute("SELECT array_agg(n) FROM t").fetchone() == ([1],)


@pytest.mark.parametrize("url", ["sqlite:///{}", "sqlite+pysqlite:///{}"])
def test_a_url_of_an_sqlite_file_is_its_path(database, tmp_path, url):
    with load_plugin(SPEC, tmp_path, database=url.format(database)) as pull:
        assert len(pull("SELECT * FROM shops")[0]) == 2
        with pytest.raises(ValueError, match="only reading is allowed"):
            pull("SELECT fts3_tokenizer('simple')")


def test_a_wrong_name_behind_a_url_lists_the_tables(by_url):
    with pytest.raises(
        ValueError, match=r"shop does not exist(.*\n)*Tables:\n(.*\n)*shops\(id INTEGER, name VARCHAR\)"
    ):
        by_url("SELECT * FROM shop")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+nodriver://me:s3cret-word@localhost/db",
        "nothing://me:s3cret-word@localhost/db",
        "sqlite+pysqlite://me:s3cret-word@localhost/db",
        "post gres://me:s3cret-word@:::/db",
    ],
)
def test_a_url_and_its_password_never_stand_in_an_error(tmp_path, url):
    pytest.importorskip("sqlalchemy", reason="the extra `sql` is not installed")
    with (
        load_plugin(SPEC, tmp_path, database=url) as pull,
        pytest.raises(ValueError, match="the database URL cannot be used: ") as caught,
    ):
        pull("SELECT 1")

    assert "s3cret" not in str(caught.value)
    assert "localhost" not in str(caught.value)


def test_a_url_without_sqlalchemy_says_what_to_install(tmp_path):
    program = (
        "import sys; sys.modules['sqlalchemy'] = None\n"
        "from tw_autogen.testing import load_plugin\n"
        "load_plugin(sys.argv[1], sys.argv[2], database='postgresql://me@here/db')('SELECT 1')\n"
    )

    run = subprocess.run(
        [sys.executable, "-c", program, str(SPEC), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert run.returncode == 1
    assert "ImportError: a database URL needs SQLAlchemy; install it with: pip install 'tw-autogen[sql]'" in run.stderr


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT hex(zeroblob(4000000)) AS x", "larger than (a whole result may be|1 MB)"),
        (f"SELECT {', '.join(['hex(zeroblob(100000))'] * 9)}", "a row is larger than a whole result may be"),
        ("SELECT zeroblob(300000) AS x FROM time_series", "the result is larger than 1 MB"),
        (f"SELECT {EMPTY} FROM time_series, time_series AS b, time_series AS c", "the result is larger than 1 MB"),
        (
            "SELECT 'aa', 'bb', 'cc' FROM time_series, time_series AS b, time_series AS c",
            "the result is larger than 1 MB",
        ),
        ("SELECT hex(zeroblob(150000)) || char(128512) AS x", "the result is larger than 1 MB"),
        (
            f"SELECT {', '.join(['a.*'] * 11)} FROM (SELECT 1 AS {'n' * 100_000}) AS a",
            "names are longer than 1,000,000",
        ),
    ],
    ids=[
        "a value",
        "a row",
        "all rows",
        "many empty values",
        "many short texts",
        "one wide character",
        "names of columns",
    ],
)
def test_a_result_that_would_fill_the_hosts_memory_is_an_error(database, tmp_path, query, said):
    with (
        load_plugin(SPEC, tmp_path, configurations={"max_mb": 1}) as pull,
        pytest.raises(ValueError, match=said),
    ):
        pull(query)


def test_rows_that_are_still_in_the_write_ahead_log_are_read_and_so_are_later_ones(tmp_path):
    with closing(sqlite3.connect(tmp_path / "live.db", isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE t (n INTEGER)")
        writer.execute("INSERT INTO t VALUES (1)")
        with load_plugin(SPEC, tmp_path) as pull:
            first = len(pull("SELECT * FROM t")[0])
            again = len(pull("SELECT * FROM t")[0])
            writer.execute("INSERT INTO t VALUES (2)")
            later = len(pull("SELECT * FROM t")[0])

    assert (first, again, later) == (1, 1, 2)


def test_a_database_over_its_limit_is_an_error(database, tmp_path):
    with (
        load_plugin(SPEC, tmp_path, configurations={"max_database_mb": 0.001}) as pull,
        pytest.raises(ValueError, match=r"sales\.db: larger than 1048 bytes"),
    ):
        pull("SELECT 1")


def fill_schema(path):
    """Write tables that take about 65 times their size of memory once the engine has read them."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        for number in range(7):
            sql = f"CREATE TABLE x{number}(a CHECK(a IN ({','.join(['1'] * 450_000)})))"
            row = (f"x{number}", f"x{number}", sql)
            connection.execute("INSERT INTO sqlite_master VALUES ('table', ?, ?, 2, ?)", row)


AS = "replace(hex(zeroblob({})), '0', 'a')"


@pytest.mark.parametrize(
    ("prepare", "query", "said"),
    [
        (fill_schema, "SELECT * FROM shops", "takes too much memory"),
        (fill_schema, "What shops are there?", "takes too much memory"),
        (None, f"SELECT instr({AS.format(300_000)}, {AS.format(150_000)} || 'b')", r"stopped after 0\.5 seconds"),
        (None, f"SELECT {AS.format(50_000)} LIKE '%' || {AS.format(10_000)} || 'b'", r"stopped after 0\.5 seconds"),
    ],
    ids=["schema", "schema, question", "one function call", "one pattern"],
)
def test_what_the_engine_does_in_one_step_is_bounded_in_time_and_memory(database, tmp_path, prepare, query, said):
    limits = {"max_mb": 2, "seconds": 30 if prepare else 0.5}
    if prepare:
        prepare(database)

    with load_plugin(SPEC, tmp_path, configurations=limits) as pull, pytest.raises(ValueError, match=said):
        pull(query)


def test_no_copy_stays_and_holes_are_no_data(database, tmp_path, monkeypatch):
    own = tmp_path / "temporary"
    own.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(own))
    os.truncate(database, 100 << 20)

    with load_plugin(SPEC, tmp_path) as pull:
        for number in range(3):
            assert len(pull("SELECT * FROM shops")[0]) == 2
            database = database.rename(tmp_path / f"sales{number}.db")
            assert list(own.glob("tw-sql-*")) == []


def test_a_database_that_lies_elsewhere_is_read_where_it_is_with_its_log(tmp_path):
    folder, elsewhere = tmp_path / "session", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    with closing(sqlite3.connect(elsewhere / "live.db", isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE t (n INTEGER)")
        writer.execute("INSERT INTO t VALUES (1)")
        with load_plugin(SPEC, folder, database=str(elsewhere / "live.db")) as pull:
            assert pull("SELECT n FROM t")[0].n.tolist() == [1]
            writer.execute("INSERT INTO t VALUES (2)")
            assert pull("SELECT n FROM t")[0].n.tolist() == [1, 2]
            with pytest.raises(ValueError, match="only reading is allowed"):
                pull("DELETE FROM t")

    assert [path.name for path in elsewhere.iterdir()] == ["live.db"]


@pytest.mark.skipif(os.name != "posix", reason="making a link needs a privilege")
@pytest.mark.parametrize("beside", ["-wal", "-shm", "-journal"])
def test_the_engine_follows_no_link_beside_a_database(tmp_path, beside):
    private = tmp_path / "private"
    private.write_bytes(b"key" * 99)
    (tmp_path / "session").mkdir()
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection, connection:
        connection.execute(f"PRAGMA journal_mode = {'DELETE' if beside == '-journal' else 'WAL'}")
        connection.execute("CREATE TABLE t AS SELECT 7 AS n")
    (tmp_path / f"shop.db{beside}").symlink_to(private)

    with (
        load_plugin(SPEC, tmp_path / "session", database=str(tmp_path / "shop.db")) as pull,
        pytest.raises(ValueError, match=r"shop\.db: (unable to open database file|attempt to write a readonly)"),
    ):
        pull("SELECT n FROM t")

    assert private.read_bytes() == b"key" * 99


def test_every_kind_of_value_arrives_as_it_is(pull):
    query = (
        "SELECT x'00ff' AS a, NULL AS b, 9e999 AS c, -9223372036854775808 AS d, 'ü' || char(1, 0, 10) AS e, x'' AS f"
    )

    values = pull(query)[0].to_dict("records")[0]

    assert values == {"a": b"\x00\xff", "b": None, "c": math.inf, "d": -(2**63), "e": "ü\x01\x00\n", "f": b""}


def test_columns_of_one_name_are_numbered_in_linear_time(pull, cpu_seconds):
    columns = ", ".join(["1 AS a"] * 1999 + ["2 AS a_7"])
    began = cpu_seconds()
    frame, _ = pull(f"SELECT {columns}")

    assert list(frame.columns[:3]) == ["a", "a_2", "a_3"]
    assert frame.columns.is_unique
    assert cpu_seconds() - began < 3


@pytest.mark.parametrize("part", ["x", "''", '"'], ids=["letters", "doubled quotes", "other quotes"])
def test_a_long_text_in_a_query_takes_no_memory_for_each_character(pull, part):
    query = f"SELECT '{part * 200_000}' AS a"
    tracemalloc.start()
    try:
        frame, _ = pull(query)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert len(frame.a[0]) == len(part) * 200_000 / (2 if part == "''" else 1)
    assert most < 8 * len(query) + 2_000_000


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 'it''s; delete' AS a",
        "SELECT '''drop table x' AS a",
        "SELECT 'a''' || ';' || '''b' AS a",
        'SELECT 1 AS "a""; drop"',
    ],
)
def test_words_in_texts_with_doubled_quotes_are_no_code(by_url, query):
    assert len(by_url(query)[0]) == 1


WRITABLE = {
    "a plain file": ("data/plant.db", {}, [7]),
    "a link out": ("data/plant.db", {"data/plant.db": "../private/secret.db"}, "over the link .*/data/plant.db to .*"),
    "over a link out": ("data/way/secret.db", {"data/way": "../private"}, "over the link .*/data/way to .*/secret.db"),
    "the user's, then code's": (
        "way/out.db",
        {"way": "data", "data/out.db": "../private/secret.db"},
        "out.db",
    ),
    "a link that stays": ("data/other.db", {"data/other.db": "plant.db"}, [7]),
    "a log that is a link": ("data/plant.db", {"data/plant.db-wal": "../private/secret.db"}, "plant.db: .*"),
    "in a folder beside": ("private/secret.db", {}, [13]),
}


@pytest.mark.parametrize("case", WRITABLE)
def test_where_code_can_write_a_database_is_read_as_a_copy_and_over_no_link_out(tmp_path, case):
    named, links, wanted = WRITABLE[case]
    (tmp_path / "data").mkdir()
    (tmp_path / "private").mkdir()
    for name, number in (("data/plant.db", 7), ("private/secret.db", 13)):
        with closing(sqlite3.connect(tmp_path / name)) as connection, connection:
            connection.execute(f"CREATE TABLE t AS SELECT {number} AS n")
    LocalKernel(tmp_path / "work", settings=KernelSettings(write=(str(tmp_path / "data"),))).close()
    for name, target in links.items():
        (tmp_path / name).unlink(missing_ok=True)
        (tmp_path / name).symlink_to(target)

    with load_plugin(SPEC, tmp_path / "work", database=str(tmp_path / named)) as pull:
        if isinstance(wanted, list):
            assert pull("SELECT n FROM t")[0].n.tolist() == wanted
        else:
            with pytest.raises((ConfigError, ValueError), match=wanted):
                pull("SELECT n FROM t")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it is not known which file SQLite has opened")
@pytest.mark.parametrize("exchanged", ["the file", "its log", "a folder above"])
def test_a_database_that_is_exchanged_before_it_is_opened_is_not_read(tmp_path, exchanged):
    for name in ("data/plant.db", "private/plant.db"):
        (tmp_path / name).parent.mkdir()
        make_database(tmp_path / name)
    path, taken = tmp_path / "data" / "plant.db", tmp_path / "private" / "plant.db"
    if exchanged == "the file":
        path.unlink()
        path.symlink_to(taken)
    elif exchanged == "its log":
        writer = sqlite3.connect(taken)
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("INSERT INTO shops VALUES (9, 'x')")
        writer.commit()
        sqlite3.connect(path).execute("PRAGMA journal_mode = WAL").close()
        Path(f"{path}-wal").unlink(missing_ok=True)
        Path(f"{path}-wal").symlink_to(f"{taken}-wal")
    else:
        path.parent.rename(tmp_path / "away")
        path.parent.symlink_to(tmp_path / "private")
    bounds = {"max_rows": 9, "max_value_bytes": 1 << 20, "memory_bytes": 1 << 28, "seconds": 20}

    reading = read_sqlite(path, "SELECT name FROM shops", name="plant.db", **bounds)
    with pytest.raises(sqlite3.Error, match="was exchanged while it was opened|unable to open"), reading as rows:
        rows.fetch_batch(9)


def test_where_code_can_write_is_asked_before_each_query(tmp_path):
    (tmp_path / "data").mkdir()
    make_database(tmp_path / "data" / "plant.db")
    make_database(tmp_path / "private.db")
    path = tmp_path / "data" / "plant.db"

    def answer(messages):
        LocalKernel(path.parent).close()  # another client's, meanwhile; its code puts a link of the user's there
        path.unlink()
        path.symlink_to(tmp_path / "private.db")
        return "SELECT name FROM shops"

    (tmp_path / "work").mkdir()
    pulling = load_plugin(SPEC, tmp_path / "work", call_model=answer, database=str(path))
    with pulling as pull, pytest.raises((ConfigError, ValueError), match="over the link"):
        pull("Which shops are there?")


@pytest.mark.parametrize("opened", ["session", "executor"])
@pytest.mark.parametrize("trust", [False, True])
def test_a_database_named_in_an_untrusted_folder_is_read_over_no_link_out_of_it(tmp_path, monkeypatch, opened, trust):
    here = tmp_path / "download"
    here.mkdir()
    monkeypatch.chdir(here)
    make_database(tmp_path / "private.db")
    (here / "shop.db").symlink_to("../private.db")
    query, variables = "SELECT name FROM shops", {"database": str(here / "shop.db")}
    said = ""
    if opened == "session":
        kernel = FakeKernel(lambda code: str(kernel.served["sql_pull_data"](query)[1]), folder=tmp_path / "work")
        with open_session(
            ScriptedModel([]),
            roles="code_interpreter",
            plugins="sql_pull_data",
            kernel=kernel,
            folder=tmp_path / "session",
            trust=trust,
        ) as session:
            session.variables.update(variables)
            ask = functools.partial(session.run_code, "pull")
            said = ask().message if trust else refusal(ask)
    else:
        with KernelCodeExecutor(
            plugins="sql_pull_data", folder=tmp_path / "work", variables=variables, trust=trust
        ) as executor:
            block = CodeBlock(code=f"print(sql_pull_data({query!r})[1])", language="python")
            said = executor.execute_code_blocks([block]).output

    assert ("2 rows; columns name" in said) is trust
    assert (f"a link out of {here}, which is not trusted, to {tmp_path}/private.db" in said) is not trust


def refusal(ask):
    with pytest.raises(RoundError, match="a link out of") as caught:
        ask()
    return str(caught.value)
