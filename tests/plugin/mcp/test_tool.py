"""What a tool of an MCP server looks like to a model, whatever its schema, and what its answers become in code."""

import base64
import builtins
import datetime
import decimal
import keyword
import threading
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from tw_autogen.kernel.guest import PluginContext
from tw_autogen.plugin.host_plugin import HostPlugin
from tw_autogen.plugin.mcp.call_gate import Gate
from tw_autogen.plugin.mcp.config import McpServer
from tw_autogen.plugin.mcp.python_names import tool_names
from tw_autogen.plugin.mcp.tool import tool_spec
from tw_autogen.plugin.schema_types import Schema

TREE = {
    "$defs": {"Node": {"type": "object", "properties": {"left": {"$ref": "#/$defs/Node"}, "x": {"type": "integer"}}}},
    "$ref": "#/$defs/Node",
}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "str"),
        ({"type": ["integer", "null"]}, "int | None"),
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, "str | None"),
        ({"oneOf": [{"type": "integer"}, {"type": "integer"}]}, "int"),
        ({"enum": ["a", "b", 3]}, "Literal['a', 'b', 3]"),
        ({"enum": list(map(str, range(99)))}, "str"),
        ({"enum": [1.5]}, "Any"),
        ({"const": "x"}, "Literal['x']"),
        ({"type": "array"}, "list"),
        ({"type": "array", "items": {"$ref": "#/$defs/none"}}, "list"),
        ({"items": {"type": "array", "items": {"type": "number"}}}, "list[list[float]]"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "dict[str, float]"),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "number"}}, "dict"),
        ({"allOf": [{"type": "string"}, {"description": "d"}]}, "str"),
        (TREE, "dict"),
        ({"$ref": "#"}, "Any"),
        ({"$ref": "https://elsewhere.test/x.json"}, "Any"),
        (True, "Any"),
        (None, "Any"),
        ({"type": "quaternion"}, "Any"),
        ({"properties": ["no", "mapping"], "required": "x"}, "dict"),
        ({"type": "array", "items": [{"type": "string"}]}, "list"),
    ],
)
def test_a_schema_becomes_pythons_word_for_it(schema, words):
    assert Schema(schema).type() == words


def test_the_keys_of_nested_objects_are_told_and_recursion_ends():
    nested = {
        "type": "array",
        "items": {
            "properties": {"to": {"properties": {"zip": {"type": "string"}}, "required": ["zip"]}, "n": TREE["$defs"]}
        },
    }

    assert Schema(nested).shape() == "[{'to'?: {'zip': str}, 'n'?: Any}, …]"
    assert Schema(TREE).shape() == "{'left'?: {'left'?: {'left'?: dict, 'x'?: int}, 'x'?: int}, 'x'?: int}"


def spec(input_schema=None, call=None, **more):
    tool = {"name": "do", "description": "Do it.", "inputSchema": input_schema or {"type": "object"}, **more}
    gate = Gate(McpServer("s"), tool, approval="never", approve=None, asking=threading.Lock())
    return tool_spec(tool, server="s", name="do", call=call or (lambda arguments, tell: {}), seconds=5, gate=gate)


def test_parameters_that_python_cannot_have_get_a_name_and_travel_under_their_own(tmp_path):
    sent = []
    properties = {"max-results": {"type": "integer", "default": 5}, "class": {}, "class_": {}, "2d": {}, "from": {}}
    made = spec(
        {"type": "object", "properties": properties, "required": ["from"]},
        lambda arguments, tell: sent.append(arguments) or {"content": []},
    )

    made.connect(PluginContext(tmp_path))("a", 7, class_=1, class__2=2, argument_2d=3)

    assert sent == [{"from": "a", "max-results": 7, "class": 1, "class_": 2, "2d": 3}]
    compile(made.stub(), "stub", "exec")
    assert "max_results: int = 5" in made.stub()
    assert "from_: (the server calls it 'from')" in made.stub()


def test_a_call_that_cannot_be_right_is_refused_before_the_server_is_asked(tmp_path):
    function = spec({"properties": {"city": {}}, "required": ["city"]}).connect(PluginContext(tmp_path))

    with pytest.raises(TypeError, match="do: missing city"):
        function()
    with pytest.raises(TypeError, match=r"do: got an unexpected keyword argument 'town'. Its arguments: city"):
        function(town="Rome")


