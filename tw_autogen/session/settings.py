"""A session's settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tw_autogen.settings_trust import COUNT, LIMIT, LOWER, NAMED


@dataclass(frozen=True)
class SessionSettings:
    """A session's settings.

    Args:
        workspace: Folder in which each session makes its own; relative to the project's file in which it is set, else
            to the current folder.
        roles: Who takes part where nobody says otherwise: names of shipped roles, folders of one's own.
        role_folder: Where a project's own roles lie, each a folder, relative to the project; empty: `roles` and
            `ext_role`. Named by their folder, they take part.
        user_folder: The folder that the user works in: code may read it, and is told where it is, because the names of
            files in a request are relative to it; empty: none. The command line takes the current one.
        max_posts: How many posts a round may have before it ends as failed.
        max_calls: How many calls of models a round may make, those of agents that it asks included; 0: as many as it
            takes. A limit ends the round as failed, with the reason and what was found until then.
        max_tokens: How many tokens a round may cost, sent and written ones together; 0: no limit. The call that passes
            it is the last; calls side by side go only if all of them are expected to fit. Where a server reports none,
            those of the prompt are estimated.
        max_dollars: How much money a round may cost, where `model.prices` names what its models cost; 0: no limit. A
            model that the settings name needs a price then; another one that doesn't say what a call has cost counts
            nothing, nor does one whose server reports no tokens. Calls side by side go as for `max_tokens`.
        max_session_calls: How many calls of models all rounds of a session may make together, those of agents that its
            rounds ask included; 0: no limit. Rounds of the session that it continues count too.
        max_session_tokens: Most tokens of all rounds of a session together, rounds of the session that it continues
            included; 0: no limit.
        max_session_dollars: Most money that all rounds of a session may cost together, rounds of the session that it
            continues included; 0: no limit. Prices as for `session.max_dollars`.
        round_seconds: How long a round may take, wall clock.
        most_open: How many sessions an agent that has one for each of its partners keeps open; the one unused for
            longest is closed for a new one.
        idle_seconds: After so long without a request the session closes itself; 0: never. Where it is not set, sessions
            of agents with groups and services close after an hour.
        keep_days: On the command line, and by a service, sessions of the workspace in which nothing happened for so
            many days are removed when one is opened; 0 or less: they stay for ever.
        notebook_progress: In a notebook, show below the cell what a request does while it runs.
        profile_chars: How long the description of a request's files and data may be, with that of the user's folder.
        profile_folder: What a prompt says of the files in `user_folder`: `content`: names, sizes, and as far as
            `profile_chars` goes what they hold: with the first request those first that have to do with it, then
            others by name; with later ones only those that have to do with them; `names`: names and sizes; `off`:
            nothing. Where nothing is set, the command line takes `content`, because it announces the folder. Hidden,
            ignored (`.gitignore`) and secret-like files are never named.
        variables_days: The command line, and a service, remove saved variables of sessions in which nothing happened
            for so many days; their cells can be run again. 0: they stay as long as the session.
            `kernel.checkpoint_seconds` says whether and how often variables are saved.
        variables_mb: How large the saved variables of a workspace may be together, those of the oldest sessions go
            first; 0: no limit.
    """

    workspace: str = field(default=".tw/sessions", metadata={**NAMED, "path": True})
    roles: tuple[str, ...] = field(default=("planner", "code_interpreter"), metadata=NAMED)
    role_folder: str = field(default="", metadata={**NAMED, "path": True})
    user_folder: str = field(default="", metadata={"path": "real"})
    max_posts: int = field(default=30, metadata=COUNT)
    max_calls: int = field(default=0, metadata=LIMIT)
    max_tokens: int = field(default=0, metadata=LIMIT)
    max_dollars: float = field(default=0.0, metadata=LIMIT)
    max_session_calls: int = field(default=0, metadata=LIMIT)
    max_session_tokens: int = field(default=0, metadata=LIMIT)
    max_session_dollars: float = field(default=0.0, metadata=LIMIT)
    round_seconds: float = field(default=1800.0, metadata=LOWER)
    most_open: int = 16
    idle_seconds: float = 0.0
    keep_days: float = 30.0
    notebook_progress: bool = True
    profile_chars: int = field(default=6000, metadata=LOWER)
    profile_folder: Literal["content", "names", "off"] = "names"
    variables_days: float = 7.0
    variables_mb: int = 2048
