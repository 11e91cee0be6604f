"""Plugins in a kernel: TaskWeaver's API, errors that name file and line, and what code can't take away."""

import py_compile

import pytest

from tw_autogen.errors import PluginLoadError
from tw_autogen.kernel import KernelSettings, Loadable, LocalKernel

EVERYTHING = """
import pandas as pd
from taskweaver.plugin import Plugin, register_plugin

@register_plugin
class Everything(Plugin):
    def __call__(self, n: int):
        frame = pd.DataFrame({"n": range(n)})
        self.ctx.add_artifact(name="numbers", file_name="numbers.csv", type="df", val=frame)
        self.ctx.add_artifact(name="note", file_name="../../note.txt", type="txt", val="hi")
        self.ctx.add_artifact(name="page", file_name="page.html", type="html", val="<p>hi</p>")
        self.ctx.add_artifact(name="drawing", file_name="drawing.svg", type="svg", val="<svg/>")
        ident, path = self.ctx.create_artifact_path("raw", "raw.bin", "file", "bytes of my own")
        with open(path, "wb") as file:
            file.write(b"raw")
        self.log("info", "made everything")
        return self.config["unit"], self.ctx.get_session_var("city", "nowhere"), self.get_env("KEY"), len(frame)
"""


def load(kernel, name, source, **settings):
    kernel.load(Loadable(name, source, settings))


def test_taskweavers_plugin_api_works(monkeypatch, tmp_path):
    monkeypatch.setenv("PLUGIN_everything_KEY", "a key of its own")
    with LocalKernel(tmp_path) as kernel:
        kernel.put("city", "Ghent")
        load(kernel, "everything", EVERYTHING, unit="kg")
        execution = kernel.execute("everything(3)", seconds=30)

    assert execution.result == "('kg', 'Ghent', 'a key of its own', 3)"
    assert [artifact.kind for artifact in execution.artifacts] == ["df", "txt", "html", "svg", "file"]
    assert all(artifact.path.parent == tmp_path and artifact.path.exists() for artifact in execution.artifacts)
    assert "made everything" in [log.message for log in execution.logs]


def test_a_plugin_that_was_deleted_or_overwritten_is_back_in_the_next_cell(kernel):
    load(
        kernel,
        "twice",
        "from tw_autogen.plugin import register_plugin\n@register_plugin\ndef twice(x):\n    return 2 * x",
    )
    kernel.execute("del twice", seconds=30)
    assert kernel.execute("twice(4)", seconds=30).result == "8"
    kernel.execute("twice = None", seconds=30)
    assert kernel.execute("twice(5)", seconds=30).result == "10"


@pytest.mark.parametrize(
    ("source", "line", "problem"),
    [
        ("import nothing_of_that_name", 1, "nothing_of_that_name"),
        ("x = 1\nraise ValueError('bad constant')", 2, "bad constant"),
        ("def f(:\n", 1, "invalid syntax"),
        ("x = 1\n", None, "register_plugin"),
    ],
)
def test_a_plugin_that_does_not_load_is_an_error_with_file_and_line(kernel, tmp_path, source, line, problem):
    path = tmp_path / "broken.py"

    with pytest.raises(
        PluginLoadError, match=rf"broken\.py{'' if line is None else f':{line}'}: .*{problem}"
    ) as caught:
        kernel.load(Loadable("broken", source, path=path))
    assert caught.value.path == path
    assert caught.value.line == line


def test_an_error_inside_a_plugin_names_it_and_the_cells_line(kernel):
    load(
        kernel,
        "fussy",
        "from tw_autogen.plugin import register_plugin\n\n"
        "@register_plugin\ndef fussy(x):\n    raise TypeError('no numbers')",
    )
    error = kernel.execute("a = 1\nfussy(3)", seconds=30).error

    assert "line 2\n    fussy(3)" in error
    assert "plugin fussy, line 5" in error
    assert error.endswith("TypeError: no numbers")


def test_the_functions_of_one_file_share_its_variables_and_errors_name_the_file(kernel, tmp_path):
    source = (
        "from tw_autogen.plugin import plugin\nseen = []\n"
        "@plugin\ndef put(word: str) -> None:\n    'Keep a word.'\n    seen.append(word)\n"
        "@plugin\ndef take(at: int) -> str:\n    'Give a word.'\n    return seen[at]\n"
    )
    for name in ("put", "take"):
        kernel.load(Loadable(name, source, path=tmp_path / "words.py"))

    assert kernel.execute("put('a'); take(0)", seconds=30).result == "'a'"
    assert "plugin words, line 10" in kernel.execute("take(5)", seconds=30).error


@pytest.mark.parametrize("package", [False, True])
def test_modules_beside_a_plugin_come_from_their_sources(tmp_path, package):
    folder = tmp_path / "plugins"
    beside = folder / "rates" / "__init__.py" if package else folder / "rates.py"
    beside.parent.mkdir(parents=True)
    beside.write_text("RATE = 666\n")
    py_compile.compile(str(beside), doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    beside.write_text("RATE = 1\n")
    source = (
        "from tw_autogen.plugin import plugin\nimport rates\n"
        "@plugin\ndef rate() -> int:\n    'Give the rate.'\n    return rates.RATE\n"
    )
    settings = KernelSettings(read=(str(folder),))
    with LocalKernel(settings=settings) as kernel:
        kernel.load(Loadable("rate", source, path=folder / "rate.py"))

        assert kernel.execute("rate()", seconds=30).result == "1"


def test_the_tests_in_a_plugins_file_are_run_from_a_cell(kernel):
    source = (
        "from taskweaver.plugin import register_plugin, test_plugin\n"
        "@register_plugin\ndef twice(x):\n    return 2 * x\n"
        "@test_plugin(name='two', description='d')\ndef check_two(call):\n    assert call(1) == 2\n"
        "@test_plugin(name='odd', description='d')\ndef check_odd(call):\n    assert call(1) == 3, 'no'\n"
    )
    load(kernel, "twice", source)

    execution = kernel.execute("from tw_autogen.plugin import run_plugin_tests\nrun_plugin_tests(twice)", seconds=30)

    assert execution.result == "[('two', ''), ('odd', 'AssertionError: no')]"
