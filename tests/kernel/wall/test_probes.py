"""The wall holds against every probe; without it they get through, or a test of the wall would say nothing."""

import os

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


ordinary_user = pytest.mark.skipif(os.geteuid() == 0, reason="without a wall nothing is tried as root")


@ordinary_user
def test_a_key_that_the_kernel_is_given_is_found():
    with Level("off", environment=("OPENAI_API_KEY",)) as level:
        outcome = level.attempt(NAMED["environment"])

    assert "own" in outcome.how


NOT_CLAIMED = {
    "landlock": {
        "home-listing": {
            "measured",
            "measured_by_statx",
            "gone_to",
            "opened_as_a_path",
            "asked_for",
        },  # `stat` is not forbidden
        "network-seen": {"host_name"},
        "listens": {"abstract"},  # the other side would have to be the host's own
        "privileges": {"powers"},  # as root, with an interpreter in a folder that is closed to others
    }
}
"""What a level's docstring says that it doesn't hold off."""


@pytest.mark.parametrize("probe", BY_NAME)
def test_behind_the_wall_no_way_of_a_probe_gets_through(wall, probe):
    outcome = wall.attempt(probe)

    known = NOT_CLAIMED.get(wall.name, {}).get(probe.name, set())
    assert not [*outcome.seen, *(set(outcome.how) - known)], f"{probe.meaning} {outcome}"
    if not (probe.ends and ("(kernel." in outcome.error or "the kernel was killed" in outcome.error)):
        assert outcome.tried, f"the cell did not speak, so nothing was tried: {outcome.error}"
