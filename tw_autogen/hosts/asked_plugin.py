"""A conversation partner (an agent, a team of agents) as a plugin."""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel

from tw_autogen.errors import ConfigError, Unreadable
from tw_autogen.hosts.agent_files import bring_linked, save_text, table_csv, table_words, value_words
from tw_autogen.kernel.guest import PluginContext
from tw_autogen.model import read_object
from tw_autogen.plugin import Parameter, Parameters, PluginSpec, Returns, as_model, callable_plugin
from tw_autogen.text_escaping import escape_controls

_REQUEST = (Parameter("request", "str", required=True, description="what is wanted, in whole sentences"),)
_LONG_CHARS = 4000
_HEAD_CHARS = 1000
_TRIES = 3
_ASKED = ".asked"


class ConversationPartner(Protocol):
    """One conversation with a partner outside the session: an agent, a team."""

    @property
    def takes_files(self) -> bool:
        """Whether files are handed over with the words, which then name them without their places.

        That is so where the partner has a session for this conversation; then all files of `folders` are its own.
        """
        ...

    def ask(self, message: str, files: Sequence[Path] = ()) -> str:
        """Return the answer; what was asked before in this conversation is known.

        Args:
            message: The question.
            files: Handed over where that can be done.
        """
        ...

    def folders(self) -> Sequence[Path]:
        """Return the folders in which files for this conversation are made."""
        ...

    def interrupt(self) -> None:
        """Stop what is being done, where it can be stopped; from any thread."""
        ...

    def close(self) -> None:
        """End the conversation; nothing of it is kept."""
        ...


def asked_plugin(
    make: Callable[[], ConversationPartner],
    *,
    name: str,
    description: str,
    parameters: Parameters | None = None,
    returns: Returns = None,
    remember: bool = False,
    calls: int | None = 100,
    seconds: float | None = 300.0,
) -> PluginSpec:
    """Return a conversation partner as a plugin: code calls `answer = name("…")`.

    Args:
        make: Begins a conversation.
        name: What code calls it.
        description: For the model.
        parameters: What a call gives; None: one text, `request`. Text and numbers stand in the message; a DataFrame or
            a long text is saved in the session's folder, and the message holds its place, columns and head.
        returns: None: the answer's text. A pydantic model: JSON that fits it is asked for, again if it doesn't, and
            code gets a dictionary that was checked.
        remember: All calls of a session are one conversation; otherwise each call begins a new one.
        calls: How often code may call it for one request.
        seconds: How long one call may take.

    Files that the answer links to in Markdown come back as artifacts of the session, if they lie in the conversation's
    folders; where these are not its own, only files that were made or changed since the call. `name.submit(…)` asks
    several questions side by side.

    Raises:
        ConfigError: there is no usable name or description.
    """
    if not description.strip():
        raise ConfigError(f"agent_plugin {name!r}: say with description=, or in the agent's, what it can do")
    model = returns if inspect.isclass(returns) and issubclass(returns, BaseModel) else None
    spec = callable_plugin(
        lambda **arguments: None,  # the agent is put in its place when a session begins
        name=name,
        description=description.strip(),
        parameters=_REQUEST if parameters is None else parameters,
        returns=returns if returns is not None else {"answer": "str"},
        calls=calls,
        seconds=seconds,
    )
    return replace(
        spec,
        examples=f"several at once: tickets = [{name}.submit(one) for one in many]; [t.result() for t in tickets]",
        connect=lambda context: _AgentFunction(make, spec, context, model, remember),
    )


class _AgentFunction:
    """What code calls, in one session."""

    def __init__(
        self,
        make: Callable[[], ConversationPartner],
        spec: PluginSpec,
        context: PluginContext,
        model: type[BaseModel] | None,
        remember: bool,
    ) -> None:
        self.__name__, self.__doc__ = spec.name, spec.description
        self._make = make
        self._spec = spec
        self._context = context
        self._model = model
        self._kept = make() if remember else None

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        given = self._spec.signature().bind_partial(*args, **kwargs).arguments
        missing = [
            parameter.name for parameter in self._spec.parameters if parameter.required and parameter.name not in given
        ]
        if missing:
            raise TypeError(f"{self._spec.name}: missing {', '.join(missing)}")
        asker = self._kept or self._make()
        message, files = self._compose_message(given, asker.takes_files)
        made_since_ns = 0 if asker.takes_files else time.time_ns()
        try:
            answer = self._ask(asker, message, files)
            if isinstance(answer, str):
                folder = self._context.folder
                return bring_linked(answer, asker.folders(), folder, made_since_ns=made_since_ns)[0]
            return answer
        finally:
            if asker is not self._kept:
                asker.close()

    def close(self) -> None:
        """Forget the conversation that the agent has kept."""
        if self._kept:
            self._kept.close()

    def _compose_message(self, given: Mapping[str, Any], handed: bool) -> tuple[str, list[Path]]:
        files: list[Path] = []
        only = len(given) == 1
        parts = []
        for name, value in given.items():
            text = self._describe_value(name, value, files, handed)
            parts.append(text if only and isinstance(value, str) else f"{name}: {text}")
        return escape_controls("\n\n".join(parts)), files  # the host may print it, and code has written it

    def _describe_value(self, name: str, value: Any, files: list[Path], handed: bool) -> str:
        if type(value).__name__ in ("DataFrame", "Series"):
            table = value if type(value).__name__ == "DataFrame" else value.to_frame()
            path = self._save_text(f"{name}.csv", table_csv(table))
            files.append(path)
            return f"the table in {path.name}" if handed else f"a table in {path}, {table_words(table)}"
        text = value_words(value)
        if len(text) <= _LONG_CHARS:
            return text
        path = self._save_text(f"{name}.txt", text)
        files.append(path)
        place = path.name if handed else path
        return f"a text in {place}, {len(text)} characters; it begins:\n{text[:_HEAD_CHARS]}"

    def _save_text(self, name: str, text: str) -> Path:
        """Save what is too much for a message; a hidden folder, because it is nothing for the user."""
        return save_text(self._context.folder, f"{_ASKED}/{self._spec.name}_{name}", text)

    def _ask(self, asker: ConversationPartner, message: str, files: list[Path]) -> Any:
        if self._model is None:
            return asker.ask(message, files)
        schema = json.dumps(self._model.model_json_schema(), ensure_ascii=False)
        wanted = f"{message}\n\nAnswer with one JSON object and nothing else; it must fit this JSON schema:\n{schema}"
        problem: Exception = ValueError("no answer")
        for _ in range(_TRIES):
            try:
                return json.loads(as_model(read_object(asker.ask(wanted, files)), self._model).model_dump_json())
            except (Unreadable, ValueError) as error:
                problem = error
                wanted, files = f"That can't be used: {error}. Send the whole JSON object again, and nothing else.", []
        raise ValueError(f"{self._spec.name} gave no usable answer in {_TRIES} tries: {problem}")
