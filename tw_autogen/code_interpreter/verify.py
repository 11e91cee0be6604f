"""`verify`: check a cell by what IPython would run of it, without running any of it.

The sandbox holds code off; the check catches mistakes and tells the model what to do instead. Known limits, all of them
open to whoever means harm:

- The type of an object is not known: `f().os`, a module taken from a list, a dict or a return value, `getattr` with a
  computed name on a library, and a name that an earlier cell bound to a part of a library look like data. `strict`
  goes by the names of methods and options instead, and refuses those that sound like files.
- With `default`, libraries read, write, fetch and run things by themselves: `read_csv` of any path or address,
  `to_csv`, `savefig`, pickles, templates, `DataFrame.query` with a computed string, formulas of statsmodels, SQL.
- HTML that data holds is shown as it is, by `Styler` for one; what a viewer runs of it is the viewer's concern.
- Files written by one cell can be imported by the next; `__getattr__` and other hooks of the cell's own classes are
  checked by their bodies only.
- What is true of the kernel and not of the text isn't seen: a name made by `from x import *`, a magic or alias that was
  redefined, another IPython than the one here, automagic where it was switched on again.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tw_autogen.code_interpreter.policy import Policy, RuleSet, listed, rules_of
from tw_autogen.code_interpreter.policy_checker import PolicyChecker
from tw_autogen.code_interpreter.rules import MAGICS, SHELL_MAGICS, WORDS_FOR_DATA, Finding
from tw_autogen.code_interpreter.syntax import assumed
from tw_autogen.kernel.guest import install_words
from tw_autogen.lazy_module import LazyModule
from tw_autogen.python_source import check_compiles, parse, python_lines, without_warnings

if TYPE_CHECKING:
    from IPython.core import inputtransformer2
else:  # takes 200 ms; most cells need none of it, and most sessions meet none of the others
    inputtransformer2 = LazyModule("IPython.core.inputtransformer2")

Code = tuple[str, int]
"""A cell that a magic runs, and the number of lines between its own first line and the magic's."""

_DEEPEST = 5
_INSTALL = re.compile(
    r"^\s*(?:sudo\s+)?(?:\S*python[\d.]*\s+-m\s+)?(?:uv\s+)?(?:pip[\d.]*|conda|mamba|micromamba|poetry|uv|apt|apt-get|brew)"
    r"\b.*\b(?:install|add|uninstall|remove|update|upgrade)\b"
)
_MORE_COMMANDS = re.compile(r"[;&|`\n<>]|\$\(")
_QUOTED = re.compile(r"""'[^']*'|"[^"$`\\]*\"""")
_VARIABLE = re.compile(r"[-+*/%&|]?=|[\[(,:]")
"""What follows the name of a variable, and of no magic."""
_PACKAGERS = frozenset({"pip", "conda", "mamba", "micromamba", "uv"})
_CODE_MAGICS = frozenset({"time", "timeit"})
_BODY_MAGICS = _CODE_MAGICS | {"capture"}
_OPTIONS = re.compile(r"^(?:\s*(?:-[nrp]\s*\d+|-[tcqov]+|--no-raise-error)(?=\s|$))*\s*")
_CONFIG = re.compile(r"\s*InlineBackend\.\w+(?:\s*=\s*(?P<value>.*))?$", re.DOTALL)

_WRITABLE = MAGICS | SHELL_MAGICS | _PACKAGERS | {"cd", "run", "load", "env", "writefile"}
_SHELL_REMEDY = "Use Python instead: `os.listdir`, `pathlib`, `open`, `shutil.copy`."
_MAGIC_REMEDY = "Write plain Python instead."
_NO_INSTALL = "Leave the line out and use what is installed; if a library is missing, solve the task another way."
_MAX_ESCAPES = 100  # each costs another pass over the whole cell
_MAX_CHARS_PASSED = 100_000
_MAY_CHANGE = re.compile(
    r"""
      ^[ \t]*[%!,;/]              # an escape that begins a line
    | =[\s\\]*[%!]                # x = %magic, x = !command
    | \?                          # help
    | >>> | ^[ \t]*\.\.\. | \bIn\ \[ # prompts
    | \A[ \t\n]*(?<![^\n])[ \t]+\S  # the whole cell is indented
    | [\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]   # ends a line for IPython, not for Python
    """,
    re.VERBOSE | re.MULTILINE,
)
"""A cell without any of these is what it looks like; it spares loading IPython here, and tokenizing twice."""

