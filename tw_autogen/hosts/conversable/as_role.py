"""`agent_role`: any agent of the host as somebody whom a Planner may write to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tw_autogen.code_interpreter import artifact_to_dict
from tw_autogen.conversation import Attachment, AttachmentType, Memory, Post
from tw_autogen.errors import ConfigError
from tw_autogen.events import ArtifactSaved
from tw_autogen.hosts.conversable.asking import Asker
from tw_autogen.hosts.conversable.files import bring, linked_files, named_files
from tw_autogen.kernel import Artifact
from tw_autogen.model import Completion, run_abandonable
from tw_autogen.role import Role, Turn


def agent_role(agent: Any, *, name: str = "", intro: str = "", max_turns: int = 10) -> Callable[[], Role]:
    """Give an agent as a role, for `roles=` of a `TaskWeaverAgent` or of `open_session`.

    Args:
        agent: Any ConversableAgent; it is used as it is, and stays the caller's. Its own model answers, and what that
            costs stands with its own client.
        name: How the Planner addresses it; empty: the agent's name.
        intro: What it can do, for the Planner; empty: the agent's description.
        max_turns: How often it and its tools may speak for one answer.

    Returns:
        A function that makes the role for one session, in which it has a conversation of its own with the agent.

    Raises:
        ConfigError: there is nothing that would tell the Planner what it can do.

    Example:
        `TaskWeaverAgent(llm_config=llm_config, roles=["planner", "code_interpreter", agent_role(lawyer)])`
    """
    name, intro = name or agent.name, (intro or agent.description or "").strip()
    if not intro:
        raise ConfigError(f"agent_role {name!r}: say with intro=, or in the agent's description, what it can do")
    return lambda: _AgentRole(agent, name, intro, max_turns)


class _AgentRole(Role):
    """The role of one session."""

    def __init__(self, agent: Any, name: str, intro: str, max_turns: int) -> None:
        self.name = name
        self.intro = intro
        self._agent = agent
        self._max_turns = max_turns
        self._asker: Asker | None = None

    def reply(self, memory: Memory, **kwargs: Any) -> Post:
        """Put the task, with what is pinned up, to the agent, and pass on what it says."""
        asked = memory.last_post
        turn: Turn = kwargs.get("turn") or Turn(memory.rounds[-1], Path.cwd())
        self._asker = self._asker or Asker(self._agent, asked.send_from, max_turns=self._max_turns)
        asker = self._asker
        board = "\n".join(text for role, text in turn.round.read_board().items() if role != self.name)
        words = f"{asked.message}\n\n# What is known\n{board}" if board else asked.message
        files = named_files(turn.folder, words)
        if files:
            words += f"\n\nThe files lie in {turn.folder}."
        answer = run_abandonable(
            lambda give, abandoned: Completion(asker.ask(words, files)),
            where=f"the agent {self.name}",
            seconds=turn.seconds_left(float("inf")),
            cancelled=turn.cancelled,
        ).text
        artifacts = []
        for link, path in linked_files(answer, asker.folders()):
            copy = bring(path, turn.folder)
            answer = answer.replace(link, copy.as_uri())
            artifacts.append(Artifact(copy.name, "file", copy, f"made by {self.name}"))
            turn.emit(ArtifactSaved(copy.name, "file", str(copy), f"made by {self.name}"))
        made = "\n".join(str(one.path) for one in artifacts)
        kept = [Attachment(AttachmentType.artifact_paths, made, [artifact_to_dict(one) for one in artifacts])]
        return Post(self.name, asked.send_from, answer or "(no answer)", tuple(kept if artifacts else ()))

    def interrupt(self) -> None:
        """Stop the agent, where it can be stopped."""
        if self._asker:
            self._asker.interrupt()

    def close(self) -> None:
        """Let the agent forget the conversation."""
        if self._asker:
            self._asker.close()
