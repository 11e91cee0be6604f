"""YAML files that people read and edit: texts of several lines stand as blocks, errors name file and line."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tw_autogen.errors import FileError, path_suggestion, unknown_key
from tw_autogen.lazy_module import LazyModule
from tw_autogen.trust_store import MAX_BYTES
from tw_autogen.trusted_files import read_content

if TYPE_CHECKING:
    import yaml

    from tw_autogen import bounded_yaml
    from tw_autogen.safe_folder import SafeFolder
else:
    yaml = LazyModule("yaml")
    bounded_yaml = LazyModule("tw_autogen.bounded_yaml")

_MAP = "tag:yaml.org,2002:map"
_BREAKS = "\x85\u2028\u2029"  # in a block or single quotes they end lines; double quotes escape them


def read_yaml(
    path: Path,
    error: type[FileError],
    *,
    missing: str = "there is no such file",
    limit_bytes: int = MAX_BYTES,
    folder: SafeFolder | None = None,
) -> Any:
    """Read a YAML file (JSON is YAML too).

    Args:
        path: The file.
        error: What is raised if it can't be read.
        missing: What to say where there is none.
        limit_bytes: How large it may be.
        folder: The folder in which it lies, where that is open already; None: it is found by its path.

    Raises:
        FileError: of the kind `error`; names the file, the line where it is known, and what is wrong.
    """
    try:
        if folder is None:
            content = read_content(path, limit_bytes=limit_bytes)
        else:
            content = folder.read_file(path.name, limit_bytes=limit_bytes)
        return bounded_yaml.load(content.decode("utf-8"), enforce_limit=False)
    except FileNotFoundError:
        raise error(f"{missing}{path_suggestion(path)}", path=path) from None
    except OSError as problem:
        raise error(f"can't be read: {problem.strerror or problem}", path=path) from problem
    except UnicodeDecodeError as problem:
        raise error(f"not UTF-8 text: {problem.reason}", path=path) from problem
    except (yaml.YAMLError, RecursionError, ValueError) as problem:  # ValueError: a date in no month, say
        words, line = bounded_yaml.problem_of(problem)
        raise error(f"not YAML: {words}", path=path, line=line) from None


def read_mapping(
    path: Path, error: type[FileError], *, keys: Iterable[str] | None = None, missing: str = "there is no such file"
) -> Mapping[str, Any]:
    """Read a YAML file that holds keys and values (JSON is YAML too).

    Args:
        path: The file.
        error: The class of what is raised, as `read_yaml` raises it, or if the file holds anything but keys and values.
        keys: Those that it may have; another one is an error. None: any.
        missing: What the error says if the file does not exist.
    """
    plain = read_yaml(path, error, missing=missing)
    if not isinstance(plain, Mapping):
        raise error(f"expected keys and values, found {type(plain).__name__}", path=path)
    if keys is not None and (problem := unknown_key(plain, keys)):
        raise error(problem, path=path)
    return plain


class Block(str):
    """Text that `readable_yaml` writes as a block, also where it has one line."""


class OneLineMapping(dict[str, Any]):
    """Keys and values that `readable_yaml` writes on one line."""


def readable_yaml(plain: Any, *, width: int = 100) -> str:
    """Return YAML text: keys in their order, text unescaped, text of several lines as a block.

    Args:
        plain: Mappings, lists, text and numbers.
        width: Longer lines of text are folded, in characters.
    """
    return yaml.dump(plain, Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=width)


@functools.cache
def _dumper() -> type[yaml.SafeDumper]:
    class Readable(yaml.SafeDumper):
        pass

    Readable.add_representer(str, _represent_text)
    Readable.add_representer(Block, _represent_text)
    Readable.add_representer(OneLineMapping, lambda self, one: self.represent_mapping(_MAP, one, flow_style=True))
    return Readable


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if isinstance(text, Block) or "\n" in text else None
    style = '"' if any(one in text for one in _BREAKS) else style
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style=style)
