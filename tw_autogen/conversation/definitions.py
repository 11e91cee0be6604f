"""`Definitions`: what the User has defined in a session and what still holds, computed from the posts alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tw_autogen.conversation.post import Attachment, AttachmentType
from tw_autogen.conversation.round import Round

KINDS = ("rule", "snapshot", "what-if")
ACTIONS = ("set", "drop", "end", "undo")
_MAX = 40
_NAME_CHARS = 80
_SENTENCE_CHARS = 500
_MAX_STALE = 10
_NOTES = {
    "rule": "A rule is applied to the data as they are now, again with each request.",
    "snapshot": "A snapshot is used as it stands in its variable, and not computed again.",
    "what-if": "A what-if is computed on copies under names of its own, and its results are reported as such.",
}


@dataclass(frozen=True)
class Definition:
    """One thing that the User has defined, and that later requests rest on.

    Args:
        name: As the User calls it; unique among those in force, whatever its case.
        sentence: The User's own words.
        kind: `rule`, applied again to the data as they are; `snapshot`, a result that stays as it was computed;
            `what-if`, in force until it is ended.
        variable: The variable or cell that holds it; empty: none.
        replaced: Of a what-if: the definition of the same name that comes back when it ends.
    """

    name: str
    sentence: str
    kind: str = "rule"
    variable: str = ""
    replaced: Definition | None = None

    def __str__(self) -> str:
        """Return `core customers (rule, variable core): at least 3 orders`."""
        kept = f", variable `{self.variable}`" if self.variable else ""
        instead = f', until it is ended in place of "{self.replaced.sentence}"' if self.replaced else ""
        return f"{self.name} ({self.kind}{kept}{instead}): {self.sentence}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Definitions:
    """What the User has defined until now.

    Args:
        in_force: Oldest first.
        stale: Variables of definitions that are no longer in force, oldest first.
        known: Whether anything was ever defined.
    """

    in_force: tuple[Definition, ...] = ()
    stale: tuple[str, ...] = ()
    known: bool = False
    _earlier: tuple[Definitions, ...] = field(default=(), repr=False, compare=False)
    """The states that `undo` goes back to, one for each request that has changed something."""

    @classmethod
    def of(cls, rounds: Iterable[Round]) -> Definitions:
        """Compute what is in force after all changes that posts carry.

        Args:
            rounds: All rounds of the session, oldest first. Changes that no longer fit are left out.
        """
        state = cls()
        for round_ in rounds:
            begun = False
            for post in round_.posts:
                found = post.attachment(AttachmentType.definitions)
                changes = found.extra if found is not None and isinstance(found.extra, list) else []
                for change in (plain for plain in changes if isinstance(plain, Mapping)):
                    try:
                        state = state.changed(change, same_request=begun)
                    except ValueError:
                        continue
                    begun = change.get("do") != "undo"
        return state

    def changed(self, change: Mapping[str, Any], *, same_request: bool = False) -> Definitions:
        """Return the state after a change.

        Args:
            change: `do` is `set` (with `name`, `sentence`, `kind`, `variable`), `drop` (with `name`), `end` (a what-if
                by `name`, or all of them), or `undo` (what the last request has changed).
            same_request: An earlier change of the same request can be undone only together with this one.

        Raises:
            ValueError: it can't be made; the message says why, for the model that has sent it.
        """
        action = _text_field(change, "do")
        if action == "undo":
            if not self._earlier:
                raise ValueError("there is nothing to undo: no request has changed a definition")
            return self._followed_by(self._earlier[-1].in_force, self._earlier[-1]._earlier)
        if action == "set":
            after = self._with_definition(_read_definition(change))
        elif action == "drop":
            gone = self._find(_text_field(change, "name"))
            what_if = gone.kind == "what-if"  # which models drop in place of ending it
            after = (
                self._without_what_ifs(gone.name)
                if what_if
                else tuple(definition for definition in self.in_force if definition is not gone)
            )
        elif action == "end":
            after = self._without_what_ifs(_text_field(change, "name"))
        else:
            raise ValueError(f"`do` is {action!r}: write one of {', '.join(ACTIONS)}")
        earlier = self._earlier if same_request else (*self._earlier, self)
        return self._followed_by(after, earlier)

    def describe(self) -> str:
        """Return the list for prompts; empty if nothing was ever defined."""
        if not self.known:
            return ""
        lines = ["# Definitions in force, in the User's words", *(f"- {definition}" for definition in self.in_force)]
        if not self.in_force:
            lines = ["# Definitions", "None is in force any more."]
        lines += [
            words for kind, words in _NOTES.items() if any(definition.kind == kind for definition in self.in_force)
        ]
        if self.stale:
            stale = ", ".join(f"`{name}`" for name in self.stale)
            lines.append(f"Variables of definitions that are no longer in force, not to be used: {stale}")
        return "\n".join(lines)

    def _followed_by(self, after: tuple[Definition, ...], earlier: tuple[Definitions, ...]) -> Definitions:
        used, gone = _variable_names(after), _variable_names(self.in_force)
        stale = tuple(fromkey for fromkey in dict.fromkeys([*self.stale, *gone]) if fromkey not in used)
        return Definitions(after, stale[-_MAX_STALE:], True, earlier)

    def _with_definition(self, new: Definition) -> tuple[Definition, ...]:
        """Return the definitions with a new one at the place of that of the same name, or at the end."""
        old = next(
            (
                definition
                for definition in self.in_force
                if _normalize_name(definition.name) == _normalize_name(new.name)
            ),
            None,
        )
        if new.kind == "what-if":
            new = replace(new, replaced=old.replaced if old is not None and old.kind == "what-if" else old)
        if old is not None:
            return tuple(new if definition is old else definition for definition in self.in_force)
        if len(self.in_force) >= _MAX:
            raise ValueError(f"{_MAX} definitions are in force, the most there may be: drop some first")
        return (*self.in_force, new)

    def _without_what_ifs(self, name: str) -> tuple[Definition, ...]:
        wanted = (
            [self._find(name)] if name else [definition for definition in self.in_force if definition.kind == "what-if"]
        )
        if not wanted:
            raise ValueError("no what-if is in force")
        if wanted[0].kind != "what-if":
            raise ValueError(f"{wanted[0].name!r} is no what-if: a definition is dropped")
        kept = (definition.replaced if definition in wanted else definition for definition in self.in_force)
        return tuple(definition for definition in kept if definition is not None)

    def _find(self, name: str) -> Definition:
        for definition in self.in_force:
            if _normalize_name(definition.name) == _normalize_name(name):
                return definition
        known = ", ".join(repr(other.name) for other in self.in_force) or "none"
        raise ValueError(f"no definition in force is called {name!r}; those in force: {known}")


def changes_attachment(changes: Sequence[Mapping[str, Any]]) -> Attachment:
    """Return the attachment with which a post carries changes of definitions.

    Args:
        changes: As `Definitions.changed` takes them.
    """
    words = "\n".join(" ".join(str(value) for value in change.values() if value) for change in changes)
    return Attachment(AttachmentType.definitions, words, [dict(change) for change in changes])


def _read_definition(change: Mapping[str, Any]) -> Definition:
    name, sentence, kind, variable = (_text_field(change, key) for key in ("name", "sentence", "kind", "variable"))
    if not name or not sentence:
        raise ValueError("a definition needs `name` and `sentence`, the User's own words")
    for key, text, most in (("name", name, _NAME_CHARS), ("sentence", sentence, _SENTENCE_CHARS)):
        if len(text) > most:
            raise ValueError(f"`{key}` has {len(text)} characters: {most} at most")
    kind = kind or "rule"
    if kind not in KINDS:
        raise ValueError(f"`kind` is {kind!r}: write one of {', '.join(KINDS)}")
    variable = variable.strip("`")
    if variable and not variable.isidentifier():
        raise ValueError(
            f"`variable` is {variable!r}, which is no name of a variable: leave it null where there is none"
        )
    if kind == "snapshot" and not variable:
        raise ValueError("a snapshot needs `variable`, under which its result is kept")
    return Definition(name, sentence, kind, variable)


def _variable_names(definitions: Iterable[Definition]) -> list[str]:
    """Return the variables of definitions, and of those that come back when a what-if ends."""
    return [
        each.variable
        for definition in definitions
        for each in (definition.replaced, definition)
        if each and each.variable
    ]


def _text_field(change: Mapping[str, Any], key: str) -> str:
    value = change.get(key)
    return " ".join(value.split()) if isinstance(value, str) else ""


def _normalize_name(name: str) -> str:
    return " ".join(name.casefold().replace("_", " ").split())
