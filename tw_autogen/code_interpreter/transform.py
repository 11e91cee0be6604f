"""What IPython makes of a cell before Python sees it, and which line each line of that came from."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_MAY_CHANGE = re.compile(
    r"""
      ^[ \t]*[%!,;/]              # an escape that begins a line
    | =[\s\\]*[%!]                # x = %magic, x = !command
    | \?                          # help
    | >>> | ^[ \t]*\.\.\. | \bIn\ \[ # prompts
    | \A(?:[ \t]*\n)*[ \t]+\S     # the whole cell is indented
    | [\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]   # ends a line for IPython, not for Python
    """,
    re.VERBOSE | re.MULTILINE,
)
"""A cell without any of these is what it looks like; it spares loading IPython here, and tokenizing twice."""

_MOST_ESCAPES = 100  # each costs another pass over the whole cell
_MOST_CHARS_PASSED = 100_000


@dataclass(frozen=True)
class Python:
    """The Python text that a cell becomes.

    Args:
        text: As IPython would hand it to the compiler.
        origins: Entry i: the line of the cell, counted from 1, from which line i + 1 of `text` came.
    """

    text: str
    origins: tuple[int, ...]

    def origin(self, line: int) -> int:
        """Give the cell's line for a line of `text`; beyond its end, the last one."""
        if not self.origins:
            return line
        return self.origins[min(max(line, 1), len(self.origins)) - 1]


def to_python(cell: str) -> Python:
    """Transform a cell as IPython does in our kernels, where a magic begins with `%` (automagic is off).

    Raises:
        SyntaxError: IPython's own transformation fails.
    """
    if not _MAY_CHANGE.search(cell):
        return Python(cell, ())
    try:
        return _transformed(cell)
    except SyntaxError:
        raise
    except Exception as error:  # IPython's, which fails in ways of its own on broken text
        raise SyntaxError(f"IPython can't read it ({type(error).__name__}: {error})") from error


def _transformed(cell: str) -> Python:
    text = cell if cell.endswith("\n") else cell + "\n"
    chunks = text.splitlines(keepends=True)
    origins, line = [], 1
    for chunk in chunks:
        origins.append(line)
        line += _breaks(chunk)
    manager = _manager()
    for step in [*manager.cleanup_transforms, *manager.line_transforms]:
        chunks, origins = _follow(chunks, origins, step(chunks))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # IPython warns of odd line ends, which concern the cell's author alone
        most = min(_MOST_ESCAPES, max(2, _MOST_CHARS_PASSED // max(1, len(text))))
        for _ in range(most):
            changed, after = manager.do_one_token_transform(chunks)
            if not changed:
                break
            chunks, origins = _follow(chunks, origins, after)
        else:
            raise SyntaxError(f"more than {most} magics in one cell of {len(text)} characters")
    return Python("".join(chunks), _by_python_lines(chunks, origins))


@lru_cache(maxsize=1)
def _manager() -> Any:  # IPython has no types here
    # Importing IPython takes some 200 ms; most cells need none of it, and most sessions meet none of the others.
    from IPython.core.inputtransformer2 import TransformerManager

    manager: Any = TransformerManager
    return manager()


def _follow(before: list[str], origins: list[int], after: list[str]) -> tuple[list[str], list[int]]:
    """Carry the origins over one step: what differs between equal heads and equal tails came from its first line."""
    if len(before) == len(after):
        return after, origins
    shorter = min(len(before), len(after))
    head = next((i for i in range(shorter) if before[i] != after[i]), shorter)
    tail = next((i for i in range(shorter - head) if before[-1 - i] != after[-1 - i]), shorter - head)
    middle = [origins[min(head, len(origins) - 1)]] * (len(after) - head - tail)
    return after, origins[:head] + middle + origins[len(origins) - tail :]


def _by_python_lines(chunks: list[str], origins: list[int]) -> tuple[int, ...]:
    lines, fresh = [], True
    for chunk, origin in zip(chunks, origins, strict=True):
        if fresh:
            lines.append(origin)
        fresh = bool(_breaks(chunk))
    return tuple(lines)


def _breaks(chunk: str) -> int:
    return int(chunk.endswith(("\n", "\r")))
