"""What a cell displays becomes a file in the folder, with a line about it; never too many, too large, or elsewhere."""

import json
import os

import pandas as pd
import pytest

from tests.kernel.filled import linux
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.safe_folder import SafeFolder

_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_JPEG = "/9j/4AAQSkZJRgABAQAAAQABAAD/wAARCAACAAMDASIAAhEBAxEB/9k="
_SHOW = "from IPython.display import display\ndisplay({}, raw=True)"
_BRIDGE = "import sys\nctx = sys.modules['tw_guest'].bridge_of_this_kernel.session.ctx\n"
_FIGURE = {"data": [{"type": "bar", "y": [1, 2]}, {"y": [3]}], "layout": {"title": {"text": "Sales"}}}
_CHART = {"title": {"text": "Sales"}, "layer": [{"mark": "line"}, {"mark": {"type": "point"}}]}

SHOWN = {
    "PNG": ({"image/png": _PNG, "text/plain": "<x>"}, "chart.png", "chart", "1 x 1 pixels"),
    "JPEG": ({"image/jpeg": _JPEG, "text/plain": "<x>"}, "image.jpg", "image", "3 x 2 pixels"),
    "SVG": (
        {"image/svg+xml": "<svg><title>A plan</title></svg>", "text/plain": "<x>"}, "drawing.svg", "svg", "A plan",
    ),
    "HTML": ({"text/html": "<p>some <b>words</b></p>", "text/plain": "<x>"}, "page.html", "html", "some words"),
    "JSON": ({"application/json": {"a": 1, "b": 2}, "text/plain": "<x>"}, "data.json", "json", "a, b"),
    "Plotly": (
        {"application/vnd.plotly.v1+json": _FIGURE, "text/html": "<div>", "text/plain": "Figure()"},
        "figure.plotly.json", "json", "Sales: bar, scatter",
    ),
    "Vega-Lite": (
        {"application/vnd.vegalite.v6.json": _CHART, "text/plain": "<VegaLite 6 object>"},
        "figure.vl.json", "json", "Sales: line, point",
    ),
    "Vega-Lite 5": (
        {"application/vnd.vegalite.v5+json": {"mark": "bar", "title": "Sales"}, "text/plain": "<VegaLite 5 object>"},
        "figure.vl.json", "json", "Sales: bar",
    ),
}  # fmt: skip


@pytest.fixture
def kernel(tmp_path):
    with LocalKernel(tmp_path / "session", settings=KernelSettings(allow_symlinks=True)) as kernel:
        yield kernel


def run(kernel, code):
    execution = kernel.execute(code, seconds=30)
    assert execution.ok, execution.error
    return execution


@pytest.mark.parametrize(("data", "name", "kind", "preview"), SHOWN.values(), ids=SHOWN.keys())
def test_what_is_displayed_becomes_a_file_with_a_line_about_it(kernel, data, name, kind, preview):
    (made,) = run(kernel, _SHOW.format(data)).artifacts

    assert (made.path, made.kind, made.preview) == (kernel.folder / name, kind, preview)
    assert made.path.stat().st_size > 10
    if name.endswith("json"):
        assert json.loads(made.path.read_text(encoding="utf-8")) == next(iter(data.values()))


CHARTS = {  # as these packages have it, which need not be installed
    "altair/__init__.py": (
        "class renderers:\n    known, active = {}, None\n"
        "    @classmethod\n    def register(kind, name, renderer): kind.known[name] = renderer\n"
        "    @classmethod\n    def enable(kind, name): kind.active = kind.known[name]\n"
        "class Chart:\n    def _repr_mimebundle_(self, *_, **__): return renderers.active({'mark': 'bar'})\n"
    ),
    "bokeh/__init__.py": "",
    "bokeh/io/__init__.py": (
        "hooks = {'jupyter': None}\n"
        "def install_notebook_hook(name, load, show_doc, show_app, overwrite=False):\n"
        "    assert overwrite\n    hooks[name] = load, show_doc\n"
        "def output_notebook(): hooks['jupyter'][0](None, False)\n"
        "def show(figure): hooks['jupyter'][1](figure, None, False)\n"
    ),
}


def test_numbers_that_json_does_not_have_are_null(kernel):
    run(kernel, f"{_BRIDGE}value = {{'a': float('nan'), 'b': [float('inf'), -float('inf'), 1.5, 'NaN'], 'c': object}}")
    shown = _SHOW.format("{'application/json': value}")
    made = run(kernel, f"{shown}\nctx.add_artifact('own', 'own.json', 'json', value)").artifacts

    def refuse(word):
        raise AssertionError(word)

    wanted = {"a": None, "b": [None, None, 1.5, "NaN"], "c": "<class 'object'>"}
    texts = [one.path.read_text(encoding="utf-8") for one in made]
    assert [json.loads(text, parse_constant=refuse) for text in texts] == [wanted, wanted]


