"""The Planner: splits a request into steps, hands them to workers, and answers the user."""

from __future__ import annotations

import datetime
import functools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from tw_autogen.approval import Approve
from tw_autogen.conversation import (
    Attachment,
    AttachmentType,
    Definitions,
    Memory,
    Plan,
    Post,
    RequestedFormat,
    Round,
    changes_attachment,
    unfenced_json,
)
from tw_autogen.errors import ApprovalNeeded, ModelError, ModelUnreadable, RoundTooCostly
from tw_autogen.events import AnswerCheckSkipped, ModelDelayed, PromptTruncatedByServer
from tw_autogen.model import BaseChatModel, ChatModel, Completion, FieldStream, Message, ask
from tw_autogen.number_sources import unfounded_numbers
from tw_autogen.picture_files import is_embedded_image
from tw_autogen.planner.answer_checks import (
    AnswerChecks,
    check_runner,
    failed_check_messages,
    failed_checks_report,
    wants_checks,
)
from tw_autogen.planner.offers import Offers
from tw_autogen.planner.plan_approval import decide_plan
from tw_autogen.planner.planner_reply import USER, PlannerReply, RetryReplyParser, Stop, fallback_reply, reply_schema
from tw_autogen.planner.plausibility import implausible
from tw_autogen.planner.settings import PlannerSettings
from tw_autogen.planner.static_prompt import static_prompt
from tw_autogen.planner.user_request import bulletin, is_about_files, plan_so_far, problem_for_user, rounds_of_request
from tw_autogen.recall import ChatHistory, DefinitionPrompt, Recall, add_examples
from tw_autogen.role import PostStream, Role, Turn, Worker, capabilities_for
from tw_autogen.text_escaping import visible
from tw_autogen.text_truncation import trimmed

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
_FORWARDED = "(The code ran, and what it printed went to the User.)"
_VARIABLES = "New or changed in the kernel: "
_UNRUN = " (no code ran: these are words alone)"
"""Stands behind the name of a role that runs code and has answered in words."""
_SENT_AFTER_ALL = "(No other one came. It has gone to the User as it was.)"
_DOUBTS = (
    "(This has not gone to the User yet: {}. Have a worker look at it once more, or, if it is right all the same, "
    "answer with it and say why it is.)"
)
_CORRECTION = (
    "This has not gone to the User yet, because of its form or its numbers: {}. "
    "Send one that is right in this, or have a worker do what is missing; if that can't be, answer and say why."
)


@runtime_checkable
class TakesCode(Protocol):
    """A worker that runs code which comes with a task, as an attachment `code`, and goes on with it where it fails."""

    @property
    def code_rules(self) -> str:
        """Rules for whoever writes that code, as lines of a prompt; empty if code is not taken."""
        ...


@dataclass
class _PlannerState:
    """What the prompt of one session holds, and the plan of its current request."""

    history: ChatHistory
    round_id: str = ""
    plan: Plan | None = None
    corrected: bool = False
    date: str = ""
    definitions: DefinitionPrompt = field(default_factory=DefinitionPrompt)
    checks: AnswerChecks = field(default_factory=AnswerChecks)
    approved: str = ""
    offers: Offers = field(default_factory=Offers)
    unrun: set[int] = field(default_factory=set)
    """The steps of the plan for which the code that a worker was asked for has failed, or was not run."""

    def take(self, plan: Plan) -> None:
        """Set a new plan; steps that stay as they are keep their roles, and stay open where code failed."""
        before = self.plan or Plan()
        known = [(step.id, step.text) for step in before.steps]
        self.plan = plan.with_roles_of(before)
        self.unrun &= {step.id for step in plan.steps if (step.id, step.text) in known}


