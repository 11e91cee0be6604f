"""The face of the package: what importing it costs, and that its names are there."""

import ast
import importlib
import io
import pkgutil
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pandas as pd
import pytest
from packaging.specifiers import SpecifierSet

import tw_autogen
from tests.metrics import dialect, undocumented
from tw_autogen import events

HEAVY = ("pandas", "numpy", "httpx", "openai", "autogen", "jupyter_client", "IPython", "pydantic", "rich")


def test_importing_the_package_brings_in_no_host_and_nothing_heavy():
    code = f"import sys, tw_autogen; print([name for name in {HEAVY} if name in sys.modules])"

    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=180).stdout

    assert out.strip() == "[]"


def test_the_class_of_the_agent_brings_in_no_more_than_the_host_does():
    late = {"approval", "code_interpreter", "events", "kernel", "model", "planner", "plugin", "session", "settings"}
    code = (
        "import sys, autogen; before = set(sys.modules); from tw_autogen import TaskWeaverAgent as agent; "
        f"new = set(sys.modules) - before; print(new & {{'tw_autogen.' + name for name in {late}}}, "
        "sorted(name for name in new if name.partition('.')[0] not in ('tw_autogen', *sys.stdlib_module_names)))"
    )

    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=180).stdout

    assert out.strip() == "set() []"


def test_opening_a_session_brings_in_no_host():
    code = "import sys; from tw_autogen import open_session; print('autogen' in sys.modules, 'httpx' in sys.modules)"

    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=180).stdout

    assert out.strip() == "False False"


def test_the_version_is_the_distributions_and_looked_up_when_it_is_asked_for(tmp_path):
    code = "import sys, tw_autogen; print('importlib.metadata' in sys.modules, tw_autogen.__version__)"
    (tmp_path / "tw_autogen").symlink_to(Path(tw_autogen.__file__).parent)

    def said(*options, **more):
        command = [sys.executable, *options, "-c", code]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=180, **more).stdout.split()

    assert said("-S", cwd=tmp_path) == ["False", "0+unknown"]  # no site-packages, so no distribution
    assert said()[1] == version("tw-autogen")


def test_every_public_name_is_there():
    for name in tw_autogen.__all__:
        assert getattr(tw_autogen, name) is not None
    assert tw_autogen.__all__ == sorted(tw_autogen.__all__)


def test_dir_shows_public_names_only():
    assert dir(tw_autogen) == sorted(tw_autogen.__all__)


def old_names_of(path):
    """Return a package's old names, each with the new one, as its `__init__` has them."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "old_names":
            moved = {
                name: f"{place}.{name}" for place, names in ast.literal_eval(node.args[1]).items() for name in names
            }
            return moved | next(
                (ast.literal_eval(keyword.value) for keyword in node.keywords if keyword.arg == "renamed"), {}
            )
    return {}


OLD = [
    (path.parent.name, old, new)
    for path in sorted(Path(tw_autogen.__file__).parent.glob("*/__init__.py"))
    for old, new in old_names_of(path).items()
]


@pytest.mark.parametrize(("package", "old", "new"), OLD, ids=[f"{package}.{old}" for package, old, _ in OLD])
def test_an_old_name_works_with_a_warning_that_has_the_new_one_or_its_place(package, old, new):
    module = importlib.import_module(f"tw_autogen.{package}")

    with pytest.warns(DeprecationWarning, match=re.escape(f"tw_autogen.{package}.{old} is called {new} now")):
        found = getattr(module, old)

    assert found is pkgutil.resolve_name(new if "." in new else f"{module.__name__}.{new}")
    assert old not in module.__all__


@pytest.mark.parametrize(
    ("old", "event"),
    [
        ("TalkShortened", events.HistoryCompacted("Planner", 900, 300, "Barges were weighed.")),
        ("TalkNotShortened", events.CompactionFailed("Planner", 900, "no server", 3)),
    ],
)
def test_an_event_that_was_renamed_is_found_and_read_by_its_old_name(old, event):
    with pytest.warns(DeprecationWarning, match=f"tw_autogen.events.{old} is called {type(event).__name__} now"):
        assert getattr(events, old) is type(event)

    assert events.event_from_dict({**event.to_dict(), "event": old}) == event


@pytest.mark.parametrize("name", ["session.Journal", "plugin.Trial", "planner.Plan", "kernel.PluginContext"])
def test_a_name_that_left_its_package_is_among_the_old_ones(name):
    assert name in [f"{package}.{old}" for package, old, _ in OLD]


def test_type_checkers_see_that_the_package_is_typed():
    assert (Path(tw_autogen.__file__).parent / "py.typed").exists()


def test_the_classifiers_name_each_python_that_the_package_takes():
    text = (Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    taken = SpecifierSet(re.search(r'^requires-python = "(.*)"$', text, re.MULTILINE)[1])

    named = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text)

    assert named == [f"3.{minor}" for minor in range(8, 40) if f"3.{minor}" in taken]
    assert '"Programming Language :: Python :: 3 :: Only"' in text


def test_the_extra_data_reads_tables_of_html_pages():
    (table,) = pd.read_html(io.StringIO("<table><tr><th>day</th></tr><tr><td>7</td></tr></table>"))

    assert table.to_dict("list") == {"day": [7]}


def test_docstrings_begin_with_what_a_function_does():
    assert dialect() == []


def test_public_functions_document_each_of_their_parameters():
    missing, _ = undocumented()

    assert missing == []
