"""Charts and displayed things become files, each once, whether shown or not."""

import pytest

from tw_autogen.kernel import KernelSettings, LocalKernel

pytest.importorskip("matplotlib", reason="charts need the extra `data`")

DRAW = "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\n"


def charts(execution):
    return [artifact for artifact in execution.artifacts if artifact.path.suffix == ".png"]


@pytest.mark.parametrize("end", ["", "plt.show()", "plt.show();", "None"])
def test_a_chart_is_kept_with_and_without_show(run, end):
    found = charts(run(DRAW + end))

    assert len(found) == 1
    assert found[0].path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("end", ["", "plt.show()"])
@pytest.mark.parametrize("save", ["plt.savefig('mine.png')", "plt.savefig(fname='mine.png', dpi=50)"])
def test_a_chart_that_the_code_saved_itself_is_not_kept_a_second_time(run, kernel, save, end):
    execution = run(f"{DRAW}{save}\n{end}")
    assert execution.ok, execution.error

    assert charts(execution) == []
    assert (kernel.folder / "mine.png").exists()
    assert len(charts(run(DRAW))) == 1


def test_two_figures_are_two_charts_and_the_next_cell_has_none(run):
    assert len(charts(run(f"{DRAW}plt.figure()\nplt.plot([3, 1])"))) == 2
    assert charts(run("1")) == []


def test_a_figure_that_is_the_last_value_is_kept_once(run):
    assert (
        len(charts(run("import matplotlib.pyplot as plt\nfigure, axes = plt.subplots()\naxes.plot([1])\nfigure"))) == 1
    )


def test_displayed_html_and_svg_become_files(run):
    execution = run(
        "from IPython.display import HTML, SVG, display\ndisplay(HTML('<b>hi</b>'))\ndisplay(SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>'))"
    )

    assert sorted(artifact.path.suffix for artifact in execution.artifacts) == [".html", ".svg"]


@pytest.mark.parametrize(
    "code",
    [
        f"import matplotlib\nmatplotlib.use('Agg')\n{DRAW}plt.show()",
        f"import matplotlib\nmatplotlib.use('agg')\n{DRAW}",
        f"import matplotlib.pyplot as plt\nplt.switch_backend('Agg')\n{DRAW}figure = plt.gcf()\nfigure",
        f"import os\nos.environ['MPLBACKEND'] = 'Agg'\n{DRAW}plt.show()",
    ],
)
@pytest.mark.parametrize("preload", [(), ("matplotlib.pyplot",)])
def test_a_chart_is_kept_where_code_asks_for_a_backend_without_a_screen(code, preload):
    with LocalKernel(settings=KernelSettings(preload=preload)) as kernel:
        first, then = kernel.execute(code, seconds=60), kernel.execute(DRAW, seconds=60)

    assert first.ok, first.error
    assert [len(charts(one)) for one in (first, then)] == [1, 1]


def test_a_figure_without_pyplot_that_is_the_last_value_is_kept():
    with LocalKernel(settings=KernelSettings(preload=())) as kernel:
        made = kernel.execute(
            "from matplotlib.figure import Figure\nfigure = Figure()\nfigure.subplots().plot([1])\nfigure", seconds=60
        )

    assert made.ok, made.error
    assert len(charts(made)) == 1


PLOTLY = """
class ExternalRenderer:
    pass
class Renderers(dict):
    default = "plotly_mimetype"
class ipython_display:
    from IPython.display import display
class plotly_renderer:
    @staticmethod
    def to_mimebundle(figure):
        return {"application/vnd.plotly.v1+json": figure}
renderers = Renderers()
def show(figure):
    renderer = renderers.get(renderers.default)
    if not isinstance(renderer, ExternalRenderer):
        raise ValueError("Mime type rendering requires nbformat>=4.2.0 but it is not installed")
    renderer.render(figure)
"""


def test_a_figure_of_plotly_is_shown_without_nbformat():
    with LocalKernel() as kernel:
        (kernel.folder / "plotly" / "io").mkdir(parents=True)
        (kernel.folder / "plotly" / "io" / "_renderers.py").write_text(PLOTLY, encoding="utf-8")
        code = "import plotly.io._renderers\nplotly.io._renderers.show({'data': [{'type': 'bar'}]})"
        shown = kernel.execute(code, seconds=60)

    assert shown.ok, shown.error
    assert [(artifact.kind, artifact.preview) for artifact in shown.artifacts] == [("json", "bar")]


BLANK = {
    "no rows": "axes.plot([])\nfigure.savefig('units.png')",
    "only nan, shown": "axes.plot([1, 2], [float('nan')] * 2)",
    "no points": "axes.scatter([], [])\naxes.set_title('Units')\nfigure.suptitle('All')\nfigure",
    "no bars": "axes.bar([], [])\nfigure.savefig('units.png')",
}
DRAWN = {
    "a point": "axes.plot([1], [2], 'o')",
    "a line over all": "axes.axhline(3)",
    "points": "axes.scatter([1, 2], [3, 4])\nfigure.savefig('units.png')",
    "bars": "axes.bar(['a'], [1])",
    "a map of colours": "axes.pcolormesh([[1, 2], [3, 4]])",
    "a picture": "axes.imshow([[1, 2]])",
    "a pie": "axes.pie([1, 2])",
    "contours": "axes.contour([[1, 2], [3, 4]])",
    "an area": "axes.fill_between([1, 2], [3, 4])",
    "words": "axes.text(0.5, 0.5, 'no data')",
    "one of two": "figure.add_subplot(222).plot([1, 2])",
    "in three dimensions": "figure.clear()\nfigure.add_subplot(projection='3d').plot([1, 2], [3, 4], [5, 6])",
}


@pytest.mark.parametrize("case", [*BLANK, *DRAWN])
def test_a_chart_in_which_nothing_is_drawn_is_named(run, case):
    code = BLANK.get(case) or DRAWN[case]
    execution = run(f"import matplotlib.pyplot as plt\nfigure, axes = plt.subplots()\n{code}")

    logged = [log.message for log in execution.logs]
    name = "units.png" if "savefig" in code else "a chart"
    assert logged == ([f"nothing is drawn in {name}: its axes hold no data"] if case in BLANK else [])
