"""The reply of the Planner's model: its JSON schema, and the parser of what models send."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tw_autogen.conversation import Plan, RequestedFormat, Step, is_json, unfenced_json
from tw_autogen.errors import Unreadable
from tw_autogen.model import NoObject, read_code, read_object
from tw_autogen.planner.loose_reply import (
    called,
    code_alone,
    folded,
    is_dots,
    is_promise,
    is_promise_alone,
    is_question,
    match_name,
    wants_code_shown,
)
from tw_autogen.planner.reply_code import code_of, field_text, unshown_code
from tw_autogen.recall import DefinitionPrompt
from tw_autogen.text_truncation import shortened

USER = "User"
_FIELDS = {
    "reasoning": ("reasoning", "planreasoning", "thought"),
    "init_plan": ("initplan",),
    "plan": ("plan",),
    "current_plan_step": ("currentplanstep", "currentstep"),
    "send_to": ("sendto", "to", "recipient", "receiver"),
    "message": ("message", "response", "content", "answer", "reply", "text"),
    "code": ("code", "python", "pythoncode"),
    "then": ("then",),
    "definitions": ("definitions", "definition"),
    "stop": ("stop",),
}
"""What loose models call the fields, folded as by `folded`; the first that holds something counts."""
_NULLABLE = ("init_plan", "plan", "current_plan_step", "code")
_NULLS = frozenset({"null", "none", "n/a", "false"})
"""What models write into these fields in the place of null."""
_REFUSAL = re.compile(
    r"(?:i(?:['’]m| am) (?:very )?sorry|sorry|i (?:can['’]?t|cannot|won['’]t|am unable|am not able)"
    r"|i['’]m (?:unable|not able))\b[^\n]{0,120}"
    r"\b(?:help|assist|comply|decline|do (?:that|this)|provide|fulfil+|tell you|share|reveal|disclose)\b"
    r"|i must decline\b",
    re.I,
)
_TEXTS = ("text", "description", "task", "action", "instruction", "content", "title", "name", "step", "plan")
"""The fields of a step that was sent as an object in which its words may stand; the first that is text counts."""
_FALLBACK_CHARS = 4000
_STEP_CHARS = 200
_FORM = ". The form:\n"
_NO_MESSAGE = "`message` is missing or empty"
_RUN = "Run this code."
_NOT_RUN = "Python beside a message to the User is not run: send it to {}, or put it into `message` to show it"
_NOT_DONE = "`message` says what will be done, and nothing has been done yet: send that step to {}"
_EXAMPLE_STEP = "Load the data that the request names, and print what it asks for."
_EXAMPLE_ANSWER = "(the whole answer, in words and numbers)"
_NO_WORDS = "(The model's answer has no words: it was asked again, and sent an empty message again.)"


class Stop(str, Enum):
    """Why the Planner speaks to the user; `InProcess` while it speaks to a worker."""

    InProcess = "InProcess"
    Completed = "Completed"
    Clarification = "Clarification"
    AdditionalInformation = "AdditionalInformation"
    SecurityRisks = "SecurityRisks"
    TaskFailure = "TaskFailure"


_STOPS = {
    Stop.Completed: (
        "done",
        "complete",
        "finished",
        "finish",
        "success",
        "successful",
        "end",
        "stop",
        "final",
        "answered",
    ),
    Stop.Clarification: ("clarify", "clarificationneeded", "needsclarification"),
    Stop.AdditionalInformation: ("additionalinfo", "moreinformation", "needsinformation", "informationneeded"),
    Stop.SecurityRisks: ("securityrisk", "security", "refused", "refusal"),
    Stop.TaskFailure: ("failure", "failed", "fail", "error", "impossible"),
}
"""What loose models write for why they stop, folded as by `folded`."""
_ONGOING = ("inprocess", "inprogress", "ongoing", "continue", "pending", "working")
"""What they write in place of `InProcess`."""


@dataclass(frozen=True)
class PlannerReply:
    """A reply that was understood.

    Args:
        send_to: A worker's name, or `User`.
        message: What to tell them.
        stop: Why the user is spoken to.
        reasoning: Why this step.
        init_plan: The plan with dependencies, or None where unchanged.
        plan: The merged plan, or None where unchanged.
        current_plan_step: Which step this is; empty where unchanged.
        then: `User` if a worker's answer may go straight on to the user; else empty.
        code: Python that goes with the step; empty: none.
        definitions: Changes of definitions, as `Definitions.changed` takes them.
    """

    send_to: str
    message: str
    stop: Stop
    reasoning: str = ""
    init_plan: Plan | None = None
    plan: Plan | None = None
    current_plan_step: str = ""
    then: str = ""
    code: str = ""
    definitions: tuple[Mapping[str, str], ...] = ()


def reply_schema(
    workers: Sequence[str], *, code: bool = False, then: bool = True, definitions: bool = False
) -> Mapping[str, Any]:
    """Return the JSON schema of a reply.

    Args:
        workers: The names that may be written to, beside the user's.
        code: Whether it has the field of that name.
        then: Whether it has the field of that name.
        definitions: Whether it has the field of that name.

    Returns:
        A strict schema in OpenAI's sense: every field is required, and what may be absent may be null.
    """
    text, maybe = {"type": "string"}, {"type": ["string", "null"]}
    fields: dict[str, Any] = {
        "reasoning": text,
        "init_plan": maybe,
        "plan": maybe,
        "current_plan_step": maybe,
        "send_to": {"type": "string", "enum": [*workers, USER]},
        "message": text,
        **({"code": maybe} if code else {}),
        **({"then": {"type": ["string", "null"], "enum": [USER, None]}} if then else {}),
        "stop": {"type": "string", "enum": [stop.value for stop in Stop]},
        **({"definitions": DefinitionPrompt.schema()} if definitions else {}),
    }
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


class RetryReplyParser:
    """Parses the replies to one request to the Planner's model: the first one, and its corrections.

    A reply in words, without JSON, is the answer to the User at once if it has the form that the request asked for, or
    if only the report is left to do, and otherwise when it comes again after it was asked for as JSON; never at once if
    it asks or promises something, names a worker or holds a Python block. Before any worker has answered, words that
    name a worker, hold a Python block, or hold a number, which would be made up, are no answer.

    Code alone is a step for the worker that takes code.

    An empty message to the User is the answer if the request asks for an empty one; otherwise it is asked for again
    once, and a second one is a failure.

    Args:
        workers: The names that may be written to, beside the user's.
        has_plan: This round has a plan already, so plan fields may be absent.
        form: The form that the request asks its answer to have.
        worked: A worker has answered in this round.
        only_report_left: Of the plan nothing is left but to report; a round without a plan has none of the others.
        coder: The worker that takes code; empty: none does.
        only_coder: No other worker takes code, so that a reply which is code alone is for this one.
        definitions: Reads the field `definitions`; None: it is passed over.
    """

    def __init__(
        self,
        workers: Sequence[str],
        *,
        has_plan: bool,
        form: RequestedFormat | None = None,
        worked: bool = False,
        only_report_left: bool = False,
        coder: str = "",
        only_coder: bool = True,
        definitions: DefinitionPrompt | None = None,
    ) -> None:
        self._only_report_left = worked and only_report_left
        self._coder = coder
        self._only_coder = bool(coder) and only_coder
        self._workers = tuple(workers)
        self._has_plan = has_plan
        self._form = form or RequestedFormat()
        self._worked = worked
        self._definitions = definitions
        self._in_words = 0
        self._replies = 0
        self._empty = 0

    def __call__(self, text: str) -> PlannerReply:
        """Parse one reply.

        Args:
            text: The whole reply.

        Raises:
            Unreadable: with everything that is wrong, and the form that is wanted, in words for the model.
        """
        self._replies += 1
        loose, as_json = self._replies > 1, self._form.json
        shown = wants_code_shown(self._form.request)
        if (reasoning := _reason_of_empty(text)) is not None:
            self._empty += 1
            if self._form.may_be_empty:
                return PlannerReply(USER, "", Stop.Completed, reasoning)
            if self._empty > 1:
                return PlannerReply(USER, _NO_WORDS, Stop.TaskFailure, reasoning)
        try:
            return read_reply(
                text,
                self._workers,
                has_plan=self._has_plan,
                any_stop=loose,
                as_json=as_json,
                coder=self._coder,
                bare_code=self._only_coder and not shown,
                shown=shown,
                worked=self._worked,
                definitions=self._definitions,
            )
        except NoObject as unreadable:
            self._in_words += 1
            code = code_alone(text, self._form.request, worked=self._worked) if self._only_coder else None
            if code:
                return self._code_step(*code)
            if self._is_answer(unreadable.words):
                refused = _REFUSAL.match(unreadable.words) is not None
                return PlannerReply(USER, unreadable.words, Stop.SecurityRisks if refused else Stop.Completed)
            problem = unreadable.problem
        except Unreadable as unreadable:
            json_text = unfenced_json(text.strip())
            is_ours = '"send_to"' in json_text or '"message"' in json_text
            if self._worked and self._form.json and is_json(json_text) and not is_ours:
                return PlannerReply(USER, json_text, Stop.Completed)
            problem = unreadable.problem
        raise Unreadable(f"{problem}{_FORM}{self._example_reply(concrete=_NO_MESSAGE in problem)}")

    def _code_step(self, text: str, code: str) -> PlannerReply:
        """Return code for the worker that takes it, as the one step of a request that has no plan."""
        message = text or _RUN
        plan = None if self._has_plan else Plan((Step(1, _one_line(message)),))
        step = "" if self._has_plan else "1"
        return PlannerReply(self._coder, message, Stop.InProcess, plan=plan, current_plan_step=step, code=code)

    def _is_answer(self, text: str) -> bool:
        if self._worked and self._form.fits(self._form.shaped(text)):
            return True
        plain = folded(text)
        named = any(folded(worker) in plain for worker in self._workers)
        code = "```python" in text
        if self._only_report_left and not (named or code or is_promise(text) or is_question(text)):
            return True
        open_work = named or code or any(map(str.isdigit, text))
        return self._in_words > 1 and (self._worked or not open_work)

    def _example_reply(self, *, concrete: bool) -> str:
        """Return an example of a valid reply; `concrete`: with words in it, for a model that has copied the dots."""
        to_user = self._worked or not self._workers
        example = {
            "reasoning": "One step." if concrete else "…",
            "init_plan": None,
            "plan": None if self._has_plan or to_user or concrete else "1. …",
            "current_plan_step": None if to_user else "1",
            "send_to": USER if to_user else self._workers[0],
            "message": (_EXAMPLE_ANSWER if to_user else _EXAMPLE_STEP) if concrete else "…",
            **({"code": None} if self._coder and not to_user else {}),
            **({"then": None} if self._coder else {}),
            "stop": (Stop.Completed if to_user else Stop.InProcess).value,
        }
        return json.dumps(example, ensure_ascii=False)


def fallback_reply(reply: str, problem: str) -> PlannerReply:
    """Return an answer to the User, made from the last of several unreadable replies.

    Args:
        reply: The model's last reply; not empty.
        problem: What was wrong with it.
    """
    try:
        fields = _canonical_fields(called(read_object(reply), ()))
        message = _as_text(fields.get("message", "")).strip()
        if not message and "message" in fields:  # a reply in our form, which is nothing to show
            message = _as_text(fields.get("reasoning", "")).strip() or _NO_WORDS
    except Unreadable:
        message = ""
    words, problem = (message or reply.strip())[:_FALLBACK_CHARS], problem.partition(_FORM)[0]
    return PlannerReply(USER, f"{words}\n\n(The model's replies could not be read: {problem})", Stop.TaskFailure)


def _reason_of_empty(text: str) -> str | None:
    """Return the reasoning of a reply that completes the request with an empty message to the User; None for others."""
    try:
        fields = {
            key: _as_text(value).strip() for key, value in _canonical_fields(called(read_object(text), ())).items()
        }
    except Unreadable:
        return None
    completes = fields.get("stop", "").casefold() in ("", Stop.Completed.value.casefold())
    empty = fields.get("message") == "" and bool(match_name(fields.get("send_to", ""), [USER]))
    return fields.get("reasoning", "") if empty and completes else None


def read_reply(
    text: str,
    workers: Sequence[str],
    *,
    has_plan: bool,
    any_stop: bool = False,
    as_json: bool = False,
    coder: str = "",
    bare_code: bool = False,
    shown: bool = False,
    worked: bool = False,
    definitions: DefinitionPrompt | None = None,
) -> PlannerReply:
    """Parse a reply.

    Fields are found whatever the case of their names, or by another usual name (`response` for `message`), and as the
    arguments of a call. The message to a worker is the plan of a request that has none. Code for the worker that takes
    it stands in the field `code`, or in a fenced Python block beside the object. A message to the User that is
    `InProcess` is a question, or after a worker has answered the answer, unless it says what will be done.

    Args:
        text: The whole reply.
        workers: The names that may be written to, beside the user's.
        has_plan: This round has a plan already, so plan fields may be absent.
        any_stop: An unknown `stop` in a message to the User is read as `Completed`, and changes of definitions that
            can't be made are left out.
        as_json: A message that is an object stays JSON; otherwise it is written as lines.
        coder: The worker that takes code; empty: none does.
        bare_code: Code without a receiver is for `coder`.
        shown: The request wants to be shown code: a block beside a message to the User belongs to it.
        worked: A worker has answered in this round.
        definitions: Reads the field `definitions`; None: it is passed over.

    Raises:
        Unreadable: with everything that is wrong, in words for the model.
    """
    said = _canonical_fields(called(read_object(text), [*workers, USER]))
    fields = {name: _as_text(value) for name, value in said.items()} | {"code": field_text(said["code"])}
    fields |= {name: "" for name in ("code", "reasoning") if is_dots(fields[name])}
    fields["current_plan_step"] = fields["current_plan_step"].strip(" .…")  # dots where the form shows dots
    if bare_code and not fields["send_to"].strip() and _holds_code(fields["code"]):
        fields["send_to"] = coder
    if not as_json and isinstance(said["message"], dict):
        fields["message"] = _object_as_message(said["message"])
    problems: list[str] = []
    send_to = _read_receiver(fields, workers, problems)
    if coder and send_to == USER and not has_plan and _holds_code(fields["code"]):
        # nothing has run yet: what is said of results is a promise, and what the code prints is the answer
        send_to, fields["stop"], fields["then"] = coder, Stop.InProcess.value, USER
    code = code_of(fields["code"], text, problems, lenient=any_stop) if coder and send_to == coder else ""
    if coder and send_to == USER and (shown or not worked) and (beside := unshown_code(fields["message"], text)):
        if shown or any_stop:
            fields["message"] += f"\n\n```python\n{beside}\n```"
        else:
            problems.append(_NOT_RUN.format(coder))
    if code and not fields["message"].strip(" \n.…"):
        fields["message"] = fields["reasoning"] or _RUN
    if not fields["message"].strip(" \n.…") or fields["message"].strip() == _EXAMPLE_ANSWER:
        problems.append(f"{_NO_MESSAGE}: write what you want to tell the receiver")
    stop = _read_stop(fields, send_to, problems, any_stop=any_stop, worked=worked)
    only_promised = stop is Stop.Completed and not (worked or any_stop or said["definitions"])
    if workers and send_to == USER and only_promised and is_promise_alone(fields["message"]):
        problems.append(_NOT_DONE.format(coder or workers[0]))
    init_plan, plan = _read_plan(said, "init_plan", problems), _read_plan(said, "plan", problems)
    step = fields["current_plan_step"].strip()
    if not has_plan and plan is None and send_to in workers:
        plan, step = init_plan or Plan((Step(1, _one_line(fields["message"])),)), step or "1"
    then = fields["then"].strip()
    changes = definitions.read(said["definitions"], problems, lenient=any_stop) if definitions else ()
    if problems:
        raise Unreadable("; ".join(problems))
    return PlannerReply(
        send_to,
        fields["message"].strip(),
        stop,
        fields["reasoning"].strip(),
        init_plan,
        plan,
        step,
        USER if match_name(then, [USER]) and send_to in workers else "",
        code,
        changes,
    )


def _holds_code(field: str) -> bool:
    return bool(field.strip() and read_code(field).code)


def _canonical_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a reply by their own names; None where nothing is said, or a word for it."""
    found: dict[str, Any] = {}
    for key, value in fields.items():
        if value not in (None, "", [], {}):
            found.setdefault(folded(key), value)
    named = {name: next((found[word] for word in keys if word in found), None) for name, keys in _FIELDS.items()}
    return named | {name: None for name in _NULLABLE if _as_text(named[name]).strip().casefold() in _NULLS}


