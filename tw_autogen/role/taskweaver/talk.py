"""What a role in TaskWeaver's form reads and writes: `Memory`, `Round`, `Post`, `Attachment`, by TaskWeaver's names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tw_autogen import conversation
from tw_autogen.conversation import AttachmentType
from tw_autogen.conversation.memory import wrap_temporal
from tw_autogen.conversation.post import new_id

UNKNOWN = "Unknown"
"""To whom a post goes that hasn't said so."""
_PLAN = "plan"


@dataclass
class Attachment:
    """One named thing that travels with a post; as `tw_autogen.Attachment`, but it may be changed."""

    type: AttachmentType
    content: str
    id: str = field(default_factory=lambda: new_id("atta"))
    extra: Any = None

    @staticmethod
    def create(type: AttachmentType | str, content: str, id: str | None = None, extra: Any = None) -> Attachment:  # noqa: A002 - the author's words
        """Make one with an id of its own."""
        return Attachment(AttachmentType(type), content, id or new_id("atta"), extra)

    def to_dict(self) -> dict[str, Any]:
        """Return the dictionary form."""
        extra = self.extra.to_dict() if hasattr(self.extra, "to_dict") else self.extra
        return {"type": self.type.value, "content": self.content, "id": self.id, "extra": extra}

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> Attachment:
        """Read the dictionary form."""
        return Attachment.create(content["type"], content["content"], content.get("id"), content.get("extra"))


@dataclass
class Post:
    """One message from one sender to one receiver; as `tw_autogen.Post`, but it may be changed."""

    id: str
    send_from: str
    send_to: str
    message: str
    attachment_list: list[Attachment]

    @staticmethod
    def create(
        message: str | None,
        send_from: str,
        send_to: str = UNKNOWN,
        attachment_list: Iterable[Attachment] | None = None,
    ) -> Post:
        """Make one with an id of its own."""
        return Post(new_id("post"), send_from, send_to, message or "", list(attachment_list or ()))

    def add_attachment(self, attachment: Attachment) -> None:
        """Append an attachment."""
        self.attachment_list.append(attachment)

    def get_attachment(self, type: AttachmentType) -> list[Any]:  # noqa: A002 - the author's word
        """Return what the attachments of this type say: `extra` where there is one, else the text."""
        found = [one for one in self.attachment_list if one.type == type]
        return [one.content if one.extra is None else one.extra for one in found]

    def del_attachment(self, type_list: Sequence[AttachmentType]) -> None:
        """Take the attachments of these types away."""
        self.attachment_list = [one for one in self.attachment_list if one.type not in type_list]

    def to_dict(self) -> dict[str, Any]:
        """Return the dictionary form."""
        return {
            "id": self.id,
            "message": self.message,
            "send_from": self.send_from,
            "send_to": self.send_to,
            "attachment_list": [one.to_dict() for one in self.attachment_list],
        }

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> Post:
        """Read the dictionary form."""
        attachments = [Attachment.from_dict(one) for one in content["attachment_list"] or ()]
        post = Post.create(content["message"], content["send_from"], content["send_to"], attachments)
        post.id = content.get("id") or post.id
        return post


@dataclass
class Round:
    """One request of the user until its answer; `state` is `created`, `finished` or `failed`."""

    id: str
    user_query: str
    state: str
    post_list: list[Post]


@dataclass
class Conversation:
    """The rounds that a role sees."""

    id: str
    rounds: list[Round]
    plugins: list[Any] = field(default_factory=list)
    roles: list[str] = field(default_factory=list)
    enabled: bool = True


@dataclass(frozen=True)
class SharedMemoryEntry:
    """What one role pins up for the others; here that is the board of the round.

    Args:
        type: `plan`. TaskWeaver's `experience_sub_path` and `example_sub_path` have no meaning here.
        content: The words.
        scope: `round`; the board is gone with the round.
        id: Unique within the session.

    Raises:
        ValueError: another type or scope; says what to use instead.
    """

    type: str
    content: str
    scope: str = "round"
    id: str = field(default_factory=lambda: new_id("sme"))

    def __post_init__(self) -> None:
        if self.type != _PLAN:
            raise ValueError(
                f"a shared memory entry of the type {self.type!r} has no meaning here; examples and experience are "
                "chosen by what fits the request: see the settings `recall.planner_examples`, `recall.experience`"
            )
        if self.scope != "round":
            raise ValueError(
                f"a shared memory entry with the scope {self.scope!r} has no meaning here: the board is the round's; "
                "write it anew in each round"
            )

    @staticmethod
    def create(type: str, scope: str, content: str, id: str | None = None) -> SharedMemoryEntry:  # noqa: A002 - the author's words
        """Make one."""
        return SharedMemoryEntry(type, content, scope, id or new_id("sme"))

    def to_dict(self) -> dict[str, Any]:
        """Return the dictionary form."""
        return {"type": self.type, "content": self.content, "scope": self.scope, "id": self.id}


class Memory:
    """What a role may see, by TaskWeaver's names.

    A role sees the posts that it wrote or received; asking for another role's shows those that both took part in.
    """

    def __init__(self, seen: conversation.Memory) -> None:
        self.session_id = seen.session_id
        self._board = dict(seen.rounds[-1].board) if seen.rounds else {}
        self._rounds = seen.rounds

    @property
    def conversation(self) -> Conversation:
        """All rounds that the role sees, failed ones too."""
        return Conversation(self.session_id, self._copies())

    def get_role_rounds(self, role: str, include_failure_rounds: bool = False) -> list[Round]:
        """Return the rounds with the posts that a role wrote or received; copies.

        Args:
            role: The role's name in the talk.
            include_failure_rounds: Whether rounds that ended as failed are among them.
        """
        found = [one for one in self._copies() if include_failure_rounds or one.state != "failed"]
        for one in found:
            one.post_list = [post for post in one.post_list if role in (post.send_from, post.send_to)]
        return found

    def get_shared_memory_entries(self, entry_type: str) -> list[SharedMemoryEntry]:
        """Return what is on the round's board, one entry a role; `entry_type` is `plan`."""
        return [SharedMemoryEntry(entry_type, words) for words in self._board.values()]

    def _copies(self) -> list[Round]:
        return [
            Round(one.id, one.user_query, one.state.value, [Post.from_dict(post.to_dict()) for post in one.posts])
            for one in self._rounds
        ]


class PromptUtil:
    """Marks text that later rounds need not see."""

    DELIMITER_TEMPORAL = "TEMPORAL"

    @staticmethod
    def wrap_text_with_delimiter(text: str, delimiter: str) -> str:
        """Mark text; only `PromptUtil.DELIMITER_TEMPORAL` has a meaning."""
        return wrap_temporal(text) if delimiter == PromptUtil.DELIMITER_TEMPORAL else text
