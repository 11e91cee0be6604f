"""`Scenario`: a whole task as a folder: what is asked, with which data and parts, and what must come of it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_type_hints

from pydantic import Field, PositiveFloat, PositiveInt

from tw_autogen.errors import ConfigError, ScenarioError, nearest, unknown_key
from tw_autogen.named_folders import distrusted_now, named_file, path_out_of
from tw_autogen.scenario.expect import Expectation, fit, read_expectation
from tw_autogen.scenario.reply_rules import ReplyRule, read_rules
from tw_autogen.session import keyword_settings
from tw_autogen.setting_values import texts_of
from tw_autogen.shipped_folders import shipped_folder
from tw_autogen.yaml_files import read_mapping

FILE = "scenario.yaml"
REPLIES = "replies.yaml"
_NAME = re.compile(r"[\w-]+")
_WITH_PATHS = ("role.", "recall.", "session.", "embedding.")
"""How the keys of settings begin that may be paths and that a named scenario may set."""


@dataclass(frozen=True)
class Limits:
    """What one round may take; beyond it the round fails.

    Args:
        posts: How many posts.
        seconds: How long, wall clock. A live model gets more: its own speed is no property of the task.
    """

    posts: PositiveInt = 20
    seconds: PositiveFloat = 180.0


@dataclass(frozen=True)
class Scenario:
    """A whole task.

    Args:
        name: The folder's name.
        folder: Where all that belongs to it lies.
        source: Where the idea comes from.
        ask: What the user says, a text a round.
        expect: What must come of it.
        about: What it shows, in one line.
        when_asked: What the user says when the agent asks back; where no rule fits, the next of `ask` is said.
        files: Names of files in the folder that go with the first round; links are refused.
        roles: Who takes part: names of shipped ones, or paths from the folder.
        plugins: Which functions code may call: names of shipped ones, or paths from the folder.
        variables: What the first round brings beside words and files.
        environment: Environment variables of the host while it runs: the secrets that code must not come by.
        settings: Dotted keys, such as `session.profile_chars`; a path that begins with `./` is from the folder.
        limits: What one round may take.
        needs: Top-level modules that code will import; it can't run where one isn't installed.
        lacks: Top-level modules that must not be there, because the task is about what happens then.
        judge: What a model is asked about a live run; reported apart, no check depends on it.
        learn: The name of the folder in which a recording keeps the lesson that the session teaches, which is worded
            after the last request; empty: none is.
        lessons: The path, from the folder, of lessons that are recalled; empty: none are.
    """

    FAILED_REPLIES: ClassVar[str] = "replies.failed.yaml"
    """The file that keeps what a recording got that failed."""

    name: str
    folder: Path
    source: str
    ask: tuple[str, ...]
    expect: tuple[Expectation, ...]
    about: str = ""
    when_asked: tuple[ReplyRule, ...] = ()
    files: tuple[str, ...] = ()
    roles: tuple[str, ...] = ("planner", "code_interpreter")
    plugins: tuple[str, ...] = ()
    variables: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = Limits()
    needs: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    judge: str = ""
    learn: str = ""
    lessons: str = ""

    @property
    def kept_lesson(self) -> Path:
        """Where the lesson of its recording lies, if it has one."""
        return self.folder / self.learn / f"exp_{self.name}.yaml"

    @property
    def replies(self) -> Path:
        """Where its recorded replies lie, if there are any."""
        return self.folder / REPLIES

    @property
    def hindrance(self) -> str:
        """Why it can't run on this installation; empty if it can."""
        missing = [name for name in self.needs if not _is_installed(name)]
        present = [name for name in self.lacks if _is_installed(name)]
        needs = f"needs {', '.join(missing)}, which is not installed here" if missing else ""
        lacks = f"is about what happens without {', '.join(present)}, which is installed here" if present else ""
        untaught = self.lessons and not (self.folder / self.lessons).is_dir()
        lessons = f"needs the lessons in {self.lessons}, which the recording of another scenario makes"
        return "; ".join(filter(None, (needs, lacks, lessons if untaught else "")))


