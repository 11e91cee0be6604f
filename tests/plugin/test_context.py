"""What a plugin is told of the session in which it is called."""

import ast

from tw_autogen import open_session
from tw_autogen.testing import ScriptedModel

PYTHON = """\
from tw_autogen.plugin import Plugin, register_plugin

@register_plugin
class Where(Plugin):
    def __call__(self):
        return self.ctx.session_id
"""


def test_plugins_in_kernel_and_host_know_the_sessions_id(tmp_path):
    for name, place in (("here", "kernel"), ("there", "host")):
        (tmp_path / f"{name}.py").write_text(PYTHON, encoding="utf-8")
        (tmp_path / f"{name}.yaml").write_text(
            f"name: {name}\ndescription: Where it is.\nruns_in: {place}\n", encoding="utf-8"
        )
    plugins = [tmp_path / "here.yaml", tmp_path / "there.yaml"]
    told, ids = [], []
    for _ in range(2):
        with open_session(ScriptedModel([]), plugins=plugins, folder=tmp_path / "sessions") as session:
            told.append(session.run_code("print(here(), there())").text)
            ids.append(session.id)

    assert told == [f"{one} {one}" for one in ids]
    assert ids[0] != ids[1]


def test_a_plugin_knows_its_execution_and_marks_text_of_the_round(tmp_path):
    (tmp_path / "when.py").write_text(
        PYTHON.replace(
            "self.ctx.session_id",
            "(self.ctx.env_id, self.ctx.execution_idx, self.ctx.execution_id, "
            "len(self.ctx.wrap_text_with_delimiter_temporal('word')) > 4)",
        ),
        encoding="utf-8",
    )
    (tmp_path / "when.yaml").write_text("name: when\ndescription: When it is.\n", encoding="utf-8")
    with open_session(ScriptedModel([]), plugins=tmp_path / "when.yaml", folder=tmp_path / "sessions") as session:
        first, second = (ast.literal_eval(session.run_code("print(when())").text) for _ in range(2))

    number = first[1]
    assert first == ("local", number, f"exec-{number}", True)
    assert second == ("local", number + 1, f"exec-{number + 1}", True)
