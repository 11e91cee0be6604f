"""`verify`: judge a cell by what IPython would run of it, without running any of it.

The sandbox is the wall; this is the sign in front of it. It catches mistakes and tells the model what to do instead.
Known limits, all of them open to whoever means harm:

- What an object is, is not known: `f().os`, a module taken from a list, a dict or a return value, `getattr` with a
  computed name on a library, and a name that an earlier cell bound to a part of a library look like data.
- Libraries read, write, fetch and run things by themselves: `read_csv` of any path or address, `to_csv`, `savefig`,
  pickles, templates, `DataFrame.query` with a computed string (but for `strict`), formulas of statsmodels, SQL.
- HTML that data holds is shown as it is, by `Styler` for one; what a viewer runs of it is the viewer's concern.
- Files written by one cell can be imported by the next; `__getattr__` and other hooks of the cell's own classes are
  judged by their bodies only.
- What is true of the kernel and not of the text isn't seen: a name made by `from x import *`, a magic or alias that was
  redefined, another IPython than the one here, automagic where it was switched on again.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Collection

from tw_autogen.code_interpreter.judge import Judge
from tw_autogen.code_interpreter.magics import effect_of, unmarked
from tw_autogen.code_interpreter.only_plugins import only_plugins
from tw_autogen.code_interpreter.policy import Policy
from tw_autogen.code_interpreter.rules import Fault, Finding, Rules, rules_of
from tw_autogen.code_interpreter.transform import to_python

__all__ = ["Finding", "verify"]

_DEEPEST = 5
_SYNTAX_REMEDY = "Mend the syntax and send the whole cell again."


def verify(code: str, policy: Policy, *, plugins: Collection[str] = ()) -> list[Finding]:
    r"""Judge a cell against a policy; nothing is run, imported or read.

    Args:
        code: As written, with magics and all; lines are counted as they stand there.
        policy: What the code may do.
        plugins: Names of functions that exist in the kernel; they may be called, and neither replaced nor looked into.

    Returns:
        What is wrong, by line; empty if nothing is. A syntax error is the only finding of its cell.

    Example:
        >>> [str(one) for one in verify("x = 1\ne = eval", Policy())]
        ["line 2 (function): 'eval' is not allowed"]
        >>> verify("df.eval('a + b'); re.compile('a')", Policy())
        []
    """
    if not isinstance(code, str):
        return [_syntax(TypeError(f"a cell is text, not {type(code).__name__}")).at(1)]
    try:
        found = _findings(code, rules_of(policy), frozenset(plugins), first_line=1)
    except RecursionError as error:  # some Pythons read what is nested so deep, and can't walk or write it
        return [_syntax(error).at(1)]
    return sorted(dict.fromkeys(found), key=lambda one: one.line)


def _findings(code: str, rules: Rules, plugins: frozenset[str], *, first_line: int, depth: int = 0) -> list[Finding]:
    """Judge one cell, or what a magic in it would run as a cell; `first_line` is where it begins in the whole."""
    if depth > _DEEPEST:
        return [Fault("magic", "magics are nested too deep", "Write plain Python instead.").at(first_line)]
    before = first_line - 1
    try:
        python = to_python(code)
    except SyntaxError as error:
        return [_syntax(error).at(before + (error.lineno or 1))]
    try:
        tree = _parse(python.text)
    except SyntaxError as error:
        return [_syntax(error, unmarked(code)).at(before + python.origin(error.lineno or 1))]
    except (ValueError, RecursionError, MemoryError) as error:  # null bytes; nested too deep for Python's own parser
        return [_syntax(error).at(first_line)]
    if rules.policy.only_plugins:
        return [fault.at(before + python.origin(line)) for line, fault in only_plugins(tree, plugins)]
    found: list[Finding] = []

    def on_shell_call(node: ast.Call, line: int) -> bool:
        effect = effect_of(node, rules)
        if effect is None:
            return False
        at = before + python.origin(line)
        found.extend(fault.at(at) for fault in effect.faults)
        for inner, lines_after in effect.codes:
            found.extend(_findings(inner, rules, plugins, first_line=at + lines_after, depth=depth + 1))
        return True

    faults = Judge(tree, rules, plugins=plugins, on_shell_call=on_shell_call).run()
    return found + [fault.at(before + python.origin(line)) for line, fault in faults]


def _parse(text: str) -> ast.Module:
    """Parse and compile, so that a `return` outside a function is found too; nothing is run.

    Statement by statement, as IPython does; a whole cell of many functions that are alike takes Python very long.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "\d" in a plain string is a warning to the cell's author, not to our caller
        tree = ast.parse(text, "<cell>")
        for node in tree.body:
            one = ast.Module([node], type_ignores=[])
            compile(one, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    return tree


def _syntax(error: Exception, magic: str = "") -> Fault:
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    remedy = f"A magic begins with `%`, a shell command with `!`: `{magic}` without is Python."
    return Fault("syntax", f"{type(error).__name__}: {message}", remedy if magic else _SYNTAX_REMEDY)
