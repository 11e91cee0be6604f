"""Three tiny requests that show whether a model keeps the Planner's format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tw_autogen.conversation import Memory, Post
from tw_autogen.errors import Unreadable
from tw_autogen.model import ChatModel
from tw_autogen.planner.planner import Planner
from tw_autogen.planner.planner_reply import read_reply, reply_schema
from tw_autogen.role import Role

_REQUESTS = (
    "How many rows does sales.csv have?",
    "Load temperatures.csv, and draw the monthly mean as a chart.",
    "What is the capital of France?",
)
_SECONDS = 120.0


class _Worker(Role):
    """Stands in a prompt; is never asked."""

    name = "CodeInterpreter"
    intro = "Writes and runs Python for one task. It reads files in the working folder and draws charts."
    code_rules = "- Show what was asked for, with labels and units; nothing else."

    def reply(self, memory: Memory, **kwargs: Any) -> Post:
        """Never called: the probe only reads what the model would send."""
        raise NotImplementedError("the probe asks the model only")

    def close(self) -> None:
        """Nothing is owned."""
        return


@dataclass(frozen=True)
class Probe:
    """How a model did.

    Args:
        asked: How many replies were read.
        kept: How many of them could be used at once, without asking again.
        problems: What was wrong with the others, in the words that a model would be told.
    """

    asked: int
    kept: int
    problems: tuple[str, ...]


def probe_format(model: ChatModel) -> Probe:
    """Ask three tiny requests with the Planner's real prompt, and read each reply once.

    Raises:
        ModelError: the model could not be asked.
    """
    worker = _Worker()
    system = Planner(model, [worker]).prompt
    problems = []
    for request in _REQUESTS:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": f"From: User\n{request}"}]
        text = model.complete(messages, schema=reply_schema([worker.name], code=True), seconds=_SECONDS).text
        try:
            read_reply(text, [worker.name], has_plan=False, coder=worker.name)
        except Unreadable as unreadable:
            problems.append(str(unreadable))
    return Probe(len(_REQUESTS), len(_REQUESTS) - len(problems), tuple(problems))
