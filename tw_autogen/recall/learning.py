"""What stays of a session for later ones: an example that shows how, a lesson that warns or advises."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tw_autogen.conversation import Round
from tw_autogen.errors import ConfigError
from tw_autogen.model import ChatModel, ModelRequest
from tw_autogen.recall.distillation import distill
from tw_autogen.recall.examples import cleaned_example, write_example
from tw_autogen.recall.experience import Experience, collect_experience, read_experiences, write_experience
from tw_autogen.recall.writing import without_paths
from tw_autogen.secret import redactor


@dataclass(frozen=True)
class Learner:
    """Who words lessons, and where they are kept.

    Args:
        model: Asked for the words; None: there is nobody.
        folder: Where lessons go if nothing else is said; None: nowhere.
    """

    model: Callable[[], ChatModel] | None = None
    folder: Path | None = None

    def learn(
        self,
        rounds: Sequence[Round],
        folder: Path | str | None,
        model: ChatModel | None,
        *,
        private: Sequence[str] = (),
        request: ModelRequest | None = None,
    ) -> Path:
        """Word a lesson out of rounds and write it down.

        Args:
            rounds: What happened.
            folder: Where to; None: the own one.
            model: Who words it; None: the own one.
            private: Paths to take out, such as the session's folder. Secrets of the environment are masked as well.
            request: As for `distill`.

        Raises:
            ConfigError: there is nothing to learn from, nowhere to keep it, nobody to word it, or what lies in the
                folder can't be read.
            ModelError: the model could not be asked.
        """
        kept_in = Path(folder).expanduser() if folder else self.folder
        if kept_in is None:
            raise ConfigError(
                "nowhere to keep the lesson: name a folder, which is made (/learn lessons, or "
                'save_experience("lessons")); '
                "later sessions read it with `recall.experience` (--set recall.experience=lessons)"
            )
        if kept_in.exists() and not kept_in.is_dir():
            raise ConfigError(f"{kept_in} is a file; lessons are kept in a folder")
        if kept_in.is_dir():
            read_experiences(kept_in)
        lived = collect_experience(rounds)
        asked = model or (self.model() if self.model else None)
        if asked is None:
            raise ConfigError("no model to word the lesson; give one")
        lesson = _redacted(distill(lived, asked, request), (*private, str(Path.home())))
        return write_experience(lesson, kept_in)


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


def _redacted(lesson: Experience, private: Sequence[str]) -> Experience:
    mask = redactor(os.environ)

    def redact(text: str) -> str:
        return without_paths(mask(text), private)

    said = {name: redact(getattr(lesson, name)) for name in ("lesson", "request", "plan", "code")}
    return Experience(lesson.id, outcome=lesson.outcome, went_wrong=tuple(map(redact, lesson.went_wrong)), **said)
