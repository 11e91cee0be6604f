"""A session becomes a program: it runs alone on new data, with files and the numbers of the questions as parameters."""

import contextlib
import subprocess
import sys

import pytest

from tw_autogen import open_session
from tw_autogen.events import CellRan, CellStarted, RoundOpened, SessionOpened
from tw_autogen.session import Program, read_journal
from tw_autogen.session.notebook_export import notebook
from tw_autogen.testing import ScriptedModel

CSV = "region,units\nN,5\nS,7\nW,1\n"
NEW = "region,units\nA,10\nB,30\nC,20\n"


AT = "Traceback (most recent call last):\n  cell {}, line {}\n    text\n"
"""The place of a failure, as a kernel gives it."""


def events(*cells, query="Which are the top 3 regions of sales.csv?", files=("sales.csv",), plugins=()):
    """Give the events of one request; a cell is its code, or (code, error)."""
    yield SessionOpened("session-1", "/s/files", ["Planner"], list(plugins), "here")
    yield RoundOpened("r", query, list(files))
    for number, cell in enumerate(cells, 1):
        code, error = cell if isinstance(cell, tuple) else (cell, "")
        yield CellStarted(number, code)
        artifacts = [{"name": "chart.png", "path": "/s/files/chart.png"}] * ("plt" in code)
        yield CellRan(number, not error, None, "", "", error, artifacts, [], False, 0.1)


def run(program, folder, *args):
    path = folder / "x.py"
    path.write_text(program.source("x.py"), encoding="utf-8")
    return subprocess.run([sys.executable, path, *args], cwd=folder, text=True, capture_output=True, check=False)


def test_a_program_runs_alone_on_other_data_and_with_other_numbers(tmp_path):
    (tmp_path / "sales.csv").write_text(CSV, encoding="utf-8")
    (tmp_path / "new.csv").write_text(NEW, encoding="utf-8")
    program = Program.of(
        events(
            (
                "import csv\nrows = list(csv.DictReader(open('sales.csv')))\nrows.nope",
                AT.format(1, 3) + "AttributeError",
            ),
            ("boom = 1 / 0", AT.format(2, 1) + "ZeroDivisionError"),
            "best = sorted(rows, key=lambda row: -int(row['units']))[:3]\n[row['region'] for row in best]  # größte",
        )
    )

    assert run(program, tmp_path).stdout == "['S', 'N', 'W']\n"
    assert run(program, tmp_path, "new.csv", "--top", "2").stdout == "['B', 'C']\n"
    gone = run(program, tmp_path, "gone.csv")
    assert (gone.returncode, gone.stderr.splitlines()[-1]) == (2, "x.py: error: there is no file gone.csv")


@pytest.mark.parametrize("name", ["a\\N.py", 'say """.py', "größe.py"])
def test_a_program_runs_whatever_its_file_is_called(tmp_path, name):
    text = Program.of(events("print('ran')", query="q", files=())).source(name)

    ran = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, text=True, capture_output=True, check=False)
    assert (ran.stdout, ran.stderr) == ("ran\n", "")