_WHAT: dict[type[ast.AST] | tuple[type[ast.AST], ...], str] = {
    (ast.Import, ast.ImportFrom): "an import",
    (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda): "a definition",
    (ast.For, ast.While): "a loop",
    ast.If: "a condition",
    ast.Attribute: "an attribute or method",
    (ast.BinOp, ast.UnaryOp): "a computation",
    ast.Compare: "a comparison",
    ast.JoinedStr: "a formatted text",
    ast.Subscript: "an index",
    (ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp): "a comprehension",
}


def verify(
    code: str, policy: Policy, *, plugins: Collection[str] = (), variables: Collection[str] = ()
) -> list[Finding]:
    r"""Check a cell against a policy; nothing is run, imported or read.

    Args:
        code: As written, with magics and all; lines are counted as they stand there.
        policy: What the code may do.
        plugins: Names of functions that exist in the kernel; they may be called, and neither replaced nor looked into.
        variables: Names of variables that exist in the kernel: one that is called `input` is data there.

    Returns:
        What is wrong, by line; empty if nothing is. A syntax error is the only finding of its cell.

    Example:
        >>> [str(one) for one in verify("x = 1\ne = eval", Policy())]
        ["line 2 (function): 'eval' is not allowed"]
        >>> verify("df.eval('a + b'); re.compile('a')", Policy())
        []
    """
    if not isinstance(code, str):
        return [_syntax_finding(TypeError(f"a cell is text, not {type(code).__name__}"), 1)]
    try:
        found = _Check(rules_of(policy), plugins, variables).cell(code, 1)
        while (also := policy.besides) is not None and not found:
            found, policy = _Check(rules_of(also), plugins, variables).cell(code, 1), also
    except RecursionError as error:  # nested deeper than Python's stack
        return [_syntax_finding(error, 1)]
    return sorted(dict.fromkeys(found), key=lambda fromkey: fromkey.line)


