"""Where a round ends although nobody has answered the user: too long, too late, stopped, or in circles."""

from __future__ import annotations

from tw_autogen.conversation import Post, Round
from tw_autogen.errors import RoundInterrupted, RoundLooped, RoundTimedOut, RoundTooLong
from tw_autogen.session.answer import USER
from tw_autogen.session.settings import SessionSettings
from tw_autogen.session.spending import found_so_far

_SHOWN_CHARS = 200


def refuse_more(
    here: Round, settings: SessionSettings, *, stopped: str, seconds: float, because: BaseException | None = None
) -> None:
    """Refuse one more step of a round that has reached a limit.

    Args:
        here: The round.
        settings: The limits.
        stopped: Why it was interrupted; empty: it was not.
        seconds: How long it has taken.
        because: What a role has raised; where a limit was reached, that is the reason, and this its consequence.

    Raises:
        RoundInterrupted, RoundTimedOut, RoundTooLong: names the setting and what was found until then.
    """
    if stopped:
        raise RoundInterrupted(f"{here.id}: {stopped}", round=here) from because
    if seconds >= settings.round_seconds:
        raise RoundTimedOut(
            f"{here.id}: no answer for the user in {settings.round_seconds:g} seconds. "
            "Raise `session.round_seconds` (on the command line --timeout) if the task needs more. "
            f"{found_so_far(here)}",
            round=here,
        ) from because
    if because is None and len(here.posts) >= settings.max_posts:
        raise RoundTooLong(
            f"{here.id}: {len(here.posts)} posts and no answer for the user; the last came from "
            f"{here.posts[-1].send_from}. Raise `session.max_posts` (on the command line --max-posts) if the task "
            f"needs more. {found_so_far(here)}",
            round=here,
        )


def refuse_loop(here: Round, post: Post) -> None:
    """Refuse a task that was given twice in the same words, and answered twice in the same words.

    A task that is given once more may be right: something is looked at again, or tried again, and has changed.

    Args:
        here: The round.
        post: The newest post, not in the round yet.

    Raises:
        RoundLooped: with what was found until then.
    """
    given = [one for one in here.posts if one.send_from == post.send_from][-2:]
    answers = [one.message for one in here.posts if one.send_to == post.send_from and one.send_from == post.send_to]
    same = [(one.send_to, one.message) for one in given] == [(post.send_to, post.message)] * 2
    if same and post.send_to != USER and len(set(answers[-2:])) == 1:
        raise RoundLooped(
            f"{here.id}: {post.send_from} wrote the same to {post.send_to} three times, and the answer had been the "
            f"same twice: {post.message[:_SHOWN_CHARS]!r}. {found_so_far(here)}",
            round=here,
        )