PARAMETERS = {
    "a file by its path in the session": (
        "rows of a.csv",
        "open('/s/files/a.csv')\nprint('a.csv', f'{1} a.csv')",
        "open(A_CSV)\nprint(A_CSV, f'{1} a.csv')",
    ),
    "a keyword names a number": ("the 25 largest of a.csv", "df.nlargest(n=25)", "df.nlargest(n=N)"),
    "a variable names it": ("beyond 3.5 deviations", "limit = 3.5\nx > 3.5", "limit = BEYOND_LIMIT\nx > BEYOND_X"),
    "a percentage as a fraction": ("rows above 90 % of a.csv", "df.quantile(0.9)", "df.quantile(ABOVE)"),
    "a word after it": ("find 12 clusters", "KMeans(12)", "KMeans(FIND)"),
    "beside a word": ("rows of a.csv", "open('a.csv'if n else'b')", "open((A_CSV)if n else'b')"),
    "no power, no small number, no docstring": (
        "the 3 best, 2 decimals, 1 axis",
        "x ** 3\nround(x, 2)\ny.sum(axis=1)\n'a.csv'",
        "x ** 3\nround(x, 2)\ny.sum(axis=1)\n'a.csv'",
    ),
    "a name that is taken": ("top 5", "TOP = 1\nhead(5)", "TOP = 1\nhead(TOP_2)"),
    "a number of the file's name is none": ("a7.csv", "x[7]", "x[7]"),
    "a pattern, in which a name would match everything": (
        "7, 5 of a.csv",
        "match n:\n    case 5 | 'a.csv':\n        m = 7",
        "match n:\n    case 5 | 'a.csv':\n        m = M",
    ),
    "in the braces of an f-string": (
        "units above 100 of a.csv",
        "f'{len(x > 100)} over 100 {y:>{w + 100}} {len(open(\"a.csv\"))}'",
        "f'{len(x > ABOVE)} over 100 {y:>{w + 100}} {len(open(A_CSV))}'",
    ),
    "in a text that pandas evaluates": (
        "units above 100 of a.csv",
        """x.query("a > 100 and b < @c and d == '100'")\nx.eval('a * 100')\nx.query('`a 100` > 5')""",
        """x.query("a > @ABOVE_A and b < @c and d == '100'")\nx.eval('a * @ABOVE_MULT')\nx.query('`a 100` > 5')""",
    ),
    "no looks, seeds and remainders": (
        "the top 10 of a.csv",
        "x.head(10).plot(figsize=(10, 6), fontsize=10, bins=10)\nx % 10 + x.n[10] // 10\nfit(random_state=10)",
        "x.head(TOP).plot(figsize=(10, 6), fontsize=10, bins=10)\nx % 10 + x.n[10] // 10\nfit(random_state=10)",
    ),
    "looks that are asked for": (
        "a histogram with 20 bins and fontsize 14",
        "plt.hist(x, bins=20)\nplt.title('x', fontsize=14)",
        "plt.hist(x, bins=BINS)\nplt.title('x', fontsize=FONTSIZE)",
    ),
    "behind letters of two bytes": ("top 5", "print('größe', 5)", "print('größe', TOP)"),
    "no index, no digits": (
        "Top 3 regions by net sales",
        "v = df.columns[3]\ndf.iloc[:, 3] + df.iloc[-3] + df[[3]]\ndf[v].round(3).nlargest(3)\nround(x, 3)",
        "v = df.columns[3]\ndf.iloc[:, 3] + df.iloc[-3] + df[[3]]\ndf[v].round(3).nlargest(TOP)\nround(x, 3)",
    ),
    "no key, whose value may be one": (
        "the top 12 months",
        "m = {12: 'Dec'}\nf(**{'n': 12})",
        "m = {12: 'Dec'}\nf(**{'n': TOP})",
    ),
    "no columns of a text, no index that is computed, no date": (
        "the 5 latest since 17 May",
        "line[5:17] + x[i + 5] + x[::5]\ndatetime(2024, 5, 17)\nm.group(5)\nx[:5]",
        "line[5:17] + x[i + 5] + x[::5]\ndatetime(2024, 5, 17)\nm.group(5)\nx[:LATEST]",
    ),
    "in an index of rows that fulfil a condition": (
        "units above 100",
        "df[df.units > 100]\ndf.loc[(df.units >= 100) & (df.b == 1)]",
        "df[df.units > ABOVE]\ndf.loc[(df.units >= ABOVE) & (df.b == 1)]",
    ),
    "each use of a number is one": (
        "units above 100",
        "share = (x > 100).sum() / n * 100\nx.head(100)\ny = x < 100",
        "share = (x > ABOVE_X).sum() / n * ABOVE_MULT\nx.head(ABOVE_HEAD)\ny = x < ABOVE_X",
    ),
    "layout is none": (
        "the top 7 of a.csv",
        "pd.read_csv('a.csv', skiprows=7)\nx.nlargest(7)\nx.sum(axis=7)",
        "pd.read_csv(A_CSV, skiprows=7)\nx.nlargest(TOP)\nx.sum(axis=7)",
    ),
    "a number of two meanings has the name of neither": (
        "Which of the 12 months sold over 12 units?",
        "x > 12",
        "x > X",
    ),
    "each thing that is compared is one": (
        "older than 30, with more than 30 orders",
        "df[(df.age > 30) & (df['orders'].sum() > 30) & (18 < df['age'] < 30)]",
        "df[(df.age > AGE) & (df['orders'].sum() > SUM) & (18 < df['age'] < AGE)]",
    ),
    "the value of a key or of an argument by its name": (
        "the top 7",
        "p = {'n': 7, 'k': 7}\ndef f(a, n=7, *, digits=7): pass",
        "p = {'n': TOP_N, 'k': TOP_K}\ndef f(a, n=TOP_N, *, digits=TOP_DIGITS): pass",
    ),
}


