import re

from tw_autogen.shipped import shipped_folder
from tw_autogen.testing import load_plugin


def test_the_plugin_that_the_readme_shows_works(tmp_path):
    text = (shipped_folder("plugins") / "README.md").read_text(encoding="utf-8")
    fences = dict(re.findall(r"```(yaml|python)\n(.*?)```", text, re.DOTALL))
    (tmp_path / "shout.yaml").write_text(fences["yaml"], encoding="utf-8")
    (tmp_path / "shout.py").write_text(fences["python"], encoding="utf-8")

    assert load_plugin(tmp_path / "shout.yaml", tmp_path)("hello") == "HELLO"
