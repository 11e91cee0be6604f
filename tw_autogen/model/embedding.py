"""`Embedder`: texts as vectors, by a server or a model in a folder; `EmbeddingRanker` ranks by their cosine."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from tw_autogen.bounded_json import replace_half_pairs
from tw_autogen.errors import ConfigError, ModelError, NoModelError
from tw_autogen.lazy_module import LazyModule
from tw_autogen.model.embedding_cache import VectorCache
from tw_autogen.model.error_messages import EMBEDDING
from tw_autogen.model.openai_model import OpenAIModel, is_loopback
from tw_autogen.model.settings import EmbeddingSettings, ModelSettings
from tw_autogen.model.text_ranking import LexicalRanker, Ranked, Ranker, best_first
from tw_autogen.private_files import cache_folder

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Matrix = npt.NDArray[np.float32]
else:
    np = LazyModule("numpy")  # only a choice among many needs it

Key = TypeVar("Key")
_MAX_KEPT = 8
_AT_ONCE = 128


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
            self._embedding_matrix(tuple(texts))

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
        matrix = self._embedding_matrix(tuple(texts))
        wanted = self._queries.get(query)
        if wanted is None:
            wanted = _normalized_rows(
                self._embedder.embed(replace_half_pairs([query]), query=True), self._embedder.name
            )
            _add_to_lru(self._queries, query, wanted)
        if wanted.shape[1] != matrix.shape[1] and self._cache:  # the model was exchanged under the same name
            matrix = self._embedding_matrix(tuple(texts), anew=True)
        if wanted.shape[1] != matrix.shape[1]:
            raise ModelError(
                f"{self._embedder.name}: a vector of {wanted.shape[1]} numbers, where those of the texts have "
                f"{matrix.shape[1]}"
            )
        return best_first((matrix @ wanted[0]).tolist(), above=self._min_score)

    def _embedding_matrix(self, texts: tuple[str, ...], *, anew: bool = False) -> Matrix:
        """Return one row of length 1 for each text, shape (texts, dimensions).

        Args:
            texts: In any order.
            anew: Make all vectors, whatever is known.
        """
        known = None if anew else self._known.get(texts)
        if known is not None:
            self._known.move_to_end(texts)
            return known
        model = self._embedder.name
        found = self._cache.get(model, texts) if self._cache and not anew else {}
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        if missing:
            made = _normalized_rows(self._embedder.embed(replace_half_pairs([text or " " for text in missing])), model)
            fresh = {text: row.tobytes() for text, row in zip(missing, made, strict=True)}
            if self._cache:
                self._cache.put(model, fresh, anew=anew)
            found.update(fresh)
        if len({len(row) for row in found.values()}) > 1:  # the model was exchanged under the same name
            return self._embedding_matrix(texts, anew=True)
        matrix = np.frombuffer(b"".join(found[text] for text in texts), dtype="<f4").reshape(len(texts), -1)
        _add_to_lru(self._known, texts, matrix)
        return matrix


def _normalized_rows(vectors: Sequence[Sequence[float]], model: str) -> Matrix:
    """Return the vectors as float32 rows of length 1, shape (texts, dimensions); a vector of zeros stays as it is."""
    try:
        rows = np.asarray(vectors, dtype="<f4")
    except (TypeError, ValueError) as error:
        raise ModelError(f"{model}: vectors of different lengths, or of something else than numbers") from error
    if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
        raise ModelError(f"{model}: what came back are no vectors of finite numbers")
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Matrix = (rows / np.where(lengths == 0, 1, lengths)).astype("<f4")
    return unit


def _add_to_lru(kept: OrderedDict[Key, Matrix], key: Key, value: Matrix) -> None:
    kept[key] = value
    while len(kept) > _MAX_KEPT:
        kept.popitem(last=False)


class OpenAIEmbedder:
    """A model on an OpenAI-compatible server with `/embeddings`.

    Args:
        settings: Server, key, name and limits.

    Raises:
        ConfigError: the address is none.
    """

    def __init__(self, settings: ModelSettings) -> None:
        self._model = OpenAIModel(settings, section=EMBEDDING)

    @property
    def name(self) -> str:
        """Server and model."""
        return f"{self._model.base_url} {self._model.name}"

    def embed(self, texts: Sequence[str], *, query: bool = False) -> list[Sequence[float]]:
        """Request the vectors of the texts from the server, in batches.

        Args:
            texts: At least one; none is empty.
            query: Makes no difference to a server.

        Raises:
            ModelError: naming the server, what was wrong, and what to do.
        """
        found: list[Sequence[float]] = []
        for index in range(0, len(texts), _AT_ONCE):
            found += self._model.vectors(texts[index : index + _AT_ONCE])
        return found


class FolderEmbedder:
    """A sentence-transformers model in a local folder; nothing is downloaded, but Python in the folder may be run.

    Args:
        folder: As `SentenceTransformer.save` leaves it.

    Raises:
        ConfigError: there is no such folder, no model in it, or sentence-transformers is not installed.
    """

    def __init__(self, folder: Path | str) -> None:
        self._folder = Path(folder).expanduser().resolve()
        if not self._folder.is_dir():
            raise ConfigError(f"embedding.folder: {self._folder} is not there; it is the folder of a saved model")
        try:
            from sentence_transformers import SentenceTransformer  # an extra, and seconds to load
        except ImportError as error:
            raise ConfigError(
                "embedding.folder: sentence-transformers is missing; install it with: pip install 'tw-autogen[embed]'"
            ) from error
        try:
            self._model: Any = SentenceTransformer(str(self._folder), local_files_only=True)
        except Exception as error:
            raise ConfigError(f"embedding.folder: no model can be loaded from {self._folder}: {error}") from error
        self._name = f"{self._folder} {_fingerprint(self._folder)}"

    @property
    def name(self) -> str:
        """The folder and a hash of what lies in it, so that an exchanged model is another one."""
        return self._name

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Any:
        """Return an array of shape (texts, dimensions), float32.

        Args:
            texts: At least one; none is empty.
            query: Use the model's prompt for queries; otherwise the one for documents.
        """
        encode = self._model.encode_query if query else self._model.encode_document
        return encode(list(texts), show_progress_bar=False, convert_to_numpy=True)


def resolve_ranker(settings: EmbeddingSettings, model: ModelSettings, *, distrusted: Path | None = None) -> Ranker:
    """Return the ranker that the settings name.

    Args:
        settings: What makes embeddings.
        model: Where server and key are taken from if they are not set.
        distrusted: A folder that somebody else may have made: no link there leads the cache out of it. None: there is
            none.

    Raises:
        ConfigError: both a name and a folder are set, or the folder holds no model.
        NoModelError: a key is needed and not set.
    """
    if settings.name and settings.folder:
        raise ConfigError("embedding: both `embedding.name` and `embedding.folder` are set; take one of them out")
    if not settings.name and not settings.folder:
        return LexicalRanker()
    folder = Path(settings.cache).expanduser() if settings.cache else cache_folder(os.environ)
    cache = VectorCache(folder, distrusted=distrusted)
    if settings.folder:
        return EmbeddingRanker(FolderEmbedder(settings.folder), cache, min_score=settings.min_score)
    url = settings.base_url or model.base_url
    key = settings.api_key or (model.api_key if url == model.base_url else None)  # a key goes to its own server only
    if not key and not (url and is_loopback(url)):
        raise NoModelError("no key for embeddings; set `embedding.api_key`", looked_at=("embedding.api_key",))
    asked = ModelSettings(
        api_key=key,
        base_url=url,
        name=settings.name,
        seconds=settings.seconds,
        max_tries=settings.max_tries,
        environment_headers=model.environment_headers and url == model.base_url,
    )
    return EmbeddingRanker(OpenAIEmbedder(asked), cache, min_score=settings.min_score)


def _fingerprint(folder: Path) -> str:
    """Hash names, sizes and times of the model's files: reading gigabytes would take longer than the embedding."""
    lines = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            stat = path.stat()
            lines.append(f"{path.relative_to(folder)} {stat.st_size} {stat.st_mtime_ns}")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
