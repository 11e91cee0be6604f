"""Files that are not what their names say, or are empty or cut off; workbooks of all forms; XML, pictures, archives."""

import base64
import bz2
import gzip
import io
import re
import tarfile
import zipfile
import zlib

import pandas as pd
import pytest

from tw_autogen.kernel.guest.files.describe import Describer

ROWS = "region;units\nNorth;1,5\nSouth;2,5\nEast;3\n"
OLD = (
    b"c-rk)O=uHA6#izjyGcr#CbccJLI?$`#$LpW2iw?+76eP}MG-+$6CpHgN=(6e&}z+55IiYf3cYx#dhrJp^yWdR=s^&KM2|fw7Cf|F-@MFf5_4!o"
    b"gO&Z3_vY=JZ~k`P%+BuXrEqcneoqNC7=#DwwjXANPmuVXn-D19wx#K$J`&r-rh?x`6KNWF()!9P=TOdf2^#L{FGvF)Nls!4qgg8zZ6b!b4+$ar"
    b"Fd%e_Jq@=>g6QUcwX;6MdJF5j%zeswKYOmR9w2T}oWN3iG`3g8@o}w}^Ma%W9&(xY?AeV@yp(Z#>AEO$4GiVdiOj#55zzx!0L|P;%1Y%DnIbx9"
    b"3Ky_qM}e=-T74dM{mu0YkpEk?-&@CjL(_p-*r$aI!~z2N;*mKz4o_RD0$LH{9oWEFCXu#Qv5$9IAIC1nQ&ZVoKAJrnm29dhldzHoFm0vt=O|Ey"
    b"NQOxckenx(X^}fPulP{aif`q05FnjI8{1)C4Iyf2_0H!vM<&MNr`R*gZI|B#+hpfq<FYJ4g@c^Kl`=QRdKc>}T<cc0dsuhSpeXGd>r}>}Ip$pD"
    b"+&*e&594iodxgD&?85TVN0Gv(_)fAHM@knu7T?9^(M#{9B$b!f9QsASxOG$FaokCT+BH6~?*3&5@o6D7He0>$+OUQeHp8qXL*vm^Gc;z%XHvd%"
    b"o}c7<>hL|xm-?b6?<BuV@%0+MWa!L@D27p|MuThARgDJompx^^S%+^j-%xy$`O-J2wc~;8I_;r9(Tup!HhtV^b>qfVQ2~BBUd0zR{AbjL_`we="
    b"KF<c~&4vpXE?l^9;ljo5LZ~yBhd(;NCqh%5;^lvxHIjArH_3mCab)Sr(`V^HSd`{4(@^|$!4OVeVuNLz|Ai9AsP!BsF~R+qY&d@DWG*Vlv*CiF"
    b"KevP$ZGXLye*We5zXKCi0*w"
)
"""An `.xls` with the sheet `June`, a title above `land` and `units`, and the sheet `Plain`."""
ODS = (
    '<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
    ' xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
    ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:spreadsheet>'
    '<table:table table:name="S">ROWS</table:table></office:spreadsheet></office:body></office:document-content>'
)
MANIFEST = '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>'
RECORDS = '<?xml version="1.0"?>\n<shop name="A">ITEMS</shop>'.replace(
    "ITEMS", "".join(f'<item id="{at}"><title>t{at}</title><price>{at}.5</price></item>' for at in range(1, 6))
)


def zipped(**members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "."), content)
    return out.getvalue()


def archived(**members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in members.items():
            about = tarfile.TarInfo(f"{name}.csv")
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content.encode()))
    return out.getvalue()


def table_cell(value):
    if isinstance(value, str):
        return f'<table:table-cell office:value-type="string"><text:p>{value}</text:p></table:table-cell>'
    return f'<table:table-cell office:value-type="float" office:value="{value}"/>'


def sheet_of(*rows):
    cells = "".join(f"<table:table-row>{''.join(map(table_cell, row))}</table:table-row>" for row in rows)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", ODS.replace("ROWS", cells))
        archive.writestr("META-INF/manifest.xml", MANIFEST)
    return out.getvalue()


def describe(folder, name):
    ((found,), _) = Describer(folder, apart=False).describe_all([(name, name)], seconds=20)
    return found["headline"], "\n".join([found["headline"], *found["lines"]])


