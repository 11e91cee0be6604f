"""The calls that descriptions suggest, executed: what they read is the table, and what the description says of it."""

import itertools
import re
from pathlib import Path

import pandas as pd
import pytest

from tw_autogen.kernel import Describer

ROWS = [["Oslo", "5", "x"], ["Bergen, west", "17", "two\n\nlines"], ["Rome", "", "y"], ["Narvik", "8", 'a "z"']]
ROWS += [["Kiel", "12", "x"], ["Ulm", "3", "w"]]
TITLES = {
    "no title": [],
    "title": ["Sales by shop, 2024"],
    "title and empty row": ["Sales by shop", "{0}{0}"],
    "title and blank line": ["Sales by shop", ""],
    "title of two lines": ['"Sales\nby shop"', ""],
    "comment": ["# made on Monday"],
}
GAPS = {"none": [], "separators": ["{0}{0}"], "blank": [""], "blanks": ["  "], "both": ["", "{0}{0}", ""]}
FOOTERS = {
    "no footer": [],
    "at once": ["Source: nobody{0}{0}"],
    "below an empty row": ["{0}{0}", "Source: nobody{0}{0}"],
    "below a blank line": ["", "Source: nobody"],
    "two of them": ["{0}{0}", "Note: made up{0}{0}", "", "{0}{0}", '"Source:\nnobody, 2024"'],
    "empty rows only": ["{0}{0}", "", "{0}{0}"],
}
FORMS = [(",", "\n"), (",", "\r\n"), (";", "\n"), ("\t", "\r\n")]


def text_of(separator, title, gap, footer):
    """Return a table as text, with empty rows or lines between its rows, twice."""
    lines = [*TITLES[title], "{0}".join(["city", "n", "kind"])]
    for at, row in enumerate(ROWS):
        lines.append(
            "{0}".join(f'"{one.replace(chr(34), chr(34) * 2)}"' if re.search('[,\n"]', one) else one for one in row)
        )
        lines += GAPS[gap] if at in (1, 3) else []
    return "".join(f"{line}\n" for line in [*lines, *FOOTERS[footer]]).replace("{0}", separator)


def describe(folder, name):
    ((found,), _) = Describer(folder, apart=False).describe_all([(name, name)], seconds=20)
    return [found["headline"], *found["lines"]]


def read(lines, path):
    """Return what the call of a description reads; `read_csv(path)` where it names none."""
    calls = [line.removeprefix("to be read with ") for line in lines if line.startswith("to be read with ")]
    return eval(calls[0].replace(repr(path.name), "path") if calls else "pd.read_csv(path)", {"pd": pd, "path": path})


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("title", TITLES)
def test_a_call_reads_all_rows_of_a_table_and_nothing_of_its_footer(title, gap, tmp_path):
    path, wrong = tmp_path / "a.csv", {}
    for (separator, end), footer in itertools.product(FORMS, FOOTERS):
        path.write_bytes(text_of(separator, title, gap, footer).replace("\n", end).encode())
        lines = describe(tmp_path, "a.csv")

        found = read(lines, path).dropna(how="all")

        values = [["" if one != one else re.sub(r"\.0$", "", str(one)) for one in row] for row in found.values.tolist()]
        values = [[one.replace("\r\n", "\n") for one in row] for row in values]
        if values != ROWS or list(found.columns) != ["city", "n", "kind"] or f"{len(ROWS)} rows x 3" not in lines[0]:
            wrong[separator, end, footer] = "\n".join([*lines, str(found)])
    assert wrong == {}, next(iter(wrong.values()))


