"""What a prompt says of a request's files, its variables and the user's folder, so that no step only looks at them."""

import json
import os
import re
import shutil
import sys
import time

import pandas as pd
import pytest

from tw_autogen import open_session
from tw_autogen.code_interpreter import CodeInterpreter
from tw_autogen.kernel import Describer
from tw_autogen.planner import Planner
from tw_autogen.session import Session
from tw_autogen.session.path_grants import Grants
from tw_autogen.session.request_descriptions import RequestDescriptions, Told
from tw_autogen.session.settings import SessionSettings
from tw_autogen.session.variable_descriptions import profile_value
from tw_autogen.testing import FakeKernel, ScriptedModel, plans


@pytest.fixture
def here(tmp_path):
    """Give a folder of the user's, with data, secrets, and what git is told to leave out."""
    folder = tmp_path / "mine"
    for name, text in {
        "sales.csv": "day,units\n2024-01-01,3\n",
        "notes.md": "Prices are net.\n",
        "run.py": "canary = 1\n",
        "water/test-2001.csv": "site,value\nA,1\n",
        "water/test-2002.csv": "site,value\nB,2\n",
        "water/test-2010.csv": "site,value\nC,3\n",
        "water/test-2011.csv": "Title of it,,\n,,\nplace,value,unit\nC,3,m\n",
        "states/Alabama.csv": "city,n\nX,1\n",
        "states/Texas.csv": "city,n\nY,1\n",
        "states/Utah.csv": "city,n\nZ,1\n",
        ".env": "canary",
        ".git/config": "canary",
        ".tw/sessions/a.csv": "canary\n1\n",
        "server.pem": "canary",
        "id_rsa": "canary",
        "db_credentials.json": '{"canary": 1}',
        "secrets/inner.csv": "canary\n1\n",
        "build/out.csv": "canary\n1\n",
        "raw/kept.csv": "a,b\n1,2\n",
        "raw/dropped.csv": "canary\n1\n",
        "raw/sub/x.tmp": "canary",
        "raw/.gitignore": "dropped.*\n",
        ".gitignore": "/build/\n*.tmp\n!kept.csv\n",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "link.csv").symlink_to(folder / ".env")
    return folder


def descriptions(tmp_path, folder="", **settings):
    own = tmp_path / "own"
    own.mkdir(exist_ok=True)
    kernel, problems = FakeKernel(folder=own), []
    options = SessionSettings(user_folder=str(folder), **settings)
    found = RequestDescriptions(options, own, lambda: kernel, problems.append)
    return found, own, problems


def test_a_folder_is_told_by_names_with_families_as_one_line(here, tmp_path):
    found, _, _ = descriptions(tmp_path, here, profile_folder="names")

    told = found.of_folder("sum the units", str(here), 0)

    assert "'sales.csv' 23 B" in told
    assert "'test-2001.csv' … 'test-2011.csv' (4 files, 15 B–40 B each, 2001–2002, 2010–2011)" in told
    assert "'kept.csv'" in told
    assert "hidden, ignored or secret-like left out" in told
    assert "units" not in told


