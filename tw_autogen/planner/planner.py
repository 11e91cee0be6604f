"""The Planner: splits a request into steps, hands them to workers, and answers the user."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from tw_autogen.conversation import Attachment, AttachmentType, Memory, Post, Round
from tw_autogen.model import ChatModel, FieldStream, ask
from tw_autogen.planner.contract import AnswerContract
from tw_autogen.planner.fields import USER, PlannerReply, Stop, read_reply, reply_schema
from tw_autogen.planner.plan import Plan
from tw_autogen.recall import Talk
from tw_autogen.role import Growing, Offering, Role, Turn, Worker

NAME = "Planner"
_PROMPT = Template(Path(__file__).with_name("prompt.md").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class PlannerSettings:
    """The Planner's settings.

    Args:
        model: Name of the model that plans, on the server of `model.base_url`; empty: the session's model.
        instructions: House rules for every request, such as `Answer in German`; they end the prompt's static part.
        tries: How often an unreadable reply is asked for again, counted afresh for each reply.
        model_seconds: How long one call of the model may take.
    """

    model: str = ""
    instructions: str = ""
    tries: int = 3
    model_seconds: float = 300.0


@dataclass
class _Talking:
    """The talk of one session, and the plan of its current round."""

    talk: Talk
    round_id: str = ""
    plan: Plan | None = None
    mended: bool = False


class Planner(Role):
    """The role that a user's request reaches first.

    Args:
        model: What plans.
        workers: Who it may write to; their `name` and `intro` stand in its prompt.
        settings: See `PlannerSettings`.
        name: Its name in the talk.

    Source: TaskWeaver's Planner (paper, sections 4.4 and 5.1). Differs: plan fields may be absent when unchanged,
    steps are data, an unknown receiver is told to the model, `then` lets a worker's answer go on without a call, and an
    answer that is not in the form that the user asked for is sent back once (`AnswerContract`).
    """

    name = NAME
    intro = "Plans a request, has workers carry out the steps, and answers."

    def __init__(
        self,
        model: ChatModel,
        workers: Sequence[Worker] = (),
        *,
        settings: PlannerSettings | None = None,
        name: str = NAME,
    ) -> None:
        self.name = name
        self._model = model
        self._workers = tuple(workers)
        self._settings = settings or PlannerSettings()
        self._talks: dict[str, _Talking] = {}

    @property
    def workers(self) -> tuple[Worker, ...]:
        """Who it may write to. Setting others begins its talk with the model afresh, as their intros stand in front."""
        return self._workers

    @workers.setter
    def workers(self, workers: Sequence[Worker]) -> None:
        if [(one.name, one.intro) for one in workers] != [(one.name, one.intro) for one in self._workers]:
            self._talks.clear()
        self._workers = tuple(workers)

    @property
    def prompt(self) -> str:
        """The static text that every prompt begins with."""
        workers = "\n\n".join(f"## {one.name}\n{one.intro}" for one in self._workers)
        receivers = ", ".join([*(one.name for one in self._workers), USER])
        prompt = _PROMPT.substitute(workers=workers or "There are none: answer yourself.", receivers=receivers).strip()
        rules = self._settings.instructions.strip()
        return f"{prompt}\n\n# House rules\n{rules}" if rules else prompt

    def reply(self, memory: Memory, **kwargs: Any) -> Post:
        """Answer the newest post: to a worker with the next step, or to the user.

        Args:
            memory: What this role may see.
            **kwargs: `turn`; without one nothing is emitted and no deadline holds.

        Raises:
            ModelError: the model could not be asked, or stayed unreadable.
        """
        here = memory.rounds[-1]
        turn = kwargs.get("turn") or Turn(here, Path.cwd())
        mine = self._talks.get(memory.session_id)
        if mine is None:
            mine = self._talks[memory.session_id] = _Talking(Talk(self.prompt), here.id, _plan_so_far(here, self.name))
        if mine.round_id != here.id:
            mine.round_id, mine.plan, mine.mended = here.id, None, False
        forwarded = _forward(here, self.name)
        misfits = _misfits(here, turn, forwarded.message) if forwarded else []
        if forwarded is not None and not misfits:
            return forwarded
        self._listen(mine, memory)
        if misfits:
            mine.talk.tell(_ill_fitting(misfits))
        reply = self._ask(mine, turn)
        if reply.stop is Stop.Completed and not mine.mended and (misfits := _misfits(here, turn, reply.message)):
            mine.mended = True
            mine.talk.tell(_ill_fitting(misfits))
            reply = self._ask(mine, turn)
        post = self._post(mine, reply)
        mine.talk.saw(post)
        turn.round.write_board(self.name, _bulletin(here, mine))
        return post

    def close(self) -> None:
        """Forget all talks."""
        self._talks.clear()

    def _listen(self, mine: _Talking, memory: Memory) -> None:
        """Bring the talk up to date with what was said since."""
        for new in mine.talk.news(memory):
            if isinstance(new, Round):
                mine.talk.tell(f"(That request failed, because {new.error or 'it was stopped'}.)")
            elif new.send_from == self.name:
                mine.talk.answered(_as_json(new))
            else:
                images = tuple(one.content for one in new.attachments if one.type is AttachmentType.image_url)
                offers = self._offers(new.message) if new.send_from == USER else ""
                mine.talk.tell(f"From: {new.send_from}\n{new.message}{offers}", images)

    def _offers(self, request: str) -> str:
        """Say what workers have for this request beyond their intros."""
        offers = [one.offer(request) for one in self._workers if isinstance(one, Offering)]
        return "".join(f"\n\n{offer}" for offer in offers if offer)

    def _ask(self, mine: _Talking, turn: Turn) -> PlannerReply:
        names = [one.name for one in self._workers]
        growing = Growing(turn, self.name, FieldStream)
        reply, _ = ask(
            self._model,
            mine.talk.messages,
            lambda text: read_reply(text, names, has_plan=mine.plan is not None),
            tries=self._settings.tries,
            schema=reply_schema(names),
            on_text=growing.take,
            on_call=growing.called,
            before_call=turn.before_call,
            seconds=turn.seconds_left(self._settings.model_seconds),
            cancelled=turn.cancelled,
        )
        return reply

    def _post(self, mine: _Talking, reply: PlannerReply) -> Post:
        if reply.plan is not None:
            mine.plan = reply.plan
        if mine.plan is not None and reply.current_plan_step:
            mine.plan = mine.plan.at(reply.current_plan_step)
        said = {
            AttachmentType.plan_reasoning: reply.reasoning,
            AttachmentType.init_plan: str(reply.init_plan or ""),
            AttachmentType.plan: str(reply.plan or ""),
            AttachmentType.current_plan_step: reply.current_plan_step,
            AttachmentType.then: reply.then,
            AttachmentType.stop: reply.stop.value,
        }
        return Post(self.name, reply.send_to, reply.message, tuple(Attachment(k, v) for k, v in said.items() if v))


def _forward(here: Round, name: str) -> Post | None:
    """Pass a worker's answer on to the user if the Planner said so beforehand and nothing went wrong or warned."""
    if len(here.posts) < 2:
        return None
    asked, answer = here.posts[-2:]
    status = answer.attachment(AttachmentType.execution_status)
    result = answer.content(AttachmentType.execution_result).strip()
    fine = status is not None and status.content == "SUCCESS" and not (status.extra or {}).get("warnings")
    if asked.content(AttachmentType.then) != USER or answer.send_from != asked.send_to or not (fine and result):
        return None
    return Post(name, USER, result, (Attachment(AttachmentType.stop, Stop.Completed.value),))


