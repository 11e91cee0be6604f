"""Hooks on the SDK's HTTP client: report that a refused call is sent again, or stop its retries."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from tw_autogen.model.error_messages import is_out_of_quota
from tw_autogen.model.model_request import report_delay

_LONGEST_WAIT_SECONDS = 60.0
"""The SDK waits no longer than this, whatever a server announces."""


def stop_if_abandoned(here: threading.local, request: object) -> None:
    """Stop the SDK's retries, which cost money, once the call is abandoned.

    Args:
        here: Holds the event `abandoned` of the call that this thread makes.
        request: Of the HTTP library; not looked at.

    Raises:
        openai.OpenAIError: the call is abandoned.
    """
    abandoned = getattr(here, "abandoned", None)
    if abandoned is not None and abandoned.is_set():
        import openai  # loaded already; at the top of this file it would cost every start some 0.7 s

        raise openai.OpenAIError("nobody waits for this call any more")


def report_refusal(max_tries: int, response: Any) -> None:
    """Report that the server is asked again after a refusal; where that is no use, have the SDK leave it.

    Args:
        max_tries: How often a call is sent at most.
        response: Of the HTTP library; what the SDK is told through its headers is what servers tell it so.
    """
    status = response.status_code
    if status not in (408, 409, 429) and status < 500:
        return
    if status == 429:
        response.read()
        if is_out_of_quota(response.text):
            response.headers["x-should-retry"] = "false"
            return
    tries = int(response.request.headers.get("x-stainless-retry-count", 0)) + 1
    if tries < max_tries and response.headers.get("x-should-retry") != "false":
        why = "is too busy" if status == 429 else "failed" if status >= 500 else "did not take the call"
        report_delay(f"the server {why} ({status}); try {tries + 1} of {max_tries}{_announced(response.headers)}")


def _announced(headers: Mapping[str, str]) -> str:
    """Return when the server wants to be asked again, if the SDK holds to it."""
    try:
        seconds = float(headers.get("retry-after-ms", "")) / 1000
    except ValueError:
        try:
            seconds = float(headers.get("retry-after", ""))
        except ValueError:
            return ""
    return f" in {seconds:.3g} s" if 0 < seconds <= _LONGEST_WAIT_SECONDS else ""
