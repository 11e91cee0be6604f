"""Which rooms have settings, and where they are read from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tw_autogen.code_interpreter import CodeInterpreterSettings
from tw_autogen.kernel import KernelSettings
from tw_autogen.model import EmbeddingSettings, ModelSettings
from tw_autogen.planner import PlannerSettings
from tw_autogen.plugin.settings import PluginSettings
from tw_autogen.recall import RecallSettings
from tw_autogen.session.settings import SessionSettings
from tw_autogen.settings import Settings

ROOMS: Mapping[str, type] = {
    "model": ModelSettings,
    "embedding": EmbeddingSettings,
    "recall": RecallSettings,
    "planner": PlannerSettings,
    "code_interpreter": CodeInterpreterSettings,
    "plugin": PluginSettings,
    "kernel": KernelSettings,
    "session": SessionSettings,
}
"""Every room that has settings."""


def read_settings(
    keywords: Mapping[str, Any] | None = None,
    *,
    project: Path | str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """Read all settings, from the places that `tw_autogen.settings` lists.

    Args:
        keywords: Dotted keys, such as `{"session.max_posts": 20}`.
        project: Folder with a project file; None: the current folder.
        environ: The environment; None: that of this process.

    Raises:
        SettingsError: an unknown key or a wrong value; says where it stands.
    """
    environ = os.environ if environ is None else environ
    home = environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Settings(
        ROOMS,
        keywords,
        environ=environ,
        project=Path(project) if project else Path.cwd(),
        user_file=Path(home, "tw-autogen", "config.yaml"),
    )
