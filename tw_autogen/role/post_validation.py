"""What a role does wrong while it answers: it raises something, or gives no post; told with its file and line."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from tw_autogen.conversation import Attachment, Post, Round
from tw_autogen.errors import RoleError, TwAutogenError
from tw_autogen.role.role import Offering, Role, Worker
from tw_autogen.role.role_source import line_in
from tw_autogen.role.taskweaver.spec import AdaptedRole

_OURS = __name__.partition(".")[0]


def role_error(role: Role | Worker, error: Exception, here: Round) -> RoleError | None:
    """Return the error that names a role and the line of its Python that raised.

    Args:
        role: Who was to answer.
        error: What came instead.
        here: The round.

    Returns:
        None where the error isn't the role's: a role of this package lets through what its parts raise, and any role
        what the client of its model does.
    """
    asks_model = any(_asks_model(frame) for frame, _ in traceback.walk_tb(error.__traceback__))
    if asks_model or type(_theirs(role)).__module__.partition(".")[0] == _OURS:
        return None
    source, _ = _reply_of(role)
    line = line_in(error, source)
    where = f"{source}:{line}" if line else str(source)
    return RoleError(
        f"{here.id}: the role {role.name} failed: {type(error).__name__}: {error} ({where})", round=here, role=role.name
    )


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
    except TwAutogenError:
        raise
    except Exception as error:  # a role may be anybody's
        failed = role_error(role, error, here)
        if failed is None:
            raise
        raise failed from error


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
    elif odd := [one for one in answer.attachments if not isinstance(one, Attachment)]:
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
        f"Post(self.name, memory.last_post.send_from, …) ({source}:{line})",
        round=here,
        role=role.name,
    )


def _theirs(role: Role | Worker) -> Any:
    return role.theirs if isinstance(role, AdaptedRole) else role


def _reply_of(role: Role | Worker) -> tuple[Path, int]:
    """Return where a role's `reply` stands; itself, in words, if it is no function of Python."""
    reply = _theirs(role).reply
    code = getattr(inspect.unwrap(reply), "__code__", None)
    return (Path(code.co_filename), code.co_firstlineno) if code is not None else (Path(repr(reply)), 0)


def _asks_model(frame: FrameType) -> bool:
    return frame.f_code.co_name == "complete" and str(frame.f_globals.get("__name__")).partition(".")[0] == _OURS
