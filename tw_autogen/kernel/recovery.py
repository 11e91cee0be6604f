"""`Recovery`: what a kernel notes of its cells, and how a later kernel gets their variables back."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tw_autogen.errors import KernelError
from tw_autogen.kernel.cell_journal import CellJournal
from tw_autogen.kernel.client import KernelClient
from tw_autogen.kernel.execution_results import COMES_BACK, LOST, error_text, rows, went_well
from tw_autogen.kernel.guest.codec import TAG as MARK
from tw_autogen.kernel.guest.output_capture import clip
from tw_autogen.kernel.kernel import Log
from tw_autogen.kernel.pending_request import ON_REQUEST, RawResult
from tw_autogen.plural import pluralize

TAG = "resume"
_MIN_SECONDS = 10.0
_TIMES = 3.0
_MAX_SECONDS = 1200.0
"""What is believed of a cell's time: code can write to the journal."""
_TOGETHER_SECONDS = 600.0
"""How long all cells may take together that are run again."""

_MAX_LINES, _LINE_CHARS = 500, 10_000
"""What is said of it all: code has written the journal and the checkpoint."""

_INTERRUPTED = "running it again was interrupted"
_STATE = re.compile(
    r"\b(?:os\.chdir|random\.seed|set_seed|manual_seed|set_option|rcParams|style\.use|set_theme|sys\.path|setlocale"
    r"|warnings\.(?:simplefilter|filterwarnings))\b|^%cd\b",
    re.MULTILINE,
)
Entry = Mapping[str, Any]


Rerun = bool | Callable[[Sequence[str]], bool]
"""Whether cells are run again: always, never, or what a function decides that is given their code."""


def resume(
    live: KernelClient,
    entries: Sequence[Entry],
    *,
    rerun: Rerun = True,
    trust: bool = False,
    values: Mapping[str, Any] = MappingProxyType({}),
) -> list[Log]:
    """Bring back what can be had; say what could not.

    From the checkpoint, if there is one, and the later cells are run again; or all cells are run again, if together
    they took less time than the checkpoint and called nothing in the host.

    Args:
        live: A fresh kernel with plugins, served functions and put variables.
        entries: The journal.
        rerun: Run cells again; False: the checkpoint only, and cells that it doesn't cover are lost. A function is
            asked where there are such cells.
        trust: Read also a checkpoint that no kernel of this user has written there.
        values: What the host has put last, by name: the journal holds no tables, and no values of many megabytes.

    Raises:
        KernelError: the kernel ended over it.
    """
    logs: list[Log] = []
    header = live.ask("checkpointed").get("ok")
    start, left = 0, []
    if isinstance(header, dict) and not (rerun is True and _is_rerun_quicker(entries, header)):
        answer = live.ask("read_checkpoint", trust=trust)
        if "ok" in answer:
            found = answer["ok"] if isinstance(answer["ok"], dict) else {}
            start = _checkpoint_position(found, entries)
            left = list(_pairs(found.get("left")))
            logs += [_warning(f"{name} is not in the checkpoint: {why}") for name, why in left]
        else:
            logs.append(_warning(f"the checkpoint could not be read: {answer.get('error')}"))
    outdated = _outdated_lines(entries, start, {name for name, _ in left})
    later = [entry for number, entry in enumerate(entries[start:], start + 1) if number not in outdated]
    codes = [str(entry["code"]) for entry in later if "code" in entry and not entry.get("called")]
    if callable(rerun):
        rerun = not codes or rerun(codes)
    count = 0
    until = time.monotonic() + _TOGETHER_SECONDS
    for number, entry in enumerate(entries[start:], start + 1):
        if entry.get("failed"):
            continue
        if "put" in entry:
            problem = _put_again(live, entry, values)
        elif number in outdated:
            problem = "this cell saw a table that the host has put anew since; it was not run again"
        else:
            problem = _rerun_cell(live, entry, until - time.monotonic()) if rerun else "it was not run again"
        if problem == _INTERRUPTED:
            until = 0.0
        count += "code" in entry and not problem
        if problem:
            logs.append(_warning(f"line {number} of the journal: {problem}"))
    there = [name for name, _, _ in rows(live.ask("hello"), "variables", 3)]
    known = set(there)
    logs += [_warning(f"{name} did not come back") for name in _last_names(entries) if name not in known]
    if state := _state_set_by(entries[:start]):
        logs.append(_warning(f"what cells set by {', '.join(state)} did not come back: it is no variable"))
    source = f"a checkpoint (cells 1 to {_count_cells(entries[:start])})" if start else ""
    ways = [way for way in (source, f"{pluralize(count, 'cell')} run again" if count else "") if way]
    if there and ways:
        logs.insert(0, Log("info", TAG, f"variables came back from {' and '.join(ways)}: {', '.join(there)}"))
    more = [_warning(f"{len(logs) - _MAX_LINES} more lines are left out")] if len(logs) > _MAX_LINES else []
    return [*(replace(log, message=clip(log.message, _LINE_CHARS)) for log in logs[:_MAX_LINES]), *more]


