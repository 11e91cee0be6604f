"""`Team`: the roles of one session, where those work that run code, and which of them speaks next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from tw_autogen.code_interpreter import CodeInterpreter
from tw_autogen.conversation import Post, Round
from tw_autogen.errors import ConfigError, RoundError, TwAutogenError, nearest
from tw_autogen.kernel import AttachedKernel, FileDescriber, Kernel, Variable
from tw_autogen.planner import Planner
from tw_autogen.role import Killable, Placed, Role, Turn, as_role
from tw_autogen.session.answer import USER


@runtime_checkable
class Interruptible(Protocol):
    """A role that can be stopped in the middle of an answer."""

    def interrupt(self) -> None:
        """Stop what is running; called by `Session.interrupt` from any thread."""
        ...


@runtime_checkable
class CodeRunner(Protocol):
    """A role that can run code which was not written by its model."""

    def run_code(self, code: str, *, turn: Turn, send_to: str) -> Post:
        """Check code and run it as it stands; called by `Session.run_code`, in the session's thread.

        Args:
            code: Python.
            turn: As for `Role.reply`.
            send_to: Who gets the report.
        """
        ...

    def variables(self) -> tuple[Variable, ...]:
        """Return the variables that exist now."""
        ...


class Team:
    """Who answers in a session.

    Args:
        roles: In the order in which they are named.
        entry: Name of the role that gets the user's requests; None: the one named `Planner`, else the first.

    Raises:
        ConfigError: there is no role, or two have the same name.
    """

    def __init__(self, roles: Sequence[Role], entry: str | None) -> None:
        roles = [as_role(role) for role in roles]
        self.names = [role.name for role in roles]
        if not roles or len(set(self.names)) < len(self.names) or USER in self.names:
            raise ConfigError(f"a session needs roles with names of their own, none of them {USER!r}; got {self.names}")
        self._roles = {role.name: role for role in roles}
        self.entry = entry or (Planner.name if Planner.name in self.names else self.names[0])

    @property
    def roles(self) -> tuple[Role, ...]:
        """Who answers, in the order given."""
        return tuple(self._roles.values())

    @property
    def folder(self) -> Path | None:
        """The folder in which code runs; None if no kernel is there yet."""
        return next((role.folder for role in self._placed_roles if role.folder), None)

    @property
    def where(self) -> str:
        """Describe in one line where code runs now; `no kernel` if no role runs any."""
        return "; ".join(dict.fromkeys(role.where for role in self._placed_roles)) or "no kernel"

    @property
    def plugin_names(self) -> list[str]:
        """What code may call, beside Python's own."""
        return [name for role in self._placed_roles for name in role.plugin_names]

    @property
    def plugin_files(self) -> dict[str, str]:
        """The YAML or Python files of the plugins that were read from one, by name, where their role tells them."""
        return {name: file for role in self._placed_roles for name, file in getattr(role, "plugin_files", {}).items()}

    @property
    def runner(self) -> Any:
        """Return the first role that runs code, which is a `CodeRunner` too; None if there is none."""
        return next((role for role in self.roles if isinstance(role, CodeRunner)), None)

    def describer(self, folder: Path) -> FileDescriber | None:
        """Return the kernel of the first role that runs code, if it can describe files; it is made if it isn't there.

        Args:
            folder: The session's.
        """
        kernel = self.kernel_in(folder)
        return kernel if isinstance(kernel, FileDescriber) else None

    def kernel_in(self, folder: Path) -> Kernel | None:
        """Return the kernel of the first role that runs code; it is made if it is not there. None: nobody does.

        Args:
            folder: The session's.
        """
        runner = self.runner
        return runner.kernel_in(folder) if isinstance(runner, CodeInterpreter) else None

    def users_variables(self, folder: Path) -> tuple[Variable, ...]:
        """Return the variables of a notebook's own kernel, which its user has made; of any other kernel none.

        Args:
            folder: The session's.
        """
        kernel = self.kernel_in(folder)
        try:
            return kernel.variables() if isinstance(kernel, AttachedKernel) else ()
        except TwAutogenError:  # the first cell will say it
            return ()

    @property
    def planned(self) -> bool:
        """Whether a Planner gets the user's requests."""
        return self.entry == Planner.name or isinstance(self._roles.get(self.entry), Planner)

    def interrupt(self, *, kill: bool = False) -> None:
        """Stop what runs, from any thread; with `kill` end the processes of running cells."""
        for role in self.roles:
            if kill and isinstance(role, Killable):
                role.kill()
            elif isinstance(role, Interruptible):
                role.interrupt()

    @property
    def _placed_roles(self) -> list[Placed]:
        return [role for role in self.roles if isinstance(role, Placed)]


def allowed_receivers(team: Team, role: Role, here: Round) -> tuple[str, ...]:
    """Return to whom a role may write now; empty: to anybody.

    In a session with a Planner every other role answers whoever wrote to it, or the Planner.

    Args:
        team: The roles of the session.
        role: Who is about to write.
        here: The round, with all posts until now.
    """
    if not team.planned or role.name == team.entry:
        return ()
    asked = next((post.send_from for post in reversed(here.posts) if post.send_to == role.name), team.entry)
    return tuple(dict.fromkeys((asked, team.entry)))


def next_speaker(team: Team, here: Round) -> Role | None:
    """Return the role that the round's newest post is for; None if it is for the user.

    Args:
        team: The roles of the session.
        here: The round, with all posts until now.

    Raises:
        RoundError: nobody of that name is here.
    """
    name = here.posts[-1].send_to
    if name == USER:
        return None
    found = next((role for role in team.roles if role.name == name), None)
    if found is None:
        raise RoundError(
            f"{here.id}: {here.posts[-1].send_from} wrote to {name!r}, and nobody here is called that"
            f"{nearest(name, [*team.names, USER])}",
            round=here,
        )
    return found
