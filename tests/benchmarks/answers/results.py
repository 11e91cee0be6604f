"""`Results`: what came of each question, on disk as soon as it is known, so that a run that was stopped goes on."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tw_autogen.errors import ConfigError

RESULTS, ABOUT = "results.jsonl", "bench.json"


@dataclass(frozen=True)
class Result:
    """What came of one question.

    Args:
        id: The task's.
        response: The answer's text; empty if there was none.
        right: For each sub-answer, whether it is right; none is where there was no answer.
        stop: The Planner's word for why it stopped.
        error: Why there was no answer.
        asked: False where the model could not be asked at all: such a question is asked again.
        seconds: Wall clock.
        usage: Calls, tokens, and dollars where the price is known.
    """

    id: str
    response: str
    right: Mapping[str, bool]
    stop: str = ""
    error: str = ""
    asked: bool = True
    seconds: float = 0.0
    usage: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def solved(self) -> bool:
        """Every sub-answer is right."""
        return bool(self.right) and all(self.right.values())


class Results:
    """The results in one folder.

    Args:
        folder: Made if it isn't there.
        about: What they are results of, such as `{"benchmark": "dabench", "model": "gpt-5.4-mini"}`; results of
            something else are never added to.

    Raises:
        ConfigError: the folder holds results of something else.
    """

    def __init__(self, folder: Path | str, about: Mapping[str, Any]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._path = self.folder / RESULTS
        self._lock = threading.Lock()
        self._check(dict(about))
        self._by_id = {one.id: one for one in self._read()}
        self._path.write_text("".join(map(_line, self._by_id.values())), encoding="utf-8")  # without a cut-off line

    def get(self, task_id: str) -> Result | None:
        """Give the result of a question that need not be asked again."""
        found = self._by_id.get(task_id)
        return found if found and found.asked else None

    def all(self) -> tuple[Result, ...]:
        """Give the newest result of each question."""
        with self._lock:
            return tuple(self._by_id.values())

    def add(self, result: Result) -> None:
        """Keep a result, from any thread; it is on disk when this returns."""
        with self._lock:
            self._by_id[result.id] = result
            with self._path.open("a", encoding="utf-8") as file:
                file.write(_line(result))

    def _check(self, about: dict[str, Any]) -> None:
        path = self.folder / ABOUT
        if not path.exists():
            path.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
            return
        before = json.loads(path.read_text(encoding="utf-8"))
        for key, value in about.items():
            if before.get(key) != value:
                raise ConfigError(
                    f"{path}: these are results of {key} {before.get(key)!r}, not {value!r}; take another folder"
                )

    def _read(self) -> list[Result]:
        if not self._path.exists():
            return []
        lines = self._path.read_text(encoding="utf-8").splitlines()
        found = []
        for number, line in enumerate(lines, start=1):
            try:
                found.append(Result(**json.loads(line)))
            except (ValueError, TypeError) as error:
                if number < len(lines):  # only the last one can have been cut off
                    raise ConfigError(f"{self._path}:{number}: no result of a benchmark: {error}") from error
        return found


def _line(result: Result) -> str:
    return json.dumps(asdict(result), ensure_ascii=False) + "\n"