def _misfits(here: Round, turn: Turn, answer: str) -> list[str]:
    """Say how an answer departs from the form that the user asked for."""
    return AnswerContract.read(here.user_query).misfits(answer, turn.folder)


def _ill_fitting(misfits: Sequence[str]) -> str:
    return (
        f"This has not gone to the User yet, because it is not in the form that was asked for: {'; '.join(misfits)}. "
        "Send an answer that is, or have a worker do what is missing; if that can't be, answer and say why."
    )


def _bulletin(here: Round, mine: _Talking) -> str:
    """Give what is pinned up for the workers: the user's request with what it brings, and the plan as it stands."""
    asked = next((post.message for post in here.posts if post.send_from == USER), here.user_query)
    lines = [f"The user's request:\n{asked}"]
    if mine.plan is not None:
        lines.append(f"The plan:\n{mine.plan}")
    return "\n".join(lines)


def _plan_so_far(here: Round, name: str) -> Plan | None:
    """Give the plan that stands in a round whose talk begins in its middle."""
    said = [post.content(AttachmentType.plan) for post in here.posts if post.send_from == name]
    plans = [text for text in said if text]
    return Plan.parse(plans[-1]) if plans else None


def _as_json(post: Post) -> str:
    """Give a stored post of the Planner's in the form in which its model would have replied."""
    names = {AttachmentType.plan_reasoning: "reasoning"}
    kept = (
        AttachmentType.plan_reasoning,
        AttachmentType.init_plan,
        AttachmentType.plan,
        AttachmentType.current_plan_step,
        AttachmentType.stop,
    )
    said = {names.get(one.type, one.type.value): one.content for one in post.attachments if one.type in kept}
    return json.dumps({**said, "send_to": post.send_to, "message": post.message}, ensure_ascii=False)
