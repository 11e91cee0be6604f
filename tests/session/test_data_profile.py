"""Descriptions of what a request brings, so that no step is needed only to look at it."""

import bz2
import gzip
import json
import sqlite3
import zipfile

import pandas as pd
import pytest

from tw_autogen.session.data_profile import profile_file, profile_request, profile_value


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

    assert told in profile_file(path).replace("(object)", "(str)")  # the word of pandas before 3


GERMAN = "Datum;Region;Umsatz;Menge\n2024-01-01;Köln;1.234,50;3\n2024-01-02;Düren;99,90;1\n"


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("two.csv", b"Datum;Umsatz\n2024-01-01;1234,50\n2024-01-02;99,90\n", "Umsatz (float64)\nfirst rows:"),
        ("de.csv", GERMAN.encode(), "2 rows x 4 columns: Datum (str), Region (str), Umsatz (float64), Menge (int64)"),
        ("de.csv", GERMAN.encode(), "2024-01-01,Köln,1234.5,3"),
        ("de.csv", GERMAN.encode(), "pd.read_csv('de.csv', sep=';', decimal=',', thousands='.')"),
        ("latin.csv", GERMAN.encode("latin-1"), "2024-01-01,Köln,1234.5,3"),
        ("latin.csv", GERMAN.encode("latin-1"), "encoding='cp1252'"),
        ("late.csv", b"name\n" + b"x\n" * 600_000 + "Köln\n".encode("latin-1"), "encoding='cp1252'"),
        ("wide.csv", GERMAN.encode("utf-16"), "2024-01-01,Köln,1234.5,3"),
        ("marked.csv", GERMAN.encode("utf-8-sig"), "columns: Datum (str)"),
        ("note.csv", b"# made on Monday\n# by hand\na,b\n1,2\n", "1 rows x 2 columns: a (int64), b (int64)"),
        ("note.csv", b"# made on Monday\n# by hand\na,b\n1,2\n", "pd.read_csv('note.csv', skiprows=2)"),
        ("title.csv", b"Report of 2024\n\nname,units\nA,1\nB,2\n", "2 rows x 2 columns: name (str), units (int64)"),
        ("title.csv", b"Report of 2024\n\nname,units\nA,1\nB,2\n", "pd.read_csv('title.csv', skiprows=2)"),
        ("title.csv", b"# x\nUnits sold\nname;units\nA;1,5\nB;2,5\n", "units (float64)"),
        ("title.csv", b"# x\nUnits sold\nname;units\nA;1,5\nB;2,5\n", "sep=';', decimal=',', skiprows=2)"),
        ("padded.csv", b"Reports by Type,,\n,,\nYear,Fraud,Theft\n2001,5,6\n,,\nSource: us,,\n", "Year (str"),
        ("padded.csv", b"Reports by Type,,\n,,\nYear,Fraud,Theft\n2001,5,6\n", "pd.read_csv('padded.csv', skiprows=2)"),
        ("quoted.csv", b'"Fraud, Theft by Year",\n,\nYear,Fraud\n2001,5\n', "pd.read_csv('quoted.csv', skiprows=2)"),
        ("unnamed.csv", b"kind of,,\nx,y,\n1,2,3\n", "kind of (str), Unnamed: 1 (str), Unnamed: 2"),
        ("names.csv", b"a name,b\nx,y\n1,2\n", "2 rows x 2 columns: a name (str), b (str)"),
        ("words.csv", b"text\nhello, you\nand, you\n", "2 rows x 1 columns: text"),
        ("words.csv", b"some text\nhello, you\nand, you\n", "2 rows x 1 columns: some text"),
        ("words.csv", b"some text\nin 1, 2\nin 3, 4\n", "2 rows x 1 columns: some text"),
        ("one.csv", b"units sold\n1\n2\n", "2 rows x 1 columns: units sold (int64)"),
        ("zip.csv", b"zip,phone,n\n01234,0049123,7\n50667,0221,8\n", "zip (str), phone (str), n (int64)"),
        ("zip.csv", b"zip,phone,n\n01234,0049123,7\n", "dtype={'zip': str, 'phone': str}"),
        ("zip.csv", b"zip,phone,n\n01234,0049123,7\n50667,0221,8\n", "01234,0049123,7"),
        ("pipes.csv", b"a|b\n1|2\n", "1 rows x 2 columns: a (int64), b (int64)"),
        ("tabs.csv", b"a\tb\n1,5\t2\n", "a (float64), b (int64)"),
        ("points.csv", b"a;b\n1.5;2\n", "a (float64), b (int64)"),
        ("both.csv", b"a;b\n1.5;2,5\n", "a (float64), b (str)"),
        ("tail.csv", b"a,b\n1,2,\n3,4,\n", "2 rows x 2 columns: a (int64), b (int64)"),
        ("tail.csv", b"a,b\n1,2,\n3,4,\n", "index_col=False"),
        ("quoted.csv", b'a;b\n"x;y, z";"1,5"\n', "b (float64)"),
        ("packed.csv.gz", gzip.compress(GERMAN.encode(), mtime=0), "2024-01-01,Köln,1234.5,3"),
        ("packed.tsv.bz2", bz2.compress(b"a\tb\n1\t2\n"), "a (int64), b (int64)"),
        ("packed.csv.gz", b"no gzip", "not readable as csv: Not a gzipped file"),
        ("lines.jsonl", b'{"a": 1}\n{"a": 2}\n', "JSON lines, 2 rows x 1 columns: a (int64)"),
        ("lines.jsonl", b'{"a": 1}\n{', "not readable as jsonl"),
        ("torn.xlsx", b"PK\x03\x04 torn", "not readable as xlsx"),
        ("torn.parquet", b"PAR1", "not readable as parquet"),
        ("text.csv", b"\0\0\1", "not readable as csv"),
    ],
)
def test_the_text_of_a_file_decides_how_it_is_read(tmp_path, name, content, told):
    path = tmp_path / name
    path.write_bytes(content)

    assert told in profile_file(path).replace("(object)", "(str)")  # the word of pandas before 3


