"""Chooses the few plugins that fit a request, where all of them would be too much for a prompt."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from tw_autogen.code_interpreter.task_type import task_type
from tw_autogen.model import LexicalRanker, Ranked, Ranker
from tw_autogen.plugin import PluginSpec
from tw_autogen.python_source import parsed_cell

Enabled = bool | Literal["auto"]

_WORD = re.compile(r"[^\W\d]\w*")
_OF_ITS_TYPE = 0.25
"""What a plugin gains that serves the task's type, as a part of the best one's score."""


@dataclass(frozen=True)
class SelectedPlugins:
    """Which plugins go into a prompt.

    Args:
        specs: Those that go, in the order of all.
        selected: Names of those that the request has chosen, best first; empty where all go.
    """

    specs: tuple[PluginSpec, ...]
    selected: tuple[str, ...] = ()


def select_plugins(
    specs: Sequence[PluginSpec],
    request: str,
    *,
    budget_chars: int,
    top_k: int = 8,
    always: Collection[str] = frozenset(),
    ranker: Ranker | None = None,
    enabled: Enabled = "auto",
) -> SelectedPlugins:
    """Choose the plugins whose stubs go into a prompt: all if they fit, else those that have to do with the request.

    Args:
        specs: All plugins; their order is kept.
        request: What is to be done, in words.
        budget_chars: How long all stubs may be together; the best one, and those that always go, go in any case.
        top_k: At most so many are chosen by the request.
        always: Names that are kept whatever the request says: those that code has used already. A spec that says
            `required` is kept too.
        ranker: Says which fit; None: by the words of name, tags and description.
        enabled: `auto`: choose if not all fit the budget; True: choose in any case; False: all go.

    Returns:
        The same for the same arguments. A plugin that has nothing to do with the request is not chosen to fill up: none
        that fits is an answer too.

    Raises:
        ModelError: the ranker's server could not be asked.

    Example:
        >>> specs = [PluginSpec("tell_joke", "Tell a joke."), PluginSpec("sql_pull_data", "Pull rows from a database.")]
        >>> chosen = select_plugins(specs, "Which databases are there?", budget_chars=10)
        >>> [spec.name for spec in chosen.specs]
        ['sql_pull_data']

    Source: TaskWeaver's `PluginSelector`, which embeds name and description. Differs: without an embedder words are
    compared (BM25); nothing is chosen without a reason; a task's type counts, as with Data Interpreter's tools.
    """
    stub_chars = [_stub_chars(spec) for spec in specs]
    if not _needs_selection(stub_chars, budget_chars, enabled):
        return SelectedPlugins(tuple(specs))
    kept = {index for index, spec in enumerate(specs) if spec.required or spec.name in always}
    left_chars = budget_chars - sum(stub_chars[index] for index in kept)
    by_request: list[int] = []
    for position, _ in rank_plugins(specs, request, ranker):
        if len(by_request) == top_k:
            break
        if position in kept:
            by_request.append(position)
        elif stub_chars[position] <= left_chars or not by_request:
            by_request.append(position)
            left_chars -= stub_chars[position]
    kept.update(by_request)
    return SelectedPlugins(
        tuple(spec for index, spec in enumerate(specs) if index in kept),
        tuple(specs[index].name for index in by_request),
    )


def needs_selection(specs: Sequence[PluginSpec], budget_chars: int, enabled: Enabled = "auto") -> bool:
    """Return whether `select_plugins` makes a choice, or all plugins go.

    Args:
        specs: All plugins.
        budget_chars: How long their stubs may be together, in characters.
        enabled: `auto`, or always or never.
    """
    return _needs_selection(map(_stub_chars, specs), budget_chars, enabled)


def rank_plugins(specs: Sequence[PluginSpec], request: str, ranker: Ranker | None = None) -> Ranked:
    """Return the positions of the specs that have to do with a request, best first; see `Ranker.rank`.

    One that the request names comes before all that it doesn't.

    Args:
        specs: All plugins.
        request: The text that they should fit.
        ranker: Compares texts; None: by their words.

    Raises:
        ModelError: the ranker's server could not be asked.
    """
    ranked = (ranker or LexicalRanker()).rank(request, texts_of(specs))
    best = ranked[0][1] if ranked else 1.0
    scores = dict(ranked)
    kind, tokens = task_type(request), set(_WORD.findall(request))
    for index, spec in enumerate(specs):
        if spec.name in tokens and "_" in spec.name:  # named word for word; one plain word may mean something else
            scores[index] = scores.get(index, 0.0) + 2 * best
        if kind and kind in spec.tags:
            scores[index] = scores.get(index, 0.0) + _OF_ITS_TYPE * best
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def texts_of(specs: Sequence[PluginSpec]) -> tuple[str, ...]:
    """Return what a plugin is found by."""
    return tuple(" ".join([f"{spec.name}: {spec.description}", *spec.tags]) for spec in specs)


def _needs_selection(stub_chars: Iterable[int], budget_chars: int, enabled: Enabled) -> bool:
    if enabled == "auto":
        return any(chars > budget_chars for chars in accumulate(stub_chars))
    return enabled and any(stub_chars)


def _stub_chars(spec: PluginSpec) -> int:
    return len(spec.stub()) + 1


def names_used(code: str, specs: Sequence[PluginSpec]) -> frozenset[str]:
    """Return which plugins a code names; text and comments do not count, and code that is no Python names none.

    Args:
        code: Python, with magics.
        specs: The plugins that are looked for.

    Example:
        >>> names_used('sql("join")', [PluginSpec("sql", "Pull."), PluginSpec("join", "Join.")])
        frozenset({'sql'})
    """
    read = {node.id for node in ast.walk(parsed(code)) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return frozenset(spec.name for spec in specs if spec.name in read)


def parsed(code: str) -> ast.AST:
    """Return the syntax of a cell, its magic lines left out; that of nothing if it is no Python."""
    return parsed_cell(code) or ast.Module([], [])
