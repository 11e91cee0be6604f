"""Charts and displayed things become files, each once, whether shown or not."""

import pytest

from tw_autogen.kernel import KernelSettings, LocalKernel

pytest.importorskip("matplotlib", reason="charts need the extra `data`")

DRAW = "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\n"


def charts(execution):
    return [one for one in execution.artifacts if one.path.suffix == ".png"]


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

    assert sorted(one.path.suffix for one in execution.artifacts) == [".html", ".svg"]


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
