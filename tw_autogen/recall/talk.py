"""`Talk`: one role's message list in one session, only ever appended to.

A server that caches prefixes finds each prompt to be the last one with more behind it, and a recording replays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tw_autogen.conversation import Memory, Post, Round, RoundState


class Talk:
    """The messages that one role exchanges with its model.

    Args:
        system: The static text; never changed.

    What a role was told and has not answered yet is gathered, so that user's and assistant's messages alternate, as
    some models demand. Messages are never changed, but for the last one of the user's, to which words may be added
    while no answer to it has come, and for words that are taken back by `replace`.
    """

    def __init__(self, system: str) -> None:
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": system}]
        self._seen: set[str] = set()

    def tell(self, words: str, images: tuple[str, ...] = ()) -> None:
        """Say something to the model.

        Args:
            words: Text; a blank line parts it from what is already waiting for an answer.
            images: URLs (`data:` or `https:`) that go along as image parts.
        """
        last = self.messages[-1]
        if last["role"] == "user" and isinstance(last["content"], str) and not images:
            last["content"] += f"\n\n{words}"
        elif images:
            parts: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": url}} for url in images]
            self.messages.append({"role": "user", "content": [{"type": "text", "text": words}, *parts]})
        else:
            self.messages.append({"role": "user", "content": words})

    def replace(self, words: str, others: str) -> None:
        """Put other words in the place of some that were said to the model; a cached prefix ends there."""
        for message in self.messages[1:]:
            if message["role"] == "user" and isinstance(message["content"], str):
                message["content"] = message["content"].replace(words, others)

    def answered(self, words: str) -> None:
        """Add an answer of the model's that was not asked for here: from a stored round, or made without a call."""
        self.messages.append({"role": "assistant", "content": words})

    def news(self, memory: Memory) -> Iterator[Post | Round]:
        """Give what this talk has not seen yet, oldest first, and mark it as seen.

        Returns:
            Posts, and behind the posts of a round that has failed since, that round.
        """
        for one in memory.rounds:
            for post in one.posts:
                if post.id not in self._seen:
                    self._seen.add(post.id)
                    yield post
            if one.state is RoundState.failed and one.id not in self._seen:
                self._seen.add(one.id)
                yield one

    def saw(self, post: Post) -> None:
        """Mark a post as known: the role's own, whose words are here already as the model's answer."""
        self._seen.add(post.id)