@pytest.mark.parametrize("case", PARAMETERS)
def test_parameters_stand_in_the_places_of_their_values(case):
    query, code, expected = PARAMETERS[case]
    files = [word for word in query.split() if word.endswith(".csv")]

    (cell,) = Program.of(events(code, query=query, files=files)).cells

    assert cell.source == expected


def test_a_number_that_code_uses_in_two_ways_is_changed_in_neither_by_a_name_that_fits_both(tmp_path):
    program = Program.of(events("print(sorted([4, 9, 6, 7])[:3], max(2, 3))", query="the top 3", files=()))

    assert run(program, tmp_path).stdout == "[4, 6, 7] 3\n"
    assert "ambiguous option: --top could match --top-first, --top-max-2" in run(program, tmp_path, "--top", "1").stderr
    assert run(program, tmp_path, "--top-first", "1").stdout == "[4] 3\n"
    assert "max_2: the top 3 (default: 3)" in run(program, tmp_path, "--help").stdout


FOLDERS = {
    "a pattern": ("glob.glob('/d/in/*.csv')", "glob.glob((IN + '/*.csv'))"),
    "a pattern below it": ("glob.glob('/d/in/**/x[0-9].csv')", "glob.glob((IN + '/**/x[0-9].csv'))"),
    "the folder": ("os.listdir('/d/in/')", "os.listdir((IN + '/'))"),
    "a path": ("base = Path('/d/in')\nq = base / 'a.csv'", "base = Path(IN)\nq = base / 'a.csv'"),
    "a variable": ("base = '/d/in'\nopen(f'{base}/a.csv')", "base = IN\nopen(f'{base}/a.csv')"),
    "joined": ("os.path.join('/d/in', name)\n', '.join('/d/in')", "os.path.join(IN, name)\n', '.join('/d/in')"),
    "an f-string": ("open(rf'/d/in/s{n}.csv')", "open(rf'{IN}/s{n}.csv')"),
    "one whose quotes are text": ("open(f'/s/files' '/\"+evil()#' f'{n}')", "open(f'/s/files' '/\"+evil()#' f'{n}')"),
    "an escape behind the folder": ("open(f'/s/files\\x2f{n}')", "open(f'/s/files\\x2f{n}')"),
    "an f-string of another make": ("open('/d/in' f'/s{n}.csv')", "open('/d/in' f'/s{n}.csv')"),
    "the session's own": ("glob.glob('/s/files/*.csv')\nos.listdir('/s/files')", "glob.glob('*.csv')\nos.listdir('.')"),
    "a file of its own": ("pd.read_csv('/s/files/out.csv')\nx.to_csv(f'/s/files/{n}.csv')",
                          "pd.read_csv('out.csv')\nx.to_csv(f'{n}.csv')"),
    "no path that is read": ("t.xpath('//a/b')\nprint('/d/in/*')", "t.xpath('//a/b')\nprint('/d/in/*')"),
}  # fmt: skip


@pytest.mark.parametrize("case", FOLDERS)
def test_a_folder_that_code_reads_is_a_parameter_and_the_sessions_own_is_the_current_one(case):
    code, expected = FOLDERS[case]

    program = Program.of(events(code, query="Look at /d/in", files=()))

    assert program.cells[0].source == expected
    compile(program.source(), "program.py", "exec")


