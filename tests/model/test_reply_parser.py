"""Reading replies: a table of good and bad ones, thought and code, and fields while they grow."""

import json
import re
from pathlib import Path

import pytest
import yaml

from tw_autogen.errors import Unreadable
from tw_autogen.model import CodeReply, CodeStream, FieldStream, read_code, read_object
from tw_autogen.model.thoughts import without_thoughts

TABLE = yaml.safe_load((Path(__file__).parent / "replies.yaml").read_text(encoding="utf-8"))
GOOD = [row for row in TABLE if "object" in row]
BAD = [row for row in TABLE if "unreadable" in row]


def by_name(rows):
    return {"argvalues": rows, "ids": [row["name"] for row in rows]}


@pytest.mark.parametrize("row", **by_name(GOOD))
def test_a_sloppy_reply_is_read_as_it_was_meant(row):
    assert read_object(row["reply"]) == row["object"]


@pytest.mark.parametrize("row", **by_name(BAD))
def test_what_is_no_object_says_what_is_wrong_and_what_is_wanted(row):
    with pytest.raises(Unreadable, match=re.compile(row["unreadable"], re.S)) as unreadable:
        read_object(row["reply"])

    assert "reply with one JSON object and nothing else" in unreadable.value.problem


def test_the_table_is_long_enough_to_mean_something():
    assert len(GOOD) >= 40
    assert len(BAD) >= 10


def test_a_very_deep_reply_is_unreadable_rather_than_a_crash():
    with pytest.raises(Unreadable, match="JSON object"):
        read_object('{"a":' * 5000)


