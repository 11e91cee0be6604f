"""`Offers`: what workers offer for a request, and lessons that fit it, as a prompt holds them: each line once."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from tw_autogen.recall import ChatHistory


@dataclass
class Offers:
    """What one prompt holds of offers.

    Args:
        told: Those that are in it, as they were told.
        fitting: Those of the newest request, whole.
    """

    told: list[str] = field(default_factory=list)
    fitting: list[str] = field(default_factory=list)

    def news(self, offers: Iterable[str]) -> str:
        """Return what a prompt lacks of the offers for a new request, with a blank line before each.

        Args:
            offers: A head and lines each; empty ones are passed over.
        """
        self.fitting = [offer for offer in offers if offer]
        known = {line for one in self.told for line in one.splitlines()}
        fresh = [one for one in (_new_lines(each, known) for each in self.fitting) if one]
        self.told += fresh
        return "".join(f"\n\n{one}" for one in fresh)

    def restore_in(self, history: ChatHistory) -> None:
        """Remove all offers from a history that was shortened, and append those of the newest request whole.

        Nothing changes where it holds no others, and these whole.

        Args:
            history: Of the role.
        """
        if self.told == self.fitting:
            return
        for one in sorted(self.told, key=len, reverse=True):  # one may begin as another does
            history.replace(f"\n\n{one}", "")
        self.told = list(self.fitting)
        if self.fitting:
            history.append_user("\n\n".join(self.fitting))


def _new_lines(offer: str, known: Collection[str]) -> str:
    """Return an offer without the lines that are known; its head stays where anything else does."""
    head, *lines = offer.splitlines() or [""]
    fresh = [line for line in lines if line not in known]
    again = len(lines) - len(fresh)
    if not fresh:
        return "" if lines or head in known else head
    note = [f"({again} more that fit stand further up.)"] if again else []
    return "\n".join([head, *fresh, *note])
