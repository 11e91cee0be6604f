"""Python in a reply without fences, or in a block that does not end at the first closing marks."""

from __future__ import annotations

import ast
import re

from tw_autogen.python_source import does_something, is_python, parsed_cell, python_lines, tree_or_line

_CODE_LINE = re.compile(
    r"\s*(?:[A-Za-z_][\w.]{0,200}(?:\[[^\n\]]{0,200}\])?(?:\s?[-+*/]?=(?!=)|\()|(?:import|from)\s+[\w.]+(?:\s+(?:import|as)\s|\s*$)"
    r"|(?:for|while|if|elif|else|with|def|class|try|except)\b.*:\s*$|[)\]}]+[:,]?\s*$)"
)
"""A line that is code, whether it parses or not."""
_CLOSING = re.compile(r"^[ \t]*```[ \t]*$", re.MULTILINE)
_PROSE_LINES = 6  # before unfenced code
_INTRODUCING_LINES = 2
_MAX_CUTS = 40
_MAX_FENCES = 20
_LONGEST_CHARS = 50_000


def unfenced(text: str) -> tuple[str, str, str] | None:
    r"""Find the code in a reply without fenced blocks: lines that parse as Python and do something.

    Args:
        text: The reply, without thoughts in tags.

    Returns:
        The words before the code, the code, and the words after it; None if there is no code. A single word or a
        `name: value` is none. The code begins and ends with a line that is some, also where it does not parse. Where
        words come first, there must be at least as many lines of code as of words, or few words before code that
        imports something or prints.

    Example:
        >>> unfenced("x = 6 * 7\nprint(x)\nThis prints 42.")
        ('', 'x = 6 * 7\nprint(x)', 'This prints 42.')
    """
    if len(text) > _LONGEST_CHARS:
        return None
    lines = python_lines(text.removesuffix("\n"))
    starts = [index for index, line in enumerate(lines) if line.strip()][: _PROSE_LINES + 1]
    for start in starts:
        parsed = _longest_prefix(lines[start:])
        if not parsed:
            continue
        after = lines[start + len(parsed) :]
        before, code = _with_broken_code(lines[:start], parsed)
        said = sum(bool(line.strip()) for line in before)
        words = said and said + sum(bool(line.strip()) for line in after)
        program = said <= _INTRODUCING_LINES and _is_program("\n".join(parsed))
        if (program or words <= sum(bool(line.strip()) for line in code)) and does_something(
            "\n".join(parsed), alone=not said
        ):
            more = _code_length(after)
            code, after = [*code, *after[:more]], after[more:]
            return "\n".join(before).strip(), "\n".join(code).strip(), "\n".join(after).strip()
    return None


def without_prose(code: str) -> str:
    """Return a block that was never closed without the prose after its code; as it is if nothing parses.

    A line of code that does not parse is no prose: its error is for whoever wrote it.
    """
    if is_python(code) or len(code) > _LONGEST_CHARS:
        return code
    lines = python_lines(code.removesuffix("\n"))
    kept = "\n".join(lines[: (first := len(_longest_prefix(lines))) + _code_length(lines[first:])])
    if not is_python(kept):
        return code
    return kept if kept and does_something(kept) else code


def is_output(block: str) -> bool:
    """Return True if a block is what code has printed: plain values, `name: value`, or lines of which none is code.

    Args:
        block: The text in it; an empty one is none.
    """
    tree = parsed_cell(block)
    if tree is None:
        return not _code_length(python_lines(block)) and len(block) <= _LONGEST_CHARS
    return bool(tree.body) and all(_is_value(node) for node in tree.body)


def _is_value(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Expr):
        return isinstance(node, ast.AnnAssign) and node.value is None
    try:
        ast.literal_eval(node.value)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return False
    return True


def extend_past_inner_fence(inner: str, rest: str) -> str:
    r"""Return the code of a block whose first closing marks stand inside a string of its own.

    Args:
        inner: The text between the opening marks and the first closing ones.
        rest: What follows these.

    Returns:
        The code up to the first closing marks with which it parses; empty if `inner` parses, or nothing does.

    Example:
        >>> extend_past_inner_fence("text = '''", "ls\n```\n'''\n```\nDone.")
        "text = '''\n```\nls\n```\n'''"
    """
    if is_python(inner) or len(rest) > _LONGEST_CHARS:
        return ""
    for closing in list(_CLOSING.finditer(rest))[:_MAX_FENCES]:
        code = f"{inner.rstrip()}\n```\n{rest[: closing.start()]}".rstrip()
        if is_python(code):
            return code
    return ""


def _with_broken_code(before: list[str], code: list[str]) -> tuple[list[str], list[str]]:
    """Return the words before code, and the code with all from the first line on that is code and does not parse."""
    start = next((index for index, line in enumerate(before) if _CODE_LINE.match(line)), len(before))
    return before[:start], [*before[start:], *code]


def _longest_prefix(lines: list[str]) -> list[str]:
    """Return the first lines that parse together, without prose that happens to parse at their end.

    What follows a magic of a whole cell is no Python, and belongs to it.
    """
    if lines[0].startswith("%%"):
        return lines
    end = len(lines)
    for _ in range(_MAX_CUTS):
        found = tree_or_line("\n".join(lines[:end]))
        if isinstance(found, ast.Module):
            return _trim_prose_end(lines[:end], found.body)
        end = min(end, found) - 1
        if end <= 0:
            return []
    return []


def _code_length(lines: list[str]) -> int:
    """Return how many lines there are up to the last one that is code, whether it parses or not."""
    return max((number for number, line in enumerate(lines, 1) if _CODE_LINE.match(line)), default=0)


def _trim_prose_end(lines: list[str], body: list[ast.stmt]) -> list[str]:
    """Return the lines without what at their end is no more code than prose: `hello`; none if they begin so."""
    names = [one for node in body for one in ast.walk(node) if isinstance(one, ast.Name)]
    stored = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    if body and _is_word(body[0], set()):
        return []
    while body and _is_word(body[-1], stored):
        body.pop()
    return lines[: body[-1].end_lineno] if body else []


def _is_word(node: ast.stmt, stored: set[str]) -> bool:
    if isinstance(node, ast.AnnAssign):
        return node.value is None
    if not isinstance(node, ast.Expr):
        return False
    names = [one for one in ast.walk(node.value) if isinstance(one, ast.Name)]
    return not any(isinstance(one, ast.Call) for one in ast.walk(node)) and not any(name.id in stored for name in names)


def _is_program(code: str) -> bool:
    """Return True if code of several lines imports something and prints, as no example in prose does."""
    tree = parsed_cell(code)
    body = tree.body if tree else []
    prints = any(isinstance(one, ast.Name) and one.id == "print" for node in body for one in ast.walk(node))
    return len(body) > 1 and prints and any(isinstance(node, ast.Import | ast.ImportFrom) for node in body)