CODE = {
    "thought and code": ("I add.\n```python\n1 + 1\n```", "I add.", "1 + 1"),
    "py": ("```py\nx = 1\n```", "", "x = 1"),
    "a version": ("```python3.11\nx = 1\n```", "", "x = 1"),
    "a version on one line": ("```python3 1 + 1```", "", "1 + 1"),
    "a block in a string of Python 3.11": (
        "```Python3.11\nx = '''\n```python3.11\n1\n```\n'''\n```",
        "",
        "x = '''\n```python3.11\n1\n```\n'''",
    ),
    "another language": ("```pyx\nx = 1\n```", "```pyx\nx = 1\n```", None),
    "capitals": ("```Python\nx = 1\n```", "", "x = 1"),
    "more after the language": ('```python title="a.py"\nx = 1\n```', "", "x = 1"),
    "braces round the language": ("```{python}\nx = 1\n```", "", "x = 1"),
    "no language": ("So:\n```\nx = 1\n```", "So:", "x = 1"),
    "tildes": ("~~~python\nx = 1\n~~~", "", "x = 1"),
    "words after": ("A.\n```python\nx = 1\n```\nB.", "A.\nB.", "x = 1"),
    "several blocks are joined": ("A.\n```python\nx = 1\n```\nB.\n```py\ny = 2\n```", "A.\nB.", "x = 1\n\ny = 2"),
    "text and output are no code": (
        "```python\nx\n```\nGives:\n```text\n42\n```\n```output\n1\n```\n```\n43\n```",
        "Gives:\n```text\n42\n```\n```output\n1\n```\n```\n43\n```",
        "x",
    ),
    "JSON and CSV are no code": (
        '```json\n{"a": 1}\n```\n```csv\na,b\n```',
        '```json\n{"a": 1}\n```\n```csv\na,b\n```',
        None,
    ),
    "a shell is no code": ("Run\n```bash\nls\n```", "Run\n```bash\nls\n```", None),
    "no fence": ("There is nothing to run.", "There is nothing to run.", None),
    "inline code is no block": ("Use `df` or ```df.head()``` here.", "Use `df` or ```df.head()``` here.", None),
    "never closed": ("I add.\n```python\n1 + 1\n2", "I add.", "1 + 1\n2"),
    "closed at the end of its last line": ("```python\nplt.show()```\nDone.", "Done.", "plt.show()"),
    "opened at the end of a line": ("Here it is: ```python\nx = 1\n```", "Here it is:", "x = 1"),
    "all on one line": ("```python 1 + 1```", "", "1 + 1"),
    "indented as in a list": ("- so:\n  ```python\n  if x:\n      y\n  ```", "- so:", "if x:\n    y"),
    "its own indentation stays": ("```python\n    x = 1\n```", "", "    x = 1"),
    "longer fence around a shorter": ("````python\na = '''\n```\nb\n```\n'''\n````", "", "a = '''\n```\nb\n```\n'''"),
    "backticks in a string": ("```python\nprint('```')\n```", "", "print('```')"),
    "Windows line ends": ("A.\r\n```python\r\nx = 1\r\ny = 2\r\n```\r\n", "A.", "x = 1\ny = 2"),
    "thoughts in tags go": ("<think>Maybe\n```python\nbad\n```\n</think>\nA.\n```python\nx\n```", "A.", "x"),
    "thoughts that stay open": ("<think>A.\n```python\nx\n```", "A.", "x"),
    "only the end of thoughts": ("Maybe\n```python\nbad\n```\n</think>\n```python\nx\n```", "", "x"),
    "a tag in code stays": ("```python\ns = '<think>a</think>'\n```", "", "s = '<think>a</think>'"),
    "tags on lines of their own in code stay": (
        "<think>hm</think>A.\n```python\ns = '''\n<think>\na\n</think>\n'''\nt = '''<thought>\na\n</thought>\n'''\n```",
        "A.",
        "s = '''\n<think>\na\n</think>\n'''\nt = '''<thought>\na\n</thought>\n'''",
    ),
    "code alone": ("x = 6 * 7\nprint(x)", "", "x = 6 * 7\nprint(x)"),
    "code with prose behind it": (
        "import a\n\nprint(a.b)\n\nThis prints b.",
        "This prints b.",
        "import a\n\nprint(a.b)",
    ),
    "words and code without a fence": ("Here it is:\ndf.mean()", "Here it is:", "df.mean()"),
    "one word": ("hello", "hello", None),
    "a name and a value": ("Mean: 25.4", "Mean: 25.4", None),
    "a value in words": ("The correlation:\nR = 0.95", "The correlation:\nR = 0.95", None),
    "a word behind code": ("x = 6 * 7\nx\nhello", "hello", "x = 6 * 7\nx"),
    "code within an explanation": ("Use\ndf.mean()\nfor it.\nThat is all.",) * 2 + (None,),
    "a magic line": ("%pip install a\nimport a", "", "%pip install a\nimport a"),
    "a line within brackets that begins as a magic does": (
        "x = (10\n% 3)\nprint(x)\nThis prints 1.",
        "This prints 1.",
        "x = (10\n% 3)\nprint(x)",
    ),
    "never closed before prose": ("```python\nx = 1\nprint(x)\n\nThis prints x.", "This prints x.", "x = 1\nprint(x)"),
    "a fence in a string": (
        "A.\n```python\na = '''\n```bash\nls\n```\n'''\nprint(a)\n```\nB.",
        "A.\n\nB.",
        "a = '''\n```bash\nls\n```\n'''\nprint(a)",
    ),
    "a fence in a string, and another block": (
        "```python\na = '''\n```\nls\n```\n'''\n```\nB.\n```python\nb = a\n```",
        "B.",
        "a = '''\n```\nls\n```\n'''\n\nb = a",
    ),
    "code that is wrong ends at its fence": ("```python\nx = \n```\nB.\n```\nout\n```", "B.\n```\nout\n```", "x ="),
    "as JSON": ('{"thought": "I add.", "reply_type": "python", "reply_content": "x = 1\\nx"}', "I add.", "x = 1\nx"),
    "as JSON in a fence and wrapper": (
        '```json\n{"response": {"thought": "A.", "reply_type": "python", "reply_content": "x"}}\n```',
        "A.",
        "x",
    ),
    "as JSON with a fence inside": ('{"thought": "A.", "reply_content": "```python\\nx\\n```"}', "A.", "x"),
    "as JSON with line breaks": (
        '{"thought": "A.", "reply_type": "python", "reply_content": "x = 1\nx"}',
        "A.",
        "x = 1\nx",
    ),
    "as JSON with a list of lines": ('{"thought": "A.", "reply_content": ["x = 1", "x"]}', "A.", "x = 1\nx"),
    "a call in tags": (
        'I count.\n<tool_call>{"name": "python", "arguments": {"code": "import a\\nprint(a.b)"}}</tool_call>',
        "I count.",
        "import a\nprint(a.b)",
    ),
    "a call whose arguments are a string": (
        '<tool_call>\n{"name": "python", "arguments": "{\\"code\\": \\"df\\"}"}\n</tool_call>',
        "",
        "df",
    ),
    "a call that is never closed": ('<tool_call>{"name": "run", "arguments": {"code": "f(1)"}}', "", "f(1)"),
    "a call with parameters in tags": (
        "<tool_call>\n<function=python>\n<parameter=code>\nx = 1\nprint(x)\n</parameter>\n</function>\n</tool_call>",
        "",
        "x = 1\nprint(x)",
    ),
    "code in tags": ("I add.\n<code>\nx = 1\nprint(x)\n</code>", "I add.", "x = 1\nprint(x)"),
    "a field of JSON": ('{"thought": "I load.", "code": "import pandas\\nf()"}', "I load.", "import pandas\nf()"),
    "a field of JSON in a fence after words": ('So:\n```json\n{"code": "print(1)"}\n```', "", "print(1)"),
    "a list of lines in JSON": ('{"code": ["import a", "a.b()"]}', "", "import a\na.b()"),
    "a code that is no program": ('{"country": "Japan", "code": "JP"}', '{"country": "Japan", "code": "JP"}', None),
    "a tag in a sentence": ("Call <code>f(1)</code> for it.", "Call <code>f(1)</code> for it.", None),
    "a text answer as JSON": (
        '{"thought": "A.", "reply_type": "text", "reply_content": "It is 42."}',
        "It is 42.",
        None,
    ),
}


