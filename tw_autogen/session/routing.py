"""Who speaks next in a round: the newest post's receiver, and to whom a role may write."""

from __future__ import annotations

from tw_autogen.conversation import Round
from tw_autogen.errors import RoundError, nearest
from tw_autogen.role import Role
from tw_autogen.session.answer import USER
from tw_autogen.session.team import Team


def allowed_receivers(team: Team, role: Role, here: Round) -> tuple[str, ...]:
    """Return to whom a role may write now; empty: to anybody.

    In a session with a Planner every other role answers whoever wrote to it, or the Planner.

    Args:
        team: The roles of the session.
        role: Who is about to write.
        here: The round, with all posts until now.
    """
    if not team.planned or role.name == team.entry:
        return ()
    asked = next((post.send_from for post in reversed(here.posts) if post.send_to == role.name), team.entry)
    return tuple(dict.fromkeys((asked, team.entry)))


def next_speaker(team: Team, here: Round) -> Role | None:
    """Return the role that the round's newest post is for; None if it is for the user.

    Args:
        team: The roles of the session.
        here: The round, with all posts until now.

    Raises:
        RoundError: nobody of that name is here.
    """
    name = here.posts[-1].send_to
    if name == USER:
        return None
    found = next((role for role in team.roles if role.name == name), None)
    if found is None:
        raise RoundError(
            f"{here.id}: {here.posts[-1].send_from} wrote to {name!r}, and nobody here is called that"
            f"{nearest(name, [*team.names, USER])}",
            round=here,
        )
    return found
