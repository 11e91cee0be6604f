"""The static text that each prompt of the Planner's begins with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from string import Template

from tw_autogen.conversation import INTERPRETATION_RULES
from tw_autogen.planner.planner_reply import USER
from tw_autogen.role import Worker

_PROMPT = Path(__file__).with_name("prompt.md").read_text(encoding="utf-8")
_CODE = Template(Path(__file__).with_name("code.md").read_text(encoding="utf-8"))
_CODE_BEGINS, _CODE_ENDS = "[[", "]]"
"""Around what `prompt.md` says only where a worker takes code."""
_BESIDE, _OR_BLOCK = ", and after it the code, if there is any, in a ```python block", ", or where the block holds it"


def static_prompt(workers: Sequence[Worker], *, coder: str, rules: str, objects_only: bool, house_rules: str) -> str:
    """Return the text, without what is said of code where no worker takes any.

    Args:
        workers: Who the Planner may write to.
        coder: The name of the worker that takes code; empty: none does.
        rules: Its rules for code.
        objects_only: A reply can hold nothing beside its JSON object, so that code stands in a field of it.
        house_rules: End the text; empty: there are none.
    """
    prompt = (
        Template(_PROMPT.replace(_CODE_BEGINS, "").replace(_CODE_ENDS, "") if coder else _without_code(_PROMPT))
        .substitute(
            workers="\n\n".join(f"## {worker.name}\n{worker.intro}" for worker in workers)
            or "There are none: answer yourself.",
            worker=coder or next((worker.name for worker in workers), "CodeInterpreter"),
            receivers=", ".join([*(worker.name for worker in workers), USER]),
            interpretation_rules=INTERPRETATION_RULES,
            code=_CODE.substitute(coder=coder, rules=rules),
            beside=_BESIDE if coder and not objects_only else " and nothing else",
            or_block="" if objects_only else _OR_BLOCK,
        )
        .strip()
    )
    return f"{prompt}\n\n# House rules\n{house_rules.strip()}" if house_rules.strip() else prompt


def _without_code(text: str) -> str:
    first, *others = text.split(_CODE_BEGINS)
    return first + "".join(other.partition(_CODE_ENDS)[2] for other in others)