_HINTS = {
    **{one.name: get_type_hints(Scenario)[one.name] for one in fields(Scenario) if one.name not in ("name", "folder")},
    "environment": dict[Annotated[str, Field(pattern=r"^[^=\x00]+$")], Annotated[str, Field(pattern=r"^[^\x00]*$")]],
    **{"expect": tuple[Any, ...], "when_asked": Any, "limits": dict[str, Any]},
}
"""What `scenario.yaml` may hold; the last three are read further."""
_REQUIRED = ("source", "ask", "expect")


def read_scenario(path: Path | str) -> Scenario:
    """Read a scenario, and check all of it that can be checked before it runs.

    Args:
        path: Its folder, or the `scenario.yaml` in it.

    Raises:
        ScenarioError: naming file, key, and the neighbour that it was mistaken for.
        ConfigError: a link leads to it, out of a current folder that is not trusted.
    """
    path = Path(path)
    path = path / FILE if path.is_dir() else path
    path = named_file(path, distrusted=distrusted_now())[0]
    plain = read_mapping(path, ScenarioError, keys=_HINTS)
    try:
        for key in _REQUIRED:
            if not plain.get(key):
                raise ValueError(f"missing key {key!r}, or nothing in it")
        values = {key: fit(key, value, _HINTS[key]) for key, value in plain.items() if value is not None}
        for index, text in enumerate(values["ask"]):
            if not text.strip():
                raise ValueError(f"ask.{index}: expected the user's words, found none")
        values["expect"] = tuple(_expectations(values["expect"], rounds=len(values["ask"])))
        values["limits"] = _limits(values.get("limits", {}))
        values["when_asked"] = read_rules(values.get("when_asked", []))
        _check_modules(values)
        _check_settings(values.get("settings", {}))
        _check_learning(values)
    except ValueError as error:
        raise ScenarioError(str(error), path=path) from error
    folder = path.resolve().parent
    values["settings"] = {key: _resolve_in_folder(value, folder) for key, value in values.get("settings", {}).items()}
    values["files"] = tuple(_check_files(values.get("files", ()), folder, path))
    for key in ("roles", "plugins"):
        if key in values:
            values[key] = tuple(_resolve_piece(key, name, folder, path) for name in values[key])
    return Scenario(folder.name, folder, **values)


def find_scenarios(folder: Path | str) -> tuple[Scenario, ...]:
    """Read every scenario in a folder: each sub-folder with a `scenario.yaml`, by name.

    Raises:
        ScenarioError: there is none, or one is wrong.
    """
    folder = Path(folder)
    found = sorted(folder.glob(f"*/{FILE}"))
    if not found:
        raise ScenarioError(f"expected folders with a {FILE} in it, found none", path=folder)
    return tuple(read_scenario(path) for path in found)


def _expectations(items: tuple[Any, ...], *, rounds: int) -> list[Expectation]:
    found = []
    for index, item in enumerate(items):
        try:
            found.append(read_expectation(item, rounds=rounds))
        except ValueError as error:
            raise ValueError(f"expect.{index}: {error}") from error
    return found


def _limits(plain: Mapping[str, Any]) -> Limits:
    known = get_type_hints(Limits)
    if problem := unknown_key(plain, known):
        raise ValueError(f"limits: {problem}")
    return Limits(**{key: fit(f"limits.{key}", value, known[key]) for key, value in plain.items()})


def _check_modules(values: Mapping[str, Any]) -> None:
    for key in ("needs", "lacks"):
        for index, name in enumerate(values.get(key, ())):
            if not name.isidentifier():  # to find a submodule, its package would have to be imported
                raise ValueError(f"{key}.{index}: expected a top-level module, such as `sklearn`, got {name!r}")


def _is_installed(module: str) -> bool:
    """Return whether a top-level module is there; nothing is imported, also for a name with dots."""
    top = module.partition(".")[0]
    return sys.modules.get(top) is not None or find_spec(top) is not None


def _check_settings(plain: Mapping[str, Any]) -> None:
    try:
        keyword_settings(plain)
    except ConfigError as error:
        raise ValueError(f"settings: {error}") from error


def _check_learning(values: Mapping[str, Any]) -> None:
    learn = values.get("learn", "")
    if learn and (Path(learn).name != learn or learn == ".."):
        raise ValueError(f"learn: expected the name of a folder beside it, such as `lessons`, found {learn!r}")
    if learn or not any(one.check == "lesson" for one in values["expect"]):
        return
    raise ValueError("expect: `lesson` is about the lesson that `learn` has worded; add `learn: lessons`")


