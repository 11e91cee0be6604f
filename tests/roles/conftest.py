"""How roles are tried: made from their shipped folder with settings, and asked within a round."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tw_autogen import Memory, Post, Round, Turn
from tw_autogen.model import LexicalRanker
from tw_autogen.role import find_role
from tw_autogen.setting_values import Setting


def nobody() -> Any:
    raise AssertionError("this role was not to ask a model")


@dataclass
class Stage:
    """A round in a session's folder."""

    folder: Path
    here: Round = field(default_factory=lambda: Round("?"))
    events: list[Any] = field(default_factory=list)

    def make(self, name: str, model: Any = None, more: dict[str, Any] | None = None, **settings: Any) -> Any:
        """Make a shipped role with settings."""
        given = {key: Setting(value, "the test") for key, value in settings.items()}
        offers = {"ranker": LexicalRanker(), **(more or {})}
        return find_role(name).make(
            (lambda: model) if model is not None else nobody,
            given=lambda known: given,
            more={key: (lambda value=value: value) for key, value in offers.items()},
        )

    def ask(self, role: Any, text: str, **turn: Any) -> Post:
        """Ask it as the Planner would, in this round."""
        self.here.posts.append(Post("Planner", role.name, text))
        handed = Turn(self.here, self.folder, "post-0", self.events.append, **turn)
        post = role.reply(Memory.of(role.name, [self.here]), turn=handed)
        self.here.posts.append(post)
        return post

    def board(self, role: Any) -> str:
        return self.here.read_board(role.name) or ""


@pytest.fixture
def stage(tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    return Stage(folder)
