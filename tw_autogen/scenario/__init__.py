"""Scenarios: whole tasks as folders, with data, recorded replies, and checks that need no judge."""

from tw_autogen.scenario.check import CHECKS
from tw_autogen.scenario.evidence import Evidence, Seen
from tw_autogen.scenario.expect import Expectation, read_expectation
from tw_autogen.scenario.numbers import numbers_in
from tw_autogen.scenario.run import Outcome, record_scenario, replay_scenario, run_scenario
from tw_autogen.scenario.scenario import Limits, Scenario, find_scenarios, read_scenario

__all__ = [
    "CHECKS",
    "Evidence",
    "Expectation",
    "Limits",
    "Outcome",
    "Scenario",
    "Seen",
    "find_scenarios",
    "numbers_in",
    "read_expectation",
    "read_scenario",
    "record_scenario",
    "replay_scenario",
    "run_scenario",
]
