"""Seals of lines: those taken together vouch for the same as those taken one by one."""

import pytest

from tw_autogen.owner_marks import LineSeals
from tw_autogen.safe_folder import SafeFolder


@pytest.mark.parametrize("lines", [b"", b'{"a": 1}\n', b'{"a": 1}\n{"b": 2}\n', b'{"a": 1}\n{}\n{"b": "\\n"}\n'])
def test_lines_that_are_taken_together_are_sealed_as_those_taken_one_by_one(tmp_path, lines):
    with SafeFolder(tmp_path) as folder:
        single, together = LineSeals(folder, "test"), LineSeals(folder, "test")
    sealed = single.seal_all(lines.splitlines())

    together.take_all(sealed)

    assert together.holds
    assert together.seal('{"next": 1}') == single.seal('{"next": 1}')


def test_a_changed_line_is_seen_wherever_it_stands(tmp_path):
    with SafeFolder(tmp_path) as folder:
        sealed = LineSeals(folder, "test").seal_all([b'{"a": 1}', b'{"b": 2}', b'{"c": 3}'])
        for number in (b"1", b"2", b"3"):
            seals = LineSeals(folder, "test")
            seals.take_all(sealed.replace(number + b", ", b"7, ", 1))
            assert not seals.holds
