"""What a role does wrong while it answers: it raises something, or gives no post; and who learns of it."""

from __future__ import annotations

import inspect
import logging
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from tw_autogen.conversation import Attachment, AttachmentType, Post, Round
from tw_autogen.errors import RoleError, TwAutogenError, Unreadable
from tw_autogen.role.role import Offering, Role, Worker
from tw_autogen.role.role_source import line_in
from tw_autogen.role.taskweaver.spec import AdaptedRole
from tw_autogen.text_truncation import shortened

_OURS = __name__.partition(".")[0]
_REASON_CHARS = 2000
_log = logging.getLogger(__name__)


def failed_post(role: Role, error: Exception, here: Round, receivers: Sequence[str]) -> Post:
    """Return the post from which whoever asked a role learns that it failed; the log gets the place, with DEBUG all.

    Args:
        role: Who was to answer.
        error: What came instead.
        here: The round.
        receivers: To whom it may write, first who asked; empty: to anybody, so that nobody could go on without it.

    Raises:
        RoleError: nobody could go on without it.
        Exception: the error itself, where it isn't the role's.
    """
    failed = _role_error(role, error, here)
    if failed is None:
        raise error
    if not receivers:
        raise failed from failed.__cause__
    _log.warning("%s", failed)
    _log.debug("%s", failed.reason, exc_info=failed.__cause__)
    unrun = Attachment(AttachmentType.execution_status, "FAILURE")  # the step of the plan is not done
    return Post(role.name, receivers[0], shortened(failed.reason, _REASON_CHARS), (unrun,))


def capabilities_for(role: Role | Worker, request: str, here: Round) -> str:
    """Return what a role has for a request beyond its intro; empty if it says nothing.

    Args:
        role: Any role; one without `offer` has nothing.
        request: The user's words.
        here: The round, for the error.

    Raises:
        RoleError: it raised something.
    """
    if not isinstance(role, Offering):
        return ""
    try:
        offered: object = role.offer(request) or ""
        if not isinstance(offered, str):
            raise TypeError(f"offer() gave {type(offered).__name__}, not text")
        return offered
    except Exception as error:  # a role may be anybody's
        failed = _role_error(role, error, here)
        if failed is None:
            raise
        raise failed from failed.__cause__


def checked_post(role: Role, answer: object, here: Round, receivers: Sequence[str] = ()) -> Post:
    """Return what a role answered, if it is a post of its own.

    Args:
        role: Who answered.
        answer: What its `reply` gave.
        here: The round.
        receivers: To whom it may write; empty: to anybody.

    Raises:
        RoleError: it is none; names the role, and the file and line of its `reply`.
    """
    if not isinstance(answer, Post):
        gave = f"{type(answer).__name__}, not a Post"
    elif odd := [attachment for attachment in answer.attachments if not isinstance(attachment, Attachment)]:
        gave = f"a Post with {type(odd[0]).__name__} among its attachments"
    elif not isinstance(answer.message, str):
        gave = f"a Post whose message is {type(answer.message).__name__}, not text"
    elif answer.send_from != role.name:
        gave = f"a Post from {answer.send_from!r}"
    elif receivers and answer.send_to not in receivers:
        gave = f"a Post to {answer.send_to!r}, past {' and '.join(map(repr, receivers))}, who asked"
    else:
        return answer
    source, line = _reply_of(role)
    raise RoleError(
        f"{here.id}: the role {role.name} failed: reply() gave {gave}; return "
        "Post(self.name, memory.last_post.send_from, …)",
        round=here,
        role=role.name,
        where=f"{source}:{line}",
    )


def _role_error(role: Role | Worker, error: Exception, here: Round) -> RoleError | None:
    """Return the error that names a role and the line of its Python that raised.

    Args:
        role: Who was to answer.
        error: What came instead.
        here: The round.

    Returns:
        None where the error isn't the role's: a role of this package lets through what its parts raise, and any role
        what this package and the client of its model do.
    """
    if isinstance(error, RoleError):
        return error
    if isinstance(error, TwAutogenError) and not isinstance(error, Unreadable):
        return None
    asks_model = any(_asks_model(frame) for frame, _ in traceback.walk_tb(error.__traceback__))
    if asks_model or type(_unwrap_role(role)).__module__.partition(".")[0] == _OURS:
        return None
    source, _ = _reply_of(role)
    line = line_in(error, source)
    where = f"{source}:{line}" if line else str(source)
    failed = RoleError(
        f"{here.id}: the role {role.name} failed: {type(error).__name__}: {error}",
        round=here,
        role=role.name,
        where=where,
    )
    failed.__cause__ = error
    return failed


def _unwrap_role(role: Role | Worker) -> Any:
    return role.theirs if isinstance(role, AdaptedRole) else role


def _reply_of(role: Role | Worker) -> tuple[Path, int]:
    """Return where a role's `reply` stands; itself, in words, if it is no function of Python."""
    reply = _unwrap_role(role).reply
    code = getattr(inspect.unwrap(reply), "__code__", None)
    return (Path(code.co_filename), code.co_firstlineno) if code is not None else (Path(repr(reply)), 0)


def _asks_model(frame: FrameType) -> bool:
    return frame.f_code.co_name == "complete" and str(frame.f_globals.get("__name__")).partition(".")[0] == _OURS
