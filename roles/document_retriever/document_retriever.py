"""DocumentRetriever: finds passages of indexed documents, with their sources."""

from dataclasses import dataclass, field
from typing import Any

from tw_autogen import Attachment, AttachmentType, DocumentIndex, Memory, Passage, Post, Ranker, Role

_SHOWN = 30


@dataclass(frozen=True)
class DocumentRetrieverSettings:
    """What is searched, and how much is shown.

    Args:
        index: The file that `tw-autogen index DIR` has made, or the folder in which it lies.
        size: How many passages are found at most.
        target_chars: Each is grown by its neighbours up to so many characters.
    """

    index: str = field(
        metadata={
            "path": True,
            "missing": "make an index with `tw-autogen index DIR` and name it: --set role.document_retriever.index=DIR",
        }
    )
    size: int = 5
    target_chars: int = 1500


class DocumentRetriever(Role):
    """Finds passages that fit a question, by words, or by embeddings where the settings `embedding.…` name them.

    Args:
        settings: See `DocumentRetrieverSettings`.
        ranker: What finds them.

    Raises:
        ConfigError: there is no such index.

    Source: TaskWeaver's document_retriever. Differs: files and lines with each passage, an index of readable JSON, no
    embedding model needed.
    """

    def __init__(self, settings: DocumentRetrieverSettings, ranker: Ranker) -> None:
        self._settings = settings
        self._ranker = ranker
        self._index = DocumentIndex.read(settings.index)

    def reply(self, memory: Memory, **kwargs: Any) -> Post:
        """Search for what the newest post asks."""
        asked, index = memory.last_post, self._index
        match = index.search(
            asked.message, self._ranker, top_k=self._settings.size, around_chars=self._settings.target_chars
        )
        if not match:
            names = ", ".join(list(index.files)[:_SHOWN])
            more = f" and {len(index.files) - _SHOWN} more" if len(index.files) > _SHOWN else ""
            documents = _count(len(index.files), "document")
            message = f"Nothing fits in the {documents}. Say it in other words. They are: {names}{more}"
            return Post(self.name, asked.send_from, message)
        old = {
            **dict.fromkeys(index.changed(), "; changed since it was indexed"),
            **dict.fromkeys(index.gone(), "; no longer there"),
        }
        all_of_them = f"{_count(len(index.passages), 'passage')} from {_count(len(index.files), 'document')}"
        lines = [f"{len(match)} of {all_of_them}, best first:"]
        for number, one in enumerate(match, 1):
            under = f' (under "{one.heading}")' if one.heading and one.heading not in one.text else ""
            lines.append(f"[{number}] {one.where}{under}{old.get(one.file, '')}\n{_numbered(one)}")
        sources = [
            {"number": number, "file": one.file, "lines": [one.first, one.last]} for number, one in enumerate(match, 1)
        ]
        return Post(
            self.name,
            asked.send_from,
            "\n\n".join(lines),
            (Attachment(AttachmentType.text, "sources", extra=sources),),
        )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _numbered(passage: Passage) -> str:
    """Give a passage with the number of each line, so that single lines can be cited."""
    lines = passage.text.split("\n")
    if len(lines) != passage.last - passage.first + 1:  # a line that was too long was parted
        return passage.text
    return "\n".join(f"{number}: {line}" for number, line in enumerate(lines, passage.first))
