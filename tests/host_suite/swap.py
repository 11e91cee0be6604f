"""A pytest plugin for the host's own tests: their `ConversableAgent` becomes our `TaskWeaverAgent`.

`TW_SWAP=0` leaves the host's class, for a comparison; `TW_FAILED` names the file for the ids of failed tests.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import autogen
import pytest

from tw_autogen.hosts.conversable import TaskWeaverAgent

HOSTS = autogen.ConversableAgent
_FAILED: set[str] = set()


class Swapped(TaskWeaverAgent):
    """Our agent with the host's default for human input."""

    def __init__(self, name: str, *args: Any, **host: Any) -> None:
        if len(args) < 4:
            host.setdefault("human_input_mode", "TERMINATE")
        super().__init__(name, *args, workspace=tempfile.gettempdir(), **host)


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> Any:
    """Put our class into each module of tests that has the host's."""
    made = yield
    if os.environ.get("TW_SWAP") != "0" and made is not None:
        for name, value in vars(made.obj).items():
            if value is HOSTS:
                setattr(made.obj, name, Swapped)
    return made


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note what failed, in whatever phase."""
    if report.failed:
        _FAILED.add(report.nodeid)


def pytest_sessionfinish() -> None:
    """Write down what failed."""
    if where := os.environ.get("TW_FAILED"):
        Path(where).write_text("\n".join(sorted(_FAILED)), encoding="utf-8")
