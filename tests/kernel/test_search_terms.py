"""What the beginning of a file says of its content, for ranking and for the list of a folder."""

import datetime
import gzip
import json
import sqlite3
import zipfile
from contextlib import closing

import pytest

from tw_autogen.kernel import Describer, KernelSettings, LocalKernel
from tw_autogen.kernel.guest.files.folder_listing import list_files
from tw_autogen.kernel.guest.files.search_terms import SearchTerms, read_search_terms


def days(count, first="2000-01-01"):
    start = datetime.date.fromisoformat(first)
    return [str(start + datetime.timedelta(days=one)) for one in range(count)]


SHUFFLED = days(9000)[::7] + days(9000)[1::7]
TABLES = {
    # name: (file name, content, heads, values, dated, first and last)
    "years": ("a.csv", "Year,n\n2003,1\n2001,2\n", "Year n", "", "Year", "2001 2003"),
    "title": ("a.csv", "Fraud by Year,\n,\nYear,n\n2001,1\n2003,2\n", "Fraud by Year  Year n", "", "Year", "2001 2003"),
    "days": ("a.csv", "day,town\n2003-02-01,Oslo\n2002-01-05,Kiel\n", "day town", "Oslo Kiel", "day",
             "2002-01-05 2003-02-01"),
    "days of named months": ("a.csv", "n,d\n1,5-Jan-03\n2,31-Dec-02\n", "n d", "5-Jan-03 31-Dec-02", "d",
                             "2002-12-31 2003-01-05"),
    "day or month first": ("a.csv", "d\n01/02/2003\n03/04/2005\n", "d", "", "d", "2003 2005"),
    "years in the header": ("a.csv", "land,2001,2002,2003\nA,1,2,3\n", "land 2001 2002 2003", "", "", "2001 2003"),
    "prices like years": ("a.csv", "price\n1999\n2001\n", "price", "", "", " "),
    "ages like years": ("a.csv", "years,n\n12,1\n14,2\n", "years n", "", "", " "),
    "semicolons, compressed": ("a.csv.gz", gzip.compress(b"Jahr;Ort\n2001;Ulm\n2002;Bonn\n"), "Jahr Ort", "Ulm Bonn",
                               "Jahr", "2001 2002"),
    "a long table in the order of time": (
        "a.csv", "day,n\n" + "".join(f"{day},1\n" for day in days(5000)), "day n", "", "day", "2000-01-01 2013-09-08"),
    "a long table, newest first": (
        "a.csv", "day,n\n" + "".join(f"{day},1\n" for day in days(5000)[::-1]), "day n", "", "day",
        "2000-01-01 2013-09-08"),
    "a long table with older rows within": (
        "a.csv", "day,n\n" + "".join(f"{day},1\n" for day in (*days(1500), *days(700, "1990-01-01"), *days(3000))),
        "day n", "", "", " "),
    "a long table in no order": (
        "a.csv", "day,n\n" + "".join(f"{one},1\n" for one in SHUFFLED), "day n", "", "", " "),
    "JSON": ("a.json", json.dumps([{"city": "Ulm", "n": 1}, {"city": "Bonn"}]), "city n", "Ulm n Bonn", "", " "),
    "page": ("a.html", "<title>Big towns</title><p>Ulm &amp; Bonn", "Big towns Ulm & Bonn", None, "", " "),
    "manual": ("a.md", "# Fees\n\nwords\n\n## Taxes\n", "Fees Taxes", "# Fees words ## Taxes", "", " "),
    "no text": ("a.csv", b"\0\1\2" * 50, None, None, "", " "),
    "no archive": ("a.xlsx", b"PK", "", "", "", " "),
    "no database": ("a.db", b"none", "", "", "", " "),
    "not compressed": ("a.csv.gz", b"none", "", "", "", " "),
    "empty": ("a.csv", b"", None, "", "", " "),
    "of another kind": ("a.png", b"none", "", "", "", " "),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLES)
def test_a_file_is_found_by_its_heads_its_short_texts_and_what_it_covers(case, tmp_path):
    name, content, heads, values, dated, span = TABLES[case]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())

    found = read_search_terms(str(path))

    assert heads is None or found.heads.split() == heads.split()
    if not case.startswith(("day", "a long")):
        assert values is None or found.values == values
    assert (found.dated, f"{found.first} {found.last}") == (dated, span)


