"""`ModelSettings`: which model is asked, and how; `EmbeddingSettings`: what makes embeddings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tw_autogen.model.chat_model import Usage
from tw_autogen.settings_trust import LOWER, NAMED

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_NAME = "gpt-5.4-mini"
"""The default model of OpenAI's own server: the small one that SDK 2 and 3 both list."""

_EDITION = r"([-@](20\d\d-?[01]\d-?[0-3]\d|\d\d[0-3]\d|0\d\d|latest))?"
"""What may follow a model's name in that of a dated one; `-mini`, `-pro` or a version (`-5`) is another model."""

ResponseFormat = Literal["auto", "json_schema", "json_object", "text"]


@dataclass(frozen=True)
class Price:
    """What a model costs, in dollars for a million tokens.

    Args:
        prompt: Tokens that are sent.
        completion: Tokens that are written.
        cached: Those sent that the server had cached; None: they cost as the others.
    """

    prompt: float
    completion: float
    cached: float | None = None

    def of(self, usage: Usage) -> float | None:
        """Return the cost of calls in dollars; None if the server reported no tokens."""
        if not usage.prompt_tokens and not usage.completion_tokens:
            return None
        cached = self.prompt if self.cached is None else self.cached
        fresh = max(0, usage.prompt_tokens - usage.cached_tokens)
        return (fresh * self.prompt + usage.cached_tokens * cached + usage.completion_tokens * self.completion) / 1e6


@dataclass(frozen=True)
class ModelSettings:
    """Which model is asked, and how; the keys are `model.api_key`, `model.base_url`, and so on.

    Args:
        api_key: Sent to the server, shown nowhere. Not needed for a server on loopback.
        base_url: Any OpenAI-compatible server, such as `http://localhost:11434/v1`; None is OpenAI's own.
        name: The model; None is the only one that the server has, on OpenAI's own server a small one.
        temperature: Sent if it is set; many newer models refuse any.
        seconds: How long one call may take in all, its tries included.
        max_tries: How often one call is sent while the server is busy (429), failing (5xx) or out of reach.
        response_format: How an object is asked for. `auto` tries `json_schema`, then `json_object`, then `text`, and
            remembers what the server took; any other word starts the same ladder at its own rung.
        prices: What models cost, by name: `{"gpt-5.4-mini": {"prompt": 0.4, "completion": 1.6, "cached": 0.1}}`, in
            dollars for a million tokens. A name stands for dated ones too (`gpt-5.4-mini-2026-03-17`), in any case
            and with a provider before it (`openai/gpt-5.4-mini`). Without a price no money is shown. A folder that is
            named sets none where you limit dollars yourself.
        environment_headers: Send the headers that OPENAI_CUSTOM_HEADERS, OPENAI_ORG_ID and OPENAI_PROJECT_ID say; never
            to a server that a folder's file names.
        extra: More fields for each request's body, as they are: `{"reasoning_effort": "low"}`.
    """

    api_key: str | None = field(
        default=None, repr=False, metadata={"env": ("OPENAI_API_KEY",), **NAMED, "server": ("model.base_url",)}
    )
    base_url: str | None = field(
        default=None, metadata={"env": ("OPENAI_BASE_URL", "OPENAI_API_BASE"), "folder": "paired"}
    )
    name: str | None = field(default=None, metadata={**NAMED, "env": ("OPENAI_MODEL",)})
    temperature: float | None = field(default=None, metadata=NAMED)
    seconds: float = field(default=300.0, metadata=LOWER)
    max_tries: int = field(default=4, metadata=LOWER)
    response_format: ResponseFormat = field(default="auto", metadata=NAMED)
    prices: Mapping[str, Price] = field(
        default_factory=dict, metadata={**NAMED, "measures": ("session.max_dollars", "session.max_session_dollars")}
    )
    environment_headers: bool = field(default=True, metadata={"server": ("model.base_url",), "withheld": False})
    extra: Mapping[str, Any] = field(default_factory=dict, metadata={"server": ("model.base_url",)})

    def price(self, *names: str) -> Price | None:
        """Return the price of the first of these names that has one: its own, or that of the name without its date.

        Example:
            >>> settings = ModelSettings(prices={"small": Price(1, 2)})
            >>> settings.price("small-2026-03-17"), settings.price("small-pro")
            (Price(prompt=1, completion=2, cached=None), None)
        """
        for name in names:
            for called in (name, name.rpartition("/")[2]):  # with its provider first
                known = [one for one in self.prices if re.fullmatch(re.escape(one) + _EDITION, called, re.I)]
                if known:
                    return self.prices[max(known, key=len)]
        return None


@dataclass(frozen=True)
class EmbeddingSettings:
    """What makes embeddings, by which texts are found that fit a request; the keys are `embedding.name`, and so on.

    Without a `name` and a `folder`, texts are found by the words they share with the request; nothing is asked.

    Args:
        name: A model on an OpenAI-compatible server with `/embeddings`, such as `text-embedding-3-small`.
        base_url: Its server; None: that of `model.base_url`.
        api_key: Its key, shown nowhere; None: that of `model.api_key`, where the server is the same.
        folder: Folder of a sentence-transformers model, which is run here (extra `embed`), with Python that it may
            hold; nothing is downloaded.
        cache: Folder of the vectors made before, up to 512 MB; None: `$XDG_CACHE_HOME/tw-autogen`, else
            `~/.cache/tw-autogen`.
        min_score: A text whose cosine with the request isn't above it is never found.
        seconds: How long one request to the server may take.
        max_tries: How often one request is sent while the server is busy, failing or out of reach.
    """

    name: str = field(default="", metadata=NAMED)
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False, metadata={"server": ("embedding.base_url", "model.base_url")})
    folder: str = field(default="", metadata={"path": True})
    cache: str | None = field(default=None, metadata={"path": True})
    min_score: float = 0.0
    seconds: float = 60.0
    max_tries: int = 4
