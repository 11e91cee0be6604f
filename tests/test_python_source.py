"""Python that others wrote is parsed without a word to our user, whose warnings stay as they were."""

import ast
import threading
import warnings
from pathlib import Path

import pytest

import tw_autogen
from tw_autogen.code_interpreter import Policy, verify
from tw_autogen.plugin.source import parse_source
from tw_autogen.python_source import expression_of, parse, parsed_cell

PACKAGE = Path(tw_autogen.__file__).parent
ODD = "def f(x):\n    return x is 1 or 0x1for x in '\\d' # \x1b[2J\n"
PARSE_OTHERS = {"python_source.py", "plugin/source.py", "code_interpreter/verify.py"}
"""What parses or compiles by itself: inside `without_warnings`."""


@pytest.mark.parametrize("how", ["parse", "expression", "cell", "plugin", "verified"])
def test_nothing_is_said_of_odd_code(tmp_path, how):
    (tmp_path / "odd.py").write_text(ODD)
    ways = {
        "parse": lambda: parse(ODD),
        "expression": lambda: expression_of("1if '\\d' else 2"),
        "cell": lambda: parsed_cell(f"%time\n{ODD}"),
        "plugin": lambda: parse_source(tmp_path / "odd.py"),
        "verified": lambda: verify(ODD, Policy()),
    }
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ways[how]()

    assert [str(one.message) for one in said] == []


def test_the_code_is_one_of_which_python_says_something():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        compile(ODD, "<test>", "exec")

    assert said


def test_warnings_of_the_callers_program_are_as_before_whatever_threads_parse():
    with warnings.catch_warnings():
        before = list(warnings.filters)
        threads = [threading.Thread(target=lambda: [parse(ODD) for _ in range(300)]) for _ in range(8)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()

        assert list(warnings.filters) == before


def test_no_other_module_of_the_host_parses_what_others_wrote():
    found = set()
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith("kernel/guest/") or "_shipped" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("ast.parse", "compile", "builtins.compile"):
                found.add(name)

    assert found == PARSE_OTHERS
