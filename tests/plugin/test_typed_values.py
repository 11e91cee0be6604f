"""Functions whose annotations name models, dataclasses and enums are called with their JSON form."""

import enum
import functools
from dataclasses import dataclass, field
from typing import Annotated, Literal

import pandas as pd
import pytest
from pydantic import BaseModel, Field

from tw_autogen import open_session
from tw_autogen.plugin import HostPlugin, callable_plugin
from tw_autogen.testing import ScriptedModel

Symbol = Literal["USD", "EUR"]


class Currency(BaseModel):
    """A sum of money."""

    currency: Annotated[Symbol, Field(description="Currency symbol")]
    amount: Annotated[float, Field(default=0, ge=0)]


@dataclass
class Point:
    x: float
    y: float = 0.0
    tags: list[str] = field(default_factory=list)


class Color(enum.Enum):
    red = "r"
    blue = "b"


def convert(base: Annotated[Currency, "Base currency"], quote: Annotated[Symbol, "Quote symbol"] = "USD") -> Currency:
    """Convert a sum."""
    return Currency(amount=base.amount * 2, currency=quote)


def move(point: Point, by: float = 1.0) -> Point:
    """Move a point."""
    return Point(point.x + by, point.y, point.tags)


def paint(colors: list[Color], each: dict[str, Currency] | None = None) -> dict[str, Color]:
    """Paint."""
    assert each is None or all(isinstance(one, Currency) for one in each.values())
    return {color.name: color for color in colors}


async def later(base: Currency) -> tuple[Currency, pd.DataFrame]:
    """Wait."""
    return base, pd.DataFrame({"a": [base.amount]})


STUBS = {
    convert: [
        "def convert(base: dict, quote: Literal['USD', 'EUR'] = 'USD') -> dict:",
        '    """Convert a sum.',
        "    base: Base currency {'currency': Literal['USD', 'EUR'], 'amount'?: float}",
        "    quote: Quote symbol",
        "    returns result: {'currency': Literal['USD', 'EUR'], 'amount'?: float}",
        '    """',
    ],
    move: [
        "def move(point: dict, by: float = 1.0) -> dict:",
        '    """Move a point.',
        "    point: {'x': float, 'y'?: float, 'tags'?: list[str]}",
        "    returns result: {'x': float, 'y'?: float, 'tags'?: list[str]}",
        '    """',
    ],
    paint: [
        "def paint(colors: list[Literal['r', 'b']], each: dict[str, dict] | None = None)"
        " -> dict[str, Literal['r', 'b']]:",
        '    """Paint."""',
    ],
}


@pytest.mark.parametrize("function", STUBS)
def test_a_model_is_told_the_keys_and_values(function):
    assert callable_plugin(function).stub().splitlines() == STUBS[function]


CALLS = {
    "a model": (convert, ({"currency": "EUR", "amount": 2},), {"currency": "USD", "amount": 4.0}),
    "a dataclass": (move, ({"x": 1, "tags": ["a"]},), {"x": 2.0, "y": 0.0, "tags": ["a"]}),
    "members of an enum": (paint, (["r", "b"],), {"red": "r", "blue": "b"}),
    "models in a dictionary": (paint, ([], {"a": {"currency": "EUR"}}), {}),
}


@pytest.mark.parametrize("case", CALLS)
def test_arguments_are_read_and_results_written(tmp_path, case):
    function, args, result = CALLS[case]
    with HostPlugin(callable_plugin(function), folder=tmp_path) as plugin:
        assert plugin(*args) == result


def test_what_is_no_structured_value_comes_as_it_is(tmp_path):
    with HostPlugin(callable_plugin(later), folder=tmp_path) as plugin:
        first, table = plugin(base={"currency": "EUR", "amount": 1})

    assert first == {"currency": "EUR", "amount": 1.0}
    assert table.a.tolist() == [1.0]


def test_a_table_and_numbers_of_numpy_in_a_dataclass_cross_as_in_a_dictionary(tmp_path):
    @dataclass
    class Report:
        most: int
        tables: list[pd.DataFrame]

    def report():
        """Report."""
        frame = pd.DataFrame({"a": [1, 2]})
        return Report(frame.a.max(), [frame])

    with HostPlugin(callable_plugin(report), folder=tmp_path) as plugin:
        found = plugin()

    assert found["most"] == 2
    assert found["tables"][0].a.tolist() == [1, 2]


def test_annotations_may_be_texts_and_the_function_a_partial_or_an_object(tmp_path):
    def twice(base: "Currency", by: int) -> "Currency":
        """Double."""
        return Currency(currency=base.currency, amount=base.amount * by)

    class Doubler:
        """Doubles."""

        def __call__(self, base: "Currency") -> "Currency":
            return twice(base, 2)

    for one in (functools.partial(twice, by=2), Doubler()):
        with HostPlugin(callable_plugin(one, name="twice"), folder=tmp_path) as plugin:
            assert plugin({"currency": "EUR", "amount": 2}) == {"currency": "EUR", "amount": 4.0}


def test_what_does_not_fit_is_said_field_by_field(tmp_path):
    with HostPlugin(callable_plugin(convert), folder=tmp_path) as plugin:
        with pytest.raises(ValueError, match=r"base: currency: Input should be 'USD' or 'EUR'; amount: .*greater than"):
            plugin({"currency": "GBP", "amount": -1})
        with pytest.raises(TypeError, match="missing a required argument: 'base'"):
            plugin()


def test_a_class_that_pydantic_knows_nothing_of_stays_as_it_was(tmp_path):
    class Odd:
        pass

    @dataclass
    class Holder:
        odd: Odd

    def hold(holder: Holder, table: pd.DataFrame, unknown: "NoSuch" = None) -> str:  # noqa: F821 - it is the case
        """Hold."""
        return type(holder).__name__

    @dataclass
    class Unfinished:
        price: "NoSuch"  # noqa: F821 - it is the case

    def take(order: Unfinished) -> str:
        """Take."""
        return type(order).__name__

    with HostPlugin(callable_plugin(hold), folder=tmp_path) as plugin:
        assert plugin({"odd": 1}, None) == "dict"
    with HostPlugin(callable_plugin(take), folder=tmp_path) as plugin:
        assert plugin({"price": 1}) == "dict"


def test_code_calls_such_a_function(tmp_path):
    code = "sums = [convert({'currency': 'EUR', 'amount': n}) for n in range(3)]\nprint(sums[2]['amount'])"
    model = ScriptedModel([f"```python\n{code}\n```"])
    with open_session(model, roles="code_interpreter", plugins=[convert], folder=tmp_path) as session:
        answer = session.ask("convert")

    assert "4.0" in answer.text
