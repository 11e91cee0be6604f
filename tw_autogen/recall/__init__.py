"""What is recalled into a prompt: the talk so far, which only ever grows; passages of documents that fit a question."""

from tw_autogen.recall.documents import DocumentIndex, Passage
from tw_autogen.recall.talk import Talk

__all__ = ["DocumentIndex", "Passage", "Talk"]