@pytest.mark.parametrize(("reply", "thought", "code"), CODE.values(), ids=CODE)
def test_thought_and_code_are_told_apart(reply, thought, code):
    assert read_code(reply) == CodeReply(thought, code)


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("", "it is empty"),
        ("<think>hm</think>", "nothing but thoughts"),
        ("I add.\n```python\n\n```", "the code block is empty; write what you think, then the code in one fenced"),
        ('{"thought": "A.", "reply_type": "python", "reply_content": ""}', "`reply_content` is empty"),
        ('{"thought": "A.", "reply_type": "python", "reply_content": "x = ', "breaks off inside the JSON object"),
    ],
)
def test_a_reply_without_words_or_code_says_what_is_wanted(reply, problem):
    with pytest.raises(Unreadable, match=problem):
        read_code(reply)


def cuts(text):
    """Give some ways to cut a text: whole, letter by letter, and by every size of piece up to seven."""
    for size in (len(text) or 1, *range(1, 8)):
        yield [text[at : at + size] for at in range(0, len(text), size)]


def grown(stream, pieces):
    fields = {}
    for piece in pieces:
        for name, text in stream.feed(piece):
            assert text
            fields[name] = fields.get(name, "") + text
    return fields


STREAMED = [
    '{"reasoning": "so", "n": 1, "message": "hi"}',
    'So:\n```json\n{"response": {"plan": "1. a\\n2. b", "message": "\\u00e9 \\ud83d\\ude00 \\"q\\" \\\\"}}\n``` {}',
    "<think>{\"a\": 1}</think> {\"message\": \"line\nbreak\ttab\"}",
    '{"list": ["a", "b"], "deep": {"x": "y"}, "nothing": null, "empty": "", "message": "end"}',
]  # fmt: skip


@pytest.mark.parametrize("reply", STREAMED)
def test_however_a_reply_is_cut_its_fields_grow_to_what_it_holds(reply):
    whole = {name: value for name, value in read_object(reply).items() if isinstance(value, str) and value}
    for pieces in cuts(reply):
        assert grown(FieldStream(), pieces) == whole


def test_every_single_place_to_cut_gives_the_same_fields():
    reply = STREAMED[1]
    whole = grown(FieldStream(), [reply])
    for at in range(len(reply)):
        assert grown(FieldStream(), [reply[:at], reply[at:]]) == whole


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        ('{"a": "x", "b": "trunc', {"a": "x", "b": "trunc"}),
        ('{"a": "x", "b": oops, "c": "y"}', {"a": "x"}),
        ('{"a": "x \\d y"}', {"a": "x "}),
        ('{"a": "x",}', {"a": "x"}),
        ('{"a": "\\ud83d lone"}', {}),
        ('{"a": "x", "b": "y \ud83d z", "c": 1}', {"a": "x", "b": "y ? z"}),
        ("{'a': 'x'}", {}),
        ("no object { at all", {}),
        ("<think>never closed {\"a\": \"x\"}", {}),
    ],
)  # fmt: skip
def test_what_is_no_json_ends_the_stream_at_one_place_however_it_is_cut(reply, shown):
    for pieces in cuts(reply):
        assert grown(FieldStream(), pieces) == shown


