"""`Embedder`: texts as vectors; `EmbeddingRanker` ranks by the cosine between them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from tw_autogen.errors import ModelError
from tw_autogen.lazy_module import LazyModule
from tw_autogen.model.embedding_cache import VectorCache
from tw_autogen.model.text_ranking import Ranked, best_first

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Matrix = npt.NDArray[np.float32]
else:
    np = LazyModule("numpy")  # only a choice among many needs it

Key = TypeVar("Key")

_MOST_KEPT = 8


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def name(self) -> str:
        """Everything that a vector depends on besides its text: server, model, its version; a cache goes by it."""
        ...

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Sequence[Sequence[float]]:
        """Return one vector for each text, in their order, all of the same length.

        Args:
            texts: At least one; none is empty.
            query: The texts are queries, not documents: some models embed these differently.

        Raises:
            ModelError: the model could not be asked.
        """
        ...


class EmbeddingRanker:
    """Ranks by the cosine of the angle between the vectors of query and text.

    Args:
        embedder: Makes the vectors.
        cache: Keeps those of texts, not of queries; None: in memory only.
        min_score: A text must be above it to be found at all. Where unrelated texts lie depends on the model.
    """

    def __init__(self, embedder: Embedder, cache: VectorCache | None = None, *, min_score: float = 0.0) -> None:
        self._embedder = embedder
        self._cache = cache
        self._min_score = min_score
        self._known: OrderedDict[tuple[str, ...], Matrix] = OrderedDict()
        self._queries: OrderedDict[str, Matrix] = OrderedDict()

    def prepare(self, texts: Sequence[str]) -> None:
        """Embed the texts that the cache doesn't know.

        Raises:
            ModelError: the embedder could not be asked.
        """
        if texts:
            self._matrix(tuple(texts))

    def rank(self, query: str, texts: Sequence[str]) -> Ranked:
        """Rank the texts by cosine similarity with the query.

        Args:
            query: A blank one ranks nothing.
            texts: In any order.

        Raises:
            ModelError: the embedder could not be asked, or its vectors have another length than before.
        """
        if not texts or not query.strip():
            return []
        matrix = self._matrix(tuple(texts))
        wanted = self._queries.get(query)
        if wanted is None:
            wanted = _unit(self._embedder.embed([query], query=True), self._embedder.name)
            _keep(self._queries, query, wanted)
        if wanted.shape[1] != matrix.shape[1]:
            raise ModelError(
                f"{self._embedder.name}: a vector of {wanted.shape[1]} numbers, where those of the texts have "
                f"{matrix.shape[1]}"
            )
        return best_first((matrix @ wanted[0]).tolist(), above=self._min_score)

    def _matrix(self, texts: tuple[str, ...]) -> Matrix:
        """Return one row of length 1 for each text, shape (texts, dimensions)."""
        known = self._known.get(texts)
        if known is not None:
            self._known.move_to_end(texts)
            return known
        model = self._embedder.name
        found = self._cache.get(model, texts) if self._cache else {}
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        if missing:
            made = _unit(self._embedder.embed([text or " " for text in missing]), model)
            fresh = {text: row.tobytes() for text, row in zip(missing, made, strict=True)}
            if self._cache:
                self._cache.put(model, fresh)
            found.update(fresh)
        if len({len(row) for row in found.values()}) > 1:
            raise ModelError(f"{model}: vectors of different lengths; was the model exchanged under the same name?")
        matrix = np.frombuffer(b"".join(found[text] for text in texts), dtype="<f4").reshape(len(texts), -1)
        _keep(self._known, texts, matrix)
        return matrix


def _unit(vectors: Sequence[Sequence[float]], model: str) -> Matrix:
    """Return the vectors as float32 rows of length 1, shape (texts, dimensions); a vector of zeros stays as it is."""
    try:
        rows = np.asarray(vectors, dtype="<f4")
    except ValueError as error:
        raise ModelError(f"{model}: vectors of different lengths") from error
    if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
        raise ModelError(f"{model}: what came back are no vectors of finite numbers")
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Matrix = (rows / np.where(lengths == 0, 1, lengths)).astype("<f4")
    return unit


def _keep(kept: OrderedDict[Key, Matrix], key: Key, value: Matrix) -> None:
    kept[key] = value
    while len(kept) > _MOST_KEPT:
        kept.popitem(last=False)
