"""Cells in a real kernel: what is kept, what is told, what can't break it."""

import importlib.util
import sys
import unicodedata

import pytest

from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.kernel.guest.display import AfterImport


def test_names_are_those_that_code_reads_however_their_letters_are_written(kernel):
    name = unicodedata.normalize("NFD", "größe")
    kernel.put(name, 5)
    kernel.serve(f"twice_{name}", lambda: 10)

    assert kernel.execute(f"{name}, twice_{name}()", seconds=30).result == "(5, 10)"
    assert (kernel.get(name), kernel.get("größe")) == (5, 5)
    with pytest.raises(ValueError, match="'ｉｆ' is not a Python name"):
        kernel.put("ｉｆ", 1)


def test_what_is_told_of_a_variable_holds_no_secret_and_code_has_its_value(kernel):
    kernel.put("api_token", "VALUE-1234567890")
    execution = kernel.execute("made = {'password': api_token}\nlen(made['password'])", seconds=30)

    told = [str(one) for one in kernel.variables() if one.name in ("api_token", "made")]
    assert (execution.result, told) == (
        "16",
        ["api_token: str, [secret]", "made: dict, 1 key: {'password': '[secret]'}"],
    )
    assert not any("VALUE" in one.summary for one in execution.variables)


def test_a_kernel_remembers(run):
    run("kept = [1, 2]")

    assert run("kept + [3]").result == "[1, 2, 3]"


def test_what_is_printed_and_what_is_returned_are_both_there(run):
    execution = run("import sys\nprint('out')\nprint('err', file=sys.stderr)\n6 * 7")

    assert (execution.stdout, execution.stderr, execution.result) == ("out\n", "err\n", "42")


def test_output_arrives_while_the_cell_runs(kernel):
    heard = []
    kernel.execute("print('now')", seconds=30, on_output=lambda stream, text: heard.append((stream, text)))

    assert "".join(text for stream, text in heard if stream == "stdout") == "now\n"


@pytest.mark.parametrize("code", ["x = 1;", "x = 1\nx;", "print('shown');", "# only a comment", "", "%time x = 1"])
def test_semicolons_comments_and_magics_do_no_harm_to_it_or_to_the_next_cell(run, code):
    run(code)

    assert run("'alive'").result == "'alive'"


@pytest.mark.parametrize(
    "code",
    ["sx ('touch' ' made')", "system ('touch made')", "run (mark.py)", "load (mark.py)", "save (made)", "mkdir (made)"]
    + ["env", "logstart", "history -f -x", "notebook (made)", "%time sx ('touch' ' made')"],
)
def test_without_its_sign_a_magic_is_plain_python(kernel, code):
    (kernel.folder / "(mark.py)").write_text("open('made', 'w')", encoding="utf-8")
    assert kernel.execute("print(1)", seconds=30).ok  # the folder for what is printed is there then
    before = {path.name for path in kernel.folder.iterdir()}

    execution = kernel.execute(code, seconds=30)

    assert "NameError" in execution.error + execution.stderr  # `%time` of older IPythons prints it
    assert {path.name for path in kernel.folder.iterdir()} == before


def test_await_at_top_level_works(run):
    assert run("import asyncio\nawait asyncio.sleep(0, 'waited')").result == "'waited'"


def test_a_cell_after_a_failed_one_runs(kernel):
    for _ in range(20):
        assert not kernel.execute("1 / 0", seconds=30).ok
        assert kernel.execute("1", seconds=30).result == "1"


def test_an_error_quotes_the_cells_own_line_and_no_path_of_this_machine(kernel):
    execution = kernel.execute(
        "import pandas as pd\n\ndef total(frame):\n    return frame['nothing'].sum()\n\n"
        "total(pd.DataFrame({'a': [1]}))",
        seconds=30,
    )

    assert "line 6\n    total(pd.DataFrame({'a': [1]}))" in execution.error
    assert "line 4, in total\n    return frame['nothing'].sum()" in execution.error
    assert execution.error.endswith("KeyError: 'nothing'\nframe has the columns 'a'.")
    assert "/" not in execution.error.replace("N/A", "")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="ExceptionGroup is of Python 3.11")
def test_a_path_that_only_ends_like_one_of_this_machine_is_quoted_whole(kernel):
    code = "import os, warnings\nwarnings.warn(f'see {os.getcwd()}/b.csv')\nopen(f'/mnt{os.getcwd()}/a.csv')"
    execution = kernel.execute(code, seconds=30)

    assert f"'/mnt{kernel.folder}/a.csv'" in execution.error.partition("\nThe sandbox")[0]
    assert "UserWarning: see b.csv" in execution.stderr


