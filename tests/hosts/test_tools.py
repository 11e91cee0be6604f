"""Plugins as tools of any agent, and the kernel as code executor of any agent."""

import asyncio
import contextlib
import csv
import json
import os
import sqlite3
import threading
import time
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from tw_autogen.code_interpreter import Policy
from tw_autogen.errors import ConfigError, PluginLoadError
from tw_autogen.hosts.agent_files import bring_linked
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.plugin import callable_plugin

autogen = pytest.importorskip("autogen", reason="the host is an extra; `make test` installs it")
conversable = pytest.importorskip("tw_autogen.hosts.conversable")
KernelCodeExecutor, register_plugins = conversable.KernelCodeExecutor, conversable.register_plugins
CodeBlock = autogen.coding.CodeBlock


@pytest.fixture
def tools(agent, served, tmp_path):
    """Register plugins with a caller and an executor; give the three."""
    made = []

    def make(plugins, **more):
        caller, executor = agent("caller", llm_config=served()), agent("executor")
        made.append(register_plugins(caller, executor, plugins, folder=tmp_path / "tools", **more))
        return made[-1], caller, executor

    yield make
    for one in made:
        one.close()


def called(executor, name, **arguments):
    """Have an agent run a tool call as the host does; give the tool's words."""
    call = {"id": "1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    final, reply = executor.generate_tool_calls_reply(
        messages=[{"role": "assistant", "content": None, "tool_calls": [call]}]
    )
    assert final
    return reply["tool_responses"][0]["content"]


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def test_the_callers_model_is_offered_the_plugin_with_its_schema(tools):
    _, caller, _ = tools([callable_plugin(double)])
    (offered,) = caller.llm_config["tools"]

    assert offered["function"]["name"] == "double"
    assert offered["function"]["description"] == "Double a number."
    assert offered["function"]["parameters"]["properties"] == {"number": {"type": "integer"}}


WAIT_YAML = "name: wait\ndescription: Wait.\nparameters:\n- {name: seconds, type: float, description: How long.}\n"
WAIT = """
import time
from tw_autogen.plugin import Plugin, register_plugin

@register_plugin
class Wait(Plugin):
    def __call__(self, seconds):
        print("waiting", file=open("waiting", "w"))
        time.sleep(seconds)
        return "waited"
"""


def test_a_call_is_interrupted_when_the_task_is_cancelled_and_the_next_one_is_answered(tools, tmp_path):
    (tmp_path / "wait.yaml").write_text(WAIT_YAML, encoding="utf-8")
    (tmp_path / "wait.py").write_text(WAIT, encoding="utf-8")
    made, _, executor = tools([tmp_path / "wait.yaml"])
    wait = executor.function_map["wait"]

    async def main():
        work = asyncio.create_task(wait(seconds=60))
        while not (made.folder / "waiting").exists():
            await asyncio.sleep(0.05)
        queued = asyncio.create_task(wait(seconds=60))
        await asyncio.sleep(0.1)
        for one in (queued, work):
            one.cancel()
            with pytest.raises(asyncio.CancelledError):
                await one
        return await asyncio.wait_for(wait(seconds=0), 30)

    assert asyncio.run(main()) == "waited"
    for one in threading.enumerate():
        if one.name in ("tool wait", "interrupt"):
            one.join(5)
            assert not one.is_alive(), one.name


def test_a_plugin_of_the_host_runs_here(tools):
    _, _, executor = tools([callable_plugin(double)])

    assert called(executor, "double", number=21) == "42"
    assert called(executor, "double", number="21") == "42"


@pytest.mark.parametrize("runs_in", ["kernel", "host"])
def test_what_a_function_takes_by_position_only_is_given_so(tools, tmp_path, runs_in):
    (tmp_path / "shares.py").write_text(
        f"from tw_autogen.plugin import plugin\n@plugin(runs_in='{runs_in}')\n"
        "def share(whole: int, parts: int = 2, /, *, rest: int = 0) -> str:\n"
        '    """Share."""\n    return f"{whole} {parts} {rest}"\n',
        encoding="utf-8",
    )
    _, _, executor = tools([tmp_path / "shares.py"])

    assert called(executor, "share", whole=6) == "6 2 0"
    assert called(executor, "share", rest=1, parts=3, whole=7) == "7 3 1"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "double failed: ValueError: double: number: Field required. Its arguments: number"),
        ({"number": "many"}, "number: Input should be a valid integer"),
        ({"number": 1, "more": 2}, "more: Extra inputs are not permitted"),
    ],
)
def test_wrong_arguments_are_an_answer_for_the_model(tools, arguments, said):
    _, _, executor = tools([callable_plugin(double)])

    assert said in called(executor, "double", **arguments)


