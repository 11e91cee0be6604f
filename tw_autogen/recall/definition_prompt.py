"""Definitions of the User in the prompt of the role that answers them, and changes of them in its replies."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Any

from tw_autogen.conversation import Definitions, Memory
from tw_autogen.recall.chat_history import ChatHistory
from tw_autogen.text_truncation import ends_of

_SECTION = Template(Path(__file__).with_name("definitions.md").read_text(encoding="utf-8").strip())
_FIELD = "Your reply has one more field, `definitions`: a list of changes, else null."
_BLOCK = (
    "Where something changes, begin your reply with one more fenced block, ```definitions, that holds a JSON list of "
    "changes; your words and the code follow it."
)
_BLOCK_BEGINS = re.compile(r"^[ \t]{0,20}```[ \t]{0,20}definitions?[ \t]{0,20}\n", re.M | re.I)
_BLOCK_ENDS = re.compile(r"^[ \t]{0,20}```[ \t]{0,20}(?:\n|\Z)", re.M)
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
_MIN_SHARE = 0.5
_FIELDS = ("do", "name", "sentence", "kind", "variable")


@dataclass
class DefinitionPrompt:
    """What one history holds of definitions.

    Args:
        in_block: Replies carry changes in a fenced block of their own, not in a field of an object.
        state: Those that are in force at this turn.
        said: The User's own words in all requests of the session.
        wanted: Whether the section is in the prompt, so that the reply has the field.
    """

    in_block: bool = False
    state: Definitions = field(default_factory=Definitions)
    said: str = ""
    wanted: bool = False
    _told: str = ""

    def load_definitions(self, memory: Memory) -> None:
        """Read what is in force, and what the User has said.

        Args:
            memory: What the role sees.
        """
        self.state = Definitions.of(memory.rounds)
        self.said = "\n".join(one.user_query for one in memory.rounds).casefold()

    def news(self, request: str = "") -> str:
        """Return what the prompt lacks, with a blank line before it: the section where it is needed, and the list.

        Args:
            request: The User's words that it follows; empty: none.
        """
        parts = []
        if not self.wanted and (self.state.known or _HINTS.search(ends_of(request))):
            self.wanted = True
            parts.append(self._section)
        if (listed := self.state.describe()) != self._told:
            self._told = listed
            parts.append(listed)
        return "".join(f"\n\n{part}" for part in parts)

    def restore_in(self, history: ChatHistory) -> None:
        """Append the section and the list to a history that was shortened, and remove them where they stood.

        Args:
            history: Of the role.
        """
        for told in filter(None, (self._section if self.wanted else "", self._told)):
            history.replace(f"\n\n{told}", "")
        lost, self._told = self._section if self.wanted else "", ""
        if text := f"{lost}{self.news()}".strip():
            history.append_user(text)

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
            change = _plain_change(one) if isinstance(one, Mapping) else {}
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

    def read_block(
        self, text: str, problems: list[str], *, lenient: bool = False
    ) -> tuple[str, tuple[dict[str, str], ...]]:
        """Read the block of a reply.

        Args:
            text: The reply.
            problems: As in `read`.
            lenient: As in `read`.

        Returns:
            The reply without the block, and the changes; none where it has no block.
        """
        begin = _BLOCK_BEGINS.search(text)
        end = _BLOCK_ENDS.search(text, begin.end()) if begin else None
        if begin is None or end is None:
            return text, ()
        try:
            sent = json.loads(text[begin.end() : end.start()])
        except (ValueError, RecursionError):
            problems.extend([] if lenient else ["`definitions`: the block holds no JSON list"])
            sent = None
        return text[: begin.start()] + text[end.end() :], self.read(sent, problems, lenient=lenient)

    @staticmethod
    def schema() -> dict[str, Any]:
        """Return the JSON schema of the field."""
        maybe = {"type": ["string", "null"]}
        actions = {"type": "string", "enum": ["set", "drop", "end", "undo"]}
        fields = {"do": actions, **dict.fromkeys(_FIELDS[1:], maybe)}
        change = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
        return {"type": ["array", "null"], "items": change}

    @property
    def _section(self) -> str:
        return _SECTION.substitute(how=_BLOCK if self.in_block else _FIELD)

    def _check_words(self, change: Mapping[str, str]) -> None:
        """Refuse a definition in words that are not the User's, such as an instruction found in a file."""
        tokens = _WORD.findall(change.get("sentence", "").casefold())
        known = sum(word in self.said for word in tokens)
        if tokens and known < len(tokens) * _MIN_SHARE:
            raise ValueError(f"the `sentence` of {change.get('name')!r} is not in the User's words: quote them")


def _plain_change(sent: Mapping[str, Any]) -> dict[str, str]:
    """Return a change with the fields that it may have; one without `do` sets a definition."""
    kept = {name: str(sent[name]) for name in _FIELDS if isinstance(sent.get(name), str) and sent[name]}
    return {"do": "set", **kept} if "name" in kept else kept