def _state_set_by(entries: Sequence[Entry]) -> list[str]:
    """Return what cells called or set whose effect is in no variable."""
    codes = (str(entry.get("code", "")) for entry in entries)
    return list(dict.fromkeys(match.group() for code in codes for match in _STATE.finditer(code)))


def _outdated_lines(entries: Sequence[Entry], start: int, left: Set[str]) -> set[int]:
    """Return the lines from `start` on that are cells which may have seen another table than the last one of its name.

    Args:
        entries: The journal.
        start: How many lines the checkpoint covers.
        left: Names that are not in it.
    """
    last = {
        str(entry["put"]): number for number, entry in enumerate(entries) if "put" in entry and "value" not in entry
    }
    other = {name for name in left if last.get(name, -1) >= start}
    outdated = set()
    for number, entry in enumerate(entries[start:], start):
        if "code" in entry and other:
            outdated.add(number + 1)
        elif "put" in entry:
            name = str(entry["put"])
            (other.add if number < last.get(name, -1) else other.discard)(name)
    return outdated


def _put_again(live: KernelClient, entry: Entry, values: Mapping[str, Any]) -> str:
    """Repeat a `put`; return why that failed, empty if it did not."""
    name = str(entry["put"])
    if "value" in entry:
        answer = live.ask("put", name=name, value=entry["value"], session=True)
    elif name in values:
        answer = live.ask("put", name=name, value=live.codec.pack(values[name]), session=not is_table(values[name]))
    else:
        size = entry.get("bytes")
        what = f"{name!r}, too large for the journal ({size} bytes)," if size else f"the table {name!r}"
        return f"{what} was put in by the host, and has to be put in again"
    return str(answer.get("error") or "")


def is_table(value: Any) -> bool:
    """Return whether a value is a table of pandas: it crosses, but is no session variable."""
    return type(value).__name__ in ("DataFrame", "Series")


def _holds_table(packed: Any) -> bool:
    """Return whether a value crossed with a file, which is gone by now."""
    text = json.dumps(packed)
    return any(f'"{MARK}": "{kind}"' in text for kind in ("DataFrame", "Series"))


def _rerun_cell(live: KernelClient, entry: Entry, left: float) -> str:
    """Run a cell again, within the seconds that are left; return why that failed, empty if it did not."""
    code = entry.get("code")
    if not isinstance(code, str):
        return "it can't be read"
    if entry.get("called"):
        return "this cell called functions of the host, which would have their effect twice; it was not run again"
    if left <= 0:
        return "it was not run again, because bringing variables back took too long or was interrupted"
    outcome = live.start_cell(code, seconds=min(left, max(_MIN_SECONDS, _TIMES * _recorded_seconds(entry)))).wait()
    if outcome.stopped == ON_REQUEST:
        return _INTERRUPTED
    return "" if went_well(outcome) else f"this cell failed when it was run again: {error_text(outcome)[-500:]}"


def _is_rerun_quicker(entries: Sequence[Entry], header: Entry) -> bool:
    """Return whether running the cells that a checkpoint covers is safe, and quicker than reading it."""
    covered = entries[: _checkpoint_position(header, entries)]
    safe = bool(covered) and all(("code" in entry and not entry.get("called")) or "value" in entry for entry in covered)
    return safe and sum(map(_recorded_seconds, covered)) < _recorded_seconds(header)


def _checkpoint_position(header: Entry, entries: Sequence[Entry]) -> int:
    position = header.get("position")
    return min(max(position, 0), len(entries)) if isinstance(position, int) else 0


def _recorded_seconds(entry: Entry) -> float:
    seconds = entry.get("seconds")
    return min(float(seconds), _MAX_SECONDS) if isinstance(seconds, (int, float)) and abs(seconds) < 1e300 else 0.0


def _count_cells(entries: Sequence[Entry]) -> int:
    return sum("code" in entry for entry in entries)


def _last_names(entries: Sequence[Entry]) -> list[str]:
    for entry in reversed(entries):
        if isinstance(entry.get("variables"), list):
            return list(map(str, entry["variables"]))
    return []


def _pairs(found: Any) -> Iterator[tuple[str, str]]:
    for pair in found if isinstance(found, list) else []:
        if isinstance(pair, list) and len(pair) == 2:
            yield str(pair[0]), str(pair[1])


def _warning(text: str) -> Log:
    return Log("warning", TAG, text)


