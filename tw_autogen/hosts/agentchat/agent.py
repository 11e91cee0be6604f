"""`TaskWeaverAgent`: one agent of agentchat with a whole Session inside."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import weakref
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseAgentEvent, BaseChatMessage, TextMessage
from autogen_core import CancellationToken, Component, ComponentModel
from autogen_core.models import ChatCompletionClient, RequestUsage
from pydantic import BaseModel
from typing_extensions import Self

from tw_autogen.code_interpreter import Policy
from tw_autogen.conversation import Round
from tw_autogen.errors import ConfigError, RoundError
from tw_autogen.events import Event, Handler
from tw_autogen.hosts.agentchat.loops import LOOP
from tw_autogen.hosts.agentchat.messages import Translator, images_of, request_of
from tw_autogen.hosts.agentchat.model import ClientModel
from tw_autogen.model import ChatModel
from tw_autogen.plugin import PluginSpec
from tw_autogen.plugin.chain import calling
from tw_autogen.session import (
    DOES_DATA_WORK,
    FRESH_KERNEL,
    KernelWanted,
    RoleWanted,
    Session,
    answer_text,
    check_plugins,
    failure_text,
    open_session,
    read_settings,
)

_STATE = "TaskWeaverAgentState"
_CONTINUE = "Go on."


class TaskWeaverAgentConfig(BaseModel):
    """What a `TaskWeaverAgent` is made of, as the host writes it down."""

    name: str
    description: str
    model_client: ComponentModel
    plugins: list[str] = []
    roles: list[str] = []
    files: list[str] = []
    workspace: str | None = None
    settings: dict[str, Any] = {}


class TaskWeaverAgent(BaseChatAgent, Component[TaskWeaverAgentConfig]):  # type: ignore[misc]  # the host is untyped here
    """One agent that does data work: a Planner, a CodeInterpreter and a kernel behind one name.

    Args:
        name: The agent's name; an identifier.
        model_client: What all roles ask; it stays the caller's.
        description: For teams that choose the next speaker by it.
        plugins: Names of shipped plugins, paths of YAML files or folders of them, or specs, also of other agents.
        roles: Names of shipped roles, folders of one's own, or functions that make one.
        files: Copied read-only into the session's folder, and described with the first request.
        model: A `ChatModel` instead of the client.
        kernel: A function that makes a kernel for a folder; None: a `LocalKernel`.
        policy: What generated code may do.
        workspace: Folder in which the session makes its own; None: the setting `session.workspace`.
        settings: Dotted keys.
        handlers: Called with each event.

    The session begins with the first message and ends with `on_reset` or `close`; a state that is loaded brings back
    what was said, and not the kernel's variables. While it works, plan, code and outcome are streamed as the host's own
    events.

    Raises:
        ConfigError: a plugin, role or setting is wrong, or there is neither client nor model.
    """

    component_type = "agent"
    component_config_schema = TaskWeaverAgentConfig
    component_provider_override = "tw_autogen.hosts.agentchat.TaskWeaverAgent"

    def __init__(
        self,
        name: str = "TaskWeaver",
        model_client: ChatCompletionClient | None = None,
        *,
        description: str = DOES_DATA_WORK,
        plugins: Sequence[str | Path | PluginSpec] = (),
        roles: Sequence[RoleWanted] = ("planner", "code_interpreter"),
        files: Sequence[str | Path] = (),
        model: ChatModel | None = None,
        kernel: KernelWanted = None,
        policy: Policy | None = None,
        workspace: Path | str | None = None,
        settings: Mapping[str, Any] | None = None,
        handlers: Sequence[Handler] = (),
    ) -> None:
        super().__init__(name, description)
        if model is None and model_client is None:
            raise ConfigError(f"{name}: give model_client=, a client of the host's, or model=")
        read_settings(settings)
        check_plugins(plugins)
        self._client = model_client
        self._model = model
        self._wanted_plugins = tuple(plugins)
        self._roles = tuple(roles)
        self._files = tuple(Path(one).resolve() for one in files)
        self._kernel = kernel
        self._policy = policy
        self._workspace = workspace
        self._settings = dict(settings or {})
        self._handlers = tuple(handlers)
        self._past: list[Round] = []
        self._living: list[Session] = []
        self._begun = False
        self._busy = asyncio.Lock()
        self._end = weakref.finalize(self, _close_all, self._living)

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """An answer is text."""
        return (TextMessage,)

    @property
    def session(self) -> Session | None:
        """The session that lives now; None before the first message."""
        return self._living[-1] if self._living and not self._living[-1].closed else None

    async def on_messages(self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken) -> Response:
        """Answer new messages."""
        response: Response | None = None
        async for one in self.on_messages_stream(messages, cancellation_token):
            if isinstance(one, Response):
                response = one
        assert response is not None  # noqa: S101 - the stream ends with one; for the type checker
        return response

    async def on_messages_stream(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> AsyncGenerator[BaseAgentEvent | BaseChatMessage | Response, None]:
        """Answer new messages; plan, code and outcome come as events while the work goes on.

        A round that failed is told in words; errors of the client are raised. Cancelling stops the running cell or
        model call; the session stays good for more.
        """
        asked = list(messages)  # the team empties its own list
        with calling(self.name, self):
            pass  # called from its own work it would wait for itself: refused before it waits
        async with self._busy:
            news: asyncio.Queue[BaseAgentEvent | None] = asyncio.Queue()
            inner: list[BaseAgentEvent | BaseChatMessage] = []
            session, work = self._begin(asked, news)
            cancellation_token.link_future(work)
            try:
                while (event := await news.get()) is not None:
                    inner.append(event)
                    yield event
                text, metadata, usage = await work
            except BaseException:
                session.interrupt()
                raise
        message = TextMessage(content=text, source=self.name, models_usage=usage, metadata=metadata)
        yield Response(chat_message=message, inner_messages=inner)

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Forget what was said, and end the kernel."""
        await self.close()
        self._past = []

    async def close(self) -> None:
        """End the session, and its kernel; the next message begins a new one."""
        self._begun = False
        await asyncio.to_thread(_close_all, self._living)

    async def save_state(self) -> Mapping[str, Any]:
        """Give what was said, as JSON; variables of the kernel are not in it."""
        rounds = self.session.rounds if self.session else self._past
        return {"type": _STATE, "version": "1.0.0", "rounds": [one.to_dict() for one in rounds]}

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Take up what was said; the kernel is a fresh one.

        Raises:
            ConfigError: this is no state of such an agent.
        """
        if state.get("type") != _STATE:
            raise ConfigError(f"{self.name}: expected a state of type {_STATE!r}, got {state.get('type')!r}")
        await self.close()
        self._past = [Round.from_dict(one) for one in state["rounds"]]

    def _begin(
        self, asked: Sequence[BaseChatMessage], news: asyncio.Queue[BaseAgentEvent | None]
    ) -> tuple[Session, asyncio.Future[tuple[str, dict[str, str], RequestUsage]]]:
        """Start the work on a thread; its events go into the queue, and a None behind the last one."""
        loop = asyncio.get_running_loop()
        session = self._opened()
        translate = Translator(self.name)

        def show(event: Event) -> None:
            shown = translate(event)
            if shown is not None:
                with contextlib.suppress(RuntimeError):  # the loop is over
                    loop.call_soon_threadsafe(news.put_nowait, shown)

        request = request_of(asked) if asked else _CONTINUE
        notes = [FRESH_KERNEL] if not self._begun and session.rounds else []
        files = () if self._begun else self._files
        self._begun = True

        def work() -> tuple[str, dict[str, str], RequestUsage]:
            LOOP.set(loop)
            session.subscribe(show)
            try:
                with calling(self.name, self):
                    return _ask(session, "\n\n".join([request, *notes]), files, images_of(asked))
            finally:
                session.unsubscribe(show)

        future = asyncio.ensure_future(_shielded(loop.run_in_executor(None, contextvars.copy_context().run, work)))
        future.add_done_callback(lambda _: news.put_nowait(None))
        return session, future

    def _opened(self) -> Session:
        if self.session is None:
            model = self._model or ClientModel(self._client) if self._client is not None else self._model
            session = open_session(
                model,
                roles=self._roles,
                plugins=self._wanted_plugins,
                kernel=self._kernel,
                policy=self._policy,
                folder=self._workspace,
                handlers=self._handlers,
                settings=self._settings,
            )
            for one in self._past:
                session.remember(one)
            self._past = []
            self._living[:] = [session]
        return self._living[-1]

    def _to_config(self) -> TaskWeaverAgentConfig:
        live = [
            name
            for name, value in (
                ("model", self._model), ("kernel", self._kernel), ("policy", self._policy), ("handlers", self._handlers)
            )
            if value
        ]  # fmt: skip
        live += ["plugins"] if any(isinstance(one, PluginSpec) for one in self._wanted_plugins) else []
        live += ["roles"] if not all(isinstance(one, str | Path) for one in self._roles) else []
        if live or self._client is None:
            named = ", ".join(live) or "no model_client"
            raise ConfigError(f"{self.name}: can't be written down as a component, because of: {named}")
        return TaskWeaverAgentConfig(
            name=self.name,
            description=self.description,
            model_client=self._client.dump_component(),
            plugins=[str(one) for one in self._wanted_plugins],
            roles=[str(one) for one in self._roles],
            files=[str(one) for one in self._files],
            workspace=None if self._workspace is None else str(self._workspace),
            settings=self._settings,
        )

    @classmethod
    def _from_config(cls, config: TaskWeaverAgentConfig) -> Self:
        return cls(
            config.name,
            ChatCompletionClient.load_component(config.model_client),
            description=config.description,
            plugins=config.plugins,
            roles=config.roles,
            files=config.files,
            workspace=config.workspace,
            settings=config.settings,
        )


def _ask(
    session: Session, request: str, files: Sequence[Path], images: Sequence[str]
) -> tuple[str, dict[str, str], RequestUsage]:
    before = session.usage
    try:
        answer = session.ask(request, files, images=images)
        text, here, stop = answer_text(answer), answer.round, answer.stop
    except RoundError as error:
        text, here, stop = failure_text(error), error.round, "Failed"
    after = session.usage
    usage = RequestUsage(
        prompt_tokens=after.prompt_tokens - before.prompt_tokens,
        completion_tokens=after.completion_tokens - before.completion_tokens,
    )
    return text, {"round": here.id, "posts": " ".join(one.id for one in here.posts), "stop": stop}, usage


async def _shielded(work: asyncio.Future[Any]) -> Any:
    """Wait for a thread's work; cancelling the waiting leaves the thread to be stopped by other means."""
    return await asyncio.shield(work)


def _close_all(sessions: list[Session]) -> None:
    for session in sessions:
        session.interrupt()
        session.close()
    sessions.clear()
