"""What speaks against an answer, when it is there: files that nobody made, numbers that are found nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tw_autogen.conversation import AttachmentType
from tw_autogen.session import files_not_made

if TYPE_CHECKING:
    from tw_autogen.session import Answer, Session

_MAX_NUMBERS = 5


def answer_warnings(session: Session, answer: Answer) -> list[str]:
    """Return a line for each file that the request names and nobody has made, and one for numbers without a source.

    Args:
        session: The answer's; its `landing` copies files.
        answer: What came of the newest request.
    """
    return [*files_not_made(session.missing, answer, session.landing), *_unfounded_number_warnings(answer)]


def _unfounded_number_warnings(answer: Answer) -> list[str]:
    """Name numbers of an answer that no code has printed; where none ran, the Planner's own check says so.

    An answer that is what code has printed is not looked at: the record of a long output lacks its middle.
    """
    posts = [post for here in (*answer.earlier, answer.round) for post in here.posts]
    stop = posts[-1].attachment(AttachmentType.stop) if posts else None
    if stop is not None and stop.extra == {"forwarded": True}:
        return []
    if answer.stop != "Completed" or not any(post.attachment(AttachmentType.execution_result) for post in posts):
        return []
    numbers = [*dict.fromkeys(source.number for source in answer.sources if source.kind == "not found")]
    if not numbers:
        return []
    more = f" and {len(numbers) - _MAX_NUMBERS} more" if len(numbers) > _MAX_NUMBERS else ""
    return [
        f"not found in what code printed, in the files' descriptions or the request: "
        f"{', '.join(numbers[:_MAX_NUMBERS])}{more}; made up, or computed by the model itself"
    ]