def test_tools_that_were_closed_do_nothing_more(tools, tmp_path):
    asked = []

    def count(table: pd.DataFrame) -> int:
        """Count rows."""
        asked.append(table)
        return len(table)

    made, _, executor = tools([callable_plugin(count)])
    (tmp_path / "tools" / "t.csv").write_text("a\n1\n")
    assert called(executor, "count", table="t.csv") == "1"
    made.close()

    assert called(executor, "count", table="t.csv") == "count was not called: these tools were closed"
    assert len(asked) == 1


def test_a_plugin_of_the_kernel_takes_a_table_by_file_name_and_gives_one_back(tools, tmp_path):
    rows = ["t,v", *(f"2026-01-{day:02d},{1 if day != 20 else 99}" for day in range(1, 31))]
    (tmp_path / "series.csv").write_text("\n".join(rows))
    made, _, executor = tools(["anomaly_detection"], files=[tmp_path / "series.csv"])
    said = called(executor, "anomaly_detection", df="series.csv", time_col_name="t", value_col_name="v")
    saved = made.folder / "anomaly_detection.csv"

    assert "A table in anomaly_detection.csv: 30 rows; columns: t" in said
    assert "Is_Anomaly (bool)" in said
    assert saved.read_text().count("True") == 1
    assert "3 standard deviations" in said


def by_region() -> pd.Series:
    """Sum sales by region."""
    return pd.Series([15, 20], index=pd.Index(["north", "south"], name="region"), name="sales")


def test_a_table_keeps_the_labels_of_its_rows(tools):
    made, _, executor = tools([callable_plugin(by_region)])

    assert called(executor, "by_region").endswith(
        "2 rows; index: region; columns: sales (int64); its head:\nregion,sales\nnorth,15\nsouth,20"
    )
    assert (made.folder / "by_region.csv").read_text() == "region,sales\nnorth,15\nsouth,20\n"


def test_what_one_tool_returns_is_read_by_the_next_as_it_was(tools, tmp_path):
    def dear(table: pd.DataFrame) -> pd.DataFrame:
        """Keep what is dear."""
        return table[table.price > 1]

    def held(table: pd.DataFrame) -> list:
        """List columns and rows."""
        return [list(table.columns), table.values.tolist()]

    (tmp_path / "zips.json").write_text('[{"zip": "01067", "price": 1}, {"zip": "09984", "price": 2}]')
    _, _, executor = tools([callable_plugin(dear), callable_plugin(held)], files=[tmp_path / "zips.json"])

    assert called(executor, "held", table="zips.json") == '[["zip", "price"], [["01067", 1], ["09984", 2]]]'
    called(executor, "dear", table="zips.json")
    assert called(executor, "held", table="dear.csv") == '[["zip", "price"], [["09984", 2]]]'


@pytest.mark.parametrize("name", ["nosuch.csv", "../series.csv", "/etc/hosts"])
def test_only_tables_of_the_working_folder_are_read(tools, tmp_path, name):
    (tmp_path / "series.csv").write_text("t,v\n1,2\n")
    _, _, executor = tools(["anomaly_detection"])
    said = called(executor, "anomaly_detection", df=name, time_col_name="t", value_col_name="v")

    assert f"{name!r} is no file of the working folder" in said


def test_a_table_whose_suffix_is_in_capitals_is_named_where_another_one_is_missing(tools, tmp_path):
    _, _, executor = tools(["anomaly_detection"])
    (tmp_path / "tools" / "SALES.CSV").write_text("t,v\n1,2\n")

    assert "tables there: SALES.CSV" in called(
        executor, "anomaly_detection", df="s.csv", time_col_name="t", value_col_name="v"
    )


