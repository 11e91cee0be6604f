"""What `check_files` finds without running anything, and what a trial in a kernel finds."""

import sys

import pytest

from tw_autogen.kernel import LocalKernel
from tw_autogen.plugin import HostPlugin, PluginTests, check_files, find_plugins, plugin_files
from tw_autogen.plugin.import_check import Missing, missing_imports
from tw_autogen.plugin.listing import project_plugins

TW = "from taskweaver.plugin import Plugin, register_plugin, test_plugin\n\n\n"
HEAD = "from tw_autogen.plugin import plugin, test_plugin\n\n\n"


def write(folder, **files):
    for name, text in files.items():
        stem, _, suffix = name.rpartition("_")
        (folder / f"{stem}.{suffix}").write_text(text, encoding="utf-8")
    return folder


def found(folder):
    specs, flaws = check_files(plugin_files(folder))
    return [spec.name for spec in specs], [(flaw.level, flaw.path.name, flaw.line, flaw.what) for flaw in flaws]


def spec(name="f", **more):
    return f"name: {name}\ndescription: d\n" + "".join(f"{key}: {value}\n" for key, value in more.items())


def test_a_right_plugin_has_no_flaw(tmp_path):
    write(
        tmp_path, f_yaml=spec(parameters="[{name: a, type: int}]"), f_py=f"{TW}@register_plugin\ndef f(a: int): ...\n"
    )

    assert found(tmp_path) == (["f"], [])


def test_a_wrong_spec_and_a_signature_that_does_not_fit_are_errors(tmp_path):
    write(tmp_path, a_yaml="name: a\n", f_yaml=spec(), f_py=f"{TW}@register_plugin\ndef f(a): ...\n")

    assert found(tmp_path) == (
        [],
        [
            ("error", "a.yaml", None, "missing key 'description'"),
            ("error", "f.py", 5, "`f(a)` needs 'a'; f.yaml lists: none"),
        ],
    )


@pytest.mark.parametrize(
    ("configurations", "named"),
    [
        ("{api_key: a1b2c3d4e5f6}", "api_key"),
        ("{shop: {password: hunter2hunter2}}", "shop.password"),
        ("{database: 'postgresql://me:pw123@host/db'}", "database"),
        ("{values: [sk-abcdefghijklmnop]}", "values"),
        ("{api_key: place your key here}", ""),
        ("{api_key: $SHOP_KEY}", ""),
        ("{api_key: }", ""),
        ("{primary_key: customer_number, max_tokens: 100000000}", ""),
        ("{database: 'postgresql://me@host/db'}", ""),
    ],
)
def test_a_secret_in_a_kernel_run_plugins_configurations_is_an_error_and_its_value_is_not_shown(
    tmp_path, configurations, named
):
    write(tmp_path, f_yaml=spec(configurations=configurations), f_py=f"{TW}@register_plugin\ndef f(): ...\n")

    _, flaws = found(tmp_path)

    assert [what.split()[1] for _, _, _, what in flaws] == ([named] if named else [])
    assert "a1b2" not in str(flaws)


def test_a_secret_in_a_kernel_run_plugins_python_is_an_error_once(tmp_path):
    write(
        tmp_path,
        f_yaml=spec(),
        f_py=f"{TW}KEYS = 3\nAPI_TOKEN = 'a1b2c3d4e5'\nNAME = 'a1b2c3d4e5'\n@register_plugin\ndef f(): ...\n",
    )
    write(
        tmp_path,
        g_yaml=spec("g", runs_in="host"),
        g_py=f"{TW}API_TOKEN = 'a1b2c3d4e5'\n@register_plugin\ndef f(): ...\n",
    )

    names, flaws = found(tmp_path)

    assert names == ["f", "g"]
    assert [(level, name, what) for level, name, _, what in flaws] == [
        ("error", "f.py", "API_TOKEN holds a secret, and f runs in the kernel, where generated code can read it")
    ]


def test_a_secret_is_where_it_belongs_in_a_host_run_plugin(tmp_path):
    configured = spec(configurations="{api_key: a1b2c3d4e5f6}", runs_in="host")
    write(tmp_path, f_yaml=configured, f_py=f"{TW}@register_plugin\ndef f(): ...\n")

    assert found(tmp_path) == (["f"], [])


