"""`KernelCodeExecutor`: our kernel for the code blocks of any agent of the host."""

from __future__ import annotations

import functools
import re
import weakref
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from tw_autogen.approval import Approve
from tw_autogen.closing import Closing
from tw_autogen.code_interpreter import CellRunner, CodeInterpreterSettings, Policy, findings_report, verify
from tw_autogen.conversation import Round
from tw_autogen.events import Handler, checked_handlers, deliver
from tw_autogen.hosts.conversable.autogen_import import import_autogen
from tw_autogen.hosts.conversable.messages import without_end
from tw_autogen.kernel import Artifact, Execution, KernelSettings
from tw_autogen.model import BaseChatModel, ChatModel, Completion, ModelRequest
from tw_autogen.named_folders import distrusted_now
from tw_autogen.python_source import PYTHON_LANGUAGE
from tw_autogen.role import Turn
from tw_autogen.session import (
    FilesWanted,
    PluginsWanted,
    PolicyWanted,
    RoleConfig,
    check_plugins,
    open_kernel,
    policy_of,
    read_logged,
)
from tw_autogen.settings import Settings
from tw_autogen.text_escaping import inert_output
from tw_autogen.text_truncation import without_middle

_coding: Any = import_autogen().coding
_POLICY_KEYS = tuple(
    f"code_interpreter.{key}" for key in ("policy", "plugin_only", "allowed_modules", "blocked_functions")
)
_PYTHON = re.compile(PYTHON_LANGUAGE, re.I)


class KernelCodeExecutor(Closing):
    """A code executor for `code_execution_config={"executor": …}`: a kernel that remembers, with plugins and limits.

    Args:
        folder: Where code runs, with all in it the code's to read and write, as `LocalKernel` has it; None: one of its
            own in `session.workspace`.
        plugins: Functions that code may call: names, paths, functions, or specs; as in `open_session`.
        files: Copied read-only into the folder, which gets a sealed record of them (`.tw-copies.json`): only such a
            copy, unchanged, is replaced later.
        variables: Variables for the code, and session variables for plugins: JSON values and DataFrames by name.
        seconds: How long one code block may run.
        policy: What code may do: a policy, its name, or the path of its YAML; None: what the
            settings `code_interpreter.policy`, `plugin_only`, `allowed_modules`
            and `blocked_functions` say, or, where none of them is set, whatever it likes, as with other executors.
        model: What host-run plugins may ask.
        settings: Dotted keys.
        handlers: Called with each event.
        approve: Asked for packages that code wants, where the setting `kernel.install` is `ask`.
        trust: All that the current folder's settings file sets is wanted; as in `open_session`.

    Raises:
        ConfigError: a plugin, file or setting is wrong, or the folder is one that no kernel works in.

    Source: the host's protocol `CodeExecutor`. Code in other languages than Python is refused in words.
    """

    def __init__(
        self,
        *,
        folder: Path | str | None = None,
        plugins: PluginsWanted = (),
        files: FilesWanted = (),
        variables: Mapping[str, Any] | None = None,
        seconds: float = 180.0,
        policy: PolicyWanted | None = None,
        model: ChatModel | None = None,
        settings: Mapping[str, Any] | None = None,
        handlers: Sequence[Handler] = (),
        approve: Approve | None = None,
        trust: bool = False,
    ) -> None:
        read = read_logged(settings, trust=trust)
        specs = check_plugins(plugins)
        self._variables = dict(variables or {})
        self._held_by: dict[str, list[object]] = {}
        self._seconds = seconds
        self._names = tuple(spec.name for spec in specs)
        self._emit = functools.partial(deliver, handlers=checked_handlers(handlers))
        self._options = read.read("code_interpreter", CodeInterpreterSettings)
        self._policy: Policy | None = None
        if policy is not None or any(read.origin(key) != Settings.DEFAULT for key in _POLICY_KEYS):
            role_config = RoleConfig("code_interpreter", policy=policy)
            self._policy = replace(policy_of(role_config, read), install=read.read("kernel", KernelSettings).install)
        with ExitStack() as stack:
            self._kernel = open_kernel(
                read, folder, stack, name="executor", files=files, variables=variables, approve=approve
            )
            self.work_dir = self._kernel.folder
            self._cells = CellRunner(
                self._kernel,
                specs,
                model or _NoModel(),
                self._options,
                distrusted=distrusted_now,
            )
            stack.callback(self._cells.close)
            self._end = weakref.finalize(self, stack.pop_all().close)

    @property
    def code_extractor(self) -> Any:
        """The host's own: fenced blocks of Markdown."""
        return _coding.MarkdownCodeExtractor()

    def execute_code_blocks(self, code_blocks: Sequence[Any]) -> Any:
        """Run blocks one after the other, until one fails.

        Args:
            code_blocks: The host's `CodeBlock`s: `code` and `language`.

        Returns:
            The host's result: `exit_code` 0 or 1, `output` with all that was printed, the last value, errors and files,
            and the files' paths as `output_files`.
        """
        outputs: list[str] = []
        made: list[Artifact] = []
        ok = True
        here = Round("code blocks")
        turn = Turn(here, self.work_dir, emit=self._emit, variables=self._variables, held_by=self._held_by)
        for block in code_blocks:
            ok, output, files = self._run(block, turn)
            outputs.append(output)
            made += files
            if not ok:
                break
        lines = Artifact.list_markdown(made)
        output = without_end(inert_output("\n".join(part for part in [*outputs, lines] if part)))
        return _coding.base.IPythonCodeResult(
            exit_code=int(not ok), output=output, output_files=[str(one.path) for one in made]
        )

    def restart(self) -> None:
        """Begin with a fresh kernel, plugins loaded; files stay."""
        self._kernel.restart()

    def interrupt(self) -> None:
        """Stop the running block, keep variables; from any thread."""
        self._kernel.interrupt()

    def close(self) -> None:
        """End the kernel; files stay."""
        self._end()

    def _run(self, block: Any, turn: Turn) -> tuple[bool, str, Sequence[Artifact]]:
        """Run a block; return whether that went well, its output, and its files."""
        if block.language and not _PYTHON.fullmatch(block.language):
            return False, f"{block.language} is not run here; write Python", ()
        findings = verify(block.code, self._policy, plugins=self._names) if self._policy else []
        if findings:
            return False, findings_report(findings), ()
        ran = self._cells.run(block.code, turn=turn, seconds=self._seconds)
        return ran.ok, self._output_text(ran), ran.artifacts

    def _output_text(self, ran: Execution) -> str:
        limit = self._options.report_chars
        logs = "\n".join(f"[{log.level}] {log.tag}: {log.message}" for log in ran.logs)
        parts = (ran.stdout, ran.result or "", ran.stderr, logs, ran.error)
        return "\n".join(without_middle(part.strip("\n"), limit) for part in parts if part.strip())


class _NoModel(BaseChatModel):
    """Stands where no model was given."""

    def answer(self, request: ModelRequest) -> Completion:
        raise RuntimeError("this executor was given no model; pass KernelCodeExecutor(model=...)")
