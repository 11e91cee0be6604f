"""Examples: finished conversations, in TaskWeaver's format, that show a role how to answer."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tw_autogen.conversation import Attachment, AttachmentType, Post, Round, RoundState
from tw_autogen.errors import ConfigError, ConversationFormatError
from tw_autogen.model import Ranker, TokenEstimate
from tw_autogen.named_folders import named_folder
from tw_autogen.recall.conversation_files import Conversation, read_conversation
from tw_autogen.recall.new_text_files import create_text_file, without_paths
from tw_autogen.secret_masking import redactor
from tw_autogen.taskweaver_config import TASKWEAVER_ALIASES
from tw_autogen.text_truncation import without_middle
from tw_autogen.trust_store import over_no_link

_SUFFIXES = (".yaml", ".yml", ".json")
_WRITTEN = (".yaml", ".yml")
_LONGEST_CHARS = 3000
_ALIAS = re.compile(rf"\b(?:{'|'.join(TASKWEAVER_ALIASES)})\b")
_KEPT = (
    AttachmentType.plan_reasoning,
    AttachmentType.init_plan,
    AttachmentType.plan,
    AttachmentType.current_plan_step,
    AttachmentType.code,
    AttachmentType.then,
    AttachmentType.stop,
    AttachmentType.thought,
    AttachmentType.reply_type,
    AttachmentType.reply_content,
    AttachmentType.execution_status,
    AttachmentType.execution_result,
)


@dataclass(frozen=True)
class Example:
    """One example.

    Args:
        path: Its file.
        conversation: The conversation.
    """

    path: Path
    conversation: Conversation

    @property
    def tokens(self) -> int:
        """About how many tokens it takes in a prompt: an estimate by its characters."""
        rounds = [round_.to_dict() for round_ in self.conversation.rounds]
        return int(TokenEstimate().tokens(len(json.dumps(rounds, ensure_ascii=False))))

    @property
    def requests(self) -> str:
        """What users ask in it."""
        return "\n".join(round_.user_query for round_ in self.conversation.rounds)


def read_examples(where: Path | Iterable[Path], only: Collection[Path] | None = None) -> tuple[Example, ...]:
    """Read a folder's examples in the order of their names, or files in theirs; without those that are not `enabled`.

    Args:
        where: The folder, or the files.
        only: Of a folder's files those that count; None: all.

    Raises:
        ConfigError: there is no such folder, or code could have made a link on the way to it.
        ConversationFormatError: naming the file and what is wrong in it.

    Source: TaskWeaver's example folders. Differs: JSON is read too, and a folder that isn't there is told at once.
    Roles of TaskWeaver that are called otherwise here (`TASKWEAVER_ALIASES`) get their names here.
    """
    if isinstance(where, Path):
        where = named_folder(where)
        if not where.is_dir():
            raise ConfigError(f"{where}: there is no such folder of examples; make it, or take the setting out")
        where = [path for path in example_paths(where) if only is None or path in only]
    found = []
    for path in where:
        with over_no_link():
            conversation = read_conversation(path)
        if not conversation.rounds:
            raise ConversationFormatError("it has no rounds, so it is no example", path=path)
        if conversation.enabled:
            found.append(Example(path, _with_our_names(conversation)))
    return tuple(found)


def _with_our_names(conversation: Conversation) -> Conversation:
    """Return an example in which TaskWeaver's roles have the names that they have here, in words too."""
    if not conversation.roles & TASKWEAVER_ALIASES.keys():
        return conversation

    def renamed(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: renamed(one) for key, one in value.items()}
        if isinstance(value, list):
            return [renamed(one) for one in value]
        return _ALIAS.sub(lambda found: TASKWEAVER_ALIASES[found[0]], value) if isinstance(value, str) else value

    return Conversation.from_dict(renamed(conversation.to_dict()))


def example_paths(folder: Path) -> list[Path]:
    """Return the files of a folder that are read as examples, by name.

    Raises:
        OSError: it can't be listed.
    """
    return sorted(path for path in folder.iterdir() if path.suffix in _SUFFIXES)


