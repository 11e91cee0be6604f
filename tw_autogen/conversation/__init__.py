"""What was said: posts with attachments, in rounds with a board, and what one role may see of them."""

from typing import TYPE_CHECKING

from tw_autogen.conversation.answer_form import RequestedFormat, is_json, unfenced_json
from tw_autogen.conversation.definitions import Definition, Definitions, changes_attachment
from tw_autogen.conversation.file_mentions import (
    file_names,
    folders_named,
    is_data_or_document,
    names_in_text,
    split_suffix,
)
from tw_autogen.conversation.interpretation_rules import INTERPRETATION_RULES
from tw_autogen.conversation.memory import Memory, wrap_temporal
from tw_autogen.conversation.plan import Plan, Status, Step
from tw_autogen.conversation.post import Attachment, AttachmentType, Post, new_id
from tw_autogen.conversation.round import Round, RoundState
from tw_autogen.deprecated import old_names

__all__ = [
    "Attachment",
    "AttachmentType",
    "RequestedFormat",
    "INTERPRETATION_RULES",
    "Definition",
    "Definitions",
    "Memory",
    "Plan",
    "Post",
    "Round",
    "RoundState",
    "Status",
    "Step",
    "changes_attachment",
    "file_names",
    "folders_named",
    "is_data_or_document",
    "is_json",
    "names_in_text",
    "new_id",
    "split_suffix",
    "unfenced_json",
    "wrap_temporal",
]

if not TYPE_CHECKING:  # a type checker names an unknown attribute
    __getattr__ = old_names(
        __name__,
        {
            "tw_autogen.conversation.file_mentions": ("is_mentioned",),
            "tw_autogen.conversation.plan": ("Depends",),
            "tw_autogen.recall": ("read_conversation",),
            "tw_autogen.recall.conversation_files": ("Conversation",),
        },
        renamed={"mentioned": "names_in_text"},
    )
