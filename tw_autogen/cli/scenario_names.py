"""Which scenarios are meant by the names and folders of a command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tw_autogen.errors import ScenarioError, nearest
from tw_autogen.scenario import FILE, Scenario, find_scenarios, read_scenario
from tw_autogen.shipped import shipped_folder


def find_named(names: Sequence[str]) -> tuple[Scenario, ...]:
    """Read scenarios by name or folder; all shipped ones where none is named.

    A single word is a shipped scenario's name; `./word` is a folder.

    Raises:
        ScenarioError: there is no such scenario, or it is wrong.
    """
    shipped = shipped_folder("scenarios")
    found: list[Scenario] = []
    for name in names or (str(shipped),):
        path = Path(name)
        if path.name == FILE and path.is_file():
            found.append(read_scenario(path))
        elif path.name == name and (shipped / name / FILE).is_file():
            found.append(read_scenario(shipped / name))
        elif path.is_dir() and path.name == name != "..":
            raise ScenarioError(f"no shipped scenario; write ./{name} for the folder that lies here", path=name)
        elif path.is_dir():
            own = (path / FILE).is_file()
            found += [read_scenario(path)] if own else find_scenarios(path)
        else:
            known = [one.name for one in shipped.iterdir() if (one / FILE).is_file()]
            raise ScenarioError(f"neither a folder nor a shipped scenario{nearest(name, known)}", path=name)
    return tuple(found)


def unrecorded(scenario: Scenario, replay: bool, names: Sequence[str]) -> str:
    """Return a line that there is nothing to replay; one asked for by its own name or folder fails instead."""
    asked_for = scenario.name in names or any(Path(name).resolve() == scenario.folder for name in names)
    return "" if asked_for or not replay or scenario.replies.exists() else "not recorded yet"


def refuse_hindered(scenario: Scenario) -> None:
    """Refuse one that can't run here.

    Raises:
        ScenarioError: says why.
    """
    if scenario.hindrance:
        raise ScenarioError(f"can't be recorded: it {scenario.hindrance}", path=scenario.folder)
