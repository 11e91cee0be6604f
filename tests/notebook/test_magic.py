from types import SimpleNamespace

import pytest

from tw_autogen.errors import ConfigError
from tw_autogen.notebook.magic import Magic, _read, as_calls


@pytest.mark.parametrize(
    ("line", "cell", "expected"),
    [
        ("how many rows?", "", ("how many rows?", [], [], "")),
        ("--file a.csv --var df  what's the --mean?", "", ("what's the --mean?", ["a.csv"], ["df"], "")),
        ("--file a.csv", "What is\n the mean?\n", ("What is\n the mean?", ["a.csv"], [], "")),
        ("--file \"my sales.csv\" --file 'a.csv' why?", "", ("why?", ["my sales.csv", "a.csv"], [], "")),
        ("In short:", "why?", ("In short:\nwhy?", [], [], "")),
        ("--to-cell", "", ("", [], [], "--to-cell")),
    ],
)
def test_a_line_is_options_and_then_words(line, cell, expected):
    read = _read(line, cell)

    assert (read.question, read.files, read.variables, read.does) == expected


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("%tw Which is the oldest?\n", "get_ipython().run_line_magic('tw', 'Which is the oldest?')\n"),
        ("x = 1\n  %tw What's the 'mean'?", "x = 1\n  get_ipython().run_line_magic('tw', \"What's the 'mean'?\")\n"),
        ("a = %tw --file a.csv why? ", "a = get_ipython().run_line_magic('tw', '--file a.csv why?')\n"),
        *((one, one) for one in ("%tw why\n", "%twice x?\n", "%%tw\n%tw why?\n", "t = '''\n%tw why?\n'''\n", "tw?\n")),
    ],
)
def test_a_question_with_its_mark_is_a_call_before_ipython_takes_it_for_help(cell, expected):
    assert "".join(as_calls(cell.splitlines(keepends=True))) == expected


@pytest.mark.parametrize("line", ["", "--file a.csv", "--file", "--var", "--what x y"])
def test_what_is_no_question_is_an_error_that_shows_the_usage(line):
    with pytest.raises(ConfigError, match=r"usage: %tw"):
        _read(line, "")


def test_code_of_an_answer_is_wanted_before_any_question_and_no_session_is_opened_for_it():
    shell = SimpleNamespace(user_ns={})

    with pytest.raises(ConfigError, match="there is no code of an answer yet"):
        Magic(shell)("--to-cell")
    assert shell.user_ns == {}


def test_a_variable_of_the_user_that_is_called_as_the_session_is_not_overwritten():
    shell = SimpleNamespace(user_ns={"tw_session": 3})

    with pytest.raises(ConfigError, match="the notebook's variable tw_session is no session"):
        Magic(shell)("Which product sells best?")
    assert shell.user_ns == {"tw_session": 3}
