"""Every error of tw_autogen, drawn as one tree.

    TwAutogenError
    ├── ConfigError                 the user's settings or files are wrong; raised before anything runs
    │   ├── SettingsError           an unknown key or a value of the wrong type         .key .origin
    │   ├── NoModelError            no model is configured                              .looked_at
    │   ├── FileError               a file of the user's is wrong                       .path .line .problem
    │   │   ├── PluginSpecError     a plugin's YAML is wrong
    │   │   ├── PluginLoadError     a plugin's Python does not load
    │   │   ├── RoleSpecError       a role's YAML or Python is wrong
    │   │   ├── PolicyError         a policy's YAML is wrong
    │   │   ├── ConversationFormatError  an example or a stored round is wrong
    │   │   └── ScenarioError       a scenario.yaml is wrong
    │   └── HostError               the host framework is missing or mixed up           .command
    ├── ModelError                  a model could not be asked                          .tries
    │   ├── ModelUnreadable         its replies stayed unreadable                       .reply .problems
    │   ├── PromptTooLong           longer than the model's context, also when shortened
    │   └── ReplayParted            a recording and the run have parted                 .index
    ├── Unreadable                  one reply has not the wanted form; a ValueError     .problem
    │   └── NoObject                it has no JSON object                               .words
    ├── KernelError                 the kernel itself (never the code in it) failed     .folder
    │   ├── KernelStartError        it did not start
    │   │   └── SandboxError        no sandbox can be set up here, so no code is run
    │   │       └── SandboxUnavailable  one level of the sandbox could not be set up; the next is tried
    │   └── KernelBusyError         it is already running a cell
    ├── HostCallError               a function called from the kernel failed            .name
    │   ├── HostCallBudgetError     code has made too many calls for one request        .name
    │   └── CallCycleError          an agent was called from its own work, or too deep  .name
    ├── McpServerError              an MCP server is not there; a ConnectionError
    │   └── McpCallLostError        it ended during a call, whose effect is not known
    ├── ToolError                   a tool of an MCP server reported a failure
    ├── ToolCallRefusedError        a call of such a tool was not allowed; a PermissionError
    ├── UnsafeSvgError              an SVG is left out of a notebook; a ValueError
    ├── RoundError                  a round ended without an answer                     .round
    │   ├── RoundTooLong            more posts than `session.max_posts`
    │   ├── RoundTooCostly          more calls, tokens or money than a session's limits allow
    │   ├── RoundLooped             the same words went to the same role twice
    │   ├── RoleError               a role raised something, or answered with no post   .role
    │   ├── RoundTimedOut           longer than `session.round_seconds`
    │   ├── ApprovalNeeded          a person must approve, and nobody can be asked
    │   └── RoundInterrupted        stopped by `Session.interrupt()`
    ├── JournalError                the journal of a session can't be written           .path
    ├── SessionBusyError            asked while a round is open, or open in another process
    └── SessionClosedError          a closed session was asked again

A wrong argument in a caller's Python is a ValueError, TypeError or KeyError, named in the docstring of the function.
What a *model* did wrong is no exception but data (`Finding`, `Execution.error`): it is told to the model.
"""

from __future__ import annotations

import copyreg
import difflib
import itertools
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tw_autogen.deprecated import old_names
from tw_autogen.notebook_traceback import render_traceback
from tw_autogen.text_escaping import escape_controls, inert_output

if TYPE_CHECKING:
    from tw_autogen.conversation import Round

_MAX_NEIGHBOURS = 5000
_MIN_ALIKE = 0.6
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,20}://")


REFUSED = "the request was refused"
"""What the message of a ModelError says where a server has refused a request; the status follows, as in `(400)`."""

_CONTENTS = re.compile(
    r"contents?\b|policy|filter|safety|moderat|images?\b|multimodal|invalid.{0,20}(?:character|utf)|messages?[\[.]\d",
    re.I,
)
_OTHER_REASONS = re.compile(
    r"\b(?:credits?|billing|balance|quota|payment|api[ _-]?key|temperature|top_[pk]|reasoning_effort|unloaded"
    r"|max_(?:completion_|output_)?tokens)\b|\bmodel (?:has |was |is )?(?:crashed|not loaded|loading)\b"
    r"|\bno models? (?:is |are )?loaded\b|\bfailed to load (?:the )?model\b",
    re.I,
)
"""Why a server refuses a request whatever is said in it: the account, the key, a parameter, or a model that is away."""

ENDED_BY_SIGNAL = "it was ended by a signal"
"""Why a round failed that a terminating signal ended; it may be resumed."""


def is_refused_prompt(error: str) -> bool:
    """Return whether an error says that a server has refused what a prompt holds, and for no other reason.

    Args:
        error: The message of a ModelError.

    Example:
        >>> is_refused_prompt(f"{REFUSED} (400): images are not supported")
        True
        >>> is_refused_prompt(f"{REFUSED} (400): Your credit balance is too low")
        False
    """
    _, refused, reason = error.partition(REFUSED)
    return bool(refused and (_CONTENTS.search(reason) or not _OTHER_REASONS.search(reason)))


