"""`Price`: what a model costs, by its tokens."""

from __future__ import annotations

from dataclasses import dataclass

from tw_autogen.model.chat_model import Usage


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
        fresh = usage.prompt_tokens - usage.cached_tokens
        return (fresh * self.prompt + usage.cached_tokens * cached + usage.completion_tokens * self.completion) / 1e6
