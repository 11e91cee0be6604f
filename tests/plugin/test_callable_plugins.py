import datetime
import functools
import inspect
import json
import re
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel

from tw_autogen.errors import ConfigError, PluginSpecError
from tw_autogen.plugin import HostPlugin, Parameter, PluginSpec, callable_plugin, find_plugins
from tw_autogen.plugin.plugin_finder import check_source


class Price(BaseModel):
    """What a look-up gives."""

    amount: float
    currency: str = "EUR"


def look_up(product: str, years: list[int], rate: float = 1.5) -> pd.DataFrame:
    """Look up prices of a product
    by year.

    Not for the model.
    """
    return pd.DataFrame({"year": years, "price": [rate] * len(years)})


def test_name_description_and_parameters_come_from_the_function():
    spec = callable_plugin(look_up)

    assert spec.stub() == (
        "def look_up(product: str, years: list[int], rate: float = 1.5) -> DataFrame:\n"
        '    """Look up prices of a product by year."""'
    )
    assert spec.runs_in == "host"


def test_what_is_given_counts_more_than_the_function():
    spec = callable_plugin(
        lambda *args: args,
        name="ask",
        description="Ask.",
        parameters={"question": "str"},
        returns=[Parameter("answer", "str", description="in words")],
    )

    assert spec.line() == "- ask(question: str): Ask."
    assert "returns answer: in words" in spec.stub()


def test_it_is_called_in_this_process(tmp_path):
    with HostPlugin(callable_plugin(look_up), folder=tmp_path) as plugin:
        assert plugin("bolt", [2025, 2026])["price"].tolist() == [1.5, 1.5]


def test_a_text_is_no_table_and_no_path(tmp_path):
    def label(text: str, more: list[str] | None = None, path: Path | None = None, *, rate: float = 1.0) -> str:
        """Label."""
        return repr((text, more, path, rate))

    with HostPlugin(callable_plugin(label), folder=tmp_path) as plugin:
        assert plugin(Path("/a"), [Path("/b")], Path("/c"), rate=2) == repr(("/a", ["/b"], Path("/c"), 2))
        for given in (pd.Series(["a"]), pd.DataFrame({"a": [1]}), np.array(["a"])):
            for args, named in (([given], {}), ([], {"text": given})):
                with pytest.raises(TypeError, match=f"text: expected str, got {type(given).__name__}"):
                    plugin(*args, **named)


@pytest.mark.parametrize(
    ("kind", "given", "fits"),
    [
        (float, "12", False),
        (int, "", False),
        (bool, "False", False),
        (list, "abc", False),
        (list[str], "abc", False),
        (dict[str, int], '{"a": 1}', False),
        (int | None, "3", False),
        (list[float] | None, "3", False),
        (set[str], "abc", False),
        (float, 12, True),
        (float, np.float64(1.5), True),
        (int | None, None, True),
        (list[str], ["a"], True),
        (list[str], ("a", "b"), True),
        (str, "12", True),
        (int | str, "12", True),
        (list[str] | str, "abc", True),
        (Literal["a", "b"], "a", True),
        (Any, "12", True),
        (inspect.Parameter.empty, "12", True),
        (datetime.date, "2026-01-01", True),
    ],
)
def test_a_number_or_a_list_is_no_text(tmp_path, kind, given, fits):
    def note(value):
        """Note it."""
        return repr(value)

    parameter = inspect.Parameter("value", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=kind)
    note.__signature__ = inspect.Signature([parameter])
    with HostPlugin(callable_plugin(note), folder=tmp_path) as plugin:
        for args, named in (([given], {}), ([], {"value": given})):
            if fits:
                assert plugin(*args, **named) == repr(given)
            else:
                with pytest.raises(TypeError, match=rf"value: expected .*, got str: {re.escape(repr(given))}"):
                    plugin(*args, **named)


def test_a_call_gives_no_parameter_that_is_not_listed(tmp_path):
    spec = callable_plugin(lambda name, folder="own": folder, name="read", description="d", parameters={"name": "str"})

    with HostPlugin(spec, folder=tmp_path) as plugin:
        assert plugin("a") == plugin(name="a") == "own"
        for args, named in ((("a", "other"), {}), (("a",), {"folder": "other"})):
            with pytest.raises(TypeError, match="it takes name, and nothing else"):
                plugin(*args, **named)


def test_an_async_function_is_run_to_its_end(tmp_path):
    async def fetch(word: str) -> str:
        """Fetch a word."""
        return word * 2

    with HostPlugin(callable_plugin(fetch), folder=tmp_path) as plugin:
        assert plugin("ab") == "abab"


def test_whatever_gives_something_to_await_is_run_to_its_end(tmp_path):
    async def fetch(word, times):
        return word * times

    class Fetcher:
        """Fetches."""

        async def __call__(self, word: str) -> str:
            return await fetch(word, 2)

    twice = functools.partial(fetch, times=2)
    for one in (Fetcher(), lambda word: fetch(word, 2), lambda word: twice(word)):
        with HostPlugin(callable_plugin(one, name="fetch", description="d"), folder=tmp_path) as plugin:
            assert plugin("ab") == "abab"


def test_a_partial_function_is_described_by_the_function_in_it():
    spec = callable_plugin(functools.partial(look_up, rate=2.0))

    assert spec.stub().startswith("def look_up(product: str, years: list[int], *, rate: float = 2.0) -> DataFrame:")
    assert "Look up prices" in spec.stub()