NUMBER = r"[-+.\d][\d.,]*(?:e[-+]?\d+)?"
TABLES = {
    "units": "n,m\nkg,mm\n1,1.5\n2,2.5\n3,4\n",
    "units, below a title and above a footer": "Weights,\n,\nn,m\nkg,mm\n1,1.5\n2,2.5\n3,4\n,\nSource: nobody,\n",
    "heads of groups above the names": "x,a,,\nk,n,m,o\nA,1,2.5,3\nB,4,5.5,6\nC,7,8.5,9\n",
    "units, semicolons": "n;m\n(kg);(mm)\n1.000,5;1,5\n2,5;2,5\n3;4\n",
    "zeros of two signs": "n,m\n0,1.0\n-0,1\n0.0,2\n3,1.00\n",
    "thousands": 'n;m\n"1,299";"12,000.5"\n881;3\n',
    "thousands, and commas that part none": 'n,pair,m\n"1,299","1,5",3\n881,"2,7",\n',
    "numbers beyond those of floats": "n,m\n901656910939770881,1\n901656910939770882,1\n901656910939770882,2\n",
    "a name of numbers and of codes": "id,n,id\n1101,5,01\n1102,6,02\n",
    "decimal commas": "n;m\n1.299;0,5\n881;1.000,25\n",
    "the first row is wide": "a,b\n1,2,9\n3,4\n",
    "a later row is wide": "a,b\n1,2\n3,4,5,6\n7,8\n",
    "the last rows are wide, a footer": "a,b,c\n1,2,3\n4,5,6\n7,8,9,10\n,,\nSource: nobody,,\n",
    "separators at the ends": "a;b;\n1;2;\n3;;\n",
    "wide without a header": "1.5,2,x\n1.5,3,y\n2.5,4,x\n1.5,4,x,7\n",
    "missing ones at an index of a number": "a,b\n1,2\n\n3,\n\n4,5\n\n5,\n",
    "lines of blanks": "a,b\n  \n1,2\n \n3,4\n",
    "blank lines above": "\n\na,b\n1,2\n3,4\n",
    "blanks in front of quotes": 'city, n, kind\n"Oslo", 5, "a, b"\n"Rome", 17, "c"\n"Kiel, north", 3, "d, e"\n',
    "backslashes in front of quotes": 'city,n\n"the \\"old, old\\" town",5\n"x \\"y, z\\"",17\nRome,3\n',
    "backslashes in front of commas": "city,n\nOslo\\, west,5\nRome,17\nKiel\\, north,3\n",
    "backslashes of paths": "path,n\nC:\\data\\x,5\nC:\\data\\y,17,1\nD:\\,3\n",
    "alternating empty rows": "a,b\n" + "1,2\n,\n" * 20_000,
}


def differences(lines, table):
    """Return where a description says something else of its columns than a table holds."""
    wrong = []
    decimal, thousands = ("," if "decimal=','" in lines[-1] else "."), re.search("thousands='(.)'", lines[-1])

    def number(text):
        return float(text.replace(thousands[1] if thousands else " ", "").replace(decimal, "."))

    if f"{len(table)} rows x {len(table.columns)} columns" not in lines[0]:
        wrong.append(f"{lines[0]}: {table.shape}")
    for name, values in table.items():
        said = next((line for line in lines if re.match(rf"(column )?'?{re.escape(str(name))}'?: ", line)), "")
        there, numeric = values.dropna(), pd.api.types.is_numeric_dtype(values)
        missing = re.search(r", (\d+) missing", said)
        right = [
            bool(re.match(r".*?: (int|float),", said)) == numeric or there.empty,
            "empty" in said or int(missing[1] if missing else 0) == len(values) - len(there),
        ]
        if numeric and (span := re.search(rf": \w+, ({NUMBER}) … ({NUMBER}), ", said)):
            right += [abs(number(span[1]) - there.min()) <= abs(there.min()) / 1e5]
            right += [abs(number(span[2]) - there.max()) <= abs(there.max()) / 1e5]
        if distinct := re.search(r", (?:(\d+) distinct|all different)", said):
            right.append(int(distinct[1] or len(there)) == there.nunique())
        wrong += [f"{said}: {values.tolist()[:20]}"] if said and not all(right) else []
    return wrong


