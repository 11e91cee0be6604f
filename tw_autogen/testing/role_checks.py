"""`check_role`: what every role must do, whatever it is for; for roles of one's own."""

from __future__ import annotations

import contextlib
import copy
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tw_autogen.conversation import Attachment, AttachmentType, Memory, Post, Round, RoundState
from tw_autogen.errors import ConfigError, TwAutogenError
from tw_autogen.events import Event
from tw_autogen.model import ChatModel, LexicalRanker
from tw_autogen.role import Role, Turn, as_role, find_role
from tw_autogen.safe_folder import remove_folder, temporary_folder

_SECONDS = 30.0
"""What an answer is given that was cancelled, or is late, before it began; a slow machine must not fail a check."""


@dataclass(frozen=True)
class _Trial:
    """One role that is tried: how a fresh one is made, what it is asked, and the files that lie in the session."""

    make: Callable[[], Role]
    ask: str
    files: Mapping[str, bytes]


def check_role(
    make: Callable[[], Role] | str | Path, *, ask: str = "hello", files: Mapping[str, bytes] | None = None
) -> list[str]:
    """Run every check of `ROLE_CHECKS` against a role.

    Args:
        make: Makes a fresh role; asked for one with each check. The check closes it. Or the name of a role or the path
            of its folder, as in `open_session`; one that asks a model needs a function that makes it with one.
        ask: What it is asked: something that it can answer.
        files: What lies in the session's folder, by name.

    Returns:
        The names of the checks, all passed.

    Raises:
        RoleSpecError: no role has that name, and no folder that path; or its YAML is wrong.
        AssertionError: naming the check that failed, and what came instead.

    Example:
        >>> from tw_autogen import Post, Role
        >>> class Parrot(Role):
        ...     name, intro = "Parrot", "Repeats."
        ...     def reply(self, memory, **kwargs):
        ...         return Post(self.name, memory.last_post.send_from, memory.last_post.message)
        >>> check_role(Parrot)[0]
        'it_has_a_name_and_an_intro'
    """
    trial = _Trial(_role_maker(make) if isinstance(make, str | Path) else make, ask, files or {})
    for name, check in ROLE_CHECKS.items():
        try:
            check(trial)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error
        except Exception as error:  # a role that is broken may raise anything
            raise AssertionError(f"{name}: {type(error).__name__}: {error}") from error
    return list(ROLE_CHECKS)


def _role_maker(wanted: str | Path) -> Callable[[], Role]:
    """Return what makes a role that is named, with its own settings, where nobody is to be asked."""
    spec = find_role(wanted)
    return lambda: spec.make(_no_model, more={"ranker": LexicalRanker, "approve": lambda: None})


def _no_model() -> ChatModel:
    raise ConfigError("it asks a model: give check_role a function that makes the role with one, say a ScriptedModel")


class _Stage:
    """A role with a session's folder and rounds around it, as a session would hand them over."""

    def __init__(self, trial: _Trial) -> None:
        self._trial = trial
        self.folder = temporary_folder("tw-role-")
        self.rounds: list[Round] = []
        self.events: list[Event] = []

    def __enter__(self) -> _Stage:
        with contextlib.ExitStack() as undo:
            undo.callback(remove_folder, self.folder)
            for name, content in self._trial.files.items():
                path = self.folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            self.role = as_role(self._trial.make())
            undo.pop_all()
        return self

    def __exit__(self, *raised: object) -> None:
        try:
            self.role.close()
        finally:
            remove_folder(self.folder)

    def answer(self, text: str | None = None, *, sender: str = "Planner", **more: Any) -> Post:
        """Ask it in a round of its own, and give its post.

        Args:
            text: The message; None: that of the trial.
            sender: Name of the role that writes to it.
            more: Further arguments of `Turn`.
        """
        text = self._trial.ask if text is None else text
        self.rounds.append(Round(text, posts=[Post("User", "Planner", text), Post(sender, self.role.name, text)]))
        turn = Turn(self.rounds[-1], self.folder, "post-0", self.events.append, **more)
        post = self.role.reply(Memory.of(self.role.name, self.rounds), turn=turn)
        if isinstance(post, Post):
            self.rounds[-1].posts.append(post)
            self.rounds[-1].state = RoundState.finished
        return post


def _it_has_a_name_and_an_intro(trial: _Trial) -> None:
    with _Stage(trial) as stage:
        for key in ("name", "intro"):
            value = getattr(stage.role, key, None)
            _expect(isinstance(value, str) and bool(value.strip()), True, f"`{key}` is a text, not {value!r}")
        _expect(stage.role.name.isidentifier(), True, f"`name` is a plain name, not {stage.role.name!r}")


def _it_answers_with_a_post_from_itself(trial: _Trial) -> None:
    with _Stage(trial) as stage:
        post = stage.answer()
        _expect(type(post).__name__, "Post", "what `reply` returns")
        _expect(post.send_from, stage.role.name, "whom the post is from")
        _expect(bool(post.message.strip()), True, "the post says something")


