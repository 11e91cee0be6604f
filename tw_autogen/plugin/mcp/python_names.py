"""Names that Python takes, for what servers call as they like."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable

from tw_autogen.variable_names import RESERVED

_NO_WORD = re.compile(r"\W+")


def identifier(words: str, otherwise: str = "tool") -> str:
    """Return a Python identifier that looks like a name: letters, digits and underscores, no keyword.

    Args:
        words: Any text.
        otherwise: What comes first where the text alone is no identifier.

    Example:
        >>> identifier("get-weather"), identifier("2d.plot"), identifier("class")
        ('get_weather', 'tool_2d_plot', 'class_')
    """
    plain = unicodedata.normalize("NFKC", words)
    plain = plain if plain.isidentifier() else _NO_WORD.sub("_", plain).strip("_")
    if not plain or not plain.isidentifier():
        plain = f"{otherwise}_{plain}".rstrip("_")
    return f"{plain}_" if keyword.iskeyword(plain) else plain


def free(wishes: Iterable[str], is_taken: Callable[[str], bool]) -> str:
    """Return the first wish that is free, or the last one with a number behind it.

    Args:
        wishes: Names, the best one first; at least one.
        is_taken: Returns whether a name is used already.
    """
    wished = list(wishes)
    for one in wished:
        if not is_taken(one):
            return one
    number = 2
    while is_taken(f"{wished[-1]}_{number}"):
        number += 1
    return f"{wished[-1]}_{number}"


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
    used = {*taken, *RESERVED, *twice}
    for server, tool, name in wanted:
        longer = f"{identifier(server, 'server')}_{name}".lstrip("_")
        wishes = [longer] if name.startswith("_") else [name, longer]
        given[server, tool] = free(wishes, used.__contains__)
        used.add(given[server, tool])
    return given