class Planner(Role):
    """The role that a user's request reaches first.

    Args:
        model: What plans.
        workers: Who it may write to; their `name` and `intro` are in its prompt.
        settings: See `PlannerSettings`.
        recall: Its examples and lessons; None: none.
        name: Its name in the conversation.
        approve: Asked about plans, as the setting `approval` says; None: no person can be asked.

    Source: TaskWeaver's Planner (paper, sections 4.4 and 5.1). Differs: plan fields may be absent when unchanged,
    steps are data, an unknown receiver is told to the model, `then` lets a worker's answer go on without a call, an
    answer that is not in the form that the request shows (`RequestedFormat`), or holds numbers about a file which no
    worker has computed, is sent back once, and what a model says in place of JSON is never lost (`RetryReplyParser`).
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
        self._states: dict[str, _PlannerState] = {}

    @property
    def model(self) -> ChatModel:
        """The model that this role asks."""
        return self._model

    @property
    def workers(self) -> tuple[Worker, ...]:
        """Who it may write to. Setting others begins a new chat history: their intros are at its beginning."""
        return self._workers

    @workers.setter
    def workers(self, workers: Sequence[Worker]) -> None:
        if [(worker.name, worker.intro) for worker in workers] != [
            (worker.name, worker.intro) for worker in self._workers
        ]:
            self._states.clear()
        self._workers = tuple(workers)

    @property
    def prompt(self) -> str:
        """The static text that every prompt begins with."""
        coder, rules = self._coder
        return static_prompt(
            self._workers,
            coder=coder,
            rules=rules,
            objects_only=isinstance(self._model, BaseChatModel) and self._model.objects_only,
            house_rules=self._settings.instructions,
        )

    @property
    def _coder(self) -> tuple[str, str]:
        """The name of the first worker that takes code, and the rules for it; both empty if none does."""
        return next(iter(self._coders), ("", ""))

    @property
    def _coders(self) -> list[tuple[str, str]]:
        taking = ((worker.name, worker.code_rules) for worker in self._workers if isinstance(worker, TakesCode))
        return [pair for pair in taking if pair[1]]

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
        mine = self._states.get(memory.session_id)
        if mine is None:
            mine = _PlannerState(ChatHistory(self.prompt), here.id, plan_so_far(asked, self.name))
            self._add_examples(mine, here)
            self._states[memory.session_id] = mine
        if mine.round_id != here.id:
            mine.round_id, mine.corrected, mine.checks = here.id, False, AnswerChecks()
            if len(asked) == 1:
                mine.plan, mine.approved = None, ""
        self._note_run(mine, here)
        mine.definitions.load_definitions(memory)
        form = RequestedFormat.read("\n".join(round_.user_query for round_ in asked))
        last = mine.plan is None or mine.plan.only_report_left
        forwarded = _forward(here, self.name, form) if last else None
        problems = form.problems(_full_answer(forwarded)) if forwarded else []
        doubts = implausible(_full_answer(forwarded), here.user_query) if forwarded and not mine.corrected else []
        if forwarded is not None and (mine.corrected or not (problems or doubts)):
            forwarded, back = self._check_answer(mine, forwarded, turn, memory)
            if back is not None:
                return replace(back, plan=mine.plan)
            mine.plan = mine.plan and mine.plan.completed().reopened(mine.unrun)
            return replace(_with_problems(forwarded, map(problem_for_user, problems)), plan=mine.plan)
        self._append_posts(mine, memory, turn)
        if problems:
            self._send_back(mine, problems, turn)
        elif doubts:
            mine.history.append_user(_DOUBTS.format("; ".join(doubts)))
        shown = mine.history.messages[1:]
        reply = self._ask_model(mine, turn, form)
        problems = self._problems_of(reply, form, asked, shown)
        if problems and not mine.corrected:
            self._send_back(mine, problems, turn)
            reply = self._ask_again(mine, reply, turn, form)
            problems = self._problems_of(reply, form, asked, shown)
        if self._settings.approval == "always":
            reply = self._approve_plan(mine, reply, turn, form)
        if reply.stop is Stop.Completed:
            reply = replace(reply, message=_shape_message(reply.message, form))
        plan_before = mine.plan
        told = map(problem_for_user, problems)
        post, back = self._check_answer(mine, _with_problems(self._make_post(mine, reply), told), turn, memory)
        if back is not None:
            mine.plan = plan_before
            back = back.with_attachments(
                attachment for attachment in post.attachments if attachment.type is AttachmentType.definitions
            )
            mine.history.append_user(f"(Nothing of that was sent. {back.send_to} is told:)\n{back.message}")
            mine.history.mark_read(back)
            return replace(back, plan=mine.plan)
        mine.history.mark_read(post)
        definitions = _definitions_after(memory, post)
        turn.round.write_board(self.name, bulletin(asked, mine.plan, mine.date, definitions))
        return post

    def close(self) -> None:
        """Drop the chat histories of all sessions."""
        self._states.clear()

    def compact(self, turn: Turn) -> None:
        """Summarize the chat histories before their last round, however short they are.

        Args:
            turn: Takes the events that say what became of them.
        """
        for mine in self._states.values():
            request = turn.request(mine.history.messages, caller=self.name, seconds=self._settings.model_seconds)
            if self._recall.compress_history(mine.history, self._model, self.name, turn.emit, request, now=True):
                self._restore_shortened(mine)

    def _add_examples(self, mine: _PlannerState, here: Round) -> None:
        """Begin the history with the examples that fit the request."""
        roles = [self.name, USER, *(worker.name for worker in self._workers)]
        rounds = self._recall.example_rounds(roles, here.user_query)
        add_examples(mine.history, lambda examples: self._append_posts(mine, Memory.of(self.name, examples)), rounds)

    def _append_posts(self, mine: _PlannerState, memory: Memory, turn: Turn | None = None) -> None:
        """Append the posts that are new; without a turn, those of examples."""
        for new in mine.history.unread(memory):
            if isinstance(new, Round):
                mine.history.append_user(f"(That request failed, because {new.error or 'it was stopped'}.)")
            elif turn and _was_forwarded(new, memory):
                mine.history.append_user(f"From: {new.send_from}\n{_FORWARDED}{_variables_line(new)}")
            elif new.send_from == self.name:
                mine.history.append_assistant(_as_json(new, then=bool(self._coder[0])))
            else:
                seen = (
                    attachment.content for attachment in new.attachments if attachment.type is AttachmentType.image_url
                )
                # No example has a server asked.
                images = tuple(image for image in seen if turn or is_embedded_image(image))
                now = new.send_from == USER and new.id in {post.id for post in memory.rounds[-1].posts}
                offers = self._offers(mine, new.message, turn) if now and turn else ""
                date = _date_where_new(mine) if now and turn else ""
                kept = mine.definitions.news(memory.rounds[-1].user_query) if now and turn else ""
                own = new.send_from == USER and turn
                message = mine.history.without_repeated_notes(new, memory.rounds) if own else new.message
                mine.history.append_user(
                    f"From: {new.send_from}{_unrun_note(new)}\n{message}{offers}{date}{kept}", images
                )
                _note_result(mine.history, new)

    def _offers(self, mine: _PlannerState, request: str, turn: Turn) -> str:
        """Return what workers offer for this request beyond their intros, and lessons from earlier requests.

        Lines that are in the history already are not repeated.
        """
        offers = [capabilities_for(worker, request, turn.round) for worker in self._workers]
        offers.append(self._recall.lessons(self.name, request, turn.emit))
        return mine.offers.news(offers)

    def _ask_model(self, mine: _PlannerState, turn: Turn, form: RequestedFormat) -> PlannerReply:
        names, coder = [worker.name for worker in self._workers], self._coder[0]
        growing = PostStream(turn, self.name, FieldStream)
        worked = any(post.send_from != USER and post.send_to == self.name for post in turn.round.posts)
        counted = turn.request(mine.history.messages, caller=self.name, seconds=self._settings.model_seconds)
        if self._recall.compress_history(mine.history, self._model, self.name, turn.emit, counted):
            self._restore_shortened(mine)

        def once() -> tuple[PlannerReply, Completion]:
            return ask(
                self._model,
                growing.request(
                    counted,
                    schema=reply_schema(names, code=bool(coder), then=bool(coder), definitions=mine.definitions.wanted),
                ),
                RetryReplyParser(
                    names,
                    has_plan=mine.plan is not None,
                    form=form,
                    worked=worked,
                    only_report_left=mine.plan is None or mine.plan.only_report_left,
                    coder=coder,
                    only_coder=len(self._coders) == 1,
                    definitions=mine.definitions,
                ),
                tries=self._settings.tries,
                whole=True,
            )

        try:
            restore = functools.partial(self._restore_shortened, mine)
            reply, completion = self._recall.ask_compressing(
                once, mine.history, self._model, self.name, turn.emit, counted, shortened=restore
            )
        except ModelUnreadable as error:
            if not error.reply.strip():
                raise
            return fallback_reply(error.reply, error.problems[-1])
        except ModelError as error:
            if mine.history.withdraw_if_refused(error):
                mine.offers = Offers()
                self._restore_shortened(mine)
            raise
        if tokens := mine.history.track_prompt_tokens(completion.usage.prompt_tokens):
            turn.emit(PromptTruncatedByServer(self.name, tokens))
        return reply

    def _ask_again(self, mine: _PlannerState, first: PlannerReply, turn: Turn, form: RequestedFormat) -> PlannerReply:
        """Return the answer to what was sent back; the first one where the model can't be asked any more."""
        try:
            reply = self._ask_model(mine, turn, form)
        except (ModelError, RoundTooCostly) as error:
            if turn.cancelled.is_set():
                raise
            turn.emit(AnswerCheckSkipped(self.name, f"the answer goes out uncorrected: {error}"))
            mine.history.append_user(_SENT_AFTER_ALL)
            return first
        return replace(reply, definitions=reply.definitions or first.definitions)

    def _problems_of(
        self, reply: PlannerReply, form: RequestedFormat, asked: Sequence[Round], shown: Sequence[Message]
    ) -> list[str]:
        """Return what speaks against an answer: its form, or numbers about a file that no worker has computed."""
        if reply.stop is not Stop.Completed:
            return []
        problems = form.problems(_shape_message(reply.message, form))
        posts = [post for round_ in asked for post in round_.posts]
        worked = any(post.send_from not in (USER, self.name) and not _unrun_note(post) for post in posts)
        if self._workers and not worked and any(map(is_about_files, asked)):
            texts = [str(message["content"]) for message in shown]
            numbers = unfounded_numbers(
                reply.message, [text for text in texts if _UNRUN not in text.partition("\n")[0]]
            )
            if numbers:
                problems.append(
                    f"no worker has run code for this request, and nothing that you were shown holds the numbers "
                    f"{', '.join(numbers)}: have a worker compute them, or say what they follow from"
                )
        return problems

    def _send_back(self, mine: _PlannerState, problems: Sequence[str], turn: Turn) -> None:
        """Append what is wrong with the model's answer to its history, once in a round."""
        mine.corrected = True
        message = "; ".join(problems)
        mine.history.append_user(_CORRECTION.format(message))
        turn.emit(ModelDelayed(self.name, f"the answer is sent back: {message}"))

    def _check_answer(self, mine: _PlannerState, post: Post, turn: Turn, memory: Memory) -> tuple[Post, Post | None]:
        """Check an answer, where the setting `verify` says so.

        Returns:
            The answer with what came of the checks, and, where some failed for the first time, the post that goes to
            the worker in its place.
        """
        done = post.send_to == USER and post.content(AttachmentType.stop) == Stop.Completed.value
        found = check_runner(self._workers, turn.round)
        if not done or found is None or not wants_checks(self._settings.verify, turn.round, memory.rounds[:-1]):
            return post, None
        seconds, (runner, ran) = self._settings.model_seconds, found
        first = mine.checks.checks is None
        failed = mine.checks.run(runner, _full_answer(post), self._model, turn, seconds=seconds)
        if failed and first:
            asked = next((post for post in reversed(turn.round.posts) if post.send_to == runner.name), ran)
            contents = {
                AttachmentType.then: asked.content(AttachmentType.then),
                AttachmentType.stop: Stop.InProcess.value,
            }
            attachments = tuple(Attachment(kind, text) for kind, text in contents.items() if text)
            return post, Post(self.name, runner.name, failed_checks_report(failed), attachments)
        if mine.checks.checks:
            post = _with_problems(post.with_attachments([mine.checks.attachment()]), failed_check_messages(failed))
        return post, None

    def _restore_shortened(self, mine: _PlannerState) -> None:
        """Adapt the prompt to a shortened history: remove old offers, and repeat the date and the definitions."""
        mine.offers.restore_in(mine.history)
        if mine.date:
            mine.date = ""
            mine.history.append_user(_date_where_new(mine).strip())
        mine.history.repeat_notes()
        mine.definitions.restore_in(mine.history)

    def _approve_plan(
        self, mine: _PlannerState, reply: PlannerReply, turn: Turn, form: RequestedFormat
    ) -> PlannerReply:
        """Return the reply whose plan a person has approved, asking them and the model until there is one.

        Raises:
            ApprovalNeeded: no person can be asked.
        """
        reasons: list[str] = []
        while (plan := reply.plan or mine.plan) and reply.send_to != USER and str(plan) != mine.approved:
            if self._approve is None:
                raise ApprovalNeeded(
                    f"{turn.round.id}: the plan waits for a person's approval (`planner.approval`), and nobody can be "
                    f"asked. The plan:\n{visible(str(plan))}",
                    round=turn.round,
                )
            decision, changed = decide_plan(self._approve, plan, turn)
            if decision.approved:
                mine.approved = str(changed)
                if not decision.text:
                    return reply
                mine.take(changed)
                mine.history.append_user(_CHANGED.format(plan=changed))
            else:
                reasons.append(decision.reason or "no reason was given")
                if len(reasons) > self._settings.tries:
                    return PlannerReply(USER, f"The plan was not approved: {reasons[-1]}", Stop.TaskFailure)
                mine.history.append_user(_REJECTED.format(reason=reasons[-1]))
            reply = self._ask_model(mine, turn, form)
        return reply

    def _note_run(self, mine: _PlannerState, here: Round) -> None:
        """Note whether the worker whose post is to be answered has run code for the current step, and well."""
        answer, step = here.posts[-1], mine.plan and mine.plan.current
        if step and answer.send_from not in (USER, self.name):
            unrun = answer.content(AttachmentType.execution_status) in ("NONE", "FAILURE")
            mine.unrun = mine.unrun | {step.id} if unrun else mine.unrun - {step.id}

    def _advance_plan(self, mine: _PlannerState, reply: PlannerReply) -> None:
        """Set the plan to where a reply takes it."""
        if reply.plan is not None:
            mine.take(reply.plan)
        if mine.plan is not None:
            plan = mine.plan.at(reply.current_plan_step, role="" if reply.send_to == USER else reply.send_to)
            mine.plan = (plan.completed() if reply.stop is Stop.Completed else plan).reopened(mine.unrun)

    def _make_post(self, mine: _PlannerState, reply: PlannerReply) -> Post:
        self._advance_plan(mine, reply)
        said = {
            AttachmentType.plan_reasoning: reply.reasoning,
            AttachmentType.init_plan: str(reply.init_plan or ""),
            AttachmentType.plan: str(reply.plan or ""),
            AttachmentType.current_plan_step: _step_text(mine.plan, reply.current_plan_step),
            AttachmentType.code: reply.code,
            AttachmentType.then: reply.then,
            AttachmentType.stop: reply.stop.value,
        }
        attachments = tuple(Attachment(kind, text) for kind, text in said.items() if text)
        if reply.definitions:
            attachments = (*attachments, changes_attachment(reply.definitions))
        return Post(self.name, reply.send_to, reply.message, attachments, plan=mine.plan)


