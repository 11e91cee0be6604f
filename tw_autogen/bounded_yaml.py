"""YAML of which whoever wrote it is not trusted: a few lines with aliases can stand for more than fits into memory."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from typing import Any

import yaml

MAX_VALUES = 100_000
_CHARS_OF_A_VALUE = 32
"""A longer text counts as so many more values: aliases of it are short, and what they stand for is not."""
_LONGEST_NUMBER = 400
"""In characters: longer ones take quadratic time (`1:59:59`, in base 60), or can't be printed (hexadecimal)."""
_SHORT_CHARS = 100_000
_MAX_FAST_BRACKETS, _MAX_INDENT = 1000, 500
"""What libyaml gets, which is ten times as fast: nested deeply it would reach the end of the process's stack."""
_INDENT = re.compile(r"[ \t:?-]+")
_PLAIN_DEPTH = 20
_MAX_BRACKETS = 40
_QUOTED = re.compile(r"'(?!<[a-z ]{1,40}>')[^']{2,}'|\"[^\"]{2,}\"")
_BOUNDS = (yaml.StreamStartEvent, yaml.StreamEndEvent, yaml.DocumentEndEvent)
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
_WORDS: Mapping[str, Mapping[str, bool | None]] = {
    "tag:yaml.org,2002:bool": {"true": True, "false": False},
    "tag:yaml.org,2002:null": {"": None, "null": None, "~": None},
}


class _Loader(yaml.SafeLoader):
    """Has errors that are worded for people; for each token it goes through all open brackets."""

    def fetch_flow_collection_start(self, TokenClass: type[yaml.Token]) -> None:  # noqa: N803 - yaml's own name
        if self.flow_level >= _MAX_BRACKETS:
            problem = f"more than {_MAX_BRACKETS} brackets are open"
            raise yaml.scanner.ScannerError(problem=problem, problem_mark=self.get_mark())
        super().fetch_flow_collection_start(TokenClass)


class _FastLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # where libyaml is there
    """Is ten times as fast."""


def _with_length_limit(construct: Callable[[Any, yaml.ScalarNode], Any]) -> Callable[[Any, yaml.ScalarNode], Any]:
    def number(loader: Any, node: yaml.ScalarNode) -> Any:
        if len(node.value) > _LONGEST_NUMBER:
            raise ValueError(f"a number of {len(node.value)} characters; at most {_LONGEST_NUMBER} are read")
        return construct(loader, node)

    return number


def _refuse_tag(loader: Any, node: yaml.Node) -> Any:
    """Refuse what JSON has no form for: it would be shown otherwise than it is used."""
    kind = node.tag.rpartition(":")[2]
    raise yaml.constructor.ConstructorError(
        problem=f"no value of the kind !!{kind} is read", problem_mark=node.start_mark
    )


for _kind in (_Loader, _FastLoader):
    for _tag in ("binary", "set", "omap", "pairs"):
        _kind.add_constructor(f"tag:yaml.org,2002:{_tag}", _refuse_tag)
    _kind.add_constructor("tag:yaml.org,2002:int", _with_length_limit(_kind.construct_yaml_int))
    _kind.add_constructor("tag:yaml.org,2002:float", _with_length_limit(_kind.construct_yaml_float))


def load(text: str, *, enforce_limit: bool = True, unique: bool = False) -> Any:
    r"""Parse YAML that stands for no more than 100 000 values, an alias counted each time.

    A text counts as one for each 32 characters.

    Args:
        text: One document.
        enforce_limit: False: without aliases it may stand for any number, which is no more than its length.
        unique: A key that stands twice in a mapping is an error; else the last one counts.

    Raises:
        yaml.YAMLError: it is no YAML, stands for more, a key stands twice where that is an error, an alias stands for
            what holds it, or a value is binary, a set or a list of pairs.
        ValueError: it holds a number of more than 400 characters, or a date in no month.
        RecursionError: it is nested too deep.

    Example:
        >>> load("a: &a [1]\nb: *a")
        {'a': [1], 'b': [1]}
    """
    short = len(text) <= _SHORT_CHARS
    try:
        if short or not enforce_limit:  # so short a text stands for fewer values
            with contextlib.suppress(_NotPlain):
                return _load_plain_document(text, unique=unique)
        if text.count("[") + text.count("{") <= _MAX_FAST_BRACKETS and _longest_indent(text) <= _MAX_INDENT:
            return _load(_FastLoader, text, enforce_limit=enforce_limit, unique=unique)
    except yaml.YAMLError:
        if not short:  # for its error alone the other one would take minutes
            raise
    return _load(_Loader, text, enforce_limit=enforce_limit, unique=unique)  # its errors are worded for people


def _longest_indent(text: str) -> int:
    """Return how long the beginning of a line may be, of blanks and of the signs of lists and keys, in characters."""
    return max(map(len, _INDENT.findall(text)), default=0)


