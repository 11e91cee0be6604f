"""The Planner: splits a request into steps, hands them to workers, and answers the user."""

from __future__ import annotations

import datetime
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Template
from typing import Any, Literal

from tw_autogen.approval import Approve
from tw_autogen.conversation import (
    CONVENTIONS,
    AnswerForm,
    Attachment,
    AttachmentType,
    Memory,
    Post,
    Round,
    file_names,
    unfenced_json,
)
from tw_autogen.errors import ApprovalNeeded, ModelUnreadable
from tw_autogen.events import ModelDelayed
from tw_autogen.model import ChatModel, Completion, FieldStream, Message, ask
from tw_autogen.planner.approving import decide_plan
from tw_autogen.planner.fields import USER, PlannerReply, ReplyReader, Stop, last_words, reply_schema
from tw_autogen.planner.plan import Plan, Status
from tw_autogen.planner.request import bulletin, plan_so_far, rounds_of_request, unfounded_numbers
from tw_autogen.recall import Recall, Talk, remember
from tw_autogen.role import PostStream, Role, Turn, Worker, offer_of
from tw_autogen.trust import LOWER, NAMED, PROMPT
from tw_autogen.visible import visible

NAME = "Planner"
_ANSWER_CHARS = 5000
"""How much of an answer to the User stays in the prompt, where code printed it."""
_CHANGED = (
    "(Nothing of that was sent. The User has changed the plan, which is now:\n{plan}\n"
    "Go on from there: reply again with the next step of this plan, and leave init_plan and plan null.)"
)
_REJECTED = (
    "(Nothing of that was sent. The User does not agree with the plan: {reason}. Reply again with a plan that does "
    "what they want, or tell the User why it can't be done.)"
)
_PROMPT = Template(Path(__file__).with_name("prompt.md").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class PlannerSettings:
    """The Planner's settings.

    Args:
        model: Name of the model that plans, on the server of `model.base_url`; empty: the session's model.
        instructions: House rules for every request, such as `Answer in German`; they end the prompt's static part.
        tries: How often an unreadable reply is asked for again, counted afresh for each reply.
        model_seconds: How long one call of the model may take.
        approval: Whether a person is asked about each plan, new or changed, before its next step: `always` or `never`.
    """

    approval: Literal["always", "never"] = "never"
    model: str = field(default="", metadata=NAMED)
    instructions: str = field(default="", metadata=PROMPT)
    tries: int = field(default=3, metadata=LOWER)
    model_seconds: float = field(default=300.0, metadata=LOWER)


@dataclass
class _Talking:
    """The talk of one session, the plan of its current round, and the offers that stand in the talk."""

    talk: Talk
    round_id: str = ""
    plan: Plan | None = None
    mended: bool = False
    date: str = ""
    approved: str = ""
    offers: list[str] = field(default_factory=list)


class Planner(Role):
    """The role that a user's request reaches first.

    Args:
        model: What plans.
        workers: Who it may write to; their `name` and `intro` stand in its prompt.
        settings: See `PlannerSettings`.
        recall: What it is reminded of; None: of nothing but its own talk.
        name: Its name in the talk.
        approve: Asked about plans, as the setting `approval` says; None: nobody is there.

    Source: TaskWeaver's Planner (paper, sections 4.4 and 5.1). Differs: plan fields may be absent when unchanged,
    steps are data, an unknown receiver is told to the model, `then` lets a worker's answer go on without a call, an
    answer that is not in the form that the request shows (`AnswerForm`), or that holds numbers about a file which no
    worker has computed, is sent back once, and what a model says in place of JSON is never lost (`ReplyReader`).
    """

    name = NAME
    intro = "Plans a request, has workers carry out the steps, and answers."

    def __init__(
        self,
        model: ChatModel,
        workers: Sequence[Worker] = (),
        *,
        settings: PlannerSettings | None = None,
        recall: Recall | None = None,
        name: str = NAME,
        approve: Approve | None = None,
    ) -> None:
        self.name = name
        self._approve = approve
        self._model = model
        self._workers = tuple(workers)
        self._settings = settings or PlannerSettings()
        self._recall = recall or Recall()
        self._talks: dict[str, _Talking] = {}

    @property
    def model(self) -> ChatModel:
        """The model that this role asks."""
        return self._model

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
        prompt = _PROMPT.substitute(
            workers=workers or "There are none: answer yourself.", receivers=receivers, conventions=CONVENTIONS
        ).strip()
        rules = self._settings.instructions.strip()
        return f"{prompt}\n\n# House rules\n{rules}" if rules else prompt

    def reply(self, memory: Memory, **kwargs: Any) -> Post:
        """Answer the newest post: to a worker with the next step, or to the user.

        Args:
            memory: What this role may see.
            **kwargs: `turn`; without one nothing is emitted and no deadline holds.

        Raises:
            ModelError: the model could not be asked, or said nothing at all.
        """
        here, asked = memory.rounds[-1], rounds_of_request(memory, self.name)
        turn = kwargs.get("turn") or Turn(here, Path.cwd())
        mine = self._talks.get(memory.session_id)
        if mine is None:
            mine = self._talks[memory.session_id] = _Talking(Talk(self.prompt), plan=plan_so_far(asked, self.name))
            self._remember(mine, here)
            mine.round_id = here.id
        if mine.round_id != here.id:
            mine.round_id, mine.mended = here.id, False
            if len(asked) == 1:
                mine.plan, mine.approved = None, ""
        form = AnswerForm.read("\n".join(one.user_query for one in asked))
        forwarded = _forward(here, self.name, form)
        misfits = form.problems(_whole(forwarded)) if forwarded else []
        if forwarded is not None and (mine.mended or not misfits):
            return _with_misfits(forwarded, misfits)
        self._listen(mine, memory, turn)
        if misfits:
            self._send_back(mine, misfits, turn)
        shown = mine.talk.messages[1:]
        reply = self._ask(mine, turn, form)
        misfits = self._misfits(reply, form, asked, shown)
        if misfits and not mine.mended:
            self._send_back(mine, misfits, turn)
            reply = self._ask(mine, turn, form)
            misfits = self._misfits(reply, form, asked, shown)
        if self._settings.approval == "always":
            reply = self._agreed(mine, reply, turn, form)
        if reply.stop is Stop.Completed:
            reply = replace(reply, message=_shaped(reply.message, form))
        post = _with_misfits(self._post(mine, reply), misfits)
        mine.talk.saw(post)
        turn.round.write_board(self.name, bulletin(asked, mine.plan, mine.date))
        return post

    def close(self) -> None:
        """Forget all talks."""
        self._talks.clear()

    def _remember(self, mine: _Talking, here: Round) -> None:
        """Begin the talk with the examples that belong into it."""
        roles = [self.name, USER, *(one.name for one in self._workers)]
        rounds = self._recall.rounds(roles, here.user_query)
        remember(mine.talk, lambda lived: self._listen(mine, Memory.of(self.name, lived)), rounds)

    def _listen(self, mine: _Talking, memory: Memory, turn: Turn | None = None) -> None:
        """Bring the talk up to date with what was said since; without a turn, with what was said elsewhere."""
        for new in mine.talk.news(memory):
            if isinstance(new, Round):
                mine.talk.tell(f"(That request failed, because {new.error or 'it was stopped'}.)")
            elif new.send_from == self.name:
                mine.talk.answered(_as_json(new))
            else:
                images = tuple(one.content for one in new.attachments if one.type is AttachmentType.image_url)
                offers = self._offers(mine, new.message, turn) if new.send_from == USER and turn else ""
                now = new.send_from == USER and new.id in {one.id for one in memory.rounds[-1].posts}
                date = _date_where_new(mine) if now and turn else ""
                mine.talk.tell(f"From: {new.send_from}{_unrun(new)}\n{new.message}{offers}{date}", images)

    def _offers(self, mine: _Talking, request: str, turn: Turn) -> str:
        """Return what workers have for this request beyond their intros, and what was learnt from earlier ones.

        Lines that stand in the talk already are not repeated.
        """
        offers = [offer_of(one, request, turn.round) for one in self._workers]
        offers.append(self._recall.lessons(self.name, turn.round, request, turn.emit))
        known = {line for offer in mine.offers for line in offer.splitlines()}
        fresh = [offer for offer in (_news_of(one, known) for one in offers) if offer]
        mine.offers += fresh
        return "".join(f"\n\n{offer}" for offer in fresh)

    def _ask(self, mine: _Talking, turn: Turn, form: AnswerForm) -> PlannerReply:
        names = [one.name for one in self._workers]
        growing = PostStream(turn, self.name, FieldStream)
        worked = any(one.send_from != USER and one.send_to == self.name for one in turn.round.posts)
        limits: dict[str, Any] = {
            "seconds": turn.seconds_left(self._settings.model_seconds),
            "reserve": turn.reserve,
            "cancelled": turn.cancelled,
        }
        counted = {**limits, "on_call": growing.counted}
        if self._recall.shorten(mine.talk, self._model, self.name, turn.emit, **counted):
            self._shortened(mine)

        def once() -> tuple[PlannerReply, Completion]:
            return ask(
                self._model,
                mine.talk.messages,
                ReplyReader(names, has_plan=mine.plan is not None, form=form, worked=worked),
                tries=self._settings.tries,
                schema=reply_schema(names),
                on_text=growing.take,
                on_call=growing.called,
                on_delay=growing.delayed,
                **limits,
            )

        try:
            reply, completion = self._recall.ask_within(
                once, mine.talk, self._model, self.name, turn.emit, shortened=lambda: self._shortened(mine), **counted
            )
        except ModelUnreadable as error:
            if not error.reply.strip():
                raise
            return last_words(error.reply, error.problems[-1])
        mine.talk.measured(completion.usage.prompt_tokens)
        return reply

    def _misfits(
        self, reply: PlannerReply, form: AnswerForm, asked: Sequence[Round], shown: Sequence[Message]
    ) -> list[str]:
        """Return what speaks against an answer: its form, or numbers about a file that no worker has computed."""
        if reply.stop is not Stop.Completed:
            return []
        misfits = form.problems(_shaped(reply.message, form))
        posts = [post for one in asked for post in one.posts]
        worked = any(post.send_from not in (USER, self.name) for post in posts)
        about_files = any(file_names(post.message) for post in posts if post.send_from == USER)
        if self._workers and about_files and not worked:
            numbers = unfounded_numbers(reply.message, "\n".join(str(one["content"]) for one in shown))
            if numbers:
                misfits.append(
                    f"no worker has run code for this request, and nothing that you were shown holds the numbers "
                    f"{', '.join(numbers)}: have a worker compute them, or say what they follow from"
                )
        return misfits

    def _send_back(self, mine: _Talking, misfits: Sequence[str], turn: Turn) -> None:
        """Tell the model, once in a round, what is wrong with its answer."""
        mine.mended = True
        mine.talk.tell(_ill_fitting(misfits))
        turn.emit(ModelDelayed(self.name, f"the answer is sent back: {'; '.join(misfits)}"))

    def _shortened(self, mine: _Talking) -> None:
        """Tell again what was told once, and take out old offers: the talk was shortened."""
        for offer in mine.offers[:-1]:
            mine.talk.replace(f"\n\n{offer}", "")
        mine.offers = mine.offers[-1:]
        if mine.date:
            mine.date = ""
            mine.talk.tell(_date_where_new(mine).strip())

    def _agreed(self, mine: _Talking, reply: PlannerReply, turn: Turn, form: AnswerForm) -> PlannerReply:
        """Hold a new plan until a person agrees with it; give the reply that goes on from there.

        Raises:
            ApprovalNeeded: nobody is there.
        """
        reasons: list[str] = []
        while reply.plan is not None and reply.send_to != USER and str(reply.plan) != mine.approved:
            if self._approve is None:
                raise ApprovalNeeded(
                    f"{turn.round.id}: the plan waits for a person's approval (`planner.approval`), and nobody can be "
                    f"asked. The plan:\n{visible(str(reply.plan))}",
                    round=turn.round,
                )
            decision, changed = decide_plan(self._approve, reply.plan, turn)
            if decision.approved:
                mine.plan, mine.approved = changed, str(changed)
                if not decision.text:
                    return reply
                mine.talk.tell(_CHANGED.format(plan=changed))
            else:
                reasons.append(decision.reason or "no reason was given")
                if len(reasons) > self._settings.tries:
                    return PlannerReply(USER, f"The plan was not approved: {reasons[-1]}", Stop.TaskFailure)
                mine.talk.tell(_REJECTED.format(reason=reasons[-1]))
            reply = self._ask(mine, turn, form)
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
            AttachmentType.current_plan_step: _in_words(mine.plan, reply.current_plan_step),
            AttachmentType.then: reply.then,
            AttachmentType.stop: reply.stop.value,
        }
        return Post(self.name, reply.send_to, reply.message, tuple(Attachment(k, v) for k, v in said.items() if v))


