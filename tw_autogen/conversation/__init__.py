"""What was said: posts with attachments, in rounds with a board, and what one role may see of them."""

from tw_autogen.conversation.conventions import CONVENTIONS
from tw_autogen.conversation.file_mentions import file_names, is_document, is_mentioned
from tw_autogen.conversation.files import Conversation, read_conversation
from tw_autogen.conversation.form import AnswerForm, is_json, unfenced_json
from tw_autogen.conversation.memory import Memory
from tw_autogen.conversation.plan import Depends, Plan, Status, Step
from tw_autogen.conversation.post import Attachment, AttachmentType, Post
from tw_autogen.conversation.round import Round, RoundState

__all__ = [
    "CONVENTIONS",
    "AnswerForm",
    "Attachment",
    "AttachmentType",
    "Conversation",
    "Depends",
    "Memory",
    "Plan",
    "Post",
    "Round",
    "RoundState",
    "Status",
    "Step",
    "file_names",
    "is_document",
    "is_json",
    "is_mentioned",
    "read_conversation",
    "unfenced_json",
]
