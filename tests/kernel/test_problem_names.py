"""Cells that take away what others need (names, streams, settings, the folder), and those that are no plain Python."""

import shutil

import pandas as pd
import pytest

from tests.kernel.filled import filled, keep, linux, run, works


@pytest.fixture(scope="module")
def kernel():
    with filled() as kernel:
        yield kernel


HARMLESS = {
    "nothing": "",
    "spaces": "\n   \n",
    "a comment": "# nothing to do",
    "a semicolon": "kept;",
    "await": "import asyncio\nawait asyncio.sleep(0)",
    "%time": "%time 1 + 1",
    "%%time": "%%time\n1 + 1",
    "%timeit": "%timeit -n 1 -r 1 1 + 1",
    "%matplotlib inline": "%matplotlib inline",
    "%pwd": "%pwd",
    "%who": "%who",
    "?": "len?",
    "%reset without -f": "%reset",
    "no plugin": "del double",
    "no served function": "del ask",
    "another plugin": "double = None",
    "no streams": "import sys\nsys.stdout = sys.stderr = sys.stdin = None",
    "streams that do nothing": "import sys\nsys.stdout.write = sys.stderr.write = sys.stdout.flush = None",
    "no builtins": "__builtins__ = None",
    "names that are numbers": "globals().update({2020: 1.5, (1, 2): 'x'})",
    "no name": "__name__ = None\ndel __name__",
    "no IPython": "get_ipython = None",
    "no environment": "import os\nos.environ.clear()",
    "no path": "import sys\nsys.path.clear()\nsys.meta_path.clear()",
    "warnings are errors": "import warnings\nwarnings.simplefilter('error')",
    "SIGINT is ignored": "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN);",
    "another folder": "import os\nos.chdir('/')",
    "a tracer that raises": "import sys\nsys.setprofile(lambda *args: 1 / 0)",
    "no recursion": "import sys\nsys.setrecursionlimit(100)",
    "no garbage collection": "import gc\ngc.disable()",
}


@pytest.mark.parametrize("code", HARMLESS.values(), ids=HARMLESS.keys())
def test_after_this_the_next_cell_has_all_that_was_promised(code):
    with filled() as kernel:
        assert not run(kernel, code, seconds=30, within=5).state_lost
        works(kernel)
        assert run(kernel, "1 / 0", seconds=30).error.endswith("ZeroDivisionError: division by zero")
        works(kernel)


@pytest.mark.parametrize("rollback", [False, True])
@pytest.mark.parametrize("error", ["RuntimeError", "SystemExit", "KeyboardInterrupt"])
def test_a_variable_that_may_not_be_looked_at_is_told_by_its_type(error, rollback):
    code = (
        f"class Shy:\n    def __getattribute__(self, name):\n        raise {error}(name)\n\nshy = Shy()\nof_it = [shy]"
    )
    with filled(rollback_on_error=rollback) as kernel:
        execution = run(kernel, code, seconds=30)

        assert execution.ok, execution.error
        assert ("shy", "Shy") in [(variable.name, variable.type) for variable in execution.variables]
        works(kernel)
        assert "ZeroDivisionError" in run(kernel, "again = [shy, of_it]\n1 / 0", seconds=30).error
        works(kernel)


