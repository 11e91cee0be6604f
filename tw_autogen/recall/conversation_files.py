"""`Conversation`: rounds as a file, in TaskWeaver's YAML or JSON; examples have this form too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tw_autogen.conversation import Round, new_id
from tw_autogen.errors import ConversationFormatError
from tw_autogen.yaml_files import read_mapping, readable_yaml

_KEYS = ("id", "enabled", "rounds", "plugins", "roles", "plugin_only")


@dataclass(frozen=True)
class Conversation:
    """Rounds that belong together: a saved session, or an example for a prompt.

    Args:
        rounds: Oldest first.
        enabled: An example that is not enabled is skipped.
        plugins: Inline plugin specs, as TaskWeaver's files hold them; plain data.
        id: Unique name.
        plugin_only: As an example it is for a CodeInterpreter that may call nothing but plugins.
    """

    rounds: tuple[Round, ...]
    enabled: bool = True
    plugins: tuple[Mapping[str, Any], ...] = ()
    id: str = field(default_factory=lambda: new_id("conv"))
    plugin_only: bool = False

    @property
    def roles(self) -> frozenset[str]:
        """Every name that sends or receives a post."""
        return frozenset(name for one in self.rounds for post in one.posts for name in (post.send_from, post.send_to))

    def to_dict(self) -> dict[str, Any]:
        """Return TaskWeaver's dictionary form."""
        return {
            "id": self.id,
            "enabled": self.enabled,
            "plugins": [dict(plugin) for plugin in self.plugins],
            "roles": sorted(self.roles),
            **({"plugin_only": True} if self.plugin_only else {}),
            "rounds": [one.to_dict() for one in self.rounds],
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Conversation:
        """Read TaskWeaver's dictionary form.

        Raises:
            KeyError: a key that must be there is missing.
            ValueError: a state or an attachment's type is unknown.
        """
        return cls(
            tuple(Round.from_dict(one) for one in plain["rounds"] or ()),
            bool(plain["enabled"]),
            tuple(plain.get("plugins") or ()),
            plain.get("id") or new_id("conv"),
            bool(plain.get("plugin_only", False)),
        )

    def to_yaml(self) -> str:
        """Return the YAML text, keys in the format's order, words unescaped."""
        return readable_yaml(self.to_dict())


def read_conversation(path: Path | str) -> Conversation:
    """Read one file in TaskWeaver's format (JSON is YAML too).

    Raises:
        ConversationFormatError: naming the file and what is wrong in it.
    """
    path = Path(path)
    plain = read_mapping(path, ConversationFormatError, keys=_KEYS)
    try:
        return Conversation.from_dict(plain)
    except KeyError as error:
        raise ConversationFormatError(f"missing key {error.args[0]!r}", path=path) from error
    except (TypeError, ValueError, AttributeError) as error:
        raise ConversationFormatError(str(error), path=path) from error