class TwAutogenError(Exception):
    """Anything that tw_autogen raises on purpose; a notebook shows it with the user's own frames."""

    def __str__(self) -> str:
        """Return the message; what it names came from files, servers and code, so control characters are escapes."""
        return escape_controls(super().__str__())

    def __reduce__(self) -> tuple[object, ...]:  # a pool of processes hands errors on: without calling `__init__` again
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]  # of pickle's own

    def _render_traceback_(self) -> list[str]:  # IPython's name for it
        return render_traceback(self)


class ConfigError(TwAutogenError):
    """The user's settings or files are wrong; raised before anything runs."""


class SettingsError(ConfigError):
    """An unknown settings key, or a value of the wrong type; carries the `key` and where it came from."""

    def __init__(self, message: str, *, key: str, origin: str) -> None:
        super().__init__(message)
        self.key = key
        self.origin = origin


class NoModelError(ConfigError):
    """No model is configured; `looked_at` lists the places that were searched."""

    def __init__(self, message: str, *, looked_at: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.looked_at = looked_at


class FileError(ConfigError):
    """A file of the user's is wrong; the message starts with its `path`, and with the `line` where it is known."""

    def __init__(self, problem: str, *, path: Path | str, line: int | None = None) -> None:
        where = str(path) if line is None else f"{path}:{line}"
        super().__init__(f"{where}: {problem}")
        self.path = Path(path)
        self.line = line
        self.problem = problem


class PluginSpecError(FileError):
    """A plugin's YAML is wrong."""


class PluginLoadError(FileError):
    """A plugin's Python does not load, or does not match its YAML."""


class RoleSpecError(FileError):
    """A role's YAML or Python is wrong."""


class PolicyError(FileError):
    """A policy's YAML is wrong."""


class ConversationFormatError(FileError):
    """An example, or a stored round, is not in TaskWeaver's format."""


class ScenarioError(FileError):
    """A `scenario.yaml`, or a file that belongs to it, is wrong."""


class HostError(ConfigError):
    """The host framework is missing or mixed up; `command` fixes it."""

    def __init__(self, message: str, *, command: str) -> None:
        super().__init__(f"{message}\n  {command}")
        self.command = command


class ModelError(TwAutogenError):
    """A model could not be asked, after `tries` tries."""

    def __init__(self, message: str, *, tries: int = 1) -> None:
        super().__init__(message)
        self.tries = tries


class ModelUnreadable(ModelError):
    """A model's replies stayed unreadable; carries the last `reply` and the `problems` that it was told, in order."""

    def __init__(self, message: str, *, reply: str, problems: tuple[str, ...]) -> None:
        super().__init__(message, tries=len(problems))
        self.reply = reply
        self.problems = problems


class PromptTooLong(ModelError):
    """The server refused a prompt as longer than the model's context."""


class ReplayParted(ModelError):
    """A recording and the run have parted at reply number `index` (from 0)."""

    def __init__(self, message: str, *, index: int) -> None:
        super().__init__(message)
        self.index = index


class Unreadable(TwAutogenError, ValueError):
    """A reply of a model has not the wanted form; `problem` says what is wrong and what is wanted, for the model."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


class KernelError(TwAutogenError):
    """The kernel itself failed; what fails inside a cell is an `Execution`, never this."""

    def __init__(self, message: str, *, folder: Path | None = None) -> None:
        super().__init__(message)
        self.folder = folder


class KernelStartError(KernelError):
    """The kernel did not start."""


class SandboxError(KernelStartError):
    """No sandbox, or not the one that was asked for, can be set up on this system; no code is run."""

    REMEDY = "What would allow one:"
    """The words before what to do, in a message that knows it."""


class KernelBusyError(KernelError):
    """The kernel is already running a cell: the same cell, through a host call, asked for it again."""


class HostCallError(TwAutogenError):
    """A function that code in the kernel called on the host failed; `name` is the function's."""

    def __init__(self, message: str, *, name: str) -> None:
        super().__init__(message)
        self.name = name


class HostCallBudgetError(HostCallError):
    """Code has called the host too often, or for too long, for one request; the message names the setting."""


class CallCycleError(HostCallError):
    """An agent was called from its own work, or calls between agents went too deep; the message shows the chain."""


class McpServerError(TwAutogenError, ConnectionError):
    """An MCP server could not be reached, or is gone; the message says which, and what it wrote last."""


class McpCallLostError(McpServerError):
    """A call was sent, and no answer came that could be read: whether it took effect is not known."""


class ToolError(TwAutogenError):
    """A tool of an MCP server reported a failure; the message is its own."""


class ToolCallRefusedError(TwAutogenError, PermissionError):
    """A call of such a tool was not made; the message says why, and what allows it."""


class RoundError(TwAutogenError):
    """A round ended without an answer; `round` holds all that was said until then."""

    def __init__(self, message: str, *, round: Round) -> None:  # noqa: A002 - the word of the field
        super().__init__(message)
        self.round = round

    def in_words(self) -> str:
        """Return for a chat that the request could not be answered, why, and what was found out; as `inert_output`."""
        posts = self.round.posts
        found = [post for post in posts[1:] if post.send_to == posts[0].send_to]
        last = [f"{one.send_from} said last: {one.message[:1000]}" for one in found[-1:]]
        return inert_output("\n\n".join([f"I could not answer this request: {self.reason}", *last]))

    @property
    def reason(self) -> str:
        """The message for a chat: without the round's id, and without places in the host's own source."""
        return str(self).removeprefix(f"{self.round.id}: ")


class RoundTooLong(RoundError):
    """More posts than `session.max_posts` and no answer for the user."""


class RoundTooCostly(RoundError):
    """A limit of calls, tokens or money was reached: `session.max_calls`, `max_tokens`, `max_dollars`."""


class RoundLooped(RoundError):
    """The same task was to go to the same role once more, after the same answer twice: the work goes in circles."""


class RoleError(RoundError):
    """A role raised something, or answered with what is no post; says which, and the line of its Python (`where`)."""

    def __init__(self, message: str, *, round: Round, role: str, where: str = "") -> None:  # noqa: A002 - as above
        super().__init__(f"{message} ({where})" if where else message, round=round)
        self.role, self.where = role, where

    @property
    def reason(self) -> str:
        """As of any RoundError; without `where`."""
        return super().reason.removesuffix(f" ({escape_controls(self.where)})")


class RoundTimedOut(RoundError):
    """The round took longer than `session.round_seconds`."""


class ApprovalNeeded(RoundError):
    """A person must approve what comes next, and nobody can be asked."""


class RoundInterrupted(RoundError):
    """`Session.interrupt()` was called."""


class JournalError(TwAutogenError):
    """The journal of a session can't be written: the disk is full, or the journal has as much as is read again."""

    def __init__(self, message: str, *, path: Path) -> None:
        super().__init__(message)
        self.path = path


class SessionBusyError(TwAutogenError):
    """A session was asked for what has to wait until its open round, or the process that has it open, has ended."""


class SessionClosedError(TwAutogenError):
    """A closed session was asked again."""


def did_you_mean(word: str, known: Iterable[str], *, cutoff: float = _MIN_ALIKE) -> str:
    """Return the end of a message about an unknown word, `"; did you mean 'parameters'?"`; empty if no word is near.

    Args:
        word: What was written.
        known: The words that would have been right.
        cutoff: How like they must be, from 0 to 1.
    """
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return f"; did you mean {close[0]!r}?" if close else ""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown word: the known word that was probably meant.

    Args:
        word: What was written.
        known: The words that would have been right.

    Returns:
        `"; did you mean 'parameters'?"`, or, with no neighbour near enough, `"; known: 'a', 'b'"`.
    """
    names = sorted(map(str, known))
    return did_you_mean(word, names) or (f"; known: {', '.join(map(repr, names))}" if names else "")


def unknown_key(given: Iterable[object], known: Iterable[str]) -> str:
    """Return what is wrong with the first key that means nothing, as a message; empty if all are known.

    Args:
        given: The keys of a mapping.
        known: Those that mean something.

    Example:
        >>> unknown_key({"paramters": []}, ("name", "parameters"))
        "unknown key 'paramters'; did you mean 'parameters'?"
    """
    names = tuple(known)
    return next((f"unknown key {key!r}{nearest(str(key), names)}" for key in given if key not in names), "")


def path_suggestion(path: Path | str) -> str:
    """Return the end of a message about a missing path: the file or folder beside it that was probably meant.

    Args:
        path: What was written; nothing is there.

    Returns:
        `"; did you mean 'sales.csv'?"`, or the same about the first folder of the path that is missing; empty if
        nothing has a similar name.
    """
    try:
        path = Path(path).expanduser()
        while path != path.parent and not path.parent.exists():
            path = path.parent
    except (OSError, RuntimeError, ValueError):  # no such user's home, or no path
        return ""
    near = near_files(path.parent, path.name)
    return f"; did you mean {near[0]!r}?" if near else ""


def near_files(
    folder: Path,
    name: str,
    is_wanted: Callable[[os.DirEntry[str]], bool] = lambda entry: True,
    *,
    cutoff: float = _MIN_ALIKE,
) -> list[str]:
    """Return the plain names of at most three files and folders that may have been meant, nearest first.

    Args:
        folder: Where they are looked for; its first 5000 entries count.
        name: The plain name of what isn't there.
        is_wanted: Returns whether an entry may be named.
        cutoff: How like they must be, from 0 to 1.
    """
    try:
        with os.scandir(folder) as entries:
            names = sorted(one.name for one in itertools.islice(entries, _MAX_NEIGHBOURS) if is_wanted(one))
    except (OSError, ValueError):
        return []
    return difflib.get_close_matches(name, names, n=3, cutoff=cutoff)


def url_problem(name: str) -> str:
    """Return why a name is no file's if it is a URL, in a clause that follows it; otherwise empty.

    Example:
        >>> url_problem("https://example.org/a.csv"), url_problem("a.csv")
        ('a URL; download it, and name the file', '')
    """
    return "a URL; download it, and name the file" if _URL.match(name) else ""


__getattr__ = old_names(__name__, {}, renamed={"CallBudgetError": "HostCallBudgetError"})
