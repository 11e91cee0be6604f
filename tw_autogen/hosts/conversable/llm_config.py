"""An agent's `llm_config`: what in it is refused, and what its roles are asked with."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from tw_autogen.errors import ConfigError

_log = logging.getLogger(__name__)
_STREAMING = frozenset({"stream", "stream_options", "parallel_tool_calls"})
"""Settings without effect on an answer's words; calls of roles go without them."""
_CACHE = "cache_seed"
"""Names a database of pickles in the current folder, whoever made that, or whose code writes there."""

_REFUSED = frozenset({"tools", "functions", "function_call", "tool_choice", "response_format", "stop", "n"})
"""Settings of an agent's own conversation, which would break what its roles say, or be without effect."""


def refuse_settings(name: str, llm_config: Any) -> None:
    """Refuse settings of an `llm_config` that would have no effect on an agent of ours, or a bad one.

    Args:
        name: The agent's.
        llm_config: A dictionary, an object of the host's, or nothing.

    Raises:
        ConfigError: one is there; names it.
    """
    for entry in _config_entries(llm_config):
        found = sorted(key for key in _REFUSED & set(entry) if entry[key] and (key, entry[key]) != ("n", 1))
        if found:
            raise ConfigError(
                f"{name}: llm_config has {', '.join(found)}, which can't reach the roles behind this agent; leave it "
                "out, give functions as plugins=[...], and ask for a form of the answer in words"
            )


def _config_entries(llm_config: Any) -> list[dict[str, Any]]:
    """Return the settings as dictionaries: the common ones, then those of each entry of `config_list`."""
    if not llm_config:
        return []
    plain = dict(llm_config.model_dump() if hasattr(llm_config, "model_dump") else llm_config)
    listed = plain.pop("config_list", None) or ()
    return [plain, *(dict(one.model_dump() if hasattr(one, "model_dump") else one) for one in listed)]


def without_cache(llm_config: Any) -> Any:
    """Return an `llm_config` with which an agent of ours opens no cache of the current folder, for a summary either."""
    entries = _config_entries(llm_config)
    if not entries or (not isinstance(llm_config, dict) and all(entry.get(_CACHE) is None for entry in entries)):
        return llm_config
    return _join_entries_without(frozenset(), entries)


def config_of_roles(llm_config: Any) -> dict[str, Any]:
    """Return an `llm_config` as the client of our roles takes it."""
    return _join_entries_without(_STREAMING | _REFUSED, _config_entries(llm_config))


def _join_entries_without(left_out: frozenset[str], entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Join the settings of `_config_entries` again, without some of them and without a cache of the current folder."""
    if any(entry.get(_CACHE) is not None for entry in entries):
        _log.warning(
            "llm_config has cache_seed, which counts for no role: it would be unpickled from the current folder. "
            "Give a chat a cache of your own: `with Cache.disk(seed, folder) as cache`, initiate_chat(..., cache=cache)"
        )
    kept, *listed = (
        {key: value for key, value in entry.items() if key not in left_out and key != _CACHE and value is not None}
        for entry in entries
    )
    if listed:
        kept["config_list"] = listed
    return {**kept, _CACHE: None}  # the oldest lineage takes a missing one for "cache on disk"
