"""`compact_session`: the older part of what roles remember of a session becomes a summary now."""

from __future__ import annotations

import functools

from tw_autogen.code_interpreter import CodeInterpreter
from tw_autogen.conversation import Round
from tw_autogen.events import CompactionFailed, Event, HistoryCompacted
from tw_autogen.planner import Planner
from tw_autogen.role import Turn
from tw_autogen.session.session import Session


def compact_session(session: Session) -> list[HistoryCompacted | CompactionFailed]:
    """Replace the messages before the last request by a summary, in each role's chat history; one call per history.

    Rounds and journal stay whole; a session that is resumed later reads them whole again.

    Args:
        session: Between two requests.

    Returns:
        For each history that was long enough its role with the estimated tokens before and after, or the error.

    Raises:
        RoundTooCostly: the session has reached a limit of calls, tokens or money.
        SessionBusyError: a round is open.
        SessionClosedError: the session is closed.
    """
    found: list[HistoryCompacted | CompactionFailed] = []

    def emit(event: Event) -> None:
        if isinstance(event, HistoryCompacted | CompactionFailed):
            found.append(event)
        session.emit(event)

    with session._alone():
        session._refuse_second()
        here = session.rounds[-1] if session.rounds else Round("")
        session._budget.open_round(here)  # limits of one round begin anew, those of the session go on
        reserve = functools.partial(session._budget.round.reserve, here)
        turn = Turn(here, session.folder, emit=emit, reserve=reserve)
        for role in session.roles:
            if isinstance(role, Planner | CodeInterpreter):
                role.compact(turn)
    return found
