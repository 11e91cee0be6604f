"""`Closing`: what a `with` block closes at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self


class Closing:
    """Base of classes whose `with` block ends with `close`."""

    def close(self) -> None:
        """Release what the object holds."""
        raise NotImplementedError(f"{type(self).__name__}.close")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
