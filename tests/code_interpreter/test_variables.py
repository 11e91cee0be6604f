"""What a model is told of variables: what is new to it, and no more."""

from tw_autogen.code_interpreter.variables import KnownVariables
from tw_autogen.kernel import Variable


def test_only_what_is_new_changed_or_gone_is_told():
    known = KnownVariables(1000)

    assert known.news([Variable("a", "int", "1"), Variable("b", "int", "2")]) == "a: int, 1\nb: int, 2"
    assert known.news([Variable("a", "int", "1"), Variable("b", "int", "2")]) == ""
    assert known.news([Variable("a", "int", "7"), Variable("c", "str")]) == "a: int, 7\nc: str\nGone: b"


def test_what_was_forgotten_is_told_again():
    known = KnownVariables(1000)
    known.news([Variable("a", "int", "1")])

    known.forget()

    assert known.news([Variable("a", "int", "1")]) == "a: int, 1"


def test_a_thousand_variables_stay_within_the_limit():
    many = [Variable(f"v{number}", "int", str(number)) for number in range(1000)]

    told = KnownVariables(200).news(many)

    assert len(told) <= 230
    assert told.startswith("v0: int, 0\n")
    assert told.endswith("more")