def test_a_parameter_is_given_by_its_type_or_in_words():
    spec = callable_plugin(
        lambda table, kind, days, note: None,
        name="plan",
        description="Plan.",
        parameters={"table": pd.DataFrame, "kind": "Literal['a', 'b'] | None", "days": "int", "note": "what to mind"},
        returns={"plan": "a line for each day"},
    )

    assert spec.stub().splitlines() == [
        "def plan(table: DataFrame, kind: Literal['a', 'b'] | None, days: int, note: Any) -> Any:",
        '    """Plan.',
        "    note: what to mind",
        "    returns plan: a line for each day",
        '    """',
    ]


@pytest.mark.parametrize("words", ["half a pair \ud800", "-" * 100_000 + "1"])
def test_words_that_cannot_be_parsed_describe_a_parameter(words):
    (found,) = callable_plugin(lambda n: None, name="f", description="d", parameters={"n": words}).parameters

    assert (found.type, found.description) == ("Any", words)


@pytest.mark.parametrize("shown", ["no Python", "{[1]: 2}", None])
def test_a_default_that_cannot_be_written_down_is_known_to_be_there(shown):
    class Default:
        def __repr__(self):
            if shown is None:
                raise RuntimeError("no words for it")
            return shown

    def look(n=Default()):  # noqa: B008 - its value is the point
        """Look."""

    assert callable_plugin(look).stub().startswith("def look(n: Any = ...) -> Any:")


def test_types_are_spelled_without_modules_and_defaults_as_far_as_they_can_be_written_down():
    class Color:
        pass

    red = Color()

    def paint(a: int | pd.DataFrame, b: dict[str, pd.Series], c: Literal["x.y"] = "x.y", d: Color = red) -> None:
        """Paint."""

    assert callable_plugin(paint).stub().splitlines()[0] == (
        "def paint(a: int | DataFrame, b: dict[str, Series], c: Literal['x.y'] = 'x.y', d: Color = ...) -> None:"
    )


@pytest.mark.parametrize("given", [{"amount": 9.5}, '{"amount": 9.5}', Price(amount=9.5)])
def test_a_result_is_checked_against_a_pydantic_model(tmp_path, given):
    spec = callable_plugin(lambda: given, name="price", description="Price.", parameters=(), returns=Price)
    with HostPlugin(spec, folder=tmp_path) as plugin:
        assert plugin() == {"amount": 9.5, "currency": "EUR"}
    assert "{'amount': float, 'currency': str}" in spec.stub()


def test_a_result_that_does_not_fit_says_field_by_field_why(tmp_path):
    spec = callable_plugin(lambda: {"amount": "much"}, name="price", description="Price.", parameters=(), returns=Price)
    with HostPlugin(spec, folder=tmp_path) as plugin, pytest.raises(ValueError, match="no Price: amount: Input should"):
        plugin()


@pytest.mark.parametrize(
    ("function", "more", "message"),
    [
        (lambda a: a, {}, r"'<lambda>' can't be a function's name"),
        (sum, {}, r"'sum' can't be a function's name: it would hide Python's own 'sum'; call it 'sum_'"),
        (look_up, {"name": "print"}, r"'print' can't be a function's name: .* give one with name="),
        (lambda a: a, {"name": "f"}, "say in a docstring"),
        (lambda *a: a, {"name": "f", "description": "d"}, r"`\*a` says nothing to a model"),
        (look_up, {"name": "class"}, "'class' can't be"),
        (look_up, {"parameters": {"item": "str"}}, r"lists item, but the function takes \(product: .*missing"),
        (look_up, {"parameters": {"1st": "str"}}, "'1st' can't be a parameter's name"),
        (look_up, {"parameters": [Parameter("a"), Parameter("a")]}, "or stands there twice"),
        (look_up, {"calls": 0}, "calls=0 would allow nothing"),
        (look_up, {"seconds": -1.0}, "seconds=-1.0 would allow nothing"),
    ],
)
def test_what_can_be_no_plugin_is_refused_before_anything_runs(function, more, message):
    with pytest.raises(ConfigError, match=message):
        callable_plugin(function, **more)


def test_two_of_the_same_name_are_refused():
    with pytest.raises(PluginSpecError, match="already, from Python"):
        find_plugins([callable_plugin(look_up), callable_plugin(look_up)], shipped=None)


def test_one_that_knows_the_session_gets_its_context(tmp_path):
    def connect(context):
        def save(text):
            return context.add_artifact("note", "note.txt", "txt", text)

        return save

    kept = []
    spec = PluginSpec("save", "Save.", (Parameter("text", "str", required=True),), connect=connect)
    with HostPlugin(spec, folder=tmp_path, on_artifact=kept.append) as plugin:
        assert plugin("hello") == "note.txt"

    assert [(one.name, one.path) for one in kept] == [("note", tmp_path.resolve() / "note.txt")]
    assert spec.runs_in == "host"
    assert check_source(spec) is spec
    assert find_plugins([spec, spec], shipped=None) == (spec,)


def test_a_checked_result_is_of_json_values(tmp_path):
    class Days(BaseModel):
        """Days, by name."""

        days: dict[str, tuple[int, ...]]

    spec = callable_plugin(lambda: Days(days={"a": (1, 2)}), name="days", description="d", returns=Days)
    with HostPlugin(spec, folder=tmp_path) as plugin:
        assert json.dumps(plugin()) == '{"days": {"a": [1, 2]}}'
