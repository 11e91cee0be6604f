"""With which number the program ends, and what that says to a script."""

from __future__ import annotations

from enum import IntEnum

from tw_autogen.errors import (
    ApprovalNeeded,
    ConfigError,
    RoundInterrupted,
    RoundTimedOut,
    RoundTooCostly,
    RoundTooLong,
    SandboxError,
    TwAutogenError,
)


class Exit(IntEnum):
    """What came of a request.

    `needs_person`: the Planner asks back, so call again with what it wants to know; or code or a plan waits for an
    approval, and there is no terminal. `timeout` is that of `--timeout`, as
    timeout(1) has it; `interrupted` that of Ctrl-C and `terminated` that of SIGTERM, as shells
    have them, and of SIGHUP too.
    """

    done = 0
    failed = 1
    usage = 2
    needs_person = 3
    limit = 4
    timeout = 124
    interrupted = 130
    terminated = 143


_STOPS = {
    "Completed": Exit.done,
    "Clarification": Exit.needs_person,
    "AdditionalInformation": Exit.needs_person,
    "TaskFailure": Exit.failed,
    "SecurityRisks": Exit.failed,
}


def exit_of_stop(stop: str) -> Exit:
    """Return the exit for the Planner's word."""
    return _STOPS.get(stop, Exit.done)


def exit_of_error(error: TwAutogenError, *, timed: bool = False) -> Exit:
    """Return the exit for an error.

    Args:
        error: What was raised.
        timed: The user gave a time limit of their own, so that reaching it is `timeout`.
    """
    if isinstance(error, ConfigError | SandboxError):
        return Exit.usage
    if isinstance(error, ApprovalNeeded):
        return Exit.needs_person
    if isinstance(error, RoundInterrupted):
        return Exit.interrupted
    if isinstance(error, RoundTimedOut) and timed:
        return Exit.timeout
    return Exit.limit if isinstance(error, RoundTooLong | RoundTooCostly | RoundTimedOut) else Exit.failed
