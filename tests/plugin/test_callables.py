import pandas as pd
import pytest
from pydantic import BaseModel

from tw_autogen.errors import ConfigError, PluginSpecError
from tw_autogen.plugin import HostPlugin, Parameter, callable_plugin, find_plugins


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


def test_an_async_function_is_run_to_its_end(tmp_path):
    async def fetch(word: str) -> str:
        """Fetch a word."""
        return word * 2

    with HostPlugin(callable_plugin(fetch), folder=tmp_path) as plugin:
        assert plugin("ab") == "abab"


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
        (lambda a: a, {"name": "f"}, "say in a docstring"),
        (lambda *a: a, {"name": "f", "description": "d"}, r"`\*a` says nothing to a model"),
        (look_up, {"name": "class"}, "'class' can't be"),
    ],
)
def test_what_can_be_no_plugin_is_refused_before_anything_runs(function, more, message):
    with pytest.raises(ConfigError, match=message):
        callable_plugin(function, **more)


def test_two_of_the_same_name_are_refused():
    with pytest.raises(PluginSpecError, match="already, from Python"):
        find_plugins([callable_plugin(look_up), callable_plugin(look_up)], shipped=None)
