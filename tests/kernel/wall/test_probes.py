"""The wall holds against every probe; without it they get through, or a test of the wall would say nothing."""

import sys

import pytest

from tests.kernel.wall.levels import Level
from tests.kernel.wall.probes import PROBES

NAMED = {one.name: one for one in PROBES}
BY_NAME = [pytest.param(one, id=one.name) for one in PROBES]
SURE = [pytest.param(one, id=one.name) for one in PROBES if one.sure]


def test_each_probe_says_what_it_would_be_and_has_several_ways():
    assert len(PROBES) >= 24
    assert len({one.name for one in PROBES}) == len(PROBES)
    assert all(one.meaning.startswith(("Code", "One process", "Several processes")) for one in PROBES)


@pytest.mark.parametrize("probe", SURE)
def test_without_a_wall_a_probe_gets_through(level, probe):
    if level.name != "off":
        pytest.skip("this level is a wall")
    outcome = level.attempt(probe)

    assert outcome.breach, f"nothing got through: {outcome.errors} {outcome.error}"


def test_a_key_that_the_kernel_is_given_is_found():
    with Level("off", environment=("OPENAI_API_KEY",)) as level:
        outcome = level.attempt(NAMED["environment"])

    assert {"own", "at_the_start"} <= set(outcome.how)


def test_a_folder_that_was_left_open_is_found_and_used(tmp_path):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec 9< /\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    with Level("off", python=str(python)) as level:
        left, used = level.attempt(NAMED["descriptors"]), level.attempt(NAMED["home-file"])

    assert "left_open" in left.how
    assert {"through_own_descriptors", "through_folders_that_were_left_open"} <= set(used.how)


@pytest.mark.parametrize("probe", BY_NAME)
def test_behind_the_wall_no_way_of_a_probe_gets_through(wall, probe):
    outcome = wall.attempt(probe)

    assert not outcome.breach, f"{probe.meaning} {outcome}"
    assert outcome.tried, f"the cell did not speak, so nothing was tried: {outcome.error}"
