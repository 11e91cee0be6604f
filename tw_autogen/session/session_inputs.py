"""`SessionInputs`: files and data that requests bring into a session's folder, and how they are described there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tw_autogen.conversation import Definitions, Round
from tw_autogen.session.answer_files import AnswerFiles
from tw_autogen.session.mentioned_files import Named, NamedFiles
from tw_autogen.session.path_grants import Grants
from tw_autogen.session.request_descriptions import RequestDescriptions
from tw_autogen.session.request_inputs import FilesWanted, checked_inputs, checked_text, place_inputs
from tw_autogen.session.settings import SessionSettings
from tw_autogen.session.team import Team

_MOST_UNREAD = 3
"""How many descriptions of earlier requests' files, and of the user's folder, the board has."""


@dataclass(frozen=True)
class Brought:
    """What one request brings.

    Args:
        placed: The files where code has them.
        missing: Names in the request for which there is no file.
        note: A line for the model about files that the request names.
    """

    placed: tuple[Path, ...]
    missing: tuple[str, ...]
    note: str


class SessionInputs:
    """Places the files of a session's requests in its folder, and describes them.

    Args:
        folder: The session's, in which code works.
        settings: The session's.
        grants: What code may read besides.
        team: The session's roles.
        distrusted: A folder that somebody else may have made: a given file there must not be a link out of it.
        on_problem: Called with a line about a file that can't be read as what its name says.
    """

    def __init__(
        self,
        folder: Path,
        settings: SessionSettings,
        grants: Grants,
        team: Team,
        *,
        distrusted: Path | None,
        on_problem: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._grants = grants
        self._team = team
        self._distrusted = distrusted
        self._descriptions = RequestDescriptions(settings, folder, lambda: team.describer(folder), on_problem)
        self._named = NamedFiles(settings.user_folder, folder, grants.show_granted)
        self._unread: list[str] = []
        self._unread_folder: list[str] = []
        self._folder_holds = ""

    def check(
        self, text: str, files: FilesWanted, variables: Mapping[str, Any], images: Sequence[str]
    ) -> tuple[Path, ...]:
        """Return the files that a request gives.

        Args:
            text: The request; it must not be empty.
            files: Paths, or a single one.
            variables: Values by the names under which code will have them.
            images: URLs (`data:` or `https:`).

        Raises:
            ConfigError: as `Session.ask`.
        """
        checked_text(text)
        return tuple(checked_inputs(files, variables, images, distrusted=self._distrusted))

    def place(self, text: str, given: tuple[Path, ...], *, named: bool) -> Brought:
        """Place the files that a request gives, and those that its words name.

        Args:
            text: The request.
            given: As `check` returned them.
            named: Look for files that the words name.
        """
        found = self._named.bring(text, {path.name for path in given}) if named else Named()
        placed = place_inputs(
            [*given, *found.found],
            self._folder,
            self._grants.show,
            distrusted=self._distrusted,
            show_granted=self._grants.show_granted,
            limit_mb=self._grants.settings.disk_mb,
        )
        return Brought(tuple(placed), tuple(found.missing), found.note)

    def describe(self, text: str, brought: Brought, variables: Mapping[str, Any]) -> str:
        """Return a description of what a request brings, for models; empty if it brings nothing.

        Args:
            text: The request, which says what is relevant.
            brought: Its files.
            variables: Its data.
        """
        return self._descriptions.of_request(text, brought.placed, variables)

    def folder_note(self, text: str, used_chars: int, landing: AnswerFiles | None) -> str:
        """Return what code may do in the folder that the user works in, what becomes of new files, and what it holds.

        Args:
            text: The request; empty: what the folder holds is left out.
            used_chars: How long the description of the request's own files is.
            landing: Who copies files to where the user is; None: nobody.
        """
        users = self._settings.user_folder
        note = self._grants.describe(users, self._folder) if users else ""
        sentence = landing.sentence if landing is not None and self._team.runner is not None else ""
        holds = self._descriptions.of_folder(text, users, used_chars) if users and text else ""
        self._folder_holds = holds
        return "\n\n".join(part for part in (f"{note} {sentence}".strip(), holds) if part)

    def board(self, profile: str, rounds: Sequence[Round]) -> str:
        """Return what workers lack of earlier requests, for the board; empty if that is nothing.

        That is what describes files while nobody ran code, and the user's definitions where no Planner passes them on,
        because the request goes to another role.

        Args:
            profile: Description of this request's files; empty if it has none.
            rounds: The session's, this one included, with the user's post.
        """
        if not self._team.planned:
            return ""
        words = self._unread_descriptions(profile, rounds)
        if rounds[-1].posts[0].send_to != self._team.entry:
            words.append(Definitions.of(rounds).describe())
        return "\n\n".join(part for part in words if part)

    def _unread_descriptions(self, profile: str, rounds: Sequence[Round]) -> list[str]:
        runner = self._team.runner
        if runner is None:
            return []
        if len(rounds) > 1 and any(post.send_from == runner.name for post in rounds[-2].posts):
            self._unread.clear()
            self._unread_folder.clear()
        found = [*self._unread[-_MOST_UNREAD:], *self._unread_folder[-_MOST_UNREAD:]]
        self._unread += filter(None, [profile])
        self._unread_folder += filter(None, [self._folder_holds])
        return ["Earlier requests brought:", *found] if found else []
