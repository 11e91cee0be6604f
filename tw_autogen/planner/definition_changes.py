"""Definitions of the User in the Planner's prompt, and the optional field `definitions` of its reply."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tw_autogen.conversation import Definitions, Memory, Post
from tw_autogen.recall import ChatHistory

SECTION = Path(__file__).with_name("definitions.md").read_text(encoding="utf-8").strip()
_HINTS = re.compile(
    r"\b(?:from (?:now|here|then) on|as of now|henceforth|define\b|(?:call|name) (?:them|it|this|these|those|that)\b"
    r"|keep\b.{1,60}\b(?:as|under)|what[- ]if|suppose\b|pretend|imagine|undo|revert|restore|go(?:ing)? back"
    r"|back to|counts? as|i mean|we mean|are (?:those|the ones)\b|remember\b|whenever|in (?:the )?future|no longer"
    r"|watch ?list|ab (?:jetzt|sofort|hier)|von (?:nun|jetzt) an|künftig|nenn\w*|angenommen|was wäre"
    r"|rückgängig|zurück|gelten als|merk\w*|désormais|à partir de maintenant|supposons|annul\w+|et si"
    r"|a partir de ahora|de ahora en adelante|deshaz|deshacer|supon\w+)\b"
    r"|从现在|今後|これから|假设|撤销",
    re.I | re.S,
)
"""Words with which people define something for later, or take it back; a hint too many costs the section once."""
_WORD = re.compile(r"\w+")
_LEAST_SHARE = 0.5
_FIELDS = ("do", "name", "sentence", "kind", "variable")


@dataclass
class DefinitionPrompt:
    """What one history of the Planner's holds of definitions.

    Args:
        state: Those that are in force at this turn.
        said: The User's own words in all requests of the session.
        wanted: Whether the section is in the prompt, so that the reply has the field.
    """

    state: Definitions = field(default_factory=Definitions)
    said: str = ""
    wanted: bool = False
    _told: str = ""

    def enter(self, memory: Memory) -> None:
        """Read what is in force, and what the User has said.

        Args:
            memory: What the Planner sees.
        """
        self.state = Definitions.of(memory.rounds)
        self.said = "\n".join(one.user_query for one in memory.rounds).casefold()

    def news(self, request: str = "") -> str:
        """Return what the prompt lacks, with a blank line before it: the section where it is needed, and the list.

        Args:
            request: The User's words that it follows; empty: none.
        """
        parts = []
        if not self.wanted and (self.state.known or _HINTS.search(request)):
            self.wanted = True
            parts.append(SECTION)
        if (listed := self.state.describe()) != self._told:
            self._told = listed
            parts.append(listed)
        return "".join(f"\n\n{part}" for part in parts)

    def again(self, history: ChatHistory) -> None:
        """Append the section and the list to a history that was shortened, and remove them where they stood.

        Args:
            history: Of the Planner.
        """
        for told in filter(None, (SECTION if self.wanted else "", self._told)):
            history.replace(f"\n\n{told}", "")
        lost, self._told = SECTION if self.wanted else "", ""
        if words := f"{lost}{self.news()}".strip():
            history.append_user(words)

    def read(self, value: Any, problems: list[str], *, lenient: bool = False) -> tuple[dict[str, str], ...]:
        """Read the field of a reply.

        Args:
            value: What was sent: a list of changes, or a single one.
            problems: Takes what is wrong, in words for the model.
            lenient: Leave out what is wrong in silence: the model was told before.

        Returns:
            The changes that can be made, one after the other.
        """
        state, changes = self.state, list[dict[str, str]]()
        for one in [value] if isinstance(value, Mapping) else value if isinstance(value, list) else []:
            change = _plain(one) if isinstance(one, Mapping) else {}
            try:
                after = state.changed(change, same_request=bool(changes))
                self._check_words(change)
            except ValueError as error:
                if not lenient:
                    problems.append(f"`definitions`: {error}")
            else:
                state = after
                changes.append(change)
        return tuple(changes)

    def _check_words(self, change: Mapping[str, str]) -> None:
        """Refuse a definition in words that are not the User's, such as an instruction found in a file."""
        words = _WORD.findall(change.get("sentence", "").casefold())
        known = sum(one in self.said for one in words)
        if words and known < len(words) * _LEAST_SHARE:
            raise ValueError(f"the `sentence` of {change.get('name')!r} is not in the User's words: quote them")


def definitions_schema() -> dict[str, Any]:
    """Return the JSON schema of the field."""
    maybe = {"type": ["string", "null"]}
    fields = {"do": {"type": "string", "enum": ["set", "drop", "end", "undo"]}, **dict.fromkeys(_FIELDS[1:], maybe)}
    change = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    return {"type": ["array", "null"], "items": change}


def definitions_after(memory: Memory, post: Post) -> str:
    """Return the list of what is in force after a post, for the board.

    Args:
        memory: What the Planner sees.
        post: Its reply, which is not among the posts yet.
    """
    *earlier, here = memory.rounds
    return Definitions.of([*earlier, replace(here, posts=[*here.posts, post])]).describe()


def changes_of(value: Any) -> Sequence[Mapping[str, Any]]:
    """Return the changes that a stored post carries, as its model has sent them."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _plain(sent: Mapping[str, Any]) -> dict[str, str]:
    """Return a change with the fields that it may have; one without `do` sets a definition."""
    kept = {name: str(sent[name]) for name in _FIELDS if isinstance(sent.get(name), str) and sent[name]}
    return {"do": "set", **kept} if "name" in kept else kept