def _definitions_after(memory: Memory, post: Post) -> str:
    """Return the list of what is in force after a post, which is not in the memory yet, for the board."""
    *earlier, here = memory.rounds
    return Definitions.of([*earlier, replace(here, posts=[*here.posts, post])]).describe()


def _step_text(plan: Plan | None, step: str) -> str:
    """Return a step with its words, where the model has sent its number."""
    found = plan.find(step) if plan and step else None
    return f"{found.id}. {found.text}" if found else step


def _forward(here: Round, name: str, form: RequestedFormat) -> Post | None:
    """Pass a worker's answer on to the user if the Planner said so beforehand and nothing went wrong or warned.

    What is the form that the request shows, and nothing else, goes on as well after a step that code came with.
    """
    if len(here.posts) < 2:
        return None
    asked, answer = here.posts[-2:]
    status = answer.attachment(AttachmentType.execution_status)
    result = trimmed(answer.content(AttachmentType.execution_result))
    fine = status is not None and status.content == "SUCCESS" and not (status.extra or {}).get("warnings")
    said = asked.content(AttachmentType.then) == USER
    said = said or (bool(asked.content(AttachmentType.code)) and form.is_all_of(form.shaped(result)))
    if not said or answer.send_from != asked.send_to or not (fine and result):
        return None
    whole = [attachment for attachment in answer.attachments if attachment.type is AttachmentType.answer]
    stop = Attachment(AttachmentType.stop, Stop.Completed.value, {"forwarded": True})
    return Post(name, USER, form.shaped(result), (stop, *whole))


