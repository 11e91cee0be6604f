"""Runs a scenario with recorded replies, or with a live model whose replies are recorded."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tw_autogen.errors import ScenarioError
from tw_autogen.model import ChatModel, RecordedReply, Recording, RecordingModel, ReplayModel
from tw_autogen.named_folders import distrusted_now, named_file
from tw_autogen.recall import Experience, read_experiences
from tw_autogen.safe_folder import SafeFolder, open_or_make_folder
from tw_autogen.scenario.scenario import Scenario
from tw_autogen.scenario.scenario_run import PATIENCE, Outcome, run_live, run_scenario

_UNDER_WAY, _FAILED = "replies.under_way.yaml", Scenario.FAILED_REPLIES


def replay_scenario(
    scenario: Scenario,
    *,
    workspace: Path | str,
    recording: Recording | None = None,
    strict: bool = False,
) -> Outcome:
    """Run a scenario with recorded replies; everything else is real.

    Args:
        scenario: What to ask, with what, and what to expect.
        workspace: The folder in which the session makes its own; it stays.
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
            raise ScenarioError(
                "nothing has been recorded for this scenario; with a model, this does it:\n"
                f"  tw-autogen scenario record {shlex.quote(str(scenario.folder))}",
                path=scenario.replies,
            )
        recording = Recording.read(named_file(scenario.replies, distrusted=distrusted_now())[0])
    model = ReplayModel(recording, hide=_path_spellings(workspace))
    outcome = run_scenario(scenario, model, workspace=workspace)
    problems = outcome.problems
    if model.unused:
        left = f"{len(model.unused)} recorded replies were left over, for {model.unused_words}"
        problems += (f"{left}: the recording and the run have parted",)
    if strict:
        problems += tuple(f"stale: {one}" for one in model.stale)
    problems += tuple(_otherwise_kept(scenario, outcome.lesson))
    return replace(outcome, problems=problems, stale=tuple(model.stale), moved=tuple(model.moved))


def record_scenario(
    scenario: Scenario,
    model: ChatModel,
    *,
    workspace: Path | str,
    seconds: float = PATIENCE,
    resume: bool = False,
) -> Outcome:
    """Run a scenario live, and keep the replies in its folder for replays.

    Args:
        scenario: What to ask, with what, and what to expect.
        model: What all roles ask.
        workspace: The folder in which the session makes its own; it stays.
        seconds: How long a reply, and a round, may take.
        resume: Don't ask again what an earlier try, which was stopped or failed, was told on the same prompts.

    Returns:
        An outcome. Replies that did not lead to what is expected are kept in `replies.failed.yaml` only, so that a
        recording in `replies.yaml` always passes; those that were there before stay. Replies of an earlier try are
        kept until this one has some of its own, and with `resume` those that nobody asked for this time too.

    Raises:
        ConfigError: a role or a plugin is wrong; nothing has run.
        ScenarioError: what the earlier try has left can't be read, or a link stands where replies and
            the lesson are written.
    """
    try:
        folder = open_or_make_folder(scenario.folder)
    except OSError as error:
        raise ScenarioError(f"no replies can be written there: {error.strerror}", path=scenario.folder) from error
    with folder:
        for one in (_UNDER_WAY, _FAILED):
            if folder.has_entry(one) and not folder.has_file(one):
                raise ScenarioError("a link; replies are written to no file elsewhere", path=scenario.folder / one)
        _refuse_link(folder, scenario)
        _keep_replies(folder, _earlier_replies(folder))  # of a try that was killed
        known = _earlier_replies(folder) if resume else ()
        recorder = RecordingModel(model, scenario.folder / _UNDER_WAY, hide=_path_spellings(workspace), known=known)
        try:
            outcome = run_live(scenario, recorder, workspace=workspace, seconds=seconds)
            if outcome.ok:
                folder.move(_UNDER_WAY, scenario.replies.name)
                with contextlib.suppress(FileNotFoundError):
                    folder.remove(_FAILED)
        finally:
            _keep_replies(folder, recorder.left)
        if outcome.ok and outcome.lesson:
            _keep_lesson(folder, scenario, replace(outcome.lesson, id=scenario.name))
    return outcome


def _refuse_link(folder: SafeFolder, scenario: Scenario) -> None:
    """Raise before anything is asked if no lesson could be written."""
    if scenario.learn and folder.has_entry(scenario.learn):
        try:
            folder.open_folder(scenario.learn).close()
        except OSError as error:
            raise ScenarioError(
                "a link or a file; lessons are written to a folder", path=scenario.folder / scenario.learn
            ) from error


def _keep_lesson(folder: SafeFolder, scenario: Scenario, lesson: Experience) -> None:
    """Write a lesson in place of the one of an earlier recording."""
    try:
        folder.make_folder(scenario.learn)
        folder.write_file(
            scenario.kept_lesson.relative_to(scenario.folder).as_posix(), lesson.to_yaml().encode("utf-8")
        )
    except OSError as error:
        raise ScenarioError(f"the lesson can't be written: {error.strerror}", path=scenario.kept_lesson) from error


def _earlier_replies(folder: SafeFolder) -> tuple[RecordedReply, ...]:
    """Return what earlier tries were told; nothing if there were none."""
    return Recording.read(folder.path / _FAILED, folder=folder).replies if folder.has_file(_FAILED) else ()


def _keep_replies(folder: SafeFolder, left: Sequence[RecordedReply]) -> None:
    """Keep the replies of a try that didn't pass, and behind them what is left of those before; if it had any."""
    if not folder.has_file(_UNDER_WAY):
        return
    told = Recording.read(folder.path / _UNDER_WAY, folder=folder)
    together = replace(told, replies=(*told.replies, *(one for one in left if one not in told.replies)))
    together.write(folder.path / _FAILED, folder=folder)
    folder.remove(_UNDER_WAY)


def _otherwise_kept(scenario: Scenario, lesson: Experience | None) -> Iterator[str]:
    """Yield a problem if the lesson that other scenarios are given is not the one that comes of these replies."""
    if lesson is None:
        return
    kept = scenario.kept_lesson
    there = {experience.id: experience.lesson for experience in read_experiences(kept.parent)} if kept.is_file() else {}
    if there.get(scenario.name) != lesson.lesson:
        name = kept.relative_to(scenario.folder).as_posix()
        yield f"the lesson in {name} is not the one that comes of these replies: record it anew"


def _path_spellings(workspace: Path | str) -> tuple[str, ...]:
    """Return the spellings of the workspace's path that a prompt may hold."""
    here = Path(workspace)
    return tuple(dict.fromkeys((str(here.absolute()), str(here.resolve()))))
