"""What every check of a kernel is made of: cells that must end well, deadlines, comparisons in words."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tw_autogen.kernel import Execution, Kernel, Loadable

KernelFactory = Callable[[], Kernel]
"""Makes a fresh kernel, in a folder that no other one uses; the check closes it."""

SECONDS = 60.0
"""What a cell is given that should take no time; a slow machine must not fail a check."""

PATIENCE = 30.0
"""How long after its time a cell may take to be stopped, its process ended and a fresh one started."""

DOUBLE = Loadable(
    "double", "from tw_autogen.plugin import register_plugin\n\n@register_plugin\ndef double(x):\n    return 2 * x\n"
)


@dataclass(frozen=True)
class KernelCheck:
    """One thing that a kernel must do.

    Args:
        part: What it belongs to, such as `faults`; for a sandbox, `isolation`.
        run: Tries it with kernels of its own.
    """

    part: str
    run: Callable[[KernelFactory], None]

    @property
    def name(self) -> str:
        """Give what holds, as one word."""
        return self.run.__name__

    @property
    def meaning(self) -> str:
        """Give what holds, as a sentence."""
        return (self.run.__doc__ or "").strip().partition("\n")[0]

    def __call__(self, factory: KernelFactory) -> None:
        """Try it.

        Args:
            factory: Makes the kernel.

        Raises:
            AssertionError: it doesn't hold; says what came instead.
        """
        self.run(factory)


def run(kernel: Kernel, code: str, *, seconds: float = SECONDS) -> Execution:
    """Run a cell that must end well; give what came of it."""
    execution = kernel.execute(code, seconds=seconds)
    if not execution.ok:
        raise AssertionError(f"this cell was to end well:\n{code}\nbut: {execution.error or execution}")
    return execution


def fail(kernel: Kernel, code: str, *, seconds: float = SECONDS) -> Execution:
    """Run a cell that must not end well; give what came of it."""
    execution = kernel.execute(code, seconds=seconds)
    expect(execution.ok, False, f"ok, of this cell:\n{code}\n")
    if not execution.error:
        raise AssertionError(f"a cell that failed has no words for it:\n{code}")
    return execution


def ends(kernel: Kernel, code: str, *, seconds: float, **more: Any) -> Execution:
    """Run a cell that would hang if the kernel let it; give what came of it.

    Raises:
        AssertionError: it has not come back in time; the kernel was closed.
    """
    came: list[Execution | BaseException] = []

    def wait() -> None:
        try:
            came.append(kernel.execute(code, seconds=seconds, **more))
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            came.append(error)

    thread = threading.Thread(target=wait, daemon=True, name="kernel check")
    thread.start()
    thread.join(seconds + PATIENCE)
    if not came:
        kernel.close()
        raise AssertionError(f"a cell of {seconds:g} s has not come back {PATIENCE:g} s behind its time:\n{code}")
    if isinstance(came[0], BaseException):
        raise came[0]
    return came[0]


def expect(found: object, wanted: object, what: str = "") -> None:
    """Compare."""
    if found != wanted:
        raise AssertionError(f"{what}{': ' if what else ''}expected {wanted!r}, found {found!r}")


def expect_within(part: str, whole: str, what: str) -> None:
    """Look for a text in another one."""
    if part not in whole:
        raise AssertionError(f"{what}: {part!r} was to be in {_short(whole)!r}")


def expect_error(kind: type[Exception], act: Callable[[], object], what: str) -> Exception:
    """Do what must raise; give what it raised."""
    try:
        found = act()
    except kind as error:
        return error
    except Exception as error:
        raise AssertionError(f"{what}: expected a {kind.__name__}, found {type(error).__name__}: {error}") from error
    raise AssertionError(f"{what}: expected a {kind.__name__}, found {_short(repr(found))}")


def _short(text: str) -> str:
    return text if len(text) <= 1000 else f"{text[:500]} … {text[-500:]}"
