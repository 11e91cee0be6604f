"""A thousand plugins: a session opens with them at once, and loads those that its code names."""

import sys
from collections import Counter

import pytest

from tw_autogen import open_session
from tw_autogen.code_interpreter import CodeInterpreter
from tw_autogen.errors import PluginLoadError, RoundError
from tw_autogen.plugin import find_plugins
from tw_autogen.plugin.decorated_functions import holds_functions
from tw_autogen.session import Session
from tw_autogen.testing import FakeKernel, ScriptedModel, codes

COUNT = 300
PYTHON = """\
from tw_autogen.plugin import Plugin, register_plugin

@register_plugin
class P(Plugin):
    def __call__(self, a):
        return a
"""
FUNCTION = """\
from tw_autogen.plugin import plugin

@plugin
def add_{at}(a: int) -> int:
    \"""Add {at}.\"""
    return a
"""
YAML = """\
name: add_{at}
description: Add {at} to a number of things, as the books of the year {at} say.
parameters: [{{name: a}}]
"""


@pytest.fixture
def many(tmp_path):
    folder = tmp_path / "plugins"
    folder.mkdir()
    for at in range(COUNT):
        (folder / f"add_{at}.py").write_text(PYTHON, encoding="utf-8")
        (folder / f"add_{at}.yaml").write_text(YAML.format(at=at), encoding="utf-8")
    return find_plugins([folder], shipped=None)


class Watch:
    """Count what this process opens and parses below a folder; Python takes no audit hook back, so there is one."""

    def __init__(self):
        self.folder, self.opened, self.parsed = "", Counter(), Counter()
        sys.addaudithook(self._note)

    def _note(self, event, args):
        if not self.folder or event not in ("open", "compile"):
            return
        name = str(args[0] if event == "open" else args[1])
        if name.startswith(self.folder) and event == "open":
            self.opened[name.rpartition(".")[2]] += 1
        elif name.startswith(self.folder) and isinstance(args[0], (str, bytes)):
            self.parsed[name] += 1


@pytest.fixture(scope="module")
def watch():
    return Watch()


def test_of_a_project_each_file_is_parsed_once(many, tmp_path, watch):
    watch.folder = f"{tmp_path}/plugins/"
    try:
        with open_session(
            ScriptedModel([]), project=tmp_path, kernel=FakeKernel(folder=tmp_path), folder=tmp_path / "s"
        ) as session:
            assert len(session.roles[-1].plugin_names) == COUNT
    finally:
        watch.folder = ""

    assert watch.parsed == {str(spec.source()): 1 for spec in many}
    assert watch.opened["yaml"] == COUNT
    assert watch.opened["py"] <= 2 * COUNT


def test_of_a_folder_of_functions_each_file_is_parsed_once(tmp_path, watch):
    folder = tmp_path / "plugins"
    folder.mkdir()
    for at in range(20):
        (folder / f"add_{at}.py").write_text(FUNCTION.format(at=at), encoding="utf-8")
    watch.parsed.clear()
    watch.folder = f"{folder}/"
    try:
        found = find_plugins([folder], shipped=None)
    finally:
        watch.folder = ""

    assert watch.parsed == {str(spec.path): 1 for spec in found}
    assert len(found) == 20


class Refusing(FakeKernel):
    """Loads no plugin."""

    def load(self, loadable):
        raise PluginLoadError("it fails", path=loadable.path)


def test_of_many_plugins_those_are_loaded_that_code_names(many, tmp_path):
    with ScriptedModel([codes("add_7(add_8(1))"), codes("add_7(2)")]) as coder:
        kernel = FakeKernel(["1", "2"], folder=tmp_path)
        interpreter = CodeInterpreter(coder, kernel, plugins=many)
        before = list(kernel.loaded)
        with Session([interpreter], folder=tmp_path / "session") as session:
            session.ask("use add_7 and add_8")
            session.ask("use add_7 again")

    assert before == []
    assert list(kernel.loaded) == ["add_7", "add_8"]


def test_few_plugins_are_loaded_at_once(many, tmp_path):
    kernel = FakeKernel(folder=tmp_path)
    CodeInterpreter(ScriptedModel([]), kernel, plugins=many[:2])

    assert list(kernel.loaded) == ["add_0", "add_1"]


def test_one_of_many_that_does_not_load_is_an_error_where_code_names_it(many, tmp_path):
    with ScriptedModel([codes("add_7(1)")]) as coder:
        interpreter = CodeInterpreter(coder, Refusing(folder=tmp_path), plugins=many)
        with (
            Session([interpreter], folder=tmp_path / "session") as session,
            pytest.raises(RoundError, match=r"add_7\.py: it fails"),
        ):
            session.ask("use add_7")


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        (PYTHON, False),
        ("from tw_autogen.plugin import plugin\n\n@plugin\ndef f(a: int) -> int:\n    return a\n", True),
        ("from tw_autogen.plugin import plugin as p\n\n@p\ndef f(a: int) -> int:\n    return a\n", True),
        ("import tw_autogen.plugin\n\n@tw_autogen.plugin.plugin\ndef f(a: int) -> int:\n    return a\n", True),
        ("from tw_autogen.plugin import (\n    plugin as p,\n)\n\n@p\ndef f(a: int) -> int:\n    return a\n", True),
        ("from tw_autogen.plugin import plugin\n\n@(plugin)\ndef f(a: int) -> int:\n    return a\n", True),
        ("try:\n    from tw_autogen.plugin import plugin as p\nexcept ImportError: pass\n\n@p\ndef f(a): ...\n", True),
        ("import abc\n\n@abc.abstractmethod\ndef f(): ...\n", False),
        ('"""A plugin."""\n' + PYTHON, False),
    ],
)
def test_a_file_without_the_decorator_is_told_by_its_text(tmp_path, text, holds):
    file = tmp_path / "a.py"
    file.write_text(text, encoding="utf-8")

    assert holds_functions(file) == holds
