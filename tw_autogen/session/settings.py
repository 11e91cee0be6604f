"""A session's settings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SessionSettings:
    """A session's settings.

    Args:
        workspace: Folder in which each session makes its own; relative to the current directory.
        max_posts: How many posts a round may have before it ends as failed.
        round_seconds: How long a round may take, wall clock.
        idle_seconds: After so long without a request the session closes itself; 0: never.
        profile_chars: How much of a request the description of its files and data may take.
    """

    workspace: str = ".tw/sessions"
    max_posts: int = 30
    round_seconds: float = 1800.0
    idle_seconds: float = 0.0
    profile_chars: int = 4000
