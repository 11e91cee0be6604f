"""`Ticks`: which steps of a plan are news to somebody who has read the last ones."""

from __future__ import annotations

from dataclasses import replace

from tw_autogen.conversation import AttachmentType, Post
from tw_autogen.planner import Plan, Status, Step, Stop


class Ticks:
    """The plan of one round as its posts make it and carry it on."""

    def __init__(self) -> None:
        self._plan: Plan | None = None
        self._unrun: set[int] = set()

    def worked(self, post: Post) -> None:
        """Take a worker's post: the current step is not done if the worker runs code, and has run none."""
        here = next((step.id for step in self._plan.steps if step.status is Status.current), 0) if self._plan else 0
        status = post.content(AttachmentType.execution_status)
        (self._unrun.add if status == "NONE" else self._unrun.discard)(here)

    def news(self, post: Post) -> list[Step]:
        """Take a post of the Planner's.

        Returns:
            Every step of a new or reworded plan, later only the steps whose status has changed.
        """
        old = self._plan
        self._plan = self._carry_on(old, post)
        if self._plan is None:
            return []
        if post.content(AttachmentType.plan):
            self._unrun.clear()
        open_ = (replace(one, status=Status.pending) if one.id in self._unrun else one for one in self._plan.steps)
        if any(one.status is Status.done and one.id in self._unrun for one in self._plan.steps):
            self._plan = Plan(tuple(open_))
        known = {(step.id, step.text, step.status) for step in old.steps} if old else set()
        fresh = [step for step in self._plan.steps if (step.id, step.text, step.status) not in known]
        return list(self._plan.steps) if old is None or _words(old) != _words(self._plan) else fresh

    @property
    def place(self) -> str:
        """Which step is at work, such as `step 2 of 3`; empty without a plan."""
        steps = self._plan.steps if self._plan else ()
        at = next((number for number, step in enumerate(steps, 1) if step.status is Status.current), 0)
        return f"step {at} of {len(steps)}" if at else ""

    @staticmethod
    def _carry_on(plan: Plan | None, post: Post) -> Plan | None:
        text, here = post.content(AttachmentType.plan), post.content(AttachmentType.current_plan_step)
        if text:
            try:
                plan = Plan.parse(text)
            except ValueError:  # the words of another kind of Planner, which need not be a plan of ours
                return plan
        if plan is not None and post.content(AttachmentType.stop) == Stop.Completed.value:
            return Plan(tuple(replace(step, status=Status.done) for step in plan.steps))
        return plan.at(here) if plan is not None and here else plan


def _words(plan: Plan) -> list[str]:
    return [step.text for step in plan.steps]
