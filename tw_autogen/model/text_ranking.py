"""`Ranker`: which of many texts have to do with a query, best first; `LexicalRanker` answers by their words alone."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Protocol, runtime_checkable

_MARKS = "".join(chr(code) for code in range(0x300, 0x1800) if unicodedata.category(chr(code)).startswith("M"))
"""Signs of vowels and tones that belong to a word, of Hindi or Thai for instance, and are no letters."""
_WORD = re.compile(rf"[^\W_]+(?:[{_MARKS}]+[^\W_]*)*")
_DIGIT = re.compile(r"\d")
_ENGLISH = """
    a about above after again against ain all am an and any are aren as at be because been before being below
    between both but by can couldn did didn do does doesn doing don down during each few for from further had
    hadn has hasn have haven having he her here hers herself him himself his how if in into is isn it its itself
    just ll ma me mightn more most mustn my myself needn no nor not now of off on once only or other our ours
    ourselves out over own re same shan she should shouldn so some such than that the their theirs them
    themselves then there these they this those through to too under until up ve very was wasn we were weren
    what when where which while who whom why will with won wouldn you your yours yourself yourselves please give
    want need like help let use using function plugin user
"""
_STOPWORDS = frozenset(_ENGLISH.split())
"""English words without a subject, and words of any request and any description: they must not make a text fit."""
_STEM_CHARS = 6
_GRAM_CHARS = 3
_GRAM_WEIGHT = 0.3
_SHARED_GRAMS = 0.5
_K1, _B = 1.5, 0.75
_MAX_TIMES, _INSIDE = 3, 0.5

Ranked = list[tuple[int, float]]
"""Positions in the texts with their scores, best first; what has nothing to do with the query is not in it."""


@runtime_checkable
class Ranker(Protocol):
    """Says which of many texts have to do with a query."""

    def prepare(self, texts: Sequence[str]) -> None:
        """Prepare the texts before the first query, so that a missing server or a wrong key shows at once.

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
    """Ranks by what query and text share (BM25): needs no model, no network, and no time to begin with.

    Words count whole and by their stems, codes and numbers whole only. Parts of words (three characters) count
    less: they find compounds and endings that no stem reaches. Scripts without blanks go by pairs of characters.

    Example:
        >>> LexicalRanker().rank("Which databases are there?", ["Tell a joke.", "Pull rows from a database."])[0][0]
        1
        >>> [place for place, _ in LexicalRanker().rank("E1000440", ["E1000441 no disk", "E1000440 no fan"])]
        [1]
    """

    def prepare(self, texts: Sequence[str]) -> None:
        """Do nothing: nothing can go wrong, and the index of a thousand texts is built with the first request."""

    def rank(self, query: str, texts: Sequence[str]) -> Ranked:
        """Rank the texts that share a word, a stem, or half of a word with the query; stop words do not count.

        Args:
            query: Words.
            texts: In any order.
        """
        return best_first(_cached_index(tuple(texts)).scores(query))

    def rank_fields(self, query: str, texts: Sequence[Sequence[str]], weights: Sequence[float]) -> Ranked:
        """Rank texts of several fields, such as a title and a body, by the words and stems they share with a query.

        A word counts the less the more texts have it, and in several fields hardly more than in one. A word that stands
        in the first field only within a longer one, such as `rate` in `birthrates`, counts half.

        Args:
            query: Words.
            texts: Of each its fields.
            weights: How much a word of each field counts.

        Source:
            BM25F of Robertson, Zaragoza and Taylor, "Simple BM25 extension to multiple weighted fields" (2004).
            Differs: words within longer ones.
        """
        found = [
            [Counter(feature for word in _words(field) for feature in _features(word)) for field in fields]
            for fields in texts
        ]
        joined = ["".join(_WORD.findall(_fold_case(fields[0]))) for fields in texts]
        means = [
            sum(counts[index].total() for counts in found) / max(1, len(found)) or 1.0 for index in range(len(weights))
        ]
        wanted = dict.fromkeys(feature for word in _words(query) for feature in _features(word))
        scores = [0.0] * len(texts)
        for feature in wanted:
            inside = feature if len(feature) > _GRAM_CHARS and feature.isalpha() else None
            amounts = []
            for fields, name in zip(found, joined, strict=True):
                amount = sum(
                    weight * min(field[feature], _MAX_TIMES) / (1 - _B + _B * field.total() / mean)
                    for field, weight, mean in zip(fields, weights, means, strict=True)
                    if feature in field
                )
                amounts.append(amount or (_INSIDE * weights[0] if inside and inside in name else 0.0))
            having = sum(map(bool, amounts))
            rare = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
            for at, amount in enumerate(amounts):
                scores[at] += rare * amount / (_K1 + amount)
        return best_first(scores)