def _was_forwarded(post: Post, memory: Memory) -> bool:
    """Return whether a post's output went to the user as the next post of its round."""
    if not post.content(AttachmentType.execution_result):
        return False
    here = next(round_ for round_ in memory.rounds if any(each.id == post.id for each in round_.posts))
    after = [each.id for each in here.posts].index(post.id) + 1
    until = replace(here, posts=here.posts[:after])
    sent = _forward(until, memory.role, RequestedFormat.read(here.user_query))
    follows = here.posts[after : after + 1]
    return sent is not None and [(follow.send_to, follow.message) for follow in follows] == [(USER, sent.message)]


def _variables_line(post: Post) -> str:
    """Return the last line of a report if it names variables; else nothing."""
    last = post.message.splitlines()[-1:]
    return f"\n{last[0]}" if last and last[0].startswith(_VARIABLES) else ""


def _full_answer(post: Post) -> str:
    return post.content(AttachmentType.answer, post.message.lstrip())


def _shape_message(message: str, form: RequestedFormat) -> str:
    return form.shaped(unfenced_json(message) if form.json else message)


def _with_problems(post: Post, problems: Iterable[str]) -> Post:
    """Return an answer with what is still wrong with it attached."""
    message = "; ".join(problems)
    return post.with_attachments([Attachment(AttachmentType.invalid_response, message)] if message else [])


