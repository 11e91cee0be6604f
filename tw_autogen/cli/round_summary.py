"""`RoundSummary`: what one round did and cost, gathered from its events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tw_autogen.conversation import AttachmentType
from tw_autogen.events import (
    ArtifactSaved,
    CellRan,
    CellStarted,
    Event,
    HooksMade,
    ModelCalled,
    PostClosed,
    RoundClosed,
    RoundOpened,
    SessionOpened,
)
from tw_autogen.model import Usage
from tw_autogen.plural import pluralize

NEW_HOOK = "new in a folder that code can write to; look at it before a program reads it: "
_SHOWN_SECONDS = 0.1
"""Less than this is not worth a word: recorded replies take no time."""


@dataclass
class RoundSummary:
    """What a round did and cost; a handler of events that starts afresh with each round.

    Args:
        usage: Answers of models, and what they cost.
        unanswered: Calls of models that failed or were stopped.
        model_seconds: What calls of models took.
        kernel_seconds: What cells took.
        cells: Plain values, one each: cell, code, ok, result, stdout, stderr, error, seconds.
        artifacts: Plain values, by path: a file that was written twice is one artifact.
        variables: Those that exist after the last cell, one line each; they stay from round to round.
        warnings: What speaks against the answer, and files of the request that can't be read.
        hooks: Settings files and hooks that are new in a folder that code can write to, one sentence each.
        state_lost: The kernel was ended in this round, and all variables with it.
        before_loss: The variables that existed before that, as in `variables`.
    """

    usage: Usage = Usage()
    unanswered: int = 0
    model_seconds: float = 0.0
    kernel_seconds: float = 0.0
    cells: list[dict[str, Any]] = field(default_factory=list)
    artifacts: dict[str, dict[str, Any]] = field(default_factory=dict)
    variables: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    hooks: list[str] = field(default_factory=list)
    state_lost: bool = False
    before_loss: list[str] = field(default_factory=list)
    _code: dict[int, str] = field(default_factory=dict)

    def __call__(self, event: Event) -> None:
        """Take one event."""
        if event.warning:
            self.warnings.append(event.warning)
        if isinstance(event, SessionOpened):
            vars(self).update(vars(RoundSummary()))
        elif isinstance(event, RoundOpened):
            vars(self).update(vars(RoundSummary(variables=self.variables)))
        elif isinstance(event, ModelCalled):
            self.usage += Usage(event.prompt_tokens, event.cached_tokens, event.completion_tokens, 1, event.dollars)
            self.model_seconds += event.seconds
        elif isinstance(event, RoundClosed):
            self.unanswered = event.unanswered
        elif isinstance(event, HooksMade):
            self.hooks += [f"{NEW_HOOK}{path}" for path in event.paths]
        elif isinstance(event, PostClosed):
            self.warnings += filter(None, [event.post.content(AttachmentType.invalid_response)])
        elif isinstance(event, CellStarted):
            self._code[event.cell] = event.code
        elif isinstance(event, CellRan):
            self.kernel_seconds += event.seconds
            if event.state_lost and not self.state_lost:
                self.before_loss = self.variables
            self.variables = list(event.variables)
            self.state_lost = self.state_lost or event.state_lost
            self.cells.append(
                {
                    "cell": event.cell,
                    "code": self._code.pop(event.cell, ""),
                    "ok": event.ok,
                    "result": event.result,
                    "stdout": event.stdout,
                    "stderr": event.stderr,
                    "error": event.error,
                    "seconds": round(event.seconds, 3),
                }
            )
        elif isinstance(event, ArtifactSaved):
            self.artifacts[event.path] = {
                "name": event.name,
                "kind": event.kind,
                "path": event.path,
                "preview": event.preview,
            }

    def line(self, dot: str = "·") -> str:
        """Return the footer of a round.

        Example:
            >>> RoundSummary(Usage(prompt_tokens=4100, cached_tokens=2000, completion_tokens=600, calls=3)).line()
            '3 model calls · 4.1k in (2.0k cached) / 0.6k out'
        """
        unanswered = f", {self.unanswered} without an answer" if self.unanswered else ""
        calls = self.usage.calls + self.unanswered
        parts = [f"{pluralize(calls, 'model call')}{unanswered}"]
        if self.usage.calls:
            parts.append(tokens(self.usage))
        if self.usage.dollars is not None:
            parts.append(money(self.usage.dollars))
        if self.model_seconds >= _SHOWN_SECONDS:
            parts.append(f"model {self.model_seconds:.1f} s")
        if self.cells:
            parts.append(f"kernel {self.kernel_seconds:.1f} s")
        if self.artifacts:
            parts.append(pluralize(len(self.artifacts), "artifact"))
        return f" {dot} ".join(parts)


def money(dollars: float | None) -> str:
    """Return an amount with as many decimals as it needs; `-` where a price is not known.

    Example:
        >>> money(0.00042), money(1.5), money(None)
        ('$0.0004', '$1.50', '-')
    """
    if dollars is None:
        return "-"
    return f"${dollars:.2f}" if dollars >= 1 else f"${dollars:.4f}"


def tokens(usage: Usage) -> str:
    """Return what was spent, or that no server reported it: never a wrong 0."""
    if not usage.prompt_tokens and not usage.completion_tokens:
        return "tokens not reported"
    cached = f" ({short(usage.cached_tokens)} cached)" if usage.cached_tokens else ""
    return f"{short(usage.prompt_tokens)} in{cached} / {short(usage.completion_tokens)} out"


def short(count: int) -> str:
    """Return a count of tokens in at most five characters.

    Example:
        >>> short(42), short(612), short(4096), short(1_234_567)
        ('42', '0.6k', '4.1k', '1.2M')
    """
    if count < 100:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 1_000_000 else f"{count / 1_000_000:.1f}M"
