"""Markdown is rendered if that is quick, whatever its tables leave out."""

import pytest

from tw_autogen.render_limits import is_quickly_rendered


@pytest.mark.parametrize(
    "markdown",
    [
        "1|" * 99 + "\n" + "-|" * 99 + "\n" + ("1|" * 99 + "\n") * 98,
        "1|2\n-|-\n" + "1|2\n" * 4900,
        "| region | sales |\n|---|--:|\n| north | 12 |\n\n" * 400,
        "Head\n---\n" + "a\n" * 9900,
        "---\n" * 5000,
        "```\n" + "-|" * 4900 + "\n```",
    ],
    ids=["wide", "long", "many", "words below a head", "rules", "drawn"],
)
def test_markdown_whose_cells_are_filled_is_rendered_up_to_its_length(markdown):
    assert is_quickly_rendered(markdown)
    assert not is_quickly_rendered(markdown + " " * 20_000)


@pytest.mark.parametrize("before", ["", "> ", "   ", "> > ", "  >> "])
@pytest.mark.parametrize("divider", ["-|", ":-:|", " - |", "|-", "\t:--\t|"])
def test_a_table_with_empty_rows_is_none_that_is_rendered_quickly(before, divider):
    rows = ["a|" * 100, divider * 100, *["|"] * 150]

    assert not is_quickly_rendered("".join(f"{before}{row}\n" for row in rows))