def test_a_program_finds_the_files_of_another_folder(tmp_path):
    for folder, values in {"old": "12", "new": "345"}.items():
        (tmp_path / folder).mkdir()
        for value in values:
            (tmp_path / folder / f"{value}.csv").write_text(f"a\n{value}\n", encoding="utf-8")
    old = (tmp_path / "old").as_posix()
    code = f"import glob\nsum(int(open(one).read()[2:]) for one in glob.glob('{old}/*.csv'))"
    program = Program.of(events(code, query="the sum of all files", files=()))

    assert run(program, tmp_path).stdout == "3\n"
    assert run(program, tmp_path, "new").stdout == "12\n"
    assert "error: there is no folder gone" in run(program, tmp_path, "gone").stderr


def test_lines_for_ipython_are_comments_and_plugins_are_imported():
    source = Program.of(events("%matplotlib inline\nx = sql_pull_data('?')", plugins=["sql_pull_data"])).source()

    assert "# %matplotlib inline\nx = sql_pull_data('?')\n" in source
    assert 'sql_pull_data = load_plugin("sql_pull_data", ".")' in source
    compile(source, "program.py", "exec")


def test_plugins_of_a_project_are_loaded_from_their_files(tmp_path):
    own = tmp_path / "p" / "plugins"
    own.mkdir(parents=True)
    register = "from tw_autogen.plugin import Plugin, register_plugin\n\n\n@register_plugin\nclass Loader(Plugin):\n"
    (own / "load.py").write_text(register + "    def __call__(self):\n        return 20\n", encoding="utf-8")
    (own / "one.yaml").write_text("name: loader\ndescription: Load.\ncode: load\n", encoding="utf-8")
    functions = "from tw_autogen.plugin import plugin\n"
    for name, factor in {"twice": 2, "thrice": 3}.items():
        functions += f'\n@plugin\ndef {name}(n: int) -> int:\n    """Return {name}."""\n    return {factor} * n\n'
    (own / "more.py").write_text(functions, encoding="utf-8")
    given = [own / "one.yaml", own / "more.py"]
    with open_session(ScriptedModel([]), roles="code_interpreter", plugins=given, folder=tmp_path / "w") as session:
        session.run_code("print(twice(loader()) + 2)")

    program = Program.of(read_journal(session.journal))

    assert (list(program.plugins), program.missing) == (["loader", "twice"], [])
    assert run(program, tmp_path).stdout == "42\n"


MAGICS = {
    "an operator in brackets": (
        "%time\nx = ('%s'\n% '''a\n+ str(evil())\n''')",
        "# %time\nx = ('%s'\n% '''a\n+ str(evil())\n''')",
    ),
    "lines in a text": ("x = '''\n!ls\n%cd\n'''\n%time", "x = '''\n!ls\n%cd\n'''\n# %time"),
    "a cell that is timed": ("%%time\nx = 1", "# %%time\nx = 1"),
    "a statement that is timed": ("for n in a:\n    %time y = n\n%time f(y)", "for n in a:\n    y = n\nf(y)"),
}


@pytest.mark.parametrize("case", MAGICS)
def test_a_line_that_python_understands_is_no_magic(case):
    code, expected = MAGICS[case]
    (cell,) = Program.of(events(code, query="q", files=())).cells

    assert cell.source == expected


@pytest.mark.parametrize("code", ["%%writefile a.py\nevil()", "%time x \\\nevil()", "%%html\nevil()", "x = !ls"])
def test_a_magic_of_several_lines_leaves_its_cell_out(code):
    program = Program.of(events(code, query="q", files=()))

    assert (program.cells, program.left_out) == ([], ["cell 1: it is no plain Python"])


def test_a_value_that_the_journal_masks_is_named():
    program = Program.of(events("x = 'a'", "pd.read_csv('[secret].csv')", query="q", files=()))

    assert program.left_out == ["cell 2: a value that is kept as [secret], as those of secrets are"]


def test_a_statement_that_begins_on_the_line_of_the_one_that_failed_is_left_out_whole():
    program = Program.of(events(("c = 2\na = 1; b = (\n  1 / 0)", AT.format(1, 3)), "c, a", query="q", files=()))

    assert program.cells[0].source == "# Of a cell that failed later:\nc = 2"


