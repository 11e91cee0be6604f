"""`Gate`: whether a call of an MCP tool is made; `SentCalls`: which were sent already, so that none is repeated."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tw_autogen import bounded_json
from tw_autogen.approval import Approve, Decision, Proposal, waiting_for_person
from tw_autogen.errors import McpCallLostError, ToolCallRefusedError
from tw_autogen.plugin.mcp.config import McpServer
from tw_autogen.plugin.settings import McpApproval
from tw_autogen.text_escaping import visible_line
from tw_autogen.text_truncation import shortened

ASK_SECONDS = 3600.0
"""How long a call may wait for a person."""
_SHOWN_CHARS, _SHOWN_NAME_CHARS = 4000, 200
_MAX_KEPT_BYTES = 8 << 20
"""Of the answers to the calls of one tool."""


class Gate:
    """Whether calls of one tool are made, by its marks, the origin of its server, and a person.

    Args:
        server: Whose tool it is.
        tool: As `tools/list` gives it. `annotations.readOnlyHint` and `idempotentHint` count where they are true; a
            tool without them is one that writes.
        approval: See `PluginSettings.mcp_approval`.
        approve: Asked where `approval` says so; None: nobody can be asked.
        still_trusted: Asked before a call for which `approval` is `never`: where it returns False, that counts as
            `writes` from then on.
        asking: Held while a person is asked, so that two calls don't ask at once.
    """

    def __init__(
        self,
        server: McpServer,
        tool: Mapping[str, Any],
        *,
        approval: McpApproval,
        approve: Approve | None,
        asking: threading.Lock,
        still_trusted: Callable[[], bool] = lambda: True,
    ) -> None:
        marks = tool.get("annotations")
        marks = marks if isinstance(marks, Mapping) else {}
        self.read_only = marks.get("readOnlyHint") is True
        self.repeatable = self.read_only or marks.get("idempotentHint") is True
        self._server = server
        self._tool = str(tool["name"])
        self._approval = approval
        self._approve = approve
        self._asking = asking
        self._still_trusted = still_trusted
        self._always = False

    def allow(self, name: str, arguments: Mapping[str, Any], *, lost: bool = False) -> None:
        """Return if a call may be made; ask a person where the setting says so.

        Args:
            name: What code calls the tool.
            arguments: Under the server's own names.
            lost: The same call was sent before for this request, and its answer never came.

        Raises:
            ToolCallRefusedError: it may not be made.
        """
        if self._approval == "never" and not self._still_trusted():
            self._approval = "writes"
        if lost and (self._approve is None or self._approval == "never"):
            raise ToolCallRefusedError(
                f"{name}: this very call was sent before for this request, and its answer never came, or was too large "
                "to be kept. It is not sent a second time, because its server marks it neither as read-only nor as "
                "idempotent. Find out in another way whether it took effect, or tell the User that this is not known"
            )
        if not lost and (self._always or not self._needs_approval()):
            return
        if self._approve is None:
            raise ToolCallRefusedError(self._nobody_to_ask_message(name))
        with waiting_for_person(), self._asking:
            if self._always and not lost:  # said meanwhile, of a call beside this one
                return
            said = self._approve(Proposal("tool", self._call_description(arguments), (_LOST,) if lost else ()))
        decision = said if isinstance(said, Decision) else Decision(said is True)
        if not decision.approved:
            why = f": {decision.reason}" if decision.reason else ""
            raise ToolCallRefusedError(f"{name}: the User does not allow this call{why}")
        self._always = self._always or decision.always

    def _needs_approval(self) -> bool:
        if self._approval == "writes":
            return not self.read_only and (self._approve is not None or self._server.from_folder)
        return self._approval == "always"

    def _nobody_to_ask_message(self, name: str) -> str:
        if self._approval == "always":
            return f"{name}: a person must allow each call (plugin.mcp_approval=always), and nobody can be asked"
        return (
            f"{name} is not marked as read-only, and its server {self._server.name!r} is named by a project's file "
            f"({self._server.origin}): a person must allow the call, and nobody can be asked. Name the server in "
            "--mcp-config, mcp_servers=… or the user's own settings to have it called unasked"
        )

    def _call_description(self, arguments: Mapping[str, Any]) -> str:
        """Return server, tool and arguments; long arguments are cut in the middle, which is said."""
        text = json.dumps(arguments, ensure_ascii=False, indent=1)
        if len(text) > _SHOWN_CHARS:
            half = _SHOWN_CHARS // 2
            text = f"{text[:half]}\n… {len(text) - 2 * half} characters are not shown …\n{text[-half:]}"
        mark = ", marked as read-only" if self.read_only else ""
        server = visible_line(f"{self._server.name} ({self._server.words()})")
        tool = shortened(visible_line(self._tool), _SHOWN_NAME_CHARS)
        return f"server: {server}\ntool: {tool}{mark}\narguments: {text}"


_LOST = (
    "the same call was sent before for this request, and its answer never came, or was too large to be kept; it may "
    "take effect a second time"
)


@dataclass(eq=False)
class Sent:
    """A call that was sent to a server.

    Args:
        key: Its arguments, spelled in one way.
        answer: What the server sent; None: nothing came, so that nobody knows whether the call took effect, or what
            came is too large to be kept.
        lost: No answer will come: the server ended, took too long, or sent what can't be read.
    """

    key: str
    answer: Mapping[str, Any] | None = None
    lost: bool = False


class SentCalls:
    """The calls of one tool that cells of a request have sent, so that a second try doesn't send them again.

    A second try is a cell that follows a failed one of the same request: a model that fixes its code often sends all of
    it anew. Calls of the same arguments are told apart by their number, so that a loop of equal calls goes on where the
    failed cell has stopped. A call that the server has answered with an error counts as not made. From any thread.
    """

    def __init__(self) -> None:
        self._now: list[Sent] = []
        self._earlier: list[Sent] = []
        self._kept_bytes = 0
        self._lock = threading.Lock()

    def begin_cell(self, *, second_try: bool) -> None:
        """Note that a cell begins."""
        with self._lock:
            self._earlier = [*self._earlier, *self._now] if second_try else []
            self._now = []
            self._kept_bytes = self._kept_bytes if second_try else 0

    def take_earlier(self, arguments: Mapping[str, Any]) -> Sent | None:
        """Return the first call with these arguments of a failed cell that was not asked for since; None: none.

        Of the running cell it is one whose answer is lost: code that tries again by itself is no better than a model.
        """
        key = _call_key(arguments)
        with self._lock:
            found = next((one for one in self._earlier if one.key == key), None)
            if found is not None:
                self._earlier.remove(found)
                self._now.append(found)
                return found
            return next((one for one in self._now if one.key == key and one.lost), None)

    @contextlib.contextmanager
    def sending(self, arguments: Mapping[str, Any]) -> Iterator[Sent]:
        """Keep a call that is sent in this block; one that surely took no effect is forgotten again."""
        sent = Sent(_call_key(arguments))
        with self._lock:
            self._now.append(sent)
        try:
            yield sent
        except (TimeoutError, McpCallLostError):
            sent.lost = True
            raise
        except Exception:
            self.forget(sent)
            raise
        if sent.answer is None:
            return
        if sent.answer.get("isError"):
            self.forget(sent)
            return
        text = json.dumps(sent.answer)
        size = len(text) + bounded_json.estimate_bytes(text)
        with self._lock:
            if self._kept_bytes + size > _MAX_KEPT_BYTES:
                sent.answer = None
            else:
                self._kept_bytes += size

    def forget(self, sent: Sent) -> None:
        """Forget a call: it took no effect, or a person has allowed to send it again."""
        with self._lock:
            for calls in (self._now, self._earlier):
                if sent in calls:
                    calls.remove(sent)


def _call_key(arguments: Mapping[str, Any]) -> str:
    return json.dumps(arguments, sort_keys=True)