def _it_answers_whoever_wrote(trial: _Trial) -> None:
    with _Stage(trial) as stage:
        for sender in ("Planner", "User", "another_agent"):
            _expect(stage.answer(sender=sender).send_to, sender, "whom the post is to")


def _it_answers_under_another_name(trial: _Trial) -> None:
    with _Stage(trial) as stage:
        stage.role.name = "Somebody"
        _expect(stage.answer().send_from, "Somebody", "whom the post is from, when it was given another name")


def _it_answers_again_in_the_next_round(trial: _Trial) -> None:
    with _Stage(trial) as stage:
        posts = [stage.answer(), stage.answer()]
        _expect(len({post.id for post in posts}), 2, "different posts have different ids")


def _it_answers_words_that_say_nothing(trial: _Trial) -> None:
    with _Stage(trial) as stage:
        for text in ("", " \n", "?", "x" * 20_000, "naïve \u202e 日本語 \x00 {{$}} %s"):
            _expect(type(stage.answer(text)).__name__, "Post", f"what came of {text[:20]!r}")


def _it_changes_nothing_that_was_said(trial: _Trial) -> None:
    with _Stage(trial) as stage:
        stage.answer()
        before = copy.deepcopy([one.to_dict() for one in stage.rounds])
        stage.answer()
        _expect([one.to_dict() for one in stage.rounds[:-1]], before, "the rounds before")
        said = [post.to_dict() for post in stage.rounds[-1].posts[:2]]
        _expect([one["message"] for one in said], [trial.ask, trial.ask], "what it was asked")


def _it_pins_under_its_own_name_only(trial: _Trial) -> None:
    with _Stage(trial) as stage:
        stage.answer()
        board = stage.rounds[-1].read_board()
        _expect([name for name in board if name != stage.role.name], [], "bulletins of others that it has written")
        _expect([type(text).__name__ for text in board.values()], ["str"] * len(board), "what a bulletin is")


def _what_it_says_can_be_stored(trial: _Trial) -> None:
    with _Stage(trial) as stage:
        post = stage.answer()
        _expect(Post.from_dict(json.loads(json.dumps(post.to_dict()))), post, "the post, stored and read again")


def _it_takes_pictures_and_keywords_that_it_doesnt_know(trial: _Trial) -> None:
    with _Stage(trial) as stage:
        seen = Attachment(AttachmentType.image_url, "data:image/png;base64,")
        here = Round(trial.ask, posts=[Post("Planner", stage.role.name, trial.ask, (seen,))])
        turn = Turn(here, stage.folder)
        post = stage.role.reply(Memory.of(stage.role.name, [here]), turn=turn, something_of_tomorrow=1)
        _expect(type(post).__name__, "Post", "what `reply` returns")


def _it_ends_when_it_is_stopped_or_late(trial: _Trial) -> None:
    stopped = threading.Event()
    stopped.set()
    for how in ({"cancelled": stopped}, {"deadline": time.monotonic() - 1}):
        with _Stage(trial) as stage:
            began = time.monotonic()
            with contextlib.suppress(TwAutogenError):  # a model that is not asked any more says so
                stage.answer(**how)
            _expect(time.monotonic() - began < _SECONDS, True, f"it ends soon, with {next(iter(how))}")


def _what_it_emits_are_events_of_its_own_post(trial: _Trial) -> None:
    with _Stage(trial) as stage:
        stage.answer()
        strange = [event for event in stage.events if getattr(event, "post_id", "post-0") != "post-0"]
        _expect(strange, [], "events of other posts")


def _it_can_be_closed_twice(trial: _Trial) -> None:
    with _Stage(trial) as stage:
        stage.answer()
        stage.role.close()  # and once more by the stage


Check = Callable[[_Trial], None]

ROLE_CHECKS: Mapping[str, Check] = {
    check.__name__.lstrip("_"): check
    for check in (
        _it_has_a_name_and_an_intro,
        _it_answers_with_a_post_from_itself,
        _it_answers_whoever_wrote,
        _it_answers_under_another_name,
        _it_answers_again_in_the_next_round,
        _it_answers_words_that_say_nothing,
        _it_changes_nothing_that_was_said,
        _it_pins_under_its_own_name_only,
        _what_it_says_can_be_stored,
        _it_takes_pictures_and_keywords_that_it_doesnt_know,
        _it_ends_when_it_is_stopped_or_late,
        _what_it_emits_are_events_of_its_own_post,
        _it_can_be_closed_twice,
    )
}
"""Every check by what holds."""


def _expect(found: Any, wanted: Any, what: str) -> None:
    if found != wanted:
        raise AssertionError(f"{what}: expected {wanted!r}, found {found!r}")
