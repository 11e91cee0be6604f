"""What is recalled into a prompt: a role's chat history, examples, lessons from earlier work, summaries."""

from typing import TYPE_CHECKING

from tw_autogen.deprecated import old_names
from tw_autogen.recall.chat_history import ChatHistory
from tw_autogen.recall.compress import compress
from tw_autogen.recall.distill import distill
from tw_autogen.recall.documents import DocumentIndex, Passage
from tw_autogen.recall.examples import (
    Example,
    cleaned_example,
    load_examples,
    read_examples,
    select_examples,
    write_example,
)
from tw_autogen.recall.experience import (
    Experience,
    collect_experience,
    read_experiences,
    select_experiences,
    write_experience,
)
from tw_autogen.recall.recall import Recall, add_examples
from tw_autogen.recall.settings import RecallSettings
from tw_autogen.recall.writing import without_paths

__all__ = [
    "ChatHistory",
    "DocumentIndex",
    "Example",
    "Experience",
    "Passage",
    "Recall",
    "RecallSettings",
    "add_examples",
    "cleaned_example",
    "collect_experience",
    "compress",
    "distill",
    "load_examples",
    "read_examples",
    "read_experiences",
    "select_examples",
    "select_experiences",
    "without_paths",
    "write_example",
    "write_experience",
]

if not TYPE_CHECKING:
    __getattr__ = old_names(
        __name__,
        {
            "Talk": "ChatHistory",
            "fitting_examples": "select_examples",
            "fitting_experiences": "select_experiences",
            "lived_experience": "collect_experience",
            "remember": "add_examples",
        },
    )