def select_examples(
    examples: Sequence[Example],
    roles: Iterable[str],
    request: str,
    *,
    tokens: int,
    ranker: Ranker,
    plugin_only: bool | None = None,
) -> tuple[Example, ...]:
    """Return the examples that fit a prompt.

    Args:
        examples: All there are.
        roles: Who takes part; an example with another speaker is left out.
        request: What the user asks now.
        tokens: How much they may take together, by `Example.tokens`.
        ranker: Ranks them by similarity to the request, if not all fit.
        plugin_only: Only those that say so, or only those that don't; None: all.

    Returns:
        As many as fit, in their own order, so that the same choice gives the same prompt.
    """
    known = frozenset(roles)
    mine = [
        example
        for example in examples
        if example.conversation.roles <= known and plugin_only in (None, example.conversation.plugin_only)
    ]
    if sum(example.tokens for example in mine) <= tokens:
        return tuple(mine)
    alike = [index for index, _ in ranker.rank(request, [example.requests for example in mine])]
    taken, left = set[int](), tokens
    for position in [*alike, *(index for index in range(len(mine)) if index not in alike)]:
        if mine[position].tokens <= left:
            taken.add(position)
            left -= mine[position].tokens
    return tuple(example for index, example in enumerate(mine) if index in taken)


def cleaned_example(
    rounds: Iterable[Round],
    role: str,
    *,
    private: Sequence[str] = (),
    mask: Callable[[str], str] = str,
) -> Conversation:
    """Make an example for one role out of a session's rounds.

    Args:
        rounds: A session's, oldest first; those that failed, or ran code which no model wrote, are left out.
        role: Whose posts are kept: what it read and what it wrote.
        private: Texts that are taken out wherever they stand, such as the session's folder.
        mask: Masks what else must not be written down.

    Returns:
        An example without ids, without what only the host reads, and with long texts cut.

    Raises:
        ConfigError: no round that ended well has a post of this role.
    """

    def clean(text: str) -> str:
        return without_middle(without_paths(mask(text), private), _LONGEST_CHARS, tail_percent=0)

    fine = [
        round_ for round_ in rounds if round_.state is RoundState.finished and not _ran_code_of_no_model(round_, role)
    ]
    kept = [_cleaned_round(round_, role, clean) for round_ in fine]
    kept = [round_ for round_ in kept if any(post.send_from == role for post in round_.posts)]
    if not kept:
        raise ConfigError(f"no finished round in which {role} said something: there is nothing to make an example of")
    return Conversation(tuple(kept))


def write_example(conversation: Conversation, path: Path) -> Path:
    """Write an example.

    Args:
        conversation: The conversation.
        path: The YAML file; the home folder may be written `~`, and folders are made.

    Raises:
        ConfigError: the file is there already, has no name that examples have, or can't be written.
    """
    path = Path(os.path.expanduser(path))
    if path.suffix not in _WRITTEN:
        raise ConfigError(f"{path}: an example's file is called {' or '.join('*' + suffix for suffix in _WRITTEN)}")
    if path.exists():
        raise ConfigError(f"{path} is there already; take another name, or remove it")
    return create_text_file(path, conversation.to_yaml())


def _ran_code_of_no_model(round_: Round, role: str) -> bool:
    """Return True if a round ran code that the role's model did not write: it is no example of an answer."""
    kind = AttachmentType
    mine = [post for post in round_.posts if post.send_from == role]
    return any(post.content(kind.reply_content) and not post.content(kind.thought) for post in mine)


def _cleaned_round(finished: Round, role: str, clean: Callable[[str], str]) -> Round:
    posts = []
    for post in finished.posts:
        if role in (post.send_from, post.send_to):
            kept = [attachment for attachment in post.attachments if attachment.type in _KEPT]
            attachments = tuple(Attachment(attachment.type, clean(attachment.content)) for attachment in kept)
            asked = finished.user_query if post.send_from == "User" else post.message
            posts.append(Post(post.send_from, post.send_to, clean(asked), attachments))
    return Round(clean(finished.user_query), posts=posts, state=RoundState.finished)


def keep_example(rounds: Sequence[Round], path: Path | str, role: str, *, private: Sequence[str] = ()) -> Path:
    """Write a cleaned example of a role's history, which then loads as any other.

    Args:
        rounds: A session's.
        path: The YAML file to write.
        role: Whose prompt it is for: `Planner` or `CodeInterpreter`.
        private: Texts to take out, such as the session's folder. Secrets of the environment are masked as well.

    Raises:
        ConfigError: there is no finished round of this role, or the file is there already.
    """
    redact = redactor(os.environ)
    cleaned = cleaned_example(rounds, role, private=(*private, str(Path.home())), mask=redact)
    return write_example(cleaned, Path(path))
