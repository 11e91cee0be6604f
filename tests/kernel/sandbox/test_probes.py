"""The sandbox holds against every probe; without it they get through, or a test of the sandbox would say nothing."""

import os

import pytest

from tests.kernel.sandbox.levels import Level, Outcome, ended_by_sandbox
from tests.kernel.sandbox.probes import PROBES

NAMED = {probe.name: probe for probe in PROBES}
BY_NAME = [pytest.param(probe, id=probe.name) for probe in PROBES]
SURE = [pytest.param(probe, id=probe.name) for probe in PROBES if probe.sure]


def test_each_probe_says_what_it_would_be_and_has_several_ways():
    assert len(PROBES) >= 24
    assert len({probe.name for probe in PROBES}) == len(PROBES)
    assert all(probe.meaning.startswith(("Code", "One process", "Several processes")) for probe in PROBES)


@pytest.mark.parametrize(
    ("name", "error", "held"),
    [
        ("many-files", "its folder grew to 1188 MB, of 1024 (kernel.disk_mb)", True),
        ("many-files", "its processes took 4000 MB of memory together, of 3072 (kernel.memory_mb)", False),
        ("much-memory", "its processes took 4000 MB of memory together, of 3072 (kernel.memory_mb)", True),
        ("much-memory", "killed by SIGKILL (often: out of memory)", False),
        ("many-files", "Stopped after 60 s, its time limit, by an interrupt", False),
        ("many-processes", "its folder grew to 1188 MB, of 1024 (kernel.disk_mb)", False),
    ],
)
def test_a_probe_that_never_spoke_was_held_only_by_the_limit_that_it_attacks(name, error, held):
    outcome = Outcome([], [], 0, {}, f"The kernel died while this cell ran: {error}.", 1.0)

    assert ended_by_sandbox(NAMED[name], outcome) is held


@pytest.mark.parametrize("probe", SURE)
def test_without_a_sandbox_a_probe_gets_through(level, probe):
    if level.name != "off":
        pytest.skip("this level is a sandbox")
    outcome = level.attempt(probe)

    assert outcome.breach, f"nothing got through: {outcome.errors} {outcome.error}"


ordinary_user = pytest.mark.skipif(os.geteuid() == 0, reason="without a sandbox nothing is tried as root")


@ordinary_user
def test_a_key_that_the_kernel_is_given_is_found():
    with Level("off", environment=("OPENAI_API_KEY",)) as level:
        outcome = level.attempt(NAMED["environment"])

    assert "own" in outcome.how


@pytest.mark.parametrize("probe", BY_NAME)
def test_behind_the_sandbox_no_way_of_a_probe_gets_through(sandbox, probe):
    outcome = sandbox.attempt(probe)

    assert not sandbox.through(probe, outcome), f"{probe.meaning} {outcome}"
    assert outcome.tried or ended_by_sandbox(probe, outcome), f"nothing was tried: {outcome.error}"
