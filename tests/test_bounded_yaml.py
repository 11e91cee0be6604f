"""YAML of a few lines stands for no more values than fit into memory."""

import pytest
import yaml

from tw_autogen import bounded_yaml

LEVELS = [(f"l{number - 1}", f"l{number}") for number in range(1, 12)]
BOMBS = {
    "aliases": "l0: &l0 [x, y]\n" + "".join(f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in LEVELS),
    "merges": "l0: &l0 {a: 1, b: 2}\n"
    + "".join(f"{new}: &{new} {{<<: [{', '.join([f'*{old}'] * 10)}]}}\n" for old, new in LEVELS),
    "aliases of a long text": f"a: &a {'x' * 20_000}\nb: [{', '.join(['*a'] * 500)}]\n",
    "merges of long texts": f"a: &a {{x: {'x' * 20_000}}}\nb: [{', '.join(['{<<: *a}'] * 500)}]\n",
    "a loop": "l0: &l0 [*l0]\n",
    "a long list": "[" + "x," * 100_001 + "]",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_what_stands_for_too_much_is_an_error_at_once(bomb, cpu_seconds):
    started = cpu_seconds()

    with pytest.raises(yaml.YAMLError, match="stands for"):
        bounded_yaml.load(BOMBS[bomb])
    assert cpu_seconds() - started < 30


def test_aliases_and_merges_of_an_ordinary_size_are_taken():
    text = "base: &base {a: 1}\nmore: {<<: *base, b: *base}\n"

    assert bounded_yaml.load(text) == {"base": {"a": 1}, "more": {"a": 1, "b": {"a": 1}}}


@pytest.mark.parametrize(
    "text",
    [
        "a: b\nc: [d, 'true', true, no, null, ~, '']\ne:\nf: {g: {}}\n",
        "a: 1\nb: 1.5\nc: 2024-01-01\nd: 0x1f\ne: off\nf: False\n",
        "1: a\ntrue: b\nnull: d\n",
        "a: -3\nb: 0\nc: 007\nd: +1\ne: '1'\nf: 1_000\ng: -0\nh: 1:30\ni: 12345678901234567890\n",
        "a: &x b\nc: ! d\n? e\n: f\n",
        "%YAML 1.1\n---\na: [b, {c: d}]\n...\n",
        "a: !!str 5\nb: !!int '5'\n",
        "a: b\na: c\n",
        "[" * 30 + "a" + "]" * 30,
        "a: |\n  b\n  c\nd: >\n  e\n  f\n",
        "",
        "just text",
    ],
)
def test_it_holds_what_yaml_says_it_holds(text):
    found = bounded_yaml.load(text)

    assert found == yaml.safe_load(text)
    assert repr(found) == repr(yaml.safe_load(text))


def test_a_text_that_is_tagged_as_keys_and_values_is_an_error():
    with pytest.raises(yaml.YAMLError, match="expected a mapping node"):
        bounded_yaml.load("a: !!map b")


@pytest.mark.parametrize("kind", ["binary aGk=", "set {d, e}", "omap [a: 1]", "pairs [a: 1]"])
def test_what_json_has_no_form_for_is_refused(kind):
    with pytest.raises(yaml.YAMLError, match=f"no value of the kind !!{kind.split()[0]} is read"):
        bounded_yaml.load(f"a: !!{kind}\n")


@pytest.mark.parametrize("most", [40, 41])
def test_as_many_brackets_are_open_as_people_write(most):
    text = f"{'[' * most}{']' * most}\n# {'[' * 1000}\n"  # so many that the slower loader reads it
    if most == 40:
        assert bounded_yaml.load(text)
    else:
        with pytest.raises(yaml.YAMLError, match="more than 40 brackets are open"):
            bounded_yaml.load(text)


def test_many_nested_brackets_take_linear_time(cpu_seconds):
    text = "[" + f"{'[' * 39}{'a,' * 380}{']' * 39}," * 40 + "]"
    started = cpu_seconds()

    with pytest.raises(yaml.YAMLError):
        bounded_yaml.load(f"x: {'[' * 250}{text}{']' * 250}")
    assert cpu_seconds() - started < 5


LONG = {
    "a list of keys": "- a: b\n  c: [d, e]\n" * 50_000,
    "keys": "".join(f"key {number}: {{a: b}}\n" for number in range(400)) + "text: '" + "x " * 500_000 + "'\n",
    "numbers": "- 1.5\n- 2024-01-01\n" * 50_000,
}


def test_a_long_document_with_an_error_at_its_end_takes_no_minutes(cpu_seconds):
    started = cpu_seconds()

    with pytest.raises(yaml.YAMLError) as raised:
        bounded_yaml.load("- a\n" * 500_000 + "]\n", enforce_limit=False)
    assert bounded_yaml.problem_of(raised.value)[1] == 500_001
    assert cpu_seconds() - started < 15


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_a_long_document_takes_as_long_as_libyaml_does(text, cpu_seconds):
    started = cpu_seconds()
    expected = yaml.load(text, yaml.CSafeLoader)
    fast = cpu_seconds() - started
    found = bounded_yaml.load(text, enforce_limit=False)

    assert cpu_seconds() - started - fast < 4 * fast + 1
    assert found == expected


@pytest.mark.parametrize("signs", ["- ", "? ", "a:"], ids=repr)
def test_deep_nesting_of_a_long_text_does_not_end_the_process(signs):
    lines = signs * 3000 if signs != "a:" else "".join(f"{' ' * depth}a:\n" for depth in range(3000))

    with pytest.raises((yaml.YAMLError, RecursionError)) as raised:
        bounded_yaml.load(f"{lines}a\n" + "#" * 200_000, enforce_limit=False)
    assert bounded_yaml.problem_of(raised.value)[0]
