import re

from tw_autogen.shipped_folders import shipped_folder
from tw_autogen.testing import load_plugin


def test_the_plugin_that_the_readme_shows_works(tmp_path):
    text = (shipped_folder("plugins") / "README.md").read_text(encoding="utf-8").partition("## One of your own")[2]
    fences = re.findall(r"```(yaml|python)\n(.*?)```", text, re.DOTALL)
    for suffix, kind in (("yaml", "yaml"), ("py", "python")):
        parts = [part for name, part in fences if name == kind]
        (tmp_path / f"shout.{suffix}").write_text("\n\n".join(parts), encoding="utf-8")

    with load_plugin(tmp_path / "shout.yaml", tmp_path) as shout:
        assert shout("hello") == "HELLO"
        assert shout.run_tests() == [("capitals", "")]