def test_a_plugin_that_fails_is_told_in_words_and_what_it_made_is_not_the_next_ones(tools):
    def fail(number: int) -> int:
        """Fail."""
        made._made.append(None)
        raise LookupError("no such number\x1b[2J")

    def leave() -> None:
        """Leave, as `argparse` does."""
        raise SystemExit(2)

    made, _, executor = tools([callable_plugin(one) for one in (fail, leave, double)])

    assert called(executor, "fail", number=1) == r"fail failed: LookupError: no such number\x1b[2J"
    assert called(executor, "leave") == "leave failed: RuntimeError: SystemExit: 2"
    assert called(executor, "double", number=2) == "4"


def test_plugins_that_are_loaded_are_closed_where_a_later_one_does_not_load(tools, tmp_path):
    python = "from tw_autogen.plugin import Plugin, register_plugin\n@register_plugin\nclass A(Plugin):\n"
    for name, body in (("a", "def close(self):\n        (self.ctx.folder / 'closed').touch()"), ("b", "1 / 0")):
        (tmp_path / f"{name}.yaml").write_text(f"name: {name}\ndescription: d\nruns_in: host\n", encoding="utf-8")
        text = f"{python}    def __call__(self): ...\n    {body}\n"
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")

    with pytest.raises(PluginLoadError, match=r"b\.py:5: ZeroDivisionError"):
        tools([tmp_path / "a.yaml", tmp_path / "b.yaml"])

    assert (tmp_path / "tools" / "closed").exists()


def test_a_plugin_of_the_host_that_takes_too_long_is_not_waited_for(tools):
    end = threading.Event()
    _, _, executor = tools(
        [callable_plugin(end.wait, name="rest", description="Rest."), callable_plugin(double)], seconds=0.1
    )

    assert called(executor, "rest") == "rest failed: TimeoutError: no answer within 0.1 s; ask for less"
    end.set()


def test_long_results_come_as_a_summary_with_the_whole_in_a_file(tools):
    made, _, executor = tools([callable_plugin(lambda: "word " * 1000, name="talk", description="Talk.")])
    said = called(executor, "talk")

    assert said.startswith("5000 characters, all of them in talk.txt")
    assert (made.folder / "talk.txt").read_text() == "word " * 1000


@pytest.mark.parametrize("columns", [{"text": ["x" * 50_000] * 10}, {f"column {at}": [1] for at in range(5000)}])
def test_a_table_of_long_texts_or_many_columns_comes_as_a_summary_too(tools, tmp_path, columns):
    def texts() -> pd.DataFrame:
        """Return a table."""
        return pd.DataFrame(columns)

    _, _, executor = tools([callable_plugin(texts)])
    said = called(executor, "texts")

    assert said.startswith(f"A table in texts.csv: {len(texts())} rows; columns: {next(iter(columns))} (")
    assert len(said) < 5000
    assert len(pd.read_csv(tmp_path / "tools" / "texts.csv").columns) == len(columns)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (np.arange(3), "[0, 1, 2]"),
        ({"n": np.int64(3), "of": np.array([0.5, 2])}, '{"n": 3, "of": [0.5, 2.0]}'),
        ({pd.Timestamp("2024-05-01"): 3, ("a", 1): 4}, '{"2024-05-01 00:00:00": 3, "(\'a\', 1)": 4}'),
    ],
)
def test_arrays_and_dictionaries_with_any_keys_come_back_as_json(tools, value, said):
    def give():
        """Return a value."""
        return value

    _, _, executor = tools([callable_plugin(give)])

    assert called(executor, "give") == said


def test_a_nested_series_or_array_that_is_endless_as_text_is_an_error(tools):
    def endless(many: int) -> list:
        """Return one long category many times, or an array of nothing."""
        return [
            pd.Series(pd.Categorical.from_codes([0] * many, ["x" * 1_000_000])) if many else np.zeros((6_000_000, 0))
        ]

    _, _, executor = tools([callable_plugin(endless)])

    assert "characters are too long for a tool; pass fewer" in called(executor, "endless", many=500_000)
    assert "more than 5,000,000 values is too large for a tool; pass fewer" in called(executor, "endless", many=0)


