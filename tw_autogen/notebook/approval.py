"""`approve_in_notebook`: asks the person at the notebook whether something may happen, below the running cell."""

from __future__ import annotations

import html
from typing import Any

from tw_autogen.approval import Decision, Proposal, read_decision
from tw_autogen.escaped_text import visible

_HINTS = {
    "packages": "[y/N]",
    "tool": "[y/N/a for all calls of this tool in this session, or why not]",
    "write": "[y/N/always, or why not]",
}
_HINT = "[y/N, or why not]"
_FRAME = "border-left:3px solid #d97706;padding:0.2em 0.8em;margin:0.3em 0"


def approve_in_notebook(proposal: Proposal) -> Decision:
    """Show what is proposed and read the answer from the notebook's own input line; for `open_session(approve=…)`.

    Where nobody can be asked, as in nbconvert or papermill, the answer is no.

    Args:
        proposal: What is to be decided. It is shown with hidden characters as escapes.

    Raises:
        KeyboardInterrupt: the person has interrupted the kernel instead; the round ends.
    """
    from IPython.display import DisplayHandle  # in a notebook it is there

    handle: Any = DisplayHandle()  # type: ignore[no-untyped-call]
    handle.display(_page(proposal), raw=True)
    try:
        said = input(f"{proposal.question} {_HINTS.get(proposal.kind, _HINT)} ")
    except (EOFError, RuntimeError):  # StdinNotImplementedError is a RuntimeError
        decision = Decision(False, reason="nobody can be asked here")
    else:
        decision = read_decision(said, proposal)
    handle.update(_page(proposal, decision), raw=True)
    return decision


def _page(proposal: Proposal, decision: Decision | None = None) -> dict[str, str]:
    """Return the proposal by MIME type; once decided it is folded, with the decision in front."""
    found = [visible(one) for one in proposal.findings]
    items = "".join(f"<li>{html.escape(one)}</li>" for one in found)
    body = f'<pre style="white-space:pre-wrap">{html.escape(proposal.shown)}</pre><ul>{items}</ul>'
    question = html.escape(proposal.question)
    if decision is None:
        plain = "\n".join([proposal.question, proposal.shown, *found])
        return {"text/plain": plain, "text/html": f'<div style="{_FRAME}"><b>{question}</b>{body}</div>'}
    word = "Approved" if decision.approved else "Refused"
    folded = f"<details><summary>{word}: {question}</summary>{body}</details>"
    return {"text/plain": f"{word}: {proposal.question}", "text/html": folded}