@pytest.mark.parametrize("case", TABLES)
def test_numbers_of_a_description_are_those_of_the_table_that_its_call_reads(case, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(TABLES[case], encoding="utf-8")
    lines = describe(tmp_path, "a.csv")

    table = read(lines, path).dropna(how="all")

    assert differences(lines, table) == [], lines


def test_numbers_of_descriptions_of_files_that_others_made_are_true():
    folder = Path(pytest.importorskip("statsmodels").__file__).parent / "datasets"
    found = sorted(one for one in folder.rglob("*.csv") if one.stat().st_size < 20_000)
    assert len(found) > 20
    for path in found:
        lines = describe(path.parent, path.name)
        assert differences(lines, read(lines, path)) == [], path


SMALL = {  # fmt: off
    # name: (file name, content, what is said beside the text)
    "a table": ("a.csv", "city;n\nOslo;5\nRome;17\n", ["to be read with pd.read_csv('a.csv', sep=';')"]),
    "two tables": ("a.csv", "Status,n\nActive,5\n,\nBranch,n\nArmy,3\n", [
        "to be read with pd.read_csv('a.csv', nrows=1)", "to be read with pd.read_csv(…, skiprows=3, nrows=1)"]),
    "an encoding": ("a.csv", "Ort,n\nKöln,5\n".encode("cp1252"),
                    ["to be read with pd.read_csv('a.csv', encoding='cp1252')"]),
    "800 characters": ("a.csv", ",".join(f"name{at:c}" for at in range(65, 91)) + "\n" + f"1{',123' * 25}\n" * 4, []),
    "a page": ("a.html", "<table><tr><th>a<th>b</tr><tr><td>1<td>2</tr><tr><td>3<td>4</tr></table>",
               ["to be read with pd.read_html('a.html')[0]"]),
    "JSON": ("a.json", '{"name": "Oslo", "sizes": [1, 2], "at": {"x": 1, "y": 2}}', []),
}  # fmt: skip


@pytest.mark.parametrize("case", SMALL)
def test_a_small_file_is_shown_as_it_stands_with_what_its_text_does_not_show(case, tmp_path):
    name, content, said = SMALL[case]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    ((found,), _) = Describer(tmp_path, apart=False).describe_all([(name, name)], seconds=20)

    text = content.decode("cp1252") if isinstance(content, bytes) else content
    assert found["whole"] == ["all of it:", *(f"| {line}" for line in text.splitlines()), *said]
    assert sum(map(len, found["whole"])) < sum(map(len, found["lines"]))


def test_a_small_file_whose_text_is_longer_than_its_description_is_described(tmp_path):
    (tmp_path / "a.csv").write_text("n\n" + "1\n" * 400, encoding="utf-8")
    describer = Describer(tmp_path, apart=False)

    ((found,), _) = describer.describe_all([("a.csv", "a.csv")], seconds=20)

    assert found["whole"] == []
    (tmp_path / "b.csv").write_text("day,n\n2024-01-01,5\n", encoding="utf-8")
    assert describer.describe(tmp_path / "b.csv").endswith("all of it:\n  | day,n\n  | 2024-01-01,5")


def test_a_small_file_that_is_shown_in_part_is_not_said_to_be_all_of_it(tmp_path):
    (tmp_path / "b.csv").write_text("day,a,b,c,d\n" + "2024-01-01,5,6,7,8\n" * 7, encoding="utf-8")
    ((found,), _) = Describer(tmp_path, apart=False).describe_all([("b.csv", "b.csv")], seconds=20)

    lines = Describer.fitted_lines(["b.csv:", *(f"  {one}" for one in found["whole"])], 100)

    assert lines[:2] == ["b.csv:", "  its first lines:"]
    assert lines[-1].strip() == "…"
    assert Describer.fitted_lines(found["whole"], 1000)[0] == "all of it:"


def test_a_call_stays_below_the_heading_of_its_table():
    lines = [
        f"table {at}: 9 rows x 2 columns|  | a,b|  | 1,2|  'a': int, 1 … 9|  pd.read_csv(…, skiprows={at})"
        for at in range(9)
    ]
    lines = "|".join(lines).replace("|  |", "|  ¦").split("|")

    kept = Describer.fitted_lines(lines, 700)

    assert [one for one in kept if one.startswith("table ")] == [line for line in lines if line.startswith("table ")]
    assert sum("pd.read_csv" in one for one in kept) == 9
    assert sum(map(len, kept)) < 700


SEPARATED = {
    "tabs around lists of numbers, and at the end": ("a.jpg\t51,47,45\t8,9,6\t\nb.jpg\t3,2,1\t6,5,4\t\n" * 5, (10, 4)),
    "semicolons around decimal commas": ("1,5;2,5;3,5\n4,5;6,5;7,5\n" * 9, (17, 3)),
    "a semicolon ends each line": ("1, I;\n2, L;\n3, V;\n" * 9, (27, 2)),
    "number signs, and commas in texts": ("Abla#Plaza, 6#04510\nAdra#Ancha#4007\nOria#Sol, 3, 2#4810\n" * 9, (27, 3)),
    "section signs": ("city§n§kind\nOslo§5§x\nRome§7§y\nKiel§8§z\n", (3, 3)),
    "only the header has as many": ("id;type;name\n1;a;b\n2;c, d\ne, f\ng\n", (4, 3)),
    "one column of texts with commas": ("comment\nGood\nGood, but slow\nToo big, too loud, too old\n", (3, 1)),
    "a quote that is not closed": ("n,word\n1,a\n2,b\n3,\"c\n4,d\n", (4, 2)),
    "NULs and control characters in a long text": ("n,m\n1,\x02\n2,\0\n" + "3,4\n" * 9999, (10001, 2)),
}  # fmt: skip


@pytest.mark.parametrize("case", SEPARATED)
def test_a_call_reads_what_parts_values_in_rare_ways(case, tmp_path):
    text, shape = SEPARATED[case]
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")

    lines = describe(tmp_path, "a.csv")

    assert read(lines, tmp_path / "a.csv").shape == shape, "\n".join(lines)
    assert f"{shape[0]} rows x {shape[1]} columns" in lines[0].replace("about ", "")


BIG = 1_700_000_000_000_000_001
LONG = {
    # name: (file name, text, whether a call names the type)
    "blank": ("a.csv", f"id,n\n{BIG},1\n,2\n{BIG + 1},3\n", True),
    "blank at the end of a line": ("a.csv", f"n,id\n1,{BIG}\n2,\n3,{BIG + 1}\n", True),
    "NA": ("a.csv", f"id;n\n{BIG};1\nNA;2\n{BIG + 1};3\n", True),
    "negative": ("a.csv", f"id,n\n-{BIG},1\n,2\n3,3\n", True),
    "just too long": ("a.csv", "id,n\n9007199254740993,1\n,2\n", True),
    "no name": ("a.csv", f"1,5,{BIG}\n1,6,\n1,5,{BIG + 2}\n1,7,{BIG + 4}\n", True),
    "with codes": ("a.csv", f"id,zip\n{BIG},0123\n,04567\n", True),
    "two tables": ("a.csv", f"Status,n\nActive,{BIG}\nIdle,\nRetired,7\n,\nBranch,n\nArmy,3\nNavy,9\n", True),
    "none missing": ("a.csv", f"id,n\n{BIG},1\n{BIG + 1},2\n", False),
    "short": ("a.csv", "id,n\n12345678,1\n,2\n", False),
    "exact": ("a.csv", "id,n\n100000000000000000,1\n,2\n", False),
    "longer than 64 bits": ("a.csv", "id,n\n123456789012345678901,1\n,2\n", False),
    "beside words": ("a.csv", f"id,n\n{BIG},1\n,2\nunknown,3\n", False),
}


@pytest.mark.parametrize("case", LONG)
def test_long_integers_beside_missing_values_are_read_exactly(case, tmp_path):
    name, text, typed = LONG[case]
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")

    lines = describe(tmp_path, name)
    calls = [line.strip() for line in lines if "pd.read_csv(" in line]
    frame = read(calls, path)

    assert any("'Int64'" in line for line in lines) == typed
    cells = [one for column in frame for one in frame[column].dropna()]
    found = {str(int(cell)) if isinstance(cell, float) else str(cell) for cell in cells}
    assert set(re.findall(r"\d{16,}", text)) <= {one.lstrip("-") for one in found}
