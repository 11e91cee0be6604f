"""A context and a loader with which a plugin's author calls it in a plain test: no kernel, no model, no session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tw_autogen.plugin import HostPlugin, PluginContext, PluginSpec, find_plugins
from tw_autogen.shipped_folders import shipped_folder

_CallModel = Callable[[list[dict[str, Any]]], str]


def plugin_context(folder: Path, *, call_model: _CallModel | None = None, **session_variables: Any) -> PluginContext:
    """Return what a plugin needs as `ctx`, for a test that makes it itself, as in `Sales("sales", context, {"k": 1})`.

    Args:
        folder: Where its files go; pytest's `tmp_path`.
        call_model: Answers `call_llm_api`; a function that takes messages and gives text.
        **session_variables: What `get_session_var` finds.
    """
    return PluginContext(folder, session_id="test", session_variables=session_variables, call_llm=call_model)


def load_plugin(
    plugin: Path | str | PluginSpec,
    folder: Path | str,
    *,
    call_model: _CallModel | None = None,
    configurations: dict[str, Any] | None = None,
    **session_variables: Any,
) -> HostPlugin:
    """Load a plugin into this process, checked as before a session, and ready to be called.

    Args:
        plugin: Path of its YAML, the name of a shipped one, or its spec; where it says that it runs does not matter
            here.
        folder: Stands for the session's folder; pytest's `tmp_path`.
        call_model: Answers `call_llm_api`; a function that takes messages and gives text.
        configurations: Replace single ones of the YAML's.
        **session_variables: What `get_session_var` finds.

    Raises:
        PluginSpecError: the YAML is wrong.
        PluginLoadError: the Python does not load, or does not fit the YAML.

    Example:
        def test_an_empty_day_is_no_error(tmp_path):
            assert load_plugin("plugins/sales.yaml", tmp_path)("2024-01-01") == (0, "no sales")
    """
    named = Path(plugin) if isinstance(plugin, str) and Path(plugin).suffix else plugin
    (spec,) = find_plugins([named], shipped=shipped_folder("plugins"))
    settings = {**spec.configurations, **(configurations or {})}
    return HostPlugin(
        replace(spec, configurations=settings),
        folder=Path(folder),
        session_variables=session_variables,
        call_model=call_model,
    )
