"""The events of a post that has become part of its round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tw_autogen.conversation import AttachmentType, Definitions, Post, Round
from tw_autogen.events import DefinitionsChanged, Event, PlanChanged, PostClosed


def post_events(rounds: Sequence[Round], post: Post, before: Sequence[Post], *, post_id: str = "") -> Iterator[Event]:
    """Yield what a post changes, then that it is whole.

    Args:
        rounds: All rounds of the session, oldest first; the post is one of the newest.
        post: The post.
        before: The posts before it in its round.
        post_id: The id that `PostOpened` gave; empty if nothing grew.
    """
    here = rounds[-1].id
    last = next((one.plan for one in reversed(before) if one.plan is not None), None)
    if post.plan is not None and post.plan != last:
        yield PlanChanged(here, post.send_from, post.plan)
    changed = post.attachment(AttachmentType.definitions)
    if changed is not None:
        state = Definitions.of(rounds)
        in_force = [one.to_dict() for one in state.in_force]
        yield DefinitionsChanged(here, post.send_from, list(changed.extra or ()), in_force, list(state.stale))
    yield PostClosed(here, post_id, post)
