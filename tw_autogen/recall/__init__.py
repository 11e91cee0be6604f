"""What is recalled into a prompt: a role's chat history, examples, lessons from earlier work, summaries."""

from typing import TYPE_CHECKING

from tw_autogen.deprecated import old_names
from tw_autogen.lazy_module import lazy_face

if TYPE_CHECKING:
    from tw_autogen.recall.chat_history import ChatHistory
    from tw_autogen.recall.conversation_files import read_conversation
    from tw_autogen.recall.definition_prompt import DefinitionPrompt
    from tw_autogen.recall.documents import DocumentIndex, Passage
    from tw_autogen.recall.examples import example_paths, keep_example, read_examples
    from tw_autogen.recall.experience_writer import Learner
    from tw_autogen.recall.experiences import Experience, read_experiences
    from tw_autogen.recall.recall import Recall, add_examples
    from tw_autogen.recall.settings import RecallSettings

__all__ = [
    "ChatHistory",
    "DefinitionPrompt",
    "DocumentIndex",
    "Experience",
    "Learner",
    "Passage",
    "Recall",
    "RecallSettings",
    "add_examples",
    "example_paths",
    "keep_example",
    "read_conversation",
    "read_examples",
    "read_experiences",
]

if not TYPE_CHECKING:  # a type checker names an unknown attribute
    __getattr__ = lazy_face(
        __name__,
        {
            "chat_history": ("ChatHistory",),
            "conversation_files": ("read_conversation",),
            "definition_prompt": ("DefinitionPrompt",),
            "documents": ("DocumentIndex", "Passage"),
            "examples": ("example_paths", "keep_example", "read_examples"),
            "experience_writer": ("Learner",),
            "experiences": ("Experience", "read_experiences"),
            "recall": ("Recall", "add_examples"),
            "settings": ("RecallSettings",),
        },
        old_names(
            __name__,
            {
                "tw_autogen.recall.examples": ("cleaned_example", "Example", "select_examples", "write_example"),
                "tw_autogen.recall.experience_writer": ("distill",),
                "tw_autogen.recall.experiences": ("collect_experience", "select_experiences"),
                "tw_autogen.recall.new_text_files": ("without_paths",),
                "tw_autogen.recall.recall": ("compress",),
            },
            renamed={
                "fitting_examples": "tw_autogen.recall.examples.select_examples",
                "fitting_experiences": "tw_autogen.recall.experiences.select_experiences",
                "load_examples": "read_examples",
                "lived_experience": "tw_autogen.recall.experiences.collect_experience",
                "remember": "add_examples",
                "Talk": "ChatHistory",
            },
        ),
    )
