"""Where a round ends although nobody has answered the user: too long, too late, stopped, or in circles."""

from __future__ import annotations

from tw_autogen.conversation import Post, Round
from tw_autogen.errors import RoundInterrupted, RoundLooped, RoundTimedOut, RoundTooLong
from tw_autogen.session.answer import USER
from tw_autogen.session.settings import SessionSettings
from tw_autogen.session.spending import found_so_far

_SHOWN_CHARS = 200


def refuse_more(
    here: Round, settings: SessionSettings, *, stopped: bool, seconds: float, because: BaseException | None = None
) -> None:
    """Refuse one more step of a round that has reached a limit.

    Args:
        here: The round.
        settings: The limits.
        stopped: Somebody has interrupted it.
        seconds: How long it has taken.
        because: What a role has raised; where a limit was reached, that is the reason, and this its consequence.

    Raises:
        RoundInterrupted, RoundTimedOut, RoundTooLong: names the setting and what was found until then.
    """
    if stopped:
        raise RoundInterrupted(f"{here.id}: stopped by interrupt()", round=here) from because
    if seconds >= settings.round_seconds:
        raise RoundTimedOut(
            f"{here.id}: no answer for the user in {settings.round_seconds:g} seconds. "
            f"Raise `session.round_seconds` if the task needs more. {found_so_far(here)}",
            round=here,
        ) from because
    if because is None and len(here.posts) >= settings.max_posts:
        raise RoundTooLong(
            f"{here.id}: {len(here.posts)} posts and no answer for the user; the last came from "
            f"{here.posts[-1].send_from}. Raise `session.max_posts` if the task needs more. {found_so_far(here)}",
            round=here,
        )


def refuse_loop(here: Round, post: Post) -> None:
    """Refuse a task in the very words of the one before it, which went to the same role.

    Raises:
        RoundLooped: with what was found until then.
    """
    before = next((one for one in reversed(here.posts) if one.send_from == post.send_from), None)
    if before and post.send_to != USER and (before.send_to, before.message) == (post.send_to, post.message):
        raise RoundLooped(
            f"{here.id}: {post.send_from} wrote the same to {post.send_to} twice: {post.message[:_SHOWN_CHARS]!r}. "
            f"{found_so_far(here)}",
            round=here,
        )
