"""Code in a JSON object whose quotes are not escaped: it is read whole, or an error says how to send it."""

import json

import pytest

from tw_autogen.errors import Unreadable
from tw_autogen.model import read_object

PROGRAMS = {
    "quotes": 'df = pd.read_csv("a.csv")\nprint(df["x"].mean())',
    "quotes before commas": 'print("a", "b", sep=", ")',
    "a dict": 'd = {"a": "x", "then": "y", "b": [1, "z"]}\nprint(d["a"], d["then"])',
    "a dict at the end": 'd = {"a": "x"}',
    "triple quotes": 'text = """a, "b": c"""\nprint(text)',
    "an escape": 'print("a\\nb")',
    "a pattern": 'print(re.findall(r"\\d+", "a1"))',
    "both quotes": "print('a', \"it's\")",
    "a comment": '# the "mean", and "then"\nprint(1)',
    "a magic line": '%time x = f("a")\nprint(x)',
    "braces": 'print(f"{x}: {y}", "}")',
    "a fence in a string": 'print("```")',
}
MARKS = ['"', '"""', "'''", "`", "```python\n", "'"]
REST = {"reasoning": "r", "send_to": "CodeInterpreter", "message": "m, and so on", "then": "User", "stop": "InProcess"}


def sloppy(code, mark, *, last):
    """Return an object in which the code stands between marks as it is."""
    items = [f'"{name}": {json.dumps(value)}' for name, value in REST.items()]
    closing = "\n```" if mark.startswith("```") else mark
    items.insert(len(items) if last else 3, f'"code": {mark}{code}{closing}')
    return "{" + ", ".join(items) + "}"


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("wrapped", ["{}", "Sure!\n```json\n{}\n```\nThis does it.", "<think>x</think>{}"])
def test_code_whose_quotes_are_not_escaped_is_whole_or_an_error(name, mark, last, wrapped):
    code, read, problem = PROGRAMS[name], dict(REST), ""
    try:
        read = read_object(wrapped.replace("{}", sloppy(code, mark, last=last)))
    except Unreadable as unreadable:
        problem = unreadable.problem

    found = read.pop("code", code)

    assert read == REST
    assert found == code or (mark in "\"'" and "\n" not in code and "\\" in code)
    assert not problem or mark in code or (mark == '"' and "\\" in code)
    assert not problem or "```python block" in problem or "breaks off" in problem


@pytest.mark.parametrize("mark", ['"', '"""', "```python\n"])
def test_words_in_triple_quotes_before_and_after_code_are_read(mark):
    text = sloppy(PROGRAMS["quotes"], mark, last=False).replace('"m, and so on"', '"""The "m",\n{so: on}"""')

    read = read_object(text)

    assert (read["code"], read["message"]) == (PROGRAMS["quotes"], 'The "m",\n{so: on}')


@pytest.mark.parametrize("mark", ['"', '"""', "'''", "```python\n"])
@pytest.mark.parametrize("name", ["quotes", "quotes before commas", "a dict", "a comment", "braces"])
def test_what_models_write_most_is_read_whole(name, mark):
    code = PROGRAMS[name]

    assert read_object(sloppy(code, mark, last=False))["code"] == code
    assert read_object(sloppy(code, mark, last=True)[:-1])["code"] == code
    assert read_object(sloppy(code, mark, last=True)[:-1] + ",\n}")["code"] == code


@pytest.mark.parametrize("written", ['print("a")\\nprint("b")', 'print(\\"a\\")\nprint("b")', 'print("a")\nprint("b")'])
def test_line_breaks_may_be_escaped_or_not(written):
    code = read_object(f'{{"message": "m", "code": "{written}", "then": null}}')["code"]

    assert code in ('print("a")\nprint("b")', written)


@pytest.mark.parametrize(
    "reply",
    [
        '{"send_to": "CodeInterpreter", "code": "print("a", "stop": "InProcess"}',
        '{"send_to": "CodeInterpreter", "code": "x = 1\nprint("a"',
        '{"send_to": "CodeInterpreter", "code": "if x:\nprint("a")", "stop": "InProcess"}',
        '{"send_to": "CodeInterpreter", "code": ["x = 1", "print("a")"], "stop": "InProcess"}',
        '{"send_to": "CodeInterpreter", "code": x = 1, "stop": "InProcess"}',
    ],
)
def test_code_that_can_not_be_read_surely_is_an_error_that_says_how_to_send_it(reply):
    with pytest.raises(Unreadable, match="it is not certain where the code in the field `code` ends.*```python block"):
        read_object(reply)


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ('{"message": "m", "code": "print(\\"a\\")", "then": null,}', 'print("a")'),
        ('{"message": "m", "code": "print(", "then": null,}', "print("),
        ("{'message': 'm', 'code': 'print(\"a\")', 'then': None}", 'print("a")'),
        ('{"message": "m", "code": null, "then": "User",}', None),
        ('{"message": "m", "code": ["x = 1", "print(x)"], "then": "User",}', ["x = 1", "print(x)"]),
    ],
)
def test_what_is_wrong_elsewhere_leaves_the_code_alone(reply, code):
    read = read_object(reply)

    assert (read["message"], read.get("code") or None) == ("m", code)


def test_a_dict_in_a_python_block_beside_the_object_is_not_the_reply():
    block = '```python\nd = {"a": 1, "b": 2, "c": 3, "d": df["x"]}\n```'

    assert read_object(f'{{"send_to": "User", "message": "m"}}\n{block}') == {"send_to": "User", "message": "m"}
    assert read_object(f'{block}\n{{"send_to": "User", "message": "m"}}') == {"send_to": "User", "message": "m"}
    assert read_object('```python\n{"message": "m"}\n```') == {"message": "m"}


@pytest.mark.parametrize(
    "reply",
    [
        '{"message": "The \'python\': a "snake" lives", "send_to": "User"}',
        '{"send_to": "User", "message": "Set "code": to 5", "stop": "Completed",}',
    ],
)
def test_words_of_a_message_are_no_field_of_code(reply):
    read = read_object(reply)

    assert (read["send_to"], "code" in read) == ("User", False)
    assert read["message"].startswith(("The 'python': a", "Set"))
