"""Every example runs, and so does the README's plugin, with recorded replies in the model's place."""

import os
import re
import subprocess
import sys
import threading
from difflib import SequenceMatcher
from importlib.util import find_spec
from pathlib import Path

import pytest

from tw_autogen import open_session
from tw_autogen.errors import ModelError
from tw_autogen.model import Recording
from tw_autogen.testing import ScriptedModel, codes, plans, replay_server

ROOT = Path(__file__).parent.parent
REPLIES = Path(__file__).parent / "replies"
SAID = {
    "agent_as_plugin.py": ["kettle: 50 % of 2 review(s) positive.", "toaster: 100 % of 1 review(s) positive."],
    "agent_as_role.py": ["writer (to Planner)", "The answer: Hats off to our colleagues in the west!"],
    "ask.py": ["--- cell 1", "The load is odd in hour 21 (load 90.0).", "2 model calls, Completed"],
    "async_chat.py": ["ann: The region west sold most: 303 units in all.", "bob: Most units were sold in 2026-04: 183"],
    "drop_in.py": ["The region west sold most: 303 units.", "52.50 % in 2026-01", "[share.csv](file://"],
    "group_chat.py": ["[board, pinned up by Planner]", "critic (to chat_manager)", "The answer: Units sold a month"],
    "mcp_tools.py": ["called look_up", "5 toaster can't be met: 3 units are in stock, 2 are short.", "200.00 euros."],
    "mesh.py": ["The answer: Units sold by month: 2026-01 120", "The trend is +0.43 units a month"],
    "plugins_as_tools.py": ["0 of 6 values of 'units' are anomalies", "- [months.png](file://", "No month is odd"],
    "service.py": ["Is it up? ok", "The region west sold most: 303 units.", "52.50 % in 2026-01"],
}


class Recorded:
    """Gives recorded replies: the one that was given to the message most like this one, the first of several.

    Agents that talk side by side ask in any order, and what they are asked holds paths of the day.
    """

    def __init__(self, path):
        self._left = list(Recording.read(path).replies)
        self._lock = threading.Lock()

    def complete(self, messages, **how):
        said = f"{messages[-1]['role']}: {' '.join(str(messages[-1].get('content')).split())}"
        with self._lock:
            if not self._left:
                raise ModelError(f"no reply was recorded for {said[:200]}")
            taken = max(self._left, key=lambda one: _likeness(said, one.last.rstrip("…")))
            self._left.remove(taken)
        return taken.completion


def _likeness(said: str, last: str) -> float:
    """Give how much a message begins like a recorded one, 0 to 1."""
    return SequenceMatcher(None, said[: len(last)], last, autojunk=False).ratio()


def run(code: str, replies, folder: Path) -> str:
    with replay_server(replies) as server:
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=folder,
            env={
                **os.environ,
                "OPENAI_BASE_URL": server.base_url,
                "OPENAI_API_KEY": "none",
                "OPENAI_MODEL": "recorded",
            },
            capture_output=True,
            encoding="utf-8",
            timeout=240,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return done.stdout


QUICK = ("ask.py", "drop_in.py")
NEEDS = {"mcp_tools.py": ("mcp", "mcp"), "service.py": ("sse_starlette", "service")}
"""A module and its extra."""


def marks(name: str) -> list[pytest.MarkDecorator]:
    module, extra = NEEDS.get(name, ("", ""))
    skips = [pytest.mark.skip(reason=f"needs the extra `{extra}`")] if module and find_spec(module) is None else []
    return skips if name in QUICK else [*skips, pytest.mark.slow]


EXAMPLES = [  # that of agentchat runs beside its own tests, where its host is installed
    pytest.param(path, marks=marks(path.name), id=path.name)
    for path in sorted((ROOT / "examples").glob("*.py"))
    if path.name != "agentchat_team.py"
]


@pytest.mark.parametrize("path", EXAMPLES)
def test_an_example_runs_as_it_stands_and_is_short(path, tmp_path):
    assert path.read_text(encoding="utf-8").count("\n") <= 60

    replies = Recorded(REPLIES / f"{path.stem}.yaml")
    out = run(f"import runpy; runpy.run_path({str(path)!r}, run_name='__main__')", replies, tmp_path)

    for words in SAID[path.name]:
        assert words in out


def test_the_readmes_plugin_works_as_it_stands(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n# my_plugins.py\n(.*?)```", text, re.DOTALL)
    (tmp_path / "my_plugins.py").write_text(block, encoding="utf-8")

    replies = [plans("double it", then="User"), codes("print('Twice 21 is', double(21.0))")]
    with (
        ScriptedModel(replies) as model,
        open_session(model, plugins=[tmp_path / "my_plugins.py"], folder=tmp_path / "sessions") as session,
    ):
        assert session.ask("double 21").text == "Twice 21 is 42.0"
