"""`TaskWeaverAgent`: one agent of agentchat with a whole Session inside."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import threading
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseAgentEvent, BaseChatMessage, HandoffMessage, TextMessage
from autogen_core import CancellationToken, Component, ComponentModel
from autogen_core.models import ChatCompletionClient, RequestUsage
from pydantic import BaseModel
from typing_extensions import Self

from tw_autogen.approval import Approve
from tw_autogen.conversation import Round, RoundState
from tw_autogen.errors import ConfigError, HostError
from tw_autogen.events import Event, Handler
from tw_autogen.hosts.agentchat.messages import Translator, lines_of
from tw_autogen.hosts.agentchat.model import ClientModel
from tw_autogen.hosts.agentchat.tool_plugin import tool_plugin
from tw_autogen.hosts.call_chain import calling
from tw_autogen.hosts.partner_conversation import GivenFiles, PartnerConversation, Reply
from tw_autogen.hosts.worker_threads import on_thread
from tw_autogen.model import ChatModel
from tw_autogen.named_folders import checked_path
from tw_autogen.plugin.mcp import McpWanted
from tw_autogen.session import (
    AGENT_DESCRIPTION,
    FilesWanted,
    KernelWanted,
    PluginsWanted,
    PolicyWanted,
    RolesWanted,
    Session,
    checked_opening,
    open_session,
    read_settings,
    several,
)
from tw_autogen.setting_values import naming_folder, relative_to_folder

_STATE = "TaskWeaverAgentState"


class TaskWeaverAgentConfig(BaseModel):
    """What a `TaskWeaverAgent` is made of, as the host writes it down.

    Relative paths in `settings` begin in `made_in`, where there is such a folder when the agent is loaded.
    """

    name: str
    description: str
    model_client: ComponentModel
    model_client_stream: bool = False
    plugins: list[str] = []
    roles: list[str] | None = None
    files: list[str] = []
    workspace: str | None = None
    settings: dict[str, Any] = {}
    project: str | None = None
    mcp_servers: str | None = None
    policy: str | None = None
    hand_on: str | None = None
    system_message: str | None = None
    made_in: str = ""


class TaskWeaverAgent(BaseChatAgent, Component[TaskWeaverAgentConfig]):  # type: ignore[misc]  # the host is untyped here
    """One agent that does data work: a Planner, a CodeInterpreter and a kernel behind one name.

    Args:
        name: The agent's name; an identifier.
        model_client: What all roles ask; it stays the caller's.
        model_client_stream: Ask it for replies piece by piece, so that handlers see posts grow.
        description: For teams that choose the next speaker by it.
        plugins: Names, paths of files or folders, functions, tools of the host (`FunctionTool`), or specs, also of
            other agents; as in `open_session`.
        roles: Names of shipped roles, folders of one's own, or functions that make one; None: the setting
            `session.roles`, as in `open_session`.
        files: Copied read-only into the session's folder, and described with the first request.
        model: A `ChatModel` instead of the client.
        kernel: A function that makes a kernel for a folder; None: a `LocalKernel`.
        policy: What generated code may do: a policy, its name, or the path of its YAML; as in `open_session`.
        workspace: Folder in which the session makes its own; None: the setting `session.workspace`.
        settings: Dotted keys.
        handlers: Called with each event.
        approve: Asked for packages that code wants, where the setting `kernel.install` is `ask`; None: nobody is there.
            It is called with their names, on a thread of its own, and may wait for a person.
        project: A folder with settings, plugins, roles and examples, as in `open_session`.
        mcp_servers: MCP servers whose tools are plugins, as in `open_session`; each session starts its own.
        trust: All that the settings file of `project`, or of the current folder, sets is wanted; as in `open_session`.
            An agent that was written down and is loaded again does not have it.
        hand_on: The participant of a `Swarm` that each answer is handed on to; None: the one that has handed the
            request over, and an answer to any other message is plain text.
        system_message: House rules of the Planner, unless `settings` has some as `planner.instructions`.

    The session begins with the first message and ends with `on_reset` or `close`. What was said is forgotten with
    `on_reset` only, and a state that is loaded brings it back; the kernel's variables are gone each time. While it
    works, plan, code and outcome are streamed as the host's own events. Messages may come from several tasks and loops:
    one is answered after the other.

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
        model_client_stream: bool = False,
        description: str = AGENT_DESCRIPTION,
        plugins: PluginsWanted = (),
        roles: RolesWanted | None = None,
        files: FilesWanted = (),
        model: ChatModel | None = None,
        kernel: KernelWanted = None,
        policy: PolicyWanted | None = None,
        workspace: Path | str | None = None,
        settings: Mapping[str, Any] | None = None,
        handlers: Sequence[Handler] = (),
        approve: Approve | None = None,
        project: Path | str | None = None,
        mcp_servers: McpWanted | None = None,
        trust: bool = False,
        hand_on: str | None = None,
        system_message: str | None = None,
    ) -> None:
        super().__init__(name, description)
        if model is None and model_client is None:
            raise ConfigError(f"{name}: give model_client=, a client of the host's, or model=")
        plugins, files = tuple(map(tool_plugin, several(plugins))), several(files)
        roles = None if roles is None else several(roles)
        servers_file = _servers_file(mcp_servers)
        self._client = model_client
        self._wanted = TaskWeaverAgentConfig.model_construct(
            name=name,
            description=description,
            model_client_stream=model_client_stream,
            plugins=[_as_text(plugin) for plugin in plugins],
            roles=None if roles is None else [_as_text(role) for role in roles],
            files=[str(Path(file).absolute()) for file in files],
            workspace=None if workspace is None else str(checked_path(workspace, "workspace").absolute()),
            settings=dict(settings or {}),
            project=None if project is None else str(checked_path(project, "project").absolute()),
            mcp_servers=servers_file,
            policy=_as_text(policy) if isinstance(policy, str | Path) else None,
            hand_on=hand_on,
            system_message=system_message,
            made_in=str(naming_folder() or Path.cwd()),
        )
        settings = {**({"planner.instructions": system_message} if system_message else {}), **(settings or {})}
        live: dict[str, object] = {"model": model, "kernel": kernel, "handlers": handlers or None, "approve": approve}
        live["policy, which is no name"] = None if isinstance(policy, str | Path) else policy
        live["plugins"] = next((plugin for plugin in plugins if not isinstance(plugin, (str, Path))), None)
        live["roles"] = next((role for role in roles or () if not isinstance(role, (str, Path))), None)
        live["mcp_servers, which is no file"] = None if servers_file else mcp_servers
        self._live = [what for what, value in live.items() if value is not None]
        asked = model if model is not None else ClientModel(model_client, stream=model_client_stream)
        make = functools.partial(
            open_session,
            model=asked,
            roles=roles,
            plugins=plugins,
            kernel=kernel,
            policy=policy,
            folder=workspace,
            handlers=tuple(handlers),
            approve=approve,
            settings=settings,
            project=project,
            mcp_servers=mcp_servers,
            trust=trust,
        )
        read = read_settings(settings, project=project, trust=trust)
        make = checked_opening(make, read)
        self._new_conversation = functools.partial(PartnerConversation, make, GivenFiles(files, read))
        self._conversation = self._new_conversation()

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """An answer is text, or a handoff in a `Swarm`."""
        return (TextMessage, HandoffMessage)

    def __copy__(self) -> Self:
        raise HostError(
            f"{self.name}: a shallow copy would work in the same session; make a deep one",
            command="copy.deepcopy(agent)",
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return an agent with the same arguments and client, a session of its own, and what was said until now."""
        made = memo[id(self)] = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._conversation = self._new_conversation()
        made._conversation.replace_history(self._conversation.rounds)
        return made

    @property
    def session(self) -> Session | None:
        """The open session; None before the first message."""
        return self._conversation.session

    def hand_over(self, files: FilesWanted) -> None:
        """Queue files to go along with the next message, beside those of the constructor.

        Args:
            files: Copied read-only into the session's folder, and described to the Planner; also into the folder of a
                session that follows this one, unless the agent was reset meanwhile.

        Raises:
            ConfigError: there is no such file.
        """
        self._conversation.hand_over(files)

    async def on_messages(self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken) -> Response:
        """Answer new messages.

        Args:
            messages: What was said since the last call.
            cancellation_token: The host's; cancelling stops the running cell or model call.
        """
        response: Response | None = None
        async for message in self.on_messages_stream(messages, cancellation_token):
            if isinstance(message, Response):
                response = message
        assert response is not None  # noqa: S101 - the stream ends with one; for the type checker
        return response

    async def on_messages_stream(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> AsyncGenerator[BaseAgentEvent | BaseChatMessage | Response, None]:
        """Answer new messages; plan, code and outcome come as events while the work goes on.

        A round that failed is told in words; errors of the client are raised. Cancelling stops the running cell or
        model call; the session can be asked again.

        Args:
            messages: What was said since the last call.
            cancellation_token: The host's.
        """
        asked = list(messages)  # the team empties its own list
        with calling(self.name, self):
            pass  # called from its own work it would wait for itself: refused before it waits
        if cancellation_token.is_cancelled():
            raise asyncio.CancelledError
        news: asyncio.Queue[BaseAgentEvent | None] = asyncio.Queue()
        inner: list[BaseAgentEvent | BaseChatMessage] = []
        stopped = threading.Event()
        work = self._start_work(asked, news, stopped)
        cancellation_token.link_future(work)
        try:
            while (event := await news.get()) is not None:
                inner.append(event)
                yield event
            reply = await work
        except BaseException:
            self._conversation.stop(stopped)
            work.cancel()
            raise
        yield Response(chat_message=self._reply_message(reply, asked), inner_messages=inner)

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Forget what was said, and end the kernel.

        Raises:
            CallCycleError: this comes from its own work, which it would end.
        """
        with calling(self.name, self):
            pass
        await on_thread(lambda: self._conversation.replace_history([]), name=f"{self.name} resets")

    async def close(self) -> None:
        """End the session, and its kernel; the next message begins a new one, which knows what was said."""
        await on_thread(self._conversation.close, name=f"{self.name} closes")

    async def save_state(self) -> Mapping[str, Any]:
        """Return what was said, as JSON; neither a round that is still open nor variables of the kernel are in it."""
        rounds = [round_.to_dict() for round_ in self._conversation.rounds]
        return {"type": _STATE, "version": "1.0.0", "rounds": json.loads(json.dumps(rounds, default=str))}

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Take up what was said; the kernel is a fresh one.

        Raises:
            ConfigError: this is no state of such an agent; nothing has changed.
        """
        if state.get("type") != _STATE:
            raise ConfigError(f"{self.name}: expected a state of type {_STATE!r}, got {state.get('type')!r}")
        try:
            rounds = [Round.from_dict(round_) for round_ in state["rounds"]]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ConfigError(f"{self.name}: the state's rounds can't be read: {error!r}") from error
        ended = [round_ for round_ in rounds if round_.state is not RoundState.created]
        await on_thread(lambda: self._conversation.replace_history(ended), name=f"{self.name} loads")

    def _start_work(
        self, asked: Sequence[BaseChatMessage], news: asyncio.Queue[BaseAgentEvent | None], stopped: threading.Event
    ) -> asyncio.Future[Reply]:
        """Start the work on a thread; its events go into the queue, and a None after the last one."""
        loop = asyncio.get_running_loop()
        translate = Translator(self.name)

        def show(event: Event) -> None:
            for shown in translate(event):
                with contextlib.suppress(RuntimeError):  # the loop is over
                    loop.call_soon_threadsafe(news.put_nowait, shown)

        def work() -> Reply:
            with calling(self.name, self):
                return self._conversation.ask(lines_of(asked), show=show, stopped=stopped)

        future = on_thread(work, name=f"{self.name} at work")
        future.add_done_callback(lambda _: news.put_nowait(None))
        return future

    def _reply_message(self, reply: Reply, asked: Sequence[BaseChatMessage]) -> TextMessage | HandoffMessage:
        usage = RequestUsage(prompt_tokens=reply.usage.prompt_tokens, completion_tokens=reply.usage.completion_tokens)
        posts = " ".join(post.id for post in reply.round.posts)
        made = {
            "content": reply.text,
            "source": self.name,
            "models_usage": usage,
            "metadata": {"round": reply.round.id, "posts": posts, "stop": reply.stop},
        }
        handed = next((message.source for message in reversed(asked) if isinstance(message, HandoffMessage)), None)
        target = self._wanted.hand_on or handed
        return HandoffMessage(target=target, **made) if target else TextMessage(**made)

    def _to_config(self) -> TaskWeaverAgentConfig:
        if self._live or self._client is None:
            named = ", ".join(self._live) or "no model_client"
            raise ConfigError(f"{self.name}: can't be written down as a component, because of: {named}")
        return self._wanted.model_copy(update={"model_client": self._client.dump_component()})

    @classmethod
    def _from_config(cls, config: TaskWeaverAgentConfig) -> Self:
        client = ChatCompletionClient.load_component(config.model_client)
        made_in = Path(config.made_in)
        with relative_to_folder(made_in if made_in.is_absolute() else Path.cwd()):
            return cls(model_client=client, **config.model_dump(exclude={"model_client", "made_in"}))


def _as_text(value: object) -> str:
    """Return the text of what is named; of a path the absolute one, which means the same wherever it is read again."""
    text = str(value)
    is_path = isinstance(value, Path) or os.sep in text or text.endswith((".py", ".yaml", ".yml"))
    return str(checked_path(text, "path").absolute()) if is_path and isinstance(value, str | Path) else text


def _servers_file(mcp_servers: McpWanted | None) -> str | None:
    """Return the path of a file of MCP servers; None for what stands in one, where secrets may be."""
    if isinstance(mcp_servers, str | Path) and str(mcp_servers) and not str(mcp_servers).lstrip().startswith("{"):
        return str(checked_path(mcp_servers, "mcp_servers").absolute())
    return None
