"""`EventPrinter`: a session's events as a person reads them: plan, thought, code, live output, files, answer."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable
from functools import singledispatchmethod
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.text import Text

from tw_autogen.cli.output_lines import OutputLines, head_and_tail, is_tabular, tail_of
from tw_autogen.cli.round_summary import NEW_HOOK, RoundSummary
from tw_autogen.cli.terminal import clean, highlighted, link, markdown, marks
from tw_autogen.conversation import AttachmentType, Plan, Post, Status
from tw_autogen.events import (
    ArtifactSaved,
    CellOutput,
    CellRan,
    CellStarted,
    CodeChecked,
    CompactionFailed,
    Event,
    HooksMade,
    ModelCalled,
    ModelDelayed,
    PlanChanged,
    PluginsSelected,
    PostClosed,
    PostGrew,
    PostOpened,
    RoundClosed,
    RoundOpened,
    SessionOpened,
)
from tw_autogen.lazy_module import LazyModule
from tw_autogen.session import USER, Saved, fence_printed_output
from tw_autogen.text_escaping import visible, visible_line

if TYPE_CHECKING:
    from rich import live, spinner
else:
    live = LazyModule("rich.live")  # only a terminal has a foot
    spinner = LazyModule("rich.spinner")

_TERSE = ("send_to", "then", "stop")  # fields of the Planner's reply that are single words, no text that grows
_OUTPUT_LINES, _RESULT_LINES, _MESSAGE_LINES = (30, 10), (12, 6), (8, 0)
"""How many lines of the head and of the tail are shown."""
_FORWARDED_LINES = (4, 1)
"""The same of output that is going to be the answer, and is shown as such."""
_ERROR_LINES = 12
_CALL = re.compile(r"^[ \t]*<(?:tool_calls?|function_calls?|code|python|execute)\b.*", re.I | re.M | re.S)
_LINES = 6


class EventPrinter:
    """A handler of events that prints what happens, as it happens, and never the same thing twice.

    Args:
        console: Where to; on a terminal the growing words and the seconds move at its foot.
        question: Whether the user's words are printed; a chat has them at its prompt.
        answer: Whether the answer is printed; False where somebody else prints it.
        files: Whether files are named as they come; False where they won't stay there.
        hint: How to see all of an output that was cut, with the cell's number in place of `{}`; empty: not said.
    """

    def __init__(
        self, console: Console, *, question: bool = False, answer: bool = True, files: bool = True, hint: str = ""
    ) -> None:
        self.tally = RoundSummary()
        self.shown_code = ""
        """The code that was printed last; who asks about it need not print it again."""
        self._hint = hint
        self.opened: SessionOpened | None = None
        self._console = console
        self._marks = marks(console)
        self._question, self._answer, self._files = question, answer, files
        self._foot = LiveFooter(console)
        self._lock = threading.RLock()  # words grow on the model's thread, cells write on the session's
        self._begin_round()

    def __call__(self, event: Event) -> None:
        """Take one event."""
        with self._lock:
            self.tally(event)
            self._show_event(event)

    def stop(self) -> None:
        """Take away what moves at the foot; for a round that may have ended without `RoundClosed`."""
        with self._lock:
            self._foot.stop()

    def resume(self) -> None:
        """Show again what moves at the foot, after `stop` in the middle of a round."""
        with self._lock:
            self._foot.start()

    def _begin_round(self) -> None:
        self._plan: Plan | None = None
        self._speaker = self._headed = ""
        self._grown: dict[str, str] = {}
        self._replied = False
        self._output = OutputLines(*_OUTPUT_LINES)
        self._known_files: set[str] = set()
        self._words = ""
        self._posts: list[Post] = []
        self._forwarded = False

    def say(self, message: str) -> None:
        """Print a line about the session, hidden characters as escapes."""
        self._console.print(Text(visible_line(message), style="dim"), soft_wrap=True)

    def warn(self, message: str) -> None:
        """Print a line about something that the answer does not say."""
        self._console.print(Text(f"! {visible(message)}", style="yellow"), soft_wrap=True)

    def saved(self, files: Iterable[Saved], *, quiet: bool = False) -> None:
        """Print where files of the answer were copied to.

        Args:
            files: What came of each.
            quiet: Print only what the answer can't know: another name than the file's own, and failures.
        """
        for file in files:
            if file.path is None:
                line = Text.assemble((f"{self._marks.failed} not saved: {clean(file.problem)}; it is ", "yellow"))
                line.append_text(link(file.source))
            elif not quiet or file.path.name != file.source.name:
                line = Text.assemble("saved ", link(file.path))
                if file.path.name != file.source.name:
                    line.append(f": there is another {clean(file.source.name)}")
            else:
                continue
            self._console.print(line, soft_wrap=True)

    @singledispatchmethod
    def _show_event(self, event: Event) -> None:
        """Print the warning or the line of an event, as `Event` defines them; nothing of one that has neither."""
        if event.warning:
            self.warn(event.warning)
        if event.line:
            self._print(Text(f"{self._marks.dot} {clean(event.line)}", style="dim"))

    # Each names its event: from the annotation it would be found in 0.5 ms.

    @_show_event.register(SessionOpened)
    def _session_opened(self, event: SessionOpened) -> None:
        self.opened = event
        self._console.print(Text(f"code runs in: {clean(event.kernel)}", style="dim"))

    @_show_event.register(RoundOpened)
    def _round_opened(self, event: RoundOpened) -> None:
        self._begin_round()
        if self._question:
            self._console.print()
            self._console.print(Text(f"> {clean(event.user_query)}", style="bold"))
        self._foot.doing("starting")
        self._foot.start()

    @_show_event.register(HooksMade)
    def _hooks_made(self, event: HooksMade) -> None:
        for path in event.paths:
            self._console.print(Text.assemble((f"! {NEW_HOOK}", "yellow"), link(Path(path))), soft_wrap=True)

    @_show_event.register(PostOpened)
    def _post_opened(self, event: PostOpened) -> None:
        self._speaker, self._grown, self._replied = event.send_from, {}, False
        self._show_thinking()

    @_show_event.register(PostGrew)
    def _post_grew(self, event: PostGrew) -> None:
        if self._replied:  # another reply of the same role: it was asked again, or this is its next try
            self._grown, self._replied = {}, False
            self._show_thinking()
        self._grown[event.part] = self._grown.get(event.part, "") + event.text
        if event.part not in _TERSE:
            self._foot.grow(self._grown[event.part])

    @_show_event.register(ModelCalled)
    def _model_called(self, event: ModelCalled) -> None:
        self._replied = self._replied or event.caller == self._speaker

    @_show_event.register(ModelDelayed)
    def _model_delayed(self, event: ModelDelayed) -> None:
        self._print_speaker(event.caller)
        self._print(Text(f"{self._marks.dot} {clean(event.reason)}", style="yellow"))

    @_show_event.register(PluginsSelected)
    def _plugins_selected(self, event: PluginsSelected) -> None:
        self._print_speaker(event.role)
        self._print(Text(f"Selected plugins: {event.selected}", style="dim"))
        self._print(Text(f"Selected plugin pool: {event.pool}", style="dim"))

    @_show_event.register(CompactionFailed)
    def _compaction_failed(self, event: CompactionFailed) -> None:
        message = (
            f"no summary of {event.role}'s history ({event.tokens} tokens), it stays as it is: {clean(event.error)}"
        )
        self._print(Text(f"{self._marks.failed} {message}", style="yellow"))

    @_show_event.register(CodeChecked)
    def _code_checked(self, event: CodeChecked) -> None:
        self._print_speaker(self._speaker)
        self.shown_code = ""
        thought = clean(_without_code(self._grown.pop("thought", ""), event.code)).strip()
        if thought:
            self._print(Text(thought))
        code = highlighted(visible(event.code).expandtabs(4).strip("\n"), self._console)
        for line in code.split("\n"):  # whole: approvals rely on it
            self._print(Text.assemble((f"{self._marks.code} ", "dim"), line), whole=True)
        for finding in event.findings:
            self._print(Text(f"{self._marks.failed} not run: {visible(finding)}", style="red"))
        self.shown_code = event.code
        self._show_thinking()

    @_show_event.register(CellStarted)
    def _cell_started(self, event: CellStarted) -> None:
        self._output = OutputLines(*(_FORWARDED_LINES if self._forwarded else _OUTPUT_LINES))
        self._foot.doing(self._with_plan_step(f"running cell {event.cell}"))

    @_show_event.register(CellOutput)
    def _cell_output(self, event: CellOutput) -> None:
        for line in self._output.feed(event.stream, event.text):
            self._print_output(event.stream, line)
        self._foot.grow(self._output.unfinished(event.stream))

    @_show_event.register(CellRan)
    def _cell_ran(self, event: CellRan) -> None:
        if not self._output.fed:  # a kernel that can't tell while it runs
            for stream, text in (("stdout", event.stdout), ("stderr", event.stderr)):
                self._cell_output(CellOutput(event.cell, stream, text))
        for stream, line in self._output.rest():
            self._print_output(stream, line)
        cut = bool(self._output.hidden_line_count)
        if event.result is not None:
            result = head_and_tail(event.result, *_RESULT_LINES)
            cut = cut or result.count("\n") < event.result.strip("\n").count("\n")
            indented = result.replace("\n", "\n  ")  # a table's columns stay in line
            self._print(Text.assemble((f"{self._marks.to} ", "dim"), indented))
        if cut and self._hint:
            self._print(Text(f"all of it: {self._hint.format(event.cell)}", style="dim"))
        if not event.ok:
            self._print(Text(tail_of(event.error, _ERROR_LINES), style="red"))
        lost = "; its kernel has ended" if event.state_lost else ""
        headline = f"cell {event.cell}{'' if event.ok else ' failed'}{lost} {self._marks.dot} {event.seconds:.1f} s"
        mark, style = (self._marks.done, "green") if event.ok else (self._marks.failed, "red")
        self._print(Text(f"{mark} {headline}", style=style))
        self._show_thinking()

    @_show_event.register(ArtifactSaved)
    def _artifact_saved(self, event: ArtifactSaved) -> None:
        if self._files and event.path not in self._known_files:
            self._known_files.add(event.path)
            self._print(Text.assemble("file ", link(Path(event.path))))

    @_show_event.register(PlanChanged)
    def _plan_changed(self, event: PlanChanged) -> None:
        signs = {
            Status.done: (self._marks.done, "green"),
            Status.current: (self._marks.current, "bold"),
            Status.pending: (self._marks.pending, "dim"),
        }
        for step in event.plan.changed_since(self._plan):
            self._print_speaker(event.role)
            mark, style = signs[step.status]
            self._print(Text(f"{mark} {step.id}. {visible(step.text)}", style=style))
        self._plan = event.plan

    @_show_event.register(PostClosed)
    def _post_closed(self, event: PostClosed) -> None:
        post = event.post
        self._posts.append(post)
        if post.send_to == USER:
            self._words = post.message
        self._forwarded = post.content(AttachmentType.then) == USER
        if problem := post.content(AttachmentType.invalid_response):
            self.warn(f"the answer may be wrong: {problem}")
        has_code = post.attachment(AttachmentType.reply_content) is not None  # then its cells have been seen
        if USER not in (post.send_from, post.send_to) and not has_code:
            self._print_speaker(post.send_from)
            text = head_and_tail(post.message, *_MESSAGE_LINES)
            self._print(Text.assemble((f"{self._marks.to} {post.send_to}: ", "dim"), text))

    @_show_event.register(RoundClosed)
    def _round_closed(self, event: RoundClosed) -> None:
        self._foot.stop()
        if event.error:
            why = event.error.removeprefix(f"{event.round_id}: ")  # which round it was can be seen
            self._console.print(Text(f"{self._marks.failed} {clean(why)}", style="red"))
        elif self._answer:
            text = self._words or event.answer  # of a long answer the beginning, and which file has all
            self._console.print()
            if not clean(text).strip():
                self._console.print(Text("(The answer is empty.)", style="dim"))
            else:
                on_screen = self._console.is_terminal
                self._console.print(
                    markdown(fence_printed_output(text, self._posts)) if on_screen else Text(clean(text))
                )
            self._console.print()
        self._console.print(Text(self.tally.line(self._marks.dot), style="dim"), soft_wrap=True)

    def _print_output(self, stream: str, line: str) -> None:
        self._print(Text(line, style="yellow" if stream == "stderr" else ""))

    def _print(self, text: Text, whole: bool = False) -> None:
        for line in text.split("\n", allow_blank=True):  # one by one: a block would be padded to its longest line
            if not whole and is_tabular(line.plain):  # cut at the edge: its columns stay in line
                line.no_wrap, line.overflow = True, "ellipsis"
            self._console.print(Padding(line, (0, 0, 0, 2), expand=False))

    def _print_speaker(self, role: str) -> None:
        """Name who speaks, once until somebody else does."""
        if role and role != self._headed:
            self._headed = role
            self._console.print(Text(role, style="bold cyan"))

    def _show_thinking(self) -> None:
        self._foot.doing(self._with_plan_step(f"{self._speaker} is thinking"))

    def _with_plan_step(self, doing: str) -> str:
        steps = self._plan.steps if self._plan else ()
        position = next((number for number, step in enumerate(steps, 1) if step.status is Status.current), 0)
        return f"step {position} of {len(steps)} {self._marks.dot} {doing}" if position else doing


def _without_code(thought: str, code: str) -> str:
    """Return the words around code that came without a fence, or as a call in tags, and grew as words."""
    return _CALL.sub("", thought.replace(code.strip(), "") if code.strip() else thought)


class LiveFooter:
    """The lines below all that is printed for good; on anything but a terminal there are none.

    Printed text scrolls above them and is never painted again; they vanish with `stop`.

    Args:
        console: Where to.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._marks = marks(console)
        self._spinner: spinner.Spinner | None = None
        self._live: live.Live | None = None
        self._since = time.monotonic()
        self._doing = ""
        self._growing = ""

    def start(self) -> None:
        """Appear."""
        if self._console.file.isatty() and not self._console.is_dumb_terminal and self._live is None:
            self._live = live.Live(self, console=self._console, transient=True, refresh_per_second=8)
            self._live.start()

    def stop(self) -> None:
        """Vanish; a second time nothing happens."""
        if self._live is not None:
            shown, self._live = self._live, None
            shown.stop()

    def doing(self, text: str) -> None:
        """Show who does what; the clock restarts when the words change."""
        if text != self._doing:
            self._doing, self._since = text, time.monotonic()
        self._growing = ""

    def grow(self, text: str) -> None:
        """Show the end of this text, which is still growing."""
        self._growing = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw: at most six lines of growing text, then the spinner with the seconds."""
        for line in clean(self._growing[-4000:]).rstrip().splitlines()[-_LINES:]:
            yield Text(f"  {line}", style="dim", no_wrap=True, overflow="ellipsis")
        if self._doing:
            seconds = f"{time.monotonic() - self._since:.1f} s"
            self._spinner = self._spinner or spinner.Spinner(self._marks.spinner)
            self._spinner.update(text=Text(f"{self._doing} {self._marks.dot} {seconds}", style="dim", no_wrap=True))
            yield self._spinner
