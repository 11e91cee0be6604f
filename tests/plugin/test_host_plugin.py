import inspect
import json
import py_compile
import sys
from pathlib import Path

import pytest

from tw_autogen.errors import PluginLoadError
from tw_autogen.kernel import Artifact, Log
from tw_autogen.plugin import HostPlugin
from tw_autogen.plugin.spec import read_spec

TASKWEAVER = """\
from taskweaver.plugin import Plugin, register_plugin


@register_plugin
class F(Plugin):
    def __call__(self, a, b=2):
        self.log("info", f"called with {a}")
        return a, b, self.config.get("k"), self.ctx.get_session_var("city", "nowhere")
"""


def written(folder: Path, python: str) -> Path:
    keys = "parameters: [{name: a, required: true}, {name: b}]\nruns_in: host\nconfigurations: {k: 7}"
    (folder / "f.yaml").write_text(f"name: f\ndescription: d\n{keys}\n", encoding="utf-8")
    (folder / "f.py").write_text(python, encoding="utf-8")
    return folder / "f.yaml"


@pytest.fixture
def host(tmp_path):
    source, session = tmp_path / "source", tmp_path / "session"
    source.mkdir()
    session.mkdir()
    opened = []

    def make(python, **more):
        opened.append(HostPlugin(read_spec(written(source, python)), folder=session, **more))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


@pytest.mark.parametrize("package", ["taskweaver", "tw_autogen"])
def test_a_class_gets_arguments_settings_and_session_variables(host, package):
    variables = {}
    call = host(TASKWEAVER.replace("taskweaver", package), session_variables=variables)

    variables["city"] = "Oslo"

    assert call("x") == ("x", 2, 7, "Oslo")
    assert call(a=1, b=3) == (1, 3, 7, "Oslo")


def test_it_looks_like_the_function_that_it_stands_for(host):
    call = host(TASKWEAVER)

    assert (call.__name__, call.__doc__, str(inspect.signature(call))) == ("f", "d", "(a, b=2)")


def test_a_function_is_a_plugin_too(host):
    call = host("from tw_autogen.plugin import register_plugin\n@register_plugin\ndef f(a, b=2):\n    return a * b\n")

    assert call(4) == 8


def test_a_module_beside_it_can_be_imported(host, tmp_path):
    (tmp_path / "source" / "beside_for_this_test.py").write_text("WORD = 'neighbour'\n", encoding="utf-8")
    source = "from tw_autogen.plugin import register_plugin\nimport beside_for_this_test\n"

    assert host(f"{source}@register_plugin\ndef f(a, b=2):\n    return beside_for_this_test.WORD\n")(0) == "neighbour"


@pytest.mark.parametrize("mark", ["plugin", "register_plugin"])
def test_what_lies_beside_a_plugin_is_imported_again_once_it_is_edited(host, tmp_path, mark):
    source = (
        f"import edited_here.rates as rates\nfrom tw_autogen.plugin import {mark}\n@{mark}\ndef f(a, b=2):\n    'd'\n"
        "    from edited_later import WORD\n    return rates.VAT, WORD\n"
    )
    (tmp_path / "source" / "edited_here").mkdir()
    vat, word = tmp_path / "source" / "edited_here" / "rates.py", tmp_path / "source" / "edited_later.py"
    vat.write_text("VAT = 7\n")
    word.write_text("WORD = 'old'\n")
    first = host(source)
    assert first(0) == (7, "old")
    assert host(source)(0) == (7, "old")

    word.write_text("WORD = 'new'\n")
    assert host(source)(0) == (7, "new")
    vat.write_text("VAT = 8\n")
    assert host(source)(0) == (8, "new")


@pytest.mark.parametrize("on_path", [False, True], ids=["host", "kernel"])
def test_modules_of_one_name_beside_plugins_of_two_folders_are_two(tmp_path, monkeypatch, on_path):
    source = (
        "from tw_autogen.plugin import register_plugin\nimport shop_tax.rates as rates\n\n\n@register_plugin\n"
        "def f(a, b=2):\n    from shop_words import word\n    return rates.VAT, word()\n"
    )
    opened = []
    for name, vat in (("one", 25), ("two", 7)):
        for path, text in (
            ("shop_tax/__init__.py", ""),
            ("shop_tax/rates.py", f"VAT = {vat}\n"),
            ("shop_words.py", f"def word():\n    from shop_later import WORD\n    return WORD + {name!r}\n"),
            ("shop_later.py", f"WORD = 'of {name}, '\n"),
        ):
            (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / path).write_text(text, encoding="utf-8")
        if on_path:
            monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / name)])
        opened.append(HostPlugin(read_spec(written(tmp_path / name, source)), folder=tmp_path))

    assert [call(0) for call in (*opened, opened[0])] == [
        (25, "of one, one"),
        (7, "of two, two"),
        (25, "of one, one"),
    ]
    for call in opened:
        call.close()


def test_the_sessions_model_answers_a_plugin(host):
    asked = []

    def call_model(messages):
        asked.extend(messages)
        return "forty-two"

    python = TASKWEAVER.replace(
        "return a", "return self.ctx.call_llm_api([{'role': 'user', 'content': a}])\n        return a"
    )

    assert host(python, call_model=call_model)("how many?") == "forty-two"
    assert asked == [{"role": "user", "content": "how many?"}]


def test_without_a_model_a_plugin_that_asks_one_is_told_so(host):
    with pytest.raises(RuntimeError, match="no model was given to this plugin"):
        host(TASKWEAVER.replace("return a", "return self.ctx.call_llm_api([])\n        return a"))(1)


