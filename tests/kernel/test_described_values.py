"""What descriptions of files say of values is true of all of them: of long texts, of mixed signs, of late values."""

import sqlite3
from contextlib import closing

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tw_autogen.kernel import Describer

GROUPS = [(f"{place}", at, at * 10.5) for place in "ABC" for at in range(4)]


def grouped(subtotal, total, end=""):
    """Return a table with three subtotals of 63 and a total of 189."""
    lines = ["place,k,v"]
    for at, (place, k, value) in enumerate(GROUPS):
        lines += [f"{place},{k},{value}", *([f"{subtotal} {place},,63.0"] if at % 4 == 3 else [])]
    return "\n".join([*lines, *filter(None, [end]), f"{total},,189.0", ""])


def lined(header, line, count=40):
    """Return a table of the lines that `line` returns for the numbers from 0 on."""
    return "\n".join([header, *map(line, range(count)), ""])


def thousands(at, sign="."):
    return f"{at % 9 + 1}{sign}{at * 37 % 1000:03}"


def of_words(text):
    """Return a table with a column of words of a text, many in each row."""
    return lined("n,t", lambda at: f"{at},{' '.join(text.split()[at % 5 :: at % 3 + 1])}", 300)


RUSSIAN = "Все люди рождаются свободными и равными в своем достоинстве и правах, они наделены разумом и совестью"
ARABIC = "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق وقد وهبوا عقلا وضميرا وعليهم أن يعامل بعضهم"
HEBREW = "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם כולם חוננו בתבונה ובמצפון לפיכך חובה עליהם"
GREEK = "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα, είναι"