class _Index:
    """The features of texts: for each one, which texts have it and what it adds to their scores."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._count = len(texts)
        self._words: dict[str, list[tuple[int, float]]] = {}
        self._grams: dict[str, list[tuple[int, float]]] = {}
        words_of_texts = [list(_words(text)) for text in texts]
        _add_bm25_weights(
            self._words, [[feature for word in words for feature in _features(word)] for words in words_of_texts]
        )
        _add_bm25_weights(self._grams, [[gram for word in words for gram in _grams(word)] for words in words_of_texts])

    def scores(self, query: str) -> list[float]:
        """Return the score of each text; 0 for one that has nothing to do with the query."""
        scores, related = [0.0] * self._count, [False] * self._count
        features = dict.fromkeys(_words(query))
        for feature in dict.fromkeys(feature for word in features for feature in _features(word)):
            for index, weight in self._words.get(feature, ()):
                scores[index] += weight
                related[index] = True
        for word in features:
            grams = set(_grams(word))
            shared = Counter(position for gram in grams for position, _ in self._grams.get(gram, ()))
            for index, count in shared.items():
                related[index] = related[index] or count >= _SHARED_GRAMS * len(grams)
            for gram in grams:
                for index, weight in self._grams.get(gram, ()):
                    scores[index] += _GRAM_WEIGHT * weight
        return [score if known else 0.0 for score, known in zip(scores, related, strict=True)]


def _add_bm25_weights(index: dict[str, list[tuple[int, float]]], documents: Sequence[Sequence[str]]) -> None:
    """Add the weights of BM25 to an index.

    Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with the inverse
    document frequency of Lucene, which is never negative.
    """
    counts = [Counter(document) for document in documents]
    having = Counter(feature for counts in counts for feature in counts)
    rare = {feature: math.log(1 + (len(documents) - most + 0.5) / (most + 0.5)) for feature, most in having.items()}
    mean = sum(map(len, documents)) / max(1, len(documents)) or 1.0
    for at, count in enumerate(counts):
        length = _K1 * (1 - _B + _B * len(documents[at]) / mean)
        for feature, times in count.items():
            index.setdefault(feature, []).append((at, rare[feature] * times / (times + length)))


def best_first(scores: Sequence[float], *, above: float = 0.0) -> Ranked:
    """Return positions and scores of what is above a limit, best first, equal ones in their order.

    Args:
        scores: One a text.
        above: The limit.

    Example:
        >>> best_first([0.1, 0.0, 0.7])
        [(2, 0.7), (0, 0.1)]
    """
    ranked = [(index, score) for index, score in enumerate(scores) if score > above]
    return sorted(ranked, key=lambda pair: (-pair[1], pair[0]))


@lru_cache(maxsize=8)
def _cached_index(texts: tuple[str, ...]) -> _Index:
    """Build the index once for each set of texts: a session asks again with each request."""
    return _Index(texts)


def _fold_case(text: str) -> str:
    """Return text in small letters, each with its accent as one character; names of files on macOS have two."""
    return unicodedata.normalize("NFC", text.lower())


def _words(text: str) -> Iterator[str]:
    """Yield the words that carry meaning, English plurals cut off; of scripts without blanks, pairs of characters."""
    for found in _WORD.findall(_fold_case(text)):
        runs = [(False, found)] if found.isascii() else groupby(found, _is_unspaced)
        for is_unspaced, run in runs:
            word = "".join(run)
            if is_unspaced:
                yield from (word[index : index + 2] for index in range(max(1, len(word) - 1)))
            elif len(word) > 1 and word not in _STOPWORDS:
                yield word if _DIGIT.search(word) else _singular(word)


def _is_unspaced(char: str) -> bool:
    """Return True for a character of a script that writes no blanks: Thai to Khmer, Chinese, Japanese."""
    return (
        "\u0e00" <= char <= "\u0eff"
        or "\u1000" <= char <= "\u109f"
        or "\u1780" <= char <= "\u17ff"
        or ("\u3040" <= char <= "\u30ff" or "\u3400" <= char <= "\u9fff" or "\U00020000" <= char <= "\U0003ffff")
    )


def _features(word: str) -> tuple[str, ...]:
    """Return a word, and its stem, so that `detection` meets `detect`; codes and numbers have none."""
    return (word,) if _DIGIT.search(word) else (word, f"{word[:_STEM_CHARS]}-")


def _grams(word: str) -> list[str]:
    """Return the runs of three characters of a word; of a code, a number, or a short word none."""
    if _DIGIT.search(word) or len(word) <= _GRAM_CHARS:
        return []
    return [word[index : index + _GRAM_CHARS] for index in range(len(word) - _GRAM_CHARS + 1)]


def _singular(word: str) -> str:
    """Cut off an English plural.

    Source: Harman, "How effective is suffixing?", JASIS 42 (1991): the S-stemmer.
    """
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return f"{word[:-3]}y"
    if word.endswith("es") and not word.endswith(("aes", "ees", "oes")):
        return word[:-1]
    return word[:-1] if word.endswith("s") and not word.endswith(("us", "ss")) else word
