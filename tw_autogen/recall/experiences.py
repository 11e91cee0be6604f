"""Experience: short lessons from earlier work, kept as readable files, recalled where they fit a request."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tw_autogen.conversation import AttachmentType, Round, RoundState, new_id
from tw_autogen.errors import ConfigError, ConversationFormatError
from tw_autogen.model import Ranker
from tw_autogen.named_folders import named_folder
from tw_autogen.recall.new_text_files import create_text_file
from tw_autogen.text_truncation import shortened
from tw_autogen.trust_store import over_no_link
from tw_autogen.yaml_files import read_mapping, readable_yaml

_FILE = re.compile(r"(?:handcrafted_)?exp_(?P<id>[^/]+)\.ya?ml")
_RAW = re.compile(r"raw_exp_[^/]+\.ya?ml")
_log = logging.getLogger(__name__)
_KEYS = (
    *("exp_id", "experience_text", "outcome", "request", "plan", "code", "went_wrong"),
    *("raw_experience_path", "embedding_model", "embedding"),  # TaskWeaver's, which are not needed here
)
_LONGEST_CHARS, _MIN_CHARS = 4000, 300
_MAX_FILES = 2000
_MAX_BYTES = 5_000_000
"""Of all lessons of a folder: to read so many takes seconds."""


@dataclass(frozen=True)
class Experience:
    """What was learnt from one piece of work.

    Args:
        id: Unique in its folder.
        lesson: The words that are recalled.
        outcome: `succeeded` or `failed`; empty if it was written by hand.
        request: What the user had asked, and answered when a Planner asked back.
        plan: The last plan.
        code: The code that ran in the end.
        went_wrong: Errors and refusals on the way, in order.
    """

    id: str
    lesson: str
    outcome: str = ""
    request: str = ""
    plan: str = ""
    code: str = ""
    went_wrong: tuple[str, ...] = ()

    @property
    def about(self) -> str:
        """The words by which it is found."""
        return f"{self.request}\n{self.lesson}".strip()

    def to_yaml(self) -> str:
        """Return its file's text; what is empty is left out."""
        plain: dict[str, Any] = {
            "exp_id": self.id,
            "experience_text": self.lesson,
            "outcome": self.outcome,
            "request": self.request,
            "plan": self.plan,
            "code": self.code,
            "went_wrong": list(self.went_wrong),
        }
        return readable_yaml({key: value for key, value in plain.items() if value})


def read_experiences(folder: Path) -> tuple[Experience, ...]:
    """Read the lessons of a folder, not of those inside it, in the order of their names.

    Files are called `exp_<id>.yaml`, or `handcrafted_exp_<id>.yaml` with `exp_id` and `experience_text` only. An empty
    one counts as none: somebody is writing it.

    Raises:
        ConfigError: there is no such folder, code could have made a link on the way to it, or they are too many.
        ConversationFormatError: naming the file and what is wrong in it.

    Source: TaskWeaver's experience files. Differs: vectors are cached elsewhere, by the text; raw ones
    without a lesson are named in a warning.
    """
    folder = named_folder(folder)
    if not folder.is_dir():
        raise ConfigError(f"{folder}: there is no such folder of experiences; make it, or take the setting out")
    _warn_of_raw(folder)
    named = [(match["id"], path) for path in sorted(folder.iterdir()) if (match := _FILE.fullmatch(path.name))]
    found = [(name, path, size) for name, path in named if (size := path.lstat().st_size)]
    if len(found) > _MAX_FILES:
        raise ConfigError(f"{folder}: {len(found)} experiences, and at most {_MAX_FILES} are read; keep the best")
    if (held := sum(size for *_, size in found)) > _MAX_BYTES:
        most = f"{_MAX_BYTES / 1e6:g} MB"
        raise ConfigError(f"{folder}: {held / 1e6:.1f} MB of experiences, and at most {most} are read; keep the best")
    with over_no_link():
        return tuple(_read(path, name) for name, path, _ in found)


def _warn_of_raw(folder: Path) -> None:
    """Warn of TaskWeaver's raw experience of which no lesson was made yet: nothing of it is recalled here."""
    names = {path.name for path in folder.iterdir()}
    raw = sorted(name for name in names if _RAW.fullmatch(name) and name.removeprefix("raw_") not in names)
    if raw:
        _log.warning(
            "%s: %d raw experience%s (%s%s) not read; TaskWeaver makes a lesson of each (exp_….yaml) at its next "
            "start, or write one (handcrafted_exp_….yaml)",
            folder,
            len(raw),
            "s are" if len(raw) > 1 else " is",
            raw[0],
            ", …" if len(raw) > 1 else "",
        )