def test_files_of_settings_with_secrets_are_left_out_and_values_named_so_are_masked(here, tmp_path):
    servers = {"mcpServers": {"crm": {"command": "crm", "env": {"CRM_TOKEN": "tok_live_4711"}}}}
    for name in ("mcp.json", "my-mcp.json", "mcp_servers.json", "taskweaver_config.json", "tw_autogen.yaml"):
        (here / name).write_text(json.dumps(servers), encoding="utf-8")
    config = {
        "host": "db.example.org",
        "db_password": "hunter2hunter2",
        "api-key": "$CRM_KEY",
        "mode": "read_only_mode",
    }
    (here / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (here / "deploy.txt").write_text("region = eu-central-1\nsecret_key = abcdefghij\n", encoding="utf-8")
    found, own, _ = descriptions(tmp_path, here, profile_folder="content")

    told = found.of_folder("config and deploy: which host, which region, crm?", str(here), 0)

    assert "'mcp.json'" not in told
    assert "tok_live" not in told
    assert "hunter2" not in told
    assert "abcdefghij" not in told
    for said in ('"db_password": "[secret]"', "secret_key = [secret]", "db.example.org", "$CRM_KEY", "read_only_mode"):
        assert said in told, told


def test_a_later_process_tells_what_is_new_only(here, tmp_path):
    shutil.copy(here / "sales.csv", tmp_path / "own_sales.csv")
    first, own, _ = descriptions(tmp_path, here, profile_folder="content")
    (own / "given.csv").write_text("north,south\n" + "1.5,2.5\n" * 300, encoding="utf-8")
    (here / "given.csv").write_bytes((own / "given.csv").read_bytes())
    given = first.of_request("sum given.csv", [own / "given.csv"], {})
    told = f"sum\n\n{given}\n\n{first.of_folder('sum the units of sales', str(here), 0)}\n"
    settings = SessionSettings(user_folder=str(here), profile_folder="content")

    def again(before):
        return RequestDescriptions(settings, own, lambda: FakeKernel(folder=own), print, before)

    assert "'sales.csv'" in told
    assert again(told).of_folder("sum the units of sales, and given", str(here), 0) == ""
    assert "(described in an earlier request)" in again(told).of_request("sum", [own / "given.csv"], {})
    (here / "costs.csv").write_text("shop,cost\na,1\n", encoding="utf-8")
    now = again(told).of_folder("sum the cost of costs", str(here), 0)
    assert f"{str(here / 'costs.csv')!r}: " in now
    assert f"{str(here / 'sales.csv')!r}: " not in now


def test_a_folder_is_told_by_content_once_for_each_layout(here, tmp_path):
    found, _, _ = descriptions(tmp_path, here, profile_folder="content")

    told = found.of_folder("which site has the highest value of water?", str(here), 0)

    assert "'test-2001.csv' … 'test-2010.csv' (3 files, 15 B each, 2001–2002, 2010)" in told
    assert "'test-2011.csv' 40 B" in told
    assert "'Alabama.csv' … 'Utah.csv' (3 files, 11 B each)" in told
    water, sales, other = (f"'{here}/{name}'" for name in ("water/test-2001.csv", "sales.csv", "water/test-2011.csv"))
    assert f"- {water}: 15 bytes, CSV: 1 rows x 2 columns; 3 files of this layout" in told
    assert told.index(f"- {water}") < told.index(f"- {sales}")
    assert f"to be read with pd.read_csv({other}, skiprows=2)" in told
    assert f"Its files, below {here}/:" in told


TABLES = {
    "counts.csv": "Fraud by year,\n,\nYear,Reports\n" + "".join(f'{at},"1,{at - 1900}"\n' for at in range(2001, 2025)),
    "top.csv": "rank,kind,cases\n" + "".join(f"{at},kind {at},{at * 7}\n" for at in range(1, 60)),
    "states.csv": "state,cases\n" + "".join(f"state {at},{at * 5}\n" for at in range(60)),
    "payment.csv": "method,loss\n" + "".join(f"method {at},{at * 3}\n" for at in range(60)),
    "arrests.csv": "officer,date\n" + "".join(f"{at},{at % 28 + 1}-Mar-20{at % 9 + 10}\n" for at in range(60)),
}


def test_of_files_that_do_not_fit_whole_the_next_ones_have_a_line_with_columns_and_the_call(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, text in TABLES.items():
        (folder / name).write_text(text, encoding="utf-8")
    found, _, _ = descriptions(tmp_path, folder, profile_folder="content", profile_chars=1800)

    told = found.of_folder(
        "which state has the most cases, and which kind, of reports of the year 2003?", str(folder), 0
    )

    assert len(told) <= 1800
    assert "  'counts.csv'" not in told
    assert "'counts.csv' 342 B, 'Year' 2001 … 2024\n" in told
    assert "'arrests.csv' 881 B, 'date' 2010-03-01 … 2018-03-27\n" in told
    assert "59 rows x 3 columns: 'rank': int, 1 … 59; 'kind': text, all different; 'cases': int, 7 … 413\n" in told
    assert "60 rows x 2 columns: 'officer': int, 0 … 59; 'date': date text D-Mon-YYYY, 1-Mar-2010 … 27-" in told
    assert f"to be read with pd.read_csv('{folder}/counts.csv', thousands=',', skiprows=2" in told


def test_a_file_of_which_only_a_line_was_shown_is_described_whole_when_a_later_request_is_about_it(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, text in TABLES.items():
        (folder / name).write_text(text, encoding="utf-8")
    found, _, _ = descriptions(tmp_path, folder, profile_folder="content", profile_chars=1800)
    first = found.of_folder("how many reports of fraud in 2003, by kind of cases?", str(folder), 0)

    told = found.of_folder("which payment method has the greatest loss?", str(folder), 0)

    assert f"- '{folder}/payment.csv': 804 bytes, CSV: 60 rows x 2 columns\n    | method,loss" not in first
    assert f"- '{folder}/payment.csv': 804 bytes, CSV: 60 rows x 2 columns\n    | method,loss" in told


def test_the_number_of_rows_of_one_file_is_not_told_of_all_that_have_its_layout(tmp_path):
    folder = tmp_path / "states"
    folder.mkdir()
    for name, rows in (("Alabama", 14), ("Delaware", 5), ("Utah", 9)):
        lines = "".join(f"type {one},{one * 7}\n" for one in range(rows))
        notes = ',\n"Areas are those of the agency, and counts those of 2023.",\n,\n"Source: the agency, 2024",\n'
        text = f"Reports of {name},\n,\nKind,Count\n{lines}{notes}"
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    found, _, _ = descriptions(tmp_path, folder, profile_folder="content")

    told = found.of_folder("which kind has the highest count in Utah?", str(folder), 0)

    assert "3 files of this layout" in told
    assert "skiprows=2; each has its own number of rows, above the first empty line" in told.replace(")", "")
    assert "nrows=" not in told


@pytest.mark.parametrize("mode", ["content", "names"])
def test_hidden_ignored_and_secret_like_files_are_told_neither_by_name_nor_by_content(here, tmp_path, mode):
    found, _, _ = descriptions(tmp_path, here, profile_folder=mode, profile_chars=50_000)

    told = found.of_folder("tell all of canary, .env, id_rsa, secrets and link.csv", str(here), 0)

    names = "canary .env .git config .tw server.pem id_rsa credentials inner out.csv dropped x.tmp link.csv"
    assert [part for part in names.split() if part in told] == []


def test_nothing_is_told_of_a_folder_where_that_is_off(here, tmp_path):
    found, _, _ = descriptions(tmp_path, here, profile_folder="off")

    assert found.of_folder("anything", str(here), 0) == ""


def test_a_later_request_is_told_of_a_folder_only_what_is_new(here, tmp_path):
    found, _, _ = descriptions(tmp_path, here, profile_folder="content")
    found.of_folder("sum the units of sales", str(here), 0)

    assert found.of_folder("and the mean units of sales", str(here), 0) == ""
    (here / "prices.csv").write_text("price,tax\n1,2\n", encoding="utf-8")
    told = found.of_folder("what are the prices?", str(here), 0)
    assert "Changed there:\n12 files, 190 B; 13 hidden, ignored or secret-like left out\n'prices.csv' 14 B\n" in told
    assert f"'{here}/prices.csv': 14 bytes, CSV: 1 rows x 2 columns\n    all of it:\n    | price,tax\n    | 1,2" in told


def test_a_later_request_is_told_only_of_files_that_fit_it_better_than_those_told_before(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in ("north", "south", "harbour"):
        (folder / f"{name}.csv").write_text(f"site,{name}_rain\nA,1\n", encoding="utf-8")
    found, _, _ = descriptions(tmp_path, folder, profile_folder="content", profile_chars=1000)
    found.told = Told(folder={"north.csv": "north.csv: described"}, tree="listed")

    for asked, wanted in (
        ("the mean of north_rain?", []),
        ("which site?", []),
        ("the harbour's rain and the site?", ["harbour"]),
    ):
        told = found.of_folder(asked, str(folder), 0)
        assert [name for name in ("north", "south", "harbour") if f"{name}.csv': 2" in told] == wanted


def test_a_line_about_a_file_says_how_rows_end_and_which_tables_it_holds(tmp_path):
    folder = tmp_path / "mine"
    (folder / "states").mkdir(parents=True)
    for number, name in enumerate(("Alabama", "Texas", "Utah")):
        rows = "".join(f"city {at},{at + number}\n" for at in range(9 + number))
        (folder / f"states/{name}.csv").write_text(f"metro,n\n{rows},\nSource: the office,\n", encoding="utf-8")
    tables = "".join(
        f"<table><caption>Cities of {name}</caption><tr><th>a<th>b</tr><tr><td>A<td>1</tr><tr><td>B<td>2</tr></table>"
        for name in ("Utah", "Texas")
    )
    (folder / "page.html").write_text(f"<html><body>{tables}{'<p>words</p>' * 200}", encoding="utf-8")
    (folder / "gaps.csv").write_text("a,b\n" + "1,2\n" * 9 + ",\n" + "3,4\n" * 9, encoding="utf-8")
    for number in range(8):
        (folder / f"metro-{'abcdefgh'[number]}.csv").write_text(
            f"metro,{'abcdefgh'[number]}\n" + f"{'word ' * 20},1\n" * 30, encoding="utf-8"
        )
    found, _, _ = descriptions(tmp_path, folder, profile_folder="content", profile_chars=6000)

    told = found.of_folder("which metro?", str(folder), 0)

    each = "each has its own number of rows, above the first empty line; what stands below it is no row"
    assert re.search(rf"Alabama.csv': .*; 3 files of this layout.*{each}", told)
    assert "tables: table 0, caption 'Cities of Utah': 2 rows x 2 columns; table 1, caption 'Cities of Texas'" in told
    assert re.search(r"gaps.csv': .*; 1 empty row not counted", told)


def test_a_folder_of_many_large_files_is_listed_with_a_bound_on_what_is_read(tmp_path):
    folder = tmp_path / "many"
    for part in range(20):
        (folder / f"part{part}").mkdir(parents=True)
        for number in range(100):
            (folder / f"part{part}" / f"{'abcdefghij'[number % 10]}{number}.csv").touch()
    for number in range(20):
        path = folder / f"huge{'abcdefghijklmnopqrst'[number]}.csv"
        path.write_bytes(b"a,b\n1,2\n")
        os.truncate(path, 1 << 30)  # takes no room on the disk
    found, _, _ = descriptions(tmp_path, folder, profile_folder="content")
    opened, looking = [], [True]

    def note(event, args):  # it stays for good
        if looking and event == "open" and str(args[0]).startswith(str(folder)):
            opened.append(args[0])

    sys.addaudithook(note)
    told = found.of_folder("sum of a", str(folder), 0)
    looking.clear()

    assert "2020 files, 21 GB" in told
    assert len(told) < 6500
    assert len(opened) < 800


def test_files_are_told_within_a_budget_the_most_relevant_first(tmp_path):
    found, own, _ = descriptions(tmp_path, profile_chars=1700)
    for name in ("alpha", "beta", "gamma"):
        columns = ",".join(f"{name}_{letter}" for letter in "abcdefghijklmnopqrst")
        (own / f"{name}.csv").write_text(f"{columns}\n" + f"{','.join('1' * 20)}\n" * 60, encoding="utf-8")
    (own / "small.csv").write_text("delta\n1\n", encoding="utf-8")

    names = [f"{name}.csv" for name in ("alpha", "beta", "gamma", "small")]
    told = found.of_request("mean of gamma_c", [own / name for name in names], {})

    assert len(told) < 1900
    assert "'gamma_a'" in told
    assert "'gamma_t'" in told
    assert "CSV: 60 rows x 20 columns: 'alpha_a'; 'alpha_b'; 'alpha_c'; " in told
    assert "; 'alpha_t'; print(describe('alpha.csv')) shows more\n- beta.csv: " in told
    assert "describe('gamma.csv')" not in told
    assert told.endswith("| delta\n    | 1")


def test_a_description_that_is_too_long_alone_is_cut_and_says_so(tmp_path):
    found, own, _ = descriptions(tmp_path, profile_chars=700)
    columns = ",".join(f"a_{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")
    (own / "a.csv").write_text(f"{columns}\n" + f"{','.join('1' * 26)}\n" * 60, encoding="utf-8")

    told = found.of_request("mean of a_c", [own / "a.csv"], {})

    assert 400 < len(told) < 800
    assert told.endswith("\n  … print(describe('a.csv')) shows more")


def test_a_description_that_is_cut_keeps_the_call_and_remarks(tmp_path):
    found, own, _ = descriptions(tmp_path, profile_chars=1500)
    columns = ";".join(f"a_{letter} of the town" for letter in "abcdefghijklmnopqrstuvwxyz")
    rows = "".join(";".join(f"{at * column % 97},5" for column in range(1, 27)) + "\n" for at in range(60))
    (own / "a.csv").write_text(f"{columns}\n{rows}{'1,5;' * 29}2\n", encoding="utf-8")

    told = found.of_request("mean of a_c", [own / "a.csv"], {})

    assert 1000 < len(told) < 1600
    assert "1 rows have more values than the header" in told
    assert "  to be read with pd.read_csv('a.csv', sep=';', decimal=',', usecols=range(26))\n" in told
    assert told.endswith("\n  … print(describe('a.csv')) shows more")


def test_of_given_files_that_do_not_fit_whole_a_line_names_columns_and_the_call(tmp_path):
    found, own, _ = descriptions(tmp_path, profile_chars=1600)
    names = ("fire", "flood", "storm", "quake")
    for name in names:
        head = ";".join(f"{name}_{letter}" for letter in "abcdef")
        rows = "".join(f"{'1,5;' * 5}{one},25\n" for one in range(60))
        (own / f"{name}.csv").write_text(f"{head}\n{rows}", encoding="utf-8")
    (own / "words.txt").write_text("Words and words. " * 200, encoding="utf-8")

    told = found.of_request("mean of fire_a", [*(own / f"{name}.csv" for name in names), own / "words.txt"], {})

    assert 1300 < len(told) < 1800
    assert "    'fire_f': float, 0,25 … 59,25, all different\n" in told
    line = next(one for one in told.splitlines() if one.startswith("- quake.csv: "))
    assert "60 rows x 6 columns: 'quake_a': float, always 1,5; " in line
    assert "'quake_f': float, 0,25 … 59,25; to be read with pd.read_csv(…, sep=';', decimal=','); print(desc" in line


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    {
        "table": ("a.csv", "a,b\n1,x\n2,y\n3,z\n", "all of it:\n    | a,b\n    | 1,x\n    | 2,y\n    | 3,z"),
        "codes": ("a.csv", "zip\n01\n02\n03\n", "| 03\n    to be read with pd.read_csv('a.csv', dtype={'zip': str})"),
        "JSON": ("a.json", '{"a": {"b": 1}}', 'all of it:\n    | {"a": {"b": 1}}'),
        "JSON lines": ("a.jsonl", '{"a": 1, "b": 2}\n', 'all of it:\n    | {"a": 1, "b": 2}'),
        "long": ("a.csv", "a,b\n" + "1,x\n" * 200, "'b': text, always 'x'"),
    }.values(),
)
def test_a_small_file_is_shown_whole(tmp_path, name, text, shown):
    found, own, _ = descriptions(tmp_path)
    (own / name).write_text(text, encoding="utf-8")

    told = found.of_request("look", [own / name], {})

    assert shown in told
    assert ("'a': " in told) == ("always" in shown)


def test_files_of_an_earlier_request_stay_known_and_are_not_told_again(tmp_path):
    found, own, _ = descriptions(tmp_path)
    for name in ("a", "b"):
        (own / f"{name}.csv").write_text(f"{name}_price\n5\n", encoding="utf-8")
    found.of_request("sum", [own / "a.csv"], {})

    told = found.of_request("and now?", [own / "a.csv", own / "b.csv"], {})
    (own / "a.csv").write_text("other\n5\n", encoding="utf-8")
    changed = found.of_request("and now?", [own / "a.csv"], {})

    assert "- a.csv: 10 bytes, CSV: 1 rows x 1 columns (described in an earlier request)" in told
    assert "| b_price" in told
    assert "| a_price" not in told
    assert "| other" in changed
    assert changed.endswith("Files of earlier requests: 'b.csv'.")


def test_a_file_of_which_only_a_line_was_told_is_described_when_it_comes_alone(tmp_path):
    found, own, _ = descriptions(tmp_path, profile_chars=3000)
    files = [own / f"table{number}.csv" for number in range(60)]
    for number, path in enumerate(files):
        path.write_text(f"id{number},price{number}\n{number},5\n", encoding="utf-8")
    first = found.of_request("sum", files, {})

    second = found.of_request("what does table59 hold?", files[-1:], {})
    third = found.of_request("and now?", files[-1:], {})

    assert "id59" not in first
    assert "id59" in second
    assert "Files of earlier requests: 'table49.csv'" in second
    assert "(described in an earlier request)" in third


def test_files_of_the_users_folder_are_no_files_of_a_request(here, tmp_path):
    found, own, _ = descriptions(tmp_path, here, profile_folder="content")
    for name, text in (("first.csv", "a,b\n1,2\n"), ("sales.csv", "other,column\n1,2\n")):
        (own / name).write_text(text, encoding="utf-8")

    brought = found.of_request("sum the units", [own / "first.csv", own / "sales.csv"], {})
    told = found.of_folder("sum the units of sales", str(here), 0)
    later = found.of_request("and now?", [own / "first.csv"], {})

    assert "Files of earlier requests" not in brought
    assert f"'{here}/sales.csv': 23 bytes, CSV: 1 rows x 2 columns\n    all of it:\n    | day,units" in told
    assert "| price" not in told
    assert f"'{here}/states/Alabama.csv'" in told  # nothing was told of the folder before
    assert later.endswith("Files of earlier requests: 'sales.csv'.")


def test_what_was_described_to_no_model_is_described_again(tmp_path, here):
    class Stopped(FakeKernel):
        stopped = False

        def list_files(self, *args, **options):
            if not self.stopped:
                self.stopped = True
                raise KeyboardInterrupt
            return super().list_files(*args, **options)

    (tmp_path / "a.csv").write_text("month,amount\n1,2\n", encoding="utf-8")
    interpreter = CodeInterpreter(ScriptedModel([]), Stopped(folder=tmp_path / "own"))
    settings = SessionSettings(user_folder=str(here), profile_folder="content")
    with (
        ScriptedModel([plans("2", to="User")]) as model,
        Session([Planner(model, [interpreter]), interpreter], settings=settings, folder=tmp_path / "s") as session,
    ):
        with pytest.raises(KeyboardInterrupt):
            session.ask("sum", files=tmp_path / "a.csv")
        session.ask("sum", files=tmp_path / "a.csv")

        assert session.rounds[0].error == "it was stopped by the user"
    assert "| month,amount" in model.calls[0][-1]["content"]


def test_many_given_files_of_one_layout_are_described_by_one_of_them(tmp_path):
    found, own, _ = descriptions(tmp_path)
    names = [f"station_{number:03}.csv" for number in range(120)]
    for number, name in enumerate(names):
        rows = "".join(f"{one},{one * number % 7}\n" for one in range(1, number % 5 + 2))
        (own / name).write_text(f"day,rain\n{rows}{'20,oops' if number == 60 else ''}\n", encoding="utf-8")
    (own / "places.csv").write_text("station,place\n1,Kiel\n", encoding="utf-8")
    files = [own / name for name in [*names, "places.csv"]]

    told = found.of_request("how much rain fell in all?", files, {})
    again = found.of_request("and the mean rain?", files, {})

    assert "; 119 files of this layout ('station_000.csv', 'station_001.csv' … 'station_119.csv'), of this one:" in told
    assert "| day,rain" in told
    assert "- station_060.csv: " in told
    assert "| 20,oops" in told
    assert "| station,place" in told
    assert len(told) < 3000
    assert "station_000.csv: 14 bytes, CSV: 1 rows x 2 columns (described in an earlier request); 119 files of" in again
    assert len(again) < 1000


def test_few_given_files_of_one_layout_that_fit_are_described_each(tmp_path):
    found, own, _ = descriptions(tmp_path)
    for number in range(3):
        (own / f"{number}.csv").write_text(f"day,rain\n1,{number}5\n", encoding="utf-8")

    told = found.of_request("look", [own / f"{number}.csv" for number in range(3)], {})

    assert all(f"| 1,{number}5" in told for number in range(3))


@pytest.mark.parametrize("chars", [1000, 6000])
def test_many_given_files_without_a_common_layout_keep_the_limit(chars, tmp_path):
    found, own, _ = descriptions(tmp_path, profile_chars=chars)
    names = [f"note_{number}.txt" for number in range(150)]
    for name in names:
        (own / name).write_text(f"This is {name}, and nothing else.\n", encoding="utf-8")

    told = found.of_request("what does note_77 hold?", [own / name for name in names], {})

    assert len(told) < chars + 200
    assert "- note_77.txt: " in told
    assert " more files came with the request: print(describe(path)) shows one of them." in told


def test_without_a_kernel_files_are_told_by_name_and_size(tmp_path):
    (tmp_path / "a.csv").write_text("canary\n1\n", encoding="utf-8")
    found = RequestDescriptions(SessionSettings(), tmp_path, lambda: None, print)

    told = found.of_request("sum", [tmp_path / "a.csv"], {})

    assert "- a.csv: 9 bytes, not looked through: no kernel is there" in told


def test_a_file_that_can_not_be_read_as_its_kind_is_a_problem_too(tmp_path):
    found, own, problems = descriptions(tmp_path)
    (own / "broken.json").write_text("{", encoding="utf-8")
    (own / "fine.csv").write_text("a\n1\n", encoding="utf-8")

    found.of_request("look", [own / "broken.json", own / "fine.csv"], {})

    (problem,) = problems
    assert problem.startswith("broken.json: not readable as json")


def test_values_are_told_briefly():
    assert profile_value("n", 3) == "n: int, 3"
    assert profile_value("frame", pd.DataFrame({"a": [1]})).startswith(
        "frame: DataFrame, 1 rows x 1 columns: 'a' (int64)"
    )
    assert len(profile_value("text", "x" * 10_000)) < 500
    nested = {"b": [1, (2, "x" * 99)], "a": {3}, "": [b"", None]}
    assert profile_value("nested", nested) == f"nested: dict, {nested}"
    assert profile_value("digits", [1] * 140).endswith("1, …")


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("api_token", "VALUE-1234567890abcdef", "api_token: str, '[secret]'"),
        ("password", "correct horse battery", "password: str, '[secret]'"),
        ("dbPassword", 12345678, "dbPassword: int, '[secret]'"),
        ("auth_key", b"VALUE-1234567890", "auth_key: bytes, '[secret]'"),
        ("database", "postgres://u:VALUE@h/db", "database: str, 'postgres://u:[secret]@h/db'"),
        ("shop", {"password": "VALUE99", "rows": [1]}, "shop: dict, {'password': '[secret]', 'rows': [1]}"),
        ("credentials", {"who": "VALUE-user1", "n": [2]}, "credentials: dict, {'who': '[secret]', 'n': [2]}"),
        ("texts", ["a", "api_key=VALUE12345678"], "texts: list, ['a', 'api_key=[secret]']"),
        ("config", "x" * 380 + " sk-VALUE" + "9" * 90, f"config: str, '{'x' * 380} [secret]'"),
        ("max_tokens", 12345678, "max_tokens: int, 12345678"),
        ("token", 5, "token: int, 5"),
        ("api_key", "$SHOP_KEY", "api_key: str, '$SHOP_KEY'"),
        ("password", True, "password: bool, True"),
    ],
)
def test_values_that_are_secret_by_name_or_form_are_masked(name, value, told):
    assert profile_value(name, value) == told
    assert "VALUE" not in profile_value(name, value)


def test_secrets_in_a_tables_first_rows_are_masked():
    frame = pd.DataFrame({"user": ["ann"], "password": ["hunter2x"], "url": ["ftp://u:hunter2x@h"], "n": [1]})

    told = profile_value("accounts", frame)

    assert told.endswith("first rows:\nuser,password,url,n\nann,[secret],ftp://u:[secret]@h,1")


def test_a_tables_index_is_told_unless_it_numbers_the_rows():
    frame = pd.DataFrame({"v": [1, 2], "place": ["N", "S"]}, index=pd.to_datetime(["2020-01-01", "2020-01-02"]))
    frame.index.name = "datum"
    told = profile_value("f", frame)
    sums = profile_value("s", frame.set_index("place").v)
    two = profile_value("t", frame.set_index("place", append=True))
    plain = profile_value("p", frame.reset_index()[1:])

    assert "2 rows x 2 columns, index 'datum' (datetime64[" in told
    assert "\ndatum,v,place\n2020-01-01,1,N" in told
    assert "2 rows x 1 columns, index 'place' (" in sums
    assert "first rows:\nplace,v\nN,1" in sums
    assert "2 rows x 1 columns, index 'datum', 'place' (object): 'v'" in two
    assert "1 rows x 3 columns: 'datum'" in plain


@pytest.mark.parametrize("value", [b"\x91" * 50_000_000, [1 / 3] * 2_000_000, {"a": "ä" * 50_000_000}])
def test_a_large_value_is_told_from_its_beginning(value, cpu_seconds):
    started = cpu_seconds()

    assert len(profile_value("large", value)) < 500
    assert cpu_seconds() - started < 0.5


def test_a_request_that_brings_nothing_has_no_description(tmp_path):
    assert descriptions(tmp_path)[0].of_request("hello", [], {}) == ""


def test_a_first_line_that_does_not_fit_is_cut(tmp_path):
    found, own, _ = descriptions(tmp_path, profile_chars=1000)
    (own / "wide.csv").write_text("a" * 100_000 + "\n1\n", encoding="utf-8")

    assert len(found.of_request("look", [own / "wide.csv"], {})) < 2000


def test_a_question_without_files_and_without_a_folder_starts_no_kernel(tmp_path):
    with (
        ScriptedModel([plans("Four.", to="User")]) as model,
        open_session(model, folder=tmp_path / "sessions") as session,
    ):
        session.ask("2 + 2?")
        where = session.where

    assert "starts with the first cell" in where


def test_the_kernel_describes_what_the_folder_holds_before_the_first_call(here, tmp_path):
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(parent.stat().st_mode | 0o055)
    settings = {"session.user_folder": str(here), "session.profile_folder": "content"}
    with (
        ScriptedModel([plans("Three.", to="User")]) as model,
        open_session(model, folder=tmp_path / "sessions", settings=settings) as session,
    ):
        session.ask("sum the units of the sales")

    told = model.calls[0][-1]["content"]
    assert f"- '{here}/sales.csv': 23 bytes, CSV: 1 rows x 2 columns" in told
    assert Grants().describe(str(here), here) in told


def test_the_path_of_the_users_folder_is_one_that_code_can_open(here, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(here)

    told = Grants().describe(str(link), tmp_path / "own")

    assert told.startswith(f"The User's own folder is {here.resolve()}. Code can read it, but not write there.")
    assert told.endswith("code opens them by the whole path.")


def test_a_file_of_a_folder_that_nothing_can_be_said_of_has_one_line(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "torn.xlsx").write_text("PK", encoding="utf-8")
    found, _, _ = descriptions(tmp_path, folder, profile_folder="content")

    told = found.of_folder("what is torn?", str(folder), 0)

    assert told.endswith("not readable as xlsx: File is not a zip file")
    assert all(line.strip() for line in told.splitlines())


@pytest.mark.skipif(sys.platform != "linux", reason="names are Unicode there")
def test_names_that_are_no_unicode_or_go_over_lines_are_told_as_literals_that_open_the_files(tmp_path):
    folder = tmp_path / "mine"
    names = ["caf\udce9.csv", "a\n- b.csv", "d\udcff/in.csv", "plain.csv"]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{names.index(name)},b\n1,2\n", encoding="utf-8")
    found, _, problems = descriptions(tmp_path, folder, profile_folder="content")

    listed = found.of_folder("what is there?", str(folder), 0)
    told = found.of_request("what is that?", [folder / name for name in names], {})

    assert (listed + told + "".join(problems)).encode()
    assert all(repr(name) in listed for name in ("caf\udce9.csv", "a\n- b.csv", "d\udcff/"))
    assert f"- '{folder}/a\\n- b.csv': 8 bytes, CSV" in listed
    assert all(f"- {str(folder / name)!r}: 8 bytes, CSV" in told for name in names[:3])
    assert f"- {folder / 'plain.csv'}: 8 bytes, CSV" in told


class Forger(FakeKernel):
    """A kernel in which code has replaced what describes files and lists folders."""

    def __init__(self, folder, said, listed):
        super().__init__(folder=folder)
        self.said, self.listed = said, listed

    def describe_files(self, files, **options):
        whole = self.said is None or "files" in self.said
        return self.said if whole else {"files": [self.said] * len(files), "joins": []}

    def list_files(self, folder, **options):
        return self.listed


UNTRUE = {
    "columns of lists": {"columns": [["a"]]},
    "columns that are none": {"columns": 5},
    "lines that are none": {"lines": 5},
    "a line that is none": {"lines": [1]},
    "a whole that is none": {"whole": [None]},
    "headline": {"headline": {}},
    "problem": {"problem": 1},
}


@pytest.mark.parametrize(
    "said", [*UNTRUE.values(), {}, None, {"files": 5}, {"files": [5] * 3}], ids=lambda said: str(said)[:40]
)
def test_what_code_has_made_of_a_description_costs_no_answer(tmp_path, said):
    found = RequestDescriptions(SessionSettings(profile_chars=10), tmp_path, lambda: Forger(tmp_path, said, {}), print)

    text = found.of_request("what", [tmp_path / f"a{at}.csv" for at in range(3)], {})

    assert "a0.csv" in text
    assert ("the kernel's answer can't be read" in text) == (said != {})


@pytest.mark.parametrize(
    "listed",
    [
        {},
        None,
        {"lines": ["a", "b"], "files": [["a.csv", "x"]], "problem": ""},
        {"lines": ["a", "b"], "files": [["a.csv"]]},
        {"lines": ["a", "b"], "files": [["a.csv", 1, 5]]},
        {"lines": ["a", "b"], "files": [["a.csv", 1, {"heads": [1]}]]},
        {"lines": ["a", "b"], "files": [["a.csv", 1, {"years": [2001]}]]},
        {"lines": ["a", "b"], "files": [["a.csv", 10**400, {}]]},
        {"lines": ["a", "b"], "files": [["a.csv", 1, {"years": [[0, 10**400]]}]]},
        {"lines": ["a", 5], "files": []},
        {"lines": ["a", "b"], "files": [], "problem": 5},
    ],
    ids=lambda listed: str(listed)[:60],
)
def test_what_code_has_made_of_a_list_of_files_costs_no_answer(tmp_path, here, listed):
    settings = SessionSettings(user_folder=str(here))
    found = RequestDescriptions(settings, tmp_path, lambda: Forger(tmp_path, {}, listed), print)

    assert found.of_folder("what", str(here), 0) == ""


@pytest.mark.parametrize("name", ["secret.csv", "../secret.csv", "/a\0b"])
def test_a_file_that_code_claims_to_be_in_the_folder_is_looked_for_by_nobody_else(tmp_path, here, name):
    secret = tmp_path / "secret.csv"
    secret.write_bytes(bytes(123_456))
    listed = {"lines": ["2 files", "a.csv"], "files": [[name.replace("secret", str(tmp_path / "secret"), 1), 1, {}]]}
    settings = SessionSettings(user_folder=str(here), profile_folder="content")
    found = RequestDescriptions(settings, tmp_path, lambda: Forger(tmp_path, {"lines": 5}, listed), print)

    assert "123" not in found.of_folder("what", str(here), 0)


def test_descriptions_of_any_size_are_cut_before_they_are_ranked(tmp_path):
    columns = [f"c{at}: x" for at in range(20_000)]
    said = {
        "headline": "h" * 20_000_000,
        "problem": "p" * 20_000_000,
        "lines": [f"{column!r}: int" for column in columns],
        "columns": columns,
    }
    listed = {
        "lines": [f"line {at}" for at in range(1_000_000)],
        "files": [[f"a{at}.csv", 1, {"heads": f"b{at} " * 500, "years": [[at, at]] * 90}] for at in range(30_000)],
    }
    problems = []
    kernel = Forger(tmp_path, said, listed)
    (tmp_path / "a.csv").touch()
    found = RequestDescriptions(SessionSettings(profile_chars=1000), tmp_path, lambda: kernel, problems.append)
    began = time.monotonic()

    text = found.of_request("what", [tmp_path / f"a{at}.csv" for at in range(5)], {})
    folder = found.of_folder("what", str(tmp_path), 0)

    assert time.monotonic() - began < 10
    assert len(text) < 5000
    assert len(folder) < 5000
    assert max(map(len, problems)) < 1100


@pytest.mark.parametrize(
    ("line", "begun"),
    [
        ("'Year': int, 2022 (31), 2023 (31), 2024 (31)", "'Year': int, 2022 (31) …"),
        ("'rank': int, 1 … 59, all different", "'rank': int, 1 … 59"),
        ("'x': text, 29 with '%' ('0.02%'; to be read with str.rstrip first), 3 missing", "'x': text, 29 with '%'"),
        ("'kind': text, all different", "'kind': text, all different"),
        ("'all': int, 7 (4)", "'all': int, 7 (4)"),
    ],
)  # fmt: skip
def test_the_beginning_of_what_is_said_of_a_column_is_no_half_of_an_aside(line, begun):
    assert Describer.line_begun(line, 60) == begun
