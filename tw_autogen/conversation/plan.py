"""`Plan`: the steps of a request as data, with TaskWeaver's text and a dictionary as its two stored forms."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from graphlib import CycleError, TopologicalSorter
from typing import Any

from tw_autogen.conversation.untrusted_fields import text_field

_WHAT = (
    r"(?:the|an?|it|them|this|that|these|those|all|both|each|its|their|your|which|what|whether|how|who|why|when|where"
    r"|back|with|on|results?|findings|conclusions?|answers?|user)\b"
)
"""How what is told, or who is told it, begins after an imperative; a noun such as `Answer rates` has none of these."""
_USER_LAST = r"\b(?:to|for|with)\s(?:the\s)?user\b(?=\W{0,9}\Z|[,;.]|\s(?:as|in|and)\b)"
_REPORT = re.compile(
    r"\A\W{0,9}(?:(?:finally|lastly|then|and|now|please|(?:the )?planner)\b[\s,:]{0,3}){0,3}"
    rf"(?:(?:report|tell|answer|present|reply|respond|inform|communicate)(?:\W{{0,9}}\Z|\s{_WHAT})"
    r"|(?<=planner )(?:reports|tells|answers|presents|replies|responds|informs|communicates|(?:berichte|antworte)t)\b"
    rf"|(?:report|reply|respond|present|give|show|return|provide|share|send|summari[sz]e)s?\b[^.:\n]{{0,60}}{_USER_LAST}"
    rf"|(?:give|show|send|answer|tell|inform)s?\s(?:the\s)?user(?:\W{{0,9}}\Z|\s{_WHAT})"
    r"|(?:give|show|return|summari[sz]e)\s(?:the\s)?(?:results?|findings|answer)\W{0,9}\Z"
    r"|(?:berichte|(?:be)?antworte|präsentiere)(?:\W{0,9}\Z|\s(?:das|den|dem|die|an|ob|wie|was|welche[rs]?)\b)"
    r"|(?:rapporte[rz]?|présente[rz]?|répond(?:s|re|ez)|communique[rz]?|informe[rz])"
    r"(?:\W{0,9}\Z|\s(?:(?:les?|la|aux?|à|une?|que)\b|l['’]))"
    r"|(?:respond[ea]|contesta|comunica|informa|presenta)r?e?"
    r"(?:\W{0,9}\Z|\s(?:(?:el|l[aeo]s?|al?|ao|os?|il?|gli|una?|uma|que)\b|all['’]))"
    r"|(?:最后|最後に|然后)?[，、,]?(?:[将把]结果)?(?:(?:[向给]用户|ユーザー?[にへ])\w{0,9})?(?:结果|結果を)?(?:报告|汇报|回答|回复|告知|報告)"
    r"(?:给?用户|结果|する)?\W{0,9}\Z)"
    r"|(?-i:\b(?:berichten|(?:be)?antworten|mitteilen|präsentieren|ausgeben|melden)\W{0,9}\Z)",
    re.I,
)
"""What a step is that tells the user something: an imperative at its begin (in German also a verb at its end).

