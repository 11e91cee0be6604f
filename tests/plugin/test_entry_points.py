"""Plugins that installed packages bring: real distributions on the path, as pip leaves them."""

import sys

import pytest

from tw_autogen.errors import ConfigError
from tw_autogen.plugin import find_plugins

CODE = (
    "from tw_autogen.plugin import plugin\n\n"
    "@plugin\ndef double(x: float) -> float:\n    'Double a number.'\n    return 2 * x\n\n"
    "@plugin(runs_in='host')\ndef halve(x: float) -> float:\n    'Halve a number.'\n    return x / 2\n\n"
    "def plain(x: float) -> float:\n    'Give it back.'\n    return x\n\n"
    "several = [halve, plain]\nnothing = 3\n"
)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Make a package with entry points."""
    monkeypatch.syspath_prepend(tmp_path)

    def make(package="shop", **points):
        (tmp_path / package / "ready").mkdir(parents=True)
        (tmp_path / package / "__init__.py").write_text("")
        (tmp_path / package / "tools.py").write_text(CODE)
        (tmp_path / package / "ready" / "bolt.yaml").write_text("name: bolt\ndescription: A bolt.\n")
        (tmp_path / package / "idle").mkdir()
        (tmp_path / package / "idle" / "__init__.py").write_text("")
        (tmp_path / package / "idle" / "nut.yaml").write_text("name: nut\ndescription: A nut.\nenabled: false\n")
        (tmp_path / package / "ready" / "bolt.py").write_text(
            "from taskweaver.plugin import register_plugin\n@register_plugin\ndef bolt(): ...\n"
        )
        (tmp_path / package / "ready" / "__init__.py").write_text("raise RuntimeError('not to be run')\n")
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = "\n".join(f"{name} = {package}.{value}" for name, value in points.items())
        (info / "entry_points.txt").write_text(f"[tw_autogen.plugins]\n{lines}\n")

    yield make
    for name in [name for name in sys.modules if name.split(".")[0] in ("shop", "store")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("tools", [("double", "kernel"), ("halve", "host")]),
        ("ready", [("bolt", "kernel")]),
        ("tools:double", [("double", "kernel")]),
        ("tools:plain", [("plain", "host")]),
        ("tools:several", [("halve", "host"), ("plain", "host")]),
    ],
)
def test_an_entry_point_names_a_module_a_folder_or_functions(install, value, found):
    install(goods=value)

    assert [(spec.name, spec.runs_in) for spec in find_plugins("goods", shipped=None)] == found


def test_a_module_is_read_without_being_imported(install):
    install(goods="tools")

    find_plugins("goods", shipped=None)

    assert "shop.tools" not in sys.modules


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("idle", r"plugin 'goods' of shop 1\.0: .*idle: no plugin here is enabled"),
        ("missing", r"plugin 'goods' of shop 1\.0: there is no module shop\.missing"),
        ("tools:absent", r"plugin 'goods' of shop 1\.0: shop\.tools:absent can't be loaded: AttributeError"),
        ("tools:nothing", r"plugin 'goods' of shop 1\.0: shop\.tools:nothing is int; expected a function"),
        ("ready:x", r"plugin 'goods' of shop 1\.0: shop\.ready:x can't be loaded: RuntimeError: not to be run"),
    ],
)
def test_what_does_not_load_is_an_error_that_names_the_package(install, value, message):
    install(goods=value)

    with pytest.raises(ConfigError, match=message):
        find_plugins("goods", shipped=None)


def test_two_packages_with_the_same_name_are_an_error_that_names_both(install):
    install(goods="tools")
    install(package="store", goods="tools")

    with pytest.raises(ConfigError, match=r"two packages bring a plugin 'goods': \w+ 1\.0 .* and \w+ 1\.0 "):
        find_plugins("goods", shipped=None)


def test_an_unknown_name_is_told_the_neighbour_among_installed_ones(install):
    install(goods="tools")

    with pytest.raises(ConfigError, match=r"no plugin is called 'good'; did you mean 'goods'\?"):
        find_plugins("good", shipped=None)