def _unrun_note(post: Post) -> str:
    """Return a note where a role that runs code has answered in words."""
    status = post.attachment(AttachmentType.execution_status)
    in_words = post.content(AttachmentType.reply_type) == "text"
    unrun = in_words and status is not None and status.content == "NONE" and not status.extra
    return _UNRUN if unrun else ""


def _note_result(history: ChatHistory, post: Post) -> None:
    """Note a worker's report of code, which may supersede an earlier one; a request begins another task."""
    if post.send_from == USER:
        history.results.begin_task()
    status, code = post.attachment(AttachmentType.execution_status), post.content(AttachmentType.reply_content)
    if status is not None and code:
        extra = status.extra if isinstance(status.extra, dict) else {}
        kept_as = str(extra.get("kept_as", ""))
        history.results.note(post.message, code=code, ok=status.content == "SUCCESS", kept_as=kept_as)


def _date_where_new(mine: _PlannerState) -> str:
    """Return today's date where the history lacks it; it comes with a request, to keep the static prompt cacheable."""
    today = datetime.date.today().isoformat()
    known, mine.date = mine.date, today
    return "" if known == today else f"\n\nToday is {today}."


def _as_json(post: Post, *, then: bool) -> str:
    """Return a stored post of the Planner's in the form in which its model would have replied; a long answer cut."""
    names = {"reasoning": AttachmentType.plan_reasoning.value}
    message = post.message.lstrip()  # forwarded output keeps the blanks before a table's head for the user
    if len(message) > _ANSWER_CHARS and post.send_to == USER:
        message = f"{message[:_ANSWER_CHARS]}\n… ({len(message)} characters went to the User; this is the beginning)"
    said = {attachment.type.value: attachment.content for attachment in post.attachments} | {
        "send_to": post.send_to,
        "message": message,
    }
    fields = reply_schema((), code=post.attachment(AttachmentType.code) is not None, then=then)["properties"]
    said.setdefault(names["reasoning"], "The worker's answer goes to the User.")
    sent: dict[str, Any] = {key: said.get(names.get(key, key)) or None for key in fields}
    if kept := post.attachment(AttachmentType.definitions):
        sent["definitions"] = [definition for definition in kept.extra or () if isinstance(definition, dict)]
    return json.dumps(sent, ensure_ascii=False)
