"""Names that variables and functions may have in a kernel."""

from __future__ import annotations

import builtins
import keyword

RESERVED = frozenset({*dir(builtins), *["call_llm_api", "get_ipython", "display", "exit", "quit", "In", "Out"]})
"""What code finds under its name in every kernel, or the host serves there: nothing takes the place of these."""


def name_problem(name: object) -> str:
    """Return why a variable or a function can't have a name, as a clause with a remedy; empty if it can.

    Example:
        >>> name_problem("sum"), name_problem("total")
        ("it would hide Python's own 'sum'; call it 'sum_', for instance", '')
    """
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        return "it is no Python identifier; use letters, digits and underscores, and no keyword"
    if name in RESERVED:
        return f"it would hide Python's own {name!r}; call it {name + '_'!r}, for instance"
    return ""
