"""Asking a language model: any OpenAI-compatible server, recorded replies, and reading tolerantly what it wrote."""

from tw_autogen.errors import Unreadable
from tw_autogen.model.abandonable import run_abandonable
from tw_autogen.model.chat import ChatModel, Completion, Message, ToolCall, Usage
from tw_autogen.model.embed import Embedder, EmbeddingRanker
from tw_autogen.model.embedders import EmbeddingSettings, FolderEmbedder, OpenAIEmbedder, resolve_ranker
from tw_autogen.model.failures import is_too_long
from tw_autogen.model.openai import OpenAIModel, is_loopback
from tw_autogen.model.parse import CodeReply, NoObject, read_code, read_object
from tw_autogen.model.rank import LexicalRanker, Ranked, Ranker
from tw_autogen.model.recording import RecordedReply, Recording, RecordingModel
from tw_autogen.model.replay import ReplayModel
from tw_autogen.model.request import ModelRequest, RequestModel, Reserve, asked_as, call_model, complete
from tw_autogen.model.resolve import resolve_model
from tw_autogen.model.retry import ask
from tw_autogen.model.settings import ModelSettings, Price
from tw_autogen.model.streams import CodeStream, FieldStream
from tw_autogen.model.token_estimate import TOKEN_CHARS, chars_of, token_chars
from tw_autogen.model.vectors import VectorCache, cache_folder

__all__ = [
    "ChatModel",
    "CodeReply",
    "CodeStream",
    "Completion",
    "Embedder",
    "EmbeddingRanker",
    "EmbeddingSettings",
    "FieldStream",
    "FolderEmbedder",
    "LexicalRanker",
    "Message",
    "ModelRequest",
    "ModelSettings",
    "NoObject",
    "OpenAIEmbedder",
    "OpenAIModel",
    "Price",
    "Ranked",
    "Ranker",
    "RecordedReply",
    "Recording",
    "RecordingModel",
    "ReplayModel",
    "RequestModel",
    "Reserve",
    "TOKEN_CHARS",
    "ToolCall",
    "Unreadable",
    "Usage",
    "VectorCache",
    "ask",
    "asked_as",
    "cache_folder",
    "call_model",
    "chars_of",
    "complete",
    "is_loopback",
    "is_too_long",
    "read_code",
    "read_object",
    "resolve_model",
    "resolve_ranker",
    "run_abandonable",
    "token_chars",
]
