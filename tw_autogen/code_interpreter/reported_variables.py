"""`ReportedVariables`: what a model has been told of the kernel's variables, and what of them is news to it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tw_autogen.kernel import Variable
from tw_autogen.python_source import parsed_cell

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_GONE_NAMES = 20
_FILES = frozenset(
    {"TextIOWrapper", "BufferedReader", "BufferedWriter", "BufferedRandom", "FileIO", "GzipFile", "ZipFile"}
)


class ReportedVariables:
    """What one history has been told of the variables.

    Args:
        limit_chars: How much one telling may take; the newest are told first, and what is left out is counted, and told
            with the next one.
    """

    def __init__(self, limit_chars: int) -> None:
        self._limit_chars = limit_chars
        self._told: dict[str, str] = {}
        self._seen: dict[str, str] = {}
        self._passing: dict[str, str | None] = {}

    def note_code(self, code: str) -> None:
        """Note which names a cell that ran has only used in passing: variables of its loops and `with` blocks.

        They are not told until they change otherwise: another cell assigns them, or somebody puts them. Those that
        were told before are told on.
        """
        passing, assigned = _bound_names(code)
        passing -= self._told.keys()
        kept = {name: line for name, line in self._passing.items() if name not in assigned}
        self._passing = kept | dict.fromkeys(passing)

    def fresh(self, variables: Sequence[Variable]) -> list[str]:
        """Return the names of those that are new or changed since `news`, whether it could tell all of them or not."""
        return [one.name for one in self._lasting_variables(variables) if _has_changed(self._seen.get(one.name), one)]

    def news(self, variables: Sequence[Variable]) -> str:
        """Return which variables are new, changed or gone since the last telling, a line each; empty if none are.

        Args:
            variables: Those that exist now.
        """
        now = {one.name: self._variable_line(one) for one in self._lasting_variables(variables)}
        fresh = [name for name, line in now.items() if self._told.get(name) != line]
        there = {variable.name: str(variable) for variable in variables}
        gone = [name for name in self._told if name not in there]
        lines = self._lines_within_limit([now[name] for name in reversed(fresh)])[::-1]
        left_out = set(fresh[: len(fresh) - len(lines)])
        self._told = {name: line for name, line in now.items() if name not in left_out}
        self._seen = now
        passing = {name: line for name, line in self._passing.items() if name not in now}
        self._passing = {name: there.get(name, "") if line is None else line for name, line in passing.items()}
        if left_out:
            lines.append(f"… and {len(left_out)} older ones")
        if gone:
            more = f" and {len(gone) - _GONE_NAMES} more" if len(gone) > _GONE_NAMES else ""
            lines.append(f"Gone: {', '.join(gone[:_GONE_NAMES])}{more}")
        return "\n".join(lines)

    def _lasting_variables(self, variables: Sequence[Variable]) -> list[Variable]:
        return [variable for variable in variables if not self._is_passing(variable) and variable.type not in _FILES]

    def _is_passing(self, variable: Variable) -> bool:
        """Return whether a variable is as a loop or a `with` block has left it."""
        left = self._passing.get(variable.name)
        return variable.name in self._passing and (left is None or not _has_changed(left, variable))

    def forget(self) -> None:
        """Take nothing for told any more, because what was told is not in the prompt now."""
        self._told = {}

    def _variable_line(self, variable: Variable) -> str:
        """Return the line of a variable; the one told last, where the kernel gives only its name and type."""
        told = self._told.get(variable.name)
        return told if told is not None and not _has_changed(told, variable) else str(variable)

    def _lines_within_limit(self, lines: Sequence[str]) -> list[str]:
        """Return as many lines as fit, and one at least: a single long one must not keep the others back."""
        kept, left = list[str](), self._limit_chars
        for line in lines:
            left -= len(line) + 1
            if left < 0 and kept:
                break
            kept.append(line if left >= 0 else f"{line[: self._limit_chars]}…")
        return kept


def _bound_names(code: str) -> tuple[set[str], set[str]]:
    """Return the names that a cell binds in `for` and `with` alone, and those that it binds otherwise.

    Args:
        code: A cell's; of one that is no Python nothing is known, and names inside of functions are not the kernel's.
    """
    tree = parsed_cell(code)
    nodes = [*_of_cell(tree)] if tree is not None else []
    targets = [node.target for node in nodes if isinstance(node, (ast.For, ast.AsyncFor))]
    withs = (node for node in nodes if isinstance(node, (ast.With, ast.AsyncWith)))
    targets += [item.optional_vars for node in withs for item in node.items if item.optional_vars]
    passing_nodes = {one for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}
    stored = {node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    inner = [generator.target for node in nodes if isinstance(node, _COMPREHENSIONS) for generator in node.generators]
    unbound = {one for target in inner for one in ast.walk(target) if isinstance(one, ast.Name)}
    assigned = {node.id for node in stored - passing_nodes - unbound}
    return {node.id for node in passing_nodes} - assigned, assigned


def _of_cell(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a cell, without what stands in its functions and classes."""
    nodes = [tree]
    while nodes:
        for node in ast.iter_child_nodes(nodes.pop()):
            yield node
            if not isinstance(node, _SCOPES):
                nodes.append(node)


def _has_changed(told: str | None, now: Variable) -> bool:
    """Return True if a variable is not as it was told; without a summary, its type alone is compared."""
    if told is None or now.summary:
        return told != str(now)
    return told.partition(", ")[0] != str(now)