def _in_words(plan: Plan | None, step: str) -> str:
    """Give a step with its words, where the model has sent its number."""
    steps = plan.at(step).steps if plan and step else ()
    return next((f"{one.id}. {one.text}" for one in steps if one.status is Status.current), step)


def _forward(here: Round, name: str, form: AnswerForm) -> Post | None:
    """Pass a worker's answer on to the user if the Planner said so beforehand and nothing went wrong or warned."""
    if len(here.posts) < 2:
        return None
    asked, answer = here.posts[-2:]
    status = answer.attachment(AttachmentType.execution_status)
    result = answer.content(AttachmentType.execution_result).strip()
    fine = status is not None and status.content == "SUCCESS" and not (status.extra or {}).get("warnings")
    if asked.content(AttachmentType.then) != USER or answer.send_from != asked.send_to or not (fine and result):
        return None
    whole = [one for one in answer.attachments if one.type is AttachmentType.answer]
    return Post(name, USER, form.shaped(result), (Attachment(AttachmentType.stop, Stop.Completed.value), *whole))


def _whole(post: Post) -> str:
    return post.content(AttachmentType.answer, post.message)


def _shaped(message: str, form: AnswerForm) -> str:
    return form.shaped(unfenced_json(message) if form.json else message)


def _with_misfits(post: Post, misfits: Sequence[str]) -> Post:
    """Return an answer with what is still wrong with it attached."""
    return post.with_attachments([Attachment(AttachmentType.invalid_response, "; ".join(misfits))] if misfits else [])


