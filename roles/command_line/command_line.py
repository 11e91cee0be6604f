"""CommandLine: one shell command for a task, approved by a person, run in the sandbox of generated code."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tw_autogen import Approve, ChatModel, Execution, Kernel, Memory, Post, Proposal, Role, Turn, decide

_FENCE = re.compile(r"```(\w*)[^`]*$")
_SHELLS = ("sh", "bash", "shell", "console")
_LINE = re.compile(r"^\$ ((?:.*\\\n){0,50}.+)$", re.MULTILINE)
"""A command, with the lines that a backslash joins to it."""
_PROMPT = (
    "You turn a task into one command line for /bin/sh in the folder that holds the user's files. Nobody can type "
    "while it runs, and it may not leave anything running. Do what the task says and no more; never delete or "
    "overwrite what the task doesn't name. Reply with one fenced block and nothing else:\n```sh\ncommand\n```\n"
    "If one command line can't do it, or it would do harm, say why in words, without a block."
)
_RUN = """
import codecs, subprocess
text = codecs.getincrementaldecoder("utf-8")("replace")
pipes = dict(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0)
with subprocess.Popen(["/bin/sh", "-c", command], **pipes) as process:
    try:
        while piece := process.stdout.read(65536):
            print(text.decode(piece), end="", flush=True)
        code = process.wait()
    except BaseException:
        process.kill()
        raise
"""


@dataclass(frozen=True)
class CommandLineSettings:
    """Who decides, and the limits.

    Args:
        approval: `ask`: a person approves each command; without a person, none runs. `always`: all run, except in the
            kernel of a user's own that a session is attached to; there only what the caller passed counts.
        model: Name of the model that words commands; empty: the session's.
        seconds: How long a command may take.
        limit_chars: How much of the output is shown: its beginning and its end.
    """

    approval: Literal["ask", "always"] = field(default="ask", metadata={"folder": "trusted"})
    model: str = ""
    seconds: float = 120.0
    limit_chars: int = 6000


class CommandLine(Role):
    """Runs shell commands in the session's kernel process, behind its sandbox.

    Args:
        model: Words a command for a task.
        kernel: Where it runs.
        settings: See `CommandLineSettings`.
        approve: The session's; the person may change the command, or say why not. None: nobody is there.

    Source: TaskWeaver's code_interpreter_cli_only. Differs: behind the sandbox, and only what a person has approved.
    """

    def __init__(
        self,
        model: ChatModel,
        kernel: Kernel,
        settings: CommandLineSettings,
        approve: Approve | None = None,
    ) -> None:
        self._model = model
        self._kernel = kernel
        self._settings = settings
        self._approve = approve

    @property
    def folder(self) -> Path | None:
        """The kernel's."""
        return self._kernel.folder

    @property
    def where(self) -> str:
        """Say where commands run."""
        return self._kernel.where

    @property
    def plugin_names(self) -> tuple[str, ...]:
        """Give none."""
        return ()

    def interrupt(self) -> None:
        """Stop the running command."""
        self._kernel.interrupt()

    def reply(self, memory: Memory, **kwargs: Any) -> Post:
        """Find the command, have it approved, run it, and show what came of it."""
        asked, turn = memory.last_post, kwargs.get("turn")
        if turn is None or not asked.message.strip():
            return Post(self.name, asked.send_from, "Nothing was run: there is no task.")
        command, words = _command(asked.message), ""
        if not command:
            messages = [{"role": "system", "content": _PROMPT}, {"role": "user", "content": asked.message}]
            words = turn.ask(self._model, messages, caller=self.name)
            command = _command(words, languages=(*_SHELLS, ""))
        if not command:
            return Post(self.name, asked.send_from, f"Nothing was run: {words.strip() or 'no command was found.'}")
        command, refusal = self._approved(command, turn)
        if refusal:
            return Post(self.name, asked.send_from, f"Not run: `{command}`\n{refusal}")
        cell = f"(lambda space: (exec({_RUN!r}, space), space['code'])[1])({{'command': {command!r}}})"
        seconds = turn.seconds_left(self._settings.seconds)
        if turn.cancelled.is_set() or seconds <= 0:
            return Post(self.name, asked.send_from, f"Not run: `{command}`\nThe round is over.")
        execution = self._kernel.execute(cell, seconds=seconds, cancelled=turn.cancelled)
        return Post(self.name, asked.send_from, f"$ {command}\n{self._report(execution)}")

    def _approved(self, command: str, turn: Turn) -> tuple[str, str]:
        """Give the command that is run, which the person may have changed, and why it is not; empty if it is."""
        approval = getattr(self._kernel, "approval", "")  # of a notebook's kernel, where no setting lifts it
        if approval == "never" or (not approval and self._settings.approval == "always"):
            return command, ""
        if self._approve is None:
            return command, "Commands need a person's approval, and nobody is here (role.command_line.approval)."
        decision = decide(self._approve, Proposal("command", command), turn.emit)
        if decision.approved:
            return decision.text.strip() or command, ""
        why = f" ({decision.reason})" if decision.reason else ""
        return command, f"The person who was asked has refused it{why}. Don't try another way to it; ask the User."

    def _report(self, execution: Execution) -> str:
        output = _cut((execution.stdout + execution.stderr).rstrip(), self._settings.limit_chars)
        if execution.ok:
            said = f"exit code {execution.result}"
        elif execution.error.startswith("Traceback"):  # the command was not started
            said = f"not run: {execution.error.splitlines()[-1]}"
        else:
            said = f"stopped after {execution.seconds:.0f} s{f'. {execution.error}'.rstrip('.') * execution.state_lost}"
        return f"{output}\n({said})" if output else f"({said}, no output)"


def _command(text: str, *, languages: tuple[str, ...] = _SHELLS) -> str:
    """Give the command that stands in a text: in a fence, or behind `$ ` in lines of their own.

    Args:
        text: Any.
        languages: What a fence must be marked with; of a `console` its output is left out.
    """
    for language, lines in _blocks(text):
        if language in languages:
            typed = _typed("\n".join(lines)) if language == "console" else ""
            return typed or "\n".join(line.removeprefix("$ ") for line in lines).strip()
    return _typed(text)


def _typed(text: str) -> str:
    """Give the commands behind `$ `; a console shows `> ` before the lines that go on with one."""
    return "\n".join(one.replace("\\\n> ", "\\\n") for one in _LINE.findall(text)).strip()


def _blocks(text: str) -> Iterator[tuple[str, list[str]]]:
    """Give the language and the lines of each fenced block."""
    language, lines = None, list[str]()
    for line in text.splitlines():
        if language is None:
            match = _FENCE.match(line.strip())
            language, lines = (match[1], []) if match else (None, lines)
        elif line.rstrip().endswith("```"):
            yield language, [*lines, line.rstrip().removesuffix("```")]
            language = None
        else:
            lines.append(line)


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[: limit // 2]}\n… {len(text) - limit} characters left out …\n{text[len(text) - limit // 2 :]}"