FAILING = {
    "a syntax error": ("total = (1,", "SyntaxError"),
    "an indentation error": ("  x = 1\n y = 2", "IndentationError"),
    "a tab error": ("if 1:\n\tx = 1\n        y = 2", "Error"),
    "bytes that are no source": ("x = '\0'", "Error"),
    "sys.exit with a code": ("import sys\nsys.exit(3)", "SystemExit: 3"),
    "sys.exit with words": ("import sys\nsys.exit('no rows')", "SystemExit: no rows"),
    "input": ("input('name? ')", "EOFError: input() can't be used here"),
    "getpass": ("import getpass\ngetpass.getpass()", "EOFError: input() can't be used here"),
    "stdin": ("import sys\nraise ValueError(sys.stdin.read(1))", "Error"),
    "an unknown magic": ("%nosuch", "`%nosuch` not found"),
    "an unknown cell magic": ("%%nosuch\nx", "`%%nosuch` not found"),
    "return at the top": ("return 5", "SyntaxError"),
    "an exception that is none": ("raise 5", "TypeError"),
    "a base exception": ("raise BaseException('base')", "BaseException: base"),
    "a generator's exit": ("raise GeneratorExit", "GeneratorExit"),
    "an interrupt of its own": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "a cancelled one": ("import asyncio\nraise asyncio.CancelledError", "CancelledError"),
    "a group": ("raise ExceptionGroup('both', [ValueError('a'), OSError('b')])", "both"),
    "an event loop of its own": ("import asyncio\nasyncio.run(asyncio.sleep(0))", "RuntimeError"),
}


ENDS_EARLY = {
    "sys.exit": "import sys\nsys.exit()",
    "sys.exit with 0": "import sys\nsys.exit(0)",
    "a main function": "def main():\n    return 0\nraise SystemExit(main())",
    "in an await": "import asyncio, sys\nawait asyncio.sleep(0)\nsys.exit(0)",
    "exit": "exit()",
    "quit": "quit()",
}


@pytest.mark.parametrize("end", ENDS_EARLY.values(), ids=ENDS_EARLY.keys())
def test_a_cell_that_exits_without_an_error_has_run_well_and_the_kernel_goes_on(kernel, end):
    keep(kernel)
    execution = run(kernel, f"early = 1\nprint('done')\n{end}\nearly = 2", seconds=30, within=2)

    assert (execution.ok, execution.error, execution.stdout, execution.stderr) == (True, "", "done\n", "")
    assert run(kernel, "early", seconds=30).result == "1"
    assert run(kernel, "quit", seconds=30).ok
    works(kernel)


@pytest.mark.parametrize(("code", "told"), FAILING.values(), ids=FAILING.keys())
def test_what_fails_is_told_and_costs_nothing(kernel, code, told):
    keep(kernel)
    execution = run(kernel, code, seconds=30, within=2)

    assert not execution.ok
    assert told in execution.error
    assert not execution.stderr
    assert not execution.state_lost
    works(kernel)


@pytest.mark.skipif(not linux, reason="the commands are those of a Unix system")
def test_shell_commands_print_and_can_be_read(kernel):
    assert run(kernel, "!echo hi", seconds=30).stdout == "hi\n"
    assert (
        run(kernel, "word = 'you'\n!echo hi {word} $word; echo to >&2; exit 3", seconds=30).stdout == "hi you you\nto\n"
    )
    assert run(kernel, "_exit_code", seconds=30).result == "3"
    assert run(kernel, "lines = !echo a; echo b\nlines", seconds=30).result == "['a', 'b']"
    assert run(kernel, "%%bash\necho bash", seconds=30).stdout == "bash\n"
    assert "subprocess.Popen" in run(kernel, "!sleep 1 &", seconds=30).error
    works(kernel)


def test_reset_removes_the_cells_variables_and_keeps_what_the_host_has_put_there(kernel):
    keep(kernel)
    kernel.put("table", pd.DataFrame({"a": [1, 2]}))
    told = run(kernel, "own = 3\n%reset -f", seconds=30)

    assert "own" not in [variable.name for variable in kernel.variables()]
    assert {variable.name for variable in kernel.variables()} == {"given", "table"}
    assert not told.state_lost
    assert run(kernel, "table['a'].sum() + given", seconds=30).result == "np.int64(10)"
    works(kernel, kept=False)


def test_a_put_variable_that_code_deletes_or_changes_stays_so(kernel):
    kernel.put("mine", 1)
    run(kernel, "mine = 2", seconds=30)
    assert run(kernel, "mine", seconds=30).result == "2"
    run(kernel, "del mine", seconds=30)
    assert "NameError" in run(kernel, "mine", seconds=30).error


