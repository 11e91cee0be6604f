"""Code that a lexer would read for minutes is shown and exported without colours."""

import nbformat
import pytest
from rich.console import Console

from tw_autogen.cli.terminal import code_block, highlighted, markdown
from tw_autogen.render_limits import is_quickly_colored
from tw_autogen.session.export import _notebook_html

CODE = "x = 1" + "\n " * 40_000 + "\nprint(x)"
SECONDS = 20


@pytest.mark.parametrize("how", ["highlighted", "block", "page"])
def test_many_blank_lines_take_no_time_to_be_colored(how, cpu_seconds):
    console = Console(force_terminal=True, color_system="standard", width=80)
    began = cpu_seconds()
    if how == "page":
        made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CODE)])
        assert "print(x)" in _notebook_html(made, "blanks")
    else:
        with console.capture() as shown:
            console.print(highlighted(CODE, console) if how == "highlighted" else code_block(CODE, "python"))
        assert "print(x)" in shown.get()
    assert cpu_seconds() - began < SECONDS


@pytest.mark.parametrize(
    "fence", ["```csharp\n" + "a\n" * 10_000, "```gherkin\n" + " \n" * 10_000, "~~~ python x\n" + " \n" * 10_000]
)
def test_an_answers_own_code_takes_no_time_to_be_colored(fence, cpu_seconds):
    console = Console(force_terminal=True, color_system="standard", width=80)
    began = cpu_seconds()
    with console.capture() as shown:
        console.print(markdown(f"Look:\n\n{fence}```\n"))
    assert "Look" in shown.get()
    assert cpu_seconds() - began < SECONDS


def test_python_in_an_answer_is_colored():
    console = Console(force_terminal=True, color_system="truecolor", width=80)
    with console.capture() as python:
        console.print(markdown("```python\nfor x in 'y': pass\n```"))
    with console.capture() as other:
        console.print(markdown("```csharp\nfor x in 'y': pass\n```"))
    assert python.get().count("\x1b[") > other.get().count("\x1b[")


def test_ordinary_code_is_colored_and_what_takes_long_is_not():
    assert is_quickly_colored("def f():\n    return 1\n\n\n" * 200)
    assert not is_quickly_colored(CODE)
    assert not is_quickly_colored("x = 1" + "\n" * 60)
    assert not is_quickly_colored("x = 1\n" * 4000)
    console = Console(force_terminal=True, color_system="standard", width=80)
    with console.capture() as shown:
        console.print(highlighted("for x in y: pass", console))
    assert "\x1b[" in shown.get()
