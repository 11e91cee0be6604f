"""Runs a scenario: with any model, with recorded replies, or with a model whose replies are recorded."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tw_autogen.errors import RoundError, ScenarioError
from tw_autogen.events import Event, Handler
from tw_autogen.model import ChatModel, Recording, RecordingModel, ReplayModel, Usage
from tw_autogen.scenario.evidence import Evidence
from tw_autogen.scenario.scenario import Scenario
from tw_autogen.session import ROOMS, open_session
from tw_autogen.settings import Settings

FAILED_REPLIES = "replies.failed.yaml"


@dataclass(frozen=True)
class Outcome:
    """What came of one run.

    Args:
        name: The scenario's name.
        problems: What was not as expected, a line each.
        answers: What the user was told, one a round; fewer than asked if a round failed.
        session_folder: Where the session's files lie.
        usage: What all calls cost together.
        seconds: Wall clock, from opening the session to closing it.
        stale: A line for each reply whose prompt has changed since it was recorded; no problem in itself.
    """

    name: str
    problems: tuple[str, ...]
    answers: tuple[str, ...]
    session_folder: Path
    usage: Usage
    seconds: float
    stale: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """All was as expected."""
        return not self.problems


def run_scenario(
    scenario: Scenario,
    model: ChatModel,
    *,
    workspace: Path | str,
    handlers: Sequence[Handler] = (),
    settings: Mapping[str, Any] | None = None,
) -> Outcome:
    """Ask all that a scenario asks, in a session of its own, and check what came of it.

    Args:
        scenario: What to ask, with what, and what to expect.
        model: What all roles ask.
        workspace: The folder in which the session makes its own; it stays.
        handlers: Called with each event.
        settings: Dotted keys, stronger than the scenario's own. Environment and project files play no part, so that
            a scenario is the same everywhere.

    Returns:
        An outcome, also where a round failed: that is a problem like any other.

    Raises:
        ConfigError: a role or a plugin is wrong; nothing has run.
    """
    keywords = {
        "session.max_posts": scenario.limits.posts,
        "session.round_seconds": scenario.limits.seconds,
        **scenario.settings,
        **(settings or {}),
    }
    events: list[Event] = []
    answers: list[str] = []
    problems: list[str] = []
    started = time.monotonic()
    with open_session(
        model,
        roles=scenario.roles,
        plugins=scenario.plugins,
        folder=workspace,
        handlers=[events.append, *handlers],
        settings=Settings(ROOMS, keywords),
    ) as session:
        try:
            for at, text in enumerate(scenario.ask):
                files = [scenario.folder / name for name in scenario.files] if at == 0 else []
                answers.append(session.ask(text, files, scenario.variables if at == 0 else {}).text)
        except RoundError as error:
            problems.append(f"round {len(session.rounds)} failed: {error}")
    evidence = Evidence.of(session.rounds, events, session.folder)
    for expectation in scenario.expect:
        problems += expectation.problems(evidence)
    seconds = time.monotonic() - started
    return Outcome(scenario.name, tuple(problems), tuple(answers), session.folder, session.usage, seconds)


def replay_scenario(
    scenario: Scenario, *, workspace: Path | str, handlers: Sequence[Handler] = (), recording: Recording | None = None
) -> Outcome:
    """Run a scenario with recorded replies; everything else is real.

    Args:
        scenario: What to ask, with what, and what to expect.
        workspace: The folder in which the session makes its own; it stays.
        handlers: Called with each event.
        recording: The replies; None: those that lie in the scenario's folder.

    Returns:
        An outcome; replies that nobody asked for are a problem, changed prompts are named apart.

    Raises:
        ScenarioError: nothing has been recorded.
        ConfigError: a role or a plugin is wrong; nothing has run.
    """
    if recording is None:
        if not scenario.replies.exists():
            raise ScenarioError("nothing has been recorded for this scenario", path=scenario.replies)
        recording = Recording.read(scenario.replies)
    model = ReplayModel(recording)
    outcome = run_scenario(scenario, model, workspace=workspace, handlers=handlers)
    problems = outcome.problems
    if model.unused:
        problems += (f"{len(model.unused)} recorded replies were left over: the recording and the run have parted",)
    return replace(outcome, problems=problems, stale=tuple(model.stale))


def record_scenario(
    scenario: Scenario,
    model: ChatModel,
    *,
    workspace: Path | str,
    handlers: Sequence[Handler] = (),
    seconds: float = 3600.0,
) -> Outcome:
    """Run a scenario live, and keep the replies in its folder for replays.

    Args:
        scenario: What to ask, with what, and what to expect.
        model: What all roles ask.
        workspace: The folder in which the session makes its own; it stays.
        handlers: Called with each event.
        seconds: How long a reply, and a round, may take; in place of the scenario's own limit.

    Returns:
        An outcome. Replies that did not lead to what is expected are kept in `replies.failed.yaml` only, so that a
        recording in `replies.yaml` always passes; those that were there before stay.

    Raises:
        ConfigError: a role or a plugin is wrong; nothing has run.
    """
    kept = scenario.folder / FAILED_REPLIES
    kept.unlink(missing_ok=True)
    patience = {
        "session.round_seconds": seconds,
        "planner.model_seconds": seconds,
        "code_interpreter.model_seconds": seconds,
    }
    recorder = RecordingModel(model, kept)
    outcome = run_scenario(scenario, recorder, workspace=workspace, handlers=handlers, settings=patience)
    if outcome.ok:
        kept.replace(scenario.replies)
    return outcome
