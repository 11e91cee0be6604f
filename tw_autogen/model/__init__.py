"""Asking a language model: any OpenAI-compatible server, recorded replies, and reading tolerantly what it wrote."""

from tw_autogen.model.asking import ask
from tw_autogen.model.chat import ChatModel, Completion, Message, ToolCall, Usage
from tw_autogen.model.fields import CodeReply, Unreadable, read_code, read_object
from tw_autogen.model.openai import OpenAIModel, is_loopback
from tw_autogen.model.recording import RecordedReply, Recording, RecordingModel
from tw_autogen.model.replay import ReplayModel
from tw_autogen.model.resolve import resolve_model
from tw_autogen.model.running import run_abandonable
from tw_autogen.model.settings import ModelSettings, Price
from tw_autogen.model.streams import CodeStream, FieldStream

__all__ = [
    "ChatModel",
    "CodeReply",
    "CodeStream",
    "Completion",
    "FieldStream",
    "Message",
    "ModelSettings",
    "OpenAIModel",
    "Price",
    "RecordedReply",
    "Recording",
    "RecordingModel",
    "ReplayModel",
    "ToolCall",
    "Unreadable",
    "Usage",
    "ask",
    "is_loopback",
    "read_code",
    "read_object",
    "resolve_model",
    "run_abandonable",
]
