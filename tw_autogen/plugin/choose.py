"""Chooses the few plugins that fit a request, where all of them would be too much for a prompt."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from tw_autogen.plugin.spec import PluginSpec

if TYPE_CHECKING:
    from bm25s import BM25

_MAGIC = re.compile(r"^([ \t]*)[%!].*$", re.MULTILINE)
_WORD = re.compile(r"[^\W_]{2,}")
_STEM_CHARS = 6
_SAID_ANYWAY = frozenset(
    {"please", "give", "want", "need", "like", "help", "let", "use", "using", "function", "plugin", "user"}
)
"""Words of any request and any description, beside English stopwords; they must not make a plugin fit."""


@dataclass(frozen=True)
class Chosen:
    """Which plugins go into a prompt, and which do not; both in the order of all."""

    specs: tuple[PluginSpec, ...]
    left_out: tuple[PluginSpec, ...] = ()


def choose(
    specs: Sequence[PluginSpec],
    request: str,
    *,
    budget_chars: int,
    top_k: int = 8,
    always: Collection[str] = frozenset(),
) -> Chosen:
    """Choose the plugins whose stubs go into a prompt: all if they fit, else those that have to do with the request.

    Args:
        specs: All plugins; their order is kept.
        request: What is to be done, in words.
        budget_chars: How long all stubs may be together; the best one, and those that always go, go in any case.
        top_k: At most so many are chosen by the request.
        always: Names that are kept whatever the request says: those that code has used already. A spec that says
            `required` is kept too.

    Returns:
        The same for the same arguments. A plugin that shares no word with the request is not chosen to fill up:
        none that fits is an answer too.

    Example:
        >>> specs = [PluginSpec("tell_joke", "Tell a joke."), PluginSpec("sql_pull_data", "Pull rows from a database.")]
        >>> chosen = choose(specs, "Which databases are there?", budget_chars=10)
        >>> [spec.name for spec in chosen.specs]
        ['sql_pull_data']

    Source: TaskWeaver's `PluginSelector`. Differs: lexical score (BM25) instead of an embedding service; nothing is
    chosen without a reason.
    """
    stub_chars = [len(spec.stub()) + 1 for spec in specs]
    if sum(stub_chars) <= budget_chars:
        return Chosen(tuple(specs))
    kept = {at for at, spec in enumerate(specs) if spec.required or spec.name in always}
    left_chars = budget_chars - sum(stub_chars[at] for at in kept)
    by_request: list[int] = []
    for at in _ranked(specs, request):
        if at not in kept and len(by_request) < top_k and (not by_request or stub_chars[at] <= left_chars):
            by_request.append(at)
            left_chars -= stub_chars[at]
    kept.update(by_request)
    return Chosen(
        tuple(spec for at, spec in enumerate(specs) if at in kept),
        tuple(spec for at, spec in enumerate(specs) if at not in kept),
    )


def names_used(code: str, specs: Sequence[PluginSpec]) -> frozenset[str]:
    """Say which plugins a code names; text and comments do not count, and code that is no Python names none.

    Example:
        >>> names_used('sql("join")', [PluginSpec("sql", "Pull."), PluginSpec("join", "Join.")])
        frozenset({'sql'})
    """
    for text in (code, _MAGIC.sub(r"\1pass", code)):
        try:
            nodes = ast.walk(ast.parse(text))
        except (SyntaxError, ValueError):
            continue
        read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        return frozenset(spec.name for spec in specs if spec.name in read)
    return frozenset()


def _ranked(specs: Sequence[PluginSpec], request: str) -> list[int]:
    """Give the positions of the specs that have a word in common with the request, best first."""
    index = _index(tuple(f"{spec.name} {spec.description}" for spec in specs))
    words = _words(request)
    if index is None or not words:
        return []
    scores = index.get_scores(words).tolist()
    return sorted((at for at, score in enumerate(scores) if score > 0), key=lambda at: (-scores[at], at))


@lru_cache(maxsize=4)
def _index(texts: tuple[str, ...]) -> BM25 | None:
    """Build the index once for each pool of plugins: a session asks again with each request."""
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
