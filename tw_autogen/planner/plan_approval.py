"""Approval of a plan by a person, who may also change a step, or refuse it with a reason."""

from __future__ import annotations

from tw_autogen.approval import Approve, Decision, Proposal, decide
from tw_autogen.conversation import Plan
from tw_autogen.role import Turn


def decide_plan(approve: Approve, plan: Plan, turn: Turn) -> tuple[Decision, Plan]:
    """Ask a person about a plan.

    A changed plan that can't be read is asked about again, with what is wrong.

    Args:
        approve: Asked.
        plan: The plan, in data.
        turn: Takes the events of question and answer.

    Returns:
        The decision, and the plan that holds now.
    """
    proposal = Proposal("plan", str(plan))
    while True:
        decision = decide(approve, proposal, turn.emit)
        if not (decision.approved and decision.text):
            return decision, plan
        try:
            return decision, Plan.parse(decision.text)
        except ValueError as error:
            proposal = Proposal("plan", str(plan), (f"your change can't be read: {error}",))
