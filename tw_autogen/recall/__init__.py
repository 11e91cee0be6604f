"""What is recalled into a prompt: the talk so far, examples, lessons from earlier work, summaries."""

from tw_autogen.recall.compress import compress
from tw_autogen.recall.distill import distill
from tw_autogen.recall.documents import DocumentIndex, Passage
from tw_autogen.recall.examples import (
    Example,
    cleaned_example,
    fitting_examples,
    load_examples,
    read_examples,
    write_example,
)
from tw_autogen.recall.experience import (
    Experience,
    fitting_experiences,
    lived_experience,
    read_experiences,
    write_experience,
)
from tw_autogen.recall.recall import Recall, remember
from tw_autogen.recall.settings import RecallSettings
from tw_autogen.recall.talk import Talk
from tw_autogen.recall.writing import without_paths

__all__ = [
    "DocumentIndex",
    "Example",
    "Experience",
    "Passage",
    "Recall",
    "RecallSettings",
    "Talk",
    "cleaned_example",
    "compress",
    "distill",
    "fitting_examples",
    "fitting_experiences",
    "lived_experience",
    "load_examples",
    "read_examples",
    "read_experiences",
    "remember",
    "without_paths",
    "write_example",
    "write_experience",
]