FAILED = {
    "an item": ["rows = [1, 2]", "rows[0] = 5\nboom", "print(rows)"],
    "an attribute": ["class P: n = 1", "P.n += 4\nboom", "print(P.n)"],
    "a name that was known": ["n = 1", "n = n + 4\nboom", "print(n)"],
    "a method whose result is thrown away": ["rows = [1, 5]", "rows.pop(0)\nboom", "print(rows)"],
    "a method that takes something out": ["row = {'x': 1, 'n': 5}", "x = row.pop('x')\nboom", "print(row)"],
    "in place": ["class T:\n    def drop(self, inplace): self.n = 5\nt = T()",
                 "x = t.drop(inplace=True)\nboom", "print(t.n)"],
    "an argument": ["def cut(rows):\n    del rows[0]\nrows = [1, 5]", "cut(rows)\nboom", "print(rows)"],
    "a function of a module": ["import heapq\nrows = [7]", "heapq.heappush(rows, 5)\nboom", "print(rows)"],
    "in a loop": ["rows = []", "for n in 4, 5:\n    rows += [n]\nboom", "print(rows)"],
    "what another one needs": ["n = 1", "m = n + 4\nboom", "k = m\nboom", "print(k)"],
    "in its place": ["rows = [1]", "rows.append(5)\nboom", "n = len(rows)", "rows.append(n)\nprint(rows)"],
    "in a function of a later cell": ["def f(): return rows", "rows = [5]\nboom", "print(f())"],
    "a seed": ["import random", "random.seed(1)\nboom",
               "print(5 if random.random() == random.Random(1).random() else 0)"],
    "a folder": ["import os", "os.makedirs('sub')\nboom", "print(5 if os.path.isdir('sub') else 0)"],
    "what a function is given whose result is kept": [
        "def f(x):\n    x.append(5)\n    return 0\nrows = []", "y = f(rows)\nboom", "print(rows)"],
    "not what is made anew": ["rows = [1]", "rows.append(4)\nboom", "rows = [5]", "print(rows)"],
    "not what is made anew where it is used": ["xs = [5]", "for x in xs: y = x\nboom", "for x in xs: print(x)"],
}  # fmt: skip


@pytest.mark.parametrize("case", FAILED)
def test_what_failed_cells_had_changed_before_they_failed_is_in_the_program(tmp_path, monkeypatch, case):
    cells = FAILED[case]
    (tmp_path / "cells").mkdir()
    monkeypatch.chdir(tmp_path / "cells")
    expected: dict = {"print": lambda *values: said.append(" ".join(map(str, values)))}
    said: list = []
    for code in cells:
        with contextlib.suppress(NameError):
            exec(code, expected)
    ended = [(code, AT.format(1, len(code.splitlines()))) if "boom" in code else code for code in cells]
    program = Program.of(events(*ended, query="q", files=()))

    assert run(program, tmp_path).stdout.splitlines() == said
    assert "5" in said[0]
    assert (program.left_out, program.missing) == ([], [])
    assert ("failed later" not in program.source()) is case.startswith("not")


@pytest.mark.parametrize(
    ("code", "line"), [("n = 1\nfor n in rows:\n    rows[n] = n / 0", 3), ("rows = [5]\ndf.nope", 0)]
)
def test_what_a_failed_cell_may_have_changed_in_part_is_said(code, line):
    error = AT.format(2, line) if line else "Stopped after 5 s, by an interrupt; variables are kept."
    program = Program.of(events("rows = [1]", (code, error), "print(rows)", query="q", files=()))

    assert program.left_out == ["cell 2, which failed: it may have changed rows"]
    assert "\n# Left out: cell 2, which failed: it may have changed rows\n" in program.source()


@pytest.mark.parametrize("end", ["stopped", "unfinished", "failed"])
def test_a_request_of_whose_code_nothing_ran_to_its_end_is_named_as_left_out_only(end):
    error = "Stopped on request, by an interrupt; variables are kept." if end == "stopped" else AT.format(2, 1)
    ran = [] if end == "unfinished" else [CellRan(2, False, None, "", "", error, [], [], False, 0.1)]
    second = [RoundOpened("r2", "Simulate the totals 1000000 times", []), CellStarted(2, "boom()"), *ran]
    program = Program.of([*events("print(4)", query="q " * 150, files=()), *second])

    text = program.source()
    head, _, code = text.partition("print(4)")
    assert "Simulate" not in head
    assert "q …" in head
    assert "\n# Left out: Simulate the totals 1000000 times: none of its code ran to its end\n" in code


