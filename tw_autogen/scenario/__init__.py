"""Scenarios: whole tasks as folders, with data, recorded replies, and checks that need no judge."""

from typing import TYPE_CHECKING

from tw_autogen.deprecated import old_names
from tw_autogen.scenario.check import CHECKS
from tw_autogen.scenario.costs import costs_table, put_table
from tw_autogen.scenario.evidence import Evidence, RoundEvidence
from tw_autogen.scenario.expect import Expectation, read_expectation
from tw_autogen.scenario.judging import Judgement, judge
from tw_autogen.scenario.numbers import numbers_in
from tw_autogen.scenario.recorded import FAILED_REPLIES, record_scenario, replay_scenario
from tw_autogen.scenario.reply_rules import ReplyRule
from tw_autogen.scenario.report import check_report, write_report
from tw_autogen.scenario.run import PATIENCE, Outcome, run_live, run_scenario
from tw_autogen.scenario.runs import Runs
from tw_autogen.scenario.scenario import FILE, REPLIES, Limits, Scenario, find_scenarios, read_scenario
from tw_autogen.scenario.spy_model import Call, SpyModel

__all__ = [
    "CHECKS",
    "FAILED_REPLIES",
    "FILE",
    "PATIENCE",
    "REPLIES",
    "ReplyRule",
    "Call",
    "Evidence",
    "Expectation",
    "SpyModel",
    "Judgement",
    "Limits",
    "Outcome",
    "Runs",
    "Scenario",
    "RoundEvidence",
    "check_report",
    "costs_table",
    "find_scenarios",
    "judge",
    "numbers_in",
    "put_table",
    "read_expectation",
    "read_scenario",
    "record_scenario",
    "replay_scenario",
    "run_live",
    "run_scenario",
    "write_report",
]

if not TYPE_CHECKING:  # a type checker names an unknown attribute
    __getattr__ = old_names(__name__, {"AskedBack": "ReplyRule", "HeardModel": "SpyModel", "Seen": "RoundEvidence"})
