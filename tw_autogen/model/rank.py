"""`Ranker`: which of many texts have to do with a query, best first; `LexicalRanker` answers by their words alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from bm25s import BM25

_WORD = re.compile(r"[^\W_]{2,}")
_STEM_CHARS = 6
_SAID_ANYWAY = frozenset(
    {"please", "give", "want", "need", "like", "help", "let", "use", "using", "function", "plugin", "user"}
)
"""Words of any request and any description, beside English stopwords; they must not make a text fit."""

Ranked = list[tuple[int, float]]
"""Positions in the texts with their scores, best first; what has nothing to do with the query is not in it."""


@runtime_checkable
class Ranker(Protocol):
    """Says which of many texts have to do with a query."""

    def prepare(self, texts: Sequence[str]) -> None:
        """Do beforehand what can be done without a query, so that a missing server or a wrong key shows at once.

        Raises:
            ModelError: a server could not be asked.
        """
        ...

    def rank(self, query: str, texts: Sequence[str]) -> Ranked:
        """Rank the texts by how well each fits the query.

        Args:
            query: In words.
            texts: Any number; the same ones, asked about again, are read only once.

        Returns:
            Positions and scores, best first, equal ones in their order; higher is better, and scores of different
            rankers or queries can't be compared. What has nothing to do with the query is left out, so the list may be
            empty.

        Raises:
            ModelError: a server could not be asked.
        """
        ...


class LexicalRanker:
    """Ranks by the words that query and text share (BM25): needs no model, no network, and no time to begin with.

    Example:
        >>> LexicalRanker().rank("Which databases are there?", ["Tell a joke.", "Pull rows from a database."])[0][0]
        1
    """

    def prepare(self, texts: Sequence[str]) -> None:
        """Build the index."""
        _index(tuple(texts))

    def rank(self, query: str, texts: Sequence[str]) -> Ranked:
        """Rank the texts that share a word with the query, endings and words of any request aside."""
        index = _index(tuple(texts))
        words = _words(query)
        if index is None or not words:
            return []
        return best_first(index.get_scores(words).tolist())


def best_first(scores: Sequence[float], *, above: float = 0.0) -> Ranked:
    """Give positions and scores of what is above a limit, best first, equal ones in their order.

    Example:
        >>> best_first([0.1, 0.0, 0.7])
        [(2, 0.7), (0, 0.1)]
    """
    found = [(at, score) for at, score in enumerate(scores) if score > above]
    return sorted(found, key=lambda one: (-one[1], one[0]))


@lru_cache(maxsize=8)
def _index(texts: tuple[str, ...]) -> BM25 | None:
    """Build the index once for each set of texts: a session asks again with each request."""
    from bm25s import BM25  # here, because it brings numpy, which only a choice among many needs

    corpus = [_words(text) for text in texts]
    if not any(corpus):
        return None
    index = BM25()
    index.index(corpus, show_progress=False)
    return index


def _words(text: str) -> list[str]:
    """Give the words that carry meaning, plurals and endings cut off so that `anomalies` meets `anomaly`."""
    stopwords = _stopwords()
    return [_singular(word)[:_STEM_CHARS] for word in _WORD.findall(text.lower()) if word not in stopwords]


@lru_cache(maxsize=1)
def _stopwords() -> frozenset[str]:
    from bm25s.stopwords import STOPWORDS_EN_PLUS  # here for the same reason

    return _SAID_ANYWAY.union(STOPWORDS_EN_PLUS)


def _singular(word: str) -> str:
    """Cut off an English plural.

    Source: Harman, "How effective is suffixing?", JASIS 42 (1991): the S-stemmer.
    """
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return f"{word[:-3]}y"
    if word.endswith("es") and not word.endswith(("aes", "ees", "oes")):
        return word[:-1]
    return word[:-1] if word.endswith("s") and not word.endswith(("us", "ss")) else word
