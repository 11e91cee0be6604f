from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tw_autogen.code_interpreter import Finding, Policy, verify
from tw_autogen.code_interpreter.policy import POLICIES

PLUGINS = ("anomaly_detection", "sql_pull_data")
STRICT = POLICIES["strict"]


def cells(name):
    """Read `# --- title` and the cell below it, again and again."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    pairs = [part.partition("\n") for part in text.split("# --- ")[1:]]
    return [pytest.param(code, id=title.replace(" ", "_")) for title, _, code in pairs]


HONEST = cells("honest_cells.txt")
ATTACKS = cells("attacks.txt")
OWN_ATTACKS = cells("own_attacks.txt")
STRICT_ATTACKS = cells("strict_attacks.txt")


def said(code, policy=Policy(), plugins=PLUGINS):  # noqa: B008 - a frozen value
    return [str(one) for one in verify(code, policy, plugins=plugins)]


def test_the_tables_are_as_long_as_they_should_be_and_no_title_stands_twice():
    assert len(HONEST) >= 200
    assert len(ATTACKS) >= 60
    for table in (HONEST, ATTACKS, OWN_ATTACKS, STRICT_ATTACKS):
        assert len({case.id for case in table}) == len(table)


@pytest.mark.parametrize("code", HONEST)
def test_an_honest_cell_passes_the_default_policy(code):
    assert said(code) == []


@pytest.mark.parametrize("code", ATTACKS)
def test_an_attack_is_found_by_the_default_policy_with_a_remedy(code):
    found = verify(code, Policy(), plugins=PLUGINS)

    assert found
    assert all(one.remedy.endswith(".") for one in found)
    assert all(1 <= one.line <= code.count("\n") + 1 for one in found)
    assert {one.kind for one in found} - {"syntax"}, "an attack is no syntax error"


@pytest.mark.parametrize("code", [*STRICT_ATTACKS, *ATTACKS, *OWN_ATTACKS])
def test_an_attack_is_found_by_a_strict_policy(code):
    assert said(code, STRICT)


@pytest.mark.parametrize(
    "code",
    ["df.drop(columns=['sales.csv'])", "ax.set_xlabel('data.csv')", "names.isin(['report.pdf', 'km/h', '1/2'])"],
)
def test_a_word_that_looks_like_a_file_is_none_where_nothing_is_opened(code):
    assert said(code, STRICT) == []


@pytest.mark.parametrize("code", [case for case in HONEST if "quer" in case.id])
def test_an_expression_that_is_written_out_passes_a_strict_policy(code):
    assert said(code, STRICT) == []


@pytest.mark.parametrize(
    "code",
    [
        "from scipy import stats\nfor name in ['norm', distribution]:\n    getattr(stats, name)",
        "getattr(df, 'mean')()",
        "limit = 3\ndf.query(f'a > {limit}')\ndf.query(f'a > {len(df)} and b < {x:.2f}')",
        "how = 'mean'\ndf.agg(how)\ndf.groupby('save').agg({'load': 'sum', 'open': ['min', 'max']})",
        "import io\nbuffer = io.StringIO()\ndf.info(buf=buffer)",
        "from numpy.lib.stride_tricks import sliding_window_view\nnp.testing.assert_allclose(a, b)",
        "from mpl_toolkits.mplot3d import Axes3D",
        "from scipy.datasets import ascent\nascent().mean()",
        "import statsmodels.api as sm\nsm.datasets.longley.load()\nsm.datasets.longley.load_pandas().data",
        "from sklearn.datasets import load_iris\nload_iris(as_frame=True)",
        "plt.rcParams['figure.figsize'] = (w, h)\nplt.rcParams.update({'font.size': 12})",
        "pd.set_option('display.max_rows', n)",
        "template = '{:>10}'\nprint(template.format(x), '{} of {}'.format(1, 2))\ndf.style.format('{:.2f}')",
        "import statsmodels.formula.api as smf\nsmf.ols('y ~ np.log(x) + C(g)', data=df).fit()",
        "pd.to_datetime(s).dt.to_period('M').to_timestamp().to_numpy()\ndf.to_dict()\ndf.to_string(index=False)",
        "def f(x: int | None, y: list[float]) -> 'pd.DataFrame':\n    return x",
        "json.loads(json.dumps(d))\nfunctools.lru_cache(f)\na.flags.writeable",
    ],
)
def test_honest_work_without_files_passes_a_strict_policy(code):
    assert said(code, STRICT) == []


def test_a_computed_expression_is_told_with_its_line_and_what_to_write():
    (found,) = verify('q = f"a > {limit}"\ndf.query(q)', STRICT)

    assert str(found) == (
        "line 2 (function): '.eval' and '.query' of a text that is not written out in the call are not allowed"
    )
    assert "df.query('a > @limit')" in found.remedy


@pytest.mark.parametrize("code", STRICT_ATTACKS)
def test_what_only_a_strict_policy_refuses_passes_the_default(code):
    assert said(code) == []


@pytest.mark.parametrize(
    ("code", "policy", "expected"),
    [
        (
            "import os\nos.getcwd()",
            Policy(modules=frozenset({"math"})),
            ["line 1 (module): import of 'os' is not allowed; allowed: math"],
        ),
        (
            "from os.path import join\nimport os.path\nimport os",
            Policy(modules=frozenset({"os.path", "math"})),
            [],
        ),
        (
            "import os.path\nos.listdir('.')",
            Policy(modules=frozenset({"os.path"})),
            ["line 2 (module): use of 'os.listdir' is not allowed; allowed: os.path"],
        ),
        (
            "import json",
            Policy(modules=frozenset()),
            ["line 1 (module): import of 'json' is not allowed; allowed: none"],
        ),
        ("import subprocess", Policy(), ["line 1 (module): import of 'subprocess' is not allowed"]),
        (
            "import subprocess as s\ns.run(['id'])\ns.run(['id'])",
            Policy(),
            ["line 1 (module): import of 'subprocess' is not allowed"],
        ),
        ("e = eval", Policy(), ["line 1 (function): 'eval' is not allowed"]),
        ("os.system('id')", Policy(), ["line 1 (function): 'os.system' is not allowed"]),
        ("os.sched_yield()", Policy(), ["line 1 (function): 'os.sched_yield' is not allowed"]),
        (
            "pd.io.common.os.system('id')",
            Policy(),
            ["line 1 (module): use of 'os' through 'pandas.io.common' is not allowed"],
        ),
        ("f = [os]", Policy(), ["line 1 (module): 'os' may not be passed around, renamed or looked into"]),
        ("Path('a').unlink()", Policy(), ["line 1 (function): '.unlink' is not allowed"]),
        ("x.__globals__", Policy(), ["line 1 (attribute): '__globals__' is not allowed"]),
        ("!ls -l", Policy(), ["line 1 (shell): shell command 'ls -l' is not allowed"]),
        ("%ls -l", Policy(), ["line 1 (shell): shell magic '%ls' is not allowed"]),
        ("%sx id", Policy(), ["line 1 (shell): shell magic '%sx' is not allowed"]),
        (
            "%run a.py",
            Policy(magics=frozenset({"time", "matplotlib"})),
            ["line 1 (magic): magic '%run' is not allowed; allowed: %matplotlib, %time"],
        ),
        ("%time\n%matplotlib", Policy(magics=frozenset({"time", "matplotlib"})), []),
        (
            "anomaly_detection = 1",
            Policy(),
            ["line 1 (plugin): 'anomaly_detection' is a plugin and may not be replaced"],
        ),
        ("anomaly_detection.ctx", Policy(), ["line 1 (plugin): 'anomaly_detection.ctx' is not allowed"]),
        ("x = (1,\ny = 2", Policy(), ["line 1 (syntax): SyntaxError: '(' was never closed"]),
        ("return 1", Policy(), ["line 1 (syntax): SyntaxError: 'return' outside function"]),
        ("!ls", Policy(shell=True), []),
        ("!pip install x", Policy(shell=True), ["line 1 (install): packages can't be installed here"]),
    ],
)
def test_a_finding_says_where_and_what(code, policy, expected):
    assert said(code, policy) == expected


@pytest.mark.parametrize(
    "code",
    [
        "!pip install pandas",
        "%pip install -q pandas",
        "!python -m pip install pandas",
        "!conda install -y pandas  # a comment",
        "!uv pip install pandas",
        '!pip install "tabulate>=0.9" -q',
        "!conda install 'numpy<2'",
        "x = !pip3 install pandas",
    ],
)
def test_installing_is_one_finding_of_its_own_kind(code):
    found = verify(f"# first\n\n{code}", Policy())

    assert [one.kind for one in found] == ["install"]
    assert "use what is installed" in found[0].remedy


@pytest.mark.parametrize(
    "code",
    [
        "!pip install x",
        "%pip install -q x",
        "%pip install x>=2",
        "!python -m pip install 'x>=2'",
        "x = !pip3 install x",
    ],
)
@pytest.mark.parametrize("install", ["ask", "allow"])
def test_where_the_host_installs_a_request_passes(code, install):
    assert verify(code, Policy(install=install)) == []


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("!conda install x", "install"),
        ("!pip install x; rm -rf y", "shell"),
        ("!pip install x && ls", "shell"),
        ("!pip install x\n!ls", "shell"),
        ("!pip install {name}", "magic"),
        ("!pip install {open('f').read()}", "install"),
        ("%pip install {x}", "magic"),
        ("%pip uninstall x", "install"),
        ("import subprocess", "module"),
    ],
)
def test_where_the_host_installs_nothing_else_passes(code, kind):
    assert [one.kind for one in verify(code, Policy(install="allow"))] == [kind]


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("\n\n# a comment\n\neval('1')\n", [5]),
        ("%matplotlib inline\n\nimport math\n%time math.pi\neval('1')\n", [5]),
        ("!echo \\\n  a \\\n  b\n\neval('1')", [1, 5]),
        ("'''\n%x\n!ls\n'''\nx = 5 \\\n  % 3\neval('1')", [7]),
        ("%%time\n\n# a comment\neval('1')\n%timeit \\\n  eval('2')\neval('3')", [4, 5, 7]),
        ("!ls \\\n -l\n!ls \\\n -l\neval('1')", [1, 3, 5]),
        ("\n\nx?\nx = !ls \\\n -a\neval('1')", [4, 6]),
        (">>> x?\n>>> y = !ls\n>>> eval('1')", [2, 3]),
        ("\n  %%time\n  eval('1')", [3]),
        ("    x = 1\n\n    eval('1')", [3]),
        (">>> x = 1\n>>> eval('1')", [2]),
        ("x = (\n    df\n    .rmtree()\n)\n", [3]),
        ("from os import (\n    path,\n    system,\n)", [3]),
        ("import math\n# \x0c a form feed\neval('1')", [3]),
        ("# \u2028 a line separator\nx?\neval('1')", [3]),
        ("a = 1\r\n!ls\r\neval('1')\r\n", [2, 3]),
        ("x = 1\n\n%matplotlib inline\n\ndef f(:\n    pass", [5]),
        ("x = 1\nx = = 2\n", [2]),
        ("eval('1'); exec('2')\nexit()", [1, 1, 2]),
        ("x = 'why?'\r\n" * 150 + "eval('1')", [151]),
        ("x = 1\n" * 150 + "%time 1\n!echo \\\n a\n" + "x = 1\n" * 150 + "eval('1')", [152, 304]),
    ],
)
def test_lines_are_those_of_the_code_as_written(code, lines):
    assert [one.line for one in verify(code, Policy())] == lines


def test_a_refused_import_is_told_once_and_other_faults_beside_it():
    assert said("import socket\ns = socket.socket()\nsocket.gethostname()\neval('1')") == [
        "line 1 (module): import of 'socket' is not allowed",
        "line 4 (function): 'eval' is not allowed",
    ]


@pytest.mark.parametrize(
    "code",
    [
        "anomaly_detection = lambda df: df",
        "def anomaly_detection(df):\n    return df",
        "import math as anomaly_detection",
        "for anomaly_detection in []:\n    pass",
        "with open('a') as anomaly_detection:\n    pass",
        "if True:\n    anomaly_detection: int = 3",
        "del anomaly_detection",
        "def f():\n    global anomaly_detection\n    anomaly_detection = 1",
        "print(anomaly_detection := 3)",
        "a, (b, anomaly_detection) = 1, (2, 3)",
    ],
)
def test_a_plugin_can_not_be_replaced(code):
    found = verify(code, Policy(), plugins=PLUGINS)

    assert [one.kind for one in found] == ["plugin"]
    assert "Choose another name" in found[0].remedy


def test_a_local_variable_with_a_plugins_name_is_free():
    assert said("def f(anomaly_detection):\n    return anomaly_detection.ctx\n[1 for sql_pull_data in []]") == []


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("anomaly_detection(df, 'ts', 'val')", []),
        ("x = print('a')", ["line 1 (function): call of 'print' is not allowed; allowed: len"]),
        ("len(df)\ndf.head()", ["line 2 (function): call of '.head' is not allowed; allowed: len"]),
        (
            "g = [print]\ng[0]('a')",
            [
                "line 1 (function): call of 'print' is not allowed; allowed: len",
                "line 2 (function): call of 'g[0]' is not allowed; allowed: len",
            ],
        ),
        ("raise ValueError('no')", ["line 1 (function): call of 'ValueError' is not allowed; allowed: len"]),
        ("x = None if True else NotImplemented", []),
        ("def mine(x):\n    return len(x)\nmine(3)", []),
        ("import math\nmath.sqrt(2)", ["line 2 (function): call of 'math.sqrt' is not allowed; allowed: len"]),
    ],
)
def test_under_a_list_of_functions_only_these_and_plugins_may_be_called(code, expected):
    assert said(code, Policy(functions=frozenset({"len"}))) == expected


def test_names_with_a_star_a_dot_or_a_path_are_understood_in_a_users_own_policy():
    policy = Policy(blocked_functions=frozenset({"pandas.read_*", ".to_csv", "numpy.lib", "sorted"}))

    assert said("pd.read_csv('a')\ndf.to_csv('b')\nnp.lib.format\nsorted(x)\npd.concat(x)\nnp.sort(x)", policy) == [
        "line 1 (function): 'pandas.read_csv' is not allowed",
        "line 2 (function): '.to_csv' is not allowed",
        "line 3 (function): 'numpy.lib' is not allowed",
        "line 4 (function): 'sorted' is not allowed",
    ]


def test_a_module_whose_parts_are_not_listed_is_whole():
    code = "import os as o\nfs = [o]\no.sched_yield()"

    assert said(code, Policy(parts=frozenset())) == []
    assert said(code) == ["line 1 (module): 'os' may not get another name"]


def test_remedies_fit_the_reason():
    def remedy(code):
        return verify(code, Policy())[0].remedy

    assert "environment" in remedy("os.environ")
    assert "new name" in remedy("os.remove('a')")
    assert "fetched" in remedy("import requests")
    assert "`import` statement" in remedy("__import__('json')")
    assert "Nobody can type" in remedy("input()")
    assert remedy("exit()") == "Leave it out: a cell ends after its last line, and before that with `sys.exit(0)`."


def test_nothing_in_a_cell_is_run_or_imported(tmp_path, monkeypatch):
    (tmp_path / "trap.py").write_text("raise RuntimeError('imported')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    verify("import trap\nopen('made.txt', 'w').write('x')\n%time open('made.txt', 'w')\n1 / 0", Policy())

    assert not [name for name in set(sys.modules) - before if not name.startswith("IPython")]
    assert [path.name for path in tmp_path.iterdir()] == ["trap.py"]


@pytest.mark.parametrize(
    "code",
    [
        "x = " + "(" * 5000 + ")" * 5000,
        "x = " + "1 + " * 3000 + "1",
        "x" + ".a" * 3000,
        "x = '\x00'",
        "%time " * 50 + "1",
        "%matplotlib\n" * 101,
        "  x = 1\n y = 2\n!ls",
        "'''",
        "x = \\",
        "",
        "%config InlineBackend.x =% '''eval('1')",
        "x = '\ud800'",
        b"eval('1')",
        "x = '" + "_" * 200_000 + "'",
        "!ls\n" * 99,
    ],
    ids=[
        "nested",
        "long sum",
        "long chain",
        "null byte",
        "deep magics",
        "many magics",
        "dedent",
        "quote",
        "slash",
        "empty",
        "a quote in a magic",
        "a surrogate",
        "bytes",
        "underscores",
        "many commands",
    ],
)
def test_odd_text_ends_in_findings_or_none_and_never_in_an_exception(code):
    for policy in POLICIES.values():
        assert all(isinstance(one, Finding) for one in verify(code, policy))


@pytest.mark.parametrize(
    "code", ["load = pd.read_csv('x.csv'", "time = df['t'][\nx", "run = 1 +\n", "env: dict = {", "ls += (1"]
)
def test_a_variable_with_the_name_of_a_magic_is_none(code):
    (found,) = verify(code, Policy())

    assert found.remedy == "Mend the syntax and send the whole cell again."


@pytest.mark.parametrize("name", ["license", "input", "credits", "copyright"])
def test_a_variable_of_an_earlier_cell_may_be_named_as_what_waits_for_somebody(name):
    assert verify(f"{name}.head()", Policy(), variables=[name]) == []
    assert verify(f"{name}.head()", Policy(), variables=["x"])
    assert verify(f"{name} = 1\ndel {name}\n{name}()", Policy(), variables=[name])
    assert verify("breakpoint()", Policy(), variables=["breakpoint"])


@pytest.mark.parametrize("code", ["pip install pandas", "rm -rf results", "cat a.txt", "  run mark.py"])
def test_a_magic_without_its_sign_is_a_syntax_error_whose_remedy_names_the_sign(code):
    (found,) = verify(code, Policy())

    assert found.kind == "syntax"
    assert found.remedy == (
        f"A magic begins with `%`, a shell command with `!`: `{code.split()[0]}` without is Python."
    )


def test_findings_are_values():
    assert verify("eval('1')", Policy()) == verify("eval('1')", Policy())
    assert len(set(verify("eval('1')\neval('2')", Policy()))) == 2


def steps_of(code, policy):
    """Count the calls that a check makes: the same on every machine."""
    steps = 0

    def count(frame, event, arg):
        nonlocal steps
        steps += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        verify(code, policy)
    finally:
        sys.setprofile(before)
    return steps


@pytest.mark.parametrize("policy", ["default", "strict"])
@pytest.mark.parametrize(
    "line",
    [
        "x = x + 1",
        "for k in v: v = k",
        "with open(p) as p: q = p",
        "def g(): return x",
        "df['a'] = df['b'].map(lambda v: v + 1)",
        "import numpy as np",
        "f = np.sum",
        "(y := x)",
        "del x; x = 1",
    ],
)
def test_a_name_that_is_bound_again_and_again_costs_no_more_each_time(line, policy):
    few, many = (
        steps_of(f"import numpy as np\nx = 1\n{line}\n" + f"{line}\n" * lines, POLICIES[policy]) for lines in (100, 800)
    )

    assert many < 9 * few


def test_a_name_is_the_cells_own_behind_each_binding_that_holds_and_nowhere_else():
    code = "exec(1)\nfor exec in []: exec(2)\nexec(3)\nif x:\n    exec = 1\n    exec(4)\nexec(5)\nexec = 6\nexec(7)"

    assert [one.line for one in verify(code, STRICT) if "exec" in str(one)] == [1, 3, 7]
