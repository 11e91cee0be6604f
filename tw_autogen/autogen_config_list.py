"""`read_config_list`: what AutoGen's `OAI_CONFIG_LIST` sets here: key, address and name of the model."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from tw_autogen.errors import ConfigError
from tw_autogen.setting_values import Setting
from tw_autogen.trusted_files import decode_settings


def read_config_list(
    text: str, known: Collection[str], read: Callable[[Path], bytes | None]
) -> Iterator[tuple[str, Setting]]:
    """Read the first entry of AutoGen's `OAI_CONFIG_LIST`.

    Args:
        text: JSON, or the path of a file that holds it.
        known: Dotted keys of the settings there are; without `model.name` nothing is read.
        read: Returns what is in a file; None: there is none.

    Yields:
        Settings of the room `model` by dotted keys.

    Raises:
        ConfigError: it is neither JSON nor a file, or no list of objects.
    """
    if not text.strip() or "model.name" not in known:
        return
    origin = "OAI_CONFIG_LIST"
    path, file = Path(text.strip()), None
    if not text.lstrip().startswith(("[", "{")):
        if (content := read(path)) is None:
            raise ConfigError(f"OAI_CONFIG_LIST: {text!r} is neither JSON nor a file that exists")
        text, origin = decode_settings(path, content), f"OAI_CONFIG_LIST ({path})"
        file = None if path.is_absolute() else path.absolute()  # a relative one is whatever lies in the current folder
    try:
        listed = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{origin}: not JSON: {error}") from error
    first = listed[0] if isinstance(listed, list) and listed else listed
    if not isinstance(first, Mapping):
        raise ConfigError(f"{origin}: expected a list of objects with `model` and `api_key`")
    for theirs, ours in (("api_key", "model.api_key"), ("base_url", "model.base_url"), ("model", "model.name")):
        if first.get(theirs):
            yield ours, Setting(first[theirs], origin, file=file)
