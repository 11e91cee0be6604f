"""All checks by name, and the run of all of them with a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tests.support.kernel_checks import calls, cells, contract, faults, isolation, pieces
from tests.support.kernel_checks.bench import KernelCheck, KernelFactory

_PARTS: Mapping[str, tuple[Callable[[KernelFactory], None], ...]] = {
    "contract": contract.CHECKS,
    "cells": cells.CELLS,
    "output": cells.OUTPUT,
    "limits": faults.LIMITS,
    "faults": faults.FAULTS,
    "threads": faults.THREADS,
    "host calls": calls.CHECKS,
    "plugins": pieces.PLUGINS,
    "artifacts": pieces.ARTIFACTS,
    "variables": pieces.VARIABLES,
}

KERNEL_CHECKS: Mapping[str, KernelCheck] = {
    run.__name__: KernelCheck(part, run) for part, runs in _PARTS.items() for run in runs
}
"""Every check of what each kernel must do, by what holds; each may be run by itself."""

KERNEL_CLAIMS: Mapping[str, KernelCheck] = {run.__name__: KernelCheck("isolation", run) for run in isolation.ISOLATION}
"""Every sandbox that a kernel may claim, by the claim."""


def check_kernel(
    factory: KernelFactory, *, claims: Iterable[str] = (), parts: Iterable[str] | None = None
) -> list[str]:
    """Run every check of `KERNEL_CHECKS` against a kernel, and those of the isolation that it claims.

    Args:
        factory: Makes a fresh kernel, in a folder of its own that outlives a restart; asked several times.
        claims: Names of `KERNEL_CLAIMS`; what is not claimed is not checked.
        parts: Only these, such as `contract`, which also a double that runs no code can hold; None: all.

    Returns:
        The names of the checks, all passed.

    Raises:
        AssertionError: some failed; says of each check whether it passed, and what came instead.
        ValueError: there is no such claim or part.
    """
    claimed = _known(claims, KERNEL_CLAIMS, "claim")
    wanted = None if parts is None else _known(parts, _PARTS, "part")
    checks = [one for one in KERNEL_CHECKS.values() if wanted is None or one.part in wanted]
    checks += [KERNEL_CLAIMS[name] for name in claimed]
    failures: dict[str, str] = {}
    for check in checks:
        try:
            check(factory)
        except Exception as error:  # noqa: BLE001 - a kernel that is broken may raise anything, and the rest is tried
            failures[check.name] = (
                str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
            )
    if failures:
        raise AssertionError(_report(checks, failures))
    return [check.name for check in checks]


def _known(names: Iterable[str], all_names: Iterable[str], what: str) -> list[str]:
    known, asked = list(all_names), list(names)
    for name in asked:
        if name not in known:
            raise ValueError(f"there is no {what} {name!r}; there are: {', '.join(known)}")
    return asked


def _report(checks: Iterable[KernelCheck], failures: Mapping[str, str]) -> str:
    lines, part, passed = [], "", 0
    for check in checks:
        if check.part != part:
            part = check.part
            lines.append(part)
        if check.name not in failures:
            passed += 1
            lines.append(f"  ok      {check.name}")
            continue
        lines.append(f"  FAILED  {check.name}: {check.meaning}")
        lines += [f"          {line}" for line in failures[check.name].splitlines()]
    return "\n".join([f"{len(failures)} of {passed + len(failures)} checks failed", *lines])