def test_an_array_of_many_numbers_comes_back_whole(tools, tmp_path):
    def numbers():
        """Return numbers."""
        return np.arange(5000)

    _, _, executor = tools([callable_plugin(numbers)])
    called(executor, "numbers")

    assert json.loads((tmp_path / "tools" / "numbers.txt").read_text()) == list(range(5000))


def test_a_row_that_is_too_long_as_text_is_an_error_before_it_is_made(tools, monkeypatch):
    monkeypatch.setattr("tw_autogen.hosts.agent_files._MAX_CSV_CHARS", 16 << 20)

    def wide() -> pd.DataFrame:
        """Return one text in many columns."""
        return pd.DataFrame(dict.fromkeys(map(str, range(30)), ["x" * 1_000_000]))

    _, _, executor = tools([callable_plugin(wide)])
    tracemalloc.start()
    said = called(executor, "wide")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert "ValueError: the table takes more than 16 MB as CSV" in said
    assert most < 20_000_000


def test_a_small_table_that_is_endless_as_text_is_an_error(tools):
    def endless() -> pd.DataFrame:
        """Return one long category in each row."""
        return pd.DataFrame({"a": pd.Categorical.from_codes([0] * 5_000_000, ["x" * 1_000_000])})

    _, _, executor = tools([callable_plugin(endless)])

    assert "ValueError: the table takes more than 256 MB as CSV" in called(executor, "endless")


def test_a_database_plugin_answers_with_rows(tools, tmp_path):
    with sqlite3.connect(tmp_path / "shop.db") as database:
        database.execute("CREATE TABLE sales (day TEXT, revenue REAL)")
        database.execute("INSERT INTO sales VALUES ('2026-01-01', 20.5)")
    database.close()
    _, _, executor = tools(["sql_pull_data"], variables={"database": str(tmp_path / "shop.db")})

    assert "20.5" in called(executor, "sql_pull_data", query="SELECT * FROM sales")


def test_a_whole_chat_uses_the_tool(agent, served, tmp_path):
    call = {"id": "1", "type": "function", "function": {"name": "double", "arguments": '{"number": 21}'}}
    seen = []

    def think(recipient, messages=None, sender=None, config=None):
        seen.append(messages[-1])
        return True, "TERMINATE" if messages[-1].get("role") == "tool" else {"content": None, "tool_calls": [call]}

    caller, executor = agent("caller", llm_config=served()), agent("executor")
    caller.register_reply([autogen.Agent, None], think)
    with register_plugins(caller, executor, [callable_plugin(double)], folder=tmp_path):
        executor.initiate_chat(caller, message="double 21", max_turns=2, silent=True)
        asyncio.run(executor.a_initiate_chat(caller, message="double 21", max_turns=2, silent=True))

    assert [one["tool_responses"][0]["content"] for one in seen if one.get("role") == "tool"] == ["42", "42"]


def test_a_caller_without_a_model_is_refused(agent, tmp_path):
    with pytest.raises(ConfigError, match="caller has no llm_config"):
        register_plugins(agent("caller"), agent("executor"), [callable_plugin(double)], folder=tmp_path)


# The kernel as executor.


@pytest.fixture
def executor(tmp_path):
    made = []

    def make(**more):
        made.append(KernelCodeExecutor(folder=tmp_path / "work", **more))
        return made[-1]

    yield make
    for one in made:
        one.close()


def run(executor, *blocks, language="python"):
    return executor.execute_code_blocks([CodeBlock(code=code, language=language) for code in blocks])


def test_blocks_share_a_kernel_that_remembers(executor):
    kernel = executor()
    run(kernel, "x = 20")
    done = run(kernel, "print('adding')", "x + 22")

    assert (done.exit_code, done.output) == (0, "adding\n42")


def test_of_very_many_files_the_first_are_named_in_the_chat(executor):
    done = run(executor(), "for n in range(1900):\n    open(f'{n:04}{chr(37) * 150}.txt', 'w').close()")

    assert len(done.output) < 15_000
    assert "0000%%%" in done.output
    assert " more" in done.output.splitlines()[-1]