IMPORTS = """
import json, no_such_one.sub
from no_such_two import x
from . import beside
import beside_me
from typing import TYPE_CHECKING
from taskweaver.plugin import Plugin
try:
    import no_such_three
except ImportError:
    no_such_three = None
try:
    import no_such_four
except ImportError as error:
    raise ImportError("install it") from error
if TYPE_CHECKING:
    import no_such_five
if json:
    import no_such_six
if __name__ == "__main__":
    import no_such_eight
with json:
    import no_such_nine

class A:
    def __call__(self):
        import no_such_seven
        import no_such_one
"""


def test_imports_are_missing_unless_they_are_installed_beside_optional_or_for_types_only(tmp_path):
    write(tmp_path, f_py=IMPORTS, beside_me_py="")

    assert missing_imports(tmp_path / "f.py") == (
        Missing("no_such_one", 2, True),
        Missing("no_such_two", 3, True),
        Missing("no_such_four", 13, True),
        Missing("no_such_six", 19, False),
        Missing("no_such_nine", 23, False),
        Missing("no_such_seven", 27, False),
    )


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "from taskweaver.plugin.utils import make_api_call",
            "imports taskweaver.plugin.utils, which has no counterpart",
        ),
        ("import taskweaver.utils as u", "imports taskweaver.utils, which has no counterpart"),
        ("from taskweaver.plugin import Plugin", ""),
        ("import urllib.request", "imports urllib.request and runs in the kernel, whose code reaches no network"),
        ("from urllib import request", "imports urllib.request and runs in the kernel"),
        ("from urllib.parse import quote", ""),
        ("from http import client", "imports http.client and runs"),
        ("from http import HTTPStatus", ""),
        (
            "open(os.path.join(os.path.dirname(__file__), '..', 'data', 'x.csv'))",
            "may read files outside of its folder",
        ),
        ("open(Path(__file__).parent.parent / 'x.csv')", "may read files outside of its folder"),
        ("open(Path(__file__).resolve().parents[1] / 'x.csv')", "may read files outside of its folder"),
        ("open(os.path.dirname(os.path.dirname(__file__)) + '/x.csv')", "may read files outside of its folder"),
        ("open(Path(__file__).parent / 'x.csv')", ""),
        ("open('../x.csv')", ""),
    ],
)
def test_what_a_plugin_can_not_reach_in_the_kernel_is_a_warning(tmp_path, body, said):
    head = f"import os\nfrom pathlib import Path\n{TW}@register_plugin\ndef f():\n    {body}\n"
    write(tmp_path, f_yaml=spec(), f_py=head)

    names, flaws = found(tmp_path)
    assert (names, [(level, line) for level, _, line, _ in flaws]) == (["f"], [("warning", 8)] * bool(said))
    assert said in "".join(what for *_, what in flaws)


def test_a_plugin_of_the_host_may_use_the_network(tmp_path):
    write(tmp_path, f_yaml=spec(runs_in="host"), f_py=f"{TW}import socket\n@register_plugin\ndef f(): ...\n")

    assert found(tmp_path) == (["f"], [])


def test_modules_of_taskweaver_that_are_not_there_are_named_when_a_project_is_read(tmp_path):
    late = f"{TW}@register_plugin\ndef f():\n    from taskweaver.plugin.utils import make_api_call\n"
    at_once = f"from taskweaver.plugin.base import Plugin\n{TW}@register_plugin\ndef g(): ...\n"
    write(tmp_path, f_yaml=spec(), f_py=late, g_yaml=spec("g"), g_py=at_once)

    specs, left_out, notes = project_plugins(tmp_path, sys.executable)

    assert [one.name for one in specs] == ["f"]
    assert "g imports taskweaver.plugin.base, which has no counterpart here" in "".join(left_out)
    assert "f imports taskweaver.plugin.utils, which has no counterpart here; calls will fail" in "".join(notes)


def test_what_a_disabled_plugin_would_need_is_a_warning_and_what_only_calls_need_too(tmp_path):
    at_once = f"{TW}import no_such\n@register_plugin\ndef f(): ...\n"
    write(tmp_path, f_yaml=spec(enabled="false"), f_py=at_once, g_yaml=spec("g"), g_py=at_once)
    write(tmp_path, h_yaml=spec("h"), h_py=f"{TW}@register_plugin\ndef h():\n    import no_such\n")

    names, flaws = found(tmp_path)

    assert names == ["h"]
    assert [(level, name) for level, name, _, _ in flaws] == [
        ("warning", "f.py"),
        ("error", "g.py"),
        ("warning", "h.py"),
    ]


