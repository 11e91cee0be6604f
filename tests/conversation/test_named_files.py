"""Names of files in a user's words."""

import pytest

from tw_autogen.conversation import file_names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("mean of x in data.csv?", ["data.csv"]),
        ("mean of x in data.csv.", ["data.csv"]),
        ("Join a.csv, b.xlsx and (c.tsv.gz); save as ./out.csv", ["a.csv", "b.xlsx", "c.tsv.gz", "out.csv"]),
        ("read sub/data.csv and /data/x.csv", ["sub/data.csv", "/data/x.csv"]),
        ("read 'my data.csv' and \"my data.csv\"", ["my data.csv"]),
        ("look at @sales.csv", ["sales.csv"]),
        ("保存为 图表.png", ["图表.png"]),
        ("see https://x.org/data.csv", []),
        ("see data.csv.bak, data.csvs, x.pkl and run.sh", []),
        (".env, .hidden.csv, conftest.py and package.json", []),
        ("It is 3.5 e.g. for pandas.read_csv and df.csv_like", []),
        ("", []),
    ],
)
def test_names_of_files_are_found_as_they_stand(text, names):
    assert file_names(text) == names