def _unrun(post: Post) -> str:
    """Return a note where a role that runs code has answered in words."""
    in_words = post.content(AttachmentType.reply_type) == "text"
    unrun = in_words and post.content(AttachmentType.execution_status) == "NONE"
    return " (no code ran: these are words alone)" if unrun else ""


def _news_of(offer: str, known: Collection[str]) -> str:
    """Return an offer without the lines that are known; its head stays where anything else does."""
    head, *lines = offer.splitlines() or [""]
    fresh = [line for line in lines if line not in known]
    again = len(lines) - len(fresh)
    if not fresh:
        return "" if lines or head in known else head
    note = [f"({again} more that fit stand further up.)"] if again else []
    return "\n".join([head, *fresh, *note])


def _date_where_new(mine: _Talking) -> str:
    """Give today's date where it is news: with a request, because in the static prompt it would cost the cache."""
    today = datetime.date.today().isoformat()
    told, mine.date = mine.date, today
    return "" if told == today else f"\n\nToday is {today}."


def _ill_fitting(misfits: Sequence[str]) -> str:
    return (
        f"This has not gone to the User yet, because of its form or its numbers: {'; '.join(misfits)}. "
        "Send an answer without that, or have a worker do what is missing; if that can't be, answer and say why."
    )


def _as_json(post: Post) -> str:
    """Return a stored post of the Planner's in the form in which its model would have replied; a long answer cut."""
    names = {"reasoning": AttachmentType.plan_reasoning.value}
    message = post.message
    if len(message) > _ANSWER_CHARS and post.send_to == USER:
        message = f"{message[:_ANSWER_CHARS]}\n… ({len(message)} characters went to the User; this is the beginning)"
    said = {one.type.value: one.content for one in post.attachments} | {"send_to": post.send_to, "message": message}
    fields = reply_schema(())["properties"]
    said.setdefault(names["reasoning"], "The worker's answer goes to the User.")
    return json.dumps({key: said.get(names.get(key, key)) or None for key in fields}, ensure_ascii=False)
