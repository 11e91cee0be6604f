"""Functions with `@plugin` in a file: what is read of them without running it, and what is refused."""

from pathlib import Path

import pytest

from tw_autogen.errors import PluginLoadError, PluginSpecError
from tw_autogen.plugin import HostPlugin, Parameter, find_plugins, plugin
from tw_autogen.plugin.callable_plugins import function_plugin
from tw_autogen.plugin.decorated_functions import holds_functions, read_functions

HEAD = "from tw_autogen.plugin import plugin\n\n\n"
PRICE = HEAD + (
    "import pandas as pd\n\n"
    "@plugin\n"
    "def price(product: str, years: list[int], rate: float = 1.5, frame: pd.DataFrame | None = None) -> pd.DataFrame:\n"
    '    """Look up prices\n    by year.\n\n    Not for the model.\n\n'
    "    Args:\n        product: Its name,\n            as it stands in the shop.\n        years: Which.\n\n"
    "    Returns:\n        One row a year.\n\n"
    "    Example:\n        >>> price('bolt', [2024])\n        'many'\n"
    '    """\n    raise RuntimeError("not to be run")\n\n'
    "@plugin(runs_in='host', calls=3, plugin_only=True)\n"
    "async def ask(question):\n    'Ask somebody.'\n    return question * 2\n"
)


def write(folder: Path, text: str, name: str = "mine.py") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def names(specs):
    return [spec.name for spec in specs]


def test_signature_and_docstring_are_all_that_is_needed_and_the_file_is_not_run(tmp_path):
    price, ask = find_plugins(write(tmp_path, f"{PRICE}\nraise RuntimeError('not to be run')\n"), shipped=None)

    assert price.stub() == (
        "def price(product: str, years: list[int], rate: float = 1.5, frame: DataFrame | None = None) -> DataFrame:\n"
        '    """Look up prices by year.\n'
        "    product: Its name, as it stands in the shop.\n"
        "    years: Which.\n"
        "    returns result: One row a year.\n"
        '    """\n'
        "    # price('bolt', [2024])"
    )
    assert (price.runs_in, price.plugin_only, price.calls) == ("kernel", False, None)
    assert (ask.runs_in, ask.plugin_only, ask.calls) == ("host", True, 3)
    assert ask.parameters == (Parameter("question", required=True),)


@pytest.mark.parametrize(
    "docstring",
    [
        "Convert.\n\n    Args:\n        rate (float): Euros for one.\n    ",
        "Convert.\n\n    Parameters\n    ----------\n    rate : float\n        Euros for one.\n    ",
        "Convert.\n\n    Parameters\n    ----------\n    amount, rate : float\n        Euros for one.\n    ",
        "Convert.\n\n    :param rate: Euros for one.\n    ",
    ],
)
def test_words_for_parameters_are_read_in_googles_numpys_and_sphinxs_form(tmp_path, docstring):
    (spec,) = read_functions(
        write(tmp_path, f'{HEAD}@plugin\ndef convert(rate: float) -> float:\n    """{docstring}"""\n')
    )

    assert (spec.description, spec.parameters[0].description) == ("Convert.", "Euros for one.")


def test_words_beside_a_type_count_where_the_docstring_has_none(tmp_path):
    text = (
        f"{HEAD}from typing import Annotated\n@plugin\n"
        "def weather(city: Annotated[str, 'its English name'], day: 'Annotated[int, \"from now\"]' = 0) -> None:\n"
        "    'Say how it will be.'\n"
    )

    (spec,) = read_functions(write(tmp_path, text))

    assert [(parameter.type, parameter.description) for parameter in spec.parameters] == [
        ("str", "its English name"),
        ("int", "from now"),
    ]
    assert spec.returns == ()


def test_a_folder_gives_yamls_and_functions_and_passes_over_other_python(tmp_path):
    write(tmp_path, f"{HEAD}@plugin\ndef one() -> int:\n    'One.'\n    return 1\n")
    write(tmp_path, "def helper(:\n", "broken_helper.py")
    write(tmp_path, "from pluggy import plugin\n@plugin\ndef other(): ...\n", "others.py")
    write(tmp_path, "name: two\ndescription: Two.\ncode: mine_too\n", "two.yaml")
    write(tmp_path, f"{HEAD}@plugin\ndef two() -> int:\n    'Not in the YAML.'\n    return 2\n", "mine_too.py")

    found = find_plugins(tmp_path, shipped=None)

    assert [(spec.name, spec.description) for spec in found] == [("two", "Two."), ("one", "One.")]


def test_files_of_editors_that_write_a_byte_order_mark_are_read(tmp_path):
    write(tmp_path, f"\ufeff{HEAD}@plugin\ndef one() -> int:\n    'One.'\n    return 1\n")
    write(tmp_path, "\ufeffname: two\ndescription: Two.\nruns_in: host\n", "two.yaml")
    write(
        tmp_path, "\ufefffrom tw_autogen.plugin import register_plugin\n@register_plugin\ndef f(): return 2\n", "two.py"
    )

    two, one = find_plugins(tmp_path, shipped=None)

    assert one.description == "One."
    with HostPlugin(two, folder=tmp_path) as plugin:
        assert plugin() == 2


def test_a_file_and_its_folder_are_the_same_plugins(tmp_path):
    path = write(tmp_path, f"{HEAD}@plugin\ndef one() -> int:\n    'One.'\n")

    assert names(find_plugins([path, tmp_path], shipped=None)) == ["one"]