@pytest.mark.parametrize("value", ["01.02.2024", "1.2.24", "10.0.0.1"])
def test_what_has_points_but_is_no_number_stays_text_where_points_group_thousands(tmp_path, value):
    path = tmp_path / "umsatz.csv"
    path.write_text(f"Key;Umsatz;Menge\n{value};1.234,50;3\n{value};99,90;1\n", encoding="utf-8")

    told = profile_file(path).replace("(object)", "(str)")  # the word of pandas before 3

    assert "Key (str), Umsatz (float64), Menge (int64)" in told
    assert f"{value},1234.5,3" in told
    assert "thousands='.', dtype={'Key': str}" in told


def test_a_header_of_numbers_is_pointed_at(tmp_path):
    (tmp_path / "bare.csv").write_text("1.5,2\n3,4\n", encoding="utf-8")
    (tmp_path / "named.csv").write_text("a,2\n3,4\n", encoding="utf-8")

    assert "every name in its first line is a number; if that line is data, read it with header=None" in profile_file(
        tmp_path / "bare.csv"
    )
    assert "header=None" not in profile_file(tmp_path / "named.csv")


@pytest.mark.parametrize("suffix", [".xlsx", ".parquet", ".feather"])
def test_workbooks_and_columnar_files_are_told(tmp_path, suffix):
    pytest.importorskip("openpyxl" if suffix == ".xlsx" else "pyarrow")
    frame, path = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), tmp_path / f"table{suffix}"
    {".xlsx": lambda: frame.to_excel(path, sheet_name="June", index=False), ".parquet": lambda: frame.to_parquet(path),
     ".feather": lambda: frame.to_feather(path)}[suffix]()  # fmt: skip

    told = profile_file(path)

    assert "2 rows x 2 columns: a (int64), b (" in told
    assert ("sheet 'June'" in told) is (suffix == ".xlsx")


