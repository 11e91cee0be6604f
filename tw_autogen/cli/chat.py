"""`Chat`: question after question in one session, at a terminal."""

from __future__ import annotations

import logging
import os
import shlex
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from tw_autogen.cli.answer_warnings import answer_warnings
from tw_autogen.cli.approval_prompt import ApprovalPrompt
from tw_autogen.cli.event_printer import EventPrinter
from tw_autogen.cli.exit_codes import Exit
from tw_autogen.cli.file_arguments import find_file, named_files
from tw_autogen.cli.options import Options
from tw_autogen.cli.request_input import RequestInput
from tw_autogen.cli.round_summary import money, short, tokens
from tw_autogen.cli.session_opening import copy_files_of_answers, lines_of_resumed, model_lines, open_session_for
from tw_autogen.cli.sessions import session_line
from tw_autogen.cli.signals import StopSignals, Terminated
from tw_autogen.cli.terminal import clean, link
from tw_autogen.cli.terminal_pictures import TerminalPictures
from tw_autogen.cli.trust_prompt import ask_for_trust
from tw_autogen.cli.unresponsive_cell import UnresponsiveCell
from tw_autogen.conversation import RoundState
from tw_autogen.errors import ConfigError, RoundError, RoundInterrupted, SessionClosedError, TwAutogenError
from tw_autogen.events import HistoryCompacted
from tw_autogen.kernel import KernelSettings
from tw_autogen.lazy_module import import_soon
from tw_autogen.picture_files import PictureReader
from tw_autogen.plural import pluralize
from tw_autogen.safe_folder import SafeFolder, temporary_folder
from tw_autogen.session import (
    Answer,
    Session,
    compact_session,
    export_session,
    fork_session,
    past_sessions,
    read_settings,
    session_folder,
)
from tw_autogen.setting_values import Setting
from tw_autogen.svg_sanitizer import UnsafeSvgError
from tw_autogen.text_escaping import visible, visible_line

_PROMPT = "> "
_OF_FIRST_QUESTION = ("rich.live", "rich.spinner", "pydantic_core", "httpcore", "certifi")
"""What is imported while the user types it."""
_log = logging.getLogger(__name__)
_OPENED = {
    **{".gif": b"GIF8", ".jpeg": b"\xff\xd8\xff", ".jpg": b"\xff\xd8\xff", ".pdf": b"%PDF-", ".png": b"\x89PNG\r\n"},
    **{".xlsx": b"PK\x03\x04", ".svg": b""},
    **dict.fromkeys((".csv", ".json", ".md", ".tsv", ".txt")),
}
"""What is opened, with what it must begin: a desktop may go by what a file holds, which code chose. None: text."""
_TEXT_BYTES = 4096
_LEAVE = ("/exit", "/quit", "exit", "quit", ":q")
_FORCE = "--force"
_NOT_WANTED = "it was cut off, and the user did not resume it"
_HELP = ("/?", "?", "help")
_ROOM_LINES = 4
"""How many lines of a terminal stay free where output is printed, not paged."""
_SECOND_PRESS_SECONDS = 2.0
"""How long after the prompt is back a second Ctrl-C leaves; a later one is a first one again."""