@pytest.mark.parametrize(
    "value", [np.zeros((12_000_000, 0)), pd.DataFrame(index=range(2_000_000)), pd.Series(range(1_000_001))]
)
def test_a_table_that_stands_for_very_many_values_is_refused(value, tmp_path):
    function = spec({"properties": {"rows": {}}}).connect(PluginContext(tmp_path))

    with pytest.raises(TypeError, match=r"more than 1,000,000 values is too large for a tool; pass fewer"):
        function(rows=value)


def test_tables_whose_texts_are_endless_are_refused_before_they_are_made(tmp_path):
    function = spec({"properties": {"rows": {}, "more": {}}}).connect(PluginContext(tmp_path))
    few = pd.DataFrame({"a": pd.Categorical.from_codes([0] * 500_000, ["x" * 1_000_000])})
    tracemalloc.start()

    coded = pd.Series(pd.Categorical(["x" * 1_000_000] * 2))
    long = pd.DataFrame({"n": range(500_000)}, index=few["a"].values)
    longer = pd.DataFrame({"n": range(100)}, index=pd.MultiIndex.from_product([["x" * 1_000_000], range(100)]))
    assert function(rows=coded) is not None
    for rows in (few, {"nested": [few["a"]]}, pd.DataFrame({"x" * 1_000_000: range(500)}), long, longer):
        with pytest.raises(TypeError, match=r"more than 64,000,000 characters are too long for a tool; pass fewer"):
            function(rows=rows)
    with pytest.raises(TypeError, match=r"more than 1,000,000 values is too large for a tool"):
        function(rows=pd.DataFrame({"a": range(600_000)}), more=pd.DataFrame({"a": range(600_000)}))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert most < 500_000_000


