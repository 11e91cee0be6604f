"""Plugins, the files that cells make, variables."""

from __future__ import annotations

import functools
import threading
from pathlib import Path

import pandas as pd

from tests.support.kernel_checks.bench import (
    DOUBLE,
    SECONDS,
    KernelFactory,
    expect,
    expect_error,
    expect_within,
    fail,
    run,
)
from tw_autogen.errors import PluginLoadError
from tw_autogen.kernel import Loadable

_REPORT = Loadable(
    "report",
    """
import pandas as pd
from taskweaver.plugin import Plugin, register_plugin

@register_plugin
class Report(Plugin):
    def __call__(self, n: int):
        table = pd.DataFrame({"n": range(n)})
        self.ctx.add_artifact(name="numbers", file_name="numbers.csv", type="df", val=table)
        self.ctx.add_artifact(name="note", file_name="../../note.txt", type="txt", val="hi")
        self.log("info", "made a report")
        return self.config["unit"], self.ctx.get_session_var("city", "nowhere")
""",
    {"unit": "kg"},
)
_BROKEN = {
    "import nothing_of_that_name": (1, "nothing_of_that_name"),
    "x = 1\nraise ValueError('bad constant')": (2, "bad constant"),
    "def f(:\n": (1, "invalid syntax"),
}


def plugins_are_functions_of_the_cell(factory: KernelFactory) -> None:
    """A function or a class in TaskWeaver's form, with its settings and the session's variables; its log is told."""
    with factory() as kernel:
        kernel.load(DOUBLE)
        kernel.load(_REPORT)
        kernel.put("city", "Ghent")
        ran = run(kernel, "double(21), report(3)")
        expect(ran.result, "(42, ('kg', 'Ghent'))", "result")
        expect([(log.level, log.message) for log in ran.logs], [("info", "made a report")], "logs")
        expect(run(kernel, "1").logs, (), "logs of the next cell")


def a_plugin_that_does_not_load_is_an_error_with_its_line(factory: KernelFactory) -> None:
    """`PluginLoadError` names file and line; the kernel, and the plugins that it has, are as before."""
    path = Path(__file__).with_name("broken_plugin.py")
    with factory() as kernel:
        kernel.load(DOUBLE)
        for source, (line, words) in _BROKEN.items():
            broken = Loadable("broken", source, path=path)
            error = expect_error(PluginLoadError, functools.partial(kernel.load, broken), repr(source))
            expect_within(f"broken_plugin.py:{line}: ", str(error), "the message")
            expect_within(words, str(error), "the message")
        expect(run(kernel, "double(2)").result, "4", "a plugin that was loaded before")
        kernel.restart()
        expect(run(kernel, "double(2), 'broken' in globals()").result, "(4, False)", "a fresh process")


def an_error_in_a_plugin_is_told(factory: KernelFactory) -> None:
    """With the cell's line, the plugin's name and the exception's own words."""
    source = DOUBLE.source.replace("return 2 * x", "raise TypeError('no numbers')")
    with factory() as kernel:
        kernel.load(Loadable("double", source))
        error = fail(kernel, "a = 1\ndouble(3)").error
        for part in ("double(3)", "line 2", "plugin double", "TypeError: no numbers"):
            expect_within(part, error, "the error")


def files_for_the_user_are_told(factory: KernelFactory) -> None:
    """Each with kind and name, in the folder whatever name was wished for, by the cell that made it and no other."""
    with factory() as kernel:
        kernel.load(_REPORT)
        first, second = run(kernel, "report(3);").artifacts, run(kernel, "report(2);").artifacts
        expect([(one.name, one.kind) for one in first], [("numbers", "df"), ("note", "txt")], "artifacts")
        paths = [one.path for one in (*first, *second)]
        expect(len(set(paths)), 4, "different files of two cells")
        for path in paths:
            inside = path.is_absolute() and path.resolve().parent == kernel.folder.resolve() and path.is_file()
            expect(inside, True, f"{path} is a file in the folder")
        expect(first[0].path.read_text(encoding="utf-8").split(), ["n", "0", "1", "2"], "the first table")
        expect(first[1].path.read_text(encoding="utf-8"), "hi", "the note")
        expect(run(kernel, "1").artifacts, (), "artifacts of the next cell")


