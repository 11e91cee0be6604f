"""A session as the command line's options say."""

from __future__ import annotations

from collections.abc import Sequence

from tw_autogen.cli.options import Options
from tw_autogen.events import Handler
from tw_autogen.session import Session, open_session, read_settings

_ROLES = ("planner", "code_interpreter")


def open_for(options: Options, handlers: Sequence[Handler]) -> Session:
    """Open a session.

    Args:
        options: What the shared options said.
        handlers: Called with each event.

    Raises:
        ConfigError: anything is wrong with settings, model, roles or plugins.
        ModelError: the server that should say which model it has does not answer.
    """
    return open_session(
        roles=(*_ROLES, *(role for role in options.roles if role not in _ROLES)),
        plugins=options.plugins,
        folder=options.workspace,
        handlers=handlers,
        settings=read_settings(options.keywords, project=options.project),
    )
