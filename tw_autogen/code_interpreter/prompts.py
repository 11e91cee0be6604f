"""The prompts of the CodeInterpreter's model, and how the role introduces itself to the Planner."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from string import Template

from tw_autogen.code_interpreter.policy import Policy
from tw_autogen.code_interpreter.settings import CodeInterpreterSettings
from tw_autogen.conversation import INTERPRETATION_RULES, Plan
from tw_autogen.text_truncation import without_known_paragraphs

_PROMPT = Template(Path(__file__).with_name("prompt.md").read_text(encoding="utf-8"))
_RULES = Template(Path(__file__).with_name("code_rules.md").read_text(encoding="utf-8"))
_ONLY_PLUGINS = Template(Path(__file__).with_name("only_plugins.md").read_text(encoding="utf-8"))
_INSTALLING = {
    "never": "- If a library is missing, use another way and print that; nothing can be installed.",
    "ask": "- If a library is missing, use another way, or write `%pip install name` above its import: the User is "
    "asked whether it may be installed.",
    "allow": "- If a library is missing, write `%pip install name` above its import.",
}
_FILES = (
    "- The working directory holds the User's files; save what they ask for there, under the name they gave. An open "
    "figure is saved by itself; save a chart yourself only under a name that was asked for."
)
_NO_FILES = (
    "- You can neither read nor write files: data come as variables and from plugins. An open figure is saved as a "
    "file by itself."
)
_INTRO_ONLY_PLUGINS = (
    "Calls plugins, and can do nothing else: it writes no code of its own, computes nothing and looks nothing up. What "
    "its plugins don't do can't be done here: tell the User so at once, with the reason, and make nothing up. It "
    "remembers results as variables from task to task."
)
_SAME_CHARS, BLANK = 200, "\n\n"
FORWARDED = (
    "What the task's last block prints is the answer that the User gets; nobody looks at it in between: the form that "
    "they asked for, alone; or else whole sentences in the language of the request, with the numbers asked for, their "
    "units and the choices made."
)


def static_prompt(policy: Policy, plugins: str, settings: CodeInterpreterSettings) -> str:
    """Return the text that every prompt begins with.

    Args:
        policy: What code may do.
        plugins: What is said of plugins, whatever the task.
        settings: How much of a cell's output fits, and how many tries a task has.
    """
    if policy.only_plugins:
        return _ONLY_PLUGINS.substitute(rules=policy.summary(), plugins=plugins).strip()
    return _PROMPT.substitute(
        rules=policy.summary(),
        plugins=plugins,
        code_rules=code_rules(policy, settings),
        interpretation_rules=INTERPRETATION_RULES,
        looks=settings.max_tries,
    ).strip()


def code_rules(policy: Policy, settings: CodeInterpreterSettings) -> str:
    """Return the rules for code, whoever writes it; without those of the policy that refuse it.

    Args:
        policy: What code may do.
        settings: How much of a cell's output fits.
    """
    return _RULES.substitute(
        installing=_INSTALLING[policy.install],
        files=_FILES if policy.files else _NO_FILES,
        report_chars=settings.report_chars,
    ).strip()


def introduction(policy: Policy, max_tries: int) -> str:
    """Return what the role does and what it may not, for the Planner.

    Args:
        policy: What code may do.
        max_tries: How many cells one task may take.
    """
    if policy.only_plugins:
        return _INTRO_ONLY_PLUGINS
    files = "reads and writes files in the working folder, " if policy.files else ""
    limits = "".join(f" Its code may {limit}." for limit in policy.limits())
    return (
        "Writes Python for one task, runs it in a kernel that remembers variables from task to task, "
        f"and mends its errors up to {max_tries} times. It {files}works on tables, fits models, draws charts. "
        f"Its code may not: {policy.refused()}.{limits}"
    )


def board_news(before: str, now: str) -> str:
    """Return the board without what the model has read already: long paragraphs that stood in the last one.

    Args:
        before: The board as the model saw it last.
        now: The board as it is.
    """
    same = os.path.commonprefix([before, now]).rfind(BLANK)
    head, rest = ("", now) if same < _SAME_CHARS else (", begins as before; then", now[same + 2 :])
    return f"# Board{head}\n{without_known_paragraphs(rest, before)}"


def without_repeated_task(board: str, plan: Plan | None, tasks: Sequence[str]) -> str:
    """Return a board without a plan of one step that is the beginning of a task: the task says it.

    Args:
        board: Paragraphs.
        plan: The plan that stands on it; None: there is none.
        tasks: What this role was told to do in the round.
    """
    if plan is None or len(plan.steps) != 1:
        return board
    step = plan.steps[0].text.removesuffix("…")
    if not any(" ".join(task.split()).startswith(step) for task in tasks):
        return board
    return BLANK.join(part for part in board.split(BLANK) if not part.endswith(f"\n{plan}"))