def test_a_field_grows_as_its_text_arrives():
    stream = FieldStream()
    assert stream.feed('{"reasoning": "fi') == [("reasoning", "fi")]
    assert stream.feed('ne", "mess') == [("reasoning", "ne")]
    assert stream.feed('age": "a') == [("message", "a")]
    assert stream.feed("\\") == []
    assert stream.feed('nb"}') == [("message", "\nb")]
    assert stream.feed(" and more") == []


@pytest.mark.parametrize("name", CODE)
def test_however_a_code_reply_is_cut_it_is_shown_alike(name):
    reply = CODE[name][0]
    whole = grown(CodeStream(), [reply])
    for pieces in cuts(reply):
        assert grown(CodeStream(), pieces) == whole


@pytest.mark.parametrize(
    "name", ["thought and code", "no language", "tildes", "never closed", "words after", "as JSON"]
)
def test_what_is_shown_of_a_code_reply_is_what_is_read(name):
    reply, thought, code = CODE[name]
    shown = grown(CodeStream(), cuts(reply).__next__())
    assert shown.get("thought", "").strip() == thought
    assert shown["reply_content"].strip() == code


THOUGHTS = {
    "Magistral": "[THINK]{}[/THINK]{}",
    "Seed-OSS": "<seed:think>{}</seed:think>{}",
    "Kimi": "◁think▷{}◁/think▷\n{}",
    "OpenThinker": "<|begin_of_thought|>{}<|end_of_thought|>\n{}",
    "MedGemma": "<unused94>thought\n{}<unused95>{}",
    "gpt-oss": "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>{}<|return|>",
    "gpt-oss with a format": "<|channel|>analysis<|message|>{}<|end|><|channel|>final <|constrain|>json<|message|>{}",
    "gpt-oss without its tokens": "analysis{}assistantfinal{}",
}
EARLY = {"reflection": "<reflection>{}</reflection>\n{}", "analysis": "<analysis>\n{}\n</analysis>\n\n{}"}
USUAL = {"Qwen": "<think>\n{}\n</think>\n\n{}", "only their end": "{}\n</think>\n\n{}"}
DRAFT = '{"message": "draft", "stop": "Completed", "n": 1}'


@pytest.mark.parametrize("form", {**THOUGHTS, **EARLY, **USUAL}.values(), ids={**THOUGHTS, **EARLY, **USUAL})
def test_a_draft_in_a_thought_is_no_reply_whatever_a_template_calls_it(form):
    assert read_object(form.format(f"Maybe {DRAFT}, no.", '{"message": "hi"}')) == {"message": "hi"}
    code = read_code(form.format("Maybe\n```python\nprint('draft')\n```\nno.", "```python\nprint('real')\n```"))
    assert code == CodeReply("", "print('real')")


@pytest.mark.parametrize("name", [*THOUGHTS][:7])
def test_a_draft_in_a_thought_is_not_shown_however_it_is_cut(name):
    reply = THOUGHTS[name].format(f"Maybe {DRAFT}, no.", '{"message": "hi"}')
    for pieces in cuts(reply):
        assert grown(FieldStream(), pieces) == {"message": "hi"}


@pytest.mark.parametrize("form", {**THOUGHTS, **USUAL}.values(), ids={**THOUGHTS, **USUAL})
def test_words_are_given_on_without_thoughts(form):
    assert without_thoughts(form.format("6*7 is 42.", "It is 42.")) == "It is 42."
    nothing_else = form.format("6*7 is 42.", "")
    assert without_thoughts(nothing_else) == nothing_else


@pytest.mark.parametrize(
    "text",
    [
        "It is 42.",
        "<think>never closed",
        "<analysis>a</analysis>\n<verdict>b</verdict>",
        "<reasoning>a</reasoning> b",
        '{"message": "write </think>\n after it"}',
        "Write:\n```\n</think>\n```\nThat ends it.",
        "The tag </think> ends a thought.",
        "analysis of variance: assistants differ",
        "Use `[THINK]` and `[/THINK]` around it.",
    ],
)
def test_text_that_only_speaks_of_thoughts_stays_as_it_is(text):
    assert without_thoughts(text) == text


