from pathlib import Path

import pytest

from tw_autogen.errors import PluginSpecError
from tw_autogen.plugin import Parameter, PluginSpec
from tw_autogen.plugin.spec import NO_DEFAULT, read_spec


@pytest.fixture
def written(tmp_path):
    def write(text: str) -> Path:
        path = tmp_path / "sales.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


HEAD = "name: sales\ndescription: d\n"


def test_a_yaml_of_taskweaver_is_read_whole(written):
    path = written(
        """
name: sales
enabled: false
required: true
plugin_only: true
description: >-
  Sales of one shop.
  In euros.
examples: |-
  total, note = sales("north")
code: shop_figures
parameters:
  - name: shop
    type: str
    required: true
    description: name of the shop
  - name: day
    description:
returns:
  - name: total
    type: float
    description: sum
configurations:
  api_key:
  rounds: 3
"""
    )

    spec = read_spec(path)

    assert spec == PluginSpec(
        name="sales",
        description="Sales of one shop. In euros.",
        parameters=(Parameter("shop", "str", True, "name of the shop"), Parameter("day", "Any", False, "")),
        returns=(Parameter("total", "float", False, "sum"),),
        enabled=False,
        required=True,
        plugin_only=True,
        code="shop_figures",
        examples='total, note = sales("north")',
        configurations={"api_key": None, "rounds": 3},
        runs_in="kernel",
        path=path,
    )
    assert spec.source() == path.parent / "shop_figures.py"


def test_what_is_left_out_has_taskweavers_defaults(written):
    spec = read_spec(written(f"{HEAD}configurations:\nparameters:\n"))

    assert (spec.enabled, spec.required, spec.plugin_only, spec.runs_in) == (True, False, False, "kernel")
    assert (spec.code, spec.examples, spec.configurations, spec.parameters) == ("sales", "", {}, ())


def test_a_default_of_null_is_none_and_no_default_is_no_default(written):
    spec = read_spec(written(f"{HEAD}parameters: [{{name: a, default: null}}, {{name: b}}]\n"))

    assert spec.parameters[0].default is None
    assert spec.parameters[1].default is NO_DEFAULT


def test_a_loadable_brings_the_source_the_settings_and_the_path(written):
    path = written(f"{HEAD}configurations: {{k: 1}}\n")
    source = path.with_suffix(".py")
    source.write_text("x = 'ä'\n", encoding="utf-8")

    loadable = read_spec(path).loadable()

    assert (loadable.name, loadable.source, loadable.path) == ("sales", "x = 'ä'\n", source)
    assert loadable.settings == {"k": 1}


def test_a_spec_without_a_file_has_no_source():
    with pytest.raises(ValueError, match="plugin 'sales' was not read from a file"):
        PluginSpec("sales", "d").source()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{HEAD}paramters: []", r"sales\.yaml: unknown key 'paramters'; did you mean 'parameters'\?$"),
        (f"{HEAD}7: x", r"sales\.yaml: unknown key 7; known: 'calls', 'code'"),
        (
            f"{HEAD}parameters: [{{name: a, by: keywords}}]",
            r"parameters\[1\]\.by: expected position or keyword",
        ),
        (f"{HEAD}parameters: [{{name: a, typ: str}}]", r"parameters\[1\]: unknown key 'typ'; did you mean 'type'\?"),
        ("description: d", r"sales\.yaml: missing key 'name'$"),
        ("name: sales\ndescription:", r"sales\.yaml: missing key 'description'$"),
        (f"{HEAD}returns: [{{type: str}}]", r"returns\[1\]: missing key 'name'"),
        (f"{HEAD}enabled: 'no'", r"enabled: expected true or false, found 'no' \(str\)"),
        (f"{HEAD}parameters: {{name: a}}", r"parameters: expected a list, found \{'name': 'a'\} \(dict\)"),
        (f"{HEAD}parameters: [a]", r"parameters\[1\]: expected keys and values, found str"),
        (f"{HEAD}configurations: [a]", r"configurations: expected keys and values, found \['a'\] \(list\)"),
        ("name: 5\ndescription: d", r"name: expected text, found 5 \(int\)"),
        ("name: pull-data\ndescription: d", r"name: 'pull-data' cannot be a name in Python"),
        ("name: print\ndescription: d", r"name: it would hide Python's own 'print'; call it 'print_'"),
        ("name: lambda\ndescription: d", r"name: 'lambda' cannot be a name in Python"),
        (f"{HEAD}parameters: [{{name: a b}}]", r"parameters\[1\]\.name: 'a b' cannot be a name"),
        (f"{HEAD}parameters: [{{name: a}}, {{name: a}}]", r"parameters\[2\]: 'a' stands there twice"),
        (f"{HEAD}parameters: [{{name: a, required: true, default: 1}}]", r"'a' is required and has a default"),
        (f"{HEAD}code: ../lib/impl", r"code: expected the name of a file beside this one, found '\.\./lib/impl'"),
        (f"{HEAD}code: /tmp/impl", "code: expected the name of a file beside this one"),
        (f"{HEAD}code: lib\\impl", "code: expected the name of a file beside this one"),
        (f"{HEAD}runs_in: cloud", r"runs_in: expected 'kernel' or 'host', found 'cloud'"),
        (f"{HEAD}calls: 0", "calls=0 would allow nothing; leave it out for no limit"),
        (f"{HEAD}calls: true", "calls: expected a whole number, found True"),
        (f"{HEAD}seconds: .nan", "seconds=nan would allow nothing"),
        (f"{HEAD}configurations: {{since: 2026-01-01}}", "configurations: .* date .* put it in quotes"),
        ("- name: sales", r"sales\.yaml: expected keys and values, found list"),
        ("", r"sales\.yaml: expected keys and values, found NoneType"),
        ("name: sales\n\tdescription: d", r"sales\.yaml:2: not YAML: "),
    ],
)
def test_what_is_wrong_is_said_with_file_and_place(written, text, message):
    path = written(text)

    with pytest.raises(PluginSpecError, match=message) as caught:
        read_spec(path)

    assert caught.value.path == path


def test_a_missing_file_is_an_error_with_its_path(tmp_path):
    with pytest.raises(PluginSpecError, match=r"none\.yaml: there is no such file"):
        read_spec(tmp_path / "none.yaml")


def test_bytes_that_are_no_text_are_an_error_with_the_path(tmp_path):
    path = tmp_path / "sales.yaml"
    path.write_bytes(b"name: \xff\xfe")

    with pytest.raises(PluginSpecError, match=r"sales\.yaml: not UTF-8 text"):
        read_spec(path)
