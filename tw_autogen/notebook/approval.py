"""`approve_in_notebook`: asks the person at the notebook whether something may happen, below the running cell."""

from __future__ import annotations

import html
from typing import Any

from tw_autogen.approval import Decision, Proposal, read_decision
from tw_autogen.errors import ConfigError
from tw_autogen.text_escaping import NO_FORMULAS, visible

_SETTINGS = {"cell": "code_interpreter.approval", "plan": "planner.approval"}
_PRE = "white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere;margin:0.3em 0"
_FRAME = "border-left:3px solid #d97706;padding:0.2em 0.8em;margin:0.3em 0"


def approve_in_notebook(proposal: Proposal) -> Decision:
    """Show what is proposed and read the answer from the notebook's own input line; for `open_session(approve=…)`.

    Where nobody can be asked, as in nbconvert or papermill, cells and plans are an error, and the answer to all else is
    no.

    Args:
        proposal: What is to be decided. It is shown with hidden characters as escapes.

    Returns:
        The decision.

    Raises:
        ConfigError: nobody can be asked about a cell or a plan; the round ends.
        KeyboardInterrupt: the person has interrupted the kernel instead; the round ends.
    """
    from IPython.display import DisplayHandle  # in a notebook it is there

    handle: Any = DisplayHandle()  # type: ignore[no-untyped-call]
    handle.display(_mime_bundle(proposal), raw=True)
    try:
        answer = input(f"{proposal.question} {proposal.hint} ")
    except (EOFError, RuntimeError):  # StdinNotImplementedError is a RuntimeError
        handle.update(_mime_bundle(proposal, "Not decided"), raw=True)
        if proposal.kind in _SETTINGS:
            raise ConfigError(
                f"a {proposal.kind} waits for a person's approval ({_SETTINGS[proposal.kind]}), and nobody can be "
                "asked: this notebook runs without an input line, as nbconvert and papermill run one"
            ) from None
        return Decision(False, reason="nobody can be asked here")
    except KeyboardInterrupt:
        handle.update(_mime_bundle(proposal, "Not decided"), raw=True)
        raise
    decision = read_decision(answer, proposal)
    handle.update(_mime_bundle(proposal, "Approved" if decision.approved else "Refused"), raw=True)
    return decision


def _mime_bundle(proposal: Proposal, decided: str = "") -> dict[str, str]:
    """Return the proposal by MIME type; once decided it is folded, with the decision's word in front."""
    found = [visible(finding) for finding in proposal.findings]
    items = "".join(f"<li>{html.escape(one)}</li>" for one in found)
    body = f'<pre style="{_PRE}">{html.escape(proposal.shown)}</pre>{f"<ul>{items}</ul>" if items else ""}'
    question = html.escape(proposal.question)
    if not decided:
        plain = "\n".join([proposal.question, proposal.shown, *found])
        return {"text/plain": plain, "text/html": f'<div {NO_FORMULAS} style="{_FRAME}"><b>{question}</b>{body}</div>'}
    folded = f"<details {NO_FORMULAS}><summary>{decided}: {question}</summary>{body}</details>"
    return {"text/plain": f"{decided}: {proposal.question}", "text/html": folded}
