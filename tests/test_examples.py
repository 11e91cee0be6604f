"""Every example runs, and so does the README's, with recorded replies in the model's place."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tw_autogen import open_session
from tw_autogen.model import Completion, ToolCall
from tw_autogen.testing import ScriptedModel, codes, plans, replay_server

ROOT = Path(__file__).parent.parent
TOOL_ARGUMENTS = '{"df": "sales.csv", "time_col_name": "month", "value_col_name": "units"}'
REPLIES = {
    "drop_in.py": [
        plans("which region sold most"),
        codes("import pandas as pd\nsales = pd.read_csv('sales.csv')\nsales.groupby('region').units.sum()"),
        plans("It is read.", to="User"),
        plans("save the shares"),
        codes("sales.pivot(index='month', columns='region', values='units').to_csv('share.csv')"),
        plans("The shares are saved.", to="User"),
    ],
    "ask.py": [
        plans("find the odd hour", then="User"),
        codes("odd, words = anomaly_detection(loads, 'hour', 'load')\nprint('Hour', *odd[odd.Is_Anomaly].hour)"),
    ],
    "group_chat.py": [
        plans("sum the units by month"),
        codes("import pandas as pd\npd.read_csv('sales.csv').groupby('month').units.sum()"),
        plans("are these monthly sums plausible?", to="critic"),
        "They are plausible.",
        plans("Plausible sums.", to="User"),
    ],
    "agent_as_plugin.py": [
        plans("judge each review", then="User"),
        codes(
            "import pandas as pd\n"
            "reviews = pd.DataFrame({'product': ['kettle', 'kettle', 'toaster'], 'review': ['a', 'b', 'c']})\n"
            "opinions = [judge_review(text)['positive'] for text in reviews.review]\n"
            "print('Positive:', reviews.assign(positive=opinions).groupby('product').positive.mean().to_dict())"
        ),
        '{"positive": true, "reason": "fast"}',
        '{"positive": false, "reason": "leaked"}',
        '{"positive": true, "reason": "even"}',
    ],
    "agent_as_role.py": [
        plans("sum the units by region"),
        codes("import pandas as pd\npd.read_csv('sales.csv').groupby('region').units.sum()"),
        plans("write on the best region", to="writer"),
        "A good year in the best region.",
        plans("A good year in the best region.", to="User"),
    ],
    "mesh.py": [
        plans("sum by month and have a trend fitted", then="User"),
        codes(
            "import pandas as pd\nsums = pd.read_csv('sales.csv').groupby('month', as_index=False).units.sum()\n"
            "print('Trend:', fit_trend(sums, 'is there a trend?'))"
        ),
        plans("fit a line to the table"),
        codes("import glob, pandas as pd\nlen(pd.read_csv(glob.glob('*.csv')[0]))"),
        plans("It rises.", to="User"),
    ],
    "plugins_as_tools.py": [
        Completion(
            "",
            (
                ToolCall(
                    "1", "anomaly_detection", '{"df": "sales.csv", "time_col_name": "month", "value_col_name": "units"}'
                ),
            ),
            finish_reason="tool_calls",
        ),
        "```python\nopen('chart.txt', 'w').write('a chart')\n```",
        "No month is odd. TERMINATE",
    ],
    "README.md": [
        plans("compute the mean", then="User"),
        codes("import pandas as pd\nprint('The mean is', pd.read_csv('sales.csv').units.mean())"),
    ],
}
ALIKE = {
    "async_chat.py": lambda messages: (
        plans("It is read.", to="User")
        if "From: CodeInterpreter" in str(messages[-1])
        else codes("1 + 1")
        if "You are the CodeInterpreter" in messages[0]["content"]
        else plans("look")
    ),
}
"""Where chats run side by side the order of calls is open, so that a reply is made for what is asked."""

SAID = {
    "group_chat.py": ["[board, pinned up by Planner]", "critic (to chat_manager)", "The answer: Plausible sums."],
    "agent_as_plugin.py": ["The answer: Positive: {'kettle': 0.5, 'toaster': 1.0}"],
    "agent_as_role.py": ["writer (to Planner)", "The answer: A good year in the best region."],
    "mesh.py": ["Planner (to CodeInterpreter)", "The answer: Trend: It rises."],
    "plugins_as_tools.py": [
        "A table in anomaly_detection.csv",
        "- [chart.txt](file://",
        "The answer: No month is odd.",
    ],
    "async_chat.py": ["ann: It is read.", "bob: It is read."],
    "drop_in.py": ["It is read.", "The shares are saved.", "[share.csv](file://"],
    "ask.py": ["--- cell 1", "Hour", "2 model calls, Completed"],
    "README.md": ["The mean is"],
}


def run(code: str, name: str, folder: Path) -> str:
    replies = REPLIES.get(name) or ScriptedModel([ALIKE[name]] * 6)
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
            timeout=90,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return done.stdout


QUICK = ("ask.py", "drop_in.py")
EXAMPLES = [  # that of agentchat runs beside its own tests, where its host is installed
    pytest.param(path, marks=[] if path.name in QUICK else [pytest.mark.slow], id=path.name)
    for path in sorted((ROOT / "examples").glob("*.py"))
    if path.name != "agentchat_team.py"
]


@pytest.mark.parametrize("path", EXAMPLES)
def test_an_example_runs_as_it_stands_and_is_short(path, tmp_path):
    assert path.read_text(encoding="utf-8").count("\n") <= 60

    out = run(f"import runpy; runpy.run_path({str(path)!r}, run_name='__main__')", path.name, tmp_path)

    for words in SAID[path.name]:
        assert words in out


def test_the_readmes_example_runs_as_it_stands(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "sales.csv").write_bytes((ROOT / "examples" / "sales.csv").read_bytes())

    out = run(blocks[0], "README.md", tmp_path)

    assert "The mean is" in out


def test_the_readmes_plugin_works_as_it_stands(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (tmp_path / "plugins").mkdir()
    for name, block in re.findall(r"```(?:yaml|python)\n# (plugins/\S+)\n(.*?)```", text, re.DOTALL):
        (tmp_path / name).write_text(block, encoding="utf-8")

    replies = [plans("double it", then="User"), codes("print('Twice 21 is', double(21.0))")]
    with (
        ScriptedModel(replies) as model,
        open_session(model, plugins=[tmp_path / "plugins"], folder=tmp_path / "sessions") as session,
    ):
        assert session.ask("double 21").text == "Twice 21 is 42.0"
