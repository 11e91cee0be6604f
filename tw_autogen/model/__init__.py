"""Asking a language model: any OpenAI-compatible server, recorded replies, and reading tolerantly what it wrote."""

from typing import TYPE_CHECKING

from tw_autogen.deprecated import old_names
from tw_autogen.model.abandonable import run_abandonable
from tw_autogen.model.chat_model import ChatModel, Completion, Message, ToolCall, Usage
from tw_autogen.model.embedding import resolve_ranker
from tw_autogen.model.error_messages import is_too_long
from tw_autogen.model.fenced_blocks import split_blocks
from tw_autogen.model.model_from_settings import resolve_model
from tw_autogen.model.model_request import BaseChatModel, ModelRequest, Reserve, ask, asked_as, call_model, complete
from tw_autogen.model.openai_model import OpenAIModel
from tw_autogen.model.prompt_hash import prompt_hash
from tw_autogen.model.recording import RecordedReply, Recording, RecordingModel
from tw_autogen.model.replay import ReplayModel
from tw_autogen.model.reply_parser import CodeReply, NoObject, read_code, read_object
from tw_autogen.model.settings import EmbeddingSettings, ModelSettings
from tw_autogen.model.stream_fields import CodeStream, FieldStream
from tw_autogen.model.text_ranking import LexicalRanker, Ranked, Ranker
from tw_autogen.model.token_estimate import TokenEstimate

__all__ = [
    "BaseChatModel",
    "ChatModel",
    "CodeReply",
    "CodeStream",
    "Completion",
    "EmbeddingSettings",
    "FieldStream",
    "LexicalRanker",
    "Message",
    "ModelRequest",
    "ModelSettings",
    "NoObject",
    "OpenAIModel",
    "Ranked",
    "Ranker",
    "RecordedReply",
    "Recording",
    "RecordingModel",
    "ReplayModel",
    "Reserve",
    "TokenEstimate",
    "ToolCall",
    "Usage",
    "ask",
    "asked_as",
    "call_model",
    "complete",
    "is_too_long",
    "prompt_hash",
    "read_code",
    "read_object",
    "resolve_model",
    "resolve_ranker",
    "run_abandonable",
    "split_blocks",
]

if not TYPE_CHECKING:  # a type checker names an unknown attribute
    __getattr__ = old_names(
        __name__,
        {
            "tw_autogen.errors": ("Unreadable",),
            "tw_autogen.model.embedding": ("Embedder", "EmbeddingRanker", "FolderEmbedder", "OpenAIEmbedder"),
            "tw_autogen.model.embedding_cache": ("VectorCache",),
            "tw_autogen.model.openai_model": ("is_loopback",),
            "tw_autogen.model.settings": ("Price",),
            "tw_autogen.model.token_estimate": ("TOKEN_CHARS", "token_chars"),
        },
        renamed={
            "RequestModel": "BaseChatModel",
            "chars_of": "tw_autogen.model.TokenEstimate.count_chars",
        },
    )