def write_experience(experience: Experience, folder: Path) -> Path:
    """Write a lesson as `exp_<id>.yaml`.

    Args:
        experience: The lesson.
        folder: Created if it is missing.

    Raises:
        ConfigError: it can't be written.
    """
    return create_text_file(folder / f"exp_{experience.id}.yaml", experience.to_yaml())


def select_experiences(
    experiences: Sequence[Experience], request: str, *, top_k: int, min_score: float, ranker: Ranker
) -> tuple[Experience, ...]:
    """Return the lessons that fit a request, best first.

    Args:
        experiences: All there are.
        request: In words.
        top_k: How many at most.
        min_score: Only those that score above it.
        ranker: Says how well each fits.
    """
    if not experiences:
        return ()
    ranked = ranker.rank(request, [experience.about for experience in experiences])
    return tuple(experiences[index] for index, score in ranked[:top_k] if score > min_score)


def collect_experience(rounds: Sequence[Round]) -> Experience:
    """Collect what happened in rounds, without a lesson yet.

    Args:
        rounds: At least one, oldest first. Failed ones count as well: what goes wrong teaches most.

    Raises:
        ConfigError: there are none.
    """
    if not rounds:
        raise ConfigError("there is no round yet, so there is nothing to learn from")
    kind = AttachmentType
    posts = [post for one in rounds for post in one.posts]
    ran = [post for post in posts if post.content(kind.execution_status) == "SUCCESS"]
    wrong = [line for post in posts for line in _went_wrong(post.attachment(kind.execution_status))]
    for post in posts:
        if post.content(kind.execution_status) == "FAILURE":
            wrong.append(post.content(kind.execution_result))
        wrong += [post.content(kind.code_error)] if post.content(kind.code_error) else []
    wrong += [one.error for one in rounds if one.error]
    failed = rounds[-1].state is RoundState.failed or any(
        post.content(kind.stop) == "TaskFailure" for post in rounds[-1].posts
    )
    plans = [post.plan for post in posts if post.plan is not None]
    return Experience(
        new_id("").lstrip("-"),
        "",
        "failed" if failed else "succeeded",
        _requests_text(rounds),
        _cap_length(str(plans[-1]) if plans else ""),
        _cap_length("\n\n".join(post.content(kind.reply_content) for post in ran)),
        tuple(dict.fromkeys(_cap_length(one) for one in wrong if one.strip())),
    )


def _requests_text(rounds: Sequence[Round]) -> str:
    """Return the user's words in all rounds, each with the question that it answers, if the round before asked one."""
    most = max(_MIN_CHARS, _LONGEST_CHARS // len(rounds))  # a long one must not crowd out the others
    texts: list[str] = []
    question = ""
    for one in rounds:
        text = shortened(one.user_query.strip(), most)
        texts.append(f"(asked: {shortened(question, _MIN_CHARS)})\nanswered: {text}" if question else text)
        last = one.posts[-1] if one.posts else None
        question = " ".join(last.message.split()) if last is not None and last.is_question else ""
    return _cap_length("\n".join(texts))


def _went_wrong(status: Any) -> list[str]:
    """Return the errors and refusals of a task of the CodeInterpreter, as its post lists them."""
    found = (status.extra or {}).get("went_wrong") if status is not None else None
    return list(map(str, found)) if isinstance(found, list) else []


def _cap_length(text: str) -> str:
    return shortened(text.strip(), _LONGEST_CHARS)


def _read(path: Path, name: str) -> Experience:
    plain = read_mapping(path, ConversationFormatError, keys=_KEYS)
    lesson = plain.get("experience_text")
    if not isinstance(lesson, str) or not lesson.strip():
        raise ConversationFormatError("`experience_text` is missing or no text", path=path)
    wrong = plain.get("went_wrong") or []
    if not isinstance(wrong, list):
        raise ConversationFormatError("`went_wrong` must be a list of texts", path=path)
    fields = {key: str(plain.get(key) or "") for key in ("outcome", "request", "plan", "code")}
    return Experience(str(plain.get("exp_id") or name), lesson.strip(), **fields, went_wrong=tuple(map(str, wrong)))