def test_the_first_block_that_fails_ends_the_run(executor):
    done = run(executor(), "print('one')", "1 / 0", "print('three')")

    assert done.exit_code == 1
    assert done.output.startswith("one\n")
    assert "ZeroDivisionError" in done.output
    assert "three" not in done.output


def test_a_handler_that_fails_breaks_nothing_and_one_that_is_none_is_an_error(executor, caplog):
    events = []

    def failing(event):
        raise RuntimeError("mine")

    done = run(executor(handlers=[failing, events.append]), "print(1)")

    assert (done.exit_code, done.output.strip()) == (0, "1")
    assert events
    assert "a handler failed on" in caplog.text
    with pytest.raises(ConfigError, match="handlers: expected a list of functions"):
        executor(handlers=print)


def test_time_limits_hold_and_variables_stay(executor):
    kernel = executor(seconds=1.0)
    run(kernel, "kept = 7")
    stopped = run(kernel, "while True: pass")

    assert stopped.exit_code == 1
    assert "Stopped after 1 s" in stopped.output
    assert run(kernel, "kept").output == "7"


WIDE = {
    "wide.csv": (b"," * (1 << 20), "a row has 1048577 columns"),
    "blank.csv": (b"\n" + b"a," * 20_000 + b"a\n", "a row has 20001 columns"),
    "quoted.csv": (b'\xef\xbb\xbf"x\n",' + b"a," * 20_000 + b"a\n", "a row has 20002 columns"),
    "row.csv": (b"a\r" + b"1," * 20_000 + b"1\r", "a row has 20001 columns"),
    "short.csv": (b"a," * 9_000 + b"a\n" + b"1\n" * 2_000, "cells, most of them empty"),
    "large.csv": ((b"1," * 999 + b"1\n") * 20_001, "more than 20000000 values"),
    "endless.csv": (b"a,b\n" * 500_000 + b"," * (17 << 20), "row 500001 has more than 16 MB"),
    "long.csv": (b"a,b\n1," + b"b" * 200_000, "field larger than field limit"),
    "wide.json": (json.dumps([{str(at): at} for at in range(4_000)]).encode(), "it stands for 16000000 cells"),
    "columns.json": (
        json.dumps({str(at): {str(at): at} for at in range(4_000)}).encode(), "it stands for 16000000 cells"
    ),
    "lists.json": (json.dumps([[1] * 4_000, *[[1]] * 3_999]).encode(), "it stands for 16000000 cells"),
    "texts.json": (json.dumps([[1], "1" * 9_000, *[[1]] * 3_998]).encode(), "it stands for 36000000 cells"),
    "row.json": (json.dumps([{str(at): at for at in range(20_000)}]).encode(), "a row has 20000 columns"),
    "deep.json": (b"[" * 1_000 + b"]" * 1_000, "nested more than 100 deep"),
}  # fmt: skip


@pytest.mark.parametrize("name", WIDE)
def test_few_bytes_that_stand_for_a_table_without_end_are_an_error(tools, tmp_path, name):
    csv.field_size_limit(131_072)  # another test in this process may have raised it
    content, words = WIDE[name]
    (tmp_path / name).write_bytes(content)

    def count(table: pd.DataFrame) -> int:
        """Count rows."""
        return len(table)

    _, _, executor = tools([callable_plugin(count)], files=[tmp_path / name])

    assert words in called(executor, "count", table=name)


@pytest.mark.parametrize(
    ("name", "content"),
    {
        "long.json": json.dumps(["x" * 30_000] * 3),
        "nested.json": json.dumps({"a": [[1] * 5_000, [2], [3]], "b": ["x" * 20_000, "", ""]}),
        "pairs.json": json.dumps([[1, "2"], [3, "4"], [5, "6"]]),
        "breaks.csv": '\n"a\nb",c\n1,2\n\n3\n"5 "",""",6\n',
        "signed.csv": "\ufeffa,b\n1,2\n3,4\n5,6\n",
    }.items(),
)
def test_a_table_of_ordinary_size_is_read_whatever_its_form(tools, tmp_path, name, content):
    (tmp_path / name).write_text(content, encoding="utf-8")

    def count(table: pd.DataFrame) -> int:
        """Count rows."""
        return len(table)

    _, _, executor = tools([callable_plugin(count)], files=[tmp_path / name])

    assert called(executor, "count", table=name) == "3"