ARGUMENTS = {
    "any names": ({"type": "object", "additionalProperties": {"type": "string"}}, {"city": "Bonn", "from": 1}),
    "one of two sets": (
        {"oneOf": [{"properties": {"city": {}}, "required": ["city"]}, {"properties": {"zip": {}, "city": {}}}]},
        {"city": "Bonn", "zip": 53111},
    ),
    "a name of Python's own": ({"properties": {"self": {"type": "boolean"}}}, {"self": True}),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_arguments_reach_a_tool_whose_schema_does_not_list_them_or_names_them_oddly(tmp_path, case):
    schema, given = ARGUMENTS[case]
    sent = {}
    made = spec(schema, lambda arguments, tell: sent.update(arguments) or {})

    HostPlugin(made, folder=tmp_path)(**given)

    assert sent == given
    assert ("It takes other keyword arguments, too." in made.stub()) is (case == "any names")


def test_names_of_two_servers_of_other_plugins_and_of_python_are_kept_apart():
    tools = [("a", "search"), ("b", "search"), ("a", "open"), ("my files", "read-it"), ("a", "taken"), ("a", "lambda")]

    names = tool_names([*tools, ("c", "x.y"), ("c", "x-y"), ("c", "日本")], ["taken"])

    assert list(names.values()) == [
        *("a_search", "b_search", "a_open", "read_it", "a_taken", "lambda_", "c_x_y", "c_x_y_2", "日本"),
    ]
    assert not any(keyword.iskeyword(name) or not name.isidentifier() for name in names.values())


@pytest.mark.parametrize("name", ["__import__", "__builtins__", "_a", "call_llm_api", "get_ipython", "In", "eval"])
def test_a_reserved_name_is_never_given_to_a_tool(name):
    (given,) = tool_names([("__odd", name)]).values()

    assert given not in {name, *dir(builtins)}
    assert given.isidentifier()
    assert not given.startswith("_")


def test_values_of_pandas_and_dates_travel_as_json(tmp_path):
    sent = {}
    names = ("rows", "when", "none", "mean", "pair")
    call = lambda arguments, tell: sent.update(arguments) or {}  # noqa: E731
    function = spec({"properties": dict.fromkeys(names, {})}, call).connect(PluginContext(tmp_path))

    table = pd.DataFrame({"x": [1.5, None], "t": pd.to_datetime(["2026-01-01", None])})
    table["p"] = [0.1234567890123456, 1.2e-17]
    table["n"], table["d"] = pd.array([1, None]), [decimal.Decimal("1.5"), None]
    function(table, datetime.date(2026, 1, 2), pd.NA, float("nan"), (1, pd.Series([1, 2])))

    assert sent["rows"][0]["x"] == 1.5
    assert sent["rows"][0]["t"].startswith("2026-01-01T00:00:00")
    assert sent["rows"][0]["p"] == 0.1234567890123456
    assert sent["rows"][0]["d"] == 1.5
    assert sent["rows"][1] == {"x": None, "t": None, "p": 1.2e-17, "n": None, "d": None}
    assert (sent["when"], sent["none"], sent["mean"], sent["pair"]) == ("2026-01-02", None, None, [1, [1, 2]])
    by_city = pd.DataFrame({"city": ["Gent", "Gent", "Lier"], "units": [1, 2, 4]}).groupby("city").sum()
    function(by_city, datetime.timedelta(hours=25), np.datetime64("2026-01-02"), np.timedelta64("NaT", "s"), [])
    assert sent["rows"] == [{"city": "Gent", "units": 3}, {"city": "Lier", "units": 4}]
    assert (sent["when"], sent["none"], sent["mean"]) == ("P1DT1H", "2026-01-02", None)
    function(by_city.units, by_city.units.rename("city"), by_city.units.tolist(), *[None] * 2)
    assert sent["rows"] == [{"city": "Gent", "units": 3}, {"city": "Lier", "units": 4}]
    assert (sent["when"], sent["none"]) == ([{"city": "Gent", "value": 3}, {"city": "Lier", "value": 4}], [3, 4])
    function(table[table["x"] > 9], *[None] * 4)
    assert sent["rows"] == []
    function(pd.DataFrame({"x": [1, 2, 3]}).iloc[1:], *[None] * 4)
    assert sent["rows"] == [{"x": 2}, {"x": 3}]
    with pytest.raises(TypeError, match="a value of type object has no form in JSON"):
        function(object())


def result_of(came, tmp_path, **more):
    context = PluginContext(tmp_path)
    value = spec(call=lambda arguments, tell: came, **more).connect(context)()
    kept, logs = context.take()
    return value, kept, logs


def test_structured_content_is_a_value_and_one_that_is_only_wrapped_is_unwrapped(tmp_path):
    wrapped = {"type": "object", "properties": {"result": {"type": "array", "items": {"type": "integer"}}}}
    came = {"structuredContent": {"result": [1, 2]}, "content": [{"type": "text", "text": "1"}]}

    assert result_of(came, tmp_path, outputSchema=wrapped)[0] == [1, 2]
    assert result_of(came, tmp_path)[0] == {"result": [1, 2]}
    assert "-> list[int]:" in spec(outputSchema=wrapped).stub()


def test_pictures_sounds_and_embedded_files_are_saved_and_named_in_the_text(tmp_path):
    data = base64.b64encode(b"bytes").decode()
    came = {
        "content": [
            {"type": "text", "text": "Two files:"},
            {"type": "image", "data": data, "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "file:///a/../x%20y.bin", "blob": data}},
            {"type": "audio", "data": "%%%", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "note://1", "text": "a note"}},
            {"type": "resource_link", "uri": "db://t", "name": "table"},
        ]
    }

    value, kept, logs = result_of(came, tmp_path)

    assert value.splitlines() == [
        *("Two files:", "a note", "[table: db://t]", "[image/png saved as do.png]"),
        "[application/octet-stream saved as x_y.bin]",
    ]
    assert [(one.kind, one.path.read_bytes()) for one in kept] == [("image", b"bytes"), ("file", b"bytes")]
    assert logs == [("warning", "do", "a block of audio/wav is not base64, and was left out")]


def test_what_is_long_is_kept_as_a_file_too_and_reaches_code_whole(tmp_path):
    value, (kept,), _ = result_of({"content": [{"type": "text", "text": "x" * 200_000}]}, tmp_path)

    assert value == kept.path.read_text() == "x" * 200_000
    assert kept.path.name == "do.txt"

    value, (kept,), _ = result_of({"structuredContent": {"rows": list(range(50_000))}}, tmp_path)
    assert len(value["rows"]) == 50_000
    assert kept.path.name == "do.json"


def test_a_tool_that_says_it_failed_is_an_error_with_its_words(tmp_path):
    with pytest.raises(Exception, match="no such city"):
        result_of({"isError": True, "content": [{"type": "text", "text": "no such city"}]}, tmp_path)
    with pytest.raises(Exception, match="gave no reason"):
        result_of({"isError": True}, tmp_path)
