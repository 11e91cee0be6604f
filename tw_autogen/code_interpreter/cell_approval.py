"""A person before each cell: lets it run, changes it, or refuses it with a reason that the model gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tw_autogen.approval import Approve, CellApproval, Proposal, decide
from tw_autogen.code_interpreter.rules import Finding
from tw_autogen.code_interpreter.task_progress import TaskProgress
from tw_autogen.errors import ApprovalNeeded
from tw_autogen.role import Turn
from tw_autogen.text_escaping import visible

_REMEDY = "Write it as the User wants it, or say in words what can't be done."


def asks_for(when: CellApproval, findings: Sequence[Finding]) -> bool:
    """Return whether a person is asked about a cell with these findings; one that is no Python never is.

    Args:
        when: The setting `code_interpreter.approval`.
        findings: What verification found in the cell.
    """
    if any(finding.kind == "syntax" for finding in findings):
        return False
    return when == ("findings" if findings else "always")


def approve_cell(approve: Approve | None, work: TaskProgress, turn: Turn, check: Callable[[str], list[Finding]]) -> str:
    """Ask about the newest code, and note what was decided: `work.code` may change, and `work.findings` does.

    Code that the person has changed is checked too; where it breaks the policy, that is shown, and asked once more.

    Args:
        approve: Asked; None: nobody is there.
        work: The task under way, with the newest code.
        turn: Takes the event of the decision.
        check: Returns the findings of changed code.

    Returns:
        What the model must be told of a change; empty if there was none.

    Raises:
        ApprovalNeeded: nobody is there.
    """
    if approve is None:
        raise ApprovalNeeded(
            f"{turn.round.id}: code waits for a person's approval (`code_interpreter.approval`), and nobody can be "
            f"asked. The code:\n{visible(work.code)}",
            round=turn.round,
        )
    written = work.code
    while True:
        decision = decide(approve, Proposal("cell", work.code, tuple(map(str, work.findings))), turn.emit)
        if not decision.approved:
            why = f": {decision.reason}" if decision.reason else ", and gave no reason"
            work.findings = [Finding(1, "approval", f"the User did not let it run{why}", _REMEDY)]
            return ""
        if not decision.text:
            work.findings = []
            break
        work.code, work.findings = decision.text, check(decision.text)
        if not work.findings:
            break
    return f"(The User changed the code before it ran:)\n```python\n{work.code}\n```" if work.code != written else ""
