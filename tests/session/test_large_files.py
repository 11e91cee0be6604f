"""Large files of a request stay where they are, if code can read them there."""

import sys

import pytest

from tw_autogen import open_session
from tw_autogen.session.request_inputs import LARGE_BYTES
from tw_autogen.testing import ScriptedModel, codes, plans

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no sandbox yet")


@pytest.fixture
def large(tmp_path):
    """Give a CSV file of 60 MB that any user may read."""
    folder = tmp_path.resolve() / "data"
    folder.mkdir(mode=0o755)
    for above in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        above.chmod(above.stat().st_mode | 0o011)
    path = folder / "large.csv"
    path.write_bytes(b"day;units\n" + b"1;40\n" * ((LARGE_BYTES + 10_000_000) // 5))
    path.chmod(0o644)
    return path


def test_a_large_file_is_not_copied_and_code_reads_it_by_its_whole_path(large, tmp_path):
    small = tmp_path / "small.csv"
    small.write_text("a,b\n1,2\n", encoding="utf-8")
    code = f"open({str(large)!r}).readline(), open('small.csv').readline()"
    model = ScriptedModel([plans("read"), codes(code), plans("Read.", to="User"), plans("Known.", to="User")])
    with model, open_session(model, folder=tmp_path / "sessions") as session:
        answer = session.ask("read them", files=[large, small])
        session.ask("and again", files=[large])
        names = {path.name for path in session.folder.iterdir()}
        result = answer.round.posts[2].message
        told = model.calls[0][-1]["content"]

    assert "('day;units\\n', 'a,b\\n')" in result
    assert "small.csv" in names
    assert "large.csv" not in names
    assert f"Large files at their own place, to be opened by the whole path, read-only:\n- {large}: 60.0 MB" in told
    assert f"pd.read_csv({str(large)!r}, sep=';'" in told
    assert "Files in the working folder:\n- small.csv" in told


def test_a_large_file_that_code_could_not_reach_is_copied(large, tmp_path):
    model = ScriptedModel([plans("do"), codes("1"), plans("One.", to="User"), plans("Two.", to="User")])
    with model, open_session(model, folder=tmp_path / "sessions") as session:
        session.ask("first")
        session.ask("then", files=[large])  # a cell has run: its kernel can't be shown more
        assert (session.folder / "large.csv").stat().st_size == large.stat().st_size
