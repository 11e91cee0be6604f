"""Scenarios: whole tasks as folders, with data, recorded replies, and checks that need no judge."""

from typing import TYPE_CHECKING

from tw_autogen.deprecated import old_names
from tw_autogen.scenario.html_report import check_report, write_report
from tw_autogen.scenario.model_judge import judge
from tw_autogen.scenario.repeated_runs import Runs
from tw_autogen.scenario.replay_and_record import record_scenario, replay_scenario
from tw_autogen.scenario.scenario import Scenario, find_named, read_scenario
from tw_autogen.scenario.scenario_run import PATIENCE, Outcome, run_live, run_scenario

__all__ = [
    "Outcome",
    "PATIENCE",
    "Runs",
    "Scenario",
    "check_report",
    "find_named",
    "judge",
    "read_scenario",
    "record_scenario",
    "replay_scenario",
    "run_live",
    "run_scenario",
    "write_report",
]

if not TYPE_CHECKING:  # a type checker names an unknown attribute
    __getattr__ = old_names(
        __name__,
        {
            "tw_autogen.scenario.Scenario": ("FAILED_REPLIES",),
            "tw_autogen.cli.scenario_costs": ("costs_table", "put_table"),
            "tw_autogen.scenario.check_answer": ("numbers_in",),
            "tw_autogen.scenario.evidence": ("Evidence", "RoundEvidence"),
            "tw_autogen.scenario.expect": ("CHECKS", "Expectation", "read_expectation"),
            "tw_autogen.scenario.model_judge": ("Judgement",),
            "tw_autogen.scenario.reply_rules": ("ReplyRule",),
            "tw_autogen.scenario.scenario": ("FILE", "find_scenarios", "Limits", "REPLIES"),
            "tw_autogen.scenario.spy_model": ("Call", "SpyModel"),
        },
        renamed={
            "AskedBack": "tw_autogen.scenario.reply_rules.ReplyRule",
            "HeardModel": "tw_autogen.scenario.spy_model.SpyModel",
            "Seen": "tw_autogen.scenario.evidence.RoundEvidence",
        },
    )
