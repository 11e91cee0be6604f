"""What is recalled into a prompt: here the talk so far, which only ever grows."""

from tw_autogen.recall.talk import Talk

__all__ = ["Talk"]
