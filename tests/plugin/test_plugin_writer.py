"""A plugin written from a function: what stands in its files, and that they work."""

import importlib
import importlib.util
import math
import py_compile
import statistics
import sys

import pytest
import yaml

from tw_autogen.errors import ConfigError
from tw_autogen.kernel import LocalKernel
from tw_autogen.plugin import HostPlugin, write_plugin
from tw_autogen.plugin.spec import read_spec

SHOP = '''
import dataclasses

from tw_autogen.plugin import plugin

LIMIT = object()


@dataclasses.dataclass
class Order:
    count: int


def total(order: Order) -> int:
    """Count."""
    return order.count


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


async def later(x: int) -> int:
    """Wait."""
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


@pytest.fixture
def made_elsewhere(tmp_path, monkeypatch):
    """Give what writes a plugin for a function elsewhere, and loads it as in a process that never saw its modules."""
    known, place = dict(sys.modules), tmp_path / "mine"

    def make(files, module):
        for name, text in files.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text, encoding="utf-8")
        with monkeypatch.context() as patched:
            patched.syspath_prepend(place)
            spec, _ = write_plugin(importlib.import_module(module).price, tmp_path / "plugins")
        forget()
        return HostPlugin(spec, folder=tmp_path)

    def forget():
        for name in set(sys.modules) - set(known):
            if (getattr(sys.modules[name], "__file__", None) or str(place)).startswith(str(place)):
                del sys.modules[name]

    yield make
    forget()


PRICE = "def price(product: str) -> float:\n    'Look up a price.'\n    return {how}\n"


def test_what_lies_beside_a_function_elsewhere_is_imported_by_its_modules_only(made_elsewhere, tmp_path):
    files = {
        "shop.py": PRICE.format(how="__import__('rates').RATE"),
        "rates.py": "RATE = 2.5\n",
        "brotli9.py": "1 / 0\n",
    }
    with made_elsewhere(files, "shop") as called:
        assert called("bolt") == 2.5
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("brotli9")
    assert str(tmp_path / "mine") not in sys.path


def test_no_compiled_file_stands_for_a_function_elsewhere_or_for_what_lies_beside_it(made_elsewhere, tmp_path):
    files = {"shop.py": "import rates\n" + PRICE.format(how="rates.RATE"), "rates.py": "RATE = 2.5\n"}
    with made_elsewhere(files, "shop") as called:
        assert called("bolt") == 2.5
    (tmp_path / "other.py").write_text("raise SystemExit('compiled')\n")
    for name in files:
        del sys.modules[name[:-3]]
        py_compile.compile(
            str(tmp_path / "other.py"),
            cfile=importlib.util.cache_from_source(str(tmp_path / "mine" / name)),
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
    importlib.invalidate_caches()

    with HostPlugin(read_spec(tmp_path / "plugins" / "price.yaml"), folder=tmp_path) as called:
        assert called("bolt") == 2.5


@pytest.mark.parametrize("first", ["", "RATE = 2.5\n"], ids=["without a file of its own", "with one"])
def test_a_function_of_a_package_elsewhere_imports_relative_to_it(made_elsewhere, first):
    files = {
        "store/goods/rates.py": "from ..tax import TAX\nRATE = 2.5 + TAX\n",
        "store/goods/prices.py": "from . import rates\n" + PRICE.format(how="rates.RATE + __import__('till').TILL"),
        "store/tax.py": "TAX = 0.5\n",
        "till.py": "TILL = 1\n",
    }
    if first:
        files |= {"store/__init__.py": first, "store/goods/__init__.py": "from store import RATE\n"}
    with made_elsewhere(files, "store.goods.prices") as called:
        assert called("bolt") == 4.0


def test_a_package_elsewhere_that_is_called_as_another_one_is_an_error(made_elsewhere, tmp_path):
    made_elsewhere({"store/prices.py": PRICE.format(how="1.0")}, "store.prices").close()
    (tmp_path / "other/store").mkdir(parents=True)
    (tmp_path / "other/store/prices.py").write_text("def price():\n    return 2.0\n")

    with pytest.raises(ImportError, match="a module 'store' is there already, from another place"):
        HostPlugin.load_module(tmp_path / "other/store/prices.py", "store.prices")


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

    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["price.py"]
    assert (tmp_path / "price.py").read_text() == "mine\n"


def test_what_can_be_no_plugin_is_an_error(shop, tmp_path):
    with pytest.raises(ConfigError, match="say in a docstring"):
        write_plugin(shop.silent, tmp_path)
    with pytest.raises(ConfigError, match="expected a function on the top level of a module"):
        write_plugin(shop.Shop.open, tmp_path)
    with pytest.raises(ConfigError, match="expected a function on the top level of a module"):
        write_plugin(shop.LIMIT, tmp_path)
    with pytest.raises(ConfigError, match=r"total: order: a YAML has no words for such types; hand the function over"):
        write_plugin(shop.total, tmp_path)
    with pytest.raises(ConfigError, match="later: an async function runs in the host"):
        write_plugin(shop.later, tmp_path, runs_in="kernel")
    assert write_plugin(shop.later, tmp_path / "mine")[0].runs_in == "host"
