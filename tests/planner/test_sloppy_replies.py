"""Replies of the Planner's model in the manner of small models: understood, or asked for again with what is wrong."""

import json

import pytest

from tw_autogen.conversation import RequestedFormat
from tw_autogen.errors import Unreadable
from tw_autogen.planner.planner_reply import RetryReplyParser

TO = '"send_to": "CodeInterpreter", "stop": "InProcess"'
HEAD = f'{{"message": "mean", {TO}'
BARE = f"{HEAD}}}"
CODE = 'df = pd.read_csv("a.csv")\nprint(df["x"].mean())'
ESCAPED = 'df = pd.read_csv(\\"a.csv\\")\\nprint(df[\\"x\\"].mean())'

UNDERSTOOD = {
    "block beside": f"{BARE}\n```python\n{CODE}\n```",
    "block before": f"```python\n{CODE}\n```\n{BARE}",
    "block before an object in a fence": f"The code:\n```python\n{CODE}\n```\nThe reply:\n```json\n{BARE}\n```",
    "block of py3 alone": f"mean\n```py3\n{CODE}\n```",
    "block of python3.11": f"{BARE}\n```python3.11\n{CODE}\n```",
    "block of ipython in the field": f'{HEAD}, "code": ```ipython\n{CODE}\n```}}',
    "block of python3": f"{BARE}\n```python3\n{CODE}\n```",
    "block with a title": f'{BARE}\n```python title="a.py"\n{CODE}\n```',
    "block in braces": f"{BARE}\n```{{python}}\n{CODE}\n```",
    "block without a language": f"{BARE}\n```\n{CODE}\n```",
    "block after an object in a fence": f"```json\n{BARE}\n```\n```\n{CODE}\n```",
    "block with tildes": f"{BARE}\n~~~python\n{CODE}\n~~~",
    "block that is never closed": f"{BARE}\n```python\n{CODE}",
    "no block at all": f"{BARE}\n\n{CODE}",
    "no block, after a word": f"{BARE}\n\nCode:\n{CODE}",
    "tag of a chat template": f"{BARE}<|python_tag|>{CODE}",
    "words in the field": f'{HEAD}, "code": "see the block below"}}\n```python\n{CODE}\n```',
    "the same twice": f'{HEAD}, "code": "{ESCAPED}"}}\n```python\n{CODE}\n```',
    "quotes and line breaks not escaped": f'{HEAD}, "code": "{CODE}"}}',
    "triple quotes": f'{HEAD}, "code": """{CODE}"""}}',
    "fence in the place of a string": f'{HEAD}, "code": ```python\n{CODE}\n```}}',
    "fence in the string": f'{HEAD}, "code": "```python\\n{ESCAPED}\\n```"}}',
    "escaped twice": f'{HEAD}, "code": "{json.dumps(ESCAPED)[1:-1]}"}}',
    "line breaks escaped twice": f'{HEAD}, "code": "{ESCAPED}"}}'.replace("\\n", "\\\\n"),
    "all of it escaped": json.dumps(f'{HEAD}, "code": "{ESCAPED}"}}')[1:-1],
    "an object": f'{HEAD}, "code": {{"language": "python", "source": "{ESCAPED}"}}}}',
    "a list of lines": f'{HEAD}, "code": ["df = pd.read_csv(\\"a.csv\\")", "print(df[\\"x\\"].mean())"]}}',
    "single quotes and None": f"{{'message': 'mean', 'send_to': 'CodeInterpreter', 'plan': None, 'code': '{CODE}'}}",
    "Python's constants": f'{HEAD}, "plan": None, "then": True, "code": "{ESCAPED}"}}',
    "no last brace": f'{HEAD}, "code": "{ESCAPED}"',
    "prose behind": f'{HEAD}, "code": "{ESCAPED}"}}\nI hope this helps with {{name}}.',
    "comments": f'{{\n  // the step\n  {HEAD[1:]}, # to whom\n  "code": "{ESCAPED}" /* all */\n}}',
    "its own name": f'{{"message": "mean", "send_to": "Planner", "stop": "in progress", "code": "{ESCAPED}"}}',
    "the conversation goes on": f'{HEAD}, "code": "{ESCAPED}"}}\nFrom: Worker\n4\n{HEAD}, "code": "print(5)"}}',
}

BROKEN = {
    "first line": "df = df.drop_duplicates(\nprint('Rows without duplicates:', len(df))",
    "filter": "df = df[df.year > 2019\nimport pandas as pd\nprint(df.mean())",
    "check": "total = 3\nassert total == 4, 'it's wrong'",
    "no colon": "if x > 3\n    y = 2\nimport os\nprint(os.name)",
}

