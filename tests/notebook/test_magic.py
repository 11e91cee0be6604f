import pytest

from tw_autogen.errors import ConfigError
from tw_autogen.notebook.magic import _read


@pytest.mark.parametrize(
    ("line", "cell", "expected"),
    [
        ("how many rows?", "", ("how many rows?", [], [], "")),
        ("--file a.csv --var df  what's the --mean?", "", ("what's the --mean?", ["a.csv"], ["df"], "")),
        ("--file a.csv", "What is\n the mean?\n", ("What is\n the mean?", ["a.csv"], [], "")),
        ("In short:", "why?", ("In short:\nwhy?", [], [], "")),
        ("--to-cell", "", ("", [], [], "--to-cell")),
    ],
)
def test_a_line_is_options_and_then_words(line, cell, expected):
    read = _read(line, cell)

    assert (read.question, read.files, read.variables, read.does) == expected


@pytest.mark.parametrize("line", ["", "--file a.csv", "--file", "--var", "--what x y"])
def test_what_is_no_question_is_an_error_that_shows_the_usage(line):
    with pytest.raises(ConfigError, match=r"usage: %tw"):
        _read(line, "")