def _check_files(names: tuple[str, ...], folder: Path, path: Path) -> list[str]:
    here = [one.name for one in folder.iterdir() if one.is_file()]
    for name in names:
        if name not in here:
            raise ScenarioError(f"files: no file {name!r} beside it{nearest(name, here)}", path=path)
        if (folder / name).is_symlink():
            raise ScenarioError(f"files: {name!r} is a link; put the file itself beside it", path=path)
    return list(names)


def _resolve_in_folder(value: Any, folder: Path) -> Any:
    """Return a setting's value; a path that begins with `./` is one from the scenario's folder."""
    return str(folder / value) if isinstance(value, str) and value.startswith("./") else value


def _resolve_piece(key: str, name: str, folder: Path, path: Path) -> str:
    """Return a shipped piece by its name, one of the scenario's own by its whole path."""
    if _NAME.fullmatch(name):
        return name
    if not (folder / name).exists():
        raise ScenarioError(f"{key}: there is no {name!r} beside it", path=path)
    return str(folder / name)


def find_named(names: Sequence[str], *, trust: bool = False) -> tuple[Scenario, ...]:
    """Read scenarios by name or folder; all shipped ones where none is named.

    Args:
        names: A single word is a shipped scenario's name; `./word` is a folder.
        trust: Take those that want more than a folder can set that the user has only named, such as `kernel.sandbox`.

    Raises:
        ScenarioError: there is no such scenario, it is wrong, or it wants more.
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
    for one in () if trust else found:
        _check_trust(one)
    return tuple(found)


def _leads_out(folder: Path, text: str) -> bool:
    """Return whether a setting, or what lies in the folder that it names, is a path out of a scenario's folder.

    What begins with `./` has been placed.
    """
    seen_from_here = os.path.lexists(text) if text and "\0" not in text else False
    named = os.path.abspath(text) if seen_from_here else text
    return any(path_out_of(folder, one) for one in (named, *_links_in(folder, named)))


def _begins_elsewhere(database: str) -> bool:
    """Return whether a database is a URL, or a path that begins in the folder of the plugin that opens it."""
    return "://" in database or not os.path.isabs(database) and (os.sep in database or database.startswith("~"))


def _links_in(folder: Path, text: str) -> list[str]:
    """Return the links that lie in the folder that a text names, seen from a scenario's folder."""
    with suppress(OSError, ValueError):  # what is wrong with it is told when it is used
        return [str(path) for path in (folder / text).iterdir() if path.is_symlink()]
    return []


def _check_trust(scenario: Scenario) -> None:
    """Refuse what a scenario that is not shipped with this package may set only where the user trusts it.

    Its roles and plugins count, as those of any folder that the user names, where they lie in it.

    Args:
        scenario: Read, and not run yet.

    Raises:
        ScenarioError: it wants settings that a named folder can't set, such as `kernel.sandbox`, or sets variables of
            the environment.
    """
    if scenario.folder.parent == shipped_folder("scenarios").resolve():
        return
    wanted = keyword_settings(scenario.settings).beyond_named(scenario.settings)
    wanted += [f"environment.{name}" for name in scenario.environment]
    wanted += [
        key
        for key, value in scenario.settings.items()
        if key.startswith(_WITH_PATHS) and any(_leads_out(scenario.folder, text) for text in texts_of(value))
    ]
    wanted += [
        f"{key} ({piece})"
        for key, pieces in (("roles", scenario.roles), ("plugins", scenario.plugins))
        for piece in pieces
        if os.sep in piece and path_out_of(scenario.folder, piece)
    ]
    wanted += [
        f"variables.{name}"
        for name, value in scenario.variables.items()
        if any(
            _leads_out(scenario.folder, text) or name == "database" and _begins_elsewhere(text)
            for text in texts_of(value)
        )
    ]
    lessons = scenario.folder / scenario.lessons
    if scenario.lessons and _leads_out(scenario.folder.parent, str(lessons)):  # another scenario's may be named
        wanted.append("lessons")
    if wanted:
        raise ScenarioError(
            f"{', '.join(wanted)}: set only where you trust the scenario; look at it, and say --trust",
            path=scenario.folder / FILE,
        )
