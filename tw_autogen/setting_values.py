"""`Setting`: one value and where it came from; `fit_setting` brings it to the type that is wanted."""

from __future__ import annotations

import dataclasses
import math
import os
import re
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from tw_autogen.closing import value_set
from tw_autogen.errors import SettingsError, did_you_mean
from tw_autogen.lazy_module import LazyModule

if TYPE_CHECKING:
    import pydantic
    import yaml

    from tw_autogen import bounded_yaml
else:
    pydantic = LazyModule("pydantic")  # slow to load, and a start with few settings needs none of it
    yaml = LazyModule("yaml")
    bounded_yaml = LazyModule("tw_autogen.bounded_yaml")

_NAME = re.compile(r"[\w./-]{1,100}")
_NAMED_IN: ContextVar[Path | None] = ContextVar("named_in", default=None)


@dataclass(frozen=True)
class Setting:
    """One value and where it came from, such as `OPENAI_API_KEY` or `/home/me/project/tw_autogen.yaml`.

    Args:
        value: As it stands there.
        origin: Where it stands.
        given: It was given in code or on the command line, and beats all else.
        passed_over: Where a role doesn't know it, that is no error but named in the log, as TaskWeaver's keys are.
        file: The file of a folder in which it stands; None: the user has said it.
        base: Where a relative path in it begins, the folder of whatever file it stands in; None: the current folder.
        trusted: The user has said it, or trusts the folder of `file` in full.
        written: In `file`, before it became a path as seen from its folder.
    """

    value: Any
    origin: str
    given: bool = False
    passed_over: bool = False
    file: Path | None = None
    base: Path | None = None
    trusted: bool = True
    written: Any = None


def setting_of_keyword(key: str, value: Any) -> Setting:
    """Return a keyword as a setting, with the origin that it brings.

    Args:
        key: Dotted.
        value: As it was given; may be a `Setting`.
    """
    if isinstance(value, Setting):
        return dataclasses.replace(value, given=True)
    return Setting(value, f"the keyword {key!r}", given=True)


def relative_to_folder(folder: Path) -> AbstractContextManager[None]:
    """Take relative paths of keywords and of the environment as seen from a folder, in this block.

    Args:
        folder: What was the current one when they were named; absolute.
    """
    return value_set(_NAMED_IN, folder)


def naming_folder() -> Path | None:
    """Return the folder in which relative paths of keywords begin here; None: the current one."""
    return _NAMED_IN.get()


def _parse_list(key: str, text: str, origin: str, *, of_folder: bool) -> list[Any]:
    """Read a list that is written as text: `a,b`, or `['a', 'b']` as in YAML, JSON and Python.

    A whole path that is there is one thing, also with a comma: `--set kernel.read="$PWD"` means that folder. A
    folder's file has lists for that; where its paths lead is not looked at here.
    """
    text = text.strip()
    if not of_folder and "," in text and os.path.isabs(text) and os.path.lexists(text):
        return [text]
    if not text.startswith(("[", "(", "{", '"', "'")):
        return [part.strip() for part in text.split(",") if part.strip()]
    found: Any = None
    if text.startswith("["):
        with suppress(yaml.YAMLError, RecursionError):
            found = yaml.load(text, yaml.BaseLoader)  # makes nothing but texts, lists and mappings
    if not isinstance(found, list):
        words = f"{place_of_setting(origin, key)}: no list: {text[:200]}; write a,b or ['a', 'b']"
        raise SettingsError(words, key=key, origin=origin)
    return found


def shown_key(key: str) -> str:
    """Return a key of a settings file for an error; a text that is no name may be a line of some other file."""
    return repr(key) if _NAME.fullmatch(key) else "(no word)"


def unknown_setting(name: str, origin: str, keys: Iterable[str], spelled: Callable[[str], str] = str) -> SettingsError:
    """Return the error for an unknown setting; it names the neighbour, else its section's settings, else all sections.

    Args:
        name: What was written.
        origin: Where it stands.
        keys: The dotted keys of all settings.
        spelled: Spells a key, or the beginning of one (`session.`), in the form of `name`.

    Example:
        >>> str(unknown_setting("model.x", "x.yaml", ["model.temperature", "session.roles"]))
        "x.yaml: unknown setting 'model.x'; known: 'model.temperature'"
        >>> str(unknown_setting("x", "x.yaml", ["model.name", "session.roles"]))
        "x.yaml: unknown setting 'x'; sections: model, session; all settings: docs/settings-reference.md"
    """
    keys = sorted(keys)
    sections = dict.fromkeys(key.partition(".")[0] for key in keys)
    meant = did_you_mean(name, map(spelled, keys))
    own = next((section for section in sections if name.startswith(spelled(f"{section}."))), None)
    if own and not meant:
        meant = f"; known: {', '.join(repr(spelled(key)) for key in keys if key.startswith(f'{own}.'))}"
    meant = meant or f"; sections: {', '.join(sections)}; all settings: docs/settings-reference.md"
    return SettingsError(f"{origin}: unknown setting {shown_key(name)}{meant}", key=name, origin=origin)


