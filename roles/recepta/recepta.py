"""Recepta: the Planner's scratch pad."""

from dataclasses import dataclass
from typing import Any

from tw_autogen import Memory, Post, Role


@dataclass(frozen=True)
class ReceptaSettings:
    """What a note leads to.

    Args:
        answer: What is said to each note.
        pin: Notes of a round are pinned on the board, so that workers read them too.
    """

    answer: str = "Noted. Go on with the plan."
    pin: bool = False


class Recepta(Role):
    """Takes notes, so that a Planner can think in writing before its next step.

    Args:
        settings: See `ReceptaSettings`.

    Source: TaskWeaver's Recepta. Differs: notes can be pinned on the board.
    """

    def __init__(self, settings: ReceptaSettings) -> None:
        self._settings = settings

    def reply(self, memory: Memory, **kwargs: Any) -> Post:
        """Note the newest post."""
        asked, turn = memory.last_post, kwargs.get("turn")
        if not asked.message.strip():
            return Post(self.name, asked.send_from, "There was nothing to note. Send the whole thought.")
        if self._settings.pin and turn is not None:
            notes = turn.round.read_board(self.name)
            turn.round.write_board(self.name, f"{notes or 'Notes:'}\n- {asked.message.strip()}")
        return Post(self.name, asked.send_from, self._settings.answer)