def test_checks_of_answers_and_cells_that_were_undone_are_left_out():
    failed = CellRan(2, False, None, "", "", AT.format(2, 2), [], [], False, 0.1, undone=True)
    check = [CellStarted(3, "rows.append(7)", check=True), CellRan(3, True, None, "", "", "", [], [], False, 0.1, True)]
    happened = [*events("rows = [1]"), CellStarted(2, "rows.append(5)\nboom"), failed, *check]
    happened += [CellStarted(4, "print(rows)"), CellRan(4, True, None, "", "", "", [], [], False, 0.1)]

    assert [cell.source for cell in Program.of(happened).cells] == ["rows = [1]", "print(rows)"]


WHOLE = {
    "an await": (["async def f(): return 4", "n = await f()", "print('''a''')\nawait f() + n"], ["a", "8"]),
    "an await in a comprehension": (["async def f(): return '\\n'\n[await f() for _ in [1]]"], ["['\\n']"]),
    "async with": (["import asyncio", "async with asyncio.Lock():\n    n = 4", "n"], ["4"]),
    "features": (["n = 4", "from __future__ import annotations; m = 5\ndef f(x: nope): ...", "n + m"], ["9"]),
    "global": (["n = 4", "global n\nn = 5", "n"], ["5"]),
}


@pytest.mark.parametrize("case", WHOLE)
def test_what_only_a_kernel_takes_runs_in_a_program(tmp_path, case):
    cells, lines = WHOLE[case]

    ran = run(Program.of(events(*cells, query="q", files=())), tmp_path)

    assert (ran.stdout.splitlines(), ran.stderr) == (lines, "")


@pytest.mark.parametrize("name", ["fläche_m².csv", "CO₂.csv", "销售Ｑ１.csv", "2023 ½ (alt).csv", "ŉ.csv"])
def test_a_program_starts_whatever_its_parameters_are_called(tmp_path, name):
    (tmp_path / name).write_text("a", encoding="utf-8")
    (tmp_path / "b.csv").write_text("b", encoding="utf-8")
    code = f"print(open({name!r}).read() * 3)"

    program = Program.of(events(code, query=f"I need help: 3 of {name}", files=[name]))

    assert run(program, tmp_path).stdout == "aaa\n"
    assert run(program, tmp_path, "b.csv", "--help-2", "4").stdout == "bbbb\n"


def test_a_program_goes_on_after_a_cell_that_ended_with_an_exit(tmp_path):
    early = "import sys\ntotal = 42\nif total:\n    sys.exit(0)\nprint('never')"
    program = Program.of(events(early, "print(total)", "raise SystemExit", "if total > 41: sys.exit(3)", "print('no')"))

    ran = run(program, tmp_path)

    assert (ran.returncode, ran.stdout, ran.stderr) == (3, "42\n", "")


@pytest.mark.parametrize("end", [";", " ;  # größe; of it", "  # shown;", "\n# shown;"])
def test_a_value_before_a_semicolon_is_not_shown(tmp_path, end):
    program = Program.of(events(f"x = 'größe'; x{end}"))

    assert run(program, tmp_path).stdout == ("größe\n" if "shown" in end else "")


def test_functions_of_the_session_hide_none_of_the_programs_own(tmp_path):
    cells = [
        "def show(t, n):\n    return t * n\ndef run_cell(): pass",
        "[1, 2]",
        "show('a', 2)",
        "import sys\nsys.exit()",
    ]

    ran = run(Program.of(events(*cells)), tmp_path)

    assert (ran.stdout, ran.stderr) == ("[1, 2]\naa\n", "")


def test_names_that_no_cell_makes_are_named(tmp_path):
    cells = ["def f(x):\n    return helper(x) + len(loads)", "def helper(x): return {x for x in loads}", "_, _y = f(1)"]
    program = Program.of(events(*cells, query="q", files=()))

    assert program.missing == ["loads"]
    assert "It uses what no cell makes, such as variables that were given: loads.\n" in program.source()
    assert not Program.of(events("from x import *\nloads", query="q", files=())).missing