def test_tags_of_thoughts_that_are_data_stay():
    for words in ("So:\n```xml\n<analysis>a</analysis>\n```", "<analysis>a</analysis>"):
        assert read_code(words) == CodeReply(words, None)
    assert read_object('{"message": "[THINK]a[/THINK] b"}') == {"message": "[THINK]a[/THINK] b"}


def test_code_is_shown_while_its_line_still_grows_and_a_fence_never():
    stream = CodeStream()
    assert stream.feed("I a") == [("thought", "I a")]
    assert stream.feed("dd.\n``") == [("thought", "dd.\n")]
    assert stream.feed("`python\nprint(") == [("reply_content", "print(")]
    assert stream.feed("1)\n`") == [("reply_content", "1)\n")]
    assert stream.feed("``\nDone.") == [("thought", "Done.")]


BROKEN_BRACKET = "import pandas as pd\nprint('Days:', len([1])\nprint('Mean of high days:', 2)"
BROKEN_AT_AN_END = (
    "x = f()\nassert x > 0, 'it's wrong'",
    "df = df.drop_duplicates(\nprint(len(df))",
    "import pandas as pd\nprint 1",
)
PRINTED = ("1", "Mean: 4", "Total 5 rows", "   a  b\n0  1  2", "[1, 2]", "'text'", "2024-01-05 12:30")
IN_JSON = ('{"thought": "A.", "code": %s}', '{"thought": "A.", "reply_content": %s}')
OF_A_MAGIC = ("%%bash\nls -la\nfor f in *; do echo $f; done", "%%writefile a.txt\nHello there\nsecond line")
BROKEN_QUOTES = 'import pandas as pd\ndf = pd.DataFrame({"x": [1]})\nprint(f"n "{df["x"]}")\ntop = df.head()'


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (
            "I add.\nimport math\nprint(math.pi)\nThis prints pi.\nIt is known.\nAsk me more.",
            "import math\nprint(math.pi)",
        ),
        ("import math\nprint(math.pi)\n" + "This prints pi.\n" * 5, "import math\nprint(math.pi)"),
        ("Why?\nBecause.\nSo.\nimport math\nprint(math.pi)\nThis prints pi.\nIt is known.", None),
        ('{"reply_type": "text", "reply_content": "I add."}\n```python\n1 + 1\n```', "1 + 1"),
        ('{"reply_type": "text", "reply_content": "I add."}\nThe code:\n\n```python\n1 + 1\n```\nDone.', "1 + 1"),
        ('{"reply_type": "text", "reply_content": "Write ```python, then code."}', None),
        ('{"reply_type": "text", "reply_content": "I add."}', None),
        *[
            (form.format(code), code)
            for code in (BROKEN_BRACKET, BROKEN_QUOTES, "import math\nprint(math.pi\nfor one in (1, 2)\n    print(one)")
            for form in ("```python\n{}\n```", "I count.\n```python\n{}\n```", "I count.\n```python\n{}", "{}")
        ],
        (json.dumps({"thought": "I count.", "code": BROKEN_BRACKET}), BROKEN_BRACKET),
        *[(f"```python\n{code}\n```{rest}", code) for code in BROKEN_AT_AN_END for rest in ("", "\nDone.")],
        *[(form % json.dumps(code), code) for code in BROKEN_AT_AN_END for form in IN_JSON],
        *[(form.format(code), code) for code in OF_A_MAGIC for form in ("```python\n{}\n```", "```python\n{}", "{}")],
        *[(f"```\nx = 1\nprint(x)\n```\nOutput:\n```\n{one}\n```", "x = 1\nprint(x)") for one in PRINTED],
        *[(f"The result:\n```\n{one}\n```", None) for one in PRINTED],
        *[(f"So:\n```\n{one}\n```", one) for one in ("df", "6 * 7", "x = (1", "print(x", "%%bash\nls -la", "f'{x}'")],
        ("```\nx = 1\n```\nThen:\n```\nx\n```", "x = 1\n\nx"),
        (f"I count.\n{BROKEN_AT_AN_END[1]}", BROKEN_AT_AN_END[1]),
        ("Mean (in EUR) of all rows, as asked:\nimport math\nprint(math.pi)", "import math\nprint(math.pi)"),
    ],
)
def test_code_with_prose_behind_it_and_behind_an_object_is_found(reply, code):
    assert read_code(reply).code == code
