"""Estimates of the number of tokens of messages, for prompts that no server has counted yet."""

from __future__ import annotations

from collections.abc import Iterable

from tw_autogen.model.chat_model import Message

TOKEN_CHARS = 4.0
"""Characters a token, where no server has reported what it counted."""
_IMAGE_CHARS = 4000


class TokenEstimate:
    """The tokens of prompts by their characters, calibrated by what a server has counted.

    Example:
        >>> estimate = TokenEstimate()
        >>> before = estimate.tokens(1000)
        >>> estimate.track_prompt_tokens(1000, 500)
        >>> before, estimate.tokens(1000)
        (250.0, 500.0)
    """

    def __init__(self) -> None:
        self._token_chars = TOKEN_CHARS

    @staticmethod
    def count_chars(messages: Iterable[Message]) -> int:
        """Add up the characters of messages; an image counts as 4000.

        Args:
            messages: In OpenAI's form; their content is text, or text and image parts.
        """
        return sum(map(_message_chars, messages))

    def tokens(self, chars: int) -> float:
        """Return the estimated tokens of a prompt of so many characters."""
        return chars / self._token_chars

    def track_prompt_tokens(self, chars: int, prompt_tokens: int) -> None:
        """Calibrate by a prompt that a server has counted; as `token_chars` does.

        Args:
            chars: Of the prompt, as `count_chars` gives them.
            prompt_tokens: As the server reported them; 0: it reported none, and the estimate stays.
        """
        if prompt_tokens > 0:
            self._token_chars = token_chars(chars, prompt_tokens)


def token_chars(chars: int, prompt_tokens: int) -> float:
    """Return the characters per token of a prompt that a server has counted.

    Args:
        chars: Of the prompt.
        prompt_tokens: As the server reported them, more than 0.

    Returns:
        Between 0.5 and 8, whatever was reported.
    """
    return min(8.0, max(0.5, chars / prompt_tokens))


def _message_chars(message: Message) -> int:
    content = message.get("content") or ""
    if isinstance(content, str):
        return len(content)
    return sum(len(part["text"]) if "text" in part else _IMAGE_CHARS for part in content)