def test_a_name_counts_only_for_plugins_that_a_run_would_take(tmp_path):
    right = f"{TW}@register_plugin\ndef f(): ...\n"
    write(tmp_path, a_yaml=spec("f", code="f", enabled="false"), b_yaml=spec("f", code="g"), f_py=right)
    write(tmp_path, c_yaml=spec("f", code="f"), g_py=f"import no_such\n{right}")

    names, flaws = found(tmp_path)

    assert names == ["f", "f"]
    assert [(level, name) for level, name, _, _ in flaws] == [("error", "g.py")]


def test_names_that_two_files_have_and_tests_that_are_for_nobody_are_errors(tmp_path):
    one = f"{TW}@register_plugin\ndef f(): ...\n"
    write(tmp_path, a_yaml=spec("f", code="f"), b_yaml=spec("f", code="f"), f_py=one)
    several = "".join(f"@plugin\ndef {one}(n) -> int:\n    'D.'\n" for one in "gh")
    write(tmp_path, m_py=f"{HEAD}{several}@test_plugin()\ndef check(call): ...\n@test_plugin()\ndef more(g): ...\n")

    names, flaws = found(tmp_path)

    assert names == ["f", "g", "h"]
    assert flaws == [
        ("error", "b.yaml", None, f"f is the name of {tmp_path / 'a.yaml'} too"),
        ("warning", "m.py", None, "g: a model is not told the type of n"),
        ("warning", "m.py", None, "h: a model is not told the type of n"),
        ("error", "m.py", 11, "check is a test of none of this file's plugins, so it is never run"),
    ]


TESTED = (
    f"{HEAD}import os\n"
    "@plugin\ndef twice(x: int) -> int:\n    'Double.'\n    return 2 * x\n"
    "@plugin\ndef home() -> str:\n    'Say.'\n    return os.environ['A_SECRET_OF_THE_HOST']\n"
    "@test_plugin(name='two')\ndef check_two(twice):\n    assert twice(1) == 2\n"
    "@test_plugin(name='odd')\ndef check_odd(twice):\n    assert twice(1) == 3, 'no'\n"
    "@test_plugin\ndef check_end(twice):\n    raise SystemExit(twice(1))\n"
    "@test_plugin(name='homely')\ndef check_home(home):\n    assert home()\n"
)


ENDING = (
    f"{HEAD}@plugin\ndef ending() -> int:\n    'End.'\n    return 1\n"
    "@test_plugin()\ndef check(ending):\n    import os\n    os._exit(3)\n"
)


def test_tests_run_in_a_real_kernel_in_its_sandbox_each_for_its_plugin(tmp_path, monkeypatch):
    monkeypatch.setenv("A_SECRET_OF_THE_HOST", "x")
    (tmp_path / "p").mkdir()
    raising = f"{HEAD}1 / 0\n@plugin\ndef raising() -> int:\n    'Raise.'\n"
    write(tmp_path / "p", m_py=TESTED, ending_py=ENDING, raising_py=raising)
    trial = PluginTests()

    with LocalKernel(tmp_path / "files") as kernel:
        trial.in_kernel(find_plugins(tmp_path / "p", shipped=None), kernel, seconds=30)

    ending, *others = [flaw.what for flaw in trial.flaws]
    assert (trial.passed, trial.failed) == (1, 4)
    assert ending.startswith("ending: its tests failed in the kernel: The kernel died while this cell ran: exit code 3")
    assert others == [
        "twice: odd failed in the kernel: AssertionError: no",
        "twice: check_end failed in the kernel: SystemExit: 2",
        "home: homely failed in the kernel: KeyError: 'A_SECRET_OF_THE_HOST'",
        "raising does not load in the kernel: ZeroDivisionError: division by zero",
    ]


def test_host_run_plugins_are_tested_in_this_process(tmp_path, monkeypatch):
    monkeypatch.setenv("A_SECRET_OF_THE_HOST", "x")
    write(tmp_path, m_py=TESTED.replace("@plugin\n", "@plugin(runs_in='host')\n"))
    trial = PluginTests()

    trial.run_in_host(find_plugins(tmp_path, shipped=None), tmp_path)

    assert (trial.passed, [flaw.what for flaw in trial.flaws]) == (
        2,
        ["twice: odd failed in the host: AssertionError: no", "twice: check_end failed in the host: SystemExit: 2"],
    )
    with HostPlugin(find_plugins(tmp_path, shipped=None)[0], folder=tmp_path) as loaded:
        assert loaded.run_tests() == [("two", ""), ("odd", "AssertionError: no"), ("check_end", "SystemExit: 2")]