def test_numbers_of_numpy_are_numbers_in_json_and_keys_of_any_type_are_texts(kernel):
    code = (
        f"{_BRIDGE}import numpy as np, pandas as pd\nday = pd.Timestamp('2024-01-01')\n"
        "value = {'rows': np.int64(3), 'mean': np.float32(1.5), 'gap': np.float32('nan'), 'yes': np.bool_(True),\n"
        "    'list': np.arange(1500), 'column': pd.Series([1, 2]), 'at': np.datetime64('2024-01-01', 'ns')}\n"
        "ctx.add_artifact('a', 'a.json', 'json', value)\n"
        "ctx.add_artifact('b', 'b.json', 'json', [{day: np.int64(1), ('x', 1): {np.int64(7): float('nan')}, 2: 'y'}])"
    )
    first, second = (json.loads(artifact.path.read_text(encoding="utf-8")) for artifact in run(kernel, code).artifacts)

    assert first == {
        "rows": 3, "mean": 1.5, "gap": None, "yes": True, "list": [*range(1500)], "column": [1, 2],
        "at": "2024-01-01T00:00:00.000000000",
    }  # fmt: skip
    assert second == [{"2024-01-01 00:00:00": 1, "('x', 1)": {"7": None}, "2": "y"}]


@pytest.mark.parametrize(
    ("asked", "kind", "name"),
    [
        ("sales v1.2", "chart", "sales_v1.2.png"),
        ("2024.", "df", "2024.csv"),
        ("a.1", "file", "a.1"),
        ("a.7z", "file", "a.7z"),
    ],
)
def test_digits_behind_a_dot_are_no_suffix(kernel, asked, kind, name):
    code = (
        f"{_BRIDGE}import pandas as pd, matplotlib.pyplot as plt\nfigure = plt.figure(figsize=(1, 1))\nplt.close()\n"
        f"values = {{'chart': figure, 'df': pd.DataFrame({{'a': [1]}}), 'file': b'x'}}\n"
        f"ctx.add_artifact('a', {asked!r}, {kind!r}, values[{kind!r}])"
    )

    assert run(kernel, code).result == repr(name)