def test_what_a_call_of_a_description_reads_is_what_was_described(tmp_path):
    path = tmp_path / "de.csv"
    path.write_bytes(GERMAN.encode("cp1252"))
    call = profile_file(path).rsplit("to be read with ", 1)[1].replace("'de.csv'", repr(str(path)))

    read = eval(call, {"pd": pd})

    assert read.Umsatz.tolist() == [1234.5, 99.9]
    assert read.Region.tolist() == ["Köln", "Düren"]


def test_a_file_that_can_not_be_read_as_its_kind_is_a_problem_too(tmp_path):
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    (tmp_path / "fine.csv").write_text("a\n1\n", encoding="utf-8")
    problems = []

    profile_request([tmp_path / "broken.json", tmp_path / "fine.csv"], {}, 10_000, on_problem=problems.append)

    (problem,) = problems
    assert problem.startswith("broken.json: not readable as json")


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


def hostile_database(path):
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c"
    with sqlite3.connect(path) as database:
        database.execute(f"CREATE VIEW v AS {endless}")
    database.close()


def workbook_of_far_cells(path):
    pytest.importorskip("openpyxl").Workbook().save(path.with_suffix(".empty"))
    rows = "".join(f'<row r="{n}"><c r="XFD{n}"><v>1</v></c></row>' for n in range(1, 10_001))
    sheet = f'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{rows}'
    with zipfile.ZipFile(path.with_suffix(".empty")) as empty, zipfile.ZipFile(path, "w") as made:
        for name in empty.namelist():
            is_sheet = name.endswith("sheet1.xml")
            made.writestr(name, f"{sheet}</sheetData></worksheet>" if is_sheet else empty.read(name))


def long_texts_in_a_dictionary(path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    texts = arrow.DictionaryArray.from_arrays(arrow.array([0] * 10_000, arrow.int32()), arrow.array(["x" * 1_000_000]))
    parquet.write_table(arrow.table({"a": texts}), path, compression="zstd", store_schema=False)


def line_without_end(path):
    with bz2.open(path, "wb", compresslevel=1) as file:
        for _ in range(40):
            file.write(b"x" * (1 << 20))


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("a.csv", lambda path: path.write_bytes(b"a," * 50_000 + b"a\n" + b"1\n" * 1_000_000)),
        ("b.csv", lambda path: path.write_bytes(b"," * 200_000 + b"\n" + b"x" * 200_000)),
        ("c.csv", lambda path: path.write_bytes((b"a," * 60_000 + b"a\n") * 30)),
        ("a.json", lambda path: path.write_text("[" * 5_000 + "]" * 5_000)),
        ("b.json", lambda path: path.write_text("[" * 200_000 + "]" * 200_000)),
        ("a.jsonl", lambda path: path.write_text("[" * 5_000 + "]" * 5_000)),
        ("a.jsonl.bz2", line_without_end),
        ("a.parquet", long_texts_in_a_dictionary),
        ("a.xlsx", workbook_of_far_cells),
        ("a.db", hostile_database),
        ("a.weird", hostile_database),
    ],
)
def test_a_file_that_is_a_bomb_is_named_with_a_reason_and_takes_no_memory_here(tmp_path, name, make):
    make(tmp_path / name)
    problems = []

    told = profile_request([tmp_path / name], {}, 1000, on_problem=problems.append, seconds=4)

    assert f"- {name}: " in told
    assert [one.partition(":")[0] for one in problems] == [name]


def test_a_first_line_that_does_not_fit_is_cut(tmp_path):
    (tmp_path / "wide.json").write_text('{"' + "a" * 19_000 + '":1}')
    (tmp_path / "wide.csv").write_text("a" * 100_000 + "\n1\n")

    assert len(profile_request([tmp_path / "wide.json", tmp_path / "wide.csv"], {}, 1000)) < 2000
