"""Lines of events: JSON whatever is masked in them, and harmless at a terminal."""

import io
import json

import pytest

from tw_autogen.events import CellOutput, EventLines

KEY = "-----BEGIN PRIVATE KEY-----" + "A" * 24


def written(text):
    file = io.StringIO()
    EventLines(file)(CellOutput(1, "stdout", text))
    return file.getvalue()


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("login a password x", "login a password [secret]"),
        ('login a password x"y\\', "login a password [secret]"),
        (KEY + '"', '-----BEGIN PRIVATE KEY-----[secret]"'),
        (KEY + "\\", "-----BEGIN PRIVATE KEY-----[secret]"),
        (KEY + '\nB"\n', '-----BEGIN PRIVATE KEY-----[secret]"\n'),
        ('login a password x","c": "d', 'login a password [secret] "d'),
    ],
)
def test_what_is_masked_takes_nothing_of_the_json_with_it(text, masked):
    line = json.loads(written(text))

    assert line["text"] == masked
    assert line["stream"] == "stdout"
    assert list(line) == list(json.loads(written("nothing of the kind")))


def test_a_secret_between_quotes_is_masked_beside_what_breaks_the_json():
    key = "sk-" + "a1" * 12
    line = written(f'login a password x {{"api_key": "{key}"}}')
    assert key not in line
    assert json.loads(line)


def test_a_line_has_no_signs_that_move_a_terminal_or_text():
    text = "\x9b31m\x9d0;t\x07 \u202e\u2066 é 日本 \x7f"
    line = written(text)
    assert line.rstrip("\n").isprintable()
    assert "é 日本" in line
    assert json.loads(line)["text"] == text
