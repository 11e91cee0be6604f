"""Runs a scenario: with any model, with recorded replies, or with a model whose replies are recorded."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tw_autogen.errors import ConfigError, ModelError, RoundError, ScenarioError
from tw_autogen.events import Event, Handler
from tw_autogen.model import ChatModel, Recording, RecordingModel, ReplayModel, Usage
from tw_autogen.recall import Experience, read_experiences, write_experience
from tw_autogen.scenario.asked_back import take_rule
from tw_autogen.scenario.evidence import Evidence
from tw_autogen.scenario.heard import Call, HeardModel
from tw_autogen.scenario.scenario import Scenario
from tw_autogen.session import ROOMS, Session, open_session
from tw_autogen.settings import Settings

FAILED_REPLIES = "replies.failed.yaml"
PATIENCE = 3600.0
"""How long a live model's reply, and a round with it, may take: its own speed is no property of the task."""


@dataclass(frozen=True)
class Outcome:
    """What came of one run.

    Args:
        name: The scenario's name.
        problems: What was not as expected, a line each.
        answers: What the user was told, one a request (the last one, where the agent asked back); fewer than asked if
            a round failed.
        session_folder: Where the session's files lie.
        usage: What all calls cost together.
        seconds: Wall clock, from opening the session to closing it.
        evidence: What the checks saw: rounds, events, folder.
        calls: What models were asked, and what they said.
        stale: A line for each reply whose prompt has changed since it was recorded; no problem unless `strict`.
        lesson: What the session teaches, where the scenario has a `learn`.
    """

    name: str
    problems: tuple[str, ...]
    answers: tuple[str, ...]
    session_folder: Path
    usage: Usage
    seconds: float
    evidence: Evidence
    calls: tuple[Call, ...] = ()
    stale: tuple[str, ...] = ()
    lesson: Experience | None = None

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
        **({"recall.experience": str(scenario.folder / scenario.lessons)} if scenario.lessons else {}),
        **scenario.settings,
        **(settings or {}),
    }
    events: list[Event] = []
    heard = HeardModel(model)
    started = time.monotonic()
    with (
        _environment(scenario.environment),
        open_session(
            heard,
            roles=scenario.roles,
            plugins=scenario.plugins,
            folder=workspace,
            handlers=[events.append, *handlers],
            settings=Settings(ROOMS, keywords),
        ) as session,
    ):
        talk = _Talk(session)
        problems = talk.hold(scenario)
        lesson = None
        if scenario.learn and not problems:
            lesson, problems = _learn(session)
    evidence = Evidence.of(session.rounds, events, session.folder, numbers=talk.numbers)
    evidence = replace(evidence, lesson=lesson.lesson if lesson else "")
    for expectation in scenario.expect:
        problems += expectation.problems(evidence)
    seconds = time.monotonic() - started
    return Outcome(
        scenario.name,
        tuple(problems),
        tuple(talk.answers),
        session.folder,
        session.usage,
        seconds,
        evidence,
        tuple(heard.calls),
        lesson=lesson,
    )


class _Talk:
    """The user of a scenario: says what is to be asked, and answers questions by the rules."""

    def __init__(self, session: Session) -> None:
        self.answers: list[str] = []
        self.numbers: list[int] = []
        """For each round, the number of the request that it belongs to."""
        self._session = session

    def hold(self, scenario: Scenario) -> list[str]:
        """Say it all, and give the problem that ended it early, if there was one."""
        files, variables = [scenario.folder / name for name in scenario.files], scenario.variables
        for number, request in enumerate(scenario.ask, start=1):
            words, left, said = request, list(scenario.when_asked), ""
            while words:
                self.numbers.append(number)
                try:
                    answer = self._session.ask(words, files, variables)
                except RoundError as error:
                    return [f"round {number} failed: {error}"]
                files, variables, said = [], {}, answer.text
                words = take_rule(left, answer)
            self.answers.append(said)
        return []


def _learn(session: Session) -> tuple[Experience | None, list[str]]:
    """Have a lesson worded, and give it, or the problem that there was."""
    folder = session.journal.parent / "lessons"
    try:
        session.save_experience(folder)
    except (ConfigError, ModelError) as error:
        return None, [f"the lesson failed: {error}"]
    return read_experiences(folder)[0], []