In doubt a step is work: the Planner is asked once more, where otherwise the work would be left out.
"""
_MAKES = re.compile(
    r"(?:\b(?:and|then|und|dann|et|puis|y)\s|[,;:]\s{0,3})"
    r"(?:create|draw|plot|save|write|compute|calculate|generate|build|export|make|send|train|fit|load|run|count|compare"
    r"|find|join|merge|sum|rank|aggregate|group|filter|sort|test|check)\b"
    r"|\b(?:as|in|into|to|with)\s(?:an?\s|the\s)?(?:\w{1,20}\s)?"
    r"(?:pdf|excel|xlsx|csv|docx?|powerpoint|pptx|html|slides?|e?-?mail|workbook|document|charts?|plots?)\b"
    r"|\b(?:as|in|into|to)\s\S{1,60}\.(?:pdf|xlsx?|csv|docx?|pptx?|html?|json|md|txt)\b"
    r"|\b(?:erstell|erzeug|berechn|ermittel|zähl|lad|vergleich)\w{1,3}\b|生成|创建|制作|撰写|作成|计算|统计|計算|集計",
    re.I,
)
"""Of a step that begins so: work, and a file."""
_WORD = r"(?:step|schritt|étape|etapa|pass?o|шаг|步骤|ステップ|第(?=\d{1,9}步))\s*"
_UNIT = r"(?:步|단계)?\s*"
_SIGN = r"(?:[、．：）]\*{0,2}\s*|[.):\]]\*{0,2}(?:\s+|(?=[^\W\d_]))|\s?[–—-]\s+(?=[^\W\d_]))"
_BEGIN = r"\s*(?:#{1,6}\s+)?\*{0,2}[(（\[]?"
_NUMBERED = re.compile(
    rf"{_BEGIN}(?:(?P<number>\d{{1,9}}){_UNIT}{_SIGN}|{_WORD}(?P<step>\d{{1,9}}){_UNIT}(?:{_SIGN}|[–—-]\*{{0,2}}\s+))"
    r"(?P<text>\S.*)$",
    re.IGNORECASE,
)
"""A line that begins a numbered step."""
_NUMBER = re.compile(rf"{_BEGIN}(?:{_WORD})?(\d{{1,9}})(?!\d){_UNIT}(?:[.):\]、．：）–—-]\*{{0,2}})?", re.IGNORECASE)
_LINE_BREAK = re.compile(r"\\n(?=\s*(?:\d|[-*•(]|step\b))|<br ?/?>", re.I)
_NEXT_STEP = re.compile(
    r"(?<!\bby)(?<!\bof)(?<!\bto)(?<!\bis)(?<!\bat)(?<!\bthan)(?<!\btop)(?<!\bfirst)(?<!\blast)(?<![=<>*+])"
    r"\s(\d{1,2})[.)]\s(?=[^\W\d_])"
)
"""Where a step begins in the line of the one before."""
_BULLET = re.compile(
    r"^\s*(?:[-*•]\s+(?:\[[ xX]\]\s+)?|[a-zA-Z][.)]\s+|第[一二三四五六七八九十]{1,3}步[：:、，]\s*)(\S.*)$"
)
_MARK = re.compile(r"<\s*(sequential|interactive)(?:ly)?\s+depends?\s+on\s([^<>]*)>", re.IGNORECASE)


class Depends(str, Enum):
    """How a step depends on another.

    `sequential`: it runs after the other without a look at the result in between, so both may become one step.
    `interactive`: the Planner or the user must read the other's result before this step can be worded.
    """

    sequential = "sequential"
    interactive = "interactive"


class Status(str, Enum):
    """How far a step is."""

    pending = "pending"
    current = "current"
    done = "done"


@dataclass(frozen=True)
class Step:
    """One step of a plan.

    Args:
        id: Its number; counts from 1 in the order of the plan.
        text: What is to be done, without number and marks.
        depends: The steps that it needs: (id, how).
        status: How far it is.
        role: Name of the role that it was last given to; empty before that.
    """

    id: int
    text: str
    depends: tuple[tuple[int, Depends], ...] = ()
    status: Status = Status.pending
    role: str = ""

    def __str__(self) -> str:
        """Return `2. report <interactively depends on 1>`."""
        marks = [
            f"<{how.value}ly depends on {', '.join(str(other) for other, kind in self.depends if kind == how)}>"
            for how in Depends
            if any(kind == how for _, kind in self.depends)
        ]
        return " ".join([f"{self.id}. {self.text}", *marks])


@dataclass(frozen=True)
class Plan:
    r"""Steps in their order.

    Example:
        >>> plan = Plan.parse("1. load a.csv\n2. report <interactively depends on 1>")
        >>> plan.steps[1].depends[0][1].value
        'interactive'
        >>> print(plan.at("2. report"))
        1. load a.csv
        2. report <interactively depends on 1>
        >>> [step.status.value for step in plan.at("2. report").steps]
        ['done', 'current']
    """

    steps: tuple[Step, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Plan:
        """Parse a plan: a numbered line (or a bullet) begins a step, any other line continues the last one.

        A bullet after a numbered line continues it, too, if it is indented, or if several lines are numbered. Numbers
        that are there twice count anew, where no step depends on another.

        Args:
            text: A model's, a person's, or that of a stored attachment; all steps become pending. A heading before
                numbered ones, such as `The plan:`, is none.

        Raises:
            ValueError: there is no step, or a step depends on one that isn't there or, in a circle, on itself.
        """
        found: list[tuple[int, list[str]]] = []
        lines = _plan_lines(text)
        numbers = sum(map(cls.is_numbered, lines))
        for line in lines:
            numbered, bullet = _NUMBERED.match(line), _BULLET.match(line)
            if bullet and found and (numbers > 1 or (numbers and line[0].isspace())):
                bullet = None
            if numbered:
                found.append((int(numbered["number"] or numbered["step"]), [numbered["text"]]))
            elif bullet or not found:
                found.append((len(found) + 1, [bullet[1] if bullet else line.strip()]))
            else:
                found[-1][1].append(line.strip())
        if not found:
            raise ValueError("the plan has no steps")
        steps = [_parse_step(number, " ".join(texts)) for number, texts in found]
        if len({step.id for step in steps}) < len(steps) and not any(step.depends for step in steps):
            steps = [replace(step, id=number) for number, step in enumerate(steps, 1)]
        plan = cls(tuple(steps))
        plan._check_ids()
        return plan

    @staticmethod
    def is_numbered(line: str) -> bool:
        """Return whether a line begins a step by its number."""
        return _NUMBERED.match(line) is not None

    def at(self, current: str, *, role: str = "") -> Plan:
        """Return the plan with every step's status, from the words of the current step.

        Args:
            current: Such as `2. report`; by its number, else by its words. Unknown words leave the plan as it is.
            role: Who works on that step now; empty: as before.
        """
        step = self.find(current)
        if step is None:
            return self
        here = self.steps.index(step)
        before = [replace(step, status=Status.done) for step in self.steps[:here]]
        after = [replace(step, status=Status.pending) for step in self.steps[here + 1 :]]
        return Plan((*before, replace(step, status=Status.current, role=role or step.role), *after))

    def find(self, text: str) -> Step | None:
        """Return the step with these words as they stand, else with this number, else with the words behind it.

        Args:
            text: Such as `2. report`, `Step 2: report`, `2` or `report`.

        Returns:
            None if there is no such step.
        """
        match = _NUMBER.match(text)
        numbered = [step for step in self.steps if match and step.id == int(match[1])]
        rest = self._steps_with_text(text[match.end() :]) if match else []
        return next(iter([*self._steps_with_text(text), *numbered, *rest]), None)

    @property
    def only_report_left(self) -> bool:
        """Whether after the current, else the first open step there is none, or only one that reports to the user."""
        pending = [step.text for step in self.steps if step.status is Status.pending]
        pending = pending if self.current else pending[1:]
        return not pending or (len(pending) == 1 and _is_report(pending[0]))

    def completed(self) -> Plan:
        """Return the plan with all steps done."""
        return Plan(tuple(replace(step, status=Status.done) for step in self.steps))

    def reopened(self, ids: Collection[int]) -> Plan:
        """Return the plan with these steps pending, where they were done.

        Args:
            ids: The steps' numbers.
        """
        again = {step.id for step in self.steps if step.status is Status.done}.intersection(ids)
        return Plan(tuple(replace(step, status=Status.pending) if step.id in again else step for step in self.steps))

    def with_roles_of(self, other: Plan) -> Plan:
        """Return the plan with the roles that the same steps have in another plan.

        Args:
            other: An earlier plan of the same request.
        """
        roles = {(step.id, step.text): step.role for step in other.steps}
        return Plan(tuple(replace(step, role=step.role or roles.get((step.id, step.text), "")) for step in self.steps))

    def changed_since(self, before: Plan | None) -> tuple[Step, ...]:
        """Return the steps that are news to a reader of an earlier plan.

        Args:
            before: The earlier plan; None: there was none.

        Returns:
            All steps where their count or a text differs, otherwise those whose status differs. What they depend on
            is not shown to readers, and does not count.
        """
        if before is None or [step.text for step in before.steps] != [step.text for step in self.steps]:
            return self.steps
        return tuple(new for old, new in zip(before.steps, self.steps, strict=True) if old.status != new.status)

    @property
    def current(self) -> Step | None:
        """The step that is being worked on."""
        return next((step for step in self.steps if step.status is Status.current), None)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: `{"steps": [{"id", "text", "depends": [[id, how]], "status", "role"}]}`."""
        return {
            "steps": [
                {
                    "id": step.id,
                    "text": step.text,
                    "depends": [[other, how.value] for other, how in step.depends],
                    "status": step.status.value,
                    "role": step.role,
                }
                for step in self.steps
            ]
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Plan:
        """Read what `to_dict` returned.

        Args:
            plain: Its plain values, such as JSON gives them. Numbers and dependencies may be such as `parse` refuses:
                plans that a role has made of its own are stored, too.

        Raises:
            KeyError: there are no `steps`, or a step has no `id` or `text`.
            ValueError: a status, or a kind of dependency, is unknown, or something is of a wrong type.
        """
        return cls(tuple(_stored_step(step) for step in _require_list(plain["steps"], Mapping, "steps")))

    def __str__(self) -> str:
        """Return TaskWeaver's text, a step a line, without statuses and roles."""
        return "\n".join(map(str, self.steps))

    def _steps_with_text(self, words: str) -> list[Step]:
        text = _MARK.sub("", _BULLET.sub(r"\1", words)).strip().casefold()
        return [step for step in self.steps if text and step.text.casefold() == text]

    def _check_ids(self) -> None:
        ids = {step.id for step in self.steps}
        if len(ids) < len(self.steps):
            listed = ", ".join(str(step.id) for step in self.steps)
            raise ValueError(f"the steps {listed} do not have a number each of their own")
        for step in self.steps:
            for other, _ in step.depends:
                if other not in ids:
                    raise ValueError(f"step {step.id} depends on step {other}, which is not in the plan")
        try:
            TopologicalSorter({step.id: [other for other, _ in step.depends] for step in self.steps}).prepare()
        except CycleError as error:
            circle = ", ".join(map(str, sorted(set(error.args[1]))))
            raise ValueError(f"steps {circle} depend on one another in a circle") from None


def _stored_step(plain: Mapping[str, Any]) -> Step:
    pairs = _require_list(plain.get("depends", ()), list | tuple, "depends")
    numbers = [plain["id"], *(pair[0] for pair in pairs if len(pair) == 2)]
    if len(numbers) != len(pairs) + 1 or not all(type(number) is int for number in numbers):
        raise ValueError(f"a step's number: expected int, and so in pairs with a kind, got {numbers!r:.200}")
    return Step(
        numbers[0],
        text_field(plain, "text", needed=True),
        tuple((other, Depends(how)) for other, how in pairs),
        Status(plain.get("status", Status.pending)),
        text_field(plain, "role"),
    )


def _require_list(value: Any, kind: Any, name: str) -> Sequence[Any]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, kind) for item in value):
        raise ValueError(f"{name}: not of the form that a plan is stored in: {value!r:.200}")
    return value


