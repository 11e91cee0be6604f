from pathlib import Path

import pytest

from tw_autogen.errors import ConfigError, PluginLoadError, PluginSpecError
from tw_autogen.plugin import Parameter, PluginSpec, find_plugins
from tw_autogen.plugin.plugin_finder import renamed_parameters
from tw_autogen.plugin.spec import NO_DEFAULT, read_spec
from tw_autogen.shipped_folders import shipped_folder

HEAD = "from taskweaver.plugin import Plugin, register_plugin\n\n\n"
PLAIN = f"{HEAD}@register_plugin\ndef f(a, b=2):\n    return a\n"
BOTH = "parameters: [{name: a, required: true}, {name: b}]"


def write(folder: Path, name: str = "f", keys: str = BOTH, python: str | None = PLAIN) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.yaml"
    path.write_text(f"name: {name}\ndescription: d\n{keys}\n", encoding="utf-8")
    if python is not None:
        (folder / f"{name}.py").write_text(python, encoding="utf-8")
    return path


def names(specs):
    return [spec.name for spec in specs]


def test_a_path_a_folder_a_project_and_a_shipped_name_are_found_in_the_order_asked(tmp_path):
    one = write(tmp_path / "one", "one")
    write(tmp_path / "two", "b_second")
    write(tmp_path / "two", "a_first")
    write(tmp_path / "project" / "plugins", "inner")
    shipped = write(tmp_path / "shipped", "ready").parent

    specs = find_plugins([str(one), tmp_path / "two", str(tmp_path / "project"), "ready"], shipped=shipped)

    assert names(specs) == ["one", "a_first", "b_second", "inner", "ready"]


def test_a_single_one_needs_no_list(tmp_path):
    assert names(find_plugins(write(tmp_path), shipped=None)) == ["f"]


def test_every_shipped_plugin_loads():
    shipped = shipped_folder("plugins")

    found = names(find_plugins([shipped], shipped=shipped))

    assert found == sorted(path.stem for path in shipped.glob("*.yaml"))
    assert {"anomaly_detection", "scale_columns", "sql_pull_data"} <= set(found)


def test_a_disabled_plugin_is_skipped_in_a_folder_and_loaded_by_name(tmp_path):
    path = write(tmp_path, keys=f"{BOTH}\nenabled: false")

    with pytest.raises(PluginSpecError, match="no plugin here is enabled; one that is named itself"):
        find_plugins([tmp_path], shipped=None)

    write(tmp_path, name="g")
    assert names(find_plugins([tmp_path], shipped=None)) == ["g"]
    assert names(find_plugins([tmp_path, path], shipped=None)) == ["g", "f"]
    assert names(find_plugins(["f"], shipped=tmp_path)) == ["f"]


def test_the_same_file_twice_is_one_plugin(tmp_path):
    path = write(tmp_path)

    assert names(find_plugins([path, tmp_path], shipped=None)) == ["f"]


def test_two_plugins_of_one_name_are_an_error_that_names_both_files(tmp_path):
    paths = [write(tmp_path / "one"), write(tmp_path / "two")]

    with pytest.raises(PluginSpecError, match=r"two/f\.yaml: there is a plugin 'f' already, from .*one/f\.yaml"):
        find_plugins(paths, shipped=None)


def test_an_unknown_name_is_an_error_with_its_neighbour(tmp_path):
    write(tmp_path, "sql_pull_data")

    with pytest.raises(ConfigError, match=r"no plugin is called 'sql_pul_data'; did you mean 'sql_pull_data'\?"):
        find_plugins(["sql_pul_data"], shipped=tmp_path)


def test_a_word_is_a_name_and_never_what_lies_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "weather")
    Path("rain").write_text("name: rain\ndescription: d\n")
    write(tmp_path, "snow")

    with pytest.raises(ConfigError, match=r"no plugin is called 'weather'; write \./weather for the folder"):
        find_plugins("weather", shipped=None)
    for word in ("rain", "snow"):
        with pytest.raises(ConfigError, match=f"no plugin is called '{word}'"):
            find_plugins([word], shipped=None)
    for path in ("./weather", "weather/", "weather/f.yaml", Path("weather")):
        assert names(find_plugins([path], shipped=None)) == ["f"]
    assert names(find_plugins(["snow.yaml"], shipped=None)) == ["snow"]
    monkeypatch.chdir("weather")
    assert names(find_plugins(["."], shipped=None)) == ["f"]


