"""`KnownVariables`: what a model has been told of the kernel's variables, and what of them is news to it."""

from __future__ import annotations

from collections.abc import Sequence

from tw_autogen.kernel import Variable

_GONE_NAMES = 20


class KnownVariables:
    """What one talk has been told of the variables.

    Args:
        limit_chars: How much one telling may take; what is left out is counted, and told by name where it can be.
    """

    def __init__(self, limit_chars: int) -> None:
        self._limit_chars = limit_chars
        self._told: dict[str, str] = {}

    def news(self, variables: Sequence[Variable]) -> str:
        """Say which variables are new, changed or gone since the last telling, a line each; empty if none are.

        Args:
            variables: Those that exist now.
        """
        now = {one.name: str(one) for one in variables}
        fresh = [line for name, line in now.items() if self._told.get(name) != line]
        gone = [name for name in self._told if name not in now]
        self._told = now
        lines = self._within(fresh)
        if gone:
            more = f" and {len(gone) - _GONE_NAMES} more" if len(gone) > _GONE_NAMES else ""
            lines.append(f"Gone: {', '.join(gone[:_GONE_NAMES])}{more}")
        return "\n".join(lines)

    def forget(self) -> None:
        """Take nothing for told any more, because what was told is not in the prompt now."""
        self._told = {}

    def _within(self, lines: Sequence[str]) -> list[str]:
        kept, left = list[str](), self._limit_chars
        for line in lines:
            left -= len(line) + 1
            if left < 0:
                kept.append(f"… and {len(lines) - len(kept)} more")
                break
            kept.append(line)
        return kept
