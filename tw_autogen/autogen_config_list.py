"""`read_config_list`: what AutoGen's `OAI_CONFIG_LIST` sets here: key, address and name of the model."""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from tw_autogen.errors import ConfigError
from tw_autogen.secret_masking import mask_named
from tw_autogen.setting_values import Setting
from tw_autogen.trusted_files import decode_settings

_log = logging.getLogger(__name__)
_MEANS = {
    "api_key": "model.api_key",
    "api_base": "model.base_url",  # as AutoGen called it before 0.2
    "base_url": "model.base_url",
    "model": "model.name",
}


def read_config_list(
    text: str, known: Collection[str], read: Callable[[Path], bytes | None]
) -> Iterator[tuple[str, Setting]]:
    """Read the first entry of AutoGen's `OAI_CONFIG_LIST` whose server is known: a key goes to no other one.

    That is one with a `base_url`, or of OpenAI itself: an entry for another `api_type`, or with an `api_version`
    (Azure), is for a client that knows its server.

    Args:
        text: JSON, or the path of a file that holds it; `docker --env-file` keeps quotes, which are left out.
        known: Dotted keys of the settings there are; without `model.name` nothing is read.
        read: Returns what is in a file; None: there is none.

    Yields:
        Settings of the section `model` by dotted keys.

    Raises:
        ConfigError: it is neither JSON nor a file, or no list of objects.
    """
    text, origin = text.strip(), "OAI_CONFIG_LIST"
    if not text or "model.name" not in known:
        return
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1].strip()
    path, file = Path(text), None
    if not text.startswith(("[", "{")):
        if (content := read(path)) is None:
            is_json = not set(text).isdisjoint("[{:,")  # what is cut off may hold a key
            shown = "its value" if is_json else repr(mask_named(text))
            raise ConfigError(f"OAI_CONFIG_LIST: {shown} is neither JSON nor a file that exists")
        text, origin = decode_settings(path, content), f"OAI_CONFIG_LIST ({path})"
        file = None if path.is_absolute() else path.absolute()  # a relative one is whatever lies in the current folder
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{origin}: not JSON: {error}") from error
    entries = listed if isinstance(listed, list) else [listed]
    if not all(isinstance(entry, Mapping) for entry in entries) or not entries:
        raise ConfigError(f"{origin}: expected a list of objects with `model` and `api_key`")
    first = next((entry for entry in entries if _names_server(entry)), None)
    if first is None:
        _warn_once(
            f"{origin}: no entry names a server that is known here, so no key is taken from it: an entry with an "
            "`api_type` of its own, or with `azure_endpoint`, needs the `base_url` of an OpenAI-compatible server, "
            "and no `api_version`"
        )
        return
    for theirs, ours in _MEANS.items():
        if first.get(theirs):
            yield ours, Setting(first[theirs], origin, file=file)


def _names_server(entry: Mapping[str, Any]) -> bool:
    if entry.get("api_version"):  # of Azure alone, whose `base_url` is another protocol's
        return False
    openai = str(entry.get("api_type") or "openai").lower().replace("_", "") == "openai"
    return bool(entry.get("base_url") or entry.get("api_base") or openai and not entry.get("azure_endpoint"))


@functools.lru_cache(maxsize=8)
def _warn_once(message: str) -> None:
    _log.warning("%s", message)
