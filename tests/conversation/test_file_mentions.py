"""Names of files in a user's words."""

import pytest

from tw_autogen.conversation import file_names, folders_named, is_data_or_document, names_in_text
from tw_autogen.conversation.file_mentions import is_mentioned
from tw_autogen.file_suffixes import DATA, DOCUMENTS
from tw_autogen.kernel.guest.files import folder_listing
from tw_autogen.kernel.guest.files.file_description import _KINDS
from tw_autogen.kernel.guest.files.file_kinds import _ALIASES, PICTURES


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("mean of x in data.csv?", ["data.csv"]),
        ("mean of x in data.csv.", ["data.csv"]),
        ("Join a.csv, b.xlsx and (c.tsv.gz); save as ./out.csv", ["a.csv", "b.xlsx", "c.tsv.gz", "out.csv"]),
        ("read sub/data.csv and /data/x.csv", ["sub/data.csv", "/data/x.csv"]),
        ("read 'my data.csv' and \"my data.csv\"", ["my data.csv"]),
        ("look at @sales.csv", ["sales.csv"]),
        ("mean of income in panel.dta and of x in a.sas7bdat and b.sav", ["panel.dta", "a.sas7bdat", "b.sav"]),
        ("x in prices.xml, old.xls, a.xlsm, b.pq and c.htm", ["prices.xml", "old.xls", "a.xlsm", "b.pq", "c.htm"]),
        ("f.xpt, g.xlsb, h.tar.gz, i.ipc, j.ldjson, k.csv.zst", ["f.xpt", "g.xlsb", "h.tar.gz", "i.ipc", "j.ldjson",
         "k.csv.zst"]),
        ("take np.log of pom.xml, build.xml and config.yaml", []),
        ("保存为 图表.png", ["图表.png"]),
        ("see https://x.org/data.csv", []),
        ("see data.csv.bak, data.csvs, x.pkl and run.sh", []),
        (".env, .hidden.csv, conftest.py and package.json", []),
        ("It is 3.5 e.g. for pandas.read_csv and df.csv_like", []),
        ("", []),
        ("„Verkäufe März.csv“, »Ergebnis neu.xlsx«, «a b.csv», “c d.csv” und ‚e f.csv‘",
         ["Verkäufe März.csv", "Ergebnis neu.xlsx", "a b.csv", "c d.csv", "e f.csv"]),
        ("„Nord“ und „a b.csv“: it’s “fine”, see c.csv", ["a b.csv", "c.csv"]),
        ('Mean of "it\'s (1).csv" and of `it\'s (2).csv`?', ["it's (1).csv", "it's (2).csv"]),
        ("It's in 'a b.csv', isn't it, or in 'c.csv'?", ["a b.csv", "c.csv"]),
        ('She said "yes" and sent b.csv; it\'s "late".', ["b.csv"]),
        ("《销售 数据.csv》和「b c.xlsx」", ["销售 数据.csv", "b c.xlsx"]),
        ("Was steht in der Ergebnis.csv-Datei und der a.csv-Tabelle?", ["Ergebnis.csv", "a.csv"]),
        ("请问klein.csv里有几行？把结果保存为result.csv，谢谢", ["klein.csv", "result.csv"]),
        ("sales.csvとcosts.csvを読んで", ["sales.csv", "costs.csv"]),
        ("sales.csv를 읽고 결과.csv로 저장해", ["sales.csv", "결과.csv"]),
        ("sales2024数据.csv 有几行", ["sales2024数据.csv"]),
        ("อ่าน sales.csv แล้วบอกผลรวม", ["sales.csv"]),
        ("打开\"a b.csv\"文件", ["a b.csv"]),
        ("把结果保存为结果.csv", []),
    ],
)  # fmt: skip
def test_names_of_files_are_found_as_they_stand(text, names):
    assert file_names(text) == names


def test_whatever_is_described_can_be_named():
    kinds = {*_KINDS, *_ALIASES} - {*PICTURES, "log"}  # which is a function, too
    described = {f".{kind}" for kind in kinds} | folder_listing._DESCRIBED

    assert described <= DATA | DOCUMENTS
    assert {f".{kind}" for kind in kinds} <= folder_listing._DESCRIBED
    assert [*file_names(" ".join(f"a{suffix}" for suffix in sorted(described)))] == [
        f"a{one}" for one in sorted(described)
    ]


@pytest.mark.parametrize("name", ["a.xls", "a.XLSM", "b.xlsb"])
def test_a_workbook_that_may_hold_macros_is_copied_nowhere_by_its_name(name):
    assert file_names(f"read {name}") == [name]
    assert not is_data_or_document(name)
    assert folders_named(name, f"save it as {name}") == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("请问销售.csv里有几行？", ["销售.csv"]),
        ("分析2024年销售.csv和月报2024.xlsx", ["2024年销售.csv", "月报2024.xlsx"]),
        ("读取data/销售.csv的数据", ["data/销售.csv"]),
        ("读取klein.csv", ["klein.csv"]),
        ("读取没有.csv", []),
    ],
)
def test_where_no_blank_stands_before_a_name_it_is_one_that_exists(text, names):
    there = {"销售.csv", "2024年销售.csv", "年销售.csv", "月报2024.xlsx", "data/销售.csv"}

    assert file_names(text, there.__contains__) == names


@pytest.mark.parametrize(
    ("name", "text", "mentioned"),
    [
        ("a.csv", "look at a.csv", True),
        ("a.csv", "data/a.csv, please", True),
        ("a.csv", "aa.csv, b-a.csv and .a.csv, then a.csv", True),
        ("a.csv", "aa.csv, b-a.csv, a.csvs, a.csv-b and .a.csv", False),
        ("a.csv", "a.csv.", True),
        ("a[1].csv", "a1.csv", False),
        ("größe.csv", "die größe.csv!", True),
        ("a a a.csv", "a a a a.csv", True),
        ("a.csv", "", False),
        ("a.csv", "the a.csv-file", True),
        ("结果.csv", "把结果保存为结果.csv了", True),
    ],
)
def test_a_file_is_mentioned_by_its_name_as_a_word(name, text, mentioned):
    assert is_mentioned(name, text) is mentioned


def test_a_folder_of_many_files_is_looked_through_at_once(cpu_seconds):
    began = cpu_seconds()

    assert not any(is_mentioned(f"f{number:06}.csv", "f000.csv of an agent " * 400) for number in range(30_000))
    assert cpu_seconds() - began < 2  # a regular expression for each took 11


@pytest.mark.parametrize(
    ("text", "found"),
    [("a" * 100_000, 0), ("a " * 5000, 1), ("b-" * 50_000, 0), ("a" * 200 + ".", 1)],
    ids=["one word", "many words", "hyphens", "the end"],
)
def test_names_that_stand_at_each_place_of_a_text_are_looked_for_in_linear_time(text, found, cpu_seconds):
    names = ["a" * length for length in range(1, 250)]
    began = cpu_seconds()

    assert len(names_in_text(names, text)) == found
    assert sum(is_mentioned(name, text) for name in names) == found
    assert cpu_seconds() - began < 4


def test_names_in_a_long_text_take_linear_time(cpu_seconds):
    began = cpu_seconds()

    assert file_names("，请看a.csv 和 words, words " * 20_000) == ["a.csv"]
    assert cpu_seconds() - began < 5


def test_folders_in_a_long_text_without_blanks_take_linear_time(cpu_seconds):
    began = cpu_seconds()

    assert folders_named("a.csv", "请看结果" * 20_000 + "，结果/a.csv") == ["结果/"]
    assert cpu_seconds() - began < 2
