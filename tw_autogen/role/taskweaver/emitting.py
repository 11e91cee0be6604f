"""`SessionEventEmitter` and `PostEventProxy`: how a role in TaskWeaver's form writes its answer, seen as it grows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tw_autogen.conversation import AttachmentType
from tw_autogen.events import PostGrew
from tw_autogen.role.role import Turn
from tw_autogen.role.taskweaver.talk import Attachment, Post, SharedMemoryEntry


class PostEventProxy:
    """A post that grows; each change is an event of the session.

    Args:
        send_from: Who writes.
        turn: Takes the events, and has the board.
    """

    def __init__(self, send_from: str, turn: Turn | None) -> None:
        self.post = Post.create(None, send_from)
        self.message_is_end = False
        self._turn = turn
        self._open: set[str] = set()  # ids of attachments that go on growing

    def update_send_to(self, send_to: str) -> None:
        """Set the receiver."""
        self.post.send_to = send_to

    def update_status(self, status: str) -> None:
        """Set the status; shown beside the growing post."""
        self._grew("status", status)

    def update_message(self, message: str, is_end: bool = True) -> None:
        """Set the words, or, while `is_end` is False, put more behind those that are there."""
        grows = bool(self.post.message) and not self.message_is_end
        self.post.message = self.post.message + message if grows else message
        self.message_is_end = is_end
        self._grew("message", message)

    def update_attachment(
        self,
        message: str,
        type: AttachmentType | str | None = None,  # noqa: A002 - the author's word
        extra: Any = None,
        id: str | None = None,  # noqa: A002 - the author's word
        is_end: bool = True,
    ) -> Attachment:
        """Add an attachment, or, with the `id` of one that has not ended, put more text behind it.

        A `SharedMemoryEntry` as `extra` is pinned on the round's board.
        """
        found = next((one for one in self.post.attachment_list if one.id == id and one.id in self._open), None)
        if found is None:
            if type is None:
                raise ValueError("update_attachment: a new attachment needs its `type`")
            found = Attachment.create(type, "", id)
            self.post.add_attachment(found)
        found.content += message
        found.extra = found.extra if extra is None else extra
        (self._open.discard if is_end else self._open.add)(found.id)
        if isinstance(extra, SharedMemoryEntry) and self._turn is not None:
            self._turn.round.write_board(self.post.send_from, extra.content)
        self._grew(found.type.value, message)
        return found

    def error(self, msg: str) -> None:
        """Mark the answer as failed; the words are shown."""
        self._grew("error", msg)

    def end(self, msg: str = "") -> Post:
        """Return the whole post."""
        return self.post

    def _grew(self, part: str, text: str) -> None:
        if self._turn is not None and text:
            self._turn.emit(PostGrew(self._turn.post_id, part, text))


class SessionEventEmitter:
    """Makes the posts of a role.

    Attributes:
        turn: What the session handed it for the answer that is under way.
        session_id: Which session that is.
    """

    def __init__(self) -> None:
        self.turn: Turn | None = None
        self.session_id = ""

    def create_post_proxy(self, send_from: str) -> PostEventProxy:
        """Begin a post."""
        return PostEventProxy(send_from, self.turn)


class SessionMetadata:
    """Which session a role answers in, and where; known within `reply` only.

    Args:
        emitter: Has the turn that is under way.
    """

    def __init__(self, emitter: SessionEventEmitter) -> None:
        self._emitter = emitter

    @property
    def session_id(self) -> str:
        """The session's."""
        return self._emitter.session_id

    @property
    def workspace(self) -> str:
        """The session's folder."""
        return str(self._folder())

    @property
    def execution_cwd(self) -> str:
        """Where its files lie, which is the same folder here."""
        return str(self._folder())

    def _folder(self) -> Path:
        if self._emitter.turn is None:
            raise RuntimeError("the session's folder is known within reply() only")
        return self._emitter.turn.folder
