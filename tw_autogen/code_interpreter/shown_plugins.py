"""`ShownPlugins`: which plugins the CodeInterpreter's model is shown, with stubs or by one line, task by task."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from tw_autogen.code_interpreter.plugin_selection import (
    SelectedPlugins,
    names_used,
    needs_selection,
    rank_plugins,
    select_plugins,
    texts_of,
)
from tw_autogen.code_interpreter.settings import CodeInterpreterSettings
from tw_autogen.code_interpreter.task_type import task_type
from tw_autogen.code_interpreter.unseen_plugin_calls import LOOKUP, looked_up, unclear_calls
from tw_autogen.errors import ConfigError
from tw_autogen.events import PluginsSelected
from tw_autogen.model import LexicalRanker, Ranker
from tw_autogen.plugin import PluginSpec
from tw_autogen.recall import ChatHistory
from tw_autogen.role import Turn

_log = logging.getLogger(__name__)
_SAME = "A result that is not described is what a result of that name is above."
_HEAD = "# Plugins\nThese functions exist already; call them, don't define or import them."
_MORE = (
    "# All plugins\nThese functions exist beside Python's own; those that may fit a task are shown in full, with the "
    "first task for which they may."
)
_UNLISTED = (
    "# Plugins\n{count} functions exist beside Python's own; those that fit a task are shown with it. If you need "
    f'another one, reply with nothing but `{LOOKUP}("what it should do")` in the block: you are told which there are.'
)
_NEAR = "# Plugins that come near"
_NEAR_LINES = 12
_FOUND_LINES = 12
_FOUND_STUBS = 3
_MAX_ANSWERS = 4


@dataclass
class Shown:
    """What one history has been shown already.

    Args:
        names: Plugins whose stubs stand in the history.
        lines: Plugins of which a line stands in the history.
        texts: What was told of them, as it stands there.
        answers: How often the model was told of plugins in the place of running its code, for the current task.
    """

    names: set[str] = field(default_factory=set)
    lines: set[str] = field(default_factory=set)
    texts: list[str] = field(default_factory=list)
    answers: int = 0


class ShownPlugins:
    """The plugins of one CodeInterpreter, and those of them that its code has used.

    Where all stubs fit their budget they stand in the static prompt. Else each task brings the stubs of those that fit
    it, beside the pool of those used before; the others are listed by one line each, or, where that is too long as
    well, found by words. A call of one that was not shown is run if it fits; if not, the model is told the stub.

    Args:
        specs: All plugins.
        settings: Budgets, and whether to select.
        ranker: Says which plugins fit a task; None: by words.

    Raises:
        ModelError: the ranker's server could not be asked.
        ConfigError: a plugin has the name of the lookup.

    Source: TaskWeaver's auto plugin selection. Differs: the pool goes by parsed names; nothing is ever out of reach.
    """

    def __init__(
        self, specs: Sequence[PluginSpec], settings: CodeInterpreterSettings, ranker: Ranker | None = None
    ) -> None:
        self.specs = tuple(specs)
        self.used: frozenset[str] = frozenset()
        self._settings = settings
        self._ranker = ranker or LexicalRanker()
        self.on = needs_selection(self.specs, settings.plugin_chars, settings.enable_auto_plugin_selection)
        self._lines = _one_line_list(self.specs, settings.plugin_list_chars)
        if self.on:
            if any(spec.name == LOOKUP for spec in self.specs):
                raise ConfigError(f"a plugin is called {LOOKUP!r}, which is the word for looking plugins up; rename it")
            self._ranker.prepare(texts_of(self.specs))

    def prompt(self) -> str:
        """Return what the static prompt says of plugins."""
        if not self.on:
            return _stubs_text(self.specs)
        if self._lines:
            return f"\n{_MORE}\n{self._lines}"
        return f"\n{_UNLISTED.format(count=len(self.specs))}"

    def intro(self) -> list[str]:
        """Return what the Planner is told of plugins, once and for all."""
        if not self.specs:
            return []
        if self._for_planner():
            return ["It can call these plugins:", *(spec.line() for spec in self.specs)]
        return [f"It has {len(self.specs)} plugins; those that fit are named with each request."]

    def offer(self, request: str) -> tuple[PluginSpec, ...]:
        """Return the plugins to name to the Planner for one request; none where its intro names all."""
        return () if self._for_planner() else self._select_plugins(request).specs

    def task(self, shown: Shown, history: ChatHistory, turn: Turn, task: str, *, name: str) -> str:
        """Choose the plugins for a task, report the choice, and return the text that shows what is new of them.

        Args:
            shown: What this history has been shown; brought up to date.
            history: Stubs in it that nobody needs any more are taken out once they are twice the budget.
            turn: Takes the event.
            task: In words.
            name: The role's.

        Raises:
            ModelError: the ranker's server could not be asked.
        """
        shown.answers = 0
        if not self.on:
            return ""
        chosen = self._select_plugins(task)
        pool = [spec.name for spec in chosen.specs]
        fresh = [spec for spec in chosen.specs if spec.name not in shown.names]
        told = sum(map(len, shown.texts)) + len(_stubs_text(fresh))
        anew = bool(shown.texts) and told > 2 * self._settings.plugin_chars
        if anew:
            for text in shown.texts:
                history.replace(
                    text, "(Plugins that were shown here are not any more; those for the task stand below.)"
                )
            shown.names.clear()
            shown.lines.clear()
            shown.texts.clear()
            fresh = list(chosen.specs)
        _log.info("Selected plugins: %s", list(chosen.selected))
        _log.info("Selected plugin pool: %s", pool)
        turn.emit(PluginsSelected(name, task_type(task), list(chosen.selected), pool, len(self.specs), anew))
        return "\n\n".join(
            part for part in (self._show_stubs(shown, fresh), self._list_near_plugins(shown, task, pool)) if part
        )

    def answer(self, shown: Shown, code: str) -> str:
        """Return what a model must know before code runs that looks plugins up, or uses some that it has not seen.

        Args:
            shown: What this history has been shown; brought up to date.
            code: A cell.

        Returns:
            Words for the model; empty if the code may run.
        """
        if not self.on or shown.answers >= _MAX_ANSWERS:  # then the cell runs, and fails as any other does
            return ""
        asked = looked_up(code)
        if asked:
            shown.answers += 1
            return self._answer_lookup(shown, asked)
        unseen = [spec for spec in self.specs if spec.name not in shown.names]
        unclear = unclear_calls(code, unseen)
        if not unclear:
            return ""
        shown.answers += 1
        stubs = self._show_stubs(shown, unclear)
        return f"The code was not run yet: see how these are called, and send it again.\n{stubs}"

    def ran(self, code: str) -> None:
        """Keep the plugins that code has used in the pool."""
        self.used |= names_used(code, self.specs)

    def _answer_lookup(self, shown: Shown, notes: Sequence[str]) -> str:
        """Answer a lookup: the best in full, some more by their lines."""
        ranked = rank_plugins(self.specs, " ".join(notes), self._ranker)[:_FOUND_LINES]
        specs = [self.specs[index] for index, _ in ranked]
        if not specs:
            return "No plugin has to do with these words. Look with others, or do without."
        best = [spec for spec in specs[:_FOUND_STUBS] if spec.name not in shown.names]
        lines = "\n".join(spec.line(whole=True) for spec in specs)
        return f"Those that come nearest:\n{lines}\n{self._show_stubs(shown, best)}\nNow send the code."

    def _list_near_plugins(self, shown: Shown, task: str, pool: Sequence[str]) -> str:
        """List those that come next after the chosen ones, where there is no list of all."""
        if self._lines:
            return ""
        most = self._settings.auto_plugin_selection_topk + _NEAR_LINES
        ranked = [self.specs[index] for index, _ in rank_plugins(self.specs, task, self._ranker)[:most]]
        near = [one for one in ranked if one.name not in shown.names | shown.lines and one.name not in pool]
        if not near:
            return ""
        shown.lines.update(one.name for one in near)
        shown.texts.append("\n".join([_NEAR, *(one.line(whole=True) for one in near)]))
        return shown.texts[-1]

    def _show_stubs(self, shown: Shown, specs: Sequence[PluginSpec]) -> str:
        text = _stubs_text(specs).strip()
        if text:
            shown.names.update(spec.name for spec in specs)
            shown.texts.append(text)
        return text

    def _select_plugins(self, request: str) -> SelectedPlugins:
        settings = self._settings
        return select_plugins(
            self.specs,
            request,
            budget_chars=settings.plugin_chars,
            top_k=settings.auto_plugin_selection_topk,
            always=self.used,
            ranker=self._ranker,
            enabled=settings.enable_auto_plugin_selection,
        )

    def _for_planner(self) -> bool:
        """Return whether the intro names all plugins: the Planner sees more of them than fit with their stubs."""
        return not self.on or bool(self._lines)


def _stubs_text(specs: Sequence[PluginSpec]) -> str:
    if not specs:
        return ""
    stubs, left_out = _without_repeated_returns([spec.stub() for spec in specs])
    note = f" {_SAME}" if left_out else ""
    return f"\n{_HEAD}{note}\n```text\n{stubs}\n```"


def _without_repeated_returns(stubs: Sequence[str]) -> tuple[str, bool]:
    """Join stubs; of lines on results that are the same in several, the first stays. Also say whether one was left out.

    Args:
        stubs: As a plugin gives them: indented lines `returns name: description` in a docstring.
    """
    seen: set[str] = set()
    kept, left_out = [], False
    for stub in stubs:
        lines = stub.splitlines()
        again = [line.startswith("    returns ") and line in seen for line in lines]
        kept.append("\n".join(line for line, one in zip(lines, again, strict=True) if not one))
        left_out = left_out or any(again)
        seen.update(lines)
    return "\n\n".join(kept), left_out


def _one_line_list(specs: Sequence[PluginSpec], limit_chars: int) -> str:
    """Return a line for each plugin that is not shown anyway; nothing if they are longer together than the limit."""
    lines: list[str] = []
    left = limit_chars + 1
    for spec in specs:
        if not spec.required:
            lines.append(spec.line(whole=True))
            left -= len(lines[-1]) + 1
            if left < 0:
                return ""
    return "\n".join(lines)
