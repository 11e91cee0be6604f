"""The README's plugin, as it stands there, called by generated code in a real kernel."""

import re
from pathlib import Path

import pytest

from tw_autogen import open_session
from tw_autogen.testing import ScriptedModel, codes, plans

README = Path(__file__).parents[2] / "README.md"


@pytest.fixture
def file(tmp_path):
    section = README.read_text(encoding="utf-8").split("## A plugin")[1].split("\n## ")[0]
    path = tmp_path / "mine" / "my_plugins.py"
    path.parent.mkdir()
    path.write_text(re.findall(r"```python\n(.*?)```", section, re.DOTALL)[0], encoding="utf-8")
    return path


def answer(tmp_path, plugins):
    replies = [plans("double 21"), codes("double(21)"), plans("It is 42.0.", to="User")]
    with ScriptedModel(replies) as model, open_session(model, plugins=plugins, folder=tmp_path / "s") as session:
        session.ask("What is twice 21?")
    return str(model.calls[1]), str(model.calls[2][-1])


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_plugin_in_three_lines_is_seen_by_the_model_and_runs_in_the_kernel(file, tmp_path, kind):
    prompt, report = answer(tmp_path, [file if kind == "file" else file.parent])

    assert "def double(x: float) -> float:" in prompt
    assert "Double a number." in prompt
    assert "42" in report


def test_a_function_that_is_handed_over_runs_in_this_process(tmp_path):
    seen = []

    def double(x: float) -> float:
        """Double a number."""
        seen.append(x)
        return 2 * x

    prompt, report = answer(tmp_path, [double])

    assert "def double(x: float) -> float:" in prompt
    assert "42" in report
    assert seen == [21]