def _load(kind: Any, text: str, *, enforce_limit: bool, unique: bool) -> Any:
    loader = kind(text)
    try:
        root = loader.get_single_node()
        if root is not None and (enforce_limit or "*" in text):
            _expanded_size(root, {})
        if root is not None and unique:
            _refuse_twice(root)
        return None if root is None else loader.construct_document(root)
    finally:
        loader.dispose()


def problem_of(error: Exception) -> tuple[str, int | None]:
    """Return in words what is wrong with a text that `load` has refused, and the line; none of what the text holds.

    Args:
        error: What `load` has raised.

    Returns:
        The problem, in which only names of keys and of YAML's own parts are quoted; and the line, from 1, if known.
    """
    if isinstance(error, RecursionError):
        return "nested too deep", None
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if not isinstance(error, yaml.YAMLError):
        problem = str(error)
    problem = problem or "it is no YAML"
    twice = isinstance(error, yaml.composer.ComposerError) and problem.endswith("stands twice")
    return problem if twice else _QUOTED.sub("…", problem), mark.line + 1 if mark else None


class _NotPlain(Exception):
    """A document holds more than texts, whole numbers, booleans, null, lists and mappings with texts as keys."""


def _load_plain_document(text: str, *, unique: bool) -> Any:
    """Return what a document without aliases and tags stands for, as yaml's constructor does in three times the time.

    Args:
        text: One document, which libyaml gets.
        unique: As of `load`.

    Raises:
        _NotPlain: it is for yaml's constructor.
        yaml.YAMLError: it is no YAML.
    """
    root: list[Any] = []
    into: list[Any] | dict[str, Any] = root
    outer: list[tuple[list[Any] | dict[str, Any], str | None]] = []  # what the lists and mappings stand in
    key: str | None = None
    next_event, resolvers = _FastLoader(text).get_event, _FastLoader.yaml_implicit_resolvers
    while (event := next_event()) is not None:
        kind = type(event)
        if kind is yaml.ScalarEvent:
            value: Any = _scalar(event, resolvers)
        elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            if event.tag or event.anchor or (key is None and type(into) is dict) or len(outer) > _PLAIN_DEPTH:
                raise _NotPlain
            outer.append((into, key))
            into, key = {} if kind is yaml.MappingStartEvent else [], None
            continue
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            value = into
            into, key = outer.pop()
        elif kind in _BOUNDS or (kind is yaml.DocumentStartEvent and not (root or event.version or event.tags)):
            continue
        else:
            raise _NotPlain
        if isinstance(into, list):
            into.append(value)
        elif key is not None:
            into[key], key = value, None
        elif type(value) is str and not (unique and value in into):
            key = value
        else:
            raise _NotPlain
    return root[0] if root else None


def _scalar(event: yaml.ScalarEvent, resolvers: Mapping[str, Any]) -> str | int | bool | None:
    if event.tag or event.anchor:
        raise _NotPlain
    text: str = event.value
    if event.implicit[0]:  # no quotes
        for tag, pattern in resolvers.get(text[:1], ()):
            if pattern.match(text):
                if _WHOLE.fullmatch(text):
                    return int(text)
                if text in _WORDS.get(tag, ()):
                    return _WORDS[tag][text]
                raise _NotPlain
    return text


def _refuse_twice(root: yaml.Node) -> None:
    """Refuse a document in which a key stands twice in one mapping.

    Args:
        root: As it was composed.

    Raises:
        yaml.YAMLError: names the key's line.
    """
    left, seen = [root], set[int]()
    while left:
        node = left.pop()
        if id(node) in seen or isinstance(node, yaml.ScalarNode):
            continue
        seen.add(id(node))
        pairs = node.value if isinstance(node, yaml.MappingNode) else [(one,) for one in node.value]
        keys = set[tuple[str, str]]()
        for key in (pair[0] for pair in pairs if len(pair) > 1 and isinstance(pair[0], yaml.ScalarNode)):
            if (key.tag, key.value) in keys:
                raise yaml.composer.ComposerError(problem=f"{key.value!r} stands twice", problem_mark=key.start_mark)
            keys.add((key.tag, key.value))
        left.extend(one for pair in pairs for one in pair)


def _expanded_size(node: yaml.Node, known: dict[int, int]) -> int:
    """Return how many values a node stands for, an alias counted each time, and a long text as several.

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
        text = len(node.value) // _CHARS_OF_A_VALUE if isinstance(node, yaml.ScalarNode) else 0
        known[id(node)] = 1 + text + sum(_expanded_size(one, known) for one in inner)
        if known[id(node)] > MAX_VALUES:
            raise yaml.composer.ComposerError(problem="it stands for too many values", problem_mark=node.start_mark)
    return known[id(node)]