def _as_text(value: Any) -> str:
    """Return a field as text: models send lists of lines, numbers, objects and null where text was asked for."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return "\n".join(value)
    return json.dumps(value, ensure_ascii=False)


def _object_as_message(message: Mapping[str, Any]) -> str:
    """Return a message that was sent as an object: its text, or a line for each of its fields."""
    texts = [message[name] for name in ("text", "content", "message", "answer") if isinstance(message.get(name), str)]
    return texts[0] if len(texts) == 1 else "\n".join(f"{name}: {_as_text(value)}" for name, value in message.items())


def _one_line(message: str) -> str:
    return shortened(" ".join(message.split()), _STEP_CHARS)


def _read_receiver(fields: Mapping[str, str], workers: Sequence[str], problems: list[str]) -> str:
    known = [*workers, USER]
    said = fields["send_to"].strip()
    if name := match_name(said, known):
        return name
    if len(workers) == 1 and folded(said) == "planner" and folded(fields["stop"]) in ("", *_ONGOING):
        return workers[0]  # it doesn't write to itself
    wanted = f"write one of {', '.join(known)}"
    problems.append(
        f"`send_to` is {said!r}, and nobody here is called that: {wanted}"
        if said
        else f"`send_to` is missing: {wanted}"
    )
    return ""


def _read_stop(fields: Mapping[str, str], send_to: str, problems: list[str], *, any_stop: bool, worked: bool) -> Stop:
    """Read `stop`; a missing one follows from the receiver, and `InProcess` to the User from the message."""
    word = fields["stop"].strip()
    if send_to != USER:
        return Stop.InProcess
    if not word:
        return Stop.Completed
    plain = folded(word)
    for stop, spellings in _STOPS.items():
        if plain == stop.value.casefold() or plain in spellings:
            return stop
    if plain in _ONGOING:
        if is_question(fields["message"]):
            return Stop.Clarification
        if worked and not is_promise(fields["message"]):
            return Stop.Completed
    if not any_stop or plain in _ONGOING:
        known = ", ".join(stop.value for stop in _STOPS)
        problems.append(f"`stop` is {word!r} in a message to the User: write one of {known}")
    return Stop.Completed


def _read_plan(fields: Mapping[str, Any], name: str, problems: list[str]) -> Plan | None:
    text = _plan_text(fields[name])
    if is_dots(text):
        return None
    try:
        return Plan.parse(text)
    except ValueError as error:
        problems.append(f"`{name}`: {error}")
        return None


def _plan_text(plain: Any) -> str:
    r"""Return a plan as text, a step a line, whatever it was sent as: text, a list, or an object of steps.

    Args:
        plain: A JSON value.

    Example:
        >>> _plan_text({"1": "load", "2": {"description": "report"}})
        '1. load\n2. report'
    """
    if isinstance(plain, dict) and isinstance(plain.get("steps"), list | dict):
        plain = plain["steps"]
    if isinstance(plain, dict) and any(isinstance(plain.get(name), str) for name in _TEXTS):
        plain = [plain]
    if isinstance(plain, list | dict):
        steps = [_step_text(one) for one in (plain.values() if isinstance(plain, dict) else plain)]
        lines = [" ".join(step.split()) for step in steps if step.strip()]
        if any(map(Plan.is_numbered, lines)):
            return "\n".join(lines)
        return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))
    return "" if plain is None else str(plain)


def _step_text(step: Any) -> str:
    if not isinstance(step, dict):
        return "" if step is None else str(step)
    texts = [step[name] for name in _TEXTS if isinstance(step.get(name), str)]
    words = [text for text in texts if not re.fullmatch(r"\s*(?:step\s*)?\d+\s*", text, re.IGNORECASE)]
    return words[0] if words else ", ".join(str(value) for value in step.values() if isinstance(value, str))
