"""A plugin written from a function: what stands in its files, and that they work."""

import math
import statistics
import sys

import pytest
import yaml

from tw_autogen.errors import ConfigError
from tw_autogen.kernel import LocalKernel
from tw_autogen.plugin import HostPlugin, write_plugin

SHOP = '''
from tw_autogen.plugin import plugin

LIMIT = object()


def price(product: str, year: int = 2026, limit: bool = LIMIT) -> float:
    """Look up a price.

    Args:
        product: Its name.
        year: Of the list: "old" ones count too.

    Returns:
        Euros.

    Example:
        >>> price("bolt")
        6.0
    """
    return len(product) * 1.5


@plugin
def marked(x: int) -> int:
    """Mark it."""
    return x


def silent(x):
    return x


class Shop:
    def open(self) -> bool:
        """Open it."""
        return True
'''


@pytest.fixture
def shop(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "shop.py").write_text(SHOP, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path / "mine")
    sys.modules.pop("shop", None)
    import shop

    yield shop
    del sys.modules["shop"]


def test_the_yaml_says_what_signature_and_docstring_say(shop, tmp_path):
    spec, files = write_plugin(shop.price, tmp_path / "plugins")

    assert [file.name for file in files] == ["price.yaml", "price.py"]
    assert yaml.safe_load(files[0].read_text(encoding="utf-8")) == {
        "name": "price",
        "description": "Look up a price.",
        "parameters": [
            {"name": "product", "type": "str", "required": True, "description": "Its name."},
            {
                "name": "year",
                "type": "int",
                "required": False,
                "description": 'Of the list: "old" ones count too.',
                "default": 2026,
            },
            {"name": "limit", "type": "bool", "required": False},
        ],
        "returns": [{"name": "result", "type": "float", "description": "Euros."}],
        "examples": 'price("bolt")',
        "runs_in": "host",
    }
    assert "year: int = 2026, limit: bool = ..." in spec.stub()


def test_a_function_that_only_lies_there_is_called_in_the_host(shop, tmp_path, monkeypatch):
    spec, _ = write_plugin(shop.price, tmp_path / "plugins")
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one != str(tmp_path / "mine")])
    sys.modules["shop_kept"] = sys.modules.pop("shop")

    with HostPlugin(spec, folder=tmp_path) as called:
        assert called("bolt", year=2) == 6.0
    assert sys.modules["shop"].__file__.startswith(str(tmp_path))
    del sys.modules["shop_kept"]


def test_a_function_of_an_installed_package_is_called_in_the_kernel(tmp_path):
    spec, _ = write_plugin(statistics.pvariance, tmp_path / "plugins", name="spread")

    assert spec.runs_in == "kernel"
    with LocalKernel(tmp_path / "files") as kernel:
        kernel.load(spec.loadable())
        assert kernel.execute("spread([1, 3])", seconds=30).result == "1"


def test_a_function_that_is_no_python_can_be_one_too(tmp_path):
    spec, _ = write_plugin(math.sqrt, tmp_path)

    assert "(x: Any, /)" in spec.stub()
    with HostPlugin(spec, folder=tmp_path) as called:
        assert called(9.0) == 3.0


def test_a_decorated_function_needs_no_python_of_its_own_where_its_file_lies(shop, tmp_path):
    spec, files = write_plugin(shop.marked, tmp_path / "mine")

    assert [file.name for file in files] == ["marked.yaml"]
    assert (spec.code, spec.runs_in) == ("shop", "kernel")
    spec, files = write_plugin(shop.marked, tmp_path / "plugins", runs_in="host")
    assert [file.name for file in files] == ["marked.yaml", "marked.py"]
    with HostPlugin(spec, folder=tmp_path) as called:
        assert called(3) == 3


def test_nothing_is_overwritten(shop, tmp_path):
    (tmp_path / "price.py").write_text("mine\n")

    with pytest.raises(ConfigError, match=r"price\.py: is there already, and is not overwritten"):
        write_plugin(shop.price, tmp_path)

    assert sorted(one.name for one in tmp_path.iterdir() if one.is_file()) == ["price.py"]
    assert (tmp_path / "price.py").read_text() == "mine\n"


def test_what_can_be_no_plugin_is_an_error(shop, tmp_path):
    with pytest.raises(ConfigError, match="say in a docstring"):
        write_plugin(shop.silent, tmp_path)
    with pytest.raises(ConfigError, match="expected a function on the top level of a module"):
        write_plugin(shop.Shop.open, tmp_path)
    with pytest.raises(ConfigError, match="expected a function on the top level of a module"):
        write_plugin(shop.LIMIT, tmp_path)
