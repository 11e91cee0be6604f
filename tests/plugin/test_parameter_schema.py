import pytest

from tw_autogen.plugin import Parameter, PluginSpec
from tw_autogen.plugin.parameter_schema import check_arguments, json_schema


def spec(*parameters):
    return PluginSpec("f", "Do something.", parameters)


@pytest.mark.parametrize(
    ("words", "schema"),
    [
        ("str", {"type": "string"}),
        ("string", {"type": "string"}),
        ("int", {"type": "integer"}),
        ("number", {"type": "number"}),
        ("bool", {"type": "boolean"}),
        ("list[str]", {"type": "array", "items": {"type": "string"}}),
        ("List[int]", {"type": "array", "items": {"type": "integer"}}),
        ("dict[str, float]", {"type": "object", "additionalProperties": {"type": "number"}}),
        ("tuple[int, int]", {"type": "array", "items": {"type": "integer"}}),
        ("int | None", {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        ("Optional[str]", {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ("Literal['a', 'b']", {"type": "string", "enum": ["a", "b"]}),
        ("Any", {}),
        ("object", {}),
    ],
)
def test_a_type_becomes_its_schema(words, schema):
    assert json_schema(spec(Parameter("x", words, required=True)))["properties"]["x"] == schema


def test_words_that_spell_no_type_stand_in_the_description():
    given = json_schema(spec(Parameter("x", "a colour name", required=True, description="of the line")))

    assert given["properties"]["x"] == {"description": "of the line; type: a colour name"}


@pytest.mark.parametrize("words", ["DataFrame", "pd.DataFrame", "pandas.Series", "DataFrame | None"])
def test_a_table_is_the_name_of_a_file(words):
    given = json_schema(spec(Parameter("df", words, required=True)))["properties"]["df"]

    assert "string" in str(given)
    assert "name of a CSV, Parquet or JSON file" in given["description"]


def test_required_parameters_and_defaults_are_told():
    given = json_schema(spec(Parameter("a", "str", required=True), Parameter("b", "int", default=3)))

    assert given["required"] == ["a"]
    assert given["properties"]["b"] == {"type": "integer", "default": 3}
    assert given["additionalProperties"] is False


def test_a_plugin_without_parameters_takes_an_empty_object():
    assert json_schema(spec()) == {"type": "object", "properties": {}, "additionalProperties": False}


def test_arguments_get_the_type_that_the_spec_says():
    checked = check_arguments(spec(Parameter("n", "int", required=True), Parameter("x", "float")), {"n": "3"})

    assert checked == {"n": 3}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "f: n: Field required. Its arguments: n"),
        ({"n": "many"}, "f: n: Input should be a valid integer"),
        ({"n": 1, "m": 2}, "f: m: Extra inputs are not permitted"),
    ],
)
def test_wrong_arguments_are_told_in_words(given, message):
    with pytest.raises(ValueError, match=message):
        check_arguments(spec(Parameter("n", "int", required=True)), given)


@pytest.mark.parametrize("name", ["_limit", "model_config", "model_fields_set", "schema", "self"])
def test_a_parameter_may_have_any_name(name):
    named = spec(Parameter(name, "int", required=True), Parameter("f0", "str"))

    assert json_schema(named)["properties"][name] == {"type": "integer"}
    assert check_arguments(named, {name: "3", "f0": "a"}) == {name: 3, "f0": "a"}


def test_nothing_in_a_type_is_evaluated():
    assert json_schema(spec(Parameter("x", "__import__('os').getcwd()", required=True)))["properties"]["x"] == {
        "description": "type: __import__('os').getcwd()"
    }


@pytest.mark.parametrize(
    ("words", "arguments"),
    [("float", {}), ("a colour name", {}), ("float | None", {"x": None}), ("Any", {"x": None})],
)
def test_a_null_for_an_optional_argument_that_cannot_be_none_counts_as_left_out(words, arguments):
    unknown = spec(Parameter("x", words))

    assert check_arguments(unknown, {"x": None}) == arguments
    assert "default" not in json_schema(unknown)["properties"]["x"]
    assert check_arguments(spec(Parameter("x", words, default=None)), {"x": None}) == {"x": None}
    assert check_arguments(spec(Parameter("x", words, default=0.5)), {"x": None}) == arguments