@pytest.mark.parametrize("where", ["host", "kernel"])
def test_a_csv_is_read_as_it_is_described_to_a_model(tools, tmp_path, where):
    text = "Stadt;Wert;PLZ\nKöln;1,5;01234\nMünchen;2,5;02345\n"
    (tmp_path / "orte.csv").write_bytes(text.encode("latin-1"))
    (tmp_path / "held.py").write_text(
        "import pandas as pd\nfrom tw_autogen.plugin import plugin\n\n\n"
        f"@plugin(runs_in={where!r})\ndef held(table: pd.DataFrame) -> list:\n"
        "    'List columns and rows.'\n    return [list(table.columns), table.values.tolist()]\n"
    )

    _, _, executor = tools([str(tmp_path / "held.py")], files=[tmp_path / "orte.csv"])

    rows = [["Köln", 1.5, "01234"], ["München", 2.5, "02345"]]
    assert json.loads(called(executor, "held", table="orte.csv")) == [["Stadt", "Wert", "PLZ"], rows]


def test_the_home_folder_is_refused_before_anything_is_copied_there(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # a kernel that another test left warming makes it
    (tmp_path / "me").mkdir()
    (tmp_path / "data.csv").write_text("a", encoding="utf-8")

    with pytest.raises(ConfigError, match="no kernel works here, because it is your home folder"):
        KernelCodeExecutor(folder=tmp_path / "me", files=[tmp_path / "data.csv"])
    assert list((tmp_path / "me").iterdir()) == []


def test_files_are_named_with_their_paths(executor):
    kernel = executor()
    done = run(kernel, "open('seven.txt', 'w').write('7');")
    path = kernel.work_dir / "seven.txt"

    assert done.output_files == [str(path)]
    assert f"- [seven.txt]({path.as_uri()})" in done.output


def test_other_languages_are_refused_in_words(executor):
    done = run(executor(), "ls", language="sh")

    assert (done.exit_code, done.output) == (1, "sh is not run here; write Python")


def test_a_policy_is_kept(executor):
    done = run(executor(policy=Policy()), "import subprocess")

    assert done.exit_code == 1
    assert "subprocess" in done.output


def test_plugins_can_be_called_and_a_restart_keeps_them(executor):
    kernel = executor(plugins=[callable_plugin(double)])
    run(kernel, "x = double(21)")
    kernel.restart()
    done = run(kernel, "print('x' in globals(), double(4))")

    assert done.output == "False 8"


def test_it_serves_an_agent_of_the_hosts(agent, executor):
    coder = agent("coder", says="```python\nprint(6 * 7)\n```")
    runner = agent("runner", code_execution_config={"executor": executor()})
    runner.initiate_chat(coder, message="compute", max_turns=2, silent=True)

    assert "exitcode: 0 (execution succeeded)\nCode output: 42" in runner.chat_messages[coder][2]["content"]


@pytest.mark.parametrize(
    ("settings", "code", "said"),
    [
        ({"code_interpreter.policy": "default"}, "import subprocess", "subprocess"),
        ({"code_interpreter.policy": "strict"}, "open('x.txt')", "open"),
        ({"code_interpreter.plugin_only": True}, "sum([1, 2])", "plugin"),
        ({"code_interpreter.allowed_modules": ["pandas"]}, "x = 1\nimport json", "json"),
        ({"code_interpreter.blocked_functions": ["print"]}, "print(1)", "print"),
    ],
)
def test_the_policy_of_the_settings_is_kept_and_a_refusal_is_a_result_of_the_hosts(executor, settings, code, said):
    done = run(executor(settings=settings), code)

    assert (done.exit_code, done.output_files) == (1, [])
    assert said in done.output


def test_where_nobody_has_set_a_policy_code_may_do_what_the_sandbox_lets_it(executor):
    assert run(executor(), "import subprocess, json\njson.dumps(1)").exit_code == 0


def test_a_policy_that_is_given_beats_the_one_that_is_set(executor):
    kernel = executor(policy=Policy(), settings={"code_interpreter.policy": "plugins-only"})

    assert run(kernel, "sum([1, 2])").output == "3"


def test_an_unknown_policy_is_told_before_anything_runs(executor):
    with pytest.raises(ConfigError, match="no policy is called 'strickt'; did you mean 'strict'"):
        executor(settings={"code_interpreter.policy": "strickt"})


def test_an_executor_takes_a_policy_by_its_name(tmp_path):
    block = autogen.coding.CodeBlock(code="import os", language="python")

    with KernelCodeExecutor(folder=tmp_path, policy="strict") as executor:
        assert "import of 'os' is not allowed" in executor.execute_code_blocks([block]).output


def test_a_table_of_which_few_bytes_stand_for_much_is_an_error(tools, tmp_path):
    pa = pytest.importorskip("pyarrow", reason="needs the extra `data`")
    from pyarrow import parquet

    zeros = pa.repeat(pa.scalar(0, pa.int8()), 30_000_000)
    texts = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int8()), 2000), ["a" * 1_000_000])
    parquet.write_table(pa.table({"t": zeros, "v": zeros}), tmp_path / "long.parquet")
    parquet.write_table(pa.table({"t": texts}), tmp_path / "wide.parquet", store_schema=False)
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(40 << 20)
    _, _, executor = tools(["anomaly_detection"], files=sorted(tmp_path.glob("*.[jp]*")))

    def said(name):
        return called(executor, "anomaly_detection", df=name, time_col_name="t", value_col_name="v")

    assert "the table has more than 50000000 values" in said("long.parquet")
    assert "the table takes more than 1024 MB of memory" in said("wide.parquet")
    assert "'large.json': larger than the 32 MB that a tool takes" in said("large.json")