def _is_report(step: str) -> bool:
    return _REPORT.search(step) is not None and _MAKES.search(step) is None


def _plan_lines(text: str) -> list[str]:
    r"""Return the lines of a plan, also of one whose line breaks are escaped twice, or whose steps stand in one line.

    Example:
        >>> _plan_lines("1. load\\n2. report"), _plan_lines("1) load 2) report"), _plan_lines("1. double it 2 times")
        (['1. load', '2. report'], ['1) load', '2) report'], ['1. double it 2 times'])
    """
    if "\n" not in text.strip():
        text = _LINE_BREAK.sub("\n", text)
    lines = [line for line in text.splitlines() if line.strip()]
    headed = len(lines) > 1 and lines[0].rstrip("* ").endswith((":", "：")) and _NUMBERED.match(lines[1])
    if headed and not (_NUMBERED.match(lines[0]) or _BULLET.match(lines[0])):
        del lines[0]
    if len(lines) != 1 or not lines[0].lstrip().startswith(("1.", "1)")):
        return lines
    parts, begin = list[str](), 0
    for match in _NEXT_STEP.finditer(lines[0]):
        if int(match[1]) == len(parts) + 2:
            parts.append(lines[0][begin : match.start()])
            begin = match.start(1)
    return [*parts, lines[0][begin:]]


def _parse_step(number: int, text: str) -> Step:
    depends = tuple(
        (int(other[:9]), Depends(mark[1].lower()))
        for mark in _MARK.finditer(text)
        for other in re.findall(r"\d+", mark[2])
    )
    return Step(number, " ".join(_MARK.sub("", text).split()), depends)
