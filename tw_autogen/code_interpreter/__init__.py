"""The CodeInterpreter: turns one task into Python, checks it, runs it, corrects it, and reports."""

from typing import TYPE_CHECKING

from tw_autogen.code_interpreter.cell_runner import CellRunner
from tw_autogen.code_interpreter.interpreter import CodeInterpreter
from tw_autogen.code_interpreter.plugin_selection import names_used
from tw_autogen.code_interpreter.policy import Policy, find_policy
from tw_autogen.code_interpreter.report_texts import findings_report
from tw_autogen.code_interpreter.rules import Finding
from tw_autogen.code_interpreter.settings import CodeInterpreterSettings
from tw_autogen.code_interpreter.verify import verify
from tw_autogen.deprecated import old_names

__all__ = [
    "CellRunner",
    "CodeInterpreter",
    "CodeInterpreterSettings",
    "Finding",
    "Policy",
    "find_policy",
    "findings_report",
    "names_used",
    "verify",
]

if not TYPE_CHECKING:  # a type checker names an unknown attribute
    __getattr__ = old_names(
        __name__,
        {
            "tw_autogen.code_interpreter.policy": ("POLICIES", "read_policy"),
        },
        renamed={
            "Cells": "CellRunner",
            "cut": "tw_autogen.text_truncation.without_middle",
        },
    )