def test_what_code_overwrites_in_its_own_namespace_it_gets_back_by_deleting_it(kernel):
    keep(kernel)
    run(kernel, "print = display = len = open = 3", seconds=30)
    assert run(kernel, "kept + 1", seconds=30).result == "6"
    assert "TypeError: 'int' object is not callable" in run(kernel, "print(1)", seconds=30).error

    run(kernel, "del print, display, len, open", seconds=30)
    assert run(kernel, "display(len('abc'))", seconds=30).stdout == "3\n"
    works(kernel)


@pytest.fixture
def session(tmp_path):
    """Give a kernel whose folder a cell may empty, in the sandbox, and that folder."""
    folder = tmp_path / "session"
    with filled(folder, allow_symlinks=True) as kernel:
        assert "a root of its own" in kernel.where
        yield kernel, folder


@pytest.mark.skipif(not linux, reason="a cell that deletes is run in a sandbox only")
def test_the_folder_emptied_left_or_replaced(session):
    kernel, folder = session
    empty = (
        f"import os, pathlib, shutil\nhere = {str(folder)!r}\n"
        f"assert here.startswith({str(folder.parent)!r}) and os.path.samefile(here, os.getcwd())\n"
    )
    run(kernel, "open('mark', 'w').write('x')", seconds=30)
    assert run(kernel, f"{empty}shutil.rmtree(here, ignore_errors=True)", seconds=30).ok
    assert not (folder / "mark").exists()
    works(kernel)

    run(kernel, "import os\nos.mkdir('sub')\nos.chdir('sub')\nos.rmdir('../sub')", seconds=30)
    assert run(kernel, "import os\nos.getcwd()", seconds=30).result == repr(str(folder))
    assert not run(kernel, f"os.rename({str(folder)!r}, {str(folder)!r} + '-moved')", seconds=30).ok
    works(kernel)
    run(kernel, "open('again', 'w').write('x')", seconds=30)
    assert (folder / "again").exists()


LAID = {
    "a link": "os.symlink('/etc', '.tw-exchange')",
    "a file": "open('.tw-exchange', 'w').write('x')",
    "a link to nothing": "os.symlink('nowhere', '.tw-exchange')",
}


@pytest.mark.skipif(not linux, reason="a cell that deletes is run in a sandbox only")
@pytest.mark.parametrize("laid", LAID.values(), ids=LAID.keys())
def test_what_code_lays_in_the_place_of_the_folder_for_tables_is_removed(session, laid):
    kernel, _ = session
    table = pd.DataFrame({"a": [1, 2]})
    kernel.put("table", table)
    lay = f"import os, shutil\nif os.path.exists('.tw-exchange'): os.rename('.tw-exchange', 'old')\n{laid}"
    assert run(kernel, lay, seconds=30).ok

    kernel.put("table", table)
    assert kernel.get("table").equals(table)
    works(kernel)


@pytest.mark.skipif(not linux, reason="in another sandbox the folder is seen itself, and made again")
def test_a_folder_removed_by_somebody_else_is_there_again_after_a_restart(session):
    kernel, folder = session
    shutil.rmtree(folder)

    assert not run(kernel, "open('lost', 'w').write('x')", seconds=30).ok
    works(kernel)
    kernel.restart()
    assert run(kernel, "open('found', 'w').write('x')", seconds=30).ok
    assert (folder / "found").exists()


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("absent.a\ndef f(y):\n    return plt.plot(y, kept)\nsns", "not defined: plt, sns."),
        ("absent\nimport no_such_module, json\nlater = 1", "not installed: no_such_module."),
        ("import no_such_module.part as part\npart.run(absent)", "not defined: absent."),
        ("%matplotlib inline\nabsent\nsns", "not defined: sns."),
    ],
)
def test_a_missing_name_tells_what_else_the_cell_lacks(kernel, code, told):
    last = kernel.execute(code, seconds=30).error.splitlines()[-1]
    assert last.partition(" Installed are ")[0] == f"This cell lacks more; {told}"


