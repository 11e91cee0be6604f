import pytest

from tw_autogen import open_session
from tw_autogen.secret_masking import mask_named, redactor
from tw_autogen.testing import ScriptedModel, codes, plans


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        ('"Incorrect API key: sk-abcdef1234567890."', '"Incorrect API key: [secret]."'),
        ('"Authorization: Bearer abcdef.ghijkl.mnop"', '"Authorization: Bearer [secret]"'),
        ('"postgresql://me:pa55@db:5432/shop failed"', '"postgresql://me:[secret]@db:5432/shop failed"'),
        ('"the word planted-in-env came"', '"the word [secret] came"'),
        ('"a risk-averse task at 10:30 in http://host:80/x@y"', '"a risk-averse task at 10:30 in http://host:80/x@y"'),
        ('"short"', '"short"'),
    ],
)
def test_secrets_are_masked_and_other_words_are_left(line, masked):
    redact = redactor({"SHOP_API_KEY": "planted-in-env", "KEYBOARD": "short"})

    assert redact(line) == masked


def test_a_quote_in_a_secret_does_not_hide_it():
    assert redactor({"DB_PASSWORD": 'pass"word\\x'})('{"e": "pass\\"word\\\\x"}') == '{"e": "[secret]"}'


def test_a_named_secret_is_masked_to_its_end():
    assert mask_named(f'{{"token": "{"a1" * 400}"}}') == '{"token": "[secret]"}'


def test_no_secret_reaches_the_journal(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOP_TOKEN", "planted-in-env")
    code = codes("print('planted-in-env', 'sk-0123456789abcdef')")
    with (
        ScriptedModel([plans("show"), code, plans("Done.", to="User")]) as model,
        open_session(model, folder=tmp_path) as session,
    ):
        session.ask("show planted-in-env")
        written = session.journal.read_text()

    assert "planted-in-env" not in written
    assert "sk-0123456789abcdef" not in written
    assert written.count("[secret]") > 3
