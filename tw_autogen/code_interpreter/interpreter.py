"""The CodeInterpreter: turns one task into Python, checks it, runs it, corrects it, and reports."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tw_autogen.approval import Approve
from tw_autogen.code_interpreter import report_texts
from tw_autogen.code_interpreter.cell_approval import approve_cell, asks_for
from tw_autogen.code_interpreter.cell_runner import CellRunner
from tw_autogen.code_interpreter.deliberate_errors import raised_by_cell
from tw_autogen.code_interpreter.plugin_selection import needs_selection
from tw_autogen.code_interpreter.plugin_tools import calls_as_text, tools_of
from tw_autogen.code_interpreter.policy import Policy
from tw_autogen.code_interpreter.prompt_state import PromptState
from tw_autogen.code_interpreter.prompts import code_rules, introduction, static_prompt
from tw_autogen.code_interpreter.reported_variables import ReportedVariables
from tw_autogen.code_interpreter.rules import WORDS_FOR_DATA, Finding
from tw_autogen.code_interpreter.settings import CodeInterpreterSettings
from tw_autogen.code_interpreter.shown_plugins import ShownPlugins
from tw_autogen.code_interpreter.task_progress import TaskProgress
from tw_autogen.code_interpreter.verify import verify
from tw_autogen.conversation import (
    Attachment,
    AttachmentType,
    Memory,
    Post,
    RequestedFormat,
    Round,
    changes_attachment,
    is_json,
)
from tw_autogen.errors import ModelError, RoundInterrupted, RoundTimedOut
from tw_autogen.events import ArtifactSaved, CodeChecked, PromptTruncatedByServer
from tw_autogen.kernel import Artifact, AttachedKernel, Execution, Kernel, Variable
from tw_autogen.model import ChatModel, CodeReply, CodeStream, Completion, ModelRequest, Ranker, ask
from tw_autogen.plugin import PluginSpec
from tw_autogen.recall import ChatHistory, DefinitionPrompt, Recall
from tw_autogen.role import Killable, PostStream, Role, Turn

NAME = "CodeInterpreter"
USER = "User"
_UNCUT_CHARS = 1_000_000
_BEGINNING_CHARS = 4000
"""How much of a long answer chats and prompts get."""
_MEND = (
    "If you can mend it, send a new block with what still has to run: the variables that exist are listed; print again "
    "what the answer needs. If it can't be done, say why in words, without a block."
)
_MEND_LOOK = " That was to be a look: a block that only looks begins with `# look` again."
_SENT = "This code came with the task."
_LOOKED = "That was a look. Go on: do the task, or look once more."
_LAST_LOOK = "That was the last look of this task. Do the task now."


class CodeInterpreter(Role):
    """The role that writes and runs code.

    Args:
        model: What writes the code.
        kernel: Where it runs: a Kernel, which stays its maker's, or a function that makes one for the session's folder,
            which is closed with this role.
        plugins: Functions that the code may call.
        policy: What the code may do; where it is plugins only, those that say `plugin_only` are there, or all if none
            says so, and a model that has tools gets them as tools.
        settings: See `CodeInterpreterSettings`.
        ranker: Says which plugins fit a task, where not all are shown; None: by their words.
        recall: What it is reminded of; None: of nothing but its own history.
        name: Its name in the history.
        approve: Asked before a cell runs, as the setting `approval` says; None: nobody is there.
        keeps_definitions: This role keeps the User's definitions, because it alone answers them and no Planner does.
        distrusted: As of `CellRunner`.

    Raises:
        PluginLoadError: a plugin that is not `optional` doesn't load (at once if a Kernel is given, else before the
            first cell; where there are too many to show them all, before the first cell that names it).
        ModelError: the ranker needs a server that could not be asked.

    Source: TaskWeaver's CodeInterpreter (paper, sections 5.2 and 5.3). Differs: findings and failures have counters of
    their own for each task; code is fenced, not escaped in JSON; the kernel's variables stand in the prompt.
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
        ranker: Ranker | None = None,
        recall: Recall | None = None,
        name: str = NAME,
        approve: Approve | None = None,
        keeps_definitions: bool = False,
        distrusted: Callable[[], Sequence[Path]] | None = None,
    ) -> None:
        self.name = name
        self._keeps_definitions = keeps_definitions
        self._distrusted = distrusted
        self._model = model
        self._policy = policy or Policy()
        self._ranker = ranker
        self._settings = settings or CodeInterpreterSettings()
        self._approve = approve
        self._make = None if isinstance(kernel, Kernel) else kernel
        named = tuple(spec for spec in plugins if spec.plugin_only and self._policy.only_plugins)
        wanted = named or tuple(plugins)
        later = needs_selection(wanted, self._settings.plugin_chars, self._settings.enable_auto_plugin_selection)
        self._later = later and not self._policy.only_plugins
        self._cells = self._cells_of(kernel, wanted) if isinstance(kernel, Kernel) else None
        self._recall = recall or Recall()
        self._states: dict[str, PromptState] = {}
        self._offer_only(self._cells.plugins if self._cells else wanted)

    @property
    def model(self) -> ChatModel:
        """The model that this role asks."""
        return self._model

    @property
    def folder(self) -> Path | None:
        """Where the code runs and files lie; None until there is a kernel."""
        return self._cells.kernel.folder if self._cells else None

    @property
    def where(self) -> str:
        """Describe in one line where code runs."""
        return self._cells.kernel.where if self._cells else "a kernel of its own, starts with the first cell"

    @property
    def plugin_names(self) -> tuple[str, ...]:
        """The functions that code may call, beside Python's own."""
        return tuple(spec.name for spec in self._plugins)

    @property
    def plugin_files(self) -> dict[str, str]:
        """The YAML or Python files of the plugins that were read from one, by name."""
        return {spec.name: str(spec.path.absolute()) for spec in self._plugins if spec.path is not None}

    @property
    def prompt(self) -> str:
        """The static text that every prompt begins with."""
        return static_prompt(self._policy, self._selection.prompt(), self._settings)

    @property
    def code_rules(self) -> str:
        """The rules for code that comes with a task; empty where this role only calls plugins."""
        return "" if self._policy.only_plugins else code_rules(self._policy, self._settings)

    def offer(self, request: str) -> str:
        """Name the plugins that fit a request, where there are too many to name them all in the intro."""
        chosen = self._selection.offer(request)
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
        cells = self._open_cell_runner(turn.folder)
        asked = memory.last_post
        mine = self._states.get(memory.session_id)
        if mine is None:
            known = ReportedVariables(self._settings.variables_chars)
            mine = PromptState(self.name, ChatHistory(self.prompt), known)
            mine.definitions = DefinitionPrompt(in_block=True) if self._keeps_definitions else None
            mine.add_examples(self._recall_examples(memory.rounds[-1], asked), asked)
            self._states[memory.session_id] = mine
        mine.enter(memory)
        mine.listen(memory, asked)
        self._shorten_history(mine, turn)
        self._tell_task(mine, asked, turn)
        forwarded = asked.content(AttachmentType.then) == USER
        work = self._write_and_run_code(mine, cells, turn, forwarded=forwarded, sent=_sent_code(mine, asked))
        if asked.send_from == USER or (forwarded and work.execution and not report_texts.lost_output(work.execution)):
            self._keep_answer(work, turn)
        post = self._report(work, asked.send_from)
        if mine.changes:
            post = post.with_attachments([changes_attachment(mine.changes)])
        mine.history.mark_read(post)
        return post

    def run_code(self, code: str, *, turn: Turn, send_to: str) -> Post:
        """Check code that the model has not written, run it as it stands, and report; nothing is corrected.

        Args:
            code: Python.
            turn: As in `reply`.
            send_to: Who gets the report.

        Raises:
            RoundInterrupted: the round was stopped.
            RoundTimedOut: the round's time is over.
        """
        work, cells = TaskProgress(code=code), self._open_cell_runner(turn.folder)
        self._check_and_approve(work, turn)
        if not work.findings:
            self._run(work, cells, turn)
            self._keep_answer(work, turn)
        return self._report(work, send_to)

    def run_check(self, code: str, *, turn: Turn) -> tuple[bool | None, str]:
        """Run a check of a result like any other cell, and undo what it does to variables; see `CheckRunner`.

        Args:
            code: Python that raises an AssertionError where the result is wrong.
            turn: As in `reply`.

        Raises:
            RoundInterrupted: the round was stopped.
            RoundTimedOut: the round's time is over.
        """
        work, cells = TaskProgress(code=code), self._open_cell_runner(turn.folder)
        if isinstance(cells.kernel, AttachedKernel):
            return None, "in the kernel of a notebook no cell can be undone"
        self._check_and_approve(work, turn)
        if work.findings:
            return None, "; ".join(map(str, work.findings))
        seconds = turn.seconds_left(self._settings.cell_seconds)
        return report_texts.check_outcome(cells.run(work.code, turn=turn, seconds=seconds, undo=True))

    def variables(self) -> tuple[Variable, ...]:
        """Return the variables that exist in the kernel now."""
        return self._cells.kernel.variables() if self._cells else ()

    def get_variable(self, name: str) -> Any:
        """Return a copy of a variable; see `KeepsVariables`."""
        if self._cells is None:
            raise KeyError(name)
        return self._cells.kernel.get(name)

    def put_variable(self, name: str, value: Any, *, folder: Path) -> None:
        """Make a variable; see `KeepsVariables`.

        Args:
            name: An identifier.
            value: Its value.
            folder: As of `Turn`.
        """
        self._open_cell_runner(folder).put(name, value)

    def interrupt(self) -> None:
        """Stop the running cell, keep variables."""
        if self._cells:
            self._cells.kernel.interrupt()

    def kill(self) -> None:
        """End the running cell with its kernel, if that is one that can be killed."""
        if self._cells and isinstance(self._cells.kernel, Killable):
            self._cells.kernel.kill()

    def close(self) -> None:
        """Close host-run plugins, and the kernel if this role made it."""
        self._states.clear()
        with contextlib.ExitStack() as stack:
            if self._cells and self._make:
                stack.callback(self._cells.kernel.close)
            if self._cells:
                stack.callback(self._cells.close)

    def compact(self, turn: Turn) -> None:
        """Summarize the chat histories before their last round, however short they are.

        Args:
            turn: Takes the events that say what became of them.
        """
        for mine in self._states.values():
            self._shorten_history(mine, turn, now=True)

    def kernel_in(self, folder: Path) -> Kernel:
        """Return the kernel, which is made for a folder if there is none yet.

        Args:
            folder: The session's.
        """
        return self._open_cell_runner(folder).kernel

    def _open_cell_runner(self, folder: Path) -> CellRunner:
        if self._cells is None:
            assert self._make is not None  # noqa: S101 - one of the two is always there; for the type checker
            kernel = self._make(folder)
            try:
                self._cells = self._cells_of(kernel, self._plugins)
            except BaseException:
                kernel.close()
                raise
            if len(self._cells.plugins) < len(self._plugins):
                self._offer_only(self._cells.plugins)
        return self._cells

    def _cells_of(self, kernel: Kernel, plugins: tuple[PluginSpec, ...]) -> CellRunner:
        return CellRunner(kernel, plugins, self._model, self._settings, later=self._later, distrusted=self._distrusted)

    def _offer_only(self, plugins: tuple[PluginSpec, ...]) -> None:
        self._plugins = plugins
        self._selection = ShownPlugins(plugins, self._settings, self._ranker)
        self.intro = "\n".join([introduction(self._policy, self._settings.max_tries), *self._selection.intro()])

    def _recall_examples(self, here: Round, asked: Post) -> tuple[Round, ...]:
        """Return the examples that belong into a history."""
        about = here.user_query or asked.message
        return self._recall.example_rounds([self.name, asked.send_from], about, plugin_only=self._policy.only_plugins)

    def _shorten_history(self, mine: PromptState, turn: Turn, *, now: bool = False) -> None:
        """Summarize what is old in a history that has grown too long; what is in it once only is added again then."""
        request = self._model_request(mine, turn)
        if self._recall.compress_history(mine.history, self._model, self.name, turn.emit, request, now=now):
            mine.forget()

    def _model_request(self, mine: PromptState, turn: Turn) -> ModelRequest:
        return turn.request(mine.history.messages, caller=self.name, seconds=self._settings.model_seconds)

    def _tell_task(self, mine: PromptState, asked: Post, turn: Turn) -> None:
        """Append the task to the prompt, and before it variables, plugins and lessons where they have changed."""
        there = self._open_cell_runner(turn.folder).kernel.variables()
        lessons = self._recall.lessons(self.name, f"{turn.round.user_query}\n{asked.message}", turn.emit)
        plugins = self._selection.task(mine.shown, mine.history, turn, asked.message, name=self.name)
        news = mine.variables.news(there)  # last, as what may fail must leave nothing noted as told
        forwarded = bool(asked.content(AttachmentType.then)) and not self._policy.only_plugins
        mine.tell_task(asked, turn.round, variables=news, plugins=plugins, lessons=lessons, forwarded=forwarded)

    def _write_and_run_code(
        self, mine: PromptState, cells: CellRunner, turn: Turn, *, forwarded: bool, sent: CodeReply | None
    ) -> TaskProgress:
        """Write, check and run code until it runs, or until the tries are used up.

        Args:
            mine: What the model has been told.
            cells: Where code runs.
            turn: As in `reply`.
            forwarded: The output goes to the user unseen, so that code was told to raise an error if there is no
                answer: a first error of this kind is reported, and not tried again.
            sent: The code that came with the task, in place of the model's first reply.
        """
        form = RequestedFormat.read(turn.round.user_query)
        work = TaskProgress(form=form, unworded=self._policy.only_plugins)
        limit, most = self._settings.report_chars, self._settings.max_tries
        while True:
            reply, sent = sent or self._ask_for_code(mine, turn), None
            _go_on(turn)
            work.thought, work.code = reply.thought, reply.code or ""
            if reply.code is None:
                work.findings, work.execution = [], None
                return work
            missing = self._selection.answer(mine.shown, reply.code)
            if missing:
                mine.history.append_user(missing)
                continue
            changed = self._check_and_approve(work, turn)
            if changed:
                mine.history.append_user(changed)
            if work.findings:
                work.refused += 1
                told = report_texts.findings_report(work.findings)
                mine.history.append_user(f"{told}\n{_MEND}")
                mine.history.results.note(told, code=work.code, ok=False, kept_as="")
                work.gave_up = work.refused > (1 if self._policy.only_plugins else most)
                if work.record_failure("\n".join(map(str, work.findings))) or work.gave_up:
                    return work
                continue
            execution = self._run(work, cells, turn)
            told = report_texts.execution_report(
                execution, execution.artifacts, limit, code=work.code, folder=work.folder
            )
            kept_as = report_texts.full_output_variable(execution, limit)
            mine.history.results.note(told, code=work.code, ok=execution.ok, kept_as=kept_as)
            mine.variables.note_code(work.code)
            there = {variable.name for variable in execution.variables}
            made = dict.fromkeys([*work.made, *mine.variables.fresh(execution.variables)])
            work.made = [name for name in made if name in there]
            if news := mine.variables.news(execution.variables):
                told += f"\nVariables, new or changed:\n{news}"
            looks = work.may_inspect_again(most)
            if execution.ok and looks:
                work.record_look(limit)
                mine.history.append_user(f"{told}\n{_LAST_LOOK if work.looked == most else _LOOKED}")
                continue
            if execution.ok:
                mine.history.append_user(told)
                return work
            work.failed += 1
            work.printed.append(execution.stdout)
            work.own_error = forwarded and work.failed == 1 and raised_by_cell(work.code, execution.error)
            mend = f"\n{_MEND}{_MEND_LOOK if looks else ''}"
            mine.history.append_user(told if work.own_error else f"{told}{mend}")
            work.gave_up = work.failed > most
            if work.record_failure(execution.error) or work.gave_up or work.own_error:
                return work

    def _check_and_approve(self, work: TaskProgress, turn: Turn) -> str:
        """Check the code against the policy, and have a person look at it where the settings say so.

        Returns:
            What the person changed, in words for the model; empty if nothing.
        """
        work.findings = self._check(work.code)
        turn.emit(CodeChecked(work.code, [str(finding) for finding in work.findings]))
        kernel = self._open_cell_runner(turn.folder).kernel
        when = kernel.approval if isinstance(kernel, AttachedKernel) else self._settings.approval
        if not asks_for(when, work.findings):
            return ""
        changed = approve_cell(self._approve, work, turn, self._check)
        _go_on(turn)
        return changed

    def _report(self, work: TaskProgress, send_to: str) -> Post:
        limit, attachments = self._settings.report_chars, work.attachments(self._settings.report_chars)
        if whole := work.whole_answer(send_to):
            attachments.append(Attachment(AttachmentType.answer, whole))
        return Post(self.name, send_to, work.message(limit, send_to), tuple(attachments))

    def _keep_answer(self, work: TaskProgress, turn: Turn) -> None:
        """Keep what code has printed for the user uncut; where it is too long for a chat, also as a file."""
        if work.execution is None or not work.execution.ok:
            return
        text = report_texts.output_text(
            work.execution, work.artifacts, _UNCUT_CHARS, form=work.form, folder=work.folder
        )
        if len(text) > self._settings.answer_chars and not is_json(text):
            folder = self.folder or turn.folder
            path, file = Artifact.open_new_file(folder, "answer.txt", "file")
            with file:
                file.write(text.encode("utf-8", "replace"))
            work.artifacts.append(Artifact(path.name, "file", path, f"all {len(text)} characters of the answer"))
            turn.emit(ArtifactSaved(path.name, "file", str(path), work.artifacts[-1].preview))
            head = text[: min(_BEGINNING_CHARS, self._settings.report_chars)]
            work.beginning = f"{head}\n… the whole answer, {len(text)} characters, is in {path.name}"
        work.answer = text

    def _check(self, code: str) -> list[Finding]:
        there = self.variables() if any(word in code for word in WORDS_FOR_DATA) else ()
        return verify(code, self._policy, plugins=self.plugin_names, variables=[one.name for one in there])

    def _run(self, work: TaskProgress, cells: CellRunner, turn: Turn) -> Execution:
        """Run the code, and note what came of it."""
        execution = cells.run(work.code, turn=turn, seconds=turn.seconds_left(self._settings.cell_seconds))
        _go_on(turn)
        work.execution = execution
        work.folder = cells.kernel.folder
        work.record_files(execution.artifacts)
        self._selection.ran(work.code)
        return execution

    def _ask_for_code(self, mine: PromptState, turn: Turn) -> CodeReply:
        growing = PostStream(turn, self.name, CodeStream)
        offered = [spec for spec in self._plugins if not self._selection.on or spec.name in mine.shown.names]
        tools = tools_of(offered) if self._policy.only_plugins else None
        taken = [variable.name for variable in self._open_cell_runner(turn.folder).kernel.variables()] if tools else []

        def once() -> tuple[CodeReply, Completion]:
            return ask(
                self._model,
                growing.request(self._model_request(mine, turn), tools=tools or None),
                mine.make_reply_reader(),
                tries=self._settings.tries,
                as_text=(lambda said: calls_as_text(said, offered, taken)) if tools else None,
                whole=True,
            )

        request = self._model_request(mine, turn)
        try:
            reply, completion = self._recall.ask_compressing(
                once, mine.history, self._model, self.name, turn.emit, request, shortened=mine.forget_in_task
            )
        except ModelError as error:
            if mine.history.withdraw_if_refused(error):
                mine.forget()
            raise
        if tokens := mine.history.track_prompt_tokens(completion.usage.prompt_tokens):
            turn.emit(PromptTruncatedByServer(self.name, tokens))
        return reply


def _sent_code(mine: PromptState, asked: Post) -> CodeReply | None:
    """Return the code that came with a task, and note it in the history as the reply to it; None if none came."""
    code = asked.content(AttachmentType.code)
    if not code.strip():
        return None
    mine.history.append_assistant(f"{_SENT}\n```python\n{code.strip()}\n```")
    return CodeReply(_SENT, code)


def _go_on(turn: Turn) -> None:
    """Stop here if the round was stopped or its time is over."""
    if turn.cancelled.is_set():
        raise RoundInterrupted("the round was stopped", round=turn.round)
    if turn.seconds_left(1.0) <= 0:
        raise RoundTimedOut("the round's time is over", round=turn.round)
