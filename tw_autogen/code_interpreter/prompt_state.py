"""`PromptState`: what the prompt of a CodeInterpreter already holds in one session, and need not say again."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from tw_autogen.code_interpreter.prompts import BLANK, FORWARDED, board_news, without_repeated_task
from tw_autogen.code_interpreter.reported_variables import ReportedVariables
from tw_autogen.code_interpreter.shown_plugins import Shown
from tw_autogen.conversation import AttachmentType, Memory, Post, Round
from tw_autogen.errors import Unreadable
from tw_autogen.model import CodeReply, read_code
from tw_autogen.python_source import PYTHON_LANGUAGE
from tw_autogen.recall import ChatHistory, DefinitionPrompt, add_examples

_PYTHON_FENCE = re.compile(rf"^([ \t]*```)[ \t]*{PYTHON_LANGUAGE}", re.I | re.M)
_ROLE_NAME = "{ROLE_NAME}"


@dataclass
class PromptState:
    """What the prompt of one session already holds.

    Args:
        name: Of the CodeInterpreter.
        history: What its model reads.
        variables: Those that it knows of.
        board: As it was told last.
        round_id: Of the round that is going on.
        lessons: As they were told last, in this round.
        shown: The plugins that it was shown.
        date: As it was told last; only users' own tasks bring it.
        definitions: Those of the User, where this role keeps them.
        changes: What the current task has changed of them.
    """

    name: str
    history: ChatHistory
    variables: ReportedVariables
    board: str = ""
    round_id: str = ""
    lessons: str = ""
    shown: Shown = field(default_factory=Shown)
    date: str = ""
    definitions: DefinitionPrompt | None = None
    changes: tuple[Mapping[str, str], ...] = ()
    _named: list[str] = field(default_factory=list)

    def enter(self, memory: Memory) -> None:
        """Go on in the last round; in another one than before lessons are to be told again.

        Args:
            memory: What the role sees.
        """
        here, self.changes = memory.rounds[-1], ()
        if self.definitions is not None:
            self.definitions.load_definitions(memory)
        if self.round_id != here.id:
            self.round_id, self.lessons = here.id, ""

    def add_examples(self, rounds: tuple[Round, ...], asked: Post) -> None:
        """Begin the history with rounds of other sessions, as if they were of this one.

        Args:
            rounds: Of the examples; `{ROLE_NAME}` in them stands for this role's name, as in TaskWeaver's.
            asked: The task, which is told later.
        """
        rounds = tuple(_with_role_name(one, self.name) for one in rounds)
        add_examples(self.history, lambda examples: self.listen(Memory.of(self.name, examples), asked), rounds)

    def forget(self) -> None:
        """Forget what the prompt already holds; call after the conversation was summarized."""
        self.variables.forget()
        self.shown, self.board, self.lessons, self.date = Shown(), "", "", ""
        self.history.repeat_notes()
        if self.definitions is not None:
            self.definitions.restore_in(self.history)

    def forget_in_task(self) -> None:
        """Do as `forget` in the middle of a task, and tell in full what was only named of its board, as known."""
        lost, self._named = self.history.lost(self._named), []
        if lost:
            self.history.append_user(f"# Of the board, in full\n{BLANK.join(lost)}")
        self.forget()

    def make_reply_reader(self) -> Callable[[str], CodeReply]:
        """Return what reads a reply, and notes its changes of definitions; wrong ones are told to the model once."""
        kept, wrong = self.definitions, list[str]()

        def read(text: str) -> CodeReply:
            if kept is None or not kept.wanted:
                return read_code(text)
            told = bool(wrong)
            text, changes = kept.read_block(text, wrong, lenient=told)
            if wrong and not told:
                raise Unreadable("; ".join(wrong))
            reply = read_code(text)
            self.changes = changes or self.changes
            return reply

        return read

    def listen(self, memory: Memory, asked: Post) -> None:
        """Bring the history up to date with what was said before the task, which `tell_task` appends.

        Args:
            memory: The rounds that the role may see.
            asked: The post with the task.
        """
        said = ""
        for new in self.history.unread(memory):
            if said:
                self.history.append_user(said)
            said = ""
            if new.id == asked.id:
                break
            if isinstance(new, Round):
                self.history.append_user(
                    f"(The work on that request ended here, because {new.error or 'it was stopped'}.)"
                )
            elif new.send_from == self.name:
                reply = _as_reply(new)
                self.history.append_assistant(reply)
                said = new.message if reply != new.message else ""
            else:
                self.history.append_user(f"# Task from {new.send_from}\n{new.message}")

    def tell_task(
        self, asked: Post, here: Round, *, variables: str, plugins: str, lessons: str, forwarded: bool
    ) -> None:
        """Append the task to the prompt, after what has changed since the last one.

        Args:
            asked: The task.
            here: Its round, whose board is read.
            variables: Those that are new or changed; empty: none.
            plugins: What is to be said of plugins; empty: nothing.
            lessons: That may help; told again only if they are others than those told last in this round.
            forwarded: What comes of it goes to another role.
        """
        self.history.results.begin_task()
        board = "\n\n".join(text for role, text in here.read_board().items() if role != self.name)
        tasks = [post.message for post in here.posts if post.send_to == self.name]
        board = without_repeated_task(board, asked.plan, tasks)
        told = board_news(self.board, board) if board and board != self.board else ""
        parts = [told]
        self._named = [one for one in board.split(BLANK) if one not in told]
        self.board = board
        if variables:
            parts.append(f"# Variables, new or changed\n{variables}")
        parts.append(plugins)
        if lessons and lessons != self.lessons:
            parts.append(lessons)
        self.lessons = lessons
        today = datetime.date.today().isoformat()
        if asked.send_from == "User" and self.date != today:  # a Planner tells the date itself
            parts.append(f"Today is {today}.")
            self.date = today
        task = self.history.without_repeated_notes(asked, [here]) if asked.send_from == "User" else asked.message
        parts.append(f"# Task from {asked.send_from}\n{task}")
        if self.definitions is not None:
            parts.append(self.definitions.news(asked.message).strip())
        if forwarded:
            parts.append(FORWARDED)
        self.history.append_user("\n\n".join(part for part in parts if part))
        self.history.mark_read(asked)


def _with_role_name(example: Round, name: str) -> Round:
    """Return a round of an example with the role's name filled in."""

    def filled(post: Post) -> Post:
        said = (
            replace(attachment, content=attachment.content.replace(_ROLE_NAME, name)) for attachment in post.attachments
        )
        return replace(post, message=post.message.replace(_ROLE_NAME, name), attachments=tuple(said))

    return replace(example, posts=[filled(post) for post in example.posts])


def _as_reply(post: Post) -> str:
    """Return a stored post of the CodeInterpreter in the form in which its model would have replied."""
    code, thought = post.content(AttachmentType.reply_content), post.content(AttachmentType.thought)
    if not code or not thought:  # words, or code that somebody else wrote
        return post.message
    if post.content(AttachmentType.reply_type, "python") != "python":
        return _PYTHON_FENCE.sub(r"\1text", code)  # code that was only shown must not teach that words are run
    return f"{thought}\n```python\n{code.strip()}\n```"