def test_charts_are_saved_but_those_that_the_code_has_saved(tmp_path):
    first = "import io, matplotlib\nmatplotlib.use('Agg')\nimport matplotlib.pyplot as plt\nplt.plot([1])\n"
    second = "plt.figure()\nplt.savefig('own.svg')\nplt.figure().savefig(io.BytesIO())"
    alone = "plt.plot([1]); plt.savefig('alone.png')"
    program = Program.of(events(first + second, alone, query="q", files=()))

    ran = run(program, tmp_path)

    assert (ran.returncode, ran.stderr) == (0, "")
    found = sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".py")
    assert found == ["alone.png", "chart-1-3.png", "chart-1.png", "own.svg"]


@pytest.mark.parametrize("forged", ["{}ValueError: x", "ValueError: cell 1, line 99\n{}"])
def test_text_of_an_error_says_not_which_statements_ran(forged):
    error = forged.format(AT.format(1, 2)) + "RuntimeError: bad\n" + AT.format(1, 99)
    program = Program.of(events(("a = 1\nboom\nevil()", error), "a", query="q", files=()))

    assert "evil" not in program.source()


@pytest.mark.parametrize("query", ['say """ and \\', "50 %s of {x}", "two\nlines", "nul \0", ""])
def test_words_of_a_question_break_no_program(query):
    source = Program.of(events("x = 50", query=query)).source()

    compile(source, "program.py", "exec")


@pytest.mark.parametrize("before", range(60, 100, 13))
def test_help_is_cut_beside_no_percent_sign_and_says_the_defaults(tmp_path, before):
    query = f"{'of sales.csv ' * 20}"[: before - 8] + f" top 25 %{'%' * 60} of sales.csv"
    (tmp_path / "sales.csv").write_text(CSV, encoding="utf-8")
    ran = run(Program.of(events("n = 25\nopen('sales.csv')", query=query)), tmp_path, "--help")

    assert ran.returncode == 0, ran.stderr
    assert "(default: sales.csv)" in " ".join(ran.stdout.split())


def test_lines_are_those_of_python_whatever_else_ends_a_line_elsewhere():
    odd = "a = 'p\u2028q\x0c'\rb = 2\nraise ValueError"
    program = Program.of(events((odd, AT.format(1, 3) + "ValueError"), "c = b + 1", query="q", files=()))

    failed = "# Of a cell that failed later:\na = 'p\u2028q\x0c'\nb = 2"
    assert [cell.source for cell in program.cells] == [failed, "c = b + 1"]


def test_a_comment_of_a_cell_stays_one_in_the_program(tmp_path):
    program = Program.of(events("%time\n# harmless\u2028print('ran')\nprint('said')", query="q", files=()))

    assert run(program, tmp_path).stdout == "said\n"


MANY = [f"n{number:x}" for number in range(20_000)]
LARGE = {
    "files": {"cells": [f"x = {MANY[:10_000]}"], "files": MANY, "query": "q " * 5000},
    "plugins": {"cells": [" ".join(["#", *MANY])], "plugins": MANY},
    "cells that failed": {
        "cells": [*[(f"a{n}=[{'1,' * 5000}]\nboom", AT.format(1, 2)) for n in range(20)], *["b"] * 3000]
    },
    "names of cells that failed": {
        "cells": [*[(f"{name} = 1\nboom", AT.format(1, 2)) for name in MANY[:4000]], *MANY[:4000]]
    },
    "numbers of a question": {
        "cells": [f"x = [{', '.join(map(str, range(9000)))}]"],
        "query": " ".join(map(str, range(9000))),
    },
    "texts with values": {"cells": ["x = [" + "f'/a{b}'," * 9000 + "]"]},
}


@pytest.mark.parametrize("case", LARGE)
def test_a_long_session_takes_linear_time(case, cpu_seconds):
    given = dict(LARGE[case])
    happened = list(events(*given.pop("cells"), **given))
    notebook([])  # imports what it needs
    started = cpu_seconds()

    program, written = Program.of(happened), notebook(happened)

    assert program.source()
    assert written.cells
    assert cpu_seconds() - started < 20  # minutes where each is looked for among all others
