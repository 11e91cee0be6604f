"""Where a project keeps its plugins."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PluginSettings:
    """A project's plugins.

    Args:
        folder: Of the project's own plugins, relative to the project; all that are enabled there are taken.
    """

    folder: str = "plugins"
