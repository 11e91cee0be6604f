"""Runs a scenario with any model, or with a live one, which gets more time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tw_autogen.errors import ConfigError, ModelError, RoundError
from tw_autogen.events import Event, Handler
from tw_autogen.model import ChatModel, Usage, asked_as
from tw_autogen.plural import pluralize
from tw_autogen.recall import Experience, read_experiences
from tw_autogen.safe_folder import SafeFolder
from tw_autogen.scenario.evidence import Evidence
from tw_autogen.scenario.reply_rules import take_rule
from tw_autogen.scenario.scenario import Scenario
from tw_autogen.scenario.spy_model import Call, SpyModel
from tw_autogen.session import Session, keyword_settings, model_key, open_session

_READ_ONLY = 0o444
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
        moved: A line for each reply that was given before others which were recorded earlier; no problem.
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
    moved: tuple[str, ...] = ()
    lesson: Experience | None = None

    @property
    def ok(self) -> bool:
        """All was as expected."""
        return not self.problems

    @property
    def summary(self) -> str:
        """What came of it, in a line: `as expected, 2 calls, 3.1 s`."""
        count = len(self.problems)
        came = pluralize(count, "problem") if count else "as expected"
        calls = self.usage.calls
        return f"{came}, {pluralize(calls, 'call')}, {self.seconds:.1f} s"


def run_scenario(
    scenario: Scenario,
    model: ChatModel | None,
    *,
    workspace: Path | str,
    handlers: Sequence[Handler] = (),
    settings: Mapping[str, Any] | None = None,
) -> Outcome:
    """Ask all that a scenario asks, in a session of its own, and check what came of it.

    Args:
        scenario: What to ask, with what, and what to expect.
        model: What all roles ask; None: nobody answers, so that the first call fails and only its prompt is known.
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
    spy = SpyModel(model)
    started = time.monotonic()
    with (
        _environment_variables_set(scenario.environment),
        open_session(
            {name: asked_as(name, spy) for name in map(model_key, scenario.roles)},
            roles=scenario.roles,
            plugins=scenario.plugins,
            folder=workspace,
            handlers=[events.append, *handlers],
            settings=keyword_settings(keywords),
        ) as session,
    ):
        answers, numbers, problems = _converse(session, scenario)
        lesson = None
        if scenario.learn and not problems:
            lesson, problems = _write_lesson(session)
    text = lesson.lesson if lesson else ""
    evidence = Evidence.of(session.rounds, events, session.folder, numbers=numbers, lesson=text)
    for expectation in scenario.expect:
        try:
            problems += expectation.problems(evidence)
        except OSError as error:  # code of another kernel may have moved the folder
            problems.append(f"{session.folder} can't be looked at: {error.strerror or error}")
    seconds = time.monotonic() - started
    return Outcome(
        scenario.name,
        tuple(problems),
        tuple(answers),
        session.folder,
        session.usage,
        seconds,
        evidence,
        tuple(spy.calls),
        lesson=lesson,
    )


def _converse(session: Session, scenario: Scenario) -> tuple[list[str], list[int], list[str]]:
    """Ask all that a scenario asks, and answer questions by its rules.

    Returns:
        An answer for each request; for each round, the number of the request that it belongs to; and the problem that
        ended it early, if there was one.
    """
    answers, numbers = list[str](), list[int]()
    files, variables = _copy_files(scenario, session.folder), scenario.variables
    for number, request in enumerate(scenario.ask, start=1):
        words, left, said = request, list(scenario.when_asked), ""
        while words:
            numbers.append(number)
            try:
                answer = session.ask(words, files, variables)
            except RoundError as error:
                return answers, numbers, [f"round {number} failed: {error}"]
            files, variables, said = [], {}, answer.text
            words = take_rule(left, answer)
        answers.append(said)
    return answers, numbers, []


def _copy_files(scenario: Scenario, folder: Path) -> list[Path]:
    """Copy the scenario's files to the session's folder, over no link; return the copies.

    Raises:
        ConfigError: one is no plain file any more.
    """
    with SafeFolder(scenario.folder) as source, SafeFolder(folder) as target:
        for name in scenario.files:
            try:
                with source.open_file(name) as file:
                    target.copy_in(file, name, mode=_READ_ONLY)
            except OSError as error:
                raise ConfigError(f"{scenario.folder / name}: can't be read: {error.strerror}") from error
    return [folder / name for name in scenario.files]


def _write_lesson(session: Session) -> tuple[Experience | None, list[str]]:
    """Write a lesson with the model; return it, and the problems that there were."""
    folder = session.journal.parent / "lessons"
    try:
        session.save_experience(folder)
    except (ConfigError, ModelError) as error:
        return None, [f"the lesson failed: {error}"]
    return read_experiences(folder)[0], []


@contextmanager
def _environment_variables_set(wanted: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables of this process for a while."""
    before = {name: os.environ.get(name) for name in wanted}
    try:
        os.environ.update(wanted)
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def run_live(
    scenario: Scenario,
    model: ChatModel,
    *,
    workspace: Path | str,
    seconds: float = PATIENCE,
) -> Outcome:
    """Run a scenario with a live model, which gets more time than the scenario's own limit.

    Args:
        scenario: What to ask, with what, and what to expect.
        model: What all roles ask.
        workspace: The folder in which the session makes its own; it stays.
        seconds: How long a reply, and a round, may take.

    Raises:
        ConfigError: a role or a plugin is wrong; nothing has run.
    """
    patience = {
        "session.round_seconds": seconds,
        "planner.model_seconds": seconds,
        "code_interpreter.model_seconds": seconds,
    }
    return run_scenario(scenario, model, workspace=workspace, settings=patience)
