"""`Post` and `Attachment`: one message from one sender to one receiver, and what came along with it."""

from __future__ import annotations

import reprlib
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from tw_autogen import bounded_json
from tw_autogen.conversation.plan import Plan
from tw_autogen.conversation.untrusted_fields import text_field


class AttachmentType(str, Enum):
    """What an attachment holds; TaskWeaver's names and values, and five more.

    `then` is whom a worker's answer is forwarded to, `code` the Python that comes with a task, `answer` the whole text
    of an answer of which the message has the beginning, `definitions` what the post changes of the session's
    definitions (see `Definitions`), `checks` the checks that the answer has gone through. Where a worker's output was
    forwarded, `extra` of `stop` is `{"forwarded": True}`.
    """

    init_plan = "init_plan"
    plan = "plan"
    current_plan_step = "current_plan_step"
    plan_reasoning = "plan_reasoning"
    stop = "stop"
    then = "then"
    code = "code"
    answer = "answer"
    definitions = "definitions"
    checks = "checks"
    thought = "thought"
    reply_type = "reply_type"
    reply_content = "reply_content"
    verification = "verification"
    code_error = "code_error"
    execution_status = "execution_status"
    execution_result = "execution_result"
    artifact_paths = "artifact_paths"
    revise_message = "revise_message"
    function = "function"
    web_exploring_plan = "web_exploring_plan"
    web_exploring_screenshot = "web_exploring_screenshot"
    web_exploring_link = "web_exploring_link"
    invalid_response = "invalid_response"
    text = "text"
    shared_memory_entry = "shared_memory_entry"
    image_url = "image_url"


def new_id(prefix: str) -> str:
    """Make an id such as `post-5f0c2a9e41d7`: unique within any session."""
    return f"{prefix}-{secrets.token_hex(6)}"


_TYPES = frozenset(one.value for one in AttachmentType)
_OLD = frozenset({"python", "sample"})
_FILE_KEYS = frozenset({"name", "kind", "path"})
_EXTRAS = {
    AttachmentType.artifact_paths: list[dict[str, str]],
    AttachmentType.definitions: list[dict[str, Any]],
    AttachmentType.execution_status: dict[str, Any],
}
_FITS = {kind: bounded_json.check_of(annotation | None) for kind, annotation in _EXTRAS.items()}


@dataclass(frozen=True)
class Attachment:
    """One named thing that travels with a post.

    Args:
        type: What it is.
        content: Its text.
        extra: Plain data beside the text (numbers, lists, dictionaries of JSON values), or None.
        id: Unique within the session.
    """

    type: AttachmentType
    content: str
    extra: Any = None
    id: str = field(default_factory=lambda: new_id("atta"))

    def to_dict(self) -> dict[str, Any]:
        """Return TaskWeaver's dictionary form; `extra` only where there is one."""
        plain: dict[str, Any] = {"id": self.id, "type": self.type.value, "content": self.content}
        return plain if self.extra is None else {**plain, "extra": self.extra}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Attachment:
        """Read TaskWeaver's dictionary form.

        Raises:
            ValueError: the type is unknown, or one of those that TaskWeaver gave up (`python`, `sample`), or `extra` is
                not what it has.
            KeyError: `type` or `content` is missing.
        """
        content, kind = plain["content"], plain["type"]
        if not isinstance(kind, str):
            raise ValueError(f"type: expected text, got {type(kind).__name__}")
        if kind not in _TYPES:
            old = "a type that TaskWeaver gave up for `reply_type` and `reply_content`" if kind in _OLD else "unknown"
            raise ValueError(f"the attachment type {kind!r} is {old}; correct it, or say `enabled: false`")
        extra, known = plain.get("extra"), AttachmentType(kind)
        if known in _FITS and not _FITS[known](extra):
            raise ValueError(f"extra of {kind}: expected {_EXTRAS[known]}, got {reprlib.repr(extra)}")
        if known is AttachmentType.artifact_paths and not all(one.keys() >= _FILE_KEYS for one in extra or ()):
            raise ValueError(f"extra of {kind}: each needs {', '.join(sorted(_FILE_KEYS))}")
        return cls(
            known,
            content if isinstance(content, str) else str(content),
            extra,
            text_field(plain, "id") or new_id("atta"),
        )


@dataclass(frozen=True)
class Post:
    """One message from one sender to one receiver.

    Args:
        send_from: Name of the role that speaks, or `"User"`.
        send_to: Name of the role that is to read it, or `"User"`.
        message: The words.
        attachments: What came along, in order.
        id: Unique within the session.
        plan: The plan as it stands after this post; None: the sender plans nothing, or says nothing new of it.
    """

    send_from: str
    send_to: str
    message: str
    attachments: tuple[Attachment, ...] = ()
    id: str = field(default_factory=lambda: new_id("post"))
    plan: Plan | None = None

    def attachment(self, type: AttachmentType) -> Attachment | None:  # noqa: A002 - the word of the format
        """Return the last attachment of this type, or None."""
        found = [one for one in self.attachments if one.type == type]
        return found[-1] if found else None

    def content(self, type: AttachmentType, default: str = "") -> str:  # noqa: A002 - the word of the format
        """Return the text of the last attachment of this type.

        Args:
            type: The type.
            default: Returned if there is none.
        """
        found = self.attachment(type)
        return default if found is None else found.content

    @property
    def is_question(self) -> bool:
        """Whether a Planner asks the user something with it, and waits for the answer."""
        return self.content(AttachmentType.stop) in ("Clarification", "AdditionalInformation")

    def with_attachments(self, more: Iterable[Attachment]) -> Post:
        """Return the same post (same id) with more attachments after those it has."""
        return replace(self, attachments=(*self.attachments, *more))

    def with_stated_plan(self) -> Post:
        """Return the post with the plan that its attachments state in words, if it carries none.

        For posts of TaskWeaver's own form, and for journals that were written before posts carried plans. Words that
        are no plan of this form state none.
        """
        if self.plan is not None or not (text := self.content(AttachmentType.plan)):
            return self
        try:
            return replace(self, plan=Plan.parse(text).at(self.content(AttachmentType.current_plan_step)))
        except ValueError:
            return self

    def to_dict(self) -> dict[str, Any]:
        """Return TaskWeaver's dictionary form; `plan`, which it lacks, only where there is one."""
        plain: dict[str, Any] = {
            "id": self.id,
            "message": self.message,
            "send_from": self.send_from,
            "send_to": self.send_to,
            "attachment_list": [attachment.to_dict() for attachment in self.attachments],
        }
        return plain if self.plan is None else {**plain, "plan": self.plan.to_dict()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Post:
        """Read TaskWeaver's dictionary form; an empty or missing `attachment_list` means none.

        Args:
            plain: As `to_dict` returned it, or TaskWeaver wrote it.

        Raises:
            KeyError: `message`, `send_from` or `send_to` is missing, or a part of the plan.
            ValueError: an attachment's type, or a word of the plan, is unknown, or what should be text is none.
        """
        return cls(
            text_field(plain, "send_from", needed=True),
            text_field(plain, "send_to", needed=True),
            text_field(plain, "message", needed=True),
            tuple(Attachment.from_dict(one) for one in plain.get("attachment_list") or ()),
            text_field(plain, "id") or new_id("post"),
            Plan.from_dict(plain["plan"]) if plain.get("plan") else None,
        )
