"""Asks a model about a live run what no check can see, such as whether an answer reads well."""

from __future__ import annotations

from dataclasses import dataclass

from tw_autogen.errors import ModelError, Unreadable
from tw_autogen.model import ChatModel, Usage, read_object
from tw_autogen.scenario.scenario import Scenario
from tw_autogen.scenario.scenario_run import Outcome

_SYSTEM = (
    "You judge the answers that an assistant has given to a user. You get the conversation and one statement about it. "
    "Say whether the statement holds, going by the conversation alone. Reply with one JSON object and nothing else: "
    '{"reason": one short sentence, "holds": true or false}'
)
_SCHEMA = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "holds": {"type": "boolean"}},
    "required": ["reason", "holds"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Judgement:
    """What a judge said about a run; no check depends on it.

    Args:
        holds: Whether the scenario's `judge` line holds; None: the judge could not be asked or read.
        reason: Why, in the judge's words.
        usage: What asking cost; not part of the run's own.
    """

    holds: bool | None
    reason: str
    usage: Usage = Usage()


def judge(scenario: Scenario, outcome: Outcome, model: ChatModel, *, seconds: float | None = None) -> Judgement:
    """Ask whether a scenario's `judge` line holds of what was said.

    Args:
        scenario: One with a `judge` line.
        outcome: A run of it.
        model: Who judges.
        seconds: How long the judge may take; None: the model's own limit.
    """
    conversation = "\n\n".join(
        f"User: {seen.round.user_query}\n\nAssistant: {seen.answer or '(no answer)'}"
        for seen in outcome.evidence.rounds
    )
    messages = [
        {"role": "system", "content": _SYSTEM},
        {"role": "user", "content": f"# Conversation\n{conversation}\n\n# Statement\n{scenario.judge}"},
    ]
    try:
        judged = model.complete(messages, schema=_SCHEMA, seconds=seconds)
    except ModelError as error:
        return Judgement(None, f"the judge could not be asked: {error}")
    try:
        plain = read_object(judged.text)
    except Unreadable as error:
        return Judgement(None, f"the judge could not be read: {error}", judged.usage)
    holds = plain.get("holds")
    return Judgement(holds if isinstance(holds, bool) else None, str(plain.get("reason", "")), judged.usage)
