"""The scenarios of this repository, replayed: recorded replies, everything else real."""

from dataclasses import replace
from pathlib import Path

import pytest

from tw_autogen.model import Recording
from tw_autogen.scenario import find_scenarios, replay_scenario
from tw_autogen.testing import plans

SCENARIOS = find_scenarios(Path(__file__).parents[2] / "scenarios")
EACH = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)


def test_the_scenarios_are_there():
    assert {one.name for one in SCENARIOS} >= {"anomaly_detection", "auto_correction", "file_chain", "stateful"}


@EACH
def test_a_recorded_scenario_holds(scenario, tmp_path):
    outcome = replay_scenario(scenario, workspace=tmp_path)

    assert not outcome.problems
    assert outcome.usage.calls == len(Recording.read(scenario.replies).replies)


@EACH
def test_a_scenario_with_a_corrupted_reply_turns_red(scenario, tmp_path):
    recording = Recording.read(scenario.replies)
    last = recording.replies[-1]
    wrong = replace(last, completion=replace(last.completion, text=plans("I do not know.", to="User")))

    outcome = replay_scenario(
        scenario, workspace=tmp_path, recording=replace(recording, replies=(*recording.replies[:-1], wrong))
    )

    assert outcome.problems


@EACH
def test_replies_that_are_left_over_turn_it_red(scenario, tmp_path):
    recording = Recording.read(scenario.replies)
    longer = replace(recording, replies=(*recording.replies, recording.replies[-1]))

    outcome = replay_scenario(scenario, workspace=tmp_path, recording=longer)

    assert any("left over" in one for one in outcome.problems)
