"""A conversation partner (an agent, a team of agents) as a role."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tw_autogen.conversation import Attachment, AttachmentType, Memory, Post
from tw_autogen.errors import CallCycleError, ConfigError, HostCallError, RoleError, TwAutogenError
from tw_autogen.events import ArtifactSaved
from tw_autogen.hosts.agent_files import bring_linked, named_files
from tw_autogen.hosts.asked_plugin import ConversationPartner
from tw_autogen.kernel import Artifact
from tw_autogen.model import Completion, run_abandonable
from tw_autogen.role import Role, Turn
from tw_autogen.text_escaping import escape_controls, inert_output


def partner_role_factory(make: Callable[[], ConversationPartner], *, name: str, intro: str) -> Callable[[], Role]:
    """Return a conversation partner as a role.

    Args:
        make: Begins a conversation; one for each session.
        name: How the Planner addresses it.
        intro: What it can do, for the Planner.

    Returns:
        A function that makes the role for one session. It passes on the task with what is on the board, and brings
        files that the answer links to into the session.

    Raises:
        ConfigError: there is nothing that would tell the Planner what it can do.
    """
    if not intro.strip():
        raise ConfigError(f"agent_role {name!r}: say with intro=, or in the agent's description, what it can do")
    return lambda: _AskedRole(make, name, intro.strip())


class _AskedRole(Role):
    """The role of one session."""

    def __init__(self, make: Callable[[], ConversationPartner], name: str, intro: str) -> None:
        self.name = name
        self.intro = intro
        self._make = make
        self._conversation: ConversationPartner | None = None

    def reply(self, memory: Memory, **kwargs: Any) -> Post:
        """Ask the partner to do the task, and post what it answers."""
        asked = memory.last_post
        turn: Turn = kwargs.get("turn") or Turn(memory.rounds[-1], Path.cwd())
        conversation = self._conversation = self._conversation or self._make()
        message, files = self._compose_message(asked, turn, conversation.takes_files)
        made_since_ns = 0 if conversation.takes_files else time.time_ns()
        try:
            answer = run_abandonable(
                lambda give, abandoned: Completion(conversation.ask(message, files)),
                where=f"the agent {self.name}",
                seconds=turn.seconds_left(float("inf")),
                cancelled=turn.cancelled,
            ).text
        except TwAutogenError as error:
            if isinstance(error, CallCycleError) or not isinstance(error, HostCallError):
                raise
            answer = f"({error})"  # nothing is broken: the Planner may ask again, or somebody else
        except Exception as error:  # the agent is anybody's
            message = f"the role {self.name} failed: {type(error).__name__}: {error}"
            raise RoleError(f"{turn.round.id}: {message}", round=turn.round, role=self.name) from error
        answer, copies = bring_linked(answer, conversation.folders(), turn.folder, made_since_ns=made_since_ns)
        artifacts = [Artifact(copy.name, "file", copy, f"made by {self.name}") for copy in copies]
        for artifact in artifacts:
            turn.emit(ArtifactSaved(artifact.name, artifact.kind, str(artifact.path), artifact.preview))
        made = "\n".join(map(str, copies))
        kept = [Attachment(AttachmentType.artifact_paths, made, [artifact.to_dict() for artifact in artifacts])]
        return Post(self.name, asked.send_from, answer or "(no answer)", tuple(kept if artifacts else ()))

    def interrupt(self) -> None:
        """Stop it, where it can be stopped."""
        if self._conversation:
            self._conversation.interrupt()

    def close(self) -> None:
        """End the conversation."""
        if self._conversation:
            self._conversation.close()

    def _compose_message(self, asked: Post, turn: Turn, handed: bool) -> tuple[str, list[Path]]:
        """Return the task with what is on the board, and the session's files that are named in it."""
        board = inert_output("\n".join(text for role, text in turn.round.read_board().items() if role != self.name))
        task = escape_controls(asked.message)  # the host may print it
        message = f"{task}\n\n# What is known\n{board}" if board else task
        files = named_files(turn.folder, message)
        return (f"{message}\n\nThe files lie in {turn.folder}." if files and not handed else message), files