@pytest.mark.parametrize("alive", [True, False])
def test_a_file_of_an_answer_is_not_read_over_a_link_above_the_folder_of_a_kernel(tmp_path, alive):
    """Plays what code of another kernel, which may write above, does between two answers."""
    ours, secret = tmp_path / "ours", tmp_path / "secret"
    ours.mkdir()
    (tmp_path / "above").mkdir()
    (secret / "work").mkdir(parents=True)
    (secret / "work" / "a.csv").write_text("SECRET", encoding="utf-8")
    with LocalKernel(tmp_path / "above", settings=KernelSettings(sandbox="off")):
        kernel = LocalKernel(tmp_path / "above" / "work", settings=KernelSettings(sandbox="off"))
        (kernel.folder / "b.csv").write_text("b", encoding="utf-8")
        if not alive:
            kernel.close()
        (tmp_path / "above").rename(tmp_path / "moved")
        (tmp_path / "above").symlink_to(secret)

        answer = "".join(f"[x]({(kernel.folder / name).as_uri()})" for name in ("a.csv", "b.csv"))
        said, copies = bring_linked(answer, [kernel.folder], ours)
        kernel.close()

    assert "SECRET" not in "".join(path.read_text(encoding="utf-8") for path in ours.iterdir())
    assert [copy.name for copy in copies] == ["b.csv"]
    assert said.count(answer.split(")")[0]) == 1


