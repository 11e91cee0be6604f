"""The CodeInterpreter's settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tw_autogen.approval import CellApproval
from tw_autogen.settings_trust import LONGER, LOWER, NAMED, NARROWER, ON


@dataclass(frozen=True)
class CodeInterpreterSettings:
    """The CodeInterpreter's settings.

    Args:
        policy: What code may do: `default`, `strict`, `plugins-only`, `no-shell`, or the path of a YAML file (see
            `read_policy`), relative to the file in which this is set.
        allowed_modules: The only modules that may be imported, of those that the policy allows; None: all of them.
        blocked_functions: What may not be used either, as in `Policy.blocked_functions`.
        plugin_only: Call plugins and do nothing else: TaskWeaver's name for the policy `plugins-only`. A policy that is
            given in code beats this one and `policy`.
        approval: When a person is asked before a cell runs: `always`, for those that pass the policy (the others go
            back to the model); `findings`, for those that don't, which the person may let run; `never`.
        model: Name of the model that writes code, on the server of `model.base_url`; empty: the session's model.
        tries: How often an unreadable reply is asked for again, counted for each reply by itself.
        max_tries: How often code is written again after findings, and, counted apart, after failures.
        model_seconds: How long one reply of the model may take, its tries included; None: each try `model.seconds`.
        cell_seconds: How long one cell may run, without the time spent in host calls; of calls in other threads than
            the cell's own, as much time again at most is left out.
        report_chars: How much of the result, of what was printed, and of an error is reported, each. Longer output is
            cut print by print, and what the kernel keeps of it is in its variable `last_output`.
        answer_chars: Of an answer that code has printed and that is longer than this, chats and prompts get the
            beginning, and all of it is a file too. `Answer.text` and the command line's output have it whole. JSON is
            not cut.
        variables_chars: How much of a prompt the list of new and changed variables may take.
        plugin_chars: How much of the prompt the plugins' stubs may take; beyond it the best fitting are chosen.
        plugin_list_chars: How much of the prompt the list of all plugins may take, one line each, where stubs are shown
            of some only; beyond it the others are found by words.
        enable_auto_plugin_selection: Whether the plugins that fit are chosen for each task: `auto`, where the stubs of
            all are longer than `plugin_chars`; True, always; False, never.
        auto_plugin_selection_topk: How many plugins are chosen at most for one task.
        host_calls: How many calls code may make to host-run plugins for one request.
        host_seconds: How long these calls may take together, and each one of a plugin that names no limit of its own;
            calls side by side count each for itself. The time that a person takes to allow a call is not counted.
    """

    policy: str = "default"
    allowed_modules: tuple[str, ...] | None = field(default=None, metadata=NARROWER)
    blocked_functions: tuple[str, ...] = field(default=(), metadata=LONGER)
    plugin_only: bool = field(default=False, metadata=ON)
    approval: CellApproval = "never"
    model: str = field(default="", metadata=NAMED)
    tries: int = field(default=3, metadata=LOWER)
    max_tries: int = field(default=3, metadata=LOWER)
    model_seconds: float | None = field(default=None, metadata=LOWER)
    cell_seconds: float = field(default=180.0, metadata=LOWER)
    report_chars: int = field(default=10_000, metadata=LOWER)
    answer_chars: int = field(default=20_000, metadata=LOWER)
    variables_chars: int = field(default=2000, metadata=LOWER)
    plugin_chars: int = field(default=8000, metadata=LOWER)
    plugin_list_chars: int = field(default=12000, metadata=LOWER)
    enable_auto_plugin_selection: bool | Literal["auto"] = field(default="auto", metadata=NAMED)
    auto_plugin_selection_topk: int = field(default=8, metadata=LOWER)
    host_calls: int = field(default=200, metadata=LOWER)
    host_seconds: float = field(default=600.0, metadata=LOWER)