@pytest.mark.skipif(sys.version_info < (3, 11), reason="there are no groups of errors yet")
def test_an_error_that_is_a_group_quotes_the_errors_in_it(kernel):
    code = "errors = []\nfor n in 'xy':\n    try:\n        int(n)\n    except ValueError as e:\n        errors += [e]"

    said = kernel.execute(f"{code}\nraise ExceptionGroup('tasks', [ExceptionGroup('inner', errors)])", seconds=30).error

    assert "line 4\n    int(n)\nValueError: invalid literal for int() with base 10: 'x'" in said
    assert "'y'" in said
    assert said.endswith("ExceptionGroup: tasks (1 sub-exception)")


def test_a_module_that_is_only_looked_for_is_tuned_when_it_is_imported(tmp_path, monkeypatch):
    (tmp_path / "tuned_later.py").write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    tuned = []
    AfterImport("tuned_later", tuned.append).install()

    assert importlib.util.find_spec("tuned_later")
    assert tuned == []
    assert [importlib.import_module("tuned_later")] == tuned


def test_an_error_quotes_its_own_cell_and_not_the_one_before(kernel):
    kernel.execute("first = 1", seconds=30)
    execution = kernel.execute("second = 2\nraise ValueError('here')", seconds=30)

    assert "line 2\n    raise ValueError('here')" in execution.error


def test_a_syntax_error_is_told_with_its_line(kernel):
    execution = kernel.execute("a = 1\nb = (2", seconds=30)

    assert not execution.ok
    assert "line 2" in execution.error
    assert "SyntaxError" in execution.error


def test_variables_are_told_with_type_and_shape(run):
    execution = run("import pandas as pd\nframe = pd.DataFrame({'a': [1, 2], 'b': [1.5, None]})\ncount = 3")
    told = [str(variable) for variable in execution.variables]

    assert "frame: DataFrame, 2 x 2, columns a: int64, b: float64 (1 missing)" in told
    assert "count: int, 3" in told
    assert not [one for one in told if one.startswith("pd:")]


def test_what_is_only_imported_is_not_told_as_a_variable(run):
    imports = "from decimal import Decimal\nfrom textwrap import dedent\nfrom math import sqrt\n"
    execution = run(f"{imports}def half(x):\n    return x / 2\nclass Own: ...")

    assert {"half", "Own"} <= {variable.name for variable in execution.variables}
    assert not {"Decimal", "dedent", "sqrt"} & {variable.name for variable in execution.variables}


def test_an_object_whose_repr_raises_breaks_nothing(run, kernel):
    run("class Bad:\n    def __repr__(self):\n        raise RuntimeError('no words')\nbad = Bad()")

    assert "bad" in [variable.name for variable in kernel.variables()]
    assert "RuntimeError: no words" in kernel.execute("bad", seconds=30).stderr
    assert run("1").result == "1"


def test_tables_of_columns_are_not_cut_to_a_few_rows(run):
    shown = run("import pandas as pd\npd.DataFrame({f'c{i}': [i] for i in range(30)}).dtypes").result

    assert all(f"c{i} " in shown for i in range(30))


def test_long_output_is_cut_in_the_middle_and_the_kernel_lives(run):
    execution = run("print('a' * 30_000_000 + 'END')\n'b' * 10_000_000")

    assert len(execution.stdout) < 2_000_000
    assert execution.stdout.endswith("END\n")
    assert "left out" in execution.stdout
    assert len(execution.result) < 2_000_000


def test_many_small_prints_and_displays_end(run):
    assert run("for i in range(20_000): print(i)").ok
    assert run("from IPython.display import display\nfor i in range(3_000): display(i)").ok


def test_input_is_refused_at_once_and_says_why(kernel):
    execution = kernel.execute("input('name? ')", seconds=30)

    assert "EOFError: input() can't be used here" in execution.error


def test_exit_ends_nothing(kernel):
    kernel.execute("kept = 1", seconds=30)
    kernel.execute("exit()", seconds=30)

    assert kernel.execute("kept", seconds=30).result == "1"


def test_code_runs_in_the_folder(kernel, run):
    run("open('here.txt', 'w').write('x')")

    assert (kernel.folder / "here.txt").read_text(encoding="utf-8") == "x"


def test_where_it_runs_is_one_line(kernel):
    kernel.execute("1", seconds=30)

    assert kernel.where.startswith(f"local kernel, Python 3.{sys.version_info.minor}")
    assert f"pid {kernel.pid}, " in kernel.where
    assert "sandbox" in kernel.where


