"""`Learner`: has a model write a lesson about a session, for the prompts of later ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tw_autogen.conversation import Round
from tw_autogen.errors import ConfigError, Unreadable
from tw_autogen.model import ChatModel, ModelRequest, ask, read_object
from tw_autogen.named_folders import named_folder
from tw_autogen.recall.experiences import Experience, collect_experience, read_experiences, write_experience
from tw_autogen.recall.new_text_files import without_paths
from tw_autogen.secret_masking import redactor

_PROMPT = Path(__file__).with_name("lesson.md").read_text(encoding="utf-8").strip()
_SCHEMA = {
    "type": "object",
    "properties": {"lesson": {"type": "string"}},
    "required": ["lesson"],
    "additionalProperties": False,
}


def distill(experience: Experience, model: ChatModel, request: ModelRequest | None = None) -> Experience:
    """Return the same experience with a lesson.

    Args:
        experience: What happened.
        model: Who writes the lesson.
        request: Limits and reports of the call, as for `ask`. None: no limits.

    Raises:
        ModelError: the model could not be asked, or stayed unreadable.

    Source: the experiences of TaskWeaver, and those of Data Interpreter, which keeps failures beside successes.
    """
    wrong = "\n".join(f"- {one}" for one in experience.went_wrong)
    parts = {
        "The request": experience.request,
        "How it ended": experience.outcome,
        "The plan": experience.plan,
        "The code that ran in the end": experience.code,
        "What went wrong on the way": wrong or "nothing",
    }
    told = "\n\n".join(f"# {head}\n{text}" for head, text in parts.items() if text)
    messages: list[dict[str, Any]] = [{"role": "system", "content": _PROMPT}, {"role": "user", "content": told}]
    lesson, _ = ask(model, replace(request or ModelRequest(), messages=messages, schema=_SCHEMA), _read)
    return replace(experience, lesson=lesson)


@dataclass(frozen=True)
class Learner:
    """Has a model write lessons, and keeps them.

    Args:
        model: Returns the model that writes them; None: there is none.
        folder: Where lessons go if no other folder is given; None: nowhere.
        distrusted: A folder that somebody else may have made: a link there must not lead out of it. None: there is
            none.
    """

    model: Callable[[], ChatModel] | None = None
    folder: Path | None = None
    distrusted: Path | None = None

    def learn(
        self,
        rounds: Sequence[Round],
        folder: Path | str | None,
        model: ChatModel | None,
        *,
        private: Sequence[str] = (),
        request: ModelRequest | None = None,
    ) -> Path:
        """Write a lesson about rounds, in a model's words, and keep it.

        Args:
            rounds: What happened.
            folder: Where it is kept; None: in the own folder.
            model: What writes it; None: the own model.
            private: Paths to take out, such as the session's folder. Secrets of the environment are masked as well.
            request: As for `distill`.

        Raises:
            ConfigError: there is nothing to learn from, nowhere to keep it, no model, or what lies in the
                folder can't be read.
            ModelError: the model could not be asked.
        """
        kept_in = Path(os.path.expanduser(folder)) if folder else self.folder
        if kept_in is None:
            raise ConfigError(
                "nowhere to keep the lesson: name a folder, which is made (/learn lessons, or "
                'save_experience("lessons")); '
                "later sessions read it with `recall.experience` (--set recall.experience=lessons)"
            )
        named_folder(kept_in, distrusted=self.distrusted)
        if kept_in.exists() and not kept_in.is_dir():
            raise ConfigError(f"{kept_in} is a file; lessons are kept in a folder")
        if kept_in.is_dir():
            read_experiences(kept_in)
        experience = collect_experience(rounds)
        asked = model or (self.model() if self.model else None)
        if asked is None:
            raise ConfigError("no model to word the lesson; give one")
        lesson = _redact_lesson(distill(experience, asked, request), (*private, str(Path.home())))
        return write_experience(lesson, kept_in)


def _redact_lesson(lesson: Experience, private: Sequence[str]) -> Experience:
    mask = redactor(os.environ)

    def redact(text: str) -> str:
        return without_paths(mask(text), private)

    texts = {name: redact(getattr(lesson, name)) for name in ("lesson", "request", "plan", "code")}
    return Experience(lesson.id, outcome=lesson.outcome, went_wrong=tuple(map(redact, lesson.went_wrong)), **texts)


def _read(text: str) -> str:
    lesson = read_object(text).get("lesson")
    if not isinstance(lesson, str) or not lesson.strip():
        raise Unreadable("`lesson` is missing or no text")
    return lesson.strip()