def test_a_path_that_is_missing_is_an_error_with_the_path(tmp_path):
    with pytest.raises(PluginSpecError, match=r"sales\.yaml: there is no such file"):
        find_plugins([str(tmp_path / "sales.yaml")], shipped=None)


def test_a_folder_without_plugins_is_an_error(tmp_path):
    with pytest.raises(PluginSpecError, match=r"no plugins here: expected \*\.yaml files, \*\.py files with"):
        find_plugins([tmp_path], shipped=None)


def test_several_yamls_may_share_one_python(tmp_path):
    write(tmp_path, "f")
    write(tmp_path, "g", keys=f"{BOTH}\ncode: f", python=None)

    assert [spec.source().name for spec in find_plugins([tmp_path], shipped=None)] == ["f.py", "f.py"]


def test_a_missing_python_is_an_error_that_names_both_files(tmp_path):
    path = write(tmp_path, python=None)

    with pytest.raises(PluginLoadError, match=r"f\.py: cannot be read .*No such file.*f\.yaml expects") as caught:
        find_plugins([path], shipped=None)

    assert caught.value.path == tmp_path / "f.py"


@pytest.mark.parametrize(
    ("python", "message"),
    [
        ("def f(:\n", r"f\.py:1: not valid Python: "),
        ("x = 1\nreturn x\n", r"f\.py:2: not valid Python: 'return' outside function"),
        ("def f(a, b=2): ...\n", r"f\.py: no class or function here has the decorator @register_plugin"),
        (f"{PLAIN}@register_plugin\ndef g(a): ...\n", r"f\.py:8: @register_plugin stands 2 times \(f, g\)"),
        (f"{HEAD}@register_plugin\nclass F(Plugin): ...\n", r"f\.py:5: class F has no `__call__`"),
        (f"{HEAD}@register_plugin\nasync def f(a, b=2): ...\n", r"f\.py:5: an async function runs in the host: "),
        ("x = '\0'", r"f\.py.*(null|not UTF-8)"),
    ],
)
def test_python_that_cannot_be_a_plugin_is_an_error_with_file_and_line(tmp_path, python, message):
    with pytest.raises(PluginLoadError, match=message):
        find_plugins([write(tmp_path, python=python)], shipped=None)


@pytest.mark.parametrize(
    ("signature", "problem"),
    [
        ("a", "has no parameter 'b'"),
        ("c, a", "has no parameter 'b'"),
        ("a, b, c", "needs 'c'"),
        ("a, b, *, c", "needs 'c'"),
        ("b, a", "has its parameters in another order"),
    ],
)
def test_a_signature_that_does_not_fit_the_yaml_is_an_error_that_says_both(tmp_path, signature, problem):
    python = f"{HEAD}@register_plugin\nclass F(Plugin):\n    def __call__(self, {signature}): ...\n"
    shown = signature.replace("*, ", "").replace("=1", "")

    with pytest.raises(
        PluginLoadError, match=rf"f\.py:6: `__call__\({shown}\)` {problem}; f\.yaml lists: a, b$"
    ) as caught:
        find_plugins([write(tmp_path, python=python)], shipped=None)

    assert caught.value.line == 6


def test_the_python_names_a_parameter_that_the_yaml_calls_otherwise_at_the_same_place(tmp_path, caplog):
    path = write(tmp_path, python=f"{HEAD}@register_plugin\ndef f(a, c=1): ...\n")

    (spec,) = find_plugins([path], shipped=None)

    assert [parameter.name for parameter in spec.parameters] == ["a", "c"]
    assert "f.yaml: the parameter b is called c in the Python, and so to the model" in caplog.text
    assert renamed_parameters(read_spec(path), spec) == (
        "the parameter b is called c in the Python, and so to the model",
    )


