"""What descriptions of files say of values is true of all of them: of long texts, of mixed signs, of late values."""

import sqlite3
from contextlib import closing

import pandas as pd
import pytest

from tw_autogen.kernel import Describer


def describe(folder, name):
    """Return the description of a file of a folder, in one text."""
    ((found,), _) = Describer(folder, apart=False).describe_all([(name, name)], seconds=20)
    return "\n".join([found["headline"], *found["lines"]])


def assert_said(told, said, unsaid=()):
    assert [one for one in said if one not in told] == [], told
    assert [one for one in unsaid if one in told] == [], told


LONG = {
    # name: (texts, what is said of them)
    "they differ behind a long start": (["x" * (3000 + at) for at in range(60)], ["all different", "3059 characters"]),
    "two values": (["é" * 1500 + "ab"[at % 2] for at in range(60)], ["2 distinct", "up to 1501 characters"]),
    "one value": (["y" * 1200] * 60, ["always 'yyy", "up to 1200 characters"]),
}


@pytest.mark.parametrize("case", LONG)
@pytest.mark.parametrize("kind", ["parquet", "db", "xml"])
def test_long_texts_are_told_apart_by_all_of_their_characters(kind, case, tmp_path):
    texts, said = LONG[case]
    if kind == "parquet":
        pd.DataFrame({"t": texts}).to_parquet(tmp_path / "a.parquet")
    elif kind == "db":
        with closing(sqlite3.connect(tmp_path / "a.db")) as database, database:
            database.execute("CREATE TABLE a (t TEXT)")
            database.executemany("INSERT INTO a VALUES (?)", [(text,) for text in texts])
    else:
        (tmp_path / "a.xml").write_text(f"<r>{''.join(f'<o><t>{text}</t></o>' for text in texts)}</r>")

    assert_said(describe(tmp_path, f"a.{kind}"), said)


def test_lists_and_structs_that_begin_late_are_described_by_what_they_hold(tmp_path):
    late = [None] * 1500
    pd.DataFrame({"l": [*late, [1, 2]], "s": [*late, {"q": 7}]}).to_parquet(tmp_path / "a.parquet")

    assert_said(describe(tmp_path, "a.parquet"), ["'l': list of int, 2 items", "'q': int, 7", "1500 null"])