@contextmanager
def _environment(wanted: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables of this process for a while."""
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def replay_scenario(
    scenario: Scenario,
    *,
    workspace: Path | str,
    handlers: Sequence[Handler] = (),
    recording: Recording | None = None,
    strict: bool = False,
) -> Outcome:
    """Run a scenario with recorded replies; everything else is real.

    Args:
        scenario: What to ask, with what, and what to expect.
        workspace: The folder in which the session makes its own; it stays.
        handlers: Called with each event.
        recording: The replies; None: those that lie in the scenario's folder.
        strict: A prompt that has changed since it was recorded is a problem.

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
    model = ReplayModel(recording, hide=_hidden(workspace))
    outcome = run_scenario(scenario, model, workspace=workspace, handlers=handlers)
    problems = outcome.problems
    if model.unused:
        problems += (f"{len(model.unused)} recorded replies were left over: the recording and the run have parted",)
    if strict:
        problems += tuple(f"stale: {one}" for one in model.stale)
    problems += tuple(_otherwise_kept(scenario, outcome.lesson))
    return replace(outcome, problems=problems, stale=tuple(model.stale))


def run_live(
    scenario: Scenario,
    model: ChatModel,
    *,
    workspace: Path | str,
    handlers: Sequence[Handler] = (),
    seconds: float = PATIENCE,
) -> Outcome:
    """Run a scenario with a live model, which gets more time than the scenario's own limit.

    Args:
        scenario: What to ask, with what, and what to expect.
        model: What all roles ask.
        workspace: The folder in which the session makes its own; it stays.
        handlers: Called with each event.
        seconds: How long a reply, and a round, may take.

    Raises:
        ConfigError: a role or a plugin is wrong; nothing has run.
    """
    patience = {
        "session.round_seconds": seconds,
        "planner.model_seconds": seconds,
        "code_interpreter.model_seconds": seconds,
    }
    return run_scenario(scenario, model, workspace=workspace, handlers=handlers, settings=patience)


def record_scenario(
    scenario: Scenario,
    model: ChatModel,
    *,
    workspace: Path | str,
    handlers: Sequence[Handler] = (),
    seconds: float = PATIENCE,
) -> Outcome:
    """Run a scenario live, and keep the replies in its folder for replays.

    Args:
        scenario: What to ask, with what, and what to expect.
        model: What all roles ask.
        workspace: The folder in which the session makes its own; it stays.
        handlers: Called with each event.
        seconds: How long a reply, and a round, may take.

    Returns:
        An outcome. Replies that did not lead to what is expected are kept in `replies.failed.yaml` only, so that a
        recording in `replies.yaml` always passes; those that were there before stay.

    Raises:
        ConfigError: a role or a plugin is wrong; nothing has run.
    """
    kept = scenario.folder / FAILED_REPLIES
    kept.unlink(missing_ok=True)
    recorder = RecordingModel(model, kept, hide=_hidden(workspace))
    outcome = run_live(scenario, recorder, workspace=workspace, handlers=handlers, seconds=seconds)
    if outcome.ok:
        kept.replace(scenario.replies)
        if outcome.lesson:
            write_experience(replace(outcome.lesson, id=scenario.name), scenario.kept_lesson.parent)
    return outcome


def _otherwise_kept(scenario: Scenario, lesson: Experience | None) -> Iterator[str]:
    """Say if the lesson that other scenarios are given is not the one that comes of these replies."""
    if lesson is None:
        return
    kept = scenario.kept_lesson
    there = {one.id: one.lesson for one in read_experiences(kept.parent)} if kept.is_file() else {}
    if there.get(scenario.name) != lesson.lesson:
        name = kept.relative_to(scenario.folder).as_posix()
        yield f"the lesson in {name} is not the one that comes of these replies: record it anew"


def _hidden(workspace: Path | str) -> tuple[str, ...]:
    """Give the spellings of the workspace's path that a prompt may hold."""
    here = Path(workspace)
    return tuple(dict.fromkeys((str(here.absolute()), str(here.resolve()))))