def what_is_displayed_becomes_a_file(factory: KernelFactory) -> None:
    """A page in HTML is one of the cell's files; displayed text is output."""
    with factory() as kernel:
        ran = run(kernel, "from IPython.display import HTML, display\ndisplay(HTML('<b>hi</b>'))\ndisplay('in words')")
        expect([artifact.kind for artifact in ran.artifacts], ["html"], "artifacts")
        expect_within("<b>hi</b>", ran.artifacts[0].path.read_text(encoding="utf-8"), "the page")
        expect_within("in words", ran.stdout, "stdout")


def variables_are_told(factory: KernelFactory) -> None:
    """With name, type and a short summary; without modules, plugins, served functions and private names."""
    with factory() as kernel:
        kernel.load(DOUBLE)
        kernel.serve("ask", lambda: "answered")
        ran = run(kernel, "import pandas as pd\nframe = pd.DataFrame({'a': [1, 2]})\ncount = 3\n_hidden = 1")
        told = {variable.name: variable for variable in ran.variables}
        expect(sorted(told), ["count", "frame"], "names")
        expect((told["frame"].type, told["count"].type), ("DataFrame", "int"), "types")
        expect_within("a", told["frame"].summary, "the summary of the table")
        expect(
            all(len(variable.summary) < 1000 and "\n" not in variable.summary for variable in ran.variables),
            True,
            "short lines",
        )
        expect(kernel.variables(), ran.variables, "variables() behind the cell")
        run(kernel, "del count")
        expect([variable.name for variable in kernel.variables()], ["frame"], "names behind `del`")


def plain_values_and_tables_come_and_go(factory: KernelFactory) -> None:
    """`put` and `get` keep types, index and missing values; what doesn't cross is a TypeError, and harms nothing."""
    frame = pd.DataFrame(
        {
            "whole": [1, 2],
            "real": [1.5, None],
            "text": ["a,b", 'say "hi"\n'],
            "day": pd.to_datetime(pd.Series(["2024-01-01", None])),
        },
        index=pd.Index([10, 20], name="key"),
    )
    with factory() as kernel:
        for value in (None, True, 3, 2.5, "é", [1, [2]], {"a": {"b": None}}):
            kernel.put("value", value)
            expect(kernel.get("value"), value, "get")
            expect(run(kernel, f"value == {value!r}").result, "True", f"{value!r} in the cell")
        for name, table in (("frame", frame), ("series", frame["real"])):
            kernel.put(name, table)
            back = kernel.get(name)
            expect(type(back).__name__, type(table).__name__, "type")
            expect(bool(back.equals(table)) and back.index.name == "key", True, f"{back} equals what was put")
        expect(
            run(kernel, "len(frame), frame.index.name, str(frame.whole.dtype)").result, "(2, 'key', 'int64')", "frame"
        )
        run(kernel, "thing = object()")
        expect_error(TypeError, lambda: kernel.get("thing"), "get of an object")
        expect_error(TypeError, lambda: kernel.put("lock", threading.Lock()), "put of a lock")
        expect(kernel.execute("value", seconds=SECONDS).ok, True, "the next cell")


PLUGINS = (
    plugins_are_functions_of_the_cell,
    a_plugin_that_does_not_load_is_an_error_with_its_line,
    an_error_in_a_plugin_is_told,
)
ARTIFACTS = (files_for_the_user_are_told, what_is_displayed_becomes_a_file)
VARIABLES = (variables_are_told, plain_values_and_tables_come_and_go)
