"""YAML files that people read and mend: texts of several lines stand as blocks, errors name file and line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tw_autogen.errors import ConversationFormatError, FileError, nearest

_MOST_VALUES = 100_000
_FAST: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FAST_CHARS, _FAST_DEPTH = 20_000, 1000
_BREAKS = "\x85\u2028\u2029"  # a block would turn these into plain line breaks; quotes keep them


def read_yaml(path: Path, error: type[FileError], *, missing: str = "there is no such file") -> Any:
    """Read a YAML file (JSON is YAML too).

    Args:
        path: The file.
        error: What is raised if it can't be read.
        missing: What to say where there is none.

    Raises:
        FileError: of the kind `error`; names the file, the line where it is known, and what is wrong.
    """
    try:
        return _load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise error(missing, path=path) from None
    except OSError as problem:
        raise error(f"can't be read: {problem.strerror or problem}", path=path) from problem
    except UnicodeDecodeError as problem:
        raise error(f"not UTF-8 text: {problem.reason}", path=path) from problem
    except (RecursionError, ValueError) as problem:  # a number of thousands of digits, a date in no month
        words = "nested too deep" if isinstance(problem, RecursionError) else str(problem)
        raise error(f"not YAML: {words}", path=path) from None
    except yaml.YAMLError as problem:
        mark, words = getattr(problem, "problem_mark", None), getattr(problem, "problem", None) or str(problem)
        raise error(f"not YAML: {words}", path=path, line=mark.line + 1 if mark else None) from problem


def _load(text: str) -> Any:
    """Parse YAML; with aliases in it, it stands for no more than 100 000 values.

    Texts of plain size are parsed by libyaml where it is there, which is ten times as fast. It goes down into lists
    without a limit, to the end of the process's stack, so that it gets none that could be nested deeply. Errors are
    worded by the Python parser.

    Raises:
        yaml.YAMLError: it is no YAML, or its aliases stand for more, or for themselves.
    """
    if len(text) <= _FAST_CHARS and sum(map(text.count, ("[", "{", "- ", "? "))) <= _FAST_DEPTH:
        with contextlib.suppress(yaml.YAMLError):
            return _load_with(_FAST, text)
    return _load_with(yaml.SafeLoader, text)


def _load_with(kind: Any, text: str) -> Any:
    loader = kind(text)
    try:
        root = loader.get_single_node()
        if root is not None and "*" in text:
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
        if known[id(node)] > _MOST_VALUES:
            raise yaml.composer.ComposerError(problem="its aliases stand for too much", problem_mark=node.start_mark)
    return known[id(node)]


def read_mapping(path: Path, error: type[FileError], *, missing: str = "there is no such file") -> Mapping[str, Any]:
    """Read a YAML file that holds keys and values; arguments and errors as in `read_yaml`."""
    plain = read_yaml(path, error, missing=missing)
    if not isinstance(plain, Mapping):
        raise error(f"expected keys and values, found {type(plain).__name__}", path=path)
    return plain


def read_plain(path: Path, keys: Iterable[str]) -> Mapping[str, Any]:
    """Read a file that holds keys and values (JSON is YAML too).

    Args:
        path: The file.
        keys: Those that it may have.

    Raises:
        ConversationFormatError: naming the file, the line where it is known, and what is wrong.
    """
    plain = read_mapping(path, ConversationFormatError)
    known = tuple(keys)
    for key in plain:
        if key not in known:
            raise ConversationFormatError(f"unknown key {key!r}{nearest(str(key), known)}", path=path)
    return plain


def readable_yaml(plain: Any) -> str:
    """Give YAML text, keys in their order, words unescaped, texts of several lines as blocks."""
    return yaml.dump(plain, Dumper=_Readable, sort_keys=False, allow_unicode=True, width=100)


class _Readable(yaml.SafeDumper):
    pass


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    as_block = "\n" in text and not any(one in text for one in _BREAKS)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if as_block else None)


_Readable.add_representer(str, _text)
