"""Python that others wrote is parsed without a word to our user, whose warnings stay as they were."""

import ast
import resource
import threading
import warnings
from pathlib import Path

import pytest

import tw_autogen
from tw_autogen.code_interpreter import Policy, verify
from tw_autogen.plugin.source import parse_source
from tw_autogen.python_source import check_compiles, expression_of, parse, parsed_cell

PACKAGE = Path(tw_autogen.__file__).parent
ODD = "def f(x):\n    return x is 1 or 0x1for x in '\\d' # \x1b[2J\n"
PARSE_OTHERS = {"python_source.py"}
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
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

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


def _finals(depth: int) -> str:
    lines = "".join(f"{' ' * level}try: a\n{' ' * level}finally:\n" for level in range(depth))
    return lines + " " * depth + "a\n"


COSTLY = {
    "finally in finally": _finals(19),
    "many ways through a finally": "def f():\n try:\n  " + "return;" * 4000 + "\n finally:\n  " + "a;" * 10_000 + "\n",
    "breaks through a finally": "while a:\n try:\n  " + "break;" * 4000 + "\n finally:\n  " + "a;" * 10_000 + "\n",
    "one long statement": "class C:\n" + " def f(self): pass\n" * 20_000,
}


@pytest.mark.parametrize("how", ["verified", "plugin"])
@pytest.mark.parametrize("code", COSTLY.values(), ids=COSTLY)
def test_code_that_is_costly_to_compile_is_not_compiled_in_the_host(tmp_path, code, how, cpu_seconds):
    (tmp_path / "costly.py").write_text(code)
    begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = cpu_seconds()

    _ = verify(code, Policy()) if how == "verified" else parse_source(tmp_path / "costly.py")

    assert cpu_seconds() - started < 15
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - begun < 500_000  # kB; gigabytes otherwise


HONEST = {
    "a finally in a finally": _finals(4) + "return\n",
    "a long module": "def f(a):\n    return [one for one in a if one]\n" * 3000 + "return\n",
    "many ways out": "def f():\n try:\n  " + "return;" * 50 + "\n finally:\n  " + "a;" * 20 + "\nreturn\n",
    "a long function": "def f(a):\n" + "    b = a + 1\n" * 1000 + "return\n",
}


@pytest.mark.parametrize("code", HONEST.values(), ids=HONEST)
def test_honest_code_is_compiled_whole(code):
    with pytest.raises(SyntaxError, match="'return' outside function"):
        check_compiles(parse(code), "<cell>")