def read(folder, text, name):
    """Return what the first call of a description reads."""
    call = re.findall(r"pd\.read_\w+\(.*\)(?:\[\d+\])?", text)[0]
    return eval(call.replace(repr(name), "path"), {"pd": pd, "path": folder / name})


PROBLEMS = {
    "empty workbook": ("a.xlsx", b"", "not readable as xlsx: it is empty"),
    "empty JSON": ("a.json", b"", "not readable as json: it is empty"),
    "empty Parquet": ("a.pq", b"", "not readable as parquet: it is empty"),
    "workbook that is cut off": ("a.xlsx", zipped(a=ROWS * 99)[:200], "not readable as xlsx: it is cut off or damaged"),
    "sheets that are cut off": ("a.ods", b"PK\3\4\0", "not readable as ods: it is cut off or damaged"),
    "JSON that is cut off": ("a.json", b'[{"a": 1}, {"b": "x', "not readable as json: it is cut off: Unterminated"),
    "JSON that ends early": ("a.json", b'[{"a": 1},', "not readable as json: it is cut off: "),
    "control characters": ("a.csv", b"a,b\n\0\1,\2\n", "not readable as csv: it is no text"),
    "picture": ("a.jpg", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\0\0\0\0\x40\x08", "PNG picture"),
    "picture called CSV": ("a.csv", b"\xff\xd8\xff\xe0\0\x10JFIF", "no csv, whatever its name says: JPEG picture"),
    "compressed text": ("a.json", gzip.compress(b"[1]"), "no json, whatever its name says: compressed, gzip.open"),
    "compressed SQLite": (
        "a.db.gz", gzip.compress(b"SQLite format 3\0" + b"\0" * 99), "sqlite, compressed: gzip.open decompresses it",
    ),
    "XML that is cut off": ("a.xml", RECORDS[:200].encode(), "no well-formed XML, "),
    "JSON called CSV": ("a.csv", b'[{"a": 1},\n {"a": 2}]', "no csv, whatever its name says: JSON: list of 2 objects"),
    "JSON in a first value": ("a.csv", b'{"a": 1};n\n{};5\n', "CSV with ';': "),
    "a column of that name": ("a.csv", b"PAR1,FEA1\n1,2\n", "CSV: 1 rows x 2 columns"),
}  # fmt: skip


@pytest.mark.parametrize("case", PROBLEMS)
def test_what_a_file_is_or_why_it_cannot_be_read_is_said_in_the_first_line(case, tmp_path):
    name, content, said = PROBLEMS[case]
    (tmp_path / name).write_bytes(content)

    headline, _ = describe(tmp_path, name)

    assert headline.startswith(said)


TABLES = {
    "text called a workbook": ("a.xls", ROWS.encode(), "no xls, whatever its name says: CSV with ';'"),
    "tabs called a workbook": ("a.xlsx", ROWS.replace(";", "\t").encode(), "no xlsx, whatever its name says: CSV"),
    "text called JSON": ("a.json", b"a,b\n1,2\n3,4\n5,6\n", "no JSON, whatever its name says: CSV"),
    "gzip called CSV": ("a.csv", gzip.compress(ROWS.encode()), "no csv, whatever its name says: CSV"),
    "bzip2 called CSV": ("a.csv", bz2.compress(ROWS.encode()), "no csv, whatever its name says: CSV"),
    "ZIP called CSV": ("a.csv", zipped(x__csv=ROWS), "no csv, whatever its name says: ZIP archive of 'x.csv'"),
    "XML": ("a.xml", RECORDS.encode(), "XML <shop>, its elements './item': 5 rows x 3 columns"),
    "XML with a name space": ("a.xml", RECORDS.replace("<shop", '<shop xmlns="urn:a"').encode(), "XML <shop>"),
    "XML without a suffix": ("feed", RECORDS.encode(), "XML <shop>"),
    "XML with values beside attributes": (
        "a.xml",
        b'<rates><rate currency="USD">1.0947</rate><rate currency="GBP"> 0.8612\n</rate></rates>',
        "XML <rates>, its elements './rate': 2 rows x 2 columns",
    ),
    "XML with text before children": (
        "a.xml",
        b'<r><p id="1"><c>1</c></p><p id="2">said <c>3</c> that</p></r>',
        "XML <r>, its elements './p': 2 rows x 3 columns",
    ),
    "XML with values that have the name of an attribute": (
        "a.xml",
        b'<r><v v="a">1</v><v v="b">2</v></r>',
        "XML <r>, its elements './v': 2 rows x 1 columns",
    ),
}


@pytest.mark.parametrize("case", TABLES)
def test_a_table_is_described_by_its_content_with_a_call_that_reads_it(case, tmp_path):
    pytest.importorskip("lxml")
    name, content, said = TABLES[case]
    (tmp_path / name).write_bytes(content)

    headline, text = describe(tmp_path, name)
    frame = read(tmp_path, text, name)

    assert headline.startswith(said)
    assert f"{len(frame)} rows x {len(frame.columns)} columns" in headline
    for column, values in frame.items():
        assert f"{column!r}: {'text' if values.dtype.kind not in 'if' else ''}" in text


def test_a_page_called_a_workbook_is_told_as_a_page(tmp_path):
    pytest.importorskip("lxml")
    rows = "<tr><th>a<th>b</tr><tr><td>1<td>x</tr><tr><td>2<td>y</tr>"
    (tmp_path / "a.xls").write_text(f"<html><body><table>{rows}</table>", encoding="utf-8")

    headline, text = describe(tmp_path, "a.xls")

    assert headline.startswith("no xls, whatever its name says: HTML, 1 table")
    assert read(tmp_path, text, "a.xls").shape == (2, 2)


@pytest.mark.parametrize("name", ["a.pq", "a.parq", "a.csv", "a.xls", "a"])
def test_parquet_is_told_whatever_its_name(name, tmp_path):
    pytest.importorskip("pyarrow")
    pd.DataFrame({"n": range(3)}).to_parquet(tmp_path / name)

    headline, text = describe(tmp_path, name)

    assert "Parquet: 3 rows x 1 columns" in headline
    assert ("pd.read_parquet" in text) == (name in ("a.csv", "a.xls"))


def test_arrow_is_told_by_its_other_suffix(tmp_path):
    pytest.importorskip("pyarrow")
    pd.DataFrame({"n": range(3)}).to_feather(tmp_path / "a.ipc")

    assert describe(tmp_path, "a.ipc")[0] == "Arrow, to be read with pd.read_feather: 3 rows x 1 columns"


def test_a_packed_archive_is_listed(tmp_path):
    (tmp_path / "a.tar.gz").write_bytes(archived(one=ROWS, two="a\n1\n"))

    headline, text = describe(tmp_path, "a.tar.gz")

    assert headline == "TAR archive of 2 files"
    assert "'two.csv': 4 bytes" in text


def test_a_table_with_a_nul_is_told_as_pandas_reads_it(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"a,b\nx\0y,1\nz,2\n")

    headline, text = describe(tmp_path, "a.csv")

    assert headline == "CSV, with 1 NUL, shown as \ufffd: 2 rows x 2 columns"
    assert "'b': int, 1 … 2" in text


def test_an_old_workbook_is_told_sheet_by_sheet(tmp_path):
    pytest.importorskip("python_calamine")
    (tmp_path / "a.xls").write_bytes(zlib.decompress(base64.b85decode(OLD)))

    headline, text = describe(tmp_path, "a.xls")
    frame = read(tmp_path, text, "a.xls")

    assert headline.startswith("workbook with 2 sheets")
    assert "sheet 'June': 4 rows x 2 columns, header in line 3" in text
    assert "'units': float, 1 … 7" in text
    assert (list(frame.columns), len(frame)) == (["land", "units"], 4)


def test_open_document_sheets_are_told_as_pandas_reads_them(tmp_path):
    pytest.importorskip("python_calamine")
    (tmp_path / "a.ods").write_bytes(sheet_of(["k", "n"], ["a", 1], ["b", 2.5]))

    _, text = describe(tmp_path, "a.ods")
    frame = read(tmp_path, text, "a.ods")

    assert "sheet 'S': 2 rows x 2 columns" in text
    assert "'n': float, 1 … 2.5" in text
    assert frame.shape == (2, 2)


@pytest.mark.parametrize("name", ["a.csv", "a.xls"])
def test_a_workbook_of_today_is_read_under_another_name(name, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["k", "n"])
    book.active.append(["a", 1])
    book.save(tmp_path / "a.xlsx")
    (tmp_path / "a.xlsx").rename(tmp_path / name)

    headline, text = describe(tmp_path, name)

    assert headline.endswith("workbook with 1 sheet")
    assert headline.startswith("no csv, whatever its name says: " if name == "a.csv" else "workbook")
    assert "1 rows x 2 columns" in text


def test_merged_cells_and_what_formats_of_cells_show_are_named(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    rows = [["Sales"], ["region", "Q1", None, "share"], [None, "units", "price", None]]
    for row in [*rows, *([["N", "S"][at // 3] if at % 3 == 0 else None, at, at + 0.5, at / 10] for at in range(6))]:
        sheet.append(row)
    for merged in ("A1:D1", "B2:C2", "A4:A6", "A7:A9"):
        sheet.merge_cells(merged)
    for at in range(4, 10):
        sheet[f"C{at}"].number_format = "#,##0.00 [$CHF]" if at > 7 else '"$"#,##0.00;[Red]-"$"#,##0.00'
        sheet[f"D{at}"].number_format = "0.0%"
    book.save(tmp_path / "a.xlsx")

    _, text = describe(tmp_path, "a.xlsx")
    frame = read(tmp_path, text, "a.xlsx")

    assert "sheet 'Sheet': 6 rows x 4 columns, header in line 2" in text
    second = "its second line is no row, but names below merged ones, with skiprows=1, header=[0, 1] they are pairs"
    assert f"{second}: ,units,price," in text
    assert ("Q1", "price") in pd.read_excel(tmp_path / "a.xlsx", skiprows=1, header=[0, 1]).columns
    assert "'Q1': int, 0 … 5" in text
    assert "merged cells in 'region' (2): pandas reads the value in the first row of each and nan below" in text
    assert "show what the values don't: $ (4), CHF (2) in 'Unnamed: 2'; % in 'share', so 0.1 is 10 %" in text
    assert (len(frame), frame.Q1.dtype.kind, frame.region.ffill().tolist()) == (6, "i", ["N"] * 3 + ["S"] * 3)


def test_plain_formats_and_a_merged_title_add_no_words(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["Sales"], ["k", "n", "d"], ["a", 1, 2.5], ["b", 2, 3.5]):
        book.active.append(row)
    book.active.merge_cells("A1:C1")
    book.active["B3"].number_format = "#,##0"
    book.active["C3"].number_format = "[$-409]0.00\\%"
    book.save(tmp_path / "a.xlsx")

    _, text = describe(tmp_path, "a.xlsx")

    assert "2 rows x 3 columns, header in line 2" in text
    assert "merged" not in text
    assert "formats" not in text


def test_a_workbook_whose_parts_have_other_names_is_read_by_the_named_call(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["k", "n"])
    book.active.append(["a", 1])
    book.save(tmp_path / "whole.xlsx")
    with zipfile.ZipFile(tmp_path / "whole.xlsx") as whole, zipfile.ZipFile(tmp_path / "a.xlsx", "w") as odd:
        for name in whole.namelist():
            content = whole.read(name).replace(b"xl/workbook.xml", b"xl/book.xml")
            odd.writestr(name.replace("workbook.xml", "book.xml"), content)

    _, text = describe(tmp_path, "a.xlsx")

    assert "1 rows x 2 columns" in text
    assert read(tmp_path, text, "a.xlsx").shape == (1, 2)


def test_a_workbook_without_its_styles_is_told(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["k", "n"])
    book.active.append(["a", 1])
    book.active["B2"].number_format = "0%"
    book.save(tmp_path / "whole.xlsx")
    with zipfile.ZipFile(tmp_path / "whole.xlsx") as whole, zipfile.ZipFile(tmp_path / "a.xlsx", "w") as torn:
        for name in whole.namelist():
            torn.writestr(name, whole.read(name).replace(b' s="1"', b' s="99"'))

    assert "'n': int, always 1" in describe(tmp_path, "a.xlsx")[1]
