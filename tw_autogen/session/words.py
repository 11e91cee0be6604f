"""An answer, or a failure, in the words in which a host passes it on."""

from __future__ import annotations

from tw_autogen.errors import RoundError
from tw_autogen.session.answer import Answer

DOES_DATA_WORK = (
    "Does data work: plans a request, writes Python, checks it, runs it in a kernel that remembers, and answers with "
    "numbers, tables, charts and files."
)
"""What an agent with a session inside can do; for hosts that choose the next speaker by it."""

FRESH_KERNEL = "(This chat is resumed: what was said is known, but variables of earlier requests are gone.)"
"""Said to the model with the first request of a session that has rounds which it has not lived through."""


def files_of(answer: Answer) -> str:
    """Give a Markdown list of an answer's files, each with place and preview; empty if there are none."""
    return "\n".join(one.markdown() for one in answer.artifacts)


def answer_text(answer: Answer) -> str:
    """Return an answer as Markdown for a chat: its message, then a line for each file."""
    return "\n\n".join(part for part in (answer.message.rstrip(), files_of(answer)) if part)


def failure_text(error: RoundError) -> str:
    """Say that a request could not be answered, and why, with what was found out until then."""
    posts = error.round.posts
    found = [post.message for post in posts if post.send_to != posts[0].send_from]
    last = f"\n\nThe last that was said: {found[-1][:1000]}" if len(found) > 1 else ""
    return f"I could not answer this request: {error}{last}"