TABLES = {
    # name: (file name, content, what is said, what is not said)
    "points between thousands beside percent with a decimal comma": (
        "a.csv", lined("s;n;p", lambda at: f"S{at};{thousands(at)};{at},{at % 10} %"),
        ["'n': int, 1.000 … 9.962", "sep=';', decimal=',', thousands='.'"], ["float"],
    ),
    "beside euros": (
        "a.csv", lined("s;n;p", lambda at: f"S{at};{thousands(at)};{at},{at % 10}7 €"),
        ["'n': int", "decimal=',', thousands='.'"], ["float"],
    ),
    "beside euros with thousands": (
        "a.csv", lined("s;n;p", lambda at: f"S{at};{thousands(at)};EUR {thousands(at)},50"),
        ["'n': int", "decimal=',', thousands='.'"], ["float"],
    ),
    "beside kilograms": (
        "a.csv", lined("s;n;p", lambda at: f"S{at};{thousands(at)};{at},{at % 10} kg"),
        ["'n': int", "decimal=',', thousands='.'"], ["float"],
    ),
    "beside quoted percent, commas": (
        "a.csv", lined("s,n,p", lambda at: f'S{at},{thousands(at)},"{at},{at % 10} %"'),
        ["'n': int", "decimal=',', thousands='.'"], ["float"],
    ),
    "commas between thousands beside dollars": (
        "a.tsv", lined("s\tn\tp", lambda at: f"S{at}\t{thousands(at, ',')}\t${at}.{at % 10}9"),
        ["'n': int", "thousands=','"], ["float", "decimal="],
    ),
    "in a page": (
        "a.html", "<table><tr><th>s</th><th>n</th><th>p</th></tr>" + "".join(
            f"<tr><td>S{at}</td><td>{thousands(at)}</td><td>{at},{at % 10} %</td></tr>" for at in range(40)
        ) + "</table>",
        ["'n': int, 1000 … 9962", "decimal=',', thousands='.'"], ["float"],
    ),
    "percents of both signs tell nothing": (
        "a.csv", lined("s;n;p;q", lambda at: f"S{at};{thousands(at)};{at},{at % 10} %;{at}.{at % 10} %"),
        ["'n': float", "points in 'n' may stand between thousands"], ["decimal="],
    ),
    "plain decimals count more than percent": (
        "a.csv", lined("s;n;p;q", lambda at: f"S{at};{thousands(at)};{at},{at % 10} %;{at}.{at % 10}"),
        ["'n': float", "'q': float"], ["decimal="],
    ),
    "dates beside many of another language": (
        "a.csv",
        lined("day,n", lambda at: f"{at % 28 + 1}-{'Jan-2024' if at % 20 != 7 else 'Mai-2026'},1", 300),
        ["date text D-Mon-YYYY, e.g. '1-Jan-2024', odd: '8-Mai-2026' ", "and 3 more"], ["…"],
    ),
    "dates beside a few others": (
        "a.csv", lined("day,n", lambda at: f"2024-01-{at % 28 + 1:02},1") + "never,2\n",
        ["date text YYYY-MM-DD, 2024-01-01 … 2024-01-28, odd: 'never' (1)"], ["more"],
    ),
    "dates of figures beside many others": (
        "a.csv", lined("day,n", lambda at: f"{at % 28 + 1:02}.01.2024,1" if at % 15 else f"spring {at},1", 90),
        ["date text DD.MM.YYYY (day first), e.g. '02.01.2024', odd: 'spring 0' (1)", "and 2 more"], ["… "],
    ),
    "months of Italian": (
        "a.csv", lined("day,n", lambda at: f"{at % 28 + 1} {('marzo', 'novembre', 'febbraio')[at % 3]} 2024,1"),
        ["'day': text, all different"], ["date"],
    ),
    "months of German, most of them": (
        "a.csv", lined("day,n", lambda at: f"{at % 28 + 1}. {('Januar', 'Februar', 'Juni', 'August')[at % 4]} 2024,1"),
        ["'day': text"], ["date"],
    ),
    "months of English, long and short": (
        "a.csv", lined("day,n", lambda at: f"{at % 28 + 1} {('March', 'Sept.', 'September', 'JULY')[at % 4]} 2024,1"),
        ["date text D-Mon-YYYY, 1 March 2024 … "], ["odd"],
    ),
    "months of English without days": (
        "a.csv", lined("m,n", lambda at: f"{('March', 'June', 'Aug', 'October')[at % 4]} {2000 + at},1"),
        ["date text Mon-YYYY, March 2000 … October 2039"], ["odd"],
    ),
    **{
        f"subtotals {subtotal}": (
            "a.csv", grouped(subtotal, total),
            ["4 rows with ", f"'{total}'", "totals: 'v' is the sum of other rows"], [],
        )
        for subtotal, total in [
            ("Zwischensumme", "Gesamt"), ("Sous-total", "Total général"), ("Sub-total", "Grand Total"),
            ("Teilsumme", "Summe"), ("Subtotaal", "Totaal"), ("Mezisoučet", "Celkem"), ("Подытог", "Итого"),
            ("소계", "합계"), ("Részösszeg", "Összesen"), ("Delsumma", "Totalt"), ("Zwischentotal", "Gesamttotal"),
        ]
    },
    "a total below subtotals that are not known as such": (
        "a.csv", grouped("Halfway", "Gesamt"),
        ["the last row may be a total ('v' is not the sum of the others): Gesamt,,189.0"], [],
    ),
    "a total below an average": (
        "a.csv", lined("x,v", lambda at: f"x{at},{at}") + "Average,19.5\nTotal,780\n",
        ["the last row may be a total ('v' is not the sum of the others): Total,780"], [],
    ),
    "numbers as names of columns above names of rows, as R writes them": (
        "a.csv", lined('"","142.24","144.78","147.32"', lambda at: f'"{9.4 + at / 10:.1f}",{at % 3},{at % 5},0', 12),
        ["12 rows x 4 columns", "'142.24': int, 0"], ["header=None"],
    ),
    "numbers as names that do not grow, which may be data": (
        "a.csv", lined(",0.5,0.25,0.75", lambda at: f"x{at},{at % 3},{at % 5},{at % 2}", 12),
        ["12 rows x 4 columns", "'0.25': int", "if that line is data, read it with header=None"], ["no names"],
    ),
    "numbers above names of rows without a place of their own": (
        "a.csv", lined('"1.5";"2.5"', lambda at: f'"{at + 0.5}";{at % 3}.5;{at % 5}.5', 12),
        ["12 rows x 2 columns", "begin its rows without a name"], ["no names"],
    ),
    "a first row that lacks a value above values that come again": (
        "a.csv", lined(",1.5,2.5", lambda at: f"{at % 3},{at % 3}.5,{at % 5}.5", 12),
        ["13 rows x 3 columns", "header=None"], [],
    ),
    "few letters of Chinese between many digits": (
        "a.csv",
        lined("日期,金额,城市", lambda at: f"2024年{at % 12 + 1}月{at % 28 + 1}日,{at},北京", 60).encode("gbk"),
        ["CSV, gb18030 (guessed by its letters)", "'金额'", "encoding='gb18030'"], ["cp1252"],
    ),
    "few letters of Hebrew between many digits": (
        "a.csv", lined("עיר,n", lambda at: f"{('חיפה', 'אילת', 'ירושלים')[at % 3]} {at * 971},{at}").encode("cp1255"),
        ["CSV, cp1255 (guessed by its letters)", "'עיר'"], ["cp1252"],
    ),
    "few letters of Arabic between many digits": (
        "a.csv", lined("مدينة,n", lambda at: f"{('دبي', 'الرياض')[at % 2]} {at * 971},{at}").encode("cp1256"),
        ["CSV, cp1256 (guessed by its letters; it may be iso8859_6 or another one): ", "'مدينة'"], ["cp1252"],
    ),
    **{
        f"letters of {encoding}": (
            "a.csv", of_words(words).encode(encoding),
            [f"CSV, {encoding} (guessed by its letters): 300 rows"], [],
        )
        for encoding, words in [
            ("cp1251", RUSSIAN), ("koi8_r", RUSSIAN), ("iso8859_5", RUSSIAN), ("cp866", RUSSIAN),
            ("cp1256", ARABIC), ("iso8859_6", ARABIC), ("cp1253", GREEK),
        ]
    },
    "letters of Hebrew, which may be Cyrillic ones": (
        "a.csv", of_words(HEBREW).encode("cp1255"),
        ["letters; it may be cp1255 or "], [],
    ),
    "a few letters of Russian": (
        "a.csv", "город,n\nОмск,1\n".encode("koi8_r"), ["guessed by its letters; it may be "], [],
    ),
    "letters of French side by side": (
        "a.csv", lined("année,créée", lambda at: f"été {at},réélu {at}", 20).encode("cp1252"),
        ["CSV, cp1252: ", "'créée'"], ["other letters"],
    ),
    "letters of Finnish side by side": (
        "a.csv", lined("yö,n", lambda at: f"päämäärä {at},{at}", 20).encode("cp1252"), ["CSV, cp1252: "], ["letters"],
    ),
    "integers among decimals of JSON": (
        "a.json", '[{"a": 1}, {"a": 1.0}, {"a": 2.5}, {"a": 8}, {"a": 8.0}]', ["'a': float, 1 … 8, 3 distinct"], [],
    ),
    "one number of JSON in two forms": ("a.json", '[{"a": 1}, {"a": 1.0}]', ["'a': float, always 1"], ["distinct"]),
    "numbers of JSON in one form": ("a.json", '[{"a": 1}, {"a": 2.5}]', ["'a': float, 1 … 2.5, all different"], []),
    "no numbers of JSON": ("a.json", '[{"a": NaN}, {"a": NaN}]', ["'a': float, always nan"], []),
    "long integers of JSON": (
        "a.jsonl", "".join(f'{{"a": {2**63 + at}}}\n' for at in range(9)), ["9223372036854775808 … ", "all different"],
        [],
    ),
    "elements in children of XML, and codes": (
        "a.xml", "<r>" + "".join(
            f'<o id="{at:03}"><v unit="kg">{at}</v><items><it>{at}</it><it>7</it></items></o>' for at in range(9)
        ) + "</r>",
        ["elements that read_xml leaves out: 'it' in 'items'", "attributes that read_xml leaves out: 'unit' in 'v'",
         "dtype={'id': str}"], ["several"],
    ),
    "children of XML of one name": (
        "a.xml", "<r>" + "".join(f"<o><t>a</t><t>b</t><v>{at}</v></o>" for at in range(9)) + "</r>",
        ["of several children of one name read_xml keeps the last: 't'"], ["leaves out", "dtype"],
    ),
    "numbers of rows and columns with classes, in front of rows": (
        "a.csv", lined("40,4,low,middle,high", lambda at: f"{at / 10},{at % 7},{at % 5}.5,{at},{at % 3}"),
        ["40 rows x 5 columns, first row in line 2", "column 4: int, 0", "'a.csv', header=None, skiprows=1"], ["'low'"],
    ),
    "a number of rows in front of them": (
        "a.csv", lined("40", lambda at: f"{at / 10},{at % 7},{at % 5}.5"), ["40 rows x 3 columns, first row in line 2"],
        ["'40'", "sep="],
    ),
    "a row without names whose first number is that of the rows": (
        "a.csv", lined("40,3,7,1", lambda at: f"{at % 9},{at % 7},{at % 5},{at % 2}"), ["rows x 4 columns"],
        ["line 2", "skiprows"],
    ),
    "sentences in front of rows without names": (
        "a.csv", lined("By the office.\nRounded, but some are missing.", lambda at: f"x,{at},{at % 5}.5,y{at % 3}"),
        ["40 rows x 4 columns, first row in line 3", "column 1: int, 0 … 39", "header=None, skiprows=2"], ["office.'"],
    ),
    "a sentence with commas in front of names": (
        "a.csv", lined("Sales of our shops, in Oslo, and Kiel.\nday,shop,n", lambda at: f"{at % 28 + 1}.1.24,x,{at}"),
        ["40 rows x 3 columns, header in line 2", "'n': int, 0 … 39"], ["odd", "a sentence"],
    ),
    "what may be a sentence with commas in front of rows": (
        "a.csv", lined("Sales of all shops, in Oslo, and in Kiel", lambda at: f"x{at},{at % 5},{at}"),
        ["its names may be a sentence about the table: then read it with skiprows=1, header=None"], [],
    ),
    "names with blanks after commas": (
        "a.csv", lined("Name, Age, Place of birth", lambda at: f"x{at},{at % 5},{at}"), ["' Age'"], ["sentence"],
    ),
    "addresses in lines of one column": (
        "a.csv", lined("address of it", lambda at: f"Street {at}, {10115 + at}, Berlin", 12), ["12 rows x 1 columns"],
        ["header=None"],
    ),
    "a name with a word for a total that is no sum": (
        "a.csv", lined("x,v", lambda at: f"x{at},{at}") + "All Saints,3\n", [], [" total"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLES)
def test_what_is_said_of_values_is_true_of_all_of_them(case, tmp_path):
    name, content, said, unsaid = TABLES[case]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    assert_said(describe(tmp_path, name), said, unsaid)


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


def test_lists_structs_and_maps_of_parquet_are_told_by_their_types(tmp_path):
    values = {
        "m": pa.array([[("a", 1)]] * 3, pa.map_(pa.string(), pa.int32())),
        "s": pa.array([{"q": 7}] * 3, pa.struct([("q", pa.int16())])),
        "l": pa.array([[1.5]] * 3, pa.list_(pa.float32())),
    }
    pq.write_table(pa.table(values), tmp_path / "a.parquet")

    said = [
        "types in the file, of which a map is read as a list of pairs: 'm' map<string, int32",
        "; 's' struct<q: int16>",
    ]
    assert_said(describe(tmp_path, "a.parquet"), [*said, "; 'l' list<element: float>"])


def test_ranges_of_long_schema_tables_are_those_of_all_rows(tmp_path):
    count, days = 90_000, pd.date_range("2015-01-01", periods=90_000, freq="h")
    table = pd.DataFrame(
        {"id": range(count), "day": days.strftime("%Y-%m-%d %H:%M"), "v": [*range(9), *[3] * (count - 9)]}
    )
    table["text"], table["loose"] = (
        [str(at) for at in range(count)],
        [f"{2015 + at % 9}-{at % 12 + 1}-1" for at in range(count)],
    )
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        table.to_sql("a", database, index=False)
    table.assign(at=days).to_parquet(tmp_path / "a.parquet", row_group_size=30_000)

    for name in ("a.db", "a.parquet"):
        told = {line.strip().partition(":")[0]: line for line in describe(tmp_path, name).splitlines()}
        assert told["'id'"].endswith("all different, in all rows 0 … 89999")
        assert told["'day'"].endswith(f"in all rows 2015-01-01 00:00 … {table.day.iloc[-1]}")
        assert not [column for column in ("v", "text", "loose") if "in all rows" in told[f"'{column}'"]]
    assert f"in all rows 2015-01-01 00:00:00 … {days[-1]}" in told["'at'"]


def test_the_ranges_of_a_view_that_takes_too_long_are_left_out(tmp_path):
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        database.execute(
            "CREATE VIEW v AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c"
        )

    assert_said(describe(tmp_path, "a.db"), ["view 'v': more than", "'n': any, 1 … "], ["in all rows"])


HEADS = {
    # name: (rows above the data, merged cells, what is said, what is not said)
    "three rows": (
        [["", "2023", None, None, None, "2024", None, None, None], ["", "H1", None, "H2", None, "H1", None, "H2", None],
         ["land", *["Q1", "Q2", "Q3", "Q4"] * 2]],
        ["B1:E1", "F1:I1", "B2:C2", "D2:E2", "F2:G2", "H2:I2"],
        ["3 rows x 9 columns, header in line 3", "'land': text", "8 columns, int",
         "2 lines above the names may hold heads of them, with header=[0, 1, 2] they are tuples"], ["odd", "Unnamed"],
    ),
    "below a title, names in both rows": (
        [["Report", None, None, None, None, None], [], ["region", "town", "Q1", None, "Q2", None],
         [None, None, "plan", "real", "plan", "real"]],
        ["A1:F1", "C3:D3", "E3:F3"],
        ["3 rows x 6 columns, header in line 3", "'region': text", "'Q1': int", "with skiprows=2, header=[0, 1]",
         "skiprows=[0, 1, 3]"], ["Unnamed: 0", "twice"],
    ),
    "below a title, names in the lower row": (
        [["Report", None, None, None, None], [], [None, "Q1", None, "Q2", None],
         ["region", "plan", "real", "plan", "real"]],
        ["A1:E1", "B3:C3", "D3:E3"],
        ["3 rows x 5 columns, header in line 4", "'region': text", "with skiprows=2, header=[0, 1]"], ["Unnamed"],
    ),
    "merged cells that end the sheet": ([["a", "b", "c"], ["x", 1, 2], ["y", 3, 4], ["z", 5, 6]], ["A7:B7"],
                                        ["'a': text"], []),
}  # fmt: skip


@pytest.mark.parametrize("case", HEADS)
def test_names_below_merged_ones_are_told_by_the_rows_they_span(case, tmp_path):
    above, merged, said, unsaid = HEADS[case]
    book = openpyxl.Workbook()
    for row in [*above, *([place, *range(1, len(above[-1]))] for place in ("DE", "FR", "IT"))]:
        book.active.append(row)
    for cells in merged:
        book.active.merge_cells(cells)
    book.save(tmp_path / "a.xlsx")

    assert_said(describe(tmp_path, "a.xlsx"), said, unsaid)


def test_hidden_rows_and_columns_of_a_sheet_are_told(tmp_path):
    book = openpyxl.Workbook()
    for row in [["day", "n", "m"], *([f"d{at}", at, at * 2] for at in range(9))]:
        book.active.append(row)
    book.active.row_dimensions[3].hidden = book.active.row_dimensions[4].hidden = True
    book.active.column_dimensions["C"].hidden = True
    book.save(tmp_path / "a.xlsx")

    assert_said(describe(tmp_path, "a.xlsx"), ["2 hidden rows, hidden columns: C; pandas reads them all the same"])
