"""YAML of which whoever wrote it is not trusted: a few lines with aliases can stand for more than fits into memory."""

from __future__ import annotations

import contextlib
from typing import Any

import yaml

MOST_VALUES = 100_000
_FAST: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FAST_CHARS, _FAST_DEPTH = 20_000, 1000
"""What libyaml gets, which is ten times as fast: nested deeply it would reach the end of the process's stack."""


def load(text: str, *, limit: bool = True) -> Any:
    r"""Parse YAML that stands for no more than 100 000 values, an alias counted each time.

    Args:
        text: One document.
        limit: False: without aliases it may stand for any number, which is no more than its length.

    Raises:
        yaml.YAMLError: it is no YAML, stands for more, or an alias stands for what holds it.
        ValueError: it holds a number of thousands of digits, or a date in no month.
        RecursionError: it is nested too deep.

    Example:
        >>> load("a: &a [1]\nb: *a")
        {'a': [1], 'b': [1]}
    """
    if len(text) <= _FAST_CHARS and sum(map(text.count, ("[", "{", "- ", "? "))) <= _FAST_DEPTH:
        with contextlib.suppress(yaml.YAMLError):
            return _load(_FAST, text, limit=limit)
    return _load(yaml.SafeLoader, text, limit=limit)  # its errors are worded for people


def _load(kind: Any, text: str, *, limit: bool) -> Any:
    loader = kind(text)
    try:
        root = loader.get_single_node()
        if root is not None and (limit or "*" in text):
            _expanded_size(root, {})
        return None if root is None else loader.construct_document(root)
    finally:
        loader.dispose()


def _expanded_size(node: yaml.Node, known: dict[int, int]) -> int:
    """Return how many values a node stands for, an alias counted each time.

    Args:
        node: Of a document that was composed.
        known: The sizes of nodes by their ids; 0 while they are being counted. Written to.

    Raises:
        yaml.YAMLError: more than 100 000, or a node that holds itself.
    """
    if known.get(id(node)) == 0:
        raise yaml.composer.ComposerError(problem="an alias stands for what holds it", problem_mark=node.start_mark)
    if id(node) not in known:
        known[id(node)] = 0
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        inner = node.value if isinstance(node, yaml.SequenceNode) else [one for pair in pairs for one in pair]
        known[id(node)] = 1 + sum(_expanded_size(one, known) for one in inner)
        if known[id(node)] > MOST_VALUES:
            raise yaml.composer.ComposerError(problem="it stands for too many values", problem_mark=node.start_mark)
    return known[id(node)]