@pytest.mark.parametrize(
    ("link", "names"),
    [
        ("r.csv", ["r.csv"]),
        ("./r.csv", ["r.csv"]),
        ("<F/my report.csv>", ["my_report.csv"]),
        ("F/my%20report.csv", ["my_report.csv"]),
        ("F/r(1).csv", ["r_1_.csv"]),
        ("F/r.csv 'title'", ["r.csv"]),
        ('F/r.csv "title"', ["r.csv"]),
        ("https://x.org/r.csv", []),
        ("../r.csv", []),
    ],
)
def test_files_are_brought_however_an_answer_links_to_them(tmp_path, link, names):
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    for folder in (theirs, ours):
        folder.mkdir()
    for name in ("theirs/r.csv", "theirs/r(1).csv", "theirs/my report.csv", "r.csv"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    answer = f"See [r]({link.replace('F', str(theirs))})."

    said, copies = bring_linked(answer, [ours / "none", theirs], ours)

    assert [copy.name for copy in copies] == names
    assert said == (f"See [r]({copies[0].as_uri()})." if copies else answer)


@pytest.mark.parametrize(
    ("since_seconds", "modified_seconds", "brought"),
    [
        (None, -100, True),  # the folder is the conversation's own
        (-10, 0, True),
        (-10, -100, True),  # as a copy or an archive leaves it: it came here since
        (1, 0, True),  # within what the times of files may lag behind
        (10, 0, False),
        (10, -100, False),
        (10, 20, True),
    ],
)
def test_of_a_folder_that_others_use_only_files_that_are_new_are_brought(
    tmp_path, since_seconds, modified_seconds, brought
):
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir()
    ours.mkdir()
    (theirs / "a.csv").write_text("a", encoding="utf-8")
    now_ns, second_ns = time.time_ns(), 1_000_000_000
    os.utime(theirs / "a.csv", ns=(now_ns + modified_seconds * second_ns,) * 2)
    since_ns = 0 if since_seconds is None else now_ns + since_seconds * second_ns

    said, copies = bring_linked("[a](a.csv)", [theirs], ours, made_since_ns=since_ns)

    assert copies == ([ours / "a.csv"] if brought else [])
    assert said == (f"[a]({(ours / 'a.csv').as_uri()})" if brought else "[a](a.csv)")


def test_an_answers_files_are_copied_once_and_only_as_many_as_fit(tmp_path):
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir()
    ours.mkdir()
    (theirs / "a.csv").write_text("a", encoding="utf-8")
    with open(theirs / "x\n# sparse.bin", "wb") as file:
        file.truncate((1 << 30) + 1)
    links = [(theirs / name).as_uri() for name in ("a.csv", "x\n# sparse.bin", "a.csv")]

    answer, copies = bring_linked("".join(f"[x]({link})" for link in links), [theirs], ours)

    assert [path.name for path in ours.iterdir()] == ["a.csv"]
    assert copies == [ours / "a.csv"]
    ours_link, there = (ours / "a.csv").as_uri(), links[1]
    assert answer == (
        f"[x]({ours_link})[x]({there})[x]({ours_link})\n"
        "(x\\n# sparse.bin is not copied: the files of an answer may have 1024 MB)"
    )


def test_files_that_an_answer_links_to_are_brought_over_no_link_out_of_an_untrusted_folder(tmp_path, monkeypatch):
    here, ours = tmp_path / "here", tmp_path / "ours"
    for folder in (here, ours, tmp_path / "private"):
        folder.mkdir()
    (tmp_path / "private" / "key.md").write_text("secret")
    (here / "coding").symlink_to(tmp_path / "private")
    monkeypatch.chdir(here)
    with KernelCodeExecutor(folder=tmp_path / "kernel"):  # notes that nobody trusts the current folder
        answer, copies = bring_linked(f"[key]({here}/coding/key.md)", ["coding"], ours)

    assert (answer, list(copies), list(ours.iterdir())) == (f"[key]({here}/coding/key.md)", [], [])


@pytest.mark.parametrize(
    ("there", "replaced"),
    [
        ("", True),
        ("a copy", True),
        ("a copy that was changed", False),
        ("another", False),
        ("another, read-only", False),
    ],
)
def test_a_copy_replaces_no_file_of_the_users_own_folder(tmp_path, there, replaced):
    given, own = tmp_path / "given" / "sales.csv", tmp_path / "own" / "sales.csv"
    given.parent.mkdir()
    own.parent.mkdir()
    if there.startswith("a copy"):
        given.write_text("given before")
        with KernelCodeExecutor(folder=own.parent, files=[given]):
            pass
    if there not in ("", "a copy"):
        own.unlink(missing_ok=True)
        own.write_text("own")
        own.chmod(0o444 if "read-only" in there else 0o644)
    given.write_text("given")
    refusal = contextlib.nullcontext() if replaced else pytest.raises(ConfigError, match=r"would replace another file")

    with refusal, KernelCodeExecutor(folder=own.parent, files=[given]):
        pass

    assert own.read_text() == ("given" if replaced else "own")
