"""Names that are no UTF-8, as files and folders may have them, end neither a request nor a session."""

import json
import os
import sys

import pytest

from tw_autogen.session import open_session, read_journal
from tw_autogen.testing import ScriptedModel, codes, plans

pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="no file has such a name there")


@pytest.mark.parametrize("odd", ["folder", "file"])
def test_a_name_that_is_no_unicode_reaches_no_model_and_the_answer_is_given(here, odd):
    if odd == "folder":
        os.mkdir(b"f\xff")
        os.chdir(b"f\xff")
    else:
        (here / os.fsdecode(b"sales\xff.csv")).write_text("a,b\n1,2\n", encoding="utf-8")
    model = ScriptedModel(
        [
            plans("Write the files."),
            codes("open(b'h\\xff.csv', 'w').write('a')\nopen('plain.csv', 'w').write('a')\nprint('written')"),
            plans("Done.", to="User"),
        ]
    )
    with open_session(model) as session:
        answer = session.ask("sum sales.csv")
        names = [artifact.name for artifact in answer.artifacts]
        journal = session.folder.parent / "events.jsonl"

    assert answer.text == "Done."
    assert names == ["plain.csv"]
    assert any(type(one).__name__ == "RoundClosed" for one in read_journal(journal))
    assert json.dumps(model.calls, ensure_ascii=False, default=str).encode("utf-8")