def test_the_hosts_secrets_are_not_passed_on(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    monkeypatch.setenv("PLUGIN_weather_KEY", "for the plugin")
    monkeypatch.setenv("HARMLESS", "yes")
    with LocalKernel(tmp_path, settings=KernelSettings(environment=("HARMLESS",))) as kernel:
        seen = kernel.execute("import os\nprint(dict(os.environ))", seconds=30).stdout

    assert "sk-planted" not in seen
    assert "'HARMLESS': 'yes'" in seen


def test_a_temporary_folder_is_gone_with_the_kernel():
    with LocalKernel() as kernel:
        kernel.execute("open('a', 'w').write('a')", seconds=30)
        folder = kernel.folder
        assert folder.exists()

    assert not folder.exists()


def test_a_closed_kernel_closes_again_without_a_word(tmp_path):
    kernel = LocalKernel(tmp_path)
    kernel.execute("1", seconds=30)
    kernel.close()
    kernel.close()


KEPT = """
import linecache
shell = get_ipython()
history = shell.history_manager
held = (shell.user_ns, shell.user_ns_hidden, history.input_hist_raw, history.input_hist_parsed)
[len(one) for one in held]
"""


def test_nothing_is_kept_of_each_cell_but_what_tracebacks_quote(run):
    run(KEPT)
    before = run(KEPT).result
    for number in range(20):
        run(f"of_this_test_alone = {number}")
    run("del of_this_test_alone")

    assert run(KEPT).result == before


def test_of_the_oldest_cells_nothing_is_left(run):
    run("for number in range(5000, 6500):\n    get_ipython().compile.cache('1', number, raw_code='1')")
    names = "[name for name in linecache.cache if '<cell ' in name]"
    cells = run(f"import linecache\n[len({names}), len(get_ipython().compile._filename_map)]")

    assert cells.result == "[1000, 1000]"


def test_what_is_captured_is_not_shown_and_is_there(kernel):
    shown = kernel.execute("%%capture kept\nprint('hidden')\nw = 5\nw", seconds=30)

    assert (shown.ok, shown.stdout, shown.result) == (True, "", None)
    assert kernel.execute("kept.stdout, kept.outputs[0].data, w", seconds=30).result == (
        "('hidden\\n', {'text/plain': '5'}, 5)"
    )
    assert kernel.execute("print('seen')", seconds=30).stdout == "seen\n"


@pytest.mark.parametrize(
    ("code", "line", "error"),
    [
        ("x = 1\n1 / 0", "line 3\n    1 / 0", "ZeroDivisionError: division by zero"),
        ("1 +", "line 2\n    1 +", "SyntaxError: invalid syntax"),
        ("import asyncio\nawait asyncio.sleep(0)", "line 1", "RuntimeError: This event loop is already running"),
    ],
)
def test_a_cell_that_is_captured_fails_where_its_code_does(kernel, code, line, error):
    failed = kernel.execute(f"%%capture\n{code}", seconds=30)

    assert not failed.ok
    assert line in failed.error
    assert failed.error.endswith(error)


@pytest.mark.parametrize("name", ["_", "__", "_i", "Out", "In"])
def test_a_name_of_a_history_that_is_not_kept_is_no_name(kernel, name):
    kernel.execute("%reset -f", seconds=30)
    kernel.execute("1 + 1", seconds=30)

    assert f"NameError: name '{name}' is not defined" in kernel.execute(name, seconds=30).error


def test_the_help_of_a_function_is_printed(kernel):
    for code in ("len?", "?len", "%pinfo len"):
        assert "Return the number of items in a container." in kernel.execute(code, seconds=30).stdout


def test_functions_of_cells_can_be_cached_by_numba(kernel):
    folder = kernel.folder / "numba" / "core"  # as that package has it, which need not be installed
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("")
    (folder / "__init__.py").write_text("")
    (folder / "caching.py").write_text(
        "class IPythonCacheLocator:\n    @classmethod\n    def from_function(cls, function, file):\n"
        "        return cls.__name__ if file.startswith('<ipython-') else None\n"
    )
    find = "find = IPythonCacheLocator.from_function\nfind(f, f.__code__.co_filename), find(f, '/a/b.py')"
    found = kernel.execute(f"from numba.core.caching import IPythonCacheLocator\ndef f(): ...\n{find}", seconds=30)

    assert found.result == "('IPythonCacheLocator', None)", found.error
