"""Descriptions of what a request brings, so that no step is needed only to look at it."""

import json
import sqlite3

import pandas as pd
import pytest

from tw_autogen.session import profile_file, profile_request, profile_value


def test_a_csv_is_told_with_rows_columns_types_missing_values_and_head(tmp_path):
    path = tmp_path / "sales.csv"
    path.write_text("day,units,note\n2024-01-01,3,a\n2024-01-02,,b\n2024-01-03,5,\n2024-01-04,6,d\n", encoding="utf-8")

    told = profile_file(path)

    assert told.startswith(f"sales.csv: {path.stat().st_size} bytes, 4 rows x 3 columns: day (")
    assert "units (float64, 1 missing)" in told
    assert told.count("2024-01-") == 3


def test_a_database_is_told_table_by_table(tmp_path):
    path = tmp_path / "plant.db"
    with sqlite3.connect(path) as database:
        database.execute('CREATE TABLE "odd name" (ts TEXT, val REAL)')
        database.execute('INSERT INTO "odd name" VALUES (1, 2)')
    database.close()

    assert "table odd name: 1 rows, columns ts TEXT, val REAL" in profile_file(path)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("list.json", json.dumps([{"a": 1}, {"a": 2}]), "a JSON list of objects: 2 rows x 1 columns: a (int64)"),
        ("one.json", json.dumps({"a": 1, "b": 2}), "a JSON object with the keys 'a', 'b'"),
        ("tabs.tsv", "a\tb\n1\t2\n", "1 rows x 2 columns: a (int64), b (int64)"),
        ("short.txt", "one\ntwo\n", "text of 2 lines"),
        ("long.log", "x" * 5000, "text, beginning:\n" + "x" * 400 + "…"),
        ("empty.csv", "", "not readable as csv"),
        ("broken.json", "{", "not readable as json"),
        ("noending", "plain words", "text of 1 line"),
        ("raw.bin", "a\0b", "binary"),
    ],
)
def test_other_kinds_are_told_too(tmp_path, name, content, told):
    path = tmp_path / name
    path.write_bytes(content.encode())

    assert told in profile_file(path)


def test_values_are_told_briefly():
    assert profile_value("n", 3) == "n: int, 3"
    assert profile_value("frame", pd.DataFrame({"a": [1]})).startswith(
        "frame: DataFrame, 1 rows x 1 columns: a (int64)"
    )
    assert len(profile_value("text", "x" * 10_000)) < 500


def test_beyond_its_budget_a_thing_is_named_by_its_first_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a\n1\n", encoding="utf-8")

    assert "first rows" in profile_request([path], {}, 10_000)
    assert "first rows" not in profile_request([path], {}, 10)
    assert "a.csv" in profile_request([path], {}, 10)


def test_a_request_that_brings_nothing_has_no_description():
    assert profile_request([], {}, 1000) == ""
