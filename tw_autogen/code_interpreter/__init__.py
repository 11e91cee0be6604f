"""The CodeInterpreter: turns one task into Python, checks it, runs it, mends it, and reports."""

from tw_autogen.code_interpreter.cells import Cells
from tw_autogen.code_interpreter.interpreter import CodeInterpreter
from tw_autogen.code_interpreter.policy import POLICIES, Policy, find_policy, read_policy
from tw_autogen.code_interpreter.settings import CodeInterpreterSettings
from tw_autogen.code_interpreter.verify import Finding, verify

__all__ = [
    "POLICIES",
    "Cells",
    "CodeInterpreter",
    "CodeInterpreterSettings",
    "Finding",
    "Policy",
    "find_policy",
    "read_policy",
    "verify",
]
