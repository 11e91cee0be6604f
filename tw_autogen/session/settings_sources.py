"""Which sections have settings, and where they are read from."""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tw_autogen.code_interpreter import CodeInterpreterSettings
from tw_autogen.errors import ConfigError
from tw_autogen.kernel import KernelSettings
from tw_autogen.model import EmbeddingSettings, ModelSettings
from tw_autogen.named_folders import current_folder
from tw_autogen.planner import PlannerSettings
from tw_autogen.plugin import PluginSettings
from tw_autogen.recall import RecallSettings
from tw_autogen.session.project import project_folder
from tw_autogen.session.role_configs import role_spec
from tw_autogen.session.settings import SessionSettings
from tw_autogen.session.trust_review import Review, trust_lines
from tw_autogen.settings import Settings
from tw_autogen.settings_trust import Trust
from tw_autogen.trust_store import TrustStore, config_folder
from tw_autogen.trusted_files import compared_with

_log = logging.getLogger(__name__)

SECTIONS: Mapping[str, type] = {
    "model": ModelSettings,
    "embedding": EmbeddingSettings,
    "recall": RecallSettings,
    "planner": PlannerSettings,
    "code_interpreter": CodeInterpreterSettings,
    "plugin": PluginSettings,
    "kernel": KernelSettings,
    "session": SessionSettings,
}
"""Every section that has settings."""


def keyword_settings(keywords: Mapping[str, Any]) -> Settings:
    """Return settings of keywords alone; no file and no variable of the environment is read.

    Args:
        keywords: Dotted keys.

    Raises:
        SettingsError: an unknown key or a wrong value.
    """
    return Settings(SECTIONS, keywords, rule_of_role=_rule_of_role)


def read_settings(
    keywords: Mapping[str, Any] | None = None,
    *,
    project: Path | str | None = None,
    environ: Mapping[str, str] | None = None,
    trust: bool = False,
) -> Settings:
    """Read all settings, from the places that `tw_autogen.settings` lists.

    What a folder's file sets counts in full only if the folder is trusted: by `trust`, or because the user said so at a
    terminal and nothing that matters has changed since. `Settings.left_out` holds what does not count.

    Args:
        keywords: Dotted keys, such as `{"session.max_posts": 20}`.
        project: Folder with a project file; None: the current folder.
        environ: The environment; None: that of this process.
        trust: The folder is trusted, for this call; nothing is remembered.

    Raises:
        SettingsError: an unknown key or a wrong value; says where it stands.
    """
    place = project_folder(project) if project else current_folder()
    make = _settings_factory(keywords, place, environ)
    trusted_once = bool(TrustStore.of_user(named=bool(project)).read(place)[0])
    how = Trust.full if trust else Trust.named if project else Trust.none
    found = make(trust=how, looks_outside=trust or trusted_once)  # else nothing says that it may name other places
    files = Review(found).files_if_trusted() if trusted_once and not trust else None
    if files is None:
        return found
    with compared_with(files):
        return make(trust=Trust.full, files=files)


def read_logged(
    keywords: Mapping[str, Any] | None = None, *, project: Path | str | None = None, trust: bool = False
) -> Settings:
    """Read all settings as `read_settings` does, and log what of a folder that is not trusted does not count.

    Args:
        keywords: As in `read_settings`.
        project: As in `read_settings`.
        trust: As in `read_settings`.

    Raises:
        SettingsError: as `read_settings`.
    """
    read = read_settings(keywords, project=project, trust=trust)
    for line in trust_lines(read, "trust=True", brings_code=False):
        _log.warning("%s", line)
    return read


def review_folder(
    keywords: Mapping[str, Any] | None = None,
    *,
    project: Path | str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Review:
    """Return what a folder's files want, and get only if the user trusts the folder.

    Args:
        keywords: As in `read_settings`, like the others.
        project: Folder with a project file; None: the current folder.
        environ: The environment; None: that of this process.

    Raises:
        SettingsError: as `read_settings`.
    """
    place = project_folder(project) if project else current_folder()
    return Review(_settings_factory(keywords, place, environ)(trust=Trust.named if project else Trust.none))


def _settings_factory(
    keywords: Mapping[str, Any] | None, place: Path, environ: Mapping[str, str] | None
) -> functools.partial[Settings]:
    environ = os.environ if environ is None else environ
    config = config_folder(environ)
    user_file = config / "config.yaml" if config else None
    return functools.partial(
        Settings,
        SECTIONS,
        keywords,
        environ=environ,
        project=place,
        user_file=user_file,
        texts={},
        located={},
        rule_of_role=_rule_of_role,
        is_role_path=_is_role_path,
    )


def _is_role_path(name: str, key: str) -> bool | None:
    """Return whether a setting of a shipped or installed role is a path; None: nobody knows the role before trust."""
    try:
        return None if "/" in name or os.sep in name else role_spec(name).is_path(key)
    except ConfigError:
        return None


def _rule_of_role(name: str, key: str) -> str:
    """Return how far a folder must be trusted for a setting of a role: `named` or `trusted`.

    Args:
        name: The role's. One that is neither shipped nor installed is the folder's own; nothing is loaded by a path.
        key: The setting's, without the role's name.
    """
    if "/" in name or os.sep in name:
        return "trusted"
    try:
        spec = role_spec(name)
    except ConfigError:
        return "named"
    try:
        return spec.required_trust(key)
    except ConfigError:  # it doesn't load, for want of an extra
        return "trusted"