ASKED_AGAIN = {
    "breaks off in the message": ('{"send_to": "CodeInterpreter", "message": "print the me', "it breaks off inside"),
    "breaks off in the code": (f'{HEAD}, "code": "{ESCAPED[:-9]}', "not certain where the code in the field"),
    "breaks off behind the code": (f'{HEAD}, "code": "print(1)",', "it breaks off inside"),
    "strings that are added": (f'{HEAD}, "code": "x = 1\\n" + "print(x)"}}', "not certain where the code in the field"),
    "other code beside": (f'{HEAD}, "code": "print(1)"}}\n```python\nprint(2)\n```', "other Python beside the object"),
    "two steps": (f'{HEAD}, "code": "x = 1"}}\n{HEAD}, "code": "print(x)"}}', "two objects with different `code`"),
    "two steps in a list": (f'[{HEAD}, "code": "x = 1"}}, {HEAD}, "code": "print(x)"}}]', "two objects with different"),
    "an object that is no code": (f'{HEAD}, "code": {{"run": true}}}}', "`code` is an object without Python"),
    "code for nobody": (
        '{"message": "I compute.", "send_to": "User"}\n```python\nprint(4)\n```',
        "Python beside a message to the User is not run: send it to CodeInterpreter",
    ),
    "YAML": ("send_to: CodeInterpreter\nmessage: mean\ncode: print(1)", "there is no JSON object in it"),
    "XML": ("<reply><to>CodeInterpreter</to><code>print(1)</code></reply>", "there is no JSON object in it"),
    "a list of steps": (f'{{"steps": [{BARE}]}}', "`send_to` is missing"),
    "an unknown status": ('{"message": "Four.", "send_to": "User", "stop": "awaiting"}', "`stop` is 'awaiting'"),
}


def reader(request="What is the mean of x in a.csv?", *, worked=False):
    form = RequestedFormat.read(request)
    return RetryReplyParser(["CodeInterpreter"], has_plan=worked, form=form, coder="CodeInterpreter", worked=worked)


@pytest.mark.parametrize("name", UNDERSTOOD)
def test_code_is_found_however_it_is_sent(name):
    reply = reader()(UNDERSTOOD[name])

    assert (reply.send_to, reply.message, reply.code) == ("CodeInterpreter", "mean", CODE)


@pytest.mark.parametrize("name", BROKEN)
def test_code_with_a_mistake_is_sent_whole_so_that_no_other_program_runs(name):
    reply = reader(worked=True)(f'{HEAD}, "code": {json.dumps(BROKEN[name])}}}')

    assert reply.code == BROKEN[name]


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ("# look\\nimport pandas as pd\\nprint(pd)", "# look\nimport pandas as pd\nprint(pd)"),
        ("# split at \\n", "# split at \\n"),
        ("print('a\\nb')", "print('a\\nb')"),
        ("text = '''\n```python\nf()\n```'''", "text = '''\n```python\nf()\n```'''"),
    ],
)
def test_line_breaks_that_are_escaped_twice_are_told_from_those_that_the_code_means(sent, code):
    assert reader()(f'{HEAD}, "code": {json.dumps(sent)}}}').code == code


@pytest.mark.parametrize("name", ASKED_AGAIN)
def test_what_can_not_be_understood_for_certain_is_asked_for_again_in_a_sentence(name):
    text, problem = ASKED_AGAIN[name]

    with pytest.raises(Unreadable) as unreadable:
        reader()(text)
    assert problem in unreadable.value.problem.partition(". The form:")[0]


def test_a_model_that_was_told_is_taken_at_its_field():
    read = reader()
    text = ASKED_AGAIN["other code beside"][0]
    with pytest.raises(Unreadable):
        read(text)

    assert read(text).code == "print(1)"


def test_code_beside_an_answer_is_shown_where_it_was_asked_for_and_kept_where_it_is_sent_again():
    text = ASKED_AGAIN["code for nobody"][0]
    shown = reader("Write me a function that prints 4.")(text)
    read = reader()
    with pytest.raises(Unreadable):
        read(text)

    assert shown.message == read(text).message == "I compute.\n\n```python\nprint(4)\n```"
    assert reader(worked=True)(text).message == "I compute."


def test_data_and_words_beside_the_object_are_no_code():
    for beside in ("Done.", "```\nmean 4.0\n```", "result", '{"x": 1}', "R = 0.95 holds", "```json\n[1, 2]\n```"):
        assert reader()(f"{BARE}\n{beside}").code == ""
