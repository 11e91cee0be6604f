"""`ScriptedModel`: a model that follows a script, and fails the test that asks it too often or too rarely."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

from tw_autogen.errors import ModelError
from tw_autogen.model import BaseChatModel, Completion, ModelRequest
from tw_autogen.text_truncation import shortened

Step = str | Completion | BaseException | Callable[[list[dict[str, Any]]], str | Completion]
"""A reply, an error to raise, or a function of the messages that gives either."""

_PIECE_CHARS = 16
_HEAD_CHARS = 400


class ScriptedModel(BaseChatModel):
    """A `ChatModel` that answers with the next step of its script; the script is the exact count of calls.

    Args:
        steps: One a call: text, a `Completion`, an exception to raise, or a function that takes the messages and gives
            text or a `Completion` (and may raise).

    Raises:
        AssertionError: from the call that is one too many; and on leaving `with` while steps are left over, unless an
            exception is on its way already.

    Example:
        >>> with ScriptedModel(["It is 42."]) as model:
        ...     model.complete([{"role": "user", "content": "what is 6*7?"}]).text
        'It is 42.'
        >>> model.calls[0][-1]["content"]
        'what is 6*7?'
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = tuple(steps)
        self.calls: list[list[dict[str, Any]]] = []
        """What was asked, call by call: copies, so that what happens to the messages later doesn't show."""
        self.schemas: list[Mapping[str, Any] | None] = []
        self.tools: list[list[dict[str, Any]] | None] = []
        self._lock = threading.Lock()

    @property
    def left(self) -> int:
        """How many steps were not taken yet."""
        return max(0, len(self.steps) - len(self.calls))

    def answer(self, request: ModelRequest) -> Completion:
        """Take the next step; its text goes to `on_text` in small pieces. See `ChatModel.complete`."""
        if request.cancelled is not None and request.cancelled.is_set():
            raise ModelError("the scripted model: the call was cancelled")
        asked, tools = copy.deepcopy(request.messages), request.tools
        with self._lock:
            number = len(self.calls)
            if number >= len(self.steps):
                raise AssertionError(_asked_too_often(len(self.steps), asked))
            self.calls.append(asked)
            self.schemas.append(copy.deepcopy(request.schema))
            self.tools.append(copy.deepcopy([dict(tool) for tool in tools]) if tools is not None else None)
        reply = _follow(self.steps[number], copy.deepcopy(asked))
        if request.on_text:
            for index in range(0, len(reply.text), _PIECE_CHARS):
                request.on_text(reply.text[index : index + _PIECE_CHARS])
        return reply

    def __enter__(self) -> ScriptedModel:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and self.left:
            step = self.steps[len(self.calls)]
            raise AssertionError(
                f"the scripted model was asked {len(self.calls)} of {len(self.steps)} times; the next step would have "
                f"been {_short_repr(step)}"
            )


def plans(
    message: str,
    *,
    to: str = "CodeInterpreter",
    plan: str | None = None,
    init_plan: str | None = None,
    step: str | None = None,
    stop: str | None = None,
    then: str | None = None,
    code: str | None = None,
    reasoning: str = "This is the next step.",
) -> str:
    """Write a Planner's reply.

    To a worker it holds a plan of one step, the message, unless told otherwise; to the user none, so that the plan
    stays as it was.

    Args:
        message: What the receiver is told.
        to: The receiver's name.
        plan: The merged plan, as text.
        init_plan: The plan with its dependencies; as `plan` if not given.
        step: The current step; the plan's first line if not given.
        stop: `Completed` to the user, `InProcess` to others, if not given.
        then: `User`, if the worker's answer may be forwarded.
        code: Python that goes with the step.
        reasoning: Why.

    Returns:
        JSON text.

    Example:
        >>> json.loads(plans("It is 42.", to="User"))["stop"]
        'Completed'
    """
    if plan is None and init_plan is None and to != "User":
        plan = f"1. {' '.join(message.split())}"
    plan = plan if plan is not None else init_plan
    init_plan = init_plan if init_plan is not None else plan
    step = step if step is not None or plan is None else plan.splitlines()[0]
    fields = {
        "reasoning": reasoning,
        "init_plan": init_plan,
        "plan": plan,
        "current_plan_step": step,
        "stop": stop or ("Completed" if to == "User" else "InProcess"),
        "send_to": to,
        "message": message,
        "code": code,
        "then": then,
    }
    return json.dumps({name: value for name, value in fields.items() if value is not None}, ensure_ascii=False)


def codes(code: str, *, thought: str = "This code does it.") -> str:
    """Write a CodeInterpreter's reply: the thought, and the code in a fenced block.

    Args:
        code: Python; may hold fences.
        thought: What is written before it.

    Example:
        >>> print(codes("6 * 7"))
        This code does it.
        ```python
        6 * 7
        ```
    """
    fence = "```"
    while fence in code:
        fence += "`"
    return f"{thought}\n{fence}python\n{code.rstrip()}\n{fence}"


def _follow(step: Step, messages: list[dict[str, Any]]) -> Completion:
    if isinstance(step, BaseException):
        raise step
    reply = step(messages) if callable(step) else step
    return reply if isinstance(reply, Completion) else Completion(reply, model="script")


def _asked_too_often(steps: int, messages: list[dict[str, Any]]) -> str:
    last = messages[-1] if messages else {"role": "nobody", "content": ""}
    times = "once" if steps == 1 else f"{steps} times"
    return (
        f"the scripted model was to be asked {times}, and is asked once more; last message, from "
        f"{last.get('role')}: {_short_repr(last.get('content'))}"
    )


def _short_repr(value: object) -> str:
    return shortened(repr(value), _HEAD_CHARS)