def test_sheets_of_workbooks_and_tables_of_databases_are_heads(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "Budget & more"
    book.active.append(["salary", "bonus"])
    book.save(tmp_path / "a.xlsx")
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        database.execute("CREATE TABLE stations (owl TEXT)")
        database.commit()

    book_terms, base_terms = (read_search_terms(str(tmp_path / name)) for name in ("a.xlsx", "a.db"))

    assert book_terms.heads == "Budget & more salary bonus"
    assert "stations (owl TEXT)" in base_terms.heads


def test_what_can_not_be_unpacked_has_no_terms(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as made:
        made.writestr("other", "x")

    assert read_search_terms(str(tmp_path / "a.xlsx")) == SearchTerms()


def test_the_list_of_a_folder_says_what_files_cover(tmp_path):
    for name, text in {
        "rain.csv": "year,mm\n2001,5\n2004,6\n",
        "flow-2001.csv": "site,n\nA,1\n",
        "flow-2002.csv": "site,n\nB,2\n",
        "flow-2007.csv": "site,n\nC,2\n",
        "part1.csv": "day,n\n2001-05-06,1\n2001-06-06,1\n",
        "part2.csv": "day,n\n2002-05-06,1\n2002-06-06,1\n",
        "part3.csv": "day,n\n2003-05-06,1\n2003-06-06,1\n",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")

    lines = Describer(tmp_path, apart=False).list_folder(str(tmp_path), layouts=True, max_lines=40, seconds=20)["lines"]

    assert lines[1:] == [
        "'flow-2001.csv' … 'flow-2007.csv' (3 files, 11 B each, 2001–2002, 2007)",
        "'part1.csv' … 'part3.csv' (3 files, 32 B each, 'day' 2001-05-06 … 2003-06-06)",
        "'rain.csv' 22 B, 'year' 2001 … 2004",
    ]


@pytest.mark.parametrize("name", ["plot 10²", "1²3.csv", "x١٢.csv", "a\udcff.csv"])
def test_a_file_of_any_name_is_listed(tmp_path, name):
    try:
        (tmp_path / name).touch()
    except OSError:
        pytest.skip("no file system for this name")

    listed = Describer(tmp_path, apart=False).list_folder(str(tmp_path), layouts=True, max_lines=40, seconds=20)
    assert listed["lines"] == ["1 file, 0 B", f"{name!r} 0 B"]


def test_a_folder_whose_gitignore_is_closed_to_code_is_listed(tmp_path):
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    (tmp_path / "data").mkdir(mode=0o755)
    (tmp_path / "data" / "a.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    (tmp_path / "data" / ".gitignore").touch(0)
    (tmp_path / "work").mkdir()

    with LocalKernel(tmp_path / "work", settings=KernelSettings(read=(str(tmp_path / "data"),))) as kernel:
        listed = kernel.list_files(str(tmp_path / "data"), layouts=True, max_lines=40, seconds=20)

    assert (listed["problem"], listed["lines"][1:]) == ("", ["'a.csv' 8 B"])


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        ("**/[Bb]uild/*", ["a b.csv", "logs/l1.csv", "logs/old/l2.csv"]),
        ("logs/l[0-9].csv\na\\ b.csv", ["logs/old/l2.csv", "src/Build/x.csv"]),
        ("logs/**/l?.csv\nsrc/[^a]*", ["a b.csv"]),
        ("logs/**", ["a b.csv", "src/Build/x.csv"]),
        ("/**" * 19 + "/x.cs", ["a b.csv", "logs/l1.csv", "logs/old/l2.csv", "src/Build/x.csv"]),
    ],
)  # fmt: skip
def test_a_gitignore_means_in_the_list_of_a_folder_what_it_means_to_git(tmp_path, rules, left):
    for name in ("a b.csv", "logs/l1.csv", "logs/old/l2.csv", "src/Build/x.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".gitignore").write_text(rules, encoding="utf-8")

    assert sorted(one.name for one in list_files(str(tmp_path))[0]) == left
