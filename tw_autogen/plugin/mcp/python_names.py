"""Names that Python takes, for what servers call as they like."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable

from tw_autogen.variable_names import RESERVED

_NO_WORD = re.compile(r"\W+")
_LONGEST = 100


def identifier(text: str, otherwise: str = "tool") -> str:
    """Return a Python identifier that looks like a name: at most 100 letters, digits and underscores, no keyword.

    Args:
        text: Any text.
        otherwise: What comes first where the text alone is no identifier.

    Example:
        >>> identifier("get-weather"), identifier("2d.plot"), identifier("class")
        ('get_weather', 'tool_2d_plot', 'class_')
    """
    plain = unicodedata.normalize("NFKC", text[:_LONGEST])[:_LONGEST]
    plain = plain if plain.isidentifier() else _NO_WORD.sub("_", plain).strip("_")
    if not plain or not plain.isidentifier():
        plain = f"{otherwise}_{plain}".rstrip("_")
    return f"{plain}_" if keyword.iskeyword(plain) else plain


class Names:
    """Names that are given once each.

    Args:
        used: Those that are taken already.
    """

    def __init__(self, used: Iterable[str] = ()) -> None:
        self._used = set(used)
        self._next: dict[str, int] = {}

    def give(self, *wishes: str) -> str:
        """Return the first wish that is free, or the last one with a number behind it, and keep it.

        Args:
            wishes: Names, the best one first.
        """
        given = next((wish for wish in wishes if wish not in self._used), "")
        number = self._next.get(wishes[-1], 2)
        while not given or given in self._used:
            given, number = f"{wishes[-1]}_{number}", number + 1
            self._next[wishes[-1]] = number
        self._used.add(given)
        return given


def tool_names(tools: Iterable[tuple[str, str]], taken: Collection[str] = ()) -> dict[tuple[str, str], str]:
    """Return each tool a function's name: its own where that is free, else with the server's before it.

    Args:
        tools: Server and tool, as they call themselves.
        taken: Names that mean something else: other plugins. What Python, IPython and the kernel call by a name of
            their own is never replaced, and no tool's name begins with an underscore.

    Example:
        >>> list(tool_names([("files", "open"), ("a", "search"), ("b", "search")]).values())
        ['files_open', 'a_search', 'b_search']
    """
    wanted = [(server, tool, identifier(tool)) for server, tool in tools]
    often = Counter(name for _, _, name in wanted)
    twice = {name for name, times in often.items() if times > 1}
    given: dict[tuple[str, str], str] = {}
    names = Names([*taken, *RESERVED, *twice])
    for server, tool, name in wanted:
        longer = f"{identifier(server, 'server')}_{name}".lstrip("_")
        wishes = [longer] if name.startswith("_") else [name, longer]
        given[server, tool] = names.give(*wishes)
    return given