@pytest.mark.parametrize(
    "python",
    [
        f"{HEAD}@register_plugin\ndef f(*args): ...\n",
        f"{HEAD}@register_plugin\ndef f(x=None, y=None, **kwargs): ...\n",
        f"{HEAD}@register_plugin\ndef f(a, **kwargs): ...\n",
        f"{HEAD}@register_plugin\ndef f(a, b, hidden=None): ...\n",
        f"{HEAD}@register_plugin\ndef f(a, *, b): ...\n",
        "from tw_autogen.plugin import register_plugin as plugin\n@plugin\ndef f(a, b): ...\n",
        "from tw_autogen import plugin\n@plugin.register_plugin\ndef f(a, b): ...\n",
        f"{HEAD}class Base(Plugin):\n    def __call__(self, a, b): ...\n@register_plugin\nclass F(Base): ...\n",
        "from other import Base\nfrom taskweaver.plugin import register_plugin\n@register_plugin\nclass F(Base): ...\n",
    ],
)
def test_every_honest_form_is_accepted(tmp_path, python):
    (spec,) = find_plugins([write(tmp_path, python=python)], shipped=None)

    assert spec.name == "f"
    assert [parameter.name for parameter in spec.parameters] == ["a", "b"]


def test_defaults_and_what_is_required_are_completed_from_the_python(tmp_path):
    keys = "parameters: [{name: a}, {name: b, default: 9}, {name: c}, {name: d, required: true}]"
    python = f"{HEAD}@register_plugin\ndef f(a, b=-2, c=len('x'), d=4): ...\n"

    (spec,) = find_plugins([write(tmp_path, keys=keys, python=python)], shipped=None)

    assert spec.parameters == (
        Parameter("a", required=True),
        Parameter("b", default=-2),
        Parameter("c", default=NO_DEFAULT),
        Parameter("d", required=True),
    )


def test_a_spec_that_was_read_already_is_checked_too(tmp_path):
    spec = PluginSpec("f", "d", path=write(tmp_path))

    with pytest.raises(PluginLoadError, match=r"`f\(a, b\)` needs 'a'; f\.yaml lists: none"):
        find_plugins([spec], shipped=None)


def test_a_projects_plugin_that_is_not_enabled_shadows_no_shipped_one(tmp_path):
    for place, enabled in (("own", "false"), ("shipped", "true")):
        (tmp_path / place).mkdir()
        for name in ("both", "mine") if place == "own" else ("both",):
            (tmp_path / place / f"{name}.yaml").write_text(
                f"name: {name}\nenabled: {enabled}\ndescription: From {place}.\n", encoding="utf-8"
            )
            (tmp_path / place / f"{name}.py").write_text(
                "from tw_autogen.plugin import register_plugin\n\n@register_plugin\nclass P:\n"
                "    def __call__(self):\n        return 1\n",
                encoding="utf-8",
            )

    found = find_plugins(["both", "mine"], shipped=tmp_path / "shipped", own=tmp_path / "own")

    assert [one.description for one in found] == ["From shipped.", "From own."]


def test_a_functions_name_leads_to_the_yaml_that_stands_for_it(tmp_path):
    host = (
        "from tw_autogen.plugin import plugin\n\n\n@plugin(runs_in='host')\ndef w() -> int:\n    'Do.'\n    return 1\n"
    )
    (tmp_path / "w.py").write_text(host)
    (tmp_path / "about.yaml").write_text("name: w\ncode: w\nenabled: false\ndescription: Sums.\n")

    (found,) = find_plugins(["w"], shipped=None, own=tmp_path)

    assert (found.path.name, found.runs_in) == ("about.yaml", "kernel")


@pytest.mark.parametrize("wanted", [None, 5, True, [None], [5, "nobody"], [{"name": "a"}], [["a.py"]]], ids=str)
def test_what_is_no_plugin_is_named_with_the_setting_that_it_was_given_for(wanted):
    with pytest.raises(ConfigError, match=r"plugins: expected names, paths and functions, got .*; none is \(\)"):
        find_plugins(wanted, shipped=None)
