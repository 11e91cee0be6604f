"""Asking a language model: any OpenAI-compatible server, recorded replies, and reading tolerantly what it wrote."""

from typing import TYPE_CHECKING

from tw_autogen.deprecated import old_names
from tw_autogen.model.abandonable import run_abandonable
from tw_autogen.model.chat import ChatModel, Completion, Message, ToolCall, Usage
from tw_autogen.model.embedders import EmbeddingSettings, resolve_ranker
from tw_autogen.model.failures import is_too_long
from tw_autogen.model.openai import OpenAIModel
from tw_autogen.model.parse import CodeReply, NoObject, read_code, read_object
from tw_autogen.model.prompt_hash import prompt_hash
from tw_autogen.model.rank import LexicalRanker, Ranked, Ranker
from tw_autogen.model.recording import RecordedReply, Recording, RecordingModel
from tw_autogen.model.replay import ReplayModel
from tw_autogen.model.request import ModelRequest, RequestModel, Reserve, asked_as, call_model, complete
from tw_autogen.model.resolve import resolve_model
from tw_autogen.model.retry import ask
from tw_autogen.model.settings import ModelSettings
from tw_autogen.model.streams import CodeStream, FieldStream
from tw_autogen.model.token_estimate import TokenEstimate

__all__ = [
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
    "RequestModel",
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
]

if not TYPE_CHECKING:  # a type checker names an unknown attribute
    __getattr__ = old_names(
        __name__,
        {
            "cache_folder": "tw_autogen.model.vectors.cache_folder",
            "chars_of": "tw_autogen.model.TokenEstimate.chars",
            "Embedder": "tw_autogen.model.embed.Embedder",
            "EmbeddingRanker": "tw_autogen.model.embed.EmbeddingRanker",
            "FolderEmbedder": "tw_autogen.model.embedders.FolderEmbedder",
            "is_loopback": "tw_autogen.model.openai.is_loopback",
            "OpenAIEmbedder": "tw_autogen.model.embedders.OpenAIEmbedder",
            "Price": "tw_autogen.model.settings.Price",
            "TOKEN_CHARS": "tw_autogen.model.token_estimate.TOKEN_CHARS",
            "token_chars": "tw_autogen.model.token_estimate.token_chars",
            "Unreadable": "tw_autogen.errors.Unreadable",
            "VectorCache": "tw_autogen.model.vectors.VectorCache",
        },
    )
