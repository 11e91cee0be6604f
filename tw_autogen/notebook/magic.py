"""`%load_ext tw_autogen`: the magic `%tw`, which asks a session of the notebook's own."""

from __future__ import annotations

import atexit
import re
import tokenize
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tw_autogen.errors import ConfigError
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.model import Usage
from tw_autogen.notebook.approval import approve_in_notebook
from tw_autogen.session import Answer, Session, SessionSettings, open_session, read_logged, read_settings

_MAGIC = "tw"
_VARIABLE = "tw_session"
_QUESTION = re.compile(r"(?P<before>[ \t]*(?:[\w.]+[ \t]*=[ \t]*)?)%tw[ \t](?P<rest>.*\?)")
_VALUE = re.compile(r"""(?:"([^"]+)"(?!\S)|'([^']+)'(?!\S)|(\S*))(.*)""", re.DOTALL)
"""In quotes of one kind or of the other, or without; and what follows."""
_USAGE = """usage: %tw [--file PATH]... [--var NAME]... QUESTION      or %%tw, with the question in the cell
       %tw --to-cell      puts the code of the last answer that has some into the next cell
       %tw --close        ends the session that %tw has opened, with its variables"""


@dataclass(frozen=True)
class _Line:
    """The arguments of `%tw`."""

    question: str
    files: list[str] = field(default_factory=list)
    variables: list[str] = field(default_factory=list)
    does: str = ""


def load_ipython_extension(shell: Any) -> None:
    """Register `%tw` and `%%tw`; called by `%load_ext tw_autogen`.

    Args:
        shell: IPython's.
    """
    magic = Magic(shell)
    atexit.register(magic.close)
    shell.register_magic_function(magic, magic_kind="line_cell", magic_name=_MAGIC)
    shell.input_transformers_cleanup.append(as_calls)


def unload_ipython_extension(shell: Any) -> None:
    """Close the session that the magic has opened, and remove the magic; called by `%unload_ext`.

    Args:
        shell: IPython's.
    """
    if as_calls in shell.input_transformers_cleanup:
        shell.input_transformers_cleanup.remove(as_calls)
    for kind in ("line", "cell"):
        magic = shell.magics_manager.magics[kind].pop(_MAGIC, None)
        if magic is not None:
            magic.close()


def as_calls(lines: list[str]) -> list[str]:
    r"""Return a cell's lines with each `%tw QUESTION?` as the call that IPython makes of a magic.

    IPython itself takes a line that ends in `?` as a request for help on its last word.

    Args:
        lines: Of one cell, each with its line end. Those of a cell magic and of a string over several lines stay.

    Example:
        >>> as_calls(["answer = %tw How many rows?\n"])
        ["answer = get_ipython().run_line_magic('tw', 'How many rows?')\n"]
    """
    if lines and lines[0].startswith("%%"):
        return lines
    made: list[str] = []
    for line in lines:
        match = _QUESTION.fullmatch(line.rstrip())
        if match and not _in_string(made):
            line = f"{match['before']}get_ipython().run_line_magic({_MAGIC!r}, {match['rest'].lstrip()!r})\n"
        made.append(line)
    return made


def _in_string(lines: list[str]) -> bool:
    """Return whether a string over several lines is open after these lines."""
    try:
        for _ in tokenize.generate_tokens(iter([*lines, ""]).__next__):
            pass
    except (tokenize.TokenError, SyntaxError) as error:
        return "multi-line string" in str(error) or "triple-quoted" in str(error)
    return False


class Magic:
    """`%tw QUESTION` and `%%tw`.

    The session asked is the one in the notebook's variable `tw_session`. Where there is none, one is opened, whose
    code may read the current folder.

    Args:
        shell: IPython's.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._own: Session | None = None

    def __call__(self, line: str, cell: str | None = None) -> Answer | None:
        """Ask, and return the answer, which the notebook shows.

        Args:
            line: Options, and words of the question.
            cell: More of it.

        Raises:
            ConfigError: an option is unknown, or a variable or an answer is missing.
            RoundError: as `Session.ask`.
        """
        asked = _read(line, cell or "")
        if asked.does == "--to-cell":
            self._to_cell()
        elif asked.does == "--close":
            self.close()
        else:
            return self._ensure_session().ask(asked.question, asked.files, self._variable_values(asked.variables))
        return None

    def close(self) -> None:
        """Close the session that was opened here; one that the user has opened stays."""
        if self._own is not None:
            self._own.close()
            if self._shell.user_ns.get(_VARIABLE) is self._own:
                del self._shell.user_ns[_VARIABLE]
            self._own = None

    def _ensure_session(self) -> Session:
        found = self._shell.user_ns.get(_VARIABLE)
        if isinstance(found, Session) and not found.closed:
            return found
        if found is not None and not isinstance(found, Session):
            raise ConfigError(f"%tw: the notebook's variable {_VARIABLE} is no session; give it another name")
        here, keywords = Path.cwd(), {}
        settings = read_settings({})
        options, kernel = settings.read("session", SessionSettings), settings.read("kernel", KernelSettings)
        inner = Path(options.workspace) / "session"
        if not options.user_folder and not LocalKernel.unreadable_reason(here, kernel, folder=inner):
            keywords["session.user_folder"] = str(here)
        self.close()  # one that the notebook has no variable for any more
        self._own = open_session(settings=read_logged(keywords), approve=approve_in_notebook)
        self._shell.user_ns[_VARIABLE] = self._own
        return self._own

    def _variable_values(self, names: list[str]) -> dict[str, Any]:
        missing = [name for name in names if name not in self._shell.user_ns]
        if missing:
            raise ConfigError(f"%tw --var: the notebook has no variable {', '.join(map(repr, missing))}")
        return {name: self._shell.user_ns[name] for name in names}

    def _to_cell(self) -> None:
        session = self._shell.user_ns.get(_VARIABLE)  # none is opened for it
        rounds = session.rounds if isinstance(session, Session) else []
        answers = (Answer.of(here, Usage()) for here in reversed(rounds))
        code = next((answer.code for answer in answers if answer.code), ())
        if not code:
            raise ConfigError("%tw --to-cell: there is no code of an answer yet")
        head = (
            "# Code of tw_autogen's last answer. It runs here, in no sandbox, with this notebook's files and variables."
        )
        self._shell.set_next_input("\n\n".join([head, *(one.strip("\n") for one in code)]))


def _read(line: str, cell: str) -> _Line:
    """Parse the arguments of `%tw`.

    Raises:
        ConfigError: an option is unknown or lacks its value, or there is no question.

    Example:
        >>> _read("--file sales.csv how many rows?", "")
        _Line(question='how many rows?', files=['sales.csv'], variables=[], does='')
    """
    rest = line.strip()
    files: list[str] = []
    variables: list[str] = []
    while rest.startswith("--"):
        option, _, rest = rest.partition(" ")
        rest = rest.strip()
        if option in ("--to-cell", "--close"):
            return _Line("", does=option)
        *spellings, rest = _VALUE.findall(rest)[0]
        value = "".join(spellings)
        if option not in ("--file", "--var") or not value:
            raise ConfigError(f"%tw: unknown option, or one without a value: {option}\n{_USAGE}")
        (files if option == "--file" else variables).append(value)
        rest = rest.strip()
    question = "\n".join(part for part in (rest, cell.strip()) if part)
    if not question:
        raise ConfigError(_USAGE)
    return _Line(question, files, variables)