def place_of_setting(origin: str, key: str) -> str:
    """Return where a setting stands, with its key once.

    Args:
        origin: Where it stands; `--set model.name` holds the key already.
        key: The dotted key.

    Example:
        >>> place_of_setting("x.yaml", "model.name"), place_of_setting("--set model.name", "model.name")
        ('x.yaml: model.name', '--set model.name')
    """
    return origin if origin.endswith(f" {key}") else f"{origin}: {key}"


def fit_setting(key: str, setting: Setting, hint: Any) -> Any:
    """Bring a value to the field's type, as text from the environment must be.

    Args:
        key: The dotted key, for the error.
        setting: The value, with the place it comes from.
        hint: The field's type, as `typing.get_type_hints` gives it.

    Raises:
        SettingsError: it can't be, or is or holds the number nan; says where it stands.
    """
    value = _fit_value(key, setting, hint)
    if _holds_nan(value):  # no comparison with it is true, so a limit of nan would limit nothing
        raise SettingsError(f"{setting.origin}: {key}: expected a number, got nan", key=key, origin=setting.origin)
    return value


def _fit_value(key: str, setting: Setting, hint: Any) -> Any:
    value = setting.value
    if isinstance(value, bool) and ("on" if value else "off") in get_args(hint):
        value = "on" if value else "off"  # which YAML takes for a flag
    if isinstance(value, str) and str(hint).startswith("tuple"):
        value = _parse_list(key, value, setting.origin, of_folder=setting.file is not None)
    elif isinstance(value, str) and str(hint).startswith("collections.abc.Mapping") and value.lstrip().startswith("{"):
        with suppress(yaml.YAMLError, ValueError, RecursionError):  # what is no YAML or JSON, or no day, stays text
            value = bounded_yaml.load(value, unique=setting.file is not None)
    if _is_of_type(value, hint):
        return value
    if type(value) is list and _is_of_type(tuple(value), hint):
        return tuple(value)
    try:
        return pydantic.TypeAdapter(hint).validate_python(value, strict=isinstance(value, bool))  # `yes` is no number
    except pydantic.ValidationError as error:
        problem = error.errors()[0]["msg"]
        # never a secret, nor endless
        shown = "the value given" if "key" in key.rsplit(".", 1)[-1] else reprlib.repr(value)
        place = place_of_setting(setting.origin, key)
        words = f"{place}: {problem[0].lower()}{problem[1:]}, got {shown}{_nearest_choice(value, hint)}"
        raise SettingsError(words, key=key, origin=setting.origin) from None


def _holds_nan(value: Any) -> bool:
    if dataclasses.is_dataclass(value):
        value = vars(value)
    if isinstance(value, Mapping):
        return any(map(_holds_nan, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_holds_nan, value))
    return isinstance(value, float) and math.isnan(value)


def _is_of_type(value: Any, hint: Any) -> bool:
    """Return whether a value is of a type already, for the types that nearly every setting has."""
    if type(value) is tuple:
        return get_origin(hint) is tuple and get_args(hint) == (str, ...) and all(type(one) is str for one in value)
    if type(value) not in (bool, float, int, str):
        return False
    if get_origin(hint) is Literal:
        return any(arg == value and type(arg) is type(value) for arg in get_args(hint))
    return hint in (type(value), type(value) | None)


def _nearest_choice(value: Any, hint: Any) -> str:
    """Return which of a `Literal`'s texts was probably meant; empty where the message lists them all."""
    choices = [arg for arg in get_args(hint) if isinstance(arg, str)] if get_origin(hint) is Literal else []
    return did_you_mean(value, choices) if isinstance(value, str) else ""


def expanded_path(value: Any, folder: Path | None) -> Any:
    """Return a path as seen from a folder; what is empty, absolute or no text, as it is.

    Args:
        value: The path; `~` is replaced.
        folder: Where a relative path begins; None: nowhere, it stays relative.
    """
    if not isinstance(value, str) or not value:
        return value
    value = str(Path(value).expanduser()) if value.startswith("~") else value
    return value if folder is None else str(Path.cwd() / folder / value)


def climbed_path(value: Any) -> Any:
    """Return a path, or several, without `..`: up from where the links before lead, as the system goes."""
    if isinstance(value, list | tuple):
        return list(map(climbed_path, value))
    parts = Path(value).parts if isinstance(value, str) and not value.lstrip().startswith("{") else ()
    if os.pardir not in parts:
        return value
    behind = len(parts) - parts[::-1].index(os.pardir)
    return str(Path(os.path.realpath(Path(*parts[:behind])), *parts[behind:]))


def real_path_of(value: Any) -> Any:
    """Return a path, or several, where their links lead; what is empty as it is."""
    if isinstance(value, list | tuple):
        return list(map(real_path_of, value))
    return os.path.realpath(value) if value else value


NO_TEXT = re.compile("[\0\ud800-\udfff]")
"""What no path, variable or prompt takes: a NUL, and half of a surrogate pair."""


def texts_of(value: Any) -> Iterator[str]:
    """Return all texts of a value, those in its lists and mappings included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from texts_of([*value, *value.values()])
    elif isinstance(value, Sequence):
        for one in value:
            yield from texts_of(one)