def test_charts_that_want_scripts_of_a_page_are_kept_otherwise_or_named(kernel):
    for name, source in CHARTS.items():
        (kernel.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (kernel.folder / name).write_text(source)

    (chart,) = run(kernel, "import altair\naltair.Chart()").artifacts
    assert (chart.path.name, chart.preview) == ("figure.vl.json", "bar")
    shown = run(kernel, "from bokeh.io import output_notebook, show\noutput_notebook()\nshow('a figure')")
    assert shown.stdout.startswith("This figure of Bokeh is not kept: write it as a page, with `bokeh.io.save(figure, ")


def test_a_displayed_table_is_a_csv_file_with_its_shape_and_columns(kernel):
    table = "pd.DataFrame({'a': [1, 2], 'b': pd.Series(['x', '\ud800'], dtype=object)})"  # pyarrow's text refuses it
    (made,) = run(kernel, f"import pandas as pd\ndisplay({table})").artifacts

    assert (made.path.name, made.kind) == ("table.csv", "df")
    assert made.preview.startswith("DataFrame, 2 x 2, columns a: int64, b: ")
    assert made.path.read_text(encoding="utf-8") == "a,b\n1,x\n2,?\n"


def test_a_tables_index_is_written_if_it_says_something(kernel):
    code = "import pandas as pd\ndisplay(pd.DataFrame({'a': ['x', 'x', 'y'], 'b': [1, 2, 3]}).groupby('a').sum())"
    (made,) = run(kernel, code).artifacts

    assert made.path.read_text(encoding="utf-8") == "a,b\nx,3\ny,3\n"


def test_a_table_as_last_value_is_a_file_only_where_its_text_is_not_all_of_it(kernel):
    assert run(kernel, "import pandas as pd\nframe = pd.DataFrame({'a': range(500)})\nframe.head()").artifacts == ()

    (made,) = run(kernel, "frame").artifacts
    assert len(pd.read_csv(made.path)) == 500
    (made,) = run(kernel, "pd.DataFrame(0.5, range(100), range(40))").artifacts  # longer than a result may be
    assert pd.read_csv(made.path).shape == (100, 40)
    (made,) = run(kernel, "pd.DataFrame({'text': ['x' * 500]})").artifacts
    assert pd.read_csv(made.path).text[0] == "x" * 500


def test_files_that_are_too_large_or_too_many_are_left_out_and_told(tmp_path):
    with LocalKernel(tmp_path, settings=KernelSettings(max_artifacts=3, max_artifact_mb=1)) as kernel:
        large = "from IPython.display import HTML, display\ndisplay(HTML('x' * 1_100_000))"
        assert "a page was left out: more than 1 MB (kernel.max_artifact_mb)" in str(run(kernel, large).logs)
        table = "import pandas as pd\ndisplay(pd.DataFrame({'a': range(1_000_000)}))"
        assert "a table was left out: more than 1 MB" in str(run(kernel, table).logs)
        many = run(kernel, "for i in range(10): display(HTML(f'<b>{i}</b>'))")

    assert len(many.artifacts) == 3
    assert "7 more displayed files were left out" in str(many.logs)
    assert len(list(tmp_path.glob("*.html"))) == 3
    assert list(tmp_path.glob("*.csv")) == []


def test_a_table_that_can_not_be_written_costs_only_its_file(kernel):
    code = "import pandas as pd\nclass Own(pd.DataFrame):\n    def to_csv(self, *args, **kwargs): raise OSError('no')\n"
    execution = run(kernel, f"{code}display(Own({{'a': [12345]}}))")

    assert "12345" in execution.stdout
    assert execution.artifacts == ()
    assert "a table could not be written: OSError" in str(execution.logs)


def test_names_are_made_safe_and_never_lead_elsewhere(kernel):
    names = [
        "../../x.txt",
        "/etc/x.txt",
        "a b\n.txt",
        ".hidden",
        "con.txt",
        "\ud800.txt",
        "x" * 300 + ".txt",
        "データ" * 40 + ".txt",
        "",
    ]
    made = run(kernel, f"{_BRIDGE}for name in {names!r}: ctx.add_artifact('n', name, 'txt', 'text')").artifacts

    assert len(made) == len(names)
    for one in made:
        assert one.path.parent == kernel.folder
        assert not one.path.name.startswith(".")
        assert len(one.path.name) <= 100
        assert len(os.fsencode(one.path.name)) <= 200
        assert one.path.read_text(encoding="utf-8") == "text"


@pytest.mark.skipif(not linux, reason="links are made in a sandbox only")
def test_links_lead_nothing_out_of_the_folder_and_nothing_in(kernel, tmp_path):
    outside = tmp_path / "outside.txt"
    outside.write_text("secret", encoding="utf-8")
    code = f"import os\nos.symlink({str(outside)!r}, 'page.html')\nos.symlink({str(tmp_path)!r}, 'deep')\n"
    run(kernel, f"{code}from IPython.display import HTML, display\ndisplay(HTML('<b>mine</b>'))")
    assert outside.read_text(encoding="utf-8") == "secret"

    bridge = "import pathlib, sys\nctx = sys.modules['tw_guest'].bridge_of_this_kernel.session.ctx\n"
    promise = "_, path = ctx.create_artifact_path('n', 'link.txt', 'txt')\n"
    made = run(kernel, f"{bridge}{promise}os.symlink({str(outside)!r}, path)")
    assert made.artifacts == ()
    assert "was never written" in str(made.logs)

    said = "from tw_guest.plugin_context import Kept\nctx._made.kept.append(Kept('n', 'txt', pathlib.Path({!r}), ''))"
    for place in (str(outside), "deep/outside.txt", "../outside.txt", "link.txt"):
        assert run(kernel, f"{bridge}{said.format(str(kernel.folder / place))}").artifacts == ()


@pytest.mark.skipif(not linux or os.geteuid() != 0, reason="only root has files of several users")
def test_a_second_name_of_somebody_elses_file_is_no_artifact_and_is_not_given_away(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret", encoding="utf-8")
    secret.chmod(0o600)
    folder = tmp_path / "session"
    folder.mkdir()
    os.link(secret, folder / "linked.txt")
    with LocalKernel(folder, settings=KernelSettings(allow_symlinks=True)) as kernel:
        assert not kernel.execute("open('linked.txt').read()", seconds=30).ok
        bridge = "import pathlib, sys\nctx = sys.modules['tw_guest'].bridge_of_this_kernel.session.ctx\n"
        kept = "from tw_guest.plugin_context import Kept\nkept = Kept('n', 'txt', pathlib.Path('linked.txt'), '')\n"
        said = f"{kept}ctx._made.kept.append(kept)"
        assert run(kernel, bridge + said).artifacts == ()
        run(kernel, "import os\nopen('own.txt', 'w').write('x')\nos.link('own.txt', 'twice.txt')")
        twice = said.replace("linked", "twice")
        assert len(run(kernel, bridge + twice).artifacts) == 1

    assert secret.stat().st_uid == 0


def test_sessions_of_the_command_line_survive_a_kernel_in_the_same_folder(tmp_path):
    kept = tmp_path / ".tw" / "sessions" / "x" / "precious.csv"
    kept.parent.mkdir(parents=True)
    kept.write_text("precious", encoding="utf-8")

    with LocalKernel(tmp_path) as kernel:
        assert kernel.execute("import pandas as pd\nt = pd.DataFrame({'a': [1]})", seconds=60).ok
        assert len(kernel.get("t")) == 1

    assert kept.read_text(encoding="utf-8") == "precious"
    assert [path.name for path in tmp_path.iterdir()] == [".tw"]


@pytest.mark.skipif(not linux or os.geteuid() != 0, reason="only root has files of several users")
@pytest.mark.parametrize("name", [".tw-exchange", ".checkpoint", ".checkpoint.old"])
def test_what_another_user_has_closed_is_neither_removed_nor_read_for_code_that_renames_it(tmp_path, name):
    closed, top = tmp_path / "alice", tmp_path / "top.csv"
    (closed / "deep").mkdir(parents=True)
    for one in (closed / "keys.csv", closed / "deep" / "x", top):
        one.write_text("v\n1\n", encoding="utf-8")
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "open" / "seen.csv").write_text("v\n1\n", encoding="utf-8")
    for path in (closed, *closed.rglob("*"), top, tmp_path / "open", tmp_path / "open" / "seen.csv"):
        os.chown(path, 1000, 1000)
    for one in (closed, closed / "deep"):
        one.chmod(0o700)
    for one in (closed / "keys.csv", top):
        one.chmod(0o600)
    with LocalKernel(tmp_path) as kernel:
        with SafeFolder(tmp_path) as folder:
            for file in ("alice/keys.csv", "top.csv"):  # before it starts, too
                with pytest.raises(PermissionError, match="closed"):
                    folder.open_file(file)
        ran = run(
            kernel, f"import os, shutil\nshutil.rmtree({name!r}, ignore_errors=True)\nos.rename('alice', {name!r})"
        )
        assert ran.ok
        with SafeFolder(tmp_path) as folder:
            for file in (f"{name}/keys.csv", "top.csv"):
                with pytest.raises(PermissionError, match="closed"):
                    folder.open_file(file)
            assert [one.name for one in folder.walk() if one.name.startswith(f"{name}/")] == []
            with pytest.raises(PermissionError, match="closed"):
                folder.remove_tree(name)
            assert folder.read_file("open/seen.csv", limit_bytes=10) == b"v\n1\n"

    assert sorted(path.name for path in (tmp_path / name).rglob("*")) == ["deep", "keys.csv", "x"]
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(not linux or os.geteuid() != 0, reason="only root has files of several users")
@pytest.mark.parametrize("name", [".tw-exchange", ".checkpoint", ".checkpoint.old"])
@pytest.mark.parametrize("mode", [0o755, 0o1777])
def test_a_folder_of_another_user_that_code_may_only_read_stays_as_it_is(tmp_path, name, mode):
    theirs = tmp_path / "alice"
    (theirs / "deep").mkdir(parents=True)
    for one in (theirs / "thesis.txt", theirs / "deep" / "x"):
        one.write_text("v", encoding="utf-8")
    for path in (theirs, *theirs.rglob("*")):
        os.chown(path, 1000, 1000)
    theirs.chmod(mode)
    with LocalKernel(tmp_path) as kernel:
        assert run(
            kernel, f"import os, shutil\nshutil.rmtree({name!r}, ignore_errors=True)\nos.rename('alice', {name!r})"
        ).ok
        with SafeFolder(tmp_path) as folder:
            assert folder.read_file(f"{name}/thesis.txt", limit_bytes=10) == b"v"
            for change in (
                lambda: folder.remove(f"{name}/thesis.txt"),
                lambda: folder.write_file(f"{name}/new", b""),
                lambda: folder.make_folder(f"{name}/new"),
                lambda: folder.remove_tree(name),
            ):
                with pytest.raises(PermissionError, match="of another user"):
                    change()

    assert sorted(path.name for path in (tmp_path / name).rglob("*")) == ["deep", "thesis.txt", "x"]