def test_a_project_s_own_function_goes_by_its_name(tmp_path):
    write(tmp_path, f"{HEAD}@plugin\ndef one() -> int:\n    'One.'\n@plugin\ndef two() -> int:\n    'Two.'\n")

    assert names(find_plugins("two", shipped=None, own=tmp_path)) == ["two"]


def test_a_decorated_function_that_is_handed_over_has_no_limit_of_time_unless_it_says_one():
    @plugin
    def wait(x: int) -> int:
        """Wait."""
        return x

    assert function_plugin(wait).seconds is None
    assert function_plugin(plugin(seconds=5)(wait)).seconds == 5


def test_functions_of_one_name_in_two_files_are_an_error_that_names_both(tmp_path):
    text = f"{HEAD}@plugin\ndef one() -> int:\n    'One.'\n"
    paths = [write(tmp_path, text, "a.py"), write(tmp_path, text, "b.py")]

    with pytest.raises(PluginSpecError, match=r"b\.py: there is a plugin 'one' already, from .*a\.py"):
        find_plugins(paths, shipped=None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", r"mine\.py: no function here has the decorator @plugin .*@register_plugin is named by the YAML"),
        (f"{HEAD}@plugin\ndef f(a): ...\n", r"mine\.py:5: f: say in a docstring what it does"),
        (f"{HEAD}@plugin\ndef f(*a):\n    'D.'\n", r"mine\.py:5: f: `\*a` says nothing to a model"),
        (f"{HEAD}@plugin\nasync def f():\n    'D.'\n", r"mine\.py:5: f: an async function runs in the host: @plugin\("),
        (f"{HEAD}@plugin\nclass F:\n    'D.'\n", r"mine\.py:4: @plugin stands on functions; a class takes"),
        (f"{HEAD}@plugin(runs_in='moon')\ndef f():\n    'D.'\n", r"runs_in: expected 'kernel' or 'host', found 'moon'"),
        (f"{HEAD}@plugin(run_in='host')\ndef f():\n    'D.'\n", r"unknown option 'run_in'; did you mean 'runs_in'\?"),
        (f"{HEAD}@plugin(calls=N)\ndef f():\n    'D.'\n", r"mine\.py:4: @plugin: write calls out as a value"),
        (f"{HEAD}@plugin(calls=0)\ndef f():\n    'D.'\n", r"mine\.py:5: f: calls=0 would allow nothing; leave it out"),
        (f"{HEAD}@plugin(calls=True)\ndef f():\n    'D.'\n", r"@plugin: calls: expected int, got True"),
        (f"{HEAD}@plugin\ndef f():\n    'D.'\n@plugin\ndef f():\n    'E.'\n", r"there are two functions 'f'"),
        (
            "from tw_autogen import plugin\n@plugin\ndef f():\n    'D.'\n",
            r"write `from tw_autogen\.plugin import plugin`",
        ),
        (f"{HEAD}@plugin\ndef f(:\n", r"mine\.py:5: not valid Python"),
    ],
)
def test_what_can_be_no_plugin_is_an_error_with_file_and_line(tmp_path, text, message):
    with pytest.raises(PluginLoadError, match=message):
        find_plugins(write(tmp_path, text), shipped=None)


def test_a_file_without_functions_is_an_error_that_says_where_it_was_looked_for(tmp_path):
    with pytest.raises(PluginLoadError, match=r"none\.py: cannot be read \(No such file or directory\)"):
        find_plugins(str(tmp_path / "none.py"), shipped=None)


def test_functions_that_run_in_the_host_are_called_here_async_ones_too(tmp_path):
    _, ask = find_plugins(write(tmp_path, PRICE), shipped=None)

    with HostPlugin(ask, folder=tmp_path) as called:
        assert called("ha") == "haha"


def test_the_functions_of_a_file_share_what_it_holds(tmp_path):
    text = (
        f"{HEAD}seen = []\n@plugin(runs_in='host')\ndef put(word: str) -> None:\n    'Keep.'\n    seen.append(word)\n"
        "@plugin(runs_in='host')\ndef all_of() -> list:\n    'Give.'\n    return seen\n"
    )
    put, all_of = (HostPlugin(one, folder=tmp_path) for one in find_plugins(write(tmp_path, text), shipped=None))

    put("a")

    assert all_of() == ["a"]


def test_a_function_that_is_handed_over_needs_no_decorator_and_keeps_its_options(tmp_path):
    def double(x: float) -> float:
        """Double a number."""
        return 2 * x

    @plugin(calls=2, required=True)
    def halve(x: float) -> float:
        """Halve a number."""
        return x / 2

    first, second = find_plugins([double, halve], shipped=None)

    assert (first.name, first.runs_in, first.calls) == ("double", "host", None)
    assert (second.name, second.runs_in, second.calls, second.required) == ("halve", "host", 2, True)
    with HostPlugin(second, folder=tmp_path) as called:
        assert called(3.0) == 1.5


def test_a_class_under_the_decorator_is_told_so_when_it_runs():
    with pytest.raises(TypeError, match=r"@plugin stands on a function, .*; a class takes @register_plugin"):
        plugin(type("F", (), {}))


@pytest.mark.parametrize("many", [100, 290, 900])
def test_a_decorator_of_very_many_parts_is_none_of_ours(tmp_path, many):
    path = tmp_path / "many.py"
    path.write_text(f"{HEAD}@plugin{'.b' * many}\ndef f():\n    'D.'\n")

    with pytest.raises(PluginLoadError, match="no function here has the decorator|nested more than 300 deep"):
        read_functions(path)
    assert holds_functions(path) is (many == 900)  # which is told when it is read
