"""The CodeInterpreter: turns one task into Python, checks it, runs it, mends it, and reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Any

from tw_autogen.code_interpreter import report
from tw_autogen.code_interpreter.cells import Cells
from tw_autogen.code_interpreter.policy import Policy
from tw_autogen.code_interpreter.settings import CodeInterpreterSettings
from tw_autogen.code_interpreter.verify import verify
from tw_autogen.code_interpreter.work import Work
from tw_autogen.conversation import AttachmentType, Memory, Post, Round
from tw_autogen.errors import RoundInterrupted, RoundTimedOut
from tw_autogen.events import CodeChecked
from tw_autogen.kernel import Kernel
from tw_autogen.model import ChatModel, CodeReply, CodeStream, ask, read_code
from tw_autogen.plugin import PluginSpec, choose, names_used
from tw_autogen.recall import Talk
from tw_autogen.role import Growing, Role, Turn

NAME = "CodeInterpreter"
_PROMPT = Template(Path(__file__).with_name("prompt.md").read_text(encoding="utf-8"))
_INSTALLING = {
    "never": "- If a library is missing, use another way; nothing can be installed.",
    "ask": "- If a library is missing, use another way, or write `%pip install name` above its import: the User is "
    "asked whether it may be installed.",
    "allow": "- If a library is missing, write `%pip install name` above its import.",
}
_MEND = (
    "If you can mend it, send the whole block again, without what has already run well: the variables that exist are "
    "listed. If it can't be done, say why in words, without a block."
)


@dataclass
class _Talking:
    """The talk of one session, and what of it need not be said again."""

    talk: Talk
    board: str = ""
    variables: str = ""
    stubs: set[str] = field(default_factory=set)


class CodeInterpreter(Role):
    """The role that writes and runs code.

    Args:
        model: What writes the code.
        kernel: Where it runs: a Kernel, which stays its maker's, or a function that makes one for the session's folder,
            which is closed with this role.
        plugins: Functions that the code may call.
        policy: What the code may do.
        settings: See `CodeInterpreterSettings`.
        name: Its name in the talk.

    Raises:
        PluginLoadError: a plugin doesn't load (at once if a Kernel is given, else before the first cell).

    Source: TaskWeaver's CodeInterpreter (paper, sections 5.2 and 5.3). Differs: findings and failures have counters of
    their own, afresh for each task; code is fenced, not escaped in JSON; the kernel's variables stand in the prompt.
    """

    name = NAME

    def __init__(
        self,
        model: ChatModel,
        kernel: Kernel | Callable[[Path], Kernel],
        *,
        plugins: Sequence[PluginSpec] = (),
        policy: Policy | None = None,
        settings: CodeInterpreterSettings | None = None,
        name: str = NAME,
    ) -> None:
        self.name = name
        self._model = model
        self._plugins = tuple(plugins)
        self._policy = policy or Policy()
        self._settings = settings or CodeInterpreterSettings()
        self._make = None if isinstance(kernel, Kernel) else kernel
        self._cells = Cells(kernel, self._plugins, model, self._settings) if isinstance(kernel, Kernel) else None
        self._used: frozenset[str] = frozenset()
        self._talks: dict[str, _Talking] = {}
        chosen = choose(self._plugins, "", budget_chars=self._settings.plugin_chars, top_k=0)
        self._all_fit = not chosen.left_out
        self.intro = self._introduce()

    @property
    def folder(self) -> Path | None:
        """Where the code runs and files lie; None until there is a kernel."""
        return self._cells.kernel.folder if self._cells else None

    @property
    def where(self) -> str:
        """Say in one line where code runs."""
        return self._cells.kernel.where if self._cells else "a kernel of its own, not started yet"

    @property
    def plugin_names(self) -> tuple[str, ...]:
        """The functions that code may call, beside Python's own."""
        return tuple(spec.name for spec in self._plugins)

    @property
    def prompt(self) -> str:
        """The static text that every prompt begins with."""
        plugins = self._stubs(self._plugins) if self._all_fit else ""
        installing = _INSTALLING[self._policy.install]
        return _PROMPT.substitute(rules=self._policy.summary(), plugins=plugins, installing=installing).strip()

    def offer(self, request: str) -> str:
        """Name the plugins that fit a request, where there are too many to name them all in the intro."""
        if self._all_fit:
            return ""
        chosen = self._choose(request)
        lines = "\n".join(spec.line() for spec in chosen)
        return f"Plugins of {self.name} that may fit ({len(chosen)} of {len(self._plugins)}):\n{lines}" if lines else ""

    def reply(self, memory: Memory, **kwargs: Any) -> Post:
        """Solve the task in the newest post, and report to whoever sent it.

        Args:
            memory: What this role may see.
            **kwargs: `turn`; without one nothing is emitted and no deadline holds.

        Raises:
            ModelError: the model could not be asked, or stayed unreadable.
            RoundInterrupted: the round was stopped.
            RoundTimedOut: the round's time is over.
        """
        turn: Turn = kwargs.get("turn") or Turn(memory.rounds[-1], Path.cwd())
        cells = self._open(turn)
        asked = memory.last_post
        mine = self._talks.setdefault(memory.session_id, _Talking(Talk(self.prompt)))
        self._listen(mine, memory, asked)
        mine.talk.tell(self._task(mine, asked, turn))
        work = self._work(mine, cells, turn)
        limit = self._settings.report_chars
        post = Post(self.name, asked.send_from, work.message(limit, asked.send_from), tuple(work.attachments(limit)))
        mine.talk.saw(post)
        return post

    def interrupt(self) -> None:
        """Stop the running cell, keep variables."""
        if self._cells:
            self._cells.kernel.interrupt()

    def close(self) -> None:
        """Close host-run plugins, and the kernel if this role made it."""
        if self._cells:
            self._cells.close()
            if self._make:
                self._cells.kernel.close()
        self._talks.clear()

    def _open(self, turn: Turn) -> Cells:
        if self._cells is None:
            assert self._make is not None  # noqa: S101 - one of the two is always there; for the type checker
            self._cells = Cells(self._make(turn.folder), self._plugins, self._model, self._settings)
        return self._cells

    def _introduce(self) -> str:
        tries = self._settings.max_tries
        lines = [
            "Writes Python for one task, checks it, runs it in a kernel that remembers variables from task to task, "
            f"and mends its own errors up to {tries} times. It reads and writes files in the working folder, works on "
            "tables, fits models, draws charts. It reports what was printed, the last value, errors, and files made."
        ]
        if self._plugins and self._all_fit:
            lines += ["It can call these plugins:", *(spec.line() for spec in self._plugins)]
        elif self._plugins:
            lines.append(f"It has {len(self._plugins)} plugins; those that fit are named with each request.")
        return "\n".join(lines)

    def _choose(self, request: str) -> tuple[PluginSpec, ...]:
        settings = self._settings
        chosen = choose(
            self._plugins, request, budget_chars=settings.plugin_chars, top_k=settings.plugin_top_k, always=self._used
        )
        return chosen.specs

    def _stubs(self, specs: Sequence[PluginSpec]) -> str:
        if not specs:
            return ""
        stubs = "\n\n".join(spec.stub() for spec in specs)
        head = "# Plugins\nThese functions exist already; call them, don't define or import them."
        return f"\n{head}\n```text\n{stubs}\n```"

    def _listen(self, mine: _Talking, memory: Memory, asked: Post) -> None:
        """Bring the talk up to date with what was said since, but for the task itself."""
        for new in mine.talk.news(memory):
            if isinstance(new, Round):
                mine.talk.tell(f"(The work on that request ended here, because {new.error or 'it was stopped'}.)")
            elif new.send_from == self.name:
                mine.talk.answered(new.message)
            elif new.id != asked.id:
                mine.talk.tell(f"From: {new.send_from}\n{new.message}")

    def _task(self, mine: _Talking, asked: Post, turn: Turn) -> str:
        """Word the task: board, variables and plugins where they have changed, then what is asked."""
        parts = []
        board = "\n".join(text for role, text in turn.round.read_board().items() if role != self.name)
        if board and board != mine.board:
            parts.append(f"# Board\n{board}")
        mine.board = board
        variables = "\n".join(map(str, self._open(turn).kernel.variables()))
        if variables and variables != mine.variables:
            parts.append(f"# Variables that exist now\n{variables}")
        mine.variables = variables
        if not self._all_fit:
            fresh = [spec for spec in self._choose(asked.message) if spec.name not in mine.stubs]
            mine.stubs.update(spec.name for spec in fresh)
            parts.append(self._stubs(fresh).strip())
        parts.append(f"# Task from {asked.send_from}\n{asked.message}")
        if asked.content(AttachmentType.then):
            parts.append(
                "What you print goes to the User as the answer, unread: print whole sentences with the numbers, their "
                "units and what was chosen, in the form that the User asked for, and nothing else."
            )
        return "\n\n".join(part for part in parts if part)

    def _work(self, mine: _Talking, cells: Cells, turn: Turn) -> Work:
        """Write, check and run code until it runs, or until the tries are used up."""
        work = Work()
        limit = self._settings.report_chars
        while True:
            reply = self._write(mine, turn)
            _go_on(turn)
            work.thought, work.code = reply.thought, reply.code or ""
            if reply.code is None:
                work.findings, work.execution = [], None
                return work
            work.findings = verify(reply.code, self._policy, plugins=self.plugin_names)
            turn.emit(CodeChecked(reply.code, [str(one) for one in work.findings]))
            if work.findings:
                work.refused += 1
                mine.talk.tell(f"{report.findings_report(work.findings)}\n{_MEND}")
                work.gave_up = work.refused > self._settings.max_tries
                if work.circles("\n".join(map(str, work.findings))) or work.gave_up:
                    return work
                continue
            work.execution = cells.run(reply.code, turn=turn, seconds=turn.seconds_left(self._settings.cell_seconds))
            _go_on(turn)
            work.artifacts += [one for one in work.execution.artifacts if one not in work.artifacts]
            self._used |= names_used(reply.code, self._plugins)
            told = report.execution_report(work.execution, work.execution.artifacts, limit)
            if work.execution.ok:
                mine.talk.tell(told)
                return work
            work.failed += 1
            mine.variables = "\n".join(map(str, work.execution.variables))
            exist = f"\nVariables that exist now:\n{mine.variables}" if mine.variables else ""
            mine.talk.tell(f"{told}{exist}\n{_MEND}")
            work.gave_up = work.failed > self._settings.max_tries
            if work.circles(work.execution.error) or work.gave_up:
                return work

    def _write(self, mine: _Talking, turn: Turn) -> CodeReply:
        growing = Growing(turn, self.name, CodeStream)
        reply, _ = ask(
            self._model,
            mine.talk.messages,
            read_code,
            tries=self._settings.tries,
            on_text=growing.take,
            on_call=growing.called,
            before_call=turn.before_call,
            seconds=turn.seconds_left(self._settings.model_seconds),
            cancelled=turn.cancelled,
        )
        return reply


def _go_on(turn: Turn) -> None:
    """Stop here if the round was stopped or its time is over."""
    if turn.cancelled.is_set():
        raise RoundInterrupted("the round was stopped", round=turn.round)
    if turn.seconds_left(1.0) <= 0:
        raise RoundTimedOut("the round's time is over", round=turn.round)