class Chat:
    """A read-ask-print loop; Ctrl-C stops what runs and keeps the session, Ctrl-D leaves.

    Args:
        options: What the shared options said.
        files: Go with the first question.
        console: Where it is shown.
    """

    def __init__(self, options: Options, files: Sequence[Path], console: Console) -> None:
        self._options = options
        self._files = list(files)
        self._console = console
        self._show = EventPrinter(self._console, hint="/output {}")
        self._pictures = TerminalPictures(self._console)
        self._asker = ApprovalPrompt(self._console, self._show)
        self._session: Session
        self._unresponsive = UnresponsiveCell(self._asker, patience_seconds=0.0, comes_back=False)
        self._copies: list[Path] = []
        self._left = False
        self._commands: dict[str, tuple[str, Callable[[str], None]]] = {
            "/help": ("this list", self._help),
            "/files": ("PATH...  attach files to the next question", self._attach_files),
            "/output": (
                "[CELL]  all that a cell of the last answer has printed; default: the newest",
                self._show_output,
            ),
            "/open": ("[NAME]  open a file of the last answer in its program; default: the newest", self._open_file),
            "/defined": ("your definitions in this session, and which are in force", self._show_definitions),
            "/info": ("session, folder, roles, plugins, variables, tokens", self._show_info),
            "/save": (
                "[ROLE] FILE  write this session as an example for ROLE's prompts; default: Planner",
                self._save_example,
            ),
            "/learn": (
                "[FOLDER]  let the model write a lesson for later sessions; default: in the folder recall.experience",
                self._save_lesson,
            ),
            "/export": (
                "FILE [--force]  write this session as .ipynb, .py (a program), .md or .html; --force replaces FILE",
                self._export,
            ),
            "/resume": ("[ID]  resume another session; without ID: list them", self._resume),
            "/fork": ("continue in a copy of this session; this one stays as it is", self._fork),
            "/model": ("[NAME]  show the model; with NAME: change it", self._show_or_change_model),
            "/cost": ("tokens, money and seconds of this session", self._show_cost),
            "/clear": ("forget the conversation; variables and files stay", self._clear),
            "/compact": (
                "replace the conversation before the last question by a summary",
                self._compact,
            ),
            "/reset": ("begin a new session, without conversation and variables", self._reset),
            "/interrupt": ("how to stop what is running", self._explain_interrupt),
            "/exit": ("leave; so do Ctrl-D, and Ctrl-C twice", self._leave),
        }

    def run(self) -> Exit:
        """Ask until the user leaves.

        Raises:
            ConfigError: the session can't be opened.
        """
        ask_for_trust(self._options, self._console)
        if self._asker.somebody and not self._options.attach:
            self._options = self._with_question(self._options)
        self._session = self._open_session(self._options)
        self._options = replace(self._options, continues=False, resume=None, rerun=False)
        try:
            self._introduce_resumed_session()
            import_soon(*_OF_FIRST_QUESTION)
            self._loop(RequestInput(_PROMPT, list(self._commands), self._options.project))
        finally:
            self._session.close()
            self._say("The session's folder: ", self._session.folder)
            if self._session.rounds:
                self._say(f"Go on with it: tw-autogen --resume {self._session.id}")
        return Exit.done

    def _with_question(self, options: Options) -> Options:
        """Return options with which a cell that reacts to no interrupt runs on until the user is asked."""
        own = "the chat"
        read = read_settings(options.keywords, project=options.project, trust=options.trust)
        more = {"kernel.end_unresponsive": Setting(False, own)}
        kept = read.origin("kernel.checkpoint_seconds") == read.DEFAULT
        kernel = read.read("kernel", KernelSettings)
        self._unresponsive = UnresponsiveCell(
            self._asker,
            patience_seconds=kernel.grace_seconds,
            comes_back=kept or kernel.checkpoint_seconds > 0,
        )
        return replace(options, more=more)

    def _open_session(self, options: Options) -> Session:
        approve = self._asker.approve if self._asker.somebody else None
        session = open_session_for(options, [self._show, self._unresponsive], self._show.say, approve)
        copy_files_of_answers(session, self._options)
        return session

    def _introduce_resumed_session(self) -> None:
        """Print what a resumed session has, and ask whether to resume a request that was cut off."""
        lines, warnings = lines_of_resumed(self._session)
        for line in lines:
            self._say(line)
        for line in warnings:
            self._show.warn(line)
        here = self._session.cut_off
        if here is None:
            return
        self._say(f"its last request was cut off: {visible_line(here.user_query)}")
        if not self._asker.somebody:
            return
        if self._asker.confirm("Go on with it? [y/N] ", threading.Event()):
            self._answer(self._session.go_on, here.user_query, [])
        else:  # the question is asked once: neither a copy nor a later chat asks it again
            self._session.close_round(RoundState.failed, reason=_NOT_WANTED)

    def _loop(self, prompt: RequestInput) -> None:
        pressed = False  # Ctrl-C on an empty line, and nothing since
        while not self._left:
            shown_at = time.monotonic()
            try:
                line = prompt.read().strip()
            except EOFError:
                self._console.print()
                return
            except Terminated:
                raise
            except KeyboardInterrupt:
                self._console.print()
                if pressed and time.monotonic() - shown_at <= _SECOND_PRESS_SECONDS:
                    return
                pressed = True
                self._say("Ctrl-C again, or Ctrl-D, to leave", style="dim")
                continue
            pressed = False
            word, _, rest = line.partition(" ")
            if line.lower() in _LEAVE:
                word, rest = "/exit", ""
            if line.lower() in _HELP:
                word, rest = "/help", ""
            if word in self._commands:
                self._run_command(word, rest.strip())
            elif word.startswith("/") and "/" not in word[1:]:
                self._say(f"there is no {word}; /help lists the commands", style="red")
            elif line:
                self._ask(line)

    def _run_command(self, word: str, rest: str) -> None:
        """Carry out a command; whatever error it ends with is shown, and the chat goes on."""
        try:
            self._commands[word][1](rest)
        except Terminated:
            raise
        except KeyboardInterrupt:
            self._say("stopped")
        except Exception as error:  # noqa: BLE001 - a defect of a command must not cost the session
            known = isinstance(error, TwAutogenError | OSError)
            self._say(f"{word}: {error}" if known else f"{word} failed: {type(error).__name__}: {error}", style="red")
            _log.debug("%s", word, exc_info=True)

    def _ask(self, text: str) -> None:
        named, missing = named_files(text, self._options.project)
        for file in missing:
            self._say(f"not attached: {file.problem_sentence}", style="yellow")
        files, self._files = [*self._files, *(path for path in named if path not in self._files)], []
        self._answer(lambda: self._session.ask(text, files), text, files)

    def _answer(self, ask: Callable[[], Answer], text: str, files: list[Path]) -> None:
        def stop() -> None:
            self._asker.stop()
            asks = self._asker.somebody and not signals.terminated
            self._unresponsive.stop(self._session, asks=asks, reason=signals.reason)

        signals = StopSignals(
            stop,
            harder=lambda: self._unresponsive.kill(self._session),
            can_harder=lambda: self._unresponsive.running,
        )
        try:
            self._asker.begin()
            with signals:
                answer = ask()
            self._show.stop()
            if self._session.landing is not None:
                self._show.saved(self._session.landing.land(answer.artifacts, text, earlier=self._session.artifacts))
            for warning in answer_warnings(self._session, answer):
                self._show.warn(warning)
            self._pictures.show(answer.artifacts, self._session.folder)
        except Terminated:
            raise
        except (RoundInterrupted, KeyboardInterrupt):
            if signals.terminated:
                raise Terminated(signals.terminated) from None
            self._say(f"stopped; {self._what_is_left()}")
        except RoundError:
            pass  # the end of the round has said it
        except SessionClosedError as error:
            self._say(f"{error}: /reset", style="red")
        except ConfigError as error:  # one of the files was refused: the next question goes without them
            self._say(f"{error}{'; the next question has no attached files' if files else ''}", style="red")
        except (TwAutogenError, OSError) as error:
            self._files = files
            self._say(str(error), style="red")
        finally:
            self._show.stop()

    def _what_is_left(self) -> str:
        """Return what became of the variables in a round that was stopped; brings back those that can be."""
        if not self._show.tally.state_lost:
            return "variables kept"
        known = {line.partition(":")[0] for line in self._show.tally.before_loss}
        try:
            back = {variable.name for variable in self._session.code_variables()}
        except TwAutogenError as error:
            return f"the kernel was ended with all variables: {error}"
        lost = f"; lost: {', '.join(sorted(known - back))}" if known - back else ""
        if not back:
            return f"the kernel was ended{lost}"
        return f"the kernel was ended, and variables came back: {', '.join(sorted(back))}{lost}"

    def _leave(self, rest: str) -> None:
        self._left = True

    def _help(self, rest: str) -> None:
        for name, (help_text, _) in self._commands.items():
            self._say(f"  {name:<11} {help_text}")

    def _attach_files(self, rest: str) -> None:
        for file in [find_file(name, self._options.project) for name in _split(rest)]:
            if file.path is None:
                self._say(file.problem_sentence, style="red")
            elif file.path not in self._files:
                self._files.append(file.path)
        files = ", ".join(map(str, self._files)) or "no files; name some: /files sales.csv"
        self._say(f"with the next question: {files}")

    def _show_info(self, rest: str) -> None:
        session, show, asked = self._session, self._show, len(self._session.rounds)
        self._say(f"session    {session.id}, {pluralize(asked, 'question')}")
        self._say("files      ", session.folder)
        self._say("journal    ", session.journal)
        if show.opened is not None:
            self._say(f"code runs  {session.where}")
            self._say(f"roles      {', '.join(show.opened.roles)}")
            self._say(f"plugins    {', '.join(show.opened.plugins) or 'none; add with --plugins'}")
        for number, variable in enumerate(session.code_variables()):  # also of the session that this one resumes
            self._say(f"{'variables' if number == 0 else '':<10} {visible_line(str(variable))}")
        self._show_cost("")

    def _show_cost(self, rest: str) -> None:
        usage = self._session.usage
        spent = tokens(usage) if usage.calls else "none yet"
        self._say(f"tokens     {spent.removeprefix('tokens ')}")
        cost = "unknown; model.prices sets prices" if usage.dollars is None else money(usage.dollars)
        self._say(f"cost       {cost}")
        if earlier := self._session.earlier:  # what of it is known, in and out together
            before = [round_.spent for round_ in earlier.rounds]
            count, dollars = (sum(spent.get(what, 0) for spent in before) for what in ("tokens", "dollars"))
            price = f", {money(dollars)}" if dollars else ""
            self._say(f"before     {short(int(count))} tokens{price}, until this session was opened again")
        took = self._session.seconds
        self._say(f"seconds    model {took.model:.1f}, kernel {took.kernel:.1f}, other {took.own:.1f}")

    def _show_definitions(self, rest: str) -> None:
        self._say(visible(self._session.definitions.describe()) or "nothing has been defined")

    def _show_output(self, rest: str) -> None:
        cells = {str(cell["cell"]): cell for cell in self._show.tally.cells}
        if not cells:
            self._say("no code ran for the last answer")
            return
        cell = cells.get(rest or list(cells)[-1])
        if cell is None:
            self._say(f"no cell {rest}; the last answer has {', '.join(cells)}", style="red")
            return
        parts = (cell["stdout"], cell["stderr"], cell["result"] or "", cell["error"])
        text = "\n".join(visible(clean(part)).rstrip("\n") for part in parts if part)
        if text.count("\n") + _ROOM_LINES < self._console.height:
            self._console.print(Text(text))
        else:
            click.echo_via_pager(f"{text}\n")

    def _open_file(self, rest: str) -> None:
        paths = {path.name: path for path in map(Path, self._show.tally.artifacts)}
        if not paths:
            self._say("the last answer has no files")
            return
        path = paths.get(rest.strip("'\"") or list(paths)[-1])
        if path is None:
            self._say(f"no file {rest}; the last answer has {', '.join(paths)}", style="red")
            return
        copy = self._private_copy(path) if path.suffix.lower() in _OPENED else None
        if copy is None:
            self._say("code made it, and opening it could run something; look at it yourself: ", path)
        elif click.launch(str(copy)) != 0:
            self._say("no program to open it was found: ", path)

    def _private_copy(self, path: Path) -> Path | None:
        """Copy a file of the session's folder to where code can't exchange it; None if it is not what it is called.

        None, too, if it is reached over a link. An SVG is written anew, without what a browser would run or load. A
        name that can't all be seen is not the copy's.
        """
        suffix = path.suffix.lower()
        name = path.name if visible_line(path.name) == path.name else f"open{suffix}"
        try:
            with SafeFolder(self._session.folder) as folder, folder.open_file(folder.name_of(path)) as file:
                source = BytesIO(PictureReader().read(path)[1]) if suffix == ".svg" else file
                begins, first = _OPENED[suffix], source.read(_TEXT_BYTES)
                source.seek(0)
                if first[:2] == b"#!" or b"\0" in first if begins is None else not first.startswith(begins):
                    return None
                self._copies.append(temporary_folder())
                with SafeFolder(self._copies[-1]) as private:
                    private.copy_in(source, name, mode=0o400)
        except (OSError, UnsafeSvgError):
            return None
        return self._copies[-1] / name

    def _save_example(self, rest: str) -> None:
        arguments = _split(rest)
        if not 1 <= len(arguments) <= 2:
            self._say("name the file: /save examples/odd_days.yaml, or /save CodeInterpreter …", style="red")
            return
        path = self._session.save_example(arguments[-1], arguments[0] if len(arguments) == 2 else "Planner")
        self._say("an example, which you may edit: ", path)

    def _save_lesson(self, rest: str) -> None:
        folder = " ".join(_split(rest))
        self._say("the model is asked for a lesson; Ctrl-C stops it")
        self._say("a lesson, which you may edit: ", self._session.save_experience(folder or None))

    def _reset(self, rest: str) -> None:
        fresh = self._open_session(self._options)
        self._say("a new session; the old one's folder: ", self._session.folder)
        self._switch_to_session(fresh)

    def _export(self, rest: str) -> None:
        arguments = _split(rest)
        names = [word for word in arguments if word != _FORCE]
        if len(names) != 1:
            self._say("name the file: /export analysis.ipynb (or .py, .md, .html)", style="red")
            return
        file = Path(os.path.expanduser(names[0]))
        self._say("written: ", export_session(self._session.journal.parent, file, replace=_FORCE in arguments))

    def _resume(self, rest: str) -> None:
        workspace = self._session.journal.parent.parent
        if not rest:
            for session in past_sessions(workspace):
                self._say(session_line(session))
            return
        folder = session_folder(rest, workspace)
        if folder.absolute() == self._session.journal.parent.absolute():
            raise ConfigError(f"{folder.name} is the session that you are in")
        self._switch_to_session(self._open_session(replace(self._options, resume=str(folder))))
        self._introduce_resumed_session()

    def _fork(self, rest: str) -> None:
        self._reopen_session(lambda: fork_session(self._session.journal.parent, **self._of_copy()))

    def _clear(self, rest: str) -> None:
        self._reopen_session(lambda: fork_session(self._session.journal.parent, words=False, **self._of_copy()))
        self._say("the conversation is forgotten; variables and files stay")

    def _of_copy(self) -> dict[str, Any]:
        return {"trust": self._options.trust, "limit_mb": self._session.grants.settings.disk_mb}

    def _compact(self, rest: str) -> None:
        self._say("the model summarizes what is long enough; Ctrl-C stops it")
        found = compact_session(self._session)
        for event in found:
            if isinstance(event, HistoryCompacted):
                less = 100 * (event.tokens_before - event.tokens_after) / max(1, event.tokens_before)
                self._say(
                    f"{event.role}: about {event.tokens_before} tokens, now {event.tokens_after} ({less:.0f} % less)"
                )
            else:
                self._say(
                    f"{event.role}: stays at about {event.tokens} tokens: {visible_line(event.error)}", style="red"
                )
        if not found:
            self._say("there is too little before the last question to be worth a summary")

    def _show_or_change_model(self, rest: str) -> None:
        if not rest:
            for line in model_lines(self._session):
                self._say(line)
            return
        sets = (f"{key}={rest}" for key in ("model.name", "planner.model", "code_interpreter.model"))
        self._reopen_session(lambda: self._session.journal.parent, sets=(*self._options.sets, *sets))

    def _switch_to_session(self, other: Session) -> None:
        """Close the session, and resume another one, which is open."""
        self._session.close()
        self._session = other
        self._asker.forget()

    def _reopen_session(self, folder_of: Callable[[], Path], **options: Any) -> None:
        """Close the session and go on with a copy, or other options; with the same again, as it was, if that fails.

        Args:
            folder_of: Returns the folder to go on in; called when the session is closed.
            options: Fields of `Options` that have other values from now on.
        """
        self._session.close()
        own, changed = self._session.journal.parent, replace(self._options, **options)
        try:
            self._session = self._open_session(replace(changed, resume=str(folder_of())))
        except BaseException:  # a full disk, or Ctrl-C
            self._session = self._open_session(replace(self._options, resume=str(own)))
            raise
        self._options = changed
        self._asker.forget()
        self._introduce_resumed_session()

    def _explain_interrupt(self, rest: str) -> None:
        self._say("Ctrl-C stops the running cell or the model, and keeps session and variables; nothing runs now")

    def _say(self, message: str, path: Path | None = None, *, style: str = "") -> None:
        """Print a line, with a path that can be clicked at its end."""
        line = Text.assemble((visible(message), style), link(path) if path else "")
        self._console.print(line, soft_wrap=True)


def _split(rest: str) -> list[str]:
    """Return the arguments of a command, which may stand in quotes.

    Raises:
        ConfigError: a quote is not closed.
    """
    try:
        return shlex.split(rest)
    except ValueError as error:
        raise ConfigError(f"{rest}: {str(error).lower()}") from None
