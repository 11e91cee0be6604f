import ast

import pytest

from tw_autogen.code_interpreter.unseen_plugin_calls import unclear_calls
from tw_autogen.plugin import Parameter, PluginSpec, find_plugins


def test_a_stub_keeps_types_defaults_descriptions_and_examples():
    spec = PluginSpec(
        "sales",
        "Sales of one shop.\nIn euros.",
        (
            Parameter("shop", "string", True, "name of\n  the shop"),
            Parameter("days", "list[int]", False, "", default=[1, 2]),
            Parameter("currency", "str", False, "code", default="EUR"),
            Parameter("size", "int"),
        ),
        (Parameter("df", "pandas.DataFrame", description="one row a day"), Parameter("note", "str")),
        examples="df, note = sales('north')\nsales('south')\n",
    )

    assert (
        spec.stub()
        == '''\
def sales(shop: str, days: list[int] = [1, 2], currency: str = 'EUR', size: int = ...) -> tuple[pandas.DataFrame, str]:
    """Sales of one shop. In euros.
    shop: name of the shop
    currency: code
    returns df: one row a day
    """
    # df, note = sales('north')
    # sales('south')'''
    )


def test_a_single_return_value_keeps_its_description():
    spec = PluginSpec("joke", "Tell a joke.", (), (Parameter("text", "str", description="the joke"),))

    assert (
        spec.stub()
        == '''\
def joke() -> str:
    """Tell a joke.
    returns text: the joke
    """'''
    )


def test_a_bare_plugin_is_two_lines():
    assert PluginSpec("ping", "Wake the server.").stub() == 'def ping() -> None:\n    """Wake the server."""'


@pytest.mark.parametrize(
    "spec",
    [
        PluginSpec("f", 'Says """hello""" and "bye"'),
        PluginSpec("f", "A path such as C:\\new\\"),
        PluginSpec("f", "d", (Parameter("kind", "one of: a, b", True), Parameter("x", "Optional[str]", False))),
        PluginSpec("f", "d", (Parameter("a", "int"), Parameter("b", "int", True), Parameter("c", "int", True))),
        PluginSpec("f", "d", (), (Parameter("a result", "a table"), Parameter("b", "none"))),
        PluginSpec("f", "d", (Parameter("x", "str, optional"),), (Parameter("result", "DataFrame, str"),)),
    ],
)
def test_every_stub_is_valid_python(spec):
    (function,) = ast.parse(spec.stub()).body

    assert isinstance(function, ast.FunctionDef)
    assert [one.arg for one in (*function.args.args, *function.args.kwonlyargs)] == [p.name for p in spec.parameters]


def test_the_docstring_of_a_stub_says_what_the_description_says():
    (function,) = ast.parse(PluginSpec("f", 'A path such as C:\\new, "quoted"').stub()).body

    assert isinstance(function, ast.FunctionDef)
    assert str(ast.get_docstring(function)).strip() == 'A path such as C:\\new, "quoted"'


@pytest.mark.parametrize(
    ("description", "sentence"),
    [
        ("Pull data. Only when asked.", "Pull data."),
        ("Pull v1.2 data, e.g. sales\nof a shop. Ask first!", "Pull v1.2 data, e.g. sales of a shop."),
        ("Pull tables, e.g. Excel files, or A vs. Bonds. Ask first.", "Pull tables, e.g. Excel files, or A vs. Bonds."),
        ("Lädt Tabellen, z. B. Excel, für Dr. Meier. Frag vorher.", "Lädt Tabellen, z. B. Excel, für Dr. Meier."),
        ("Pull data", "Pull data"),
    ],
)
def test_a_line_has_what_a_call_must_give_and_the_first_sentence(description, sentence):
    parameters = (Parameter("df", "DataFrame", True), Parameter("k", "float", default=3.0))

    assert PluginSpec("pull", description, parameters).line() == f"- pull(df: DataFrame): {sentence}"


SOURCE = (
    "from tw_autogen.plugin import plugin\n\n"
    "@plugin\n"
    "def mixed(a: int, /, b: int, *, seed: int, tries: int = 3) -> int:\n    'Mix.'\n    return a\n\n"
    "@plugin\n"
    "def root(x: float, /) -> float:\n    'Take the root.'\n    return x\n"
)


def mixed(a: int, /, b: int, *, seed: int, tries: int = 3) -> int:
    """Mix."""
    return a


def root(x: float, /) -> float:
    """Take the root."""
    return x


@pytest.mark.parametrize("handed_over", [True, False])
def test_what_goes_by_keyword_or_by_position_only_is_shown_so(tmp_path, handed_over):
    path = tmp_path / "mine.py"
    path.write_text(SOURCE, encoding="utf-8")

    specs = find_plugins([mixed, root] if handed_over else path, shipped=None)

    heads = [spec.stub().splitlines()[0] for spec in specs]
    assert heads == [
        "def mixed(a: int, /, b: int, *, seed: int, tries: int = 3) -> int:",
        "def root(x: float, /) -> float:",
    ]
    calls = ("mixed(1, 2, seed=3)", "mixed(1, b=2, seed=3)", "mixed(1, 2, 3)", "mixed(a=1, b=2, seed=3)", "root(x=1)")
    assert [bool(unclear_calls(code, specs)) for code in calls] == [False, False, True, True, True]


@pytest.mark.parametrize("by", ["", "position", "keyword"])
def test_parameters_in_an_order_that_python_lacks_are_valid_python_all_the_same(by):
    given = (Parameter("a", "int"), Parameter("b", "int", True, by=by), Parameter("c", "int", by="position"))

    stub = PluginSpec("f", "Do.", given).stub()

    ast.parse(stub)
    assert "*, b: int" in stub