class _Check:
    """The check of a cell, and of the cells that magics in it would run."""

    def __init__(self, rules: RuleSet, plugins: Collection[str], variables: Collection[str]) -> None:
        self._rules = rules
        self._plugins = frozenset(plugins)
        self._own = WORDS_FOR_DATA.intersection(variables)

    def cell(self, code: str, first_line: int, depth: int = 0) -> list[Finding]:
        """Return the findings of a cell that begins at this line of the whole.

        Args:
            code: The cell's text.
            first_line: Its first line's number in the whole, from 1.
            depth: How many cells stand around it.
        """
        if depth > _DEEPEST:
            return [Finding(first_line, "magic", "magics are nested too deep", _MAGIC_REMEDY)]
        lines: list[int] = []
        try:
            text, lines = to_python(code)
            tree = parse(text)
            check_compiles(tree, "<cell>", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        except SyntaxError as error:
            line = _line_of(error.lineno or 1, lines)
            return [_syntax_finding(error, first_line - 1 + line, bare_magic(code))]
        except (
            ValueError,
            RecursionError,
            MemoryError,
        ) as error:  # null bytes; nested too deep for Python's own parser
            return [_syntax_finding(error, first_line)]
        found: list[Finding] = []

        def on_shell_call(node: ast.Call) -> bool:
            effect = effect_of(node, self._rules)
            if effect is None:
                return False
            at = first_line - 1 + _line_of(node.lineno, lines)
            for one in effect:
                found.extend([one.at(at)] if isinstance(one, Finding) else self.cell(one[0], at + one[1], depth + 1))
            return True

        if self._rules.policy.only_plugins:
            checked = list(plugin_calls_only(tree, self._plugins))
        else:
            checker = PolicyChecker(
                tree, self._rules, plugins=self._plugins, own=self._own, on_shell_call=on_shell_call
            )
            checked = checker.run()
        return found + [one.at(first_line - 1 + _line_of(one.line, lines)) for one in checked]


def _syntax_finding(error: Exception, line: int, magic: str = "") -> Finding:
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    remedy = f"A magic begins with `%`, a shell command with `!`: `{magic}` without is Python."
    if not magic:
        remedy = "Mend the syntax and send the whole cell again."
    return Finding(line, "syntax", f"{type(error).__name__}: {message}", remedy)


def to_python(cell: str) -> tuple[str, list[int]]:
    """Transform a cell as IPython does in our kernels, where a magic begins with `%` (automagic is off).

    Returns:
        The text, and the line of the cell, counted from 1, that each line of the text came from; no lines if each
        came from its own. A magic on several lines becomes one line, which came from the first of them.

    Raises:
        SyntaxError: IPython's own transformation fails, or has too much to do.
    """
    if not _MAY_CHANGE.search(cell):
        return cell, []
    with without_warnings():  # IPython warns of odd line ends
        try:
            return _transform_cell(cell if cell.endswith("\n") else cell + "\n")
        except SyntaxError:
            raise
        except Exception as error:  # IPython's, which fails in ways of its own on broken text
            raise SyntaxError(f"IPython can't read it ({type(error).__name__}: {error})") from error


def _transform_cell(cell: str) -> tuple[str, list[int]]:
    manager = _transformer_manager()
    lines: list[str] = cell.splitlines(keepends=True)  # as IPython does, which puts them together again
    numbers: list[int] = []
    for step in [*manager.cleanup_transforms, *manager.line_transforms]:
        given, lines = lines, step(lines)
        numbers = _renumber_lines(numbers, given, lines)
    most = min(_MAX_ESCAPES, max(2, _MAX_CHARS_PASSED // max(1, len(cell))))
    for _ in range(most):
        given = lines
        changed, lines = manager.do_one_token_transform(lines)
        if not changed:
            return "".join(lines), numbers
        numbers = _renumber_lines(numbers, given, lines)
    raise SyntaxError(f"more than {most} magics in one cell of {len(cell)} characters")


def _renumber_lines(numbers: list[int], given: list[str], made: list[str]) -> list[int]:
    """Return the numbers of lines after a step, which puts one line in the place of some, or leaves out the first."""
    before, after = (python_lines("".join(one).rstrip("\n")) for one in (given, made))
    if len(before) == len(after):
        return numbers
    most = min(len(before), len(after))
    head = next((i for i in range(most) if before[i] != after[i]), most)
    tail = next((i for i in range(most - head) if before[-1 - i] != after[-1 - i]), most - head)
    numbers = numbers or list(range(1, len(before) + 1))
    left = numbers[head : len(before) - tail] or numbers[-1:]
    middle = [left[min(i, len(left) - 1)] for i in range(len(after) - tail - head)]
    return [*numbers[:head], *middle, *numbers[len(before) - tail :]]


def _line_of(line: int, lines: list[int]) -> int:
    """Return the cell's line for a line of its Python text; beyond its end, the last one."""
    return lines[min(max(line, 1), len(lines)) - 1] if lines else line


@lru_cache(maxsize=1)
def _transformer_manager() -> Any:  # IPython has no types here
    manager: Any = inputtransformer2.TransformerManager
    return manager()


def effect_of(node: ast.Call, rules: RuleSet) -> list[Finding | Code] | None:
    """Return what `get_ipython().method("…", "…")` does, written so or made from `%magic` and `!command`.

    Args:
        node: The call.
        rules: The policy's tables.

    Returns:
        What is wrong with it, and the cells that it would run in turn; None if it can't be told.
    """
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    values = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    if node.keywords or len(values) != len(node.args):
        return None
    if method in {"system", "getoutput"} and len(values) == 1:
        return list(_check_command(values[0], rules))
    if method == "run_line_magic" and len(values) == 2:
        return _check_magic(values[0], values[1], None, rules)
    if method == "run_cell_magic" and len(values) == 3:
        return _check_magic(values[0], values[1], values[2], rules)
    return [] if method == "show_usage" else None


def bare_magic(code: str) -> str:
    """Return the magic that a cell without valid syntax begins with, though without its `%`; empty if it is none.

    Example:
        >>> bare_magic("pip install pandas"), bare_magic("load = (1,")
        ('pip', '')
    """
    name, *rest = code.lstrip()[:20].split(maxsplit=1) or [""]
    return name if name in _WRITABLE and not any(map(_VARIABLE.match, rest)) else ""


def _check_command(command: str, rules: RuleSet) -> list[Finding]:
    policy = rules.policy
    with contextlib.suppress(RuntimeError):  # an installation among other commands
        if policy.install != "never" and install_words(command) is not None:
            return _check_expansions("pip", command)
    installs = _INSTALL.search(command)
    if installs and not _MORE_COMMANDS.search(_QUOTED.sub("", command).partition("#")[0]):
        if policy.install == "never":
            return [Finding(0, "install", "packages can't be installed here", _NO_INSTALL)]
        return [Finding(0, "install", "this can't be installed here", "Write `%pip install name`, with names only.")]
    if policy.shell and not installs:
        return []
    first = command.strip().partition("\n")[0]
    short = first if len(first) <= 60 else first[:57] + "..."
    return [Finding(0, "shell", f"shell command {short!r} is not allowed", _SHELL_REMEDY)]


def _check_magic(name: str, line: str, body: str | None, rules: RuleSet) -> list[Finding | Code]:
    """Check `%name line`, or with a body `%%name line`."""
    policy, sign = rules.policy, "%" if body is None else "%%"
    asks = name == "pip" and policy.install != "never" and line.split()[:1] == ["install"]
    refused: list[Finding] = []
    if name in _PACKAGERS and not asks:
        refused = _check_command(f"{name} {line}", rules)
    elif name in SHELL_MAGICS and not policy.shell:
        refused = [Finding(0, "shell", f"shell magic {sign + name!r} is not allowed", _SHELL_REMEDY)]
    elif (name not in policy.magics | SHELL_MAGICS and not asks) or (body is not None and name not in _BODY_MAGICS):
        allowed = listed("%" + magic for magic in policy.magics)
        message = f"magic {sign + name!r} is not allowed; allowed: {allowed}"
        refused = [Finding(0, "magic", message, _MAGIC_REMEDY)]
    if refused:
        return list(refused)
    if name in _CODE_MAGICS:  # %%timeit takes its setup from its line
        return [(_OPTIONS.sub("", line, count=1), 0), *([] if body is None else [(body, 1)])]
    if name == "config":  # runs what stands after `=`
        match = _CONFIG.match(line)
        message = "'%config' may only set InlineBackend"
        return [(match["value"] or "", 0)] if match else [Finding(0, "magic", message, "Leave the line out.")]
    return [*_check_expansions(name, line), *([] if body is None else [(body, 1)])]


def _check_expansions(name: str, line: str) -> list[Finding]:
    """Check the `{…}` and `$…` in a magic's arguments: IPython evaluates them."""
    if "{" not in line and "$" not in line:
        return []
    message = f"arguments of '%{name}' may hold no braces and no '$'"
    return [Finding(0, "magic", message, "Write the value itself.")]


def plugin_calls_only(tree: ast.Module, plugins: Collection[str]) -> Iterator[Finding]:
    """Return what is neither a call of a plugin nor a literal nor a variable, with its line.

    Allowed are assignments to variables (also `a, b = …`), expressions, calls of plugins by name, also inside one
    another and with `*` and `**`, lists, tuples, sets and dicts, and a sign in front of a number.

    Args:
        tree: Of a cell, after IPython's transformation.
        plugins: The functions that may be called.
    """
    todo: list[ast.AST] = list(tree.body)
    while todo:  # a list instead of recursion: a cell may be nested deeper than Python's stack
        node = todo.pop(0)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in plugins:
            todo += [*node.args, *(keyword.value for keyword in node.keywords)]
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            if node.id in plugins:
                remedy = f"Choose another name; {node.id!r} stays the plugin."
                yield Finding(node.lineno, "plugin", f"{node.id!r} is a plugin and may not be replaced", remedy)
            elif _is_taken(node.id):
                yield Finding(
                    node.lineno, "plugin", f"{node.id!r} is no name for a variable here", "Choose another name."
                )
        elif isinstance(node, ast.Expr | ast.Assign | ast.List | ast.Tuple | ast.Set | ast.Starred | ast.Dict):
            todo += [one for one in ast.iter_child_nodes(node) if not isinstance(one, ast.expr_context)]
        elif not (
            isinstance(node, ast.Constant | ast.Pass)
            or (isinstance(node, ast.Name) and not (node.id in plugins or _is_taken(node.id) or assumed(node.id)))
            or (
                isinstance(node, ast.UnaryOp)
                and isinstance(node.op, ast.USub | ast.UAdd)
                and isinstance(node.operand, ast.Constant)
            )
        ):
            yield _plugin_finding(node, plugins)


def _is_taken(name: str) -> bool:
    return hasattr(builtins, name) or name.startswith("__") or name == "get_ipython"


def _plugin_finding(node: ast.AST, plugins: Iterable[str]) -> Finding:
    line = getattr(node, "lineno", 1)
    remedy = f"Call only these: {listed(plugins)}. If they can't do the task, say so in words, without a block."
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func) if isinstance(node.func, ast.Name | ast.Attribute) else "this"
        return Finding(line, "plugin", f"{called[:60]!r} is none of the plugins that may be called here", remedy)
    if isinstance(node, ast.Name):
        what = "a plugin that is not called" if node.id in plugins else "no variable"
        return Finding(line, "plugin", f"{node.id!r} is {what}", remedy)
    what = next((what for kinds, what in _WHAT.items() if isinstance(node, kinds)), "")
    what = what or f"`{ast.unparse(node).splitlines()[0][:40]}`"
    return Finding(line, "plugin", f"{what} is neither a call of a plugin nor a literal nor a variable", remedy)