class Recovery:
    """Keeps a journal of cells, has checkpoints written, and brings variables back from both.

    Args:
        folder: Where journal and checkpoint lie; None: nothing is kept.
        resumes: Bring back what an earlier kernel left there; otherwise that is removed.
        checkpoints: Have copies of the variables written.
        rerun: Whether cells that an earlier kernel ran may be run again, where `resumes`; those of a kernel that this
            process has seen are.
        trust: Bring back also what this user did not write in this folder.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        resumes: bool = False,
        checkpoints: bool = False,
        rerun: Rerun = True,
        trust: bool = False,
    ) -> None:
        self._journal = None if folder is None else CellJournal(folder, trust=trust)
        self._trust = trust
        self._checkpoints = checkpoints
        self.due = resumes
        """Whether variables are to be brought back into the next kernel."""
        self._rerun: Rerun = rerun if resumes else True
        self._said: list[Log] = []
        self._noted: frozenset[str] = frozenset()
        self._is_full = False
        if self._journal and not resumes:
            self._journal.clear()

    def variables_key(self) -> str:
        """Return the key with which a kernel seals copies of its variables; empty where nothing is kept."""
        return self._journal.variables_key() if self._journal else ""

    @property
    def kept(self) -> bool:
        """Whether there is something that a fresh kernel would get back."""
        return self._journal is not None and self._journal.position > 0

    @property
    def loss_message(self) -> str:
        """Return what the end of a process means for the variables."""
        return COMES_BACK if self._journal else LOST

    def begin(self, live: KernelClient, packed: Mapping[str, Any]) -> None:
        """Look what there is for a process that has just been started.

        Args:
            live: Its kernel.
            packed: The variables that the host has put in, as they crossed; a journal that is empty begins with them.
        """
        if self._journal:
            told = self._journal.refusal
            self.due = bool(self._journal.open(live.uid))
            if self._journal.refusal and not told:
                self._said.append(_warning(self._journal.refusal))
            if not (self.due or self._journal.refusal):
                for name, value in packed.items():
                    self.note_put(name, value)

    def forget(self) -> None:
        """Remove all that was kept: the next process begins afresh."""
        self.due = False
        if self._journal:
            self._journal.clear()

    def take_said(self) -> list[Log]:
        """Return, once, what there is to say about what came back."""
        logs, self._said = self._said, []
        return logs

    def restore_variables(
        self,
        live: KernelClient,
        told: Callable[[dict[str, Any]], None],
        renew: Callable[[], KernelClient],
        values: Mapping[str, Any],
    ) -> KernelClient:
        """Bring variables back that an earlier process had, if that is due.

        Args:
            live: A fresh kernel with plugins, served functions and put variables.
            told: Given the answer that names the variables that are there.
            renew: Ends the kernel, and gives another one like it.
            values: What the host has put last, by name.

        Returns:
            The kernel; another one if this one ended over it.
        """
        if not self.due or self._journal is None:
            return live
        self.due = False
        for rerun in (self._rerun, False):
            try:
                entries = self._journal.open(live.uid)
                self._said += resume(live, entries, rerun=rerun, trust=self._trust, values=values)
                told(live.ask("hello"))
                self._request_checkpoint(live, urgent=False)
                self._rerun = True
                return live
            except KernelError as error:
                self._said.append(_warning(f"bringing variables back ended the kernel: {error}"))
                live = renew()
                self.due = False
        self._journal.set_aside()
        return live

    def note_put(self, name: str, packed: Any) -> None:
        """Take down a variable that the host has put in; of a table, or one that is too large, only the name.

        Args:
            name: The variable's name.
            packed: Its value as it crossed.
        """
        if self._journal is None:
            return
        entry = {"put": name} if _holds_table(packed) else {"put": name, "value": packed}
        if not self._journal.append(entry) and "value" in entry:
            self._journal.append({"put": name, "bytes": len(json.dumps(packed))})

    def note_cell(self, live: KernelClient, code: str, outcome: RawResult, variables: Sequence[str]) -> None:
        """Take down a cell, and have a copy of the variables written if that is due.

        Args:
            live: The kernel.
            code: The cell.
            outcome: What came of it.
            variables: Names of those that are there after it.
        """
        if self._journal is None or outcome.died:
            return
        self._journal.start_over()
        called = outcome.called
        noted = True
        if went_well(outcome):
            cell = {"code": code, "seconds": round(outcome.seconds, 3), "called": called}
            noted = self._journal.append({**cell, "variables": list(variables)})
        elif not self._noted.issuperset(variables):  # never run again: a copy of the variables can cover it
            noted = self._journal.append({"failed": True, "variables": list(variables)})
        if not (noted or self._is_full):
            self._said.append(_warning("the journal of cells is full: no more cells can be run again later"))
        self._is_full = not noted
        self._noted = frozenset(variables)
        self._request_checkpoint(live, urgent=called)

    def finish(self, live: KernelClient) -> None:
        """Write a last copy of the variables before the kernel ends."""
        if self._journal and self._checkpoints and self._journal.position and not self.due:
            with contextlib.suppress(KernelError):  # it ends in any case, and the copy before stays
                live.finish_checkpoint(self._journal.position)

    def _request_checkpoint(self, live: KernelClient, *, urgent: bool) -> None:
        if self._journal and self._checkpoints:
            live.tell("checkpoint", position=self._journal.position, urgent=urgent)
