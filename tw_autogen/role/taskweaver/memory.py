"""TaskWeaver's `Memory`, `Round`, `Post` and `Attachment`: what a role in TaskWeaver's form reads and writes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tw_autogen import conversation
from tw_autogen.conversation import AttachmentType, new_id, wrap_temporal

UNKNOWN = "Unknown"
"""The receiver of a post for which the role has set none."""

_log = logging.getLogger(__name__)


@dataclass
class Attachment:
    """One typed part of a post; as `tw_autogen.Attachment`, but mutable."""

    type: AttachmentType
    content: str
    id: str = field(default_factory=lambda: new_id("atta"))
    extra: Any = None

    @staticmethod
    def create(type: AttachmentType | str, content: str, id: str | None = None, extra: Any = None) -> Attachment:  # noqa: A002 - TaskWeaver's parameter names
        """Create an attachment.

        Args:
            type: A member of `AttachmentType`, or its value.
            content: The text.
            id: Unique within the session; a new one if None.
            extra: Data beside the text.
        """
        return Attachment(AttachmentType(type), content, id or new_id("atta"), extra)

    def frozen(self) -> conversation.Attachment:
        """Return it as this package's type; of a picture the address is the content, where TaskWeaver has `extra`."""
        extra = self.extra.to_dict() if hasattr(self.extra, "to_dict") else self.extra
        if self.type is AttachmentType.image_url and isinstance(extra, Mapping) and "image_url" in extra:
            return conversation.Attachment(self.type, str(extra["image_url"] or ""), None, self.id)
        return conversation.Attachment(self.type, self.content, extra, self.id)

    def to_dict(self) -> dict[str, Any]:
        """Return the dictionary form."""
        return {"extra": None, **self.frozen().to_dict()}

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> Attachment:
        """Create an attachment from its dictionary form."""
        return _convert_attachment(conversation.Attachment.from_dict(content))


@dataclass
class Post:
    """One message from one sender to one receiver; as `tw_autogen.Post`, but mutable."""

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
        """Create a post with a new id.

        Args:
            message: The text.
            send_from: Name of the role that writes.
            send_to: Name of the receiver.
            attachment_list: In order.
        """
        return Post(new_id("post"), send_from, send_to, message or "", list(attachment_list or ()))

    def add_attachment(self, attachment: Attachment) -> None:
        """Append an attachment."""
        self.attachment_list.append(attachment)

    def get_attachment(self, type: AttachmentType) -> list[Any]:  # noqa: A002 - TaskWeaver's parameter name
        """Return `extra` of each attachment of this type, or its content where there is no `extra`."""
        found = [attachment for attachment in self.attachment_list if attachment.type == type]
        return [attachment.content if attachment.extra is None else attachment.extra for attachment in found]

    def del_attachment(self, type_list: Sequence[AttachmentType]) -> None:
        """Remove the attachments of these types."""
        self.attachment_list = [attachment for attachment in self.attachment_list if attachment.type not in type_list]

    def frozen(self) -> conversation.Post:
        """Return it as this package's type, without pictures that have no address."""
        parts = [attachment.frozen() for attachment in self.attachment_list]
        parts = [part for part in parts if part.content or part.type is not AttachmentType.image_url]
        return conversation.Post(self.send_from, self.send_to, self.message, tuple(parts), self.id)

    def to_dict(self) -> dict[str, Any]:
        """Return the dictionary form."""
        attachments = [attachment.to_dict() for attachment in self.attachment_list]
        return {**self.frozen().to_dict(), "attachment_list": attachments}

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> Post:
        """Create a post from its dictionary form."""
        return _convert_post(conversation.Post.from_dict(content))


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
    """A text that one role shares with the others; here it goes to the board of the round.

    Args:
        type: `plan`; one of another type, such as TaskWeaver's `experience_sub_path`, is left out with a warning.
        content: The text.
        scope: `round`; another one counts as `round`, with a warning: the board is gone with the round.
        id: Unique within the session.
    """

    type: str
    content: str
    scope: str = "round"
    id: str = field(default_factory=lambda: new_id("sme"))

    def __post_init__(self) -> None:
        if self.type != "plan":
            _log.warning(
                "left out: a shared memory entry of the type %r, which has no meaning here; examples and experience "
                "are chosen by what fits the request: see the settings `recall.planner_examples`, `recall.experience`",
                self.type,
            )
        elif self.scope != "round":
            _log.warning(
                "a shared memory entry with the scope %r is gone with the round here: write it anew in each round",
                self.scope,
            )

    @staticmethod
    def create(type: str, scope: str, content: str, id: str | None = None) -> SharedMemoryEntry:  # noqa: A002 - TaskWeaver's parameter names
        """Create an entry; arguments as of the class.

        Args:
            type: `plan`; see the class.
            scope: `round`; see the class.
            content: The text.
            id: Unique within the session; a new one if None.
        """
        return SharedMemoryEntry(type, content, scope, id or new_id("sme"))

    def to_dict(self) -> dict[str, Any]:
        """Return the dictionary form."""
        return dict(vars(self))


class Memory:
    """The rounds and posts that a role may see: those posts that it wrote or received.

    Args:
        seen: The same as this package's type.
    """

    def __init__(self, seen: conversation.Memory) -> None:
        self.session_id = seen.session_id
        self._board = dict(seen.rounds[-1].board) if seen.rounds else {}
        self._rounds = seen.rounds

    @property
    def conversation(self) -> Conversation:
        """All rounds that the role sees, failed ones too; copies."""
        rounds = [
            Round(round_.id, round_.user_query, round_.state.value, list(map(_convert_post, round_.posts)))
            for round_ in self._rounds
        ]
        return Conversation(self.session_id, rounds)

    def get_role_rounds(self, role: str, include_failure_rounds: bool = False) -> list[Round]:
        """Return the rounds with the posts that a role wrote or received; copies.

        Args:
            role: The role's name in posts; of another role only the posts that both took part in are there.
            include_failure_rounds: Whether rounds that ended as failed are among them.
        """
        found = [round_ for round_ in self.conversation.rounds if include_failure_rounds or round_.state != "failed"]
        for one in found:
            one.post_list = [post for post in one.post_list if role in (post.send_from, post.send_to)]
        return found

    def get_shared_memory_entries(self, entry_type: str) -> list[SharedMemoryEntry]:
        """Return what is on the round's board, one entry a role; nothing of another `entry_type` than `plan`."""
        return [SharedMemoryEntry(entry_type, text) for text in self._board.values() if entry_type == "plan"]


class PromptUtil:
    """Marks text that later rounds need not see."""

    DELIMITER_TEMPORAL = "TEMPORAL"

    @staticmethod
    def wrap_text_with_delimiter(text: str, delimiter: str) -> str:
        """Return marked text.

        Args:
            text: Which text.
            delimiter: Only `PromptUtil.DELIMITER_TEMPORAL` has a meaning; else the text is returned as it is.
        """
        return wrap_temporal(text) if delimiter == PromptUtil.DELIMITER_TEMPORAL else text


def _convert_attachment(attachment: conversation.Attachment) -> Attachment:
    return Attachment(attachment.type, attachment.content, attachment.id, attachment.extra)


def _convert_post(post: conversation.Post) -> Post:
    return Post(post.id, post.send_from, post.send_to, post.message, list(map(_convert_attachment, post.attachments)))