def test_files_and_logs_are_handed_over_after_each_call_also_after_one_that_fails(host, tmp_path):
    python = TASKWEAVER.replace(
        "return a, b",
        "self.ctx.add_artifact('facts', 'facts.json', 'json', {'a': a})\n        1 / b\n        return a, b",
    )
    artifacts, logs = [], []
    call = host(python, on_artifact=artifacts.append, on_log=logs.append)

    call(1)
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        call(2, 0)

    assert all(
        isinstance(artifact, Artifact) and artifact.path.parent == tmp_path / "session" for artifact in artifacts
    )
    assert [json.loads(artifact.path.read_text(encoding="utf-8")) for artifact in artifacts] == [{"a": 1}, {"a": 2}]
    assert [(artifact.name, artifact.kind) for artifact in artifacts] == [("facts", "json")] * 2
    assert logs == [Log("info", "f", "called with 1"), Log("info", "f", "called with 2")]


def test_what_a_plugins_own_threads_make_is_the_calls_too(host):
    python = TASKWEAVER.replace(
        "return a",
        "import threading\n"
        "        made = threading.Thread(target=self.ctx.add_artifact, args=('facts', 'facts.txt', 'txt', a))\n"
        "        made.start()\n        made.join()\n        return a",
    )
    artifacts = []
    call = host(python, on_artifact=artifacts.append)
    call("x")
    call("y")

    assert [artifact.path.read_text(encoding="utf-8") for artifact in artifacts] == ["x", "y"]


@pytest.mark.parametrize(
    ("python", "message"),
    [
        (
            "import no_such_module_anywhere\n",
            r"f\.py:1: ModuleNotFoundError: No module named 'no_such_module_anywhere'",
        ),
        ("raise SystemExit('no key')\n", r"f\.py:1: SystemExit: no key"),
        (f"{TASKWEAVER}\n    def __init__(self, *args):\n        1 / 0\n", r"f\.py:11: ZeroDivisionError"),
        (f"{TASKWEAVER}\n    def __init__(self, *args):\n        exit(2)\n", r"f\.py:11: SystemExit: 2"),
        ("x = 1\n", r"f\.py: expected exactly one class or function with @register_plugin, found none"),
    ],
)
def test_what_fails_while_it_loads_is_an_error_with_file_and_line(host, tmp_path, python, message):
    with pytest.raises(PluginLoadError, match=message) as caught:
        host(python)

    assert caught.value.path == tmp_path / "source" / "f.py"


def test_a_plugin_that_can_close_is_closed(tmp_path):
    python = f"{TASKWEAVER}\n    def close(self):\n        (self.ctx.folder / 'closed').touch()\n"

    with HostPlugin(read_spec(written(tmp_path, python)), folder=tmp_path) as call:
        assert call.name == "f"
        assert not (tmp_path / "closed").exists()

    assert (tmp_path / "closed").exists()


def test_an_error_in_a_call_has_the_plugins_own_line_in_its_traceback(host):
    call = host(TASKWEAVER.replace("return a", "raise LookupError('no such shop')\n        return a"))

    with pytest.raises(LookupError, match="no such shop") as caught:
        call(1)

    assert caught.traceback[-1].path.name == "f.py"
    assert caught.traceback[-1].lineno + 1 == 8


def test_each_session_has_its_own_plugin(host):
    python = TASKWEAVER.replace(
        "return a", "self.seen = getattr(self, 'seen', 0) + 1\n        return self.seen\n        a"
    )
    first, second = host(python), host(python)

    assert (first(0), first(0), second(0)) == (1, 2, 1)
    assert "taskweaver" not in {name for name, module in sys.modules.items() if getattr(module, "__file__", None)}


NEIGHBOURLY = """\
from tw_autogen.plugin import register_plugin
from near import WORD


@register_plugin
def f(a, b=2):
    import importlib

    import outer
    return WORD, importlib.import_module(a).WORD, outer.seek("nobody_has_this")
"""


@pytest.mark.parametrize("where", ["installed", "source/.venv/lib/python3.11/site-packages"])
def test_what_lies_beside_a_plugin_is_imported_by_its_own_modules_only(host, tmp_path, monkeypatch, where):
    source, installed = tmp_path / "source", tmp_path / where
    installed.mkdir(parents=True)
    for name in ("near", "far", "far.deep", "next_door", "late", "outer"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(installed))
    (installed / "outer.py").write_text(
        "import importlib\n\n\ndef seek(name):\n    try:\n        return importlib.import_module(name)\n"
        "    except ImportError:\n        return None\n",
        encoding="utf-8",
    )
    for name, text in (
        ("near.py", "from far.deep import WORD\n"),
        ("far/__init__.py", ""),
        ("far/deep.py", "from next_door import WORD\n"),
        ("next_door.py", "WORD = 'next door'\n"),
        ("late.py", "WORD = 'late'\n"),
        ("nobody_has_this.py", "raise SystemExit('a stranger')\n"),
    ):
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_text(text, encoding="utf-8")

    call = host(NEIGHBOURLY)

    assert call("late") == ("next door", "late", None)
    assert str(source) not in sys.path
    call.close()
    with pytest.raises(ModuleNotFoundError):
        call("later")


def test_no_compiled_file_stands_for_what_lies_beside_a_plugin(host, tmp_path):
    source = tmp_path / "source"
    for name in ("near_one", "far_one/deep"):
        path = source / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text("WORD = 'compiled'\n", encoding="utf-8")
        py_compile.compile(path, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
        path.write_text("WORD = 'read'\n", encoding="utf-8")

    imports = "from near_one import WORD\nfrom far_one.deep import WORD as DEEP\n"
    call = host(imports + TASKWEAVER.replace("return a, b", "return WORD, DEEP"))

    assert call("x")[:2] == ("read", "read")
