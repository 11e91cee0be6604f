"""Every example runs, and so does the README's, with recorded replies in the model's place."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tw_autogen import open_session
from tw_autogen.testing import ScriptedModel, codes, plans, replay_server

ROOT = Path(__file__).parent.parent
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
    "README.md": [
        plans("compute the mean", then="User"),
        codes("import pandas as pd\nprint('The mean is', pd.read_csv('sales.csv').units.mean())"),
    ],
}
SAID = {
    "drop_in.py": ["It is read.", "The shares are saved.", "[share.csv](file://"],
    "ask.py": ["--- cell 1", "Hour", "2 model calls, Completed"],
    "README.md": ["The mean is"],
}


def run(code: str, name: str, folder: Path) -> str:
    with replay_server(REPLIES[name]) as server:
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


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
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