def test_where_a_library_is_missing_those_that_are_there_are_named(kernel):
    last = kernel.execute("import no_such_module", seconds=30).error.splitlines()[-1]
    assert last.startswith("Installed are numpy, pandas, ")
    assert "no_such_module" not in last


@pytest.mark.parametrize(
    "code",
    [
        "absent",
        "from math import *\nabsent\nsin(sns)",
        "try:\n    import no_such_module\nexcept ImportError:\n    pass\nabsent",
        "class A:\n    one = 1\n    two = one\n    def me(self):\n        return __class__\nabsent",
        "for i in range(2):\n    pass\n[j + i for j in absent]\nlambda k: k + i",
        "1 / 0\nsns",
    ],
)
def test_nothing_is_told_where_nothing_else_is_missing(kernel, code):
    assert "lacks more" not in kernel.execute(code, seconds=30).error


TABLES = (
    "import pandas as pd\ndf = pd.DataFrame({'Kunde': ['a'], 'Betrag (EUR)': [5.0]})\n"
    "other = df.rename(columns={'Kunde': 'Region'})"
)
DF = "df has the columns 'Kunde', 'Betrag (EUR)'"
MISSING = {
    "a column": ("print(df['Betrag'].sum())", f"{DF}; nearest: 'Betrag (EUR)'."),
    "several columns": ("df[['Kunde', 'Betrag']]", f"{DF}; nearest: 'Betrag (EUR)'."),
    "an accent and case": ("df['KÜNDE']", f"{DF}; nearest: 'Kunde'."),
    "nothing like it": ("df['x']", f"{DF}."),
    "groups": ("df.groupby('kunden').sum()", f"{DF}; nearest: 'Kunde'."),
    "a merge": ("df.merge(other, on='Region')", f"{DF}."),
    "an order": ("df.sort_values('Betrag')", f"{DF}; nearest: 'Betrag (EUR)'."),
    "an index": ("df.set_index('Betrag')", f"{DF}; nearest: 'Betrag (EUR)'."),
    "by label": ("df.loc[:, 'Betrag']", f"{DF}; nearest: 'Betrag (EUR)'."),
    "to drop": ("df.drop(columns='Betrag')", f"{DF}; nearest: 'Betrag (EUR)'."),
    "in a function": (
        "def f(table):\n    return table['Betrag']\nf(df)",
        f"{DF.replace('df', 'table')}; nearest: 'Betrag",
    ),
    "of no variable": ("df.copy()['Betrag']", f"{DF.replace('df', 'The table')}; nearest: 'Betrag (EUR)'."),
}


@pytest.mark.parametrize(("code", "said"), MISSING.values(), ids=MISSING.keys())
def test_an_error_for_want_of_a_column_names_those_that_are_there(kernel, code, said):
    run(kernel, TABLES, seconds=30)

    assert run(kernel, code, seconds=30).error.splitlines()[-1].startswith(said)


@pytest.mark.parametrize(
    "code", ["df.loc['x']", "{'a': 1}['x']", "df['Kunde'][5]", "df.drop('x')", "raise KeyError('x')"]
)
def test_an_error_for_want_of_another_key_names_no_columns(kernel, code):
    run(kernel, TABLES, seconds=30)

    assert "columns" not in run(kernel, code, seconds=30).error.splitlines()[-1]


def test_an_error_for_want_of_a_file_names_similar_ones(kernel):
    (kernel.folder / "Umsätze 2023-24.csv").write_text("a\n1\n", encoding="utf-8")
    (kernel.folder / "other.txt").write_text("x", encoding="utf-8")

    read = run(kernel, "import pandas as pd\npd.read_csv('Umsatze.csv')", seconds=30)
    unlike = run(kernel, "open('quarterly.parquet')", seconds=30)
    written = run(kernel, "open('none/Umsatze.csv', 'w')", seconds=30)

    assert read.error.splitlines()[-1] == "Similar files that are there: 'Umsätze 2023-24.csv'."
    assert not [one for one in (unlike, written) if "Similar" in one.error]
